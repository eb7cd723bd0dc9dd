//! Sorted rows: as `sort`, `argsort` and `topk` are lowered, and as a program may write them.

use crate::case::Case;
use crate::script::function;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tensor::{Scalar, Tensor};
use rx_tir::{BinaryOp, CompareOp, Expr, IterKind, KernelBuilder, PrimFunc, Stmt, UnaryOp};

const F32: DType = DType::FLOAT32;

/// A sort along an axis.
#[derive(Clone, Copy)]
struct Sort<'s> {
    shape: &'s [i64],
    is_known: bool,
    axis: usize,
    dtype: DType,
    is_descending: bool,
    /// The number of elements along the axis that are stored, from the beginning of the sorted order, as in `topk`;
    /// `None` for all.
    taken: Option<i64>,
}

fn sort(shape: &[i64], axis: usize) -> Sort<'_> {
    Sort { shape, is_known: true, axis, dtype: F32, is_descending: false, taken: None }
}

fn nan(value: &Expr) -> Expr {
    Expr::compare(CompareOp::Ne, value.clone(), value.clone())
}

fn not(value: Expr) -> Expr {
    Expr::Unary { op: UnaryOp::Not, value: Box::new(value) }
}

fn either(a: Expr, b: Expr) -> Expr {
    Expr::Binary { op: BinaryOp::Or, left: Box::new(a), right: Box::new(b) }
}

impl Sort<'_> {
    /// Returns the sorted values of the negated `data`, with their indices.
    fn func(&self) -> PrimFunc {
        let mut builder = KernelBuilder::new(name("sorted"));
        let dims: Vec<Dim> = match self.is_known {
            true => self.shape.iter().map(|extent| Dim::from(*extent)).collect(),
            false => (0..self.shape.len()).map(|at| Dim::symbol(name(&format!("n{at}")))).collect(),
        };
        let mut stored = dims.clone();
        if let Some(taken) = self.taken {
            stored[self.axis] = Dim::from(taken);
        }
        let data = builder.param("data", &dims, self.dtype);
        let values = builder.param("values", &stored, self.dtype);
        let places = builder.param("places", &stored, DType::INT32);
        let ranks = builder.temporary("ranks", &dims, DType::INT64);
        let (extents, axis) = (builder.shape(ranks), self.axis);
        let with = move |at: &[Expr], place: Expr| {
            let mut at = at.to_vec();
            at[axis] = place;
            at
        };
        let zero = Expr::number(0.0, self.dtype);
        let value = |builder: &KernelBuilder, at: &[Expr]| match self.dtype.is_bool() {
            true => not(builder.load(data, at)),
            false => Expr::binary(BinaryOp::Sub, zero.clone(), builder.load(data, at)),
        };
        let along = [extents[axis].clone()];
        builder.reduce(ranks, &extents, &along, Expr::int(0), BinaryOp::Add, |builder, at, other| {
            let (mine, theirs) = (value(builder, at), value(builder, &with(at, other[0].clone())));
            let first = |a: &Expr, b: &Expr| {
                let (a, b) = if self.is_descending { (b, a) } else { (a, b) };
                either(a.clone().lt(b.clone()), nan(b).and(not(nan(a))))
            };
            let tie = not(first(&mine, &theirs)).and(other[0].clone().lt(at[axis].clone()));
            (at.to_vec(), Expr::select(either(first(&theirs, &mine), tie), Expr::int(1), Expr::int(0)))
        });
        let domain: Vec<(Expr, IterKind)> = extents.iter().map(|one| (one.clone(), IterKind::Spatial)).collect();
        builder.block("sorted", &domain, |builder, at| {
            let rank = builder.load(ranks, at);
            let place = with(at, rank.clone());
            let stores = Stmt::seq([
                builder.store(values, place.clone(), value(builder, at)),
                builder.store(places, place, at[axis].clone().cast(DType::INT32)),
            ]);
            let stores = match self.taken {
                Some(taken) => {
                    Stmt::If { condition: rank.lt(Expr::int(taken)), then: Box::new(stores), otherwise: None }
                }
                None => stores,
            };
            (None, stores)
        });
        rx_loops::guards(&builder.finish()).0
    }

    fn case(&self) -> Case {
        let Sort { shape, axis, dtype, is_descending, taken, is_known } = self;
        let mut stored = shape.to_vec();
        if let Some(taken) = taken {
            stored[*axis] = *taken;
        }
        let said = if *is_known { "" } else { ", which the call says" };
        let order = if *is_descending { "down" } else { "up" };
        let title = format!("{dtype} {shape:?} along {axis} {order}, {taken:?} of it{said}");
        let mut case = Case::new(&title, self.func(), &[shape, &stored, &stored]);
        if dtype.is_float() {
            let special = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY];
            for at in (0..case.arguments[0].len()).filter(|at| at % 7 == 3) {
                case.arguments[0].set(at, Scalar::Float(special[at / 7 % special.len()]));
            }
        }
        case
    }
}

/// Returns a case with the extreme values of an integer dtype, 0 and 3 as data.
fn ends(dtype: DType) -> Case {
    let mut case = Sort { dtype, ..sort(&[2, 9], 1) }.case();
    let (low, high) = match dtype {
        DType::UINT8 => (0, 255),
        DType::INT8 => (-128, 127),
        DType::INT32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::UINT32 => (0, i64::from(u32::MAX)),
        DType::UINT64 => (0, -1),
        _ => (i64::MIN, i64::MAX),
    };
    for at in 0..case.arguments[0].len() {
        case.arguments[0].set(at, Scalar::Int([low, 3, high, 0, 3, high][at % 6]));
    }
    case.name = format!("the ends of {dtype}");
    case
}

pub fn cases() -> Vec<Case> {
    let mut all = vec![written()];
    for length in [1, 2, 3, 31, 64, 100, 1000, 1500] {
        all.push(sort(&[3, length], 1).case());
        all.push(Sort { is_descending: true, ..sort(&[3, length], 1) }.case());
    }
    let shapes: [&[i64]; 5] = [&[3, 7], &[0, 7], &[2, 0], &[2, 1], &[5, 600]];
    for shape in shapes {
        all.push(Sort { is_known: false, is_descending: true, ..sort(shape, 1) }.case());
        all.push(Sort { is_known: false, taken: Some(1), ..sort(shape, 1) }.case());
    }
    for (shape, axis) in [(&[40i64, 5, 3] as &[i64], 0), (&[2, 70, 3], 1), (&[5, 1, 20], 2)] {
        all.push(sort(shape, axis).case());
        all.push(Sort { is_known: false, taken: Some(4), is_descending: true, ..sort(shape, axis) }.case());
    }
    let narrow = [DType::FLOAT16, DType::BFLOAT16, DType::FLOAT64, DType::BOOL];
    let integers = [DType::INT8, DType::UINT8, DType::INT16, DType::INT32, DType::UINT32, DType::INT64, DType::UINT64];
    for dtype in narrow.into_iter().chain(integers) {
        all.push(Sort { dtype, ..sort(&[4, 130], 1) }.case());
        all.push(Sort { dtype, is_descending: true, taken: Some(5), ..sort(&[4, 130], 1) }.case());
    }
    all.extend([DType::UINT8, DType::INT8, DType::INT32, DType::UINT32, DType::INT64, DType::UINT64].map(ends));
    all
}

/// Returns cases with rows longer than a block sorts in shared memory. They are too slow in the interpreter, which
/// compares each element with all others of its row.
pub(crate) fn long() -> Vec<Case> {
    let few = Sort { is_descending: true, taken: Some(50), ..sort(&[1, 9000], 1) };
    vec![
        sort(&[1, 5000], 1).case(),
        Sort { is_known: false, ..sort(&[1, 8192], 1) }.case(),
        few.case(),
        Sort { is_known: false, ..few }.case(),
        Sort { dtype: DType::INT64, taken: Some(3), ..sort(&[5000, 2], 0) }.case(),
        Sort { dtype: DType::FLOAT64, is_descending: true, ..sort(&[2, 4100], 1) }.case(),
    ]
}

/// Returns an argsort by counting, as programs write it: the rank of an element is the number of elements that are
/// less, or equal and earlier.
fn written() -> Case {
    let head = "order(x: T.Buffer((4, 50), \"int32\"), out: T.Buffer((4, 50), \"int32\"))";
    let body = "\
ranks = T.sblock_alloc_buffer((4, 50), \"int32\")
for i, j, k in T.grid(4, 50, 50):
    with T.sblock(\"ranks\"):
        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])
        with T.init():
            ranks[vi, vj] = 0
        ranks[vi, vj] = ranks[vi, vj] + T.Cast(\"int32\", x[vi, vj] > x[vi, vk] or (x[vi, vk] <= x[vi, vj] and vk < vj))
for i, j in T.grid(4, 50):
    with T.sblock(\"order\"):
        vi, vj = T.axis.remap(\"SS\", [i, j])
        out[vi, ranks[vi, vj]] = vj";
    Case::new("counted by hand", function(head, body), &[&[4, 50], &[4, 50]])
}

#[test]
fn cases_are_scheduled_by_the_rule() {
    for case in cases().iter().chain(&long()) {
        let source = crate::source(std::slice::from_ref(case));
        let rules: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        // A row of one element has a constant rank.
        let is_single = case.name.contains(", 1] along") && !case.name.contains("says");
        assert!(is_single || rules == ["sort"], "{}: {rules:?} {:?}", case.name, source.choices);
    }
}

#[test]
fn cases_agree_with_the_interpreter_in_every_order() {
    for some in cases().chunks(40) {
        crate::simulated::agree(some);
    }
}

#[test]
fn long_rows_agree_with_the_cpu() {
    let cases = long();
    let source = crate::source(&cases);
    let Some(simulator) = crate::simulated::simulator(&source) else { return };
    let bytes: Vec<Vec<&[u8]>> = cases.iter().map(Case::bytes).collect();
    let values: Vec<Vec<Option<i64>>> = cases.iter().map(Case::values).collect();
    let order = rx_cuda::simulator::Order::Descending;
    let calls: Vec<_> = (0..cases.len())
        .map(|at| rx_cuda::simulator::Call { function: at, buffers: &bytes[at], values: &values[at], order })
        .collect();
    let results = simulator.run(&calls).unwrap_or_else(|error| panic!("{error}"));
    for (case, result) in cases.iter().zip(results) {
        let expected = crate::compiled::on_cpu(case).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let tensors = case.arguments.iter().zip(expected.expect("no check fails"));
        let tensors = tensors.map(|(of, bytes)| Tensor::from_bytes(of.dtype(), of.shape(), &bytes).expect("its bytes"));
        let judged = case.compare_all(Ok(&result.expect("no check fails")), &Ok(tensors.collect()));
        judged.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn comparisons_that_are_no_order_are_declined() {
    let head = "order(x: T.Buffer((4, 50), \"float32\"), out: T.Buffer((4, 50), \"float32\"))";
    let count = |before: &str| {
        format!(
            "ranks = T.sblock_alloc_buffer((4, 50), \"int32\")
for i, j, k in T.grid(4, 50, 50):
    with T.sblock(\"ranks\"):
        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])
        with T.init():
            ranks[vi, vj] = 0
        ranks[vi, vj] = ranks[vi, vj] + T.Cast(\"int32\", {before})
for i, j in T.grid(4, 50):
    with T.sblock(\"order\"):
        vi, vj = T.axis.remap(\"SS\", [i, j])
        out[vi, ranks[vi, vj]] = x[vi, vj]"
        )
    };
    for before in [
        // Equal elements would have the same rank.
        "x[vi, vk] < x[vi, vj]",
        // The first has equal elements in reverse order; in the second, each NaN would have rank 0.
        "x[vi, vk] < x[vi, vj] or (x[vi, vk] == x[vi, vj] and vk > vj)",
        "x[vi, vk] < x[vi, vj] or (x[vi, vk] == x[vi, vj] and vk < vj)",
        "x[vi, vk] * x[vi, vj] < x[vi, vj]",
    ] {
        let case = Case::new(before, function(head, &count(before)), &[&[4, 50], &[4, 50]]);
        let source = crate::source(std::slice::from_ref(&case));
        assert_ne!(source.choices[0].rule, "sort", "{before}");
        let declined = source.choices[0].declined.iter().find(|(rule, _)| *rule == "sort");
        assert!(declined.is_some_and(|(_, why)| why.starts_with("requires a ranking")), "{declined:?}");
    }
}

#[test]
fn kernels_compile_and_keep_values_in_registers() {
    let cases: Vec<Case> = cases().into_iter().chain(long()).collect();
    crate::nvrtc::have_no_stack(&cases);
}

#[test]
fn text_of_a_sort_matches_the_golden_file() {
    let case = Sort { taken: Some(8), is_descending: true, ..sort(&[16, 64], 1) }.case();
    let source = rx_cuda::listing(&[&case.func], &rx_cuda::rules::Target::default());
    let text = source.functions[0].as_ref().unwrap_or_else(|error| panic!("{error}"));
    crate::templates::is_written("sort", text);
}
