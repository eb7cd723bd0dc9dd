//! Draws arguments for a function, from its types.

use crate::indexed_dims;
use crate::inputs::{Drawing, Input};
use rx_base::name::NameMap;
use rx_base::{DType, Dim, Name};
use rx_ir::{Function, StructInfo};
use rx_tensor::{Scalar, Tensor};

/// The maximum number of elements of an argument.
const MOST_ELEMENTS: i64 = 1 << 27;

/// Returns values for the symbolic dims of parameters, in the order in which to try them: different values (4, 6, 8, …
/// for the first nine symbols), all 4, all 16, and all 1, which fits most constraints.
pub(super) fn small_values(params: &[(Name, StructInfo)]) -> Vec<NameMap<i64>> {
    let mut symbols: Vec<Name> = Vec::new();
    for (_, ty) in params {
        ty.each_symbol(&mut |symbol| {
            if !symbols.contains(&symbol) {
                symbols.push(symbol);
            }
        });
    }
    let given = |value: &dyn Fn(usize) -> i64| {
        symbols.iter().enumerate().map(|(at, symbol)| (*symbol, value(at))).collect::<NameMap<i64>>()
    };
    let mut values = vec![given(&|at| 4 + 2 * i64::try_from(at).unwrap_or_default().min(8))];
    if !symbols.is_empty() {
        values.extend([given(&|_| 4), given(&|_| 16), given(&|_| 1)]);
    }
    values
}

/// Returns the values of the symbols in a function's own parameters.
pub(super) fn own_symbols(function: &Function, symbols: &NameMap<i64>) -> NameMap<i64> {
    let mut own: NameMap<i64> = NameMap::default();
    for (_, ty) in &function.params {
        ty.each_symbol(&mut |symbol| own.extend(symbols.get(&symbol).map(|value| (symbol, *value))));
    }
    own
}

/// Returns the old function's parameters with the new function's types, which may be more precise. The parameters
/// correspond by position if the functions have equally many, otherwise by name.
pub(super) fn types(old: &Function, new: &Function) -> Vec<(Name, StructInfo)> {
    let all_there = old.params.len() == new.params.len();
    let of = |(at, (param, own)): (usize, &(Name, StructInfo))| {
        let same = |(_, (known, _)): &(usize, &(Name, StructInfo))| known == param;
        let new = match all_there {
            true => new.params.get(at),
            false => new.params.iter().enumerate().find(same).map(|(_, param)| param),
        };
        (*param, new.map_or(own, |(_, ty)| ty).clone())
    };
    old.params.iter().enumerate().map(of).collect()
}

/// The integers to draw for vectors and scalars of unknown purpose: they may be shapes, axes or indices. The variants
/// are tried in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Integers {
    /// As defined in `docs/random.md`: 0 or 1.
    Drawn,
    /// The extents of the first tensor that has some, to be a valid shape for a reshape of it. For example, `[2, 3, 4]`
    /// gives `[2, 12]` for two integers and `[2, 3, 4, 1]` for four.
    Extents,
    /// Ones.
    Ones,
    /// Zeros.
    Zeros,
}

impl Integers {
    pub(super) const ALL: [Integers; 4] = [Integers::Drawn, Integers::Extents, Integers::Ones, Integers::Zeros];

    /// Returns `count` integers, given the extents of the first tensor. `None` keeps the drawn ones.
    fn chosen(self, extents: &[i64], count: usize) -> Option<Vec<i64>> {
        match self {
            Integers::Drawn => None,
            Integers::Ones => Some(vec![1; count]),
            Integers::Zeros => Some(vec![0; count]),
            Integers::Extents => {
                let kept = extents.len().min(count);
                let mut chosen: Vec<i64> =
                    extents.iter().take(kept).copied().chain(std::iter::repeat(1)).take(count).collect();
                // If there are more extents than integers, the last integer is the product of the rest.
                if let (Some(last), Some(rest)) = (chosen.last_mut(), extents.get(kept..)) {
                    *last = rest.iter().fold(*last, |product, extent| product.saturating_mul(*extent));
                }
                Some(chosen)
            }
        }
    }
}

/// Whether a type contains integers of unknown purpose: an integer tensor of rank 0, 1 or unknown rank, a shape with
/// unknown dims, or a scalar that is not the value of a symbol.
pub(super) fn integers_of_choice(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tensor(tensor) => {
            tensor.dtype.is_some_and(|dtype| dtype.is_int()) && tensor.shape.ndim().is_none_or(|ndim| ndim <= 1)
        }
        StructInfo::Shape(shape) => shape.dims().is_none(),
        StructInfo::Prim(prim) => prim.value.as_ref().and_then(Dim::as_symbol).is_none(),
        StructInfo::Tuple(fields) => fields.iter().any(integers_of_choice),
        _ => false,
    }
}

/// Draws arguments of these types; parameters in `bound` get their constants.
///
/// # Errors
/// Returns an error for a parameter that cannot be drawn or has more than [`MOST_ELEMENTS`] elements.
pub(super) fn arguments(
    old: &Function,
    types: &[(Name, StructInfo)],
    bound: &NameMap<Tensor>,
    drawing: &Drawing<'_>,
    open: DType,
    integers: Integers,
) -> Result<Vec<Input>, String> {
    let indexed = indexed_dims(old);
    let mut drawn = Vec::new();
    for (at, (param, ty)) in types.iter().enumerate() {
        if let Some(tensor) = bound.get(param) {
            drawn.push(Input::Tensor(tensor.duplicate().map_err(|error| error.to_string())?));
            continue;
        }
        if elements(ty, drawing) > MOST_ELEMENTS {
            return Err(format!("the parameter `{param}` is large"));
        }
        // Raw weights, which are prepared in a separate function, are not parameters of `old`.
        let is_own = old.params.get(at).is_some_and(|(own, _)| own == param);
        let below = indexed.get(at).filter(|_| is_own).map(Vec::as_slice).unwrap_or_default();
        let input = drawing
            .draw(at, &concrete(ty, open), below)
            .map_err(|why| format!("the parameter `{param}` is {ty}: {why}"))?;
        drawn.push(input);
    }
    let extents = drawn.iter().find_map(extents).unwrap_or_default();
    for (at, (input, (param, ty))) in drawn.iter_mut().zip(types).enumerate() {
        let is_index = indexed.get(at).is_some_and(|dims| !dims.is_empty());
        if !is_index && !bound.contains_key(param) {
            choose(input, ty, integers, &extents);
        }
    }
    Ok(drawn)
}

/// Returns the shape of the first tensor in an argument that has dims and is not a vector of integers.
fn extents(input: &Input) -> Option<Vec<i64>> {
    match input {
        Input::Tensor(tensor) => {
            let is_choice = !tensor.dtype().is_float() && tensor.shape().len() == 1;
            (!tensor.shape().is_empty() && !is_choice).then(|| tensor.shape().to_vec())
        }
        Input::Tuple(fields) => fields.iter().find_map(extents),
        Input::Shape(_) | Input::Scalar(_) => None,
    }
}

/// Replaces drawn integers of unknown purpose by chosen ones.
fn choose(input: &mut Input, ty: &StructInfo, integers: Integers, beside: &[i64]) {
    match (input, ty) {
        (Input::Tuple(fields), StructInfo::Tuple(types)) => {
            fields.iter_mut().zip(&**types).for_each(|(field, ty)| choose(field, ty, integers, beside));
        }
        (Input::Tensor(tensor), ty) if integers_of_choice(ty) && tensor.shape().len() <= 1 => {
            let chosen = integers.chosen(beside, tensor.len()).unwrap_or_default();
            chosen.into_iter().enumerate().for_each(|(at, value)| tensor.set(at, Scalar::Int(value)));
        }
        (Input::Shape(dims), StructInfo::Shape(shape)) if shape.dims().is_none() => {
            *dims = integers.chosen(beside, dims.len()).unwrap_or_else(|| std::mem::take(dims));
        }
        (Input::Scalar(Scalar::Int(value)), ty) if integers_of_choice(ty) => {
            *value = integers.chosen(beside, 1).and_then(|chosen| chosen.first().copied()).unwrap_or(*value);
        }
        _ => {}
    }
}

/// Completes a type that is not fully known: a missing dtype becomes `open`, missing extents become 2, and a missing
/// rank becomes 2.
pub(super) fn concrete(ty: &StructInfo, open: DType) -> StructInfo {
    match ty {
        StructInfo::Tensor(tensor) if tensor.shape.dims().is_none() || tensor.dtype.is_none() => {
            let few = || vec![Dim::constant(2); tensor.shape.ndim().unwrap_or(2)];
            let dims = tensor.shape.dims().map_or_else(few, <[Dim]>::to_vec);
            StructInfo::tensor(dims, Some(tensor.dtype.unwrap_or(open)))
        }
        StructInfo::Shape(shape) if shape.dims().is_none() => {
            StructInfo::shape(vec![Dim::constant(2); shape.ndim().unwrap_or(2)])
        }
        StructInfo::Tuple(fields) => {
            StructInfo::tuple(fields.iter().map(|field| concrete(field, open)).collect::<Vec<_>>())
        }
        other => other.clone(),
    }
}

/// Returns the number of elements of a type.
fn elements(ty: &StructInfo, drawing: &Drawing<'_>) -> i64 {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().map(|field| elements(field, drawing)).fold(0, i64::saturating_add),
        _ => {
            let dims = ty.as_tensor().and_then(|tensor| tensor.shape.dims()).unwrap_or_default();
            dims.iter().filter_map(|dim| drawing.value(dim)).fold(1, i64::saturating_mul)
        }
    }
}
