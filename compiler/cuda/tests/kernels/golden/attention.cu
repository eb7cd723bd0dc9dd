// attention: product, score, max, exp, sum, weighted, out
// from attention
// schedule attention: 128 rows, tiles of 64 keys, 4 warps on tensor cores, bfloat16; scores stay on chip; queries: 16-byte cp.async copies; keys: 16-byte cp.async copies; values: 16-byte cp.async copies
extern "C" __global__ void __launch_bounds__(128, 2) attention_kernel(
    const rx_bf16* query,
    const rx_bf16* key,
    const rx_bf16* value,
    rx_bf16* out,
    long long q,
    long long k) {
    const long long rows = 4 * q, keys = k, row_tiles = (4 * q + 127) / 128;
    long long key_first = 0, key_end = keys;
    const long long block = blockIdx.x;
    // Later rows usually see more keys, so their blocks are launched first.
    const long long row0 = (row_tiles - 1 - block % row_tiles) * 128, batch = block / row_tiles;
    const long long ax1_first = (batch) * 4;
    // The range of keys that any row of the block sees, and the range that all of its rows see.
    __shared__ long long seen[4];
    if (threadIdx.x == 0) seen[0] = seen[3] = key_end, seen[1] = seen[2] = key_first;
    __syncthreads();
    for (long long row = row0 + threadIdx.x; row < row0 + 128 && row < rows; row += 128) {
        const long long ax1 = ax1_first + row / q;
        const long long ax2 = row % q;
        long long row_first = key_first, row_end = key_end;
        row_end = rx_min<long long>(row_end, k + ax2 - q + 1);
        atomicMin(&seen[0], row_first), atomicMax(&seen[1], row_end);
        atomicMax(&seen[2], row_first), atomicMin(&seen[3], row_end);
    }
    __syncthreads();
    key_first = seen[0], key_end = seen[1];
    const long long all_first = seen[2], all_end = seen[3];
    RX_SHARED(shared);
    rx_bf16* tile_q = (rx_bf16*)shared;
    rx_bf16* tile_k = tile_q + 128 * 72;
    rx_bf16* tile_v = tile_k + 64 * 72;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sums[2][64 / 8][4] = {};
    // Per row: the maximum score, and the sum of exp(score - maximum).
    float most[4], total[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) most[i] = -RX_INFINITY, total[i] = 0.0f;
    // Load the queries and the first tile of keys.
    #pragma unroll
    for (int at = threadIdx.x; at < 1024; at += 128) {
        const int line = at / 8, part_of_line = at % 8 * 8;
        const long long row = row0 + line;
        const long long ax1 = ax1_first + row / q;
        const long long ax2 = row % q;
        rx_copy16(&tile_q[line * 72 + part_of_line], row < rows ? &query[(ax2 * 32 + ax1) * 64 + part_of_line] : 0);
    }
    #pragma unroll
    for (int at = threadIdx.x; at < 512; at += 128) {
        const int line = at / 8, part_of_line = at % 8 * 8;
        const long long key_1 = key_first + line;
        rx_copy16(&tile_k[line * 72 + part_of_line], key_1 < key_end ? &key[(key_1 * 8 + ax1_first / 4) * 64 + part_of_line] : 0);
    }
    rx_copy_commit();
    for (long long key0 = key_first; key0 < key_end; key0 += 64) {
        const long long key_next = key0 + 64;
        const bool inside = key0 >= all_first && key0 + 64 <= all_end && row0 + 128 <= rows;
        rx_copy_wait<0>();
        __syncthreads();
        #pragma unroll
        for (int at = threadIdx.x; at < 512; at += 128) {
            const int line = at / 8, part_of_line = at % 8 * 8;
            const long long key_1 = key0 + line;
            rx_copy16(&tile_v[line * 72 + part_of_line], key_1 < key_end ? &value[(key_1 * 8 + ax1_first / 4) * 64 + part_of_line] : 0);
        }
        rx_copy_commit();
        // Queries times keys.
        float scores[2][64 / 8][4] = {};
        #pragma unroll
        for (int k_1 = 0; k_1 < 64 / 16; ++k_1) {
            unsigned of_q[2][4];
            #pragma unroll
            for (int i = 0; i < 2; ++i)
                rx_ldmatrix(of_q[i], &tile_q[((warp * 2 + i) * 16 + lane % 16) * 72 + k_1 * 16 + lane / 16 * 8]);
            #pragma unroll
            for (int j = 0; j < 64 / 16; ++j) {
                unsigned of_k[4];
                rx_ldmatrix(of_k, &tile_k[(j * 16 + lane / 16 * 8 + lane % 8) * 72 + k_1 * 16 + lane / 8 % 2 * 8]);
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    rx_mma_bf16(scores[i][2 * j], of_q[i], of_k);
                    rx_mma_bf16(scores[i][2 * j + 1], of_q[i], of_k + 2);
                }
            }
        }
        // Online softmax: scores, rescale of earlier sums, exponentials.
        #pragma unroll
        for (int i = 0; i < 2 * 2; ++i) {
            const long long row = row0 + (warp * 2 * 2 + i) * 8 + lane / 4;
            float top = -RX_INFINITY;
            if (inside) {
                const long long ax1 = ax1_first + row / q;
                const long long ax2 = row % q;
                #pragma unroll
                for (int j = 0; j < 64 / 4; ++j) {
                    const long long key_1 = key0 + (j / 2 * 8 + lane % 4 * 2 + j % 2);
                    float& product = scores[i / 2][j / 2][i % 2 * 2 + j % 2];
                    product = product * 0.25f;
                    top = fmaxf(top, product);
                }
            } else {
                const long long ax1 = ax1_first + row / q;
                const long long ax2 = row % q;
                #pragma unroll
                for (int j = 0; j < 64 / 4; ++j) {
                    const long long key_1 = key0 + (j / 2 * 8 + lane % 4 * 2 + j % 2);
                    float& product = scores[i / 2][j / 2][i % 2 * 2 + j % 2];
                    float score = -RX_INFINITY;
                    if (row < rows && key_1 < key_end) score = k + ax2 - q >= key_1 ? product * 0.25f : -RX_INFINITY;
                    product = score;
                    top = fmaxf(top, product);
                }
            }
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            top = fmaxf(most[i], top);
            const float base = top == -RX_INFINITY ? 0.0f : top;
            const float carried = rx_exp2((most[i] - base) * 1.44269504f);
            most[i] = top;
            total[i] *= carried;
            #pragma unroll
            for (int j = 0; j < 64 / 4; ++j) sums[i / 2][j / 2][i % 2 * 2 + j % 2] *= carried;
            #pragma unroll
            for (int j = 0; j < 64 / 4; ++j) {
                float& exp_1 = scores[i / 2][j / 2][i % 2 * 2 + j % 2];
                exp_1 = rx_exp2((exp_1 - base) * 1.44269504f);
                total[i] += exp_1;
            }
        }
        rx_copy_wait<0>();
        __syncthreads();
        if (key_next < key_end) {
            #pragma unroll
            for (int at = threadIdx.x; at < 512; at += 128) {
                const int line = at / 8, part_of_line = at % 8 * 8;
                const long long key_1 = key_next + line;
                rx_copy16(&tile_k[line * 72 + part_of_line], key_1 < key_end ? &key[(key_1 * 8 + ax1_first / 4) * 64 + part_of_line] : 0);
            }
        }
        rx_copy_commit();
        // Weights times values.
        #pragma unroll
        for (int k_1 = 0; k_1 < 64 / 16; ++k_1) {
            unsigned of_p[2][4];
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                #pragma unroll
                for (int j = 0; j < 4; ++j)
                    of_p[i][j] = rx_pair_bf16(scores[i][2 * k_1 + j / 2][j % 2 * 2], scores[i][2 * k_1 + j / 2][j % 2 * 2 + 1]);
            }
            #pragma unroll
            for (int j = 0; j < 64 / 16; ++j) {
                unsigned of_v[4];
                rx_ldmatrix_transposed(of_v, &tile_v[(k_1 * 16 + lane % 16) * 72 + j * 16 + lane / 16 * 8]);
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    rx_mma_bf16(sums[i][2 * j], of_p[i], of_v);
                    rx_mma_bf16(sums[i][2 * j + 1], of_p[i], of_v + 2);
                }
            }
        }
    }
    #pragma unroll
    for (int i = 0; i < 2 * 2; ++i) {
        const long long row = row0 + (warp * 2 * 2 + i) * 8 + lane / 4;
        float whole = total[i];
        whole += __shfl_xor_sync(0xffffffffu, whole, 1);
        whole += __shfl_xor_sync(0xffffffffu, whole, 2);
        if (row >= rows) continue;
        const long long ax1 = ax1_first + row / q;
        const long long ax2 = row % q;
        const float share = keys == 0 ? 0.0f : 1.0f / whole;
        #pragma unroll
        for (int j = 0; j < 64 / 8; ++j) {
            const long long column0 = j * 8 + lane % 4 * 2;
            rx_pack<rx_bf16, 2> out_pack;
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                const long long column = column0 + e;
                const float value_1 = sums[i / 2][j][i % 2 * 2 + e] * share;
                const float weighted_value = value_1;
                out_pack.at[e] = rx_float_to_bf16(weighted_value);
            }
            *(rx_pack<rx_bf16, 2>*)&out[(ax2 * 32 + ax1) * 64 + column0] = out_pack;
        }
    }
}

