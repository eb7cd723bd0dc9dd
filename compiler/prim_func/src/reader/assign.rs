//! Reads assignments: to elements, to variables, and of calls that create buffers, axes and threads.

use super::signature::names_in;
use super::statement::{Binder, Step};
use super::trace::{Access, Event};
use super::value::{Value, View};
use super::{Outcome, Reader};
use rx_base::name::name;
use rx_base::{Code, DType, Diagnostic, Fix, Name};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, BinaryOp, Expr as Tree, ExprKind, TokenRange};
use rx_tir::{BufferId, Expr, Scope, Stmt};

impl Reader<'_> {
    /// Reads `target = value`.
    pub(super) fn assign(&mut self, cursor: Cursor<'_>, target: &Tree, value: &Tree) -> Outcome<Step> {
        match (&target.kind, &value.kind) {
            (ExprKind::Subscript { value: buffer, index }, _) => {
                self.store(cursor, buffer, index, value).map(Step::Done)
            }
            (ExprKind::Tuple(targets), ExprKind::Tuple(values)) if targets.len() == values.len() => {
                // Python computes all values before it binds the first variable: `A, B = B, A` exchanges two buffers.
                for (at, value) in values.iter().enumerate() {
                    let read = names_in(cursor, value);
                    let earlier = targets.iter().take(at).filter(|target| matches!(target.kind, ExprKind::Name));
                    if earlier.map(|target| cursor.name(target.tokens.start)).any(|bound| read.contains(&bound)) {
                        return self.unsupported(
                            cursor.at(value.tokens),
                            "this assignment: a value reads a variable that it binds first",
                        );
                    }
                }
                for (target, value) in targets.iter().zip(values) {
                    match self.assign(cursor, target, value)? {
                        Step::Done(Stmt::Seq(nothing)) if nothing.is_empty() => {}
                        _ => return self.unsupported(cursor.at(target.tokens), "several variables bound at once"),
                    }
                }
                Ok(Step::NOTHING)
            }
            (ExprKind::Tuple(_) | ExprKind::List(_), _) => self.assign_axes(cursor, target, value),
            (ExprKind::Name, ExprKind::Call { callee, arguments }) => {
                let bound = cursor.name(target.tokens.start);
                if let Some(dtype) = self.declared_dtype(cursor, value) {
                    let declared = self.declare(bound, dtype);
                    self.bind(bound, Value::Expr(declared));
                    return Ok(Step::NOTHING);
                }
                match self.tir_member(cursor, callee) {
                    Some(member) => self.assign_call(cursor, bound, member, target, value, arguments),
                    None => self.assign_value(cursor, bound, target, value),
                }
            }
            (ExprKind::Name, _) => self.assign_value(cursor, cursor.name(target.tokens.start), target, value),
            _ => self.unsupported(cursor.at(target.tokens), "an assignment to this"),
        }
    }

    /// Returns the variable that `n = T.int64()` declares: a known symbol, a scalar parameter that is declared again,
    /// or a new symbol.
    fn declare(&mut self, bound: Name, dtype: DType) -> Expr {
        match self.lookup(bound) {
            Some(Value::Expr(known @ Expr::Var { var, .. })) if self.symbols.contains(var) => known.clone(),
            // A scalar parameter may be declared again at the top of the body.
            Some(Value::Expr(known @ Expr::Var { .. })) if known.dtype() == dtype && self.scopes.len() == 2 => {
                known.clone()
            }
            _ => {
                let var = self.func.add_var(bound, dtype);
                self.symbols.push(var);
                self.func.var_expr(var)
            }
        }
    }

    /// Reads `x = T.member(…)`: a call that creates a buffer, axis, thread or variable; otherwise a value.
    fn assign_call(
        &mut self,
        cursor: Cursor<'_>,
        bound: Name,
        member: &str,
        target: &Tree,
        value: &Tree,
        arguments: &[Argument],
    ) -> Outcome<Step> {
        let tokens = value.tokens;
        let made = match member {
            "match_buffer" => self.match_buffer(cursor.at(tokens), bound, arguments)?,
            "alloc_buffer" | "sblock_alloc_buffer" => self.alloc_buffer(cursor.at(tokens), bound, None, arguments)?,
            "alloc_shared" | "smem" => self.alloc_buffer(cursor.at(tokens), bound, Some(Scope::Shared), arguments)?,
            "alloc_local" => self.alloc_buffer(cursor.at(tokens), bound, Some(Scope::Local), arguments)?,
            "decl_buffer" | "Buffer" | "buffer_decl" => self.decl_buffer(cursor.at(tokens), bound, arguments)?,
            "allocate" => self.allocate(cursor.at(tokens), bound, arguments)?,
            "env_thread" => match arguments.first().and_then(|argument| cursor.string_value(&argument.value)) {
                Some(tag) => Value::Thread(name(&tag)),
                None => return self.unsupported(cursor.at(tokens), "a thread without a name"),
            },
            "launch_thread" => {
                let (binder, value) = self.launch_thread(cursor.at(tokens), Some(bound), arguments)?;
                self.bind(bound, value);
                return Ok(Step::Open(binder));
            }
            "bind" | "Bind" | "let" if !arguments.is_empty() => {
                let scalar = self.scalar_of(cursor, &arguments[0].value)?;
                return Ok(Step::Open(self.let_binder(bound, scalar)));
            }
            "meta_var" if arguments.len() == 1 => self.value(cursor, &arguments[0].value)?,
            _ if member.starts_with("axis.") => return self.assign_axes(cursor, target, value),
            _ => return self.assign_value(cursor, bound, target, value),
        };
        self.bind(bound, made);
        Ok(Step::NOTHING)
    }

    /// Binds a new variable with this value for the rest of the body.
    pub(super) fn let_binder(&mut self, bound: Name, value: Expr) -> Binder {
        let var = self.func.add_var(bound, value.dtype());
        self.bind(bound, Value::Expr(self.func.var_expr(var)));
        self.note(|_| Event::Let { var, value: value.clone() });
        Binder::Let { var, value }
    }

    /// Reads `x = value`: a store if `x` is a cell or a buffer of shape `(1,)`, otherwise a new binding. A scalar
    /// becomes a variable, or a cell if the name is assigned again; other values, such as lists and buffers, are bound
    /// as they are.
    fn assign_value(&mut self, cursor: Cursor<'_>, bound: Name, target: &Tree, value: &Tree) -> Outcome<Step> {
        let known = self.lookup(bound).cloned();
        match known {
            Some(Value::Cell(buffer)) => {
                return self.store_cell(cursor, buffer, value).map(Step::Done);
            }
            Some(Value::Buffer(view)) if matches!(&view.shape[..], [one] if one.as_int() == Some(1)) => {
                let dtype = view.dtype;
                let value = self.stored_value_of(cursor, value, dtype)?;
                let zero = Expr::Int { value: 0, dtype: DType::INT32 };
                let indices = [(zero.clone(), target.tokens)];
                self.note_access(cursor.at(target.tokens), bound.as_str(), (&view, &indices), Some(Some(&value)));
                let (buffer, indices) = self.element(&view, vec![zero]);
                return Ok(Step::Done(Stmt::Store { buffer, indices, value, site: self.site() }));
            }
            _ => {}
        }
        let made = self.value(cursor, value)?;
        match made {
            Value::Expr(_) | Value::Cell(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                let scalar = self.scalar(cursor.at(value.tokens), made)?;
                if self.reassigned.contains_key(&bound) {
                    let dtype = scalar.dtype();
                    return Ok(Step::Done(self.new_cell(bound, dtype, Some(scalar))));
                }
                Ok(Step::Open(self.let_binder(bound, scalar)))
            }
            Value::Nothing => self.unsupported(cursor.at(target.tokens), "a variable without a value"),
            other => {
                self.bind(bound, other);
                Ok(Step::NOTHING)
            }
        }
    }

    fn new_cell(&mut self, bound: Name, dtype: DType, value: Option<Expr>) -> Stmt {
        let buffer = self.cell(bound, dtype);
        self.bind(bound, Value::Cell(buffer));
        value.map_or(Stmt::nothing(), |value| self.cell_store(buffer, value))
    }

    fn cell_store(&self, buffer: BufferId, value: Expr) -> Stmt {
        self.func.set_cell(buffer, value, self.site())
    }

    fn store_cell(&mut self, cursor: Cursor<'_>, buffer: BufferId, value: &Tree) -> Outcome<Stmt> {
        let dtype = self.func.buffer(buffer).dtype;
        let value = self.stored_value_of(cursor, value, dtype)?;
        Ok(self.cell_store(buffer, value))
    }

    /// Reads `x: T.let[T.int32] = value`, `x: T.let = value`, `x: T.int32 = value` or, without a value, the declaration
    /// `x: T.int32` of a cell.
    pub(super) fn annotated(
        &mut self,
        cursor: Cursor<'_>,
        target: &Tree,
        annotation: &Tree,
        value: Option<&Tree>,
    ) -> Outcome<Step> {
        let ExprKind::Name = target.kind else {
            return self.unsupported(cursor.at(target.tokens), "a type annotation on anything other than a variable");
        };
        let bound = cursor.name(target.tokens.start);
        let (is_let, dtype) = match &annotation.kind {
            ExprKind::Subscript { value: head, index } if self.tir_member(cursor, head) == Some("let") => {
                (true, Some(self.annotated_dtype(cursor, index)?))
            }
            _ if self.tir_member(cursor, annotation) == Some("let") => (true, None),
            _ => (false, Some(self.annotated_dtype(cursor, annotation)?)),
        };
        let Some(value) = value else {
            return match dtype {
                Some(dtype) if !is_let => Ok(Step::Done(self.new_cell(bound, dtype, None))),
                _ => self.mistake(cursor.at(target.tokens), Code::MissingArgument, "`T.let` requires a value"),
            };
        };
        let scalar = match dtype {
            Some(dtype) if is_let => self.let_value(cursor, value, bound, dtype)?,
            Some(dtype) => self.stored_value_of(cursor, value, dtype)?,
            None => self.scalar_of(cursor, value)?,
        };
        if !is_let && self.reassigned.contains_key(&bound) {
            let dtype = scalar.dtype();
            return Ok(Step::Done(self.new_cell(bound, dtype, Some(scalar))));
        }
        Ok(Step::Open(self.let_binder(bound, scalar)))
    }

    /// Reads the value of `bound: T.let[dtype]`. TVM does not convert it, so another dtype is reported.
    fn let_value(&mut self, cursor: Cursor<'_>, tree: &Tree, bound: Name, dtype: DType) -> Outcome<Expr> {
        let value = self.scalar_of(cursor, tree)?;
        let from = value.dtype();
        if from != dtype {
            let message = format!("`{bound}` has dtype {dtype}, its value has {from}: `T.let` does not convert");
            let source = cursor.source(tree.tokens);
            let wanted = match &value {
                Expr::Int { .. } | Expr::Float { .. } => format!("T.{dtype}({source})"),
                _ => format!("T.Cast(\"{dtype}\", {source})"),
            };
            let place = self.place(cursor.at(tree.tokens));
            let title = format!("write `{wanted}`");
            let fix = Fix { title: title.clone(), edits: vec![(place.clone(), wanted)], safe: false };
            self.keep_certain(Diagnostic::new(Code::DtypeMismatch, place, message).with_help(title).with_fix(fix));
        }
        Ok(value.cast(dtype))
    }

    fn annotated_dtype(&mut self, cursor: Cursor<'_>, annotation: &Tree) -> Outcome<DType> {
        let head = match &annotation.kind {
            ExprKind::Call { callee, .. } => callee,
            _ => annotation,
        };
        match self.tir_member(cursor, head).and_then(super::expr::dtype_named) {
            Some(dtype) if dtype.lanes == 1 => Ok(dtype),
            _ => self.unsupported(cursor.at(annotation.tokens), "a variable of this type"),
        }
    }

    /// Reads `A[i] += value` or `x += value`, or another augmented assignment.
    pub(super) fn changed(&mut self, cursor: Cursor<'_>, target: &Tree, op: BinaryOp, value: &Tree) -> Outcome<Step> {
        let before = self.value(cursor, target)?;
        // A variable's value is no access of a buffer of the program.
        let is_element = matches!(target.kind, ExprKind::Subscript { .. });
        let read = self.last_access().filter(|_| is_element);
        let change = self.value(cursor, value)?;
        let after = self.infix(cursor.at(value.tokens), op, before.clone(), change)?;
        let (buffer, indices) = match (before, &target.kind) {
            (Value::Cell(buffer), _) => (buffer, vec![Expr::Int { value: 0, dtype: DType::INT32 }]),
            (Value::Expr(Expr::Load { buffer, indices, .. }), ExprKind::Subscript { .. }) => (buffer, indices),
            _ => {
                return self.unsupported(
                    cursor.at(target.tokens),
                    "an augmented assignment to anything other than a variable or a buffer's element",
                );
            }
        };
        let dtype = self.func.buffer(buffer).dtype;
        let value = self.stored_value(cursor.at(value.tokens), after, dtype)?;
        if let Some(read) = read {
            self.note(|_| Event::Access(Box::new(Access { write: true, value: Some(value.clone()), ..read })));
        }
        Ok(Step::Done(Stmt::Store { buffer, indices, value, site: self.site() }))
    }

    /// Reads `buffer[index] = value`.
    pub(super) fn store(&mut self, cursor: Cursor<'_>, buffer: &Tree, index: &Tree, value: &Tree) -> Outcome<Stmt> {
        if let Some((buffer, indices)) = self.separate_indices(cursor, buffer, index)? {
            return self.store(cursor, buffer, &indices, value);
        }
        let view = match self.value(cursor, buffer)? {
            Value::Pointer(_) => return self.unsupported(cursor.at(buffer.tokens), "an assignment to a pointer"),
            value => self.memory(cursor.at(buffer.tokens), value, "an assignment to")?,
        };
        if let Some(lanes) = self.store_lanes(cursor, index)? {
            return self.vector_store(cursor, (buffer.tokens, &view), index, value, lanes);
        }
        let (indices, value) = self.stored(cursor, (buffer.tokens, &view), index, value)?;
        let (buffer, indices) = self.element(&view, super::expr::exprs(indices));
        Ok(Stmt::Store { buffer, indices, value, site: self.site() })
    }

    /// Reads the indices of a store and its value, converted to the buffer's dtype. Records the value's loads before
    /// the store, which is the order of execution.
    pub(super) fn stored(
        &mut self,
        cursor: Cursor<'_>,
        (label, view): (TokenRange, &View),
        index: &Tree,
        value: &Tree,
    ) -> Outcome<(Vec<(Expr, TokenRange)>, Expr)> {
        let whole = TokenRange { start: label.start, end: label.end.max(index.tokens.end + 1) };
        let indices = self.indices(cursor.at(label), view, index);
        let read = match (&indices, self.is_tracing()) {
            (Err(_), false) => None,
            _ => Some(self.value(cursor, value)),
        };
        let (indices, read) = match (indices, read) {
            (Ok(indices), Some(read)) => (indices, read),
            (Err(mistake), read) => {
                if let Some(Err(other)) = read {
                    self.keep_certain(*other);
                }
                return Err(mistake);
            }
            (Ok(_), None) => return self.unsupported(cursor.at(label), "a store without a value"),
        };
        let stored = match read {
            Ok(read) => self.stored_value(cursor.at(value.tokens), read, view.dtype),
            Err(mistake) => Err(mistake),
        };
        self.note_access(cursor.at(whole), cursor.source(label), (view, &indices), Some(stored.as_ref().ok()));
        Ok((indices, stored?))
    }
}
