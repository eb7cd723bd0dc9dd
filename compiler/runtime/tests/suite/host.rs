//! Printing, assertions, packed functions, and memory that programs allocate and write.

use crate::common::Text;
use rx_runtime::interp::Interpreter;
use rx_tensor::Tensor;

fn floats(shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_f32s(shape, values).expect("a tensor")
}

fn values(tensor: &Tensor) -> Vec<f64> {
    (0..tensor.len()).map(|at| tensor.get(at).expect("an element").as_float()).collect()
}

#[test]
fn every_host_operator_has_its_function() {
    for schema in rx_ops::all() {
        if matches!(schema.compute, Some(rx_ops::Compute::Host)) {
            assert!(rx_runtime::host_functions().any(|name| name == schema.name), "{}", schema.name);
        }
    }
}

#[test]
fn printing_keeps_its_order() {
    let text = Text::module(
        r#"@R.function(pure=False)
def main(x: R.Tensor((2,), "float32")):
    R.print(x)
    y = R.add(x, x)
    R.print(y, R.shape([2, 3]), format="y is {}, {1} {0}")
    R.print(R.str("done"))
    return y"#,
    );
    let (results, printed) = text.results(&[floats(&[2], &[1.0, 2.5])]);
    assert_eq!(values(&results[0]), [2.0, 5.0]);
    assert_eq!(printed, ["[1.  2.5]", "y is [2. 5.], (2, 3) [2. 5.]", "done"]);
}

#[test]
fn an_assertion_ends_the_run_with_its_message() {
    let text = Text::module(
        r#"@R.function(pure=False)
def main(x: R.Tensor((), "float32")):
    R.print(x)
    R.assert_op(R.greater(x, R.const(1.0, "float32")), [x], format="x is {}")
    R.print(R.str("behind"))
    return x"#,
    );
    let ran = text.run(true, Interpreter::default(), &[floats(&[], &[0.5])]);
    let error = ran.result.expect_err("the assertion fails");
    assert_eq!(error.to_string(), "R.assert_op: the assertion failed: x is 0.5");
    assert!(error.origin.is_some(), "it is said where");
    assert_eq!(ran.printed, ["0.5"]);
    assert_eq!(text.results(&[floats(&[], &[2.0])]).1, ["2.0", "behind"]);
}

#[test]
fn match_cast_of_a_data_dependent_shape_binds_its_symbol() {
    let text = Text::module(
        r#"@R.function
def main(x: R.Tensor((4,), "float32")):
    m = T.int64()
    u = R.match_cast(R.unique(x, sorted=True), R.Tensor((m,), "float32"))
    y = R.add(u, R.ones(R.shape([m]), "float32"))
    return y"#,
    );
    let (results, _) = text.results(&[floats(&[4], &[3.0, 1.0, 3.0, 2.0])]);
    assert_eq!((results[0].shape(), values(&results[0])), (&[3][..], vec![2.0, 3.0, 4.0]));
}

/// Two kernels write into one tensor, the second into the first row of a view. The returned tensor must show both.
const WRITES: &str = r#"@T.prim_func(private=True, s_tir=True)
def double(a: T.Buffer((T.int64(4),), "float32"), out: T.Buffer((T.int64(4),), "float32")):
    for i in range(T.int64(4)):
        with T.sblock("double"):
            v = T.axis.spatial(T.int64(4), i)
            out[v] = a[v] * T.float32(2)

@T.prim_func(private=True, s_tir=True)
def first(out: T.Buffer((T.int64(2), T.int64(2)), "float32")):
    for i in range(T.int64(2)):
        with T.sblock("first"):
            v = T.axis.spatial(T.int64(2), i)
            out[T.int64(0), v] = out[T.int64(0), v] + T.float32(100)

@R.function(pure=False)
def main(x: R.Tensor((4,), "float32")):
    cls = Module
    storage = R.memory.alloc_storage(R.shape([16]), 0, "global", "float32")
    out = R.memory.alloc_tensor(storage, 0, R.shape([4]), "float32")
    cls.double(x, out)
    before = R.add(out, x)
    view = R.reshape(out, R.shape([2, 2]))
    cls.first(view)
    R.memory.kill_storage(storage)
    return before, out, view"#;

#[test]
fn prim_funcs_write_into_tensors() {
    let text = Text::module(WRITES);
    let (results, _) = text.results(&[floats(&[4], &[1.0, 2.0, 3.0, 4.0])]);
    assert_eq!(values(&results[0]), [3.0, 6.0, 9.0, 12.0], "what was computed before a write is as it was");
    assert_eq!(values(&results[1]), [102.0, 104.0, 6.0, 8.0]);
    assert_eq!(values(&results[2]), values(&results[1]));
}

/// `view` still shares the memory of `out` after an `if` that writes into `out`, whichever branch ran.
#[test]
fn view_written_after_an_if_changes_its_tensor() {
    let condition = "    if c:\n        cls.double(before, out)\n        done = R.shape([1])\n    else:\n        done = R.shape([1])\n";
    let source = WRITES
        .replace(
            "def main(x: R.Tensor((4,), \"float32\"))",
            "def main(x: R.Tensor((4,), \"float32\"), c: R.Tensor((), \"bool\"))",
        )
        .replace("    cls.first(view)\n", &format!("{condition}    cls.first(view)\n"));
    let text = Text::module(&source);
    for (c, expected) in [(true, [106.0, 112.0, 18.0, 24.0]), (false, [102.0, 104.0, 6.0, 8.0])] {
        let c = Tensor::from_bytes(rx_base::DType::BOOL, &[], &[u8::from(c)]).expect("a tensor");
        let (results, _) = text.results(&[floats(&[4], &[1.0, 2.0, 3.0, 4.0]), c]);
        assert_eq!(values(&results[1]), expected);
        assert_eq!(values(&results[2]), expected);
    }
}

#[test]
fn branches_write_into_tensors_from_before() {
    let text = Text::module(
        r#"@T.prim_func(private=True, s_tir=True)
def fill(out: T.Buffer((T.int64(2),), "float32")):
    for i in range(T.int64(2)):
        with T.sblock("fill"):
            v = T.axis.spatial(T.int64(2), i)
            out[v] = T.float32(7)

@R.function(pure=False)
def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")):
    cls = Module
    out = R.call_pure_packed("vm.builtin.copy", x, ty_args=(R.Tensor((2,), "float32"),))
    if c:
        cls.fill(out)
        r = R.add(out, x)
    else:
        r = x
    return r, out, x"#,
    );
    let x = floats(&[2], &[1.0, 2.0]);
    let flag = |value: bool| Tensor::from_bytes(rx_base::DType::BOOL, &[], &[u8::from(value)]).expect("a tensor");
    for (c, wanted) in [(true, [[8.0, 9.0], [7.0, 7.0]]), (false, [[1.0, 2.0], [1.0, 2.0]])] {
        let (results, _) = text.results(&[flag(c), floats(&[2], &[1.0, 2.0])]);
        assert_eq!([values(&results[0]), values(&results[1])], wanted);
        assert_eq!(values(&results[2]), values(&x), "a copy is another tensor");
    }
}

/// As in TVM's lowered stages: extents are stored in a shape heap, which a function computes with.
#[test]
fn shape_heap_values_become_dims() {
    let text = Text::module(
        r#"@T.prim_func(private=True, s_tir=True)
def shape_func(H: T.Buffer((T.int64(3),), "int64")):
    H[T.int64(2)] = H[T.int64(0)] * H[T.int64(1)]

@R.function(pure=False)
def main(x: R.Tensor(("n", "m"), "float32")):
    cls = Module
    heap: R.Tensor(dtype="int64", ndim=1) = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(3),), ty_args=(R.Tensor(dtype="int64", ndim=1),))
    R.call_packed("vm.builtin.check_tensor_info", x, 2, R.dtype("float32"), R.str("ErrorContext(fn=main, loc=param[0], param=x)"), ty_args=(R.Tuple,))
    R.call_packed("vm.builtin.match_shape", x, heap, 2, 1, 0, 1, 1, R.str("ErrorContext(fn=main, loc=param[0], param=x)"), ty_args=(R.Tuple,))
    cls.shape_func(heap)
    s: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", heap, 1, 1, 2, ty_args=(R.Shape(ndim=1),))
    y: R.Tensor(dtype="float32", ndim=1) = R.call_packed("vm.builtin.reshape", x, s, ty_args=(R.Tensor(dtype="float32", ndim=1),))
    R.call_packed("vm.builtin.match_shape", y, heap, 1, 0, 6, R.str("ErrorContext(fn=main, loc=return)"), ty_args=(R.Tuple,))
    return y"#,
    );
    let (results, _) = text.results(&[floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    assert_eq!(results[0].shape(), [6]);
    let ran = text.run(true, Interpreter::default(), &[floats(&[1, 2], &[1.0, 2.0])]);
    let error = ran.result.expect_err("six are promised").to_string();
    assert!(error.starts_with("the result is R.Tensor((2,)"), "{error}");
}

#[test]
fn a_packed_function_that_is_missing_is_named() {
    let text = Text::module(
        r#"@R.function(pure=False)
def main(x: R.Tensor((2,), "float32")):
    y = R.call_packed("vm.builtin.reshap", x, R.shape([2]), ty_args=(R.Tensor((2,), "float32"),))
    return y"#,
    );
    let problems = text.program(true).expect_err("there is no such function");
    let [problem] = &problems[..] else { panic!("{problems:#?}") };
    assert_eq!(
        problem.message,
        "rx does not know the packed function \"vm.builtin.reshap\"; it knows \"vm.builtin.reshape\""
    );
    assert!(problem.origin.is_some());
}

#[test]
fn collectives_of_one_worker_keep_their_operand() {
    let text = Text::module(
        r#"@R.function
def main(x: R.Tensor((4,), "float32")):
    a = R.ccl.allreduce(x, "sum")
    b = R.ccl.allgather(a, 1)
    c = R.ccl.scatter_from_worker0(R.ccl.broadcast_from_worker0(b), 1)
    return c"#,
    );
    assert_eq!(values(&text.results(&[floats(&[4], &[1.0, 2.0, 3.0, 4.0])]).0[0]), [1.0, 2.0, 3.0, 4.0]);
    let two = Text::module(
        "@R.function\ndef main(x: R.Tensor((4,), \"float32\")):\n    y = R.ccl.allgather(x, 2)\n    return y",
    );
    let problems = two.program(true).expect_err("there is one worker");
    assert_eq!(problems[0].message, "R.ccl.allgather of 2 workers: rx runs one");
}

#[test]
fn views_of_memory_are_the_same_on_all_devices() {
    // The views: all elements in another shape, fewer elements, another dtype, and an offset in bytes.
    let text = Text::module(
        r#"@R.function
def main(x: R.Tensor((4,), "float32")):
    whole = R.memory.view(x, R.shape([2, 2]))
    fewer = R.memory.view(x, R.shape([2]))
    bits = R.memory.view(x, R.shape([4]), "int32")
    last = R.memory.view(x, R.shape([2]), relative_byte_offset=R.prim_value(8))
    return whole, R.add(fewer, fewer), bits, R.add(last, last)"#,
    );
    let (results, _) = text.results(&[floats(&[4], &[1.0, 2.0, 3.0, 4.0])]);
    assert_eq!((results[0].shape(), values(&results[0])), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
    assert_eq!((results[1].shape(), values(&results[1])), (&[2][..], vec![2.0, 4.0]));
    assert_eq!(results[2].get(0), Some(rx_tensor::Scalar::Int(i64::from(1f32.to_bits()))));
    assert_eq!(values(&results[3]), [6.0, 8.0]);
}
