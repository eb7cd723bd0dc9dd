//! The module before the first pass and behind each, one text under the other.

use super::Listing;
use crate::args::Args;
use crate::failure::Failure;
use crate::report::{Part, Stage};
use crate::session::Session;
use rx_execute::pipeline::{Pipeline, Unapplied};
use rx_transform::pass::PassError;

/// What the passes asked for make of the program, each in turn. One that cannot be applied is the last.
pub fn listing(session: &Session, args: &Args) -> Result<Listing, Failure> {
    let refused = |error: PassError| Failure::usage(error.0);
    let steps = match &args.passes {
        Some(passes) => rx_transform::pass::parse(passes).map_err(refused)?,
        None => rx_transform::pipeline::steps("default").map_err(refused)?,
    };
    let pipeline = Pipeline::new(&session.workspace, session.module, session.operators.clone());
    let pipeline = pipeline.and_then(|pipeline| pipeline.without_tir_vars().with_constants(&session.constants));
    let mut pipeline = pipeline.map_err(|why| Failure::usage(format!("{}: {why}", session.name)))?;
    let mut listing = Listing::whole(String::new());
    add(&mut listing, session, &pipeline, None);
    for step in &steps {
        let before = pipeline.text().to_owned();
        match pipeline.apply(step) {
            Ok(_) if pipeline.text() == before => {
                let lines = listing.stages.last().map_or(0..0, |stage| stage.lines.clone());
                head(&mut listing, &format!("{}: no change", step.pass.name));
                listing.stages.push(Stage { pass: Some(step.pass.name), changed: false, lines, problem: None });
            }
            Ok(_) => add(&mut listing, session, &pipeline, Some(step.pass.name)),
            Err(why) => {
                let problem = match why {
                    Unapplied::Refused(error) => error.0,
                    Unapplied::Broken(_, errors) => {
                        let first = errors.first().map_or("", |error| &error.message);
                        format!("{} made a module with errors: {first}", step.pass.name)
                    }
                };
                let lines = listing.stages.last().map_or(0..0, |stage| stage.lines.clone());
                head(&mut listing, &problem);
                let pass = Some(step.pass.name);
                listing.stages.push(Stage { pass, changed: false, lines, problem: Some(problem) });
                break;
            }
        }
    }
    Ok(listing)
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
