//! Describes values and their parts in messages of a chain.

use rx_ir::Expr;
use rx_ops::provenance::{Facet, Part};

/// Describes a part: `axis 2`, `axis 0 of field 1`, `the dtype`.
pub(crate) fn describe_part(facet: &Facet) -> String {
    let part = match facet.part {
        Part::Dim(axis) => format!("axis {axis}"),
        Part::Rank => "the rank".to_owned(),
        Part::Dtype => "the dtype".to_owned(),
        Part::Value => "the value".to_owned(),
    };
    match &facet.path[..] {
        [] => part,
        path => {
            let path: Vec<String> = path.iter().map(usize::to_string).collect();
            format!("{part} of field {}", path.join("."))
        }
    }
}

/// Describes a value: `` `x` ``, `` `x[1]` ``, or `subject` if it has no name.
pub(super) fn describe_value(expr: &Expr, subject: &str) -> String {
    match expr.variable_text() {
        Some(name) => format!("`{name}`"),
        None => subject.to_owned(),
    }
}
