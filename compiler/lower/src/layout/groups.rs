//! Finds groups of tensors that get a channels-last layout together: a worklist propagates channel axes from
//! convolutions to the tensors that are indexed by the same loops, and a union-find structure collects the groups.
//!
//! For example, `y[n, c, h, w] = relu(x[n, c, h, w])` propagates the channel axis 1 from `y` to `x`, because loop `c`
//! indexes both.

use super::Order;
use super::reading::{Access, NestReading, Reading};
use super::registers::{Registers, Steady, Use};
use crate::program::{Program, Register};
use rustc_hash::FxHashMap;
use rx_base::Dim;
use rx_tir::{BufferId, Expr, PrimFunc};
use std::collections::VecDeque;

/// A tensor of a procedure, or a temporary of one of its kernel calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// A tensor in a register.
    Register(Register),
    /// A temporary buffer of the kernel call with this position in [`Registers::uses`].
    Local(usize, BufferId),
}

/// Tensors whose layouts change together, or not at all.
pub(super) struct Group {
    /// Each tensor with its channels-last layout.
    pub(super) nodes: Vec<(Node, Order)>,
}

/// Returns the groups of tensors whose layouts must change together, found from the procedure's convolutions.
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
    // Data comes first, because the gain is in its loads: where two convolutions request different axes for a tensor,
    // the first request wins.
    for wanted in [Part::Data, Part::Target] {
        for number in 0..registers.uses.len() {
            spread.begin(number, wanted);
        }
    }
    spread.groups()
}

/// The tensor of a convolution from which propagation begins: the data or the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Data,
    Target,
}

/// The state of the propagation. A call is identified by its number: its position in [`Registers::uses`].
struct Spread<'p> {
    registers: &'p Registers,
    program: &'p Program,
    readings: &'p [Option<Reading>],
    /// By register: the calls that write or read it, each with the buffer that the register is passed for.
    places: FxHashMap<Register, Vec<(usize, BufferId)>>,
    /// By tensor: its channel axis and its position in `found`.
    axes: FxHashMap<Node, (usize, usize)>,
    /// The tensors that have a channel axis, in the order of discovery.
    found: Vec<Node>,
    /// The union-find forest over `found`: the position of each tensor's parent. A root is its own parent.
    parents: Vec<usize>,
    /// The tensors whose channel axis has not been propagated yet.
    waiting: VecDeque<Node>,
}

impl<'p> Spread<'p> {
    /// Fills `places`.
    fn find_places(&mut self) {
        for (number, one) in self.registers.uses.iter().enumerate() {
            for (register, buffer) in &one.buffers {
                self.places.entry(*register).or_default().push((number, *buffer));
            }
        }
    }

    /// Returns the call with this number, its function, and the readings of its nests (none if the kernel could not be
    /// analyzed).
    fn using(&self, number: usize) -> (&'p Use, &'p PrimFunc, &'p [NestReading]) {
        let one = &self.registers.uses[number];
        let nests = self.readings.get(one.kernel.0 as usize).and_then(Option::as_ref);
        (one, &self.program.kernel(one.kernel).loops, nests.map_or(&[], |reading| &reading.nests))
    }

    /// Returns the tensor that a buffer of a call is.
    fn node(&self, number: usize, buffer: BufferId) -> Node {
        let (one, ..) = self.using(number);
        one.register_of(buffer).map_or(Node::Local(number, buffer), Node::Register)
    }

    /// Returns the extents of a tensor, with `None` for those that are not constants.
    fn shape(&self, node: Node) -> Option<Vec<Option<i64>>> {
        Some(match node {
            Node::Register(register) => self.registers.shape(register)?.iter().map(Dim::as_constant).collect(),
            Node::Local(number, buffer) => {
                let (_, func, _) = self.using(number);
                func.buffer(buffer).shape.iter().map(Expr::as_int).collect()
            }
        })
    }

    /// Returns the layout in which `axis` is last. Returns `None` where it is last already, up to axes of extent 1, or
    /// where the tensor's shape is unknown.
    fn order(&self, node: Node, axis: usize) -> Option<Order> {
        let shape = self.shape(node)?;
        let is_last = shape.get(axis + 1..)?.iter().all(|extent| *extent == Some(1));
        (!is_last).then(|| (0..shape.len()).filter(|at| *at != axis).chain([axis]).collect())
    }

    /// Assigns the channel axes of the convolutions in the call with this number, and propagates them. Begins at the
    /// data or at the result, as `wanted` says; the weight may follow.
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
                    // Where the result is channels last, a weight with its input channels first (`[in, out, …]`, as of
                    // a transposed convolution) is read along its output channels, which usually are not contiguous.
                    // So its input channels become the last axis.
                    if target.is_some() && channels.weight.1 == 0 {
                        let weight = self.visit(number, channels.weight, true);
                        self.join(target, weight);
                    }
                }
            }
            self.go_on();
        }
    }

    /// Assigns the channel axis `axis` to a buffer of a call. Returns the tensor's position in `found`, or `None` where
    /// the layout may not change or another axis was assigned before. Requires a rank of at least 3 and a constant
    /// channel extent that is a multiple of 16 bytes. `is_weight` is whether the buffer is used as a weight.
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

    /// Propagates the assigned axes until none is waiting: to the tensors that the same loop indexes, and to the
    /// weights of convolutions.
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
                    // A convolution whose data has this channel axis, for example by propagation.
                    if channels.data == (buffer, axis) {
                        let weight = self.visit(number, channels.weight, true);
                        self.join(Some(at), weight);
                    }
                }
            }
        }
    }

    /// Returns the root of a tensor's group.
    fn root(&self, mut at: usize) -> usize {
        while self.parents[at] != at {
            at = self.parents[at];
        }
        at
    }

    /// Unites the groups of two tensors, if both were assigned.
    fn join(&mut self, a: Option<usize>, b: Option<usize>) {
        if let (Some(a), Some(b)) = (a, b) {
            let (a, b) = (self.root(a), self.root(b));
            self.parents[b] = a;
        }
    }

    /// Returns the groups, without tensors that have their channels last already.
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

/// Returns the accesses of other buffers in a nest that have exactly one axis indexed by the loop that indexes `axis`
/// of `buffer`, with that axis. Accesses with at most one varying axis are left out: their elements have the same order
/// in any layout.
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
