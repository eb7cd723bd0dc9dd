//! Reports reductions without an initialization, and loads of allocated buffers before any store.
//!
//! ```text
//! with T.sblock("sum"):
//!     v, k = T.axis.remap("SR", [i, j])
//!     B[v] = B[v] + A[v, k]      # warning: without `with T.init(): B[v] = T.float32(0)`
//! ```

use super::Walk;
use super::blocks::Unwritten;
use super::path::Step;
use crate::reader::trace::{Access, Event, TracedAxis};
use rx_base::{Code, Diagnostic};
use rx_tir::{BinaryOp, BufferId, Expr, IterKind};

/// Returns the identity element of a reduction as the text of a call: `float32(0)` for a sum.
fn neutral(value: &Expr) -> Option<String> {
    let Expr::Binary { op, .. } = value else { return None };
    let dtype = value.dtype();
    Some(match op {
        BinaryOp::Add => format!("{dtype}(0)"),
        BinaryOp::Mul => format!("{dtype}(1)"),
        BinaryOp::Max => format!("min_value(\"{dtype}\")"),
        BinaryOp::Min => format!("max_value(\"{dtype}\")"),
        _ => return None,
    })
}

impl<'t> Walk<'t> {
    /// Reports a store that accumulates over a reduction axis and is the first write of its buffer, in a block without
    /// `T.init`.
    pub(super) fn check_reduction(&mut self, access: &'t Access) {
        let Some(block) = self.blocks.innermost() else { return };
        if block.has_init || self.blocks.written.contains(&access.buffer) || !self.reads_own_element(access) {
            return;
        }
        // A parameter that the block declares to read (`T.reads`) begins with the caller's value, which the block is
        // meant to add to.
        if block.updates(access.buffer) && !self.blocks.is_allocated(access.buffer) {
            return;
        }
        let Some(element) = &access.element else { return };
        let axes: Vec<&TracedAxis> = self.axes_from(block.first_step).collect();
        let summed = axes.iter().find(|axis| {
            axis.iter.kind == IterKind::Reduce
                && axis.iter.extent.as_int() != Some(1)
                && !element.iter().any(|index| index.uses(axis.iter.var))
        });
        let Some(axis) = summed else { return };
        let name = &access.name;
        let whose = match self.blocks.is_allocated(access.buffer) {
            true => "nothing is in it before",
            false => "it begins with the values that the caller left there",
        };
        let message = format!("the reduction over `{}` adds to `{name}` without a first value: {whose}", axis.name);
        let mut found = Diagnostic::new(Code::ReductionWithoutInit, access.place.clone(), message)
            .with_label(axis.place.clone(), "the axis that is reduced")
            .with_help(format!("give it a first value in the block: `with T.init(): {name}[…] = T.float32(0)`"));
        let in_loop = self.path.iter().skip(block.first_step).any(|step| matches!(step, Step::Loop(_)));
        if let Some(first) = access.value.as_ref().and_then(neutral).filter(|_| !in_loop) {
            found.fixes.extend(self.text.initial(&access.place, &first, self.tir));
        }
        self.found.push(found);
        self.blocks.unwritten.remove(&access.buffer);
    }

    /// For each allocated buffer that the store's value loads, that nothing has written yet, and that has no recorded
    /// load: records the first of its loads since the previous store.
    pub(super) fn note_unwritten(&mut self, store: &'t Access) {
        for access in std::mem::take(&mut self.blocks.loads) {
            let mut is_stored = false;
            let mut find =
                |part: &Expr| is_stored |= matches!(part, Expr::Load { buffer, .. } if *buffer == access.buffer);
            store.value.iter().for_each(|value| value.walk(&mut find));
            let Some(steps) = self.blocks.allocated_at(access.buffer).filter(|_| is_stored) else { continue };
            if !self.blocks.written.contains(&access.buffer) && !self.blocks.unwritten.contains_key(&access.buffer) {
                let inside = self.path.get(steps).copied();
                self.blocks.unwritten.insert(access.buffer, Unwritten { access, inside });
            }
        }
    }

    /// Drops the recorded load of a buffer at a store to it, if the path contains the first step of the load's path
    /// after the allocation ([`Unwritten::inside`]). If that step is a loop, the store may happen in an earlier
    /// iteration than the load. Any other step counts too, for example a condition, since a loop may be inside it.
    pub(super) fn drop_unwritten(&mut self, buffer: BufferId) {
        let inside = self.blocks.unwritten.get(&buffer).and_then(|load| load.inside);
        if inside.is_some_and(|inside| self.path.iter().any(|step| step.is(&inside))) {
            self.blocks.unwritten.remove(&buffer);
        }
    }

    /// Reports the recorded loads, if all statements of the function were read.
    pub(super) fn tell_unwritten(&mut self) {
        if self.trace.events.iter().any(|event| matches!(event, Event::Unread(_))) {
            return;
        }
        let mut loads: Vec<&Access> = self.blocks.unwritten.values().map(|load| load.access).collect();
        loads.sort_by_key(|access| access.buffer.0);
        for access in loads {
            let name = &access.name;
            let message = match self.blocks.written.contains(&access.buffer) {
                true => format!("`{name}` is read before anything is written to it"),
                false => format!("`{name}` is read, and nothing is written to it"),
            };
            let mut found = Diagnostic::new(Code::ReadBeforeWrite, access.place.clone(), message);
            if let Some(Some(declared)) = self.trace.declared.get(access.buffer.0 as usize) {
                found = found.with_label(declared.clone(), "allocated here, with undefined contents");
            }
            self.found.push(found);
        }
    }

    /// Returns the axes of the path from a step on.
    pub(super) fn axes_from(&self, step: usize) -> impl Iterator<Item = &'t TracedAxis> {
        self.path.iter().skip(step).filter_map(|step| match step {
            Step::Axis(axis) => Some(*axis),
            _ => None,
        })
    }

    /// Whether a store's value loads the stored buffer at equal index expressions, directly or through a `T.let`.
    pub(super) fn reads_own_element(&self, access: &Access) -> bool {
        let (Some(value), Some(element)) = (&access.value, &access.element) else { return false };
        let mut open: Vec<&Expr> = vec![value];
        let mut looked_up = 0;
        while let Some(expr) = open.pop() {
            match expr {
                Expr::Load { buffer, indices, .. } if *buffer == access.buffer && indices == element => return true,
                // The value of a variable that is bound before the store, for example by `T.let`.
                Expr::Var { var, .. } if looked_up < 64 => {
                    looked_up += 1;
                    open.extend(self.path.iter().rev().find_map(|step| match step {
                        Step::Let(bound, value) if bound == var => Some(*value),
                        _ => None,
                    }));
                }
                expr => open.extend(expr.children()),
            }
        }
        false
    }
}
