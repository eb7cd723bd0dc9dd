//! Releases of Apache TVM whose limits rx knows.

use std::fmt;
use std::str::FromStr;

/// A release of Apache TVM, chosen with `--tvm` or `[tvm] version` in `rx.toml`. Later ones compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TvmVersion {
    /// 0.27, as `apache-tvm 0.27.0.post1` on PyPI.
    V0_27,
}

impl TvmVersion {
    /// All of them, in order.
    pub const ALL: [TvmVersion; 1] = [TvmVersion::V0_27];

    /// As users write it: `0.27`.
    pub const fn name(self) -> &'static str {
        match self {
            TvmVersion::V0_27 => "0.27",
        }
    }
}

impl fmt::Display for TvmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A version rx knows nothing of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTvmVersion(
    /// What was given.
    pub String,
);

impl fmt::Display for UnknownTvmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = TvmVersion::ALL.iter().map(|version| version.name()).collect();
        write!(f, "rx does not know the limits of TVM `{}`; it knows those of {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownTvmVersion {}

impl FromStr for TvmVersion {
    type Err = UnknownTvmVersion;

    /// Reads `0.27`, and its patch releases: `0.27.0`, `0.27.0.post1`.
    fn from_str(text: &str) -> Result<TvmVersion, UnknownTvmVersion> {
        let is = |version: &TvmVersion| {
            text.strip_prefix(version.name()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        TvmVersion::ALL.into_iter().find(is).ok_or_else(|| UnknownTvmVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::TvmVersion;

    #[test]
    fn patch_releases_are_their_release() {
        for text in ["0.27", "0.27.0", "0.27.0.post1"] {
            assert_eq!(text.parse(), Ok(TvmVersion::V0_27));
        }
        for text in ["", "0.2", "0.270", "0.28"] {
            assert!(text.parse::<TvmVersion>().is_err(), "{text}");
        }
    }
}
