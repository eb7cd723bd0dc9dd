//! Functions as CUDA C: each as the kernels that the target's rules make of its statements.

use super::Kernel;
use crate::accumulate::begun;
use crate::names::{Names, identifier};
use crate::prelude;
use crate::rules::{Declined, Schedule, Target, Task};
use crate::source::{Argument, Choice, CudaFunction, CudaSource, HostLoop, KernelInfo, Listing, Sites, Temporary};
use crate::statements::{Statements, Unsupported, statements};
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_tir::{Buffer, BufferId, Expr, PrimFunc, Stmt};

/// Prints functions into one text: kernels for their statements, as the target's rules make them.
///
/// Indices are printed as they are: what is not proved in range must stand in an [`Expr::Checked`]. Strides of buffers
/// are ignored, as they are by the interpreter: every buffer is dense and row-major.
///
/// # Errors
/// Where a function has a dtype, an intrinsic or a form that the text has no words for.
pub fn module(funcs: &[&PrimFunc], target: &Target) -> Result<CudaSource, Unsupported> {
    let mut module = Module::new(target);
    let mut functions = Vec::with_capacity(funcs.len());
    for (number, func) in funcs.iter().enumerate() {
        let unsupported = |what| Unsupported { function: func.name, what };
        functions.push(module.function(number, func).map_err(unsupported)?);
    }
    let head = module.head();
    for kernel in functions.iter_mut().flat_map(|function: &mut CudaFunction| &mut function.kernels) {
        kernel.text = kernel.text.start + head.len()..kernel.text.end + head.len();
    }
    let text = format!("{head}{}\n", module.kernels.trim_end());
    let head_bytes = head.len();
    Ok(CudaSource { text, head_bytes, functions, sites: module.sites.list, choices: module.choices })
}

/// Whether one schedule takes all statements of a function, and what is between them never reaches memory: attention. Where the
/// keys of few rows are shared by blocks, that is two kernels.
pub fn makes_one(func: &PrimFunc, target: &Target) -> bool {
    let func = begun(func);
    let parts = statements(&func);
    let func = parts.passing_rounds(&func);
    let mut module = Module::new(target);
    let mut function = Function::new(&func, 0, parts.temporaries.clone());
    let taken = module.schedule(&mut function, &parts, 0);
    let passed = function.passed();
    taken == Ok(parts.statements.len())
        && (0..parts.temporaries.len()).all(|at| !passed.contains(&Argument::Temporary(at)))
}

/// Functions as text to be read: what [`module`] prints, function by function, and without those it has no words for.
pub fn listing(funcs: &[&PrimFunc], target: &Target) -> Listing {
    let mut module = Module::new(target);
    let mut functions = Vec::with_capacity(funcs.len());
    let mut kernels = Vec::with_capacity(funcs.len());
    for (number, func) in funcs.iter().enumerate() {
        let helpers = module.helpers.len();
        let printed = module.function(number, func);
        let text = std::mem::take(&mut module.kernels);
        functions.push(match printed {
            Ok(function) => {
                kernels.push(function.kernels);
                Ok(text)
            }
            Err(what) => {
                kernels.push(Vec::new());
                module.helpers.truncate(helpers);
                Err(Unsupported { function: func.name, what })
            }
        });
    }
    Listing { head: module.head(), functions, kernels, choices: module.choices }
}

/// What all kernels of a text share.
struct Module<'t> {
    target: &'t Target,
    kernel_names: Names,
    helpers: Vec<&'static str>,
    sites: Sites,
    kernels: String,
    choices: Vec<Choice>,
}

/// A function on its way to text.
struct Function<'f> {
    func: &'f PrimFunc,
    number: usize,
    /// Buffers that live between its statements.
    temporaries: Vec<BufferId>,
    result: CudaFunction,
}

impl<'f> Function<'f> {
    /// A function that no kernel does yet, with buffers that live between its statements.
    fn new(func: &'f PrimFunc, number: usize, temporaries: Vec<BufferId>) -> Function<'f> {
        let of = |id: &BufferId| func.buffer(*id);
        let result = CudaFunction {
            name: func.name,
            origins: func.origins.clone(),
            params: func.params.clone(),
            kernels: Vec::new(),
            temporaries: temporaries
                .iter()
                .map(|id| Temporary { name: of(id).name.to_string(), bytes: bytes_of(of(id)) })
                .collect(),
            vars: func.vars.iter().map(|var| var.dtype).collect(),
            buffers: func.buffer_params().map(|id| (func.buffer(id).shape.clone(), func.buffer(id).dtype)).collect(),
        };
        Function { func, number, temporaries, result }
    }

    /// What is passed to its kernels.
    fn passed(&self) -> FxHashSet<Argument> {
        self.result.kernels.iter().flat_map(|kernel| kernel.buffers()).collect()
    }
}

impl<'t> Module<'t> {
    fn new(target: &'t Target) -> Module<'t> {
        Module {
            target,
            kernel_names: Names::default(),
            helpers: Vec::new(),
            sites: Sites::default(),
            kernels: String::new(),
            choices: Vec::new(),
        }
    }

    /// What stands before the kernels: the first line, and the helpers they use.
    fn head(&self) -> String {
        let helpers = prelude::text(&self.helpers);
        let space = if helpers.is_empty() { "" } else { "\n" };
        format!("// CUDA C by rx. It needs no header.\n\n{helpers}{space}")
    }

    fn function(&mut self, number: usize, func: &PrimFunc) -> Result<CudaFunction, String> {
        let func = begun(func);
        let parts = statements(&func);
        let func = parts.passing_rounds(&func);
        let mut function = Function::new(&func, number, parts.temporaries.clone());
        let mut at = 0;
        while at < parts.statements.len() {
            at += self.schedule(&mut function, &parts, at)?.max(1);
        }
        let passed = function.passed();
        let Function { mut result, temporaries, .. } = function;
        for at in (0..temporaries.len()).filter(|at| !passed.contains(&Argument::Temporary(*at))) {
            result.temporaries[at].bytes = Expr::int(0);
        }
        Ok(result)
    }

    /// Has the first rule that takes the front of the statements from a place on print it; gives how many statements that were.
    fn schedule(&mut self, function: &mut Function<'_>, parts: &Statements, at: usize) -> Result<usize, String> {
        let left = parts.together(at);
        let Some(first) = left.first() else { return Ok(0) };
        let task = Task { func: function.func, statements: left, of: (parts, at), target: self.target };
        let mut declined = Vec::new();
        for rule in self.target.rules.rules() {
            let why = match rule.take(&task) {
                Ok(schedule) => match self.print(function, rule.name, &schedule, &first.rounds) {
                    Ok(kernels) => {
                        let taken = schedule.taken;
                        let is_guarded = schedule.kernels.iter().any(|kernel| kernel.guard().is_some());
                        let note = noted(task.func, (&schedule.note, &first.rounds), is_guarded);
                        let blocks = left.iter().take(taken).flat_map(|one| blocks_of(&one.stmt)).collect();
                        self.choices.push(Choice {
                            function: function.number,
                            blocks,
                            rule: rule.name,
                            kernels,
                            note,
                            declined,
                        });
                        return Ok(taken);
                    }
                    Err(why) => why,
                },
                Err(Declined(why)) => why,
            };
            declined.push((rule.name, why));
        }
        Err(declined.pop().map_or_else(|| "no rule is asked".to_owned(), |(_, why)| why))
    }

    /// Prints what a rule made; where that fails nothing is left of it.
    fn print(
        &mut self,
        function: &mut Function<'_>,
        rule: &'static str,
        schedule: &Schedule,
        rounds: &[HostLoop],
    ) -> Result<Vec<String>, String> {
        let before = (self.helpers.len(), self.kernels.len());
        let (kernels, temporaries) = (function.result.kernels.len(), function.result.temporaries.len());
        let scratch = schedule.scratch.iter();
        let scratch = scratch.map(|one| Temporary { name: one.name.to_owned(), bytes: one.bytes.clone() });
        function.result.temporaries.extend(scratch);
        let printed = self.kernels_of(function, (rule, schedule, rounds), temporaries);
        if printed.is_err() {
            self.helpers.truncate(before.0);
            self.kernels.truncate(before.1);
            for kernel in function.result.kernels.drain(kernels..) {
                self.kernel_names.forget(&kernel.name);
            }
            function.result.temporaries.truncate(temporaries);
        }
        printed
    }

    fn kernels_of(
        &mut self,
        function: &mut Function<'_>,
        (rule, schedule, rounds): (&'static str, &Schedule, &[HostLoop]),
        first_scratch: usize,
    ) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for body in &schedule.kernels {
            let func = body.func().unwrap_or(function.func);
            let wanted = format!("{}_kernel", identifier(&function.func.name));
            let name = self.kernel_names.fresh(&wanted);
            let mut kernel =
                Kernel::new(func, function.number, &function.temporaries, &mut self.helpers, &mut self.sites);
            kernel.first_of_schedule = first_scratch;
            kernel.first_scratch = function.result.temporaries.len();
            kernel.is_cooperative = body.is_cooperative();
            let note = noted(func, (&schedule.note, rounds), body.guard().is_some());
            let info = kernel.print(&name, rule, &note, &**body);
            let Kernel { text, scratch, .. } = kernel;
            if info.is_err() {
                self.kernel_names.forget(&name);
            }
            let info = info?;
            let start = self.kernels.len();
            self.kernels.push_str(&text);
            let text = start..self.kernels.len();
            self.kernels.push('\n');
            function.result.temporaries.extend(scratch);
            let (rounds, guard) = (rounds.to_vec(), body.guard().cloned());
            function.result.kernels.push(KernelInfo { text, rounds, guard, ..info });
            names.push(name);
        }
        Ok(names)
    }
}

/// What is said of a schedule, and of when the host launches its kernel.
fn noted(func: &PrimFunc, (note, rounds): (&str, &[HostLoop]), is_guarded: bool) -> String {
    let note = Some(note.to_owned()).filter(|note| !note.is_empty());
    let each = rounds.iter().map(|round| format!("launched for each {} of the host's loop", func.var(round.var).name));
    let guarded = is_guarded.then(|| "launched where a condition of the host holds".to_owned());
    note.into_iter().chain(each).chain(guarded).collect::<Vec<_>>().join("; ")
}

/// The blocks in a statement by their names, each once.
pub(super) fn blocks_of(stmt: &Stmt) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    stmt.walk(&mut |part| {
        if let Stmt::Block(block) = part
            && !blocks.iter().any(|known| *known == *block.name)
        {
            blocks.push(block.name.to_string());
        }
    });
    blocks
}

/// Bytes of a buffer, an `int64`.
pub(super) fn bytes_of(buffer: &Buffer) -> Expr {
    buffer.shape.iter().fold(Expr::int(buffer.dtype.bytes().cast_signed()), |bytes, extent| {
        bytes * extent.clone().cast(DType::INT64).max(Expr::int(0))
    })
}
