// The asynchronous units of sm_90a on a CPU: warpgroup products from shared memory (wgmma), tile copies (TMA), and barriers in shared
// memory (mbarrier). The end of rx_cuda_cpu.h includes this header; rx_cuda_hopper.cpp has its functions.
//
// Each operation usually happens as late as possible: a product reads shared memory when a thread waits for its sums, a copy reads and writes when
// no thread can continue without it. In descending order copies happen at once, which reveals slots that are released too early. Pending
// sums are NaN. The address of a matrix is decoded from its descriptor, as in the PTX ISA.
//
// Errors end the process: a phase that never ends, more arrivals than a barrier counts, copies or products that no thread waited for,
// products without wgmma.fence, and products that read cp.async data without fence.proxy.async.

#pragma once

// ---- barriers in shared memory

void rx_cpu_barrier_init(const void* barrier, int arrivals);
void rx_cpu_fence_barrier_init();
void rx_cpu_barrier_arrive(const void* barrier, int bytes);
void rx_cpu_barrier_wait(const void* barrier, unsigned parity);

// ---- TMA copies

// CUtensorMap, innermost axis first: extents, strides in bytes, extents of the tile. Lines of a tile have 128 bytes, swizzled in 16-byte chunks.
struct rx_cpu_tensor_map {
    const char* from;
    uint32_t rank, element_bytes;
    uint64_t extents[5], strides[5];
    uint32_t tile[5];
};

void rx_cpu_tma_load(void* to, const rx_cpu_tensor_map& map, const void* barrier, std::initializer_list<int> places);

// ---- wgmma

void rx_cpu_fence_async_proxy();
unsigned rx_cpu_shared_address(const void* at);
void rx_cpu_wgmma_fence();
void rx_cpu_wgmma_commit();
void rx_cpu_wgmma_wait(int left);

// The bits of an element of a matrix, by its line (row of A, column of B) and its K index. An element has `bytes` bytes; `lines_together` says
// whether elements of a K index are contiguous.
unsigned rx_cpu_element(unsigned bytes, bool lines_together, uint64_t matrix, unsigned line, unsigned k);

// The part of a pending product that a thread computes.
struct rx_cpu_part {
    virtual ~rx_cpu_part() {}
    // Adds the part to the thread's sums, whose values are passed.
    virtual void add(void* values) const = 0;
};
template <typename Add>
struct rx_cpu_part_of final : rx_cpu_part {
    Add added;
    explicit rx_cpu_part_of(Add added) : added(added) {}
    void add(void* values) const override { added(values); }
};

// Adds a product of the matrices a and b to the pending ones, which own its part. Its sums have `words` words of 4 bytes.
void rx_cpu_product_begins(void* sums, size_t words, uint64_t a, uint64_t b, rx_cpu_part* part);

template <int N, int BYTES, int A_BY_ROWS, int B_BY_COLUMNS, typename T, typename OfA, typename OfB>
inline void rx_cpu_wgmma(T (*sums)[4], uint64_t a, uint64_t b, OfA of_a, OfB of_b) {
    static_assert(BYTES == 2 || (!A_BY_ROWS && !B_BY_COLUMNS), "only matrices of 16-bit elements may lie the other way round");
    // The thread's elements: two rows, and of them a pair in every 8 columns (PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma).
    const unsigned lane = rx_cpu_now->number & 31u, row = rx_cpu_now->number / 32 % 4 * 16 + lane / 4;
    auto add = [=](void* values) {
        T* total = (T*)values;
        const unsigned depth = 32 / BYTES;
        decltype(of_a(0u)) left[2][32];
        for (unsigned k = 0; k < depth; ++k)
            for (unsigned half = 0; half < 2; ++half)
                left[half][k] = of_a(rx_cpu_element(BYTES, A_BY_ROWS, a, row + half * 8, k));
        for (unsigned at = 0; at < N / 4; ++at) {
            unsigned column = at / 2 * 8 + lane % 4 * 2 + at % 2;
            for (unsigned k = 0; k < depth; ++k) {
                auto right = of_b(rx_cpu_element(BYTES, B_BY_COLUMNS, b, column, k));
                for (unsigned half = 0; half < 2; ++half) {
                    T& sum = total[at / 2 * 4 + half * 2 + at % 2];
                    sum = rx_cpu_add(sum, (T)left[half][k] * (T)right);
                }
            }
        }
    };
    rx_cpu_product_begins(sums, N / 2, a, b, new rx_cpu_part_of<decltype(add)>(add));
}
