//! What names of a prim_func stand for: buffers, which have elements, and scalars, which have none.

use super::{BUILTINS, Walk};
use crate::file_context::{Namespace, bind_names};
use crate::function::ItemPlace;
use rx_base::name::NameSet;
use rx_base::{Code, DType, Diagnostic, Name};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, Parameter, StatementKind};

/// Python's names that may be subscripted: `list[int]`.
const GENERIC: &[&str] = &["list", "tuple", "dict", "set", "type", "metadata", "tvm"];

/// Forms of `T` that make buffers with elements.
const BUFFERS: &[&str] = &["match_buffer", "alloc_buffer", "sblock_alloc_buffer", "decl_buffer"];

/// Names by what the statements so far make of them.
#[derive(Default)]
pub(super) struct Kinds {
    buffers: NameSet,
    scalars: NameSet,
}

impl Kinds {
    /// Takes a parameter with the type `T.Buffer(…)`.
    pub(super) fn parameter(&mut self, cursor: Cursor<'_>, param: &Parameter) {
        if let (Some(name), Some(annotation)) = (param.tree.name, &param.tree.annotation)
            && made_by(cursor, annotation).is_some_and(|form| form == "Buffer")
        {
            self.buffers.insert(cursor.name(name));
        }
    }

    /// Takes what a statement binds. A name bound twice with different kinds has none.
    pub(super) fn bind(&mut self, cursor: Cursor<'_>, kind: &StatementKind) {
        let mut names = NameSet::default();
        if let StatementKind::Def { .. } = kind {
            return;
        }
        bind_names(cursor, kind, &mut names);
        let (is_scalar, is_buffer) = match kind {
            StatementKind::For { .. } => (true, false),
            StatementKind::Assign { value, .. } => match made_by(cursor, value) {
                Some(form) => (form.starts_with("axis."), BUFFERS.contains(&form)),
                None => (false, false),
            },
            _ => (false, false),
        };
        for name in names {
            let known = self.buffers.remove(&name) | self.scalars.remove(&name);
            match (is_scalar, is_buffer) {
                (true, _) if !known => self.scalars.insert(name),
                (_, true) if !known => self.buffers.insert(name),
                _ => false,
            };
        }
    }
}

/// The form of `T` that a call is of. The namespace's spelling does not matter: the last parts are enough to tell.
pub(super) fn made_by<'t>(cursor: Cursor<'t>, value: &Expr) -> Option<&'t str> {
    let ExprKind::Call { callee, .. } = &value.kind else { return None };
    Some(cursor.source(callee.tokens).split_once('.')?.1)
}

impl Walk<'_> {
    /// The value of `value[…]`.
    pub(super) fn subscripted(&mut self, cursor: Cursor<'_>, value: &Expr) {
        let ExprKind::Name = value.kind else { return };
        let name = cursor.name(value.tokens.start);
        if self.kinds.scalars.contains(&name) {
            self.wrong_kind(cursor, value, format!("`{name}` is a scalar, it has no elements"));
        } else if !GENERIC.contains(&name.as_str()) && self.is_no_value(name) {
            self.wrong_kind(cursor, value, format!("`{name}` is no value"));
        }
    }

    /// An index, or an operand of arithmetic.
    pub(super) fn operand(&mut self, cursor: Cursor<'_>, value: &Expr) {
        match &value.kind {
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.operand(cursor, item)),
            ExprKind::Name => {
                let name = cursor.name(value.tokens.start);
                if self.kinds.buffers.contains(&name) {
                    self.wrong_kind(cursor, value, format!("`{name}` is a buffer; an element of it is `{name}[…]`"));
                } else if self.is_no_value(name) {
                    self.wrong_kind(cursor, value, format!("`{name}` is no value"));
                }
            }
            ExprKind::Call { callee, arguments } if arguments.is_empty() && self.is_dtype(cursor, callee) => {
                let message = format!("`{}` has no value here", cursor.source(value.tokens));
                self.found.push(Diagnostic::new(
                    Code::MissingArgument,
                    ItemPlace::Segment(self.segment, cursor.span(value.tokens)),
                    message,
                ));
            }
            _ => {}
        }
    }

    /// Whether this is `T.int64`, whose call without a value declares a variable.
    pub(super) fn is_dtype(&self, cursor: Cursor<'_>, callee: &Expr) -> bool {
        let Some((head, member)) = cursor.source(callee.tokens).split_once('.') else { return false };
        member != "handle" && DType::parse(member).is_some() && self.file.namespace(head) == Some(Namespace::Tir)
    }

    /// `T.int64(1)`: one value.
    pub(super) fn dtype_call(&mut self, cursor: Cursor<'_>, call: &Expr, callee: &Expr, arguments: &[Argument]) {
        let positional = arguments.iter().filter(|argument| argument.keyword.is_none()).count();
        if positional > 1 && self.is_dtype(cursor, callee) {
            let place = ItemPlace::Segment(self.segment, cursor.span(call.tokens));
            let message = format!("{}: takes one value, more are passed", cursor.source(callee.tokens));
            self.found.push(Diagnostic::new(Code::TooManyArguments, place, message));
        }
    }

    /// Whether a name stands for a namespace, a function or a class, and for nothing of the function.
    fn is_no_value(&self, name: Name) -> bool {
        let file = self.file;
        let hidden = self.anywhere.contains(&name) || file.symbols.contains(&name) || file.captured.contains(&name);
        !hidden && (file.namespace(&name).is_some() || BUILTINS.contains(&name.as_str()) || file.items.contains(&name))
    }

    fn wrong_kind(&mut self, cursor: Cursor<'_>, value: &Expr, message: String) {
        let place = ItemPlace::Segment(self.segment, cursor.span(value.tokens));
        self.found.push(Diagnostic::new(Code::ArgumentType, place, message));
    }
}
