//! Tests of `int4`, `uint4` and `float4_e2m1fn`: files hold their values in wider types, and every device computes the
//! same.

use super::{DEVICES, Folder, floats};
use rx_base::DType;
use rx_tensor::{Tensor, npz};

/// Prim_funcs over all pairs of integers: the name of each, and the expression of `a` and `b` that it computes.
const OPERATIONS: [(&str, &str); 9] = [
    ("add", "a[v] + b[v]"),
    ("subtract", "a[v] - b[v]"),
    ("multiply", "a[v] * b[v]"),
    ("floordiv", "T.if_then_else(b[v] == T.DTYPE(0), a[v], T.floordiv(a[v], b[v]))"),
    ("truncmod", "T.if_then_else(b[v] == T.DTYPE(0), a[v], T.truncmod(a[v], b[v]))"),
    ("shift", "T.shift_right(T.shift_left(a[v], T.DTYPE(2)), T.DTYPE(1))"),
    ("least", "T.min(a[v], T.bitwise_not(b[v]))"),
    (
        "convert",
        "T.Cast(\"DTYPE\", T.Cast(\"int32\", a[v]) * T.Cast(\"int32\", b[v])) + T.clz(a[v]) - T.popcount(b[v])",
    ),
    ("hold", "T.Cast(\"DTYPE\", T.Cast(\"float32\", a[v]) * T.float32(2.5))"),
];

/// Computes the expected result of an operation. `wrap` keeps a number in the type's range; `low` and `high` are its
/// bounds.
fn expected(name: &str, [a, b]: [i64; 2], wrap: &dyn Fn(i64) -> i64, (low, high): (i64, i64)) -> i64 {
    let divided = |divide: fn(i64, i64) -> i64| if b == 0 { a } else { divide(a, b) };
    let bits = |value: i64| value as u8 & 15;
    wrap(match name {
        "add" => a + b,
        "subtract" => a - b,
        "multiply" => a * b,
        "floordiv" => divided(|a, b| (a as f64 / b as f64).floor() as i64),
        "truncmod" => divided(|a, b| a % b),
        "shift" => wrap(a << 2) >> 1,
        "least" => a.min(wrap(!b)),
        "convert" => a * b + i64::from(bits(a).leading_zeros()) - 4 - i64::from(bits(b).count_ones()),
        _ => ((a as f64 * 2.5) as i64).clamp(low, high),
    })
}

/// Returns a module that computes all operations and returns their results.
fn program(dtype: &str) -> String {
    let mut text = String::from("@I.ir_module\nclass Module:\n");
    let mut body = String::new();
    for (name, value) in OPERATIONS {
        let buffer = |name: &str| format!("{name}: T.Buffer((T.int64(256),), \"{dtype}\")");
        let value = value.replace("DTYPE", dtype);
        let params = ["a", "b", "c"].map(buffer).join(", ");
        text += &format!(
            "    @T.prim_func\n    def {name}({params}):\n        for i in range(T.int64(256)):\n            with T.sblock(\"c\"):\n                v = T.axis.spatial(T.int64(256), i)\n                c[v] = {value}\n"
        );
        body += &format!("        r_{name} = R.call_tir(cls.{name}, (a, b), out_ty=R.Tensor((256,), \"{dtype}\"))\n");
    }
    let results = OPERATIONS.map(|(name, _)| format!("r_{name}")).join(", ");
    text + &format!(
        "    @R.function\n    def main(a: R.Tensor((256,), \"{dtype}\"), b: R.Tensor((256,), \"{dtype}\")):\n        cls = Module\n{body}        return {results}\n"
    )
}

/// The devices to test, with `cuda-sim` if there is a C++ compiler.
fn devices() -> impl Iterator<Item = &'static str> {
    DEVICES.into_iter().chain(rx_cuda::simulator::compiler().is_ok().then_some("cuda-sim"))
}

#[test]
fn four_bit_integers_compute_alike_on_all_devices() {
    for (dtype, held, low) in [("int4", DType::INT8, -8), ("uint4", DType::UINT8, 0)] {
        let folder = Folder::new();
        folder.write("f.rx", program(dtype));
        let pairs: Vec<[i64; 2]> = (0..256).map(|at| [at % 16 + low, at / 16 + low]).collect();
        let bytes = |side: usize| pairs.iter().map(|pair| pair[side] as u8).collect::<Vec<u8>>();
        let array = |side: usize| Tensor::from_bytes(held, &[256], &bytes(side)).expect("a tensor");
        folder.arrays("in.npz", &[("a", &array(0)), ("b", &array(1))]);
        let wrap = |value: i64| if low < 0 { value << 60 >> 60 } else { value & 15 };
        for device in devices() {
            let run = folder.run(&["f.rx", "--inputs", "in.npz", "--device", device, "--output", "out.npz"]);
            let said = run.succeeds();
            assert!(!said.stderr().contains("interpreted"), "{}", said.stderr());
            let results = npz::read(&folder.path("out.npz")).expect("written");
            for ((name, _), (_, result)) in OPERATIONS.iter().zip(&results) {
                assert_eq!(result.dtype(), held);
                let computed: Vec<i64> = (0..256).filter_map(|at| result.get(at)?.as_int()).collect();
                let wanted: Vec<i64> = pairs.iter().map(|pair| expected(name, *pair, &wrap, (low, low + 15))).collect();
                assert_eq!(computed, wanted, "{name} of {dtype} on {device}");
            }
        }
    }
}

const FLOATS: &str = r#"@R.function
def main(x: R.Tensor((16,), "float4_e2m1fn"), q: R.Tensor((8,), "int4"), f: R.Tensor((12,), "float32"), s: R.Tensor((1,), "float32")):
    a = R.astype(x, "float32")
    b = R.multiply(R.astype(q, "float32"), s)
    c = R.astype(f, "float4_e2m1fn")
    d = R.add(x, x)
    e = R.take(x, R.const([3, 15], "int64"), axis=0)
    g = R.take(q, R.const([0], "int64"), axis=0)
    return a, b, c, d, e, g
"#;

#[test]
fn four_bit_floats_compute_alike_on_all_devices() {
    let folder = Folder::new();
    folder.write("f.rx", FLOATS);
    let positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let all: Vec<f32> = positive.into_iter().chain(positive.map(|value| -value)).collect();
    let given = [0.25, -0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.1, 1e30, f32::NEG_INFINITY, f32::NAN];
    let q = Tensor::from_values(DType::INT8, &[8], &[-8i8, -5, -1, 0, 1, 3, 6, 7]).expect("a tensor");
    let (x, f, s) = (floats(&[16], &all), floats(&[12], &given), floats(&[1], &[0.5]));
    folder.arrays("in.npz", &[("x", &x), ("q", &q), ("f", &f), ("s", &s)]);
    let doubled: Vec<f32> = all.iter().map(|value| (2.0 * value).clamp(-6.0, 6.0)).collect();
    let wanted: [&[f32]; 5] = [
        &all,
        &[-4.0, -2.5, -0.5, 0.0, 0.5, 1.5, 3.0, 3.5],
        &[0.0, -0.5, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 6.0, 6.0, -6.0, 6.0],
        &doubled,
        &[1.5, -6.0],
    ];
    for device in devices() {
        let run = folder.run(&["f.rx", "--inputs", "in.npz", "--device", device, "--output", "out.npz"]).succeeds();
        assert!(!run.stderr().contains("interpreted"), "{}", run.stderr());
        let results = npz::read(&folder.path("out.npz")).expect("written");
        for (at, wanted) in wanted.iter().enumerate() {
            assert_eq!(results[at].1.as_slice::<f32>(), Some(*wanted), "out{at} on {device}");
        }
        assert_eq!(results[5].1.as_slice::<i8>(), Some(&[-8i8][..]));
        folder.run(&["f.rx", "--inputs", "in.npz", "--device", device, "--check", "out.npz"]).succeeds();
    }
}

#[test]
fn arrays_of_values_that_four_bits_have_not_are_refused() {
    let folder = Folder::new();
    folder.write("f.rx", FLOATS);
    let refused = |name: &str, array: &Tensor, wanted: &str| {
        folder.arrays("in.npz", &[(name, array)]);
        folder.run(&["f.rx", "--inputs", "in.npz"]).fails(2, wanted);
    };
    let mut x = floats(&[16], &[1.0; 16]);
    x.set(3, rx_tensor::Scalar::Float(5.0));
    let wanted = "the array for `x` is no R.Tensor((16,), dtype=\"float4_e2m1fn\"): its element 3 is 5, which is no value of float4_e2m1fn";
    refused("x", &x, wanted);
    let q = Tensor::from_values(DType::INT8, &[8], &[8i8; 8]).expect("a tensor");
    refused("q", &q, "its element 0 is 8, which is no value of int4");
    refused("q", &Tensor::zeros(DType::INT32, &[8]).expect("a tensor"), "give its values as int8");
}

#[test]
fn dtypes_that_no_tensor_has_are_named_with_their_parameter() {
    let folder = Folder::new();
    let text = "@I.ir_module\nclass Module:\n    @T.prim_func\n    def f(x: T.Buffer((T.int64(2),), \"float32\"), y: T.Buffer((T.int64(2),), \"int2\")):\n        for i in range(2):\n            y[i] = T.int2(1)\n    @R.function\n    def main(x: R.Tensor((2,), \"float32\")):\n        cls = Module\n        y = R.call_tir(cls.f, (x,), out_ty=R.Tensor((2,), \"int2\"))\n        return y\n";
    folder.write("f.rx", text);
    for device in DEVICES {
        let wanted = "kernel `f`: its parameter `y` is int2, and rx has no tensors of this dtype";
        folder.run(&["f.rx", "--device", device]).fails(1, wanted);
    }
}
