//! Sampling from a multinomial distribution: schema and struct-info rule.

use super::compute::sample as compute;
use super::operands::{IndexKind, agree, check_index_dtype, retyped};
use super::values::pick;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::operands::require_ndim;
use crate::schema::{Param, Schema, Traits};
use rx_base::dtype::TypeCode;
use rx_base::{Code, Dim};
use rx_ir::{Shape, StructInfo};

pub(crate) static OPERATORS: &[Schema] = &[Schema::new(
    "multinomial_from_uniform",
    "Draws from multinomial distributions with given uniform samples. The result is `(n, 1)`.",
    multinomial_from_uniform,
)
.taking(&[
    Param::tensor("prob", "Probabilities, `(batch, vocabulary)`; floats, the rows add up to 1."),
    Param::tensor("uniform_sample", "Uniform samples in `[0, 1)`, `(n, 1)`; floats."),
    Param::tensor("sample_indices", "The row of `prob` that each sample draws from, `(n, 1)`; signed integers."),
    Param::dtype("dtype", "int64", "The dtype of the result."),
])
.lowered_by(compute::multinomial_from_uniform)
.with_traits(Traits::OPAQUE.computing(pick::multinomial))];

fn multinomial_from_uniform(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let prob = call.tensor("prob")?;
    let (samples, rows) = (call.tensor("uniform_sample")?, call.tensor("sample_indices")?);
    for (name, tensor) in [("prob", prob), ("uniform_sample", samples)] {
        if let Some(dtype) = tensor.dtype.filter(|dtype| !matches!(dtype.code, TypeCode::Float | TypeCode::BFloat)) {
            let message = format_args!("`{name}` must be float, it is {dtype}");
            return Err(call.error(Code::DtypeMismatch, ParamPlace::Param(name), message).into());
        }
    }
    check_index_dtype(call, ParamPlace::Param("sample_indices"), "sample_indices", rows.dtype, IndexKind::Signed)?;
    let result = |shape| Ok(retyped(prob, shape, call.dtype("dtype")));
    if [prob, samples, rows].iter().any(|tensor| tensor.shape.ndim().is_none()) {
        return result(Shape::Unknown);
    }
    require_ndim(call, "prob", 2, "(batch, vocabulary)")?;
    require_ndim(call, "uniform_sample", 2, "(n, 1)")?;
    require_ndim(call, "sample_indices", 2, "(n, 1)")?;
    let (Some(_), Some([count, width]), Some([row_count, row_width])) =
        (prob.shape.written_dims(), samples.shape.written_dims(), rows.shape.written_dims())
    else {
        return result(Shape::Rank(2));
    };
    if !agree(call, count, row_count) {
        let message = format_args!("`uniform_sample` has {count} rows, `sample_indices` has {row_count}");
        return Err(call
            .operand_error(Code::ShapeMismatch, "sample_indices", message)
            .with_label(ParamPlace::Param("uniform_sample"), call.ty("uniform_sample").to_string())
            .into());
    }
    let one = Dim::constant(1);
    for (name, width) in [("uniform_sample", width), ("sample_indices", row_width)] {
        if !agree(call, width, &one) {
            let message = format_args!("axis 1 of `{name}` must be 1, it is {width}");
            let report = call.error(Code::ShapeMismatch, ParamPlace::Param(name), message);
            return Err(report.with_primary_label(call.ty(name).to_string()).into());
        }
    }
    result(Shape::known([count.clone(), one]))
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, tensor, text, ty};
    use rx_base::Code;

    #[test]
    fn one_sample_for_each_row() {
        let sample = |prob: &str, uniform: &str, rows: &str| {
            let operands = [("prob", prob), ("uniform_sample", uniform), ("sample_indices", rows)];
            let mut args: Vec<_> = operands.into_iter().map(|(name, operand)| (name, tensor(operand))).collect();
            args.push(("dtype", text("int32")));
            infer("multinomial_from_uniform", &args)
        };
        assert_eq!(sample("3 5:float32", "n 1:float32", "n 1:int64"), Ok(ty("n 1:int32")));
        assert_eq!(sample("?2:float32", "?2:float32", "6 1:int32"), Ok(ty("?2:int32")));
        assert_eq!(sample("*:float32", "?2:float32", "6 1:int32"), Ok(ty("*:int32")));
        for (prob, uniform, rows, code) in [
            ("3 5:int8", "6 1:float32", "6 1:int64", Code::DtypeMismatch),
            ("3 5:float32", "6 1:float32", "6 1:float32", Code::IndexDtype),
            ("5:float32", "6 1:float32", "6 1:int64", Code::TensorNdimMismatch),
            ("3 5:float32", "6 1:float32", "5 1:int64", Code::ShapeMismatch),
            ("3 5:float32", "6 2:float32", "6 1:int64", Code::ShapeMismatch),
        ] {
            assert_eq!(sample(prob, uniform, rows), Err(Some(code)), "{prob} {uniform} {rows}");
        }
    }
}
