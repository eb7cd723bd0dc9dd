//! The trace of a prim_func: a list of events in source order with their places, the input of the kernel checks.
//!
//! The reader that builds loops for lowering also records the trace. In a trace, it continues after a statement that it
//! cannot read. Such a statement becomes [`Event::Unread`] with its names, and checks make no claim about these names.
//!
//! ```text
//! for i in range(4):        Open, Loop i in 0..4, Open
//!     if i < n:             Open, Assume i < n, Open
//!         A[i] = B[i]       Access (load B), Access (store A)
//!                           Close (four times)
//! ```

use super::tree::{self, Node};
use super::value::{Value, View};
use super::{Outcome, Reader};
use rx_base::name::NameSet;
use rx_base::{Code, DType, Diagnostic, Name, counted};
use rx_context::file_context::python_names;
use rx_context::{FileContext, ItemPlace, MacroPlace};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, StatementKind, TokenRange};
use rx_syntax::{At, Cursor, Segments, TokenKind};
use rx_tir::{BufferId, Expr, Iter, LoopKind, PrimFunc, VarId};

/// The maximum number of expression nodes in the trace of a function. It counts the nodes of each load and of the
/// declared regions and, at each use of a name, those of the name's value. If bindings use earlier ones repeatedly, the
/// number may be exponential. Real kernels have thousands of nodes.
const LARGEST: usize = 1 << 19;

/// A step of a function. The effect of most events ends with the [`Event::Close`] of the innermost open
/// [`Event::Open`].
#[derive(Debug)]
pub(crate) enum Event {
    /// Begins a group of events. Its loops, blocks, variables and conditions end with the matching [`Event::Close`]. An
    /// [`Event::Leave`] in the group also concerns the events after the group.
    Open,
    /// Ends the group of the last open [`Event::Open`].
    Close,
    /// The start of a loop or of a thread axis.
    Loop(Box<TracedLoop>),
    /// The start of a block.
    Block,
    /// The start of the initialization of a reduction: `T.init`.
    Init,
    /// An axis of the enclosing block.
    Axis(Box<TracedAxis>),
    /// A variable and its value.
    Let {
        /// The variable.
        var: VarId,
        /// Its value.
        value: Expr,
    },
    /// A condition that is known to hold, or known not to hold.
    Assume {
        /// The condition, usually of dtype `bool`; an integer holds if it is not 0.
        condition: Expr,
        /// Whether it holds.
        holds: bool,
    },
    /// The regions that the enclosing block declares to read or write. `T.reads()` declares that there are none.
    Regions {
        /// Whether the call is a `T.writes`.
        write: bool,
        /// The regions that could be read. Others, such as those that are not boxes of a buffer, are omitted, and
        /// `complete` is false.
        regions: Vec<Region>,
        /// Whether no region is omitted.
        complete: bool,
        /// The position of the call.
        place: ItemPlace,
    },
    /// The allocation of a buffer.
    Allocate(BufferId),
    /// A read or write of an element.
    Access(Box<Access>),
    /// A float that is stored to a buffer of integers, which may not be able to represent it.
    Converted {
        /// The dtype of the value.
        from: DType,
        /// The value, if it is constant.
        constant: Option<f64>,
        /// The dtype of the buffer.
        into: DType,
        /// The position of the value.
        place: ItemPlace,
    },
    /// Statements that could not be read: all names in them and in their blocks.
    Unread(NameSet),
    /// A possible early exit from the function, a loop or an iteration. Later events may not happen.
    Leave,
}

/// A loop.
#[derive(Debug)]
pub(crate) struct TracedLoop {
    /// Its variable, which takes the values from `start` in steps of one.
    pub(crate) var: VarId,
    /// The first value.
    pub(crate) start: Expr,
    /// The number of iterations.
    pub(crate) extent: Expr,
    /// Its kind: serial, parallel, vectorized, unrolled or a thread axis.
    pub(crate) kind: LoopKind,
    /// Its name in messages, usually that in the source.
    pub(crate) name: Name,
    /// The value of that name: the variable, or an expression of it if the loop has a step.
    pub(crate) value: Expr,
    /// The position of the loop, usually that of its name.
    pub(crate) place: ItemPlace,
}

/// An axis of a block.
#[derive(Debug)]
pub(crate) struct TracedAxis {
    /// Its variable, kind, domain and value.
    pub(crate) iter: Iter,
    /// Its name in the source.
    pub(crate) name: Name,
    /// The position of the name.
    pub(crate) place: ItemPlace,
}

/// A box of a buffer.
#[derive(Debug)]
pub(crate) struct Region {
    /// The buffer.
    pub(crate) buffer: BufferId,
    /// The first index and the number of indices, for each dim.
    pub(crate) dims: Vec<(Expr, Expr)>,
    /// Its position in the source.
    pub(crate) place: ItemPlace,
}

/// A load or store of one element.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Whether the access is a store.
    pub(crate) write: bool,
    /// The underlying buffer of the indexed view.
    pub(crate) buffer: BufferId,
    /// The element's indices in that buffer; `None` if the view, or a view that it is a box of, is a `Source::Flat`.
    pub(crate) element: Option<Vec<Expr>>,
    /// The source text of the indexed tensor.
    pub(crate) name: String,
    /// The shape of the indexed tensor.
    pub(crate) shape: Vec<Expr>,
    /// The indices and their positions, usually in the brackets.
    pub(crate) indices: Vec<(Expr, ItemPlace)>,
    /// The position of the whole access, `A[i, j]`.
    pub(crate) place: ItemPlace,
    /// The value of a store, if it is known.
    pub(crate) value: Option<Expr>,
}

/// The trace of a function.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The tables of variables and buffers. Its body and parameters are incomplete.
    pub(crate) func: PrimFunc,
    /// The events, statement by statement.
    pub(crate) events: Vec<Event>,
    /// The position of each buffer's declaration, indexed by buffer.
    pub(crate) declared: Vec<Option<ItemPlace>>,
    /// The buffer parameters, and the buffers over handles.
    pub(crate) params: Vec<BufferId>,
    /// Mistakes found by the reader.
    pub(crate) mistakes: Vec<Diagnostic<ItemPlace>>,
}

/// A trace under construction.
#[derive(Debug, Default)]
pub(super) struct Record {
    events: Vec<Event>,
    /// The number of open [`Event::Open`] events.
    open: usize,
    declared: Vec<Option<ItemPlace>>,
    mistakes: Vec<Diagnostic<ItemPlace>>,
    /// The number of expression nodes counted so far, which [`LARGEST`] limits.
    size: usize,
    /// All names that the function binds anywhere.
    bound: NameSet,
    /// Whether names may be bound that the reader does not see.
    incomplete: bool,
}

/// Traces a prim_func. Returns `None` if there is no header or if the text has syntax errors.
pub(crate) fn trace(segments: &Segments, context: &FileContext, name: Name) -> Option<Trace> {
    let broken = segments.iter().any(|segment| !rx_syntax::syntax_diagnostics(segment).is_empty());
    if broken {
        return None;
    }
    let nodes = tree::read(segments, context);
    let mut reader = Reader::new(segments, context, name);
    reader.record = Some(Record { bound: python_names(segments), ..Record::default() });
    reader.trace(&nodes)
}

impl Reader<'_> {
    /// Whether a trace is recorded.
    pub(super) fn is_tracing(&self) -> bool {
        self.record.is_some()
    }

    /// Appends an event to the trace.
    pub(super) fn note(&mut self, event: impl FnOnce(&Self) -> Event) {
        if self.record.is_none() {
            return;
        }
        let event = event(self);
        if let Some(record) = &mut self.record {
            match event {
                Event::Open => record.open += 1,
                Event::Close => record.open = record.open.saturating_sub(1),
                _ => {}
            }
            record.events.push(event);
        }
    }

    /// Encloses the events of `read` in an [`Event::Open`] and an [`Event::Close`].
    pub(super) fn noted<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.note(|_| Event::Open);
        let outcome = read(self);
        self.note(|_| Event::Close);
        outcome
    }

    /// Reads something under the assumption that a condition holds or does not hold.
    pub(super) fn assuming<T>(
        &mut self,
        condition: Option<&Expr>,
        holds: bool,
        read: impl FnOnce(&mut Self) -> Outcome<T>,
    ) -> Outcome<T> {
        match condition.filter(|_| self.record.is_some()) {
            None => read(self),
            Some(condition) => self.noted(|reader| {
                reader.note(|_| Event::Assume { condition: condition.clone(), holds });
                read(reader)
            }),
        }
    }

    /// Returns the position of some tokens of the current statement.
    pub(super) fn place(&self, at: At<'_>) -> ItemPlace {
        let (segment, span) = (self.segment, at.cursor.span(at.tokens));
        match self.macros.outside() {
            Some((name, used)) => ItemPlace::Macro(Box::new(MacroPlace { name, segment, span, used: used.clone() })),
            None => ItemPlace::Segment(segment, span),
        }
    }

    /// Records the position of a buffer's declaration.
    pub(super) fn note_declared(&mut self, at: At<'_>, buffer: BufferId) {
        let place = self.place(at);
        if let Some(record) = &mut self.record {
            let at = buffer.0 as usize;
            if record.declared.len() <= at {
                record.declared.resize(at + 1, None);
            }
            record.declared[at] = Some(place); // INVARIANT: resized above.
        }
    }

    /// Records an access of a view's element. `store` is `None` for a load; for a store it contains the value if it
    /// is known.
    pub(super) fn note_access(
        &mut self,
        at: At<'_>,
        label: &str,
        (view, indices): (&View, &[(Expr, TokenRange)]),
        store: Option<Option<&Expr>>,
    ) {
        if self.record.is_none() {
            return;
        }
        let element = view.followed(indices.iter().map(|(index, _)| index.clone()).collect());
        let places = indices.iter().map(|(index, tokens)| (index.clone(), self.place(at.cursor.at(*tokens))));
        let access = Access {
            write: store.is_some(),
            buffer: view.root(),
            element,
            name: label.to_owned(),
            shape: view.shape.clone(),
            indices: places.collect(),
            place: self.place(at),
            value: store.flatten().cloned(),
        };
        self.note(|_| Event::Access(Box::new(access)));
    }

    /// Returns the last event if it is an access.
    pub(super) fn last_access(&self) -> Option<Access> {
        match self.record.as_ref()?.events.last()? {
            Event::Access(access) => Some((**access).clone()),
            _ => None,
        }
    }

    /// Records a loop or thread: its name with position, its variable, its range, and the value of the name.
    pub(super) fn note_loop(
        &mut self,
        (name, place): (Name, ItemPlace),
        var: VarId,
        (start, extent, kind): (&Expr, &Expr, LoopKind),
        value: &Expr,
    ) {
        self.note(|_| {
            let (start, extent, value) = (start.clone(), extent.clone(), value.clone());
            Event::Loop(Box::new(TracedLoop { var, start, extent, kind, name, value, place }))
        });
    }

    /// Records the regions that `T.reads` or `T.writes` declares.
    pub(super) fn note_regions(&mut self, at: At<'_>, write: bool, arguments: &[Argument]) {
        // Recording is suspended, since a region is not an access.
        let Some(record) = self.record.take() else { return };
        let items = arguments.iter().flat_map(|argument| match &argument.value.kind {
            ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().collect(),
            _ => vec![&argument.value],
        });
        let mut complete = true;
        let mut regions = Vec::new();
        let mut mistakes = Vec::new();
        for item in items {
            match self.region(at.cursor, item) {
                Ok(Some(region)) => regions.push(region),
                Ok(None) => complete = false,
                Err(mistake) => {
                    complete = false;
                    mistakes.push(*mistake);
                }
            }
        }
        self.record = Some(record);
        mistakes.into_iter().for_each(|mistake| self.keep_certain(mistake));
        let size = |region: &Region| {
            let mut size = 0;
            region.dims.iter().for_each(|(min, extent)| {
                min.walk(&mut |_| size += 1);
                extent.walk(&mut |_| size += 1);
            });
            size
        };
        let size: usize = regions.iter().map(size).sum();
        if let Some(record) = &mut self.record {
            record.size += size;
        }
        self.note(|reader| Event::Regions { write, regions, complete, place: reader.place(at) });
    }

    /// Reads a region: `A[0:16, vi]` or a whole buffer. Returns `None` if it is not a box of a buffer: not a tensor, a
    /// slice with a step, or a region of a view that reshapes memory.
    fn region(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Option<Region>> {
        let (head, index) = match &tree.kind {
            ExprKind::Subscript { value, index } => (&**value, Some(&**index)),
            _ => (tree, None),
        };
        let Value::Buffer(view) = self.value(cursor, head)? else { return Ok(None) };
        let items = index.map(super::expr::index_items).unwrap_or_default();
        if items.len() > view.shape.len().max(1) {
            let name = cursor.source(head.tokens);
            let message =
                format!("`{name}` has {}; found {}", counted(view.shape.len(), "dim"), counted(items.len(), "index"));
            return self.mistake(cursor.at(tree.tokens), Code::TensorNdimMismatch, message);
        }
        let mut dims = Vec::with_capacity(view.shape.len());
        for (item, extent) in items.into_iter().zip(&view.shape) {
            dims.push(match &item.kind {
                ExprKind::Slice { lower, upper, step: None } => {
                    let zero = Expr::Int { value: 0, dtype: extent.dtype() };
                    let lower = lower.as_ref().map_or(Ok(zero), |lower| self.integer_of(cursor, lower))?;
                    let upper = upper.as_ref().map_or(Ok(extent.clone()), |upper| self.integer_of(cursor, upper))?;
                    let extent = self.difference(cursor.at(item.tokens), upper, lower.clone())?;
                    (lower, extent)
                }
                ExprKind::Slice { .. } => return Ok(None),
                _ => {
                    let index = self.integer_of(cursor, item)?;
                    let one = Expr::Int { value: 1, dtype: index.dtype() };
                    (index, one)
                }
            });
        }
        for extent in view.shape.iter().skip(dims.len()) {
            dims.push((Expr::Int { value: 0, dtype: extent.dtype() }, extent.clone()));
        }
        let (mins, extents): (Vec<Expr>, Vec<Expr>) = dims.into_iter().unzip();
        let own = extents.len();
        let Some(mins) = view.followed(mins) else { return Ok(None) };
        // Leading dims that a view of a region lacks have one index.
        let one = |min: &Expr| Expr::Int { value: 1, dtype: min.dtype() };
        let front: Vec<Expr> = mins.iter().take(mins.len() - own).map(one).collect();
        let dims = mins.into_iter().zip(front.into_iter().chain(extents)).collect();
        Ok(Some(Region { buffer: view.root(), dims, place: self.place(cursor.at(tree.tokens)) }))
    }

    /// Records the condition of a `T.assume`, if it can be read.
    pub(super) fn note_assumed(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) {
        if let (true, Some(argument)) = (self.is_tracing(), arguments.first()) {
            let open = self.standing();
            match self.truth_of(cursor, &argument.value) {
                Ok(condition) => self.note(|_| Event::Assume { condition, holds: true }),
                Err(_) => self.close_to(open.open),
            }
        }
    }

    /// Returns the underlying buffer of a view, and the indices of the view's element in that buffer. In a trace the
    /// indices are empty if the view reshapes memory, since a trace does not compute them.
    pub(super) fn element(&self, view: &View, indices: Vec<Expr>) -> (BufferId, Vec<Expr>) {
        match self.is_tracing() {
            false => view.element(indices),
            true => (view.root(), view.followed(indices).unwrap_or_default()),
        }
    }

    /// In a trace, adds the nodes of the value of a name or load to the size of the function.
    ///
    /// # Errors
    /// If the function becomes larger than the limit.
    pub(super) fn grown(&mut self, at: At<'_>, value: &Value) -> Outcome<()> {
        let Some(record) = &mut self.record else { return Ok(()) };
        if let Value::Expr(expr) = value {
            expr.walk(&mut |_| record.size += 1);
        }
        match record.size > LARGEST {
            true => self.unsupported(at, "expressions of this size"),
            false => Ok(()),
        }
    }

    /// Notes that names may be bound that the reader does not see: by a parameter that it cannot read, or in a branch
    /// that Python selects.
    pub(super) fn note_incomplete(&mut self) {
        if let Some(record) = &mut self.record {
            record.incomplete = true;
        }
    }

    /// Reports a name that is bound in the function, but not where it is used, unless the reader may have missed
    /// bindings ([`Reader::note_incomplete`]). All other unbound names are reported by [`crate::names`].
    pub(super) fn note_unbound(&mut self, at: At<'_>, name: Name) {
        // Macros of other items are checked with those items.
        if self.macros.outside().is_some() {
            return;
        }
        let place = self.place(at);
        if let Some(record) = self.record.as_mut().filter(|record| !record.incomplete && record.bound.contains(&name)) {
            let message = format!("`{name}` is not defined here");
            let mistake = Diagnostic::new(Code::UndefinedName, place, message).with_note(format!(
                "a binding is visible only after it, until its block ends; `{name}` is bound elsewhere"
            ));
            record.mistakes.push(mistake);
        }
    }

    /// Records the mistake of an outcome, regardless of its code.
    pub(super) fn kept<T>(&mut self, outcome: Outcome<T>) -> Outcome<T> {
        if let (Err(mistake), Some(record)) = (&outcome, &mut self.record) {
            record.mistakes.push((**mistake).clone());
        }
        outcome
    }

    /// Records a mistake if its code means that the text is certainly wrong, regardless of the limits of the reader.
    pub(super) fn keep_certain(&mut self, mistake: Diagnostic<ItemPlace>) {
        if let Some(record) = self.record.as_mut().filter(|_| is_certain(mistake.code)) {
            record.mistakes.push(mistake);
        }
    }

    /// Restores the reader's state after statements that could not be read, and records them as unread, with the
    /// mistake if it is certain.
    pub(super) fn pass_over<'n>(
        &mut self,
        before: &Standing,
        nodes: impl Iterator<Item = &'n Node<'n>>,
        mistake: Diagnostic<ItemPlace>,
    ) {
        self.keep_certain(mistake);
        self.close_to(before.open);
        self.scopes.truncate(before.scopes);
        self.frames.truncate(before.frames);
        self.operators.truncate(before.operators);
        self.allocations.truncate(before.allocations);
        self.depth = before.depth;
        self.lanes = None;
        if let Some(record) = &mut self.record {
            record.incomplete = true;
        }
        let mut unread = Unread::default();
        for node in nodes {
            unread.add(node);
            for target in bound_by(&node.kind) {
                self.poison(node.cursor, target);
            }
        }
        if unread.leaves {
            self.note(|_| Event::Leave);
        }
        self.note(|_| Event::Unread(unread.names));
    }

    fn close_to(&mut self, open: usize) {
        while self.record.as_ref().is_some_and(|record| record.open > open) {
            self.note(|_| Event::Close);
        }
    }

    /// Returns the state of the reader that [`Reader::pass_over`] restores.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            open: self.record.as_ref().map_or(0, |record| record.open),
            scopes: self.scopes.len(),
            frames: self.frames.len(),
            operators: self.operators.len(),
            allocations: self.allocations.len(),
            depth: self.depth,
        }
    }

    /// Binds the names in an assignment's target to [`Value::Nothing`], so that they do not keep their old values.
    fn poison(&mut self, cursor: Cursor<'_>, target: &Tree) {
        match &target.kind {
            ExprKind::Name => self.bind(cursor.name(target.tokens.start), Value::Nothing),
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|item| self.poison(cursor, item)),
            _ => {}
        }
    }

    fn trace(mut self, nodes: &[Node<'_>]) -> Option<Trace> {
        let params = self.read_for_trace(nodes).ok()?;
        let mut func = self.func;
        func.symbols = self.symbols;
        let Record { events, mut declared, mistakes, .. } = self.record?;
        declared.resize(func.buffers.len(), None);
        Some(Trace { func, events, declared, params, mistakes })
    }
}

/// The state that the reader restores after a statement that it could not read.
#[derive(Debug)]
pub(super) struct Standing {
    open: usize,
    scopes: usize,
    frames: usize,
    operators: usize,
    allocations: usize,
    depth: usize,
}

/// Whether a mistake with this code is certain, regardless of the limits of the reader.
fn is_certain(code: Code) -> bool {
    matches!(
        code,
        Code::TensorNdimMismatch
            | Code::IndexDtype
            | Code::DtypeMismatch
            | Code::UnknownDtype
            | Code::ConditionType
            | Code::AttrBadValue
            | Code::MisplacedStatement
            | Code::ShapeMismatch
    )
}

/// The names and exits in statements that could not be read.
#[derive(Default)]
struct Unread {
    names: NameSet,
    /// Whether they may exit the function or an iteration of a loop.
    leaves: bool,
}

impl Unread {
    fn add(&mut self, node: &Node<'_>) {
        const LEAVING: [&str; 4] = ["continue_loop", "break_loop", "ret", "thread_return"];
        self.leaves |= matches!(*node.kind, StatementKind::Return(_) | StatementKind::Break | StatementKind::Continue);
        for token in 0..node.token_count {
            if node.cursor.kind(token).is_some_and(TokenKind::is_name) {
                let name = node.cursor.name(token);
                self.leaves |= LEAVING.contains(&name.as_str());
                self.names.insert(name);
            }
        }
        node.children.iter().for_each(|child| self.add(child));
    }
}

/// Returns the targets of an assignment, which it would have bound; none for other statements.
fn bound_by(kind: &StatementKind) -> &[Tree] {
    match kind {
        StatementKind::Assign { targets, .. } => targets,
        StatementKind::AnnAssign { target, .. } | StatementKind::AugAssign { target, .. } => {
            std::slice::from_ref(target)
        }
        _ => &[],
    }
}
