//! `--emit schedule`: which rule made each CUDA kernel, and why those asked before it did not.

use rx_cuda::Choice;
use std::fmt::Write as _;

/// How each of `count` functions is scheduled, of the choices in their order.
pub(super) fn texts(choices: &[Choice], count: usize) -> Vec<String> {
    let of = |function: usize| choices.iter().filter(move |choice| choice.function == function);
    (0..count).map(|function| of(function).fold(String::new(), |text, choice| text + &explained(choice))).collect()
}

fn explained(choice: &Choice) -> String {
    let Choice { rule, note, kernels, blocks, declined, .. } = choice;
    let mut text = kernels.join(", ");
    if !blocks.is_empty() {
        let _ = write!(text, " ({})", blocks.join(", "));
    }
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    let _ = write!(text, "\n    {rule}{note}\n");
    for (rule, why) in declined {
        let _ = writeln!(text, "    not {rule}: {why}");
    }
    text.replace('\r', " ")
}
