//! Counts how many functions of a corpus lower and run with random inputs, and why the others do not: the most frequent
//! reasons show which feature to add next. `RX_CASES` is the folder of the corpus, by default `shared` beside the
//! repository; the tests are skipped if it has no cases.

use crate::common::Text;
use rx_base::Severity;
use rx_base::name::NameMap;
use rx_db::{FileKind, Workspace};
use rx_ir::StructInfo;
use rx_lower::{Instruction, Operation, Program};
use rx_runtime::{Backend, Executor, Limits, Value};
use rx_tensor::{Scalar, random};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The value of every scalar input and of every symbol in the shape of an input, and the extent of every axis whose
/// extent is not declared.
const EXTENT: i64 = 3;

/// The limits of a function on the interpreter.
const INTERPRETED: Limits = Limits { iterations: Some(1 << 20), bytes: Some(1 << 28) };

/// The limits of a function on the CPU.
const COMPILED: Limits = Limits { iterations: Some(1 << 33), bytes: Some(1 << 31) };

#[derive(Default)]
struct Count {
    functions: usize,
    lowered: usize,
    ran: usize,
    reasons: BTreeMap<String, usize>,
}

impl Count {
    fn because(&mut self, reason: &str) {
        // Truncate the reason: the details, which differ between texts, are at its end.
        let short: String = reason.chars().take(150).collect();
        *self.reasons.entry(short).or_default() += 1;
    }

    /// Lowers every Relax function of a text and calls `run` with its program, unless the text has errors.
    fn text(&mut self, text: &str, run: &dyn Fn(&Text, Program) -> Result<(), String>) {
        let mut workspace = Workspace::new();
        let file = workspace.add(text, FileKind::Rx);
        if workspace.diagnostics(file).iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return;
        }
        let names: Vec<_> = workspace.functions(file).iter().map(|function| function.name).collect();
        let text = Text(workspace, file);
        for name in names {
            if text.0.function(text.0.first_module(file), name).is_none() {
                continue;
            }
            self.functions += 1;
            let mut program = match rx_lower::lower(&text, name) {
                Ok(program) => program,
                Err(problems) => {
                    self.because(problems.first().map_or("", |problem| &problem.message));
                    continue;
                }
            };
            self.lowered += 1;
            rx_lower::steps::run(&mut program, Some(&rx_lower::DefaultTargetInfo));
            match run(&text, program) {
                Ok(()) => self.ran += 1,
                Err(reason) => self.because(&format!("ran: {reason}")),
            }
        }
    }

    fn tell(&self, title: &str) {
        println!("{title}: {} functions, {} lower, {} run", self.functions, self.lowered, self.ran);
        let mut reasons: Vec<_> = self.reasons.iter().map(|(reason, count)| (*count, reason)).collect();
        reasons.sort_by(|a, b| b.cmp(a));
        reasons.iter().for_each(|(count, reason)| println!("{count:5}  {reason}"));
    }
}

fn run<B: Backend>(text: &Text, program: Program, backend: B, limits: Limits) -> Result<(), String> {
    let params = program.procedures[0].params.clone();
    let constants = text.constants(&program)?;
    let mut executor = Executor::new(Arc::new(program), backend, &constants, &mut |_| {}).map_err(|e| e.to_string())?;
    executor.limit(limits);
    let arguments: Result<Vec<_>, String> =
        params.iter().enumerate().map(|(at, (_, ty))| drawn(&mut executor, at as u64, ty)).collect();
    executor.run(arguments?, &NameMap::default()).map(drop).map_err(|error| error.to_string())
}

/// Whether a function of the program calls itself, directly or indirectly; creating a closure counts as a call. Such a
/// program may exhaust its limits through infinite recursion.
fn is_recursive(program: &Program) -> bool {
    let called: Vec<Vec<usize>> = program
        .procedures
        .iter()
        .map(|procedure| {
            let mut called = Vec::new();
            procedures_of(&procedure.code, &mut called);
            called
        })
        .collect();
    (0..called.len()).any(|start| {
        let mut seen = vec![false; called.len()];
        let mut open = called[start].clone();
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                open.extend(&called[at]);
            }
        }
        seen[start]
    })
}

/// Appends the procedures that `code` calls or creates closures of.
fn procedures_of(code: &[Instruction], into: &mut Vec<usize>) {
    for instruction in code {
        match &instruction.operation {
            Operation::Call { procedure, .. } | Operation::Closure { procedure, .. } => into.push(procedure.0 as usize),
            Operation::If { arms, otherwise, .. } => {
                for (condition, _, branch) in arms {
                    procedures_of(condition, into);
                    procedures_of(&branch.code, into);
                }
                procedures_of(&otherwise.code, into);
            }
            _ => {}
        }
    }
}

fn drawn<B: Backend>(executor: &mut Executor<B>, at: u64, ty: &StructInfo) -> Result<Value<B::Memory>, String> {
    let extents = |dims: &[rx_base::Dim]| -> Option<Vec<i64>> {
        dims.iter().map(|dim| dim.substitute(&|_| Some(EXTENT.into())).as_constant()).collect()
    };
    let unknown = || format!("no input can be drawn for a parameter that is {ty}");
    Ok(match ty {
        StructInfo::Tuple(fields) => {
            let fields: Result<Vec<_>, String> =
                fields.iter().enumerate().map(|(inner, ty)| drawn(executor, at * 31 + inner as u64, ty)).collect();
            Value::Tuple(fields?.into())
        }
        StructInfo::Shape(shape) => match shape.dims() {
            Some(dims) => Value::Shape(extents(dims).ok_or_else(unknown)?.into()),
            None => Value::Shape(vec![EXTENT; shape.ndim().unwrap_or(2)].into()),
        },
        StructInfo::Prim(info) => match info.dtype.is_some_and(rx_base::DType::is_float) {
            true => Value::Scalar(Scalar::Float(EXTENT as f64)),
            false => Value::Scalar(Scalar::Int(EXTENT)),
        },
        ty if *ty == StructInfo::Object || ty.as_tensor().is_some() => {
            let tensor = ty.as_tensor();
            let shape = match tensor.map(|tensor| (&tensor.shape, tensor.shape.dims())) {
                Some((_, Some(dims))) => extents(dims).ok_or_else(unknown)?,
                Some((shape, None)) => vec![EXTENT; shape.ndim().unwrap_or(2)],
                None => vec![EXTENT; 2],
            };
            let bytes = shape.iter().fold(8u64, |bytes, extent| bytes.saturating_mul(extent.unsigned_abs()));
            if COMPILED.bytes.is_some_and(|most| bytes > most) {
                return Err("an input is larger than is drawn".to_owned());
            }
            let dtype = tensor.and_then(|tensor| tensor.dtype).unwrap_or(rx_base::DType::FLOAT32);
            let drawn = random::draw(7, at, dtype, &shape, Some(1)).map_err(|error| error.to_string())?;
            executor.upload(&drawn).map_err(|error| error.to_string())?
        }
        _ => return Err(unknown()),
    })
}

fn cases() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("RX_CASES").map_or(beside, PathBuf::from);
    let there = folder.join("cases/modules.jsonl").is_file();
    if !there {
        println!("skipped: no cases at {}; RX_CASES names another folder", folder.display());
    }
    there.then_some(folder)
}

/// Runs the modules of TVM's test suite.
#[test]
#[ignore = "sweep: .ci/full"]
fn modules_run() {
    let Some(folder) = cases() else { return };
    let rows = std::fs::read_to_string(folder.join("cases/modules.jsonl")).expect("readable");
    let mut count = Count::default();
    let compiled = std::cell::Cell::new(0);
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("a row");
        if let Some(text) = row["text_meta"].as_str().or(row["text"].as_str()) {
            count.text(text, &|text, program| {
                let interpreter = rx_runtime::interp::Interpreter::default();
                match run(text, program.clone(), interpreter, INTERPRETED) {
                    Err(reason) if reason.starts_with("stopped") && !is_recursive(&program) => {
                        compiled.set(compiled.get() + 1);
                        run(text, program, rx_runtime::cpu::Cpu::default(), COMPILED)
                    }
                    other => other,
                }
            });
        }
    }
    count.tell("modules");
    println!("{} of them took too long for the interpreter and ran on the CPU", compiled.get());
    // Most of the others call functions that only TVM's tests register, or are meant to fail.
    assert!(count.lowered * 100 >= count.functions * 94, "{} of {} lower", count.lowered, count.functions);
    assert!(count.ran * 100 >= count.functions * 91, "{} of {} run", count.ran, count.functions);
}

/// Lowers models between the stages of TVM's pass pipeline, and runs the small ones (`s_*`) on the CPU.
#[test]
fn stages_run() {
    let Some(folder) = cases() else { return };
    let Ok(entries) = std::fs::read_dir(folder.join("models/stages")) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("readable");
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut count = Count::default();
        count.text(&text, &|text, program| match name.starts_with("s_") {
            true => run(text, program, rx_runtime::cpu::Cpu::default(), COMPILED),
            false => Err("it is only lowered".to_owned()),
        });
        count.tell(&name);
        assert_eq!(count.lowered, count.functions, "{name}");
    }
}
