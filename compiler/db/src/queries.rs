//! Salsa inputs and tracked functions. The smallest unit is an item.

use rx_analysis::function::{FunctionCheck, FunctionMemo, Items, check_function};
use rx_analysis::python::{Outer, PyConstants, SubstitutionMemo, substituted, visible};
use rx_analysis::signature::{Header, prim_signature, relax_header};
use rx_base::name::{NameMap, NameSet};
use rx_base::{Code, Diagnostic, Name, Span, TvmVersion};
use rx_context::{FileContext, ItemPart, ItemPlace};
use rx_ir::{FunctionSignature, Signature, StructInfo, Summary};
use rx_ops::user::Operators;
use rx_syntax::document::{FunctionKind, ItemKind};
use rx_syntax::{Segment, Segments};
use std::collections::HashMap;
use std::sync::Arc;

/// The database. A clone is another handle to the same storage.
#[salsa::db]
#[derive(Clone, Default)]
pub(crate) struct Database {
    storage: salsa::Storage<Self>,
}

#[salsa::db]
impl salsa::Database for Database {}

/// The part of a document that its modules share: the Python around them.
#[salsa::input]
pub(crate) struct FileInput {
    /// The items outside modules and the headers of modules, in order.
    #[returns(clone)]
    pub(crate) outer: Arc<[ItemInput]>,
}

/// The items that can refer to one another by name: those of a module, or those outside modules.
#[salsa::input]
pub(crate) struct ScopeInput {
    /// The document that contains the scope.
    #[returns(copy)]
    pub(crate) file: FileInput,
    /// Items at module level that are not functions: imports, symbolic dims, module attributes.
    #[returns(clone)]
    pub(crate) preludes: Arc<[ItemInput]>,
    /// The functions, in order.
    #[returns(clone)]
    pub(crate) functions: Arc<[ItemInput]>,
    /// Items outside the scope that may bind names which its functions capture: Python text, other modules.
    #[returns(clone)]
    pub(crate) surroundings: Arc<[ItemInput]>,
    /// The operators that the project declares.
    #[returns(clone)]
    pub(crate) operators: Option<Arc<Operators>>,
}

/// An item of a document.
#[salsa::input]
pub(crate) struct ItemInput {
    /// The kind of the item.
    #[returns(copy)]
    pub(crate) kind: ItemKind,
    /// The name of the item.
    #[returns(copy)]
    pub(crate) name: Option<Name>,
    /// The first segment: a function's decorators and header.
    #[returns(clone)]
    pub(crate) head: Arc<Segment>,
    /// All segments, including the first.
    #[returns(clone)]
    pub(crate) segments: Segments,
    /// The scope that contains the item.
    #[returns(copy)]
    pub(crate) scope: ScopeInput,
    /// The memo of the item's last check, for incremental rechecking; no result depends on it.
    #[returns(clone)]
    pub(crate) memo: Arc<FunctionMemo>,
    /// The memo of the last substitution of constants in the item; no result depends on it.
    #[returns(clone)]
    pub(crate) substitution: Arc<SubstitutionMemo>,
}

/// The result of checking an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ItemCheck {
    /// The results for a Relax function.
    pub(crate) function: Option<Arc<FunctionCheck>>,
    /// The diagnostics, in order of position.
    pub(crate) diagnostics: Arc<[Diagnostic<ItemPlace>]>,
}

/// Returns the names that an item binds and functions of other scopes may capture.
#[salsa::tracked(returns(clone))]
fn names_for_others(db: &dyn salsa::Database, item: ItemInput) -> Arc<NameSet> {
    Arc::new(match item.kind(db) {
        ItemKind::Foreign => rx_context::file_context::python_names(&item.segments(db)),
        _ => item.name(db).into_iter().collect(),
    })
}

/// Returns the column and the name of a module, or of a function outside modules; `None` for other items.
#[salsa::tracked(returns(copy))]
fn outer_name(db: &dyn salsa::Database, item: ItemInput) -> Option<(u32, Option<Name>)> {
    match item.kind(db) {
        ItemKind::Function(_) | ItemKind::ModuleHeader => {
            let head = item.head(db);
            Some((head.tree().statements.first().map_or(0, |statement| statement.indent), item.name(db)))
        }
        _ => None,
    }
}

/// Returns the constants of a file's Python for each outer item: names that are bound once, to a literal.
/// For example, `N = 8` defines a constant unless `N` is assigned again.
#[salsa::tracked(returns(clone))]
fn file_constants(db: &dyn salsa::Database, file: FileInput) -> Arc<HashMap<ItemInput, Arc<PyConstants>>> {
    let items = file.outer(db);
    let outer = items.iter().map(|item| match outer_name(db, *item) {
        Some((indent, name)) => Outer::Item { indent, name },
        None => Outer::Python(item.segments(db)),
    });
    let constants = visible(&outer.collect::<Vec<_>>());
    Arc::new(items.iter().copied().zip(constants).collect())
}

/// Returns the constants visible to an item: those visible to its module.
#[salsa::tracked(returns(clone))]
pub(crate) fn constants(db: &dyn salsa::Database, item: ItemInput) -> Arc<PyConstants> {
    let scope = item.scope(db);
    let preludes = scope.preludes(db);
    let header = preludes.iter().find(|prelude| prelude.kind(db) == ItemKind::ModuleHeader);
    let of = match item.kind(db) {
        ItemKind::Foreign | ItemKind::Prelude | ItemKind::Metadata => return Arc::default(),
        _ => header.copied().unwrap_or(item),
    };
    file_constants(db, scope.file(db)).get(&of).cloned().unwrap_or_default()
}

/// Returns the segments of an item, with constants replaced by their literals. For example, with `N = 8` in the Python
/// around it, `R.Tensor((N,))` becomes `R.Tensor((8,))`.
#[salsa::tracked(returns(clone))]
pub(crate) fn texts(db: &dyn salsa::Database, item: ItemInput) -> Segments {
    match item.kind(db) {
        ItemKind::Foreign | ItemKind::Prelude | ItemKind::Metadata => item.segments(db),
        _ => substituted(&item.segments(db), &constants(db, item), &item.substitution(db)),
    }
}

/// Returns the first segment of [`texts`].
#[salsa::tracked(returns(clone))]
fn head_text(db: &dyn salsa::Database, item: ItemInput) -> Arc<Segment> {
    texts(db, item).first().cloned().unwrap_or_else(|| item.head(db))
}

/// Reads a metadata item.
#[salsa::tracked(returns(clone))]
fn metadata(db: &dyn salsa::Database, item: ItemInput) -> Arc<rx_context::metadata::Section> {
    Arc::new(rx_context::metadata::read(&item.segments(db)))
}

/// Returns the declarations at the module level of a scope.
#[salsa::tracked(returns(clone))]
pub(crate) fn scope_context(db: &dyn salsa::Database, scope: ScopeInput) -> Arc<FileContext> {
    let mut context = FileContext::default();
    for item in scope.preludes(db).iter() {
        for segment in texts(db, *item).iter() {
            context.read(segment);
        }
    }
    context.constants = scope_constants(db, scope);
    context.operators = scope.operators(db);
    for item in scope.surroundings(db).iter() {
        context.captured.extend(names_for_others(db, *item).iter().copied());
    }
    for item in scope.surroundings(db).iter().chain(scope.functions(db).iter()) {
        if let (ItemKind::Function(FunctionKind::Macro), Some(name)) = (item.kind(db), item.name(db)) {
            context.macros.insert(name, Arc::new(rx_context::macros::of_item(&texts(db, *item))));
        }
    }
    context.set_items(scope.functions(db).iter().filter_map(|item| item.name(db)).collect());
    Arc::new(context)
}

/// Returns the constants of the metadata section; `None` if there are several sections, since Python's control flow
/// decides which one a function sees.
fn scope_constants(db: &dyn salsa::Database, scope: ScopeInput) -> Option<Arc<rx_context::metadata::Constants>> {
    let preludes = scope.preludes(db);
    let mut sections = preludes.iter().filter(|item| item.kind(db) == ItemKind::Metadata);
    let only = sections.next().filter(|_| sections.next().is_none())?;
    metadata(db, *only).constants.clone()
}

/// Maps names to the functions of a scope. Of several functions of the same name the last one counts, as in Python.
#[salsa::tracked(returns(clone))]
pub(crate) fn scope_index(db: &dyn salsa::Database, scope: ScopeInput) -> Arc<NameMap<ItemInput>> {
    let mut index = NameMap::default();
    for item in scope.functions(db).iter() {
        if let Some(name) = item.name(db) {
            index.insert(name, *item);
        }
    }
    Arc::new(index)
}

/// Returns the external functions declared at module level: `f = R.ExternFunc("f")`.
#[salsa::tracked(returns(clone))]
pub(crate) fn scope_externs(db: &dyn salsa::Database, scope: ScopeInput) -> Arc<NameMap<Arc<Signature>>> {
    let context = scope_context(db, scope);
    let mut externs = NameMap::default();
    for item in scope.preludes(db).iter() {
        for segment in item.segments(db).iter() {
            for (name, ty) in rx_analysis::signature::externs(segment, &context) {
                externs.insert(name, Arc::new(Signature::Extern(ty)));
            }
        }
    }
    Arc::new(externs)
}

/// Returns the header of a Relax function. It depends only on the text of the header, not on the body.
#[salsa::tracked(returns(clone))]
pub(crate) fn header(db: &dyn salsa::Database, item: ItemInput) -> Header {
    relax_header(&head_text(db, item), &scope_context(db, item.scope(db)))
}

/// Returns the number of leading parameters that are inputs, not weights, if the first statements declare it
/// (`num_input`).
#[salsa::tracked(returns(copy))]
fn num_input(db: &dyn salsa::Database, item: ItemInput) -> Option<i64> {
    rx_analysis::signature::num_input(&texts(db, item))
}

/// Returns the signature of an item as declared in its text.
#[salsa::tracked(returns(clone))]
pub(crate) fn signature(db: &dyn salsa::Database, item: ItemInput) -> Arc<Signature> {
    match item.kind(db) {
        ItemKind::Function(FunctionKind::Relax) => {
            let header = header(db, item).signature;
            match (num_input(db, item), &*header) {
                (inputs @ Some(_), Signature::Relax(function)) => Arc::new(Signature::Relax(FunctionSignature {
                    num_input: inputs,
                    ..FunctionSignature::clone(function)
                })),
                _ => header,
            }
        }
        ItemKind::Function(FunctionKind::Prim) => {
            Arc::new(prim_signature(&texts(db, item), &scope_context(db, item.scope(db))))
        }
        _ => Arc::new(Signature::Opaque),
    }
}

/// Returns the functions of an item's scope whose names occur in its text: a superset of its callees.
#[salsa::tracked(returns(clone))]
fn mentions(db: &dyn salsa::Database, item: ItemInput) -> Arc<[Name]> {
    let index = scope_index(db, item.scope(db));
    rx_analysis::returns::mentions(&item.segments(db), |name| index.contains_key(name))
}

/// Returns the functions of a scope whose return types can be inferred for their callers.
#[salsa::tracked(returns(clone))]
fn scope_inferable(db: &dyn salsa::Database, scope: ScopeInput) -> Arc<NameSet> {
    let index = scope_index(db, scope);
    let functions = scope.functions(db);
    let undeclared = functions.iter().filter_map(|item| {
        let name = item.name(db)?;
        let Signature::Relax(function) = &*signature(db, *item) else { return None };
        (function.ret.is_none() && index.get(&name) == Some(item)).then(|| (name, mentions(db, *item)))
    });
    Arc::new(rx_analysis::returns::inferable(&undeclared.collect::<Vec<_>>()))
}

/// Returns the signature of an item, with an inferred return type if none is declared.
#[salsa::tracked(returns(clone), cycle_result = unknown_return)]
pub(crate) fn full_signature(db: &dyn salsa::Database, item: ItemInput) -> Arc<Signature> {
    let declared = signature(db, item);
    match &*declared {
        Signature::Relax(function) if function.ret.is_none() => {
            let inferable = item.name(db).is_some_and(|name| scope_inferable(db, item.scope(db)).contains(&name));
            let returned = match inferable {
                true => check_item(db, item).function.and_then(|check| check.returned.clone()),
                false => Some(StructInfo::Object),
            };
            let mut function = function.clone();
            function.ret = returned;
            Arc::new(Signature::Relax(function))
        }
        _ => declared,
    }
}

/// The result for a function whose inferred return type depends on itself: it may return anything. [`scope_inferable`]
/// excludes such cycles beforehand; this prevents a panic if it misses one.
fn unknown_return(db: &dyn salsa::Database, _id: salsa::Id, item: ItemInput) -> Arc<Signature> {
    match &*signature(db, item) {
        Signature::Relax(function) => {
            let mut function = function.clone();
            function.ret = Some(StructInfo::Object);
            Arc::new(Signature::Relax(function))
        }
        other => Arc::new(other.clone()),
    }
}

/// Checks an item. The result is not compared with the previous one (`no_eq`), because the only tracked function that
/// depends on it is [`full_signature`], whose result is compared.
#[salsa::tracked(returns(clone), no_eq, cycle_result = unchecked)]
pub(crate) fn check_item(db: &dyn salsa::Database, item: ItemInput) -> ItemCheck {
    let _span = tracing::debug_span!("check", item = item.name(db).map(|name| name.as_str())).entered();
    let segments = texts(db, item);
    let mut diagnostics: Vec<Diagnostic<ItemPlace>> = Vec::new();
    let function = match item.kind(db) {
        ItemKind::Function(FunctionKind::Relax) => {
            let scope = item.scope(db);
            let context = scope_context(db, scope);
            let check = check_function(&segments, &header(db, item), &context, &Module { db, item }, &item.memo(db));
            diagnostics.extend(check.diagnostics.iter().cloned());
            Some(Arc::new(check))
        }
        ItemKind::Foreign => None,
        kind => {
            for (at, segment) in segments.iter().enumerate() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                for diagnostic in rx_syntax::syntax_diagnostics(segment) {
                    let place = |span: &Span| ItemPlace::Segment(at, *span);
                    diagnostics.push(diagnostic.map_places(place(&diagnostic.primary), |span| Some(place(span))));
                }
            }
            if kind == ItemKind::Function(FunctionKind::Prim) {
                let context = scope_context(db, item.scope(db));
                let of_names = rx_prim_func::names::unbound_names(&segments, &context);
                let name = item.name(db).unwrap_or_default();
                let mut of_kernel = rx_prim_func::checks::check(&segments, &context, name);
                // Both report a form of a block, such as `T.axis`, outside a block.
                of_kernel.retain(|one| {
                    of_names.iter().all(|known| (known.code, &known.primary) != (one.code, &one.primary))
                });
                diagnostics.extend(of_names.into_iter().chain(of_kernel));
            }
            if kind == ItemKind::Function(FunctionKind::Macro) {
                let context = scope_context(db, item.scope(db));
                diagnostics.extend(rx_prim_func::names::of_macro(&segments, &context));
            }
            if kind == ItemKind::Metadata
                && let Some((at, problem)) = &metadata(db, item).problem
            {
                let place = |span: &Span| ItemPlace::Segment(*at, *span);
                diagnostics.push(problem.map_places(place(&problem.primary), |span| Some(place(span))));
            }
            None
        }
    };
    match item.kind(db) {
        ItemKind::Function(_) => {
            let context = scope_context(db, item.scope(db));
            diagnostics.extend(rx_analysis::decorators::check(&head_text(db, item), &context));
        }
        ItemKind::Prelude => {
            let context = scope_context(db, item.scope(db));
            diagnostics.extend(rx_analysis::prelude::check(&segments, &context));
        }
        ItemKind::ModuleStatement => {
            let context = scope_context(db, item.scope(db));
            diagnostics.extend(rx_analysis::prelude::of_module(&segments, &context));
        }
        _ => {}
    }
    diagnostics.extend(duplicate(db, item));
    ItemCheck { function, diagnostics: diagnostics.into() }
}

/// Returns the features of an item that a release of TVM cannot read, lower or build. It is called only if a release is
/// chosen and the text has no errors.
#[salsa::tracked(returns(clone), no_eq)]
pub(crate) fn portability(
    db: &dyn salsa::Database,
    item: ItemInput,
    version: TvmVersion,
) -> Arc<[Diagnostic<ItemPlace>]> {
    if item.kind(db) == ItemKind::Foreign {
        return Arc::from([]);
    }
    let (segments, context) = (texts(db, item), scope_context(db, item.scope(db)));
    let mut found = rx_portability::of_text(version, &segments, &context);
    if let Some(check) = check_item(db, item).function {
        found.extend(rx_portability::of_function(version, &segments, &check, &context));
    }
    found.into()
}

/// The result of a check that takes part in a cycle of inferred return types. The functions are checked once the cycle
/// has been cut.
fn unchecked(_db: &dyn salsa::Database, _id: salsa::Id, _item: ItemInput) -> ItemCheck {
    ItemCheck { function: None, diagnostics: Arc::from([]) }
}

/// The other items of the module, as one item sees them.
struct Module<'a> {
    db: &'a dyn salsa::Database,
    item: ItemInput,
}

impl Items for Module<'_> {
    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        item_signature(self.db, self.item, name)
    }

    fn summary(&self, name: Name) -> Option<Arc<Summary>> {
        let scope = self.item.scope(self.db);
        let callee = scope_index(self.db, scope).get(&name).copied()?;
        // As for inferred return types: the current text must mention the callee, and the callee must be in no cycle.
        let asked_now = mentions(self.db, self.item).binary_search(&name).is_ok();
        (asked_now && scope_summarized(self.db, scope).contains(&name)).then(|| summary(self.db, callee)).flatten()
    }
}

/// Returns the functions of a scope that can be analyzed through calls: those in no call cycle and at the start of no
/// long call chain.
#[salsa::tracked(returns(clone))]
fn scope_summarized(db: &dyn salsa::Database, scope: ScopeInput) -> Arc<NameSet> {
    let index = scope_index(db, scope);
    let functions = scope.functions(db);
    let relax = functions.iter().filter_map(|item| {
        let name = item.name(db)?;
        let is_relax = item.kind(db) == ItemKind::Function(FunctionKind::Relax);
        (is_relax && index.get(&name) == Some(item)).then(|| (name, mentions(db, *item)))
    });
    Arc::new(rx_analysis::returns::inferable(&relax.collect::<Vec<_>>()))
}

/// Returns the summary of a function's values, for analysis through calls.
#[salsa::tracked(returns(clone), cycle_result = unknown_values)]
fn summary(db: &dyn salsa::Database, item: ItemInput) -> Option<Arc<Summary>> {
    check_item(db, item).function?.summary.clone()
}

/// The result in a call cycle. [`scope_summarized`] excludes cycles beforehand; this prevents a panic if it misses one.
fn unknown_values(_db: &dyn salsa::Database, _id: salsa::Id, _item: ItemInput) -> Option<Arc<Summary>> {
    None
}

/// Returns the signature of the module's item `name` as seen from `caller`.
pub(crate) fn item_signature(db: &dyn salsa::Database, caller: ItemInput, name: Name) -> Option<Arc<Signature>> {
    let scope = caller.scope(db);
    let Some(item) = scope_index(db, scope).get(&name).copied() else {
        return scope_externs(db, scope).get(&name).cloned();
    };
    // A declared return type is trusted. The full signature would require a check of the callee's body. The return type
    // of a function is not inferred for the function itself.
    let declared = signature(db, item);
    if item == caller || !return_is_inferred(&declared) {
        return Some(declared);
    }
    // The memo of the last check may ask for a callee that the text before an edit mentioned. [`scope_inferable`] is
    // computed from the current text, so answering could close a call cycle that it has not excluded.
    let asked_now = || mentions(db, caller).binary_search(&name).is_ok();
    (!return_is_inferred(&signature(db, caller)) || asked_now()).then(|| full_signature(db, item))
}

/// Whether the signature is of a Relax function without a declared return type.
fn return_is_inferred(signature: &Signature) -> bool {
    matches!(signature, Signature::Relax(function) if function.ret.is_none())
}

/// Returns a diagnostic if a later function of the same module has the same name.
fn duplicate(db: &dyn salsa::Database, item: ItemInput) -> Option<Diagnostic<ItemPlace>> {
    let name = item.name(db)?;
    let scope = item.scope(db);
    let last = *scope_index(db, scope).get(&name)?;
    let in_module = scope.preludes(db).iter().any(|prelude| prelude.kind(db) == ItemKind::ModuleHeader);
    (last != item && in_module && matches!(item.kind(db), ItemKind::Function(_))).then(|| {
        Diagnostic::new(
            Code::DuplicateDefinition,
            ItemPlace::Segment(0, name_span(&item.head(db)).unwrap_or_default()),
            format!("the module has another function called `{name}`"),
        )
        .with_label(ItemPlace::Item(name, ItemPart::Name), "this one takes its place")
    })
}

/// Returns the position of the function's name in a header.
fn name_span(head: &Segment) -> Option<Span> {
    crate::position::part_span(head, ItemPart::Name)
}
