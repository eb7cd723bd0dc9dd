//! Code lenses: one that runs a function or stops its run, and one that shows its cost.

use super::Uri;
use crate::reads::Subject;
use crate::run::{COMMAND, STOP};
use rx_db::{FunctionKind, FunctionRow, ModuleRow};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashSet;
use tower_lsp::ls_types as proto;

/// The command of a lens that shows text and does nothing.
const NOTHING: &str = "";

/// The `data` of a lens whose text is computed by `codeLens/resolve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The document.
    pub uri: Uri,
    /// The name of the function.
    cost_of: String,
    /// The index of its module.
    #[serde(default)]
    module: Option<u32>,
}

/// Returns the lenses of a document: the cost over each function, and "Run" over each function that can be called from
/// outside, or "Stop" while it runs. If a module defines a name several times, only the last definition has lenses, as
/// in Python.
pub fn lenses(subject: &Subject<'_>, functions: &[FunctionRow]) -> Vec<proto::CodeLens> {
    let mut names = HashSet::new();
    let last: Vec<&FunctionRow> = functions.iter().rev().filter(|row| names.insert((row.module, row.name))).collect();
    let modules = subject.view.workspace().modules(subject.view.file());
    let last: Vec<&FunctionRow> = last.into_iter().rev().collect();
    let running = running(subject, &last, &modules);
    let lenses = |row: &FunctionRow| {
        let run = match running == Some(row) {
            true => Some(stop_lens(subject, row)),
            false => run_lens(subject, row, &modules),
        };
        [run, Some(cost_lens(subject, row))]
    };
    last.into_iter().filter(|row| subject.holds(row.span)).flat_map(lenses).flatten().collect()
}

/// Returns the function that the document's run executes: the requested one; without a name `main`, otherwise the first
/// that can be run. `None` if the client would not request the lenses again when the run ends.
fn running<'r>(subject: &Subject<'_>, rows: &[&'r FunctionRow], modules: &[ModuleRow]) -> Option<&'r FunctionRow> {
    let run = subject.in_progress.filter(|_| subject.profile.refreshes_lenses)?;
    let is_in = |row: &FunctionRow, label: &str| modules.iter().any(|it| it.module == row.module && it.label == label);
    let fits = |row: &FunctionRow| can_run(row) && run.module.as_deref().is_none_or(|label| is_in(row, label));
    let rows: Vec<&FunctionRow> = rows.iter().copied().filter(|row| fits(row)).collect();
    let named = |name: &str| rows.iter().copied().find(|row| row.name.as_str() == name);
    match &run.function {
        Some(name) => named(name),
        None => named("main").or_else(|| rows.first().copied()),
    }
}

/// Whether a function can be called from outside.
fn can_run(row: &FunctionRow) -> bool {
    row.kind == FunctionKind::Relax && !row.private
}

/// Returns the arguments of [`COMMAND`] that run a function. They name the module only if the file has several: for
/// example, `[uri, "main", null, "Module"]`.
pub fn run_arguments(
    subject: &Subject<'_>,
    function: (&str, Option<u32>),
    arguments: Option<serde_json::Value>,
    modules: &[ModuleRow],
) -> Vec<serde_json::Value> {
    let (name, module) = function;
    let mut call = vec![json!(subject.uri.as_str()), json!(name)];
    let module = modules.iter().find(|row| row.module == module).filter(|_| modules.len() > 1);
    call.extend(arguments.or_else(|| module.map(|_| json!(null))));
    call.extend(module.map(|row| json!(row.label)));
    call
}

fn run_lens(subject: &Subject<'_>, row: &FunctionRow, modules: &[ModuleRow]) -> Option<proto::CodeLens> {
    can_run(row).then(|| proto::CodeLens {
        range: subject.range(row.span),
        command: Some(proto::Command {
            title: format!("▶ Run `{}`", row.name),
            command: COMMAND.to_owned(),
            arguments: Some(run_arguments(subject, (row.name.as_str(), row.module), None, modules)),
        }),
        data: None,
    })
}

fn stop_lens(subject: &Subject<'_>, row: &FunctionRow) -> proto::CodeLens {
    proto::CodeLens {
        range: subject.range(row.span),
        command: Some(proto::Command {
            title: format!("■ Stop `{}`", row.name),
            command: STOP.to_owned(),
            arguments: Some(vec![json!(subject.uri.as_str())]),
        }),
        data: None,
    }
}

fn cost_lens(subject: &Subject<'_>, row: &FunctionRow) -> proto::CodeLens {
    let late = Late { uri: subject.uri.clone(), cost_of: row.name.to_string(), module: row.module };
    proto::CodeLens { range: subject.range(row.span), command: None, data: serde_json::to_value(late).ok() }
}

/// Returns the data for resolving a lens; `None` if it is complete.
pub fn late(lens: &proto::CodeLens) -> Option<Late> {
    serde_json::from_value(lens.data.clone()?).ok()
}

/// Returns the command of a lens, whose title is the cost of the function.
pub fn resolved(subject: &Subject<'_>, late: &Late) -> proto::Command {
    let items = subject.view.document().items();
    let item = items
        .iter()
        .rposition(|item| item.module == late.module && item.name.is_some_and(|name| name.as_str() == late.cost_of));
    let text = item.and_then(|item| rx_ide::cost_line(&subject.view, item));
    let title = text.unwrap_or_else(|| "unknown cost".to_owned());
    proto::Command { title, command: NOTHING.to_owned(), arguments: None }
}
