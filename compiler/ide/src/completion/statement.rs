//! Snippets for statements, functions and types.

use super::decorator::USUAL;
use super::{CompletionKind, List};
use rx_db::FunctionKind;
use rx_syntax::document::ItemKind;

/// Statements in the body of a Relax function: label, description, snippet.
const BODY: [(&str, &str, &str); 5] = [
    ("dataflow", "a dataflow block", "with R.dataflow():\n    ${1:lv} = $0\n    R.output(${1:lv})"),
    (
        "call_tir",
        "a call of a prim_func",
        "${1:y} = R.call_tir(cls.${2:f}, (${3:x},), out_ty=R.Tensor((${4:n},), dtype=\"${5:float32}\"))",
    ),
    (
        "match_cast",
        "a type that is checked when the program runs",
        "${1:y} = R.match_cast(${2:x}, R.Tensor((${3:n},), dtype=\"${4:float32}\"))",
    ),
    ("if", "two branches", "if ${1:condition}:\n    ${2:y} = ${3:x}\nelse:\n    ${2:y} = $0"),
    ("return", "the result", "return $0"),
];

impl List<'_, '_> {
    /// Adds the statements that may start at the position, if the client supports snippets.
    pub(super) fn statements(&mut self) {
        if !self.snippets {
            return;
        }
        let body = self.item.kind == ItemKind::Function(FunctionKind::Relax) && self.location.segment > 0;
        let functions = !matches!(self.item.kind, ItemKind::Function(FunctionKind::Prim | FunctionKind::Macro));
        if body {
            for (label, detail, text) in BODY {
                self.statement(label, detail, text.to_owned(), 0);
            }
        }
        if functions {
            for (namespace, label, detail, definition) in USUAL {
                self.statement(label, detail, format!("@{namespace}.{label}\n{definition}"), 8);
            }
        }
    }

    fn statement(&mut self, label: &str, detail: &str, snippet: String, group: u8) {
        if self.fits(label) {
            let completion = self.offer(label, CompletionKind::Snippet, group);
            completion.detail = detail.to_owned();
            completion.insert = snippet;
            completion.snippet = true;
        }
    }

    /// Adds the types that may follow a colon or an arrow.
    pub(super) fn types(&mut self) {
        let Some(context) = self.view.context(self.location.item) else { return };
        let relax = context.spelled_namespace("R").to_owned();
        for (label, text) in [
            ("Tensor", "Tensor((${1:n},), dtype=\"${2:float32}\")"),
            ("Shape", "Shape([${1:n}])"),
            ("Tuple", "Tuple(${1})"),
        ] {
            let label = format!("{relax}.{label}");
            if self.fits(&label) {
                let snippets = self.snippets;
                let completion = self.offer(label, CompletionKind::Type, 1);
                if snippets {
                    completion.insert = format!("{relax}.{text}");
                    completion.snippet = true;
                }
            }
        }
    }
}
