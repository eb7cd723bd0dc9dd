//! The neural-network operators, products and reductions compute what PyTorch does:
//! `tests/scripts/operator_values_nn.py` has the reference.

use crate::values;

macro_rules! families {
    ($($family:ident)*) => {
        $(#[test]
        fn $family() {
            let path = concat!("tests/operators/nn_", stringify!($family), ".jsonl");
            values::check_file(path, include_str!(concat!("../../../../tests/operators/nn_", stringify!($family), ".jsonl")));
        })*
    };
}
families! { convolution pooling activation normalisation rearrange product reduction gradient detection }
