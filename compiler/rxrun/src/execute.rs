//! Building and running the program, and its results.

use crate::args::Args;
use crate::arguments::Inputs;
use crate::describe::Described;
use crate::device::Device;
use crate::failure::Failure;
use crate::inputs::inputs;
use crate::profile::Profile;
use crate::progress;
use crate::report::{Observation, Report, Running};
use crate::session::Session;
use crate::values::Values;
use crate::weights::Preparation;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_driver::inputs::Input;
use rx_lower::Program;
use rx_runtime::{Backend, BuildError, Executor, Limits, Observer, RunError, Value};
use rx_tensor::{Tensor, compare, npz};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the program on the chosen device, and observes another run if `--profile`, `--trace` or `--values` is given.
pub fn execute(session: &Session, entry: Name, args: &Args, report: &mut Report) -> Result<(), Failure> {
    let device = Device::to_run_on(session, args)?;
    let program = session.lower(entry, &device.made_for())?;
    let function = session.function(entry);
    let function = function.ok_or_else(|| Failure::usage(format!("`{entry}` cannot be run")))?;
    // If another function prepares the weights, that function may use the constants.
    if Preparation::of(session, &function).is_none() {
        crate::constants::all_used(session, &program, report)?;
    }
    let expected = match &args.check {
        Some(path) => Some(npz::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?),
        None => None,
    };
    let Inputs { values, symbols } = inputs(session, &function, args, report)?;
    let task = Task::Run { expected: expected.as_deref() };
    let equal = if args.values {
        let again = device.new_instance();
        let job = Job::new(session, program, Arguments::ImageCache(&values), &symbols, args)?;
        let equal = job.on_device(device, task, report)?;
        report.observing(Observation::Values);
        let program = session.lower_watched(entry);
        let job = program.and_then(|program| Job::new(session, program, Arguments::Given(values), &symbols, args));
        if let Err(failure) = job.and_then(|job| job.on_device(again, Task::Values, report)) {
            report.not_observed(Observation::Values, &failure);
        }
        equal
    } else {
        let job = Job::new(session, program, Arguments::Given(values), &symbols, args)?;
        job.on_device(device, task, report)?
    };
    if equal { Ok(()) } else { Err(Failure::Reported(1)) }
}

/// The function's arguments. Weights may fill half of the memory, so the last run that needs them takes ownership.
enum Arguments<'a> {
    ImageCache(&'a [Input]),
    Given(Vec<Input>),
}

/// A task for a program on a device.
#[derive(Clone, Copy)]
enum Task<'a> {
    /// Run it as often as `--repeat` says, then describe, write and compare its results.
    Run { expected: Option<&'a [(String, Tensor)]> },
    /// Run it once and record the values of its variables.
    Values,
}

/// A program with all inputs, without a device.
struct Job<'a> {
    session: &'a Session,
    program: Arc<Program>,
    constants: Vec<Tensor>,
    arguments: Arguments<'a>,
    symbols: &'a NameMap<i64>,
    args: &'a Args,
}

impl<'a> Job<'a> {
    fn new(
        session: &'a Session,
        program: Arc<Program>,
        arguments: Arguments<'a>,
        symbols: &'a NameMap<i64>,
        args: &'a Args,
    ) -> Result<Job<'a>, Failure> {
        let constants = crate::constants::of(session, &program)?;
        Ok(Job { session, program, constants, arguments, symbols, args })
    }

    /// Performs the task on a device. Returns false if the results differ from the expected ones.
    fn on_device(self, device: Device, task: Task<'_>, report: &mut Report) -> Result<bool, Failure> {
        match device {
            Device::Interp => self.on(rx_runtime::interp::Interpreter::default(), "the interpreter", task, report),
            Device::Simulated(device) => self.on(*device, "simulated CUDA", task, report),
            Device::Cuda(device) => {
                let name = device.name().to_owned();
                self.on(*device, &name, task, report)
            }
            Device::Cpu(why) => {
                why.into_iter().for_each(|why| report.remark(&format!("it runs on the CPU: {why}")));
                self.on(rx_runtime::cpu::Cpu::default(), "the CPU", task, report)
            }
        }
    }

    fn on<B: Backend>(self, backend: B, device: &str, task: Task<'_>, report: &mut Report) -> Result<bool, Failure> {
        match task {
            Task::Run { expected } => self.run(backend, device, expected, report),
            Task::Values => self.values(backend, report).map(|()| true),
        }
    }

    /// Builds and runs the program, reports its results, and then profiles one more run if asked to.
    fn run<B: Backend>(
        mut self,
        backend: B,
        device: &str,
        expected: Option<&[(String, Tensor)]>,
        report: &mut Report,
    ) -> Result<bool, Failure> {
        let start = Instant::now();
        let mut executor = self.build(backend, report)?;
        report.built(self.program.kernels.len(), device, start.elapsed());
        executor.remarks().iter().for_each(|remark| report.remark(remark));
        executor.on_print(report.printer());
        let arguments = self.arguments(&mut executor)?;
        let failed = |error: RunError| run_failure(self.session, &error);
        let (mut times, mut busy): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
        executor.busy();
        let mut result = Value::Unset;
        for at in 1..=self.args.repeat {
            let running = (Running::Run(at, self.args.repeat), None);
            let (given, calls) = (arguments.clone(), self.args.calls);
            let start = Instant::now();
            let ran = match calls {
                1 => progress::run(&mut executor, &self.program, given, self.symbols, running, report),
                _ => executor.run_calls(given, self.symbols, calls),
            };
            result = ran.map_err(failed)?;
            times.push(start.elapsed() / calls);
            busy.extend(executor.busy().map(|time| time / calls));
        }
        report.ran(&times, &busy, executor.peak_bytes());
        let outputs = executor.download(&std::mem::replace(&mut result, Value::Unset)).map_err(failed)?.tensors();
        let equal = deliver(&outputs, expected, self.args, report)?;
        drop(outputs);
        if self.args.profile || self.args.trace.is_some() {
            // The program's own output was already printed in the first runs.
            executor.on_print(|_| ());
            report.observing(Observation::Profile);
            let mut profile = Profile::of(&self.program, self.args.trace.is_some());
            let running = (Running::Observed(Observation::Profile), Some(&mut profile as &mut dyn Observer));
            match progress::run(&mut executor, &self.program, arguments, self.symbols, running, report) {
                Ok(_) if self.args.profile => profile.tell(self.session, report),
                Ok(_) => {}
                Err(error) => report.not_observed(Observation::Profile, &failed(error)),
            }
            if let Some(path) = &self.args.trace {
                profile.write_trace(path, self.session, report)?;
            }
        }
        Ok(equal)
    }

    /// Builds and runs the program once, and prints the values of its variables.
    fn values<B: Backend>(mut self, backend: B, report: &mut Report) -> Result<(), Failure> {
        let mut executor = self.build(backend, report)?;
        report.quiet();
        let arguments = self.arguments(&mut executor)?;
        let mut values = Values::default();
        let running = (Running::Observed(Observation::Values), Some(&mut values as &mut dyn Observer));
        let done = progress::run(&mut executor, &self.program, arguments, self.symbols, running, report);
        // Print them even if the run failed: the bindings before the failure are useful.
        values.tell(self.session, report);
        done.map(drop).map_err(|error| run_failure(self.session, &error))
    }

    fn build<B: Backend>(&self, backend: B, report: &mut Report) -> Result<Executor<B>, Failure> {
        let start = Instant::now();
        let built = Executor::new(self.program.clone(), backend, &self.constants, &mut |stage| {
            report.building(stage.done, stage.total, start.elapsed());
        });
        let mut executor = built.map_err(|error| build_failure(self.session, &error))?;
        executor.limit(Limits { iterations: Some(self.args.max_iterations), bytes: None });
        Ok(executor)
    }

    /// Uploads the inputs to the device's memory.
    fn arguments<B: Backend>(&mut self, executor: &mut Executor<B>) -> Result<Vec<Value<B::Memory>>, Failure> {
        let uploaded: Result<_, _> = match std::mem::replace(&mut self.arguments, Arguments::ImageCache(&[])) {
            Arguments::ImageCache(inputs) => inputs.iter().map(|input| input.upload(executor)).collect(),
            Arguments::Given(inputs) => inputs.into_iter().map(|input| input.give(executor)).collect(),
        };
        uploaded.map_err(|error| run_failure(self.session, &error))
    }
}

/// Converts a build error to a failure at its statement.
pub fn build_failure(session: &Session, error: &BuildError) -> Failure {
    let span = error.origins.iter().find_map(|origin| session.span(*origin));
    Failure::Run(error.to_string(), span)
}

/// Converts a run error to a failure at its statement.
pub fn run_failure(session: &Session, error: &RunError) -> Failure {
    Failure::Run(error.to_string(), error.origin.and_then(|origin| session.span(origin)))
}

/// Describes the results, writes them to `--output` and compares them with `expected`. Returns false if they differ.
fn deliver(
    outputs: &[Tensor],
    expected: Option<&[(String, Tensor)]>,
    args: &Args,
    report: &mut Report,
) -> Result<bool, Failure> {
    for (at, tensor) in outputs.iter().enumerate() {
        let (name, described) = (format!("out{at}"), Described::of(tensor));
        report.result("output", &described.line(&name), described.fields(&name));
    }
    if let Some(path) = &args.output {
        let named: Vec<(String, &Tensor)> =
            outputs.iter().enumerate().map(|(at, tensor)| (format!("out{at}"), tensor)).collect();
        npz::write(path, &named).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    expected.map_or(Ok(true), |expected| check(outputs, expected, args, report))
}

/// Compares the outputs with the arrays `out0`, `out1`, … of a file.
fn check(outputs: &[Tensor], expected: &[(String, Tensor)], args: &Args, report: &mut Report) -> Result<bool, Failure> {
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
        let of_file = rx_tensor::in_files::of_file(wanted, tensor.dtype());
        let of_file = of_file.map_err(|error| Failure::Run(format!("{name}: {error}"), None))?;
        let wanted = of_file.as_ref().unwrap_or(wanted);
        let result = match compare(tensor, wanted, args.rtol, args.atol) {
            Ok(result) => result,
            Err(error) => return Err(Failure::Run(format!("{name}: {error}"), None)),
        };
        equal &= result.ok;
        let text = format!("{name}: {result}");
        report.result("compared", &text, json!({ "name": name, "ok": result.ok, "text": result.to_string() }));
    }
    Ok(equal)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
