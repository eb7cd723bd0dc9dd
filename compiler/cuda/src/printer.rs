//! Functions as CUDA C.

mod arithmetic;
pub(crate) mod expr;
mod intrinsic;
mod stmt;
pub(crate) mod types;

use crate::accumulate::begun;
use crate::injective::Loop;
use crate::names::{Names, identifier};
use crate::prelude;
use crate::rules::{Declined, KernelBody, Schedule, Target, Task, buffers_of};
use crate::source::{Argument, Choice, CudaFunction, CudaSource, KernelInfo, Listing, Sites, Temporary, TensorMap};
use crate::statements::{Unsupported, statements};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::DType;
use rx_tir::{Buffer, BufferId, Expr, Param, PrimFunc, Site, Stmt, VarId};
use std::fmt::Write as _;

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
    let func = &begun(func);
    let parts = statements(func);
    let mut module = Module::new(target);
    let mut function = Function::new(func, 0, parts.temporaries.clone());
    let taken = module.schedule(&mut function, &parts.statements);
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
        let func = &begun(func);
        let parts = statements(func);
        let mut function = Function::new(func, number, parts.temporaries);
        let mut left = parts.statements.as_slice();
        while !left.is_empty() {
            let taken = self.schedule(&mut function, left)?;
            left = left.get(taken.max(1)..).unwrap_or_default();
        }
        let passed = function.passed();
        let Function { mut result, temporaries, .. } = function;
        for at in (0..temporaries.len()).filter(|at| !passed.contains(&Argument::Temporary(*at))) {
            result.temporaries[at].bytes = Expr::int(0);
        }
        Ok(result)
    }

    /// Has the first rule that takes the statements' front print it; gives how many statements that were.
    fn schedule(
        &mut self,
        function: &mut Function<'_>,
        left: &[crate::statements::Statement],
    ) -> Result<usize, String> {
        let (func, target) = (function.func, self.target);
        let temporaries = function.temporaries.clone();
        let task = Task { func, statements: left, temporaries: &temporaries, target };
        let mut declined = Vec::new();
        for rule in target.rules.rules() {
            let why = match rule.take(&task) {
                Ok(schedule) => match self.print(function, rule.name, &schedule) {
                    Ok(kernels) => {
                        let taken = schedule.taken;
                        let blocks = left.iter().take(taken).flat_map(|one| blocks_of(&one.stmt)).collect();
                        self.choices.push(Choice {
                            function: function.number,
                            blocks,
                            rule: rule.name,
                            kernels,
                            note: schedule.note,
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
    ) -> Result<Vec<String>, String> {
        let before = (self.helpers.len(), self.kernels.len());
        let (kernels, temporaries) = (function.result.kernels.len(), function.result.temporaries.len());
        let scratch = schedule.scratch.iter();
        let scratch = scratch.map(|one| Temporary { name: one.name.to_owned(), bytes: one.bytes.clone() });
        function.result.temporaries.extend(scratch);
        let printed = self.kernels_of(function, rule, schedule, temporaries);
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
        rule: &'static str,
        schedule: &Schedule,
        first_scratch: usize,
    ) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for body in &schedule.kernels {
            let func = body.func().unwrap_or(function.func);
            let wanted = format!("{}_kernel", identifier(&function.func.name));
            let name = self.kernel_names.fresh(&wanted);
            let mut kernel = Kernel::new(func, function.number, &function.temporaries, self);
            kernel.first_of_schedule = first_scratch;
            kernel.first_scratch = function.result.temporaries.len();
            kernel.is_cooperative = body.is_cooperative();
            let info = kernel.print(&name, rule, &schedule.note, &**body);
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
            function.result.kernels.push(KernelInfo { text, ..info });
            names.push(name);
        }
        Ok(names)
    }
}

/// The blocks in a statement by their names, each once.
fn blocks_of(stmt: &Stmt) -> Vec<String> {
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
fn bytes_of(buffer: &Buffer) -> Expr {
    buffer.shape.iter().fold(Expr::int(buffer.dtype.bytes().cast_signed()), |bytes, extent| {
        bytes * extent.clone().cast(DType::INT64).max(Expr::int(0))
    })
}

/// A kernel on its way to text. Rules print what they made through it: lines ([`Kernel::line`]) around expressions and
/// statements of the function ([`Kernel::operand`], [`Kernel::stmt`]), whose variables they name ([`Kernel::name_var`]).
pub(crate) struct Kernel<'m> {
    func: &'m PrimFunc,
    /// The function's number, for its checks.
    number: usize,
    helpers: &'m mut Vec<&'static str>,
    sites: &'m mut Sites,
    names: Names,
    vars: FxHashMap<VarId, String>,
    buffers: FxHashMap<BufferId, BufferText>,
    /// Parameters in the order they were first used.
    parameters: Vec<(String, Argument)>,
    /// Parameters behind those: tensors whose tiles are copied by themselves.
    maps: Vec<(String, TensorMap)>,
    temporaries: FxHashMap<BufferId, usize>,
    buffer_params: FxHashMap<BufferId, usize>,
    written: FxHashSet<BufferId>,
    /// Extents of buffers the host passes: sizes, which are never negative.
    symbols: FxHashSet<VarId>,
    /// Variables in scope that are never negative.
    natural: FxHashSet<VarId>,
    /// Variables whose values are data, so that arithmetic on them may wrap.
    data: FxHashSet<VarId>,
    /// Buffers of which the one element that is asked for is held in a variable, or is another value, and that.
    held: FxHashMap<BufferId, String>,
    /// Whether a failed check must not end the thread: see [`KernelBody::is_cooperative`].
    is_cooperative: bool,
    /// The number of the first scratch buffer of the schedule it belongs to.
    first_of_schedule: usize,
    site: Site,
    uses_error: bool,
    /// Threads, for memory that each needs of its own.
    threads: Option<Expr>,
    scratch: Vec<Temporary>,
    first_scratch: usize,
    indent: usize,
    text: String,
}

/// How a buffer is named.
#[derive(Clone)]
pub(crate) struct BufferText {
    pub(crate) name: String,
    pub(crate) shape: Vec<Expr>,
}

impl<'m> Kernel<'m> {
    fn new(func: &'m PrimFunc, number: usize, temporaries: &[BufferId], module: &'m mut Module<'_>) -> Kernel<'m> {
        let mut names = Names::default();
        // The words the frame of every kernel uses.
        names.fresh("thread");
        let symbols = func.buffer_params().flat_map(|id| &func.buffer(id).shape).filter_map(|extent| match extent {
            Expr::Var { var, .. } => Some(*var),
            _ => None,
        });
        Kernel {
            func,
            number,
            helpers: &mut module.helpers,
            sites: &mut module.sites,
            names,
            vars: FxHashMap::default(),
            buffers: FxHashMap::default(),
            parameters: Vec::new(),
            maps: Vec::new(),
            temporaries: temporaries.iter().enumerate().map(|(at, id)| (*id, at)).collect(),
            buffer_params: func.buffer_params().enumerate().map(|(at, id)| (id, at)).collect(),
            written: FxHashSet::default(),
            symbols: symbols.collect(),
            natural: FxHashSet::default(),
            data: FxHashSet::default(),
            held: FxHashMap::default(),
            is_cooperative: false,
            first_of_schedule: temporaries.len(),
            site: Site { origin: None, operator: func.name },
            uses_error: false,
            threads: None,
            scratch: Vec::new(),
            first_scratch: temporaries.len(),
            indent: 1,
            text: String::new(),
        }
    }

    /// Prints a kernel, its comment and frame; the host's part is the result.
    fn print(&mut self, name: &str, rule: &str, note: &str, body: &dyn KernelBody) -> Result<KernelInfo, String> {
        let statements = body.statements();
        statements.iter().for_each(|stmt| self.declare_written(stmt));
        self.natural.extend(self.symbols.clone());
        for own in body.own_names() {
            self.names.fresh(own);
        }
        self.pass_buffers_in_order(&statements, &body.kept());
        body.print(self)?;
        let inner = std::mem::take(&mut self.text);
        if self.uses_error {
            self.parameters.push(("unsigned long long* rx_error".to_owned(), Argument::Error));
        }
        let comment = self.comment(&statements, rule, note);
        let shape = body.shape();
        let maps = self.maps.iter().map(|(text, _)| text.as_str());
        let parameters: Vec<&str> = self.parameters.iter().map(|(text, _)| text.as_str()).chain(maps).collect();
        let bound = match body.least_blocks() {
            None => shape.block_threads().to_string(),
            Some(blocks) => format!("{}, {blocks}", shape.block_threads()),
        };
        let head = format!("extern \"C\" __global__ void __launch_bounds__({bound}) {name}(");
        let one_line = format!("{head}{}) {{", parameters.join(", "));
        let head = match one_line.len() <= 120 {
            true => one_line,
            false => format!("{head}\n    {}) {{", parameters.join(",\n    ")),
        };
        self.text = format!("{comment}{head}\n{inner}}}\n");
        let arguments = self.parameters.iter().map(|(_, argument)| *argument).collect();
        let maps = self.maps.drain(..).map(|(_, map)| map).collect();
        Ok(KernelInfo { name: name.to_owned(), text: 0..0, shape, arguments, maps })
    }

    /// Says how many threads of the plain rule there are: each has a part of its own of buffers too large for it.
    pub(crate) fn has_threads(&mut self, threads: Option<Expr>) {
        self.threads = threads;
    }

    /// Buffers become parameters in the order of the function's, temporaries after; so the text reads like a call.
    fn pass_buffers_in_order(&mut self, statements: &[&Stmt], kept: &[BufferId]) {
        let mut used: FxHashSet<BufferId> = statements.iter().flat_map(|stmt| buffers_of(stmt)).collect();
        used.retain(|id| !kept.contains(id));
        let params: Vec<BufferId> = self.func.buffer_params().collect();
        let mut temporaries: Vec<(usize, BufferId)> = self.temporaries.iter().map(|(id, at)| (*at, *id)).collect();
        temporaries.sort_unstable();
        for id in params.into_iter().chain(temporaries.into_iter().map(|(_, id)| id)).filter(|id| used.contains(id)) {
            self.global_buffer(id);
        }
    }

    fn declare_written(&mut self, body: &Stmt) {
        body.walk(&mut |stmt| {
            if let Stmt::Store { buffer, .. } = stmt {
                self.written.insert(*buffer);
            }
        });
    }

    /// A buffer of the host, as what is passed.
    pub(crate) fn passed(&self, id: BufferId) -> Option<Argument> {
        match (self.buffer_params.get(&id), self.temporaries.get(&id)) {
            (Some(at), _) => Some(Argument::Buffer(*at)),
            (_, Some(at)) => Some(Argument::Temporary(*at)),
            _ => None,
        }
    }

    /// A tensor whose tiles are copied by themselves as a parameter of the kernel: its name.
    pub(crate) fn tensor_map(&mut self, name: &str, map: TensorMap) -> String {
        let name = self.names.fresh(name);
        self.maps.push((format!("const __grid_constant__ rx_tensor_map {name}"), map));
        name
    }

    /// A variable of the function.
    pub(crate) fn var_expr(&self, var: VarId) -> Expr {
        self.func.var_expr(var)
    }

    /// A buffer of the host as a parameter of the kernel.
    pub(crate) fn global_buffer(&mut self, id: BufferId) -> Option<BufferText> {
        if let Some(known) = self.buffers.get(&id) {
            return Some(known.clone());
        }
        let argument = self.passed(id)?;
        let buffer = self.func.buffer(id);
        let name = self.names.fresh(&buffer.name);
        let constant = if self.written.contains(&id) { "" } else { "const " };
        let storage = types::storage(buffer.dtype)?;
        self.parameters.push((format!("{constant}{storage}* {name}"), argument));
        self.need_storage(buffer.dtype);
        let text = BufferText { name, shape: buffer.shape.clone() };
        self.buffers.insert(id, text.clone());
        Some(text)
    }

    /// The thread's number, and the values it stands for of each loop.
    pub(crate) fn thread_index(&mut self, loops: &[Loop]) -> Result<(), String> {
        self.line("const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;");
        let extents: Vec<Expr> = loops.iter().map(|one| one.extent.clone().cast(DType::INT64)).collect();
        // The constants are one factor, behind the others.
        let product = |extents: &[Expr]| {
            let (constants, others): (Vec<_>, Vec<_>) = extents.iter().cloned().partition(|one| one.as_int().is_some());
            others.into_iter().chain([constants.into_iter().fold(Expr::int(1), |a, b| a * b)]).reduce(|a, b| a * b)
        };
        let product = |extents: &[Expr]| product(extents).unwrap_or(Expr::int(1));
        let total = self.operand(&product(&extents), expr::RELATION + 1)?;
        self.line(&format!("if (thread >= {total}) return;"));
        for (at, one) in loops.iter().enumerate() {
            let below = product(&extents[at + 1..]);
            let mut value = "thread".to_owned();
            if below.as_int() != Some(1) {
                value = format!("{value} / {}", self.operand(&below, expr::PRODUCT + 1)?);
            }
            if at > 0 {
                value = format!("{value} % {}", self.operand(&extents[at], expr::PRODUCT + 1)?);
            }
            let dtype = self.func.var(one.var).dtype;
            if dtype != DType::INT64 {
                let plain = value == "thread";
                value = if plain {
                    format!("({})thread", self.ctype(dtype)?)
                } else {
                    format!("({})({value})", self.ctype(dtype)?)
                };
            }
            if one.start.as_int() != Some(0) {
                let start = self.operand(&one.start, expr::SUM)?;
                value = format!("{start} + {value}");
            }
            if self.is_natural(&one.start) {
                self.natural.insert(one.var);
            }
            let ctype = self.ctype(dtype)?;
            let name = self.bind(one.var);
            self.line(&format!("const {ctype} {name} = {value};"));
        }
        Ok(())
    }

    /// Where the statements come from, and how they are scheduled.
    fn comment(&self, statements: &[&Stmt], rule: &str, note: &str) -> String {
        let mut sources: Vec<String> = Vec::new();
        let mut blocks: Vec<String> = Vec::new();
        for stmt in statements {
            for block in blocks_of(stmt) {
                if !blocks.contains(&block) {
                    blocks.push(block);
                }
            }
            stmt.walk(&mut |part| {
                let Stmt::Store { site, .. } = part else { return };
                let source = match site.origin {
                    Some(origin) => format!("{} ({}, statement {})", site.operator, origin.item, origin.statement),
                    None => site.operator.to_string(),
                };
                if !sources.contains(&source) {
                    sources.push(source);
                }
            });
        }
        let one_line = |parts: &[String]| parts.join(", ").replace(['\n', '\r', '\\'], " ");
        let mut text = format!("// {}", one_line(&[self.func.name.to_string()]));
        if !blocks.is_empty() {
            let _ = write!(text, ": {}", one_line(&blocks));
        }
        text.push('\n');
        if !sources.is_empty() {
            let _ = writeln!(text, "// from {}", one_line(&sources));
        }
        let origins: Vec<String> =
            self.func.origins.iter().map(|origin| format!("{} statement {}", origin.item, origin.statement)).collect();
        if !origins.is_empty() {
            let _ = writeln!(text, "// for {}", one_line(&origins));
        }
        let used: FxHashSet<BufferId> = statements.iter().flat_map(|stmt| buffers_of(stmt)).collect();
        for (at, buffer) in self.func.buffers.iter().enumerate() {
            if let Some(note) = buffer.order_note().filter(|_| used.contains(&BufferId(at as u32))) {
                let _ = writeln!(text, "// {}", one_line(&[format!("{} {note}", buffer.name)]));
            }
        }
        let note = [note.to_owned()];
        let _ = match note[0].is_empty() {
            true => writeln!(text, "// schedule {rule}"),
            false => writeln!(text, "// schedule {rule}: {}", one_line(&note)),
        };
        text
    }

    /// The name of a new variable of the text.
    pub(crate) fn fresh_name(&mut self, wanted: &str) -> String {
        self.names.fresh(wanted)
    }

    /// From here on the variable is written as this text, which binds as tightly as a name. `is_natural`: it is never
    /// negative.
    pub(crate) fn name_var(&mut self, var: VarId, text: &str, is_natural: bool) {
        self.vars.insert(var, text.to_owned());
        match is_natural {
            true => self.natural.insert(var),
            false => self.natural.remove(&var),
        };
    }

    /// From here on the variable, which holds data, is written as this text, which binds as tightly as a name.
    pub(crate) fn name_value(&mut self, var: VarId, text: &str) {
        self.name_var(var, text, false);
        self.data.insert(var);
    }

    /// From here on loads of the buffer are this text, a value of its dtype, whatever their indices are.
    pub(crate) fn hold(&mut self, buffer: BufferId, text: &str) {
        self.held.insert(buffer, text.to_owned());
    }

    /// From here on the buffer lies where this pointer or array says, dense and of this shape. Elements are in their
    /// storage type.
    pub(crate) fn name_buffer(&mut self, buffer: BufferId, name: &str, shape: &[Expr]) {
        self.buffers.insert(buffer, BufferText { name: name.to_owned(), shape: shape.to_vec() });
    }

    /// The name of the schedule's scratch buffer of this number, as a pointer of this type.
    pub(crate) fn scratch_buffer(&mut self, number: usize, name: &str, ctype: &str) -> String {
        let name = self.names.fresh(name);
        self.parameters.push((format!("{ctype}* {name}"), Argument::Temporary(self.first_of_schedule + number)));
        name
    }

    /// The dtype of a variable.
    pub(crate) fn dtype_of(&self, var: VarId) -> DType {
        self.func.var(var).dtype
    }

    /// Names a variable that is bound here.
    pub(crate) fn bind(&mut self, var: VarId) -> String {
        let name = self.names.fresh(&self.func.var(var).name);
        self.vars.insert(var, name.clone());
        name
    }

    /// The name of a variable; one that nothing in the nest binds is a scalar the host passes.
    fn var(&mut self, var: VarId) -> Result<String, String> {
        if let Some(name) = self.vars.get(&var) {
            return Ok(name.clone());
        }
        let is_passed = self.func.params.contains(&Param::Scalar(var)) || self.func.symbols.contains(&var);
        let dtype = self.func.var(var).dtype;
        if !is_passed {
            return Err(format!("the variable {} is bound nowhere", self.func.var(var).name));
        }
        let storage = types::storage(dtype).ok_or_else(|| format!("a scalar of dtype {dtype}"))?;
        self.need_storage(dtype);
        let name = self.names.fresh(&self.func.var(var).name);
        self.parameters.push((format!("{storage} {name}"), Argument::Scalar(var)));
        if !self.symbols.contains(&var) {
            self.data.insert(var);
        }
        let text = types::from_storage(dtype, &name);
        self.vars.insert(var, text.clone());
        Ok(text)
    }

    /// A line at the current indentation.
    pub(crate) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A line that goes on with the one before.
    pub(crate) fn go_on(&mut self, text: &str) {
        self.line(&format!("    {text}"));
    }

    /// A line that begins a group of lines, which are indented until [`Kernel::close`].
    pub(crate) fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    /// Lines from here on are indented until [`Kernel::close`].
    pub(crate) fn indent(&mut self) {
        self.indent += 1;
    }

    /// Lines from here on are indented less again.
    pub(crate) fn outdent(&mut self) {
        self.indent -= 1;
    }

    /// The brace that ends a group of lines.
    pub(crate) fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    /// Has a helper of [`crate::prelude`] printed.
    pub(crate) fn need(&mut self, helper: &'static str) {
        if !self.helpers.contains(&helper) {
            self.helpers.push(helper);
        }
    }

    pub(crate) fn need_storage(&mut self, dtype: DType) {
        if let Some(helper) = types::helper(dtype) {
            self.need(helper);
        }
    }

    /// The type in which values of a dtype are computed.
    pub(crate) fn ctype(&self, dtype: DType) -> Result<&'static str, String> {
        types::value(dtype).ok_or_else(|| format!("a value of dtype {dtype}"))
    }
}

#[cfg(test)]
mod tests;
