//! Handwritten functions, compiled, and most of them compared with the interpreter.

mod elements;
mod errors;
mod nests;

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::{Argument, CpuModule, RunError, Scratch};
use rx_tensor::{Scalar, Tensor};
use rx_tir::{Expr, KernelBuilder, PrimFunc};

fn compiled(func: &PrimFunc, tensors: &mut [Tensor], scalars: &[Scalar]) -> Result<(), RunError> {
    let module = CpuModule::compile(&[func]).unwrap_or_else(|error| panic!("{error}"));
    let kernel = module.kernel(0).unwrap_or_else(|error| panic!("{error}"));
    let shapes: Vec<Vec<i64>> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let mut arguments: Vec<Argument<'_>> =
        tensors.iter_mut().map(|tensor| Argument::Write(tensor.bytes_mut())).collect();
    kernel.run(&mut arguments, &shapes, scalars, &mut Scratch::default())
}

fn copies(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.duplicate().unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Runs a function both interpreted and compiled, and compares every buffer. Integers must be equal. Floats may differ
/// by `tolerance * max(|expected|, least)`, where `least` is 1e-6, or 1 for tolerances above 1e-5: if the terms of a
/// sum cancel, its error is large relative to the result.
fn agree(title: &str, func: &PrimFunc, tensors: &[Tensor], scalars: &[Scalar], tolerance: f64) {
    let least = if tolerance > 1e-5 { 1.0 } else { 1e-6 };
    let (mut expected, mut actual) = (copies(tensors), copies(tensors));
    let reference = rx_interp::run(func, &mut expected, scalars);
    reference.unwrap_or_else(|error| panic!("{title}: interpreter: {error}"));
    compiled(func, &mut actual, scalars).unwrap_or_else(|error| panic!("{title}: {error}"));
    for (at, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        for element in 0..expected.len() {
            let (Some(wanted), Some(found)) = (expected.get(element), actual.get(element)) else { continue };
            let close = match (wanted, found) {
                (Scalar::Int(wanted), Scalar::Int(found)) => wanted == found,
                (wanted, found) => {
                    let (wanted, found) = (wanted.as_float(), found.as_float());
                    wanted == found
                        || wanted.is_nan() && found.is_nan()
                        || wanted.is_finite() && (wanted - found).abs() <= tolerance * wanted.abs().max(least)
                }
            };
            assert!(close, "{title}: buffer {at}, element {element}: {found:?}, not {wanted:?}");
        }
    }
}

const DTYPES: [DType; 13] = [
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::FLOAT16,
    DType::BFLOAT16,
    DType::FLOAT32,
    DType::FLOAT64,
];

/// A pseudorandom number generator; the number is its state, at first the seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn float(&mut self) -> f64 {
        self.next() as f64 / f64::from(1u32 << 31) * 8.0 - 4.0
    }

    /// Returns a tensor of random numbers: floats from −4 to 4, and integers below 2^51 that wrap to the dtype.
    fn tensor(&mut self, dtype: DType, shape: &[i64]) -> Tensor {
        let mut tensor = zeros(dtype, shape);
        for at in 0..tensor.len() {
            let value = match dtype.is_float() {
                true => Scalar::Float(self.float()),
                false => Scalar::Int(dtype.wrap((self.next() << 20 ^ self.next()) as i64)),
            };
            tensor.set(at, value);
        }
        tensor
    }
}

fn zeros(dtype: DType, shape: &[i64]) -> Tensor {
    Tensor::zeros(dtype, shape).unwrap_or_else(|error| panic!("{error}"))
}

/// `C[i] = value(A[i], B[i])` for `n` elements, `n` symbolic.
fn elementwise(a: DType, b: DType, c: DType, value: impl Fn(Expr, Expr) -> Expr) -> PrimFunc {
    let n = Dim::from(rx_base::symbolic::Atom::Symbol(name("n")));
    let mut builder = KernelBuilder::new(name("elementwise"));
    let a = builder.param("A", std::slice::from_ref(&n), a);
    let b = builder.param("B", std::slice::from_ref(&n), b);
    let c = builder.param("C", std::slice::from_ref(&n), c);
    builder.compute(c, |builder, axes| value(builder.load(a, axes), builder.load(b, axes)));
    builder.finish()
}

/// The scalar arguments: the value of `n`.
fn n(value: i64) -> [Scalar; 1] {
    [Scalar::Int(value)]
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::FLOAT16 => 2e-3,
        DType::BFLOAT16 => 2e-2,
        _ => 1e-6,
    }
}

/// The number of elements. With vectors of 4 lanes and an unroll factor of 4, these are two iterations of 16 elements,
/// one of 4 and a remainder of 3. With 2 lanes, they are four iterations of 8, three of 2 and a remainder of 1.
const COUNT: i64 = 39;
