//! The functions of a file with their bodies, for lowering and passes.

use crate::modules::ModuleId;
use crate::position::{absolute, place_diagnostic};
use crate::queries::{check_item, full_signature, scope_context, texts};
use crate::scope::prim_func;
use crate::statements::item;
use crate::workspace::{FileId, Workspace};
use rx_analysis::elaborate::{Row, RowKind};
use rx_analysis::relax_function::relax_function;
use rx_base::name::name;
use rx_base::{Diagnostic, Name, Span};
use rx_context::{FileContext, ItemPart, ItemPlace, metadata};
use rx_ir::{ConstantData, Constants, Function, IndexSites, Item, LoopBody, LoopFunction, Module, Origin, Signature};
use rx_prim_func::attributes::{WrittenAttributes, written_attributes};
use rx_prim_func::reader;
use rx_syntax::document::{FunctionKind, ItemKind};
use rx_syntax::{Segments, TokenKind};
use rx_tir::PrimFunc;
use std::sync::Arc;

/// A function of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionRow {
    /// The function's name.
    pub name: Name,
    /// Whether it is a Relax function or a prim_func.
    pub kind: FunctionKind,
    /// Whether only its own module may call it.
    pub private: bool,
    /// The position of the name, in bytes of the file.
    pub span: Span,
    /// The function's module, as in [`ModuleId::module`].
    pub module: Option<u32>,
}

impl Workspace {
    /// Returns the Relax functions and prim_funcs of a file, in order.
    pub fn functions(&self, file: FileId) -> Vec<FunctionRow> {
        let Some((db, document, inputs)) = self.parts(file) else { return Vec::new() };
        let row = |(at, item): (usize, &rx_syntax::document::Item)| {
            let (ItemKind::Function(kind), Some(name)) = (item.kind, item.name) else { return None };
            let private = full_signature(db, *inputs.items.get(at)?).is_private();
            let span = absolute(document, at, &ItemPlace::Item(name, ItemPart::Name)).unwrap_or_default();
            Some(FunctionRow { name, kind, private, span, module: item.module })
        };
        document.items().iter().enumerate().filter_map(row).collect()
    }

    /// Returns the number of indexing accesses (`take`, `scatter_nd`, …) in each Relax function of a file, in order,
    /// counted by how much is known of their indices.
    pub fn index_sites(&self, file: FileId) -> Vec<(Name, IndexSites)> {
        let Some((db, document, inputs)) = self.parts(file) else { return Vec::new() };
        let sites = |(at, item): (usize, &rx_syntax::document::Item)| {
            let check = check_item(db, *inputs.items.get(at)?).function?;
            Some((item.name?, check.index_sites))
        };
        document.items().iter().enumerate().filter_map(sites).collect()
    }

    /// Returns the Relax function `name` of a module with its body; of several the last, as in Python.
    pub fn function(&self, module: ModuleId, name: Name) -> Option<Arc<Function>> {
        self.scope(module)?.function(self.db(), name)
    }

    /// Returns a module in the form that passes take: Relax functions as blocks of bindings, everything else as text.
    /// Items outside modules, except functions, come before it.
    ///
    /// # Errors
    /// The reason why the module cannot be read.
    pub fn module(&self, wanted: ModuleId) -> Result<Module<PrimFunc>, String> {
        let Some((db, document, inputs)) = self.parts(wanted.file) else { return Err("the file is gone".to_owned()) };
        let is_there = |item: &rx_syntax::document::Item| match item.kind {
            ItemKind::Prelude | ItemKind::Metadata | ItemKind::Foreign => {
                item.module.is_none() || item.module == wanted.module
            }
            _ => item.module == wanted.module,
        };
        let mut module =
            Module { prelude: Arc::from(""), constants: Constants::default(), class: None, items: Vec::new() };
        let mut prelude = String::new();
        // With several metadata sections, Python's control flow decides which one a function sees; then none is used.
        let mut sections = document.items().iter().filter(|item| item.kind == ItemKind::Metadata);
        let section = sections.next().filter(|_| sections.next().is_none());
        if let Some(section) = section {
            module.constants = metadata::constants(&section.segments);
        }
        for (at, item) in document.items().iter().enumerate().filter(|(_, item)| is_there(item)) {
            let text: String = item.segments.iter().map(|segment| segment.text()).collect();
            match item.kind {
                ItemKind::Metadata if section.is_some() => {}
                ItemKind::ModuleHeader => module.class = Some(item.name.unwrap_or_else(|| name("Module"))),
                ItemKind::Function(FunctionKind::Relax) => {
                    let function = inputs.items.get(at).and_then(|input| {
                        let Signature::Relax(signature) = &*full_signature(db, *input) else { return None };
                        let check = check_item(db, *input).function?;
                        let context = scope_context(db, input.scope(db));
                        Some(relax_function(item.name?, &texts(db, *input), signature, &check, &context))
                    });
                    let function = function.ok_or("a Relax function cannot be read")?;
                    module.items.push(Item::Relax(Arc::new(function)));
                }
                ItemKind::Prelude
                | ItemKind::Metadata
                | ItemKind::Foreign
                | ItemKind::Function(FunctionKind::Macro)
                    if module.items.is_empty() =>
                {
                    prelude.push_str(&text);
                }
                _ if text.trim().is_empty() => {}
                ItemKind::Function(FunctionKind::Prim)
                    if let (Some(name), Some(input)) = (item.name, inputs.items.get(at)) =>
                {
                    let private = full_signature(db, *input).is_private();
                    let (own, context) = (texts(db, *input), scope_context(db, input.scope(db)));
                    let loops = || reader::prim_func(&own, &context, name).ok();
                    let mut function = loop_function((name, private), item, (&own, &text), loops);
                    if let Some(LoopFunction { body, .. }) = &mut function
                        && let LoopBody::Written { loops: Some(loops), .. } = body
                        && calls_macro(&own, &context)
                    {
                        // The text is meaningless without the macros, which are not part of the module, so the expanded
                        // loops replace it.
                        *body = LoopBody::Made(loops.clone());
                    }
                    module.items.push(function.map_or_else(
                        || Item::Text { name: item.name, text: dedented(&text, item.indent).into() },
                        |function| Item::Loops(Arc::new(function)),
                    ));
                }
                _ => module.items.push(Item::Text { name: item.name, text: dedented(&text, item.indent).into() }),
            }
        }
        module.prelude = prelude.into();
        Ok(module)
    }

    /// Returns the signature of a module's item `name`; of several the last.
    pub(crate) fn signature(&self, module: ModuleId, name: Name) -> Option<Arc<Signature>> {
        let (db, document, inputs) = self.parts(module.file)?;
        let is_it = |item: &rx_syntax::document::Item| {
            item.name == Some(name) && item.module == module.module && matches!(item.kind, ItemKind::Function(_))
        };
        let at = document.items().iter().rposition(is_it)?;
        Some(full_signature(db, *inputs.items.get(at)?))
    }

    /// Returns the prim_func `name` of a module as loops.
    ///
    /// # Errors
    /// The diagnostics that prevent reading it.
    pub fn prim_func(&self, module: ModuleId, name: Name) -> Option<Result<Arc<PrimFunc>, Vec<Diagnostic<Span>>>> {
        let (db, document, inputs) = self.parts(module.file)?;
        let at = item(document, module.module, name, FunctionKind::Prim)?;
        let read = prim_func(db, *inputs.items.get(at)?);
        let placed = |diagnostic: &Diagnostic<ItemPlace>| place_diagnostic(document, at, diagnostic);
        Some(read.map_err(|diagnostics| diagnostics.iter().map(placed).collect()))
    }

    /// Returns tensors of the file's metadata section, by key and index.
    ///
    /// # Errors
    /// Names the first constant that is missing or cannot be decoded, and the reason.
    pub fn constants(&self, file: FileId, wanted: &[(Name, u32)]) -> Result<Vec<ConstantData>, String> {
        let items = self.parts(file).map(|(_, document, _)| document.items()).unwrap_or_default();
        let section = items.iter().rfind(|item| item.kind == ItemKind::Metadata);
        metadata::tensors(&section.map(|item| item.segments.clone()).unwrap_or_default(), wanted)
    }

    /// Returns the position where a statement binds `variable`, in bytes of the file.
    pub fn binding_span(&self, module: ModuleId, origin: Origin, variable: Name) -> Option<Span> {
        let (item, segment, statement) = self.statements(module).find(origin)?;
        let (db, document, inputs) = self.parts(module.file)?;
        let check = check_item(db, *inputs.items.get(item)?).function?;
        let binds =
            |row: &&Row| row.statement == statement && row.name == variable && matches!(row.kind, RowKind::Binding);
        let row = check.segments.get(segment as usize)?.rows.iter().find(binds)?;
        absolute(document, item, &ItemPlace::Segment(segment, row.span))
    }

    /// Returns the position where a function's parameter is declared, in bytes of the file.
    pub fn param_span(&self, module: ModuleId, function: Name, param: usize) -> Option<Span> {
        let (_, document, _) = self.parts(module.file)?;
        let at = item(document, module.module, function, FunctionKind::Relax)?;
        absolute(document, at, &ItemPlace::Item(function, ItemPart::Param(u32::try_from(param).ok()?)))
    }
}

/// Whether a prim_func mentions a macro.
fn calls_macro(segments: &Segments, context: &FileContext) -> bool {
    segments.iter().any(|segment| {
        segment.tree().statements.iter().any(|statement| {
            let cursor = segment.cursor(statement);
            let is_macro = |token: u32| {
                cursor.kind(token).is_some_and(TokenKind::is_name) && context.macros.contains_key(&cursor.name(token))
            };
            !context.macros.is_empty() && (0..statement.token_count).any(is_macro)
        })
    })
}

/// Returns a prim_func as text, split around its attributes; `None` if it cannot be split.
fn loop_function(
    (name, private): (Name, bool),
    item: &rx_syntax::document::Item,
    (segments, text): (&Segments, &str),
    loops: impl FnOnce() -> Option<PrimFunc>,
) -> Option<LoopFunction<PrimFunc>> {
    let WrittenAttributes { place, entries } = written_attributes(segments)?;
    let (before, after) = (text.get(..place.start)?, text.get(place.end..)?);
    let before = dedented_part(before, item.indent);
    let after = match before.ends_with('\n') {
        true => dedented_part(after, item.indent),
        false => {
            let (line, lines) = after.split_once('\n').unwrap_or((after, ""));
            format!("{}\n{}", line.trim_end_matches('\r'), dedented_part(lines, item.indent))
        }
    };
    let before = before.trim_start_matches('\n').into();
    let after = format!("{}\n", after.trim_end()).into();
    let body = LoopBody::Written { before, after, loops: loops().map(Arc::new) };
    Some(LoopFunction { name, private, attributes: entries, body })
}

/// Removes the `indent` columns of the enclosing block from each line, and carriage returns; the last line may be
/// incomplete.
fn dedented_part(text: &str, indent: u32) -> String {
    let without = |line: &str| {
        let blank = line.len() - line.trim_start_matches(' ').len();
        line.get(blank.min(indent as usize)..).unwrap_or(line).replace('\r', "")
    };
    text.split_inclusive('\n').map(without).collect()
}

/// Removes the `indent` columns of the enclosing block from each line, and blank lines at both ends. For example, with
/// `indent` 4 the text of a method becomes that of a function outside a class.
fn dedented(text: &str, indent: u32) -> String {
    let indent = indent as usize;
    let mut lines = String::with_capacity(text.len());
    for line in text.trim_end().lines().skip_while(|line| line.trim().is_empty()) {
        let blank = line.len() - line.trim_start_matches(' ').len();
        lines.push_str(line.get(blank.min(indent)..).unwrap_or(line));
        lines.push('\n');
    }
    lines
}
