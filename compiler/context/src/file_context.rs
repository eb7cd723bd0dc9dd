//! The declarations at the module level of a file, as its functions see them: imports, symbolic dims, devices, captured
//! names.

use crate::macros::Macro;
use crate::metadata::Constants;
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_ops::Schema;
use rx_ops::user::Operators;
use rx_syntax::ast::{Expr, ExprKind, ImportedName, StatementKind};
use rx_syntax::{Cursor, Segment, Segments, TokenKind};
use std::sync::Arc;

/// The suffix of the name of a function that prepares the weights of another function.
pub const TRANSFORM_PARAMS: &str = "_transform_params";

/// The namespaces of TVMScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// `R`.
    Relax,
    /// `T`.
    Tir,
    /// `I`.
    Ir,
}

impl Namespace {
    /// Returns the usual name: `R`, `T` or `I`.
    pub fn name(self) -> &'static str {
        match self {
            Namespace::Relax => "R",
            Namespace::Tir => "T",
            Namespace::Ir => "I",
        }
    }
}

/// The declarations at module level. Contains no positions, and is compared by value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileContext {
    /// Symbolic dims: `n` of `n = TypeVar("n")`.
    pub symbols: NameSet,
    /// Names of modules: `Module`.
    pub modules: NameSet,
    /// The functions of the module, in order.
    pub items: Vec<Name>,
    /// Whether one of them prepares the weights of another, as `LiftTransformParams` makes them:
    /// `main_transform_params`.
    pub prepares_weights: bool,
    /// Other names bound at module level, including imports. Their values are Python values, which rx does not
    /// evaluate.
    pub captured: NameSet,
    /// The names imported from TVM's own packages, which TVM's parser evaluates in prim_funcs; a subset of `captured`.
    pub api: NameSet,
    /// Aliases of namespaces: `X` → `R` for `from tvm.script import relax as X`.
    pub aliases: NameMap<Name>,
    /// Those of `R`, `T` and `I` that are imported under these names.
    pub direct: NameSet,
    /// Those of `R`, `T` and `I` that are imported from packages other than TVM, and so are not TVMScript's namespaces.
    pub elsewhere: NameSet,
    /// Virtual devices declared by `I.module_global_infos`; `None` if the module declares none.
    pub vdevices: Option<Vec<DeclaredVDevice>>,
    /// The number of axes of each mesh that `I.module_global_infos` declares, in order; `None` for a mesh that cannot
    /// be read.
    pub meshes: Vec<Option<usize>>,
    /// The struct infos of the metadata section's constants, if there is a readable section.
    pub constants: Option<Arc<Constants>>,
    /// Macros that prim_funcs may call.
    pub macros: NameMap<Arc<Macro>>,
    /// Operators that the project declares; `None` if it declares none.
    pub operators: Option<Arc<Operators>>,
}

/// A declared device: `I.vdevice(target, index, scope)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredVDevice {
    /// The kind of the target: `llvm`, `cuda`.
    pub kind: Name,
    /// The index of the device.
    pub index: i64,
    /// The memory scope.
    pub scope: Name,
}

impl FileContext {
    /// Sets the functions of the module, in order.
    pub fn set_items(&mut self, items: Vec<Name>) {
        self.prepares_weights = items.iter().any(|item| item.ends_with(TRANSFORM_PARAMS));
        self.items = items;
    }

    /// Adds the declarations of one module-level segment.
    pub fn read(&mut self, segment: &Segment) {
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            match &statement.tree.kind {
                StatementKind::Class { name, .. } => {
                    self.modules.insert(cursor.name(*name));
                }
                StatementKind::Assign { targets, value } => {
                    for target in targets {
                        self.bind(cursor, target, value);
                    }
                }
                StatementKind::AnnAssign { target, value: Some(value), .. } => self.bind(cursor, target, value),
                StatementKind::Def { name, .. } => {
                    self.captured.insert(cursor.name(*name));
                }
                StatementKind::Import(names) => names.iter().for_each(|imported| self.import(cursor, None, imported)),
                StatementKind::FromImport { module, names } => {
                    let from = cursor.path(*module);
                    names.iter().for_each(|imported| self.import(cursor, Some(from), imported));
                    if from.split('.').next() == Some("tvm") {
                        self.api.extend(names.iter().map(|imported| name(bound_by_import(cursor, imported))));
                    }
                }
                StatementKind::Expr(expr) => self.global_infos(cursor, expr),
                _ => {}
            }
        }
    }

    fn bind(&mut self, cursor: Cursor<'_>, target: &Expr, value: &Expr) {
        match (&target.kind, &value.kind) {
            (ExprKind::Tuple(targets), ExprKind::Tuple(values)) if targets.len() == values.len() => {
                for (target, value) in targets.iter().zip(values) {
                    self.bind(cursor, target, value);
                }
            }
            (ExprKind::Name, ExprKind::Call { callee, .. }) if is_symbol_maker(cursor, callee) => {
                self.symbols.insert(cursor.name(target.tokens.start));
            }
            (ExprKind::Name, _) => {
                self.captured.insert(cursor.name(target.tokens.start));
            }
            _ => {}
        }
    }

    fn import(&mut self, cursor: Cursor<'_>, from: Option<&str>, imported: &ImportedName) {
        let path = cursor.path(imported.path);
        let last = path.rsplit('.').next().unwrap_or(path).trim();
        let bound = bound_by_import(cursor, imported);
        let is_script = rx_syntax::document::is_script_import(from, path);
        let canonical = match last {
            "relax" if is_script => "R",
            "tir" | "tirx" if is_script => "T",
            "ir" if is_script => "I",
            _ => "",
        };
        if matches!(bound, "R" | "T" | "I") {
            if is_script {
                self.direct.insert(name(bound));
                self.elsewhere.remove(&name(bound));
            } else if !self.direct.contains(&name(bound)) {
                self.elsewhere.insert(name(bound));
                self.captured.insert(name(bound));
            }
            return;
        }
        if !canonical.is_empty() {
            self.aliases.insert(name(bound), name(canonical));
        } else {
            self.captured.insert(name(bound));
        }
    }

    fn global_infos(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        let ExprKind::Call { callee, arguments } = &expr.kind else { return };
        if !cursor.path(callee.tokens).ends_with("module_global_infos") {
            return;
        }
        let Some(ExprKind::Dict(entries)) = arguments.first().map(|argument| &argument.value.kind) else { return };
        for (key, value) in entries {
            let (Some(key), ExprKind::List(infos)) = (key, &value.kind) else { continue };
            match cursor.string_value(key).as_deref() {
                Some("vdevice") => {
                    let declared = infos.iter().filter_map(|device| declared_vdevice(cursor, device)).collect();
                    self.vdevices = Some(declared);
                }
                Some("mesh") => self.meshes = infos.iter().map(declared_mesh).collect(),
                _ => {}
            }
        }
    }

    /// Returns the number of axes of the declared mesh that a type names: `mesh[0]`.
    pub fn mesh_ndim(&self, written: &str) -> Option<usize> {
        let index = written.strip_prefix("mesh[")?.strip_suffix(']')?.trim().parse::<usize>().ok()?;
        *self.meshes.get(index)?
    }

    /// Returns the operator `name` (without `R.`): one of Relax or a declared one.
    pub fn operator(&self, name: Name) -> Option<&'static Schema> {
        rx_ops::find(name).or_else(|| Some(&self.operators.as_ref()?.find(name)?.schema))
    }

    /// Returns the name that the file uses for the namespace `R`, `T` or `I`.
    pub fn spelled_namespace<'a>(&self, canonical: &'a str) -> &'a str {
        let aliases = self.aliases.iter().filter(|(_, of)| of.as_str() == canonical).map(|(alias, _)| alias.as_str());
        let first = aliases.min().filter(|_| !self.direct.contains(&name(canonical)));
        first.unwrap_or(canonical)
    }

    /// Converts a dotted name of TVMScript to `R.…`, `T.…` or `I.…`, whatever name the file uses for the namespace.
    pub fn canonical_path(&self, written: &str) -> Option<String> {
        let (head, rest) = written.split_once('.')?;
        Some(format!("{}.{}", self.namespace(head)?.name(), rest.trim()))
    }

    /// Returns the namespace that a name denotes.
    pub fn namespace(&self, of: &str) -> Option<Namespace> {
        let of = match of {
            "R" | "T" | "I" if self.elsewhere.contains(&name(of)) => return None,
            "R" | "T" | "I" => of,
            other => self.aliases.get(&name(other)).map_or(other, |alias| alias.as_str()),
        };
        match of {
            "R" => Some(Namespace::Relax),
            "T" => Some(Namespace::Tir),
            "I" => Some(Namespace::Ir),
            // The names that TVM's parser knows in a text without imports (TVM script/parser/core/entry.py).
            _ if self.captured.contains(&name(of)) => None,
            "relax" => Some(Namespace::Relax),
            "tir" | "tirx" => Some(Namespace::Tir),
            "ir" => Some(Namespace::Ir),
            _ => None,
        }
    }
}

/// Returns all names that the Python around a module or function binds anywhere: variables, parameters, loop variables,
/// imports. Which of them a function sees at run time depends on Python's control flow.
pub fn python_names(segments: &Segments) -> NameSet {
    let mut names = NameSet::default();
    for segment in segments {
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            bind_names(cursor, &statement.tree.kind, &mut names);
            // These bindings are not in the tree: patterns of `match`, `except … as name`, `async for`, and `(name :=
            // …)`.
            let is_python = matches!(statement.tree.kind, StatementKind::Python { .. });
            let is_bound = |token: &u32| {
                cursor.kind(*token).is_some_and(TokenKind::is_name)
                    && (is_python || cursor.kind(token + 1) == Some(TokenKind::Walrus))
            };
            names.extend((0..statement.token_count).filter(is_bound).map(|token| cursor.name(token)));
        }
    }
    names
}

/// Adds the names that one statement binds.
pub fn bind_names(cursor: Cursor<'_>, kind: &StatementKind, names: &mut NameSet) {
    match kind {
        StatementKind::Class { name, .. } => {
            names.insert(cursor.name(*name));
        }
        StatementKind::Def { name, params, .. } => {
            names.insert(cursor.name(*name));
            names.extend(params.iter().filter_map(|param| Some(cursor.parameter(param).name(param.tree.name?))));
        }
        StatementKind::Assign { targets, .. } => targets.iter().for_each(|target| bound(cursor, target, names)),
        StatementKind::AnnAssign { target, .. } | StatementKind::For { target, .. } => bound(cursor, target, names),
        StatementKind::With(items) => {
            items.iter().filter_map(|item| item.target.as_ref()).for_each(|target| bound(cursor, target, names));
        }
        StatementKind::Import(imported) | StatementKind::FromImport { names: imported, .. } => {
            names.extend(imported.iter().map(|imported| name(bound_by_import(cursor, imported))));
        }
        _ => {}
    }
}

/// Adds the names that an assignment target binds.
fn bound(cursor: Cursor<'_>, target: &Expr, into: &mut NameSet) {
    match &target.kind {
        ExprKind::Name => {
            into.insert(cursor.name(target.tokens.start));
        }
        ExprKind::Tuple(targets) | ExprKind::List(targets) => {
            targets.iter().for_each(|target| bound(cursor, target, into));
        }
        ExprKind::Parenthesized(inner) | ExprKind::Starred { value: inner, .. } => bound(cursor, inner, into),
        _ => {}
    }
}

/// Returns the name that an import binds: its alias, or the first part of its path.
pub fn bound_by_import<'t>(cursor: Cursor<'t>, imported: &ImportedName) -> &'t str {
    match imported.alias {
        Some(alias) => cursor.text(alias),
        None => cursor.path(imported.path).split('.').next().unwrap_or_default().trim(),
    }
}

/// Whether a call of `callee` creates a symbolic dim: `TypeVar("n")`, `T.int64()`, `T.Var("n", "int64")`, `tir.Var(…)`.
pub fn is_symbol_maker(cursor: Cursor<'_>, callee: &Expr) -> bool {
    match &callee.kind {
        ExprKind::Name => matches!(cursor.text(callee.tokens.start), "TypeVar" | "Var" | "SizeVar"),
        ExprKind::Attribute { name, .. } => {
            matches!(cursor.text(*name), "TypeVar" | "Var" | "SizeVar" | "var" | "size_var")
        }
        _ => false,
    }
}

fn declared_vdevice(cursor: Cursor<'_>, device: &Expr) -> Option<DeclaredVDevice> {
    let ExprKind::Call { arguments, .. } = &device.kind else { return None };
    let target = &arguments.first()?.value;
    let kind = match &target.kind {
        ExprKind::Dict(entries) => entries.iter().find_map(|(key, value)| {
            let key = cursor.string_value(key.as_ref()?)?;
            (key == "kind").then(|| cursor.string_value(value)).flatten()
        })?,
        _ => cursor.string_value(target)?,
    };
    let index = arguments.get(1).and_then(|argument| cursor.integer_value(&argument.value)).unwrap_or(0);
    let scope = arguments.get(2).and_then(|argument| cursor.string_value(&argument.value));
    Some(DeclaredVDevice {
        kind: name(kind.split_whitespace().next().unwrap_or("")),
        index: i64::try_from(index).unwrap_or(0),
        scope: name(scope.as_deref().unwrap_or("global")),
    })
}

/// Returns the number of axes of `R.device_mesh(shape, …)`.
fn declared_mesh(mesh: &Expr) -> Option<usize> {
    let ExprKind::Call { arguments, .. } = &mesh.kind else { return None };
    let shape = arguments.first().filter(|argument| argument.keyword.is_none())?;
    match &shape.value.kind {
        ExprKind::Tuple(axes) | ExprKind::List(axes) => Some(axes.len()),
        _ => None,
    }
}
