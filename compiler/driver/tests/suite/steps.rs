//! Checks that the steps of the pass pipeline preserve values: the module after each step is checked, run, and compared
//! with the source.

use crate::operators::{cases, functions, module};
use rx_build::{Device, to_module};
use rx_db::{FileId, FileKind, Workspace};
use rx_driver::values::{File, Verdict, compare_functions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The stack size of threads for recursive interpreters and visitors, in bytes.
const STACK: usize = 256 << 20;

/// The counts of outcomes for the modules of steps.
#[derive(Default)]
struct Tally {
    /// The number of modules that compute the same values.
    same: usize,
    /// The reasons why functions were not compared, with their counts.
    not_run: BTreeMap<String, usize>,
    mistakes: Vec<String>,
}

impl Tally {
    /// Checks the modules of the steps of a text's function `entry`, for both devices.
    fn text(&mut self, id: &str, text: &str, entry: &str) {
        self.steps(id, text, entry, &Device::Cpu);
        self.steps(id, text, entry, &Device::Cuda(Default::default()));
    }

    /// Checks the module after each step of a text's function `entry`, for one device.
    fn steps(&mut self, id: &str, text: &str, entry: &str, device: &Device) {
        let mut workspace = Workspace::new();
        let file = workspace.add(text, FileKind::Rx);
        let module = workspace.first_module(file);
        if has_errors(&workspace, file).is_some() {
            return;
        }
        let Ok(source) = workspace.module(module) else { return };
        let mut last = String::new();
        let mut check = |step: &str, program: &rx_lower::Program| {
            let text = rx_transform::print(&to_module(program, &source));
            if text != last {
                let kind = if matches!(device, Device::Cpu) { "cpu" } else { "cuda" };
                self.compare(&format!("{id}, {kind}, {step}"), (&workspace, file), &text, entry);
                last = text;
            }
        };
        if rx_build::each_step(&workspace, module, entry.into(), device, &Some, &mut check).is_err() {
            *self.not_run.entry("it has no lowering".to_owned()).or_default() += 1;
        }
    }

    fn compare(&mut self, title: &str, (before, file): (&Workspace, FileId), text: &str, entry: &str) {
        let mut after = Workspace::new();
        let new = after.add(text, FileKind::Rx);
        let old = File { workspace: before, file };
        if let Some(error) = has_errors(&after, new) {
            // Loops may reveal errors in values that the call alone does not. They are accepted only for a function
            // that also fails when it is run.
            match compare_functions(old, old, None, 0).into_iter().find(|(name, _)| name.as_str() == entry) {
                Some((_, Verdict::NotRun(why))) => *self.not_run.entry(why).or_default() += 1,
                _ => self.mistakes.push(format!("{title}: {error}\n{text}")),
            }
            return;
        }
        for (name, verdict) in compare_functions(old, File { workspace: &after, file: new }, None, 0) {
            match verdict {
                _ if name.as_str() != entry => {}
                Verdict::Same(_) => self.same += 1,
                Verdict::NotRun(why) if why.starts_with("after the pass") => {
                    self.mistakes.push(format!("{title}: {why}\n{text}"));
                }
                Verdict::NotRun(why) => *self.not_run.entry(why).or_default() += 1,
                Verdict::Differs(how) => self.mistakes.push(format!("{title}: {how}\n{text}")),
            }
        }
    }

    /// # Panics
    ///
    /// Panics if a step changed the values of a program, or made a module with errors.
    fn finish(self, least: usize) {
        println!("{} modules of steps compute the same", self.same);
        self.not_run.iter().for_each(|(why, count)| println!("    {count} not run: {why}"));
        let shown: String = self.mistakes.iter().take(5).map(|mistake| format!("{mistake}\n")).collect();
        assert!(self.mistakes.is_empty(), "{} mistakes\n{shown}", self.mistakes.len());
        assert!(self.same >= least, "only {} were compared", self.same);
    }
}

fn has_errors(workspace: &Workspace, file: FileId) -> Option<String> {
    let found = workspace.unsuppressed_diagnostics(file).into_iter();
    let mut errors = found.filter(|found| found.severity == rx_base::Severity::Error);
    let error = errors.next()?;
    let text = workspace.document(file).text();
    let line = text.get(..error.primary.start as usize).map_or(0, |before| before.matches('\n').count());
    Some(format!("line {}: {}", line + 1, error.message))
}

/// Returns the rows of a file of conformance cases.
fn rows(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance").join(file);
    let text = std::fs::read_to_string(path).expect("the project's own cases");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn in_large_stack(check: impl FnOnce() + Send + 'static) {
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(check).expect("a thread");
    worker.join().expect("the worker ends");
}

/// Returns the public Relax functions of a text.
fn entries(text: &str) -> Vec<String> {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    let functions = workspace.functions(file).into_iter();
    let public = functions.filter(|row| row.kind == rx_db::FunctionKind::Relax && !row.private);
    public.map(|row| row.name.to_string()).collect()
}

/// Checks the steps of every `each`-th text of a file of conformance cases, of which at least `least` must be compared.
fn recorded(file: &'static str, field: &'static str, each: usize, least: usize) {
    in_large_stack(move || {
        let mut tally = Tally::default();
        for row in rows(file).iter().filter(|row| row["negative"] != true).step_by(each) {
            let text = row[field].as_str().unwrap_or_default();
            for entry in entries(text) {
                tally.text(row["id"].as_str().unwrap_or_default(), text, &entry);
            }
        }
        tally.finish(least);
    });
}

#[test]
fn step_of_some_modules_keeps_values() {
    recorded("modules.jsonl", "text", 5, 100);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn step_of_modules_keeps_values() {
    recorded("modules.jsonl", "text", 1, 500);
}

#[test]
fn step_of_some_operators_keeps_values() {
    recorded("op_inference.jsonl", "text_bare", 3, 160);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn step_of_operators_keeps_values() {
    recorded("op_inference.jsonl", "text_bare", 1, 500);
}

/// Checks the steps of every call of `tests/operators`, and of variants with every value that a schema suggests for an
/// attribute.
fn operators_for(device: Device) {
    in_large_stack(move || {
        let mut tally = Tally::default();
        for (operator, cases) in cases() {
            for function in functions(&operator, &cases) {
                let text = module(std::slice::from_ref(&function));
                for entry in entries(&text) {
                    tally.steps(&operator, &text, &entry, &device);
                }
            }
        }
        tally.finish(5000);
    });
}

#[test]
#[ignore = "sweep: .ci/full"]
fn step_of_every_attribute_value_keeps_values_on_cpu() {
    operators_for(Device::Cpu);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn step_of_every_attribute_value_keeps_values_as_cuda() {
    operators_for(Device::Cuda(Default::default()));
}
