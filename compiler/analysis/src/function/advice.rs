//! Suggestions for undefined names, return types and missing returns. They are made for the whole function, so that
//! no suggestion depends on how the function is cut into segments.

use super::memo::State;
use super::move_out::Found;
use crate::elaborate::{Export, Role, Unresolved};
use crate::entry::Entry;
use crate::reconcile::reconcile;
use rx_base::edit_distance::nearest;
use rx_base::symbolic::Bounds;
use rx_base::{Code, Diagnostic, Fix, Name, Span};
use rx_context::ItemPlace;
use rx_ir::StructInfo;
use rx_syntax::ast::{Expr, ExprKind, StatementKind, TokenRange};
use rx_syntax::{Segment, TokenKind};
use std::sync::Arc;

impl State {
    /// Returns the name most similar to an undefined one in segment `at`, among the parameters and the last
    /// definitions before its use. Definitions are counted in exports, whose order, unlike their positions, does not
    /// depend on how segments are cut.
    pub(super) fn nearest(&self, wrong: &Unresolved, at: u32) -> Option<&'static str> {
        // The limit is on the definitions examined and not on those found, since all names of a text may be
        // undefined.
        const LOOKED_AT: usize = 256;
        let at = at as usize;
        let here = self.results.get(at)?.exports.get(..wrong.exports as usize)?;
        let earlier = self.results.iter().take(at).rev().flat_map(|result| result.exports.iter().rev());
        let params = self.results.first()?.exports.iter();
        let is_value = |export: &&Export| {
            !matches!(
                &export.entry,
                Entry::Value { ty: StructInfo::Error, .. } | Entry::Function(_) | Entry::Facts(_) | Entry::Captured
            )
        };
        let fits = |export: &&Export| {
            !export.name.starts_with('<') && (wrong.role != Role::Dim || is_integer(&export.entry)) && is_value(export)
        };
        let names = here.iter().rev().chain(earlier).take(LOOKED_AT).chain(params.take(LOOKED_AT)).filter(fits);
        nearest(&wrong.name, names.map(|export| export.name.as_str()))
    }

    /// Returns the uses of an undefined name, from the first one to the statement that binds it: the name is reported
    /// once, and a fix replaces all uses.
    pub(super) fn uses(&self, wrong: &Unresolved, at: u32) -> Vec<ItemPlace> {
        const LOOKED_AT: usize = 256;
        let mut found = Vec::new();
        let is_before = |found: &Found<'_>| found.at == at as usize && found.statement.span.end <= wrong.span.start;
        let statements = self.statements(at as usize).skip_while(is_before);
        for Found { at: nth, segment, statement } in statements.take(LOOKED_AT) {
            let cursor = segment.cursor(statement);
            let mut binds = false;
            for token in 0..statement.token_count {
                let kind = |token: Option<u32>| token.and_then(|token| cursor.kind(token));
                if kind(Some(token)) != Some(TokenKind::Name) || cursor.text(token) != wrong.name.as_str() {
                    continue;
                }
                let (before, after) = (kind(token.checked_sub(1)), kind(token.checked_add(1)));
                binds |= before.is_none() && matches!(after, Some(TokenKind::Equal | TokenKind::Colon));
                let is_own = before != Some(TokenKind::Dot) && after != Some(TokenKind::Equal);
                let span = cursor.span(TokenRange::one(token));
                let follows = nth > at as usize || span.start >= wrong.span.start;
                if is_own && follows && !(binds && before.is_none()) {
                    found.push(ItemPlace::Segment(u32::try_from(nth).unwrap_or(u32::MAX), span));
                }
            }
            if binds {
                break;
            }
        }
        found
    }

    /// Returns the value that an undefined name without similar names may mean, by its role: the last value that can
    /// be returned, the last variable of the dataflow block, the last condition, or the only dim of the signature.
    pub(super) fn meant(&self, wrong: &Unresolved, at: u32) -> Option<Name> {
        const LOOKED_AT: usize = 256;
        let at = at as usize;
        let here = self.results.get(at)?.exports.get(..wrong.exports as usize)?;
        let earlier = self.results.iter().take(at).rev().flat_map(|result| result.exports.iter().rev());
        let context = self.results.first()?.exports.iter().find_map(|export| match &export.entry {
            Entry::Function(context) => Some(context),
            _ => None,
        })?;
        if wrong.role == Role::Dim {
            // An undefined dim of the signature is to be declared.
            return match &context.dims.bound[..] {
                [only] if at > 0 => Some(*only),
                _ => None,
            };
        }
        let declared = context.ret.as_ref();
        let fits = |export: &&Export| match &export.entry {
            Entry::Value { ty, .. } if ty.is_error() || export.name.starts_with('<') => false,
            Entry::Value { ty, dataflow, .. } => match wrong.role {
                Role::Return => {
                    let clashes = |declared| reconcile(declared, ty, &Bounds::default()).clash.is_some();
                    dataflow.is_none() && !declared.is_some_and(clashes)
                }
                Role::Output => dataflow.is_some(),
                Role::Condition => is_condition(ty),
                Role::Value | Role::Dim | Role::Replaced(_) | Role::Module { .. } | Role::Function { .. } => false,
            },
            _ => false,
        };
        here.iter().rev().chain(earlier).take(LOOKED_AT).find(fits).map(|export| export.name)
    }

    /// Adds the fix of a name that means the module or a function of it: the name becomes `cls` or `cls.f`, by the
    /// edits `all`, and `cls = Module` begins the body if `cls` is not `declared`.
    pub(super) fn with_module(
        &self,
        diagnostic: Diagnostic<ItemPlace>,
        wrong: &Unresolved,
        declared: bool,
        all: impl Fn(&str) -> Vec<(ItemPlace, String)>,
    ) -> Diagnostic<ItemPlace> {
        let name = &wrong.name;
        let (mut title, mut edits) = match wrong.role {
            Role::Function { .. } => (format!("use cls.{name}"), all(&format!("cls.{name}"))),
            _ if name.as_str() == "cls" => (String::new(), Vec::new()),
            _ => ("change to cls".to_owned(), all("cls")),
        };
        if !declared {
            let module = self.file.modules.iter().map(|module| module.as_str()).min();
            let (Some(module), Some((place, indent))) = (module, body_start(self)) else { return diagnostic };
            let and = if title.is_empty() { "" } else { ", and " };
            title += &format!("{and}add `cls = {module}`");
            edits.push((place, format!("{indent}cls = {module}\n")));
        }
        // A bare name may also be that of a missing variable, and another name before a dot may be misspelt.
        let safe = matches!(wrong.role, Role::Module { .. }) && matches!(name.as_str(), "cls" | "self");
        diagnostic.with_fix(Fix { title, edits, safe })
    }

    /// Adds the fix that writes the type of the returned value, if the mistake is in the return annotation.
    pub(super) fn with_return_type(&self, diagnostic: Diagnostic<ItemPlace>, place: Span) -> Diagnostic<ItemPlace> {
        let text = self.results.iter().find_map(|result| result.return_text.as_ref());
        let header = self.results.first().map(|header| &header.exports[..]).unwrap_or_default();
        let annotation = header.iter().rev().find(|export| export.name.as_str() == "<return>").and_then(|it| it.span);
        match (text, annotation) {
            (Some(text), Some(annotation)) if annotation.start <= place.start && place.end <= annotation.end => {
                let edits = vec![(ItemPlace::Segment(0, annotation), text.to_string())];
                diagnostic.with_fix(Fix {
                    title: "write the type of the returned value".to_owned(),
                    edits,
                    safe: false,
                })
            }
            _ => diagnostic,
        }
    }
}

/// Reports a function without a `return`, at its name.
pub(super) fn missing_return(state: &State) -> Diagnostic<ItemPlace> {
    let segment = state.segments.first();
    let mut place = Span::default();
    let mut function = String::new();
    if let Some(segment) = segment {
        for statement in &segment.tree().statements {
            if let StatementKind::Def { name, .. } = &statement.tree.kind {
                let cursor = segment.cursor(statement);
                place = cursor.span(TokenRange::one(*name));
                function = cursor.text(*name).to_owned();
            }
        }
    }
    let mut diagnostic = Diagnostic::new(
        Code::MissingReturn,
        ItemPlace::Segment(0, place),
        format!("`{function}` ends without a `return`"),
    );
    let last = state.results.iter().rev().flat_map(|result| result.exports.iter().rev());
    let candidate = last
        .filter(|export| matches!(&export.entry, Entry::Value { dataflow: None, .. }))
        .map(|export| export.name)
        .find(|name| !name.starts_with('<'));
    if let Some(candidate) = candidate {
        diagnostic = diagnostic.with_help(format!("add `return {candidate}`"));
        if let Some((place, indent)) = after_body(state) {
            let text = format!("\n{}return {candidate}", " ".repeat(indent as usize));
            let fix = Fix { title: format!("add `return {candidate}`"), edits: vec![(place, text)], safe: false };
            diagnostic = diagnostic.with_fix(fix);
        }
    }
    diagnostic
}

/// Returns the start of the first line of the body, after its text and `R.func_attr`, and the indentation of the body.
fn body_start(state: &State) -> Option<(ItemPlace, &str)> {
    let is_def = |found: &Found<'_>| matches!(found.statement.tree.kind, StatementKind::Def { .. });
    let is_text = |found: &Found<'_>| {
        matches!(found.statement.tree.kind, StatementKind::Expr(Expr { kind: ExprKind::String, .. }))
    };
    let mut body = state.statements(0).skip_while(|found| !is_def(found)).skip(1);
    let first = body.find(|found| !is_text(found) && !found.calls(".func_attr"))?;
    let (line, indent) = first.line_start()?;
    Some((first.place(Span::empty(line))?, indent))
}

/// Returns the end of the body's last line, and the indentation of the body.
fn after_body(state: &State) -> Option<(ItemPlace, u32)> {
    let end = &state.results.last()?.end;
    let indent = end.dataflow.map(|(indent, _)| indent).or(end.level).filter(|indent| *indent > end.header_indent)?;
    let has_statements = |(_, segment): &(usize, &Arc<Segment>)| !segment.tree().statements.is_empty();
    let (at, segment) = state.segments.iter().enumerate().rev().find(has_statements)?;
    let last = segment.tree().statements.last()?.span.end;
    let rest = segment.text().get(last as usize..)?;
    let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
    let place = Span::empty(last + u32::try_from(line).ok()?);
    Some((ItemPlace::Segment(u32::try_from(at).ok()?, place), indent))
}

/// Whether an entry is an integer.
fn is_integer(entry: &Entry) -> bool {
    matches!(entry, Entry::Symbol { .. } | Entry::Value { ty: StructInfo::Prim(_), .. })
}

/// Whether a value of this type can be the condition of an `if`.
fn is_condition(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Prim(prim) => prim.dtype.is_some_and(|dtype| dtype.is_bool()),
        ty => ty.as_tensor().is_some_and(|tensor| {
            tensor.dtype.is_some_and(|dtype| dtype.is_bool()) && tensor.shape.ndim().is_none_or(|ndim| ndim == 0)
        }),
    }
}
