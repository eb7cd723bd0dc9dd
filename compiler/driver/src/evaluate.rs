//! Evaluates functions of modules for passes that need their values, such as constant folding.

use crate::program::{GivenConstants, constants};
use rx_base::{Name, Severity};
use rx_build::Device;
use rx_db::{FileKind, Workspace};
use rx_runtime::{Executor, Limits, interp::Interpreter};
use rx_tensor::Tensor;
use rx_transform::Module;

/// The maximum number of loop iterations in one evaluation: some seconds.
pub const ITERATIONS: u64 = 50_000_000;
/// The maximum total size of results in one evaluation, in bytes.
pub const BYTES: u64 = 1 << 30;

/// Runs `entry` on the interpreter. There is one input tensor for each parameter. Returns the result's tensors in
/// order, with tuples flattened. The limits are [`ITERATIONS`] iterations and [`BYTES`].
///
/// # Errors
/// Returns the reason why there is no value: the module has errors, cannot be lowered, fails at run time, or exceeds a
/// limit.
pub fn evaluate(module: &Module, entry: Name, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let mut workspace = Workspace::new();
    let file = workspace.add(&rx_transform::print(module), FileKind::Rx);
    let diagnostics = workspace.unsuppressed_diagnostics(file);
    if let Some(error) = diagnostics.into_iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(error.message);
    }
    let lowered = rx_build::program(&workspace, workspace.first_module(file), entry, &Device::Interp);
    let program = lowered.map_err(|problems| {
        problems.into_iter().next().map_or_else(|| "it cannot be lowered".to_owned(), |problem| problem.message)
    })?;
    let constants = constants(&workspace, file, &program, &GivenConstants::new())?;
    let built = Executor::new(program, Interpreter::default(), &constants, &mut |_| ());
    let mut executor = built.map_err(|error| error.to_string())?;
    executor.limit(Limits { iterations: Some(ITERATIONS), bytes: Some(BYTES) });
    let arguments: Result<Vec<_>, _> = inputs.iter().map(|input| executor.upload(input)).collect();
    let result = arguments.and_then(|arguments| executor.run(arguments, &rx_base::name::NameMap::default()));
    let result = result.and_then(|result| executor.download(&result));
    result.map(|output| output.tensors()).map_err(|error| error.to_string())
}
