//! Distinguishes names of buffers, which have elements, from names of scalars, which have none.

use super::{BUILTINS, Walk};
use rx_base::name::NameSet;
use rx_base::{Code, DType, Diagnostic, Name};
use rx_context::file_context::bind_names;
use rx_context::{ItemPlace, Namespace};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, Parameter, StatementKind};

/// Names that may be subscripted although they are no values, as in `list[int]`.
const GENERIC: &[&str] = &["list", "tuple", "dict", "set", "type", "metadata", "tvm"];

/// The forms of `T` whose results [`Kinds::bind`] records as buffers.
const BUFFERS: &[&str] = &["match_buffer", "alloc_buffer", "sblock_alloc_buffer", "decl_buffer"];

/// Functions of `T` whose arguments may declare symbols or are types.
const DECLARING: &[&str] = &[
    "Buffer",
    "match_buffer",
    "sblock_alloc_buffer",
    "decl_buffer",
    "buffer_decl",
    "Ptr",
    "ptr",
    "handle",
    "let",
    "Let",
    "iter_var",
    "meta_var",
    "Tuple",
];

/// The names that are known so far to be buffers or scalars.
#[derive(Default)]
pub(super) struct Kinds {
    buffers: NameSet,
    scalars: NameSet,
}

impl Kinds {
    /// Records a parameter with the type `T.Buffer(…)` or `T.Buffer[…]`.
    pub(super) fn parameter(&mut self, cursor: Cursor<'_>, param: &Parameter) {
        if let (Some(name), Some(annotation)) = (param.tree.name, &param.tree.annotation)
            && (made_by(cursor, annotation) == Some("Buffer") || is_bracketed_buffer(cursor, annotation))
        {
            self.buffers.insert(cursor.name(name));
        }
    }

    /// Records the scalar loop variables, the axes and the buffers ([`BUFFERS`]) that a statement binds. If a name is
    /// already recorded, it is removed instead, since it may now have another kind.
    pub(super) fn bind(&mut self, cursor: Cursor<'_>, kind: &StatementKind) {
        let mut names = NameSet::default();
        if let StatementKind::Def { .. } = kind {
            return;
        }
        bind_names(cursor, kind, &mut names);
        let (is_scalar, is_buffer) = match kind {
            StatementKind::For { target, iter } => (!is_tuple(cursor, target, iter), false),
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

/// Whether a single variable takes the tuple of all loop variables of a `T.grid`: `for i in T.grid(4, 8)`.
fn is_tuple(cursor: Cursor<'_>, target: &Expr, iter: &Expr) -> bool {
    let ExprKind::Call { arguments, .. } = &iter.kind else { return false };
    matches!(target.kind, ExprKind::Name) && arguments.len() != 1 && made_by(cursor, iter) == Some("grid")
}

/// Returns the name of the called form without its namespace: `axis.spatial` for `T.axis.spatial(…)`. Any namespace
/// is accepted.
pub(super) fn made_by<'t>(cursor: Cursor<'t>, value: &Expr) -> Option<&'t str> {
    let ExprKind::Call { callee, .. } = &value.kind else { return None };
    Some(cursor.path(callee.tokens).split_once('.')?.1)
}

/// Whether a buffer type has the syntax of TVM before 0.12: `T.Buffer[(16, 16), "float32"]`.
fn is_bracketed_buffer(cursor: Cursor<'_>, annotation: &Expr) -> bool {
    matches!(&annotation.kind, ExprKind::Subscript { value, .. } if cursor.path(value.tokens).ends_with(".Buffer"))
}

impl Walk<'_> {
    /// Checks `value` in `value[…]`: reports the name of a scalar, and a name that is no value ([`Walk::is_no_value`])
    /// unless it may be subscripted ([`GENERIC`]).
    pub(super) fn subscripted(&mut self, cursor: Cursor<'_>, value: &Expr) {
        let ExprKind::Name = value.kind else { return };
        let name = cursor.name(value.tokens.start);
        if self.kinds.scalars.contains(&name) {
            self.wrong_kind(cursor, value, format!("`{name}` is a scalar, it has no elements"));
        } else if !GENERIC.contains(&name.as_str()) && self.is_no_value(name) {
            self.wrong_kind(cursor, value, format!("`{name}` is no value"));
        }
    }

    /// Checks an index, an operand of arithmetic or a stored value: reports a buffer, a name that is no value
    /// ([`Walk::is_no_value`]), and a dtype that is called without a value, such as `T.int64()`.
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
            _ => self.without_value(cursor, value),
        }
    }

    /// Checks the arguments of `T.f(…)`: reports a dtype that is called without a value, such as `T.int64()`. Allows it
    /// in the header and in calls such as `T.match_buffer`, where it may declare a symbol or be a type.
    pub(super) fn argument_values(&mut self, cursor: Cursor<'_>, callee: &Expr, arguments: &[Argument]) {
        let Some(function) = self.tir_function(cursor, callee) else { return };
        if !self.in_header && !DECLARING.contains(&function) && !function.starts_with("alloc") {
            for argument in arguments {
                self.without_value(cursor, &argument.value);
            }
        }
    }

    /// Returns the name of a function of `T` without the namespace.
    pub(super) fn tir_function<'t>(&self, cursor: Cursor<'t>, callee: &Expr) -> Option<&'t str> {
        let (head, function) = cursor.path(callee.tokens).split_once('.')?;
        (self.file.namespace(head) == Some(Namespace::Tir)).then_some(function)
    }

    /// Reports a dtype that is called without a value, such as `T.int64()`, also inside lists, tuples and parentheses.
    fn without_value(&mut self, cursor: Cursor<'_>, value: &Expr) {
        match &value.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                items.iter().for_each(|item| self.without_value(cursor, item));
            }
            ExprKind::Parenthesized(inner) => self.without_value(cursor, inner),
            ExprKind::Call { callee, arguments } if arguments.is_empty() && self.is_dtype(cursor, callee) => {
                let message = format!("`{}` has no value here", cursor.source(value.tokens));
                let place = ItemPlace::Segment(self.segment, cursor.span(value.tokens));
                let found = Diagnostic::new(Code::MissingArgument, place, message);
                self.found.push(found.with_help("it declares a variable, which nothing gives a value"));
            }
            _ => {}
        }
    }

    /// Whether an expression is a dtype such as `T.int64`, whose call without a value declares a variable.
    pub(super) fn is_dtype(&self, cursor: Cursor<'_>, callee: &Expr) -> bool {
        let Some((head, member)) = cursor.path(callee.tokens).split_once('.') else { return false };
        member != "handle" && DType::parse(member).is_some() && self.file.namespace(head) == Some(Namespace::Tir)
    }

    /// Checks that a dtype is called with at most one value, as in `T.int64(1)`.
    pub(super) fn dtype_call(&mut self, cursor: Cursor<'_>, call: &Expr, callee: &Expr, arguments: &[Argument]) {
        let positional = arguments.iter().filter(|argument| argument.keyword.is_none()).count();
        if positional > 1 && self.is_dtype(cursor, callee) {
            let message = format!("{}: takes one value, more are passed", cursor.path(callee.tokens));
            self.mistake(Code::TooManyArguments, cursor.span(call.tokens), message);
        }
    }

    /// Whether a name refers to a namespace, a name of Python such as `range`, or another item of the file, and to
    /// nothing that the function or file binds as a value.
    fn is_no_value(&self, name: Name) -> bool {
        let file = self.file;
        let hidden = self.anywhere.contains(&name) || file.symbols.contains(&name) || file.captured.contains(&name);
        !hidden && (file.namespace(&name).is_some() || BUILTINS.contains(&name.as_str()) || file.items.contains(&name))
    }

    fn wrong_kind(&mut self, cursor: Cursor<'_>, value: &Expr, message: String) {
        self.mistake(Code::ArgumentType, cursor.span(value.tokens), message);
    }
}
