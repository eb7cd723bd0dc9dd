//! Which mentions of a name speak of one thing.
//!
//! In a Relax function a binding makes a new variable, also of a name that is bound already. The bindings that the branches of an
//! `if` end with are one variable. A symbolic dim is one in its function, however often it is declared.

use super::mention::{Bound, Mention, Role};
use super::reading::{Block, Event, Reading};
use rx_base::Name;

/// What a mention means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Meaning {
    /// A variable of the item.
    Local(usize),
    /// What the module or file calls so.
    Outer,
    /// The item's own function or class.
    Own,
    /// A member of what this name stands for.
    Member(Name),
    /// A keyword of a call of the function with this name: `k` of `bump(k=i)` is a parameter of `bump`.
    Keyword(Name),
    /// Another name's: it was not asked for.
    Other,
}

/// What the item and its file say to the names in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    /// Whether the item is a prim_func.
    pub(crate) prim: bool,
    /// Whether the item is no function: what it binds is the module's.
    pub(crate) module_level: bool,
    /// Whether the file declares a symbolic dim of the name.
    pub(crate) symbol: bool,
    /// Whether Python around the item gives the name a meaning.
    pub(crate) captured: bool,
}

/// A variable of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    /// What made it.
    pub(crate) bound: Bound,
    /// Another with which it is one; itself if there is none.
    same: usize,
}

/// The meanings of the mentions of one name.
#[derive(Debug, Default)]
pub(crate) struct Meanings {
    /// By mention.
    pub(crate) of: Vec<Meaning>,
    /// Whether the mention gives its variable a meaning.
    pub(crate) defines: Vec<bool>,
    variables: Vec<Variable>,
}

impl Meanings {
    /// The mention that binds the variable which a mention means.
    pub(crate) fn binding(&self, mention: usize) -> Option<usize> {
        let own = self.of.get(mention).filter(|meaning| matches!(meaning, Meaning::Local(_)))?;
        self.of.iter().zip(&self.defines).position(|(meaning, defines)| *defines && meaning == own)
    }

    /// The variable that stands for all that are one with it.
    pub(crate) fn root(&self, variable: usize) -> usize {
        let mut at = variable;
        while let Some(found) = self.variables.get(at)
            && found.same != at
        {
            at = found.same;
        }
        at
    }

    /// The meaning, with one number for variables that are one.
    pub(crate) fn rooted(&self, mention: usize) -> Meaning {
        match self.of.get(mention).copied().unwrap_or(Meaning::Other) {
            Meaning::Local(variable) => Meaning::Local(self.root(variable)),
            meaning => meaning,
        }
    }

    /// A variable.
    pub(crate) fn variable(&self, at: usize) -> Option<&Variable> {
        self.variables.get(at)
    }
}

/// The meanings of the mentions for which `is_it`: those of one name, or of what is to be one.
pub(crate) fn resolve(reading: &Reading, around: Around, is_it: impl Fn(usize, &Mention) -> bool) -> Meanings {
    let count = reading.mentions.len();
    let meanings = Meanings { of: vec![Meaning::Other; count], defines: vec![false; count], variables: Vec::new() };
    let mut resolver = Resolver { around, meanings, current: None, frames: Vec::new() };
    for event in &reading.events {
        match event {
            Event::Mention(at) => {
                if let Some(mention) = reading.mentions.get(*at)
                    && is_it(*at, mention)
                {
                    let (meaning, defines) = resolver.mention(mention.role);
                    // INVARIANT: both vectors are as long as the mentions, and `at` is a mention's index.
                    resolver.meanings.of[*at] = meaning;
                    resolver.meanings.defines[*at] = defines;
                }
            }
            Event::Binding => resolver.ends_in(None),
            Event::Open(block) => resolver.open(*block),
            Event::Arm => {}
            Event::EndArm => resolver.end_arm(),
            Event::Close => resolver.close(),
        }
    }
    resolver.meanings
}

struct Frame {
    block: Block,
    /// What the name meant before the block.
    outer: Option<usize>,
    /// Of an `if`: the variable the branch ends with, if it is of this name.
    last: Option<usize>,
    /// Of an `if`: those of the branches before.
    ends: Vec<usize>,
}

struct Resolver {
    around: Around,
    meanings: Meanings,
    current: Option<usize>,
    frames: Vec<Frame>,
}

impl Resolver {
    /// What a mention means, and whether it gives the meaning.
    fn mention(&mut self, role: Role) -> (Meaning, bool) {
        match role {
            Role::Own | Role::OwnQuoted => (Meaning::Own, role == Role::Own),
            Role::Member(base) => (Meaning::Member(base), false),
            Role::Keyword(callee) => (Meaning::Keyword(callee.name), false),
            _ if self.around.module_level => (Meaning::Outer, matches!(role, Role::Bind(_))),
            Role::Read | Role::Write | Role::Declared => (self.read(), false),
            Role::Dim { quoted } => self.dim(quoted),
            Role::Bind(bound) => self.bind(bound),
        }
    }

    fn read(&self) -> Meaning {
        self.current.map_or(Meaning::Outer, Meaning::Local)
    }

    fn dim(&mut self, quoted: bool) -> (Meaning, bool) {
        let known = self.current.and_then(|current| self.meanings.variable(current)).map(|variable| variable.bound);
        match known {
            Some(Bound::Operand) if self.around.symbol => (Meaning::Outer, false),
            None if !self.around.symbol && (quoted || !self.around.captured) => self.new_variable(Bound::Symbol),
            _ => (self.read(), false),
        }
    }

    fn new_variable(&mut self, bound: Bound) -> (Meaning, bool) {
        let variable = self.meanings.variables.len();
        self.meanings.variables.push(Variable { bound, same: variable });
        self.current = Some(variable);
        (Meaning::Local(variable), true)
    }

    fn bind(&mut self, bound: Bound) -> (Meaning, bool) {
        let known = self.current.and_then(|current| self.meanings.variable(current)).map(|variable| variable.bound);
        let prim = self.around.prim;
        let found = match (bound, known) {
            // A symbol is declared as often as one likes, and a prim_func's scalar parameter may be declared again.
            (Bound::Symbol, Some(Bound::Symbol)) => (self.read(), true),
            (Bound::Symbol, Some(Bound::Parameter)) if prim && self.frames.is_empty() => (self.read(), true),
            (Bound::Symbol, None) if !prim && self.around.symbol => (Meaning::Outer, true),
            // A parameter that is no integer may not share its name with a symbol: dims that follow speak of both.
            (Bound::Symbol, Some(Bound::Operand)) if !prim && !self.around.symbol && !self.is_nested() => {
                (self.read(), true)
            }
            // An assignment to what has a cell is a store.
            (Bound::Variable, Some(Bound::Cell | Bound::Buffer)) if prim => (self.read(), false),
            _ => self.new_variable(bound),
        };
        self.ends_in(self.current);
        found
    }

    /// Whether the place is in a function of the item's.
    fn is_nested(&self) -> bool {
        self.frames.iter().any(|frame| frame.block == Block::Function)
    }

    /// What the innermost branch ends with, so far.
    fn ends_in(&mut self, variable: Option<usize>) {
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.block == Block::If) {
            frame.last = variable;
        }
    }

    fn open(&mut self, block: Block) {
        self.frames.push(Frame { block, outer: self.current, last: None, ends: Vec::new() });
    }

    fn end_arm(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.ends.extend(frame.last.take());
            self.current = frame.outer;
        }
    }

    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        match frame.block {
            Block::If => {
                self.current = frame.outer;
                let merged = (!frame.ends.is_empty()).then(|| self.merge(&frame.ends));
                self.current = merged.or(self.current);
                self.ends_in(merged);
            }
            Block::Function => self.current = frame.outer,
            Block::Scope => self.current = frame.outer.or(self.current),
        }
    }

    /// A variable that is one with all of these.
    fn merge(&mut self, ends: &[usize]) -> usize {
        let merged = self.meanings.variables.len();
        self.meanings.variables.push(Variable { bound: Bound::Variable, same: merged });
        for end in ends {
            let root = self.meanings.root(*end);
            if let Some(variable) = self.meanings.variables.get_mut(root) {
                variable.same = merged;
            }
        }
        merged
    }
}
