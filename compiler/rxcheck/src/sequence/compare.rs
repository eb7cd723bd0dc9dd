//! A phase, and what differs between two.

use crate::check::{Options, reported, workspace};
use crate::discover::Input;
use rx_base::{Code, Diagnostic, Severity, Span};
use rx_db::{Document, FileId, FileKind, Workspace};
use rx_syntax::Segment;
use rx_syntax::document::ItemKind;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A dump, checked.
pub struct Phase {
    /// The path as people see it.
    pub shown: String,
    /// Its text.
    pub text: String,
    kind: FileKind,
    workspace: Workspace,
    file: FileId,
    /// Functions and how each is declared.
    pub declared: BTreeMap<&'static str, String>,
    /// Functions and their text, printed in one spelling: what differs in it differs in meaning.
    pub printed: HashMap<&'static str, String>,
    /// Its errors, in order.
    pub errors: Vec<Found>,
}

/// An error and what it belongs to.
#[derive(Clone, Debug)]
pub struct Found {
    /// The error.
    pub diagnostic: Diagnostic<Span>,
    /// The function it is in.
    pub function: Option<&'static str>,
    /// The variable its statement binds.
    pub binding: Option<&'static str>,
}

/// What one phase changes.
#[derive(Debug, Default)]
pub struct Step {
    /// Counted from 1.
    pub number: usize,
    /// Functions that were not there before; none of the first phase.
    pub appeared: Vec<&'static str>,
    /// Functions that are gone.
    pub vanished: Vec<&'static str>,
    /// Functions whose body or signature is another, cosmetics apart.
    pub changed: Vec<&'static str>,
    /// Functions declared otherwise, with both declarations.
    pub signatures: Vec<(&'static str, String, String)>,
    /// Errors that were not there before.
    pub new_errors: Vec<Found>,
    /// Errors that were.
    pub old_errors: usize,
}

impl Phase {
    /// Checks a dump, as rx.toml and the command line want it.
    pub fn new(input: &Input, text: String, options: &Options) -> Phase {
        let kind = input.kind;
        let (workspace, file) = workspace(&text, input, options);
        let declared = workspace.declarations(file).into_iter().map(|it| (it.name.as_str(), it.text)).collect();
        let printed = printed(workspace.document(file), kind);
        let errors = reported(&workspace, file, input, options).into_iter().filter(|it| it.severity == Severity::Error);
        let errors = errors
            .map(|diagnostic| {
                let (function, binding) = workspace.owner(file, diagnostic.primary.start as usize);
                let (function, binding) = (function.map(|name| name.as_str()), binding.map(|name| name.as_str()));
                Found { diagnostic, function, binding }
            })
            .collect();
        Phase { shown: input.shown.clone(), text, kind, workspace, file, declared, printed, errors }
    }

    /// Whether there is a part that rx reads.
    pub fn has_relax(&self) -> bool {
        let relax = |kind| !matches!(kind, ItemKind::Foreign | ItemKind::Prelude);
        self.kind != FileKind::Python || self.workspace.document(self.file).items().iter().any(|it| relax(it.kind))
    }

    /// Where a function is named.
    pub fn function_span(&self, function: &str) -> Option<Span> {
        let rows = self.workspace.functions(self.file);
        rows.iter().rev().find(|row| row.name == function).map(|row| row.span)
    }
}

/// The functions of a document in the printer's spelling.
fn printed(document: &Document, kind: FileKind) -> HashMap<&'static str, String> {
    let text = rx_syntax::printer::print(document, rx_syntax::dialect::Dialect::Tvm027);
    let document = Document::new(&text, kind);
    let mut functions = HashMap::new();
    for item in document.items() {
        if let (ItemKind::Function(_), Some(name)) = (item.kind, item.name) {
            let text: String = item.segments.iter().map(|segment| without_comments(segment)).collect();
            functions.insert(name.as_str(), text);
        }
    }
    functions
}

/// A segment's text without comments, and without the lines they leave empty.
fn without_comments(segment: &Segment) -> String {
    let text = segment.text();
    let mut code = String::with_capacity(text.len());
    let mut from = 0;
    for comment in segment.comments() {
        code.push_str(text.get(from..comment.start as usize).unwrap_or_default());
        from = comment.end as usize;
    }
    code.push_str(text.get(from..).unwrap_or_default());
    code.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

impl Step {
    /// What `now` changes of `before`.
    pub fn between(before: Option<&Phase>, now: &Phase, number: usize) -> Step {
        let (new_errors, old_errors) = new_errors(before.map(|phase| phase.errors.as_slice()).unwrap_or_default(), now);
        let mut step = Step { number, new_errors, old_errors, ..Step::default() };
        let Some(before) = before else { return step };
        let names = |phase: &Phase| phase.declared.keys().copied().collect::<BTreeSet<_>>();
        let (old, new) = (names(before), names(now));
        step.appeared = new.difference(&old).copied().collect();
        step.vanished = old.difference(&new).copied().collect();
        for name in new.intersection(&old) {
            if let (Some(was), Some(is)) = (before.declared.get(name), now.declared.get(name))
                && was != is
            {
                step.signatures.push((name, was.clone(), is.clone()));
            }
            if before.printed.get(name) != now.printed.get(name) {
                step.changed.push(name);
            }
        }
        step
    }
}

/// What stays of an error when lines move.
type Key = (Option<&'static str>, Option<&'static str>, Code);

/// The errors of `now` that `before` had not, and the number of the others. An error is the same when function, binding and
/// code are; and when a pass renamed what it is in, when code and message are.
fn new_errors(before: &[Found], now: &Phase) -> (Vec<Found>, usize) {
    let key = |found: &Found| -> Key { (found.function, found.binding, found.diagnostic.code) };
    let mut same: HashMap<Key, Vec<&Found>> = HashMap::new();
    before.iter().for_each(|found| same.entry(key(found)).or_default().push(found));
    let unmatched: Vec<&Found> =
        now.errors.iter().filter(|found| same.get_mut(&key(found)).and_then(Vec::pop).is_none()).collect();
    let mut moved: HashMap<(Code, &str), usize> = HashMap::new();
    for found in same.values().flatten() {
        *moved.entry((found.diagnostic.code, &found.diagnostic.message)).or_default() += 1;
    }
    let mut new = Vec::new();
    for found in unmatched {
        match moved.get_mut(&(found.diagnostic.code, found.diagnostic.message.as_str())) {
            Some(left) if *left > 0 => *left -= 1,
            _ => new.push(found.clone()),
        }
    }
    let old = now.errors.len() - new.len();
    (new, old)
}

/// `phase2` before `phase10`: runs of digits are compared as numbers.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(first), Some(second)) = (left.chars().next(), right.chars().next()) {
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (one, rest_one) = digits(left);
            let (two, rest_two) = digits(right);
            let order = one.len().cmp(&two.len()).then_with(|| one.cmp(two));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (rest_one, rest_two);
            continue;
        }
        if first != second {
            return first.cmp(&second);
        }
        left = left.get(first.len_utf8()..).unwrap_or_default();
        right = right.get(second.len_utf8()..).unwrap_or_default();
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// The digits a text begins with, leading zeros left out, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    (digits.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["debug-phase10.py", "debug-phase2.py", "export.py", "debug-phase1.py", "debug-phase02b.py"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["debug-phase1.py", "debug-phase2.py", "debug-phase02b.py", "debug-phase10.py", "export.py"]);
    }
}
