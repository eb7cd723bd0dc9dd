//! Whether the functions of two files give the same values: what a pass must not change.
//!
//! Both are run on the same arguments, drawn from a seed, symbolic dims with small values. What is large is run as machine
//! code, which tests hold against the interpreter; everything else by the interpreter.

use crate::indexed_dims;
use crate::inputs::{Drawing, Input};
use crate::program::{FileModule, GivenConstants, constants};
use rx_base::name::NameMap;
use rx_base::{DType, Dim, Name};
use rx_db::{FileId, FunctionOrLoops, ModuleId, Workspace};
use rx_ir::{Function, StructInfo};
use rx_lower::Program;
use rx_runtime::cpu::Cpu;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Backend, Executor};
use rx_syntax::document::FunctionKind;
use rx_tensor::{Tensor, compare};
use rx_transform::Bound;
use rx_transform::equal::structurally_equal;
use std::sync::Arc;

/// The most arithmetic operations of a function that the interpreter runs: it is asked twice for each pass of a pipeline, and above
/// this many it takes longer than compiling does.
const INTERPRETED: i64 = 1_000_000;
/// The most arithmetic operations of a function that is run at all, and the most elements of an argument.
const MOST_OPERATIONS: i64 = 100_000_000_000;
const MOST_ELEMENTS: i64 = 1 << 27;

/// What relative and absolute error is allowed: of 16-bit floats and narrower ones, and of others.
const NARROW: f64 = 2e-2;
const WIDE: f64 = 1e-4;

/// What came out of running a function of two files.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The values agree; the largest difference.
    Same(f64),
    /// They do not; where, or what happened.
    Differs(String),
    /// The function could not be run, or not before; why.
    NotRun(String),
}

/// A file of a workspace.
#[derive(Clone, Copy)]
pub struct File<'w> {
    /// Where it is.
    pub workspace: &'w Workspace,
    /// Which it is.
    pub file: FileId,
}

/// Runs every public Relax function of `before` that `after` has too, and compares what they return. Of the function that
/// `bound` speaks of, some parameters have become constants.
pub fn compare_functions(before: File<'_>, after: File<'_>, bound: Option<&Bound>, seed: u64) -> Vec<(Name, Verdict)> {
    let public = before.workspace.functions(before.file).into_iter();
    let public = public.filter(|function| function.kind == FunctionKind::Relax && !function.private);
    let none = NameMap::default();
    let bound = |name: Name| bound.filter(|bound| bound.function == name).map_or(&none, |bound| &bound.tensors);
    public.map(|row| (row.name, compare_function(before, after, row.name, bound(row.name), seed))).collect()
}

fn compare_function(before: File<'_>, after: File<'_>, name: Name, bound: &NameMap<Tensor>, seed: u64) -> Verdict {
    match Comparison::of(before, after, name, bound, seed) {
        Ok(comparison) => comparison.verdict(),
        Err(why) => Verdict::NotRun(why),
    }
}

/// A function before and after a pass.
struct Comparison<'w> {
    before: File<'w>,
    after: File<'w>,
    name: Name,
    old: Function,
    new: Function,
    old_program: Program,
    new_program: Program,
    preparing: Option<Preparing>,
    /// Parameters that have become constants.
    bound: &'w NameMap<Tensor>,
    seed: u64,
}

impl<'w> Comparison<'w> {
    /// # Errors
    /// Why the two cannot be compared.
    fn of(
        before: File<'w>,
        after: File<'w>,
        name: Name,
        bound: &'w NameMap<Tensor>,
        seed: u64,
    ) -> Result<Comparison<'w>, String> {
        let functions = before.function(name).zip(after.function(name));
        let (old, new) = functions.ok_or("the pass removes it")?;
        let preparing = preparing(before, after, &new)?;
        if preparing.is_none() && old.params.len() != new.params.len() + bound.len() {
            let counts = (old.params.len(), new.params.len());
            return Err(format!("it takes {} arguments before and {} after", counts.0, counts.1));
        }
        let old_program = before.lower(name)?;
        let new_program = after.lower(name).map_err(|why| format!("after the pass: {why}"))?;
        Ok(Comparison { before, after, name, old, new, old_program, new_program, preparing, bound, seed })
    }

    /// What comes out with the first arguments that the function before the pass can be run on.
    fn verdict(&self) -> Verdict {
        let mut reason = String::new();
        // Where a type says no dtype, the program may say it.
        let is_open = |ty: &StructInfo| concrete(ty, DType::FLOAT32) != concrete(ty, DType::INT32);
        let dtypes = match self.new.params.iter().any(|(_, ty)| is_open(ty)) {
            true => &[DType::FLOAT32, DType::INT32][..],
            false => &[DType::FLOAT32][..],
        };
        for open in dtypes {
            for symbols in small_values(&self.new) {
                match self.with(&symbols, *open) {
                    Ok(verdict) => return verdict,
                    Err(why) => reason = why,
                }
            }
        }
        Verdict::NotRun(reason)
    }

    /// Runs both with these dims, and this dtype where types say none.
    ///
    /// # Errors
    /// Why the function before the pass cannot be run so.
    fn with(&self, symbols: &NameMap<i64>, open: DType) -> Result<Verdict, String> {
        let types = types(&self.old, &self.new, self.preparing.is_some());
        let drawing = Drawing { seed: self.seed, symbols };
        let drawn = arguments(&self.old, &types, self.bound, &drawing, open)?;
        let work = [self.before, self.after].into_iter().filter_map(|file| file.operations(self.name, symbols)).max();
        let work = work.filter(|work| *work <= MOST_OPERATIONS);
        let work = work.ok_or("it computes too much, or how much is not known")?;
        // What only the new function names has its value there; the old one reads its symbols off the arguments.
        let left = self.before.run(&self.old_program, &drawn, &own_symbols(&self.old, symbols), work)?;
        let kept = drawn.into_iter().zip(&types).filter(|(_, (param, _))| !self.bound.contains_key(param));
        let mut drawn: Vec<Input> = kept.map(|(input, _)| input).collect();
        if let Some(preparing) = &self.preparing {
            drawn = match preparing.prepared(self.after, drawn, &self.new, work) {
                Ok(drawn) => drawn,
                Err(why) => {
                    let what = format!("after the pass its weights cannot be prepared: {why}");
                    return Ok(Verdict::Differs(what));
                }
            };
        }
        Ok(match self.after.run(&self.new_program, &drawn, &own_symbols(&self.new, symbols), work) {
            Ok(right) => agreement(&left, &right, is_narrow(&self.old_program) || is_narrow(&self.new_program)),
            Err(why) => Verdict::Differs(format!("after the pass it fails: {why}")),
        })
    }
}

/// What a pass made to prepare weights, as `LiftTransformParams` does: the function takes the same types and other values.
struct Preparing {
    transform: Name,
    program: Program,
    /// How many parameters in front are no weights.
    inputs: usize,
}

/// The function that prepares the weights of `new` since the pass, if there is one.
///
/// # Errors
/// One that cannot be lowered.
fn preparing(before: File<'_>, after: File<'_>, new: &Function) -> Result<Option<Preparing>, String> {
    let is_new = |known: Name| after.function(known).is_some() && before.function(known).is_none();
    let own = Name::from(format!("{}_transform_params", new.name).as_str());
    // All functions that share one have the same weights.
    let transform = [own, Name::from("transform_params")].into_iter().find(|known| is_new(*known));
    let inputs = new.num_input.and_then(|count| usize::try_from(count).ok());
    let (Some(transform), Some(inputs)) = (transform, inputs) else { return Ok(None) };
    if is_unchanged(before, after, new.name) {
        return Ok(None);
    }
    Ok(Some(Preparing { transform, program: after.lower(transform)?, inputs }))
}

/// Whether a function is the same up to names: of those that could share what prepares weights, one may be left alone.
fn is_unchanged(before: File<'_>, after: File<'_>, name: Name) -> bool {
    let alone = |file: File<'_>| {
        let mut module = file.workspace.module(file.module()).ok()?;
        module.items.retain(|item| item.name() == Some(name));
        Some(module)
    };
    alone(before).zip(alone(after)).is_some_and(|(before, after)| structurally_equal(&before, &after))
}

impl Preparing {
    /// The arguments with prepared weights in the place of raw ones.
    fn prepared(
        &self,
        file: File<'_>,
        mut arguments: Vec<Input>,
        new: &Function,
        work: i64,
    ) -> Result<Vec<Input>, String> {
        let raw = Input::Tuple(arguments.split_off(self.inputs.min(arguments.len())));
        let weights = file.run(&self.program, &[raw], &NameMap::default(), work)?;
        let wanted = new.params.len().saturating_sub(self.inputs);
        if weights.len() != wanted {
            return Err(format!("`{}` gives {} tensors, {wanted} are taken", self.transform, weights.len()));
        }
        arguments.extend(weights.into_iter().map(Input::Tensor));
        Ok(arguments)
    }
}

impl File<'_> {
    /// What a pass made has one module.
    fn module(&self) -> ModuleId {
        self.workspace.first_module(self.file)
    }

    fn function(&self, name: Name) -> Option<Function> {
        self.workspace.function(self.module(), name)
    }

    fn lower(&self, name: Name) -> Result<Program, String> {
        let mut program = rx_lower::lower(&FileModule::new(self.workspace, self.module()), name)
            .map_err(|problems| problems.first().map_or_else(String::new, |problem| problem.message.clone()))?;
        program.procedures.iter_mut().for_each(rx_lower::plan::plan);
        Ok(program)
    }

    /// The arithmetic operations of a function.
    fn operations(&self, name: Name, symbols: &NameMap<i64>) -> Option<i64> {
        let row = self.workspace.stats(self.file).into_iter().find(|row| row.name == name)?;
        let FunctionOrLoops::Relax(stats) = row.stats else { return None };
        let value = |symbol: Name| Some(Dim::constant(symbols.get(&symbol).copied().unwrap_or(8)));
        stats.total.operations.substitute(&value).as_constant()
    }

    fn run(
        &self,
        program: &Program,
        arguments: &[Input],
        symbols: &NameMap<i64>,
        work: i64,
    ) -> Result<Vec<Tensor>, String> {
        let constants = constants(self.workspace, self.file, program, &GivenConstants::new())?;
        match work <= INTERPRETED {
            true => run_on(Interpreter::default(), program, &constants, arguments, symbols),
            false => run_on(Cpu::default(), program, &constants, arguments, symbols),
        }
    }
}

fn run_on<B: Backend>(
    backend: B,
    program: &Program,
    constants: &[Tensor],
    arguments: &[Input],
    symbols: &NameMap<i64>,
) -> Result<Vec<Tensor>, String> {
    let mut executor =
        Executor::new(Arc::new(program.clone()), backend, constants, &mut |_| ()).map_err(|error| error.to_string())?;
    let uploaded: Result<Vec<_>, _> = arguments.iter().map(|argument| argument.upload(&mut executor)).collect();
    let result = uploaded.and_then(|arguments| executor.run(arguments, symbols));
    let output = result.and_then(|result| executor.download(&result));
    output.map(rx_runtime::Output::tensors).map_err(|error| error.to_string())
}

/// Values for the symbolic dims of a function's parameters: different ones, then equal ones, then 1, which fits most.
fn small_values(function: &Function) -> Vec<NameMap<i64>> {
    let mut symbols: Vec<Name> = Vec::new();
    for (_, ty) in &function.params {
        ty.each_symbol(&mut |symbol| {
            if !symbols.contains(&symbol) {
                symbols.push(symbol);
            }
        });
    }
    let given = |value: &dyn Fn(usize) -> i64| {
        symbols.iter().enumerate().map(|(at, symbol)| (*symbol, value(at))).collect::<NameMap<i64>>()
    };
    let mut values = vec![given(&|at| 4 + 2 * i64::try_from(at).unwrap_or_default().min(8))];
    if !symbols.is_empty() {
        values.extend([given(&|_| 4), given(&|_| 16), given(&|_| 1)]);
    }
    values
}

/// The values of the symbols that a function's own parameters name.
fn own_symbols(function: &Function, symbols: &NameMap<i64>) -> NameMap<i64> {
    let mut own: NameMap<i64> = NameMap::default();
    for (_, ty) in &function.params {
        ty.each_symbol(&mut |symbol| own.extend(symbols.get(&symbol).map(|value| (symbol, *value))));
    }
    own
}

/// The old function's parameters, with the new one's types: these may say more, but of weights that are prepared now.
fn types(old: &Function, new: &Function, prepared: bool) -> Vec<(Name, StructInfo)> {
    let all_there = old.params.len() == new.params.len();
    let of = |(at, (param, own)): (usize, &(Name, StructInfo))| {
        let same = |(_, (known, _)): &(usize, &(Name, StructInfo))| known == param;
        let new = match all_there {
            true => new.params.get(at),
            false => new.params.iter().enumerate().find(same).map(|(_, param)| param),
        };
        let ty = new.filter(|_| !prepared).map_or(own, |(_, ty)| ty);
        (*param, ty.clone())
    };
    old.params.iter().enumerate().map(of).collect()
}

/// Arguments of these types, but for parameters that are bound.
fn arguments(
    old: &Function,
    types: &[(Name, StructInfo)],
    bound: &NameMap<Tensor>,
    drawing: &Drawing<'_>,
    open: DType,
) -> Result<Vec<Input>, String> {
    let indexed = indexed_dims(old);
    let mut drawn = Vec::new();
    for (at, (param, ty)) in types.iter().enumerate() {
        if let Some(tensor) = bound.get(param) {
            drawn.push(Input::Tensor(tensor.duplicate().map_err(|error| error.to_string())?));
            continue;
        }
        if elements(ty, drawing) > MOST_ELEMENTS {
            return Err(format!("the parameter `{param}` is large"));
        }
        let below = indexed.get(at).map(Vec::as_slice).unwrap_or_default();
        let input = drawing
            .draw(at, &concrete(ty, open), below)
            .map_err(|why| format!("the parameter `{param}` is {ty}: {why}"))?;
        drawn.push(input);
    }
    Ok(drawn)
}

/// A type that a value may have of which less is said: a tensor's dtype is `open`, and its extents are 2.
fn concrete(ty: &StructInfo, open: DType) -> StructInfo {
    match ty {
        StructInfo::Tensor(tensor) if tensor.shape.dims().is_none() || tensor.dtype.is_none() => {
            let few = || vec![Dim::constant(2); tensor.shape.ndim().unwrap_or(2)];
            let dims = tensor.shape.dims().map_or_else(few, <[Dim]>::to_vec);
            StructInfo::tensor(dims, Some(tensor.dtype.unwrap_or(open)))
        }
        StructInfo::Tuple(fields) => {
            StructInfo::tuple(fields.iter().map(|field| concrete(field, open)).collect::<Vec<_>>())
        }
        other => other.clone(),
    }
}

fn elements(ty: &StructInfo, drawing: &Drawing<'_>) -> i64 {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().map(|field| elements(field, drawing)).fold(0, i64::saturating_add),
        _ => {
            let dims = ty.as_tensor().and_then(|tensor| tensor.shape.dims()).unwrap_or_default();
            dims.iter().filter_map(|dim| drawing.value(dim)).fold(1, i64::saturating_mul)
        }
    }
}

/// Whether a program computes with floats of 16 bits or fewer.
fn is_narrow(program: &Program) -> bool {
    let narrow = |dtype: DType| dtype.is_float() && dtype.bytes() <= 2;
    program.kernels.iter().flat_map(|kernel| &kernel.func.buffers).any(|buffer| narrow(buffer.dtype))
}

fn agreement(before: &[Tensor], after: &[Tensor], narrow: bool) -> Verdict {
    if before.len() != after.len() {
        return Verdict::Differs(format!("it returns {} tensors before and {} after", before.len(), after.len()));
    }
    let mut worst = 0f64;
    for (at, (old, new)) in before.iter().zip(after).enumerate() {
        let allowed = match old.dtype().is_float() {
            true if narrow => NARROW,
            true => WIDE,
            // Integers are exact.
            false => 0.0,
        };
        match compare(new, old, allowed, allowed) {
            Ok(found) if found.ok => worst = worst.max(found.max_abs_error),
            Ok(found) => return Verdict::Differs(format!("output {at}: {found}")),
            Err(error) => return Verdict::Differs(format!("output {at}: {error}")),
        }
    }
    Verdict::Same(worst)
}
