//! The functions of a document and the symbolic dims each of them has.

use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_base::name::{Name, NameSet, name};

use super::canonical::{dim_declarations, last_part, path, type_var};
use super::lines::{Line, Part};
use super::signature::{Signature, Surroundings, Symbol, symbols};
use crate::ast::{ExprKind, StatementKind};
use crate::dialect::{Dialect, DimStyle};

/// The file's `TypeVar`s.
pub(crate) struct TypeVars {
    /// In order.
    pub(crate) all: Vec<Name>,
    set: NameSet,
    /// Whether more of them may be written: not in a Python file, where they would stand outside the decorated regions.
    pub(crate) writable: bool,
}

impl TypeVars {
    /// Collects them. In the Python text round the code a line `n = TypeVar("n")` is one.
    pub(crate) fn of(parts: &[Part<'_>]) -> TypeVars {
        let mut found = TypeVars { all: Vec::new(), set: NameSet::default(), writable: true };
        for part in parts {
            match part {
                Part::Code(code) => {
                    code.lines
                        .iter()
                        .filter_map(|line| type_var(line.kind(), line.cursor()))
                        .for_each(|n| found.add(n));
                }
                Part::Verbatim(segments) => {
                    found.writable = false;
                    let lines = segments.iter().flat_map(|segment| segment.text().lines());
                    lines.filter_map(type_var_line).for_each(|declared| found.add(name(declared)));
                }
            }
        }
        found
    }

    fn add(&mut self, name: Name) {
        if self.set.insert(name) {
            self.all.push(name);
        }
    }

    /// How `dialect` declares `symbol` here.
    pub(crate) fn style(&self, symbol: &Symbol, dialect: Dialect) -> DimStyle {
        match dialect.dim_style() {
            _ if symbol.dtype != DType::INT64 => DimStyle::Body,
            DimStyle::TypeVar if !self.writable && !self.set.contains(&symbol.name) => DimStyle::Body,
            style => style,
        }
    }
}

/// The name in a line `n = TypeVar("n")`.
fn type_var_line(line: &str) -> Option<&str> {
    let (left, right) = line.split_once('=')?;
    let left = left.trim();
    let right = right.trim_start();
    let is_name = !left.is_empty() && left.chars().all(|c| c == '_' || c.is_alphanumeric());
    let constructor = right.split_once('(').map(|(callee, _)| last_part(callee.trim()));
    (is_name && constructor == Some("TypeVar")).then_some(left)
}

/// A function of some code.
pub(crate) struct Function {
    /// Whether it is a prim_func.
    pub(crate) prim: bool,
    /// The dims its signature declares.
    pub(crate) symbols: Vec<Symbol>,
    /// The type parameters it is written with.
    pub(crate) type_params: Vec<Name>,
    /// Dims of the functions it stands in.
    pub(crate) outer: NameSet,
    /// Every dim it may use: its own, those declared in its body, those from outside.
    pub(crate) dims: NameSet,
}

/// The functions of some code.
#[derive(Default)]
pub(crate) struct Scopes {
    /// By the line of the `def`.
    pub(crate) functions: FxHashMap<usize, Function>,
    /// The names of signatures that a line declares, by line.
    pub(crate) declared_by: FxHashMap<usize, Vec<Name>>,
}

impl Scopes {
    /// Reads the functions of `lines`.
    pub(crate) fn of(lines: &[Line<'_>], type_vars: &TypeVars) -> Scopes {
        let mut scopes = Scopes::default();
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let StatementKind::Def { .. } = line.kind() else { continue };
            while open.last().is_some_and(|(depth, _)| *depth >= line.depth) {
                open.pop();
            }
            let parent = open.last().and_then(|(_, parent)| scopes.functions.get(parent));
            let outer = parent.map(|parent| parent.dims.clone()).unwrap_or_default();
            scopes.add(lines, at, outer, type_vars);
            open.push((line.depth, at));
        }
        scopes
    }

    fn add(&mut self, lines: &[Line<'_>], at: usize, outer: NameSet, type_vars: &TypeVars) {
        let Some(line) = lines.get(at) else { return };
        let StatementKind::Def { type_params, params, ret, .. } = line.kind() else { return };
        let cursor = line.cursor();
        let type_params: Vec<Name> = type_params.iter().map(|token| name(cursor.text(*token))).collect();
        let declared = body_declarations(lines, at);
        let declarations: Vec<_> = declared.iter().map(|(_, name, dtype)| (*name, *dtype)).collect();
        let prim = is_prim(lines, at);
        let signature = Signature { params, ret: ret.as_ref(), cursor };
        let around = Surroundings { type_vars: &type_vars.set, outer: &outer, declarations: &declarations, prim };
        let symbols = symbols(signature, &type_params, &around);
        for symbol in symbols.iter().filter(|symbol| symbol.in_body) {
            if let Some((line, ..)) = declared.iter().find(|(_, name, _)| *name == symbol.name) {
                self.declared_by.entry(*line).or_default().push(symbol.name);
            }
        }
        let mut dims = outer.clone();
        dims.extend(symbols.iter().map(|symbol| symbol.name));
        dims.extend(declarations.iter().map(|(name, _)| *name));
        self.functions.insert(at, Function { prim, symbols, type_params, outer, dims });
    }
}

/// Whether the `def` at line `at` is decorated as a prim_func.
fn is_prim(lines: &[Line<'_>], at: usize) -> bool {
    let above = lines.get(..at).unwrap_or_default().iter().rev();
    let decorators = above.map_while(|line| match line.kind() {
        StatementKind::Decorator(decorator) => Some((decorator, line.cursor())),
        _ => None,
    });
    let mut names = decorators.map(|(decorator, cursor)| match &decorator.kind {
        ExprKind::Call { callee, .. } => path(callee.as_ref(), cursor),
        _ => path(decorator, cursor),
    });
    names.any(|decorator| decorator.is_some_and(|decorator| last_part(&decorator) == "prim_func"))
}

/// The dims that the body of the `def` at line `at` declares, nested functions left out, with their lines.
fn body_declarations(lines: &[Line<'_>], at: usize) -> Vec<(usize, Name, DType)> {
    let mut found = Vec::new();
    let Some(header) = lines.get(at) else { return found };
    let mut nested = None;
    for (at, line) in lines.iter().enumerate().skip(at + 1) {
        if line.depth <= header.depth {
            break;
        }
        if nested.is_some_and(|depth| line.depth > depth) {
            continue;
        }
        nested = matches!(line.kind(), StatementKind::Def { .. }).then_some(line.depth);
        let declared = dim_declarations(line.kind(), line.cursor());
        found.extend(declared.into_iter().map(|(name, dtype)| (at, name, dtype)));
    }
    found
}
