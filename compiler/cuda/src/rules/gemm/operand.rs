//! A factor's tile: its layout in shared memory, and how the threads of a block load it.
//!
//! A tile is `rows` (M or N) by `tiling.k` (K). Threads load it in chunks of up to 16 bytes along one axis. Layouts, as
//! indices of an array whose last index is contiguous:
//!
//! ```text
//! Unit::Threads                          [k][row], lines padded by 16 bytes
//! Unit::Warps, Major::K (K-major)        [row][k], swizzled in 16-byte chunks
//! Unit::Warps, Major::Mn (MN-major)      [k][row], swizzled in 16-byte chunks
//!     with Mma::Warpgroup (wgmma)        [row / 64][k][row % 64], swizzled in 16-byte chunks
//! ```
//!
//! [`super::kernel`] uses it for each operand; [`super::warps`] and [`super::threads`] read the tiles.

mod separable;

use super::names::GemmNames;
use super::problem::{Axis, Element, Factor};
use super::separable::SeparableAddress;
use super::tiles::{Fragment, Mma, Tiling, Unit, sum_type};
use crate::printer::{Kernel, expr, types};
use rx_base::DType;
use rx_tir::Expr;

/// The axis along which the elements of a chunk are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Major {
    /// The free axis (MN-major): the rows of `A`, the columns of `B`.
    Mn,
    /// The K axis (K-major): a chunk has consecutive K values of one row. They need not be contiguous in global memory.
    K,
}

/// How a chunk gets from global to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// `cp.async`, which bypasses registers. Requires 16 aligned bytes that are contiguous in global memory and need no
    /// conversion.
    CpAsync,
    /// One vector load to registers. The iteration stores them to shared memory after the code that multiplies an
    /// earlier tile ([`super::kernel`]).
    Vectorized,
    /// As [`Load::Vectorized`], but the elements are computed or loaded one by one.
    Elementwise,
}

/// The tile of one factor, and how it is loaded.
pub(crate) struct Operand<'p> {
    /// Which factor: `a` or `b`.
    pub(crate) side: char,
    factor: &'p Factor,
    /// The factor's free axis: M for `a`, N for `b`.
    free: &'p Axis,
    /// The tile's extent along the free axis. "Row" means an index on that axis, for `b` as well.
    pub(crate) rows: i64,
    sum: &'p Axis,
    /// The number of elements of a chunk: as many as fill 16 bytes, but with [`Unit::Threads`] 1 if they are not loaded
    /// in vectors.
    pub(crate) chunk: i64,
    pub(crate) along: Major,
    way: Load,
    /// Whether consecutive threads load consecutive chunks along the free axis; otherwise they load them along K.
    rows_first: bool,
    /// The C type of an element in shared memory.
    pub(crate) element: &'static str,
    tiling: Tiling,
    /// The dtype of [`Factor::in_tile`]. Its storage helper, if it has one, must be emitted.
    storage: DType,
}

impl<'p> Operand<'p> {
    /// Chooses the layout of the tile and how its chunks are loaded.
    ///
    /// # Errors
    /// No accumulator type exists for the dtype.
    pub(crate) fn new(
        side: char,
        factor: &'p Factor,
        (free, rows): (&'p Axis, i64),
        sum: &'p Axis,
        tiling: Tiling,
        dtype: DType,
    ) -> Result<Operand<'p>, String> {
        let in_tile = factor.in_tile(tiling.unit);
        let contiguous =
            |element: &Element, axis: &Axis| axis.last().is_some_and(|(var, _)| element.is_contiguous(var));
        let by_rows = factor.element.as_ref().is_some_and(|element| contiguous(element, free));
        let by_sums = factor.element.as_ref().is_some_and(|element| contiguous(element, sum));
        let (mut along, mut chunk, mut way) =
            (if by_rows && !by_sums { Major::Mn } else { Major::K }, 1, Load::Elementwise);
        let mut rows_first = along == Major::Mn;
        let element = match tiling.unit {
            Unit::Threads { .. } => {
                let (ctype, bytes) = sum_type(dtype)?;
                let axis = if along == Major::Mn { free } else { sum };
                // Only values that need no conversion are loaded in vectors.
                let plain = matches!(in_tile, Expr::Load { .. } | Expr::Select { .. }) && types::is_native_float(dtype);
                if plain && factor.element.as_ref().is_some_and(|one| one.is_in_chunks(axis, 16 / bytes)) {
                    (way, chunk) = (Load::Vectorized, 16 / bytes);
                } else if factor.element.is_none() || by_rows {
                    // Values that are no affine element, or contiguous along rows: consecutive threads load
                    // consecutive rows.
                    (along, rows_first) = (Major::Mn, true);
                }
                ctype
            }
            Unit::Warps { kind, .. } => {
                chunk = 16 / kind.bytes();
                if kind.bytes() != 2 {
                    // `ldmatrix.trans` transposes 16-bit elements only.
                    along = Major::K;
                }
                // 16-bit data that is contiguous along both innermost loops, but whose chunks along K cannot each be
                // loaded at once, is MN-major as well: all elements of a chunk then have the same K value, which is
                // decoded once per chunk. For this, each chunk must lie within one run of the innermost free loop, and
                // the row parts must grow by constants along it ([`SeparableAddress::steps`]).
                let in_line = |separable: &SeparableAddress| {
                    kind.bytes() == 2 && by_rows && is_even(free, chunk) && separable.steps.is_some()
                };
                let in_chunks = factor.element.as_ref().is_some_and(|one| one.is_in_chunks(sum, chunk));
                if !in_chunks && factor.separable.as_ref().is_some_and(in_line) {
                    (along, rows_first) = (Major::Mn, true);
                }
                let axis = if along == Major::Mn { free } else { sum };
                let same = types::storage(in_tile.dtype()) == Some(storage_of(kind, side));
                if same && factor.element.as_ref().is_some_and(|one| one.is_in_chunks(axis, chunk)) {
                    (way, rows_first) = (Load::CpAsync, along == Major::Mn);
                }
                storage_of(kind, side)
            }
        };
        let storage = in_tile.dtype();
        Ok(Operand { side, factor, free, rows, sum, chunk, along, way, rows_first, element, tiling, storage })
    }

    /// Returns the number of elements of a line of the tile, padding included. In the layout `[k][row]`, a line has the
    /// elements of all rows at one K value, otherwise those of one row at all K values. Lines are stored one after the
    /// other, except in an MN-major tile of `wgmma`: it consists of panels, each of which has a part of every line.
    pub(crate) fn line(&self) -> i64 {
        match (self.tiling.unit, self.along) {
            // 16 bytes of padding, so that consecutive lines begin in different banks.
            (Unit::Threads { .. }, _) => self.rows + 16 / self.bytes(),
            (Unit::Warps { .. }, Major::Mn) => self.rows,
            (Unit::Warps { .. }, Major::K) => self.tiling.k,
        }
    }

    /// Returns the number of lines of the tile.
    fn lines(&self) -> i64 {
        match (self.tiling.unit, self.along) {
            (Unit::Threads { .. }, _) | (Unit::Warps { .. }, Major::Mn) => self.tiling.k,
            (Unit::Warps { .. }, Major::K) => self.rows,
        }
    }

    /// Returns the elements of one tile in shared memory, padding included.
    pub(crate) fn elements(&self) -> i64 {
        self.line() * self.lines()
    }

    /// Returns the bytes of shared memory that all stages of the operand need.
    pub(crate) fn shared_bytes(&self) -> i64 {
        self.elements() * self.bytes() * self.tiling.stages
    }

    /// Returns the size of an element in shared memory, in bytes.
    fn bytes(&self) -> i64 {
        match (self.tiling.unit, self.element) {
            (Unit::Warps { kind, .. }, _) => kind.bytes(),
            (Unit::Threads { .. }, "double" | "unsigned long long") => 8,
            (Unit::Threads { .. }, _) => 4,
        }
    }

    /// Whether chunks pass through registers (anything but `cp.async`).
    pub(crate) fn is_staged(&self) -> bool {
        self.way != Load::CpAsync
    }

    /// Returns the number of chunks that each thread loads per tile.
    fn own(&self) -> i64 {
        self.rows * self.tiling.k / self.chunk / self.tiling.threads()
    }

    /// Returns the C type of a chunk.
    fn chunk_type(&self) -> String {
        match self.chunk {
            1 => self.element.to_owned(),
            chunk => format!("rx_pack<{}, {chunk}>", self.element),
        }
    }

    /// Returns the offset of a chunk in its tile, in elements, as CUDA text. `line` is a name; `chunk` is the position
    /// on the line, in chunks. The tiles that tensor cores read are swizzled: the position is XORed with the line
    /// number modulo 8, so that the chunks of eight consecutive lines at one position are in different banks. For
    /// example, with 8 chunks per line, chunk 3 of line 5 is at position 3 ^ 5 = 6. With 4 chunks per line, two lines
    /// cover all banks, so the position is XORed with `line / 2 % 4`.
    pub(crate) fn place(&self, line: &str, chunk: &str) -> String {
        let chunk = if chunk.contains(' ') { format!("({chunk})") } else { chunk.to_owned() };
        if let (Unit::Warps { mma: Mma::Warpgroup, .. }, Major::Mn) = (self.tiling.unit, self.along) {
            // Panels of 64 elements, as `wgmma` reads them.
            return format!("{chunk} / 8 * {} + {line} * 64 + ({chunk} % 8 ^ {line} % 8) * 8", self.tiling.k * 64);
        }
        let per_line = self.line() / self.chunk;
        let mixed = match per_line {
            4 => format!("{line} / 2 % 4"),
            _ => format!("{line} % 8"),
        };
        format!("{line} * {} + ({chunk} ^ {mixed}) * {}", self.line(), self.chunk)
    }

    /// Returns the comment on this load for the emitted kernel and the schedule's note.
    pub(crate) fn comment(&self) -> String {
        let loads = match self.way {
            Load::CpAsync => "16-byte cp.async copies",
            Load::Vectorized => "16-byte loads",
            Load::Elementwise => "single-element loads",
        };
        let along = match (self.along, self.side) {
            (Major::K, _) => "K",
            (Major::Mn, 'a') => "M",
            (Major::Mn, _) => "N",
        };
        format!("{}: {loads} along {along}", self.side.to_ascii_uppercase())
    }

    /// Declares the registers for staged chunks, and declares and computes the row part of separable addresses.
    pub(crate) fn declare(&self, kernel: &mut Kernel<'_>, names: &GemmNames) -> Result<(), String> {
        self.keep_rows(kernel, names)?;
        if self.chunk > 1 {
            kernel.need("rx_pack");
        }
        if self.is_staged() {
            kernel.line(&format!("{} {}[{}];", self.chunk_type(), names.next(self.side), self.own()));
        }
        Ok(())
    }

    /// Emits the loads of this thread's chunks of the K tile that begins at `sum0`: to registers if the operand is
    /// staged, otherwise as asynchronous copies to shared memory.
    pub(crate) fn load(&self, kernel: &mut Kernel<'_>, names: &GemmNames) -> Result<(), String> {
        if let Some(helper) = types::helper(self.storage) {
            kernel.need(helper);
        }
        if let Some(separable) = self.separable() {
            return self.load_separable(kernel, names, separable);
        }
        kernel.unrolled("i", self.own());
        self.at(kernel);
        let (free, sum) = (names.free(self.side), &names.sum_index);
        let index = names.index;
        kernel.line(&format!("const {index} {free} = {} + row, {sum} = {} + k;", names.free0(self.side), names.sum0));
        match self.way {
            Load::Elementwise if self.chunk == 1 => {
                kernel.line(&format!("{} value = 0;", self.element));
                self.guarded(kernel, names, |operand, kernel| {
                    let value = operand.value(kernel)?;
                    kernel.line(&format!("value = {value};"));
                    Ok(())
                })?;
                kernel.line(&format!("{}[i] = value;", names.next(self.side)));
            }
            Load::Elementwise => self.gather(kernel, names)?,
            Load::Vectorized => {
                let chunk = self.chunk_type();
                kernel.line(&format!("{chunk} value = {{}};"));
                self.guarded(kernel, names, |operand, kernel| {
                    let place = operand.chunk_at(kernel)?;
                    let condition = operand.where_it_counts(kernel)?;
                    kernel.line(&format!("{condition}value = *(const {chunk}*)&{place};"));
                    Ok(())
                })?;
                kernel.line(&format!("{}[i] = value;", names.next(self.side)));
            }
            Load::CpAsync => {
                kernel.need("rx_copy16");
                kernel.line("const void* from = nullptr;");
                self.guarded(kernel, names, |operand, kernel| {
                    let place = operand.chunk_at(kernel)?;
                    let condition = operand.where_it_counts(kernel)?;
                    kernel.line(&format!("{condition}from = &{place};"));
                    Ok(())
                })?;
                let to = self.destination();
                kernel.line(&format!("rx_copy16(&{}[{to}], from);", names.to(self.side)));
            }
        }
        kernel.close();
        Ok(())
    }

    /// Emits the load of a chunk whose elements are loaded one by one.
    fn gather(&self, kernel: &mut Kernel<'_>, names: &GemmNames) -> Result<(), String> {
        kernel.line(&format!("{} value = {{}};", self.chunk_type()));
        kernel.unrolled("j", self.chunk);
        let moved = if self.along == Major::Mn { names.free(self.side) } else { names.sum_index.as_str() };
        let index = names.index;
        let inner = format!("{moved}_j");
        kernel.line(&format!("const {index} {inner} = {moved} + j;"));
        let names = names.moved(self.side, self.along == Major::Mn, &inner);
        self.guarded(kernel, &names, |operand, kernel| {
            let value = operand.value(kernel)?;
            kernel.line(&format!("value.at[j] = {value};"));
            Ok(())
        })?;
        kernel.close();
        kernel.line(&format!("{}[i] = value;", names.next(self.side)));
        Ok(())
    }

    /// Emits `row` and `k`: the indices in the tile at which the thread's chunk `i` begins.
    fn at(&self, kernel: &mut Kernel<'_>) {
        kernel.line(&format!("const int at = threadIdx.x + i * {};", self.tiling.threads()));
        let (row, k) = self.row_and_sum();
        kernel.line(&format!("const int row = {row}, k = {k};"));
    }

    /// Returns the texts of `row` and `k` for the chunk number `at`.
    fn row_and_sum(&self) -> (String, String) {
        let (rows, depth, chunk) = (self.rows, self.tiling.k, self.chunk);
        let scaled = |text: String, along: bool| if along && chunk > 1 { format!("{text} * {chunk}") } else { text };
        let (row, k) = match (self.rows_first, self.along) {
            (true, Major::Mn) => (format!("at % {}", rows / chunk), format!("at / {}", rows / chunk)),
            (true, Major::K) => (format!("at % {rows}"), format!("at / {rows}")),
            (false, Major::K) => (format!("at / {}", depth / chunk), format!("at % {}", depth / chunk)),
            (false, Major::Mn) => (format!("at / {depth}"), format!("at % {depth}")),
        };
        (scaled(row, self.along == Major::Mn), scaled(k, self.along == Major::K))
    }

    /// Emits `inner`, guarded by the bounds of ragged tiles, with the values of the factor's loops in scope.
    fn guarded(
        &self,
        kernel: &mut Kernel<'_>,
        names: &GemmNames,
        inner: impl FnOnce(&Operand<'_>, &mut Kernel<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut conditions = Vec::new();
        if self.free.constant().is_none_or(|extent| extent % self.rows != 0) {
            conditions.push(format!("{} < {}", names.free(self.side), names.free_end(self.side)));
        }
        if !names.sum_is_whole {
            conditions.push(format!("{} < {}", names.sum_index, names.sum_end));
        }
        match conditions.is_empty() {
            true => kernel.open("{"),
            false => kernel.open(&format!("if ({}) {{", conditions.join(" && "))),
        }
        let used = |var: rx_tir::VarId| self.factor.value.uses(var);
        names.decode(kernel, self.free, names.free(self.side), &used)?;
        names.decode(kernel, self.sum, &names.sum_index, &used)?;
        inner(self, kernel)?;
        kernel.close();
        Ok(())
    }

    /// Returns the text of the factor's element in the form that shared memory holds.
    fn value(&self, kernel: &mut Kernel<'_>) -> Result<String, String> {
        let value = self.factor.in_tile(self.tiling.unit);
        match self.tiling.unit {
            Unit::Threads { .. } => {
                let text = kernel.operand(value, expr::UNARY)?;
                Ok(match self.element {
                    "float" | "double" => text,
                    wrapping => format!("({wrapping}){text}"),
                })
            }
            Unit::Warps { .. } => raw(kernel, value),
        }
    }

    /// Returns the text of the chunk's first element in global memory.
    fn chunk_at(&self, kernel: &mut Kernel<'_>) -> Result<String, String> {
        let element = self.element_of()?;
        kernel.place(element.buffer, &element.read)
    }

    /// Returns the `if` under which the element is read; empty if it is always read.
    fn where_it_counts(&self, kernel: &mut Kernel<'_>) -> Result<String, String> {
        match &self.element_of()?.counts {
            None => Ok(String::new()),
            Some(condition) => Ok(format!("if ({}) ", kernel.operand(condition, 0)?)),
        }
    }

    /// Returns the factor's separable address (row part + K part, [`SeparableAddress`]). Returns `None` if the factor
    /// has none or if the loads cannot use it. The address of each chunk or element is then computed from the values of
    /// the loops.
    fn separable(&self) -> Option<&'p SeparableAddress> {
        let factor = self.factor;
        let separable = factor.separable.as_ref()?;
        // A thread keeps the row part of a chunk's first element only. Elements along K have the same row part.
        // Elements along rows need no other row part if one load reads the chunk. If they are loaded one by one, their
        // row parts must be constant steps from the first one, so the chunk must lie within one run of the innermost
        // free loop.
        let in_line = || separable.steps.is_some() && is_even(self.free, self.chunk);
        let reported = self.chunk == 1 || self.along == Major::K || self.way != Load::Elementwise || in_line();
        reported.then_some(separable)
    }

    fn element_of(&self) -> Result<&Element, String> {
        self.factor
            .element
            .as_ref()
            .ok_or_else(|| "requires a factor that is a buffer element; found a computed value".to_owned())
    }

    /// Returns the offset in the tile of the chunk that begins at `row` and `k`.
    fn destination(&self) -> String {
        match (self.tiling.unit, self.along) {
            (Unit::Threads { .. }, _) => format!("k * {} + row", self.line()),
            (Unit::Warps { .. }, Major::Mn) => self.place("k", &format!("row / {}", self.chunk)),
            (Unit::Warps { .. }, Major::K) => self.place("row", &format!("k / {}", self.chunk)),
        }
    }

    /// Emits the stores of the staged chunks to the tile `to`.
    pub(crate) fn store(&self, kernel: &mut Kernel<'_>, names: &GemmNames) {
        if !self.is_staged() {
            return;
        }
        kernel.unrolled("i", self.own());
        self.at(kernel);
        let (to, next, place) = (names.to(self.side), names.next(self.side), self.destination());
        let transposed = matches!(self.tiling.unit, Unit::Threads { .. }) && self.along == Major::K && self.chunk > 1;
        match (self.chunk, transposed) {
            (1, _) => kernel.line(&format!("{to}[{place}] = {next}[i];")),
            (chunk, true) => {
                kernel.line("#pragma unroll");
                let line = self.line();
                kernel.line(&format!(
                    "for (int j = 0; j < {chunk}; ++j) {to}[(k + j) * {line} + row] = {next}[i].at[j];"
                ));
            }
            (_, false) => kernel.line(&format!("*({}*)&{to}[{place}] = {next}[i];", self.chunk_type())),
        }
        kernel.close();
    }
}

/// Whether the extent of the axis's innermost loop is a multiple of `count`.
fn is_even(axis: &Axis, count: i64) -> bool {
    axis.last().and_then(|(_, extent)| extent.as_int()).is_some_and(|extent| extent % count == 0)
}

/// Returns the C type of an element of the factor `side` in a tile that tensor cores read.
pub(crate) fn storage_of(kind: Fragment, side: char) -> &'static str {
    match kind {
        Fragment::F16 => "rx_f16",
        Fragment::Bf16 => "rx_bf16",
        Fragment::Tf32 => "float",
        Fragment::I8 { a_signed, b_signed } => match if side == 'a' { a_signed } else { b_signed } {
            true => "signed char",
            false => "unsigned char",
        },
    }
}

/// Returns the text of a value in its storage form. A loaded element is copied as it is: one of 16 bits without a
/// conversion to `float` and back.
fn raw(kernel: &mut Kernel<'_>, value: &Expr) -> Result<String, String> {
    let dtype = value.dtype();
    match value {
        Expr::Load { buffer, indices, .. } => kernel.place(*buffer, indices),
        Expr::Select { condition, then, otherwise }
            if matches!(**then, Expr::Load { .. }) && types::helper(dtype).is_some() =>
        {
            let condition = kernel.operand(condition, expr::OR)?;
            let (then, otherwise) = (raw(kernel, then)?, raw(kernel, otherwise)?);
            Ok(format!("{condition} ? {then} : {otherwise}"))
        }
        value => kernel.stored(value, dtype),
    }
}
