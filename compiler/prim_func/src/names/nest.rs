//! Tracks the loops and blocks around a statement. A block that binds axes sees its axes and the loops inside it, but
//! not the loops outside (TVM `src/s_tir/analysis/verify_well_formed.cc`).
//!
//! ```text
//! for i in range(4):
//!     with T.sblock("a"):
//!         v = T.axis.spatial(4, i)   # `i` is allowed in the binding of an axis
//!         A[v] = A[i]                # error: `i` is not visible here
//! ```

use super::kinds::made_by;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_context::file_context::bind_names;
use rx_syntax::Cursor;
use rx_syntax::ast::StatementKind;
use rx_syntax::segment::Statement;

/// The open loops and blocks.
#[derive(Default)]
pub(super) struct Nest {
    loops: Vec<Loop>,
    blocks: Vec<Block>,
    /// Whether the statement may use the loops outside its block, because it binds axes or is a `T.where`.
    binds_axes: bool,
}

/// A variable of an open loop.
struct Loop {
    column: u32,
    variable: Name,
    /// The number of blocks around it.
    blocks: usize,
}

/// An open block.
struct Block {
    column: u32,
    has_axes: bool,
}

impl Nest {
    /// Closes the loops and blocks that end before a statement, and sets `binds_axes` for the statement.
    pub(super) fn enter(&mut self, cursor: Cursor<'_>, statement: &Statement) {
        let column = statement.indent + u32::from(statement.inline);
        self.loops.retain(|open| open.column < column);
        self.blocks.retain(|open| open.column < column);
        let form = match &statement.tree.kind {
            StatementKind::Assign { value, .. } | StatementKind::Expr(value) => made_by(cursor, value),
            _ => None,
        };
        self.binds_axes = form.is_some_and(|form| form.starts_with("axis.") || form == "where");
    }

    /// Opens the loop or block that a statement begins, drops loop variables that it rebinds, and records an axis that
    /// it binds.
    pub(super) fn leave(&mut self, cursor: Cursor<'_>, statement: &Statement) {
        let (kind, column) = (&statement.tree.kind, statement.indent);
        let mut names = NameSet::default();
        bind_names(cursor, kind, &mut names);
        self.loops.retain(|open| !names.contains(&open.variable));
        match kind {
            StatementKind::For { .. } => {
                let blocks = self.blocks.len();
                self.loops.extend(names.into_iter().map(|variable| Loop { column, variable, blocks }));
            }
            StatementKind::With(items) => {
                let is_block = |form| matches!(form, "sblock" | "block");
                if items.iter().any(|item| made_by(cursor, &item.context).is_some_and(is_block)) {
                    self.blocks.push(Block { column, has_axes: false });
                }
            }
            StatementKind::Assign { value, .. } if made_by(cursor, value).is_some_and(|it| it.starts_with("axis.")) => {
                if let Some(block) = self.blocks.last_mut() {
                    block.has_axes = true;
                }
            }
            _ => {}
        }
    }

    /// Whether the current statement is in a block.
    pub(super) fn is_in_block(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Returns the number of blocks around the current statement.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether a name is the variable of a loop outside a block with axes, and the current statement may not use it.
    pub(super) fn is_out_of_reach(&self, name: Name) -> bool {
        let around = self.loops.iter().rfind(|open| open.variable == name);
        !self.binds_axes && around.is_some_and(|open| self.blocks.iter().skip(open.blocks).any(|block| block.has_axes))
    }
}
