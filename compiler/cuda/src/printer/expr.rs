//! Prints expressions, mainly with the parentheses that C's precedence or readability requires.

use super::text::check_number;
use super::{BufferText, Kernel, rounding, stmt, types};
use crate::source::Check;
use rx_base::DType;
use rx_tir::{BinaryOp, BufferId, CompareOp, Expr, UnaryOp, VarId};

/// The precedences of C's operators, from loosest to tightest.
pub(crate) const CONDITIONAL: u8 = 1;
pub(crate) const OR: u8 = 2;
pub(crate) const AND: u8 = 3;
pub(crate) const BIT_OR: u8 = 4;
pub(crate) const BIT_XOR: u8 = 5;
pub(crate) const BIT_AND: u8 = 6;
pub(crate) const EQUALITY: u8 = 7;
pub(crate) const RELATION: u8 = 8;
pub(crate) const SUM: u8 = 10;
pub(crate) const PRODUCT: u8 = 11;
pub(crate) const UNARY: u8 = 12;
pub(crate) const POSTFIX: u8 = 13;

/// A text and the precedence of its outermost operator.
pub(crate) type Bound = (String, u8);

impl Kernel<'_> {
    /// Prints an expression, in parentheses if its precedence is lower than `level`. For example, `a + b` at
    /// [`PRODUCT`] is `(a + b)`.
    pub(crate) fn operand(&mut self, expr: &Expr, level: u8) -> Result<String, String> {
        let (text, binds) = self.expr(expr)?;
        Ok(if binds < level { format!("({text})") } else { text })
    }

    pub(crate) fn expr(&mut self, expr: &Expr) -> Result<Bound, String> {
        let outside = self.is_deciding;
        self.is_deciding |= rounding::decides(expr);
        let bound = self.by_kind(expr);
        self.is_deciding = outside;
        bound
    }

    fn by_kind(&mut self, expr: &Expr) -> Result<Bound, String> {
        match expr {
            Expr::Int { value, dtype } => self.integer(*value, *dtype),
            Expr::Float { value, dtype } => self.float(*value, *dtype),
            Expr::Var { var, .. } => Ok((self.var(*var)?, POSTFIX)),
            Expr::Load { buffer, indices, dtype } => {
                if let Some(held) = self.held.get(buffer) {
                    return Ok((held.clone(), POSTFIX));
                }
                let place = self.place(*buffer, indices)?;
                Ok((types::from_storage(*dtype, &place), POSTFIX))
            }
            Expr::Cast { dtype, value } => self.cast(*dtype, value),
            Expr::Unary { op, value } => self.unary(*op, value),
            Expr::Binary { op, left, right } => self.binary(*op, left, right),
            Expr::Compare { op, left, right } => {
                let (symbol, level) = match op {
                    CompareOp::Eq => ("==", EQUALITY),
                    CompareOp::Ne => ("!=", EQUALITY),
                    CompareOp::Lt => ("<", RELATION),
                    CompareOp::Le => ("<=", RELATION),
                    CompareOp::Gt => (">", RELATION),
                    CompareOp::Ge => (">=", RELATION),
                };
                let (left, right) = (self.operand(left, level + 1)?, self.operand(right, level + 1)?);
                Ok((format!("{left} {symbol} {right}"), level))
            }
            Expr::Select { condition, then, otherwise } => {
                let condition = self.operand(condition, CONDITIONAL + 1)?;
                let (then, otherwise) = (self.operand(then, CONDITIONAL + 1)?, self.operand(otherwise, CONDITIONAL)?);
                Ok((format!("{condition} ? {then} : {otherwise}"), CONDITIONAL))
            }
            Expr::Call { function, dtype, args } => self.call(*function, *dtype, args),
            Expr::Checked { index, extent, buffer, axis, site } => {
                let check = Check::Index { buffer: self.func.buffer(*buffer).name, axis: *axis };
                let number = check_number(self.sites.number(*site, check));
                let helper = if self.is_cooperative { "rx_check_on" } else { "rx_check" };
                self.need(helper);
                self.uses_error = true;
                let dtype = index.dtype();
                let (index, extent) = (self.operand(index, 0)?, self.operand(extent, 0)?);
                let call = format!("{helper}({index}, {extent}, {number}, rx_error)");
                match dtype {
                    DType::INT64 => Ok((call, POSTFIX)),
                    narrower => Ok((format!("({}){call}", self.ctype(narrower)?), UNARY)),
                }
            }
        }
    }

    fn integer(&self, value: i64, dtype: DType) -> Result<Bound, String> {
        self.ctype(dtype)?;
        let text = match dtype {
            _ if dtype.is_bool() => return Ok(((value != 0).to_string(), POSTFIX)),
            DType::UINT64 => format!("{}ULL", value.cast_unsigned()),
            DType::UINT32 => format!("{value}U"),
            _ if value == i64::MIN => return Ok(("(-9223372036854775807LL - 1)".to_owned(), POSTFIX)),
            _ if value == i64::from(i32::MIN) => return Ok(("(-2147483647 - 1)".to_owned(), POSTFIX)),
            _ if i32::try_from(value).is_err() => format!("{value}LL"),
            _ => value.to_string(),
        };
        Ok((text, if value < 0 { UNARY } else { POSTFIX }))
    }

    fn float(&mut self, value: f64, dtype: DType) -> Result<Bound, String> {
        self.ctype(dtype)?;
        let value = rx_tensor::round(value, dtype);
        if let Some(text) = types::float_literal(value, dtype) {
            return Ok((text, if value.is_sign_negative() { UNARY } else { POSTFIX }));
        }
        let name = if value.is_nan() { "RX_NAN" } else { "RX_INFINITY" };
        self.need(name);
        match (value < 0.0, types::is_single(dtype)) {
            (false, true) => Ok((name.to_owned(), POSTFIX)),
            (true, true) => Ok((format!("-{name}"), UNARY)),
            (false, false) => Ok((format!("(double){name}"), UNARY)),
            (true, false) => Ok((format!("-(double){name}"), UNARY)),
        }
    }

    /// Prints the access to an element: `name[offset]`, with the row-major offset.
    pub(crate) fn place(&mut self, id: BufferId, indices: &[Expr]) -> Result<String, String> {
        let known = self.buffers.get(&id).cloned();
        let buffer = match known {
            Some(buffer) => buffer,
            None => self.global_buffer(id).ok_or_else(|| self.no_such_buffer(id))?,
        };
        let BufferText { name, shape } = buffer;
        // A 32-bit offset may overflow unless the buffer is known to have at most 2³¹ - 1 elements.
        let elements = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(extent.as_int()?));
        let fits = elements.is_some_and(|elements| elements <= i64::from(i32::MAX)) || shape.len() == 1;
        let mut offset: Option<Bound> = None;
        for (index, extent) in indices.iter().zip(&shape) {
            // A first index of 64 bits makes C compute the rest of the offset in 64 bits.
            offset = match (offset, index.as_int()) {
                (None, Some(0)) => None,
                (None, Some(number)) if !fits => Some((format!("{number}LL"), POSTFIX)),
                (None, _) if fits || index.dtype().bits == 64 => Some(self.expr(index)?),
                (None, _) => Some(self.expr(&Expr::Cast { dtype: DType::INT64, value: Box::new(index.clone()) })?),
                (Some(rows), _) => Some(self.next_offset(rows, index, extent)?),
            };
        }
        Ok(format!("{name}[{}]", offset.map_or("0".to_owned(), |(text, _)| text)))
    }

    /// Prints `rows * extent + index`: the offset extended by the next axis.
    fn next_offset(&mut self, (rows, binds): Bound, index: &Expr, extent: &Expr) -> Result<Bound, String> {
        let (mut text, mut binds) = match extent.as_int() {
            Some(1) => (rows, binds),
            _ => {
                let rows = if binds < PRODUCT { format!("({rows})") } else { rows };
                (format!("{rows} * {}", self.operand(extent, PRODUCT + 1)?), PRODUCT)
            }
        };
        if index.as_int() != Some(0) {
            let text_before = if binds < SUM { format!("({text})") } else { text };
            text = format!("{text_before} + {}", self.operand(index, SUM)?);
            binds = SUM;
        }
        Ok((text, binds))
    }

    fn no_such_buffer(&self, id: BufferId) -> String {
        let buffer = self.func.buffer(id);
        match types::storage(buffer.dtype) {
            Some(_) => format!("requires buffers that are parameters or allocated; found `{}`", buffer.name),
            None => format!("requires a dtype that has a CUDA type; found `{}` of {}", buffer.name, buffer.dtype),
        }
    }

    /// Prints a conversion. Between floats that C computes as `float` only the rounding remains.
    fn cast(&mut self, to: DType, value: &Expr) -> Result<Bound, String> {
        let from = value.dtype();
        let ctype = self.ctype(to)?;
        self.ctype(from)?;
        if to.is_bool() {
            let text = self.operand(value, EQUALITY + 1)?;
            return Ok((if from.is_bool() { text } else { format!("{text} != 0") }, EQUALITY));
        }
        if types::helper(to).is_some() {
            self.need_storage(to);
            let text = self.before_rounding(to, value)?;
            return Ok((types::rounded(to, &text), POSTFIX));
        }
        if types::value(from) == Some(ctype) {
            return self.expr(value);
        }
        if from.is_float() && to.is_int() {
            self.need("rx_to_integer");
            return Ok((format!("rx_to_integer<{ctype}>({})", self.operand(value, 0)?), POSTFIX));
        }
        Ok((format!("({ctype}){}", self.operand(value, UNARY)?), UNARY))
    }

    /// Prints a value as the `float` that is then rounded to `to`, a float dtype of less than 32 bits. If the conversion
    /// to `float` may change the value, it rounds to odd: rounding to nearest twice could give the wrong neighbor.
    fn before_rounding(&mut self, to: DType, value: &Expr) -> Result<String, String> {
        let from = value.dtype();
        if types::is_single(from) {
            return self.operand(value, 0);
        }
        if from == DType::FLOAT64 {
            self.need("rx_double_to_odd");
            return Ok(format!("rx_double_to_odd({})", self.operand(value, 0)?));
        }
        // Integers of more than 24 bits are beyond the range of the other dtypes.
        if to == DType::BFLOAT16 && from.is_int() && from.bits >= 32 {
            self.need("rx_integer_to_odd");
            let ctype = self.ctype(from)?;
            return Ok(format!("rx_integer_to_odd<{ctype}>({})", self.operand(value, 0)?));
        }
        Ok(format!("(float){}", self.operand(value, UNARY)?))
    }

    fn unary(&mut self, op: UnaryOp, value: &Expr) -> Result<Bound, String> {
        let dtype = value.dtype();
        let ctype = self.ctype(dtype)?;
        let is_narrow = dtype.is_int() && dtype.bits < 32;
        match op {
            UnaryOp::Not => Ok((format!("!{}", self.operand(value, UNARY)?), UNARY)),
            UnaryOp::Neg if dtype.is_int() && !is_narrow && dtype.code == rx_base::dtype::TypeCode::Int => {
                let zero = Expr::Int { value: 0, dtype };
                self.binary(BinaryOp::Sub, &zero, value)
            }
            UnaryOp::Neg | UnaryOp::BitNot => {
                let symbol = if op == UnaryOp::Neg { '-' } else { '~' };
                // `-` before a text that begins with `-` would be the operator `--`.
                let (text, binds) = self.expr(value)?;
                let text = if binds < POSTFIX { format!("({text})") } else { text };
                let text = format!("{symbol}{text}");
                Ok((if is_narrow { format!("({ctype}){text}") } else { text }, UNARY))
            }
        }
    }

    /// Whether a value is nonnegative, as far as the variables are known. Assumes that index arithmetic does not
    /// overflow.
    pub(super) fn is_natural(&self, expr: &Expr) -> bool {
        if expr.dtype().code == rx_base::dtype::TypeCode::UInt {
            return true;
        }
        match expr {
            Expr::Int { value, .. } => *value >= 0,
            Expr::Var { var, .. } => self.natural.contains(var),
            Expr::Cast { value, .. } => {
                let (from, to) = (value.dtype(), expr.dtype());
                // Half of the unsigned values of the same width are negative as signed ones.
                let fits = to.bits > from.bits || to.bits == from.bits && from.code == to.code;
                from.is_int() && fits && self.is_natural(value)
            }
            Expr::Checked { .. } => true,
            Expr::Select { then, otherwise, .. } => self.is_natural(then) && self.is_natural(otherwise),
            Expr::Binary { op, left, right } => {
                let (a, b) = (self.is_natural(left), self.is_natural(right));
                match op {
                    BinaryOp::Max => a || b,
                    BinaryOp::FloorMod => b,
                    BinaryOp::TruncMod | BinaryOp::ShiftRight => a,
                    BinaryOp::Add
                    | BinaryOp::Mul
                    | BinaryOp::Div
                    | BinaryOp::TruncDiv
                    | BinaryOp::FloorDiv
                    | BinaryOp::Min => a && b && !stmt::is_data(&[left, right], self),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Whether a variable is a scalar argument or a symbol, and is not the extent of a buffer parameter.
    pub(super) fn is_free_scalar(&self, var: VarId) -> bool {
        !self.symbols.contains(&var)
            && (self.func.scalar_params().any(|one| one == var) || self.func.symbols.contains(&var))
    }
}
