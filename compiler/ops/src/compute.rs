//! Lowering of an operator call to a TIR function: the interface between operators' compute definitions and the
//! compiler.
//!
//! ```text
//! R.nn.relu(x), x: [n, 4] float32
//! →  for i, j in grid(n, 4): output[i, j] = max(x[i, j], 0)
//! ```
//!
//! A compute definition is written once for all shapes: extents are symbolic, attributes are constants. It gets its
//! operands and outputs from a [`Lowering`] and builds blocks with the [`KernelBuilder`]. Crates `rx-lower` and
//! `rx-transform` (`LegalizeOps`) call [`lower`] for each call. A definition corresponds to `FLegalize` in TVM.

mod view;

use crate::call::{CallInfo, Problem};
use rx_base::{DType, Dim, Name};
use rx_ir::{Expr as IrExpr, ExprKind, Literal, PrimValue, StructInfo};
use rx_tir::func::BufferId;
use rx_tir::{Expr, KernelBuilder, PrimFunc};
use std::fmt;

/// A compute definition: emits the loops that store the result of a call.
pub type Loops = fn(&mut Lowering<'_>) -> Result<(), Unsupported>;

/// The way an operator's result is computed.
#[derive(Clone, Copy, Debug)]
pub enum Compute {
    /// By a TIR function.
    Loops(Loops),
    /// Without computation: the result has the elements of this operand in row-major order, with another shape.
    View(&'static str),
    /// Without computation: the result is this operand, and the operator only annotates it. A collective operation
    /// (`ccl`) is in this class because rx executes one worker (`num_workers` is 1).
    Identity(&'static str),
    /// At run time, by the runtime's function with the operator's name. For operators whose output shape or control
    /// flow depends on values, and for operators with side effects.
    Host,
}

/// The reason why a call has no loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl Unsupported {
    /// Creates the error with this reason.
    pub fn because(reason: impl Into<String>) -> Unsupported {
        Unsupported(reason.into())
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Allows a definition to read attributes with the helpers of the struct-info rules. A call that reaches lowering has
/// already passed those checks.
impl From<Problem> for Unsupported {
    fn from(problem: Problem) -> Unsupported {
        match problem {
            Problem::Propagate => Unsupported::because("the call has a mistake"),
            Problem::Report(diagnostic) => Unsupported(diagnostic.message.clone()),
        }
    }
}

/// A call lowered to a TIR function. The function's parameters are the input buffers, then the output buffers, then the
/// scalars.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function.
    pub func: PrimFunc,
    /// The argument of the call for each input buffer, in order.
    pub inputs: Vec<Input>,
    /// The number of output buffers, which come after the inputs: one per tensor of the result, with tuples flattened.
    pub outputs: usize,
    /// The value of each scalar parameter, in order, as an expression over the symbols of the call.
    pub scalars: Vec<Dim>,
}

/// A tensor operand of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// The parameter that receives it.
    pub param: &'static str,
    /// Its index in the tuple, if the parameter accepts a tuple of tensors.
    pub element: Option<usize>,
}

/// A tensor operand in a compute definition: a buffer, or a scalar constant that is written in the call.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its extents, outermost first.
    pub shape: Vec<Dim>,
    /// Its dtype.
    pub dtype: DType,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Buffer(BufferId),
    Constant(Expr),
}

impl Operand {
    /// Returns its rank.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Loads the element at `indices`.
    pub fn at(&self, builder: &KernelBuilder, indices: &[Expr]) -> Expr {
        match &self.source {
            Source::Buffer(buffer) => builder.load(*buffer, indices),
            Source::Constant(value) => value.clone(),
        }
    }

    /// Loads the element for the result index `axes` under NumPy broadcasting: dims are aligned at the last axis, and
    /// an extent of 1 gets the index 0. If the result's extent is also 1, the index stays the loop variable, as in TVM:
    /// later passes then recognize the access as elementwise. For example, for axes `[i, j]` an operand of shape `[1]`
    /// is loaded at `[0]`, and one of shape `[n, 1]` at `[i, 0]`.
    pub fn broadcast_at(&self, builder: &KernelBuilder, axes: &[Expr]) -> Expr {
        let skipped = axes.len().saturating_sub(self.ndim());
        let index = |(axis, extent): (&Expr, &Dim)| match extent.as_constant() {
            Some(1) if !builder.is_single(axis) => Expr::int(0),
            _ => axis.clone(),
        };
        let indices: Vec<Expr> = axes.iter().skip(skipped).zip(&self.shape).map(index).collect();
        self.at(builder, &indices)
    }

    /// Returns its extents as expressions.
    pub fn extents(&self, builder: &mut KernelBuilder) -> Vec<Expr> {
        self.shape.iter().map(|dim| builder.dim(dim)).collect()
    }
}

/// The state of lowering one call: the call, the builder of its function, and the buffers made so far.
#[derive(Debug)]
pub struct Lowering<'a> {
    /// The call, which also provides the attributes.
    pub call: &'a CallInfo<'a>,
    /// The builder of the function.
    pub builder: KernelBuilder,
    inputs: Vec<(Input, BufferId)>,
    outputs: Vec<(BufferId, Vec<Dim>)>,
}

impl<'a> Lowering<'a> {
    /// Begins to lower `call`, whose result has the type `result`, and creates the output buffers.
    ///
    /// # Errors
    /// Fails if the shape or dtype of a result tensor is unknown.
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

    /// Returns the tensor passed for `param`. A scalar constant becomes a constant in the loops instead of an input
    /// buffer.
    ///
    /// # Errors
    /// Fails if its shape or dtype is unknown.
    pub fn tensor(&mut self, param: &'static str) -> Result<Operand, Unsupported> {
        match self.call.operand(param) {
            Some(expr) => self.operand(param, None, expr.clone()),
            None => Err(Unsupported(format!("no argument is passed for `{param}`"))),
        }
    }

    /// Returns the tensor passed for `param`, if one is passed.
    ///
    /// # Errors
    /// Fails like [`Lowering::tensor`].
    pub fn optional_tensor(&mut self, param: &'static str) -> Result<Option<Operand>, Unsupported> {
        match self.call.operand(param) {
            None => Ok(None),
            Some(_) => self.tensor(param).map(Some),
        }
    }

    /// Returns the tensors of the tuple passed for `param`, which may be written inline or be a variable.
    ///
    /// # Errors
    /// Fails like [`Lowering::tensor`].
    pub fn tensors(&mut self, param: &'static str) -> Result<Vec<Operand>, Unsupported> {
        let expr = self.call.operand(param).ok_or_else(|| Unsupported(format!("nothing is passed for `{param}`")))?;
        let fields: Vec<IrExpr> = match (&expr.kind, &expr.ty) {
            (ExprKind::Tuple(fields), _) => fields.clone(),
            (_, StructInfo::Tuple(_)) => expr.each_field().collect(),
            _ => vec![expr.clone()],
        };
        fields.into_iter().enumerate().map(|(at, field)| self.operand(param, Some(at), field)).collect()
    }

    /// Emits a block that computes each element of the first result tensor from its indices.
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

    /// Returns the scalar passed for `param`: a number or a symbolic integer.
    ///
    /// # Errors
    /// Fails if rx cannot evaluate the scalar before the program runs.
    pub fn scalar(&mut self, param: &'static str) -> Result<Expr, Unsupported> {
        let expr = self.call.operand(param).ok_or_else(|| Unsupported(format!("nothing is passed for `{param}`")))?;
        self.scalar_of(expr).ok_or_else(|| Unsupported(format!("the value of `{param}` is not known")))
    }

    /// Returns the value of a scalar expression, if known.
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
                    // A variable whose dtype is not that of dims (int64) becomes a parameter of its own dtype.
                    match (value.as_symbol(), info.dtype.filter(|dtype| *dtype != DType::INT64)) {
                        (Some(symbol), Some(dtype)) => Some(self.builder.scalar(symbol, dtype)),
                        _ => Some(self.builder.dim(value)),
                    }
                }
                _ => None,
            },
        }
    }

    /// Returns the dims of the shape passed for `param`.
    ///
    /// # Errors
    /// Fails if they are unknown.
    pub fn dims(&self, param: &'static str) -> Result<Vec<Dim>, Unsupported> {
        let dims = match self.call.ty(param) {
            StructInfo::Shape(shape) => shape.dims().map(<[Dim]>::to_vec),
            _ => None,
        };
        dims.filter(|dims| dims.iter().all(|dim| !dim.is_error()))
            .ok_or_else(|| Unsupported(format!("the dims of `{param}` are not known")))
    }

    /// Returns the buffer of result tensor `at`, counted with tuples flattened. Panics if `at` is not less than
    /// [`Lowering::output_count`].
    pub fn output(&self, at: usize) -> BufferId {
        self.outputs[at].0
    }

    /// Returns the number of result tensors.
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// Returns the extents of result tensor `at`.
    pub fn output_shape(&self, at: usize) -> &[Dim] {
        &self.outputs[at].1
    }

    /// Completes the function and returns it with the sources of its parameters.
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

/// Lowers a call to a TIR function. An operator without computation ([`Compute::View`]) gets a function that copies its
/// operand.
///
/// # Errors
/// Fails if the operator cannot be lowered, or not for this call.
pub fn lower(call: &CallInfo<'_>, result: &StructInfo) -> Result<Kernel, Unsupported> {
    let mut lowering = Lowering::new(call, result)?;
    match call.schema.compute {
        Some(Compute::Loops(compute)) => compute(&mut lowering)?,
        Some(Compute::View(param)) => view::copy(&mut lowering, param)?,
        _ => return Err(Unsupported(format!("R.{} has no compute definition", call.schema.name))),
    }
    Ok(lowering.finish())
}

/// Returns the tensors of a type, with nested tuples flattened.
pub fn flatten(ty: &StructInfo) -> Vec<&StructInfo> {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().flat_map(flatten).collect(),
        other => vec![other],
    }
}

fn tensor_parts(ty: &StructInfo, subject: &str) -> Result<(Vec<Dim>, DType), Unsupported> {
    let unknown = |part: &str| Unsupported(format!("the {part} of {subject} is not known: it is {ty}"));
    let tensor = ty.as_tensor().ok_or_else(|| Unsupported(format!("{subject} is no tensor: it is {ty}")))?;
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
