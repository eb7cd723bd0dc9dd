//! What a name stands for, and the places diagnostics speak of.

use rx_base::symbolic::Bounds;
use rx_base::{Code, DType, Diagnostic, Fix, Name, Span};
use rx_context::ItemPart;
use rx_ir::{Known, Signature, StructInfo, Summary};
use std::sync::Arc;

/// A place in terms that do not move when the text around it does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Bytes of the segment the diagnostic was found in.
    Here(Span),
    /// Where a name of an earlier segment of the same function was last defined.
    Definition(Name),
    /// A part of another item of the module.
    Item(Name, ItemPart),
}

impl Place {
    /// The parameter of an item that has this index.
    pub(crate) fn param(item: Name, index: usize) -> Place {
        Place::Item(item, ItemPart::Param(u32::try_from(index).unwrap_or(u32::MAX)))
    }
}

/// A diagnostic at some bytes of the segment it is found in.
pub(crate) fn mistake(code: Code, span: Span, message: impl Into<String>) -> Diagnostic<Place> {
    Diagnostic::new(code, Place::Here(span), message)
}

/// The fix that writes something else at a place of the segment.
pub(crate) fn replace_fix(place: Span, title: impl Into<String>, text: impl Into<String>) -> Fix<Place> {
    Fix { title: title.into(), edits: vec![(Place::Here(place), text.into())], safe: false }
}

/// Adds a "did you mean" to a diagnostic of a misspelled string at `place`.
pub(crate) fn suggest_string(diagnostic: Diagnostic<Place>, place: Span, near: Option<&str>) -> Diagnostic<Place> {
    let Some(near) = near else { return diagnostic };
    let near = format!("\"{near}\"");
    diagnostic.with_help(format!("did you mean {near}?")).with_fix(replace_fix(
        place,
        format!("change to {near}"),
        near,
    ))
}

/// What a name stands for at some point of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A variable or parameter.
    Value {
        /// Its struct info.
        ty: StructInfo,
        /// The dataflow block it is local to, by ordinal in its function.
        dataflow: Option<u32>,
        /// What is known of its elements.
        values: Known,
        /// The type it has for each way to it, where that says more than `ty`: each branch of an `if` has its own, and an
        /// annotation may say less than its value.
        ways: Option<Arc<[StructInfo]>>,
    },
    /// A symbolic dim; not `bound` when it was declared and nothing gave it a value yet.
    Symbol {
        /// Whether its value is known from here on.
        bound: bool,
        /// The dtype of its declaration: int64 for dims; any integer dtype for scalars (`n = T.uint8()`).
        dtype: DType,
    },
    /// The module: `cls` after `cls = Module`.
    Module,
    /// A name of the surrounding Python program, reported once.
    Captured,
    /// What the function's header says; under a name no program can write.
    Function(Arc<FunctionContext>),
    /// What was learned of the function's symbols up to here; under a name no program can write.
    Facts(Arc<Bounds>),
}

impl Entry {
    /// A variable visible in the whole function.
    pub fn value(ty: StructInfo) -> Entry {
        Entry::Value { ty, dataflow: None, values: None, ways: None }
    }
}

/// The name under which a function's header stands in its scope; `<` keeps programs from writing it.
pub const FUNCTION_CONTEXT: &str = "<function>";

/// The name under which what was learned of a function's symbols stands in its scope.
pub const FACTS: &str = "<facts>";

/// What the statements of a function need of its header.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionContext {
    /// Its name.
    pub name: Name,
    /// How many parameters it has.
    pub params: usize,
    /// The declared return type.
    pub ret: Option<StructInfo>,
    /// Whether impure calls are mistakes in it.
    pub pure: bool,
    /// Whether it has no name outside its module.
    pub private: bool,
    /// What its attributes say of its symbols.
    pub bounds: Arc<Bounds>,
    /// How many leading parameters are inputs and no weights, where its attributes say so.
    pub num_input: Option<i64>,
    /// The dims of its signature.
    pub dims: SignatureDims,
}

/// The dims a function's return annotation may speak of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureDims {
    /// Symbols that parameters bind, sorted.
    pub bound: Vec<Name>,
    /// Whether they are type parameters, `def f[n](…)`, so that everything is written bare.
    pub type_params: bool,
}

/// What an elaboration asks of the world outside its segment. Every answer is recorded and is part of the memo's key.
pub trait Outer {
    /// The last definition of `name` before this segment.
    fn lookup(&self, name: Name) -> Option<Entry>;
    /// The signature of the module's item `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// The summary of the values that the module's function `name` returns; asked only if a value of an argument is known.
    fn summary(&self, name: Name) -> Option<Arc<Summary>>;
}
