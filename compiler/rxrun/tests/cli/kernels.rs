//! Tests that the kernels that run are the functions of the last step of `--emit passes`.

use super::{Folder, model, models, named};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The functions of a module's text.
#[derive(Default)]
struct Functions {
    /// The prim_funcs by name, without the indentation of the class.
    kernels: BTreeMap<String, String>,
    /// The Relax functions, in order; the entry is the first.
    relax: Vec<(String, String)>,
}

impl Functions {
    /// Parses the last step of the output of `--emit passes`.
    fn of_last_step(listing: &str) -> Functions {
        let changed = |part: &&str| part.contains("@R.function");
        let last = listing.split("# ----- ").filter(changed).last().expect("a module");
        let mut functions = Functions::default();
        for part in last.split("\n    @").skip(1) {
            let lines = part.lines().take_while(|line| !line.is_empty());
            let text: String = lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
            let text = format!("@{text}");
            let name = text.split("def ").nth(1).and_then(|rest| rest.split('(').next()).expect("a name").to_owned();
            match text.starts_with("@T.prim_func") {
                true => _ = functions.kernels.insert(name, text),
                false => functions.relax.push((name, text)),
            }
        }
        functions
    }

    /// Counts how often one call of a Relax function calls each kernel. The functions of these modules have no
    /// branches.
    fn calls(&self, function: &str, counts: &mut BTreeMap<String, u64>) {
        let text = self.relax.iter().find(|(name, _)| name == function).map_or("", |(_, text)| text);
        for rest in text.split("cls.").skip(1) {
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
            match &rest[..end] {
                called if self.kernels.contains_key(called) => *counts.entry(called.to_owned()).or_default() += 1,
                called => self.calls(called, counts),
            }
        }
    }
}

/// Checks that `--emit tir` agrees with the last step of `--emit passes`; returns that step.
fn loops_are_those_of_the_last_step(folder: &Folder, args: &[&str]) -> Functions {
    let emit = |stage: &str| folder.run(&[args, &["--emit", stage]].concat()).succeeds().stdout();
    let shown = Functions::of_last_step(&emit("passes"));
    let tir = emit("tir");
    let printed: BTreeSet<String> = tir.split("\n\n").map(|text| format!("{}\n", text.trim_matches('\n'))).collect();
    let wanted: BTreeSet<String> = shown.kernels.values().cloned().collect();
    assert_eq!(printed, wanted, "{args:?}");
    shown
}

/// Checks that the kernel counts of `--profile` agree with the last step.
fn kernels_that_run_are_those_shown(folder: &Folder, args: &[&str], inputs: &[&str]) {
    let shown = loops_are_those_of_the_last_step(folder, args);
    let run = folder.run(&[args, inputs, &["--profile", "--format", "json"]].concat()).succeeds();
    let lines = run.stdout();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut ran: BTreeMap<String, u64> = BTreeMap::new();
    for event in events.filter(|event| event["event"] == "kernel") {
        let name = event["name"].as_str().expect("a name").to_owned();
        *ran.entry(name).or_default() += event["calls"].as_u64().expect("a number");
    }
    let mut wanted = BTreeMap::new();
    let entry = shown.relax.first().map_or("", |(name, _)| name);
    shown.calls(entry, &mut wanted);
    assert_eq!(ran, wanted, "{args:?}");
}

/// Returns the number of elements of a program's parameters; symbolic dims count as 1.
fn weights(program: &str) -> u64 {
    let text = std::fs::read_to_string(program).expect("a program");
    let signature = text.split("@R.function").nth(1).and_then(|rest| rest.split(" with R.").next()).unwrap_or_default();
    let elements = |shape: &str| {
        let dims = shape.split(')').next().unwrap_or_default().split(',');
        dims.filter_map(|dim| dim.trim().parse::<u64>().ok()).product::<u64>()
    };
    signature.split("R.Tensor((").skip(1).map(elements).sum()
}

/// Returns `--dim` values for all symbolic dims of a program.
fn dims(program: &str) -> Vec<String> {
    let text = std::fs::read_to_string(program).expect("a program");
    let declared = text.lines().filter_map(|line| line.trim().split_once(" = "));
    let mut dims: Vec<String> = declared
        .filter(|(_, value)| value.starts_with("T.int64()") || value.starts_with("TypeVar("))
        .flat_map(|(symbol, _)| ["--dim".to_owned(), format!("{symbol}=8")])
        .collect();
    dims.dedup();
    dims
}

#[test]
fn kernels_of_examples_are_the_functions_of_the_last_step() {
    let folder = Folder::new();
    for name in ["convnet", "transformer_block", "conv_relu_fixed", "take_in_range"] {
        let program = format!("{}/../../examples/{name}.rx", env!("CARGO_MANIFEST_DIR"));
        kernels_that_run_are_those_shown(&folder, &[&program, "--device", "cpu"], &[]);
        loops_are_those_of_the_last_step(&folder, &[&program, "--device", "cuda"]);
    }
}

#[test]
#[ignore = "sweep: .ci/full"]
fn kernels_of_models_are_the_functions_of_the_last_step() {
    let Some(models) = models() else { return };
    let folder = Folder::new();
    let of_small: BTreeSet<String> = named(&models).into_iter().filter(|name| !name.contains('.')).collect();
    let mut all: BTreeSet<String> = of_small.clone();
    let files = std::fs::read_dir(&models).expect("a folder").flatten();
    let names = files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".rx")?.to_owned()));
    all.extend(names);
    for name in all {
        let (program, values) = model(&models, &name);
        let on = |device: &'static str| [program.clone(), "--device".to_owned(), device.to_owned()];
        for device in ["cpu", "cuda-sim"] {
            let args = on(device);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            match of_small.contains(&name) {
                true if device == "cpu" || rx_cuda::simulator::compiler().is_ok() => {
                    kernels_that_run_are_those_shown(&folder, &args, &["--inputs", &values]);
                }
                false if device == "cpu" && weights(&program) < 1 << 28 => {
                    let dims = dims(&program);
                    let dims: Vec<&str> = dims.iter().map(String::as_str).collect();
                    kernels_that_run_are_those_shown(&folder, &args, &dims);
                }
                _ => _ = loops_are_those_of_the_last_step(&folder, &args),
            }
        }
        println!("{name}: the kernels that run are those shown");
    }
}
