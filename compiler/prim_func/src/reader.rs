//! From the text of a `@T.prim_func` to the loop-level IR.
//!
//! [`prim_func`] reads both spellings of TVMScript. What is read keeps the text's operations one by one, constants
//! unfolded, so that printing and reading again gives the same function. Dtypes follow TVM's rules: a Python integer is an
//! `int32`, mixed operands are promoted and the casts are written out. Views (`T.match_buffer` of a region, `T.decl_buffer`
//! over another buffer's data) do not exist in the IR: their accesses become accesses of the buffer behind them. Neither do
//! threads that wait for each other, which become loops ([`rx_tir::spmd`]), nor `break` and its like ([`rx_tir::leave`]).
//! Regions (`T.reads`, `T.writes`), attributes and annotations say nothing about values and are left out.

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
use rx_syntax::{At, Cursor, Segment, SmallPath};
use rx_tir::leave::{Leave, without_leaves};
use rx_tir::marks::{Marks, Problem};
use rx_tir::{BufferId, Expr, PrimFunc, Site, Stmt, VarId};
use std::sync::Arc;
use value::Value;

/// What reading a part gives: it, or the one mistake that is reported.
type Outcome<T> = Result<T, Box<Diagnostic<ItemPlace>>>;

/// How deep expressions and binders may nest; what the walks over the IR can take.
const DEEPEST: usize = 512;

/// Reads the prim_func `name` from its segments: decorators, header and body.
///
/// The function's buffers are its tensor parameters, handles opened by `T.match_buffer` included, in order; its
/// [`PrimFunc::symbols`] are the variables of its buffers' shapes that no parameter passes.
///
/// # Errors
/// Mistakes of syntax; else the first mistake, or the first construct that the IR does not have ([`Code::NoLowering`]).
pub fn prim_func(
    segments: &[Arc<Segment>],
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

/// A function on its way to the IR.
struct Reader<'a> {
    file: &'a FileContext,
    func: PrimFunc,
    /// Names and their values, innermost block last.
    scopes: Vec<NameMap<Value>>,
    /// The statement that is read: its segment, and its index in the function.
    segment: u32,
    statement: u32,
    /// Names of the blocks around it, innermost last.
    operators: Vec<Name>,
    /// Of loop variables: first value and extent.
    ranges: FxHashMap<VarId, (Expr, Expr)>,
    /// Names that plain assignments bind more than once: cells that are stored to.
    reassigned: NameMap<()>,
    /// Variables that the function declares and nothing in it binds.
    symbols: Vec<VarId>,
    /// Parameters that are handles: which of them a `T.match_buffer` opened, by position.
    handles: NameMap<Option<BufferId>>,
    /// What the block that is read says of itself.
    frames: Vec<block::Frame>,
    /// Buffers allocated in the bodies around, innermost last.
    allocations: Vec<Vec<BufferId>>,
    /// What threads do together, and where something is left.
    collectives: rx_tir::spmd::Collectives,
    leaves: Marks<Leave>,
    /// Where the marks of either are written.
    mark_places: FxHashMap<VarId, ItemPlace>,
    /// How many loops are around.
    loops: usize,
    /// What reductions over threads do here.
    reducer: Option<collective::Reducer>,
    /// Of buffers of tensor cores' fragments: what these are multiplied in.
    fragments: FxHashMap<BufferId, fragment::Shape>,
    /// The lanes of the vector store that is read.
    lanes: Option<lanes::Lanes>,
    depth: usize,
    /// Macros and their expansion.
    macros: expand::Macros<'a>,
    /// What checks look at; only written where they asked.
    record: Option<trace::Record>,
}

impl<'a> Reader<'a> {
    fn new(segments: &'a [Arc<Segment>], file: &'a FileContext, name: Name) -> Reader<'a> {
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

    /// A mistake at some tokens of the statement that is read.
    fn mistake<T>(&self, at: At<'_>, code: Code, message: impl Into<String>) -> Outcome<T> {
        Err(Box::new(Diagnostic::new(code, self.place(at), message)))
    }

    /// A construct that the IR does not have.
    fn unsupported<T>(&self, at: At<'_>, what: &str) -> Outcome<T> {
        self.mistake(at, Code::NoLowering, format!("rx does not run {what}"))
    }

    /// Where the statement that is read stands, and in which block.
    fn site(&self) -> Site {
        let named = self.operators.iter().rev().find(|name| !name.is_empty());
        Site {
            origin: Some(Origin { item: self.func.name, statement: self.statement }),
            operator: named.copied().unwrap_or(self.func.name),
        }
    }

    /// The value bound to a name.
    fn lookup(&self, name: Name) -> Option<&Value> {
        self.scopes.iter().skip(self.macros.floor).rev().find_map(|scope| scope.get(&name))
    }

    fn bind(&mut self, name: Name, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, value);
        }
    }

    /// Reads something in a scope of its own.
    fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.scopes.push(NameMap::default());
        let outcome = read(self);
        self.scopes.pop();
        outcome
    }

    /// Reads something one level deeper.
    fn deeper<T>(&mut self, at: At<'_>, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= DEEPEST {
            return self.mistake(at, Code::NestingTooDeep, format!("more than {DEEPEST} levels deep"));
        }
        self.depth += 1;
        let outcome = read(self);
        self.depth -= 1;
        outcome
    }

    /// The name of a member of `T`: `axis.remap` of `T.axis.remap`, in TVM 0.27's spelling.
    fn tir_member(&self, cursor: Cursor<'_>, tree: &Tree) -> Option<&'static str> {
        let path: SmallPath = cursor.dotted(tree)?;
        let (head, rest) = path.split_first()?;
        if rest.is_empty() || self.lookup(*head).is_some() || self.file.namespace(head) != Some(Namespace::Tir) {
            return None;
        }
        // Interned, so that dispatch compares text that outlives the statement.
        let joined = rest.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(".");
        Some(match joined.as_str() {
            "block" => "sblock",
            "block_attr" => "sblock_attr",
            "axis.S" => "axis.spatial",
            "axis.R" => "axis.reduce",
            other => rx_base::name::name(other).as_str(),
        })
    }

    /// A statement that stands for what the IR has no word for.
    fn mark(&mut self, at: At<'_>, of: &str) -> (VarId, Stmt) {
        let var = self.func.add_var(rx_base::name::name(of), DType::BOOL);
        self.mark_places.insert(var, self.place(at));
        (var, Stmt::Evaluate(self.func.var_expr(var)))
    }

    /// Why a function with marks is not run, at the mark.
    fn not_run(&self, problem: Problem, whole: &ItemPlace) -> Box<Diagnostic<ItemPlace>> {
        let place = self.mark_places.get(&problem.at).unwrap_or(whole).clone();
        let message = format!("rx does not run this function: {}", problem.reason);
        Box::new(Diagnostic::new(Code::NoLowering, place, message))
    }

    /// The function, when parameters and body are read, without what nothing mentions. A variable that no parameter
    /// mentions has no value.
    fn finish(mut self, at: At<'_>, body: Stmt) -> Outcome<PrimFunc> {
        self.func.body = body;
        self.func.symbols = std::mem::take(&mut self.symbols);
        let whole = self.place(at);
        if !self.leaves.is_empty() {
            let made = without_leaves(&self.func, &self.leaves);
            self.func = made.map_err(|problem| self.not_run(problem, &whole))?;
        }
        rx_tir::spmd::imply_waits(&mut self.func, &mut self.collectives);
        if !self.collectives.is_empty() {
            let made = rx_tir::spmd::as_loops(&self.func, &self.collectives);
            self.func = made.map_err(|problem| self.not_run(problem, &whole))?;
        }
        let func = rx_tir::renumber::renumber(&self.func);
        let told = |symbol: VarId| {
            func.buffer_params().any(|buffer| {
                let buffer = func.buffer(buffer);
                buffer.shape.iter().chain(buffer.strides.iter().flatten()).any(|dim| dim.uses(symbol))
            })
        };
        match func.symbols.iter().find(|symbol| !told(**symbol)) {
            None => Ok(func),
            Some(symbol) => {
                let message = format!("the value of `{}` follows from no parameter", func.var(*symbol).name);
                self.mistake(at, Code::UndefinedSymbolicVar, message)
            }
        }
    }
}

#[cfg(test)]
mod tests;
