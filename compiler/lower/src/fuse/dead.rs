//! Dead code elimination: removes instructions, kernel outputs and stores whose results nothing reads.
//!
//! ```text
//! r1, r2 = kernel split(r0)                    r2 = kernel split'(r0)
//! r3 = kernel relu(r2)                 →       r3 = kernel relu(r2)
//! return r3                                    return r3
//! ```
//!
//! Type checks, effects and function calls, for example, remain even if nothing reads their results. An `if` remains,
//! without the dead code of its branches. Reference: TVM's `src/relax/transform/dead_code_elimination.cc`.

use super::{Context, Rewrite};
use crate::program::{Instruction, Operation, Output, Procedure, Program};
use crate::queries::rewritten;
use rx_tir::func::{BufferId, Param, PrimFunc};
use rx_tir::rewrite::map_children;
use rx_tir::{Expr, Stmt};

/// Removes dead instructions and, where possible, the kernel outputs that nothing reads.
pub(super) fn remove(procedure: &mut Procedure, program: &mut Program, context: &Context<'_>) {
    let mut read = vec![false; procedure.types.len()];
    read[procedure.result.0 as usize] = true;
    procedure.code = block(std::mem::take(&mut procedure.code), &mut read, program, context);
}

/// Removes the dead instructions of a block, last to first. On entry, `read` marks the registers that are read after
/// the block.
fn block(
    mut code: Vec<Instruction>,
    read: &mut Vec<bool>,
    program: &mut Program,
    context: &Context<'_>,
) -> Vec<Instruction> {
    let mut is_kept = vec![false; code.len()];
    for (instruction, is_kept) in code.iter_mut().zip(&mut is_kept).rev() {
        match &mut instruction.operation {
            Operation::Kernel { kernel, inputs, outputs, .. } => {
                let is_dead = |output: &Output| !read[output.to.0 as usize];
                if outputs.iter().all(is_dead) {
                    continue;
                }
                if outputs.iter().any(is_dead) {
                    let own = program.kernel(*kernel);
                    let (loops, dead) = (own.loops.clone(), outputs.iter().map(is_dead).collect());
                    let rewrite = Rewrite::WithoutOutputs { loops, inputs: inputs.len(), dead };
                    if let Some(loops) = rewritten(context.queries, &rewrite) {
                        outputs.retain(|output| !is_dead(output));
                        *kernel = program.add_kernel(own.with(loops));
                    }
                }
            }
            Operation::View { to, .. }
            | Operation::Copy { to, .. }
            | Operation::Constant { to, .. }
            | Operation::Tuple { to, .. }
            | Operation::Field { to, .. }
            | Operation::Shape { to, .. }
            | Operation::Scalar { to, .. }
            | Operation::String { to, .. }
            | Operation::Null { to }
            | Operation::Host { to, effect: false, .. }
            | Operation::Closure { to, .. } => {
                if !read[to.0 as usize] {
                    continue;
                }
            }
            Operation::If { arms, otherwise, .. } => {
                read[otherwise.result.0 as usize] = true;
                otherwise.code = block(std::mem::take(&mut otherwise.code), read, program, context);
                for (condition, register, branch) in arms {
                    read[branch.result.0 as usize] = true;
                    branch.code = block(std::mem::take(&mut branch.code), read, program, context);
                    read[register.0 as usize] = true;
                    *condition = block(std::mem::take(condition), read, program, context);
                }
            }
            // Type checks, effects and function calls remain, because they may have an effect or end the run. `Bound`
            // remains, because it reports its value.
            Operation::Match { .. }
            | Operation::Bound { .. }
            | Operation::Host { .. }
            | Operation::Call { .. }
            | Operation::Dynamic { .. }
            | Operation::CallClosure { .. } => {}
        }
        instruction.operation.for_each_read(&mut |register| read[register.0 as usize] = true);
        *is_kept = true;
    }
    let mut is_kept = is_kept.into_iter();
    code.retain(|_| is_kept.next().unwrap_or(true));
    code
}

/// Turns the `dead` outputs of a function into temporaries and removes stores to temporaries that are never loaded.
/// Returns `None` where a symbol takes its value from an extent of a dead output only.
pub(super) fn without_outputs(func: &PrimFunc, inputs: usize, dead: &[bool]) -> Option<PrimFunc> {
    let mut result = func.clone();
    let outputs: Vec<BufferId> = func.buffer_params().skip(inputs).collect();
    let gone: Vec<BufferId> = outputs.iter().zip(dead).filter(|(_, dead)| **dead).map(|(buffer, _)| *buffer).collect();
    result.params.retain(|param| !matches!(param, Param::Buffer(buffer) if gone.contains(buffer)));
    let symbols_known = result.symbols.iter().all(|symbol| result.is_parameter_extent(*symbol));
    if !symbols_known {
        return None;
    }
    result.body = Stmt::with_buffers(gone, result.body);
    Some(without_dead_stores(result))
}

/// Removes stores to temporaries that are never loaded, until there are none.
pub(super) fn without_dead_stores(mut func: PrimFunc) -> PrimFunc {
    loop {
        let mut loaded = vec![false; func.buffers.len()];
        for param in func.buffer_params() {
            loaded[param.0 as usize] = true;
        }
        func.body.walk(&mut |stmt| {
            // A load in a store to the same buffer (such as `t[i] = t[i] + x`) does not keep the buffer alive.
            let own = match stmt {
                Stmt::Store { buffer, .. } => Some(*buffer),
                _ => None,
            };
            for expr in stmt.expressions() {
                expr.walk(&mut |part| {
                    if let Expr::Load { buffer, .. } = part
                        && Some(*buffer) != own
                    {
                        loaded[buffer.0 as usize] = true;
                    }
                });
            }
        });
        let mut removed = false;
        func.body = prune(&func.body, &loaded, &mut removed);
        if !removed {
            return func;
        }
    }
}

/// Removes the stores to buffers that are not `loaded`, the allocations of these buffers, and the `for` loops, lets and
/// blocks that become empty.
fn prune(stmt: &Stmt, loaded: &[bool], removed: &mut bool) -> Stmt {
    if let Stmt::Store { buffer, .. } = stmt
        && !loaded[buffer.0 as usize]
    {
        *removed = true;
        return Stmt::nothing();
    }
    match map_children(stmt, &mut |child| prune(child, loaded, removed)) {
        Stmt::Seq(statements) => Stmt::seq(statements.into_iter().filter(|statement| !statement.is_nothing())),
        Stmt::For { ref body, .. } | Stmt::Let { ref body, .. } if body.is_nothing() => Stmt::nothing(),
        Stmt::Block(mut block) => {
            block.init = block.init.take().filter(|init| !init.is_nothing());
            block.allocations.retain(|buffer| loaded[buffer.0 as usize]);
            match block.body.is_nothing() && block.init.is_none() {
                true => Stmt::nothing(),
                false => Stmt::Block(block),
            }
        }
        other => other,
    }
}
