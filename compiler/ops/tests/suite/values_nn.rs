//! Tests the results of neural-network operators, products and reductions against PyTorch:
//! `tests/scripts/operator_values_nn.py` computes the reference.

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

/// TVM's struct-info rule only checks `predictions`, so weights of any rank pass it.
#[test]
fn nll_loss_backward_with_weights_of_two_dims_has_no_loops() {
    let tensor = |shape: &[i64], dtype: &str| serde_json::json!({ "tensor": shape, "dtype": dtype, "data": [] });
    let case = serde_json::json!({
        "operator": "grad.nll_loss_backward",
        "args": {
            "output_grad": tensor(&[], "float32"),
            "predictions": tensor(&[2, 3], "float32"),
            "targets": tensor(&[2], "int64"),
            "weights": tensor(&[3, 2], "float32"),
        },
        "symbols": {},
        "results": [],
    });
    let values::Outcome::Failed(why) = values::outcome(&case).expect("a call") else { panic!("it has loops") };
    assert!(why.contains("`weights` requires 1 dimension, of classes; found 2"), "{why}");
}
