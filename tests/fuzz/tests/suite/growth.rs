//! Tests that the output of every command grows in proportion to the program: twice the size, about twice the output.
//!
//! The test measures the size of the output (lines of loops, instructions, kernels, statements), never time. A command
//! that takes exponential time would not finish at these sizes.

use rx_fuzz::commands::COMMANDS;
use rx_fuzz::on_a_worker;
use rx_fuzz::programs::{KINDS, Kind};

/// The size in bytes of the parts that do not depend on the program: headers, helpers.
const FIXED: usize = 4096;

/// Returns the size of each command's output for a program, in bytes; `None` if the command returns an error.
fn outputs(kind: &Kind, size: usize) -> Vec<Option<usize>> {
    let text = (kind.text)(size);
    COMMANDS.iter().map(|(_, command)| command(&text).ok().map(|made| made.len())).collect()
}

fn grows_with_the_program(kind: &Kind) {
    let (small, large) = (outputs(kind, kind.size), outputs(kind, 2 * kind.size));
    for ((command, _), (small, large)) in COMMANDS.iter().zip(small.iter().zip(&large)) {
        let (Some(small), Some(large)) = (small, large) else { continue };
        let most = (small << kind.power) + small / 2 + FIXED;
        assert!(*large <= most, "{command} of {}: {small} bytes at {}, {large} at twice that", kind.name, kind.size);
    }
}

#[test]
fn output_of_every_command_grows_with_the_program() {
    let failed: Vec<&str> =
        KINDS.iter().filter(|kind| !on_a_worker(|| grows_with_the_program(kind))).map(|kind| kind.name).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn generated_programs_have_no_errors() {
    for kind in &KINDS {
        let text = (kind.text)(3);
        let said = rx_fuzz::commands::check(&text).unwrap_or_default();
        assert!(!said.contains("error["), "{}: {said}\n{text}", kind.name);
        let tir = rx_fuzz::commands::tir(&text);
        assert!(tir.is_ok(), "{}: {tir:?}", kind.name);
    }
}
