//! Prints a module before the first pass and after each pass that changes it, in one text. The passes are those of a
//! pipeline, or the steps that lead to the kernels of a device. For a pass that changes nothing or has no result, the
//! text contains only a heading that says so.

use crate::listing::{Listing, Part, comment};
use crate::pipeline::{Pipeline, Unapplied};
use crate::{Device, LOWERING};
use rx_base::Name;
use rx_db::{ModuleId, Workspace};
use std::ops::Range;

/// The texts of a module before the first pass and after each pass that changes it, one after the other.
pub struct Passes<'w> {
    /// The workspace of the source, for the positions of statements.
    workspace: &'w Workspace,
    module: ModuleId,
    /// The text so far. Its parts are bindings and prim_funcs that come from statements of the source.
    pub listing: Listing,
    /// The module before the first pass, followed by the result of each pass.
    pub stages: Vec<Stage>,
}

/// The result of one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The name of the pass; `None` for the module before the first one.
    pub pass: Option<&'static str>,
    /// Whether the pass changed the text; true for the module before the first one.
    pub changed: bool,
    /// The lines that contain the module, from 0. If the pass changed nothing or has no result, these are the lines of
    /// the stage before.
    pub lines: Range<usize>,
    /// The reason why the pass has no result: it could not be applied, or its result has errors.
    pub problem: Option<String>,
}

/// The end of the passes: one has no result, and the reason is in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

impl<'w> Passes<'w> {
    /// Starts with the module before the first pass. `module` is the source of the statements' positions.
    pub fn new(workspace: &'w Workspace, module: ModuleId, pipeline: &Pipeline) -> Passes<'w> {
        let mut passes = Passes { workspace, module, listing: Listing::default(), stages: Vec::new() };
        passes.add(pipeline, None);
        passes
    }

    /// Lowers the Relax function `entry` to kernels of a device, and appends the module after each step of the
    /// lowering. If the function cannot be lowered or a step has no result, the last entry has the reason.
    pub fn lower(&mut self, pipeline: &mut Pipeline, entry: Name, device: &Device) {
        let mut before = pipeline.text().to_owned();
        let lowered = pipeline.lower(entry, device, &mut |step, pipeline, applied| {
            let outcome = self.made((pipeline, &before), step, applied.map(drop));
            pipeline.text().clone_into(&mut before);
            outcome
        });
        if let Err(error) = lowered {
            self.problem(LOWERING, error.0);
        }
    }

    /// Appends the result of a pass on the module whose text was `before`.
    ///
    /// # Errors
    /// Returns [`Ended`] if the pass has no result.
    pub fn made(
        &mut self,
        (pipeline, before): (&Pipeline, &str),
        pass: &'static str,
        applied: Result<(), Unapplied>,
    ) -> Result<(), Ended> {
        self.workspace.unwind_if_cancelled();
        match applied {
            Ok(()) if pipeline.text() == before => {
                let lines = self.last_lines();
                self.head(&format!("{pass}: no change"));
                self.stages.push(Stage { pass: Some(pass), changed: false, lines, problem: None });
                Ok(())
            }
            Ok(()) => {
                self.add(pipeline, Some(pass));
                Ok(())
            }
            Err(Unapplied::Refused(error)) => {
                self.problem(pass, error.0);
                Err(Ended)
            }
            Err(Unapplied::Broken(_, errors)) => {
                let first = errors.first().map_or("", |error| &error.message);
                self.problem(pass, format!("{pass} made a module with errors: {first}"));
                Err(Ended)
            }
        }
    }

    fn last_lines(&self) -> Range<usize> {
        self.stages.last().map_or(0..0, |stage| stage.lines.clone())
    }

    /// Appends the reason why a pass has no result.
    fn problem(&mut self, pass: &'static str, problem: String) {
        let lines = self.last_lines();
        self.head(&problem);
        self.stages.push(Stage { pass: Some(pass), changed: false, lines, problem: Some(problem) });
    }

    /// Appends a heading.
    fn head(&mut self, title: &str) {
        self.listing.text.push_str(&comment("#", &format!("----- {title} -----")));
        self.listing.text.push('\n');
        self.listing.lines += 2;
    }

    /// Appends a heading and the current module.
    fn add(&mut self, pipeline: &Pipeline, pass: Option<&'static str>) {
        self.head(pass.unwrap_or("the module"));
        let start = self.listing.lines;
        let statements = self.workspace.statements(self.module);
        let span = |origin: &rx_ir::Origin| statements.span(*origin);
        let parts = pipeline.parts().map(|part| Part {
            name: part.name.to_string(),
            lines: start + part.lines.start..start + part.lines.end,
            places: part.origins.iter().filter_map(span).collect(),
        });
        self.listing.parts.extend(parts.filter(|part| !part.places.is_empty()));
        self.listing.text.push_str(pipeline.text());
        self.listing.text.push('\n');
        let count = pipeline.text().lines().count();
        self.listing.lines += count + 1;
        self.stages.push(Stage { pass, changed: true, lines: start..start + count, problem: None });
    }
}
