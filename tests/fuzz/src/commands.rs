//! The commands of the tools as library functions: every stage that is printed, and a run.

use rx_base::name::NameMap;
use rx_base::{Name, Severity};
use rx_build::pipeline::{Pipeline, checked};
use rx_cuda::rules::Target;
use rx_db::{FileId, FileKind, FunctionKind, Operators, Workspace};
use rx_driver::inputs::Drawing;
use rx_driver::program::{GivenConstants, constants};
use rx_lower::Program;
use rx_report::Source;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Executor, Limits};
use rx_syntax::dialect::Dialect;
use std::fmt::Write;
use std::sync::Arc;

/// The output of a command, or the reason why there is none.
pub type Made = Result<String, String>;

/// A command of a tool.
pub type Command = fn(&str) -> Made;

/// The commands by name. No command may panic on any text, and no output may grow disproportionately to the text.
pub const COMMANDS: [(&str, Command); 8] = [
    ("check", check),
    ("stats", stats),
    ("format", format),
    ("passes", passes),
    ("tir", tir),
    ("cpu", cpu),
    ("cuda", cuda),
    ("interp", interp),
];

/// The most kernels that the emitting commands process; larger programs add nothing to the test.
const MOST_KERNELS: usize = 200;

/// `rxcheck`.
///
/// # Errors
/// None.
pub fn check(text: &str) -> Made {
    let (workspace, file) = checked(text, Arc::default());
    let source = Source::new("text.rx", text);
    let mut out = String::new();
    for diagnostic in workspace.diagnostics(file) {
        out += &rx_report::concise(&source, &diagnostic, false);
    }
    Ok(out)
}

/// `rxcheck --stats`.
///
/// # Errors
/// None.
pub fn stats(text: &str) -> Made {
    let (workspace, file) = checked(text, Arc::default());
    Ok(workspace.stats(file).iter().fold(String::new(), |mut out, row| {
        // INVARIANT: writing to a string succeeds.
        let _ = writeln!(out, "{row:?}");
        out
    }))
}

/// `rxfmt`.
///
/// # Errors
/// If formatting would change a syntax tree.
pub fn format(text: &str) -> Made {
    let document = rx_syntax::Document::new(text, FileKind::Rx);
    let own = Dialect::detect(&document);
    rx_syntax::format::checked(&document, own, own).map_err(|difference| difference.to_string())
}

/// `rxopt --pipeline default`.
///
/// # Errors
/// The reason why the module cannot be read, or a pass has no result.
pub fn passes(text: &str) -> Made {
    let (workspace, file) = rx_build::pipeline::opened(text, FileKind::Rx, Arc::new(Operators::default()));
    let mut pipeline = Pipeline::new(&workspace, workspace.first_module(file), Arc::new(Operators::default()))?;
    let mut out = String::new();
    for step in rx_transform::pipeline::steps("default").map_err(|error| error.to_string())? {
        pipeline.apply(&step, rx_driver::evaluate).map_err(|_| format!("{} has no result", step.pass.name))?;
        out += pipeline.text();
    }
    Ok(out)
}

/// `rxrun --emit tir`.
///
/// # Errors
/// The reason why there is no program.
pub fn tir(text: &str) -> Made {
    let program = program(text, &rx_build::Device::Cpu)?.0;
    Ok(kernels(&program).map(rx_tir::print::script).collect())
}

/// `rxrun --emit cpu`.
///
/// # Errors
/// The reason why there is no program.
pub fn cpu(text: &str) -> Made {
    let program = program(text, &rx_build::Device::Cpu)?.0;
    let listed =
        kernels(&program).map(|func| rx_cpu::CpuModule::listing(func).unwrap_or_else(|error| error.to_string()));
    Ok(listed.collect())
}

/// `rxrun --emit cuda`.
///
/// # Errors
/// The reason why there is no program.
pub fn cuda(text: &str) -> Made {
    let target = Target::default();
    let program = program(text, &rx_build::Device::Cuda(target.clone()))?.0;
    let funcs: Vec<_> = kernels(&program).map(rx_cuda::prepared).collect();
    let listing = rx_cuda::listing(&funcs.iter().collect::<Vec<_>>(), &target);
    let listed = listing.functions.into_iter().map(|text| text.unwrap_or_else(|error| error.to_string()));
    Ok(listing.head + &listed.collect::<String>())
}

/// `rxrun --device interp`, with limits on the run.
///
/// # Errors
/// The reason why the program returns no value.
pub fn interp(text: &str) -> Made {
    let (program, workspace, file, entry) = program(text, &rx_build::Device::Interp)?;
    if program.procedures.is_empty() {
        return Err("a prim_func does not run by itself".to_owned());
    }
    let constants = constants(&workspace, file, &program, &GivenConstants::new())?;
    let params = workspace
        .function(workspace.first_module(file), entry)
        .map(|function| function.params.clone())
        .unwrap_or_default();
    let built = Executor::new(program, Interpreter::default(), &constants, &mut |_| ());
    let mut executor = built.map_err(|error| error.to_string())?;
    executor.limit(Limits { iterations: Some(200_000), bytes: Some(16 << 20) });
    let drawing = Drawing { seed: 0, symbols: &NameMap::default() };
    let mut arguments = Vec::new();
    for (at, (_, ty)) in params.iter().enumerate() {
        let elements = rx_ops::cost::elements(ty).and_then(|elements| elements.as_constant());
        if elements.is_none_or(|elements| elements > 1 << 16) {
            return Err("a parameter is too large".to_owned());
        }
        let input = drawing.draw(at, ty, &[]).map_err(|why| why.to_string())?;
        arguments.push(input.upload(&mut executor).map_err(|error| error.to_string())?);
    }
    let result = executor.run(arguments, &NameMap::default()).and_then(|value| executor.download(&value));
    result.map(|output| format!("{} tensors", output.tensors().len())).map_err(|error| error.to_string())
}

fn kernels(program: &Program) -> impl Iterator<Item = &rx_tir::PrimFunc> {
    program.kernels.iter().take(MOST_KERNELS).map(|kernel| &*kernel.loops)
}

/// Lowers the text's Relax function `main`, otherwise its first Relax function, otherwise its first prim_func.
fn program(text: &str, target: &rx_build::Device) -> Result<(Arc<Program>, Workspace, FileId, Name), String> {
    let (workspace, file) = checked(text, Arc::default());
    let mut errors = workspace.unsuppressed_diagnostics(file);
    errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
    if let Some(error) = errors.first() {
        return Err(error.message.clone());
    }
    let module = workspace.first_module(file);
    let mut functions = workspace.functions(file);
    functions.retain(|function| function.module == module.module);
    let relax = || functions.iter().filter(|function| function.kind == FunctionKind::Relax);
    let entry = relax().find(|function| function.name.as_str() == "main").or_else(|| relax().next());
    let entry = entry.or_else(|| functions.first()).ok_or("there is no function")?.name;
    let program = rx_build::program(&workspace, module, entry, target);
    let program =
        program.map_err(|problems| problems.first().map(|problem| problem.message.clone()).unwrap_or_default())?;
    Ok((program, workspace, file, entry))
}
