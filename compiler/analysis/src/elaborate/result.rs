//! Data that the elaboration of a segment returns.

use crate::entry::{Entry, Place};
use rx_base::{Diagnostic, Name, Span};
use rx_ir::{Attr, Binding, Expr as IrExpr, IndexSites, Known, Requirement, Signature, StructInfo, Summary};
use rx_syntax::dialect::Dialect;
use std::sync::{Arc, OnceLock};

/// The kind of a row of [`SegmentResult::rows`].
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
    /// The kind of value.
    pub kind: RowKind,
    /// The type its users see.
    pub ty: StructInfo,
    /// Whether the type was inferred, not written.
    pub inferred: bool,
    /// The span of the name.
    pub span: Span,
    /// The statement's index in its segment; the origin's statement is the sum over earlier segments plus this.
    pub statement: u32,
}

/// A name defined in the segment and visible after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The name.
    pub name: Name,
    /// The definition.
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
    /// The role of the name in the expression.
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
    /// The segment as bindings, once lowering has asked for them.
    pub recorded: KeptRecord,
}

/// The bindings of a segment, kept with its result, of which they are a function: a segment that an edit does not touch is not
/// elaborated again for lowering. Nothing observable depends on whether they are there.
#[derive(Clone, Debug, Default)]
pub struct KeptRecord(Arc<OnceLock<Recorded>>);

impl KeptRecord {
    /// The bindings, made by `record` where they were not asked for before.
    pub(crate) fn get_or_record(&self, record: impl FnOnce() -> Recorded) -> &Recorded {
        self.0.get_or_init(record)
    }
}

impl PartialEq for KeptRecord {
    fn eq(&self, _: &KeptRecord) -> bool {
        true
    }
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

/// Which annotations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotate {
    /// Those that are missing.
    Missing,
    /// Those too that say less than is known.
    All,
}

/// What is written, and how types are spelled.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Which annotations.
    pub which: Annotate,
    /// The spelling of the file.
    pub dialect: Dialect,
}

/// The annotations of a segment.
#[derive(Debug)]
pub struct Annotated {
    /// Which annotations they are, and their spelling.
    pub style: Style,
    /// Edits of the segment, in order.
    pub edits: Vec<(Span, String)>,
    /// The return type of the function around, where the segment returns from it and it declares none; it begins with the
    /// arrow.
    pub returned: Option<String>,
}
