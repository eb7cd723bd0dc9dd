//! Tests of files with several modules: names are looked up in the chosen module only.

use super::{DEVICES, Folder, floats};

const HEAD: &str = "from tvm.script import ir as I, relax as R, tirx as T\n\n";

/// A module whose `main` calls a function `helper`, which adds `bias` with a prim_func `step`.
fn adds(class: &str, bias: u32) -> String {
    format!(
        r#"@I.ir_module
class {class}:
    @T.prim_func(private=True)
    def step(a: T.Buffer((2,), "float32"), b: T.Buffer((2,), "float32")):
        for i in range(2):
            b[i] = a[i] + T.float32({bias})

    @R.function(private=True)
    def helper(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = {class}
        y = R.call_tir(cls.step, (x,), out_ty=R.Tensor((2,), "float32"))
        return y

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = {class}
        z = cls.helper(x)
        return z

"#
    )
}

fn folder(parts: &[String]) -> Folder {
    let folder = Folder::new();
    folder.write("net.py", format!("{HEAD}{}", parts.concat()));
    folder.arrays("x.npz", &[("x", &floats(&[2], &[1.0, 2.0]))]);
    folder
}

#[test]
fn calls_stay_in_their_module() {
    let folder = folder(&[adds("Net", 1), adds("Expected", 100).replace("def main", "def other")]);
    for device in DEVICES {
        let run = folder.run(&["net.py", "--inputs", "x.npz", "--device", device, "--values"]).succeeds();
        let said = run.stdout();
        assert!(said.contains("out0: float32 (2,)  min 2.000000  mean 2.500000  max 3.000000"), "{said}");
        // The lines are those of the first module.
        assert!(said.contains("\n  13  y "), "{said}");
        let run = folder.run(&["net.py", "--inputs", "x.npz", "--device", device, "--entry", "other"]).succeeds();
        assert!(run.stdout().contains("min 101.000000"), "{}", run.stdout());
    }
}

#[test]
fn several_modules_with_the_entry_are_listed() {
    let folder = folder(&[adds("Net", 1), adds("Expected", 100)]);
    let listed = "net.py: several modules have a function `main`; choose one with --module: `Net`, `Expected`";
    folder.run(&["net.py", "--inputs", "x.npz"]).fails(2, listed);
    for stage in ["relax", "passes", "tir", "cuda", "schedule", "cpu"] {
        folder.run(&["net.py", "--emit", stage]).fails(2, listed);
    }
    folder.run(&["net.py", "--module", "Nat"]).fails(2, "there is no module `Nat`; there is `Net`, `Expected`");
    let run = folder.run(&["net.py", "--inputs", "x.npz", "--module", "Expected"]).succeeds();
    assert!(run.stdout().contains("min 101.000000"), "{}", run.stdout());
    let entry = ["net.py", "--module", "Net", "--entry", "other"];
    folder.run(&entry).fails(2, "no Relax function `other`; it has `helper`, `main`");
    let event = folder.run(&["net.py", "--format", "json"]).stdout();
    assert!(event.contains(r#""modules":["Net","Expected"]"#), "{event}");
}

#[test]
fn stages_are_those_of_the_chosen_module() {
    let folder = folder(&[adds("Net", 1), adds("Expected", 100)]);
    for stage in ["relax", "passes", "tir", "cuda", "cpu"] {
        let shown = |module: &str| folder.run(&["net.py", "--emit", stage, "--module", module]).succeeds().stdout();
        let (net, expected) = (shown("Net"), shown("Expected"));
        assert!(!net.contains("Expected") && !expected.contains("Net"), "{stage}: {net}{expected}");
        assert_ne!(net, expected, "{stage}");
    }
    let text = folder.run(&["net.py", "--emit", "tir", "--module", "Expected", "--entry", "step"]).succeeds().stdout();
    assert!(text.contains("T.float32(100"), "{text}");
}

#[test]
fn module_given_twice_the_last_holds() {
    let folder = folder(&[adds("Net", 1), adds("Expected", 100)]);
    let run = folder.run(&["net.py", "--inputs", "x.npz", "--module", "Net", "--module", "Expected"]).succeeds();
    assert!(run.stdout().contains("min 101.000000"), "{}", run.stdout());
}

#[test]
fn modules_of_one_name_are_chosen_by_number() {
    let folder = folder(&[adds("Net", 1), adds("Net", 100)]);
    let listed = "several modules are called `Net`; choose one with --module: `Net#1` (line 4), `Net#2` (line 23)";
    folder.run(&["net.py", "--module", "Net"]).fails(2, listed);
    let run = folder.run(&["net.py", "--inputs", "x.npz", "--module", "Net#2"]).succeeds();
    assert!(run.stdout().contains("min 101.000000"), "{}", run.stdout());
}

#[test]
fn functions_outside_of_modules_are_a_module_of_their_own() {
    let outside = "@R.function\ndef other(x: R.Tensor((2,), \"float32\")):\n    z = R.add(x, R.const(100.0, \"float32\"))\n    return z\n\n";
    let folder = folder(&[outside.to_owned(), adds("Net", 1)]);
    let run = |arguments: &[&str]| {
        let run = folder.run(&[&["net.py", "--inputs", "x.npz"], arguments].concat()).succeeds();
        run.stdout()
    };
    assert!(run(&[]).contains("min 2.000000"), "{}", run(&[]));
    assert!(run(&["--entry", "other"]).contains("min 101.000000"));
    assert!(run(&["--module", "-"]).contains("min 101.000000"));
}
