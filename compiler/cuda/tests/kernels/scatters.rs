//! Scatters: stores at indices loaded from a buffer. Several stores to one element happen in loop order.

use crate::case::Case;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cuda::rules::Target;
use rx_tensor::Scalar;
use rx_tir::{Expr, IterKind, KernelBuilder, PrimFunc};

const F32: DType = DType::FLOAT32;

/// The combination of the old element with an update.
#[derive(Clone, Copy, Debug)]
enum Update {
    Last,
    Sum,
    Largest,
}

/// Returns `out[numbers[i], j] (=, +=, max=) updates[i, j]`, where `out` has 7 rows.
fn scattered(count: &Dim, columns: Option<i64>, dtype: DType, update: Update) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("scattered"));
    let more: Vec<Dim> = columns.into_iter().map(Dim::from).collect();
    let shape = |first: Dim| [vec![first], more.clone()].concat();
    let numbers = builder.param("numbers", std::slice::from_ref(count), DType::INT64);
    let updates = builder.param("updates", &shape(count.clone()), dtype);
    let out = builder.param("out", &shape(Dim::from(7)), dtype);
    let first = (builder.dim(count), IterKind::Ordered);
    let rest = columns.map(|columns| (Expr::int(columns), IterKind::Spatial));
    let domain: Vec<(Expr, IterKind)> = [first].into_iter().chain(rest).collect();
    builder.block("scattered", &domain, |builder, at| {
        let mut place = vec![builder.load(numbers, &at[..1])];
        place.extend_from_slice(&at[1..]);
        let (old, new) = (builder.load(out, &place), builder.load(updates, at));
        let value = match update {
            Update::Last => new,
            Update::Sum => old + new,
            Update::Largest => old.max(new),
        };
        (None, builder.store(out, place, value))
    });
    rx_loops::guards(&builder.finish()).0
}

/// Returns a case with indices from 0 to 6.
fn case(count: i64, columns: Option<i64>, dtype: DType, update: Update, is_known: bool) -> Case {
    let dim = if is_known { Dim::from(count) } else { Dim::symbol(name("n")) };
    let shape = |first: i64| [vec![first], columns.into_iter().collect()].concat();
    let said =
        format!("{update:?} of {count} {dtype}, columns {columns:?}, {}", if is_known { "known" } else { "called" });
    let func = scattered(&dim, columns, dtype, update);
    let mut case = Case::new(&said, func, &[&[count], &shape(count), &shape(7)]);
    for at in 0..case.arguments[0].len() {
        case.arguments[0].set(at, Scalar::Int((at as i64 * 5 + at as i64 / 3) % 7));
    }
    case
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for update in [Update::Last, Update::Sum, Update::Largest] {
        for dtype in [F32, DType::FLOAT16, DType::INT64] {
            all.push(case(100, None, dtype, update, true));
        }
        for count in [0, 1, 33, 100] {
            all.push(case(count, None, F32, update, false));
            all.push(case(count, Some(40), F32, update, false));
        }
        all.push(case(50, Some(33), F32, update, true));
    }
    all
}

#[test]
fn cases_are_scheduled_by_the_rule() {
    crate::are_taken_by("scatter", &cases(), &Target::default());
}

#[test]
fn updates_of_an_element_keep_their_order() {
    // Sums are compared exactly: the kernel adds in loop order.
    crate::simulated::agree(&cases());
}

#[test]
fn scatter_index_out_of_range_is_an_error() {
    let mut case = case(40, None, F32, Update::Sum, true);
    case.arguments[0].set(17, Scalar::Int(7));
    crate::simulated::agree(&[case]);
}

#[test]
fn kernels_compile_and_keep_values_in_registers() {
    crate::nvrtc::have_no_stack(&cases());
}

#[test]
fn scatter_that_reads_other_elements_is_declined() {
    // Each iteration loads `out[i]`, to which an earlier iteration may have stored: the index of that store is data.
    let mut builder = KernelBuilder::new(name("chained"));
    let numbers = builder.param("numbers", &[Dim::from(64)], DType::INT64);
    let out = builder.param("out", &[Dim::from(64)], F32);
    builder.block("chained", &[(Expr::int(64), IterKind::Ordered)], |builder, at| {
        let number = builder.load(numbers, at);
        let value = builder.load(out, at) + builder.load(out, std::slice::from_ref(&number));
        (None, builder.store(out, vec![number], value))
    });
    let case = Case::new("chained", rx_loops::guards(&builder.finish()).0, &[&[64], &[64]]);
    let source = crate::source(&[case]);
    let reasons = &source.choices[0].declined;
    assert_eq!(source.choices[0].rule, "fallback");
    assert!(
        reasons
            .contains(&("scatter", "requires reads of the buffer only at the stored element; found others".to_owned())),
        "{reasons:?}"
    );
}
