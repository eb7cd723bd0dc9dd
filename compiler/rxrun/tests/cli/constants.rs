//! Tests of constants that a text names but has no data for.

use super::{DEVICES, Folder, floats};

/// A module as TVM prints it without its metadata.
const WITHOUT_DATA: &str = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), dtype=\"float32\")):
        y: R.Tensor((2,), dtype=\"float32\") = R.add(x, metadata[\"ir.GenericConst\"][0])
        return R.multiply(y, metadata[\"ir.GenericConst\"][1])
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("f.rx", WITHOUT_DATA);
    folder.arrays("x.npz", &[("x", &floats(&[2], &[1.0, 2.0]))]);
    folder
}

#[test]
fn missing_constants_are_reported_with_the_remedy() {
    for reported in [
        "f.rx: metadata[\"ir.GenericConst\"][0], metadata[\"ir.GenericConst\"][1]: the file has no metadata section",
        "TVM prints them with the module by `mod.script(show_meta=True)`",
        "or give them with --constants FILE",
    ] {
        folder().run(&["f.rx", "--inputs", "x.npz", "--device", "cpu"]).fails(2, reported);
    }
}

#[test]
fn constants_are_read_from_files() {
    let folder = folder();
    let (one, two) = (floats(&[2], &[10.0, 20.0]), floats(&[2], &[2.0, 3.0]));
    folder.arrays("c.npz", &[("ir.GenericConst[0]", &one), ("ir.GenericConst[1]", &two)]);
    folder.arrays("half.npz", &[("ir.GenericConst[0]", &one)]);
    folder.arrays("wrong.npz", &[("w", &one)]);
    let more = [("ir.GenericConst[0]", &one), ("ir.GenericConst[1]", &two), ("ir.GenericConst[7]", &two)];
    folder.arrays("more.npz", &more);
    folder.arrays("other.npz", &[("ir.GenericConst[7]", &one)]);
    for device in DEVICES {
        let run = |file| folder.run(&["f.rx", "--inputs", "x.npz", "--device", device, "--constants", file]);
        let said = run("c.npz").succeeds().stdout();
        assert!(said.contains("min 22.000000  mean 44.000000  max 66.000000"), "{said}");
        run("half.npz").fails(2, "f.rx: metadata[\"ir.GenericConst\"][1]: the file has no metadata section");
        let run_with_more = run("more.npz").succeeds();
        let warning = "warning: --constants: `ir.GenericConst[7]` is no constant of the program";
        assert!(run_with_more.stderr().contains(warning), "{}", run_with_more.stderr());
        run("other.npz").fails(2, "--constants: `ir.GenericConst[7]` is no constant of the program");
        run("wrong.npz").fails(2, "wrong.npz: the array `w` is no constant");
    }
}

#[test]
fn steps_are_shown_with_and_without_the_data_of_constants() {
    let folder = folder();
    let (one, two) = (floats(&[2], &[10.0, 20.0]), floats(&[2], &[2.0, 3.0]));
    folder.arrays("c.npz", &[("ir.GenericConst[0]", &one), ("ir.GenericConst[1]", &two)]);
    let all = folder.run(&["f.rx", "--emit", "passes", "--constants", "c.npz"]).succeeds().stdout();
    assert!(all.contains("metadata = tvm.ir.load_json(") && all.contains("----- LegalizeOps -----"), "{all}");
    folder.run(&["f.rx", "--emit", "passes"]).succeeds();
}
