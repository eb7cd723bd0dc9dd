//! Reads the prim_funcs of programs in the folders RX_MODELS and RX_CASES.

use rx_base::{Code, Diagnostic};
use rx_context::FileContext;
use rx_prim_func::reader::prim_func;
use rx_syntax::Document;
use rx_syntax::document::{FileKind, FunctionKind, Item, ItemKind};
use rx_tir::PrimFunc;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Mistakes = Vec<Diagnostic<rx_context::ItemPlace>>;

/// Reads every prim_func of a text.
pub(super) fn read_all(text: &str, kind: FileKind) -> Vec<Result<PrimFunc, Mistakes>> {
    read_with_names(text, kind).into_iter().map(|(func, _)| func).collect()
}

/// Reads every prim_func of a text, each with the diagnostics of the checks of names.
fn read_with_names(text: &str, kind: FileKind) -> Vec<(Result<PrimFunc, Mistakes>, Mistakes)> {
    let document = Document::new(text, kind);
    let mut context = FileContext::default();
    for item in document.items() {
        match item.kind {
            ItemKind::Function(FunctionKind::Macro) => {
                let known = std::sync::Arc::new(rx_context::macros::of_item(&item.segments));
                context.macros.extend(item.name.map(|name| (name, known)));
            }
            ItemKind::Function(_) => context.items.extend(item.name),
            ItemKind::Foreign | ItemKind::Metadata => {}
            _ => item.segments.iter().for_each(|segment| context.read(segment)),
        }
    }
    let functions = document.items().iter().filter(|item| item.kind == ItemKind::Function(FunctionKind::Prim));
    let read = |item: &Item| {
        let unbound = rx_prim_func::names::unbound_names(&item.segments, &context);
        Some((prim_func(&item.segments, &context, item.name?), unbound))
    };
    functions.filter_map(read).collect()
}

/// The number of functions read from a corpus, the reasons why others are unsupported, and the mistakes found.
#[derive(Default)]
struct Tally {
    read: usize,
    unsupported: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, place: &str, text: &str, kind: FileKind) {
        for (outcome, unbound) in read_with_names(text, kind) {
            match outcome {
                Ok(func) => {
                    self.read += 1;
                    match unbound.is_empty() {
                        true => super::round_trip(place, &func),
                        false => super::reads_back(place, &func),
                    }
                    // The dtypes of the result must be consistent, since later stages rely on them.
                    if let Err(mistake) = rx_interp::Program::new(&func) {
                        self.wrong.push(format!("{place}: {}: {mistake}", func.name));
                    }
                }
                Err(mistakes) if mistakes[0].code == Code::NoLowering => {
                    *self.unsupported.entry(mistakes[0].message.clone()).or_default() += 1;
                }
                Err(mistakes) => self.wrong.push(format!("{place}: {:?} {}", mistakes[0].code, mistakes[0].message)),
            }
        }
    }

    fn print(&self, corpus: &str) {
        let unsupported: usize = self.unsupported.values().sum();
        println!("{corpus}: {} read, {unsupported} unsupported, {} wrong", self.read, self.wrong.len());
        for (message, count) in &self.unsupported {
            println!("  {count:5} {message}");
        }
        for wrong in &self.wrong {
            println!("  wrong: {wrong}");
        }
    }
}

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, endings, found);
        } else if endings.iter().any(|ending| path.extension().is_some_and(|extension| extension == *ending)) {
            found.push(path);
        }
    }
}

fn tally(folder: &Path, kind: FileKind, ending: &str) -> Tally {
    let mut found = Vec::new();
    files(folder, &[ending], &mut found);
    let mut tally = Tally::default();
    for path in found {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        tally.add(&path.display().to_string(), &text, kind);
    }
    tally
}

#[test]
fn every_prim_func_of_the_stages_is_read() {
    let Some(models) = std::env::var_os("RX_MODELS") else {
        println!("skipped: RX_MODELS is not set");
        return;
    };
    let stages = tally(&Path::new(&models).join("stages"), FileKind::Rx, "rx");
    stages.print("stages");
    assert!(stages.read > 0 && stages.wrong.is_empty() && stages.unsupported.is_empty());
    let mlc = tally(&Path::new(&models).join("mlc"), FileKind::Python, "py");
    mlc.print("mlc");
    assert!(mlc.wrong.is_empty());
}

#[test]
fn prim_funcs_of_the_cases_are_read_or_refused() {
    let Some(cases) = std::env::var_os("RX_CASES") else {
        println!("skipped: RX_CASES is not set");
        return;
    };
    let folder = Path::new(&cases).join("cases");
    for file in ["tir_modules", "modules", "modules_noroundtrip", "passes"] {
        let mut tally = Tally::default();
        let path = folder.join(format!("{file}.jsonl"));
        let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in lines.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error}"));
            for field in ["text", "text_pep695", "before", "expected"] {
                let Some(text) = row.get(field).and_then(|text| text.as_str()) else { continue };
                tally.add(&format!("{file} {}", row["id"]), text, FileKind::Rx);
            }
        }
        tally.print(file);
        assert!(tally.read > 0, "no prim_func of {file} was read");
    }
}
