//! The syntax trees of statements and expressions, for the subset of Python in which TVMScript is written.
//!
//! A tree contains *no text and no positions*, only token indices relative to the first token of its statement (for a
//! parameter's tree: of the parameter). Two statements whose tokens have the same kinds therefore have the same tree,
//! and share it (`docs/decisions/0003`). For example, `a = R.add(b, c)` and `x = R.mul(y, z)` share one tree.
//! [`crate::Cursor`] maps a tree to its text.

use std::sync::Arc;

/// The index of a token, counted from the tree's first token.
pub type TokenIndex = u32;

/// A half-open range of token indices, counted from the tree's first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenRange {
    /// The first token.
    pub start: TokenIndex,
    /// The end, exclusive.
    pub end: TokenIndex,
}

impl TokenRange {
    /// Returns the range of a single token.
    pub fn one(token: TokenIndex) -> TokenRange {
        TokenRange { start: token, end: token + 1 }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// The kind of the expression.
    pub kind: ExprKind,
    /// The tokens of the expression, parentheses included.
    pub tokens: TokenRange,
}

impl Expr {
    /// Whether the expression is a dotted name such as `R.nn.relu`. An attribute of a call's result, as in
    /// `R.add(x, y).astype`, is none.
    pub fn is_dotted_name(&self) -> bool {
        let mut expr = self;
        while let ExprKind::Attribute { value, .. } = &expr.kind {
            expr = value;
        }
        matches!(expr.kind, ExprKind::Name)
    }

    /// Returns the direct children, left to right, without lambda parameters.
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
    /// Returns the direct children as in [`Expr::children`], mutably.
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

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// An identifier. Its text is that of the first token.
    Name,
    /// An integer literal: decimal, hexadecimal, octal or binary, with optional underscores.
    Integer,
    /// A float literal.
    Float,
    /// A string literal, or several adjacent ones, which Python concatenates. Prefixes are included.
    String,
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// `...`.
    Ellipsis,
    /// `value.name`.
    Attribute {
        /// The expression before the dot.
        value: Box<Expr>,
        /// The token of the attribute's name.
        name: TokenIndex,
    },
    /// `value[index]`. With several indices, `index` is a tuple.
    Subscript {
        /// The indexed expression.
        value: Box<Expr>,
        /// The expression between the brackets.
        index: Box<Expr>,
    },
    /// `callee(arguments)`.
    Call {
        /// The called expression.
        callee: Box<Expr>,
        /// The arguments, in order.
        arguments: Vec<Argument>,
    },
    /// `(a, b)`, `a, b`, `()`.
    Tuple(Vec<Expr>),
    /// `(a)`: a parenthesized expression that is not a tuple.
    Parenthesized(Box<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `{k: v}`. For `**v`, the key is `None`.
    Dict(Vec<(Option<Expr>, Expr)>),
    /// `{a, b}`.
    Set(Vec<Expr>),
    /// `lower:upper:step`, only inside a subscript.
    Slice {
        /// The expression before the first colon.
        lower: Option<Box<Expr>>,
        /// The expression between the colons.
        upper: Option<Box<Expr>>,
        /// The expression after the second colon.
        step: Option<Box<Expr>>,
    },
    /// A unary operation.
    Unary(UnaryOp, Box<Expr>),
    /// A binary operation, except comparisons and `and`/`or`.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A chain of comparisons: `first op operand op operand …`.
    Compare(Box<Expr>, Vec<(CompareOp, Expr)>),
    /// A chain of one boolean operator: `a and b and c`, `a or b`.
    Bool2(BoolOp, Vec<Expr>),
    /// `then if test else otherwise`.
    Conditional {
        /// The value if the condition is true.
        then: Box<Expr>,
        /// The condition.
        test: Box<Expr>,
        /// The value if the condition is false.
        otherwise: Box<Expr>,
    },
    /// `lambda a, b: body`.
    Lambda {
        /// The parameters, without annotations.
        params: Vec<Parameter>,
        /// The value.
        body: Box<Expr>,
    },
    /// `*value`, or `**value` in a call.
    Starred {
        /// Whether there are two stars.
        double: bool,
        /// The unpacked expression.
        value: Box<Expr>,
    },
    /// `name := value`.
    Walrus {
        /// The token of the name.
        name: TokenIndex,
        /// The value.
        value: Box<Expr>,
    },
    /// A comprehension of any kind. Its parts are not represented.
    Comprehension,
    /// `await value` or `yield value`, without its parts. Accepted only so that Python files parse.
    Python,
    /// Tokens that do not form an expression; the range may be empty. The statement's tree contains the error.
    Error,
}

/// A call's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The token of the keyword in `keyword=value`; `None` for a positional argument.
    pub keyword: Option<TokenIndex>,
    /// The value.
    pub value: Expr,
}

/// Unary operators.
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

/// Binary operators, except comparisons and `and`/`or`.
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

/// The boolean operators `and` and `or`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    /// `and`.
    And,
    /// `or`.
    Or,
}

/// A parameter of a function or lambda. Parameter trees are shared between functions like statement trees, so their
/// token indices count from `first_token`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The index of the parameter's first token, counted from the statement's first token.
    pub first_token: TokenIndex,
    /// The parameter's tree.
    pub tree: Arc<ParameterTree>,
}

/// The tree of a parameter. Token indices count from the parameter's first token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterTree {
    /// The number of stars: 1 for `*args`, 2 for `**kwargs`, otherwise 0.
    pub stars: u8,
    /// The token of the name; `None` for a bare `*` or `/`, or if the parameter is broken.
    pub name: Option<TokenIndex>,
    /// The expression after the colon.
    pub annotation: Option<Expr>,
    /// The expression after `=`.
    pub default: Option<Expr>,
    /// The tokens of the whole parameter.
    pub tokens: TokenRange,
    /// The syntax error, if the parameter has one.
    pub error: Option<SyntaxError>,
}

/// The tree of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementTree {
    /// The kind of the statement. If there is an `error`, this is the part that could be recovered: a broken `x: T = …`
    /// is still a binding of `x`.
    pub kind: StatementKind,
    /// The syntax error, if there is one. At most one error is reported for each statement.
    pub error: Option<SyntaxError>,
}

/// The kinds of statements. A compound statement is only its header line; its block follows from the indentation of the
/// lines below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// `@expr`.
    Decorator(Expr),
    /// `class Name(bases):`.
    Class {
        /// The token of the name.
        name: TokenIndex,
        /// The arguments in the parentheses.
        bases: Vec<Argument>,
    },
    /// `def name[type_params](params) -> ret:`.
    Def {
        /// The token of the name.
        name: TokenIndex,
        /// The tokens of the PEP 695 type parameters.
        type_params: Vec<TokenIndex>,
        /// The parameters in the parentheses.
        params: Vec<Parameter>,
        /// The expression after the arrow.
        ret: Option<Expr>,
    },
    /// `with a as b, c:`.
    With(Vec<WithItem>),
    /// `for target in iter:`.
    For {
        /// The loop variable or variables.
        target: Expr,
        /// The iterated expression.
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
    /// `target = value`, or `a = b = value` with the targets in order.
    Assign {
        /// The expressions before the last `=`.
        targets: Vec<Expr>,
        /// The expression after the last `=`.
        value: Expr,
    },
    /// `target: annotation = value`.
    AnnAssign {
        /// The bound expression, usually a name.
        target: Expr,
        /// The declared type.
        annotation: Expr,
        /// The value; `None` for `x: T`.
        value: Option<Expr>,
    },
    /// `target += value`.
    AugAssign {
        /// The updated expression.
        target: Expr,
        /// The operator, without `=`.
        op: BinaryOp,
        /// The right operand.
        value: Expr,
    },
    /// A bare expression.
    Expr(Expr),
    /// `return value`.
    Return(Option<Expr>),
    /// `assert test, message`.
    Assert {
        /// The condition.
        test: Expr,
        /// The message of a failed assertion.
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
        /// The tokens of the module path, with any leading dots.
        module: TokenRange,
        /// The imported names; empty for `*`.
        names: Vec<ImportedName>,
    },
    /// Python statements that have no meaning in TVMScript: `try`, `raise`, `del`, `global`, `async`, `yield`, `match`
    /// …
    Python {
        /// Whether the statement opens a block.
        block: bool,
    },
    /// A broken statement of which nothing was recovered.
    Error,
}

impl StatementKind {
    /// Whether the statement is the header of a block.
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

/// A part `context as target` of a `with`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithItem {
    /// The context manager.
    pub context: Expr,
    /// The expression after `as`.
    pub target: Option<Expr>,
}

/// A part `a.b as c` of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedName {
    /// The tokens of the dotted name.
    pub path: TokenRange,
    /// The token of the name after `as`.
    pub alias: Option<TokenIndex>,
}

/// A syntax error. Its tokens are relative, like those of the tree that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The diagnostic code: `SyntaxError`, `UnclosedBracket`, `NestingTooDeep`, ….
    pub code: rx_base::Code,
    /// The tokens at fault; empty at the statement's end.
    pub tokens: TokenRange,
    /// The alternatives that the parser expected here, as phrases (`an expression`, `` `)` ``); empty if `message` is
    /// complete.
    pub expected: Vec<&'static str>,
    /// A complete message; if empty, the message is built from `expected` and the token found.
    pub message: &'static str,
}
