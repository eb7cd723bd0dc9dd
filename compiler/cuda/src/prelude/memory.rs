//! Helpers for vector loads and stores, for shared memory, and for asynchronous copies to it (`cp.async`).

use super::Helper;

pub(super) const HELPERS: &[Helper<'static>] = &[
    Helper {
        name: "RX_SHARED",
        needs: &[],
        text: "\
// Dynamic shared memory.
#ifndef RX_SHARED
#define RX_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#endif
",
    },
    Helper {
        name: "rx_vector",
        needs: &[],
        text: "\
// A vector of contiguous elements, for one load or store.
template <int N, typename T>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) rx_vector { T at[N]; };
",
    },
    Helper {
        name: "rx_pack",
        needs: &[],
        text: "\
// A vector of elements, for one load or store.
template <typename T, int N>
struct alignas(sizeof(T) * N) rx_pack { T at[N]; };
",
    },
    Helper {
        name: "rx_copy16",
        needs: &[],
        text: "\
// cp.async of 16 bytes to shared memory; a null source writes zeros. commit makes the copies so far a group, and wait waits
// until at most LEFT groups are pending.
static __device__ __forceinline__ void rx_copy16(void* shared, const void* from) {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(shared)), \"l\"(from), \"r\"(from ? 16 : 0) : \"memory\");
#else
    rx_cpu_copy16(shared, from);
#endif
}
static __device__ __forceinline__ void rx_copy_commit() {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");
#else
    rx_cpu_copy_commit();
#endif
}
template <int LEFT>
static __device__ __forceinline__ void rx_copy_wait() {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(LEFT) : \"memory\");
#else
    rx_cpu_copy_wait(LEFT);
#endif
}
",
    },
];
