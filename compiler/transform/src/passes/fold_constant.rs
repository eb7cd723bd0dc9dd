//! `FoldConstant`: constant folding; evaluates calls whose operands are all constants.
//!
//! ```text
//! with R.dataflow():                              with R.dataflow():
//!     a = R.add(R.const(1.0), R.const(2.0))   →       b = R.multiply(x, R.const(3.0))
//!     b = R.multiply(x, a)                            R.output(b)
//!     R.output(b)
//! ```
//!
//! `R.call_tir` of tensor constants is folded everywhere, pure operators with a compute definition or a view only in
//! dataflow blocks, and `R.nn.dropout` nowhere. Another operator without tensor operands, such as `R.zeros`, is
//! folded if the result has at most [`MAX_CREATED`] elements. Known shapes replace variables in operator calls except
//! `R.call_tir`, and `R.tensor_to_shape` of a constant in a dataflow block becomes a shape.
//!
//! Requires that the caller supplies a function that computes values ([`Evaluate`]). Guarantees the same values: a call
//! whose evaluation fails or takes too long stays.
//!
//! Reference: TVM `src/relax/transform/fold_constant.cc`.

use crate::Module;
use crate::constant;
use crate::effects::Effects;
use crate::make::{Changed, expr_again, follow_result, is_sharper};
use crate::pass::{Arguments, Evaluate, Pass, PassError};
use crate::passes::dead_code::remove_unused;
use rx_base::name::{NameMap, name};
use rx_base::{Dim, Name};
use rx_ir::{
    Argument, Block, BoundValue, Callee, Constants, Expr, ExprKind, Item, Origin, PrimValue, RelaxFunction, Sequence,
    Shape, StructInfo, VarBinding,
};
use rx_ops::Compute;
use rx_tensor::Tensor;
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "FoldConstant",
    parameters: &[],
    doc: "Replaces values that depend only on constants by constants.",
    reference: "src/relax/transform/fold_constant.cc",
    run,
};

/// The largest number of elements to fold from an operator call without tensor operands, except `R.call_tir`. Creating
/// a larger tensor at run time is faster than loading it.
const MAX_CREATED: i64 = 1024;

/// The largest result of a folded call, in bytes.
const MAX_BYTES: i64 = 1 << 30;

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let evaluate = arguments.evaluator();
    let evaluate = evaluate.ok_or_else(|| PassError("FoldConstant: nothing here computes values".to_owned()))?;
    let effects = Effects::of(&module);
    let mut folding = Folding {
        evaluate,
        shell: Module { items: Vec::new(), constants: Constants::default(), ..module.clone() },
        callees: module.items.iter().filter_map(|item| Some((item.name()?, item.clone()))).collect(),
        constants: std::mem::take(&mut module.constants),
        known: NameMap::default(),
        changed: Changed::default(),
    };
    for function in module.functions_mut() {
        folding.known.clear();
        folding.changed.clear();
        let own = function.name;
        folding.function(function).map_err(|error| PassError(format!("FoldConstant: {}", error.at(own))))?;
        remove_unused(function, &effects);
    }
    module.constants = folding.constants;
    Ok(module)
}

struct Folding {
    evaluate: Evaluate,
    /// The module without items and constants. It is the context for evaluated functions.
    shell: Module,
    callees: NameMap<Item<rx_tir::PrimFunc>>,
    constants: Constants,
    /// The variables bound to constants, shapes, or tuples of constants, with their values.
    known: NameMap<Expr>,
    /// The current types of variables, for updating their uses.
    changed: Changed,
}

impl Folding {
    fn function(&mut self, function: &mut RelaxFunction) -> Result<(), PassError> {
        let before = function.body.result.ty.clone();
        self.sequence(&mut function.body)?;
        follow_result(function, &before);
        Ok(())
    }

    fn sequence(&mut self, sequence: &mut Sequence) -> Result<(), PassError> {
        for Block { outputs, bindings } in &mut sequence.blocks {
            for binding in bindings {
                self.binding(binding, outputs.is_some())?;
            }
        }
        expr_again(&mut sequence.result, &self.changed)?;
        self.substitute(&mut sequence.result);
        Ok(())
    }

    fn binding(&mut self, binding: &mut VarBinding, dataflow: bool) -> Result<(), PassError> {
        match &mut binding.value {
            BoundValue::Expr(value) => {
                let inferred = expr_again(value, &self.changed).map_err(|error| error.at(binding.variable))?.is_some();
                self.substitute(value);
                let folded = self.folded(value, dataflow);
                let is_new = inferred || folded.is_some();
                if let Some(folded) = folded {
                    *value = folded;
                }
                // The declared type stays, unless the pass has inferred a new one that is not less specific.
                if is_new && value.ty != binding.ty && !value.ty.is_error() && !is_sharper(&binding.ty, &value.ty) {
                    binding.ty = value.ty.clone();
                    self.changed.insert(binding.variable, value.ty.clone());
                }
                if self.is_value(value) {
                    self.known.insert(binding.variable, value.clone());
                    // The value can replace uses of the variable, so these get the value's own type.
                    self.changed.insert(binding.variable, value.ty.clone());
                }
                Ok(())
            }
            BoundValue::If(branches) => {
                self.substitute(&mut branches.condition);
                self.sequence(&mut branches.then)?;
                self.sequence(&mut branches.otherwise)
            }
            // The function's return type is part of the variable's type, so neither changes.
            BoundValue::Function(function) => self.sequence(&mut Arc::make_mut(function).body),
        }
    }

    /// Whether a value, or for a tuple each of its fields, may replace uses of its variable.
    fn is_value(&self, value: &Expr) -> bool {
        match &value.kind {
            ExprKind::Shape(_) => true,
            ExprKind::Tuple(fields) => fields.iter().all(|field| constant::is_known(field, &self.constants)),
            _ => constant::is_known(value, &self.constants),
        }
    }

    /// Replaces by their values: variables that are bound to constants; fields of known tuples; and, as operands of
    /// operators other than `call_tir`, variables that are bound to shapes.
    fn substitute(&self, expr: &mut Expr) {
        let takes_shapes = !matches!(expr.as_op(), None | Some("call_tir"));
        expr.each_mut(&mut |expr| match &expr.kind {
            ExprKind::Var(variable) => {
                if let Some(value) = self.known.get(variable)
                    && constant::is_known(value, &self.constants)
                {
                    *expr = value.clone();
                }
            }
            ExprKind::TupleGet(tuple, at) => {
                let tuple = tuple.as_var().and_then(|tuple| self.known.get(&tuple));
                if let Some(Expr { kind: ExprKind::Tuple(fields), .. }) = tuple
                    && let Some(field) = fields.get(*at)
                {
                    *expr = field.clone();
                }
            }
            _ => {}
        });
        if takes_shapes {
            expr.each_child_mut(&mut |child| {
                let value = child.as_var().and_then(|variable| self.known.get(&variable));
                if let Some(value @ Expr { kind: ExprKind::Shape(_), .. }) = value {
                    *child = value.clone();
                }
            });
        }
    }

    /// Returns the constant, the tuple of constants, or the shape that a call evaluates to; `None` if the call is not
    /// folded.
    fn folded(&mut self, value: &Expr, dataflow: bool) -> Option<Expr> {
        let call = value.as_call()?;
        let Callee::Op(operator) = call.callee else { return None };
        if operator.as_str() == "tensor_to_shape" && dataflow {
            return self.shape(call.arguments.first()?);
        }
        let mut depends_on_symbols = false;
        value.each_symbol(&mut |_| depends_on_symbols = true);
        let (types, is_tuple) = outputs(&value.ty)?;
        let elements = types.iter().try_fold(0i64, |sum, (extents, _)| sum.checked_add(count(extents)?))?;
        let bytes = types.iter().try_fold(0i64, |sum, (extents, width)| {
            sum.checked_add(count(extents)?.checked_mul(i64::try_from(*width).ok()?)?)
        });
        if depends_on_symbols || bytes.is_none_or(|bytes| bytes > MAX_BYTES) {
            return None;
        }
        let callee = match operator.as_str() {
            "call_tir" => Some(self.kernel(call)?),
            _ => {
                let schema = rx_ops::find(operator)?;
                let has_loops = matches!(schema.compute, Some(Compute::Loops(_) | Compute::View(_)));
                // Training passes match dropout calls.
                let is_dropout = operator.as_str() == "nn.dropout";
                let takes = self.takes_constants(value)?;
                let is_pure = schema.purity == rx_ops::Purity::Pure;
                if !dataflow || !has_loops || !is_pure || is_dropout || (!takes && elements > MAX_CREATED) {
                    return None;
                }
                None
            }
        };
        let results = self.evaluated(value, callee)?;
        let fits = results.len() == types.len()
            && results.iter().zip(&types).all(|(result, (extents, _))| result.shape() == extents.as_slice());
        if !fits {
            return None;
        }
        let mut fields: Vec<Expr> =
            results.iter().map(|result| constant::expression(result, &mut self.constants)).collect();
        match is_tuple {
            true => Some(Expr::new(ExprKind::Tuple(fields), value.ty.clone())),
            false => fields.pop(),
        }
    }

    /// Returns the function of the module that `R.call_tir` calls. Returns `None` if the arguments are not a tuple of
    /// constants with known elements, if there are `tir_vars`, or if the callee is a Relax function or is not in the
    /// module.
    fn kernel(&self, call: &rx_ir::Call) -> Option<Item<rx_tir::PrimFunc>> {
        let schema = rx_ops::find(name("call_tir"))?;
        let ExprKind::Global(callee) = schema.operand(call, "gvar")?.kind else { return None };
        let ExprKind::Tuple(arguments) = &schema.operand(call, "args")?.kind else { return None };
        schema.operand(call, "tir_vars").is_none().then_some(())?;
        arguments.iter().all(|argument| constant::is_known(argument, &self.constants)).then_some(())?;
        self.callees.get(&callee).filter(|item| !matches!(item, Item::Relax(_))).cloned()
    }

    /// Returns whether a call has constant tensor operands; `None` if it has an operand that is not constant.
    fn takes_constants(&self, value: &Expr) -> Option<bool> {
        let mut takes = false;
        let mut all_known = true;
        value.each_child(&mut |child| {
            child.each(&mut |inner| match &inner.kind {
                ExprKind::Constant(_) | ExprKind::Elements(_) | ExprKind::Metadata { .. } => {
                    takes = true;
                    all_known &= constant::is_known(inner, &self.constants);
                }
                ExprKind::Shape(_) | ExprKind::Tuple(_) | ExprKind::Str(_) | ExprKind::DType(_) => {}
                ExprKind::Prim(value) => all_known &= !matches!(value, PrimValue::Opaque),
                _ => all_known = false,
            });
        });
        all_known.then_some(takes)
    }

    /// Evaluates a call. The call becomes the body of a temporary function that takes the constants, except for single
    /// literals, as parameters.
    fn evaluated(&self, value: &Expr, callee: Option<Item<rx_tir::PrimFunc>>) -> Option<Vec<Tensor>> {
        let own = name("evaluated");
        let mut params: Vec<(Name, StructInfo)> = Vec::new();
        let mut inputs: Vec<Tensor> = Vec::new();
        let mut value = value.clone();
        let mut all_held = true;
        value.each_mut(&mut |expr| {
            if matches!(expr.kind, ExprKind::Elements(_) | ExprKind::Metadata { .. }) {
                let Some(tensor) = constant::tensor(expr, &self.constants) else { return all_held = false };
                let param = name(&format!("constant{}", params.len()));
                let extents: Vec<Dim> = tensor.shape().iter().copied().map(Dim::constant).collect();
                let ty = StructInfo::tensor(extents, Some(tensor.dtype()));
                params.push((param, ty.clone()));
                inputs.push(tensor);
                *expr = Expr::var(param, ty);
            }
        });
        all_held.then_some(())?;
        let (ty, result) = (value.ty.clone(), name("result"));
        let origin = Origin { item: own, statement: 0 };
        let binding = VarBinding { origin, variable: result, ty: ty.clone(), value: BoundValue::Expr(value) };
        let function = RelaxFunction {
            name: own,
            private: false,
            pure: true,
            attributes: Vec::new(),
            params,
            ret: ty.clone(),
            body: Sequence {
                blocks: vec![Block { outputs: None, bindings: vec![binding] }],
                result: Expr::var(result, ty),
            },
        };
        // The temporary function would hide a kernel of the same name.
        let is_hidden = callee.as_ref().is_some_and(|item| item.name() == Some(own));
        let items = callee.into_iter().chain([Item::Relax(Arc::new(function))]).collect();
        let module = Module { items, ..self.shell.clone() };
        (!is_hidden).then(|| (self.evaluate)(&module, own, &inputs).ok())?
    }

    /// Converts a one-dimensional constant of dims to a shape.
    fn shape(&self, argument: &Argument) -> Option<Expr> {
        let Argument::Operand(operand) = argument else { return None };
        let tensor = constant::tensor(operand, &self.constants).filter(|tensor| tensor.shape().len() == 1)?;
        let dims = (0..tensor.len()).map(|at| tensor.get(at)?.as_int().filter(|dim| *dim >= 0).map(Dim::constant));
        let dims: Vec<Dim> = dims.collect::<Option<_>>()?;
        let ty = StructInfo::Shape(Shape::known(dims.clone()));
        Some(Expr::new(ExprKind::Shape(dims), ty))
    }
}

/// The extents of a tensor, and the size of an element in bytes.
type Extents = (Vec<i64>, u64);

/// Returns the extents and element size of every tensor in a type, and whether the type is a tuple. Returns `None` if
/// one is unknown, if a tensor is assigned to a device, or if the type is neither a tensor nor a tuple of tensors.
fn outputs(ty: &StructInfo) -> Option<(Vec<Extents>, bool)> {
    let one = |ty: &StructInfo| {
        let StructInfo::Tensor(tensor) = ty else { return None };
        tensor.vdevice.is_none().then_some(())?;
        let extents: Option<Vec<i64>> = tensor.shape.dims()?.iter().map(Dim::as_constant).collect();
        Some((extents?, tensor.dtype?.bytes()))
    };
    match ty {
        StructInfo::Tuple(fields) => Some((fields.iter().map(one).collect::<Option<_>>()?, true)),
        ty => Some((vec![one(ty)?], false)),
    }
}

fn count(extents: &[i64]) -> Option<i64> {
    extents.iter().try_fold(1i64, |count, extent| count.checked_mul(*extent))
}
