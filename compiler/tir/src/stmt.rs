//! Statements of the loop-level IR: loops, blocks, stores, conditions.

use crate::expr::Expr;
use crate::func::{BufferId, VarId};
use rx_base::Name;
use rx_ir::Origin;
use smallvec::{SmallVec, smallvec};

/// A statement.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Stmt {
    /// A sequence of statements. An empty sequence does nothing.
    Seq(Vec<Stmt>),
    /// `for var in range(start, start + extent)`.
    For {
        /// The loop's variable, an integer.
        var: VarId,
        /// The variable's first value.
        start: Expr,
        /// The number of iterations; none if it is not positive.
        extent: Expr,
        /// The execution order of the iterations.
        kind: LoopKind,
        /// The statement of each iteration.
        body: Box<Stmt>,
    },
    /// `with T.sblock(…)`.
    Block(Box<Block>),
    /// `buffer[indices] = value`.
    Store {
        /// The buffer.
        buffer: BufferId,
        /// One integer for each axis.
        indices: Vec<Expr>,
        /// A value of the buffer's dtype.
        value: Expr,
        /// The statement that a run-time error names, for example if an index here or in the value is out of range.
        site: Site,
    },
    /// `var = value` in the statement `body`.
    Let {
        /// The variable.
        var: VarId,
        /// The variable's value, evaluated once.
        value: Expr,
        /// The statement in which the variable is defined.
        body: Box<Stmt>,
    },
    /// `if condition: … else: …`.
    If {
        /// A `bool`.
        condition: Expr,
        /// The statement that is executed if the condition is true.
        then: Box<Stmt>,
        /// The statement that is executed if the condition is false.
        otherwise: Option<Box<Stmt>>,
    },
    /// `while condition: …`.
    While {
        /// A `bool`, evaluated before each iteration.
        condition: Expr,
        /// The statement of each iteration.
        body: Box<Stmt>,
    },
    /// Stops execution with the error `message` if the condition is false.
    Assert {
        /// A `bool`.
        condition: Expr,
        /// The error message.
        message: Name,
        /// The position of the assertion.
        site: Site,
    },
    /// An expression that is evaluated only for its checks. While a function is parsed, also a placeholder
    /// ([`crate::placeholders`]).
    Evaluate(Expr),
}

/// The execution order of a loop's iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// Sequential.
    Serial,
    /// Parallel, in any order.
    Parallel,
    /// In vector lanes.
    Vectorized,
    /// Sequential, with the body repeated for each iteration.
    Unrolled,
    /// Each iteration is a thread or thread block of this axis, such as `blockIdx.x`. On a CPU, and for a `vthread`
    /// axis, a sequential loop.
    ThreadBinding(Name),
}

/// A block. The enclosing loops bind its axes, and execute one instance of it for each of their iterations.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Block {
    /// The block's name, for example the operator's, or the one in the text. It may be empty.
    pub name: Name,
    /// The block's axes.
    pub iters: Vec<Iter>,
    /// The predicate: instances where it is false are not executed (`T.where`).
    pub predicate: Option<Expr>,
    /// The buffers that the block allocates. Their contents are undefined at its start.
    pub allocations: Vec<BufferId>,
    /// The statement that is executed before the body if all reduction axes have their first values (`T.init`).
    pub init: Option<Stmt>,
    /// The statement of each instance.
    pub body: Stmt,
}

/// An axis of a block.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Iter {
    /// The axis's variable.
    pub var: VarId,
    /// The dependence between the instances along the axis.
    pub kind: IterKind,
    /// The variable's first value.
    pub start: Expr,
    /// The number of values.
    pub extent: Expr,
    /// The axis's value, an expression over variables that are defined outside the block.
    pub binding: Expr,
}

/// The kind of a block's axis: the dependence between instances along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// Instances write different elements and may run in any order (`T.axis.spatial`).
    Spatial,
    /// Instances update the same elements (`T.axis.reduce`).
    Reduce,
    /// Instances may depend on the previous ones (`T.axis.scan`, `T.axis.opaque`).
    Ordered,
}

/// The position and operator that a run-time error names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Site {
    /// The Relax binding or prim_func statement, if known.
    pub origin: Option<Origin>,
    /// The operator, the innermost named block or the prim_func.
    pub operator: Name,
}

impl Block {
    /// Whether the block only allocates buffers: it has no axes, predicate and init.
    pub fn only_holds(&self) -> bool {
        self.iters.is_empty() && self.predicate.is_none() && self.init.is_none()
    }

    /// Whether the block is a root block, which allocates the function's buffers: it is named `root` and has no axes,
    /// predicate and init.
    pub fn is_root(&self) -> bool {
        self.name == "root" && self.only_holds()
    }

    /// Returns the block's `init` under the condition that all reduction axes have their first values (TVM
    /// `src/s_tir/transform/lower_init_block.cc`). The condition compares the axes' bindings; the init still uses the
    /// axes' variables. Returns `None` if the block has no `init`.
    pub fn beginning(&self) -> Option<Stmt> {
        let init = self.init.clone()?;
        let reduced = self.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
        let first = reduced.fold(Expr::bool(true), |first, iter| {
            let start = iter.start.clone().cast(iter.binding.dtype());
            if iter.binding == start { first } else { first.and(iter.binding.clone().eq(start)) }
        });
        Some(Stmt::when(first, init))
    }
}

impl Stmt {
    /// Returns the empty sequence.
    pub const fn nothing() -> Stmt {
        Stmt::Seq(Vec::new())
    }

    /// Whether the statement is [`Stmt::nothing`].
    pub fn is_nothing(&self) -> bool {
        matches!(self, Stmt::Seq(parts) if parts.is_empty())
    }

    /// Wraps a statement in a block with this name that only allocates buffers.
    pub fn holding(name: Name, allocations: Vec<BufferId>, body: Stmt) -> Stmt {
        let (iters, predicate, init) = (Vec::new(), None, None);
        Stmt::Block(Box::new(Block { name, iters, predicate, allocations, init, body }))
    }

    /// Builds a sequence. A member that is a sequence itself is replaced by its statements. A single statement is
    /// returned as it is.
    pub fn seq(statements: impl IntoIterator<Item = Stmt>) -> Stmt {
        let mut flat = Vec::new();
        for statement in statements {
            match statement {
                Stmt::Seq(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() == 1 { flat.swap_remove(0) } else { Stmt::Seq(flat) }
    }

    /// Wraps a function's body in a block named `root` that allocates these buffers, as in TVM. Returns the body as it
    /// is if there are none.
    pub fn with_buffers(allocations: Vec<BufferId>, body: Stmt) -> Stmt {
        if allocations.is_empty() {
            return body;
        }
        Stmt::holding(Name::from("root"), allocations, body)
    }

    /// Builds `if condition: then`. Folds constant conditions.
    pub fn when(condition: Expr, then: Stmt) -> Stmt {
        match condition.as_int() {
            Some(0) => Stmt::nothing(),
            Some(_) => then,
            None => Stmt::If { condition, then: Box::new(then), otherwise: None },
        }
    }

    /// Builds a serial loop from 0.
    pub fn for_loop(var: VarId, extent: Expr, body: Stmt) -> Stmt {
        let start = Expr::Int { value: 0, dtype: extent.dtype() };
        Stmt::For { var, start, extent, kind: LoopKind::Serial, body: Box::new(body) }
    }

    /// Returns the direct child statements.
    pub fn children(&self) -> SmallVec<[&Stmt; 4]> {
        match self {
            Stmt::Seq(statements) => statements.iter().collect(),
            Stmt::For { body, .. } | Stmt::Let { body, .. } | Stmt::While { body, .. } => smallvec![&**body],
            Stmt::Block(block) => block.init.iter().chain([&block.body]).collect(),
            Stmt::If { then, otherwise, .. } => {
                std::iter::once(&**then).chain(otherwise.iter().map(|part| &**part)).collect()
            }
            Stmt::Store { .. } | Stmt::Assert { .. } | Stmt::Evaluate(_) => SmallVec::new(),
        }
    }

    /// Returns the statement's own expressions; for a block, those of its axes and predicate.
    pub fn expressions(&self) -> SmallVec<[&Expr; 4]> {
        match self {
            Stmt::Seq(_) => SmallVec::new(),
            Stmt::For { start, extent, .. } => smallvec![start, extent],
            Stmt::Block(block) => {
                let iters = block.iters.iter().flat_map(|iter| [&iter.start, &iter.extent, &iter.binding]);
                iters.chain(&block.predicate).collect()
            }
            Stmt::Store { indices, value, .. } => indices.iter().chain([value]).collect(),
            Stmt::Let { value, .. } | Stmt::Evaluate(value) => smallvec![value],
            Stmt::If { condition, .. } | Stmt::While { condition, .. } | Stmt::Assert { condition, .. } => {
                smallvec![condition]
            }
        }
    }

    /// Returns the site for run-time errors in the statement's own expressions: its own site, otherwise the first site
    /// inside it.
    pub fn first_site(&self) -> Option<Site> {
        match self {
            Stmt::Store { site, .. } | Stmt::Assert { site, .. } => Some(*site),
            other => other.children().into_iter().find_map(Stmt::first_site),
        }
    }

    /// Whether some statement in it, itself included, passes a test.
    pub fn any(&self, test: &dyn Fn(&Stmt) -> bool) -> bool {
        test(self) || self.children().into_iter().any(|child| child.any(test))
    }

    /// Calls `visit` on every statement in it, itself included, outermost first.
    pub fn walk<'s>(&'s self, visit: &mut impl FnMut(&'s Stmt)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }
}
