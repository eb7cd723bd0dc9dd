//! Elaboration of one segment: names resolved, struct info inferred, mistakes found.
//!
//! The result depends on the segment's text, the block state it starts in, the file context, and the recorded answers of
//! [`Outer`]; on nothing else. Spans are bytes of the segment.

mod advice;
mod annotate;
mod attribute;
mod binding;
mod branch;
mod call;
mod call_tir;
mod dim;
mod explanation;
mod expr;
mod forms;
mod function_attributes;
mod function_call;
mod header;
mod index_sites;
mod inspected;
mod learn;
mod lifted;
mod namespace;
mod recorder;
mod scope;
mod shared_types;
mod statement;
mod sugar;
mod summaries;
mod trial;
mod type_arguments;
mod type_objects;
mod types;
mod vague;
mod values;
mod ways;
mod written;

pub use annotate::{Annotate, Style, annotate, return_place};
pub use call::signature_text;
pub(crate) use header::{elaborate_signature, extern_declarations};
pub(crate) use namespace::is_special_form;
pub use namespace::special_forms;
pub(crate) use shared_types::SharedTypes;
pub use types::TYPES;

use crate::entry::{Entry, Outer, Place};
use annotate::Annotated;
use recorder::Recorder;
use rx_base::name::NameMap;
use rx_base::symbolic::Bounds;
use rx_base::{Code, Diagnostic, Name, Span};
use rx_context::FileContext;
use rx_ir::{Attr, Binding, Expr as IrExpr, IndexSites, Known, Requirement, Signature, StructInfo, Summary};
use rx_syntax::Segment;
use scope::Scope;
use std::sync::Arc;

/// What a row of [`SegmentResult::rows`] describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A parameter of a Relax function.
    Param,
    /// A binding, or a bare statement (named `_`).
    Binding,
    /// A function's returned value.
    Return,
}

/// The struct info of a parameter, binding or returned value.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The variable; `return` or `_` where there is none.
    pub name: Name,
    /// What it describes.
    pub kind: RowKind,
    /// The type its users see.
    pub ty: StructInfo,
    /// Whether the type was inferred, not written.
    pub inferred: bool,
    /// Where the name stands.
    pub span: Span,
    /// The statement's index in its segment; the origin's statement is the sum over earlier segments plus this.
    pub statement: u32,
}

/// A name defined in the segment and visible after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The name.
    pub name: Name,
    /// What it stands for.
    pub entry: Entry,
    /// Where it was defined; none where an earlier segment defined it and only its meaning changed here.
    pub span: Option<Span>,
}

/// A name nothing defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Unresolved {
    /// The name.
    pub name: Name,
    /// Where it is used.
    pub span: Span,
    /// How many of the segment's exports precede the use.
    pub exports: u32,
    /// What it is used for.
    pub role: Role,
}

/// What a name is used for, where that says what may have been meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Anything.
    #[default]
    Value,
    /// An integer: a dim.
    Dim,
    /// It is returned.
    Return,
    /// It is passed to `R.output`.
    Output,
    /// It decides between the branches of an `if`.
    Condition,
}

/// The blocks open at a segment's border.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// The open dataflow block: its header's indentation and its ordinal in the function.
    pub dataflow: Option<(u32, u32)>,
    /// How many dataflow blocks were opened so far.
    pub dataflow_count: u32,
    /// Whether a `return` was seen.
    pub returned: bool,
    /// Whether a `return` was seen in the open block itself, not in a branch of it.
    pub ended: bool,
    /// The indentation of the function's header.
    pub header_indent: u32,
    /// The indentation of the open block's statements; none before its first.
    pub level: Option<u32>,
    /// Whether the open dataflow block has an `R.output`.
    pub output_seen: bool,
}

/// What the elaboration of a segment found.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentResult {
    /// Names asked of earlier segments, with the answers.
    pub imports: Vec<(Name, Option<Entry>)>,
    /// Items of the module asked for, with the answers.
    pub globals: Vec<(Name, Option<Arc<Signature>>)>,
    /// Functions of whose values was asked, with the answers.
    pub summaries: Vec<(Name, Option<Arc<Summary>>)>,
    /// Names defined, in order.
    pub exports: Vec<Export>,
    /// The blocks open at the end.
    pub end: BlockState,
    /// Mistakes, in order of position.
    pub diagnostics: Vec<Diagnostic<Place>>,
    /// Struct infos of parameters and bindings, in order.
    pub rows: Vec<Row>,
    /// The declared or inferred type of the value returned in this segment.
    pub returned: Option<StructInfo>,
    /// The type of the returned value as the function's header would say it, where what it says has mistakes.
    pub return_text: Option<Box<str>>,
    /// What is known of the values of what is returned.
    pub returned_values: Known,
    /// Accesses by indices that depend on the function's parameters.
    pub requirements: Vec<Requirement>,
    /// The accesses by indices, counted.
    pub index_sites: IndexSites,
    /// Names nothing defines: a suggestion is left to the function's check.
    pub unresolved: Vec<Unresolved>,
    /// Number of statements.
    pub statements: u32,
}

/// What a segment of a Relax function does, as typed bindings.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The bindings, in order; origins count statements from the segment's first.
    pub bindings: Vec<Binding>,
    /// The returned value, where the segment returns.
    pub returned: Option<IrExpr>,
    /// What its `R.output`s show: the dataflow block's ordinal and the variable.
    pub outputs: Vec<(u32, Name)>,
    /// What its `R.func_attr` says.
    pub attributes: Vec<(Arc<str>, Attr)>,
}

/// Elaborates a segment again to learn what it does: `outer` answers as when it was checked.
pub fn record(segment: &Segment, start: &BlockState, file: &FileContext, outer: &dyn Outer) -> Recorded {
    let mut elaborator = Elaborator::new(segment, start.clone(), file, outer);
    elaborator.recorder = Some(Recorder::default());
    elaborator.run();
    let recorder = elaborator.recorder.take().unwrap_or_default();
    Recorded {
        bindings: recorder.bindings,
        returned: recorder.returned,
        outputs: recorder.outputs,
        attributes: recorder.attributes,
    }
}

/// Elaborates a segment of a Relax function; `types` are those of the segments before, and then of this one as well.
pub(crate) fn elaborate(
    segment: &Segment,
    start: &BlockState,
    file: &FileContext,
    outer: &dyn Outer,
    types: &mut SharedTypes,
) -> SegmentResult {
    let mut elaborator = Elaborator::new(segment, start.clone(), file, outer);
    elaborator.types = std::mem::take(types);
    elaborator.run();
    *types = std::mem::take(&mut elaborator.types);
    elaborator.finish()
}

pub(crate) struct Elaborator<'a> {
    segment: &'a Segment,
    file: &'a FileContext,
    outer: &'a dyn Outer,
    state: BlockState,
    /// Innermost last; the first is the function's own.
    scopes: Vec<Scope>,
    exports: Vec<Export>,
    imports: Vec<(Name, Option<Entry>)>,
    import_index: NameMap<usize>,
    /// The types of what was defined and asked for.
    types: SharedTypes,
    globals: Vec<(Name, Option<Arc<Signature>>)>,
    global_index: NameMap<usize>,
    summaries: Vec<(Name, Option<Arc<Summary>>)>,
    diagnostics: Vec<Diagnostic<Place>>,
    rows: Vec<Row>,
    returned: Option<StructInfo>,
    return_text: Option<Box<str>>,
    returned_values: Known,
    requirements: Vec<Requirement>,
    index_sites: IndexSites,
    unresolved: Vec<Unresolved>,
    /// The last call whose mistake was looked into.
    tried: Option<Box<trial::Tried>>,
    /// The last field that a tuple does not have: where it and its index are written, and the tuple's type.
    tried_field: Option<(Span, Span, StructInfo)>,
    /// The symbols that the parameters of the last header bind.
    signature_symbols: Vec<Name>,
    /// The index of the statement being elaborated.
    statement: u32,
    /// What is known of symbols here: stated by attributes, and learned.
    bounds: Arc<Bounds>,
    /// Depth of nested functions; rows and exports of inner bodies differ from the outermost's.
    nesting: u32,
    /// Blocks around the statement; deeper ones than the parser allows are reported by it and not looked into.
    blocks: u32,
    /// Annotations, where they are asked for.
    annotated: Option<Annotated>,
    /// Keeps the bindings, where they are asked for; checking alone does without.
    recorder: Option<Recorder>,
    /// Inside `R.Callable(…)`, whose symbols are its own and need no definition.
    lenient_symbols: bool,
}

impl<'a> Elaborator<'a> {
    fn new(segment: &'a Segment, state: BlockState, file: &'a FileContext, outer: &'a dyn Outer) -> Elaborator<'a> {
        let mut elaborator = Elaborator {
            segment,
            file,
            outer,
            state,
            scopes: vec![Scope::default()],
            exports: Vec::new(),
            imports: Vec::new(),
            import_index: NameMap::default(),
            types: SharedTypes::default(),
            globals: Vec::new(),
            global_index: NameMap::default(),
            summaries: Vec::new(),
            diagnostics: Vec::new(),
            rows: Vec::new(),
            returned: None,
            return_text: None,
            returned_values: None,
            requirements: Vec::new(),
            index_sites: IndexSites::default(),
            unresolved: Vec::new(),
            tried: None,
            tried_field: None,
            signature_symbols: Vec::new(),
            statement: 0,
            bounds: Arc::default(),
            nesting: 0,
            blocks: 0,
            lenient_symbols: false,
            recorder: None,
            annotated: None,
        };
        elaborator.bounds = elaborator.known_at_start();
        elaborator
    }

    fn finish(mut self) -> SegmentResult {
        for diagnostic in rx_syntax::syntax_diagnostics(self.segment) {
            let primary = Place::Here(diagnostic.primary);
            self.diagnostics.push(diagnostic.map_places(primary, |span| Some(Place::Here(*span))));
        }
        let statements = u32::try_from(self.segment.tree().statements.len()).unwrap_or(u32::MAX);
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.sort_by_key(|diagnostic| match diagnostic.primary {
            Place::Here(span) => span,
            _ => Span::default(),
        });
        // Results live as long as their segment, and there are thousands: what was set aside for growth goes back.
        self.imports.shrink_to_fit();
        self.globals.shrink_to_fit();
        self.exports.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.requirements.shrink_to_fit();
        diagnostics.shrink_to_fit();
        SegmentResult {
            imports: self.imports,
            globals: self.globals,
            summaries: self.summaries,
            exports: self.exports,
            end: self.state,
            diagnostics,
            rows: self.rows,
            returned: self.returned,
            return_text: self.return_text,
            returned_values: self.returned_values,
            requirements: self.requirements,
            index_sites: self.index_sites,
            unresolved: self.unresolved,
            statements,
        }
    }

    /// Adds a diagnostic at `span`.
    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::new(code, Place::Here(span), message));
    }

    fn report(&mut self, diagnostic: Diagnostic<Place>) {
        self.diagnostics.push(diagnostic);
    }
}

/// The current spelling of a call's keyword: `out_sinfo` is `out_ty`. Current spellings are as they are.
pub(crate) fn current_keyword(written: &str) -> &str {
    rx_syntax::dialect::Dialect::Classic.canonical_keyword(written)
}
