//! Composition of two functions that prepare weights, for a module in which weights were prepared before.

use super::mistake;
use crate::names::{FreshNames, of_function};
use crate::pass::PassError;
use crate::passes::canonicalize::canonicalize;
use crate::substitute::{rename, replace_in_sequence};
use rx_base::name::NameMap;
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{Block, RelaxFunction};

/// Returns a function that passes the result of `first` to `second`.
///
/// # Errors
/// A function does not have exactly one parameter, or an operator in `second` rejects the types of the result of
/// `first`.
pub(super) fn composed(first: &RelaxFunction, mut second: RelaxFunction) -> Result<RelaxFunction, PassError> {
    let ([_], [(given, _)]) = (&first.params[..], &second.params[..]) else {
        return Err(mistake(&format!("`{}` is there already, and takes not one tuple", first.name)));
    };
    let given = *given;
    let mut dims: NameMap<Dim> = NameMap::default();
    second.params.iter().for_each(|(_, ty)| crate::substitute::unify(ty, &first.ret, &mut dims));
    let mut fresh = FreshNames::of(first);
    let mut names: NameMap<Name> = NameMap::default();
    let mut defined: Vec<Name> = of_function(&second).into_iter().collect();
    defined.sort_unstable_by_key(|name| name.as_str());
    for own in defined.into_iter().filter(|own| !dims.contains_key(own)) {
        names.insert(own, fresh.like(own));
    }
    let dim = |symbol: Name| dims.get(&symbol).cloned().or_else(|| names.get(&symbol).map(|own| Dim::symbol(*own)));
    let variable = |variable: Name| names.get(&variable).copied();
    let renaming = Renaming { dim: &dim, variable: &variable };
    rename(&mut second.body, &renaming);
    let given = names.get(&given).copied().unwrap_or(given);
    let values = [(given, first.body.result.clone())].into_iter().collect();
    replace_in_sequence(&mut second.body, &values);
    let mut whole = first.clone();
    for block in second.body.blocks {
        match (whole.body.blocks.last_mut(), block) {
            (Some(Block { outputs: Some(seen), bindings }), Block { outputs: Some(outputs), bindings: mut more }) => {
                bindings.append(&mut more);
                seen.extend(outputs);
            }
            (_, block) => whole.body.blocks.push(block),
        }
    }
    whole.body.result = second.body.result;
    whole.ret = renaming.ty(&second.ret);
    canonicalize(&mut whole)?;
    Ok(whole)
}
