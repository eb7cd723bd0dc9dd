//! Checks that passes preserve values: every public function of the conformance cases is run before and after.

use rx_db::{FileId, FileKind, Workspace};
use rx_driver::values::{File, Verdict, compare_functions};
use rx_transform::Bound;
use rx_transform::pass::{ALL, Arguments, Step, parse};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The stack size of threads for recursive interpreters and visitors, in bytes.
const STACK: usize = 256 << 20;

fn read(text: &str) -> Option<(Workspace, FileId)> {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    let has_errors = workspace.diagnostics(file).iter().any(|found| found.severity == rx_base::Severity::Error);
    (!has_errors).then_some((workspace, file))
}

/// Runs the steps on a text and compares its public functions. Returns `None` where a pass cannot be run.
fn verdicts(text: &str, steps: &[Step]) -> Option<Vec<(String, Verdict)>> {
    let checked = Checked::read(text)?;
    checked.verdicts(&checked.made(steps)?, steps)
}

/// A text without errors, with its module.
struct Checked {
    workspace: Workspace,
    file: FileId,
    module: rx_transform::Module,
}

impl Checked {
    /// Reads a text. Returns `None` if it has errors.
    fn read(text: &str) -> Option<Checked> {
        let (workspace, file) = read(text)?;
        let module = workspace.module(workspace.first_module(file)).ok()?;
        Some(Checked { workspace, file, module })
    }

    /// Runs steps and prints the result. Returns `None` if one fails.
    fn made(&self, steps: &[Step]) -> Option<String> {
        let run = |module, step: &Step| {
            (step.pass.run)(module, &step.arguments.clone().with_evaluator(rx_driver::evaluate)).ok()
        };
        steps.iter().try_fold(self.module.clone(), run).map(|module| rx_transform::print(&module))
    }

    /// Compares the public functions with those of the text `after`, which the steps made.
    fn verdicts(&self, after: &str, steps: &[Step]) -> Option<Vec<(String, Verdict)>> {
        // There is at most one step that binds parameters.
        let bound = steps.iter().find_map(|step| rx_transform::bound(&self.module, step));
        compared((&self.workspace, self.file), after, bound.as_ref())
    }
}

/// Compares the public functions of a file with those of another text. Returns `None` if that text has errors.
fn compared(
    (before, file): (&Workspace, FileId),
    after: &str,
    bound: Option<&Bound>,
) -> Option<Vec<(String, Verdict)>> {
    let (after, new) = read(after)?;
    let old = File { workspace: before, file };
    let found = compare_functions(old, File { workspace: &after, file: new }, bound, 0);
    Some(found.into_iter().map(|(name, verdict)| (name.to_string(), verdict)).collect())
}

#[derive(Default)]
struct Tally {
    same: usize,
    differ: usize,
    not_run: BTreeMap<String, usize>,
    worst: f64,
}

impl Tally {
    /// Counts a verdict. Returns the difference if it is one.
    fn count(&mut self, verdict: Verdict) -> Option<String> {
        match verdict {
            Verdict::Same(error) => {
                self.same += 1;
                self.worst = self.worst.max(error);
                None
            }
            Verdict::NotRun(why) => {
                *self.not_run.entry(why).or_default() += 1;
                None
            }
            Verdict::Differs(title) => {
                self.differ += 1;
                Some(title)
            }
        }
    }

    fn print(&self, title: &str) {
        let Tally { same, differ, not_run, worst } = self;
        println!("{title:<28}{same:>6}{differ:>8}{:>9}{worst:>12.1e}", not_run.values().sum::<usize>());
        not_run.iter().for_each(|(why, count)| println!("    {count} not run: {why}"));
    }
}

/// Parses the steps of a row. Returns `None` where rx lacks a pass, or an argument cannot be read from JSON.
fn steps(row: &Value) -> Option<Vec<Step>> {
    let steps = row["passes"].as_array()?.iter().map(|given| {
        let name = given["ctor"].as_str().or(given["name"].as_str())?;
        let pass = ALL.iter().find(|pass| name.rsplit('.').next() == Some(pass.name))?;
        let named = given["kwargs"].as_object().cloned().unwrap_or_default();
        let given = given["args"].as_array().cloned().unwrap_or_default();
        Some(Step { pass, arguments: Arguments::bind_named(pass, given, named).ok()? })
    });
    steps.collect()
}

/// Adapts a text to the mode of a pass. `DecomposeOpsForInference` declares the whole program to be for inference,
/// whatever its calls declare, so its result is compared with a text that does so, too. `DecomposeOpsForTraining`
/// likewise.
fn in_its_mode(text: &str, pass: &str) -> String {
    match pass {
        "DecomposeOpsForInference" => text.replace("training=True", "training=False"),
        "DecomposeOpsForTraining" => text.replace("training=False", "training=True"),
        _ => text.to_owned(),
    }
}

#[test]
fn passes_of_recorded_cases_keep_results() {
    let folder = std::env::var_os("RX_CASES").map(PathBuf::from);
    let Some(text) = folder.and_then(|folder| std::fs::read_to_string(folder.join("cases/passes.jsonl")).ok()) else {
        println!("skipped: RX_CASES names no folder with cases/passes.jsonl");
        return;
    };
    let rows: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || all_rows(&rows)).expect("a thread");
    let (tallies, mistakes) = worker.join().expect("every row is run");
    println!("{:<28}{:>6}{:>8}{:>9}{:>12}", "pass", "same", "differ", "not run", "worst");
    tallies.iter().for_each(|(pass, tally)| tally.print(pass));
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

fn all_rows(rows: &[Value]) -> (BTreeMap<String, Tally>, Vec<String>) {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for row in rows {
        let (Some(pass), Some(before), Some(steps)) = (row["pass"].as_str(), row["before"].as_str(), steps(row)) else {
            continue;
        };
        let Some(found) = verdicts(&in_its_mode(before, pass), &steps) else { continue };
        let tally = tallies.entry(pass.to_owned()).or_default();
        for (function, verdict) in found {
            if let Some(title) = tally.count(verdict) {
                mistakes.push(format!("{pass}, {}, `{function}`: {title}", row["test"]));
            }
        }
    }
    (tallies, mistakes)
}

/// Passes that make kernels. TVM's results for the same texts are run as well.
const THREE_WAYS: &[&str] = &["LegalizeOps", "FuseOps", "FuseTIR"];

/// Rows in which TVM's result computes other values than the original, with the reason.
const TVM_DIFFERS: &[(&str, &str)] = &[];

#[test]
fn kernels_of_passes_and_of_tvm_compute_the_values_of_the_text() {
    let folder = std::env::var_os("RX_CASES").map(PathBuf::from);
    let Some(text) = folder.and_then(|folder| std::fs::read_to_string(folder.join("cases/passes.jsonl")).ok()) else {
        println!("skipped: RX_CASES names no folder with cases/passes.jsonl");
        return;
    };
    let rows: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || three_ways(&rows)).expect("a thread");
    let (tallies, mistakes) = worker.join().expect("every row is run");
    println!("{:<28}{:>6}{:>8}{:>9}{:>12}", "before and", "same", "differ", "not run", "worst");
    tallies.iter().for_each(|(who, tally)| tally.print(who));
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

/// Compares the text before each row with rx's result and with TVM's. Returns the counts, and the differences with
/// their rows.
fn three_ways(rows: &[Value]) -> (BTreeMap<String, Tally>, Vec<String>) {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for row in rows {
        let (Some(pass), Some(text), Some(test)) = (row["pass"].as_str(), row["before"].as_str(), row["test"].as_str())
        else {
            continue;
        };
        let Some((before, file)) = read(text).filter(|_| THREE_WAYS.contains(&pass)) else { continue };
        let expected = if row["assert_passed"].as_bool() == Some(false) { "actual" } else { "expected" };
        let tvm = row[expected].as_str().and_then(|after| compared((&before, file), after, None));
        let own = match steps(row) {
            Some(steps) => verdicts(text, &steps).ok_or("the pass cannot be run, or its output has errors"),
            None => Err("rx lacks a pass, or an argument is a Python function"),
        };
        for (who, found) in [("TVM", tvm.ok_or("what TVM makes has errors")), ("rx", own)] {
            let tally = tallies.entry(format!("{pass} of {who}")).or_default();
            let all = found.unwrap_or_else(|why| vec![("all".to_owned(), Verdict::NotRun(why.to_owned()))]);
            for (function, verdict) in all {
                let verdict = match verdict {
                    // TVM's result was recorded without its constants.
                    Verdict::Differs(why) if who == "TVM" && why.contains("has no metadata section") => {
                        Verdict::NotRun(format!("{test}, `{function}`: {why}"))
                    }
                    Verdict::NotRun(why) => Verdict::NotRun(format!("{test}, `{function}`: {why}")),
                    other => other,
                };
                let is_argued = who == "TVM" && TVM_DIFFERS.iter().any(|(argued, _)| *argued == test);
                if let Some(title) = tally.count(verdict).filter(|_| !is_argued) {
                    mistakes.push(format!("{pass} of {who}, {test}, `{function}`: {title}"));
                }
            }
        }
    }
    (tallies, mistakes)
}

/// `cargo test -p rx-driver --test suite passes:: -- --ignored --nocapture` prints the table; `RX_PASS` selects one
/// pass.
#[test]
#[ignore = "sweep: .ci/full"]
fn passes_of_generated_modules_keep_results() {
    let folder = std::env::var_os("RX_CASES").map(PathBuf::from);
    let Some(text) = folder.and_then(|folder| std::fs::read_to_string(folder.join("cases/modules.jsonl")).ok()) else {
        println!("skipped: RX_CASES names no folder with cases/modules.jsonl");
        return;
    };
    let texts: Vec<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["text"].as_str().map(str::to_owned))
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let results = std::thread::scope(|scope| {
        let run = |first: usize| {
            let texts = texts.iter().skip(first).step_by(threads);
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || all_modules(texts)).expect("a thread")
        };
        let workers: Vec<_> = (0..threads).map(run).collect();
        workers.into_iter().map(|worker| worker.join().expect("every module is run")).collect::<Vec<_>>()
    });
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (part, found) in results {
        mistakes.extend(found);
        for (pass, (same, not_run)) in part {
            let count = counts.entry(pass).or_default();
            *count = (count.0 + same, count.1 + not_run);
        }
    }
    for (pass, (same, not_run)) in &counts {
        println!("{pass:<28}{same:>6} the same, {not_run} not run");
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

/// Returns for each pass the number of functions that agree and that are not run, in modules that it changes; and the
/// differences.
fn all_modules<'t>(texts: impl Iterator<Item = &'t String>) -> (BTreeMap<&'static str, (usize, usize)>, Vec<String>) {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut mistakes = Vec::new();
    let general = ALL.iter().filter_map(|pass| Some(Step { pass, arguments: Arguments::bind(pass, Vec::new()).ok()? }));
    let layouts = parse(r#"ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})"#).expect("a pass");
    let split = parse(r#"ConvertLayout({"relax.nn.conv2d": ["NCHW4c", "OIHW4o"]})"#).expect("a pass");
    // A run of all passes takes minutes.
    let wanted = std::env::var("RX_PASS").ok();
    let is_wanted = |step: &Step| wanted.as_ref().is_none_or(|wanted| wanted == step.pass.name);
    let general: Vec<Step> = general.chain(layouts).chain(split).filter(is_wanted).collect();
    for text in texts {
        let mut known: BTreeMap<String, Option<(Checked, String)>> = BTreeMap::new();
        for step in &general {
            let checked = known.entry(in_its_mode(text, step.pass.name)).or_insert_with_key(|text| {
                let checked = Checked::read(text)?;
                let printed = checked.made(&[])?;
                Some((checked, printed))
            });
            let Some((checked, printed)) = checked else { continue };
            let step = std::slice::from_ref(step);
            let Some(after) = checked.made(step).filter(|after| after != printed) else { continue };
            let pass = step[0].pass.name;
            let count = counts.entry(pass).or_default();
            for (function, verdict) in checked.verdicts(&after, step).unwrap_or_default() {
                match verdict {
                    Verdict::Same(_) => count.0 += 1,
                    Verdict::NotRun(_) => count.1 += 1,
                    Verdict::Differs(title) => mistakes.push(format!("{pass}, `{function}`: {title}\n{printed}")),
                }
            }
        }
    }
    (counts, mistakes)
}

const PROGRAM: &str = "\
n = TypeVar(\"n\")
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 3), dtype=\"float32\"), w: R.Tensor((3, 2), dtype=\"float32\"), v: R.Tensor((3, 5), dtype=\"float32\")) -> R.Tensor((n, 7), dtype=\"float32\"):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.matmul(x, v)
            c = R.concat((a, b), axis=1)
            R.output(c)
        return c

    @R.function
    def opaque(x: R.Object) -> R.Object:
        return x
";

#[test]
fn functions_that_can_be_run_are_compared_and_others_named_with_the_reason() {
    let found = verdicts(PROGRAM, &parse("CombineParallelMatmul").expect("a pass")).expect("a module");
    assert!(
        matches!(found.as_slice(), [(main, Verdict::Same(error)), ..] if main == "main" && *error < 1e-5),
        "{found:?}"
    );
    let why = "the parameter `x` is R.Any: values of this type cannot be drawn";
    assert_eq!(found.get(1), Some(&("opaque".to_owned(), Verdict::NotRun(why.to_owned()))));
}

#[test]
fn a_function_that_gives_something_else_is_found() {
    let (before, file) = read(PROGRAM).expect("a program");
    let (after, new) = read(&PROGRAM.replace("(a, b), axis=1", "(b, a), axis=1")).expect("a program");
    let old = File { workspace: &before, file };
    let found = compare_functions(old, File { workspace: &after, file: new }, None, 0);
    let title = found.first().map(|(_, verdict)| format!("{verdict:?}")).unwrap_or_default();
    assert!(title.starts_with("Differs(\"output 0: ") && title.contains("the worst at ["), "{title}");
}

#[test]
fn function_that_does_not_end_is_not_compared() {
    let endless = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
        c = R.greater_equal(R.max(R.multiply(x, x)), R.const(0, \"float32\"))
        if c:
            y = R.add(x, R.const(0, \"float32\"))
            out: R.Tensor((2,), dtype=\"float32\") = Module.main(y)
        else:
            out: R.Tensor((2,), dtype=\"float32\") = x
        return out
";
    let found = verdicts(endless, &parse("LegalizeOps").expect("a pass")).expect("a module");
    let Verdict::NotRun(why) = &found[0].1 else { panic!("{found:?}") };
    assert!(why.contains("iterations"), "{why}");
}
