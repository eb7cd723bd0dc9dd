//! Element types of tensors and scalars (TVM's `DataType`).

use std::fmt;

/// The type code of a [`DType`], which determines the meaning of its bits. Each 8-bit or smaller float format has a
/// separate code, as in DLPack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeCode {
    /// Signed integer.
    Int,
    /// Unsigned integer.
    UInt,
    /// IEEE float of 16, 32 or 64 bits.
    Float,
    /// bfloat16.
    BFloat,
    /// Boolean: 8 bits in memory, 1 bit in `DType::bits`.
    Bool,
    /// Opaque pointer.
    Handle,
    /// `float8_e3m4`.
    Float8E3M4,
    /// `float8_e4m3`.
    Float8E4M3,
    /// `float8_e4m3b11fnuz`.
    Float8E4M3B11Fnuz,
    /// `float8_e4m3fn`.
    Float8E4M3Fn,
    /// `float8_e4m3fnuz`.
    Float8E4M3Fnuz,
    /// `float8_e5m2`.
    Float8E5M2,
    /// `float8_e5m2fnuz`.
    Float8E5M2Fnuz,
    /// `float8_e8m0fnu`.
    Float8E8M0Fnu,
    /// `float6_e2m3fn`.
    Float6E2M3Fn,
    /// `float6_e3m2fn`.
    Float6E3M2Fn,
    /// `float4_e2m1fn`.
    Float4E2M1Fn,
    /// A type registered by the host program, `custom[name]`. rx does not interpret it.
    Custom,
}

/// An element type: type code, bits of a lane, and number of lanes. `float32x4` has four lanes. A scalable vector has a
/// negative number of lanes, the negated multiplier of `vscale`, as in TVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType {
    /// The type code.
    pub code: TypeCode,
    /// The number of bits of one lane.
    pub bits: u8,
    /// The number of lanes; 1 for scalars.
    pub lanes: i16,
}

const SMALL_FLOATS: &[(&str, TypeCode, u8)] = &[
    ("float8_e3m4", TypeCode::Float8E3M4, 8),
    ("float8_e4m3", TypeCode::Float8E4M3, 8),
    ("float8_e4m3b11fnuz", TypeCode::Float8E4M3B11Fnuz, 8),
    ("float8_e4m3fn", TypeCode::Float8E4M3Fn, 8),
    ("float8_e4m3fnuz", TypeCode::Float8E4M3Fnuz, 8),
    ("float8_e5m2", TypeCode::Float8E5M2, 8),
    ("float8_e5m2fnuz", TypeCode::Float8E5M2Fnuz, 8),
    ("float8_e8m0fnu", TypeCode::Float8E8M0Fnu, 8),
    ("float6_e2m3fn", TypeCode::Float6E2M3Fn, 6),
    ("float6_e3m2fn", TypeCode::Float6E3M2Fn, 6),
    ("float4_e2m1fn", TypeCode::Float4E2M1Fn, 4),
];

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident = $code:ident $bits:literal;)*) => {
        impl DType { $($(#[$doc])* pub const $name: DType = DType { code: TypeCode::$code, bits: $bits, lanes: 1 };)* }
    };
}
dtypes! {
    /// `bool`.
    BOOL = Bool 1;
    /// `int8`.
    INT8 = Int 8;
    /// `int16`.
    INT16 = Int 16;
    /// `int32`.
    INT32 = Int 32;
    /// `int64`.
    INT64 = Int 64;
    /// `uint8`.
    UINT8 = UInt 8;
    /// `uint16`.
    UINT16 = UInt 16;
    /// `uint32`.
    UINT32 = UInt 32;
    /// `uint64`.
    UINT64 = UInt 64;
    /// `float16`.
    FLOAT16 = Float 16;
    /// `bfloat16`.
    BFLOAT16 = BFloat 16;
    /// `float32`.
    FLOAT32 = Float 32;
    /// `float64`.
    FLOAT64 = Float 64;
    /// `handle`.
    HANDLE = Handle 64;
}

impl DType {
    /// The names of the common dtypes, most frequent first, for suggestions.
    pub const USUAL: [&str; 15] = [
        "float32",
        "float16",
        "bfloat16",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
        "float8_e4m3fn",
        "float8_e5m2",
    ];

    /// Parses a dtype in TVM's spelling: `float32`, `int8x4`, `bool`, `uint1` (which is `bool`), `float8_e4m3fn`,
    /// `handle`.
    ///
    /// Returns `None` for any other text, also for the empty string and `void`: `void` means *no dtype*, and the caller
    /// must handle it.
    pub fn parse(text: &str) -> Option<DType> {
        if let Some(rest) = text.strip_prefix("custom[") {
            return rest.contains(']').then_some(DType { code: TypeCode::Custom, bits: 0, lanes: 1 });
        }
        let (base, lanes) = split_lanes(text)?;
        if let Some((_, code, bits)) = SMALL_FLOATS.iter().find(|(spelling, ..)| *spelling == base) {
            return Some(DType { code: *code, bits: *bits, lanes });
        }
        let (code, digits, default) = [
            ("bfloat", TypeCode::BFloat, 16),
            ("float", TypeCode::Float, 32),
            ("uint", TypeCode::UInt, 32),
            ("int", TypeCode::Int, 32),
            ("bool", TypeCode::Bool, 1),
            ("handle", TypeCode::Handle, 64),
        ]
        .into_iter()
        .find_map(|(prefix, code, default)| base.strip_prefix(prefix).map(|digits| (code, digits, default)))?;
        let bits: u8 = if digits.is_empty() { default } else { decimal(digits)? };
        let valid = match code {
            // TVM still accepts `float8`, from the time when there was only one 8-bit float.
            TypeCode::Float => matches!(bits, 8 | 16 | 32 | 64),
            TypeCode::BFloat => bits == 16,
            TypeCode::Bool => digits.is_empty() || bits == 1 || bits == 8,
            TypeCode::Handle => digits.is_empty() || bits == 64,
            _ => matches!(bits, 1 | 2 | 4 | 8 | 16 | 32 | 64),
        };
        if !valid {
            return None;
        }
        match (code, bits) {
            (TypeCode::UInt, 1) | (TypeCode::Bool, _) => Some(DType { code: TypeCode::Bool, bits: 1, lanes }),
            _ => Some(DType { code, bits, lanes }),
        }
    }

    /// Whether values are floating-point numbers of any width.
    pub fn is_float(self) -> bool {
        !matches!(self.code, TypeCode::Int | TypeCode::UInt | TypeCode::Bool | TypeCode::Handle | TypeCode::Custom)
    }

    /// Whether values are signed or unsigned integers. `bool` is not an integer type.
    pub fn is_int(self) -> bool {
        matches!(self.code, TypeCode::Int | TypeCode::UInt)
    }

    /// Whether this is `bool`.
    pub fn is_bool(self) -> bool {
        self.code == TypeCode::Bool
    }

    /// Wraps `value` to the range of this dtype: keeps the low bits for an integer type, and tests for nonzero for
    /// `bool`. For example, 200 as `int8` is −56. A `uint64` is returned as an `i64` with the same bits. For other
    /// dtypes returns `value` unchanged.
    pub fn wrap(self, value: i64) -> i64 {
        let unused = 64u32.saturating_sub(u32::from(self.bits));
        match self.code {
            TypeCode::Bool => i64::from(value != 0),
            // INVARIANT: a shift of less than 64, as no integer dtype has 0 bits; one that has keeps nothing.
            TypeCode::Int => value.checked_shl(unused).map_or(0, |high| high >> unused),
            TypeCode::UInt => {
                value.cast_unsigned().checked_shl(unused).map_or(0, |high| (high >> unused).cast_signed())
            }
            _ => value,
        }
    }

    /// The size of one element in memory in bytes, all lanes, rounded up to whole bytes.
    pub fn bytes(self) -> u64 {
        (u64::from(self.bits) * u64::from(self.lanes.unsigned_abs())).div_ceil(8)
    }
}

/// Splits a trailing `xN` or `xvscalexN` off a dtype name.
fn split_lanes(text: &str) -> Option<(&str, i16)> {
    // A shortcut for names without an `x`: this function is called for every name after `R.` or `T.`.
    if !text.as_bytes().contains(&b'x') {
        return Some((text, 1));
    }
    if let Some((base, lanes)) = text.split_once("xvscalex") {
        return Some((base, -decimal::<i16>(lanes)?));
    }
    match text.rsplit_once('x') {
        Some((base, lanes)) if lanes.bytes().all(|b| b.is_ascii_digit()) => {
            let lanes = decimal::<i16>(lanes)?;
            (lanes > 0).then_some((base, lanes))
        }
        _ => Some((text, 1)),
    }
}

/// Parses decimal digits. Rejects signs, blanks and the empty text.
fn decimal<N: std::str::FromStr>(digits: &str) -> Option<N> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((spelling, ..)) = SMALL_FLOATS.iter().find(|(_, code, _)| *code == self.code) {
            f.write_str(spelling)?;
        } else {
            match self.code {
                TypeCode::Int => write!(f, "int{}", self.bits)?,
                TypeCode::UInt => write!(f, "uint{}", self.bits)?,
                TypeCode::Float => write!(f, "float{}", self.bits)?,
                TypeCode::BFloat => write!(f, "bfloat{}", self.bits)?,
                TypeCode::Bool => f.write_str("bool")?,
                TypeCode::Handle => f.write_str("handle")?,
                _ => f.write_str("custom")?,
            }
        }
        match self.lanes {
            1 => Ok(()),
            lanes if lanes < 0 => write!(f, "xvscalex{}", -i32::from(lanes)),
            lanes => write!(f, "x{lanes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn names_read_and_print_alike() {
        for text in
            ["float32", "int8x4", "bool", "bfloat16", "uint64", "float8_e4m3fn", "handle", "float16xvscalex4", "float8"]
        {
            assert_eq!(DType::parse(text).map(|d| d.to_string()).as_deref(), Some(text));
        }
        assert_eq!(DType::parse("uint1"), Some(DType::BOOL));
        for text in ["", "void", "float33", "flaot32", "int", "int32x0", "float32x", "int-8", "x4"] {
            let read = DType::parse(text);
            assert!(read.is_none() || text == "int", "{text} read as {read:?}");
        }
    }
}
