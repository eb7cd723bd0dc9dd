//! Building and running the program, and what comes out.

use crate::args::{Args, Device};
use crate::failure::Failure;
use crate::inputs::{Input, Inputs, inputs};
use crate::report::Report;
use crate::session::Session;
use rx_base::{DType, Name};
use rx_ir::Literal;
use rx_lower::{Constant, Program};
use rx_runtime::{Backend, BuildError, Executor, RunError, Value};
use rx_tensor::{Scalar, Stats, Tensor, TensorError, compare, npz};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the program on the device asked for.
pub fn execute(
    session: &Session,
    entry: Name,
    program: Program,
    args: &Args,
    report: &mut Report,
) -> Result<(), Failure> {
    let function = session.workspace.function(session.file, entry);
    let function = function.ok_or_else(|| Failure::usage(format!("`{entry}` cannot be run")))?;
    let expected = match &args.check {
        Some(path) => Some(npz::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?),
        None => None,
    };
    let inputs = inputs(session, &function, args)?;
    let outputs = on_device(session, Arc::new(program), inputs, args, report)?;
    for (at, tensor) in outputs.iter().enumerate() {
        describe(at, tensor, report);
    }
    if let Some(path) = &args.output {
        let named: Vec<(String, &Tensor)> =
            outputs.iter().enumerate().map(|(at, tensor)| (format!("out{at}"), tensor)).collect();
        npz::write(path, &named).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    match expected {
        Some(expected) => check(&outputs, &expected, args, report),
        None => Ok(()),
    }
}

fn on_device(
    session: &Session,
    program: Arc<Program>,
    inputs: Inputs,
    args: &Args,
    report: &mut Report,
) -> Result<Vec<Tensor>, Failure> {
    let constants = constants(session, &program)?;
    let job = Job { session, program, constants, inputs, args };
    match session.choices.device {
        Device::Interp => job.run(rx_runtime::interp::Interpreter::default(), "the interpreter", report),
        Device::CudaSim => job.run(rx_runtime::cuda::Simulated::default(), "simulated CUDA", report),
        Device::Cpu => job.run(rx_runtime::cpu::Cpu::default(), "the CPU", report),
        Device::Cuda => {
            let device = rx_runtime::cuda::Cuda::probe().map_err(|error| Failure::usage(error.to_string()))?;
            job.on_cuda(device, report)
        }
        Device::Auto => match rx_runtime::cuda::Cuda::probe() {
            Ok(device) if rx_cuda::nvrtc::probe().is_ok() => job.on_cuda(device, report),
            _ => job.run(rx_runtime::cpu::Cpu::default(), "the CPU", report),
        },
    }
}

/// A program with everything it needs but a device.
struct Job<'a> {
    session: &'a Session,
    program: Arc<Program>,
    constants: Vec<Tensor>,
    inputs: Inputs,
    args: &'a Args,
}

impl Job<'_> {
    fn on_cuda(self, device: rx_runtime::cuda::Cuda, report: &mut Report) -> Result<Vec<Tensor>, Failure> {
        let name = device.name().to_owned();
        self.run(device, &name, report)
    }

    /// Builds, runs as often as asked, and brings back the tensors of the result.
    fn run<B: Backend>(self, backend: B, device: &str, report: &mut Report) -> Result<Vec<Tensor>, Failure> {
        let start = Instant::now();
        let kernels = self.program.kernels.len();
        let built = Executor::new(self.program, backend, &self.constants, &mut |stage| {
            report.building(stage.done, stage.total, start.elapsed());
        });
        let mut executor = built.map_err(|error| build_failure(self.session, &error))?;
        report.built(kernels, device, start.elapsed());
        executor.remarks().iter().for_each(|remark| report.remark(remark));
        let failed = |error: RunError| run_failure(self.session, &error);
        let values = self.inputs.values.iter();
        let arguments: Vec<Value<B::Memory>> =
            values.map(|input| upload(&mut executor, input)).collect::<Result<_, _>>().map_err(failed)?;
        let mut times: Vec<Duration> = Vec::new();
        let mut result = Value::Unset;
        for _ in 0..self.args.repeat {
            let start = Instant::now();
            result = executor.run(arguments.clone(), &self.inputs.symbols).map_err(failed)?;
            times.push(start.elapsed());
        }
        report.ran(&times);
        Ok(executor.download(&result).map_err(failed)?.tensors())
    }
}

fn upload<B: Backend>(executor: &mut Executor<B>, input: &Input) -> Result<Value<B::Memory>, RunError> {
    Ok(match input {
        Input::Tensor(tensor) => executor.upload(tensor)?,
        Input::Shape(dims) => Value::Shape(dims.as_slice().into()),
        Input::Scalar(scalar) => Value::Scalar(*scalar),
        Input::Tuple(fields) => {
            let fields: Vec<_> = fields.iter().map(|field| upload(executor, field)).collect::<Result<_, _>>()?;
            Value::Tuple(fields.into())
        }
    })
}

/// The tensors that stand in the program.
fn constants(session: &Session, program: &Program) -> Result<Vec<Tensor>, Failure> {
    let listed = |constant: &Constant| match constant {
        Constant::Metadata { key, index } => Some((*key, *index)),
        Constant::Scalar(..) | Constant::Elements { .. } => None,
    };
    let wanted: Vec<(Name, u32)> = program.constants.iter().filter_map(listed).collect();
    let decoded = match wanted.is_empty() {
        true => Vec::new(),
        false => session.workspace.constants(session.file, &wanted).map_err(Failure::usage)?,
    };
    let mut decoded = decoded.into_iter();
    let mut tensor = |constant: &Constant| -> Result<Tensor, TensorError> {
        match constant {
            Constant::Scalar(literal, dtype) => Tensor::from_scalar(*dtype, number(literal, *dtype)),
            Constant::Elements { elements, shape, dtype } => {
                let mut tensor = Tensor::zeros(*dtype, shape)?;
                for (at, element) in elements.iter().enumerate() {
                    tensor.set(at, number(element, *dtype));
                }
                Ok(tensor)
            }
            // One was decoded for each.
            Constant::Metadata { .. } => match decoded.next() {
                Some(data) => Tensor::from_bytes(data.dtype, &data.shape, &data.bytes),
                None => Tensor::zeros(DType::UINT8, &[0]),
            },
        }
    };
    let tensors: Result<_, _> = program.constants.iter().map(&mut tensor).collect();
    tensors.map_err(|error| Failure::usage(format!("a constant of the program: {error}")))
}

fn number(literal: &Literal, dtype: DType) -> Scalar {
    match literal {
        Literal::Int(value) if dtype.is_float() => Scalar::Float(*value as f64),
        Literal::Int(value) => Scalar::Int(*value),
        Literal::Float(value) => Scalar::Float(*value),
        Literal::Bool(value) if dtype.is_float() => Scalar::Float(f64::from(u8::from(*value))),
        Literal::Bool(value) => Scalar::Int(i64::from(*value)),
    }
}

fn build_failure(session: &Session, error: &BuildError) -> Failure {
    let span = error.origins.iter().find_map(|origin| session.span(*origin));
    Failure::Run(error.to_string(), span)
}

fn run_failure(session: &Session, error: &RunError) -> Failure {
    Failure::Run(error.to_string(), error.origin.and_then(|origin| session.span(origin)))
}

/// `out0: float32 (1, 10)  min -1.5  mean 0.1  max 2.5  nan 0`.
fn describe(at: usize, tensor: &Tensor, report: &mut Report) {
    let stats = Stats::of(tensor);
    let comma = if tensor.shape().len() == 1 { "," } else { "" };
    let shape = tensor.shape().iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let text = format!(
        "out{at}: {} ({shape}{comma})  min {:.6}  mean {:.6}  max {:.6}  nan {}",
        tensor.dtype(),
        stats.min,
        stats.mean,
        stats.max,
        stats.nan_count
    );
    let fields = json!({
        "name": format!("out{at}"),
        "dtype": tensor.dtype().to_string(),
        "shape": tensor.shape(),
        "min": stats.min,
        "mean": stats.mean,
        "max": stats.max,
        "nan": stats.nan_count,
    });
    report.result("output", &text, fields);
}

/// Compares the outputs with `out0`, `out1`, … of a file.
fn check(outputs: &[Tensor], expected: &[(String, Tensor)], args: &Args, report: &mut Report) -> Result<(), Failure> {
    let mut equal = true;
    let count = expected.iter().filter(|(name, _)| name.strip_prefix("out").is_some_and(is_number)).count();
    if count != outputs.len() {
        let message = format!("the file has {count} outputs, the function returns {}", outputs.len());
        return Err(Failure::Run(message, None));
    }
    for (at, tensor) in outputs.iter().enumerate() {
        let name = format!("out{at}");
        let Some((_, wanted)) = expected.iter().find(|(known, _)| *known == name) else {
            return Err(Failure::Run(format!("the file has no `{name}`"), None));
        };
        let result = match compare(tensor, wanted, args.rtol, args.atol) {
            Ok(result) => result,
            Err(error) => return Err(Failure::Run(format!("{name}: {error}"), None)),
        };
        equal &= result.ok;
        let text = format!("{name}: {result}");
        report.result("compared", &text, json!({ "name": name, "ok": result.ok, "text": result.to_string() }));
    }
    if equal { Ok(()) } else { Err(Failure::Reported(1)) }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
