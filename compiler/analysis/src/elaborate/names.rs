//! Name resolution: definitions of this segment, then of earlier segments, then of the file.

use super::checker::Checker;
use super::result::{Export, Role, Unresolved};
use super::scope::Scope;
use crate::entry::{Entry, FUNCTION_CONTEXT, FunctionContext, Place, mistake};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Code, DType, Diagnostic, Name, Span};
use rx_context::mistakes::{captured_diagnostic, suggest_in_place};
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Expr, ExprKind};
use std::sync::Arc;

impl Checker<'_> {
    /// Opens a scope; its definitions end with it.
    pub(super) fn push_scope(&mut self, context: Option<Arc<FunctionContext>>) {
        self.scopes.push(Scope { context, ..Scope::default() });
    }

    /// Closes the innermost scope.
    pub(super) fn pop_scope(&mut self) {
        if self.scopes.len() > 1 {
            self.scopes.pop();
        }
    }

    /// Defines a name in the innermost scope; in the outermost scope it is also exported.
    pub(super) fn define(&mut self, name: Name, entry: Entry, span: Span) {
        self.define_at(self.scopes.len().saturating_sub(1), name, entry, Some(span));
    }

    /// Reserves capacity for a segment of this many statements: most bind one name and look up one or two.
    pub(super) fn reserve(&mut self, statements: usize) {
        self.reserve_definitions(statements);
        self.rows.reserve(statements);
        self.asked.reserve(2 * statements);
    }

    /// Reserves capacity for definitions in the innermost scope.
    pub(super) fn reserve_definitions(&mut self, count: usize) {
        if self.scopes.len() == 1 {
            self.exports.reserve(count);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.reserve(count);
        }
    }

    /// Redefines a name in the scope that defines it, at `span`: for a symbol that has become bound, or a name that
    /// has been reported.
    pub(super) fn redefine_everywhere(&mut self, name: Name, entry: Entry, span: Span) {
        self.define_at(self.depth_of(name), name, entry, Some(span));
    }

    /// Like [`Self::redefine_everywhere`], but keeps the place of the definition. The place is the same whether or
    /// not a segment ends between the two definitions.
    pub(super) fn redefine_in_place(&mut self, name: Name, entry: Entry) {
        let span = match self.definition_of(name) {
            Place::Here(span) => Some(span),
            _ => None,
        };
        self.define_at(self.depth_of(name), name, entry, span);
    }

    /// Returns the index of the innermost scope that defines a name, or that of the outermost scope if none does.
    fn depth_of(&self, name: Name) -> usize {
        self.scopes.iter().rposition(|scope| scope.names.contains_key(&name)).unwrap_or(0)
    }

    fn define_at(&mut self, depth: usize, name: Name, entry: Entry, span: Option<Span>) {
        if depth == 0 {
            self.exports.push(Export { name, entry: entry.clone(), span });
        }
        if matches!(entry, Entry::Symbol { .. }) && !self.symbols.contains(&name) {
            self.symbols.push(name);
        }
        if let Some(scope) = self.scopes.get_mut(depth) {
            scope.names.insert(name, (entry, span));
        }
    }

    /// Returns the innermost definition of `name`.
    pub(super) fn lookup(&mut self, name: Name) -> Option<Entry> {
        for scope in self.scopes.iter().rev() {
            if let Some((entry, _)) = scope.names.get(&name) {
                return Some(entry.clone());
            }
        }
        let outer = self.asked.entry(name);
        outer.or_else(|| self.lookup_file(name))
    }

    fn lookup_file(&self, name: Name) -> Option<Entry> {
        if self.file.symbols.contains(&name) {
            return Some(Entry::Symbol { bound: false, dtype: DType::INT64 });
        }
        if self.file.modules.contains(&name) {
            return Some(Entry::Module);
        }
        self.file.captured.contains(&name).then_some(Entry::Captured)
    }

    /// Adds a label at the definition of a value that is a variable: "`x` gets its type here".
    pub(super) fn with_definition(
        &self,
        diagnostic: Diagnostic<Place>,
        value: &IrExpr,
        says: &str,
    ) -> Diagnostic<Place> {
        match value.kind {
            IrKind::Var(variable) => {
                diagnostic.with_label(self.definition_of(variable), format!("`{variable}` {says}"))
            }
            _ => diagnostic,
        }
    }

    /// Returns the place where `name` was defined, for a diagnostic.
    pub(super) fn definition_of(&self, name: Name) -> Place {
        for scope in self.scopes.iter().rev() {
            if let Some((_, span)) = scope.names.get(&name) {
                return span.map_or(Place::Definition(name), Place::Here);
            }
        }
        Place::Definition(name)
    }

    /// Returns the context of the enclosing function, defined by its header.
    pub(super) fn function_context(&mut self) -> Option<Arc<FunctionContext>> {
        if let Some(context) = self.scopes.iter().rev().find_map(|scope| scope.context.clone()) {
            return Some(context);
        }
        match self.lookup(name(FUNCTION_CONTEXT)) {
            Some(Entry::Function(context)) => Some(context),
            _ => None,
        }
    }

    /// Reports an undefined name once and defines it as an error, so that later uses are not reported.
    pub(super) fn undefined_name(&mut self, wrong: Name, span: Span) {
        // Search the names of inner scopes of this segment for a similar one. The function's own names are searched
        // by the check of the function, since only it sees them independently of how segments are cut.
        let mut known: Vec<Name> = self.scopes.iter().skip(1).flat_map(|scope| scope.names.keys().copied()).collect();
        known.sort_unstable();
        let mut diagnostic = mistake(Code::UndefinedName, span, format!("`{wrong}` is not defined"));
        if self.asked.signature(wrong).is_some() {
            let module = self.file.modules.iter().map(|module| module.as_str()).min();
            let how = match module {
                Some(module) => {
                    format!("`{wrong}` is a function of the module: write `cls.{wrong}` after `cls = {module}`")
                }
                None => format!(
                    "`{wrong}` is another function: only functions of one module call each other, as `cls.{wrong}`"
                ),
            };
            diagnostic = diagnostic.with_help(how);
            if let Some(declared) = self.declares_module() {
                self.store_unresolved(wrong, span, Role::Function { declared });
            }
        } else if let Some(near) = nearest(&wrong, known.iter().map(|name| name.as_str())) {
            diagnostic = suggest_in_place(diagnostic, Some(near));
        } else {
            self.store_unresolved(wrong, span, Role::Value);
        }
        self.report(diagnostic);
        self.redefine_everywhere(wrong, Entry::value(StructInfo::Error), span);
    }

    /// Reports the undefined name `head` that must be replaced by `meant`, a namespace or an operator, and defines it
    /// as an error.
    pub(super) fn undefined_namespace(&mut self, head: Name, span: Span, meant: Name) {
        self.error(Code::UndefinedName, span, format!("`{head}` is not defined"));
        self.store_unresolved(head, span, Role::Replaced(meant));
        self.redefine_everywhere(head, Entry::value(StructInfo::Error), span);
    }

    /// Whether `head` in `head.member` denotes the module. An undefined name that means the module, such as `self`, is
    /// reported once and denotes it from here on.
    pub(super) fn is_module(&mut self, head: Name, span: Span, member: Name) -> bool {
        if let Some(entry) = self.lookup(head) {
            return entry == Entry::Module;
        }
        if self.file.namespace(&head).is_some() {
            return false;
        }
        let Some(module) = self.file.modules.iter().map(|module| module.as_str()).min() else { return false };
        let usual = || ["cls", "self"].into_iter().chain(self.file.modules.iter().map(|module| module.as_str()));
        let is_meant = usual().any(|usual| usual == head.as_str()) || nearest(&head, usual()).is_some();
        if !is_meant || self.asked.signature(member).is_none() {
            return false;
        }
        let help = format!("`{member}` is a function of the module: write `cls.{member}` after `cls = {module}`");
        self.report(mistake(Code::UndefinedName, span, format!("`{head}` is not defined")).with_help(help));
        if let Some(declared) = self.declares_module() {
            self.store_unresolved(head, span, Role::Module { declared });
        }
        self.redefine_everywhere(head, Entry::Module, span);
        true
    }

    /// Whether `cls` denotes the module here; `None` if it cannot, because there is no module or `cls` is another
    /// value.
    fn declares_module(&mut self) -> Option<bool> {
        match self.lookup(name("cls")) {
            _ if self.file.modules.is_empty() => None,
            Some(Entry::Module) => Some(true),
            Some(_) => None,
            None => Some(false),
        }
    }

    /// Stores an undefined name, for which the check of the function finds out what is meant.
    fn store_unresolved(&mut self, wrong: Name, span: Span, role: Role) {
        let exports = u32::try_from(self.exports.len()).unwrap_or(u32::MAX);
        self.unresolved.push(Unresolved { name: wrong, span, exports, role });
    }

    /// Resolves the names in an expression that only Python can evaluate: reports captured names once, and undefined
    /// names.
    pub(super) fn python_names(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        const BUILTINS: [&str; 12] =
            ["tvm", "float", "int", "bool", "len", "range", "list", "tuple", "min", "max", "abs", "sum"];
        for (used, span) in heads(cursor, expr) {
            match self.lookup(used) {
                Some(Entry::Captured) => self.captured_name(used, span),
                None if self.file.namespace(&used).is_none() && !BUILTINS.contains(&&*used) => {
                    self.undefined_name(used, span);
                }
                _ => {}
            }
        }
    }

    /// Reports a name captured from the Python program, once.
    pub(super) fn captured_name(&mut self, captured: Name, span: Span) {
        self.report(captured_diagnostic(captured, Place::Here(span)));
        self.redefine_everywhere(captured, Entry::value(StructInfo::Error), span);
    }
}

/// Returns the head names of an expression: `np` and `x` for `np.array(x.y)`.
pub(super) fn heads(cursor: Cursor<'_>, expr: &Expr) -> Vec<(Name, Span)> {
    let mut found = Vec::new();
    let mut todo = vec![expr];
    while let Some(expr) = todo.pop() {
        match &expr.kind {
            ExprKind::Attribute { value, .. } => todo.push(value),
            ExprKind::Subscript { value, index } => todo.extend([&**index, value]),
            ExprKind::Call { callee, arguments } => {
                todo.extend(arguments.iter().rev().map(|argument| &argument.value));
                todo.push(callee);
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => todo.extend(items.iter().rev()),
            _ => collect_names(cursor, expr, &mut found),
        }
    }
    found
}

/// Collects the names in an expression that are not heads of attributes or callees.
pub(super) fn collect_names(cursor: Cursor<'_>, expr: &Expr, into: &mut Vec<(Name, Span)>) {
    match &expr.kind {
        ExprKind::Name => into.push((cursor.name(expr.tokens.start), cursor.span(expr.tokens))),
        ExprKind::Parenthesized(inner) | ExprKind::Unary(_, inner) => collect_names(cursor, inner, into),
        ExprKind::Binary(_, a, b) => {
            collect_names(cursor, a, into);
            collect_names(cursor, b, into);
        }
        ExprKind::Compare(first, rest) => {
            collect_names(cursor, first, into);
            rest.iter().for_each(|(_, operand)| collect_names(cursor, operand, into));
        }
        ExprKind::Bool2(_, operands) => operands.iter().for_each(|operand| collect_names(cursor, operand, into)),
        ExprKind::Conditional { then, test, otherwise } => {
            for part in [then, test, otherwise] {
                collect_names(cursor, part, into);
            }
        }
        ExprKind::Call { arguments, .. } => {
            arguments.iter().for_each(|argument| collect_names(cursor, &argument.value, into));
        }
        _ => {}
    }
}

/// Whether `wrong` is `known` with a suffix after an underscore, such as `sum_zz` for `sum`.
pub(super) fn is_extension(wrong: &str, known: &str) -> bool {
    wrong.strip_prefix(known).is_some_and(|rest| rest.starts_with('_'))
}
