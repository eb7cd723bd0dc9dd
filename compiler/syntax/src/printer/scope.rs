//! The functions of a document, and the symbolic dims of each.

use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_base::name::{Name, NameSet, name};

use super::canonical::{bare, dim_declarations, identifier, last_part, parameter_name, path, type_var};
use super::lines::{Comment, Line, Part};
use super::signature::{Signature, Surroundings, Symbol, symbols};
use crate::ast::{Expr, ExprKind, ImportedName, StatementKind};
use crate::dialect::{Dialect, DimStyle};
use crate::{Cursor, TokenKind};

/// The modules of the imports that the printer itself writes at the head of a text.
const HEAD_MODULES: [&str; 3] = ["__future__", "typing", "tvm.tirx.layout"];

/// The file's `TypeVar`s, and whether `T` is defined in it.
pub(crate) struct TypeVars {
    names: NameSet,
    /// Whether `TypeVar` lines may be added. `false` in a Python file, where they would be outside the decorated
    /// regions.
    pub(crate) writable: bool,
    /// Whether `n = T.int64()` may be printed: `T` is imported or used, or the text imports nothing, as a fragment
    /// does. If the text is only formatted, imports in comments count too, because TVM prints imports as comments.
    pub(crate) has_tir: bool,
}

impl TypeVars {
    /// Collects the `TypeVar`s of a document. In the Python text around the code, a line `n = TypeVar("n")` counts.
    /// With `converts`, the text is printed in another dialect, whose spelling may use `T` where the text does not.
    pub(crate) fn of(parts: &[Part<'_>], converts: bool) -> TypeVars {
        let mut found = TypeVars { names: NameSet::default(), writable: true, has_tir: false };
        let mut imports = false;
        for part in parts {
            match part {
                Part::Code(code) => {
                    for line in &code.lines {
                        let bound = top_level_names(line.kind(), line.cursor());
                        imports |= imports_names(line.kind(), line.cursor());
                        found.has_tir |= bound.contains(&"T");
                        for comment in line.comments.iter().filter(|_| !converts).filter_map(commented_import) {
                            imports = true;
                            found.has_tir |= names_tir(comment);
                        }
                    }
                    found.has_tir = found.has_tir || code.lines.iter().any(uses_tir);
                    found.names.extend(code.lines.iter().filter_map(|line| type_var(line.kind(), line.cursor())));
                }
                Part::Verbatim(segments) => {
                    found.writable = false;
                    let lines = || segments.iter().flat_map(|segment| segment.text().lines());
                    found.names.extend(lines().filter_map(type_var_line).map(name));
                    imports |= lines().any(is_import);
                    found.has_tir |= lines().any(names_tir);
                }
            }
        }
        found.has_tir |= !imports;
        found
    }

    /// Returns the way in which `dialect` declares `symbol` in this file.
    fn style(&self, symbol: &Symbol, dialect: Dialect) -> DimStyle {
        match dialect.dim_style() {
            DimStyle::TypeParam if symbol.dtype == DType::INT64 => DimStyle::TypeParam,
            // A `TypeVar` has no effect on a function whose annotations do not use it.
            _ if symbol.dtype != DType::INT64 || !symbol.in_signature => DimStyle::Body,
            DimStyle::TypeVar if !self.writable && !self.names.contains(&symbol.name) => DimStyle::Body,
            style => style,
        }
    }
}

/// Whether a statement imports names for the program. The imports that the printer writes itself (`annotations`,
/// `TypeVar`, `Axis`) do not count: they do not show where `R` and `T` are defined.
fn imports_names(kind: &StatementKind, cursor: Cursor<'_>) -> bool {
    match kind {
        StatementKind::Import(_) => true,
        StatementKind::FromImport { module, .. } => !HEAD_MODULES.contains(&cursor.path(*module)),
        _ => false,
    }
}

/// Whether a line of text is such an import.
fn is_import(line: &str) -> bool {
    let starts = line.starts_with("import ") || line.starts_with("from ");
    starts && !HEAD_MODULES.iter().any(|module| line.contains(module))
}

/// Returns the import in a comment, as TVM prints it: `# from tvm.script import relax as R`.
fn commented_import<'d>(comment: &Comment<'d>) -> Option<&'d str> {
    let text = comment.text.trim_start_matches('#').trim_start();
    (is_import(text) && text.contains("tvm")).then_some(text)
}

/// Whether a statement uses a member of `T`.
fn uses_tir(line: &Line<'_>) -> bool {
    let cursor = line.cursor();
    let tokens = 0..line.statement.token_count;
    tokens.into_iter().any(|token| {
        cursor.kind(token + 1) == Some(TokenKind::Dot) && cursor.text(token) == "T" && names_value(cursor, token)
    })
}

/// Returns the names that an import or an assignment at module level binds.
fn top_level_names<'t>(kind: &StatementKind, cursor: Cursor<'t>) -> Vec<&'t str> {
    match kind {
        StatementKind::Import(names) | StatementKind::FromImport { names, .. } => {
            let bound = |imported: &ImportedName| match imported.alias {
                Some(alias) => cursor.text(alias),
                None => cursor.source(imported.path).split('.').next().unwrap_or_default().trim(),
            };
            names.iter().map(bound).collect()
        }
        StatementKind::Assign { targets, .. } => {
            targets.iter().filter_map(|target| identifier(target, cursor)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a line of Python binds `T`, as `from tvm.script import tir as T`, `import T` and `T = …` do, or continues
/// such an import.
fn names_tir(line: &str) -> bool {
    let words: Vec<&str> =
        line.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let assigned = line.strip_prefix('T').is_some_and(|rest| rest.trim_start().starts_with('='));
    assigned || words.windows(2).any(|pair| matches!(pair, ["as" | "import", "T"]))
}

/// Returns the name in a line `n = TypeVar("n")`.
fn type_var_line(line: &str) -> Option<&str> {
    let (left, right) = line.split_once('=')?;
    let left = left.trim();
    let right = right.trim_start();
    let is_name = !left.is_empty() && left.chars().all(|c| c == '_' || c.is_alphanumeric());
    let constructor = right.split_once('(').map(|(callee, _)| last_part(callee.trim()));
    (is_name && constructor == Some("TypeVar")).then_some(left)
}

/// A function.
pub(crate) struct Function {
    /// Whether it is a prim_func.
    pub(crate) prim: bool,
    /// The dims that its signature declares, and how each is to be declared.
    pub(crate) symbols: Vec<(Symbol, DimStyle)>,
    /// The styles in `symbols`, by name.
    styles: FxHashMap<Name, DimStyle>,
    /// The type parameters in the text.
    pub(crate) type_params: Vec<Name>,
    /// The dims declared in its body.
    declared: NameSet,
    /// The index of the enclosing function.
    parent: Option<usize>,
}

impl Function {
    /// Returns how a dim of its signature is to be declared; `None` for other names.
    pub(crate) fn style(&self, name: &Name) -> Option<DimStyle> {
        self.styles.get(name).copied()
    }
}

/// The functions of a run of code.
#[derive(Default)]
pub(crate) struct Scopes {
    functions: Vec<Function>,
    /// The function's index, by the line of its `def`.
    by_line: FxHashMap<usize, usize>,
    /// For each line: the dims of signatures that it declares.
    pub(crate) declared_by: FxHashMap<usize, NameSet>,
}

/// A function, with access to the functions that enclose it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s> {
    scopes: &'s Scopes,
    at: usize,
}

impl<'s> Scope<'s> {
    /// The function itself.
    pub(crate) fn function(self) -> Option<&'s Function> {
        self.scopes.functions.get(self.at)
    }

    fn outward(self) -> impl Iterator<Item = &'s Function> {
        let functions = &self.scopes.functions;
        std::iter::successors(functions.get(self.at), move |function| functions.get(function.parent?))
    }

    /// Whether a name is a dim in this function: one of its signature or body, or of an enclosing function.
    pub(crate) fn is_dim(self, name: &Name) -> bool {
        self.outward().any(|function| function.styles.contains_key(name) || function.declared.contains(name))
    }

    /// Whether a name is a dim of an enclosing function.
    pub(crate) fn is_outer_dim(self, name: &Name) -> bool {
        self.outward().skip(1).any(|function| function.styles.contains_key(name) || function.declared.contains(name))
    }
}

impl Scopes {
    /// Collects the functions of `lines`. Their dims are to be declared as in `dialect`.
    pub(crate) fn of(lines: &[Line<'_>], type_vars: &TypeVars, dialect: Dialect) -> Scopes {
        let mut scopes = Scopes::default();
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            while open.last().is_some_and(|(depth, _)| *depth >= line.depth) {
                open.pop();
            }
            let StatementKind::Def { .. } = line.kind() else { continue };
            let parent = open.last().map(|(_, parent)| *parent);
            open.push((line.depth, scopes.functions.len()));
            scopes.add(lines, at, parent, type_vars, dialect);
        }
        scopes.declare_in_bodies(lines, type_vars);
        scopes
    }

    /// Changes dims to declarations in the function's body if their new `TypeVar` would also define a name that another
    /// function uses without a definition. That function's error would otherwise disappear.
    fn declare_in_bodies(&mut self, lines: &[Line<'_>], type_vars: &TypeVars) {
        let is_new = |(symbol, style): &(Symbol, DimStyle)| {
            *style == DimStyle::TypeVar && !type_vars.names.contains(&symbol.name)
        };
        let mut new: NameSet = self
            .functions
            .iter()
            .flat_map(|function| &function.symbols)
            .filter(|dim| is_new(dim))
            .map(|(symbol, _)| symbol.name)
            .collect();
        if !new.is_empty() {
            let undefined = self.undefined(lines, &new);
            new.retain(|name| undefined.contains(name));
        }
        if new.is_empty() {
            return;
        }
        for function in &mut self.functions {
            for (symbol, style) in function.symbols.iter_mut().filter(|(symbol, _)| new.contains(&symbol.name)) {
                *style = DimStyle::Body;
                function.styles.insert(symbol.name, DimStyle::Body);
            }
        }
    }

    /// Returns those of `names` that some function uses without binding or declaring them.
    pub(crate) fn undefined(&self, lines: &[Line<'_>], names: &NameSet) -> NameSet {
        let mut undefined = NameSet::default();
        for (&header, &at) in &self.by_line {
            let scope = Scope { scopes: self, at };
            let Some(depth) = lines.get(header).map(|line| line.depth) else { continue };
            let body = lines.iter().skip(header + 1).take_while(|line| line.depth > depth);
            let own: Vec<&Line<'_>> = lines.get(header).into_iter().chain(body).collect();
            let bound: NameSet = own.iter().flat_map(|line| bound_names(line.kind(), line.cursor())).collect();
            for line in own {
                let cursor = line.cursor();
                let used = (0..line.statement.token_count).filter(|token| names_value(cursor, *token));
                let used = used.map(|token| cursor.name(token));
                undefined
                    .extend(used.filter(|name| names.contains(name) && !bound.contains(name) && !scope.is_dim(name)));
            }
        }
        undefined
    }

    /// Returns the function whose `def` is at line `at`.
    pub(crate) fn at(&self, at: usize) -> Option<Scope<'_>> {
        self.by_line.get(&at).map(|at| Scope { scopes: self, at: *at })
    }

    /// The functions, in order.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    fn add(&mut self, lines: &[Line<'_>], at: usize, parent: Option<usize>, type_vars: &TypeVars, dialect: Dialect) {
        let Some(line) = lines.get(at) else { return };
        let StatementKind::Def { type_params, params, ret, .. } = line.kind() else { return };
        let cursor = line.cursor();
        let type_params: Vec<Name> = type_params.iter().map(|token| name(cursor.text(*token))).collect();
        let declared = body_declarations(lines, at);
        let prim = is_prim(lines, at);
        let signature = Signature { params, ret: ret.as_ref(), cursor };
        let outer = parent.map(|at| Scope { scopes: self, at });
        let around = Surroundings {
            type_vars: &type_vars.names,
            is_outer: &|name| outer.is_some_and(|outer| outer.is_dim(name)),
            declarations: &declared,
            prim,
        };
        // A `def` without a decorator is not TVMScript, and its text does not change.
        let symbols = match decorators(lines, at).next() {
            Some(_) => symbols(signature, &type_params, &around),
            None => Vec::new(),
        };
        for symbol in symbols.iter().filter(|symbol| symbol.in_body) {
            if let Some((line, _)) = declared.get(&symbol.name) {
                self.declared_by.entry(*line).or_default().insert(symbol.name);
            }
        }
        let symbols: Vec<_> = symbols.into_iter().map(|s| (s, type_vars.style(&s, dialect))).collect();
        let styles = symbols.iter().map(|(symbol, style)| (symbol.name, *style)).collect();
        let declared = declared.into_keys().collect();
        self.by_line.insert(at, self.functions.len());
        self.functions.push(Function { prim, symbols, styles, type_params, declared, parent });
    }
}

/// Returns the decorators of the `def` at line `at`, last first.
fn decorators<'l, 'd>(lines: &'l [Line<'d>], at: usize) -> impl Iterator<Item = (&'d Expr, Cursor<'d>)> + use<'l, 'd> {
    let above = lines.get(..at).unwrap_or_default().iter().rev();
    above.map_while(|line| match line.kind() {
        StatementKind::Decorator(decorator) => Some((decorator, line.cursor())),
        _ => None,
    })
}

/// Whether the `def` at line `at` is decorated as a prim_func.
fn is_prim(lines: &[Line<'_>], at: usize) -> bool {
    let mut names = decorators(lines, at).map(|(decorator, cursor)| match &decorator.kind {
        ExprKind::Call { callee, .. } => path(callee.as_ref(), cursor),
        _ => path(decorator, cursor),
    });
    names.any(|decorator| decorator.is_some_and(|decorator| last_part(&decorator) == "prim_func"))
}

/// Whether a token is the name of a value. The attribute in `x.k` and the keyword in `k=1` are not.
fn names_value(cursor: Cursor<'_>, token: u32) -> bool {
    let is = |at: u32, kind| cursor.kind(at) == Some(kind);
    cursor.kind(token).is_some_and(TokenKind::is_name)
        && !token.checked_sub(1).is_some_and(|before| is(before, TokenKind::Dot))
        && !is(token + 1, TokenKind::Equal)
}

/// Returns the names that a statement binds.
fn bound_names(kind: &StatementKind, cursor: Cursor<'_>) -> Vec<Name> {
    let mut targets: Vec<&Expr> = match kind {
        StatementKind::Def { params, .. } => {
            return params.iter().filter_map(|param| parameter_name(&param.tree, cursor.parameter(param))).collect();
        }
        StatementKind::Assign { targets, .. } => targets.iter().collect(),
        StatementKind::AnnAssign { target, .. } | StatementKind::For { target, .. } => vec![target],
        StatementKind::With(items) => items.iter().filter_map(|item| item.target.as_ref()).collect(),
        _ => return Vec::new(),
    };
    let mut bound = Vec::new();
    while let Some(target) = targets.pop() {
        match &bare(target).kind {
            ExprKind::Tuple(inner) | ExprKind::List(inner) => targets.extend(inner),
            ExprKind::Starred { value, .. } => targets.push(value),
            _ => bound.extend(identifier(target, cursor).map(name)),
        }
    }
    bound
}

/// Returns the dims that the body of the `def` at line `at` declares, without nested functions: the first line that
/// declares each, and its dtype.
fn body_declarations(lines: &[Line<'_>], at: usize) -> FxHashMap<Name, (usize, DType)> {
    let mut found = FxHashMap::default();
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
        for (name, dtype) in dim_declarations(line.kind(), line.cursor()) {
            found.entry(name).or_insert((at, dtype));
        }
    }
    found
}
