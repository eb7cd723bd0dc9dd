//! Relax functions to procedures.

mod call;
mod call_tir;
mod expression;
mod host;
mod kernel;
mod known;
mod memory;
mod open;
mod packed;
mod shape_heap;

pub use kernel::{CallKernel, OperatorCall};

use crate::loops::Loops;
use crate::program::{Branch, Constant, ConstantId, Instruction, Operation, Procedure, ProcedureId, Program, Register};
use crate::queries::{Direct, Queries};
use known::Known;
use memory::Tensors;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::function::ONCE;
use rx_ir::{Binding, BindingKind, Body, Function, Origin, Shape, StructInfo};
use shape_heap::Heap;
use std::collections::VecDeque;
use std::sync::Arc;

/// A module's items, as lowering asks for them.
pub trait Module {
    /// The Relax function called `name`.
    fn function(&self, name: Name) -> Option<Arc<Function>>;
    /// The prim_func called `name`; `Err` says why it cannot be run.
    fn prim_func(&self, name: Name) -> Option<Result<Loops, String>>;
    /// Who answers questions about kernels.
    fn queries(&self) -> &dyn Queries {
        &Direct
    }
}

/// Why something cannot be run, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The statement, where it is one.
    pub origin: Option<Origin>,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
}

/// The program of the function `entry` and of all it calls.
///
/// # Errors
/// Everything in it that has no lowering.
pub fn lower(module: &dyn Module, entry: Name) -> Result<Program, Vec<Problem>> {
    program(module, entry, false, false)
}

/// As [`lower`], of a module whose types tell everything: no call waits for its operands.
pub(crate) fn lower_complete(module: &dyn Module, entry: Name) -> Result<Program, Vec<Problem>> {
    program(module, entry, false, true)
}

/// As [`lower`], and every variable that is bound to a value, or to a tuple of some, is said to be ([`Operation::Bound`]).
/// Functions have no value, and `_` is no variable. That of an `if` is bound in its branches.
///
/// # Errors
/// As [`lower`].
pub fn lower_watched(module: &dyn Module, entry: Name) -> Result<Program, Vec<Problem>> {
    program(module, entry, true, false)
}

fn program(module: &dyn Module, entry: Name, watched: bool, complete: bool) -> Result<Program, Vec<Problem>> {
    let _span = tracing::debug_span!("lower", entry = entry.as_str()).entered();
    let (program, ids, problems) = (Program::default(), NameMap::default(), Vec::new());
    let queries = module.queries();
    let mut lowerer = Lowerer { module, queries, program, ids, waiting: VecDeque::new(), problems, watched, complete };
    if lowerer.procedure(entry).is_none() {
        let message = format!("the module has no Relax function `{entry}`");
        return Err(vec![Problem { origin: None, message }]);
    }
    while let Some((id, definition)) = lowerer.waiting.pop_front() {
        lowerer.body(id, &definition);
    }
    match lowerer.problems.is_empty() {
        true => Ok(lowerer.program),
        false => Err(lowerer.problems),
    }
}

struct Lowerer<'m> {
    module: &'m dyn Module,
    queries: &'m dyn Queries,
    program: Program,
    ids: NameMap<ProcedureId>,
    /// Functions that are called and have no code yet: a chain of calls may be longer than the host's stack.
    waiting: VecDeque<(ProcedureId, Arc<Function>)>,
    problems: Vec<Problem>,
    /// Whether bindings are said.
    watched: bool,
    /// Whether types tell everything there is to know.
    complete: bool,
}

impl Lowerer<'_> {
    /// The procedure of the module's Relax function `function`, whose code may follow later.
    fn procedure(&mut self, function: Name) -> Option<ProcedureId> {
        if let Some(id) = self.ids.get(&function) {
            return Some(*id);
        }
        let definition = self.module.function(function)?;
        let id = self.reserve(function);
        self.ids.insert(function, id);
        self.waiting.push_back((id, definition));
        Some(id)
    }

    fn body(&mut self, id: ProcedureId, definition: &Function) {
        let mut lowering = FunctionLowering::new(self);
        if id == ProcedureId(0) {
            lowering.own_params(&definition.params);
        }
        let procedure = lowering.function(definition, &[]);
        self.program.procedures[id.0 as usize] = procedure;
    }

    fn reserve(&mut self, function: Name) -> ProcedureId {
        self.program.procedures.push(Procedure { name: function, ..Procedure::empty() });
        ProcedureId(self.program.procedures.len() as u32 - 1)
    }

    fn constant(&mut self, constant: Constant) -> ConstantId {
        let constants = &mut self.program.constants;
        let at = constants.iter().position(|known| *known == constant).unwrap_or_else(|| {
            constants.push(constant);
            constants.len() - 1
        });
        ConstantId(at as u32)
    }
}

/// One function on its way to a procedure.
struct FunctionLowering<'l, 'm> {
    lowerer: &'l mut Lowerer<'m>,
    names: NameMap<Known>,
    /// What is written into.
    tensors: Tensors,
    heaps: Vec<Heap>,
    /// How many symbols stand for what shape heaps hold.
    heap_symbols: u32,
    code: Vec<Instruction>,
    types: Vec<StructInfo>,
    origin: Option<Origin>,
}

impl<'l, 'm> FunctionLowering<'l, 'm> {
    fn new(lowerer: &'l mut Lowerer<'m>) -> Self {
        FunctionLowering {
            lowerer,
            names: NameMap::default(),
            tensors: Tensors::default(),
            heaps: Vec::new(),
            heap_symbols: 0,
            code: Vec::new(),
            types: Vec::new(),
            origin: None,
        }
    }

    /// A new register for values of this type.
    fn register(&mut self, ty: StructInfo) -> Register {
        self.types.push(ty);
        Register(self.types.len() as u32 - 1)
    }

    /// The type of what a register holds.
    fn type_of(&self, register: Register) -> StructInfo {
        self.types.get(register.0 as usize).cloned().unwrap_or(StructInfo::Object)
    }

    fn emit(&mut self, operation: Operation) {
        self.code.push(Instruction { origin: self.origin, operation });
    }

    fn problem(&mut self, message: impl Into<String>) -> Known {
        self.lowerer.problems.push(Problem { origin: self.origin, message: message.into() });
        Known::Broken
    }

    /// The procedure of `function`; `captured` are names it sees of its surroundings, each one register.
    fn function(mut self, function: &Function, captured: &[(Name, StructInfo)]) -> Procedure {
        let bindings = function.body.bindings.len();
        self.code.reserve(function.params.len() + bindings);
        self.types.reserve(function.params.len() + captured.len() + bindings);
        self.lowerer.program.kernels.reserve(bindings);
        for (param, ty) in &function.params {
            let register = self.register(ty.clone());
            self.names.insert(*param, Known::Register(register));
        }
        for (outer, ty) in captured {
            let register = self.register(ty.clone());
            self.names.insert(*outer, Known::Register(register));
        }
        for (at, (param, ty)) in function.params.iter().enumerate() {
            let what = format!("parameter `{param}`");
            self.emit(Operation::Match { value: Register(at as u32), ty: ty.clone(), what });
        }
        let result = self.body(&function.body);
        let result = self.materialize(result);
        Procedure {
            name: function.name,
            params: function.params.clone(),
            num_input: function.num_input,
            once: function.pure && captured.is_empty() && function.is_stated(ONCE),
            captured: captured.len(),
            types: self.types,
            ret: function.ret.clone(),
            pure: function.pure,
            code: self.code,
            result,
            storages: Vec::new(),
        }
    }

    /// Lowers bindings; gives the value they lead to.
    fn body(&mut self, body: &Body) -> Known {
        for binding in &body.bindings {
            self.binding(binding);
        }
        match &body.result {
            Some(result) => self.expression(result),
            None => Known::nothing(),
        }
    }

    fn binding(&mut self, binding: &Binding) {
        self.origin = Some(binding.origin);
        match &binding.kind {
            BindingKind::Value { variable, ty, value } => {
                let known = self.expression(value);
                let known = self.narrowed(known, *variable, &value.ty, ty);
                self.bound(*variable, &known);
                // A statement for its effect binds nothing: `_` may be a parameter.
                if variable.as_str() != "_" || *ty != StructInfo::void() {
                    self.names.insert(*variable, known);
                }
            }
            BindingKind::Unpack { variables, value } => {
                let tuple = self.expression(value);
                for (at, variable) in variables.iter().enumerate() {
                    let field = self.field(tuple.clone(), at);
                    if let Some(variable) = variable {
                        self.bound(*variable, &field);
                        self.names.insert(*variable, field);
                    }
                }
            }
            BindingKind::If { variable, arms, otherwise } => {
                let register = self.branches(arms, otherwise);
                if let Some(variable) = variable {
                    self.names.insert(*variable, Known::Register(register));
                }
            }
            BindingKind::Function(function) => self.nested(function),
        }
    }

    /// Says what a variable is bound to, where somebody watches.
    fn bound(&mut self, variable: Name, known: &Known) {
        let has_value = !matches!(known, Known::Broken | Known::Global(_) | Known::Closure(..));
        if self.lowerer.watched && has_value && variable.as_str() != "_" {
            let value = self.materialize(known.clone());
            self.emit(Operation::Bound { variable, value });
        }
    }

    /// A value whose annotation says more than was inferred: checked when the program runs.
    fn narrowed(&mut self, known: Known, variable: Name, inferred: &StructInfo, declared: &StructInfo) -> Known {
        if inferred == declared || !declared.says_more_than(inferred) || matches!(known, Known::Broken) {
            return known;
        }
        let value = self.materialize(known);
        self.emit(Operation::Match { value, ty: declared.clone(), what: format!("`{variable}`") });
        Known::Register(value)
    }

    fn branches(&mut self, arms: &[(rx_ir::Expr, Body)], otherwise: &Body) -> Register {
        let mut conditions = Vec::with_capacity(arms.len());
        let mut branches = Vec::with_capacity(arms.len() + 1);
        let origin = self.origin;
        for (condition, body) in arms {
            let outer = std::mem::take(&mut self.code);
            let condition = self.expression(condition);
            let condition = self.materialize(condition);
            let code = std::mem::replace(&mut self.code, outer);
            conditions.push((code, condition));
            branches.push(self.branch(body));
            self.origin = origin;
        }
        branches.push(self.branch(otherwise));
        self.origin = origin;
        let (mut branches, written) = self.join_branches(branches);
        // INVARIANT: the last was pushed above.
        let otherwise = branches.pop().unwrap_or(Branch { code: Vec::new(), result: Register(0) });
        let arms = conditions.into_iter().zip(branches);
        let arms: Vec<_> = arms.map(|((code, condition), branch)| (code, condition, branch)).collect();
        let results = arms.iter().map(|(.., branch): &(_, _, Branch)| branch.result).chain([otherwise.result]);
        let to = self.register(common(results.map(|result| self.type_of(result))));
        self.emit(Operation::If { arms, otherwise, to });
        self.leave_branches(to, &written)
    }

    /// A branch's code, and what it did to tensors; nothing of it is seen outside.
    fn branch(&mut self, body: &Body) -> (Branch, Tensors) {
        let (names, tensors, heaps) = (self.names.clone(), self.tensors.clone(), self.heaps.clone());
        let outer = std::mem::take(&mut self.code);
        let result = self.body(body);
        let result = self.materialize(result);
        let code = std::mem::replace(&mut self.code, outer);
        self.names = names;
        self.heaps = heaps;
        (Branch { code, result }, std::mem::replace(&mut self.tensors, tensors))
    }

    /// A nested function: a closure over the registers behind the names it mentions.
    fn nested(&mut self, function: &Function) {
        let mut free = Vec::new();
        let mut inherited = Vec::new();
        for mentioned in known::mentioned(&function.body) {
            match self.names.get(&mentioned) {
                Some(known) if known.has_registers() => free.push(mentioned),
                Some(known) => inherited.push((mentioned, known.clone())),
                None => {}
            }
        }
        let captured: Vec<Register> = free
            .iter()
            .map(|free| {
                let known = self.names.get(free).map(|known| self.tensors.current_value(known));
                self.materialize(known.unwrap_or(Known::Broken))
            })
            .collect();
        let types: Vec<StructInfo> = captured.iter().map(|register| self.type_of(*register)).collect();
        let id = self.lowerer.reserve(function.name);
        let mut inner = FunctionLowering::new(self.lowerer);
        inner.names.extend(inherited);
        let first = function.params.len() as u32;
        let own = (0..free.len() as u32).map(|at| Register(first + at)).collect();
        inner.names.insert(function.name, Known::Closure(id, own));
        let free: Vec<(Name, StructInfo)> = free.into_iter().zip(types).collect();
        let procedure = inner.function(function, &free);
        self.lowerer.program.procedures[id.0 as usize] = procedure;
        let to = self.register(StructInfo::callable());
        self.emit(Operation::Closure { to, procedure: id, captured });
        self.names.insert(function.name, Known::Register(to));
    }
}

/// The type of a value that is of one of some types.
fn common(mut types: impl Iterator<Item = StructInfo>) -> StructInfo {
    let first = types.next().unwrap_or(StructInfo::Object);
    types.fold(first, |common, ty| match (&common, &ty) {
        _ if common == ty => common,
        (StructInfo::Tuple(a), StructInfo::Tuple(b)) if a.len() == b.len() => {
            let fields = a.iter().zip(b.iter()).map(|(a, b)| self::common([a.clone(), b.clone()].into_iter()));
            StructInfo::tuple(fields.collect::<Vec<_>>())
        }
        _ => match (common.as_tensor(), ty.as_tensor()) {
            (Some(a), Some(b)) => {
                let ndim = a.shape.ndim().filter(|ndim| b.shape.ndim() == Some(*ndim));
                StructInfo::tensor_of(Shape::of_rank(ndim), a.dtype.filter(|dtype| b.dtype == Some(*dtype)))
            }
            _ => StructInfo::Object,
        },
    })
}
