//! Application of fixes to a text. The edits of a fix are applied together or not at all, and a fix that causes a new
//! error is undone.
//!
//! These are pure functions of a text and its diagnostics. The caller provides the function that checks a text.

use crate::{Code, Diagnostic, Fix, Severity, Span};
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximal number of iterations of fixing and checking. A fix may allow another one, but must not do so forever.
const MOST_ITERATIONS: usize = 100;

/// The maximal number of checks of one text, including those that find out which of several fixes causes a new error.
const MOST_CHECKS: usize = 200;

/// A replacement of a byte range of a text. An empty span inserts.
pub type Edit = (Span, String);

/// The result of fixing a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixed {
    /// The text with the fixes applied.
    pub text: String,
    /// The remaining diagnostics.
    pub diagnostics: Vec<Diagnostic<Span>>,
    /// The applied fixes, in the order of application.
    pub applied: Vec<Applied>,
    /// Fixes that were tried and undone.
    pub taken_back: Vec<TakenBack>,
}

/// A fix that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The code of the diagnostic that it fixed.
    pub code: Code,
    /// The title of the fix.
    pub title: String,
}

/// A fix that was undone, because it would cause a new error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// The code of the diagnostic that it was to fix.
    pub code: Code,
    /// The title of the fix.
    pub title: String,
    /// The line of the diagnostic, from 1, when the fix was tried.
    pub line: usize,
    /// The message of the first error that it caused.
    pub because: String,
}

/// Returns the edits of a fix in text order, with the line breaks of `text`. `None` if they overlap or are outside
/// `text`.
pub fn edits(text: &str, fix: &Fix<Span>) -> Option<Vec<Edit>> {
    let end = line_end(text);
    let mut edits: Vec<Edit> = fix.edits.iter().map(|(span, new)| (*span, new.replace('\n', end))).collect();
    edits.sort_by_key(|(span, _)| *span);
    let in_order = edits.windows(2).all(|pair| matches!(pair, [(a, _), (b, _)] if a.end <= b.start));
    (in_order && edits.iter().all(|(span, _)| text.get(span.range()).is_some())).then_some(edits)
}

/// Applies edits that are sorted and do not overlap.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let grown: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut changed = String::with_capacity(text.len() + grown);
    let mut at = 0;
    for (span, new) in edits {
        changed.push_str(text.get(at..span.range().start).unwrap_or_default());
        changed.push_str(new);
        at = span.range().end;
    }
    changed.push_str(text.get(at..).unwrap_or_default());
    changed
}

/// Returns the smallest range of `old` that differs, and its replacement in `new`; `None` if they are equal.
/// For example, `abc` and `axc` give `(1..2, "x")`.
pub fn difference<'n>(old: &str, new: &'n str) -> Option<(Range<usize>, &'n str)> {
    let front = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    if front == old.len() && front == new.len() {
        return None;
    }
    let front = new.floor_char_boundary(front).min(old.floor_char_boundary(front));
    let (old_rest, new_rest) = (old.get(front..)?, new.get(front..)?);
    let back = old_rest.bytes().rev().zip(new_rest.bytes().rev()).take_while(|(a, b)| a == b).count();
    let start = new_rest.ceil_char_boundary(new_rest.len() - back);
    let back = new_rest.len() - start;
    Some((front..old.len() - back, new_rest.get(..start)?))
}

/// Returns the line break that ends the text's first line; `\n` if there is none.
pub fn line_end(text: &str) -> &'static str {
    match text.find(['\n', '\r']).map(|at| text.get(at..).unwrap_or_default()) {
        Some(rest) if rest.starts_with("\r\n") => "\r\n",
        Some(rest) if rest.starts_with('\r') => "\r",
        _ => "\n",
    }
}

/// Returns the fix that "fix all" applies for a diagnostic: the first safe one; if there is none and `with_unsafe` is
/// set, the first one.
pub fn preferred<P>(diagnostic: &Diagnostic<P>, with_unsafe: bool) -> Option<&Fix<P>> {
    let safe = diagnostic.fixes.iter().find(|fix| fix.safe);
    safe.or_else(|| diagnostic.fixes.first().filter(|_| with_unsafe))
}

/// Counts the diagnostics that have fixes, but no safe one.
pub fn only_unsafe<P>(diagnostics: &[Diagnostic<P>]) -> usize {
    let unsafe_only = |it: &&Diagnostic<P>| !it.fixes.is_empty() && preferred(it, false).is_none();
    diagnostics.iter().filter(unsafe_only).count()
}

/// Applies the fixes of the diagnostics that `check` finds in `text` (only safe ones unless `with_unsafe`), and repeats
/// until nothing changes.
///
/// A fix is kept if it reduces the number of errors by the errors that it fixes, and no error code becomes more
/// frequent.
pub fn fix_all(text: &str, with_unsafe: bool, check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>) -> Fixed {
    let diagnostics = check(text);
    let mut run = Run {
        check,
        with_unsafe,
        checks: 1,
        fixed: Fixed { text: text.to_owned(), diagnostics, applied: Vec::new(), taken_back: Vec::new() },
        refused: Vec::new(),
    };
    for _ in 0..MOST_ITERATIONS {
        let chosen = run.choose();
        // A rejected fix may have prevented others, so an iteration without a change is not necessarily the last.
        let refused = run.refused.len();
        let changed = run.round(chosen);
        if (!changed && run.refused.len() == refused) || run.checks >= MOST_CHECKS {
            break;
        }
    }
    run.fixed
}

/// The maximal number of successive fixes of the errors that one fix reveals.
const MOST_CONSEQUENCES: usize = 32;

/// Fixes the new errors that a fix caused, and returns the result if all of them disappear. For example, a fix that
/// replaces an annotation by the inferred type may move the contradiction to the next annotation, and finally out of
/// the text. `before` contains the diagnostics before the fix, `errors_fixed` is the number of errors that it fixes, and
/// `after` contains the diagnostics of `text`, after it. Only safe fixes are used unless `with_unsafe`.
///
/// Returns the text, its diagnostics and the number of checks; `None` if new errors remain.
pub fn follow(
    before: &[Diagnostic<Span>],
    errors_fixed: usize,
    text: &str,
    after: &[Diagnostic<Span>],
    with_unsafe: bool,
    check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>,
) -> Option<(String, Vec<Diagnostic<Span>>, usize)> {
    let is_old = |it: &Diagnostic<Span>| before.iter().any(|old| (old.code, &old.message) == (it.code, &it.message));
    let (mut text, mut found) = (text.to_owned(), after.to_vec());
    for checks in 1..=MOST_CONSEQUENCES {
        let new = found.iter().filter(|it| it.severity == Severity::Error && !is_old(it));
        let fix = new.filter_map(|it| preferred(it, with_unsafe)).find_map(|fix| edits(&text, fix))?;
        text = apply(&text, &fix);
        found = check(&text);
        if is_better(before, &found, errors_fixed) {
            return Some((text, found, checks));
        }
    }
    None
}

/// A fix that does not overlap with the others chosen with it.
#[derive(Clone)]
struct Chosen {
    code: Code,
    severity: Severity,
    title: String,
    primary: Span,
    edits: Vec<Edit>,
    key: Key,
}

/// An identification of a fix that stays valid while the surrounding text changes: code, message and title.
type Key = (Code, String, String);

struct Run<'c> {
    check: &'c mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>,
    with_unsafe: bool,
    checks: usize,
    fixed: Fixed,
    refused: Vec<Key>,
}

/// A text that was tried, with its diagnostics.
struct Trial {
    chosen: Vec<Chosen>,
    text: String,
    diagnostics: Vec<Diagnostic<Span>>,
}

impl Run<'_> {
    /// Chooses fixes of the diagnostics, in order, except those that touch an edit that was chosen before.
    fn choose(&self) -> Vec<Chosen> {
        let text = &self.fixed.text;
        let mut taken: BTreeMap<u32, Span> = BTreeMap::new();
        // The chosen edits do not touch each other. So only the last two that start before the end of a span can reach
        // beyond its start.
        let is_free = |taken: &BTreeMap<u32, Span>, span: Span| {
            taken.range(..=span.end).rev().take(2).all(|(_, other)| !meet(span, *other))
        };
        let mut chosen = Vec::new();
        for diagnostic in &self.fixed.diagnostics {
            let wanted =
                |fix: &&Fix<Span>| fix.safe || (self.with_unsafe && diagnostic.fixes.iter().all(|fix| !fix.safe));
            let candidates = diagnostic.fixes.iter().filter(wanted).filter_map(|fix| {
                let key = (diagnostic.code, diagnostic.message.clone(), fix.title.clone());
                (!self.refused.contains(&key)).then_some((fix, key))
            });
            let fitting = candidates.into_iter().find_map(|(fix, key)| {
                let edits = edits(text, fix).filter(|edits| !edits.is_empty())?;
                edits.iter().all(|(span, _)| is_free(&taken, *span)).then_some((fix, key, edits))
            });
            if let Some((fix, key, edits)) = fitting {
                taken.extend(edits.iter().map(|(span, _)| (span.start, *span)));
                let (code, severity, title) = (diagnostic.code, diagnostic.severity, fix.title.clone());
                chosen.push(Chosen { code, severity, title, primary: diagnostic.primary, edits, key });
            }
        }
        chosen
    }

    /// Applies those of `chosen` that cause no new error; returns whether the text changed.
    fn round(&mut self, chosen: Vec<Chosen>) -> bool {
        let Some(kept) = self.kept(chosen).filter(|trial| trial.text != self.fixed.text) else { return false };
        self.fixed.text = kept.text;
        self.fixed.diagnostics = kept.diagnostics;
        let applied = kept.chosen.into_iter().map(|chosen| Applied { code: chosen.code, title: chosen.title });
        self.fixed.applied.extend(applied);
        true
    }

    /// Finds a subset of `chosen` that causes no new error, by bisection: if all together cause one, tries each half.
    fn kept(&mut self, mut chosen: Vec<Chosen>) -> Option<Trial> {
        if chosen.is_empty() || self.checks >= MOST_CHECKS {
            return None;
        }
        let trial = match self.trial(chosen) {
            Ok(trial) => return Some(trial),
            Err(trial) => trial,
        };
        chosen = trial.chosen;
        if let [only] = &chosen[..] {
            let errors_fixed = usize::from(only.severity == Severity::Error);
            let (before, after) = (&self.fixed.diagnostics, &trial.diagnostics);
            if let Some((text, diagnostics, checks)) =
                follow(before, errors_fixed, &trial.text, after, self.with_unsafe, self.check)
            {
                self.checks += checks;
                return Some(Trial { chosen, text, diagnostics });
            }
        }
        if let [only] = &chosen[..] {
            let because = new_error(&self.fixed.diagnostics, &trial.diagnostics);
            let because = because.map_or_else(|| "the mistake stays".to_owned(), |it| it.message.clone());
            self.refused.push(only.key.clone());
            let (code, title) = (only.code, only.title.clone());
            let line = line_number(&self.fixed.text, only.primary);
            self.fixed.taken_back.push(TakenBack { code, title, line, because });
            return None;
        }
        let second = chosen.split_off(chosen.len() / 2);
        match (self.kept(chosen), self.kept(second)) {
            (Some(first), Some(second)) => {
                let both = first.chosen.iter().chain(&second.chosen).cloned().collect();
                // Each half is good alone, but both together are not: the second is retried in the next iteration.
                Some(self.trial(both).unwrap_or(first))
            }
            (first, second) => first.or(second),
        }
    }

    /// Applies all of `chosen` and checks the text. Returns `Err` if the result is not better.
    fn trial(&mut self, chosen: Vec<Chosen>) -> Result<Trial, Trial> {
        let mut edits: Vec<Edit> = chosen.iter().flat_map(|chosen| chosen.edits.iter().cloned()).collect();
        edits.sort_by_key(|(span, _)| *span);
        let text = apply(&self.fixed.text, &edits);
        self.checks += 1;
        let diagnostics = (self.check)(&text);
        let errors_fixed = chosen.iter().filter(|chosen| chosen.severity == Severity::Error).count();
        let good = is_better(&self.fixed.diagnostics, &diagnostics, errors_fixed);
        let trial = Trial { chosen, text, diagnostics };
        if good { Ok(trial) } else { Err(trial) }
    }
}

/// Whether two edits depend on each other: they share bytes, or one inserts where the other begins or ends.
fn meet(a: Span, b: Span) -> bool {
    match a.is_empty() || b.is_empty() {
        true => a.start <= b.end && b.start <= a.end,
        false => a.start < b.end && b.start < a.end,
    }
}

/// Returns the number of the line in which a place begins, from 1.
fn line_number(text: &str, place: Span) -> usize {
    text.get(..place.range().start).unwrap_or(text).matches('\n').count() + 1
}

/// Counts the errors by code.
fn errors<P>(diagnostics: &[Diagnostic<P>]) -> BTreeMap<Code, usize> {
    let mut counts = BTreeMap::new();
    for diagnostic in diagnostics.iter().filter(|it| it.severity == Severity::Error) {
        *counts.entry(diagnostic.code).or_default() += 1;
    }
    counts
}

/// Whether at least `errors_fixed` errors disappeared between `before` and `after`, and no code became more frequent.
pub fn is_better<P>(before: &[Diagnostic<P>], after: &[Diagnostic<P>], errors_fixed: usize) -> bool {
    let (before, after) = (errors(before), errors(after));
    let sum = |counts: &BTreeMap<Code, usize>| counts.values().sum::<usize>();
    let no_more = after.iter().all(|(code, count)| before.get(code).is_some_and(|was| was >= count));
    no_more && sum(&after) + errors_fixed <= sum(&before)
}

/// Returns the first error whose code became more frequent.
pub fn new_error<'d, P>(before: &[Diagnostic<P>], after: &'d [Diagnostic<P>]) -> Option<&'d Diagnostic<P>> {
    let (was, is) = (errors(before), errors(after));
    let more = |code: &Code| is.get(code) > was.get(code);
    let said = |it: &Diagnostic<P>| before.iter().any(|other| other.message == it.message);
    let of_more = || after.iter().filter(|it| it.severity == Severity::Error && more(&it.code));
    of_more().find(|it| !said(it)).or_else(|| of_more().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_one_part_of_whole_characters() {
        assert_eq!(difference("abc", "abc"), None);
        assert_eq!(difference("abc", "axyc"), Some((1..2, "xy")));
        assert_eq!(difference("aaa", "aaaa"), Some((3..3, "a")));
        assert_eq!(difference("aaaa", "aa"), Some((2..4, "")));
        // Both characters begin with the same byte.
        assert_eq!(difference("xéy", "xèy"), Some((1..3, "è")));
        // Both end with the same byte.
        assert_eq!(difference("x\u{e9}y", "x\u{129}y"), Some((1..3, "\u{129}")));
        assert_eq!(difference("", "a"), Some((0..0, "a")));
    }

    /// Reports every `x` as an error with the fix `y`, and every `q` as one with the fix `z`, which is an error too.
    fn check(text: &str) -> Vec<Diagnostic<Span>> {
        let found = text.char_indices().filter_map(|(at, c)| {
            let place = Span::new(at as u32, at as u32 + 1);
            let error = |code| Diagnostic::new(code, place, format!("found {c}"));
            let fix = |new: &str, safe| Fix { title: new.to_owned(), edits: vec![(place, new.to_owned())], safe };
            match c {
                'x' => Some(error(Code::UndefinedName).with_fix(fix("y", true))),
                'u' => Some(error(Code::UnknownDtype).with_fix(fix("y\ny", false))),
                'q' => Some(error(Code::NotATuple).with_fix(fix("z", true)).with_fix(fix("y", true))),
                'z' => Some(error(Code::SyntaxError)),
                _ => None,
            }
        });
        found.collect()
    }

    #[test]
    fn safe_fixes_are_applied_and_nothing_else_is_touched() {
        let fixed = fix_all("\u{feff}a x\r\nb u\r\n x", false, &mut check);
        assert_eq!(fixed.text, "\u{feff}a y\r\nb u\r\n y");
        assert_eq!(fixed.applied.len(), 2);
        assert_eq!(only_unsafe(&fixed.diagnostics), 1);
    }

    #[test]
    fn line_ends_are_the_texts() {
        assert_eq!(fix_all("b u\r\n", true, &mut check).text, "b y\r\ny\r\n");
        assert_eq!(line_end("a\rb\n"), "\r");
        assert_eq!(line_end("a"), "\n");
    }

    #[test]
    fn fix_that_adds_an_error_is_undone_and_the_next_is_tried() {
        let fixed = fix_all("x q x", false, &mut check);
        assert_eq!(fixed.text, "y y y");
        let [taken] = &fixed.taken_back[..] else { panic!("{:?}", fixed.taken_back) };
        assert_eq!((taken.title.as_str(), taken.because.as_str(), taken.line), ("z", "found z", 1));
    }

    #[test]
    fn edits_belong_together_and_lie_in_the_text() {
        let fix = |edits: &[(u32, u32)]| {
            let edits = edits.iter().map(|(start, end)| (Span::new(*start, *end), String::new())).collect();
            Fix { title: String::new(), edits, safe: true }
        };
        assert!(edits("abcdef", &fix(&[(4, 5), (1, 2)])).is_some_and(|edits| apply("abcdef", &edits) == "acdf"));
        assert_eq!(edits("abcdef", &fix(&[(1, 3), (2, 4)])), None);
        assert_eq!(edits("abcdef", &fix(&[(5, 7)])), None);
        assert_eq!(edits("é", &fix(&[(1, 2)])), None);
    }

    #[test]
    fn adjacent_fixes_wait_for_the_next_iteration() {
        let (a, b) = (Span::new(0, 2), Span::new(2, 3));
        assert!(!meet(a, b) && meet(a, Span::empty(2)) && meet(Span::empty(2), Span::empty(2)));
        assert!(meet(Span::new(1, 3), a) && !meet(Span::empty(4), a));
    }
}
