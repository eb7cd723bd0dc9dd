//! Building an operator's function: inputs, outputs, and blocks that compute one buffer from others.

use crate::dim::of_dim;
use crate::expr::{BinaryOp, CompareOp, Expr};
use crate::func::{Buffer, BufferId, Param, PrimFunc, Scope, VarId};
use crate::stmt::{Block, Iter, IterKind, Site, Stmt};
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name};

/// Builds the function of an operator.
///
/// Extents are [`Dim`]s; each symbol in them becomes a scalar parameter of its name behind the buffers. So what is built
/// is right for every value of the symbols.
#[derive(Debug)]
pub struct KernelBuilder {
    func: PrimFunc,
    symbols: NameMap<VarId>,
    /// Scalar parameters, each with what a call passes for it.
    scalars: Vec<(VarId, Dim)>,
    /// Axes of blocks that have one value.
    single: Vec<VarId>,
    statements: Vec<Stmt>,
    allocations: Vec<BufferId>,
    site: Site,
}

impl KernelBuilder {
    /// A function called as the operator.
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

    /// Adds a parameter: an input or output tensor. Parameters stand in the order they are added.
    pub fn param(&mut self, buffer: &str, shape: &[Dim], dtype: DType) -> BufferId {
        let id = self.buffer(buffer, shape, dtype);
        self.push_param(id);
        id
    }

    /// Makes a buffer the next parameter.
    pub fn push_param(&mut self, buffer: BufferId) {
        self.func.params.push(Param::Buffer(buffer));
    }

    /// Adds a buffer that only this function sees.
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

    /// Adds a scalar parameter, behind the buffers: a call passes the symbol of its name.
    pub fn scalar(&mut self, scalar: Name, dtype: DType) -> Expr {
        let var = self.func.add_var(scalar, dtype);
        self.scalars.push((var, Dim::symbol(scalar)));
        self.func.var_expr(var)
    }

    /// What a call passes for each scalar parameter, in order.
    pub fn scalar_values(&self) -> Vec<Dim> {
        self.scalars.iter().map(|(_, value)| value.clone()).collect()
    }

    /// A symbolic integer as an `int64` expression over the function's scalars, as [`of_dim`] makes it.
    pub fn dim(&mut self, dim: &Dim) -> Expr {
        of_dim(dim, &mut |symbol, value| self.symbol(symbol, value))
    }

    /// The scalar that stands for a symbol, or for a value that the caller computes.
    fn symbol(&mut self, symbol: Name, value: &Dim) -> Expr {
        if let Some(var) = self.symbols.get(&symbol) {
            return self.func.var_expr(*var);
        }
        let var = self.func.add_var(symbol, DType::INT64);
        self.scalars.push((var, value.clone()));
        self.symbols.insert(symbol, var);
        self.func.var_expr(var)
    }

    /// Whether it is an axis of a block whose extent is 1.
    pub fn is_single(&self, axis: &Expr) -> bool {
        matches!(axis, Expr::Var { var, .. } if self.single.contains(var))
    }

    /// An element of a buffer.
    pub fn load(&self, buffer: BufferId, indices: &[Expr]) -> Expr {
        self.func.load(buffer, indices.to_vec())
    }

    /// A buffer's extents.
    pub fn shape(&self, buffer: BufferId) -> Vec<Expr> {
        self.func.buffer(buffer).shape.clone()
    }

    /// A buffer's element type.
    pub fn dtype(&self, buffer: BufferId) -> DType {
        self.func.buffer(buffer).dtype
    }

    /// `buffer[axes] = value(axes)` for all of the buffer.
    pub fn compute(&mut self, buffer: BufferId, value: impl FnOnce(&mut KernelBuilder, &[Expr]) -> Expr) {
        let shape = self.shape(buffer);
        self.map(buffer, &shape, |builder, axes| (axes.to_vec(), value(builder, axes)));
    }

    /// `buffer[indices(axes)] = value(axes)` for axes below `extents`: a map from a domain of its own to the buffer.
    /// Different axes must lead to different elements.
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

    /// `buffer[indices(axes)] = combine over reduced of value(axes, reduced)`, beginning with `initial`, for axes below
    /// `extents` and reduced below `reduced`. `combine(accumulator, value)`; `element` gives indices and value.
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

    /// A block of any form: `body` gets the axes of `extents`, each of its kind, and gives `init` and the body.
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

    /// `buffer[indices] = value`, for [`KernelBuilder::block`].
    pub fn store(&self, buffer: BufferId, indices: Vec<Expr>, value: Expr) -> Stmt {
        Stmt::Store { buffer, indices, value, site: self.site }
    }

    /// A new variable with a binder that the caller makes, a `let` or loop in a block's body.
    pub fn variable(&mut self, variable: &str, dtype: DType) -> (VarId, Expr) {
        let var = self.func.add_var(name(variable), dtype);
        (var, self.func.var_expr(var))
    }

    /// The function: buffers in the order of [`KernelBuilder::param`], then scalars.
    pub fn finish(mut self) -> PrimFunc {
        self.func.params.extend(self.scalars.iter().map(|(var, _)| Param::Scalar(*var)));
        self.func.body = Stmt::with_buffers(self.allocations, Stmt::seq(self.statements));
        self.func
    }
}

/// Loops around a block, one per axis.
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

/// Whether `low <= index < high`.
pub fn in_range(index: Expr, low: Expr, high: Expr) -> Expr {
    let above = Expr::compare(CompareOp::Ge, index.clone(), low);
    above.and(Expr::compare(CompareOp::Lt, index, high))
}
