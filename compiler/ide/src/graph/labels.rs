//! Labels of nodes and edges.

use super::NodeKind;
use crate::hints::shape;
use rx_ir::{Argument, Call, Callee, Expr, ExprKind, StructInfo};

/// The maximal length of a label that is source text, in characters.
const LONGEST: usize = 40;

/// Returns source text on one line, truncated.
pub(super) fn source(text: &str) -> String {
    let mut label = String::new();
    for word in text.split_whitespace() {
        if !label.is_empty() {
            label.push(' ');
        }
        label.push_str(word);
        if label.len() > 4 * LONGEST {
            break;
        }
    }
    match label.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", label.get(..end).unwrap_or_default()),
        None => label,
    }
}

/// Returns the kind and the label of an expression whose source is `text`.
pub(super) fn of_expr(expr: &Expr, text: &str) -> (NodeKind, String) {
    match &expr.kind {
        ExprKind::Call(call) => of_call(call, text),
        ExprKind::MatchCast(_) => (NodeKind::Operator, "match_cast".to_owned()),
        ExprKind::Constant(_) | ExprKind::Elements(_) | ExprKind::Metadata { .. } => (NodeKind::Constant, source(text)),
        ExprKind::Tuple(_) => (NodeKind::Value, "tuple".to_owned()),
        _ => (NodeKind::Value, source(text)),
    }
}

fn of_call(call: &Call, text: &str) -> (NodeKind, String) {
    match &call.callee {
        Callee::Global(name) => (NodeKind::Call, name.to_string()),
        Callee::Op(name) => match called(name.as_str(), call) {
            Some(function) => (NodeKind::Call, function),
            None => (NodeKind::Operator, name.to_string()),
        },
        Callee::Value(function) => match &function.kind {
            ExprKind::Var(name) | ExprKind::Extern(name) => (NodeKind::Call, name.to_string()),
            _ => (NodeKind::Call, source(text)),
        },
    }
}

/// Returns the function that `R.call_tir` or a similar operator calls.
fn called(operator: &str, call: &Call) -> Option<String> {
    let calls = operator.rsplit('.').next().is_some_and(|short| short.starts_with("call_"));
    let function = |argument: &Argument| match argument {
        Argument::Operand(Expr { kind: ExprKind::Global(name) | ExprKind::Extern(name), .. }) => Some(name.to_string()),
        _ => None,
    };
    calls.then(|| call.arguments.iter().find_map(function)).flatten()
}

/// Returns the short form of a type for an edge: `(1, 64) float32`.
pub(super) fn edge(ty: &StructInfo) -> Option<String> {
    match ty {
        StructInfo::Tensor(tensor) => {
            let dtype = tensor.dtype.map(|dtype| dtype.to_string());
            let parts: Vec<String> = shape(&tensor.shape).into_iter().chain(dtype).collect();
            (!parts.is_empty()).then(|| parts.join(" "))
        }
        StructInfo::Shape(known) => shape(known).map(|shape| format!("shape {shape}")),
        StructInfo::Tuple(fields) => Some(format!("{} fields", fields.len())),
        _ => None,
    }
}
