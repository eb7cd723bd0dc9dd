//! Schedule rule `transpose`: permutations of axes, by tiles of 32 x 32 elements in shared memory.
//!
//! ```text
//! for i, j: out[i, j] = f(x[j, i])
//! →
//! block (one tile): tile[y][threadIdx.x] = x[j0 + y, i0 + threadIdx.x]          // coalesced along i
//!                   __syncthreads()
//!                   out[i0 + y, j0 + threadIdx.x] = f(tile[threadIdx.x][y])     // coalesced along j
//! ```
//!
//! Requires: elementwise statements; an input that uses the result's last axis (`j`) but is contiguous along another
//! one (`i`); both axes at least 8 long, where their extents are constants; results that are contiguous along their
//! last axis; at most 24 KB of tiles. Guarantees: the reads to tiles and the writes are both coalesced; elementwise
//! operations are fused where the result is written.
//!
//! All inputs that use `j` and are contiguous along `i` are read through tiles. If several axes could be `i`, the last
//! one is chosen. All other inputs are read directly, even if they are transposed along another axis.
//!
//! Reference: TVM's `python/tvm/s_tir/dlight/gpu/transpose.py`.

use super::row_pipeline::lanes::Lanes;
use super::row_pipeline::print::Printer;
use super::row_pipeline::{Axis, Stages, product};
use super::{Declined, Frame, KernelBody, Rule, Schedule, Task};
use crate::printer::expr::{PRODUCT, RELATION};
use crate::printer::{Kernel, types};
use crate::source::LaunchShape;
use rx_loops::Multiples;
use rx_tir::{Expr, VarId};
use std::rc::Rc;

/// The rule `transpose`.
pub(super) const RULE: Rule = Rule {
    name: "transpose",
    summary: "Transposes: tiles of 32 x 32 elements in shared memory, so that both loads and stores are coalesced.",
    take,
};

/// Elements of a tile along each axis: the width of a warp.
const TILE: i64 = 32;

/// Threads of a block along the second axis; each processes 32 / 8 = 4 elements of a tile.
const DEPTH: i64 = 8;

/// The most bytes of tiles per block, so that several blocks fit on a multiprocessor.
const MOST_BYTES: i64 = 24 << 10;

/// The shortest axis for which tiles pay; shorter ones leave most of a tile empty.
const SHORT: i64 = 8;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = task.elements()?;
    let no_turn =
        || Declined::because("requires an input that is contiguous along another axis than the result; found none");
    let along = stages.columns.len().checked_sub(1).filter(|last| *last > 0).ok_or_else(no_turn)?;
    let written = stages.columns[along].var;
    let turned = |axis: &Axis| -> Vec<usize> {
        let is_turned = |at: &usize| {
            let element = &stages.reads[*at].element;
            element.is_sum() && element.stride(axis.var).as_constant() == Some(1) && element.uses(written)
        };
        (0..stages.reads.len()).filter(is_turned).collect()
    };
    let found = (0..along).rev().find(|at| !turned(&stages.columns[*at]).is_empty());
    let from = found.ok_or_else(no_turn)?;
    let reads = turned(&stages.columns[from]);
    for stage in stages.stages.iter().filter(|stage| stage.target.is_stored) {
        if stage.target.element.stride(written).as_constant() != Some(1) {
            return Err(Declined::because(
                "requires a result that is contiguous along its last axis; found a strided one",
            ));
        }
    }
    for at in [from, along] {
        if stages.columns[at].dim.as_constant().is_some_and(|extent| extent < SHORT) {
            return Err(Declined::because(format!("requires axes of at least {SHORT} elements; found a shorter one")));
        }
    }
    let bytes: i64 = reads.iter().map(|at| stages.reads[*at].dtype.bytes().cast_signed() * TILE * (TILE + 1)).sum();
    if bytes > MOST_BYTES {
        return Err(Declined::because(format!("requires tiles of at most {MOST_BYTES} bytes; found {bytes}")));
    }
    let note = format!("tiles of {TILE} x {TILE} elements, {bytes} bytes of shared memory");
    Ok(Schedule { note, ..Schedule::single(taken, TransposeKernel { stages, from, along, reads }) })
}

/// The kernel of a permutation by tiles.
struct TransposeKernel {
    stages: Rc<Stages>,
    /// The position, among the columns' axes, of the axis along which tiles are read.
    from: usize,
    /// The position of the last axis, along which the result is written.
    along: usize,
    /// The positions of the reads that go through tiles.
    reads: Vec<usize>,
}

impl TransposeKernel {
    /// Returns the number of tiles along an axis.
    fn tiles(&self, axis: usize) -> Expr {
        (self.stages.columns[axis].extent.clone() + Expr::int(TILE - 1)).floor_div(Expr::int(TILE))
    }

    /// Returns the axes along which no tile extends.
    fn others(&self) -> Vec<Axis> {
        let others = (0..self.stages.columns.len()).filter(|at| *at != self.from && *at != self.along);
        others.map(|at| self.stages.columns[at].clone()).collect()
    }
}

impl KernelBody for TransposeKernel {
    fn frame(&self) -> Frame<'_> {
        let blocks = self.tiles(self.along) * self.tiles(self.from) * product(&self.others());
        let shape = LaunchShape { block: [TILE as u32, DEPTH as u32, 1], ..LaunchShape::blocks(blocks, 1) };
        Frame { own_names: &["y", "block"], ..self.stages.frame(shape) }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let mut printer = Printer::new(kernel, &self.stages, Lanes::single(Multiples::of(1)), None);
        let index = printer.index;
        printer.row_axes("0")?;
        let names = [self.from, self.along].map(|at| {
            let wanted = self.stages.func.var(self.stages.columns[at].var).name;
            let start = printer.kernel.fresh_name(&format!("{wanted}_0"));
            (printer.kernel.fresh_name(&wanted), start)
        });
        let [(from, from_0), (along, along_0)] = names;
        let count = |printer: &mut Printer<'_, '_, '_>, expr: &Expr| printer.kernel.operand(expr, PRODUCT + 1);
        let tiles = [count(&mut printer, &self.tiles(self.along))?, count(&mut printer, &self.tiles(self.from))?];
        printer.kernel.line(&format!("const {index} block = blockIdx.x;"));
        printer.kernel.line(&format!("const {index} {along_0} = block % {} * {TILE};", tiles[0]));
        printer.kernel.line(&format!("const {index} {from_0} = block / {} % {} * {TILE};", tiles[0], tiles[1]));
        let others: Vec<(VarId, Expr)> = self.others().iter().map(|axis| (axis.var, axis.extent.clone())).collect();
        let mut axes = Vec::new();
        if !others.is_empty() {
            let rest = printer.kernel.fresh_name("rest");
            printer.kernel.line(&format!("const {index} {rest} = block / {} / {};", tiles[0], tiles[1]));
            axes = printer.axes(&others, &rest)?;
        }
        printer.row_reads()?;
        let (from_var, along_var) = (self.stages.columns[self.from].var, self.stages.columns[self.along].var);
        axes.extend([(from_var, from.clone()), (along_var, along.clone())]);
        // The printer requires the contiguous axis of the result last.
        printer.columns = axes;
        let [from_end, along_end] = [self.from, self.along].map(|at| self.stages.columns[at].extent.clone());
        let from_end = printer.kernel.operand(&from_end, RELATION + 1)?;
        let along_end = printer.kernel.operand(&along_end, RELATION + 1)?;
        let mut tiles = Vec::new();
        for at in &self.reads {
            let read = &self.stages.reads[*at];
            let storage = types::storage(read.dtype)
                .ok_or_else(|| format!("requires a dtype that has a CUDA type; found {}", read.dtype))?;
            printer.kernel.need_storage(read.dtype);
            let wanted = format!("{}_tile", self.stages.func.var(read.var).name);
            let tile = printer.kernel.fresh_name(&wanted);
            // The additional column of padding places the elements of a tile's column in different banks.
            printer.kernel.line(&format!("__shared__ {storage} {tile}[{TILE}][{}];", TILE + 1));
            tiles.push(tile);
        }
        let head = format!("for (int y = threadIdx.y; y < {TILE}; y += {DEPTH})");
        let inside = format!("if ({from} < {from_end} && {along} < {along_end})");
        printer.kernel.line("#pragma unroll");
        printer.kernel.open(&format!("{head} {{"));
        printer.kernel.line(&format!("const {index} {from} = {from_0} + threadIdx.x, {along} = {along_0} + y;"));
        printer.kernel.open(&format!("{inside} {{"));
        for (at, tile) in self.reads.iter().zip(&tiles) {
            let memory = printer.memory_of(*at)?;
            printer.kernel.line(&format!("{tile}[y][threadIdx.x] = {memory};"));
        }
        printer.kernel.close();
        printer.kernel.close();
        printer.kernel.line("__syncthreads();");
        for (at, tile) in self.reads.iter().zip(&tiles) {
            printer.preset(*at, &format!("{tile}[threadIdx.x][y]"));
        }
        printer.kernel.line("#pragma unroll");
        printer.kernel.open(&format!("{head} {{"));
        printer.kernel.line(&format!("const {index} {from} = {from_0} + y, {along} = {along_0} + threadIdx.x;"));
        printer.kernel.open(&format!("{inside} {{"));
        let all: Vec<usize> = (0..self.stages.stages.len()).collect();
        printer.body_here(&all, None, 1)?;
        printer.kernel.close();
        printer.kernel.close();
        Ok(())
    }
}
