//! Memory that programs allocate and prim_funcs that write into it, as values.
//!
//! A register is written once; so a call that writes into a tensor makes a new one, and whoever reads the variable later reads
//! that ([`Tensors::current`]). What the text says of storages plays no part: where tensors live is the plan's to say. A tensor
//! that is written through a view is one with what it is a view of.

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

/// What is known of the tensors of a function that may be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Tensors {
    /// Extents and dtypes of the tensors that are the function's own.
    own: FxHashMap<Register, (Arc<[Dim]>, DType)>,
    /// Those nothing was written into: what they hold is nobody's concern.
    fresh: FxHashSet<Register>,
    /// What stands for a tensor since it was written.
    replaced: FxHashMap<Register, Register>,
    /// Views, each of a tensor that is no view.
    views: BTreeMap<Register, View>,
}

/// A tensor under another shape.
#[derive(Clone, Debug)]
struct View {
    of: Register,
    shape: Arc<[Dim]>,
}

impl Tensors {
    /// The register that holds the tensor now.
    pub(super) fn current(&self, register: Register) -> Register {
        let mut at = register;
        while let Some(next) = self.replaced.get(&at) {
            at = *next;
        }
        at
    }

    /// The value, with what its tensors are now.
    pub(super) fn current_value(&self, known: &Known) -> Known {
        match known {
            Known::Register(register) => Known::Register(self.current(*register)),
            // Mostly nothing was written since, and the tuple is as it was.
            Known::Tuple(_) if self.replaced.is_empty() => known.clone(),
            Known::Tuple(fields) => Known::Tuple(fields.iter().map(|field| self.current_value(field)).collect()),
            Known::Scalar(Scalar::Register(register)) => Known::Scalar(Scalar::Register(self.current(*register))),
            other => other.clone(),
        }
    }

    /// The register is a tensor of the function's own.
    pub(super) fn add(&mut self, register: Register, shape: &Arc<[Dim]>, dtype: DType) {
        self.own.insert(register, (shape.clone(), dtype));
    }

    /// `view` is `of` under another shape.
    pub(super) fn add_view(&mut self, view: Register, of: Register, shape: &Arc<[Dim]>) {
        let of = self.root(of);
        if let Some((_, dtype)) = self.own.get(&of) {
            self.own.insert(view, (shape.clone(), *dtype));
            self.views.insert(view, View { of, shape: shape.clone() });
        }
    }

    fn root(&self, register: Register) -> Register {
        self.views.get(&register).map_or(register, |view| view.of)
    }

    /// The tensors that were there before and were written since, in order.
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
    /// A new tensor without values.
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

    /// A new tensor that nothing was written into: zeros.
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

    /// `cls.f(x, out)`: a prim_func called for what it writes into its arguments.
    pub(super) fn call_in_place(&mut self, function: Name, func: &PrimFunc, arguments: Vec<Known>) -> Known {
        if let Some(done) = self.shape_function(func, &arguments) {
            return done;
        }
        match self.in_place(func, arguments) {
            Ok(()) => Known::nothing(),
            Err(message) => self.problem(format!("`{function}`: {message}")),
        }
    }

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
                return Err(format!("what it writes to as `{buffer}` is no tensor that this function allocates"));
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

    /// `new` stands for `old` from here on, and the views of it are views of that.
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

    /// Makes what branches of an `if` wrote into tensors from before it come out of them: each gives a tuple, of its result
    /// and of those tensors as it leaves them. `branches` are code, result and what the branch knows of tensors at its end.
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

    /// Takes the result, and the written tensors, out of the tuple that the branches gave.
    pub(super) fn leave_branches(&mut self, joined: Register, written: &[Register]) -> Register {
        if written.is_empty() {
            return joined;
        }
        let result = self.tuple_field(joined, 0);
        for (at, old) in written.iter().enumerate() {
            let new = self.tuple_field(joined, at + 1);
            let Some((shape, dtype)) = self.tensors.own.get(old).cloned() else { continue };
            self.tensors.add(new, &shape, dtype);
            self.tensors.replaced.insert(*old, new);
            self.tensors.fresh.remove(old);
        }
        // Each view came out by itself, and is one no more: what is written into it later is not seen by the others.
        self.tensors.views.retain(|view, made| !written.contains(view) && !written.contains(&made.of));
        result
    }

    /// The parameters of the entry function are its own: nobody looks at them after it.
    pub(super) fn own_params(&mut self, params: &[(Name, StructInfo)]) {
        for (at, (_, ty)) in params.iter().enumerate() {
            let tensor = ty.as_tensor();
            if let Some((dims, dtype)) = tensor.and_then(|tensor| Some((tensor.shape.shared_dims()?, tensor.dtype?))) {
                self.tensors.add(Register(at as u32), dims, dtype);
            }
        }
    }
}

/// The buffer parameters that the function stores to.
fn stored_buffers(func: &PrimFunc) -> Vec<BufferId> {
    let mut stored = Vec::new();
    func.body.walk(&mut |stmt| {
        if let Stmt::Store { buffer, .. } = stmt {
            stored.push(*buffer);
        }
    });
    stored
}

/// The function as a kernel: it reads `inputs` and what `old` buffers hold, which it copies into those it writes.
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

/// `to[i] = from[i]` for all of the buffers, which have one shape.
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
