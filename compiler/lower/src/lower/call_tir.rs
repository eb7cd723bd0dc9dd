//! Lowers calls of prim_funcs in destination-passing style: `R.call_tir` and its variants.
//!
//! ```text
//! y = R.call_tir(cls.f, (a, b), out_ty=R.Tensor((n,), "float32"))    →    r2 = kernel f(r0, r1)
//! ```
//!
//! `R.call_tir_inplace` has no in-place kernel: the kernel first copies the argument into a new output. The memory plan
//! decides where the output is stored.

use super::FunctionLowering;
use super::known::Known;
use super::memory::copy;
use crate::loops::Loops;
use crate::program::{Inputs, Scalar};
use rx_ir::{Argument, Call, ExprKind, Shape, StructInfo};
use rx_ops::Schema;
use rx_tir::Stmt;
use rx_tir::func::{Param, PrimFunc};

impl FunctionLowering<'_, '_> {
    /// Lowers `R.call_tir(cls.f, (a, b), out_ty=…)`. `inplace` gives for each output the argument whose memory it
    /// takes, or -1. Such an argument is copied first, since other instructions may still read it.
    pub(super) fn call_tir(&mut self, schema: &'static Schema, call: &Call, inplace: Option<Vec<i64>>) -> Known {
        let Some(ExprKind::Global(function)) = schema.operand(call, "gvar").map(|expr| &expr.kind) else {
            return self.problem("call_tir calls no prim_func of the module");
        };
        let function = *function;
        let func = match self.lowerer.module.prim_func(function) {
            Some(Ok(func)) => func,
            Some(Err(reason)) => return self.problem(format!("the prim_func `{function}` cannot be run: {reason}")),
            None => return self.problem(format!("the module has no prim_func `{function}`")),
        };
        let Some(Argument::Types(types)) = schema.argument(call, "out_ty") else { return Known::Broken };
        let types = types.to_vec();
        let mut arguments = self.tuple_argument(schema, call, "args");
        // The scalars of `tir_vars` are passed after the other arguments.
        if let Some(scalars) = schema.operand(call, "tir_vars").cloned() {
            arguments.push(match &scalars.ty {
                StructInfo::Shape(Shape::Known(dims)) => Known::Shape(dims.to_vec()),
                _ => self.expression(&scalars),
            });
        }
        if arguments.contains(&Known::Broken) {
            return Known::Broken;
        }
        let arguments = in_full(arguments);
        let result = match self.prim_arguments(&func, &arguments) {
            Ok((inputs, _)) if inplace.is_none() && !has_handles(&func) && !fits(&func, inputs.len(), types.len()) => {
                let passed = format!("{} tensors and {} outputs", inputs.len(), types.len());
                Err(format!("the call passes {passed}; the prim_func takes {} buffers", func.buffer_params().count()))
            }
            Ok((inputs, scalars)) if inplace.is_none() && !has_handles(&func) => {
                let loops = self.guarded(func, inputs.len());
                return self.run_kernel(&loops, inputs, &together(types), scalars);
            }
            Ok(passed) => self.placed(&func, &arguments, passed, inplace.as_deref(), &types),
            Err(message) => Err(message),
        };
        result.unwrap_or_else(|message| self.problem(format!("`{function}`: {message}")))
    }

    /// Lowers an `R.call_tir_inplace`, or a call of a function with handles (parameters that it never accesses).
    fn placed(
        &mut self,
        func: &PrimFunc,
        arguments: &[Known],
        (inputs, scalars): (Inputs, Vec<Scalar>),
        inplace: Option<&[i64]>,
        types: &[StructInfo],
    ) -> Result<Known, String> {
        let memory = Memory::of(func, arguments.len()).ok_or("its arguments do not fit its parameters")?;
        let places = memory.places(inplace, types.len()).ok_or("inplace_indices do not fit its parameters")?;
        let kernel = memory.out_of_place(func, &places);
        let is_written = |place: &usize| matches!(func.params.get(*place), Some(Param::Buffer(_)));
        let written = places.iter().zip(types).filter(|(place, _)| is_written(place)).map(|(_, ty)| ty.clone());
        let written: Vec<StructInfo> = written.collect();
        let mut results = Vec::new();
        if !written.is_empty() {
            let is_one = written.len() == 1;
            let loops = self.guarded(Loops::new(kernel), inputs.len());
            match self.run_kernel(&loops, inputs, &together(written), scalars) {
                Known::Tuple(several) if !is_one => results.extend(several.iter().cloned()),
                result => results.push(result),
            }
        }
        let mut results = results.into_iter();
        let mut all = Vec::with_capacity(types.len());
        for (place, ty) in places.iter().zip(types) {
            let argument = arguments.get(*place).filter(|_| memory.passed.contains(place));
            all.push(match (is_written(place), argument) {
                (true, _) => results.next().unwrap_or(Known::Broken),
                (false, Some(argument)) => argument.clone(),
                (false, None) => self.untouched(ty),
            });
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Known::Tuple(all.into()) })
    }

    /// Returns a new tensor of zeros for an output that the prim_func never writes.
    fn untouched(&mut self, ty: &StructInfo) -> Known {
        match ty.as_tensor().and_then(|tensor| Some((tensor.shape.dims()?.to_vec(), tensor.dtype?))) {
            Some((dims, dtype)) => self.new_tensor(&dims, dtype),
            None => self.problem(format!("the shape of a result is not known: it is {ty}")),
        }
    }

    /// Splits the arguments of a call into buffers and scalars, according to the parameters.
    fn prim_arguments(&mut self, func: &PrimFunc, arguments: &[Known]) -> Result<(Inputs, Vec<Scalar>), String> {
        let mut buffers = Inputs::new();
        let mut scalars = Vec::new();
        for (at, known) in arguments.iter().enumerate() {
            match (func.params.get(at), known) {
                // A scalar is passed for the next scalar parameter, whatever parameter has its position: the dims of a
                // shape are usually the last arguments, but the outputs may be before the scalar parameters.
                (_, Known::Scalar(scalar)) => scalars.push(scalar.clone()),
                (Some(Param::Handle(_)), _) => {}
                (Some(Param::Scalar(_)), other) => scalars.push(Scalar::Register(self.materialize(other.clone()))),
                (_, other) => buffers.push(self.materialize(other.clone())),
            }
        }
        let wanted = func.scalar_params().count();
        if scalars.len() != wanted {
            return Err(format!("the call passes {} scalars; the prim_func takes {wanted}", scalars.len()));
        }
        Ok((buffers, scalars))
    }
}

/// Replaces each shape among the arguments that is known at compile time by its dims.
fn in_full(arguments: Vec<Known>) -> Vec<Known> {
    let mut full = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Known::Shape(dims) => full.extend(dims.into_iter().map(|dim| Known::Scalar(Scalar::Int(dim)))),
            other => full.push(other),
        }
    }
    full
}

/// Returns a single type as it is, and several as a tuple.
fn together(mut types: Vec<StructInfo>) -> StructInfo {
    if types.len() == 1 { types.swap_remove(0) } else { StructInfo::tuple(types) }
}

/// Whether `inputs` tensors and `outputs` results together are as many as the buffer parameters.
fn fits(func: &PrimFunc, inputs: usize, outputs: usize) -> bool {
    func.buffer_params().count() == inputs + outputs
}

/// Whether a parameter is a handle that the function never accesses.
fn has_handles(func: &PrimFunc) -> bool {
    func.params.iter().any(|param| matches!(param, Param::Handle(_)))
}

/// The parameters of a prim_func that are no scalars, by position among all parameters.
struct Memory {
    /// The positions of the parameters for which the call passes arguments: the first ones.
    passed: Vec<usize>,
    /// The positions of the other parameters. Each output that takes no argument's memory takes the next of them.
    fresh: Vec<usize>,
}

impl Memory {
    /// Assigns the parameters to a call with `arguments` arguments. Returns `None` if the numbers do not fit.
    fn of(func: &PrimFunc, arguments: usize) -> Option<Memory> {
        let is_memory = |at: &usize| !matches!(func.params.get(*at), None | Some(Param::Scalar(_)));
        let mut passed: Vec<usize> = (0..func.params.len()).filter(is_memory).collect();
        let tensors = arguments.checked_sub(func.scalar_params().count()).filter(|count| *count <= passed.len())?;
        let fresh = passed.split_off(tensors);
        Some(Memory { passed, fresh })
    }

    /// Returns for each output the position of its parameter. Returns `None` if `inplace` has another length than the
    /// outputs or names a parameter that is not in `passed`, or if there are too few parameters in `fresh`.
    fn places(&self, inplace: Option<&[i64]>, outputs: usize) -> Option<Vec<usize>> {
        let mut fresh = self.fresh.iter().copied();
        let new = vec![-1; outputs];
        let places = inplace.unwrap_or(&new).iter().map(|index| match usize::try_from(*index) {
            Err(_) => fresh.next(),
            Ok(at) => self.passed.contains(&at).then_some(at),
        });
        places.collect::<Option<Vec<usize>>>().filter(|places| places.len() == outputs)
    }

    /// Rewrites a prim_func to have separate outputs, and no handles ([`Param::Handle`]). An argument whose memory an
    /// output takes is copied to that output first.
    fn out_of_place(&self, func: &PrimFunc, places: &[usize]) -> PrimFunc {
        let mut result = func.clone();
        let (mut inputs, mut copies) = (Vec::new(), Vec::new());
        for at in &self.passed {
            let Some(Param::Buffer(buffer)) = func.params.get(*at) else { continue };
            if !places.contains(at) {
                inputs.push(Param::Buffer(*buffer));
                continue;
            }
            let source = result.add_buffer(func.buffer(*buffer).clone());
            inputs.push(Param::Buffer(source));
            copies.push(copy(&mut result, source, *buffer));
        }
        let outputs = places.iter().filter_map(|place| func.params.get(*place).copied());
        let outputs = outputs.filter(|param| matches!(param, Param::Buffer(_)));
        let scalars = func.params.iter().filter(|param| matches!(param, Param::Scalar(_))).copied();
        result.params = inputs.into_iter().chain(outputs).chain(scalars).collect();
        result.body = Stmt::seq(copies.into_iter().chain([func.body.clone()]));
        result
    }
}
