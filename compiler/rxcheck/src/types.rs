//! `--types`: prints the type of every parameter, named binding and return.

use rx_db::{RowKind, TypeRow};
use rx_report::{Format, Source, printable};
use serde::Serialize;

/// One row as `--types --format json` writes it (`docs/json.md`).
#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    function: &'a str,
    name: &'a str,
    kind: String,
    struct_info: &'a str,
    inferred: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: u32,
    column: u32,
}

/// Returns the rows of one file, each with its line end. Bare statements and bindings to `_` are left out: both discard
/// their value. A parameter `_` is listed, since callers pass it by position.
pub fn rows(source: &Source<'_>, types: &[TypeRow], format: Format) -> Vec<String> {
    let listed = types.iter().filter(|row| row.kind != RowKind::Binding || row.name != "_");
    listed.map(|row| if format == Format::Json { object(source, row) } else { line(source, row) }).collect()
}

fn object(source: &Source<'_>, row: &TypeRow) -> String {
    let position = source.position(row.span.start as usize);
    let row = Row {
        file: source.name(),
        function: &row.function,
        name: &row.name,
        kind: row.kind.to_string(),
        struct_info: &row.struct_info,
        inferred: row.inferred,
        cell: position.cell,
        line: position.line,
        column: position.column,
    };
    rx_report::json_line(&row) + "\n"
}

/// Formats `path:line:column: kind function.name: struct info`; inferred types are marked. For example:
///
/// ```text
/// net.rx:7:9: binding main.lv: R.Tensor((2, 3), dtype="float32")  # inferred
/// ```
fn line(source: &Source<'_>, row: &TypeRow) -> String {
    let position = source.position(row.span.start as usize);
    let origin = if row.inferred { "  # inferred" } else { "" };
    let TypeRow { function, name, kind, struct_info, .. } = row;
    let line = format!("{}:{position}: {kind} {function}.{name}: {struct_info}{origin}", source.name());
    line.chars().map(printable).chain(['\n']).collect()
}
