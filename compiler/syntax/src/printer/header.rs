//! The head of a file: imports and `TypeVar` lines, which differ between the dialects.
//!
//! In text that TVM printed, imports are in comments; in text that a person wrote, they are statements. Both are
//! recognized and updated.

use rustc_hash::FxHashSet;
use rx_base::name::{Name, NameSet};

use super::canonical::type_var;
use super::lines::{Code, Line, Part};
use super::scope::{Scopes, TypeVars};
use super::statement::without_blanks;
use crate::ast::StatementKind;
use crate::dialect::{Dialect, DimStyle};

const TYPING: &str = "from typing import TypeVar";
const FUTURE: &str = "from __future__ import annotations";
const AXIS: &str = "from tvm.tirx.layout import Axis";
const SCRIPT: &str = "from tvm.script import ";
const ROOT_BLOCKS: [(&str, bool); 2] = [("with T.block(\"root\"):", true), ("with T.sblock(\"root\"):", false)];

/// The changes to the head of the file.
pub(crate) struct Header {
    from: Dialect,
    to: Dialect,
    /// A line to insert at the very top.
    pub(crate) top: Option<&'static str>,
    /// The names of the `TypeVar` lines to add, and the index of the line before which they are inserted.
    pub(crate) type_vars: Vec<Name>,
    pub(crate) type_vars_before: Option<usize>,
    /// Whether imports are still to be added: of `TypeVar` before the first import, of `Axis` after that of `tirx`.
    typing_due: bool,
    axis_due: bool,
    /// Whether the file imports anything. If not, the text is a fragment, whose names come from elsewhere.
    imports: bool,
    /// Whether rx may change the head. `false` for Python files.
    writable: bool,
    /// The `TypeVar` lines to keep in a dialect that has none. A function uses such a name without declaring it; this
    /// is an error whose message depends on the `TypeVar`.
    kept: NameSet,
    /// Whether the file contains its metadata.
    pub(crate) has_metadata: bool,
}

impl Header {
    /// Determines the changes.
    pub(crate) fn plan(from: Dialect, to: Dialect, parts: &[Part<'_>], scopes: &[Scopes], vars: &TypeVars) -> Header {
        let mut header = Header {
            from,
            to,
            top: None,
            type_vars: Vec::new(),
            type_vars_before: None,
            typing_due: false,
            axis_due: false,
            imports: false,
            writable: vars.writable,
            kept: NameSet::default(),
            has_metadata: parts.iter().any(has_metadata),
        };
        if let ([Part::Code(code)], [scopes], true) = (parts, scopes, vars.writable) {
            header.plan_code(code, scopes);
        }
        header
    }

    fn plan_code(&mut self, code: &Code<'_>, scopes: &Scopes) {
        let starts_item = |line: &Line<'_>| {
            let kind = line.kind();
            line.depth == 0
                && matches!(kind, StatementKind::Decorator(_) | StatementKind::Class { .. } | StatementKind::Def { .. })
        };
        let at_top = code.lines.iter().filter(|line| line.depth == 0);
        let present: NameSet = at_top.filter_map(|line| type_var(line.kind(), line.cursor())).collect();
        let mut added = FxHashSet::default();
        let mut any_params = false;
        for function in scopes.functions() {
            let mut symbols: Vec<_> = function.symbols.iter().map(|(symbol, style)| (symbol.name, *style)).collect();
            symbols.sort_by_key(|(name, _)| name.as_str());
            any_params |= symbols.iter().any(|(_, style)| *style == DimStyle::TypeParam);
            let wanted = symbols.into_iter().filter(|(_, style)| *style == DimStyle::TypeVar).map(|(name, _)| name);
            self.type_vars.extend(wanted.filter(|name| !present.contains(name) && added.insert(*name)));
        }
        if self.to.dim_style() != DimStyle::TypeVar && !present.is_empty() {
            self.kept = scopes.undefined(&code.lines, &present);
        }
        self.type_vars_before = code.lines.iter().position(starts_item);
        let imports = |wanted: &str| code.lines.iter().any(|line| is_import(line, wanted));
        let comments = || code.lines.iter().flat_map(|line| &line.comments).chain(&code.tail);
        let says = |wanted: &str| comments().any(|comment| words(comment.text) == wanted);
        let is_any =
            |line: &Line<'_>| matches!(line.kind(), StatementKind::Import(_) | StatementKind::FromImport { .. });
        self.imports = code.lines.iter().any(is_any);
        if any_params && !imports(FUTURE) {
            self.top = Some(FUTURE);
        }
        self.typing_due = !self.type_vars.is_empty() && !imports(TYPING) && !says(TYPING);
        self.axis_due = self.from.is_classic() && !self.to.is_classic() && !says(AXIS);
    }

    /// Converts a comment to the new dialect; `None` if it contains an import that the dialect does not need.
    pub(crate) fn comment(&self, comment: &str) -> Option<String> {
        let words = words(comment);
        let drops = (words == TYPING && !self.has_type_vars()) || (words == AXIS && self.to.is_classic());
        if drops && self.writable {
            return None;
        }
        if ROOT_BLOCKS.iter().any(|(block, _)| *block == words) {
            let spelled = ROOT_BLOCKS.iter().find(|(_, classic)| *classic == self.to.is_classic());
            return spelled.map(|(block, _)| format!("# {block}"));
        }
        let imported = words.strip_prefix(SCRIPT).and_then(|rest| rest.split_once(" as "));
        Some(match imported {
            Some((name, alias)) => format!("# {SCRIPT}{} as {alias}", self.to.spell_import(name)),
            None => comment.to_owned(),
        })
    }

    /// Returns an import to add before a comment.
    pub(crate) fn before_comment(&mut self, comment: &str) -> Option<String> {
        let first_import = words(comment).starts_with(SCRIPT);
        (first_import && std::mem::take(&mut self.typing_due)).then(|| format!("# {TYPING}"))
    }

    /// Returns an import to add after a comment.
    pub(crate) fn after_comment(&mut self, comment: &str) -> Option<String> {
        let of_tir = words(comment).strip_prefix(SCRIPT).is_some_and(|rest| rest.starts_with("tir"));
        (of_tir && std::mem::take(&mut self.axis_due)).then(|| format!("# {AXIS}"))
    }

    /// Returns an import to add before a statement.
    pub(crate) fn before_statement(&mut self, line: &Line<'_>) -> Option<&'static str> {
        let first_import = line.depth == 0 && is_import(line, SCRIPT);
        (first_import && std::mem::take(&mut self.typing_due)).then_some(TYPING)
    }

    /// Returns an import to add before the `TypeVar` lines, if there was no import from TVM before which it could be
    /// inserted.
    pub(crate) fn before_type_vars(&mut self) -> Option<&'static str> {
        (self.imports && std::mem::take(&mut self.typing_due)).then_some(TYPING)
    }

    /// Whether the dialect omits a statement.
    pub(crate) fn drops(&self, line: &Line<'_>) -> bool {
        if !self.writable {
            return false;
        }
        let style = self.to.dim_style();
        if let Some(name) = type_var(line.kind(), line.cursor()) {
            return line.depth > 0 || !(style == DimStyle::TypeVar || self.kept.contains(&name));
        }
        let future = self.from == Dialect::Tvm027Py312 && style != DimStyle::TypeParam && is_import(line, FUTURE);
        future || (!self.has_type_vars() && is_import(line, TYPING))
    }

    /// Whether the printed text may contain `TypeVar` lines.
    fn has_type_vars(&self) -> bool {
        self.to.dim_style() == DimStyle::TypeVar || !self.kept.is_empty()
    }
}

/// Returns the text of a comment in TVM's style, `# …`; otherwise an empty string.
fn words(comment: &str) -> &str {
    comment.strip_prefix("# ").unwrap_or("")
}

/// Whether a statement is the import `wanted`. For [`SCRIPT`] any imported name matches.
pub(crate) fn is_import(line: &Line<'_>, wanted: &str) -> bool {
    let StatementKind::FromImport { module, names } = line.kind() else { return false };
    let cursor = line.cursor();
    let module = without_blanks(cursor.source(*module));
    let Some((wanted_module, wanted_name)) = wanted.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
    else {
        return false;
    };
    let names: Vec<&str> = names.iter().map(|imported| cursor.source(imported.path)).collect();
    module == wanted_module && (wanted_name.is_empty() || names == [wanted_name])
}

/// Whether a statement is an import that has no effect on the meaning of the TVMScript.
pub(crate) fn is_boilerplate(line: &Line<'_>) -> bool {
    [TYPING, FUTURE, AXIS].iter().any(|import| is_import(line, import))
}

fn has_metadata(part: &Part<'_>) -> bool {
    let Part::Code(code) = part else { return false };
    code.lines.iter().any(|line| match line.kind() {
        StatementKind::Assign { targets, .. } => {
            targets.iter().any(|target| super::canonical::identifier(target, line.cursor()) == Some("metadata"))
        }
        _ => false,
    })
}
