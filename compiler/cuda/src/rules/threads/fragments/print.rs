//! Prints tensor core operations. A product of fragments is two `mma.m16n8k16` (for 8-bit factors, `mma.m16n8k32`), one
//! for each half of the columns. A lane of a warp holds the elements that the PTX ISA lists for both: of a factor, four
//! registers of 32 bits; of an accumulator, eight elements.

use super::{Counters, ELEMENTS, Part, Step, Warp, place_of};
use crate::printer::Kernel;
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_tir::{BufferId, Expr, Fragment, PrimFunc};

/// The printer of fragment operations.
pub(in crate::rules::threads) struct Printer<'k> {
    /// The function with compacted buffers.
    pub(in crate::rules::threads) func: &'k PrimFunc,
    /// The C names of fragment buffers.
    pub(in crate::rules::threads) names: &'k FxHashMap<BufferId, String>,
}

impl Printer<'_> {
    /// Returns the declaration of a buffer's fragments: four registers each for factors, eight elements each for
    /// accumulators. `elements` are those of the buffer, in all threads of the warp.
    pub(in crate::rules::threads) fn declaration(&self, id: BufferId, name: &str, elements: i64) -> String {
        let ctype = match (place_of(self.func, id), self.func.buffer(id).dtype) {
            (Some(Fragment::Accumulator), DType::INT32) => "int",
            (Some(Fragment::Accumulator), _) => "float",
            _ => return format!("unsigned {name}[{}][4];", elements / ELEMENTS),
        };
        format!("{ctype} {name}[{}][8];", elements / ELEMENTS)
    }

    /// Prints an operation under its predicate.
    pub(in crate::rules::threads) fn warp(&self, kernel: &mut Kernel<'_>, warp: &Warp) -> Result<(), String> {
        let step = warp.step.as_ref().ok_or("requires a matched fragment operation; found none")?;
        if let Some(condition) = &warp.condition {
            let condition = kernel.operand(condition, 0)?;
            kernel.open(&format!("if ({condition}) {{"));
        }
        match step {
            Step::Set { to, counters, value, reads } => self.set(kernel, to, *counters, (value, reads))?,
            Step::Lines { to, counters, buffer, indices, by_columns } => {
                self.lines(kernel, to, *counters, (*buffer, indices, *by_columns))?;
            }
            Step::Store { reads, counters, store } => {
                self.open_elements(kernel, *counters, 8, Self::OF_SUM);
                self.hold(kernel, reads)?;
                kernel.stmt(store)?;
                kernel.close();
            }
            Step::Multiply { sum, a, b, helper } => {
                kernel.need(*helper);
                let (sum, a, b) = (self.part(kernel, sum)?, self.part(kernel, a)?, self.part(kernel, b)?);
                kernel.line(&format!("{helper}({sum}, {a}, {b});"));
                kernel.line(&format!("{helper}({sum} + 4, {a}, {b} + 2);"));
            }
        }
        if warp.condition.is_some() {
            kernel.close();
        }
        Ok(())
    }

    /// Row and column of element `e` of an accumulator in lane `lane`, as C expressions.
    const OF_SUM: [&'static str; 2] = ["lane / 4 + e / 2 % 2 * 8", "lane % 4 * 2 + e % 2 + e / 4 * 8"];

    /// Returns the C expression of a fragment.
    fn part(&self, kernel: &mut Kernel<'_>, part: &Part) -> Result<String, String> {
        let name = self.names.get(&part.buffer).ok_or("requires declared fragments; found others")?;
        let number = kernel.operand(&part.number, 0)?;
        Ok(format!("{name}[{number}]"))
    }

    /// Makes loads of these accumulators print as their element `e`.
    fn hold(&self, kernel: &mut Kernel<'_>, reads: &[Part]) -> Result<(), String> {
        for part in reads {
            let text = format!("{}[e]", self.part(kernel, part)?);
            kernel.hold(part.buffer, &text);
        }
        Ok(())
    }

    /// Opens a loop over a thread's `count` elements of a fragment, whose rows and columns are `at`.
    fn open_elements(&self, kernel: &mut Kernel<'_>, counters: Counters, count: i64, at: [&str; 2]) {
        kernel.unrolled("e", count);
        self.counters(kernel, counters, at);
    }

    /// Declares the row and the column of an element.
    fn counters(&self, kernel: &mut Kernel<'_>, counters: Counters, at: [&str; 2]) {
        let names = counters.map(|var| {
            let name = kernel.bind(var);
            kernel.name_var(var, &name, true);
            name
        });
        kernel.line(&format!("const int {} = {}, {} = {};", names[0], at[0], names[1], at[1]));
    }

    /// Prints the assignment of a value to each element of a fragment.
    fn set(
        &self,
        kernel: &mut Kernel<'_>,
        to: &Part,
        counters: Counters,
        (value, reads): (&Expr, &[Part]),
    ) -> Result<(), String> {
        let target = self.part(kernel, to)?;
        let dtype = self.func.buffer(to.buffer).dtype;
        if to.place == Fragment::Accumulator {
            self.open_elements(kernel, counters, 8, Self::OF_SUM);
            self.hold(kernel, reads)?;
            let text = kernel.assigned(value, dtype)?;
            kernel.line(&format!("{target}[e] = {text};"));
            kernel.close();
            return Ok(());
        }
        kernel.need_storage(dtype);
        // The number of elements in a 32-bit register. Instructions for 8-bit elements have K = 32, but a fragment has
        // K = 16: the registers for the other 16 stay zero.
        let in_register = 4 / dtype.bytes().cast_signed().max(1);
        let (count, register, at) = match (to.place, in_register) {
            (Fragment::MatrixA, 2) => (8, "e / 2", ["lane / 4 + e / 2 % 2 * 8", "lane % 4 * 2 + e % 2 + e / 4 * 8"]),
            (_, 2) => (8, "e / 2", ["lane % 4 * 2 + e % 2 + e / 2 % 2 * 8", "lane / 4 + e / 4 * 8"]),
            (Fragment::MatrixA, _) => (8, "e / 4", ["lane / 4 + e / 4 * 8", "lane % 4 * 4 + e % 4"]),
            (_, _) => (8, "e / 4 * 2", ["lane % 4 * 4 + e % 4", "lane / 4 + e / 4 * 8"]),
        };
        kernel.line(&format!("{target}[0] = {target}[1] = {target}[2] = {target}[3] = 0u;"));
        self.open_elements(kernel, counters, count, at);
        let text = kernel.stored(value, dtype)?;
        let bits = match in_register {
            2 => format!("(unsigned){text}.bits"),
            _ => format!("(unsigned)(unsigned char)({text})"),
        };
        let shift = 32 / in_register;
        kernel.line(&format!("{target}[{register}] |= {bits} << e % {in_register} * {shift};"));
        kernel.close();
        Ok(())
    }

    /// Prints a load with `ldmatrix`: each lane passes the address of one run of eight elements.
    fn lines(
        &self,
        kernel: &mut Kernel<'_>,
        to: &Part,
        counters: Counters,
        (buffer, indices, by_columns): (BufferId, &[Expr], bool),
    ) -> Result<(), String> {
        let target = self.part(kernel, to)?;
        let eight = "lane / 16 * 8 + lane % 8";
        let (helper, at) = match (to.place == Fragment::MatrixA, by_columns) {
            (true, false) => ("rx_ldmatrix", ["lane % 16", "lane / 16 * 8"]),
            (true, true) => ("rx_ldmatrix_transposed", ["lane / 8 % 2 * 8", eight]),
            (false, true) => ("rx_ldmatrix", ["lane / 8 % 2 * 8", eight]),
            (false, false) => ("rx_ldmatrix_transposed", ["lane % 16", "lane / 16 * 8"]),
        };
        kernel.need("rx_ldmatrix");
        kernel.open("{");
        self.counters(kernel, counters, at);
        let line = kernel.place(buffer, indices)?;
        kernel.line(&format!("{helper}({target}, &{line});"));
        kernel.close();
        Ok(())
    }
}
