//! Completions of the names in a prim_func: buffers, loop variables, block axes, scalars.

use super::{CompletionKind, List};
use crate::names::{Bound, Role, read};
use rx_base::Name;
use rx_base::name::name;
use rx_syntax::TokenKind;
use std::collections::HashSet;

/// The maximal number of names whose definitions are searched, in the order in which they first occur: the first ones,
/// such as the parameters, and the last ones.
const MOST_FIRST: usize = 100;
const MOST_LAST: usize = 200;

impl<'a> List<'a, '_> {
    /// Adds the names that the text before the position binds and that start with the typed prefix: those of the nearest
    /// statement first. The names that the innermost brackets already contain come last, since the indices of a buffer
    /// usually differ: `A[vi, |` offers `vj` first.
    pub(super) fn prim_names(&mut self) {
        let names: Vec<Name> = self.fitting_words().into_iter().map(name).collect();
        let reading = read(self.item, &names, 0..self.location.segment + 1);
        let mut bound: Vec<(Name, Bound)> = Vec::new();
        let mut statement = None;
        let mut first = 0;
        for mention in &reading.mentions {
            let before = (mention.segment, mention.span.end) < (self.location.segment, self.at);
            let (Role::Bind(kind), Some(name), true) = (mention.role, names.get(mention.which), before) else {
                continue;
            };
            // The names of one statement keep their order; those of a later statement are inserted before them.
            let segment = self.item.segments.get(mention.segment);
            let place = segment.and_then(|segment| segment.statement_before(mention.span.end));
            let place = place.map(|(_, statement)| (mention.segment, statement.span.start));
            if place != statement {
                (statement, first) = (place, 0);
            }
            bound.retain(|(known, _)| known != name);
            bound.insert(first.min(bound.len()), (*name, kind));
            first += 1;
        }
        let listed: HashSet<&str> = words(self.innermost_brackets()).collect();
        for (rank, (name, kind)) in (0..).zip(bound) {
            let (kind, detail) = match kind {
                Bound::Symbol => (CompletionKind::Symbol, "symbolic dim"),
                Bound::Buffer | Bound::Operand => (CompletionKind::Variable, "buffer"),
                Bound::Loop => (CompletionKind::Variable, "loop variable"),
                Bound::Axis => (CompletionKind::Variable, "block axis"),
                Bound::Parameter => (CompletionKind::Variable, "parameter"),
                Bound::Function => (CompletionKind::Function, "function"),
                Bound::Variable | Bound::Cell => (CompletionKind::Variable, "scalar"),
                Bound::Class | Bound::Import => continue,
            };
            let group = if listed.contains(name.as_str()) { 5 } else { 4 };
            let completion = self.offer(name.as_str(), kind, group);
            completion.detail = detail.to_owned();
            completion.rank = rank;
        }
    }

    /// Returns the words of the item's text before the position that start with the typed prefix, without duplicates. In a
    /// long prim_func, only the first and the last ones, because each is searched in the whole text.
    fn fitting_words(&mut self) -> Vec<&'a str> {
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        for segment in self.item.segments.iter().take(self.location.segment + 1) {
            let tokens = &segment.tree().tokens;
            let end = if std::ptr::eq(&**segment, self.segment) { tokens.at_or_after(self.at) } else { tokens.len() };
            for token in 0..end {
                let span = tokens.span(token).filter(|_| tokens.kind(token) == Some(TokenKind::Name));
                let word = span.and_then(|span| segment.text().get(span.range()));
                if let Some(word) = word.filter(|word| self.fits(word) && seen.insert(*word)) {
                    found.push(word);
                }
            }
        }
        if found.len() > MOST_FIRST + MOST_LAST {
            self.found.incomplete = true;
            found.drain(MOST_FIRST..found.len() - MOST_LAST);
        }
        found
    }

    /// Returns the text of the line between the innermost open bracket and the typed prefix.
    fn innermost_brackets(&self) -> &'a str {
        let line = self.before_path();
        let mut depth = 0u32;
        for (at, letter) in line.char_indices().rev() {
            match letter {
                ')' | ']' => depth += 1,
                '(' | '[' if depth == 0 => return line.get(at + 1..).unwrap_or_default(),
                '(' | '[' => depth -= 1,
                _ => {}
            }
        }
        ""
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}
