//! The cost of a function: a short line for a code lens above it, and the exact amounts for a hover.

use rx_base::Dim;
use rx_db::amount::{Unit, plain, ranged, short};
use rx_db::{FileView, FunctionOrLoops, FunctionStats};

/// Returns the number of arithmetic operations and the bytes moved of the function that is item `item`, rounded:
/// `1.2 M operations · 3 MiB`. Says only that calls are not counted if nothing else is. `None` if neither is known.
pub fn cost_line(view: &FileView<'_>, item: usize) -> Option<String> {
    let row = view.stats(item)?;
    let (operations, bytes, stats) = match &row.stats {
        FunctionOrLoops::Relax(stats) => (Some(&stats.total.operations), Some(&stats.total.bytes), Some(&**stats)),
        FunctionOrLoops::Prim(count) => (count.operations.as_ref(), count.bytes.as_ref(), None),
    };
    let is_zero = |dim: &Dim| dim.as_constant() == Some(0);
    if let Some(calls) = stats.and_then(not_counted)
        && operations.is_some_and(is_zero)
        && bytes.is_some_and(is_zero)
    {
        return Some(calls);
    }
    let operations = operations.map(|dim| short(dim, stats, Unit::Operations) + &beside(stats));
    let bytes = bytes.map(|dim| short(dim, stats, Unit::Bytes));
    let parts: Vec<String> = operations.into_iter().chain(bytes).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Returns the amounts of [`cost_line`] and the peak memory as a Markdown list, with formulas over the function's
/// symbols and the bounds of these.
pub(crate) fn cost_details(view: &FileView<'_>, item: usize) -> Option<String> {
    let row = view.stats(item)?;
    let lines: Vec<String> = match &row.stats {
        FunctionOrLoops::Relax(stats) => {
            let amount = |dim, unit| ranged(dim, stats, unit);
            vec![
                format!("- operations: {}{}", amount(&stats.total.operations, Unit::Operations), beside(Some(stats))),
                format!("- moved: {}", amount(&stats.total.bytes, Unit::Bytes)),
                format!("- peak memory: {}", amount(&stats.peak.bytes, Unit::Bytes)),
            ]
        }
        FunctionOrLoops::Prim(count) => {
            let line = |subject: &str, dim, unit| format!("- {subject}: {}", plain(dim, unit));
            let operations = count.operations.as_ref().map(|dim| line("operations", dim, Unit::Operations));
            let bytes = count.bytes.as_ref().map(|dim| line("moved", dim, Unit::Bytes));
            operations.into_iter().chain(bytes).collect()
        }
    };
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Describes the calls of a function whose operations are not counted: `2 calls not counted`. `None` if there are none.
fn not_counted(stats: &FunctionStats) -> Option<String> {
    match stats.total.uncounted {
        0 => None,
        1 => Some("1 call not counted".to_owned()),
        calls => Some(format!("{calls} calls not counted")),
    }
}

/// Returns the description of [`not_counted`] in parentheses, for the end of an amount.
fn beside(stats: Option<&FunctionStats>) -> String {
    stats.and_then(not_counted).map_or_else(String::new, |calls| format!(" ({calls})"))
}
