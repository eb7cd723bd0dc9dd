//! Checks that incremental results equal results from scratch: after each edit, the programs and the printed kernels
//! are those of a new workspace; after the last edit, the texts between the steps too.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_base::Severity;
use rx_build::listing::{self, cuda_text, groups};
use rx_build::passes::Passes;
use rx_build::pipeline::Pipeline;
use rx_build::{Device, program};
use rx_db::{FileId, FileKind, FunctionKind, Workspace};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

/// Programs with branches, calls, prim_funcs, index checks, symbolic dims and attention.
const TEXTS: &[&str] = &[
    include_str!("../texts/net.rx"),
    include_str!("../texts/attention.rx"),
    include_str!("../../../../examples/convnet.rx"),
    include_str!("../../../../examples/transformer_block.rx"),
];

/// Rows of words that replace each other. Many replacements give a valid program.
const WORDS: &[&[&str]] = &[
    &["R.nn.relu", "R.sigmoid", "R.negative", "R.nn.gelu", "R.exp"],
    &["R.add(", "R.multiply(", "R.subtract(", "R.maximum("],
    &["axis=-1", "axis=0", "axis=1"],
    &["axis=[1]", "axis=[0]"],
    &["1.5", "2.5", "-0.0", "0.0", "0.125"],
    &["1e-05", "1e-06", "0.001"],
    &["T.float32(2)", "T.float32(3)"],
    &["float32", "float16"],
    &["keepdims=True", "keepdims=False"],
];

/// An edit. Numbers select its position, and the words of [`Edit::Word`].
#[derive(Clone, Debug)]
enum Edit {
    /// Replaces an occurrence of a word in a row of [`WORDS`] by a word of the row.
    Word(usize, usize, usize),
    /// Replaces a digit.
    Digit(usize, char),
    /// Inserts a comment line, which moves the statements after it.
    Comment(usize),
    /// Inserts an unused binding before another binding.
    Binding(usize),
    /// Deletes the line of a binding.
    Delete(usize),
    /// Reverts the last edit.
    Undo,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => (any::<usize>(), any::<usize>(), any::<usize>()).prop_map(|(row, at, to)| Edit::Word(row, at, to)),
        2 => (any::<usize>(), prop::sample::select(vec!['1', '2', '4', '8'])).prop_map(|(at, digit)| Edit::Digit(at, digit)),
        2 => any::<usize>().prop_map(Edit::Comment),
        2 => any::<usize>().prop_map(Edit::Binding),
        1 => any::<usize>().prop_map(Edit::Delete),
        3 => Just(Edit::Undo),
    ]
}

/// Returns the bytes that an edit replaces, and the new text. `None` for [`Edit::Undo`], or if the text has no such
/// position.
fn replacement(text: &str, edit: &Edit) -> Option<(Range<usize>, String)> {
    let nth = |places: Vec<Range<usize>>, at: usize| places.get(at % places.len().max(1)).cloned();
    let lines = || {
        let mut start = 0;
        let line = |line: &str| {
            start += line.len();
            start - line.len()..start
        };
        text.split_inclusive('\n').map(line).collect::<Vec<_>>()
    };
    let bindings = || lines().into_iter().filter(|line| text[line.clone()].contains(" = R.")).collect::<Vec<_>>();
    let indent = |line: &Range<usize>| {
        let line = &text[line.clone()];
        line[..line.len() - line.trim_start().len()].to_owned()
    };
    Some(match edit {
        Edit::Word(row, at, to) => {
            let words = WORDS[row % WORDS.len()];
            let places = words.iter().flat_map(|word| text.match_indices(word).map(|(at, word)| at..at + word.len()));
            (nth(places.collect(), *at)?, words[to % words.len()].to_owned())
        }
        Edit::Digit(at, digit) => {
            let places = text.match_indices(|letter: char| letter.is_ascii_digit()).map(|(at, _)| at..at + 1);
            (nth(places.collect(), *at)?, digit.to_string())
        }
        Edit::Comment(at) => {
            let line = nth(lines(), *at)?;
            (line.start..line.start, format!("{}# a comment\n", indent(&line)))
        }
        Edit::Binding(at) => {
            let line = nth(bindings(), *at)?;
            (line.start..line.start, format!("{}unused = R.const(1, \"int64\")\n", indent(&line)))
        }
        Edit::Delete(at) => (nth(bindings(), *at)?, String::new()),
        Edit::Undo => return None,
    })
}

/// Returns the programs and printed kernels of all functions of a file; if `with_passes`, also the texts between the
/// steps. If the file has errors, returns its diagnostics instead.
fn stages(workspace: &Workspace, file: FileId, with_passes: bool) -> String {
    let errors = workspace.unsuppressed_diagnostics(file);
    if errors.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return format!("{errors:?}");
    }
    let module = workspace.first_module(file);
    let cuda = rx_cuda::rules::Target::default();
    let mut text = String::new();
    for function in workspace.functions(file) {
        for device in [Device::Interp, Device::Cpu, Device::Cuda(cuda.clone())] {
            let _ = writeln!(text, "{} for {device:?}", function.name);
            let program = match program(workspace, module, function.name, &device) {
                Ok(program) => program,
                Err(why) => {
                    let _ = writeln!(text, "{why:?}");
                    continue;
                }
            };
            let _ = writeln!(text, "{:?}\n{:?}", program.procedures, program.constants);
            let loops = listing::loops(workspace, module, &program);
            let _ = writeln!(text, "{}\n{:?}", loops.text, loops.parts);
            let listed = listing::cuda(workspace, module, &program, &cuda);
            let _ = writeln!(text, "{}\n{:?}", listed.text, listed.parts);
            let scheduled = cuda_text(workspace, &groups(&program), &cuda);
            let _ = writeln!(text, "{:?}\n{:?}", scheduled.kernels, scheduled.choices);
        }
        if with_passes && function.kind == FunctionKind::Relax {
            let mut pipeline = Pipeline::new(workspace, module, Arc::default()).expect("a module without errors");
            let mut passes = Passes::new(workspace, module, &pipeline);
            passes.lower(&mut pipeline, function.name, &Device::Cuda(cuda.clone()));
            let _ = writeln!(text, "{}\n{:?}\n{:?}", passes.listing.text, passes.listing.parts, passes.stages);
        }
    }
    text
}

fn seed() -> RngSeed {
    let wanted = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok());
    RngSeed::Fixed(wanted.unwrap_or(20))
}

proptest! {
    // The same edits on every run. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` select others.
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24),
        max_shrink_iters: 60,
        failure_persistence: None,
        rng_seed: seed(),
        ..ProptestConfig::default()
    })]

    #[test]
    fn edits_give_the_stages_of_a_fresh_workspace(which in 0..TEXTS.len(), edits in prop::collection::vec(edit(), 1..8)) {
        let mut text = TEXTS[which].to_owned();
        let mut workspace = Workspace::new();
        let file = workspace.add(&text, FileKind::Rx);
        stages(&workspace, file, false);
        let mut history: Vec<String> = Vec::new();
        for (number, edit) in edits.iter().enumerate() {
            let (range, new) = match (edit, replacement(&text, edit)) {
                (Edit::Undo, _) => match history.pop() {
                    Some(before) => (0..text.len(), before),
                    None => continue,
                },
                (_, Some(change)) => {
                    history.push(text.clone());
                    change
                }
                (_, None) => continue,
            };
            workspace.edit(file, range.clone(), &new);
            text.replace_range(range, &new);
            let with_passes = number + 1 == edits.len();
            let made = stages(&workspace, file, with_passes);
            let mut fresh = Workspace::new();
            let scratch = fresh.add(&text, FileKind::Rx);
            let expected = stages(&fresh, scratch, with_passes);
            prop_assert!(made == expected, "stages of:\n{text}\n{}", first_difference(&made, &expected));
        }
    }
}

/// Returns the lines around the first one that differs, or the first lines if one text begins with the other.
fn first_difference(made: &str, expected: &str) -> String {
    let at = made.lines().zip(expected.lines()).position(|(made, expected)| made != expected).unwrap_or(0);
    let around = |text: &str| text.lines().skip(at.saturating_sub(3)).take(6).collect::<Vec<_>>().join("\n");
    format!("incremental:\n{}\nfrom scratch:\n{}", around(made), around(expected))
}
