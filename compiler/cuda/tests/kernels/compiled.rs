//! Runs cases compiled for the CPU.

use crate::case::{Case, Failure};
use rx_cpu::{Argument, CpuModule, Scratch};
use rx_tensor::Tensor;

/// The limits of compiled code for one function, which may be too long for the interpreter.
const COMPILED: rx_cpu::Limits = rx_cpu::Limits { iterations: 1 << 31, bytes: 1 << 30 };

/// Returns the result of a case on the CPU.
pub fn on_cpu(case: &Case) -> Result<Result<Vec<Vec<u8>>, Failure>, String> {
    let module = CpuModule::compile(&[&case.func]).map_err(|error| error.to_string())?;
    let kernel = module.kernel(0).map_err(|error| error.to_string())?;
    let mut bytes: Vec<Vec<u8>> = case.bytes().into_iter().map(<[u8]>::to_vec).collect();
    let mut buffers: Vec<Argument<'_>> = bytes.iter_mut().map(|bytes| Argument::Write(bytes)).collect();
    let shapes: Vec<&[i64]> = case.arguments.iter().map(Tensor::shape).collect();
    let mut limits = COMPILED;
    match kernel.run_within(&mut buffers, &shapes, &case.scalars, &mut Scratch::default(), &mut limits) {
        Ok(()) => Ok(Ok(bytes)),
        Err(rx_cpu::RunError::OutOfBounds { index, extent, .. }) => Ok(Err(Failure::Index { index, extent })),
        Err(rx_cpu::RunError::DivisionByZero { .. }) => Ok(Err(Failure::Division)),
        Err(rx_cpu::RunError::Assert { message, .. }) => Ok(Err(Failure::Assertion(message.to_string()))),
        Err(other) => Err(other.to_string()),
    }
}

#[test]
fn operators_agree_on_the_cpu() {
    let (mut failures, mut count, mut interpreted) = (Vec::new(), 0, 0);
    for (_, cases) in crate::operators::families() {
        for case in cases {
            count += 1;
            // The runtime interprets a kernel for which there is no machine code.
            if case.func.buffers.iter().any(|buffer| buffer.dtype.is_float() && buffer.dtype.bits < 16) {
                assert!(on_cpu(&case).is_err_and(|why| why.contains("no code for float8")), "{}", case.name);
                interpreted += 1;
                continue;
            }
            let judged = on_cpu(&case).and_then(|result| match &result {
                Ok(bytes) => case.compare_all(Ok(bytes), &case.expected()),
                Err(failure) => case.compare_all(Err(failure.clone()), &case.expected()),
            });
            failures.extend(judged.err().map(|why| format!("{}: {why}", case.name)));
        }
    }
    println!("{count} cases of operators on the CPU; {interpreted} of 8-bit floats, which it has no code for");
    assert!(count > 1000 && failures.is_empty(), "{} of {count} cases:\n{}", failures.len(), failures.join("\n"));
}
