//! Computes a prim_func's signature: its parameters, and the buffers that its body reads and writes.

use crate::functions::in_order;
use crate::integer;
use rx_base::name::NameMap;
use rx_base::{DType, Dim, Name};
use rx_context::FileContext;
use rx_ir::{BufferParam, PrimFuncSignature, PrimParam, PrimParamKind};
use rx_syntax::ast::{Argument, Expr, ExprKind, Parameter, StatementKind, UnaryOp};
use rx_syntax::{Cursor, Segment};

/// Returns the signature of a prim_func from its segments; `None` if they contain no `def`.
pub fn prim_func_signature<'s>(
    segments: impl Iterator<Item = &'s Segment> + Clone,
    file: &FileContext,
) -> Option<PrimFuncSignature> {
    let mut body = Body::default();
    for segment in segments.clone() {
        body.read(segment, file);
    }
    body.read_macros(file);
    let mut private = false;
    for segment in segments {
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            match &statement.tree.kind {
                StatementKind::Decorator(expr) => {
                    private |= cursor.flag(expr, "private").unwrap_or(false);
                }
                StatementKind::Def { params, ret, .. } => {
                    let params: Vec<PrimParam> =
                        params.iter().filter_map(|param| body.parameter(cursor.parameter(param), param)).collect();
                    let ret = ret.as_ref().and_then(|ret| scalar_type(cursor, ret));
                    let pure =
                        !body.calls_out && !params.iter().any(|param| is_written(param) || body.stores_in(param));
                    return Some(PrimFuncSignature { params: settle(params).into(), ret, pure, private });
                }
                _ => {}
            }
        }
    }
    None
}

/// Marks all buffer parameters as read and written if the function writes none of them. Such a function may be a
/// placeholder for an external kernel, which may write any of them.
fn settle(mut params: Vec<PrimParam>) -> Vec<PrimParam> {
    if !params.iter().any(is_written) {
        for param in &mut params {
            if let PrimParamKind::Buffer(buffer) = &mut param.kind {
                (buffer.written, buffer.read) = (true, true);
            }
        }
    }
    params
}

fn is_written(param: &PrimParam) -> bool {
    matches!(&param.kind, PrimParamKind::Buffer(buffer) if buffer.written)
}

/// The uses of names in a function's body.
#[derive(Default)]
struct Body {
    /// Handles opened by `A = T.match_buffer(a, …)`: from the handle's name to the buffer's name, shape and dtype.
    matched: NameMap<(Name, Vec<Dim>, DType)>,
    /// Buffers `A = T.decl_buffer(…, data=a)` or `A = T.Buffer(…, data=a)`: from the name `a`, such as a handle, to the
    /// buffer's name.
    opened: NameMap<Name>,
    /// Names that may be written if they are names of buffers, for example `A` in the store `A[i] = x` or in
    /// `T.writes(A[i])`. Most names that are used without an index, such as `A` in `f(A)` or the loop variable `i` in
    /// `A[i]`, are included, whether they are buffers or not.
    written: NameMap<()>,
    /// Names that may be read if they are names of buffers, for example `A` in the load `A[i]` or in
    /// `T.reads(A[i])`, and names that are used without an index, as for `written`.
    read: NameMap<()>,
    /// Names that are called like functions. Some of them may be macros.
    called: Vec<Name>,
    /// Whether the body calls a function whose name begins with `call_` or `ptx`, such as `T.call_extern`.
    calls_out: bool,
}

impl Body {
    fn read(&mut self, segment: &Segment, file: &FileContext) {
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            match &*in_order(cursor, file, &statement.tree.kind) {
                StatementKind::Assign { targets, value } => {
                    for target in targets {
                        self.store(cursor, target);
                        self.match_buffer(cursor, target, value);
                    }
                    self.load(cursor, value);
                }
                StatementKind::AnnAssign { target, value: Some(value), .. } => {
                    self.store(cursor, target);
                    self.load(cursor, value);
                }
                StatementKind::AugAssign { target, value, .. } => {
                    self.store(cursor, target);
                    self.load(cursor, target);
                    self.load(cursor, value);
                }
                StatementKind::Expr(expr)
                | StatementKind::While(expr)
                | StatementKind::If(expr)
                | StatementKind::Elif(expr) => {
                    self.load(cursor, expr);
                }
                StatementKind::For { iter, .. } => self.load(cursor, iter),
                StatementKind::With(items) => items.iter().for_each(|item| self.load(cursor, &item.context)),
                StatementKind::Return(Some(value)) | StatementKind::Assert { test: value, .. } => {
                    self.load(cursor, value)
                }
                _ => {}
            }
        }
    }

    /// Adds the effects of the macros that the body calls, transitively. In a macro that is not hygienic, names refer
    /// to the function's variables; in a hygienic macro they are private.
    fn read_macros(&mut self, file: &FileContext) {
        let mut seen = NameMap::default();
        while let Some(name) = self.called.pop() {
            let Some(called) = file.macros.get(&name).filter(|_| seen.insert(name, ()).is_none()) else { continue };
            let mut own = Body::default();
            let body = if called.hygienic { &mut own } else { &mut *self };
            called.segments.iter().for_each(|segment| body.read(segment, file));
            self.calls_out |= own.calls_out;
            self.called.append(&mut own.called);
        }
    }

    fn store(&mut self, cursor: Cursor<'_>, target: &Expr) {
        match &target.kind {
            ExprKind::Subscript { value, index } => {
                if let ExprKind::Name = value.kind {
                    self.written.insert(cursor.name(value.tokens.start), ());
                }
                self.load(cursor, index);
            }
            ExprKind::Tuple(targets) => targets.iter().for_each(|target| self.store(cursor, target)),
            _ => {}
        }
    }

    fn match_buffer(&mut self, cursor: Cursor<'_>, target: &Expr, value: &Expr) {
        let (ExprKind::Name, ExprKind::Call { callee, arguments }) = (&target.kind, &value.kind) else { return };
        let source = cursor.path(callee.tokens);
        if source.ends_with(".decl_buffer") || source.ends_with(".Buffer") {
            let mut named = arguments.iter().filter(|argument| matches!(argument.value.kind, ExprKind::Name));
            let data = named.find(|argument| argument.keyword.is_some_and(|word| cursor.text(word) == "data"));
            if let Some(data) = data {
                self.opened.insert(cursor.name(data.value.tokens.start), cursor.name(target.tokens.start));
            }
        }
        if !source.ends_with(".match_buffer") {
            return;
        }
        let Some(handle) = arguments.first().filter(|argument| matches!(argument.value.kind, ExprKind::Name)) else {
            return;
        };
        let Some((shape, dtype)) = buffer_type(cursor, arguments.get(1..).unwrap_or_default()) else { return };
        let handle = cursor.name(handle.value.tokens.start);
        self.matched.insert(handle, (cursor.name(target.tokens.start), shape, dtype));
    }

    /// Whether the body may write the last buffer that it declares with this parameter as its `data`.
    fn stores_in(&self, param: &PrimParam) -> bool {
        self.opened.get(&param.name).is_some_and(|buffer| self.written.contains_key(buffer))
    }

    /// Records the names that an expression reads or calls. A name without an index counts as read and written.
    fn load(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        match &expr.kind {
            ExprKind::Subscript { value, index } => {
                match value.kind {
                    ExprKind::Name => {
                        self.read.insert(cursor.name(value.tokens.start), ());
                    }
                    _ => self.load(cursor, value),
                }
                self.load(cursor, index);
            }
            ExprKind::Name => {
                let name = cursor.name(expr.tokens.start);
                self.read.insert(name, ());
                self.written.insert(name, ());
            }
            ExprKind::Call { callee, arguments } => {
                if let ExprKind::Name = callee.kind {
                    self.called.push(cursor.name(callee.tokens.start));
                }
                let source = cursor.path(callee.tokens);
                let declares_writes = source.ends_with(".writes");
                let matches_buffer = source.ends_with(".match_buffer");
                let function = source.rsplit('.').next().unwrap_or_default();
                self.calls_out |= function.starts_with("call_") || function.starts_with("ptx");
                for argument in arguments {
                    // An argument of `match_buffer` that is only a name does not count as an access: usually it is a
                    // handle, as in `match_buffer(a, …)`.
                    if matches_buffer && matches!(argument.value.kind, ExprKind::Name) {
                        continue;
                    }
                    if declares_writes || matches_buffer {
                        self.region(cursor, &argument.value);
                    }
                    if !declares_writes {
                        self.load(cursor, &argument.value);
                    }
                }
                if let ExprKind::Attribute { value, .. } = &callee.kind {
                    self.load_head(cursor, value);
                }
            }
            ExprKind::Attribute { value, .. } => self.load_head(cursor, value),
            ExprKind::Dict(items) => items.iter().for_each(|(_, value)| self.load(cursor, value)),
            ExprKind::Walrus { .. } => {}
            _ => expr.children().into_iter().for_each(|part| self.load(cursor, part)),
        }
    }

    /// Records the buffer of `A.data` or `A.access_ptr("w")`. Its later accesses are unknown, so it counts as read
    /// and written. The names `T`, `R` and `I` are namespaces, not buffers.
    fn load_head(&mut self, cursor: Cursor<'_>, value: &Expr) {
        if !matches!(value.kind, ExprKind::Name) || !matches!(cursor.text(value.tokens.start), "T" | "R" | "I") {
            self.load(cursor, value);
        }
    }

    /// Records the buffer of a region `A[i]` as written, and the names in its indices as for a load. A whole buffer
    /// counts as read and written.
    fn region(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        match &expr.kind {
            ExprKind::Subscript { value, index } if matches!(value.kind, ExprKind::Name) => {
                self.written.insert(cursor.name(value.tokens.start), ());
                self.load(cursor, index);
            }
            ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().for_each(|item| self.region(cursor, item)),
            _ => self.load(cursor, expr),
        }
    }

    fn parameter(&self, cursor: Cursor<'_>, param: &Parameter) -> Option<PrimParam> {
        let parameter = cursor.name(param.tree.name?);
        let kind = param.tree.annotation.as_ref().and_then(|annotation| self.kind(cursor, parameter, annotation));
        Some(PrimParam { name: parameter, kind: kind.unwrap_or(PrimParamKind::Opaque) })
    }

    fn kind(&self, cursor: Cursor<'_>, parameter: Name, annotation: &Expr) -> Option<PrimParamKind> {
        match &annotation.kind {
            ExprKind::Call { callee, arguments } if cursor.path(callee.tokens).ends_with(".Buffer") => {
                let (shape, dtype) = buffer_type(cursor, arguments)?;
                Some(self.buffer(parameter, shape, dtype))
            }
            // TVM before 0.12 writes `T.Buffer[(16, 16), "float32"]`.
            ExprKind::Subscript { value, index } if cursor.path(value.tokens).ends_with(".Buffer") => {
                let (shape, dtype) = buffer_type(cursor, &bracketed_arguments(cursor, index))?;
                Some(self.buffer(parameter, shape, dtype))
            }
            _ => {
                if let Some((buffer, shape, dtype)) = self.matched.get(&parameter) {
                    return Some(self.buffer(*buffer, shape.clone(), *dtype));
                }
                scalar_type(cursor, annotation).filter(|dtype| *dtype != DType::HANDLE).map(PrimParamKind::Scalar)
            }
        }
    }

    fn buffer(&self, buffer: Name, shape: Vec<Dim>, dtype: DType) -> PrimParamKind {
        PrimParamKind::Buffer(BufferParam {
            shape: shape.into(),
            dtype,
            written: self.written.contains_key(&buffer),
            read: self.read.contains_key(&buffer),
        })
    }
}

/// Returns the arguments between the brackets of `T.Buffer[(16, 16), "float32"]`. Without a dtype, the whole
/// subscript is the shape: for Python `T.Buffer[(16, 16)]` and `T.Buffer[16, 16]` are the same.
pub fn bracketed_arguments(cursor: Cursor<'_>, index: &Expr) -> Vec<Argument> {
    let by_position = |value: &Expr| Argument { keyword: None, value: value.clone() };
    let is_dtype = |part: &Expr| {
        matches!(part.kind, ExprKind::String | ExprKind::Attribute { .. })
            && DType::parse(&cursor.string_value(part).unwrap_or_else(|| last_name(cursor, part).into())).is_some()
    };
    match &index.kind {
        ExprKind::Parenthesized(inner) => bracketed_arguments(cursor, inner),
        ExprKind::Tuple(parts) if parts.get(1).is_some_and(is_dtype) => parts.iter().map(by_position).collect(),
        _ => vec![by_position(index)],
    }
}

/// Returns the last part of a dotted name: `float32` of `T.float32`.
fn last_name<'t>(cursor: Cursor<'t>, expr: &Expr) -> &'t str {
    cursor.path(expr.tokens).rsplit('.').next().unwrap_or_default()
}

/// Returns the shape and dtype from the arguments `((n, 64), "float32", …)`. The dtype defaults to `float32`.
fn buffer_type(cursor: Cursor<'_>, arguments: &[Argument]) -> Option<(Vec<Dim>, DType)> {
    let by_keyword = |wanted: &str| {
        arguments.iter().find(|argument| argument.keyword.is_some_and(|keyword| cursor.text(keyword) == wanted))
    };
    let positional = |at: usize| arguments.get(at).filter(|argument| argument.keyword.is_none());
    let shape = dims(cursor, &positional(0).or_else(|| by_keyword("shape"))?.value)?;
    let dtype = match positional(1).or_else(|| by_keyword("dtype")) {
        Some(Argument { value, .. }) => match cursor.string_value(value) {
            Some(text) => DType::parse(&text)?,
            // A dtype as an attribute: `T.float32`.
            None => DType::parse(last_name(cursor, value))?,
        },
        None => DType::FLOAT32,
    };
    Some((shape, dtype))
}

fn dims(cursor: Cursor<'_>, shape: &Expr) -> Option<Vec<Dim>> {
    match &shape.kind {
        ExprKind::Tuple(dims) | ExprKind::List(dims) => Some(dims.iter().map(|dim| plain_dim(cursor, dim)).collect()),
        ExprKind::Parenthesized(inner) => Some(vec![plain_dim(cursor, inner)]),
        ExprKind::Integer | ExprKind::Name => Some(vec![plain_dim(cursor, shape)]),
        _ => None,
    }
}

/// Returns the dim that an expression in a buffer's shape denotes. Every name is a symbol of the prim_func.
fn plain_dim(cursor: Cursor<'_>, expr: &Expr) -> Dim {
    match &expr.kind {
        ExprKind::Integer => {
            cursor.integer_value(expr).and_then(|value| i64::try_from(value).ok()).map_or(Dim::ERROR, Dim::constant)
        }
        ExprKind::Name => Dim::symbol(cursor.name(expr.tokens.start)),
        ExprKind::String => cursor.string_value(expr).map_or(Dim::ERROR, |text| dim_in_string(&text)),
        ExprKind::Parenthesized(inner) => plain_dim(cursor, inner),
        ExprKind::Unary(UnaryOp::Neg, inner) => -&plain_dim(cursor, inner),
        ExprKind::Binary(op, a, b) => integer::binary(*op, &plain_dim(cursor, a), &plain_dim(cursor, b)),
        ExprKind::Compare(first, rest) => match &rest[..] {
            [(op, second)] => integer::compare(*op, plain_dim(cursor, first), plain_dim(cursor, second)),
            _ => Dim::ERROR,
        },
        ExprKind::Bool2(op, operands) => {
            integer::logic(*op, operands.iter().map(|operand| plain_dim(cursor, operand)).collect())
        }
        ExprKind::Call { callee, arguments } => {
            let function = cursor.path(callee.tokens).rsplit('.').next().unwrap_or_default();
            integer::written_call(cursor, function, arguments, |value| plain_dim(cursor, value))
        }
        _ => Dim::ERROR,
    }
}

/// Parses a dim in a string: `"n"`, `"n * m"`.
fn dim_in_string(text: &str) -> Dim {
    let inner = Segment::new(text.into());
    match &inner.tree().statements[..] {
        [statement] if statement.tree.error.is_none() => match &statement.tree.kind {
            StatementKind::Expr(expr) => plain_dim(inner.cursor(statement), expr),
            _ => Dim::ERROR,
        },
        _ => Dim::ERROR,
    }
}

/// Returns the dtype of a scalar's type: `T.int64`, `T.handle`, `T.int64()`.
fn scalar_type(cursor: Cursor<'_>, annotation: &Expr) -> Option<DType> {
    let head = match &annotation.kind {
        ExprKind::Call { callee, .. } => callee,
        _ => annotation,
    };
    let source = cursor.path(head.tokens);
    DType::parse(source.rsplit('.').next()?)
}
