//! Collects the constant tensors of a program: those in the source, and those that are given separately.

use rx_base::name::name;
use rx_base::{DType, Name};
pub use rx_build::pipeline::GivenConstants;
use rx_db::{FileId, Workspace};
use rx_lower::{Constant, Program};
use rx_tensor::{Tensor, TensorError};
use rx_transform::constant::{of_elements, of_literal};

/// Adds the arrays of a file to `given`. Their names are a key and an index, such as `ir.GenericConst[0]`.
///
/// # Errors
/// Returns an error for an array whose name is not of that form.
pub fn give_constants(arrays: Vec<(String, Tensor)>, given: &mut GivenConstants) -> Result<(), String> {
    for (array, tensor) in arrays {
        let Some((key, index)) = place(&array) else {
            let wanted = "constants are called by key and index, `ir.GenericConst[0]`";
            return Err(format!("the array `{array}` is no constant: {wanted}"));
        };
        given.insert((name(key), index), tensor);
    }
    Ok(())
}

/// Parses the name of an array into key and index: `ir.GenericConst[0]`.
fn place(array: &str) -> Option<(&str, u32)> {
    let (key, index) = array.strip_suffix(']')?.rsplit_once('[')?;
    Some((key, index.parse().ok()?)).filter(|(key, _)| !key.is_empty())
}

/// Returns the constants of a program, in order. Constants in `given` take precedence over the metadata section of the
/// source.
///
/// # Errors
/// Returns an error for constants that are missing or cannot be decoded, and if memory is exhausted.
pub fn constants(
    workspace: &Workspace,
    file: FileId,
    program: &Program,
    given: &GivenConstants,
) -> Result<Vec<Tensor>, String> {
    let listed = |constant: &Constant| match constant {
        Constant::Metadata { key, index } => Some((*key, *index)),
        Constant::Scalar(..) | Constant::Elements { .. } => None,
    };
    let listed = program.constants.iter().filter_map(listed);
    let wanted: Vec<(Name, u32)> = listed.filter(|constant| !given.contains_key(constant)).collect();
    let decoded = match wanted.is_empty() {
        true => Vec::new(),
        false => workspace.constants(file, &wanted).map_err(|why| missing(&wanted, &why))?,
    };
    let mut decoded = decoded.into_iter();
    let mut tensor = |constant: &Constant| -> Result<Tensor, TensorError> {
        match constant {
            Constant::Scalar(literal, dtype) => of_literal(literal, *dtype),
            Constant::Elements { elements, shape, dtype } => of_elements(elements, shape, *dtype),
            Constant::Metadata { key, index } => match given.get(&(*key, *index)) {
                Some(tensor) => tensor.duplicate(),
                // One constant was decoded for each that is not given.
                None => match decoded.next() {
                    Some(data) => Tensor::from_bytes(data.dtype, &data.shape, &data.bytes),
                    None => Tensor::zeros(DType::UINT8, &[0]),
                },
            },
        }
    };
    let tensors: Result<_, _> = program.constants.iter().map(&mut tensor).collect();
    tensors.map_err(|error| format!("a constant of the program: {error}"))
}

/// Formats the error for constants without data: their names, the reason, and how TVM prints them.
fn missing(wanted: &[(Name, u32)], why: &str) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = wanted.iter().take(SHOWN).map(|(key, at)| format!("metadata[\"{key}\"][{at}]")).collect();
    let more = wanted.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = shown.join(", ");
    format!("{shown}{more}: {why}; TVM prints them with the module by `mod.script(show_meta=True)`")
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn constant_is_called_by_key_and_index() {
        assert_eq!(place("ir.GenericConst[12]"), Some(("ir.GenericConst", 12)));
        for other in ["ir.GenericConst", "[0]", "a[]", "a[-1]", "a[0]x", "a[99999999999]"] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
