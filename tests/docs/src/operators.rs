//! The page of operators.

use rx_analysis::elaborate::signature_text;
use rx_ops::schema::{AttrKind, Default, Param, ParamKind, Purity, Schema};
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "# Operators

<!-- Written by `cargo run -p rx-docs` from the schemas in compiler/ops; a test compares. -->

Every operator rx knows, as its schema says it. Hover, completion and the checks of arguments read the same schemas.
";

/// The page as Markdown.
pub fn page() -> String {
    let mut groups: BTreeMap<&str, BTreeMap<&str, &Schema>> = BTreeMap::new();
    for schema in rx_ops::all() {
        let namespace = schema.name.rsplit_once('.').map_or("", |(namespace, _)| namespace);
        groups.entry(namespace).or_default().insert(schema.name, schema);
    }
    let mut page = HEAD.to_owned();
    for (namespace, operators) in &groups {
        let names: Vec<String> = operators.keys().map(|name| link(name)).collect();
        // INVARIANT: writing to a string does not fail.
        let _ = write!(page, "\n**{}**: {}\n", title(namespace), names.join(", "));
    }
    for (namespace, operators) in &groups {
        let _ = write!(page, "\n## {}\n", title(namespace));
        for schema in operators.values() {
            operator(&mut page, schema);
        }
    }
    page
}

/// A group's heading: `R`, `R.nn`.
fn title(namespace: &str) -> String {
    if namespace.is_empty() { "R".to_owned() } else { format!("R.{namespace}") }
}

/// A link to an operator's section; anchors are headings without their dots.
fn link(name: &str) -> String {
    let short = name.rsplit('.').next().unwrap_or(name);
    format!("[{short}](#r{})", name.replace('.', "").to_lowercase())
}

fn operator(page: &mut String, schema: &Schema) {
    // INVARIANT: writing to a string does not fail.
    let _ = write!(page, "\n### R.{}\n\n```python\n{}\n```\n\n{}\n", schema.name, signature_text(schema), schema.doc);
    if schema.purity == Purity::Impure {
        page.push_str("\nImpure: it may not stand in a dataflow block or a pure function.\n");
    }
    if !schema.params.is_empty() {
        page.push_str("\n| parameter | takes | default | |\n|---|---|---|---|\n");
    }
    for Param { name, kind, default, doc } in schema.params {
        let _ = writeln!(page, "| `{name}` | {} | {} | {} |", takes(*kind), default_text(*default), cell(doc));
    }
    if !schema.reference.is_empty() {
        let _ = write!(page, "\nReference: {}\n", schema.reference);
    }
}

/// Text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// What a parameter takes, in words.
fn takes(kind: ParamKind) -> String {
    match kind {
        ParamKind::Tensor => "tensor",
        ParamKind::Tensors => "tuple of tensors",
        ParamKind::Shape => "shape",
        ParamKind::Prim => "scalar",
        ParamKind::Prims => "tuple of scalars",
        ParamKind::Any => "any expression",
        ParamKind::Variadic => "any number of expressions",
        ParamKind::Function => "function",
        ParamKind::Arguments => "tuple of arguments",
        ParamKind::Types => "struct infos",
        ParamKind::Attr(kind) => return attribute(kind),
    }
    .to_owned()
}

fn attribute(kind: AttrKind) -> String {
    match kind {
        AttrKind::Int => "integer",
        AttrKind::IntOrNone => "integer or `None`",
        AttrKind::Float => "number",
        AttrKind::Bool => "boolean",
        AttrKind::Str => "string",
        AttrKind::Choice(choices) => {
            let choices: Vec<String> = choices.iter().map(|choice| format!("`\"{choice}\"`")).collect();
            return choices.join(" or ");
        }
        AttrKind::DType => "dtype",
        AttrKind::Ints => "integer or integers",
        AttrKind::Floats => "numbers",
        AttrKind::Layout => "layout",
        AttrKind::Strs => "strings",
        AttrKind::VDevice => "virtual device",
        AttrKind::Dict => "dictionary",
        AttrKind::Any => "any value",
    }
    .to_owned()
}

fn default_text(default: Default) -> String {
    match default {
        Default::Required => String::new(),
        Default::Absent => "`None`".to_owned(),
        Default::Bool(value) => format!("`{}`", if value { "True" } else { "False" }),
        Default::Int(value) => format!("`{value}`"),
        Default::Float(value) => format!("`{value:?}`"),
        Default::Str(value) => format!("`\"{value}\"`"),
        Default::Ints(values) => format!("`{values:?}`"),
        Default::Floats(values) => format!("`{values:?}`"),
    }
}
