//! Conversion of stored values to the dtype of the buffer, as in TVM (`BufferStore` in
//! `src/tirx/script/builder/ir.cc`).
//!
//! - Every value is converted.
//! - TVM rejects constants that are out of the range of the buffer's dtype. They are errors here, too, except float
//!   constants in a buffer of integers (see the next item).
//! - TVM warns if a float becomes an integer. Such a conversion is recorded as `Event::Converted`, from which a warning
//!   is made, unless it is of a constant that the integer dtype represents exactly.

use super::constant::{float_constant, integer_constant};
use super::trace::Event;
use super::value::Value;
use super::{Outcome, Reader};
use rx_base::{Code, DType, Diagnostic};
use rx_syntax::ast::Expr as Tree;
use rx_syntax::{At, Cursor};
use rx_tir::{Expr, UnaryOp};
use std::fmt::Display;

/// A constant in the text before conversion to a dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Constant {
    Int(i128),
    Float(f64),
}

impl Reader<'_> {
    /// Returns the value of an expression that is stored to a buffer of dtype `into`.
    pub(super) fn stored_value_of(&mut self, cursor: Cursor<'_>, tree: &Tree, into: DType) -> Outcome<Expr> {
        let value = self.value(cursor, tree)?;
        self.stored_value(cursor.at(tree.tokens), value, into)
    }

    /// Converts a value that is stored to a buffer of dtype `into`. Records conversions of floats to integers that lose
    /// or may lose information, and constants that TVM refuses.
    pub(super) fn stored_value(&mut self, at: At<'_>, value: Value, into: DType) -> Outcome<Expr> {
        let (from, constant) = match &value {
            Value::Float(number) => (DType::FLOAT32, Some(Constant::Float(*number))),
            Value::Expr(expr) => (expr.dtype(), constant_of(expr)),
            _ => return self.converted(at, value, into),
        };
        // For a Python float, [`Reader::constant`] reports a value that does not fit a float dtype.
        let is_python = matches!(value, Value::Float(_));
        match constant {
            Some(Constant::Int(number)) if from.is_int() && integer_constant(number, into).is_none() => {
                self.note_refused(at, &number, into);
            }
            Some(Constant::Float(number))
                if into.is_float() && from != into && !is_python && float_constant(number, into).is_none() =>
            {
                self.note_refused(at, &number, into);
            }
            Some(Constant::Float(number)) if into.is_int() => {
                if !is_exact(number, into) {
                    self.note_converted(at, from, Some(number), into);
                }
                if !is_in_range(number, into) {
                    return Ok(self.scalar(at, value)?.cast(into));
                }
            }
            None if from.is_float() && into.is_int() => self.note_converted(at, from, None, into),
            _ => {}
        }
        self.converted(at, value, into)
    }

    fn note_converted(&mut self, at: At<'_>, from: DType, constant: Option<f64>, into: DType) {
        self.note(|reader| Event::Converted { from, constant, into, place: reader.place(at) });
    }

    fn note_refused(&mut self, at: At<'_>, number: &dyn Display, into: DType) {
        let message = format!("{number} is not a value of {into}, the dtype of the buffer");
        self.keep_certain(Diagnostic::new(Code::DtypeMismatch, self.place(at), message));
    }
}

/// Returns the constant value of an expression that consists of a literal, signs and casts. `None` if a cast converts a
/// float to an integer, or an integer to an integer dtype that cannot represent it.
fn constant_of(expr: &Expr) -> Option<Constant> {
    match expr {
        // A `uint64` literal is stored as the `int64` with the same bits.
        Expr::Int { value, dtype: DType::UINT64 } => Some(Constant::Int(i128::from(value.cast_unsigned()))),
        Expr::Int { value, .. } => Some(Constant::Int(i128::from(*value))),
        Expr::Float { value, .. } => Some(Constant::Float(*value)),
        Expr::Unary { op: UnaryOp::Neg, value } => match constant_of(value)? {
            Constant::Int(number) => number.checked_neg().map(Constant::Int),
            Constant::Float(number) => Some(Constant::Float(-number)),
        },
        Expr::Cast { dtype, value } => match constant_of(value)? {
            Constant::Int(number) if dtype.is_float() => Some(Constant::Float(number as f64)),
            Constant::Int(number) => integer_constant(number, *dtype).map(|_| Constant::Int(number)),
            Constant::Float(number) if dtype.is_float() => Some(Constant::Float(number)),
            Constant::Float(_) => None,
        },
        _ => None,
    }
}

/// Whether the integer part of a number is representable in an integer dtype.
pub(crate) fn is_in_range(number: f64, dtype: DType) -> bool {
    // Integer dtypes have at most 64 bits, so numbers of magnitude 2^100 or more are out of range. The conversion of
    // smaller ones to `i128` drops the fraction, but does not overflow. The comparison is false for NaN.
    number.abs() < (1i128 << 100) as f64 && integer_constant(number as i128, dtype).is_some()
}

/// Whether a number is exactly representable in an integer dtype.
fn is_exact(number: f64, dtype: DType) -> bool {
    number.fract() == 0.0 && is_in_range(number, dtype)
}

#[cfg(test)]
mod tests {
    use super::{is_exact, is_in_range};
    use rx_base::DType;

    #[test]
    fn is_exact_whole_number_in_range_holds() {
        assert!(is_exact(0.0, DType::INT32) && is_exact(-0.0, DType::UINT8) && is_exact(-3.0, DType::INT8));
        assert!(!is_exact(0.5, DType::INT32) && !is_exact(-1.0, DType::UINT8) && !is_exact(128.0, DType::INT8));
    }

    #[test]
    fn is_in_range_no_number_fails() {
        assert!(is_in_range(127.9, DType::INT8) && !is_in_range(1e20, DType::INT64));
        assert!(![f64::NAN, f64::INFINITY].into_iter().any(|number| is_in_range(number, DType::INT64)));
    }
}
