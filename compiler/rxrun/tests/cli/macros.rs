//! Tests that prim_funcs that call macros run and can be printed.

use super::{DEVICES, Folder, floats};
use rx_tensor::npz;

const MACROS: &str = r#"from tvm.script import ir as I, relax as R, tirx as T


@T.inline
def bump(buf, k, delta):
    with T.sblock("bump"):
        vk = T.axis.spatial(4, k)
        buf[vk] = buf[vk] + delta


@T.macro(hygienic=False)
def copy():
    for j in range(4):
        B[j] = A[j]


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        copy()
        for i in range(4):
            bump(B, i, T.float32(1))
        for i in range(4):
            bump(delta=T.if_then_else(i < 2, f=A[i], t=T.float32(2)), k=i, buf=B)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.call_tir(cls.twice, (x,), out_ty=R.Tensor((4,), "float32"))
        return y
"#;

#[test]
fn macros_of_a_file_run_on_every_device() {
    let folder = Folder::new();
    folder.write("m.py", MACROS);
    folder.write("m.rx", MACROS);
    folder.arrays("in.npz", &[("x", &floats(&[4], &[0.0, 1.0, 2.0, 3.0]))]);
    for (file, device) in DEVICES.iter().flat_map(|device| [("m.py", device), ("m.rx", device)]) {
        folder.run(&[file, "--inputs", "in.npz", "--output", "out.npz", "--device", device]).succeeds();
        let out = npz::read(&folder.path("out.npz")).expect("written");
        assert_eq!(out[0].1.as_slice::<f32>(), Some(&[3.0, 4.0, 5.0, 7.0][..]), "{file} {device}");
    }
}

#[test]
fn macros_of_a_file_are_emitted_as_their_statements() {
    let folder = Folder::new();
    folder.write("m.py", MACROS);
    for stage in ["tir", "cuda"] {
        let run = folder.run(&["m.py", "--emit", stage]).succeeds();
        assert!(run.stdout().contains("if") && !run.stdout().contains("bump("), "{stage}: {}", run.stdout());
    }
}
