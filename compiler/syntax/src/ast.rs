//! Statement trees: the Python subset TVMScript is written in.
//!
//! A tree holds *no text and no positions*, only token indices relative to the first token of its statement (or of the
//! parameter it belongs to). Two statements whose tokens are of the same kinds therefore have the same tree, and share it
//! (`docs/decisions/0003`). Text is reached through [`crate::Cursor`].

use std::sync::Arc;

/// A token's index, counted from the tree's first token.
pub type TokenIndex = u32;

/// A half-open range of token indices, counted from the tree's first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenRange {
    /// The first token.
    pub start: TokenIndex,
    /// After the last token.
    pub end: TokenIndex,
}

impl TokenRange {
    /// One token.
    pub fn one(token: TokenIndex) -> TokenRange {
        TokenRange { start: token, end: token + 1 }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The tokens it covers, parentheses included.
    pub tokens: TokenRange,
}

impl Expr {
    /// Whether this is a dotted name, `R.nn.relu`: not a member of a call's result, `R.add(x, y).astype`.
    pub fn is_dotted_name(&self) -> bool {
        let mut expr = self;
        while let ExprKind::Attribute { value, .. } = &expr.kind {
            expr = value;
        }
        matches!(expr.kind, ExprKind::Name)
    }

    /// The children of an expression, left to right, without lambda parameters.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Attribute { value, .. } | ExprKind::Starred { value, .. } | ExprKind::Walrus { value, .. } => {
                vec![value]
            }
            ExprKind::Parenthesized(value) | ExprKind::Unary(_, value) => vec![value],
            ExprKind::Lambda { body, .. } => vec![body],
            ExprKind::Subscript { value, index } => vec![value, index],
            ExprKind::Binary(_, left, right) => vec![left, right],
            ExprKind::Call { callee, arguments } => {
                std::iter::once(&**callee).chain(arguments.iter().map(|argument| &argument.value)).collect()
            }
            ExprKind::Tuple(all) | ExprKind::List(all) | ExprKind::Set(all) | ExprKind::Bool2(_, all) => {
                all.iter().collect()
            }
            ExprKind::Dict(pairs) => pairs.iter().flat_map(|(key, value)| key.iter().chain(Some(value))).collect(),
            ExprKind::Slice { lower, upper, step } => {
                [lower, upper, step].into_iter().filter_map(|part| part.as_deref()).collect()
            }
            ExprKind::Compare(first, rest) => {
                std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand)).collect()
            }
            ExprKind::Conditional { then, test, otherwise } => vec![then, test, otherwise],
            _ => Vec::new(),
        }
    }
}

impl Expr {
    /// As [`Expr::children`], to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Attribute { value, .. } | ExprKind::Starred { value, .. } | ExprKind::Walrus { value, .. } => {
                vec![value]
            }
            ExprKind::Parenthesized(value) | ExprKind::Unary(_, value) => vec![value],
            ExprKind::Lambda { body, .. } => vec![body],
            ExprKind::Subscript { value, index } => vec![value, index],
            ExprKind::Binary(_, left, right) => vec![left, right],
            ExprKind::Call { callee, arguments } => {
                std::iter::once(&mut **callee).chain(arguments.iter_mut().map(|argument| &mut argument.value)).collect()
            }
            ExprKind::Tuple(all) | ExprKind::List(all) | ExprKind::Set(all) | ExprKind::Bool2(_, all) => {
                all.iter_mut().collect()
            }
            ExprKind::Dict(pairs) => {
                pairs.iter_mut().flat_map(|(key, value)| key.iter_mut().chain(Some(value))).collect()
            }
            ExprKind::Slice { lower, upper, step } => {
                [lower, upper, step].into_iter().filter_map(|part| part.as_deref_mut()).collect()
            }
            ExprKind::Compare(first, rest) => {
                std::iter::once(&mut **first).chain(rest.iter_mut().map(|(_, operand)| operand)).collect()
            }
            ExprKind::Conditional { then, test, otherwise } => vec![then, test, otherwise],
            _ => Vec::new(),
        }
    }
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// An identifier; its text is the first token.
    Name,
    /// An integer literal, decimal, hex, octal or binary, underscores allowed.
    Integer,
    /// A float literal.
    Float,
    /// One string literal, or several side by side, prefixes included.
    String,
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// `...`.
    Ellipsis,
    /// `value.name`.
    Attribute {
        /// What stands before the dot.
        value: Box<Expr>,
        /// The token after the dot.
        name: TokenIndex,
    },
    /// `value[index]`; several indices are a tuple.
    Subscript {
        /// What is indexed.
        value: Box<Expr>,
        /// Between the brackets.
        index: Box<Expr>,
    },
    /// `callee(arguments)`.
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// In order.
        arguments: Vec<Argument>,
    },
    /// `(a, b)`, `a, b`, `()`.
    Tuple(Vec<Expr>),
    /// `(a)`: parentheses that make no tuple.
    Parenthesized(Box<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `{k: v}`; a key is `None` for `**v`.
    Dict(Vec<(Option<Expr>, Expr)>),
    /// `{a, b}`.
    Set(Vec<Expr>),
    /// `lower:upper:step`, inside a subscript only.
    Slice {
        /// Before the first colon.
        lower: Option<Box<Expr>>,
        /// After the first colon.
        upper: Option<Box<Expr>>,
        /// After the second colon.
        step: Option<Box<Expr>>,
    },
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// An infix operator.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `first op operand op operand …`.
    Compare(Box<Expr>, Vec<(CompareOp, Expr)>),
    /// `a and b and c`, `a or b`.
    Bool2(BoolOp, Vec<Expr>),
    /// `then if test else otherwise`.
    Conditional {
        /// The value if true.
        then: Box<Expr>,
        /// The condition.
        test: Box<Expr>,
        /// The value if false.
        otherwise: Box<Expr>,
    },
    /// `lambda a, b: body`.
    Lambda {
        /// Its parameters; no annotations.
        params: Vec<Parameter>,
        /// Its value.
        body: Box<Expr>,
    },
    /// `*value`, or `**value` in a call.
    Starred {
        /// Two stars.
        double: bool,
        /// What is spread.
        value: Box<Expr>,
    },
    /// `name := value`.
    Walrus {
        /// The name's token.
        name: TokenIndex,
        /// The value.
        value: Box<Expr>,
    },
    /// A comprehension of any kind; its parts are Python that rx does not look into.
    Comprehension,
    /// `await value` and `yield value`, kept only so that Python files can be read.
    Python,
    /// What could not be read as an expression; may cover no token. The statement carries the error.
    Error,
}

/// A call's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The keyword's token, for `keyword=value`.
    pub keyword: Option<TokenIndex>,
    /// The value.
    pub value: Expr,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`.
    Neg,
    /// `+`.
    Pos,
    /// `~`.
    Invert,
    /// `not`.
    Not,
}

/// Infix operators but comparisons and `and`/`or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `//`.
    FloorDiv,
    /// `%`.
    Mod,
    /// `**`.
    Pow,
    /// `@`.
    MatMul,
    /// `<<`.
    LeftShift,
    /// `>>`.
    RightShift,
    /// `&`.
    BitAnd,
    /// `|`.
    BitOr,
    /// `^`.
    BitXor,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// `is`.
    Is,
    /// `is not`.
    IsNot,
    /// `in`.
    In,
    /// `not in`.
    NotIn,
}

/// `and`, `or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    /// `and`.
    And,
    /// `or`.
    Or,
}

/// A function's or lambda's parameter. Its tree is shared like a statement's, so its indices count from `first_token`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter's first token, counted from the statement's first.
    pub first_token: TokenIndex,
    /// Its parts.
    pub tree: Arc<ParameterTree>,
}

/// The parts of a parameter; indices count from the parameter's first token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterTree {
    /// `*`, `**` or nothing.
    pub stars: u8,
    /// The name; `None` for a bare `*` or `/`, or where a mistake was reported.
    pub name: Option<TokenIndex>,
    /// After the colon.
    pub annotation: Option<Expr>,
    /// After `=`.
    pub default: Option<Expr>,
    /// Tokens of the whole parameter.
    pub tokens: TokenRange,
    /// What was wrong with it.
    pub error: Option<SyntaxError>,
}

/// One logical line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementTree {
    /// What it is. With an `error`, as much of it as could be kept: a broken `x: T = …` is still a binding of `x`.
    pub kind: StatementKind,
    /// What was wrong with it; at most one mistake is reported of a statement.
    pub error: Option<SyntaxError>,
}

/// The kinds of statement. Compound statements are their header line alone; blocks follow from indentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// `@expr`.
    Decorator(Expr),
    /// `class Name(bases):`.
    Class {
        /// The name's token.
        name: TokenIndex,
        /// In the parentheses.
        bases: Vec<Argument>,
    },
    /// `def name[type_params](params) -> ret:`.
    Def {
        /// The name's token.
        name: TokenIndex,
        /// PEP 695 type parameters' tokens.
        type_params: Vec<TokenIndex>,
        /// In the parentheses.
        params: Vec<Parameter>,
        /// After the arrow.
        ret: Option<Expr>,
    },
    /// `with a as b, c:`.
    With(Vec<WithItem>),
    /// `for target in iter:`.
    For {
        /// Bound by each turn.
        target: Expr,
        /// What is run through.
        iter: Expr,
    },
    /// `while test:`.
    While(Expr),
    /// `if test:`.
    If(Expr),
    /// `elif test:`.
    Elif(Expr),
    /// `else:`.
    Else,
    /// `target = value`; chained targets in order.
    Assign {
        /// Left of the last `=`.
        targets: Vec<Expr>,
        /// Right of it.
        value: Expr,
    },
    /// `target: annotation = value`.
    AnnAssign {
        /// What is bound.
        target: Expr,
        /// Its declared type.
        annotation: Expr,
        /// Absent in `x: T`.
        value: Option<Expr>,
    },
    /// `target += value`.
    AugAssign {
        /// What is changed.
        target: Expr,
        /// How.
        op: BinaryOp,
        /// By what.
        value: Expr,
    },
    /// A bare expression.
    Expr(Expr),
    /// `return value`.
    Return(Option<Expr>),
    /// `assert test, message`.
    Assert {
        /// What must hold.
        test: Expr,
        /// Said when it does not.
        message: Option<Expr>,
    },
    /// `pass`.
    Pass,
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `import a.b as c`.
    Import(Vec<ImportedName>),
    /// `from a.b import c as d`.
    FromImport {
        /// The module's tokens, dots included.
        module: TokenRange,
        /// Empty for `*`.
        names: Vec<ImportedName>,
    },
    /// Python that has no meaning in TVMScript: `try`, `raise`, `del`, `global`, `async`, `yield`, `match` …
    Python {
        /// Whether it opens a block.
        block: bool,
    },
    /// Nothing could be kept.
    Error,
}

impl StatementKind {
    /// Whether a block follows it.
    pub fn opens_block(&self) -> bool {
        matches!(
            self,
            StatementKind::Class { .. }
                | StatementKind::Def { .. }
                | StatementKind::With(_)
                | StatementKind::For { .. }
                | StatementKind::While(_)
                | StatementKind::If(_)
                | StatementKind::Elif(_)
                | StatementKind::Else
                | StatementKind::Python { block: true }
        )
    }
}

/// `context as target` of a `with`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithItem {
    /// What is entered.
    pub context: Expr,
    /// What it is called inside.
    pub target: Option<Expr>,
}

/// `a.b as c` of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedName {
    /// The dotted name's tokens.
    pub path: TokenRange,
    /// The token after `as`.
    pub alias: Option<TokenIndex>,
}

/// A mistake of syntax, position-free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Which kind: `SyntaxError`, `UnclosedBracket`, `NestingTooDeep`, ….
    pub code: rx_base::Code,
    /// The guilty tokens; empty at the statement's end.
    pub tokens: TokenRange,
    /// What was wanted there, as phrases (`an expression`, `` `)` ``); empty when `message` says it all.
    pub expected: Vec<&'static str>,
    /// A message that stands for itself; empty to have one made of `expected` and the token found.
    pub message: &'static str,
}
