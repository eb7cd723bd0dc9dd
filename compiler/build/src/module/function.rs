//! Converts a procedure to a Relax function.

mod call;

use super::types;
use rx_base::name::{NameSet, name};
use rx_base::{DType, Dim, Name};
use rx_ir::function::ONCE;
use rx_ir::{
    Argument, Attr, Block, BoundValue, Branches, Callee, Expr, ExprKind, Origin, PrimValue, RelaxFunction, Sequence,
    StructInfo, VarBinding,
};
use rx_lower::program::Branch;
use rx_lower::{Constant, Instruction, Operation, Procedure, Program, Register, Scalar};
use rx_transform::make;
use std::sync::Arc;

/// The state of converting the instructions of a procedure to bindings.
pub(super) struct Writer<'p> {
    program: &'p Program,
    /// The names of the program's procedures.
    names: &'p [Name],
    procedure: &'p Procedure,
    /// By register: its value as an operand, for example a variable or a literal.
    values: Vec<Option<Expr>>,
    /// By storage: its variable, if it is bound already.
    storages: Vec<Option<Expr>>,
    /// The names that are used in the function.
    taken: NameSet,
    /// The number to try for the next variable, whatever its name: for example `lv`, `alloc1`, `lv2`.
    numbered: usize,
    bindings: Vec<VarBinding>,
    origin: Origin,
    /// Whether a kernel is called that writes into its arguments.
    writes: bool,
}

impl<'p> Writer<'p> {
    pub(super) fn new(program: &'p Program, names: &'p [Name], procedure: &'p Procedure) -> Writer<'p> {
        let mut taken: NameSet = procedure.params.iter().map(|(param, _)| *param).collect();
        taken.extend(procedure.types.iter().flat_map(StructInfo::symbols));
        Writer {
            program,
            names,
            procedure,
            values: vec![None; procedure.types.len()],
            storages: vec![None; procedure.storages.len()],
            taken,
            numbered: 0,
            bindings: Vec::new(),
            origin: Origin { item: procedure.name, statement: 0 },
            writes: false,
        }
    }

    /// Returns the function, with the name `name`.
    pub(super) fn function(mut self, name: Name, private: bool) -> RelaxFunction {
        let procedure = self.procedure;
        let run_time = |(param, ty): &(Name, StructInfo)| (*param, types::run_time(ty));
        let mut params: Vec<(Name, StructInfo)> = procedure.params.iter().map(run_time).collect();
        for at in params.len()..params.len() + procedure.captured {
            let own = self.fresh("captured");
            params.push((own, self.type_of(Register(at as u32))));
        }
        for (at, (param, ty)) in params.iter().enumerate() {
            self.set(Register(at as u32), Expr::var(*param, ty.clone()));
        }
        self.code(&procedure.code);
        let result = self.operand(procedure.result);
        let body = Sequence { blocks: blocks(std::mem::take(&mut self.bindings)), result };
        let attributes = self.attributes();
        let known: NameSet = params.iter().flat_map(|(_, ty)| ty.symbols()).collect();
        let ret = types::told_by(&types::run_time(&procedure.ret), &known);
        RelaxFunction { name, private, pure: procedure.pure, attributes, params, ret, body }
    }

    fn attributes(&self) -> Vec<(Arc<str>, Attr)> {
        let mut attributes: Vec<(Arc<str>, Attr)> = Vec::new();
        if let Some(count) = self.procedure.num_input {
            attributes.push((Arc::from("num_input"), Attr::Int(Dim::constant(count))));
        }
        if self.writes && self.procedure.pure {
            attributes.push((Arc::from("relax.force_pure"), Attr::Bool(true)));
        }
        if self.procedure.once {
            attributes.push((Arc::from(ONCE), Attr::Bool(true)));
        }
        attributes
    }

    fn code(&mut self, code: &[Instruction]) {
        for instruction in code {
            self.origin = instruction.origin.unwrap_or(self.origin);
            self.instruction(&instruction.operation);
        }
    }

    fn instruction(&mut self, operation: &Operation) {
        match operation {
            Operation::Kernel { kernel, inputs, outputs, scalars } => self.kernel(*kernel, inputs, outputs, scalars),
            Operation::View { to, from, shape } => {
                let shape = Argument::Operand(call::shape(shape));
                let given = vec![("x", self.argument(*from)), ("shape", shape)];
                self.operator(*to, "reshape", given);
            }
            Operation::Copy { to, from } => {
                let value = self.operand(*from);
                self.bind(*to, value);
            }
            Operation::Constant { to, constant } => {
                let kind = match &self.program.constants[constant.0 as usize] {
                    Constant::Scalar(literal, _) => ExprKind::Constant(literal.clone()),
                    Constant::Elements { elements, .. } => ExprKind::Elements(elements.clone()),
                    Constant::Metadata { key, index } => ExprKind::Metadata { key: *key, index: *index },
                };
                self.is(*to, kind);
            }
            Operation::Tuple { to, fields } => {
                let value = self.tuple(fields);
                self.bind(*to, value);
            }
            Operation::Field { to, from, index } => {
                let tuple = Box::new(self.operand(*from));
                let ty = self.type_of(*to);
                self.bind(*to, Expr::new(ExprKind::TupleGet(tuple, *index), ty));
            }
            Operation::Shape { to, dims } => self.is(*to, ExprKind::Shape(dims.clone())),
            Operation::Scalar { to, value } => {
                let value = self.scalar(value);
                self.set(*to, value);
            }
            Operation::String { to, value } => self.is(*to, ExprKind::Str(value.clone())),
            // The null value is bound on first use.
            Operation::Null { .. } => {}
            Operation::Host { to, function, arguments, .. } => self.host(*to, *function, arguments),
            Operation::Dynamic { to, call, operands } => self.dynamic(*to, call, operands),
            Operation::Match { value, ty, .. } => {
                let operand = self.operand(*value);
                let ty = types::both(&operand.ty, &types::run_time(ty));
                if operand.ty != ty {
                    self.bind(*value, Expr::new(ExprKind::MatchCast(Box::new(operand)), ty));
                }
            }
            Operation::Bound { .. } => {}
            Operation::If { arms, otherwise, to } => {
                let ty = self.type_of(*to);
                let value = self.branches(arms, otherwise, &ty);
                let variable = self.bind_as("lv", ty, value);
                self.set(*to, variable);
            }
            Operation::Call { to, procedure, arguments } => {
                let callee = Callee::Global(self.names[procedure.0 as usize]);
                self.call(*to, callee, arguments);
            }
            Operation::Closure { to, procedure, captured } => {
                let function = ExprKind::Global(self.names[procedure.0 as usize]);
                let function = Expr::new(function, StructInfo::callable());
                if captured.is_empty() {
                    self.set(*to, function);
                    return;
                }
                let captured = Argument::Operand(self.tuple(captured));
                self.operator(*to, "make_closure", vec![("func", Argument::Operand(function)), ("args", captured)]);
            }
            Operation::CallClosure { to, closure, arguments } => self.call_closure(*to, *closure, arguments),
        }
    }

    /// Returns the value of an `if`. Each arm after the first becomes an `if` in the `else` branch of the one before.
    fn branches(
        &mut self,
        arms: &[(Vec<Instruction>, Register, Branch)],
        otherwise: &Branch,
        ty: &StructInfo,
    ) -> BoundValue {
        let Some(((code, condition, then), rest)) = arms.split_first() else {
            return BoundValue::Expr(self.operand(otherwise.result));
        };
        self.code(code);
        let condition = self.operand(*condition);
        let then = self.sequence(|writer| writer.branch(then));
        let otherwise = self.sequence(|writer| match rest.is_empty() {
            true => writer.branch(otherwise),
            false => {
                let inner = writer.branches(rest, otherwise, ty);
                writer.bind_as("lv", ty.clone(), inner)
            }
        });
        BoundValue::If(Box::new(Branches { condition, then, otherwise }))
    }

    fn branch(&mut self, branch: &Branch) -> Expr {
        self.code(&branch.code);
        self.operand(branch.result)
    }

    /// Returns the bindings that `write` adds, with its result.
    fn sequence(&mut self, write: impl FnOnce(&mut Self) -> Expr) -> Sequence {
        let outer = std::mem::take(&mut self.bindings);
        let result = write(self);
        let bindings = std::mem::replace(&mut self.bindings, outer);
        Sequence { blocks: blocks(bindings), result }
    }

    fn tuple(&mut self, fields: &[Register]) -> Expr {
        let fields: Vec<Expr> = fields.iter().map(|field| self.operand(*field)).collect();
        call::tuple(fields)
    }

    fn scalar(&mut self, scalar: &Scalar) -> Expr {
        let prim = |value, dtype| Expr::new(ExprKind::Prim(value), StructInfo::prim(dtype));
        match scalar {
            Scalar::Int(dim) => make::integer(dim.clone()),
            Scalar::Float(value) => prim(PrimValue::Float(*value), DType::FLOAT64),
            Scalar::Bool(value) => prim(PrimValue::Bool(*value), DType::BOOL),
            Scalar::Register(register) => self.operand(*register),
        }
    }

    fn argument(&mut self, register: Register) -> Argument {
        Argument::Operand(self.operand(register))
    }

    /// Returns the register's value as an operand. A register without a value is null, and is bound to `R.null_value`.
    fn operand(&mut self, register: Register) -> Expr {
        if let Some(value) = self.value(register) {
            return value.clone();
        }
        self.operator(register, "null_value", Vec::new());
        self.value(register).cloned().unwrap_or_else(|| Expr::new(ExprKind::Error, StructInfo::Error))
    }

    fn value(&self, register: Register) -> Option<&Expr> {
        self.values.get(register.0 as usize)?.as_ref()
    }

    fn type_of(&self, register: Register) -> StructInfo {
        self.procedure.types.get(register.0 as usize).map_or(StructInfo::Object, types::run_time)
    }

    /// Sets the register's value to a constant, string or shape, which needs no variable.
    fn is(&mut self, register: Register, kind: ExprKind) {
        let value = Expr::new(kind, self.type_of(register));
        self.set(register, value);
    }

    fn set(&mut self, register: Register, value: Expr) {
        if let Some(slot) = self.values.get_mut(register.0 as usize) {
            *slot = Some(value);
        }
    }

    /// Binds a new variable to a value, and sets it as the register's value.
    fn bind(&mut self, register: Register, value: Expr) {
        let ty = value.ty.clone();
        let variable = self.bind_as("lv", ty, BoundValue::Expr(value));
        self.set(register, variable);
    }

    /// Binds a new variable to a value, and returns the variable.
    fn bind_as(&mut self, like: &str, ty: StructInfo, value: BoundValue) -> Expr {
        let variable = self.fresh(like);
        self.bindings.push(VarBinding { origin: self.origin, variable, ty: ty.clone(), value });
        Expr::var(variable, ty)
    }

    /// Returns a name that is not used in the function: `like`, numbered with a count that all names share. For
    /// example, `lv`, `alloc1`, `lv2`.
    fn fresh(&mut self, like: &str) -> Name {
        loop {
            let own = match self.numbered {
                0 => name(like),
                number => name(&format!("{like}{number}")),
            };
            self.numbered += 1;
            if self.taken.insert(own) {
                return own;
            }
        }
    }
}

/// Returns the bindings as a block that is not a dataflow block, or no block if there are none.
fn blocks(bindings: Vec<VarBinding>) -> Vec<Block> {
    if bindings.is_empty() { Vec::new() } else { vec![Block { outputs: None, bindings }] }
}
