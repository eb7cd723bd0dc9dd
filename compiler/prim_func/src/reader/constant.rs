//! Converts [`Value`]s to scalar expressions, and Python numbers to constants of a dtype.

use super::value::Value;
use super::{Outcome, Reader};
use rx_base::dtype::TypeCode;
use rx_base::{Code, DType};
use rx_syntax::ast::Expr as Tree;
use rx_syntax::{At, Cursor};
use rx_tir::Expr;

impl Reader<'_> {
    /// Converts a value to a scalar. Python integers become `int32`, or `int64` if they do not fit; Python floats
    /// become `float32`.
    pub(super) fn scalar(&mut self, at: At<'_>, value: Value) -> Outcome<Expr> {
        let dtype = match &value {
            Value::Expr(expr) => return Ok(expr.clone()),
            Value::Cell(buffer) => return Ok(self.func.load(*buffer, vec![Expr::int(0).cast(DType::INT32)])),
            Value::Buffer(view) if view.shape.is_empty() => {
                let (buffer, indices) = view.element(Vec::new());
                return Ok(self.func.load(buffer, indices));
            }
            Value::Int(number) if i32::try_from(*number).is_ok() => DType::INT32,
            Value::Int(_) => DType::INT64,
            Value::Float(_) => DType::FLOAT32,
            Value::Bool(_) => DType::BOOL,
            Value::Handle(_) | Value::Pointer(_) => return self.unsupported(at, "pointers as values"),
            other => {
                let subject = describe(other);
                return self.mistake(at, Code::ArgumentType, format!("a scalar is required; found {subject}"));
            }
        };
        self.constant(at, dtype, &value)
    }

    /// Returns the scalar value of an expression.
    pub(super) fn scalar_of(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Expr> {
        let value = self.value(cursor, tree)?;
        self.scalar(cursor.at(tree.tokens), value)
    }

    /// Returns the value of an expression converted to `dtype`.
    pub(super) fn scalar_as(&mut self, cursor: Cursor<'_>, tree: &Tree, dtype: DType) -> Outcome<Expr> {
        let value = self.value(cursor, tree)?;
        self.converted(cursor.at(tree.tokens), value, dtype)
    }

    /// Converts a value to `dtype`. Python numbers become constants of that dtype.
    pub(super) fn converted(&mut self, at: At<'_>, value: Value, dtype: DType) -> Outcome<Expr> {
        match &value {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => self.constant(at, dtype, &value),
            _ => Ok(self.scalar(at, value)?.cast(dtype)),
        }
    }

    /// Converts a bool or an integer to a condition. An integer holds if it is not 0.
    pub(super) fn truth(&mut self, at: At<'_>, value: Value) -> Outcome<Expr> {
        let scalar = self.scalar(at, value)?;
        if !scalar.dtype().is_bool() && !scalar.dtype().is_int() {
            let message = format!("a condition must be a bool or an integer; found {}", scalar.dtype());
            return self.mistake(at, Code::ConditionType, message);
        }
        Ok(scalar.cast(DType::BOOL))
    }

    /// Returns the value of an expression as a condition.
    pub(super) fn truth_of(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Expr> {
        let value = self.value(cursor, tree)?;
        self.truth(cursor.at(tree.tokens), value)
    }

    /// Returns the value of an expression, which must be an integer.
    pub(super) fn integer_of(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Expr> {
        let scalar = self.scalar_of(cursor, tree)?;
        self.integer(cursor.at(tree.tokens), scalar)
    }

    /// Checks that a scalar is an integer; a `bool` becomes an `int32`.
    pub(super) fn integer(&mut self, at: At<'_>, scalar: Expr) -> Outcome<Expr> {
        match scalar.dtype() {
            dtype if dtype.is_int() => Ok(scalar),
            dtype if dtype.is_bool() => Ok(scalar.cast(DType::INT32)),
            dtype => {
                self.mistake(at, Code::IndexDtype, format!("an index or extent must be an integer; found {dtype}"))
            }
        }
    }

    /// Converts a Python number, or for a float dtype the text of a number (`"inf"`, `"nan"`, `"1.5"`), to a constant.
    pub(super) fn constant(&mut self, at: At<'_>, dtype: DType, value: &Value) -> Outcome<Expr> {
        if dtype.lanes != 1 {
            return self.unsupported(at, &format!("vectors of {dtype}"));
        }
        let made = match value {
            Value::Int(number) => integer_constant(*number, dtype),
            Value::Bool(truth) => integer_constant(i128::from(*truth), dtype),
            Value::Float(number) if dtype.is_float() => float_constant(*number, dtype),
            Value::Float(number) => integer_constant(*number as i128, dtype),
            Value::Text(text) if dtype.is_float() => match text.trim_start_matches('+') {
                "inf" | "infinity" => Some(Expr::Float { value: f64::INFINITY, dtype }),
                "-inf" | "-infinity" => Some(Expr::Float { value: f64::NEG_INFINITY, dtype }),
                "nan" => Some(Expr::Float { value: f64::NAN, dtype }),
                other => other.parse().ok().and_then(|value| float_constant(value, dtype)),
            },
            _ => None,
        };
        match made {
            Some(made) => Ok(made),
            None => {
                let message = format!("{} is not a value of {dtype}", describe(value));
                self.mistake(at, Code::DtypeMismatch, message)
            }
        }
    }
}

/// Returns the largest finite value of a float dtype; `None` if TVM does not check the range of its constants.
pub(super) fn largest(dtype: DType) -> Option<f64> {
    Some(match (dtype.code, dtype.bits) {
        (TypeCode::Float, 64) => f64::MAX,
        (TypeCode::Float, 32) => f64::from(f32::MAX),
        (TypeCode::Float, 16) => 65504.0,
        (TypeCode::BFloat, _) => f64::from(f32::from_bits(0x7f7f_0000)),
        (TypeCode::Float8E4M3Fn, _) => 448.0,
        (TypeCode::Float8E5M2, _) => 57344.0,
        _ => return None,
    })
}

/// Returns the constant of a float dtype; `None` if the value is finite and its magnitude exceeds the [`largest`] (TVM
/// `FloatImm` in `src/ir/expr.cc`).
pub(super) fn float_constant(value: f64, dtype: DType) -> Option<Expr> {
    let is_beyond = value.is_finite() && largest(dtype).is_some_and(|largest| value.abs() > largest);
    (!is_beyond).then_some(Expr::Float { value, dtype })
}

/// Returns the integer as a constant of an integer, `bool` or float dtype; `None` for another dtype, or if the integer
/// is out of the dtype's range. For a float dtype, [`float_constant`] checks the range.
pub(super) fn integer_constant(value: i128, dtype: DType) -> Option<Expr> {
    if dtype.is_float() {
        return float_constant(value as f64, dtype);
    }
    if dtype.is_bool() {
        return (0..=1).contains(&value).then(|| Expr::bool(value != 0));
    }
    let bits = u32::from(dtype.bits).clamp(1, 64);
    let (lowest, highest) = match dtype.code {
        TypeCode::Int => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        TypeCode::UInt => (0, (1i128 << bits) - 1),
        _ => return None,
    };
    // A `uint64` that exceeds `int64` keeps its bit pattern.
    (lowest..=highest).contains(&value).then_some(Expr::Int { value: value as i64, dtype })
}

/// Describes a value in words, for error messages.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Int(number) => format!("{number}"),
        Value::Float(number) => format!("{number}"),
        Value::Bool(truth) => (if *truth { "True" } else { "False" }).to_owned(),
        Value::Text(text) => format!("the string {text:?}"),
        Value::DType(dtype) => format!("the dtype {dtype}"),
        Value::Expr(expr) => format!("a scalar of {}", expr.dtype()),
        Value::Buffer(_) => "a buffer".to_owned(),
        Value::Cell(_) => "a variable".to_owned(),
        Value::Pointer(_) => "a pointer".to_owned(),
        Value::Many(_) => "a list".to_owned(),
        Value::Thread(_) => "a thread axis".to_owned(),
        Value::Macro(_) => "a macro".to_owned(),
        Value::Handle(_) => "a handle".to_owned(),
        Value::Nothing => "no value".to_owned(),
    }
}
