//! Generates Relax text that converts a tensor from one layout to another, for fixes of diagnostics.

use crate::layout::{self, Layout};

/// Text to put around an expression, so that a tensor in one layout becomes a tensor in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The text before the expression.
    pub before: String,
    /// The text after the expression.
    pub after: String,
    /// The operator in the text: `permute_dims` or `layout_transform`.
    pub operator: &'static str,
}

/// Returns the conversion from layout `from` to layout `to`; `None` if the letters differ or a layout is invalid.
/// Indices are named by their letter, or for a piece by letter and size: `h`, `c4`.
pub fn convert(from: &str, to: &str) -> Option<Conversion> {
    let (from, to) = (Layout::parse(from).ok()?, Layout::parse(to).ok()?);
    let name = |_: usize, pieces: &[(char, Option<i64>)]| {
        let piece = |(letter, size): &(char, Option<i64>)| {
            format!("{}{}", letter.to_ascii_lowercase(), size.map(|size| size.to_string()).unwrap_or_default())
        };
        pieces.iter().map(piece).collect::<String>()
    };
    Some(match from.conversion(&to, &name)? {
        layout::Conversion::Permuted(axes) => Conversion {
            before: "R.permute_dims(".to_owned(),
            after: format!(", axes={axes:?})"),
            operator: "permute_dims",
        },
        layout::Conversion::Mapped(lambda) => Conversion {
            before: "R.layout_transform(".to_owned(),
            after: format!(", index_map={lambda})"),
            operator: "layout_transform",
        },
    })
}

/// Returns the plain layout with the same letters in the same order: `NCHW` for `NCHW4c`. Returns `None` if the layout
/// is invalid.
pub fn plain(layout: &str) -> Option<String> {
    Some(Layout::parse(layout).ok()?.letters().collect())
}

#[cfg(test)]
mod tests {
    use super::{convert, plain};

    fn around(from: &str, to: &str) -> Option<String> {
        convert(from, to).map(|conversion| format!("{}x{}", conversion.before, conversion.after))
    }

    #[test]
    fn plain_layouts_are_permuted() {
        assert_eq!(around("NHWC", "NCHW").as_deref(), Some("R.permute_dims(x, axes=[0, 3, 1, 2])"));
        assert_eq!(around("HWOI", "IOHW").as_deref(), Some("R.permute_dims(x, axes=[3, 2, 0, 1])"));
        assert_eq!(around("NCHW", "NCDHW"), None);
        assert_eq!(around("NCH", "N4"), None);
    }

    #[test]
    fn split_axes_are_joined_and_joined_ones_split() {
        let joined = "R.layout_transform(x, index_map=lambda n, c, h, w, c4: (n, c * 4 + c4, h, w))";
        assert_eq!(around("NCHW4c", "NCHW").as_deref(), Some(joined));
        let split = "R.layout_transform(x, index_map=lambda n, c, h, w: (n, c // 4, h, w, c % 4))";
        assert_eq!(around("NCHW", "NCHW4c").as_deref(), Some(split));
        assert_eq!(plain("OIHW4i4o").as_deref(), Some("OIHW"));
    }
}
