//! Converts instructions to calls of kernels, operators and functions.

use super::Writer;
use rx_base::name::name;
use rx_base::{DType, Dim, Name};
use rx_ir::{Argument, Attr, BoundValue, Call, Callee, Expr, ExprKind, PrimValue, StructInfo, VarBinding};
use rx_lower::dynamic::{DynamicArgument, DynamicCall};
use rx_lower::program::StorageSize;
use rx_lower::{KernelId, Output, Register, Scalar, StorageId};
use rx_ops::ParamKind;
use rx_transform::make;
use std::sync::Arc;

impl Writer<'_> {
    /// Converts a kernel instruction: to `R.call_tir`, or to a call that writes into tensors if the memory of an output
    /// is planned.
    pub(super) fn kernel(&mut self, kernel: KernelId, inputs: &[Register], outputs: &[Output], scalars: &[Scalar]) {
        let function = self.program.kernel(kernel).name;
        let mut arguments: Vec<Expr> = inputs.iter().map(|input| self.operand(*input)).collect();
        arguments.extend(scalars.iter().map(|scalar| self.scalar(scalar)));
        match outputs.iter().any(|output| output.storage.is_some()) {
            true => self.write_into(function, arguments, outputs),
            false => self.call_tir(function, arguments, outputs),
        }
    }

    /// Emits `R.call_tir` for a kernel whose outputs have no planned memory.
    fn call_tir(&mut self, function: Name, arguments: Vec<Expr>, outputs: &[Output]) {
        let types: Vec<StructInfo> = outputs.iter().map(type_of).collect();
        let function = Expr::new(ExprKind::Global(function), StructInfo::callable());
        let given = vec![
            ("gvar", Argument::Operand(function)),
            ("args", Argument::Operand(tuple(arguments))),
            ("out_ty", Argument::Types(types.clone())),
        ];
        if let [output] = outputs {
            self.bind(output.to, call("call_tir", given, type_of(output)));
            return;
        }
        let all = StructInfo::tuple(types);
        let value = BoundValue::Expr(call("call_tir", given, all.clone()));
        let all = self.bind_as("lv", all, value);
        for (index, output) in outputs.iter().enumerate() {
            let field = ExprKind::TupleGet(Box::new(all.clone()), index);
            self.bind(output.to, Expr::new(field, type_of(output)));
        }
    }

    /// Emits the allocation of the outputs, and a call of the kernel that writes into them.
    fn write_into(&mut self, function: Name, mut arguments: Vec<Expr>, outputs: &[Output]) {
        for output in outputs {
            let own = vec![("shape", Argument::Operand(shape(&output.shape))), ("dtype", dtype(output.dtype))];
            let value = match output.storage {
                Some(storage) => {
                    let mut given = vec![("storage", Argument::Operand(self.storage(storage))), zero("offset")];
                    given.extend(own);
                    call("memory.alloc_tensor", given, type_of(output))
                }
                None => {
                    let given = own.into_iter().chain([zero("runtime_device_index")]).collect();
                    call("builtin.alloc_tensor", given, type_of(output))
                }
            };
            let made = self.bind_as("alloc", type_of(output), BoundValue::Expr(value));
            arguments.push(made.clone());
            self.set(output.to, made);
        }
        let arguments = arguments.into_iter().map(Argument::Operand).collect();
        let value = ExprKind::Call(Arc::new(Call { callee: Callee::Global(function), arguments }));
        let (variable, ty) = (name("_"), StructInfo::void());
        let value = BoundValue::Expr(Expr::new(value, ty.clone()));
        self.bindings.push(VarBinding { origin: self.origin, variable, ty, value });
        self.writes = true;
    }

    /// Returns the variable of a storage, which is bound on first use.
    fn storage(&mut self, storage: StorageId) -> Expr {
        let at = storage.0 as usize;
        if let Some(known) = &self.storages[at] {
            return known.clone();
        }
        let sizes = &self.procedure.storages[at];
        let size = sizes.iter().map(bytes).reduce(|most, size| most.maximum(&size)).unwrap_or(Dim::constant(0));
        let scope = Expr::new(ExprKind::Str(Arc::from("global")), StructInfo::String);
        let given = vec![
            ("size", Argument::Operand(shape(&[size]))),
            zero("virtual_device_index"),
            ("storage_scope", Argument::Operand(scope)),
            ("dtype", dtype(sizes.first().map_or(DType::UINT8, |size| size.dtype))),
        ];
        let value = BoundValue::Expr(call("memory.alloc_storage", given, StructInfo::Object));
        let made = self.bind_as("storage", StructInfo::Object, value);
        self.storages[at] = Some(made.clone());
        made
    }

    /// Emits a call of an operator that the host computes.
    pub(super) fn host(&mut self, to: Register, function: Name, arguments: &[Register]) {
        let params = rx_ops::find(function).map_or(&[][..], |schema| schema.params);
        let mut given = Vec::with_capacity(arguments.len());
        for (param, register) in params.iter().zip(arguments) {
            // Null arguments are omitted: lowering passes null for an omitted argument, among others.
            let Some(value) = self.value(*register).cloned() else { continue };
            given.push(match (param.kind, value.kind) {
                (ParamKind::Variadic, ExprKind::Tuple(fields)) => (param.name, Argument::Operands(fields)),
                (ParamKind::Attr(_), kind) => (param.name, Argument::Attr(attribute(&kind))),
                (_, kind) => (param.name, Argument::Operand(Expr::new(kind, value.ty))),
            });
        }
        self.operator(to, &function, given);
    }

    /// Emits a call of an operator that is lowered at run time.
    pub(super) fn dynamic(&mut self, to: Register, call: &DynamicCall, operands: &[Register]) {
        let mut argument = |argument: &DynamicArgument| match argument {
            DynamicArgument::Written(argument) => argument.clone(),
            DynamicArgument::Register(at) => self.argument(operands[*at]),
            DynamicArgument::Registers(all) => {
                Argument::Operands(all.iter().map(|at| self.operand(operands[*at])).collect())
            }
        };
        let arguments = call.arguments.iter().map(&mut argument).collect();
        let call = Call { callee: Callee::Op(name(call.schema.name)), arguments };
        self.bind(to, Expr::new(ExprKind::Call(Arc::new(call)), self.type_of(to)));
    }

    /// Emits a call of a function value. A variable with a function type is called directly, any other value
    /// through `R.invoke_pure_closure`.
    pub(super) fn call_closure(&mut self, to: Register, closure: Register, arguments: &[Register]) {
        let function = self.operand(closure);
        if matches!(&function.ty, StructInfo::Function(_)) && matches!(function.kind, ExprKind::Var(_)) {
            return self.call(to, Callee::Value(Box::new(function)), arguments);
        }
        let given = vec![
            ("closure", Argument::Operand(function)),
            ("args", Argument::Operand(self.tuple(arguments))),
            ("ty_args", Argument::Types(vec![self.type_of(to)])),
        ];
        self.operator(to, "invoke_pure_closure", given);
    }

    pub(super) fn call(&mut self, to: Register, callee: Callee, arguments: &[Register]) {
        let arguments = arguments.iter().map(|argument| self.argument(*argument)).collect();
        let call = Call { callee, arguments };
        self.bind(to, Expr::new(ExprKind::Call(Arc::new(call)), self.type_of(to)));
    }

    pub(super) fn operator(&mut self, to: Register, operator: &str, given: Vec<(&str, Argument)>) {
        self.bind(to, call(operator, given, self.type_of(to)));
    }
}

/// Returns a call of an operator with a result of type `ty`.
fn call(operator: &str, given: Vec<(&str, Argument)>, ty: StructInfo) -> Expr {
    let call = make::untyped(operator, given);
    Expr::new(call.map_or(ExprKind::Error, |call| ExprKind::Call(Arc::new(call))), ty)
}

pub(super) fn tuple(fields: Vec<Expr>) -> Expr {
    let types: Vec<StructInfo> = fields.iter().map(|field| field.ty.clone()).collect();
    Expr::new(ExprKind::Tuple(fields), StructInfo::tuple(types))
}

pub(super) fn shape(dims: &[Dim]) -> Expr {
    Expr::new(ExprKind::Shape(dims.to_vec()), StructInfo::shape(dims.to_vec()))
}

fn zero(param: &'static str) -> (&'static str, Argument) {
    (param, Argument::Operand(make::integer(Dim::constant(0))))
}

fn dtype(dtype: DType) -> Argument {
    Argument::Operand(Expr::new(ExprKind::DType(dtype), StructInfo::Object))
}

fn type_of(output: &Output) -> StructInfo {
    StructInfo::tensor(output.shape.clone(), Some(output.dtype))
}

fn bytes(size: &StorageSize) -> Dim {
    let element = Dim::constant(i64::try_from(size.dtype.bytes()).unwrap_or(i64::MAX));
    size.shape.iter().fold(element, |bytes, dim| &bytes * dim)
}

/// Converts a scalar, string, shape or tuple of these to an attribute. Anything else becomes `None`.
fn attribute(value: &ExprKind) -> Attr {
    match value {
        ExprKind::Prim(PrimValue::Int(dim)) => Attr::Int(dim.clone()),
        ExprKind::Prim(PrimValue::Float(value)) => Attr::Float(*value),
        ExprKind::Prim(PrimValue::Bool(value)) => Attr::Bool(*value),
        ExprKind::Str(text) => Attr::Str(text.clone()),
        ExprKind::Shape(dims) => Attr::List(dims.iter().cloned().map(Attr::Int).collect()),
        ExprKind::Tuple(fields) => Attr::List(fields.iter().map(|field| attribute(&field.kind)).collect()),
        _ => Attr::None,
    }
}
