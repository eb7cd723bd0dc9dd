//! The state of a file that `--watch` keeps between two checks.

use crate::check::{Options, Outcome, Text, check, configure, report, workspace};
use crate::content::read;
use crate::discover::Input;
use crate::output::Failure;
use crate::panics;
use crate::rewrite::Rewritten;
use rx_base::fix::difference;
use rx_db::{FileId, Workspace};
use rx_report::Content;
use rx_report::load::{Place, load};
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
    content: Content,
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
        load(&Place::File(path.to_owned())).is_ok_and(|loaded| loaded.text != checked.content.file())
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
    let content = match read(input) {
        Ok(content) => content,
        Err(error) => {
            *slot = Some(fresh);
            return Outcome::Failed(Failure::new(input.shown.as_ref(), &error));
        }
    };
    let old = slot.take().and_then(|kept| kept.checked);
    let done = panics::catch(|| {
        let checked = follow(old, content, input, options);
        let Checked { workspace, file, content } = &checked;
        let text = Text { workspace, file: *file, content };
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
fn follow(old: Option<Checked>, content: Content, input: &Input, options: &Options) -> Checked {
    match old {
        Some(Checked { mut workspace, file, content: before }) => {
            configure(&mut workspace, file, input, options);
            if let Some((range, new)) = difference(&before.code(&before.text), &content.code(&content.text)) {
                workspace.edit(file, range, new);
            }
            Checked { workspace, file, content }
        }
        None => {
            let (workspace, file) = workspace(&content.code(&content.text), input, options);
            Checked { workspace, file, content }
        }
    }
}
