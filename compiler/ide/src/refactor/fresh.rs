//! Names that a file does not use yet.

use rx_syntax::TokenKind;
use rx_syntax::token::tokens;
use std::collections::HashSet;

/// The names of a file, and those that were made for it.
pub(super) struct Fresh {
    taken: HashSet<String>,
}

impl Fresh {
    /// Collects the names of a text, except members (`exp` of `R.exp`).
    pub(super) fn variables(text: &str) -> Fresh {
        Fresh::of(text, false)
    }

    /// Collects the names of a text with those of members.
    pub(super) fn functions(text: &str) -> Fresh {
        Fresh::of(text, true)
    }

    fn of(text: &str, members: bool) -> Fresh {
        let mut taken = HashSet::new();
        let mut after_dot = false;
        for token in tokens(text) {
            let word = text.get(token.span.range()).unwrap_or_default();
            match token.kind {
                kind if kind.is_trivia() => continue,
                // Quoted dims.
                TokenKind::String => taken.extend(words(word)),
                kind if kind.is_word() && (members || !after_dot) => {
                    taken.insert(word.to_owned());
                }
                _ => {}
            }
            after_dot = token.kind == TokenKind::Dot;
        }
        Fresh { taken }
    }

    /// Returns `like` if it is free, otherwise `like_1`, `like_2`, …; `value` in place of a text that is no name. The
    /// result is no longer free.
    pub(super) fn name(&mut self, like: &str) -> String {
        let mut all = tokens(like);
        let is_name = all.next().is_some_and(|first| first.kind == TokenKind::Name && all.next().is_none());
        let like = if is_name { like } else { "value" };
        let mut found = like.to_owned();
        let mut number = 0usize;
        while self.taken.contains(&found) {
            number += 1;
            found = format!("{like}_{number}");
        }
        self.taken.insert(found.clone());
        found
    }
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    parts.filter(|part| !part.is_empty()).map(str::to_owned)
}
