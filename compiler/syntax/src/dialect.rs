//! The dialects of TVMScript, which differ in the spelling of some names and in the declaration of symbolic dims.
//!
//! The *canonical* spelling is that of TVM 0.27. Code that reads text converts it with [`Dialect::canonical_call`] and
//! its siblings, and then handles only the canonical spelling. Code that prints text uses [`Dialect::spell_call`] and
//! its siblings. For example, `R.call_tir(f, (x,), out_sinfo=t)` in classic text has the canonical keyword `out_ty`.

mod detect;

pub(crate) use detect::Evidence;

use rx_base::TvmVersion;
use std::fmt;
use std::str::FromStr;

/// A dialect of TVMScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// The output of TVM 0.27 on Python before 3.12: `n = TypeVar("n")` before the module.
    #[default]
    Tvm027,
    /// The output of TVM 0.27 on Python 3.12 and later: `def main[n](…)`.
    Tvm027Py312,
    /// TVM 0.13 to 0.2x: `R.Object`, `out_sinfo=`, `T.block`, `"n"` in signatures with `n = T.int64()` in the body.
    Classic,
}

/// The way in which a dialect declares the symbolic dims of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimStyle {
    /// `n = TypeVar("n")` before the module. In the signature a single name is bare, `n`, and an expression is quoted,
    /// `"n + 1"`.
    TypeVar,
    /// `def f[n](…)`. In the signature all dims are bare.
    TypeParam,
    /// `"n"` and `"n + 1"`, quoted in the signature, and `n = T.int64()` at the start of the body.
    Body,
}

/// The syntactic position to which a row of [`SPELLINGS`] applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A dotted name, called or not.
    Path,
    /// A keyword argument's name.
    Keyword,
    /// The prefix of a key in `func_attr`, `sblock_attr` and `module_attrs`.
    AttrPrefix,
    /// The key in `metadata["key"][0]`.
    MetadataKey,
    /// The name in `from tvm.script import …`.
    Import,
}

/// One spelling that differs between the current and the classic dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spelling {
    /// The syntactic position.
    pub place: Place,
    /// The spelling in TVM 0.27.
    pub current: &'static str,
    /// The spelling in TVM up to 0.2x.
    pub classic: &'static str,
    /// Whether the classic spelling has another meaning in current text. It is then converted only in files in the
    /// classic dialect.
    pub ambiguous: bool,
    /// The first known release that accepts the current spelling.
    pub since: TvmVersion,
    /// Whether releases that accept the current spelling also accept the classic one.
    pub still_read: bool,
}

const fn row(place: Place, current: &'static str, classic: &'static str) -> Spelling {
    Spelling { place, current, classic, ambiguous: false, since: TvmVersion::V0_25, still_read: false }
}

/// A row for a name that changed in 0.26, when struct info became types.
const fn row_026(place: Place, current: &'static str, classic: &'static str) -> Spelling {
    Spelling { since: TvmVersion::V0_26, ..row(place, current, classic) }
}

/// All names that differ between the dialects.
///
/// `T.alloc_buffer` has two meanings. In classic text it allocates a buffer of a block (now `T.sblock_alloc_buffer`).
/// In current text it is a separate statement (in classic text, `T.decl_buffer` without `data=`).
pub const SPELLINGS: &[Spelling] = &[
    Spelling { still_read: true, ..row_026(Place::Path, "R.Any", "R.Object") },
    row(Place::Path, "T.sblock", "T.block"),
    row(Place::Path, "T.sblock_attr", "T.block_attr"),
    Spelling { ambiguous: true, ..row(Place::Path, "T.sblock_alloc_buffer", "T.alloc_buffer") },
    row_026(Place::Keyword, "out_ty", "out_sinfo"),
    row_026(Place::Keyword, "ty_args", "sinfo_args"),
    row(Place::AttrPrefix, "tirx.", "tir."),
    row(Place::MetadataKey, "ir.GenericConst", "relax.expr.Constant"),
    row(Place::Import, "tirx", "tir"),
];

/// The statement that allocates a buffer: its current name, and its classic name, which has this meaning only without
/// `data=`.
pub(crate) const ALLOC_BUFFER: (&str, &str) = ("T.alloc_buffer", "T.decl_buffer");

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 3] = [Dialect::Tvm027, Dialect::Tvm027Py312, Dialect::Classic];

    /// The name of the dialect on the command line: `tvm-0.27`, `tvm-0.27-py312`, `classic`.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Tvm027 => "tvm-0.27",
            Dialect::Tvm027Py312 => "tvm-0.27-py312",
            Dialect::Classic => "classic",
        }
    }

    /// Whether this is the dialect of TVM before 0.27.
    pub const fn is_classic(self) -> bool {
        matches!(self, Dialect::Classic)
    }

    /// The way in which it declares the symbolic dims of signatures.
    pub const fn dim_style(self) -> DimStyle {
        match self {
            Dialect::Tvm027 => DimStyle::TypeVar,
            Dialect::Tvm027Py312 => DimStyle::TypeParam,
            Dialect::Classic => DimStyle::Body,
        }
    }

    /// Returns the canonical spelling of a dotted name in a file of this dialect: for `T.block`, `T.sblock`. Other
    /// names are returned unchanged.
    pub fn canonical_call(self, path: &str) -> &str {
        self.canonical(Place::Path, path)
    }

    /// Returns the canonical spelling of a keyword: for `out_sinfo`, `out_ty`.
    pub fn canonical_keyword(self, keyword: &str) -> &str {
        self.canonical(Place::Keyword, keyword)
    }

    /// Returns the canonical spelling of the key in `metadata["key"]`.
    pub fn canonical_metadata_key(self, key: &str) -> &str {
        self.canonical(Place::MetadataKey, key)
    }

    /// Returns the canonical spelling of an attribute's key: for `tir.noalias`, `tirx.noalias`.
    pub fn canonical_attr_key(self, key: &str) -> String {
        swap_prefix(key, |row| (row.classic, row.current))
    }

    /// Returns this dialect's spelling of a canonical dotted name.
    pub fn spell_call(self, canonical: &str) -> &str {
        if self.is_classic() && canonical == ALLOC_BUFFER.0 {
            return ALLOC_BUFFER.1;
        }
        self.spell(Place::Path, canonical)
    }

    /// Returns this dialect's spelling of a canonical keyword.
    pub fn spell_keyword(self, canonical: &str) -> &str {
        self.spell(Place::Keyword, canonical)
    }

    /// Whether the spelling of a canonical keyword depends on the dialect, as that of `out_ty` does.
    pub fn keyword_varies(canonical: &str) -> bool {
        Dialect::Classic.spell_keyword(canonical) != canonical
    }

    /// Returns this dialect's spelling of a canonical metadata key.
    pub fn spell_metadata_key(self, canonical: &str) -> &str {
        self.spell(Place::MetadataKey, canonical)
    }

    /// Returns this dialect's spelling of a canonical attribute key.
    pub fn spell_attr_key(self, canonical: &str) -> String {
        if self.is_classic() { swap_prefix(canonical, |row| (row.current, row.classic)) } else { canonical.to_owned() }
    }

    /// Returns this dialect's spelling of a name imported from `tvm.script`.
    pub fn spell_import(self, name: &str) -> &str {
        let canonical = self.canonical(Place::Import, name);
        self.spell(Place::Import, canonical)
    }

    fn canonical(self, place: Place, text: &str) -> &str {
        let found = SPELLINGS
            .iter()
            .find(|row| row.place == place && row.classic == text && (self.is_classic() || !row.ambiguous));
        found.map_or(text, |row| row.current)
    }

    fn spell(self, place: Place, canonical: &str) -> &str {
        if !self.is_classic() {
            return canonical;
        }
        SPELLINGS.iter().find(|row| row.place == place && row.current == canonical).map_or(canonical, |row| row.classic)
    }
}

/// Replaces the prefix of `key`: for each row, `pick` returns the prefix to match and its replacement.
fn swap_prefix(key: &str, pick: impl Fn(&Spelling) -> (&'static str, &'static str)) -> String {
    let swapped = SPELLINGS.iter().filter(|row| row.place == Place::AttrPrefix).find_map(|row| {
        let (from, to) = pick(row);
        key.strip_prefix(from).map(|rest| format!("{to}{rest}"))
    });
    swapped.unwrap_or_else(|| key.to_owned())
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown dialect name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDialect(
    /// The given name.
    pub String,
);

impl fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown dialect `{}`; there are", self.0)?;
        for (at, dialect) in Dialect::ALL.iter().enumerate() {
            write!(f, "{} `{dialect}`", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownDialect {}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Dialect, UnknownDialect> {
        Dialect::ALL.into_iter().find(|d| d.name() == text).ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_have_a_current_spelling() {
        let current = Dialect::Tvm027;
        assert_eq!(current.canonical_call("T.block"), "T.sblock");
        assert_eq!(current.canonical_call("R.Object"), "R.Any");
        assert_eq!(current.canonical_keyword("out_sinfo"), "out_ty");
        assert_eq!(current.canonical_attr_key("tir.noalias"), "tirx.noalias");
        assert_eq!(current.canonical_metadata_key("relax.expr.Constant"), "ir.GenericConst");
        assert_eq!(current.canonical_call("R.add"), "R.add");
    }

    #[test]
    fn keyword_varies_only_if_a_dialect_spells_it_differently() {
        assert!(Dialect::keyword_varies("out_ty") && Dialect::keyword_varies("ty_args"));
        assert!(!Dialect::keyword_varies("strides") && !Dialect::keyword_varies("T.sblock"));
    }

    #[test]
    fn alloc_buffer_is_a_block_buffer_in_classic_text_only() {
        assert_eq!(Dialect::Classic.canonical_call("T.alloc_buffer"), "T.sblock_alloc_buffer");
        assert_eq!(Dialect::Tvm027.canonical_call("T.alloc_buffer"), "T.alloc_buffer");
        assert_eq!(Dialect::Classic.spell_call("T.sblock_alloc_buffer"), "T.alloc_buffer");
        assert_eq!(Dialect::Classic.spell_call("T.alloc_buffer"), "T.decl_buffer");
    }

    #[test]
    fn spelling_then_reading_is_the_identity() {
        for dialect in Dialect::ALL {
            for row in SPELLINGS.iter().filter(|row| row.place == Place::Path) {
                assert_eq!(dialect.canonical_call(dialect.spell_call(row.current)), row.current);
            }
            assert_eq!(dialect.name().parse(), Ok(dialect));
        }
        assert!("tvm".parse::<Dialect>().is_err());
    }
}
