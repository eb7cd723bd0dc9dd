//! Functions of the loop-level IR, their buffers and variables.

use crate::expr::Expr;
use crate::stmt::{Site, Stmt};
use rx_base::{DType, Name};
use rx_ir::Origin;

/// A variable of a [`PrimFunc`], by its index in [`PrimFunc::vars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// A buffer of a [`PrimFunc`], by its index in [`PrimFunc::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// A function over buffers: `T.prim_func`, or an operator's compute definition.
///
/// INVARIANT: every [`VarId`] and [`BufferId`] in it is an index of its tables, every variable has one binder
/// (parameter, symbol, loop, block axis or `let`), and a [`Expr::Var`] or [`Expr::Load`] has the dtype of the table.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct PrimFunc {
    /// Its name in the module, or the operator's.
    pub name: Name,
    /// What a call passes, in order.
    pub params: Vec<Param>,
    /// Variables that no parameter passes: they get their values from the extents of the buffers a call passes.
    pub symbols: Vec<VarId>,
    /// All variables.
    pub vars: Vec<Var>,
    /// All buffers: parameters, and those the body allocates.
    pub buffers: Vec<Buffer>,
    /// What it does.
    pub body: Stmt,
    /// The Relax statements it computes; one before fusion, none for a function of the module that nobody called yet.
    pub origins: Vec<Origin>,
}

/// What a call passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// A tensor.
    Buffer(BufferId),
    /// A scalar.
    Scalar(VarId),
    /// Memory under this name that the body neither reads nor writes, of any shape and dtype: a `T.handle` that nothing opens.
    /// Who runs the function passes nothing for it.
    Handle(Name),
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Hash)]
pub struct Var {
    /// Its name; not unique.
    pub name: Name,
    /// Its dtype.
    pub dtype: DType,
}

/// Threads of a warp, which fragments are of.
pub const WARP: i64 = 32;

/// A buffer. Its memory is dense and row-major.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Buffer {
    /// Its name; not unique.
    pub name: Name,
    /// Its element type.
    pub dtype: DType,
    /// Its extents, over parameters and symbols.
    pub shape: Vec<Expr>,
    /// The strides that a text declares. They are printed; no access uses them.
    pub strides: Option<Vec<Expr>>,
    /// Where its axes stand in another order than those of the tensor it is in the program: which of them each is. A device may
    /// have it so; texts say it in comments, and checks name the tensor's axes.
    pub order: Option<Vec<usize>>,
    /// Where it lives.
    pub scope: Scope,
}

impl Buffer {
    /// Which axis of the tensor in the program one of its axes is.
    pub fn axis_of_tensor(&self, axis: usize) -> usize {
        self.order.as_ref().and_then(|order| order.get(axis).copied()).unwrap_or(axis)
    }

    /// What a text says of the order of its axes, where that is not the tensor's.
    pub fn order_note(&self) -> Option<String> {
        let axes: Vec<String> = self.order.as_ref()?.iter().map(usize::to_string).collect();
        Some(format!("lies in memory by axes {} of the tensor", axes.join(", ")))
    }
}

/// Where a buffer lives on a device; on the CPU all are memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Device memory.
    Global,
    /// Memory of a thread block.
    Shared,
    /// Of one thread: registers, where it is small.
    Local,
    /// Of a warp, whose threads use it together: what a tensor core takes.
    Fragment(Fragment),
}

impl Scope {
    /// Whether a buffer is a thread's own, or its warp's: what other threads do not see.
    pub fn is_private(self) -> bool {
        matches!(self, Scope::Local | Scope::Fragment(_))
    }
}

/// A place in the product `accumulator += matrix_a · matrix_b` of a warp (TVM's scopes `wmma.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// The left factor.
    MatrixA,
    /// The right factor.
    MatrixB,
    /// The sum.
    Accumulator,
}

impl Fragment {
    /// All places, in order.
    pub const ALL: [Fragment; 3] = [Fragment::MatrixA, Fragment::MatrixB, Fragment::Accumulator];

    /// TVM's name of the scope.
    pub const fn scope(self) -> &'static str {
        match self {
            Fragment::MatrixA => "wmma.matrix_a",
            Fragment::MatrixB => "wmma.matrix_b",
            Fragment::Accumulator => "wmma.accumulator",
        }
    }
}

impl PrimFunc {
    /// A function without body.
    pub fn new(name: Name) -> PrimFunc {
        PrimFunc {
            name,
            params: Vec::new(),
            symbols: Vec::new(),
            vars: Vec::new(),
            buffers: Vec::new(),
            body: Stmt::Seq(Vec::new()),
            origins: Vec::new(),
        }
    }

    /// Adds a variable.
    pub fn add_var(&mut self, name: Name, dtype: DType) -> VarId {
        self.vars.push(Var { name, dtype });
        VarId(self.vars.len() as u32 - 1)
    }

    /// Adds a buffer.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.buffers.push(buffer);
        BufferId(self.buffers.len() as u32 - 1)
    }

    /// The variable.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.0 as usize]
    }

    /// The buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// The variable as an expression.
    pub fn var_expr(&self, id: VarId) -> Expr {
        Expr::Var { var: id, dtype: self.var(id).dtype }
    }

    /// An element of a buffer.
    pub fn load(&self, buffer: BufferId, indices: Vec<Expr>) -> Expr {
        Expr::Load { buffer, dtype: self.buffer(buffer).dtype, indices }
    }

    /// A variable that is stored to: a local buffer of one element, as in TVM. It still has to be allocated.
    pub fn add_cell(&mut self, name: Name, dtype: DType) -> BufferId {
        let shape = vec![Expr::Int { value: 1, dtype: DType::INT32 }];
        self.add_buffer(Buffer { name, dtype, shape, strides: None, order: None, scope: Scope::Local })
    }

    /// What a cell holds.
    pub fn cell(&self, cell: BufferId) -> Expr {
        self.load(cell, vec![Expr::Int { value: 0, dtype: DType::INT32 }])
    }

    /// `cell = value`.
    pub fn set_cell(&self, cell: BufferId, value: Expr, site: Site) -> Stmt {
        Stmt::Store { buffer: cell, indices: vec![Expr::Int { value: 0, dtype: DType::INT32 }], value, site }
    }

    /// Whether the extents of what a call passes tell the variable: one is nothing but it.
    pub fn is_told(&self, var: VarId) -> bool {
        let is_var = |dim: &Expr| matches!(dim, Expr::Var { var: own, .. } if *own == var);
        self.buffer_params().any(|buffer| self.buffer(buffer).shape.iter().any(is_var))
    }

    /// The buffers among the parameters, in order.
    pub fn buffer_params(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.params.iter().filter_map(|param| match param {
            Param::Buffer(buffer) => Some(*buffer),
            Param::Scalar(_) | Param::Handle(_) => None,
        })
    }

    /// The scalars among the parameters, in order.
    pub fn scalar_params(&self) -> impl Iterator<Item = VarId> + '_ {
        self.params.iter().filter_map(|param| match param {
            Param::Scalar(var) => Some(*var),
            Param::Buffer(_) | Param::Handle(_) => None,
        })
    }
}
