//! Reads a function's header: its parameters, and the symbols in their shapes.

use super::expr::dtype_named;
use super::tree::Node;
use super::value::{Value, View};
use super::{Outcome, Reader};
use rx_base::name::NameMap;
use rx_base::{Code, DType, Name};
use rx_syntax::ast::{Expr as Tree, ExprKind, Parameter, StatementKind, TokenIndex, TokenRange};
use rx_syntax::{At, Cursor, Segment};
use rx_tir::{Buffer, BufferId, Expr, Param, PrimFunc, VarId};
use std::rc::Rc;

/// A declared parameter. A handle becomes a buffer if the body declares one over it, for example with `T.match_buffer`.
pub(super) enum Declared {
    Param(Param),
    Handle(Name),
}

impl Reader<'_> {
    /// Reads a function from its statements: decorators, `def`, body.
    pub(super) fn function(mut self, nodes: &[Node<'_>]) -> Outcome<PrimFunc> {
        let (node, name, params) = self.header(nodes)?;
        let scalars = self.scalar_parameters(node.cursor, params)?;
        self.declared_symbols(&node.children);
        self.reassigned = reassigned(&node.children);
        let mut declared = Vec::with_capacity(params.len());
        for param in params {
            declared.push(self.parameter(node.cursor.parameter(param), param, &scalars)?);
        }
        self.passed(node, name, params, declared)
    }

    /// Finds the `def` of a function and declares its type parameters as symbols. Returns its statement, its name and
    /// its parameters.
    fn header<'n, 's>(&mut self, nodes: &'n [Node<'s>]) -> Outcome<(&'n Node<'s>, TokenIndex, &'n [Parameter])> {
        let header = nodes.iter().find_map(|node| match &*node.kind {
            StatementKind::Def { name, type_params, params, .. } => Some((node, *name, type_params, params)),
            _ => None,
        });
        let Some((node, name, type_params, params)) = header else {
            let place = rx_context::ItemPlace::Segment(0, rx_context::NOWHERE);
            return Err(Box::new(rx_base::Diagnostic::new(Code::NoLowering, place, "there is no function here")));
        };
        (self.segment, self.statement) = (node.segment, node.index);
        for token in type_params {
            self.symbol(node.cursor.name(*token), DType::INT64);
        }
        Ok((node, name, params))
    }

    /// Traces a function: its header, then its body. Both are read as far as possible. Returns the buffer parameters
    /// and the buffers over handles.
    pub(super) fn read_for_trace(&mut self, nodes: &[Node<'_>]) -> Outcome<Vec<BufferId>> {
        let (node, _, params) = self.header(nodes)?;
        let scalars = self.scalar_parameters(node.cursor, params).unwrap_or_default();
        self.declared_symbols(&node.children);
        self.reassigned = reassigned(&node.children);
        let mut buffers = Vec::new();
        for param in params {
            match self.parameter(node.cursor.parameter(param), param, &scalars) {
                Ok(Declared::Param(Param::Buffer(buffer))) => buffers.push(buffer),
                Ok(_) => {}
                Err(mistake) => {
                    self.note_incomplete();
                    self.keep_certain(*mistake);
                }
            }
        }
        if let Err(mistake) = self.function_body(&node.children) {
            self.keep_certain(*mistake);
        }
        buffers.extend(self.handles.values().copied().flatten());
        Ok(buffers)
    }

    /// Reads the body and completes the parameters of the function.
    fn passed(
        mut self,
        node: &Node<'_>,
        name: TokenIndex,
        params: &[Parameter],
        declared: Vec<Declared>,
    ) -> Outcome<PrimFunc> {
        let body = self.function_body(&node.children)?;
        (self.segment, self.statement) = (node.segment, node.index);
        for (param, declared) in params.iter().zip(declared) {
            let passed = match declared {
                Declared::Param(passed) => passed,
                Declared::Handle(handle) => match self.handles.get(&handle).copied().flatten() {
                    Some(buffer) => {
                        self.known_outside(node.cursor.parameter(param).at(param.tree.tokens), handle, buffer)?;
                        Param::Buffer(buffer)
                    }
                    // Uses of the handle as a value were reported in the body.
                    None => Param::Handle(handle),
                },
            };
            self.func.params.push(passed);
        }
        self.finish(node.cursor.at(TokenRange::one(name)), body)
    }

    /// Checks that the extents and strides of a buffer over a handle are known to the caller: they load nothing and use
    /// only scalar parameters and symbols, no variable that a loop, block or `T.let` of the body binds.
    fn known_outside(&self, at: At<'_>, handle: Name, buffer: BufferId) -> Outcome<()> {
        let is_passed = |var: VarId| {
            let outermost = self.scopes.first().into_iter().flat_map(|scope| scope.values());
            let mut passed =
                outermost.filter_map(|value| if let Value::Expr(expr) = value { Some(expr) } else { None });
            self.symbols.contains(&var) || passed.any(|expr| matches!(expr, Expr::Var { var: own, .. } if *own == var))
        };
        let Buffer { shape, strides, .. } = self.func.buffer(buffer);
        let mut inner = None;
        for dim in shape.iter().chain(strides.iter().flatten()) {
            dim.walk(&mut |part| match part {
                Expr::Var { var, .. } if !is_passed(*var) => inner = Some(self.func.var(*var).name),
                Expr::Load { buffer, .. } => inner = Some(self.func.buffer(*buffer).name),
                _ => {}
            });
        }
        match inner {
            None => Ok(()),
            Some(inner) => {
                let subject =
                    format!("a buffer over the handle `{handle}` whose extents mention `{inner}` of the body");
                self.unsupported(at, &subject)
            }
        }
    }

    /// Binds the scalar parameters first, since shapes may use parameters that come later.
    fn scalar_parameters(&mut self, cursor: Cursor<'_>, params: &[Parameter]) -> Outcome<NameMap<Param>> {
        let mut scalars = NameMap::default();
        for param in params {
            let cursor = cursor.parameter(param);
            let (Some(name), Some(annotation)) = (param.tree.name, &param.tree.annotation) else { continue };
            let name = cursor.name(name);
            let head = match &annotation.kind {
                ExprKind::Call { callee, arguments } if arguments.is_empty() => callee,
                _ => annotation,
            };
            let Some(dtype) = self.tir_member(cursor, head).and_then(dtype_named) else { continue };
            if dtype.lanes != 1 {
                return self.unsupported(cursor.at(annotation.tokens), &format!("vectors of {dtype}"));
            }
            let var = self.func.add_var(name, dtype);
            self.bind(name, Value::Expr(self.func.var_expr(var)));
            scalars.insert(name, Param::Scalar(var));
        }
        Ok(scalars)
    }

    /// Binds the symbols that direct statements of the body declare, such as `n = T.int64()`, wherever they are in the
    /// body, since quoted shapes of parameters may use them. Skips the statements in blocks, such as those in a loop.
    fn declared_symbols(&mut self, body: &[Node<'_>]) {
        for node in body {
            let StatementKind::Assign { targets, value } = &*node.kind else { continue };
            let [target] = &targets[..] else { continue };
            let pairs: Vec<(&Tree, &Tree)> = match (&target.kind, &value.kind) {
                (ExprKind::Tuple(targets), ExprKind::Tuple(values)) if targets.len() == values.len() => {
                    targets.iter().zip(values).collect()
                }
                _ => vec![(target, value)],
            };
            for (target, value) in pairs {
                if let (ExprKind::Name, Some(dtype)) = (&target.kind, self.declared_dtype(node.cursor, value)) {
                    self.symbol(node.cursor.name(target.tokens.start), dtype);
                }
            }
        }
    }

    /// Returns the dtype of a call that declares a variable: `T.int64()`, `T.int32(is_size_var=True)`,
    /// `T.var("int64")`.
    pub(super) fn declared_dtype(&self, cursor: Cursor<'_>, value: &Tree) -> Option<DType> {
        let ExprKind::Call { callee, arguments } = &value.kind else { return None };
        let member = self.tir_member(cursor, callee)?;
        let positional = arguments.iter().find(|argument| argument.keyword.is_none());
        match (member, positional) {
            ("var" | "size_var" | "Var" | "SizeVar", Some(_)) => {
                let named = arguments.iter().rev().find_map(|argument| cursor.string_value(&argument.value));
                DType::parse(&named?)
            }
            (_, None) => dtype_named(member).filter(|dtype| dtype.lanes == 1),
            _ => None,
        }
    }

    /// Returns the variable `name` of the function's outermost scope; declares it if necessary.
    pub(super) fn symbol(&mut self, name: Name, dtype: DType) -> Expr {
        if let Some(Value::Expr(known @ Expr::Var { .. })) = self.scopes.first().and_then(|scope| scope.get(&name)) {
            return known.clone();
        }
        let var = self.func.add_var(name, dtype);
        self.symbols.push(var);
        let value = self.func.var_expr(var);
        if let Some(scope) = self.scopes.first_mut() {
            scope.insert(name, Value::Expr(value.clone()));
        }
        value
    }

    fn parameter(&mut self, cursor: Cursor<'_>, param: &Parameter, scalars: &NameMap<Param>) -> Outcome<Declared> {
        let tree = &param.tree;
        let Some(name) = tree.name.filter(|_| tree.stars == 0).map(|name| cursor.name(name)) else {
            return self.unsupported(cursor.at(tree.tokens), "this parameter of a prim_func");
        };
        if let Some(scalar) = scalars.get(&name) {
            return Ok(Declared::Param(*scalar));
        }
        let Some(annotation) = &tree.annotation else {
            let message = format!("the parameter `{name}` has no type");
            return self.mistake(cursor.at(tree.tokens), Code::MissingAnnotation, message);
        };
        let callee = match &annotation.kind {
            ExprKind::Call { callee, .. } | ExprKind::Subscript { value: callee, .. } => callee,
            _ => annotation,
        };
        let member = self.tir_member(cursor, callee).unwrap_or_default();
        match (&annotation.kind, member) {
            (ExprKind::Call { arguments, .. }, "Buffer") => {
                let arguments: Vec<_> = arguments.iter().collect();
                let declared = self.declaration(cursor.at(annotation.tokens), &arguments)?;
                self.buffer_parameter(cursor.at(annotation.tokens), name, declared)
            }
            // TVM before 0.12 writes `T.Buffer[(16, 16), "float32"]`.
            (ExprKind::Subscript { index, .. }, "Buffer") => {
                let arguments = crate::signature::bracketed_arguments(cursor, index);
                let declared = self.declaration(cursor.at(annotation.tokens), &arguments.iter().collect::<Vec<_>>())?;
                self.buffer_parameter(cursor.at(annotation.tokens), name, declared)
            }
            (_, "handle" | "Ptr" | "ptr") => {
                self.handles.insert(name, None);
                self.bind(name, Value::Handle(name));
                Ok(Declared::Handle(name))
            }
            _ => self.unsupported(cursor.at(annotation.tokens), "a parameter of this type"),
        }
    }

    fn buffer_parameter(&mut self, at: At<'_>, name: Name, declared: super::buffers::Declaration) -> Outcome<Declared> {
        self.no_offset(at, &declared)?;
        let buffer = self.func.add_buffer(declared.into_buffer(name));
        self.note_declared(at, buffer);
        let view = View::of_buffer(&self.func, buffer);
        self.bind(name, Value::Buffer(Rc::new(view)));
        Ok(Declared::Param(Param::Buffer(buffer)))
    }

    /// Reads a dim in a string, such as `"n * 2"`. Unbound names in it become symbols: of dtype `int64` if the file
    /// declares them as symbols, otherwise `int32`, as in TVM.
    pub(super) fn quoted_dim(&mut self, at: At<'_>, text: &str) -> Outcome<Expr> {
        let inner = Segment::new(text.into());
        let [statement] = &inner.tree().statements[..] else {
            return self.mistake(at, Code::SyntaxError, "a dim in quotes must be one expression");
        };
        let StatementKind::Expr(tree) = &statement.tree.kind else {
            return self.mistake(at, Code::SyntaxError, "a dim in quotes must be one expression");
        };
        let inner_cursor = inner.cursor(statement);
        for name in names_in(inner_cursor, tree) {
            if self.lookup(name).is_none() && self.file.namespace(&name).is_none() {
                let dtype = if self.file.symbols.contains(&name) { DType::INT64 } else { DType::INT32 };
                self.symbol(name, dtype);
            }
        }
        self.integer_of(inner_cursor, tree).map_err(|mut mistake| {
            // The error is reported at the whole string.
            mistake.primary = self.place(at);
            mistake
        })
    }
}

/// Returns the names in the arithmetic of a dim and in the arguments of its calls.
pub(super) fn names_in(cursor: Cursor<'_>, tree: &Tree) -> Vec<Name> {
    let mut names = Vec::new();
    let mut open = vec![tree];
    while let Some(tree) = open.pop() {
        match &tree.kind {
            ExprKind::Name => names.push(cursor.name(tree.tokens.start)),
            ExprKind::Binary(_, a, b) => open.extend([&**b, &**a]),
            ExprKind::Unary(_, a) | ExprKind::Parenthesized(a) => open.push(a),
            ExprKind::Call { arguments, .. } => open.extend(arguments.iter().rev().map(|argument| &argument.value)),
            _ => {}
        }
    }
    names
}

/// Returns the names that are assigned more than once, changed by `+=` or similar, or declared without a value.
/// Assignments to tuples or to several targets do not count, nor do names that `for` or `with` binds, nor assignments
/// in functions inside the body.
pub(super) fn reassigned(body: &[Node<'_>]) -> NameMap<()> {
    let mut once: NameMap<()> = NameMap::default();
    let mut again = NameMap::default();
    let mut open: Vec<&Node<'_>> = body.iter().collect();
    while let Some(node) = open.pop() {
        // The names of a macro are bound where it is expanded.
        if !matches!(*node.kind, StatementKind::Def { .. }) {
            open.extend(&node.children);
        }
        let (target, changed) = match &*node.kind {
            StatementKind::Assign { targets, .. } => match &targets[..] {
                [target] => (target, false),
                _ => continue,
            },
            StatementKind::AnnAssign { target, value, .. } => (target, value.is_none()),
            StatementKind::AugAssign { target, .. } => (target, true),
            _ => continue,
        };
        if let ExprKind::Name = target.kind {
            let name = node.cursor.name(target.tokens.start);
            if changed || once.insert(name, ()).is_some() {
                again.insert(name, ());
            }
        }
    }
    again
}
