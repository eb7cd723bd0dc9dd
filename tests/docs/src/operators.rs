//! Generates the page of operators.

use rx_analysis::elaborate::signature_text;
use rx_ops::schema::{Param, Purity, Schema};
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "# Operators

<!-- Written by `cargo run -p rx-docs` from the schemas in compiler/ops; a test compares. -->

The operators of rx, with the signature, description and parameters of their schemas. Hover, completion and the argument checks use the
same schemas.
";

/// Returns the page as Markdown.
pub fn page() -> String {
    let mut groups: BTreeMap<&str, BTreeMap<&str, &Schema>> = BTreeMap::new();
    for schema in rx_ops::all() {
        let namespace = schema.name.rsplit_once('.').map_or("", |(namespace, _)| namespace);
        groups.entry(namespace).or_default().insert(schema.name, schema);
    }
    let mut page = HEAD.to_owned();
    for (namespace, operators) in &groups {
        let names: Vec<String> = operators.values().map(|schema| link(schema)).collect();
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

/// Returns a group's heading: `R`, `R.nn`.
fn title(namespace: &str) -> String {
    if namespace.is_empty() { "R".to_owned() } else { format!("R.{namespace}") }
}

/// Returns a link to an operator's section.
fn link(schema: &Schema) -> String {
    let short = schema.name.rsplit('.').next().unwrap_or(schema.name);
    format!("[{short}](#{})", schema.anchor())
}

fn operator(page: &mut String, schema: &Schema) {
    // INVARIANT: writing to a string does not fail.
    let _ = write!(page, "\n### R.{}\n\n```python\n{}\n```\n\n{}\n", schema.name, signature_text(schema), schema.doc);
    if schema.purity == Purity::Impure {
        page.push_str("\nImpure: it must not be called in a dataflow block or a pure function.\n");
    }
    if !schema.params.is_empty() {
        page.push_str("\n| parameter | takes | default | |\n|---|---|---|---|\n");
    }
    for Param { name, kind, default, doc } in schema.params {
        let default_cell = default.text().map_or_else(String::new, |text| format!("`{text}`"));
        let _ = writeln!(page, "| `{name}` | {} | {} | {} |", kind, default_cell, cell(doc));
    }
    if !schema.reference.is_empty() {
        let _ = write!(page, "\nReference: {}\n", schema.reference);
    }
}

/// Escapes a text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
