//! Attention as exporters write it, as a sequence of separate operators: CUDA runs it as one fused kernel, with the
//! results of the interpreter. The simulator runs the kernels under sanitizers, with several orders of threads. Without
//! a C++ compiler only the fusion is tested.

use crate::common::Text;
use rx_base::DType;
use rx_cuda::rules::{RuleOrder, Target};
use rx_lower::TargetInfo;
use rx_runtime::Backend;
use rx_runtime::cuda::{Simulated, source};
use rx_runtime::interp::Interpreter;
use rx_tensor::{Tensor, compare, random};
use rx_tir::PrimFunc;

/// A parameter of `main`: its name, its declared shape, its dtype and the shape of the argument.
struct Param {
    name: &'static str,
    declared: &'static str,
    dtype: &'static str,
    shape: Vec<i64>,
}

fn param(name: &'static str, declared: &'static str, dtype: &'static str, shape: &[i64]) -> Param {
    Param { name, declared, dtype, shape: shape.to_vec() }
}

impl Param {
    fn drawn(&self, at: usize) -> Tensor {
        let of = |dtype| random::draw(7, at as u64, dtype, &self.shape, None).expect("a tensor");
        match self.dtype {
            "bool" => {
                // Mask out every fifth row entirely, and every third element of the other rows.
                let row = usize::try_from(*self.shape.last().expect("rows")).expect("an extent").max(1);
                let seen = |at: usize| u8::from(at / row % 5 != 2 && at % 3 != 1);
                let count = usize::try_from(self.shape.iter().product::<i64>()).expect("a count");
                Tensor::from_bytes(DType::BOOL, &self.shape, &(0..count).map(seen).collect::<Vec<u8>>())
                    .expect("a tensor")
            }
            "float16" => of(DType::FLOAT16),
            "bfloat16" => of(DType::BFLOAT16),
            _ => of(DType::FLOAT32),
        }
    }
}

/// A program: its parameters and the lines of `main`, the last of which returns.
struct Exported {
    params: Vec<Param>,
    body: Vec<String>,
}

fn exported(params: Vec<Param>, body: &[&str]) -> Exported {
    Exported { params, body: body.iter().map(|line| (*line).to_owned()).collect() }
}

impl Exported {
    fn text(&self) -> Text {
        let declared = self
            .params
            .iter()
            .map(|param| format!("{}: R.Tensor({}, \"{}\")", param.name, param.declared, param.dtype));
        let body: String = self.body.iter().map(|line| format!("    {line}\n")).collect();
        Text::module(&format!("@R.function\ndef main({}):\n{body}", declared.collect::<Vec<_>>().join(", ")))
    }

    /// Returns the schedule rules that CUDA applies to the program's kernels, in order.
    fn rules(&self) -> Vec<&'static str> {
        self.rules_of(Target::default())
    }

    fn rules_of(&self, target: Target) -> Vec<&'static str> {
        let device = Simulated::of(target.clone());
        let program = self.text().program_for(Some(device.target_info()));
        let program = program.unwrap_or_else(|problems| panic!("{problems:#?}"));
        let (source, _) = source(&program, &target).unwrap_or_else(|error| panic!("{error}"));
        source.choices.iter().map(|choice| choice.rule).collect()
    }

    /// Checks that simulated CUDA computes the same as the interpreter without fusion, within a tolerance.
    fn agrees(&self, within: f64) {
        if let Err(missing) = rx_cuda::simulator::compiler() {
            println!("skipped: {missing}");
            return;
        }
        let text = self.text();
        let inputs: Vec<Tensor> = self.params.iter().enumerate().map(|(at, param)| param.drawn(at)).collect();
        let [expected, results] =
            [text.run(false, Interpreter::default(), &inputs), text.run(true, Simulated::default().strict(), &inputs)]
                .map(|run| run.result.unwrap_or_else(|error| panic!("{error}")).tensors());
        assert_eq!(results.len(), expected.len());
        for (result, expected) in results.iter().zip(&expected) {
            let found = compare(result, expected, within, within).unwrap_or_else(|error| panic!("{error}"));
            assert!(found.ok, "{found}");
        }
    }

    /// Checks that the program becomes one attention kernel, and its results.
    #[track_caller]
    fn is_one_kernel(&self, within: f64) {
        assert_eq!(self.rules(), ["attention"]);
        self.agrees(within);
    }
}

const F32: f64 = 1e-4;
const F16: f64 = 2e-2;

/// Attention of torchvision's vision transformers: queries, keys and values are slices of one tensor, both factors are
/// scaled, and the softmax replaces fully masked rows by 0.
fn of_one_tensor(batch: i64, tokens: i64) -> Exported {
    let (n, heads) = (batch, 3);
    let all = n * heads;
    let lines = [
        format!("a = R.reshape(x, R.shape([{tokens}, {n}, 3, 24]))"),
        "b = R.expand_dims(a, axis=[0])".to_owned(),
        "c = R.permute_dims(b, axes=[3, 1, 2, 0, 4])".to_owned(),
        "d = R.squeeze(c, axis=[-2])".to_owned(),
        "q0 = R.take(d, R.const(0, \"int64\"), axis=0, mode=\"fast\")".to_owned(),
        "k0 = R.take(d, R.const(1, \"int64\"), axis=0, mode=\"fast\")".to_owned(),
        "v0 = R.take(d, R.const(2, \"int64\"), axis=0, mode=\"fast\")".to_owned(),
        format!("q1 = R.permute_dims(R.reshape(q0, R.shape([{tokens}, {all}, 8])), axes=[1, 0, 2])"),
        format!("k1 = R.permute_dims(R.reshape(k0, R.shape([{tokens}, {all}, 8])), axes=[1, 0, 2])"),
        format!("v1 = R.permute_dims(R.reshape(v0, R.shape([{tokens}, {all}, 8])), axes=[1, 0, 2])"),
        format!("q2 = R.reshape(q1, R.shape([{n}, {heads}, {tokens}, 8]))"),
        format!("k2 = R.reshape(k1, R.shape([{n}, {heads}, {tokens}, 8]))"),
        format!("v2 = R.reshape(v1, R.shape([{n}, {heads}, {tokens}, 8]))"),
        "q3 = R.multiply(q2, R.const(0.59460353, \"float32\"))".to_owned(),
        "k3 = R.multiply(R.permute_dims(k2, axes=[0, 1, 3, 2]), R.const(0.59460353, \"float32\"))".to_owned(),
        format!(
            "q4 = R.reshape(R.broadcast_to(q3, R.shape([{n}, {heads}, {tokens}, 8])), R.shape([{all}, {tokens}, 8]))"
        ),
        format!("k4 = R.reshape(k3, R.shape([{all}, 8, {tokens}]))"),
        "s = R.matmul(q4, k4, out_dtype=\"float32\")".to_owned(),
        format!("t = R.reshape(s, R.shape([{n}, {heads}, {tokens}, {tokens}]))"),
        "w = R.nn.softmax(t, axis=-1)".to_owned(),
        "hidden = R.logical_not(R.equal(t, R.const(\"-inf\", \"float32\")))".to_owned(),
        "any = R.astype(R.max(R.astype(hidden, dtype=\"int8\"), axis=[-1], keepdims=True), dtype=\"bool\")".to_owned(),
        "zero = R.full_like(w, R.const(0.0, \"float32\"), dtype=None)".to_owned(),
        "safe = R.where(R.logical_not(any), zero, w)".to_owned(),
        format!("p = R.reshape(safe, R.shape([{all}, {tokens}, {tokens}]))"),
        format!("v3 = R.reshape(v2, R.shape([{all}, {tokens}, 8]))"),
        format!("o = R.reshape(R.matmul(p, v3), R.shape([{n}, {heads}, {tokens}, 8]))"),
        "out = R.permute_dims(o, axes=[2, 0, 1, 3])".to_owned(),
        "return out".to_owned(),
    ];
    let declared = if batch == 1 { "(17, 1, 72)" } else { "(9, 2, 72)" };
    Exported { params: vec![param("x", declared, "float32", &[tokens, batch, 72])], body: lines.to_vec() }
}

#[test]
fn queries_keys_and_values_are_read_from_one_packed_tensor() {
    of_one_tensor(1, 17).is_one_kernel(F32);
    of_one_tensor(2, 9).is_one_kernel(F32);
}

/// Attention of BERT: a key mask is added to the scaled scores. With `widened`, the softmax of 16-bit scores is in
/// float32.
fn with_a_mask_of_keys(dtype: &'static str, widened: bool) -> Exported {
    let softmax = match widened {
        false => "w = R.nn.softmax(s3, axis=-1)".to_owned(),
        true => format!("w = R.astype(R.nn.softmax(R.astype(s3, dtype=\"float32\"), axis=-1), dtype=\"{dtype}\")"),
    };
    let lines = [
        "q0 = R.permute_dims(R.reshape(q, R.shape([2, 11, 4, 16])), axes=[0, 2, 1, 3])".to_owned(),
        "k0 = R.permute_dims(R.reshape(k, R.shape([2, 11, 4, 16])), axes=[0, 2, 1, 3])".to_owned(),
        "v0 = R.permute_dims(R.reshape(v, R.shape([2, 11, 4, 16])), axes=[0, 2, 1, 3])".to_owned(),
        "q1 = R.reshape(q0, R.shape([8, 11, 16]))".to_owned(),
        "k1 = R.reshape(R.permute_dims(k0, axes=[0, 1, 3, 2]), R.shape([8, 16, 11]))".to_owned(),
        "v1 = R.reshape(v0, R.shape([8, 11, 16]))".to_owned(),
        "s1 = R.reshape(R.matmul(q1, k1), R.shape([2, 4, 11, 11]))".to_owned(),
        format!("s2 = R.divide(s1, R.const(4.0, \"{dtype}\"))"),
        "s3 = R.add(s2, m)".to_owned(),
        softmax,
        "p = R.reshape(R.broadcast_to(w, R.shape([2, 4, 11, 11])), R.shape([8, 11, 11]))".to_owned(),
        "o = R.reshape(R.matmul(p, v1), R.shape([2, 4, 11, 16]))".to_owned(),
        "out = R.reshape(R.permute_dims(o, axes=[0, 2, 1, 3]), R.shape([2, 11, 64]))".to_owned(),
        "return out".to_owned(),
    ];
    let factors = ["q", "k", "v"].map(|name| param(name, "(2, 11, 64)", dtype, &[2, 11, 64]));
    let mask = param("m", "(2, 1, 1, 11)", dtype, &[2, 1, 1, 11]);
    Exported { params: factors.into_iter().chain([mask]).collect(), body: lines.to_vec() }
}

#[test]
fn a_mask_of_keys_is_added_to_scores_of_any_dtype() {
    with_a_mask_of_keys("float32", false).is_one_kernel(F32);
    with_a_mask_of_keys("float16", false).is_one_kernel(F16);
    with_a_mask_of_keys("float16", true).is_one_kernel(F16);
    with_a_mask_of_keys("bfloat16", true).is_one_kernel(F16);
}

#[test]
fn causal_mask_from_positions_is_computed_in_the_kernel() {
    let body = [
        "n = T.int64()",
        "s = T.int64()",
        "one = R.full(R.shape([s, s]), R.const(1, \"int64\"), dtype=\"int64\")",
        "i = R.expand_dims(R.arange(0, s, 1, dtype=\"int64\"), axis=[-1])",
        "j = R.expand_dims(R.arange(0, s, 1, dtype=\"int64\"), axis=[-2])",
        "lower = R.where(R.less_equal(R.subtract(j, i), R.const(0, \"int64\")), one, R.const(0, \"int64\"))",
        "qkv = R.split(x, indices_or_sections=[32, 64], axis=2)",
        "q0 = R.permute_dims(R.reshape(qkv[0], R.shape([n, s, 4, 8])), axes=[0, 2, 1, 3])",
        "k0 = R.permute_dims(R.reshape(qkv[1], R.shape([n, s, 4, 8])), axes=[0, 2, 1, 3])",
        "v0 = R.permute_dims(R.reshape(qkv[2], R.shape([n, s, 4, 8])), axes=[0, 2, 1, 3])",
        "q1 = R.reshape(q0, R.shape([n * 4, s, 8]))",
        "k1 = R.reshape(R.permute_dims(k0, axes=[0, 1, 3, 2]), R.shape([n * 4, 8, s]))",
        "v1 = R.reshape(v0, R.shape([n * 4, s, 8]))",
        "a = R.multiply(R.reshape(R.matmul(q1, k1), R.shape([n, 4, s, s])), R.const(0.35355338, \"float32\"))",
        "b = R.where(R.equal(lower, R.const(0, \"int64\")), R.const(\"-inf\", \"float32\"), a)",
        "w = R.reshape(R.nn.softmax(b, axis=-1), R.shape([n * 4, s, s]))",
        "o = R.reshape(R.matmul(w, v1), R.shape([n, 4, s, 8]))",
        "out = R.reshape(R.permute_dims(o, axes=[0, 2, 1, 3]), R.shape([n, s, 32]))",
        "return out",
    ];
    let of = |shape: &[i64]| exported(vec![param("x", "(\"n\", \"s\", 96)", "float32", shape)], &body);
    of(&[2, 13, 96]).is_one_kernel(F32);
    of(&[1, 1, 96]).agrees(F32);
}

#[test]
fn masks_of_unsigned_positions_wrap_below_zero() {
    let places = [
        "i = R.expand_dims(R.arange(0, 160, 1, dtype=\"int64\"), axis=[-1])",
        "j = R.expand_dims(R.arange(0, 160, 1, dtype=\"int64\"), axis=[-2])",
    ];
    let masks = [
        // A causal sliding window in one comparison: `i - j` wraps around below zero, so it holds for 0 ≤ i − j < 40.
        "c = R.less(R.astype(R.subtract(i, j), \"uint64\"), R.const(40, \"uint64\"))",
        // Always true.
        "c = R.greater_equal(R.subtract(R.astype(i, \"uint64\"), R.astype(j, \"uint64\")), R.const(0, \"uint64\"))",
    ];
    let weights = ["t = R.where(c, s, R.const(\"-inf\", \"float32\"))", "w = R.nn.softmax(t, axis=-1)"];
    for mask in masks {
        let between: Vec<&str> = places.into_iter().chain([mask]).chain(weights).collect();
        plain("float32", [160, 160], None, &between).agrees(F32);
    }
}

#[test]
fn repeated_keys_are_read_once_by_grouped_heads() {
    let body = [
        "n = T.int64()",
        "s = T.int64()",
        "i = R.expand_dims(R.arange(0, s, 1, dtype=\"int64\"), axis=[-1])",
        "j = R.expand_dims(R.arange(0, s, 1, dtype=\"int64\"), axis=[-2])",
        "low = R.full(R.shape([s, s]), R.const(\"-inf\", \"float32\"), dtype=\"float32\")",
        "upper = R.greater_equal(R.subtract(j, i), R.const(1, \"int64\"))",
        "mask = R.where(upper, low, R.const(0.0, \"float32\"))",
        "k0 = R.expand_dims(R.permute_dims(R.reshape(k, R.shape([n, s, 2, 16])), axes=[0, 2, 1, 3]), axis=[2])",
        "v0 = R.expand_dims(R.permute_dims(R.reshape(v, R.shape([n, s, 2, 16])), axes=[0, 2, 1, 3]), axis=[2])",
        "k1 = R.reshape(R.broadcast_to(k0, R.shape([n, 2, 3, s, 16])), R.shape([n, 6, s, 16]))",
        "v1 = R.reshape(R.broadcast_to(v0, R.shape([n, 2, 3, s, 16])), R.shape([n, 6, s, 16]))",
        "k2 = R.reshape(R.permute_dims(k1, axes=[0, 1, 3, 2]), R.shape([n * 6, 16, s]))",
        "v2 = R.reshape(R.broadcast_to(v1, R.shape([n, 6, s, 16])), R.shape([n * 6, s, 16]))",
        "q2 = R.reshape(q, R.shape([n * 6, s, 16]))",
        "a = R.multiply(R.reshape(R.matmul(q2, k2), R.shape([n, 6, s, s])), R.const(0.25, \"float32\"))",
        "w = R.reshape(R.nn.softmax(R.add(a, mask), axis=-1), R.shape([n * 6, s, s]))",
        "o = R.reshape(R.matmul(w, v2), R.shape([n, 6, s, 16]))",
        "out = R.permute_dims(o, axes=[0, 2, 1, 3])",
        "return out",
    ];
    let kv = |name| param(name, "(\"n\", \"s\", 32)", "float32", &[2, 7, 32]);
    let q = param("q", "(\"n\", 6, \"s\", 16)", "float32", &[2, 6, 7, 16]);
    exported(vec![q, kv("k"), kv("v")], &body).is_one_kernel(F32);
}

/// Attention of `[2, 3, rows, 8]` queries and keys of `keys` rows. The lines `between` compute the weights `w` from the
/// scores `s`.
fn plain(dtype: &'static str, [rows, keys]: [i64; 2], mask: Option<Param>, between: &[&str]) -> Exported {
    let known = |text: String| -> &'static str { text.leak() };
    let mut params = vec![
        param("q", known(format!("(2, 3, {rows}, 8)")), dtype, &[2, 3, rows, 8]),
        param("k", known(format!("(2, 3, {keys}, 8)")), dtype, &[2, 3, keys, 8]),
        param("v", known(format!("(2, 3, {keys}, 8)")), dtype, &[2, 3, keys, 8]),
    ];
    params.extend(mask);
    let mut body = vec!["s = R.matmul(q, R.permute_dims(k, axes=[0, 1, 3, 2]))"];
    body.extend(between);
    body.extend(["o = R.matmul(w, v)", "return o"]);
    exported(params, &body)
}

#[test]
fn fully_masked_rows_have_the_value_of_the_program() {
    let mask = || Some(param("m", "(2, 1, 10, 10)", "bool", &[2, 1, 10, 10]));
    let safe = [
        "t = R.where(m, s, R.const(\"-inf\", \"float32\"))",
        "n = R.equal(t, R.const(\"-inf\", \"float32\"))",
        "e = R.min(R.astype(n, dtype=\"int32\"), axis=[-1], keepdims=True)",
        "w = R.where(R.equal(e, R.const(1, \"int32\")), R.const(0.0, \"float32\"), R.nn.softmax(t, axis=-1))",
    ];
    plain("float32", [10, 10], mask(), &safe).is_one_kernel(F32);
    // If the mask value is the lowest finite number, a fully masked row has uniform weights.
    let finite = ["t = R.where(m, s, R.const(-3.4028234663852886e38, \"float32\"))", "w = R.nn.softmax(t, axis=-1)"];
    plain("float32", [10, 10], mask(), &finite).is_one_kernel(F32);
    let half = ["t = R.where(m, s, R.const(-65504.0, \"float16\"))", "w = R.nn.softmax(t, axis=-1)"];
    plain("float16", [10, 10], mask(), &half).is_one_kernel(F16);
}

#[test]
fn softmax_written_as_operators_is_recognized() {
    let spelled = [
        "m = R.max(s, axis=[-1], keepdims=True)",
        "e = R.exp(R.subtract(s, m))",
        "w = R.divide(e, R.sum(e, axis=[-1], keepdims=True))",
    ];
    plain("float32", [10, 10], None, &spelled).is_one_kernel(F32);
}

#[test]
fn a_bias_is_added_as_it_is() {
    let bias = param("b", "(1, 3, 10, 14)", "float32", &[1, 3, 10, 14]);
    plain("float32", [10, 14], Some(bias), &["w = R.nn.softmax(R.add(s, b), axis=-1)"]).is_one_kernel(F32);
}

#[test]
fn few_rows_share_many_keys() {
    plain("float32", [1, 600], None, &["w = R.nn.softmax(s, axis=-1)"]).is_one_kernel(F32);
    plain("float16", [1, 600], None, &["w = R.nn.softmax(s, axis=-1)"]).is_one_kernel(F16);
}

#[test]
fn intermediates_that_others_read_are_not_joined() {
    let seen = exported(
        ["q", "k", "v"].map(|name| param(name, "(2, 10, 8)", "float32", &[2, 10, 8])).into(),
        &[
            "s = R.matmul(q, R.permute_dims(k, axes=[0, 2, 1]))",
            "w = R.nn.softmax(s, axis=-1)",
            "o = R.matmul(w, v)",
            "return (o, w)",
        ],
    );
    assert!(!seen.rules().contains(&"attention"), "the weights are a result");
    seen.agrees(F32);
    let two = exported(
        ["q", "k", "v"].map(|name| param(name, "(2, 10, 8)", "float32", &[2, 10, 8])).into(),
        &[
            "s = R.matmul(q, R.permute_dims(k, axes=[0, 2, 1]))",
            "a = R.matmul(R.nn.softmax(s, axis=-1), v)",
            "b = R.matmul(R.nn.log_softmax(s, axis=-1), v)",
            "return R.add(a, b)",
        ],
    );
    assert!(!two.rules().contains(&"attention"), "two products read the scores");
    two.agrees(F32);
}

#[test]
fn order_without_the_attention_rule_joins_nothing() {
    let rules = RuleOrder::of(["gemm", "rows", "elementwise"]).expect("rules");
    let program = plain("float32", [10, 10], None, &["w = R.nn.softmax(s, axis=-1)"]);
    assert_eq!(program.rules_of(Target { rules, ..Target::default() }), ["gemm", "rows", "gemm"]);
    assert_eq!(program.rules(), ["attention"]);
}

/// A device that fuses no chains. The test fails if the compiler asks it about one.
struct Never;

impl TargetInfo for Never {
    fn can_schedule_as_one_kernel(&self, func: &PrimFunc) -> bool {
        panic!("asked about {}", func.name)
    }
}

#[test]
fn device_without_chain_fusion_is_not_queried() {
    let program =
        of_one_tensor(1, 17).text().program_for(Some(&Never)).unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert!(program.kernels.len() > 1);
}
