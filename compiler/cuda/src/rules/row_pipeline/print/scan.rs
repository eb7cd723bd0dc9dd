//! Prints inclusive scans (prefix sums) of rows, in three levels: thread, warp, block.
//!
//! ```text
//! values of 8 threads' elements    3  1  4  1  5  9  2  6
//! by = 1                           3  4  5  5  6 14 11  8      // own += value of lane - by, by shuffles
//! by = 2                           3  4  8  9 11 19 17 22
//! by = 4                           3  4  8  9 14 23 25 31
//! ```
//!
//! Counted from the start of an iteration, thread `lane` of group `group` has the elements
//! `((group * chunks + chunk) * lanes + lane) * width` and the next `width - 1`. So the elements of a group are
//! contiguous, and so are those of a thread within one chunk. Elements are scanned within each chunk of a thread, then
//! among the lanes by shuffles, then among the groups through shared memory.
//!
//! Requires an associative operation with an identity. If a row is split among blocks, the operation must also be
//! commutative. Guarantees the same order of combination in every run.

use super::{Printer, Use};
use crate::printer::types;
use crate::rules::row_pipeline::collect::scan_identity;
use crate::rules::row_pipeline::{Kind, Stage};
use rx_loops::Multiples;
use rx_tir::{BinaryOp, Expr};

/// The threads that scan a row together, and their elements.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Scanners {
    /// Lanes of a group, a power of two; 1: no shuffles.
    pub(in crate::rules) lanes: i64,
    /// Number of groups.
    pub(in crate::rules) groups: i64,
    /// Number of chunks of a thread in an iteration.
    pub(in crate::rules) chunks: i64,
    /// The vector width: contiguous elements of a thread in a chunk.
    pub(in crate::rules) width: i64,
    /// The vector width, with the integers that are assumed to be multiples of it.
    pub(in crate::rules) multiples: Multiples,
    /// The second axis of the shared memory for the groups' values, if the groups of several neighbouring rows store
    /// there: the number of these rows, and the CUDA expression for the index of the thread's row, such as
    /// `threadIdx.x`.
    pub(in crate::rules) side: Option<(i64, &'static str)>,
}

impl Scanners {
    /// Returns the number of elements of a row that are scanned in one iteration.
    pub(in crate::rules) fn at_once(&self) -> i64 {
        self.lanes * self.groups * self.chunks * self.width
    }
}

/// A scan stage, and the C names of its variables.
pub(in crate::rules) struct Scan<'s> {
    /// The stage.
    stage: &'s Stage,
    /// The operation.
    combine: BinaryOp,
    /// The C type of its values.
    ctype: &'static str,
    /// The array of the thread's values.
    values: String,
    /// The combination of all elements before the current iteration: those of the row, and the one before it if the
    /// scan begins with that. In a kernel that only reduces, the partial result.
    pub(in crate::rules) carry: String,
    /// The shared memory for the groups' values, if there are several groups.
    parts: Option<String>,
}

impl<'s> Printer<'_, '_, 's> {
    /// Declares the array of the thread's values, the carry from one iteration to the next, and, if there are several
    /// groups, shared memory for their values. `goes_on`: the carry begins with the element before the row, if the scan
    /// does.
    pub(in crate::rules) fn begin_scan(
        &mut self,
        at: usize,
        scanners: &Scanners,
        goes_on: bool,
    ) -> Result<Scan<'s>, String> {
        let stages = self.stages;
        let stage = &stages.stages[at];
        let Kind::Scan { combine, carried } = &stage.kind else {
            return Err("requires a scan; found another stage".to_owned());
        };
        let dtype = stage.target.dtype;
        let ctype = self.kernel.ctype(dtype)?;
        let wanted = stages.func.var(stage.var).name;
        let values = self.kernel.fresh_name(&format!("{wanted}_row"));
        self.kernel.line(&format!("{ctype} {values}[{}];", scanners.chunks * scanners.width));
        self.stage_arrays.insert(at, values.clone());
        let carry = self.kernel.fresh_name("carry");
        let begin = match carried.as_ref().filter(|_| goes_on) {
            None => self.identity(stage)?,
            Some(carried) => {
                self.name(Use::Place)?;
                self.kernel.need_storage(dtype);
                let place = self.place_of(carried.element.buffer, &carried.index)?;
                let is_some = self.kernel.operand(&stages.row_length(), crate::printer::expr::RELATION + 1)?;
                // If the row has no elements, the element before it may not exist either, so it is not loaded. The
                // carry is then the identity.
                let none = self.identity(stage)?;
                format!("{is_some} > 0 ? {} : {none}", types::from_storage(dtype, &place))
            }
        };
        self.kernel.line(&format!("{ctype} {carry} = {begin};"));
        let mut parts = None;
        if scanners.groups > 1 {
            let name = self.kernel.fresh_name(&format!("{wanted}_parts"));
            let side = scanners.side.map_or(String::new(), |(rows, _)| format!("[{rows}]"));
            self.kernel.line(&format!("__shared__ {ctype} {name}[{}]{side};", scanners.groups));
            parts = Some(name);
        }
        Ok(Scan { stage, combine: *combine, ctype, values, carry, parts })
    }

    /// Returns the identity of the scan's operation as C text.
    fn identity(&mut self, stage: &Stage) -> Result<String, String> {
        let Kind::Scan { combine, .. } = &stage.kind else {
            return Err("requires a scan; found another stage".to_owned());
        };
        let value =
            scan_identity(*combine, stage.target.dtype).ok_or("requires a scan with an identity; found another")?;
        self.kernel.assigned(&value, stage.target.dtype)
    }

    /// Prints the assignment of the identity to the scan's elements of a chunk. The stages then overwrite those that
    /// are not beyond the end of the row.
    pub(in crate::rules) fn leave_out(&mut self, scan: &Scan<'_>, chunk: &str, width: i64) -> Result<(), String> {
        let none = self.identity(scan.stage)?;
        let line = format!("{}[{}] = {none};", scan.values, super::element_of(Some(chunk), width));
        match width {
            1 => self.kernel.line(&line),
            _ => {
                self.kernel.line("#pragma unroll");
                self.kernel.line(&format!("for (int v = 0; v < {width}; ++v) {line}"));
            }
        }
        Ok(())
    }

    /// Returns `a op b` in the scan's dtype as C text.
    fn both(&mut self, scan: &Scan<'_>, a: &str, b: &str) -> Result<String, String> {
        let (var, other) = (scan.stage.var, scan.stage.other);
        self.kernel.name_value(var, a);
        self.kernel.name_value(other, b);
        let [left, right] = [var, other].map(|one| Box::new(self.stages.func.var_expr(one)));
        self.kernel.operand(&Expr::Binary { op: scan.combine, left, right }, 0)
    }

    /// Prints the combination of `b` into `a`.
    pub(in crate::rules) fn add(&mut self, scan: &Scan<'_>, a: &str, b: &str) -> Result<(), String> {
        let both = self.both(scan, a, b)?;
        self.kernel.line(&format!("{a} = {both};"));
        Ok(())
    }

    /// Returns a shuffle of a value as C text. Types narrower than `int` are shuffled as `int`.
    fn shuffled(scan: &Scan<'_>, how: &str, value: &str, by: &str, lanes: i64) -> String {
        let (to, from) = match scan.ctype {
            "bool" | "signed char" | "unsigned char" | "short" | "unsigned short" => {
                ("(int)", format!("({})", scan.ctype))
            }
            _ => ("", String::new()),
        };
        let width = if lanes == 32 { String::new() } else { format!(", {lanes}") };
        format!("{from}{how}(0xffffffffu, {to}{value}, {by}{width})")
    }

    /// Prints the scan of the threads' values: combines each with all before it, and updates the carry.
    pub(in crate::rules) fn scan(&mut self, scan: &Scan<'_>, scanners: &Scanners) -> Result<(), String> {
        let Scanners { lanes, chunks, width, .. } = *scanners;
        let (values, ctype) = (&scan.values, scan.ctype);
        let none = self.identity(scan.stage)?;
        self.kernel.line("// Inclusive scan: in the thread, across the lanes, across the block.");
        let of_group = self.kernel.fresh_name("sum");
        self.kernel.line(&format!("{ctype} {of_group} = {none};"));
        let befores = self.kernel.fresh_name("before");
        self.kernel.line(&format!("{ctype} {befores}[{chunks}];"));
        let chunk = self.open_chunks(chunks);
        let value = |v: &str| match (width, chunks) {
            (1, _) => format!("{values}[{chunk}]"),
            (_, 1) => format!("{values}[{v}]"),
            _ => format!("{values}[{chunk} * {width} + {v}]"),
        };
        let (first, last) = (value("v"), value(&(width - 1).to_string()));
        if width > 1 {
            self.kernel.line("#pragma unroll");
            let before = value("v - 1");
            let both = self.both(scan, &before, &first)?;
            self.kernel.line(&format!("for (int v = 1; v < {width}; ++v) {first} = {both};"));
        }
        let before = format!("{befores}[{chunk}]");
        self.kernel.line(&format!("{before} = {of_group};"));
        if lanes > 1 {
            let own = self.kernel.fresh_name("own");
            let other = self.kernel.fresh_name("other");
            self.kernel.line(&format!("{ctype} {own} = {last};"));
            self.kernel.line("#pragma unroll");
            self.kernel.open(&format!("for (int by = 1; by < {lanes}; by *= 2) {{"));
            self.kernel.line(&format!(
                "const {ctype} {other} = {};",
                Self::shuffled(scan, "__shfl_up_sync", &own, "by", lanes)
            ));
            let both = self.both(scan, &other, &own)?;
            self.kernel.line(&format!("if (lane >= by) {own} = {both};"));
            self.kernel.close();
            let left = self.kernel.fresh_name("left");
            self.kernel
                .line(&format!("const {ctype} {left} = {};", Self::shuffled(scan, "__shfl_up_sync", &own, "1", lanes)));
            let both = self.both(scan, &of_group, &left)?;
            self.kernel.line(&format!("if (lane > 0) {before} = {both};"));
            let whole = self.kernel.fresh_name("whole");
            let last_lane = (lanes - 1).to_string();
            self.kernel.line(&format!(
                "const {ctype} {whole} = {};",
                Self::shuffled(scan, "__shfl_sync", &own, &last_lane, lanes)
            ));
            self.add(scan, &of_group, &whole)?;
        } else {
            self.add(scan, &of_group, &last)?;
        }
        self.close_chunks(chunks);
        let all_before = self.carry_over(scan, scanners, &of_group)?;
        self.open_chunks(chunks);
        let both = self.both(scan, &all_before, &before)?;
        self.kernel.line(&format!("{before} = {both};"));
        let both = self.both(scan, &before, &first)?;
        if width > 1 {
            self.kernel.line("#pragma unroll");
            self.kernel.line(&format!("for (int v = 0; v < {width}; ++v) {first} = {both};"));
        } else {
            self.kernel.line(&format!("{first} = {both};"));
        }
        self.close_chunks(chunks);
        Ok(())
    }

    /// Opens the loop over a thread's chunks; returns the C text of the chunk's number.
    pub(in crate::rules) fn open_chunks(&mut self, chunks: i64) -> &'static str {
        if chunks < 2 {
            return "0";
        }
        self.kernel.unrolled("chunk", chunks);
        "chunk"
    }

    /// Closes the loop over a thread's chunks.
    pub(in crate::rules) fn close_chunks(&mut self, chunks: i64) {
        if chunks > 1 {
            self.kernel.close();
        }
    }

    /// Prints the exclusive prefix of the thread's group: the carry, combined with the values of the earlier groups in
    /// this iteration. Then combines the values of all groups into the carry. Returns the C name of the prefix.
    /// `of_group` is the C name of the combination of the group's own values.
    fn carry_over(&mut self, scan: &Scan<'_>, scanners: &Scanners, of_group: &str) -> Result<String, String> {
        let (ctype, carry) = (scan.ctype, &scan.carry);
        let before = self.kernel.fresh_name("all_before");
        self.kernel.line(&format!("{} {before} = {carry};", self.mutable(ctype, scan.parts.is_some())));
        let Some(parts) = &scan.parts else {
            self.add(scan, carry, of_group)?;
            return Ok(before);
        };
        let place = |group: &str| match scanners.side {
            Some((_, side)) => format!("{parts}[{group}][{side}]"),
            None => format!("{parts}[{group}]"),
        };
        let leader = if scanners.lanes > 1 { "if (lane == 0) " } else { "" };
        self.kernel.line(&format!("{leader}{} = {of_group};", place("group")));
        self.kernel.line("__syncthreads();");
        let number = self.kernel.fresh_name("at");
        self.kernel.open(&format!("for (int {number} = 0; {number} < {}; ++{number}) {{", scanners.groups));
        let part = place(&number);
        let both = self.both(scan, &before, &part)?;
        self.kernel.line(&format!("if ({number} < group) {before} = {both};"));
        self.add(scan, carry, &part)?;
        self.kernel.close();
        // The next iteration overwrites the shared memory.
        self.kernel.line("__syncthreads();");
        Ok(before)
    }

    /// Returns the C type, `const` unless the variable changes.
    fn mutable(&self, ctype: &str, changes: bool) -> String {
        if changes { ctype.to_owned() } else { format!("const {ctype}") }
    }

    /// Prints the reduction of a thread's values into its carry, without a scan.
    pub(in crate::rules) fn sum_up(&mut self, scan: &Scan<'_>, scanners: &Scanners) -> Result<(), String> {
        let count = scanners.chunks * scanners.width;
        self.kernel.line("#pragma unroll");
        let both = self.both(scan, &scan.carry, &format!("{}[at]", scan.values))?;
        self.kernel.line(&format!("for (int at = 0; at < {count}; ++at) {} = {both};", scan.carry));
        Ok(())
    }

    /// Prints the all-reduce of the carries of a row's threads.
    pub(in crate::rules) fn join_carries(&mut self, scan: &Scan<'_>, scanners: &Scanners) -> Result<(), String> {
        self.join_carried_lanes(scan, scanners.lanes)?;
        let Some(parts) = &scan.parts else { return Ok(()) };
        let place = |group: &str| match scanners.side {
            Some((_, side)) => format!("{parts}[{group}][{side}]"),
            None => format!("{parts}[{group}]"),
        };
        let leader = if scanners.lanes > 1 { "if (lane == 0) " } else { "" };
        self.kernel.line(&format!("{leader}{} = {};", place("group"), scan.carry));
        self.kernel.line("__syncthreads();");
        self.kernel.line(&format!("{} = {};", scan.carry, place("0")));
        let both = self.both(scan, &scan.carry, &place("at"))?;
        self.kernel.line(&format!("for (int at = 1; at < {}; ++at) {} = {both};", scanners.groups, scan.carry));
        Ok(())
    }

    /// Prints the all-reduce of the carries of `lanes` neighbouring threads by butterfly shuffles.
    fn join_carried_lanes(&mut self, scan: &Scan<'_>, lanes: i64) -> Result<(), String> {
        if lanes < 2 {
            return Ok(());
        }
        let other = self.kernel.fresh_name("other");
        self.kernel.line("#pragma unroll");
        self.kernel.open(&format!("for (int by = {}; by > 0; by /= 2) {{", lanes / 2));
        let shuffled = Self::shuffled(scan, "__shfl_xor_sync", &scan.carry, "by", lanes);
        self.kernel.line(&format!("const {} {other} = {shuffled};", scan.ctype));
        self.add(scan, &scan.carry, &other)?;
        self.kernel.close();
        Ok(())
    }

    /// Prints the combination of the values of the row's earlier parts, which other blocks reduced, into the carry.
    /// `parts` returns the C text of a part's value by its number, and `count` is the number of earlier parts.
    pub(in crate::rules) fn carry_parts(
        &mut self,
        scan: &Scan<'_>,
        scanners: &Scanners,
        (parts, count): (&dyn Fn(&str) -> String, &str),
    ) -> Result<(), String> {
        let none = self.identity(scan.stage)?;
        let earlier = self.kernel.fresh_name("earlier");
        let (first, step) = if scanners.lanes > 1 { ("lane", scanners.lanes) } else { ("0", 1) };
        self.kernel.line(&format!("{} {earlier} = {none};", scan.ctype));
        let part = self.kernel.fresh_name("part");
        let both = self.both(scan, &earlier, &parts(&part))?;
        self.kernel
            .line(&format!("for (int {part} = {first}; {part} < {count}; {part} += {step}) {earlier} = {both};"));
        let own = Scan { carry: earlier.clone(), values: scan.values.clone(), parts: None, ..*scan };
        self.join_carried_lanes(&own, scanners.lanes)?;
        self.add(scan, &scan.carry, &earlier)
    }

    /// Records that the arrays of the reads that these stages use directly are loaded, and no others.
    pub(in crate::rules) fn fill(&mut self, stages: &[usize]) {
        let used = |at: &usize| stages.iter().any(|one| self.uses_read(*one, *at));
        self.filled = self.read_arrays.keys().copied().filter(used).collect();
    }

    /// Records that no array is loaded, since the next iteration reads other elements.
    pub(in crate::rules) fn read_anew(&mut self) {
        self.filled.clear();
    }
}
