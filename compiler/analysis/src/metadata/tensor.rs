//! The header of a tensor in base64 (TVM `3rdparty/tvm-ffi/src/ffi/extra/serialization.cc`, `NDArrayNode::Save` of older versions).

use rx_base::DType;
use rx_base::dtype::TypeCode;

/// What stands first in a saved tensor.
const MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

/// What a tensor's header says.
pub(super) struct Header {
    /// Its dims.
    pub(super) shape: Vec<i64>,
    /// Its element type; `None` for one that rx has no name of.
    pub(super) dtype: Option<DType>,
}

/// Reads the header of a tensor of at most `max_dims` dims, and checks that its data is there; the data is not decoded.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn header(base64: &str, max_dims: usize) -> Result<Header, String> {
    read(base64, max_dims).map(|(header, ..)| header)
}

/// Reads a tensor of at most `max_dims` dims: its header and its bytes, little-endian.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn data(base64: &str, max_dims: usize) -> Result<(Header, Vec<u8>), String> {
    let (header, mut bytes, size) = read(base64, max_dims)?;
    // As many as the header says there are; that they can be there was checked.
    let contents: Option<Vec<u8>> = (0..size).map(|_| bytes.byte()).collect();
    Ok((header, contents.ok_or("its tensor holds what is no base64")?))
}

/// A tensor's header, what stands behind it, and how many bytes that should be.
fn read(base64: &str, max_dims: usize) -> Result<(Header, Bytes<'_>, u64), String> {
    const CUT_SHORT: &str = "its tensor is cut short";
    let mut bytes = Bytes { rest: base64.bytes(), bits: 0, count: 0 };
    if bytes.number(8).ok_or(CUT_SHORT)? != MAGIC {
        return Err("its tensor is none".to_owned());
    }
    // Reserved, then the device's type and index.
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
    // The last group's padding may be left out.
    if (base64.len() as u64).saturating_add(2) < needed {
        return Err(CUT_SHORT.to_owned());
    }
    Ok((Header { shape, dtype: dtype(code, bits, lanes) }, bytes, size))
}

/// The element type of DLPack's numbers.
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
    // Scalable vectors are negative in two's complement.
    let lanes = u16::try_from(lanes).ok()?.cast_signed();
    Some(DType { code, bits, lanes })
}

/// The bytes of a base64 text, as far as they are asked for.
struct Bytes<'t> {
    rest: std::str::Bytes<'t>,
    bits: u32,
    count: u32,
}

impl Bytes<'_> {
    /// A little-endian number of up to eight bytes.
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
