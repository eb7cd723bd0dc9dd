//! The severities of diagnostic codes in a file.

use crate::selector::Selector;
use rx_base::{Code, Diagnostic, Severity};

/// A severity, or `Off`, which drops the diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Reported with this severity.
    As(Severity),
    /// Not reported.
    Off,
}

impl Level {
    /// The words for the levels, most serious first.
    pub const WORDS: [&'static str; 5] = ["error", "warning", "info", "hint", "off"];

    /// Returns the level for a word.
    pub fn of_word(word: &str) -> Option<Level> {
        let severities = [Severity::Error, Severity::Warning, Severity::Info, Severity::Hint];
        let severity = severities.into_iter().find(|severity| severity.word() == word);
        severity.map(Level::As).or((word == "off").then_some(Level::Off))
    }
}

/// A `severity` table: selectors with levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels(pub Vec<(Selector, Level)>);

impl Levels {
    /// Returns the level of a code by its most specific selector.
    fn of(&self, code: Code) -> Option<Level> {
        let named = self.0.iter().filter_map(|(selector, level)| Some((selector.closeness(code)?, *level)));
        // Of two equally specific selectors (a number and its name) the later one is used.
        named.max_by_key(|(closeness, _)| *closeness).map(|(_, level)| level)
    }
}

/// The codes chosen on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only these are reported; all if empty.
    pub select: Vec<Selector>,
    /// These are not reported, unless `select` names them more specifically.
    pub ignore: Vec<Selector>,
}

impl Choice {
    fn closeness(selectors: &[Selector], code: Code) -> Option<u8> {
        selectors.iter().filter_map(|selector| selector.closeness(code)).max()
    }

    /// Returns whether the code is selected explicitly, and whether it is reported at all. For example, if `select` is
    /// `RX0651` and `ignore` is `RX06`, only RX0651 is reported; if `select` is `RX06` and `ignore` is `RX0651`, the
    /// other codes of `RX06` are.
    fn of(&self, code: Code) -> (bool, bool) {
        let (selected, ignored) = (Choice::closeness(&self.select, code), Choice::closeness(&self.ignore, code));
        let reported = match ignored {
            Some(_) => selected > ignored,
            None => self.select.is_empty() || selected.is_some(),
        };
        (selected.is_some(), reported)
    }
}

/// The severity of each diagnostic code in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Severities(Box<[Option<Level>]>);

impl Severities {
    /// Combines several tables, of which later ones have precedence, and the command line, which has precedence over
    /// all.
    pub fn new<'l>(tables: impl Iterator<Item = &'l Levels> + Clone, choice: &Choice) -> Severities {
        let level = |code: &Code| {
            if !code.is_choosable() {
                return None;
            }
            let said = tables.clone().filter_map(|table| table.of(*code)).last();
            match (choice.of(*code), said) {
                ((_, false), _) => Some(Level::Off),
                // The code is selected explicitly, so an `off` in the file is ignored.
                ((true, true), Some(Level::Off)) => None,
                (_, said) => said,
            }
        };
        Severities(Code::ALL.iter().map(level).collect())
    }

    /// Returns the level of a code; `None` if it is not changed.
    pub fn of(&self, code: Code) -> Option<Level> {
        self.0.get(code.index()).copied().flatten()
    }

    /// Removes the diagnostics that are off, and sets the severity of the others.
    pub fn apply<P>(&self, mut diagnostics: Vec<Diagnostic<P>>) -> Vec<Diagnostic<P>> {
        diagnostics.retain_mut(|diagnostic| match self.of(diagnostic.code) {
            Some(Level::Off) => false,
            Some(Level::As(severity)) => {
                diagnostic.severity = severity;
                true
            }
            None => true,
        });
        diagnostics
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Level, Levels, Severities};
    use crate::Selector;
    use rx_base::{Code, Severity};

    const MAYBE: Code = Code::TakeIndexMaybeOutOfBounds;

    fn levels(table: &[(&str, &str)]) -> Levels {
        let row = |(selector, word): &(&str, &str)| {
            (selector.parse().expect("a selector"), Level::of_word(word).expect("a level"))
        };
        Levels(table.iter().map(row).collect())
    }

    fn selectors(texts: &[&str]) -> Vec<Selector> {
        texts.iter().map(|text| text.parse().expect("a selector")).collect()
    }

    fn level(tables: &[Levels], select: &[&str], ignore: &[&str], code: Code) -> Option<Level> {
        let choice = Choice { select: selectors(select), ignore: selectors(ignore) };
        Severities::new(tables.iter(), &choice).of(code)
    }

    #[test]
    fn closest_selector_and_later_table_win() {
        let first = levels(&[("RX0651", "error"), ("RX06", "off"), ("all", "hint")]);
        assert_eq!(level(std::slice::from_ref(&first), &[], &[], MAYBE), Some(Level::As(Severity::Error)));
        assert_eq!(level(std::slice::from_ref(&first), &[], &[], Code::SliceEndClamped), Some(Level::Off));
        assert_eq!(level(&[first, levels(&[("RX06", "info")])], &[], &[], MAYBE), Some(Level::As(Severity::Info)));
    }

    #[test]
    fn syntax_is_always_an_error() {
        assert_eq!(level(&[levels(&[("all", "off")])], &["RX06"], &["all"], Code::SyntaxError), None);
    }

    #[test]
    fn command_line_overrides_all_tables() {
        let off = levels(&[("RX0651", "off")]);
        assert_eq!(level(std::slice::from_ref(&off), &["RX06"], &[], MAYBE), None);
        assert_eq!(level(&[], &["RX06"], &[], Code::UndefinedName), Some(Level::Off));
        assert_eq!(level(&[], &["RX06"], &["RX0651"], MAYBE), Some(Level::Off));
        assert_eq!(level(&[], &["RX0651"], &["RX06"], MAYBE), None);
        assert_eq!(level(&[], &[], &["RX06"], MAYBE), Some(Level::Off));
    }
}
