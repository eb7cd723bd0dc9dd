//! Scoping rules: decides which mentions of a name refer to the same variable.
//!
//! In a Relax function, a binding creates a new variable, even if the name is already bound. If the last bindings of
//! the branches of an `if` bind the same name, they are one variable. A symbolic dim is one variable in its function,
//! however often it is declared. For example:
//!
//! ```text
//! x = R.abs(a)      # variable 1
//! x = R.exp(x)      # variable 2; the operand is variable 1
//! if c:
//!     y = x         # variable 3
//! else:
//!     y = a         # variable 3
//! return y          # variable 3
//! ```

use super::mention::{Bound, Mention, Role};
use super::reading::{Block, Event, Reading};
use rx_base::Name;

/// The meaning of a mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Meaning {
    /// A variable of the item, by its index.
    Local(usize),
    /// A symbol of the module or the file.
    Outer,
    /// The item's own function or class.
    Own,
    /// A member of the object with this name.
    Member(Name),
    /// A keyword argument in a call of the function with this name: `k` of `bump(k=i)` is a parameter of `bump`.
    Keyword(Name),
    /// Not a mention of the requested name.
    Other,
}

/// Facts about the requested name that come from the item and its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    /// Whether the item is a prim_func.
    pub(crate) prim: bool,
    /// Whether the item is not a function. The names that it binds belong to the module.
    pub(crate) module_level: bool,
    /// Whether the file declares a symbolic dim with this name.
    pub(crate) symbol: bool,
    /// Whether Python code around the item binds the name.
    pub(crate) captured: bool,
}

/// A variable of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    /// The kind of its binding.
    pub(crate) bound: Bound,
    /// The variable that this one was merged into (a union-find parent); its own index if there is none.
    same: usize,
}

/// The meanings of the mentions of one name.
#[derive(Debug, Default)]
pub(crate) struct Meanings {
    /// The meaning of each mention, by its index.
    pub(crate) of: Vec<Meaning>,
    /// Whether the mention defines its variable.
    pub(crate) defines: Vec<bool>,
    variables: Vec<Variable>,
}

impl Meanings {
    /// Returns the mention that binds the variable of another mention.
    pub(crate) fn binding(&self, mention: usize) -> Option<usize> {
        let own = self.of.get(mention).filter(|meaning| matches!(meaning, Meaning::Local(_)))?;
        self.of.iter().zip(&self.defines).position(|(meaning, defines)| *defines && meaning == own)
    }

    /// Returns the representative of all variables that are merged with this one.
    pub(crate) fn root(&self, variable: usize) -> usize {
        let mut at = variable;
        while let Some(found) = self.variables.get(at)
            && found.same != at
        {
            at = found.same;
        }
        at
    }

    /// Returns the meaning of a mention, with merged variables replaced by their representative.
    pub(crate) fn rooted(&self, mention: usize) -> Meaning {
        match self.of.get(mention).copied().unwrap_or(Meaning::Other) {
            Meaning::Local(variable) => Meaning::Local(self.root(variable)),
            meaning => meaning,
        }
    }

    /// Returns a variable by its index.
    pub(crate) fn variable(&self, at: usize) -> Option<&Variable> {
        self.variables.get(at)
    }
}

/// Resolves the mentions for which `is_it` holds. They are treated as mentions of one name, so that a rename can be
/// checked before it is made.
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
    /// The variable that the name refers to before the block.
    outer: Option<usize>,
    /// For an `if`: the variable of the branch's last binding so far, if that binding is of this name.
    last: Option<usize>,
    /// For an `if`: the same for each finished branch.
    ends: Vec<usize>,
}

struct Resolver {
    around: Around,
    meanings: Meanings,
    current: Option<usize>,
    frames: Vec<Frame>,
}

impl Resolver {
    /// Returns the meaning of a mention with this role, and whether the mention defines it.
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
            // A symbol may be declared repeatedly, and a prim_func's scalar parameter may be declared again.
            (Bound::Symbol, Some(Bound::Symbol)) => (self.read(), true),
            (Bound::Symbol, Some(Bound::Parameter)) if prim && self.frames.is_empty() => (self.read(), true),
            (Bound::Symbol, None) if !prim && self.around.symbol => (Meaning::Outer, true),
            // If a parameter that is not an integer has the same name as a symbol, later dims refer to both, so they
            // are one variable.
            (Bound::Symbol, Some(Bound::Operand)) if !prim && !self.around.symbol && !self.is_nested() => {
                (self.read(), true)
            }
            // In a prim_func, an assignment to a scalar cell or a buffer is a store, not a binding.
            (Bound::Variable, Some(Bound::Cell | Bound::Buffer)) if prim => (self.read(), false),
            _ => self.new_variable(bound),
        };
        self.ends_in(self.current);
        found
    }

    /// Whether the current position is inside a nested function.
    fn is_nested(&self) -> bool {
        self.frames.iter().any(|frame| frame.block == Block::Function)
    }

    /// Records the variable of the last binding in the innermost branch.
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

    /// Creates a variable and merges all of these into it.
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
