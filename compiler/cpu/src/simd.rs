//! `float32` vectors of the host's width, for routines that are compiled once for each width.
#![expect(clippy::needless_range_loop, reason = "lanes and vectors are counted, so that all loops read alike")]

/// A vector of `float32`. Its functions may only be called on a host that has the instruction set of the type.
pub(crate) trait Vector: Copy {
    /// The number of lanes.
    const LANES: usize;

    /// Returns a vector with this value in all lanes.
    ///
    /// # Safety
    /// The host has the type's instructions.
    unsafe fn splat(value: f32) -> Self;

    /// Loads consecutive elements.
    ///
    /// # Safety
    /// As many elements as there are lanes must be readable; the host has the type's instructions.
    unsafe fn load(from: *const f32) -> Self;

    /// Loads element `i` into lane `i` where bit `i` of the mask is set. The other lanes are 0 and their elements are
    /// not accessed. For example, with 4 lanes and the mask `0b1010`, the result is `[0, from[1], 0, from[3]]`.
    ///
    /// # Safety
    /// The elements in the mask must be readable; the host has the type's instructions.
    unsafe fn load_part(from: *const f32, mask: u32) -> Self;

    /// As [`Vector::load_part`], but loads element `2 * i` into lane `i` where bit `2 * i` of the mask is set. For
    /// example, with 4 lanes and the mask `0b10100`, the result is `[0, from[2], from[4], 0]`.
    ///
    /// # Safety
    /// As [`Vector::load_part`].
    unsafe fn load_every_other(from: *const f32, mask: u32) -> Self;

    /// Stores the lanes to consecutive elements.
    ///
    /// # Safety
    /// As many elements as there are lanes must be writable; the host has the type's instructions.
    unsafe fn store(self, to: *mut f32);

    /// Stores lane `i` to element `i` where bit `i` of the mask is set. The other elements are not accessed.
    ///
    /// # Safety
    /// The elements in the mask must be writable; the host has the type's instructions.
    unsafe fn store_part(self, to: *mut f32, mask: u32);

    /// Returns `self + a · b` in each lane: with a single rounding for the x86 vectors, with two for arrays.
    ///
    /// # Safety
    /// The host has the type's instructions.
    unsafe fn add_product(self, a: Self, b: Self) -> Self;

    /// Returns the sum of the lanes. The order of the additions depends on the type.
    ///
    /// # Safety
    /// The host has the type's instructions.
    unsafe fn sum(self) -> f32;
}

/// A computation that is generic over the vector width.
pub(crate) trait Routine {
    /// The result.
    type Output;

    /// Runs the computation with vectors of type `V`.
    ///
    /// # Safety
    /// The host has the instructions of `V`. Implementations are `#[inline(always)]`, so that they are compiled with
    /// these instructions enabled.
    unsafe fn run<V: Vector>(self) -> Self::Output;
}

/// Runs a routine with the widest vectors that the host supports: 16 lanes with AVX-512F, 8 with AVX2 and FMA,
/// otherwise arrays of 4 elements.
pub(crate) fn widest<R: Routine>(routine: R) -> R::Output {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected;
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the host has the instructions that the function requires.
            return unsafe { x86::of_512_bits(routine) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { x86::of_256_bits(routine) };
        }
    }
    // SAFETY: arrays require no special instructions.
    unsafe { routine.run::<[f32; 4]>() }
}

impl Vector for [f32; 4] {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, mask: u32) -> Self {
        let mut lanes = [0.0; 4];
        for lane in 0..4 {
            if mask >> lane & 1 == 1 {
                // SAFETY: the caller's promise.
                lanes[lane] = unsafe { *from.wrapping_add(lane) };
            }
        }
        lanes
    }

    #[inline(always)]
    unsafe fn load_every_other(from: *const f32, mask: u32) -> Self {
        let mut lanes = [0.0; 4];
        for lane in 0..4 {
            if mask >> (2 * lane) & 1 == 1 {
                // SAFETY: the caller's promise.
                lanes[lane] = unsafe { *from.wrapping_add(2 * lane) };
            }
        }
        lanes
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, mask: u32) {
        for lane in 0..4 {
            if mask >> lane & 1 == 1 {
                // SAFETY: the caller's promise.
                unsafe { *to.wrapping_add(lane) = self[lane] };
            }
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + a[lane] * b[lane])
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        (self[0] + self[2]) + (self[1] + self[3])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Routine, Vector};
    use std::arch::x86_64::*;

    /// Runs a routine with vectors of 512 bits.
    ///
    /// # Safety
    /// The host has AVX-512F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn of_512_bits<R: Routine>(routine: R) -> R::Output {
        // SAFETY: the caller's promise.
        unsafe { routine.run::<__m512>() }
    }

    /// Runs a routine with vectors of 256 bits.
    ///
    /// # Safety
    /// The host has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn of_256_bits<R: Routine>(routine: R) -> R::Output {
        // SAFETY: the caller's promise.
        unsafe { routine.run::<__m256>() }
    }

    impl Vector for __m512 {
        const LANES: usize = 16;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: the caller's promise, here and below.
            unsafe { _mm512_set1_ps(value) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: as above.
            unsafe { _mm512_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn load_part(from: *const f32, mask: u32) -> Self {
            // SAFETY: as above.
            unsafe { _mm512_maskz_loadu_ps(mask as u16, from) }
        }

        #[inline(always)]
        unsafe fn load_every_other(from: *const f32, mask: u32) -> Self {
            // SAFETY: as above.
            unsafe {
                let low = _mm512_maskz_loadu_ps(mask as u16, from);
                let high = _mm512_maskz_loadu_ps((mask >> 16) as u16, from.wrapping_add(16));
                let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
                _mm512_permutex2var_ps(low, even, high)
            }
        }

        #[inline(always)]
        unsafe fn store_part(self, to: *mut f32, mask: u32) {
            // SAFETY: as above.
            unsafe { _mm512_mask_storeu_ps(to, mask as u16, self) }
        }

        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            // SAFETY: as above.
            unsafe { _mm512_fmadd_ps(a, b, self) }
        }

        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: as above.
            unsafe { _mm512_reduce_add_ps(self) }
        }
    }

    /// Returns a vector in which lane `i` has all bits set if bit `i` of the mask is set, and is 0 otherwise.
    ///
    /// # Safety
    /// The host has AVX2.
    #[inline(always)]
    unsafe fn lanes_of(mask: u32) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
        }
    }

    impl Vector for __m256 {
        const LANES: usize = 8;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: the caller's promise, here and below.
            unsafe { _mm256_set1_ps(value) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: as above.
            unsafe { _mm256_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn load_part(from: *const f32, mask: u32) -> Self {
            // SAFETY: as above.
            unsafe { _mm256_maskload_ps(from, lanes_of(mask)) }
        }

        #[inline(always)]
        unsafe fn load_every_other(from: *const f32, mask: u32) -> Self {
            // SAFETY: as above.
            unsafe {
                let low = _mm256_maskload_ps(from, lanes_of(mask));
                let high = _mm256_maskload_ps(from.wrapping_add(8), lanes_of(mask >> 8));
                // In each 128-bit half, select elements 0 and 2 of both operands; then put the pairs of the halves in
                // order.
                let pairs = _mm256_castps_pd(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
                _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(pairs))
            }
        }

        #[inline(always)]
        unsafe fn store_part(self, to: *mut f32, mask: u32) {
            // SAFETY: as above.
            unsafe { _mm256_maskstore_ps(to, lanes_of(mask), self) }
        }

        #[inline(always)]
        unsafe fn add_product(self, a: Self, b: Self) -> Self {
            // SAFETY: as above.
            unsafe { _mm256_fmadd_ps(a, b, self) }
        }

        #[inline(always)]
        unsafe fn sum(self) -> f32 {
            // SAFETY: as above.
            unsafe {
                let half = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
                let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
                _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Routine, Vector};

    /// A routine that uses every vector operation, for tests.
    struct Everything<'a>(&'a [f32; 40]);

    impl Routine for Everything<'_> {
        type Output = (usize, [Vec<f32>; 4], f32);

        #[inline(always)]
        unsafe fn run<V: Vector>(self) -> Self::Output {
            let mut parts = [const { Vec::new() }; 4];
            for part in &mut parts {
                part.resize(V::LANES, -1.0);
            }
            // SAFETY: the caller's promise; 40 elements are more than two vectors, and every part is one vector long.
            unsafe {
                let from = self.0.as_ptr();
                let sum = V::splat(0.5).add_product(V::load(from), V::load(from.add(1)));
                sum.store(parts[0].as_mut_ptr());
                V::load_part(from.add(2), 0b1010).store(parts[1].as_mut_ptr());
                V::load_every_other(from.add(3), 0b10100).store(parts[2].as_mut_ptr());
                V::load(from).store_part(parts[3].as_mut_ptr(), 0b0110);
                (V::LANES, parts, V::load(from).sum())
            }
        }
    }

    fn is_right((lanes, [products, part, every_other, stored], sum): (usize, [Vec<f32>; 4], f32), numbers: &[f32; 40]) {
        let expected = |of: &dyn Fn(usize) -> f32| (0..lanes).map(of).collect::<Vec<f32>>();
        assert_eq!(products, expected(&|lane| 0.5 + numbers[lane] * numbers[lane + 1]));
        assert_eq!(part, expected(&|lane| if lane == 1 || lane == 3 { numbers[2 + lane] } else { 0.0 }));
        assert_eq!(every_other, expected(&|lane| if lane == 1 || lane == 2 { numbers[3 + 2 * lane] } else { 0.0 }));
        assert_eq!(stored, expected(&|lane| if lane == 1 || lane == 2 { numbers[lane] } else { -1.0 }));
        assert_eq!(sum, numbers[..lanes].iter().sum::<f32>());
    }

    #[test]
    fn vectors_of_every_width_that_the_host_has_compute_the_same() {
        // Small integers, so that sums are exact in any order.
        let numbers = std::array::from_fn(|at| (at * 7 % 11) as f32 - 5.0);
        // SAFETY: arrays require no special instructions.
        is_right(unsafe { Everything(&numbers).run::<[f32; 4]>() }, &numbers);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected;
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the host has the instructions that the function requires.
                is_right(unsafe { super::x86::of_256_bits(Everything(&numbers)) }, &numbers);
            }
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: as above.
                is_right(unsafe { super::x86::of_512_bits(Everything(&numbers)) }, &numbers);
            }
        }
    }
}
