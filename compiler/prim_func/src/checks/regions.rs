//! Checks accesses against the regions that blocks declare with `T.reads` and `T.writes`.
//!
//! ```text
//! with T.sblock("copy"):
//!     v = T.axis.spatial(4, i)
//!     T.reads(A[v])              # warning: the block reads `A[1]`, which its `T.reads` leaves out
//!     B[v] = A[v + 1]
//! ```
//!
//! Requires that the declarations of the block could be read. Accesses under an `if` or a similar condition in the
//! block are not checked. A block that declares `T.reads()` and `T.writes()` is opaque and is not checked.

use super::Walk;
use super::blocks::Declared;
use super::evaluate::Values;
use super::path::{Place, Relevant, Step};
use super::symbolic::{Bound, Side};
use crate::reader::trace::{Access, Region};
use rx_base::{Code, Diagnostic};
use rx_context::ItemPlace;
use rx_tir::Expr;

/// The values that a search tries for the symbols: in each attempt, all symbols have the same one.
const TRIED: [i64; 4] = [5, 8, 33, 1];

/// A declared region as range checks: for each dim the first index, and the last index plus one.
struct Window<'t> {
    region: &'t Region,
    dims: Vec<(&'t Expr, Expr)>,
}

impl<'t> Window<'t> {
    fn of(region: &'t Region) -> Window<'t> {
        let dims = region.dims.iter().map(|(low, extent)| (low, low.clone() + extent.clone()));
        Window { region, dims: dims.collect() }
    }

    fn bounds<'e>(&'e self, element: &'e [Expr]) -> impl Iterator<Item = Bound<'e>> {
        self.dims.iter().zip(element).map(|((low, high), index)| Bound { index, low: Some(low), high })
    }

    /// Returns the first index that is outside the region, with the side.
    fn left<'e>(&'e self, element: &'e [Expr], values: &Values) -> Option<(Side, Bound<'e>)> {
        self.bounds(element).find_map(|bound| Some((bound.left(values)?.0, bound)))
    }
}

impl<'t> Walk<'t> {
    /// Reports an access that is not in the declared regions of an enclosing block.
    pub(super) fn check_regions(&mut self, access: &'t Access) {
        let Some(element) = &access.element else { return };
        let mut predicates = 0;
        let mut blocks: Vec<(Declared<'t>, Option<Declared<'t>>)> = Vec::new();
        for block in self.blocks.around(access.buffer) {
            predicates += block.predicates;
            let inside = self.path.get(block.first_step..).unwrap_or_default();
            // Accesses under other conditions than the predicates of the blocks are not checked.
            let is_certain = inside.iter().filter(|step| matches!(step, Step::Assume(..))).count() == predicates;
            let own = if access.write { block.writes } else { block.reads };
            if let Some(own) = own.filter(|_| is_certain && !block.is_opaque()) {
                blocks.push((own, block.writes));
            }
        }
        for (declared, writes) in blocks {
            if self.regions_told.contains(declared.place) {
                continue;
            }
            // A block may read the regions that it writes, as a reduction does.
            let also = writes.filter(|_| !access.write);
            let regions: Vec<&Region> = declared.regions.iter().chain(also.map_or(&[][..], |it| it.regions)).collect();
            let complete = declared.complete && also.is_none_or(|it| it.complete);
            let of_buffer: Vec<&Region> = regions.into_iter().filter(|it| it.buffer == access.buffer).collect();
            let plain = of_buffer.iter().any(|region| is_plainly_in(element, region));
            if plain || !complete || self.searcher.is_spent(&self.path) {
                continue;
            }
            let windows: Vec<Window<'t>> = of_buffer.into_iter().map(Window::of).collect();
            if let Some(found) = self.leaves_regions(access, element, declared, &windows) {
                self.regions_told.push(declared.place.clone());
                self.found.push(found);
                // The regions of outer blocks usually leave out the same element; one report is enough.
                return;
            }
        }
    }

    fn leaves_regions(
        &mut self,
        access: &Access,
        element: &[Expr],
        declared: Declared<'t>,
        windows: &[Window<'t>],
    ) -> Option<Diagnostic<ItemPlace>> {
        if !windows.is_empty() {
            let mut scope = self.start.at_end(&self.path, &self.trace.func);
            if windows.iter().any(|it| it.bounds(element).all(|bound| bound.holds(&mut scope))) {
                return None;
            }
        }
        let relevant = Relevant::of(
            &self.path,
            element.iter().chain(windows.iter().flat_map(|it| it.dims.iter().flat_map(|(low, high)| [*low, high]))),
        );
        let symbols = relevant.among(&self.symbols);
        let (path, start, func) = (&self.path, &self.start, &self.trace.func);
        let (mut shown, mut proofs) = (None, 0);
        for tried in TRIED {
            let given: Vec<_> = symbols.iter().map(|symbol| (*symbol, tried)).collect();
            let reached = !self.may_have_left;
            let mut visit = |place: Place<'_>| {
                let sides: Option<Vec<_>> = windows.iter().map(|it| it.left(element, place.values)).collect();
                let Some(sides) = sides.filter(|_| reached && place.sure) else { return false };
                let always = symbols.is_empty()
                    || match &sides[..] {
                        [] => true,
                        [(side, bound)] => {
                            bound.always_left(start, path, &relevant, (place.values, *side)).is_some()
                                || bound.never_holds(&mut start.at_end(path, func), *side)
                        }
                        _ => false,
                    };
                proofs += 1;
                if always {
                    let at: Option<Vec<String>> =
                        element.iter().map(|index| Some(place.values.value(index)?.to_string())).collect();
                    shown = Some(at.map(|at| at.join(", ")));
                }
                always || proofs >= 4
            };
            self.searcher.search(&self.path, &relevant, &given, &mut visit);
            if shown.is_some() || symbols.is_empty() || proofs >= 4 {
                break;
            }
        }
        let mut found = reported(access, declared, windows, shown?);
        let call = if access.write { "T.writes" } else { "T.reads" };
        found.fixes.extend(self.text.without(declared.place, format!("leave out {call}: it is inferred")));
        Some(found)
    }
}

fn reported(
    access: &Access,
    declared: Declared<'_>,
    windows: &[Window<'_>],
    at: Option<String>,
) -> Diagnostic<ItemPlace> {
    let (call, verb) = if access.write { ("T.writes", "writes") } else { ("T.reads", "reads") };
    let name = &access.name;
    let element = at.map_or(name.clone(), |at| format!("{name}[{at}]"));
    let (primary, message) = match windows {
        [] => (declared.place.clone(), format!("the block {verb} `{name}`, which its `{call}` does not name")),
        [it, ..] => (it.region.place.clone(), format!("the block {verb} `{element}`, which its `{call}` leaves out")),
    };
    Diagnostic::new(Code::BlockRegionMismatch, primary, message)
        .with_label(access.place.clone(), if access.write { "written here" } else { "read here" })
        .with_help(format!("declare the region that the block {verb}, or leave `{call}` out: it is inferred then"))
}

/// Whether the region is the element: in each dim it has the same index expression and the constant extent 1.
fn is_plainly_in(element: &[Expr], region: &Region) -> bool {
    region.dims.len() == element.len()
        && region.dims.iter().zip(element).all(|((low, extent), index)| low == index && extent.as_int() == Some(1))
}
