//! Inlay hints: inferred types after names without an annotation.

use rx_analysis::elaborate::{Row, RowKind};
use rx_base::fix::Edit;
use rx_db::{Annotate, FileView};
use rx_ir::{Shape, StructInfo};
use std::ops::Range;

/// The parts of types that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintParts {
    /// Whether shapes are shown.
    pub shapes: bool,
    /// Whether dtypes are shown.
    pub dtypes: bool,
}

/// A type that is shown in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The byte offset before which it is shown.
    pub offset: u32,
    /// The displayed text.
    pub label: String,
    /// The complete type.
    pub full: String,
    /// The edit that writes the type into the text.
    pub edit: Option<Edit>,
}

/// The maximal length of a label, in characters.
const LONGEST: usize = 60;

/// Returns the hints of the bytes `range` of a file: for bindings without an annotation and for functions without a
/// return annotation. Reads only the segments in the range.
pub fn hints(view: &FileView<'_>, range: Range<usize>, parts: HintParts) -> Vec<Hint> {
    if !(parts.shapes || parts.dtypes) {
        return Vec::new();
    }
    // The hints are at the places where annotations can be written.
    let edits = view.workspace().annotations(view.file(), Annotate::Missing, Some(range.clone()));
    edits.into_iter().filter_map(|edit| hint(view, edit, parts)).collect()
}

fn hint(view: &FileView<'_>, edit: Edit, parts: HintParts) -> Option<Hint> {
    let (span, text) = &edit;
    let offset = span.start;
    let (lead, full) = match text.strip_prefix(" -> ") {
        Some(full) => (" -> ", full),
        None => (": ", text.strip_prefix(": ")?),
    };
    let ty = if lead == ": " { row_type(view, offset) } else { returned(view, offset) };
    let label = format!("{lead}{}", cut(&short(ty.as_ref(), full, parts)?));
    Some(Hint { offset, label, full: full.to_owned(), edit: Some(edit) })
}

/// Returns the type of the binding whose name ends at a byte.
fn row_type(view: &FileView<'_>, offset: u32) -> Option<StructInfo> {
    let document = view.document();
    let location = document.locate((offset as usize).checked_sub(1)?)?;
    let check = view.check(location.item)?;
    let end = u32::try_from(location.offset).ok()? + 1;
    let rows = &check.segments.get(location.segment)?.rows;
    let of_it = |row: &&Row| row.span.end == end && row.kind == RowKind::Binding;
    rows.iter().find(of_it).map(|row| row.ty.clone())
}

/// Returns the return type of the function whose header ends at a byte. `None` for a nested function, whose inferred
/// return type is not stored.
fn returned(view: &FileView<'_>, offset: u32) -> Option<StructInfo> {
    let location = view.document().locate((offset as usize).checked_sub(1)?)?;
    let check = view.check(location.item).filter(|_| location.segment == 0)?;
    check.returned.clone()
}

/// Returns the selected parts of a type; `full` if the type has no such parts. `None` if nothing is left.
fn short(ty: Option<&StructInfo>, full: &str, parts: HintParts) -> Option<String> {
    if parts.shapes && parts.dtypes {
        return Some(full.to_owned());
    }
    match ty? {
        StructInfo::Tensor(tensor) if parts.dtypes => tensor.dtype.map(|dtype| format!("\"{dtype}\"")),
        StructInfo::Tensor(tensor) => shape(&tensor.shape),
        StructInfo::Shape(known) if parts.shapes => shape(known),
        StructInfo::Tuple(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| short(Some(field), "…", parts).unwrap_or_else(|| "…".to_owned())).collect();
            Some(format!("({})", fields.join(", ")))
        }
        _ if parts.shapes => Some(full.to_owned()),
        _ => None,
    }
}

/// Formats a shape; its rank if only that is known.
pub(crate) fn shape(shape: &Shape) -> Option<String> {
    match shape.dims() {
        Some(dims) => {
            let comma = if dims.len() == 1 { "," } else { "" };
            Some(format!("({}{comma})", dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")))
        }
        None => shape.ndim().map(|ndim| format!("ndim={ndim}")),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
