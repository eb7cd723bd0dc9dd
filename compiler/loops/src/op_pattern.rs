//! *Operator pattern analysis*: classifies prim_funcs for fusion.
//!
//! [`op_pattern`] follows TVM's `src/relax/analysis/tir_op_pattern_kind.cc` rule by rule, since fusion must decide
//! alike for functions from TVM and from here. It classifies each block by how the indices of its loads relate to the
//! indices of its store. For example, `C[i, j] = A[i, j] + B[j]` is elementwise, and `C[i, j] = A[j, i]` is injective.
//! As in TVM, indices are compared by identity: two uses of a variable are the same index, two equal sums are not.
//!
//! [`is_spatial`] is the test of the lowering steps, which may fuse more than TVM does. The two differ:
//!
//! | function | `op_pattern` | `is_spatial` |
//! |---|---|---|
//! | gather: an index is read from memory | `Opaque` | yes |
//! | concatenation: a load under a condition, at `i - 4` | `Injective` | yes |
//! | a sum of no axis, with an `init` | `Elementwise` | no |
//! | a block with a predicate | as without it | no |

use rx_tir::{BinaryOp, Block, BufferId, Expr, IterKind, PrimFunc, Stmt, VarId};

/// The fusion class of a function (TVM `include/tvm/relax/op_attr_types.h`), from the least to the most restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpPattern {
    /// Each element is computed from the elements at the same indices. Further operands may be repeated along axes that
    /// they lack.
    Elementwise = 0,
    /// Each element is computed from operands that are repeated along axes that they lack.
    Broadcast = 1,
    /// Each element is computed from elements whose indices are functions of its own indices: a transposition, a slice,
    /// a concatenation.
    Injective = 2,
    /// A reduction along whole axes.
    CommutativeReduction = 3,
    /// A product, a window or a softmax: element-wise operations on its result can be fused into it.
    OutElementwiseFusable = 4,
    /// A tuple.
    Tuple = 7,
    /// A function of another kind, which `FuseOps` does not fuse.
    Opaque = 8,
}

impl OpPattern {
    /// Returns the pattern of the attribute `op_pattern` of a prim_func. Numbers that are no pattern of a prim_func
    /// give [`OpPattern::Opaque`].
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

    /// Returns the number of the pattern in the attribute `op_pattern`.
    pub const fn number(self) -> i64 {
        self as i64
    }
}

/// Classifies a prim_func.
pub fn op_pattern(func: &PrimFunc) -> OpPattern {
    let mut analyzer = Analyzer { func, pattern: OpPattern::Elementwise, store: None, loads: Vec::new() };
    analyzer.stmt(&func.body);
    analyzer.pattern
}

/// Whether every block has spatial axes only, no init and no predicate, and allocates buffers only if it has no axes,
/// so that an element may be computed where it is read. This holds for most functions of at most
/// [`OpPattern::Injective`], and for some others. It does not hold for a function with statements other than sequences,
/// loops, blocks and stores.
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
    /// The block's last store so far. A store at other indices than the previous one's is not recorded: it makes the
    /// function opaque.
    store: Option<Access<'f>>,
    /// The block's loads.
    loads: Vec<Access<'f>>,
}

impl<'f> Analyzer<'f> {
    fn stmt(&mut self, stmt: &'f Stmt) {
        match stmt {
            Stmt::Block(block) if block.name == "root" => self.stmt(&block.body),
            Stmt::Block(block) => self.block(block),
            Stmt::Store { buffer, indices, .. } => {
                // This analysis covers blocks that store one element. A store at other indices than the previous one's
                // makes the function opaque.
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
            // A reduction, and then a block that writes a parameter: for example, a softmax.
            Some(_) if self.pattern == OpPattern::CommutativeReduction && self.writes_parameter(&block.body) => {
                self.pattern = OpPattern::OutElementwiseFusable;
            }
            Some(pattern) => self.pattern = self.pattern.max(pattern),
            None => self.reduction(block, store),
        }
    }

    /// Classifies the loads against the store's indices. Returns `None` if a load neither has the store's indices nor
    /// is a broadcast or injective ([`is_injective`]).
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
        // `A[i, j] + B[i]` is classified as elementwise, since one operand is.
        Some(if pattern == OpPattern::Broadcast && has_elementwise { OpPattern::Elementwise } else { pattern })
    }

    /// Whether the load's indices are a subsequence of the store's, in which an index may be repeated. Indices 0 of
    /// axes of extent 1 are ignored.
    fn is_broadcast(&self, store: Access<'_>, load: Access<'_>) -> bool {
        let mut left = store.indices;
        let shape = &self.func.buffer(load.buffer).shape;
        load.indices.iter().zip(shape).all(|(index, extent)| {
            let is_unit = extent.as_int() == Some(1) && index.as_int() == Some(0);
            let next = left.iter().position(|stored| same_index(stored, index));
            // The same store index may match again: `B[i, i]`.
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
            // A windowed reduction, such as pooling.
            false => OpPattern::OutElementwiseFusable,
        };
        self.pattern = self.pattern.max(pattern);
    }
}

/// Whether two indices are the same variable.
fn same_index(a: &Expr, b: &Expr) -> bool {
    matches!((a, b), (Expr::Var { var: a, .. }, Expr::Var { var: b, .. }) if a == b)
}

fn same_indices(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_index(a, b))
}

/// Returns the variables that index the store, or `None` if an index is not a variable.
fn variables(store: Access<'_>) -> Option<Vec<VarId>> {
    let variable = |index: &Expr| match index {
        Expr::Var { var, .. } => Some(*var),
        _ => None,
    };
    store.indices.iter().map(variable).collect()
}

/// Whether all indices of the store are variables, and the load's indices are computed from these alone. An index that
/// is itself loaded is not: to TVM, the buffer of such a load is one more variable.
fn is_injective(store: Access<'_>, load: Access<'_>) -> bool {
    let Some(stored) = variables(store) else { return false };
    let is_stored = |part: &Expr| match part {
        Expr::Var { var, .. } => stored.contains(var),
        part => !matches!(part, Expr::Load { .. }),
    };
    load.indices.iter().all(|index| index.all(&is_stored))
}

/// Whether one loaded element contributes to several stored elements, because some index variable of the store does not
/// occur in the load.
fn is_reused(store: Access<'_>, load: Access<'_>) -> bool {
    variables(store).is_some_and(|stored| stored.iter().any(|var| !load.indices.iter().any(|index| index.uses(*var))))
}

/// Whether the index either mentions no reduction variable or is just a variable.
fn is_whole_axis(index: &Expr, reduced: &[VarId]) -> bool {
    let mentions = reduced.iter().any(|var| index.uses(*var));
    !mentions || matches!(index, Expr::Var { .. })
}

/// Whether a block adds a product of two loads to the stored element, which is the left operand of the sum, and each
/// load lacks an index variable of the store. For example, `C[i, j] = C[i, j] + A[i, k] * B[j, k]`. Casts are ignored.
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
