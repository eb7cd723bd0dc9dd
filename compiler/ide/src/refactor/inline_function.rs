//! Inline function: replaces a call of a Relax function of the module by its body.
//!
//! ```text
//! y = cls.scaled(x)         # before; `scaled` is: lv = R.exp(a); return R.add(lv, a)
//!
//! lv = R.exp(x)             # after
//! y = R.add(lv, x)
//! ```
//!
//! Requires a call that is the whole value of its statement, and a body with one `return`, at its end. Variables of the
//! body whose names the caller uses get new names, parameters become the arguments, and symbolic dims become the dims
//! of the arguments. A dataflow block of the body is dissolved if the call is in one.

use super::fresh::Fresh;
use super::site::{Site, names, operand, sites};
use super::{Proposal, RefactorKind};
use crate::names::{Bound, File, Meaning, Role, declared_symbols, read, resolve};
use rx_analysis::Entry;
use rx_base::fix::{Edit, apply};
use rx_base::name::{NameMap, NameSet};
use rx_base::{Dim, Name, Span};
use rx_db::{FileView, FunctionKind};
use rx_ir::{Signature, StructInfo};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::document::ItemKind;
use rx_transform::substitute::unify;
use std::collections::HashSet;
use std::rc::Rc;

/// The maximal number of statements of a body that is copied.
const MOST_STATEMENTS: usize = 500;

/// Returns the inlining of the call whose function's name is at `offset` of a text.
pub(super) fn proposal(view: &FileView<'_>, text: &str, offset: u32) -> Option<Proposal> {
    let call = Called::at(view, offset)?;
    let body = Body::of(view, call.function)?;
    let mut fresh = Fresh::variables(text);
    let mut inlining = Inlining {
        view,
        call: &call,
        body: &body,
        read: NameMap::default(),
        edits: Vec::new(),
        before: String::new(),
        bound: HashSet::from(["_".to_owned()]),
    };
    let names = names(body.kept.iter().chain([&body.last]).map(|site| (site, site.tokens())));
    inlining.parameters(&mut fresh)?;
    inlining.variables(&names, &mut fresh)?;
    inlining.symbols(names)?;
    let (statements, result) = inlining.text(text)?;
    let place = Span::empty(call.site.start + call.site.line_start());
    let edits = vec![(place, format!("{}{statements}", inlining.before)), (call.place, result)];
    let title = format!("Inline this call of `{}`", call.name);
    let (edited, touched) = (call.site.function(view)?, inlining.bound);
    Some(Proposal { title, kind: RefactorKind::Inline, edits, edited, touched, added: None, value: None })
}

/// A call of a Relax function of the module.
struct Called<'a> {
    site: Site<'a>,
    /// The call, in bytes of the file.
    place: Span,
    arguments: &'a [Argument],
    /// The name of the module at the call: `cls`.
    module: Name,
    name: Name,
    /// The index of the called function's item.
    function: usize,
}

impl<'a> Called<'a> {
    fn at(view: &FileView<'a>, offset: u32) -> Option<Called<'a>> {
        let site = Site::at(view, offset)?;
        let value = site.value().filter(|_| site.is_alone() && !matches!(site.kind(), StatementKind::If(_)))?;
        let ExprKind::Call { callee, arguments } = &value.kind else { return None };
        let ExprKind::Attribute { value: base, name } = &callee.kind else { return None };
        let cursor = site.cursor();
        let is_here = cursor.span(callee.tokens).shift(site.start).touches(offset);
        let module = matches!(base.kind, ExprKind::Name).then(|| cursor.name(base.tokens.start))?;
        let name = cursor.name(*name);
        let known = File { view, wanted: name }.modules(site.item).of(module)?;
        let item = view.document().items().get(site.item)?;
        let function = view.function(site.item, name).filter(|_| is_here && item.module == Some(known))?;
        let called = view.document().items().get(function)?;
        let is_relax = called.kind == ItemKind::Function(FunctionKind::Relax) && function != site.item;
        let is_plain =
            arguments.iter().all(|it| !matches!(it.value.kind, ExprKind::Starred { .. }) && it.keyword.is_none());
        let place = cursor.span(value.tokens).shift(site.start);
        (is_relax && is_plain).then_some(Called { site, place, arguments, module, name, function })
    }
}

/// The body of a function as statements that are copied, and a result.
struct Body<'a> {
    item: usize,
    /// The statements that are not copied: attributes, `cls = Module`, declarations of symbolic dims.
    skipped: Vec<Site<'a>>,
    /// The statements that are copied.
    kept: Vec<Site<'a>>,
    /// The `return` at the end.
    last: Site<'a>,
    result: &'a Expr,
    /// The variables that refer to the module.
    aliases: Vec<Name>,
    indent: &'a str,
}

impl<'a> Body<'a> {
    fn of(view: &FileView<'a>, item: usize) -> Option<Body<'a>> {
        let all: Vec<Site<'a>> = sites(view, item, 1).take(MOST_STATEMENTS + 1).collect();
        let (last, before) = all.split_last().filter(|_| all.len() <= MOST_STATEMENTS)?;
        let StatementKind::Return(Some(result)) = last.kind() else { return None };
        let indent = all.first()?.indent();
        let is_flat = |site: &Site<'_>| !matches!(site.kind(), StatementKind::Return(_) | StatementKind::Def { .. });
        let is_copied =
            |site: &Site<'_>| site.statement.tree.error.is_none() && is_flat(site) && !site.has_long_string();
        // A function for an external code generator is more than its body.
        let is_generated = |site: &Site<'_>| {
            let attributes = site.is_bare_call("func_attr");
            attributes && site.segment.text().get(site.statement.span.range()).is_none_or(|it| it.contains("Codegen"))
        };
        if !before.iter().all(is_copied)
            || before.iter().any(is_generated)
            || last.indent() != indent
            || !last.is_alone()
        {
            return None;
        }
        let mut body =
            Body { item, skipped: Vec::new(), kept: Vec::new(), last: *last, result, aliases: Vec::new(), indent };
        for site in before {
            match site.alias(view) {
                Some(alias) => body.aliases.push(alias),
                None if site.is_bare_call("func_attr") || declares_symbols(site) => {}
                None => {
                    body.kept.push(*site);
                    continue;
                }
            }
            body.skipped.push(*site);
        }
        Some(body)
    }

    /// Returns the lines between the header and the `return`, in bytes of the file.
    fn region(&self, view: &FileView<'_>, text: &str) -> Option<Span> {
        let header = view.document().items().get(self.item)?.segments.first()?.tree().statements.last()?;
        let end = view.document().item_start(self.item) + header.span.end as usize;
        let start = end + text.get(end..)?.find('\n')? + 1;
        let until = self.last.start + self.last.line_start();
        Some(Span::new(u32::try_from(start).ok()?.min(until), until))
    }
}

/// Whether a statement only declares symbolic dims.
fn declares_symbols(site: &Site<'_>) -> bool {
    let StatementKind::Assign { targets, .. } = site.kind() else { return false };
    let declared = declared_symbols(site.segment);
    let cursor = site.cursor();
    let names = |expr: &Expr| match &expr.kind {
        ExprKind::Name => declared.contains(&cursor.name(expr.tokens.start)),
        _ => false,
    };
    targets.iter().all(|target| match &target.kind {
        ExprKind::Tuple(all) => all.iter().all(names),
        _ => names(target),
    })
}

struct Inlining<'i, 'a> {
    view: &'i FileView<'a>,
    call: &'i Called<'a>,
    body: &'i Body<'a>,
    /// The places of the names that were read.
    read: NameMap<Option<Rc<Mentions>>>,
    /// The edits of the body, in bytes of the file.
    edits: Vec<Edit>,
    /// The bindings of arguments before the body.
    before: String,
    /// The names that the result binds, and `_`.
    bound: HashSet<String>,
}

impl Inlining<'_, '_> {
    fn signature(&self) -> Option<Vec<(Name, StructInfo)>> {
        match &*self.view.signature(self.body.item)? {
            Signature::Relax(signature) if signature.params.len() == self.call.arguments.len() => {
                Some(signature.params.to_vec())
            }
            _ => None,
        }
    }

    /// Replaces the parameters by the arguments. An argument that is no variable is bound first, and so is that of a
    /// parameter whose name is bound again.
    fn parameters(&mut self, fresh: &mut Fresh) -> Option<()> {
        let cursor = self.call.site.cursor();
        let (indent, end) = (self.call.site.indent(), self.view.document().line_end());
        for ((param, _), argument) in self.signature()?.iter().zip(self.call.arguments) {
            let text = cursor.source(argument.value.tokens);
            let names = self.mentions(*param)?;
            let new = if matches!(argument.value.kind, ExprKind::Name) && !names.is_rebound {
                text.to_owned()
            } else {
                let new = fresh.name(param);
                self.before.push_str(&format!("{indent}{new} = {}{end}", operand(cursor, &argument.value)));
                self.bound.insert(new.clone());
                new
            };
            self.edits.extend(names.places.iter().map(|place| (*place, new.clone())));
        }
        Some(())
    }

    /// Gives new names to the variables of the body whose names the caller uses.
    fn variables(&mut self, names: &[Name], fresh: &mut Fresh) -> Option<()> {
        let params: NameSet = self.signature()?.into_iter().map(|(param, _)| param).collect();
        for name in names.iter().copied().filter(|name| !params.contains(name)) {
            let new = match self.body.aliases.contains(&name) {
                true => self.call.module.to_string(),
                false => {
                    if !self.mentions(name)?.is_bound {
                        continue;
                    }
                    let new = if self.caller_uses(name) { fresh.name(&name) } else { name.to_string() };
                    self.bound.insert(new.clone());
                    new
                }
            };
            if new != name.as_str() {
                let found = self.mentions(name)?;
                self.edits.extend(found.places.iter().map(|place| (*place, new.clone())));
            }
        }
        Some(())
    }

    /// Whether the caller uses a name.
    fn caller_uses(&self, wanted: Name) -> bool {
        let item = self.view.document().items().get(self.call.site.item);
        item.is_none_or(|item| !read(item, &[wanted], 0..item.segments.len()).mentions.is_empty())
    }

    /// Replaces the symbolic dims of the parameters by the dims of the arguments. `None` if a dim is unknown.
    fn symbols(&mut self, mut names: Vec<Name>) -> Option<()> {
        let mut dims: NameMap<Dim> = NameMap::default();
        let site = &self.call.site;
        let cursor = site.cursor();
        for ((_, declared), argument) in self.signature()?.iter().zip(self.call.arguments) {
            if !matches!(argument.value.kind, ExprKind::Name) {
                continue;
            }
            let variable = cursor.name(argument.value.tokens.start);
            let place = site.statement.span.start;
            if let Some(Entry::Value { ty, .. }) = self.view.entry(site.item, site.number, place, variable) {
                unify(declared, &ty, &mut dims);
            }
        }
        let context = self.view.context(self.body.item)?;
        // A dim with the same name in the caller needs no change, even in a string.
        let is_same = |name: &Name| dims.get(name).is_some_and(|dim| dim.as_symbol() == Some(*name));
        names.extend(dims.keys().copied());
        for name in names.into_iter().filter(|name| !is_same(name)) {
            let found = self.mentions(name)?;
            if !(found.is_symbol || !found.is_bound && context.symbols.contains(&name)) || found.symbols.is_empty() {
                continue;
            }
            let dim = dims.get(&name)?;
            let text = match dim.as_symbol().is_some() || dim.as_constant().is_some() {
                true => dim.to_string(),
                false => format!("({dim})"),
            };
            if text != name.as_str() {
                self.edits.extend(found.symbols.iter().map(|place| (*place, text.clone())));
            }
        }
        Some(())
    }

    /// Returns the places of a name in the copied statements and the result, which are read once. `None` if a place is
    /// inside a string with escapes or quotes, where it cannot be replaced.
    fn mentions(&mut self, wanted: Name) -> Option<Rc<Mentions>> {
        if let Some(known) = self.read.get(&wanted) {
            return known.clone();
        }
        let found = self.mentions_in_body(wanted).map(Rc::new);
        self.read.insert(wanted, found.clone());
        found
    }

    fn mentions_in_body(&self, wanted: Name) -> Option<Mentions> {
        let item = self.view.document().items().get(self.body.item)?;
        let file = File { view: self.view, wanted };
        let reading = read(item, &[wanted], 0..item.segments.len());
        let meanings = resolve(&reading, file.around(self.body.item)?, |_, _| true);
        let mut found = Mentions::default();
        for (at, mention) in reading.mentions.iter().enumerate() {
            let span = file.span(self.body.item, mention)?;
            let copied = self.body.kept.iter().chain([&self.body.last]);
            if !copied.map(Site::span).any(|own| own.start <= span.start && span.end <= own.end) {
                continue;
            }
            let variable = match meanings.rooted(at) {
                Meaning::Local(root) => meanings.variable(root).map(|variable| variable.bound),
                Meaning::Outer => None,
                _ => continue,
            };
            if mention.literal.is_some() || matches!(mention.role, Role::Dim { quoted: true }) {
                return None;
            }
            found.is_rebound |= mention.role == Role::Bind(Bound::Variable);
            match variable {
                Some(Bound::Symbol) => found.is_symbol = true,
                Some(_) => found.is_bound = true,
                None => {}
            }
            match variable {
                Some(Bound::Symbol) | None => found.symbols.push(span),
                Some(_) => found.places.push(span),
            }
        }
        Some(found)
    }

    /// Returns the copied statements as lines, and the result.
    fn text(&mut self, text: &str) -> Option<(String, String)> {
        let result = self.body.last.cursor().span(self.body.result.tokens).shift(self.body.last.start);
        let shifted = |edits: Vec<Edit>, by: u32| -> Vec<Edit> {
            let place = |span: Span| Span::new(span.start.saturating_sub(by), span.end.saturating_sub(by));
            edits.into_iter().map(|(span, new)| (place(span), new)).collect()
        };
        self.edits.sort();
        self.edits.dedup();
        let in_result: Vec<Edit> = self.edits.iter().filter(within(result)).cloned().collect();
        let returned = apply(text.get(result.range())?, &shifted(in_result, result.start));
        let returned = match &self.body.result.kind {
            ExprKind::Tuple(_) if !returned.starts_with('(') => format!("({returned})"),
            _ => returned,
        };
        let region = self.body.region(self.view, text)?;
        let mut edits: Vec<Edit> = self.edits.iter().filter(within(region)).cloned().collect();
        for site in self.removed() {
            let (gone, _) = site.removal()?;
            edits.retain(|(span, _)| span.end <= gone.start || gone.end <= span.start);
            edits.push((gone, String::new()));
        }
        self.indent(text, region, &mut edits);
        edits.sort();
        Some((apply(text.get(region.range())?, &shifted(edits, region.start)), returned))
    }

    /// Returns the statements of the body that are not copied. If the call is in a dataflow block, those that delimit
    /// the body's dataflow blocks are among them.
    fn removed(&self) -> Vec<Site<'_>> {
        let mut removed: Vec<Site<'_>> = self.body.skipped.clone();
        if self.call.site.is_in_dataflow(self.view) {
            let delimits = |site: &&Site<'_>| site.dataflow_callee().is_some() || site.is_bare_call("output");
            removed.extend(self.body.kept.iter().filter(delimits).copied());
        }
        removed
    }

    /// Adds the edits that give the lines of `region` the indentation of the call. Statements of a dissolved dataflow
    /// block move out by one level.
    fn indent(&self, text: &str, region: Span, edits: &mut Vec<Edit>) {
        let dissolves = self.call.site.is_in_dataflow(self.view);
        // The indentation to remove from the lines that begin at or after a place.
        let mut levels: Vec<(u32, &str)> = vec![(region.start, self.body.indent)];
        let mut block: Option<u32> = None;
        for (at, site) in self.body.kept.iter().enumerate() {
            if block.is_some_and(|column| site.statement.indent <= column) {
                block = None;
                levels.push((site.start + site.line_start(), self.body.indent));
            }
            if dissolves && block.is_none() && site.dataflow_callee().is_some() {
                block = Some(site.statement.indent);
                let inner = self.body.kept.get(at + 1).map_or(self.body.indent, Site::indent);
                levels.push((site.start + site.line_end().1, inner));
            }
        }
        let target = self.call.site.indent();
        let mut at = region.start;
        for line in text.get(region.range()).unwrap_or_default().split_inclusive('\n') {
            let bare = line.trim_start_matches([' ', '\t']);
            let blanks = (line.len() - bare.len()) as u32;
            let place = Span::new(at, at + blanks);
            at += line.len() as u32;
            let level = levels.iter().rev().find(|(from, _)| *from <= place.start).map_or("", |(_, level)| *level);
            let own = line.get(..blanks as usize).unwrap_or_default();
            if bare.trim().is_empty() {
                continue;
            }
            let new = format!("{target}{}", own.strip_prefix(level).unwrap_or_default());
            // Lines of removed statements are gone.
            if edits.iter().all(|(span, _)| span.end <= place.start || place.end <= span.start) {
                edits.push((place, new));
            }
        }
    }
}

/// Returns a filter of the edits that are inside a place.
fn within(place: Span) -> impl Fn(&&Edit) -> bool {
    move |(span, _)| place.start <= span.start && span.end <= place.end
}

/// The places of a name in the copied part of a body.
#[derive(Default)]
struct Mentions {
    /// Those that refer to a variable.
    places: Vec<Span>,
    /// Those that refer to a symbolic dim, or to something outside the function.
    symbols: Vec<Span>,
    /// Whether the name is a variable.
    is_bound: bool,
    /// Whether the name is a symbolic dim of the function.
    is_symbol: bool,
    /// Whether a statement binds the name.
    is_rebound: bool,
}
