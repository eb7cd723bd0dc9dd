//! How large symbolic dims may be.

use crate::pass::PassError;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::symbolic::{Atom, Bounds, prove};
use rx_base::{Dim, Name};
use rx_ir::{Attr, RelaxFunction};

/// What the attributes of a function say of the dims of its signature.
///
/// # Errors
/// A bound that is no integer.
pub(super) fn of_function(function: &RelaxFunction) -> Result<Bounds, PassError> {
    let mut symbols = NameSet::default();
    let types = function.params.iter().map(|(_, ty)| ty).chain([&function.ret]);
    types.for_each(|ty| symbols.extend(ty.symbols()));
    let read = |key: &str| -> Result<NameMap<i64>, PassError> {
        let Some(attr) = function.attribute(key) else { return Ok(NameMap::default()) };
        let wrong = || PassError(format!("`{key}` is a dictionary of names and integers, it is {attr}"));
        let Attr::Dict(entries) = attr else { return Err(wrong()) };
        let entry = |(symbol, value): &(std::sync::Arc<str>, Attr)| -> Result<(Name, i64), PassError> {
            Ok((name(symbol), value.as_int().ok_or_else(wrong)?))
        };
        let bounds: NameMap<i64> = entries.iter().map(entry).collect::<Result<_, _>>()?;
        Ok(bounds.into_iter().filter(|(symbol, _)| symbols.contains(symbol)).collect())
    };
    let mut bounds = Bounds::default();
    bounds.lower = read("tir_var_lower_bound")?;
    bounds.upper = read("tir_var_upper_bound")?;
    Ok(bounds)
}

/// The largest that a dim may be: a number, or in terms of symbols that have no bound; the dim itself where it has none.
pub(super) fn largest(dim: &Dim, bounds: &Bounds) -> Dim {
    match prove::upper(dim, bounds) {
        Some(upper) => Dim::constant(upper),
        None => without_bounded(dim, bounds).unwrap_or_else(|| dim.clone()),
    }
}

/// A sum of products with its bounded symbols at their bounds, which symbols are factors of that are not negative; `None` where one
/// stands inside an operation.
fn without_bounded(dim: &Dim, bounds: &Bounds) -> Option<Dim> {
    let mut sum = Dim::constant(dim.constant_part());
    for (product, coefficient) in dim.terms() {
        let mut term = Dim::constant(*coefficient);
        for (atom, exponent) in product {
            let factor = match atom {
                Atom::Symbol(symbol) if bounds.upper.contains_key(symbol) => {
                    let extreme = if *coefficient > 0 { bounds.high(*symbol)? } else { bounds.low(*symbol) };
                    Dim::constant(extreme)
                }
                atom => {
                    let atom = Dim::from(atom.clone());
                    let mut is_bounded = false;
                    atom.for_each_symbol(&mut |symbol| is_bounded |= bounds.upper.contains_key(&symbol));
                    if is_bounded {
                        return None;
                    }
                    atom
                }
            };
            (0..*exponent).for_each(|_| term = &term * &factor);
        }
        sum = &sum + &term;
    }
    Some(sum)
}
