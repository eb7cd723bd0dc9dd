//! Tests of the detection of a file's dialect.

use rx_syntax::dialect::Dialect;
use rx_syntax::dialect::Dialect::{Classic, Tvm027};
use rx_syntax::{Document, FileKind};

/// Detects the dialect of a function that has `last` as its last lines.
fn detect(last: &str) -> Dialect {
    Dialect::detect(&Document::new(&format!("@R.function\ndef f(x):\n    {last}\n"), FileKind::Rx))
}

/// Detects the dialects of a word alone, beside weak evidence for the classic dialect, and twice beside evidence for the
/// current one.
fn dialects(word: &str) -> [Dialect; 3] {
    [format!("y = g({word})"), format!("y = g({word}, R.Object)"), format!("y = g({word}, {word}, out_ty)")]
        .map(|it| detect(&it))
}

#[test]
fn each_word_is_evidence() {
    let current = ["TypeVar", "out_ty", "ty_args", "sblock", "sblock_alloc_buffer", "sblock_attr", "tirx"];
    for word in current.into_iter().chain(["\"ir.GenericConst\"", "\"tirx.noalias\""]) {
        assert_eq!(dialects(word), [Tvm027, Tvm027, Tvm027], "{word}");
    }
    let classic = ["out_sinfo", "sinfo_args", "tir_vars", "tir", "\"relax.expr.Constant\"", "\"tir.noalias\""];
    for word in classic.into_iter().chain(["T.block()", "T . block_attr"]) {
        assert_eq!(dialects(word), [Classic, Classic, Classic], "{word}");
    }
    for word in ["R.Object", "R.Prim", "\"void\"", "T.bool(1)"] {
        assert_eq!(dialects(word), [Classic, Classic, Tvm027], "{word}");
    }
}

#[test]
fn other_words_are_no_evidence() {
    for word in ["block", "R.block", "T.bool", "Tensor", "blocks", "T[0].block", "\"block\"", "a_tir", "3.5", "T..."] {
        assert_eq!(dialects(word), [Tvm027, Classic, Tvm027], "{word}");
    }
}

#[test]
fn dialect_follows_the_majority_of_all_segments() {
    let lines = "    y = f(x)\n".repeat(200);
    let detect = |last: &str| detect(&format!("a = g(tir)\n{lines}    {last}"));
    assert_eq!(detect("b = x"), Dialect::Classic);
    assert_eq!(detect("b = g(tirx)"), Dialect::Tvm027);
    assert_eq!(detect("b = g(tirx, tir)"), Dialect::Classic);
}
