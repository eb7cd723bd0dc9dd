//! Operators that join several tensors into one (`concat`, `stack`) or make several (`split`, `meshgrid`): schemas and
//! struct-info rules.

use super::compute::join as compute;
use super::join_layout;
use super::operands::{ceil_div, common_vdevice, int_attr, ints_attr, tensors};
use super::values::{arrange, join};
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace, Problem, operand};
use crate::cost::Cost;
use crate::operands::{rank_like, tensor_like};
use crate::schema::{AttrKind, Default, Param, ParamKind, Schema, Traits};
use rx_base::{Answer, Code, DType, Dim, counted};
use rx_ir::{Attr, Shape, StructInfo, TensorInfo};

/// The maximum number of parts of `split`: more than any program needs, and small enough to fit in memory.
const MAX_SECTIONS: i64 = 1 << 16;

/// The maximum total number of dims in the types of the parts of a `split`.
const MAX_DIMS: usize = 1 << 20;

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("concat", "Joins tensors along an existing axis.", concat)
        .taking(&[
            Param::operand("tensors", ParamKind::Tensors, "The tensors, of one dtype, equal in shape off the axis."),
            Param::attr(
                "axis",
                AttrKind::IntOrNone,
                Default::Int(0),
                "The axis along which to join; `None` joins tensors of one dimension.",
            ),
        ])
        .lowered_by(compute::concat)
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("tensors").computing(join::joined).laid_out(join_layout::concat)),
    Schema::new("stack", "Joins tensors along a new axis.", stack)
        .taking(&[
            Param::operand("tensors", ParamKind::Tensors, "The tensors, all of one shape and dtype."),
            Param::optional_attr("axis", AttrKind::Int, "The index of the new axis in the result; 0 if omitted."),
        ])
        .lowered_by(compute::stack)
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("tensors").computing(join::joined).laid_out(join_layout::stack)),
    Schema::new("split", "Cuts a tensor along an axis into a tuple of parts.", split)
        .taking(&[
            Param::tensor("x", "The input."),
            Param::required_attr(
                "indices_or_sections",
                AttrKind::Ints,
                "A number of parts, of which all but the last have the length divided by it, rounded up; \
                 or the ascending places at which to cut.",
            ),
            Param::int("axis", 0, "The axis along which to cut."),
        ])
        .lowered_by(compute::split)
        .costing(Cost::Copy)
        .with_traits(Traits::OPAQUE.keeping("x").computing(arrange::split).laid_out(join_layout::split)),
    Schema::new(
        "meshgrid",
        "For each of n coordinate vectors, a tensor of n dimensions that repeats it along the other axes.",
        meshgrid,
    )
    .taking(&[
        Param::operand("tensors", ParamKind::Tensors, "Coordinates along each axis: tensors of one dimension."),
        Param::optional_attr(
            "indexing",
            AttrKind::Choice(&["ij", "xy"]),
            "`ij` for matrix order, which it is when left out, `xy` for Cartesian order.",
        ),
    ])
    .lowered_by(compute::meshgrid)
    .costing(Cost::Copy)
    .with_traits(Traits::OPAQUE.keeping("tensors").computing(join::meshgrid)),
];

/// The common dtype, device and rank of the joined tensors.
struct Common {
    dtype: Option<DType>,
    dtype_error: bool,
    vdevice: Option<rx_ir::VDevice>,
    ndim: Option<usize>,
    shape_error: bool,
}

impl Common {
    /// Determines the common properties. Tensors must have the rank `ndim`, if it is given.
    fn of(call: &CallInfo<'_>, tensors: &[&TensorInfo], ndim: Option<usize>) -> Result<Common, Problem> {
        if tensors.is_empty() {
            let message = format_args!("`tensors` is empty, at least one tensor is needed");
            return Err(call.error(Code::ArgumentType, ParamPlace::Param("tensors"), message).into());
        }
        let mut common = Common {
            dtype: None,
            dtype_error: tensors.iter().any(|tensor| tensor.dtype_error),
            vdevice: common_vdevice(tensors.iter().copied()),
            ndim,
            shape_error: tensors.iter().any(|tensor| tensor.shape == Shape::Error),
        };
        let (mut dtype_from, mut ndim_from) = (0, None);
        for (at, tensor) in tensors.iter().enumerate() {
            match (common.dtype, tensor.dtype) {
                (Some(known), Some(dtype)) if known != dtype => {
                    return Err(dtype_clash(call, (dtype_from, known), (at, dtype)));
                }
                (None, Some(dtype)) => (common.dtype, dtype_from) = (Some(dtype), at),
                _ => {}
            }
            match (common.ndim, tensor.shape.ndim()) {
                (Some(known), Some(ndim)) if known != ndim => {
                    return Err(rank_clash(call, (ndim_from, known), (at, ndim)));
                }
                (None, Some(ndim)) => (common.ndim, ndim_from) = (Some(ndim), Some(at)),
                _ => {}
            }
        }
        if tensors.iter().any(|tensor| tensor.dtype.is_none()) {
            common.dtype = None;
        }
        Ok(common)
    }

    fn tensor(&self, shape: Shape) -> StructInfo {
        let shape = if self.shape_error { Shape::Error } else { shape };
        TensorInfo { shape, dtype: self.dtype, vdevice: self.vdevice, dtype_error: self.dtype_error, readings: None }
            .into()
    }
}

fn element_label(call: &CallInfo<'_>, at: usize) -> String {
    call.ty("tensors").as_tuple().and_then(|fields| fields.get(at)).map(StructInfo::to_string).unwrap_or_default()
}

fn dtype_clash(call: &CallInfo<'_>, (first, a): (usize, DType), (second, b): (usize, DType)) -> Problem {
    let message = format_args!("`tensors[{first}]` is {a}, `tensors[{second}]` is {b}; all must have one dtype");
    call.error(Code::DtypeMismatch, ParamPlace::Element("tensors", second), message)
        .with_primary_label(element_label(call, second))
        .with_label(ParamPlace::Element("tensors", first), element_label(call, first))
        .into()
}

fn rank_clash(call: &CallInfo<'_>, (first, a): (Option<usize>, usize), (second, b): (usize, usize)) -> Problem {
    let place = ParamPlace::Element("tensors", second);
    let report = match first {
        Some(first) => {
            let message =
                format_args!("`tensors[{first}]` has {}, `tensors[{second}]` has {b}", counted(a, "dimension"));
            call.error(Code::TensorNdimMismatch, place, message)
                .with_label(ParamPlace::Element("tensors", first), element_label(call, first))
        }
        None => {
            let message = format_args!("axis=None joins tensors of one dimension, `tensors[{second}]` has {b}");
            call.error(Code::TensorNdimMismatch, place, message).with_help("say along which axis to join: axis=0")
        }
    };
    report.with_primary_label(element_label(call, second)).into()
}

/// Returns the dims that all tensors share, with `None` at axes where equality is unknown. Axis `joined` is not
/// compared.
fn shared_dims(
    call: &CallInfo<'_>,
    shapes: &[(usize, &[Dim])],
    joined: Option<usize>,
) -> Result<Vec<Option<Dim>>, Problem> {
    let Some(((first, dims), rest)) = shapes.split_first() else { return Ok(Vec::new()) };
    let mut result: Vec<Option<Dim>> = dims.iter().cloned().map(Some).collect();
    for (axis, (known, shared)) in std::iter::zip(dims.iter(), &mut result).enumerate() {
        if Some(axis) == joined {
            continue;
        }
        for (at, other) in rest.iter().filter_map(|(at, dims)| Some((at, dims.get(axis)?))) {
            match call.equal(known, other) {
                Answer::Proved if known.is_error() => *shared = shared.take().map(|_| other.clone()),
                Answer::Proved => {}
                Answer::Open => *shared = None,
                Answer::Refuted => return Err(shape_clash(call, axis, (*first, known), (*at, other))),
            }
        }
    }
    Ok(result)
}

fn shape_clash(call: &CallInfo<'_>, axis: usize, (first, a): (usize, &Dim), (second, b): (usize, &Dim)) -> Problem {
    let message = format_args!("axis {axis} is {a} in `tensors[{first}]` and {b} in `tensors[{second}]`");
    call.error(Code::ConcatShapeMismatch, ParamPlace::Element("tensors", second), message)
        .with_primary_label(format!("{}: axis {axis} is {b}", element_label(call, second)))
        .with_label(
            ParamPlace::Element("tensors", first),
            format!("{}: axis {axis} is {a}", element_label(call, first)),
        )
        .with_note(match call.short_name() {
            "stack" => "stacked tensors have one shape",
            _ => "concatenated tensors agree on every axis but the one they are joined along",
        })
        .into()
}

/// Returns the shapes whose dims are all known, with their positions in the tuple.
fn known_shapes<'a>(tensors: &[&'a TensorInfo]) -> Vec<(usize, &'a [Dim])> {
    tensors.iter().enumerate().filter_map(|(at, tensor)| Some((at, tensor.shape.dims()?))).collect()
}

fn concat(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let tensors = tensors(call, "tensors")?;
    let axis = int_attr(call, "axis")?;
    let common = Common::of(call, &tensors, if axis.is_none() { Some(1) } else { None })?;
    let (Some(ndim), false) = (common.ndim, common.shape_error) else {
        return Ok(match &tensors[..] {
            [only] => StructInfo::from((*only).clone()),
            _ => common.tensor(Shape::Unknown),
        });
    };
    let axis = normalize_axis(call, "axis", ndim, axis.unwrap_or(0))?;
    if let [only] = &tensors[..] {
        return Ok(StructInfo::from((*only).clone()));
    }
    let shapes = known_shapes(&tensors);
    let shared = shared_dims(call, &shapes, Some(axis))?;
    let joined = shapes.iter().filter_map(|(_, dims)| dims.get(axis)).fold(Dim::constant(0), |sum, dim| &sum + dim);
    let result: Option<Vec<Dim>> =
        shared.into_iter().enumerate().map(|(at, dim)| if at == axis { Some(joined.clone()) } else { dim }).collect();
    Ok(common.tensor(match result {
        Some(dims) if tensors.iter().all(|tensor| tensor.shape.written_dims().is_some()) => Shape::known(dims),
        _ => Shape::Rank(ndim),
    }))
}

/// Rejects a first tensor of unknown rank. The axis is checked against its rank, and TVM treats an unknown rank as
/// different from the ranks of the other tensors.
fn rank_known(call: &CallInfo<'_>, tensors: &[&TensorInfo]) -> Result<Option<()>, Problem> {
    if tensors.first().is_none_or(|tensor| tensor.shape.ndim().is_some()) {
        return Ok(Some(()));
    }
    if tensors.iter().any(|tensor| tensor.shape == Shape::Error) {
        return Ok(None);
    }
    let message = format_args!("the rank of `tensors[0]` must be known, it is {}", element_label(call, 0));
    let report = call.error(Code::TensorNdimMismatch, ParamPlace::Element("tensors", 0), message);
    Err(report.with_help("a match_cast states a fact that is known when the program runs").into())
}

fn stack(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let tensors = tensors(call, "tensors")?;
    let common = Common::of(call, &tensors, None)?;
    let (Some(ndim), false) = (rank_known(call, &tensors)?.and(common.ndim), common.shape_error) else {
        return Ok(common.tensor(Shape::Unknown));
    };
    let axis = normalize_axis(call, "axis", ndim.saturating_add(1), int_attr(call, "axis")?.unwrap_or(0))?;
    let shapes = known_shapes(&tensors);
    let shared: Option<Vec<Dim>> = shared_dims(call, &shapes, None)?.into_iter().collect();
    let (single, written) = (tensors.len() == 1, tensors.iter().all(|tensor| tensor.shape.written_dims().is_some()));
    Ok(common.tensor(match shared {
        // As in TVM, a single tensor may have a variable as its shape.
        Some(mut dims) if axis <= dims.len() && shapes.len() == tensors.len() && (single || written) => {
            dims.insert(axis, Dim::constant(i64::try_from(tensors.len()).unwrap_or(i64::MAX)));
            call.derive(Some(axis), || format!("as many as tensors: {}", tensors.len()));
            Shape::known(dims)
        }
        _ => Shape::Rank(ndim.saturating_add(1)),
    }))
}

fn split(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    const ATTR: &str = "indices_or_sections";
    let x = call.tensor("x")?;
    let axis = int_attr(call, "axis")?.unwrap_or(0);
    let axis = x.shape.ndim().map(|ndim| normalize_axis(call, "axis", ndim, axis)).transpose()?;
    let length = axis.and_then(|axis| x.shape.written_dims()?.get(axis));
    let (count, lengths) = match call.attr(ATTR) {
        Some(Attr::List(_)) => {
            let cuts = ints_attr(call, ATTR)?.unwrap_or_default();
            let lengths = length.map(|length| lengths_between(&cuts, length));
            if let (Some(lengths), Some(length)) = (&lengths, length) {
                derive_between(call, axis, &cuts, length, lengths);
            }
            (cuts.len().saturating_add(1), lengths)
        }
        _ => {
            let sections = int_attr(call, ATTR)?.ok_or(Problem::Propagate)?;
            if !(1..=MAX_SECTIONS).contains(&sections) {
                let message = format_args!("`{ATTR}` is {sections}, it must be from 1 to {MAX_SECTIONS}");
                return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param(ATTR), message).into());
            }
            let count = usize::try_from(sections).unwrap_or(1);
            let lengths = length.map(|length| equal_lengths(call, sections, length));
            if let (Some(lengths), Some(length)) = (&lengths, length) {
                derive_equal(call, axis, sections, length, lengths);
            }
            (count, lengths)
        }
    };
    if count == 1 {
        return Ok(call.ty("x").clone());
    }
    let part = |length: Option<Dim>| match (length, x.shape.written_dims(), axis) {
        // Returns only the rank if the dims of all parts would exceed the memory limit.
        (Some(length), Some(dims), Some(axis)) if dims.len().saturating_mul(count) <= MAX_DIMS => {
            let replaced = dims.iter().enumerate().map(|(at, dim)| if at == axis { &length } else { dim });
            tensor_like(x, Shape::known(replaced.cloned().collect::<Vec<_>>()))
        }
        _ => tensor_like(x, rank_like(&x.shape, x.shape.ndim())),
    };
    let parts: Vec<StructInfo> = match lengths {
        Some(lengths) => lengths.into_iter().map(|length| part(Some(length))).collect(),
        None => vec![part(None); count],
    };
    Ok(StructInfo::tuple(parts))
}

/// Returns the lengths between cuts. A cut outside the axis counts as the nearer end, and lengths are at least 0. For
/// example, cuts `[2, 5]` of length 6 give 2, 3 and 1.
fn lengths_between(cuts: &[i64], length: &Dim) -> Vec<Dim> {
    let zero = Dim::constant(0);
    let cuts: Vec<Dim> = cuts.iter().map(|cut| Dim::constant((*cut).max(0))).collect();
    let starts = [&zero].into_iter().chain(&cuts);
    let between = |(start, end): (&Dim, &Dim)| (&end.minimum(length) - &start.minimum(length)).maximum(&zero);
    let mut lengths: Vec<Dim> = std::iter::zip(starts, &cuts).map(between).collect();
    // The rest after the last cut. `length - min(cut, length)` has the same value but is a longer expression.
    lengths.push((length - cuts.last().unwrap_or(&zero)).maximum(&zero));
    lengths
}

/// Returns `sections` lengths: each is the quotient rounded up, and the last one is the rest. For example, 7 in 3
/// sections gives 3, 3, 1.
fn equal_lengths(call: &CallInfo<'_>, sections: i64, length: &Dim) -> Vec<Dim> {
    let each = ceil_div(length, &Dim::constant(sections));
    let last = length - &(&each * &Dim::constant(sections - 1));
    // Five elements in four parts would be 2 + 2 + 2 - 1 by this formula, so a negative rest becomes 0.
    let zero = Dim::constant(0);
    let last = if call.at_least(&last, &zero) == Answer::Refuted { zero } else { last };
    let mut lengths = vec![each; usize::try_from(sections - 1).unwrap_or(0)];
    lengths.push(last);
    lengths
}

/// Reports the formulas of the lengths between cuts: `6 - 2 = 4`.
fn derive_between(call: &CallInfo<'_>, axis: Option<usize>, cuts: &[i64], length: &Dim, lengths: &[Dim]) {
    let cut = |at: usize| cuts.get(at).map_or_else(|| length.clone(), |cut| Dim::constant(*cut).minimum(length));
    for (field, part) in lengths.iter().enumerate() {
        let start = field.checked_sub(1).map_or(Dim::constant(0), cut);
        call.derive_field(field, axis, || format!("{} - {} = {part}", operand(&cut(field)), operand(&start)));
    }
}

/// Reports the formulas of equal parts, `6 // 2 = 3`, and of the rest of a length that is not a multiple.
fn derive_equal(call: &CallInfo<'_>, axis: Option<usize>, sections: i64, length: &Dim, lengths: &[Dim]) {
    let divides = lengths.first() == lengths.last();
    let (last, whole) = (lengths.len().saturating_sub(1), operand(length));
    for (field, part) in lengths.iter().enumerate() {
        call.derive_field(field, axis, || match (divides, lengths.first()) {
            (true, _) => format!("{whole} // {sections} = {part}"),
            (false, Some(each)) if field == last => format!("{whole} - {last}*{} = {part}", operand(each)),
            _ => format!("({whole} + {sections} - 1) // {sections} = {part}"),
        });
    }
}

fn meshgrid(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let tensors = tensors(call, "tensors")?;
    let common = Common::of(call, &tensors, None)?;
    for (at, tensor) in tensors.iter().enumerate() {
        if tensor.shape != Shape::Error && tensor.shape.ndim() != Some(1) {
            let label = element_label(call, at);
            let message = format_args!("`tensors[{at}]` must have one dimension, it is {label}");
            return Err(call.error(Code::TensorNdimMismatch, ParamPlace::Element("tensors", at), message).into());
        }
    }
    let lengths: Option<Vec<Dim>> =
        tensors.iter().map(|tensor| tensor.shape.written_dims().and_then(<[Dim]>::first).cloned()).collect();
    // As in TVM, a tensor of unknown dtype does not affect the common dtype, but makes the lengths unknown.
    let dtype = tensors.iter().find_map(|tensor| tensor.dtype);
    let shape = match lengths {
        Some(lengths) if tensors.iter().all(|tensor| tensor.dtype.is_some()) => Shape::known(lengths),
        _ => Shape::Rank(tensors.len()),
    };
    let grid = Common { dtype, shape_error: false, ..common }.tensor(shape);
    Ok(StructInfo::tuple(vec![grid; tensors.len()]))
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, given, infer, number, numbers, tensor, tuple, ty};
    use rx_base::Code;
    use rx_ir::{Attr, StructInfo};

    fn concat(tensors: &[&str], axis: Option<i64>) -> Result<StructInfo, Option<Code>> {
        let axis = axis.map_or(Given::Attr(Attr::None), number);
        infer("concat", &[("tensors", tuple(tensors)), ("axis", axis)])
    }

    #[test]
    fn concat_adds_lengths_along_the_axis() {
        let wanted = "R.Tensor((a, b + c, 4), dtype=\"float32\")";
        let result = concat(&["a b 4:float32", "a c 4:float32"], Some(-2));
        assert_eq!(result.map(|ty| ty.to_string()).as_deref(), Ok(wanted));
        assert_eq!(concat(&["a 2:int8", "b 2:int8"], Some(1)), Ok(ty("?2:int8")));
        assert_eq!(concat(&["3:int8", "4"], None), Ok(ty("7:?")));
        assert_eq!(concat(&["?3:int8@llvm:0:global", "2 3 4:int8"], Some(0)), Ok(ty("?3:int8@llvm:0:global")));
        assert_eq!(concat(&["$s:int8"], Some(1)), Ok(ty("$s:int8")));
        assert_eq!(concat(&["*", "*:int8"], Some(1)), Ok(ty("*")));
        for (tensors, axis, code) in [
            (&["3 4:int8", "3 3:int8"][..], Some(0), Code::ConcatShapeMismatch),
            (&["3 n:int8", "3 n+2:int8"], Some(0), Code::ConcatShapeMismatch),
            (&["3:int8", "?2:int8"], Some(0), Code::TensorNdimMismatch),
            (&["3 4:int8"], None, Code::TensorNdimMismatch),
            (&["3:int8", "3:int16"], Some(0), Code::DtypeMismatch),
            (&["3:int8"], Some(1), Code::AxisOutOfRange),
            (&[], Some(0), Code::ArgumentType),
        ] {
            assert_eq!(concat(tensors, axis), Err(Some(code)), "{tensors:?}");
        }
        assert_eq!(infer("concat", &[("tensors", tensor("3"))]), Err(Some(Code::ArgumentType)));
        let shapes = given(StructInfo::tuple([StructInfo::shape([3.into()])]));
        assert_eq!(infer("concat", &[("tensors", shapes)]), Err(Some(Code::ArgumentType)));
    }

    #[test]
    fn stack_adds_an_axis() {
        let stack = |tensors: &[&str], axis| infer("stack", &[("tensors", tuple(tensors)), ("axis", number(axis))]);
        assert_eq!(stack(&["n 3:int8", "n 3:int8"], -1), Ok(ty("n 3 2:int8")));
        assert_eq!(stack(&["n 3:int8", "m 3:int8"], 0), Ok(ty("?3:int8")));
        assert_eq!(stack(&["2 3:int8"], 1), Ok(ty("2 1 3:int8")));
        assert_eq!(stack(&["?1:int8", "*:int8"], 0), Ok(ty("?2:int8")));
        assert_eq!(stack(&["*:int8", "?1:int8"], 0), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(stack(&["2 3:int8", "2 4:int8"], 0), Err(Some(Code::ConcatShapeMismatch)));
        assert_eq!(stack(&["2:int8"], 2), Err(Some(Code::AxisOutOfRange)));
    }

    #[test]
    fn split_cuts_into_parts() {
        let split = |x: &str, parts: Given, axis: i64| {
            let result = infer("split", &[("x", tensor(x)), ("indices_or_sections", parts), ("axis", number(axis))])?;
            let shape = |part: &StructInfo| {
                part.to_string().trim_start_matches("R.Tensor(").trim_end_matches(", dtype=\"int8\")").to_owned()
            };
            Ok::<_, Option<Code>>(
                result.as_tuple().map_or_else(|| vec![shape(&result)], |parts| parts.iter().map(shape).collect()),
            )
        };
        assert_eq!(split("2 10 4:int8", number(3), -2).unwrap(), ["(2, 4, 4)", "(2, 4, 4)", "(2, 2, 4)"]);
        assert_eq!(split("a b:int8", number(2), 1).unwrap(), ["(a, (b + 1) // 2)", "(a, b - ((b + 1) // 2))"]);
        assert_eq!(split("n+5 2:int8", numbers(&[2, 5]), 0).unwrap(), ["(2, 2)", "(3, 2)", "(n, 2)"]);
        assert_eq!(split("8:int8", numbers(&[-3, 5]), 0).unwrap(), ["(0,)", "(5,)", "(3,)"]);
        assert_eq!(split("5:int8", number(4), 0).unwrap(), ["(2,)", "(2,)", "(2,)", "(0,)"]);
        assert_eq!(split("a b:int8", numbers(&[]), 1).unwrap(), ["(a, b)"]);
        assert_eq!(
            infer("split", &[("x", tensor("?3")), ("indices_or_sections", number(2)), ("axis", number(1))]),
            Ok(StructInfo::tuple([ty("?3"), ty("?3")]))
        );
        assert_eq!(split("3 4:int8", number(0), 1), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(split("3 4:int8", number(i64::MAX), 1), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(split("3 4:int8", number(2), 2), Err(Some(Code::AxisOutOfRange)));
        let symbolic = Given::Attr(Attr::Int(rx_base::Dim::symbol("n".into())));
        assert_eq!(split("3 4:int8", symbolic, 1), Err(Some(Code::AttrType)));
    }

    #[test]
    fn meshgrid_crosses_vectors() {
        let meshgrid = |tensors: &[&str]| infer("meshgrid", &[("tensors", tuple(tensors))]);
        let grid = ty("3 n:int8");
        assert_eq!(meshgrid(&["3:int8", "n:int8"]), Ok(StructInfo::tuple([grid.clone(), grid])));
        assert_eq!(meshgrid(&["?1:int8"]), Ok(StructInfo::tuple([ty("?1:int8")])));
        assert_eq!(meshgrid(&["3 3:int8"]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(meshgrid(&["3:int8", "3:int16"]), Err(Some(Code::DtypeMismatch)));
    }
}
