//! TVM's serialization of tensors, in base64 (TVM `3rdparty/tvm-ffi/src/ffi/extra/serialization.cc`;
//! `NDArrayNode::Save` in older versions): header, extents, number of bytes, bytes, all little-endian.
//!
//! The crate `base64` is not used: this module reads a header without decoding the data after it, and accepts line
//! breaks between digits.

use rx_base::DType;
use rx_base::dtype::TypeCode;

/// The magic number at the start of a serialized tensor.
const MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

/// DLPack's device type of host memory.
const CPU: u32 = 1;

/// The header of a serialized tensor.
pub struct Header {
    /// The extents.
    pub shape: Vec<i64>,
    /// The element type; `None` for a type that rx does not support.
    pub dtype: Option<DType>,
}

/// Reads the header of a tensor of at most `max_dims` dims, and checks that the text is long enough for the data. The
/// data is not decoded.
pub fn header(base64: &str, max_dims: usize) -> Result<Header, String> {
    read(base64, max_dims).map(|(header, ..)| header)
}

/// Reads a tensor of at most `max_dims` dims; returns its header and its bytes, little-endian.
pub fn data(base64: &str, max_dims: usize) -> Result<(Header, Vec<u8>), String> {
    let (header, mut bytes, size) = read(base64, max_dims)?;
    if let Some(dtype) = header.dtype.filter(|dtype| is_packed(*dtype)) {
        return Err(format!(
            "its tensor is {dtype}, of which TVM packs several elements in a byte; only others are read"
        ));
    }
    // The header gives the number of bytes; `read` has checked that the text is long enough.
    let contents: Option<Vec<u8>> = (0..size).map(|_| bytes.byte()).collect();
    Ok((header, contents.ok_or("its tensor is not valid base64")?))
}

/// Reads a tensor's header. Returns it with the reader positioned after it, and the number of bytes of data.
fn read(base64: &str, max_dims: usize) -> Result<(Header, Bytes<'_>, u64), String> {
    const CUT_SHORT: &str = "its tensor is cut short";
    let mut bytes = Bytes { rest: base64.bytes(), bits: 0, count: 0 };
    if bytes.number(8).ok_or(CUT_SHORT)? != MAGIC {
        return Err("its tensor is none".to_owned());
    }
    // A reserved number, then the device type and index.
    bytes.number(8).and_then(|_| bytes.number(8)).ok_or(CUT_SHORT)?;
    let ndim = bytes.number(4).ok_or(CUT_SHORT)?;
    let code = bytes.number(1).ok_or(CUT_SHORT)?;
    let bits = bytes.number(1).ok_or(CUT_SHORT)?;
    let lanes = bytes.number(2).ok_or(CUT_SHORT)?;
    if ndim > max_dims as u64 {
        return Err(format!("its tensor has {ndim} dims"));
    }
    let mut shape = Vec::new();
    for _ in 0..ndim {
        let dim = bytes.number(8).ok_or(CUT_SHORT)?.cast_signed();
        if dim < 0 {
            return Err(format!("its tensor has a dim of {dim}"));
        }
        shape.push(dim);
    }
    let size = bytes.number(8).ok_or(CUT_SHORT)?;
    let total = size.saturating_add(8 * (5 + ndim));
    let needed = total.div_ceil(3).saturating_mul(4);
    // The padding of the last group may be missing.
    if (base64.len() as u64).saturating_add(2) < needed {
        return Err(CUT_SHORT.to_owned());
    }
    Ok((Header { shape, dtype: dtype(code, bits, lanes) }, bytes, size))
}

/// Whether TVM packs several elements of this type in a byte. rx stores one element a byte.
fn is_packed(dtype: DType) -> bool {
    dtype.bits < 8 && !dtype.is_bool()
}

/// Converts DLPack's type code, bits and lanes to an element type.
fn dtype(code: u64, bits: u64, lanes: u64) -> Option<DType> {
    let code = match (code, bits) {
        (1, 1) | (6, _) => TypeCode::Bool,
        (0, _) => TypeCode::Int,
        (1, _) => TypeCode::UInt,
        (2, _) => TypeCode::Float,
        (3, _) => TypeCode::Handle,
        (4, _) => TypeCode::BFloat,
        (7, _) => TypeCode::Float8E3M4,
        (8, _) => TypeCode::Float8E4M3,
        (9, _) => TypeCode::Float8E4M3B11Fnuz,
        (10, _) => TypeCode::Float8E4M3Fn,
        (11, _) => TypeCode::Float8E4M3Fnuz,
        (12, _) => TypeCode::Float8E5M2,
        (13, _) => TypeCode::Float8E5M2Fnuz,
        (14, _) => TypeCode::Float8E8M0Fnu,
        (15, _) => TypeCode::Float6E2M3Fn,
        (16, _) => TypeCode::Float6E3M2Fn,
        (17, _) => TypeCode::Float4E2M1Fn,
        _ => return None,
    };
    let bits = if code == TypeCode::Bool { 1 } else { u8::try_from(bits).ok()? };
    // The number of lanes of a scalable vector is negative, in two's complement.
    let lanes = u16::try_from(lanes).ok()?.cast_signed();
    Some(DType { code, bits, lanes })
}

/// Serializes a tensor of row-major, little-endian elements as base64.
///
/// Returns `None` if the dtype has no DLPack code, or if TVM packs its elements.
pub fn write(shape: &[i64], dtype: DType, bytes: &[u8]) -> Option<String> {
    if is_packed(dtype) {
        return None;
    }
    let mut header: Vec<u8> = Vec::with_capacity(40 + 8 * shape.len());
    header.extend(MAGIC.to_le_bytes());
    header.extend(0u64.to_le_bytes());
    header.extend(CPU.to_le_bytes());
    header.extend(0u32.to_le_bytes());
    header.extend(u32::try_from(shape.len()).ok()?.to_le_bytes());
    let (code, bits) = numbers(dtype)?;
    header.extend([code, bits]);
    header.extend(dtype.lanes.to_le_bytes());
    shape.iter().for_each(|extent| header.extend(extent.to_le_bytes()));
    header.extend(u64::try_from(bytes.len()).ok()?.to_le_bytes());
    Some(base64(header.iter().chain(bytes).copied(), header.len() + bytes.len()))
}

/// Returns DLPack's type code of the dtype, and the number of bits to write.
fn numbers(dtype: DType) -> Option<(u8, u8)> {
    // A boolean is stored in a byte.
    let bits = if dtype.code == TypeCode::Bool { 8 } else { dtype.bits };
    let code = (0..=17u8).find(|code| {
        let known = self::dtype(u64::from(*code), u64::from(bits), 1);
        known.is_some_and(|known| known.code == dtype.code && known.bits == dtype.bits)
    })?;
    Some((code, bits))
}

/// Encodes `count` bytes as base64 with padding.
fn base64(bytes: impl Iterator<Item = u8>, count: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32| char::from(DIGITS.get((bits & 63) as usize).copied().unwrap_or_default());
    let mut text = String::with_capacity(count.div_ceil(3) * 4);
    let mut bytes = bytes.map(u32::from);
    while let Some(first) = bytes.next() {
        let (second, third) = (bytes.next(), bytes.next());
        let bits = first << 16 | second.unwrap_or_default() << 8 | third.unwrap_or_default();
        text.push(digit(bits >> 18));
        text.push(digit(bits >> 12));
        text.push(if second.is_some() { digit(bits >> 6) } else { '=' });
        text.push(if third.is_some() { digit(bits) } else { '=' });
    }
    text
}

/// A reader that decodes a base64 text lazily, byte by byte.
struct Bytes<'t> {
    rest: std::str::Bytes<'t>,
    bits: u32,
    count: u32,
}

impl Bytes<'_> {
    /// Reads a little-endian number of up to eight bytes.
    fn number(&mut self, bytes: u32) -> Option<u64> {
        let mut number = 0;
        for at in 0..bytes {
            number |= u64::from(self.byte()?) << (8 * at);
        }
        Some(number)
    }

    fn byte(&mut self) -> Option<u8> {
        while self.count < 8 {
            let digit = match self.rest.next()? {
                byte @ b'A'..=b'Z' => byte - b'A',
                byte @ b'a'..=b'z' => byte - b'a' + 26,
                byte @ b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'\n' | b'\r' | b' ' => continue,
                _ => return None,
            };
            self.bits = (self.bits << 6 | u32::from(digit)) & 0xFFFF;
            self.count += 6;
        }
        self.count -= 8;
        Some((self.bits >> self.count) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::{data, write};
    use rx_base::DType;

    #[test]
    fn written_tensor_equals_tvms_and_reads_back() {
        let bytes: Vec<u8> = (0..16u8).map(f32::from).flat_map(f32::to_le_bytes).collect();
        let text = write(&[16], DType::FLOAT32, &bytes).unwrap_or_default();
        assert!(text.starts_with(
            "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQAQAAAAAAAAAEAAAAAAAAAAAAAAAAAAgD8AAABAAABAQAAAgEA"
        ));
        assert!(text.ends_with("QQAAUEEAAGBBAABwQQ=="), "{text}");
        let (header, again) = data(&text, 8).expect("a tensor");
        assert_eq!((header.shape, header.dtype, again), (vec![16], Some(DType::FLOAT32), bytes));
    }

    #[test]
    fn every_dtype_keeps_its_name() {
        for name in ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"]
        {
            let dtype = DType::parse(name);
            let text = dtype.and_then(|dtype| write(&[1, 0], dtype, &[])).unwrap_or_default();
            assert_eq!(data(&text, 8).map(|(header, _)| header.dtype), Ok(dtype), "{name}");
        }
    }
}
