//! Helpers that load the operands of `mma.sync` from shared memory (`ldmatrix`), and that round them to tf32.
//!
//! On a CPU the header `rx_cuda_cpu.h` implements `ldmatrix` as the PTX ISA describes it.

use super::Helper;

pub(super) const READING: &[Helper<'static>] = &[
    Helper {
        name: "rx_ldmatrix",
        needs: &[],
        text: "\
// ldmatrix: four 8x8 matrices of 16-bit elements. Lanes 0 to 7, 8 to 15 and so on pass the addresses of their lines. Lane l
// gets elements 2 * (l % 4) and the next one of line l / 4, or of column l / 4 if transposed.
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
];

pub(super) const ROUNDING: &[Helper<'static>] = &[Helper {
    name: "rx_to_tf32",
    needs: &[],
    text: "\
// Rounds a float to tf32 (10 bits of fraction).
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
}];
