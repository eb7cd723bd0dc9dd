//! Where a run's inputs come from beside `.npz`: `.safetensors`, and `[run]` in `rx.toml`.

use super::{DEVICES, Folder, TAKE, floats, ints, table};
use rx_tensor::npy;

/// A `.safetensors` file of arrays: name, dtype, shape, bytes.
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
    // 1.5 and -2 as the upper halves of their floats; 1.5 with 3 bits of fraction.
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
fn settings_say_what_a_run_takes() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("nets")).expect("a folder");
    folder.write("nets/take.rx", TAKE);
    folder.arrays("data.npz", &[("table", &table()), ("indices", &ints(&[3, 1])), ("unused", &ints(&[1]))]);
    folder.write("rx.toml", "[run]\ninputs = ['data.npz']\ndevice = 'interp'\n");
    let run = folder.run(&["nets/take.rx"]).succeeds();
    assert!(run.stdout().contains("out0: float32 (2, 2)  min 0.000000  mean 2.250000"), "{}", run.stdout());
    assert!(run.stderr().contains("the interpreter"), "{}", run.stderr());
    // The command line goes before it.
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
    // What is said of some files alone.
    npy::write_file(&folder.path("table.npy"), &floats(&[4, 2], &[9.0; 8])).expect("written");
    let nets = "[[overrides]]\nfiles = ['nets']\nrun = { dims = { n = 5 }, input = { table = 'table.npy' } }\n";
    folder.write("rx.toml", format!("run = {{ dims = {{ n = 3 }} }}\n{nets}"));
    let said = folder.run(&["nets/take.rx"]).succeeds().stdout();
    assert!(said.contains("out0: float32 (5, 2)  min 9.0"), "{said}");
    folder.write("rx.toml", "run = { seed = -1 }\n");
    folder.run(&["nets/take.rx"]).fails(2, "`run.seed` takes an integer of 0 or more");
}

#[test]
fn what_settings_name_and_a_function_does_not_need_may_be_missing() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    folder.arrays("data.npz", &[("table", &table()), ("indices", &ints(&[3, 1]))]);
    let wrong = "none.npy is not read: `other`, for which rx.toml names it, is no parameter of `main`";
    let settings = |text: &str| folder.write("rx.toml", format!("[run]\ndevice = 'interp'\n{text}\n"));
    settings("inputs = ['data.npz']\ninput = { other = 'none.npy' }");
    let run = folder.run(&["take.rx"]).succeeds();
    assert!(run.stdout().contains("out0: float32 (2, 2)") && run.stderr().contains(wrong), "{}", run.stderr());
    // What it needs must be there, unless the command line gives it.
    settings("inputs = ['data.npz']\ninput = { indices = 'none.npy' }");
    folder.run(&["take.rx"]).fails(2, "none.npy: ");
    npy::write_file(&folder.path("indices.npy"), &ints(&[2])).expect("written");
    let run = folder.run(&["take.rx", "--input", "indices=indices.npy"]).succeeds();
    assert!(run.stdout().contains("out0: float32 (1, 2)") && !run.stderr().contains("none.npy"), "{}", run.stderr());
    settings("inputs = ['none.npz']");
    folder.run(&["take.rx", "--input", "indices=indices.npy"]).fails(2, "none.npz: ");
    let run = folder.run(&["take.rx", "--inputs", "data.npz"]).succeeds();
    assert!(run.stderr().contains("; nothing of it is needed"), "{}", run.stderr());
    // On the command line everything is meant.
    folder.run(&["take.rx", "--isolated", "--inputs", "none.npz", "--inputs", "data.npz"]).fails(2, "none.npz: ");
}
