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

#[test]
fn resize_to_a_region_of_one_number_repeats_it() {
    // Both axes are sampled from their end to their end.
    let case = serde_json::json!({
        "operator": "image.resize2d",
        "args": {
            "data": { "tensor": [1, 1, 2, 2], "dtype": "float32", "data": [1.0, 2.0, 3.0, 4.0] },
            "size": { "shape": [2, 2] },
            "roi": { "attr": 1.0 },
            "coordinate_transformation_mode": { "attr": "tf_crop_and_resize" },
        },
        "symbols": {},
        "results": [{ "shape": [1, 1, 2, 2], "dtype": "float32", "data": [4.0, 4.0, 4.0, 4.0] }],
    });
    values::check_file("roi", &case.to_string());
}
