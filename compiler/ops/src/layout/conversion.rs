//! Conversion between two layouts: a permutation of axes, or an index map that splits and merges axes.

use super::{Axis, Layout};

/// An operation that converts a tensor from one layout to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// A permutation, as the argument of `permute_dims`: for each result axis, the axis of the tensor.
    Permuted(Vec<usize>),
    /// An index map, as the argument of `layout_transform`: `lambda i0, i1: (i0, i1 // 4, i1 % 4)`.
    Mapped(String),
}

/// A function that names an axis's index, given the axis's position and the letters (with sizes, for pieces) that share
/// the axis.
pub type IndexName<'a> = dyn Fn(usize, &[(char, Option<i64>)]) -> String + 'a;

impl Layout {
    /// Returns the conversion from this layout to `to`; `None` if the letters differ. `name` names the indices of this
    /// layout.
    pub fn conversion(&self, to: &Layout, name: &IndexName<'_>) -> Option<Conversion> {
        let sorted = |layout: &Layout| {
            let mut letters: Vec<char> = layout.letters().collect();
            letters.sort_unstable();
            letters
        };
        if sorted(self) != sorted(to) {
            return None;
        }
        let permuted = to.axes.iter().map(|axis| self.axes.iter().position(|own| own == axis));
        if let (Some(axes), true) = (permuted.collect(), self.ndim() == to.ndim()) {
            return Some(Conversion::Permuted(axes));
        }
        let names: Vec<String> = self.axis_pieces().enumerate().map(|(at, pieces)| name(at, &pieces)).collect();
        let indices: Vec<String> = to.axes.iter().map(|axis| self.mapped(axis, to, &names)).collect::<Option<_>>()?;
        let comma = if indices.len() == 1 { "," } else { "" };
        Some(Conversion::Mapped(format!("lambda {}: ({}{comma})", names.join(", "), indices.join(", "))))
    }

    /// Returns the index expression for an axis of `to`, given the names of the indices of this layout.
    fn mapped(&self, axis: &Axis, to: &Layout, names: &[String]) -> Option<String> {
        match axis {
            Axis::Primal(letter) => {
                let (own, wanted) = (self.factor_of(*letter), to.factor_of(*letter));
                match wanted {
                    1 => self.coordinate(*letter, names),
                    _ if own == wanted => names.get(self.axis_of(*letter)?).cloned(),
                    _ => Some(format!("{} // {wanted}", bracketed(&self.coordinate(*letter, names)?))),
                }
            }
            Axis::Packed(pieces) => {
                let digits = pieces.iter().map(|(letter, size)| {
                    let digit = match self.factor_of(*letter) == *size {
                        true => self.named_piece(*letter, names)?,
                        false => format!("{} % {size}", bracketed(&self.coordinate(*letter, names)?)),
                    };
                    Some((digit, *size))
                });
                let digits: Vec<(String, i64)> = digits.collect::<Option<_>>()?;
                let joined = |whole: (String, i64), (digit, size): (String, i64)| {
                    (format!("{} * {size} + {}", bracketed(&whole.0), bracketed(&digit)), size)
                };
                digits.into_iter().reduce(joined).map(|(index, _)| index)
            }
        }
    }

    /// Returns the plain coordinate of a letter: its outer index times the size of the piece, plus the index in the
    /// piece.
    fn coordinate(&self, letter: char, names: &[String]) -> Option<String> {
        let whole = names.get(self.axis_of(letter)?)?;
        Some(match self.factor_of(letter) {
            1 => whole.clone(),
            factor => format!("{whole} * {factor} + {}", bracketed(&self.named_piece(letter, names)?)),
        })
    }

    /// Returns the index within the piece that is split off a letter.
    fn named_piece(&self, letter: char, names: &[String]) -> Option<String> {
        self.axes.iter().zip(names).find_map(|(axis, name)| {
            let Axis::Packed(pieces) = axis else { return None };
            let at = pieces.iter().position(|(piece, _)| *piece == letter)?;
            let below = pieces.iter().skip(at + 1).fold(1i64, |product, (_, size)| product.saturating_mul(*size));
            let outer = if below == 1 { name.clone() } else { format!("{name} // {below}") };
            Some(if at == 0 { outer } else { format!("{} % {}", bracketed(&outer), self.factor_of(letter)) })
        })
    }
}

/// Puts an expression in parentheses, unless it is a single name.
fn bracketed(expression: &str) -> String {
    if expression.contains(' ') { format!("({expression})") } else { expression.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::Conversion;
    use crate::layout::Layout;

    fn convert(from: &str, to: &str) -> Option<String> {
        let [from, to] = [from, to].map(|text| Layout::parse(text).unwrap_or_else(|why| panic!("{text} {why}")));
        from.conversion(&to, &|axis, _| format!("i{axis}")).map(|conversion| match conversion {
            Conversion::Permuted(axes) => format!("{axes:?}"),
            Conversion::Mapped(lambda) => lambda,
        })
    }

    #[test]
    fn axes_are_permuted_split_and_joined() {
        for (from, to, wanted) in [
            ("NCHW", "NHWC", "[0, 2, 3, 1]"),
            ("NCHW4c", "NHWC4c", "[0, 2, 3, 1, 4]"),
            ("ABCD", "ACDB4b", "lambda i0, i1, i2, i3: (i0, i2, i3, i1 // 4, i1 % 4)"),
            ("ACDB4b", "ABCD", "lambda i0, i1, i2, i3, i4: (i0, i3 * 4 + i4, i1, i2)"),
            ("AB4b", "AB8b", "lambda i0, i1, i2: (i0, (i1 * 4 + i2) // 8, (i1 * 4 + i2) % 8)"),
            ("AB4b", "BA4b2a", "lambda i0, i1, i2: (i1, i0 // 2, i2, i0 % 2)"),
            ("AB", "AB[2a4b]", "lambda i0, i1: (i0 // 2, i1 // 4, (i0 % 2) * 4 + (i1 % 4))"),
            ("A4a", "A", "lambda i0, i1: (i0 * 4 + i1,)"),
            ("AB[2a4b]", "AB", "lambda i0, i1, i2: (i0 * 2 + (i2 // 4), i1 * 4 + (i2 % 4))"),
        ] {
            assert_eq!(convert(from, to).as_deref(), Some(wanted), "{from} {to}");
        }
        assert_eq!(convert("NCHW", "NCDHW"), None);
    }
}
