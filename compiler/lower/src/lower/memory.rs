//! Converts writes into tensors to new values (SSA form), for programs that allocate memory explicitly.
//!
//! ```text
//! t = R.memory.alloc_tensor(…)             r1 = kernel alloc_tensor()
//! cls.f(x, t)                       →      r2 = kernel f(r0)          # t is r2 from here on
//! return t                                 return r2
//! ```
//!
//! A register is written once, so a call that writes into a tensor defines a new register, and later reads of the
//! variable use it ([`Tensors::current`]). The storages of the source program are ignored: the memory plan decides
//! where tensors are stored. A write through a view is a write into the viewed tensor.

use super::FunctionLowering;
use super::known::Known;
use crate::loops::Loops;
use crate::program::{Branch, Inputs, Operation, Output, Outputs, Register, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::{DType, Dim, Name};
use rx_ir::StructInfo;
use rx_tir::func::{BufferId, Param, PrimFunc};
use rx_tir::{Expr as TirExpr, KernelBuilder, Stmt};
use smallvec::smallvec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of the tensors that a function may write into.
#[derive(Clone, Debug, Default)]
pub(super) struct Tensors {
    /// The shapes and dtypes of the tensors that belong to the function: it may write into them.
    own: FxHashMap<Register, (Arc<[Dim]>, DType)>,
    /// New tensors that have not been written. Their contents are irrelevant.
    fresh: FxHashSet<Register>,
    /// For each tensor that was written: the register that holds its value after the write.
    replaced: FxHashMap<Register, Register>,
    /// The views of tensors that may be written. The viewed tensor is never a view itself.
    views: BTreeMap<Register, View>,
}

/// A view of a tensor under another shape.
#[derive(Clone, Debug)]
struct View {
    of: Register,
    shape: Arc<[Dim]>,
}

impl Tensors {
    /// Returns the register that holds the current value of a tensor.
    pub(super) fn current(&self, register: Register) -> Register {
        let mut at = register;
        while let Some(next) = self.replaced.get(&at) {
            at = *next;
        }
        at
    }

    /// Replaces the registers of a value, except those that a closure captures, by those that hold the current values.
    pub(super) fn current_value(&self, known: &Known) -> Known {
        match known {
            Known::Register(register) => Known::Register(self.current(*register)),
            // The common case: nothing was written, so the tuple is unchanged.
            Known::Tuple(_) if self.replaced.is_empty() => known.clone(),
            Known::Tuple(fields) => Known::Tuple(fields.iter().map(|field| self.current_value(field)).collect()),
            Known::Scalar(Scalar::Register(register)) => Known::Scalar(Scalar::Register(self.current(*register))),
            other => other.clone(),
        }
    }

    /// Records that a register is a tensor of this function.
    pub(super) fn add(&mut self, register: Register, shape: &Arc<[Dim]>, dtype: DType) {
        self.own.insert(register, (shape.clone(), dtype));
    }

    /// Records that `view` is a view of `of`, if `of` is a tensor of this function.
    pub(super) fn add_view(&mut self, view: Register, of: Register, shape: &Arc<[Dim]>) {
        let of = self.root(of);
        if let Some((_, dtype)) = self.own.get(&of) {
            self.own.insert(view, (shape.clone(), *dtype));
            self.views.insert(view, View { of, shape: shape.clone() });
        }
    }

    /// If the register is a view in `views`, returns the viewed tensor, otherwise the register itself. Views of tensors
    /// that the function may not write into are not in `views`.
    fn root(&self, register: Register) -> Register {
        self.views.get(&register).map_or(register, |view| view.of)
    }

    /// Returns the tensors of `before` that have been written since, in the order of their registers.
    fn written_since(&self, before: &Tensors) -> Vec<Register> {
        let mut written: Vec<Register> = before
            .own
            .keys()
            .filter(|register| before.current(**register) == **register && self.current(**register) != **register)
            .copied()
            .collect();
        written.sort_unstable();
        written
    }
}

impl FunctionLowering<'_, '_> {
    /// Lowers an allocation.
    pub(super) fn allocate(&mut self, shape: &Known, dtype: &Known) -> Known {
        let dtype = match dtype {
            Known::String(text) => DType::parse(text),
            _ => None,
        };
        let (Known::Shape(dims), Some(dtype)) = (shape, dtype) else {
            return self.problem("a tensor is allocated whose shape or dtype is not known");
        };
        let dims = dims.clone();
        self.new_tensor(&dims, dtype)
    }

    /// Emits a new tensor of zeros that nothing has written into yet.
    pub(super) fn new_tensor(&mut self, dims: &[Dim], dtype: DType) -> Known {
        let mut builder = KernelBuilder::new(name("alloc_tensor"));
        let out = builder.param("out", dims, dtype);
        builder.compute(out, |_, _| TirExpr::number(0.0, dtype));
        let scalars = builder.scalar_values().into_iter().map(Scalar::Int).collect();
        let kernel = self.kernel(&Loops::ordered(builder.finish(), 0), 0);
        let shape: Arc<[Dim]> = dims.into();
        let to = self.register(StructInfo::tensor(shape.clone(), Some(dtype)));
        let output = Output { to, shape: shape.clone(), dtype, storage: None };
        self.emit(Operation::Kernel { kernel, inputs: Inputs::new(), outputs: smallvec![output], scalars });
        self.tensors.add(to, &shape, dtype);
        self.tensors.fresh.insert(to);
        Known::Register(to)
    }

    /// Lowers `cls.f(x, out)`: a call of a prim_func that writes into its arguments.
    pub(super) fn call_in_place(&mut self, function: Name, func: &PrimFunc, arguments: Vec<Known>) -> Known {
        if let Some(done) = self.shape_function(func, &arguments) {
            return done;
        }
        match self.in_place(func, arguments) {
            Ok(()) => Known::nothing(),
            Err(message) => self.problem(format!("`{function}`: {message}")),
        }
    }

    /// Emits a kernel for a prim_func that writes into its arguments, or nothing if it writes none. Each written
    /// argument becomes an output. It is also an input if it may hold values already.
    fn in_place(&mut self, func: &PrimFunc, arguments: Vec<Known>) -> Result<(), String> {
        if arguments.len() != func.params.len() {
            return Err(format!("{} arguments are passed, {} are needed", arguments.len(), func.params.len()));
        }
        let stored = stored_buffers(func);
        let (mut inputs, mut old, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
        let mut written: Vec<(BufferId, Register)> = Vec::new();
        for (param, argument) in func.params.iter().zip(arguments) {
            match (param, argument) {
                (_, Known::Broken) => return Ok(()),
                (Param::Handle(_), _) => {}
                (Param::Scalar(_), Known::Scalar(scalar)) => scalars.push(scalar),
                (Param::Scalar(_), other) => scalars.push(Scalar::Register(self.materialize(other))),
                (Param::Buffer(buffer), argument) => {
                    let register = self.materialize(argument);
                    if !stored.contains(buffer) {
                        inputs.push((*buffer, register));
                        continue;
                    }
                    if written.iter().any(|(_, other)| *other == register) {
                        return Err("it writes one tensor through two parameters".to_owned());
                    }
                    if !self.tensors.fresh.contains(&register) {
                        old.push((*buffer, register));
                    }
                    written.push((*buffer, register));
                }
            }
        }
        if written.is_empty() {
            return Ok(());
        }
        let mut outputs = Outputs::with_capacity(written.len());
        for (buffer, register) in &written {
            let Some((shape, dtype)) = self.tensors.own.get(register).cloned() else {
                let buffer = func.buffer(*buffer).name;
                return Err(format!("it writes to `{buffer}`, which is not a tensor that this function allocates"));
            };
            let to = self.register(self.type_of(*register));
            outputs.push(Output { to, shape, dtype, storage: None });
        }
        let made = writing(func, &inputs, &old, &written);
        let read: Inputs = inputs.iter().chain(&old).map(|(_, register)| *register).collect();
        let kernel = self.kernel(&self.guarded(Loops::new(made), read.len()), read.len());
        self.emit(Operation::Kernel { kernel, inputs: read, outputs: outputs.clone(), scalars });
        for ((_, register), output) in written.iter().zip(outputs) {
            self.tensors.add(output.to, &output.shape, output.dtype);
            self.written(*register, output.to);
        }
        Ok(())
    }

    /// Records that the value of `old` is now in `new`. If `old` is a view, the viewed tensor is updated, too. All
    /// other views of the tensor are made again.
    fn written(&mut self, old: Register, new: Register) {
        let root = self.tensors.root(old);
        let mut base = new;
        if root != old {
            let Some((shape, dtype)) = self.tensors.own.get(&root).cloned() else { return };
            base = self.register(self.type_of(root));
            self.emit(Operation::View { to: base, from: new, shape: shape.clone() });
            self.tensors.add(base, &shape, dtype);
            self.tensors.replaced.insert(root, base);
        }
        self.tensors.replaced.insert(old, new);
        let views = std::mem::take(&mut self.tensors.views);
        for (view, View { of, shape }) in views {
            let (view, made) = match (of == root, view == old) {
                (false, _) => (view, View { of, shape }),
                (true, true) => (new, View { of: base, shape }),
                (true, false) => {
                    let again = self.register(self.type_of(view));
                    self.emit(Operation::View { to: again, from: base, shape: shape.clone() });
                    if let Some((_, dtype)) = self.tensors.own.get(&view).cloned() {
                        self.tensors.add(again, &shape, dtype);
                    }
                    self.tensors.replaced.insert(view, again);
                    (again, View { of: base, shape })
                }
            };
            self.tensors.views.insert(view, made);
        }
    }

    /// Makes the branches of an `if` return the tensors that were defined before it and that a branch has written: if
    /// there are any, each branch returns a tuple of its result and the current values of all these tensors. `branches`
    /// are pairs of a branch and the state of the tensors at its end. Returns the written tensors, too.
    pub(super) fn join_branches(&mut self, branches: Vec<(Branch, Tensors)>) -> (Vec<Branch>, Vec<Register>) {
        let mut written: Vec<Register> =
            branches.iter().flat_map(|(_, tensors)| tensors.written_since(&self.tensors)).collect();
        written.sort_unstable();
        written.dedup();
        let joined = branches
            .into_iter()
            .map(|(mut branch, tensors)| {
                if !written.is_empty() {
                    let left = written.iter().map(|register| tensors.current(*register));
                    let fields = std::iter::once(branch.result).chain(left).collect();
                    let outer = std::mem::replace(&mut self.code, branch.code);
                    branch.result = self.tuple(fields);
                    branch.code = std::mem::replace(&mut self.code, outer);
                }
                branch
            })
            .collect();
        (joined, written)
    }

    /// Returns the result of the branches, given the register `joined` that they return to. If there are `written`
    /// tensors, `joined` is a tuple ([`Self::join_branches`]): reads the result and the tensors' new values from it.
    pub(super) fn leave_branches(&mut self, joined: Register, written: &[Register]) -> Register {
        if written.is_empty() {
            return joined;
        }
        let result = self.tuple_field(joined, 0);
        let mut renewed: FxHashMap<Register, Register> = FxHashMap::default();
        for (at, old) in written.iter().enumerate() {
            let new = self.tuple_field(joined, at + 1);
            renewed.insert(*old, new);
            let Some((shape, dtype)) = self.tensors.own.get(old).cloned() else { continue };
            self.tensors.add(new, &shape, dtype);
            self.tensors.replaced.insert(*old, new);
            self.tensors.fresh.remove(old);
        }
        // A branch that writes a tensor writes its views as well, so the fields of both are views again.
        let now = |register: Register| renewed.get(&register).copied().unwrap_or(register);
        let views = std::mem::take(&mut self.tensors.views).into_iter();
        self.tensors.views = views.map(|(view, made)| (now(view), View { of: now(made.of), ..made })).collect();
        result
    }

    /// Records that the entry function may write into its parameters of known shape and dtype: no caller is assumed to
    /// read them after the call.
    pub(super) fn own_params(&mut self, params: &[(Name, StructInfo)]) {
        for (at, (_, ty)) in params.iter().enumerate() {
            let tensor = ty.as_tensor();
            if let Some((dims, dtype)) = tensor.and_then(|tensor| Some((tensor.shape.shared_dims()?, tensor.dtype?))) {
                self.tensors.add(Register(at as u32), dims, dtype);
            }
        }
    }
}

/// Returns the buffers that a function stores to.
fn stored_buffers(func: &PrimFunc) -> Vec<BufferId> {
    let mut stored = Vec::new();
    func.body.walk(&mut |stmt| {
        if let Stmt::Store { buffer, .. } = stmt {
            stored.push(*buffer);
        }
    });
    stored
}

/// Builds the kernel of a prim_func that writes into its arguments. It reads `inputs` and the contents of the `old`
/// buffers, which it copies to the outputs before the body.
fn writing(
    func: &PrimFunc,
    inputs: &[(BufferId, Register)],
    old: &[(BufferId, Register)],
    written: &[(BufferId, Register)],
) -> PrimFunc {
    let mut result = func.clone();
    let mut params: Vec<Param> = inputs.iter().map(|(buffer, _)| Param::Buffer(*buffer)).collect();
    let mut copies = Vec::new();
    for (buffer, _) in old {
        let source = result.add_buffer(func.buffer(*buffer).clone());
        params.push(Param::Buffer(source));
        copies.push(copy(&mut result, source, *buffer));
    }
    params.extend(written.iter().map(|(buffer, _)| Param::Buffer(*buffer)));
    params.extend(func.params.iter().filter(|param| matches!(param, Param::Scalar(_))));
    result.params = params;
    result.body = Stmt::seq(copies.into_iter().chain([func.body.clone()]));
    result
}

/// Builds the loops `to[i] = from[i]` over all elements. Both buffers have the same shape.
pub(super) fn copy(func: &mut PrimFunc, from: BufferId, to: BufferId) -> Stmt {
    let shape = func.buffer(from).shape.clone();
    let vars: Vec<_> = shape.iter().map(|extent| func.add_var(name("i"), extent.dtype())).collect();
    let indices: Vec<TirExpr> = vars.iter().map(|var| func.var_expr(*var)).collect();
    let value = func.load(from, indices.clone());
    let mut nest = Stmt::Store { buffer: to, indices, value, site: rx_tir::Site { origin: None, operator: func.name } };
    for (var, extent) in vars.into_iter().zip(shape).rev() {
        nest = Stmt::for_loop(var, extent, nest);
    }
    nest
}
