// matmul: sum, out
// from matmul
// schedule gemv: a warp per row, 8 values of K per lane at a time; 16-byte loads; epilogue: 1 elementwise statement
extern "C" __global__ void __launch_bounds__(256) matmul_kernel(const rx_bf16* a, const rx_bf16* b, rx_bf16* out) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = (int)blockIdx.x * 8 + warp;
    float sums[1][1] = {};
    if (first < 4096) {
        #pragma unroll 4
        for (int sum0 = lane * 8; sum0 < 1024; sum0 += 256) {
            rx_pack<rx_bf16, 8> matrix = {};
            {
                const int n = first, summed = sum0;
                const int ax1_32 = n;
                const int k0_32 = summed;
                matrix = *(const rx_pack<rx_bf16, 8>*)&b[ax1_32 * 1024 + k0_32];
            }
            rx_pack<rx_bf16, 8> vectors[1] = {};
            #pragma unroll
            for (int f = 0; f < 1; ++f) {
                const int m = f, summed = sum0;
                const int k0_32 = summed;
                vectors[f] = *(const rx_pack<rx_bf16, 8>*)&a[k0_32];
            }
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int n = first, summed = sum0 + j;
                {
                    const int ax1_32 = n;
                    const int k0_32 = summed;
                    const float value = rx_bf16_to_float(matrix.at[j]);
                    #pragma unroll
                    for (int f = 0; f < 1; ++f) {
                        sums[f][0] += value * rx_bf16_to_float(vectors[f].at[j]);
                    }
                }
            }
        }
    }
    // Sum over the lanes.
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        #pragma unroll
        for (int f = 0; f < 1; ++f) sums[f][0] += __shfl_xor_sync(0xffffffffu, sums[f][0], by);
    }
    if (lane == 0) {
        #pragma unroll
        for (int j = 0; j < 1; ++j) {
            const int n = first + j;
            if (n < 4096) {
                const long long ax1 = n;
                #pragma unroll
                for (int f = 0; f < 1; ++f) {
                    const int m = f;
                    const float sum_value = sums[f][j];
                    out[ax1] = rx_float_to_bf16(sum_value);
                }
            }
        }
    }
}

