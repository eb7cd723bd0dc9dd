//! Helpers for sorting: unsigned integer keys in the order of the values, each paired with the position of its value.

use super::Helper;

pub(super) const HELPERS: &[Helper<'static>] = &[
    Helper {
        name: "rx_sort_key",
        needs: &[],
        text: "\
// Maps a value to an unsigned integer of the same order: NaN is above all numbers, -0 equals 0.
static __device__ __forceinline__ unsigned rx_sort_key(float x) {
    const unsigned bits = x == 0.0f ? 0U : __float_as_uint(x);
    return x != x ? ~0U : bits >> 31 ? ~bits : bits | 0x80000000U;
}
static __device__ __forceinline__ unsigned long long rx_sort_key(double x) {
    const unsigned long long bits = x == 0.0 ? 0ULL : (unsigned long long)__double_as_longlong(x);
    return x != x ? ~0ULL : bits >> 63 ? ~bits : bits | 0x8000000000000000ULL;
}
static __device__ __forceinline__ unsigned rx_sort_key(int x) { return (unsigned)x ^ 0x80000000U; }
static __device__ __forceinline__ unsigned rx_sort_key(unsigned x) { return x; }
static __device__ __forceinline__ unsigned long long rx_sort_key(long long x) {
    return (unsigned long long)x ^ 0x8000000000000000ULL;
}
static __device__ __forceinline__ unsigned long long rx_sort_key(unsigned long long x) { return x; }
",
    },
    Helper {
        name: "rx_ranked",
        needs: &["rx_sort_key"],
        text: "\
// A key with its position in the row: 32-bit keys packed in one integer, 64-bit keys as a pair. Positions make all entries of
// a row different, so the sorted order is unique.
typedef unsigned long long rx_ranked32;
struct rx_ranked64 { unsigned long long key; unsigned long long place; };

static __device__ __forceinline__ rx_ranked32 rx_rank(unsigned key, unsigned place) {
    return (unsigned long long)key << 32 | place;
}
static __device__ __forceinline__ rx_ranked64 rx_rank(unsigned long long key, unsigned place) {
    rx_ranked64 ranked = {key, place};
    return ranked;
}
static __device__ __forceinline__ unsigned rx_place(rx_ranked32 a) { return (unsigned)a; }
static __device__ __forceinline__ unsigned rx_place(rx_ranked64 a) { return (unsigned)a.place; }
static __device__ __forceinline__ bool rx_before(rx_ranked32 a, rx_ranked32 b) { return a < b; }
static __device__ __forceinline__ bool rx_before(rx_ranked64 a, rx_ranked64 b) {
    return a.key < b.key || (a.key == b.key && a.place < b.place);
}
",
    },
    Helper {
        name: "rx_sort",
        needs: &["rx_ranked"],
        text: "\
// Bitonic sort by the threads of a block: `all` elements in shared memory, in rows of `size`, a power of two.
template <typename Ranked>
static __device__ void rx_sort(Ranked* ranked, int size, int all) {
    for (int span = 2; span <= size; span *= 2) {
        for (int by = span / 2; by > 0; by /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < all / 2; pair += blockDim.x) {
                const int a = 2 * pair - (pair & (by - 1)), b = a + by;
                // Halves of a span are sorted in opposite directions, so that the next one is merged in place.
                const bool is_up = (a & span & (size - 1)) == 0;
                const Ranked low = ranked[a], high = ranked[b];
                if (rx_before(high, low) == is_up) {
                    ranked[a] = high;
                    ranked[b] = low;
                }
            }
        }
    }
    __syncthreads();
}
",
    },
    Helper {
        name: "rx_count_before",
        needs: &["rx_ranked"],
        text: "\
// Binary search: the number of the `count` sorted entries that are less than `one`.
template <typename Ranked>
static __device__ __forceinline__ long long rx_count_before(const Ranked* sorted, long long count, Ranked one) {
    long long low = 0;
    while (low < count) {
        const long long middle = (low + count) / 2;
        if (rx_before(sorted[middle], one)) low = middle + 1;
        else count = middle;
    }
    return low;
}
",
    },
];
