// windows: out
// from windows
// schedule window: 8 outputs per thread along ax3: 10 loads instead of 24
extern "C" __global__ void __launch_bounds__(256) windows_kernel(const float* x, const float* w, float* out) {
    const int thread = blockIdx.x * 256 + threadIdx.x;
    if (thread >= 12544) return;
    const int ax1 = thread / 392;
    const int first_ax3 = thread / 56 % 7 * 8;
    const int ax4 = thread % 56;
    float sums[8] = {};
    #pragma unroll
    for (int k2 = 0; k2 < 3; ++k2) {
        float values[10] = {};
        // Load the inputs of the 8 outputs, each position once.
        #pragma unroll
        for (int at = 0; at < 10; ++at) {
            values[at] = first_ax3 + at - 1 >= 0 && first_ax3 + at - 1 < 56 && k2 + ax4 - 1 >= 0 && k2 + ax4 - 1 < 56 ? x[(ax1 * 56 + first_ax3 + at - 1) * 56 + k2 + ax4 - 1] : 0.0f;
        }
        #pragma unroll
        for (int k1 = 0; k1 < 3; ++k1) {
            const float weight = w[(ax1 * 3 + k1) * 3 + k2];
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                sums[i] += values[i + k1] * weight;
            }
        }
    }
    // Epilogue of the outputs.
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const long long out_ax1 = ax1;
        const long long out_ax3 = first_ax3 + i;
        const long long out_ax4 = ax4;
        const float out_value = sums[i];
        out[(out_ax1 * 56 + out_ax3) * 56 + out_ax4] = out_value;
    }
}

