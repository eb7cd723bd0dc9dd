//! Constants that a text names by key and index and has no data of: `--constants FILE`.

use crate::args::Args;
use crate::arrays;
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use rx_base::Name;
use rx_base::name::name;
use rx_execute::program::{GivenConstants, constants};
use rx_lower::{Constant, Program};
use rx_tensor::Tensor;

/// The constants of the files that `--constants` names.
///
/// # Errors
/// A file that cannot be read, or has an array that is called as no constant is.
pub fn given(args: &Args, report: &mut Report) -> Result<GivenConstants, Failure> {
    let mut given = GivenConstants::new();
    for path in &args.constants {
        let shown = path.display().to_string();
        let read = arrays::many(path, &|name| !arrays::is_result(name), report)
            .map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
        for (array, tensor) in read.arrays {
            let (key, index) = place(&array).ok_or_else(|| {
                let wanted = "constants are called by key and index, `ir.GenericConst[0]`";
                Failure::usage(format!("{shown}: the array `{array}` is no constant: {wanted}"))
            })?;
            given.insert((name(key), index), tensor);
        }
    }
    Ok(given)
}

/// Reports constants that were given and that the program has not.
///
/// # Errors
/// The program has none of them.
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
    let what = format!("--constants: {} {are} of the program", arrays::listed(&unused, ", "));
    match unused.len() {
        0 => Ok(()),
        count if count == session.constants.len() => Err(Failure::usage(what)),
        _ => {
            report.remark(&format!("warning: {what}"));
            Ok(())
        }
    }
}

/// The key and the index that an array is called by: `ir.GenericConst[0]`.
fn place(array: &str) -> Option<(&str, u32)> {
    let (key, index) = array.strip_suffix(']')?.rsplit_once('[')?;
    Some((key, index.parse().ok()?)).filter(|(key, _)| !key.is_empty())
}

/// The tensors that stand in a program, with those that were given.
///
/// # Errors
/// What is missing, and how it is given.
pub fn of(session: &Session, program: &Program) -> Result<Vec<Tensor>, Failure> {
    let how =
        "or give them with --constants FILE, an .npz or .safetensors file of arrays called `ir.GenericConst[0]`, …";
    let found = constants(&session.workspace, session.file, program, &session.constants);
    found.map_err(|why| Failure::usage(format!("{}: {why}, {how}", session.name)))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_constant_is_called_by_key_and_index() {
        assert_eq!(place("ir.GenericConst[12]"), Some(("ir.GenericConst", 12)));
        for other in ["ir.GenericConst", "[0]", "a[]", "a[-1]", "a[0]x", "a[99999999999]"] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
