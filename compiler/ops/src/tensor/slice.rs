//! Strided slices: schemas and struct-info rules.

use super::compute::slice as compute;
use super::operands::{IndexKind, ceil_div, check_index_dtype, integer_value, scalar_dtype};
use super::slice_layout;
use super::values::arrange;
use crate::axes::normalize_axes;
use crate::call::{CallInfo, ParamPlace, Problem, operand};
use crate::compute::Compute;
use crate::cost::Cost;
use crate::operands::{rank_like, tensor_like};
use crate::schema::{Param, ParamKind, Schema, Traits};
use crate::values::ValueCall;
use rx_base::{Answer, Code, DType, Diagnostic, Dim, Fix, Name, counted};
use rx_ir::{Elements, ExprKind, Shape, StructInfo, TensorInfo};

pub(crate) static OPERATORS: &[Schema] = &[
    Schema::new("strided_slice", "Takes a slice along some axes, as NumPy's `x[begin:end:stride]`.", strided_slice).taking(&[
            Param::tensor("x", "The tensor to slice."),
            Param::operand("axes", ParamKind::Prims, "The axes to slice: a tuple of integer constants."),
            Param::operand(
                "begin",
                ParamKind::Prims,
                "For each axis, the first place; negative ones count from the end.",
            ),
            Param::operand(
                "end",
                ParamKind::Prims,
                "For each axis, the place before which to stop; clamped to the axis.",
            ),
            Param::optional(
                "strides",
                ParamKind::Prims,
                "For each axis, the distance between places, not 0; all 1 when left out.",
            ),
            Param::flag("assume_inbound", false, "A promise that `begin` and `end` lie within the axes, which spares counting from the end and clamping."),
        ]).lowered_by(compute::strided_slice).costing(Cost::Copy).with_traits(Traits::OPAQUE.keeping("x").computing(arrange::strided_slice).laid_out(slice_layout::strided)),
    Schema::new("dynamic_strided_slice", "Takes a slice whose bounds are computed at run time. Only the rank of the result is known.", dynamic_strided_slice).taking(&[
            Param::tensor("x", "The tensor to slice."),
            Param::tensor("begin", "For each axis, the first place; an int64 tensor with one element for each axis."),
            Param::tensor("end", "For each axis, the place before which to stop; as `begin`."),
            Param::tensor("strides", "For each axis, the distance between places; as `begin`."),
        ]).computed_as(Compute::Host).costing(Cost::Copy).with_traits(Traits::OPAQUE
            .keeping("x")
            .computing(arrange::some)
            .finding(dynamic_bounds)
            .laid_out(slice_layout::dynamic)),
];

/// The known facts about a tuple of scalars.
pub(super) enum Entries {
    /// The value of each scalar.
    Values(Vec<Dim>),
    /// Only the number of scalars, or not even that.
    Unknown(Option<usize>),
}

impl Entries {
    fn len(&self) -> Option<usize> {
        match self {
            Entries::Values(values) => Some(values.len()),
            Entries::Unknown(count) => *count,
        }
    }
}

/// Reads a tuple of int64 scalars. A value of type `R.Any` may also be such a tuple.
pub(super) fn entries(call: &CallInfo<'_>, param: &'static str) -> Result<Entries, Problem> {
    let fields = match call.ty(param) {
        StructInfo::Tuple(fields) => fields,
        StructInfo::Object => return Ok(Entries::Unknown(None)),
        StructInfo::Error => return Err(Problem::Propagate),
        ty => return Err(call.wrong_kind(ParamPlace::Param(param), param, "a tuple of int64 scalars", ty)),
    };
    let written = match call.operand(param).map(|expr| &expr.kind) {
        Some(ExprKind::Tuple(exprs)) => &exprs[..],
        _ => &[],
    };
    for (at, field) in fields.iter().enumerate() {
        let dtype = match (field, written.get(at)) {
            (StructInfo::Object, _) => continue,
            (StructInfo::Error, _) => return Err(Problem::Propagate),
            (StructInfo::Prim(prim), Some(expr)) => scalar_dtype(expr, prim),
            (StructInfo::Prim(prim), None) => prim.dtype,
            _ => Some(DType::HANDLE),
        };
        if dtype.is_some_and(|dtype| dtype != DType::INT64) {
            let message = format_args!("`{param}[{at}]` must be an int64 scalar, it is {field}");
            return Err(call.error(Code::ArgumentType, ParamPlace::Element(param, at), message).into());
        }
    }
    let values: Option<Vec<Dim>> = written.iter().map(integer_value).collect();
    Ok(match values.filter(|values| values.len() == fields.len()) {
        Some(values) => Entries::Values(values),
        None => Entries::Unknown(Some(fields.len())),
    })
}

fn strided_slice(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let (axes, begin, end) = (entries(call, "axes")?, entries(call, "begin")?, entries(call, "end")?);
    let strides = match call.operand("strides") {
        Some(_) => entries(call, "strides")?,
        None => match axes.len() {
            Some(count) => Entries::Values(vec![Dim::constant(1); count]),
            None => Entries::Unknown(None),
        },
    };
    for (param, given) in [("begin", &begin), ("end", &end), ("strides", &strides)] {
        check_length(call, &axes, param, given)?;
    }
    let unknown = || tensor_like(x, rank_like(&x.shape, x.shape.ndim()));
    let Entries::Values(axes) = axes else { return Ok(unknown()) };
    let axes = constant_axes(call, &axes)?;
    if axes.is_empty() {
        return Ok(call.ty("x").clone());
    }
    let axes = match x.shape.ndim() {
        Some(ndim) => normalize_axes(call, "axes", ndim, &axes)?,
        None => return Ok(unknown()),
    };
    let (Entries::Values(begin), Entries::Values(end), Entries::Values(strides)) = (begin, end, strides) else {
        return Ok(unknown());
    };
    let Some(dims) = x.shape.dims() else { return Ok(unknown()) };
    let mut result = dims.to_vec();
    for (at, axis) in axes.into_iter().enumerate() {
        let (Some(dim), Some(begin), Some(end), Some(stride)) =
            (result.get_mut(axis), begin.get(at), end.get(at), strides.get(at))
        else {
            continue;
        };
        let slice = Slice { call, at, axis, begin, end, stride, extent: dim.clone() };
        *dim = slice.length()?;
    }
    Ok(tensor_like(x, Shape::known(result)))
}

/// A slice along one axis, as the call states it.
pub(crate) struct SlicedAxis {
    /// The axis; a negative one counts from the end.
    pub(crate) axis: i64,
    /// The first position as given: it may be negative and is not clamped.
    pub(crate) begin: Dim,
    /// The distance between positions.
    pub(crate) stride: Dim,
}

/// Returns the axes that a `strided_slice` slices.
///
/// # Errors
/// Propagates if a bound is unknown.
pub(crate) fn sliced_axes(call: &CallInfo<'_>) -> Result<Vec<SlicedAxis>, Problem> {
    let values = |param: &'static str| match entries(call, param)? {
        Entries::Values(values) => Ok(values),
        Entries::Unknown(_) => Err(Problem::Propagate),
    };
    let (axes, begin) = (constant_axes(call, &values("axes")?)?, values("begin")?);
    let strides = match call.operand("strides") {
        Some(_) => values("strides")?,
        None => vec![Dim::constant(1); axes.len()],
    };
    let slices = axes.into_iter().zip(begin).zip(strides);
    Ok(slices.map(|((axis, begin), stride)| SlicedAxis { axis, begin, stride }).collect())
}

fn check_length(call: &CallInfo<'_>, axes: &Entries, param: &'static str, given: &Entries) -> Result<(), Problem> {
    match (axes.len(), given.len()) {
        (Some(wanted), Some(count)) if wanted != count => {
            let message =
                format_args!("`axes` has {}, `{param}` has {count}; they must agree", counted(wanted, "element"));
            Err(call
                .error(Code::ShapeMismatch, ParamPlace::Param(param), message)
                .with_label(ParamPlace::Param("axes"), counted(wanted, "element"))
                .into())
        }
        _ => Ok(()),
    }
}

pub(super) fn constant_axes(call: &CallInfo<'_>, axes: &[Dim]) -> Result<Vec<i64>, Problem> {
    let constant = |(at, axis): (usize, &Dim)| {
        axis.as_constant().ok_or_else(|| {
            let message = format_args!("axis {axis} must be an integer constant");
            Problem::from(call.error(Code::ArgumentType, ParamPlace::Element("axes", at), message))
        })
    };
    axes.iter().enumerate().map(constant).collect()
}

/// The slice along one axis.
struct Slice<'c, 'a> {
    call: &'c CallInfo<'a>,
    /// Its index in `begin`, `end` and `strides`.
    at: usize,
    axis: usize,
    begin: &'c Dim,
    end: &'c Dim,
    stride: &'c Dim,
    extent: Dim,
}

impl Slice<'_, '_> {
    /// Returns the number of positions in the slice (TOPI's `GetLength`). A number that is known to be negative becomes
    /// 0.
    fn length(&self) -> Result<Dim, Problem> {
        let zero = Dim::constant(0);
        let forward = match self.stride.as_constant() {
            Some(0) => {
                let message = format_args!("the stride of axis {} is 0", self.axis);
                let place = ParamPlace::Element("strides", self.at);
                return Err(self.call.error(Code::AttrOutOfRange, place, message).into());
            }
            Some(stride) => stride > 0,
            None => match self.at_least(self.stride, &zero) {
                Answer::Proved => true,
                Answer::Refuted => false,
                Answer::Open => return Ok(self.opaque_length()),
            },
        };
        let inbound = self.call.bool("assume_inbound") == Some(true);
        let (begin, end) = if inbound {
            self.check_inbound(forward)?;
            (self.begin.clone(), self.end.clone())
        } else {
            self.note_clamped_end(forward);
            (self.canonical(self.begin, forward), self.canonical(self.end, forward))
        };
        let length = match forward {
            true => ceil_div(&(&end - &begin), self.stride),
            false => ceil_div(&(&begin - &end), &-self.stride),
        };
        let length = if self.at_least(&length, &zero) == Answer::Refuted { zero } else { length };
        self.call.derive(Some(self.axis), || {
            let (high, low, step) =
                if forward { (&end, &begin, self.stride.clone()) } else { (&begin, &end, -self.stride) };
            let places = format!("{} - {}", operand(high), operand(low));
            match step.as_constant() {
                Some(1) => format!("{places} = {length}"),
                _ => format!("({places} + {step} - 1) // {} = {length}", operand(&step)),
            }
        });
        Ok(length)
    }

    fn at_least(&self, a: &Dim, b: &Dim) -> Answer {
        self.call.at_least(a, b)
    }

    /// Returns an opaque extent for a slice whose length depends on the unknown sign of the stride.
    fn opaque_length(&self) -> Dim {
        let arguments = [self.begin, self.end, self.stride, &self.extent];
        Dim::opaque(Name::from("slice_length"), arguments.into_iter().cloned().collect())
    }

    /// Returns `index` counted from the front and clamped to the axis (TOPI's `CanonicalizeIndex`).
    fn canonical(&self, index: &Dim, forward: bool) -> Dim {
        let (zero, one) = (Dim::constant(0), Dim::constant(1));
        let (low, high) =
            if forward { (zero.clone(), self.extent.clone()) } else { (Dim::constant(-1), &self.extent - &one) };
        let from_front = match self.at_least(index, &zero) {
            Answer::Proved => index.clone(),
            Answer::Refuted => index + &self.extent,
            // It is unknown until run time whether the index counts from the end.
            Answer::Open => {
                let negative = Dim::opaque(Name::from("<"), vec![index.clone(), zero.clone()]);
                Dim::opaque(Name::from("T.if_then_else"), vec![negative, index + &self.extent, index.clone()])
            }
        };
        from_front.maximum(&low).minimum(&high)
    }

    /// Checks the promise of `assume_inbound`: both ends are within the axis.
    fn check_inbound(&self, forward: bool) -> Result<(), Problem> {
        let one = Dim::constant(1);
        // With a negative stride, a slice begins at most at the last position and ends at least at -1.
        let (low, high) = match forward {
            true => (Dim::constant(0), self.extent.clone()),
            false => (Dim::constant(-1), &self.extent - &one),
        };
        for (param, value) in [("begin", self.begin), ("end", self.end)] {
            if self.at_least(value, &low) == Answer::Refuted || self.at_least(&high, value) == Answer::Refuted {
                let message =
                    format_args!("{param} {value} is out of bounds for axis {} of size {}", self.axis, self.extent);
                return Err(self
                    .call
                    .error(Code::SliceOutOfBounds, ParamPlace::Element(param, self.at), message)
                    .with_label(ParamPlace::Param("x"), self.call.ty("x").to_string())
                    .with_note("assume_inbound=True promises that begin and end lie within the axis")
                    .with_fix(Fix {
                        title: "use assume_inbound=False, which clamps".to_owned(),
                        edits: vec![(ParamPlace::Param("assume_inbound"), "False".to_owned())],
                        safe: false,
                    })
                    .into());
            }
        }
        Ok(())
    }

    /// Reports a hint if the end is past the axis. The maximum of `int32` or `int64` is a usual way to write "to the
    /// end", so it is accepted.
    fn note_clamped_end(&self, forward: bool) {
        let to_the_end =
            matches!(self.end.as_constant(), Some(i64::MAX)) || self.end.as_constant() == Some(i64::from(i32::MAX));
        let past = self.at_least(&self.extent, self.end) == Answer::Refuted;
        if forward && past && !to_the_end {
            let message = format_args!("end {} is clamped to {}", self.end, self.extent);
            let report = self.call.error(Code::SliceEndClamped, ParamPlace::Element("end", self.at), message);
            self.call.report(report.with_label(ParamPlace::Param("x"), self.call.ty("x").to_string()));
        }
    }
}

/// Checks known bounds of `dynamic_strided_slice`: reports a stride of 0, and positions past the axis, which are
/// clamped.
fn dynamic_bounds(call: &ValueCall<'_>) -> Vec<Diagnostic<ParamPlace>> {
    let mut found = Vec::new();
    let bounds = |param: &'static str| match call.operand(param).elements {
        Some(Elements::Ints(values)) => values.to_vec(),
        _ => Vec::new(),
    };
    if let Some(axis) = bounds("strides").iter().position(|stride| *stride == 0) {
        let message = format_args!("the stride of axis {axis} is 0");
        found.push(call.call.error(Code::AttrOutOfRange, ParamPlace::Param("strides"), message));
    }
    let dims = call.call.ty("x").as_tensor().and_then(|tensor| tensor.shape.dims()).unwrap_or_default();
    for param in ["begin", "end"] {
        for (axis, (place, extent)) in bounds(param).into_iter().zip(dims).enumerate() {
            let to_the_end = place == i64::MAX || place == i64::from(i32::MAX);
            if !to_the_end && call.call.at_least(extent, &Dim::constant(place)) == Answer::Refuted {
                let message = format_args!("{param} {place} of axis {axis} is clamped to {extent}");
                let report = call.call.error(Code::SliceEndClamped, ParamPlace::Param(param), message);
                found.push(report.with_label(ParamPlace::Param("x"), call.call.ty("x").to_string()));
            }
        }
    }
    found
}

fn dynamic_strided_slice(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let x = call.tensor("x")?;
    let bounds = [("begin", call.tensor("begin")?), ("end", call.tensor("end")?), ("strides", call.tensor("strides")?)];
    if let Some(ndim) = x.shape.ndim() {
        for (param, tensor) in bounds {
            check_bound_tensor(call, param, tensor, ndim)?;
        }
    }
    Ok(tensor_like(x, rank_like(&x.shape, x.shape.ndim())))
}

/// Checks a tensor of bounds, which must have one int64 per axis. As in TVM, its length must be constant.
fn check_bound_tensor(
    call: &CallInfo<'_>,
    param: &'static str,
    tensor: &TensorInfo,
    ndim: usize,
) -> Result<(), Problem> {
    check_index_dtype(call, ParamPlace::Param(param), param, tensor.dtype, IndexKind::Int64)?;
    let fits = match (&tensor.shape, tensor.shape.written_dims()) {
        (Shape::Error, _) => true,
        (_, Some([length])) => {
            length.is_error() || length.as_constant().and_then(|n| usize::try_from(n).ok()) == Some(ndim)
        }
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => {
            let message = format_args!("`{param}` must have the shape ({ndim},), one element for each axis of `x`");
            Err(call
                .operand_error(Code::ShapeMismatch, param, message)
                .with_label(ParamPlace::Param("x"), call.ty("x").to_string())
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, call_of, dims, expr, flag, given, infer, prim, tensor, ty};
    use rx_base::{Code, DType, Span};
    use rx_ir::{Expr, ExprKind, PrimInfo, PrimValue, StructInfo};

    /// Creates a tuple of integers that is written inline.
    fn ints(text: &str) -> Given {
        let entry = |value| {
            let ty = StructInfo::Prim(PrimInfo { dtype: Some(DType::INT64), value: Some(rx_base::Dim::clone(value)) });
            Expr { kind: ExprKind::Prim(PrimValue::Int(value.clone())), ty, span: Span::default() }
        };
        let exprs: Vec<Expr> = dims(text).iter().map(entry).collect();
        let ty = StructInfo::Tuple(exprs.iter().map(|expr| expr.ty.clone()).collect());
        Given::Operand(Expr { kind: ExprKind::Tuple(exprs), ty, span: Span::default() })
    }

    fn args(
        x: &str,
        [axes, begin, end]: [&str; 3],
        strides: Option<&str>,
        inbound: bool,
    ) -> Vec<(&'static str, Given)> {
        let mut args = vec![("x", tensor(x)), ("axes", ints(axes)), ("begin", ints(begin)), ("end", ints(end))];
        args.extend(strides.map(|strides| ("strides", ints(strides))));
        args.push(("assume_inbound", flag(inbound)));
        args
    }

    fn shape_of(x: &str, bounds: [&str; 3], strides: Option<&str>, inbound: bool) -> Result<String, Option<Code>> {
        Ok(infer("strided_slice", &args(x, bounds, strides, inbound))?.to_string())
    }

    #[test]
    fn lengths_are_those_of_topi() {
        for (x, bounds, strides, inbound, wanted) in [
            ("8 9 10 10", ["0 1 3", "1 0 8", "8 9 0"], Some("2 1 -3"), false, "R.Tensor((4, 9, 10, 3))"),
            ("8 9 10 10", ["-1 -3 -4", "8 0 1", "0 9 8"], Some("-3 1 2"), false, "R.Tensor((4, 9, 10, 3))"),
            ("m n", ["0", "1", "3"], None, false, "R.Tensor((T.min(3, m) - T.min(1, m), n))"),
            ("8 9", ["0", "-3", "100"], None, false, "R.Tensor((3, 9))"),
            ("8 9", ["0", "-1", "-100"], Some("-1"), false, "R.Tensor((8, 9))"),
            ("8 9", ["0", "5", "2"], None, false, "R.Tensor((0, 9))"),
            ("8 9", ["0", "v", "8"], None, true, "R.Tensor((8 - v, 9))"),
            ("8 9", ["0", "0", "v"], None, true, "R.Tensor((v, 9))"),
            ("8 9", ["0", "0", "8"], Some("v"), true, "R.Tensor((7 // v + 1, 9))"),
            ("n 9", ["0", "0", "n"], None, false, "R.Tensor((n, 9))"),
            ("?4", ["0", "0", "8"], None, false, "R.Tensor(ndim=4)"),
            ("*", ["0", "0", "8"], None, false, "R.Tensor"),
        ] {
            assert_eq!(shape_of(x, bounds, strides, inbound).as_deref(), Ok(wanted), "{x} {bounds:?}");
        }
    }

    #[test]
    fn mistakes_are_found() {
        for (bounds, strides, inbound, code) in [
            (["1", "0", "32"], None, true, Code::SliceOutOfBounds),
            (["1", "-1", "9"], None, true, Code::SliceOutOfBounds),
            (["2", "0", "9"], None, false, Code::AxisOutOfRange),
            (["0 0", "0 1", "2 3"], None, false, Code::AxisOutOfRange),
            (["n", "0", "3"], None, false, Code::ArgumentType),
            (["1", "", "9"], None, false, Code::ShapeMismatch),
            (["1", "0", "9"], Some(""), false, Code::ShapeMismatch),
            (["1", "0", "9"], Some("0"), false, Code::AttrOutOfRange),
        ] {
            assert_eq!(shape_of("8 9", bounds, strides, inbound), Err(Some(code)), "{bounds:?}");
        }
        let mut tensors = args("8 9", ["0", "0", "3"], None, false);
        tensors[2].1 = tensor("1:int64");
        assert_eq!(infer("strided_slice", &tensors), Err(Some(Code::ArgumentType)));
        tensors[2].1 = given(StructInfo::tuple([prim("int32")]));
        assert_eq!(infer("strided_slice", &tensors), Err(Some(Code::ArgumentType)));
        tensors[2].1 = Given::Operand(expr(StructInfo::tuple([prim("int64")])));
        assert_eq!(infer("strided_slice", &tensors), Ok(ty("?2")));
    }

    #[test]
    fn an_end_past_the_axis_is_hinted_at() {
        let hints = |end: &str| {
            call_of("strided_slice", &args("8 n", ["0", "0", end], None, false), |call| {
                assert_eq!((call.schema.infer)(call).ok(), Some(ty(if end == "5" { "5 n" } else { "8 n" })));
                call.findings.borrow().len()
            })
        };
        assert_eq!(hints("32"), 1);
        assert_eq!(hints("9223372036854775807"), 0);
        assert_eq!(hints("5"), 0);
    }

    #[test]
    fn dynamic_bounds_leave_the_rank() {
        let slice = |x: &str, begin: &str| {
            let bound = || tensor("2:int64");
            infer(
                "dynamic_strided_slice",
                &[("x", tensor(x)), ("begin", tensor(begin)), ("end", bound()), ("strides", bound())],
            )
        };
        assert_eq!(slice("8 n:int8", "2"), Ok(ty("?2:int8")));
        assert_eq!(slice("*:int8", "?3:int8"), Ok(ty("*:int8")));
        for (begin, code) in [
            ("2:int32", Code::IndexDtype),
            ("3:int64", Code::ShapeMismatch),
            ("?1:int64", Code::ShapeMismatch),
            ("m:int64", Code::ShapeMismatch),
            ("2 2:int64", Code::ShapeMismatch),
        ] {
            assert_eq!(slice("8 n:int8", begin), Err(Some(code)), "{begin}");
        }
    }
}
