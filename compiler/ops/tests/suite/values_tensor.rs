//! Tests the results of tensor operators against NumPy: `tests/scripts/operator_values_tensor.py` computes the
//! reference.

use crate::values;

macro_rules! families {
    ($($family:ident)*) => {
        $(#[test]
        fn $family() {
            let path = concat!("tests/operators/tensor_", stringify!($family), ".jsonl");
            values::check_file(path, include_str!(concat!("../../../../tests/operators/tensor_", stringify!($family), ".jsonl")));
        })*
    };
}
families! { elementwise binary create manipulate pick scatter slice sort quantize image edges failures }
