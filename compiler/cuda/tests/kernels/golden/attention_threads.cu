// attention: product, score, max, exp, sum, weighted, out
// from attention
// schedule attention: 64 rows, tiles of 64 keys, 256 threads; scores stay on chip; queries: 16-byte cp.async copies; keys: 16-byte cp.async copies; values: 16-byte cp.async copies
extern "C" __global__ void __launch_bounds__(256) attention_kernel(
    const float* query,
    const float* key,
    const float* value,
    float* out,
    long long q,
    long long k) {
    const long long rows = 4 * q, keys = k, row_tiles = (4 * q + 63) / 64;
    long long key_first = 0, key_end = keys;
    const long long block = blockIdx.x;
    // Later rows usually see more keys, so their blocks are launched first.
    const long long row0 = (row_tiles - 1 - block % row_tiles) * 64, batch = block / row_tiles;
    const long long ax1_first = (batch) * 4;
    // The range of keys that any row of the block sees, and the range that all of its rows see.
    __shared__ long long seen[4];
    if (threadIdx.x == 0) seen[0] = seen[3] = key_end, seen[1] = seen[2] = key_first;
    __syncthreads();
    for (long long row = row0 + threadIdx.x; row < row0 + 64 && row < rows; row += 256) {
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
    float* tile_q = (float*)shared;
    float* tile_k = tile_q + 64 * 68;
    float* tile_v = tile_k + 64 * 68;
    float* tile_p = tile_v + 64 * 68;
    const int line_of_16 = threadIdx.x / 16, lane = threadIdx.x % 16;
    float sums[4][4] = {};
    // Per row: the maximum score, and the sum of exp(score - maximum).
    float most[4], total[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) most[i] = -RX_INFINITY, total[i] = 0.0f;
    // Load the queries and the first tile of keys.
    #pragma unroll
    for (int at = threadIdx.x; at < 1024; at += 256) {
        const int line = at / 16, part_of_line = at % 16 * 4;
        const long long row = row0 + line;
        const long long ax1 = ax1_first + row / q;
        const long long ax2 = row % q;
        rx_copy16(&tile_q[line * 68 + part_of_line], row < rows ? &query[(ax2 * 32 + ax1) * 64 + part_of_line] : 0);
    }
    #pragma unroll
    for (int at = threadIdx.x; at < 1024; at += 256) {
        const int line = at / 16, part_of_line = at % 16 * 4;
        const long long key_1 = key_first + line;
        rx_copy16(&tile_k[line * 68 + part_of_line], key_1 < key_end ? &key[(key_1 * 8 + ax1_first / 4) * 64 + part_of_line] : 0);
    }
    rx_copy_commit();
    for (long long key0 = key_first; key0 < key_end; key0 += 64) {
        const long long key_next = key0 + 64;
        const bool inside = key0 >= all_first && key0 + 64 <= all_end && row0 + 64 <= rows;
        rx_copy_wait<0>();
        __syncthreads();
        #pragma unroll
        for (int at = threadIdx.x; at < 1024; at += 256) {
            const int line = at / 16, part_of_line = at % 16 * 4;
            const long long key_1 = key0 + line;
            rx_copy16(&tile_v[line * 68 + part_of_line], key_1 < key_end ? &value[(key_1 * 8 + ax1_first / 4) * 64 + part_of_line] : 0);
        }
        rx_copy_commit();
        // Queries times keys.
        float scores[4][64 / 16] = {};
        #pragma unroll 2
        for (int k_1 = 0; k_1 < 64; k_1 += 4) {
            rx_pack<float, 4> of_q[4], of_k[64 / 16];
            #pragma unroll
            for (int i = 0; i < 4; ++i)
                of_q[i] = *(const rx_pack<float, 4>*)&tile_q[(line_of_16 * 4 + i) * 68 + k_1];
            #pragma unroll
            for (int j = 0; j < 64 / 16; ++j)
                of_k[j] = *(const rx_pack<float, 4>*)&tile_k[(lane + j * 16) * 68 + k_1];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                #pragma unroll
                for (int j = 0; j < 64 / 16; ++j) {
                    #pragma unroll
                    for (int x = 0; x < 4; ++x) scores[i][j] += of_q[i].at[x] * of_k[j].at[x];
                }
            }
        }
        // Online softmax: scores, rescale of earlier sums, exponentials.
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            const long long row = row0 + line_of_16 * 4 + i;
            float top = -RX_INFINITY;
            if (inside) {
                const long long ax1 = ax1_first + row / q;
                const long long ax2 = row % q;
                #pragma unroll
                for (int j = 0; j < 64 / 16; ++j) {
                    const long long key_1 = key0 + lane + j * 16;
                    float& product = scores[i][j];
                    product = product * 0.25f;
                    top = fmaxf(top, product);
                }
            } else {
                const long long ax1 = ax1_first + row / q;
                const long long ax2 = row % q;
                #pragma unroll
                for (int j = 0; j < 64 / 16; ++j) {
                    const long long key_1 = key0 + lane + j * 16;
                    float& product = scores[i][j];
                    float score = -RX_INFINITY;
                    if (row < rows && key_1 < key_end) score = k + ax2 - q >= key_1 ? product * 0.25f : -RX_INFINITY;
                    product = score;
                    top = fmaxf(top, product);
                }
            }
            #pragma unroll
            for (int x = 1; x < 16; x *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, x));
            top = fmaxf(most[i], top);
            const float base = top == -RX_INFINITY ? 0.0f : top;
            const float carried = rx_exp2((most[i] - base) * 1.44269504f);
            most[i] = top;
            total[i] *= carried;
            #pragma unroll
            for (int j = 0; j < 4; ++j) sums[i][j] *= carried;
            #pragma unroll
            for (int j = 0; j < 64 / 16; ++j) {
                const float exp_1 = rx_exp2((scores[i][j] - base) * 1.44269504f);
                total[i] += exp_1;
                tile_p[(line_of_16 * 4 + i) * 68 + lane + j * 16] = exp_1;
            }
        }
        rx_copy_wait<0>();
        __syncthreads();
        if (key_next < key_end) {
            #pragma unroll
            for (int at = threadIdx.x; at < 1024; at += 256) {
                const int line = at / 16, part_of_line = at % 16 * 4;
                const long long key_1 = key_next + line;
                rx_copy16(&tile_k[line * 68 + part_of_line], key_1 < key_end ? &key[(key_1 * 8 + ax1_first / 4) * 64 + part_of_line] : 0);
            }
        }
        rx_copy_commit();
        // Weights times values.
        #pragma unroll 1
        for (int k_1 = 0; k_1 < 64; k_1 += 4) {
            rx_pack<float, 4> of_p[4];
            #pragma unroll
            for (int i = 0; i < 4; ++i)
                of_p[i] = *(const rx_pack<float, 4>*)&tile_p[(line_of_16 * 4 + i) * 68 + k_1];
            #pragma unroll
            for (int x = 0; x < 4; ++x) {
                #pragma unroll
                for (int j = 0; j < 4 / 4; ++j) {
                    const rx_pack<float, 4> of_v =
                        *(const rx_pack<float, 4>*)&tile_v[(k_1 + x) * 68 + (j * 16 + lane) * 4];
                    #pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        #pragma unroll
                        for (int y = 0; y < 4; ++y) sums[i][j * 4 + y] += of_p[i].at[x] * of_v.at[y];
                    }
                }
            }
        }
    }
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const long long row = row0 + line_of_16 * 4 + i;
        float whole = total[i];
        #pragma unroll
        for (int x = 1; x < 16; x *= 2) whole += __shfl_xor_sync(0xffffffffu, whole, x);
        if (row >= rows) continue;
        const long long ax1 = ax1_first + row / q;
        const long long ax2 = row % q;
        const float share = keys == 0 ? 0.0f : 1.0f / whole;
        #pragma unroll
        for (int j = 0; j < 4 / 4; ++j) {
            const long long column0 = (j * 16 + lane) * 4;
            rx_pack<float, 4> out_pack;
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                const long long column = column0 + e;
                const float value_1 = sums[i][j * 4 + e] * share;
                const float weighted_value = value_1;
                out_pack.at[e] = weighted_value;
            }
            *(rx_pack<float, 4>*)&out[(ax2 * 32 + ax1) * 64 + column0] = out_pack;
        }
    }
}

