//! Classification of prim_funcs for fusion: which kind of operator one is.
//!
//! [`op_pattern`] is TVM's `src/relax/analysis/tir_op_pattern_kind.cc`, rule by rule: what two passes decide of one function must
//! agree, whoever made it. Each block is judged by how the indices of what it loads follow from those of what it stores. Indices
//! are compared as TVM compares them, by identity: two variables are the same index, two sums are not.
//!
//! [`is_spatial`] is asked by the steps that lead to kernels, which may join more than TVM does. The two differ:
//!
//! | function | `op_pattern` | `is_spatial` |
//! |---|---|---|
//! | gather: an index is read from memory | `Opaque` | yes |
//! | concatenation: a load under a condition, at `i - 4` | `Injective` | yes |
//! | a sum of no axis, with an `init` | `Elementwise` | no |
//! | a block with a predicate | as without it | no |

use rx_tir::{BinaryOp, Block, BufferId, Expr, IterKind, PrimFunc, Stmt, VarId};

/// What fusion may do with a function (TVM `include/tvm/relax/op_attr_types.h`). A later one may do less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpPattern {
    /// Each element is made of those at the same place.
    Elementwise = 0,
    /// Each element is made of those at the same place, operands repeated along axes they lack.
    Broadcast = 1,
    /// Each element is made of elements at places that its own place tells.
    Injective = 2,
    /// A reduction along whole axes.
    CommutativeReduction = 3,
    /// A product, a window, a softmax: what is done with each element of the result can be done at once.
    OutElementwiseFusable = 4,
    /// A tuple.
    Tuple = 7,
    /// What must stay alone.
    Opaque = 8,
}

impl OpPattern {
    /// What `op_pattern` of a prim_func says; what is no kind of a prim_func must stay alone.
    pub const fn of_number(number: i64) -> OpPattern {
        match number {
            0 => OpPattern::Elementwise,
            1 => OpPattern::Broadcast,
            2 => OpPattern::Injective,
            3 => OpPattern::CommutativeReduction,
            4 => OpPattern::OutElementwiseFusable,
            _ => OpPattern::Opaque,
        }
    }

    /// The number that stands for it in `op_pattern`.
    pub const fn number(self) -> i64 {
        self as i64
    }
}

/// What kind of operator a prim_func is.
pub fn op_pattern(func: &PrimFunc) -> OpPattern {
    let mut analyzer = Analyzer { func, pattern: OpPattern::Elementwise, store: None, loads: Vec::new() };
    analyzer.stmt(&func.body);
    analyzer.pattern
}

/// Whether every block computes elements one by one, from nothing the function itself computes: each may be computed where it is
/// read. That holds of every function of at most [`OpPattern::Injective`] without predicates and first values, and of others.
pub fn is_spatial(func: &PrimFunc) -> bool {
    !func.body.any(&|stmt| match stmt {
        Stmt::Block(block) => {
            block.iters.iter().any(|iter| iter.kind != IterKind::Spatial)
                || block.init.is_some()
                || block.predicate.is_some()
                || !block.allocations.is_empty() && !block.iters.is_empty()
        }
        Stmt::Seq(_) | Stmt::For { .. } | Stmt::Store { .. } => false,
        _ => true,
    })
}

/// An element that is loaded or stored.
#[derive(Clone, Copy)]
struct Access<'f> {
    buffer: BufferId,
    indices: &'f [Expr],
}

struct Analyzer<'f> {
    func: &'f PrimFunc,
    pattern: OpPattern,
    /// What the block stores last.
    store: Option<Access<'f>>,
    /// What it loads.
    loads: Vec<Access<'f>>,
}

impl<'f> Analyzer<'f> {
    fn stmt(&mut self, stmt: &'f Stmt) {
        match stmt {
            Stmt::Block(block) if block.name == "root" => self.stmt(&block.body),
            Stmt::Block(block) => self.block(block),
            Stmt::Store { buffer, indices, .. } => {
                // A block stores one element; another element makes it more than this analysis knows.
                if self.store.is_some_and(|store| !same_indices(indices, store.indices)) {
                    self.pattern = OpPattern::Opaque;
                    return;
                }
                self.store = Some(Access { buffer: *buffer, indices });
                stmt.expressions().into_iter().for_each(|expr| self.loads_of(expr));
            }
            other => {
                other.expressions().into_iter().for_each(|expr| self.loads_of(expr));
                other.children().into_iter().for_each(|child| self.stmt(child));
            }
        }
    }

    fn loads_of(&mut self, expr: &'f Expr) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices, .. } = part {
                self.loads.push(Access { buffer: *buffer, indices });
            }
        });
    }

    fn block(&mut self, block: &'f Block) {
        self.loads.clear();
        self.store = None;
        self.stmt(&block.body);
        let Some(store) = self.store else {
            self.pattern = OpPattern::Opaque;
            return;
        };
        match self.index_pattern(store) {
            // A reduction whose result is then spread out: softmax.
            Some(_) if self.pattern == OpPattern::CommutativeReduction && self.writes_parameter(&block.body) => {
                self.pattern = OpPattern::OutElementwiseFusable;
            }
            Some(pattern) => self.pattern = self.pattern.max(pattern),
            None => self.reduction(block, store),
        }
    }

    /// How what is loaded stands to what is stored; nothing where an index is neither of the store's variables nor made of
    /// them.
    fn index_pattern(&self, store: Access<'_>) -> Option<OpPattern> {
        let mut pattern = OpPattern::Elementwise;
        let mut has_elementwise = false;
        for load in &self.loads {
            if same_indices(store.indices, load.indices) {
                has_elementwise = true;
            } else if self.is_broadcast(store, *load) {
                pattern = pattern.max(OpPattern::Broadcast);
            } else if is_injective(store, *load) {
                pattern = pattern.max(OpPattern::Injective);
            } else {
                return None;
            }
        }
        // `A[i, j] + B[i]` is as good as elementwise.
        Some(if pattern == OpPattern::Broadcast && has_elementwise { OpPattern::Elementwise } else { pattern })
    }

    /// Whether the load's indices are some of the store's, in order, but for axes of extent 1.
    fn is_broadcast(&self, store: Access<'_>, load: Access<'_>) -> bool {
        let mut left = store.indices;
        let shape = &self.func.buffer(load.buffer).shape;
        load.indices.iter().zip(shape).all(|(index, extent)| {
            let is_unit = extent.as_int() == Some(1) && index.as_int() == Some(0);
            let next = left.iter().position(|stored| same_index(stored, index));
            // The one that is found may be found again: `B[i, i]`.
            left = next.and_then(|at| left.get(at..)).unwrap_or(if is_unit { left } else { &[] });
            is_unit || next.is_some()
        })
    }

    fn writes_parameter(&self, body: &Stmt) -> bool {
        let is_param = |buffer: BufferId| self.func.buffer_params().any(|param| param == buffer);
        body.any(&|stmt| matches!(stmt, Stmt::Store { buffer, .. } if is_param(*buffer)))
    }

    fn reduction(&mut self, block: &Block, store: Access<'_>) {
        let reduced: Vec<VarId> =
            block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce).map(|iter| iter.var).collect();
        let is_pure = |load: &Access<'_>| load.indices.iter().all(|index| is_whole_axis(index, &reduced));
        let pattern = match reduced.is_empty() {
            true => OpPattern::Opaque,
            false if is_multiply_add(&block.body, store) => OpPattern::OutElementwiseFusable,
            false if self.loads.iter().all(is_pure) => OpPattern::CommutativeReduction,
            // A window: pooling.
            false => OpPattern::OutElementwiseFusable,
        };
        self.pattern = self.pattern.max(pattern);
    }
}

/// Whether two indices are one: the same variable.
fn same_index(a: &Expr, b: &Expr) -> bool {
    matches!((a, b), (Expr::Var { var: a, .. }, Expr::Var { var: b, .. }) if a == b)
}

fn same_indices(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_index(a, b))
}

/// The variables that the store is indexed by; nothing where it is indexed by anything else.
fn variables(store: Access<'_>) -> Option<Vec<VarId>> {
    let variable = |index: &Expr| match index {
        Expr::Var { var, .. } => Some(*var),
        _ => None,
    };
    store.indices.iter().map(variable).collect()
}

/// Whether the load's indices are made of the store's alone. To TVM a buffer is a variable, too: an index that is loaded is made of
/// another.
fn is_injective(store: Access<'_>, load: Access<'_>) -> bool {
    let Some(stored) = variables(store) else { return false };
    let is_stored = |part: &Expr| match part {
        Expr::Var { var, .. } => stored.contains(var),
        part => !matches!(part, Expr::Load { .. }),
    };
    load.indices.iter().all(|index| index.all(&is_stored))
}

/// Whether an element of the load serves several of the store: an index of the store is none of the load's.
fn is_reused(store: Access<'_>, load: Access<'_>) -> bool {
    variables(store).is_some_and(|stored| stored.iter().any(|var| !load.indices.iter().any(|index| index.uses(*var))))
}

/// Whether an index that mentions a reduced variable is that variable.
fn is_whole_axis(index: &Expr, reduced: &[VarId]) -> bool {
    let mentions = reduced.iter().any(|var| index.uses(*var));
    !mentions || matches!(index, Expr::Var { .. })
}

/// Whether a block is `C[i, j] = C[i, j] + A[i, k] * B[j, k]`, conversions aside.
fn is_multiply_add(body: &Stmt, store: Access<'_>) -> bool {
    let Stmt::Store { value, .. } = body else { return false };
    let Expr::Binary { op: BinaryOp::Add, left, right } = without_casts(value) else { return false };
    let Expr::Binary { op: BinaryOp::Mul, left: a, right: b } = without_casts(right) else { return false };
    let accumulates = matches!(without_casts(left), Expr::Load { buffer, indices, .. }
        if *buffer == store.buffer && same_indices(indices, store.indices));
    let reused = |factor: &Expr| match without_casts(factor) {
        Expr::Load { buffer, indices, .. } => is_reused(store, Access { buffer: *buffer, indices }),
        _ => false,
    };
    accumulates && reused(a) && reused(b)
}

fn without_casts(mut expr: &Expr) -> &Expr {
    while let Expr::Cast { value, .. } = expr {
        expr = value;
    }
    expr
}
