//! Values of threads brought together: by shuffles where they are neighbours in a warp, else through shared memory. All of the
//! threads have the result, and the order in which values are combined is the same in every run.

use super::Together;
use super::kernel::ThreadsKernel;
use crate::printer::Kernel;
use rx_tir::VarId;

/// Where the values lie that are combined through shared memory.
struct Memory {
    /// The place of the own one, and the first of those that are combined with it.
    own: String,
    first: String,
    /// How many are combined, and how far the one counted `at` lies behind the first.
    count: i64,
    distance: String,
    /// How many there are in all.
    all: i64,
}

/// Lanes that shuffles bring together, and what is left to do.
struct Way {
    lanes: i64,
    memory: Option<Memory>,
}

/// A sum of thread indices with factors, of axes that have more than one.
fn place(parts: &[(&str, i64, i64)]) -> String {
    let parts = parts.iter().filter(|(_, size, _)| *size > 1).map(|(index, _, factor)| match factor {
        1 => (*index).to_owned(),
        factor => format!("{index} * {factor}"),
    });
    let sum: Vec<String> = parts.collect();
    if sum.is_empty() { "0".to_owned() } else { sum.join(" + ") }
}

impl ThreadsKernel {
    /// The way that the axes allow.
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

    /// All threads have, under a name, the value of all those that differ in the reduction's axes only.
    pub(super) fn bring_together(
        &self,
        kernel: &mut Kernel<'_>,
        of: &Together,
        (name, ctype): (&str, &str),
    ) -> Result<(), String> {
        let Way { lanes, memory } = self.way(&of.over);
        if lanes > 1 {
            let (to, from) = match ctype {
                "bool" | "signed char" | "unsigned char" | "short" | "unsigned short" => {
                    ("(int)", format!("({ctype})"))
                }
                _ => ("", String::new()),
            };
            kernel.line("#pragma unroll");
            kernel.open(&format!("for (int by = {}; by > 0; by /= 2) {{", lanes / 2));
            let other = kernel.fresh_name("other");
            let value = format!("{from}__shfl_xor_sync(0xffffffffu, {to}{name}, by)");
            kernel.line(&format!("const {ctype} {other} = {value};"));
            self.combine(kernel, of, name, &other)?;
            kernel.close();
        }
        let Some(Memory { own, first, count, distance, all }) = memory else { return Ok(()) };
        let parts = kernel.fresh_name(&format!("{name}_parts"));
        let leader = if lanes > 1 { "if (threadIdx.x % 32 == 0) " } else { "" };
        kernel.line(&format!("__shared__ {ctype} {parts}[{all}];"));
        kernel.line(&format!("{leader}{parts}[{own}] = {name};"));
        kernel.line("__syncthreads();");
        kernel.line(&format!("{name} = {parts}[{first}];"));
        let other = if first == "0" { distance } else { format!("{first} + {distance}") };
        kernel.open(&format!("for (int at = 1; at < {count}; ++at) {{"));
        self.combine(kernel, of, name, &format!("{parts}[{other}]"))?;
        kernel.close();
        // The parts may be written again.
        kernel.line("__syncthreads();");
        Ok(())
    }

    fn combine(&self, kernel: &mut Kernel<'_>, of: &Together, name: &str, other: &str) -> Result<(), String> {
        kernel.name_value(of.other, other);
        let sum = self.both(of, &self.func.var_expr(of.other));
        let sum = kernel.operand(&sum, 0)?;
        kernel.line(&format!("{name} = {sum};"));
        Ok(())
    }
}
