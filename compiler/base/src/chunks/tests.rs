//! Compares lists in chunks with plain lists.

use super::{CHUNK, Chunks};
use std::sync::Arc;

/// A deterministic generator of test inputs.
struct Random(u64);

impl Random {
    /// Returns a number that is less than `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn list(count: usize) -> Chunks<Arc<usize>> {
    (0..count).map(Arc::new).collect()
}

/// Checks every way to read a list against a plain one with the same items.
fn assert_holds(list: &Chunks<Arc<usize>>, plain: &[Arc<usize>]) {
    assert_eq!(list.len(), plain.len());
    assert_eq!(list.is_empty(), plain.is_empty());
    assert_eq!((list.first(), list.last()), (plain.first(), plain.last()));
    assert!((0..plain.len() + 2).all(|at| list.get(at) == plain.get(at)));
    assert!((0..plain.len()).all(|at| Arc::ptr_eq(&list[at], &plain[at])));
    assert_eq!(list.iter().collect::<Vec<_>>(), plain.iter().collect::<Vec<_>>());
    assert_eq!(list.iter().rev().collect::<Vec<_>>(), plain.iter().rev().collect::<Vec<_>>());
    assert!(list.chunks.iter().all(|chunk| (1..2 * CHUNK).contains(&chunk.items.len())));
    assert!(list.chunks.len() <= 1 + 4 * plain.len() / CHUNK, "{} chunks", list.chunks.len());
}

#[test]
fn lists_of_all_lengths_hold_their_items() {
    for count in (0..4 * CHUNK).chain([1000, 3130]) {
        let plain: Vec<Arc<usize>> = (0..count).map(Arc::new).collect();
        assert_holds(&plain.iter().cloned().collect(), &plain);
    }
}

#[test]
fn iterators_skip_and_count_from_both_ends() {
    let (list, plain) = (list(500), (0..500).map(Arc::new).collect::<Vec<_>>());
    for (skipped, taken) in [(0, 500), (0, 70), (63, 1), (64, 130), (130, 400), (499, 1), (500, 1), (600, 1)] {
        let (items, expected) = (list.iter().skip(skipped).take(taken), plain.iter().skip(skipped).take(taken));
        assert_eq!(items.len(), expected.len());
        assert_eq!(items.clone().collect::<Vec<_>>(), expected.clone().collect::<Vec<_>>());
        assert_eq!(items.rev().collect::<Vec<_>>(), expected.rev().collect::<Vec<_>>());
    }
    let (mut items, mut expected) = (list.iter(), plain.iter());
    for n in [0, 5, 64, 1, 100] {
        assert_eq!((items.nth(n), items.nth_back(n)), (expected.nth(n), expected.nth_back(n)));
        assert_eq!(items.len(), expected.len());
    }
    assert_eq!(list.iter().rposition(|item| **item == 77), Some(77));
}

#[test]
fn random_edits_give_the_lists_of_plain_edits() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let mut plain: Vec<Arc<usize>> = (0..random.below(800)).map(Arc::new).collect();
        let mut list: Chunks<Arc<usize>> = plain.iter().cloned().collect();
        for _ in 0..100 {
            let (before, plain_before) = (list.clone(), plain.clone());
            let start = random.below(plain.len() + 1);
            let longest = if random.below(10) == 0 { 300 } else { 4 };
            let end = start + random.below(longest).min(plain.len() - start);
            let new: Vec<Arc<usize>> = (0..random.below(longest)).map(Arc::new).collect();
            list = list.splice(start..end, new.iter().cloned());
            plain.splice(start..end, new);
            assert_holds(&list, &plain);
            let (old, new) = before.changed(&list);
            assert!(old.len() <= end - start);
            assert_eq!(before.is_same(&list), old.is_empty() && new.is_empty());
            assert_eq!(before.splice(old, list.iter().take(new.end).skip(new.start).cloned()), list);
            if let Some(at) = list.len().checked_sub(1).map(|last| random.below(last + 1)) {
                let item = Arc::new(at);
                (list[at], plain[at]) = (item.clone(), item);
            }
            assert_holds(&list, &plain);
            assert_holds(&before, &plain_before);
        }
    }
}

#[test]
fn parts_of_two_lists_are_joined() {
    let (front, back) = (list(300), list(200));
    for (count, first) in [(0, 0), (300, 0), (0, 200), (64, 64), (70, 130), (299, 199), (128, 250)] {
        let joined = front.joined(count, [Arc::new(7)], &back, first);
        let expected = front.iter().take(count).cloned().chain([Arc::new(7)]).chain(back.iter().skip(first).cloned());
        assert_eq!(joined.iter().cloned().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn edit_shares_all_chunks_that_it_does_not_touch() {
    let before = list(64 * CHUNK);
    let mut after = before.splice(1000..1001, [Arc::new(1)]);
    let shared = |a: &Chunks<Arc<usize>>, b: &Chunks<Arc<usize>>| {
        a.chunks.iter().zip(b.chunks.iter()).filter(|(a, b)| Arc::ptr_eq(&a.items, &b.items)).count()
    };
    assert_eq!((shared(&before, &after), after.chunks.len()), (63, 64));
    assert_eq!(before.changed(&after), (1000..1001, 1000..1001));
    let copy = after.clone();
    assert!(copy.is_same(&after) && copy.address() == after.address());
    after[5] = Arc::new(5);
    assert_eq!((shared(&copy, &after), shared(&before, &after)), (63, 62));
    assert!(copy == after && !copy.is_same(&after));
    assert_eq!(copy.changed(&copy), (64 * CHUNK..64 * CHUNK, 64 * CHUNK..64 * CHUNK));
}
