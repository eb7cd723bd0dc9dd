//! `DecomposeOpsForInference`, `DecomposeOpsForTraining` and `DecomposeOps`: expand composite operators, mainly
//! `nn.batch_norm`, into primitive operators.
//!
//! ```text
//! y = R.nn.batch_norm(x, gamma, beta, mean, var, axis=1)
//! →
//! lv = R.expand_dims(mean, axis=[0, 2, 3])
//! lv1 = R.subtract(x, lv)
//! lv2 = R.expand_dims(var, axis=[0, 2, 3])
//! lv3 = R.add(lv2, R.const(1e-05, "float32"))
//! …                                            # divide by the square root, multiply by gamma, add beta
//! y = lv9, mean, var
//! ```
//!
//! For inference, a batch norm uses its running statistics. For training, it uses the statistics of the batch and
//! returns updated running statistics. The first two passes choose one of these for all calls, regardless of the
//! attribute `training`. `DecomposeOps` exists only in rx and follows the attribute `training` of each call, so it
//! keeps the values. All three also expand `tensor_to_shape`, and `DecomposeOpsForTraining` expands `nn.layer_norm`.
//!
//! A norm requires data of known rank and dtype, and a layer norm also requires axes in ascending order;
//! `tensor_to_shape` requires a known number of dims. Other calls stay. Guarantees that types which depend on a
//! decomposed call are inferred again.
//!
//! Reference: TVM `src/relax/transform/decompose_ops.cc`.

use crate::Module;
use crate::emit::{Emitter, rewrite_bindings};
use crate::make::{Changed, infer_again};
use crate::pass::{Arguments, Parameter, Pass, PassError, each_function};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_ir::{Argument, Attr, BoundValue, Call, Expr, ExprKind, Literal, RelaxFunction, StructInfo, VarBinding};
use rx_ops::Schema;

const FUNCTION: Parameter = Parameter {
    name: "func_name",
    default: Some("null"),
    doc: "The function to change; every function where it is left out.",
};

/// The registration of the pass for inference.
pub const INFERENCE: Pass = Pass {
    name: "DecomposeOpsForInference",
    parameters: &[FUNCTION],
    doc: "Replaces batch norms by arithmetic on their running statistics, and tensors made shapes by casts that bind dims.",
    reference: "src/relax/transform/decompose_ops.cc",
    run: |module, arguments| run(module, arguments, "DecomposeOpsForInference", inference),
};

/// The registration of the pass for training.
pub const TRAINING: Pass = Pass {
    name: "DecomposeOpsForTraining",
    parameters: &[FUNCTION],
    doc: "Replaces batch norms by arithmetic on the statistics of the batch, layer norms by arithmetic.",
    reference: "src/relax/transform/decompose_ops.cc",
    run: |module, arguments| run(module, arguments, "DecomposeOpsForTraining", training),
};

/// The registration of the pass that follows the attribute `training` of each call.
pub const AS_WRITTEN: Pass = Pass {
    name: "DecomposeOps",
    parameters: &[FUNCTION],
    doc: "Replaces each batch norm by arithmetic on the statistics that its `training` asks for, and tensors made shapes by casts that bind dims.",
    reference: "none: rx's own; as src/relax/transform/decompose_ops.cc, call by call",
    run: |module, arguments| run(module, arguments, "DecomposeOps", as_written),
};

/// A function that emits the decomposition of an operator call and returns the value of the whole; `None` if the call
/// stays.
type Decompose = fn(&Composed<'_>, &mut Emitter<'_>) -> Result<Option<Expr>, PassError>;

fn run(mut module: Module, arguments: &Arguments, pass: &str, decompose: Decompose) -> Result<Module, PassError> {
    let wanted = arguments.function(0, &module, pass)?;
    each_function(&mut module, pass, |function| match wanted.is_none_or(|wanted| wanted == function.name) {
        true => in_function(function, decompose),
        false => Ok(()),
    })?;
    Ok(module)
}

fn in_function(function: &mut RelaxFunction, decompose: Decompose) -> Result<(), PassError> {
    let mut changed = Changed::default();
    rewrite_bindings(function, &mut |binding, emitter| {
        let VarBinding { variable, ty, value: BoundValue::Expr(value), .. } = binding else { return Ok(()) };
        let Some(composed) = Composed::of(value) else { return Ok(()) };
        let Some(whole) = decompose(&composed, emitter)? else { return Ok(()) };
        if whole.ty != *ty {
            *ty = whole.ty.clone();
            changed.insert(*variable, whole.ty.clone());
        }
        *value = whole;
        Ok(())
    })?;
    infer_again(&mut function.body, &mut changed)
}

/// An operator call that may be decomposed.
struct Composed<'a> {
    schema: &'static Schema,
    call: &'a Call,
    /// The type of the call's result.
    ty: &'a StructInfo,
}

impl<'a> Composed<'a> {
    fn of(value: &'a Expr) -> Option<Composed<'a>> {
        let schema = rx_ops::find(name(value.as_op()?))?;
        Some(Composed { schema, call: value.as_call()?, ty: &value.ty })
    }

    fn operand(&self, param: &str) -> Result<Expr, PassError> {
        let operand = self.schema.operand(self.call, param).cloned();
        operand.ok_or_else(|| PassError(format!("`{}` has no `{param}`", self.schema.name)))
    }

    fn flag(&self, param: &str) -> bool {
        matches!(self.schema.attr(self.call, param), Some(Attr::Bool(true)))
    }

    fn float(&self, param: &str) -> f64 {
        match self.schema.attr(self.call, param) {
            Some(Attr::Float(value)) => *value,
            Some(attr) => attr.as_int().map_or(0.0, |value| value as f64),
            None => 0.0,
        }
    }

    /// Returns the data operand with its rank and dtype; `None` if one of these is unknown, or if an operand is a
    /// constant without data, or has an unknown type because it depends on such a constant.
    fn data(&self) -> Result<Option<Data>, PassError> {
        let data = self.operand("data")?;
        let is_known = |argument: &Argument| !matches!(argument, Argument::Operand(operand) if operand.ty.is_error());
        if !self.call.arguments.iter().all(is_known) {
            return Ok(None);
        }
        let known = data.ty.as_tensor().and_then(|tensor| Some((tensor.shape.ndim()?, tensor.dtype?)));
        Ok(known.map(|(ndim, dtype)| Data { value: data, ndim, dtype }))
    }

    /// Returns the axes that are not normalized, or an empty list if the normalized axes are the last ones. Returns
    /// `None` if there are no normalized axes, or if they are unknown or not in ascending order.
    fn axes_beside(&self, ndim: usize) -> Option<Vec<i64>> {
        let Attr::List(items) = self.schema.attr(self.call, "axes")? else { return None };
        let rank = ndim as i64;
        let axes: Vec<i64> = items.iter().map(Attr::as_int).collect::<Option<_>>()?;
        let axes: Vec<i64> = axes.into_iter().map(|axis| if axis < 0 { axis + rank } else { axis }).collect();
        let first = *axes.first()?;
        if first == rank - axes.len() as i64 && axes.iter().copied().eq(first..rank) {
            return Some(Vec::new());
        }
        axes.is_sorted_by(|a, b| a < b).then(|| (0..rank).filter(|axis| !axes.contains(axis)).collect())
    }

    /// Returns the channel axis.
    fn axis(&self, ndim: usize) -> Result<usize, PassError> {
        let axis = self.schema.attr(self.call, "axis").and_then(Attr::as_int).unwrap_or(1);
        let axis = if axis < 0 { axis + ndim as i64 } else { axis };
        usize::try_from(axis).map_err(|_| PassError(format!("`{}` has no axis {axis}", self.schema.name)))
    }
}

struct Data {
    value: Expr,
    ndim: usize,
    dtype: DType,
}

fn inference(composed: &Composed<'_>, emitter: &mut Emitter<'_>) -> Result<Option<Expr>, PassError> {
    match composed.schema.name {
        "nn.batch_norm" => {
            let Some(data) = composed.data()? else { return Ok(None) };
            let [mean, variance] = [composed.operand("moving_mean")?, composed.operand("moving_var")?];
            batch_norm(composed, &data, mean, variance, emitter).map(Some)
        }
        "tensor_to_shape" => tensor_to_shape(composed, emitter),
        _ => Ok(None),
    }
}

fn training(composed: &Composed<'_>, emitter: &mut Emitter<'_>) -> Result<Option<Expr>, PassError> {
    match composed.schema.name {
        "nn.batch_norm" => {
            let Some(data) = composed.data()? else { return Ok(None) };
            batch_norm_of_batch(composed, &data, emitter).map(Some)
        }
        "nn.layer_norm" => {
            let Some(data) = composed.data()? else { return Ok(None) };
            layer_norm(composed, &data, emitter)
        }
        _ => inference(composed, emitter),
    }
}

fn as_written(composed: &Composed<'_>, emitter: &mut Emitter<'_>) -> Result<Option<Expr>, PassError> {
    match composed.schema.name {
        "nn.batch_norm" if composed.flag("training") => training(composed, emitter),
        _ => inference(composed, emitter),
    }
}

/// Emits `(data - mean) / sqrt(variance + epsilon) * gamma + beta` ([`scaled`]), and returns it with the given
/// statistics.
fn batch_norm(
    composed: &Composed<'_>,
    data: &Data,
    mean: Expr,
    variance: Expr,
    emitter: &mut Emitter<'_>,
) -> Result<Expr, PassError> {
    let axes = ints(other_axes(composed.axis(data.ndim)?, data.ndim));
    let along = |value: &Expr, emitter: &mut Emitter<'_>| {
        emitter.call("expand_dims", vec![("x", operand(value)), ("axis", Argument::Attr(axes.clone()))])
    };
    let expanded = along(&mean, emitter)?;
    let centered = binary("subtract", &data.value, &expanded, emitter)?;
    let spread = along(&variance, emitter)?;
    let out = scaled(composed, data, &centered, &spread, &along, emitter)?;
    Ok(Expr::tuple(vec![out, mean, variance]))
}

/// Emits a batch norm that uses the statistics of the batch, and updates the running statistics to
/// `(1 - momentum) * running + momentum * batch`.
fn batch_norm_of_batch(composed: &Composed<'_>, data: &Data, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
    let axes = ints(other_axes(composed.axis(data.ndim)?, data.ndim));
    let mut of_batch = Vec::new();
    for operator in ["mean", "variance"] {
        of_batch.push(statistic(operator, data, &axes, false, emitter)?);
    }
    let [mean, variance] = [of_batch.remove(0), of_batch.remove(0)];
    let whole = batch_norm(composed, data, mean.clone(), variance.clone(), emitter)?;
    let whole = emitter.emit(whole);
    let momentum = composed.float("momentum");
    let mut fields: Vec<Expr> = whole.each_field().take(1).map(|out| emitter.emit(out)).collect();
    for (running, of_batch) in [("moving_mean", mean), ("moving_var", variance)] {
        let kept = binary("multiply", &scalar(1.0 - momentum, data.dtype), &composed.operand(running)?, emitter)?;
        let new = binary("multiply", &scalar(momentum, data.dtype), &of_batch, emitter)?;
        fields.push(binary("add", &kept, &new, emitter)?);
    }
    Ok(Expr::tuple(fields))
}

/// Emits `(data - mean) / sqrt(variance + epsilon) * gamma + beta` over the normalized axes ([`scaled`]). If these are
/// not the last ones, the scale and the offset are expanded to the rank of the data, which TVM does not do. Returns
/// `None` if [`Composed::axes_beside`] does.
fn layer_norm(composed: &Composed<'_>, data: &Data, emitter: &mut Emitter<'_>) -> Result<Option<Expr>, PassError> {
    let Some(others) = composed.axes_beside(data.ndim) else { return Ok(None) };
    let along = |value: &Expr, emitter: &mut Emitter<'_>| match others.as_slice() {
        [] => Ok(value.clone()),
        others => {
            emitter.call("expand_dims", vec![("x", operand(value)), ("axis", Argument::Attr(ints(others.to_vec())))])
        }
    };
    let axes = composed.schema.attr(composed.call, "axes").cloned().unwrap_or(Attr::None);
    let mean = statistic("mean", data, &axes, true, emitter)?;
    let centered = binary("subtract", &data.value, &mean, emitter)?;
    let spread = statistic("variance", data, &axes, true, emitter)?;
    let out = scaled(composed, data, &centered, &spread, &along, emitter)?;
    Ok(Some(emitter.unbound(out)))
}

/// Emits `centered / sqrt(variance + epsilon) * gamma + beta`. The function `along` expands the scale `gamma` and the
/// offset `beta` to the data's axes. The scale is left out without the attribute `scale`, the offset without `center`.
fn scaled(
    composed: &Composed<'_>,
    data: &Data,
    centered: &Expr,
    variance: &Expr,
    along: &dyn Fn(&Expr, &mut Emitter<'_>) -> Result<Expr, PassError>,
    emitter: &mut Emitter<'_>,
) -> Result<Expr, PassError> {
    let above_zero = binary("add", variance, &scalar(composed.float("epsilon"), data.dtype), emitter)?;
    let deviation = emitter.call("sqrt", vec![("x", operand(&above_zero))])?;
    let mut out = binary("divide", centered, &deviation, emitter)?;
    for (flag, operator, param) in [("scale", "multiply", "gamma"), ("center", "add", "beta")] {
        if composed.flag(flag) {
            let other = along(&composed.operand(param)?, emitter)?;
            out = binary(operator, &out, &other, emitter)?;
        }
    }
    Ok(out)
}

fn statistic(
    operator: &str,
    data: &Data,
    axes: &Attr,
    keepdims: bool,
    emitter: &mut Emitter<'_>,
) -> Result<Expr, PassError> {
    let axes = ("axis", Argument::Attr(axes.clone()));
    emitter.call(operator, vec![("x", operand(&data.value)), axes, ("keepdims", Argument::Attr(Attr::Bool(keepdims)))])
}

/// Emits a runtime call that reads the shape from the tensor, and a cast that binds its dims to new symbols.
fn tensor_to_shape(composed: &Composed<'_>, emitter: &mut Emitter<'_>) -> Result<Option<Expr>, PassError> {
    let StructInfo::Shape(shape) = composed.ty else { return Ok(None) };
    let Some(ndim) = shape.ndim() else { return Ok(None) };
    let function = Expr::new(ExprKind::Extern(name("vm.builtin.tensor_to_shape")), StructInfo::Object);
    let read = emitter.call(
        "call_pure_packed",
        vec![
            ("func", Argument::Operand(function)),
            ("args", Argument::Operands(vec![composed.operand("expr")?])),
            ("ty_args", Argument::Types(vec![composed.ty.clone()])),
        ],
    )?;
    let dims: Vec<Dim> = (0..ndim).map(|_| Dim::symbol(emitter.fresh(name("x")))).collect();
    let shape = Expr::shape(dims);
    let own = emitter.fresh(name("y"));
    emitter.bind(own, Expr::new(ExprKind::MatchCast(Box::new(read)), shape.ty.clone()));
    Ok(Some(shape))
}

fn other_axes(axis: usize, ndim: usize) -> Vec<i64> {
    (0..ndim).filter(|at| *at != axis).map(|at| at as i64).collect()
}

fn ints(values: Vec<i64>) -> Attr {
    Attr::List(values.into_iter().map(|value| Attr::Int(value.into())).collect())
}

fn operand(value: &Expr) -> Argument {
    Argument::Operand(value.clone())
}

fn binary(operator: &str, left: &Expr, right: &Expr, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
    emitter.call(operator, vec![("x1", operand(left)), ("x2", operand(right))])
}

/// Returns a scalar constant, like TVM's `MakeConstantScalar`. For `float32`, the value is rounded to that dtype.
fn scalar(value: f64, dtype: DType) -> Expr {
    let rounded = if dtype == DType::FLOAT32 { f64::from(value as f32) } else { value };
    Expr::new(ExprKind::Constant(Literal::Float(rounded)), StructInfo::tensor(Vec::new(), Some(dtype)))
}
