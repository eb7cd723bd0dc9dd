//! Computes small edits that turn one text into another (a line diff).

use rx_base::Span;
use rx_base::fix::Edit;

/// The number of lines that are searched ahead for equal lines.
const WINDOW: usize = 24;

/// Returns the edits that turn `old` into `new`. Equal lines are kept, and a changed line keeps its common prefix and
/// suffix. For example, `y = R.add(x,1)` to `y = R.add(x, 1)` inserts one blank. Takes time linear in the texts.
pub fn changes(old: &str, new: &str) -> Vec<Edit> {
    let (old_lines, new_lines) = (lines(old), lines(new));
    let mut edits = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old_lines.len() || j < new_lines.len() {
        if let (Some(a), Some(b)) = (old_lines.get(i), new_lines.get(j))
            && a.1 == b.1
        {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let (to_i, to_j) = meeting(&old_lines, &new_lines, i, j);
        // An equal number of lines on both sides is changed line by line.
        let step = if to_i - i == to_j - j { 1 } else { (to_i - i).max(to_j - j).max(1) };
        while i < to_i || j < to_j {
            let (next_i, next_j) = ((i + step).min(to_i), (j + step).min(to_j));
            let (from, until) = (offset(&old_lines, i, old), offset(&old_lines, next_i, old));
            let (from_new, until_new) = (offset(&new_lines, j, new), offset(&new_lines, next_j, new));
            let gone = old.get(from..until).unwrap_or_default();
            let come = new.get(from_new..until_new).unwrap_or_default();
            edits.extend(trimmed(from, gone, come));
            (i, j) = (next_i, next_j);
        }
    }
    edits
}

/// Returns the lines of a text with their line ends, each with its start in bytes.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut at = 0;
    let placed = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        (start, line)
    });
    placed.collect()
}

fn offset(lines: &[(usize, &str)], at: usize, text: &str) -> usize {
    lines.get(at).map_or(text.len(), |(start, _)| *start)
}

/// Returns the next pair of equal lines that are not blank. If there is none within [`WINDOW`], the next line of both
/// texts.
fn meeting(old: &[(usize, &str)], new: &[(usize, &str)], i: usize, j: usize) -> (usize, usize) {
    let rest = (old.len() - i, new.len() - j);
    let alike = |a: usize, b: usize| match (old.get(i + a), new.get(j + b)) {
        // All blank lines are equal, so a blank line ends a change only if as many lines were removed as added.
        (Some((_, old)), Some((_, new))) => old == new && (a == b || !old.trim().is_empty()),
        (None, None) => true,
        _ => false,
    };
    for distance in 1..=WINDOW.min(rest.0 + rest.1) {
        for a in distance.saturating_sub(rest.1)..=distance.min(rest.0) {
            if alike(a, distance - a) {
                return (i + a, j + distance - a);
            }
        }
    }
    (old.len().min(i + 1), new.len().min(j + 1))
}

/// Returns one edit without the common prefix and suffix of both texts. It never splits a `\r\n`, because no position
/// lies between the two.
fn trimmed(start: usize, old: &str, new: &str) -> Option<Edit> {
    let same = |(a, b): &(char, char)| a == b;
    let torn = |at: usize| {
        old.get(..at).is_some_and(|it| it.ends_with('\r')) && old.get(at..).is_some_and(|it| it.starts_with('\n'))
    };
    let head: usize = old.chars().zip(new.chars()).take_while(same).map(|(a, _)| a.len_utf8()).sum();
    let head = head - usize::from(torn(head));
    let (old_rest, new_rest) = (old.get(head..)?, new.get(head..)?);
    let pairs = old_rest.chars().rev().zip(new_rest.chars().rev());
    let tail: usize = pairs.take_while(same).map(|(a, _)| a.len_utf8()).sum();
    let tail = tail - usize::from(torn(old.len() - tail));
    let gone = Span::new((start + head) as u32, (start + old.len() - tail) as u32);
    let come = new_rest.get(..new_rest.len() - tail)?;
    (!gone.is_empty() || !come.is_empty()).then(|| (gone, come.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::changes;
    use rx_base::Span;
    use rx_base::fix::apply;

    #[test]
    fn the_edits_make_the_new_text_and_are_small() {
        let old = "a = 1\nb  = 2\n\n\nc = 3\nd = 4\n";
        let new = "a = 1\nb = 2\n\nc = 3\nd = 5\ne = 6\n";
        let edits = changes(old, new);
        assert_eq!(apply(old, &edits), new);
        assert!(edits.iter().map(|(span, _)| span.range().len()).sum::<usize>() <= 4, "{edits:?}");
        for (old, new) in [("", ""), ("", "a"), ("é\r\n", "è\r\n"), ("a\nb\nc\n", "c\n"), ("x\n", "x"), ("ab", "a")] {
            assert_eq!(apply(old, &changes(old, new)), new, "{old:?}");
        }
        assert_eq!(changes("x\n", "x\n"), []);
        assert_eq!(changes("é\r\nx", "é\nx"), [(Span::new(2, 4), "\n".to_owned())]);
    }
}
