//! Canonical numbering of variables and buffers, so that functions can be compared and hashed independently of how they
//! were built.

use crate::expr::Expr;
use crate::func::{Buffer, BufferId, Param, PrimFunc, Var, VarId};
use crate::stmt::Stmt;

/// Renumbers variables and buffers in the order in which they are first mentioned, parameters first, and removes those
/// that are never mentioned. Functions that differ only in their numbering become equal.
pub fn renumber(func: &PrimFunc) -> PrimFunc {
    let mut names = Renumber {
        from: func,
        vars: vec![None; func.vars.len()],
        buffers: vec![None; func.buffers.len()],
        new_vars: Vec::new(),
        new_buffers: Vec::new(),
    };
    let params = func
        .params
        .iter()
        .map(|param| match param {
            Param::Buffer(buffer) => Param::Buffer(names.buffer(*buffer)),
            Param::Scalar(var) => Param::Scalar(names.var(*var)),
            Param::Handle(handle) => Param::Handle(*handle),
        })
        .collect();
    let mut body = func.body.clone();
    names.stmt(&mut body);
    let mentioned = func.symbols.iter().filter_map(|symbol| names.vars.get(symbol.0 as usize).copied().flatten());
    let mut symbols: Vec<VarId> = mentioned.collect();
    symbols.sort_unstable();
    PrimFunc {
        name: func.name,
        params,
        symbols,
        vars: names.new_vars,
        buffers: names.new_buffers,
        body,
        origins: func.origins.clone(),
    }
}

struct Renumber<'f> {
    from: &'f PrimFunc,
    vars: Vec<Option<VarId>>,
    buffers: Vec<Option<BufferId>>,
    new_vars: Vec<Var>,
    new_buffers: Vec<Buffer>,
}

impl Renumber<'_> {
    fn var(&mut self, id: VarId) -> VarId {
        let from = self.from;
        let (Some(slot), Some(var)) = (self.vars.get_mut(id.0 as usize), from.vars.get(id.0 as usize)) else {
            return id;
        };
        *slot.get_or_insert_with(|| {
            self.new_vars.push(*var);
            VarId(self.new_vars.len() as u32 - 1)
        })
    }

    fn buffer(&mut self, id: BufferId) -> BufferId {
        let from = self.from;
        let (Some(slot), Some(buffer)) = (self.buffers.get_mut(id.0 as usize), from.buffers.get(id.0 as usize)) else {
            return id;
        };
        if let Some(known) = slot {
            return *known;
        }
        let at = self.new_buffers.len();
        *slot = Some(BufferId(at as u32));
        self.new_buffers.push(buffer.clone());
        let mut renamed = buffer.clone();
        renamed.shape.iter_mut().for_each(|dim| self.expr(dim));
        renamed.strides.iter_mut().flatten().for_each(|stride| self.expr(stride));
        self.new_buffers[at] = renamed;
        BufferId(at as u32)
    }

    fn expr(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Int { .. } | Expr::Float { .. } => {}
            Expr::Var { var, .. } => *var = self.var(*var),
            Expr::Load { buffer, indices, .. } => {
                *buffer = self.buffer(*buffer);
                indices.iter_mut().for_each(|index| self.expr(index));
            }
            Expr::Cast { value, .. } | Expr::Unary { value, .. } => self.expr(value),
            Expr::Checked { index, extent, buffer, .. } => {
                *buffer = self.buffer(*buffer);
                self.expr(index);
                self.expr(extent);
            }
            Expr::Binary { left, right, .. } | Expr::Compare { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            Expr::Select { condition, then, otherwise } => {
                self.expr(condition);
                self.expr(then);
                self.expr(otherwise);
            }
            Expr::Call { args, .. } => args.iter_mut().for_each(|arg| self.expr(arg)),
        }
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Seq(statements) => statements.iter_mut().for_each(|statement| self.stmt(statement)),
            Stmt::For { var, start, extent, body, .. } => {
                self.expr(start);
                self.expr(extent);
                *var = self.var(*var);
                self.stmt(body);
            }
            Stmt::Block(block) => {
                for iter in &mut block.iters {
                    self.expr(&mut iter.start);
                    self.expr(&mut iter.extent);
                    self.expr(&mut iter.binding);
                    iter.var = self.var(iter.var);
                }
                block.predicate.iter_mut().for_each(|predicate| self.expr(predicate));
                block.allocations.iter_mut().for_each(|buffer| *buffer = self.buffer(*buffer));
                block.init.iter_mut().for_each(|init| self.stmt(init));
                self.stmt(&mut block.body);
            }
            Stmt::Store { buffer, indices, value, .. } => {
                *buffer = self.buffer(*buffer);
                indices.iter_mut().for_each(|index| self.expr(index));
                self.expr(value);
            }
            Stmt::Let { var, value, body } => {
                self.expr(value);
                *var = self.var(*var);
                self.stmt(body);
            }
            Stmt::If { condition, then, otherwise } => {
                self.expr(condition);
                self.stmt(then);
                otherwise.iter_mut().for_each(|part| self.stmt(part));
            }
            Stmt::While { condition, body } => {
                self.expr(condition);
                self.stmt(body);
            }
            Stmt::Assert { condition, .. } => self.expr(condition),
            Stmt::Evaluate(value) => self.expr(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::renumber;
    use crate::{Expr, KernelBuilder};
    use rx_base::name::name;
    use rx_base::{DType, Dim};

    #[test]
    fn numbering_ignores_the_order_of_creation() {
        let build = |unused: bool| {
            let mut builder = KernelBuilder::new(name("f"));
            if unused {
                builder.buffer("unused", &[Dim::symbol(name("m"))], DType::INT8);
            }
            let input = builder.param("x", &[Dim::symbol(name("n"))], DType::FLOAT32);
            let output = builder.param("y", &[Dim::symbol(name("n"))], DType::FLOAT32);
            builder.compute(output, |builder, axes| builder.load(input, axes) * Expr::number(2.0, DType::FLOAT32));
            let mut func = builder.finish();
            func.params.truncate(2);
            func
        };
        assert_ne!(build(true), build(false));
        assert_eq!(renumber(&build(true)), renumber(&build(false)));
    }
}
