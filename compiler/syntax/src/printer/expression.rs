//! Printing of expressions: on one line, with parentheses only where Python needs them, as in TVM's
//! `python_doc_printer.cc`.

use rx_base::name::NameSet;

use super::canonical::{bare, canonical_callee, is_verbatim, path, takes_attributes};
use super::scope::Scope;
use super::string::{quote, requote};
use crate::Cursor;
use crate::ast::{Argument, BinaryOp, BoolOp, CompareOp, Expr, ExprKind, Parameter, UnaryOp};
use crate::dialect::Dialect;

/// The precedence of an expression, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
    /// The lowest precedence, which every expression has at least.
    Any,
    Lambda,
    Conditional,
    Or,
    And,
    Not,
    Comparison,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Sign,
    Power,
    Atom,
}

use Precedence as P;

/// The writer of expressions, with the context that affects the output.
pub(crate) struct Writer<'p> {
    pub(crate) out: String,
    pub(crate) from: Dialect,
    pub(crate) to: Dialect,
    /// Whether the file contains its metadata. The keys in `metadata["key"]` must then stay as they are there.
    pub(crate) keeps_metadata_keys: bool,
    pub(crate) place: Place<'p>,
}

/// The context of an expression.
#[derive(Clone, Default)]
pub(crate) struct Place<'p> {
    /// Whether the expression is in a Relax function.
    pub(crate) relax: bool,
    /// The function that contains the expression.
    pub(crate) scope: Option<Scope<'p>>,
    /// For an expression in a signature: the data to print its dims.
    pub(crate) signature: Option<SignaturePlace<'p>>,
    /// Whether the expression is in the dict of a `func_attr`.
    pub(crate) attributes: bool,
}

/// The context for printing a signature.
#[derive(Clone)]
pub(crate) struct SignaturePlace<'p> {
    /// The function with this signature.
    pub(crate) scope: Scope<'p>,
    /// The dims used so far.
    pub(crate) bound: NameSet,
}

impl Writer<'_> {
    /// Whether current text is converted to classic. Without a conversion no construct is replaced by another.
    pub(crate) fn becomes_classic(&self) -> bool {
        self.to.is_classic() && !self.from.is_classic()
    }

    /// Whether classic text is converted to current.
    pub(crate) fn leaves_classic(&self) -> bool {
        self.from.is_classic() && !self.to.is_classic()
    }

    /// Prints `expr`, in parentheses if its precedence is lower than `least`.
    pub(crate) fn expr(&mut self, expr: &Expr, cursor: Cursor<'_>, least: Precedence) {
        let expr = bare(expr);
        let parens = precedence(expr) < least;
        if parens {
            self.out.push('(');
        }
        match &expr.kind {
            _ if is_verbatim(expr) => self.out.push_str(cursor.source(expr.tokens)),
            ExprKind::Name | ExprKind::Attribute { .. } | ExprKind::Subscript { .. } | ExprKind::Call { .. } => {
                self.postfix(expr, cursor);
            }
            ExprKind::Binary(..) => self.binary(expr, cursor),
            ExprKind::Unary(..) => self.unary(expr, cursor),
            ExprKind::Compare(first, rest) => self.compare(first, rest, cursor),
            ExprKind::Bool2(op, operands) => self.bool_chain(*op, operands, cursor),
            ExprKind::Conditional { .. } => self.conditional(expr, cursor),
            ExprKind::Lambda { params, body } => self.lambda(params, body, cursor),
            ExprKind::Tuple(elements) => self.tuple(elements, cursor),
            ExprKind::List(elements) => self.bracketed('[', elements, ']', cursor),
            ExprKind::Set(elements) => self.bracketed('{', elements, '}', cursor),
            ExprKind::Dict(pairs) => self.dict(pairs, cursor),
            ExprKind::Slice { lower, upper, step } => self.slice([lower, upper, step], cursor),
            ExprKind::Starred { double, value } => {
                self.out.push_str(if *double { "**" } else { "*" });
                self.expr(value, cursor, P::BitOr);
            }
            ExprKind::Walrus { name, value } => {
                self.out.push_str(cursor.text(*name));
                self.out.push_str(" := ");
                self.expr(value, cursor, P::Lambda);
            }
            ExprKind::String => self.string(expr, cursor),
            ExprKind::Bool(value) => self.boolean(*value),
            ExprKind::None => self.out.push_str("None"),
            ExprKind::Ellipsis => self.out.push_str("..."),
            // Numbers keep their spelling. The kinds that are printed verbatim were handled above.
            _ => self.out.push_str(cursor.source(expr.tokens)),
        }
        if parens {
            self.out.push(')');
        }
    }

    /// Prints a boolean. In classic attributes it is `T.bool(True)`.
    fn boolean(&mut self, value: bool) {
        let word = if value { "True" } else { "False" };
        if self.place.attributes && self.becomes_classic() {
            self.out.push_str("T.bool(");
            self.out.push_str(word);
            self.out.push(')');
        } else {
            self.out.push_str(word);
        }
    }

    fn string(&mut self, expr: &Expr, cursor: Cursor<'_>) {
        requote(&mut self.out, expr, cursor);
    }

    pub(crate) fn joined(&mut self, elements: &[Expr], cursor: Cursor<'_>) {
        for (at, element) in elements.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.expr(element, cursor, P::Lambda);
        }
    }

    pub(crate) fn bracketed(&mut self, open: char, elements: &[Expr], close: char, cursor: Cursor<'_>) {
        self.out.push(open);
        self.joined(elements, cursor);
        self.out.push(close);
    }

    fn tuple(&mut self, elements: &[Expr], cursor: Cursor<'_>) {
        self.out.push('(');
        self.joined(elements, cursor);
        self.out.push_str(if elements.len() == 1 { ",)" } else { ")" });
    }

    fn dict(&mut self, pairs: &[(Option<Expr>, Expr)], cursor: Cursor<'_>) {
        self.out.push('{');
        for (at, (key, value)) in pairs.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            match key {
                Some(key) => {
                    self.attribute_key(key, cursor);
                    self.out.push_str(": ");
                }
                None => self.out.push_str("**"),
            }
            self.expr(value, cursor, P::Lambda);
        }
        self.out.push('}');
    }

    fn attribute_key(&mut self, key: &Expr, cursor: Cursor<'_>) {
        if self.place.attributes
            && let Some(text) = cursor.string_value(bare(key))
        {
            let canonical = self.from.canonical_attr_key(&text);
            let spelled = self.to.spell_attr_key(&canonical);
            if spelled != text {
                return quote(&mut self.out, &spelled);
            }
        }
        self.expr(key, cursor, P::Lambda);
    }

    fn slice(&mut self, [lower, upper, step]: [&Option<Box<Expr>>; 3], cursor: Cursor<'_>) {
        if let Some(lower) = lower {
            self.expr(lower, cursor, P::Lambda);
        }
        self.out.push(':');
        if let Some(upper) = upper {
            self.expr(upper, cursor, P::Lambda);
        }
        if let Some(step) = step {
            self.out.push(':');
            self.expr(step, cursor, P::Lambda);
        }
    }

    /// Prints a binary expression. The left operands are walked in a loop and not recursively, since a chain of
    /// operators may be deeper than the stack allows.
    fn binary(&mut self, expr: &Expr, cursor: Cursor<'_>) {
        let mut spine = Vec::new();
        let mut at = expr;
        let mut least = P::Any;
        while let ExprKind::Binary(op, left, right) = &at.kind {
            let own = precedence(at);
            let parens = own < least;
            if parens {
                self.out.push('(');
            }
            spine.push((*op, &**right, own, parens));
            // The left operand of `a ** b` needs a higher precedence than `**` itself.
            least = if *op == BinaryOp::Pow { P::Atom } else { own };
            at = bare(left);
        }
        self.expr(at, cursor, least);
        for (op, right, own, parens) in spine.into_iter().rev() {
            self.out.push_str(binary_text(op));
            self.expr(right, cursor, if op == BinaryOp::Pow { P::Sign } else { tighter(own) });
            if parens {
                self.out.push(')');
            }
        }
    }

    fn unary(&mut self, expr: &Expr, cursor: Cursor<'_>) {
        let mut at = expr;
        let mut least = P::Any;
        while let ExprKind::Unary(op, operand) = &at.kind {
            if precedence(at) < least {
                break;
            }
            self.out.push_str(match op {
                UnaryOp::Neg => "-",
                UnaryOp::Pos => "+",
                UnaryOp::Invert => "~",
                UnaryOp::Not => "not ",
            });
            least = precedence(at);
            at = bare(operand);
        }
        self.expr(at, cursor, least);
    }

    fn compare(&mut self, first: &Expr, rest: &[(CompareOp, Expr)], cursor: Cursor<'_>) {
        self.expr(first, cursor, P::BitOr);
        for (op, operand) in rest {
            self.out.push_str(compare_text(*op));
            self.expr(operand, cursor, P::BitOr);
        }
    }

    fn bool_chain(&mut self, op: BoolOp, operands: &[Expr], cursor: Cursor<'_>) {
        let (own, word) = match op {
            BoolOp::And => (P::And, " and "),
            BoolOp::Or => (P::Or, " or "),
        };
        for (at, operand) in operands.iter().enumerate() {
            if at > 0 {
                self.out.push_str(word);
            }
            // `(a and b) and c` is printed as `a and b and c`.
            self.expr(operand, cursor, if at == 0 { own } else { tighter(own) });
        }
    }

    fn conditional(&mut self, expr: &Expr, cursor: Cursor<'_>) {
        let mut at = expr;
        while let ExprKind::Conditional { then, test, otherwise } = &at.kind {
            self.expr(then, cursor, P::Or);
            self.out.push_str(" if ");
            self.expr(test, cursor, P::Or);
            self.out.push_str(" else ");
            at = otherwise;
        }
        self.expr(at, cursor, P::Or);
    }

    fn lambda(&mut self, params: &[Parameter], body: &Expr, cursor: Cursor<'_>) {
        self.out.push_str("lambda");
        self.out.push_str(if params.is_empty() { "" } else { " " });
        self.parameters(params, cursor);
        self.out.push_str(": ");
        self.expr(body, cursor, P::Lambda);
    }

    /// Prints the parameters of a lambda or a `def`.
    pub(crate) fn parameters(&mut self, params: &[Parameter], cursor: Cursor<'_>) {
        for (at, param) in params.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            let cursor = cursor.parameter(param);
            let tree = &param.tree;
            let Some(name) = tree.name.filter(|_| tree.error.is_none()) else {
                self.out.push_str(cursor.source(tree.tokens));
                continue;
            };
            self.out.push_str(["", "*", "**"].get(usize::from(tree.stars)).unwrap_or(&""));
            self.out.push_str(cursor.text(name));
            if let Some(annotation) = &tree.annotation {
                self.out.push_str(": ");
                self.expr(annotation, cursor, P::Lambda);
            }
            if let Some(default) = &tree.default {
                self.out.push_str(if tree.annotation.is_some() { " = " } else { "=" });
                self.expr(default, cursor, P::Lambda);
            }
        }
    }

    /// Prints `a.b[c](d)`: a base expression and its suffixes.
    fn postfix(&mut self, expr: &Expr, cursor: Cursor<'_>) {
        let mut chain = Vec::new();
        let mut base = expr;
        while let ExprKind::Attribute { value: inner, .. }
        | ExprKind::Subscript { value: inner, .. }
        | ExprKind::Call { callee: inner, .. } = &base.kind
        {
            chain.push(base);
            base = bare(inner);
        }
        chain.reverse();
        let dotted = match base.kind {
            ExprKind::Name => chain.iter().take_while(|link| matches!(link.kind, ExprKind::Attribute { .. })).count(),
            _ => 0,
        };
        let whole = if dotted == 0 { base } else { chain.get(dotted - 1).copied().unwrap_or(base) };
        let full = path(whole, cursor).filter(|_| matches!(base.kind, ExprKind::Name));
        let rest = chain.get(dotted..).unwrap_or_default();
        let Some(full) = full else {
            self.base(base, chain.first().copied(), cursor);
            return self.suffixes(None, &chain, cursor);
        };
        let canonical = match rest.first().map(|link| &link.kind) {
            Some(ExprKind::Call { arguments, .. }) if self.leaves_classic() => {
                canonical_callee(self.from, &full, arguments, cursor)
            }
            _ => self.from.canonical_call(&full).to_owned(),
        };
        if let Some(skip) = self.scalar_type(&canonical, rest, cursor) {
            return self.suffixes(None, rest.get(skip..).unwrap_or_default(), cursor);
        }
        let spelled = self.to.spell_call(&canonical);
        self.out.push_str(spelled);
        self.suffixes(Some(&canonical), rest, cursor);
    }

    /// Prints the base of a chain. A number before a dot needs parentheses.
    fn base(&mut self, base: &Expr, next: Option<&Expr>, cursor: Cursor<'_>) {
        let number = matches!(base.kind, ExprKind::Integer | ExprKind::Float);
        if number && next.is_some_and(|next| matches!(next.kind, ExprKind::Attribute { .. })) {
            self.out.push('(');
            self.expr(base, cursor, P::Any);
            self.out.push(')');
        } else {
            self.expr(base, cursor, P::Atom);
        }
    }

    pub(crate) fn suffixes(&mut self, canonical: Option<&str>, links: &[&Expr], cursor: Cursor<'_>) {
        for (at, link) in links.iter().enumerate() {
            let callee = canonical.filter(|_| at == 0);
            match &link.kind {
                ExprKind::Attribute { name, .. } => {
                    self.out.push('.');
                    self.out.push_str(cursor.text(*name));
                }
                ExprKind::Subscript { index, .. } => self.index(callee, index, cursor),
                ExprKind::Call { arguments, .. } => self.call(callee, arguments, cursor),
                _ => {}
            }
        }
    }

    fn index(&mut self, holder: Option<&str>, index: &Expr, cursor: Cursor<'_>) {
        self.out.push('[');
        match &index.kind {
            _ if holder == Some("metadata") && self.metadata_key(index, cursor) => {}
            ExprKind::Tuple(elements) if !elements.is_empty() => {
                self.joined(elements, cursor);
                self.out.push_str(if elements.len() == 1 { "," } else { "" });
            }
            _ => self.expr(index, cursor, P::Lambda),
        }
        self.out.push(']');
    }

    fn metadata_key(&mut self, index: &Expr, cursor: Cursor<'_>) -> bool {
        let Some(key) = cursor.string_value(bare(index)).filter(|_| !self.keeps_metadata_keys) else { return false };
        let spelled = self.to.spell_metadata_key(self.from.canonical_metadata_key(&key));
        quote(&mut self.out, spelled);
        true
    }

    fn call(&mut self, callee: Option<&str>, arguments: &[Argument], cursor: Cursor<'_>) {
        let attributes = callee.is_some_and(takes_attributes);
        let was = std::mem::replace(&mut self.place.attributes, attributes);
        self.out.push('(');
        self.arguments(callee.unwrap_or(""), arguments, cursor);
        self.out.push(')');
        self.place.attributes = was;
    }
}

/// Returns the precedence of `expr`.
pub(crate) fn precedence(expr: &Expr) -> Precedence {
    match &expr.kind {
        ExprKind::Lambda { .. } => P::Lambda,
        ExprKind::Conditional { .. } => P::Conditional,
        ExprKind::Bool2(BoolOp::Or, _) => P::Or,
        ExprKind::Bool2(BoolOp::And, _) => P::And,
        ExprKind::Unary(UnaryOp::Not, _) => P::Not,
        ExprKind::Compare(..) => P::Comparison,
        ExprKind::Binary(op, ..) => match op {
            BinaryOp::BitOr => P::BitOr,
            BinaryOp::BitXor => P::BitXor,
            BinaryOp::BitAnd => P::BitAnd,
            BinaryOp::LeftShift | BinaryOp::RightShift => P::Shift,
            BinaryOp::Add | BinaryOp::Sub => P::Sum,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::MatMul => P::Product,
            BinaryOp::Pow => P::Power,
        },
        ExprKind::Unary(..) => P::Sign,
        ExprKind::Walrus { .. } => P::Any,
        _ => P::Atom,
    }
}

/// Returns the next higher precedence.
fn tighter(of: Precedence) -> Precedence {
    const ORDER: [Precedence; 16] = [
        P::Any,
        P::Lambda,
        P::Conditional,
        P::Or,
        P::And,
        P::Not,
        P::Comparison,
        P::BitOr,
        P::BitXor,
        P::BitAnd,
        P::Shift,
        P::Sum,
        P::Product,
        P::Sign,
        P::Power,
        P::Atom,
    ];
    ORDER.into_iter().find(|other| *other > of).unwrap_or(P::Atom)
}

/// Returns the text of a binary operator, with blanks around it.
pub(crate) fn binary_text(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => " + ",
        BinaryOp::Sub => " - ",
        BinaryOp::Mul => " * ",
        BinaryOp::Div => " / ",
        BinaryOp::FloorDiv => " // ",
        BinaryOp::Mod => " % ",
        BinaryOp::Pow => " ** ",
        BinaryOp::MatMul => " @ ",
        BinaryOp::LeftShift => " << ",
        BinaryOp::RightShift => " >> ",
        BinaryOp::BitAnd => " & ",
        BinaryOp::BitOr => " | ",
        BinaryOp::BitXor => " ^ ",
    }
}

fn compare_text(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => " == ",
        CompareOp::Ne => " != ",
        CompareOp::Lt => " < ",
        CompareOp::Le => " <= ",
        CompareOp::Gt => " > ",
        CompareOp::Ge => " >= ",
        CompareOp::Is => " is ",
        CompareOp::IsNot => " is not ",
        CompareOp::In => " in ",
        CompareOp::NotIn => " not in ",
    }
}
