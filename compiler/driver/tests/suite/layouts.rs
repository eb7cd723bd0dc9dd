//! Checks that `ConvertLayout` preserves values: every operator that has a layout rule is placed after a convolution
//! and before one, in several layouts. Random chains of operators are checked as well.

use rx_db::{FileId, FileKind, Workspace};
use rx_driver::values::{File, Verdict, compare_functions};
use rx_transform::pass::parse;
use std::collections::BTreeSet;

/// The requested layouts: permuted axes, and split axes.
const LAYOUTS_2D: &[[&str; 2]] =
    &[["NHWC", "OHWI"], ["CWHN", "HWIO"], ["NCHW4c", "OIHW4o"], ["NHWC4c", "OHWI4o"], ["NCHW2n4c", "OIHW2i4o"]];
const LAYOUTS_1D: &[[&str; 2]] = &[["NWC", "OWI"], ["WCN", "WIO"], ["NCW4c", "OIW4o"]];
const LAYOUTS_3D: &[[&str; 2]] = &[["NDHWC", "ODHWI"], ["NHWDC", "HWDIO"], ["NCDHW4c", "OIDHW4o"]];

/// Binary operators that take integers.
const OF_INTEGERS: &[&str] = &["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"];

/// Calls of operators on `a`, the result of a convolution. Parts separated by `;` are bindings, and the last part is
/// the result.
const CALLS_2D: &[(&str, &[&str])] = &[
    ("astype", &["R.astype(a, \"float16\")"]),
    ("bitwise_not", &["i = R.astype(a, \"int32\"); R.bitwise_not(i)"]),
    ("logical_not", &["i = R.astype(a, \"bool\"); R.logical_not(i)"]),
    ("ccl.allreduce", &["R.ccl.allreduce(a, \"sum\")"]),
    ("ccl.allgather", &["R.ccl.allgather(a, 1)"]),
    ("ccl.broadcast_from_worker0", &["R.ccl.broadcast_from_worker0(a)"]),
    ("nn.dropout", &["d = R.nn.dropout(a); d[0]"]),
    ("nn.softmax", &["R.nn.softmax(a, axis=1)", "R.nn.softmax(a, axis=-1)"]),
    ("nn.prelu", &["R.nn.prelu(a, chan, axis=1)", "R.nn.prelu(a, row, axis=-1)"]),
    ("nn.batch_norm", &["v = R.exp(chan); t = R.nn.batch_norm(a, chan, chan, chan, v, axis=1, training=False); t[0]"]),
    ("nn.layer_norm", &["R.nn.layer_norm(a, plane, plane, axes=[-2, -1])", "R.nn.layer_norm(a, chan, chan, axes=[1])"]),
    ("nn.rms_norm", &["R.nn.rms_norm(a, plane, axes=[-2, -1])", "R.nn.rms_norm(a, row)"]),
    ("nn.group_norm", &["R.nn.group_norm(a, chan, chan, num_groups=2, channel_axis=1, axes=[2, 3])"]),
    ("nn.instance_norm", &["R.nn.instance_norm(a, chan, chan, channel_axis=1, axes=[-2, -1])"]),
    ("ewise_fma", &["R.ewise_fma(a, y, y)", "R.ewise_fma(y, a, a)", "R.ewise_fma(y, y, a)"]),
    (
        "concat",
        &[
            "b = R.concat((a, y, a), axis=1); c = R.split(b, 3, axis=1); c[1]",
            "R.concat((y, a), axis=-1)",
            "b = R.concat((a, a), axis=0); R.concat((b, b), axis=0)",
        ],
    ),
    (
        "split",
        &[
            "s = R.split(a, 2, axis=1); R.concat((s[1], s[0]), axis=1)",
            "s = R.split(a, [3, 5], axis=1); R.concat((s[2], s[1], s[0]), axis=1)",
            "s = R.split(a, [2], axis=-1); R.concat((s[1], s[0]), axis=-1)",
            "R.split(a, 4, axis=1)",
        ],
    ),
    (
        "stack",
        &[
            "R.stack((a, y), axis=0)",
            "R.stack((a, a, y), axis=2)",
            "R.stack((a, y), axis=4)",
            "s = R.stack((a, y), axis=-1); R.max(s, axis=-1)",
            "R.stack((y, a))",
        ],
    ),
    (
        "expand_dims",
        &[
            "R.expand_dims(a, axis=0)",
            "R.expand_dims(a, axis=[-3, 1])",
            "e = R.expand_dims(a, axis=[2, 3]); R.squeeze(e, axis=[2, 3])",
        ],
    ),
    (
        "squeeze",
        &["s = R.sum(a, axis=[1], keepdims=True); R.squeeze(s)", "s = R.max(a, 2, True); R.squeeze(s, axis=[-2])"],
    ),
    (
        "permute_dims",
        &["R.permute_dims(a)", "R.permute_dims(a, axes=[0, 1, 3, 2])", "R.permute_dims(a, [-1, 0, 2, 1])"],
    ),
    ("repeat", &["R.repeat(a, 2, axis=1)", "R.repeat(a, 2)", "R.repeat(a, 3, axis=-1)"]),
    ("tile", &["R.tile(a, 2)", "R.tile(a, [2, 1, 3])", "R.tile(a, [1, 2, 3, 1])", "R.tile(a, [2, 1, 1, 3, 1])"]),
    ("flip", &["R.flip(a, axis=1)", "R.flip(a, axis=-1)"]),
    (
        "strided_slice",
        &[
            "R.strided_slice(a, axes=[1, 3], begin=[0, 1], end=[8, 4], strides=[2, 1])",
            "R.strided_slice(a, axes=[-2], begin=[-3], end=[4])",
        ],
    ),
    (
        "dynamic_strided_slice",
        &[
            "R.dynamic_strided_slice(a, R.const([0, 0, 1, 2], \"int64\"), R.const([2, 8, 4, 4], \"int64\"), R.const([1, 1, 2, 1], \"int64\"))",
        ],
    ),
    ("gather_elements", &["R.gather_elements(a, places, axis=1)", "R.gather_elements(y, places, axis=-1)"]),
    (
        "scatter_elements",
        &["R.scatter_elements(a, places, y, axis=1)", "R.scatter_elements(y, places, a, axis=3, reduction=\"add\")"],
    ),
    ("scatter_nd", &["R.scatter_nd(a, rows, y)", "R.scatter_nd(y, rows, a)", "R.scatter_nd(a, cells, of_cells)"]),
    (
        "nn.max_pool2d",
        &[
            "R.nn.max_pool2d(a, pool_size=[3, 2], strides=[1, 2], padding=[1, 0, 1, 0])",
            "R.nn.max_pool2d(a, pool_size=[2, 2], strides=[2, 2], ceil_mode=True)",
        ],
    ),
    ("nn.avg_pool2d", &["R.nn.avg_pool2d(a, pool_size=[3, 2], padding=[1, 0, 1, 0], count_include_pad=True)"]),
    ("nn.adaptive_avg_pool2d", &["R.nn.adaptive_avg_pool2d(a, output_size=[3, 2])", "R.nn.adaptive_avg_pool2d(a, 1)"]),
    ("nn.conv2d", &["R.nn.conv2d(a, w, padding=[1, 0], strides=[1, 2])", "R.nn.conv2d(a, depth, groups=8)"]),
    ("nn.conv2d_transpose", &["R.nn.conv2d_transpose(a, w, strides=[2, 1], padding=[1, 0], output_padding=[1, 0])"]),
    (
        "image.resize2d",
        &[
            "R.image.resize2d(a, R.shape([9, 5]), layout=\"NCHW\")",
            "R.image.resize2d(a, R.shape([12, 12]), layout=\"NCHW\", method=\"nearest_neighbor\", rounding_method=\"floor\")",
        ],
    ),
];

const CALLS_1D: &[(&str, &[&str])] = &[
    ("nn.conv1d", &["R.nn.conv1d(a, w, padding=1)", "R.nn.relu(a)"]),
    ("nn.conv1d_transpose", &["R.nn.conv1d_transpose(a, w, strides=2)"]),
    ("nn.max_pool1d", &["R.nn.max_pool1d(a, pool_size=2, strides=2)"]),
    ("nn.avg_pool1d", &["R.nn.avg_pool1d(a, pool_size=3, padding=[1, 1])"]),
    ("nn.adaptive_avg_pool1d", &["R.nn.adaptive_avg_pool1d(a, output_size=3)"]),
];

const CALLS_3D: &[(&str, &[&str])] = &[
    ("nn.conv3d", &["R.nn.conv3d(a, w, padding=1)", "R.add(a, a)"]),
    ("nn.conv3d_transpose", &["R.nn.conv3d_transpose(a, w, strides=2)"]),
    ("nn.max_pool3d", &["R.nn.max_pool3d(a, pool_size=[2, 2, 2], strides=[2, 2, 2])"]),
    ("nn.avg_pool3d", &["R.nn.avg_pool3d(a, pool_size=[2, 1, 2])"]),
    ("nn.adaptive_avg_pool3d", &["R.nn.adaptive_avg_pool3d(a, output_size=[1, 2, 3])"]),
    ("image.resize3d", &["R.image.resize3d(a, R.shape([3, 5, 6]), layout=\"NCDHW\")"]),
];

/// The parameters that the calls use.
const PARAMS_2D: &[(&str, &str)] = &[
    ("x", "R.Tensor((2, 8, 4, 4), \"float32\")"),
    ("w", "R.Tensor((8, 8, 3, 3), \"float32\")"),
    ("depth", "R.Tensor((8, 1, 3, 3), \"float32\")"),
    ("y", "R.Tensor((2, 8, 4, 4), \"float32\")"),
    ("column", "R.Tensor((1, 8, 1, 1), \"float32\")"),
    ("stripe", "R.Tensor((8, 1, 1), \"float32\")"),
    ("plane", "R.Tensor((4, 4), \"float32\")"),
    ("chan", "R.Tensor((8,), \"float32\")"),
    ("row", "R.Tensor((4,), \"float32\")"),
    ("one", "R.Tensor((), \"float32\")"),
    ("places", "R.Tensor((2, 8, 4, 4), \"int64\")"),
    ("rows", "R.Tensor((2, 1), \"int64\")"),
    ("cells", "R.Tensor((3, 2), \"int64\")"),
    ("of_cells", "R.Tensor((3, 4, 4), \"float32\")"),
];

const PARAMS_1D: &[(&str, &str)] =
    &[("x", "R.Tensor((2, 8, 6), \"float32\")"), ("w", "R.Tensor((8, 8, 3), \"float32\")")];

const PARAMS_3D: &[(&str, &str)] =
    &[("x", "R.Tensor((2, 8, 4, 3, 5), \"float32\")"), ("w", "R.Tensor((8, 8, 3, 3, 3), \"float32\")")];

fn read(text: &str) -> Result<(Workspace, FileId), String> {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    let found = workspace.diagnostics(file);
    match found.into_iter().find(|found| found.severity == rx_base::Severity::Error) {
        Some(error) => Err(format!("{}\n{text}", error.message)),
        None => Ok((workspace, file)),
    }
}

/// Returns a function with these parameters whose dataflow block contains these lines. The last line is `name = …`.
fn program(params: &[(&str, &str)], lines: &[String]) -> String {
    let body = lines.join("\n            ");
    let names =
        |(name, _): &&(&str, &str)| body.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == *name);
    let params: Vec<String> = params.iter().filter(names).map(|(name, ty)| format!("{name}: {ty}")).collect();
    let result = lines.last().and_then(|line| line.split_once(" = ")).map_or("", |(name, _)| name);
    format!(
        "@I.ir_module\nclass Module:\n    @R.function\n    def main({}):\n        with R.dataflow():\n            {body}\n            \
         R.output({result})\n        return {result}\n",
        params.join(", ")
    )
}

/// Runs the pass on a program and compares the values. Returns the largest difference, or the error.
fn kept(text: &str, operator: &str, layouts: &[&str]) -> Result<f64, String> {
    let steps = parse(&format!("ConvertLayout({{\"relax.{operator}\": {layouts:?}}})")).map_err(|error| error.0)?;
    let (before, file) = read(text)?;
    let mut module = before.module(before.first_module(file))?;
    for step in &steps {
        module = (step.pass.run)(module, &step.arguments).map_err(|error| error.0)?;
    }
    let made = rx_transform::print(&module);
    let (after, new) = read(&made)?;
    let old = File { workspace: &before, file };
    let found = compare_functions(old, File { workspace: &after, file: new }, None, 0);
    match found.as_slice() {
        [(_, Verdict::Same(error))] if made.contains(&format!("layout=\"{}\"", layouts[0])) => Ok(*error),
        [(_, Verdict::Same(_))] => Err(format!("{operator} is not converted\n{text}\n{made}")),
        found => Err(format!("{layouts:?}: {found:?}\n{text}\n{made}")),
    }
}

/// Returns the lines of a call after a convolution. If the shape of its result fits, another convolution follows it.
fn around(call: &str, conv: &str, params: &[(&str, &str)]) -> String {
    let mut lines = vec![format!("a = R.{conv}(x, w, padding=1)")];
    let mut parts: Vec<&str> = call.split("; ").collect();
    let last = parts.pop().unwrap_or_default();
    lines.extend(parts.into_iter().map(str::to_owned));
    lines.push(format!("r = {last}"));
    let in_front = program(params, &[lines.as_slice(), &[format!("z = R.{conv}(r, w, padding=1)")]].concat());
    if read(&in_front).is_ok() { in_front } else { program(params, &lines) }
}

/// The operands of binary operators, and the attributes of reductions. For operators that share a rule, all of them are
/// tried with one operator.
const OPERANDS: &[&str] =
    &["a, column", "row, a", "a, y", "y, a", "a, a", "stripe, a", "plane, a", "a, one", "R.const(2.5), a"];
const REDUCED: &[&str] =
    &["a, axis=1", "a, axis=[1, 2], keepdims=True", "a", "a, axis=[-2, -1]", "a, axis=[0, 3]", "a, 3, keepdims=True"];

/// Returns calls of an operator that has a layout rule.
fn calls(schema: &rx_ops::Schema) -> Vec<String> {
    let name = schema.name;
    let params: Vec<&str> = schema.params.iter().map(|param| param.name).collect();
    let with = |all: &[&str], thorough: &str| {
        let count = if name == thorough { all.len() } else { 2 };
        all.iter().take(count).map(|operands| format!("R.{name}({operands})")).collect()
    };
    match params.as_slice() {
        [_] => vec![format!("R.{name}(a)")],
        ["x1", "x2"] if OF_INTEGERS.contains(&name) => {
            vec![format!("i = R.astype(a, \"int32\"); R.{name}(i, R.const(3, \"int32\"))")]
        }
        ["x1", "x2"] if name.starts_with("logical") => {
            vec![format!("i = R.astype(a, \"bool\"); j = R.astype(y, \"bool\"); R.{name}(i, j)")]
        }
        ["x1", "x2"] => with(OPERANDS, "add"),
        ["x", "axis", "keepdims"] => with(REDUCED, "sum"),
        _ => Vec::new(),
    }
}

#[test]
fn every_operator_with_a_layout_rule_keeps_values() {
    operators_keep_values(false);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn every_operator_with_a_layout_rule_keeps_values_in_all_layouts() {
    operators_keep_values(true);
}

/// Places every operator that has a layout rule beside convolutions: in all layouts, or in one that permutes the axes and
/// one that splits one.
fn operators_keep_values(in_all: bool) {
    let of = |all: &[[&'static str; 2]]| if in_all { all.to_vec() } else { vec![all[0], all[2]] };
    let ruled = || rx_ops::all().filter(|schema| schema.traits.layout.is_some());
    let (mut tried, mut runs, mut mistakes) = (BTreeSet::new(), 0, Vec::new());
    let mut all = |operator, call: &str, conv: &str, params, layouts: &[[&str; 2]]| {
        tried.insert(operator);
        let text = around(call, conv, params);
        runs += layouts.len();
        mistakes.extend(layouts.iter().filter_map(|layouts| kept(&text, conv, layouts).err()));
    };
    let written = [
        ("nn.conv1d", CALLS_1D, PARAMS_1D, LAYOUTS_1D),
        ("nn.conv2d", CALLS_2D, PARAMS_2D, LAYOUTS_2D),
        ("nn.conv3d", CALLS_3D, PARAMS_3D, LAYOUTS_3D),
    ];
    for (conv, calls, params, layouts) in written {
        for (operator, calls) in calls {
            calls.iter().for_each(|call| all(*operator, call, conv, params, &of(layouts)));
        }
    }
    for schema in ruled().filter(|schema| !CALLS_2D.iter().any(|(written, _)| *written == schema.name)) {
        calls(schema).iter().for_each(|call| all(schema.name, call, "nn.conv2d", PARAMS_2D, &of(LAYOUTS_2D)));
    }
    println!("{} of {runs} programs compute the same", runs - mistakes.len());
    let missing: Vec<&str> = ruled().map(|schema| schema.name).filter(|name| !tried.contains(name)).collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
    let shown: String = mistakes.iter().take(8).cloned().collect();
    assert!(mistakes.is_empty(), "{} mistakes\n{shown}", mistakes.len());
}

/// Layouts that can be requested for other operators than convolutions.
#[test]
fn requested_layouts_are_applied_and_keep_values() {
    let asked: &[(&str, &[&str], &str)] = &[
        ("nn.conv2d", &["NHWC", "OHWI", "NCHW"], "r = R.nn.conv2d(x, w)"),
        ("nn.conv2d", &["NCHW", "OHWI"], "r = R.nn.conv2d(x, w, data_layout=\"NCWH\", kernel_layout=\"OIHW\")"),
        ("nn.conv2d_transpose", &["NHWC", "IHWO"], "r = R.nn.conv2d_transpose(x, w, strides=[2, 1])"),
        ("nn.conv2d_transpose", &["NCHW4c", "IOHW4o"], "r = R.nn.conv2d_transpose(x, w)"),
        ("nn.conv2d_transpose", &["NCHW4c", "IOHW4i4o"], "r = R.nn.conv2d_transpose(x, w)"),
        ("image.resize2d", &["NHWC"], "r = R.image.resize2d(x, R.shape([9, 5]), layout=\"NCHW\")"),
    ];
    for (operator, layouts, line) in asked {
        let text = program(PARAMS_2D, &["x = R.nn.relu(y)".to_owned(), (*line).to_owned(), "q = R.exp(r)".to_owned()]);
        kept(&text, operator, layouts).unwrap_or_else(|mistake| panic!("{mistake}"));
    }
}

/// Expressions that each compute a tensor of the shape of `x` from two others.
const LINKS: &[&str] = &[
    "R.nn.conv2d({p}, w, padding=1)",
    "R.nn.conv2d({p}, w, padding=1)",
    "R.nn.relu({p})",
    "R.add({p}, {q})",
    "R.multiply({p}, column)",
    "R.subtract(row, {p})",
    "R.nn.softmax({p}, axis=1)",
    "R.nn.max_pool2d({p}, pool_size=[3, 3], padding=[1, 1, 1, 1])",
    "R.nn.layer_norm({p}, plane, plane, axes=[2, 3])",
    "R.flip({p}, axis=3)",
    "R.permute_dims({p}, axes=[0, 1, 3, 2])",
    "R.image.resize2d({p}, R.shape([4, 4]), layout=\"NCHW\")",
    "R.ewise_fma({p}, {q}, {p})",
    "R.maximum(R.sum({p}, axis=[1], keepdims=True), {q})",
    "R.add(R.mean({p}, axis=[2, 3], keepdims=True), {q})",
    "R.squeeze(R.expand_dims({p}, axis=[2]), axis=[2])",
    "R.strided_slice(R.concat(({p}, {q}), axis=1), axes=[1], begin=[4], end=[12])",
    "R.gather_elements({p}, places, axis=1)",
    "R.max(R.stack(({p}, {q}), axis=2), axis=2)",
    "R.reshape({p}, R.shape([2, 8, 4, 4]))",
    "R.strided_slice(R.tile({p}, [1, 2, 1, 1]), axes=[1], begin=[3], end=[11])",
];

#[test]
fn chains_of_operators_keep_values() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    for _ in 0..16 {
        let mut lines = vec!["v0 = R.nn.conv2d(x, w, padding=1)".to_owned()];
        for at in 1..9 {
            let (link, p, q) = (LINKS[below(LINKS.len())], below(at), below(at));
            lines.push(format!("v{at} = {}", link.replace("{p}", &format!("v{p}")).replace("{q}", &format!("v{q}"))));
        }
        // All values are used, so none is removed.
        let sum = (1..9).fold("v0".to_owned(), |sum, at| format!("R.add({sum}, v{at})"));
        lines.push(format!("all = {sum}"));
        let text = program(PARAMS_2D, &lines);
        for layouts in LAYOUTS_2D {
            kept(&text, "nn.conv2d", layouts).unwrap_or_else(|mistake| panic!("{mistake}"));
        }
    }
}
