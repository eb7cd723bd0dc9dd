//! Helpers for the tests of passes.

use rx_db::{FileKind, Workspace};
use rx_transform::Module;
use rx_transform::pass::{PassError, parse};

/// Parses a module, whose text must have no errors.
pub fn read(text: &str) -> Module {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    let errors: Vec<String> = workspace
        .diagnostics(file)
        .into_iter()
        .filter(|found| found.severity == rx_base::Severity::Error)
        .map(|found| found.message)
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    workspace.module(workspace.first_module(file)).expect("a module")
}

/// Runs passes on a module, with an evaluator of values.
pub fn apply(passes: &str, mut module: Module) -> Result<Module, PassError> {
    for step in parse(passes)? {
        module = (step.pass.run)(module, &step.arguments.with_evaluator(rx_driver::evaluate))?;
    }
    Ok(module)
}
