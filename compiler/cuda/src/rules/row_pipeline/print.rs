//! Prints stages: loops over a row's elements that the row's threads share.
//!
//! ```text
//! // 32 threads, vectors of 4 elements, 2 chunks in registers, a row of up to 256 elements
//! for (int chunk = 0; chunk < 2; ++chunk) {
//!     const int k = (chunk * 32 + lane) * 4;
//!     if (k < n) { /* load a vector of X; loop over v: the stages of element k + v */ }
//! }
//! ```
//!
//! In a loop over the columns (`columns`), if the row is not split among blocks, thread `lane` of the row has whole
//! vectors: the elements `(chunk * threads + lane) * width` and the next `width - 1`. If a vector has elements of
//! several rows ([`Lanes::is_of_rows`]), the thread has element `chunk * threads + lane` of each. Values that several
//! loops use stay in registers for the first chunks ([`Lanes::chunks`]). Those of later elements are loaded and
//! computed again. Scans (`scan`) and rules that print the loops themselves may divide the elements in another way.

mod columns;
mod join;
mod names;
pub(in crate::rules) mod scan;

pub(in crate::rules) use join::begin;
use names::Use;

use super::lanes::{Held, Lanes};
use super::{Combine, Kind, Read, Stage, Stages, Target};
use crate::printer::expr::{Bound, PRODUCT, RELATION, SUM};
use crate::printer::{Kernel, types};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_tir::{BinaryOp, BufferId, Expr, VarId};

/// The printer of stages in a kernel.
pub(in crate::rules) struct Printer<'k, 'm, 's> {
    pub(in crate::rules) kernel: &'k mut Kernel<'m>,
    stages: &'s Stages,
    /// The distribution of a row's elements over threads.
    lanes: Lanes,
    /// The condition for storing values of elements, as C text; `None`: always.
    guard: Option<&'static str>,
    /// The C type of linear indices: `int` or `long long`.
    pub(in crate::rules) index: &'static str,
    /// The C names of the row axes, outermost first.
    rows: Vec<(VarId, String)>,
    /// The C names of the column axes, usually outermost first. The vectors of a row extend along the last one.
    pub(in crate::rules) columns: Vec<(VarId, String)>,
    /// The register arrays of reads and stages, by their numbers.
    read_arrays: FxHashMap<usize, String>,
    stage_arrays: FxHashMap<usize, String>,
    /// Reads whose array has been loaded.
    filled: Vec<usize>,
    /// Reads that are available elsewhere, such as in shared memory: the C text of the element in its storage type.
    preset: FxHashMap<usize, String>,
}

impl<'k, 'm, 's> Printer<'k, 'm, 's> {
    /// Returns the printer of a kernel's stages. The kernel's text then indexes their buffers, except those that take
    /// no memory ([`Stages::kept`]), with linear indices.
    pub(in crate::rules) fn new(
        kernel: &'k mut Kernel<'m>,
        stages: &'s Stages,
        lanes: Lanes,
        guard: Option<&'static str>,
    ) -> Printer<'k, 'm, 's> {
        let buffers = stages.statements.iter().flat_map(crate::rules::buffers_of);
        for id in buffers.filter(|id| !stages.kept.contains(id)) {
            if let Some(text) = kernel.global_buffer(id) {
                // Buffers are indexed by a linear index.
                kernel.name_buffer(id, &text.name, &[Expr::int(1)]);
            }
        }
        let index = if stages.is_small { "int" } else { "long long" };
        Printer {
            kernel,
            stages,
            lanes,
            guard,
            index,
            rows: Vec::new(),
            columns: Vec::new(),
            read_arrays: FxHashMap::default(),
            stage_arrays: FxHashMap::default(),
            filled: Vec::new(),
            preset: FxHashMap::default(),
        }
    }

    /// Prints the loads of elements that are the same for the whole row. If the row may be empty, these elements may
    /// not exist. They are then loaded only if it has elements, unless a stage of [`Kind::Row`] uses them.
    pub(in crate::rules) fn row_reads(&mut self) -> Result<(), String> {
        let length = self.stages.row_length();
        let is_empty = length.as_int().is_none_or(|length| length <= 0);
        for read in self.stages.reads.iter().filter(|read| !read.is_of_columns) {
            let of_row = |stage: &Stage| matches!(stage.kind, Kind::Row) && stage.value.uses(read.var);
            let ctype = self.kernel.ctype(read.dtype)?;
            let wanted = format!("{}_value", self.stages.func.var(read.var).name);
            let name = self.of_row(ctype, &wanted);
            let is_guarded = is_empty && !self.stages.stages.iter().any(of_row);
            self.each_row(|this| {
                this.name_place(&read.element, this.side() > 1)?;
                let mut value = this.element(read, "")?;
                if is_guarded {
                    this.name_row_value()?;
                    let condition = this.kernel.operand(&length, RELATION + 1)?;
                    value = format!("{condition} > 0 ? {value} : ({ctype})0");
                }
                let given = this.given(&format!("const {ctype}"), &name);
                this.kernel.line(&format!("{given} = {value};"));
                Ok(())
            })?;
            self.kernel.name_value(read.var, &name);
        }
        Ok(())
    }

    /// Declares the register arrays of the held values, if there are chunks.
    pub(in crate::rules) fn arrays(&mut self, held: &Held) -> Result<(), String> {
        if self.lanes.chunks == 0 {
            return Ok(());
        }
        let Lanes { width, chunks, .. } = self.lanes;
        for at in &held.reads {
            let read = &self.stages.reads[*at];
            let storage = self.vector_type(read.dtype, width)?;
            let name = self.kernel.fresh_name(&format!("{}_row", self.stages.func.var(read.var).name));
            self.kernel.line(&format!("{storage} {name}[{chunks}];"));
            self.read_arrays.insert(*at, name);
        }
        for at in &held.stages {
            let stage = &self.stages.stages[*at];
            let ctype = self.kernel.ctype(stage.target.dtype)?;
            let name = self.kernel.fresh_name(&format!("{}_row", self.stages.func.var(stage.var).name));
            self.kernel.line(&format!("{ctype} {name}[{}];", chunks * width));
            self.stage_arrays.insert(*at, name);
        }
        Ok(())
    }

    /// Whether a stage uses a read directly.
    fn uses_read(&self, stage: usize, read: usize) -> bool {
        self.stages.stages[stage].value.uses(self.stages.reads[read].var)
    }

    /// Prints the stages for a vector of `width` elements, whose column, or first column, is `k`. `chunk` is the number
    /// of the elements' chunk in register arrays, as C text; `None` if their values are not kept.
    pub(in crate::rules) fn body(
        &mut self,
        stages: &[usize],
        k: &str,
        chunk: Option<&str>,
        width: i64,
    ) -> Result<(), String> {
        let axes: Vec<_> = self.stages.columns.iter().map(|axis| (axis.var, axis.extent.clone())).collect();
        self.columns = self.axes(&axes, k)?;
        self.body_here(stages, chunk, width)
    }

    /// Prints the loads into register arrays for `width` elements from column `k` on: of the reads that the stages use
    /// and that have an array.
    pub(in crate::rules) fn load_vectors(
        &mut self,
        stages: &[usize],
        k: &str,
        chunk: &str,
        width: i64,
    ) -> Result<(), String> {
        let axes: Vec<_> = self.stages.columns.iter().map(|axis| (axis.var, axis.extent.clone())).collect();
        self.columns = self.axes(&axes, k)?;
        for at in 0..self.stages.reads.len() {
            if self.read_arrays.contains_key(&at) && stages.iter().any(|stage| self.uses_read(*stage, at)) {
                self.read(at, Some(chunk), width)?;
            }
        }
        self.name(Use::Place)
    }

    /// Returns the element of a read, by its number, as C text. The axes must have names.
    pub(in crate::rules) fn memory_of(&mut self, read: usize) -> Result<String, String> {
        let stages = self.stages;
        self.name_place(&stages.reads[read].element, false)?;
        self.place(&stages.reads[read])
    }

    /// Makes a read, by its number, use this C text instead of a load.
    pub(in crate::rules) fn preset(&mut self, read: usize, text: &str) {
        self.preset.insert(read, text.to_owned());
    }

    /// As [`Printer::body`], for axes that have names.
    pub(in crate::rules) fn body_here(
        &mut self,
        stages: &[usize],
        chunk: Option<&str>,
        width: i64,
    ) -> Result<(), String> {
        let done = self.with_needed(stages, chunk);
        let is_vector = width > 1;
        let mut texts: Vec<(VarId, String)> = Vec::new();
        for (at, read) in self.stages.reads.iter().enumerate() {
            if read.is_of_columns && done.iter().any(|stage| self.uses_read(*stage, at)) {
                texts.push((read.var, self.read(at, chunk, width)?));
            }
        }
        let mut parts: FxHashMap<usize, String> = FxHashMap::default();
        let last = self.along().ok_or("requires rows with columns; found none")?;
        for at in stages {
            let stage = &self.stages.stages[*at];
            let Target { element, dtype, is_stored, .. } = &stage.target;
            if is_vector
                && *is_stored
                && matches!(stage.kind, Kind::Element)
                && element.is_vector(last, &self.lanes.multiples)
            {
                let vector = self.vector_type(*dtype, width)?;
                let name = self.kernel.fresh_name(&format!("{}_part", self.stages.func.var(stage.var).name));
                self.kernel.line(&format!("{vector} {name};"));
                parts.insert(*at, name);
            }
        }
        if is_vector {
            self.kernel.unrolled("v", width);
        }
        for (var, text) in &texts {
            self.kernel.name_value(*var, text);
        }
        if chunk.is_some() {
            for (at, name) in &self.stage_arrays {
                if !stages.contains(at) {
                    let text = format!("{name}[{}]", element_of(chunk, width));
                    self.kernel.name_value(self.stages.stages[*at].var, &text);
                }
            }
        }
        for at in &done {
            self.stage(*at, &done, stages.contains(at), chunk, width, parts.get(at).map(String::as_str))?;
        }
        if is_vector {
            self.kernel.close();
        }
        self.name(Use::Place)?;
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort();
        for (at, part) in parts {
            let stage = &self.stages.stages[at];
            let place = self.pointer(stage.target.element.buffer, &stage.target.index)?;
            let vector = self.vector_type(stage.target.dtype, width)?;
            let guard = self.guard.map_or(String::new(), |guard| format!("if ({guard}) "));
            self.kernel.line(&format!("{guard}*({vector}*)({place}) = {part};"));
        }
        Ok(())
    }

    /// Returns, in order, the given stages and, recursively, the element stages that they use and whose values are not
    /// in registers: these are computed again.
    fn with_needed(&self, stages: &[usize], chunk: Option<&str>) -> Vec<usize> {
        let mut needed: Vec<usize> = stages.to_vec();
        let mut at = 0;
        while at < needed.len() {
            let value = &self.stages.stages[needed[at]].value;
            for (number, other) in self.stages.stages.iter().enumerate() {
                let is_kept = chunk.is_some() && self.stage_arrays.contains_key(&number);
                let is_new = matches!(other.kind, Kind::Element) && !is_kept && !needed.contains(&number);
                if is_new && value.uses(other.var) {
                    needed.push(number);
                }
            }
            at += 1;
        }
        needed.sort_unstable();
        needed
    }

    /// Prints the load of `width` elements that are neighbours along the vector's axis, unless they are available
    /// already; returns element `v` of them (the only one if `width` is 1) as a C expression. Contiguous, aligned
    /// elements are loaded as one vector, others one by one.
    fn read(&mut self, at: usize, chunk: Option<&str>, width: i64) -> Result<String, String> {
        let stages = self.stages;
        let read = &stages.reads[at];
        if let Some(preset) = self.preset.get(&at) {
            return Ok(types::from_storage(read.dtype, preset));
        }
        let wanted = self.stages.func.var(read.var).name;
        let array = self.read_arrays.get(&at).filter(|_| chunk.is_some()).cloned();
        let lane = if width > 1 { ".at[v]" } else { "" };
        let name = match (&array, chunk) {
            (Some(array), Some(chunk)) => format!("{array}[{chunk}]"),
            _ => self.kernel.fresh_name(&format!("{wanted}_part")),
        };
        let value = types::from_storage(read.dtype, &format!("{name}{lane}"));
        self.kernel.need_storage(read.dtype);
        if array.is_some() && self.filled.contains(&at) {
            return Ok(value);
        }
        let vector = self.vector_type(read.dtype, width)?;
        let last = self.along();
        let declared = if array.is_some() { String::new() } else { format!("{vector} ") };
        if width == 1 {
            self.name_place(&read.element, false)?;
            let place = self.place(read)?;
            let constant = if array.is_some() { "" } else { "const " };
            self.kernel.line(&format!("{constant}{declared}{name} = {place};"));
        } else if last.is_some_and(|last| read.element.is_vector(last, &self.lanes.multiples)) {
            self.name_place(&read.element, false)?;
            let place = self.pointer(read.element.buffer, &read.index)?;
            let constant = if array.is_some() { "" } else { "const " };
            self.kernel.line(&format!("{constant}{declared}{name} = *(const {vector}*)({place});"));
        } else {
            if array.is_none() {
                self.kernel.line(&format!("{vector} {name};"));
            }
            self.name_place(&read.element, true)?;
            let place = self.place(read)?;
            self.kernel.line("#pragma unroll");
            self.kernel.line(&format!("for (int v = 0; v < {width}; ++v) {name}.at[v] = {place};"));
        }
        Ok(value)
    }

    /// Prints stage `at` for one element; the first stage of a tuple reduction prints all of them. `done`: all stages
    /// that are printed for the element. `is_own`: the stage belongs to this loop; otherwise it is only computed again
    /// and not stored. `part` is the vector that collects the stored elements, if there is one.
    fn stage(
        &mut self,
        at: usize,
        done: &[usize],
        is_own: bool,
        chunk: Option<&str>,
        width: i64,
        part: Option<&str>,
    ) -> Result<(), String> {
        let stages = self.stages;
        let stage = &stages.stages[at];
        let dtype = stage.target.dtype;
        self.name(Use::Value(width > 1))?;
        if let Kind::Reduction { combine, .. } = &stage.kind {
            // The first stage of a tuple combines all of them.
            let count = match combine {
                Combine::Operation(_) => 1,
                Combine::Choice { place: 0, count, .. } => *count,
                Combine::Choice { .. } => return Ok(()),
            };
            return self.combine(&stages.stages[at..at + count], |stage| stage.value.clone());
        }
        let array = self.stage_arrays.get(&at).filter(|_| chunk.is_some()).cloned();
        let is_used = done.iter().any(|other| *other > at && stages.stages[*other].value.uses(stage.var));
        let is_stored = is_own && stage.target.is_stored;
        let mut value = stage.value.clone();
        if let Some(array) = array {
            let text = self.kernel.assigned(&value, dtype)?;
            let name = format!("{array}[{}]", element_of(chunk, width));
            self.kernel.line(&format!("{name} = {text};"));
            self.kernel.name_value(stage.var, &name);
            value = stages.func.var_expr(stage.var);
        } else if is_used || !is_stored {
            let ctype = self.kernel.ctype(dtype)?;
            let text = self.kernel.assigned(&value, dtype)?;
            let name = self.kernel.fresh_name(&format!("{}_value", stages.func.var(stage.var).name));
            self.kernel.line(&format!("const {ctype} {name} = {text};"));
            self.kernel.name_value(stage.var, &name);
            value = stages.func.var_expr(stage.var);
        }
        if !is_stored {
            return Ok(());
        }
        let text = self.kernel.stored(&value, dtype)?;
        self.kernel.need_storage(dtype);
        match part {
            Some(part) => self.kernel.line(&format!("{part}.at[v] = {text};")),
            None => {
                self.name(if width > 1 { Use::PlaceInVector } else { Use::Place })?;
                let place = self.target(stage)?;
                let guard = self.guard.map_or(String::new(), |guard| format!("if ({guard}) "));
                self.kernel.line(&format!("{guard}{place} = {text};"));
            }
        }
        Ok(())
    }

    /// Returns the load of an element, converted from its storage type, as C text.
    fn element(&mut self, read: &Read, lane: &str) -> Result<String, String> {
        self.kernel.need_storage(read.dtype);
        let place = self.place(read)?;
        Ok(types::from_storage(read.dtype, &format!("{place}{lane}")))
    }

    /// Returns the element of a read as C text.
    fn place(&mut self, read: &Read) -> Result<String, String> {
        self.place_of(read.element.buffer, &read.index)
    }

    /// Returns the element that a stage stores as C text.
    fn target(&mut self, stage: &Stage) -> Result<String, String> {
        self.place_of(stage.target.element.buffer, &stage.target.index)
    }

    /// Returns an element by its linear index as C text.
    fn place_of(&mut self, buffer: BufferId, index: &Expr) -> Result<String, String> {
        let name =
            self.kernel.global_buffer(buffer).ok_or("requires a buffer that the host passes; found another")?.name;
        Ok(format!("{name}[{}]", self.sum(index)?.0))
    }

    /// Returns a pointer to an element as C text.
    fn pointer(&mut self, buffer: BufferId, index: &Expr) -> Result<String, String> {
        let name =
            self.kernel.global_buffer(buffer).ok_or("requires a buffer that the host passes; found another")?.name;
        if index.as_int() == Some(0) {
            return Ok(name);
        }
        let (text, binds) = self.sum(index)?;
        Ok(if binds < SUM { format!("{name} + ({text})") } else { format!("{name} + {text}") })
    }

    /// Returns a linear index as C text. Its outermost sums, differences and products are printed without protection
    /// from overflow, since the index is within the buffer.
    fn sum(&mut self, index: &Expr) -> Result<Bound, String> {
        let (symbol, level, left, right) = match index {
            Expr::Binary { op: BinaryOp::Add, left, right } => ("+", SUM, left, right),
            Expr::Binary { op: BinaryOp::Sub, left, right } => ("-", SUM, left, right),
            Expr::Binary { op: BinaryOp::Mul, left, right } => ("*", PRODUCT, left, right),
            _ => return self.kernel.expr(index),
        };
        let side = |(text, binds): Bound, level: u8| if binds < level { format!("({text})") } else { text };
        let (left, right) = (self.sum(left)?, self.sum(right)?);
        Ok((format!("{} {symbol} {}", side(left, level), side(right, level + 1)), level))
    }

    /// Returns the C type of a vector of `width` elements in their storage type.
    fn vector_type(&mut self, dtype: DType, width: i64) -> Result<String, String> {
        let storage =
            types::storage(dtype).ok_or_else(|| format!("requires a dtype that has a CUDA type; found {dtype}"))?;
        self.kernel.need_storage(dtype);
        if width == 1 {
            return Ok(storage.to_owned());
        }
        self.kernel.need("rx_vector");
        Ok(format!("rx_vector<{width}, {storage}>"))
    }
}

/// Returns the position of a thread's element in the register array of a stage, as C text.
fn element_of(chunk: Option<&str>, width: i64) -> String {
    match (chunk.unwrap_or("0"), width) {
        (chunk, 1) => chunk.to_owned(),
        ("0", _) => "v".to_owned(),
        (chunk, width) => format!("{chunk} * {width} + v"),
    }
}
