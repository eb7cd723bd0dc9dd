//! Matrix products: `float32` by the `gemm` library or, for few rows or columns with suitable strides, by loops in this
//! crate ([`rows`], [`vector`]); `float64` by a loop nest.

use crate::rows::{self, Lines};
use crate::runtime::Routine;
use crate::vector;
use rx_base::DType;

/// A matrix in memory: the address of element `(0, 0)`, and the strides from one row to the next and from one column to
/// the next, in elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Matrix<T> {
    first: *mut T,
    row: i64,
    column: i64,
}

impl<T> Matrix<T> {
    /// Returns the transposed matrix, in the same memory.
    fn transposed(self) -> Matrix<T> {
        Matrix { first: self.first, row: self.column, column: self.row }
    }
}

/// The arguments of a product, as generated code writes them. The batch axes follow it in memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Product<T> {
    a: Matrix<T>,
    b: Matrix<T>,
    c: Matrix<T>,
    m: i64,
    n: i64,
    k: i64,
    accumulate: i64,
    axes: i64,
}

/// The size of a [`Product`] in 8-byte words.
pub(crate) const WORDS: usize = size_of::<Product<f32>>() / 8;

/// A batch axis: the number of products, and the stride of each matrix in elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Axis {
    extent: i64,
    a: i64,
    b: i64,
    c: i64,
}

/// Returns the routine for products of a dtype; `None` for other dtypes than `float32` and `float64`.
pub(crate) fn routine(dtype: DType) -> Option<Routine> {
    match dtype {
        DType::FLOAT32 => Some(Routine { symbol: "rx_product_f32", address: product_f32 as *const u8 }),
        DType::FLOAT64 => Some(Routine { symbol: "rx_product_f64", address: product_f64 as *const u8 }),
        _ => None,
    }
}

/// Computes the products of all batch indices and returns 0. `product` is a [`Product`] followed by its batch axes. Its
/// matrices lie within their buffers for every batch index, as [`rx_loops::Gemm`] guarantees.
unsafe extern "C" fn product_f32(product: *const Product<f32>) -> i64 {
    // SAFETY: generated code passes the address of a product it has just written, followed by its axes.
    unsafe { for_batch(product, &mut |product| product_of_f32(product)) }
    0
}

/// As [`product_f32`].
unsafe extern "C" fn product_f64(product: *const Product<f64>) -> i64 {
    // SAFETY: as above.
    unsafe { for_batch(product, &mut |product| product_of_f64(product)) }
    0
}

/// Calls `run` with the product of each batch index. Skips products without rows or columns.
///
/// # Safety
/// `product` and the batch axes after it must be readable.
unsafe fn for_batch<T: Copy>(product: *const Product<T>, run: &mut dyn FnMut(Product<T>)) {
    // SAFETY: the caller's promise.
    let (first, axes) = unsafe {
        let first = *product;
        let axes = std::slice::from_raw_parts(product.add(1).cast::<Axis>(), first.axes.max(0) as usize);
        (first, axes)
    };
    let rows_are_a_batch = |axis: &Axis| axis.extent > 1;
    let axes: Vec<Axis> = axes.iter().copied().filter(|axis| rows_are_a_batch(axis) || axis.extent <= 0).collect();
    if axes.iter().any(|axis| axis.extent <= 0) || first.m <= 0 || first.n <= 0 {
        return;
    }
    let mut index = vec![0i64; axes.len()];
    loop {
        let mut at = first;
        for (axis, index) in axes.iter().zip(&index) {
            // The offsets stay within the buffers, so they do not overflow.
            at.a.first = at.a.first.wrapping_offset((axis.a * index) as isize);
            at.b.first = at.b.first.wrapping_offset((axis.b * index) as isize);
            at.c.first = at.c.first.wrapping_offset((axis.c * index) as isize);
        }
        run(at);
        let Some(axis) = (0..axes.len()).rev().find(|axis| index[*axis] + 1 < axes[*axis].extent) else { return };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

fn product_of_f32(product: Product<f32>) {
    let Product { a, b, c, m, n, k, accumulate, .. } = product;
    let accumulate = accumulate != 0;
    let (m, n, k) = (m as usize, n as usize, k.max(0) as usize);
    // A product with few rows, or few columns, is memory-bound; the library would pack data that is read only a few
    // times.
    for (m, n, a, b, c) in [(m, n, a, b, c), (n, m, b.transposed(), a.transposed(), c.transposed())] {
        if m <= rows::FEW && m <= n && b.row == 1 {
            let rows = Lines { first: a.first.cast_const(), outer: a.row, inner: a.column };
            let lines = Lines { first: b.first.cast_const(), outer: b.column, inner: 1 };
            let result = Lines { first: c.first, outer: c.row, inner: c.column };
            // SAFETY: the matrices lie in their buffers, and `c` is apart from `a` and `b`.
            return unsafe { rows::times([m, n, k], rows, lines, result, accumulate) };
        }
        if m == 1 && b.column == 1 {
            let (matrix, x, y) = ((b.first.cast_const(), b.row), (a.first.cast_const(), a.column), (c.first, c.column));
            // SAFETY: as above. The second iteration has the transposed product, whose matrices are in the same memory.
            return unsafe { vector::times([n, k], matrix, x, y, accumulate) };
        }
    }
    // The library's kernels write columns. For a row-major result, compute the transposed product instead.
    let (m, n, a, b, c) = match c.column.abs() < c.row.abs() {
        true => (n, m, b.transposed(), a.transposed(), c.transposed()),
        false => (m, n, a, b, c),
    };
    // SAFETY: the matrices lie in their buffers, and `c` is apart from `a` and `b`.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            c.first,
            c.column as isize,
            c.row as isize,
            accumulate,
            a.first,
            a.column as isize,
            a.row as isize,
            b.first,
            b.column as isize,
            b.row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

fn product_of_f64(product: Product<f64>) {
    let Product { a, b, c, m, n, k, accumulate, .. } = product;
    let element = |matrix: Matrix<f64>, i: i64, j: i64| {
        matrix.first.wrapping_offset((i * matrix.row + j * matrix.column) as isize)
    };
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                // SAFETY: the matrices lie in their buffers.
                sum += unsafe { *element(a, i, l) * *element(b, l, j) };
            }
            let target = element(c, i, j);
            // SAFETY: as above.
            unsafe { *target = if accumulate != 0 { *target + sum } else { sum } };
        }
    }
}
