//! Tests of the printed output of `ConvertLayout` for small programs. Tests of `rx-driver` check that values stay the
//! same.

use crate::common::{apply, read};

/// Runs `ConvertLayout` on the lines of a dataflow block, whose last line is its output. Returns the lines of the
/// result without types and without some attributes, such as `strides`, that have their default values.
fn made(layouts: &str, params: &str, lines: &[&str]) -> Vec<String> {
    let body = lines.join("\n            ");
    let output = lines.last().and_then(|line| line.split([':', ' ']).next()).unwrap_or_default();
    let text = format!(
        "n = TypeVar(\"n\")\n@I.ir_module\nclass Module:\n    @R.function\n    def main({params}):\n        with \
         R.dataflow():\n            {body}\n            R.output({output})\n        return {output}\n"
    );
    let made = apply(&format!("ConvertLayout({layouts})"), read(&text)).expect("a module");
    let printed = rx_transform::print(&made);
    read(&printed);
    let usual =
        [", strides=[1, 1]", ", dilation=[1, 1]", ", groups=1", ", padding=0", ", padding=[0, 0]", ", pad_value=None"];
    let binding = |line: &str| {
        let (name, rest) = line.trim().split_once(": ")?;
        let (_, value) = rest.split_once(" = ").filter(|_| line.starts_with("            "))?;
        Some(usual.iter().fold(format!("{name} = {value}"), |line, usual| line.replace(usual, "")))
    };
    printed.lines().filter_map(binding).collect()
}

const NHWC: &str = "{\"relax.nn.conv2d\": [\"NHWC\", \"OHWI\"]}";
const NCHW4C: &str = "{\"relax.nn.conv2d\": [\"NCHW4c\", \"OIHW4o\"]}";
const OPERANDS: &str = "x: R.Tensor((2, 8, 6, 6), \"float32\"), w: R.Tensor((8, 8, 3, 3), \"float32\")";

fn with(more: &str) -> String {
    format!("{OPERANDS}, {more}")
}

/// The converted operands of a convolution, and the convolution.
const CONV_NHWC: [&str; 3] = [
    "lv = R.permute_dims(x, axes=[0, 2, 3, 1])",
    "lv1 = R.permute_dims(w, axes=[0, 2, 3, 1])",
    "a = R.nn.conv2d(lv, lv1, data_layout=\"NHWC\", kernel_layout=\"OHWI\", out_layout=\"NHWC\")",
];
const CONV_NCHW4C: [&str; 3] = [
    "lv = R.layout_transform(x, index_map=T.index_map(lambda i0, i1, i2, i3: (i0, i1 // 4, i2, i3, i1 % 4)))",
    "lv1 = R.layout_transform(w, index_map=T.index_map(lambda i0, i1, i2, i3: (i0 // 4, i1, i2, i3, i0 % 4)))",
    "a = R.nn.conv2d(lv, lv1, data_layout=\"NCHW4c\", kernel_layout=\"OIHW4o\", out_layout=\"NCHW4c\")",
];
/// The conversion of the result of [`CONV_NHWC`] back to the original layout.
const BACK: &str = "lv2 = R.permute_dims(a, axes=[0, 3, 1, 2])";
const JOINED: &str =
    "lv2 = R.layout_transform(a, index_map=T.index_map(lambda i0, i1, i2, i3, i4: (i0, i1 * 4 + i4, i2, i3)))";

/// Checks the output for a convolution `a` followed by more lines.
fn check(layouts: &str, params: &str, behind: &[&str], wanted: &[&str]) {
    let conv = if layouts == NHWC { CONV_NHWC } else { CONV_NCHW4C };
    let lines = [&["a = R.nn.conv2d(x, w)"], behind].concat();
    assert_eq!(made(layouts, params, &lines), [&conv, wanted].concat());
}

#[test]
fn operators_between_convolutions_follow_their_layout() {
    let behind = ["b = R.nn.relu(a)", "c = R.nn.softmax(b, axis=1)", "d = R.nn.conv2d(c, w)"];
    let wanted = [
        "b = R.nn.relu(a)",
        "c = R.nn.softmax(b, axis=3)",
        "lv2 = R.permute_dims(w, axes=[0, 2, 3, 1])",
        "lv3 = R.nn.conv2d(c, lv2, data_layout=\"NHWC\", kernel_layout=\"OHWI\", out_layout=\"NHWC\")",
        "d = R.permute_dims(lv3, axes=[0, 3, 1, 2])",
    ];
    check(NHWC, OPERANDS, &behind, &wanted);
}

#[test]
fn axes_are_split_where_extents_can_be() {
    let behind = ["b = R.nn.adaptive_avg_pool2d(a, output_size=[2, 2])", "c = R.sum(b, axis=[1, 3])"];
    let wanted = [
        "b = R.nn.adaptive_avg_pool2d(a, output_size=[2, 2], layout=\"NCHW4c\", out_layout=\"NCHW4c\")",
        "c = R.sum(b, axis=[1, 3, 4], keepdims=False)",
    ];
    check(NCHW4C, OPERANDS, &behind, &wanted);
    let of_six = "x: R.Tensor((2, 6, 6, 6), \"float32\"), w: R.Tensor((8, 6, 3, 3), \"float32\")";
    let as_it_was = ["a = R.nn.conv2d(x, w, data_layout=\"NCHW\", kernel_layout=\"OIHW\")"];
    assert_eq!(made(NCHW4C, of_six, &["a = R.nn.conv2d(x, w)"]), as_it_was);
}

#[test]
fn split_axis_is_merged_before_unsupported_operators() {
    let kept = ("b = R.sum(a, axis=1, keepdims=True)", "b = R.sum(lv2, axis=[1], keepdims=True)");
    let cut = ("b = R.split(a, [3], axis=1)", "b = R.split(lv2, indices_or_sections=[3], axis=1)");
    // The axis of the bias that would be split may have extent 1, in which case it is broadcast.
    let added = ("b = R.add(a, y)", "b = R.add(lv2, y)");
    for (line, wanted) in [kept, cut, added] {
        check(NCHW4C, &with("y: R.Tensor((2, n, 1, 1), \"float32\")"), &[line], &[JOINED, wanted]);
    }
}

#[test]
fn operators_that_depend_on_element_order_get_the_original_layout() {
    let repeated = ("b = R.repeat(a, 2)", "b = R.repeat(lv2, repeats=2)");
    let flat = ("b = R.flatten(a)", "b = R.flatten(lv2)");
    let written = ("b = R.scatter_nd(a, i, u)", "b = R.scatter_nd(lv2, i, u, reduction=\"update\")");
    for (line, wanted) in [repeated, flat, written] {
        let more = with("i: R.Tensor((3, 2), \"int64\"), u: R.Tensor((3, 4, 4), \"float32\")");
        check(NHWC, &more, &[line], &[BACK, wanted]);
    }
}

#[test]
fn tuple_fields_have_independent_layouts() {
    let behind = ["b = R.nn.dropout(a)", "c = b[0]", "d = (c, v)", "e = R.stack((c, c), axis=2)", "f = (e, d)"];
    let wanted = [
        "b = R.nn.dropout(a, rate=0.5)",
        "c = b[0]",
        "d = c, v",
        "e = R.stack((c, c), axis=1)",
        "lv2 = R.permute_dims(e, axes=[0, 4, 1, 2, 3])",
        "lv3 = d[0]",
        "lv4 = R.permute_dims(lv3, axes=[0, 3, 1, 2])",
        "lv5 = d[1]",
        "f = lv2, (lv4, lv5)",
    ];
    check(NHWC, &with("v: R.Tensor((8,), \"float32\")"), &behind, &wanted);
}

#[test]
fn cast_keeps_the_layout_of_its_tensor() {
    let params = "x: R.Tensor(ndim=4, dtype=\"float32\"), w: R.Tensor((8, 8, 3, 3), \"float32\")";
    let behind = ["b = R.match_cast(a, R.Tensor((2, 8, 4, 5), \"float32\"))", "c = R.exp(b)"];
    let wanted = [
        "b = R.match_cast(a, R.Tensor((2, 4, 5, 8), dtype=\"float32\"))",
        "lv2 = R.exp(b)",
        "c = R.permute_dims(lv2, axes=[0, 3, 1, 2])",
    ];
    check(NHWC, params, &behind, &wanted);
}

#[test]
fn operators_without_layout_rule_or_rank_get_operands_as_typed() {
    let behind = ["b = R.add(y, a)", "c = R.cumsum(a, axis=1)", "d = (b, c)"];
    let again = "lv3 = R.permute_dims(a, axes=[0, 3, 1, 2])";
    let wanted = [BACK, "b = R.add(y, lv2)", again, "c = R.cumsum(lv3, axis=1)", "d = b, c"];
    check(NHWC, &with("y: R.Tensor(dtype=\"float32\")"), &behind, &wanted);
}

#[test]
fn invalid_layout_requests_are_refused() {
    let program = || read(&format!("@R.function\ndef main({OPERANDS}):\n    a = R.nn.conv2d(x, w)\n    return a\n"));
    let why = |arguments: &str| {
        apply(&format!("ConvertLayout({arguments})"), program()).err().map(|error| error.0).unwrap_or_default()
    };
    for (arguments, wanted) in [
        ("", "argument `desired_layouts` is missing"),
        ("[]", "`desired_layouts` is a dictionary of operators and lists of layouts"),
        ("{}, \"cb\"", "`layout_cb` is a function of Python"),
        ("{\"relax.nn.conv2\": [\"NHWC\", \"OHWI\"]}", "did you mean `relax.nn.conv2d`?"),
        ("{\"relax.nn.relu\": [\"NHWC\"]}", "`relax.nn.relu` follows the layouts of its operands"),
        ("{\"relax.reshape\": [\"NHWC\"]}", "`relax.reshape` takes its operands as typed"),
        ("{\"relax.nn.conv2d\": \"NHWC\"}", "the layouts of `relax.nn.conv2d` are a list of strings"),
        ("{\"relax.nn.conv2d\": [\"NHWC\"]}", "takes a list of data_layout, kernel_layout, out_layout; 1 are given"),
        ("{\"relax.nn.conv2d\": [\"NWC\", \"OHWI\"]}", "takes no layout \"NWC\": it lacks H"),
        ("{\"relax.nn.conv2d\": [\"NHWC4\", \"OHWI\"]}", "takes no layout \"NHWC4\": it ends within a piece"),
    ] {
        assert!(why(arguments).contains(wanted), "{arguments}: {}", why(arguments));
    }
}
