//! Extract function: moves selected statements into a new function of the module, and calls it.
//!
//! ```text
//! def main(x: R.Tensor((4,), "float32")):          # before, with the first two statements selected
//!     y = R.exp(x)
//!     z = R.add(y, x)
//!     return z
//!
//! def main(x: R.Tensor((4,), "float32")):          # after
//!     z = Module.main_part(x)
//!     return z
//!
//! @R.function(private=True)
//! def main_part(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
//!     y = R.exp(x)
//!     z = R.add(y, x)
//!     return z
//! ```
//!
//! Requires whole statements of one block, without `return`, that bind a variable which is used after them. Several
//! such variables are returned as a tuple. Statements of a dataflow block get a dataflow block in the new function.

use super::fresh::Fresh;
use super::site::{Site, names, relax_item, sites};
use super::{Proposal, RefactorKind};
use crate::names::{Bound, File, Meaning, read, resolve};
use crate::raw_entry::{dialect, entry_text, printed_in, trailing_blanks};
use rx_analysis::Entry;
use rx_analysis::elaborate::RowKind;
use rx_base::name::name;
use rx_base::{Name, Span};
use rx_db::FileView;
use rx_ir::{Constants, Expr, ExprKind, Item, RelaxFunction, Sequence, Signature, StructInfo};
use rx_syntax::ast::StatementKind;
use rx_transform::Module;
use rx_transform::print::{print, undeclared};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximal number of statements that are moved.
const MOST_STATEMENTS: usize = 1000;

/// The maximal number of names in the statements, for each of which the function is read.
const MOST_NAMES: usize = 500;

/// Returns the extraction of the selected statements of a text, first into a pure function, then into one with effects.
pub(super) fn proposals(view: &FileView<'_>, text: &str, range: Span) -> Vec<Proposal> {
    let Some(part) = Part::selected(view, text, range) else { return Vec::new() };
    let Some(flow) = Flow::of(view, &part) else { return Vec::new() };
    let Some(name) = part.first.function(view) else { return Vec::new() };
    let function = Fresh::functions(text).name(&format!("{name}_part"));
    let is_pure = matches!(view.signature(part.item).as_deref(), Some(Signature::Relax(signature)) if signature.pure);
    let purities: &[bool] = if is_pure { &[true] } else { &[true, false] };
    purities.iter().filter_map(|pure| proposal(view, (text, &part), &flow, &function, *pure)).collect()
}

fn proposal(
    view: &FileView<'_>,
    (text, part): (&str, &Part<'_>),
    flow: &Flow,
    function: &str,
    pure: bool,
) -> Option<Proposal> {
    let document = view.document();
    let item = document.items().get(part.item)?;
    let class = document.module_header(item.module?)?.name?;
    let mut edits = vec![(part.region, calls(view, part, flow, &class, function)?)];
    let end = document.line_end();
    let body = body(view, (text, part), flow, &class)?;
    let indent = " ".repeat(item.indent as usize);
    let header = header(view, part, flow, function, pure)?;
    let header: String = header.iter().map(|line| format!("{indent}{line}{end}")).collect();
    let place = document.item_start(part.item) + item.byte_len().saturating_sub(trailing_blanks(item));
    edits.push((Span::empty(u32::try_from(place).ok()?), format!("{end}{end}{header}{body}")));
    let count = part.sites.len();
    let title = format!("Extract {} into a function", rx_base::counted(count, "statement"));
    let touched = flow.bound.iter().map(Name::to_string).chain(["_".to_owned(), tuple_name(function)]).collect();
    let (edited, added) = (item.name?, Some(function.to_owned()));
    Some(Proposal { title, kind: RefactorKind::Extract, edits, edited, touched, added, value: None })
}

/// The selected statements.
struct Part<'a> {
    item: usize,
    sites: Vec<Site<'a>>,
    first: Site<'a>,
    last: Site<'a>,
    /// The whole lines of the statements and of the selected comments, in bytes of the file.
    region: Span,
    /// The header of the dataflow block around the statements.
    dataflow: Option<Site<'a>>,
}

impl<'a> Part<'a> {
    /// Returns the statements in a selection, if they can be moved.
    fn selected(view: &FileView<'a>, text: &str, range: Span) -> Option<Part<'a>> {
        let item = relax_item(view, range.start).filter(|_| !range.is_empty())?;
        // The statements from the segment of the selection's start up to the first one after the selection.
        let mut all: Vec<Site<'a>> = Vec::new();
        for site in sites(view, item, view.document().locate(range.start as usize)?.segment) {
            all.push(site);
            if site.span().start >= range.end {
                break;
            }
            if all.len() > MOST_STATEMENTS {
                return None;
            }
        }
        let from = all.iter().position(|site| range.start <= site.span().start)?;
        let until = all.iter().rposition(|site| site.span().end <= range.end)? + 1;
        let cut = all.iter().any(|site| {
            let span = site.span();
            let overlaps = span.start < range.end && range.start < span.end;
            overlaps && !(range.start <= span.start && span.end <= range.end)
        });
        let sites = all.get(from..until).filter(|sites| !cut && !sites.is_empty())?.to_vec();
        let (first, last) = (*sites.first()?, *sites.last()?);
        let indent = first.statement.indent;
        let next = all.get(until);
        let is_branch = |site: &Site<'_>| matches!(site.kind(), StatementKind::Elif(_) | StatementKind::Else);
        // The next statement must not belong to a block that the selection opens.
        let goes_on = next.is_some_and(|next| {
            next.statement.inline
                || next.statement.indent > indent
                || next.statement.indent == indent && is_branch(next)
        });
        let is_whole = !first.statement.inline
            && !is_branch(&first)
            && !goes_on
            && sites.iter().all(|site| site.statement.indent >= indent && is_movable(site, indent));
        let line_start = |at: u32| text.get(..at as usize).map(|text| text.rfind(['\n', '\r']).map_or(0, |at| at + 1));
        let start = line_start(range.start)?.min((first.start + first.line_start()) as usize);
        let rest = text.get(range.end as usize..)?;
        let selected_end = range.end as usize + rest.find('\n').map_or(rest.len(), |at| at + 1);
        let end = selected_end.max((last.start + last.line_end().1) as usize);
        let region = Span::new(u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        // Only comments may be selected around the statements.
        let is_comment = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let before = text.get(start..(first.start + first.line_start()) as usize)?;
        let after = text.get((last.start + last.line_end().1) as usize..end)?;
        let is_whole = is_whole && before.lines().chain(after.lines()).all(is_comment);
        let dataflow = first.dataflow_header(view);
        is_whole.then_some(Part { item, sites, first, last, region, dataflow })
    }

    /// Whether a span in bytes of the file is in the part.
    fn holds(&self, span: Span) -> bool {
        self.first.span().start <= span.start && span.end <= self.last.span().end
    }
}

/// Whether a statement may be in another function. `indent` is the column of the selection.
fn is_movable(site: &Site<'_>, indent: u32) -> bool {
    let kept_here = match site.kind() {
        StatementKind::Return(_) => true,
        _ => site.is_bare_call("func_attr") || site.is_bare_call("output") && site.statement.indent == indent,
    };
    site.statement.tree.error.is_none() && !kept_here && !site.has_long_string()
}

/// The variables that the statements share with the rest of their function.
struct Flow {
    /// The variables that the statements use and do not bind, with their types.
    params: Vec<(Name, StructInfo)>,
    /// The variables that the statements bind and later ones use, with their types.
    results: Vec<(Name, StructInfo)>,
    /// All names that the statements bind.
    bound: Vec<Name>,
    /// The name by which the statements refer to the module, if it is a variable.
    alias: Option<Name>,
}

impl Flow {
    fn of(view: &FileView<'_>, part: &Part<'_>) -> Option<Flow> {
        let mut flow = Flow { params: Vec::new(), results: Vec::new(), bound: Vec::new(), alias: None };
        let names = names(part.sites.iter().map(|site| (site, site.tokens())));
        if names.len() > MOST_NAMES {
            return None;
        }
        for name in names {
            flow.add(view, part, name)?;
        }
        (!flow.results.is_empty()).then_some(flow)
    }

    /// Adds one name of the statements. `None` if the statements cannot be moved because of it.
    fn add(&mut self, view: &FileView<'_>, part: &Part<'_>, wanted: Name) -> Option<()> {
        let item = view.document().items().get(part.item)?;
        let file = File { view, wanted };
        let reading = read(item, &[wanted], 0..item.segments.len());
        let meanings = resolve(&reading, file.around(part.item)?, |_, _| true);
        let mut variables: BTreeMap<usize, Places> = BTreeMap::new();
        for (at, mention) in reading.mentions.iter().enumerate() {
            let Meaning::Local(root) = meanings.rooted(at) else { continue };
            let places = variables.entry(root).or_default();
            let is_inside = file.span(part.item, mention).is_some_and(|span| part.holds(span));
            match (is_inside, meanings.defines.get(at) == Some(&true)) {
                (true, true) => places.is_defined = true,
                (true, false) => places.is_used = true,
                (false, _) => places.is_outside = true,
            }
        }
        let (mut is_bound, mut is_free, mut is_result) = (false, false, false);
        for (root, places) in variables {
            let is_symbol = meanings.variable(root).is_some_and(|variable| variable.bound == Bound::Symbol);
            if places.is_defined && is_symbol {
                return None;
            }
            is_bound |= places.is_defined;
            is_result |= places.is_defined && places.is_outside;
            is_free |= places.is_used && !places.is_defined && !is_symbol;
        }
        if is_bound {
            self.bound.push(wanted);
        }
        if is_free {
            match view.entry(part.item, part.first.number, part.first.statement.span.start, wanted)? {
                Entry::Value { ty, .. } if !ty.is_error() => self.params.push((wanted, ty)),
                Entry::Module => self.alias = Some(wanted),
                Entry::Symbol { .. } => {}
                _ => return None,
            }
        }
        if is_result {
            self.results.push((wanted, result_type(view, part, wanted)?));
        }
        Some(())
    }
}

/// The places at which a variable is mentioned.
#[derive(Default)]
struct Places {
    /// Whether the selected statements define it.
    is_defined: bool,
    /// Whether the selected statements use it.
    is_used: bool,
    /// Whether other statements mention it.
    is_outside: bool,
}

/// Returns the type that a variable has after the statements.
fn result_type(view: &FileView<'_>, part: &Part<'_>, wanted: Name) -> Option<StructInfo> {
    let check = view.check(part.item)?;
    let bound = part.sites.iter().rev().find_map(|site| {
        let rows = &check.segments.get(site.number)?.rows;
        let is_it = |row: &&rx_analysis::elaborate::Row| {
            row.name == wanted && row.kind == RowKind::Binding && row.statement as usize == site.index
        };
        rows.iter().rev().find(is_it).map(|row| row.ty.clone())
    });
    let after = || match view.entry(part.item, part.last.number, part.last.statement.span.end, wanted)? {
        Entry::Value { ty, .. } => Some(ty),
        _ => None,
    };
    bound.or_else(after).filter(|ty| !ty.is_error())
}

/// Returns the variable that holds the results of a function with several.
fn tuple_name(function: &str) -> String {
    format!("{function}_results")
}

/// Returns the statements that call the function in place of those that move.
fn calls(view: &FileView<'_>, part: &Part<'_>, flow: &Flow, class: &Name, function: &str) -> Option<String> {
    let (indent, end) = (part.first.indent(), view.document().line_end());
    let module = flow.alias.or_else(|| alias(view, part)).unwrap_or(*class);
    let arguments: Vec<&str> = flow.params.iter().map(|(name, _)| name.as_str()).collect();
    let call = format!("{module}.{function}({})", arguments.join(", "));
    if let [(result, _)] = &flow.results[..] {
        return Some(format!("{indent}{result} = {call}{end}"));
    }
    let tuple = tuple_name(function);
    let fields = flow.results.iter().enumerate();
    let fields: String = fields.map(|(at, (result, _))| format!("{indent}{result} = {tuple}[{at}]{end}")).collect();
    Some(format!("{indent}{tuple} = {call}{end}{fields}"))
}

/// Returns the variable that the function binds to its module before the statements: `cls` of `cls = Module`.
fn alias(view: &FileView<'_>, part: &Part<'_>) -> Option<Name> {
    let before = |site: &Site<'_>| site.span().end <= part.first.span().start;
    sites(view, part.item, 1).take_while(before).find_map(|site| site.alias(view))
}

/// Returns the lines of the new function's decorator and header, and the declarations of its symbolic dims, in the
/// dialect of the file.
fn header(view: &FileView<'_>, part: &Part<'_>, flow: &Flow, function: &str, pure: bool) -> Option<Vec<String>> {
    let types: Vec<StructInfo> = flow.results.iter().map(|(_, ty)| ty.clone()).collect();
    let ret = match &types[..] {
        [only] => only.clone(),
        _ => StructInfo::tuple(types),
    };
    let result = Expr { kind: ExprKind::Var(flow.results.first()?.0), ty: ret.clone(), span: Span::default() };
    let function = RelaxFunction {
        name: name(function),
        private: true,
        pure,
        attributes: Vec::new(),
        params: flow.params.clone(),
        ret,
        body: Sequence { blocks: Vec::new(), result },
    };
    let wanted = function.name;
    let items = vec![Item::Relax(Arc::new(function))];
    let module: Module = Module { prelude: Arc::from(""), constants: Constants::default(), class: None, items };
    let document = view.document();
    let context = view.context(part.item)?;
    let is_declared = undeclared(&module).iter().all(|symbol| context.symbols.contains(symbol));
    let dialect = dialect(document, document.items().get(part.item)?, !is_declared);
    let text = entry_text(&printed_in(&print(&module), dialect), wanted)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // The last line returns.
    lines.pop()?;
    Some(lines)
}

/// Returns the body of the new function, without a line break at its end.
fn body(view: &FileView<'_>, (text, part): (&str, &Part<'_>), flow: &Flow, class: &Name) -> Option<String> {
    let document = view.document();
    let end = document.line_end();
    let outer = " ".repeat(document.items().get(part.item)?.indent as usize + 4);
    let moved = text.get(part.region.range())?;
    let results: Vec<&str> = flow.results.iter().map(|(name, _)| name.as_str()).collect();
    let results = results.join(", ");
    let mut lines = String::new();
    if let Some(alias) = flow.alias {
        lines.push_str(&format!("{outer}{alias} = {class}{end}"));
    }
    match &part.dataflow {
        None => lines.push_str(&indented(moved, part.first.indent(), &outer, end)),
        Some(header) => {
            let output = header.dataflow_callee()?.replacen("dataflow", "output", 1);
            let source = header.cursor().source(header.tokens());
            lines.push_str(&format!("{outer}{source}{end}"));
            lines.push_str(&indented(moved, part.first.indent(), &format!("{outer}    "), end));
            lines.push_str(&format!("{outer}    {output}({results}){end}"));
        }
    }
    let returned = if flow.results.len() == 1 { results } else { format!("({results})") };
    Some(format!("{lines}{outer}return {returned}"))
}

/// Returns lines with the indentation `to` in place of `from`. The last line gets the line break `end`.
fn indented(text: &str, from: &str, to: &str, end: &str) -> String {
    let mut moved = String::with_capacity(text.len() + to.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start_matches([' ', '\t']);
        let own = line.get(..line.len() - bare.len()).unwrap_or_default();
        if !bare.trim().is_empty() {
            moved.push_str(to);
            moved.push_str(own.strip_prefix(from).unwrap_or_default());
        }
        moved.push_str(bare);
    }
    if !moved.ends_with(['\n', '\r']) {
        moved.push_str(end);
    }
    moved
}
