//! The module before the first pass and after each, one text under the other: the steps that lead to the kernels of the device,
//! or the passes that --passes names.

use super::Listing;
use crate::args::Args;
use crate::device::Device;
use crate::failure::Failure;
use crate::report::{Part, Stage};
use crate::session::Session;
use rx_build::LOWERING;
use rx_execute::pipeline::{Pipeline, Unapplied};
use rx_syntax::document::FunctionKind;
use rx_transform::pass::{PassError, Step};

/// The module and what each pass makes of it. One that cannot be applied is the last.
pub fn listing(session: &Session, args: &Args) -> Result<Listing, Failure> {
    let refused = |error: PassError| Failure::usage(error.0);
    let passes = args.passes.as_deref().map(rx_transform::pass::parse).transpose().map_err(refused)?;
    let pipeline = Pipeline::new(&session.workspace, session.module, session.operators.clone());
    let pipeline = pipeline.and_then(|pipeline| pipeline.without_tir_vars().with_constants(&session.constants));
    let mut pipeline = pipeline.map_err(|why| Failure::usage(format!("{}: {why}", session.name)))?;
    let mut listing = Listing::whole(String::new());
    add(&mut listing, session, &pipeline, None);
    match passes {
        Some(passes) => of_passes(&mut listing, session, &mut pipeline, &passes),
        None => of_device(&mut listing, session, &mut pipeline, args)?,
    }
    Ok(listing)
}

/// Adds what passes make.
fn of_passes(listing: &mut Listing, session: &Session, pipeline: &mut Pipeline, passes: &[Step]) {
    for step in passes {
        let before = pipeline.text().to_owned();
        let applied = pipeline.apply(step).map(drop);
        if made(listing, session, (pipeline, &before), step.pass.name, applied).is_err() {
            break;
        }
    }
}

/// Adds what the steps make that lead to the kernels of the device. A module without a Relax function has none.
fn of_device(listing: &mut Listing, session: &Session, pipeline: &mut Pipeline, args: &Args) -> Result<(), Failure> {
    let functions = session.functions();
    let mut named = functions.iter().filter(|function| args.entry.as_deref().is_none_or(|own| *function.name == *own));
    if !named.any(|function| function.kind == FunctionKind::Relax) {
        return Ok(());
    }
    let entry = session.entry(args.entry.as_deref())?;
    let device = Device::to_print_for(session, args, false);
    let mut before = pipeline.text().to_owned();
    let lowered = pipeline.lower(entry, &device.target(), &mut |step, pipeline, applied| {
        let outcome = made(listing, session, (pipeline, &before), step, applied.map(drop));
        pipeline.text().clone_into(&mut before);
        outcome
    });
    if let Err(error) = lowered {
        problem(listing, LOWERING, error.0);
    }
    Ok(())
}

/// The pass could not be applied, which was said.
struct Ended;

/// Adds what a pass made of the module whose text was `before`.
fn made(
    listing: &mut Listing,
    session: &Session,
    (pipeline, before): (&Pipeline, &str),
    pass: &'static str,
    applied: Result<(), Unapplied>,
) -> Result<(), Ended> {
    match applied {
        Ok(()) if pipeline.text() == before => {
            let lines = listing.stages.last().map_or(0..0, |stage| stage.lines.clone());
            head(listing, &format!("{pass}: no change"));
            listing.stages.push(Stage { pass: Some(pass), changed: false, lines, problem: None });
            Ok(())
        }
        Ok(()) => {
            add(listing, session, pipeline, Some(pass));
            Ok(())
        }
        Err(Unapplied::Refused(error)) => {
            problem(listing, pass, error.0);
            Err(Ended)
        }
        Err(Unapplied::Broken(_, errors)) => {
            let first = errors.first().map_or("", |error| &error.message);
            problem(listing, pass, format!("{pass} made a module with errors: {first}"));
            Err(Ended)
        }
    }
}

/// Adds why a pass has no result.
fn problem(listing: &mut Listing, pass: &'static str, problem: String) {
    let lines = listing.stages.last().map_or(0..0, |stage| stage.lines.clone());
    head(listing, &problem);
    listing.stages.push(Stage { pass: Some(pass), changed: false, lines, problem: Some(problem) });
}

/// Adds a line that says what follows.
fn head(listing: &mut Listing, what: &str) {
    let line = super::comment("#", &format!("----- {what} -----"));
    listing.text.push_str(&line);
    listing.text.push('\n');
    listing.lines += 2;
}

/// Adds the module as it is now.
fn add(listing: &mut Listing, session: &Session, pipeline: &Pipeline, pass: Option<&'static str>) {
    head(listing, pass.unwrap_or("the module"));
    let start = listing.lines;
    let parts = pipeline.parts().map(|part| Part {
        name: part.name.to_string(),
        lines: start + part.lines.start..start + part.lines.end,
        places: part.origins.iter().filter_map(|origin| session.span(*origin)).collect(),
    });
    listing.parts.extend(parts.filter(|part| !part.places.is_empty()));
    listing.text.push_str(pipeline.text());
    listing.text.push('\n');
    let count = pipeline.text().lines().count();
    listing.lines += count + 1;
    listing.stages.push(Stage { pass, changed: true, lines: start..start + count, problem: None });
}
