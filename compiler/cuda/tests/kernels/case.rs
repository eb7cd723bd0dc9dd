//! A test case: a function with arguments, and its expected results from the interpreter.

use rx_base::DType;
use rx_cuda::{Check, Fault};
use rx_interp::{Limits, Program, RunError};
use rx_tensor::{Scalar, Tensor};
use rx_tir::{Expr, PrimFunc, VarId, bind_symbols};

/// A function with arguments.
pub struct Case {
    /// A description of the case.
    pub name: String,
    /// The function.
    pub func: PrimFunc,
    /// One tensor for each buffer parameter, outputs included.
    pub arguments: Vec<Tensor>,
    /// One value for each scalar parameter.
    pub scalars: Vec<Scalar>,
    /// The tolerance of float results, relative and absolute: 0 if all operations are exact.
    pub tolerance: f64,
}

/// A failed check.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    Index { index: i64, extent: i64 },
    Division,
    Assertion(String),
    Iterations,
}

impl From<&Fault> for Failure {
    fn from(fault: &Fault) -> Failure {
        match fault.at.check {
            Check::Index { .. } => Failure::Index { index: fault.index, extent: fault.extent },
            Check::Divisor => Failure::Division,
            Check::Assert(message) => Failure::Assertion(message.to_string()),
            Check::Iterations => Failure::Iterations,
        }
    }
}

impl Case {
    /// Creates a case whose arguments are small numbers and whose scalar parameters are extents of the arguments.
    pub fn new(name: &str, func: PrimFunc, shapes: &[&[i64]]) -> Case {
        let scalars = {
            let extent = |var: VarId| {
                let mut dims =
                    func.buffer_params().zip(shapes).flat_map(|(id, shape)| func.buffer(id).shape.iter().zip(*shape));
                dims.find(|(dim, _)| matches!(dim, Expr::Var { var: of, .. } if *of == var)).map(|(_, extent)| *extent)
            };
            func.scalar_params().filter_map(extent).map(Scalar::Int).collect()
        };
        let buffers = func.buffer_params().map(|id| func.buffer(id).dtype).zip(shapes).enumerate();
        let arguments = buffers.map(|(at, (dtype, shape))| tensor(at as u64, dtype, shape)).collect();
        Case { name: name.to_owned(), func, arguments, scalars, tolerance: 0.0 }
    }

    /// Sets the tolerance.
    pub fn within(mut self, tolerance: f64) -> Case {
        self.tolerance = tolerance;
        self
    }

    /// Sets the scalars, for functions whose scalars are not extents.
    pub fn scalars(mut self, scalars: &[i64]) -> Case {
        self.scalars = scalars.iter().map(|value| Scalar::Int(*value)).collect();
        self
    }

    /// Returns the bytes of the arguments.
    pub fn bytes(&self) -> Vec<&[u8]> {
        self.arguments.iter().map(Tensor::bytes).collect()
    }

    /// Returns the values of scalars and symbols, as kernels take them.
    pub fn values(&self) -> Vec<Option<i64>> {
        let shapes: Vec<&[i64]> = self.arguments.iter().map(Tensor::shape).collect();
        let bits = |(var, scalar): (VarId, &Scalar)| match (*scalar, self.func.var(var).dtype) {
            (Scalar::Int(value), _) => value,
            (Scalar::Float(value), DType::FLOAT64) => value.to_bits().cast_signed(),
            (Scalar::Float(value), _) => i64::from((value as f32).to_bits()),
        };
        let scalars: Vec<i64> = self.func.scalar_params().zip(&self.scalars).map(bits).collect();
        bind_symbols(&self.func, &shapes, &scalars).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Returns the result of the interpreter.
    pub fn expected(&self) -> Result<Vec<Tensor>, Failure> {
        self.interpreted(Limits::default()).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Returns the result of the interpreter within limits.
    ///
    /// # Errors
    /// If the function cannot be interpreted or exceeds the limits.
    pub fn interpreted(&self, limits: Limits<'_>) -> Result<Result<Vec<Tensor>, Failure>, RunError> {
        let mut tensors: Vec<Tensor> =
            self.arguments.iter().map(|one| one.duplicate().expect("a small tensor")).collect();
        Ok(match Program::new(&self.func)?.run(&mut tensors, &self.scalars, limits) {
            Ok(_) => Ok(tensors),
            Err(RunError::OutOfBounds { index, extent, .. }) => Err(Failure::Index { index, extent }),
            Err(RunError::DivisionByZero { .. }) => Err(Failure::Division),
            Err(RunError::Assertion { message, .. }) => Err(Failure::Assertion(message.to_string())),
            Err(error) => return Err(error),
        })
    }

    /// Checks the result of a kernel against the expected one, which [`Case::expected`] returns.
    pub fn judge(
        &self,
        actual: &Result<Vec<Vec<u8>>, Fault>,
        expected: &Result<Vec<Tensor>, Failure>,
    ) -> Result<(), String> {
        self.compare_all(actual.as_ref().map_err(Failure::from), expected)
    }

    /// Checks a result against the expected one.
    ///
    /// If a check fails in several threads, any of them may be reported, so only the kind of the failure must agree.
    /// The index of an index failure must also be out of its range.
    pub fn compare_all(
        &self,
        actual: Result<&Vec<Vec<u8>>, Failure>,
        expected: &Result<Vec<Tensor>, Failure>,
    ) -> Result<(), String> {
        match (actual, expected) {
            (Ok(actual), Ok(expected)) => {
                actual.iter().zip(expected).enumerate().try_for_each(|(at, (bytes, tensor))| {
                    let actual =
                        Tensor::from_bytes(tensor.dtype(), tensor.shape(), bytes).map_err(|error| error.to_string())?;
                    self.compare(at, &actual, tensor)
                })
            }
            (Err(found), Err(failure)) => {
                let alike = std::mem::discriminant(&found) == std::mem::discriminant(failure);
                let sound = match found {
                    Failure::Index { index, extent } => index < 0 || index >= extent,
                    _ => true,
                };
                if alike && sound { Ok(()) } else { Err(format!("{}: {found:?}, not {failure:?}", self.name)) }
            }
            (Ok(_), Err(failure)) => Err(format!("{}: no failure, the interpreter has {failure:?}", self.name)),
            (Err(found), Ok(_)) => Err(format!("{}: {found:?}, the interpreter has values", self.name)),
        }
    }

    fn compare(&self, buffer: usize, actual: &Tensor, expected: &Tensor) -> Result<(), String> {
        for at in 0..expected.len() {
            let (a, b) = (actual.get(at), expected.get(at));
            let near = match (a, b) {
                (Some(Scalar::Float(a)), Some(Scalar::Float(b))) => {
                    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= self.tolerance * (1.0 + b.abs())
                }
                _ => a == b,
            };
            if !near {
                let Case { name, func, .. } = self;
                return Err(format!("{name} ({}): element {at} of buffer {buffer} is {a:?}, not {b:?}", func.name));
            }
        }
        Ok(())
    }
}

/// Returns floats between -2 and 2 in steps of 1/8, signed integers between -16 and 16, unsigned ones between 0 and 16,
/// or booleans, without a period that could hide a wrong index.
fn tensor(seed: u64, dtype: DType, shape: &[i64]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, shape).expect("a small tensor");
    for at in 0..tensor.len() {
        let mixed = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed << 40);
        let number = (mixed >> 33) as i64 % 33 - 16;
        let value = match dtype {
            dtype if dtype.is_float() => Scalar::Float(number as f64 / 8.0),
            dtype if dtype.is_bool() => Scalar::Int(i64::from(number > 0)),
            DType::UINT8 | DType::UINT16 | DType::UINT32 | DType::UINT64 => Scalar::Int(number.abs()),
            _ => Scalar::Int(number),
        };
        tensor.set(at, value);
    }
    tensor
}
