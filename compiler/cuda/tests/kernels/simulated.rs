//! Runs kernels on the CPU, in the simulator.

use crate::case::Case;
use rx_cuda::CudaSource;
use rx_cuda::simulator::{Call, Options, Order, Outcome, Simulator, SimulatorError};

/// Returns the simulator of a source, or `None` if there is no compiler.
pub fn simulator(source: &CudaSource) -> Option<Simulator> {
    match Simulator::build(source, Options { sanitize: true }) {
        Ok(simulator) => Some(simulator),
        Err(SimulatorError::NoCompiler) => {
            println!("skipped: no C++ compiler");
            None
        }
        Err(error) => panic!("{error}\n{}", source.text),
    }
}

/// Returns the result of each case, with threads executed in this order.
fn run(simulator: &Simulator, cases: &[Case], order: Order) -> Vec<Outcome> {
    let bytes: Vec<Vec<&[u8]>> = cases.iter().map(Case::bytes).collect();
    let values: Vec<Vec<Option<i64>>> = cases.iter().map(Case::values).collect();
    let call = |function: usize| Call { function, buffers: &bytes[function], values: &values[function], order };
    let calls: Vec<Call<'_>> = (0..cases.len()).map(call).collect();
    simulator.run(&calls).unwrap_or_else(|error| panic!("{error}"))
}

/// Panics if a case does not agree with the interpreter or depends on the order of its threads; lists all such cases.
pub fn agree(cases: &[Case]) {
    agree_for(cases, &rx_cuda::rules::Target::default());
}

/// As [`agree`], for kernels that are printed for a target.
pub fn agree_for(cases: &[Case], target: &rx_cuda::rules::Target) {
    let source = crate::source_for(cases, target);
    let Some(simulator) = simulator(&source) else { return };
    let results = [Order::Ascending, Order::Descending, Order::Shuffled(7)].map(|order| run(&simulator, cases, order));
    let mut failures = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let expected = case.expected();
        failures.extend(results.iter().filter_map(|result| case.judge(&result[at], &expected).err()));
        if let (Ok(first), Ok(second), Ok(third)) = (&results[0][at], &results[1][at], &results[2][at])
            && (first != second || first != third)
        {
            failures.push(format!("{} depends on the order of threads", case.name));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn every_kernel_agrees_with_the_interpreter_in_every_order() {
    agree(&crate::made());
}
