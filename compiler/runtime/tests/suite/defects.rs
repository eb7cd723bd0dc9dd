//! The programs of the corpus of known defects: a correct one gives the same result on all devices, and one that the
//! checker rejects for an out-of-bounds index fails at run time as well. `RX_CASES` is the folder of the corpus; the
//! tests are skipped without it.

use crate::common::Text;
use rx_base::Severity;
use rx_db::{FileKind, Workspace};
use rx_runtime::cuda::Simulated;
use rx_runtime::{Backend, Fault, Limits, Output, RunError, cpu::Cpu, interp::Interpreter};
use rx_tensor::{Tensor, compare, random};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The values of the symbols in the shapes of arguments: every symbol is 3 for random arguments, and 64 for zeros,
/// since some programs need more than 3 rows.
const EXTENTS: [i64; 2] = [3, 64];

/// The maximal number of loop iterations on the interpreter. A program that needs more is large: the largest
/// convolutions need a few hundred times as many.
const MOST_ITERATIONS: u64 = 1 << 24;

/// A program of the corpus: its name, its text, and the kind of its defect, `-` if it is correct.
struct Defect {
    name: String,
    text: String,
    kind: String,
}

/// Returns the programs about convolutions and other reductions (`s0_…`), transposed convolutions and their layouts
/// (`s1_…`), and indices (`s3_…`). Returns `None` if `RX_CASES` is not set.
fn defects() -> Option<Vec<Defect>> {
    let Some(folder) = std::env::var_os("RX_CASES").map(|cases| PathBuf::from(cases).join("cases/defects")) else {
        println!("skipped: RX_CASES is not set");
        return None;
    };
    let rows = std::fs::read_to_string(folder.join("expected.tsv")).expect("readable");
    let row = |row: &str| {
        let mut fields = row.split('\t');
        let (name, _, kind) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = ["s0_", "s1_", "s3_"].iter().any(|prefix| name.starts_with(prefix));
        let text = std::fs::read_to_string(folder.join(name)).ok().filter(|_| ours)?;
        Some(Defect { name: name.to_owned(), text, kind: kind.to_owned() })
    };
    Some(rows.lines().skip(1).filter_map(row).collect())
}

/// Parses and checks a text. Returns it even if it has errors, and whether it has.
fn read(text: &str) -> (Text, bool) {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    let wrong = workspace.diagnostics(file).iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    (Text(workspace, file), wrong)
}

/// Returns random arguments for the parameters of the entry function.
fn arguments(text: &Text) -> Vec<Tensor> {
    drawn(text, EXTENTS[0])
}

/// Returns zeros for the parameters of the entry function, so that every index that is read from them is 0 and thus in
/// bounds.
fn zeros(text: &Text) -> Vec<Tensor> {
    let zeros = |tensor: &Tensor| Tensor::zeros(tensor.dtype(), tensor.shape()).expect("memory");
    drawn(text, EXTENTS[1]).iter().map(zeros).collect()
}

fn drawn(text: &Text, extent: i64) -> Vec<Tensor> {
    let main = text.0.function(text.0.first_module(text.1), text.entry()).expect("a function");
    let drawn = |(at, (_, ty)): (usize, &(rx_base::Name, rx_ir::StructInfo))| {
        let tensor = ty.as_tensor().expect("a tensor");
        let dims = tensor.shape.dims().expect("dims").iter();
        let shape = dims.map(|dim| dim.substitute(&|_| Some(extent.into())).as_constant().expect("an extent"));
        let dtype = tensor.dtype.expect("a dtype");
        random::draw(11, at as u64, dtype, &shape.collect::<Vec<_>>(), Some(4)).expect("drawn")
    };
    main.params.iter().enumerate().map(drawn).collect()
}

fn outcome(text: &Text, backend: impl Backend, arguments: &[Tensor]) -> Result<Vec<Tensor>, RunError> {
    text.run(true, backend, arguments).result.map(Output::tensors)
}

/// As [`outcome`] on the interpreter, but returns `None` if the run needs more than [`MOST_ITERATIONS`].
fn interpreted(text: &Text, arguments: &[Tensor]) -> Option<Result<Vec<Tensor>, RunError>> {
    let limits = Limits { iterations: Some(MOST_ITERATIONS), bytes: None };
    let result = text.run_within(limits, true, Interpreter::default(), arguments).result.map(Output::tensors);
    (!matches!(&result, Err(error) if error.to_string().starts_with("stopped"))).then_some(result)
}

/// Checks that two runs agree: equal values up to rounding, or the same kind of failure.
fn same(a: &Result<Vec<Tensor>, RunError>, b: &Result<Vec<Tensor>, RunError>) -> Result<(), String> {
    match (a, b) {
        (Ok(a), Ok(b)) => {
            for (a, b) in a.iter().zip(b) {
                let tolerance = if a.dtype() == rx_base::DType::FLOAT32 { 1e-4 } else { 2e-2 };
                let result = compare(a, b, tolerance, tolerance).map_err(|error| error.to_string())?;
                if !result.ok {
                    return Err(result.to_string());
                }
            }
            Ok(())
        }
        (Err(a), Err(b)) => match std::mem::discriminant(&a.fault) == std::mem::discriminant(&b.fault) {
            true => Ok(()),
            false => Err(format!("{a}, and {b}")),
        },
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => Err(format!("only one fails: {error}")),
    }
}

#[test]
#[ignore = "sweep: .ci/full"]
fn correct_programs_agree_on_all_devices() {
    check_correct_programs(false);
}

/// As above for the programs that need more than [`MOST_ITERATIONS`] iterations, without the interpreter, which would
/// take an hour. Takes minutes.
#[test]
#[ignore = "sweep: .ci/full"]
fn large_correct_programs_agree_on_the_cpu_and_as_cuda() {
    check_correct_programs(true);
}

/// Runs the correct programs on the CPU, and either the large or the other ones as simulated CUDA, with one thread for
/// each core. Programs that are not large are also run on the interpreter.
fn check_correct_programs(large: bool) {
    let Some(defects) = defects() else { return };
    let simulated = rx_cuda::simulator::compiler().is_ok();
    if !simulated {
        println!("skipped: CUDA text, no C++ compiler");
    }
    let correct: Vec<&Defect> = defects.iter().filter(|defect| defect.kind == "-").collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut table = Table { large, simulated, ran: 0, interpreted: 0, as_cuda: 0, failed: Vec::new() };
        while let Some(defect) = correct.get(next.fetch_add(1, Ordering::Relaxed)) {
            table.add(defect);
        }
        table
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let tables = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("every program is run")).collect::<Vec<_>>()
    });
    let [ran, interpreted, as_cuda] = tables.iter().fold([0; 3], |[ran, interpreted, as_cuda], table| {
        [ran + table.ran, interpreted + table.interpreted, as_cuda + table.as_cuda]
    });
    println!("{ran} programs run on the CPU; {interpreted} of them agree with the interpreter, {as_cuda} with CUDA");
    let failed: Vec<String> = tables.into_iter().flat_map(|table| table.failed).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The counts of successful runs, and the failures.
struct Table {
    /// Whether the large programs are compared, otherwise the other ones.
    large: bool,
    /// Whether programs run as CUDA, too.
    simulated: bool,
    ran: usize,
    interpreted: usize,
    as_cuda: usize,
    failed: Vec<String>,
}

impl Table {
    /// Runs a program with random arguments on all devices. It may be correct for some values only and fail with an
    /// index error for the random ones. It must then fail on all devices, and succeed for zeros.
    fn add(&mut self, Defect { name, text, .. }: &Defect) {
        let (text, wrong) = read(text);
        if wrong {
            self.failed.push(format!("{name}: has errors"));
        } else if !self.run(name, &text, &arguments(&text)) && !self.run(name, &text, &zeros(&text)) {
            self.failed.push(format!("{name}: fails for zeros, too"));
        }
    }

    /// Runs a program on the CPU and on the devices with which it is to be compared, and compares the results. Returns
    /// whether the run on the CPU succeeded.
    fn run(&mut self, name: &str, text: &Text, arguments: &[Tensor]) -> bool {
        let compiled = outcome(text, Cpu::default(), arguments);
        if let Err(error) = &compiled {
            println!("{name}: {error}");
        }
        let succeeded = usize::from(compiled.is_ok());
        self.ran += succeeded;
        let mut compare = |device: &str, other: Result<Vec<Tensor>, RunError>| {
            self.failed.extend(same(&compiled, &other).err().map(|why| format!("{name}: {device}: {why}")));
        };
        let interpreted = interpreted(text, arguments);
        if interpreted.is_none() == self.large {
            if let Some(other) = interpreted {
                compare("the interpreter", other);
                self.interpreted += succeeded;
            }
            if self.simulated {
                compare("CUDA", outcome(text, Simulated::default(), arguments));
                self.as_cuda += succeeded;
            }
        }
        compiled.is_ok()
    }
}

/// Returns the lines of a text that a span covers.
fn line_of(text: &str, span: rx_base::Span) -> &str {
    let (start, end) = (span.start as usize, span.end as usize);
    let first = text[..start].rfind('\n').map_or(0, |at| at + 1);
    &text[first..text[end..].find('\n').map_or(text.len(), |at| end + at)]
}

/// The error names the statement, the operator and the values.
#[test]
fn an_index_that_is_refused_is_an_error_when_it_runs() {
    let Some(defects) = defects() else { return };
    let about_indices = |defect: &&Defect| defect.kind.ends_with("out-of-bounds");
    let (mut caught, mut failed) = (0, Vec::new());
    for Defect { name, text, .. } in defects.iter().filter(about_indices) {
        let source = text;
        let (text, wrong) = read(source);
        assert!(wrong, "{name}");
        let arguments = arguments(&text);
        for (device, result) in [
            ("the interpreter", outcome(&text, Interpreter::default(), &arguments)),
            ("the CPU", outcome(&text, Cpu::default(), &arguments)),
        ] {
            let Err(error) = result else {
                failed.push(format!("{name} on {device}: it gives values"));
                continue;
            };
            // The origin gives the source line; the message contains the operator and the values.
            let line = error
                .origin
                .and_then(|origin| text.0.origin_span(text.0.first_module(text.1), origin))
                .map(|span| line_of(source, span));
            let message = error.to_string();
            let named = match &error.fault {
                Fault::OutOfBounds { operator, buffer, index, extent, .. } => {
                    !(0..*extent).contains(index)
                        && [operator.as_str(), &index.to_string(), &extent.to_string()]
                            .iter()
                            .all(|it| message.contains(it))
                        // The line contains the operator of a call, or the buffer of a statement in a prim_func's
                        // block.
                        && line.is_some_and(|line| line.contains(operator.as_str()) || line.contains(buffer.as_str()))
                }
                // An out-of-bounds slice is reported by the operator's rule once its operands are known.
                _ => message.contains("out of bounds") && message.starts_with("R.") && line.is_some(),
            };
            match named {
                true => caught += 1,
                false => failed.push(format!("{name} on {device}: {message}, in {line:?}")),
            }
        }
    }
    println!("{caught} runs end with an index");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
