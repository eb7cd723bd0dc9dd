//! Whole models as CUDA without a GPU. The simulator runs the models that have recorded inputs, under sanitizers and
//! with several orders of threads, and the results must agree with the interpreter. NVRTC compiles the kernels of all
//! models. `RX_MODELS` is the folder of models. Tests are skipped without it, or without the C++ compiler or the NVRTC
//! that they need.

use crate::common::Text;
use rx_cuda::images::{self, ImageCache, resources};
use rx_cuda::nvrtc;
use rx_cuda::rules::Target;
use rx_runtime::Backend;
use rx_runtime::cuda::{Simulated, source};
use rx_runtime::interp::Interpreter;
use rx_tensor::{Tensor, compare, npz};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The absolute and relative tolerance of the comparison with the interpreter, which sums in a different order.
const TOLERANCE: f64 = 1e-4;

/// The compute capabilities to compile for.
const ARCHITECTURES: [u32; 2] = [80, 90];

/// Returns the folder of models.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("RX_MODELS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: RX_MODELS names no folder of models");
    }
    folder
}

/// Returns the models of the folder, sorted by name.
fn models(folder: &Path) -> Vec<(String, Text)> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "rx")).collect();
    paths.sort();
    let text = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (name, Text::new(&std::fs::read_to_string(path).expect("readable")))
    };
    paths.iter().map(text).collect()
}

/// Returns a model's recorded inputs in the order of the file, or `None` if there is no recording.
fn recorded(folder: &Path, name: &str) -> Option<Vec<Tensor>> {
    let path = folder.join(format!("{name}.npz"));
    let arrays = path.is_file().then(|| npz::read(&path).unwrap_or_else(|error| panic!("{name}: {error}")))?;
    Some(arrays.into_iter().filter(|(key, _)| !key.starts_with("out")).map(|(_, tensor)| tensor).collect())
}

#[test]
#[ignore = "sweep: .ci/full"]
fn small_models_agree_with_the_interpreter_in_every_order_of_threads() {
    let Some(folder) = folder() else { return };
    if let Err(missing) = rx_cuda::simulator::compiler() {
        println!("skipped: {missing}");
        return;
    }
    let mut count = 0;
    for (name, text) in models(&folder) {
        let Some(inputs) = recorded(&folder, &name) else { continue };
        let interpreted = text.run(false, Interpreter::default(), &inputs);
        let simulated = text.run(true, Simulated::default().strict(), &inputs);
        let [expected, results] =
            [interpreted, simulated].map(|run| run.result.unwrap_or_else(|error| panic!("{name}: {error}")).tensors());
        assert_eq!(results.len(), expected.len(), "{name}");
        let mut worst = 0f64;
        for (result, expected) in results.iter().zip(&expected) {
            let found =
                compare(result, expected, TOLERANCE, TOLERANCE).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(found.ok, "{name}: {found}");
            worst = worst.max(found.max_abs_error);
        }
        println!("{name}: {} results, the largest difference is {worst:.1e}", results.len());
        count += 1;
    }
    assert!(count > 0, "no model in {} has a record", folder.display());
}

#[test]
fn kernels_of_all_models_become_machine_code() {
    let Some(folder) = folder() else { return };
    if let Err(missing) = nvrtc::probe() {
        println!("skipped: {missing}");
        return;
    }
    let (mut by_rule, mut all, mut wrong) = (BTreeMap::<&str, usize>::new(), 0, Vec::new());
    for (name, text) in models(&folder) {
        let mut kernels = 0;
        for arch in ARCHITECTURES {
            let target = Target { arch, ..Target::default() };
            let device = Simulated::of(target.clone());
            let program = text.program_for(Some(device.target_info()));
            let program = program.unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
            let (source, _) = source(&program, &target).unwrap_or_else(|error| panic!("{name}: {error}"));
            let images = images::compile(&source, arch, &ImageCache::of_user(), &mut |_, _| ());
            let images = images.unwrap_or_else(|error| panic!("{name} for sm_{arch}: {error}"));
            let needs: BTreeMap<_, _> = images.iter().flat_map(|image| resources::of(&image.code)).collect();
            kernels = 0;
            for choice in &source.choices {
                for kernel in &choice.kernels {
                    kernels += 1;
                    match needs.get(kernel) {
                        None => wrong.push(format!("{name}: {kernel} has no machine code for sm_{arch}")),
                        Some(needs) if needs.spills > 0 => {
                            wrong.push(format!("{name}: {kernel} of {} spills on sm_{arch}: {needs}", choice.rule));
                        }
                        Some(_) => {}
                    }
                    if arch == ARCHITECTURES[0] {
                        *by_rule.entry(choice.rule).or_default() += 1;
                    }
                }
            }
        }
        println!("{name}: {kernels} kernels");
        all += kernels;
    }
    println!("{all} kernels, by rule {by_rule:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
