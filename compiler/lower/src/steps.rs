//! The pass pipeline of the back end: transforms a program as [`crate::lower()`] builds it, usually with one kernel per
//! operator call, into the kernels that a device runs.
//!
//! [`STEPS`] lists all steps in order. Every step preserves the values that a program computes, up to rounding.
//! `rx_build::to_module` shows the program after any step.

use crate::fuse::{self, Context, Rewrite};
use crate::loops::Loops;
use crate::program::{Kernel, Program};
use crate::queries::{Direct, Queries, rewritten};
use crate::{layout, names, plan};
use rx_loops::TargetInfo;

/// A pass of the pipeline.
#[derive(Debug)]
pub struct Step {
    /// The name, in the style of TVM's passes.
    pub name: &'static str,
    /// The effect, in a sentence.
    pub doc: &'static str,
    /// Whether reference runs, such as those of the interpreter, include the step.
    always: bool,
    /// The function that transforms the program.
    run: fn(&mut Program, &Context<'_>),
}

/// The steps, in order.
pub const STEPS: &[Step] = &[
    Step {
        name: "DeadCodeElimination",
        doc: "Removes instructions whose results nothing reads, and outputs of kernels that nothing reads.",
        always: false,
        run: fuse::remove_dead_code,
    },
    Step {
        name: "KernelsToViews",
        doc: "Makes a view of a kernel that leaves elements in their order, and of a view of a view a view of the first tensor.",
        always: false,
        run: fuse::find_views,
    },
    Step {
        name: "SinkViews",
        doc: "Moves a view below the kernels that follow a reduction element by element.",
        always: false,
        run: fuse::sink_views,
    },
    Step {
        name: "FuseEpilogues",
        doc: "Joins to a reduction the kernel that computes element by element of its result.",
        always: false,
        run: fuse::fuse_epilogues,
    },
    Step {
        name: "FuseChains",
        doc: "Joins products and the kernels between them where the device makes one kernel of all: attention.",
        always: false,
        run: fuse::fuse_chains,
    },
    Step {
        name: "FuseMoves",
        doc: "Lets each of the few readers of a kernel that only moves elements move them for itself.",
        always: false,
        run: fuse::fuse_moves,
    },
    Step {
        name: "FuseProducers",
        doc: "Joins a kernel that computes element by element to the one kernel that reads it.",
        always: false,
        run: fuse::fuse_producers,
    },
    Step {
        name: "SimplifyLoops",
        doc: "Simplifies index arithmetic, and computes temporaries of one reader where they are read.",
        always: false,
        run: simplify,
    },
    Step {
        name: "AssignLayouts",
        doc: "Puts the channels of tensors between convolutions last where the device reads several at once.",
        always: false,
        run: |program, context| layout::assign(program, context.target_info),
    },
    Step {
        name: "StaticPlanBlockMemory",
        doc: "Names the kernels, and lets outputs whose lifetimes do not overlap share memory.",
        always: true,
        run: |program, _| {
            names::assign(program);
            program.procedures.iter_mut().for_each(plan::plan);
        },
    },
];

/// Returns the steps of an optimized run, or those of a reference run.
fn steps(optimized: bool) -> impl Iterator<Item = &'static Step> {
    STEPS.iter().filter(move |step| optimized || step.always)
}

/// Runs the steps on a program that [`crate::lower()`] built; without target information, only the steps of a reference
/// run.
pub fn run(program: &mut Program, target_info: Option<&dyn TargetInfo>) {
    run_each(program, target_info, &mut |_, _| ());
}

/// Like [`run`]; calls `after` with each step and the program after it.
pub fn run_each(
    program: &mut Program,
    target_info: Option<&dyn TargetInfo>,
    after: &mut dyn FnMut(&'static Step, &Program),
) {
    run_with(&Direct, program, target_info, after);
}

/// Like [`run_each`], with `queries` instead of [`Direct`].
pub fn run_with(
    queries: &dyn Queries,
    program: &mut Program,
    target_info: Option<&dyn TargetInfo>,
    after: &mut dyn FnMut(&'static Step, &Program),
) {
    let context = Context { target_info: target_info.unwrap_or(&rx_loops::DefaultTargetInfo), queries };
    for step in steps(target_info.is_some()) {
        tracing::debug_span!("step", name = step.name).in_scope(|| (step.run)(program, &context));
        after(step, program);
    }
}

/// Returns a program that consists of one kernel, the function `loops`, and no procedures, for inspection. Indices that
/// cannot be proved in range are marked. If `optimized`, the function is simplified as in the step `SimplifyLoops`.
pub fn alone(loops: &Loops, optimized: bool, queries: &dyn Queries) -> Program {
    let inputs = loops.buffer_params().count();
    let guarded = rewritten(queries, &Rewrite::Guard { loops: loops.clone(), inputs });
    let kernel = Kernel::new(guarded.unwrap_or_else(|| loops.clone()), inputs, None);
    let mut program = Program { kernels: vec![kernel], ..Program::default() };
    if optimized {
        simplify(&mut program, &Context { target_info: &rx_loops::DefaultTargetInfo, queries });
    }
    program
}

/// Removes kernels that are never called, and names the others as the last step does: different functions get different
/// names. It is used to show a program after any step.
pub fn name_kernels(program: &mut Program) {
    fuse::drop_unused(program);
    names::assign(program);
}

/// Applies [`Rewrite::Simplify`] to all kernels.
fn simplify(program: &mut Program, context: &Context<'_>) {
    for kernel in &mut program.kernels {
        if let Some(loops) = rewritten(context.queries, &Rewrite::Simplify { loops: kernel.loops.clone() }) {
            kernel.loops = loops;
        }
    }
}
