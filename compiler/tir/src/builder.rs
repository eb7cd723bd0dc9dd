//! A builder of operator functions: parameters, temporaries and blocks. `rx-ops` defines its operators with it.

use crate::dim::of_dim;
use crate::expr::{BinaryOp, CompareOp, Expr};
use crate::func::{Buffer, BufferId, Param, PrimFunc, Scope, VarId};
use crate::stmt::{Block, Iter, IterKind, Site, Stmt};
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name};

/// A builder of an operator's function.
///
/// Extents are [`Dim`]s. Each symbol in them becomes a scalar parameter with its name, after the buffers. So the
/// function is correct for all values of the symbols. For example, a parameter of shape `[n, 4]` adds the scalar
/// parameter `n: T.int64`.
#[derive(Debug)]
pub struct KernelBuilder {
    func: PrimFunc,
    symbols: NameMap<VarId>,
    /// The scalar parameters, each with the argument that a call passes for it.
    scalars: Vec<(VarId, Dim)>,
    /// The block axes of extent 1.
    single: Vec<VarId>,
    statements: Vec<Stmt>,
    allocations: Vec<BufferId>,
    site: Site,
}

impl KernelBuilder {
    /// Starts a function with the operator's name.
    pub fn new(operator: Name) -> KernelBuilder {
        KernelBuilder {
            func: PrimFunc::new(operator),
            symbols: NameMap::default(),
            scalars: Vec::new(),
            single: Vec::new(),
            statements: Vec::new(),
            allocations: Vec::new(),
            site: Site { origin: None, operator },
        }
    }

    /// Adds a parameter: an input or output tensor. Parameters are in the order in which they are added.
    pub fn param(&mut self, buffer: &str, shape: &[Dim], dtype: DType) -> BufferId {
        let id = self.buffer(buffer, shape, dtype);
        self.push_param(id);
        id
    }

    /// Makes a buffer the next parameter.
    pub fn push_param(&mut self, buffer: BufferId) {
        self.func.params.push(Param::Buffer(buffer));
    }

    /// Adds a buffer that the function allocates.
    pub fn temporary(&mut self, buffer: &str, shape: &[Dim], dtype: DType) -> BufferId {
        let id = self.buffer(buffer, shape, dtype);
        self.allocations.push(id);
        id
    }

    /// Adds a buffer that becomes a parameter later, by [`KernelBuilder::push_param`].
    pub fn buffer(&mut self, buffer: &str, shape: &[Dim], dtype: DType) -> BufferId {
        let shape = shape.iter().map(|dim| self.dim(dim)).collect();
        self.func.add_buffer(Buffer {
            name: name(buffer),
            dtype,
            shape,
            strides: None,
            order: None,
            scope: Scope::Global,
        })
    }

    /// Adds a scalar parameter after the buffers. A call passes the symbol with its name.
    pub fn scalar(&mut self, scalar: Name, dtype: DType) -> Expr {
        let var = self.func.add_var(scalar, dtype);
        self.scalars.push((var, Dim::symbol(scalar)));
        self.func.var_expr(var)
    }

    /// Returns the arguments that a call passes for the scalar parameters, in order.
    pub fn scalar_values(&self) -> Vec<Dim> {
        self.scalars.iter().map(|(_, value)| value.clone()).collect()
    }

    /// Converts a symbolic integer to an `int64` expression over the function's scalars, by [`of_dim`].
    pub fn dim(&mut self, dim: &Dim) -> Expr {
        of_dim(dim, &mut |symbol, value| self.symbol(symbol, value))
    }

    /// Returns the scalar parameter for a symbol, or for an opaque value that the caller computes. Adds it if there is
    /// none yet.
    fn symbol(&mut self, symbol: Name, value: &Dim) -> Expr {
        if let Some(var) = self.symbols.get(&symbol) {
            return self.func.var_expr(*var);
        }
        let var = self.func.add_var(symbol, DType::INT64);
        self.scalars.push((var, value.clone()));
        self.symbols.insert(symbol, var);
        self.func.var_expr(var)
    }

    /// Whether the expression is a block axis of extent 1.
    pub fn is_single(&self, axis: &Expr) -> bool {
        matches!(axis, Expr::Var { var, .. } if self.single.contains(var))
    }

    /// Builds a load of an element.
    pub fn load(&self, buffer: BufferId, indices: &[Expr]) -> Expr {
        self.func.load(buffer, indices.to_vec())
    }

    /// Returns a buffer's extents.
    pub fn shape(&self, buffer: BufferId) -> Vec<Expr> {
        self.func.buffer(buffer).shape.clone()
    }

    /// Returns a buffer's element type.
    pub fn dtype(&self, buffer: BufferId) -> DType {
        self.func.buffer(buffer).dtype
    }

    /// Adds `buffer[axes] = value(axes)` for all elements of the buffer.
    pub fn compute(&mut self, buffer: BufferId, value: impl FnOnce(&mut KernelBuilder, &[Expr]) -> Expr) {
        let shape = self.shape(buffer);
        self.map(buffer, &shape, |builder, axes| (axes.to_vec(), value(builder, axes)));
    }

    /// Adds `buffer[indices] = value` for all values of the axes, whose extents are `extents`. `element` gets the axes
    /// and returns the indices and the value. The domain may differ from the buffer's shape, but different values of
    /// the axes must give different indices.
    pub fn map(
        &mut self,
        buffer: BufferId,
        extents: &[Expr],
        element: impl FnOnce(&mut KernelBuilder, &[Expr]) -> (Vec<Expr>, Expr),
    ) {
        let mut nest = Nest::default();
        let axes = nest.axes(self, extents, IterKind::Spatial);
        let (indices, value) = element(self, &axes);
        let body = Stmt::Store { buffer, indices, value, site: self.site };
        let block = nest.block(self.func.buffer(buffer).name, None, body);
        self.statements.push(block);
    }

    /// Adds a reduction: `buffer[indices] = combine(buffer[indices], value)` from `initial`, over spatial axes of the
    /// given `extents` and reduction axes of the extents `reduced`. `element` gets both, and returns the indices, over
    /// the spatial axes only, and the value.
    pub fn reduce(
        &mut self,
        buffer: BufferId,
        extents: &[Expr],
        reduced: &[Expr],
        initial: Expr,
        combine: BinaryOp,
        element: impl FnOnce(&mut KernelBuilder, &[Expr], &[Expr]) -> (Vec<Expr>, Expr),
    ) {
        let mut nest = Nest::default();
        let axes = nest.axes(self, extents, IterKind::Spatial);
        let reduced = nest.axes(self, reduced, IterKind::Reduce);
        let (indices, value) = element(self, &axes, &reduced);
        let accumulator = self.load(buffer, &indices);
        let value = Expr::Binary { op: combine, left: Box::new(accumulator), right: Box::new(value) };
        let init = Stmt::Store { buffer, indices: indices.clone(), value: initial, site: self.site };
        let body = Stmt::Store { buffer, indices, value, site: self.site };
        let block = nest.block(self.func.buffer(buffer).name, Some(init), body);
        self.statements.push(block);
    }

    /// Adds a block of any form. `body` gets the axes, with the given extents and kinds, and returns the init and the
    /// body.
    pub fn block(
        &mut self,
        block: &str,
        extents: &[(Expr, IterKind)],
        body: impl FnOnce(&mut KernelBuilder, &[Expr]) -> (Option<Stmt>, Stmt),
    ) {
        let mut nest = Nest::default();
        let mut axes = Vec::new();
        for (extent, kind) in extents {
            axes.extend(nest.axes(self, std::slice::from_ref(extent), *kind));
        }
        let (init, body) = body(self, &axes);
        let block = nest.block(name(block), init, body);
        self.statements.push(block);
    }

    /// Builds `buffer[indices] = value`, for use in [`KernelBuilder::block`].
    pub fn store(&self, buffer: BufferId, indices: Vec<Expr>, value: Expr) -> Stmt {
        Stmt::Store { buffer, indices, value, site: self.site }
    }

    /// Adds a variable. The caller builds its binder: a `let` or loop in a block's body.
    pub fn variable(&mut self, variable: &str, dtype: DType) -> (VarId, Expr) {
        let var = self.func.add_var(name(variable), dtype);
        (var, self.func.var_expr(var))
    }

    /// Finishes the function. Its parameters are the buffer parameters, in the order in which they became parameters,
    /// and then the scalars.
    pub fn finish(mut self) -> PrimFunc {
        self.func.params.extend(self.scalars.iter().map(|(var, _)| Param::Scalar(*var)));
        self.func.body = Stmt::with_buffers(self.allocations, Stmt::seq(self.statements));
        self.func
    }
}

/// Loops around a block, one for each axis.
#[derive(Default)]
struct Nest {
    loops: Vec<(VarId, Expr)>,
    iters: Vec<Iter>,
}

impl Nest {
    fn axes(&mut self, builder: &mut KernelBuilder, extents: &[Expr], kind: IterKind) -> Vec<Expr> {
        let mut axes = Vec::with_capacity(extents.len());
        for extent in extents {
            let letter = if kind == IterKind::Spatial { "ax" } else { "k" };
            let at = self.iters.iter().filter(|iter| iter.kind == kind).count();
            let loop_var = builder.func.add_var(name(&format!("{letter}{at}")), extent.dtype());
            let var = builder.func.add_var(name(&format!("v_{letter}{at}")), extent.dtype());
            if extent.as_int() == Some(1) {
                builder.single.push(var);
            }
            let start = Expr::Int { value: 0, dtype: extent.dtype() };
            let binding = builder.func.var_expr(loop_var);
            self.loops.push((loop_var, extent.clone()));
            self.iters.push(Iter { var, kind, start, extent: extent.clone(), binding });
            axes.push(builder.func.var_expr(var));
        }
        axes
    }

    fn block(self, name: Name, init: Option<Stmt>, body: Stmt) -> Stmt {
        let block = Block { name, iters: self.iters, predicate: None, allocations: Vec::new(), init, body };
        let mut nest = Stmt::Block(Box::new(block));
        for (var, extent) in self.loops.into_iter().rev() {
            nest = Stmt::for_loop(var, extent, nest);
        }
        nest
    }
}

/// Builds the condition `low <= index < high`.
pub fn in_range(index: Expr, low: Expr, high: Expr) -> Expr {
    let above = Expr::compare(CompareOp::Ge, index.clone(), low);
    above.and(Expr::compare(CompareOp::Lt, index, high))
}
