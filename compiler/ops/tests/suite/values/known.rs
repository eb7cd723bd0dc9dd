//! Compares the facts that value rules derive before a program runs with the values that it computes.

use super::value_of;
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_ir::values::Basis;
use rx_ir::{Elements, End, ExprKind, Known, StructInfo, TensorValues, Values};
use rx_ops::compute::flatten;
use rx_ops::values::{infer, of_constant, of_elements};
use rx_ops::{Arg, CallInfo};
use rx_tensor::{Scalar, Tensor};
use std::collections::BTreeMap;

/// The amount of information about the operands that the value rule gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reported {
    /// Every element.
    Elements,
    /// The minimum and maximum.
    Ends,
    /// Nothing.
    Nothing,
}

/// Compares the facts that the operator's rule derives with the results. `data` has the contents of the operands.
pub fn check(
    call: &CallInfo<'_>,
    result: &StructInfo,
    results: &[Tensor],
    symbols: &BTreeMap<String, i64>,
    data: &[(String, Option<usize>, Tensor)],
    reported: Reported,
) -> Result<(), String> {
    let operand = |(param, arg): (&rx_ops::Param, &Arg<'_>)| match arg {
        Arg::Operand(expr) => match &expr.kind {
            ExprKind::Constant(_) => less(of_constant(&expr.kind, &expr.ty), reported),
            ExprKind::Tuple(items) => {
                Values::tuple((0..items.len()).map(|at| known(data, param.name, Some(at), reported)).collect())
            }
            _ => known(data, param.name, None, reported),
        },
        _ => None,
    };
    let operands: Vec<Known> = call.schema.params.iter().zip(call.args).map(operand).collect();
    let known = infer(call, &operands, result);
    let Some(known) = known.as_deref() else { return Ok(()) };
    for (at, tensor) in results.iter().enumerate() {
        let field = if result.as_tensor().is_some() {
            Some(known.clone())
        } else {
            known.field(at).map(|it| Values::clone(&it))
        };
        if let Some(Values::Tensor(values)) = &field {
            agree(values, tensor, symbols)
                .map_err(|why| format!("reported {reported:?}, result {at}: {why}; {values:?}"))?;
        }
    }
    assert_eq!(flatten(result).len(), results.len());
    Ok(())
}

fn known(data: &[(String, Option<usize>, Tensor)], param: &str, element: Option<usize>, reported: Reported) -> Known {
    let (_, _, tensor) = data.iter().find(|(of, at, _)| of == param && *at == element)?;
    let scalars = (0..tensor.len()).map(|at| tensor.get(at)).collect::<Option<Vec<Scalar>>>()?;
    let dtype = tensor.dtype();
    let elements = match dtype.is_float() {
        true => Elements::Floats(scalars.iter().map(|scalar| scalar.as_float()).collect()),
        false => Elements::Ints(scalars.iter().map(|scalar| integer(*scalar, dtype)).collect::<Option<_>>()?),
    };
    less(of_elements(elements, dtype), reported)
}

fn integer(scalar: Scalar, dtype: DType) -> Option<i64> {
    match scalar {
        Scalar::Int(value) if dtype.code == TypeCode::UInt && dtype.bits == 64 && value < 0 => None,
        Scalar::Int(value) => Some(value),
        other => Some(other.as_float() as i64),
    }
}

fn less(known: Known, reported: Reported) -> Known {
    match (reported, known.as_deref()) {
        (Reported::Elements, _) => known,
        (Reported::Ends, Some(Values::Tensor(values))) => TensorValues::between(values.low(), values.high()).into(),
        _ => None,
    }
}

/// Checks that a tensor satisfies the facts.
fn agree(values: &TensorValues, tensor: &Tensor, symbols: &BTreeMap<String, i64>) -> Result<(), String> {
    let held: Vec<f64> = (0..tensor.len()).filter_map(|at| tensor.get(at)).map(Scalar::as_float).collect();
    let reported: Option<Vec<f64>> = values.elements.as_ref().map(|elements| match elements {
        Elements::Ints(values) => values.iter().map(|value| *value as f64).collect(),
        Elements::Floats(values) => values.to_vec(),
    });
    if let Some(reported) = reported
        && (reported.len() != held.len()
            || reported.iter().zip(&held).any(|(a, b)| (a - b).abs() > 1e-6 * a.abs().max(1.0)))
    {
        return Err(format!("it holds {held:?}"));
    }
    let value = |end: Option<End>| match end {
        Some(end) => value_of(&end.value, symbols).map(|value| Some((value as f64, end.basis))),
        None => Ok(None),
    };
    for (end, beyond) in [(value(values.low())?, -1.0), (value(values.high())?, 1.0)] {
        let Some((end, basis)) = end else { continue };
        if held.iter().any(|value| (value - end) * beyond > 0.0) {
            return Err(format!("{end} is no bound of {held:?}"));
        }
        if basis == Basis::Attained && !held.is_empty() && !held.contains(&end) {
            return Err(format!("{end} is not among {held:?}"));
        }
    }
    Ok(())
}
