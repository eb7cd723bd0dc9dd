//! How many functions of given texts lower and run with drawn inputs, and why the others do not: the commonest reasons say
//! what to do first. `RX_CASES` names the folder; without it the test says that it is skipped.

mod common;

use common::Text;
use rx_base::Severity;
use rx_base::name::NameMap;
use rx_db::{FileKind, Workspace};
use rx_ir::StructInfo;
use rx_lower::Program;
use rx_runtime::{Backend, Executor, Value};
use rx_tensor::{Scalar, random};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What every symbol of a drawn input is.
const EXTENT: i64 = 3;

#[derive(Default)]
struct Count {
    functions: usize,
    lowered: usize,
    ran: usize,
    reasons: BTreeMap<String, usize>,
}

impl Count {
    fn because(&mut self, reason: String) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// Every Relax function of a text that has no error.
    fn text(&mut self, text: &str, run: &dyn Fn(Program) -> Result<(), String>) {
        let mut workspace = Workspace::new();
        let file = workspace.add(text, FileKind::Rx);
        if workspace.diagnostics(file).iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return;
        }
        let names: Vec<_> = workspace.functions(file).iter().map(|function| function.name).collect();
        let text = Text(workspace, file);
        for name in names {
            if text.0.function(file, name).is_none() {
                continue;
            }
            self.functions += 1;
            let mut program = match rx_lower::lower(&text, name) {
                Ok(program) => program,
                Err(problems) => {
                    self.because(problems.first().map_or_else(String::new, |problem| problem.message.clone()));
                    continue;
                }
            };
            self.lowered += 1;
            rx_lower::optimize(&mut program);
            program.procedures.iter_mut().for_each(rx_lower::plan::plan);
            match run(program) {
                Ok(()) => self.ran += 1,
                Err(reason) => self.because(format!("ran: {reason}")),
            }
        }
    }

    fn tell(&self, what: &str) {
        println!("{what}: {} functions, {} lower, {} run", self.functions, self.lowered, self.ran);
        let mut reasons: Vec<_> = self.reasons.iter().map(|(reason, count)| (*count, reason)).collect();
        reasons.sort_by(|a, b| b.cmp(a));
        reasons.iter().take(60).for_each(|(count, reason)| println!("{count:5}  {reason}"));
    }
}

fn run<B: Backend>(program: Program, backend: B) -> Result<(), String> {
    let params = program.procedures[0].params.clone();
    if !program.constants.iter().all(|constant| matches!(constant, rx_lower::Constant::Scalar(..))) {
        return Err("constants that are not given".to_owned());
    }
    let constants: Result<Vec<_>, String> = program.constants.iter().map(constant).collect();
    let mut executor =
        Executor::new(Arc::new(program), backend, &constants?, &mut |_| {}).map_err(|e| e.to_string())?;
    let arguments: Result<Vec<_>, String> =
        params.iter().enumerate().map(|(at, (_, ty))| drawn(&mut executor, at as u64, ty)).collect();
    executor.run(arguments?, &NameMap::default()).map(drop).map_err(|error| error.to_string())
}

fn constant(constant: &rx_lower::Constant) -> Result<rx_tensor::Tensor, String> {
    let rx_lower::Constant::Scalar(literal, dtype) = constant else { return Err("no scalar".to_owned()) };
    let value = match literal {
        rx_ir::Literal::Int(value) => Scalar::Int(*value),
        rx_ir::Literal::Float(value) => Scalar::Float(*value),
        rx_ir::Literal::Bool(value) => Scalar::Int(i64::from(*value)),
    };
    rx_tensor::Tensor::from_scalar(*dtype, value).map_err(|error| error.to_string())
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
        StructInfo::Shape(shape) => Value::Shape(shape.dims().and_then(extents).ok_or_else(unknown)?.into()),
        StructInfo::Prim(_) => Value::Scalar(Scalar::Int(EXTENT)),
        ty => {
            let tensor = ty.as_tensor().ok_or_else(unknown)?;
            let shape = tensor.shape.dims().and_then(extents).ok_or_else(unknown)?;
            let drawn = random::draw(7, at, tensor.dtype.ok_or_else(unknown)?, &shape, Some(1));
            executor.upload(&drawn.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?
        }
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

/// The texts of TVM's test-suite: what lowers. Their extents are made to be lowered and not to be run.
#[test]
fn modules_lower() {
    let Some(folder) = cases() else { return };
    let rows = std::fs::read_to_string(folder.join("cases/modules.jsonl")).expect("readable");
    let mut count = Count::default();
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("a row");
        if let Some(text) = row["text"].as_str() {
            count.text(text, &|_| Err("it is only lowered".to_owned()));
        }
    }
    count.tell("modules");
    assert!(count.lowered * 2 > count.functions, "more than half lower");
}

/// What TVM's passes leave of models. Small ones (`s_*`) are run, on the CPU.
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
        count.text(&text, &|program| match name.starts_with("s_") {
            true => run(program, rx_runtime::cpu::Cpu::default()),
            false => Err("it is only lowered".to_owned()),
        });
        count.tell(&name);
        assert_eq!(count.lowered, count.functions, "{name}");
    }
}
