//! Statements: loops, blocks, stores.

use crate::expr::Expr;
use crate::func::{BufferId, VarId};
use rx_base::Name;
use rx_ir::Origin;
use smallvec::{SmallVec, smallvec};

/// A statement.
#[derive(Clone, Debug, PartialEq, Hash)]
pub enum Stmt {
    /// One after the other; none is nothing.
    Seq(Vec<Stmt>),
    /// `for var in range(start, start + extent)`.
    For {
        /// The loop's variable, an integer.
        var: VarId,
        /// Its first value.
        start: Expr,
        /// How many values; none where it is not positive.
        extent: Expr,
        /// How its iterations may run.
        kind: LoopKind,
        /// What is done for each.
        body: Box<Stmt>,
    },
    /// `with T.sblock(…)`.
    Block(Box<Block>),
    /// `buffer[indices] = value`.
    Store {
        /// The buffer.
        buffer: BufferId,
        /// One integer per dim.
        indices: Vec<Expr>,
        /// A value of the buffer's dtype.
        value: Expr,
        /// What to name when an index is out of range, here or in the value.
        site: Site,
    },
    /// `var = value` for the rest of the enclosing sequence's body given here.
    Let {
        /// The variable.
        var: VarId,
        /// Its value.
        value: Expr,
        /// Where it holds.
        body: Box<Stmt>,
    },
    /// `if condition: … else: …`.
    If {
        /// A `bool`.
        condition: Expr,
        /// Done where it holds.
        then: Box<Stmt>,
        /// Done where it does not.
        otherwise: Option<Box<Stmt>>,
    },
    /// `while condition: …`.
    While {
        /// A `bool`, evaluated before each round.
        condition: Expr,
        /// The round.
        body: Box<Stmt>,
    },
    /// Ends the run with `message` where the condition does not hold.
    Assert {
        /// A `bool`.
        condition: Expr,
        /// What is said.
        message: Name,
        /// Where it is written.
        site: Site,
    },
    /// An expression for nothing but its checks.
    Evaluate(Expr),
}

/// How a loop's iterations may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// In order.
    Serial,
    /// At once.
    Parallel,
    /// In vector lanes.
    Vectorized,
    /// Written out.
    Unrolled,
    /// Each on a thread of this axis: `blockIdx.x`. On a CPU, a loop.
    ThreadBinding(Name),
}

/// A block: one instance of its axes' values, as loops around it bind them.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Block {
    /// Its name: the operator's, or the one written.
    pub name: Name,
    /// Its axes.
    pub iters: Vec<Iter>,
    /// Instances where it does not hold are left out (`T.where`).
    pub predicate: Option<Expr>,
    /// Buffers that live in it; contents are undefined at its start.
    pub allocations: Vec<BufferId>,
    /// Done before the body where all reduction axes are at their first values (`T.init`).
    pub init: Option<Stmt>,
    /// What it does.
    pub body: Stmt,
}

/// A block's axis.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Iter {
    /// Its variable.
    pub var: VarId,
    /// What it is for.
    pub kind: IterKind,
    /// Its first value.
    pub start: Expr,
    /// How many values it takes.
    pub extent: Expr,
    /// Its value in terms of the loops.
    pub binding: Expr,
}

/// What a block's axis is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// Instances write different elements and may run in any order (`T.axis.spatial`).
    Spatial,
    /// Instances update the same elements (`T.axis.reduce`).
    Reduce,
    /// Instances depend on the ones before (`T.axis.scan`, `T.axis.opaque`).
    Ordered,
}

/// What a run-time error names: where in the program and which operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Site {
    /// The Relax binding or prim_func statement, where known.
    pub origin: Option<Origin>,
    /// The operator or block.
    pub operator: Name,
}

impl Block {
    /// Whether it does nothing but hold buffers.
    pub fn only_holds(&self) -> bool {
        self.iters.is_empty() && self.predicate.is_none() && self.init.is_none()
    }

    /// Whether it does nothing but hold a function's buffers.
    pub fn is_root(&self) -> bool {
        self.name == "root" && self.only_holds()
    }

    /// What its `init` does, as a statement in the loops around it: done where all reduction axes are at their first
    /// values (TVM src/s_tir/transform/lower_init_block.cc); none where it has no `init`.
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
    /// Nothing.
    pub const fn nothing() -> Stmt {
        Stmt::Seq(Vec::new())
    }

    /// Whether it is [`Stmt::nothing`].
    pub fn is_nothing(&self) -> bool {
        matches!(self, Stmt::Seq(parts) if parts.is_empty())
    }

    /// A statement in a block of this name that does nothing but hold buffers.
    pub fn holding(name: Name, allocations: Vec<BufferId>, body: Stmt) -> Stmt {
        let (iters, predicate, init) = (Vec::new(), None, None);
        Stmt::Block(Box::new(Block { name, iters, predicate, allocations, init, body }))
    }

    /// The statements in order, flat; one alone is itself.
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

    /// A function's body, in a block called `root` that these buffers live in, as in TVM; itself where there are none.
    pub fn with_buffers(allocations: Vec<BufferId>, body: Stmt) -> Stmt {
        if allocations.is_empty() {
            return body;
        }
        Stmt::holding(Name::from("root"), allocations, body)
    }

    /// A statement that is done where a condition holds.
    pub fn when(condition: Expr, then: Stmt) -> Stmt {
        match condition.as_int() {
            Some(0) => Stmt::nothing(),
            Some(_) => then,
            None => Stmt::If { condition, then: Box::new(then), otherwise: None },
        }
    }

    /// A loop from 0.
    pub fn for_loop(var: VarId, extent: Expr, body: Stmt) -> Stmt {
        let start = Expr::Int { value: 0, dtype: extent.dtype() };
        Stmt::For { var, start, extent, kind: LoopKind::Serial, body: Box::new(body) }
    }

    /// The statements directly in it.
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

    /// The expressions directly in it; of a block, of its axes and predicate.
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

    /// Whether a statement in it, itself included, passes a test.
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
