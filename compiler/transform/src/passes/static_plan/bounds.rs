//! Upper bounds of symbolic dims, for the sizes of storages.

use crate::pass::PassError;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::symbolic::{Atom, Bounds, prove};
use rx_base::{Dim, Name};
use rx_ir::{Attr, RelaxFunction};

/// Returns the bounds that the attributes `tir_var_lower_bound` and `tir_var_upper_bound` give for dims of the
/// signature.
///
/// # Errors
/// An attribute is not a dictionary of integers.
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

/// Returns an upper bound of a dim: a number if one can be proved, otherwise an expression in the symbols without an
/// upper bound. Returns the dim itself if neither is found. For example, `n * m` with `n` at most 8 gives `8 * m`.
pub(super) fn largest(dim: &Dim, bounds: &Bounds) -> Dim {
    match prove::upper(dim, bounds) {
        Some(upper) => Dim::constant(upper),
        None => without_bounded(dim, bounds).unwrap_or_else(|| dim.clone()),
    }
}

/// Replaces each symbol that has an upper bound in a sum of products: with that bound in a term with a positive
/// coefficient, otherwise with the symbol's lower bound (0 if none is known). For example, `n * m - n` with `n` from 2
/// to 8 becomes `8 * m - 2`. This gives an upper bound of the sum if the other factors are not negative; symbolic dims
/// never are. Symbols with only a lower bound stay. Returns `None` if a symbol with an upper bound is an operand of an
/// operation such as a floor division.
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
