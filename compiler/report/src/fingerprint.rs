//! Fingerprints, by which tools recognize a finding after lines before it have moved.

use crate::source::{Source, floor_char_boundary};
use rx_base::{Diagnostic, Span};
use std::collections::BTreeMap;

/// The most bytes of a line that a fingerprint uses; lines may be very long.
const LINE: usize = 4096;

/// Generates the fingerprints of one file's diagnostics, in order.
#[derive(Default)]
pub(crate) struct Marks {
    /// How often each hash has occurred.
    given: BTreeMap<u128, u32>,
}

impl Marks {
    /// Returns the fingerprint of the next diagnostic: a hash of its code, its file, and the trimmed text of its line.
    /// If several diagnostics agree in these, the later ones also get a number.
    pub(crate) fn next(&mut self, source: &Source<'_>, diagnostic: &Diagnostic<Span>) -> String {
        let line = line_of(source, diagnostic.primary);
        let code = diagnostic.code.to_string();
        let mark = [code.as_str(), source.name(), line].iter().fold(OFFSET, |state, part| hash(state, part));
        let count = self.given.entry(mark).or_default();
        *count += 1;
        let mark = if *count == 1 { mark } else { hash(mark, &count.to_string()) };
        format!("{mark:032x}")
    }
}

/// Returns the first line of a place, at most [`LINE`] bytes of it.
fn line_of<'a>(source: &Source<'a>, place: Span) -> &'a str {
    let text = source.text();
    let start = source.locate(place.start as usize).line_start;
    let end = floor_char_boundary(text, start.saturating_add(LINE));
    text.get(start..end).unwrap_or_default().lines().next().unwrap_or_default().trim()
}

/// Parameters of the 128-bit FNV-1a hash, which, unlike the standard library's hashes, never changes.
const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// Hashes `part` and a terminator, so that `ab`, `c` differs from `a`, `bc`.
fn hash(state: u128, part: &str) -> u128 {
    part.bytes().chain([0]).fold(state, |state, byte| (state ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::Marks;
    use crate::Source;
    use rx_base::{Code, Diagnostic, Span};

    fn marks(text: &str, needle: &str) -> Vec<String> {
        let source = Source::new("a.rx", text);
        let mut marks = Marks::default();
        let places = text.match_indices(needle).map(|(at, _)| Span::new(at as u32, (at + needle.len()) as u32));
        places.map(|place| marks.next(&source, &Diagnostic::new(Code::UndefinedName, place, "m"))).collect()
    }

    #[test]
    fn lines_before_and_blanks_around_do_not_count() {
        let before = marks("x = yy\n", "yy");
        assert_eq!(before, marks("# more\n\n    x = yy  \r\n", "yy"));
        assert_ne!(before, marks("x = yy + 1\n", "yy"));
        assert_eq!(before[0].len(), 32);
    }

    #[test]
    fn equal_lines_have_fingerprints_by_order() {
        let twice = marks("x = yy\nx = yy\n", "yy");
        assert_ne!(twice[0], twice[1]);
        assert_eq!(twice, marks("z = 1\nx = yy\nz = 2\nx = yy\n", "yy"));
    }
}
