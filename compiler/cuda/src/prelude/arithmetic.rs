//! Helpers for arithmetic, mostly for operations that C does not have, or that the IR defines differently.

use super::Helper;

pub(super) const HELPERS: &[Helper<'static>] = &[
    Helper {
        name: "rx_add",
        needs: &[],
        text: "\
// Wrapping arithmetic of signed integers.
static __device__ __forceinline__ int rx_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
static __device__ __forceinline__ long long rx_add(long long a, long long b) {
    return (long long)((unsigned long long)a + (unsigned long long)b);
}
static __device__ __forceinline__ int rx_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
static __device__ __forceinline__ long long rx_sub(long long a, long long b) {
    return (long long)((unsigned long long)a - (unsigned long long)b);
}
static __device__ __forceinline__ int rx_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
static __device__ __forceinline__ long long rx_mul(long long a, long long b) {
    return (long long)((unsigned long long)a * (unsigned long long)b);
}
",
    },
    Helper {
        name: "rx_div",
        needs: &[],
        text: "\
// Division rounded toward zero; INT_MIN / -1 wraps.
template <typename T>
static __device__ __forceinline__ T rx_div(T a, T b) {
    if (b == (T)-1) return (T)(0ULL - (unsigned long long)a);
    return (T)(a / b);
}
template <typename T>
static __device__ __forceinline__ T rx_mod(T a, T b) {
    if (b == (T)-1) return 0;
    return (T)(a % b);
}
",
    },
    Helper {
        name: "rx_floor_div",
        needs: &["rx_div"],
        text: "\
// Division rounded toward minus infinity, and its remainder, which has the divisor's sign.
template <typename T>
static __device__ __forceinline__ T rx_floor_div(T a, T b) {
    T quotient = rx_div(a, b);
    return (T)(quotient - (T)(rx_mod(a, b) != 0 && (a < 0) != (b < 0)));
}
template <typename T>
static __device__ __forceinline__ T rx_floor_mod(T a, T b) {
    T rest = rx_mod(a, b);
    return (T)(rest != 0 && (a < 0) != (b < 0) ? rest + b : rest);
}
",
    },
    Helper {
        name: "rx_min",
        needs: &[],
        text: "\
// Minimum and maximum; if a or b is NaN, the result is b.
template <typename T>
static __device__ __forceinline__ T rx_min(T a, T b) { return a < b ? a : b; }
template <typename T>
static __device__ __forceinline__ T rx_max(T a, T b) { return a > b ? a : b; }
",
    },
    Helper {
        name: "rx_float_mod",
        needs: &[],
        text: "\
// The remainder of floor(a / b).
static __device__ __forceinline__ float rx_float_mod(float a, float b) { return a - floorf(a / b) * b; }
static __device__ __forceinline__ double rx_float_mod(double a, double b) { return a - floor(a / b) * b; }
",
    },
    Helper {
        name: "rx_shift",
        needs: &[],
        text: "\
// Shifts. By a negative count or at least the width, the result is 0; of a right shift, the sign: 0 or -1.
template <typename T>
static __device__ __forceinline__ T rx_shift_left(T a, long long by) {
    return by < 0 || by >= (long long)sizeof(T) * 8 ? (T)0 : (T)((unsigned long long)a << by);
}
template <typename T>
static __device__ __forceinline__ T rx_shift_right(T a, long long by) {
    return by < 0 || by >= (long long)sizeof(T) * 8 ? (T)(a < 0 ? -1 : 0) : (T)(a >> by);
}
",
    },
    Helper {
        name: "rx_abs",
        needs: &[],
        text: "\
// Absolute value; that of INT_MIN wraps.
template <typename T>
static __device__ __forceinline__ T rx_abs(T a) { return a < 0 ? (T)(0ULL - (unsigned long long)a) : a; }
",
    },
    Helper {
        name: "rx_sigmoid",
        needs: &[],
        text: "\
static __device__ __forceinline__ float rx_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
static __device__ __forceinline__ double rx_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
",
    },
    Helper {
        name: "rx_to_integer",
        needs: &[],
        text: "\
// Float to integer, rounded toward zero; saturates out of range, and NaN becomes 0.
template <typename T, typename F>
static __device__ __forceinline__ T rx_to_integer(F x) {
    const bool is_signed = (T)-1 < (T)0;
    const int bits = (int)sizeof(T) * 8;
    const F half = (F)(1ULL << (bits - 1)), high = is_signed ? half : half * (F)2, low = is_signed ? -half : (F)0;
    const T most = is_signed ? (T)((1ULL << (bits - 1)) - 1ULL) : (T)~0ULL;
    const T least = is_signed ? (T)(1ULL << (bits - 1)) : (T)0;
    return x >= high ? most : x <= low ? least : x == x ? (T)x : (T)0;
}
",
    },
    Helper {
        name: "rx_int_pow",
        needs: &["rx_fail"],
        text: "\
// Wrapping power of integers; negative exponents truncate.
template <typename T>
static __device__ T rx_int_pow(T base, T exponent, int site, unsigned long long* rx_error) {
    if (exponent < 0) {
        if (base == 0) rx_fail(rx_error, site, 0, 0);
        return (T)(base == 1 ? 1 : base == (T)-1 ? (exponent % 2 == 0 ? 1 : -1) : 0);
    }
    unsigned long long result = 1, square = (unsigned long long)base;
    for (unsigned long long rest = (unsigned long long)exponent; rest != 0; rest >>= 1) {
        if (rest & 1) result *= square;
        square *= square;
    }
    return (T)result;
}
",
    },
    Helper {
        name: "rx_exp2",
        needs: &[],
        text: "\
// 2 to the power of x, within 2 ulp; subnormal results are 0.
static __device__ __forceinline__ float rx_exp2(float x) {
#ifdef __CUDA_ARCH__
    float y;
    asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));
    return y;
#else
    return exp2f(x);
#endif
}
",
    },
    Helper {
        name: "rx_bits",
        needs: &[],
        text: "\
// Bit cast to another type of the same width.
template <typename To, typename From>
static __device__ __forceinline__ To rx_bits(From x) {
    static_assert(sizeof(To) == sizeof(From), \"types of one width\");
    union { From from; To to; } both;
    both.from = x;
    return both.to;
}
",
    },
];
