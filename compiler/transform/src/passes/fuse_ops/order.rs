//! The order of the groups and single bindings of a dataflow block, and the outputs of each group.

use super::tir_call;
use crate::{make, walk};
use rx_base::Name;
use rx_base::name::{NameMap, NameSet};
use rx_ir::{Attr, BoundValue, Expr, ExprKind, VarBinding};
use std::collections::BTreeSet;

/// A group or a single binding, in execution order.
pub(super) struct Step {
    /// The indices of the bindings, ascending.
    pub(super) members: Vec<usize>,
    /// The variables that a group returns; `None` for a single binding, which stays. First come those that are used
    /// after the block, in the order of their bindings, then those that other groups use, in the order of first use.
    pub(super) outputs: Option<Vec<Name>>,
}

/// Orders the groups topologically: in the order of their first bindings, with the groups that a group needs before it.
/// For example, if group 0 needs group 2, the order is 2, 0, 1. `group_of` gives the group of each binding, as the
/// index of one of its bindings. Groups that depend on each other, or that would move an in-place write before a read,
/// are dissolved into single bindings.
pub(super) fn plan(bindings: &[VarBinding], outputs: &NameSet, mut group_of: Vec<usize>) -> Vec<Step> {
    let reads = Reads::of(bindings);
    loop {
        let grouping = Grouping::of(bindings, &reads, &group_of);
        let wrong = match grouping.ordered() {
            Ok(order) => match reads.overwritten_before_read(&order, &grouping) {
                None => return grouping.steps(bindings, outputs, &reads, &order),
                Some(wrong) => wrong,
            },
            Err(circle) => circle,
        };
        // This ends, since each iteration dissolves a group, and single bindings in their original order are always
        // valid.
        let is_wrong = |group: &usize| wrong.contains(group) && grouping.members[*group].len() > 1;
        let dissolved: BTreeSet<usize> = (0..grouping.members.len()).filter(is_wrong).collect();
        for (at, group) in grouping.group.iter().enumerate() {
            if dissolved.is_empty() || dissolved.contains(group) {
                group_of[at] = at;
            }
        }
    }
}

/// The dependences between the bindings of a block.
struct Reads {
    /// For each binding, the bindings whose variables it uses, in order of use.
    named: Vec<Vec<usize>>,
    /// Pairs of a reader and a later binding that overwrites the value in place. The reader must stay before the
    /// writer.
    overwritten: Vec<(usize, usize)>,
}

impl Reads {
    fn of(bindings: &[VarBinding]) -> Reads {
        let at_of: NameMap<usize> = bindings.iter().enumerate().map(|(at, binding)| (binding.variable, at)).collect();
        let named = |binding: &VarBinding| -> Vec<usize> {
            walk::used_by(binding).into_iter().filter_map(|name| at_of.get(&name).copied()).collect()
        };
        let named = bindings.iter().map(named).collect();
        // All variables that share a value are mapped to one of them.
        let mut same: NameMap<Name> = NameMap::default();
        // For a tuple, its fields; for a nested function, the values that it captures. A use of the variable may use
        // them.
        let mut held: NameMap<Vec<Name>> = NameMap::default();
        let mut readers: NameMap<Vec<usize>> = NameMap::default();
        let mut overwritten = Vec::new();
        for (at, binding) in bindings.iter().enumerate() {
            let root = |variable: Name| same.get(&variable).copied().unwrap_or(variable);
            let with_held = |value: Name| std::iter::once(value).chain(held.get(&value).into_iter().flatten().copied());
            let read: Vec<Name> = walk::used_by(binding).into_iter().map(root).flat_map(with_held).collect();
            let BoundValue::Expr(value) = &binding.value else {
                held.insert(binding.variable, read);
                continue;
            };
            let written: Vec<Name> = written(value).into_iter().map(root).flat_map(with_held).collect();
            for value in &written {
                overwritten.extend(readers.get(value).into_iter().flatten().map(|reader| (*reader, at)));
            }
            for value in &read {
                readers.entry(*value).or_default().push(at);
            }
            if matches!(value.kind, ExprKind::Tuple(_)) {
                held.insert(binding.variable, read);
            }
            let alias = match &value.kind {
                ExprKind::Var(other) => Some(root(*other)),
                ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => inner.as_var().map(root),
                _ => written.first().copied(),
            };
            same.extend(alias.map(|alias| (binding.variable, alias)));
        }
        Reads { named, overwritten }
    }

    /// Returns the groups of a reader and a writer that `order` puts in the wrong order, if there are any.
    fn overwritten_before_read(&self, order: &[usize], grouping: &Grouping) -> Option<BTreeSet<usize>> {
        if self.overwritten.is_empty() {
            return None;
        }
        let mut position = vec![0; grouping.group.len()];
        let all = order.iter().flat_map(|group| &grouping.members[*group]);
        all.enumerate().for_each(|(at, binding)| position[*binding] = at);
        let (reader, writer) =
            self.overwritten.iter().find(|(reader, writer)| position[*reader] > position[*writer])?;
        Some([grouping.group[*reader], grouping.group[*writer]].into())
    }
}

/// Returns the variables that a `call_tir_inplace` overwrites.
fn written(value: &Expr) -> Vec<Name> {
    let indices = make::attr(value, "inplace_indices").filter(|_| value.as_op() == Some("call_tir_inplace"));
    let indices: Vec<i64> = match indices {
        Some(Attr::List(items)) => items.iter().filter_map(Attr::as_int).collect(),
        Some(attr) => attr.as_int().into_iter().collect(),
        None => Vec::new(),
    };
    let Some((_, arguments)) = tir_call(value) else { return Vec::new() };
    let argument = |at: i64| arguments.get(usize::try_from(at).ok()?)?.as_var();
    indices.into_iter().filter_map(argument).collect()
}

/// The groups, numbered in the order of their first bindings. A binding outside of all groups forms a group by itself.
struct Grouping {
    /// The group of each binding.
    group: Vec<usize>,
    members: Vec<Vec<usize>>,
    /// For each group, the groups whose variables it uses, in order of use.
    needs: Vec<Vec<usize>>,
}

impl Grouping {
    fn of(bindings: &[VarBinding], reads: &Reads, group_of: &[usize]) -> Grouping {
        let mut number: Vec<Option<usize>> = vec![None; bindings.len()];
        let mut members: Vec<Vec<usize>> = Vec::new();
        let mut group = Vec::with_capacity(bindings.len());
        for (at, root) in group_of.iter().enumerate() {
            let own = *number[*root].get_or_insert(members.len());
            if own == members.len() {
                members.push(Vec::new());
            }
            members[own].push(at);
            group.push(own);
        }
        let mut needs: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
        for (at, own) in group.iter().enumerate() {
            needs[*own].extend(reads.named[at].iter().map(|named| group[*named]).filter(|other| other != own));
        }
        Grouping { group, members, needs }
    }

    /// Returns the groups in topological order, or the groups of a dependence cycle as an error.
    fn ordered(&self) -> Result<Vec<usize>, BTreeSet<usize>> {
        let mut order = Vec::with_capacity(self.members.len());
        let mut state = vec![State::New; self.members.len()];
        // The depth-first search stack: a group and the number of its dependences visited so far.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for group in 0..self.members.len() {
            if state[group] == State::New {
                state[group] = State::Open;
                open.push((group, 0));
            }
            while let Some((current, at)) = open.last_mut() {
                let Some(needed) = self.needs[*current].get(*at).copied() else {
                    state[*current] = State::Done;
                    order.push(*current);
                    open.pop();
                    continue;
                };
                *at += 1;
                match state[needed] {
                    State::Done => {}
                    State::New => {
                        state[needed] = State::Open;
                        open.push((needed, 0));
                    }
                    State::Open => {
                        let circle = open.iter().rev().map(|(group, _)| *group);
                        let start = circle.clone().position(|group| group == needed).unwrap_or_default();
                        return Err(circle.take(start + 1).collect());
                    }
                }
            }
        }
        Ok(order)
    }

    fn steps(&self, bindings: &[VarBinding], seen: &NameSet, reads: &Reads, order: &[usize]) -> Vec<Step> {
        let variable = |at: usize| bindings[at].variable;
        let mut outputs: Vec<Vec<Name>> = self
            .members
            .iter()
            .map(|members| members.iter().map(|at| variable(*at)).filter(|name| seen.contains(name)).collect())
            .collect();
        for (at, own) in self.group.iter().enumerate() {
            for named in &reads.named[at] {
                let of = self.group[*named];
                if of != *own && !outputs[of].contains(&variable(*named)) {
                    outputs[of].push(variable(*named));
                }
            }
        }
        let step = |group: &usize| {
            let members = self.members[*group].clone();
            let is_group = members.len() > 1;
            Step { outputs: is_group.then(|| std::mem::take(&mut outputs[*group])), members }
        };
        order.iter().map(step).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}
