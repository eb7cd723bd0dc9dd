// softmax: largest, exp, sum, out
// from softmax
// schedule rows: a warp per row of up to 1024 elements, 256 threads per longer row; vectors of 4 elements if extents are multiples of 4, otherwise single elements
extern "C" __global__ void __launch_bounds__(128) softmax_kernel(
    const float* x,
    float* out,
    long long n0,
    long long n1) {
    const int lane = threadIdx.x % 32;
    const long long at = (long long)blockIdx.x * 4 + threadIdx.x / 32;
    const bool is_row = at < n0;
    const long long row = is_row ? at : n0 - 1;
    rx_vector<4, float> x_row[8];
    float exp_row[32];
    float largest_value = -RX_INFINITY;
    #pragma unroll
    for (int chunk = 0; chunk < 8; ++chunk) {
        const long long k = (chunk * 32 + lane) * 4;
        if (k < n1) {
            x_row[chunk] = *(const rx_vector<4, float>*)(x + row * n1 + k);
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                largest_value = rx_max(largest_value, x_row[chunk].at[v]);
            }
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, largest_value, by);
        largest_value = rx_max(largest_value, other);
    }
    float sum_value = 0.0f;
    #pragma unroll
    for (int chunk = 0; chunk < 8; ++chunk) {
        const long long k_1 = (chunk * 32 + lane) * 4;
        if (k_1 < n1) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                exp_row[chunk * 4 + v] = expf(x_row[chunk].at[v] - largest_value);
                sum_value += exp_row[chunk * 4 + v];
            }
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other_1 = __shfl_xor_sync(0xffffffffu, sum_value, by);
        sum_value += other_1;
    }
    #pragma unroll
    for (int chunk = 0; chunk < 8; ++chunk) {
        const long long k_2 = (chunk * 32 + lane) * 4;
        if (k_2 < n1) {
            rx_vector<4, float> out_part;
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                out_part.at[v] = exp_row[chunk * 4 + v] / sum_value;
            }
            if (is_row) *(rx_vector<4, float>*)(out + row * n1 + k_2) = out_part;
        }
    }
}

// softmax: largest, exp, sum, out
// from softmax
// schedule rows: a warp per row of up to 1024 elements, 256 threads per longer row; vectors of 4 elements if extents are multiples of 4, otherwise single elements
extern "C" __global__ void __launch_bounds__(256) softmax_kernel_1(const float* x, float* out, long long n1) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    rx_vector<4, float> x_row[8];
    float exp_row[32];
    float largest_value = -RX_INFINITY;
    #pragma unroll
    for (int chunk = 0; chunk < 8; ++chunk) {
        const long long k = (chunk * 256 + lane) * 4;
        if (k < n1) {
            x_row[chunk] = *(const rx_vector<4, float>*)(x + row * n1 + k);
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                largest_value = rx_max(largest_value, x_row[chunk].at[v]);
            }
        }
    }
    for (long long k_1 = (2048 + lane) * 4; k_1 < n1; k_1 += 1024) {
        const rx_vector<4, float> x_part = *(const rx_vector<4, float>*)(x + row * n1 + k_1);
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            largest_value = rx_max(largest_value, x_part.at[v]);
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, largest_value, by);
        largest_value = rx_max(largest_value, other);
    }
    __shared__ float largest_parts[8];
    if (lane % 32 == 0) largest_parts[lane / 32] = largest_value;
    __syncthreads();
    largest_value = largest_parts[0];
    #pragma unroll
    for (int at = 1; at < 8; ++at) {
        largest_value = rx_max(largest_value, largest_parts[at]);
    }
    float sum_value = 0.0f;
    #pragma unroll
    for (int chunk = 0; chunk < 8; ++chunk) {
        const long long k_2 = (chunk * 256 + lane) * 4;
        if (k_2 < n1) {
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                exp_row[chunk * 4 + v] = expf(x_row[chunk].at[v] - largest_value);
                sum_value += exp_row[chunk * 4 + v];
            }
        }
    }
    for (long long k_3 = (2048 + lane) * 4; k_3 < n1; k_3 += 1024) {
        const rx_vector<4, float> x_part_1 = *(const rx_vector<4, float>*)(x + row * n1 + k_3);
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            const float exp_value = expf(x_part_1.at[v] - largest_value);
            sum_value += exp_value;
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other_1 = __shfl_xor_sync(0xffffffffu, sum_value, by);
        sum_value += other_1;
    }
    __shared__ float sum_parts[8];
    if (lane % 32 == 0) sum_parts[lane / 32] = sum_value;
    __syncthreads();
    sum_value = sum_parts[0];
    #pragma unroll
    for (int at = 1; at < 8; ++at) {
        sum_value += sum_parts[at];
    }
    #pragma unroll
    for (int chunk = 0; chunk < 8; ++chunk) {
        const long long k_4 = (chunk * 256 + lane) * 4;
        if (k_4 < n1) {
            rx_vector<4, float> out_part;
            #pragma unroll
            for (int v = 0; v < 4; ++v) {
                out_part.at[v] = exp_row[chunk * 4 + v] / sum_value;
            }
            *(rx_vector<4, float>*)(out + row * n1 + k_4) = out_part;
        }
    }
    for (long long k_5 = (2048 + lane) * 4; k_5 < n1; k_5 += 1024) {
        const rx_vector<4, float> x_part_2 = *(const rx_vector<4, float>*)(x + row * n1 + k_5);
        rx_vector<4, float> out_part_1;
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            const float exp_value_1 = expf(x_part_2.at[v] - largest_value);
            out_part_1.at[v] = exp_value_1 / sum_value;
        }
        *(rx_vector<4, float>*)(out + row * n1 + k_5) = out_part_1;
    }
}

// softmax: largest, exp, sum, out
// from softmax
// schedule rows: a warp per row of up to 1024 elements, 256 threads per longer row; vectors of 4 elements if extents are multiples of 4, otherwise single elements
extern "C" __global__ void __launch_bounds__(128) softmax_kernel_2(
    const float* x,
    float* out,
    long long n0,
    long long n1) {
    const int lane = threadIdx.x % 32;
    const long long at = (long long)blockIdx.x * 4 + threadIdx.x / 32;
    const bool is_row = at < n0;
    const long long row = is_row ? at : n0 - 1;
    float x_row[32];
    float exp_row[32];
    float largest_value = -RX_INFINITY;
    #pragma unroll
    for (int chunk = 0; chunk < 32; ++chunk) {
        const long long k = chunk * 32 + lane;
        if (k < n1) {
            x_row[chunk] = x[row * n1 + k];
            largest_value = rx_max(largest_value, x_row[chunk]);
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, largest_value, by);
        largest_value = rx_max(largest_value, other);
    }
    float sum_value = 0.0f;
    #pragma unroll
    for (int chunk = 0; chunk < 32; ++chunk) {
        const long long k_1 = chunk * 32 + lane;
        if (k_1 < n1) {
            exp_row[chunk] = expf(x_row[chunk] - largest_value);
            sum_value += exp_row[chunk];
        }
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other_1 = __shfl_xor_sync(0xffffffffu, sum_value, by);
        sum_value += other_1;
    }
    #pragma unroll
    for (int chunk = 0; chunk < 32; ++chunk) {
        const long long k_2 = chunk * 32 + lane;
        if (k_2 < n1) {
            if (is_row) out[row * n1 + k_2] = exp_row[chunk] / sum_value;
        }
    }
}

// softmax: largest, exp, sum, out
// from softmax
// schedule rows: a warp per row of up to 1024 elements, 256 threads per longer row; vectors of 4 elements if extents are multiples of 4, otherwise single elements
extern "C" __global__ void __launch_bounds__(256) softmax_kernel_3(const float* x, float* out, long long n1) {
    const int lane = threadIdx.x;
    const long long row = blockIdx.x;
    float x_row[32];
    float exp_row[32];
    float largest_value = -RX_INFINITY;
    #pragma unroll
    for (int chunk = 0; chunk < 32; ++chunk) {
        const long long k = chunk * 256 + lane;
        if (k < n1) {
            x_row[chunk] = x[row * n1 + k];
            largest_value = rx_max(largest_value, x_row[chunk]);
        }
    }
    for (long long k_1 = 8192 + lane; k_1 < n1; k_1 += 256) {
        const float x_part = x[row * n1 + k_1];
        largest_value = rx_max(largest_value, x_part);
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, largest_value, by);
        largest_value = rx_max(largest_value, other);
    }
    __shared__ float largest_parts[8];
    if (lane % 32 == 0) largest_parts[lane / 32] = largest_value;
    __syncthreads();
    largest_value = largest_parts[0];
    #pragma unroll
    for (int at = 1; at < 8; ++at) {
        largest_value = rx_max(largest_value, largest_parts[at]);
    }
    float sum_value = 0.0f;
    #pragma unroll
    for (int chunk = 0; chunk < 32; ++chunk) {
        const long long k_2 = chunk * 256 + lane;
        if (k_2 < n1) {
            exp_row[chunk] = expf(x_row[chunk] - largest_value);
            sum_value += exp_row[chunk];
        }
    }
    for (long long k_3 = 8192 + lane; k_3 < n1; k_3 += 256) {
        const float x_part_1 = x[row * n1 + k_3];
        const float exp_value = expf(x_part_1 - largest_value);
        sum_value += exp_value;
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other_1 = __shfl_xor_sync(0xffffffffu, sum_value, by);
        sum_value += other_1;
    }
    __shared__ float sum_parts[8];
    if (lane % 32 == 0) sum_parts[lane / 32] = sum_value;
    __syncthreads();
    sum_value = sum_parts[0];
    #pragma unroll
    for (int at = 1; at < 8; ++at) {
        sum_value += sum_parts[at];
    }
    #pragma unroll
    for (int chunk = 0; chunk < 32; ++chunk) {
        const long long k_4 = chunk * 256 + lane;
        if (k_4 < n1) {
            out[row * n1 + k_4] = exp_row[chunk] / sum_value;
        }
    }
    for (long long k_5 = 8192 + lane; k_5 < n1; k_5 += 256) {
        const float x_part_2 = x[row * n1 + k_5];
        const float exp_value_1 = expf(x_part_2 - largest_value);
        out[row * n1 + k_5] = exp_value_1 / sum_value;
    }
}

