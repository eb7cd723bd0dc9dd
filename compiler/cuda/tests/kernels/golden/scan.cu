// cumsum: cumsum, out
// from cumsum
// schedule scan: 32 lanes per row, 1 x 8 elements per thread at a time
extern "C" __global__ void __launch_bounds__(128) cumsum_kernel(const rx_f16* data, rx_f16* out) {
    const int lane = threadIdx.x % 32;
    const int at = (int)blockIdx.x * 4 + threadIdx.x / 32;
    const bool is_row = at < 6;
    const int row = is_row ? at : 6 - 1;
    float scan_row[8];
    float carry = 0.0f;
    const int k = lane * 8;
    const rx_vector<8, rx_f16> data_part = *(const rx_vector<8, rx_f16>*)(data + row * 256 + k);
    #pragma unroll
    for (int v = 0; v < 8; ++v) {
        scan_row[v] = rx_f16_to_float(data_part.at[v]);
    }
    // Inclusive scan: in the thread, across the lanes, across the block.
    float sum = 0.0f;
    float before[1];
    #pragma unroll
    for (int v = 1; v < 8; ++v) scan_row[v] = scan_row[v - 1] + scan_row[v];
    before[0] = sum;
    float own = scan_row[7];
    #pragma unroll
    for (int by = 1; by < 32; by *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, own, by);
        if (lane >= by) own = other + own;
    }
    const float left = __shfl_up_sync(0xffffffffu, own, 1);
    if (lane > 0) before[0] = sum + left;
    const float whole = __shfl_sync(0xffffffffu, own, 31);
    sum = sum + whole;
    const float all_before = carry;
    carry = carry + sum;
    before[0] = all_before + before[0];
    #pragma unroll
    for (int v = 0; v < 8; ++v) scan_row[v] = before[0] + scan_row[v];
    const int k_1 = lane * 8;
    rx_vector<8, rx_f16> out_part;
    #pragma unroll
    for (int v = 0; v < 8; ++v) {
        const float scan_value = scan_row[v];
        out_part.at[v] = rx_float_to_f16(scan_value);
    }
    if (is_row) *(rx_vector<8, rx_f16>*)(out + row * 256 + k_1) = out_part;
}

