//! The pass pipeline of the back end: from a program with a kernel for each operator to the kernels that a device runs.
//!
//! [`STEPS`] is the one list of its steps. Each takes a program to a program that computes the same; the last one's kernels are
//! what runs, and `rx_build::to_module` shows the program between any two of them.

use crate::program::{Kernel, Program};
use crate::{fuse, layout, names, plan};
use rx_schedule::Preferences;
use rx_tir::PrimFunc;
use std::sync::Arc;

/// A step of the pipeline.
#[derive(Debug)]
pub struct Step {
    /// Its name, in the manner of TVM's passes.
    pub name: &'static str,
    /// Its effect, in a sentence.
    pub doc: &'static str,
    /// Whether a reference run has it, too: the interpreter judges the others.
    always: bool,
    run: fn(&mut Program, &dyn Preferences),
}

/// The steps, in order.
pub const STEPS: &[Step] = &[
    Step {
        name: "DeadCodeElimination",
        doc: "Removes instructions whose results nothing reads, and outputs of kernels that nothing reads.",
        always: false,
        run: |program, _| fuse::remove_dead_code(program),
    },
    Step {
        name: "KernelsToViews",
        doc: "Makes a view of a kernel that leaves elements in their order, and of a view of a view a view of the first tensor.",
        always: false,
        run: |program, _| fuse::find_views(program),
    },
    Step {
        name: "SinkViews",
        doc: "Moves a view below the kernels that follow a reduction element by element.",
        always: false,
        run: |program, _| fuse::sink_views(program),
    },
    Step {
        name: "FuseEpilogues",
        doc: "Joins to a reduction the kernel that computes element by element of its result.",
        always: false,
        run: |program, _| fuse::fuse_epilogues(program),
    },
    Step {
        name: "FuseChains",
        doc: "Joins products and the kernels between them where the device makes one kernel of all: attention.",
        always: false,
        run: |program, preferences| fuse::fuse_chains(program, preferences),
    },
    Step {
        name: "FuseMoves",
        doc: "Lets each of the few readers of a kernel that only moves elements move them for itself.",
        always: false,
        run: |program, _| fuse::fuse_moves(program),
    },
    Step {
        name: "FuseProducers",
        doc: "Joins a kernel that computes element by element to the one kernel that reads it.",
        always: false,
        run: |program, _| fuse::fuse_producers(program),
    },
    Step {
        name: "SimplifyLoops",
        doc: "Simplifies index arithmetic, and computes temporaries of one reader where they are read.",
        always: false,
        run: |program, _| simplify(program),
    },
    Step {
        name: "AssignLayouts",
        doc: "Puts the channels of tensors between convolutions last where the device reads several at once.",
        always: false,
        run: layout::assign,
    },
    Step {
        name: "StaticPlanBlockMemory",
        doc: "Names the kernels, and lets outputs share memory whose lifetimes do not meet.",
        always: true,
        run: |program, _| {
            names::assign(program);
            program.procedures.iter_mut().for_each(plan::plan);
        },
    },
];

/// The steps for a device with these preferences; without preferences those of a reference run, in which each operator stays a
/// kernel.
fn steps(optimized: bool) -> impl Iterator<Item = &'static Step> {
    STEPS.iter().filter(move |step| optimized || step.always)
}

/// Runs the steps on a program that [`crate::lower()`] made; without preferences those of a reference run.
pub fn run(program: &mut Program, preferences: Option<&dyn Preferences>) {
    run_each(program, preferences, &mut |_, _| ());
}

/// As [`run`]; calls `after` with each step and the program as it is then.
pub fn run_each(
    program: &mut Program,
    preferences: Option<&dyn Preferences>,
    after: &mut dyn FnMut(&'static Step, &Program),
) {
    for step in steps(preferences.is_some()) {
        tracing::debug_span!("step", name = step.name)
            .in_scope(|| (step.run)(program, preferences.unwrap_or(&rx_schedule::NoPreferences)));
        after(step, program);
    }
}

/// The program that is one prim_func and nothing that calls it, to be looked at: unproved indices are marked, and the
/// loops are simplified where `optimized` says so.
pub fn alone(func: &PrimFunc, optimized: bool) -> Program {
    let (guarded, _) = rx_schedule::guards(func);
    let inputs = guarded.buffer_params().count();
    let mut program = Program { kernels: vec![Kernel::new(guarded, inputs)], ..Program::default() };
    if optimized {
        simplify(&mut program);
    }
    program
}

/// Gives kernels that differ different names, as the last step does: to show a program before it.
pub fn name_kernels(program: &mut Program) {
    names::assign(program);
}

fn simplify(program: &mut Program) {
    for kernel in &mut program.kernels {
        kernel.func = Arc::new(rx_schedule::simplify(&rx_schedule::inline(&rx_schedule::simplify(&kernel.func))));
    }
}
