//! Tile loads with separable addresses ([`SeparableAddress`]): an address is the sum of a row part and a K part. A
//! thread computes the row parts of its rows once, and keeps them in registers. It computes the K parts in every tile.
//!
//! ```text
//! // Once per thread, for a padded 3 x 3 convolution (H x W inputs, padding 1, one channel):
//! a_row = (oy - 1) * W + (ox - 1);  a_edge0 = ox - 1;  a_edge1 = oy - 1;
//! // Per tile and chunk, from the K index alone (ky, kx):
//! value = 0;
//! if ((unsigned)(a_edge0 + kx) <= W - 1 && (unsigned)(a_edge1 + ky) <= H - 1) value = x[a_row + (ky * W + kx)];
//! ```
//!
//! Requires: `Operand::separable` found a separable address. Guarantees: the same elements as the general path of
//! [`Operand::load`]; an element whose conditions fail is not read, and is 0 in the tile.

use super::{Load, Major, Operand};
use crate::printer::{Kernel, expr, types};
use crate::rules::gemm::names::GemmNames;
use crate::rules::gemm::separable::{Bounded, SeparableAddress};
use crate::rules::gemm::tiles::Unit;
use rx_base::DType;
use rx_tir::Expr;

/// The row part of the first range check for rows that must not be read. With a K part between -2^30 and 2^30
/// (exclusive), the sum is negative, so the unsigned check fails.
const FAR: &str = "-(1 << 30)";

impl Operand<'_> {
    /// Whether all chunks of a thread begin at the same row, so that one set of registers suffices.
    fn has_one_row(&self) -> bool {
        let across = if self.along == Major::Mn { self.rows / self.chunk } else { self.rows };
        self.own() == 1 || self.rows_first && self.tiling.threads() % across == 0
    }

    /// Whether all chunks of a thread begin at the same K value.
    fn has_one_sum(&self) -> bool {
        let across = if self.along == Major::K { self.tiling.k / self.chunk } else { self.tiling.k };
        self.own() == 1 || !self.rows_first && self.tiling.threads() % across == 0
    }

    /// Returns the text of a value that is kept for the row of the thread's chunk `i`. `number` 0 is the address, then
    /// one for each range, then the flag that the row may be read.
    fn kept(&self, names: &GemmNames, number: usize) -> String {
        let name = &names.rows[usize::from(self.side == 'b')][number];
        if self.has_one_row() { name.clone() } else { format!("{name}[i]") }
    }

    /// Returns the C type of a kept row part.
    fn ctype(expr: &Expr) -> &'static str {
        if expr.dtype() == DType::INT32 { "int" } else { "long long" }
    }

    /// Whether the first range check can exclude rows that must not be read, so that no flag is needed: it is an
    /// unsigned 32-bit check, so [`FAR`] can be the row part of such rows.
    fn tells_by_range(&self, separable: &SeparableAddress) -> bool {
        separable.ranges.first().is_some_and(|range| {
            let is_small = |one: &Expr| one.dtype() == DType::INT32;
            is_small(&range.split.row) && is_small(&range.split.sum) && range.last.is_some()
        })
    }

    /// Emits the values that a thread computes once for its rows and keeps for all K tiles: the row parts of the
    /// address and of the range checks, and, if it is needed, the flag that the row may be read. Emits nothing if the
    /// operand has no separable address.
    pub(super) fn keep_rows(&self, kernel: &mut Kernel<'_>, names: &GemmNames) -> Result<(), String> {
        let Some(separable) = self.separable() else { return Ok(()) };
        let side = self.side.to_ascii_uppercase();
        let edges = if separable.ranges.is_empty() { "" } else { ", and distances from the edges" };
        kernel.line(&format!("// {side}: offsets of the thread's rows{edges}."));
        let values: Vec<&Expr> =
            [&separable.place.row].into_iter().chain(separable.ranges.iter().map(|range| &range.split.row)).collect();
        let row_names = &names.rows[usize::from(self.side == 'b')];
        let count = if self.has_one_row() { String::new() } else { format!("[{}]", self.own()) };
        for (value, name) in values.iter().zip(row_names) {
            kernel.line(&format!("{} {name}{count};", Self::ctype(value)));
        }
        let is_row = self.is_row(separable).then(|| row_names[row_names.len() - 1].clone());
        if let Some(is_row) = &is_row {
            kernel.line(&format!("bool {is_row}{count};"));
        }
        match self.has_one_row() {
            true => kernel.open("{"),
            false => {
                kernel.unrolled("i", self.own());
            }
        }
        let by = if self.has_one_row() { String::new() } else { format!(" + i * {}", self.tiling.threads()) };
        kernel.line(&format!("const int at = threadIdx.x{by};"));
        let (row, _) = self.row_and_sum();
        let (index, free) = (names.index, names.free(self.side));
        kernel.line(&format!("const {index} {free} = {} + {row};", names.free0(self.side)));
        let uses = |var| {
            values.iter().any(|value| value.uses(var)) || separable.of_row.iter().any(|condition| condition.uses(var))
        };
        names.decode(kernel, self.free, free, &uses)?;
        let mut conditions = Vec::new();
        if self.is_ragged() {
            conditions.push(format!("{free} < {}", names.free_end(self.side)));
        }
        for condition in &separable.of_row {
            conditions.push(kernel.operand(condition, expr::AND + 1)?);
        }
        for (number, value) in values.iter().enumerate() {
            let text = kernel.operand(value, expr::CONDITIONAL + 1)?;
            let reported = number == 1 && self.tells_by_range(separable) && !conditions.is_empty();
            let text = if reported { format!("{} ? {text} : {FAR}", conditions.join(" && ")) } else { text };
            kernel.line(&format!("{} = {text};", self.kept(names, number)));
        }
        if is_row.is_some() {
            kernel.line(&format!("{} = {};", self.kept(names, row_names.len() - 1), conditions.join(" && ")));
        }
        kernel.close();
        Ok(())
    }

    /// Whether a separate flag excludes rows that must not be read: those beyond the end of the free axis, and those
    /// whose conditions without K fail.
    fn is_row(&self, separable: &SeparableAddress) -> bool {
        (self.is_ragged() || !separable.of_row.is_empty()) && !self.tells_by_range(separable)
    }

    /// Whether the last tile may reach beyond the end of the free axis.
    fn is_ragged(&self) -> bool {
        self.free.constant().is_none_or(|extent| extent % self.rows != 0)
    }

    /// Emits the loads of [`Operand::load`] with the separable address `separable`.
    pub(super) fn load_separable(
        &self,
        kernel: &mut Kernel<'_>,
        names: &GemmNames,
        separable: &SeparableAddress,
    ) -> Result<(), String> {
        let (_, k) = self.row_and_sum();
        let sum0 = &names.sum0;
        let (index, sum) = (names.index, &names.sum_index);
        let one_sum =
            self.has_one_sum() && (self.chunk == 1 || self.along == Major::Mn || self.way != Load::Elementwise);
        if let Some(helper) = types::helper(separable.dtype) {
            kernel.need(helper);
        }
        kernel.open("{");
        if one_sum {
            kernel.line("const int at = threadIdx.x;");
            kernel.line(&format!("const {index} {sum} = {sum0} + {k};"));
            self.decode_sum(kernel, names, sum, separable)?;
        }
        kernel.unrolled("i", self.own());
        if !one_sum || self.way == Load::CpAsync {
            kernel.line(&format!("const int at = threadIdx.x + i * {};", self.tiling.threads()));
        }
        if self.way == Load::CpAsync {
            let (row, k) = self.row_and_sum();
            kernel.line(&format!("const int row = {row}, k = {k};"));
        }
        if !one_sum {
            let k = if self.way == Load::CpAsync { "k".to_owned() } else { k };
            kernel.line(&format!("const {index} {sum} = {sum0} + {k};"));
        }
        match (self.way, self.chunk) {
            (Load::Elementwise, 1) => {
                kernel.line(&format!("{} value = 0;", self.element));
                self.one(kernel, names, separable, (one_sum, sum), None, "value")?;
                kernel.line(&format!("{}[i] = value;", names.next(self.side)));
            }
            (Load::Elementwise, chunk) => {
                kernel.line(&format!("{} value = {{}};", self.chunk_type()));
                if self.along == Major::Mn && !one_sum {
                    self.decode_sum(kernel, names, sum, separable)?;
                }
                kernel.unrolled("j", chunk);
                let inner = format!("{sum}_j");
                if self.along == Major::K {
                    kernel.line(&format!("const {index} {inner} = {sum} + j;"));
                    self.one(kernel, names, separable, (false, &inner), None, "value.at[j]")?;
                } else {
                    self.one(kernel, names, separable, (true, sum), separable.steps.as_deref(), "value.at[j]")?;
                }
                kernel.close();
                kernel.line(&format!("{}[i] = value;", names.next(self.side)));
            }
            (Load::Vectorized, _) => {
                let chunk = self.chunk_type();
                kernel.line(&format!("{chunk} value = {{}};"));
                let (place, conditions) = self.where_it_is(kernel, names, separable, (one_sum, sum), None)?;
                kernel.line(&format!("{conditions}value = *(const {chunk}*)&{place};"));
                kernel.line(&format!("{}[i] = value;", names.next(self.side)));
            }
            (Load::CpAsync, _) => {
                kernel.need("rx_copy16");
                kernel.line("const void* from = nullptr;");
                let (place, conditions) = self.where_it_is(kernel, names, separable, (one_sum, sum), None)?;
                kernel.line(&format!("{conditions}from = &{place};"));
                kernel.line(&format!("rx_copy16(&{}[{}], from);", names.to(self.side), self.destination()));
            }
        }
        kernel.close();
        kernel.close();
        Ok(())
    }

    /// Emits the values of the K loops that the K parts and the conditions on K use, at the K index named `sum`. The
    /// address uses none with [`SeparableAddress::by_index`].
    fn decode_sum(
        &self,
        kernel: &mut Kernel<'_>,
        names: &GemmNames,
        sum: &str,
        separable: &SeparableAddress,
    ) -> Result<(), String> {
        let used = |var| {
            separable.by_index.is_none() && separable.place.sum.uses(var)
                || separable.ranges.iter().any(|range| range.split.sum.uses(var))
                || separable.of_sum.iter().any(|condition| condition.uses(var))
        };
        names.decode(kernel, self.sum, sum, &used)
    }

    /// Emits the conditional load of one element into the variable `into`, which holds 0.
    fn one(
        &self,
        kernel: &mut Kernel<'_>,
        names: &GemmNames,
        separable: &SeparableAddress,
        (is_decoded, sum): (bool, &str),
        steps: Option<&[i64]>,
        into: &str,
    ) -> Result<(), String> {
        let (place, conditions) = self.where_it_is(kernel, names, separable, (is_decoded, sum), steps)?;
        let value = match self.tiling.unit {
            Unit::Warps { .. } => place,
            Unit::Threads { .. } => {
                let value = types::from_storage(separable.dtype, &place);
                match self.element {
                    "float" | "double" => value,
                    wrapping => format!("({wrapping}){value}"),
                }
            }
        };
        kernel.line(&format!("{conditions}{into} = {value};"));
        Ok(())
    }

    /// Returns the text of the element in memory, and the `if` with its conditions (empty if there are none).
    /// `is_decoded`: whether the K loops' values are already in scope; otherwise they are emitted first. `steps`, if
    /// given, moves the address and the ranges to the chunk's element `j`.
    fn where_it_is(
        &self,
        kernel: &mut Kernel<'_>,
        names: &GemmNames,
        separable: &SeparableAddress,
        (is_decoded, sum): (bool, &str),
        steps: Option<&[i64]>,
    ) -> Result<(String, String), String> {
        if !is_decoded {
            self.decode_sum(kernel, names, sum, separable)?;
        }
        let moved = |number: usize| match steps.map(|steps| steps[number]) {
            None | Some(0) => String::new(),
            Some(1) => " + j".to_owned(),
            Some(step) => format!(" + j * {step}"),
        };
        let mut conditions = Vec::new();
        if !names.sum_is_whole {
            conditions.push(format!("{sum} < {}", names.sum_end));
        }
        if self.is_row(separable) {
            conditions.push(self.kept(names, separable.ranges.len() + 1));
        }
        for condition in &separable.of_sum {
            conditions.push(kernel.operand(condition, expr::AND + 1)?);
        }
        for (number, Bounded { split, last }) in separable.ranges.iter().enumerate() {
            let mut text = format!("{}{}", self.kept(names, number + 1), moved(number + 1));
            if split.sum.as_int() != Some(0) {
                text = format!("{text} + {}", kernel.operand(&split.sum, expr::PRODUCT)?);
            }
            let is_small = split.row.dtype() == DType::INT32 && split.sum.dtype() == DType::INT32;
            let unsigned = if is_small { "unsigned" } else { "unsigned long long" };
            conditions.push(match last {
                Some(last) => format!("({unsigned})({text}) <= {}", kernel.operand(last, expr::RELATION + 1)?),
                None => format!("{text} >= 0"),
            });
        }
        let buffer = kernel
            .global_buffer(separable.buffer)
            .ok_or("requires a factor that the host passes; found another buffer")?;
        let mut place = format!("{}{}", self.kept(names, 0), moved(0));
        if let Some(step) = separable.by_index {
            // The index along K is an `int` if the extent is constant, but its product with the stride may not fit.
            let is_wide = separable.place.sum.dtype() == DType::INT64 && self.sum.extent().as_int().is_some();
            let sum = if is_wide { format!("(long long){sum}") } else { sum.to_owned() };
            place = format!("{place} + {sum}{}", if step == 1 { String::new() } else { format!(" * {step}") });
        } else if separable.place.sum.as_int() != Some(0) {
            place = format!("{place} + {}", kernel.operand(&separable.place.sum, expr::PRODUCT)?);
        }
        let condition =
            if conditions.is_empty() { String::new() } else { format!("if ({}) ", conditions.join(" && ")) };
        Ok((format!("{}[{place}]", buffer.name), condition))
    }
}
