//! Explains the value of a binding: its operator's inference rule with the actual numbers, and its cost.

use crate::token_at::Word;
use rx_analysis::elaborate::Recorded;
use rx_base::Name;
use rx_base::symbolic::Bounds;
use rx_db::amount::{Unit, plain};
use rx_db::{Costs, FileView};
use rx_ir::{Binding, BindingKind, Callee, Expr, ExprKind};
use rx_ops::CallInfo;

/// The maximal number of formulas that are shown.
const MOST_FORMULAS: usize = 8;

/// The value of a variable.
pub(crate) struct Bound {
    /// The expression that it is bound to.
    pub(crate) value: Expr,
}

/// Returns the value of the variable at the cursor: of the nearest binding before it, in its own segment or an earlier
/// one.
pub(crate) fn binding_of(view: &FileView<'_>, word: &Word<'_>) -> Option<Bound> {
    let location = word.location;
    let check = view.check(location.item)?;
    let defines = |segment: usize, limit: u32| {
        let result = check.segments.get(segment)?;
        let row = result.rows.iter().rev().find(|row| row.name == word.name && row.span.start <= limit);
        row.map(|row| (segment, row.statement))
    };
    let found = defines(location.segment, word.span.start)
        .or_else(|| (1..location.segment).rev().find_map(|segment| defines(segment, u32::MAX)))?;
    let recorded = view.recorded(location.item, found.0)?;
    value_of(&recorded, found.1, word.name)
}

fn value_of(recorded: &Recorded, statement: u32, variable: Name) -> Option<Bound> {
    let is_it = |binding: &&Binding| binding.origin.statement == statement;
    recorded.bindings.iter().filter(is_it).find_map(|binding| match &binding.kind {
        BindingKind::Value { variable: bound, value, .. } if *bound == variable => {
            Some(Bound { value: Expr::clone(value) })
        }
        _ => None,
    })
}

/// Returns the inference rule of the operator that `value` calls, and the cost of the call, as Markdown.
pub(crate) fn rule_text(view: &FileView<'_>, item: usize, value: &Expr) -> Option<String> {
    let ExprKind::Call(call) = &value.kind else { return None };
    let mut lines = Vec::new();
    if let Callee::Op(operator) = &call.callee
        && let Some(schema) = view.context(item)?.operator(*operator)
    {
        let args: Vec<rx_ops::Arg<'_>> = call.arguments.iter().map(rx_ops::Arg::from).collect();
        let bounds = Bounds::default();
        let explaining = CallInfo::explaining(schema, &args, &bounds);
        let known = (schema.infer)(&explaining).is_ok();
        let derivations = explaining.derivations.map(std::cell::RefCell::into_inner).unwrap_or_default();
        if known && !derivations.is_empty() {
            lines.push(format!("`R.{}`:", schema.name));
            lines.extend(derivations.iter().take(MOST_FORMULAS).map(|derivation| {
                let field = derivation.field.map_or_else(String::new, |field| format!("field {field}, "));
                format!("- {field}axis {}: `{}`", derivation.axis, derivation.formula)
            }));
        }
    }
    lines.extend(cost_text(&view.costs(view.module(item)?), value).map(|cost| format!("\ncost: {cost}")));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the cost of the calls in a value. `None` if none of them is known.
pub(crate) fn cost_text(costs: &Costs<'_>, value: &Expr) -> Option<String> {
    let stats = costs.of(value);
    (stats.calls > 0 && stats.uncounted < stats.calls).then(|| {
        let (operations, bytes) = (plain(&stats.operations, Unit::Operations), plain(&stats.bytes, Unit::Bytes));
        format!("{operations} operations, {bytes} moved")
    })
}
