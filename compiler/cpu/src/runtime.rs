//! Functions that generated code calls for intrinsics that it does not compute itself.

use rx_tir::Intrinsic;

/// A function that generated code can call.
#[derive(Clone, Copy)]
pub(crate) struct Routine {
    /// Its symbol.
    pub(crate) symbol: &'static str,
    /// Its address: an `extern "C"` function. The routine of an intrinsic takes one or two floats and returns a float,
    /// all of the same width. The routines of [`integer_power`] take two 64-bit integers and return one. The routines
    /// of matrix products and windowed sums take a pointer and return an `int64`.
    pub(crate) address: *const u8,
}

macro_rules! routines {
    ($($variant:ident $single:ident $double:ident ($($arg:ident),*) $f32:expr, $f64:expr;)*) => {
        $(
            extern "C" fn $single($($arg: f32),*) -> f32 { $f32 }
            extern "C" fn $double($($arg: f64),*) -> f64 { $f64 }
        )*

        /// Returns the routine of an intrinsic for `float32` or, if `wide`, `float64`; `None` if it has no routine.
        pub(crate) fn routine(function: Intrinsic, wide: bool) -> Option<Routine> {
            Some(match (function, wide) {
                $(
                    (Intrinsic::$variant, false) => {
                        Routine { symbol: concat!("rx_", stringify!($single)), address: $single as *const u8 }
                    }
                    (Intrinsic::$variant, true) => {
                        Routine { symbol: concat!("rx_", stringify!($double)), address: $double as *const u8 }
                    }
                )*
                _ => return None,
            })
        }

        /// Returns the routines of all intrinsics that have one and of integer powers, for the linker.
        pub(crate) fn all() -> Vec<Routine> {
            let both = |function| [routine(function, false), routine(function, true)];
            let powers = [integer_power(false), integer_power(true)];
            [$(Intrinsic::$variant),*].into_iter().flat_map(both).flatten().chain(powers).collect()
        }
    };
}

routines! {
    Acos acosf acos (x) libm::acosf(x), libm::acos(x);
    // Below 1 the result must be NaN. Due to rounding, `libm` returns numbers for some negative arguments, such as
    // -35.8022 in `float32`.
    Acosh acoshf acosh (x) if x < 1.0 { f32::NAN } else { libm::acoshf(x) }, if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    Asin asinf asin (x) libm::asinf(x), libm::asin(x);
    Asinh asinhf asinh (x) libm::asinhf(x), libm::asinh(x);
    Atan atanf atan (x) libm::atanf(x), libm::atan(x);
    Atan2 atan2f atan2 (a, b) libm::atan2f(a, b), libm::atan2(a, b);
    Atanh atanhf atanh (x) libm::atanhf(x), libm::atanh(x);
    Cos cosf cos (x) libm::cosf(x), libm::cos(x);
    Cosh coshf cosh (x) libm::coshf(x), libm::cosh(x);
    Erf erff erf (x) libm::erff(x), libm::erf(x);
    Exp expf exp (x) libm::expf(x), libm::exp(x);
    Exp10 exp10f exp10 (x) libm::exp10f(x), libm::exp10(x);
    Exp2 exp2f exp2 (x) libm::exp2f(x), libm::exp2(x);
    Fmod fmodf fmod (a, b) libm::fmodf(a, b), libm::fmod(a, b);
    Hypot hypotf hypot (a, b) libm::hypotf(a, b), libm::hypot(a, b);
    Ldexp ldexpf ldexp (a, b) libm::ldexpf(a, b as i32), libm::ldexp(a, b as i32);
    Log logf log (x) libm::logf(x), libm::log(x);
    Log10 log10f log10 (x) libm::log10f(x), libm::log10(x);
    Log1p log1pf log1p (x) libm::log1pf(x), libm::log1p(x);
    Log2 log2f log2 (x) libm::log2f(x), libm::log2(x);
    NextAfter nextafterf nextafter (a, b) libm::nextafterf(a, b), libm::nextafter(a, b);
    Pow powf pow (a, b) libm::powf(a, b), libm::pow(a, b);
    Sigmoid sigmoidf sigmoid (x) 1.0 / (1.0 + libm::expf(-x)), 1.0 / (1.0 + libm::exp(-x));
    Sin sinf sin (x) libm::sinf(x), libm::sin(x);
    Sinh sinhf sinh (x) libm::sinhf(x), libm::sinh(x);
    Tan tanf tan (x) libm::tanf(x), libm::tan(x);
    Tanh tanhf tanh (x) libm::tanhf(x), libm::tanh(x);
}

/// Returns the routine of a power of 64-bit integers.
pub(crate) fn integer_power(is_signed: bool) -> Routine {
    match is_signed {
        true => Routine { symbol: "rx_signed_power", address: signed_power as *const u8 },
        false => Routine { symbol: "rx_unsigned_power", address: unsigned_power as *const u8 },
    }
}

/// Computes `base^exponent` with wrapping. For a negative exponent the result is truncated toward zero: `2^-1` is 0.
/// Zero to a negative power is 0 here; generated code checks for it before the call.
extern "C" fn signed_power(base: i64, exponent: i64) -> i64 {
    match u64::try_from(exponent) {
        Ok(exponent) => unsigned_power(base.cast_unsigned(), exponent).cast_signed(),
        Err(_) => match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        },
    }
}

/// Computes `base^exponent` with wrapping.
extern "C" fn unsigned_power(base: u64, mut exponent: u64) -> u64 {
    let (mut factor, mut product) = (base, 1u64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = product.wrapping_mul(factor);
        }
        factor = factor.wrapping_mul(factor);
        exponent >>= 1;
    }
    product
}
