//! Analyzer context: the variables, ranges and conditions that hold at a position in a function, for proofs about
//! indices. The counterpart in TVM is `arith::Analyzer`.

use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::{NameMap, name};
use rx_base::symbolic::prove;
use rx_base::symbolic::{Atom, Bounds};
use rx_base::{DType, Dim, Name};
use rx_tir::expr::{BinaryOp, CompareOp, Expr, UnaryOp};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::stmt::{Block, Stmt};
use std::cell::Cell;
use std::rc::Rc;

/// The maximum number of atoms of a `let` value that is substituted for its variable.
const MAX_LET_ATOMS: usize = 64;

/// The facts about integers at a position in a function.
///
/// Integer expressions become [`Dim`]s. The symbol of a loop is the distance from the loop's start: for
/// `i in range(2, n)`, `i` is `2 + symbol` and the symbol is in `0..n - 2`. So symbols are never negative, as [`Dim`]
/// requires. A variable whose value is unknown and may be negative is an opaque atom.
///
/// `int64` index arithmetic is assumed not to overflow; arithmetic of other dtypes may wrap around. So a comparison,
/// cast, division, remainder, minimum or maximum is converted only if its operands are proved to fit in their dtype. In
/// a scope for checks ([`Scope::for_checks`]), that is assumed for all dtypes.
#[derive(Debug)]
pub struct Scope {
    pub(crate) values: FxHashMap<VarId, Dim>,
    pub(crate) extents: FxHashSet<VarId>,
    pub(crate) written: FxHashSet<BufferId>,
    pub(crate) meanings: NameMap<Expr>,
    pub(crate) opaque: Vec<(Expr, Dim)>,
    pub(crate) unknown: usize,
    renamed: Vec<(Name, Option<Expr>)>,
    /// The symbols of the entered loops, and of axes entered as loops, with their maximum values; outermost first.
    pub(crate) ranges: Vec<(Name, Dim)>,
    /// Dims that are known not to be negative.
    pub(crate) facts: Vec<Dim>,
    pub(crate) bounds: Bounds,
    /// The nesting depth of proofs.
    pub(crate) nested: usize,
    /// The work that the outermost proof may still do, in dims.
    pub(crate) work: usize,
    /// Whether arithmetic of integer dtypes other than `int64` may overflow.
    pub(crate) wraps: bool,
    /// The results of proofs since the last change of the facts. The subexpressions of an expression often need the
    /// same proofs.
    pub(crate) answers: FxHashMap<Dim, bool>,
    /// The number of dims that may still be visited over many proofs, if that is limited.
    fuel: Option<Rc<Cell<usize>>>,
}

/// A snapshot of the facts, which [`Scope::leave`] restores.
#[derive(Debug)]
pub struct Mark {
    ranges: usize,
    pub(crate) facts: usize,
    bounds: Bounds,
    renamed: usize,
}

impl Scope {
    /// Creates the scope at the start of a function. The function's symbols, and variables that are an extent of a
    /// parameter, are not negative.
    pub fn new(func: &PrimFunc) -> Scope {
        let mut extents: FxHashSet<VarId> = func.symbols.iter().copied().collect();
        for buffer in func.buffer_params() {
            extents.extend(func.buffer(buffer).shape.iter().filter_map(|dim| match dim {
                Expr::Var { var, .. } => Some(*var),
                _ => None,
            }));
        }
        let mut written = FxHashSet::default();
        func.body.walk(&mut |stmt| {
            if let Stmt::Store { buffer, .. } = stmt {
                written.insert(*buffer);
            }
        });
        Scope::over(extents, written)
    }

    /// Creates a scope in which the variables `extents` are not negative and the buffers `written` change.
    pub fn over(extents: FxHashSet<VarId>, written: FxHashSet<BufferId>) -> Scope {
        Scope {
            values: FxHashMap::default(),
            extents,
            written,
            meanings: NameMap::default(),
            opaque: Vec::new(),
            unknown: 0,
            renamed: Vec::new(),
            ranges: Vec::new(),
            facts: Vec::new(),
            bounds: Bounds::default(),
            nested: 0,
            work: 0,
            wraps: true,
            answers: FxHashMap::default(),
            fuel: None,
        }
    }

    /// Configures the scope for checks: arithmetic of all dtypes is assumed not to overflow, and proofs visit at most
    /// `fuel` dims, which they count down.
    pub fn for_checks(mut self, fuel: Rc<Cell<usize>>) -> Scope {
        self.wraps = false;
        self.fuel = Some(fuel);
        self
    }

    /// Takes one dim of fuel; returns whether there was any. Without a limit, there always is.
    pub(crate) fn burn(&self) -> bool {
        match &self.fuel {
            None => true,
            Some(fuel) => {
                let left = fuel.get();
                fuel.set(left.saturating_sub(1));
                left > 0
            }
        }
    }

    /// Sets the value of a variable.
    pub fn set_value(&mut self, var: VarId, value: Dim) {
        self.values.insert(var, value);
    }

    /// Takes a snapshot of the facts.
    pub fn mark(&self) -> Mark {
        let (ranges, facts, renamed) = (self.ranges.len(), self.facts.len(), self.renamed.len());
        Mark { ranges, facts, bounds: self.bounds.clone(), renamed }
    }

    /// Discards all facts since the snapshot. The values of variables stay.
    pub fn leave(&mut self, mark: Mark) {
        self.answers.clear();
        self.ranges.truncate(mark.ranges);
        self.facts.truncate(mark.facts);
        self.bounds = mark.bounds;
        for (symbol, meaning) in self.renamed.drain(mark.renamed..).rev() {
            match meaning {
                Some(meaning) => self.meanings.insert(symbol, meaning),
                None => self.meanings.remove(&symbol),
            };
        }
    }

    /// Enters a loop: its variable is in its range, and the range is not empty.
    pub fn enter_loop(&mut self, var: VarId, dtype: DType, start: &Expr, extent: &Expr) {
        let (start_dim, extent_dim) = (self.dim(start), self.dim(extent));
        let symbol = symbol_of(var);
        let itself = Expr::Var { var, dtype };
        let meaning = if start_dim.as_constant() == Some(0) { itself } else { itself - start.clone() };
        self.meanings.insert(symbol, meaning);
        self.values.insert(var, &start_dim + &Dim::symbol(symbol));
        let last = &extent_dim - &Dim::constant(1);
        self.assume(&last);
        if let Some(high) = prove::upper(&last, &self.bounds) {
            self.bounds.upper.insert(symbol, high);
        }
        self.ranges.push((symbol, last));
        self.answers.clear();
    }

    /// Enters a block for one axis: the axis has the value of its binding.
    ///
    /// If the value is a single symbol, such as the variable of a loop from 0, the axis keeps that symbol. If it is
    /// neither that nor a constant, and is proved to lie in the axis's domain, the axis becomes a variable with that
    /// range. This proves more about indices that recombine the quotient and remainder of one loop.
    pub fn enter_axis(&mut self, var: VarId, dtype: DType, start: &Expr, extent: &Expr, binding: &Expr) {
        let value = self.dim(binding);
        let (start_dim, extent_dim) = (self.dim(start), self.dim(extent));
        let simple = value.as_constant().is_some() || value.as_symbol().is_some();
        let offset = &value - &start_dim;
        let last = &(&extent_dim - &Dim::constant(1)) - &offset;
        if !simple && self.not_negative(&offset) && self.not_negative(&last) {
            self.enter_loop(var, dtype, start, extent);
            return;
        }
        // Expressions that are built inside the block use the axis in place of the loop variable.
        if let Some(symbol) = value.as_symbol() {
            let before = self.meanings.insert(symbol, Expr::Var { var, dtype });
            self.renamed.push((symbol, before));
        }
        self.values.insert(var, value);
    }

    /// Enters a `let`: the variable is equal to the value. Some values are ignored, such as floats and casts of floats.
    pub fn enter_let(&mut self, var: VarId, dtype: DType, value: &Expr) {
        let Some(dim) = self.integer(value) else { return };
        if is_transparent(&dim) && dim.atoms() <= MAX_LET_ATOMS {
            self.values.insert(var, dim);
            return;
        }
        // The value is evaluated once, and the buffers that it reads may change later, so the variable becomes a
        // separate atom. So does a variable with a long value. Otherwise a chain of `let`s, each with two uses of the
        // previous one, would grow exponentially.
        let itself = Dim::opaque(symbol_of(var), Vec::new());
        self.meanings.insert(symbol_of(var), Expr::Var { var, dtype });
        self.values.insert(var, itself.clone());
        self.assume(&(&itself - &dim));
        self.assume(&(&dim - &itself));
    }

    /// Learns that a condition is true if `holds`, and otherwise that it is false.
    pub fn assume_condition(&mut self, condition: &Expr, holds: bool) {
        for fact in self.consequences(condition, holds) {
            self.assume(&fact);
        }
    }

    /// Learns that a dim is not negative.
    pub fn assume(&mut self, dim: &Dim) {
        if dim.is_error() || dim.as_constant().is_some() {
            return;
        }
        self.answers.clear();
        self.facts.push(dim.clone());
        let [(product, coefficient)] = dim.terms() else { return };
        let constant = dim.constant_part();
        match (&product[..], coefficient) {
            ([(Atom::Symbol(symbol), 1)], 1) => self.raise(*symbol, constant.checked_neg()),
            ([(Atom::Symbol(symbol), 1)], -1) => {
                let known = self.bounds.upper.get(symbol).copied().unwrap_or(i64::MAX);
                self.bounds.upper.insert(*symbol, known.min(constant));
            }
            // If a product of nonnegative factors is positive, each factor is.
            (factors, coefficient) if *coefficient > 0 && constant < 0 => {
                for (factor, _) in factors {
                    if let Atom::Symbol(symbol) = factor
                        && factors.iter().all(|(atom, _)| matches!(atom, Atom::Symbol(_)))
                    {
                        self.raise(*symbol, Some(1));
                    }
                }
            }
            _ => {}
        }
    }

    fn raise(&mut self, symbol: Name, low: Option<i64>) {
        if let Some(low) = low {
            let known = self.bounds.lower.get(&symbol).copied().unwrap_or(0);
            self.bounds.lower.insert(symbol, known.max(low));
        }
    }

    /// Returns dims that are not negative if the condition has the value `holds`.
    fn consequences(&mut self, condition: &Expr, holds: bool) -> Vec<Dim> {
        match condition {
            Expr::Binary { op: BinaryOp::And, left, right } if holds => {
                let mut both = self.consequences(left, true);
                both.extend(self.consequences(right, true));
                both
            }
            Expr::Binary { op: BinaryOp::Or, left, right } if !holds => {
                let mut both = self.consequences(left, false);
                both.extend(self.consequences(right, false));
                both
            }
            Expr::Unary { op: UnaryOp::Not, value } => self.consequences(value, !holds),
            Expr::Compare { op, left, right } => {
                let Some((a, b)) = self.compared(left, right) else { return Vec::new() };
                let op = if holds { *op } else { op.negated() };
                match op {
                    CompareOp::Eq => vec![&a - &b, &b - &a],
                    CompareOp::Ne => self.apart(&a - &b),
                    op => vec![not_negative_when(op, &a, &b)],
                }
            }
            _ => Vec::new(),
        }
    }

    /// Returns the dim that is not negative if `distance` is not 0; none if the sign of `distance` is not proved.
    fn apart(&mut self, distance: Dim) -> Vec<Dim> {
        let one = Dim::constant(1);
        match () {
            () if self.not_negative(&distance) => vec![&distance - &one],
            () if self.not_negative(&-&distance) => vec![&-&distance - &one],
            () => Vec::new(),
        }
    }

    /// Converts a condition to dims that are all not negative exactly where it is true. Returns `None` if it is not a
    /// conjunction of integer inequalities (`<`, `<=`, `>`, `>=`), or if a side may wrap around. For example,
    /// `i >= 1 and i < n` becomes `i - 1`, `n - i - 1`.
    pub fn exactly(&mut self, condition: &Expr) -> Option<Vec<Dim>> {
        match condition {
            Expr::Binary { op: BinaryOp::And, left, right } => {
                let mut both = self.exactly(left)?;
                both.extend(self.exactly(right)?);
                Some(both)
            }
            Expr::Compare { op: CompareOp::Eq | CompareOp::Ne, .. } => None,
            Expr::Compare { op, left, right } => {
                let (a, b) = self.compared(left, right)?;
                Some(vec![not_negative_when(*op, &a, &b)])
            }
            _ => None,
        }
    }

    /// Decides whether a condition is always true or always false. Returns `None` if it is neither or not decided.
    pub fn decide(&mut self, condition: &Expr) -> Option<bool> {
        match condition {
            Expr::Int { value, .. } => Some(*value != 0),
            Expr::Unary { op: UnaryOp::Not, value } => self.decide(value).map(|holds| !holds),
            Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
                let decisive = *op == BinaryOp::Or;
                match (self.decide(left), self.decide(right)) {
                    (Some(one), _) | (_, Some(one)) if one == decisive => Some(decisive),
                    (Some(_), Some(_)) => Some(!decisive),
                    _ => None,
                }
            }
            Expr::Compare { op, left, right } => {
                let (a, b) = self.compared(left, right)?;
                match op {
                    CompareOp::Eq | CompareOp::Ne => {
                        let equal = self.decide_equal(&a, &b)?;
                        Some(equal == (*op == CompareOp::Eq))
                    }
                    op if self.not_negative(&not_negative_when(*op, &a, &b)) => Some(true),
                    op if self.not_negative(&not_negative_when(op.negated(), &a, &b)) => Some(false),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn decide_equal(&mut self, a: &Dim, b: &Dim) -> Option<bool> {
        let difference = a - b;
        if difference.as_constant() == Some(0) {
            return Some(true);
        }
        let one = Dim::constant(1);
        let apart = self.not_negative(&(&difference - &one)) || self.not_negative(&(&-&difference - &one));
        apart.then_some(false)
    }

    fn compared(&mut self, left: &Expr, right: &Expr) -> Option<(Dim, Dim)> {
        let dtype = left.dtype();
        let (a, b) = (self.integer(left)?, self.integer(right)?);
        (self.fits(&a, dtype) && self.fits(&b, dtype)).then_some((a, b))
    }

    /// Whether the dim is computed from variables only, without opaque expressions, so that it can be evaluated
    /// wherever they are defined.
    pub(crate) fn is_expressible(&self, dim: &Dim) -> bool {
        is_transparent(dim)
    }

    /// Returns the symbol of a loop's variable in dims, which counts from the loop's start.
    pub fn symbol(&self, var: VarId) -> Name {
        symbol_of(var)
    }

    /// Enters the body of a statement: a loop with its range, a block with its axes and predicate, a `let` with its
    /// value. The caller handles the conditions of `if` and `while`, which hold in a part of the statement only.
    pub fn enter(&mut self, stmt: &Stmt, func: &PrimFunc) {
        match stmt {
            Stmt::For { var, start, extent, .. } => self.enter_loop(*var, func.var(*var).dtype, start, extent),
            Stmt::Let { var, value, .. } => self.enter_let(*var, func.var(*var).dtype, value),
            Stmt::Block(block) => self.enter_block(block, func),
            _ => {}
        }
    }

    /// Enters a block: its axes have their values, and its predicate holds.
    pub(crate) fn enter_block(&mut self, block: &Block, func: &PrimFunc) {
        // The predicate is assumed twice. If it is over loops, it may bound the bindings of the axes; if it is over the
        // axes, it only means something after they are entered.
        if let Some(predicate) = &block.predicate {
            self.assume_condition(predicate, true);
        }
        for iter in &block.iters {
            let dtype = func.var(iter.var).dtype;
            self.enter_axis(iter.var, dtype, &iter.start, &iter.extent, &iter.binding);
        }
        if let Some(predicate) = &block.predicate {
            self.assume_condition(predicate, true);
        }
    }
}

pub(crate) fn symbol_of(var: VarId) -> Name {
    name(&format!("{}{}", Dim::VARIABLE, var.0))
}

pub(crate) fn is_signed(dtype: DType) -> bool {
    dtype.code == rx_base::dtype::TypeCode::Int
}

/// Whether the dim is computed from variables only, without opaque expressions.
fn is_transparent(dim: &Dim) -> bool {
    dim.terms().iter().flat_map(|(product, _)| product).all(|(atom, _)| match atom {
        Atom::Symbol(_) => true,
        Atom::FloorDiv(a, b) | Atom::FloorMod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
            is_transparent(a) && is_transparent(b)
        }
        Atom::Opaque(symbol, _) => !symbol.starts_with("%e"),
    })
}

/// Returns a dim that is not negative exactly where the inequality holds. For `==` and `!=`, returns the difference.
fn not_negative_when(op: CompareOp, a: &Dim, b: &Dim) -> Dim {
    let one = Dim::constant(1);
    match op {
        CompareOp::Lt => &(b - a) - &one,
        CompareOp::Le => b - a,
        CompareOp::Gt => &(a - b) - &one,
        CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => a - b,
    }
}
