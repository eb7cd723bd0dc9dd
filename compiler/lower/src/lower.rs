//! Lowers Relax functions to procedures: [`lower()`] visits the entry function and every function that is reachable
//! from it, and emits instructions for their bindings in order.
//!
//! ```text
//! with R.dataflow():
//!     y = R.add(x, x)              →    r1 = kernel add(r0, r0)
//!     z = R.reshape(y, [8])             r2 = view(r1)
//! ```
//!
//! Each expression is lowered to a `Known`: a register, or a value or function known at compile time. The submodules
//! lower calls of operators (`call`, `kernel`), of prim_funcs (`call_tir`, `memory`) and of packed functions
//! (`packed`), operators that run on the host (`host`), operator calls whose types are not fully known (`open`), and
//! shape heaps (`shape_heap`).

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

/// The items of a module that lowering needs.
pub trait Module {
    /// Returns the Relax function called `name`.
    fn function(&self, name: Name) -> Option<Arc<Function>>;
    /// Returns the prim_func called `name`; `Err` gives the reason why it cannot be run.
    fn prim_func(&self, name: Name) -> Option<Result<Loops, String>>;
    /// Returns the object that computes kernels, or looks them up.
    fn queries(&self) -> &dyn Queries {
        &Direct
    }
}

/// A lowering error: the reason why a statement cannot be run, and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The statement, if the error is in one.
    pub origin: Option<Origin>,
    /// The message, without a full stop.
    pub message: String,
}

/// Lowers the function `entry` and all functions that are reachable from it to a program.
///
/// # Errors
/// Returns one error if the module has no Relax function `entry`. Otherwise returns the errors of the constructs that
/// have no lowering, for example an unknown operator or function, or a prim_func that cannot be run.
pub fn lower(module: &dyn Module, entry: Name) -> Result<Program, Vec<Problem>> {
    program(module, entry, false, false)
}

/// Like [`lower`], for a module whose types are fully known: no call becomes [`Operation::Dynamic`].
pub(crate) fn lower_complete(module: &dyn Module, entry: Name) -> Result<Program, Vec<Problem>> {
    program(module, entry, false, true)
}

/// Like [`lower`], and reports every variable that is bound to a value ([`Operation::Bound`]). The names of nested
/// functions, variables bound directly to a function of the module or, inside a nested function, to that function, and
/// `_` are not reported. The variable of an `if` is reported in each branch.
///
/// # Errors
/// Like [`lower`].
pub fn lower_watched(module: &dyn Module, entry: Name) -> Result<Program, Vec<Problem>> {
    program(module, entry, true, false)
}

/// Lowers `entry`; `watched` is whether to emit [`Operation::Bound`], `complete` whether all types are fully known.
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

/// The state of lowering a module.
struct Lowerer<'m> {
    module: &'m dyn Module,
    queries: &'m dyn Queries,
    program: Program,
    /// The procedures of the functions that have been requested.
    ids: NameMap<ProcedureId>,
    /// Functions that have a procedure but no code yet. A worklist, not recursion: a chain of calls may be longer than
    /// the host's stack.
    waiting: VecDeque<(ProcedureId, Arc<Function>)>,
    problems: Vec<Problem>,
    /// Whether to emit [`Operation::Bound`] for bindings.
    watched: bool,
    /// Whether all types are fully known, so that no call becomes [`Operation::Dynamic`].
    complete: bool,
}

impl Lowerer<'_> {
    /// Returns the procedure of the module's Relax function `function`. Its code may be lowered later.
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

    /// Lowers the body of a function into its reserved procedure.
    fn body(&mut self, id: ProcedureId, definition: &Function) {
        let mut lowering = FunctionLowering::new(self);
        if id == ProcedureId(0) {
            lowering.own_params(&definition.params);
        }
        let procedure = lowering.function(definition, &[]);
        self.program.procedures[id.0 as usize] = procedure;
    }

    /// Adds an empty procedure.
    fn reserve(&mut self, function: Name) -> ProcedureId {
        self.program.procedures.push(Procedure { name: function, ..Procedure::empty() });
        ProcedureId(self.program.procedures.len() as u32 - 1)
    }

    /// Returns the id of a constant, and adds it if the program does not have it yet.
    fn constant(&mut self, constant: Constant) -> ConstantId {
        let constants = &mut self.program.constants;
        let at = constants.iter().position(|known| *known == constant).unwrap_or_else(|| {
            constants.push(constant);
            constants.len() - 1
        });
        ConstantId(at as u32)
    }
}

/// The state of lowering one function.
struct FunctionLowering<'l, 'm> {
    lowerer: &'l mut Lowerer<'m>,
    /// The values of the variables in scope.
    names: NameMap<Known>,
    /// The tensors that the function may write into.
    tensors: Tensors,
    /// The shape heaps, by number.
    heaps: Vec<Heap>,
    /// The last number that was used in the name of a symbol for a shape heap.
    heap_symbols: u32,
    /// The instructions of the current block.
    code: Vec<Instruction>,
    /// The types of the registers, by number.
    types: Vec<StructInfo>,
    /// The statement that is being lowered.
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

    /// Adds a register of type `ty`.
    fn register(&mut self, ty: StructInfo) -> Register {
        self.types.push(ty);
        Register(self.types.len() as u32 - 1)
    }

    /// Returns the type of a register.
    fn type_of(&self, register: Register) -> StructInfo {
        self.types.get(register.0 as usize).cloned().unwrap_or(StructInfo::Object)
    }

    /// Appends an instruction to the current block.
    fn emit(&mut self, operation: Operation) {
        self.code.push(Instruction { origin: self.origin, operation });
    }

    /// Reports an error at the current statement. Returns the value to continue with.
    fn problem(&mut self, message: impl Into<String>) -> Known {
        self.lowerer.problems.push(Problem { origin: self.origin, message: message.into() });
        Known::Broken
    }

    /// Lowers `function` to a procedure. `captured` are the variables of enclosing functions that it captures; each
    /// becomes a register after the parameters.
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
            let subject = format!("parameter `{param}`");
            self.emit(Operation::Match { value: Register(at as u32), ty: ty.clone(), subject });
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

    /// Lowers bindings, and returns the value of the body's result.
    fn body(&mut self, body: &Body) -> Known {
        for binding in &body.bindings {
            self.binding(binding);
        }
        match &body.result {
            Some(result) => self.expression(result),
            None => Known::nothing(),
        }
    }

    /// Lowers one binding.
    fn binding(&mut self, binding: &Binding) {
        self.origin = Some(binding.origin);
        match &binding.kind {
            BindingKind::Value { variable, ty, value } => {
                let known = self.expression(value);
                let known = self.narrowed(known, *variable, &value.ty, ty);
                self.bound(*variable, &known);
                // A call that is a statement binds no variable: `_` may be the name of a parameter.
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

    /// Emits [`Operation::Bound`] for a variable, if the program is watched. Emits nothing for the variable `_`, for a
    /// function of the module, for a nested function in its own body, or for an expression that has an error.
    fn bound(&mut self, variable: Name, known: &Known) {
        let has_value = !matches!(known, Known::Broken | Known::Global(_) | Known::Closure(..));
        if self.lowerer.watched && has_value && variable.as_str() != "_" {
            let value = self.materialize(known.clone());
            self.emit(Operation::Bound { variable, value });
        }
    }

    /// Checks a value at run time where its annotation states a fact that the inferred type does not. For example,
    /// `y: R.Tensor((4,)) = f(x)`, where `f` returns `R.Tensor(ndim=1)`.
    fn narrowed(&mut self, known: Known, variable: Name, inferred: &StructInfo, declared: &StructInfo) -> Known {
        if inferred == declared || !declared.says_more_than(inferred) || matches!(known, Known::Broken) {
            return known;
        }
        let value = self.materialize(known);
        self.emit(Operation::Match { value, ty: declared.clone(), subject: format!("`{variable}`") });
        Known::Register(value)
    }

    /// Lowers an `if` with its `elif` arms, and returns the register of its result.
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
        // INVARIANT: the `otherwise` branch was pushed above, so `branches` is not empty.
        let otherwise = branches.pop().unwrap_or(Branch { code: Vec::new(), result: Register(0) });
        let arms = conditions.into_iter().zip(branches);
        let arms: Vec<_> = arms.map(|((code, condition), branch)| (code, condition, branch)).collect();
        let results = arms.iter().map(|(.., branch): &(_, _, Branch)| branch.result).chain([otherwise.result]);
        let to = self.register(common(results.map(|result| self.type_of(result))));
        self.emit(Operation::If { arms, otherwise, to });
        self.leave_branches(to, &written)
    }

    /// Lowers a branch. Returns its code, and the state of the tensors at its end. Names that it binds are not visible
    /// outside.
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

    /// Lowers a nested function to a closure. The closure captures each outer variable whose name the body reads, even
    /// if the body binds that name itself, and whose value may depend on a register ([`Known::has_registers`]). The
    /// values of other variables are known at compile time, so the body uses them directly.
    fn nested(&mut self, function: &Function) {
        let mut free = Vec::new();
        let mut inherited = Vec::new();
        // Inside the function, its parameters and its own name hide the variables of the same names around it.
        let hides = |name: Name| name == function.name || function.params.iter().any(|(param, _)| *param == name);
        for mentioned in known::mentioned(&function.body).into_iter().filter(|mentioned| !hides(*mentioned)) {
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

/// Returns a type that includes all given types. Tensors of different types keep the rank and the dtype where these are
/// equal; tuples of equal length are joined field by field; all other types that differ give `R.Object`.
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
