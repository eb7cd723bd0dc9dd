//! `--emit passes`: the module after each pass. The passes are those of `--passes`, otherwise those that lead to the
//! kernels of the device.

use crate::args::Args;
use crate::device::Device;
use crate::failure::Failure;
use crate::session::Session;
use rx_build::passes::Passes;
use rx_build::pipeline::Pipeline;
use rx_syntax::document::FunctionKind;
use rx_transform::pass::{PassError, Step};

/// Returns the module and the result of each pass. The list ends at the first pass that fails.
pub fn passes<'s>(session: &'s Session, args: &Args) -> Result<Passes<'s>, Failure> {
    let refused = |error: PassError| Failure::usage(error.0);
    let steps = args.passes.as_deref().map(rx_transform::pass::parse).transpose().map_err(refused)?;
    let pipeline = Pipeline::new(&session.workspace, session.module, session.operators.clone());
    let pipeline = pipeline.and_then(|pipeline| pipeline.without_tir_vars().with_constants(&session.constants));
    let mut pipeline = pipeline.map_err(|why| Failure::usage(format!("{}: {why}", session.name)))?;
    let mut passes = Passes::new(&session.workspace, session.module, &pipeline);
    match steps {
        Some(steps) => apply(&mut passes, &mut pipeline, &steps),
        None => lower(&mut passes, &mut pipeline, session, args)?,
    }
    Ok(passes)
}

/// Applies passes and adds their results.
fn apply(passes: &mut Passes<'_>, pipeline: &mut Pipeline, steps: &[Step]) {
    for step in steps {
        let before = pipeline.text().to_owned();
        let applied = pipeline.apply(step, rx_driver::evaluate).map(drop);
        if passes.made((pipeline, &before), step.pass.name, applied).is_err() {
            break;
        }
    }
}

/// Adds the steps that lead to the kernels of the device. A module without a Relax function has no such steps.
fn lower(passes: &mut Passes<'_>, pipeline: &mut Pipeline, session: &Session, args: &Args) -> Result<(), Failure> {
    let functions = session.functions();
    let mut named = functions.iter().filter(|function| args.entry.as_deref().is_none_or(|own| *function.name == *own));
    if !named.any(|function| function.kind == FunctionKind::Relax) {
        return Ok(());
    }
    let entry = session.entry(args.entry.as_deref())?;
    let device = Device::to_print_for(session, args, false);
    passes.lower(pipeline, entry, &device);
    Ok(())
}
