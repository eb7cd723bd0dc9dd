//! Printing of statements.

use super::{Printer, quoted};
use crate::expr::{BinaryOp, Expr};
use crate::func::VarId;
use crate::stmt::{Block, Iter, IterKind, LoopKind, Stmt};

impl<'f> Printer<'f> {
    /// Prints a body. An empty one is `T.evaluate(0)`.
    pub(super) fn body(&mut self, stmt: &'f Stmt) {
        match stmt {
            Stmt::Seq(statements) if statements.is_empty() => self.line("T.evaluate(0)"),
            Stmt::Seq(statements) => statements.iter().for_each(|statement| self.stmt(statement)),
            other => self.stmt(other),
        }
    }

    fn stmt(&mut self, stmt: &'f Stmt) {
        match stmt {
            Stmt::Seq(statements) => statements.iter().for_each(|statement| self.stmt(statement)),
            Stmt::For { .. } => self.loops(stmt),
            Stmt::Block(block) => self.block(block),
            Stmt::Store { buffer, indices, value, .. } => {
                let indices = if indices.is_empty() { "()".to_owned() } else { self.list(indices) };
                let line = format!("{}[{indices}] = {}", self.buffer(*buffer), self.expr(value));
                self.line(&line);
            }
            Stmt::Let { var, value, body } => {
                let value = self.expr(value);
                let line = format!("{}: T.let[T.{}] = {value}", self.define_var(*var), self.func.var(*var).dtype);
                self.line(&line);
                self.body(body);
            }
            Stmt::If { condition, then, otherwise } => self.branch("if", condition, then, otherwise.as_deref()),
            Stmt::While { condition, body } => {
                let line = format!("while {}:", self.expr(condition));
                self.line(&line);
                self.indented(|printer| printer.body(body));
            }
            Stmt::Assert { condition, message, .. } => {
                let condition = self.expr(condition);
                self.line(&format!("assert {condition}, (\"RuntimeError\", [{}])", quoted(message)));
            }
            Stmt::Evaluate(value) => {
                let line = format!("T.evaluate({})", self.expr(value));
                self.line(&line);
            }
        }
    }

    fn branch(&mut self, keyword: &str, condition: &Expr, then: &'f Stmt, otherwise: Option<&'f Stmt>) {
        let line = format!("{keyword} {}:", self.expr(condition));
        self.line(&line);
        self.indented(|printer| printer.body(then));
        match otherwise {
            None => {}
            Some(Stmt::If { condition, then, otherwise }) => {
                self.branch("elif", condition, then, otherwise.as_deref());
            }
            Some(otherwise) => {
                self.line("else:");
                self.indented(|printer| printer.body(otherwise));
            }
        }
    }

    /// Prints a loop, or nested loops as one `T.grid` if they are serial, start at 0, and have extents that do not
    /// depend on each other.
    fn loops(&mut self, outermost: &'f Stmt) {
        let mut nest: Vec<(VarId, &'f Expr, &'f Expr, LoopKind)> = Vec::new();
        let mut inner = outermost;
        while let Stmt::For { var, start, extent, kind, body } = inner {
            let in_grid = *kind == LoopKind::Serial && start.as_int() == Some(0);
            let depends = nest.iter().any(|(outer, ..)| extent.uses(*outer));
            if !nest.is_empty() && (!in_grid || depends) {
                break;
            }
            nest.push((*var, start, extent, *kind));
            inner = body;
            if !in_grid {
                break;
            }
        }
        let ranges: Vec<String> =
            nest.iter().map(|(_, start, extent, kind)| self.range(start, extent, *kind)).collect();
        let range = match (&ranges[..], &nest[..]) {
            ([only], _) => only.clone(),
            _ => format!(
                "T.grid({})",
                nest.iter().map(|(_, _, extent, _)| self.expr(extent)).collect::<Vec<_>>().join(", ")
            ),
        };
        let mark = self.names.mark();
        let names: Vec<String> = nest.iter().map(|(var, ..)| self.define_var(*var)).collect();
        for (var, start, extent, _) in &nest {
            self.ranges.insert(*var, (start, extent));
        }
        self.line(&format!("for {} in {range}:", names.join(", ")));
        self.indented(|printer| printer.body(inner));
        self.names.release(mark);
    }

    fn range(&self, start: &Expr, extent: &Expr, kind: LoopKind) -> String {
        let bounds = match start.as_int() {
            Some(0) => self.expr(extent),
            _ => format!("{}, {}", self.expr(start), self.stop(start, extent)),
        };
        match kind {
            LoopKind::Serial => format!("range({bounds})"),
            LoopKind::Parallel => format!("T.parallel({bounds})"),
            LoopKind::Vectorized => format!("T.vectorized({bounds})"),
            LoopKind::Unrolled => format!("T.unroll({bounds})"),
            LoopKind::ThreadBinding(thread) => format!("T.thread_binding({bounds}, thread={})", quoted(&thread)),
        }
    }

    /// Returns `start + extent` in a form from which the parser derives the same extent.
    fn stop(&self, start: &Expr, extent: &Expr) -> String {
        if let (Some(a), Some(b)) = (start.as_int(), extent.as_int())
            && let Some(value) = a.checked_add(b)
        {
            return self.expr(&Expr::Int { value, dtype: start.dtype() });
        }
        if let Expr::Binary { op: BinaryOp::Sub, left, right } = extent
            && **right == *start
            && !matches!(&**left, Expr::Binary { op: BinaryOp::Add, left, .. } if **left == *start)
        {
            return self.expr(left);
        }
        let (left, right) = (Box::new(start.clone()), Box::new(extent.clone()));
        self.expr(&Expr::Binary { op: BinaryOp::Add, left, right })
    }

    fn block(&mut self, block: &'f Block) {
        self.line(&format!("with T.sblock({}):", quoted(&block.name)));
        self.indented(|printer| {
            printer.axes(&block.iters);
            if let Some(predicate) = &block.predicate {
                let line = format!("T.where({})", printer.expr(predicate));
                printer.line(&line);
            }
            printer.allocations(block);
            if let Some(init) = &block.init {
                printer.line("with T.init():");
                printer.indented(|printer| printer.body(init));
            }
            printer.body(&block.body);
        });
    }

    /// Prints block axes: two or more consecutive axes that are just loops by one `T.axis.remap`, all others one by
    /// one.
    fn axes(&mut self, iters: &[Iter]) {
        let mut rest = iters;
        while let Some((first, after)) = rest.split_first() {
            let count = rest.iter().take_while(|iter| self.is_loop(iter)).count();
            if count < 2 {
                self.axis(first);
                rest = after;
                continue;
            }
            let (run, after) = rest.split_at(count);
            let kinds: String = run.iter().map(|iter| if iter.kind == IterKind::Spatial { 'S' } else { 'R' }).collect();
            let bindings: Vec<String> = run.iter().map(|iter| self.expr(&iter.binding)).collect();
            let names: Vec<String> = run.iter().map(|iter| self.define_var(iter.var)).collect();
            self.line(&format!("{} = T.axis.remap(\"{kinds}\", [{}])", names.join(", "), bindings.join(", ")));
            rest = after;
        }
    }

    /// Whether a spatial or reduction axis is bound to a loop with the same start and extent.
    fn is_loop(&self, iter: &Iter) -> bool {
        let Expr::Var { var, .. } = &iter.binding else { return false };
        let same = self.ranges.get(var).is_some_and(|(start, extent)| **start == iter.start && **extent == iter.extent);
        same && iter.kind != IterKind::Ordered
    }

    fn axis(&mut self, iter: &Iter) {
        let kind = match iter.kind {
            IterKind::Spatial => "spatial",
            IterKind::Reduce => "reduce",
            IterKind::Ordered => "opaque",
        };
        let domain = match iter.start.as_int() {
            Some(0) => self.expr(&iter.extent),
            _ => format!("({}, {})", self.expr(&iter.start), self.stop(&iter.start, &iter.extent)),
        };
        let binding = self.expr(&iter.binding);
        let line = format!("{} = T.axis.{kind}({domain}, {binding})", self.define_var(iter.var));
        self.line(&line);
    }
}
