//! A fix of a call whose argument has another size than the buffer of its prim_func: makes the axis of the prim_func
//! symbolic.
//!
//! ```text
//! # before: called with a tensor of shape (1, 16)
//! def relu(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
//!     for i, j in T.grid(8, 16): ...
//!
//! # after
//! def relu(var_A: T.handle, var_B: T.handle):
//!     n = T.int64()
//!     A = T.match_buffer(var_A, (n, 16), "float32")
//!     B = T.match_buffer(var_B, (n, 16), "float32")
//!     for i, j in T.grid(n, 16): ...
//! ```
//!
//! Axes change together if the same variable indexes them. Requires that their extents and those of the loops are
//! literals, and that all their indices are single variables. A fix is offered if the file has fewer errors with it;
//! an `out_ty` of a call that states the old size is reported then, with its own fix. Such a fix is offered after those
//! that leave no mistake.

mod reading;

use crate::actions::{Effect, QuickFix};
use reading::{Kernel, Linked};
use rx_base::fix::{self, Edit};
use rx_base::{Code, Diagnostic, Fix, Name, Span};
use rx_db::FileView;
use rx_ir::{BindingKind, BufferParam, Call, Expr, ExprKind, PrimParamKind, Signature, StructInfo};
use std::collections::BTreeSet;

/// The names for symbols, in the order of preference.
const SYMBOLS: [&str; 8] = ["n", "m", "k", "n0", "n1", "n2", "n3", "n4"];

/// The maximal number of diagnostics for which a fix is searched, each with a check of the file.
const MOST_CHECKS: usize = 8;

/// Returns the fixes that make the axes of a called prim_func symbolic, for the first diagnostics that touch `range`.
/// `check` returns the diagnostics of a text.
pub fn symbolic_kernel_fixes(
    view: &FileView<'_>,
    diagnostics: &[Diagnostic<Span>],
    range: Span,
    check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>,
) -> Vec<QuickFix> {
    let touches = |place: Span| place.start <= range.end && range.start <= place.end;
    let is_it = |it: &Diagnostic<Span>| it.code == Code::CallTirArgMismatch && touches(it.primary);
    let mut found = Vec::new();
    let touched: Vec<_> = diagnostics.iter().enumerate().filter(|(_, it)| is_it(it)).take(MOST_CHECKS).collect();
    if touched.is_empty() {
        return found;
    }
    let text = view.document().text();
    for (at, diagnostic) in touched {
        let Some(fix) = symbolic_fix(view, &text, diagnostic.primary) else { continue };
        let Some(edits) = fix::edits(&text, &fix) else { continue };
        let after = check(&fix::apply(&text, &edits));
        if is_better(diagnostics, &after) {
            let effect = if count_outputs(&after) > count_outputs(diagnostics) { Effect::Moves } else { Effect::Fixes };
            found.push(QuickFix { title: fix.title, diagnostic: at, preferred: false, effect, edits });
        }
    }
    found
}

/// Whether an error disappeared and no other came, except that an output is declared with the old size.
fn is_better(before: &[Diagnostic<Span>], after: &[Diagnostic<Span>]) -> bool {
    let others = |found: &[Diagnostic<Span>]| -> Vec<Diagnostic<Span>> {
        found.iter().filter(|it| it.code != Code::CallTirOutputMismatch).cloned().collect()
    };
    fix::is_better(&others(before), &others(after), 1)
}

/// Counts the outputs that are declared with another type than that of the buffer.
fn count_outputs(found: &[Diagnostic<Span>]) -> usize {
    found.iter().filter(|it| it.code == Code::CallTirOutputMismatch).count()
}

/// An argument of a `call_tir`.
struct Passed {
    function: Name,
    index: usize,
    ty: StructInfo,
}

/// Returns the fix for the argument of a `call_tir` at `place`.
fn symbolic_fix(view: &FileView<'_>, text: &str, place: Span) -> Option<Fix<Span>> {
    let document = view.document();
    let from = document.locate(place.start as usize)?.item;
    let Passed { function, index, ty } = argument_at(view, place)?;
    let signature = view.signature_of(from, function)?;
    let Signature::Prim(prim) = &*signature else { return None };
    let PrimParamKind::Buffer(buffer) = &prim.params.get(index)?.kind else { return None };
    let axes = mismatched(&ty, buffer)?;
    let target = view.function(from, function)?;
    let (item, context) = (document.items().get(target)?, view.context(target)?);
    let mut kernel = Kernel::default();
    for (at, segment) in item.segments.iter().enumerate() {
        kernel.read(segment, &context, u32::try_from(document.segment_start(target, at)).ok()?);
    }
    let start = document.item_start(target);
    let own = text.get(start..start + item.byte_len())?;
    let mut symbols = unused_symbols(own, |name| context.symbols.contains(&name)).into_iter();
    let buffer = kernel.buffer_of(index)?;
    let mut groups: Vec<(&str, Linked)> = Vec::new();
    for (axis, size) in &axes {
        if groups.iter().all(|(_, linked)| !linked.axes.contains(&(buffer, *axis))) {
            groups.push((symbols.next()?, kernel.linked((buffer, *axis), *size)?));
        }
    }
    let edits = kernel.edits(text, &groups, context.spelled_namespace("T"))?;
    let axes: Vec<String> = axes.iter().map(|(axis, _)| axis.to_string()).collect();
    let axes = format!("{} {}", if axes.len() == 1 { "axis" } else { "axes" }, axes.join(", "));
    Some(Fix { title: format!("make {axes} of `{function}` symbolic"), edits, safe: false })
}

/// Returns the argument at `place`.
fn argument_at(view: &FileView<'_>, place: Span) -> Option<Passed> {
    let location = view.document().locate(place.start as usize)?;
    let start = u32::try_from(view.document().segment_start(location.item, location.segment)).ok()?;
    let own = Span::new(place.start.checked_sub(start)?, place.end.checked_sub(start)?);
    let recorded = view.recorded(location.item, location.segment)?;
    let values = recorded.bindings.iter().filter_map(|binding| match &binding.kind {
        BindingKind::Value { value, .. } => Some(&**value),
        _ => None,
    });
    values.chain(&recorded.returned).find_map(|value| passed(value, own))
}

/// Returns the argument at `place`, in bytes of the segment, of a call or of a call among its operands.
fn passed(value: &Expr, place: Span) -> Option<Passed> {
    let ExprKind::Call(call) = &value.kind else { return None };
    let operands = || Call::operands(call);
    let function = operands().find_map(|operand| match operand.kind {
        ExprKind::Global(function) => Some(function),
        _ => None,
    });
    let here = operands().find_map(|operand| match &operand.kind {
        ExprKind::Tuple(items) => items.iter().enumerate().find(|(_, item)| item.span == place),
        _ => None,
    });
    match (function, here) {
        (Some(function), Some((index, item))) => Some(Passed { function, index, ty: item.ty.clone() }),
        _ => operands().find_map(|operand| passed(operand, place)),
    }
}

/// Returns the axes of a buffer that have another size than those of an argument, with their sizes; `None` if more than
/// sizes differs.
fn mismatched(argument: &StructInfo, buffer: &BufferParam) -> Option<Vec<(usize, i128)>> {
    let tensor = argument.as_tensor().filter(|tensor| tensor.dtype == Some(buffer.dtype))?;
    let dims = tensor.shape.dims().filter(|dims| dims.len() == buffer.shape.len())?;
    let pairs = dims.iter().zip(buffer.shape.iter()).enumerate().filter(|(_, (own, wanted))| own != wanted);
    let size = |(axis, (_, wanted)): (usize, (_, &rx_base::Dim))| Some((axis, i128::from(wanted.as_constant()?)));
    pairs.map(size).collect::<Option<Vec<_>>>().filter(|axes| !axes.is_empty())
}

/// Returns the names for symbols that are no words of a text and not declared elsewhere.
fn unused_symbols(text: &str, is_declared: impl Fn(Name) -> bool) -> Vec<&'static str> {
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let is_free = |symbol: &&str| !words.contains(symbol) && !is_declared(rx_base::name::name(symbol));
    SYMBOLS.into_iter().filter(is_free).collect()
}

impl Kernel {
    /// Returns the edits that replace the extents of each group by its symbol; `tir` is the file's name for `T`.
    fn edits(&self, text: &str, groups: &[(&str, Linked)], tir: &str) -> Option<Vec<Edit>> {
        let (line, indent) = self.body.as_ref()?;
        let mut declared: String =
            groups.iter().map(|(symbol, _)| format!("{indent}{symbol} = {tir}.int64()\n")).collect();
        let mut edits: Vec<Edit> = Vec::new();
        for (symbol, linked) in groups {
            edits.extend(linked.extents.iter().map(|span| (*span, (*symbol).to_owned())));
        }
        edits.sort();
        for param in &self.params {
            let Some(arguments) = param.arguments else { continue };
            let is_inside = |(span, _): &Edit| arguments.start <= span.start && span.end <= arguments.end;
            let (inside, rest): (Vec<Edit>, Vec<Edit>) = edits.into_iter().partition(is_inside);
            edits = rest;
            if inside.is_empty() {
                continue;
            }
            // A parameter's dims cannot name a symbol that the body declares, so the body opens the buffer.
            let name = param.name;
            let moved: Vec<Edit> = inside
                .into_iter()
                .map(|(span, new)| (Span::new(span.start - arguments.start, span.end - arguments.start), new))
                .collect();
            let shape = fix::apply(text.get(arguments.range())?, &moved);
            declared += &format!("{indent}{name} = {tir}.match_buffer(var_{name}, {shape})\n");
            edits.push((param.span, format!("var_{name}: {tir}.handle")));
        }
        edits.push((Span::empty(*line), declared));
        Some(edits)
    }
}
