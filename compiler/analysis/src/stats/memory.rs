//! Peak memory of live values: a value is allocated where it is bound, and freed after its last use.

use super::total::{bind, operand_types};
use super::{Callees, PeakStats, callee_of, measure};
use crate::unify::Bindings;
use rustc_hash::FxHashSet;
use rx_base::name::NameMap;
use rx_base::symbolic::Bounds;
use rx_base::{Dim, Name};
use rx_ir::{Argument, Attr, BindingKind, Body, Call, Callee, Expr, ExprKind, Function, Origin, StructInfo};
use rx_ops::{Compute, Cost, Schema};
use std::ops::Range;
use std::sync::Arc;

/// The storage of a value; for a tuple, that of each field. Tuples are shared, since `t = (t, t)` doubles the fields
/// in one line.
#[derive(Clone, Debug)]
enum Held {
    /// A storage by number; none for parameters, shapes and scalars, which are not counted.
    Storage(Option<usize>),
    Fields(Arc<[Held]>),
}

impl Held {
    /// Returns the storages of all fields; those of a shared tuple once.
    fn storages(&self) -> Vec<usize> {
        let (mut storages, mut seen) = (Vec::new(), FxHashSet::default());
        let mut open = vec![self];
        while let Some(held) = open.pop() {
            match held {
                Held::Storage(storage) => storages.extend(storage),
                Held::Fields(fields) if seen.insert(Arc::as_ptr(fields).cast::<()>()) => open.extend(&**fields),
                Held::Fields(_) => {}
            }
        }
        storages
    }
}

/// A step of the execution.
struct Moment {
    at: Option<Origin>,
    /// The storages allocated.
    made: Vec<usize>,
    /// The peak memory of a called function.
    inside: Dim,
}

/// The result of a branch of an `if`.
struct BranchResult {
    held: Held,
    /// The number of the first storage that the branch may allocate.
    first: usize,
    /// The first moment after the branch.
    end: usize,
}

struct Planner<'a> {
    callees: &'a dyn Callees,
    bounds: &'a Bounds,
    /// The sizes in bytes, by storage number.
    sizes: Vec<Dim>,
    /// The last moment of use, by storage number.
    last: Vec<usize>,
    moments: Vec<Moment>,
    /// The moments in which a storage is not counted: those of the branches after the one that allocates it, of which
    /// only one is executed.
    hidden: Vec<(usize, Range<usize>)>,
    unknown: u64,
}

/// Returns the peak memory of a function's values, including functions it calls, without parameters and constants.
pub(super) fn peak(function: &Function, callees: &dyn Callees) -> PeakStats {
    let mut planner = Planner {
        callees,
        bounds: &function.bounds,
        sizes: Vec::new(),
        last: Vec::new(),
        moments: Vec::new(),
        hidden: Vec::new(),
        unknown: 0,
    };
    let mut scope: NameMap<Held> = NameMap::default();
    for (name, _) in &function.params {
        scope.insert(*name, Held::Storage(None));
    }
    planner.body(&function.body, &mut scope);
    planner.peak()
}

impl Planner<'_> {
    fn peak(self) -> PeakStats {
        let mut freed: Vec<Vec<usize>> = vec![Vec::new(); self.moments.len()];
        for (storage, last) in self.last.iter().enumerate() {
            if let Some(moment) = freed.get_mut(*last) {
                moment.push(storage);
            }
        }
        let (mut hidden, mut shown) = (vec![Vec::new(); self.moments.len()], vec![Vec::new(); self.moments.len()]);
        for (storage, moments) in &self.hidden {
            // A storage that is not used after the `if` is freed before the other branches.
            if self.last.get(*storage).is_some_and(|last| *last >= moments.end)
                && let (Some(hidden), Some(shown)) = (hidden.get_mut(moments.start), shown.get_mut(moments.end))
            {
                hidden.push(*storage);
                shown.push(*storage);
            }
        }
        let size = |storage: &usize| self.size(*storage);
        let mut live = Dim::constant(0);
        let mut best = PeakStats { bytes: Dim::constant(0), at: None, unknown: self.unknown };
        let mut most = 0;
        for (((moment, freed), hidden), shown) in self.moments.iter().zip(&freed).zip(&hidden).zip(&shown) {
            live = hidden.iter().fold(live, |live, storage| &live - &size(storage));
            live = moment.made.iter().chain(shown).fold(live, |live, storage| &live + &size(storage));
            let now = &live + &moment.inside;
            let measured = measure(&now, self.bounds);
            if measured > most {
                most = measured;
                best.bytes = now;
                best.at = moment.at;
            }
            live = freed.iter().fold(live, |live, storage| &live - &size(storage));
        }
        best
    }

    fn size(&self, storage: usize) -> Dim {
        self.sizes.get(storage).cloned().unwrap_or(Dim::ERROR)
    }

    fn body(&mut self, body: &Body, scope: &mut NameMap<Held>) {
        for binding in &body.bindings {
            let at = Some(binding.origin);
            match &binding.kind {
                BindingKind::Value { variable, value, .. } => {
                    let held = self.moment(at, value, scope);
                    scope.insert(*variable, held);
                }
                BindingKind::Unpack { variables, value } => {
                    let held = self.moment(at, value, scope);
                    for (index, variable) in variables.iter().enumerate() {
                        if let Some(variable) = variable {
                            scope.insert(*variable, field(&held, index));
                        }
                    }
                }
                BindingKind::If { variable, arms, otherwise } => {
                    let mut results = Vec::new();
                    for (condition, body) in arms {
                        self.moment(at, condition, scope);
                        results.push(self.branch(body, scope));
                    }
                    results.push(self.branch(otherwise, scope));
                    if let (Some(variable), Some(held)) = (variable, self.largest(results)) {
                        scope.insert(*variable, held);
                    }
                }
                // A closure allocates where it is called; this is not tracked.
                BindingKind::Function(_) => {}
            }
        }
        if let Some(result) = &body.result {
            self.moment(None, result, scope);
        }
    }

    /// Returns the largest result of the branches of an `if` that has just been read, and hides its storages in the
    /// branches after its own.
    fn largest(&mut self, results: Vec<BranchResult>) -> Option<Held> {
        let bytes = |result: &BranchResult| {
            let storages = result.held.storages();
            let sum = storages.iter().fold(Dim::constant(0), |sum, storage| &sum + &self.size(*storage));
            measure(&sum, self.bounds)
        };
        // Of several, `max_by_key` returns the last one.
        let largest = results.into_iter().rev().max_by_key(bytes)?;
        let later = largest.end..self.moments.len();
        let own = largest.held.storages().into_iter().filter(|storage| *storage >= largest.first);
        self.hidden.extend(own.filter(|_| !later.is_empty()).map(|storage| (storage, later.clone())));
        Some(largest.held)
    }

    fn branch(&mut self, body: &Body, scope: &mut NameMap<Held>) -> BranchResult {
        let first = self.sizes.len();
        // Bindings of a branch are not visible after it, and do not shadow outer ones there.
        let shadowed: Vec<(Name, Option<Held>)> = body
            .bindings
            .iter()
            .filter_map(|binding| match &binding.kind {
                BindingKind::Value { variable, .. } => Some((*variable, scope.get(variable).cloned())),
                _ => None,
            })
            .collect();
        self.body(body, scope);
        let held = match body.result.as_ref().map(|result| &result.kind) {
            Some(ExprKind::Var(name)) => scope.get(name).cloned().unwrap_or(Held::Storage(None)),
            _ => Held::Storage(None),
        };
        for (name, before) in shadowed.into_iter().rev() {
            match before {
                Some(before) => scope.insert(name, before),
                None => scope.remove(&name),
            };
        }
        BranchResult { held, first, end: self.moments.len() }
    }

    /// Evaluates a value at a new moment.
    fn moment(&mut self, at: Option<Origin>, value: &Expr, scope: &NameMap<Held>) -> Held {
        self.moments.push(Moment { at, made: Vec::new(), inside: Dim::constant(0) });
        let held = self.expr(value, scope);
        self.uses(&held);
        held
    }

    /// Extends the lifetime of a value's storages to the current moment.
    fn uses(&mut self, held: &Held) {
        let now = self.moments.len().saturating_sub(1);
        for storage in held.storages() {
            if let Some(last) = self.last.get_mut(storage) {
                *last = now;
            }
        }
    }

    fn expr(&mut self, expr: &Expr, scope: &NameMap<Held>) -> Held {
        match &expr.kind {
            ExprKind::Var(name) => {
                let held = scope.get(name).cloned().unwrap_or(Held::Storage(None));
                self.uses(&held);
                held
            }
            // A tuple that is too large to have a type is not tracked.
            ExprKind::Tuple(_) if expr.ty.is_error() => Held::Storage(None),
            ExprKind::Tuple(items) => Held::Fields(items.iter().map(|item| self.expr(item, scope)).collect()),
            ExprKind::TupleGet(inner, at) => {
                let held = self.expr(inner, scope);
                field(&held, *at)
            }
            ExprKind::MatchCast(inner) => self.expr(inner, scope),
            ExprKind::Call(call) => self.call(call, &expr.ty, scope),
            _ => Held::Storage(None),
        }
    }

    fn call(&mut self, call: &Call, result: &StructInfo, scope: &NameMap<Held>) -> Held {
        let mut operands = Vec::new();
        for argument in &call.arguments {
            operands.push(match argument {
                Argument::Operand(expr) => self.expr(expr, scope),
                Argument::Operands(exprs) => Held::Fields(exprs.iter().map(|expr| self.expr(expr, scope)).collect()),
                _ => Held::Storage(None),
            });
        }
        match &call.callee {
            Callee::Op(name) => match self.callees.operator(*name) {
                Some(schema) => self.operator(schema, call, result, &operands),
                None => Held::Storage(None),
            },
            Callee::Global(name) => {
                self.inside(*name, &operand_types(call));
                self.made(result)
            }
            Callee::Value(_) => self.made(result),
        }
    }

    /// Adds the peak of a called Relax function to the current moment. Its result is counted by the caller.
    fn inside(&mut self, name: Name, types: &[&StructInfo]) {
        let Some(stats) = self.callees.function(name) else { return };
        let Some(signature) = self.callees.signature(name) else { return };
        let mut bindings = Bindings::new(self.bounds);
        bind(&mut bindings, &signature, types);
        if let (Some(bytes), Some(moment)) = (bindings.substitute(&stats.peak.bytes), self.moments.last_mut()) {
            moment.inside = &moment.inside + &bytes;
        }
    }

    fn operator(&mut self, schema: &Schema, call: &Call, result: &StructInfo, operands: &[Held]) -> Held {
        let operand = |name: &str| {
            let at = schema.params.iter().position(|param| param.name == name)?;
            Some((operands.get(at)?, call.arguments.get(at)?))
        };
        if let Some(Compute::View(of) | Compute::Identity(of)) = schema.compute
            && let Some((held, _)) = operand(of)
        {
            return held.clone();
        }
        // A tensor in an explicitly allocated storage, and the storage itself.
        if let Some((held, _)) = operand("storage") {
            return held.clone();
        }
        if let (true, Some((_, Argument::Operand(size)))) = (schema.name.ends_with("alloc_storage"), operand("size")) {
            let bytes = match &size.ty {
                StructInfo::Shape(shape) => shape.dims().map(rx_ops::cost::product),
                StructInfo::Prim(prim) => prim.value.clone(),
                _ => None,
            };
            return self.storage(bytes);
        }
        if matches!(schema.cost, Cost::Callee) {
            if let Some((name, types)) = callee_of(call) {
                self.inside(name, &types);
            }
            if let (Some((_, Argument::Attr(indices))), Some((arguments, _))) =
                (operand("inplace_indices"), operand("args"))
            {
                return self.in_place(indices, arguments, result);
            }
        }
        self.made(result)
    }

    /// Returns the storages of the outputs of `call_tir_inplace`: those of arguments, or new ones.
    fn in_place(&mut self, indices: &Attr, arguments: &Held, result: &StructInfo) -> Held {
        let of = |at: usize| {
            let index = match indices {
                Attr::List(indices) => indices.get(at)?,
                index => index,
            };
            Some(field(arguments, usize::try_from(index.as_int()?).ok()?))
        };
        match result {
            StructInfo::Tuple(fields) => {
                let fields = fields.iter().enumerate();
                Held::Fields(fields.map(|(at, field)| of(at).unwrap_or_else(|| self.made(field))).collect())
            }
            result => of(0).unwrap_or_else(|| self.made(result)),
        }
    }

    /// Allocates storage for a value of this type.
    fn made(&mut self, ty: &StructInfo) -> Held {
        match ty {
            StructInfo::Tuple(fields) => Held::Fields(fields.iter().map(|field| self.made(field)).collect()),
            StructInfo::Tensor(_) | StructInfo::DTensor(_) => self.storage(rx_ops::cost::bytes(ty)),
            _ => Held::Storage(None),
        }
    }

    fn storage(&mut self, bytes: Option<Dim>) -> Held {
        self.unknown += u64::from(bytes.is_none());
        let storage = self.sizes.len();
        self.sizes.push(bytes.filter(|bytes| !bytes.is_error()).unwrap_or(Dim::constant(0)));
        self.last.push(self.moments.len().saturating_sub(1));
        if let Some(moment) = self.moments.last_mut() {
            moment.made.push(storage);
        }
        Held::Storage(Some(storage))
    }
}

/// Returns the storage of a field; the whole storage if the value is not a known tuple.
fn field(held: &Held, at: usize) -> Held {
    match held {
        Held::Fields(fields) => fields.get(at).cloned().unwrap_or(Held::Storage(None)),
        other => other.clone(),
    }
}
