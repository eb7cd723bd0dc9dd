//! Scans as text: the values of a thread's elements become those of all elements up to them.
//!
//! Thread `lane` of group `group` has the elements `((group * chunks + chunk) * lanes + lane) * width` and the `width - 1`
//! behind each; so a group has neighbours, and within a chunk of it a thread has. Sums are made within a thread, then among
//! the lanes by shuffles, then among the groups through shared memory, always in the same order.

use super::{Printer, Use};
use crate::printer::types;
use crate::rules::stages::gather::neutral;
use crate::rules::stages::{Kind, Stage};
use rx_schedule::Multiples;
use rx_tir::{BinaryOp, Expr};

/// Which threads scan a row together.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Scanners {
    /// Lanes that a shuffle reaches; a power of two.
    pub(in crate::rules) lanes: i64,
    /// How many groups of them.
    pub(in crate::rules) groups: i64,
    /// Chunks of a thread.
    pub(in crate::rules) chunks: i64,
    /// Elements of a thread in a chunk.
    pub(in crate::rules) width: i64,
    /// What is known of multiples of so many.
    pub(in crate::rules) multiples: Multiples,
    /// Rows side by side in the block that go through shared memory, and the name of the own one's number.
    pub(in crate::rules) side: Option<(i64, &'static str)>,
}

impl Scanners {
    /// Elements of a row that are scanned at once.
    pub(in crate::rules) fn at_once(&self) -> i64 {
        self.lanes * self.groups * self.chunks * self.width
    }
}

/// A scan on its way: the names of its array and of what is carried.
pub(in crate::rules) struct Scan<'s> {
    stage: &'s Stage,
    combine: BinaryOp,
    ctype: &'static str,
    values: String,
    pub(in crate::rules) carry: String,
    parts: Option<String>,
}

impl<'s> Printer<'_, '_, 's> {
    /// Declares the array of the scan's values, what is carried from one round to the next, and shared memory for the groups'.
    /// `goes_on`: it begins with what stands before the row, if anything does.
    pub(in crate::rules) fn begin_scan(
        &mut self,
        at: usize,
        scanners: &Scanners,
        goes_on: bool,
    ) -> Result<Scan<'s>, String> {
        let stages = self.stages;
        let stage = &stages.stages[at];
        let Kind::Scan { combine, carried } = &stage.kind else { return Err("no scan".to_owned()) };
        let dtype = stage.target.dtype;
        let ctype = self.kernel.ctype(dtype)?;
        let wanted = stages.func.var(stage.var).name;
        let values = self.kernel.fresh_name(&format!("{wanted}_row"));
        self.kernel.line(&format!("{ctype} {values}[{}];", scanners.chunks * scanners.width));
        self.stage_arrays.insert(at, values.clone());
        let carry = self.kernel.fresh_name("carry");
        let begin = match carried.as_ref().filter(|_| goes_on) {
            None => self.neutral(stage)?,
            Some(carried) => {
                self.name(Use::Place)?;
                self.kernel.need_storage(dtype);
                let place = self.place_of(carried.element.buffer, &carried.index)?;
                let is_some = self.kernel.operand(&stages.row_length(), crate::printer::expr::RELATION + 1)?;
                // A row without elements may have none before them.
                let none = self.neutral(stage)?;
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

    /// What combining with changes nothing.
    fn neutral(&mut self, stage: &Stage) -> Result<String, String> {
        let Kind::Scan { combine, .. } = &stage.kind else { return Err("no scan".to_owned()) };
        let value = neutral(*combine, stage.target.dtype).ok_or("a scan in an order of its own")?;
        self.kernel.assigned(&value, stage.target.dtype)
    }

    /// Gives the scan's elements of a chunk, which is behind the end of the row, the value that changes nothing.
    pub(in crate::rules) fn leave_out(&mut self, scan: &Scan<'_>, chunk: &str, width: i64) -> Result<(), String> {
        let none = self.neutral(scan.stage)?;
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

    /// `a op b` of the scan's dtype.
    fn both(&mut self, scan: &Scan<'_>, a: &str, b: &str) -> Result<String, String> {
        let (var, other) = (scan.stage.var, scan.stage.other);
        self.kernel.name_value(var, a);
        self.kernel.name_value(other, b);
        let [left, right] = [var, other].map(|one| Box::new(self.stages.func.var_expr(one)));
        self.kernel.operand(&Expr::Binary { op: scan.combine, left, right }, 0)
    }

    /// A line that combines what `b` names into `a`.
    pub(in crate::rules) fn add(&mut self, scan: &Scan<'_>, a: &str, b: &str) -> Result<(), String> {
        let both = self.both(scan, a, b)?;
        self.kernel.line(&format!("{a} = {both};"));
        Ok(())
    }

    /// A value of another lane.
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

    /// Combines the values of the threads' elements with those of all before, and carries the last.
    pub(in crate::rules) fn scan(&mut self, scan: &Scan<'_>, scanners: &Scanners) -> Result<(), String> {
        let Scanners { lanes, chunks, width, .. } = *scanners;
        let (values, ctype) = (&scan.values, scan.ctype);
        let none = self.neutral(scan.stage)?;
        self.kernel.line("// Each with those before it: in the thread, in the lanes, in the block.");
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

    /// Begins what is done for each chunk of a thread; gives what the chunk's number is called.
    pub(in crate::rules) fn open_chunks(&mut self, chunks: i64) -> &'static str {
        if chunks < 2 {
            return "0";
        }
        self.kernel.unrolled("chunk", chunks);
        "chunk"
    }

    /// Ends what is done for each chunk.
    pub(in crate::rules) fn close_chunks(&mut self, chunks: i64) {
        if chunks > 1 {
            self.kernel.close();
        }
    }

    /// What stands before the own group's elements; `of_group`, the value of all of those, goes into what is carried.
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
        // The next round writes the parts again.
        self.kernel.line("__syncthreads();");
        Ok(before)
    }

    fn mutable(&self, ctype: &str, changes: bool) -> String {
        if changes { ctype.to_owned() } else { format!("const {ctype}") }
    }

    /// Combines the values of the threads' elements without regard to which come before: `sum` is a thread's part.
    pub(in crate::rules) fn sum_up(&mut self, scan: &Scan<'_>, scanners: &Scanners) -> Result<(), String> {
        let count = scanners.chunks * scanners.width;
        self.kernel.line("#pragma unroll");
        let both = self.both(scan, &scan.carry, &format!("{}[at]", scan.values))?;
        self.kernel.line(&format!("for (int at = 0; at < {count}; ++at) {} = {both};", scan.carry));
        Ok(())
    }

    /// Combines what the threads carry; all of the row have the result.
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

    /// Brings what earlier blocks have of the row, `count` values of `parts`, into what is carried.
    pub(in crate::rules) fn carry_parts(
        &mut self,
        scan: &Scan<'_>,
        scanners: &Scanners,
        (parts, count): (&dyn Fn(&str) -> String, &str),
    ) -> Result<(), String> {
        let none = self.neutral(scan.stage)?;
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

    /// The reads of these stages are in their arrays from here on.
    pub(in crate::rules) fn fill(&mut self, stages: &[usize]) {
        let used = |at: &usize| stages.iter().any(|one| self.uses_read(*one, *at));
        self.filled = self.read_arrays.keys().copied().filter(used).collect();
    }

    /// What is read from here on is read anew.
    pub(in crate::rules) fn read_anew(&mut self) {
        self.filled.clear();
    }
}
