//! The safetensors format: the length of a JSON header, the header with each array's dtype, shape and offsets, then the
//! arrays.

use crate::file::{Arrays, FileError, FileProblem, Progress};
use crate::tensor::Tensor;
use rx_base::DType;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// The longest header that the format allows, in bytes.
const LONGEST_HEADER: u64 = 100_000_000;

/// Reads all arrays of a file, in the file's order. Allocates no more memory than the length of the file.
///
/// # Errors
/// If the file cannot be read, has another format, or has an array of an unsupported dtype.
pub fn read(path: &Path) -> Result<Vec<(String, Tensor)>, FileError> {
    read_wanted(path, &|_| true, &mut |_| ()).map(|read| read.arrays)
}

/// Reads the arrays of a file whose names are wanted, in the file's order; skips the bytes of the others. Calls
/// `progress` after each array.
///
/// # Errors
/// Like [`read`]; an array that is not wanted may have any dtype of the format.
pub fn read_wanted(
    path: &Path,
    wanted: &dyn Fn(&str) -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Arrays, FileError> {
    let open = || -> Result<_, FileProblem> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut file = BufReader::new(file);
        let header = header(&mut file, length)?;
        Ok((file, header))
    };
    let (mut file, header) = open().map_err(|problem| FileError::new(path, problem))?;
    // The format leaves no bytes between arrays, so reading them one after the other finds each at its offset.
    let mut read = Arrays::default();
    let length = |info: &TensorInfo| info.data_offsets.1.saturating_sub(info.data_offsets.0) as u64;
    let names: Vec<(String, bool)> = header
        .offset_keys()
        .into_iter()
        .map(|name| {
            let is_wanted = wanted(&name);
            (name, is_wanted)
        })
        .collect();
    let kept = names.iter().filter(|(_, wanted)| *wanted).filter_map(|(name, _)| header.info(name));
    let mut reported = Progress { done: 0, total: kept.map(length).sum() };
    for (name, wanted) in names {
        let Some(info) = header.info(&name) else { continue };
        let of_array = |problem| FileError::of_array(path, &name, problem);
        if wanted {
            let tensor = array(&mut file, info).map_err(of_array)?;
            read.arrays.push((name, tensor));
            reported.done += length(info);
            progress(reported);
        } else {
            let passed = i64::try_from(length(info)).unwrap_or(i64::MAX);
            file.seek_relative(passed).map_err(|error| of_array(error.into()))?;
            read.others.push(name);
        }
    }
    Ok(read)
}

/// Reads the header of a file of this length, and checks that the arrays fill the rest without gaps.
fn header(file: &mut impl Read, length: u64) -> Result<Metadata, FileProblem> {
    let mut size = [0; 8];
    file.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    let rest = length.saturating_sub(8);
    if size > rest || size > LONGEST_HEADER {
        return Err(FileProblem::corrupt(format!("a header of {size} bytes in a file of {length}")));
    }
    let header = bytes(file, size)?;
    let header: Metadata = serde_json::from_slice(&header)
        .map_err(|error| FileProblem::corrupt(format!("the header is none of safetensors: {error}")))?;
    let held = header.data_len();
    if u64::try_from(held).ok() != Some(rest - size) {
        return Err(FileProblem::corrupt(format!("the header speaks of {held} bytes, the file has {}", rest - size)));
    }
    Ok(header)
}

/// Reads an array directly into the tensor's memory, so that no second copy exists.
fn array(file: &mut impl Read, info: &TensorInfo) -> Result<Tensor, FileProblem> {
    let dtype = dtype(info.dtype).ok_or_else(|| FileProblem::UnsupportedType(format!("{:?}", info.dtype)))?;
    let extent = |extent: &usize| i64::try_from(*extent);
    let shape: Result<Vec<i64>, _> = info.shape.iter().map(extent).collect();
    let shape = shape.map_err(|_| FileProblem::corrupt("an extent that is no integer of 64 bits"))?;
    // Check the shape against the bytes before allocating; the header's offsets were already checked against the file's
    // length.
    let (start, end) = info.data_offsets;
    let bits = info.shape.iter().try_fold(info.dtype.bitsize(), |bits, extent| bits.checked_mul(*extent));
    if bits.is_none() || bits != end.saturating_sub(start).checked_mul(8) {
        return Err(FileProblem::corrupt("an array whose shape does not fit its bytes"));
    }
    let mut tensor = Tensor::zeros(dtype, &shape)?;
    file.read_exact(tensor.bytes_mut())?;
    if dtype == DType::BOOL {
        // In memory, booleans are 0 or 1, whatever the file contains.
        tensor.bytes_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Ok(tensor)
}

/// Reads `count` bytes. Allocates only as bytes arrive, so a wrong count costs no memory.
fn bytes(file: &mut impl Read, count: u64) -> Result<Vec<u8>, FileProblem> {
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == count { Ok(bytes) } else { Err(FileProblem::corrupt("the file ends early")) }
}

/// Converts a dtype of the format, if tensors can have it.
fn dtype(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::BOOL => DType::BOOL,
        Dtype::U8 => DType::UINT8,
        Dtype::I8 => DType::INT8,
        Dtype::U16 => DType::UINT16,
        Dtype::I16 => DType::INT16,
        Dtype::U32 => DType::UINT32,
        Dtype::I32 => DType::INT32,
        Dtype::U64 => DType::UINT64,
        Dtype::I64 => DType::INT64,
        Dtype::F16 => DType::FLOAT16,
        Dtype::BF16 => DType::BFLOAT16,
        Dtype::F32 => DType::FLOAT32,
        Dtype::F64 => DType::FLOAT64,
        Dtype::F8_E4M3 => DType::parse("float8_e4m3fn")?,
        Dtype::F8_E5M2 => DType::parse("float8_e5m2")?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Dtype, dtype, header, read};
    use crate::file::{Arrays, FileProblem, Progress};
    use crate::tensor::Tensor;
    use rx_base::DType;
    use std::path::PathBuf;

    /// Returns a file with this header and data.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
    }

    /// Writes these bytes to a file and reads its arrays.
    fn arrays(test: &str, bytes: &[u8]) -> Result<Vec<(String, Tensor)>, FileProblem> {
        let name = format!("rx-tensor-{test}-{}.safetensors", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("a file");
        let arrays = read(&path).map_err(|error| error.problem);
        std::fs::remove_file(&path).expect("the file");
        arrays
    }

    const TWO: &str = r#"{"__metadata__":{"by":"hand"},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]},"a.x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

    #[test]
    fn arrays_have_their_dtypes_and_the_order_of_the_file() {
        let data = [&1.5f32.to_le_bytes()[..], &(-2.0f32).to_le_bytes(), &[0, 1, 7]].concat();
        let read = arrays("two", &file(TWO, &data)).expect("two arrays");
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.x", "b"]);
        assert_eq!(read[0].1.as_slice::<f32>(), Some(&[1.5, -2.0][..]));
        assert_eq!((read[1].1.dtype(), read[1].1.bytes()), (DType::BOOL, &[0, 1, 1][..]));
        let scalar = r#"{"x":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"none":{"dtype":"U8","shape":[0,4],"data_offsets":[8,8]}}"#;
        let read = arrays("scalar", &file(scalar, &7i64.to_le_bytes())).expect("two arrays");
        assert_eq!((read[0].1.shape(), read[0].1.as_slice::<i64>()), (&[][..], Some(&[7][..])));
        assert_eq!(read[1].1.shape(), [0, 4]);
    }

    #[test]
    fn unwanted_arrays_are_skipped() {
        let data = [&1.5f32.to_le_bytes()[..], &(-2.0f32).to_le_bytes(), &[0, 1, 7]].concat();
        let path = std::env::temp_dir().join(format!("rx-tensor-wanted-{}.safetensors", std::process::id()));
        std::fs::write(&path, file(TWO, &data)).expect("a file");
        let Arrays { arrays: read, others } = {
            let mut reported = Vec::new();
            let read = super::read_wanted(&path, &|name| name == "b", &mut |progress| reported.push(progress));
            assert_eq!(reported, [Progress { done: 3, total: 3 }]);
            read.expect("one array")
        };
        std::fs::remove_file(&path).expect("the file");
        assert_eq!((read.len(), read[0].1.bytes(), others), (1, &[0, 1, 1][..], vec!["a.x".to_owned()]));
    }

    #[test]
    fn every_dtype_has_a_tensor_of_as_many_bytes() {
        let known = [
            Dtype::BOOL,
            Dtype::U8,
            Dtype::I8,
            Dtype::U16,
            Dtype::I16,
            Dtype::U32,
            Dtype::I32,
            Dtype::U64,
            Dtype::I64,
            Dtype::F16,
            Dtype::BF16,
            Dtype::F32,
            Dtype::F64,
            Dtype::F8_E4M3,
            Dtype::F8_E5M2,
        ];
        for one in known {
            let dtype = dtype(one).expect("a dtype");
            let tensor = Tensor::zeros(dtype, &[3]).expect("a tensor");
            assert_eq!(tensor.bytes().len() * 8, one.bitsize() * 3, "{one:?} is {dtype}");
        }
        let complex = r#"{"x":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}"#;
        assert!(matches!(arrays("complex", &file(complex, &[0; 8])), Err(FileProblem::UnsupportedType(_))));
    }

    #[test]
    fn hostile_files_are_errors() {
        let good = file(TWO, &[0; 11]);
        for end in 0..good.len() {
            assert!(matches!(arrays("cut", &good[..end]), Err(FileProblem::Corrupt(_))), "cut at {end}");
        }
        assert!(arrays("longer", &[&good[..], &[0]].concat()).is_err());
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x11;
            // The damaged file may be read or rejected, but must not cause a panic.
            let _ = arrays("flipped", &bytes);
        }
        let wrong = [
            // A header longer than the file, and longer than the limit.
            [&u64::MAX.to_le_bytes()[..], b"{}"].concat(),
            file("[]", &[]),
            file("{\"x\":3}", &[]),
            file(&"[".repeat(100_000), &[]),
            // Offsets that overlap, leave a gap, or run backwards; more elements than fit an integer.
            file(
                r#"{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#,
                &[0; 3],
            ),
            file(r#"{"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#, &[0; 3]),
            file(r#"{"x":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}}"#, &[0; 2]),
            file(r#"{"x":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#, &[]),
            file(r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,2]}}"#, &[0; 2]),
        ];
        for bytes in wrong {
            let shown = String::from_utf8_lossy(&bytes).chars().take(80).collect::<String>();
            assert!(matches!(arrays("wrong", &bytes), Err(FileProblem::Corrupt(_))), "{shown}");
        }
        // A length close to 2^64 must be rejected before anything is read.
        assert!(header(&mut &good[..], u64::MAX).is_err());
        assert!(matches!(
            read(&std::env::temp_dir().join("no such file")).map_err(|it| it.problem),
            Err(FileProblem::Io(_))
        ));
    }
}
