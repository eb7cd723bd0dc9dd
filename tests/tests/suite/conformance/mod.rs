//! rx against what TVM says of given texts: those of `tests/conformance`, and those of `RX_CASES` where it exists.
//!
//! Figures are printed (`cargo test -p rx-tests --test suite conformance:: -- --nocapture`), and what disagrees is listed in files
//! under `target/tmp/conformance`. Disagreements are argued in `docs/findings.md` and `tests/conformance/findings.md`.

mod annotate;
mod defects;
mod findings;
mod fixes;
mod inference;
mod kernels;
mod models;
mod modules;
mod mutants;
mod portability;
mod syntax;
mod tracing;

use std::path::Path;

/// A rate, printed and listed.
struct Tally {
    name: String,
    right: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn new(name: impl Into<String>) -> Tally {
        Tally { name: name.into(), right: 0, wrong: Vec::new() }
    }

    /// Counts one case; `says` describes it where it is wrong.
    fn count(&mut self, right: bool, says: impl FnOnce() -> String) {
        match right {
            true => self.right += 1,
            false => self.wrong.push(says()),
        }
    }

    /// Prints the rate and lists what is wrong.
    fn publish(&self) {
        let all = self.right + self.wrong.len();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let percent = if all == 0 { 100.0 } else { 100.0 * self.right as f64 / all as f64 };
        println!("{}: {}/{all} ({percent:.2} %)", self.name, self.right);
        let file = format!("{}.txt", self.name.replace([' ', ',', ':', '/'], "_"));
        if let Err(error) = rx_tests::cases::write_list(Path::new(env!("CARGO_TARGET_TMPDIR")), &file, &self.wrong) {
            println!("{file}: {error}");
        }
    }

    /// Publishes, and fails where fewer are right than `percent` in a hundred.
    fn must_be_mostly_right(&self, percent: usize) {
        self.publish();
        let all = self.right + self.wrong.len();
        assert!(self.right * 100 >= all * percent, "{}: {} of {all} wrong", self.name, self.wrong.len());
    }

    /// Publishes, and fails unless everything is right.
    fn must_be_complete(&self) {
        self.publish();
        let shown: Vec<&str> = self.wrong.iter().take(20).map(String::as_str).collect();
        assert!(self.wrong.is_empty(), "{}: {} wrong, the first:\n{}", self.name, self.wrong.len(), shown.join("\n"));
    }
}
