//! The kernel of a sliding-window reduction: each thread computes the outputs that [`super::problem`] assigns to it.
//!
//! With a *block* ([`super::problem::Block`]), a thread has several outputs along one axis, whose windows overlap. It
//! then loads each position of the data once for all of them:
//!
//! ```text
//! float sums[outputs] = {};
//! for (all loops of the reduction but the block's)  // loops over taps are unrolled if there are few updates
//!     float values[positions] = {};
//!     for (at < positions) values[at] = data at position `at`
//!     for (tap of the block)
//!         for (i < outputs) sums[i] += values[i * of_output + tap * of_tap + offset] * weight
//! for (i < outputs) epilogue(sums[i])
//! ```
//!
//! Without a block, `outputs` is 1 and there is no array of positions: each tap's value is loaded when it is used. If a
//! thread has several channels or neighbours, `sums` also has dimensions for these: `sums[channels][outputs][width]`.

use super::packs::Side;
use super::problem::{Axis, Problem};
use crate::printer::{Kernel, expr};
use crate::rules::{Frame, KernelBody};
use crate::source::{BLOCK_SIZE, LaunchShape};
use rx_base::DType;
use rx_tir::{BinaryOp, Expr, VarId};

/// The variable names that the kernel uses.
const OWN_NAMES: &[&str] = &["i", "j", "v", "at", "thread"];

/// The loops over taps are unrolled if a thread makes at most this many accumulator updates in them. The loop over the
/// block's tap is always unrolled.
const MOST_UNROLLED: i64 = 256;

/// The kernel of a sliding-window reduction. Its threads are independent.
pub(super) struct WindowKernel {
    pub(super) problem: Problem,
}

impl WindowKernel {
    /// Returns the number of threads.
    fn threads(&self) -> Expr {
        product(&self.problem.axes)
    }
}

/// Returns the number of threads along these axes together.
fn product(axes: &[Axis]) -> Expr {
    // Constants are multiplied into one factor, which is the last.
    let (constants, others): (Vec<_>, Vec<_>) =
        axes.iter().map(Axis::parts).partition(|parts| parts.as_int().is_some());
    let constant = constants.into_iter().fold(Expr::int(1), |a, b| a * b);
    others.into_iter().chain([constant]).reduce(|a, b| a * b).unwrap_or(Expr::int(1))
}

impl KernelBody for WindowKernel {
    fn frame(&self) -> Frame<'_> {
        Frame {
            func: Some(&self.problem.func),
            kept: self.problem.epilogue.kept(),
            is_cooperative: false,
            own_names: OWN_NAMES,
            ..Frame::new(LaunchShape::threads(self.threads()), &self.problem.statements)
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let problem = &self.problem;
        let total = self.threads();
        let is_small = total.as_int().is_some_and(|total| total < i64::from(i32::MAX) - i64::from(BLOCK_SIZE));
        let index = if is_small { "int" } else { "long long" };
        let cast = if is_small { "" } else { "(long long)" };
        kernel.line(&format!("const {index} thread = {cast}blockIdx.x * {BLOCK_SIZE} + threadIdx.x;"));
        let end = kernel.operand(&total, expr::RELATION + 1)?;
        kernel.line(&format!("if (thread >= {end}) return;"));
        let axes = problem.axes.iter().enumerate();
        let names = axes.map(|(at, axis)| self.decode(kernel, at, axis, index)).collect::<Result<_, _>>()?;
        Text { problem, names }.print(kernel)
    }
}

impl WindowKernel {
    /// Emits the variable of an axis, decoded from the thread's index: the value of the thread's first output along it.
    /// Returns the variable's name.
    fn decode(&self, kernel: &mut Kernel<'_>, at: usize, axis: &Axis, index: &str) -> Result<String, String> {
        let problem = &self.problem;
        let below = product(&problem.axes[at + 1..]);
        let mut value = kernel.delinearized("thread", &below, (at > 0).then_some(&axis.parts()))?;
        if axis.own > 1 {
            value = format!("{value} * {}", axis.own);
        }
        let ctype = problem.ctype(axis.var);
        if ctype != index && ctype == "int" {
            value = format!("(int)({value})");
        }
        let plain = problem.func.var(axis.var).name;
        let name = kernel.fresh_name(&if axis.own > 1 { format!("first_{plain}") } else { plain.to_string() });
        kernel.line(&format!("const {ctype} {name} = {value};"));
        Ok(name)
    }
}

impl Problem {
    /// Returns the CUDA type of a loop's counter.
    fn ctype(&self, var: VarId) -> &'static str {
        if self.narrow_indices.narrow(var).is_some() || self.func.var(var).dtype == DType::INT32 {
            "int"
        } else {
            "long long"
        }
    }

    /// Names a loop's variable, and its int32 copy if it has one, for the following text.
    fn name(&self, kernel: &mut Kernel<'_>, var: VarId, text: &str) {
        let text = if text.contains(' ') { format!("({text})") } else { text.to_owned() };
        match self.narrow_indices.narrow(var) {
            Some(narrow) => {
                kernel.name_var(narrow, &text, true);
                kernel.name_var(var, &format!("((long long){text})"), true);
            }
            None => kernel.name_var(var, &text, true),
        }
    }
}

/// Returns the brackets after the name of a C array, in its declaration or at an access. Each pair of `axes` is a
/// dimension: the text between its brackets, which is its extent or an index, and its extent. Dimensions of extent 1
/// are left out. For example, `("0", 1), ("i", 4), ("v", 8)` gives `[i][v]`.
fn array(axes: &[(String, i64)]) -> String {
    axes.iter().filter(|(_, count)| *count > 1).map(|(text, _)| format!("[{text}]")).collect()
}

/// The printer of the kernel's body.
struct Text<'p> {
    problem: &'p Problem,
    /// By axis: the variable with the value of the thread's first output along it.
    names: Vec<String>,
}

impl Text<'_> {
    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let problem = self.problem;
        for (axis, name) in problem.axes.iter().zip(&self.names) {
            problem.name(kernel, axis.var, name);
        }
        let ctype = kernel.ctype(problem.sum)?;
        let sums = kernel.fresh_name("sums");
        let (channels, outputs, width) = (problem.of_channels(), problem.outputs(), problem.width());
        let initial = kernel.assigned(&problem.initial.clone().cast(problem.sum), problem.sum)?;
        let is_zero = matches!(problem.initial, Expr::Int { value: 0, .. })
            || matches!(problem.initial, Expr::Float { value, .. } if value == 0.0 && value.is_sign_positive());
        let extents = array(&[channels, outputs, width].map(|count| (count.to_string(), count)));
        match is_zero {
            true => kernel.line(&format!("{ctype} {sums}{extents} = {{}};")),
            false => {
                kernel.line(&format!("{ctype} {sums}{extents};"));
                self.each(kernel, [true; 3], &mut |_, kernel, at| {
                    kernel.line(&format!("{sums}{at} = {initial};"));
                    Ok(())
                })?;
            }
        }
        let limit = self.limit(kernel)?;
        let mut opened = 0;
        for (var, extent) in &problem.sums {
            let end = kernel.operand(extent, expr::RELATION + 1)?;
            self.open_loop(kernel, *var, &end);
            opened += 1;
        }
        let window = problem.taps.iter().map(|(_, extent)| *extent).fold(1, i64::saturating_mul);
        let inside = problem.block.as_ref().map_or(1, |block| block.tap.1 * outputs) * channels * width;
        let is_unrolled = window.saturating_mul(inside) <= MOST_UNROLLED;
        for (var, extent) in &problem.taps {
            kernel.line(if is_unrolled { "#pragma unroll" } else { "#pragma unroll 1" });
            self.open_loop(kernel, *var, &extent.to_string());
            opened += 1;
        }
        self.combine(kernel, &sums, limit.as_deref())?;
        (0..opened).for_each(|_| kernel.close());
        self.store(kernel, &sums)
    }

    fn open_loop(&self, kernel: &mut Kernel<'_>, var: VarId, end: &str) {
        let name = kernel.fresh_name(&self.problem.func.var(var).name);
        let ctype = self.problem.ctype(var);
        kernel.open(&format!("for ({ctype} {name} = 0; {name} < {end}; ++{name}) {{"));
        self.problem.name(kernel, var, &name);
    }

    /// Emits a variable with the last position that an output of the axis reads, counted from the first position of the
    /// thread, and returns its name. Later positions may be out of bounds. Returns `None`, and emits nothing, if there
    /// is no block, or if the extent of its axis is known to be a multiple of the outputs per thread.
    fn limit(&self, kernel: &mut Kernel<'_>) -> Result<Option<String>, String> {
        let Some(block) = self.problem.block.as_ref().filter(|block| self.problem.axes[block.axis].is_ragged()) else {
            return Ok(None);
        };
        let (axis, shared) = (&self.problem.axes[block.axis], &block.shared);
        let extent = kernel.operand(&axis.extent, expr::SUM)?;
        let name = kernel.fresh_name("last");
        let span = shared.of_tap.abs() * (block.tap.1 - 1);
        kernel.line("// The last position that an output reads.");
        kernel.line(&format!(
            "const {} {name} = ({extent} - 1 - {}) * {} + {span};",
            self.problem.ctype(axis.var),
            self.names[block.axis],
            shared.of_output
        ));
        Ok(Some(name))
    }

    /// Emits the body of the loops over sums and taps: loads the values and combines them with the accumulators.
    fn combine(&self, kernel: &mut Kernel<'_>, sums: &str, limit: Option<&str>) -> Result<(), String> {
        let problem = self.problem;
        let ctype = kernel.ctype(problem.sum)?;
        let values = kernel.fresh_name("values");
        let width = problem.packing.width_of(Side::Data);
        let count = problem.block.as_ref().map_or(1, |block| block.shared.count);
        let Some(block) = &problem.block else {
            self.read(kernel, Side::Data, &problem.data, &values, true)?;
            return self.update(kernel, sums, &|_| values.clone());
        };
        let extents = array(&[(count.to_string(), count), (width.to_string(), width)]);
        kernel.line(&format!("{ctype} {values}{extents} = {{}};"));
        let (outputs, shared) = (problem.outputs(), &block.shared);
        kernel.line(&format!("// Load the inputs of the {outputs} outputs, each position once."));
        kernel.unrolled("at", count);
        if let Some(limit) = limit {
            kernel.open(&format!("if (at <= {limit}) {{"));
        }
        problem.name(kernel, shared.first, &self.names[block.axis]);
        problem.name(kernel, shared.position, "at");
        self.read(kernel, Side::Data, &problem.data, &format!("{values}[at]"), false)?;
        if limit.is_some() {
            kernel.close();
        }
        kernel.close();
        kernel.line("#pragma unroll");
        let tap = kernel.fresh_name(&problem.func.var(block.tap.0).name);
        kernel.open(&format!("for (int {tap} = 0; {tap} < {}; ++{tap}) {{", block.tap.1));
        problem.name(kernel, block.tap.0, &tap);
        let scaled = |text: &str, by: i64| if by == 1 { text.to_owned() } else { format!("{text} * {by}") };
        let position = |output: &str| {
            let mut text = scaled(output, shared.of_output);
            match shared.of_tap {
                by if by < 0 => text = format!("{text} - {}", scaled(&tap, -by)),
                by => text = format!("{text} + {}", scaled(&tap, by)),
            }
            if shared.offset > 0 {
                format!("{values}[{text} + {}]", shared.offset)
            } else {
                format!("{values}[{text}]")
            }
        };
        self.update(kernel, sums, &position)?;
        kernel.close();
        Ok(())
    }

    /// Emits the values of a factor for all neighbours, to an array, or to a scalar if there is one neighbour. Declares
    /// it if `is_new`.
    fn read(&self, kernel: &mut Kernel<'_>, side: Side, value: &Expr, into: &str, is_new: bool) -> Result<(), String> {
        let problem = self.problem;
        let (lane, width) = (problem.axes.len() - 1, problem.packing.width_of(side));
        let ctype = kernel.ctype(problem.sum)?;
        if width == 1 {
            let value = kernel.assigned(value, problem.sum)?;
            let declared = if is_new { format!("const {ctype} ") } else { String::new() };
            kernel.line(&format!("{declared}{into} = {value};"));
            return Ok(());
        }
        if is_new {
            kernel.line(&format!("{ctype} {into}[{width}];"));
        }
        problem.packing.read(kernel, side)?;
        let (var, name) = (problem.axes[lane].var, &self.names[lane]);
        problem.name(kernel, var, &format!("{name} + v"));
        let value = kernel.assigned(value, problem.sum)?;
        kernel.line("#pragma unroll");
        kernel.line(&format!("for (int v = 0; v < {width}; ++v) {into}[v] = {value};"));
        problem.name(kernel, var, name);
        Ok(())
    }

    /// Emits the update of all of the thread's accumulators at one tap of the window. Each accumulator is combined with
    /// the value that its output reads at this tap, multiplied by the weight if there is one. `of_output` returns the
    /// text of that value for the text of the output's counter, for example `values[i + kx]` for `i`.
    fn update(&self, kernel: &mut Kernel<'_>, sums: &str, of_output: &dyn Fn(&str) -> String) -> Result<(), String> {
        let problem = self.problem;
        let [sum, value, weight] = problem.values;
        if let Some(axis) = problem.channels {
            kernel.unrolled("j", problem.of_channels());
            problem.name(kernel, problem.axes[axis].var, &format!("{} + j", self.names[axis]));
        }
        let of = |side: Side, text: &str| {
            if problem.packing.width_of(side) > 1 { format!("{text}[v]") } else { text.to_owned() }
        };
        let term = problem.func.var_expr(value);
        let term = match &problem.weight {
            None => term,
            Some(factor) => {
                let name = kernel.fresh_name("weight");
                self.read(kernel, Side::Weight, factor, &name, true)?;
                kernel.name_value(weight, &of(Side::Weight, &name));
                term * problem.func.var_expr(weight)
            }
        };
        self.each(kernel, [false, true, true], &mut |text, kernel, at| {
            let [_, i, _] = text.counters();
            kernel.name_value(value, &of(Side::Data, &of_output(i)));
            kernel.name_value(sum, &format!("{sums}{at}"));
            let updated = Expr::binary(problem.combine, problem.func.var_expr(sum), term.clone());
            let updated = match (problem.combine, problem.sum.is_float()) {
                (BinaryOp::Add, true) => format!("+= {}", kernel.assigned(&term, problem.sum)?),
                _ => format!("= {}", kernel.assigned(&updated, problem.sum)?),
            };
            kernel.line(&format!("{sums}{at} {updated};"));
            Ok(())
        })?;
        if let Some(axis) = problem.channels {
            kernel.close();
            problem.name(kernel, problem.axes[axis].var, &self.names[axis]);
        }
        Ok(())
    }

    /// Returns the counters of channels, outputs and neighbours; `0` for those of which a thread has one.
    fn counters(&self) -> [&'static str; 3] {
        let problem = self.problem;
        [
            if problem.of_channels() > 1 { "j" } else { "0" },
            if problem.outputs() > 1 { "i" } else { "0" },
            if problem.width() > 1 { "v" } else { "0" },
        ]
    }

    /// Returns the brackets that select the accumulator of the counters, such as `[i][v]`.
    fn element(&self) -> String {
        let problem = self.problem;
        let counts = [problem.of_channels(), problem.outputs(), problem.width()];
        let counters = self.counters().map(str::to_owned);
        array(&std::array::from_fn::<_, 3, _>(|at| (counters[at].clone(), counts[at])))
    }

    /// Emits `inner` in loops over channels, outputs and neighbours: those that `wanted` selects and that have several
    /// iterations.
    fn each(
        &self,
        kernel: &mut Kernel<'_>,
        wanted: [bool; 3],
        inner: &mut dyn FnMut(&Text<'_>, &mut Kernel<'_>, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        let problem = self.problem;
        let counts = [problem.of_channels(), problem.outputs(), problem.width()];
        let mut opened = 0;
        for ((name, count), wanted) in self.counters().into_iter().zip(counts).zip(wanted) {
            if count > 1 && wanted {
                kernel.unrolled(name, count);
                opened += 1;
            }
        }
        inner(self, kernel, &self.element())?;
        (0..opened).for_each(|_| kernel.close());
        Ok(())
    }

    /// Emits the epilogue and the stores of all outputs.
    fn store(&self, kernel: &mut Kernel<'_>, sums: &str) -> Result<(), String> {
        let problem = self.problem;
        kernel.line("// Epilogue of the outputs.");
        let [j, i, _] = self.counters();
        let mut opened = 0;
        let mut own = Vec::new();
        for (at, (axis, name)) in problem.axes.iter().zip(&self.names).enumerate() {
            let is_lane = at + 1 == problem.axes.len();
            let counter = match () {
                () if problem.channels == Some(at) => j,
                () if problem.block.as_ref().is_some_and(|block| block.axis == at) => i,
                () => "0",
            };
            if counter != "0" {
                kernel.unrolled(counter, axis.own);
                opened += 1;
            }
            own.push((axis, name, counter, is_lane));
        }
        let epilogue = &problem.epilogue;
        for (axis, name, counter, _) in &own {
            let plain = problem.func.var(axis.var).name;
            let value = if *counter == "0" { (*name).clone() } else { format!("{name} + {counter}") };
            // After the reduction, indices are over the loop variables in their original dtype.
            let of_output = kernel.fresh_name(&format!("out_{plain}"));
            let ctype = kernel.ctype(problem.func.var(axis.var).dtype)?;
            kernel.line(&format!("const {ctype} {of_output} = {value};"));
            kernel.name_var(axis.var, &of_output, true);
            if *counter == "i" && axis.is_ragged() {
                let extent = kernel.operand(&axis.extent, expr::RELATION + 1)?;
                kernel.open(&format!("if ({of_output} < {extent}) {{"));
                opened += 1;
            }
        }
        let Some((lane, _, _, _)) = own.last() else {
            return Err("requires an axis of the result; found none".to_owned());
        };
        let width = problem.width();
        let sum = format!("{sums}{}", self.element());
        if width == 1 {
            epilogue.print(kernel, &problem.func, &sum, None)?;
        } else {
            let first = kernel.operand(&problem.func.var_expr(lane.var), 0)?;
            let packs = epilogue.packs(kernel, &problem.func, Some((lane.var, &lane.extent)), (width, "v"));
            kernel.unrolled("v", width);
            kernel.name_var(lane.var, &format!("({first} + v)"), true);
            epilogue.print(kernel, &problem.func, &sum, packs.as_ref())?;
            kernel.close();
            kernel.name_var(lane.var, &first, true);
            if let Some(packs) = &packs {
                epilogue.store(kernel, &problem.func, packs)?;
            }
        }
        (0..opened).for_each(|_| kernel.close());
        Ok(())
    }
}
