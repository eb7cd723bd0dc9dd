//! Markdown documentation of operators, generated from their schemas.

use rx_analysis::elaborate::signature_text;
use rx_ops::{Param, ParamKind, Purity, Schema};

/// Describes an operator: signature, meaning, parameters, link to its page.
pub(crate) fn operator(schema: &Schema) -> String {
    let mut text = format!("```python\n{}\n```\n{}\n", signature_text(schema), schema.doc);
    if schema.purity == Purity::Impure {
        text.push_str("Impure: it must not be called in a dataflow block or a pure function.\n");
    }
    for param in schema.params {
        let kind = if matches!(param.kind, ParamKind::Attr(_)) { "attribute" } else { "operand" };
        text.push_str(&format!("- `{}` ({kind}): {}\n", param.name, param.doc));
    }
    if let Some(url) = schema.url() {
        text.push_str(&format!("\n[R.{}]({url})\n", schema.name));
    }
    text
}

/// Describes a parameter of an operator: kind, default, meaning.
pub(crate) fn param(schema: &Schema, param: &Param) -> String {
    let default = match param.default.text() {
        Some(default) => format!(", default `{default}`"),
        None => String::new(),
    };
    format!("`{}` of `R.{}`: {}{default}\n\n{}", param.name, schema.name, param.kind, param.doc)
}
