//! The spellings of TVMScript: what each TVM prints and reads, as one table.
//!
//! *Canonical* means: as TVM 0.27 spells it. Whoever reads text asks [`Dialect::canonical_call`] and its siblings and then
//! knows only the current spelling; whoever prints asks [`Dialect::spell_call`] and its siblings.

mod detect;

pub(crate) use detect::Evidence;

use rx_base::TvmVersion;
use std::fmt;
use std::str::FromStr;

/// A spelling of TVMScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// What TVM 0.27 prints on Python before 3.12: `n = TypeVar("n")` in front of the module.
    #[default]
    Tvm027,
    /// What TVM 0.27 prints on Python 3.12 and later: `def main[n](…)`.
    Tvm027Py312,
    /// TVM 0.13 to 0.2x: `R.Object`, `out_sinfo=`, `T.block`, `"n"` in signatures with `n = T.int64()` in the body.
    Classic,
}

/// How a dialect declares the symbolic dims of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DimStyle {
    /// `n = TypeVar("n")` in front of the module; in the signature a bare `n`, and `"n + 1"` quoted.
    TypeVar,
    /// `def f[n](…)`; everything in the signature is bare.
    TypeParam,
    /// `"n"` and `"n + 1"` quoted in the signature; `n = T.int64()` at the head of the body.
    Body,
}

/// Where a spelling of [`SPELLINGS`] stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A dotted name, called or not.
    Path,
    /// A keyword of a call.
    Keyword,
    /// The front of a key of `func_attr`, `sblock_attr` and `module_attrs`.
    AttrPrefix,
    /// The key in `metadata["key"][0]`.
    MetadataKey,
    /// `from tvm.script import …`.
    Import,
}

/// One difference between the current and the classic dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spelling {
    /// Where it stands.
    pub place: Place,
    /// As TVM 0.27 spells it.
    pub current: &'static str,
    /// As TVM up to 0.2x spelt it.
    pub classic: &'static str,
    /// The classic spelling has another meaning in current text, so only a file known to be classic is read this way.
    pub ambiguous: bool,
    /// The first of the known releases that reads the current spelling.
    pub since: TvmVersion,
    /// Whether releases that read the current spelling read the classic one too.
    pub still_read: bool,
}

const fn row(place: Place, current: &'static str, classic: &'static str) -> Spelling {
    Spelling { place, current, classic, ambiguous: false, since: TvmVersion::V0_25, still_read: false }
}

/// A name that was changed in 0.26, when struct info became types.
const fn row_026(place: Place, current: &'static str, classic: &'static str) -> Spelling {
    Spelling { since: TvmVersion::V0_26, ..row(place, current, classic) }
}

/// Every name that differs between the dialects.
///
/// `T.alloc_buffer` is two things: the buffer of a block (now `T.sblock_alloc_buffer`) in classic text, a statement of its own
/// (classic `T.decl_buffer` without `data=`) in current text.
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

/// The statement that allocates a buffer in current text, and how classic text says it (without `data=`).
pub(crate) const ALLOC_BUFFER: (&str, &str) = ("T.alloc_buffer", "T.decl_buffer");

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::Tvm027, Dialect::Tvm027Py312, Dialect::Classic];

    /// Its name on the command line: `tvm-0.27`, `tvm-0.27-py312`, `classic`.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Tvm027 => "tvm-0.27",
            Dialect::Tvm027Py312 => "tvm-0.27-py312",
            Dialect::Classic => "classic",
        }
    }

    /// Whether it is the spelling before 0.27.
    pub const fn is_classic(self) -> bool {
        matches!(self, Dialect::Classic)
    }

    /// How it declares the symbolic dims of signatures.
    pub const fn dim_style(self) -> DimStyle {
        match self {
            Dialect::Tvm027 => DimStyle::TypeVar,
            Dialect::Tvm027Py312 => DimStyle::TypeParam,
            Dialect::Classic => DimStyle::Body,
        }
    }

    /// The current spelling of a dotted name of a file in this dialect: `T.block` is `T.sblock`; others as they are.
    pub fn canonical_call(self, path: &str) -> &str {
        self.canonical(Place::Path, path)
    }

    /// The current spelling of a call's keyword: `out_sinfo` is `out_ty`.
    pub fn canonical_keyword(self, keyword: &str) -> &str {
        self.canonical(Place::Keyword, keyword)
    }

    /// The current spelling of the key in `metadata["key"]`.
    pub fn canonical_metadata_key(self, key: &str) -> &str {
        self.canonical(Place::MetadataKey, key)
    }

    /// The current spelling of an attribute's key: `tir.noalias` is `tirx.noalias`.
    pub fn canonical_attr_key(self, key: &str) -> String {
        swap_prefix(key, |row| (row.classic, row.current))
    }

    /// How this dialect spells a canonical dotted name.
    pub fn spell_call(self, canonical: &str) -> &str {
        if self.is_classic() && canonical == ALLOC_BUFFER.0 {
            return ALLOC_BUFFER.1;
        }
        self.spell(Place::Path, canonical)
    }

    /// How this dialect spells a canonical keyword.
    pub fn spell_keyword(self, canonical: &str) -> &str {
        self.spell(Place::Keyword, canonical)
    }

    /// How this dialect spells a canonical metadata key.
    pub fn spell_metadata_key(self, canonical: &str) -> &str {
        self.spell(Place::MetadataKey, canonical)
    }

    /// How this dialect spells a canonical attribute key.
    pub fn spell_attr_key(self, canonical: &str) -> String {
        if self.is_classic() { swap_prefix(canonical, |row| (row.current, row.classic)) } else { canonical.to_owned() }
    }

    /// How this dialect spells a name imported from `tvm.script`.
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

/// `key` with the front that `pick` names first replaced by the one it names second.
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

/// A dialect's name that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDialect(
    /// What was given.
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
