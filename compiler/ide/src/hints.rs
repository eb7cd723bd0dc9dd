//! Inferred types beside the names that have no annotation.

use rx_analysis::elaborate::{Row, RowKind};
use rx_base::fix::Edit;
use rx_db::{Annotate, FileView};
use rx_ir::{Shape, StructInfo};
use std::ops::Range;

/// Which parts of types are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintParts {
    /// Shapes.
    pub shapes: bool,
    /// Dtypes.
    pub dtypes: bool,
}

/// A type shown in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The byte that it stands before.
    pub offset: u32,
    /// What is shown.
    pub label: String,
    /// All of the type.
    pub full: String,
    /// What writes it into the text.
    pub edit: Option<Edit>,
}

/// The most characters of a label.
const LONGEST: usize = 60;

/// The hints of bytes `range` of a file: of bindings without an annotation, and of undeclared returns. Only the segments
/// there are looked at.
pub fn hints(view: &FileView<'_>, range: Range<usize>, parts: HintParts) -> Vec<Hint> {
    if !(parts.shapes || parts.dtypes) {
        return Vec::new();
    }
    // What can be written is what is shown, and where.
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

/// The type of the binding whose name ends at a byte.
fn row_type(view: &FileView<'_>, offset: u32) -> Option<StructInfo> {
    let document = view.document();
    let location = document.locate((offset as usize).checked_sub(1)?)?;
    let check = view.check(location.item)?;
    let end = u32::try_from(location.offset).ok()? + 1;
    let rows = &check.segments.get(location.segment)?.rows;
    let of_it = |row: &&Row| row.span.end == end && row.kind == RowKind::Binding;
    rows.iter().find(of_it).map(|row| row.ty.clone())
}

/// What the function returns whose header ends at a byte; of a nested one nothing is kept but what is written.
fn returned(view: &FileView<'_>, offset: u32) -> Option<StructInfo> {
    let location = view.document().locate((offset as usize).checked_sub(1)?)?;
    let check = view.check(location.item).filter(|_| location.segment == 0)?;
    check.returned.clone()
}

/// The parts of a type that are shown; `full` where it has no such parts. `None` where nothing is left.
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

/// A shape as people write it; its rank where that is all that is known.
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
