//! Checks `--dim`: every dim that the command line names must be a symbolic dim of the function or module that is run
//! or shown.

use crate::args::Args;
use crate::arrays::listed;
use crate::failure::Failure;
use crate::session::Session;
use rx_base::Name;
use rx_base::edit_distance::nearest;
use rx_base::name::NameSet;
use rx_ir::{BindingKind, Body, Function};
use rx_lower::Program;
use rx_tir::PrimFunc;

/// Returns the symbolic dims of a function: those of its signature, and those that it binds at run time.
pub fn of_function(function: &Function) -> NameSet {
    let mut found = NameSet::default();
    add_types(function, &mut found);
    add_body(&function.body, false, &mut found);
    found
}

/// Returns the symbolic dims of a program: those of the called function, of all functions that it calls, and of the
/// kernels.
pub fn of_program(session: &Session, program: &Program) -> NameSet {
    let mut found = NameSet::default();
    for function in program.procedures.iter().filter_map(|procedure| session.function(procedure.name)) {
        found.extend(of_function(&function));
    }
    program.kernels.iter().for_each(|kernel| add_kernel(&kernel.loops, &mut found));
    found
}

/// Returns the symbolic dims of all functions of the module.
pub fn of_module(session: &Session) -> NameSet {
    let mut found = NameSet::default();
    for row in session.functions() {
        if let Some(function) = session.function(row.name) {
            add_whole(&function, &mut found);
        } else if let Some(Ok(func)) = session.workspace.prim_func(session.module, row.name) {
            add_kernel(&func, &mut found);
        }
    }
    found
}

fn add_types(function: &Function, found: &mut NameSet) {
    let types = function.params.iter().map(|(_, ty)| ty).chain([&function.ret]);
    types.for_each(|ty| ty.each_symbol(&mut |symbol| found.extend([symbol])));
}

/// Adds the symbolic dims of a body; with `nested`, those of its nested functions as well.
fn add_body(body: &Body, nested: bool, found: &mut NameSet) {
    for binding in &body.bindings {
        match &binding.kind {
            BindingKind::Value { ty, .. } => ty.each_symbol(&mut |symbol| found.extend([symbol])),
            BindingKind::If { arms, otherwise, .. } => {
                arms.iter().map(|(_, body)| body).chain([otherwise]).for_each(|body| add_body(body, nested, found));
            }
            BindingKind::Function(function) if nested => add_whole(function, found),
            BindingKind::Unpack { .. } | BindingKind::Function(_) => {}
        }
    }
}

fn add_whole(function: &Function, found: &mut NameSet) {
    add_types(function, found);
    add_body(&function.body, true, found);
}

fn add_kernel(func: &PrimFunc, found: &mut NameSet) {
    found.extend(func.symbols.iter().copied().chain(func.scalar_params()).map(|var| func.var(var).name));
}

/// Checks that every `--dim` is one of the `known` dims of `owner`.
///
/// # Errors
/// Names all unknown dims, and lists the known ones.
pub fn check(args: &Args, known: &NameSet, owner: &str) -> Result<(), Failure> {
    let mut names: Vec<&str> = known.iter().map(Name::as_str).collect();
    names.sort_unstable();
    let unknown: Vec<String> = (args.dims.iter().filter(|(dim, _)| !names.contains(&&**dim)))
        .map(|(dim, _)| match nearest(dim, names.iter().copied()) {
            Some(near) => format!("`{dim}` (did you mean `{near}`?)"),
            None => format!("`{dim}`"),
        })
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let there = if quoted.is_empty() { "none".to_owned() } else { listed(&quoted, ", ") };
    Err(Failure::usage(format!("--dim: {owner} has no symbolic dim {}; it has {there}", listed(&unknown, ", "))))
}
