//! `--emit schedule`: which rule made each CUDA kernel, and why those asked before it did not; and what the kernels need.

use super::resources::Needs;
use rx_cuda::{Choice, KernelInfo};
use std::fmt::Write as _;

/// How a function is scheduled, of the choices of all.
pub(super) fn text(choices: &[Choice], function: usize, kernels: &[KernelInfo], needs: &Needs) -> String {
    let own = choices.iter().filter(|choice| choice.function == function);
    own.fold(String::new(), |text, choice| text + &explained(choice, kernels, needs))
}

fn explained(choice: &Choice, infos: &[KernelInfo], needs: &Needs) -> String {
    let Choice { function, rule, note, kernels, blocks, declined } = choice;
    let mut text = kernels.join(", ");
    if !blocks.is_empty() {
        let _ = write!(text, " ({})", blocks.join(", "));
    }
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    let _ = write!(text, "\n    {rule}{note}\n");
    for kernel in infos.iter().filter(|info| kernels.contains(&info.name)) {
        let name = if kernels.len() > 1 { format!("{}, ", kernel.name) } else { String::new() };
        for line in needs.lines(*function, kernel) {
            let _ = writeln!(text, "    {name}{line}");
        }
    }
    for (rule, why) in declined {
        let _ = writeln!(text, "    not {rule}: {why}");
    }
    text.replace('\r', " ")
}
