//! Floats of 4, 8 and 16 bits: conversion of their bits to and from `f64`, which can represent all their values.

/// A binary float format of less than 32 bits, with one sign bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    special: Special,
}

/// The encodings that are not finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// The largest exponent encodes infinity and NaN, as in IEEE 754.
    Ieee,
    /// All ones is NaN; there is no infinity.
    Nan,
    /// None. Values beyond the range become the largest value with their sign, and NaN becomes the largest positive
    /// value, as in PTX's `cvt.satfinite`.
    None,
}

pub(crate) const FLOAT16: Format = Format { exponent_bits: 5, mantissa_bits: 10, special: Special::Ieee };
pub(crate) const BFLOAT16: Format = Format { exponent_bits: 8, mantissa_bits: 7, special: Special::Ieee };
pub(crate) const FLOAT8_E5M2: Format = Format { exponent_bits: 5, mantissa_bits: 2, special: Special::Ieee };
pub(crate) const FLOAT4_E2M1FN: Format = Format { exponent_bits: 2, mantissa_bits: 1, special: Special::None };
pub(crate) const FLOAT8_E4M3FN: Format = Format { exponent_bits: 4, mantissa_bits: 3, special: Special::Nan };

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    const fn sign_bit(self) -> u32 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// The first encoding after the finite ones: infinity, or NaN if there is no infinity.
    const fn overflow(self) -> u32 {
        match self.special {
            Special::Ieee => ((1 << self.exponent_bits) - 1) << self.mantissa_bits,
            Special::Nan => self.sign_bit() - 1,
            Special::None => self.sign_bit(),
        }
    }

    /// The encoding of values beyond the range, including infinities.
    const fn beyond(self) -> u32 {
        match self.special {
            Special::Ieee | Special::Nan => self.overflow(),
            Special::None => self.sign_bit() - 1,
        }
    }

    /// The encoding of a NaN with this sign bit.
    const fn nan(self, sign: u32) -> u32 {
        match self.special {
            // The quiet NaN.
            Special::Ieee => sign | self.overflow() | 1 << (self.mantissa_bits - 1),
            Special::Nan => sign | self.overflow(),
            Special::None => self.beyond(),
        }
    }

    /// Returns the bits of the nearest value, ties to even. Values beyond the range become infinity, NaN in formats
    /// without infinity, and the largest value in formats without both.
    pub(crate) fn encode(self, value: f64) -> u32 {
        let bits = value.to_bits();
        let sign = if bits >> 63 != 0 { self.sign_bit() } else { 0 };
        if value.is_nan() {
            return self.nan(sign);
        }
        if value.is_infinite() {
            return sign | self.beyond();
        }
        let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
        if exponent == -1023 {
            // Zero, or a value so small that every format rounds it to zero.
            return sign;
        }
        let smallest = 1 - self.bias();
        let significand = bits & ((1 << 52) - 1) | 1 << 52;
        let shift = 52 - self.mantissa_bits + (smallest - exponent).max(0) as u32;
        if shift > 53 {
            return sign;
        }
        let kept = significand >> shift;
        let lost = significand & ((1 << shift) - 1);
        let half = 1u64 << (shift - 1);
        let rounded = kept + u64::from(lost > half || (lost == half && kept & 1 == 1));
        // Encodings ascend with the values, so a carry out of the significand gives the first value of the next
        // exponent.
        let binade = (exponent - smallest).max(0) as u64;
        let code = (binade << self.mantissa_bits) + rounded;
        sign | code.min(u64::from(self.beyond())) as u32
    }

    /// Returns the value of the bits.
    pub(crate) fn decode(self, bits: u32) -> f64 {
        let sign = if bits & self.sign_bit() != 0 { -1.0 } else { 1.0 };
        let code = bits & (self.sign_bit() - 1);
        if code >= self.overflow() {
            return if self.special == Special::Ieee && code == self.overflow() {
                sign * f64::INFINITY
            } else {
                f64::NAN
            };
        }
        let exponent = (code >> self.mantissa_bits) as i32;
        let fraction = code & ((1 << self.mantissa_bits) - 1);
        let significand = if exponent == 0 { fraction } else { fraction | 1 << self.mantissa_bits };
        let power = exponent.max(1) - self.bias() - self.mantissa_bits as i32;
        sign * f64::from(significand) * power_of_two(power)
    }
}

/// Returns `2^power` for a power that is the exponent of a normal `f64`: at least -1022.
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_the_code_of_its_value() {
        for (format, bits) in [(FLOAT16, 16), (BFLOAT16, 16), (FLOAT8_E5M2, 8), (FLOAT8_E4M3FN, 8), (FLOAT4_E2M1FN, 4)]
        {
            for code in 0..1u32 << bits {
                let value = format.decode(code);
                if !value.is_nan() {
                    assert_eq!(format.encode(value), code, "{format:?} {code:#x}");
                } else {
                    assert!(format.decode(format.encode(value)).is_nan());
                }
            }
        }
    }

    #[test]
    fn half_precision_agrees_with_the_half_crate() {
        for code in 0..=u16::MAX {
            let (ours, theirs) = (FLOAT16.decode(u32::from(code)), half::f16::from_bits(code).to_f64());
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan());
            let (ours, theirs) = (BFLOAT16.decode(u32::from(code)), half::bf16::from_bits(code).to_f64());
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan());
        }
    }

    #[test]
    fn rounding_is_to_nearest_with_ties_to_even_and_once_only() {
        let round = |format: Format, value: f64| format.decode(format.encode(value));
        assert_eq!(round(FLOAT16, 2049.0), 2048.0);
        assert_eq!(round(FLOAT16, 2051.0), 2052.0);
        // Rounding to float32 first and then to float16 would give 2048.
        assert_eq!(round(FLOAT16, 2049.0 + 1e-12), 2050.0);
        assert_eq!(round(FLOAT16, 65519.9), 65504.0);
        assert_eq!(round(FLOAT16, 65520.0), f64::INFINITY);
        assert_eq!(round(FLOAT16, 2f64.powi(-25)), 0.0);
        assert_eq!(round(FLOAT16, 2f64.powi(-25) * 1.001), 2f64.powi(-24));
        assert_eq!(round(FLOAT16, 2f64.powi(-14) * 0.99999), 2f64.powi(-14));
        assert_eq!(round(FLOAT8_E4M3FN, 464.0), 448.0);
        assert!(round(FLOAT8_E4M3FN, 465.0).is_nan());
        assert!(round(FLOAT8_E4M3FN, f64::NEG_INFINITY).is_nan());
        assert_eq!(round(FLOAT8_E5M2, -1e9), f64::NEG_INFINITY);
        assert_eq!(FLOAT16.encode(-0.0), 0x8000);
        assert_eq!(FLOAT16.encode(-5e-324), 0x8000);
    }

    #[test]
    fn four_bit_floats_are_held_at_the_ends_of_their_range() {
        // The results of ml_dtypes 0.5, except for NaN.
        let values = [0.25, 0.26, 0.74, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.01, 7.0, 1e9, f64::INFINITY, 1e-9];
        let codes = values.map(|value| FLOAT4_E2M1FN.encode(value));
        assert_eq!(codes, [0, 1, 1, 2, 2, 4, 4, 6, 6, 7, 7, 7, 7, 0]);
        assert_eq!(values.map(|value| FLOAT4_E2M1FN.encode(-value)), codes.map(|code| code | 8));
        assert_eq!([f64::NAN, -f64::NAN].map(|value| FLOAT4_E2M1FN.encode(value)), [7, 7]);
        let decoded = [0, 1, 2, 3, 4, 5, 6, 7, 9].map(|code| FLOAT4_E2M1FN.decode(code));
        assert_eq!(decoded, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.5]);
    }
}
