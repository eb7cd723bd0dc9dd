//! Groups of tensors that have their channels last together.

use super::Order;
use super::reading::{Access, NestReading, Reading};
use super::registers::{Registers, Steady, Use};
use crate::program::{Program, Register};
use rustc_hash::FxHashMap;
use rx_base::Dim;
use rx_tir::{BufferId, Expr, PrimFunc};
use std::collections::VecDeque;

/// A tensor of a procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// A register.
    Register(Register),
    /// What lives in the kernel of the instruction with this number.
    Local(usize, BufferId),
}

/// Tensors that are decided on together, with the orders in which their channels are last.
pub(super) struct Group {
    pub(super) nodes: Vec<(Node, Order)>,
}

/// The groups that a procedure's convolutions ask for.
pub(super) fn of(registers: &Registers, program: &Program, readings: &[Option<Reading>]) -> Vec<Group> {
    let mut spread = Spread {
        registers,
        program,
        readings,
        places: FxHashMap::default(),
        axes: FxHashMap::default(),
        found: Vec::new(),
        parents: Vec::new(),
        waiting: VecDeque::new(),
    };
    spread.find_places();
    // What is read comes first: it is what gains.
    for wanted in [Part::Data, Part::Target] {
        for number in 0..registers.uses.len() {
            spread.begin(number, wanted);
        }
    }
    spread.groups()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Target,
}

struct Spread<'p> {
    registers: &'p Registers,
    program: &'p Program,
    readings: &'p [Option<Reading>],
    /// The instructions that write or read a register, with the buffer it is there.
    places: FxHashMap<Register, Vec<(usize, BufferId)>>,
    /// The axis of its channels and its number.
    axes: FxHashMap<Node, (usize, usize)>,
    found: Vec<Node>,
    /// Groups: by number the number of another member; roots point at themselves.
    parents: Vec<usize>,
    waiting: VecDeque<Node>,
}

impl<'p> Spread<'p> {
    fn find_places(&mut self) {
        for (number, one) in self.registers.uses.iter().enumerate() {
            for (register, buffer) in &one.buffers {
                self.places.entry(*register).or_default().push((number, *buffer));
            }
        }
    }

    fn using(&self, number: usize) -> (&'p Use, &'p PrimFunc, &'p [NestReading]) {
        let one = &self.registers.uses[number];
        let nests = self.readings.get(one.kernel.0 as usize).and_then(Option::as_ref);
        (one, &self.program.kernel(one.kernel).loops, nests.map_or(&[], |reading| &reading.nests))
    }

    fn node(&self, number: usize, buffer: BufferId) -> Node {
        let (one, ..) = self.using(number);
        one.register_of(buffer).map_or(Node::Local(number, buffer), Node::Register)
    }

    /// The extents of a tensor, those that are known.
    fn shape(&self, node: Node) -> Option<Vec<Option<i64>>> {
        Some(match node {
            Node::Register(register) => self.registers.shape(register)?.iter().map(Dim::as_constant).collect(),
            Node::Local(number, buffer) => {
                let (_, func, _) = self.using(number);
                func.buffer(buffer).shape.iter().map(Expr::as_int).collect()
            }
        })
    }

    /// The order in which an axis of a tensor is last; `None` where its elements lie so already.
    fn order(&self, node: Node, axis: usize) -> Option<Order> {
        let shape = self.shape(node)?;
        let is_last = shape.get(axis + 1..)?.iter().all(|extent| *extent == Some(1));
        (!is_last).then(|| (0..shape.len()).filter(|at| *at != axis).chain([axis]).collect())
    }

    /// Begins with the convolutions of an instruction.
    fn begin(&mut self, number: usize, wanted: Part) {
        let (_, _, nests) = self.using(number);
        for channels in nests.iter().filter_map(|nest| nest.product.as_ref()) {
            match wanted {
                Part::Data => {
                    let data = self.visit(number, channels.data, false);
                    if data.is_some() {
                        let weight = self.visit(number, channels.weight, true);
                        self.join(data, weight);
                    }
                }
                Part::Target => {
                    let target = channels.target.and_then(|target| self.visit(number, target, false));
                    // A weight whose outputs stand behind its channels is read along them, which then are no neighbours.
                    if target.is_some() && channels.weight.1 == 0 {
                        let weight = self.visit(number, channels.weight, true);
                        self.join(target, weight);
                    }
                }
            }
            self.go_on();
        }
    }

    /// Wants the channels of a buffer on this axis; gives its number where they are. `is_weight`: it is used as weights are.
    fn visit(&mut self, number: usize, (buffer, axis): (BufferId, usize), is_weight: bool) -> Option<usize> {
        let node = self.node(number, buffer);
        if let Some((own, at)) = self.axes.get(&node) {
            return (*own == axis).then_some(*at);
        }
        let (_, func, _) = self.using(number);
        let buffer = func.buffer(buffer);
        let least = 16 / buffer.dtype.bytes().cast_signed().clamp(1, 16);
        let shape = self.shape(node)?;
        let is_even = shape.get(axis)?.is_some_and(|extent| extent > 0 && extent % least == 0);
        let may = match node {
            Node::Local(..) => true,
            Node::Register(register) if self.registers.is_inner(register) => true,
            Node::Register(register) => {
                let steady = self.registers.steady(register);
                steady == Steady::Yes || steady == Steady::Maybe && is_weight
            }
        };
        if shape.len() < 3 || shape.len() != buffer.shape.len() || !is_even || !may {
            return None;
        }
        let at = self.found.len();
        self.found.push(node);
        self.parents.push(at);
        self.axes.insert(node, (axis, at));
        self.waiting.push_back(node);
        Some(at)
    }

    /// Spreads what is wanted to where the same loop walks other tensors' axes.
    fn go_on(&mut self) {
        while let Some(node) = self.waiting.pop_front() {
            let Some((axis, at)) = self.axes.get(&node).copied() else { continue };
            let places = match node {
                Node::Local(number, buffer) => vec![(number, buffer)],
                Node::Register(register) => self.places.get(&register).cloned().unwrap_or_default(),
            };
            for (number, buffer) in places {
                let (_, _, nests) = self.using(number);
                for nest in nests.iter().filter(|nest| nest.product.is_none()) {
                    for (other, axis) in beside(nest, buffer, axis) {
                        let is_weight = nest.is_reduction && !other.slides;
                        let found = self.visit(number, (other.buffer, axis), is_weight);
                        self.join(Some(at), found);
                    }
                }
                for channels in nests.iter().filter_map(|nest| nest.product.as_ref()) {
                    // A convolution whose data was reached from elsewhere.
                    if channels.data == (buffer, axis) {
                        let weight = self.visit(number, channels.weight, true);
                        self.join(Some(at), weight);
                    }
                }
            }
        }
    }

    fn root(&self, mut at: usize) -> usize {
        while self.parents[at] != at {
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, a: Option<usize>, b: Option<usize>) {
        if let (Some(a), Some(b)) = (a, b) {
            let (a, b) = (self.root(a), self.root(b));
            self.parents[b] = a;
        }
    }

    fn groups(self) -> Vec<Group> {
        let mut groups: Vec<(usize, Group)> = Vec::new();
        for (at, node) in self.found.iter().enumerate() {
            let Some(order) = self.order(*node, self.axes[node].0) else { continue };
            let root = self.root(at);
            match groups.iter_mut().find(|(own, _)| *own == root) {
                Some((_, group)) => group.nodes.push((*node, order)),
                None => groups.push((root, Group { nodes: vec![(*node, order)] })),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// The other tensors of a nest that have an axis which the loop along this axis of a buffer walks, and which axis that is. What has
/// no other axis is the same in any order.
fn beside(nest: &NestReading, buffer: BufferId, axis: usize) -> Vec<(&Access, usize)> {
    let own = nest.accesses.iter().filter(|access| access.buffer == buffer);
    let loops: Vec<_> = own.filter_map(|access| access.by.get(axis).copied().flatten()).collect();
    let mut found = Vec::new();
    for other in nest.accesses.iter().filter(|access| access.buffer != buffer && access.moving > 1) {
        for var in &loops {
            found.extend(other.axis_by(*var).map(|axis| (other, axis)));
        }
    }
    found
}
