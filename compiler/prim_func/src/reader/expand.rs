//! Macro expansion: a call of a `@T.inline` or `@T.macro` function is replaced by the macro's statements (TVM
//! `tirx/script/parser/entry.py`, `TIRInline` and `TIRMacro`).
//!
//! ```text
//! @T.inline
//! def scale(buf, x):
//!     buf[0] = buf[0] * x
//!
//! scale(A, 2.0)           ->   A[0] = A[0] * 2.0
//! ```
//!
//! Parameters are bound to the values of the arguments. A hygienic macro sees only the scopes around its definition;
//! the scopes of its caller are hidden. The macro's statements are appended to the caller's body, so a thread that
//! the macro launches remains open for the rest of that body.

use super::signature::reassigned;
use super::statement::Sequence;
use super::tree::{self, Node};
use super::value::Value;
use super::{Outcome, Reader};
use crate::functions::{DTypeKeyword, Function, Param, ParamKind, written};
use rustc_hash::FxHashMap;
use rx_base::name::NameMap;
use rx_base::{Code, Name};
use rx_context::ItemPlace;
use rx_context::macros::{is_hygienic, makes_macro};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, Parameter, StatementKind};
use rx_syntax::{Cursor, Segments};
use std::rc::Rc;

/// The maximum number of statements that the macro calls of a function expand to. Every call counts all statements of
/// its macro.
const MOST_STATEMENTS: usize = 1 << 16;

/// The limit on the open expansions of one macro.
const MOST_RECURSIVE: usize = 128;

/// The macros that are known while a function is read, and their expansions.
pub(super) struct Macros<'a> {
    /// The current text: the function's, or that of a macro of another item.
    segments: &'a Segments,
    /// The parsed statements of the texts of the macros called so far, by the text's address.
    trees: FxHashMap<usize, Rc<Vec<Node<'a>>>>,
    /// The definitions found so far; [`Value::Macro`] is an index.
    defined: Vec<Definition<'a>>,
    /// The open expansions, innermost last.
    open: Vec<Expansion>,
    /// The number of outermost scopes that are hidden.
    pub(super) floor: usize,
    /// The number of statements in the macros expanded so far. A macro's statements count again for each expansion.
    statements: usize,
    /// The number of expansions of each macro.
    counts: FxHashMap<Id, u32>,
}

/// The identity of a macro: the address of its text, and the index of its `def` in that text.
type Id = (usize, u32);

/// The definition of a macro.
#[derive(Clone, Copy)]
struct Definition<'a> {
    segments: &'a Segments,
    /// The index of its `def`; `None` for the first `def` of the text.
    def: Option<u32>,
    hygienic: bool,
    /// The scopes that a hygienic macro sees: those before the index `scopes`, except those before `floor`.
    scopes: usize,
    floor: usize,
    /// The name of the other item that is the macro or contains it; `None` if the macro is in the function's text.
    outside: Option<Name>,
}

/// An open expansion of a macro.
struct Expansion {
    id: Id,
    /// The macro of another item and the position of the expanded call, if the macro's text is not the function's.
    outside: Option<(Name, ItemPlace)>,
    /// The suffix for the names of its blocks, as in TVM.
    suffix: String,
}

impl<'a> Macros<'a> {
    pub(super) fn new(segments: &'a Segments) -> Macros<'a> {
        Macros {
            segments,
            trees: FxHashMap::default(),
            defined: Vec::new(),
            open: Vec::new(),
            floor: 0,
            statements: 0,
            counts: FxHashMap::default(),
        }
    }

    /// Returns the macro of the innermost open expansion and the position of its call; `None` if the macro's text is
    /// the function's.
    pub(super) fn outside(&self) -> Option<(Name, &ItemPlace)> {
        self.open.last()?.outside.as_ref().map(|(name, used)| (*name, used))
    }

    /// Returns the suffix for names of blocks: `_1` during the second expansion of a macro.
    pub(super) fn suffix(&self) -> &str {
        self.open.last().map_or("", |expansion| &expansion.suffix)
    }

    /// Whether a macro is being expanded.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
}

impl<'a> Reader<'a> {
    /// Binds the macro that a decorator and the following `def` define, and returns the statements after them.
    /// Returns `None` for other statements.
    pub(super) fn macro_definition<'n, 's>(
        &mut self,
        node: &Node<'_>,
        after: &'n [Node<'s>],
    ) -> Option<&'n [Node<'s>]> {
        let StatementKind::Decorator(decorator) = &*node.kind else { return None };
        let (def, rest) = after.split_first()?;
        let StatementKind::Def { name, .. } = &*def.kind else { return None };
        if !makes_macro(node.cursor, self.file, decorator) {
            return None;
        }
        let number = self.macros.defined.len();
        self.macros.defined.push(Definition {
            segments: self.macros.segments,
            def: Some(def.index),
            hygienic: is_hygienic(node.cursor, decorator),
            scopes: self.scopes.len(),
            floor: self.macros.floor,
            outside: self.macros.outside().map(|(name, _)| name),
        });
        self.bind(def.cursor.name(*name), Value::Macro(number));
        Some(rest)
    }

    /// Whether a name refers to a macro.
    pub(super) fn is_macro(&self, cursor: Cursor<'_>, callee: &Tree) -> bool {
        self.macro_named(cursor, callee).is_some()
    }

    fn macro_named(&self, cursor: Cursor<'_>, callee: &Tree) -> Option<Definition<'a>> {
        let ExprKind::Name = callee.kind else { return None };
        let name = cursor.name(callee.tokens.start);
        match self.lookup(name) {
            Some(Value::Macro(number)) => self.macros.defined.get(*number).copied(),
            Some(_) => None,
            None => {
                let known = self.file.macros.get(&name)?;
                let outside = Some(name);
                let (segments, hygienic) = (&known.segments, known.hygienic);
                // A hygienic macro does not see the names in the outermost scope, which contains the function's symbols
                // (`floor`). The scope itself stays (`scopes`), since new symbols of the macro are declared in it.
                Some(Definition { segments, def: None, hygienic, scopes: 1, floor: 1, outside })
            }
        }
    }

    /// Appends the statements of the macro that a statement calls; `false` if it is not a call of a macro, or if a call
    /// of a `T.` function in it is wrong.
    pub(super) fn expansion(&mut self, node: &Node<'_>, body: &mut Sequence) -> Outcome<bool> {
        let StatementKind::Expr(call) = &*node.kind else { return Ok(false) };
        let ExprKind::Call { callee, arguments } = &call.kind else { return Ok(false) };
        let Some(definition) = self.macro_named(node.cursor, callee).filter(|_| node.wrong.is_none()) else {
            return Ok(false);
        };
        let before = self.standing();
        let outcome = self.expanded(node.cursor, call, callee, arguments, definition, body);
        match outcome {
            Err(mistake) if self.is_tracing() => {
                self.pass_over(&before, std::iter::once(node), *mistake);
                Ok(true)
            }
            outcome => outcome.map(|()| true),
        }
    }

    fn expanded(
        &mut self,
        cursor: Cursor<'_>,
        call: &Tree,
        callee: &Tree,
        arguments: &[Argument],
        definition: Definition<'a>,
        body: &mut Sequence,
    ) -> Outcome<()> {
        let called = cursor.text(callee.tokens.start);
        let nodes = self.statements_of(definition.segments);
        let def = match definition.def {
            Some(index) => find(&nodes, index),
            None => nodes.iter().find(|node| matches!(*node.kind, StatementKind::Def { .. })),
        };
        let Some((def, params)) = def.and_then(|def| match &*def.kind {
            StatementKind::Def { params, .. } => Some((def, params)),
            _ => None,
        }) else {
            return self.unsupported(cursor.at(call.tokens), &format!("the macro `{called}`"));
        };
        let id = (definition.segments.address(), def.index);
        // Recursion is allowed, since a test of the parameters can end it: `if depth > 0: visit(x, depth - 1)`.
        if self.macros.open.iter().filter(|open| open.id == id).count() >= MOST_RECURSIVE {
            let message = format!("the macro `{called}` calls itself more than {MOST_RECURSIVE} levels deep");
            let mistake = self.mistake(cursor.at(callee.tokens), Code::UnsupportedConstruct, message);
            return self.kept(mistake);
        }
        self.macros.statements += size(def);
        if self.macros.statements > MOST_STATEMENTS {
            let message = format!("macros expand to more than {MOST_STATEMENTS} statements");
            return self.mistake(cursor.at(call.tokens), Code::NestingTooDeep, message);
        }
        let passed = self.passed_to(cursor, call, callee, arguments, (def.cursor, params))?;
        let used = self.place(cursor.at(call.tokens));
        let count = self.macros.counts.entry(id).or_default();
        let suffix = if *count == 0 { String::new() } else { format!("_{count}") };
        *count += 1;
        let outside = definition.outside.map(|name| (name, used));
        self.macros.open.push(Expansion { id, outside, suffix });
        let outcome =
            self.deeper(cursor.at(call.tokens), |reader| reader.within(definition, def, params, passed, body));
        self.macros.open.pop();
        outcome
    }

    /// Reads the statements of a macro in the scopes that it sees.
    fn within(
        &mut self,
        definition: Definition<'a>,
        def: &Node<'a>,
        params: &[Parameter],
        passed: NameMap<Value>,
        body: &mut Sequence,
    ) -> Outcome<()> {
        let (segment, statement) = (self.segment, self.statement);
        let segments = std::mem::replace(&mut self.macros.segments, definition.segments);
        let (kept, floor) = match definition.hygienic {
            true => (definition.scopes.min(self.scopes.len()), definition.floor),
            false => (self.scopes.len(), self.macros.floor),
        };
        let hidden = self.scopes.split_off(kept);
        let floor = std::mem::replace(&mut self.macros.floor, floor);
        let mut cells = reassigned(&def.children);
        if !definition.hygienic {
            cells.extend(self.reassigned.iter().map(|(name, cell)| (*name, *cell)));
        }
        let cells = std::mem::replace(&mut self.reassigned, cells);
        self.scopes.push(NameMap::default());
        let outcome = self.enter(def, params, passed).and_then(|()| self.read_into(&def.children, body));
        self.scopes.truncate(kept);
        self.scopes.extend(hidden);
        self.macros.floor = floor;
        self.reassigned = cells;
        self.macros.segments = segments;
        (self.segment, self.statement) = (segment, statement);
        outcome
    }

    /// Binds a macro's parameters to the passed values or to their defaults, and a `*args` or `**kwargs` without values
    /// to an empty list.
    fn enter(&mut self, def: &Node<'_>, params: &[Parameter], passed: NameMap<Value>) -> Outcome<()> {
        self.stand_at(def);
        for param in params {
            let own = def.cursor.parameter(param);
            let Some(name) = param.tree.name.map(|name| own.name(name)) else { continue };
            let value = match (passed.get(&name), &param.tree.default) {
                (Some(value), _) => value.clone(),
                (None, Some(default)) => self.value(own, default)?,
                (None, None) => Value::Many(Vec::new()),
            };
            self.bind(name, value);
        }
        Ok(())
    }

    /// Evaluates the arguments of a call and assigns them to the macro's parameters by Python's rules.
    fn passed_to(
        &mut self,
        cursor: Cursor<'_>,
        call: &Tree,
        callee: &Tree,
        arguments: &[Argument],
        (header, params): (Cursor<'_>, &[Parameter]),
    ) -> Outcome<NameMap<Value>> {
        let function = signature(cursor.text(callee.tokens.start), header, params);
        let bound = function.bind(&written(cursor, arguments));
        if bound.open {
            return self.unsupported(cursor.at(call.tokens), "a macro's call with `*` or `**`");
        }
        if let Some(mistake) = bound.mistakes.first() {
            let tokens = mistake.tokens(arguments, call.tokens);
            let message = mistake.message(&function, function.name, cursor.source(tokens));
            let mistake = self.mistake(cursor.at(tokens), mistake.code(), message);
            return self.kept(mistake);
        }
        let mut passed = NameMap::default();
        for (argument, param) in arguments.iter().zip(&bound.params) {
            let Some(param) = param.and_then(|at| function.params.get(at)) else { continue };
            let value = self.value(cursor, &argument.value)?;
            let name = rx_base::name::name(param.name);
            match (param.kind, passed.get_mut(&name)) {
                (ParamKind::Keywords, _) => {
                    return self.unsupported(cursor.at(argument.value.tokens), "an argument for `**` of a macro");
                }
                (ParamKind::Variadic, Some(Value::Many(values))) => values.push(value),
                (ParamKind::Variadic, _) => drop(passed.insert(name, Value::Many(vec![value]))),
                _ => drop(passed.insert(name, value)),
            }
        }
        Ok(passed)
    }

    /// Returns the statements of a text, which are parsed once.
    fn statements_of(&mut self, segments: &'a Segments) -> Rc<Vec<Node<'a>>> {
        let file = self.file;
        let tree = self.macros.trees.entry(segments.address());
        tree.or_insert_with(|| Rc::new(tree::read(segments, file))).clone()
    }
}

/// Returns the signature of a macro.
fn signature<'t>(name: &'t str, header: Cursor<'t>, params: &[Parameter]) -> Function<'t> {
    let mut known = Vec::with_capacity(params.len());
    let mut kind = ParamKind::Positional;
    for param in params {
        let stars = param.tree.stars;
        let own = match stars {
            0 => kind,
            1 => ParamKind::Variadic,
            _ => ParamKind::Keywords,
        };
        if stars == 1 {
            kind = ParamKind::Keyword;
        }
        let Some(name) = param.tree.name.map(|name| header.parameter(param).text(name)) else { continue };
        let default = param.tree.default.as_ref().map(|default| header.parameter(param).source(default.tokens));
        known.push(Param { name, other_name: None, kind: own, default, old: false });
    }
    Function { name, params: known, dtype: DTypeKeyword::Plain }
}

/// Finds the statement with an index. Indices increase in source order, and a parent precedes its children.
fn find<'n, 's>(nodes: &'n [Node<'s>], index: u32) -> Option<&'n Node<'s>> {
    let mut nodes = nodes;
    loop {
        let at = nodes.partition_point(|node| node.index <= index).checked_sub(1)?;
        let node = nodes.get(at)?;
        if node.index == index {
            return Some(node);
        }
        nodes = &node.children;
    }
}

/// Returns the number of statements of a `def`, including itself.
fn size(def: &Node<'_>) -> usize {
    let mut last = def;
    while let Some(child) = last.children.last() {
        last = child;
    }
    (last.index - def.index) as usize + 1
}
