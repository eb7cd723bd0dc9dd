//! Checks that the default pipeline preserves values, and that weights are prepared once.

use rx_base::name::{NameMap, name};
use rx_base::{Name, Severity};
use rx_build::Device;
use rx_build::pipeline::{Pipeline, Unapplied, checked};
use rx_db::{FileId, Operators, Workspace};
use rx_driver::values::{File, Verdict, compare_functions};
use rx_ir::Origin;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Executor, KernelRun, Observer, Output, Value};
use rx_tensor::Tensor;
use rx_transform::pipeline::steps;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The stack size of threads for recursive visitors, in bytes.
const STACK: usize = 256 << 20;

/// Runs the default pipeline on a text.
fn transformed(text: &str) -> Result<Pipeline, String> {
    let (workspace, file) = checked(text, Arc::new(Operators::default()));
    let mut pipeline = Pipeline::new(&workspace, workspace.first_module(file), Arc::new(Operators::default()))?;
    for step in steps("default").map_err(|error| error.to_string())? {
        pipeline.apply(&step, rx_driver::evaluate).map_err(|why| match why {
            Unapplied::Refused(error) => error.to_string(),
            Unapplied::Broken(_, errors) => {
                format!("{} breaks it: {}", step.pass.name, errors.first().map_or("", |error| &error.message))
            }
        })?;
    }
    Ok(pipeline)
}

fn verdicts(text: &str) -> Result<Vec<(Name, Verdict)>, String> {
    let (before, file) = checked(text, Arc::new(Operators::default()));
    let (after, new) = transformed(text)?.checked();
    Ok(compare_functions(File { workspace: &before, file }, File { workspace: &after, file: new }, None, 0))
}

/// Returns the programs in a folder.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut programs: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "rx")).collect();
    programs.sort();
    programs
}

/// Compares all programs of a folder. Returns the number of functions that agree.
fn compare(folder: &Path) -> usize {
    let (mut same, mut wrong) = (0, Vec::new());
    for path in programs(folder) {
        let text = std::fs::read_to_string(&path).expect("a text");
        let (workspace, file) = checked(&text, Arc::new(Operators::default()));
        if workspace.diagnostics(file).iter().any(|found| found.severity == Severity::Error) {
            continue;
        }
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match verdicts(&text) {
            Err(why) => wrong.push(format!("{own}: {why}")),
            Ok(found) => {
                for (function, verdict) in found {
                    match verdict {
                        Verdict::Same(worst) => {
                            println!("{own}: `{function}` agrees, the worst difference is {worst:.3e}");
                            same += 1;
                        }
                        Verdict::NotRun(why) => println!("{own}: `{function}` is not run: {why}"),
                        Verdict::Differs(title) => wrong.push(format!("{own}: `{function}`: {title}")),
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    same
}

fn with_room(test: impl FnOnce() + Send + 'static) {
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(test).expect("a thread");
    if let Err(panic) = worker.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn examples_keep_their_values() {
    with_room(|| {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        assert!(compare(&examples) >= 5);
    });
}

/// Checks all models in the folder `RX_MODELS`, if it is set.
#[test]
#[ignore = "sweep: .ci/full"]
fn models_keep_their_values() {
    let Some(models) = std::env::var_os("RX_MODELS").map(PathBuf::from) else { return };
    with_room(move || {
        let same = compare(&models);
        println!("{same} functions of models agree");
        assert!(same > 0);
    });
}

const WEIGHTS: &str = "@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4), \"float32\"), w: R.Tensor((8, 4), \"float32\")) -> R.Tensor((2, 8), \"float32\"):
        R.func_attr({\"num_input\": 1})
        with R.dataflow():
            turned = R.permute_dims(w)
            gv = R.matmul(x, turned)
            R.output(gv)
        return gv
";

/// Counts kernel launches.
#[derive(Default)]
struct Kernels(Vec<usize>);

impl Observer for Kernels {
    fn kernel(&mut self, _: &KernelRun<'_>) {
        *self.0.last_mut().expect("a run") += 1;
    }

    fn bound(&mut self, _: Origin, _: Name, _: Output) {}
}

fn executor(workspace: &Workspace, file: FileId) -> Executor<Interpreter> {
    let module = workspace.first_module(file);
    let program = rx_build::program(workspace, module, name("main"), &Device::Interp).expect("a program");
    Executor::new(program, Interpreter::default(), &[], &mut |_| ()).expect("it builds")
}

/// Runs the program with these weights. Returns the results, and the number of kernels of each run.
fn runs(weights: &[usize]) -> (Vec<Vec<f32>>, Vec<usize>) {
    let (workspace, file) = transformed(WEIGHTS).expect("a module").checked();
    let mut executor = executor(&workspace, file);
    let tensor = |shape: &[i64], scale: f32| {
        let count: i64 = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|at| at as f32 * scale).collect();
        Tensor::from_f32s(shape, values).expect("a tensor")
    };
    let x = executor.upload(&tensor(&[2, 4], 1.0)).expect("memory");
    let known: Vec<Value<_>> =
        [1.0, 10.0].iter().map(|scale| executor.upload(&tensor(&[8, 4], *scale)).expect("memory")).collect();
    let mut kernels = Kernels::default();
    let mut results = Vec::new();
    for at in weights {
        kernels.0.push(0);
        let arguments = vec![x.clone(), known[*at].clone()];
        let result = executor.run_observed(arguments, &NameMap::default(), &mut kernels).expect("a result");
        let tensors = executor.download(&result).expect("a tensor").tensors();
        results.push(tensors[0].as_slice::<f32>().expect("floats").to_vec());
    }
    (results, kernels.0)
}

#[test]
fn weights_are_prepared_once() {
    let (results, kernels) = runs(&[0, 0, 1, 1, 0]);
    assert_eq!(
        kernels,
        [2, 1, 2, 1, 2],
        "the transposition, where weights are others than the last time, and the product"
    );
    assert_eq!(results[0][..3], [14.0, 38.0, 62.0]);
    assert_eq!(results[2][..3], [140.0, 380.0, 620.0]);
    assert_eq!((&results[1], &results[3], &results[4]), (&results[0], &results[2], &results[0]));
}
