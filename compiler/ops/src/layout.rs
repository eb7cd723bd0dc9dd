//! Layout strings: `NCHW`, `OIHW16i16o`, `NCHW[4n4c]` (TVM src/s_tir/data_layout.cc).
//!
//! A capital letter is an axis. A number with a small letter is a piece of that size, split off the axis with the same
//! letter. Pieces in brackets share one physical axis. A *plain* shape has one dim per letter; a *physical* shape has
//! one dim per axis of the layout string. For example, the plain `NCHW` shape `[1, 32, 7, 7]` in `NCHW16c` has the
//! physical shape `[1, 2, 7, 7, 16]`, and channel 20 is at outer index 1, inner index 4.

use crate::call::{CallInfo, ParamPlace, Problem};
use rx_base::{Answer, Code, Dim, Fix, counted};
use rx_tir::Expr;

mod conversion;

pub use conversion::Conversion;

/// The letters of axes in a tensor's type, in order.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The maximum size of a piece. TVM stores it in 32 bits.
const MAX_FACTOR: i64 = i32::MAX as i64;

/// A parsed layout string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    text: String,
    axes: Vec<Axis>,
}

/// A physical axis.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Axis {
    /// A capital letter: the axis, or its outer part if pieces are split off.
    Primal(char),
    /// One piece, or several in brackets: capital letters with sizes.
    Packed(Vec<(char, i64)>),
}

impl Layout {
    /// Parses a layout string.
    ///
    /// # Errors
    /// Returns the fault, as a continuation of "the layout …".
    pub fn parse(text: &str) -> Result<Layout, String> {
        let mut axes = Vec::new();
        let mut group: Option<Vec<(char, i64)>> = None;
        let mut factor: Option<i64> = None;
        for letter in text.chars() {
            match (letter, factor) {
                ('0'..='9', _) => {
                    let digit = i64::from(letter.to_digit(10).unwrap_or(0));
                    let value = factor.unwrap_or(0) * 10 + digit;
                    if value > MAX_FACTOR {
                        return Err("has a piece that is too large".to_owned());
                    }
                    factor = Some(value);
                }
                ('a'..='z', Some(size)) if size > 0 => {
                    let piece = (letter.to_ascii_uppercase(), size);
                    match &mut group {
                        Some(pieces) => pieces.push(piece),
                        None => axes.push(Axis::Packed(vec![piece])),
                    }
                    factor = None;
                }
                ('a'..='z', _) => return Err(format!("has no size before `{letter}`, as in `16{letter}`")),
                (_, Some(size)) => return Err(format!("has a size {size} that no small letter follows")),
                ('A'..='Z', None) if group.is_none() => axes.push(Axis::Primal(letter)),
                ('[', None) if group.is_none() => group = Some(Vec::new()),
                (']', None) => match group.take() {
                    Some(pieces) if pieces.len() > 1 => axes.push(Axis::Packed(pieces)),
                    _ => return Err("has brackets around fewer than two pieces".to_owned()),
                },
                _ => return Err(format!("has a character `{letter}` that means nothing there")),
            }
        }
        if factor.is_some() || group.is_some() {
            return Err("ends within a piece".to_owned());
        }
        let layout = Layout { text: text.to_owned(), axes };
        layout.check_letters()?;
        Ok(layout)
    }

    /// Checks that each letter occurs once, and that each piece belongs to a present letter with no other piece.
    fn check_letters(&self) -> Result<(), String> {
        let mut split = Vec::new();
        for (at, axis) in self.axes.iter().enumerate() {
            match axis {
                Axis::Primal(letter) if self.axis_of(*letter) != Some(at) => return Err(format!("has {letter} twice")),
                Axis::Primal(_) => {}
                Axis::Packed(pieces) => {
                    for (letter, _) in pieces {
                        if self.axis_of(*letter).is_none() {
                            return Err(format!("splits {letter} and does not have it"));
                        }
                        if split.contains(letter) {
                            return Err(format!("splits {letter} twice"));
                        }
                        split.push(*letter);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the layout of a tensor of rank `ndim` that is stored in the order of its type, with axes A, B, C, ….
    /// Returns `None` for more than 26 axes.
    pub fn initial(ndim: usize) -> Option<Layout> {
        let letters = LETTERS.get(..ndim)?;
        Some(Layout { text: letters.to_owned(), axes: letters.chars().map(Axis::Primal).collect() })
    }

    /// Renames the letters: the first letter of `from` becomes the first of `to`, and so on; pieces follow their
    /// letters. Returns `None` if a letter of the layout is not in `from` or has no counterpart in `to`.
    pub fn relettered(&self, from: &str, to: &str) -> Option<Layout> {
        let other = |letter: char| to.chars().nth(from.chars().position(|known| known == letter)?);
        let renamed = self.text.chars().map(|c| match c {
            'A'..='Z' => other(c),
            'a'..='z' => other(c.to_ascii_uppercase()).map(|letter| letter.to_ascii_lowercase()),
            c => Some(c),
        });
        Layout::parse(&renamed.collect::<Option<String>>()?).ok()
    }

    /// Returns the layout string.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of physical axes.
    pub fn ndim(&self) -> usize {
        self.axes.len()
    }

    /// Returns the letters of the axes, in the order of the string.
    pub fn letters(&self) -> impl Iterator<Item = char> {
        self.axes.iter().filter_map(|axis| match axis {
            Axis::Primal(letter) => Some(*letter),
            Axis::Packed(_) => None,
        })
    }

    /// Checks that the letters are those of `plain`. Returns the fault as a continuation of "the layout …", or `None`.
    pub(crate) fn wrong_letters(&self, plain: &str) -> Option<String> {
        let missing: Vec<char> = plain.chars().filter(|letter| self.axis_of(*letter).is_none()).collect();
        let unknown: Vec<char> = self.letters().filter(|letter| !plain.contains(*letter)).collect();
        Some(match (&missing[..], &unknown[..]) {
            ([], []) => return None,
            ([], [letter]) => format!("has {letter}, which means nothing here"),
            ([], unknown) => format!("has {}, which mean nothing here", list(unknown)),
            (missing, []) => format!("lacks {}", list(missing)),
            (missing, unknown) => format!("lacks {} and has {} instead", list(missing), list(unknown)),
        })
    }

    /// Whether no axis is split.
    pub fn is_plain(&self) -> bool {
        self.axes.iter().all(|axis| matches!(axis, Axis::Primal(_)))
    }

    /// Returns the letters of each physical axis, with the size for a piece.
    pub(crate) fn axis_pieces(&self) -> impl Iterator<Item = Vec<(char, Option<i64>)>> {
        self.axes.iter().map(|axis| match axis {
            Axis::Primal(letter) => vec![(*letter, None)],
            Axis::Packed(pieces) => pieces.iter().map(|(letter, size)| (*letter, Some(*size))).collect(),
        })
    }

    /// Returns the physical axis of a letter (of its outer part, if it is split).
    pub fn axis_of(&self, letter: char) -> Option<usize> {
        self.axes.iter().position(|axis| *axis == Axis::Primal(letter))
    }

    /// Returns the size of the piece that is split off a letter; 1 if the letter is not split.
    pub(crate) fn factor_of(&self, letter: char) -> i64 {
        let pieces = self.axes.iter().filter_map(|axis| match axis {
            Axis::Primal(_) => None,
            Axis::Packed(pieces) => Some(pieces),
        });
        pieces.flatten().find(|(piece, _)| *piece == letter).map_or(1, |(_, size)| *size)
    }

    /// Returns the plain extents of `letters`, given a physical shape. The extent of a piece is the size that the
    /// layout states.
    pub(crate) fn plain(&self, dims: &[Dim], letters: &str) -> Vec<Dim> {
        let extent = |letter: char| {
            let dim = self.axis_of(letter).and_then(|axis| dims.get(axis));
            dim.map_or(Dim::ERROR, |dim| dim * &Dim::constant(self.factor_of(letter)))
        };
        letters.chars().map(extent).collect()
    }

    /// Returns the physical shape of a tensor whose letters `letters` have the plain extents `extents`.
    pub(crate) fn physical(&self, letters: &str, extents: &[Dim]) -> Vec<Dim> {
        let dim = |axis: &Axis| match axis {
            Axis::Primal(letter) => {
                let extent = letters.chars().zip(extents).find(|(known, _)| known == letter);
                let factor = self.factor_of(*letter);
                let round_up = |dim: &Dim| (dim + &Dim::constant(factor - 1)).floor_div(&Dim::constant(factor));
                extent.map_or(Dim::ERROR, |(_, dim)| if factor == 1 { dim.clone() } else { round_up(dim) })
            }
            Axis::Packed(pieces) => packed_extent(pieces),
        };
        self.axes.iter().map(dim).collect()
    }

    /// Maps plain coordinates of `letters` to a physical index. For a split letter, the quotient by the piece's size is
    /// the index of the outer axis and the remainder the index of the piece.
    pub(crate) fn index(&self, letters: &str, coordinates: &[Expr]) -> Vec<Expr> {
        let coordinate = |letter: char| {
            let found = letters.chars().zip(coordinates).find(|(known, _)| *known == letter);
            found.map_or(Expr::int(0), |(_, coordinate)| coordinate.clone())
        };
        let index = |axis: &Axis| match axis {
            Axis::Primal(letter) => coordinate(*letter).floor_div(Expr::int(self.factor_of(*letter))),
            Axis::Packed(pieces) => pieces.iter().fold(Expr::int(0), |index, (letter, size)| {
                index * Expr::int(*size) + coordinate(*letter).floor_mod(Expr::int(*size))
            }),
        };
        self.axes.iter().map(index).collect()
    }

    /// Maps a physical index to the plain coordinates of `letters`: the inverse of [`Layout::index`].
    pub(crate) fn coordinates(&self, letters: &str, index: &[Expr]) -> Vec<Expr> {
        let coordinate = |letter: char| {
            let whole = self.axis_of(letter).and_then(|axis| index.get(axis)).cloned().unwrap_or(Expr::int(0));
            match self.piece(letter, index) {
                Some(piece) => whole * Expr::int(self.factor_of(letter)) + piece,
                None => whole,
            }
        };
        letters.chars().map(coordinate).collect()
    }

    /// Returns the index within the piece that is split off `letter`.
    fn piece(&self, letter: char, index: &[Expr]) -> Option<Expr> {
        self.axes.iter().zip(index).find_map(|(axis, index)| {
            let Axis::Packed(pieces) = axis else { return None };
            let at = pieces.iter().position(|(piece, _)| *piece == letter)?;
            let (outer, inner) = pieces.split_at(at + 1);
            let below = inner.iter().fold(1i64, |product, (_, size)| product.saturating_mul(*size));
            let index = index.clone().floor_div(Expr::int(below));
            // The outermost piece needs no modulo, since its quotient is already in range.
            Some(if outer.len() == 1 { index } else { index.floor_mod(Expr::int(self.factor_of(letter))) })
        })
    }

    /// Whether a tensor of these plain extents fills its physical shape without padding: each split letter's extent is
    /// a multiple of its piece.
    pub fn is_filled_by(&self, letters: &str, extents: &[Dim]) -> bool {
        letters
            .chars()
            .zip(extents)
            .all(|(letter, extent)| extent.floor_mod(&Dim::constant(self.factor_of(letter))).as_constant() == Some(0))
    }

    /// Returns the first physical axis whose extent can never be the size that the layout states, with that size.
    fn wrong_piece(&self, call: &CallInfo<'_>, dims: &[Dim]) -> Option<(usize, Dim)> {
        self.axes.iter().zip(dims).enumerate().find_map(|(at, (axis, dim))| match axis {
            Axis::Primal(_) => None,
            Axis::Packed(pieces) => {
                let wanted = packed_extent(pieces);
                (call.equal(dim, &wanted) == Answer::Refuted).then_some((at, wanted))
            }
        })
    }

    /// Describes a physical axis: `axis 1 (C of NCHW)`, or `axis 4 (16c of NCHW16c)`.
    pub(crate) fn describe(&self, axis: usize) -> String {
        let part = match self.axes.get(axis) {
            Some(Axis::Primal(letter)) => letter.to_string(),
            Some(Axis::Packed(pieces)) => {
                pieces.iter().map(|(letter, size)| format!("{size}{}", letter.to_ascii_lowercase())).collect()
            }
            None => return format!("axis {axis}"),
        };
        format!("axis {axis} ({part} of {})", self.text)
    }

    /// Returns the layout string with two letters exchanged; pieces follow their letters.
    pub(crate) fn swapped(&self, a: char, b: char) -> String {
        let exchange = |from: char, to: char, letter: char| match letter {
            _ if letter == from => Some(to),
            _ if letter == from.to_ascii_lowercase() => Some(to.to_ascii_lowercase()),
            _ => None,
        };
        self.text.chars().map(|c| exchange(a, b, c).or_else(|| exchange(b, a, c)).unwrap_or(c)).collect()
    }
}

fn packed_extent(pieces: &[(char, i64)]) -> Dim {
    pieces.iter().fold(Dim::constant(1), |product, (_, size)| &product * &Dim::constant(*size))
}

/// Returns the layout that an attribute names, which must have exactly the letters of `plain`. An absent attribute
/// gives `default`.
///
/// # Errors
/// Reports a string that is not a layout, or a layout with other letters.
pub(crate) fn layout_attr(
    call: &CallInfo<'_>,
    name: &'static str,
    plain: &str,
    default: Option<&Layout>,
) -> Result<Layout, Problem> {
    let (text, given) = match (call.str(name), default) {
        (Some(text), _) => (text, Layout::parse(text)),
        (None, Some(default)) => return Ok(default.clone()),
        // A value that is not a string was reported when the attribute's type was checked.
        (None, None) => return Err(Problem::Propagate),
    };
    let wrong = match given {
        Ok(layout) => match layout.wrong_letters(plain) {
            None => return Ok(layout),
            Some(why) => why,
        },
        Err(why) => why,
    };
    let message = format_args!("{name} \"{text}\" {wrong}");
    let letters: Vec<char> = plain.chars().collect();
    Err(call
        .error(Code::UnknownLayout, ParamPlace::Param(name), message)
        .with_note(format!("`{name}` is made of the letters {}, as in \"{plain}\" or \"{plain}16c\"", list(&letters)))
        .with_help(format!("use {name}=\"{plain}\""))
        .with_fix(layout_fix(name, plain))
        .into())
}

/// Creates the fix that replaces the attribute by another layout.
pub(crate) fn layout_fix(name: &'static str, layout: &str) -> Fix<ParamPlace> {
    Fix {
        title: format!("use {name}=\"{layout}\""),
        edits: vec![(ParamPlace::Param(name), format!("\"{layout}\""))],
        safe: false,
    }
}

fn list(letters: &[char]) -> String {
    letters.iter().map(char::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the dims of tensor argument `name`, checked against its layout; `None` if they are unknown.
///
/// # Errors
/// Reports a rank other than the layout's, and a packed axis whose size differs from the layout's.
pub(crate) fn laid_out_dims<'a>(
    call: &CallInfo<'a>,
    name: &'static str,
    layout: &Layout,
) -> Result<Option<&'a [Dim]>, Problem> {
    let tensor = call.tensor(name)?;
    let ndim = layout.ndim();
    if let Some(given) = tensor.shape.ndim().filter(|given| *given != ndim) {
        let message =
            format_args!("`{name}` has {}, layout \"{}\" has {ndim}", counted(given, "dimension"), layout.text());
        let report = call.operand_error(Code::TensorNdimMismatch, name, message);
        let batch_missing = layout.is_plain() && layout.axis_of('N') == Some(0) && given.checked_add(1) == Some(ndim);
        return Err(match batch_missing {
            true => report.with_help(format!(
                "is the batch axis missing? `R.expand_dims({}, axis=[0])` adds one",
                call.written(name)
            )),
            false => report,
        }
        .into());
    }
    let Some(dims) = tensor.shape.dims() else { return Ok(None) };
    if let Some((axis, wanted)) = layout.wrong_piece(call, dims) {
        let dim = dims.get(axis).unwrap_or(&Dim::ERROR);
        let message = format_args!("{} of `{name}` is {dim}, the layout says {wanted}", layout.describe(axis));
        return Err(call.operand_error(Code::ShapeMismatch, name, message).into());
    }
    Ok(Some(dims))
}

#[cfg(test)]
mod tests {
    use super::Layout;
    use crate::tests::dims;
    use rx_base::Dim;
    use rx_tir::Expr;

    fn layout(text: &str) -> Layout {
        Layout::parse(text).unwrap_or_else(|why| panic!("{text} {why}"))
    }

    #[test]
    fn layout_strings_are_letters_and_pieces() {
        assert_eq!(layout("NCHW16c").ndim(), 5);
        assert_eq!(layout("NCHW16c").factor_of('C'), 16);
        assert_eq!(layout("OIHW[2i4o]").ndim(), 5);
        assert_eq!(layout("OIHW16i").swapped('O', 'I'), "IOHW16o");
        assert_eq!(Layout::initial(4), Some(layout("ABCD")));
        assert_eq!(layout("NCHW4c").relettered("NHWC", "ABCD"), Some(layout("ADBC4d")));
        assert_eq!(layout("NCHW4c").relettered("NCW", "ABC"), None);
        for bad in ["NCHWC", "NCHWc", "NCHW0c", "NCHW16", "NHW4c", "NC HW", "NCHW[4c]", "NCHW[2n", "NCHW99999999999c"] {
            assert!(Layout::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn indices_map_between_layouts_and_back() {
        let layout = layout("NHW[2w4c]C");
        let coordinates = [3, 9, 5, 7].map(Expr::int);
        let index = layout.index("NCHW", &coordinates);
        assert_eq!(index, [3, 5, 3, 5, 2].map(Expr::int));
        assert_eq!(layout.coordinates("NCHW", &index), coordinates);
        assert!(layout.is_filled_by("NCHW", &dims("n 8 h 4")));
        assert!(!layout.is_filled_by("NCHW", &dims("n 8 h 5")));
        assert!(!layout.is_filled_by("NCHW", &dims("n c h 4")));
    }

    #[test]
    fn shapes_map_between_layouts() {
        let packed = layout("NCHW16c");
        let plain = packed.plain(&dims("2 4 28 w 16"), "NCHW");
        assert_eq!(plain, dims("2 64 28 w"));
        assert_eq!(packed.physical("NCHW", &plain), dims("2 4 28 w 16"));
        assert_eq!(layout("NHWC").physical("NCHW", &plain), dims("2 28 w 64"));
        // A channel count that is not a multiple of the piece's size is rounded up, as in TVM.
        assert_eq!(packed.physical("NCHW", &dims("1 20 1 1")), dims("1 2 1 1 16"));
        // A symbolic extent of a packed axis counts as the size that the layout states.
        assert_eq!(packed.plain(&dims("n c h w k"), "C"), [&dims("c")[0] * &Dim::constant(16)]);
    }
}
