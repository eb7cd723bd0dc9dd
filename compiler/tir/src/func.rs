//! Functions of the loop-level IR, with their buffers and variables.

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

/// A function over buffers: a `T.prim_func`, or an operator's compute definition.
///
/// INVARIANT: every [`VarId`] and [`BufferId`] in it is an index of its tables, every variable has at most one binder
/// (parameter, symbol, loop, block axis or `let`), and a [`Expr::Var`] or [`Expr::Load`] has the dtype of the table.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct PrimFunc {
    /// The function's name in the module, or the operator's name.
    pub name: Name,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Variables that are no parameters. A call determines their values from the shapes of the buffers that it passes
    /// ([`crate::bind_symbols`]). A symbol that occurs only in strides gets no value.
    pub symbols: Vec<VarId>,
    /// All variables.
    pub vars: Vec<Var>,
    /// All buffers, such as parameters and those that the body allocates.
    pub buffers: Vec<Buffer>,
    /// The body.
    pub body: Stmt,
    /// The Relax statements that the function computes: usually one; several after fusion, or if equal calls share the
    /// function. Empty, for example, if no call uses it yet, or if a lowering step adds it.
    pub origins: Vec<Origin>,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// A tensor.
    Buffer(BufferId),
    /// A scalar.
    Scalar(VarId),
    /// A `T.handle` with this name that the body neither reads nor writes, because it has no `T.match_buffer`. It may
    /// be a tensor of any shape and dtype. Callers pass no argument for it.
    Handle(Name),
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Hash)]
pub struct Var {
    /// The name, which is not unique.
    pub name: Name,
    /// The dtype.
    pub dtype: DType,
}

/// The number of threads in a warp, which shares a fragment.
pub const WARP: i64 = 32;

/// A buffer. Its memory is dense and row-major, except for a fragment, whose layout the device defines.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Buffer {
    /// The name, which is not unique.
    pub name: Name,
    /// The element type.
    pub dtype: DType,
    /// The extents. Those of a buffer parameter are over scalar parameters and symbols.
    pub shape: Vec<Expr>,
    /// The strides that the text declares. They are printed, but no access uses them.
    pub strides: Option<Vec<Expr>>,
    /// The layout permutation: for each axis of the buffer, the axis of the program's tensor; none if they are in the
    /// same order. A device may choose another layout. Printed functions mention the permutation in a comment, and
    /// run-time checks name the tensor's axes.
    pub order: Option<Vec<usize>>,
    /// The memory in which the buffer is.
    pub scope: Scope,
}

impl Buffer {
    /// Returns the axis of the program's tensor for an axis of the buffer.
    pub fn axis_of_tensor(&self, axis: usize) -> usize {
        self.order.as_ref().and_then(|order| order.get(axis).copied()).unwrap_or(axis)
    }

    /// Returns the comment on the buffer's layout, if it is permuted.
    pub fn order_note(&self) -> Option<String> {
        let axes: Vec<String> = self.order.as_ref()?.iter().map(usize::to_string).collect();
        Some(format!("lies in memory by axes {} of the tensor", axes.join(", ")))
    }
}

/// The memory of a buffer on a device. On the CPU, all scopes are ordinary memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Global memory of the device.
    Global,
    /// Shared memory of a thread block.
    Shared,
    /// Memory private to a thread: registers, if it is small and the compiler can resolve its indices.
    Local,
    /// Registers of a warp that its threads use together: an operand of a tensor core.
    Fragment(Fragment),
}

impl Scope {
    /// Whether a buffer is private to a thread ([`Scope::Local`]) or to a warp ([`Scope::Fragment`]).
    pub fn is_private(self) -> bool {
        matches!(self, Scope::Local | Scope::Fragment(_))
    }
}

/// The role of a fragment in a warp's matrix product `accumulator += matrix_a · matrix_b` (TVM's scopes `wmma.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// The left factor.
    MatrixA,
    /// The right factor.
    MatrixB,
    /// The accumulated result.
    Accumulator,
}

impl Fragment {
    /// All roles, in order.
    pub const ALL: [Fragment; 3] = [Fragment::MatrixA, Fragment::MatrixB, Fragment::Accumulator];

    /// Returns TVM's name of the scope.
    pub const fn scope(self) -> &'static str {
        match self {
            Fragment::MatrixA => "wmma.matrix_a",
            Fragment::MatrixB => "wmma.matrix_b",
            Fragment::Accumulator => "wmma.accumulator",
        }
    }
}

impl PrimFunc {
    /// Creates a function with an empty body.
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

    /// Returns the variable.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.0 as usize]
    }

    /// Returns the buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// Returns the variable as an expression.
    pub fn var_expr(&self, id: VarId) -> Expr {
        Expr::Var { var: id, dtype: self.var(id).dtype }
    }

    /// Builds a load of an element.
    pub fn load(&self, buffer: BufferId, indices: Vec<Expr>) -> Expr {
        Expr::Load { buffer, dtype: self.buffer(buffer).dtype, indices }
    }

    /// Adds a cell, which is a mutable variable: a local buffer of one element, as in TVM. The caller must allocate it
    /// in a block.
    pub fn add_cell(&mut self, name: Name, dtype: DType) -> BufferId {
        let shape = vec![Expr::Int { value: 1, dtype: DType::INT32 }];
        self.add_buffer(Buffer { name, dtype, shape, strides: None, order: None, scope: Scope::Local })
    }

    /// Builds a load of a cell's value.
    pub fn cell(&self, cell: BufferId) -> Expr {
        self.load(cell, vec![Expr::Int { value: 0, dtype: DType::INT32 }])
    }

    /// Builds `cell = value`.
    pub fn set_cell(&self, cell: BufferId, value: Expr, site: Site) -> Stmt {
        Stmt::Store { buffer: cell, indices: vec![Expr::Int { value: 0, dtype: DType::INT32 }], value, site }
    }

    /// Whether the variable's value follows directly from the argument shapes: some extent of a parameter is just this
    /// variable.
    pub fn is_parameter_extent(&self, var: VarId) -> bool {
        let is_var = |dim: &Expr| matches!(dim, Expr::Var { var: own, .. } if *own == var);
        self.buffer_params().any(|buffer| self.buffer(buffer).shape.iter().any(is_var))
    }

    /// Returns the buffers among the parameters, in order.
    pub fn buffer_params(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.params.iter().filter_map(|param| match param {
            Param::Buffer(buffer) => Some(*buffer),
            Param::Scalar(_) | Param::Handle(_) => None,
        })
    }

    /// Returns the scalars among the parameters, in order.
    pub fn scalar_params(&self) -> impl Iterator<Item = VarId> + '_ {
        self.params.iter().filter_map(|param| match param {
            Param::Scalar(var) => Some(*var),
            Param::Buffer(_) | Param::Handle(_) => None,
        })
    }
}
