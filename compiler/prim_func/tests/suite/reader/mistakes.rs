//! Tests of rejected functions and the positions of the errors.

use rx_base::name::name;
use rx_context::{FileContext, ItemPlace};
use rx_prim_func::reader::prim_func;
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

/// Returns the message for a mistake in a body, and the text at its position.
fn mistake(body: &str) -> String {
    let mut text = "@T.prim_func\ndef f(A: T.Buffer((8, 8), \"float32\"), h: T.int32, p: T.handle):\n".to_owned();
    body.lines().for_each(|line| text += &format!("    {line}\n"));
    let segments = Segments::from_iter([Arc::new(Segment::new(text.as_str().into()))]);
    match prim_func(&segments, &FileContext::default(), name("f")) {
        Ok(_) => "none".to_owned(),
        Err(mistakes) => {
            let ItemPlace::Segment(0, span) = &mistakes[0].primary else { return "elsewhere".to_owned() };
            format!("{} at `{}`", mistakes[0].message, &text[span.range()])
        }
    }
}

#[test]
fn mistake_is_reported_at_its_place() {
    assert_eq!(mistake("pass"), "none");
    for (body, expected) in [
        ("A[0] = 1", "`A` has 2 dims; found 1 index at `A`"),
        ("A[0, 0] = B[0]", "`B` is not defined at `B`"),
        (
            "A[0, 0] = T.call_extern(\"float32\", \"f\")",
            "rx does not run `f`, which `T.call_extern` calls at `T.call_extern(\"float32\", \"f\")`",
        ),
        (
            "T.call_packed(\"tvm.contrib.sort.sort\", p)",
            "rx does not run `tvm.contrib.sort.sort`, which `T.call_packed` calls",
        ),
        ("A[0, 0] = p", "rx does not run pointers as values at `p`"),
        (
            "for i in range(4):\n    B = T.decl_buffer((i,), data=p)\n    B[0] = 1",
            "rx does not run a buffer over the handle `p` whose extents mention `i` of the body at `p: T.handle`",
        ),
        ("A[0, 0] = h / 2", "`/` requires a float; found int32 and int32: write `//`, `T.truncdiv` or a cast"),
        ("A[0, 0] = T.exp()", "T.exp: argument `x` is missing"),
        ("A[0, 0] = T.Cast(\"float32\", T.exp10(T.int32(3)))", "rx does not run `T.exp10` of int32"),
        ("A[0, 0] = T.exp(A[0, 0]).foo(h)", "a scalar of float32 has no attribute `foo` at `foo`"),
        ("A[0, 0] = A.values[0]", "a buffer has no attribute `values` at `values`"),
        ("A[h * 1.5, 0] = 0", "an index or extent must be an integer; found float32"),
        ("return h", "rx does not run a prim_func's return value"),
        (
            "T.tvm_storage_sync(\"global\", T.bool(False), -1)",
            "rx does not run `T.tvm_storage_sync` of the scope \"global\", where all blocks wait for each other at `T.tvm_storage_sync(",
        ),
        ("B = T.alloc_buffer((4,), \"flaot32\")", "this is not a dtype at `\"flaot32\"`"),
        ("B = T.alloc_buffer((4,), byte_offset=8)", "rx does not run a buffer with `byte_offset` at `8`"),
        (
            "B = T.decl_buffer((4,), \"float32\", None, None, 0, 16)",
            "rx does not run a buffer with `byte_offset` at `16`",
        ),
        ("A[0, 0:4] = A[0, 1:5]", "rx does not run a vector store whose value reads the same buffer"),
        ("B, C = A, A\nC[0, 0] = B[0, 1]", "none"),
        (
            "B = T.alloc_buffer((8, 8))\nfor i in range(4):\n    A, B = B, A\n    A[i, 0] = B[i, 0]",
            "rx does not run this assignment: a value reads a variable that it binds first at `A`",
        ),
        ("v = T.axis.spatial(4, h)", "`T.axis` must be inside a block"),
        ("n = T.int64()\nA[0, 0] = n", "no parameter determines the value of `n` at `f`"),
    ] {
        let found = mistake(body);
        assert!(found.starts_with(expected), "{body}: {found}");
    }
}

#[test]
fn depth_is_bounded() {
    let sum = |terms: usize| format!("A[0, 0] = {}", vec!["h"; terms].join(" + "));
    assert_eq!(mistake(&sum(505)), "none");
    // The parser may reject it before the reader does.
    assert_ne!(mistake(&sum(5000)), "none");
    assert!(mistake(&format!("A[0, 0] = {}", vec!["h < 1"; 5000].join(" and "))).contains("more than"));
    let lets = |count: usize| (0..count).map(|at| format!("x{at}: T.let[T.int32] = h")).collect::<Vec<_>>().join("\n");
    assert_eq!(mistake(&lets(505)), "none");
    assert!(mistake(&lets(5000)).contains("more than"));
    let mut nested = String::new();
    (0..200).for_each(|depth| nested += &format!("{}for i{depth} in range(2):\n", " ".repeat(depth)));
    nested += &format!("{}A[0, 0] = 1", " ".repeat(200));
    assert_eq!(mistake(&nested), "none");
}

#[test]
fn wrong_fragment_arguments_are_named() {
    let declared = "\
fa = T.alloc_buffer((16, 16), \"float16\", scope=\"wmma.matrix_a\")
fc = T.alloc_buffer((16, 16), scope=\"wmma.accumulator\")
sh = T.alloc_buffer((16, 16), scope=\"shared\")";
    for (body, expected) in [
        ("T.tvm_fill_fragment(fc.data, 16, 16, 16, 0)", "T.tvm_fill_fragment: argument `value` is missing"),
        (
            "T.tvm_fill_fragment(sh.data, 16, 16, 16, 0, 0.0)",
            "this is not a fragment: its storage scope is not one of `wmma.*` at `sh.data`",
        ),
        (
            "T.tvm_fill_fragment(fc.data, h, 16, 16, 0, 0.0)",
            "rx does not run fragments whose size is not a constant up to 256 at `h`",
        ),
        (
            "T.tvm_mma_sync(fc.data, 0, fa.data, 0, fa.data, 0, fc.data, 0)",
            "`T.tvm_mma_sync` requires fragments of known shape, but none of these is filled or loaded before",
        ),
        (
            "T.tvm_fill_fragment(fc.data, 16, 16, 16, 0, 0.0)\nT.tvm_mma_sync(fc.data, 0, fa.data, 0, fa.data, 0, fc.data, 0)",
            "`T.tvm_mma_sync` requires a fragment of `wmma.matrix_b`; found one of `wmma.matrix_a` at `fa.data`",
        ),
        (
            "T.tvm_load_matrix_sync(fa.data, 16, 16, 16, 0, sh.data, 16, \"row_major\")",
            "the fragment has dtype float16, but the memory has dtype float32 at `sh.data`",
        ),
        (
            "T.tvm_store_matrix_sync(fc.data, 16, 16, 16, 0, sh.data, 16, \"rows\")",
            "the order of a matrix must be \"row_major\" or \"col_major\" at `\"rows\"`",
        ),
        ("fd = T.alloc_buffer((16,), scope=\"wmma.matrix_d\")", "rx does not run the storage scope \"wmma.matrix_d\""),
    ] {
        let found = mistake(&format!("{declared}\n{body}"));
        assert!(found.starts_with(expected), "{body}: {found}");
    }
}
