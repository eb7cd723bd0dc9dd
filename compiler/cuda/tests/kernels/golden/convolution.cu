// conv2d: out
// from conv2d
// schedule gemm: tiles of 64x64x16, 4x4 per thread; 64 x 3136 x 576: 49 tiles for 1 multiprocessors; A: 16-byte loads along K; B: single-element loads along N
extern "C" __global__ void __launch_bounds__(256) conv2d_kernel(const float* x, const float* w_1, float* out) {
    const int tiles_m = 1, tiles_n = 49;
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
        const int ax2_32 = m;
        a_row = ax2_32 * 576;
    }
    rx_pack<float, 4> next_a[1];
    float* tile_b = (float*)(shared + 8704);  // 2 tiles of 1088 elements
    // B: offsets of the thread's rows, and distances from the edges.
    int b_row;
    int b_edge0;
    int b_edge1;
    {
        const int at = threadIdx.x;
        const int n = column0 + at % 64;
        const int ax3_32 = n / 56;
        const int ax4_32 = n % 56;
        b_row = ax3_32 * 56 + ax4_32 - 57;
        b_edge0 = ax4_32 - 1;
        b_edge1 = ax3_32 - 1;
    }
    float next_b[4];
    float sums[4][4] = {};
    for (int tile = -1; tile < 36; ++tile) {
        const int coming = tile + 1;
        if (tile >= 0) {
            __syncthreads();
        }
        // The next tile goes to the slot of the previous tile.
        float* to_a = tile_a + coming % 2 * 1088;
        float* to_b = tile_b + coming % 2 * 1088;
        const int sum0 = coming * 16;
        if (coming < 36) {
            // A: 16-byte loads along K.
            {
                const int at = threadIdx.x;
                const int summed = sum0 + at % 4 * 4;
                #pragma unroll
                for (int i = 0; i < 1; ++i) {
                    rx_pack<float, 4> value = {};
                    value = *(const rx_pack<float, 4>*)&w_1[a_row + summed];
                    next_a[i] = value;
                }
            }
            // B: single-element loads along N.
            {
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int at = threadIdx.x + i * 256;
                    const int summed = sum0 + at / 64;
                    float value = 0;
                    const int k0_32 = summed / 9;
                    const int k1_32 = summed / 3 % 3;
                    const int k2_32 = summed % 3;
                    if ((unsigned)(b_edge0 + k2_32) <= 55 && (unsigned)(b_edge1 + k1_32) <= 55) value = x[b_row + (k0_32 * 3136 + k1_32 * 56 + k2_32)];
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
        if (coming < 36) {
            #pragma unroll
            for (int i = 0; i < 1; ++i) {
                const int at = threadIdx.x + i * 256;
                const int row = at / 4, k = at % 4 * 4;
                #pragma unroll
                for (int j = 0; j < 4; ++j) to_a[(k + j) * 68 + row] = next_a[i].at[j];
            }
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = threadIdx.x + i * 256;
                const int row = at % 64, k = at / 64;
                to_b[k * 68 + row] = next_b[i];
            }
        }
    }
    // Epilogue of the tile.
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int m = row0 + threadIdx.x / 16 * 4 + i;
        {
            const long long ax2 = m;
            #pragma unroll
            for (int j = 0; j < 1; ++j) {
                const int n = column0 + j * 64 + threadIdx.x % 16 * 4;
                {
                    const long long ax3 = n / 56;
                    const long long ax4 = n % 56;
                    rx_pack<float, 4> out_pack;
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int n = column0 + j * 64 + threadIdx.x % 16 * 4 + e;
                        {
                            const long long ax3 = n / 56;
                            const long long ax4 = n % 56;
                            const float out_value = sums[i][j * 4 + e];
                            out_pack.at[e] = out_value;
                        }
                    }
                    *(rx_pack<float, 4>*)&out[(ax2 * 56 + ax3) * 56 + ax4] = out_pack;
                }
            }
        }
    }
}

