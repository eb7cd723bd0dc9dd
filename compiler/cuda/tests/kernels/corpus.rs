//! The prim_funcs of the programs that `RX_MODELS` names: all are printed and compile; the small ones are run.

use crate::case::Case;
use rustc_hash::FxHashSet;
use rx_analysis::{FileContext, tir};
use rx_cuda::module;
use rx_syntax::Document;
use rx_syntax::document::{FileKind, FunctionKind, ItemKind};
use rx_tir::PrimFunc;
use std::path::{Path, PathBuf};

/// Elements of all arguments of a function that is run, at most.
const SMALL: i64 = 2048;

/// The prim_funcs of a text that rx reads, guarded as for a compiled target.
fn prim_funcs(text: &str, kind: FileKind) -> Vec<PrimFunc> {
    let document = Document::new(text, kind);
    let mut context = FileContext::default();
    for item in document.items() {
        match item.kind {
            ItemKind::Function(_) => context.items.extend(item.name),
            ItemKind::Foreign | ItemKind::Metadata => {}
            _ => item.segments.iter().for_each(|segment| context.read(segment)),
        }
    }
    let functions = document.items().iter().filter(|item| item.kind == ItemKind::Function(FunctionKind::Prim));
    let read = functions.filter_map(|item| tir::prim_func(&item.segments, &context, item.name?).ok());
    read.map(|func| rx_schedule::guards(&rx_schedule::simplify(&func)).0).collect()
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    let inside = paths.iter().flat_map(|path| match path.is_dir() {
        true => files(path, ending),
        false => path.extension().filter(|extension| *extension == ending).map(|_| path.clone()).into_iter().collect(),
    });
    inside.collect()
}

/// The prim_funcs of all files, each once.
fn corpus() -> Option<Vec<(String, PrimFunc)>> {
    let Some(models) = std::env::var_os("RX_MODELS") else {
        println!("skipped: RX_MODELS is not set");
        return None;
    };
    let mut known = FxHashSet::default();
    let mut all = Vec::new();
    for (folder, ending, kind) in [("stages", "rx", FileKind::Rx), ("mlc", "py", FileKind::Python)] {
        for path in files(&Path::new(&models).join(folder), ending) {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let place = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let funcs = prim_funcs(&text, kind);
            all.extend(
                funcs.into_iter().filter(|func| known.insert(format!("{func:?}"))).map(|func| (place.clone(), func)),
            );
        }
    }
    assert!(!all.is_empty(), "no prim_func is read");
    Some(all)
}

#[test]
fn prim_funcs_of_models_are_printed_and_compile() {
    let Some(corpus) = corpus() else { return };
    let mut kernels = 0;
    let mut in_one_thread = Vec::new();
    for part in corpus.chunks(64) {
        let funcs: Vec<&PrimFunc> = part.iter().map(|(_, func)| func).collect();
        let source = module(&funcs).unwrap_or_else(|error| panic!("{}: {error}", part[0].0));
        for (function, (place, _)) in source.functions.iter().zip(part) {
            kernels += function.kernels.len();
            let serial = function.kernels.iter().filter(|kernel| kernel.threads.is_none());
            in_one_thread.extend(serial.map(|kernel| format!("{place}: {}", kernel.name)));
        }
        if crate::nvrtc::is_found() {
            crate::nvrtc::compiles(&source.text);
        }
    }
    println!("{} prim_funcs, {kernels} kernels, {} of them in one thread:", corpus.len(), in_one_thread.len());
    in_one_thread.iter().for_each(|kernel| println!("  {kernel}"));
}

#[test]
fn small_prim_funcs_of_models_agree_with_the_interpreter() {
    let Some(corpus) = corpus() else { return };
    let cases: Vec<Case> = corpus.into_iter().filter_map(|(place, func)| small(&place, func)).collect();
    println!("{} small prim_funcs", cases.len());
    crate::simulated::agree(&cases);
}

/// A case of a function, where its arguments are small when every symbol is 3.
fn small(place: &str, func: PrimFunc) -> Option<Case> {
    let mut shapes = Vec::new();
    for buffer in func.buffer_params() {
        let extents = func.buffer(buffer).shape.iter().map(|extent| rx_tir::evaluate_index(extent, &|_| Some(3)));
        shapes.push(extents.collect::<Option<Vec<i64>>>()?);
    }
    let elements: i64 = shapes.iter().map(|shape| shape.iter().product::<i64>()).sum();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let name = format!("{place}: {}", func.name);
    let scalars: Vec<i64> = func.scalar_params().map(|_| 3).collect();
    (elements <= SMALL).then(|| Case::new(&name, func, &shapes).scalars(&scalars).within(2e-2))
}
