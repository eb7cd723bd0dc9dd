//! Prints cross-thread reductions (all-reduce) by warp shuffles, through shared memory, or both.
//!
//! Shuffles are used if a reduction is over `threadIdx.x` only, and its extent is a multiple of 32 or, in a block of
//! whole warps, a smaller power of two. If it has several warps, their results are then combined through shared memory.
//! All other reductions use shared memory only.
//!
//! ```text
//! // threadIdx.x of extent 32                     // threadIdx.x of extent 48, no multiple of 32
//! for (int by = 16; by > 0; by /= 2) {            sum_parts[threadIdx.x] = sum;
//!     other = __shfl_xor_sync(~0u, sum, by);      __syncthreads();
//!     sum = sum + other;                          sum = sum_parts[0];
//! }                                               for (int at = 1; at < 48; ++at) sum = sum + sum_parts[at];
//!                                                 __syncthreads();
//! ```
//!
//! Requires an associative combination. If a single value is reduced, not a tuple, it must also be commutative.
//! Guarantees that all participating threads have the result, and the same order of combination in every run.
//!
//! Reference: the TVM passes `LowerCrossThreadReduction` and `LowerThreadAllreduce`.

use super::kernel::ThreadsKernel;
use super::{CrossThread, Node, Reduced};
use crate::printer::Kernel;
use rx_tir::rewrite::substitute;
use rx_tir::{Expr, IterKind, Stmt, VarId};

/// A thread's partial result, as a C variable.
struct Value<'t> {
    /// The element that is reduced.
    of: &'t Reduced,
    /// The variable's name.
    name: String,
    /// The variable's C type.
    ctype: &'static str,
}

/// Layout of partial results in shared memory. Offsets and distances are in elements, as C expressions.
struct Memory {
    /// Offset of the partial result of this thread (after shuffles: of its warp), and of the first one that it
    /// combines.
    own: String,
    first: String,
    /// Number of partial results that are combined, and the distance of number `at` from the first, in terms of `at`.
    count: i64,
    distance: String,
    /// Number of partial results of the block.
    all: i64,
}

/// The method of combining partial results: by shuffles within groups of `lanes` neighbouring threads (1: none), then
/// through shared memory if several partial results are left.
struct Way {
    lanes: i64,
    memory: Option<Memory>,
}

/// Returns a linear offset as C text: the sum of `index * stride` over `(index, extent, stride)`. Axes of extent 1 are
/// left out.
fn place(parts: &[(&str, i64, i64)]) -> String {
    let parts = parts.iter().filter(|(_, size, _)| *size > 1).map(|(index, _, factor)| match factor {
        1 => (*index).to_owned(),
        factor => format!("{index} * {factor}"),
    });
    let sum: Vec<String> = parts.collect();
    if sum.is_empty() { "0".to_owned() } else { sum.join(" + ") }
}

impl ThreadsKernel {
    /// Returns the bytes of shared memory for the partial results of all cross-thread reductions of the kernel. A value
    /// narrower than four bytes counts as four.
    pub(super) fn parts_bytes(&self) -> i64 {
        self.parts_of(&self.tree)
    }

    /// As [`ThreadsKernel::parts_bytes`], for the reductions in one node.
    fn parts_of(&self, node: &Node) -> i64 {
        let inside: i64 = node.children().into_iter().map(|child| self.parts_of(child)).sum();
        let Node::Reduce(of) = node else { return inside };
        let parts = self.way(&of.over).memory.map_or(0, |memory| memory.all);
        // Narrow floats are computed as `float`, in four bytes; narrow integers are counted alike.
        let bytes = |one: &Reduced| self.func.buffer(one.buffer).dtype.bytes().max(4).cast_signed();
        of.reduced.iter().map(|one| parts * bytes(one)).sum()
    }

    /// Chooses the method for a reduction over the thread axes `over`. Threads are numbered with x innermost.
    fn way(&self, over: &[VarId]) -> Way {
        let [x, y, z] = self.launch.sizes();
        let all = x * y * z;
        let reduces = |end: &str| self.launch.lanes().any(|axis| axis.tag.ends_with(end) && over.contains(&axis.var));
        let (tx, ty, tz) = (("threadIdx.x", x, 1), ("threadIdx.y", y, x), ("threadIdx.z", z, x * y));
        let own = place(&[tx, ty, tz]);
        let memory = |first: &[(&str, i64, i64)], count, step| {
            let distance = if step == 1 { "at".to_owned() } else { format!("at * {step}") };
            let memory = Memory { own: own.clone(), first: place(first), count, distance, all };
            Way { lanes: 1, memory: (count > 1).then_some(memory) }
        };
        match [reduces("x") && x > 1, reduces("y") && y > 1, reduces("z") && z > 1] {
            [false, false, false] => Way { lanes: 1, memory: None },
            [true, false, false] if all % 32 == 0 && x <= 32 && x.count_ones() == 1 => Way { lanes: x, memory: None },
            [true, false, false] if x % 32 == 0 => {
                let warps = x / 32;
                let rows = [("threadIdx.y", y, warps), ("threadIdx.z", z, y * warps)];
                let own = place(&[("threadIdx.x / 32", x, 1), rows[0], rows[1]]);
                let distance = "at".to_owned();
                let memory = Memory { own, first: place(&rows), count: warps, distance, all: warps * y * z };
                Way { lanes: 32, memory: (warps > 1).then_some(memory) }
            }
            [true, false, false] => memory(&[ty, tz], x, 1),
            [false, true, false] => memory(&[tx, tz], y, x),
            [false, false, true] => memory(&[tx, ty], z, x * y),
            [true, true, false] => memory(&[tz], x * y, 1),
            [false, true, true] => memory(&[tx], y * z, x),
            [true, true, true] => memory(&[], all, 1),
            [true, false, true] => {
                let distance = format!("at % {x} + at / {x} * {}", x * y);
                let memory = Memory { own: own.clone(), first: place(&[ty]), count: x * z, distance, all };
                Way { lanes: 1, memory: Some(memory) }
            }
        }
    }

    /// Prints a cross-thread reduction inside its spatial loops.
    pub(super) fn cross_thread(&self, kernel: &mut Kernel<'_>, of: &CrossThread) -> Result<(), String> {
        let (inner, outer): (Vec<_>, Vec<_>) = of.loops.iter().partition(|one| one.kind == IterKind::Reduce);
        for one in &outer {
            kernel.open_loop(one.var, &zero(&one.extent), &one.extent)?;
        }
        let mut values = Vec::with_capacity(of.reduced.len());
        for one in &of.reduced {
            let dtype = self.func.buffer(one.buffer).dtype;
            let ctype = kernel.ctype(dtype)?;
            let text = kernel.assigned(&one.begin, dtype)?;
            let name = kernel.bind(one.partial);
            kernel.name_value(one.partial, &name);
            kernel.line(&format!("{ctype} {name} = {text};"));
            values.push(Value { of: one, name, ctype });
        }
        for one in &inner {
            kernel.open_loop(one.var, &zero(&one.extent), &one.extent)?;
        }
        if let Some(condition) = &of.counts {
            let condition = kernel.operand(condition, 0)?;
            kernel.open(&format!("if ({condition}) {{"));
        }
        self.take_elements(kernel, &values)?;
        if of.counts.is_some() {
            kernel.close();
        }
        inner.iter().for_each(|_| kernel.close());
        self.exchange(kernel, of, &values)?;
        for value in values.iter().filter(|value| value.of.begin != value.of.init) {
            let with_init = self.with(value, &value.of.init);
            let with_init = kernel.operand(&with_init, 0)?;
            kernel.line(&format!("{} = {with_init};", value.name));
        }
        let store = |one: &Reduced| Stmt::Store {
            buffer: one.buffer,
            indices: one.indices.clone(),
            value: self.func.var_expr(one.partial),
            site: one.site,
        };
        let stores = Stmt::seq(of.reduced.iter().map(store));
        kernel.stmt(&match &of.stores {
            Some(condition) => Stmt::when(condition.clone(), stores),
            None => stores,
        })?;
        outer.iter().for_each(|_| kernel.close());
        Ok(())
    }

    /// Returns the combination of `value` with `other`. For a tuple, this is only used for elements whose operation
    /// reads no other element of the tuple.
    fn with(&self, value: &Value<'_>, other: &Expr) -> Expr {
        substitute(&value.of.combined, &|var| (var == value.of.other).then(|| other.clone()))
    }

    /// Prints the accumulation of this iteration's element into the thread's partial result.
    fn take_elements(&self, kernel: &mut Kernel<'_>, values: &[Value<'_>]) -> Result<(), String> {
        if let [value] = values {
            let sum = self.with(value, &value.of.element);
            let sum = kernel.operand(&sum, 0)?;
            kernel.line(&format!("{} = {sum};", value.name));
            return Ok(());
        }
        for value in values {
            let element = kernel.operand(&value.of.element, 0)?;
            let other = kernel.bind(value.of.other);
            kernel.line(&format!("const {} {other} = {element};", value.ctype));
            kernel.name_value(value.of.other, &other);
        }
        self.combine(kernel, values)
    }

    /// Prints the combination of the partial results of all threads that differ only in the reduced axes.
    fn exchange(&self, kernel: &mut Kernel<'_>, of: &CrossThread, values: &[Value<'_>]) -> Result<(), String> {
        let Way { lanes, memory } = self.way(&of.over);
        if lanes > 1 {
            self.shuffle(kernel, lanes, values)?;
        }
        let Some(Memory { own, first, count, distance, all }) = memory else { return Ok(()) };
        let leader = if lanes > 1 { "if (threadIdx.x % 32 == 0) " } else { "" };
        let parts: Vec<String> =
            values.iter().map(|value| kernel.fresh_name(&format!("{}_parts", value.name))).collect();
        for (Value { name, ctype, .. }, parts) in values.iter().zip(&parts) {
            kernel.line(&format!("__shared__ {ctype} {parts}[{all}];"));
            kernel.line(&format!("{leader}{parts}[{own}] = {name};"));
        }
        kernel.line("__syncthreads();");
        let other = if first == "0" { distance } else { format!("{first} + {distance}") };
        for (Value { name, .. }, parts) in values.iter().zip(&parts) {
            kernel.line(&format!("{name} = {parts}[{first}];"));
        }
        kernel.open(&format!("for (int at = 1; at < {count}; ++at) {{"));
        for (value, parts) in values.iter().zip(&parts) {
            kernel.name_value(value.of.other, &format!("{parts}[{other}]"));
        }
        self.combine(kernel, values)?;
        kernel.close();
        // The next iteration of a loop around the reduction may overwrite the shared memory.
        kernel.line("__syncthreads();");
        Ok(())
    }

    /// Prints the combination of partial results of `lanes` neighbouring threads by warp shuffles.
    ///
    /// If two values are equal, the result of a tuple's choice may depend on their order. So its lanes are combined in
    /// order (`__shfl_down_sync`), and lane 0 broadcasts the result. A single value uses the butterfly
    /// (`__shfl_xor_sync`), after which all lanes have it.
    fn shuffle(&self, kernel: &mut Kernel<'_>, lanes: i64, values: &[Value<'_>]) -> Result<(), String> {
        let is_ordered = values.len() > 1;
        let shuffled = |Value { name, ctype, .. }: &Value<'_>, how: &str, arguments: &str| {
            let (to, from) = match *ctype {
                "bool" | "signed char" | "unsigned char" | "short" | "unsigned short" => {
                    ("(int)", format!("({ctype})"))
                }
                _ => ("", String::new()),
            };
            format!("{from}{how}(0xffffffffu, {to}{name}, {arguments})")
        };
        let (how, rounds, arguments) = match is_ordered {
            false => ("__shfl_xor_sync", format!("int by = {}; by > 0; by /= 2", lanes / 2), "by".to_owned()),
            true => ("__shfl_down_sync", format!("int by = 1; by < {lanes}; by *= 2"), format!("by, {lanes}")),
        };
        kernel.line("#pragma unroll");
        kernel.open(&format!("for ({rounds}) {{"));
        for value in values {
            let other = kernel.fresh_name("other");
            kernel.line(&format!("const {} {other} = {};", value.ctype, shuffled(value, how, &arguments)));
            kernel.name_value(value.of.other, &other);
        }
        self.combine(kernel, values)?;
        kernel.close();
        if is_ordered {
            for value in values {
                let first = shuffled(value, "__shfl_sync", &format!("0, {lanes}"));
                kernel.line(&format!("{} = {first};", value.name));
            }
        }
        Ok(())
    }

    /// Prints the combination of each value with its `other` variable, which has been given a name. For a tuple, all
    /// combinations are computed before the first value is assigned.
    fn combine(&self, kernel: &mut Kernel<'_>, values: &[Value<'_>]) -> Result<(), String> {
        if let [value] = values {
            let sum = kernel.operand(&value.of.combined, 0)?;
            kernel.line(&format!("{} = {sum};", value.name));
            return Ok(());
        }
        let mut combined = Vec::with_capacity(values.len());
        for value in values {
            let both = kernel.operand(&value.of.combined, 0)?;
            let name = kernel.fresh_name(&format!("{}_next", value.name));
            kernel.line(&format!("const {} {name} = {both};", value.ctype));
            combined.push(name);
        }
        for (value, name) in values.iter().zip(combined) {
            kernel.line(&format!("{} = {name};", value.name));
        }
        Ok(())
    }
}

fn zero(extent: &Expr) -> Expr {
    Expr::Int { value: 0, dtype: extent.dtype() }
}
