//! Checks that printed kernels compute the same as the interpreter: on the CPU, if there is a C++ compiler, and
//! on a GPU, if there is one. Checks that NVRTC compiles them, if it is found.

mod attention;
mod built;
mod case;
mod choices;
mod compiled;
mod convolutions;
mod corpus;
mod cross_thread;
mod device;
mod hopper;
mod hopper_faults;
mod host_loops;
mod nvrtc;
mod operators;
mod paged;
mod products;
mod rows;
mod scans;
mod scatters;
mod scheduled;
mod script;
mod simulated;
mod sorts;
mod templates;
mod tensor_cores;
mod tuples;
mod vectors;
mod windows;
mod written;

use case::Case;
use rx_cuda::rules::Target;

/// Returns the cases of the modules `built` and `written`.
fn made() -> Vec<Case> {
    let mut cases = built::cases();
    cases.extend(written::cases());
    cases
}

/// Prints the functions of some cases as one source.
fn source(cases: &[Case]) -> rx_cuda::CudaSource {
    source_for(cases, &Target::default())
}

/// Prints the functions of some cases as one source for a target.
fn source_for(cases: &[Case], target: &Target) -> rx_cuda::CudaSource {
    let funcs: Vec<_> = cases.iter().map(|case| &case.func).collect();
    rx_cuda::module(&funcs, target).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a target with one multiprocessor. Few blocks and threads occupy it, so products and windows of moderate size
/// get the larger tiles and several outputs per thread.
fn small_device() -> Target {
    Target { units: 1, ..Target::default() }
}

/// Panics unless, for each case, one schedule of this rule takes all statements.
fn are_taken_by(rule: &str, cases: &[Case], target: &Target) {
    let source = source_for(cases, target);
    for (at, case) in cases.iter().enumerate() {
        let choices: Vec<_> = source.choices.iter().filter(|one| one.function == at).collect();
        assert!(matches!(choices[..], [one] if one.rule == rule), "{}: {choices:#?}", case.name);
    }
}
