//! Tests of inputs from `.safetensors` files and from `[run]` in `rx.toml`.

use super::{DEVICES, Folder, TAKE, floats, ints, table};
use rx_tensor::{Tensor, npy};

/// Encodes a `.safetensors` file; each array is (name, dtype, shape, bytes).
fn safetensors(arrays: &[(&str, &str, &[i64], &[u8])]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in arrays {
        let start = data.len();
        data.extend_from_slice(bytes);
        let info = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [start, data.len()]});
        header.insert((*name).to_owned(), info);
    }
    let header = serde_json::Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn safetensors_are_matched_by_name_as_npz_are() {
    let folder = Folder::new();
    folder.write(
        "f.rx",
        "@R.function\ndef f(a_b: R.Tensor((2,), \"bfloat16\"), c: R.Tensor((1,), \"float8_e4m3fn\"), d: R.Tensor((2,), \"bool\")):\n    \
         x = R.astype(a_b, \"float32\")\n    y = R.astype(c, \"float32\")\n    return x, y, d\n",
    );
    // bfloat16: 1.5 and -2 as the upper halves of their float32 bits. float8_e4m3: 1.5 with 3 bits of fraction.
    let arrays: [(&str, &str, &[i64], &[u8]); 4] = [
        ("a.b", "BF16", &[2], &[0xc0, 0x3f, 0x00, 0xc0]),
        ("c", "F8_E4M3", &[1], &[0x3c]),
        ("d", "BOOL", &[2], &[0, 1]),
        ("out0", "F32", &[1], &[0; 4]),
    ];
    folder.write("in.safetensors", safetensors(&arrays));
    for device in DEVICES {
        let run = folder.run(&["f.rx", "--inputs", "in.safetensors", "--device", device]).succeeds();
        let said = run.stdout();
        assert!(said.contains("out0: float32 (2,)  min -2.000000  mean -0.250000  max 1.500000"), "{said}");
        assert!(said.contains("out1: float32 (1,)  min 1.500000"), "{said}");
        assert!(said.contains("out2: bool (2,)  min 0.000000  mean 0.500000  max 1.000000"), "{said}");
    }
    folder.write("cut.safetensors", &safetensors(&arrays)[..40]);
    folder.run(&["f.rx", "--inputs", "cut.safetensors"]).fails(2, "cut.safetensors: corrupt: ");
    folder.write("wide.safetensors", safetensors(&[("c", "F32", &[1], &[0; 4])]));
    folder
        .run(&["f.rx", "--inputs", "wide.safetensors"])
        .fails(2, "wide.safetensors: the array for `c` is float32 (1,)");
    folder.write("complex.safetensors", safetensors(&[("c", "C64", &[1], &[0; 8])]));
    folder.run(&["f.rx", "--inputs", "complex.safetensors"]).fails(2, "array c: arrays of type C64 are not read");
}

#[test]
fn settings_give_the_inputs_of_a_run() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("nets")).expect("a folder");
    folder.write("nets/take.rx", TAKE);
    folder.arrays("data.npz", &[("table", &table()), ("indices", &ints(&[3, 1])), ("unused", &ints(&[1]))]);
    folder.write("rx.toml", "[run]\ninputs = ['data.npz']\ndevice = 'interp'\n");
    let run = folder.run(&["nets/take.rx"]).succeeds();
    assert!(run.stdout().contains("out0: float32 (2, 2)  min 0.000000  mean 2.250000"), "{}", run.stdout());
    assert!(run.stderr().contains("the interpreter"), "{}", run.stderr());
    // The command line has precedence over rx.toml.
    npy::write_file(&folder.path("indices.npy"), &ints(&[2])).expect("written");
    let args = ["nets/take.rx", "--input", "indices=indices.npy", "--device", "cpu"];
    let run = folder.run(&args).succeeds();
    assert!(run.stdout().contains("out0: float32 (1, 2)  min 4.0"), "{}", run.stdout());
    assert!(run.stderr().contains("the CPU"), "{}", run.stderr());
    assert!(folder.run(&["nets/take.rx", "--isolated"]).stderr().contains("say --dim n=…"));
    folder.write("rx.toml", "run = { dims = { n = 3 }, seed = 1 }\n");
    let drawn = folder.run(&["nets/take.rx"]).succeeds().stdout();
    assert_eq!(drawn, folder.run(&["nets/take.rx", "--isolated", "--dim", "n=3", "--seed", "1"]).succeeds().stdout());
    assert!(folder.run(&["nets/take.rx", "--dim", "n=2"]).succeeds().stdout().contains("float32 (2, 2)"));
    // Overrides for some of the files.
    npy::write_file(&folder.path("table.npy"), &floats(&[4, 2], &[9.0; 8])).expect("written");
    let nets = "[[overrides]]\nfiles = ['nets']\nrun = { dims = { n = 5 }, input = { table = 'table.npy' } }\n";
    folder.write("rx.toml", format!("run = {{ dims = {{ n = 3 }} }}\n{nets}"));
    let said = folder.run(&["nets/take.rx"]).succeeds().stdout();
    assert!(said.contains("out0: float32 (5, 2)  min 9.0"), "{said}");
    folder.write("rx.toml", "run = { seed = -1 }\n");
    folder.run(&["nets/take.rx"]).fails(2, "`run.seed` takes an integer of 0 or more");
}

#[test]
fn files_of_settings_that_a_function_does_not_need_may_be_missing() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    folder.arrays("data.npz", &[("table", &table()), ("indices", &ints(&[3, 1]))]);
    let wrong = "none.npy is not read: `other`, for which rx.toml names it, is no parameter of `main`";
    let settings = |text: &str| folder.write("rx.toml", format!("[run]\ndevice = 'interp'\n{text}\n"));
    settings("inputs = ['data.npz']\ninput = { other = 'none.npy' }");
    let run = folder.run(&["take.rx"]).succeeds();
    assert!(run.stdout().contains("out0: float32 (2, 2)") && run.stderr().contains(wrong), "{}", run.stderr());
    // The files that the run needs must exist, unless the command line gives the arrays.
    settings("inputs = ['data.npz']\ninput = { indices = 'none.npy' }");
    folder.run(&["take.rx"]).fails(2, "none.npy: ");
    npy::write_file(&folder.path("indices.npy"), &ints(&[2])).expect("written");
    let run = folder.run(&["take.rx", "--input", "indices=indices.npy"]).succeeds();
    assert!(run.stdout().contains("out0: float32 (1, 2)") && !run.stderr().contains("none.npy"), "{}", run.stderr());
    settings("inputs = ['none.npz']");
    folder.run(&["take.rx", "--input", "indices=indices.npy"]).fails(2, "none.npz: ");
    let run = folder.run(&["take.rx", "--inputs", "data.npz"]).succeeds();
    assert!(run.stderr().contains("; nothing of it is needed"), "{}", run.stderr());
    // A file that the command line names must exist, even if it is not needed.
    folder.run(&["take.rx", "--isolated", "--inputs", "none.npz", "--inputs", "data.npz"]).fails(2, "none.npz: ");
}

/// A sum of two parameters.
const SUM: &str = "@R.function\ndef main(data: R.Tensor((2,), \"float32\"), weight: R.Tensor((\"n\",), \"float32\")):\n    \
                   z = R.add(data, weight)\n    return z\n";

#[test]
fn arrays_that_are_no_parameters_are_reported() {
    let folder = Folder::new();
    folder.write("f.rx", SUM);
    let two = floats(&[2], &[1.0, 2.0]);
    folder.arrays("none.npz", &[("x", &two), ("wieght", &two), ("out0", &two)]);
    let none = "none.npz: no array is a parameter of `main`: it has `x`, `wieght`, the function takes `data`, `weight`";
    folder.run(&["f.rx", "--inputs", "none.npz"]).fails(2, none);
    folder.arrays("results.npz", &[("out0", &two)]);
    let results = "results.npz: no array is a parameter of `main`: it has `out0`, the function takes";
    folder.run(&["f.rx", "--inputs", "results.npz"]).fails(2, results);
    folder.arrays("some.npz", &[("data", &two), ("wieght", &two), ("out0", &two)]);
    let run = folder.run(&["f.rx", "--inputs", "some.npz", "--dim", "n=2"]).succeeds();
    let extra = "warning: some.npz: `wieght` (did you mean `weight`?) is no parameter of `main`";
    assert!(run.stderr().contains(extra), "{}", run.stderr());
    folder.arrays("all.npz", &[("data", &two), ("weight", &two), ("out0", &floats(&[2], &[2.0, 4.0]))]);
    let run = folder.run(&["f.rx", "--inputs", "all.npz", "--check", "all.npz"]).succeeds();
    assert!(!run.stderr().contains("warning"), "{}", run.stderr());
    npy::write_file(&folder.path("x.npy"), &two).expect("written");
    folder.run(&["f.rx", "--dim", "n=2", "--input", "wight=x.npy"]).fails(2, "did you mean `weight`?");
}

#[test]
fn parameter_may_have_the_name_of_a_result() {
    let folder = Folder::new();
    folder.write("f.rx", "@R.function\ndef main(out0: R.Tensor((2,), \"float32\")):\n    return out0\n");
    folder.arrays("in.npz", &[("out0", &floats(&[2], &[5.0, 7.0]))]);
    let run = folder.run(&["f.rx", "--inputs", "in.npz"]).succeeds();
    assert!(run.stdout().contains("min 5.000000  mean 6.000000"), "{}", run.stdout());
}

#[test]
fn dims_that_no_function_has_are_refused() {
    let folder = Folder::new();
    folder.write("f.rx", SUM);
    folder.run(&["f.rx", "--dim", "q=5"]).fails(2, "--dim: `main` has no symbolic dim `q`; it has `n`");
    folder.write("g.rx", "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    return x\n");
    folder.run(&["g.rx", "--dim", "q=5", "--dim", "p=1"]).fails(2, "has no symbolic dim `q`, `p`; it has none");
    // Dims in rx.toml are meant for all functions: unknown ones are no error.
    folder.write("rx.toml", "run = { dims = { q = 5, n = 2 } }\n");
    folder.run(&["f.rx"]).succeeds();
}

#[test]
fn stages_dims_that_nothing_shown_has_are_refused() {
    let folder = Folder::new();
    let text = "@R.function\ndef main(x: R.Tensor((\"n\",), \"float32\")):\n    return R.exp(x)\n\n@R.function\ndef other(x: R.Tensor((\"m\",), \"float32\")):\n    return R.exp(x)\n\n@T.prim_func\ndef step(a: T.handle):\n    k = T.int64()\n    A = T.match_buffer(a, (k,))\n    for i in range(k):\n        A[i] = T.float32(1)\n";
    folder.write("f.rx", text);
    let emit = |stage: &str, dim: &str| folder.run(&["f.rx", "--emit", stage, "--dim", dim]);
    for stage in ["tir", "cuda", "schedule", "cpu"] {
        emit(stage, "n=5").succeeds();
        emit(stage, "q=5").fails(2, "--dim: `main` has no symbolic dim `q`; it has `n`");
        emit(stage, "m=5").fails(2, "--dim: `main` has no symbolic dim `m`");
        let step = ["f.rx", "--emit", stage, "--entry", "step", "--dim"];
        folder.run(&[&step[..], &["k=5"]].concat()).succeeds();
        folder.run(&[&step[..], &["n=5"]].concat()).fails(2, "--dim: `step` has no symbolic dim `n`; it has `k`");
    }
    for stage in ["relax", "passes"] {
        ["n=5", "m=5", "k=5"].into_iter().for_each(|dim| drop(emit(stage, dim).succeeds()));
        emit(stage, "q=5").fails(2, "--dim: the module has no symbolic dim `q`; it has `k`, `m`, `n`");
    }
}

#[test]
fn stages_of_a_whole_module_unknown_entry_is_refused() {
    let folder = Folder::new();
    folder.write("f.rx", SUM);
    for stage in ["relax", "passes", "tir", "cpu"] {
        folder.run(&["f.rx", "--emit", stage, "--entry", "none"]).fails(2, "no Relax function `none`; it has `main`");
    }
}

#[test]
fn missing_dims_are_named_at_once() {
    let folder = Folder::new();
    let text = "@R.function\ndef main(x: R.Tensor((\"n\", \"m\"), \"float32\"), t: R.Tuple(R.Tensor((\"k\",), \"float32\"), R.Shape([\"n\"]))):\n    return x\n";
    folder.write("f.rx", text);
    let missing = "the dims n, m, k of parameters `x`, `t.0`, `t.1` are not known: say --dim n=… --dim m=… --dim k=…, or give the parameters arrays";
    folder.run(&["f.rx"]).fails(2, missing);
    let missing = "the dims n, m of parameters `x`, `t.1` are not known";
    folder.run(&["f.rx", "--dim", "k=1"]).fails(2, missing);
    folder.run(&["f.rx", "--dim", "n=1", "--dim", "m=2", "--dim", "k=3"]).succeeds();
}

#[test]
fn missing_dims_and_inputs_are_one_event() {
    let folder = Folder::new();
    let head = "@R.function\ndef main(x: R.Tensor((\"n\", \"m\"), \"float32\"), s: R.Shape(ndim=2), t: R.Tuple(R.Tensor((\"n\",), \"float32\"), R.Tensor(dtype=\"float32\", ndim=1))):\n";
    for name in ["f.rx", "f.py"] {
        let imports = "from tvm.script import relax as R\n\n";
        folder.write(name, format!("{imports}{head}    return x\n"));
        let missing = |args: &[&str]| {
            let run = folder.run(&[&[name, "--format", "json"], args].concat());
            let events = run.stdout();
            let last = events.lines().last().expect("an event").to_owned();
            serde_json::from_str::<serde_json::Value>(&last).expect("an object")["missing"].clone()
        };
        assert_eq!(missing(&[]), serde_json::json!({"dims": ["n", "m"], "inputs": ["s", "t.1"]}));
        let dims = ["--dim", "n=2", "--dim", "m=3"];
        assert_eq!(missing(&dims), serde_json::json!({"dims": [], "inputs": ["s", "t.1"]}));
        npy::write_file(&folder.path("s.npy"), &ints(&[2, 3])).expect("written");
        let given = [&dims[..], &["--input", "s=s.npy"]].concat();
        assert_eq!(missing(&given), serde_json::json!({"dims": [], "inputs": ["t.1"]}));
        // An array that does not fit is an error about it alone.
        assert!(missing(&[&given[..], &["--input", "t.0=s.npy"]].concat()).is_null());
    }
}

#[test]
fn parameters_of_every_kind_are_given_as_arrays() {
    let folder = Folder::new();
    folder.write(
        "f.rx",
        "@R.function\ndef main(s: R.Shape(ndim=2), r: R.Shape([\"n\", 3]), p: R.Prim(\"int64\"), \
         t: R.Tuple(R.Tensor((\"n\",), \"float32\"), R.Tuple(R.Shape([\"m\"]), R.Tensor((\"m\",), \"float32\")))):\n    \
         a = R.ones(s, dtype=\"float32\")\n    b = t[0]\n    u = t[1]\n    c = u[1]\n    return a, b, c, R.shape_to_tensor(r)\n",
    );
    let (s, r, p) = (ints(&[2, 3]), ints(&[2, 3]), Tensor::from_i64s(&[], [7]).expect("a tensor"));
    let (b, m, c) = (floats(&[2], &[1.0, 2.0]), ints(&[1]), floats(&[1], &[9.0]));
    let given = [("s", &s), ("r", &r), ("p", &p), ("t.0", &b), ("t.1.0", &m), ("t.1.1", &c)];
    folder.arrays("in.npz", &given);
    for device in DEVICES {
        let run = folder.run(&["f.rx", "--inputs", "in.npz", "--device", device]).succeeds();
        let said = run.stdout();
        assert!(
            said.contains("out0: float32 (2, 3)  min 1.0") && said.contains("out1: float32 (2,)  min 1.0"),
            "{said}"
        );
        assert!(said.contains("out2: float32 (1,)  min 9.0") && said.contains("out3: int64 (2,)  min 2.0"), "{said}");
    }
    // The message for missing dims says how to give them, and following it works.
    folder.run(&["f.rx"]).fails(2, "the dims n, m of parameters `r`, `t.0`, `t.1.0`, `t.1.1` are not known");
    let dims = ["f.rx", "--dim", "n=2", "--dim", "m=1"];
    folder.run(&dims).fails(2, "its dims are not known; give it with --input s=FILE.npy, 2 integers (int64)");
    npy::write_file(&folder.path("s.npy"), &s).expect("written");
    let run = folder.run(&[&dims[..], &["--input", "s=s.npy"]].concat()).succeeds();
    assert!(run.stdout().contains("out0: float32 (2, 3)  min 1.0"), "{}", run.stdout());
    npy::write_file(&folder.path("wide.npy"), &floats(&[3], &[1.0; 3])).expect("written");
    let run = folder.run(&[&dims[..], &["--input", "s=s.npy", "--input", "t.0=wide.npy"]].concat());
    run.fails(
        2,
        "the array for `t.0` is float32 (3,), the parameter is R.Tensor((n,), dtype=\"float32\"): axis 0 must be 2",
    );
    let whole = folder.run(&[&dims[..], &["--input", "s=s.npy", "--input", "t=s.npy"]].concat());
    whole.fails(2, "give an array for each of its 2 fields: `t.0`, …");
    for (array, why) in [
        (ints(&[2]), "it must have 2 elements"),
        (ints(&[2, -3]), "-3 is no extent"),
        (floats(&[2], &[1.0, 2.0]), "it must be a vector of integers (int64), one for each dim"),
    ] {
        npy::write_file(&folder.path("s.npy"), &array).expect("written");
        folder.run(&[&dims[..], &["--input", "s=s.npy"]].concat()).fails(2, why);
    }
}

#[test]
fn scalar_argument_sets_a_dim() {
    let folder = Folder::new();
    folder.write(
        "f.rx",
        "@R.function\ndef main(n: R.Prim(value=\"n\"), x: R.Tensor((\"n\",), \"float32\")):\n    return x\n",
    );
    npy::write_file(&folder.path("n.npy"), &Tensor::from_i64s(&[], [3]).expect("a tensor")).expect("written");
    let run = folder.run(&["f.rx", "--input", "n=n.npy"]).succeeds();
    assert!(run.stdout().contains("out0: float32 (3,)"), "{}", run.stdout());
    folder.run(&["f.rx", "--input", "n=n.npy", "--dim", "n=4"]).fails(2, "it must be 4, the value of `n` elsewhere");
}
