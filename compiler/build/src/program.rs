//! Lowers the functions of checked files to programs.

use crate::device::Device;
use crate::queries::{self, MemoizedQueries, Unlowered};
use rx_base::{Code, Diagnostic, Name, Span};
use rx_db::{FunctionKind, ModuleId, Workspace};
use rx_ir::Origin;
use rx_lower::Program;
use rx_lower::steps::Step;
use std::sync::Arc;

/// A program, or the diagnostics that say why there is none.
pub type Lowered = Result<Arc<Program>, Vec<Diagnostic<Span>>>;

/// Returns the program of the function `entry`. If there is a Relax function of this name, this is its program, with
/// planned memory. Otherwise, if there is a prim_func of this name, the program consists of that kernel. The module
/// should have no errors.
///
/// # Errors
/// - For each construct that has no lowering, a diagnostic, usually at its statement.
/// - The errors of prim_funcs that the program needs.
/// - If there is no function `entry`, a diagnostic that says so.
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

/// Returns the program of a Relax function that reports the values of variables, for the interpreter. Only the steps of
/// a reference run are applied, so no value is removed.
///
/// # Errors
/// Like [`program`].
pub fn watched_program(workspace: &Workspace, module: ModuleId, entry: Name) -> Lowered {
    let Some(scope) = workspace.scope(module) else { return Err(vec![missing(entry)]) };
    let lowered = queries::lowered(workspace.database(), scope, entry, true);
    let mut program = reported(workspace, module, lowered)?;
    rx_lower::steps::run(&mut program, None);
    Ok(Arc::new(program))
}

/// Returns the kind of the function called `name`: a Relax function, otherwise a prim_func.
pub fn function_kind(workspace: &Workspace, module: ModuleId, name: Name) -> Option<FunctionKind> {
    let (scope, db) = (workspace.scope(module)?, workspace.database());
    [FunctionKind::Relax, FunctionKind::Prim].into_iter().find(|kind| scope.has(db, name, *kind))
}

/// The name of lowering as a step. TVM's pass of this name also makes loops of operator calls.
pub const LOWERING: &str = "LegalizeOps";

/// Lowers a Relax function ([`LOWERING`]) and runs the steps for a device. `after` is called with the name of each
/// step, first [`LOWERING`], and the program after it. `origins` maps the statements of the module to those that are
/// shown instead; if it returns `None`, the origin is removed.
///
/// # Errors
/// Like [`program`].
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
    rx_lower::steps::run_with(&MemoizedQueries::new(db, device), &mut program, device.target_info(), each);
    Ok(())
}

fn missing(entry: Name) -> Diagnostic<Span> {
    Diagnostic::new(Code::NoLowering, Span::default(), format!("the module has no function `{entry}`"))
}

/// Converts the errors of lowering to diagnostics at their statements, after the errors of the prim_funcs that were
/// requested.
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
