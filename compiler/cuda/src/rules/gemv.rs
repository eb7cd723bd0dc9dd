//! Schedule rule `gemv`: sums of products with up to 8 rows or columns, mainly matrix products (skinny GEMM), whose
//! time is that of reading the matrix. For example, a language model that generates one token at a time multiplies its
//! weights by a single row.
//!
//! ```text
//! for f < 8, n, k: C[f, n] += A[f, k] * B[k, n]
//!
//! B contiguous along k or neither: a warp per row   B contiguous along n only: a lane per row or rows
//!     row n = warp                                      rows n = lane * wide + j
//!     for k = lane * wide; k += 32 * wide:              for k = warp; k += 8:
//!         load wide neighbours of B as one vector           load wide neighbours of B as one vector
//!         sums[f] += A[f, k + j] * B[k + j, n]              sums[f][j] += A[f, k] * B[k, n + j]
//!     add the lanes' sums by shuffles                   add the warps' sums in shared memory
//! ```
//!
//! Neighbours of B that are not contiguous and aligned are loaded or computed one by one.
//!
//! Requires: M or N constant and at most 8; K at least 16 if constant; a matrix that is not a `Select`, as one of
//! padded windows is. Guarantees: each value `B[k, n]` of the matrix is loaded or computed once for each product of the
//! batch; partial sums are added in a fixed order.
//!
//! In this file, the *vectors* are the at most 8 rows of A or columns of B: the fewer ones (a symbolic extent counts as
//! more), or those of B if M and N are equal. The *matrix* is the other factor, and *rows* are its M or N axis. Vectors
//! are reread from the cache.
//!
//! Reference: TVM's `python/tvm/s_tir/dlight/gpu/gemv.py` and `python/tvm/s_tir/dlight/gpu/low_batch_gemv.py`.

use super::gemm::kernel::finish_element;
use super::gemm::names::{GemmNames, OWN_NAMES, tiles_of};
use super::gemm::problem::{Axis, Element, Factor, Problem};
use super::gemm::tiles::sum_type;
use super::{Declined, Frame, KernelBody, Rule, Schedule, Task};
use crate::printer::{Kernel, expr, types};
use crate::source::LaunchShape;
use rx_tir::Expr;

/// The rule `gemv`.
pub(super) const RULE: Rule =
    Rule { name: "gemv", summary: "Products with up to 8 rows or columns: warps read the matrix once.", take };

/// The largest number of vectors: of rows of A, or of columns of B.
const MOST: i64 = 8;

/// Warps per block.
const WARPS: i64 = 8;

/// Elements along K that a lane processes per iteration if a warp computes a row and they are not loaded as one vector.
const COMPUTED: i64 = 8;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let problem = Problem::of(task)?;
    let few = |axis: &Axis| axis.constant().filter(|extent| (0..=MOST).contains(extent));
    let rows_are_few = match (few(&problem.m), few(&problem.n)) {
        (None, None) => {
            return Err(Declined::because(format!("requires M or N of at most {MOST}; found larger or symbolic ones")));
        }
        (Some(m), Some(n)) => m < n,
        (m, _) => m.is_some(),
    };
    let matrix = if rows_are_few { &problem.b } else { &problem.a };
    let rows = if rows_are_few { &problem.n } else { &problem.m };
    Declined::when(rows.loops.is_empty(), "requires rows of the matrix; found none")?;
    if matches!(matrix.narrow, Expr::Select { .. }) {
        return Err(Declined::because("requires a matrix that is read once; found padded windows"));
    }
    Declined::when(problem.k.constant().is_some_and(|extent| extent < 16), "requires K of at least 16; found less")?;
    let contiguous = |element: &Element, axis: &Axis| axis.last().is_some_and(|(var, _)| element.is_contiguous(var));
    let by_rows = matrix.element.as_ref().is_some_and(|one| contiguous(one, rows) && !contiguous(one, &problem.k));
    let along = if by_rows { rows } else { &problem.k };
    let bytes = i64::try_from(matrix.narrow.dtype().bytes()).unwrap_or(1).max(1);
    let mut wide = match by_rows {
        // Adjacent rows per lane: as many as leave at least one block for each multiprocessor, but at least 1 and at
        // most 16 bytes; 2 if the number of rows is not a constant.
        true => {
            rows.constant().map_or(2, |rows| (rows / 32 / i64::from(task.target.units).max(1)).clamp(1, 16 / bytes))
        }
        false => 16 / bytes,
    };
    wide = 1 << wide.max(1).ilog2();
    let is_vector = matrix.element.as_ref().is_some_and(|one| wide > 1 && one.is_in_chunks(along, wide));
    if !is_vector {
        wide = if by_rows { 1 } else { COMPUTED };
    }
    let taken = problem.epilogue.taken;
    let how = match by_rows {
        true => format!("{wide} rows per lane, K over {WARPS} warps"),
        false => format!("a warp per row, {wide} values of K per lane at a time"),
    };
    let read = if is_vector { format!("{}-byte loads", wide * bytes) } else { "single-element loads".to_owned() };
    let note = format!("{how}; {read}{}", problem.epilogue.note());
    let vectors = if rows_are_few { &problem.a } else { &problem.b };
    let in_packs = is_vector && !by_rows && vectors.narrow.dtype() == matrix.narrow.dtype();
    let in_packs = in_packs && vectors.element.as_ref().is_some_and(|one| one.is_in_chunks(&problem.k, wide));
    let kernel = FewRows { problem, rows_are_few, by_rows, wide, is_vector, in_packs };
    Ok(Schedule { note, ..Schedule::single(taken, kernel) })
}

/// The kernel of a product with few rows or columns.
struct FewRows {
    problem: Problem,
    /// Whether `A` has the few vectors and `B` is the matrix; otherwise the reverse.
    rows_are_few: bool,
    /// Whether the matrix is contiguous along its rows axis and not along K.
    by_rows: bool,
    /// Elements of the matrix that a lane processes per iteration.
    wide: i64,
    /// Whether these elements are loaded as one vector.
    is_vector: bool,
    /// Whether the elements of the few vectors are also loaded in packs: `wide` elements of one of them at a time.
    in_packs: bool,
}

impl FewRows {
    fn matrix(&self) -> &Factor {
        if self.rows_are_few { &self.problem.b } else { &self.problem.a }
    }

    fn vectors(&self) -> &Factor {
        if self.rows_are_few { &self.problem.a } else { &self.problem.b }
    }

    /// Returns the axis of the matrix's rows.
    fn rows(&self) -> &Axis {
        if self.rows_are_few { &self.problem.n } else { &self.problem.m }
    }

    /// Returns the axis of the few vectors.
    fn few(&self) -> &Axis {
        if self.rows_are_few { &self.problem.m } else { &self.problem.n }
    }

    /// Returns the number of vectors; 1 if there are none, because the emitted arrays must not be empty.
    fn count(&self) -> i64 {
        self.few().constant().unwrap_or(1).max(1)
    }

    /// Returns the number of rows that one block computes.
    fn rows_of_block(&self) -> i64 {
        if self.by_rows { 32 * self.wide } else { WARPS }
    }
}

impl KernelBody for FewRows {
    fn frame(&self) -> Frame<'_> {
        let blocks = tiles_of(self.rows().extent(), self.rows_of_block()) * self.problem.batch.extent();
        // With no vectors, the result is empty and no block is launched.
        let blocks = if self.few().constant() == Some(0) { Expr::int(0) } else { blocks };
        let threads = u32::try_from(32 * WARPS).unwrap_or(u32::MAX);
        Frame {
            func: Some(&self.problem.func),
            kept: self.problem.epilogue.kept(),
            own_names: OWN_NAMES,
            ..Frame::new(LaunchShape::blocks(blocks, threads), &self.problem.statements)
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let problem = &self.problem;
        let names = GemmNames::new(kernel, problem, false)?;
        let (ctype, _) = sum_type(problem.dtype)?;
        let (row, end) = match self.rows_are_few {
            true => (names.column.clone(), names.ends[1].clone()),
            false => (names.row.clone(), names.ends[0].clone()),
        };
        let (index, sums, per_block) = (names.index, &names.sums, self.rows_of_block());
        kernel.line("const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;");
        let blocks = kernel.operand(&tiles_of(self.rows().extent(), per_block), expr::PRODUCT + 1)?;
        if !problem.batch.loops.is_empty() {
            let batch = kernel.fresh_name("batch");
            kernel.line(&format!("const {index} {batch} = blockIdx.x / {blocks};"));
            names.decode(kernel, &problem.batch, &batch, &|_| true)?;
        }
        let block =
            if problem.batch.loops.is_empty() { "blockIdx.x".to_owned() } else { format!("(blockIdx.x % {blocks})") };
        let own = if self.by_rows && self.wide > 1 {
            format!("lane * {}", self.wide)
        } else if self.by_rows {
            "lane".to_owned()
        } else {
            "warp".to_owned()
        };
        let row0 = kernel.fresh_name("first");
        kernel.line(&format!("const {index} {row0} = ({index}){block} * {per_block} + {own};"));
        let width = if self.by_rows { self.wide } else { 1 };
        kernel.line(&format!("{ctype} {sums}[{}][{width}] = {{}};", self.count()));
        self.sum(kernel, &names, &row, &row0, &end)?;
        match self.by_rows {
            true => self.add_warps(kernel, &names, ctype)?,
            false => {
                kernel.line("// Sum over the lanes.");
                kernel.line("#pragma unroll");
                kernel.open("for (int by = 16; by > 0; by /= 2) {");
                kernel.line("#pragma unroll");
                let count = self.count();
                kernel.line(&format!(
                    "for (int f = 0; f < {count}; ++f) {sums}[f][0] += __shfl_xor_sync(0xffffffffu, {sums}[f][0], by);"
                ));
                kernel.close();
            }
        }
        self.finish(kernel, &names, (&row, &row0, &end), width)
    }
}

impl FewRows {
    /// Emits the loop over K in which the thread accumulates its partial sums.
    fn sum(&self, kernel: &mut Kernel<'_>, names: &GemmNames, row: &str, row0: &str, end: &str) -> Result<(), String> {
        let problem = &self.problem;
        let (wide, sum) = (self.wide, &names.sum_index);
        let (start, step) = match self.by_rows {
            true => ("warp".to_owned(), WARPS),
            false => (format!("lane * {wide}"), 32 * wide),
        };
        let (index, sum0, sum_end) = (names.index, &names.sum0, &names.sum_end);
        kernel.open(&format!("if ({row0} < {end}) {{"));
        kernel.line("#pragma unroll 4");
        kernel.open(&format!("for ({index} {sum0} = {start}; {sum0} < {sum_end}; {sum0} += {step}) {{"));
        let storage = types::storage(self.matrix().narrow.dtype())
            .ok_or("requires a factor with a storage type; found another dtype")?;
        if let Some(helper) = types::helper(self.matrix().narrow.dtype()) {
            kernel.need(helper);
        }
        let pack = format!("rx_pack<{storage}, {wide}>");
        if self.is_vector {
            kernel.need("rx_pack");
            kernel.line(&format!("{pack} matrix = {{}};"));
            kernel.open("{");
            read_pack(kernel, names, problem, (self.matrix(), self.rows()), (row, row0), ("matrix", &pack))?;
            kernel.close();
        }
        let few = if self.rows_are_few { &names.row } else { &names.column };
        if self.in_packs {
            kernel.line(&format!("{pack} vectors[{}] = {{}};", self.count()));
            kernel.unrolled("f", self.count());
            read_pack(kernel, names, problem, (self.vectors(), self.few()), (few, "f"), ("vectors[f]", &pack))?;
            kernel.close();
        }
        kernel.unrolled("j", wide);
        match self.by_rows {
            true => kernel.line(&format!("const {index} {row} = {row0} + j, {sum} = {sum0};")),
            false => kernel.line(&format!("const {index} {row} = {row0}, {sum} = {sum0} + j;")),
        }
        // A vector load never crosses the end of its axis, because the extent is a multiple of its width. Without
        // vector loads, each element is checked.
        let guard = match (self.is_vector, self.by_rows) {
            (true, _) => None,
            (false, true) => Some(format!("{row} < {end}")),
            (false, false) => Some(format!("{sum} < {sum_end}")),
        };
        match guard {
            Some(guard) => kernel.open(&format!("if ({guard}) {{")),
            None => kernel.open("{"),
        }
        let used = |var: rx_tir::VarId| [self.matrix(), self.vectors()].iter().any(|factor| factor.value.uses(var));
        names.decode(kernel, self.rows(), row, &used)?;
        names.decode(kernel, &problem.k, sum, &used)?;
        let (ctype, _) = sum_type(problem.dtype)?;
        let wrap = |text: String| if matches!(ctype, "float" | "double") { text } else { format!("({ctype}){text}") };
        let value = match self.is_vector {
            true => types::from_storage(self.matrix().narrow.dtype(), "matrix.at[j]"),
            false => kernel.operand(&self.matrix().value, expr::UNARY)?,
        };
        kernel.line(&format!("const {ctype} value = {};", wrap(value)));
        kernel.unrolled("f", self.count());
        let vector = match self.in_packs {
            true => types::from_storage(self.vectors().narrow.dtype(), "vectors[f].at[j]"),
            false => {
                kernel.line(&format!("const {index} {few} = f;"));
                names.decode(kernel, self.few(), few, &|var| self.vectors().value.uses(var))?;
                kernel.operand(&self.vectors().value, expr::UNARY)?
            }
        };
        let at = if self.by_rows { "j" } else { "0" };
        kernel.line(&format!("{}[f][{at}] += value * {};", names.sums, wrap(vector)));
        (0..5).for_each(|_| kernel.close());
        Ok(())
    }

    /// Emits the addition of the warps' partial sums of the same rows. Every warp computes the total; the first warp
    /// stores it later.
    fn add_warps(&self, kernel: &mut Kernel<'_>, names: &GemmNames, ctype: &str) -> Result<(), String> {
        let (shared, sums, wide) = (kernel.fresh_name("of_warps"), &names.sums, self.wide);
        kernel.line("// Every warp adds the sums of all warps, in order.");
        kernel.line(&format!("__shared__ {ctype} {shared}[{WARPS}][32][{wide}];"));
        kernel.unrolled("f", self.count());
        kernel.line("#pragma unroll");
        kernel.line(&format!("for (int j = 0; j < {wide}; ++j) {shared}[warp][lane][j] = {sums}[f][j];"));
        kernel.line("__syncthreads();");
        kernel.unrolled("j", wide);
        kernel.line(&format!("{sums}[f][j] = {shared}[0][lane][j];"));
        kernel.line("#pragma unroll");
        kernel.line(&format!("for (int w = 1; w < {WARPS}; ++w) {sums}[f][j] += {shared}[w][lane][j];"));
        kernel.close();
        kernel.line("__syncthreads();");
        kernel.close();
        Ok(())
    }

    /// Emits the epilogue of each sum. If the partial sums of the warps were added (`by_rows`), every warp has the
    /// totals, and the lanes of the first warp execute the epilogue. Otherwise each warp has separate sums, equal in
    /// all of its lanes, and its first lane executes the epilogue.
    fn finish(
        &self,
        kernel: &mut Kernel<'_>,
        names: &GemmNames,
        (row, row0, end): (&str, &str, &str),
        width: i64,
    ) -> Result<(), String> {
        let problem = &self.problem;
        let mine = if self.by_rows { "warp == 0" } else { "lane == 0" };
        kernel.open(&format!("if ({mine}) {{"));
        kernel.unrolled("j", width);
        kernel.line(&format!("const {} {row} = {row0} + j;", names.index));
        kernel.open(&format!("if ({row} < {end}) {{"));
        names.decode(kernel, self.rows(), row, &|var| !names.is_narrow(var))?;
        kernel.unrolled("f", self.count());
        let few = if self.rows_are_few { &names.row } else { &names.column };
        kernel.line(&format!("const {} {few} = f;", names.index));
        names.decode(kernel, self.few(), few, &|var| !names.is_narrow(var))?;
        finish_element(kernel, problem, &format!("{}[f][j]", names.sums), None)?;
        (0..4).for_each(|_| kernel.close());
        Ok(())
    }
}

/// Emits one vector load into `to`, under the element's condition if there is one. The load begins at the factor's
/// element at index `number` of `axis` and at the current K index.
fn read_pack(
    kernel: &mut Kernel<'_>,
    names: &GemmNames,
    problem: &Problem,
    (factor, axis): (&Factor, &Axis),
    (line, number): (&str, &str),
    (to, pack): (&str, &str),
) -> Result<(), String> {
    let (index, sum, sum0) = (names.index, &names.sum_index, &names.sum0);
    let used = |var: rx_tir::VarId| factor.value.uses(var);
    kernel.line(&format!("const {index} {line} = {number}, {sum} = {sum0};"));
    names.decode(kernel, axis, line, &used)?;
    names.decode(kernel, &problem.k, sum, &used)?;
    let element =
        factor.element.as_ref().ok_or("requires a factor that is a buffer element; found a computed value")?;
    let place = kernel.place(element.buffer, &element.read)?;
    let condition = match &element.counts {
        None => String::new(),
        Some(condition) => format!("if ({}) ", kernel.operand(condition, 0)?),
    };
    kernel.line(&format!("{condition}{to} = *(const {pack}*)&{place};"));
    Ok(())
}
