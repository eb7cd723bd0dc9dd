//! Loops and blocks around a statement. A block with axes sees the loops inside it, and its axes; not the loops outside
//! (TVM `src/s_tir/analysis/verify_well_formed.cc`).

use super::kinds::made_by;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_context::file_context::bind_names;
use rx_syntax::Cursor;
use rx_syntax::ast::StatementKind;
use rx_syntax::segment::Statement;

/// The loops and blocks that are open.
#[derive(Default)]
pub(super) struct Nest {
    loops: Vec<Loop>,
    blocks: Vec<Block>,
    /// Whether the statement speaks of the loops outside its block: it binds axes, or limits them.
    binds_axes: bool,
}

struct Loop {
    column: u32,
    variable: Name,
    /// How many blocks stand around it.
    blocks: usize,
}

struct Block {
    column: u32,
    has_axes: bool,
}

impl Nest {
    /// Closes what ends before a statement.
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

    /// Opens what a statement opens, and hides what it binds anew.
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

    /// Whether a statement stands in a block.
    pub(super) fn is_in_block(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Whether a name is a loop outside a block with axes.
    pub(super) fn is_out_of_reach(&self, name: Name) -> bool {
        let around = self.loops.iter().rfind(|open| open.variable == name);
        !self.binds_axes && around.is_some_and(|open| self.blocks.iter().skip(open.blocks).any(|block| block.has_axes))
    }
}
