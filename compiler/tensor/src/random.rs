//! Random tensors from a seed. The values are the same in every version, and are easy to reproduce elsewhere
//! (`tests/scripts/rx_random.py`).
//!
//! Element `e` (its place in the row-major order, from 0) of parameter `p` (from 0) under seed `s` is made of one 64-bit
//! number. With all arithmetic modulo 2^64, `g = 0x9E3779B97F4A7C15` and SplitMix64's finalizer
//!
//! ```text
//! mix(z):  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
//!          z = (z ^ (z >> 27)) * 0x94D049BB133111EB
//!          z ^ (z >> 31)
//! ```
//!
//! the number is `v = mix(mix(s + g*(p+1)) + g*(e+1))`, and `u = (v >> 41) / 2^23`, from 0 to below 1, exact in `float32`.
//!
//! - Floats of rank ≥ 2: `(2*u - 1) * a` in `float32`, where `a` is `sqrt(3 / fan_in)` computed in `float64` and rounded to
//!   `float32`, and `fan_in` is the product of all extents but the first, at least 1. So for a convolution's weights
//!   `(O, I, H, W)` it is `I*H*W`, for a matrix its second extent. Uniform in `[-a, a)`, of variance `1/fan_in`.
//! - Floats of rank ≤ 1: `u + 0.5` in `float32`: uniform in `[0.5, 1.5)`.
//! - Both are then rounded to the dtype where that is not `float32`.
//! - Integers with a limit: `v mod limit`, the limit being at least 1 and no more than one above the dtype's largest value.
//! - Integers without a limit, and `bool`: `v >> 63`, that is 0 or 1.

use crate::element::Element;
use crate::error::TensorError;
use crate::tensor::{Scalar, Tensor};
use rx_base::DType;

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The random numbers of one parameter.
#[derive(Clone, Copy, Debug)]
struct Source {
    key: u64,
}

impl Source {
    fn new(seed: u64, param: u64) -> Source {
        Source { key: mix(seed.wrapping_add(STEP.wrapping_mul(param.wrapping_add(1)))) }
    }

    fn bits(self, element: u64) -> u64 {
        mix(self.key.wrapping_add(STEP.wrapping_mul(element.wrapping_add(1))))
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Maps 23 bits to a float in [0, 1).
fn unit(bits: u64) -> f32 {
    (bits >> 41) as f32 / 8_388_608.0
}

/// Returns the tensor of parameter number `param` (from 0) under a seed. Integers are less than `limit`, the smallest
/// extent that they index; without a limit they are 0 or 1.
///
/// # Errors
/// Like [`Tensor::zeros`].
pub fn draw(seed: u64, param: u64, dtype: DType, shape: &[i64], limit: Option<i64>) -> Result<Tensor, TensorError> {
    let mut tensor = Tensor::zeros(dtype, shape)?;
    let source = Source::new(seed, param);
    let (element, count) = (tensor.element(), tensor.len());
    if element.is_float() {
        let bound = (shape.len() >= 2).then(|| bound(shape));
        let value = |at: usize| {
            let unit = unit(source.bits(at as u64));
            bound.map_or(unit + 0.5, |bound| (2.0 * unit - 1.0) * bound)
        };
        if let Some(values) = tensor.as_mut_slice::<f32>() {
            values.iter_mut().enumerate().for_each(|(at, to)| *to = value(at));
        } else if let Some(values) = tensor.as_mut_slice::<half::f16>() {
            values.iter_mut().enumerate().for_each(|(at, to)| *to = half::f16::from_f32(value(at)));
        } else if let Some(values) = tensor.as_mut_slice::<half::bf16>() {
            values.iter_mut().enumerate().for_each(|(at, to)| *to = half::bf16::from_f32(value(at)));
        } else {
            (0..count).for_each(|at| tensor.set(at, Scalar::Float(value(at).into())));
        }
        return Ok(tensor);
    }
    let limit = limit.filter(|_| element != Element::Bool).map(|limit| largest_limit(dtype, limit));
    for at in 0..count {
        let bits = source.bits(at as u64);
        let value = limit.map_or(bits >> 63, |limit| bits % limit);
        tensor.set(at, Scalar::Int(value as i64));
    }
    Ok(tensor)
}

/// Returns the bound `a` of the range `[-a, a)` of floats of rank ≥ 2.
fn bound(shape: &[i64]) -> f32 {
    let fan_in: f64 = shape.iter().skip(1).map(|extent| *extent as f64).product();
    (3.0 / fan_in.max(1.0)).sqrt() as f32
}

/// Returns the limit, at least 1 and at most one above the largest value of the dtype.
fn largest_limit(dtype: DType, limit: i64) -> u64 {
    let last = limit.saturating_sub(1).max(0);
    let fits = dtype.wrap(last) == last;
    // The largest value of an integer dtype that is too narrow for the limit; such a dtype has at most 32 bits.
    let largest = || (1i64 << (u32::from(dtype.bits) - u32::from(dtype.wrap(-1) == -1))) - 1;
    (if fits { last } else { largest() }) as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(shape: &[i64], seed: u64, param: u64) -> Vec<f32> {
        let tensor = draw(seed, param, DType::FLOAT32, shape, None).expect("a tensor");
        tensor.as_slice::<f32>().expect("float32").to_vec()
    }

    fn integers(dtype: &str, count: i64, limit: Option<i64>) -> Vec<i64> {
        let dtype = DType::parse(dtype).expect("a dtype");
        let tensor = draw(7, 3, dtype, &[count], limit).expect("a tensor");
        (0..tensor.len()).filter_map(|at| tensor.get(at)?.as_int()).collect()
    }

    #[test]
    fn fan_in_sets_the_variance() {
        let values = values(&[64, 8, 3, 3], 1, 2);
        let bound = (3f64 / 72.0).sqrt() as f32;
        assert!(values.iter().all(|value| (-bound..bound).contains(value)));
        let squares: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
        let variance = squares / values.len() as f64;
        assert!((variance * 72.0 - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn the_bits_are_those_of_the_script() {
        let bits =
            |tensor: Tensor| tensor.as_slice::<f32>().map(|values| values[..4].iter().map(|x| x.to_bits()).collect());
        let drawn = |seed, param, shape: &[i64]| draw(seed, param, DType::FLOAT32, shape, None).ok().and_then(bits);
        assert_eq!(drawn(0, 0, &[2, 3, 5]), Some(vec![0x3e0ba062, 0x3e3849ee, 0xbdcec3c1, 0x3e0f421d]));
        assert_eq!(drawn(42, 5, &[6]), Some(vec![0x3f10f2c4, 0x3f8f7d08, 0x3fbbfadc, 0x3f871256]));
        let half = draw(1, 2, DType::FLOAT16, &[3, 7], None).expect("a tensor");
        assert_eq!(half.as_slice::<u16>().map(|bits| &bits[..4]), Some(&[0x3259, 0xae1e, 0x32f4, 0xb8a1][..]));
        assert_eq!(integers("int64", 8, Some(1000)), [132, 756, 806, 976, 551, 930, 676, 220]);
        let flags = draw(u64::MAX, 0, DType::INT32, &[8], None).expect("a tensor");
        assert_eq!(flags.as_slice::<i32>(), Some(&[0, 1, 1, 1, 1, 0, 1, 1][..]));
    }

    #[test]
    fn halves_are_the_singles_rounded() {
        let singles = values(&[3000, 7], 5, 1);
        for dtype in [DType::FLOAT16, DType::BFLOAT16] {
            let drawn = draw(5, 1, dtype, &[3000, 7], None).expect("a tensor");
            let mut rounded = Tensor::zeros(dtype, &[3000, 7]).expect("a tensor");
            singles.iter().enumerate().for_each(|(at, value)| rounded.set(at, Scalar::Float(f64::from(*value))));
            assert_eq!(drawn.bytes(), rounded.bytes(), "{dtype}");
        }
    }

    #[test]
    fn vectors_are_around_one_and_integers_below_their_limit() {
        assert!(values(&[5000], 3, 1).iter().all(|value| (0.5..1.5).contains(value)));
        let drawn = integers("int64", 1000, Some(10));
        assert!((0..10).all(|wanted| drawn.contains(&wanted)) && drawn.iter().all(|value| (0..10).contains(value)));
        assert!(integers("int8", 5000, Some(1000)).iter().all(|value| (0..128).contains(value)));
        assert!(integers("uint8", 5000, Some(1000)).contains(&255));
        assert!(integers("int32", 1000, None).iter().all(|value| (0..2).contains(value)));
        assert!(integers("bool", 1000, Some(10)).iter().all(|value| (0..2).contains(value)));
        assert_eq!(integers("int64", 2, Some(0)), [0, 0]);
    }
}
