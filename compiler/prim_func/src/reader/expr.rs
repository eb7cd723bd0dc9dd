//! Reads expressions.

use super::value::{Source, Value, View};
use super::{DEEPEST, Outcome, Reader};
use rx_base::{Code, DType, Diagnostic, Fix, counted};
use rx_syntax::ast::{self, BoolOp, Expr as Tree, ExprKind, TokenRange};
use rx_syntax::{At, Cursor, TokenKind};
use rx_tir::{BinaryOp, Expr};
use std::rc::Rc;

impl Reader<'_> {
    /// Evaluates an expression.
    pub(super) fn value(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Value> {
        self.deeper(cursor.at(tree.tokens), |reader| reader.value_here(cursor, tree))
    }

    fn value_here(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Value> {
        let tokens = tree.tokens;
        Ok(match &tree.kind {
            ExprKind::Integer => match cursor.integer_value(tree) {
                Some(number) => Value::Int(number),
                None => return self.unsupported(cursor.at(tokens), "integers of more than 127 bits"),
            },
            ExprKind::Float => match cursor.float_value(tree) {
                Some(number) => Value::Float(number),
                None => return self.unsupported(cursor.at(tokens), "imaginary numbers"),
            },
            ExprKind::String => match cursor.string_value(tree) {
                Some(text) => Value::Text(text.into_owned()),
                None => return self.unsupported(cursor.at(tokens), "bytes and f-strings"),
            },
            ExprKind::Bool(truth) => Value::Bool(*truth),
            ExprKind::None => Value::Nothing,
            ExprKind::Name => self.named(cursor.at(tokens))?,
            ExprKind::Attribute { value, name } => self.attribute(cursor, tree, value, *name)?,
            ExprKind::Subscript { value, index } => self.subscript(cursor, tree, value, index)?,
            ExprKind::Call { callee, arguments } => self.call(cursor.at(tokens), callee, arguments)?,
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                Value::Many(items.iter().map(|item| self.value(cursor, item)).collect::<Outcome<_>>()?)
            }
            ExprKind::Parenthesized(inner) => self.value(cursor, inner)?,
            ExprKind::Unary(op, operand) => {
                let operand = self.value(cursor, operand)?;
                self.prefix(cursor.at(tokens), *op, operand)?
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.value(cursor, left)?, self.value(cursor, right)?);
                self.infix(cursor.at(tokens), *op, left, right)?
            }
            ExprKind::Compare(first, rest) => {
                self.few(cursor.at(tokens), rest.len())?;
                let first = self.value(cursor, first)?;
                let rest = rest
                    .iter()
                    .map(|(op, operand)| Ok((*op, self.value(cursor, operand)?)))
                    .collect::<Outcome<Vec<(ast::CompareOp, Value)>>>()?;
                self.comparison(cursor.at(tokens), first, rest)?
            }
            ExprKind::Bool2(op, operands) => self.connected(cursor.at(tokens), *op, operands)?,
            ExprKind::Conditional { then, test, otherwise } => {
                let test = self.value(cursor, test)?;
                let (then, otherwise) = self.branches(cursor, &test, then, otherwise)?;
                self.choice(cursor.at(tokens), test, then, otherwise)?
            }
            _ => return self.unsupported(cursor.at(tokens), "this expression"),
        })
    }

    /// Limits the number of operands of a chain, or of nested loops, since the depth of the IR grows with it.
    pub(super) fn few(&self, at: At<'_>, count: usize) -> Outcome<()> {
        match count > DEEPEST {
            true => self.mistake(at, Code::NestingTooDeep, format!("the expression has more than {DEEPEST} operands")),
            false => Ok(()),
        }
    }

    fn connected(&mut self, at: At<'_>, op: BoolOp, operands: &[Tree]) -> Outcome<Value> {
        self.few(at, operands.len())?;
        let op = match op {
            BoolOp::And => BinaryOp::And,
            BoolOp::Or => BinaryOp::Or,
        };
        let mut all: Option<Value> = None;
        for operand in operands {
            // Later operands are evaluated only if the earlier ones do not decide the result. In `i < n and A[i]` the
            // access is checked under the condition `i < n`.
            let before = all.as_ref().and_then(condition_of);
            let holds = op == BinaryOp::And;
            let value = self.assuming(before.as_ref(), holds, |reader| reader.value(at.cursor, operand))?;
            all = Some(match all {
                None => value,
                Some(before) => self.both(at, op, before, value)?,
            });
        }
        Ok(all.unwrap_or(Value::Nothing))
    }

    /// Evaluates both alternatives of a choice, each under the assumption that the test holds or does not hold.
    pub(super) fn branches(
        &mut self,
        cursor: Cursor<'_>,
        test: &Value,
        then: &Tree,
        otherwise: &Tree,
    ) -> Outcome<(Value, Value)> {
        let condition = condition_of(test);
        let then = self.assuming(condition.as_ref(), true, |reader| reader.value(cursor, then))?;
        let otherwise = self.assuming(condition.as_ref(), false, |reader| reader.value(cursor, otherwise))?;
        Ok((then, otherwise))
    }

    /// Builds `T.if_then_else(test, then, otherwise)`; a test that is a Python bool selects a value directly.
    pub(super) fn choice(&mut self, at: At<'_>, test: Value, then: Value, otherwise: Value) -> Outcome<Value> {
        if let Value::Bool(test) = test {
            return Ok(if test { then } else { otherwise });
        }
        let condition = Box::new(self.truth(at, test)?);
        let (then, otherwise) = (self.scalar(at, then)?, self.scalar(at, otherwise)?);
        let (then, otherwise) = self.promoted(at, then, otherwise)?;
        Ok(Value::Expr(Expr::Select { condition, then: Box::new(then), otherwise: Box::new(otherwise) }))
    }

    fn named(&mut self, at: At<'_>) -> Outcome<Value> {
        let name = at.cursor.name(at.tokens.start);
        if let Some(value) = self.lookup(name) {
            let value = value.clone();
            self.grown(at, &value)?;
            return Ok(value);
        }
        if self.file.symbols.contains(&name) {
            return Ok(Value::Expr(self.symbol(name, DType::INT64)));
        }
        if self.file.modules.contains(&name) || self.file.items.contains(&name) {
            return self.unsupported(at, "a call of another function");
        }
        self.note_unbound(at, name);
        let (code, message) = match self.file.captured.contains(&name) {
            true => (Code::CapturedPythonName, format!("`{name}` is a Python value that is not known here")),
            false => (Code::UndefinedName, format!("`{name}` is not defined")),
        };
        let mut mistake = self.mistake(at, code, message);
        if let Err(mistake) = &mut mistake {
            // For a lowering this is an error, even if a checker reports only a warning.
            mistake.severity = rx_base::diagnostic::Severity::Error;
        }
        mistake
    }

    fn attribute(&mut self, cursor: Cursor<'_>, tree: &Tree, value: &Tree, name: ast::TokenIndex) -> Outcome<Value> {
        if let Some(member) = self.tir_member(cursor, tree) {
            return match dtype_named(member) {
                Some(dtype) => Ok(Value::DType(dtype)),
                None => self.unsupported(cursor.at(tree.tokens), &format!("`T.{member}`")),
            };
        }
        let of = self.value(cursor, value)?;
        self.has_member(cursor, &of, name)?;
        let integers = |exprs: &[Expr]| Value::Many(exprs.iter().cloned().map(Value::Expr).collect());
        Ok(match (&of, cursor.text(name)) {
            (Value::Buffer(view), "data") => Value::Pointer(view.clone()),
            (Value::Buffer(view), "shape") => integers(&view.shape),
            (Value::Buffer(view), "elem_offset") => Value::Expr(view.offset()),
            (Value::Buffer(view), "strides") => integers(&view.strides()),
            (Value::Buffer(view), "dtype") => Value::DType(view.dtype),
            (Value::Expr(expr), "dtype") => Value::DType(expr.dtype()),
            (Value::Cell(buffer), "buffer") => Value::Buffer(Rc::new(View::of_buffer(&self.func, *buffer))),
            (Value::Buffer(_) | Value::Pointer(_), "ty") => of,
            (_, attribute) => {
                let subject = format!("`.{attribute}` of {}", super::constant::describe(&of));
                return self.unsupported(cursor.at(tree.tokens), &subject);
            }
        })
    }

    /// Reports an attribute or method that the value does not have in Python.
    pub(super) fn has_member(&mut self, cursor: Cursor<'_>, of: &Value, name: ast::TokenIndex) -> Outcome<()> {
        let member = cursor.text(name);
        if !super::members::is_unknown(of, member) {
            return Ok(());
        }
        let message = format!("{} has no attribute `{member}`", super::constant::describe(of));
        let mistake = self.mistake(cursor.at(TokenRange::one(name)), Code::UnsupportedConstruct, message);
        self.kept(mistake)
    }

    fn subscript(&mut self, cursor: Cursor<'_>, tree: &Tree, value: &Tree, index: &Tree) -> Outcome<Value> {
        if let Some((buffer, indices)) = self.separate_indices(cursor, value, index)? {
            return self.subscript(cursor, tree, buffer, &indices);
        }
        match self.value(cursor, value)? {
            Value::Buffer(view) => {
                let indices = self.indices(cursor.at(tree.tokens), &view, index)?;
                let label = cursor.source(value.tokens);
                self.note_access(cursor.at(tree.tokens), label, (&view, &indices), None);
                let (buffer, indices) = self.element(&view, exprs(indices));
                let load = Value::Expr(self.func.load(buffer, indices));
                self.grown(cursor.at(tree.tokens), &load)?;
                Ok(load)
            }
            Value::Cell(buffer) => {
                let view = View::of_buffer(&self.func, buffer);
                let indices = self.indices(cursor.at(tree.tokens), &view, index)?;
                Ok(Value::Expr(self.func.load(buffer, exprs(indices))))
            }
            Value::Many(items) => {
                let Value::Int(at) = self.value(cursor, index)? else {
                    return self.unsupported(cursor.at(index.tokens), "a list index that is not a constant");
                };
                let count = items.len() as i128;
                let at = if at < 0 { at + count } else { at };
                match usize::try_from(at).ok().and_then(|at| items.get(at)) {
                    Some(item) => Ok(item.clone()),
                    None => {
                        let message = format!("index {at} is out of range for a list of {count} items");
                        self.mistake(cursor.at(index.tokens), Code::TupleIndexOutOfRange, message)
                    }
                }
            }
            other => {
                let subject = format!("an index into {}", super::constant::describe(&other));
                self.unsupported(cursor.at(tree.tokens), &subject)
            }
        }
    }

    /// Reports `A[i][j]`, an element whose indices are in separate brackets, where `value` is `A[i]` and `index` is
    /// `j`. Returns the buffer and all indices, so that the rest of the statement is checked; `None` if `value[index]`
    /// is not such an element.
    pub(super) fn separate_indices<'t>(
        &mut self,
        cursor: Cursor<'_>,
        value: &'t Tree,
        index: &'t Tree,
    ) -> Outcome<Option<(&'t Tree, Tree)>> {
        let ExprKind::Subscript { .. } = value.kind else { return Ok(None) };
        let (mut head, mut innermost) = (value, value);
        let (mut lists, mut edits) = (vec![index], Vec::new());
        while let ExprKind::Subscript { value, index } = &head.kind {
            // The closing bracket, and the opening one that follows.
            let between = TokenRange { start: head.tokens.end.saturating_sub(1), end: head.tokens.end + 1 };
            edits.push((self.place(cursor.at(between)), ", ".to_owned()));
            lists.push(index);
            innermost = head;
            head = value;
        }
        if !matches!(head.kind, ExprKind::Name) {
            return Ok(None);
        }
        let Value::Buffer(view) = self.value(cursor, head)? else { return Ok(None) };
        let items: Vec<Tree> = lists.iter().rev().flat_map(|list| index_items(list)).cloned().collect();
        if items.len() != view.shape.len() {
            return Ok(None);
        }
        let found = lists.last().map_or(0, |list| index_items(list).len());
        let (name, dims) = (cursor.source(head.tokens), counted(view.shape.len(), "dim"));
        let message = format!("`{name}` has {dims}; found {}", counted(found, "index"));
        let mut mistake = Diagnostic::new(Code::TensorNdimMismatch, self.place(cursor.at(innermost.tokens)), message);
        // Lists such as `i,` and `(i, j)` cannot be joined by a comma alone.
        let is_plain = |list: &&Tree| match &list.kind {
            ExprKind::Tuple(items) => {
                items.last().is_some_and(|last| cursor.kind(last.tokens.end) == Some(TokenKind::RightBracket))
            }
            ExprKind::Parenthesized(inner) => !matches!(inner.kind, ExprKind::Tuple(_)),
            _ => true,
        };
        if lists.iter().all(is_plain) {
            let title = "write all indices in one pair of brackets".to_owned();
            mistake.fixes.push(Fix { title, edits, safe: true });
        }
        if !self.is_tracing() {
            return Err(Box::new(mistake));
        }
        self.keep_certain(mistake);
        let tokens = TokenRange { start: head.tokens.end + 1, end: index.tokens.end };
        Ok(Some((head, Tree { kind: ExprKind::Tuple(items), tokens })))
    }

    /// Reads the indices in the brackets of a view with their positions. Their number must be the view's number of
    /// dims; for a view without dims, the index 0 is accepted, too.
    pub(super) fn indices(&mut self, at: At<'_>, view: &View, index: &Tree) -> Outcome<Vec<(Expr, TokenRange)>> {
        let written = index_items(index);
        let mut indices = Vec::with_capacity(written.len());
        for item in written {
            match &item.kind {
                ExprKind::Slice { lower, upper, step } => {
                    let bounds = (lower.as_deref(), upper.as_deref(), step.as_deref());
                    indices.push((self.lane_slice(at.cursor.at(item.tokens), bounds)?, item.tokens));
                }
                ExprKind::Starred { value, double: false } => match self.value(at.cursor, value)? {
                    Value::Many(items) => {
                        for item in items {
                            let scalar = self.scalar(at.cursor.at(value.tokens), item)?;
                            indices.push((self.integer(at.cursor.at(value.tokens), scalar)?, value.tokens));
                        }
                    }
                    _ => return self.unsupported(at.cursor.at(item.tokens), "`*` of anything other than a list"),
                },
                _ => indices.push((self.integer_of(at.cursor, item)?, item.tokens)),
            }
        }
        // TVM writes the only element of a 0-dim tensor as `A[0]`.
        if view.shape.is_empty() && matches!(&indices[..], [(only, _)] if only.as_int() == Some(0)) {
            indices.clear();
        }
        if indices.len() != view.shape.len() {
            let name = match &view.source {
                Source::Buffer(buffer) => self.func.buffer(*buffer).name.to_string(),
                _ => "the buffer".to_owned(),
            };
            let message =
                format!("`{name}` has {}; found {}", counted(view.shape.len(), "dim"), counted(indices.len(), "index"));
            return self.mistake(at, Code::TensorNdimMismatch, message);
        }
        Ok(indices)
    }
}

/// Returns a Python bool or a scalar of the IR as an expression; `None` for other values.
pub(super) fn condition_of(value: &Value) -> Option<Expr> {
    match value {
        Value::Bool(holds) => Some(Expr::bool(*holds)),
        Value::Expr(condition) => Some(condition.clone()),
        _ => None,
    }
}

/// Drops the positions of indices.
pub(super) fn exprs(indices: Vec<(Expr, TokenRange)>) -> Vec<Expr> {
    indices.into_iter().map(|(index, _)| index).collect()
}

/// Returns the indices between brackets: `a`, `a, b`, `()`.
pub(super) fn index_items(index: &Tree) -> Vec<&Tree> {
    match &index.kind {
        ExprKind::Tuple(items) => items.iter().collect(),
        ExprKind::Parenthesized(inner) if matches!(inner.kind, ExprKind::Tuple(_)) => index_items(inner),
        _ => vec![index],
    }
}

/// Returns the dtype with the name of a member of `T`, including short names of TVM 0.27 such as `f32`; `None` for
/// `handle`.
pub(super) fn dtype_named(member: &str) -> Option<DType> {
    let long = match member {
        "f16" => "float16",
        "f32" => "float32",
        "f64" => "float64",
        "bf16" => "bfloat16",
        "i8" => "int8",
        "i16" => "int16",
        "i32" => "int32",
        "i64" => "int64",
        "u8" => "uint8",
        "u16" => "uint16",
        "u32" => "uint32",
        "u64" => "uint64",
        "boolean" => "bool",
        "handle" => return None,
        other => other,
    };
    // `T.float` and `T.int` are not members, although strings may name dtypes that way.
    (!matches!(long, "float" | "int" | "uint" | "bfloat")).then(|| DType::parse(long)).flatten()
}
