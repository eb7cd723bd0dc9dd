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
mod rows;
mod scans;
mod scatters;
mod scheduled;
mod script;
mod simulated;
mod sorts;
mod templates;
mod together;
mod vectors;
mod windows;
mod written;

use case::Case;

/// Functions made for these tests.
fn made() -> Vec<Case> {
    let mut cases = built::cases();
    cases.extend(written::cases());
    cases
}

/// Prints the functions of some cases as one text.
fn source(cases: &[Case]) -> rx_cuda::CudaSource {
    source_for(cases, &rx_cuda::rules::Target::default())
}

/// The same for a target.
fn source_for(cases: &[Case], target: &rx_cuda::rules::Target) -> rx_cuda::CudaSource {
    let funcs: Vec<_> = cases.iter().map(|case| &case.func).collect();
    rx_cuda::module(&funcs, target).unwrap_or_else(|error| panic!("{error}"))
}
