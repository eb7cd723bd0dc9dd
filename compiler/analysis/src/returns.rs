//! Determines the functions whose return types are inferred for their callers.
//!
//! A function without a declared return type must be checked before its callers, by one query per function that
//! recurses. So cycles are excluded and the depth of recursion is limited. The call graph is read from the text
//! alone, so the answer does not depend on the order of queries.

use rx_base::Name;
use rx_base::name::{NameMap, NameSet};
use rx_syntax::ast::StatementKind;
use rx_syntax::{Segments, Statement, TokenKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest chain of functions whose return types are inferred from each other. For a function beyond it, callers
/// do not know the return type.
const LONGEST_CHAIN: u32 = 16;

/// Returns the names in a function's text that are `wanted`, each once, sorted. The name in its own header is not
/// included.
pub fn mentions(segments: &Segments, wanted: impl Fn(&Name) -> bool) -> Arc<[Name]> {
    let mut names = BTreeSet::new();
    let is_header = |statement: &Statement| matches!(statement.tree.kind, StatementKind::Def { .. });
    let mut header_seen = false;
    for segment in segments {
        if header_seen || !segment.tree().statements.iter().any(is_header) {
            names.extend(segment.names().iter().copied().filter(&wanted));
            continue;
        }
        for statement in &segment.tree().statements {
            let own = match statement.tree.kind {
                StatementKind::Def { name, .. } if !std::mem::replace(&mut header_seen, true) => Some(name),
                _ => None,
            };
            let cursor = segment.cursor(statement);
            let is_name = |token: &u32| Some(*token) != own && cursor.kind(*token).is_some_and(TokenKind::is_name);
            let found = (0..statement.token_count).filter(is_name).map(|token| cursor.name(token));
            names.extend(found.filter(&wanted));
        }
    }
    names.into_iter().collect()
}

/// Returns the functions whose return type is inferred, given the functions without a declared one and the names they
/// mention. Excluded are functions in a cycle or between two cycles, and functions whose chain of callees is longer
/// than `LONGEST_CHAIN`.
///
/// For example, if `a` calls `b`, and `b` calls itself, `a` is inferable and `b` is not.
pub fn inferable(functions: &[(Name, Arc<[Name]>)]) -> NameSet {
    let known: NameMap<usize> = functions.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let callees: Vec<Vec<usize>> = functions
        .iter()
        .map(|(_, mentions)| mentions.iter().filter_map(|name| known.get(name).copied()).collect())
        .collect();
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); functions.len()];
    for (caller, callees) in callees.iter().enumerate() {
        for callee in callees {
            // INVARIANT: the indices in `known` are less than the number of functions.
            callers[*callee].push(caller);
        }
    }
    let above = peel(&callees, &callers, |_| true).reached;
    // A function that neither pass reaches is in a cycle or between two; its callers treat its type as given.
    let below = peel(&callers, &callees, |_| true).reached;
    let open = |at: usize| above[at] || below[at];
    let heights = peel(&callers, &callees, open);
    let fits = |at: &usize| open(*at) && heights.reached[*at] && heights.height[*at] <= LONGEST_CHAIN;
    functions.iter().enumerate().filter(|(at, _)| fits(at)).map(|(_, (name, _))| *name).collect()
}

/// The result of [`peel`] for each node.
struct Peeled {
    reached: Vec<bool>,
    /// The length of the longest path to the node from a node without predecessors.
    height: Vec<u32>,
}

/// Sorts the nodes for which `of` holds topologically: repeatedly removes a node without predecessors among them.
fn peel(next: &[Vec<usize>], before: &[Vec<usize>], of: impl Fn(usize) -> bool) -> Peeled {
    let count = next.len();
    let mut left: Vec<usize> = before.iter().map(|before| before.iter().filter(|at| of(**at)).count()).collect();
    let mut peeled = Peeled { reached: vec![false; count], height: vec![1; count] };
    let mut ready: Vec<usize> = (0..count).filter(|at| of(*at) && left[*at] == 0).collect();
    while let Some(at) = ready.pop() {
        peeled.reached[at] = true;
        for next in next[at].iter().copied().filter(|next| of(*next)) {
            peeled.height[next] = peeled.height[next].max(peeled.height[at] + 1);
            left[next] -= 1;
            if left[next] == 0 {
                ready.push(next);
            }
        }
    }
    peeled
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_CHAIN, inferable};
    use rx_base::Name;
    use rx_base::name::name;
    use rx_syntax::{Segment, Segments};
    use std::sync::Arc;

    fn graph(text: &str) -> Vec<(Name, Arc<[Name]>)> {
        let line = |line: &str| {
            let mut names = line.split_whitespace().map(name);
            names.next().map(|function| (function, names.collect()))
        };
        text.split(';').filter_map(line).collect()
    }

    fn inferred(text: &str) -> Vec<String> {
        let mut names: Vec<String> = inferable(&graph(text)).iter().map(Name::to_string).collect();
        names.sort();
        names
    }

    #[test]
    fn a_header_does_not_mention_its_own_name() {
        let segments = |text: &str| Segments::from_iter([Arc::new(Segment::new(text.into()))]);
        let mentions = |text: &str| super::mentions(&segments(text), |_| true);
        assert!(!mentions("def f(x: R.Tensor):\n    return g(x)\n").contains(&name("f")));
        assert!(mentions("def f(x: R.Tensor):\n    return f(x)\n").contains(&name("f")));
    }

    #[test]
    fn mentions_in_later_segments_are_found() {
        let texts = ["@R.function\n", "def f(x):\n    y = g(x)\n", "    z = f(h(y))\n", "    def k(): return g\n"];
        let segments = Segments::from_iter(texts.map(|text| Arc::new(Segment::new(text.into()))));
        let is_function = |name: &Name| ["f", "g", "h", "i", "k"].contains(&name.as_str());
        let found = super::mentions(&segments, is_function);
        assert_eq!(found.iter().map(Name::as_str).collect::<Vec<_>>(), ["f", "g", "h", "k"]);
        let found = super::mentions(&segments.iter().take(2).cloned().collect(), is_function);
        assert_eq!(found.iter().map(Name::as_str).collect::<Vec<_>>(), ["g"]);
    }

    #[test]
    fn functions_that_call_each_other_are_not_inferred() {
        assert_eq!(inferred("a b c; b c; c x"), ["a", "b", "c"]);
        assert_eq!(inferred("a a; b a; c d"), ["b", "c"]);
        assert_eq!(inferred("top a; a b; b c; c a leaf; leaf"), ["leaf", "top"]);
    }

    #[test]
    fn chains_are_inferred_up_to_a_length() {
        let chain: String = (0..100).map(|at| format!("f{at} f{};", at + 1)).collect();
        assert_eq!(inferred(&chain).len(), LONGEST_CHAIN as usize);
    }
}
