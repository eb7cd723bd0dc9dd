//! Lowers calls of operators, of functions and of closures.

use super::FunctionLowering;
use super::kernel::{OperatorCall, operand, placed};
use super::known::Known;
use crate::fuse::Rewrite;
use crate::loops::Loops;
use crate::program::{Inputs, Kernel, KernelId, Operation, Output, Outputs, Scalar};
use crate::queries::rewritten;
use rx_base::name::name;
use rx_base::{Dim, Name};
use rx_ir::{Argument, Attr, Call, Expr, ExprKind, StructInfo};
use rx_ops::{Compute, Schema};
use smallvec::SmallVec;
use std::sync::Arc;

impl FunctionLowering<'_, '_> {
    /// Lowers a call of the operator `R.{operator}`.
    pub(super) fn operator_call(&mut self, operator: Name, call: &Call, ty: &StructInfo) -> Known {
        // `R.call_packed` is not a registered operator of TVM; its arguments are parsed like those of
        // `call_pure_packed`.
        let operator = if operator.as_str() == "call_packed" { name("call_pure_packed") } else { operator };
        let Some(schema) = rx_ops::find(operator) else {
            return self.problem(format!("R.{operator} is no operator of Relax: rx does not know how to compute it"));
        };
        match schema.name {
            "call_tir" | "call_tir_with_grad" => self.call_tir(schema, call, None),
            "call_tir_inplace" => {
                let indices = schema.argument(call, "inplace_indices").and_then(int_list);
                self.call_tir(schema, call, Some(indices.unwrap_or_default()))
            }
            "dist.call_tir" | "dist.call_tir_local_view" => self.call_tir(schema, call, None),
            "shape_of" => self.shape_of(schema, call, ty),
            "null_value" => Known::Null,
            "make_closure" => self.make_closure(schema, call),
            "invoke_closure" | "invoke_pure_closure" => {
                let closure = schema.operand(call, "closure").cloned();
                let arguments = self.tuple_argument(schema, call, "args");
                match closure {
                    Some(closure) => {
                        let closure = self.expression(&closure);
                        self.call_value(closure, arguments, ty)
                    }
                    None => Known::Broken,
                }
            }
            "call_pure_packed" | "call_inplace_packed" | "call_dps_packed" | "call_builtin_with_ctx" => {
                self.packed_call(schema, call, ty)
            }
            name if name.starts_with("memory.") || name.starts_with("vm.") || name == "builtin.alloc_tensor" => {
                self.memory_call(schema, call, ty)
            }
            _ => self.computed(schema, call, ty),
        }
    }

    /// Lowers a call of an operator by its compute definition.
    pub(super) fn computed(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        match schema.compute {
            Some(Compute::View(_) | Compute::Loops(_)) if self.is_open(call, ty) => self.open(schema, call, ty),
            Some(Compute::View(param)) => self.view(schema, call, param, ty),
            Some(Compute::Identity(param)) => self.identity(schema, call, param),
            Some(Compute::Loops(_)) => self.loops(schema, call, ty),
            Some(Compute::Host) => self.host(schema, call, ty),
            None => self.problem(format!("R.{} has no lowering", schema.name)),
        }
    }

    /// Lowers an operator that only changes the shape (`R.reshape`, `R.expand_dims`). No view is emitted if the shape
    /// stays the same.
    fn view(&mut self, schema: &'static Schema, call: &Call, param: &'static str, ty: &StructInfo) -> Known {
        let dims = ty.as_tensor().and_then(|tensor| tensor.shape.shared_dims());
        let (Some(dims), Some(operand)) = (dims, schema.operand(call, param)) else {
            return self.problem(format!("R.{}: the shape of the result is not known: it is {ty}", schema.name));
        };
        let value = self.expression(operand);
        if value == Known::Broken || operand.ty.as_tensor().and_then(|tensor| tensor.shape.shared_dims()) == Some(dims)
        {
            return value;
        }
        self.view_of(value, dims)
    }

    /// Emits a view of a tensor under another shape.
    pub(super) fn view_of(&mut self, value: Known, dims: &Arc<[Dim]>) -> Known {
        let from = self.materialize(value);
        let dtype = self.type_of(from).as_tensor().and_then(|tensor| tensor.dtype);
        let to = self.register(StructInfo::tensor(dims.clone(), dtype));
        self.emit(Operation::View { to, from, shape: dims.clone() });
        self.tensors.add_view(to, from, dims);
        Known::Register(to)
    }

    /// Lowers an operator that changes no value to its operand, for example a hint (`R.hint_on_device`), a gradient
    /// marker (`R.grad.no_grad`), or a collective operator (`R.ccl.*`), which is the identity with a single worker.
    fn identity(&mut self, schema: &'static Schema, call: &Call, param: &'static str) -> Known {
        let workers = schema.params.iter().any(|param| param.name == "num_workers");
        let workers = if workers { schema.argument(call, "num_workers").and_then(int_list) } else { None };
        if let Some([workers @ (..=0 | 2..)]) = workers.as_deref() {
            return self.problem(format!("R.{} of {workers} workers: rx runs one", schema.name));
        }
        match schema.operand(call, param) {
            Some(value) => self.expression(&value.clone()),
            None => Known::Broken,
        }
    }

    /// Lowers `R.shape_of` to the dims if they are known, otherwise to a host call.
    fn shape_of(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        match schema.operand(call, "expr").and_then(|expr| expr.ty.as_tensor()?.shape.dims()) {
            Some(dims) => Known::Shape(dims.to_vec()),
            None => self.host(schema, call, ty),
        }
    }

    /// Lowers an operator to a kernel with its loops.
    fn loops(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        // Operands other than literals are lowered first, in order. An operand whose value is a known scalar constant
        // is replaced by the constant, so that the kernel contains its value.
        let mut values: SmallVec<[(&'static str, Known); 4]> = SmallVec::new();
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for (argument, param) in call.arguments.iter().zip(schema.params) {
            let Argument::Operand(expr) = argument else {
                arguments.push(match argument {
                    Argument::Operands(exprs) => Argument::Operands(exprs.iter().map(operand).collect()),
                    other => other.clone(),
                });
                continue;
            };
            let mut own = operand(expr);
            if !matches!(expr.kind, ExprKind::Constant(_) | ExprKind::Prim(_) | ExprKind::Shape(_)) {
                let known = self.expression(expr);
                if known == Known::Broken {
                    return known;
                }
                if let Known::Constant(literal, _) = &known {
                    own.kind = ExprKind::Constant(literal.clone());
                }
                values.push((param.name, known));
            }
            arguments.push(Argument::Operand(own));
        }
        let wanted = OperatorCall::new(schema, arguments, ty);
        let kernel = match self.lowerer.queries.call(&wanted) {
            Ok(kernel) => kernel,
            Err(reason) => return self.problem(&*reason),
        };
        let mut inputs = Inputs::with_capacity(kernel.inputs.len());
        for input in &kernel.inputs {
            let known = values.iter().find(|(param, _)| *param == input.param).map(|(_, known)| known.clone());
            let known = match (known, input.element) {
                (Some(tuple @ (Known::Tuple(_) | Known::Register(_))), Some(at)) => self.field(tuple, at),
                (Some(known), _) => known,
                // A tensor constant that is written in the call itself.
                (None, _) => match schema.operand(call, input.param) {
                    Some(expr) => self.expression(expr),
                    None => Known::Broken,
                },
            };
            inputs.push(self.materialize(known));
        }
        self.run_kernel(&kernel.loops, inputs, ty, kernel.scalars.clone())
    }

    /// Emits a call of a kernel whose outputs are the tensors of type `ty`. Reports an error where `ty` is no tensor or
    /// tuple of tensors with known shapes and dtypes.
    pub(super) fn run_kernel(&mut self, loops: &Loops, inputs: Inputs, ty: &StructInfo, scalars: Vec<Scalar>) -> Known {
        let mut outputs = Outputs::new();
        let Some(result) = self.outputs(ty, &mut outputs) else {
            return self.problem(format!("the shape of a result is not known: it is {ty}"));
        };
        let kernel = self.kernel(loops, inputs.len());
        self.emit(Operation::Kernel { kernel, inputs, outputs, scalars });
        result
    }

    /// Adds a kernel for the current statement. Its run-time checks report this statement, except those that have a
    /// statement of a prim_func already.
    pub(super) fn kernel(&mut self, loops: &Loops, inputs: usize) -> KernelId {
        let kernel = Kernel::new(placed(loops, self.origin), inputs, self.origin);
        self.lowerer.program.add_kernel(kernel)
    }

    /// Marks the indices of a prim_func that cannot be proved in range. This happens before fusion, so the message
    /// about such an index names its block and statement, even if the loops are merged or changed later.
    pub(super) fn guarded(&self, loops: Loops, inputs: usize) -> Loops {
        rewritten(self.lowerer.queries, &Rewrite::Guard { loops: loops.clone(), inputs }).unwrap_or(loops)
    }

    /// Adds registers and outputs for the tensors of type `ty`. Nested tuples give nested tuples. Returns `None` where
    /// a shape or dtype is not known, or where `ty` contains another type than tensors and tuples.
    fn outputs(&mut self, ty: &StructInfo, outputs: &mut Outputs) -> Option<Known> {
        if let StructInfo::Tuple(fields) = ty {
            let fields: Option<Vec<Known>> = fields.iter().map(|field| self.outputs(field, outputs)).collect();
            return fields.map(|fields| Known::Tuple(fields.into()));
        }
        let tensor = ty.as_tensor()?;
        let shape = tensor.shape.shared_dims()?.clone();
        let (to, dtype) = (self.register(ty.clone()), tensor.dtype?);
        self.tensors.add(to, &shape, dtype);
        outputs.push(Output { to, shape, dtype, storage: None });
        Some(Known::Register(to))
    }

    /// Returns the fields of the tuple that is passed for a parameter. A value that is no tuple counts as one field.
    pub(super) fn tuple_argument(&mut self, schema: &'static Schema, call: &Call, param: &str) -> Vec<Known> {
        match schema.operand(call, param).cloned() {
            Some(expr) => match self.expression(&expr) {
                Known::Tuple(fields) => fields.to_vec(),
                Known::Register(register) => {
                    let count = expr.ty.as_tuple().map_or(0, <[StructInfo]>::len);
                    match expr.ty.as_tuple() {
                        Some(_) => (0..count).map(|at| self.field(Known::Register(register), at)).collect(),
                        None => vec![Known::Register(register)],
                    }
                }
                other => vec![other],
            },
            None => Vec::new(),
        }
    }

    /// Lowers a call of a function of the module: `cls.f(x)`.
    pub(super) fn global_call(&mut self, function: Name, call: &Call, ty: &StructInfo) -> Known {
        let arguments: Vec<Known> = self.plain_arguments(call);
        if arguments.contains(&Known::Broken) {
            return Known::Broken;
        }
        match self.lowerer.procedure(function) {
            Some(procedure) => {
                let arguments = arguments.into_iter().map(|argument| self.materialize(argument)).collect();
                let to = self.register(ty.clone());
                self.emit(Operation::Call { to, procedure, arguments });
                Known::Register(to)
            }
            None => match self.lowerer.module.prim_func(function) {
                Some(Ok(func)) => self.call_in_place(function, &func, arguments),
                Some(Err(reason)) => self.problem(format!("the prim_func `{function}` cannot be run: {reason}")),
                None => self.problem(format!("the module has no function `{function}` that can be run")),
            },
        }
    }

    /// Lowers a call of a function value: a closure, or an external function.
    pub(super) fn value_call(&mut self, function: &Expr, call: &Call, ty: &StructInfo) -> Known {
        if let ExprKind::Extern(symbol) = &function.kind {
            let arguments = call.arguments.iter().filter_map(|argument| match argument {
                Argument::Operand(expr) => Some(expr.clone()),
                _ => None,
            });
            let arguments = arguments.collect();
            return self.packed(symbol.as_str(), arguments, ty);
        }
        let function = self.expression(function);
        let arguments = self.plain_arguments(call);
        self.call_value(function, arguments, ty)
    }

    /// Lowers the arguments of a call.
    fn plain_arguments(&mut self, call: &Call) -> Vec<Known> {
        let operand = |argument: &Argument| match argument {
            Argument::Operand(expr) => Some(expr.clone()),
            _ => None,
        };
        let operands: Vec<Expr> = call.arguments.iter().filter_map(operand).collect();
        operands.iter().map(|expr| self.expression(expr)).collect()
    }

    /// Emits a call of a closure.
    fn call_value(&mut self, function: Known, arguments: Vec<Known>, ty: &StructInfo) -> Known {
        if function == Known::Broken || arguments.contains(&Known::Broken) {
            return Known::Broken;
        }
        let closure = self.materialize(function);
        let arguments = arguments.into_iter().map(|argument| self.materialize(argument)).collect();
        let to = self.register(ty.clone());
        self.emit(Operation::CallClosure { to, closure, arguments });
        Known::Register(to)
    }

    /// Lowers `R.make_closure(cls.f, (captured, …))`. The captured values are passed for the function's last
    /// parameters.
    fn make_closure(&mut self, schema: &'static Schema, call: &Call) -> Known {
        let function = match schema.operand(call, "func").map(|expr| &expr.kind) {
            Some(ExprKind::Global(function)) => *function,
            _ => return self.problem("R.make_closure takes a function of the module"),
        };
        let captured = self.tuple_argument(schema, call, "args");
        let Some(procedure) = self.lowerer.procedure(function) else {
            return self.problem(format!("the module has no Relax function `{function}`"));
        };
        let captured = captured.into_iter().map(|known| self.materialize(known)).collect();
        let to = self.register(StructInfo::callable());
        self.emit(Operation::Closure { to, procedure, captured });
        Known::Register(to)
    }
}

/// Returns the integers of an attribute: a list, or one integer.
fn int_list(argument: &Argument) -> Option<Vec<i64>> {
    match argument {
        Argument::Attr(Attr::List(items)) => items.iter().map(Attr::as_int).collect(),
        Argument::Attr(attr) => attr.as_int().map(|value| vec![value]),
        _ => None,
    }
}
