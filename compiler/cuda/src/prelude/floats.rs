//! Helpers for floats of less than 32 bits, which are held as `float`, and the constants infinity and NaN.

use super::Helper;

pub(super) const HELPERS: &[Helper<'static>] = &[
    Helper { name: "RX_INFINITY", needs: &[], text: "#define RX_INFINITY __int_as_float(0x7f800000)\n" },
    Helper { name: "RX_NAN", needs: &[], text: "#define RX_NAN __int_as_float(0x7fc00000)\n" },
    Helper {
        name: "rx_double_to_odd",
        needs: &[],
        text: "\
// Double to float, rounded to odd: of the two neighbors of an inexact value, the one whose last bit is 1. Rounding the
// float to fewer bits then gives the same result as rounding the double.
static __device__ __forceinline__ float rx_double_to_odd(double x) {
    float y = (float)x;
    if ((double)y == x || x != x) return y;
    int bits = __float_as_int(y);
    // The bits less 1 are the next float toward zero.
    if (((double)y > x) == (x > 0.0)) bits -= 1;
    return __int_as_float(bits | 1);
}
",
    },
    Helper {
        name: "rx_integer_to_odd",
        needs: &[],
        text: "\
// Integer to float, as for rounding to bfloat16: of an integer of more than 24 bits, at least the highest 16 bits are
// kept, and the last bit kept is set if a bit that is lost was.
template <typename T>
static __device__ __forceinline__ float rx_integer_to_odd(T x) {
    float scale = 1.0f;
    while (x >> 24 != 0 && x >> 24 != (T)-1) {
        x = x >> 8 | (T)((x & 255) != 0);
        scale *= 256.0f;
    }
    return (float)x * scale;
}
",
    },
    Helper {
        name: "rx_f16",
        needs: &[],
        text: "\
// float16: held as float, rounded where it is stored or cast.
struct rx_f16 { unsigned short bits; };

static __device__ __forceinline__ float rx_f16_to_float(rx_f16 x) {
#ifdef __CUDA_ARCH__
    float y;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x.bits));
    return y;
#else
    unsigned sign = (x.bits & 0x8000u) << 16, rest = x.bits & 0x7fffu;
    if (rest >= 0x7c00u) return __int_as_float((int)(sign | 0x7f800000u | (rest & 0x3ffu) << 13));
    // The bits as a float are too small by a factor of 2^112, for subnormals as well.
    return __int_as_float((int)(sign | __float_as_int(__int_as_float((int)(rest << 13)) * 5.192296858534828e33f)));
#endif
}

static __device__ __forceinline__ rx_f16 rx_float_to_f16(float x) {
    rx_f16 y;
#ifdef __CUDA_ARCH__
    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));
#else
    unsigned bits = (unsigned)__float_as_int(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) rest = 0x7fffu;
    else if (rest >= 0x477ff000u) rest = 0x7c00u;
    // Subnormal results: an addition aligns the kept bits and rounds them.
    else if (rest < 0x38800000u) rest = (unsigned)__float_as_int(__int_as_float((int)rest) + 0.5f) - 0x3f000000u;
    else rest = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
    y.bits = (unsigned short)(sign | rest);
#endif
    return y;
}
",
    },
    Helper {
        name: "rx_bf16",
        needs: &[],
        text: "\
// bfloat16: held as float, rounded where it is stored or cast.
struct rx_bf16 { unsigned short bits; };

static __device__ __forceinline__ float rx_bf16_to_float(rx_bf16 x) {
    return __int_as_float((int)((unsigned)x.bits << 16));
}

static __device__ __forceinline__ rx_bf16 rx_float_to_bf16(float x) {
    rx_bf16 y;
#ifdef __CUDA_ARCH__
    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));
#else
    unsigned bits = (unsigned)__float_as_int(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) y.bits = (unsigned short)(bits >> 16 | 0x40u);
    else y.bits = (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
    return y;
}
",
    },
    Helper {
        name: "rx_f8e4m3",
        needs: &[],
        text: "\
// float8_e4m3fn: no infinities, one NaN; held as float, rounded where it is stored or cast.
struct rx_f8e4m3 { unsigned char bits; };

static __device__ __forceinline__ float rx_f8e4m3_to_float(rx_f8e4m3 x) {
    unsigned sign = (x.bits & 0x80u) << 24, rest = x.bits & 0x7fu;
    if (rest == 0x7fu) return __int_as_float((int)(sign | 0x7fc00000u));
    return __int_as_float((int)(sign | __float_as_int(__int_as_float((int)(rest << 20)) * 1.329227995784916e36f)));
}

static __device__ __forceinline__ rx_f8e4m3 rx_float_to_f8e4m3(float x) {
    unsigned bits = (unsigned)__float_as_int(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;
    rx_f8e4m3 y;
    // Values that round above 448 become NaN.
    if (rest > 0x43e80000u) rest = 0x7fu;
    else if (rest < 0x3c800000u) rest = (unsigned)__float_as_int(__int_as_float((int)rest) + 16384.0f) - 0x46800000u;
    else rest = (rest - 0x3c000000u + 0x7ffffu + (rest >> 20 & 1u)) >> 20;
    y.bits = (unsigned char)(sign | rest);
    return y;
}
",
    },
    Helper {
        name: "rx_f8e5m2",
        needs: &[],
        text: "\
// float8_e5m2: held as float, rounded where it is stored or cast.
struct rx_f8e5m2 { unsigned char bits; };

static __device__ __forceinline__ float rx_f8e5m2_to_float(rx_f8e5m2 x) {
    unsigned sign = (x.bits & 0x80u) << 24, rest = x.bits & 0x7fu;
    if (rest >= 0x7cu) return __int_as_float((int)(sign | 0x7f800000u | (rest & 0x3u) << 21));
    return __int_as_float((int)(sign | __float_as_int(__int_as_float((int)(rest << 21)) * 5.192296858534828e33f)));
}

static __device__ __forceinline__ rx_f8e5m2 rx_float_to_f8e5m2(float x) {
    unsigned bits = (unsigned)__float_as_int(x), sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;
    rx_f8e5m2 y;
    if (rest > 0x7f800000u) rest = 0x7fu;
    else if (rest >= 0x47700000u) rest = 0x7cu;
    else if (rest < 0x38800000u) rest = (unsigned)__float_as_int(__int_as_float((int)rest) + 128.0f) - 0x43000000u;
    else rest = (rest - 0x38000000u + 0xfffffu + (rest >> 21 & 1u)) >> 21;
    y.bits = (unsigned char)(sign | rest);
    return y;
}
",
    },
    Helper {
        name: "rx_pair_f16",
        needs: &["rx_f16"],
        text: "\
// Two floats rounded to float16, the first in the low half.
static __device__ __forceinline__ unsigned rx_pair_f16(float low, float high) {
#ifdef __CUDA_ARCH__
    unsigned both;
    asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(both) : \"f\"(high), \"f\"(low));
    return both;
#else
    return (unsigned)rx_float_to_f16(low).bits | (unsigned)rx_float_to_f16(high).bits << 16;
#endif
}
",
    },
    Helper {
        name: "rx_pair_bf16",
        needs: &["rx_bf16"],
        text: "\
// Two floats rounded to bfloat16, the first in the low half.
static __device__ __forceinline__ unsigned rx_pair_bf16(float low, float high) {
#ifdef __CUDA_ARCH__
    unsigned both;
    asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(both) : \"f\"(high), \"f\"(low));
    return both;
#else
    return (unsigned)rx_float_to_bf16(low).bits | (unsigned)rx_float_to_bf16(high).bits << 16;
#endif
}
",
    },
];
