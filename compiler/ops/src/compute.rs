//! From a call to the loops that compute it: what compute definitions are given and what they make.
//!
//! A compute definition is written once for every shape: extents are symbolic, attributes are constants. It takes the
//! operands and outputs from a [`Lowering`], and builds blocks over them with its [`KernelBuilder`].

mod view;

use crate::call::{CallInfo, Problem};
use rx_base::{DType, Dim, Name};
use rx_ir::{Expr as IrExpr, ExprKind, Literal, PrimValue, StructInfo};
use rx_tir::func::BufferId;
use rx_tir::{Expr, KernelBuilder, PrimFunc};
use std::fmt;

/// A compute definition: stores the result of a call by loops.
pub type Loops = fn(&mut Lowering<'_>) -> Result<(), Unsupported>;

/// How an operator's result is computed.
#[derive(Clone, Copy, Debug)]
pub enum Compute {
    /// By loops.
    Loops(Loops),
    /// Not at all: the result is the elements of this operand, in order, under the result's shape.
    View(&'static str),
    /// Not at all: the result is this operand, of which something is said. Of what several workers do together it is what
    /// one does alone (`num_workers` is 1).
    Identity(&'static str),
    /// From whole values, where the program runs, by a function that the runtime has under the operator's name: what depends
    /// on values more than loops can, and what has an effect.
    Host,
}

/// Why a call has no loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl Unsupported {
    /// For this reason.
    pub fn because(reason: impl Into<String>) -> Unsupported {
        Unsupported(reason.into())
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A definition may read attributes with the helpers of the rules; a call that reaches it has passed them.
impl From<Problem> for Unsupported {
    fn from(problem: Problem) -> Unsupported {
        match problem {
            Problem::Propagate => Unsupported::because("the call has a mistake"),
            Problem::Report(diagnostic) => Unsupported(diagnostic.message.clone()),
        }
    }
}

/// A call made into a function over buffers: inputs, then outputs, then scalars.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function.
    pub func: PrimFunc,
    /// Where its input buffers come from, in order.
    pub inputs: Vec<Input>,
    /// The number of output buffers behind the inputs: one per tensor of the result, tuples flattened.
    pub outputs: usize,
    /// What is passed for its scalars, in order: over the symbols of the call.
    pub scalars: Vec<Dim>,
}

/// A tensor operand of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// The parameter it is passed for.
    pub param: &'static str,
    /// Its index, where the parameter takes a tuple of tensors.
    pub element: Option<usize>,
}

/// A tensor as a compute definition sees it: a buffer, or a constant scalar written in the call.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its extents.
    pub shape: Vec<Dim>,
    /// Its element type.
    pub dtype: DType,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Buffer(BufferId),
    Constant(Expr),
}

impl Operand {
    /// The number of its dims.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The element at `indices`.
    pub fn at(&self, builder: &KernelBuilder, indices: &[Expr]) -> Expr {
        match &self.source {
            Source::Buffer(buffer) => builder.load(*buffer, indices),
            Source::Constant(value) => value.clone(),
        }
    }

    /// The element that stands at `axes` of a result it is broadcast to: aligned at the last axis, extents of 1 repeated (not
    /// where the result's is 1, too: there the access is elementwise to who asks, as TVM's is).
    pub fn broadcast_at(&self, builder: &KernelBuilder, axes: &[Expr]) -> Expr {
        let skipped = axes.len().saturating_sub(self.ndim());
        let index = |(axis, extent): (&Expr, &Dim)| match extent.as_constant() {
            Some(1) if !builder.is_single(axis) => Expr::int(0),
            _ => axis.clone(),
        };
        let indices: Vec<Expr> = axes.iter().skip(skipped).zip(&self.shape).map(index).collect();
        self.at(builder, &indices)
    }

    /// Its extents as expressions.
    pub fn extents(&self, builder: &mut KernelBuilder) -> Vec<Expr> {
        self.shape.iter().map(|dim| builder.dim(dim)).collect()
    }
}

/// A call on its way to loops.
#[derive(Debug)]
pub struct Lowering<'a> {
    /// The call, for its attributes.
    pub call: &'a CallInfo<'a>,
    /// Builds the function.
    pub builder: KernelBuilder,
    inputs: Vec<(Input, BufferId)>,
    outputs: Vec<(BufferId, Vec<Dim>)>,
}

impl<'a> Lowering<'a> {
    /// A lowering of `call`, whose result has the type `result`.
    ///
    /// # Errors
    /// Where a tensor of the result has a shape or dtype that is not known.
    pub fn new(call: &'a CallInfo<'a>, result: &StructInfo) -> Result<Lowering<'a>, Unsupported> {
        let mut builder = KernelBuilder::new(Name::from(call.schema.name));
        let mut outputs = Vec::new();
        for (at, ty) in flatten(result).into_iter().enumerate() {
            let (shape, dtype) = tensor_parts(ty, "the result")?;
            let name = if at == 0 { "out".to_owned() } else { format!("out_{at}") };
            outputs.push((builder.buffer(&name, &shape, dtype), shape));
        }
        Ok(Lowering { call, builder, inputs: Vec::new(), outputs })
    }

    /// The tensor passed for `param`. A scalar constant is no input: its value stands in the loops.
    ///
    /// # Errors
    /// Where its shape or dtype is not known.
    pub fn tensor(&mut self, param: &'static str) -> Result<Operand, Unsupported> {
        match self.call.operand(param) {
            Some(expr) => self.operand(param, None, expr.clone()),
            None => Err(Unsupported(format!("no argument is passed for `{param}`"))),
        }
    }

    /// The tensor passed for `param`, where one is passed.
    ///
    /// # Errors
    /// As [`Lowering::tensor`].
    pub fn optional_tensor(&mut self, param: &'static str) -> Result<Option<Operand>, Unsupported> {
        match self.call.operand(param) {
            None => Ok(None),
            Some(_) => self.tensor(param).map(Some),
        }
    }

    /// The tensors of the tuple passed for `param`, written in line or a variable.
    ///
    /// # Errors
    /// As [`Lowering::tensor`].
    pub fn tensors(&mut self, param: &'static str) -> Result<Vec<Operand>, Unsupported> {
        let expr = self.call.operand(param).ok_or_else(|| Unsupported(format!("nothing is passed for `{param}`")))?;
        let fields: Vec<IrExpr> = match (&expr.kind, &expr.ty) {
            (ExprKind::Tuple(fields), _) => fields.clone(),
            (_, StructInfo::Tuple(_)) => expr.each_field().collect(),
            _ => vec![expr.clone()],
        };
        fields.into_iter().enumerate().map(|(at, field)| self.operand(param, Some(at), field)).collect()
    }

    /// Has each element of the first tensor of the result computed from its indices.
    pub fn compute(&mut self, value: impl FnOnce(&mut KernelBuilder, &[Expr]) -> Expr) {
        self.builder.compute(self.output(0), value);
    }

    fn operand(&mut self, param: &'static str, element: Option<usize>, expr: IrExpr) -> Result<Operand, Unsupported> {
        let (shape, dtype) = tensor_parts(&expr.ty, param)?;
        if let ExprKind::Constant(literal) = &expr.kind
            && shape.is_empty()
        {
            let value = constant(literal, dtype);
            return Ok(Operand { shape, dtype, source: Source::Constant(value) });
        }
        let input = Input { param, element };
        let known = self.inputs.iter().find(|(known, _)| *known == input).map(|(_, buffer)| *buffer);
        let buffer = known.unwrap_or_else(|| {
            let name = element.map_or(param.to_owned(), |at| format!("{param}_{at}"));
            let buffer = self.builder.buffer(&name, &shape, dtype);
            self.inputs.push((input, buffer));
            buffer
        });
        Ok(Operand { shape, dtype, source: Source::Buffer(buffer) })
    }

    /// The scalar passed for `param`: a number or a symbolic integer.
    ///
    /// # Errors
    /// Where it is computed at run time by what rx does not evaluate.
    pub fn scalar(&mut self, param: &'static str) -> Result<Expr, Unsupported> {
        let expr = self.call.operand(param).ok_or_else(|| Unsupported(format!("nothing is passed for `{param}`")))?;
        self.scalar_of(expr).ok_or_else(|| Unsupported(format!("the value of `{param}` is not known")))
    }

    /// The value of a scalar expression, where it is known.
    pub fn scalar_of(&mut self, expr: &IrExpr) -> Option<Expr> {
        match &expr.kind {
            ExprKind::Constant(literal) => Some(constant(literal, expr.ty.as_tensor()?.dtype?)),
            ExprKind::Prim(PrimValue::Float(value)) => {
                let dtype = match &expr.ty {
                    StructInfo::Prim(info) => info.dtype.unwrap_or(DType::FLOAT64),
                    _ => DType::FLOAT32,
                };
                Some(Expr::number(*value, dtype))
            }
            ExprKind::Prim(PrimValue::Bool(value)) => Some(Expr::bool(*value)),
            ExprKind::Prim(PrimValue::Int(dim)) if !dim.is_error() => Some(self.builder.dim(dim)),
            _ => match &expr.ty {
                StructInfo::Prim(info) => {
                    let value = info.value.as_ref()?;
                    // A variable of another dtype than dims have is passed as it is.
                    match (value.as_symbol(), info.dtype.filter(|dtype| *dtype != DType::INT64)) {
                        (Some(symbol), Some(dtype)) => Some(self.builder.scalar(symbol, dtype)),
                        _ => Some(self.builder.dim(value)),
                    }
                }
                _ => None,
            },
        }
    }

    /// The dims of the shape passed for `param`.
    ///
    /// # Errors
    /// Where they are not known.
    pub fn dims(&self, param: &'static str) -> Result<Vec<Dim>, Unsupported> {
        let dims = match self.call.ty(param) {
            StructInfo::Shape(shape) => shape.dims().map(<[Dim]>::to_vec),
            _ => None,
        };
        dims.filter(|dims| dims.iter().all(|dim| !dim.is_error()))
            .ok_or_else(|| Unsupported(format!("the dims of `{param}` are not known")))
    }

    /// The buffer of the result's tensor number `at`, tuples flattened. The index is below the number of tensors that the
    /// operator's rule gives.
    pub fn output(&self, at: usize) -> BufferId {
        self.outputs[at].0
    }

    /// How many tensors the result has.
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// The extents of the result's tensor number `at`.
    pub fn output_shape(&self, at: usize) -> &[Dim] {
        &self.outputs[at].1
    }

    /// The function, and where its inputs come from.
    pub fn finish(mut self) -> Kernel {
        for (_, buffer) in &self.inputs {
            self.builder.push_param(*buffer);
        }
        for (buffer, _) in &self.outputs {
            self.builder.push_param(*buffer);
        }
        Kernel {
            scalars: self.builder.scalar_values(),
            func: self.builder.finish(),
            inputs: self.inputs.into_iter().map(|(input, _)| input).collect(),
            outputs: self.outputs.len(),
        }
    }
}

/// The loops of a call of an operator that [`Compute::Loops`] computes; of one that computes nothing ([`Compute::View`]), loops
/// that copy.
///
/// # Errors
/// Where the operator has none, or not for this call.
pub fn lower(call: &CallInfo<'_>, result: &StructInfo) -> Result<Kernel, Unsupported> {
    let mut lowering = Lowering::new(call, result)?;
    match call.schema.compute {
        Some(Compute::Loops(compute)) => compute(&mut lowering)?,
        Some(Compute::View(param)) => view::copy(&mut lowering, param)?,
        _ => return Err(Unsupported(format!("R.{} has no compute definition", call.schema.name))),
    }
    Ok(lowering.finish())
}

/// The tensors of a type, tuples flattened.
pub fn flatten(ty: &StructInfo) -> Vec<&StructInfo> {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().flat_map(flatten).collect(),
        other => vec![other],
    }
}

fn tensor_parts(ty: &StructInfo, what: &str) -> Result<(Vec<Dim>, DType), Unsupported> {
    let unknown = |part: &str| Unsupported(format!("the {part} of {what} is not known: it is {ty}"));
    let tensor = ty.as_tensor().ok_or_else(|| Unsupported(format!("{what} is no tensor: it is {ty}")))?;
    let dims = tensor.shape.dims().filter(|dims| dims.iter().all(|dim| !dim.is_error()));
    Ok((dims.ok_or_else(|| unknown("shape"))?.to_vec(), tensor.dtype.ok_or_else(|| unknown("dtype"))?))
}

fn constant(literal: &Literal, dtype: DType) -> Expr {
    match literal {
        Literal::Int(value) if dtype.is_float() => Expr::number(*value as f64, dtype),
        Literal::Int(value) if dtype.is_bool() => Expr::bool(*value != 0),
        Literal::Int(value) => Expr::Int { value: *value, dtype },
        Literal::Float(value) => Expr::number(*value, dtype),
        Literal::Bool(value) => Expr::number(f64::from(u8::from(*value)), dtype),
    }
}
