//! Runs passes and the steps of the back end on a module, and checks the module after each of them.

use crate::{Device, each_step, to_module};
use rx_base::name::{NameMap, NameSet};
use rx_base::{Diagnostic, Name, Severity, Span};
use rx_db::{FileId, FileKind, ModuleId, Operators, Workspace};
use rx_ir::{BoundValue, ConstantData, Expr, ExprKind, Origin, Sequence, StructInfo};
use rx_lower::Program;
use rx_syntax::Document;
use rx_syntax::dialect::Dialect;
use rx_tensor::Tensor;
use rx_transform::make::infer_known;
use rx_transform::pass::{Evaluate, PassError, Step};
use rx_transform::print::Part;
use rx_transform::walk::each_expression_mut;
use rx_transform::{Module, pass_scalars_among_arguments, print_with_parts};
use std::collections::HashMap;
use std::sync::Arc;

/// Constants of the metadata section, by key and index, for a text without their data.
pub type GivenConstants = HashMap<(Name, u32), Tensor>;

/// A callback after each step. Its arguments are the step's name, the pipeline, and the outcome. After it
/// returns an error, it is not called again.
pub type EachStep<'e, E> = dyn FnMut(&'static str, &mut Pipeline, Result<Applied, Unapplied>) -> Result<(), E> + 'e;

/// A module, with its text in the syntax of TVM 0.27.
pub struct Pipeline {
    module: Module,
    text: String,
    /// The origins of the lines of the text.
    parts: Vec<Part>,
    /// The functions that have another number of statements in the source file than in the module's own text.
    /// Their origins cannot be mapped to the file.
    recounted: NameSet,
    operators: Arc<Operators>,
}

/// The reason why a pass has no result.
#[derive(Debug)]
pub enum Unapplied {
    /// The pass cannot be applied.
    Refused(PassError),
    /// The pass made a module with errors: its text and the errors.
    Broken(String, Vec<Diagnostic<Span>>),
}

/// The result of a pass, as a file.
pub struct Applied {
    /// The module before the pass.
    pub before: Module,
    /// A workspace that contains the module after the pass.
    pub workspace: Workspace,
    /// The file of that module.
    pub file: FileId,
}

impl Pipeline {
    /// Starts a pipeline with a module of a file without errors.
    ///
    /// # Errors
    /// Returns the reason why the module cannot be read by itself.
    pub fn new(workspace: &Workspace, module: ModuleId, operators: Arc<Operators>) -> Result<Pipeline, String> {
        let document = workspace.document(module.file);
        let alone = Document::new(&workspace.alone(module), FileKind::Rx);
        let current = rx_syntax::printer::print_as(&alone, Dialect::detect(document), Dialect::Tvm027);
        let (own, file) = checked(&current, operators.clone());
        if let Some(error) = errors(&own, file).first() {
            return Err(format!("by itself the module has errors: {}", error.message));
        }
        let recounted = recounted((document, module.module), own.document(file));
        let module = own.module(own.first_module(file))?;
        let (text, parts) = print_with_parts(&module);
        Ok(Pipeline { module, text, parts, recounted, operators })
    }

    /// Moves the scalars that calls pass by `tir_vars` to their arguments where that is possible, for text that TVM
    /// 0.27 can parse.
    #[must_use]
    pub fn without_tir_vars(mut self) -> Pipeline {
        pass_scalars_among_arguments(&mut self.module);
        (self.text, self.parts) = print_with_parts(&self.module);
        self
    }

    /// Adds the data of constants that the text lacks, and infers the types that depend on them.
    ///
    /// # Errors
    /// Returns an error if the module has errors with these constants.
    pub fn with_constants(mut self, given: &GivenConstants) -> Result<Pipeline, String> {
        let mut named: HashMap<(Name, u32), ConstantData> = HashMap::new();
        for function in self.module.functions_mut() {
            each_expression_mut(&mut function.body, &mut |expr| {
                expr.each_mut(&mut |expr| {
                    let ExprKind::Metadata { key, index } = expr.kind else { return };
                    let Some(tensor) = given.get(&(key, index)) else { return };
                    let data = named.entry((key, index)).or_insert_with(|| ConstantData {
                        shape: tensor.shape().to_vec(),
                        dtype: tensor.dtype(),
                        bytes: tensor.bytes().into(),
                    });
                    expr.ty = data.ty();
                });
            });
        }
        if named.is_empty() {
            return Ok(self);
        }
        for function in self.module.functions_mut() {
            let mut known = function.params.iter().cloned().collect();
            settle(&mut function.body, &mut known);
            if function.ret.is_error() {
                function.ret = function.body.result.ty.clone();
            }
        }
        self.module.constants.give(named);
        (self.text, self.parts) = print_with_parts(&self.module);
        let (workspace, file) = self.checked();
        match errors(&workspace, file).first() {
            Some(error) => Err(format!("with the constants given the module has errors: {}", error.message)),
            None => Ok(self),
        }
    }

    /// Returns the module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the module's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the origins of the text's lines: statements of the original source. Functions whose origins cannot be
    /// mapped have none.
    pub fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.parts.iter().cloned().map(|mut part| {
            part.origins.retain(|origin| !self.recounted.contains(&origin.item));
            part
        })
    }

    /// Opens the text as a file of a new workspace.
    pub fn checked(&self) -> (Workspace, FileId) {
        checked(&self.text, self.operators.clone())
    }

    /// Runs a pass. If the new module has no errors, it becomes the pipeline's module. `evaluate` computes
    /// the values of constant expressions that the pass needs.
    ///
    /// # Errors
    /// Returns the reason why the pass has no result.
    pub fn apply(&mut self, step: &Step, evaluate: Evaluate) -> Result<Applied, Unapplied> {
        let arguments = step.arguments.clone().with_evaluator(evaluate);
        let made = (step.pass.run)(self.module.clone(), &arguments)
            .map_err(|error| Unapplied::Refused(named(step.pass.name, error)))?;
        self.take(made)
    }

    /// Lowers a function of the module and runs the back end's steps. After lowering (`LegalizeOps`) and after each
    /// step, the program is converted to a module, which replaces the pipeline's module if it has no errors. Then
    /// `each` is called with the step's name and the outcome: the module before the step, or the errors of the new one.
    /// Once `each` has returned an error, it is not called again, and the pipeline's module stays the same.
    ///
    /// # Errors
    /// The outer error is the reason why the function cannot be lowered; the inner error is the one of `each`.
    pub fn lower<E>(
        &mut self,
        entry: Name,
        device: &Device,
        each: &mut EachStep<'_, E>,
    ) -> Result<Result<(), E>, PassError> {
        let (workspace, file) = self.checked();
        let module = workspace.first_module(file);
        let origins = first_origins((&workspace, module), &self.text, self.parts.clone());
        let mut ended = Ok(());
        let mut after = |step: &'static str, program: &Program| {
            if ended.is_ok() {
                let applied = self.take(to_module(program, &self.module));
                ended = each(step, self, applied);
            }
        };
        each_step(&workspace, module, entry, device, &origins, &mut after).map_err(|problems| {
            let first = problems.into_iter().next();
            PassError(first.map_or_else(|| "it has no lowering".to_owned(), |problem| problem.message))
        })?;
        Ok(ended)
    }

    /// Replaces the module by one that was derived from it, if that has no errors.
    fn take(&mut self, made: Module) -> Result<Applied, Unapplied> {
        let (text, parts) = print_with_parts(&made);
        let (workspace, file) = checked(&text, self.operators.clone());
        let errors = errors(&workspace, file);
        if !errors.is_empty() {
            return Err(Unapplied::Broken(text, errors));
        }
        let before = std::mem::replace(&mut self.module, made);
        (self.text, self.parts) = (text, parts);
        Ok(Applied { before, workspace, file })
    }
}

/// Returns a function that maps a statement of `text` to the original statement that its line comes from, the first one
/// if there are several. `parts` are the origins of the text's lines.
fn first_origins<'w>(
    (workspace, module): (&'w Workspace, ModuleId),
    text: &str,
    parts: Vec<Part>,
) -> impl Fn(Origin) -> Option<Origin> + use<'w> {
    let starts: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = move |span: Span| starts.partition_point(|start| *start < span.start as usize);
    let statements = workspace.statements(module);
    move |origin| {
        let line = line(statements.span(origin)?);
        let part = parts.iter().find(|part| part.lines.contains(&line))?;
        part.origins.first().copied()
    }
}

/// Infers the types that were unknown, from those of the constants. `known` are the types of the variables in scope.
fn settle(sequence: &mut Sequence, known: &mut NameMap<StructInfo>) {
    for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        let ty = match &mut binding.value {
            BoundValue::Expr(value) => {
                settle_expr(value, known);
                value.ty.clone()
            }
            BoundValue::If(branches) => {
                settle_expr(&mut branches.condition, known);
                settle(&mut branches.then, known);
                settle(&mut branches.otherwise, known);
                branches.then.result.ty.clone()
            }
            BoundValue::Function(function) => {
                settle(&mut Arc::make_mut(function).body, known);
                binding.ty.clone()
            }
        };
        if binding.ty.is_error() {
            binding.ty = ty;
        }
        known.insert(binding.variable, binding.ty.clone());
    }
    settle_expr(&mut sequence.result, known);
}

fn settle_expr(expr: &mut Expr, known: &NameMap<StructInfo>) {
    expr.each_child_mut(&mut |child| settle_expr(child, known));
    if !expr.ty.is_error() {
        return;
    }
    let ty = match &expr.kind {
        ExprKind::Var(variable) => known.get(variable).cloned(),
        ExprKind::Tuple(fields) => {
            Some(StructInfo::tuple(fields.iter().map(|field| field.ty.clone()).collect::<Vec<_>>()))
        }
        ExprKind::TupleGet(tuple, at) => tuple.ty.as_tuple().and_then(|fields| fields.get(*at)).cloned(),
        ExprKind::Call(call) => infer_known(call).ok().flatten(),
        _ => None,
    };
    expr.ty = ty.unwrap_or(StructInfo::Error);
}

/// Adds the pass's name to an error that does not begin with it.
fn named(pass: &str, PassError(error): PassError) -> PassError {
    PassError(if error.starts_with(pass) { error } else { format!("{pass}: {error}") })
}

/// Opens a text as a file of a new workspace.
pub fn checked(text: &str, operators: Arc<Operators>) -> (Workspace, FileId) {
    opened(text, FileKind::Rx, operators)
}

/// Opens a text of the given kind as a file of a new workspace.
pub fn opened(text: &str, kind: FileKind, operators: Arc<Operators>) -> (Workspace, FileId) {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, kind);
    workspace.set_operators(file, operators);
    (workspace, file)
}

/// Returns the errors of a file, including those that its comments suppress.
pub fn errors(workspace: &Workspace, file: FileId) -> Vec<Diagnostic<Span>> {
    let mut found = workspace.unsuppressed_diagnostics(file);
    found.retain(|diagnostic| diagnostic.severity == Severity::Error);
    found
}

/// Returns the functions that have another number of statements in the source file than in the module's own text.
fn recounted((document, module): (&Document, Option<u32>), alone: &Document) -> NameSet {
    let counts = |document: &Document, module: Option<u32>| -> Vec<_> {
        let count = |item: &rx_syntax::document::Item| {
            Some((item.name?, item.segments.iter().map(|segment| segment.tree().statements.len()).sum::<usize>()))
        };
        document.items().iter().filter(|item| item.module == module).filter_map(count).collect()
    };
    let known: NameMap<usize> = counts(document, module).into_iter().collect();
    let first = alone.modules().next().map(|(module, _)| module);
    let own = counts(alone, first).into_iter();
    own.filter(|(name, count)| known.get(name) != Some(count)).map(|(name, _)| name).collect()
}
