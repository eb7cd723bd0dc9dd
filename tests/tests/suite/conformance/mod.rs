//! Compares rx with TVM's recorded results for given texts: those of `tests/conformance`, and those of `RX_CASES` if it
//! exists.
//!
//! Run `cargo test -p rx-tests --test suite conformance:: -- --nocapture` to see the figures; disagreements are listed
//! in files under `target/tmp/conformance`. Intended disagreements are explained in `docs/findings.md` and
//! `tests/conformance/findings.md`.

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

/// A success rate with its failures.
struct Tally {
    name: String,
    right: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn new(name: impl Into<String>) -> Tally {
        Tally { name: name.into(), right: 0, wrong: Vec::new() }
    }

    /// Counts one case; `says` describes it if it is wrong.
    fn count(&mut self, right: bool, says: impl FnOnce() -> String) {
        match right {
            true => self.right += 1,
            false => self.wrong.push(says()),
        }
    }

    /// Prints the rate and writes the list of failures.
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

    /// Publishes the rate, and fails if fewer than `percent` per cent are right.
    fn must_be_mostly_right(&self, percent: usize) {
        self.publish();
        let all = self.right + self.wrong.len();
        assert!(self.right * 100 >= all * percent, "{}: {} of {all} wrong", self.name, self.wrong.len());
    }

    /// Publishes the rate, and fails unless all cases are right.
    fn must_be_complete(&self) {
        self.publish();
        let shown: Vec<&str> = self.wrong.iter().take(20).map(String::as_str).collect();
        assert!(self.wrong.is_empty(), "{}: {} wrong, the first:\n{}", self.name, self.wrong.len(), shown.join("\n"));
    }
}
