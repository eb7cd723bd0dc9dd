//! `--stats`: prints the operators, parameters and costs of each function of a file.

use rx_base::Dim;
use rx_db::amount::{Unit, plain, ranged};
use rx_db::{CallStats, FunctionOrLoops, FunctionStats, ParamStats, StatsRow, Workspace};
use rx_report::{Format, Position, Source, printable};
use serde::Serialize;

/// The most operators and functions that a table lists; JSON has all.
const MOST_ROWS: usize = 40;

/// Returns the rows of one file, each with its line end.
pub fn rows(source: &Source<'_>, workspace: &Workspace, file: rx_db::FileId, format: Format) -> Vec<String> {
    let rows = workspace.stats(file);
    let line = |row: &StatsRow, at: Option<rx_db::Origin>| {
        let span = workspace.origin_span(row.module, at?)?;
        Some(source.position(span.start as usize))
    };
    rows.iter()
        .map(|row| match (format, &row.stats) {
            (Format::Json, FunctionOrLoops::Relax(stats)) => {
                rx_report::json_line(&relax_record(source, row, stats, line(row, stats.peak.at))) + "\n"
            }
            (Format::Json, FunctionOrLoops::Prim(count)) => {
                rx_report::json_line(&prim_record(source, row, count)) + "\n"
            }
            (_, FunctionOrLoops::Relax(stats)) => table(source, row, stats, line(row, stats.peak.at)),
            (_, FunctionOrLoops::Prim(count)) => {
                let operations = count
                    .operations
                    .as_ref()
                    .map_or_else(|| "not counted".to_owned(), |dim| plain(dim, Unit::Operations));
                let bytes = count.bytes.as_ref().map_or_else(|| "not known".to_owned(), |dim| plain(dim, Unit::Bytes));
                shown(&format!("{}: prim_func {}: operations {operations}, bytes {bytes}", at(source, row), row.name))
            }
        })
        .collect()
}

fn at(source: &Source<'_>, row: &StatsRow) -> String {
    format!("{}:{}", source.name(), source.position(row.span.start as usize).line_after_path())
}

/// Replaces unprintable characters in lines of text.
fn shown(text: &str) -> String {
    text.lines().map(|line| line.chars().map(printable).chain(['\n']).collect::<String>()).collect()
}

fn table(source: &Source<'_>, row: &StatsRow, stats: &FunctionStats, peak: Option<Position>) -> String {
    let mut lines = vec![format!("{}: {}", at(source, row), stats.name)];
    let mut add = |title: &str, text: String| lines.push(format!("  {title:<12} {text}"));
    add("bindings", stats.bindings.to_string());
    add("inputs", params(&stats.inputs, stats));
    add("weights", params(&stats.weights, stats));
    let not_counted = match stats.total.uncounted {
        0 => String::new(),
        1 => "; 1 call not counted".to_owned(),
        calls => format!("; {calls} calls not counted"),
    };
    add("operations", ranged(&stats.total.operations, stats, Unit::Operations) + &not_counted);
    add("bytes moved", ranged(&stats.total.bytes, stats, Unit::Bytes));
    let place = peak.map_or_else(String::new, |position| format!(" in {}", position.line_words()));
    let unknown = match stats.peak.unknown {
        0 => String::new(),
        values => format!("; {values} values of unknown size left out"),
    };
    add("peak memory", ranged(&stats.peak.bytes, stats, Unit::Bytes) + &place + &unknown);
    let sites = row.index_sites;
    if sites.certain + sites.open + sites.proved > 0 {
        let counts = format!("{} out of bounds, {} open, {} proved", sites.certain, sites.open, sites.proved);
        add("index sites", counts);
    }
    let operators = stats.operators.iter().map(|(name, calls)| (format!("R.{name}"), calls));
    let functions = stats.functions.iter().map(|(name, calls)| (format!("cls.{name}"), calls));
    let mut calls: Vec<(String, &CallStats)> = operators.chain(functions).collect();
    calls.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.calls));
    if !calls.is_empty() {
        lines.push(format!("  {:<32} {:>8}  {:>16}  {:>16}", "", "calls", "operations", "bytes"));
    }
    for (name, calls) in calls.iter().take(MOST_ROWS) {
        let counted = calls.calls > calls.uncounted;
        let operations = if counted { plain(&calls.operations, Unit::Operations) } else { "not counted".to_owned() };
        let bytes = plain(&calls.bytes, Unit::Bytes);
        lines.push(format!("  {name:<32} {:>8}  {operations:>16}  {bytes:>16}", calls.calls));
    }
    if calls.len() > MOST_ROWS {
        lines.push(format!("  … {} more (--format json has all)", calls.len() - MOST_ROWS));
    }
    shown(&lines.join("\n"))
}

fn params(params: &ParamStats, stats: &FunctionStats) -> String {
    if params.count == 0 {
        return "0".to_owned();
    }
    let unknown = match params.unknown {
        0 => String::new(),
        count => format!("; {count} of unknown size left out"),
    };
    format!(
        "{}: {} elements, {}{unknown}",
        params.count,
        ranged(&params.elements, stats, Unit::Operations),
        ranged(&params.bytes, stats, Unit::Bytes)
    )
}

/// One function as `--stats --format json` writes it (`docs/json.md`).
#[derive(Serialize)]
struct RelaxRecord<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: u32,
    function: &'a str,
    kind: &'static str,
    bindings: u64,
    inputs: ParamRecord,
    weights: ParamRecord,
    operations: Amount,
    bytes: Amount,
    uncounted: u64,
    peak: PeakRecord,
    index_sites: SitesRecord,
    operators: Vec<CallRecord<'a>>,
    functions: Vec<CallRecord<'a>>,
}

#[derive(Serialize)]
struct PrimRecord<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: u32,
    function: &'a str,
    kind: &'static str,
    operations: Option<Amount>,
    bytes: Option<Amount>,
}

/// An expression over symbolic dims, with its bounds if known.
#[derive(Serialize)]
struct Amount {
    expression: String,
    lower: Option<i64>,
    upper: Option<i64>,
}

#[derive(Serialize)]
struct ParamRecord {
    count: u64,
    elements: Amount,
    bytes: Amount,
    unknown: u64,
}

#[derive(Serialize)]
struct PeakRecord {
    bytes: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u32>,
    line: Option<u32>,
    unknown: u64,
}

#[derive(Serialize)]
struct SitesRecord {
    certain: u32,
    open: u32,
    proved: u32,
}

#[derive(Serialize)]
struct CallRecord<'a> {
    name: &'a str,
    calls: u64,
    operations: Amount,
    bytes: Amount,
    uncounted: u64,
}

fn relax_record<'a>(
    source: &Source<'a>,
    row: &'a StatsRow,
    stats: &'a FunctionStats,
    peak: Option<Position>,
) -> RelaxRecord<'a> {
    let amount = |dim: &Dim| {
        let (lower, upper) = stats.range(dim);
        Amount { expression: dim.to_string(), lower, upper }
    };
    let params = |params: &ParamStats| ParamRecord {
        count: params.count,
        elements: amount(&params.elements),
        bytes: amount(&params.bytes),
        unknown: params.unknown,
    };
    let call = |(name, calls): (&&'static str, &'a CallStats)| CallRecord {
        name,
        calls: calls.calls,
        operations: amount(&calls.operations),
        bytes: amount(&calls.bytes),
        uncounted: calls.uncounted,
    };
    let position = source.position(row.span.start as usize);
    RelaxRecord {
        file: source.name(),
        cell: position.cell,
        line: position.line,
        function: row.name.as_str(),
        kind: "relax",
        bindings: stats.bindings,
        inputs: params(&stats.inputs),
        weights: params(&stats.weights),
        operations: amount(&stats.total.operations),
        bytes: amount(&stats.total.bytes),
        uncounted: stats.total.uncounted,
        peak: PeakRecord {
            bytes: amount(&stats.peak.bytes),
            cell: peak.and_then(|position| position.cell),
            line: peak.map(|position| position.line),
            unknown: stats.peak.unknown,
        },
        index_sites: SitesRecord {
            certain: row.index_sites.certain,
            open: row.index_sites.open,
            proved: row.index_sites.proved,
        },
        operators: stats.operators.iter().map(call).collect(),
        functions: stats.functions.iter().map(call).collect(),
    }
}

fn prim_record<'a>(source: &Source<'a>, row: &'a StatsRow, count: &rx_db::Count) -> PrimRecord<'a> {
    let amount = |dim: &Dim| Amount { expression: dim.to_string(), lower: dim.as_constant(), upper: dim.as_constant() };
    let position = source.position(row.span.start as usize);
    PrimRecord {
        file: source.name(),
        cell: position.cell,
        line: position.line,
        function: row.name.as_str(),
        kind: "prim_func",
        operations: count.operations.as_ref().map(amount),
        bytes: count.bytes.as_ref().map(amount),
    }
}
