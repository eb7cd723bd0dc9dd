//! Translates the text of a `@T.prim_func` into the loop-level IR.
//!
//! [`prim_func`] accepts the syntax of all supported TVM releases. The IR usually keeps the text's operations one by
//! one and folds mainly Python numbers and casts of integer constants, so that printing and reading again gives the
//! same function. Dtypes follow TVM's rules: a Python integer is an `int32` if it fits; mixed operands are promoted,
//! with explicit casts.
//!
//! Some constructs do not exist in the IR and are eliminated:
//!
//! - Accesses of views (`T.match_buffer` of a region, `T.decl_buffer` over another buffer's data) become accesses of
//!   the underlying buffer. For example, after `B = T.match_buffer(A[4:8], (4,))` the load `B[i]` becomes `A[4 + i]`.
//! - Barriers and cross-thread reductions become loops over threads ([`rx_tir::spmd`]).
//! - `break`, `continue` and `return` become flags and predicates ([`rx_tir::leave`]).
//! - Regions (`T.reads`, `T.writes`), annotations and most attributes do not affect values and are dropped.

mod arith;
mod assign;
mod axis;
mod block;
mod buffers;
mod call;
mod collective;
mod constant;
mod expand;
mod expr;
mod fragment;
mod lanes;
mod leave;
mod loops;
mod members;
mod signature;
mod statement;
pub(crate) mod stored;
pub(crate) mod trace;
mod tree;
mod value;

use rustc_hash::FxHashMap;
use rx_base::name::NameMap;
use rx_base::{Code, DType, Diagnostic, Name};
use rx_context::{FileContext, ItemPlace, Namespace, with_uses};
use rx_ir::Origin;
use rx_syntax::ast::Expr as Tree;
use rx_syntax::{At, Cursor, Segments, SmallPath};
use rx_tir::leave::{Leave, without_leaves};
use rx_tir::placeholders::{Placeholders, Problem};
use rx_tir::{BufferId, Expr, PrimFunc, Site, Stmt, VarId};
use value::Value;

/// The result of reading a part of the text: the part, or the mistake to report.
type Outcome<T> = Result<T, Box<Diagnostic<ItemPlace>>>;

/// The limit on the nesting depth of expressions, statements and binders, chosen so that recursive walks over the IR
/// do not overflow the stack.
const DEEPEST: usize = 512;

/// Reads the prim_func `name` from its segments: decorators, header and body.
///
/// The function's buffer parameters are its tensor parameters in order, including handles over which the body declares
/// a buffer. Its [`PrimFunc::symbols`] are the variables in the shapes and strides of these buffers that are not
/// parameters.
///
/// # Errors
/// All syntax errors if there are any. Otherwise the first mistake, or the first construct that the IR does not
/// support ([`Code::NoLowering`]).
pub fn prim_func(
    segments: &Segments,
    context: &FileContext,
    name: Name,
) -> Result<PrimFunc, Vec<Diagnostic<ItemPlace>>> {
    let mut mistakes = Vec::new();
    for (at, segment) in (0u32..).zip(segments) {
        for mistake in rx_syntax::syntax_diagnostics(segment) {
            let place = |span: &rx_base::Span| ItemPlace::Segment(at, *span);
            mistakes.push(mistake.map_places(place(&mistake.primary), |span| Some(place(span))));
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let nodes = tree::read(segments, context);
    Reader::new(segments, context, name).function(&nodes).map_err(|mistake| with_uses(vec![*mistake]))
}

/// The state of the translation of one function.
struct Reader<'a> {
    file: &'a FileContext,
    /// The function under construction.
    func: PrimFunc,
    /// Scopes from outermost to innermost: names and their values.
    scopes: Vec<NameMap<Value>>,
    /// The current statement: its segment, and its index in the function.
    segment: u32,
    statement: u32,
    /// Names of the enclosing blocks, innermost last.
    operators: Vec<Name>,
    /// The first value and the extent of each loop variable or thread axis, except those of loops with a step.
    ranges: FxHashMap<VarId, (Expr, Expr)>,
    /// The names whose scalar values become cells, which are stored to: names that are assigned more than once, changed
    /// by `+=` or similar, or declared without a value.
    reassigned: NameMap<()>,
    /// Variables that are declared but not bound, such as `n = T.int64()`.
    symbols: Vec<VarId>,
    /// Parameters that are handles, with the buffer that the body has declared over each, for example by
    /// `T.match_buffer`.
    handles: NameMap<Option<BufferId>>,
    /// The axes, predicate and initialization of the enclosing blocks, innermost last.
    frames: Vec<block::Frame>,
    /// The buffers allocated in the enclosing bodies, innermost last.
    allocations: Vec<Vec<BufferId>>,
    /// Collective operations of threads and early exits, by the variables of their placeholders.
    collectives: rx_tir::spmd::Collectives,
    leaves: Placeholders<Leave>,
    /// The positions of the placeholders of both kinds.
    mark_places: FxHashMap<VarId, ItemPlace>,
    /// The number of enclosing `for` and `while` loops.
    loops: usize,
    /// The operation of the cross-thread reductions at this position (`T.comm_reducer`).
    reducer: Option<collective::Reducer>,
    /// The shape of the matrix product for each buffer of tensor-core fragments.
    fragments: FxHashMap<BufferId, fragment::Shape>,
    /// The lanes of the current vector store.
    lanes: Option<lanes::Lanes>,
    /// The current nesting depth of expressions and statements, at most [`DEEPEST`].
    depth: usize,
    /// The known macros and their expansion.
    macros: expand::Macros<'a>,
    /// The trace for the checks; only present when a trace was requested.
    record: Option<trace::Record>,
}

impl<'a> Reader<'a> {
    fn new(segments: &'a Segments, file: &'a FileContext, name: Name) -> Reader<'a> {
        Reader {
            file,
            func: PrimFunc::new(name),
            scopes: vec![NameMap::default()],
            segment: 0,
            statement: 0,
            operators: Vec::new(),
            ranges: FxHashMap::default(),
            reassigned: NameMap::default(),
            symbols: Vec::new(),
            handles: NameMap::default(),
            frames: Vec::new(),
            allocations: Vec::new(),
            collectives: FxHashMap::default(),
            leaves: FxHashMap::default(),
            mark_places: FxHashMap::default(),
            loops: 0,
            reducer: None,
            fragments: FxHashMap::default(),
            lanes: None,
            depth: 0,
            macros: expand::Macros::new(segments),
            record: None,
        }
    }

    /// Returns an error for a mistake at some tokens of the current statement.
    fn mistake<T>(&self, at: At<'_>, code: Code, message: impl Into<String>) -> Outcome<T> {
        Err(Box::new(Diagnostic::new(code, self.place(at), message)))
    }

    /// Returns an error for a construct that the IR does not support.
    fn unsupported<T>(&self, at: At<'_>, subject: &str) -> Outcome<T> {
        self.mistake(at, Code::NoLowering, format!("rx does not run {subject}"))
    }

    /// Returns the position of the current statement and the name of its innermost named block, or of the function if
    /// there is none.
    fn site(&self) -> Site {
        let named = self.operators.iter().rev().find(|name| !name.is_empty());
        Site {
            origin: Some(Origin { item: self.func.name, statement: self.statement }),
            operator: named.copied().unwrap_or(self.func.name),
        }
    }

    /// Returns the value that a name has in the visible scopes.
    fn lookup(&self, name: Name) -> Option<&Value> {
        self.scopes.iter().skip(self.macros.floor).rev().find_map(|scope| scope.get(&name))
    }

    fn bind(&mut self, name: Name, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, value);
        }
    }

    /// Reads something in a new scope.
    fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.scopes.push(NameMap::default());
        let outcome = read(self);
        self.scopes.pop();
        outcome
    }

    /// Reads something one nesting level deeper.
    fn deeper<T>(&mut self, at: At<'_>, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= DEEPEST {
            return self.mistake(
                at,
                Code::NestingTooDeep,
                format!("the function is nested more than {DEEPEST} levels deep"),
            );
        }
        self.depth += 1;
        let outcome = read(self);
        self.depth -= 1;
        outcome
    }

    /// Returns the name of a member of `T`; `None` for other expressions. Some names get the spelling of TVM 0.27:
    /// `axis.spatial` for `T.axis.S`.
    fn tir_member(&self, cursor: Cursor<'_>, tree: &Tree) -> Option<&'static str> {
        let path: SmallPath = cursor.dotted(tree)?;
        let (head, rest) = path.split_first()?;
        if rest.is_empty() || self.lookup(*head).is_some() || self.file.namespace(head) != Some(Namespace::Tir) {
            return None;
        }
        // Interned, since the name must outlive the statement.
        let joined = rest.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(".");
        Some(match joined.as_str() {
            "block" => "sblock",
            "block_attr" => "sblock_attr",
            "axis.S" => "axis.spatial",
            "axis.R" => "axis.reduce",
            other => rx_base::name::name(other).as_str(),
        })
    }

    /// Creates a placeholder statement for a construct that the IR cannot express.
    fn mark(&mut self, at: At<'_>, of: &str) -> (VarId, Stmt) {
        let var = self.func.add_var(rx_base::name::name(of), DType::BOOL);
        self.mark_places.insert(var, self.place(at));
        (var, Stmt::Evaluate(self.func.var_expr(var)))
    }

    /// Returns the error that a function with placeholders cannot be run, at the placeholder that causes it.
    fn not_run(&self, problem: Problem, whole: &ItemPlace) -> Box<Diagnostic<ItemPlace>> {
        let place = self.mark_places.get(&problem.at).unwrap_or(whole).clone();
        let message = format!("rx does not run this function: {}", problem.reason);
        Box::new(Diagnostic::new(Code::NoLowering, place, message))
    }

    /// Completes the function after its parameters and body have been read: eliminates early exits, inserts implied
    /// barriers, converts collective operations to loops, and drops unused variables and buffers. Fails if one of these
    /// steps does, or if a symbol occurs neither in the shape nor in the strides of a buffer parameter, since a call
    /// cannot determine its value.
    fn finish(mut self, at: At<'_>, body: Stmt) -> Outcome<PrimFunc> {
        self.func.body = body;
        self.func.symbols = std::mem::take(&mut self.symbols);
        let whole = self.place(at);
        if !self.leaves.is_empty() {
            let made = without_leaves(&self.func, &self.leaves);
            self.func = made.map_err(|problem| self.not_run(problem, &whole))?;
        }
        rx_tir::spmd::insert_implied_barriers(&mut self.func, &mut self.collectives);
        if !self.collectives.is_empty() {
            let made = rx_tir::spmd::as_loops(&self.func, &self.collectives);
            self.func = made.map_err(|problem| self.not_run(problem, &whole))?;
        }
        let func = rx_tir::renumber::renumber(&self.func);
        let reported = |symbol: VarId| {
            func.buffer_params().any(|buffer| {
                let buffer = func.buffer(buffer);
                buffer.shape.iter().chain(buffer.strides.iter().flatten()).any(|dim| dim.uses(symbol))
            })
        };
        match func.symbols.iter().find(|symbol| !reported(**symbol)) {
            None => Ok(func),
            Some(symbol) => {
                let message = format!("no parameter determines the value of `{}`", func.var(*symbol).name);
                self.mistake(at, Code::UndefinedSymbolicVar, message)
            }
        }
    }
}
