// matmul: sum, out
// from matmul
// schedule gemm: tiles of 128x128x32, mma.sync m16n8k16 of bfloat16; 256 x 256 x 256: 4 tiles for 1 multiprocessors; A: 16-byte cp.async copies along K; B: 16-byte cp.async copies along N; epilogue: 1 elementwise statement
extern "C" __global__ void __launch_bounds__(256, 2) matmul_kernel(const rx_bf16* a, const rx_bf16* b, rx_bf16* out) {
    const int tiles_m = 2, tiles_n = 2;
    int block = blockIdx.x;
    // Blocks go down 8 tiles, then to the next column of tiles, so that neighbours share factors in the L2 cache.
    const int group = block / (8 * tiles_n) * 8;
    const int height = tiles_m - group < 8 ? tiles_m - group : 8;
    const int tile_m = group + block % (8 * tiles_n) % height;
    const int tile_n = block % (8 * tiles_n) / height;
    const int row0 = (int)tile_m * 128, column0 = (int)tile_n * 128;
    RX_SHARED(shared);
    rx_bf16* tile_a = (rx_bf16*)shared;  // 3 tiles of 4096 elements
    // A: offsets of the thread's rows.
    int a_row[2];
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int at = threadIdx.x + i * 256;
        const int m = row0 + at / 4;
        const int ax0_32 = m;
        a_row[i] = ax0_32 * 256;
    }
    rx_bf16* tile_b = (rx_bf16*)(shared + 24576);  // 3 tiles of 4096 elements
    // B: offsets of the thread's rows.
    int b_row;
    {
        const int at = threadIdx.x;
        const int n = column0 + at % 16 * 8;
        const int ax1_32 = n;
        b_row = ax1_32;
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sums[4][4][4] = {};
    for (int tile = -2; tile < 8; ++tile) {
        const int coming = tile + 2;
        if (tile >= 0) {
            rx_copy_wait<1>();
            __syncthreads();
        }
        // The next tile goes to the slot of the previous tile.
        rx_bf16* to_a = tile_a + coming % 3 * 4096;
        rx_bf16* to_b = tile_b + coming % 3 * 4096;
        const int sum0 = coming * 32;
        if (coming < 8) {
            // A: 16-byte cp.async copies along K.
            {
                const int at = threadIdx.x;
                const int summed = sum0 + at % 4 * 8;
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int at = threadIdx.x + i * 256;
                    const int row = at / 4, k = at % 4 * 8;
                    const void* from = nullptr;
                    from = &a[a_row[i] + summed];
                    rx_copy16(&to_a[row * 32 + ((k / 8) ^ row / 2 % 4) * 8], from);
                }
            }
            // B: 16-byte cp.async copies along N.
            {
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int at = threadIdx.x + i * 256;
                    const int row = at % 16 * 8, k = at / 16;
                    const int summed = sum0 + k;
                    const void* from = nullptr;
                    from = &b[b_row + summed * 256];
                    rx_copy16(&to_b[k * 128 + ((row / 8) ^ k % 8) * 8], from);
                }
            }
        }
        rx_copy_commit();
        if (tile >= 0) {
            const int slot = tile % 3;
            const rx_bf16* from_a = tile_a + slot * 4096;
            const rx_bf16* from_b = tile_b + slot * 4096;
            #pragma unroll
            for (int k = 0; k < 2; ++k) {
                unsigned of_a[4][4], of_b[4][2];
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int line = warp / 4 * 64 + i * 16 + lane % 16, chunk = k * 2 + lane / 16;
                    rx_ldmatrix(of_a[i], &from_a[line * 32 + (chunk ^ line / 2 % 4) * 8]);
                }
                #pragma unroll
                for (int j = 0; j < 2; ++j) {
                    unsigned both[4];
                    const int line = k * 16 + lane % 16, chunk = (warp % 4 * 32) / 8 + j * 2 + lane / 16;
                    rx_ldmatrix_transposed(both, &from_b[line * 128 + (chunk ^ line % 8) * 8]);
                    of_b[2 * j][0] = both[0], of_b[2 * j][1] = both[1];
                    of_b[2 * j + 1][0] = both[2], of_b[2 * j + 1][1] = both[3];
                }
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) rx_mma_bf16(sums[i][j], of_a[i], of_b[j]);
                }
            }
        }
    }
    // Epilogue of the tile.
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int m = row0 + warp / 4 * 64 + i * 8 + lane / 4;
        {
            const long long ax0 = m;
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int n = column0 + warp % 4 * 32 + j * 8 + lane % 4 * 2;
                {
                    const long long ax1 = n;
                    rx_pack<rx_bf16, 2> out_pack;
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const int n = column0 + warp % 4 * 32 + j * 8 + lane % 4 * 2 + e;
                        {
                            const long long ax1 = n;
                            const float sum_value = sums[i / 2][j][i % 2 * 2 + e];
                            out_pack.at[e] = rx_float_to_bf16(sum_value);
                        }
                    }
                    *(rx_pack<rx_bf16, 2>*)&out[ax0 * 256 + ax1] = out_pack;
                }
            }
        }
    }
}

