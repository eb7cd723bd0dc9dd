// biased: sum, out, flags
// from biased
// schedule elementwise: 2 x 8 elements per thread if extents are multiples of 8, otherwise 2 elements per thread, 2 axes
extern "C" __global__ void __launch_bounds__(256) biased_kernel(
    const rx_f16* x,
    const rx_f16* bias,
    rx_f16* out,
    unsigned char* flags,
    long long n0,
    long long n1) {
    const long long i = ((long long)blockIdx.x * 512 + threadIdx.x) * 8;
    if (i >= n0 * n1) return;
    rx_vector<8, rx_f16> x_row[2];
    rx_vector<8, rx_f16> bias_row[2];
    // All loads are issued before the first use.
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        const long long k = i + chunk * 2048;
        if (k < n0 * n1) {
            const long long ax0 = k / n1;
            const long long ax1 = k % n1;
            x_row[chunk] = *(const rx_vector<8, rx_f16>*)(x + ax0 * n1 + ax1);
            bias_row[chunk] = *(const rx_vector<8, rx_f16>*)(bias + ax1);
        }
    }
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        const long long k_1 = i + chunk * 2048;
        if (k_1 < n0 * n1) {
            const long long ax0_1 = k_1 / n1;
            const long long ax1_1 = k_1 % n1;
            rx_vector<8, rx_f16> out_part;
            rx_vector<8, unsigned char> flags_part;
            #pragma unroll
            for (int v = 0; v < 8; ++v) {
                const float sum_value = rx_f16_to_float(rx_float_to_f16(rx_f16_to_float(x_row[chunk].at[v]) + rx_f16_to_float(bias_row[chunk].at[v])));
                out_part.at[v] = rx_float_to_f16(rx_max(sum_value, 0.0f) * sum_value);
                flags_part.at[v] = 0.0f < sum_value;
            }
            *(rx_vector<8, rx_f16>*)(out + ax0_1 * n1 + ax1_1) = out_part;
            *(rx_vector<8, unsigned char>*)(flags + ax0_1 * n1 + ax1_1) = flags_part;
        }
    }
}

// biased: sum, out, flags
// from biased
// schedule elementwise: 2 x 8 elements per thread if extents are multiples of 8, otherwise 2 elements per thread, 2 axes
extern "C" __global__ void __launch_bounds__(256) biased_kernel_1(
    const rx_f16* x,
    const rx_f16* bias,
    rx_f16* out,
    unsigned char* flags,
    long long n0,
    long long n1) {
    const long long i = (long long)blockIdx.x * 512 + threadIdx.x;
    if (i >= n0 * n1) return;
    rx_f16 x_row[2];
    rx_f16 bias_row[2];
    // All loads are issued before the first use.
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        const long long k = i + chunk * 256;
        if (k < n0 * n1) {
            const long long ax0 = k / n1;
            const long long ax1 = k % n1;
            x_row[chunk] = x[ax0 * n1 + ax1];
            bias_row[chunk] = bias[ax1];
        }
    }
    #pragma unroll
    for (int chunk = 0; chunk < 2; ++chunk) {
        const long long k_1 = i + chunk * 256;
        if (k_1 < n0 * n1) {
            const long long ax0_1 = k_1 / n1;
            const long long ax1_1 = k_1 % n1;
            const float sum_value = rx_f16_to_float(rx_float_to_f16(rx_f16_to_float(x_row[chunk]) + rx_f16_to_float(bias_row[chunk])));
            out[ax0_1 * n1 + ax1_1] = rx_float_to_f16(rx_max(sum_value, 0.0f) * sum_value);
            flags[ax0_1 * n1 + ax1_1] = 0.0f < sum_value;
        }
    }
}

