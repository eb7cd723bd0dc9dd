//! Attention without tensor cores: tiles of `float32` in shared memory, multiplied by fused multiply-adds.
//!
//! Sixteen neighbouring threads, a *line*, compute the same rows. In the product with the keys, thread `l` of a line
//! has the keys `l`, `l + 16`, `l + 32`, …; in the product with the values, it has groups of `PACK` neighbouring
//! columns. The weights go from one distribution to the other through shared memory.

use super::kernel::UnitText;

/// The part of the CUDA text that is specific to blocks without tensor cores.
pub(super) const TEXT: UnitText = UnitText {
    declare: "
        float* $tile_p = $tile_v + $KEYS * $STRIDE_V;
        const int $line_of_16 = threadIdx.x / 16, $lane = threadIdx.x % 16;
        float $sums[$OWN][$OWN_COLUMNS] = {};
    ",
    multiply: "
        // Queries times keys.
        float $scores[$OWN][$KEYS / 16] = {};
        #pragma unroll 2
        for (int $k = 0; $k < $DEPTH; $k += 4) {
            rx_pack<float, 4> $of_q[$OWN], $of_k[$KEYS / 16];
            #pragma unroll
            for (int $i = 0; $i < $OWN; ++$i)
                $of_q[$i] = *(const rx_pack<float, 4>*)&$tile_q[($line_of_16 * $OWN + $i) * $STRIDE_Q + $k];
            #pragma unroll
            for (int $j = 0; $j < $KEYS / 16; ++$j)
                $of_k[$j] = *(const rx_pack<float, 4>*)&$tile_k[($lane + $j * 16) * $STRIDE_K + $k];
            #pragma unroll
            for (int $i = 0; $i < $OWN; ++$i) {
                #pragma unroll
                for (int $j = 0; $j < $KEYS / 16; ++$j) {
                    #pragma unroll
                    for (int $x = 0; $x < 4; ++$x) $scores[$i][$j] += $of_q[$i].at[$x] * $of_k[$j].at[$x];
                }
            }
        }
    ",
    each_row: "
        #pragma unroll
        for (int $i = 0; $i < $OWN; ++$i) {
    ",
    row: "const long long $row = $row0 + $line_of_16 * $OWN + $i;",
    each_key: "
        #pragma unroll
        for (int $j = 0; $j < $KEYS / 16; ++$j) {
            const long long $key = $key0 + $lane + $j * 16;
            float& $product = $scores[$i][$j];
    ",
    top: "
        #pragma unroll
        for (int $x = 1; $x < 16; $x *= 2) $top = fmaxf($top, __shfl_xor_sync(0xffffffffu, $top, $x));
    ",
    exponentials: "
        #pragma unroll
        for (int $j = 0; $j < $OWN_COLUMNS; ++$j) $sums[$i][$j] *= $carried;
        #pragma unroll
        for (int $j = 0; $j < $KEYS / 16; ++$j) {
            const float $exp = rx_exp2(($scores[$i][$j] - $base) * $LOG2E);
            $total[$i] += $exp;
            $tile_p[($line_of_16 * $OWN + $i) * $STRIDE_P + $lane + $j * 16] = $exp;
        }
    ",
    weigh: "
        // Weights times values.
        #pragma unroll 1
        for (int $k = 0; $k < $KEYS; $k += 4) {
            rx_pack<float, 4> $of_p[$OWN];
            #pragma unroll
            for (int $i = 0; $i < $OWN; ++$i)
                $of_p[$i] = *(const rx_pack<float, 4>*)&$tile_p[($line_of_16 * $OWN + $i) * $STRIDE_P + $k];
            #pragma unroll
            for (int $x = 0; $x < 4; ++$x) {
                #pragma unroll
                for (int $j = 0; $j < $OWN_COLUMNS / $PACK; ++$j) {
                    const rx_pack<float, $PACK> $of_v =
                        *(const rx_pack<float, $PACK>*)&$tile_v[($k + $x) * $STRIDE_V + ($j * 16 + $lane) * $PACK];
                    #pragma unroll
                    for (int $i = 0; $i < $OWN; ++$i) {
                        #pragma unroll
                        for (int $y = 0; $y < $PACK; ++$y) $sums[$i][$j * $PACK + $y] += $of_p[$i].at[$x] * $of_v.at[$y];
                    }
                }
            }
        }
    ",
    whole: "
        float $whole = $total[$i];
        #pragma unroll
        for (int $x = 1; $x < 16; $x *= 2) $whole += __shfl_xor_sync(0xffffffffu, $whole, $x);
        if ($row >= $rows) continue;
    ",
    each_column: "
        #pragma unroll
        for (int $j = 0; $j < $OWN_COLUMNS / $PACK; ++$j) {
            const long long $column0 = ($j * 16 + $lane) * $PACK;
    ",
    sum: "const float $value = $sums[$i][$j * $PACK + $e]$SHARE;",
};
