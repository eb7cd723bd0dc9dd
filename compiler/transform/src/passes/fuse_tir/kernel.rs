//! Construction of a single prim_func from a Relax function that calls prim_funcs. `FuseTIR` uses it.

use super::super::fuse_ops::{passes_scalars, tir_call};
use crate::make;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name};
use rx_ir::{Attr, BoundValue, Expr, ExprKind, LoopFunction, PrimValue, RelaxFunction, StructInfo};
use rx_tir::rewrite::{import, map_children, substitute};
use rx_tir::{Block, Buffer, BufferId, Param, PrimFunc, Scope, Stmt, VarId};
use std::collections::HashSet;

type Loops = rx_tir::Expr;

/// A Relax function as one prim_func.
pub(super) struct Kernel {
    /// The prim_func. Its parameters are the function's tensors and scalars in order, with each shape replaced by its
    /// dims, followed by the output buffers.
    pub(super) loops: PrimFunc,
    /// The number of parameters that a call passes; the parameters after these are outputs.
    pub(super) inputs: usize,
    /// The results of the function, in order.
    pub(super) given: Vec<Given>,
}

/// The location of a result tensor.
pub(super) enum Given {
    /// A new output buffer.
    New,
    /// The buffer of an argument that is overwritten, by the index of the prim_func's parameter.
    InPlace(usize),
    /// An argument that is returned unchanged, by the index of the Relax function's parameter.
    Argument(usize),
}

impl Kernel {
    /// Builds the prim_func of a function; `None` if it cannot be one kernel (see `FuseTIR`).
    pub(super) fn of(function: &RelaxFunction, callees: &NameMap<&LoopFunction<PrimFunc>>) -> Option<Kernel> {
        let mut maker = Maker {
            func: PrimFunc::new(function.name),
            symbols: NameMap::default(),
            buffers: NameMap::default(),
            made: Vec::new(),
            written: HashSet::new(),
            statements: Vec::new(),
        };
        for (param, ty) in &function.params {
            maker.param(*param, ty)?;
        }
        let inputs = maker.func.params.len();
        for binding in function.body.blocks.iter().flat_map(|block| &block.bindings) {
            let BoundValue::Expr(value) = &binding.value else { return None };
            if passes_scalars(value) {
                return None;
            }
            let buffers = match tir_call(value) {
                Some((callee, arguments)) => maker.call(callees.get(&callee)?.loops()?, value, arguments)?,
                None => maker.buffers_of(value)?,
            };
            maker.buffers.insert(binding.variable, buffers);
        }
        maker.finish(function, inputs)
    }
}

struct Maker {
    func: PrimFunc,
    /// The loop-level variables of symbolic dims.
    symbols: NameMap<VarId>,
    /// The buffers of Relax variables; for a tuple, those of its fields.
    buffers: NameMap<Vec<BufferId>>,
    /// The internal buffers and the new output buffers of the calls, in order; those that are results become parameters
    /// at the end.
    made: Vec<BufferId>,
    /// The buffers that a call overwrites in place.
    written: HashSet<BufferId>,
    statements: Vec<Stmt>,
}

impl Maker {
    fn symbol(&mut self, symbol: Name) -> Loops {
        let func = &mut self.func;
        let var = *self.symbols.entry(symbol).or_insert_with(|| func.add_var(symbol, DType::INT64));
        self.func.var_expr(var)
    }

    fn dims(&mut self, dims: &[Dim]) -> Vec<Loops> {
        dims.iter().map(|dim| rx_tir::of_dim(dim, &mut |symbol, _| self.symbol(symbol))).collect()
    }

    fn param(&mut self, param: Name, ty: &StructInfo) -> Option<()> {
        match ty {
            StructInfo::Tensor(tensor) => {
                let (dims, dtype) = (tensor.shape.dims()?.to_vec(), tensor.dtype?);
                let shape = self.dims(&dims);
                let buffer = Buffer { name: param, dtype, shape, strides: None, order: None, scope: Scope::Global };
                let buffer = self.func.add_buffer(buffer);
                self.func.params.push(Param::Buffer(buffer));
                self.buffers.insert(param, vec![buffer]);
            }
            StructInfo::Prim(prim) => self.scalar(param, prim.dtype?)?,
            StructInfo::Shape(shape) => {
                for dim in shape.dims()?.to_vec() {
                    self.scalar(dim.as_symbol()?, DType::INT64)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Adds a scalar parameter, which is also the symbolic dim of the same name. Returns `None` if it is a parameter
    /// already, or if the dim has another dtype.
    fn scalar(&mut self, own: Name, dtype: DType) -> Option<()> {
        let known = self.symbols.get(&own).copied();
        let var = known.unwrap_or_else(|| self.func.add_var(own, dtype));
        let is_passed = self.func.scalar_params().any(|param| param == var);
        if is_passed || self.func.var(var).dtype != dtype {
            return None;
        }
        self.symbols.insert(own, var);
        self.func.params.push(Param::Scalar(var));
        Some(())
    }

    /// Returns the buffers of a value that is not a call.
    fn buffers_of(&self, value: &Expr) -> Option<Vec<BufferId>> {
        match &value.kind {
            ExprKind::Var(variable) => self.buffers.get(variable).cloned(),
            ExprKind::Tuple(fields) => {
                let of_fields: Option<Vec<Vec<BufferId>>> = fields.iter().map(|field| self.buffers_of(field)).collect();
                Some(of_fields?.concat())
            }
            ExprKind::TupleGet(tuple, at) => {
                let types = tuple.ty.as_tuple()?;
                let start: usize = types.get(..*at)?.iter().map(tensors).sum();
                let end = start + tensors(types.get(*at)?);
                self.buffers_of(tuple)?.get(start..end).map(<[BufferId]>::to_vec)
            }
            _ => None,
        }
    }

    /// Appends the loops of a call, and returns the buffers of its outputs.
    fn call(&mut self, callee: &PrimFunc, call: &Expr, arguments: &[Expr]) -> Option<Vec<BufferId>> {
        let mut matched = Matched { values: vec![None; callee.vars.len()], buffers: Vec::new() };
        for (argument, param) in arguments.iter().zip(&callee.params) {
            match param {
                Param::Scalar(var) => matched.value(*var, self.scalar_of(argument, callee.var(*var).dtype)?),
                Param::Handle(_) => {}
                Param::Buffer(buffer) => match &self.buffers_of(argument)?[..] {
                    [own] => matched.buffer(callee, *buffer, &self.func, *own)?,
                    _ => return None,
                },
            }
        }
        let types = make::types(call, "out_ty")?;
        let places = places(call, arguments.len(), types.len())?;
        let mut outputs = Vec::with_capacity(types.len());
        let mut new = Vec::new();
        for (ty, place) in types.iter().zip(places) {
            let Param::Buffer(theirs) = *callee.params.get(place)? else { return None };
            let known = matched.buffers.iter().find(|(buffer, _)| *buffer == theirs).map(|(_, own)| *own);
            outputs.push(match known {
                Some(own) => {
                    self.written.insert(own);
                    own
                }
                None => {
                    let own = self.output(callee, theirs, ty)?;
                    matched.buffer(callee, theirs, &self.func, own)?;
                    new.push((theirs, own));
                    own
                }
            });
        }
        let passed = callee.scalar_params().chain(callee.symbols.iter().copied());
        let is_matched = callee.buffer_params().all(|buffer| matched.buffers.iter().any(|(known, _)| *known == buffer))
            && passed.into_iter().all(|var| matched.of(var).is_some());
        if !is_matched {
            return None;
        }
        let made_before = self.made.len() - new.len();
        for (theirs, own) in new {
            let strides = callee.buffer(theirs).strides.as_ref();
            let strides = strides.map(|dims| dims.iter().map(|dim| substitute(dim, &|var| matched.of(var))).collect());
            self.func.buffers[own.0 as usize].strides = strides;
        }
        let own = |buffer: BufferId| matched.buffers.iter().find(|(known, _)| *known == buffer).map(|(_, own)| *own);
        match import(&mut self.func, callee, &own, &|var| matched.of(var)) {
            Stmt::Block(root) if root.is_root() => {
                let Block { allocations, body, .. } = *root;
                // As in TVM, the callee's internal buffers come before its outputs.
                self.made.splice(made_before..made_before, allocations);
                self.statements.push(body);
            }
            body => self.statements.push(body),
        }
        Some(outputs)
    }

    /// Adds a buffer for an output that the callee writes to its parameter `theirs`.
    fn output(&mut self, callee: &PrimFunc, theirs: BufferId, ty: &StructInfo) -> Option<BufferId> {
        let tensor = ty.as_tensor()?;
        let Buffer { name: base, dtype, scope, .. } = *callee.buffer(theirs);
        if tensor.dtype != Some(dtype) {
            return None;
        }
        let shape = self.dims(tensor.shape.dims()?);
        let mut own = format!("{base}_intermediate");
        let mut number = 0;
        while self.made.iter().any(|made| self.func.buffer(*made).name == own.as_str()) {
            number += 1;
            own = format!("{own}_{number}");
        }
        let buffer = self.func.add_buffer(Buffer { name: name(&own), dtype, shape, strides: None, order: None, scope });
        self.made.push(buffer);
        Some(buffer)
    }

    /// Converts a scalar argument to a loop-level expression of the parameter's dtype.
    fn scalar_of(&mut self, argument: &Expr, dtype: DType) -> Option<Loops> {
        let value = match &argument.kind {
            ExprKind::Prim(PrimValue::Int(dim)) => rx_tir::of_dim(dim, &mut |symbol, _| self.symbol(symbol)),
            ExprKind::Prim(PrimValue::Float(value)) => Loops::number(*value, dtype),
            ExprKind::Prim(PrimValue::Bool(value)) => Loops::bool(*value),
            ExprKind::Var(variable) => self.func.var_expr(*self.symbols.get(variable)?),
            _ => return None,
        };
        Some(if value.dtype() == dtype { value } else { value.cast(dtype) })
    }

    fn finish(mut self, function: &RelaxFunction, inputs: usize) -> Option<Kernel> {
        let result = &function.body.result;
        let is_flat = match &result.ty {
            StructInfo::Tuple(fields) => fields.iter().all(|field| tensors(field) == 1),
            ty => tensors(ty) == 1,
        };
        let results = self.buffers_of(result).filter(|_| is_flat)?;
        let mut given = Vec::with_capacity(results.len());
        let mut outputs = Vec::new();
        for buffer in &results {
            let param = self.func.params.iter().position(|param| *param == Param::Buffer(*buffer));
            given.push(match param.filter(|param| *param < inputs) {
                Some(param) if self.written.contains(buffer) => Given::InPlace(param),
                Some(_) => Given::Argument(self.argument_of(function, *buffer)?),
                None => {
                    outputs.push(*buffer);
                    Given::New
                }
            });
        }
        let distinct: HashSet<&BufferId> = results.iter().collect();
        // An overwritten buffer must be internal or a result; otherwise the caller would not know that its argument has
        // changed.
        let is_told = |buffer: &BufferId| self.made.contains(buffer) || distinct.contains(buffer);
        let makes_something = given.iter().any(|given| !matches!(given, Given::Argument(_)));
        if distinct.len() != results.len() || !self.written.iter().all(is_told) || !makes_something {
            return None;
        }
        self.func.params.extend(outputs.iter().map(|buffer| Param::Buffer(*buffer)));
        self.settle_symbols()?;
        let allocations: Vec<BufferId> = self.made.iter().copied().filter(|buffer| !outputs.contains(buffer)).collect();
        let body = distinct_blocks(&Stmt::seq(self.statements), &mut HashSet::new());
        self.func.body = Stmt::with_buffers(allocations, body);
        let loops = rx_tir::renumber::renumber(&self.func);
        Some(Kernel { loops, inputs, given })
    }

    fn argument_of(&self, function: &RelaxFunction, buffer: BufferId) -> Option<usize> {
        function.params.iter().position(|(param, _)| self.buffers.get(param).is_some_and(|own| own[..] == [buffer]))
    }

    /// Sets the function's symbols to the symbolic dims that are not scalar parameters. Returns `None` if one of them
    /// is not the extent of a parameter.
    fn settle_symbols(&mut self) -> Option<()> {
        let passed: HashSet<VarId> = self.func.scalar_params().collect();
        let mut symbols: Vec<VarId> = self.symbols.values().copied().filter(|var| !passed.contains(var)).collect();
        symbols.sort_unstable();
        if !symbols.iter().all(|var| self.func.is_parameter_extent(*var)) {
            return None;
        }
        self.func.symbols = symbols;
        Some(())
    }
}

/// The values and buffers of a callee's parameters in one call.
struct Matched {
    values: Vec<Option<Loops>>,
    buffers: Vec<(BufferId, BufferId)>,
}

impl Matched {
    fn of(&self, var: VarId) -> Option<Loops> {
        self.values.get(var.0 as usize).cloned().flatten()
    }

    fn value(&mut self, var: VarId, value: Loops) {
        if let Some(slot @ None) = self.values.get_mut(var.0 as usize) {
            *slot = Some(value);
        }
    }

    /// Binds a callee's buffer to one of the kernel, and each variable that is an extent of it to the kernel's extent,
    /// unless the variable has a value already. Returns `None` if the ranks or dtypes differ.
    fn buffer(&mut self, callee: &PrimFunc, theirs: BufferId, func: &PrimFunc, own: BufferId) -> Option<()> {
        let (wanted, given) = (callee.buffer(theirs), func.buffer(own));
        if wanted.shape.len() != given.shape.len() || wanted.dtype != given.dtype {
            return None;
        }
        for (wanted, given) in wanted.shape.iter().zip(&given.shape) {
            if let Loops::Var { var, dtype } = wanted {
                self.value(*var, if given.dtype() == *dtype { given.clone() } else { given.clone().cast(*dtype) });
            }
        }
        self.buffers.push((theirs, own));
        Some(())
    }
}

/// Returns, for each output of a call, the index of the callee's parameter that it is written to.
fn places(call: &Expr, arguments: usize, outputs: usize) -> Option<Vec<usize>> {
    let indices: Vec<i64> = match make::attr(call, "inplace_indices") {
        None => vec![-1; outputs],
        Some(Attr::List(items)) => items.iter().map(Attr::as_int).collect::<Option<_>>()?,
        Some(attr) => vec![attr.as_int()?],
    };
    let mut next = arguments;
    let place = |index: i64| {
        if index == -1 {
            next += 1;
            return Some(next - 1);
        }
        usize::try_from(index).ok().filter(|index| *index < arguments)
    };
    let places: Vec<usize> = indices.into_iter().map(place).collect::<Option<_>>()?;
    (places.len() == outputs).then_some(places)
}

/// Returns the number of fields of a type that are not tuples, at any depth; 1 for a type that is not a tuple.
fn tensors(ty: &StructInfo) -> usize {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().map(tensors).sum(),
        _ => 1,
    }
}

/// Makes block names unique by a number at their end, like TVM's `SBlockNameDeduplicator`. For example, a second
/// `T_add` becomes `T_add1`, and a third `T_add2`.
fn distinct_blocks(stmt: &Stmt, names: &mut HashSet<Name>) -> Stmt {
    let mut stmt = map_children(stmt, &mut |child| distinct_blocks(child, names));
    if let Stmt::Block(block) = &mut stmt {
        let own = block.name;
        let base = own.trim_end_matches(|c: char| c.is_ascii_digit());
        let mut number: u64 = own.get(base.len()..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        while !names.insert(block.name) {
            number = number.wrapping_add(1);
            block.name = name(&format!("{base}{number}"));
        }
    }
    stmt
}
