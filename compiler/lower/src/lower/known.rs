//! The values of expressions during lowering. A value that is known at compile time gets a register, and an instruction
//! that defines it, only on demand.

use super::FunctionLowering;
use crate::program::{Constant, Operation, ProcedureId, Register, Scalar};
use rx_base::name::NameSet;
use rx_base::{DType, Dim, Name};
use rx_ir::{Argument, BindingKind, Body, Callee, Expr, ExprKind, Literal, PrimInfo, StructInfo};
use std::sync::Arc;

/// A value: in a register, or known at compile time and materialized on demand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// A value in a register.
    Register(Register),
    /// A tuple of values. It is shared, since a tuple may be wide and is read field by field.
    Tuple(Arc<[Known]>),
    /// A constant tensor of rank 0.
    Constant(Literal, DType),
    /// A shape.
    Shape(Vec<Dim>),
    /// A scalar that is no tensor.
    Scalar(Scalar),
    /// A string.
    String(Arc<str>),
    /// The null value, for example for absent arguments and for storages.
    Null,
    /// A shape heap, by its number in the function.
    Heap(usize),
    /// A function of the module.
    Global(Name),
    /// A function, with the registers that it captures: mainly a nested function in its own body.
    Closure(ProcedureId, Vec<Register>),
    /// The result of an expression with an error, which has been reported.
    Broken,
}

impl Known {
    /// Returns the empty tuple: the value of statements that have none.
    pub(super) fn nothing() -> Known {
        Known::Tuple(Arc::new([]))
    }

    /// Whether a part of the value is in a register, or is a closure, which may capture registers.
    pub(super) fn has_registers(&self) -> bool {
        match self {
            Known::Register(_) | Known::Closure(..) | Known::Scalar(Scalar::Register(_)) => true,
            Known::Tuple(fields) => fields.iter().any(Known::has_registers),
            _ => false,
        }
    }
}

impl FunctionLowering<'_, '_> {
    /// Returns a register that holds the value. Emits the instruction that defines it, if needed.
    pub(super) fn materialize(&mut self, known: Known) -> Register {
        match known {
            Known::Register(register) => register,
            Known::Tuple(fields) => {
                let fields: Vec<Register> = fields.iter().map(|field| self.materialize(field.clone())).collect();
                self.tuple(fields)
            }
            Known::Constant(literal, dtype) => {
                let constant = self.lowerer.constant(Constant::Scalar(literal, dtype));
                let ty = StructInfo::tensor(Vec::<Dim>::new(), Some(dtype));
                self.put(ty, |to| Operation::Constant { to, constant })
            }
            Known::Shape(dims) => self.put(StructInfo::shape(dims.clone()), |to| Operation::Shape { to, dims }),
            Known::Scalar(value) => self.put(self.scalar_type(&value), |to| Operation::Scalar { to, value }),
            Known::String(value) => self.put(StructInfo::String, |to| Operation::String { to, value }),
            // Storages and shape heaps do not exist at run time.
            Known::Null | Known::Heap(_) => self.put(StructInfo::Object, |to| Operation::Null { to }),
            Known::Closure(procedure, captured) => {
                self.put(StructInfo::callable(), |to| Operation::Closure { to, procedure, captured })
            }
            // The function must have a procedure before a closure of it is made.
            Known::Global(function) => match self.lowerer.procedure(function) {
                Some(procedure) => self.materialize(Known::Closure(procedure, Vec::new())),
                None => {
                    self.problem(format!("`{function}` is used as a value, and is no Relax function"));
                    self.tuple(Vec::new())
                }
            },
            // An error was reported, so the program is never run; any register will do.
            Known::Broken => self.tuple(Vec::new()),
        }
    }

    /// Emits an instruction that defines a new register of type `ty`.
    fn put(&mut self, ty: StructInfo, operation: impl FnOnce(Register) -> Operation) -> Register {
        let to = self.register(ty);
        self.emit(operation(to));
        to
    }

    /// Emits a tuple of registers, and returns its register.
    pub(super) fn tuple(&mut self, fields: Vec<Register>) -> Register {
        let types: Vec<StructInfo> = fields.iter().map(|field| self.type_of(*field)).collect();
        self.put(StructInfo::tuple(types), |to| Operation::Tuple { to, fields })
    }

    /// Returns the type of a scalar.
    fn scalar_type(&self, scalar: &Scalar) -> StructInfo {
        match scalar {
            Scalar::Int(dim) => StructInfo::Prim(PrimInfo { dtype: Some(DType::INT64), value: Some(dim.clone()) }),
            Scalar::Float(_) => StructInfo::prim(DType::FLOAT64),
            Scalar::Bool(_) => StructInfo::prim(DType::BOOL),
            Scalar::Register(register) => self.type_of(*register),
        }
    }

    /// Emits a read of a tuple's field, and returns its register.
    pub(super) fn tuple_field(&mut self, from: Register, index: usize) -> Register {
        let ty = self.type_of(from).as_tuple().and_then(|fields| fields.get(index).cloned());
        self.put(ty.unwrap_or(StructInfo::Object), |to| Operation::Field { to, from, index })
    }

    /// Returns a field of a tuple, without an instruction if the tuple is known.
    pub(super) fn field(&mut self, tuple: Known, index: usize) -> Known {
        match tuple {
            Known::Tuple(fields) => fields.get(index).cloned().unwrap_or(Known::Broken),
            Known::Broken => Known::Broken,
            other => {
                let from = self.materialize(other);
                Known::Register(self.tuple_field(from, index))
            }
        }
    }
}

/// Returns the variables that a body reads, sorted by name, whether it binds them itself or not.
pub(super) fn mentioned(body: &Body) -> Vec<Name> {
    let mut names = NameSet::default();
    in_body(body, &mut names);
    let mut names: Vec<Name> = names.into_iter().collect();
    names.sort_by_key(|name| name.as_str());
    names
}

/// Collects the variables that a body reads.
fn in_body(body: &Body, names: &mut NameSet) {
    for binding in &body.bindings {
        match &binding.kind {
            BindingKind::Value { value, .. } | BindingKind::Unpack { value, .. } => in_expression(value, names),
            BindingKind::If { arms, otherwise, .. } => {
                for (condition, body) in arms {
                    in_expression(condition, names);
                    in_body(body, names);
                }
                in_body(otherwise, names);
            }
            BindingKind::Function(function) => in_body(&function.body, names),
        }
    }
    if let Some(result) = &body.result {
        in_expression(result, names);
    }
}

/// Collects the variables that an expression reads.
fn in_expression(expr: &Expr, names: &mut NameSet) {
    match &expr.kind {
        ExprKind::Var(variable) => {
            names.insert(*variable);
        }
        ExprKind::Tuple(fields) => fields.iter().for_each(|field| in_expression(field, names)),
        ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => in_expression(inner, names),
        ExprKind::Call(call) => {
            if let Callee::Value(callee) = &call.callee {
                in_expression(callee, names);
            }
            for argument in &call.arguments {
                match argument {
                    Argument::Operand(expr) => in_expression(expr, names),
                    Argument::Operands(exprs) => exprs.iter().for_each(|expr| in_expression(expr, names)),
                    Argument::Absent | Argument::Attr(_) | Argument::Types(_) => {}
                }
            }
        }
        _ => {}
    }
}
