//! The cost model of operators: arithmetic operations, and bytes read and written. `docs/stats.md` defines the counts.

use crate::call::{Arg, CallInfo};
use rx_base::Dim;
use rx_ir::StructInfo;

/// A formula for the number of arithmetic operations, from the arguments and the type of the result; `None` if a dim is
/// unknown.
pub type Operations = fn(&CallInfo<'_>, &StructInfo) -> Option<Dim>;

/// The cost of an operator.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// No computation and no data movement: shapes, views, allocation, declarations.
    Nothing,
    /// Moves data: reads as many bytes as it writes.
    Copy,
    /// Picks elements: reads as many bytes as it writes, plus all operands except the first.
    Gather,
    /// Writes the result.
    Fill,
    /// This number of operations per element of the result; reads the operands and writes the result.
    PerOutput(i64),
    /// This number of operations per element of the first tensor; reads the operands and writes the result.
    PerInput(i64),
    /// A formula; reads the operands and writes the result.
    Formula(Operations),
    /// The cost of the called function.
    Callee,
    /// Not counted: the work depends on values, or there is no agreed way to count it.
    Uncounted,
}

/// The cost of a call; a part is `None` if a dim is unknown or the operator is not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// The number of arithmetic operations.
    pub operations: Option<Dim>,
    /// The number of bytes read and written.
    pub bytes: Option<Dim>,
}

impl Cost {
    /// Whether each element of the result is computed from the operands' elements at the same position.
    pub fn is_elementwise(&self) -> bool {
        matches!(self, Cost::PerOutput(1..))
    }

    /// Returns the cost of a call whose result has the type `result`.
    pub fn charge(&self, call: &CallInfo<'_>, result: &StructInfo) -> Charge {
        let none = || Some(Dim::constant(0));
        let written = || bytes(result);
        let moved = || Some(&operand_bytes(call, 0)? + &written()?);
        let twice = || Some(&written()? * &Dim::constant(2));
        let (operations, bytes) = match self {
            Cost::Nothing => (none(), none()),
            Cost::Copy => (none(), twice()),
            Cost::Gather => (none(), Some(()).and_then(|()| Some(&twice()? + &operand_bytes(call, 1)?))),
            Cost::Fill => (none(), written()),
            Cost::PerOutput(each) => (scaled(elements(result), *each), moved()),
            Cost::PerInput(each) => (scaled(first_tensor(call).and_then(elements), *each), moved()),
            Cost::Formula(formula) => (formula(call, result), moved()),
            Cost::Callee | Cost::Uncounted => (None, None),
        };
        let known = |dim: Option<Dim>| dim.filter(|dim| !dim.is_error());
        Charge { operations: known(operations), bytes: known(bytes) }
    }
}

fn scaled(elements: Option<Dim>, each: i64) -> Option<Dim> {
    // Zero operations per element are zero operations in total, even if the number of elements is unknown.
    if each == 0 { Some(Dim::constant(0)) } else { Some(&elements? * &Dim::constant(each)) }
}

/// Returns the product of dims.
pub fn product<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> Dim {
    dims.into_iter().fold(Dim::constant(1), |product, dim| &product * dim)
}

/// Returns the number of elements of all tensors of a type; `None` if a shape is unknown.
pub fn elements(ty: &StructInfo) -> Option<Dim> {
    sum_over(ty, &|ty| Some(product(ty.as_tensor()?.shape.dims()?)))
}

/// Returns the number of bytes of all tensors of a type; `None` if a shape or dtype is unknown.
pub fn bytes(ty: &StructInfo) -> Option<Dim> {
    sum_over(ty, &|ty| {
        let tensor = ty.as_tensor()?;
        let size = i64::try_from(tensor.dtype?.bytes()).ok()?;
        Some(&product(tensor.shape.dims()?) * &Dim::constant(size))
    })
}

fn sum_over(ty: &StructInfo, of: &dyn Fn(&StructInfo) -> Option<Dim>) -> Option<Dim> {
    match ty {
        StructInfo::Tuple(fields) => {
            fields.iter().try_fold(Dim::constant(0), |sum, field| Some(&sum + &sum_over(field, of)?))
        }
        StructInfo::Tensor(_) | StructInfo::DTensor(_) => of(ty),
        StructInfo::Object | StructInfo::Error => None,
        _ => Some(Dim::constant(0)),
    }
}

/// Returns the number of bytes of the tensor operands, without the first `skip` operands.
fn operand_bytes(call: &CallInfo<'_>, skip: usize) -> Option<Dim> {
    let operands = call.args.iter().flat_map(|arg| match arg {
        Arg::Operand(expr) => std::slice::from_ref(*expr),
        Arg::Operands(exprs) => exprs,
        _ => &[],
    });
    operands.skip(skip).try_fold(Dim::constant(0), |sum, expr| Some(&sum + &bytes(&expr.ty)?))
}

/// Returns the type of the first operand that is a tensor or a tuple.
fn first_tensor<'a>(call: &CallInfo<'a>) -> Option<&'a StructInfo> {
    call.args.iter().find_map(|arg| match arg {
        Arg::Operand(expr) if expr.ty.as_tensor().is_some() || expr.ty.as_tuple().is_some() => Some(&expr.ty),
        _ => None,
    })
}

/// Returns the dims of an operand.
pub(crate) fn operand_dims<'a>(call: &CallInfo<'a>, name: &str) -> Option<&'a [Dim]> {
    call.operand(name)?.ty.as_tensor()?.shape.dims()
}

/// Returns twice the product of the dims: one multiplication and one addition each.
pub(crate) fn multiply_adds<'d>(dims: impl IntoIterator<Item = &'d Dim>) -> Dim {
    &product(dims) * &Dim::constant(2)
}

#[cfg(test)]
mod tests {
    use super::Charge;
    use crate::tests::{Given, call_of, number, numbers, tensor, text, tuple};
    use rx_base::Dim;

    fn charge(op: &str, args: &[(&str, Given)]) -> (String, String) {
        let shown = |dim: Option<Dim>| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string());
        call_of(op, args, |call| {
            let result = (call.schema.infer)(call).expect("a valid call");
            let Charge { operations, bytes } = call.schema.cost.charge(call, &result);
            (shown(operations), shown(bytes))
        })
    }

    fn both(operations: &str, bytes: &str) -> (String, String) {
        (operations.to_owned(), bytes.to_owned())
    }

    #[test]
    fn products_count_a_multiplication_and_an_addition() {
        let matmul = [("x1", tensor("n 512:float16")), ("x2", tensor("512 64:float16"))];
        assert_eq!(charge("matmul", &matmul), both("n * 65536", "n * 1152 + 65536"));
        let einsum = [("operands", tuple(&["2 3 4:float32", "2 4 5:float32"])), ("subscripts", text("bij,bjk->bik"))];
        assert_eq!(charge("einsum", &einsum).0, (2 * 2 * 3 * 4 * 5).to_string());
    }

    #[test]
    fn a_convolution_counts_its_taps_whatever_the_layout() {
        let taps = 2 * 64 * 112 * 112 * 3 * 7 * 7;
        let steps = || [("strides", numbers(&[2, 2])), ("padding", numbers(&[3, 3, 3, 3]))];
        let plain = [("data", tensor("1 3 224 224:float32")), ("weight", tensor("64 3 7 7:float32"))];
        assert_eq!(
            charge("nn.conv2d", &[plain, steps()].into_iter().flatten().collect::<Vec<_>>()).0,
            taps.to_string()
        );
        let last = [("data", tensor("1 224 224 3:float32")), ("weight", tensor("7 7 3 64:float32"))];
        let layouts = [("data_layout", text("NHWC")), ("kernel_layout", text("HWIO"))];
        let args: Vec<_> = [last, steps(), layouts].into_iter().flatten().collect();
        assert_eq!(charge("nn.conv2d", &args).0, taps.to_string());
        let depthwise = [("data", tensor("1 32 8 8:float32")), ("weight", tensor("32 1 3 3:float32"))];
        let args: Vec<_> = depthwise.into_iter().chain([("groups", number(32))]).collect();
        assert_eq!(charge("nn.conv2d", &args).0, (2 * 32 * 6 * 6 * 9).to_string());
    }

    #[test]
    fn elements_are_charged_by_family() {
        let add = [("x1", tensor("n 4:float32")), ("x2", tensor("4:float32"))];
        assert_eq!(charge("add", &add), both("n * 4", "n * 32 + 16"));
        assert_eq!(charge("nn.softmax", &[("data", tensor("2 8:float16"))]), both("80", "64"));
        assert_eq!(charge("sum", &[("x", tensor("2 8:float16"))]), both("16", "34"));
        assert_eq!(charge("permute_dims", &[("x", tensor("2 8:float16"))]), both("0", "64"));
        let pool = [("data", tensor("1 8 6 6:int8")), ("pool_size", numbers(&[2, 2])), ("strides", numbers(&[2, 2]))];
        assert_eq!(charge("nn.max_pool2d", &pool), both("288", "360"));
        let table = [("x", tensor("50257 768:float16")), ("indices", tensor("1 n:int32")), ("axis", number(0))];
        assert_eq!(charge("take", &table), both("0", "n * 3076"));
    }

    #[test]
    fn attention_counts_both_products_and_the_softmax() {
        let args = [
            ("query", tensor("1 128 12 64:float16")),
            ("key", tensor("1 128 12 64:float16")),
            ("value", tensor("1 128 12 64:float16")),
        ];
        let scores = 12 * 128 * 128;
        assert_eq!(charge("nn.attention", &args).0, (scores * (2 * 64 + 2 * 64 + 5)).to_string());
    }
}
