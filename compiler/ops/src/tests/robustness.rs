//! Tests the rules with nonsensical arguments: each rule must return, and none may panic.

use super::{
    Given, arguments_of, call_of, expr, flag, float, given, int, number, numbers, prim, shape, text, tuple, ty,
};
use crate::provenance::{Facet, Part, provenance};
use crate::values::{Access, ValueCall, constant_dims, infer, judge, part_of};
use crate::{Arg, AttrKind, CallInfo, ParamKind, all};
use rx_base::symbolic::Bounds;
use rx_ir::{Attr, Elements, End, Known, Shape, StructInfo, TensorValues, Values};

/// A deterministic pseudo-random number generator.
struct Dice(u64);

impl Dice {
    fn roll<T: Clone>(&mut self, faces: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        faces[(self.0 >> 33) as usize % faces.len()].clone()
    }
}

const TENSORS: &[&str] = &[
    "*:?",
    ":float32",
    ":bool",
    "?0:int64",
    "3:int64",
    "0:int32",
    "n:int64",
    "?1:?",
    "2 3:float32",
    "n n+1:float16",
    "-1 9223372036854775807:int8",
    "$s/2:float32",
    "$t:?",
    "1 3 8 8:float32",
    "4 3 3 3:float32",
    "n 4 h w:float32@cuda:0:global",
    "?4:int8@llvm:0:global",
    "9223372036854775807 n 9223372036854775807 n m:float32",
    "?18446744073709551615:float32",
];

fn operand(dice: &mut Dice) -> Given {
    let long = || StructInfo::Shape(Shape::Known(vec![2.into(), 3.into()].into()));
    match dice.roll(&[0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
        0 => given(ty(dice.roll(TENSORS))),
        1 => given(StructInfo::Object),
        2 => given(StructInfo::Error),
        3 => given(prim("int64")),
        4 => int(dice.roll(&["0", "1", "-1", "n", "9223372036854775807", "-9223372036854775808"])),
        5 => float(dice.roll(&[0.5, f64::NAN, f64::INFINITY, -1e300]), "float32"),
        6 => shape(dice.roll(&["", "-1", "2 3", "n 0 -1", "9223372036854775807 9223372036854775807", "1 3 8 8"])),
        7 => given(long()),
        8 => given(StructInfo::Shape(dice.roll(&[
            Shape::Unknown,
            Shape::Rank(2),
            Shape::Rank(usize::MAX),
            Shape::Error,
        ]))),
        9 => tuple(&[dice.roll(TENSORS), dice.roll(TENSORS)]),
        _ => tuple(&[]),
    }
}

fn attr(dice: &mut Dice, kind: AttrKind) -> Given {
    const INTS: &[i64] = &[0, 1, -1, 2, 3, 100, i64::MAX, i64::MIN];
    match kind {
        AttrKind::Int | AttrKind::IntOrNone => number(dice.roll(INTS)),
        AttrKind::Float => Given::Attr(Attr::Float(dice.roll(&[0.0, 1.0, -1.0, f64::NAN]))),
        AttrKind::Bool => flag(dice.roll(&[true, false])),
        AttrKind::Choice(choices) => text(dice.roll(choices)),
        AttrKind::DType => text(dice.roll(&["float32", "int8", "bool", "void", "float8_e4m3fn"])),
        AttrKind::Ints | AttrKind::IntList => {
            let count = dice.roll(&[0, 1, 2, 3, 4, 6]);
            let values: Vec<i64> = (0..count).map(|_| dice.roll(INTS)).collect();
            if dice.roll(&[true, false]) { numbers(&values) } else { number(dice.roll(INTS)) }
        }
        AttrKind::Layout => text(dice.roll(&["NCHW", "NHWC", "OIHW", "NCW", "NCHW4c", "", "4", "NN", "é"])),
        AttrKind::Str | AttrKind::VDevice => text(dice.roll(&["", "ij,jk->ik", "...i", "cuda:0", "mean", "é", "->"])),
        AttrKind::Floats | AttrKind::Strs | AttrKind::Dict | AttrKind::Any => match dice.roll(&[true, false]) {
            true => Given::Attr(Attr::Opaque("T.index_map(lambda i, j: (j, i // 4, i % 4))".into())),
            false => numbers(&[1, 2]),
        },
    }
}

/// Creates facts about a tensor's elements, which may be contradictory.
fn known(dice: &mut Dice, ty: &StructInfo) -> Known {
    const NUMBERS: &[i64] = &[0, 1, -1, 3, 255, i64::MAX, i64::MIN];
    if let StructInfo::Tuple(fields) = ty {
        return Values::tuple(fields.iter().map(|field| known(dice, field)).collect());
    }
    let count = constant_dims(ty).map(|dims| dims.iter().product::<usize>());
    match (dice.roll(&[0, 1, 2, 3]), count) {
        (0, Some(count)) => {
            let elements = (0..count).map(|_| dice.roll(NUMBERS)).collect();
            TensorValues::of(Elements::Ints(elements)).and_then(Into::into)
        }
        (1, Some(count)) => {
            let elements = (0..count).map(|_| dice.roll(&[0.5, -1e300, f64::INFINITY, 3.0])).collect();
            TensorValues::of(Elements::Floats(elements)).and_then(Into::into)
        }
        (2, _) => {
            let ends = [dice.roll(NUMBERS), dice.roll(NUMBERS)].map(|value| Some(End::attained(value)));
            let [low, high] = ends;
            TensorValues::between(low, high).into()
        }
        _ => None,
    }
}

fn follow_values(dice: &mut Dice, call: &CallInfo<'_>, result: &StructInfo) {
    let operands: Vec<Known> = call
        .args
        .iter()
        .map(|arg| match arg {
            Arg::Operand(expr) => known(dice, &expr.ty),
            _ => None,
        })
        .collect();
    let _ = infer(call, &operands, result);
    if let Some(findings) = call.schema.traits.findings {
        findings(&ValueCall { call, operands: &operands, result });
    }
    for site in call.schema.traits.sites.map(|sites| sites(call)).unwrap_or_default() {
        let at = call.schema.params.iter().position(|param| param.name == site.indices);
        let (indices, ty) = part_of(call, &at.and_then(|at| operands[at].clone()), &site);
        if let Some(extent) = &site.extent {
            judge(&Access { indices: &indices, ty: &ty, extent, from_end: site.from_end }, call.bounds);
        }
    }
}

#[test]
fn no_rule_panics_whatever_it_is_given() {
    let mut dice = Dice(1);
    for schema in all() {
        for round in 0..300 {
            let mut args = Vec::new();
            for param in schema.params {
                let value = match param.kind {
                    _ if dice.roll(&[true, false, false, false, false]) => continue,
                    ParamKind::Attr(kind) => attr(&mut dice, kind),
                    ParamKind::Variadic => Given::Operands(vec![expr(ty(dice.roll(TENSORS))); dice.roll(&[0, 1, 2])]),
                    ParamKind::Types => Given::Types(vec![ty(dice.roll(TENSORS)); dice.roll(&[0, 1, 2])]),
                    _ => operand(&mut dice),
                };
                args.push((param.name, value));
            }
            // Neither the result nor the error is checked; the test only requires that the rule returns.
            let _ = call_of(schema.name, &args, |call| {
                (schema.infer)(call).map(|ty| {
                    follow_values(&mut dice, call, &ty);
                    let charge = schema.cost.charge(call, &ty);
                    (ty.to_string(), crate::compute::lower(call, &ty).is_ok(), charge)
                })
            });
            if round % 25 == 0 {
                let (schema, arguments) = arguments_of(schema.name, &args);
                for part in [Part::Dim(0), Part::Dim(1), Part::Rank, Part::Dtype, Part::Value] {
                    let facet = Facet::of_part(part);
                    let _ = provenance(schema, &arguments, &Bounds::default(), &facet);
                }
            }
        }
    }
}
