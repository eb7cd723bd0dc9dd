//! Tensors and their elements.

use crate::element::Element;
use crate::error::TensorError;
use crate::storage::Storage;
use bytemuck::{Pod, try_cast_slice, try_cast_slice_mut};
use rx_base::DType;

/// A dense row-major tensor.
///
/// INVARIANT: `element` belongs to `dtype`, extents are ≥ 0, and the storage has the bytes of `len` elements, where
/// `len` is the product of the extents.
#[derive(Debug)]
pub struct Tensor {
    dtype: DType,
    element: Element,
    shape: Vec<i64>,
    len: usize,
    storage: Storage,
}

/// The value of one element, in the widest type of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer; `bool` is 0 or 1, `uint64` above `i64::MAX` has the same bits.
    Int(i64),
    /// A float.
    Float(f64),
}

impl Scalar {
    /// Converts to a float; integers are rounded to `f64`.
    pub fn as_float(self) -> f64 {
        match self {
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }

    /// Returns the value if it is an integer.
    pub fn as_int(self) -> Option<i64> {
        match self {
            Scalar::Int(value) => Some(value),
            Scalar::Float(_) => None,
        }
    }
}

/// Rust types of elements. `i8` and `u8` can also access 4-bit elements, `u16` the bits of 16-bit floats.
pub trait Native: Pod {
    /// Whether elements of this type are stored as `Self`.
    fn holds(element: Element) -> bool;
}

macro_rules! natives {
    ($($native:ty: $($element:ident)|+;)*) => {
        $(impl Native for $native {
            fn holds(element: Element) -> bool {
                matches!(element, $(Element::$element)|+)
            }
        })*
    };
}
natives! {
    i8: I8 | I4;
    i16: I16;
    i32: I32;
    i64: I64;
    u8: U8 | U4 | Bool | F8E4M3Fn | F8E5M2 | F4E2M1Fn;
    u16: U16 | F16 | BF16;
    u32: U32;
    u64: U64;
    half::f16: F16;
    half::bf16: BF16;
    f32: F32;
    f64: F64;
}

impl Tensor {
    /// Creates a tensor of zeros.
    ///
    /// # Errors
    /// [`TensorError::Unsupported`], [`TensorError::NegativeExtent`], [`TensorError::TooLarge`] or [`TensorError::OutOfMemory`].
    pub fn zeros(dtype: DType, shape: &[i64]) -> Result<Tensor, TensorError> {
        let element = Element::of(dtype).ok_or(TensorError::Unsupported(dtype))?;
        let len = element_count(dtype, shape)?;
        // `element_count` has checked that the product does not overflow.
        let storage = Storage::zeroed(len * element.bytes())?;
        Ok(Tensor { dtype, element, shape: shape.to_vec(), len, storage })
    }

    /// Creates a tensor from little-endian bytes, its format in memory.
    ///
    /// # Errors
    /// Like [`Tensor::zeros`], and [`TensorError::Length`] if the number of bytes does not fit the shape.
    pub fn from_bytes(dtype: DType, shape: &[i64], bytes: &[u8]) -> Result<Tensor, TensorError> {
        let element = Element::of(dtype).ok_or(TensorError::Unsupported(dtype))?;
        let wanted = element_count(dtype, shape)? * element.bytes();
        if wanted != bytes.len() {
            return Err(TensorError::Length { wanted, given: bytes.len() });
        }
        let mut tensor = Tensor::zeros(dtype, shape)?;
        tensor.bytes_mut().copy_from_slice(bytes);
        Ok(tensor)
    }

    /// Creates a `float32` tensor.
    ///
    /// # Errors
    /// Like [`Tensor::from_bytes`].
    pub fn from_f32s(shape: &[i64], values: impl AsRef<[f32]>) -> Result<Tensor, TensorError> {
        Tensor::from_values(DType::FLOAT32, shape, values.as_ref())
    }

    /// Creates an `int64` tensor.
    ///
    /// # Errors
    /// Like [`Tensor::from_bytes`].
    pub fn from_i64s(shape: &[i64], values: impl AsRef<[i64]>) -> Result<Tensor, TensorError> {
        Tensor::from_values(DType::INT64, shape, values.as_ref())
    }

    /// Creates a tensor from values in their memory format.
    ///
    /// # Errors
    /// Like [`Tensor::from_bytes`]; [`TensorError::Unsupported`] if elements of the dtype are not stored as `T`.
    pub fn from_values<T: Native>(dtype: DType, shape: &[i64], values: &[T]) -> Result<Tensor, TensorError> {
        if !Element::of(dtype).is_some_and(T::holds) {
            return Err(TensorError::Unsupported(dtype));
        }
        Tensor::from_bytes(dtype, shape, bytemuck::cast_slice(values))
    }

    /// Creates a tensor of rank 0, with the scalar converted to the dtype as in C.
    ///
    /// # Errors
    /// [`TensorError::Unsupported`].
    pub fn from_scalar(dtype: DType, value: Scalar) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(dtype, &[])?;
        tensor.set(0, value);
        Ok(tensor)
    }

    /// Returns a copy. There is no `Clone`, because a copy can fail.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`].
    pub fn duplicate(&self) -> Result<Tensor, TensorError> {
        Tensor::from_bytes(self.dtype, &self.shape, self.bytes())
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The element type of the dtype.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The extents.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes, aligned to 64.
    pub fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// All bytes for modification, aligned to 64.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.storage.bytes_mut()
    }

    /// The elements, if they are stored as `T`.
    pub fn as_slice<T: Native>(&self) -> Option<&[T]> {
        if !T::holds(self.element) {
            return None;
        }
        try_cast_slice(self.storage.bytes()).ok()
    }

    /// The elements for modification, if they are stored as `T`.
    pub fn as_mut_slice<T: Native>(&mut self) -> Option<&mut [T]> {
        if !T::holds(self.element) {
            return None;
        }
        try_cast_slice_mut(self.storage.bytes_mut()).ok()
    }

    /// Returns the tensor with another shape for the same elements in row-major order.
    ///
    /// # Errors
    /// [`TensorError::NegativeExtent`], or [`TensorError::Length`] if the shape has another number of elements.
    pub fn reshaped(mut self, shape: &[i64]) -> Result<Tensor, TensorError> {
        let wanted = element_count(self.dtype, shape)?;
        if wanted != self.len {
            return Err(TensorError::Length { wanted, given: self.len });
        }
        self.shape = shape.to_vec();
        Ok(self)
    }

    /// Converts the elements to another dtype, which must represent each value exactly.
    ///
    /// # Errors
    /// Like [`Tensor::zeros`], and [`TensorError::Unequal`] with the first element that the dtype cannot represent.
    pub fn exactly(&self, dtype: DType) -> Result<Tensor, TensorError> {
        let mut converted = Tensor::zeros(dtype, &self.shape)?;
        for at in 0..self.len {
            let Some(value) = self.get(at) else { continue };
            converted.set(at, value);
            // Compare as floats: as an integer, `-0.0` and `0` are the same.
            if converted.get(at).map(Scalar::as_float) != Some(value.as_float()) {
                let value = value.as_float().to_string();
                return Err(TensorError::Unequal { at, value, dtype });
            }
        }
        Ok(converted)
    }

    /// Reinterprets the bits as elements of another dtype of the same width (a bit cast).
    ///
    /// # Errors
    /// [`TensorError::Unsupported`] if the dtype has another width, or tensors cannot have it.
    pub fn reinterpreted(mut self, dtype: DType) -> Result<Tensor, TensorError> {
        let element = Element::of(dtype).filter(|element| element.bytes() == self.element.bytes());
        self.element = element.ok_or(TensorError::Unsupported(dtype))?;
        self.dtype = dtype;
        Ok(self)
    }

    /// Returns the element at a row-major position; `None` past the end.
    pub fn get(&self, at: usize) -> Option<Scalar> {
        let size = self.element.bytes();
        let bytes = self.bytes().get(at.checked_mul(size)?..)?.get(..size)?;
        Some(read(self.element, bytes))
    }

    /// Sets the element at a row-major position, converted as in C: integers wrap, floats are rounded, and floats are
    /// truncated to integers. Does nothing past the end.
    pub fn set(&mut self, at: usize, value: Scalar) {
        let element = self.element;
        let size = element.bytes();
        let bytes = at.checked_mul(size).and_then(|start| self.bytes_mut().get_mut(start..)?.get_mut(..size));
        if let Some(bytes) = bytes {
            write(element, value, bytes);
        }
    }
}

/// Returns the number of elements of a shape, after checking that the number of bytes does not overflow.
fn element_count(dtype: DType, shape: &[i64]) -> Result<usize, TensorError> {
    if let Some((axis, extent)) = shape.iter().enumerate().find(|(_, extent)| **extent < 0) {
        return Err(TensorError::NegativeExtent { axis, extent: *extent });
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    let too_large = || TensorError::TooLarge { shape: shape.to_vec(), dtype };
    let count = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(usize::try_from(*extent).ok()?));
    let count = count.ok_or_else(too_large)?;
    let bytes = count.checked_mul(dtype.bytes() as usize).ok_or_else(too_large)?;
    // Allocations are at most `isize::MAX` bytes; leave some for alignment.
    if bytes > isize::MAX as usize - 1024 { Err(too_large()) } else { Ok(count) }
}

/// Reads an element from exactly its bytes.
fn read(element: Element, bytes: &[u8]) -> Scalar {
    let mut low = [0u8; 8];
    for (to, from) in low.iter_mut().zip(bytes) {
        *to = *from;
    }
    let bits = u64::from_le_bytes(low);
    if element.is_float() { Scalar::Float(element.float_of_bits(bits)) } else { Scalar::Int(element.wrap(bits as i64)) }
}

/// Converts a value and writes it to exactly the bytes of an element.
fn write(element: Element, value: Scalar, bytes: &mut [u8]) {
    let bits = match value {
        Scalar::Float(value) => element.bits_of_float(value),
        Scalar::Int(value) if element.is_float() => {
            element.bits_of_float(crate::float_of_int(value, Element::I64, element))
        }
        Scalar::Int(value) => element.wrap(value) as u64,
    };
    for (to, from) in bytes.iter_mut().zip(bits.to_le_bytes()) {
        *to = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dtype(name: &str) -> DType {
        DType::parse(name).expect("a dtype")
    }

    #[test]
    fn every_dtype_returns_its_values() {
        for (name, given, kept) in [
            ("bool", Scalar::Int(3), Scalar::Int(1)),
            ("int8", Scalar::Int(-128), Scalar::Int(-128)),
            ("uint8", Scalar::Int(257), Scalar::Int(1)),
            ("int16", Scalar::Int(40_000), Scalar::Int(-25_536)),
            ("uint16", Scalar::Int(40_000), Scalar::Int(40_000)),
            ("int32", Scalar::Int(-7), Scalar::Int(-7)),
            ("uint32", Scalar::Int(-1), Scalar::Int(u32::MAX.into())),
            ("int64", Scalar::Int(i64::MIN), Scalar::Int(i64::MIN)),
            ("uint64", Scalar::Int(-1), Scalar::Int(-1)),
            ("float16", Scalar::Float(0.1), Scalar::Float(half::f16::from_f32(0.1).to_f64())),
            ("bfloat16", Scalar::Float(3.0), Scalar::Float(3.0)),
            ("float32", Scalar::Int(16_777_217), Scalar::Float(16_777_216.0)),
            ("float64", Scalar::Float(0.1), Scalar::Float(0.1)),
            ("float8_e4m3fn", Scalar::Float(0.3), Scalar::Float(0.3125)),
            ("float8_e5m2", Scalar::Float(1e9), Scalar::Float(f64::INFINITY)),
            ("int32", Scalar::Float(-2.7), Scalar::Int(-2)),
            ("int4", Scalar::Int(9), Scalar::Int(-7)),
            ("uint4", Scalar::Int(-1), Scalar::Int(15)),
            ("float4_e2m1fn", Scalar::Float(2.4), Scalar::Float(2.0)),
        ] {
            let mut tensor = Tensor::zeros(dtype(name), &[2, 3]).expect("a tensor");
            tensor.set(5, given);
            assert_eq!(tensor.get(5), Some(kept), "{name}");
            assert_eq!(tensor.get(4).map(Scalar::as_float), Some(0.0), "{name}");
            assert_eq!(tensor.get(6), None, "{name}");
        }
    }

    #[test]
    fn impossible_tensors_are_errors() {
        let zeros = |name: &str, shape: &[i64]| Tensor::zeros(dtype(name), shape).err();
        assert!(matches!(zeros("float32x4", &[1]), Some(TensorError::Unsupported(_))));
        assert!(matches!(zeros("int2", &[1]), Some(TensorError::Unsupported(_))));
        assert!(matches!(zeros("handle", &[1]), Some(TensorError::Unsupported(_))));
        let negative = Some(TensorError::NegativeExtent { axis: 1, extent: -3 });
        assert_eq!(zeros("float32", &[0, -3]), negative);
        assert!(matches!(zeros("float32", &[i64::MAX, 2]), Some(TensorError::TooLarge { .. })));
        assert!(matches!(zeros("float32", &[1 << 62]), Some(TensorError::TooLarge { .. })));
        assert!(matches!(zeros("int8", &[i64::MAX - 4096]), Some(TensorError::OutOfMemory { .. })));
        assert_eq!(zeros("float32", &[0, i64::MAX, i64::MAX]), None);
        let short = Tensor::from_bytes(DType::FLOAT32, &[2], &[0; 7]);
        assert_eq!(short.err(), Some(TensorError::Length { wanted: 8, given: 7 }));
    }

    #[test]
    fn views_are_of_the_elements_type_only() {
        let mut tensor = Tensor::from_f32s(&[2], [1.0, 2.0]).expect("a tensor");
        assert_eq!(tensor.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
        assert_eq!(tensor.as_slice::<i32>(), None);
        if let Some(values) = tensor.as_mut_slice::<f32>() {
            values[0] = 5.0;
        }
        assert_eq!(tensor.get(0), Some(Scalar::Float(5.0)));
        let empty = Tensor::zeros(DType::INT64, &[0]).expect("a tensor");
        assert_eq!(empty.as_slice::<i64>(), Some(&[][..]));
        let reshaped = tensor.reshaped(&[1, 2, 1]).expect("as many elements");
        assert_eq!(reshaped.shape(), [1, 2, 1]);
        assert!(reshaped.reshaped(&[3]).is_err());
    }
}
