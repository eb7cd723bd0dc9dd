//! Products of a few rows with a matrix that is contiguous along the reduction axis, such as a transposed weight.
//!
//! The `gemm` library packs both factors, which is worthwhile for many rows only. Here each line of the matrix is read
//! once for four rows, and every element of the result has a separate sum.

use crate::simd::{Routine, Vector, widest};

/// The largest number of rows that is computed here. More rows are left to the library.
pub(crate) const FEW: usize = 16;

/// The number of rows, and the number of lines of the matrix, whose dot products are computed together. With 4 rows
/// there are 16 sums: enough to hide the latency of additions, and few enough to fit in the 32 registers of AVX-512.
const BLOCK: usize = 4;

type Sums = [[f32; BLOCK]; BLOCK];

/// The operands of the dot products of the first `count` rows with each line.
struct Block<'a> {
    count: usize,
    rows: [&'a [f32]; BLOCK],
    lines: [&'a [f32]; BLOCK],
}

impl Routine for Block<'_> {
    type Output = Sums;

    #[inline(always)]
    unsafe fn run<V: Vector>(self) -> Sums {
        // SAFETY: the caller's promise.
        unsafe {
            match self.count {
                1 => self.sums::<V, 1>(),
                2 => self.sums::<V, 2>(),
                3 => self.sums::<V, 3>(),
                _ => self.sums::<V, BLOCK>(),
            }
        }
    }
}

impl Block<'_> {
    /// Returns the dot product of row `i` and line `j` as `[i][j]`. The results are 0 for `i >= M`.
    ///
    /// # Safety
    /// The host has the instructions of `V`.
    #[inline(always)]
    unsafe fn sums<V: Vector, const M: usize>(&self) -> Sums {
        let length = self.lines[0].len();
        let (rows, lines) = (self.rows.map(|row| &row[..length]), self.lines.map(|line| &line[..length]));
        let mut sums = [[0f32; BLOCK]; BLOCK];
        // SAFETY: the caller's promise; every element that is loaded is one of `length`.
        // Loops, since closures would be compiled without the vector instructions.
        unsafe {
            let mut lanes = [[V::splat(0.0); BLOCK]; M];
            let whole = length - length % V::LANES;
            for at in (0..whole).step_by(V::LANES) {
                let mut elements = [V::splat(0.0); BLOCK];
                for line in 0..BLOCK {
                    elements[line] = V::load(lines[line].as_ptr().add(at));
                }
                for row in 0..M {
                    let factor = V::load(rows[row].as_ptr().add(at));
                    for line in 0..BLOCK {
                        lanes[row][line] = lanes[row][line].add_product(factor, elements[line]);
                    }
                }
            }
            for row in 0..M {
                for line in 0..BLOCK {
                    let rest = rows[row][whole..].iter().zip(&lines[line][whole..]);
                    sums[row][line] = rest.fold(lanes[row][line].sum(), |sum, (a, b)| sum + a * b);
                }
            }
        }
        sums
    }
}

/// The layout of lines in memory: the first element, the stride between lines and the stride within a line, both in
/// elements.
#[derive(Clone, Copy)]
pub(crate) struct Lines<T> {
    pub(crate) first: T,
    pub(crate) outer: i64,
    pub(crate) inner: i64,
}

/// Computes `result[i, j] = Σ rows[i, l] · lines[j, l]`, or adds the sum to the result, for `m` rows and `n` lines of
/// `k` elements. `m` and `n` are positive, and the elements of a line are contiguous.
///
/// # Safety
/// All these elements must be readable, and those of the result writable; the result must not overlap the operands.
pub(crate) unsafe fn times(
    [m, n, k]: [usize; 3],
    rows: Lines<*const f32>,
    lines: Lines<*const f32>,
    result: Lines<*mut f32>,
    accumulate: bool,
) {
    debug_assert_eq!(lines.inner, 1);
    let place = |of: (i64, i64), i: usize, j: usize| (i as i64 * of.0 + j as i64 * of.1) as isize;
    let dense: Vec<f32> = (0..m * k)
        // SAFETY: the caller's promise.
        .map(|at| unsafe { *rows.first.wrapping_offset(place((rows.outer, rows.inner), at / k, at % k)) })
        .collect();
    // SAFETY: the caller's promise.
    let line = |at: usize| unsafe {
        std::slice::from_raw_parts(lines.first.wrapping_offset(place((lines.outer, 1), at, 0)), k)
    };
    for first_line in (0..n).step_by(BLOCK) {
        // A block that extends beyond the last line or row repeats that line or row; the sums of the repeats are
        // discarded.
        let of_lines: [&[f32]; BLOCK] = std::array::from_fn(|at| line((first_line + at).min(n - 1)));
        for first_row in (0..m).step_by(BLOCK) {
            let of_rows = std::array::from_fn(|at| {
                let row = (first_row + at).min(m - 1);
                &dense[row * k..(row + 1) * k]
            });
            let count = (m - first_row).min(BLOCK);
            let sums = widest(Block { count, rows: of_rows, lines: of_lines });
            for (row, sums) in sums.iter().enumerate().take(count) {
                for (at, sum) in sums.iter().enumerate().take(n - first_line) {
                    let target = result.first.wrapping_offset(place(
                        (result.outer, result.inner),
                        first_row + row,
                        first_line + at,
                    ));
                    // SAFETY: the caller's promise.
                    unsafe { *target = if accumulate { *target + sum } else { *sum } };
                }
            }
        }
    }
}
