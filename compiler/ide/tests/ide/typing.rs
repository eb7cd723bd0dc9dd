//! Programs are typed from start to end. For every name of three or more letters, completions are requested after its
//! first two letters, with nothing of the program after them; the rank of the name in the list is counted.

use crate::fixture::Fixture;
use rx_db::FileKind;
use rx_ide::Completion;
use std::path::{Path, PathBuf};

/// The ranks of the wanted completions: first, among the first three, all.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    first: usize,
    three: usize,
    all: usize,
}

/// Words that are keywords of Python, which editors complete themselves.
const KEYWORDS: &[&str] = &["class", "def", "for", "else", "return", "while", "with", "True", "False", "None", "range"];

/// Returns the positions of the words to complete, in bytes: the parts of dotted names and quoted dtypes. Names where
/// they are defined, comments, and other strings are left out.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or(line);
        let mut at = 0;
        while let Some(from) = code[at..].find(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
            let from = at + from;
            let rest = &code[from..];
            let length =
                rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
            at = from + length;
            let word = &code[from..at];
            if length >= 3 && is_wanted(code, from, word) {
                found.push((start + from, word));
            }
        }
        start += line.len();
    }
    found
}

fn is_wanted(code: &str, from: usize, word: &str) -> bool {
    let (before, after) = (&code[..from], &code[from + word.len()..]);
    let quoted = before.matches('"').count() % 2 == 1;
    let is_dtype = quoted && before.ends_with('"') && rx_base::DType::parse(word).is_some();
    let begins = before.trim().is_empty();
    let is_list =
        before.trim().trim_end_matches(',').chars().all(|letter| letter.is_alphanumeric() || "_, ".contains(letter));
    let is_target =
        (begins || (is_list && before.trim_end().ends_with(','))) && !after.trim_start().starts_with(['.', '[', '(']);
    let is_param = (before.contains("def ") && after.starts_with(": ")) || before.ends_with("def ");
    let is_loop = before.trim_start().starts_with("for ") && !before.contains(" in ");
    let in_with = before.ends_with(" as ") || before.ends_with("class ");
    let is_number = before.ends_with(|letter: char| letter.is_ascii_digit());
    let is_definition = is_target || is_param || is_loop || in_with;
    (!quoted || is_dtype) && !is_definition && !is_number && !KEYWORDS.contains(&word)
}

/// Whether accepting the completion completes the word.
fn completes(completion: &Completion, word: &str) -> bool {
    let name = completion.insert.trim_start_matches(['"', '@']);
    let length = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    let inner = name.split_once('.').filter(|(head, _)| matches!(*head, "R" | "T" | "I")).map(|(_, rest)| rest);
    &name[..length] == word || inner.is_some_and(|inner| inner.starts_with(word))
}

/// Types a program and returns the ranks; describes the names that are not first.
fn typed(text: &str, kind: FileKind, origin: &str) -> (Counts, Vec<String>) {
    let (mut counts, mut late) = (Counts::default(), Vec::new());
    for (from, word) in words(text) {
        let fixture = Fixture::of_kind(&format!("{}$0", &text[..from + 2]), kind);
        let found = rx_ide::completions(&fixture.view(), fixture.cursor, true).items;
        let rank = found.iter().position(|completion| completes(completion, word));
        counts.all += 1;
        counts.first += usize::from(rank == Some(0));
        counts.three += usize::from(rank.is_some_and(|rank| rank < 3));
        if rank != Some(0) {
            let line = text[..from].lines().last().unwrap_or_default().trim_start();
            let labels: Vec<&str> = found.iter().take(4).map(|completion| completion.label.as_str()).collect();
            late.push(format!("{origin}: `{line}|{word}`: {rank:?} of {labels:?}"));
        }
    }
    (counts, late)
}

/// Returns the programs to type: the examples, and the programs of `tests/typing`.
fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs: Vec<PathBuf> = ["tests/typing", "../../examples"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder"))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rx"))
        .collect();
    programs.sort();
    programs
}

#[test]
fn wanted_names_are_first_after_two_letters() {
    let (mut sum, mut functions) = (Counts::default(), 0);
    for program in programs() {
        let text = std::fs::read_to_string(&program).expect("a text");
        let origin = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if text.lines().count() > 100 {
            continue;
        }
        functions += text.matches("def ").count();
        let (counts, late) = typed(&text, FileKind::Rx, &origin);
        late.iter().for_each(|line| println!("{line}"));
        println!("{origin}: {counts:?}");
        sum.first += counts.first;
        sum.three += counts.three;
        sum.all += counts.all;
    }
    let percent = |count: usize| 100.0 * count as f64 / sum.all as f64;
    println!("{functions} functions, {} names", sum.all);
    println!("first: {:.1} %, among three: {:.1} %", percent(sum.first), percent(sum.three));
    assert!(functions >= 30, "{functions} functions are typed");
    assert!(percent(sum.first) >= 75.0 && percent(sum.three) >= 90.0, "{sum:?}");
}
