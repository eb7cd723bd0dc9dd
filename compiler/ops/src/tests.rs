//! Helpers for tests of the rules: a compact notation for operands, and calls of a rule.

use crate::call::{Arg, CallInfo, Problem};
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{Code, DType, Dim, Span};
use rx_ir::struct_info::PrimInfo;
use rx_ir::{Argument, Attr, Expr, ExprKind, PrimValue, Shape, StructInfo, TensorInfo, VDevice};

mod robustness;

/// An argument that a test passes for a parameter.
pub(crate) enum Given {
    Operand(Expr),
    Operands(Vec<Expr>),
    Attr(Attr),
    Types(Vec<StructInfo>),
}

/// Parses dims separated by spaces. A dim is an integer, a symbol, or a symbol plus an integer: `2 n m+1`.
pub(crate) fn dims(text: &str) -> Vec<Dim> {
    let part = |text: &str| text.parse::<i64>().map_or_else(|_| Dim::symbol(name(text)), Dim::constant);
    let dim = |text: &str| text.split('+').map(part).reduce(|a, b| &a + &b).unwrap_or(Dim::ERROR);
    text.split_whitespace().map(dim).collect()
}

/// Parses a tensor type, `dims:dtype` or `dims:dtype@vdevice`. The dims `*` are unknown, `?2` is a rank, `$s` a
/// variable of unknown rank and `$s/2` one of rank 2. The dtype `?` is unknown.
pub(crate) fn ty(text: &str) -> StructInfo {
    let (shape, rest) = text.split_once(':').unwrap_or((text, "?"));
    let (dtype, vdevice) = rest.split_once('@').map_or((rest, None), |(dtype, device)| (dtype, Some(device)));
    let shape = match shape.as_bytes() {
        b"*" => Shape::Unknown,
        [b'?', ..] => Shape::Rank(shape[1..].parse().unwrap()),
        [b'$', ..] => match shape[1..].split_once('/') {
            Some((var, ndim)) => Shape::variable(name(var), &Shape::of_rank(ndim.parse().ok())),
            None => Shape::variable(name(&shape[1..]), &Shape::Unknown),
        },
        _ => Shape::known(dims(shape)),
    };
    let vdevice = vdevice.map(|device| VDevice(name(device)));
    TensorInfo { shape, dtype: DType::parse(dtype), vdevice, dtype_error: false, readings: None }.into()
}

/// Creates the type of a scalar with an unknown value.
pub(crate) fn prim(dtype: &str) -> StructInfo {
    StructInfo::Prim(PrimInfo { dtype: DType::parse(dtype), value: None })
}

/// Creates an operand of this type.
pub(crate) fn given(ty: StructInfo) -> Given {
    Given::Operand(expr(ty))
}

/// Creates a tensor operand, written as for [`ty`].
pub(crate) fn tensor(text: &str) -> Given {
    given(ty(text))
}

/// Creates an integer operand, written as for [`dims`].
pub(crate) fn int(text: &str) -> Given {
    let value = dims(text).remove(0);
    let ty = StructInfo::Prim(PrimInfo { dtype: Some(DType::INT64), value: Some(value.clone()) });
    Given::Operand(Expr { kind: ExprKind::Prim(PrimValue::Int(value)), ty, span: Span::new(0, 0) })
}

/// Creates a float operand.
pub(crate) fn float(value: f64, dtype: &str) -> Given {
    Given::Operand(Expr { kind: ExprKind::Prim(PrimValue::Float(value)), ty: prim(dtype), span: Span::new(0, 0) })
}

/// Creates a shape operand.
pub(crate) fn shape(text: &str) -> Given {
    let values = dims(text);
    let ty = StructInfo::shape(values.clone());
    Given::Operand(Expr { kind: ExprKind::Shape(values), ty, span: Span::new(0, 0) })
}

/// Creates a tuple operand of tensors.
pub(crate) fn tuple(fields: &[&str]) -> Given {
    let fields: Vec<Expr> = fields.iter().map(|field| expr(ty(field))).collect();
    let types: Vec<StructInfo> = fields.iter().map(|field| field.ty.clone()).collect();
    Given::Operand(Expr { kind: ExprKind::Tuple(fields), ty: StructInfo::tuple(types), span: Span::new(0, 0) })
}

/// Creates a string attribute.
pub(crate) fn text(value: &str) -> Given {
    Given::Attr(Attr::Str(value.into()))
}

/// Creates an integer attribute.
pub(crate) fn number(value: i64) -> Given {
    Given::Attr(Attr::Int(value.into()))
}

/// Creates an attribute with a list of integers.
pub(crate) fn numbers(values: &[i64]) -> Given {
    Given::Attr(Attr::List(values.iter().map(|value| Attr::Int((*value).into())).collect()))
}

/// Creates a boolean attribute.
pub(crate) fn flag(value: bool) -> Given {
    Given::Attr(Attr::Bool(value))
}

/// Creates a variable of this type.
pub(crate) fn expr(ty: StructInfo) -> Expr {
    Expr { kind: ExprKind::Var(name("x")), ty, span: Span::new(0, 0) }
}

/// Binds `args` to the operator's parameters, with defaults for the rest, and runs `check` on the call.
pub(crate) fn call_of<T>(op: &str, args: &[(&str, Given)], check: impl FnOnce(&CallInfo<'_>) -> T) -> T {
    let schema = crate::find(name(op)).unwrap_or_else(|| panic!("no operator {op}"));
    for (given, _) in args {
        assert!(schema.params.iter().any(|param| param.name == *given), "{op} has no parameter {given}");
    }
    let defaults: Vec<Option<Attr>> = schema.params.iter().map(|param| param.default.to_attr()).collect();
    let bound: Vec<Arg<'_>> = std::iter::zip(schema.params, &defaults)
        .map(|(param, default)| match args.iter().find(|(given, _)| *given == param.name) {
            Some((_, Given::Operand(expr))) => Arg::Operand(expr),
            Some((_, Given::Operands(exprs))) => Arg::Operands(exprs),
            Some((_, Given::Attr(attr))) => Arg::Attr(attr),
            Some((_, Given::Types(types))) => Arg::Types(types),
            None => default.as_ref().map_or(Arg::Absent, Arg::Attr),
        })
        .collect();
    let bounds = Bounds::default();
    check(&CallInfo::new(schema, &bound, &bounds))
}

/// Returns the operator and the owned arguments of the call that [`call_of`] would make.
pub(crate) fn arguments_of(op: &str, args: &[(&str, Given)]) -> (&'static crate::Schema, Vec<Argument>) {
    call_of(op, args, |call| {
        let owned = call.args.iter().map(|arg| match arg {
            Arg::Absent => Argument::Absent,
            Arg::Operand(expr) => Argument::Operand((*expr).clone()),
            Arg::Operands(exprs) => Argument::Operands(exprs.to_vec()),
            Arg::Attr(attr) => Argument::Attr((*attr).clone()),
            Arg::Types(types) => Argument::Types(types.to_vec()),
        });
        (call.schema, owned.collect())
    })
}

/// Runs the operator's rule. Returns the code of an error, or `None` if an error type is propagated.
pub(crate) fn infer(op: &str, args: &[(&str, Given)]) -> Result<StructInfo, Option<Code>> {
    call_of(op, args, |call| (call.schema.infer)(call).map_err(code_of))
}

/// Returns the code of a problem; `None` if an error type is propagated.
pub(crate) fn code_of(problem: Problem) -> Option<Code> {
    match problem {
        Problem::Propagate => None,
        Problem::Report(diagnostic) => Some(diagnostic.code),
    }
}
