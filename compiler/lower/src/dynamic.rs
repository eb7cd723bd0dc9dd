//! Operator calls that are lowered at run time, because their types are not fully known at compile time.
//!
//! A module may leave shapes, ranks and dtypes open (`R.Tensor(ndim=2)`, `R.Tensor`, `R.Any`). Such a call keeps its
//! operator and arguments. At run time, when all operands have values, [`DynamicCall::with`] turns it into a call with
//! known types, and [`specialize`] lowers that call to a program. For example, `R.add(x, y)` with `x: R.Tensor(ndim=1)`
//! becomes `R.add` of two `R.Tensor((3,), "float32")`.

use crate::loops::Loops;
use crate::lower::{Module, lower_complete};
use crate::program::Program;
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim, Name};
use rx_ir::{
    Argument, Attr, Binding, BindingKind, Body, Call, Callee, Expr, ExprKind, Function, Literal, Origin, PrimInfo,
    PrimValue, StructInfo,
};
use rx_loops::TargetInfo;
use rx_ops::{Arg, CallInfo, Problem, Schema};
use std::sync::Arc;

/// A call of an operator that is lowered at run time.
#[derive(Clone, Debug)]
pub struct DynamicCall {
    /// The operator.
    pub schema: &'static Schema,
    /// The arguments, one for each parameter of the schema.
    pub arguments: Vec<DynamicArgument>,
    /// For each operand register: the dtype, if the operand's type at compile time is a scalar type with a known dtype
    /// (`R.Prim("int64")`). `None` for all others, also for an `R.Any` that is a scalar at run time.
    pub dtypes: Vec<Option<DType>>,
}

/// An argument of a dynamic call.
#[derive(Clone, Debug)]
pub enum DynamicArgument {
    /// An argument without a register: an attribute, a literal, another value known at compile time, or an absent
    /// argument. Its symbols get their values at run time.
    Written(Argument),
    /// The operand register with this index among those that the instruction reads.
    Register(usize),
    /// The operand registers with these indices, for a variadic parameter.
    Registers(Vec<usize>),
}

/// A run-time value, reduced to the properties that inference depends on.
#[derive(Clone, Debug, PartialEq)]
pub enum Actual {
    /// A tensor: shape and dtype.
    Tensor(Vec<i64>, DType),
    /// A shape.
    Shape(Vec<i64>),
    /// An integer or a Boolean.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    String(Arc<str>),
    /// A tuple.
    Tuple(Vec<Actual>),
    /// The null value.
    Null,
}

/// A call in which the types of the tensors and the values of all other operands are known: the key of the cache of
/// programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Specialized {
    /// The operator's name, without `R.`.
    operator: &'static str,
    /// One argument for each parameter of the operator. Tensors refer to `params`.
    arguments: Vec<Argument>,
    /// The program's parameters: the tensors among the operands, in order, with tuples flattened.
    params: Vec<(Name, StructInfo)>,
}

impl DynamicCall {
    /// Returns the call with these operand values and symbol values. Its program takes the tensors among the values, in
    /// the order of [`DynamicCall::reads`], with tuples flattened.
    pub fn with(&self, actuals: &[Actual], value_of: &dyn Fn(Name) -> Option<i64>) -> Specialized {
        let mut made = Specialized { operator: self.schema.name, arguments: Vec::new(), params: Vec::new() };
        let null = Actual::Null;
        for argument in &self.arguments {
            let argument = match argument {
                DynamicArgument::Written(argument) => written(argument, value_of),
                DynamicArgument::Register(at) => match made.operand(actuals.get(*at).unwrap_or(&null), self.dtype(*at))
                {
                    Some(expr) => Argument::Operand(expr),
                    None => Argument::Absent,
                },
                DynamicArgument::Registers(all) => {
                    let exprs =
                        all.iter().filter_map(|at| made.operand(actuals.get(*at).unwrap_or(&null), self.dtype(*at)));
                    Argument::Operands(exprs.collect())
                }
            };
            made.arguments.push(argument);
        }
        made
    }

    /// Returns the entry of [`DynamicCall::dtypes`] for an operand register.
    fn dtype(&self, at: usize) -> Option<DType> {
        self.dtypes.get(at).copied().flatten()
    }

    /// Returns the indices of the operand registers, in the order of the operator's parameters.
    pub fn reads(&self) -> Vec<usize> {
        let each = self.arguments.iter().flat_map(|argument| match argument {
            DynamicArgument::Written(_) => Vec::new(),
            DynamicArgument::Register(at) => vec![*at],
            DynamicArgument::Registers(all) => all.clone(),
        });
        each.collect()
    }
}

impl Specialized {
    /// Converts a value to an operand. A tensor becomes a parameter; a tuple becomes the tuple of its fields' operands,
    /// without null fields; any other value becomes a literal, except that a shape for `R.reshape` becomes a variable.
    /// A number has the dtype `scalar` or, if there is none or it is in a tuple, int64 or float64. Returns `None` for
    /// the null value.
    fn operand(&mut self, actual: &Actual, scalar: Option<DType>) -> Option<Expr> {
        let prim = |value, dtype, known| {
            let ty = StructInfo::Prim(PrimInfo { dtype: Some(dtype), value: known });
            Expr::new(ExprKind::Prim(value), ty)
        };
        Some(match actual {
            Actual::Tensor(shape, dtype) => {
                let param = name(&format!("operand{}", self.params.len()));
                let ty = StructInfo::tensor(dims(shape), Some(*dtype));
                self.params.push((param, ty.clone()));
                Expr::var(param, ty)
            }
            // In a literal shape of `R.reshape`, 0 means that the extent is copied from the input. The extents of a
            // run-time shape are meant literally, so it is passed as a variable.
            Actual::Shape(shape) if self.operator == "reshape" => {
                Expr::var(name("shape"), StructInfo::shape(dims(shape)))
            }
            Actual::Shape(shape) => Expr::shape(dims(shape)),
            Actual::Int(value) if scalar.is_some_and(DType::is_bool) => {
                prim(PrimValue::Bool(*value != 0), DType::BOOL, None)
            }
            Actual::Int(value) => {
                let dtype = scalar.unwrap_or(DType::INT64);
                prim(PrimValue::Int(Dim::constant(*value)), dtype, Some(Dim::constant(*value)))
            }
            Actual::Float(value) => prim(PrimValue::Float(*value), scalar.unwrap_or(DType::FLOAT64), None),
            Actual::String(text) => Expr::new(ExprKind::Str(text.clone()), StructInfo::Object),
            Actual::Tuple(fields) => Expr::tuple(fields.iter().filter_map(|field| self.operand(field, None)).collect()),
            Actual::Null => return None,
        })
    }
}

/// The program of a specialized call.
#[derive(Clone, Debug)]
pub struct Made {
    /// The program. It takes the tensors among the operands, and returns the result.
    pub program: Program,
    /// Whether the result is a scalar in Relax. The program returns it as a tensor of rank 0.
    pub scalar: bool,
}

/// Lowers a call with known operand types, and runs the steps ([`crate::steps`]) for a device with this target
/// information.
///
/// # Errors
/// Returns the error of the operator's inference rule, or the reason why the call cannot be lowered: a sentence without
/// a full stop.
pub fn specialize(call: &Specialized, target_info: &dyn TargetInfo) -> Result<Made, String> {
    let schema = rx_ops::find(name(call.operator)).ok_or_else(|| format!("R.{} is no operator", call.operator))?;
    let mut arguments = call.arguments.clone();
    let mut ty = inferred(schema, &arguments)?;
    let scalar = matches!(ty, StructInfo::Prim(_));
    if scalar {
        // Scalar arithmetic is computed on tensors of rank 0.
        arguments.iter_mut().for_each(scalar_to_tensor);
        ty = inferred(schema, &arguments)?;
    }
    let (entry, result) = (name(schema.name), name("result"));
    let value = Call { callee: Callee::Op(entry), arguments };
    let value = Expr::new(ExprKind::Call(Arc::new(value)), ty.clone());
    let binding = Binding {
        origin: Origin { item: entry, statement: 0 },
        dataflow: None,
        kind: BindingKind::Value { variable: result, ty: ty.clone(), value: Arc::new(value) },
    };
    let body = Body { bindings: vec![binding], result: Some(Expr::var(result, ty.clone())), outputs: Vec::new() };
    let function = Function {
        name: entry,
        params: call.params.clone(),
        ret: ty,
        pure: true,
        private: false,
        attributes: Vec::new(),
        num_input: None,
        bounds: Arc::default(),
        body,
    };
    let program = lower_complete(&Alone(Arc::new(function)), entry);
    let mut program = program.map_err(|problems| {
        let first = problems.into_iter().next();
        first.map_or_else(|| format!("R.{} cannot be computed", schema.name), |problem| problem.message)
    })?;
    crate::steps::run(&mut program, Some(target_info));
    Ok(Made { program, scalar })
}

/// Infers the type of the call's result.
fn inferred(schema: &'static Schema, arguments: &[Argument]) -> Result<StructInfo, String> {
    let args: Vec<Arg<'_>> = arguments.iter().map(Arg::from).collect();
    let bounds = Bounds::default();
    (schema.infer)(&CallInfo::new(schema, &args, &bounds)).map_err(|problem| match problem {
        Problem::Propagate => format!("R.{}: its operands do not fit", schema.name),
        Problem::Report(diagnostic) => format!("R.{}", diagnostic.message),
    })
}

/// Converts a literal scalar operand to a constant tensor of rank 0 with the same dtype.
fn scalar_to_tensor(argument: &mut Argument) {
    let Argument::Operand(expr) = argument else { return };
    let StructInfo::Prim(info) = &expr.ty else { return };
    let literal = match &expr.kind {
        ExprKind::Prim(PrimValue::Int(value)) => value.as_constant().map(Literal::Int),
        ExprKind::Prim(PrimValue::Float(value)) => Some(Literal::Float(*value)),
        ExprKind::Prim(PrimValue::Bool(value)) => Some(Literal::Bool(*value)),
        _ => None,
    };
    if let Some(literal) = literal {
        let dtype = info.dtype.unwrap_or(DType::INT64);
        *expr = Expr::new(ExprKind::Constant(literal), StructInfo::tensor(Vec::<Dim>::new(), Some(dtype)));
    }
}

/// A module that consists of one function.
struct Alone(Arc<Function>);

impl Module for Alone {
    fn function(&self, name: Name) -> Option<Arc<Function>> {
        (name == self.0.name).then(|| self.0.clone())
    }

    fn prim_func(&self, _: Name) -> Option<Result<Loops, String>> {
        None
    }
}

/// Converts extents to constant dims.
fn dims(shape: &[i64]) -> Vec<Dim> {
    shape.iter().copied().map(Dim::constant).collect()
}

/// Replaces the symbols in an argument of the source by their values.
fn written(argument: &Argument, value_of: &dyn Fn(Name) -> Option<i64>) -> Argument {
    match argument {
        Argument::Operand(expr) => Argument::Operand(valued(expr, value_of)),
        Argument::Operands(exprs) => Argument::Operands(exprs.iter().map(|expr| valued(expr, value_of)).collect()),
        Argument::Attr(attr) => Argument::Attr(valued_attr(attr, value_of)),
        other => other.clone(),
    }
}

/// Replaces the symbols in the shapes and integers of an expression by their values.
fn valued(expr: &Expr, value_of: &dyn Fn(Name) -> Option<i64>) -> Expr {
    let dim = |dim: &Dim| dim.substitute(&|symbol| value_of(symbol).map(Dim::constant));
    let mut made = expr.clone();
    made.each_mut(&mut |part| match (&mut part.kind, &mut part.ty) {
        (ExprKind::Shape(dims), ty) => {
            dims.iter_mut().for_each(|one| *one = dim(one));
            *ty = StructInfo::shape(dims.clone());
        }
        (ExprKind::Prim(PrimValue::Int(value)), ty) => {
            *value = dim(value);
            if let StructInfo::Prim(info) = ty {
                info.value = Some(value.clone());
            }
        }
        _ => {}
    });
    made
}

/// Replaces the symbols in an attribute by their values.
fn valued_attr(attr: &Attr, value_of: &dyn Fn(Name) -> Option<i64>) -> Attr {
    match attr {
        Attr::Int(value) => Attr::Int(value.substitute(&|symbol| value_of(symbol).map(Dim::constant))),
        Attr::List(items) => Attr::List(items.iter().map(|item| valued_attr(item, value_of)).collect()),
        other => other.clone(),
    }
}
