// windows: sum, out
// from windows
// schedule window: 4 outputs per thread along ax4: 6 loads instead of 12; vectors of 8 elements along ax1; epilogue: 1 elementwise statement
extern "C" __global__ void __launch_bounds__(256) windows_kernel(
    const rx_bf16* x,
    const rx_bf16* w,
    const float* bias,
    float* out) {
    const int thread = blockIdx.x * 256 + threadIdx.x;
    if (thread >= 3136) return;
    const int ax3 = thread / 56;
    const int first_ax4 = thread / 4 % 14 * 4;
    const int first_ax1 = thread % 4 * 8;
    float sums[4][8] = {};
    #pragma unroll 1
    for (int k1 = 0; k1 < 3; ++k1) {
        float values[6][8] = {};
        // Load the inputs of the 4 outputs, each position once.
        #pragma unroll
        for (int at = 0; at < 6; ++at) {
            rx_pack<rx_bf16, 8> elements = {};
            if (k1 + ax3 - 1 >= 0 && k1 + ax3 - 1 < 56 && first_ax4 + at - 1 >= 0 && first_ax4 + at - 1 < 56) elements = *(const rx_pack<rx_bf16, 8>*)&x[((k1 + ax3 - 1) * 56 + first_ax4 + at - 1) * 32 + first_ax1];
            #pragma unroll
            for (int v = 0; v < 8; ++v) values[at][v] = rx_bf16_to_float(elements.at[v]);
        }
        #pragma unroll
        for (int k2 = 0; k2 < 3; ++k2) {
            float weight[8];
            const rx_pack<rx_bf16, 8> weights = *(const rx_pack<rx_bf16, 8>*)&w[(k1 * 3 + k2) * 32 + first_ax1];
            #pragma unroll
            for (int v = 0; v < 8; ++v) weight[v] = rx_bf16_to_float(weights.at[v]);
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                #pragma unroll
                for (int v = 0; v < 8; ++v) {
                    sums[i][v] += values[i + k2][v] * weight[v];
                }
            }
        }
    }
    // Epilogue of the outputs.
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const long long out_ax3 = ax3;
        const long long out_ax4 = first_ax4 + i;
        const long long out_ax1 = first_ax1;
        rx_pack<float, 8> out_pack;
        #pragma unroll
        for (int v = 0; v < 8; ++v) {
            const float sum_value = sums[i][v];
            out_pack.at[v] = rx_max(sum_value + bias[(out_ax1 + v)], 0.0f);
        }
        *(rx_pack<float, 8>*)&out[(out_ax3 * 56 + out_ax4) * 32 + out_ax1] = out_pack;
    }
}

