//! Slices with bounds that are tensors, and views of a tensor's bytes.

use super::{Arguments, integers, said};
use crate::value::Output;
use rx_base::DType;
use rx_tensor::Tensor;

/// Computes `dynamic_strided_slice(x, begin, end, strides)`, which is NumPy's `x[begin:end:strides]` on each axis.
/// Negative bounds count from the end, and bounds outside the axis are clamped (TVM `topi::dynamic_strided_slice`). For
/// example, `begin = -2`, `end = 9`, `stride = 1` selects the last two elements of an axis of extent 4.
pub(super) fn dynamic_strided_slice(arguments: &Arguments) -> Result<Output, String> {
    let x = arguments.tensor(0)?;
    let [begin, end, strides] = [1, 2, 3].map(|at| arguments.tensor(at).and_then(integers));
    let (begin, end, strides) = (begin?, end?, strides?);
    let ndim = x.shape().len();
    if [&begin, &end, &strides].iter().any(|bounds| bounds.len() != ndim) {
        return Err(format!("`begin`, `end` and `strides` need {ndim} elements each, one for each axis of `x`"));
    }
    let mut places = Vec::with_capacity(ndim);
    for (axis, extent) in x.shape().iter().enumerate() {
        // INVARIANT: each has `ndim` elements, checked above.
        let (begin, end, stride) = (begin[axis], end[axis], strides[axis]);
        if stride == 0 {
            return Err(format!("the stride of axis {axis} is 0"));
        }
        places.push(sliced(*extent, begin, end, stride));
    }
    picked(x, &places).map(Output::Tensor)
}

/// Returns the indices that a slice selects from an axis of `extent` elements.
fn sliced(extent: i64, begin: i64, end: i64, stride: i64) -> Vec<i64> {
    let (low, high) = if stride < 0 { (-1, extent - 1) } else { (0, extent) };
    let place = |at: i64| if at < 0 { at.saturating_add(extent) } else { at }.clamp(low, high.max(low));
    let (begin, end) = (place(begin), place(end));
    let goes_on = |at: &i64| if stride < 0 { *at > end } else { *at < end };
    std::iter::successors(Some(begin), |at| at.checked_add(stride)).take_while(goes_on).collect()
}

/// Gathers the elements at the Cartesian product of the given indices, one list per axis.
fn picked(x: &Tensor, places: &[Vec<i64>]) -> Result<Tensor, String> {
    let shape: Vec<i64> = places.iter().map(|places| places.len() as i64).collect();
    let width = x.dtype().bytes() as usize;
    let mut bytes = Vec::new();
    let count: i64 = shape.iter().product();
    for at in 0..count {
        let (mut rest, mut from, mut stride) = (at, 0, 1);
        for (axis, places) in places.iter().enumerate().rev() {
            // INVARIANT: `rest % shape[axis]` is a valid index into `places`; no list is empty, since `count` would be
            // 0.
            from += places[(rest % shape[axis]) as usize] * stride;
            rest /= shape[axis];
            stride *= x.shape()[axis];
        }
        let start = from as usize * width;
        bytes.extend_from_slice(x.bytes().get(start..start + width).ok_or("a place is outside of `x`")?);
    }
    Tensor::from_bytes(x.dtype(), &shape, &bytes).map_err(said)
}

/// Computes `memory.view(data, shape, dtype, relative_byte_offset)`: reinterprets the bytes of `data` from an offset as
/// a tensor of `shape` and `dtype`.
pub(super) fn memory_view(arguments: &Arguments) -> Result<Output, String> {
    let data = arguments.tensor(0)?;
    let Output::Shape(shape) = arguments.at(1) else { return Err("the shape of the view is not known".to_owned()) };
    let dtype = DType::parse(arguments.text(2)).ok_or("the dtype of the view is not known")?;
    let start = usize::try_from(arguments.int(3).unwrap_or(0)).map_err(|_| "the view begins before its tensor")?;
    let length = shape.iter().try_fold(dtype.bytes(), |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
    let end = length.and_then(|length| start.checked_add(usize::try_from(length).ok()?));
    let bytes = end.and_then(|end| data.bytes().get(start..end));
    let bytes = bytes.ok_or_else(|| {
        format!(
            "a view of shape {shape:?} and dtype {dtype} from byte {start} does not lie within {} bytes",
            data.bytes().len()
        )
    })?;
    Tensor::from_bytes(dtype, shape, bytes).map(Output::Tensor).map_err(said)
}
