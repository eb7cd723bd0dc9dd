//! Scalar expressions with dtypes. There are no expressions of vector dtypes.

use crate::func::{BufferId, VarId};
use crate::stmt::Site;
use rx_base::DType;
use smallvec::{SmallVec, smallvec};
use std::hash::{Hash, Hasher};

/// A scalar expression. `bool` constants are [`Expr::Int`] of dtype `bool`, 0 or 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An integer or boolean constant, within its dtype's range.
    Int {
        /// The value. A `uint64` above `i64::MAX` is stored as the same bits.
        value: i64,
        /// An integer dtype or `bool`.
        dtype: DType,
    },
    /// A float constant.
    Float {
        /// The value, before rounding to the dtype.
        value: f64,
        /// A float dtype.
        dtype: DType,
    },
    /// A variable: loop, block axis, symbol, scalar parameter or `let`.
    Var {
        /// The variable.
        var: VarId,
        /// The variable's dtype, the same as in the function's table.
        dtype: DType,
    },
    /// An element of a buffer.
    Load {
        /// The buffer.
        buffer: BufferId,
        /// The buffer's dtype, the same as in the function's table.
        dtype: DType,
        /// One integer for each axis; empty for a buffer of rank 0.
        indices: Vec<Expr>,
    },
    /// A conversion as in C: floats to integers truncate. A conversion to `bool` is `!= 0`.
    Cast {
        /// The dtype of the result.
        dtype: DType,
        /// The operand.
        value: Box<Expr>,
    },
    /// A unary operation. The result has the operand's dtype.
    Unary {
        /// The operation.
        op: UnaryOp,
        /// The operand.
        value: Box<Expr>,
    },
    /// A binary operation. The operands and the result have one dtype, except the amount of a shift. Integers wrap.
    Binary {
        /// The operation.
        op: BinaryOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand, of the same dtype. The right operand of a shift may have any integer dtype.
        right: Box<Expr>,
    },
    /// A comparison of two operands of one dtype, with a `bool` result.
    Compare {
        /// The comparison.
        op: CompareOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `T.if_then_else` or `T.Select`: only the selected branch is evaluated.
    Select {
        /// A `bool`.
        condition: Box<Expr>,
        /// The value if the condition is true.
        then: Box<Expr>,
        /// The value if the condition is false, of the same dtype.
        otherwise: Box<Expr>,
    },
    /// A call of an intrinsic function.
    Call {
        /// The function.
        function: Intrinsic,
        /// The dtype of the result.
        dtype: DType,
        /// The arguments; their number is [`Intrinsic::arity`].
        args: Vec<Expr>,
    },
    /// An index that is not proved in range. Its value is the index if `0 <= index < extent`; otherwise execution stops
    /// with an error for the index. Compiled targets emit a comparison for it. The printer omits the check, since TVM
    /// has no such expression.
    Checked {
        /// The index, an integer.
        index: Box<Expr>,
        /// The extent of the axis.
        extent: Box<Expr>,
        /// The buffer that is indexed.
        buffer: BufferId,
        /// The axis of the program's tensor. It may differ from the buffer's axis if the buffer's layout is permuted.
        axis: u32,
        /// The statement that the error names.
        site: Site,
    },
}

/// Hashes the contents, except the dtypes of variables and loads, which follow from their ids. Floats are hashed by
/// their bits, so `0.0` and `-0.0` have different hashes, although they compare equal.
impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Expr::Int { value, dtype } => (value, dtype).hash(state),
            Expr::Float { value, dtype } => (value.to_bits(), dtype).hash(state),
            Expr::Var { var, .. } => var.hash(state),
            Expr::Load { buffer, indices, .. } => (buffer, indices).hash(state),
            Expr::Cast { dtype, value } => (dtype, value).hash(state),
            Expr::Unary { op, value } => (op, value).hash(state),
            Expr::Binary { op, left, right } => (op, left, right).hash(state),
            Expr::Compare { op, left, right } => (op, left, right).hash(state),
            Expr::Select { condition, then, otherwise } => (condition, then, otherwise).hash(state),
            Expr::Call { function, dtype, args } => (function, dtype, args).hash(state),
            Expr::Checked { index, extent, buffer, axis, site } => (index, extent, buffer, axis, site).hash(state),
        }
    }
}

/// A unary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`.
    Neg,
    /// `not x`, for `bool`.
    Not,
    /// `~x`, for integers.
    BitNot,
}

/// A binary operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`: IEEE division for floats, [`BinaryOp::TruncDiv`] for integers.
    Div,
    /// `T.truncdiv`: rounds toward zero. An integer division or remainder by zero is an error.
    TruncDiv,
    /// `T.truncmod`: the remainder has the dividend's sign.
    TruncMod,
    /// `//`: rounds toward −∞; `floor(a / b)` for floats.
    FloorDiv,
    /// `%`: the remainder has the divisor's sign; `a - floor(a / b) * b` for floats.
    FloorMod,
    /// The minimum `a < b ? a : b`, as in TVM. So the minimum of a NaN and a number is the right operand.
    Min,
    /// The maximum `a > b ? a : b`. The maximum of a NaN and a number is the right operand.
    Max,
    /// Logical and, for `bool`. The right operand is evaluated only if the left one is true.
    And,
    /// Logical or, for `bool`. The right operand is evaluated only if the left one is false.
    Or,
    /// `&`.
    BitAnd,
    /// `|`.
    BitOr,
    /// `^`.
    BitXor,
    /// `<<`.
    ShiftLeft,
    /// `>>`, arithmetic for signed integers.
    ShiftRight,
}

/// A comparison. With a NaN, all but `Ne` are false.
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
}

impl CompareOp {
    /// Returns the comparison that is true for two numbers exactly if this one is false. With a NaN, both may be false.
    pub fn negated(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Ne,
            CompareOp::Ne => CompareOp::Eq,
            CompareOp::Lt => CompareOp::Ge,
            CompareOp::Le => CompareOp::Gt,
            CompareOp::Gt => CompareOp::Le,
            CompareOp::Ge => CompareOp::Lt,
        }
    }

    /// Evaluates the comparison. With a NaN, all but `Ne` are false.
    #[inline]
    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            CompareOp::Lt => a < b,
            CompareOp::Le => a <= b,
            CompareOp::Gt => a > b,
            CompareOp::Ge => a >= b,
        }
    }
}

macro_rules! intrinsics {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arity:literal;)*) => {
        /// An intrinsic function of scalars, with TVM's name (`tirx.exp`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Intrinsic { $($(#[$doc])* $variant),* }

        impl Intrinsic {
            /// All intrinsics.
            pub const ALL: &'static [Intrinsic] = &[$(Intrinsic::$variant),*];

            /// Returns TVM's name: `exp` for `T.exp`.
            pub const fn name(self) -> &'static str { match self { $(Intrinsic::$variant => $name),* } }

            /// Returns the number of arguments.
            pub const fn arity(self) -> usize { match self { $(Intrinsic::$variant => $arity),* } }
        }
    };
}

intrinsics! {
    /// `|x|`.
    Abs "abs" 1;
    /// Inverse cosine.
    Acos "acos" 1;
    /// Inverse hyperbolic cosine.
    Acosh "acosh" 1;
    /// Inverse sine.
    Asin "asin" 1;
    /// Inverse hyperbolic sine.
    Asinh "asinh" 1;
    /// Inverse tangent.
    Atan "atan" 1;
    /// `atan(a / b)` in the quadrant of `(b, a)`.
    Atan2 "atan2" 2;
    /// Inverse hyperbolic tangent.
    Atanh "atanh" 1;
    /// Rounds up.
    Ceil "ceil" 1;
    /// The number of leading zero bits.
    Clz "clz" 1;
    /// The magnitude of the first argument with the sign of the second.
    CopySign "copysign" 2;
    /// Cosine of radians.
    Cos "cos" 1;
    /// Hyperbolic cosine.
    Cosh "cosh" 1;
    /// The error function.
    Erf "erf" 1;
    /// `e^x`.
    Exp "exp" 1;
    /// `10^x`.
    Exp10 "exp10" 1;
    /// `2^x`.
    Exp2 "exp2" 1;
    /// Rounds down.
    Floor "floor" 1;
    /// The remainder of division toward zero, with the dividend's sign.
    Fmod "fmod" 2;
    /// `sqrt(a² + b²)`.
    Hypot "hypot" 2;
    /// Whether the argument is finite; a `bool`.
    IsFinite "isfinite" 1;
    /// Whether the argument is infinite; a `bool`.
    IsInf "isinf" 1;
    /// Whether the argument is NaN; a `bool`.
    IsNan "isnan" 1;
    /// `a * 2^b`, where the second argument is an integer.
    Ldexp "ldexp" 2;
    /// Natural logarithm.
    Log "log" 1;
    /// Logarithm to base 10.
    Log10 "log10" 1;
    /// `ln(1 + x)`.
    Log1p "log1p" 1;
    /// Logarithm to base 2.
    Log2 "log2" 1;
    /// Rounds to the nearest integer, halves to even.
    NearbyInt "nearbyint" 1;
    /// The next representable value after the first argument, toward the second.
    NextAfter "nextafter" 2;
    /// The number of set bits.
    Popcount "popcount" 1;
    /// `a^b`.
    Pow "pow" 2;
    /// The bits of the argument as another dtype of the same width.
    Reinterpret "reinterpret" 1;
    /// Rounds to the nearest integer, halves to even (TVM's `T.round` is `nearbyint`).
    Round "round" 1;
    /// `1 / sqrt(x)`.
    Rsqrt "rsqrt" 1;
    /// `1 / (1 + e^-x)`.
    Sigmoid "sigmoid" 1;
    /// Sine of radians.
    Sin "sin" 1;
    /// Hyperbolic sine.
    Sinh "sinh" 1;
    /// Square root.
    Sqrt "sqrt" 1;
    /// Tangent of radians.
    Tan "tan" 1;
    /// Hyperbolic tangent.
    Tanh "tanh" 1;
    /// Rounds toward zero.
    Trunc "trunc" 1;
}

impl Intrinsic {
    /// Whether the function is defined for real numbers only. With an integer argument, TVM accepts most of these
    /// calls, with a result of the argument's dtype, but cannot build them for any target. Others, such as `T.sin`, it
    /// rejects when they are parsed.
    pub const fn is_of_reals(self) -> bool {
        matches!(
            self,
            Intrinsic::Acos
                | Intrinsic::Acosh
                | Intrinsic::Asin
                | Intrinsic::Asinh
                | Intrinsic::Atan
                | Intrinsic::Atanh
                | Intrinsic::Cos
                | Intrinsic::Cosh
                | Intrinsic::Erf
                | Intrinsic::Exp
                | Intrinsic::Exp10
                | Intrinsic::Exp2
                | Intrinsic::Log
                | Intrinsic::Log10
                | Intrinsic::Log1p
                | Intrinsic::Log2
                | Intrinsic::Rsqrt
                | Intrinsic::Sigmoid
                | Intrinsic::Sin
                | Intrinsic::Sinh
                | Intrinsic::Sqrt
                | Intrinsic::Tan
                | Intrinsic::Tanh
        )
    }
}

impl Expr {
    /// Creates an `int64` constant.
    pub const fn int(value: i64) -> Expr {
        Expr::Int { value, dtype: DType::INT64 }
    }

    /// Creates a `bool` constant.
    pub const fn bool(value: bool) -> Expr {
        Expr::Int { value: value as i64, dtype: DType::BOOL }
    }

    /// Creates a constant of any dtype. For an integer dtype the value is truncated toward zero; for `bool` it is
    /// whether the value is not 0.
    pub fn number(value: f64, dtype: DType) -> Expr {
        match dtype {
            dtype if dtype.is_float() => Expr::Float { value, dtype },
            dtype if dtype.is_bool() => Expr::bool(value != 0.0),
            dtype => Expr::Int { value: value as i64, dtype },
        }
    }

    /// Returns the dtype of the result.
    pub fn dtype(&self) -> DType {
        match self {
            Expr::Int { dtype, .. }
            | Expr::Float { dtype, .. }
            | Expr::Var { dtype, .. }
            | Expr::Load { dtype, .. }
            | Expr::Cast { dtype, .. }
            | Expr::Call { dtype, .. } => *dtype,
            Expr::Unary { value, .. } => value.dtype(),
            Expr::Binary { left, .. } => left.dtype(),
            Expr::Compare { .. } => DType::BOOL,
            Expr::Select { then, .. } => then.dtype(),
            Expr::Checked { index, .. } => index.dtype(),
        }
    }

    /// Returns the value of an integer or `bool` constant.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Int { value, .. } => Some(*value),
            _ => None,
        }
    }

    /// Builds `op(left, right)`. Folds most operations on integer constants, and integer identities such as `x + 0`.
    pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        if let Some(folded) = fold(op, &left, &right) {
            return folded;
        }
        Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
    }

    /// Converts to a dtype. Returns the expression itself if it has that dtype. Folds an integer or `bool` constant
    /// that fits the integer dtype, or, for a float dtype, whose magnitude is below 2⁵²; `uint64` constants are not
    /// folded.
    pub fn cast(self, dtype: DType) -> Expr {
        match self {
            value if value.dtype() == dtype => value,
            Expr::Int { value, dtype: from } if dtype.is_int() && fits(value, dtype) && from != DType::UINT64 => {
                Expr::Int { value, dtype }
            }
            Expr::Int { value, dtype: from }
                if dtype.is_float() && from != DType::UINT64 && value.unsigned_abs() < 1 << 52 =>
            {
                Expr::Float { value: value as f64, dtype }
            }
            value => Expr::Cast { dtype, value: Box::new(value) },
        }
    }

    /// Builds the `bool` expression `op(left, right)`. Folds integer and `bool` constants, except those of `uint64`.
    pub fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
        if let (Some(a), Some(b)) = (left.as_int(), right.as_int())
            && left.dtype() != DType::UINT64
        {
            return Expr::bool(op.holds(a, b));
        }
        Expr::Compare { op, left: Box::new(left), right: Box::new(right) }
    }

    /// Builds a selection: `then` if `condition` is true, otherwise `otherwise`. Folds constant conditions.
    pub fn select(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
        match condition.as_int() {
            Some(0) => otherwise,
            Some(_) => then,
            None => {
                Expr::Select { condition: Box::new(condition), then: Box::new(then), otherwise: Box::new(otherwise) }
            }
        }
    }

    /// Builds `self and other`. Folds constant operands.
    pub fn and(self, other: Expr) -> Expr {
        match (self.as_int(), other.as_int()) {
            (Some(0), _) | (_, Some(0)) => Expr::bool(false),
            (Some(_), _) => other,
            (_, Some(_)) => self,
            _ => Expr::Binary { op: BinaryOp::And, left: Box::new(self), right: Box::new(other) },
        }
    }

    /// Builds a call of an intrinsic whose result has the first argument's dtype, or `bool` for `isfinite`, `isinf`
    /// and `isnan`.
    pub fn call(function: Intrinsic, args: Vec<Expr>) -> Expr {
        let dtype = match function {
            Intrinsic::IsFinite | Intrinsic::IsInf | Intrinsic::IsNan => DType::BOOL,
            _ => args.first().map_or(DType::FLOAT32, Expr::dtype),
        };
        Expr::Call { function, dtype, args }
    }

    /// Builds `self // other`. For floats it is `floor(self / other)`, since TVM writes no `//` of floats.
    pub fn floor_div(self, other: Expr) -> Expr {
        match self.dtype().is_float() {
            true => Expr::call(Intrinsic::Floor, vec![self / other]),
            false => Expr::binary(BinaryOp::FloorDiv, self, other),
        }
    }

    /// Builds `self % other`. For floats it is `self - floor(self / other) * other`, since TVM writes no `%` of floats.
    pub fn floor_mod(self, other: Expr) -> Expr {
        match self.dtype().is_float() {
            true => self.clone() - self.floor_div(other.clone()) * other,
            false => Expr::binary(BinaryOp::FloorMod, self, other),
        }
    }

    /// Builds the minimum.
    pub fn min(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Min, self, other)
    }

    /// Builds the maximum.
    pub fn max(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Max, self, other)
    }

    /// Builds `self < other`.
    pub fn lt(self, other: Expr) -> Expr {
        Expr::compare(CompareOp::Lt, self, other)
    }

    /// Builds `self >= other`.
    pub fn ge(self, other: Expr) -> Expr {
        Expr::compare(CompareOp::Ge, self, other)
    }

    /// Builds `self == other`.
    pub fn eq(self, other: Expr) -> Expr {
        Expr::compare(CompareOp::Eq, self, other)
    }

    /// Returns the direct operands, in order of evaluation.
    pub fn children(&self) -> SmallVec<[&Expr; 4]> {
        match self {
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } => SmallVec::new(),
            Expr::Load { indices: parts, .. } | Expr::Call { args: parts, .. } => parts.iter().collect(),
            Expr::Cast { value, .. } | Expr::Unary { value, .. } => smallvec![&**value],
            Expr::Binary { left, right, .. } | Expr::Compare { left, right, .. } => smallvec![&**left, &**right],
            Expr::Select { condition, then, otherwise } => smallvec![&**condition, &**then, &**otherwise],
            Expr::Checked { index, extent, .. } => smallvec![&**index, &**extent],
        }
    }

    /// Calls `visit` on every subexpression, itself included, outermost first.
    pub fn walk<'e>(&'e self, visit: &mut impl FnMut(&'e Expr)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// Returns the number of subexpressions, itself included.
    pub fn size(&self) -> usize {
        1 + self.children().into_iter().map(Expr::size).sum::<usize>()
    }

    /// Whether some subexpression, itself included, passes a test.
    pub fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// Whether all subexpressions, itself included, pass a test.
    pub fn all(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        test(self) && self.children().into_iter().all(|child| child.all(test))
    }

    /// Whether the expression loads an element.
    pub fn has_load(&self) -> bool {
        self.any(&|part| matches!(part, Expr::Load { .. }))
    }

    /// Whether the expression mentions the variable.
    pub fn uses(&self, wanted: VarId) -> bool {
        self.any(&|part| matches!(part, Expr::Var { var, .. } if *var == wanted))
    }
}

/// Whether an integer is a value of the dtype.
fn fits(value: i64, dtype: DType) -> bool {
    let bits = u32::from(dtype.bits);
    match dtype.code {
        rx_base::dtype::TypeCode::UInt => value >= 0 && (bits >= 63 || value < 1 << bits),
        _ => bits >= 64 || (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&value),
    }
}

/// Folds `+`, `-`, `*`, a division, a remainder, `min` or `max` of two integer constants (except of `uint64`), or an
/// identity such as `x + 0` or `x * 0`. Returns `None` if it is neither, if the result does not fit the dtype, or if
/// the divisor of two constants is not positive.
pub(crate) fn fold(op: BinaryOp, left: &Expr, right: &Expr) -> Option<Expr> {
    use BinaryOp::*;
    let dtype = left.dtype();
    if !dtype.is_int() {
        return None;
    }
    match (op, left.as_int(), right.as_int()) {
        (_, Some(a), Some(b)) if dtype != DType::UINT64 => {
            let value = match op {
                Add => a.checked_add(b),
                Sub => a.checked_sub(b),
                Mul => a.checked_mul(b),
                FloorDiv if b > 0 => Some(a.div_euclid(b)),
                FloorMod if b > 0 => Some(a.rem_euclid(b)),
                TruncDiv | Div if b > 0 => Some(a / b),
                TruncMod if b > 0 => Some(a % b),
                Min => Some(a.min(b)),
                Max => Some(a.max(b)),
                _ => None,
            }?;
            fits(value, dtype).then_some(Expr::Int { value, dtype })
        }
        (Add, Some(0), _) | (Mul, Some(1), _) => Some(right.clone()),
        (Add | Sub, _, Some(0)) | (Mul | FloorDiv | TruncDiv | Div, _, Some(1)) => Some(left.clone()),
        (Mul, Some(0), _) => Some(left.clone()),
        (Mul, _, Some(0)) => Some(right.clone()),
        (FloorMod | TruncMod, _, Some(1)) => Some(Expr::Int { value: 0, dtype }),
        _ => None,
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(impl std::ops::$trait for Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                Expr::binary(BinaryOp::$op, self, other)
            }
        })*
    };
}
operators! { Add add Add; Sub sub Sub; Mul mul Mul; Div div Div; }

impl std::ops::Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        Expr::Unary { op: UnaryOp::Neg, value: Box::new(self) }
    }
}

/// Builds `not self`, for a `bool`.
impl std::ops::Not for Expr {
    type Output = Expr;
    fn not(self) -> Expr {
        match self.as_int() {
            Some(value) => Expr::bool(value == 0),
            None => Expr::Unary { op: UnaryOp::Not, value: Box::new(self) },
        }
    }
}
