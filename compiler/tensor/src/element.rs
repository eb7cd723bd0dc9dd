//! Element types: how integers wrap and how floats are rounded.

use crate::minifloat::{BFLOAT16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT16, Format};
use rx_base::DType;
use rx_base::dtype::TypeCode;

/// The type of a tensor's elements.
///
/// In computations an integer is an `i64` (a `uint64` above `i64::MAX` has the same bits) and a float is an `f64`,
/// which can represent every value of the narrower floats. In memory an element of less than 8 bits takes one byte. A
/// 4-bit integer is stored in that byte as the `int8` or `uint8` of the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// `bool`: a byte, where 0 is false and anything else true.
    Bool,
    /// `int4`.
    I4,
    /// `int8`.
    I8,
    /// `int16`.
    I16,
    /// `int32`.
    I32,
    /// `int64`.
    I64,
    /// `uint4`.
    U4,
    /// `uint8`.
    U8,
    /// `uint16`.
    U16,
    /// `uint32`.
    U32,
    /// `uint64`.
    U64,
    /// `float16`.
    F16,
    /// `bfloat16`.
    BF16,
    /// `float32`.
    F32,
    /// `float64`.
    F64,
    /// `float8_e4m3fn`.
    F8E4M3Fn,
    /// `float8_e5m2`.
    F8E5M2,
    /// `float4_e2m1fn`.
    F4E2M1Fn,
}

impl Element {
    /// Returns the element type of a dtype; `None` if tensors cannot have the dtype.
    pub fn of(dtype: DType) -> Option<Element> {
        if dtype.lanes != 1 {
            return None;
        }
        Some(match (dtype.code, dtype.bits) {
            (TypeCode::Bool, _) => Element::Bool,
            (TypeCode::Int, 4) => Element::I4,
            (TypeCode::Int, 8) => Element::I8,
            (TypeCode::Int, 16) => Element::I16,
            (TypeCode::Int, 32) => Element::I32,
            (TypeCode::Int, 64) => Element::I64,
            (TypeCode::UInt, 4) => Element::U4,
            (TypeCode::UInt, 8) => Element::U8,
            (TypeCode::UInt, 16) => Element::U16,
            (TypeCode::UInt, 32) => Element::U32,
            (TypeCode::UInt, 64) => Element::U64,
            (TypeCode::Float, 16) => Element::F16,
            (TypeCode::BFloat, 16) => Element::BF16,
            (TypeCode::Float, 32) => Element::F32,
            (TypeCode::Float, 64) => Element::F64,
            (TypeCode::Float8E4M3Fn, 8) => Element::F8E4M3Fn,
            (TypeCode::Float8E5M2, 8) => Element::F8E5M2,
            (TypeCode::Float4E2M1Fn, 4) => Element::F4E2M1Fn,
            _ => return None,
        })
    }

    /// The size of one element in memory, in bytes.
    pub const fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// The number of significant bits of one element; 8 for `bool`, which takes a whole byte.
    pub const fn bits(self) -> u32 {
        match self {
            Element::I4 | Element::U4 | Element::F4E2M1Fn => 4,
            Element::Bool | Element::I8 | Element::U8 | Element::F8E4M3Fn | Element::F8E5M2 => 8,
            Element::I16 | Element::U16 | Element::F16 | Element::BF16 => 16,
            Element::I32 | Element::U32 | Element::F32 => 32,
            Element::I64 | Element::U64 | Element::F64 => 64,
        }
    }

    /// The dtype of the arrays that represent such a tensor in files, value by value, because NumPy has no 4-bit types.
    /// `None` if files contain the element type itself, or its bits.
    pub const fn in_files(self) -> Option<DType> {
        match self {
            Element::I4 => Some(DType::INT8),
            Element::U4 => Some(DType::UINT8),
            Element::F4E2M1Fn => Some(DType::FLOAT32),
            _ => None,
        }
    }

    /// Whether elements are floats.
    pub const fn is_float(self) -> bool {
        matches!(self, Element::F32 | Element::F64) || self.format().is_some()
    }

    /// The format of floats that Rust has no arithmetic for.
    pub(crate) const fn format(self) -> Option<Format> {
        match self {
            Element::F16 => Some(FLOAT16),
            Element::BF16 => Some(BFLOAT16),
            Element::F8E4M3Fn => Some(FLOAT8_E4M3FN),
            Element::F8E5M2 => Some(FLOAT8_E5M2),
            Element::F4E2M1Fn => Some(FLOAT4_E2M1FN),
            _ => None,
        }
    }

    /// Returns the bits of the nearest float; for an integer element type, the bits of the truncated float.
    pub fn bits_of_float(self, value: f64) -> u64 {
        match self {
            Element::F32 => u64::from((value as f32).to_bits()),
            Element::F64 => value.to_bits(),
            _ => match self.format() {
                Some(format) => u64::from(format.encode(value)),
                None => int_of_float(value, self) as u64,
            },
        }
    }

    /// Returns the float with these bits; bits above the width are ignored. For an integer element type, returns the
    /// integer's value.
    pub fn float_of_bits(self, bits: u64) -> f64 {
        match self {
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::F64 => f64::from_bits(bits),
            Element::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Element::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
            _ => match self.format() {
                Some(format) => format.decode(bits as u32),
                None => float_of_int(self.wrap(bits as i64), self, Element::F64),
            },
        }
    }

    /// Wraps an integer to the range of the type: keeps the low bits. For example, 300 wraps to 44 in `uint8`. For
    /// `bool` the result is `value != 0`; for a float type it is the integer itself.
    #[inline]
    pub fn wrap(self, value: i64) -> i64 {
        match self {
            Element::I64 | Element::U64 => value,
            Element::I32 => i64::from(value as i32),
            Element::Bool => i64::from(value != 0),
            Element::I4 => value << 60 >> 60,
            Element::I8 => i64::from(value as i8),
            Element::I16 => i64::from(value as i16),
            Element::U4 => value & 15,
            Element::U8 => i64::from(value as u8),
            Element::U16 => i64::from(value as u16),
            Element::U32 => i64::from(value as u32),
            _ => value,
        }
    }

    /// Rounds to the nearest value, ties to even; for an integer element type, returns the value itself.
    #[inline]
    pub fn round(self, value: f64) -> f64 {
        match self {
            Element::F32 => f64::from(value as f32),
            Element::F64 => value,
            _ if self.is_float() => self.float_of_bits(self.bits_of_float(value)),
            _ => value,
        }
    }
}

/// Rounds to the nearest value of a dtype, ties to even; returns the value itself if no tensor can have the dtype.
pub fn round(value: f64, dtype: DType) -> f64 {
    Element::of(dtype).map_or(value, |element| element.round(value))
}

/// Converts an integer of element type `from` to a float of element type `to`, with a single rounding.
pub fn float_of_int(value: i64, from: Element, to: Element) -> f64 {
    let magnitude = if from == Element::U64 { value as u64 } else { value.unsigned_abs() };
    let negative = from != Element::U64 && value < 0;
    let float = if magnitude < 1 << 53 || to == Element::F64 {
        magnitude as f64
    } else {
        // Keep 53 bits and make the last of them a sticky bit, which is set if any lost bit was. So the following
        // rounding to a narrower float gives the correct result.
        (magnitude >> 11 | u64::from(magnitude & 0x7ff != 0)) as f64 * 2048.0
    };
    to.round(if negative { -float } else { float })
}

/// Converts a float to an integer of element type `to`: truncates, and saturates at the ends of the range; NaN becomes
/// 0. For `bool` the result is `value != 0`.
///
/// In C a value beyond the range is undefined behaviour; CUDA and Rust saturate.
pub fn int_of_float(value: f64, to: Element) -> i64 {
    match to {
        Element::Bool => i64::from(value != 0.0),
        Element::I4 => i64::from(value as i8).clamp(-8, 7),
        Element::U4 => i64::from(value as u8).min(15),
        Element::I8 => i64::from(value as i8),
        Element::I16 => i64::from(value as i16),
        Element::I32 => i64::from(value as i32),
        Element::U8 => i64::from(value as u8),
        Element::U16 => i64::from(value as u16),
        Element::U32 => i64::from(value as u32),
        Element::U64 => value as u64 as i64,
        _ => value as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_to_any_width() {
        assert_eq!(DType::INT8.wrap(128), -128);
        assert_eq!(DType::UINT8.wrap(-1), 255);
        assert_eq!(DType::INT32.wrap(1 << 40), 0);
        assert_eq!(DType::UINT64.wrap(-1), -1);
        assert_eq!(DType::BOOL.wrap(2), 1);
        assert_eq!(DType::parse("int4").map(|dtype| dtype.wrap(9)), Some(-7));
        let nibbles = ["int4", "uint4"].map(|name| DType::parse(name).expect("a dtype"));
        for dtype in nibbles.into_iter().chain([
            DType::INT8,
            DType::UINT16,
            DType::INT32,
            DType::UINT32,
            DType::INT64,
            DType::BOOL,
        ]) {
            for value in [i64::MIN, -40_000, -9, -1, 0, 1, 7, 8, 15, 16, 200, 70_000, i64::MAX] {
                assert_eq!(Element::of(dtype).map(|element| element.wrap(value)), Some(dtype.wrap(value)));
            }
        }
    }

    #[test]
    fn floats_round_to_their_dtype() {
        assert_eq!(round(0.1, DType::FLOAT32), f64::from(0.1f32));
        assert_eq!(round(0.1, DType::FLOAT64), 0.1);
        assert_eq!(round(1.0 + 1.0 / 256.0, DType::BFLOAT16), 1.0);
        assert_eq!(round(1e6, DType::FLOAT16), f64::INFINITY);
    }

    #[test]
    fn integers_become_floats_by_one_rounding() {
        // A little more than 2^62 + 2^38, which is halfway between two float32 values. `f64` cannot represent the
        // difference, so rounding twice would be wrong.
        let value = (1i64 << 62) + (1 << 38) + 1;
        assert_eq!(float_of_int(value, Element::I64, Element::F32), f64::from(value as f32));
        assert_eq!(float_of_int(-value, Element::I64, Element::F32), f64::from(-value as f32));
        assert_eq!(float_of_int(-1, Element::U64, Element::F64), u64::MAX as f64);
        assert_eq!(float_of_int(i64::MIN, Element::I64, Element::F32), f64::from(i64::MIN as f32));
        assert_eq!(float_of_int(70_000, Element::I32, Element::F16), f64::INFINITY);
    }

    #[test]
    fn floats_become_integers_within_the_range() {
        assert_eq!(int_of_float(-1.9, Element::I32), -1);
        assert_eq!(int_of_float(300.0, Element::I8), 127);
        assert_eq!(int_of_float(-5.0, Element::U8), 0);
        assert_eq!([9.5, -9.5, f64::NAN].map(|value| int_of_float(value, Element::I4)), [7, -8, 0]);
        assert_eq!([17.5, -1.0, 300.0].map(|value| int_of_float(value, Element::U4)), [15, 0, 15]);
        assert_eq!(int_of_float(f64::NAN, Element::I64), 0);
        assert_eq!(int_of_float(f64::NAN, Element::Bool), 1);
        assert_eq!(int_of_float(1.5e19, Element::U64) as u64, 15_000_000_000_000_000_000);
    }
}
