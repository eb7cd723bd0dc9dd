//! Helpers for `sm_90a`: matrix descriptors, fences and waits of `wgmma`, registers of a warpgroup (`setmaxnreg`),
//! barriers in shared memory (`mbarrier`), and tile copies by TMA.
//!
//! On a CPU the header `rx_cuda_hopper.h` implements these instructions as the PTX ISA describes them, except
//! `setmaxnreg`, which does nothing there.

use super::Helper;

pub(super) const HELPERS: &[Helper<'static>] = &[
    Helper {
        name: "rx_wgmma",
        needs: &[],
        text: "\
#define RX_SUMS_1(C, j) C(sums[j][0]), C(sums[j][1]), C(sums[j][2]), C(sums[j][3])
#define RX_SUMS_4(C, j) RX_SUMS_1(C, j), RX_SUMS_1(C, j + 1), RX_SUMS_1(C, j + 2), RX_SUMS_1(C, j + 3)
#define RX_SUMS_16(C, j) RX_SUMS_4(C, j), RX_SUMS_4(C, j + 4), RX_SUMS_4(C, j + 8), RX_SUMS_4(C, j + 12)
#define RX_REGISTERS_32 \\
    \"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, \" \\
    \"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31\"
#define RX_REGISTERS_64 RX_REGISTERS_32 \", \" \\
    \"%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, \" \\
    \"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63\"
#define RX_REGISTERS_128 RX_REGISTERS_64 \", \" \\
    \"%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, \" \\
    \"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, \" \\
    \"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, \" \\
    \"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127\"

// wgmma descriptor of a matrix in shared memory: its first element, and the bytes between groups of 64 lines (leading) and of
// 8 lines (stride). Lines have 128 bytes, swizzled in 16-byte chunks.
static __device__ __forceinline__ unsigned long long rx_matrix(const void* shared, int leading, int stride) {
#ifdef __CUDA_ARCH__
    const unsigned at = (unsigned)__cvta_generic_to_shared(shared);
#else
    const unsigned at = rx_cpu_shared_address(shared);
#endif
    return (unsigned long long)(at >> 4 & 0x3fffu) | (unsigned long long)(leading >> 4) << 16
        | (unsigned long long)(stride >> 4) << 32 | 1ULL << 62;
}
// Asynchronous wgmma: fence orders earlier accesses to the sums, commit makes the products so far a group, and wait waits
// until at most LEFT groups are pending.
static __device__ __forceinline__ void rx_wgmma_fence() {
#ifdef __CUDA_ARCH__
    asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");
#else
    rx_cpu_wgmma_fence();
#endif
}
static __device__ __forceinline__ void rx_wgmma_commit() {
#ifdef __CUDA_ARCH__
    asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");
#else
    rx_cpu_wgmma_commit();
#endif
}
template <int LEFT>
static __device__ __forceinline__ void rx_wgmma_wait() {
#ifdef __CUDA_ARCH__
    asm volatile(\"wgmma.wait_group.sync.aligned %0;\" :: \"n\"(LEFT) : \"memory\");
#else
    rx_cpu_wgmma_wait(LEFT);
#endif
}
// Waits for all products. The compiler cannot move uses of the sums before the wait.
template <int N>
static __device__ __forceinline__ void rx_wgmma_wait_all(float (&sums)[N][4]) {
    rx_wgmma_wait<0>();
#ifdef __CUDA_ARCH__
#pragma unroll
    for (int i = 0; i < 4 * N; ++i) asm volatile(\"\" : \"+f\"(sums[i / 4][i % 4]) :: \"memory\");
#endif
}
template <int N>
static __device__ __forceinline__ void rx_wgmma_wait_all(int (&sums)[N][4]) {
    rx_wgmma_wait<0>();
#ifdef __CUDA_ARCH__
#pragma unroll
    for (int i = 0; i < 4 * N; ++i) asm volatile(\"\" : \"+r\"(sums[i / 4][i % 4]) :: \"memory\");
#endif
}
",
    },
    Helper {
        name: "rx_unknown",
        needs: &[],
        text: "\
// Hides a constant from the compiler. With a known trip count it may move code between wgmma, which serializes them.
static __device__ __forceinline__ int rx_unknown(int number) {
#ifdef __CUDA_ARCH__
    asm volatile(\"\" : \"+r\"(number));
#endif
    return number;
}
",
    },
    Helper {
        name: "rx_fence_async_proxy",
        needs: &[],
        text: "\
// Makes shared memory that this thread wrote visible to wgmma and TMA (async proxy).
static __device__ __forceinline__ void rx_fence_async_proxy() {
#ifdef __CUDA_ARCH__
    asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");
#else
    rx_cpu_fence_async_proxy();
#endif
}
",
    },
    Helper {
        name: "rx_registers",
        needs: &[],
        text: "\
// Moves registers from the producer warpgroup to the consumers.
template <int COUNT>
static __device__ __forceinline__ void rx_registers_fewer() {
#ifdef __CUDA_ARCH__
    asm volatile(\"setmaxnreg.dec.sync.aligned.u32 %0;\" :: \"n\"(COUNT));
#endif
}
template <int COUNT>
static __device__ __forceinline__ void rx_registers_more() {
#ifdef __CUDA_ARCH__
    asm volatile(\"setmaxnreg.inc.sync.aligned.u32 %0;\" :: \"n\"(COUNT));
#endif
}
",
    },
    Helper {
        name: "rx_barrier",
        needs: &[],
        text: "\
// mbarrier: a phase ends when the given number of threads and all announced bytes have arrived. A wait names the phase by its
// parity.
typedef unsigned long long rx_barrier;
static __device__ __forceinline__ void rx_barrier_init(rx_barrier* barrier, int arrivals) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(barrier)), \"r\"(arrivals) : \"memory\");
#else
    rx_cpu_barrier_init(barrier, arrivals);
#endif
}
// Makes initialized barriers visible to TMA.
static __device__ __forceinline__ void rx_fence_barrier_init() {
#ifdef __CUDA_ARCH__
    asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");
    asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");
#else
    rx_cpu_fence_barrier_init();
#endif
}
static __device__ __forceinline__ void rx_barrier_arrive(rx_barrier* barrier) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" :: \"r\"((unsigned)__cvta_generic_to_shared(barrier)) : \"memory\");
#else
    rx_cpu_barrier_arrive(barrier, 0);
#endif
}
// Arrives, and announces bytes that copies will deliver.
static __device__ __forceinline__ void rx_barrier_expect(rx_barrier* barrier, int bytes) {
#ifdef __CUDA_ARCH__
    asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(barrier)), \"r\"(bytes) : \"memory\");
#else
    rx_cpu_barrier_arrive(barrier, bytes);
#endif
}
static __device__ __forceinline__ void rx_barrier_wait(rx_barrier* barrier, unsigned parity) {
#ifdef __CUDA_ARCH__
    unsigned has_ended;
    do {
        asm volatile(\"{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\nselp.b32 %0, 1, 0, p;\\n}\"
            : \"=r\"(has_ended) : \"r\"((unsigned)__cvta_generic_to_shared(barrier)), \"r\"(parity) : \"memory\");
    } while (!has_ended);
#else
    rx_cpu_barrier_wait(barrier, parity);
#endif
}
",
    },
    Helper {
        name: "rx_tma_load",
        needs: &["rx_barrier"],
        text: "\
// CUtensorMap: the layout of a tensor and the size of its tiles, encoded by the host.
#ifdef __CUDA_ARCH__
struct alignas(64) rx_tensor_map { unsigned long long words[16]; };
#else
typedef rx_cpu_tensor_map rx_tensor_map;
#endif
// TMA copy of the tile at these coordinates, the innermost first; zeros outside of the tensor. Its bytes arrive at the
// barrier.
static __device__ __forceinline__ void rx_tma_load(void* to, const rx_tensor_map& map, rx_barrier* barrier, int x, int y) {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(&map), \"r\"((unsigned)__cvta_generic_to_shared(barrier)),
           \"r\"(x), \"r\"(y) : \"memory\");
#else
    rx_cpu_tma_load(to, map, barrier, {x, y});
#endif
}
static __device__ __forceinline__ void rx_tma_load(void* to, const rx_tensor_map& map, rx_barrier* barrier, int x, int y, int z) {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(&map), \"r\"((unsigned)__cvta_generic_to_shared(barrier)),
           \"r\"(x), \"r\"(y), \"r\"(z) : \"memory\");
#else
    rx_cpu_tma_load(to, map, barrier, {x, y, z});
#endif
}
static __device__ __forceinline__ void rx_tma_load(
    void* to, const rx_tensor_map& map, rx_barrier* barrier, int x, int y, int z, int u) {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(&map), \"r\"((unsigned)__cvta_generic_to_shared(barrier)),
           \"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u) : \"memory\");
#else
    rx_cpu_tma_load(to, map, barrier, {x, y, z, u});
#endif
}
static __device__ __forceinline__ void rx_tma_load(
    void* to, const rx_tensor_map& map, rx_barrier* barrier, int x, int y, int z, int u, int v) {
#ifdef __CUDA_ARCH__
    asm volatile(\"cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];\"
        :: \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(&map), \"r\"((unsigned)__cvta_generic_to_shared(barrier)),
           \"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u), \"r\"(v) : \"memory\");
#else
    rx_cpu_tma_load(to, map, barrier, {x, y, z, u, v});
#endif
}
",
    },
];
