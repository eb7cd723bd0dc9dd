//! What is known of a value while lowering.

use super::FunctionLowering;
use crate::program::{Constant, Operation, ProcedureId, Register, Scalar};
use rx_base::name::NameSet;
use rx_base::{DType, Dim, Name};
use rx_ir::{Argument, BindingKind, Body, Callee, Expr, ExprKind, Literal};
use std::sync::Arc;

/// A value: in a register, or known so well that it needs none until somebody wants one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// In a register.
    Register(Register),
    /// A tuple of these, shared by whoever knows it: it may be wide, and is looked at field by field.
    Tuple(Arc<[Known]>),
    /// A constant tensor of rank 0.
    Constant(Literal, DType),
    /// A shape.
    Shape(Vec<Dim>),
    /// A scalar that is no tensor.
    Scalar(Scalar),
    /// A string.
    String(Arc<str>),
    /// What stands for nothing.
    Null,
    /// A shape heap, by number.
    Heap(usize),
    /// A function of the module.
    Global(Name),
    /// A nested function with the registers it captured.
    Closure(ProcedureId, Vec<Register>),
    /// What a reported problem leaves behind.
    Broken,
}

impl Known {
    /// The tuple of no fields, which statements without a value have.
    pub(super) fn nothing() -> Known {
        Known::Tuple(Arc::new([]))
    }

    /// Whether it is, in part, in registers.
    pub(super) fn has_registers(&self) -> bool {
        match self {
            Known::Register(_) | Known::Closure(..) | Known::Scalar(Scalar::Register(_)) => true,
            Known::Tuple(fields) => fields.iter().any(Known::has_registers),
            _ => false,
        }
    }
}

impl FunctionLowering<'_, '_> {
    /// A register that holds the value.
    pub(super) fn materialize(&mut self, known: Known) -> Register {
        let fields = match &known {
            Known::Register(register) => return *register,
            Known::Tuple(fields) => fields.iter().map(|field| self.materialize(field.clone())).collect(),
            _ => Vec::new(),
        };
        // A function of the module as a value has to be lowered before its closure is made.
        let procedure = match &known {
            Known::Global(function) => self.lowerer.procedure(*function),
            _ => None,
        };
        let to = self.register();
        let operation = match known {
            Known::Register(from) => Operation::Copy { to, from },
            Known::Tuple(_) => Operation::Tuple { to, fields },
            Known::Constant(literal, dtype) => {
                let constant = self.lowerer.constant(Constant::Scalar(literal, dtype));
                Operation::Constant { to, constant }
            }
            Known::Shape(dims) => Operation::Shape { to, dims },
            Known::Scalar(value) => Operation::Scalar { to, value },
            Known::String(value) => Operation::String { to, value },
            // A storage and a shape heap are gone when the program runs.
            Known::Null | Known::Heap(_) => Operation::Null { to },
            Known::Closure(procedure, captured) => Operation::Closure { to, procedure, captured },
            Known::Global(function) => match procedure {
                Some(procedure) => Operation::Closure { to, procedure, captured: Vec::new() },
                None => {
                    self.problem(format!("`{function}` is used as a value, and is no Relax function"));
                    Operation::Tuple { to, fields }
                }
            },
            // A problem was reported; the program is not run.
            Known::Broken => Operation::Tuple { to, fields },
        };
        self.emit(operation);
        to
    }

    /// A field of a tuple.
    pub(super) fn field(&mut self, tuple: Known, index: usize) -> Known {
        match tuple {
            Known::Tuple(fields) => fields.get(index).cloned().unwrap_or(Known::Broken),
            Known::Broken => Known::Broken,
            other => {
                let from = self.materialize(other);
                let to = self.register();
                self.emit(Operation::Field { to, from, index });
                Known::Register(to)
            }
        }
    }
}

/// The variables a body mentions, those it binds itself included.
pub(super) fn mentioned(body: &Body) -> Vec<Name> {
    let mut names = NameSet::default();
    in_body(body, &mut names);
    let mut names: Vec<Name> = names.into_iter().collect();
    names.sort_by_key(|name| name.as_str());
    names
}

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
