//! Channels-last layout: tensors that only kernels access may be stored with their channels innermost, as tensor cores
//! read the data of convolutions. The results are those of the interpreter, up to rounding.

use crate::common::Text;
use rx_base::DType;
use rx_cuda::rules::Target;
use rx_lower::{DefaultTargetInfo, Operation, Program};
use rx_runtime::Backend;
use rx_runtime::cuda::Simulated;
use rx_runtime::interp::Interpreter;
use rx_tensor::{Tensor, compare, random};

/// Returns a function `main` with these parameters, all of one dtype. The first `inputs` of them are inputs, the others
/// weights.
fn function(dtype: &str, inputs: usize, params: &[(&str, &str)], body: &[&str]) -> String {
    let params: Vec<String> =
        params.iter().map(|(name, shape)| format!("{name}: R.Tensor({shape}, \"{dtype}\")")).collect();
    let body: String = body.iter().map(|line| format!("    {line}\n")).collect();
    let said = format!("    R.func_attr({{\"num_input\": {inputs}}})\n");
    format!("@R.function\ndef main({}):\n{said}{body}", params.join(", "))
}

fn drawn(dtype: &str, shapes: &[Vec<i64>]) -> Vec<Tensor> {
    let dtype = DType::parse(dtype).expect("a dtype");
    let draw = |(at, shape): (usize, &Vec<i64>)| random::draw(3, at as u64, dtype, shape, None);
    shapes.iter().enumerate().map(|one| draw(one).expect("a tensor")).collect()
}

/// Runs the text on simulated CUDA with this target in strict mode. Returns the results and the program.
fn simulated(text: &Text, target: &Target, arguments: &[Tensor]) -> (Vec<Tensor>, Program) {
    let device = Simulated::of(target.clone()).strict();
    let program = text.program_for(Some(device.target_info())).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let run = text.run(true, device, arguments);
    (run.result.unwrap_or_else(|error| panic!("{error}")).tensors(), program)
}

/// Returns the axis order of each buffer whose axes are permuted, prefixed by the kernel's and the buffer's name.
fn orders(program: &Program) -> Vec<String> {
    let mut found = Vec::new();
    for kernel in &program.kernels {
        for buffer in &kernel.loops.buffers {
            if let Some(order) = &buffer.order {
                found.push(format!("{}.{} {order:?}", kernel.name, buffer.name));
            }
        }
    }
    found
}

/// Runs a function on the interpreter without layout changes and, if there is a C++ compiler, on simulated CUDA in
/// strict mode (sanitizers, several thread orders). Checks that the results agree up to rounding and returns the
/// buffers' axis orders in the program for CUDA, as [`orders`].
#[track_caller]
fn check(dtype: &str, params: &[(&str, &str)], body: &[&str], shapes: &[&[i64]]) -> Vec<String> {
    let shapes: Vec<Vec<i64>> = shapes.iter().map(|shape| shape.to_vec()).collect();
    check_text(&function(dtype, 1, params, body), &drawn(dtype, &shapes), &Target::default())
}

#[track_caller]
fn check_text(text: &str, arguments: &[Tensor], target: &Target) -> Vec<String> {
    let text = Text::module(text);
    let expected = text.run(false, Interpreter::default(), arguments).result;
    let expected = expected.unwrap_or_else(|error| panic!("{error}")).tensors();
    let program = match rx_cuda::simulator::compiler() {
        Ok(_) => {
            let (results, program) = simulated(&text, target, arguments);
            same(&results, &expected);
            program
        }
        Err(missing) => {
            println!("skipped: {missing}");
            text.program_for(Some(Simulated::of(target.clone()).target_info())).expect("a program")
        }
    };
    orders(&program)
}

/// Compares results with a tolerance for 16-bit floats and reordered sums. Integers must be equal.
#[track_caller]
fn same(results: &[Tensor], expected: &[Tensor]) {
    assert_eq!(results.len(), expected.len());
    for (result, expected) in results.iter().zip(expected) {
        let bound = match result.dtype() {
            dtype if !dtype.is_float() => 0.0,
            dtype if dtype.bits < 32 => 2e-2,
            _ => 5e-3,
        };
        let found = compare(result, expected, bound, bound).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.ok, "{found}");
    }
}

const LAST: &str = "[0, 2, 3, 1]";

fn count(orders: &[String], wanted: &str) -> usize {
    orders.iter().filter(|one| one.contains(wanted)).count()
}

#[test]
fn only_tensors_between_convolutions_have_channels_last() {
    let params = [("x", "(1, 8, 7, 7)"), ("w0", "(16, 8, 3, 3)"), ("w1", "(8, 16, 3, 3)")];
    let body = [
        "a = R.nn.conv2d(x, w0, padding=(1, 1))",
        "b = R.nn.relu(a)",
        "c = R.nn.conv2d(b, w1, padding=(1, 1))",
        "d = R.nn.relu(c)",
        "return d",
    ];
    for dtype in ["float16", "bfloat16"] {
        let found = check(dtype, &params, &body, &[&[1, 8, 7, 7], &[16, 8, 3, 3], &[8, 16, 3, 3]]);
        let wanted = [
            "in_order.out [0, 2, 3, 1]",
            "fused_conv2d_relu.sum [0, 2, 3, 1]",
            "fused_conv2d_relu.out [0, 2, 3, 1]",
            "fused_conv2d_relu1.data [0, 2, 3, 1]",
            "fused_conv2d_relu1.weight [0, 2, 3, 1]",
        ];
        for wanted in wanted {
            assert!(found.iter().any(|one| one == wanted), "{wanted} in {found:#?}");
        }
        assert_eq!(count(&found, "data"), 1, "what enters lies as it is written: {found:#?}");
    }
    let found = check("float32", &params, &body, &[&[1, 8, 7, 7], &[16, 8, 3, 3], &[8, 16, 3, 3]]);
    assert_eq!(found, Vec::<String>::new(), "no tensor cores multiply float32");
}

#[test]
fn a_residual_block_of_convolutions_norms_and_poolings() {
    let params = [
        ("x", "(2, 3, 15, 15)"),
        ("w0", "(16, 3, 3, 3)"),
        ("w1", "(16, 16, 3, 3)"),
        ("w2", "(24, 16, 1, 1)"),
        ("w3", "(24, 24, 3, 3)"),
        ("g", "(24,)"),
        ("b", "(24,)"),
        ("m", "(24,)"),
        ("v", "(24,)"),
        ("head", "(24, 10)"),
    ];
    let body = [
        "a = R.nn.conv2d(x, w0, strides=(2, 2), padding=(1, 1))",
        "p = R.nn.max_pool2d(R.nn.relu(a), (3, 3), strides=(1, 1), padding=(1, 1))",
        "c = R.nn.conv2d(p, w1, padding=(1, 1))",
        "r = R.nn.relu(R.add(c, p))",
        "d = R.nn.conv2d(r, w2)",
        "n = R.nn.batch_norm(d, g, b, m, v, axis=1)[0]",
        "e = R.nn.conv2d(n, w3, padding=(2, 2), dilation=(2, 2))",
        "s = R.add(e, n)",
        "q = R.nn.avg_pool2d(s, (2, 2), strides=(2, 2))",
        "z = R.mean(q, (2, 3))",
        "y = R.matmul(z, head)",
        "return y",
    ];
    let shapes: [&[i64]; 10] = [
        &[2, 3, 15, 15],
        &[16, 3, 3, 3],
        &[16, 16, 3, 3],
        &[24, 16, 1, 1],
        &[24, 24, 3, 3],
        &[24],
        &[24],
        &[24],
        &[24],
        &[24, 10],
    ];
    for dtype in ["float16", "bfloat16"] {
        let found = check(dtype, &params, &body, &shapes);
        assert!(count(&found, LAST) > 12, "{found:#?}");
        assert_eq!(count(&found, "in_order"), 2, "weights of one tap lie well: {found:#?}");
    }
}

#[test]
fn depthwise_and_grouped_convolutions_follow() {
    let params = [
        ("x", "(1, 16, 9, 9)"),
        ("w0", "(32, 16, 1, 1)"),
        ("w1", "(32, 1, 3, 3)"),
        ("w2", "(32, 8, 3, 3)"),
        ("w3", "(16, 32, 3, 3)"),
    ];
    let body = [
        "a = R.clip(R.nn.conv2d(x, w0), 0.0, 6.0)",
        "b = R.clip(R.nn.conv2d(a, w1, padding=(1, 1), strides=(2, 2), groups=32), 0.0, 6.0)",
        "c = R.nn.conv2d(b, w2, padding=(1, 1), groups=4)",
        "d = R.nn.conv2d(c, w3, padding=(1, 1))",
        "return d",
    ];
    let found = check(
        "float16",
        &params,
        &body,
        &[&[1, 16, 9, 9], &[32, 16, 1, 1], &[32, 1, 3, 3], &[32, 8, 3, 3], &[16, 32, 3, 3]],
    );
    assert!(found.iter().any(|one| one == "in_order.out [1, 2, 3, 0]"), "{found:#?}");
    assert!(count(&found, LAST) >= 8, "{found:#?}");
}

#[test]
fn concatenations_and_resizes_of_a_u_net() {
    let params = [
        ("x", "(1, 8, 10, 10)"),
        ("w0", "(16, 8, 3, 3)"),
        ("w1", "(24, 16, 3, 3)"),
        ("w2", "(24, 16, 2, 2)"),
        ("w3", "(8, 32, 3, 3)"),
    ];
    let body = [
        "a = R.nn.relu(R.nn.conv2d(x, w0, padding=(1, 1)))",
        "p = R.nn.max_pool2d(a, (2, 2), strides=(2, 2))",
        "b = R.nn.relu(R.nn.conv2d(p, w1, padding=(1, 1)))",
        "u = R.nn.conv2d_transpose(b, w2, strides=(2, 2))",
        "c = R.concat((u, a), axis=1)",
        "d = R.nn.conv2d(c, w3, padding=(1, 1))",
        "e = R.image.resize2d(c, (20, 20), layout=\"NCHW\", method=\"nearest_neighbor\")",
        "f = R.nn.conv2d(e, w3, padding=(1, 1))",
        "return (d, f)",
    ];
    for dtype in ["float16", "bfloat16"] {
        let found = check(
            dtype,
            &params,
            &body,
            &[&[1, 8, 10, 10], &[16, 8, 3, 3], &[24, 16, 3, 3], &[24, 16, 2, 2], &[8, 32, 3, 3]],
        );
        assert!(count(&found, LAST) >= 6, "{found:#?}");
        assert_eq!(count(&found, "in_order"), 3, "a weight of two convolutions is put in order once: {found:#?}");
        let transposed = |one: &&String| one.starts_with("in_order") && one.ends_with(".out [1, 2, 3, 0]");
        assert_eq!(found.iter().filter(transposed).count(), 1, "that of a transposed one: {found:#?}");
    }
}

#[test]
fn symbolic_batches_heights_and_widths() {
    let params = [("x", "(\"n\", 8, \"h\", \"w\")"), ("w0", "(16, 8, 3, 3)"), ("w1", "(8, 16, 3, 3)")];
    let body =
        ["a = R.nn.relu(R.nn.conv2d(x, w0, padding=(1, 1)))", "b = R.nn.conv2d(a, w1, padding=(1, 1))", "return b"];
    for shape in [[2, 8, 5, 9], [1, 8, 1, 1], [3, 8, 4, 2]] {
        let found = check("float16", &params, &body, &[&shape, &[16, 8, 3, 3], &[8, 16, 3, 3]]);
        assert!(count(&found, LAST) >= 4, "{found:#?}");
    }
}

#[test]
fn one_and_three_spatial_axes() {
    let params = [("x", "(2, 8, 21)"), ("w0", "(16, 8, 5)"), ("w1", "(8, 16, 5)")];
    let body = ["a = R.nn.relu(R.nn.conv1d(x, w0, padding=(2,)))", "b = R.nn.conv1d(a, w1, padding=(2,))", "return b"];
    let found = check("float16", &params, &body, &[&[2, 8, 21], &[16, 8, 5], &[8, 16, 5]]);
    assert!(count(&found, "[0, 2, 1]") >= 4, "{found:#?}");
    let params = [("x", "(1, 8, 4, 5, 3)"), ("w0", "(8, 8, 3, 3, 3)")];
    let body = [
        "a = R.nn.relu(R.nn.conv3d(x, w0, padding=(1, 1, 1)))",
        "b = R.nn.conv3d(a, w0, padding=(1, 1, 1))",
        "return b",
    ];
    let found = check("bfloat16", &params, &body, &[&[1, 8, 4, 5, 3], &[8, 8, 3, 3, 3]]);
    assert!(count(&found, "[0, 2, 3, 4, 1]") >= 4, "{found:#?}");
}

#[test]
fn tensors_visible_outside_keep_their_layout() {
    let shapes: [&[i64]; 3] = [&[1, 8, 6, 6], &[8, 8, 3, 3], &[8, 8, 3, 3]];
    let params = [("x", "(1, 8, 6, 6)"), ("w0", "(8, 8, 3, 3)"), ("w1", "(8, 8, 3, 3)")];
    let first = "a = R.nn.relu(R.nn.conv2d(x, w0, padding=(1, 1)))";
    let second = "b = R.nn.conv2d(a, w1, padding=(1, 1))";
    for (middle, result) in [("c = a", "(a, b)"), ("c = R.reshape(a, (8, 36))", "(b, R.exp(c))"), ("c = (a, b)", "c")] {
        let found = check("float16", &params, &[first, second, middle, &format!("return {result}")], &shapes);
        assert_eq!(found, Vec::<String>::new(), "{result}");
    }
    let found = check("float16", &params, &[first, second, "c = R.exp(a)", "return (b, c)"], &shapes);
    assert!(count(&found, LAST) > 0, "a kernel may return what it makes of it: {found:#?}");
}

#[test]
fn branches_and_functions() {
    let text = "\
@R.function(private=True)
def inner(x: R.Tensor((1, 8, 6, 6), \"float16\"), w: R.Tensor((8, 8, 3, 3), \"float16\")):
    a = R.nn.relu(R.nn.conv2d(x, w, padding=(1, 1)))
    b = R.nn.conv2d(a, w, padding=(1, 1))
    return b
@R.function
def main(x: R.Tensor((1, 8, 6, 6), \"float16\"), w: R.Tensor((8, 8, 3, 3), \"float16\"), c: R.Tensor((), \"bool\")):
    cls = Module
    a = R.nn.relu(R.nn.conv2d(x, w, padding=(1, 1)))
    if c:
        d = R.nn.conv2d(a, w, padding=(1, 1))
        e = R.nn.relu(R.nn.conv2d(d, w, padding=(1, 1)))
        r = R.add(e, a)
    else:
        f = cls.inner(x, w)
        r = R.multiply(f, a)
    return r
";
    let drawn = drawn("float16", &[vec![1, 8, 6, 6], vec![8, 8, 3, 3]]);
    for chosen in [1u8, 0] {
        let condition = Tensor::from_bytes(DType::BOOL, &[], &[chosen]).expect("a tensor");
        let arguments: Vec<Tensor> =
            drawn.iter().map(|one| one.duplicate().expect("memory")).chain([condition]).collect();
        let found = check_text(text, &arguments, &Target::default());
        assert!(count(&found, LAST) >= 4, "{found:#?}");
    }
}

#[test]
fn programs_with_channels_last_are_unchanged() {
    let params = [("x", "(1, 7, 7, 8)"), ("w0", "(16, 3, 3, 8)"), ("w1", "(8, 3, 3, 16)")];
    let conv = |x: &str, w: &str| {
        format!(
            "R.nn.conv2d({x}, {w}, padding=(1, 1), data_layout=\"NHWC\", kernel_layout=\"OHWI\", out_layout=\"NHWC\")"
        )
    };
    let (a, b) = (format!("a = R.nn.relu({})", conv("x", "w0")), format!("b = {}", conv("a", "w1")));
    let found = check("float16", &params, &[&a, &b, "return b"], &[&[1, 7, 7, 8], &[16, 3, 3, 8], &[8, 3, 3, 16]]);
    let is_own = |one: &String| one.contains(".sum ");
    assert!(found.iter().all(is_own), "what a kernel sums for itself follows what is written: {found:#?}");
}

#[test]
fn integer_results_are_bit_exact() {
    let params = [("x", "(1, 16, 5, 5)"), ("w0", "(16, 16, 3, 3)"), ("w1", "(16, 16, 3, 3)")];
    let body = [
        "a = R.nn.conv2d(x, w0, padding=(1, 1), out_dtype=\"int32\")",
        "b = R.astype(R.right_shift(a, R.const(9, \"int32\")), \"int8\")",
        "c = R.nn.conv2d(b, w1, padding=(1, 1), out_dtype=\"int32\")",
        "return c",
    ];
    let found = check("int8", &params, &body, &[&[1, 16, 5, 5], &[16, 16, 3, 3], &[16, 16, 3, 3]]);
    assert!(count(&found, LAST) >= 3, "{found:#?}");
}

#[test]
fn single_precision_where_tensor_cores_may_round_it() {
    let params = [("x", "(1, 8, 7, 7)"), ("w0", "(12, 8, 3, 3)"), ("w1", "(8, 12, 3, 3)")];
    let body =
        ["a = R.nn.relu(R.nn.conv2d(x, w0, padding=(1, 1)))", "b = R.nn.conv2d(a, w1, padding=(1, 1))", "return b"];
    let shapes = [vec![1, 8, 7, 7], vec![12, 8, 3, 3], vec![8, 12, 3, 3]];
    let target = Target { tf32: true, ..Target::default() };
    let found = check_text(&function("float32", 1, &params, &body), &drawn("float32", &shapes), &target);
    assert!(count(&found, LAST) >= 4, "{found:#?}");
}

#[test]
fn weights_are_reordered_once() {
    let params = [("x", "(1, 8, 7, 7)"), ("w0", "(16, 8, 3, 3)"), ("w1", "(8, 16, 3, 3)")];
    let body =
        ["a = R.nn.relu(R.nn.conv2d(x, w0, padding=(1, 1)))", "b = R.nn.conv2d(a, w1, padding=(1, 1))", "return b"];
    let text = Text::module(&function("float16", 1, &params, &body));
    let program = text.program_for(Some(Simulated::default().target_info())).expect("a program");
    let [main, own] = &program.procedures[..] else { panic!("{:#?}", program.procedures) };
    assert!(own.once && !main.once);
    let calls = main.code.iter().filter(|one| matches!(one.operation, Operation::Call { .. })).count();
    assert_eq!(calls, 1);
    // Filters that are inputs, not weights, are not converted: the conversion could not be cached between calls.
    let text = Text::module(&function("float16", 3, &params, &body));
    let program = text.program_for(Some(Simulated::default().target_info())).expect("a program");
    assert_eq!(program.procedures.len(), 1);
}

#[test]
fn programs_of_other_devices_are_unchanged() {
    let params = [("x", "(1, 8, 7, 7)"), ("w0", "(16, 8, 3, 3)"), ("w1", "(8, 16, 3, 3)")];
    let body =
        ["a = R.nn.relu(R.nn.conv2d(x, w0, padding=(1, 1)))", "b = R.nn.conv2d(a, w1, padding=(1, 1))", "return b"];
    let scripts = |program: Program| -> Vec<String> {
        program.kernels.iter().map(|kernel| rx_tir::print::script(&kernel.loops)).collect()
    };
    let text = Text::module(&function("float32", 1, &params, &body));
    let plain = text.program_for(Some(&DefaultTargetInfo)).expect("a program");
    let of_device = text.program_for(Some(Simulated::default().target_info())).expect("a program");
    assert_eq!(scripts(plain), scripts(of_device));
}

/// An xorshift random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % count as u64).unwrap_or(0)
    }
}

/// Generates a random network of convolutions and other operators: its parameters and body.
fn network(random: &mut Random) -> (Vec<(String, Vec<i64>)>, Vec<String>) {
    let (height, width) = (random.below(6) as i64 + 3, random.below(6) as i64 + 3);
    let mut params = vec![("x".to_owned(), vec![1 + random.below(2) as i64, 8, height, width])];
    let mut body = Vec::new();
    // Tensors of the input's height and width, with their number of channels.
    let mut known: Vec<(String, i64)> = vec![("x".to_owned(), 8)];
    for at in 0..7 {
        let (from, channels) = known[known.len() - 1 - random.below(known.len().min(3))].clone();
        let own = format!("v{at}");
        let mut of = channels;
        let like = known.iter().filter(|(other, count)| *count == channels && *other != from).map(|(other, _)| other);
        let like: Vec<String> = like.cloned().collect();
        let mut weight = |shape: Vec<i64>| {
            let name = format!("w{}", params.len());
            params.push((name.clone(), shape));
            name
        };
        let value = match random.below(10) {
            0..=3 => {
                of = 8 * (1 + random.below(3) as i64);
                let (taps, dilation) = [(1, 1), (3, 1), (3, 2)][random.below(3)];
                let weight = weight(vec![of, channels, taps, taps]);
                let padding = taps / 2 * dilation;
                format!(
                    "R.nn.conv2d({from}, {weight}, padding=({padding}, {padding}), dilation=({dilation}, {dilation}))"
                )
            }
            4 => {
                let weight = weight(vec![channels, 1, 3, 3]);
                format!("R.nn.conv2d({from}, {weight}, padding=(1, 1), groups={channels})")
            }
            5 => format!("R.nn.max_pool2d({from}, (3, 3), padding=(1, 1))"),
            6 if !like.is_empty() => format!("R.add({from}, {})", like[random.below(like.len())]),
            7 => {
                let (other, more) = known[random.below(known.len())].clone();
                of = channels + more;
                format!("R.concat(({from}, {other}), axis=1)")
            }
            8 => format!("R.nn.avg_pool2d({from}, (3, 3), padding=(1, 1))"),
            _ => format!("R.nn.relu({from})"),
        };
        body.push(format!("{own} = {value}"));
        known.push((own, of));
    }
    let (last, middle) = (&known[known.len() - 1].0, &known[known.len() - 1 - random.below(3)].0);
    body.push(if random.below(2) == 0 {
        format!("return {last}")
    } else {
        format!("return ({last}, R.mean({middle}, (2, 3)))")
    });
    (params, body)
}

#[test]
fn random_networks_keep_values_in_either_layout() {
    if let Err(missing) = rx_cuda::simulator::compiler() {
        println!("skipped: {missing}");
        return;
    }
    let (mut random, mut moved) = (Random(0x9e37_79b9_7f4a_7c15), 0);
    for _ in 0..NETWORKS {
        let (params, body) = network(&mut random);
        let shapes: Vec<Vec<i64>> = params.iter().map(|(_, shape)| shape.clone()).collect();
        let typed: Vec<(String, String)> = params
            .iter()
            .map(|(name, shape)| {
                (name.clone(), format!("({})", shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")))
            })
            .collect();
        let typed: Vec<(&str, &str)> = typed.iter().map(|(name, shape)| (name.as_str(), shape.as_str())).collect();
        let body: Vec<&str> = body.iter().map(String::as_str).collect();
        let text = Text::module(&function("float16", 1, &typed, &body));
        let arguments = drawn("float16", &shapes);
        let expected = text.run(false, Interpreter::default(), &arguments).result;
        let expected = expected.unwrap_or_else(|error| panic!("{error}")).tensors();
        let device = Simulated::default();
        let program = text.program_for(Some(device.target_info())).unwrap_or_else(|problems| panic!("{problems:#?}"));
        moved += usize::from(!orders(&program).is_empty());
        let run = text.run(true, device, &arguments).result.unwrap_or_else(|error| panic!("{error}\n{body:#?}"));
        same(&run.tensors(), &expected);
    }
    assert!(moved * 4 > NETWORKS, "{moved} of {NETWORKS} networks have tensors that lie otherwise");
}

/// The number of random networks.
const NETWORKS: usize = 12;

/// Counts the GEMM operands of a program that are loaded 16 bytes at a time, and those that are loaded element by
/// element.
fn factors(program: &Program) -> [usize; 2] {
    let (source, _) = rx_runtime::cuda::source(program, &Target::default()).unwrap_or_else(|error| panic!("{error}"));
    let products = source.choices.iter().filter(|choice| choice.rule == "gemm");
    let notes: Vec<&str> = products.map(|choice| choice.note.as_str()).collect();
    let count = |how: &str| notes.iter().map(|note| note.matches(how).count()).sum::<usize>();
    [count("16-byte") + count("TMA copies"), count("single-element loads")]
}

/// `RX_MODELS` is the folder of models. `cargo test --test suite factors_of_models -- --nocapture` prints the table.
#[test]
fn factors_of_models_in_bfloat16_are_brought_16_bytes_at_once() {
    let Some(folder) = std::env::var_os("RX_MODELS").map(std::path::PathBuf::from) else {
        println!("skipped: RX_MODELS names no folder of models");
        return;
    };
    println!("factors brought 16 bytes at once and element by element, as written -> channels last");
    for name in ["resnet50", "resnet18_dynbatch", "mobilenet_v2", "efficientnet_b0", "densenet121", "unet"] {
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.rx"))) else { continue };
        let text = Text::new(&text.replace("\"float32\"", "\"bfloat16\""));
        let program = |target_info: &dyn rx_lower::TargetInfo| {
            text.program_for(Some(target_info)).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"))
        };
        let plain = factors(&program(&DefaultTargetInfo));
        let last = factors(&program(Simulated::default().target_info()));
        println!("{name:18} {:4} {:4} -> {:4} {:4}", plain[0], plain[1], last[0], last[1]);
        assert!(plain[1] > 0 && last[1] * 4 <= plain[1], "{name}: {plain:?}, channels last {last:?}");
    }
}
