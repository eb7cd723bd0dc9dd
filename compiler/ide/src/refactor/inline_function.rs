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
use super::site::{Site, operand, sites};
use super::{Proposal, RefactorKind};
use crate::names::{Bound, File, Meaning, Role, declared_symbols, read, resolve};
use rx_analysis::Entry;
use rx_base::fix::{Edit, apply};
use rx_base::name::NameMap;
use rx_base::{Dim, Name, Span};
use rx_db::{FileView, FunctionKind};
use rx_ir::{Signature, StructInfo};
use rx_syntax::TokenKind;
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::document::ItemKind;

/// Returns the inlining of the call whose function's name is at `offset`.
pub(super) fn proposal(view: &FileView<'_>, offset: u32) -> Option<Proposal> {
    let call = Called::at(view, offset)?;
    let body = Body::of(view, call.function)?;
    let mut fresh = Fresh::variables(view.document());
    let mut inlining =
        Inlining { view, call: &call, body: &body, edits: Vec::new(), before: String::new(), bound: Vec::new() };
    inlining.parameters(&mut fresh)?;
    inlining.variables(&mut fresh)?;
    inlining.symbols()?;
    let (statements, result) = inlining.text()?;
    let place = Span::empty(call.site.start + call.site.line_start());
    let edits = vec![(place, format!("{}{statements}", inlining.before)), (call.place, result)];
    let title = format!("Inline this call of `{}`", call.name);
    let mut touched = inlining.bound;
    touched.push("_".to_owned());
    Some(Proposal { title, kind: RefactorKind::Inline, edits, touched, added: None, value: None })
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
        let all = sites(view, item);
        let (last, before) = all.split_last()?;
        let StatementKind::Return(Some(result)) = last.kind() else { return None };
        let indent = all.first()?.indent();
        let is_flat = |site: &Site<'_>| !matches!(site.kind(), StatementKind::Return(_) | StatementKind::Def { .. });
        let is_copied = |site: &Site<'_>| site.statement.tree.error.is_none() && is_flat(site) && !spans_lines(site);
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
        let item_module = view.document().items().get(item)?.module;
        for site in before {
            let alias = alias(view, site, item_module);
            match alias {
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

/// Whether a statement has a string on several lines, whose lines cannot be indented.
fn spans_lines(site: &Site<'_>) -> bool {
    let cursor = site.cursor();
    let is_long = |token| cursor.kind(token) == Some(TokenKind::String) && cursor.text(token).contains(['\n', '\r']);
    (0..site.statement.token_count).any(is_long)
}

/// Returns the variable that a statement binds to the function's own module.
fn alias(view: &FileView<'_>, site: &Site<'_>, module: Option<u32>) -> Option<Name> {
    let (_, value) = site.binding()?;
    let StatementKind::Assign { targets, .. } = site.kind() else { return None };
    let class = matches!(value.kind, ExprKind::Name).then(|| site.cursor().name(value.tokens.start))?;
    let own = view.document().module_header(module?)?.name?;
    let target = targets.first().filter(|_| class == own)?;
    Some(site.cursor().name(target.tokens.start))
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
    /// The edits of the body, in bytes of the file.
    edits: Vec<Edit>,
    /// The bindings of arguments before the body.
    before: String,
    /// The names that the result binds.
    bound: Vec<String>,
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
            let names = self.mentions(*param, |role| role == Role::Bind(Bound::Variable))?;
            let new = if matches!(argument.value.kind, ExprKind::Name) && names.rebound == 0 {
                text.to_owned()
            } else {
                let new = fresh.name(param);
                self.before.push_str(&format!("{indent}{new} = {}{end}", operand(cursor, &argument.value)));
                self.bound.push(new.clone());
                new
            };
            self.edits.extend(names.places.into_iter().map(|place| (place, new.clone())));
        }
        Some(())
    }

    /// Gives new names to the variables of the body whose names the caller uses.
    fn variables(&mut self, fresh: &mut Fresh) -> Option<()> {
        let params = self.signature()?;
        for name in self.names() {
            if params.iter().any(|(param, _)| *param == name) {
                continue;
            }
            let new = match self.body.aliases.contains(&name) {
                true => self.call.module.to_string(),
                false => {
                    let found = self.mentions(name, |_| false)?;
                    if !found.is_bound {
                        continue;
                    }
                    let new = if self.caller_uses(name) { fresh.name(&name) } else { name.to_string() };
                    self.bound.push(new.clone());
                    new
                }
            };
            if new != name.as_str() {
                let places = self.mentions(name, |_| false)?.places;
                self.edits.extend(places.into_iter().map(|place| (place, new.clone())));
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
    fn symbols(&mut self) -> Option<()> {
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
        let mut names = self.names();
        names.extend(dims.keys().copied());
        for name in names.into_iter().filter(|name| !is_same(name)) {
            let found = self.mentions(name, |_| false)?;
            if !(found.is_symbol || !found.is_bound && context.symbols.contains(&name)) || found.symbols.is_empty() {
                continue;
            }
            let dim = dims.get(&name)?;
            let text = match dim.as_symbol().is_some() || dim.as_constant().is_some() {
                true => dim.to_string(),
                false => format!("({dim})"),
            };
            if text != name.as_str() {
                self.edits.extend(found.symbols.into_iter().map(|place| (place, text.clone())));
            }
        }
        Some(())
    }

    /// Returns the names in the copied statements and the result, without members.
    fn names(&self) -> Vec<Name> {
        let mut found: Vec<Name> = Vec::new();
        for site in self.body.kept.iter().chain([&self.body.last]) {
            let cursor = site.cursor();
            for token in 0..site.statement.token_count {
                let before = token.checked_sub(1).and_then(|before| cursor.kind(before));
                let is_name = cursor.kind(token).is_some_and(TokenKind::is_name) && before != Some(TokenKind::Dot);
                if is_name && !found.contains(&cursor.name(token)) {
                    found.push(cursor.name(token));
                }
            }
        }
        found
    }

    /// Returns the places of a name in the copied statements and the result. `counts` decides which bindings bind the
    /// name again. `None` if a place is inside a string with escapes or quotes, where it cannot be replaced.
    fn mentions(&self, wanted: Name, counts: impl Fn(Role) -> bool) -> Option<Mentions> {
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
            found.rebound += usize::from(counts(mention.role));
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
    fn text(&mut self) -> Option<(String, String)> {
        let text = self.view.document().text();
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
        let region = self.body.region(self.view, &text)?;
        let mut edits: Vec<Edit> = self.edits.iter().filter(within(region)).cloned().collect();
        for site in self.removed() {
            let (gone, _) = site.removal()?;
            edits.retain(|(span, _)| span.end <= gone.start || gone.end <= span.start);
            edits.push((gone, String::new()));
        }
        self.indent(&text, region, &mut edits);
        edits.sort();
        Some((apply(text.get(region.range())?, &shifted(edits, region.start)), returned))
    }

    /// Returns the statements of the body that are not copied. If the call is in a dataflow block, those that delimit
    /// the body's dataflow blocks are among them.
    fn removed(&self) -> Vec<Site<'_>> {
        let mut removed: Vec<Site<'_>> = self.body.skipped.clone();
        if self.call.site.is_in_dataflow(self.view) {
            let delimits = |site: &&Site<'_>| site.opens_dataflow() || site.is_bare_call("output");
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
            if dissolves && block.is_none() && site.opens_dataflow() {
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
    /// The number of bindings of the name.
    rebound: usize,
}

/// Collects the dims of an argument for the symbols of a parameter's type: 4 for `n`, from `(n, 8)` and `(4, 8)`.
fn unify(declared: &StructInfo, given: &StructInfo, dims: &mut NameMap<Dim>) {
    let shapes = match (declared, given) {
        (StructInfo::Tensor(declared), StructInfo::Tensor(given)) => (declared.shape.dims(), given.shape.dims()),
        (StructInfo::DTensor(declared), StructInfo::DTensor(given)) => {
            (declared.tensor.shape.dims(), given.tensor.shape.dims())
        }
        (StructInfo::Shape(declared), StructInfo::Shape(given)) => (declared.dims(), given.dims()),
        (StructInfo::Tuple(declared), StructInfo::Tuple(given)) => {
            declared.iter().zip(&**given).for_each(|(declared, given)| unify(declared, given, dims));
            return;
        }
        _ => return,
    };
    let (Some(declared), Some(given)) = shapes else { return };
    for (declared, given) in declared.iter().zip(given) {
        if let Some(symbol) = declared.as_symbol() {
            dims.entry(symbol).or_insert_with(|| given.clone());
        }
    }
}
