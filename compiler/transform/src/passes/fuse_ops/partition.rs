//! The partition of a dataflow block into fusion groups.
//!
//! Each binding is merged with its immediate post-dominator (the first binding that all paths from it reach) and with
//! the bindings on these paths, if the patterns of all of them allow it. A group has at most [`MAX_JOINED`] bindings.
//! The pattern describes how the elements that a kernel writes depend on the elements that it reads. For example, in
//!
//! ```text
//! a = conv(x); b = relu(a); c = exp(a); d = add(b, c)
//! ```
//!
//! `d` post-dominates `a`, and all four become one group.
//!
//! Reference: TVM `src/relax/analysis/graph_partitioner.cc`.

use rx_loops::op_pattern::OpPattern;

/// A binding in the dataflow graph.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The pattern of its value.
    pub(super) pattern: OpPattern,
    /// Whether the variable is an output of the block.
    pub(super) is_output: bool,
    /// The later bindings that use the variable, once for each use, with their patterns. As in TVM, an `R.match_cast`
    /// is not recorded as a user.
    pub(super) users: Vec<(usize, OpPattern)>,
}

/// The largest number of bindings in a group (TVM `kMaxFusedOps`).
const MAX_JOINED: usize = 256;

/// Returns the group of each binding, as the index of the group's representative.
pub(super) fn partition(nodes: &[Node]) -> Vec<usize> {
    let groups = nodes.iter().map(|node| Group { parent: None, pattern: node.pattern, size: 1 }).collect();
    let mut partition = Partition { nodes, groups, seen: vec![0; nodes.len()], round: 0 };
    let tree = PostDominators::of(nodes);
    // Injective bindings are merged with their post-dominators in a second phase, after bindings of the pattern
    // `OutElementwiseFusable`, such as matmuls, have been merged with their element-wise users.
    partition.join(&tree, Phase::First);
    partition.join(&tree, Phase::Injective);
    (0..nodes.len()).map(|node| partition.root(node)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    First,
    Injective,
}

/// The tree of immediate post-dominators.
struct PostDominators {
    parent: Vec<Option<usize>>,
    depth: Vec<usize>,
    /// For each binding, the most restrictive pattern of the edges between it and its parent.
    pattern: Vec<OpPattern>,
}

impl PostDominators {
    fn of(nodes: &[Node]) -> PostDominators {
        let mut tree = PostDominators {
            parent: vec![None; nodes.len()],
            depth: vec![1; nodes.len()],
            pattern: vec![OpPattern::Opaque; nodes.len()],
        };
        for (at, node) in nodes.iter().enumerate().rev().filter(|(_, node)| !node.is_output) {
            let mut pattern = OpPattern::Elementwise;
            let mut parent = node.users.first().map(|(user, _)| *user);
            for (user, edge) in &node.users {
                parent = parent.and_then(|parent| tree.common_ancestor(parent, *user, &mut pattern));
                pattern = pattern.max(*edge);
            }
            tree.parent[at] = parent;
            tree.depth[at] = parent.map_or(1, |parent| tree.depth[parent] + 1);
            tree.pattern[at] = pattern;
        }
        tree
    }

    fn common_ancestor(&self, mut left: usize, mut right: usize, pattern: &mut OpPattern) -> Option<usize> {
        while left != right {
            let (of_left, of_right) = (self.depth[left], self.depth[right]);
            if of_left >= of_right {
                *pattern = (*pattern).max(self.pattern[left]);
            }
            if of_right >= of_left {
                *pattern = (*pattern).max(self.pattern[right]);
                right = self.parent[right]?;
            }
            if of_left >= of_right {
                left = self.parent[left]?;
            }
        }
        Some(left)
    }
}

struct Group {
    /// The group that this one was merged into.
    parent: Option<usize>,
    pattern: OpPattern,
    /// The number of bindings in the group.
    size: usize,
}

struct Partition<'a> {
    nodes: &'a [Node],
    groups: Vec<Group>,
    /// For each binding, the number of the last traversal that visited it.
    seen: Vec<usize>,
    round: usize,
}

impl Partition<'_> {
    fn root(&self, mut node: usize) -> usize {
        while let Some(parent) = self.groups[node].parent {
            node = parent;
        }
        node
    }

    /// Returns the bindings on the paths from `from` to its post-dominator `to`, including `from` but not `to`. Returns
    /// `None` as soon as `enough` returns true for one of them.
    fn between(&mut self, from: usize, to: usize, enough: &mut dyn FnMut(&Self, usize) -> bool) -> Option<Vec<usize>> {
        self.round += 1;
        let mut found = Vec::new();
        let mut waiting = vec![from];
        while let Some(next) = waiting.pop() {
            if next == to || std::mem::replace(&mut self.seen[next], self.round) == self.round {
                continue;
            }
            if enough(self, next) {
                return None;
            }
            found.push(next);
            waiting.extend(self.nodes[next].users.iter().map(|(user, _)| *user));
        }
        Some(found)
    }

    fn join(&mut self, tree: &PostDominators, phase: Phase) {
        for node in 0..self.nodes.len() {
            let pattern = self.groups[node].pattern;
            let Some(parent) = tree.parent[node].filter(|_| pattern != OpPattern::Opaque) else { continue };
            let mut size = self.groups[self.root(parent)].size;
            let path = self.between(node, parent, &mut |own, met| {
                size += own.groups[met].size;
                size > MAX_JOINED
            });
            let Some(path) = path.filter(|_| self.root(node) != self.root(parent)) else { continue };
            let edges = tree.pattern[node];
            let (inner, last): (OpPattern, &[OpPattern]) = match pattern {
                OpPattern::OutElementwiseFusable if phase == Phase::First && edges == OpPattern::Elementwise => {
                    (OpPattern::Broadcast, &[])
                }
                OpPattern::Elementwise | OpPattern::Broadcast if edges <= OpPattern::CommutativeReduction => {
                    (OpPattern::Injective, &[OpPattern::CommutativeReduction, OpPattern::OutElementwiseFusable])
                }
                OpPattern::Injective if phase == Phase::Injective => (OpPattern::Injective, &[]),
                _ => continue,
            };
            let of = |node: usize| self.groups[self.root(node)].pattern;
            let may_join = path.iter().filter(|met| **met != node).all(|met| of(*met) <= inner)
                && (of(parent) <= inner || last.contains(&of(parent)));
            if may_join {
                self.commit(&path, parent);
            }
        }
    }

    fn commit(&mut self, path: &[usize], parent: usize) {
        let target = self.root(parent);
        for node in path {
            let child = self.root(*node);
            if child == target {
                continue;
            }
            let Group { pattern, size, .. } = self.groups[child];
            self.groups[child].parent = Some(target);
            self.groups[target].size += size;
            if pattern == OpPattern::OutElementwiseFusable {
                self.groups[target].pattern = self.groups[target].pattern.max(pattern);
            }
        }
    }
}
