//! Test helpers that compile and run a module's text.

use rx_base::name::{NameMap, name};
use rx_base::{Name, Severity};
use rx_db::{FileId, FileKind, Workspace};
use rx_ir::Function;
use rx_lower::{Loops, Module, Problem, Program, TargetInfo};
use rx_runtime::{Backend, Executor, Limits, Output, RunError};
use rx_tensor::Tensor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A module's text, as a file of a workspace.
pub struct Text(pub Workspace, pub FileId);

/// The outcome of a run.
pub struct Ran {
    /// The result of the entry function, or the error.
    pub result: Result<Output, RunError>,
    /// The printed texts.
    pub printed: Vec<String>,
}

impl Text {
    /// Parses and checks a text. Panics if it has errors.
    #[track_caller]
    pub fn new(text: &str) -> Text {
        let mut workspace = Workspace::new();
        let file = workspace.add(text, FileKind::Rx);
        let mut said = workspace.diagnostics(file);
        said.retain(|diagnostic| diagnostic.severity == Severity::Error);
        assert!(said.is_empty(), "{said:#?}\n{text}");
        Text(workspace, file)
    }

    /// Wraps functions, which are given without indentation, in a module.
    #[track_caller]
    pub fn module(functions: &str) -> Text {
        let head = "from tvm.script import ir as I\nfrom tvm.script import relax as R\nfrom tvm.script import tirx as T\n\n@I.ir_module\nclass Module:\n";
        let body: String = functions.lines().map(|line| format!("    {line}\n")).collect();
        Text::new(&format!("{head}{body}"))
    }

    /// Returns the name of `main`, or of the first function if there is no `main`.
    pub fn entry(&self) -> Name {
        let functions = self.0.functions(self.1);
        let main = functions.iter().find(|function| function.name == name("main"));
        main.or(functions.first()).map_or(name("main"), |function| function.name)
    }

    /// Returns the program of the entry function with planned memory, and with fusion if `optimized`.
    ///
    /// # Errors
    /// The constructs that cannot be lowered.
    pub fn program(&self, optimized: bool) -> Result<Program, Vec<Problem>> {
        self.program_for(optimized.then_some(&rx_lower::DefaultTargetInfo as &dyn TargetInfo))
    }

    /// As [`Text::program`] for a device. Kernels are fused if target information is given.
    pub fn program_for(&self, target_info: Option<&dyn TargetInfo>) -> Result<Program, Vec<Problem>> {
        let mut program = rx_lower::lower(self, self.entry())?;
        rx_lower::steps::run(&mut program, target_info);
        Ok(program)
    }

    /// Returns the program's constants. Those of the metadata section are read from the text.
    ///
    /// # Errors
    /// If the text has no data for a constant.
    pub fn constants(&self, program: &Program) -> Result<Vec<Tensor>, String> {
        rx_driver::program::constants(&self.0, self.1, program, &rx_driver::program::GivenConstants::new())
    }

    /// Runs the entry function.
    #[track_caller]
    pub fn run(&self, optimized: bool, backend: impl Backend, arguments: &[Tensor]) -> Ran {
        self.run_within(Limits::default(), optimized, backend, arguments)
    }

    /// Runs the entry function within limits.
    #[track_caller]
    pub fn run_within(&self, limits: Limits, optimized: bool, backend: impl Backend, arguments: &[Tensor]) -> Ran {
        let program = self
            .program_for(optimized.then(|| backend.target_info()))
            .unwrap_or_else(|problems| panic!("{problems:#?}"));
        let constants = self.constants(&program).unwrap_or_else(|why| panic!("{why}"));
        let mut executor = Executor::new(Arc::new(program), backend, &constants, &mut |_| {})
            .unwrap_or_else(|error| panic!("{error}"));
        executor.limit(limits);
        let printed = Rc::new(RefCell::new(Vec::new()));
        let into = printed.clone();
        executor.on_print(move |text| into.borrow_mut().push(text.to_owned()));
        let arguments = arguments.iter().map(|tensor| executor.upload(tensor).expect("memory")).collect();
        let result = executor.run(arguments, &NameMap::default());
        let result = result.and_then(|result| executor.download(&result));
        drop(executor);
        Ran { result, printed: printed.take() }
    }

    /// Checks that the interpreter without fusion and the CPU with fusion give the same results and output, and returns
    /// them.
    #[track_caller]
    pub fn results(&self, arguments: &[Tensor]) -> (Vec<Tensor>, Vec<String>) {
        let interpreted = self.run(false, rx_runtime::interp::Interpreter::default(), arguments);
        let compiled = self.run(true, rx_runtime::cpu::Cpu::default(), arguments);
        assert_eq!(interpreted.printed, compiled.printed);
        let [a, b] = [interpreted.result, compiled.result]
            .map(|result| result.unwrap_or_else(|error| panic!("{error}")).tensors());
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(&b).all(|(a, b)| a.bytes() == b.bytes() && a.shape() == b.shape()), "{a:?} and {b:?}");
        (a, compiled.printed)
    }
}

impl Module for Text {
    fn function(&self, name: Name) -> Option<Arc<Function>> {
        self.0.function(self.0.first_module(self.1), name)
    }

    fn prim_func(&self, name: Name) -> Option<Result<Loops, String>> {
        let read = self.0.prim_func(self.0.first_module(self.1), name)?;
        let said = |diagnostics: Vec<rx_base::Diagnostic<_>>| {
            diagnostics.first().map_or_else(String::new, |first| first.message.clone())
        };
        Some(read.map(|func| Loops::new(Arc::unwrap_or_clone(func))).map_err(said))
    }
}
