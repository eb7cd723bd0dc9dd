//! The state of a file that `--watch` keeps between two checks.

use crate::check::{Options, Outcome, Text, check, configure, report, workspace};
use crate::discover::Input;
use crate::output::Failure;
use crate::panics;
use crate::rewrite::Rewritten;
use rx_base::{Diagnostic, Span};
use rx_db::{FileId, Workspace};
use rx_report::load::{Loaded, Place, load};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The worst precision of file times. A file that was read sooner after its change may have changed again with the same
/// time.
const EXACT: Duration = Duration::from_secs(2);

/// The state kept of a file.
pub struct Kept {
    /// Size and modification time before the file was read; `None` if it did not exist.
    stamp: Option<(u64, SystemTime)>,
    /// The time of reading.
    read: SystemTime,
    /// The text with its database; `None` if it could not be read or checked.
    checked: Option<Checked>,
}

struct Checked {
    workspace: Workspace,
    file: FileId,
    text: String,
    mistake: Option<Diagnostic<Span>>,
}

impl Kept {
    fn new(path: &Path) -> Kept {
        Kept { stamp: stamp(path), read: SystemTime::now(), checked: None }
    }

    /// Whether the file differs from the kept state.
    pub fn is_stale(&mut self, path: &Path) -> bool {
        if stamp(path) != self.stamp {
            return true;
        }
        let (Some((_, changed)), Some(checked)) = (self.stamp, &self.checked) else { return false };
        if changed.checked_add(EXACT).is_some_and(|exact| exact < self.read) {
            return false;
        }
        self.read = SystemTime::now();
        load(&Place::File(path.to_owned())).is_ok_and(|loaded| loaded.text != checked.text)
    }
}

fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// Checks an input incrementally: the difference of the old and new text is applied to the kept database as an edit.
pub fn again(input: &Input, options: &Options, slot: &mut Option<Kept>) -> Outcome {
    let Place::File(path) = &input.place else { return check(input, options) };
    let fresh = Kept::new(path);
    let Loaded { text, mistake } = match load(&input.place) {
        Ok(loaded) => loaded,
        Err(error) => {
            *slot = Some(fresh);
            return Outcome::Failed(Failure::new(input.shown.as_ref(), &error));
        }
    };
    let old = slot.take().and_then(|kept| kept.checked);
    let done = panics::catch(|| {
        let checked = follow(old, text, mistake, input, options);
        let Checked { workspace, file, text, mistake } = &checked;
        let text = Text { workspace, file: *file, text, mistake: mistake.clone() };
        (report(input, options, text, Rewritten::default()), checked)
    });
    match done {
        Ok((outcome, checked)) => {
            *slot = Some(Kept { checked: Some(checked), ..fresh });
            outcome
        }
        Err(panic) => {
            *slot = Some(fresh);
            Outcome::Failed(Failure::internal(&input.shown, &panic))
        }
    }
}

/// Updates the database of the old text to the new text.
fn follow(
    old: Option<Checked>,
    text: String,
    mistake: Option<Diagnostic<Span>>,
    input: &Input,
    options: &Options,
) -> Checked {
    match old {
        Some(Checked { mut workspace, file, text: before, .. }) => {
            configure(&mut workspace, file, input, options);
            if let Some((range, new)) = difference(&before, &text) {
                workspace.edit(file, range, new);
            }
            Checked { workspace, file, text, mistake }
        }
        None => {
            let (workspace, file) = workspace(&text, input, options);
            Checked { workspace, file, text, mistake }
        }
    }
}

/// Returns the smallest range of `old` that differs, and its replacement in `new`; `None` if they are equal.
/// For example, `abc` and `axc` give `(1..2, "x")`.
fn difference<'n>(old: &str, new: &'n str) -> Option<(Range<usize>, &'n str)> {
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

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn the_difference_is_one_part_of_whole_characters() {
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
}
