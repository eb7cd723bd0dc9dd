//! Scans (running sums, products, maxima and others): rows of many lengths, along several axes, as operators are
//! lowered and as programs write them.

use crate::case::Case;
use crate::script::function;
use rx_base::DType;
use rx_base::name::name;
use rx_tensor::{Scalar, Tensor};
use rx_tir::{BinaryOp, Expr, IterKind, KernelBuilder, PrimFunc};

const F32: DType = DType::FLOAT32;

/// A scan along an axis.
#[derive(Clone, Copy)]
struct Scan<'s> {
    shape: &'s [i64],
    /// Whether the extents are constants; otherwise they are symbols.
    is_known: bool,
    axis: usize,
    dtype: DType,
    /// The dtype of the running value. If it is not `dtype`, a second statement casts the results.
    sum: DType,
    op: BinaryOp,
    is_exclusive: bool,
}

fn sum(shape: &[i64], axis: usize) -> Scan<'_> {
    Scan { shape, is_known: true, axis, dtype: F32, sum: F32, op: BinaryOp::Add, is_exclusive: false }
}

impl Scan<'_> {
    /// Returns the scan as `cumsum` is lowered: the axis along the scan is ordered, the others are spatial.
    fn func(&self) -> PrimFunc {
        let mut builder = KernelBuilder::new(name("cumsum"));
        let symbols = (0..self.shape.len()).map(|at| rx_base::Dim::symbol(name(&format!("n{at}"))));
        let dims: Vec<rx_base::Dim> = match self.is_known {
            true => self.shape.iter().map(|extent| rx_base::Dim::from(*extent)).collect(),
            false => symbols.collect(),
        };
        let (data, out) = (builder.param("data", &dims, self.dtype), builder.param("out", &dims, self.dtype));
        let target = if self.sum == self.dtype { out } else { builder.temporary("scan", &dims, self.sum) };
        let extents = builder.shape(out);
        let mut domain: Vec<(Expr, IterKind)> =
            extents.iter().map(|extent| (extent.clone(), IterKind::Spatial)).collect();
        let along = domain.remove(self.axis).0;
        domain.push((along, IterKind::Ordered));
        builder.block("cumsum", &domain, |builder, parts| {
            let (place, rows) = parts.split_last().expect("an axis");
            let at = |place: Expr| {
                let mut index = rows.to_vec();
                index.insert(self.axis, place);
                index
            };
            let before = at(place.clone() - Expr::int(1));
            let own = if self.is_exclusive { before.clone() } else { at(place.clone()) };
            let neutral = if self.op == BinaryOp::Mul { 1.0 } else { 0.0 };
            let first = match self.is_exclusive {
                true => Expr::number(neutral, self.sum),
                false => builder.load(data, &own).cast(self.sum),
            };
            let running = Expr::Binary {
                op: self.op,
                left: Box::new(builder.load(target, &before)),
                right: Box::new(builder.load(data, &own).cast(self.sum)),
            };
            let value = Expr::select(place.clone().eq(Expr::int(0)), first, running);
            (None, builder.store(target, at(place.clone()), value))
        });
        if target != out {
            builder.compute(out, |builder, index| builder.load(target, index).cast(self.dtype));
        }
        rx_loops::guards(&builder.finish()).0
    }

    fn case(&self) -> Case {
        let Scan { shape, axis, dtype, sum, op, is_exclusive, is_known } = self;
        let said = if *is_known { "" } else { ", which the call says" };
        let exclusive = if *is_exclusive { "exclusive " } else { "" };
        let mut case = Case::new(
            &format!("{exclusive}{op:?} of {dtype} in {sum}, {shape:?} along {axis}{said}"),
            self.func(),
            &[shape, shape],
        );
        if *op == BinaryOp::Mul && dtype.is_float() {
            // Products of many numbers that stay within range.
            for at in 0..case.arguments[0].len() {
                let value = [1.0, -1.0, 2.0, 0.5, 0.5, 2.0][at % 6];
                case.arguments[0].set(at, Scalar::Float(value));
            }
        }
        let tolerance = match dtype.bits {
            _ if !dtype.is_float() => 0.0,
            64 => 1e-12,
            32 => 1e-5,
            _ => 2e-2,
        };
        case.within(tolerance)
    }
}

/// Returns scans as programs write them.
fn written() -> Vec<Case> {
    let of = |name: &str, head: &str, shapes: &[&[i64]], body: &str| {
        Case::new(name, function(head, body), shapes).within(1e-5)
    };
    vec![
        of(
            "a first element, then the others",
            "prefix(x: T.Buffer((5, 40), \"float32\"), out: T.Buffer((5, 40), \"float32\"))",
            &[&[5, 40], &[5, 40]],
            "for i in range(5):\n    out[i, 0] = x[i, 0]\nfor i, k in T.grid(5, 39):\n    out[i, k + 1] = out[i, k] + x[i, k + 1]",
        ),
        of(
            "from the end, in a condition",
            "suffix(x: T.Buffer((3, 2000), \"float32\"), out: T.Buffer((3, 2000), \"float32\"))",
            &[&[3, 2000], &[3, 2000]],
            "for i, k in T.grid(3, 2000):\n    if k > 0:\n        out[i, 1999 - k] = x[i, 1999 - k] + out[i, 2000 - k]\n    else:\n        out[i, 1999] = x[i, 1999]",
        ),
        of(
            "a running maximum, and what is below it",
            "peaks(x: T.Buffer((4, 300), \"int32\"), out: T.Buffer((4, 300), \"int32\"), below: T.Buffer((4, 300), \"int32\"))",
            &[&[4, 300], &[4, 300], &[4, 300]],
            "for i, k in T.grid(4, 300):\n    with T.sblock(\"peak\"):\n        vi = T.axis.spatial(4, i)\n        vk = T.axis.opaque(300, k)\n        out[vi, vk] = T.if_then_else(vk == 0, x[vi, vk], T.max(out[vi, vk - 1], x[vi, vk]))\nfor i, k in T.grid(4, 300):\n    with T.sblock(\"below\"):\n        vi, vk = T.axis.remap(\"SS\", [i, k])\n        below[vi, vk] = out[vi, vk] - x[vi, vk]",
        ),
        of(
            "the elements of an array in order",
            "flat(x: T.Buffer((7, 11, 13), \"float32\"), out: T.Buffer((1001,), \"float32\"))",
            &[&[7, 11, 13], &[1001]],
            "for k in range(1001):\n    with T.sblock(\"scan\"):\n        vk = T.axis.opaque(1001, k)\n        out[vk] = T.if_then_else(vk == 0, x[0, 0, 0], out[vk - 1] + x[vk // 143, vk // 13 % 11, vk % 13])",
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    let mut all = written();
    for length in [2, 5, 31, 32, 64, 197, 1000, 1024, 1028, 5000] {
        all.push(sum(&[3, length], 1).case());
    }
    let few: [&[i64]; 8] = [&[3, 7], &[0, 7], &[2, 0], &[130, 1], &[1, 1024], &[2, 1025], &[70, 5000], &[1, 40_000]];
    for shape in few {
        all.push(Scan { is_known: false, ..sum(shape, 1) }.case());
        all.push(
            Scan { is_known: false, is_exclusive: true, dtype: DType::INT32, sum: DType::INT32, ..sum(shape, 1) }
                .case(),
        );
    }
    let apart: [(&[i64], usize); 6] =
        [(&[5, 33], 0), (&[2, 37, 5, 7], 1), (&[2, 100, 40], 1), (&[300, 20], 0), (&[6000, 17], 0), (&[9, 20_000], 0)];
    for (shape, axis) in apart {
        all.push(sum(shape, axis).case());
        all.push(Scan { is_known: false, ..sum(shape, axis) }.case());
    }
    // Rows that are long enough for several blocks.
    all.push(sum(&[40_001], 0).case());
    all.push(Scan { dtype: DType::FLOAT16, ..sum(&[2, 40_000], 1) }.case());
    all.push(Scan { is_exclusive: true, dtype: DType::INT64, sum: DType::INT64, ..sum(&[33_333], 0) }.case());
    for dtype in [DType::FLOAT16, DType::BFLOAT16, DType::FLOAT64] {
        let sum_dtype = if dtype == DType::FLOAT64 { dtype } else { F32 };
        for shape in [[3i64, 96], [2, 3000], [4, 50]] {
            all.push(Scan { dtype, sum: sum_dtype, ..sum(&shape, 1) }.case());
            all.push(Scan { dtype, sum: sum_dtype, is_exclusive: true, ..sum(&shape, 1) }.case());
        }
    }
    for dtype in [DType::INT8, DType::UINT8, DType::INT16, DType::INT32, DType::UINT32, DType::INT64, DType::UINT64] {
        for op in [BinaryOp::Add, BinaryOp::Mul, BinaryOp::BitXor] {
            all.push(Scan { dtype, sum: dtype, op, ..sum(&[3, 2, 100], 2) }.case());
            all.push(Scan { dtype, sum: dtype, op, ..sum(&[2, 100, 33], 1) }.case());
        }
    }
    for (op, is_exclusive) in [(BinaryOp::Or, false), (BinaryOp::And, false), (BinaryOp::Or, true)] {
        all.push(Scan { dtype: DType::BOOL, sum: DType::BOOL, op, is_exclusive, ..sum(&[2, 1500], 1) }.case());
    }
    all
}

#[test]
fn cases_are_scheduled_by_the_rule() {
    for case in cases() {
        let source = crate::source(std::slice::from_ref(&case));
        let rules: Vec<&str> = source.choices.iter().map(|choice| choice.rule).collect();
        assert_eq!(rules.last(), Some(&"scan"), "{}: {rules:?} {:?}", case.name, source.choices);
    }
}

#[test]
#[ignore = "sweep: .ci/full"]
fn cases_agree_with_the_interpreter_in_every_order() {
    for some in cases().chunks(40) {
        crate::simulated::agree(some);
    }
}

#[test]
fn order_dependent_updates_are_declined() {
    let head = "last(x: T.Buffer((4, 40), \"float32\"), out: T.Buffer((4, 40), \"float32\"))";
    let loops = "for i, k in T.grid(4, 40):\n    with T.sblock(\"scan\"):\n        vi = T.axis.spatial(4, i)\n        vk = T.axis.opaque(40, k)\n";
    let of = |value: &str| function(head, &format!("{loops}        out[vi, vk] = {value}"));
    let bodies = [
        // A difference is not associative.
        ("T.if_then_else(vk == 0, x[vi, vk], x[vi, vk] - out[vi, vk - 1])", "requires an associative operation"),
        // In order, factors after a 0 cannot overflow. Multiplied separately they may, and 0 * Inf is NaN. For the
        // maximum, a number after a NaN replaces it, which depends on the grouping.
        ("T.if_then_else(vk == 0, x[vi, vk], out[vi, vk - 1] * x[vi, vk])", "requires an associative operation"),
        ("T.if_then_else(vk == 0, x[vi, vk], T.max(out[vi, vk - 1], x[vi, vk]))", "requires an associative operation"),
        (
            "T.if_then_else(vk == 0, x[vi, vk], out[vi, vk - 1] + out[vi, vk - 1] * x[vi, vk])",
            "requires one read of the result",
        ),
        ("T.if_then_else(vk < 2, x[vi, vk], out[vi, vk - 2] + x[vi, vk])", "requires a recurrence"),
        // For the first element, the index of the previous one is out of range.
        ("out[vi, vk - 1] + x[vi, vk]", "requires an element before the first"),
    ];
    for (value, why) in bodies {
        let case = Case::new(value, of(value), &[&[4, 40], &[4, 40]]).within(1e-4);
        let source = crate::source(std::slice::from_ref(&case));
        assert_eq!(source.choices[0].rule, "fallback", "{value}");
        let declined = source.choices[0].declined.iter().find(|(rule, _)| *rule == "scan");
        assert!(declined.is_some_and(|(_, said)| said.contains(why)), "{value}: {declined:?}");
        crate::simulated::agree(&[case]);
    }
}

#[test]
fn kernels_compile_and_keep_values_in_registers() {
    crate::nvrtc::have_no_stack(&cases());
}

#[test]
fn values_wrap_and_keep_their_zeros() {
    let mut case = Scan { dtype: DType::INT8, sum: DType::INT8, ..sum(&[1, 64], 1) }.case();
    case.arguments[0] = Tensor::zeros(DType::INT8, &[1, 64]).expect("a small tensor");
    (0..64).for_each(|at| case.arguments[0].set(at, Scalar::Int(100)));
    crate::simulated::agree(&[case]);
}

#[test]
fn text_of_a_scan_matches_the_golden_file() {
    let case = Scan { dtype: DType::FLOAT16, ..sum(&[6, 256], 1) }.case();
    let source = rx_cuda::listing(&[&case.func], &rx_cuda::rules::Target::default());
    let text = source.functions[0].as_ref().unwrap_or_else(|error| panic!("{error}"));
    crate::templates::is_written("scan", text);
}
