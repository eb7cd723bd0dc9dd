//! Prints the kernels of a sort. The sorted elements are pairs of key and position, of type `rx_ranked32` or
//! `rx_ranked64` (named by the bits of the key).

use crate::printer::Kernel;
use crate::printer::expr::{PRODUCT, RELATION};
use crate::rules::row_pipeline::vectors::when;
use crate::rules::{Frame, KernelBody};
use crate::source::LaunchShape;
use rx_loops::Ranking;
use rx_tir::{Expr, Stmt, VarId};

/// Maximum number of runs that one merge combines into one run.
pub(super) const AT_ONCE: i64 = 8;

/// Limit of the shared memory for the elements that a block sorts, in bytes.
const SHARED_BYTES: i64 = 32 << 10;

/// Number of elements, with padding, of the rows that a block sorts at once if they are short and of constant length:
/// several rows, or one. A row with more elements is not sorted together with others.
const USUAL: i64 = 1024;

/// Limit of the threads of a block that sorts.
const THREADS: i64 = 512;

/// Threads of a block that merges or stores, or that sorts whole rows of symbolic length.
const PLAIN_THREADS: i64 = 256;

/// The matched statements: the ranking, and the stores by rank.
pub(super) struct Problem {
    /// The ranking statement.
    pub(super) ranking: Ranking,
    /// The number of elements of a row, an `int64`.
    pub(super) length: Expr,
    /// The loops that select a row, outermost first, with their extents, `int64`.
    pub(super) rows: Vec<(VarId, Expr)>,
    /// The stores of an element, in which a load from the buffer of ranks is the element's rank.
    pub(super) stores: Stmt,
    /// Only ranks below this `int64` are stored; `None`: all.
    pub(super) taken: Option<Expr>,
    /// The ranking statement and the statement with the stores.
    pub(super) statements: Vec<Stmt>,
    /// Whether keys have 64 bits; narrower ones are sorted as 32 bits.
    pub(super) is_wide: bool,
}

impl Problem {
    /// Returns the bytes of a key with its position.
    pub(super) fn bytes(&self) -> i64 {
        if self.is_wide { 16 } else { 8 }
    }

    /// Returns the number of elements of a tile: the most that a block sorts at once in shared memory.
    pub(super) fn tile(&self) -> i64 {
        SHARED_BYTES / self.bytes()
    }

    /// Returns the number of rows, an `int64`.
    pub(super) fn row_count(&self) -> Expr {
        self.rows.iter().fold(Expr::int(1), |all, (_, extent)| all * extent.clone())
    }

    /// Returns the number of tiles of a row, an `int64`.
    pub(super) fn tiles(&self) -> Expr {
        (self.length.clone() + Expr::int(self.tile() - 1)).floor_div(Expr::int(self.tile()))
    }

    /// Returns the power of two that a row is padded to in shared memory; `None` if its length is unknown, or exceeds a
    /// tile.
    fn size(&self) -> Option<i64> {
        let length = self.length.as_int().filter(|length| *length <= self.tile())?;
        Some(length.max(2).cast_unsigned().next_power_of_two().cast_signed())
    }

    /// Returns the number of rows that a block sorts at once.
    pub(super) fn rows_at_once(&self) -> i64 {
        self.size().map_or(1, |size| (USUAL / size).max(1))
    }

    /// Returns the C type of a key with its position.
    fn ranked(&self) -> &'static str {
        if self.is_wide { "rx_ranked64" } else { "rx_ranked32" }
    }

    /// Returns the key of padding, as C text: the largest one. Padding has larger positions than elements, so it sorts
    /// after all of them.
    fn last_key(&self) -> &'static str {
        if self.is_wide { "~0ULL" } else { "~0U" }
    }
}

/// The part of the work that a kernel does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Sorts whole rows in shared memory, and stores the elements.
    Rows,
    /// Sorts each tile, a part of a row; `keep` is the number of its first elements that are stored (in scratch
    /// memory), `None` for all.
    Tiles { keep: Option<i64> },
    /// Sorts the elements of a row that its tiles kept (`keep` each), and stores the first ones as results.
    Firsts { keep: i64 },
    /// Merges groups of up to [`AT_ONCE`] sorted runs of `run` elements into one run each; `number` counts the merges
    /// from 0.
    Merge { run: i64, number: usize },
    /// Stores the merged elements.
    Store,
}

/// A kernel of a sort.
pub(super) struct SortKernel {
    /// The matched statements.
    pub(super) problem: std::rc::Rc<Problem>,
    /// The part of the work that it does.
    pub(super) step: Step,
    /// The condition for launching it; where it is false, other kernels sort the rows, or a merge is not needed.
    pub(super) condition: Option<Expr>,
}

impl KernelBody for SortKernel {
    fn frame(&self) -> Frame<'_> {
        let problem = &self.problem;
        let rows = problem.row_count();
        let plain = |each: Expr| {
            let blocks = (each + Expr::int(PLAIN_THREADS - 1)).floor_div(Expr::int(PLAIN_THREADS));
            (rows.clone() * blocks, PLAIN_THREADS)
        };
        let (blocks, threads) = match self.step {
            Step::Rows => {
                let at_once = problem.rows_at_once();
                let all = problem.size().map_or(2 * PLAIN_THREADS, |size| size * at_once);
                let rows = (rows.clone() + Expr::int(at_once - 1)).floor_div(Expr::int(at_once));
                (rows, (all / 2).clamp(32, THREADS))
            }
            Step::Tiles { .. } => (rows.clone() * problem.tiles(), THREADS),
            Step::Firsts { .. } => (rows.clone(), THREADS),
            Step::Merge { .. } => plain(problem.length.clone()),
            Step::Store => plain(self.stored()),
        };
        let blocks = when(&self.condition, blocks);
        Frame {
            // Counts elements: the loops that count ranks, quadratic in the length, are not executed.
            work: Some(rows * problem.length.clone()),
            kept: vec![problem.ranking.buffer],
            own_names: &["ranked", "size", "at", "row", "tile", "i", "rank", "own", "run", "merges", "first", "from"],
            ..Frame::new(LaunchShape::blocks(blocks, threads as u32), &problem.statements)
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        kernel.need("rx_ranked");
        match self.step {
            Step::Rows => self.rows(kernel),
            Step::Tiles { keep } => self.tiles(kernel, keep),
            Step::Firsts { keep } => self.firsts(kernel, keep),
            Step::Merge { run, number } => self.merge(kernel, run, number),
            Step::Store => self.store(kernel),
        }
    }
}

impl SortKernel {
    /// Returns the number of elements of a row that are stored, an `int64`.
    fn stored(&self) -> Expr {
        match &self.problem.taken {
            Some(taken) => taken.clone().min(self.problem.length.clone()).max(Expr::int(0)),
            None => self.problem.length.clone(),
        }
    }

    /// Returns the number of elements of a row as C text.
    fn length(&self, kernel: &mut Kernel<'_>) -> Result<String, String> {
        kernel.operand(&self.problem.length, PRODUCT + 1)
    }

    /// Declares the row axes from the row's number, the C variable `row`.
    fn name_row(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let rows = &self.problem.rows;
        for (at, (var, extent)) in rows.iter().enumerate() {
            let below = rows[at + 1..].iter().fold(Expr::int(1), |all, (_, extent)| all * extent.clone());
            let value = kernel.delinearized("row", &below, (at > 0).then_some(extent))?;
            self.name(kernel, *var, &value)?;
        }
        Ok(())
    }

    /// Declares a constant for a loop's variable.
    fn name(&self, kernel: &mut Kernel<'_>, var: VarId, value: &str) -> Result<(), String> {
        let ctype = kernel.ctype(kernel.dtype_of(var))?;
        let name = kernel.bind(var);
        kernel.name_var(var, &name, true);
        kernel.line(&format!("const {ctype} {name} = {value};"));
        Ok(())
    }

    /// Prints the store of element `i`'s key and position to the C place `to`.
    fn key(&self, kernel: &mut Kernel<'_>, to: &str) -> Result<(), String> {
        let ranking = &self.problem.ranking;
        self.name_row(kernel)?;
        self.name(kernel, ranking.along, "i")?;
        let key = kernel.assigned(&ranking.key, ranking.key.dtype())?;
        let ctype = kernel.ctype(ranking.key.dtype())?;
        let not = if ranking.is_descending { "~" } else { "" };
        kernel.line(&format!("{to} = rx_rank({not}rx_sort_key(({ctype})({key})), (unsigned)i);"));
        Ok(())
    }

    /// Prints the stores of the element whose rank is the C variable `rank`. `from` is its key and position as C text.
    fn stores(&self, kernel: &mut Kernel<'_>, from: &str) -> Result<(), String> {
        let ranking = &self.problem.ranking;
        self.name_row(kernel)?;
        self.name(kernel, ranking.along, &format!("rx_place({from})"))?;
        kernel.hold(ranking.buffer, "rank");
        kernel.stmt(&self.problem.stores)
    }

    /// Prints the kernel that sorts whole rows.
    fn rows(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let problem = &self.problem;
        kernel.need("rx_sort");
        let length = self.length(kernel)?;
        let rows = kernel.operand(&problem.row_count(), RELATION + 1)?;
        let stored = kernel.operand(&self.stored(), RELATION + 1)?;
        let at_once = problem.rows_at_once();
        let (size, all) = match problem.size() {
            Some(size) => (size.to_string(), size * at_once),
            None => ("size".to_owned(), problem.tile()),
        };
        kernel.line(&format!("__shared__ {} ranked[{all}];", problem.ranked()));
        let all = match problem.size() {
            Some(_) => all.to_string(),
            None => {
                kernel.line("int size = 2;");
                kernel.line(&format!("while (size < {length}) size *= 2;"));
                size.clone()
            }
        };
        let (i, row) = match at_once {
            1 => ("at".to_owned(), "blockIdx.x".to_owned()),
            _ => (format!("at % {size}"), format!("(long long)blockIdx.x * {at_once} + at / {size}")),
        };
        let each = format!("for (int at = threadIdx.x; at < {all}; at += blockDim.x) {{");
        kernel.line("// Load keys; padding after the end of a row sorts last.");
        kernel.open(&each);
        kernel.line(&format!("const long long row = {row};"));
        kernel.line(&format!("const int i = {i};"));
        kernel.line(&format!("ranked[at] = rx_rank({}, (unsigned)i);", problem.last_key()));
        kernel.open(&format!("if (row < {rows} && i < {length}) {{"));
        self.key(kernel, "ranked[at]")?;
        kernel.close();
        kernel.close();
        kernel.line(&format!("rx_sort(ranked, {size}, {all});"));
        kernel.open(&each);
        kernel.line(&format!("const long long row = {row};"));
        kernel.line(&format!("const long long rank = {i};"));
        kernel.open(&format!("if (row < {rows} && rank < {stored}) {{"));
        self.stores(kernel, "ranked[at]")?;
        kernel.close();
        kernel.close();
        Ok(())
    }

    /// Prints the kernel that sorts tiles.
    fn tiles(&self, kernel: &mut Kernel<'_>, keep: Option<i64>) -> Result<(), String> {
        let problem = &self.problem;
        kernel.need("rx_sort");
        let to = kernel.scratch_buffer(0, if keep.is_some() { "firsts" } else { "sorted" }, problem.ranked());
        let length = self.length(kernel)?;
        let tiles = kernel.operand(&problem.tiles(), PRODUCT + 1)?;
        let tile = problem.tile();
        kernel.line(&format!("__shared__ {} ranked[{tile}];", problem.ranked()));
        kernel.line(&format!("const long long row = blockIdx.x / {tiles}, tile = blockIdx.x % {tiles};"));
        kernel.line("// Load keys; padding after the end of a row sorts last.");
        kernel.open(&format!("for (int at = threadIdx.x; at < {tile}; at += blockDim.x) {{"));
        kernel.line(&format!("const long long i = tile * {tile} + at;"));
        kernel.line(&format!("ranked[at] = rx_rank({}, (unsigned)i);", problem.last_key()));
        kernel.open(&format!("if (i < {length}) {{"));
        self.key(kernel, "ranked[at]")?;
        kernel.close();
        kernel.close();
        kernel.line(&format!("rx_sort(ranked, {tile}, {tile});"));
        match keep {
            Some(keep) => {
                kernel.open(&format!("for (int at = threadIdx.x; at < {keep}; at += blockDim.x) {{"));
                kernel.line(&format!("{to}[(row * {tiles} + tile) * {keep} + at] = ranked[at];"));
            }
            None => {
                kernel.open(&format!("for (int at = threadIdx.x; at < {tile}; at += blockDim.x) {{"));
                let place = format!("tile * {tile} + at");
                kernel.line(&format!("if ({place} < {length}) {to}[row * {length} + {place}] = ranked[at];"));
            }
        }
        kernel.close();
        Ok(())
    }

    /// Prints the kernel that sorts the elements that tiles kept. Shared memory holds the first `keep` of the elements
    /// so far; each iteration sorts as many others as fit together with these.
    fn firsts(&self, kernel: &mut Kernel<'_>, keep: i64) -> Result<(), String> {
        let problem = &self.problem;
        kernel.need("rx_sort");
        let from = kernel.scratch_buffer(0, "firsts", problem.ranked());
        let tiles = kernel.operand(&problem.tiles(), PRODUCT + 1)?;
        let stored = kernel.operand(&self.stored(), RELATION + 1)?;
        let tile = problem.tile();
        kernel.line(&format!("__shared__ {} ranked[{tile}];", problem.ranked()));
        kernel.line("const long long row = blockIdx.x;");
        kernel.line(&format!("const long long all = {tiles} * {keep};"));
        kernel.line("// Merge the first elements so far with as many others as fit.");
        kernel.open(&format!("for (long long first = 0; first < all; first += {}) {{", tile - keep));
        kernel.open(&format!("for (int at = threadIdx.x; at < {tile}; at += blockDim.x) {{"));
        kernel.line(&format!("const long long other = first + at - {keep};"));
        kernel.line("const bool is_other = other >= first && other < all;");
        // Padding has positions that no element has, so that no two entries are equal.
        let none = format!("rx_rank({}, 0x80000000U + (unsigned)at)", problem.last_key());
        kernel.line(&format!("if (is_other) ranked[at] = {from}[row * all + other];"));
        kernel.line(&format!("else if (at >= {keep} || first == 0) ranked[at] = {none};"));
        kernel.close();
        kernel.line(&format!("rx_sort(ranked, {tile}, {tile});"));
        kernel.close();
        kernel.open(&format!("for (int at = threadIdx.x; at < {stored}; at += blockDim.x) {{"));
        kernel.line("const long long rank = at;");
        self.stores(kernel, "ranked[at]")?;
        kernel.close();
        Ok(())
    }

    /// Declares the thread's row, and its position `at` among the `count` positions of the row. Threads beyond them
    /// exit.
    fn thread(&self, kernel: &mut Kernel<'_>, count: &str, at: &str) {
        let blocks = format!("(({count} + {}) / {PLAIN_THREADS})", PLAIN_THREADS - 1);
        kernel.line(&format!("const long long row = blockIdx.x / {blocks};"));
        kernel.line(&format!("const long long {at} = blockIdx.x % {blocks} * {PLAIN_THREADS} + threadIdx.x;"));
        kernel.line(&format!("if ({at} >= {count}) return;"));
    }

    /// Prints the kernel of one merge. Each thread finds the position of one element.
    fn merge(&self, kernel: &mut Kernel<'_>, run: i64, number: usize) -> Result<(), String> {
        let problem = &self.problem;
        kernel.need("rx_count_before");
        let sorted = kernel.scratch_buffer(0, "sorted", problem.ranked());
        let merged = kernel.scratch_buffer(1, "merged", problem.ranked());
        let (from, to) = if number.is_multiple_of(2) { (sorted, merged) } else { (merged, sorted) };
        let length = self.length(kernel)?;
        self.thread(kernel, &length, "at");
        kernel.line(&format!("const {0}* from = {from} + row * {length};", problem.ranked()));
        kernel.line(&format!("const {} own = from[at];", problem.ranked()));
        kernel.line(&format!("const long long first = at / {0} * {0};", run * AT_ONCE));
        kernel.line(&format!("long long rank = at % {run};"));
        kernel.unrolled("run", AT_ONCE);
        kernel.line(&format!("const long long start = first + run * {run}LL;"));
        kernel.line(&format!("const long long left = {length} - start, count = left < {run} ? left : {run};"));
        kernel.line(&format!("if (start != at / {run} * {run}) rank += rx_count_before(from + start, count, own);"));
        kernel.close();
        kernel.line(&format!("{to}[row * {length} + first + rank] = own;"));
        Ok(())
    }

    /// Prints the kernel that stores the merged elements. Merges alternate between two buffers, so their number
    /// determines which one has the result.
    fn store(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let problem = &self.problem;
        let sorted = kernel.scratch_buffer(0, "sorted", problem.ranked());
        let merged = kernel.scratch_buffer(1, "merged", problem.ranked());
        let length = self.length(kernel)?;
        let stored = kernel.operand(&self.stored(), PRODUCT + 1)?;
        self.thread(kernel, &stored, "rank");
        kernel.line("int merges = 0;");
        let step = format!("for (long long run = {}; run < {length}; run *= {AT_ONCE}) ++merges;", problem.tile());
        kernel.line(&step);
        let from = format!("(merges % 2 ? {merged} : {sorted})[row * {length} + rank]");
        kernel.line(&format!("const {} own = {from};", problem.ranked()));
        self.stores(kernel, "own")
    }
}
