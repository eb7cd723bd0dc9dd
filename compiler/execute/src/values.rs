//! Whether the functions of two files give the same values: what a pass must not change.
//!
//! Both are run on the same arguments, drawn from a seed, symbolic dims with small values. What is large is run as machine
//! code, which tests hold against the interpreter; everything else by the interpreter.

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
use rx_runtime::{Backend, Executor};
use rx_syntax::document::FunctionKind;
use rx_tensor::{Tensor, compare};
use rx_transform::Bound;
use rx_transform::equal::structurally_equal;
use std::sync::Arc;

/// The most arithmetic operations of a function that the interpreter runs: it is asked twice for each pass of a pipeline, and above
/// this many it takes longer than compiling does.
const INTERPRETED: i64 = 1_000_000;
/// The most arithmetic operations of a function that is run at all.
const MOST_OPERATIONS: i64 = 100_000_000_000;

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
    name: Name,
    old: Side<'w>,
    new: Side<'w>,
    /// Parameters that have become constants.
    bound: &'w NameMap<Tensor>,
    seed: u64,
}

/// A function on one side of a pass.
struct Side<'w> {
    file: File<'w>,
    function: Arc<Function>,
    program: Arc<Program>,
    /// Of a function that takes prepared weights, what prepares them.
    preparing: Option<Preparing>,
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

    /// What comes out with the first arguments that the function before the pass can be run on.
    fn verdict(&self) -> Verdict {
        let mut reason = None;
        let params = self.params();
        // Where a type says no dtype, the program may say it.
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
                    // The first is what a user would see who runs it.
                    Err(Unable::SoFar(why)) => reason = reason.or(Some(why)),
                }
                if !params.iter().any(|(_, ty)| integers_of_choice(ty)) {
                    break;
                }
            }
        }
        Verdict::NotRun(reason.unwrap_or_default())
    }

    /// The parameters that arguments are drawn for, raw weights among them: as declared before the pass, with the types after
    /// it, which may say more.
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

    /// Runs both with these dims, this dtype where types say none, and such integers.
    ///
    /// # Errors
    /// Why the function before the pass cannot be run so.
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
        let work = work.filter(|work| *work <= MOST_OPERATIONS);
        let work = work.ok_or(Unable::Never("it computes too much, or how much is not known".to_owned()))?;
        let draw = || arguments(&self.old.function, params, self.bound, &drawing, open, integers);
        let given = draw().map_err(Unable::SoFar)?;
        // What only the new function names has its value there; the old one reads its symbols off the arguments.
        let left = self.old.run(given, symbols, work).map_err(Unable::SoFar)?;
        // The same seed gives the same arguments.
        let given = draw().map_err(Unable::SoFar)?;
        let kept = given.into_iter().zip(params).filter(|(_, (param, _))| !self.bound.contains_key(param));
        Ok(match self.new.run(kept.map(|(input, _)| input).collect(), symbols, work) {
            Ok(right) => agreement(&left, &right, is_narrow(&self.old.program) || is_narrow(&self.new.program)),
            Err(why) => Verdict::Differs(format!("after the pass it fails: {why}")),
        })
    }
}

/// Why a function is not run.
enum Unable {
    /// Other arguments may do.
    SoFar(String),
    /// No arguments do.
    Never(String),
}

impl Side<'_> {
    /// Runs the function; of one that takes prepared weights these are raw, and prepared first.
    fn run(&self, given: Vec<Input>, symbols: &NameMap<i64>, work: i64) -> Result<Vec<Tensor>, String> {
        let own = own_symbols(&self.function, symbols);
        match &self.preparing {
            None => self.file.run(&self.program, &given, &own, work),
            Some(preparing) => {
                let prepared = preparing.prepared(self.file, given, &self.function, work);
                let prepared = prepared.map_err(|why| format!("its weights cannot be prepared: {why}"))?;
                self.file.run(&self.program, &prepared, &own, work)
            }
        }
    }
}

/// What prepares the weights of a function, as `LiftTransformParams` makes it: the function takes prepared ones.
struct Preparing {
    transform: Name,
    program: Arc<Program>,
    /// The types of raw weights.
    raw: Vec<StructInfo>,
    /// How many parameters in front are no weights.
    inputs: usize,
}

/// What prepares the weights of a function before and after a pass, where these are other weights: only one side takes prepared
/// ones, or the two have them prepared otherwise.
fn prepares(before: File<'_>, after: File<'_>, old: &Function, new: &Function) -> (Option<Name>, Option<Name>) {
    if is_unchanged(before, after, new.name) {
        return (None, None);
    }
    match (transform_of(before, old), transform_of(after, new)) {
        (Some(old), Some(new)) if old == new && is_unchanged(before, after, old) => (None, None),
        found => found,
    }
}

/// The function beside `function` that prepares its weights, if it takes prepared ones.
fn transform_of(file: File<'_>, function: &Function) -> Option<Name> {
    if function.is_stated(RAW_ENTRY) {
        return None;
    }
    let inputs = function.num_input.and_then(|count| usize::try_from(count).ok())?;
    // All functions that share one have the same weights.
    let names = [format!("{}_transform_params", function.name), "transform_params".to_owned()];
    names.iter().map(|known| Name::from(known.as_str())).find(|known| {
        let transform = file.function(*known).filter(|_| *known != function.name);
        transform.is_some_and(|transform| {
            let takes = matches!(&transform.params[..], [(_, StructInfo::Tuple(_))]);
            takes && transform.ret.as_tuple().is_some_and(|gives| inputs + gives.len() == function.params.len())
        })
    })
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
    /// # Errors
    /// What prepares them cannot be lowered.
    fn of(file: File<'_>, function: &Function, transform: Name) -> Result<Preparing, String> {
        let prepares = file.function(transform).ok_or_else(|| format!("`{transform}` is gone"))?;
        let raw = prepares.params.first().and_then(|(_, ty)| ty.as_tuple()).unwrap_or_default().to_vec();
        let inputs = function.num_input.and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        Ok(Preparing { transform, program: file.lower(transform)?, raw, inputs })
    }

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

    fn function(&self, name: Name) -> Option<Arc<Function>> {
        self.workspace.function(self.module(), name)
    }

    fn lower(&self, name: Name) -> Result<Arc<Program>, String> {
        rx_build::program(self.workspace, self.module(), name, &Device::Interp)
            .map_err(|problems| problems.first().map_or_else(String::new, |problem| problem.message.clone()))
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
