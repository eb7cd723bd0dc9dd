// sorted: ranks, sorted
// from sorted
// schedule sort: 16 rows per block in shared memory
extern "C" __global__ void __launch_bounds__(512) sorted_kernel(const float* data, float* values, int* places) {
    __shared__ rx_ranked32 ranked[1024];
    // Load keys; padding after the end of a row sorts last.
    for (int at = threadIdx.x; at < 1024; at += blockDim.x) {
        const long long row = (long long)blockIdx.x * 16 + at / 64;
        const int i = at % 64;
        ranked[at] = rx_rank(~0U, (unsigned)i);
        if (row < 16 && i < 64) {
            const long long ax0 = row;
            const long long ax1 = i;
            ranked[at] = rx_rank(~rx_sort_key((float)(0.0f - data[ax0 * 64 + ax1])), (unsigned)i);
        }
    }
    rx_sort(ranked, 64, 1024);
    for (int at = threadIdx.x; at < 1024; at += blockDim.x) {
        const long long row = (long long)blockIdx.x * 16 + at / 64;
        const long long rank = at % 64;
        if (row < 16 && rank < 8) {
            const long long ax0_1 = row;
            const long long ax1_1 = rx_place(ranked[at]);
            values[ax0_1 * 8 + rank] = 0.0f - data[ax0_1 * 64 + ax1_1];
            places[ax0_1 * 8 + rank] = (int)ax1_1;
        }
    }
}

