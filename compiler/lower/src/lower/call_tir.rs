//! Calls of prim_funcs for new tensors: `R.call_tir` and its like.

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
    /// `R.call_tir(cls.f, (a, b), out_ty=…)`. `inplace` says for each output which argument's memory it takes: the
    /// argument is copied first, since others may still read it.
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
        // Scalars of `tir_vars` are the function's last, as are those of a shape among the arguments.
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

    /// A call some of whose outputs take an argument's memory, or of a function that does not look at all of its memory.
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

    /// What a prim_func leaves in an output that it never looks at: what new memory holds.
    fn untouched(&mut self, ty: &StructInfo) -> Known {
        match ty.as_tensor().and_then(|tensor| Some((tensor.shape.dims()?.to_vec(), tensor.dtype?))) {
            Some((dims, dtype)) => self.new_tensor(&dims, dtype),
            None => self.problem(format!("the shape of a result is not known: it is {ty}")),
        }
    }

    /// Splits a call's arguments into buffers and scalars, as the prim_func's parameters take them.
    fn prim_arguments(&mut self, func: &PrimFunc, arguments: &[Known]) -> Result<(Inputs, Vec<Scalar>), String> {
        let mut buffers = Inputs::new();
        let mut scalars = Vec::new();
        for (at, known) in arguments.iter().enumerate() {
            match (func.params.get(at), known) {
                // The dims of a shape, which comes last, are those of the last parameters.
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

/// A call's arguments one by one: a shape stands for its dims.
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

/// One type for itself, several as a tuple.
fn together(mut types: Vec<StructInfo>) -> StructInfo {
    if types.len() == 1 { types.swap_remove(0) } else { StructInfo::tuple(types) }
}

/// Whether a call of so many tensors with so many outputs passes each buffer.
fn fits(func: &PrimFunc, inputs: usize, outputs: usize) -> bool {
    func.buffer_params().count() == inputs + outputs
}

fn has_handles(func: &PrimFunc) -> bool {
    func.params.iter().any(|param| matches!(param, Param::Handle(_)))
}

/// The parameters that tensors stand for, by their index among all.
struct Memory {
    /// Those that arguments are passed for.
    passed: Vec<usize>,
    /// Those of new outputs.
    fresh: Vec<usize>,
}

impl Memory {
    /// `None`: so many arguments do not fit.
    fn of(func: &PrimFunc, arguments: usize) -> Option<Memory> {
        let is_memory = |at: &usize| !matches!(func.params.get(*at), None | Some(Param::Scalar(_)));
        let mut passed: Vec<usize> = (0..func.params.len()).filter(is_memory).collect();
        let tensors = arguments.checked_sub(func.scalar_params().count()).filter(|count| *count <= passed.len())?;
        let fresh = passed.split_off(tensors);
        Some(Memory { passed, fresh })
    }

    /// For each output the parameter that it is written to.
    fn places(&self, inplace: Option<&[i64]>, outputs: usize) -> Option<Vec<usize>> {
        let mut fresh = self.fresh.iter().copied();
        let new = vec![-1; outputs];
        let places = inplace.unwrap_or(&new).iter().map(|index| match usize::try_from(*index) {
            Err(_) => fresh.next(),
            Ok(at) => self.passed.contains(&at).then_some(at),
        });
        places.collect::<Option<Vec<usize>>>().filter(|places| places.len() == outputs)
    }

    /// The prim_func with outputs of its own, and without parameters that it does not look at: each argument that an output
    /// takes the memory of is copied to the output first, and the output stands in its place.
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
