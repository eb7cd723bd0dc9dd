//! Calls of operators whose result's type is found out when they are made.
//!
//! A text may leave shapes, ranks and dtypes open (`R.Tensor(ndim=2)`, `R.Tensor`, `R.Any`). Such a call keeps the operator
//! and what is known of its arguments; when the program runs and every operand is there, [`DynamicCall::with`] makes it a
//! call of known types, and [`specialize`] the program of that.

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
use rx_ops::{Arg, CallInfo, Problem, Schema};
use rx_schedule::Preferences;
use std::sync::Arc;

/// A call of an operator; each operand is a register or a literal.
#[derive(Clone, Debug)]
pub struct DynamicCall {
    /// The operator.
    pub schema: &'static Schema,
    /// One per parameter of the schema.
    pub arguments: Vec<DynamicArgument>,
    /// The dtypes of those operands that are scalars, by their number.
    pub dtypes: Vec<Option<DType>>,
}

/// What a call passes for a parameter.
#[derive(Clone, Debug)]
pub enum DynamicArgument {
    /// What the text says: attributes and literals, whose symbols get their values when the call is made.
    Written(Argument),
    /// The register of this number, among those the instruction reads.
    Register(usize),
    /// The registers of these numbers, passed for a variadic parameter.
    Registers(Vec<usize>),
}

/// A value that is there, as far as an operator's rule looks at it.
#[derive(Clone, Debug, PartialEq)]
pub enum Actual {
    /// A tensor: extents and dtype.
    Tensor(Vec<i64>, DType),
    /// A shape.
    Shape(Vec<i64>),
    /// An integer or truth value.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    String(Arc<str>),
    /// A tuple.
    Tuple(Vec<Actual>),
    /// What stands for nothing.
    Null,
}

/// A call whose operands' types are known: equal ones have one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Specialized {
    /// The operator, by its name.
    operator: &'static str,
    arguments: Vec<Argument>,
    /// The tensors among the operands, in order, tuples flattened.
    params: Vec<(Name, StructInfo)>,
}

impl DynamicCall {
    /// The call with these values in its registers, and these values of symbols. The program of it takes the tensors among
    /// the values, in the order of [`DynamicCall::reads`], tuples flattened.
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

    fn dtype(&self, at: usize) -> Option<DType> {
        self.dtypes.get(at).copied().flatten()
    }

    /// The registers it reads, by their number, in the order of its parameters.
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
    /// A value as an operand: tensors are parameters, everything else stands in the call. A scalar is of the dtype given.
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
            // In a shape that is written in the call 0 copies a length; a value's lengths are what they are.
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

/// A call's program.
#[derive(Clone, Debug)]
pub struct Made {
    /// Takes the tensors among the operands; gives the result.
    pub program: Program,
    /// Whether the result stands for a scalar: it is a tensor without dims.
    pub scalar: bool,
}

/// The program of a call whose operands' types are known, for a device that prefers this.
///
/// # Errors
/// What the operator's rule says of these operands, or why it cannot be computed; in a sentence without a full stop.
pub fn specialize(call: &Specialized, preferences: &dyn Preferences) -> Result<Made, String> {
    let schema = rx_ops::find(name(call.operator)).ok_or_else(|| format!("R.{} is no operator", call.operator))?;
    let mut arguments = call.arguments.clone();
    let mut ty = inferred(schema, &arguments)?;
    let scalar = matches!(ty, StructInfo::Prim(_));
    if scalar {
        // Arithmetic of scalars is that of tensors without dims.
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
    crate::steps::run(&mut program, Some(preferences));
    Ok(Made { program, scalar })
}

/// The type of the call's result.
fn inferred(schema: &'static Schema, arguments: &[Argument]) -> Result<StructInfo, String> {
    let args: Vec<Arg<'_>> = arguments.iter().map(Arg::from).collect();
    let bounds = Bounds::default();
    (schema.infer)(&CallInfo::new(schema, &args, &bounds)).map_err(|problem| match problem {
        Problem::Propagate => format!("R.{}: its operands do not fit", schema.name),
        Problem::Report(diagnostic) => format!("R.{}", diagnostic.message),
    })
}

/// A scalar operand as a constant tensor of its dtype.
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

/// A module of one function.
struct Alone(Arc<Function>);

impl Module for Alone {
    fn function(&self, name: Name) -> Option<Arc<Function>> {
        (name == self.0.name).then(|| self.0.clone())
    }

    fn prim_func(&self, _: Name) -> Option<Result<Loops, String>> {
        None
    }
}

fn dims(shape: &[i64]) -> Vec<Dim> {
    shape.iter().copied().map(Dim::constant).collect()
}

/// What the text passes, with values for its symbols.
fn written(argument: &Argument, value_of: &dyn Fn(Name) -> Option<i64>) -> Argument {
    match argument {
        Argument::Operand(expr) => Argument::Operand(valued(expr, value_of)),
        Argument::Operands(exprs) => Argument::Operands(exprs.iter().map(|expr| valued(expr, value_of)).collect()),
        Argument::Attr(attr) => Argument::Attr(valued_attr(attr, value_of)),
        other => other.clone(),
    }
}

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

fn valued_attr(attr: &Attr, value_of: &dyn Fn(Name) -> Option<i64>) -> Attr {
    match attr {
        Attr::Int(value) => Attr::Int(value.substitute(&|symbol| value_of(symbol).map(Dim::constant))),
        Attr::List(items) => Attr::List(items.iter().map(|item| valued_attr(item, value_of)).collect()),
        other => other.clone(),
    }
}
