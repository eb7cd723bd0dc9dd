//! Compares the values that the functions of two files compute: a pass must not change them.
//!
//! Both are run on the same arguments, which are drawn from a seed; symbolic dims get small values. Functions with much
//! arithmetic run as machine code (its results are tested against the interpreter), all others on the interpreter.

mod arguments;

use crate::inputs::{Drawing, Input};
use crate::program::{GivenConstants, constants};
use arguments::{Integers, arguments, concrete, integers_of_choice, own_symbols, small_values, types};
use rx_base::name::NameMap;
use rx_base::{DType, Dim, Name};
use rx_build::Device;
use rx_db::{FileId, FunctionOrLoops, ModuleId, Workspace};
use rx_ir::function::RAW_ENTRY;
use rx_ir::{Function, StructInfo};
use rx_lower::Program;
use rx_runtime::cpu::Cpu;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Backend, Executor, Limits};
use rx_syntax::document::FunctionKind;
use rx_tensor::{Tensor, compare};
use rx_transform::Bound;
use rx_transform::equal::structurally_equal;
use std::sync::Arc;

/// The maximum number of arithmetic operations for the interpreter. Above it, interpretation takes longer than
/// compilation. Each function is run twice for every pass of a pipeline.
const INTERPRETED: u64 = 1_000_000;
/// The maximum number of arithmetic operations of a function that is run at all.
const MOST_OPERATIONS: u64 = 100_000_000_000;

/// The maximum number of iterations of a function before a pass, with those that instructions count as. A recursion may
/// not end on the drawn arguments. Moves of data, which are no operations, are iterations as well.
fn most_iterations(operations: u64) -> u64 {
    if operations <= INTERPRETED { 10 * INTERPRETED } else { 100 * INTERPRETED + 16 * operations }
}

/// The relative and absolute tolerance for floats: `NARROW` if one of the two programs computes with floats of 16 bits
/// or fewer, otherwise `WIDE`.
const NARROW: f64 = 2e-2;
const WIDE: f64 = 1e-4;

/// The result of comparing a function of two files.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The values agree. Contains the largest absolute difference.
    Same(f64),
    /// The values differ, or the function fails after the pass. Contains the position of the difference, or the error.
    Differs(String),
    /// The function could not be run before the pass, or not be compared. Contains the reason.
    NotRun(String),
}

/// A file of a workspace.
#[derive(Clone, Copy)]
pub struct File<'w> {
    /// The workspace that contains it.
    pub workspace: &'w Workspace,
    /// The file in the workspace.
    pub file: FileId,
}

/// Runs every public Relax function of `before` and the function of the same name in `after`, and compares the results.
/// A function that `after` does not have is [`Verdict::NotRun`]. In the function of `bound`, some parameters were
/// replaced by constants.
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

/// A function before and after a pass, and the way to draw its arguments.
struct Comparison<'w> {
    name: Name,
    old: Side<'w>,
    new: Side<'w>,
    /// The parameters that were replaced by constants.
    bound: &'w NameMap<Tensor>,
    seed: u64,
}

/// A function before or after a pass.
struct Side<'w> {
    file: File<'w>,
    function: Arc<Function>,
    program: Arc<Program>,
    /// The transform of its weights, if the function takes prepared weights.
    preparing: Option<Preparing>,
}

impl<'w> Comparison<'w> {
    /// Finds and lowers the function `name` before and after the pass.
    ///
    /// # Errors
    /// Returns the reason why the two cannot be compared.
    fn of(
        before: File<'w>,
        after: File<'w>,
        name: Name,
        bound: &'w NameMap<Tensor>,
        seed: u64,
    ) -> Result<Comparison<'w>, String> {
        let functions = before.function(name).zip(after.function(name));
        let (old, new) = functions.ok_or("the pass removes it")?;
        let (prepares_old, prepares_new) = prepares(before, after, &old, &new);
        if prepares_old.is_none() && prepares_new.is_none() && old.params.len() != new.params.len() + bound.len() {
            let counts = (old.params.len(), new.params.len());
            return Err(format!("it takes {} arguments before and {} after", counts.0, counts.1));
        }
        let side = |file: File<'w>, function: Arc<Function>, prepares: Option<Name>| -> Result<Side<'w>, String> {
            let preparing = prepares.map(|transform| Preparing::of(file, &function, transform)).transpose()?;
            Ok(Side { file, program: file.lower(name)?, function, preparing })
        };
        let old = side(before, old, prepares_old)?;
        let new = side(after, new, prepares_new).map_err(|why| format!("after the pass: {why}"))?;
        Ok(Comparison { name, old, new, bound, seed })
    }

    /// Compares the two functions on the first arguments on which the function before the pass runs.
    fn verdict(&self) -> Verdict {
        let mut reason = None;
        let params = self.params();
        // Where a type has no dtype, the program may require one: try a float and an integer.
        let is_open = |ty: &StructInfo| concrete(ty, DType::FLOAT32) != concrete(ty, DType::INT32);
        let dtypes = match params.iter().any(|(_, ty)| is_open(ty)) {
            true => &[DType::FLOAT32, DType::INT32][..],
            false => &[DType::FLOAT32][..],
        };
        let symbols = small_values(&params);
        let attempts = dtypes.iter().flat_map(|open| symbols.iter().map(move |symbols| (*open, symbols)));
        for (open, symbols) in attempts {
            for integers in Integers::ALL {
                match self.with(&params, symbols, open, integers) {
                    Ok(verdict) => return verdict,
                    Err(Unable::Never(why)) => return Verdict::NotRun(reason.unwrap_or(why)),
                    // The first error is reported: it is the one that a user who runs the function sees.
                    Err(Unable::SoFar(why)) => reason = reason.or(Some(why)),
                }
                if !params.iter().any(|(_, ty)| integers_of_choice(ty)) {
                    break;
                }
            }
        }
        Verdict::NotRun(reason.unwrap_or_default())
    }

    /// Returns the parameters for which arguments are drawn, including raw weights. If neither function takes prepared
    /// weights, they have the names from before the pass and the types after it, which may be more precise. If one
    /// does, they are the parameters of the other function; if both do, the inputs and the raw weights of the old one.
    fn params(&self) -> Vec<(Name, StructInfo)> {
        match (&self.old.preparing, &self.new.preparing) {
            (None, None) => types(&self.old.function, &self.new.function),
            (None, Some(_)) => self.old.function.params.clone(),
            (Some(_), None) => self.new.function.params.clone(),
            (Some(preparing), Some(_)) => {
                let inputs = self.old.function.params.iter().take(preparing.inputs).cloned();
                let weight = |(at, ty): (usize, &StructInfo)| (Name::from(format!("weight{at}").as_str()), ty.clone());
                inputs.chain(preparing.raw.iter().enumerate().map(weight)).collect()
            }
        }
    }

    /// Runs both functions with the values `symbols` of dims, the dtype `open` where types have none, and such
    /// integers.
    ///
    /// # Errors
    /// Returns the reason why the function before the pass cannot be run on these arguments.
    fn with(
        &self,
        params: &[(Name, StructInfo)],
        symbols: &NameMap<i64>,
        open: DType,
        integers: Integers,
    ) -> Result<Verdict, Unable> {
        let drawing = Drawing { seed: self.seed, symbols };
        let files = [self.old.file, self.new.file];
        let work = files.into_iter().filter_map(|file| file.operations(self.name, symbols)).max();
        let work = work.and_then(|work| u64::try_from(work).ok()).filter(|work| *work <= MOST_OPERATIONS);
        let work = work.ok_or(Unable::Never("it computes too much, or how much is not known".to_owned()))?;
        let draw = || arguments(&self.old.function, params, self.bound, &drawing, open, integers);
        let given = draw().map_err(Unable::SoFar)?;
        // Each function gets from `symbols` the values of its own parameters' symbols, and reads those that are not in
        // `symbols` from its arguments.
        let most = most_iterations(work);
        let left = self.old.run(given, symbols, work, most).map_err(Unable::SoFar)?;
        // The same seed gives the same arguments.
        let given = draw().map_err(Unable::SoFar)?;
        let kept = given.into_iter().zip(params).filter(|(_, (param, _))| !self.bound.contains_key(param));
        // A pass may make more instructions, but not many times more.
        let most = most.saturating_mul(4);
        Ok(match self.new.run(kept.map(|(input, _)| input).collect(), symbols, work, most) {
            Ok(right) => agreement(&left, &right, is_narrow(&self.old.program) || is_narrow(&self.new.program)),
            Err(why) => Verdict::Differs(format!("after the pass it fails: {why}")),
        })
    }
}

/// The reason why a function could not be run.
enum Unable {
    /// Other arguments may work.
    SoFar(String),
    /// No arguments can work.
    Never(String),
}

impl Side<'_> {
    /// Runs the function. If it takes prepared weights, `given` contains raw ones, which are prepared first.
    fn run(&self, given: Vec<Input>, symbols: &NameMap<i64>, work: u64, most: u64) -> Result<Vec<Tensor>, String> {
        let own = own_symbols(&self.function, symbols);
        match &self.preparing {
            None => self.file.run(&self.program, &given, &own, (work, most)),
            Some(preparing) => {
                let prepared = preparing.prepared(self.file, given, &self.function, (work, most));
                let prepared = prepared.map_err(|why| format!("its weights cannot be prepared: {why}"))?;
                self.file.run(&self.program, &prepared, &own, (work, most))
            }
        }
    }
}

/// The transform of a function's weights that `LiftTransformParams` creates. The function takes the weights that it
/// returns.
struct Preparing {
    transform: Name,
    program: Arc<Program>,
    /// The types of the raw weights.
    raw: Vec<StructInfo>,
    /// The number of leading parameters that are not weights.
    inputs: usize,
}

/// Returns the weight transforms of a function before and after a pass, if the pass changed the function and they
/// differ: only one side takes prepared weights, or the two sides prepare them differently. A transform that the pass
/// has added takes the old function's parameters, whether those were prepared or not.
fn prepares(before: File<'_>, after: File<'_>, old: &Function, new: &Function) -> (Option<Name>, Option<Name>) {
    if is_unchanged(before, after, new.name) {
        return (None, None);
    }
    match (transform_of(before, old), transform_of(after, new)) {
        (Some(old), Some(new)) if old == new && is_unchanged(before, after, old) => (None, None),
        (_, Some(new)) if before.function(new).is_none() => (None, Some(new)),
        found => found,
    }
}

/// Returns the name of the function that prepares the weights of `function`, if it takes prepared weights.
fn transform_of(file: File<'_>, function: &Function) -> Option<Name> {
    if function.is_stated(RAW_ENTRY) {
        return None;
    }
    let inputs = function.num_input.and_then(|count| usize::try_from(count).ok())?;
    // Functions that share a transform have the same weights.
    let names = [format!("{}_transform_params", function.name), "transform_params".to_owned()];
    names.iter().map(|known| Name::from(known.as_str())).find(|known| {
        let transform = file.function(*known).filter(|_| *known != function.name);
        transform.is_some_and(|transform| {
            let takes = matches!(&transform.params[..], [(_, StructInfo::Tuple(_))]);
            takes && transform.ret.as_tuple().is_some_and(|gives| inputs + gives.len() == function.params.len())
        })
    })
}

/// Whether a function is structurally equal before and after. A pass may change only one of the functions that could
/// share a transform.
fn is_unchanged(before: File<'_>, after: File<'_>, name: Name) -> bool {
    let alone = |file: File<'_>| {
        let mut module = file.workspace.module(file.module()).ok()?;
        module.items.retain(|item| item.name() == Some(name));
        Some(module)
    };
    alone(before).zip(alone(after)).is_some_and(|(before, after)| structurally_equal(&before, &after))
}

impl Preparing {
    /// Finds and lowers the function `transform`, which prepares the weights of `function`.
    ///
    /// # Errors
    /// Returns an error if the transform is missing or cannot be lowered.
    fn of(file: File<'_>, function: &Function, transform: Name) -> Result<Preparing, String> {
        let prepares = file.function(transform).ok_or_else(|| format!("`{transform}` is gone"))?;
        let raw = prepares.params.first().and_then(|(_, ty)| ty.as_tuple()).unwrap_or_default().to_vec();
        let inputs = function.num_input.and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        Ok(Preparing { transform, program: file.lower(transform)?, raw, inputs })
    }

    /// Replaces the raw weights among the arguments by prepared ones.
    fn prepared(
        &self,
        file: File<'_>,
        mut arguments: Vec<Input>,
        new: &Function,
        budget: (u64, u64),
    ) -> Result<Vec<Input>, String> {
        let raw = Input::Tuple(arguments.split_off(self.inputs.min(arguments.len())));
        let mut weights = file.run(&self.program, &[raw], &NameMap::default(), budget)?.into_iter();
        let given = weights.len();
        for (_, ty) in new.params.iter().skip(self.inputs) {
            let weight = grouped(ty, &mut weights);
            let few = || format!("`{}` gives {given} tensors, more are taken", self.transform);
            arguments.push(weight.ok_or_else(few)?);
        }
        match weights.len() {
            0 => Ok(arguments),
            more => Err(format!("`{}` gives {given} tensors, {} are taken", self.transform, given - more)),
        }
    }
}

/// Takes the tensors of a value of type `ty`: one, or those of a tuple's fields. Returns `None` if there are too few.
fn grouped(ty: &StructInfo, tensors: &mut impl Iterator<Item = Tensor>) -> Option<Input> {
    match ty.as_tuple() {
        Some(fields) => fields.iter().map(|field| grouped(field, tensors)).collect::<Option<_>>().map(Input::Tuple),
        None => tensors.next().map(Input::Tensor),
    }
}

impl File<'_> {
    /// Returns the module of the file. A module that a pass made is the only one.
    fn module(&self) -> ModuleId {
        self.workspace.first_module(self.file)
    }

    fn function(&self, name: Name) -> Option<Arc<Function>> {
        self.workspace.function(self.module(), name)
    }

    fn lower(&self, name: Name) -> Result<Arc<Program>, String> {
        rx_build::program(self.workspace, self.module(), name, &Device::Interp)
            .map_err(|problems| problems.first().map_or_else(String::new, |problem| problem.message.clone()))
    }

    /// Returns the number of arithmetic operations of a function for these values of symbols; other symbols count as 8.
    fn operations(&self, name: Name, symbols: &NameMap<i64>) -> Option<i64> {
        let row = self.workspace.stats(self.file).into_iter().find(|row| row.name == name)?;
        let FunctionOrLoops::Relax(stats) = row.stats else { return None };
        let value = |symbol: Name| Some(Dim::constant(symbols.get(&symbol).copied().unwrap_or(8)));
        stats.total.operations.substitute(&value).as_constant()
    }

    /// Runs a function that makes about `work` operations and at most `most` iterations and instructions.
    fn run(
        &self,
        program: &Program,
        arguments: &[Input],
        symbols: &NameMap<i64>,
        (work, most): (u64, u64),
    ) -> Result<Vec<Tensor>, String> {
        let constants = constants(self.workspace, self.file, program, &GivenConstants::new())?;
        match work <= INTERPRETED {
            true => run_on(Interpreter::default(), program, &constants, arguments, symbols, most),
            false => run_on(Cpu::default(), program, &constants, arguments, symbols, most),
        }
    }
}

fn run_on<B: Backend>(
    backend: B,
    program: &Program,
    constants: &[Tensor],
    arguments: &[Input],
    symbols: &NameMap<i64>,
    most: u64,
) -> Result<Vec<Tensor>, String> {
    let mut executor =
        Executor::new(Arc::new(program.clone()), backend, constants, &mut |_| ()).map_err(|error| error.to_string())?;
    executor.limit(Limits { iterations: Some(most), bytes: None });
    let uploaded: Result<Vec<_>, _> = arguments.iter().map(|argument| argument.upload(&mut executor)).collect();
    let result = uploaded.and_then(|arguments| executor.run(arguments, symbols));
    let output = result.and_then(|result| executor.download(&result));
    output.map(rx_runtime::Output::tensors).map_err(|error| error.to_string())
}

/// Whether a program computes with floats of 16 bits or fewer.
fn is_narrow(program: &Program) -> bool {
    let narrow = |dtype: DType| dtype.is_float() && dtype.bytes() <= 2;
    program.kernels.iter().flat_map(|kernel| &kernel.loops.buffers).any(|buffer| narrow(buffer.dtype))
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
            // Integers must be equal.
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
