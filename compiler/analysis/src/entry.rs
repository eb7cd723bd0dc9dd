//! Definitions of names, and the places of diagnostics.

use rx_base::symbolic::Bounds;
use rx_base::{Code, DType, Diagnostic, Fix, Name, Span};
use rx_context::ItemPart;
use rx_ir::{Known, Signature, StructInfo, Summary};
use std::sync::Arc;

/// A place that does not change when the text around it moves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Bytes of the segment in which the diagnostic was found.
    Here(Span),
    /// The last definition of a name in an earlier segment of the same function.
    Definition(Name),
    /// A part of another item of the module.
    Item(Name, ItemPart),
}

impl Place {
    /// Returns the place of an item's parameter with this index.
    pub(crate) fn param(item: Name, index: usize) -> Place {
        Place::Item(item, ItemPart::Param(u32::try_from(index).unwrap_or(u32::MAX)))
    }
}

/// Creates a diagnostic at a span of the segment in which it is found.
pub(crate) fn mistake(code: Code, span: Span, message: impl Into<String>) -> Diagnostic<Place> {
    Diagnostic::new(code, Place::Here(span), message)
}

/// Creates the fix that replaces a span of the segment by a text.
pub(crate) fn replace_fix(place: Span, title: impl Into<String>, text: impl Into<String>) -> Fix<Place> {
    Fix { title: title.into(), edits: vec![(Place::Here(place), text.into())], safe: false }
}

/// Adds a "did you mean" to the diagnostic of a misspelled string at `place`.
pub(crate) fn suggest_string(diagnostic: Diagnostic<Place>, place: Span, near: Option<&str>) -> Diagnostic<Place> {
    let Some(near) = near else { return diagnostic };
    let near = format!("\"{near}\"");
    diagnostic.with_help(format!("did you mean {near}?")).with_fix(replace_fix(
        place,
        format!("change to {near}"),
        near,
    ))
}

/// The definition of a name at some point of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A variable or parameter.
    Value {
        /// Its struct info.
        ty: StructInfo,
        /// The dataflow block it is local to, by ordinal in its function.
        dataflow: Option<u32>,
        /// Its known elements.
        values: Known,
        /// The types it may have, where these are more precise than `ty`: one for each branch of an `if`, or the
        /// value's type where an annotation is less precise.
        branch_types: Option<Arc<[StructInfo]>>,
    },
    /// A symbolic dim.
    Symbol {
        /// Whether its value is known from here on; false if it was only declared.
        bound: bool,
        /// The dtype of its declaration: int64 for dims; any integer dtype for scalars (`n = T.uint8()`).
        dtype: DType,
    },
    /// The module: `cls` after `cls = Module`.
    Module,
    /// A name of the enclosing Python program; its use is reported once.
    Captured,
    /// The data of the function's header, under a name that no program can write.
    Function(Arc<FunctionContext>),
    /// The facts about the function's symbols that have been established up to here, under a name that no program can
    /// write.
    Facts(Arc<Bounds>),
}

impl Entry {
    /// Creates the entry of a variable that is visible in the whole function.
    pub fn value(ty: StructInfo) -> Entry {
        Entry::Value { ty, dataflow: None, values: None, branch_types: None }
    }
}

/// The name under which the data of a function's header is defined; `<` keeps programs from writing it.
pub const FUNCTION_CONTEXT: &str = "<function>";

/// The name under which the facts about a function's symbols are defined.
pub const FACTS: &str = "<facts>";

/// The data of the header that the function's statements need.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionContext {
    /// The function's name.
    pub name: Name,
    /// The number of parameters.
    pub params: usize,
    /// The declared return type.
    pub ret: Option<StructInfo>,
    /// Whether impure calls are mistakes in the function.
    pub pure: bool,
    /// Whether the function is not visible outside its module.
    pub private: bool,
    /// The bounds of symbols that its attributes state.
    pub bounds: Arc<Bounds>,
    /// The number of leading parameters that are inputs and not weights, if its attributes state it.
    pub num_input: Option<i64>,
    /// The dims of its signature.
    pub dims: SignatureDims,
}

/// The dims that a function's return annotation may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureDims {
    /// The symbols that parameters bind, sorted.
    pub bound: Vec<Name>,
    /// Whether the symbols are type parameters, as in `def f[n](…)`, which are written without quotes.
    pub type_params: bool,
}

/// The queries of an elaboration about the code outside its segment. Every answer is recorded and is part of the key
/// under which the result is memoized.
pub trait Outer {
    /// Returns the last definition of `name` before this segment.
    fn lookup(&self, name: Name) -> Option<Entry>;
    /// Returns the signature of the module's item `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// Returns the summary of the values that the module's function `name` returns; queried only if elements of an
    /// argument are known.
    fn summary(&self, name: Name) -> Option<Arc<Summary>>;
}
