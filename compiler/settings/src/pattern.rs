//! Path patterns.

use glob::{MatchOptions, Pattern, PatternError};
use std::path::Path;

/// A path pattern: `*`, `?` and `[a-z]` match characters except `/`, and a component `**` matches any number of
/// folders.
///
/// A pattern without `/` matches a name at any depth; one with `/` matches a path relative to the folder. A pattern
/// that matches a folder also matches everything below it. For example, `build` matches
/// `a/build/x.rx`, but `/build` matches only the folder `build` next to the `rx.toml`, with its contents.
#[derive(Clone, Debug)]
pub struct FilePattern {
    pattern: Pattern,
    /// Whether the pattern matches names at any depth.
    anywhere: bool,
}

const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

impl FilePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The mistake, with the position of the character.
    pub fn new(text: &str) -> Result<FilePattern, PatternError> {
        let trimmed = text.trim_start_matches("./").trim_end_matches('/');
        if trimmed.is_empty() {
            return Err(PatternError { pos: 0, msg: "the pattern is empty" });
        }
        let pattern = Pattern::new(trimmed.trim_start_matches('/'))?;
        Ok(FilePattern { pattern, anywhere: !trimmed.contains('/') })
    }

    /// Whether the pattern matches the path or a folder that contains it.
    pub fn matches(&self, path: &Path) -> bool {
        if self.anywhere {
            path.components().any(|part| self.pattern.matches_path_with(Path::new(part.as_os_str()), OPTIONS))
        } else {
            path.ancestors().any(|path| self.pattern.matches_path_with(path, OPTIONS))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FilePattern;
    use std::path::Path;

    fn matches(pattern: &str, path: &str) -> bool {
        FilePattern::new(pattern).expect("a pattern").matches(Path::new(path))
    }

    #[test]
    fn names_at_any_depth_and_paths_from_the_root() {
        assert!(matches("*.rx", "a/b/c.rx") && !matches("*.rx", "a/b/c.py"));
        assert!(matches("old", "nets/old/c.rx") && matches("old/", "old/c.rx") && !matches("old", "nets/older/c.rx"));
        assert!(matches("nets/*.rx", "nets/a.rx") && !matches("nets/*.rx", "nets/deep/a.rx"));
        assert!(!matches("nets/*.rx", "more/nets/a.rx") && matches("**/nets/*.rx", "more/nets/a.rx"));
        assert!(matches("nets/**/*.rx", "nets/a.rx") && matches("nets/**", "nets/deep/a.rx"));
        assert!(matches("./nets/old", "nets/old/deep/a.rx") && matches("/a.rx", "a.rx") && !matches("/a.rx", "b/a.rx"));
    }

    #[test]
    fn mistakes_have_a_place() {
        let error = |text: &str| FilePattern::new(text).map(|_| ()).map_err(|error| error.pos);
        assert_eq!((error("a**"), error("[a"), error(""), error("./")), (Err(0), Err(0), Err(0), Err(0)));
        assert_eq!((error("a.[rx]"), error("x[")), (Ok(()), Err(1)));
    }
}
