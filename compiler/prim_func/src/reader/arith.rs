//! Arithmetic: Python's rules for Python numbers, TVM's for scalars (TVM `src/tirx/op/op.cc`).

use super::value::Value;
use super::{Outcome, Reader};
use rx_base::dtype::TypeCode;
use rx_base::{Code, DType};
use rx_syntax::At;
use rx_syntax::ast;
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, UnaryOp};

impl Reader<'_> {
    /// Evaluates `a op b`. Two Python numbers are folded if [`python_infix`] can; otherwise the operation becomes a
    /// part of the IR. There, `**`, `@`, and `/` without a float operand are errors.
    pub(super) fn infix(&mut self, at: At<'_>, op: ast::BinaryOp, a: Value, b: Value) -> Outcome<Value> {
        if let Some(folded) = python_infix(op, &a, &b) {
            return Ok(folded);
        }
        let op = match op {
            ast::BinaryOp::Add => BinaryOp::Add,
            ast::BinaryOp::Sub => BinaryOp::Sub,
            ast::BinaryOp::Mul => BinaryOp::Mul,
            ast::BinaryOp::Div => BinaryOp::Div,
            ast::BinaryOp::FloorDiv => BinaryOp::FloorDiv,
            ast::BinaryOp::Mod => BinaryOp::FloorMod,
            ast::BinaryOp::LeftShift => BinaryOp::ShiftLeft,
            ast::BinaryOp::RightShift => BinaryOp::ShiftRight,
            ast::BinaryOp::BitAnd => BinaryOp::BitAnd,
            ast::BinaryOp::BitOr => BinaryOp::BitOr,
            ast::BinaryOp::BitXor => BinaryOp::BitXor,
            ast::BinaryOp::Pow => return self.unsupported(at, "`**` of scalars; write `T.pow`"),
            ast::BinaryOp::MatMul => return self.unsupported(at, "`@` of scalars"),
        };
        let (a, b) = (self.scalar(at, a)?, self.scalar(at, b)?);
        if op == BinaryOp::Div && !a.dtype().is_float() && !b.dtype().is_float() {
            let message = format!(
                "`/` requires a float; found {} and {}: write `//`, `T.truncdiv` or a cast",
                a.dtype(),
                b.dtype()
            );
            return self.mistake(at, Code::DtypeMismatch, message);
        }
        self.binary(at, op, a, b).map(Value::Expr)
    }

    /// Builds `op(a, b)` after promoting the operands to one dtype.
    pub(super) fn binary(&mut self, at: At<'_>, op: BinaryOp, a: Expr, b: Expr) -> Outcome<Expr> {
        let (a, b) = self.promoted(at, a, b)?;
        use BinaryOp::{And, BitAnd, BitOr, BitXor, FloorDiv, FloorMod, Or, ShiftLeft, ShiftRight, TruncDiv, TruncMod};
        let dtype = a.dtype();
        // `R.mod` of floats is lowered in the same way.
        if op == TruncMod && dtype.is_float() {
            return Ok(Expr::call(Intrinsic::Fmod, vec![a, b]));
        }
        let wanted = match op {
            And | Or if !dtype.is_bool() => "bool operands",
            FloorDiv | FloorMod if dtype.is_float() => "integers, or `T.floor(a / b)` and `T.fmod` for floats",
            ShiftLeft | ShiftRight | TruncDiv | TruncMod if !dtype.is_int() => "integers",
            BitAnd | BitOr | BitXor if !dtype.is_int() && !dtype.is_bool() => "integers",
            _ => "",
        };
        if !wanted.is_empty() {
            let message = format!("the operator requires {wanted}; found {dtype}");
            return self.mistake(at, Code::DtypeMismatch, message);
        }
        Ok(Expr::Binary { op, left: Box::new(a), right: Box::new(b) })
    }

    /// Evaluates the chain `first op second op third …` as the conjunction of the comparisons of neighbours.
    pub(super) fn comparison(
        &mut self,
        at: At<'_>,
        first: Value,
        rest: Vec<(ast::CompareOp, Value)>,
    ) -> Outcome<Value> {
        let mut left = first;
        let mut all: Option<Value> = None;
        for (op, right) in rest {
            let pair = self.compare(at, op, left, right.clone())?;
            all = Some(match all {
                None => pair,
                Some(before) => self.both(at, BinaryOp::And, before, pair)?,
            });
            left = right;
        }
        Ok(all.unwrap_or(Value::Bool(true)))
    }

    fn compare(&mut self, at: At<'_>, op: ast::CompareOp, a: Value, b: Value) -> Outcome<Value> {
        if let (ast::CompareOp::Is | ast::CompareOp::IsNot, Value::Nothing) = (op, &b) {
            return Ok(Value::Bool(matches!(a, Value::Nothing) == (op == ast::CompareOp::Is)));
        }
        let op = match op {
            ast::CompareOp::Eq => CompareOp::Eq,
            ast::CompareOp::Ne => CompareOp::Ne,
            ast::CompareOp::Lt => CompareOp::Lt,
            ast::CompareOp::Le => CompareOp::Le,
            ast::CompareOp::Gt => CompareOp::Gt,
            ast::CompareOp::Ge => CompareOp::Ge,
            _ => return self.unsupported(at, "`is` and `in` in a prim_func"),
        };
        if let (Some(a), Some(b)) = (number(&a), number(&b)) {
            return Ok(Value::Bool(op.holds(a, b)));
        }
        // A Python number that is compared with an expression of the IR takes its dtype (TVM
        // `tirx/script/parser/operation.py`).
        let (a, b) = match (a, b) {
            (Value::Expr(a), b) if is_number(&b) => {
                let b = self.constant(at, a.dtype(), &b)?;
                (a, b)
            }
            (a, Value::Expr(b)) if is_number(&a) => (self.constant(at, b.dtype(), &a)?, b),
            (a, b) => (self.scalar(at, a)?, self.scalar(at, b)?),
        };
        self.compared(at, op, a, b).map(Value::Expr)
    }

    /// Builds the comparison `op(a, b)` after promoting the operands to one dtype.
    pub(super) fn compared(&mut self, at: At<'_>, op: CompareOp, a: Expr, b: Expr) -> Outcome<Expr> {
        let (a, b) = self.promoted(at, a, b)?;
        Ok(Expr::Compare { op, left: Box::new(a), right: Box::new(b) })
    }

    /// Evaluates `a and b` or `a or b`.
    pub(super) fn both(&mut self, at: At<'_>, op: BinaryOp, a: Value, b: Value) -> Outcome<Value> {
        if let (Value::Bool(a), Value::Bool(b)) = (&a, &b) {
            return Ok(Value::Bool(if op == BinaryOp::And { *a && *b } else { *a || *b }));
        }
        let (a, b) = (self.truth(at, a)?, self.truth(at, b)?);
        self.binary(at, op, a, b).map(Value::Expr)
    }

    /// Evaluates a unary operator.
    pub(super) fn prefix(&mut self, at: At<'_>, op: ast::UnaryOp, value: Value) -> Outcome<Value> {
        let folded = match (op, &value) {
            (ast::UnaryOp::Pos, _) => Some(value.clone()),
            (ast::UnaryOp::Neg, Value::Int(value)) => value.checked_neg().map(Value::Int),
            (ast::UnaryOp::Neg, Value::Float(value)) => Some(Value::Float(-value)),
            (ast::UnaryOp::Invert, Value::Int(value)) => Some(Value::Int(!value)),
            (ast::UnaryOp::Not, Value::Bool(value)) => Some(Value::Bool(!value)),
            _ => None,
        };
        if let Some(folded) = folded {
            return Ok(folded);
        }
        let (op, value) = match op {
            ast::UnaryOp::Not => (UnaryOp::Not, self.truth(at, value)?),
            ast::UnaryOp::Invert => (UnaryOp::BitNot, self.scalar(at, value)?),
            _ => (UnaryOp::Neg, self.scalar(at, value)?),
        };
        self.unary(at, op, value).map(Value::Expr)
    }

    /// Builds `op(value)`.
    pub(super) fn unary(&mut self, at: At<'_>, op: UnaryOp, value: Expr) -> Outcome<Expr> {
        if op == UnaryOp::BitNot && !value.dtype().is_int() {
            let message = format!("`~` requires an integer; found {}", value.dtype());
            return self.mistake(at, Code::DtypeMismatch, message);
        }
        Ok(Expr::Unary { op, value: Box::new(value) })
    }

    /// Converts two operands to the dtype to which TVM promotes them. Most integer constants need no cast.
    pub(super) fn promoted(&mut self, at: At<'_>, a: Expr, b: Expr) -> Outcome<(Expr, Expr)> {
        match promote(a.dtype(), b.dtype()) {
            Some(dtype) => Ok((a.cast(dtype), b.cast(dtype))),
            None => {
                let message = format!("operands of {} and {} cannot be combined", a.dtype(), b.dtype());
                self.mistake(at, Code::DtypeMismatch, message)
            }
        }
    }
}

/// Returns the dtype to which TVM promotes two operands (`PromoteBinaryOpType`); `None` if they cannot be combined.
pub(super) fn promote(a: DType, b: DType) -> Option<DType> {
    if a == b {
        return Some(a);
    }
    let is_scalar = |dtype: DType| dtype.lanes == 1 && !matches!(dtype.code, TypeCode::Handle | TypeCode::Custom);
    if !is_scalar(a) || !is_scalar(b) {
        return None;
    }
    let wider = |a: DType, b: DType| if a.bits < b.bits { b } else { a };
    let ieee = |dtype: DType| dtype.code == TypeCode::Float;
    Some(match () {
        () if ieee(a) && ieee(b) => wider(a, b),
        () if ieee(a) => a,
        () if ieee(b) => b,
        // Among the other floats the wider one has priority: bfloat16, then 8, 6 and 4 bits.
        () if a.is_float() && b.is_float() => wider(a, b),
        () if a.is_float() => a,
        () if b.is_float() => b,
        () if a.is_bool() => b,
        () if b.is_bool() => a,
        () if a.code == b.code => wider(a, b),
        () if a.bits != b.bits => wider(a, b),
        () if a.code == TypeCode::UInt => a,
        () => b,
    })
}

/// Whether a value is a Python number: an `int`, `float` or `bool`.
pub(super) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        _ => None,
    }
}

/// Evaluates Python arithmetic on two numbers. `None` if an operand is not a number or the operation is not folded, for
/// example if its result is undefined or too large, or for a shift of integers by 64 or more.
fn python_infix(op: ast::BinaryOp, a: &Value, b: &Value) -> Option<Value> {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        let (a, b) = (*a, *b);
        let floor_div = |a: i128, b: i128| {
            let quotient = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
        };
        let shift = u32::try_from(b).ok().filter(|by| *by < 64);
        return match op {
            ast::BinaryOp::Add => a.checked_add(b),
            ast::BinaryOp::Sub => a.checked_sub(b),
            ast::BinaryOp::Mul => a.checked_mul(b),
            ast::BinaryOp::FloorDiv => floor_div(a, b),
            ast::BinaryOp::Mod => a.checked_sub(floor_div(a, b)?.checked_mul(b)?),
            ast::BinaryOp::LeftShift => a.checked_mul(1i128 << shift?),
            ast::BinaryOp::RightShift => Some(a >> shift?),
            ast::BinaryOp::BitAnd => Some(a & b),
            ast::BinaryOp::BitOr => Some(a | b),
            ast::BinaryOp::BitXor => Some(a ^ b),
            ast::BinaryOp::Pow => a.checked_pow(u32::try_from(b).ok()?),
            ast::BinaryOp::Div => return (b != 0).then(|| Value::Float(a as f64 / b as f64)),
            ast::BinaryOp::MatMul => None,
        }
        .map(Value::Int);
    }
    let (a, b) = (number(a)?, number(b)?);
    let value = match op {
        ast::BinaryOp::Add => a + b,
        ast::BinaryOp::Sub => a - b,
        ast::BinaryOp::Mul => a * b,
        ast::BinaryOp::Div if b != 0.0 => a / b,
        ast::BinaryOp::FloorDiv if b != 0.0 => (a / b).floor(),
        ast::BinaryOp::Mod if b != 0.0 => a - (a / b).floor() * b,
        ast::BinaryOp::Pow => a.powf(b),
        _ => return None,
    };
    Some(Value::Float(value))
}
