//! Builds symbolic dims from integer expressions: Python's operators and the functions of `T`.
//!
//! Bodies of Relax functions, buffer shapes of prim_funcs and shapes in strings all build their dims here. So equal
//! expressions are equal dims, regardless of where they occur. For example, `n << 2` and `T.shift_left(n, 2)` both
//! are `n * 4`.

use crate::functions;
use rx_base::name::name;
use rx_base::symbolic::{Bounds, prove};
use rx_base::{DType, Dim};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, BinaryOp, BoolOp, CompareOp, Expr};

/// Returns the dim `a op b`; [`Dim::ERROR`] for `@`.
pub fn binary(op: BinaryOp, a: &Dim, b: &Dim) -> Dim {
    let opaque = |function: &str| Dim::opaque(name(function), vec![a.clone(), b.clone()]);
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::FloorDiv => a.floor_div(b),
        BinaryOp::Mod => a.floor_mod(b),
        BinaryOp::Div => opaque("T.Div"),
        BinaryOp::LeftShift => match b.as_constant() {
            Some(by @ 0..=62) => a * &Dim::constant(1 << by),
            _ => opaque("T.shift_left"),
        },
        BinaryOp::RightShift => match b.as_constant() {
            Some(by @ 0..=62) => a.floor_div(&Dim::constant(1 << by)),
            _ => opaque("T.shift_right"),
        },
        BinaryOp::BitAnd => opaque("T.bitwise_and"),
        BinaryOp::BitOr => opaque("T.bitwise_or"),
        BinaryOp::BitXor => opaque("T.bitwise_xor"),
        BinaryOp::Pow => match (a.as_constant(), b.as_constant()) {
            (Some(base), Some(exponent)) => {
                let power = u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent));
                power.map_or_else(|| opaque("T.pow"), Dim::constant)
            }
            (None, Some(exponent @ 0..=16)) => (0..exponent).fold(Dim::constant(1), |power, _| &power * a),
            _ => opaque("T.pow"),
        },
        BinaryOp::MatMul => Dim::ERROR,
    }
}

/// Returns the dim of `T.function(arguments)`, with each argument translated by `dim`. A conversion is the value that
/// it converts.
pub fn written_call(
    cursor: Cursor<'_>,
    function: &str,
    arguments: &[Argument],
    mut dim: impl FnMut(&Expr) -> Dim,
) -> Dim {
    let arguments = functions::values(cursor, function, arguments);
    match (function, &*arguments) {
        ("Cast", [_, value]) | ("cast", [value, _]) => dim(&value.value),
        _ => call(function, &arguments.iter().map(|argument| dim(&argument.value)).collect::<Vec<Dim>>()),
    }
}

/// Returns the dim of `T.function(arguments)`. A call without a known arithmetic meaning becomes an opaque term with
/// the function's name; `T.Select`, `T.Div` and `T.Mod` are named `T.if_then_else`, `T.truncdiv` and `T.truncmod`.
pub fn call(function: &str, arguments: &[Dim]) -> Dim {
    if arguments.iter().any(Dim::is_error) {
        return Dim::ERROR;
    }
    match (function, arguments) {
        ("max", [a, b]) => a.maximum(b),
        ("min", [a, b]) => a.minimum(b),
        ("floordiv" | "FloorDiv", [a, b]) => a.floor_div(b),
        ("floormod" | "FloorMod", [a, b]) => a.floor_mod(b),
        // Truncating and flooring division agree for non-negative operands.
        ("truncdiv" | "Div", [a, b]) if is_natural(a) && is_natural(b) => a.floor_div(b),
        ("truncmod" | "Mod", [a, b]) if is_natural(a) && is_natural(b) => a.floor_mod(b),
        ("truncdiv" | "Div", _) => Dim::opaque(name("T.truncdiv"), arguments.to_vec()),
        ("truncmod" | "Mod", _) => Dim::opaque(name("T.truncmod"), arguments.to_vec()),
        ("shift_left", [a, b]) => binary(BinaryOp::LeftShift, a, b),
        ("shift_right", [a, b]) => binary(BinaryOp::RightShift, a, b),
        ("abs", [a]) => a.maximum(&-a),
        ("ceildiv", [a, b]) => (&(a + b) - &Dim::constant(1)).floor_div(b),
        ("prim_value" | "likely", [value]) => value.clone(),
        (dtype, [value]) if DType::parse(dtype).is_some() => value.clone(),
        ("Select", _) => Dim::opaque(name("T.if_then_else"), arguments.to_vec()),
        _ => Dim::opaque(name(&format!("T.{function}")), arguments.to_vec()),
    }
}

/// Whether a dim is provably non-negative. Symbols count as non-negative.
fn is_natural(dim: &Dim) -> bool {
    prove::lower(dim, &Bounds::default()).is_some_and(|low| low >= 0)
}

/// Returns the condition `a op b`. `>` and `>=` become `<` and `<=` with exchanged operands; `is` and `in` become `==`,
/// `is not` and `not in` become `!=`.
pub fn compare(op: CompareOp, a: Dim, b: Dim) -> Dim {
    let (operator, a, b) = match op {
        CompareOp::Lt => ("<", a, b),
        CompareOp::Le => ("<=", a, b),
        CompareOp::Gt => ("<", b, a),
        CompareOp::Ge => ("<=", b, a),
        CompareOp::Ne | CompareOp::IsNot | CompareOp::NotIn => ("!=", a, b),
        CompareOp::Eq | CompareOp::Is | CompareOp::In => ("==", a, b),
    };
    Dim::opaque(name(operator), vec![a, b])
}

/// Returns the condition `a and b` or `a or b`.
pub fn logic(op: BoolOp, operands: Vec<Dim>) -> Dim {
    let operator = match op {
        BoolOp::And => "and",
        BoolOp::Or => "or",
    };
    Dim::opaque(name(operator), operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_of_constants_is_constant() {
        let power = |a, b| binary(BinaryOp::Pow, &Dim::constant(a), &Dim::constant(b));
        assert_eq!(power(2, 20), Dim::constant(1 << 20));
        assert_eq!(power(3, 2), Dim::constant(9));
        assert_eq!(power(2, 64).as_constant(), None);
        let n = Dim::symbol(name("n"));
        assert_eq!(binary(BinaryOp::Pow, &n, &Dim::constant(2)), &n * &n);
    }

    #[test]
    fn the_same_expression_is_the_same_dim_however_written() {
        let (n, zero) = (Dim::symbol(name("n")), Dim::constant(0));
        let clamped = |condition: Dim| call("if_then_else", &[condition, &n + &Dim::constant(16), n.clone()]);
        let a = call("max", &[clamped(compare(CompareOp::Lt, n.clone(), zero.clone())), zero.clone()]);
        let b = call("max", &[zero.clone(), clamped(compare(CompareOp::Gt, zero, n.clone()))]);
        assert_eq!(a, b);
        assert_eq!(call("int64", std::slice::from_ref(&n)), n);
        assert_eq!(binary(BinaryOp::LeftShift, &n, &Dim::constant(2)), &n * &Dim::constant(4));
        assert_eq!(call("shift_left", &[n.clone(), Dim::constant(2)]), &n * &Dim::constant(4));
        assert_eq!(call("truncdiv", &[n.clone(), Dim::constant(2)]), n.floor_div(&Dim::constant(2)));
        let below = &n - &Dim::constant(5);
        assert_ne!(call("truncdiv", &[below.clone(), Dim::constant(2)]), below.floor_div(&Dim::constant(2)));
        assert_eq!(
            clamped(compare(CompareOp::Lt, n.clone(), Dim::constant(0))).to_string(),
            "T.if_then_else(n < 0, n + 16, n)"
        );
    }
}
