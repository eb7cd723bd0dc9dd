//! What is known at a place in a function: variables as symbolic integers, their ranges, conditions that hold.

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

/// The longest value that stands for a variable wherever that occurs.
const MAX_LET_ATOMS: usize = 64;

/// What is known of integers at a place in a function.
///
/// Integer expressions become [`Dim`]s over symbols named by variable. A loop's symbol is the distance from its start, so
/// symbols are never negative, as dims want it; what may be negative is an opaque atom. Arithmetic of `int64` indices is
/// taken not to overflow; of narrower dtypes that is proved before what depends on it is concluded.
#[derive(Debug)]
pub struct Scope {
    pub(crate) values: FxHashMap<VarId, Dim>,
    pub(crate) extents: FxHashSet<VarId>,
    pub(crate) written: FxHashSet<BufferId>,
    pub(crate) meanings: NameMap<Expr>,
    pub(crate) opaque: Vec<(Expr, Dim)>,
    pub(crate) unknown: usize,
    renamed: Vec<(Name, Option<Expr>)>,
    /// Symbols of loops with their largest values, outermost first.
    pub(crate) ranges: Vec<(Name, Dim)>,
    /// Dims that are not negative.
    pub(crate) facts: Vec<Dim>,
    pub(crate) bounds: Bounds,
    /// How many proofs are being made inside each other.
    pub(crate) nested: usize,
    /// How much the outermost of them may still look at.
    pub(crate) work: usize,
    /// Whether arithmetic of narrow dtypes may overflow.
    pub(crate) wraps: bool,
    /// What was found of dims since something was last learned or forgotten: the parts of an expression ask again what it asked.
    pub(crate) answers: FxHashMap<Dim, bool>,
    /// How many dims may still be looked at, where that is bounded over many questions.
    fuel: Option<Rc<Cell<usize>>>,
}

/// A place to go back to, by [`Scope::leave`].
#[derive(Debug)]
pub struct Mark {
    ranges: usize,
    pub(crate) facts: usize,
    bounds: Bounds,
    renamed: usize,
}

impl Scope {
    /// What is known at the start of a function: its symbols, and what is nothing but an extent of a parameter, are not
    /// negative.
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

    /// What is known where these variables are not negative, and these buffers are stored to.
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

    /// For checks: arithmetic of every dtype is taken not to overflow, and proofs look at no more dims than are left in
    /// `fuel`, which they take from.
    pub fn for_checks(mut self, fuel: Rc<Cell<usize>>) -> Scope {
        self.wraps = false;
        self.fuel = Some(fuel);
        self
    }

    /// Whether one more dim may be looked at.
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

    /// The variable has this value.
    pub fn set_value(&mut self, var: VarId, value: Dim) {
        self.values.insert(var, value);
    }

    /// Where to go back to.
    pub fn mark(&self) -> Mark {
        let (ranges, facts, renamed) = (self.ranges.len(), self.facts.len(), self.renamed.len());
        Mark { ranges, facts, bounds: self.bounds.clone(), renamed }
    }

    /// Forgets what was learned since.
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

    /// Inside a loop: the variable is in its range, and the range is not empty.
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

    /// Inside a block: an axis has its binding's value.
    ///
    /// Where the binding is proved to lie in the axis's domain, the axis is a variable of that range, which proves more of
    /// what a division and remainder of one loop recombine; a binding that is a loop's variable stays that variable.
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
        // What is written of the loop's variable inside the block is written of the axis.
        if let Some(symbol) = value.as_symbol() {
            let before = self.meanings.insert(symbol, Expr::Var { var, dtype });
            self.renamed.push((symbol, before));
        }
        self.values.insert(var, value);
    }

    /// Where a `let` holds: the variable has the value's value.
    pub fn enter_let(&mut self, var: VarId, dtype: DType, value: &Expr) {
        let Some(dim) = self.integer(value) else { return };
        if is_transparent(&dim) && dim.atoms() <= MAX_LET_ATOMS {
            self.values.insert(var, dim);
            return;
        }
        // The value was taken once; what it was made of may change, so it is equal only to itself. So is one that is so long
        // that a few more like it, each made of the one before twice, would say nothing but take time.
        let itself = Dim::opaque(symbol_of(var), Vec::new());
        self.meanings.insert(symbol_of(var), Expr::Var { var, dtype });
        self.values.insert(var, itself.clone());
        self.assume(&(&itself - &dim));
        self.assume(&(&dim - &itself));
    }

    /// Where a condition has been found to hold, or not to.
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
            // A product of what is not negative is positive: so is each factor.
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

    /// Dims that are not negative where a condition holds, or where it does not.
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

    /// Dims that are not negative where this one is not 0.
    fn apart(&mut self, distance: Dim) -> Vec<Dim> {
        let one = Dim::constant(1);
        match () {
            () if self.not_negative(&distance) => vec![&distance - &one],
            () if self.not_negative(&-&distance) => vec![&-&distance - &one],
            () => Vec::new(),
        }
    }

    /// Dims that are all not negative exactly where a condition holds; `None` where there are none.
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

    /// Whether a condition holds for all values, or for none; `None` where it depends on them or is not decided.
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

    /// Whether the dim can be written over variables alone, so that it can be evaluated anywhere.
    pub(crate) fn is_expressible(&self, dim: &Dim) -> bool {
        is_transparent(dim)
    }

    /// The symbol a loop's variable has in dims, counted from the loop's start.
    pub fn symbol(&self, var: VarId) -> Name {
        symbol_of(var)
    }

    /// Enters what a statement binds for its body: a loop's variable, a block's axes and predicate, a `let`'s value.
    /// Conditions of `if` and `while` hold for a part only and are the caller's.
    pub fn enter(&mut self, stmt: &Stmt, func: &PrimFunc) {
        match stmt {
            Stmt::For { var, start, extent, .. } => self.enter_loop(*var, func.var(*var).dtype, start, extent),
            Stmt::Let { var, value, .. } => self.enter_let(*var, func.var(*var).dtype, value),
            Stmt::Block(block) => self.enter_block(block, func),
            _ => {}
        }
    }

    /// Enters a block: its axes have their values, its predicate holds.
    pub(crate) fn enter_block(&mut self, block: &Block, func: &PrimFunc) {
        // The predicate may be over loops, and may be what bounds the axes' bindings; or over the axes.
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

/// Whether the dim is made of variables only, so that it means the same wherever they do.
fn is_transparent(dim: &Dim) -> bool {
    dim.terms().iter().flat_map(|(product, _)| product).all(|(atom, _)| match atom {
        Atom::Symbol(_) => true,
        Atom::FloorDiv(a, b) | Atom::FloorMod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
            is_transparent(a) && is_transparent(b)
        }
        Atom::Opaque(symbol, _) => !symbol.starts_with("%e"),
    })
}

/// What is not negative exactly where an ordering holds. For (in)equality, the difference.
fn not_negative_when(op: CompareOp, a: &Dim, b: &Dim) -> Dim {
    let one = Dim::constant(1);
    match op {
        CompareOp::Lt => &(b - a) - &one,
        CompareOp::Le => b - a,
        CompareOp::Gt => &(a - b) - &one,
        CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => a - b,
    }
}
