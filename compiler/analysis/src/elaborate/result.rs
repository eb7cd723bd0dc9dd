//! The result types of the elaboration of a segment.

use crate::entry::{Entry, Place};
use rx_base::{Chunks, Diagnostic, Name, Span};
use rx_ir::{Attr, Binding, Expr as IrExpr, IndexSites, Known, Requirement, Signature, StructInfo, Summary};
use rx_ops::Suggestion;
use rx_syntax::dialect::Dialect;
use std::sync::{Arc, OnceLock};

/// The kind of a [`Row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// A parameter of a Relax function.
    Param,
    /// A binding, or a bare statement (named `_`).
    Binding,
    /// The returned value of a function.
    Return,
}

/// The struct info of a parameter, binding or returned value.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The variable; `return` or `_` if there is none.
    pub name: Name,
    /// The kind of value.
    pub kind: RowKind,
    /// The type that uses of the value see.
    pub ty: StructInfo,
    /// Whether the type was inferred; otherwise it is annotated.
    pub inferred: bool,
    /// Whether it is a binding in a dataflow block.
    pub in_dataflow: bool,
    /// The span of the name.
    pub span: Span,
    /// The index of the statement in its segment. Origins count from the function's start: they add the statements of
    /// earlier segments.
    pub statement: u32,
}

/// A name that is defined in the segment and visible after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The name.
    pub name: Name,
    /// The definition.
    pub entry: Entry,
    /// The span of the definition; none if an earlier segment defined the name and only its entry changed here.
    pub span: Option<Span>,
}

/// An undefined name.
#[derive(Clone, Debug, PartialEq)]
pub struct Unresolved {
    /// The name.
    pub name: Name,
    /// The span of its use.
    pub span: Span,
    /// The number of the segment's exports before the use.
    pub exports: u32,
    /// The role of the name in the expression.
    pub role: Role,
}

/// A value that was reported because it does not have a required type.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The place of the diagnostic.
    pub place: Place,
    /// The value.
    pub value: IrExpr,
    /// The type that it should have.
    pub ty: StructInfo,
    /// The number of the segment's exports before the value.
    pub exports: u32,
    /// The attributes with which the value, a call, has that type; none if they were not searched.
    pub suggestions: Option<Vec<Suggestion>>,
}

/// The role in which a name is used, which restricts the names that may have been meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Any value.
    #[default]
    Value,
    /// An integer, such as a dim.
    Dim,
    /// The returned value.
    Return,
    /// An argument of `R.output`.
    Output,
    /// The condition of an `if`.
    Condition,
    /// A namespace or operator for which this text must be written: `R.nn` for `nn`.
    Replaced(Name),
    /// The module, as in `cls.f`.
    Module {
        /// Whether `cls` denotes the module.
        declared: bool,
    },
    /// A function of the module, which is named `cls.f`.
    Function {
        /// Whether `cls` denotes the module.
        declared: bool,
    },
}

/// The blocks that are open at the border between two segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockState {
    /// The open dataflow block: the indentation of its header, and its ordinal in the outermost function.
    pub dataflow: Option<(u32, u32)>,
    /// The number of dataflow blocks opened so far, including those of nested functions.
    pub dataflow_count: u32,
    /// Whether a `return` was seen.
    pub returned: bool,
    /// Whether a `return` was seen in the open block itself, not in a nested branch.
    pub ended: bool,
    /// The indentation of the function's header.
    pub header_indent: u32,
    /// The indentation of the open block's statements; none before the first.
    pub level: Option<u32>,
    /// Whether the open dataflow block has an `R.output`.
    pub output_seen: bool,
}

/// The result of the elaboration of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentResult {
    /// The names looked up in earlier segments, with their definitions.
    pub imports: Vec<(Name, Option<Entry>)>,
    /// The module's items that were looked up, with their signatures.
    pub globals: Vec<(Name, Option<Arc<Signature>>)>,
    /// The functions whose value summaries were used, with the summaries.
    pub summaries: Vec<(Name, Option<Arc<Summary>>)>,
    /// The names defined, in order.
    pub exports: Vec<Export>,
    /// The symbolic dims defined, also those of nested scopes, each once.
    pub symbols: Vec<Name>,
    /// The blocks open at the end.
    pub end: BlockState,
    /// The diagnostics, in order of position.
    pub diagnostics: Vec<Diagnostic<Place>>,
    /// The struct info of parameters, bindings and returned values, in order.
    pub rows: Vec<Row>,
    /// The declared or inferred type of the value returned in this segment.
    pub returned: Option<StructInfo>,
    /// The text of a correct return annotation, if the declared one has mistakes.
    pub return_text: Option<Box<str>>,
    /// The known elements of the returned value.
    pub returned_values: Known,
    /// The index accesses that depend on the function's parameters, to be checked by callers.
    pub requirements: Vec<Requirement>,
    /// The counts of index accesses.
    pub index_sites: IndexSites,
    /// The undefined names, for which the check of the function suggests similar ones.
    pub unresolved: Vec<Unresolved>,
    /// The reported values for which the check of the function searches attributes that give their required types.
    pub wanted: Vec<Wanted>,
    /// The number of statements.
    pub statements: u32,
    /// The typed bindings of the segment, once lowering has asked for them.
    pub recorded: KeptRecord,
}

/// The results of a function's segments, which share their unchanged parts with those of the last check.
pub type SegmentResults = Chunks<Arc<SegmentResult>>;

/// A cache of the typed bindings of a segment, which its result determines: a segment that an edit does not touch is
/// not elaborated again for lowering. Whether the cache is filled is not observable.
#[derive(Clone, Debug, Default)]
pub struct KeptRecord(Arc<OnceLock<Recorded>>);

impl KeptRecord {
    /// Returns the bindings; calls `record` to create them on first use.
    pub(crate) fn get_or_record(&self, record: impl FnOnce() -> Recorded) -> &Recorded {
        self.0.get_or_init(record)
    }
}

impl PartialEq for KeptRecord {
    fn eq(&self, _: &KeptRecord) -> bool {
        true
    }
}

/// The typed bindings of a segment of a Relax function.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The bindings, in order; their origins count statements from the start of the segment.
    pub bindings: Vec<Binding>,
    /// The returned value, if the segment returns.
    pub returned: Option<IrExpr>,
    /// The variables of its `R.output`s, each with the ordinal of its dataflow block.
    pub outputs: Vec<(u32, Name)>,
    /// The attributes of its `R.func_attr`.
    pub attributes: Vec<(Arc<str>, Attr)>,
}

/// The annotations to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotate {
    /// Only those that are missing.
    Missing,
    /// Also those that are less precise than the inferred type.
    All,
}

/// The style of written annotations.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The annotations to write.
    pub which: Annotate,
    /// The dialect of the file, in which types are spelled.
    pub dialect: Dialect,
}

/// The annotations of a segment.
#[derive(Debug)]
pub struct Annotated {
    /// The style of the annotations.
    pub style: Style,
    /// The edits of the segment, in order.
    pub edits: Vec<(Span, String)>,
    /// The return annotation of the function, beginning with ` -> `, if the segment returns and the function has no
    /// annotation.
    pub returned: Option<String>,
}
