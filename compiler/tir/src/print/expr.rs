//! Printing of expressions.

use super::{Printer, quoted};
use crate::expr::{BinaryOp, CompareOp, Expr, Intrinsic, UnaryOp};
use rx_base::DType;

/// The precedence of an expression's outermost operator in Python, from the lowest to the highest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Or,
    And,
    Not,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Sign,
    Atom,
}

impl Level {
    /// Returns the level that a right operand needs, since operators of one level associate to the left.
    fn tighter(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not | Level::Compare => Level::BitOr,
            Level::BitOr => Level::BitXor,
            Level::BitXor => Level::BitAnd,
            Level::BitAnd => Level::Shift,
            Level::Shift => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product => Level::Sign,
            Level::Sign | Level::Atom => Level::Atom,
        }
    }
}

impl Printer<'_> {
    /// Prints an expression that is not an operand of an operator.
    pub(super) fn expr(&self, expr: &Expr) -> String {
        self.within(expr, Level::Or)
    }

    /// Prints expressions separated by commas.
    pub(super) fn list(&self, exprs: &[Expr]) -> String {
        exprs.iter().map(|expr| self.expr(expr)).collect::<Vec<_>>().join(", ")
    }

    /// Prints an operand, in parentheses if it binds less tightly than `level`.
    fn within(&self, expr: &Expr, level: Level) -> String {
        let (text, own) = self.leveled(expr);
        if own < level { format!("({text})") } else { text }
    }

    fn leveled(&self, expr: &Expr) -> (String, Level) {
        match expr {
            Expr::Int { value, dtype } if *dtype == DType::INT32 => {
                (value.to_string(), if *value < 0 { Level::Sign } else { Level::Atom })
            }
            Expr::Int { .. } | Expr::Float { .. } => (typed(expr), Level::Atom),
            Expr::Var { var, .. } => (self.var(*var).to_owned(), Level::Atom),
            Expr::Load { buffer, indices, .. } => {
                let indices = if indices.is_empty() { "()".to_owned() } else { self.list(indices) };
                (format!("{}[{indices}]", self.buffer(*buffer)), Level::Atom)
            }
            Expr::Cast { dtype, value } => (format!("T.Cast(\"{dtype}\", {})", self.expr(value)), Level::Atom),
            Expr::Unary { op, value } => self.unary(*op, value),
            Expr::Binary { op, left, right } => self.binary(*op, left, right),
            Expr::Compare { op, left, right } => self.infix(compare_text(*op), Level::Compare, left, right),
            Expr::Select { condition, then, otherwise } => {
                let parts = [condition, then, otherwise].map(|part| self.expr(part)).join(", ");
                (format!("T.if_then_else({parts})"), Level::Atom)
            }
            Expr::Call { function, dtype, args } => (self.call(*function, *dtype, args), Level::Atom),
            Expr::Checked { index, .. } => self.leveled(index),
        }
    }

    fn call(&self, function: Intrinsic, dtype: DType, args: &[Expr]) -> String {
        let list = self.list(args);
        match function {
            Intrinsic::Reinterpret => format!("T.reinterpret(\"{dtype}\", {list})"),
            // TVM's `T.clz` returns `int32`.
            Intrinsic::Clz if dtype != DType::INT32 => format!("T.Cast(\"{dtype}\", T.clz({list}))"),
            _ => format!("T.{}({list})", function.name()),
        }
    }

    fn unary(&self, op: UnaryOp, value: &Expr) -> (String, Level) {
        // Without a dtype, Python would evaluate the operation on a plain number.
        let operand = |level| if value.as_int().is_some() { typed(value) } else { self.within(value, level) };
        match op {
            UnaryOp::Neg => (format!("-{}", operand(Level::Sign)), Level::Sign),
            UnaryOp::BitNot => (format!("~{}", operand(Level::Sign)), Level::Sign),
            UnaryOp::Not => (format!("not {}", operand(Level::Not)), Level::Not),
        }
    }

    fn binary(&self, op: BinaryOp, left: &Expr, right: &Expr) -> (String, Level) {
        let (text, level) = match op {
            BinaryOp::Add => ("+", Level::Sum),
            BinaryOp::Sub => ("-", Level::Sum),
            BinaryOp::Mul => ("*", Level::Product),
            BinaryOp::Div if left.dtype().is_float() => ("/", Level::Product),
            BinaryOp::FloorDiv => ("//", Level::Product),
            BinaryOp::FloorMod => ("%", Level::Product),
            BinaryOp::And => ("and", Level::And),
            BinaryOp::Or => ("or", Level::Or),
            BinaryOp::BitAnd => ("&", Level::BitAnd),
            BinaryOp::BitOr => ("|", Level::BitOr),
            BinaryOp::BitXor => ("^", Level::BitXor),
            BinaryOp::ShiftLeft => ("<<", Level::Shift),
            BinaryOp::ShiftRight => (">>", Level::Shift),
            BinaryOp::Div => return self.named_call("Div", left, right),
            BinaryOp::TruncDiv => return self.named_call("truncdiv", left, right),
            BinaryOp::TruncMod => return self.named_call("truncmod", left, right),
            BinaryOp::Min => return self.named_call("min", left, right),
            BinaryOp::Max => return self.named_call("max", left, right),
        };
        // The amount of a shift may have another dtype than the shifted value. TVM would widen the value to a wider
        // amount, so the amount is cast to the value's dtype.
        match left.dtype() == right.dtype() {
            true => self.infix(text, level, left, right),
            false => self.infix(text, level, left, &right.clone().cast(left.dtype())),
        }
    }

    fn named_call(&self, name: &str, left: &Expr, right: &Expr) -> (String, Level) {
        (format!("T.{name}({}, {})", self.expr(left), self.expr(right)), Level::Atom)
    }

    fn infix(&self, text: &str, level: Level, left: &Expr, right: &Expr) -> (String, Level) {
        let both_constant = left.as_int().is_some() && right.as_int().is_some();
        // Python would evaluate an operation on two plain numbers itself, and would chain comparisons without
        // parentheses.
        let left_level = if level == Level::Compare { level.tighter() } else { level };
        let left = if both_constant { typed(left) } else { self.within(left, left_level) };
        (format!("{left} {text} {}", self.within(right, level.tighter())), level)
    }
}

/// Formats a constant with its dtype.
fn typed(expr: &Expr) -> String {
    match expr {
        Expr::Int { value, dtype } if dtype.is_bool() => {
            format!("T.bool({})", if *value == 0 { "False" } else { "True" })
        }
        Expr::Int { value, dtype } if *dtype == DType::UINT64 => format!("T.uint64({})", *value as u64),
        Expr::Int { value, dtype } => format!("T.{dtype}({value})"),
        Expr::Float { value, dtype } => format!("T.{dtype}({})", float(*value)),
        _ => String::new(),
    }
}

/// Formats a float so that it reads back as the same value.
fn float(value: f64) -> String {
    match value {
        value if value.is_nan() => quoted("nan"),
        value if value.is_infinite() => quoted(if value > 0.0 { "inf" } else { "-inf" }),
        value => format!("{value:?}"),
    }
}

fn compare_text(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    }
}
