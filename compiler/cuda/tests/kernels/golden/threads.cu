// scheduled: T_multiply_red_rf_init, T_multiply_red_rf_update, T_multiply_red, T_cast_2
// from T_multiply_red_rf_init (scheduled, statement 11), T_multiply_red_rf_update (scheduled, statement 18), T_multiply_red (scheduled, statement 26), T_multiply_red (scheduled, statement 27), T_cast_2 (scheduled, statement 36)
// schedule threads: 128 threads per block, 4 bytes of shared buffers
extern "C" __global__ void __launch_bounds__(128) scheduled_kernel(const float* x, const float* g, float* T_cast) {
    const long long blockIdx_x = blockIdx.x;
    const long long threadIdx_x = threadIdx.x;
    __shared__ __align__(16) float T_multiply_red_shared[1];
    float T_multiply_red_rf_local[1];
    T_multiply_red_rf_local[0] = 0.0f;
    for (long long ax1_fused_0 = 0; ax1_fused_0 < 2; ++ax1_fused_0) {
        if (threadIdx_x + ax1_fused_0 * 128 < 200) {
            T_multiply_red_rf_local[0] = T_multiply_red_rf_local[0] + x[blockIdx_x * 200 + threadIdx_x + ax1_fused_0 * 128] * x[blockIdx_x * 200 + threadIdx_x + ax1_fused_0 * 128];
        }
    }
    float T_multiply_red_shared_1 = 0.0f;
    T_multiply_red_shared_1 = T_multiply_red_shared_1 + T_multiply_red_rf_local[0];
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, T_multiply_red_shared_1, by);
        T_multiply_red_shared_1 = T_multiply_red_shared_1 + other;
    }
    __shared__ float T_multiply_red_shared_1_parts[4];
    if (threadIdx.x % 32 == 0) T_multiply_red_shared_1_parts[threadIdx.x / 32] = T_multiply_red_shared_1;
    __syncthreads();
    T_multiply_red_shared_1 = T_multiply_red_shared_1_parts[0];
    for (int at = 1; at < 4; ++at) {
        T_multiply_red_shared_1 = T_multiply_red_shared_1 + T_multiply_red_shared_1_parts[at];
    }
    __syncthreads();
    if (threadIdx_x == 0) {
        T_multiply_red_shared[0] = T_multiply_red_shared_1;
    }
    __syncthreads();
    for (long long ax0_ax1_fused_0 = 0; ax0_ax1_fused_0 < 2; ++ax0_ax1_fused_0) {
        if (ax0_ax1_fused_0 * 128 + threadIdx_x < 200) {
            T_cast[blockIdx_x * 200 + ax0_ax1_fused_0 * 128 + threadIdx_x] = rsqrtf(T_multiply_red_shared[0] / 200.0f + 1e-5f) * x[blockIdx_x * 200 + ax0_ax1_fused_0 * 128 + threadIdx_x] * g[ax0_ax1_fused_0 * 128 + threadIdx_x];
        }
    }
}

