//! Programs of the functions of checked files.

use crate::device::Device;
use crate::queries::{self, Kept, Unlowered};
use rx_base::{Code, Diagnostic, Name, Span};
use rx_db::{FunctionKind, ModuleId, Workspace};
use rx_ir::Origin;
use rx_lower::Program;
use rx_lower::steps::Step;
use std::sync::Arc;

/// A program, or everything that has no lowering, at its statement.
pub type Lowered = Result<Arc<Program>, Vec<Diagnostic<Span>>>;

/// The program of a Relax function of a module without errors, with its memory planned; else of the prim_func of this name alone.
///
/// # Errors
/// Everything that has no lowering, at its statement.
pub fn program(workspace: &Workspace, module: ModuleId, entry: Name, device: &Device) -> Lowered {
    let db = workspace.database();
    let Some(scope) = workspace.scope(module) else { return Err(vec![missing(entry)]) };
    let lowered = match scope.function(db, entry) {
        Some(_) => queries::program(db, scope, entry, device.clone()),
        None => queries::alone(db, scope, entry, *device != Device::Interp)
            .unwrap_or_else(|| queries::program(db, scope, entry, device.clone())),
    };
    reported(workspace, module, lowered)
}

/// The program of a Relax function for the interpreter that says what variables are bound to: every value is there.
///
/// # Errors
/// As [`program`].
pub fn watched_program(workspace: &Workspace, module: ModuleId, entry: Name) -> Lowered {
    let Some(scope) = workspace.scope(module) else { return Err(vec![missing(entry)]) };
    let lowered = queries::lowered(workspace.database(), scope, entry, true);
    let mut program = reported(workspace, module, lowered)?;
    rx_lower::steps::run(&mut program, None);
    Ok(Arc::new(program))
}

/// Whether a Relax function of the module has this name, otherwise whether a prim_func has it.
pub fn function_kind(workspace: &Workspace, module: ModuleId, name: Name) -> Option<FunctionKind> {
    let (scope, db) = (workspace.scope(module)?, workspace.database());
    [FunctionKind::Relax, FunctionKind::Prim].into_iter().find(|kind| scope.has(db, name, *kind))
}

/// The name of the step that makes a kernel of each operator: that of TVM's pass.
pub const LOWERING: &str = "LegalizeOps";

/// Lowers a Relax function ([`LOWERING`]) and runs the steps for a device; `after` is given the name of each and the program as it
/// is then. `origins` says for the statements of the module which others are shown in their place.
///
/// # Errors
/// As [`program`].
pub fn each_step(
    workspace: &Workspace,
    module: ModuleId,
    entry: Name,
    device: &Device,
    origins: &dyn Fn(Origin) -> Option<Origin>,
    after: &mut dyn FnMut(&'static str, &Program),
) -> Result<(), Vec<Diagnostic<Span>>> {
    let Some(scope) = workspace.scope(module) else { return Err(vec![missing(entry)]) };
    let db = workspace.database();
    let mut program = reported(workspace, module, queries::lowered(db, scope, entry, false))?;
    program.map_origins(origins);
    after(LOWERING, &program);
    let each = &mut |step: &'static Step, program: &Program| after(step.name, program);
    rx_lower::steps::run_with(&Kept::new(db, device), &mut program, device.preferences(), each);
    Ok(())
}

fn missing(entry: Name) -> Diagnostic<Span> {
    Diagnostic::new(Code::NoLowering, Span::default(), format!("the module has no function `{entry}`"))
}

/// A program, or diagnostics at the places of what has none.
fn reported<T>(
    workspace: &Workspace,
    module: ModuleId,
    lowered: Result<T, Arc<Unlowered>>,
) -> Result<T, Vec<Diagnostic<Span>>> {
    lowered.map_err(|unlowered| {
        let Unlowered { problems, unreadable } = &*unlowered;
        let of_prim_func = |name: &Name| workspace.prim_func(module, *name)?.err();
        let mut diagnostics: Vec<Diagnostic<Span>> = unreadable.iter().filter_map(of_prim_func).flatten().collect();
        diagnostics.extend(problems.iter().map(|problem| {
            let span = problem.origin.and_then(|origin| workspace.origin_span(module, origin));
            Diagnostic::new(Code::NoLowering, span.unwrap_or_default(), problem.message.clone())
        }));
        diagnostics
    })
}
