// matmul: out
// from matmul
// schedule gemm: tiles of 64x64x16, 4x4 per thread; 64 x 64 x 64: 1 tiles for 1 multiprocessors; A: 16-byte loads along K; B: 16-byte loads along N
extern "C" __global__ void __launch_bounds__(256) matmul_kernel(const float* a, const float* b, float* out) {
    const int tiles_m = 1, tiles_n = 1;
    int block = blockIdx.x;
    // Blocks go down 8 tiles, then to the next column of tiles, so that neighbours share factors in the L2 cache.
    const int group = block / (8 * tiles_n) * 8;
    const int height = tiles_m - group < 8 ? tiles_m - group : 8;
    const int tile_m = group + block % (8 * tiles_n) % height;
    const int tile_n = block % (8 * tiles_n) / height;
    const int row0 = (int)tile_m * 64, column0 = (int)tile_n * 64;
    RX_SHARED(shared);
    float* tile_a = (float*)shared;  // 2 tiles of 1088 elements
    // A: offsets of the thread's rows.
    int a_row;
    {
        const int at = threadIdx.x;
        const int m = row0 + at / 4;
        const int ax0_32 = m;
        a_row = ax0_32 * 64;
    }
    rx_pack<float, 4> next_a[1];
    float* tile_b = (float*)(shared + 8704);  // 2 tiles of 1088 elements
    // B: offsets of the thread's rows.
    int b_row;
    {
        const int at = threadIdx.x;
        const int n = column0 + at % 16 * 4;
        const int ax1_32 = n;
        b_row = ax1_32;
    }
    rx_pack<float, 4> next_b[1];
    float sums[4][4] = {};
    for (int tile = -1; tile < 4; ++tile) {
        const int coming = tile + 1;
        if (tile >= 0) {
            __syncthreads();
        }
        // The next tile goes to the slot of the previous tile.
        float* to_a = tile_a + coming % 2 * 1088;
        float* to_b = tile_b + coming % 2 * 1088;
        const int sum0 = coming * 16;
        if (coming < 4) {
            // A: 16-byte loads along K.
            {
                const int at = threadIdx.x;
                const int summed = sum0 + at % 4 * 4;
                #pragma unroll
                for (int i = 0; i < 1; ++i) {
                    rx_pack<float, 4> value = {};
                    value = *(const rx_pack<float, 4>*)&a[a_row + summed];
                    next_a[i] = value;
                }
            }
            // B: 16-byte loads along N.
            {
                const int at = threadIdx.x;
                const int summed = sum0 + at / 16;
                #pragma unroll
                for (int i = 0; i < 1; ++i) {
                    rx_pack<float, 4> value = {};
                    value = *(const rx_pack<float, 4>*)&b[b_row + summed * 64];
                    next_b[i] = value;
                }
            }
        }
        if (tile >= 0) {
            const int slot = tile % 2;
            #pragma unroll
            for (int k = 0; k < 16; ++k) {
                rx_pack<float, 4> of_a[1];
                #pragma unroll
                for (int i = 0; i < 1; ++i) of_a[i] = *(const rx_pack<float, 4>*)(tile_a + slot * 1088 + k * 68 + i * 64 + threadIdx.x / 16 * 4);
                rx_pack<float, 4> of_b[1];
                #pragma unroll
                for (int i = 0; i < 1; ++i) of_b[i] = *(const rx_pack<float, 4>*)(tile_b + slot * 1088 + k * 68 + i * 64 + threadIdx.x % 16 * 4);
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) sums[i][j] += of_a[0].at[i] * of_b[0].at[j];
                }
            }
        }
        if (coming < 4) {
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                const int at = threadIdx.x + i * 256;
                const int row = at / 4, k = at % 4 * 4;
                #pragma unroll
                for (int j = 0; j < 4; ++j) to_a[(k + j) * 68 + row] = next_a[i].at[j];
            }
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                const int at = threadIdx.x + i * 256;
                const int row = at % 16 * 4, k = at / 16;
                *(rx_pack<float, 4>*)&to_b[k * 68 + row] = next_b[i];
            }
        }
    }
    // Epilogue of the tile.
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int m = row0 + threadIdx.x / 16 * 4 + i;
        {
            const long long ax0 = m;
            #pragma unroll
            for (int j = 0; j < 1; ++j) {
                const int n = column0 + j * 64 + threadIdx.x % 16 * 4;
                {
                    const long long ax1 = n;
                    rx_pack<float, 4> out_pack;
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int n = column0 + j * 64 + threadIdx.x % 16 * 4 + e;
                        {
                            const long long ax1 = n;
                            const float out_value = sums[i][j * 4 + e];
                            out_pack.at[e] = out_value;
                        }
                    }
                    *(rx_pack<float, 4>*)&out[ax0 * 64 + ax1] = out_pack;
                }
            }
        }
    }
}

