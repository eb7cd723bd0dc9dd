//! Prints kernels as CUDA C. Schedule rules describe a kernel as a [`KernelBody`], whose text is printed through
//! [`Kernel`].
//!
//! ```text
//! for i in range(n):                       const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
//!     out[i] = x[i] + T.float32(1)    →    if (thread >= n) return;
//!                                          const long long i = thread;
//!                                          out[i] = x[i] + 1.0f;
//! ```

mod arithmetic;
pub(crate) mod expr;
mod functions;
mod intrinsic;
mod naming;
mod rounding;
mod stmt;
mod text;
pub(crate) mod types;

pub use functions::{Scheduled, can_schedule_as_one_kernel, joined, listing, module, schedule};
pub use text::Named;

use crate::injective::Loop;
use crate::names::Names;
use crate::rules::{Frame, KernelBody, buffers_of};
use crate::source::{Argument, KernelInfo, Sites, Temporary, TensorMap};
use crate::work::iterations;
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::DType;
use rx_tir::{BufferId, Expr, PrimFunc, Site, Stmt, VarId};
use std::borrow::Cow;
use std::fmt::Display;
use text::{KernelText, blocks_in, sources_of};

/// A kernel that is being printed. The body of a rule's kernel prints its own lines with [`Kernel::line`], and
/// expressions and statements of the function with [`Kernel::operand`] and [`Kernel::stmt`]; [`Kernel::name_var`] names
/// the variables in them.
pub(crate) struct Kernel<'m> {
    func: &'m PrimFunc,
    helpers: &'m mut Vec<Cow<'static, str>>,
    sites: &'m mut Sites,
    names: Names,
    vars: FxHashMap<VarId, String>,
    buffers: FxHashMap<BufferId, BufferText>,
    /// The parameters before the tensor maps, with their arguments, in order.
    parameters: Vec<(String, Argument)>,
    /// The parameters that are tensor maps: of tensors whose tiles are copied by TMA.
    maps: Vec<(String, TensorMap)>,
    temporaries: FxHashMap<BufferId, usize>,
    buffer_params: FxHashMap<BufferId, usize>,
    written: FxHashSet<BufferId>,
    /// The variables that are extents of buffer parameters. They are never negative.
    symbols: FxHashSet<VarId>,
    /// The variables that are known to be nonnegative.
    natural: FxHashSet<VarId>,
    /// The variables whose values come from data (for example buffers or scalar arguments): signed arithmetic on them
    /// may overflow and must wrap.
    data: FxHashSet<VarId>,
    /// The variables whose values reach a discrete decision, and whether the expression that is being printed does: see
    /// [`rounding`].
    deciding: FxHashSet<VarId>,
    is_deciding: bool,
    /// The buffers whose loads are replaced by a text, and this text: for example the variable that holds the only
    /// element that is loaded.
    held: FxHashMap<BufferId, String>,
    /// Whether a thread must continue after a failed check: see [`Frame::is_cooperative`].
    is_cooperative: bool,
    /// The index, among the function's temporaries, of the schedule's first scratch buffer.
    first_of_schedule: usize,
    site: Site,
    uses_error: bool,
    /// The number of threads, for per-thread buffers that are too large for local memory.
    threads: Option<Expr>,
    scratch: Vec<Temporary>,
    first_scratch: usize,
    indent: usize,
    text: String,
}

/// The name of a buffer in the text, and its shape.
#[derive(Clone)]
pub(crate) struct BufferText {
    pub(crate) name: String,
    pub(crate) shape: Vec<Expr>,
}

impl<'m> Kernel<'m> {
    fn new(
        func: &'m PrimFunc,
        temporaries: &[BufferId],
        helpers: &'m mut Vec<Cow<'static, str>>,
        sites: &'m mut Sites,
    ) -> Kernel<'m> {
        let mut names = Names::default();
        // Kernels with one thread per element declare this name.
        names.fresh("thread");
        let symbols = func.buffer_params().flat_map(|id| &func.buffer(id).shape).filter_map(|extent| match extent {
            Expr::Var { var, .. } => Some(*var),
            _ => None,
        });
        Kernel {
            func,
            helpers,
            sites,
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
            deciding: FxHashSet::default(),
            is_deciding: false,
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

    /// Prints a kernel, which has no name yet. Returns the text, and the description of its launch for the host.
    fn print(
        &mut self,
        (rule, note): (&str, &str),
        frame: Frame<'_>,
        body: &dyn KernelBody,
    ) -> Result<(KernelInfo, KernelText), String> {
        let Frame { shape, guard, statements, work, kept, least_blocks, own_names, is_cooperative, .. } = frame;
        self.is_cooperative = is_cooperative;
        for stmt in &*statements {
            self.declare_written(stmt);
            rounding::add_deciding_vars(stmt, &mut self.deciding);
        }
        self.natural.extend(self.symbols.clone());
        for own in own_names {
            self.names.fresh(own);
        }
        self.pass_buffers_in_order(&statements, &kept);
        body.print(self)?;
        let inner = std::mem::take(&mut self.text);
        if self.uses_error {
            self.parameters.push(("unsigned long long* rx_error".to_owned(), Argument::Error));
        }
        let maps = self.maps.iter().map(|(text, _)| text.clone());
        let text = KernelText {
            blocks: blocks_in(&statements),
            sources: sources_of(&statements),
            notes: self.notes(&statements, rule, note),
            bound: match least_blocks {
                None => shape.block_threads().to_string(),
                Some(blocks) => format!("{}, {blocks}", shape.block_threads()),
            },
            parameters: self.parameters.iter().map(|(text, _)| text.clone()).chain(maps).collect(),
            body: inner,
        };
        let arguments = self.parameters.iter().map(|(_, argument)| *argument).collect();
        let maps = self.maps.drain(..).map(|(_, map)| map).collect();
        let work = work.unwrap_or_else(|| iterations(self.func, statements));
        let (name, host_loops, guard) = (String::new(), Vec::new(), guard.cloned());
        Ok((KernelInfo { name, text: 0..0, host_loops, guard, shape, work, arguments, maps }, text))
    }

    /// Sets the number of threads of a kernel; `None` for one thread. A per-thread buffer outside local memory is a
    /// temporary with one part for each of these threads.
    pub(crate) fn has_threads(&mut self, threads: Option<Expr>) {
        self.threads = threads;
    }

    /// Declares parameters for the buffers that the statements use, except `kept`: first for the function's parameters,
    /// in its order, then for its temporaries. So a kernel reads like a call.
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

    /// Declares the index of the thread, exits the threads beyond the last iteration, and declares the loop variables.
    /// For example, for `int64` loops of 8 and 4 iterations, after the exit:
    ///
    /// ```text
    /// const long long i = thread / 4;
    /// const long long j = thread % 4;
    /// ```
    pub(crate) fn thread_index(&mut self, loops: &[Loop]) -> Result<(), String> {
        self.line("const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;");
        let extents: Vec<Expr> = loops.iter().map(|one| one.extent.clone().cast(DType::INT64)).collect();
        // The constants are multiplied to one factor, which is last: `n * 12`, not `3 * n * 4`.
        let product = |extents: &[Expr]| {
            let (constants, others): (Vec<_>, Vec<_>) = extents.iter().cloned().partition(|one| one.as_int().is_some());
            others.into_iter().chain([constants.into_iter().fold(Expr::int(1), |a, b| a * b)]).reduce(|a, b| a * b)
        };
        let product = |extents: &[Expr]| product(extents).unwrap_or(Expr::int(1));
        let total = self.operand(&product(&extents), expr::RELATION + 1)?;
        self.line(&format!("if (thread >= {total}) return;"));
        for (at, one) in loops.iter().enumerate() {
            let below = product(&extents[at + 1..]);
            let mut value = self.delinearized("thread", &below, (at > 0).then_some(&extents[at]))?;
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

    /// Returns the text of one index of a delinearized number: `number / below % extent`. `below` is the product of the
    /// extents of the faster axes; `extent` is that of the index's axis, or `None` for the slowest axis.
    pub(crate) fn delinearized(&mut self, number: &str, below: &Expr, extent: Option<&Expr>) -> Result<String, String> {
        let mut value = number.to_owned();
        if below.as_int() != Some(1) {
            value = format!("{value} / {}", self.operand(below, expr::PRODUCT + 1)?);
        }
        if let Some(extent) = extent {
            value = format!("{value} % {}", self.operand(extent, expr::PRODUCT + 1)?);
        }
        Ok(value)
    }

    /// Returns lines for the kernel's comment: the permuted layouts of its buffers, and the schedule.
    fn notes(&self, statements: &[&Stmt], rule: &str, note: &str) -> Vec<String> {
        let used: FxHashSet<BufferId> = statements.iter().flat_map(|stmt| buffers_of(stmt)).collect();
        let buffers = self.func.buffers.iter().enumerate();
        let orders = buffers.filter_map(|(at, buffer)| {
            let note = buffer.order_note().filter(|_| used.contains(&BufferId(at as u32)))?;
            Some(format!("{} {note}", buffer.name))
        });
        let schedule = if note.is_empty() { format!("schedule {rule}") } else { format!("schedule {rule}: {note}") };
        orders.chain([schedule]).collect()
    }

    /// Prints a line at the current indentation.
    pub(crate) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Prints a line that continues the previous line.
    pub(crate) fn go_on(&mut self, text: &str) {
        self.line(&format!("    {text}"));
    }

    /// Prints a line that opens a block, and indents the next lines until [`Kernel::close`].
    pub(crate) fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    /// Opens an unrolled loop in which `name` counts from 0 to `count`, exclusive.
    pub(crate) fn unrolled(&mut self, name: &str, count: impl Display) {
        self.line("#pragma unroll");
        self.open(&format!("for (int {name} = 0; {name} < {count}; ++{name}) {{"));
    }

    /// Indents the next lines, until [`Kernel::outdent`] or [`Kernel::close`].
    pub(crate) fn indent(&mut self) {
        self.indent += 1;
    }

    /// Ends the indentation of [`Kernel::indent`], without a brace.
    pub(crate) fn outdent(&mut self) {
        self.indent -= 1;
    }

    /// Prints the brace that closes a block.
    pub(crate) fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    /// Requires a helper of [`crate::prelude`]: the source will define it.
    pub(crate) fn need(&mut self, helper: impl Into<Cow<'static, str>>) {
        let helper = helper.into();
        if !self.helpers.contains(&helper) {
            self.helpers.push(helper);
        }
    }

    pub(crate) fn need_storage(&mut self, dtype: DType) {
        if let Some(helper) = types::helper(dtype) {
            self.need(helper);
        }
    }

    /// Returns the C type in which values of a dtype are computed.
    pub(crate) fn ctype(&self, dtype: DType) -> Result<&'static str, String> {
        types::value(dtype).ok_or_else(|| format!("requires a dtype that has a CUDA type; found {dtype}"))
    }
}

#[cfg(test)]
mod tests;
