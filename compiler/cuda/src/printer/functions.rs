//! Schedules functions and joins their kernels to a CUDA C source.

use super::Kernel;
use super::text::{KernelText, Named};
use crate::accumulate::begun;
use crate::names::{Names, identifier};
use crate::prelude;
use crate::rules::{Declined, Schedule, Target, Task};
use crate::source::{
    Argument, CheckSite, Choice, CudaFunction, CudaSource, HostLoop, KernelInfo, Listing, Sites, Temporary,
};
use crate::statements::{Statements, Unsupported, statements};
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_tir::{Buffer, BufferId, Expr, PrimFunc, Stmt};
use std::borrow::Cow;
use std::ops::Range;

/// Prints functions as one source, with the kernels that the target's rules make of their statements.
///
/// Requires that every index that is not proved to be in bounds is an [`Expr::Checked`]; other indices are printed
/// unchecked. Strides of buffers are ignored, as in the interpreter: every buffer is dense and row-major.
///
/// # Errors
/// If no rule can print a statement of a function, for example because CUDA C has no type for its dtype.
pub fn module(funcs: &[&PrimFunc], target: &Target) -> Result<CudaSource, Unsupported> {
    let mut module = Module::default();
    let mut functions = Vec::with_capacity(funcs.len());
    for func in funcs {
        functions.push(module.add(&schedule(func, target)?, Named::from(*func)));
    }
    let head = module.head();
    for kernel in functions.iter_mut().flat_map(|function: &mut CudaFunction| &mut function.kernels) {
        kernel.text = kernel.text.start + head.len()..kernel.text.end + head.len();
    }
    let text = format!("{head}{}\n", module.kernels.trim_end());
    let head_bytes = head.len();
    Ok(CudaSource { text, head_bytes, functions, sites: module.sites, choices: module.choices })
}

/// Whether one schedule takes all statements of a function and keeps the function's temporaries out of global memory,
/// as attention does. Scratch buffers of the schedule may be in global memory. The schedule may have several kernels:
/// for example, split-KV attention has one for the slices of the keys, and one that combines their results.
pub fn can_schedule_as_one_kernel(func: &PrimFunc, target: &Target) -> bool {
    let func = begun(func);
    let parts = statements(&func);
    let func = parts.declarations(&func);
    let mut function = Function::new(&func, target, parts.temporaries.clone());
    let taken = function.schedule(&parts, 0);
    let passed = function.passed();
    taken == Ok(parts.statements.len())
        && (0..parts.temporaries.len()).all(|at| !passed.contains(&Argument::Temporary(at)))
}

/// The printed kernels of a function, without the parts that depend on the source to which they are added: for example
/// names, and numbers of checks.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The description of the function; its kernels have no names yet.
    function: CudaFunction,
    texts: Vec<KernelText>,
    /// The scheduling remarks, each with the range of its kernels.
    choices: Vec<(Choice, Range<usize>)>,
    helpers: Vec<Cow<'static, str>>,
    /// The checks, numbered as if the function were the first of a source.
    sites: Vec<CheckSite>,
}

/// Schedules a function by the target's rules and prints its kernels. [`module`] and [`listing`] join the results.
///
/// # Errors
/// As [`module`].
pub fn schedule(func: &PrimFunc, target: &Target) -> Result<Scheduled, Unsupported> {
    let unsupported = |reason| Unsupported { function: func.name, reason };
    let func = begun(func);
    let parts = statements(&func);
    let func = parts.declarations(&func);
    let mut function = Function::new(&func, target, parts.temporaries.clone());
    let mut at = 0;
    while at < parts.statements.len() {
        at += function.schedule(&parts, at).map_err(unsupported)?.max(1);
    }
    let passed = function.passed();
    let Function { mut result, temporaries, texts, choices, helpers, sites, .. } = function;
    for at in (0..temporaries.len()).filter(|at| !passed.contains(&Argument::Temporary(*at))) {
        result.temporaries[at].bytes = Expr::int(0);
    }
    Ok(Scheduled { function: result, texts, choices, helpers, sites: sites.list })
}

/// Prints functions for people: for each function separately, its part of the text of [`module`], or the error if it
/// cannot be printed.
pub fn listing(funcs: &[&PrimFunc], target: &Target) -> Listing {
    let scheduled: Vec<_> = funcs.iter().map(|func| schedule(func, target)).collect();
    let named = funcs.iter().map(|func| Named::from(*func));
    joined(&scheduled.iter().zip(named).collect::<Vec<_>>())
}

/// Prints as [`listing`] does, from functions that are already scheduled.
pub fn joined(funcs: &[(&Result<Scheduled, Unsupported>, Named<'_>)]) -> Listing {
    let mut module = Module::default();
    let mut functions = Vec::with_capacity(funcs.len());
    let mut kernels = Vec::with_capacity(funcs.len());
    for (scheduled, named) in funcs {
        match scheduled {
            Ok(scheduled) => {
                kernels.push(module.add(scheduled, *named).kernels);
                functions.push(Ok(std::mem::take(&mut module.kernels)));
            }
            Err(Unsupported { reason, .. }) => {
                module.functions += 1;
                kernels.push(Vec::new());
                functions.push(Err(Unsupported { function: named.name, reason: reason.clone() }));
            }
        }
    }
    Listing { head: module.head(), functions, kernels, choices: module.choices }
}

/// The kernels of several functions, joined to one source.
#[derive(Default)]
struct Module {
    functions: usize,
    kernel_names: Names,
    helpers: Vec<Cow<'static, str>>,
    sites: Vec<CheckSite>,
    kernels: String,
    choices: Vec<Choice>,
}

impl Module {
    /// Returns the text before the kernels: a comment, and the helpers that the kernels use.
    fn head(&self) -> String {
        let helpers = prelude::text(&self.helpers);
        let space = if helpers.is_empty() { "" } else { "\n" };
        format!("// CUDA C by rx. It needs no header.\n\n{helpers}{space}")
    }

    /// Adds the kernels of a function, with names and check numbers that are unique in the source.
    fn add(&mut self, scheduled: &Scheduled, named: Named<'_>) -> CudaFunction {
        let number = self.functions;
        self.functions += 1;
        for helper in &scheduled.helpers {
            if !self.helpers.contains(helper) {
                self.helpers.push(helper.clone());
            }
        }
        let first_check = self.sites.len();
        self.sites.extend(scheduled.sites.iter().map(|site| CheckSite { function: number, ..*site }));
        let wanted = format!("{}_kernel", identifier(&named.name));
        let mut function = scheduled.function.clone();
        (function.name, function.origins) = (named.name, named.origins.to_vec());
        for (kernel, text) in function.kernels.iter_mut().zip(&scheduled.texts) {
            kernel.name = self.kernel_names.fresh(&wanted);
            let start = self.kernels.len();
            text.named(&kernel.name, named, first_check, &mut self.kernels);
            kernel.text = start..self.kernels.len();
            self.kernels.push('\n');
        }
        for (choice, kernels) in &scheduled.choices {
            let kernels = function.kernels.get(kernels.clone()).unwrap_or_default();
            let kernels = kernels.iter().map(|kernel| kernel.name.clone()).collect();
            self.choices.push(Choice { function: number, kernels, ..choice.clone() });
        }
        function
    }
}

/// A function that is being scheduled and printed.
struct Function<'f> {
    func: &'f PrimFunc,
    target: &'f Target,
    /// The buffers that can pass values between its statements.
    temporaries: Vec<BufferId>,
    result: CudaFunction,
    texts: Vec<KernelText>,
    choices: Vec<(Choice, Range<usize>)>,
    helpers: Vec<Cow<'static, str>>,
    sites: Sites,
}

impl<'f> Function<'f> {
    /// Creates a function without kernels.
    fn new(func: &'f PrimFunc, target: &'f Target, temporaries: Vec<BufferId>) -> Function<'f> {
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
        let (texts, choices) = (Vec::new(), Vec::new());
        Function { func, target, temporaries, result, texts, choices, helpers: Vec::new(), sites: Sites::default() }
    }

    /// Returns the arguments of its kernels, and the buffers of their tensor maps.
    fn passed(&self) -> FxHashSet<Argument> {
        self.result.kernels.iter().flat_map(|kernel| kernel.buffers()).collect()
    }

    /// Schedules the statements from index `at` on by the first rule that takes them and can print them. Returns the
    /// number of statements that it took. An error is the reason of the last rule.
    fn schedule(&mut self, parts: &Statements, at: usize) -> Result<usize, String> {
        let left = parts.together(at);
        let Some(first) = left.first() else { return Ok(0) };
        let task = Task::new(self.func, left, (parts, at), self.target);
        let mut declined = Vec::new();
        for rule in self.target.rules.rules() {
            let why = match rule.take(&task) {
                Ok(schedule) => match self.print(rule.name, &schedule, &first.host_loops) {
                    Ok(kernels) => {
                        let taken = schedule.taken;
                        let is_guarded = schedule.kernels.iter().any(|kernel| kernel.frame().guard.is_some());
                        let note = noted(task.func, (&schedule.note, &first.host_loops), is_guarded);
                        let blocks = left.iter().take(taken).flat_map(|one| blocks_of(&one.stmt)).collect();
                        let (function, names, declined) = (0, Vec::new(), declined.into());
                        let choice = Choice { function, blocks, rule: rule.name, kernels: names, note, declined };
                        self.choices.push((choice, kernels));
                        return Ok(taken);
                    }
                    Err(why) => why,
                },
                Err(Declined(why)) => why,
            };
            declined.push((rule.name, why));
        }
        Err(declined.pop().map_or_else(|| "requires a schedule rule; found none".to_owned(), |(_, why)| why))
    }

    /// Prints the kernels of a schedule and returns their range. On an error the function keeps nothing of it but the
    /// numbers of checks.
    fn print(
        &mut self,
        rule: &'static str,
        schedule: &Schedule,
        host_loops: &[HostLoop],
    ) -> Result<Range<usize>, String> {
        let (helpers, kernels) = (self.helpers.len(), self.texts.len());
        let temporaries = self.result.temporaries.len();
        let scratch = schedule.scratch.iter();
        let scratch = scratch.map(|one| Temporary { name: one.name.to_owned(), bytes: one.bytes.clone() });
        self.result.temporaries.extend(scratch);
        let printed = self.kernels_of((rule, schedule, host_loops), temporaries);
        if printed.is_err() {
            self.helpers.truncate(helpers);
            self.texts.truncate(kernels);
            self.result.kernels.truncate(kernels);
            self.result.temporaries.truncate(temporaries);
        }
        printed.map(|()| kernels..self.texts.len())
    }

    fn kernels_of(
        &mut self,
        (rule, schedule, host_loops): (&'static str, &Schedule, &[HostLoop]),
        first_scratch: usize,
    ) -> Result<(), String> {
        for body in &schedule.kernels {
            let frame = body.frame();
            let func = frame.func.unwrap_or(self.func);
            let mut kernel = Kernel::new(func, &self.temporaries, &mut self.helpers, &mut self.sites);
            kernel.first_of_schedule = first_scratch;
            kernel.first_scratch = self.result.temporaries.len();
            let note = noted(func, (&schedule.note, host_loops), frame.guard.is_some());
            let (info, text) = kernel.print((rule, &note), frame, &**body)?;
            self.result.temporaries.extend(kernel.scratch);
            self.result.kernels.push(KernelInfo { host_loops: host_loops.to_vec(), ..info });
            self.texts.push(text);
        }
        Ok(())
    }
}

/// Returns the rule's remark, extended by the host loops and the guard of the launches.
fn noted(func: &PrimFunc, (note, host_loops): (&str, &[HostLoop]), is_guarded: bool) -> String {
    let note = Some(note.to_owned()).filter(|note| !note.is_empty());
    let each = host_loops
        .iter()
        .map(|host_loop| format!("launched in each iteration of the host loop `{}`", func.var(host_loop.var).name));
    let guarded = is_guarded.then(|| "launched if a condition of the host holds".to_owned());
    note.into_iter().chain(each).chain(guarded).collect::<Vec<_>>().join("; ")
}

/// Returns the names of the TIR blocks in a statement, without duplicates.
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

/// Returns the size of a buffer in bytes, as an `int64`.
pub(super) fn bytes_of(buffer: &Buffer) -> Expr {
    buffer.shape.iter().fold(Expr::int(buffer.dtype.bytes().cast_signed()), |bytes, extent| {
        bytes * extent.clone().cast(DType::INT64).max(Expr::int(0))
    })
}
