//! What an item writes of some names, in the order in which it counts, with the blocks around.
//!
//! Only segments whose text has one of the names are looked at. Blocks lie inside a segment, but for dataflow blocks, which hide
//! nothing: so what is not looked at changes nothing.

use super::mention::{Found, Hit, Mention, Scanner};
use memchr::memmem::Finder;
use rx_base::Name;
use rx_syntax::ast::StatementKind;
use rx_syntax::document::{FunctionKind, Item, ItemKind};
use rx_syntax::{Segment, Statement};
use std::ops::Range;

/// What an item writes of some names.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Each time, in the order in which they count: a value before what it is bound to.
    pub(crate) mentions: Vec<Mention>,
    /// The same with the blocks around.
    pub(crate) events: Vec<Event>,
}

/// A step through an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The next mention.
    Mention(usize),
    /// A statement begins that may bind names.
    Binding,
    /// A block begins.
    Open(Block),
    /// A branch of the `if` begins.
    Arm,
    /// A branch of the `if` ends.
    EndArm,
    /// The block ends.
    Close,
}

/// What a block does to the names bound in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// An `if` of a Relax function: its branches give a value to one variable.
    If,
    /// A function or lambda in the item: what it binds ends with it.
    Function,
    /// A block of a prim_func: what it binds anew is the outer again behind it.
    Scope,
}

/// Reads the segments `range` of an item for the names `wanted`.
pub(crate) fn read(item: &Item, wanted: &[Name], range: Range<usize>) -> Reading {
    read_where(item, wanted, range, |_| true)
}

/// As [`read`], of the segments that `keep` keeps.
pub(crate) fn read_where(item: &Item, wanted: &[Name], range: Range<usize>, keep: impl Fn(usize) -> bool) -> Reading {
    let mut reader = Reader {
        wanted,
        finders: wanted.iter().map(|name| Finder::new(name.as_bytes())).collect(),
        prim: matches!(item.kind, ItemKind::Function(FunctionKind::Prim | FunctionKind::Macro | FunctionKind::Other)),
        // The first `def` of a function, and the class of a module, are the item's own.
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
    /// The open blocks, each with its header's column.
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

    /// The names in a text as whole words, in order.
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

    /// Ends the blocks that a statement does not stand in. True: it begins the next branch of the innermost.
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

    /// The function's name is the outer block's, the rest its own.
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

    /// Adds mentions: what is read, then lambdas, then what is bound.
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
