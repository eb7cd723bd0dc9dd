//! Reads the mentions of some names in an item, in the order of evaluation, with the blocks around them.
//!
//! Only segments whose text contains one of the names are read. A block never extends over several segments, except for
//! dataflow blocks, which are no scopes. The segments that are skipped therefore do not affect the result.

use super::mention::{Found, Hit, Mention, Scanner};
use memchr::memmem::Finder;
use rx_base::Name;
use rx_syntax::ast::StatementKind;
use rx_syntax::document::{FunctionKind, Item, ItemKind};
use rx_syntax::{Segment, Statement};
use std::ops::Range;

/// The mentions of some names in an item.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// All mentions in the order of evaluation: the operands of a binding before the variables that it binds.
    pub(crate) mentions: Vec<Mention>,
    /// The mentions, interleaved with the start and end of blocks.
    pub(crate) events: Vec<Event>,
}

/// A step in the traversal of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A mention, by its index.
    Mention(usize),
    /// The start of a statement that may bind names.
    Binding,
    /// The start of a block.
    Open(Block),
    /// The start of a branch of the innermost `if`.
    Arm,
    /// The end of a branch of the innermost `if`.
    EndArm,
    /// The end of the innermost block.
    Close,
}

/// The scoping rule of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// An `if` of a Relax function. Its branches may give a value to the same variable.
    If,
    /// A nested function or lambda. Its bindings end with it.
    Function,
    /// A block of a prim_func. After it, a name that it rebinds refers to the outer variable again.
    Scope,
}

/// Reads the segments `range` of an item for the names `wanted`.
pub(crate) fn read(item: &Item, wanted: &[Name], range: Range<usize>) -> Reading {
    read_where(item, wanted, range, |_| true)
}

/// As [`read`], but only the segments that `keep` accepts.
pub(crate) fn read_where(item: &Item, wanted: &[Name], range: Range<usize>, keep: impl Fn(usize) -> bool) -> Reading {
    let mut reader = Reader {
        wanted,
        finders: wanted.iter().map(|name| Finder::new(name.as_bytes())).collect(),
        prim: matches!(item.kind, ItemKind::Function(FunctionKind::Prim | FunctionKind::Macro | FunctionKind::Other)),
        // The first `def` of a function and the class of a module are the item's own.
        own: matches!(item.kind, ItemKind::Function(_) | ItemKind::ModuleHeader),
        open: Vec::new(),
        out: Reading::default(),
    };
    for (at, segment) in item.segments.iter().enumerate().take(range.end).skip(range.start) {
        reader.own &= at == 0;
        if keep(at) {
            reader.segment(at, segment);
        }
    }
    reader.out
}

struct Reader<'a> {
    wanted: &'a [Name],
    finders: Vec<Finder<'a>>,
    prim: bool,
    own: bool,
    /// The open blocks, each with the column of its header.
    open: Vec<(u32, Block)>,
    out: Reading,
}

impl Reader<'_> {
    fn segment(&mut self, at: usize, segment: &Segment) {
        let hits = self.hits(segment.text());
        if hits.is_empty() {
            return;
        }
        let wanted = self.wanted;
        let scanner = Scanner { wanted, prim: self.prim, segment, at };
        let mut left = &hits[..];
        for statement in &segment.tree().statements {
            let before = left.partition_point(|hit| hit.offset < statement.span.start);
            let count = left.partition_point(|hit| hit.offset < statement.span.end);
            let own =
                self.own && matches!(statement.tree.kind, StatementKind::Def { .. } | StatementKind::Class { .. });
            self.own &= !own;
            let found = scanner.mentions(statement, left.get(before..count).unwrap_or_default(), own);
            left = left.get(count..).unwrap_or_default();
            self.statement(statement, found, own);
        }
        while !self.open.is_empty() {
            self.close();
        }
    }

    /// Returns the occurrences of the names in a text as whole words, in order.
    fn hits(&self, text: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        let part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let bytes = text.as_bytes();
        for (which, (finder, name)) in self.finders.iter().zip(self.wanted).enumerate() {
            let whole = finder.find_iter(bytes).filter(|at| {
                let before = at.checked_sub(1).and_then(|before| bytes.get(before));
                !part(before) && !part(bytes.get(at + name.len()))
            });
            hits.extend(whole.filter_map(|at| Some(Hit { which, offset: u32::try_from(at).ok()? })));
        }
        hits.sort_by_key(|hit| hit.offset);
        hits
    }

    fn statement(&mut self, statement: &Statement, found: Found, own: bool) {
        let kind = &statement.tree.kind;
        let next_arm = self.close_blocks(statement);
        if next_arm {
            self.event(Event::EndArm);
        }
        match kind {
            StatementKind::Assign { .. } | StatementKind::AnnAssign { .. } => {
                self.event(Event::Binding);
                self.add(found);
            }
            StatementKind::Def { .. } if own => {
                let Found { reads, binds, lambdas } = found;
                self.add(Found { reads: binds, binds: reads, lambdas });
            }
            StatementKind::Def { .. } => self.nested_function(statement, found),
            StatementKind::If(_) if !self.prim => {
                self.add(found);
                self.open(statement, Block::If);
                self.event(Event::Arm);
            }
            StatementKind::Elif(_) | StatementKind::Else if next_arm => {
                self.add(found);
                self.event(Event::Arm);
            }
            kind if self.prim && kind.opens_block() => {
                let Found { reads, binds, lambdas } = found;
                self.add(Found { reads, lambdas, ..Found::default() });
                self.open(statement, Block::Scope);
                self.add(Found { binds, ..Found::default() });
            }
            _ => self.add(found),
        }
    }

    /// Closes the blocks that do not contain the statement. Returns `true` if the statement starts the next branch of
    /// the innermost block.
    fn close_blocks(&mut self, statement: &Statement) -> bool {
        let arm = matches!(statement.tree.kind, StatementKind::Elif(_) | StatementKind::Else);
        while !statement.inline
            && let Some((indent, block)) = self.open.last().copied()
            && statement.indent <= indent
        {
            if arm && block == Block::If && statement.indent == indent {
                return true;
            }
            self.close();
        }
        false
    }

    /// Adds a nested function. Its name is bound in the enclosing block, and its parameters in its own.
    fn nested_function(&mut self, statement: &Statement, found: Found) {
        self.event(Event::Binding);
        let is_name = |mention: &Mention| mention.role == super::mention::Role::Bind(super::mention::Bound::Function);
        let (name, params): (Vec<_>, Vec<_>) = found.binds.into_iter().partition(is_name);
        self.add(Found { binds: name, ..Found::default() });
        self.open(statement, Block::Function);
        self.add(Found { reads: params, binds: found.reads, lambdas: found.lambdas });
    }

    fn open(&mut self, statement: &Statement, block: Block) {
        self.open.push((statement.indent, block));
        self.event(Event::Open(block));
    }

    fn close(&mut self) {
        if let Some((_, block)) = self.open.pop() {
            if block == Block::If {
                self.event(Event::EndArm);
            }
            self.event(Event::Close);
        }
    }

    fn event(&mut self, event: Event) {
        self.out.events.push(event);
    }

    /// Adds mentions in the order of evaluation: uses, then lambdas, then bindings.
    fn add(&mut self, found: Found) {
        found.reads.into_iter().for_each(|mention| self.mention(mention));
        for lambda in found.lambdas {
            self.event(Event::Open(Block::Function));
            lambda.into_iter().for_each(|mention| self.mention(mention));
            self.event(Event::Close);
        }
        found.binds.into_iter().for_each(|mention| self.mention(mention));
    }

    fn mention(&mut self, mention: Mention) {
        self.out.events.push(Event::Mention(self.out.mentions.len()));
        self.out.mentions.push(mention);
    }
}
