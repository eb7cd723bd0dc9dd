//! The cost of a function, as the text of a code lens above it.

use rx_db::amount::{Unit, plain, ranged};
use rx_db::{FileView, FunctionOrLoops};

/// Returns the number of arithmetic operations, the bytes moved and the peak memory of the function that is item
/// `item`. `None` if none of them is known.
pub fn cost_line(view: &FileView<'_>, item: usize) -> Option<String> {
    let row = view.stats(item)?;
    let parts: Vec<String> = match &row.stats {
        FunctionOrLoops::Relax(stats) => {
            let not_counted = match stats.total.uncounted {
                0 => String::new(),
                1 => " (1 call not counted)".to_owned(),
                calls => format!(" ({calls} calls not counted)"),
            };
            vec![
                format!("{} operations{not_counted}", ranged(&stats.total.operations, stats, Unit::Operations)),
                format!("{} moved", ranged(&stats.total.bytes, stats, Unit::Bytes)),
                format!("peak {}", ranged(&stats.peak.bytes, stats, Unit::Bytes)),
            ]
        }
        FunctionOrLoops::Prim(count) => {
            let operations =
                count.operations.as_ref().map(|dim| format!("{} operations", plain(dim, Unit::Operations)));
            let bytes = count.bytes.as_ref().map(|dim| format!("{} moved", plain(dim, Unit::Bytes)));
            operations.into_iter().chain(bytes).collect()
        }
    };
    (!parts.is_empty()).then(|| parts.join(" · "))
}
