//! Scalar expressions. Each knows its dtype; vectors of lanes do not occur.

use crate::func::{BufferId, VarId};
use crate::stmt::Site;
use rx_base::DType;
use smallvec::{SmallVec, smallvec};
use std::hash::{Hash, Hasher};

/// A scalar expression. `bool` values are [`Expr::Int`] of dtype `bool`, 0 or 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An integer or boolean constant, within its dtype's range.
    Int {
        /// Its value; `uint64` values above `i64::MAX` as the same bits.
        value: i64,
        /// An integer dtype or `bool`.
        dtype: DType,
    },
    /// A float constant.
    Float {
        /// Its value, before rounding to the dtype.
        value: f64,
        /// A float dtype.
        dtype: DType,
    },
    /// A variable: loop, block axis, symbol, scalar parameter or `let`.
    Var {
        /// Which.
        var: VarId,
        /// Its dtype, as the function's table has it.
        dtype: DType,
    },
    /// An element of a buffer.
    Load {
        /// The buffer.
        buffer: BufferId,
        /// Its dtype, as the function's table has it.
        dtype: DType,
        /// One integer per dim; none for a buffer of rank 0.
        indices: Vec<Expr>,
    },
    /// Conversion, as C has it: floats to integers truncate; anything to `bool` is `!= 0`.
    Cast {
        /// The result's dtype.
        dtype: DType,
        /// What is converted.
        value: Box<Expr>,
    },
    /// An operation of one operand, of the operand's dtype.
    Unary {
        /// Which.
        op: UnaryOp,
        /// The operand.
        value: Box<Expr>,
    },
    /// An operation of two operands of one dtype, which is the result's. Integers wrap.
    Binary {
        /// Which.
        op: BinaryOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand, of the same dtype; of shifts, any integer dtype.
        right: Box<Expr>,
    },
    /// A comparison of two operands of one dtype; a `bool`.
    Compare {
        /// Which.
        op: CompareOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `T.if_then_else`, `T.Select`: only the chosen branch is evaluated.
    Select {
        /// A `bool`.
        condition: Box<Expr>,
        /// The value where it holds.
        then: Box<Expr>,
        /// The value where it does not, of the same dtype.
        otherwise: Box<Expr>,
    },
    /// A call of an intrinsic function.
    Call {
        /// Which.
        function: Intrinsic,
        /// The result's dtype.
        dtype: DType,
        /// As many as [`Intrinsic::arity`] says.
        args: Vec<Expr>,
    },
    /// An index that nothing proves in range: the index itself where `0 <= index < extent`; else the run ends, saying
    /// that the index is out of range. Compiled targets emit a comparison for it; whoever checks every access ignores it.
    Checked {
        /// The index, an integer.
        index: Box<Expr>,
        /// The extent of the axis.
        extent: Box<Expr>,
        /// The buffer that is indexed.
        buffer: BufferId,
        /// Which of its axes, by the order they have in the program's tensor.
        axis: u32,
        /// What to name when it is out of range.
        site: Site,
    },
}

/// By contents; floats by their bits, so that `0.0` and `-0.0` differ.
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

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`.
    Neg,
    /// `not x`, of `bool`.
    Not,
    /// `~x`, of integers.
    BitNot,
}

/// Operations of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`: of floats IEEE division, of integers as [`BinaryOp::TruncDiv`].
    Div,
    /// `T.truncdiv`: toward zero. Division by zero is an error.
    TruncDiv,
    /// `T.truncmod`: of the dividend's sign.
    TruncMod,
    /// `//`: toward −∞; of floats, `floor(a / b)`.
    FloorDiv,
    /// `%`: of the divisor's sign; of floats, `a - floor(a / b) * b`.
    FloorMod,
    /// The smaller; of a NaN and a number TVM's choice, `a < b ? a : b`.
    Min,
    /// The larger; `a > b ? a : b`.
    Max,
    /// Logical and, of `bool`; the right side is evaluated only where the left holds.
    And,
    /// Logical or, of `bool`; the right side is evaluated only where the left does not hold.
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

/// Comparisons. Of a NaN all but `Ne` are false.
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
    /// What holds of two numbers where this does not; of a NaN neither may.
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

    /// Whether it holds of two numbers; of a NaN all but `Ne` are false.
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
        /// Functions of scalars, under TVM's names (`tirx.exp`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Intrinsic { $($(#[$doc])* $variant),* }

        impl Intrinsic {
            /// Every intrinsic.
            pub const ALL: &'static [Intrinsic] = &[$(Intrinsic::$variant),*];

            /// TVM's name: `T.exp`.
            pub const fn name(self) -> &'static str { match self { $(Intrinsic::$variant => $name),* } }

            /// The number of arguments.
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
    /// Leading zero bits.
    Clz "clz" 1;
    /// The magnitude of the first with the sign of the second.
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
    /// The remainder of the division toward zero, of the dividend's sign.
    Fmod "fmod" 2;
    /// `sqrt(a² + b²)`.
    Hypot "hypot" 2;
    /// Whether finite; a `bool`.
    IsFinite "isfinite" 1;
    /// Whether infinite; a `bool`.
    IsInf "isinf" 1;
    /// Whether NaN; a `bool`.
    IsNan "isnan" 1;
    /// `a * 2^b`, the second an integer.
    Ldexp "ldexp" 2;
    /// Natural logarithm.
    Log "log" 1;
    /// Logarithm to base 10.
    Log10 "log10" 1;
    /// `ln(1 + x)`.
    Log1p "log1p" 1;
    /// Logarithm to base 2.
    Log2 "log2" 1;
    /// Rounds to nearest, halves to even.
    NearbyInt "nearbyint" 1;
    /// The next representable value after the first, toward the second.
    NextAfter "nextafter" 2;
    /// Bits set.
    Popcount "popcount" 1;
    /// `a^b`.
    Pow "pow" 2;
    /// The bits of the argument as another dtype of the same width.
    Reinterpret "reinterpret" 1;
    /// Rounds to nearest, halves to even (TVM's `T.round` is `nearbyint`).
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
    /// Whether it is a function of real numbers. TVM writes a call of one with an integer argument, of the argument's dtype, and
    /// then builds it for no target; `T.sin` and its like it refuses at once.
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
    /// An integer of dtype `int64`.
    pub const fn int(value: i64) -> Expr {
        Expr::Int { value, dtype: DType::INT64 }
    }

    /// A truth value.
    pub const fn bool(value: bool) -> Expr {
        Expr::Int { value: value as i64, dtype: DType::BOOL }
    }

    /// The number in a dtype of any kind: of integers truncated, of `bool` whether it is not 0.
    pub fn number(value: f64, dtype: DType) -> Expr {
        match dtype {
            dtype if dtype.is_float() => Expr::Float { value, dtype },
            dtype if dtype.is_bool() => Expr::bool(value != 0.0),
            dtype => Expr::Int { value: value as i64, dtype },
        }
    }

    /// The result's dtype.
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

    /// The constant integer it is.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Int { value, .. } => Some(*value),
            _ => None,
        }
    }

    /// `op(left, right)`; constants and neutral elements of integers are folded.
    pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        if let Some(folded) = fold(op, &left, &right) {
            return folded;
        }
        Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
    }

    /// The value in another dtype; itself where that is its own.
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

    /// `op(left, right)`, a `bool`; of constants folded.
    pub fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
        if let (Some(a), Some(b)) = (left.as_int(), right.as_int())
            && left.dtype() != DType::UINT64
        {
            return Expr::bool(op.holds(a, b));
        }
        Expr::Compare { op, left: Box::new(left), right: Box::new(right) }
    }

    /// `then` where `condition` holds, else `otherwise`.
    pub fn select(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
        match condition.as_int() {
            Some(0) => otherwise,
            Some(_) => then,
            None => {
                Expr::Select { condition: Box::new(condition), then: Box::new(then), otherwise: Box::new(otherwise) }
            }
        }
    }

    /// Both hold.
    pub fn and(self, other: Expr) -> Expr {
        match (self.as_int(), other.as_int()) {
            (Some(0), _) | (_, Some(0)) => Expr::bool(false),
            (Some(_), _) => other,
            (_, Some(_)) => self,
            _ => Expr::Binary { op: BinaryOp::And, left: Box::new(self), right: Box::new(other) },
        }
    }

    /// A call of an intrinsic whose result has the first argument's dtype.
    pub fn call(function: Intrinsic, args: Vec<Expr>) -> Expr {
        let dtype = match function {
            Intrinsic::IsFinite | Intrinsic::IsInf | Intrinsic::IsNan => DType::BOOL,
            _ => args.first().map_or(DType::FLOAT32, Expr::dtype),
        };
        Expr::Call { function, dtype, args }
    }

    /// `self // other`; of floats `floor(self / other)`, since TVM writes no `//` of floats.
    pub fn floor_div(self, other: Expr) -> Expr {
        match self.dtype().is_float() {
            true => Expr::call(Intrinsic::Floor, vec![self / other]),
            false => Expr::binary(BinaryOp::FloorDiv, self, other),
        }
    }

    /// `self % other`; of floats `self - floor(self / other) * other`, since TVM writes no `%` of floats.
    pub fn floor_mod(self, other: Expr) -> Expr {
        match self.dtype().is_float() {
            true => self.clone() - self.floor_div(other.clone()) * other,
            false => Expr::binary(BinaryOp::FloorMod, self, other),
        }
    }

    /// The smaller.
    pub fn min(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Min, self, other)
    }

    /// The larger.
    pub fn max(self, other: Expr) -> Expr {
        Expr::binary(BinaryOp::Max, self, other)
    }

    /// `self < other`.
    pub fn lt(self, other: Expr) -> Expr {
        Expr::compare(CompareOp::Lt, self, other)
    }

    /// `self >= other`.
    pub fn ge(self, other: Expr) -> Expr {
        Expr::compare(CompareOp::Ge, self, other)
    }

    /// `self == other`.
    pub fn eq(self, other: Expr) -> Expr {
        Expr::compare(CompareOp::Eq, self, other)
    }

    /// The direct parts, in order of evaluation.
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

    /// Calls `visit` on every part, itself included, outermost first.
    pub fn walk<'e>(&'e self, visit: &mut impl FnMut(&'e Expr)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// How many parts it has, itself included.
    pub fn size(&self) -> usize {
        1 + self.children().into_iter().map(Expr::size).sum::<usize>()
    }

    /// Whether a part, itself included, passes a test.
    pub fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// Whether all parts, itself included, pass a test.
    pub fn all(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        test(self) && self.children().into_iter().all(|child| child.all(test))
    }

    /// Whether it loads an element.
    pub fn has_load(&self) -> bool {
        self.any(&|part| matches!(part, Expr::Load { .. }))
    }

    /// Whether it mentions the variable.
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

/// Folds integers: constants, and neutral elements on either side.
fn fold(op: BinaryOp, left: &Expr, right: &Expr) -> Option<Expr> {
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

/// `not self`, of a `bool`.
impl std::ops::Not for Expr {
    type Output = Expr;
    fn not(self) -> Expr {
        match self.as_int() {
            Some(value) => Expr::bool(value == 0),
            None => Expr::Unary { op: UnaryOp::Not, value: Box::new(self) },
        }
    }
}
