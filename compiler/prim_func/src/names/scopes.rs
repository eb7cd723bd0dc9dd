//! How long names of a prim_func are bound: to the end of the block that binds them (TVM `script/parser/core/parser.py`,
//! `VarTable`).

use super::kinds::made_by;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_context::file_context::bind_names;
use rx_syntax::Cursor;
use rx_syntax::ast::StatementKind;
use rx_syntax::segment::Statement;

/// The names that open blocks bind, and those of blocks that ended.
#[derive(Default)]
pub(super) struct Scopes {
    /// Each with the column that statements must have for it to be bound still: a stack, since inner blocks stand deeper.
    open: Vec<(u32, Name)>,
    names: NameSet,
    gone: NameSet,
    /// Whether the statement says what a block reads or writes.
    is_region: bool,
}

impl Scopes {
    /// Ends what ends before a statement.
    pub(super) fn enter(&mut self, cursor: Cursor<'_>, statement: &Statement) {
        let column = statement.indent + u32::from(statement.inline);
        while let Some((_, name)) = self.open.pop_if(|(least, _)| *least > column) {
            self.names.remove(&name);
            self.gone.insert(name);
        }
        let form = match &statement.tree.kind {
            StatementKind::Expr(value) => made_by(cursor, value),
            _ => None,
        };
        self.is_region = form.is_some_and(|form| matches!(form, "reads" | "writes"));
    }

    /// Takes what a statement binds. What a header binds lives as long as the function.
    pub(super) fn bind(&mut self, cursor: Cursor<'_>, statement: &Statement) {
        let mut names = NameSet::default();
        let kind = &statement.tree.kind;
        bind_names(cursor, kind, &mut names);
        let opens = matches!(kind, StatementKind::For { .. } | StatementKind::With(_));
        let column = statement.indent + u32::from(statement.inline) + u32::from(opens);
        for name in names {
            self.gone.remove(&name);
            if self.names.insert(name) && !matches!(kind, StatementKind::Def { .. }) {
                self.open.push((column, name));
            }
        }
    }

    /// Whether a block's region names what a block that ended bound.
    pub(super) fn is_gone(&self, name: Name) -> bool {
        self.is_region && self.gone.contains(&name)
    }
}
