//! Arrays in files that represent tensors of dtypes which NumPy lacks: `bfloat16` and 8-bit floats are stored as their
//! bits, 4-bit dtypes as their values ([`Element::in_files`]).

use crate::element::Element;
use crate::error::TensorError;
use crate::tensor::Tensor;
use rx_base::DType;

/// Whether an array of dtype `have` can be given for `wanted`: it has the same dtype, its bits, or its values.
pub fn accepts(wanted: DType, have: DType) -> bool {
    wanted == have || has_bits(wanted, have) || Element::of(wanted).and_then(Element::in_files) == Some(have)
}

/// Whether files store the bits of dtype `wanted` in arrays of dtype `have`, for example `bfloat16` in `uint16`.
pub fn has_bits(wanted: DType, have: DType) -> bool {
    let is_narrow_float = wanted.is_float() && wanted.bits == 8 && wanted.lanes == 1;
    (wanted == DType::BFLOAT16 && have == DType::UINT16) || (is_narrow_float && have == DType::UINT8)
}

/// Converts a file's array to a tensor of dtype `wanted`, if it contains the bits or the values of one; returns `None`
/// if no conversion is needed or possible.
///
/// # Errors
/// If the array has a value that the dtype cannot represent, or memory is not available.
pub fn of_file(array: &Tensor, wanted: DType) -> Result<Option<Tensor>, TensorError> {
    match array.dtype() {
        have if have == wanted || !accepts(wanted, have) => Ok(None),
        have if has_bits(wanted, have) => Tensor::from_bytes(wanted, array.shape(), array.bytes()).map(Some),
        _ => array.exactly(wanted).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Scalar;

    fn of_floats(values: &[f32], wanted: &str) -> Result<Option<Tensor>, String> {
        let array = Tensor::from_values(DType::FLOAT32, &[values.len() as i64], values).expect("a tensor");
        of_file(&array, DType::parse(wanted).expect("a dtype")).map_err(|error| error.to_string())
    }

    #[test]
    fn four_bit_dtypes_are_given_by_their_values() {
        let tensor = of_floats(&[-6.0, 0.5, -0.0], "float4_e2m1fn").expect("its values").expect("a tensor");
        assert_eq!(tensor.bytes(), [15, 1, 8]);
        let error = of_floats(&[1.0, 5.0], "float4_e2m1fn").err();
        assert_eq!(error.as_deref(), Some("its element 1 is 5, which is no value of float4_e2m1fn"));
        assert!(of_floats(&[f32::NAN], "float4_e2m1fn").is_err());
        assert!(of_floats(&[1.0], "int4").expect("no array of it").is_none());
        let array = Tensor::from_values(DType::INT8, &[3], &[-8i8, -1, 7]).expect("a tensor");
        let int4 = DType::parse("int4").expect("a dtype");
        let tensor = of_file(&array, int4).expect("its values").expect("a tensor");
        assert_eq!([0, 1, 2].map(|at| tensor.get(at)), [-8, -1, 7].map(|value| Some(Scalar::Int(value))));
        let array = Tensor::from_values(DType::INT8, &[1], &[8i8]).expect("a tensor");
        let error = of_file(&array, int4).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("its element 0 is 8, which is no value of int4"));
    }
}
