//! Tests of early exits from loops and functions.

use super::constructs::body_of;
use super::corpus::read_all;
use super::run::result;
use rx_syntax::document::FileKind;

const PARAMS: &str = "x: T.Buffer((8,), \"float32\"), y: T.Buffer((4,), \"float32\")";
const INPUT: [f32; 8] = [3.0, 0.0, 5.0, 1.0, 0.0, 2.0, 9.0, 4.0];

/// Returns the values of `y` after running a body; all are -1 before.
fn values(body: &str) -> Vec<f32> {
    let mut text = format!("@T.prim_func\ndef f({PARAMS}):\n");
    body.lines().for_each(|line| text += &format!("    {line}\n"));
    result(&text, &[(&[8], &INPUT)], &[4])
}

/// Returns the first mistake in a body.
fn refused(body: &str) -> String {
    let mut text = format!("@T.prim_func\ndef f({PARAMS}):\n");
    body.lines().for_each(|line| text += &format!("    {line}\n"));
    match read_all(&text, FileKind::Rx).remove(0) {
        Ok(_) => "read".to_owned(),
        Err(mistakes) => mistakes[0].message.clone(),
    }
}

#[test]
fn continue_keeps_the_for_loop() {
    let text = "y[0] = T.float32(0)\nfor i in range(8):\n    if x[i] == T.float32(0):\n        T.continue_loop()\n    \
                y[0] = y[0] + x[i]\n    y[1] = x[i]";
    assert_eq!(values(text), [24.0, 4.0, -1.0, -1.0]);
    assert_eq!(
        body_of(PARAMS, text),
        "def f(x: T.Buffer((8,), \"float32\"), y: T.Buffer((4,), \"float32\")):\n\
         y[0] = T.float32(0.0)\n\
         for i in range(8):\n    \
             with T.sblock(\"\"):\n        \
                 left = T.sblock_alloc_buffer((1,), \"int32\", scope=\"local\")\n        \
                 left[0] = 0\n        \
                 if x[i] == T.float32(0.0):\n            \
                     left[0] = 1\n        \
                 if left[0] == 0:\n            \
                     y[0] = y[0] + x[i]\n            \
                     y[1] = x[i]"
    );
}

#[test]
fn break_leaves_a_while_loop_of_a_with_statement() {
    let text = "k: T.int32 = 0\nwith T.While(k < 8):\n    if x[k] == T.float32(1):\n        break\n    \
                y[0] = x[k]\n    k += 1";
    assert_eq!(values(text), [5.0, -1.0, -1.0, -1.0]);
}

#[test]
fn for_loop_with_break_becomes_a_while_loop() {
    let text = "for i in range(2, 8):\n    if x[i] == T.float32(0):\n        break\n    y[0] = x[i]\n    y[1] = T.Cast(\"float32\", i)\n\
                y[3] = T.float32(7)";
    assert_eq!(values(text), [1.0, 3.0, -1.0, 7.0]);
    let printed = body_of(PARAMS, text);
    assert!(printed.contains("while left[0] != 2 and "), "{printed}");
}

#[test]
fn break_and_continue_belong_to_the_innermost_loop() {
    // For each row 10 plus the sum up to the first zero; rows that begin with a 9 are skipped.
    let text = "for r in range(4):\n    if x[r * 2] == T.float32(9):\n        continue\n    y[r] = T.float32(0)\n    \
                for c in range(2):\n        if x[r * 2 + c] == T.float32(0):\n            break\n        \
                y[r] = y[r] + x[r * 2 + c]\n    y[r] = y[r] + T.float32(10)";
    assert_eq!(values(text), [13.0, 16.0, 10.0, -1.0]);
    let grid = "for r, c in T.grid(4, 2):\n    if x[r * 2 + c] == T.float32(0):\n        T.evaluate(T.break_loop())\n    y[r] = x[r * 2 + c]";
    assert_eq!(values(grid), [3.0, 1.0, -1.0, 4.0]);
}

#[test]
fn break_in_while_skips_the_condition() {
    // After the last element the index in the condition would be out of range.
    let text = "i: T.int32 = 0\nwhile x[i] != T.float32(100):\n    i = i + 1\n    if i == 8:\n        break\n    \
                if x[i] == T.float32(0):\n        continue\n    y[0] = x[i]\ny[1] = T.Cast(\"float32\", i)";
    assert_eq!(values(text), [4.0, 8.0, -1.0, -1.0]);
}

#[test]
fn loop_extents_are_evaluated_before_the_loop() {
    let text = "n: T.int32 = 3\nfor i in range(n):\n    n = n + 1\n    y[i] = T.Cast(\"float32\", n)\n    if n == 100:\n        break";
    assert_eq!(values(text), [4.0, 5.0, 6.0, -1.0]);
}

#[test]
fn functions_return_from_within_loops() {
    let text = "for r in range(4):\n    for c in range(2):\n        if x[r * 2 + c] == T.float32(5):\n            return\n        \
                y[r] = x[r * 2 + c]\n    y[r] = y[r] + T.float32(10)\ny[3] = T.float32(1)";
    assert_eq!(values(text), [10.0, -1.0, -1.0, -1.0]);
    let last = "y[0] = T.float32(2)\nif x[0] == T.float32(3):\n    y[1] = T.float32(4)\n    return";
    assert_eq!(values(last), [2.0, 4.0, -1.0, -1.0]);
    // No statement follows, so no flag is tested.
    assert!(!body_of(PARAMS, last).contains("left"));
}

#[test]
fn threads_return_for_themselves() {
    let text = "bx = T.launch_thread(\"blockIdx.x\", 2)\ntx = T.launch_thread(\"threadIdx.x\", 4)\n\
                if x[bx * 4 + tx] == T.float32(0):\n    T.thread_return()\n\
                if tx < 2:\n    y[bx * 2 + tx] = x[bx * 4 + tx]";
    assert_eq!(values(text), [3.0, -1.0, -1.0, 2.0]);
}

#[test]
fn unsupported_break_and_continue_are_named() {
    assert_eq!(refused("y[0] = T.float32(0)\nbreak"), "`break` is outside of a loop");
    assert_eq!(refused("if x[0] == T.float32(0):\n    T.continue_loop()"), "`T.continue_loop()` is outside of a loop");
    assert_eq!(
        refused("for i in T.parallel(4):\n    if x[i] == T.float32(0):\n        break\n    y[i] = x[i]"),
        "rx does not run this function: a loop is left whose iterations run at once"
    );
    assert_eq!(
        refused(
            "for i in range(4):\n    with T.sblock(\"y\"):\n        v = T.axis.spatial(4, i)\n        y[v] = x[v]\n        \
             if x[v] == T.float32(0):\n            break"
        ),
        "rx does not run this function: a block with axes is left from inside"
    );
    // Iterations that run concurrently may each end early.
    assert_eq!(
        values("for i in T.parallel(4):\n    if x[i] == T.float32(0):\n        continue\n    y[i] = x[i]"),
        [3.0, -1.0, 5.0, 1.0]
    );
}
