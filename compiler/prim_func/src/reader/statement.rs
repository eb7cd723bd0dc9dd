//! Reads bodies: sequences of statements, some of which bind a value for the rest of the body.

use super::leave::left_by;
use super::trace::Event;
use super::tree::Node;
use super::value::Value;
use super::{DEEPEST, Outcome, Reader};
use rx_base::name::name;
use rx_base::{Code, Name};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, StatementKind, TokenRange};
use rx_syntax::{At, Cursor};
use rx_tir::leave::Leave;
use rx_tir::{BinaryOp as Op, BufferId, Expr, LoopKind, Stmt, VarId};

/// A binder whose body is the rest of the enclosing body or, in a `with`, the rest of the `with`.
pub(super) enum Binder {
    /// A new variable with a value, for example `x: T.let[…] = value`.
    Let { var: VarId, value: Expr },
    /// A thread axis, for example `bx = T.launch_thread("blockIdx.x", extent)`.
    Launch { var: VarId, extent: Expr, kind: LoopKind },
}

impl Binder {
    pub(super) fn around(self, body: Stmt) -> Stmt {
        let body = Box::new(body);
        match self {
            Binder::Let { var, value } => Stmt::Let { var, value, body },
            Binder::Launch { var, extent, kind } => {
                let start = Expr::Int { value: 0, dtype: extent.dtype() };
                Stmt::For { var, start, extent, kind, body }
            }
        }
    }
}

/// The result of reading a statement.
pub(super) enum Step {
    /// A complete statement; empty if the text adds none to the IR, for example a declaration.
    Done(Stmt),
    /// A binder that encloses the rest of the body.
    Open(Binder),
}

impl Step {
    pub(super) const NOTHING: Step = Step::Done(Stmt::nothing());
}

/// A body under construction.
#[derive(Default)]
pub(super) struct Sequence {
    /// The open binders, each with the statements between the previous binder and it.
    pub(super) open: Vec<(Vec<Stmt>, Binder)>,
    /// The statements after the last binder.
    pub(super) current: Vec<Stmt>,
}

impl Reader<'_> {
    /// Reads the function's body. Buffers allocated in it belong to a block named `root`, as in TVM.
    pub(super) fn function_body(&mut self, nodes: &[Node<'_>]) -> Outcome<Stmt> {
        self.scopes.push(Default::default());
        let outcome = self.owning_body(nodes);
        self.scopes.pop();
        let (body, allocations) = outcome?;
        Ok(block_of(name("root"), allocations, body))
    }

    /// Reads a body in a new scope. Buffers allocated in it belong to a block around it.
    pub(super) fn body(&mut self, at: At<'_>, nodes: &[Node<'_>]) -> Outcome<Stmt> {
        let (body, allocations) =
            self.deeper(at, |reader| reader.noted(|reader| reader.scoped(|reader| reader.owning_body(nodes))))?;
        // The block is named after the enclosing operator, which diagnostics name.
        Ok(block_of(self.site().operator, allocations, body))
    }

    /// Reads a body, and returns it with the buffers allocated in it.
    pub(super) fn owning_body(&mut self, nodes: &[Node<'_>]) -> Outcome<(Stmt, Vec<BufferId>)> {
        self.allocations.push(Vec::new());
        let reducer = self.reducer.clone();
        let body = self.sequence(nodes);
        self.reducer = reducer;
        let allocations = self.allocations.pop().unwrap_or_default();
        Ok((body?, allocations))
    }

    fn sequence(&mut self, nodes: &[Node<'_>]) -> Outcome<Stmt> {
        let mut sequence = Sequence::default();
        self.read_into(nodes, &mut sequence)?;
        let Sequence { mut open, current } = sequence;
        let mut body = Stmt::seq(current);
        while let Some((mut before, binder)) = open.pop() {
            before.push(binder.around(body));
            body = Stmt::seq(before);
        }
        Ok(body)
    }

    /// Reads statements and appends them to a body.
    pub(super) fn read_into(&mut self, nodes: &[Node<'_>], body: &mut Sequence) -> Outcome<()> {
        let mut rest = nodes;
        while let Some((node, after)) = rest.split_first() {
            let branches = after.iter().take_while(|node| is_branch(&node.kind)).count();
            let (branches, after) = after.split_at(branches);
            rest = after;
            self.stand_at(node);
            if let Some(after) = self.macro_definition(node, after) {
                rest = after;
                continue;
            }
            if self.expansion(node, body)? {
                continue;
            }
            match self.step(node, branches)? {
                Step::Done(statement) => body.current.push(statement),
                Step::Open(binder) => {
                    body.open.push((std::mem::take(&mut body.current), binder));
                    if body.open.len() + self.depth > DEEPEST {
                        let tokens = TokenRange::one(0);
                        let message = format!("the function nests more than {DEEPEST} binders");
                        return self.mistake(node.cursor.at(tokens), Code::NestingTooDeep, message);
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a statement the current one: sets its segment and its index. While a macro of another item is expanded,
    /// the index remains that of the call.
    pub(super) fn stand_at(&mut self, node: &Node<'_>) {
        self.segment = node.segment;
        if self.macros.outside().is_none() {
            self.statement = node.index;
        }
    }

    /// Reads a statement. In a trace, a statement that cannot be read is recorded as unread.
    fn step(&mut self, node: &Node<'_>, branches: &[Node<'_>]) -> Outcome<Step> {
        if !self.is_tracing() {
            return self.statement(node, branches);
        }
        let before = self.standing();
        let outcome = self.statement(node, branches);
        outcome.or_else(|mistake| {
            self.pass_over(&before, std::iter::once(node).chain(branches), *mistake);
            Ok(Step::NOTHING)
        })
    }

    fn statement(&mut self, node: &Node<'_>, branches: &[Node<'_>]) -> Outcome<Step> {
        let cursor = node.cursor;
        let whole = TokenRange::one(0);
        if let Some(wrong) = &node.wrong {
            return self.mistake(cursor.at(wrong.tokens), wrong.code, wrong.message.clone());
        }
        match &*node.kind {
            StatementKind::Assign { targets, value } => match &targets[..] {
                [target] => self.assign(cursor, target, value),
                _ => self.unsupported(cursor.at(value.tokens), "several targets of one value"),
            },
            StatementKind::AnnAssign { target, annotation, value } => {
                self.annotated(cursor, target, annotation, value.as_ref())
            }
            StatementKind::AugAssign { target, op, value } => self.changed(cursor, target, *op, value),
            StatementKind::Expr(expr) => self.bare(cursor, expr),
            StatementKind::For { target, iter } => self.for_loop(node, target, iter).map(Step::Done),
            StatementKind::While(test) => {
                let read = |reader: &mut Self| reader.body(cursor.at(test.tokens), &node.children);
                self.while_loop(cursor, test, read).map(Step::Done)
            }
            StatementKind::If(test) => self.branch(node, test, branches).map(Step::Done),
            StatementKind::With(items) => self.with(node, items).map(Step::Done),
            StatementKind::Assert { test, message } => self.assert(cursor, test, message.as_ref()).map(Step::Done),
            StatementKind::Pass => Ok(Step::NOTHING),
            StatementKind::Return(None) => self.leave(cursor.at(whole), Leave::Return),
            StatementKind::Return(Some(value)) => {
                self.unsupported(cursor.at(value.tokens), "a prim_func's return value")
            }
            StatementKind::Break => self.leave(cursor.at(whole), Leave::Break),
            StatementKind::Continue => self.leave(cursor.at(whole), Leave::Continue),
            StatementKind::Elif(_) | StatementKind::Else => {
                self.mistake(cursor.at(whole), Code::MisplacedStatement, "this branch has no `if`")
            }
            StatementKind::Def { .. } | StatementKind::Decorator(_) => {
                self.unsupported(cursor.at(whole), "functions inside a prim_func")
            }
            _ => self.unsupported(cursor.at(whole), "this statement in a prim_func"),
        }
    }

    /// Reads an `if` with its following branches. An `elif` is an `if` in the `else` branch of the one before.
    fn branch(&mut self, node: &Node<'_>, test: &Tree, branches: &[Node<'_>]) -> Outcome<Stmt> {
        let test_value = self.value(node.cursor, test)?;
        let constant = if let Value::Bool(holds) = &test_value { Some(*holds) } else { None };
        if constant.is_some() {
            self.note_incomplete();
        }
        if let (Some(holds), true) = (constant, self.macros.is_open()) {
            return self.chosen(node, test, branches, holds);
        }
        let condition = self.truth(node.cursor.at(test.tokens), test_value)?;
        let then = |reader: &mut Self| reader.body(node.cursor.at(test.tokens), &node.children);
        let then = Box::new(self.assuming(Some(&condition), true, then)?);
        let otherwise = match branches.split_first() {
            None => None,
            Some((next, rest)) => {
                self.stand_at(next);
                let read = |reader: &mut Self| match &*next.kind {
                    StatementKind::Elif(test) => reader.branch(next, test, rest),
                    _ => reader.body(next.cursor.at(TokenRange::one(0)), &next.children),
                };
                let inner =
                    self.deeper(node.cursor.at(test.tokens), |reader| reader.assuming(Some(&condition), false, read))?;
                Some(Box::new(inner))
            }
        };
        // A test that is a Python bool selects a branch during translation.
        Ok(match constant {
            Some(true) => *then,
            Some(false) => otherwise.map_or(Stmt::nothing(), |part| *part),
            None => Stmt::If { condition, then, otherwise },
        })
    }

    /// Reads only the selected branch of a test in a macro that is a Python bool, such as a comparison of parameters;
    /// the other branches may be invalid for the passed arguments. Reading them would also make a recursive macro such
    /// as `if depth > 0: visit(depth - 1)` endless.
    fn chosen(&mut self, node: &Node<'_>, test: &Tree, branches: &[Node<'_>], holds: bool) -> Outcome<Stmt> {
        if holds {
            return self.body(node.cursor.at(test.tokens), &node.children);
        }
        let Some((next, rest)) = branches.split_first() else { return Ok(Stmt::nothing()) };
        self.stand_at(next);
        match &*next.kind {
            StatementKind::Elif(test) => {
                self.deeper(next.cursor.at(test.tokens), |reader| reader.branch(next, test, rest))
            }
            _ => self.body(next.cursor.at(TokenRange::one(0)), &next.children),
        }
    }

    fn assert(&mut self, cursor: Cursor<'_>, test: &Tree, message: Option<&Tree>) -> Outcome<Stmt> {
        let condition = self.truth_of(cursor, test)?;
        let mut text = String::new();
        if let Some(message) = message {
            let value = self.value(cursor, message)?;
            collect_text(&value, &mut text);
            // In `("RuntimeError", ["message"])` the first part is the kind of Python exception.
            if let Value::Many(parts) = &value
                && let [Value::Text(kind), Value::Many(_)] = &parts[..]
            {
                text = text.split_off(kind.len());
            }
        }
        self.note(|_| Event::Assume { condition: condition.clone(), holds: true });
        Ok(Stmt::Assert { condition, message: name(&text), site: self.site() })
    }

    /// Reads an expression statement: a string or `...` without effect, a call of a `T.` function that is a statement
    /// by itself (such as `T.reads`, `T.where` or `T.tvm_storage_sync`), or an evaluation.
    fn bare(&mut self, cursor: Cursor<'_>, expr: &Tree) -> Outcome<Step> {
        let called = match &expr.kind {
            ExprKind::String | ExprKind::Ellipsis => return Ok(Step::NOTHING),
            ExprKind::Call { callee, arguments } => self.tir_member(cursor, callee).zip(Some(arguments)),
            _ => None,
        };
        let Some((member, arguments)) = called else { return self.evaluation(cursor, expr) };
        let first = arguments.first().map(|argument| &argument.value);
        if let Some(of) = left_by(member) {
            return self.leave(cursor.at(expr.tokens), of);
        }
        match (member, first) {
            // Declarations. Most of them do not affect values.
            (
                "reads" | "writes" | "func_attr" | "sblock_attr" | "attr" | "assume" | "device_entry" | "func_name"
                | "hint" | "func_ret" | "static_assert",
                _,
            ) => self.attribute_statement(cursor, expr, member, arguments),
            ("tvm_storage_sync", _) => self.storage_sync(cursor.at(expr.tokens), arguments),
            ("tvm_thread_allreduce", _) => self.thread_all_reduce(cursor.at(expr.tokens), arguments),
            ("tvm_fill_fragment" | "tvm_load_matrix_sync" | "tvm_store_matrix_sync" | "tvm_mma_sync", _) => {
                self.warp_matrix(cursor.at(expr.tokens), member, arguments)
            }
            ("where", Some(predicate)) => {
                let predicate = self.truth_of(cursor, predicate)?;
                self.note(|_| Event::Assume { condition: predicate.clone(), holds: true });
                match self.frames.last_mut() {
                    Some(frame) => frame.add_predicate(predicate),
                    None => {
                        return self.mistake(
                            cursor.at(expr.tokens),
                            Code::MisplacedStatement,
                            "`T.where` must be inside a block",
                        );
                    }
                }
                Ok(Step::NOTHING)
            }
            ("evaluate", Some(value)) => {
                if let ExprKind::Call { callee, arguments } = &value.kind {
                    match self.tir_member(cursor, callee) {
                        Some("assume") => return self.attribute_statement(cursor, value, "assume", arguments),
                        Some(
                            "tvm_storage_sync"
                            | "tvm_thread_allreduce"
                            | "tvm_fill_fragment"
                            | "tvm_load_matrix_sync"
                            | "tvm_store_matrix_sync"
                            | "tvm_mma_sync",
                        ) => return self.bare(cursor, value),
                        Some(member) if left_by(member).is_some() => return self.bare(cursor, value),
                        _ => {}
                    }
                }
                match self.value(cursor, value)? {
                    // An evaluated pointer has no effect.
                    Value::Handle(_) | Value::Pointer(_) => Ok(Step::NOTHING),
                    made => Ok(Step::Done(evaluated(self.scalar(cursor.at(value.tokens), made)?))),
                }
            }
            ("Assert", Some(test)) => {
                let message = arguments.get(1).map(|argument| &argument.value);
                self.assert(cursor, test, message).map(Step::Done)
            }
            ("buffer_store", Some(buffer)) => match &arguments[..] {
                [_, value, index, ..] => {
                    // The list of indices is read like a tuple between brackets.
                    let index = match &index.value.kind {
                        ExprKind::List(items) => {
                            Tree { kind: ExprKind::Tuple(items.clone()), tokens: index.value.tokens }
                        }
                        _ => index.value.clone(),
                    };
                    self.store(cursor, buffer, &index, &value.value).map(Step::Done)
                }
                _ => self.mistake(cursor.at(expr.tokens), Code::MissingArgument, "`T.buffer_store` requires an index"),
            },
            ("launch_thread", _) => {
                let (binder, _) = self.launch_thread(cursor.at(expr.tokens), None, arguments)?;
                Ok(Step::Open(binder))
            }
            _ => self.evaluation(cursor, expr),
        }
    }

    fn evaluation(&mut self, cursor: Cursor<'_>, expr: &Tree) -> Outcome<Step> {
        self.scalar_of(cursor, expr).map(|value| Step::Done(evaluated(value)))
    }

    /// Reads attributes, regions and assumptions, which have no effect on values. Three keys of
    /// `T.attr(node, key, value)` are exceptions: "thread_extent" and "virtual_thread" are unsupported, and
    /// "reduce_scope" sets the operation of cross-thread reductions.
    pub(super) fn attribute_statement(
        &mut self,
        cursor: Cursor<'_>,
        expr: &Tree,
        member: &str,
        arguments: &[Argument],
    ) -> Outcome<Step> {
        match member {
            "reads" | "writes" => self.note_regions(cursor.at(expr.tokens), member == "writes", arguments),
            "assume" => self.note_assumed(cursor, arguments),
            _ => {}
        }
        let key = arguments.get(1).and_then(|argument| cursor.string_value(&argument.value));
        match key.as_deref() {
            Some(key @ ("thread_extent" | "virtual_thread")) if member == "attr" => {
                self.unsupported(cursor.at(expr.tokens), &format!("the attribute \"{key}\"; write `T.launch_thread`"))
            }
            Some("reduce_scope") if member == "attr" => self.reduce_scope(cursor, &arguments[0].value),
            _ => Ok(Step::NOTHING),
        }
    }

    /// Returns `a - b` after promotion, for extents of loops and regions. Simplifies `b + extent - b` to `extent`.
    pub(super) fn difference(&mut self, at: At<'_>, a: Expr, b: Expr) -> Outcome<Expr> {
        let (a, b) = self.promoted(at, a, b)?;
        // The end of a loop that does not begin at 0 is printed as `start + extent`.
        match a {
            Expr::Binary { op: Op::Add, left, right } if *left == b => Ok(*right),
            a => Ok(a - b),
        }
    }
}

/// Returns the statement that evaluates a value; an empty one for constants and variables.
fn evaluated(value: Expr) -> Stmt {
    match value {
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } => Stmt::nothing(),
        value => Stmt::Evaluate(value),
    }
}

/// Wraps a body in a block that owns the allocated buffers; a function's explicit `root` block gets them itself.
/// Returns the body unchanged if there are none.
fn block_of(label: Name, allocations: Vec<BufferId>, body: Stmt) -> Stmt {
    match (allocations.is_empty(), body) {
        (true, body) => body,
        // The function's only block may be the explicit `root` block.
        (false, Stmt::Block(mut block)) if label == "root" && block.is_root() => {
            let mut all = allocations;
            all.append(&mut block.allocations);
            block.allocations = all;
            Stmt::Block(block)
        }
        (false, body) => Stmt::holding(label, allocations, body),
    }
}

fn is_branch(kind: &StatementKind) -> bool {
    matches!(kind, StatementKind::Elif(_) | StatementKind::Else)
}

fn collect_text(value: &Value, into: &mut String) {
    match value {
        Value::Text(text) => into.push_str(text),
        Value::Many(parts) => parts.iter().for_each(|part| collect_text(part, into)),
        _ => {}
    }
}
