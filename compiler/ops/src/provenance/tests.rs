use super::{Facet, Input, Part, Provenance, provenance, reported_formula};
use crate::tests::{Given, arguments_of, number, numbers, shape, tensor, text, tuple};
use rx_base::symbolic::Bounds;

/// Prints the sources of a part of the result: `data.2 weight.2 strides[0]: formula`.
fn of(op: &str, args: &[(&str, Given)], part: Part) -> String {
    let (schema, arguments) = arguments_of(op, args);
    let Some(found) = provenance(schema, &arguments, &Bounds::default(), &Facet::of_part(part)) else {
        return "unknown".to_owned();
    };
    let Provenance { sources, formula, .. } = found;
    let reported = reported_formula(schema, &arguments, &Bounds::default(), &Facet::of_part(part));
    assert!(reported.is_none() || reported == formula, "{reported:?} is reported, {formula:?} found");
    let place = |input: &Input| {
        let param = schema.params[input.param()].name;
        match input {
            Input::Operand { facet, .. } | Input::Type { facet, .. } => {
                let path: String = facet.path.iter().map(|at| format!("[{at}]")).collect();
                match facet.part {
                    Part::Dim(axis) => format!("{param}{path}.{axis}"),
                    other => format!("{param}{path}.{other:?}"),
                }
            }
            Input::Attribute { element: Some(at), .. } => format!("{param}[{at}]"),
            Input::Attribute { element: None, .. } => param.to_owned(),
        }
    };
    let sources = sources.iter().map(|source| {
        let equals: String = source.equals.iter().map(|input| format!("={}", place(input))).collect();
        place(&source.input) + &equals
    });
    let sources = sources.collect::<Vec<_>>().join(" ");
    formula.map_or(sources.clone(), |formula| format!("{sources}: {formula}"))
}

#[test]
fn windows_know_their_formula() {
    let conv = || {
        vec![
            ("data", tensor("1 3 224 224:float32")),
            ("weight", tensor("64 3 7 7:float32")),
            ("strides", numbers(&[2, 2])),
            ("padding", numbers(&[3, 3, 3, 3])),
        ]
    };
    let height = "data.2 weight.2 strides[0] padding[0] padding[2] dilation[0]: \
                  (224 + 3 + 3 - 1*(7 - 1) - 1) // 2 + 1 = 112";
    assert_eq!(of("nn.conv2d", &conv(), Part::Dim(2)), height);
    assert_eq!(of("nn.conv2d", &conv(), Part::Dim(1)), "weight.0");
    assert_eq!(of("nn.conv2d", &conv(), Part::Dim(0)), "data.0");
    assert_eq!(of("nn.conv2d", &conv(), Part::Dtype), "data.Dtype");
}

#[test]
fn formula_of_a_dim_that_an_argument_has_needs_a_search() {
    let reported = |padding: &[i64], part: Part| {
        let args = [
            ("data", tensor("1 64 32 32:float32")),
            ("weight", tensor("64 64 3 3:float32")),
            ("padding", numbers(padding)),
        ];
        let (schema, arguments) = arguments_of("nn.conv2d", &args);
        reported_formula(schema, &arguments, &Bounds::default(), &Facet::of_part(part))
    };
    assert_eq!(reported(&[2, 1, 1, 1], Part::Dim(2)).as_deref(), Some("(32 + 2 + 1 - 1*(3 - 1) - 1) // 1 + 1 = 33"));
    assert_eq!(reported(&[1, 1, 1, 1], Part::Dim(2)), None);
    assert_eq!(reported(&[2, 1, 1, 1], Part::Dim(0)), None);
}

#[test]
fn dims_that_must_agree_are_one_source() {
    let add = [("x1", tensor("1 64 64 64:float32")), ("x2", tensor("1 64 64 64:float32"))];
    assert_eq!(of("add", &add, Part::Dim(2)), "x1.2=x2.2");
    let bias = [("x1", tensor("1 64 56 56:float32")), ("x2", tensor("64 1 1:float32"))];
    assert_eq!(of("add", &bias, Part::Dim(1)), "x1.1=x2.0");
    assert_eq!(of("add", &bias, Part::Dim(2)), "x1.2");
    let join = [("tensors", tuple(&["2 64 8:int8", "2 32 8:int8", "2 n 8:int8"])), ("axis", number(1))];
    assert_eq!(of("concat", &join, Part::Dim(1)), "tensors[0].1 tensors[1].1 tensors[2].1: 64 + 32 + n = n + 96");
    assert_eq!(of("concat", &join, Part::Dim(2)), "tensors[0].2=tensors[1].2=tensors[2].2");
}

#[test]
fn moved_dims_are_traced_to_their_operands() {
    let permute = [("x", tensor("1 2 3 4:float32")), ("axes", numbers(&[0, 3, 1, 2]))];
    assert_eq!(of("permute_dims", &permute, Part::Dim(1)), "x.3");
    let reshape = [("x", tensor("2 12 n:float32")), ("shape", shape("24 n"))];
    assert_eq!(of("reshape", &reshape, Part::Dim(0)), "shape.0");
    let product = [("x1", tensor("b 5 7:float16")), ("x2", tensor("7 9:float16"))];
    assert_eq!(of("matmul", &product, Part::Dim(2)), "x2.1");
    assert_eq!(of("matmul", &product, Part::Dim(0)), "x1.0");
    assert_eq!(of("matmul", &product, Part::Dtype), "x1.Dtype");
    let cast = [("x", tensor("4:float32")), ("dtype", text("int8"))];
    assert_eq!(of("astype", &cast, Part::Dtype), "dtype");
    assert_eq!(of("astype", &cast, Part::Rank), "x.Rank");
    let half = [("x", tensor("4:float32")), ("dtype", text("float16"))];
    assert_eq!(of("astype", &half, Part::Dtype), "dtype");
}

#[test]
fn a_result_that_is_not_known_has_no_source() {
    assert_eq!(of("nn.relu", &[("data", tensor("?2:float32"))], Part::Dim(0)), "unknown");
    assert_eq!(of("nn.relu", &[("data", tensor("?2:float32"))], Part::Rank), "data.Rank");
}
