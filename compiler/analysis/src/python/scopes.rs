//! Which names are constants where an item stands, by Python's scopes.

use super::builtins::BUILTINS;
use super::evaluate::{Names, evaluate};
use super::value::{PyConstants, PyValue};
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_context::file_context::bound_by_import;
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment, Statement, TokenKind};
use std::sync::Arc;

/// A part of a file outside its modules.
#[derive(Clone, Debug)]
pub enum Outer {
    /// Python, imports and symbolic dims.
    Python(Arc<[Arc<Segment>]>),
    /// A module or function, which binds its name and sees constants.
    Item {
        /// The column of its header.
        indent: u32,
        /// What it binds.
        name: Option<Name>,
    },
}

/// The constants that each part of a file sees, given all in order. A name is a constant where its scope binds it once, to
/// a literal or to arithmetic of constants. A function's statements run later than those around it: only bindings in
/// the item's own scope must come before it.
pub fn visible(outer: &[Outer]) -> Vec<Arc<PyConstants>> {
    let mut reading = Reading::new();
    for part in outer {
        match part {
            Outer::Python(segments) => {
                reading.places.push(None);
                for segment in segments.iter() {
                    for statement in &segment.tree().statements {
                        reading.statement(segment.cursor(statement), statement);
                    }
                }
            }
            Outer::Item { indent, name } => {
                reading.leave_to(*indent);
                reading.order += 1;
                reading.places.push(Some((reading.scope(), reading.order)));
                reading.bind_all(name.iter().copied());
            }
        }
    }
    reading.evaluate();
    let mut last: Arc<PyConstants> = Arc::default();
    let places = std::mem::take(&mut reading.places);
    let constants = places.into_iter().map(|place| {
        let Some((scope, order)) = place else { return Arc::default() };
        let constants = reading.constants(scope, order);
        if constants != *last {
            last = Arc::new(constants);
        }
        last.clone()
    });
    constants.collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    File,
    Class,
    Function,
}

/// The names that a file, class or function binds.
struct Scope {
    kind: ScopeKind,
    parent: Option<usize>,
    /// The column of its header; what stands farther right is inside.
    indent: u32,
    names: NameMap<Bound>,
}

/// A name of a scope.
#[derive(Default)]
struct Bound {
    /// How often it is bound.
    count: u32,
    /// The number of the statement that binds it last.
    order: u32,
    /// Its value, where it is a constant.
    value: Option<PyValue>,
}

/// A binding whose value may be a literal.
struct Candidate<'a> {
    scope: usize,
    name: Name,
    cursor: Cursor<'a>,
    value: &'a Expr,
    /// Which of how many elements of the value it is: `rows, columns = SHAPE`.
    element: Option<(usize, usize)>,
}

struct Reading<'a> {
    scopes: Vec<Scope>,
    /// The scopes that are open, the file's first.
    open: Vec<usize>,
    order: u32,
    candidates: Vec<Candidate<'a>>,
    /// Names that a statement may bind in another scope: `global`, `nonlocal`, `del`.
    anywhere: NameSet,
    /// `from elsewhere import *`: the scope, and when.
    stars: Vec<(usize, u32)>,
    /// Names whose lists may be changed: `sizes.append(4)`, `sizes[0] = 4`.
    changed: NameSet,
    /// Scope and time of each part; none of Python.
    places: Vec<Option<(usize, u32)>>,
}

impl<'a> Reading<'a> {
    fn new() -> Reading<'a> {
        let file = Scope { kind: ScopeKind::File, parent: None, indent: 0, names: NameMap::default() };
        Reading {
            scopes: vec![file],
            open: vec![0],
            order: 0,
            candidates: Vec::new(),
            anywhere: NameSet::default(),
            stars: Vec::new(),
            changed: NameSet::default(),
            places: Vec::new(),
        }
    }

    fn scope(&self) -> usize {
        self.open.last().copied().unwrap_or(0)
    }

    /// Ends the scopes that a line in this column is not inside of.
    fn leave_to(&mut self, indent: u32) {
        while self.open.len() > 1 && self.scopes.get(self.scope()).is_some_and(|scope| scope.indent >= indent) {
            self.open.pop();
        }
    }

    fn enter(&mut self, kind: ScopeKind, indent: u32) {
        self.scopes.push(Scope { kind, parent: Some(self.scope()), indent, names: NameMap::default() });
        self.open.push(self.scopes.len() - 1);
    }

    /// Notes a binding in the open scope.
    fn bind(&mut self, bound: Name) {
        let order = self.order;
        let scope = self.scope();
        if let Some(scope) = self.scopes.get_mut(scope) {
            let bound = scope.names.entry(bound).or_default();
            bound.count = bound.count.saturating_add(1);
            bound.order = order;
        }
    }

    fn bind_all(&mut self, names: impl IntoIterator<Item = Name>) {
        names.into_iter().for_each(|name| self.bind(name));
    }

    fn statement(&mut self, cursor: Cursor<'a>, statement: &'a Statement) {
        if !statement.inline {
            self.leave_to(statement.indent);
        }
        self.order += 1;
        self.marks(cursor, statement);
        if statement.tree.error.is_some() {
            return self.bind_all(names_in(cursor, statement));
        }
        match &statement.tree.kind {
            StatementKind::Class { name, .. } => {
                self.bind(cursor.name(*name));
                self.enter(ScopeKind::Class, statement.indent);
            }
            StatementKind::Def { name, params, .. } => {
                self.bind(cursor.name(*name));
                self.enter(ScopeKind::Function, statement.indent);
                let params = params.iter().filter_map(|param| Some(cursor.parameter(param).name(param.tree.name?)));
                self.bind_all(params.collect::<Vec<_>>());
            }
            StatementKind::Assign { targets, value } => {
                for target in targets {
                    self.assign(cursor, target, Some((value, None)));
                }
            }
            StatementKind::AnnAssign { target, value: Some(value), .. } => {
                self.assign(cursor, target, Some((value, None)));
            }
            StatementKind::AugAssign { target, .. } | StatementKind::For { target, .. } => {
                self.assign(cursor, target, None);
            }
            StatementKind::With(items) => {
                for target in items.iter().filter_map(|item| item.target.as_ref()) {
                    self.assign(cursor, target, None);
                }
            }
            StatementKind::Import(imported) => {
                self.bind_all(imported.iter().map(|imported| name(bound_by_import(cursor, imported))));
            }
            StatementKind::FromImport { module, names } => {
                // TVM's own packages bind no constants of a user's.
                if names.is_empty() && cursor.source(*module).split('.').next() != Some("tvm") {
                    self.stars.push((self.scope(), self.order));
                }
                self.bind_all(names.iter().map(|imported| name(bound_by_import(cursor, imported))));
            }
            StatementKind::Python { .. } => self.python(cursor, statement),
            StatementKind::Error => self.bind_all(names_in(cursor, statement)),
            _ => {}
        }
    }

    /// Notes what tokens show that no tree does: `(name := …)`, and names that a list's methods are called of.
    fn marks(&mut self, cursor: Cursor<'a>, statement: &'a Statement) {
        for token in 0..statement.token_count.saturating_sub(1) {
            match cursor.kind(token + 1) {
                Some(TokenKind::Walrus) => self.bind(cursor.name(token)),
                Some(TokenKind::Dot) if cursor.kind(token).is_some_and(TokenKind::is_name) => {
                    self.changed.insert(cursor.name(token));
                }
                _ => {}
            }
        }
    }

    /// Binds a target, to a value and perhaps to one of its elements.
    fn assign(&mut self, cursor: Cursor<'a>, target: &'a Expr, value: Option<(&'a Expr, Option<(usize, usize)>)>) {
        match &target.kind {
            ExprKind::Name => {
                let bound = cursor.name(target.tokens.start);
                self.bind(bound);
                if let Some((value, element)) = value {
                    self.candidates.push(Candidate { scope: self.scope(), name: bound, cursor, value, element });
                }
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let plain = !targets.iter().any(|target| matches!(target.kind, ExprKind::Starred { .. }));
                for (at, target) in targets.iter().enumerate() {
                    let part = match value {
                        Some((value, None)) if plain => match &value.kind {
                            ExprKind::Tuple(values) if values.len() == targets.len() => {
                                values.get(at).map(|value| (value, None))
                            }
                            _ => Some((value, Some((at, targets.len())))),
                        },
                        _ => None,
                    };
                    self.assign(cursor, target, part);
                }
            }
            ExprKind::Parenthesized(inner) => self.assign(cursor, inner, value),
            ExprKind::Starred { value: inner, .. } => self.assign(cursor, inner, None),
            ExprKind::Subscript { value: of, .. } => {
                if let ExprKind::Name = of.kind {
                    self.changed.insert(cursor.name(of.tokens.start));
                }
            }
            _ => {}
        }
    }

    /// A statement that no tree is kept of.
    fn python(&mut self, cursor: Cursor<'a>, statement: &'a Statement) {
        match cursor.kind(0) {
            Some(TokenKind::Global | TokenKind::Nonlocal | TokenKind::Del) => {
                self.anywhere.extend(names_in(cursor, statement));
            }
            Some(TokenKind::Try | TokenKind::Finally | TokenKind::Raise | TokenKind::Yield | TokenKind::Await) => {}
            Some(TokenKind::Except) => {
                let after_as = (1..statement.token_count).filter(|token| cursor.kind(token - 1) == Some(TokenKind::As));
                let bound: Vec<Name> = after_as.map(|token| cursor.name(token)).collect();
                self.bind_all(bound);
            }
            Some(TokenKind::Async) if cursor.kind(1) == Some(TokenKind::Def) => {
                self.bind(cursor.name(2));
                self.enter(ScopeKind::Function, statement.indent);
                self.bind_all(names_in(cursor, statement));
            }
            _ => {
                // Patterns of `match`, targets of `async for`: which names are bound is not looked into.
                self.bind_all(names_in(cursor, statement));
            }
        }
    }

    /// Gives the constants their values, in the order of the text.
    fn evaluate(&mut self) {
        for Candidate { scope, name, cursor, value, element } in std::mem::take(&mut self.candidates) {
            if !self.is_bound_once(scope, name) {
                continue;
            }
            let names = Inside { reading: self, scope };
            let Some(value) = evaluate(cursor, value, &names) else { continue };
            let value = match element {
                None => Some(value),
                Some((at, count)) => {
                    value.elements().filter(|all| all.len() == count).and_then(|all| all.get(at)).cloned()
                }
            };
            // A list that may be changed is none that is known.
            let value = value.filter(|value| !matches!(value, PyValue::List(_)) || !self.changed.contains(&name));
            if let Some(bound) = self.scopes.get_mut(scope).and_then(|scope| scope.names.get_mut(&name)) {
                bound.value = value;
            }
        }
    }

    fn is_bound_once(&self, scope: usize, name: Name) -> bool {
        let Some(found) = self.scopes.get(scope) else { return false };
        let Some(bound) = found.names.get(&name) else { return false };
        // Functions do not see the names of a class around them.
        found.kind != ScopeKind::Class
            && bound.count == 1
            && !self.anywhere.contains(&name)
            && !self.stars.iter().any(|(at, order)| *at == scope && *order > bound.order)
    }

    /// The scope and what stands in it under a name, as code in `scope` sees it.
    fn resolve(&self, scope: usize, name: Name) -> Option<&Bound> {
        let mut at = Some(scope);
        while let Some(found) = at.and_then(|at| self.scopes.get(at)) {
            if let Some(bound) = found.names.get(&name)
                && (at == Some(scope) || found.kind != ScopeKind::Class)
            {
                return Some(bound);
            }
            at = found.parent;
        }
        None
    }

    /// What an item sees that stands in `scope`, as statement `order`.
    fn constants(&self, scope: usize, order: u32) -> PyConstants {
        let mut seen = NameSet::default();
        let mut values = Vec::new();
        // Whether the statements of the scope that is looked at run as the item is read.
        let mut running = true;
        let mut at = Some(scope);
        while let Some(found) = at.and_then(|at| self.scopes.get(at)) {
            for (name, bound) in &found.names {
                if seen.insert(*name)
                    && let Some(value) = &bound.value
                    && (!running || bound.order < order)
                {
                    values.push((*name, value.clone()));
                }
            }
            running &= found.kind != ScopeKind::Function;
            at = found.parent;
        }
        let hidden = BUILTINS.iter().map(|builtin| name(builtin)).filter(|builtin| seen.contains(builtin)).collect();
        PyConstants::new(values, hidden)
    }
}

/// The names of a statement's tokens.
fn names_in(cursor: Cursor<'_>, statement: &Statement) -> Vec<Name> {
    let is_name = |token: &u32| cursor.kind(*token).is_some_and(TokenKind::is_name);
    (0..statement.token_count).filter(is_name).map(|token| cursor.name(token)).collect()
}

/// What code in a scope sees.
struct Inside<'r, 'a> {
    reading: &'r Reading<'a>,
    scope: usize,
}

impl Names for Inside<'_, '_> {
    fn value(&self, of: &str) -> Option<PyValue> {
        self.reading.resolve(self.scope, name(of))?.value.clone()
    }

    fn is_builtin(&self, of: &str) -> bool {
        self.reading.resolve(self.scope, name(of)).is_none()
    }
}
