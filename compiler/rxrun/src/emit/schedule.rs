//! `--emit schedule`: for each CUDA kernel, the schedule rule that produced it, why the rules tried before it declined,
//! and the resources that the kernel needs.

use super::resources::Needs;
use rx_cuda::{Choice, KernelInfo, LaunchSize, Listing};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A function of a listing, with values for its scalars and symbols, indexed by variable id.
pub(super) struct Scheduled<'l> {
    pub(super) listing: &'l Listing,
    pub(super) function: usize,
    pub(super) values: &'l [Option<i64>],
}

impl Scheduled<'_> {
    fn choices(&self) -> impl Iterator<Item = &Choice> {
        self.listing.choices.iter().filter(|choice| choice.function == self.function)
    }

    /// The kernels of a choice with their launch sizes. A kernel with an extent of unknown value has launch size 0.
    fn kernels(&self, choice: &Choice) -> Vec<(&KernelInfo, LaunchSize)> {
        let all = self.listing.kernels.get(self.function).map_or(&[][..], Vec::as_slice);
        let value_of = |var: rx_tir::VarId| self.values.get(var.0 as usize).copied().flatten();
        let none = LaunchSize { grid: [0; 3], threads: 0, work: 0 };
        let own = all.iter().filter(|info| choice.kernels.contains(&info.name));
        own.map(|info| (info, info.launch_size(&value_of).unwrap_or(none))).collect()
    }

    /// Formats the schedule of the function as text.
    pub(super) fn text(&self, needs: &Needs) -> String {
        self.choices().fold(String::new(), |text, choice| text + &explained(choice, &self.kernels(choice), needs))
    }

    /// Returns a JSON object for each kernel of the function (docs/json.md).
    pub(super) fn objects(&self) -> Vec<Value> {
        let of_choice = |choice: &Choice| -> Vec<Value> {
            let object = |(info, size): (&KernelInfo, LaunchSize)| {
                json!({
                    "kernel": info.name,
                    "rule": choice.rule,
                    "grid": size.grid,
                    "block": info.shape.block,
                    "threads": size.threads,
                    "work": size.work,
                    "reason": reason(choice),
                })
            };
            self.kernels(choice).into_iter().map(object).collect()
        };
        self.choices().flat_map(of_choice).collect()
    }
}

/// Joins the rule's note and the reasons why earlier rules declined.
fn reason(choice: &Choice) -> String {
    let note = Some(choice.note.clone()).filter(|note| !note.is_empty());
    let declined = choice.declined.iter().map(|(rule, why)| format!("not {rule}: {why}"));
    note.into_iter().chain(declined).collect::<Vec<_>>().join("; ")
}

fn explained(choice: &Choice, infos: &[(&KernelInfo, LaunchSize)], needs: &Needs) -> String {
    let Choice { function, rule, note, kernels, blocks, declined } = choice;
    let mut text = kernels.join(", ");
    if !blocks.is_empty() {
        let _ = write!(text, " ({})", blocks.join(", "));
    }
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    let _ = write!(text, "\n    {rule}{note}\n");
    for (kernel, size) in infos {
        let name = if kernels.len() > 1 { format!("{}, ", kernel.name) } else { String::new() };
        let _ = writeln!(text, "    {name}{} threads for {} iterations", size.threads, size.work);
        for line in needs.lines(*function, kernel) {
            let _ = writeln!(text, "    {name}{line}");
        }
    }
    for (rule, why) in declined.iter() {
        let _ = writeln!(text, "    not {rule}: {why}");
    }
    text.replace('\r', " ")
}
