//! Checks of the forms of `T`: the number of arguments and variables, forms outside a block, and forms that a block may
//! contain only once.

use super::Walk;
use crate::functions::mistakes;
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Code, Diagnostic, Span, counted};
use rx_context::mistakes::{suggest, suggest_in_place};
use rx_context::{ItemPlace, Namespace};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind, TokenRange};

/// Forms that describe the enclosing block.
const BLOCK_FORMS: &[&str] = &["reads", "writes", "where", "init", "sblock_attr", "block_attr"];

/// Decorators and namespaces of `T`, whose calls are not statements.
const NO_STATEMENTS: &[&str] =
    &["prim_func", "macro", "inline", "meta_class", "s_tir", "ptx", "cuda", "nvshmem", "metal"];

/// The members of `T.axis`.
const AXES: &[&str] = &["spatial", "reduce", "scan", "opaque", "remap", "S", "R"];

/// The position of a statement in its function. The column alone does not tell blocks apart: a block on the line of its
/// header has the column of the statements around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    /// The number of open blocks.
    blocks: usize,
    column: u32,
}

impl Level {
    /// Whether a statement here is in the block, and in the `for` or `if`, of an earlier statement at `outer`.
    fn is_within(self, outer: Level) -> bool {
        outer.blocks <= self.blocks && outer.column <= self.column
    }
}

impl Walk<'_> {
    /// Checks the forms in a statement at column `indent`; `kind` is the statement after
    /// [`in_order`](crate::functions::in_order).
    pub(super) fn forms(&mut self, cursor: Cursor<'_>, kind: &StatementKind, indent: u32) {
        let level = Level { blocks: self.nest.blocks(), column: indent };
        self.stated.retain(|(stated, _)| level.is_within(*stated));
        self.attributes.retain(|stated| level.is_within(stated.level));
        match kind {
            StatementKind::With(items) => {
                for item in items {
                    self.form(cursor, &item.context);
                }
            }
            StatementKind::Expr(value) => {
                if let Some((form, arguments)) = self.form(cursor, value) {
                    if NO_STATEMENTS.contains(&form) {
                        let message = format!("`{}` is no statement", cursor.source(value.tokens));
                        self.mistake(Code::MisplacedStatement, cursor.span(value.tokens), message);
                    }
                    self.statement_once(cursor, form, arguments, level, cursor.span(value.tokens));
                }
            }
            StatementKind::Assign { targets, value } => {
                let Some((form, arguments)) = self.form(cursor, value) else { return };
                let [target] = &targets[..] else { return };
                if form == "axis.remap" {
                    self.remap(cursor, target, arguments);
                }
                if form.starts_with("axis.") || form == "sblock_alloc_buffer" {
                    self.bound_once(cursor, target, level);
                }
            }
            StatementKind::For { target, iter } => self.grid(cursor, target, iter),
            _ => {}
        }
    }

    /// Matches `T.form(…)` and returns the form's name and arguments. Reports unknown axes and, except in macros, axes
    /// and block forms outside a block. Checks `T.sblock`.
    fn form<'e, 't>(&mut self, cursor: Cursor<'t>, call: &'e Expr) -> Option<(&'t str, &'e [Argument])> {
        let ExprKind::Call { callee, arguments } = &call.kind else { return None };
        let (head, form) = cursor.path(callee.tokens).split_once('.')?;
        if self.file.namespace(head) != Some(Namespace::Tir) {
            return None;
        }
        if let Some(axis) = form.strip_prefix("axis.")
            && !AXES.contains(&axis)
        {
            self.unknown_axis(cursor, callee, head, axis);
        }
        if (BLOCK_FORMS.contains(&form) || form.starts_with("axis."))
            && !self.nest.is_in_block()
            && self.macro_from.is_none()
        {
            let message = format!("`{head}.{form}` is outside a block");
            self.mistake(Code::MisplacedStatement, cursor.span(call.tokens), message);
        }
        if matches!(form, "sblock" | "block") {
            self.block(cursor, head, form, arguments);
        }
        Some((form, arguments))
    }

    /// Reports a kind of axis that does not exist, such as `T.axis.spatail`.
    fn unknown_axis(&mut self, cursor: Cursor<'_>, callee: &Expr, head: &str, axis: &str) {
        let segment = self.segment;
        let place = |tokens: TokenRange| ItemPlace::Segment(segment, cursor.span(tokens));
        let message = format!("`{head}.axis` has no `{axis}`");
        let mut diagnostic = Diagnostic::new(Code::UnknownOperator, place(callee.tokens), message);
        if let (Some(near), ExprKind::Attribute { name, .. }) = (nearest(axis, AXES.iter().copied()), &callee.kind) {
            let edits = vec![(place(TokenRange::one(*name)), near.to_owned())];
            diagnostic = suggest(diagnostic, near, edits);
        }
        self.found.push(diagnostic);
    }

    /// Checks `T.sblock("name")`: it takes one name, and the function may not be declared `s_tir=False`.
    fn block(&mut self, cursor: Cursor<'_>, head: &str, form: &str, arguments: &[Argument]) {
        let is_plain = |argument: &&Argument| argument.keyword.is_none();
        if let Some(second) = arguments.get(1).filter(is_plain)
            && matches!(second.value.kind, ExprKind::String)
        {
            let message = format!("{head}.{form}: takes one name, more are passed");
            self.mistake(Code::TooManyArguments, cursor.span(second.value.tokens), message);
        }
        if let Some(first) = arguments.first().filter(is_plain)
            && matches!(first.value.kind, ExprKind::Subscript { .. } | ExprKind::Integer | ExprKind::Float)
        {
            let message = format!("{head}.{form}: a name is wanted, this is `{}`", cursor.source(first.value.tokens));
            self.mistake(Code::ArgumentType, cursor.span(first.value.tokens), message);
        }
        if let Some(flag) = self.without_blocks.take() {
            let message = "`s_tir=False` says a function without blocks, and this one has blocks".to_owned();
            let place = ItemPlace::Segment(0, flag);
            let report = Diagnostic::new(Code::UnsupportedConstruct, place, message);
            self.found.push(suggest_in_place(report, Some("True")));
        }
    }

    /// Reports a second `T.reads` or `T.writes` in a block and a `T.func_attr` of a literal that is no dictionary.
    /// Checks and records the attributes of the function or block.
    fn statement_once(&mut self, cursor: Cursor<'_>, form: &str, arguments: &[Argument], level: Level, span: Span) {
        if matches!(form, "reads" | "writes") && !self.first_time(form, level) {
            self.mistake(Code::MisplacedStatement, span, format!("the block has a `T.{form}` already"));
        }
        let Some(first) = arguments.first() else { return };
        let ExprKind::Dict(entries) = &first.value.kind else {
            use ExprKind::{Bool, Float, Integer, List, None, String, Tuple};
            let is_other = matches!(first.value.kind, Bool(_) | Float | Integer | List(_) | None | String | Tuple(_));
            if form == "func_attr" && is_other {
                let place = cursor.span(first.value.tokens);
                self.mistake(Code::AttrType, place, "`T.func_attr` takes a dictionary".to_owned());
            }
            return;
        };
        match form {
            "func_attr" => self.state_attributes(cursor, false, entries, level),
            "sblock_attr" | "block_attr" => self.state_attributes(cursor, true, entries, level),
            _ => {}
        }
    }

    /// Reports an axis or buffer that is bound twice in the same block.
    fn bound_once(&mut self, cursor: Cursor<'_>, target: &Expr, level: Level) {
        let names = match &target.kind {
            ExprKind::Tuple(names) => names.as_slice(),
            _ => std::slice::from_ref(target),
        };
        for name in names.iter().filter(|name| matches!(name.kind, ExprKind::Name)) {
            let text = cursor.text(name.tokens.start);
            if !self.first_time(&format!("= {text}"), level) {
                let message = format!("`{text}` is bound in this block already");
                self.mistake(Code::DuplicateDefinition, cursor.span(name.tokens), message);
            }
        }
    }

    /// Records a form or binding of the block with statements at `level`; returns whether it is the first of its kind
    /// in the block.
    fn first_time(&mut self, form: &str, level: Level) -> bool {
        let form = name(form);
        let is_first = !self.stated.contains(&(level, form));
        self.stated.push((level, form));
        is_first
    }

    /// Checks `i, j = T.axis.remap("SR", [a, b])`: the order of the arguments, and that the numbers of letters, loops
    /// and variables agree.
    fn remap(&mut self, cursor: Cursor<'_>, target: &Expr, arguments: &[Argument]) {
        let [kinds, loops, rest @ ..] = arguments else { return };
        let is_list = |value: &Expr| matches!(value.kind, ExprKind::List(_) | ExprKind::Tuple(_));
        if is_list(&kinds.value) || rest.first().is_some_and(|dtype| is_list(&dtype.value)) {
            let message = "T.axis.remap: takes letters, the loops, and a dtype, in this order".to_owned();
            self.mistake(Code::ArgumentType, cursor.span(target.tokens), message);
            return;
        }
        let (Some(kinds), ExprKind::List(loops) | ExprKind::Tuple(loops)) =
            (cursor.string_value(&kinds.value), &loops.value.kind)
        else {
            return;
        };
        let named = kinds.chars().count();
        let span = cursor.span(target.tokens);
        if named != loops.len() {
            let message =
                format!("T.axis.remap: \"{kinds}\" names {}, {} are bound", counted(named, "axis"), loops.len());
            self.mistake(Code::MisplacedStatement, span, message);
        } else if let ExprKind::Tuple(targets) = &target.kind
            && targets.len() != named
        {
            let message =
                format!("T.axis.remap: \"{kinds}\" makes {}, {} are named", counted(named, "axis"), targets.len());
            self.mistake(Code::MisplacedStatement, span, message);
        }
    }

    /// Checks that the extents of a loop have values and, in `for i, j in T.grid(a, b)`, that the numbers of variables
    /// and extents agree.
    fn grid(&mut self, cursor: Cursor<'_>, target: &Expr, iter: &Expr) {
        if let ExprKind::Call { callee, arguments } = &iter.kind {
            // The signatures report `T.serial()`, which lacks a required argument. `T.grid()` satisfies its signature,
            // and `range` has none.
            if arguments.is_empty() && mistakes(cursor, self.file, iter).is_empty() {
                let message = format!("`{}` has no extent", cursor.path(callee.tokens));
                self.mistake(Code::MissingArgument, cursor.span(iter.tokens), message);
            }
            for argument in arguments.iter().filter(|argument| argument.keyword.is_none()) {
                let ExprKind::Call { callee: inner, arguments } = &argument.value.kind else { continue };
                // `argument_values` reports a dtype without a value, such as `T.int64()`, in a call of a `T.` function.
                let is_known = self.is_dtype(cursor, inner) && self.tir_function(cursor, callee).is_some();
                if arguments.is_empty() && !is_known {
                    let message = format!("`{}` has no value", cursor.source(argument.value.tokens));
                    self.mistake(Code::MissingArgument, cursor.span(argument.value.tokens), message);
                }
            }
        }
        let Some(("grid", arguments)) = self.form(cursor, iter) else { return };
        let ExprKind::Tuple(targets) = &target.kind else { return };
        let is_open = |value: &Expr| matches!(value.kind, ExprKind::Starred { .. });
        if targets.iter().any(is_open) || arguments.iter().any(|argument| is_open(&argument.value)) {
            return;
        }
        let extents = arguments.iter().filter(|argument| argument.keyword.is_none()).count();
        if targets.len() != extents {
            let (variables, extents) = (counted(targets.len(), "variable"), counted(extents, "extent"));
            let message = format!("the loop has {variables}, `T.grid` has {extents}");
            self.mistake(Code::MisplacedStatement, cursor.span(target.tokens), message);
        }
    }

    pub(super) fn mistake(&mut self, code: Code, span: Span, message: String) {
        self.found.push(Diagnostic::new(code, ItemPlace::Segment(self.segment, span), message));
    }
}
