//! How many arguments the functions of `T` take.

use super::Walk;
use crate::file_context::Namespace;
use rx_base::{Code, counted};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};

/// Functions with the fewest arguments and the most by position (TVM 0.27, `tirx/op.py`; what older releases took besides is
/// let through).
#[rustfmt::skip]
const FUNCTIONS: &[(&str, usize, usize)] = &[
    ("Cast", 2, 3), ("Div", 2, 3), ("Let", 2, 3), ("Range", 1, 3), ("abs", 1, 2), ("acos", 1, 1), ("acosh", 1, 1),
    ("address_of", 1, 2), ("anylist_getitem", 2, 2), ("anylist_resetitem", 2, 2), ("asin", 1, 1), ("asinh", 1, 1),
    ("atan", 1, 1), ("atan2", 2, 2), ("atanh", 1, 1), ("bitwise_and", 2, 3), ("bitwise_not", 1, 2),
    ("bitwise_or", 2, 3), ("bitwise_xor", 2, 3), ("cast", 2, 3), ("ceil", 1, 2), ("ceildiv", 2, 3), ("clz", 1, 1),
    ("comm_reducer", 2, 2), ("copysign", 2, 2), ("cos", 1, 1), ("cosh", 1, 1), ("erf", 1, 1), ("evaluate", 1, 1),
    ("exp", 1, 1), ("exp10", 1, 1), ("exp2", 1, 1), ("fabs", 1, 2), ("floor", 1, 2), ("floordiv", 2, 3),
    ("floormod", 2, 3), ("fma", 3, 3), ("fmod", 2, 2), ("hypot", 2, 2), ("if_then_else", 3, 4), ("infinity", 1, 2),
    ("isfinite", 1, 2), ("isinf", 1, 2), ("isnan", 1, 2), ("isnullptr", 1, 2), ("ldexp", 2, 2), ("likely", 1, 2),
    ("log", 1, 1), ("log10", 1, 1), ("log1p", 1, 1), ("log2", 1, 1), ("max", 2, 3), ("max_value", 1, 2), ("min", 2, 3),
    ("min_value", 1, 2), ("nearbyint", 1, 2), ("nextafter", 2, 2), ("popcount", 1, 1), ("pow", 2, 3), ("power", 2, 3),
    ("q_multiply_shift", 4, 4), ("reinterpret", 2, 3), ("round", 1, 2), ("rsqrt", 1, 1), ("shift_left", 2, 3),
    ("shift_right", 2, 3), ("sigmoid", 1, 1), ("sin", 1, 1), ("sinh", 1, 1), ("sqrt", 1, 1), ("tan", 1, 1),
    ("tanh", 1, 1), ("trunc", 1, 2), ("truncdiv", 2, 3), ("truncmod", 2, 3), ("tvm_thread_invariant", 1, 1),
];

impl Walk<'_> {
    /// `T.exp()`, `T.sqrt(a, b)`: arguments are missing, or too many.
    pub(super) fn arity(&mut self, cursor: Cursor<'_>, call: &Expr, callee: &Expr, arguments: &[Argument]) {
        let Some((head, function)) = cursor.path(callee.tokens).split_once('.') else { return };
        let Some((_, least, most)) = FUNCTIONS.iter().find(|(name, ..)| *name == function) else { return };
        let is_open = arguments.iter().any(|argument| matches!(argument.value.kind, ExprKind::Starred { .. }));
        if is_open || self.file.namespace(head) != Some(Namespace::Tir) {
            return;
        }
        let mut positional = arguments.iter().filter(|argument| argument.keyword.is_none());
        if arguments.len() < *least {
            let (wanted, given) = (counted(*least, "argument"), arguments.len());
            let message = format!("{head}.{function}: takes {wanted}, {given} passed");
            self.mistake(Code::MissingArgument, cursor.span(call.tokens), message);
        } else if let Some(surplus) = positional.nth(*most) {
            let message = format!("{head}.{function}: takes at most {}, more are passed", counted(*most, "argument"));
            self.mistake(Code::TooManyArguments, cursor.span(surplus.value.tokens), message);
        }
    }
}
