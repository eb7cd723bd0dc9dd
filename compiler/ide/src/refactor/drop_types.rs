//! Drop types: removes the annotations of a function's variables whose types are inferred without them.
//!
//! ```text
//! y: R.Tensor((4,), dtype="float32") = R.exp(x)      # before
//!
//! y = R.exp(x)                                       # after
//! ```
//!
//! An annotation that says more than the value stays. So does the signature, which callers and TVM's parser read.

use super::site::{Site, relax_item, sites};
use super::{RefactorKind, Refactoring, Trial};
use rx_base::Span;
use rx_base::fix::Edit;
use rx_db::{FileView, TypeRow};
use rx_ir::{Binding, BindingKind};
use rx_syntax::ast::{ExprKind, StatementKind};
use std::collections::HashSet;

/// The maximal number of checks. After each one, the annotations without which a type differs are put back.
const MOST_TRIALS: usize = 3;

/// Returns the removal of the annotations of the function at `offset`, which must be in its header or in an annotated
/// binding.
pub(super) fn refactoring(view: &FileView<'_>, offset: u32, trial: &mut Trial<'_, '_>) -> Option<Refactoring> {
    let item = relax_item(view, offset)?;
    let is_annotated = |site: Site<'_>| matches!(site.kind(), StatementKind::AnnAssign { .. });
    let in_header = view.document().locate(offset as usize)?.segment == 0;
    if !in_header && !Site::at(view, offset).is_some_and(is_annotated) {
        return None;
    }
    let mut dropped = annotations(view, item);
    for _ in 0..MOST_TRIALS {
        let edits: Vec<Edit> = dropped.iter().map(|(_, edit)| edit.clone()).collect();
        let after = trial.checked(&edits)?;
        let before = trial.types();
        if before.len() != after.types.len() {
            return None;
        }
        let differs = |(before, after): &(&TypeRow, &TypeRow)| before.struct_info != after.struct_info;
        let changed: HashSet<Span> = before.iter().zip(&after.types).filter(differs).map(|(row, _)| row.span).collect();
        if changed.is_empty() {
            let name = view.document().items().get(item)?.name?;
            let title = format!("Drop the types of the variables of `{name}`");
            return trial.is_sound(&after).then_some(Refactoring { title, kind: RefactorKind::Rewrite, edits });
        }
        let count = dropped.len();
        dropped.retain(|(variable, _)| !changed.contains(variable));
        if dropped.len() == count {
            return None;
        }
    }
    None
}

/// Returns the variables of the annotated bindings of a function whose values have the annotated types, with the edits
/// that remove the annotations.
fn annotations(view: &FileView<'_>, item: usize) -> Vec<(Span, Edit)> {
    let mut found = Vec::new();
    let mut read: Option<(usize, HashSet<u32>)> = None;
    for site in sites(view, item, 1) {
        let Some(dropped) = annotation(&site) else { continue };
        let (_, needed) = match read.take().filter(|(number, _)| *number == site.number) {
            Some(known) => read.insert(known),
            None => {
                let mut needed = HashSet::new();
                if let Some(recorded) = view.recorded(item, site.number) {
                    add_needed(&recorded.bindings, &mut needed);
                }
                read.insert((site.number, needed))
            }
        };
        if u32::try_from(site.index).is_ok_and(|index| !needed.contains(&index)) {
            found.push(dropped);
        }
    }
    found
}

/// Adds the statements whose variables have other types than their values.
fn add_needed(bindings: &[Binding], needed: &mut HashSet<u32>) {
    for binding in bindings {
        match &binding.kind {
            BindingKind::Value { ty, value, .. } if *ty != value.ty => {
                needed.insert(binding.origin.statement);
            }
            BindingKind::Value { .. } | BindingKind::Unpack { .. } => {}
            BindingKind::If { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| add_needed(&body.bindings, needed));
                add_needed(&otherwise.bindings, needed);
            }
            BindingKind::Function(function) => add_needed(&function.body.bindings, needed),
        }
    }
}

/// Returns the variable of an annotated binding, and the edit that removes the annotation. `None` if the annotation has
/// a comment, which would be lost.
fn annotation(site: &Site<'_>) -> Option<(Span, Edit)> {
    let StatementKind::AnnAssign { target, annotation, value: Some(_) } = site.kind() else { return None };
    let cursor = site.cursor();
    let (variable, ty) = (cursor.span(target.tokens), cursor.span(annotation.tokens));
    let gone = Span::new(variable.end, ty.end);
    let has_comment = site.segment.comments().any(|comment| gone.start <= comment.start && comment.end <= gone.end);
    let is_plain = matches!(target.kind, ExprKind::Name) && site.statement.tree.error.is_none() && !has_comment;
    is_plain.then_some((variable.shift(site.start), (gone.shift(site.start), String::new())))
}
