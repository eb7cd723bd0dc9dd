//! Products of a matrix and a vector, which memory bounds.

/// Lanes that are summed apart: enough to hide the latency of additions at any vector width.
const LANES: usize = 32;

macro_rules! for_widest_vectors {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $result:ty)? $body:block) => {
        $(#[$doc])*
        fn $name($($arg: $ty),*) $(-> $result)? {
            #[inline(always)]
            fn plain($($arg: $ty),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn of_512_bits($($arg: $ty),*) $(-> $result)? { plain($($arg),*) }
                #[target_feature(enable = "avx2,fma")]
                fn of_256_bits($($arg: $ty),*) $(-> $result)? { plain($($arg),*) }
                if std::arch::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the host has what the function needs.
                    return unsafe { of_512_bits($($arg),*) };
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: as above.
                    return unsafe { of_256_bits($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

for_widest_vectors! {
    /// The sum of the products of elements.
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        let mut sums = [0f32; LANES];
        let (left, left_rest) = a.as_chunks::<LANES>();
        let (right, right_rest) = b.as_chunks::<LANES>();
        for (left, right) in left.iter().zip(right) {
            for lane in 0..LANES {
                sums[lane] += left[lane] * right[lane];
            }
        }
        for (lane, (left, right)) in left_rest.iter().zip(right_rest).enumerate() {
            sums[lane] += left * right;
        }
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                sums[lane] += sums[lane + width];
            }
            width /= 2;
        }
        sums[0]
    }
}

for_widest_vectors! {
    /// `sums += column * factor`.
    fn add_scaled(sums: &mut [f32], column: &[f32], factor: f32) -> () {
        for (sum, element) in sums.iter_mut().zip(column) {
            *sum += element * factor;
        }
    }
}

/// `y = A x`, or `y += A x`, for `A` of `m` rows and `k` columns; `row` and `column` are its strides in elements, one of
/// which is 1, and `x_step` and `y_step` those of the vectors.
///
/// # Safety
/// Every element so named lies in memory that may be read, and of `y` written; nothing of `y` is in `A` or `x`.
#[expect(clippy::too_many_arguments, reason = "a matrix and two vectors, as BLAS has them")]
pub(crate) unsafe fn times(
    m: usize,
    k: usize,
    a: *const f32,
    row: i64,
    column: i64,
    x: *const f32,
    x_step: i64,
    y: *mut f32,
    y_step: i64,
    accumulate: bool,
) {
    let x: Vec<f32> = (0..k as i64)
        // SAFETY: the caller's promise.
        .map(|at| unsafe { *x.wrapping_offset((at * x_step) as isize) })
        .collect();
    let finish = |at: usize, value: f32| {
        let target = y.wrapping_offset((at as i64 * y_step) as isize);
        // SAFETY: the caller's promise.
        unsafe { *target = if accumulate { *target + value } else { value } };
    };
    // SAFETY: the caller's promise: `count` elements from `(i, j)` on, along the axis whose stride is 1.
    let part = |i: usize, j: usize, count: usize| unsafe {
        std::slice::from_raw_parts(a.wrapping_offset((i as i64 * row + j as i64 * column) as isize), count)
    };
    if column == 1 {
        for at in 0..m {
            finish(at, dot(part(at, 0, k), &x));
        }
        return;
    }
    // Columns stand together: sums of a strip of rows that stays in the first cache.
    let mut sums = [0f32; 1024];
    let mut first = 0;
    while first < m {
        let count = sums.len().min(m - first);
        let strip = &mut sums[..count];
        strip.fill(0.0);
        for (at, factor) in x.iter().enumerate() {
            add_scaled(strip, part(first, at, count), *factor);
        }
        for (at, sum) in strip.iter().enumerate() {
            finish(first + at, *sum);
        }
        first += count;
    }
}
