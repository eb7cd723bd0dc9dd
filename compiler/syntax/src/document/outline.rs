//! The outline: a forward scan over a text's statements that assigns each to an item and finds where segments may be
//! cut.
//!
//! The scan classifies statements by their first words and columns only, without parsing them. Its state between
//! segments is an [`Entry`], which is small and comparable: an incremental edit stops as soon as the state equals the
//! stored one.

use super::lead::{Decoration, Imports, Lead, decoration, lead, opens_block};
use super::{FileKind, FunctionKind, ItemKind};
use crate::line::{LogicalLine, indentation, logical_line, skip_trivia};
use crate::segment::holds_its_block;
use rx_base::{Code, Span};
use smallvec::SmallVec;

/// The limit on nested blocks. A deeper block is reported.
const MAX_BLOCKS: usize = 256;

const NO_BLOCK: &str = "the line is indented to no enclosing block";

/// The scan's state at a segment's start. The rest of the scan depends only on this state and on the rest of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of module headers so far.
    pub(super) classes: u32,
    /// The last module class, as long as it can have further members.
    pub(super) class: Option<Class>,
    /// The open item.
    pub(super) open: Open,
}

/// A module class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    /// The header's column.
    pub(super) indent: u32,
    /// The column of the first member; `None` before it.
    pub(super) members: Option<u32>,
    /// Whether the block is on the header's own line, so that no line below can be a member.
    pub(super) closed: bool,
}

/// The open item, with the facts that affect the statements after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// No item: the start of the text.
    Start,
    /// A run of statements of one kind, which the next statement of the same kind extends. The flag is whether the last
    /// statement was in a wrong column; if so, the next one is not reported again.
    Run(ItemKind, bool),
    /// A function.
    Function {
        /// The kind of the function.
        kind: FunctionKind,
        /// The column of the `def`.
        indent: u32,
        /// Whether it is a member of a module class.
        member: bool,
        /// The column of the body; `None` before its first statement.
        body: Option<u32>,
        /// The column of the statements in the open `with` block of the body, if there is one.
        with: Option<u32>,
        /// Whether the body is on the header's own line, so that lines below belong to no block.
        closed: bool,
    },
}

impl Entry {
    /// The state at a text's start.
    pub(super) const START: Entry = Entry { classes: 0, class: None, open: Open::Start };

    /// Returns the state without the open blocks of a function. Where the next statement starts an item, they have no
    /// effect on the rest of the scan.
    fn at_item(mut self) -> Entry {
        if let Open::Function { body, with, closed, .. } = &mut self.open {
            *body = None;
            *with = None;
            *closed = false;
        }
        self
    }
}

/// The description of a new item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head<'t> {
    pub(super) kind: ItemKind,
    pub(super) indent: u32,
    pub(super) name: Option<&'t str>,
    pub(super) module: Option<u32>,
}

/// Whether a segment may start at a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// A segment must start here.
    Must,
    /// A segment may start here.
    May,
    /// No segment may start here: the statement is part of a block that is not split.
    No,
}

/// An indentation error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndentationError {
    pub(super) code: Code,
    pub(super) message: &'static str,
    /// The statement at fault, as bytes of the scanned text.
    pub(super) span: Span,
}

/// One statement, or an item's decorators and header together.
pub(super) struct Step<'t> {
    /// The start of its line, in bytes.
    pub(super) start: usize,
    /// The start of the next statement's line, or the text's end.
    pub(super) next: usize,
    /// The scan's state before it.
    pub(super) entry: Entry,
    /// The item that it starts, if it starts one.
    pub(super) head: Option<Head<'t>>,
    /// Whether a segment may start with it.
    pub(super) cut: Cut,
    /// The number of logical lines.
    pub(super) statements: u32,
    /// Its indentation errors.
    pub(super) errors: SmallVec<[IndentationError; 1]>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    indent: u32,
    with: bool,
}

/// The state of a running scan.
pub(super) struct Outline<'t, 'a> {
    text: &'t str,
    kind: FileKind,
    imports: &'a Imports,
    at: usize,
    entry: Entry,
    /// The open blocks of the open function, outermost first: the first is the body.
    blocks: SmallVec<[Block; 8]>,
    /// Whether the last statement was a block header; if so, whether it was a `with`.
    opened: Option<bool>,
    /// Whether the last statement was a decorator inside a body.
    decorated: bool,
    /// Whether the last statement was indented less than the function that contains it. If so, the next one is not
    /// reported again.
    strayed: bool,
    /// The column of the last statement if no open block has that column. Further lines in the same column are not
    /// reported again.
    astray: Option<u32>,
}

impl<'t, 'a> Outline<'t, 'a> {
    /// Creates a scan of `text` from its start, in the state `entry`.
    pub(super) fn new(text: &'t str, kind: FileKind, imports: &'a Imports, entry: Entry) -> Outline<'t, 'a> {
        let mut blocks = SmallVec::new();
        if let Open::Function { body, with, .. } = entry.open {
            blocks.extend(body.map(|indent| Block { indent, with: false }));
            blocks.extend(with.map(|indent| Block { indent, with: true }));
        }
        Outline {
            text,
            kind,
            imports,
            at: 0,
            entry,
            blocks,
            opened: None,
            decorated: false,
            strayed: false,
            astray: None,
        }
    }

    /// The current state.
    fn state(&self) -> Entry {
        let mut entry = self.entry;
        if let Open::Function { body, with, .. } = &mut entry.open {
            *body = self.blocks.first().map(|block| block.indent);
            // An `Entry` can hold the body and one `with` block. Deeper nesting is mapped to a state at which no
            // segment starts.
            *with = match self.blocks.as_slice() {
                [] | [_] => None,
                [_, block] if block.with => Some(block.indent),
                _ => Some(u32::MAX),
            };
        }
        entry
    }

    /// Returns the next step; `None` at the text's end.
    pub(super) fn step(&mut self) -> Option<Step<'t>> {
        if self.at >= self.text.len() {
            return None;
        }
        let bytes = self.text.as_bytes();
        if self.entry.open == Open::Start {
            let next = skip_trivia(bytes, self.at);
            if next > self.at {
                return Some(self.leading_trivia(next));
            }
        }
        let (indent, start) = indentation(bytes, self.at);
        let line_lead = lead(self.text.get(start..).unwrap_or_default());
        let in_body = self.in_body(indent, line_lead);
        let bounded =
            self.kind == FileKind::Rx || in_body || self.entry.class.is_some_and(|class| indent > class.indent);
        let line = logical_line(bytes, self.at, bounded);
        let step = if in_body { self.body_step(line, line_lead) } else { self.item_step(line, line_lead, bounded) };
        self.at = step.next;
        Some(step)
    }

    fn leading_trivia(&mut self, next: usize) -> Step<'t> {
        let entry = self.entry;
        let step = Step {
            start: self.at,
            next,
            entry,
            head: Some(Head { kind: ItemKind::Prelude, indent: 0, name: None, module: None }),
            cut: Cut::Must,
            statements: 0,
            errors: SmallVec::new(),
        };
        self.entry.open = Open::Run(ItemKind::Prelude, false);
        self.at = next;
        step
    }

    /// Whether a statement belongs to the open function. In `.rx` files a statement that is invalid outside functions
    /// stays in the open function even if it is indented too little. So a line that is being typed does not split the
    /// function in two.
    fn in_body(&self, column: u32, lead: Lead<'_>) -> bool {
        let Open::Function { indent, member, .. } = self.entry.open else { return false };
        if column > indent {
            return true;
        }
        let stray = member && (column < indent || lead.is_body());
        self.kind == FileKind::Rx && !lead.starts_item() && stray
    }

    fn statement(&self, line: LogicalLine) -> &'t str {
        self.text.get(line.start..line.end).unwrap_or_default()
    }

    /// Returns the error of a header whose block has no line.
    fn empty_block(&self, line: LogicalLine) -> Option<IndentationError> {
        let bytes = self.text.as_bytes();
        if line.next < bytes.len() && indentation(bytes, line.next).0 > line.indent {
            return None;
        }
        Some(error(Code::EmptyBlock, "the block has no statement", line))
    }

    fn body_step(&mut self, line: LogicalLine, lead: Lead<'t>) -> Step<'t> {
        let mut errors = SmallVec::new();
        let stray = matches!(self.entry.open, Open::Function { indent, .. } if line.indent <= indent);
        let first = self.blocks.is_empty() && !stray;
        let decorated = std::mem::replace(&mut self.decorated, matches!(lead, Lead::Decorator(_)));
        let strayed = std::mem::replace(&mut self.strayed, stray);
        if stray && !strayed {
            errors.push(error(
                Code::BadIndentation,
                "the line is indented less than the function that contains it",
                line,
            ));
        }
        let before = self.state();
        let enters = if stray { false } else { self.enter(line, &mut errors) };
        if !stray && opens_block(self.statement(line)) {
            self.opened = Some(lead == Lead::With);
            errors.extend(self.empty_block(line));
        }
        let prim = matches!(self.entry.open, Open::Function { kind: FunctionKind::Prim | FunctionKind::Macro, .. });
        // Whether an `Entry` can represent the open blocks.
        let shallow = match self.blocks.as_slice() {
            [_] => true,
            [_, block] => block.with,
            _ => false,
        };
        let inside = stray || enters || decorated || prim || !shallow || lead == Lead::Continuation;
        let cut = match (first, inside || !errors.is_empty()) {
            (true, _) => Cut::Must,
            (false, true) => Cut::No,
            (false, false) => Cut::May,
        };
        let entry = if first { before } else { self.state() };
        Step { start: self.at, next: line.next, entry, head: None, cut, statements: 1, errors }
    }

    /// Opens and closes blocks for a statement of a body; returns whether it is the first statement of a block. A line
    /// in a column between those of the blocks, or indented without a header, also counts as the first: no segment may
    /// start there.
    fn enter(&mut self, line: LogicalLine, errors: &mut SmallVec<[IndentationError; 1]>) -> bool {
        let opened = self.opened.take();
        if self.blocks.is_empty() {
            if matches!(self.entry.open, Open::Function { closed: true, .. }) {
                errors.push(error(Code::BadIndentation, NO_BLOCK, line));
            }
            self.blocks.push(Block { indent: line.indent, with: false });
            return true;
        }
        if let (Some(with), Some(top)) = (opened, self.blocks.last())
            && line.indent > top.indent
        {
            if self.blocks.len() == MAX_BLOCKS {
                errors.push(error(Code::NestingTooDeep, "blocks nest deeper than 256", line));
            }
            self.blocks.push(Block { indent: line.indent, with });
            return true;
        }
        // A line in the column of no open block is reported and treated as part of the innermost block, so that a line
        // that is being typed does not end the blocks around it.
        match self.blocks.iter().rposition(|block| block.indent == line.indent) {
            Some(at) => self.blocks.truncate(at + 1),
            None if self.astray != Some(line.indent) => {
                errors.push(error(Code::BadIndentation, NO_BLOCK, line));
                self.astray = Some(line.indent);
                return true;
            }
            None => return true,
        }
        self.astray = None;
        false
    }

    /// Handles a statement outside functions, or the decorators and header of a function or class.
    fn item_step(&mut self, line: LogicalLine, first_lead: Lead<'t>, bounded: bool) -> Step<'t> {
        let entry = self.state().at_item();
        self.blocks.clear();
        self.opened = None;
        self.decorated = false;
        self.strayed = false;
        self.astray = None;
        if self.kind == FileKind::Python && self.entry.class.is_some_and(|class| line.indent <= class.indent) {
            self.entry.class = None;
        }
        let member = self.entry.class.is_some_and(|class| line.indent > class.indent);
        let misplaced = if member { self.misplaced_member(line.indent) } else { None };
        let group = self.decorated_group(line, first_lead, bounded);
        let mut step = Step {
            start: self.at,
            next: group.last.next,
            entry,
            head: None,
            cut: Cut::Must,
            statements: group.statements,
            errors: SmallVec::new(),
        };
        let meaning = self.meaning(&group, member);
        if let Some(message) = misplaced.filter(|_| !matches!(entry.open, Open::Run(_, true))) {
            step.errors.push(error(Code::BadIndentation, message, line));
        }
        let misplaced = misplaced.is_some();
        if let ItemKind::ModuleHeader | ItemKind::Function(_) = meaning {
            step.errors.extend(self.header_error(&group, line));
        }
        let module = match meaning {
            ItemKind::ModuleHeader => Some(self.entry.classes),
            _ => member.then(|| self.entry.classes.saturating_sub(1)),
        };
        let name = match group.header {
            Lead::Def(name) | Lead::Class(name) if !name.is_empty() => Some(name),
            _ => None,
        };
        let head = Head { kind: meaning, indent: line.indent, name, module };
        let closed = self.holds_its_block(&group);
        match meaning {
            ItemKind::Function(kind) => {
                self.entry.open = Open::Function { kind, indent: line.indent, member, body: None, with: None, closed };
            }
            ItemKind::ModuleHeader => {
                self.entry.class = Some(Class { indent: line.indent, members: None, closed });
                self.entry.classes += 1;
                self.entry.open = Open::Run(meaning, false);
            }
            ItemKind::Prelude | ItemKind::ModuleStatement | ItemKind::Foreign if matches!(entry.open, Open::Run(kind, _) if kind == meaning) =>
            {
                self.entry.open = Open::Run(meaning, misplaced);
                step.cut = Cut::May;
                return step;
            }
            _ => self.entry.open = Open::Run(meaning, misplaced),
        }
        let named = matches!(meaning, ItemKind::Function(_) | ItemKind::ModuleHeader);
        step.head = Some(Head { name: head.name.filter(|_| named), ..head });
        step
    }

    /// Returns the error of decorators without a header, or of a header without a body.
    fn header_error(&self, group: &Group<'t>, first: LogicalLine) -> Option<IndentationError> {
        match group.header {
            Lead::Decorator(_) => {
                let message = "nothing is decorated: expected `def` or `class` below";
                Some(error(Code::SyntaxError, message, first))
            }
            _ if opens_block(self.statement(group.last)) => self.empty_block(group.last),
            _ => None,
        }
    }

    /// Returns the error message for a member of the open class in a wrong column.
    fn misplaced_member(&mut self, column: u32) -> Option<&'static str> {
        let class = self.entry.class.as_mut()?;
        match class.members {
            Some(members) if members != column => Some("the line is in another column than the class's first member"),
            Some(_) => None,
            None => {
                class.members = Some(column);
                class.closed.then_some(NO_BLOCK)
            }
        }
    }

    /// Whether a function or class has its block on the header's line, after the colon. A header that ends with a colon
    /// is not lexed.
    fn holds_its_block(&self, group: &Group<'t>) -> bool {
        let header = self.statement(group.last);
        matches!(group.header, Lead::Def(_) | Lead::Class(_)) && !opens_block(header) && holds_its_block(header)
    }

    /// Collects the decorators that start at `line` with the header below them, or `line` alone.
    fn decorated_group(&self, line: LogicalLine, first_lead: Lead<'t>, bounded: bool) -> Group<'t> {
        let mut group = Group { header: first_lead, last: line, statements: 1, decoration: None };
        while let Lead::Decorator(path) = group.header {
            group.decoration = group.decoration.or(decoration(path, self.kind, self.imports));
            if group.last.next >= self.text.len() {
                break;
            }
            let next = logical_line(self.text.as_bytes(), group.last.next, bounded);
            let next_lead = lead(self.statement(next));
            if next.indent != line.indent || !next_lead.starts_item() {
                break;
            }
            group.header = next_lead;
            group.last = next;
            group.statements += 1;
        }
        group
    }

    /// Returns the kind of the item that a statement outside functions starts or extends.
    fn meaning(&self, group: &Group<'t>, member: bool) -> ItemKind {
        let script = self.kind == FileKind::Rx;
        match (group.header, group.decoration) {
            (Lead::Class(_), Some(Decoration::Module)) => ItemKind::ModuleHeader,
            (Lead::Class(_), _) if script => ItemKind::ModuleHeader,
            (Lead::Decorator(_), Some(Decoration::Module)) => ItemKind::ModuleHeader,
            (Lead::Decorator(_) | Lead::Def(_), Some(Decoration::Function(kind))) => ItemKind::Function(kind),
            (Lead::Decorator(_) | Lead::Def(_), _) if script || member => ItemKind::Function(FunctionKind::Other),
            _ if member => ItemKind::ModuleStatement,
            (Lead::Metadata, _) => ItemKind::Metadata,
            (Lead::Prelude, _) => ItemKind::Prelude,
            _ if script => ItemKind::Prelude,
            _ => ItemKind::Foreign,
        }
    }
}

/// Decorators with the header below them.
struct Group<'t> {
    /// The lead of the last line: a `def`, a `class`, or a decorator if the header is missing.
    header: Lead<'t>,
    last: LogicalLine,
    statements: u32,
    decoration: Option<Decoration>,
}

fn error(code: Code, message: &'static str, line: LogicalLine) -> IndentationError {
    IndentationError { code, message, span: Span::new(line.start as u32, line.end.max(line.start) as u32) }
}
