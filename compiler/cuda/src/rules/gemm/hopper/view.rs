//! A factor as a dense strided view of memory, described by a TMA tensor map. [`super::kernel`] copies tiles from it.

use super::super::operand::Major;
use super::super::problem::{Axis, Element, Factor};
use crate::printer::Kernel;
use crate::source::TensorMap;
use rx_base::{DType, Dim};
use rx_loops::scope::Scope;
use rx_tir::{BufferId, Expr, PrimFunc, VarId};

/// The largest number of axes of a tensor map; two of them are the tile's.
const MOST_AXES: usize = 5;

/// The alignment of a tensor's start and of its strides, in bytes.
const ALIGNMENT: i64 = 16;

/// A factor whose rows and K values are each evenly spaced in memory. Its batches have up to three evenly spaced axes.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) buffer: BufferId,
    /// The size of an element in bytes.
    pub(crate) element_bytes: i64,
    /// The offset of the first element from the start of the buffer, in bytes.
    offset: Expr,
    /// The axis that is contiguous in memory.
    pub(crate) along: Major,
    free: Line,
    sum: Line,
    /// The batch axes along which the factor changes, innermost first, each with its loops.
    batch: Vec<(Line, Vec<(VarId, Expr)>)>,
}

/// An axis of evenly spaced elements.
#[derive(Debug)]
struct Line {
    extent: Expr,
    /// The distance of consecutive elements, in bytes.
    stride: Expr,
}

/// Loops that together are one index of evenly spaced elements.
struct Run {
    loops: Vec<(VarId, Expr)>,
    /// The distance of consecutive elements, in elements.
    stride: Dim,
}

impl View {
    /// Describes the factor as a view, with the product's axes `[free, K, batch]`.
    ///
    /// # Errors
    /// The reason why the factor is no dense view.
    pub(crate) fn of(
        factor: &Factor,
        [free, sum, batch]: [&Axis; 3],
        func: &PrimFunc,
        scope: &mut Scope,
    ) -> Result<View, String> {
        let element = factor.element.as_ref().ok_or("requires elements of a buffer; found computed values")?;
        if element.is_chosen() {
            return Err("requires unconditional elements; found a condition".to_owned());
        }
        let bytes = func.buffer(element.buffer).dtype.bytes().cast_signed();
        let mut single = |axis: &Axis| {
            let mut runs = runs(element, axis, scope);
            match (runs.pop(), runs.is_empty()) {
                (Some(run), true) => Ok(run),
                _ => Err("requires one stride along rows and along K; found several".to_owned()),
            }
        };
        let (of_free, of_sum) = (single(free)?, single(sum)?);
        let is_one = |run: &Run| run.stride.as_constant() == Some(1);
        let along = match (is_one(&of_sum), is_one(&of_free)) {
            (true, _) => Major::K,
            (false, true) => Major::Mn,
            _ => return Err("requires contiguous elements along rows or K; found strided ones".to_owned()),
        };
        let batches = runs(element, batch, scope);
        if batches.len() > MOST_AXES - 2 {
            return Err(format!("requires at most {MOST_AXES} axes; found more"));
        }
        let (inner, others) = match along {
            Major::K => (sum, &of_free),
            Major::Mn => (free, &of_sum),
        };
        let strides = std::iter::once(others).chain(&batches).map(|run| &run.stride);
        // The driver API describes tensor maps with lines that follow each other; overlapping ones are not documented.
        let overlaps =
            |stride: &Dim| stride.as_constant().zip(inner.constant()).is_some_and(|(step, size)| step < size);
        if strides.clone().any(overlaps) {
            return Err("requires disjoint lines; found overlapping ones".to_owned());
        }
        if !strides.clone().chain([&element.at.base]).all(|dim| is_aligned(dim, bytes)) {
            return Err(format!("requires lines at multiples of {ALIGNMENT} bytes; found others"));
        }
        let expr = |dim: &Dim| {
            let dim = dim * &Dim::constant(bytes);
            scope
                .expr(&dim, DType::INT64)
                .ok_or_else(|| "requires strides over the function's scalars; found another stride".to_owned())
        };
        let offset = expr(&element.at.base)?;
        let line = |run: &Run| {
            let extent = Axis { loops: run.loops.clone() }.extent();
            Ok::<_, String>(Line { extent, stride: expr(&run.stride)? })
        };
        let (free, sum) = (line(&of_free)?, line(&of_sum)?);
        let batch = batches.into_iter().rev().map(|run| Ok((line(&run)?, run.loops))).collect::<Result<_, String>>()?;
        Ok(View { buffer: element.buffer, element_bytes: bytes, offset, along, free, sum, batch })
    }

    /// Adds a tensor map with boxes of `rows` by `depth` elements to the kernel's parameters, and returns its name.
    ///
    /// # Errors
    /// The host does not pass the buffer, or a size does not fit 32 bits.
    pub(crate) fn map(&self, kernel: &mut Kernel<'_>, name: &str, rows: i64, depth: i64) -> Result<String, String> {
        let extent = |extent: i64| u32::try_from(extent).map_err(|error| error.to_string());
        let (free, sum) = ((&self.free, extent(rows)?), (&self.sum, extent(depth)?));
        let inner = match self.along {
            Major::K => [sum, free],
            Major::Mn => [free, sum],
        };
        let axes: Vec<(&Line, u32)> = inner.into_iter().chain(self.batch.iter().map(|(line, _)| (line, 1))).collect();
        let buffer =
            kernel.passed(self.buffer).ok_or("requires a factor that the host passes; found another buffer")?;
        let map = TensorMap {
            buffer,
            offset: self.offset.clone(),
            element_bytes: extent(self.element_bytes)?,
            axes: axes.iter().map(|(line, _)| (line.extent.clone(), line.stride.clone())).collect(),
            tile: axes.iter().map(|(_, tile)| *tile).collect(),
        };
        Ok(kernel.tensor_map(name, map))
    }

    /// Returns the coordinates of the box that begins at this row and K value, innermost first, for the current batch.
    ///
    /// # Errors
    /// A batch loop has no value in scope.
    pub(crate) fn places(&self, kernel: &mut Kernel<'_>, row: &str, sum: &str) -> Result<String, String> {
        let mut places = match self.along {
            Major::K => vec![sum.to_owned(), row.to_owned()],
            Major::Mn => vec![row.to_owned(), sum.to_owned()],
        };
        for (_, loops) in &self.batch {
            let index = loops.iter().fold(None, |index: Option<Expr>, (var, extent)| {
                let value = kernel.var_expr(*var).cast(DType::INT64);
                Some(index.map_or(value.clone(), |index| index * extent.clone() + value))
            });
            places.push(kernel.operand(&index.unwrap_or(Expr::int(0)).cast(DType::INT32), 0)?);
        }
        Ok(places.join(", "))
    }
}

/// Merges adjacent loops of an axis into evenly spaced runs, outermost first. Loops along which the factor does not
/// change are left out. For example, loops of extents 8 and 16 with strides 16 and 1 are one run of
/// stride 1.
fn runs(element: &Element, axis: &Axis, scope: &mut Scope) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (var, extent) in &axis.loops {
        let (stride, size) = (element.at.stride(*var), scope.dim(extent));
        if stride.as_constant() == Some(0) {
            continue;
        }
        let goes_on = runs.last_mut().filter(|run| run.stride == &size * &stride);
        match goes_on {
            Some(run) => {
                run.loops.push((*var, extent.clone()));
                run.stride = stride;
            }
            None => runs.push(Run { loops: vec![(*var, extent.clone())], stride }),
        }
    }
    runs
}

/// Whether `dim` elements are known to be a nonnegative multiple of [`ALIGNMENT`] bytes, for all nonnegative values of
/// the dim's atoms, such as symbols.
fn is_aligned(dim: &Dim, bytes: i64) -> bool {
    let fits = |number: i64| number >= 0 && number % (ALIGNMENT / bytes.clamp(1, ALIGNMENT)) == 0;
    !dim.is_error() && fits(dim.constant_part()) && dim.terms().iter().all(|(_, coefficient)| fits(*coefficient))
}
