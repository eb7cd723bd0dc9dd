//! Tests of macro expansion.

use super::constructs::body;
use super::corpus::read_all;
use rx_syntax::document::FileKind;
use rx_tir::print::script;

const PARAMS: &str = "A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")";

/// Returns the printed body of the last function of a text, which follows its macros.
fn after(macros: &str, statements: &str) -> Result<String, String> {
    let mut text = format!("{macros}\n@T.prim_func\ndef f({PARAMS}):\n");
    statements.lines().for_each(|line| text += &format!("    {line}\n"));
    match read_all(&text, FileKind::Rx).pop() {
        Some(Ok(func)) => Ok(script(&func).split_once("):\n").map_or(String::new(), |(_, body)| body.to_owned())),
        Some(Err(mistakes)) => Err(mistakes.first().map_or(String::new(), |first| first.message.clone())),
        None => Err("no function".to_owned()),
    }
}

fn plain(statements: &str) -> Result<String, String> {
    after("", statements)
}

#[test]
fn macro_call_is_its_statements_with_arguments_for_parameters() {
    let bump = "@T.inline\ndef bump(buf, k, delta=T.float32(1)):\n    buf[k] = buf[k] + delta\n";
    assert_eq!(
        after(bump, "for i in range(8):\n    bump(B, i)"),
        plain("for i in range(8):\n    B[i] = B[i] + T.float32(1)")
    );
    assert_eq!(
        after(bump, "for i in range(8):\n    bump(k=i, buf=B, delta=A[i])"),
        plain("for i in range(8):\n    B[i] = B[i] + A[i]")
    );
    let all = "@T.macro\ndef store(buf, *values):\n    buf[0] = values[0] + values[1]\n";
    assert_eq!(after(all, "store(B, A[1], A[2])"), plain("B[0] = A[1] + A[2]"));
}

#[test]
fn hygienic_macro_sees_no_names_of_its_caller() {
    let text = "@T.macro\ndef put(buf):\n    buf[0] = A[k]\n";
    assert_eq!(after(text, "for k in range(8):\n    put(B)"), Err("`A` is not defined".to_owned()));
    let lax = text.replace("@T.macro", "@T.macro(hygienic=False)");
    assert_eq!(after(&lax, "for k in range(8):\n    put(B)"), plain("for k in range(8):\n    B[0] = A[k]"));
    // A name in the macro is distinct from the caller's name with the same spelling.
    let own = "@T.inline\ndef put(buf, v):\n    x: T.let[T.float32()] = v * T.float32(2)\n    buf[0] = x\n";
    let found = after(own, "x: T.let[T.float32] = A[0]\nput(B, x)\nB[1] = x").expect("it is right");
    assert!(found.contains("x_1: T.let[T.float32] = x * T.float32(2") && found.contains("B[1] = x\n"), "{found}");
}

#[test]
fn macro_of_a_function_sees_the_names_around_its_definition() {
    let found = body(
        PARAMS,
        "for i in range(8):\n    @T.inline\n    def put(v):\n        B[i] = v\n    for j in range(2):\n        put(A[i])",
    );
    assert_eq!(found, body(PARAMS, "for i in range(8):\n    for j in range(2):\n        B[i] = A[i]"));
    let hidden = "@T.inline\ndef put(v):\n    B[j] = v\nfor j in range(8):\n    put(A[j])";
    assert_eq!(plain(hidden), Err("`j` is not defined".to_owned()));
}

#[test]
fn macros_call_macros() {
    let text = "@T.inline\ndef one(buf, k):\n    buf[k] = T.float32(1)\n@T.inline\ndef two(buf, k):\n    one(buf, k)\n    one(buf, k + 1)\n";
    assert_eq!(after(text, "two(B, 2)"), plain("B[2] = T.float32(1)\nB[3] = T.float32(1)"));
}

#[test]
fn blocks_of_the_second_expansion_have_names_of_their_own() {
    let text = "@T.inline\ndef put(buf):\n    for i in range(8):\n        with T.sblock(\"put\"):\n            v = T.axis.spatial(8, i)\n            buf[v] = T.float32(1)\n";
    let found = after(text, "put(A)\nput(B)").expect("it is right");
    assert!(found.contains("T.sblock(\"put\")") && found.contains("T.sblock(\"put_1\")"), "{found}");
}

#[test]
fn constant_test_in_a_macro_reads_the_chosen_branch_only() {
    let text = "@T.inline\ndef put(buf, bias=None):\n    if bias is None:\n        buf[0] = T.float32(0)\n    else:\n        buf[0] = bias[0]\n";
    assert_eq!(after(text, "put(B)"), plain("B[0] = T.float32(0)"));
    assert_eq!(after(text, "put(B, A)"), plain("B[0] = A[0]"));
    let text = "@T.inline\ndef put(buf, bias, has_bias):\n    if has_bias:\n        buf[0] = bias[0]\n    else:\n        buf[0] = T.float32(0)\n";
    assert_eq!(after(text, "put(B, None, False)"), plain("B[0] = T.float32(0)"));
    assert_eq!(after(text, "put(B, A, True)"), plain("B[0] = A[0]"));
}

#[test]
fn recursion_with_an_end_is_expanded() {
    let text = "@T.inline\ndef put(buf, k):\n    if k > 0:\n        put(buf, k - 1)\n    buf[k] = T.float32(0)\n";
    let expected = "B[0] = T.float32(0)\nB[1] = T.float32(0)\nB[2] = T.float32(0)";
    assert_eq!(after(text, "put(B, 2)"), plain(expected));
}

#[test]
fn recursion_and_growth_are_bounded() {
    let own = "@T.inline\ndef f1(buf):\n    f1(buf)\n";
    assert_eq!(after(own, "f1(B)"), Err("the macro `f1` calls itself more than 128 levels deep".to_owned()));
    let mutual = "@T.inline\ndef f1(buf):\n    f2(buf)\n@T.inline\ndef f2(buf):\n    f1(buf)\n";
    assert_eq!(after(mutual, "f1(B)"), Err("the macro `f1` calls itself more than 128 levels deep".to_owned()));
    let mut doubling = "@T.inline\ndef m0(buf):\n    buf[0] = T.float32(0)\n".to_owned();
    for at in 1..40 {
        doubling += &format!("@T.inline\ndef m{at}(buf):\n    m{}(buf)\n    m{}(buf)\n", at - 1, at - 1);
    }
    assert_eq!(after(&doubling, "m39(B)"), Err("macros expand to more than 65536 statements".to_owned()));
    let mut deep = "@T.inline\ndef m0(buf):\n    buf[0] = T.float32(0)\n".to_owned();
    for at in 1..2000 {
        deep += &format!("@T.inline\ndef m{at}(buf):\n    m{}(buf)\n", at - 1);
    }
    assert_eq!(after(&deep, "m1999(B)"), Err("the function is nested more than 512 levels deep".to_owned()));
}

#[test]
fn calls_that_do_not_fit_a_macro_are_mistakes() {
    let text = "@T.inline\ndef put(buf, k):\n    buf[k] = T.float32(0)\n";
    for (call, expected) in [
        ("put(B)", "put: argument `k` is missing"),
        ("put(B, 0, 1)", "put: takes at most 2 arguments by position, more are passed"),
        ("put(B, 0, k=1)", "put: `k` is passed twice"),
        ("put(B, at=1)", "put: there is no argument `at`"),
        ("put(*B)", "rx does not run a macro's call with `*` or `**`"),
        ("B[0] = put(B, 0)", "`put` is a macro: its call is a statement, not a value"),
    ] {
        assert_eq!(after(text, call), Err(expected.to_owned()), "{call}");
    }
}

#[test]
fn thread_launched_by_a_macro_is_open_for_the_rest_of_the_body() {
    let text =
        "@T.inline\ndef launch(buf):\n    tx = T.launch_thread(\"threadIdx.x\", 8)\n    buf[tx] = T.float32(0)\n";
    let found = after(text, "launch(B)\nA[0] = T.float32(1)");
    assert_eq!(found, plain("tx = T.launch_thread(\"threadIdx.x\", 8)\nB[tx] = T.float32(0)\nA[0] = T.float32(1)"));
}
