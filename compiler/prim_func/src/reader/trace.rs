//! What a prim_func does, in the order of its text, with the places of its parts: what checks of kernels look at.
//!
//! The same reader that makes loops for lowering writes it beside them. It goes on after what it cannot read: such a
//! statement becomes [`Event::Unread`] with the names in it, and nothing is claimed of them.

use super::tree::{self, Node};
use super::value::{Value, View};
use super::{Outcome, Reader};
use rx_base::name::NameSet;
use rx_base::{Code, DType, Diagnostic, Name};
use rx_context::file_context::python_names;
use rx_context::{FileContext, ItemPlace, MacroPlace};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, StatementKind, TokenRange};
use rx_syntax::{At, Cursor, Segment, TokenKind};
use rx_tir::{BufferId, Expr, Iter, LoopKind, PrimFunc, VarId};
use std::sync::Arc;

/// How many nodes of expressions a function may have, names replaced by what they stand for. Real kernels have
/// thousands; a text that writes values into each other can have as many as there are atoms.
const LARGEST: usize = 1 << 19;

/// A step of a function. What a step says holds until the [`Event::Close`] of the [`Event::Open`] before it.
#[derive(Debug)]
pub(crate) enum Event {
    /// What is said from here on ends with [`Event::Close`].
    Open,
    /// The end of what was said since the last open [`Event::Open`].
    Close,
    /// A loop or thread begins.
    Loop(Box<TracedLoop>),
    /// A block begins.
    Block,
    /// The first value of a reduction begins: `T.init`.
    Init,
    /// An axis of the block around.
    Axis(Box<TracedAxis>),
    /// A variable has this value.
    Let {
        /// The variable.
        var: VarId,
        /// Its value.
        value: Expr,
    },
    /// A condition holds, or does not.
    Assume {
        /// A `bool`.
        condition: Expr,
        /// Which of both.
        holds: bool,
    },
    /// What the block around declares to read or write; none is said by `T.reads()`.
    Regions {
        /// Whether `T.writes`.
        write: bool,
        /// The regions that were read; those of buffers whose index is no box are left out, and `complete` is not set.
        regions: Vec<Region>,
        /// Whether nothing was left out.
        complete: bool,
        /// The call.
        place: ItemPlace,
    },
    /// A buffer begins to live.
    Allocate(BufferId),
    /// An element is read or written.
    Access(Box<Access>),
    /// A float is stored to integers, which may not have its value.
    Converted {
        /// The value's dtype.
        from: DType,
        /// Its value, where it is a constant.
        constant: Option<f64>,
        /// The buffer's.
        into: DType,
        /// The value.
        place: ItemPlace,
    },
    /// Something that could not be read, with the names in it.
    Unread(NameSet),
    /// The function, or a round of a loop, may end here: what follows may not be done.
    Leave,
}

/// A loop.
#[derive(Debug)]
pub(crate) struct TracedLoop {
    /// Its variable, counted from `start` in steps of one.
    pub(crate) var: VarId,
    /// The first value.
    pub(crate) start: Expr,
    /// How many.
    pub(crate) extent: Expr,
    /// How its iterations may run.
    pub(crate) kind: LoopKind,
    /// What the text calls it.
    pub(crate) name: Name,
    /// What that name stands for: the variable, or what a step makes of it.
    pub(crate) value: Expr,
    /// Where it is named.
    pub(crate) place: ItemPlace,
}

/// An axis of a block.
#[derive(Debug)]
pub(crate) struct TracedAxis {
    /// Variable, kind, domain and value.
    pub(crate) iter: Iter,
    /// What the text calls it.
    pub(crate) name: Name,
    /// Where it is named.
    pub(crate) place: ItemPlace,
}

/// A box of a buffer.
#[derive(Debug)]
pub(crate) struct Region {
    /// The buffer.
    pub(crate) buffer: BufferId,
    /// Its first index and number of indices, per dim.
    pub(crate) dims: Vec<(Expr, Expr)>,
    /// Where it is written.
    pub(crate) place: ItemPlace,
}

/// A load or store of one element.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Whether a store.
    pub(crate) write: bool,
    /// The buffer behind what is indexed.
    pub(crate) buffer: BufferId,
    /// The element's indices there; `None` where they are not followed.
    pub(crate) element: Option<Vec<Expr>>,
    /// What is indexed, as the text calls it.
    pub(crate) name: String,
    /// Its shape.
    pub(crate) shape: Vec<Expr>,
    /// The indices in brackets, and where they stand.
    pub(crate) indices: Vec<(Expr, ItemPlace)>,
    /// `A[i, j]`.
    pub(crate) place: ItemPlace,
    /// What is stored, where it could be read.
    pub(crate) value: Option<Expr>,
}

/// A function's trace.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Its tables. Body and parameters are not complete.
    pub(crate) func: PrimFunc,
    /// Its steps.
    pub(crate) events: Vec<Event>,
    /// Where each buffer is declared, by index.
    pub(crate) declared: Vec<Option<ItemPlace>>,
    /// The parameters that are buffers.
    pub(crate) params: Vec<BufferId>,
    /// Mistakes that reading found.
    pub(crate) mistakes: Vec<Diagnostic<ItemPlace>>,
}

/// A trace while it is written.
#[derive(Debug, Default)]
pub(super) struct Record {
    events: Vec<Event>,
    /// How many [`Event::Open`] are not closed.
    open: usize,
    declared: Vec<Option<ItemPlace>>,
    mistakes: Vec<Diagnostic<ItemPlace>>,
    /// Nodes of the expressions so far.
    size: usize,
    /// Names that are bound somewhere in the function.
    bound: NameSet,
    /// Whether names may be known that the reader does not see bound.
    incomplete: bool,
}

/// Reads a prim_func from its segments. `None` where there is no header, or its text has mistakes of syntax.
pub(crate) fn trace(segments: &[Arc<Segment>], context: &FileContext, name: Name) -> Option<Trace> {
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
    /// Whether a trace is written.
    pub(super) fn is_tracing(&self) -> bool {
        self.record.is_some()
    }

    /// Adds a step to the trace.
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

    /// What `read` notes ends with it.
    pub(super) fn noted<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.note(|_| Event::Open);
        let outcome = read(self);
        self.note(|_| Event::Close);
        outcome
    }

    /// Reads something where a condition holds or does not.
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

    /// Where some tokens of the statement that is read stand.
    pub(super) fn place(&self, at: At<'_>) -> ItemPlace {
        let (segment, span) = (self.segment, at.cursor.span(at.tokens));
        match self.macros.outside() {
            Some((name, used)) => ItemPlace::Macro(Box::new(MacroPlace { name, segment, span, used: used.clone() })),
            None => ItemPlace::Segment(segment, span),
        }
    }

    /// Notes where the last buffer was declared.
    pub(super) fn note_declared(&mut self, at: At<'_>, buffer: BufferId) {
        let place = self.place(at);
        if let Some(record) = &mut self.record {
            let at = buffer.0 as usize;
            if record.declared.len() <= at {
                record.declared.resize(at + 1, None);
            }
            record.declared[at] = Some(place); // INVARIANT: just made as long.
        }
    }

    /// Notes a load or store of a view's element: of a store the value, where it could be read.
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

    /// The load that was noted last.
    pub(super) fn last_access(&self) -> Option<Access> {
        match self.record.as_ref()?.events.last()? {
            Event::Access(access) => Some((**access).clone()),
            _ => None,
        }
    }

    /// Notes a loop or thread: its name and place, its variable, its range, and what the name stands for.
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

    /// Notes what `T.reads` or `T.writes` declares.
    pub(super) fn note_regions(&mut self, at: At<'_>, write: bool, arguments: &[Argument]) {
        // What a region mentions is not accessed by it.
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

    /// `A[0:16, vi]`, or a whole buffer; `None` where what it is of is not followed.
    fn region(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<Option<Region>> {
        let (head, index) = match &tree.kind {
            ExprKind::Subscript { value, index } => (&**value, Some(&**index)),
            _ => (tree, None),
        };
        let Value::Buffer(view) = self.value(cursor, head)? else { return Ok(None) };
        let items = index.map(super::expr::index_items).unwrap_or_default();
        if items.len() > view.shape.len().max(1) {
            let name = cursor.source(head.tokens);
            let message = format!("{} indices for `{name}`, which has {} dims", items.len(), view.shape.len());
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
        // Dims in front that a window does not have are of one index.
        let one = |min: &Expr| Expr::Int { value: 1, dtype: min.dtype() };
        let front: Vec<Expr> = mins.iter().take(mins.len() - own).map(one).collect();
        let dims = mins.into_iter().zip(front.into_iter().chain(extents)).collect();
        Ok(Some(Region { buffer: view.root(), dims, place: self.place(cursor.at(tree.tokens)) }))
    }

    /// Notes the condition of a `T.assume`, where it can be read.
    pub(super) fn note_assumed(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) {
        if let (true, Some(argument)) = (self.is_tracing(), arguments.first()) {
            let open = self.standing();
            match self.truth_of(cursor, &argument.value) {
                Ok(condition) => self.note(|_| Event::Assume { condition, holds: true }),
                Err(_) => self.close_to(open.open),
            }
        }
    }

    /// A view's element in the buffer behind it. While a trace is written, what is counted row by row is not followed.
    pub(super) fn element(&self, view: &View, indices: Vec<Expr>) -> (BufferId, Vec<Expr>) {
        match self.is_tracing() {
            false => view.element(indices),
            true => (view.root(), view.followed(indices).unwrap_or_default()),
        }
    }

    /// Counts the nodes of an expression that was put where a name stood.
    ///
    /// # Errors
    /// Where the function has grown larger than is looked at.
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

    /// Names may be known that the reader does not see bound: those of a parameter it cannot read, or of a branch that
    /// Python chooses.
    pub(super) fn note_incomplete(&mut self) {
        if let Some(record) = &mut self.record {
            record.incomplete = true;
        }
    }

    /// A name that is bound, but not where it is used. Whatever else is said of names is said of the text as a whole
    /// ([`crate::names`]).
    pub(super) fn note_unbound(&mut self, at: At<'_>, name: Name) {
        // Names of macros of other items are looked at where these are checked.
        if self.macros.outside().is_some() {
            return;
        }
        let place = self.place(at);
        if let Some(record) = self.record.as_mut().filter(|record| !record.incomplete && record.bound.contains(&name)) {
            let message = format!("`{name}` is not defined here");
            let mistake = Diagnostic::new(Code::UndefinedName, place, message)
                .with_note(format!("a binding is known behind it, until its block ends; `{name}` is bound elsewhere"));
            record.mistakes.push(mistake);
        }
    }

    /// Keeps a mistake, whatever its kind.
    pub(super) fn kept<T>(&mut self, outcome: Outcome<T>) -> Outcome<T> {
        if let (Err(mistake), Some(record)) = (&outcome, &mut self.record) {
            record.mistakes.push((**mistake).clone());
        }
        outcome
    }

    /// Keeps a mistake that is the text's, whatever the reader may not know.
    pub(super) fn keep_certain(&mut self, mistake: Diagnostic<ItemPlace>) {
        if let Some(record) = self.record.as_mut().filter(|_| is_certain(mistake.code)) {
            record.mistakes.push(mistake);
        }
    }

    /// Where a statement could not be read: the trace goes on behind it.
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

    /// Where the reader stands, to come back to.
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

    /// A name that would have been bound is bound to nothing, not to what it was before.
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

/// What a reader goes back to after a statement it could not read.
#[derive(Debug)]
pub(super) struct Standing {
    open: usize,
    scopes: usize,
    frames: usize,
    operators: usize,
    allocations: usize,
    depth: usize,
}

/// Whether a mistake of this kind is the text's, whatever the reader may not know.
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

/// What is known of statements that could not be read.
#[derive(Default)]
struct Unread {
    names: NameSet,
    /// Whether the function, or a round of a loop, may end in them.
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

/// What a statement would have bound.
fn bound_by(kind: &StatementKind) -> &[Tree] {
    match kind {
        StatementKind::Assign { targets, .. } => targets,
        StatementKind::AnnAssign { target, .. } | StatementKind::AugAssign { target, .. } => {
            std::slice::from_ref(target)
        }
        _ => &[],
    }
}
