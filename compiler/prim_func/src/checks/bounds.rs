//! Checks indices against the extents of buffers.
//!
//! For each index the check first tries to prove that it is in range. If that fails, it searches for an iteration that
//! is out of range (a witness), and tries to generalize the witness to all values of the symbols. It reports an error
//! if this succeeds, or if the index is proved to be out of range whenever it is evaluated. It reports a warning if the
//! index is out of range for some values, the index, its loops or its conditions depend on symbols, and the extent uses
//! all of these.

use super::Walk;
use super::evaluate::Values;
use super::path::{Place, Relevant, Step};
use super::symbolic::{Bound, Side};
use crate::reader::trace::Access;
use rx_base::diagnostic::Label;
use rx_base::name::NameMap;
use rx_base::{Code, Diagnostic, Dim};
use rx_context::ItemPlace;
use rx_tir::{BufferId, Expr, PrimFunc, VarId};

/// The values that a search tries for the symbols: in each attempt, all symbols have the same one.
const TRIED: [i64; 12] = [5, 8, 16, 3, 17, 33, 64, 100, 2, 1, 4, 7];

/// The limit on the attempts to generalize a witness of one index to all values of the symbols.
const PROOFS: usize = 4;

/// The limit on labels: a diagnostic with this many labels gets none for further places.
const SHOWN: usize = 8;

/// The diagnostics so far. Two findings are one mistake if index and extent are equal, even for different buffers, or
/// if the buffer and the message are equal.
#[derive(Default)]
pub(super) struct Findings<'t>(Vec<Finding<'t>>);

/// A diagnostic with the index, extent and buffer that it is about.
struct Finding<'t> {
    index: &'t Expr,
    extent: &'t Expr,
    buffer: BufferId,
    found: Diagnostic<ItemPlace>,
}

impl<'t> Findings<'t> {
    fn add(&mut self, finding: Finding<'t>) {
        let Finding { index, extent, buffer, found } = &finding;
        let same = self.0.iter_mut().find(|known| {
            known.index == *index && known.extent == *extent
                || known.buffer == *buffer && known.found.message == found.message
        });
        let Some(first) = same.map(|known| &mut known.found) else {
            self.0.push(finding);
            return;
        };
        let reported = first.primary == found.primary || first.labels.iter().any(|label| label.place == found.primary);
        if !reported && first.labels.len() < SHOWN {
            first.labels.push(Label { place: found.primary.clone(), text: "and here".to_owned() });
        }
    }

    pub(super) fn into_diagnostics(self) -> impl Iterator<Item = Diagnostic<ItemPlace>> {
        self.0.into_iter().map(|finding| finding.found)
    }
}

/// An iteration in which the index is out of range.
struct Witness {
    side: Side,
    /// The value of the index.
    index: i64,
    /// The value of the extent.
    extent: i64,
    /// The values of the [`Relevant`] symbols.
    symbols: Vec<(VarId, i64)>,
    /// The names and values of the loops on which the index, its extent, or a condition or range on the path depends.
    loops: Vec<(String, i64)>,
}

/// The result of the search for an index that may be out of range.
enum Verdict {
    /// Out of range for all values of the symbols for which the access happens. The text, if known, is
    /// the index as a symbolic expression.
    Always(Witness, Option<String>),
    /// Out of range for some values of the symbols, perhaps for all.
    Sometimes(Witness),
}

impl<'t> Walk<'t> {
    /// Checks that an access stays within its buffer; returns whether a mistake was found.
    pub(super) fn check_bounds(&mut self, access: &'t Access) -> bool {
        let mut scope = None;
        let mut outside = false;
        for (axis, ((index, place), extent)) in access.indices.iter().zip(&access.shape).enumerate() {
            let bound = Bound { index, low: None, high: extent };
            if self.is_plainly_inside(&bound) || self.searcher.is_spent(&self.path) {
                continue;
            }
            let scope = scope.get_or_insert_with(|| self.start.at_end(&self.path, &self.trace.func));
            if bound.holds(scope) {
                continue;
            }
            let relevant = Relevant::of(&self.path, [index, extent]);
            let found = match self.judge(&bound, &relevant) {
                Some(Verdict::Always(witness, index)) => self.out_of_bounds(access, axis, place, witness, index),
                Some(Verdict::Sometimes(witness)) if self.is_related(index, extent) => {
                    self.maybe_out_of_bounds(access, axis, place, &witness)
                }
                _ => continue,
            };
            outside = true;
            self.bounds.add(Finding { index, extent, buffer: access.buffer, found });
        }
        outside
    }

    /// Whether the ranges of loops and values alone prove that an index is in range, which is a cheap check.
    fn is_plainly_inside(&self, bound: &Bound<'_>) -> bool {
        let intervals = self.intervals.interval(bound.index).zip(self.intervals.interval(bound.high));
        if intervals.is_some_and(|(index, extent)| index.0 >= 0 && index.1 < extent.0) {
            return true;
        }
        // A loop over exactly the extent of this dim.
        let mut index = bound.index;
        for step in self.path.iter().rev() {
            let Expr::Var { var: wanted, .. } = index else { return false };
            match step {
                Step::Axis(axis) if axis.iter.var == *wanted => index = uncast(&axis.iter.binding),
                Step::Loop(it) if it.var == *wanted => {
                    return it.start.as_int() == Some(0) && uncast(&it.extent) == uncast(bound.high);
                }
                _ => {}
            }
        }
        false
    }

    /// Searches for an iteration in which the index is out of range.
    fn judge(&mut self, bound: &Bound<'_>, relevant: &Relevant) -> Option<Verdict> {
        let symbols = relevant.among(&self.symbols);
        let mut sometimes = None;
        let mut proofs = 0;
        for tried in TRIED {
            let given: Vec<(VarId, i64)> = symbols.iter().map(|symbol| (*symbol, tried)).collect();
            let (path, start, func) = (&self.path, &self.start, &self.trace.func);
            let reached = !self.may_have_left;
            let mut always = None;
            let mut visit = |place: Place<'_>| {
                let Some((side, index)) = bound.left(place.values) else { return false };
                let sure = place.sure && reached;
                let witness = || witness(place.values, path, relevant, &given, bound, (side, index));
                if sure && symbols.is_empty() {
                    always = witness().map(|witness| Verdict::Always(witness, None));
                    return true;
                }
                proofs += 1;
                if sure && let Some((at, _)) = bound.always_left(start, path, relevant, (place.values, side)) {
                    let shown = spelled(&at, func);
                    always = witness().map(|witness| Verdict::Always(witness, Some(shown)));
                    return true;
                }
                if bound.never_holds(&mut start.at_end(path, func), side) {
                    always = witness().map(|witness| Verdict::Always(witness, None));
                    return true;
                }
                if sure && sometimes.is_none() {
                    sometimes = witness();
                }
                proofs >= PROOFS
            };
            self.searcher.search(&self.path, relevant, &given, &mut visit);
            if always.is_some() {
                return always;
            }
            if symbols.is_empty() || proofs >= PROOFS {
                break;
            }
        }
        sometimes.map(Verdict::Sometimes)
    }

    /// Whether the index, or a condition or range on the path, depends on symbols, and the extent uses all of them.
    /// Then the source itself relates the two.
    fn is_related(&self, index: &Expr, extent: &Expr) -> bool {
        let deciding = Relevant::of(&self.path, [index]).among(&self.symbols);
        !deciding.is_empty() && deciding.iter().all(|symbol| extent.uses(*symbol))
    }

    fn out_of_bounds(
        &self,
        access: &Access,
        axis: usize,
        place: &ItemPlace,
        witness: Witness,
        symbolic: Option<String>,
    ) -> Diagnostic<ItemPlace> {
        let index = symbolic.filter(|text| text.len() < 80).unwrap_or_else(|| witness.index.to_string());
        let message = format!("index {index} is out of bounds for {}", self.axis_of(access, axis, witness.side));
        let diagnostic = Diagnostic::new(Code::BufferIndexOutOfBounds, place.clone(), message);
        self.explained(diagnostic, access, &witness)
    }

    fn maybe_out_of_bounds(
        &self,
        access: &Access,
        axis: usize,
        place: &ItemPlace,
        witness: &Witness,
    ) -> Diagnostic<ItemPlace> {
        let message = format!(
            "index {} may be out of bounds for {}: {}",
            witness.index,
            self.axis_of(access, axis, witness.side),
            self.at(witness)
        );
        let diagnostic = Diagnostic::new(Code::BufferIndexMaybeOutOfBounds, place.clone(), message);
        self.explained(diagnostic, access, witness)
    }

    /// Describes a dim of a buffer: ``axis 0 of `A`, which has extent n``, or for [`Side::Below`] `which begins at 0`.
    fn axis_of(&self, access: &Access, axis: usize, side: Side) -> String {
        let name = &access.name;
        match (side, access.shape.get(axis)) {
            (Side::Beyond, Some(extent)) => {
                let extent = spelled(&self.start.at_end(&[], &self.trace.func).dim(extent), &self.trace.func);
                format!("axis {axis} of `{name}`, which has extent {extent}")
            }
            _ => format!("axis {axis} of `{name}`, which begins at 0"),
        }
    }

    /// Lists the values of a witness: `i = 16, n = 5`.
    fn at(&self, witness: &Witness) -> String {
        let symbols = witness.symbols.iter().map(|(var, value)| (self.trace.func.var(*var).name.to_string(), *value));
        let all: Vec<String> =
            witness.loops.iter().cloned().chain(symbols).map(|(name, value)| format!("{name} = {value}")).collect();
        all.join(", ")
    }

    fn explained(
        &self,
        mut diagnostic: Diagnostic<ItemPlace>,
        access: &Access,
        witness: &Witness,
    ) -> Diagnostic<ItemPlace> {
        let at = self.at(witness);
        if !at.is_empty() {
            diagnostic = diagnostic.with_primary_label(format!("{} where {at}", witness.index));
        }
        if let (true, Side::Beyond) = (!witness.symbols.is_empty(), witness.side) {
            diagnostic = diagnostic.with_note(format!("the extent is {} there", witness.extent));
        }
        if let Some(Some(declared)) = self.trace.declared.get(access.buffer.0 as usize) {
            diagnostic = diagnostic.with_label(declared.clone(), format!("`{}` is declared here", access.name));
        }
        for it in self
            .path
            .iter()
            .filter_map(Step::as_loop)
            .filter(|it| witness.loops.iter().any(|(name, _)| *name == it.name.as_str()))
            .take(4)
        {
            let mut scope = self.start.at_end(&[], &self.trace.func);
            let count = spelled(&scope.dim(&it.extent), &self.trace.func);
            if count.len() < 80 {
                diagnostic = diagnostic.with_label(it.place.clone(), format!("`{}` takes {count} values", it.name));
            }
        }
        match access.write {
            true => diagnostic.with_help("end the loop earlier, or leave these iterations out with `T.where`"),
            false => diagnostic.with_help("end the loop earlier, or guard the access with `T.if_then_else`"),
        }
    }
}

fn witness(
    values: &Values,
    path: &[Step<'_>],
    relevant: &Relevant,
    symbols: &[(VarId, i64)],
    bound: &Bound<'_>,
    (side, index): (Side, i64),
) -> Option<Witness> {
    let loops = path.iter().filter_map(Step::as_loop).filter(|it| relevant.has(it.var));
    let loops = loops.filter_map(|it| Some((it.name.to_string(), values.value(&it.value)?)));
    let extent = values.value(bound.high)?;
    Some(Witness { side, index, extent, symbols: symbols.to_vec(), loops: loops.collect() })
}

/// Returns the text of a dim in which each symbol such as `%3` is replaced by the name of its variable.
pub(super) fn spelled(dim: &Dim, func: &PrimFunc) -> String {
    let mut names = NameMap::default();
    dim.for_each_symbol(&mut |symbol| {
        let var = symbol.strip_prefix('%').and_then(|number| number.parse::<u32>().ok());
        if let Some(var) = var.and_then(|var| func.vars.get(var as usize)) {
            names.insert(symbol, var.name);
        }
    });
    dim.substitute(&|symbol| names.get(&symbol).map(|name| Dim::symbol(*name))).to_string()
}

fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { dtype, value } if dtype.is_int() && value.dtype().is_int() => uncast(value),
        expr => expr,
    }
}
