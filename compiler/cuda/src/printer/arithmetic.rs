//! Prints binary operations.
//!
//! Index arithmetic, which is over loop variables and extents, mainly uses C's operators, except for floor division and
//! modulo of operands that may be negative. With data, signed integers may overflow and divisors may be zero, so these
//! operations are usually calls of helpers that wrap and check.

use super::expr::{AND, BIT_AND, BIT_OR, BIT_XOR, Bound, OR, POSTFIX, PRODUCT, SUM, UNARY};
use super::{Kernel, stmt, types};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::{BinaryOp, Expr};

impl Kernel<'_> {
    pub(super) fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Bound, String> {
        let dtype = left.dtype();
        match op {
            BinaryOp::And | BinaryOp::Or => return self.logical(op, left, right),
            BinaryOp::Min | BinaryOp::Max => {
                self.need("rx_min");
                let name = if op == BinaryOp::Min { "rx_min" } else { "rx_max" };
                let (a, b) = (self.argument(left)?, self.argument(right)?);
                return Ok((format!("{name}({a}, {b})"), POSTFIX));
            }
            _ => {}
        }
        match dtype.code {
            TypeCode::Int => self.signed(op, left, right),
            TypeCode::UInt => self.unsigned(op, left, right),
            TypeCode::Bool => self.boolean(op, left, right),
            _ => self.floating(op, left, right),
        }
    }

    /// Prints `&&` or `||`. An operand with the other of the two operators is in parentheses.
    fn logical(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Bound, String> {
        let (symbol, level, other) = if op == BinaryOp::And { ("&&", AND, OR) } else { ("||", OR, AND) };
        let mut side = |expr: &Expr, level: u8| {
            let (text, binds) = self.expr(expr)?;
            Ok::<_, String>(if binds < level || binds == other { format!("({text})") } else { text })
        };
        let (left, right) = (side(left, level)?, side(right, level)?);
        Ok((format!("{left} {symbol} {right}"), level))
    }

    /// Prints two operands with C's operator between them.
    fn infix(&mut self, symbol: &str, level: u8, left: &Expr, right: &Expr) -> Result<Bound, String> {
        let (left, right) = (self.operand(left, level)?, self.operand(right, level + 1)?);
        Ok((format!("{left} {symbol} {right}"), level))
    }

    fn floating(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Bound, String> {
        match op {
            BinaryOp::Add => self.float_sum("+", left, right),
            BinaryOp::Sub => self.float_sum("-", left, right),
            BinaryOp::Mul => self.infix("*", PRODUCT, left, right),
            BinaryOp::Div => self.infix("/", PRODUCT, left, right),
            BinaryOp::FloorDiv => {
                let (quotient, _) = self.infix("/", PRODUCT, left, right)?;
                let floor = if types::is_single(left.dtype()) { "floorf" } else { "floor" };
                Ok((format!("{floor}({quotient})"), POSTFIX))
            }
            BinaryOp::FloorMod => {
                self.need("rx_float_mod");
                Ok((format!("rx_float_mod({}, {})", self.operand(left, 0)?, self.operand(right, 0)?), POSTFIX))
            }
            BinaryOp::TruncDiv => {
                let (quotient, _) = self.infix("/", PRODUCT, left, right)?;
                let trunc = if types::is_single(left.dtype()) { "truncf" } else { "trunc" };
                Ok((format!("{trunc}({quotient})"), POSTFIX))
            }
            BinaryOp::TruncMod => {
                let fmod = if types::is_single(left.dtype()) { "fmodf" } else { "fmod" };
                Ok((format!("{fmod}({}, {})", self.operand(left, 0)?, self.operand(right, 0)?), POSTFIX))
            }
            _ => Err(format!("requires an operation that CUDA C has; found {op:?} of {}", left.dtype())),
        }
    }

    fn boolean(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Bound, String> {
        match op {
            BinaryOp::BitAnd => self.infix("&&", AND, left, right).map(parenthesized),
            BinaryOp::BitOr => self.infix("||", OR, left, right).map(parenthesized),
            BinaryOp::BitXor => self.infix("!=", super::expr::EQUALITY, left, right),
            // Booleans add and multiply as integers that are tested for nonzero: `1 + 1` is true.
            BinaryOp::Add => self.infix("||", OR, left, right).map(parenthesized),
            BinaryOp::Mul => self.infix("&&", AND, left, right).map(parenthesized),
            _ => Err(format!("requires an operation that CUDA C has; found {op:?} of bool")),
        }
    }

    fn unsigned(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Bound, String> {
        let dtype = left.dtype();
        let (symbol, level) = match op {
            BinaryOp::Add => ("+", SUM),
            BinaryOp::Sub => ("-", SUM),
            BinaryOp::Mul => ("*", PRODUCT),
            BinaryOp::BitAnd => ("&", BIT_AND),
            BinaryOp::BitOr => ("|", BIT_OR),
            BinaryOp::BitXor => ("^", BIT_XOR),
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => return self.shift(op, left, right),
            BinaryOp::Div | BinaryOp::TruncDiv | BinaryOp::FloorDiv => return self.divide("/", left, right, None),
            BinaryOp::TruncMod | BinaryOp::FloorMod => return self.divide("%", left, right, None),
            BinaryOp::Min | BinaryOp::Max | BinaryOp::And | BinaryOp::Or => {
                return Err(format!("requires an operation that CUDA C has; found {op:?} of {dtype}"));
            }
        };
        if dtype.bits >= 32 {
            return self.infix(symbol, level, left, right);
        }
        // C promotes narrow integers to `int`, in which a product of two 16-bit values may overflow.
        let left = format!("(unsigned){}", self.operand(left, UNARY)?);
        let right = self.operand(right, level + 1)?;
        Ok((format!("({})({left} {symbol} {right})", self.ctype(dtype)?), UNARY))
    }

    fn signed(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Bound, String> {
        let dtype = left.dtype();
        let (symbol, level, wrapping) = match op {
            BinaryOp::Add => ("+", SUM, "rx_add"),
            BinaryOp::Sub => ("-", SUM, "rx_sub"),
            BinaryOp::Mul => ("*", PRODUCT, "rx_mul"),
            BinaryOp::BitAnd => ("&", BIT_AND, ""),
            BinaryOp::BitOr => ("|", BIT_OR, ""),
            BinaryOp::BitXor => ("^", BIT_XOR, ""),
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => return self.shift(op, left, right),
            BinaryOp::Div | BinaryOp::TruncDiv => return self.divide("/", left, right, Some("rx_div")),
            BinaryOp::TruncMod => return self.divide("%", left, right, Some("rx_mod")),
            BinaryOp::FloorDiv => return self.divide("/", left, right, Some("rx_floor_div")),
            BinaryOp::FloorMod => return self.divide("%", left, right, Some("rx_floor_mod")),
            BinaryOp::Min | BinaryOp::Max | BinaryOp::And | BinaryOp::Or => {
                return Err(format!("requires an operation that CUDA C has; found {op:?} of {dtype}"));
            }
        };
        if dtype.bits < 32 {
            let (text, _) = self.infix(symbol, level, left, right)?;
            return Ok((format!("({})({text})", self.ctype(dtype)?), UNARY));
        }
        if wrapping.is_empty() || !stmt::is_data(&[left, right], self) {
            return self.infix(symbol, level, left, right);
        }
        self.need("rx_add");
        Ok((format!("{wrapping}({}, {})", self.argument(left)?, self.argument(right)?), POSTFIX))
    }

    /// Prints an integer division or remainder. It is C's operator if the operands are unsigned or known to be
    /// nonnegative, or if it truncates and does not depend on data; otherwise it is a call of `helper`.
    fn divide(
        &mut self,
        symbol: &str,
        left: &Expr,
        right: &Expr,
        helper: Option<&'static str>,
    ) -> Result<Bound, String> {
        let dtype = left.dtype();
        let is_data = stmt::is_data(&[left, right], self);
        let divisor = self.divisor(right)?;
        let plain = helper.is_none() || self.is_natural(left) && self.is_natural(right);
        let plain = plain || !is_data && matches!(helper, Some("rx_div" | "rx_mod"));
        if plain {
            let left = self.operand(left, PRODUCT)?;
            let text = format!("{left} {symbol} {divisor}");
            let is_narrow = dtype.bits < 32;
            return Ok(if is_narrow { (format!("({})({text})", self.ctype(dtype)?), UNARY) } else { (text, PRODUCT) });
        }
        let helper = helper.unwrap_or("rx_div");
        self.need(if helper.starts_with("rx_floor") { "rx_floor_div" } else { "rx_div" });
        // The explicit template argument is the dtype's C type: C gives literals and narrow integers the type `int`.
        let ctype = self.ctype(dtype)?;
        Ok((format!("{helper}<{ctype}>({}, {divisor})", self.operand(left, 0)?), POSTFIX))
    }

    /// Prints a divisor. It is checked for zero unless it is a nonzero constant or consists of extents of buffer
    /// parameters and positive constants, with `+`, `*`, `min`, `max` and casts.
    fn divisor(&mut self, divisor: &Expr) -> Result<String, String> {
        let of_extents = divisor.all(&|part| match part {
            Expr::Var { var, .. } => self.symbols.contains(var),
            Expr::Int { value, .. } => *value > 0,
            Expr::Cast { .. } => true,
            Expr::Binary { op, .. } => matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Max | BinaryOp::Min),
            _ => false,
        });
        if of_extents || divisor.as_int().is_some_and(|value| value != 0) {
            return self.operand(divisor, PRODUCT + 1);
        }
        let site = self.divisor_site();
        let helper = if self.is_cooperative { "rx_divisor_on" } else { "rx_divisor" };
        self.need(helper);
        let ctype = self.ctype(divisor.dtype())?;
        Ok(format!("{helper}<{ctype}>({}, {site}, rx_error)", self.operand(divisor, 0)?))
    }

    fn shift(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Bound, String> {
        self.need("rx_shift");
        let name = if op == BinaryOp::ShiftLeft { "rx_shift_left" } else { "rx_shift_right" };
        let ctype = self.ctype(left.dtype())?;
        Ok((format!("{name}<{ctype}>({}, {})", self.operand(left, 0)?, self.operand(right, 0)?), POSTFIX))
    }

    /// Prints an argument of an overloaded helper, with the C type of the dtype.
    pub(super) fn argument(&mut self, expr: &Expr) -> Result<String, String> {
        let dtype = expr.dtype();
        let text = self.operand(expr, 0)?;
        match expr {
            Expr::Int { .. } if matches!(dtype, DType::INT32 | DType::UINT32 | DType::UINT64 | DType::BOOL) => Ok(text),
            Expr::Int { value, .. } if dtype == DType::INT64 && *value >= 0 && i32::try_from(*value).is_ok() => {
                Ok(format!("{text}LL"))
            }
            // C gives most literals, and selections of them, the type `int`.
            Expr::Int { .. } | Expr::Select { .. } if dtype.is_int() => Ok(format!("({})({text})", self.ctype(dtype)?)),
            _ => Ok(text),
        }
    }
}

fn parenthesized((text, _): Bound) -> Bound {
    (format!("({text})"), POSTFIX)
}
