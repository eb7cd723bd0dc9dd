//! Compares the bounds checks with the interpreter: a kernel must behave as the checks report.

use proptest::prelude::*;
use rx_base::name::name;
use rx_base::{Code, Diagnostic};
use rx_context::{FileContext, ItemPlace};
use rx_interp::RunError;
use rx_syntax::{Segment, Segments};
use rx_tensor::Tensor;
use std::sync::Arc;

fn segments(text: &str) -> Segments {
    Segments::from_iter([Arc::new(Segment::new(text.into()))])
}

fn found(text: &str) -> Vec<Diagnostic<ItemPlace>> {
    rx_prim_func::checks::check(&segments(text), &FileContext::default(), name("f"))
}

/// Whether an index is out of range when the function is run on buffers of these shapes.
fn fails(text: &str, shapes: &[Vec<i64>]) -> bool {
    let func = rx_prim_func::reader::prim_func(&segments(text), &FileContext::default(), name("f"));
    let func = func.unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"));
    let zeros = |shape: &Vec<i64>| Tensor::from_f32s(shape, vec![0.0; shape.iter().product::<i64>() as usize]);
    let mut buffers = shapes.iter().map(zeros).collect::<Result<Vec<Tensor>, _>>().expect("shapes fit values");
    match rx_interp::run(&func, &mut buffers, &[]) {
        Ok(()) => false,
        Err(RunError::OutOfBounds { .. }) => true,
        Err(other) => panic!("{other}\n{text}"),
    }
}

/// Generates an index expression over `i`, `j`, small integers and `constant`.
fn index(constant: &'static str) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("i".to_owned()),
        Just("j".to_owned()),
        (-2i64..4).prop_map(|value| value.to_string()),
        Just(constant.to_owned()),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        (inner.clone(), inner, 0..6).prop_map(|(a, b, op)| match op {
            0 | 1 => format!("({a} + {b})"),
            2 => format!("({a} - {b})"),
            3 => format!("({a} * 2)"),
            4 => format!("({a} // 2)"),
            _ => format!("({a} % 3)"),
        })
    })
}

fn guard(constant: &'static str) -> impl Strategy<Value = String> {
    let comparison = (index(constant), index(constant), prop_oneof![Just("<"), Just("<="), Just("=="), Just(">")]);
    comparison.prop_map(|(a, b, op)| format!("{a} {op} {b}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// If all extents are constant, an index is reported if and only if running the kernel fails.
    #[test]
    fn constant_kernels_fail_where_an_index_is_reported(
        rows in 1i64..6,
        columns in 1i64..6,
        extent in 1i64..8,
        index in index("3"),
        guard in guard("3"),
    ) {
        let text = format!(
            "@T.prim_func\ndef f(A: T.Buffer(({extent},), \"float32\"), B: T.Buffer((1,), \"float32\")):\n    \
             for i, j in T.grid({rows}, {columns}):\n        if {guard}:\n            B[0] = A[{index}]\n"
        );
        let said = found(&text).iter().any(|it| it.code == Code::BufferIndexOutOfBounds);
        prop_assert_eq!(said, fails(&text, &[vec![extent], vec![1]]), "{}", text);
    }

    /// If an extent is a symbol, an error means that the kernel fails for every value for which it executes the
    /// access. A warning means that it fails for some value.
    #[test]
    fn symbolic_kernels_fail_where_an_index_is_reported(
        rows in prop_oneof![Just("n"), Just("n + 1"), Just("(n + 3) // 4"), Just("4")],
        columns in prop_oneof![Just("n"), Just("4"), Just("2")],
        index in index("n"),
        guard in prop_oneof![Just("0 <= i".to_owned()), guard("n")],
    ) {
        let kernel = |index: &str| format!(
            "@T.prim_func\ndef f(a: T.handle, B: T.Buffer((1,), \"float32\")):\n    n = T.int64()\n    \
             A = T.match_buffer(a, (n,), \"float32\")\n    for i, j in T.grid({rows}, {columns}):\n        \
             if {guard}:\n            B[0] = A[{index}]\n"
        );
        let text = kernel(&index);
        let diagnostics = found(&text);
        let said = |code: Code| diagnostics.iter().any(|it| it.code == code);
        let outcomes = |text: &str| -> Vec<bool> {
            // A guard may hold for a single small value, or only for the largest value that the check tries.
            (1..=24).chain([33, 64, 100]).map(|n| fails(text, &[vec![n], vec![1]])).collect()
        };
        // An access at `n` fails whenever it is executed.
        let (fails, is_reached) = (outcomes(&text), outcomes(&kernel("n")));
        if said(Code::BufferIndexMaybeOutOfBounds) {
            prop_assert!(fails.contains(&true), "{}", text);
        }
        if said(Code::BufferIndexOutOfBounds) {
            prop_assert!(fails.contains(&true), "{}", text);
            prop_assert_eq!(fails, is_reached, "{}", text);
        }
    }
}
