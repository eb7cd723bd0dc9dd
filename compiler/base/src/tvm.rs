//! The releases of Apache TVM whose limits rx knows.

use std::fmt;
use std::str::FromStr;

/// A release of Apache TVM, chosen with `--tvm` or `[tvm] version` in `rx.toml`. Later releases compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TvmVersion {
    /// 0.25, as `apache-tvm 0.25.0.post1` on PyPI.
    V0_25,
    /// 0.26, as `apache-tvm 0.26.0` on PyPI.
    V0_26,
    /// 0.27, as `apache-tvm 0.27.0.post1` on PyPI.
    V0_27,
}

impl TvmVersion {
    /// All known releases, oldest first.
    pub const ALL: [TvmVersion; 3] = [TvmVersion::V0_25, TvmVersion::V0_26, TvmVersion::V0_27];

    /// The release as users write it: `0.27`.
    pub const fn name(self) -> &'static str {
        match self {
            TvmVersion::V0_25 => "0.25",
            TvmVersion::V0_26 => "0.26",
            TvmVersion::V0_27 => "0.27",
        }
    }
}

impl fmt::Display for TvmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a release whose limits rx does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTvmVersion(
    /// The given text.
    pub String,
);

impl UnknownTvmVersion {
    /// Whether the release is older than all known ones; `false` if it is newer, `None` if the text is not a release.
    fn is_older(&self) -> Option<bool> {
        let number = release(&self.0)?;
        let oldest = TvmVersion::ALL.first().and_then(|version| release(version.name()))?;
        Some(number < oldest)
    }
}

/// Returns the major and minor number of a release: for `v0.27.0.post1`, 0 and 27.
fn release(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let digits = minor.find(|it: char| !it.is_ascii_digit()).unwrap_or(minor.len());
    Some((major, minor.get(..digits)?.parse().ok()?))
}

impl fmt::Display for UnknownTvmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = TvmVersion::ALL.iter().map(|version| version.name()).collect();
        let (all, given) = (known.join(", "), &self.0);
        match (self.is_older(), known.first(), known.last()) {
            (Some(true), Some(oldest), _) => write!(
                f,
                "rx does not know the limits of TVM {given}, which is older than those it knows: {all}; it reads the text \
                 of TVM 0.13 and later all the same, and `{oldest}` gives the limits of the oldest known one"
            ),
            (Some(false), _, Some(newest)) => write!(
                f,
                "rx does not know the limits of TVM {given}, which is newer than those it knows: {all}; `{newest}` \
                 gives the limits of the newest known one"
            ),
            _ => write!(f, "`{given}` is no release of TVM; rx knows the limits of {all}"),
        }
    }
}

impl std::error::Error for UnknownTvmVersion {}

impl FromStr for TvmVersion {
    type Err = UnknownTvmVersion;

    /// Parses `0.27` and its patch releases: `0.27.0`, `0.27.0.post1`, `v0.27.0`.
    fn from_str(text: &str) -> Result<TvmVersion, UnknownTvmVersion> {
        let given = text.strip_prefix('v').unwrap_or(text);
        let is = |version: &TvmVersion| {
            given.strip_prefix(version.name()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        TvmVersion::ALL.into_iter().find(is).ok_or_else(|| UnknownTvmVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::TvmVersion;

    #[test]
    fn patch_release_is_its_release() {
        for text in ["0.27", "0.27.0", "0.27.0.post1", "v0.27.0"] {
            assert_eq!(text.parse(), Ok(TvmVersion::V0_27));
        }
        assert_eq!("0.25.0.post1".parse(), Ok(TvmVersion::V0_25));
        for text in ["", "0.2", "0.270", "0.28"] {
            assert!(text.parse::<TvmVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_release_names_the_known_ones_and_the_nearest() {
        let said = |text: &str| text.parse::<TvmVersion>().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said("0.20").contains("older than those it knows: 0.25, 0.26, 0.27"), "{}", said("0.20"));
        assert!(said("0.20").contains("`0.25` gives"), "{}", said("0.20"));
        assert!(said("0.30.dev0").contains("newer than those it knows"), "{}", said("0.30.dev0"));
        assert!(said("1.0").contains("`0.27` gives"), "{}", said("1.0"));
        assert!(said("newest").contains("no release of TVM"), "{}", said("newest"));
    }

    #[test]
    fn later_release_compares_greater() {
        assert!(TvmVersion::ALL.is_sorted());
    }
}
