//! Prints the kernel of the `threads` rule: thread indices, the declarations of its buffers, and its body.

use super::compact::{self, PrivateOrShared};
use super::{Launch, Node, fragments, place_of};
use crate::printer::{Kernel, types};
use crate::rules::{Frame, KernelBody, SHARED_ALIGNMENT};
use crate::source::LaunchShape;
use rustc_hash::FxHashMap;
use rx_tir::{BufferId, Expr, PrimFunc, Scope, Stmt, VarId};

/// A kernel of a function whose loops are bound to threads.
pub(super) struct ThreadsKernel {
    /// The function, with the thread axes' variables and the shapes of compacted buffers.
    pub(super) func: PrimFunc,
    /// The thread axes.
    pub(super) launch: Launch,
    /// The body, with barriers.
    pub(super) tree: Node,
    /// Its private and shared buffers, in the order of their ids.
    pub(super) buffers: Vec<PrivateOrShared>,
    /// The statements of the function that it executes.
    pub(super) statements: Vec<Stmt>,
    /// The condition for launching it, which the host evaluates.
    pub(super) guard: Option<Expr>,
}

impl KernelBody for ThreadsKernel {
    fn frame(&self) -> Frame<'_> {
        let mut grid = [1, 1, 1].map(Expr::int);
        for axis in self.launch.blocks() {
            if let Some(at) = place_of(&axis.tag) {
                grid[at] = axis.extent.clone();
            }
        }
        let shared_bytes = if self.is_dynamic() { compact::shared_bytes(&self.buffers) as u32 } else { 0 };
        let shape = LaunchShape { grid, block: self.launch.sizes().map(|size| size as u32), shared_bytes };
        Frame {
            func: Some(&self.func),
            guard: self.guard.as_ref(),
            kept: self.buffers.iter().map(|buffer| buffer.id).collect(),
            own_names: &["by", "at", "e", "lane"],
            ..Frame::new(shape, &self.statements)
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        for axis in &self.launch.axes {
            let name = kernel.bind(axis.var);
            kernel.name_var(axis.var, &name, true);
            kernel.line(&format!("const long long {name} = {};", axis.tag));
        }
        let mut names = FxHashMap::default();
        let (offsets, _) = compact::offsets(&self.buffers);
        let memory = self.is_dynamic().then(|| {
            kernel.need("RX_SHARED");
            let memory = kernel.fresh_name("shared");
            kernel.line(&format!("RX_SHARED({memory});"));
            memory
        });
        for (own, offset) in self.buffers.iter().zip(offsets) {
            let buffer = self.func.buffer(own.id);
            let storage = types::storage(buffer.dtype)
                .ok_or_else(|| format!("requires a dtype that has a CUDA type; found {}", buffer.dtype))?;
            kernel.need_storage(buffer.dtype);
            let name = kernel.fresh_name(&buffer.name);
            let elements = (own.bytes / buffer.dtype.bytes().cast_signed().max(1)).max(1);
            if let Scope::Fragment(_) = buffer.scope {
                let line = self.fragments(&names).declaration(own.id, &name, elements);
                kernel.line(&line);
                names.insert(own.id, name);
                continue;
            }
            kernel.line(&match (&memory, own.is_shared) {
                (Some(memory), true) => format!("{storage}* const {name} = ({storage}*)({memory} + {offset});"),
                (None, true) => format!("__shared__ __align__(16) {storage} {name}[{elements}];"),
                (_, false) => format!("{storage} {name}[{elements}];"),
            });
            kernel.name_buffer(own.id, &name, &buffer.shape);
        }
        if !names.is_empty() {
            kernel.line("const int lane = threadIdx.x % 32;");
        }
        self.node(kernel, &self.tree, &names)
    }
}

/// The C names of fragment buffers.
type Names = FxHashMap<BufferId, String>;

impl ThreadsKernel {
    /// Whether its shared buffers are in dynamic shared memory, as they and the partial results of its cross-thread
    /// reductions together exceed the limit of static shared memory.
    fn is_dynamic(&self) -> bool {
        compact::shared_bytes(&self.buffers) + self.parts_bytes() > super::SHARED_BYTES
    }

    /// Returns the bytes of shared memory of a block: in all, and those that are declared statically.
    pub(super) fn memory(&self) -> (i64, i64) {
        let (buffers, parts) = (compact::shared_bytes(&self.buffers), self.parts_bytes());
        match self.is_dynamic() {
            true => (buffers + (parts as u64).next_multiple_of(u64::from(SHARED_ALIGNMENT)).cast_signed(), parts),
            false => (buffers + parts, buffers + parts),
        }
    }

    /// Returns the printer of operations on fragments.
    fn fragments<'k>(&'k self, names: &'k Names) -> fragments::Printer<'k> {
        fragments::Printer { func: &self.func, names }
    }

    /// Prints a node.
    fn node(&self, kernel: &mut Kernel<'_>, node: &Node, names: &Names) -> Result<(), String> {
        match node {
            Node::Seq(nodes) => nodes.iter().try_for_each(|node| self.node(kernel, node, names)),
            Node::For { var, start, extent, body } => {
                if self.is_unrolled(*var, extent, body) {
                    kernel.line("#pragma unroll");
                }
                kernel.open_loop(*var, start, extent)?;
                self.node(kernel, body, names)?;
                kernel.close();
                Ok(())
            }
            Node::If { condition, then, otherwise } => {
                let condition = kernel.operand(condition, 0)?;
                kernel.open(&format!("if ({condition}) {{"));
                self.node(kernel, then, names)?;
                if let Some(otherwise) = otherwise {
                    kernel.outdent();
                    kernel.open("} else {");
                    self.node(kernel, otherwise, names)?;
                }
                kernel.close();
                Ok(())
            }
            Node::While { condition, body } => {
                kernel.open_while(condition)?;
                self.node(kernel, body, names)?;
                kernel.close_while();
                Ok(())
            }
            Node::Let { var, value, body } => {
                kernel.constant(*var, value)?;
                self.node(kernel, body, names)
            }
            Node::Leaf(stmt) => kernel.stmt(stmt),
            Node::Copy(copy) => copy.print(kernel, &self.func),
            Node::Reduce(cross_thread) => self.cross_thread(kernel, cross_thread),
            Node::Warp(warp) => self.fragments(names).warp(kernel, warp),
            Node::Barrier => {
                kernel.line("__syncthreads();");
                Ok(())
            }
        }
    }

    /// Whether a loop has a constant number of at most [`compact::UNROLLED`] iterations and its variable indexes a
    /// private buffer ([`compact::node_chooses`]), so that unrolling it can keep the buffer in registers.
    fn is_unrolled(&self, var: VarId, extent: &Expr, body: &Node) -> bool {
        let local: Vec<BufferId> = self.buffers.iter().filter(|own| !own.is_shared).map(|own| own.id).collect();
        extent.as_int().is_some_and(|extent| extent <= compact::UNROLLED) && compact::node_chooses(body, var, &local)
    }
}
