//! Printed kernels do what the interpreter does: on the CPU by a C++ compiler, on a GPU where there is one. And NVRTC
//! compiles them.

mod attention;
mod built;
mod case;
mod choices;
mod compiled;
mod convolutions;
mod corpus;
mod device;
mod hopper;
mod hopper_faults;
mod nvrtc;
mod operators;
mod paged;
mod products;
mod rounds;
mod rows;
mod scans;
mod scatters;
mod scheduled;
mod script;
mod simulated;
mod sorts;
mod templates;
mod tensor_cores;
mod together;
mod tuples;
mod vectors;
mod windows;
mod written;

use case::Case;
use rx_cuda::rules::Target;

/// Functions made for these tests.
fn made() -> Vec<Case> {
    let mut cases = built::cases();
    cases.extend(written::cases());
    cases
}

/// Prints the functions of some cases as one text.
fn source(cases: &[Case]) -> rx_cuda::CudaSource {
    source_for(cases, &Target::default())
}

/// The same for a target.
fn source_for(cases: &[Case], target: &Target) -> rx_cuda::CudaSource {
    let funcs: Vec<_> = cases.iter().map(|case| &case.func).collect();
    rx_cuda::module(&funcs, target).unwrap_or_else(|error| panic!("{error}"))
}

/// A device with one multiprocessor, so that every problem is large enough for the largest tiles, and a thread has as many outputs as
/// it may.
fn small_device() -> Target {
    Target { units: 1, ..Target::default() }
}

/// Panics where anything but one schedule of this rule takes all of a case.
fn are_taken_by(rule: &str, cases: &[Case], target: &Target) {
    let source = source_for(cases, target);
    for (at, case) in cases.iter().enumerate() {
        let choices: Vec<_> = source.choices.iter().filter(|one| one.function == at).collect();
        assert!(matches!(choices[..], [one] if one.rule == rule), "{}: {choices:#?}", case.name);
    }
}
