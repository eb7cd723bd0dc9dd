//! Attention on tensor cores: each warp computes the scores, weights and sums of its rows in registers.
//!
//! Two neighbouring accumulators of `mma.sync` m16n8 (16 rows by 16 keys) have the layout of the left operand of the
//! next `mma.sync` m16n8k16. So the weights are converted to 16 bits and multiplied by the values without going through
//! shared memory. In an accumulator, lane `l` has the columns `l % 4 * 2` and `l % 4 * 2 + 1` of the rows `l / 4` and
//! `l / 4 + 8`; four lanes share a row.
//!
//! Reference: Dao 2023, "FlashAttention-2"; PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".

use super::kernel::UnitText;

/// The part of the CUDA text that is specific to blocks on tensor cores.
pub(super) const TEXT: UnitText = UnitText {
    declare: "
        const int $warp = threadIdx.x / 32, $lane = threadIdx.x % 32;
        float $sums[$FRAGMENTS][$WIDTH / 8][4] = {};
    ",
    multiply: "
        // Queries times keys.
        float $scores[$FRAGMENTS][$KEYS / 8][4] = {};
        #pragma unroll
        for (int $k = 0; $k < $DEPTH / 16; ++$k) {
            unsigned $of_q[$FRAGMENTS][4];
            #pragma unroll
            for (int $i = 0; $i < $FRAGMENTS; ++$i)
                rx_ldmatrix($of_q[$i], &$tile_q[(($warp * $FRAGMENTS + $i) * 16 + $lane % 16) * $STRIDE_Q + $k * 16 + $lane / 16 * 8]);
            #pragma unroll
            for (int $j = 0; $j < $KEYS / 16; ++$j) {
                unsigned $of_k[4];
                rx_ldmatrix($of_k, &$tile_k[($j * 16 + $lane / 16 * 8 + $lane % 8) * $STRIDE_K + $k * 16 + $lane / 8 % 2 * 8]);
                #pragma unroll
                for (int $i = 0; $i < $FRAGMENTS; ++$i) {
                    $MMA($scores[$i][2 * $j], $of_q[$i], $of_k);
                    $MMA($scores[$i][2 * $j + 1], $of_q[$i], $of_k + 2);
                }
            }
        }
    ",
    each_row: "
        #pragma unroll
        for (int $i = 0; $i < $FRAGMENTS * 2; ++$i) {
    ",
    row: "const long long $row = $row0 + ($warp * $FRAGMENTS * 2 + $i) * 8 + $lane / 4;",
    each_key: "
        #pragma unroll
        for (int $j = 0; $j < $KEYS / 4; ++$j) {
            const long long $key = $key0 + ($j / 2 * 8 + $lane % 4 * 2 + $j % 2);
            float& $product = $scores[$i / 2][$j / 2][$i % 2 * 2 + $j % 2];
    ",
    top: "
        $top = fmaxf($top, __shfl_xor_sync(0xffffffffu, $top, 1));
        $top = fmaxf($top, __shfl_xor_sync(0xffffffffu, $top, 2));
    ",
    exponentials: "
        #pragma unroll
        for (int $j = 0; $j < $WIDTH / 4; ++$j) $sums[$i / 2][$j / 2][$i % 2 * 2 + $j % 2] *= $carried;
        #pragma unroll
        for (int $j = 0; $j < $KEYS / 4; ++$j) {
            float& $exp = $scores[$i / 2][$j / 2][$i % 2 * 2 + $j % 2];
            $exp = rx_exp2(($exp - $base) * $LOG2E);
            $total[$i] += $exp;
        }
    ",
    weigh: "
        // Weights times values.
        #pragma unroll
        for (int $k = 0; $k < $KEYS / 16; ++$k) {
            unsigned $of_p[$FRAGMENTS][4];
            #pragma unroll
            for (int $i = 0; $i < $FRAGMENTS; ++$i) {
                #pragma unroll
                for (int $j = 0; $j < 4; ++$j)
                    $of_p[$i][$j] = $PAIR($scores[$i][2 * $k + $j / 2][$j % 2 * 2], $scores[$i][2 * $k + $j / 2][$j % 2 * 2 + 1]);
            }
            #pragma unroll
            for (int $j = 0; $j < $WIDTH / 16; ++$j) {
                unsigned $of_v[4];
                rx_ldmatrix_transposed($of_v, &$tile_v[($k * 16 + $lane % 16) * $STRIDE_V + $j * 16 + $lane / 16 * 8]);
                #pragma unroll
                for (int $i = 0; $i < $FRAGMENTS; ++$i) {
                    $MMA($sums[$i][2 * $j], $of_p[$i], $of_v);
                    $MMA($sums[$i][2 * $j + 1], $of_p[$i], $of_v + 2);
                }
            }
        }
    ",
    whole: "
        float $whole = $total[$i];
        $whole += __shfl_xor_sync(0xffffffffu, $whole, 1);
        $whole += __shfl_xor_sync(0xffffffffu, $whole, 2);
        if ($row >= $rows) continue;
    ",
    each_column: "
        #pragma unroll
        for (int $j = 0; $j < $WIDTH / 8; ++$j) {
            const long long $column0 = $j * 8 + $lane % 4 * 2;
    ",
    sum: "const float $value = $sums[$i / 2][$j][$i % 2 * 2 + $e]$SHARE;",
};
