//! Reads the buffers, loops and accesses of a prim_func from its statements.

use rx_base::{Name, Span};
use rx_context::FileContext;
use rx_syntax::ast::{Argument, Expr, ExprKind, Parameter, StatementKind, TokenRange};
use rx_syntax::{Cursor, Segment, Statement};
use std::collections::{BTreeMap, BTreeSet};

/// An axis of a buffer.
pub(super) type Axis = (Name, usize);

/// A literal extent of an axis or a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    span: Span,
    value: i128,
}

/// An index of an access.
#[derive(Debug)]
enum Index {
    /// A single variable.
    Variable(Name),
    /// Another expression, with the names in it.
    Other(Vec<Name>),
}

/// A parameter.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) name: Name,
    pub(super) span: Span,
    /// The arguments of its `T.Buffer`; `None` for another parameter.
    pub(super) arguments: Option<Span>,
}

/// The parts of a prim_func that depend on sizes. Spans are bytes of the file.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    pub(super) params: Vec<Param>,
    /// The start of the line of the first statement after the attributes, and its indentation.
    pub(super) body: Option<(u32, String)>,
    /// The extents of each buffer's axes; `None` for one that is not a literal.
    buffers: BTreeMap<Name, Vec<Option<Extent>>>,
    /// Handles, with the buffers that `T.match_buffer` opens.
    opened: BTreeMap<Name, Name>,
    /// The extents of each loop and block variable; `None` for one that is not a literal.
    extents: BTreeMap<Name, Vec<Option<Extent>>>,
    /// Block variables, with the loop variables that they are bound to.
    bound: Vec<(Name, Name)>,
    accesses: Vec<(Name, Vec<Index>)>,
}

/// Axes that have the same size, and the places where this size is written.
#[derive(Debug, Default)]
pub(super) struct Linked {
    pub(super) axes: BTreeSet<Axis>,
    pub(super) extents: BTreeSet<Span>,
}

impl Kernel {
    /// Adds the statements of a segment that begins at byte `start` of the file.
    pub(super) fn read(&mut self, segment: &Segment, context: &FileContext, start: u32) {
        for statement in &segment.tree().statements {
            let reader = Reader { cursor: segment.cursor(statement), context, start };
            match &statement.tree.kind {
                StatementKind::Decorator(_) => {}
                StatementKind::Def { params, .. } => params.iter().for_each(|param| self.parameter(reader, param)),
                kind => {
                    if self.body.is_none() && !reader.is_attribute(kind) {
                        self.body = line_of(segment, statement, start);
                    }
                    match kind {
                        StatementKind::For { target, iter } => self.add_loop(reader, target, iter),
                        StatementKind::Assign { targets, value } => {
                            targets.iter().for_each(|target| self.binding(reader, target, value));
                        }
                        _ => {}
                    }
                }
            }
            segment.each_expr(statement, &mut |cursor, expr| self.access(cursor, expr));
        }
    }

    /// Returns the buffer that is passed for a parameter.
    pub(super) fn buffer_of(&self, index: usize) -> Option<Name> {
        let param = self.params.get(index)?;
        if param.arguments.is_some() { Some(param.name) } else { self.opened.get(&param.name).copied() }
    }

    /// Returns the axes that the variables which index an axis index too, directly or through other axes. `None` if one
    /// of them has another size than `size`, or if a size or an index is not simple.
    pub(super) fn linked(&self, first: Axis, size: i128) -> Option<Linked> {
        let mut linked = Linked { axes: BTreeSet::from([first]), extents: BTreeSet::new() };
        let mut variables: BTreeSet<Name> = BTreeSet::new();
        let (mut open_axes, mut open_variables) = (vec![first], Vec::new());
        loop {
            if let Some((buffer, axis)) = open_axes.pop() {
                let extent = self.buffers.get(&buffer)?.get(axis).copied().flatten();
                linked.extents.insert(extent.filter(|extent| extent.value == size)?.span);
                for (_, indices) in self.accesses.iter().filter(|(of, _)| *of == buffer) {
                    let Index::Variable(variable) = indices.get(axis)? else { return None };
                    if variables.insert(*variable) {
                        open_variables.push(*variable);
                    }
                }
            } else if let Some(variable) = open_variables.pop() {
                linked.extents.extend(self.extents_of(variable, size)?);
                for other in self.bound_with(variable) {
                    if variables.insert(other) {
                        open_variables.push(other);
                    }
                }
                for axis in self.indexed_by(variable)? {
                    if linked.axes.insert(axis) {
                        open_axes.push(axis);
                    }
                }
            } else {
                return Some(linked);
            }
        }
    }

    /// Returns the places of a variable's extents, which must all be `size`.
    fn extents_of(&self, variable: Name, size: i128) -> Option<Vec<Span>> {
        let own = self.extents.get(&variable).map(Vec::as_slice).unwrap_or_default();
        if own.is_empty() && self.bound_with(variable).next().is_none() {
            return None;
        }
        own.iter().map(|extent| extent.filter(|extent| extent.value == size).map(|extent| extent.span)).collect()
    }

    /// Returns the loop variables of a block variable, and the block variables of a loop variable.
    fn bound_with(&self, variable: Name) -> impl Iterator<Item = Name> {
        self.bound.iter().filter_map(
            move |(block, of)| {
                if *block == variable { Some(*of) } else { (*of == variable).then_some(*block) }
            },
        )
    }

    /// Returns the axes that a variable indexes; `None` if it occurs in an index with other terms.
    fn indexed_by(&self, variable: Name) -> Option<Vec<Axis>> {
        let mut found = Vec::new();
        for (buffer, indices) in &self.accesses {
            for (axis, index) in indices.iter().enumerate() {
                match index {
                    Index::Variable(name) if *name == variable => found.push((*buffer, axis)),
                    Index::Other(names) if names.contains(&variable) => return None,
                    _ => {}
                }
            }
        }
        Some(found)
    }

    fn parameter(&mut self, reader: Reader<'_>, param: &Parameter) {
        let reader = Reader { cursor: reader.cursor.parameter(param), ..reader };
        let Some(name) = param.tree.name.map(|name| reader.cursor.name(name)) else { return };
        let mut arguments = None;
        if let Some(Expr { kind: ExprKind::Call { callee, arguments: written }, .. }) = &param.tree.annotation
            && reader.path(callee).as_deref() == Some("T.Buffer")
            && let (Some(first), Some(last)) = (written.first(), written.last())
        {
            let first_token = first.keyword.unwrap_or(first.value.tokens.start);
            arguments = Some(reader.span(TokenRange { start: first_token, end: last.value.tokens.end }));
            self.buffers.insert(name, reader.dims(written, 0));
        }
        self.params.push(Param { name, span: reader.span(param.tree.tokens), arguments });
    }

    /// Adds the variables of a loop: `for i, j in T.grid(8, 16)`, `for i in range(8)`.
    fn add_loop(&mut self, reader: Reader<'_>, target: &Expr, iter: &Expr) {
        let ExprKind::Call { callee, arguments } = &iter.kind else { return };
        let positional = arguments.iter().filter(|argument| argument.keyword.is_none());
        let extents: Vec<Option<Extent>> = positional.map(|argument| reader.extent(&argument.value)).collect();
        let is_grid = reader.path(callee).as_deref() == Some("T.grid");
        for (at, variable) in reader.variables(target).into_iter().enumerate() {
            // With two arguments, `T.serial(2, 8)`, the loop does not begin at 0.
            let extent = extents.get(at).copied().flatten().filter(|_| is_grid || extents.len() == 1);
            self.extents.entry(variable).or_default().push(extent);
        }
    }

    /// Adds the buffer or the block variables that an assignment binds.
    fn binding(&mut self, reader: Reader<'_>, target: &Expr, value: &Expr) {
        let ExprKind::Call { callee, arguments } = &value.kind else { return };
        let Some(path) = reader.path(callee) else { return };
        let variables = reader.variables(target);
        match (path.as_str(), &variables[..]) {
            ("T.axis.remap", _) => {
                let loops = arguments.get(1).map(|loops| reader.variables(&loops.value)).unwrap_or_default();
                self.bound.extend(variables.iter().copied().zip(loops));
            }
            ("T.axis.spatial" | "T.axis.reduce" | "T.axis.S" | "T.axis.R", [variable]) => {
                let extent = arguments.first().and_then(|extent| reader.extent(&extent.value));
                let of = arguments.get(1).map(|of| reader.variables(&of.value)).unwrap_or_default();
                self.extents.entry(*variable).or_default().push(extent.filter(|_| of.len() == 1));
                self.bound.extend(of.into_iter().map(|of| (*variable, of)));
            }
            ("T.match_buffer", [buffer]) => {
                self.buffers.insert(*buffer, reader.dims(arguments, 1));
                let handle = arguments.first().map(|handle| reader.variables(&handle.value)).unwrap_or_default();
                self.opened.extend(handle.into_iter().map(|handle| (handle, *buffer)));
            }
            ("T.alloc_buffer" | "T.sblock_alloc_buffer" | "T.decl_buffer" | "T.Buffer", [buffer]) => {
                self.buffers.insert(*buffer, reader.dims(arguments, 0));
            }
            _ => {}
        }
    }

    fn access(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        let ExprKind::Subscript { value, index } = &expr.kind else { return };
        let ExprKind::Name = value.kind else { return };
        let indices = match &index.kind {
            ExprKind::Tuple(indices) => &indices[..],
            _ => std::slice::from_ref(&**index),
        };
        let index = |index: &Expr| match index.kind {
            ExprKind::Name => Index::Variable(cursor.name(index.tokens.start)),
            _ => Index::Other(names_in(cursor, index)),
        };
        self.accesses.push((cursor.name(value.tokens.start), indices.iter().map(index).collect()));
    }
}

/// A statement's or parameter's text, in a segment that begins at byte `start` of the file.
#[derive(Clone, Copy)]
struct Reader<'a> {
    cursor: Cursor<'a>,
    context: &'a FileContext,
    start: u32,
}

impl Reader<'_> {
    fn span(&self, tokens: TokenRange) -> Span {
        self.cursor.span(tokens).shift(self.start)
    }

    fn path(&self, callee: &Expr) -> Option<String> {
        self.context.canonical_path(self.cursor.path(callee.tokens))
    }

    /// Whether a statement belongs to the head of the function: its attributes, or a docstring.
    fn is_attribute(&self, kind: &StatementKind) -> bool {
        match kind {
            StatementKind::Expr(Expr { kind: ExprKind::Call { callee, .. }, .. }) => {
                self.path(callee).as_deref() == Some("T.func_attr")
            }
            StatementKind::Expr(expr) => matches!(expr.kind, ExprKind::String),
            _ => false,
        }
    }

    /// Returns the names of a variable, or of a tuple or list of variables; none if another expression is among them.
    fn variables(&self, expr: &Expr) -> Vec<Name> {
        let parts = match &expr.kind {
            ExprKind::Tuple(parts) | ExprKind::List(parts) => &parts[..],
            _ => std::slice::from_ref(expr),
        };
        let name = |part: &Expr| match part.kind {
            ExprKind::Name => Some(self.cursor.name(part.tokens.start)),
            _ => None,
        };
        parts.iter().map(name).collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns the extents of a shape that is passed at `position` or by name.
    fn dims(&self, arguments: &[Argument], position: usize) -> Vec<Option<Extent>> {
        let is_shape =
            |argument: &&Argument| argument.keyword.is_some_and(|keyword| self.cursor.text(keyword) == "shape");
        let positional = arguments.get(position).filter(|argument| argument.keyword.is_none());
        match arguments.iter().find(is_shape).or(positional).map(|shape| &shape.value.kind) {
            Some(ExprKind::Tuple(dims) | ExprKind::List(dims)) => dims.iter().map(|dim| self.extent(dim)).collect(),
            _ => Vec::new(),
        }
    }

    /// Reads `8` or `T.int64(8)`.
    fn extent(&self, expr: &Expr) -> Option<Extent> {
        let literal = match &expr.kind {
            ExprKind::Call { callee, arguments } => match (self.path(callee).as_deref(), &arguments[..]) {
                (Some("T.int64" | "T.int32"), [argument]) => &argument.value,
                _ => return None,
            },
            _ => expr,
        };
        Some(Extent { span: self.span(expr.tokens), value: self.cursor.integer_value(literal)? })
    }
}

/// Returns the names in an expression.
fn names_in(cursor: Cursor<'_>, expr: &Expr) -> Vec<Name> {
    let (mut names, mut open) = (Vec::new(), vec![expr]);
    while let Some(expr) = open.pop() {
        match expr.kind {
            ExprKind::Name => names.push(cursor.name(expr.tokens.start)),
            _ => open.extend(expr.children()),
        }
    }
    names
}

/// Returns the start of the line on which a statement begins, in bytes of the file, and the blanks before it; `None` if
/// it does not begin the line.
fn line_of(segment: &Segment, statement: &Statement, start: u32) -> Option<(u32, String)> {
    let before = segment.text().get(..statement.span.start as usize)?;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let indent = before.get(line..).filter(|indent| indent.chars().all(|c| matches!(c, ' ' | '\t')))?;
    Some((start + u32::try_from(line).ok()?, indent.to_owned()))
}
