//! Helpers of the text, printed where they are used. They compile as CUDA and, with the simulator's header, as C++.

mod hopper;
mod sort;

/// A piece of the text that other pieces may need.
pub(crate) struct Helper {
    /// Its name, as the text calls it; or of the family it defines.
    pub(crate) name: &'static str,
    needs: &'static [&'static str],
    text: &'static str,
}

/// The text of the helpers named, and of those they need, in an order that C++ reads.
pub(crate) fn text(used: &[&'static str]) -> String {
    let mut wanted: Vec<&str> = used.to_vec();
    let mut at = 0;
    while at < wanted.len() {
        let needs = helpers().filter(|helper| helper.name == wanted[at]).flat_map(|helper| helper.needs);
        let new: Vec<&str> = needs.filter(|need| !wanted.contains(need)).copied().collect();
        wanted.extend(new);
        at += 1;
    }
    helpers().filter(|helper| wanted.contains(&helper.name)).map(|helper| helper.text).collect::<Vec<_>>().join("\n")
}

/// Every helper; each stands behind those it needs.
fn helpers() -> impl Iterator<Item = &'static Helper> {
    HELPERS.iter().chain(hopper::HELPERS.iter().copied().flatten()).chain(sort::HELPERS)
}

/// What every architecture has.
const HELPERS: &[Helper] = &[
    Helper {
        name: "RX_INFINITY",
        needs: &[],
        text: "#define RX_INFINITY __int_as_float(0x7f800000)\n",
    },
    Helper { name: "RX_NAN", needs: &[], text: "#define RX_NAN __int_as_float(0x7fc00000)\n" },
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
    // As a float of this exponent the value is too small by 2^112; so it is for denormals.
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
    // Below the least normal, an addition shifts the kept bits to the end and rounds them.
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
    // What rounds above 448 has no value but NaN.
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
        name: "RX_SHARED",
        needs: &[],
        text: "\
// Shared memory whose size the launch decides.
#ifndef RX_SHARED
#define RX_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#endif
",
    },
    Helper {
        name: "rx_vector",
        needs: &[],
        text: "\
// Neighbours in memory that are read and written at once.
template <int N, typename T>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) rx_vector { T at[N]; };
",
    },
    Helper {
        name: "rx_note",
        needs: &[],
        text: "\
// Writes the first failed check into the error cell.
static __device__ void rx_note(unsigned long long* rx_error, int site, long long value, long long extent) {
    if (atomicCAS(&rx_error[0], 0ULL, (unsigned long long)site + 1ULL) == 0ULL) {
        rx_error[1] = (unsigned long long)value;
        rx_error[2] = (unsigned long long)extent;
    }
}
",
    },
    Helper {
        name: "rx_check_on",
        needs: &["rx_note"],
        text: "\
// An index that nothing proves in range, in threads that wait for each other: a wrong one is noted, and the first taken.
static __device__ __forceinline__ long long rx_check_on(long long index, long long extent, int site, unsigned long long* rx_error) {
    if (index >= 0 && index < extent) return index;
    rx_note(rx_error, site, index, extent);
    return 0;
}
",
    },
    Helper {
        name: "rx_divisor_on",
        needs: &["rx_note"],
        text: "\
// A divisor that may be zero, in threads that wait for each other: zero is noted, and 1 taken.
template <typename T>
static __device__ __forceinline__ T rx_divisor_on(T divisor, int site, unsigned long long* rx_error) {
    if (divisor != 0) return divisor;
    rx_note(rx_error, site, 0, 0);
    return (T)1;
}
",
    },
    Helper {
        name: "rx_fail",
        needs: &["rx_note"],
        text: "\
// Writes the first failed check into the error cell, and ends the thread.
static __device__ void rx_fail(unsigned long long* rx_error, int site, long long value, long long extent) {
    rx_note(rx_error, site, value, extent);
#ifdef __CUDA_ARCH__
    asm volatile(\"exit;\" ::: \"memory\");
#else
    rx_cpu_exit_thread();
#endif
}
",
    },
    Helper {
        name: "rx_check",
        needs: &["rx_fail"],
        text: "\
// An index that nothing proves in range.
static __device__ __forceinline__ long long rx_check(long long index, long long extent, int site, unsigned long long* rx_error) {
    if (index < 0 || index >= extent) rx_fail(rx_error, site, index, extent);
    return index;
}
",
    },
    Helper {
        name: "rx_divisor",
        needs: &["rx_fail"],
        text: "\
// A divisor that may be zero.
template <typename T>
static __device__ __forceinline__ T rx_divisor(T divisor, int site, unsigned long long* rx_error) {
    if (divisor == 0) rx_fail(rx_error, site, 0, 0);
    return divisor;
}
",
    },
    Helper {
        name: "rx_add",
        needs: &[],
        text: "\
// Arithmetic of signed integers that wraps.
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
// Division toward zero; of the least integer by -1 it wraps.
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
// Division toward minus infinity, and its remainder, which has the divisor's sign.
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
// The smaller and the larger; of a NaN and another, the other way round from a comparison that fails: the second.
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
// Shifts; by the width or more nothing is left but the sign.
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
// The magnitude; of the least integer it wraps.
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
// A float toward zero; what is out of range becomes the nearest end of it, a NaN 0.
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
// A power of integers, wrapped; powers below zero truncate.
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
// 2 to the power of x within two units in the last place; what is less than the least normal float is 0.
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
    Helper {
        name: "rx_bits",
        needs: &[],
        text: "\
// The same bits as another type of the same width.
template <typename To, typename From>
static __device__ __forceinline__ To rx_bits(From x) {
    static_assert(sizeof(To) == sizeof(From), \"types of one width\");
    union { From from; To to; } both;
    both.from = x;
    return both.to;
}
",
    },
    Helper {
        name: "rx_pack",
        needs: &[],
        text: "\
// Elements that are read and written together.
template <typename T, int N>
struct alignas(sizeof(T) * N) rx_pack { T at[N]; };
",
    },
    Helper {
        name: "rx_copy16",
        needs: &[],
        text: "\
// 16 bytes on their way to shared memory past the registers; zeros where there is nothing to copy. What is asked for before
// an end is a group; it has arrived when no more than so many groups behind it are left.
static __device__ __forceinline__ void rx_copy16(void* shared, const void* from) {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(shared)), \"l\"(from), \"r\"(from ? 16 : 0) : \"memory\");
#else
    rx_cpu_copy16(shared, from);
#endif
}
static __device__ __forceinline__ void rx_copies_end() {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");
#else
    rx_cpu_copies_end();
#endif
}
template <int LEFT>
static __device__ __forceinline__ void rx_copies_arrive() {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(LEFT) : \"memory\");
#else
    rx_cpu_copies_arrive(LEFT);
#endif
}
",
    },
    Helper {
        name: "rx_ldmatrix",
        needs: &[],
        text: "\
// Four matrices of eight lines of 16 bytes each, whose addresses lanes 0 to 7, 8 to 15 and so on bring. Lane l gets of each
// the four bytes l % 4 of line l / 4; transposed, as matrices of 16-bit elements, column l / 4's elements 2 * (l % 4) and on.
static __device__ __forceinline__ void rx_ldmatrix(unsigned* to, const void* line) {
#ifdef __CUDA_ARCH__
    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\"
        : \"=r\"(to[0]), \"=r\"(to[1]), \"=r\"(to[2]), \"=r\"(to[3]) : \"r\"((unsigned)__cvta_generic_to_shared(line)) : \"memory\");
#else
    rx_cpu_ldmatrix(to, line, false);
#endif
}
static __device__ __forceinline__ void rx_ldmatrix_transposed(unsigned* to, const void* line) {
#ifdef __CUDA_ARCH__
    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\"
        : \"=r\"(to[0]), \"=r\"(to[1]), \"=r\"(to[2]), \"=r\"(to[3]) : \"r\"((unsigned)__cvta_generic_to_shared(line)) : \"memory\");
#else
    rx_cpu_ldmatrix(to, line, true);
#endif
}
",
    },
    Helper {
        name: "rx_mma_f16",
        needs: &["rx_f16"],
        text: "\
// sum += a * b, of 16 x 16 and 16 x 8 elements of float16.
static __device__ __forceinline__ void rx_mma_f16(float* sum, const unsigned* a, const unsigned* b) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"
        : \"+f\"(sum[0]), \"+f\"(sum[1]), \"+f\"(sum[2]), \"+f\"(sum[3])
        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
#else
    rx_cpu_mma<2>(sum, a, b, [](unsigned x) { return rx_f16_to_float(rx_f16{(unsigned short)x}); }, [](unsigned x) { return rx_f16_to_float(rx_f16{(unsigned short)x}); });
#endif
}
",
    },
    Helper {
        name: "rx_mma_bf16",
        needs: &["rx_bf16"],
        text: "\
// sum += a * b, of 16 x 16 and 16 x 8 elements of bfloat16.
static __device__ __forceinline__ void rx_mma_bf16(float* sum, const unsigned* a, const unsigned* b) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"
        : \"+f\"(sum[0]), \"+f\"(sum[1]), \"+f\"(sum[2]), \"+f\"(sum[3])
        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
#else
    rx_cpu_mma<2>(sum, a, b, [](unsigned x) { return rx_bf16_to_float(rx_bf16{(unsigned short)x}); }, [](unsigned x) { return rx_bf16_to_float(rx_bf16{(unsigned short)x}); });
#endif
}
",
    },
    Helper {
        name: "rx_mma_tf32",
        needs: &[],
        text: "\
// sum += a * b, of 16 x 8 and 8 x 8 elements of tf32.
static __device__ __forceinline__ void rx_mma_tf32(float* sum, const unsigned* a, const unsigned* b) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"
        : \"+f\"(sum[0]), \"+f\"(sum[1]), \"+f\"(sum[2]), \"+f\"(sum[3])
        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
#else
    rx_cpu_mma<4>(sum, a, b, [](unsigned x) { return __uint_as_float(x); }, [](unsigned x) { return __uint_as_float(x); });
#endif
}
",
    },
    Helper {
        name: "rx_mma_s8_s8",
        needs: &[],
        text: "\
// sum += a * b, of 16 x 32 and 32 x 8 8-bit integers.
static __device__ __forceinline__ void rx_mma_s8_s8(int* sum, const unsigned* a, const unsigned* b) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"
        : \"+r\"(sum[0]), \"+r\"(sum[1]), \"+r\"(sum[2]), \"+r\"(sum[3])
        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
#else
    rx_cpu_mma<1>(sum, a, b, [](unsigned x) { return (int)(signed char)x; }, [](unsigned x) { return (int)(signed char)x; });
#endif
}
",
    },
    Helper {
        name: "rx_mma_s8_u8",
        needs: &[],
        text: "\
// sum += a * b, of 16 x 32 and 32 x 8 8-bit integers.
static __device__ __forceinline__ void rx_mma_s8_u8(int* sum, const unsigned* a, const unsigned* b) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"
        : \"+r\"(sum[0]), \"+r\"(sum[1]), \"+r\"(sum[2]), \"+r\"(sum[3])
        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
#else
    rx_cpu_mma<1>(sum, a, b, [](unsigned x) { return (int)(signed char)x; }, [](unsigned x) { return (int)(x & 0xffu); });
#endif
}
",
    },
    Helper {
        name: "rx_mma_u8_s8",
        needs: &[],
        text: "\
// sum += a * b, of 16 x 32 and 32 x 8 8-bit integers.
static __device__ __forceinline__ void rx_mma_u8_s8(int* sum, const unsigned* a, const unsigned* b) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"
        : \"+r\"(sum[0]), \"+r\"(sum[1]), \"+r\"(sum[2]), \"+r\"(sum[3])
        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
#else
    rx_cpu_mma<1>(sum, a, b, [](unsigned x) { return (int)(x & 0xffu); }, [](unsigned x) { return (int)(signed char)x; });
#endif
}
",
    },
    Helper {
        name: "rx_mma_u8_u8",
        needs: &[],
        text: "\
// sum += a * b, of 16 x 32 and 32 x 8 8-bit integers.
static __device__ __forceinline__ void rx_mma_u8_u8(int* sum, const unsigned* a, const unsigned* b) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"
        : \"+r\"(sum[0]), \"+r\"(sum[1]), \"+r\"(sum[2]), \"+r\"(sum[3])
        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));
#else
    rx_cpu_mma<1>(sum, a, b, [](unsigned x) { return (int)(x & 0xffu); }, [](unsigned x) { return (int)(x & 0xffu); });
#endif
}
",
    },
    Helper {
        name: "rx_to_tf32",
        needs: &[],
        text: "\
// The bits of a float, rounded to 10 bits of fraction.
static __device__ __forceinline__ unsigned rx_to_tf32(unsigned bits) {
#ifdef __CUDA_ARCH__
    unsigned rounded;
    asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(rounded) : \"f\"(__uint_as_float(bits)));
    return rounded;
#else
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
#endif
}
",
    },
];

#[cfg(test)]
mod tests {
    use super::{helpers, text};

    #[test]
    fn helpers_stand_behind_what_they_need() {
        for (at, helper) in helpers().enumerate() {
            for need in helper.needs {
                assert!(helpers().take(at).any(|before| before.name == *need), "{} needs {need}", helper.name);
            }
        }
    }

    #[test]
    fn needs_are_printed_once_and_first() {
        let printed = text(&["rx_check", "rx_divisor"]);
        assert_eq!(printed.matches("void rx_fail(").count(), 1);
        assert!(printed.find("void rx_fail(") < printed.find("rx_check("));
    }
}
