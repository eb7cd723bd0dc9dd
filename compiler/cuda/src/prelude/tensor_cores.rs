//! Products of one warp (`mma.sync`), and how their factors come out of shared memory.
//!
//! On a CPU the header `rx_cuda_cpu.h` does what the PTX ISA says of each.

use super::Helper;

/// A product of one warp: its name, what it multiplies, the instruction's shape and types, the sums' C type and constraint, bytes of
/// an element, and how a CPU reads elements.
macro_rules! product {
    ($name:expr, $what:expr, $instruction:expr, $sum:expr, $constraint:expr, $bytes:expr, $read_a:expr, $read_b:expr, $needs:expr) => {
        Helper {
            name: $name,
            needs: $needs,
            text: concat!(
                "// sum += a * b, of ",
                $what,
                ".\nstatic __device__ __forceinline__ void ",
                $name,
                "(",
                $sum,
                "* sum, const unsigned* a, const unsigned* b) {\n",
                "#ifdef __CUDA_ARCH__\n",
                "    asm volatile(\"mma.sync.aligned.",
                $instruction,
                " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n        : ",
                $constraint,
                "(sum[0]), ",
                $constraint,
                "(sum[1]), ",
                $constraint,
                "(sum[2]), ",
                $constraint,
                "(sum[3])\n        : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n",
                "#else\n    rx_cpu_mma<",
                $bytes,
                ">(sum, a, b, ",
                $read_a,
                ", ",
                $read_b,
                ");\n#endif\n}\n",
            ),
        }
    };
}

/// A product of 8-bit integers.
macro_rules! integers {
    ($name:expr, $types:expr, $read_a:expr, $read_b:expr) => {
        product!(
            $name,
            "16 x 32 and 32 x 8 8-bit integers",
            concat!("m16n8k32.row.col.s32.", $types, ".s32"),
            "int",
            "\"+r\"",
            "1",
            $read_a,
            $read_b,
            &[]
        )
    };
}

pub(super) const HELPERS: &[Helper] = &[
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
    product!(
        "rx_mma_f16",
        "16 x 16 and 16 x 8 elements of float16",
        "m16n8k16.row.col.f32.f16.f16.f32",
        "float",
        "\"+f\"",
        "2",
        read!(f16),
        read!(f16),
        &["rx_f16"]
    ),
    product!(
        "rx_mma_bf16",
        "16 x 16 and 16 x 8 elements of bfloat16",
        "m16n8k16.row.col.f32.bf16.bf16.f32",
        "float",
        "\"+f\"",
        "2",
        read!(bf16),
        read!(bf16),
        &["rx_bf16"]
    ),
    product!(
        "rx_mma_tf32",
        "16 x 8 and 8 x 8 elements of tf32",
        "m16n8k8.row.col.f32.tf32.tf32.f32",
        "float",
        "\"+f\"",
        "4",
        "[](unsigned x) { return __uint_as_float(x); }",
        "[](unsigned x) { return __uint_as_float(x); }",
        &[]
    ),
    integers!("rx_mma_s8_s8", "s8.s8", read!(s8), read!(s8)),
    integers!("rx_mma_s8_u8", "s8.u8", read!(s8), read!(u8)),
    integers!("rx_mma_u8_s8", "u8.s8", read!(u8), read!(s8)),
    integers!("rx_mma_u8_u8", "u8.u8", read!(u8), read!(u8)),
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
