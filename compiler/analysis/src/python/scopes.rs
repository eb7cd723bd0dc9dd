//! Finds the constants that are visible to each item of a file, by Python's scoping rules.

use super::builtins::BUILTINS;
use super::evaluate::{Names, evaluate};
use super::value::{PyConstants, PyValue};
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_context::file_context::bound_by_import;
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segments, Statement, TokenKind};
use std::sync::Arc;

/// A part of a file outside its modules.
#[derive(Clone, Debug)]
pub enum Outer {
    /// Python code, imports and symbolic dims.
    Python(Segments),
    /// A module or function, which binds its name and sees constants.
    Item {
        /// The column of its header.
        indent: u32,
        /// The name it binds.
        name: Option<Name>,
    },
}

/// Returns the constants that each part of a file sees; `outer` has all parts in order.
///
/// A name is a constant if its scope binds it once, to a literal or to arithmetic on constants. Bindings in the
/// item's own scope must come before the item. Bindings in scopes outside an enclosing function may come later, since
/// the function runs after them.
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
    /// The column of its header; lines with a larger indentation are inside.
    indent: u32,
    names: NameMap<Bound>,
}

/// A name of a scope.
#[derive(Default)]
struct Bound {
    /// The number of its bindings.
    count: u32,
    /// The number of the last statement that binds it.
    order: u32,
    /// Its value, if it is a constant.
    value: Option<PyValue>,
}

/// A binding whose value may be a constant.
struct Candidate<'a> {
    scope: usize,
    name: Name,
    cursor: Cursor<'a>,
    value: &'a Expr,
    /// The index of the bound element and the number of elements, if the value is unpacked: `rows, columns = SHAPE`.
    element: Option<(usize, usize)>,
}

struct Reading<'a> {
    scopes: Vec<Scope>,
    /// The open scopes, outermost first.
    open: Vec<usize>,
    order: u32,
    candidates: Vec<Candidate<'a>>,
    /// Names that a statement may bind in another scope: `global`, `nonlocal`, `del`.
    anywhere: NameSet,
    /// The scope and statement number of each `from elsewhere import *`.
    stars: Vec<(usize, u32)>,
    /// Names whose lists may be changed: `sizes.append(4)`, `sizes[0] = 4`.
    changed: NameSet,
    /// The scope and statement number of each item; none for Python code.
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

    /// Closes the scopes that do not contain a line in this column.
    fn leave_to(&mut self, indent: u32) {
        while self.open.len() > 1 && self.scopes.get(self.scope()).is_some_and(|scope| scope.indent >= indent) {
            self.open.pop();
        }
    }

    fn enter(&mut self, kind: ScopeKind, indent: u32) {
        self.scopes.push(Scope { kind, parent: Some(self.scope()), indent, names: NameMap::default() });
        self.open.push(self.scopes.len() - 1);
    }

    /// Records a binding in the innermost open scope.
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
                // TVM's own packages define no constants of a user's program.
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

    /// Records bindings and mutations that only tokens show: `(name := …)`, and names whose methods or attributes are
    /// used.
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

    /// Binds a target to a value, or to one of its elements.
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

    /// Records the bindings of a statement without a syntax tree.
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
                // For patterns of `match` and targets of `async for`, all names count as bound.
                self.bind_all(names_in(cursor, statement));
            }
        }
    }

    /// Evaluates the constants, in the order of the text.
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
            // A list that may be changed is not a constant.
            let value = value.filter(|value| !matches!(value, PyValue::List(_)) || !self.changed.contains(&name));
            if let Some(bound) = self.scopes.get_mut(scope).and_then(|scope| scope.names.get_mut(&name)) {
                bound.value = value;
            }
        }
    }

    fn is_bound_once(&self, scope: usize, name: Name) -> bool {
        let Some(found) = self.scopes.get(scope) else { return false };
        let Some(bound) = found.names.get(&name) else { return false };
        // Functions do not see the names of an enclosing class.
        found.kind != ScopeKind::Class
            && bound.count == 1
            && !self.anywhere.contains(&name)
            && !self.stars.iter().any(|(at, order)| *at == scope && *order > bound.order)
    }

    /// Returns the binding of a name that code in `scope` sees.
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

    /// Returns the constants that statement `order` in `scope` sees.
    fn constants(&self, scope: usize, order: u32) -> PyConstants {
        let mut seen = NameSet::default();
        let mut values = Vec::new();
        // Whether the current scope is still running when the item is read, so that only earlier bindings count.
        // Scopes outside an enclosing function have finished when the function runs.
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

/// Returns the names among a statement's tokens.
fn names_in(cursor: Cursor<'_>, statement: &Statement) -> Vec<Name> {
    let is_name = |token: &u32| cursor.kind(*token).is_some_and(TokenKind::is_name);
    (0..statement.token_count).filter(is_name).map(|token| cursor.name(token)).collect()
}

/// The names that code in a scope sees.
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
