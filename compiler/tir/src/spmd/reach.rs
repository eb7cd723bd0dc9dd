//! Block axes for enclosing loops, as TVMScript requires: a block with axes uses only its axes and those of enclosing
//! blocks.
//!
//! ```text
//! for i in range(4):                       for i in range(4):
//!     with T.sblock("b"):                      with T.sblock("b"):
//!         vj = T.axis.spatial(8, 0)   ->           vj = T.axis.spatial(8, 0)
//!         B[i, vj] = A[i, vj]                      vi = T.axis.opaque(4, i)
//!                                                  B[vi, vj] = A[vi, vj]
//! ```

use crate::expr::Expr;
use crate::func::{PrimFunc, VarId};
use crate::rewrite::{map_children, map_stmt, substitute};
use crate::stmt::{Block, Iter, IterKind, LoopKind, Stmt};
use rustc_hash::FxHashSet;

/// A loop around a statement.
#[derive(Clone)]
struct Loop {
    var: VarId,
    start: Expr,
    extent: Expr,
    kind: LoopKind,
}

/// For each block with axes, adds an axis for each enclosing loop whose variable its init or body uses, up to the next
/// enclosing block with axes. Returns the new body.
pub(super) fn with_axes_for_loops(func: &mut PrimFunc, body: &Stmt) -> Stmt {
    Reach { func, loops: Vec::new() }.stmt(body)
}

struct Reach<'f> {
    func: &'f mut PrimFunc,
    /// The loops between the statement and the next enclosing block with axes, outermost first.
    loops: Vec<Loop>,
}

impl Reach<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For { var, start, extent, kind, .. } => {
                self.loops.push(Loop { var: *var, start: start.clone(), extent: extent.clone(), kind: *kind });
                let made = self.inside(stmt);
                self.loops.pop();
                made
            }
            Stmt::Block(block) if !block.iters.is_empty() => {
                let block = self.block(block);
                let around = std::mem::take(&mut self.loops);
                let made = self.inside(&Stmt::Block(Box::new(block)));
                self.loops = around;
                made
            }
            other => self.inside(other),
        }
    }

    fn inside(&mut self, stmt: &Stmt) -> Stmt {
        map_children(stmt, &mut |child| self.stmt(child))
    }

    /// Returns the block with axes in place of the loop variables that its init and body use.
    fn block(&mut self, block: &Block) -> Block {
        let mut named = FxHashSet::default();
        for part in block.init.iter().chain([&block.body]) {
            part.walk(&mut |stmt| {
                for expr in stmt.expressions() {
                    expr.walk(&mut |part| {
                        if let Expr::Var { var, .. } = part {
                            named.insert(*var);
                        }
                    });
                }
            });
        }
        let mut made = block.clone();
        let mut axes = Vec::new();
        for around in self.loops.iter().filter(|around| named.contains(&around.var)) {
            let of = self.func.var(around.var);
            let (name, dtype) = (of.name, of.dtype);
            let var = self.func.add_var(name, dtype);
            let kind = match (around.kind, &block.init) {
                // The iterations of a sequential loop may depend on the previous ones.
                (LoopKind::Serial | LoopKind::Unrolled, None) => IterKind::Ordered,
                _ => IterKind::Spatial,
            };
            let binding = self.func.var_expr(around.var);
            made.iters.push(Iter { var, kind, start: around.start.clone(), extent: around.extent.clone(), binding });
            axes.push((around.var, self.func.var_expr(var)));
        }
        let value = |var: VarId| axes.iter().find(|(of, _)| *of == var).map(|(_, axis)| axis.clone());
        let mut renamed = |stmt: &Stmt| map_stmt(stmt, &mut |expr| substitute(expr, &value));
        made.init = made.init.as_ref().map(&mut renamed);
        made.body = renamed(&made.body);
        made
    }
}
