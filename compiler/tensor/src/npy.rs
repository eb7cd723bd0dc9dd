//! NumPy's `.npy` format, versions 1 to 3: one array. There is no suitable crate: this reader never allocates more
//! memory than the file's length, whatever the header says, and represents types that NumPy lacks as described below.
//!
//! Reads little- and big-endian arrays in C and Fortran order; writes little-endian arrays in C order. NumPy has no
//! `bfloat16` and no 8-bit floats. Their bits are written as `uint16` and `uint8`, and raw bytes of these sizes (`|V2`,
//! `|V1`), which other packages write, are read so; [`Tensor::reinterpreted`] converts them to floats. `int4`, `uint4`
//! and `float4_e2m1fn` are written as arrays of their values, in `int8`, `uint8` and `float32` ([`Element::in_files`]).

use crate::element::Element;
use crate::file::{FileError, FileProblem, write_atomically};
use crate::tensor::Tensor;
use rx_base::DType;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read, in bytes; NumPy itself reads 10 000.
const LONGEST_HEADER: usize = 1 << 16;

/// Reads a `.npy` file.
///
/// # Errors
/// If the file cannot be read or is not an array of a supported type.
pub fn read_file(path: &Path) -> Result<Tensor, FileError> {
    let read = || {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        read(&mut BufReader::new(file), length)
    };
    read().map_err(|problem| FileError::new(path, problem))
}

/// Writes a `.npy` file, completely or not at all.
///
/// # Errors
/// Errors of the file system.
pub fn write_file(path: &Path, tensor: &Tensor) -> Result<(), FileError> {
    write_atomically(path, |writer| write(tensor, writer))
}

/// Reads an array from a source of exactly `length` bytes. Allocates at most `length` bytes.
///
/// # Errors
/// If the source is not an array of a supported type.
pub fn read(source: &mut impl Read, length: u64) -> Result<Tensor, FileProblem> {
    let (header, header_length) = Header::read(source)?;
    let item = header.element.bytes() as u64;
    let count = header.shape.iter().try_fold(1u64, |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
    let empty = header.shape.contains(&0);
    let wanted = if empty { Some(0) } else { count.and_then(|count| count.checked_mul(item)) };
    let given = length.saturating_sub(header_length);
    if wanted != Some(given) {
        let shape = &header.shape;
        let reason = format!("{given} bytes of data for {} elements of shape {shape:?}", header.dtype);
        return Err(FileProblem::Corrupt(reason));
    }
    let mut tensor = Tensor::zeros(header.dtype, &header.shape)?;
    source.read_exact(tensor.bytes_mut())?;
    if source.read(&mut [0])? != 0 {
        return Err(FileProblem::corrupt("there is more than its length says"));
    }
    if header.big_endian {
        tensor.bytes_mut().chunks_exact_mut(header.element.bytes()).for_each(<[u8]>::reverse);
    }
    if header.element == Element::Bool {
        // NumPy accepts any nonzero byte as true; computations here require 1.
        tensor.bytes_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    if header.fortran_order { rows_first(&tensor) } else { Ok(tensor) }
}

/// Writes an array.
///
/// # Errors
/// Errors of the writer.
pub fn write(tensor: &Tensor, target: &mut impl Write) -> Result<(), FileProblem> {
    let converted = tensor.element().in_files().map(|dtype| tensor.exactly(dtype)).transpose()?;
    let tensor = converted.as_ref().unwrap_or(tensor);
    let mut shape: String = tensor.shape().iter().map(|extent| format!("{extent}, ")).collect();
    // A tuple of one element is written `(3,)`, longer ones without the last comma.
    if tensor.shape().len() != 1 {
        shape.truncate(shape.trim_end_matches(", ").len());
    }
    let code = type_code(tensor.element());
    let shape = shape.trim_end();
    let mut header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Pad magic, version, length and header to a multiple of 64 bytes, so that the data is aligned; the header ends in
    // a newline.
    let wide = header.len() > usize::from(u16::MAX) - 128;
    let front = MAGIC.len() + 2 + if wide { 4 } else { 2 };
    let padding = (front + header.len() + 1).next_multiple_of(64) - (front + header.len() + 1);
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    target.write_all(MAGIC)?;
    if wide {
        target.write_all(&[2, 0])?;
        target.write_all(&(header.len() as u32).to_le_bytes())?;
    } else {
        target.write_all(&[1, 0])?;
        target.write_all(&(header.len() as u16).to_le_bytes())?;
    }
    target.write_all(header.as_bytes())?;
    target.write_all(tensor.bytes())?;
    Ok(())
}

/// Returns NumPy's code of an element type, as it is written.
fn type_code(element: Element) -> &'static str {
    match element {
        Element::Bool => "|b1",
        Element::I8 | Element::I4 => "|i1",
        Element::I16 => "<i2",
        Element::I32 => "<i4",
        Element::I64 => "<i8",
        Element::U8 | Element::U4 | Element::F8E4M3Fn | Element::F8E5M2 | Element::F4E2M1Fn => "|u1",
        Element::U16 | Element::BF16 => "<u2",
        Element::U32 => "<u4",
        Element::U64 => "<u8",
        Element::F16 => "<f2",
        Element::F32 => "<f4",
        Element::F64 => "<f8",
    }
}

/// Reorders the elements of a tensor from Fortran order (first index fastest) to C order (last index fastest).
fn rows_first(tensor: &Tensor) -> Result<Tensor, FileProblem> {
    let mut ordered = Tensor::zeros(tensor.dtype(), tensor.shape())?;
    let item = tensor.element().bytes();
    // In Fortran order the first index varies fastest: the stride of an axis is the product of the extents before it.
    let shape: Vec<usize> = tensor.shape().iter().map(|extent| *extent as usize).collect();
    let steps: Vec<usize> = shape
        .iter()
        .scan(1, |step, extent| {
            let this = *step;
            *step *= extent;
            Some(this)
        })
        .collect();
    let mut index = vec![0; shape.len()];
    let mut from = 0;
    let source = tensor.bytes();
    for target in ordered.bytes_mut().chunks_exact_mut(item) {
        // INVARIANT: `from` is the offset of `index`, whose parts are below the extents.
        target.copy_from_slice(&source[from * item..][..item]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += steps[axis];
            if index[axis] < shape[axis] {
                break;
            }
            from -= steps[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Ok(ordered)
}

/// The header of an array.
#[derive(Debug)]
struct Header {
    dtype: DType,
    element: Element,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<i64>,
}

impl Header {
    /// Reads the header; returns it with the total number of bytes before the data.
    fn read(source: &mut impl Read) -> Result<(Header, u64), FileProblem> {
        let mut front = [0; 8];
        source.read_exact(&mut front)?;
        if front[..6] != *MAGIC {
            return Err(FileProblem::corrupt("it is not a .npy file"));
        }
        let (length, size) = match front[6] {
            1 => {
                let mut length = [0; 2];
                source.read_exact(&mut length)?;
                (usize::from(u16::from_le_bytes(length)), 2)
            }
            2 | 3 => {
                let mut length = [0; 4];
                source.read_exact(&mut length)?;
                (u32::from_le_bytes(length) as usize, 4)
            }
            version => return Err(FileProblem::Corrupt(format!("version {version} of the format is not known"))),
        };
        if length > LONGEST_HEADER {
            return Err(FileProblem::Corrupt(format!("a header of {length} bytes")));
        }
        let mut text = vec![0; length];
        source.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        Ok((Header::parse(&text)?, (front.len() + size + length) as u64))
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, with the entries in any order.
    fn parse(text: &str) -> Result<Header, FileProblem> {
        let mut literal = Literal { rest: text.trim_end_matches(['\0', '\n', ' ']) };
        let (mut descr, mut order, mut shape) = (None, None, None);
        literal.expect('{')?;
        while !literal.take('}') {
            let key = literal.string()?;
            literal.expect(':')?;
            match key {
                "descr" => descr = Some(literal.type_code()?),
                "fortran_order" => order = Some(literal.truth()?),
                "shape" => shape = Some(literal.extents()?),
                _ => return Err(literal.wrong()),
            }
            if !literal.take(',') {
                literal.expect('}')?;
                break;
            }
        }
        let (Some(descr), Some(fortran_order), Some(shape), "") = (descr, order, shape, literal.rest.trim()) else {
            return Err(literal.wrong());
        };
        let unsupported = || FileProblem::UnsupportedType(descr.to_owned());
        let (big_endian, kind) = match descr.split_at_checked(1) {
            Some(("<" | "|" | "=", kind)) => (false, kind),
            Some((">", kind)) => (true, kind),
            _ => return Err(unsupported()),
        };
        let dtype = match kind {
            "b1" => "bool",
            "i1" => "int8",
            "i2" => "int16",
            "i4" => "int32",
            "i8" => "int64",
            "u1" | "V1" => "uint8",
            "u2" | "V2" => "uint16",
            "u4" => "uint32",
            "u8" => "uint64",
            "f2" => "float16",
            "f4" => "float32",
            "f8" => "float64",
            _ => return Err(unsupported()),
        };
        let dtype = DType::parse(dtype).ok_or_else(unsupported)?;
        let element = Element::of(dtype).ok_or_else(unsupported)?;
        Ok(Header { dtype, element, big_endian, fortran_order, shape })
    }
}

/// The unparsed rest of a Python literal.
struct Literal<'t> {
    rest: &'t str,
}

impl<'t> Literal<'t> {
    fn wrong(&self) -> FileProblem {
        FileProblem::corrupt("the header is not understood")
    }

    /// Skips blanks, and takes the character `wanted` if it is next.
    fn take(&mut self, wanted: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), FileProblem> {
        if self.take(wanted) { Ok(()) } else { Err(self.wrong()) }
    }

    fn string(&mut self) -> Result<&'t str, FileProblem> {
        let quote = if self.take('\'') { '\'' } else { '"' };
        if quote == '"' {
            self.expect('"')?;
        }
        let (text, rest) = self.rest.split_once(quote).ok_or_else(|| self.wrong())?;
        self.rest = rest;
        Ok(text)
    }

    /// Parses a type code. Structured types, which have several fields, are not supported.
    fn type_code(&mut self) -> Result<&'t str, FileProblem> {
        match self.rest.trim_start().starts_with(['[', '(', '{']) {
            true => Err(FileProblem::UnsupportedType("with fields".to_owned())),
            false => self.string(),
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    fn truth(&mut self) -> Result<bool, FileProblem> {
        match self.word() {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(self.wrong()),
        }
    }

    fn extents(&mut self) -> Result<Vec<i64>, FileProblem> {
        let mut extents = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            // Python 2 wrote `3L`.
            let extent = self.word().trim_end_matches('L').parse().map_err(|_| self.wrong())?;
            extents.push(extent);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Scalar;

    fn bytes(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}   \n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Tensor, FileProblem> {
        read(&mut &bytes[..], bytes.len() as u64)
    }

    #[test]
    fn every_dtype_survives_a_file() {
        for name in ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
            .into_iter()
            .chain(["float16", "float32", "float64"])
        {
            let dtype = DType::parse(name).expect("a dtype");
            for shape in [&[2, 3][..], &[4], &[], &[0, 5]] {
                let mut tensor = Tensor::zeros(dtype, shape).expect("a tensor");
                for at in 0..tensor.len() {
                    tensor.set(at, Scalar::Int(at as i64 % 2));
                }
                let mut written = Vec::new();
                write(&tensor, &mut written).expect("memory");
                assert_eq!((written.len() - tensor.bytes().len()) % 64, 0);
                let read = parse(&written).expect("what was written");
                assert_eq!((read.dtype(), read.shape(), read.bytes()), (dtype, shape, tensor.bytes()));
            }
        }
    }

    #[test]
    fn the_header_is_numpys_own() {
        let mut written = Vec::new();
        write(&Tensor::from_f32s(&[3], [1.0, 2.0, 3.0]).expect("a tensor"), &mut written).expect("memory");
        let header = String::from_utf8_lossy(&written[10..128]).into_owned();
        assert!(header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), "{header}");
        assert!(header.ends_with(" \n"));
    }

    #[test]
    fn other_byte_orders_element_orders_and_versions_are_read() {
        let big = parse(&bytes("'>i2'", "False", "(2,)", &[0x01, 0x02, 0xff, 0xfe])).expect("an array");
        assert_eq!(big.as_slice::<i16>(), Some(&[0x0102, -2][..]));
        let columns = parse(&bytes("'|u1'", "True", "(2L, 3L)", &[1, 4, 2, 5, 3, 6])).expect("an array");
        assert_eq!(columns.as_slice::<u8>(), Some(&[1, 2, 3, 4, 5, 6][..]));
        let raw = parse(&bytes("\"|V2\"", "False", "()", &[0x80, 0x3f])).expect("an array");
        let raw = raw.reinterpreted(DType::BFLOAT16).expect("of one width");
        assert_eq!(raw.get(0), Some(Scalar::Float(1.0)));
        let truths = parse(&bytes("'|b1'", "False", "(2)", &[2, 0])).expect("an array");
        assert_eq!(truths.bytes(), [1, 0]);
        let mut second = b"\x93NUMPY\x02\x00".to_vec();
        let header = "{'shape': (1,), 'fortran_order': False, 'descr': '|i1'}";
        second.extend((header.len() as u32).to_le_bytes());
        second.extend(header.as_bytes());
        second.push(7);
        assert_eq!(parse(&second).expect("an array").as_slice::<i8>(), Some(&[7][..]));
    }

    #[test]
    fn hostile_files_are_errors_and_ask_for_no_memory() {
        let good = bytes("'<f4'", "False", "(2, 2)", &[0; 16]);
        for end in 0..good.len() {
            assert!(parse(&good[..end]).is_err(), "cut at {end}");
        }
        for at in 0..good.len() {
            for value in [0, b'(', b'9', 0xff] {
                let mut broken = good.clone();
                broken[at] = value;
                let _ = parse(&broken);
            }
        }
        for (descr, shape) in [
            ("'<f4'", "(9223372036854775807, 9223372036854775807)"),
            ("'<f4'", "(1000000000000,)"),
            ("'<f4'", "(-1,)"),
            ("'<f4'", "(1.5,)"),
            ("'<f4'", "(99999999999999999999,)"),
            ("'<f4'", "(4,"),
            ("'<f4'", "[4]"),
            ("'<f4'", "(3,)"),
            ("'|O'", "(4,)"),
            ("'<c8'", "(2,)"),
            ("'<U4'", "(1,)"),
            ("[('a', '<f4')]", "(4,)"),
            ("''", "(4,)"),
            ("'é4'", "(4,)"),
        ] {
            assert!(parse(&bytes(descr, "False", shape, &[0; 16])).is_err(), "{descr} {shape}");
        }
        let behind = [&good[..], &[0]].concat();
        assert!(parse(&behind).is_err());
        assert!(matches!(parse(&bytes("'|O'", "False", "()", &[])), Err(FileProblem::UnsupportedType(_))));
    }
}
