//! Tests of the computation of trees on another thread.

use rx_syntax::{Segment, Segments, with_trees_ahead};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Creates many segments, with lines of several shapes and errors.
fn segments() -> Segments {
    let line = |at: usize| format!("x{at} = f(a{})\nif x{at}: y = (\n", ", a".repeat(at % 40));
    (0..1000).map(|at| Arc::new(Segment::new(line(at).into()))).collect()
}

/// Waits until the other thread has computed all trees.
fn wait(segments: &Segments) {
    while segments.last().is_some_and(|segment| !segment.has_tree()) {
        std::thread::yield_now();
    }
}

#[test]
fn trees_computed_ahead_equal_those_computed_on_use() {
    let (ahead, on_use) = (segments(), segments());
    with_trees_ahead(&ahead, 0..ahead.len(), || wait(&ahead));
    assert!(ahead.iter().zip(&on_use).all(|(ahead, on_use)| ahead.tree() == on_use.tree()));
    let both = segments();
    let are_equal = || both.iter().zip(&on_use).all(|(both, on_use)| both.tree() == on_use.tree());
    assert!(with_trees_ahead(&both, 0..both.len(), are_equal));
}

#[test]
fn trees_before_the_range_are_not_computed() {
    let segments = segments();
    with_trees_ahead(&segments, 9..segments.len(), || wait(&segments));
    assert_eq!(segments.iter().position(|segment| segment.has_tree()), Some(9));
}

#[test]
fn later_lines_share_trees_computed_ahead() {
    let segments = segments();
    let before = Segment::new(segments[0].text().into());
    before.tree();
    with_trees_ahead(&segments, 0..segments.len(), || wait(&segments));
    let later = Segment::new(segments[7].text().into());
    let first = |segment: &Segment| segment.tree().statements[0].tree.clone();
    assert!(Arc::ptr_eq(&first(&before), &first(&segments[0])));
    assert!(Arc::ptr_eq(&first(&later), &first(&segments[7])));
}

#[test]
fn work_that_unwinds_keeps_its_payload() {
    let segments = segments();
    let work = || with_trees_ahead::<()>(&segments, 0..segments.len(), || resume_unwind(Box::new(7)));
    let payload = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    assert_eq!(payload.downcast_ref::<i32>(), Some(&7));
}
