//! Constants that a text refers to by key and index but has no data for: `--constants FILE`.

use crate::args::Args;
use crate::arrays;
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use rx_base::Name;
use rx_driver::program::{GivenConstants, constants, give_constants};
use rx_lower::{Constant, Program};
use rx_tensor::Tensor;

/// Reads the constants of all files given by `--constants`.
///
/// # Errors
/// If a file cannot be read, or an array's name is not the name of a constant, such as `ir.GenericConst[0]`.
pub fn given(args: &Args, report: &mut Report) -> Result<GivenConstants, Failure> {
    let mut given = GivenConstants::new();
    for path in &args.constants {
        let shown = path.display().to_string();
        let read = arrays::many(path, &|name| !arrays::is_result(name), report)
            .map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        give_constants(read.arrays, &mut given).map_err(|why| Failure::usage(format!("{shown}: {why}")))?;
    }
    Ok(given)
}

/// Reports given constants that the program does not use.
///
/// # Errors
/// If the program uses none of them.
pub fn all_used(session: &Session, program: &Program, report: &mut Report) -> Result<(), Failure> {
    let is_used = |wanted: &(Name, u32)| {
        program.constants.iter().any(|constant| match constant {
            Constant::Metadata { key, index } => (*key, *index) == *wanted,
            Constant::Scalar(..) | Constant::Elements { .. } => false,
        })
    };
    let unused = session.constants.keys().filter(|wanted| !is_used(wanted));
    let mut unused: Vec<String> = unused.map(|(key, index)| format!("`{key}[{index}]`")).collect();
    unused.sort_unstable();
    let are = if unused.len() == 1 { "is no constant" } else { "are no constants" };
    let message = format!("--constants: {} {are} of the program", arrays::listed(&unused, ", "));
    match unused.len() {
        0 => Ok(()),
        count if count == session.constants.len() => Err(Failure::usage(message)),
        _ => {
            report.remark(&format!("warning: {message}"));
            Ok(())
        }
    }
}

/// Returns the constant tensors of a program, including the given ones.
///
/// # Errors
/// If a constant has no data: names it and says how to give it.
pub fn of(session: &Session, program: &Program) -> Result<Vec<Tensor>, Failure> {
    let how =
        "or give them with --constants FILE, an .npz or .safetensors file of arrays called `ir.GenericConst[0]`, …";
    let found = constants(&session.workspace, session.file, program, &session.constants);
    found.map_err(|why| Failure::usage(format!("{}: {why}, {how}", session.name)))
}
