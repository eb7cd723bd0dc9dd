// matmul: sum, out
// from matmul
// schedule gemm: tiles of 128x256x64, wgmma m64k16 of bfloat16, 8 warps; 256 x 256 x 256: 2 tiles for 1 multiprocessors; A: TMA copies along K; B: TMA copies along N; epilogue: 1 elementwise statement
extern "C" __global__ void __launch_bounds__(384, 1) matmul_kernel(
    rx_bf16* out,
    const __grid_constant__ rx_tensor_map map_a,
    const __grid_constant__ rx_tensor_map map_b) {
    RX_SHARED(shared);
    rx_bf16* tile_a = (rx_bf16*)shared;  // 4 tiles of 8192 elements
    rx_bf16* tile_b = (rx_bf16*)(shared + 65536);  // 4 tiles of 16384 elements
    // A slot is full when its copies have arrived, and empty when all warps have multiplied them.
    rx_barrier *full = (rx_barrier*)(shared + 196608), *empty = full + 4;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; ++i) {
            rx_barrier_init(&full[i], 1);
            rx_barrier_init(&empty[i], 8);
        }
        rx_fence_barrier_init();
    }
    __syncthreads();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int slot = 0;
    unsigned phase = 0;
    const int blocks = 2;
    if (warp >= 8) {
        rx_registers_fewer<24>();
        // Producer: one thread issues the TMA copies of the tiles.
        if (threadIdx.x != 256) return;
        #pragma unroll 1
        for (int number = blockIdx.x; number < blocks; number += gridDim.x) {
            const int tiles_m = 2, tiles_n = 1;
            int block = number;
            // Blocks go down 8 tiles, then to the next column of tiles, so that neighbours share factors in the L2 cache.
            const int group = block / (8 * tiles_n) * 8;
            const int height = tiles_m - group < 8 ? tiles_m - group : 8;
            const int tile_m = group + block % (8 * tiles_n) % height;
            const int tile_n = block % (8 * tiles_n) / height;
            const int row0 = (int)tile_m * 128, column0 = (int)tile_n * 256;
            #pragma unroll 1
            for (int tile = 0; tile < 4; ++tile) {
                rx_barrier_wait(&empty[slot], phase ^ 1);
                rx_barrier_expect(&full[slot], 49152);
                const int sum0 = (int)(tile * 64);
                rx_tma_load(&tile_a[slot * 8192], map_a, &full[slot], sum0, row0);
                rx_tma_load(&tile_b[slot * 16384], map_b, &full[slot], column0, sum0);
                rx_tma_load(&tile_b[slot * 16384 + 4096], map_b, &full[slot], column0 + 64, sum0);
                rx_tma_load(&tile_b[slot * 16384 + 8192], map_b, &full[slot], column0 + 128, sum0);
                rx_tma_load(&tile_b[slot * 16384 + 12288], map_b, &full[slot], column0 + 192, sum0);
                if (++slot == 4) slot = 0, phase ^= 1;
            }
        }
        return;
    }
    rx_registers_more<240>();
    const int team = __shfl_sync(0xffffffffu, warp / 4, 0);
    #pragma unroll 1
    for (int number = blockIdx.x; number < blocks; number += gridDim.x) {
        const int tiles_m = 2, tiles_n = 1;
        int block = number;
        // Blocks go down 8 tiles, then to the next column of tiles, so that neighbours share factors in the L2 cache.
        const int group = block / (8 * tiles_n) * 8;
        const int height = tiles_m - group < 8 ? tiles_m - group : 8;
        const int tile_m = group + block % (8 * tiles_n) % height;
        const int tile_n = block % (8 * tiles_n) / height;
        const int row0 = (int)tile_m * 128, column0 = (int)tile_n * 256;
        const int tiles = rx_unknown(4);
        float sums[1][32][4] = {};
        #pragma unroll 1
        for (int tile = 0; tile < tiles; ++tile) {
            rx_barrier_wait(&full[slot], phase);
            const rx_bf16* from_a = tile_a + slot * 8192;
            const rx_bf16* from_b = tile_b + slot * 16384;
            rx_wgmma_fence();
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                rx_wgmma_bf16_256<0, 1>(sums[0],
                    rx_matrix(&from_a[team * 4096 + k * 16], 16, 1024),
                    rx_matrix(&from_b[k * 1024], 8192, 1024));
            }
            rx_wgmma_commit();
            // The products of the previous tile are done, so its slot is empty.
            rx_wgmma_wait<1>();
            if (tile > 0 && lane == 0) rx_barrier_arrive(&empty[slot == 0 ? 3 : slot - 1]);
            if (++slot == 4) slot = 0, phase ^= 1;
        }
        rx_wgmma_wait_all(sums[0]);
        if (tiles > 0 && lane == 0) rx_barrier_arrive(&empty[slot == 0 ? 3 : slot - 1]);
        // Epilogue of the tile.
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int m = row0 + warp / 1 * 16 + i * 8 + lane / 4;
            {
                const long long ax0 = m;
                #pragma unroll
                for (int j = 0; j < 32; ++j) {
                    const int n = column0 + warp % 1 * 256 + j * 8 + lane % 4 * 2;
                    {
                        const long long ax1 = n;
                        rx_pack<rx_bf16, 2> out_pack;
                        #pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            const int n = column0 + warp % 1 * 256 + j * 8 + lane % 4 * 2 + e;
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
}

