//! Suggests attribute values for which a call would have the type that the program declares for it.
//!
//! No operator needs a description of its attributes' effects: its struct-info rule is run again with one attribute
//! changed to nearby values, until a value fits. For example, for a convolution declared to keep its extents but called
//! with `padding=0`, the suggestion is `padding=1`.

use crate::call::{Arg, CallInfo};
use crate::schema::{AttrKind, ParamKind};
use rx_base::Answer;
use rx_base::symbolic::Bounds;
use rx_base::symbolic::prove;
use rx_ir::{Attr, Expr, Shape, StructInfo, TensorInfo};
use std::fmt;

/// The maximum number of rule runs per error.
const MOST_RUNS: usize = 160;

/// The number of values tried on each side of the given one.
const NEAREST: i64 = 6;

/// A suggested value of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The attribute.
    pub param: &'static str,
    /// The value that would fit.
    pub value: Attr,
}

/// Formats the suggestion as an argument, for example `padding=[1, 1]`.
impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.param, self.value)
    }
}

/// Returns the attributes for which a change of one alone gives the call the type `wanted`, nearest values first.
pub fn suggestions(call: &CallInfo<'_>, wanted: &StructInfo) -> Vec<Suggestion> {
    let mut search = Search { call, wanted, runs: MOST_RUNS };
    let mut found: Vec<(i64, Suggestion)> = Vec::new();
    for (at, param) in call.schema.params.iter().enumerate() {
        let ParamKind::Attr(kind) = param.kind else { continue };
        let given = match call.args.get(at) {
            Some(Arg::Attr(given)) => given,
            Some(Arg::Absent) => &Attr::None,
            _ => continue,
        };
        let grows = !param.name.ends_with("axis") && !param.name.ends_with("axes");
        let nearest = search.nearest(at, candidates(kind, given, wanted), grows);
        found.extend(nearest.map(|(distance, value)| (distance, Suggestion { param: param.name, value })));
    }
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().map(|(_, suggestion)| suggestion).collect()
}

/// A search for attribute values.
struct Search<'c> {
    call: &'c CallInfo<'c>,
    wanted: &'c StructInfo,
    /// The remaining number of rule runs.
    runs: usize,
}

impl Search<'_> {
    /// Returns the nearest value of attribute `at` that fits, with its distance. Of equally near values, that of the
    /// first series counts. `grows` is as in [`Search::first_fit`].
    fn nearest(&mut self, at: usize, all: Vec<Series>, grows: bool) -> Option<(i64, Attr)> {
        let mut nearest: Option<(i64, Attr)> = None;
        for mut series in all {
            let nearer = |(distance, _): &(i64, Attr)| usize::try_from(distance - series.nearest).unwrap_or(0);
            series.values.truncate(nearest.as_ref().map_or(usize::MAX, nearer));
            if let Some((steps, value)) = self.first_fit(at, series.values, grows) {
                nearest = Some((series.nearest + steps, value));
            }
        }
        nearest
    }

    /// Returns the first of the values of attribute `at` that fits, with its index. `grows` is whether extents grow or
    /// shrink with the value, as with strides, padding, dilation and repetitions, unlike with an axis. The values between
    /// the first and the last are then tried only if the wanted extent is between those that these two give.
    fn first_fit(&mut self, at: usize, mut values: Vec<Attr>, grows: bool) -> Option<(i64, Attr)> {
        let first = self.result(at, values.first()?);
        if first.as_ref().is_some_and(|ty| self.fits(ty)) {
            return Some((0, values.swap_remove(0)));
        }
        if let [_, between @ .., last] = &values[..]
            && grows
            && !between.is_empty()
            && let (Some(first), Some(last)) = (first, self.result(at, last))
            && !is_between(&first, &last, self.wanted)
        {
            return None;
        }
        let fits = |value: &Attr| self.result(at, value).is_some_and(|ty| self.fits(&ty));
        let found = values.iter().skip(1).position(fits)? + 1;
        Some((i64::try_from(found).ok()?, values.swap_remove(found)))
    }

    /// Returns the type of the call with another value of attribute `at`.
    fn result(&mut self, at: usize, value: &Attr) -> Option<StructInfo> {
        self.runs = self.runs.checked_sub(1)?;
        let mut args: Vec<Arg<'_>> = self.call.args.to_vec();
        *args.get_mut(at)? = Arg::Attr(value);
        result(self.call, &args)
    }

    fn fits(&self, ty: &StructInfo) -> bool {
        fits(ty, self.wanted, self.call.bounds)
    }
}

/// Whether each constant extent of `wanted` is between those of two types.
fn is_between(first: &StructInfo, last: &StructInfo, wanted: &StructInfo) -> bool {
    let dims = |ty: &StructInfo| -> Option<Vec<Option<i64>>> {
        Some(ty.as_tensor()?.shape.dims()?.iter().map(rx_base::Dim::as_constant).collect())
    };
    let (Some(first), Some(last), Some(wanted)) = (dims(first), dims(last), dims(wanted)) else { return true };
    let between = |((first, last), wanted): ((&Option<i64>, &Option<i64>), &Option<i64>)| match (first, last, wanted) {
        (Some(first), Some(last), Some(wanted)) => first.min(last) <= wanted && wanted <= first.max(last),
        _ => true,
    };
    first.len() != wanted.len() || last.len() != wanted.len() || first.iter().zip(&last).zip(&wanted).all(between)
}

/// Returns an operand that needs another shape for the call to have the type `wanted`: the index of its parameter, and
/// the type that it needs. Only the shape of `wanted` is tried, so these are operands whose shape the call keeps.
///
/// For example, for `nn.relu` or `add` of a bias, the operand `x` must have the shape of the result.
pub fn shaping_operand(call: &CallInfo<'_>, wanted: &StructInfo) -> Option<(usize, StructInfo)> {
    let shape = &wanted.as_tensor().filter(|tensor| tensor.shape.dims().is_some())?.shape;
    call.args.iter().enumerate().find_map(|(at, arg)| {
        let Arg::Operand(operand) = arg else { return None };
        let StructInfo::Tensor(own) = &operand.ty else { return None };
        if own.shape == *shape || own.shape.ndim() != shape.ndim() {
            return None;
        }
        let ty = StructInfo::from(TensorInfo { shape: shape.clone(), ..TensorInfo::clone(own) });
        let changed = Expr { ty: ty.clone(), ..Expr::clone(operand) };
        let mut args = call.args.to_vec();
        *args.get_mut(at)? = Arg::Operand(&changed);
        gives(call, &args, wanted).then_some((at, ty))
    })
}

/// Whether the call has the type `wanted` with the arguments `args`.
fn gives(call: &CallInfo<'_>, args: &[Arg<'_>], wanted: &StructInfo) -> bool {
    result(call, args).is_some_and(|ty| fits(&ty, wanted, call.bounds))
}

/// Returns the type of the call with the arguments `args`.
fn result(call: &CallInfo<'_>, args: &[Arg<'_>]) -> Option<StructInfo> {
    (call.schema.infer)(&CallInfo::trial(call.schema, args, call.bounds)).ok()
}

/// Values of an attribute in one direction from the given one, nearest first.
struct Series {
    /// The distance of the first value; each next one is farther by 1.
    nearest: i64,
    values: Vec<Attr>,
}

/// Returns values near the given one. In a list, either all elements change equally, or one element changes.
fn candidates(kind: AttrKind, given: &Attr, wanted: &StructInfo) -> Vec<Series> {
    match (kind, given) {
        (AttrKind::Bool, Attr::Bool(value)) => vec![Series { nearest: 0, values: vec![Attr::Bool(!value)] }],
        (AttrKind::DType, Attr::Str(_) | Attr::None) => {
            let dtype = wanted.as_tensor().and_then(|tensor| tensor.dtype);
            let value = dtype.map(|dtype| Attr::Str(dtype.to_string().into()));
            vec![Series { nearest: 0, values: value.into_iter().collect() }]
        }
        (AttrKind::Int | AttrKind::IntOrNone | AttrKind::Ints, Attr::Int(dim)) => {
            let Some(value) = dim.as_constant() else { return Vec::new() };
            DIRECTIONS.map(|step| Series { nearest: 1, values: near(value, step).map(int).collect() }).into()
        }
        (AttrKind::Ints | AttrKind::IntList, Attr::List(items)) => lists(items),
        _ => Vec::new(),
    }
}

fn lists(items: &[Attr]) -> Vec<Series> {
    let Some(values) = items.iter().map(Attr::as_int).collect::<Option<Vec<i64>>>() else { return Vec::new() };
    let list = |values: Vec<i64>| Attr::List(values.into_iter().map(int).collect());
    let mut found = Vec::new();
    let alike = values.iter().all(|value| Some(value) == values.first());
    if let (true, Some(first)) = (alike, values.first()) {
        found.extend(DIRECTIONS.map(|step| Series {
            nearest: 1,
            values: near(*first, step).map(|other| list(vec![other; values.len()])).collect(),
        }));
    }
    // A change of one side of a padding, or of one of many equal strides, is unlikely to be intended.
    if values.len() > 1 && !(alike && values.len() > 3) {
        for step in DIRECTIONS {
            for (at, value) in values.iter().enumerate().take(4) {
                let changed = |other: i64| {
                    let mut changed = values.clone();
                    changed.iter_mut().skip(at).take(1).for_each(|value| *value = other);
                    list(changed)
                };
                // A change of one element is less likely than an equal change of all.
                found.push(Series { nearest: 1 + NEAREST, values: near(*value, step).map(changed).collect() });
            }
        }
    }
    found
}

/// The steps from a value to the values near it: of equally near values, the greater one is suggested.
const DIRECTIONS: [i64; 2] = [1, -1];

/// Returns the values near `value` in one direction, nearest first. They are negative only if `value` is: most attributes
/// are counts, and axes are suggested as non-negative.
fn near(value: i64, step: i64) -> impl Iterator<Item = i64> {
    (1..=NEAREST).map(move |distance| value.saturating_add(distance * step)).filter(move |other| *other >= value.min(0))
}

fn int(value: i64) -> Attr {
    Attr::Int(value.into())
}

/// Whether a value of type `ty` has every part that `wanted` states.
fn fits(ty: &StructInfo, wanted: &StructInfo, bounds: &Bounds) -> bool {
    match (ty, wanted) {
        (StructInfo::Tuple(fields), StructInfo::Tuple(wanted)) => {
            fields.len() == wanted.len()
                && fields.iter().zip(wanted.iter()).all(|(field, wanted)| fits(field, wanted, bounds))
        }
        (ty, wanted) => match (ty.as_tensor(), wanted.as_tensor()) {
            (Some(tensor), Some(wanted)) => {
                (wanted.dtype.is_none() || tensor.dtype == wanted.dtype)
                    && shape_fits(&tensor.shape, &wanted.shape, bounds)
            }
            _ => ty == wanted,
        },
    }
}

fn shape_fits(shape: &Shape, wanted: &Shape, bounds: &Bounds) -> bool {
    match (shape.dims(), wanted.dims()) {
        (Some(dims), Some(wanted)) => {
            let equal = |(a, b)| prove::equal(a, b, bounds) == Answer::Proved;
            dims.len() == wanted.len() && dims.iter().zip(wanted).all(equal) && !dims.iter().any(rx_base::Dim::is_error)
        }
        (_, None) => wanted.ndim().is_none_or(|ndim| shape.ndim() == Some(ndim)),
        (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{shaping_operand, suggestions};
    use crate::tests::{Given, call_of, dims, flag, numbers, tensor, text};
    use rx_base::DType;
    use rx_ir::StructInfo;

    fn found(operator: &str, args: &[(&str, Given)], wanted: &str) -> Vec<String> {
        let wanted = StructInfo::tensor(dims(wanted), Some(DType::FLOAT32));
        let suggestions = call_of(operator, args, |call| suggestions(call, &wanted));
        suggestions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn operand_whose_shape_is_kept_is_found() {
        let shaping = |operator: &str, args: &[(&str, Given)], wanted: &str| {
            let wanted = StructInfo::tensor(dims(wanted), Some(DType::FLOAT32));
            call_of(operator, args, |call| shaping_operand(call, &wanted)).map(|(at, ty)| format!("{at} {ty}"))
        };
        let (bias, value) = (|| tensor("1 4 1 1:float32"), || tensor("1 4 6 6:float32"));
        let needed = "R.Tensor((1, 4, 8, 8), dtype=\"float32\")";
        assert_eq!(shaping("nn.relu", &[("data", value())], "1 4 8 8"), Some(format!("0 {needed}")));
        assert_eq!(shaping("add", &[("x1", bias()), ("x2", value())], "1 4 8 8"), Some(format!("1 {needed}")));
        assert_eq!(shaping("nn.relu", &[("data", value())], "1 4 6 6"), None);
        assert_eq!(shaping("permute_dims", &[("x", tensor("2 3:float32"))], "5 2"), None);
    }

    #[test]
    fn attribute_value_that_fits_is_found() {
        let conv = [
            ("data", tensor("1 100 4 4:float32")),
            ("weight", tensor("100 64 3 3:float32")),
            ("strides", numbers(&[2, 2])),
            ("padding", numbers(&[1, 1, 1, 1])),
            ("kernel_layout", text("IOHW")),
        ];
        assert_eq!(found("nn.conv2d_transpose", &conv, "1 64 8 8"), ["output_padding=[1, 1]"]);
        let conv = [
            ("data", tensor("1 3 224 224:float32")),
            ("weight", tensor("64 3 3 3:float32")),
            ("padding", numbers(&[0, 0, 0, 0])),
        ];
        assert_eq!(found("nn.conv2d", &conv, "1 64 224 224"), ["padding=[1, 1, 1, 1]"]);
        assert_eq!(found("nn.conv2d", &conv, "1 64 220 220"), ["dilation=[2, 2]"]);
        assert_eq!(found("sum", &[("x", tensor("4 5:float32")), ("axis", numbers(&[1]))], "4 1"), ["keepdims=True"]);
        let sum = [("x", tensor("2 3 4 5:float32")), ("axis", numbers(&[3])), ("keepdims", flag(true))];
        assert_eq!(found("sum", &sum, "2 1 4 5"), ["axis=[1]"]);
        let widened =
            [("data", tensor("1 3 64 64:float32")), ("weight", tensor("8 3 3 3:float32")), ("padding", numbers(&[1]))];
        assert_eq!(found("nn.conv2d", &widened, "1 8 70 70"), ["padding=[4]"]);
        assert_eq!(found("nn.conv2d", &widened, "1 8 16 16"), ["strides=[4, 4]"]);
    }
}
