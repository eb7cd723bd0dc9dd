//! Stages of a function that the server computes itself, from a snapshot of the text: passes, TIR and CUDA C.
//!
//! A [`Build`] is a read in the long lane. An edit cancels it, and it is retried with the new text. Errors of lowering
//! are sent to the main loop, which adds them to the document's diagnostics if the text has not changed.

use super::child::file_name;
use super::stage::{MAX_TEXT, Order, Part, PassOutput, Shown, Stage, function_at};
use super::wording::{too_long, with_more, words};
use crate::event::{Event, NotLowered};
use crate::lsp::from_proto;
use crate::reads::{Ask, Failure, Subject};
use rx_base::{Diagnostic, Name, Severity, Span};
use rx_build::listing::{self, Listing};
use rx_build::passes::Passes;
use rx_build::pipeline::Pipeline;
use rx_build::{Device, Lowered, function_kind};
use rx_cuda::rules::{RuleOrder, Target, arch};
use rx_db::{FunctionKind, ModuleId};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::Sender;

/// The arguments of `rxrun` that affect a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `--device`; `None` uses the device of `rx.toml`.
    device: Option<String>,
    /// `--arch`, `--schedule` and `--tf32`.
    target: Target,
}

impl Options {
    /// Parses the arguments of `rxrun` that affect a stage, and ignores those that affect runs only. `None` if an
    /// argument is invalid or only `rxrun` can handle it. Then `rxrun` computes the stage or reports the error.
    pub fn read(arguments: &[String]) -> Option<Options> {
        let mut options = Options::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word.as_str(), None),
            };
            let mut value = || value.or_else(|| words.next().map(String::as_str));
            match name {
                "--device" => {
                    let device = value().filter(|device| rx_settings::keys::DEVICES.contains(device))?;
                    options.device = Some(device.to_owned());
                }
                "--arch" => options.target.arch = arch(value()?).ok()?,
                "--schedule" => options.target.rules = RuleOrder::of(value()?.split(',').map(str::trim)).ok()?,
                "--tf32" => options.target.tf32 = true,
                "--passes" | "--constants" | "--config" | "--isolated" => return None,
                _ => {}
            }
        }
        Some(options)
    }
}

/// The computation of a stage, as a read of its document.
pub struct Build {
    /// The client's request.
    pub order: Order,
    /// The arguments that affect the stage.
    pub options: Options,
    /// The receiver of errors of lowering.
    pub events: Sender<Event>,
    /// The response, once it is computed.
    pub shown: Option<Shown>,
    /// The errors of lowering, if there are any.
    pub not_lowered: Option<NotLowered>,
}

impl Ask for Build {
    fn is_abandoned(&self) -> bool {
        self.order.reply.is_closed()
    }

    fn begin(&mut self) {
        (self.shown, self.not_lowered) = (None, None);
    }

    fn find(&mut self, subject: &Subject<'_>) {
        let (view, stage) = (&subject.view, self.order.stage);
        let Some(function) = function_at(view.document(), subject.offset(self.order.at), stage) else { return };
        let modules = view.workspace().modules(view.file());
        let label = modules.into_iter().find(|row| row.module == function.module).map(|row| row.label);
        // If the code below panics, this response is sent.
        let shown = self.shown.insert(Shown {
            function: function.name.to_string(),
            module: label,
            stage,
            text: Err(format!("{} cannot be shown: this is a bug in rx", stage.label(&function.name))),
            parts: Vec::new(),
            passes: Vec::new(),
        });
        let module = ModuleId { file: view.file(), module: function.module };
        let entry = Entry { subject, module, name: function.name, options: &self.options };
        match entry.made(stage) {
            Ok(made) => made.show(subject, shown),
            Err(why) => {
                let message = match &why {
                    Problem::Mistakes(found) | Problem::NotLowered(found) => mistakes(subject, found),
                    Problem::Other(message) => message.clone(),
                };
                shown.text = Err(format!("{} cannot be shown: {message}", stage.label(&function.name)));
                if let Problem::NotLowered(diagnostics) = why {
                    let (uri, text_number) = (subject.uri.clone(), subject.text_number);
                    self.not_lowered = Some(NotLowered { uri, text_number, diagnostics });
                }
            }
        }
    }

    fn answer(self: Box<Self>) {
        // Errors mean that the main loop has ended, or that the client no longer waits for the response.
        self.not_lowered.into_iter().for_each(|found| drop(self.events.send(Event::NotLowered(found))));
        drop(self.order.reply.send(self.shown));
    }

    fn fail(self: Box<Self>, _: Failure) {
        drop(self.order.reply.send(self.shown));
    }
}

/// The function whose stage is computed.
struct Entry<'a> {
    subject: &'a Subject<'a>,
    module: ModuleId,
    name: Name,
    options: &'a Options,
}

/// The reason why there is no text.
enum Problem {
    /// The file has errors.
    Mistakes(Vec<Diagnostic<Span>>),
    /// The function could not be lowered to TIR.
    NotLowered(Vec<Diagnostic<Span>>),
    /// Another reason: a sentence.
    Other(String),
}

/// The text of a stage.
struct Made {
    listing: Listing,
    passes: Vec<rx_build::passes::Stage>,
}

impl Entry<'_> {
    fn made(&self, stage: Stage) -> Result<Made, Problem> {
        let view = &self.subject.view;
        let mut errors = view.workspace().unsuppressed_diagnostics(view.file());
        errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
        if !errors.is_empty() {
            return Err(Problem::Mistakes(errors));
        }
        let target = &self.options.target;
        let listing = match stage {
            Stage::Passes => return self.passes(),
            Stage::Cuda => {
                listing::cuda(view.workspace(), self.module, &*self.program(true).map_err(Problem::NotLowered)?, target)
            }
            _ => listing::loops(view.workspace(), self.module, &*self.program(false).map_err(Problem::NotLowered)?),
        };
        Ok(Made { listing, passes: Vec::new() })
    }

    fn program(&self, is_cuda: bool) -> Lowered {
        rx_build::program(self.subject.view.workspace(), self.module, self.name, &self.device(is_cuda))
    }

    fn device(&self, is_cuda: bool) -> Device {
        let path = from_proto::path_or_name(self.subject.uri);
        let said = self.subject.said.project.file.settings.run(Path::new(&path)).device;
        let word = self.options.device.as_deref().or(said).unwrap_or_default();
        Device::to_print_for(word, &self.options.target, is_cuda)
    }

    fn passes(&self) -> Result<Made, Problem> {
        let workspace = self.subject.view.workspace();
        let pipeline = Pipeline::new(workspace, self.module, self.subject.said.project.operators.clone());
        let mut pipeline = pipeline.map_err(Problem::Other)?.without_tir_vars();
        let mut passes = Passes::new(workspace, self.module, &pipeline);
        if function_kind(workspace, self.module, self.name) == Some(FunctionKind::Relax) {
            passes.lower(&mut pipeline, self.name, &self.device(false));
        }
        Ok(Made { listing: passes.listing, passes: passes.stages })
    }
}

impl Made {
    fn show(self, subject: &Subject<'_>, shown: &mut Shown) {
        let lines = |lines: &Range<usize>| (lines.start as u64, lines.end as u64);
        let mut text = self.listing.text;
        text.truncate(text.trim_end().len());
        text.push('\n');
        if text.len() as u64 > MAX_TEXT {
            shown.text = Err(format!("{} {}", shown.stage.label(&shown.function), too_long(MAX_TEXT)));
            return;
        }
        shown.text = Ok(text);
        let part = |part: listing::Part| {
            let places = part.places.iter().filter(|span| subject.holds(**span));
            Part {
                lines: lines(&part.lines),
                ranges: places.map(|span| subject.range(*span)).collect(),
                name: part.name,
            }
        };
        shown.parts = self.listing.parts.into_iter().map(part).collect();
        let pass = |stage: rx_build::passes::Stage| PassOutput {
            pass: stage.pass.map(str::to_owned),
            changed: stage.changed,
            problem: stage.problem,
            lines: lines(&stage.lines),
        };
        shown.passes = self.passes.into_iter().map(pass).collect();
    }
}

/// Returns the first error with its position, and the number of further errors: `net.rx:17: … (and 2 more errors)`.
fn mistakes(subject: &Subject<'_>, found: &[Diagnostic<Span>]) -> String {
    let Some(first) = found.first() else { return "it cannot be lowered".to_owned() };
    let file = file_name(&from_proto::path_or_name(subject.uri));
    let line = subject.range(first.primary).start.line;
    with_more(&format!("{}:{}: {}", words(&file), line + 1, words(&first.message)), found.len())
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn read(arguments: &[&str]) -> Option<Options> {
        Options::read(&arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_that_change_a_stage_are_read() {
        let options = read(&["--dim", "n=4", "--device=cuda", "--arch", "sm_90a", "--tf32"]).expect("options");
        assert_eq!(options.device.as_deref(), Some("cuda"));
        assert_eq!((options.target.arch, options.target.tf32), (90, true));
        assert_eq!(read(&["--seed", "1"]), Some(Options::default()));
    }

    #[test]
    fn arguments_that_only_rxrun_reads_are_left_to_it() {
        for arguments in
            [["--constants", "c.npz"], ["--passes", "FoldConstant"], ["--device", "abacus"], ["--arch", "x"]]
        {
            assert_eq!(read(&arguments), None, "{arguments:?}");
        }
    }
}
