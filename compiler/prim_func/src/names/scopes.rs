//! Tracks the scopes of names in a prim_func: a binding ends with the block that contains it (TVM
//! `script/parser/core/parser.py`, `VarTable`).

use super::kinds::made_by;
use rx_base::Name;
use rx_base::name::NameSet;
use rx_context::file_context::bind_names;
use rx_syntax::Cursor;
use rx_syntax::ast::StatementKind;
use rx_syntax::segment::Statement;

/// The names bound in open scopes, and those of scopes that ended.
#[derive(Default)]
pub(super) struct Scopes {
    /// The open bindings, except those of the header: the least column of the statements that see the name, and the
    /// name. The columns never decrease, since inner scopes have larger columns.
    open: Vec<(u32, Name)>,
    names: NameSet,
    gone: NameSet,
    /// Whether the current statement is a `T.reads` or `T.writes`.
    is_region: bool,
}

impl Scopes {
    /// Ends the scopes that do not contain the statement, and sets `is_region` for it.
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

    /// Records the names that a statement binds. Names bound by the function's header live as long as the function.
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

    /// Whether the current statement is a `T.reads` or `T.writes`, and the scopes that bind the name ended.
    pub(super) fn is_gone(&self, name: Name) -> bool {
        self.is_region && self.gone.contains(&name)
    }
}
