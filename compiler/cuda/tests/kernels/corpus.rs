//! Runs the prim_funcs of the texts in the folder `RX_CASES` on the interpreter, on the CPU and as simulated CUDA, and
//! compares the three results. If NVRTC is found, also compiles the printed kernels of models with it.

use crate::case::{Case, Failure};
use crate::compiled::on_cpu;
use crate::script;
use rustc_hash::FxHashSet;
use rx_base::DType;
use rx_cuda::module;
use rx_cuda::rules::Target;
use rx_cuda::simulator::{Call, Options, Order, Simulator};
use rx_interp::Limits;
use rx_prim_func::reader;
use rx_syntax::Document;
use rx_syntax::document::{FileKind, FunctionKind, ItemKind};
use rx_tensor::{Scalar, Tensor};
use rx_tir::rewrite::{map_expr, map_stmt};
use rx_tir::{BinaryOp, Expr, PrimFunc, Stmt};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The value of every symbol and numeric scalar argument. It is odd, so that dividing it by an even number leaves a
/// remainder.
const EXTENT: i64 = 9;

/// The maximum size of all arguments of a function that is run, in bytes.
const MOST_BYTES: i64 = 1 << 26;

/// The limits of the interpreter for one function.
const INTERPRETED: Limits<'_> = Limits { iterations: Some(1 << 21), bytes: Some(1 << 26), zeroed: false, cancel: None };

/// The maximum number of functions in one text for the C++ compiler.
const AT_ONCE: usize = 48;

/// A prim_func, or the error of its reader, and its place in the texts.
struct Found {
    place: String,
    func: Result<PrimFunc, String>,
}

/// Returns the prim_funcs of a text.
fn prim_funcs(place: &str, text: &str, kind: FileKind) -> Vec<Found> {
    let document = Document::new(text, kind);
    let context = script::context(&document);
    let functions = document.items().iter().filter(|item| item.kind == ItemKind::Function(FunctionKind::Prim));
    let read = functions.filter_map(|item| Some((item.name?, reader::prim_func(&item.segments, &context, item.name?))));
    let found = read.map(|(name, func)| Found {
        place: format!("{place}: {name}"),
        func: func.map_err(|said| said.first().map_or_else(String::new, |first| first.message.clone())),
    });
    found.collect()
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    let inside = paths.iter().flat_map(|path| match path.is_dir() {
        true => files(path, ending),
        false => path.extension().filter(|extension| *extension == ending).map(|_| path.clone()).into_iter().collect(),
    });
    inside.collect()
}

/// Returns the folder `RX_CASES`, if the variable is set.
fn cases() -> Option<PathBuf> {
    let folder = std::env::var_os("RX_CASES").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: RX_CASES is not set");
    }
    folder
}

/// Returns the prim_funcs of the files in a folder and its subfolders; of equal functions or equal errors, the first.
fn of_files(folder: &Path, ending: &str, kind: FileKind) -> Vec<Found> {
    let texts = files(folder, ending).into_iter().filter_map(|path| {
        let place = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Some((place, std::fs::read_to_string(&path).ok()?))
    });
    once(texts.flat_map(|(place, text)| prim_funcs(&place, &text, kind)))
}

/// Returns the prim_funcs of the rows of a JSON Lines file; of equal functions or equal errors, the first.
fn of_rows(path: &Path) -> Vec<Found> {
    let rows = std::fs::read_to_string(path).unwrap_or_default();
    let rows: Vec<serde_json::Value> = rows.lines().filter_map(|row| serde_json::from_str(row).ok()).collect();
    let texts = rows.iter().filter_map(|row| Some((row["id"].as_str()?, row["text"].as_str()?)));
    once(texts.flat_map(|(id, text)| prim_funcs(id, text, FileKind::Rx)))
}

fn once(found: impl Iterator<Item = Found>) -> Vec<Found> {
    let mut known = FxHashSet::default();
    found.filter(|found| known.insert(format!("{:?}", found.func))).collect()
}

/// Returns the prim_funcs of models, without duplicates within each of the two folders and with checked indices.
/// Returns `None` if `RX_CASES` is not set.
pub fn of_models() -> Option<Vec<PrimFunc>> {
    let folder = cases()?;
    let found = of_files(&folder.join("models/stages"), "rx", FileKind::Rx).into_iter().chain(of_files(
        &folder.join("models/mlc"),
        "py",
        FileKind::Python,
    ));
    Some(found.filter_map(|found| found.func.ok()).map(|func| rx_loops::guards(&rx_loops::simplify(&func)).0).collect())
}

#[test]
fn prim_funcs_of_models_are_printed_and_compile() {
    let Some(folder) = cases() else { return };
    let found = of_files(&folder.join("models/stages"), "rx", FileKind::Rx).into_iter().chain(of_files(
        &folder.join("models/mlc"),
        "py",
        FileKind::Python,
    ));
    let guarded = |func: PrimFunc| rx_loops::guards(&rx_loops::simplify(&func)).0;
    let corpus: Vec<(String, PrimFunc)> =
        found.filter_map(|found| Some((found.place, guarded(found.func.ok()?)))).collect();
    let mut kernels = 0;
    let mut in_one_thread = Vec::new();
    for part in corpus.chunks(64) {
        let funcs: Vec<&PrimFunc> = part.iter().map(|(_, func)| func).collect();
        let source = module(&funcs, &Target::default()).unwrap_or_else(|error| panic!("{}: {error}", part[0].0));
        for (function, (place, _)) in source.functions.iter().zip(part) {
            kernels += function.kernels.len();
            let serial = function.kernels.iter().filter(|kernel| kernel.shape.is_single());
            in_one_thread.extend(serial.map(|kernel| format!("{place}: {}", kernel.name)));
        }
        if crate::nvrtc::is_found() {
            crate::nvrtc::compiles(&source.text);
        }
    }
    println!("{} prim_funcs, {kernels} kernels, {} of them in one thread:", corpus.len(), in_one_thread.len());
    in_one_thread.iter().for_each(|kernel| println!("  {kernel}"));
}

/// The counts of the functions of some texts.
#[derive(Default)]
struct Table {
    functions: usize,
    read: usize,
    /// The functions that the interpreter executes completely: the result is values or a failed check.
    interpreted: usize,
    /// The functions that exceed the interpreter's limits and that the CPU executes completely.
    compiled_only: usize,
    /// The functions whose result on the CPU agrees with the interpreter.
    on_cpu: usize,
    /// The functions whose result as CUDA agrees with the interpreter; without a C++ compiler, all interpreted ones.
    as_cuda: usize,
    /// The places of functions that were found to depend on uninitialized memory. No result of them is a disagreement.
    undefined: FxHashSet<String>,
    reasons: BTreeMap<String, usize>,
    disagreements: Vec<String>,
}

impl Table {
    fn because(&mut self, title: &str, reason: &str) {
        let short: String = reason.chars().take(120).collect();
        *self.reasons.entry(format!("{title}: {short}")).or_default() += 1;
    }

    /// Checks that an outcome is the expected one. For [`sums_in_half`], also accepts the result of [`in_single`].
    /// Accepts every outcome if the interpreter does not reproduce the expected one with zeroed memory.
    fn agrees(
        &mut self,
        case: &Case,
        outcome: Result<&Vec<Vec<u8>>, Failure>,
        expected: &Expected,
    ) -> Result<(), String> {
        let exactly = |why: String| match (&outcome, sums_in_half(&case.func).then(|| in_single(case)).flatten()) {
            (Ok(bytes), Some(exact)) => case.compare_all(Ok(bytes), &Ok(exact)).map_err(|_| why),
            _ => Err(why),
        };
        let judged = case.compare_all(outcome.clone(), expected).or_else(exactly);
        judged.or_else(|why| {
            let zeroed = case.interpreted(Limits { zeroed: true, ..INTERPRETED });
            let same = zeroed.is_ok_and(|zeroed| match (&zeroed, expected) {
                (Ok(a), Ok(b)) => a.iter().zip(b).all(|(a, b)| a.bytes() == b.bytes()),
                (Err(a), Err(b)) => a == b,
                _ => false,
            });
            if !same {
                self.undefined.insert(case.name.clone());
            }
            if same { Err(why) } else { Ok(()) }
        })
    }

    fn tell(&self, corpus: &str) {
        let Table { functions, read, interpreted, compiled_only, on_cpu, as_cuda, .. } = self;
        println!(
            "{corpus}: {functions} prim_funcs, {read} read; {interpreted} interpreted, of these {on_cpu} agree on the CPU and \
             {as_cuda} as CUDA; {compiled_only} more on the CPU alone"
        );
        if !self.undefined.is_empty() {
            println!("{:5}  depend on memory that nothing wrote", self.undefined.len());
        }
        let mut reasons: Vec<_> = self.reasons.iter().map(|(reason, count)| (*count, reason)).collect();
        reasons.sort_by(|a, b| b.cmp(a));
        reasons.iter().for_each(|(count, reason)| println!("{count:5}  {reason}"));
    }
}

/// Returns a case of the function with small arguments. The elements of integer tensors are 0 or 1, as most of them are
/// indices. The case is named by its place.
fn case(place: &str, func: &PrimFunc) -> Result<Case, String> {
    let mut shapes = Vec::new();
    let mut bytes = 0i64;
    for buffer in func.buffer_params() {
        let buffer = func.buffer(buffer);
        let extents = buffer.shape.iter().map(|extent| rx_tir::evaluate_index(extent, &|_| Some(EXTENT)));
        let shape: Vec<i64> = extents.collect::<Option<_>>().ok_or("the shape of a parameter is not known")?;
        let size = buffer.dtype.bytes() as i64;
        bytes = bytes.saturating_add(shape.iter().fold(size, |bytes, extent| bytes.saturating_mul((*extent).max(0))));
        shapes.push(shape);
    }
    if bytes > MOST_BYTES {
        return Err("its arguments are large".to_owned());
    }
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let mut case = Case::new(place, func.clone(), &shapes).within(2e-2);
    let scalars = func.scalar_params().map(|var| match func.var(var).dtype {
        dtype if dtype.is_float() => Scalar::Float(EXTENT as f64),
        dtype if dtype.is_bool() => Scalar::Int(1),
        _ => Scalar::Int(EXTENT),
    });
    case.scalars = scalars.collect();
    for tensor in &mut case.arguments {
        if !tensor.dtype().is_float() {
            (0..tensor.len()).for_each(|at| {
                let bit = tensor.get(at).and_then(Scalar::as_int).unwrap_or(0) & 1;
                tensor.set(at, Scalar::Int(bit));
            });
        }
    }
    Ok(case)
}

/// Whether a store adds to an element of a buffer of 16-bit floats. The interpreter rounds every such sum to 16 bits. A
/// kernel that adds in `float32` and rounds once is more exact.
fn sums_in_half(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        if let Stmt::Store { buffer, value: Expr::Binary { op: BinaryOp::Add, left, .. }, .. } = stmt {
            let dtype = func.buffer(*buffer).dtype;
            found |= dtype.is_float()
                && dtype.bits == 16
                && matches!(&**left, Expr::Load { buffer: of, .. } if of == buffer);
        }
    });
    found
}

/// Returns the interpreter's result with every 16-bit float computed in `float32`, converted to the dtypes of the case.
fn in_single(case: &Case) -> Option<Vec<Tensor>> {
    let is_half = |dtype: DType| dtype.is_float() && dtype.bits == 16;
    let wide = |dtype: DType| if is_half(dtype) { DType::FLOAT32 } else { dtype };
    let convert = |tensor: &Tensor, dtype: DType| {
        let mut converted = Tensor::zeros(dtype, tensor.shape()).ok()?;
        (0..tensor.len()).for_each(|at| {
            if let Some(value) = tensor.get(at) {
                converted.set(at, value);
            }
        });
        Some(converted)
    };
    let mut func = case.func.clone();
    func.vars.iter_mut().for_each(|var| var.dtype = wide(var.dtype));
    func.buffers.iter_mut().for_each(|buffer| buffer.dtype = wide(buffer.dtype));
    let mut widen = |expr: Expr| match expr {
        Expr::Float { value, dtype } => Expr::Float { value, dtype: wide(dtype) },
        Expr::Var { var, dtype } => Expr::Var { var, dtype: wide(dtype) },
        Expr::Load { buffer, dtype, indices } => Expr::Load { buffer, dtype: wide(dtype), indices },
        Expr::Cast { dtype, value } => value.cast(wide(dtype)),
        Expr::Call { function, dtype, args } => Expr::Call { function, dtype: wide(dtype), args },
        other => other,
    };
    func.body = map_stmt(&func.body, &mut |expr| map_expr(expr, &mut widen));
    let arguments = case.arguments.iter().map(|one| convert(one, wide(one.dtype()))).collect::<Option<_>>()?;
    let single = Case { name: case.name.clone(), func, arguments, scalars: case.scalars.clone(), tolerance: 0.0 };
    let results = single.interpreted(INTERPRETED).ok()?.ok()?;
    results.iter().zip(&case.arguments).map(|(result, own)| convert(result, own.dtype())).collect()
}

/// A case with the result of the interpreter.
type Judged = (Case, Expected);

/// Values, or the check that failed.
type Expected = Result<Vec<Tensor>, Failure>;

/// Runs some cases as simulated CUDA. If they cannot be printed, compiled or run together (for example because the
/// process exits early), runs the halves separately, down to single cases.
fn as_cuda(cases: &[Judged], table: &mut Table) {
    let funcs: Vec<&PrimFunc> = cases.iter().map(|(case, _)| &case.func).collect();
    let built = module(&funcs, &Target::default()).map_err(|error| error.to_string());
    let built =
        built.and_then(|source| Simulator::build(&source, Options::default()).map_err(|error| error.to_string()));
    let run = |simulator: &Simulator| {
        let bytes: Vec<Vec<&[u8]>> = cases.iter().map(|(case, _)| case.bytes()).collect();
        let values: Vec<Vec<Option<i64>>> = cases.iter().map(|(case, _)| case.values()).collect();
        let order = Order::Ascending;
        let call = |function: usize| Call { function, buffers: &bytes[function], values: &values[function], order };
        let calls: Vec<Call<'_>> = (0..cases.len()).map(call).collect();
        simulator.run(&calls).map_err(|error| error.to_string())
    };
    match (built.and_then(|simulator| run(&simulator)), cases) {
        (Ok(outcomes), _) => {
            for ((case, expected), outcome) in cases.iter().zip(outcomes) {
                match table.agrees(case, outcome.as_ref().map_err(Failure::from), expected) {
                    Ok(()) => table.as_cuda += 1,
                    Err(why) => table.disagreements.push(format!("as CUDA: {why}")),
                }
            }
        }
        (Err(why), [(case, _)]) => {
            println!("as CUDA: {}: {}", case.name, why.lines().take(3).collect::<Vec<_>>().join(" "));
            table.because("as CUDA", &why);
        }
        (Err(_), cases) => {
            let (some, others) = cases.split_at(cases.len() / 2);
            as_cuda(some, table);
            as_cuda(others, table);
        }
    }
}

/// Runs each function on the interpreter, on the CPU and as simulated CUDA, as far as possible, and counts the
/// outcomes. A function that exceeds the interpreter's limits runs on the CPU only. Without a C++ compiler, none runs
/// as CUDA.
fn run_all(corpus: &str, found: Vec<Found>) -> Table {
    let mut table = Table { functions: found.len(), ..Table::default() };
    let mut judged: Vec<Judged> = Vec::new();
    for Found { place, func } in found {
        let func = match func {
            Ok(func) => func,
            Err(why) => {
                table.because("not read", &why);
                continue;
            }
        };
        table.read += 1;
        let mut case = match case(&place, &func) {
            Ok(case) => case,
            Err(why) => {
                table.because("not run", &why);
                continue;
            }
        };
        let expected = match case.interpreted(INTERPRETED) {
            Ok(expected) => expected,
            Err(rx_interp::RunError::Stopped(_)) => {
                match on_cpu(&case) {
                    Ok(_) => table.compiled_only += 1,
                    Err(why) => table.because("not interpreted, and on the CPU", &why),
                }
                continue;
            }
            Err(why) => {
                table.because("not interpreted", &why.to_string());
                continue;
            }
        };
        table.interpreted += 1;
        case.func = rx_loops::guards(&rx_loops::simplify(&func)).0;
        match on_cpu(&case) {
            Ok(outcome) => match table.agrees(&case, outcome.as_ref().map_err(Clone::clone), &expected) {
                Ok(()) => table.on_cpu += 1,
                Err(why) => table.disagreements.push(format!("on the CPU: {why}")),
            },
            Err(why) if case.interpreted(Limits { zeroed: true, ..INTERPRETED }).is_err() => {
                println!("on the CPU: {}: {why}", case.name);
                table.undefined.insert(case.name.clone());
                continue;
            }
            Err(why) => table.because("on the CPU", &why),
        }
        judged.push((case, expected));
    }
    if rx_cuda::simulator::compiler().is_ok() {
        judged.chunks(AT_ONCE).for_each(|some| as_cuda(some, &mut table));
    } else {
        println!("skipped: no C++ compiler");
        table.as_cuda = table.interpreted;
    }
    table.tell(corpus);
    table
}

/// Panics if any result differs, or if fewer than `percent` percent of the functions agree on the CPU, or as CUDA.
/// Functions that only the CPU executes count as agreeing for both.
#[track_caller]
fn hold(table: &Table, percent: usize) {
    assert!(table.disagreements.is_empty(), "{}", table.disagreements.join("\n"));
    let [cpu, cuda] = [table.on_cpu, table.as_cuda].map(|count| (count + table.compiled_only) * 100);
    assert!(cpu >= table.functions * percent, "on the CPU");
    assert!(cuda >= table.functions * percent, "as CUDA");
}

#[test]
#[ignore = "sweep: .ci/full"]
fn prim_funcs_of_modules_run_everywhere() {
    let Some(folder) = cases() else { return };
    hold(&run_all("modules", of_rows(&folder.join("cases/modules.jsonl"))), 95);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn prim_funcs_of_tir_modules_run_everywhere() {
    let Some(folder) = cases() else { return };
    hold(&run_all("tir_modules", of_rows(&folder.join("cases/tir_modules.jsonl"))), 80);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn prim_funcs_of_stages_run_everywhere() {
    let Some(folder) = cases() else { return };
    hold(&run_all("stages", of_files(&folder.join("models/stages"), "rx", FileKind::Rx)), 99);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn prim_funcs_of_mlc_run_everywhere() {
    let Some(folder) = cases() else { return };
    hold(&run_all("mlc", of_files(&folder.join("models/mlc"), "py", FileKind::Python)), 99);
}
