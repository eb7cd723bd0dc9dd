//! Fixes of argument lists that do not fit the called function: exchanges arguments, leaves out the surplus ones, or
//! passes variables for the missing ones.
//!
//! Each list is checked against the parameters before it is offered. For example, with
//! `f(x: R.Tensor((2, 3)), y: R.Tensor((3, 4)))`, the arguments of `cls.f(b, a)` are exchanged only if `a` fits `x` and
//! `b` fits `y`. Of several lists that fit, the one with most variables named like their parameters is offered.

use super::checker::Checker;
use crate::entry::{Entry, FUNCTION_CONTEXT, Place};
use rx_base::name::{NameSet, name};
use rx_base::{Diagnostic, Fix, Name, Span};
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, Signature, StructInfo};
use std::cmp::Reverse;

/// The maximal number of arguments of a call for which other lists are tried.
const MOST_ARGUMENTS: usize = 16;

/// The maximal number of the enclosing function's parameters that are tried for a missing argument.
const MOST_PARAMETERS: usize = 64;

/// The maximal number of argument lists with variables for the missing arguments that are tried for one call.
const MOST_TRIALS: usize = 256;

/// The longest text of an argument that a title quotes.
const LONGEST_QUOTED: usize = 32;

/// The parameters of a called function.
pub(super) struct Parameters<'a> {
    pub(super) count: usize,
    /// Their names; empty if they are not known.
    pub(super) names: &'a [Name],
    /// Whether values of these types fit the first parameters.
    pub(super) fits: &'a dyn Fn(&[&StructInfo]) -> bool,
}

impl Parameters<'_> {
    fn accept(&self, args: &[&IrExpr]) -> bool {
        let types: Vec<&StructInfo> = args.iter().map(|arg| &arg.ty).collect();
        (self.fits)(&types)
    }

    /// Counts the arguments that are variables named like their parameter.
    fn named(&self, args: &[&IrExpr]) -> usize {
        args.iter().zip(self.names).filter(|(arg, name)| variable_of(arg) == Some(**name)).count()
    }
}

impl Checker<'_> {
    /// Replaces the fixes of the diagnostics about arguments, from number `since` on, by the one that puts the
    /// arguments into an order that fits, if there is such an order and they do not fit as they are. It corrects all of
    /// them, so another fix for one of them would contradict it.
    pub(super) fn offer_order(&mut self, since: usize, params: &Parameters<'_>, args: &[IrExpr]) {
        if self.diagnostics.len() == since || params.accept(&args.iter().collect::<Vec<_>>()) {
            return;
        }
        let Some(fix) = self.reordered(params, args) else { return };
        let is_here = |diagnostic: &Diagnostic<Place>| {
            args.iter().any(|arg| matches!(diagnostic.primary, Place::Here(at) if at == arg.span))
        };
        for diagnostic in self.diagnostics.iter_mut().skip(since).filter(|diagnostic| is_here(diagnostic)) {
            diagnostic.fixes = vec![fix.clone()];
        }
    }

    /// Returns the fix that exchanges two arguments, or moves one, so that all fit.
    fn reordered(&self, params: &Parameters<'_>, args: &[IrExpr]) -> Option<Fix<Place>> {
        if args.len() > MOST_ARGUMENTS {
            return None;
        }
        let fitting = orders(args.len()).into_iter().filter(|order| params.accept(&in_order(args, order)));
        let order = fitting.min_by_key(|order| Reverse(params.named(&in_order(args, order))))?;
        let mut edits = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let from = args.get(*order.get(at)?)?;
            if from.span != arg.span {
                edits.push((Place::Here(arg.span), self.text_of(from)?.to_owned()));
            }
        }
        let title = match &edits[..] {
            [(_, second), (_, first)] if first.len().max(second.len()) <= LONGEST_QUOTED => {
                format!("exchange `{first}` and `{second}`")
            }
            _ => "put the arguments in the order of the parameters".to_owned(),
        };
        Some(Fix { title, edits, safe: false })
    }

    /// Returns the fix of a call with too many arguments: leaves out those without which the others fit, or the last
    /// ones if none fit.
    pub(super) fn without_surplus(&self, params: &Parameters<'_>, args: &[IrExpr]) -> Option<Fix<Place>> {
        let surplus = args.len().checked_sub(params.count).filter(|surplus| *surplus > 0)?;
        let fitting =
            (0..=params.count).rev().take(MOST_ARGUMENTS).filter(|at| params.accept(&without(args, *at, surplus)));
        let at = fitting.min_by_key(|at| Reverse(params.named(&without(args, *at, surplus)))).unwrap_or(params.count);
        let (first, last) = (args.get(at)?, args.get(at + surplus - 1)?);
        let span_of = |at: usize| args.get(at).map(|arg| arg.span);
        let (before, after) = (at.checked_sub(1).and_then(span_of), span_of(at + surplus));
        let place = removed_span(self.segment.text(), before, first.span.cover(last.span), after);
        let title = match (surplus, self.text_of(first)) {
            (1, _) if at == params.count => "leave out the last argument".to_owned(),
            (_, _) if at == params.count => "leave out the last arguments".to_owned(),
            (1, Some(text)) if text.len() <= LONGEST_QUOTED => format!("leave out `{text}`"),
            _ => format!("leave out {surplus} arguments, from argument {at} on"),
        };
        Some(Fix { title, edits: vec![(Place::Here(place), String::new())], safe: false })
    }

    /// Returns the fix of a call with too few arguments: passes variables that fit, which are those with the names of
    /// the parameters and the parameters of the enclosing function. `empty` is the place of the first argument if
    /// there is none.
    pub(super) fn with_missing(
        &mut self,
        params: &Parameters<'_>,
        args: &[IrExpr],
        empty: Option<Span>,
    ) -> Option<Fix<Place>> {
        let missing = params.count.checked_sub(args.len()).filter(|missing| *missing > 0)?;
        if params.count > MOST_ARGUMENTS {
            return None;
        }
        let variables = self.variables_to_pass(params.names, args);
        let mut trials = MOST_TRIALS;
        let lists = (0..=args.len())
            .rev()
            .filter_map(|at| Some((at, filled(params, args, (at, missing), &variables, &mut trials)?)));
        let (at, list) = lists.min_by_key(|(_, list)| Reverse(params.named(list)))?;
        let passed: Vec<&str> =
            list.iter().skip(at).take(missing).filter_map(|arg| variable_of(arg)).map(|name| name.as_str()).collect();
        let passed = passed.join(", ");
        let (place, text) = match (at.checked_sub(1).and_then(|before| args.get(before)), args.first()) {
            (Some(before), _) => match at == args.len() && self.is_before_comma(before) {
                true => (Span::empty(before.span.end + 1), format!(" {passed}")),
                false => (Span::empty(before.span.end), format!(", {passed}")),
            },
            (None, Some(next)) => (Span::empty(next.span.start), format!("{passed}, ")),
            (None, None) => (empty?, passed.clone()),
        };
        Some(Fix { title: format!("pass `{passed}`"), edits: vec![(Place::Here(place), text)], safe: false })
    }

    /// Returns the variables that may be meant by missing arguments, likeliest first: those with the names of the
    /// parameters, `params`, and the parameters of the enclosing function. They are found by name, so that they do not
    /// depend on how the function is cut into segments.
    pub(super) fn variables_to_pass(&mut self, params: &[Name], args: &[IrExpr]) -> Vec<IrExpr> {
        let own = match self.lookup(name(FUNCTION_CONTEXT)) {
            Some(Entry::Function(context)) => self.asked.signature(context.name),
            _ => None,
        };
        let mut names = params.to_vec();
        if let Some(Signature::Relax(signature)) = own.as_deref() {
            names.extend(signature.params.iter().take(MOST_PARAMETERS).map(|(name, _)| *name));
        }
        let mut seen = NameSet::default();
        names.retain(|name| seen.insert(*name) && args.iter().all(|arg| variable_of(arg) != Some(*name)));
        let block = self.state.dataflow.map(|(_, ordinal)| ordinal);
        let mut variables = Vec::new();
        for variable in names {
            if let Some(Entry::Value { ty, dataflow, .. }) = self.lookup(variable)
                && (dataflow.is_none() || dataflow == block)
                && !matches!(ty, StructInfo::Error | StructInfo::Object)
            {
                variables.push(IrExpr { kind: IrKind::Var(variable), ty, span: Span::default() });
            }
        }
        variables
    }

    fn is_before_comma(&self, arg: &IrExpr) -> bool {
        self.segment.text().get(arg.span.end as usize..).is_some_and(|rest| rest.starts_with(','))
    }

    fn text_of(&self, arg: &IrExpr) -> Option<&str> {
        self.segment.text().get(arg.span.range())
    }
}

/// Returns the bytes to delete to remove the arguments at `own` from a list, including one comma. `before` and `after`
/// are the arguments next to them. If the arguments begin a line, a comment after them on their last line is removed
/// too, and comments of the other arguments stay.
pub(super) fn removed_span(text: &str, before: Option<Span>, own: Span, after: Option<Span>) -> Span {
    removed_beside_comment(text, before, own, after).unwrap_or_else(|| match (before, after) {
        (Some(before), _) => Span::new(before.end, own.end),
        (None, Some(after)) => Span::new(own.start, after.start),
        (None, None) => own,
    })
}

/// Returns the bytes that [`removed_span`] deletes if the arguments begin a line and there is a comment next to them:
/// their lines, or the part up to the next argument or parenthesis on their last line.
fn removed_beside_comment(text: &str, before: Option<Span>, own: Span, after: Option<Span>) -> Option<Span> {
    let start = own.range().start;
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(own.range().end..)?;
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let has_comma = rest.get(blanks..)?.starts_with(',');
    let end = own.range().end + if has_comma { blanks + 1 } else { 0 };
    let line = text.get(end..)?.split_inclusive('\n').next().unwrap_or_default();
    let has_comment = line.trim_start().starts_with('#');
    let is_commented = |gap: Span| text.get(gap.range()).is_some_and(|gap| gap.contains('#'));
    let is_beside_comment = has_comment
        || before.is_some_and(|before| is_commented(Span::new(before.end, own.start)))
        || after.is_some_and(|after| is_commented(Span::new(own.end, after.start)));
    let begins_line = text.get(line_start..start)?.trim().is_empty();
    if !is_beside_comment || !begins_line || (after.is_some() && !has_comma) {
        return None;
    }
    let (start, end) = match after {
        _ if has_comment || line.trim().is_empty() => (line_start, end + line.len()),
        Some(after) => (start, after.range().start),
        None => (start, end),
    };
    Some(Span::new(u32::try_from(start).ok()?, u32::try_from(end).ok()?))
}

/// Returns the orders of `count` arguments to try: first the exchanges of two, then the moves of one.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let same: Vec<usize> = (0..count).collect();
    let mut orders = Vec::new();
    for first in 0..count {
        for second in first + 1..count {
            let mut order = same.clone();
            order.swap(first, second);
            orders.push(order);
        }
    }
    for from in 0..count {
        for to in (0..count).filter(|to| to.abs_diff(from) > 1) {
            let mut order = same.clone();
            let moved = order.remove(from);
            order.insert(to, moved);
            orders.push(order);
        }
    }
    orders
}

/// Returns the arguments in another order.
fn in_order<'a>(args: &'a [IrExpr], order: &[usize]) -> Vec<&'a IrExpr> {
    order.iter().filter_map(|at| args.get(*at)).collect()
}

/// Returns the arguments without `surplus` of them, from index `at` on.
fn without(args: &[IrExpr], at: usize, surplus: usize) -> Vec<&IrExpr> {
    let kept = args.iter().enumerate().filter(|(index, _)| *index < at || at + surplus <= *index);
    kept.map(|(_, arg)| arg).collect()
}

/// Returns the arguments with `missing` variables inserted at index `at`, each the first that fits: one named like its
/// parameter, or another one. `None` if the result does not fit, or if it is not found in `trials` trials.
fn filled<'a>(
    params: &Parameters<'_>,
    args: &'a [IrExpr],
    (at, missing): (usize, usize),
    variables: &'a [IrExpr],
    trials: &mut usize,
) -> Option<Vec<&'a IrExpr>> {
    let (before, after) = args.split_at_checked(at)?;
    let mut list: Vec<&IrExpr> = before.iter().collect();
    for nth in at..at + missing {
        let wanted = params.names.get(nth).copied();
        let is_named = |variable: &&IrExpr| wanted.is_some() && variable_of(variable) == wanted;
        let others = variables.iter().filter(|variable| !is_named(variable));
        let candidates = variables.iter().filter(is_named).chain(others);
        let mut free = candidates.filter(|variable| list.iter().all(|arg| arg.kind != variable.kind));
        let fitting = loop {
            let variable = free.next()?;
            *trials = trials.checked_sub(1)?;
            let longer: Vec<&IrExpr> = list.iter().copied().chain([variable]).collect();
            if params.accept(&longer) {
                break variable;
            }
        };
        list.push(fitting);
    }
    list.extend(after);
    params.accept(&list).then_some(list)
}

fn variable_of(arg: &IrExpr) -> Option<Name> {
    match arg.kind {
        IrKind::Var(variable) => Some(variable),
        _ => None,
    }
}
