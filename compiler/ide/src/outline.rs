//! Document symbols: the modules, functions, dataflow blocks and bindings that a file declares, as a tree.

use rx_analysis::function::FunctionCheck;
use rx_base::Span;
use rx_db::FileView;
use rx_syntax::ast::{ExprKind, StatementKind};
use rx_syntax::document::{FunctionKind, Item, ItemKind};
use rx_syntax::{Segment, Statement};
use std::sync::Arc;

/// The maximal number of segments of a function whose bindings are listed. The list of a longer function would be of
/// little use, and the client would receive all of it after each edit.
const MAX_SEGMENTS: usize = 64;

/// The kind of an outline entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineKind {
    /// A module class.
    Module,
    /// A Relax function, or another function that is not a prim_func.
    Function,
    /// A prim_func.
    PrimFunc,
    /// A dataflow block, or a block of a prim_func.
    Block,
    /// A binding.
    Binding,
    /// A name bound at the top level of the module or file that is not a function.
    Global,
}

/// A named part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The name.
    pub name: String,
    /// The struct info, or the parameters of a function.
    pub detail: Option<String>,
    /// The kind.
    pub kind: OutlineKind,
    /// The whole part, in bytes of the file.
    pub span: Span,
    /// Its name, in bytes of the file.
    pub selection: Span,
    /// The parts inside it.
    pub children: Vec<Outline>,
}

/// Returns the outline of a file, in order.
pub fn outline(view: &FileView<'_>) -> Vec<Outline> {
    build(view, true)
}

/// Returns the modules of a file and their functions, in order.
pub fn functions(view: &FileView<'_>) -> Vec<Outline> {
    build(view, false)
}

fn build(view: &FileView<'_>, bindings: bool) -> Vec<Outline> {
    let mut top: Vec<Outline> = Vec::new();
    let mut module: Option<Option<u32>> = None;
    for (at, item) in view.document().items().iter().enumerate() {
        let reader = ItemReader { view, at, item };
        match item.kind {
            ItemKind::ModuleHeader => {
                top.extend(reader.definition(OutlineKind::Module));
                module = Some(item.module);
            }
            ItemKind::Function(kind) => {
                let is_prim = kind == FunctionKind::Prim;
                let Some(mut function) =
                    reader.definition(if is_prim { OutlineKind::PrimFunc } else { OutlineKind::Function })
                else {
                    continue;
                };
                if bindings && item.segments.len() <= MAX_SEGMENTS {
                    function.children = reader.body();
                }
                let inside = item.module.is_some() && module == Some(item.module);
                match top.last_mut().filter(|last| inside && last.kind == OutlineKind::Module) {
                    Some(class) => {
                        class.span = class.span.cover(function.span);
                        class.children.push(function);
                    }
                    None => top.push(function),
                }
            }
            ItemKind::Prelude | ItemKind::ModuleStatement if bindings => {
                let globals = reader.globals();
                let inside = item.kind == ItemKind::ModuleStatement && module == Some(item.module);
                match top.last_mut().filter(|last| inside && last.kind == OutlineKind::Module) {
                    Some(class) => {
                        for global in globals {
                            class.span = class.span.cover(global.span);
                            class.children.push(global);
                        }
                    }
                    None => top.extend(globals),
                }
            }
            _ => {}
        }
    }
    top
}

struct ItemReader<'a, 'v> {
    view: &'a FileView<'v>,
    at: usize,
    item: &'a Item,
}

impl ItemReader<'_, '_> {
    fn start(&self, segment: usize) -> u32 {
        u32::try_from(self.view.document().segment_start(self.at, segment)).unwrap_or(u32::MAX)
    }

    /// Returns the entry of the item's own function or class, without children.
    fn definition(&self, kind: OutlineKind) -> Option<Outline> {
        let head = self.item.segments.first()?;
        let first = head.tree().statements.first()?.span.start;
        let (name, detail) = head.tree().statements.iter().find_map(|statement| {
            let cursor = head.cursor(statement);
            let token = |token: &u32| cursor.span(rx_syntax::ast::TokenRange::one(*token));
            match &statement.tree.kind {
                StatementKind::Class { name, .. } => Some((token(name), None)),
                StatementKind::Def { name, params, ret, .. } => {
                    let list = params.iter().filter_map(|param| Some(cursor.parameter(param).text(param.tree.name?)));
                    let ret = ret.as_ref().map(|ret| one_line(cursor.source(ret.tokens)));
                    let ret = ret.map_or_else(String::new, |ret| format!(" -> {ret}"));
                    Some((token(name), Some(format!("({}){ret}", list.collect::<Vec<_>>().join(", ")))))
                }
                _ => None,
            }
        })?;
        let last = self.item.segments.len().checked_sub(1)?;
        let text = self.item.segments.get(last)?.text().trim_end();
        let end = self.start(last) + u32::try_from(text.len()).unwrap_or(0);
        let start = self.start(0) + first;
        let selection = name.shift(self.start(0));
        Some(Outline {
            name: head.text().get(name.range())?.to_owned(),
            detail,
            kind,
            span: Span::new(start, end.max(selection.end)),
            selection,
            children: Vec::new(),
        })
    }

    /// Returns the bindings of a function's body. The bindings of a block are children of the block.
    fn body(&self) -> Vec<Outline> {
        let check = self.view.check(self.at);
        let mut open: Vec<(u32, Outline)> = Vec::new();
        let mut done = Vec::new();
        for (number, segment) in self.item.segments.iter().enumerate().skip(1) {
            for (at, statement) in segment.tree().statements.iter().enumerate() {
                while !statement.inline
                    && let Some((_, block)) = open.pop_if(|(column, _)| statement.indent <= *column)
                {
                    add(&mut open, &mut done, block);
                }
                let span = statement.span.shift(self.start(number));
                if let Some(block) = self.block(number, segment, statement) {
                    open.push((statement.indent, block));
                    continue;
                }
                for (name, selection) in bound(segment, statement) {
                    let detail = check.as_ref().and_then(|check| struct_info(check, number, at, selection));
                    let binding = Outline {
                        name,
                        detail,
                        kind: OutlineKind::Binding,
                        span,
                        selection: selection.shift(self.start(number)),
                        children: Vec::new(),
                    };
                    add(&mut open, &mut done, binding);
                }
            }
        }
        while let Some((_, block)) = open.pop() {
            add(&mut open, &mut done, block);
        }
        done
    }

    /// Returns the entry of a dataflow block, a nested function, or a named block of a prim_func.
    fn block(&self, number: usize, segment: &Segment, statement: &Statement) -> Option<Outline> {
        let cursor = segment.cursor(statement);
        let (name, selection, kind) = match &statement.tree.kind {
            StatementKind::With(items) => {
                let context = &items.first()?.context;
                let ExprKind::Call { callee, arguments } = &context.kind else { return None };
                let label = arguments.first().and_then(|argument| cursor.string_value(&argument.value));
                let callee = cursor.path(callee.tokens);
                let callee = callee.rsplit('.').next().unwrap_or(callee).trim();
                let name = label.map_or_else(|| callee.to_owned(), |label| format!("{callee} {label}"));
                (name, cursor.span(context.tokens), OutlineKind::Block)
            }
            StatementKind::Def { name, .. } => {
                let token = rx_syntax::ast::TokenRange::one(*name);
                (cursor.text(*name).to_owned(), cursor.span(token), OutlineKind::Function)
            }
            _ => return None,
        };
        let (span, selection) = (statement.span.shift(self.start(number)), selection.shift(self.start(number)));
        let name = if name.is_empty() { "block".to_owned() } else { one_line(&name) };
        Some(Outline { name, detail: None, kind, span, selection, children: Vec::new() })
    }

    /// Returns the names that the statements of a module or file bind.
    fn globals(&self) -> Vec<Outline> {
        let mut found = Vec::new();
        for (number, segment) in self.item.segments.iter().enumerate() {
            for statement in &segment.tree().statements {
                let start = self.start(number);
                found.extend(bound(segment, statement).into_iter().map(|(name, selection)| Outline {
                    name,
                    detail: None,
                    kind: OutlineKind::Global,
                    span: statement.span.shift(start),
                    selection: selection.shift(start),
                    children: Vec::new(),
                }));
            }
        }
        found
    }
}

/// Adds an entry to the innermost open block and extends that block's span.
fn add(open: &mut [(u32, Outline)], done: &mut Vec<Outline>, part: Outline) {
    match open.last_mut() {
        Some((_, block)) => {
            block.span = block.span.cover(part.span);
            block.children.push(part);
        }
        None => done.push(part),
    }
}

/// Returns the names that an assignment binds, each with its span in bytes of the segment.
fn bound(segment: &Segment, statement: &Statement) -> Vec<(String, Span)> {
    let cursor = segment.cursor(statement);
    let mut left: Vec<&rx_syntax::ast::Expr> = match &statement.tree.kind {
        StatementKind::Assign { targets, .. } => targets.iter().rev().collect(),
        StatementKind::AnnAssign { target, .. } => vec![target],
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    while let Some(target) = left.pop() {
        match &target.kind {
            ExprKind::Name => {
                found.push((cursor.text(target.tokens.start).to_owned(), cursor.span(target.tokens)));
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => left.extend(targets.iter().rev()),
            ExprKind::Parenthesized(inner) => left.push(inner),
            _ => {}
        }
    }
    found
}

fn struct_info(check: &Arc<FunctionCheck>, segment: usize, statement: usize, name: Span) -> Option<String> {
    let rows = &check.segments.get(segment)?.rows;
    let from = rows.partition_point(|row| (row.statement as usize) < statement);
    let row = rows.iter().skip(from).find(|row| row.span == name)?;
    Some(row.ty.to_string())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
