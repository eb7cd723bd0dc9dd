//! Matrix-vector products for matrices with contiguous columns, which are memory-bound.
#![expect(clippy::needless_range_loop, reason = "lanes and vectors are counted, so that all loops read alike")]

use crate::simd::{Routine, Vector, widest};

/// The number of columns that are processed together, so that each partial sum is loaded and stored once for all of
/// them.
const BLOCK: usize = 4;

/// The number of rows that are processed together: their sums fit in the L1 cache.
const STRIP: usize = 1024;

/// `sums[i] += Σ columns[j][i] · factors[j]` for the first `count` columns, which are as long as the sums.
struct Columns<'a> {
    sums: &'a mut [f32],
    count: usize,
    columns: [&'a [f32]; BLOCK],
    factors: [f32; BLOCK],
}

impl Routine for Columns<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.count {
                1 => self.add::<V, 1>(),
                2 => self.add::<V, 2>(),
                3 => self.add::<V, 3>(),
                _ => self.add::<V, BLOCK>(),
            }
        }
    }
}

impl Columns<'_> {
    /// Adds the first `N` columns, times their factors, to the sums.
    ///
    /// # Safety
    /// The host has the instructions of `V`.
    #[inline(always)]
    unsafe fn add<V: Vector, const N: usize>(self) {
        let length = self.columns[..N].iter().fold(self.sums.len(), |length, column| length.min(column.len()));
        let whole = length - length % V::LANES;
        // SAFETY: the caller's promise; every element that is accessed is one of `length`.
        // Loops, since closures may be compiled without the vector instructions.
        unsafe {
            let mut factors = [V::splat(0.0); N];
            for at in 0..N {
                factors[at] = V::splat(self.factors[at]);
            }
            for first in (0..whole).step_by(V::LANES) {
                let mut sum = V::load(self.sums.as_ptr().add(first));
                for at in 0..N {
                    sum = sum.add_product(V::load(self.columns[at].as_ptr().add(first)), factors[at]);
                }
                sum.store(self.sums.as_mut_ptr().add(first));
            }
        }
        for (column, factor) in self.columns[..N].iter().zip(self.factors) {
            for (sum, element) in self.sums[whole..].iter_mut().zip(&column[whole..]) {
                *sum += element * factor;
            }
        }
    }
}

/// Computes `y = A x`, or `y += A x`, for a matrix `A` of `m` rows and `k` columns with contiguous columns. `column`,
/// `x_step` and `y_step` are strides in elements.
///
/// # Safety
/// All these elements must be readable, and those of `y` writable; `y` must not overlap `A` or `x`.
pub(crate) unsafe fn times(
    [m, k]: [usize; 2],
    (a, column): (*const f32, i64),
    (x, x_step): (*const f32, i64),
    (y, y_step): (*mut f32, i64),
    accumulate: bool,
) {
    let mut sums = [0f32; STRIP];
    for first in (0..m).step_by(STRIP) {
        let count = STRIP.min(m - first);
        let strip = &mut sums[..count];
        strip.fill(0.0);
        for block in (0..k).step_by(BLOCK) {
            let count = BLOCK.min(k - block);
            let (mut columns, mut factors) = ([&[][..]; BLOCK], [0f32; BLOCK]);
            for at in 0..count {
                let from = (block + at) as i64;
                let start = a.wrapping_offset((first as i64 + from * column) as isize);
                // SAFETY: the caller's promise: as many elements of a column, and one of the vector.
                unsafe {
                    columns[at] = std::slice::from_raw_parts(start, strip.len());
                    factors[at] = *x.wrapping_offset((from * x_step) as isize);
                }
            }
            widest(Columns { sums: strip, count, columns, factors });
        }
        for (at, sum) in strip.iter().enumerate() {
            let target = y.wrapping_offset(((first + at) as i64 * y_step) as isize);
            // SAFETY: the caller's promise.
            unsafe { *target = if accumulate { *target + sum } else { *sum } };
        }
    }
}
