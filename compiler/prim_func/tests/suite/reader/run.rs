//! Runs prim_funcs in the interpreter and compares them with values computed by hand.

use super::corpus::read_all;
use rx_interp::run;
use rx_syntax::document::FileKind;
use rx_tensor::Tensor;
use rx_tir::print::script;

/// Runs a prim_func as read, and again after printing and reading it; returns the last buffer.
pub(super) fn result(text: &str, inputs: &[(&[i64], &[f32])], shape: &[i64]) -> Vec<f32> {
    let func = read_all(text, FileKind::Rx).remove(0).expect("it is right");
    let again = read_all(&script(&func), FileKind::Rx).remove(0).expect("what is printed is right");
    let [first, second] = [&func, &again].map(|func| {
        let inputs = inputs.iter().map(|(shape, values)| Tensor::from_f32s(shape, *values));
        let output = Tensor::from_f32s(shape, vec![-1.0; shape.iter().product::<i64>() as usize]);
        let mut buffers = inputs.chain([output]).collect::<Result<Vec<Tensor>, _>>().expect("shapes fit values");
        run(func, &mut buffers, &[]).expect("it runs");
        buffers.pop().and_then(|output| output.as_slice::<f32>().map(<[f32]>::to_vec)).expect("there is an output")
    });
    assert_eq!(first, second);
    first
}

#[test]
fn matrix_product() {
    let text = "@T.prim_func(s_tir=True)\ndef matmul(a: T.handle, b: T.handle, c: T.handle):\n    n, m = T.int64(), T.int64()\n    \
                A = T.match_buffer(a, (n, m))\n    B = T.match_buffer(b, (m, 2))\n    C = T.match_buffer(c, (n, 2))\n    \
                for i, j, k in T.grid(n, 2, m):\n        with T.sblock(\"C\"):\n            \
                vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n            with T.init():\n                C[vi, vj] = 0.0\n            \
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n";
    let (a, b): (&[f32], &[f32]) = (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 0.0, 2.0, 1.0, 0.0, 3.0]);
    assert_eq!(result(text, &[(&[2, 3], a), (&[3, 2], b)], &[2, 2]), [5.0, 11.0, 14.0, 23.0]);
}

#[test]
fn softmax() {
    let text = "@T.prim_func\ndef softmax(x: T.Buffer((1, 2), \"float32\"), y: T.Buffer((1, 2), \"float32\")):\n    \
                top = T.alloc_buffer((1,))\n    total = T.alloc_buffer((1,))\n    for i, k in T.grid(1, 2):\n        \
                with T.block(\"max\"):\n            vi, vk = T.axis.remap(\"SR\", [i, k])\n            with T.init():\n                \
                top[vi] = T.min_value(\"float32\")\n            top[vi] = T.max(top[vi], x[vi, vk])\n    \
                for i, k in T.grid(1, 2):\n        with T.block(\"sum\"):\n            vi, vk = T.axis.remap(\"SR\", [i, k])\n            \
                with T.init():\n                total[vi] = T.float32(0)\n            total[vi] = total[vi] + T.exp(x[vi, vk] - top[vi])\n    \
                for i, k in T.grid(1, 2):\n        with T.block(\"y\"):\n            vi, vk = T.axis.remap(\"SS\", [i, k])\n            \
                y[vi, vk] = T.exp(x[vi, vk] - top[vi]) / total[vi]\n";
    let found = result(text, &[(&[1, 2], &[0.0, 3.0f32.ln()])], &[1, 2]);
    assert!((found[0] - 0.25).abs() < 1e-6 && (found[1] - 0.75).abs() < 1e-6, "{found:?}");
}

#[test]
fn convolution_with_padding() {
    let text = "@T.prim_func\ndef conv(x: T.Buffer((3,), \"float32\"), w: T.Buffer((3,), \"float32\"), y: T.Buffer((3,), \"float32\")):\n    \
                pad = T.sblock_alloc_buffer((5,))\n    for i in range(5):\n        with T.sblock(\"pad\"):\n            \
                v = T.axis.spatial(5, i)\n            pad[v] = T.if_then_else(1 <= v and v < 4, x[v - 1], T.float32(0))\n    \
                for i, r in T.grid(3, 3):\n        with T.sblock(\"conv\"):\n            v, vr = T.axis.remap(\"SR\", [i, r])\n            \
                with T.init():\n                y[v] = T.float32(0)\n            y[v] = y[v] + pad[v + vr] * w[vr]\n";
    let found = result(text, &[(&[3], &[1.0, 2.0, 3.0]), (&[3], &[1.0, 10.0, 100.0])], &[3]);
    assert_eq!(found, [210.0, 321.0, 32.0]);
}

#[test]
fn variables_views_lanes_and_threads() {
    let text = "@T.prim_func\ndef f(x: T.Buffer((2, 4), \"float32\"), y: T.Buffer((8,), \"float32\")):\n    \
                flat = T.decl_buffer((8,), data=x.data)\n    with T.launch_thread(\"threadIdx.x\", 2) as tx:\n        \
                total = T.float32(0)\n        k: T.int32 = 0\n        while k < 4:\n            total = total + flat[tx * 4 + k]\n            \
                k += 1\n        y[tx * 4:tx * 4 + 4] = T.Broadcast(total, 4) + flat[T.Ramp(tx * 4, 1, 4)]\n";
    let found = result(text, &[(&[2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])], &[8]);
    assert_eq!(found, [11.0, 12.0, 13.0, 14.0, 31.0, 32.0, 33.0, 34.0]);
}

#[test]
fn threads_that_reduce_see_the_loops_around_them() {
    // The reduction becomes a block with axes, which may not use the loop variables outside. So the block has an axis
    // for `i` and one for `bx`.
    let text = "@T.prim_func\ndef f(x: T.Buffer((16,), \"float32\"), y: T.Buffer((4,), \"float32\")):\n    \
                bx = T.launch_thread(\"blockIdx.x\", 2)\n    tx = T.launch_thread(\"threadIdx.x\", 4)\n    \
                for i in range(2):\n        total = T.alloc_local((1,))\n        \
                with T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0.0)]), \"reduce_scope\", 0):\n            \
                T.tvm_thread_allreduce(T.uint32(1), x[bx * 8 + i * 4 + tx], T.bool(True), total.data, tx)\n        \
                if tx == 0:\n            y[bx * 2 + i] = total[0]\n";
    let values: Vec<f32> = (0..16u8).map(f32::from).collect();
    assert_eq!(result(text, &[(&[16], &values)], &[4]), [6.0, 22.0, 38.0, 54.0]);
}

#[test]
fn each_launch_has_threads_of_its_own() {
    // The second launch has no barriers, so its number of threads may depend on the loop around it.
    let text = "@T.prim_func\ndef f(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), \"float32\")):\n    \
                turned = T.alloc_buffer((8,))\n    with T.attr(0, \"hand_threaded\", 0):\n        \
                tx = T.launch_thread(\"threadIdx.x\", 4)\n        shared = T.alloc_shared((4,))\n        \
                for half in range(2):\n            shared[tx] = x[half * 4 + tx]\n            \
                T.tvm_storage_sync(\"shared\")\n            turned[half * 4 + tx] = shared[3 - tx]\n            \
                T.tvm_storage_sync(\"shared\")\n    for v in range(2):\n        \
                tx = T.launch_thread(\"threadIdx.x\", T.min(8, T.shift_left(4, v)))\n        own = T.alloc_local((1,))\n        \
                if tx < 4:\n            own[0] = turned[v * 4 + tx]\n            y[v * 4 + tx] = own[0]\n";
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    assert_eq!(result(text, &[(&[8], &values)], &[8]), [4.0, 3.0, 2.0, 1.0, 8.0, 7.0, 6.0, 5.0]);
}
