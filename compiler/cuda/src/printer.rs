//! Functions as CUDA C.

mod arithmetic;
mod expr;
mod intrinsic;
mod stmt;
mod types;

use crate::accumulate::begun;
use crate::injective::Loop;
use crate::names::{Names, identifier};
use crate::nests::{Nest, Unsupported, nests};
use crate::prelude;
use crate::source::{Argument, BLOCK_SIZE, CudaFunction, CudaSource, KernelInfo, Listing, Sites, Temporary};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::DType;
use rx_tir::{Buffer, BufferId, Expr, Param, PrimFunc, Site, Stmt, VarId};
use std::fmt::Write as _;

/// Prints functions into one text, a kernel per top-level loop nest.
///
/// Indices are printed as they are: what is not proved in range must stand in an [`Expr::Checked`]. Strides of buffers
/// are ignored, as they are by the interpreter: every buffer is dense and row-major.
///
/// # Errors
/// Where a function has a dtype, an intrinsic or a form that the text has no words for.
pub fn module(funcs: &[&PrimFunc]) -> Result<CudaSource, Unsupported> {
    let mut module = Module::default();
    let mut functions = Vec::with_capacity(funcs.len());
    for (number, func) in funcs.iter().enumerate() {
        let unsupported = |what| Unsupported { function: func.name, what };
        functions.push(module.function(number, func).map_err(unsupported)?);
    }
    let text = format!("{}{}\n", module.head(), module.kernels.trim_end());
    Ok(CudaSource { text, functions, sites: module.sites.list })
}

/// Functions as text to be read: what [`module`] prints, function by function, and without those it has no words for.
pub fn listing(funcs: &[&PrimFunc]) -> Listing {
    let mut module = Module::default();
    let mut functions = Vec::with_capacity(funcs.len());
    for (number, func) in funcs.iter().enumerate() {
        let helpers = module.helpers.len();
        let printed = module.function(number, func);
        let text = std::mem::take(&mut module.kernels);
        functions.push(match printed {
            Ok(_) => Ok(text),
            Err(what) => {
                module.helpers.truncate(helpers);
                Err(Unsupported { function: func.name, what })
            }
        });
    }
    Listing { head: module.head(), functions }
}

/// What all kernels of a text share.
#[derive(Default)]
struct Module {
    kernel_names: Names,
    helpers: Vec<&'static str>,
    sites: Sites,
    kernels: String,
}

impl Module {
    /// What stands before the kernels: the first line, and the helpers they use.
    fn head(&self) -> String {
        let helpers = prelude::text(&self.helpers);
        let space = if helpers.is_empty() { "" } else { "\n" };
        format!("// CUDA C by rx: one thread per element. It needs no header.\n\n{helpers}{space}")
    }

    fn function(&mut self, number: usize, func: &PrimFunc) -> Result<CudaFunction, String> {
        let func = &begun(func);
        let parts = nests(func);
        let mut result = CudaFunction {
            name: func.name,
            params: func.params.clone(),
            kernels: Vec::with_capacity(parts.nests.len()),
            temporaries: Vec::new(),
            vars: func.vars.iter().map(|var| var.dtype).collect(),
            buffers: func.buffer_params().map(|id| (func.buffer(id).shape.clone(), func.buffer(id).dtype)).collect(),
        };
        for id in &parts.temporaries {
            let buffer = func.buffer(*id);
            result.temporaries.push(Temporary { name: buffer.name.to_string(), bytes: bytes_of(buffer) });
        }
        for (at, nest) in parts.nests.iter().enumerate() {
            let suffix = if parts.nests.len() > 1 { format!("_{at}") } else { String::new() };
            let name = self.kernel_names.fresh(&format!("{}_kernel{suffix}", identifier(&func.name)));
            let mut kernel = Kernel::new(func, number, &parts.temporaries, self);
            let info = kernel.print(name, nest)?;
            let Kernel { text, scratch, .. } = kernel;
            self.kernels.push_str(&text);
            self.kernels.push('\n');
            result.temporaries.extend(scratch);
            result.kernels.push(info);
        }
        Ok(result)
    }
}

/// Bytes of a buffer, an `int64`.
fn bytes_of(buffer: &Buffer) -> Expr {
    buffer.shape.iter().fold(Expr::int(buffer.dtype.bytes().cast_signed()), |bytes, extent| {
        bytes * extent.clone().cast(DType::INT64).max(Expr::int(0))
    })
}

/// A kernel on its way to text.
struct Kernel<'m> {
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
    temporaries: FxHashMap<BufferId, usize>,
    buffer_params: FxHashMap<BufferId, usize>,
    written: FxHashSet<BufferId>,
    /// Extents of buffers the host passes: sizes, which are never negative.
    symbols: FxHashSet<VarId>,
    /// Variables in scope that are never negative.
    natural: FxHashSet<VarId>,
    /// Variables whose values are data, so that arithmetic on them may wrap.
    data: FxHashSet<VarId>,
    /// The element that is held in a variable, and the variable.
    accumulator: Option<(BufferId, String)>,
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
struct BufferText {
    name: String,
    shape: Vec<Expr>,
}

impl<'m> Kernel<'m> {
    fn new(func: &'m PrimFunc, number: usize, temporaries: &[BufferId], module: &'m mut Module) -> Kernel<'m> {
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
            temporaries: temporaries.iter().enumerate().map(|(at, id)| (*id, at)).collect(),
            buffer_params: func.buffer_params().enumerate().map(|(at, id)| (id, at)).collect(),
            written: FxHashSet::default(),
            symbols: symbols.collect(),
            natural: FxHashSet::default(),
            data: FxHashSet::default(),
            accumulator: None,
            site: Site { origin: None, operator: func.name },
            uses_error: false,
            threads: None,
            scratch: Vec::new(),
            first_scratch: temporaries.len(),
            indent: 1,
            text: String::new(),
        }
    }

    /// Prints a nest, its comment and frame; the host's part is the result.
    fn print(&mut self, name: String, nest: &Nest) -> Result<KernelInfo, String> {
        self.declare_written(&nest.body);
        self.natural.extend(self.symbols.clone());
        let threads = (!nest.threads.is_empty()).then(|| {
            nest.threads
                .iter()
                .fold(Expr::int(1), |product, one| product * one.extent.clone().cast(DType::INT64).max(Expr::int(0)))
        });
        self.threads = threads.clone();
        self.pass_buffers_in_order(nest);
        if !nest.threads.is_empty() {
            self.thread_index(&nest.threads)?;
        }
        self.stmt(&nest.body)?;
        let body = std::mem::take(&mut self.text);
        if self.uses_error {
            self.parameters.push(("unsigned long long* rx_error".to_owned(), Argument::Error));
        }
        let comment = self.comment(nest);
        let bound = if threads.is_some() { BLOCK_SIZE } else { 1 };
        let parameters: Vec<&str> = self.parameters.iter().map(|(text, _)| text.as_str()).collect();
        let head = format!("extern \"C\" __global__ void __launch_bounds__({bound}) {name}(");
        let one_line = format!("{head}{}) {{", parameters.join(", "));
        let head = match one_line.len() <= 120 {
            true => one_line,
            false => format!("{head}\n    {}) {{", parameters.join(",\n    ")),
        };
        self.text = format!("{comment}{head}\n{body}}}\n");
        let arguments = self.parameters.iter().map(|(_, argument)| *argument).collect();
        Ok(KernelInfo { name, threads, arguments })
    }

    /// Buffers become parameters in the order of the function's, temporaries after; so the text reads like a call.
    fn pass_buffers_in_order(&mut self, nest: &Nest) {
        let mut used = FxHashSet::default();
        nest.body.walk(&mut |stmt| {
            if let Stmt::Store { buffer, .. } = stmt {
                used.insert(*buffer);
            }
            for expr in stmt.expressions() {
                expr.walk(&mut |part| {
                    if let Expr::Load { buffer, .. } = part {
                        used.insert(*buffer);
                    }
                });
            }
        });
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

    /// A buffer of the host as a parameter of the kernel.
    fn global_buffer(&mut self, id: BufferId) -> Option<BufferText> {
        if let Some(known) = self.buffers.get(&id) {
            return Some(known.clone());
        }
        let argument = match (self.buffer_params.get(&id), self.temporaries.get(&id)) {
            (Some(at), _) => Argument::Buffer(*at),
            (_, Some(at)) => Argument::Temporary(*at),
            _ => return None,
        };
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
    fn thread_index(&mut self, loops: &[Loop]) -> Result<(), String> {
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

    /// Where the nest comes from.
    fn comment(&self, nest: &Nest) -> String {
        let mut sources: Vec<String> = Vec::new();
        let mut blocks: Vec<String> = Vec::new();
        nest.body.walk(&mut |stmt| match stmt {
            Stmt::Block(block) if !blocks.contains(&block.name.to_string()) => blocks.push(block.name.to_string()),
            Stmt::Store { site, .. } => {
                let source = match site.origin {
                    Some(origin) => format!("{} ({}, statement {})", site.operator, origin.item, origin.statement),
                    None => site.operator.to_string(),
                };
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
            _ => {}
        });
        let one_line = |parts: &[String]| parts.join(", ").replace(['\n', '\r', '\\'], " ");
        let mut text = format!("// {}", one_line(&[self.func.name.to_string()]));
        if !blocks.is_empty() {
            let _ = write!(text, ": {}", one_line(&blocks));
        }
        if nest.threads.is_empty() {
            text.push_str(", in one thread");
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
        text
    }

    /// Names a variable that is bound here.
    fn bind(&mut self, var: VarId) -> String {
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

    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn need(&mut self, helper: &'static str) {
        if !self.helpers.contains(&helper) {
            self.helpers.push(helper);
        }
    }

    fn need_storage(&mut self, dtype: DType) {
        if let Some(helper) = types::helper(dtype) {
            self.need(helper);
        }
    }

    fn ctype(&self, dtype: DType) -> Result<&'static str, String> {
        types::value(dtype).ok_or_else(|| format!("a value of dtype {dtype}"))
    }
}

#[cfg(test)]
mod tests;
