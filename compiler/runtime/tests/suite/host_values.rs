//! Host functions compute the values of NumPy, ONNX and TVM's references (`tests/scripts/operator_values_host.py`).

use crate::common::Text;
use rx_base::DType;
use rx_tensor::{Scalar, Tensor};
use serde_json::{Value, json};
use std::fmt::Write;

macro_rules! families {
    ($($family:ident)*) => {
        $(#[test]
        fn $family() {
            check_file(include_str!(concat!("../../../../tests/operators/host_", stringify!($family), ".jsonl")));
        })*
    };
}
families! { unique nonzero slice boxes }

fn check_file(text: &str) {
    let mut failures = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let case: Value = serde_json::from_str(text).expect("a case");
        if let Err(why) = check(&case) {
            failures.push(format!("{}: {}: {why}", line + 1, case["operator"]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns the text of a function `main` that makes the call, and its inputs.
fn module(case: &Value) -> (String, Vec<Tensor>) {
    let (mut params, mut arguments, mut inputs) = (Vec::new(), String::new(), Vec::new());
    for (name, value) in case["args"].as_object().expect("args") {
        if value.get("tensor").is_some() {
            let dims = value["tensor"].as_array().expect("dims").iter();
            let dims: String = dims.map(|dim| format!("{dim}, ")).collect();
            params.push(format!("{name}: R.Tensor(({dims}), {})", value["dtype"]));
            inputs.push(tensor(value, &value["tensor"], &case["symbols"]));
            let _ = write!(arguments, "{name}={name}, ");
        } else {
            let text = match value.get("attr").unwrap_or(&value["prim"]) {
                Value::Bool(true) => "True".to_owned(),
                Value::Bool(false) => "False".to_owned(),
                other => other.to_string(),
            };
            let _ = write!(arguments, "{name}={text}, ");
        }
    }
    let call = format!("R.{}({arguments})", case["operator"].as_str().expect("an operator"));
    (format!("@R.function\ndef main({}):\n    result = {call}\n    return result", params.join(", ")), inputs)
}

fn tensor(value: &Value, shape: &Value, symbols: &Value) -> Tensor {
    let extent = |dim: &Value| dim.as_i64().or_else(|| symbols[dim.as_str()?].as_i64()).expect("an extent");
    let shape: Vec<i64> = shape.as_array().expect("a shape").iter().map(extent).collect();
    let dtype = DType::parse(value["dtype"].as_str().expect("a dtype")).expect("a dtype");
    let mut tensor = Tensor::zeros(dtype, &shape).expect("a tensor");
    for (at, element) in value["data"].as_array().expect("data").iter().enumerate() {
        let scalar = match element {
            Value::String(text) => Scalar::Float(text.parse().expect("a number")),
            other => other.as_i64().map_or_else(|| Scalar::Float(other.as_f64().expect("a number")), Scalar::Int),
        };
        tensor.set(at, scalar);
    }
    tensor
}

fn check(case: &Value) -> Result<(), String> {
    let (text, inputs) = module(case);
    let (results, _) = Text::module(&text).results(&inputs);
    let wanted = case["results"].as_array().expect("results");
    if results.len() != wanted.len() {
        return Err(format!("{} results, {} wanted", results.len(), wanted.len()));
    }
    for (result, wanted) in results.iter().zip(wanted) {
        let wanted = tensor(wanted, &wanted["shape"], &Value::Null);
        if result.dtype() != wanted.dtype() || result.shape() != wanted.shape() {
            return Err(format!(
                "{} {:?}, wanted {} {:?}",
                result.dtype(),
                result.shape(),
                wanted.dtype(),
                wanted.shape()
            ));
        }
        let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6;
        let differs = (0..result.len()).find(|at| {
            let [a, b] = [result, &wanted].map(|tensor| tensor.get(*at).expect("an element").as_float());
            !close(a, b)
        });
        if let Some(at) = differs {
            return Err(format!("element {at} is {:?}, wanted {:?}", result.get(at), wanted.get(at)));
        }
    }
    Ok(())
}

/// Returns a call of `vision.non_max_suppression` on two boxes of one class, whose IoU is 1/3.
fn suppression(attributes: &[(&str, Value)], results: &Value) -> Value {
    let mut args = json!({
        "data": {
            "tensor": [1, 2, 6],
            "dtype": "float32",
            "data": [0.0, 0.9, 0.0, 0.0, 2.0, 1.0, 0.0, 0.8, 1.0, 0.0, 3.0, 1.0],
        },
        "valid_count": { "tensor": [1], "dtype": "int32", "data": [2] },
        "indices": { "tensor": [1, 2], "dtype": "int32", "data": [0, 1] },
    });
    for (name, value) in attributes {
        args[*name] = json!({ "attr": value });
    }
    json!({ "operator": "vision.non_max_suppression", "args": args, "symbols": {}, "results": results })
}

#[test]
fn box_whose_iou_equals_the_threshold_in_its_dtype_is_suppressed() {
    // As float64, the threshold is above 1/3; as float32, both are equal.
    let places = json!({ "shape": [1, 2], "dtype": "int32", "data": [0, -1] });
    let count = json!({ "shape": [1, 1], "dtype": "int32", "data": [1] });
    let case = suppression(&[("iou_threshold", json!(0.333_333_34))], &json!([places, count]));
    assert_eq!(check(&case), Ok(()));
}

#[test]
fn max_output_size_of_0_is_no_limit() {
    let places = json!({ "shape": [1, 2], "dtype": "int32", "data": [0, 1] });
    let count = json!({ "shape": [1, 1], "dtype": "int32", "data": [2] });
    let hard = suppression(&[("max_output_size", json!(0))], &json!([places, count]));
    assert_eq!(check(&hard), Ok(()));
    // The second score is 0.8 * exp(-1/9).
    let boxes = json!({
        "shape": [1, 2, 6],
        "dtype": "float32",
        "data": [0.0, 0.9, 0.0, 0.0, 2.0, 1.0, 0.0, 0.715_871_4, 1.0, 0.0, 3.0, 1.0],
    });
    let soft = [("max_output_size", json!(0)), ("soft_nms_sigma", json!(0.5))];
    assert_eq!(check(&suppression(&soft, &json!([boxes, places, count]))), Ok(()));
}

#[test]
fn box_whose_score_equals_the_threshold_in_its_dtype_is_not_valid() {
    let row = json!({ "tensor": [1, 1, 6], "dtype": "float32", "data": [0.0, 0.3, 0.0, 0.0, 1.0, 1.0] });
    let case = json!({
        "operator": "vision.get_valid_counts",
        "args": { "data": row, "score_threshold": { "attr": 0.3 } },
        "symbols": {},
        "results": [
            { "shape": [1], "dtype": "int32", "data": [0] },
            { "shape": [1, 1, 6], "dtype": "float32", "data": [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0] },
            { "shape": [1, 1], "dtype": "int32", "data": [-1] },
        ],
    });
    assert_eq!(check(&case), Ok(()));
}
