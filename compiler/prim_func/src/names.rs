//! Name resolution in prim_funcs: reports names that are neither bound by an earlier statement nor known to the file,
//! for example by an import.
//!
//! In TVM's parser, a binding is visible until its block ends. Here it is visible in all later statements, as in
//! Python. The translation to loops (see [`reader`](crate::reader)) reports the uses after the block, except those in
//! `T.reads` and `T.writes`, which it ignores. These are reported here (`scopes`).
//!
//! The same walk checks calls against signatures (`arity`), the forms of `T` (`forms`), and buffers against scalars
//! (`kinds`).

mod arity;
mod attributes;
mod declare;
mod forms;
mod kinds;
pub mod members;
mod nest;
mod scopes;

use crate::functions::in_order;
use rx_base::edit_distance::nearest;
use rx_base::name::NameSet;
use rx_base::{Code, Diagnostic, Name, Span};
use rx_context::file_context::{bind_names, python_names};
use rx_context::mistakes::{captured_diagnostic, suggest_in_place};
use rx_context::{FileContext, ItemPlace, Namespace, macros};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind, TokenIndex, TokenRange};
use rx_syntax::{Cursor, Segments, Statement};

/// Names of Python and of the usual imports that TVM's parser can evaluate.
const BUILTINS: &[&str] = &[
    "range",
    "len",
    "min",
    "max",
    "abs",
    "sum",
    "int",
    "float",
    "bool",
    "str",
    "slice",
    "list",
    "tuple",
    "dict",
    "set",
    "zip",
    "enumerate",
    "sorted",
    "reversed",
    "all",
    "any",
    "map",
    "filter",
    "round",
    "divmod",
    "pow",
    "print",
    "type",
    "isinstance",
    "getattr",
    "hasattr",
    "metadata",
    "tvm",
    "Tx",
    "Axis",
    "TypeVar",
];

/// Whether a name is one of Python or of the usual imports that TVM's parser can evaluate, such as `range` or `tvm`.
pub fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

/// Reports the names of a prim_func that nothing binds before their use, each once. Names that the kernel captures from
/// surrounding Python code are warnings. Also runs the other checks of this module, for example of calls of `T.`
/// functions.
pub fn unbound_names(segments: &Segments, file: &FileContext) -> Vec<Diagnostic<ItemPlace>> {
    names(segments, file, None)
}

/// Does the same as [`unbound_names`] for a macro. The free names of a macro that is not hygienic are resolved in its
/// callers, so they are not reported.
pub fn of_macro(segments: &Segments, file: &FileContext) -> Vec<Diagnostic<ItemPlace>> {
    let hygienic = macros::of_item(segments).hygienic;
    let mut found = names(segments, file, Some(0));
    found.retain(|it| hygienic || !matches!(it.code, Code::UndefinedName | Code::CapturedPythonName));
    found
}

fn names(segments: &Segments, file: &FileContext, macro_from: Option<u32>) -> Vec<Diagnostic<ItemPlace>> {
    let mut walk = Walk {
        file,
        bound: NameSet::default(),
        in_header: false,
        anywhere: python_names(segments),
        seen: NameSet::default(),
        out_of_reach: NameSet::default(),
        segment: 0,
        stated: Vec::new(),
        attributes: Vec::new(),
        kinds: kinds::Kinds::default(),
        nest: nest::Nest::default(),
        scopes: scopes::Scopes::default(),
        without_blocks: None,
        macro_from,
        found: Vec::new(),
    };
    for (at, segment) in segments.iter().enumerate() {
        walk.segment = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            walk.enter_macro(cursor, statement);
            walk.nest.enter(cursor, statement);
            walk.scopes.enter(cursor, statement);
            let found = walk.found.len();
            walk.statement(cursor, &statement.tree.kind);
            walk.offer_declarations(found, segment, statement);
            walk.scopes.bind(cursor, statement);
            walk.forms(cursor, &in_order(cursor, file, &statement.tree.kind), statement.indent);
            walk.kinds.bind(cursor, &statement.tree.kind);
            walk.nest.leave(cursor, statement);
        }
    }
    walk.found
}

/// One pass over the statements of a prim_func or macro, in source order.
struct Walk<'a> {
    file: &'a FileContext,
    /// The names bound so far.
    bound: NameSet,
    /// Whether the walk is in the function's header. Types in the header may use names that the body binds.
    in_header: bool,
    /// All names that the function binds anywhere.
    anywhere: NameSet,
    /// The names reported so far, except those in `out_of_reach`.
    seen: NameSet,
    /// The loop variables that were reported as used in a block that does not see them.
    out_of_reach: NameSet,
    /// The index of the current segment.
    segment: u32,
    /// The forms and names that may occur once in a block, with the level of their statement: `T.reads`, `T.writes`,
    /// axes and buffers of `T.sblock_alloc_buffer`.
    stated: Vec<(forms::Level, Name)>,
    /// The attributes that the function and the open blocks have set so far.
    attributes: Vec<attributes::Attribute>,
    kinds: kinds::Kinds,
    nest: nest::Nest,
    scopes: scopes::Scopes,
    /// The span of the `False` in `s_tir=False`; taken when a block contradicts it.
    without_blocks: Option<Span>,
    /// The least column that a statement of the current macro can have: one more than the column of its decorator, or 0
    /// if the whole item is a macro. A statement further left, except its `def`, ends the macro. `None` outside macros.
    macro_from: Option<u32>,
    found: Vec<Diagnostic<ItemPlace>>,
}

/// Returns the span of the `False` in `@T.prim_func(s_tir=False)`.
fn without_blocks(cursor: Cursor<'_>, decorator: &Expr) -> Option<Span> {
    let ExprKind::Call { arguments, .. } = &decorator.kind else { return None };
    let is_flag = |argument: &&Argument| argument.keyword.is_some_and(|keyword| cursor.text(keyword) == "s_tir");
    let flag = arguments.iter().find(is_flag).filter(|flag| flag.value.kind == ExprKind::Bool(false))?;
    Some(cursor.span(flag.value.tokens))
}

impl Walk<'_> {
    /// Tracks where macros defined inside the function begin and end. The loops and blocks around a macro's
    /// statements are known only at its calls.
    fn enter_macro(&mut self, cursor: Cursor<'_>, statement: &Statement) {
        let column = statement.indent + u32::from(statement.inline);
        let is_def = matches!(statement.tree.kind, StatementKind::Def { .. });
        // The `def` is in the same column as its decorator.
        self.macro_from = self.macro_from.filter(|least| column >= *least || is_def && column + 1 == *least);
        if let StatementKind::Decorator(decorator) = &statement.tree.kind
            && self.macro_from.is_none()
            && macros::makes_macro(cursor, self.file, decorator)
        {
            self.macro_from = Some(statement.indent + 1);
        }
    }

    fn statement(&mut self, cursor: Cursor<'_>, kind: &StatementKind) {
        match kind {
            StatementKind::Def { type_params, params, ret, .. } => {
                self.in_header = true;
                bind_names(cursor, kind, &mut self.bound);
                self.bound.extend(type_params.iter().map(|token| cursor.name(*token)));
                for param in params {
                    let own = cursor.parameter(param);
                    let parts = param.tree.annotation.iter().chain(&param.tree.default);
                    parts.for_each(|part| self.expr(own, part));
                    self.kinds.parameter(own, param);
                }
                ret.iter().for_each(|ret| self.expr(cursor, ret));
                self.in_header = false;
            }
            StatementKind::Assign { targets, value } => {
                if targets.iter().any(|target| matches!(target.kind, ExprKind::Subscript { .. })) {
                    self.operand(cursor, value);
                }
                self.expr(cursor, value);
                bind_names(cursor, kind, &mut self.bound);
                targets.iter().for_each(|target| self.expr(cursor, target));
            }
            StatementKind::AnnAssign { target, annotation, value } => {
                self.annotation(cursor, annotation);
                value.iter().for_each(|value| self.expr(cursor, value));
                bind_names(cursor, kind, &mut self.bound);
                self.expr(cursor, target);
            }
            StatementKind::AugAssign { target, value, .. } => {
                self.expr(cursor, target);
                self.expr(cursor, value);
            }
            StatementKind::For { iter, .. } => {
                self.expr(cursor, iter);
                bind_names(cursor, kind, &mut self.bound);
            }
            StatementKind::With(items) => {
                items.iter().for_each(|item| self.expr(cursor, &item.context));
                bind_names(cursor, kind, &mut self.bound);
            }
            StatementKind::Assert { test, message } => {
                self.expr(cursor, test);
                message.iter().for_each(|message| self.expr(cursor, message));
            }
            StatementKind::Decorator(decorator) => self.without_blocks = without_blocks(cursor, decorator),
            StatementKind::Expr(expr)
            | StatementKind::Return(Some(expr))
            | StatementKind::While(expr)
            | StatementKind::If(expr)
            | StatementKind::Elif(expr) => self.expr(cursor, expr),
            _ => bind_names(cursor, kind, &mut self.bound),
        }
    }

    /// Walks the type of a variable. `T.int32()` in a subscript of the type is a type and not a missing value.
    fn annotation(&mut self, cursor: Cursor<'_>, annotation: &Expr) {
        match &annotation.kind {
            ExprKind::Subscript { value, index } => {
                self.expr(cursor, value);
                self.expr(cursor, index);
            }
            _ => self.expr(cursor, annotation),
        }
    }

    fn expr(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name => self.name(cursor.name(expr.tokens.start), cursor.span(expr.tokens)),
            ExprKind::Attribute { value, name } => {
                self.member(cursor, value, *name);
                self.expr(cursor, value);
            }
            ExprKind::Subscript { value, index } => {
                self.subscripted(cursor, value);
                self.operand(cursor, index);
                self.expr(cursor, value);
                self.expr(cursor, index);
            }
            ExprKind::Binary(_, left, right) => {
                for operand in [left, right] {
                    self.operand(cursor, operand);
                    self.expr(cursor, operand);
                }
            }
            ExprKind::Call { callee, arguments } => {
                self.dtype_call(cursor, expr, callee, arguments);
                self.wrong_calls(cursor, expr);
                self.argument_values(cursor, callee, arguments);
                self.expr(cursor, callee);
                arguments.iter().for_each(|argument| self.expr(cursor, &argument.value));
            }
            ExprKind::Conditional { then, test, otherwise } => {
                [test, then, otherwise].into_iter().for_each(|part| self.expr(cursor, part));
            }
            ExprKind::Lambda { params, body } => {
                self.bound.extend(params.iter().filter_map(|param| Some(cursor.name(param.tree.name?))));
                self.expr(cursor, body);
            }
            ExprKind::Walrus { name, value } => {
                self.bound.insert(cursor.name(*name));
                self.expr(cursor, value);
            }
            _ => expr.children().into_iter().for_each(|part| self.expr(cursor, part)),
        }
    }

    /// Reports unknown members: `T.exq`, which no release of TVM has, and `T.float32.exp`, since a dtype has no
    /// members.
    fn member(&mut self, cursor: Cursor<'_>, of: &Expr, member: TokenIndex) {
        if matches!(of.kind, ExprKind::Attribute { .. }) && self.is_dtype(cursor, of) {
            let span = cursor.span(TokenRange::one(member));
            let message = format!("`{}` is a dtype, it has no `{}`", cursor.source(of.tokens), cursor.text(member));
            self.mistake(Code::UnknownOperator, span, message);
            return;
        }
        let is_tir = matches!(of.kind, ExprKind::Name) && {
            let head = cursor.name(of.tokens.start);
            !self.bound.contains(&head) && self.file.namespace(&head) == Some(Namespace::Tir)
        };
        // The Python module `tirx` (formerly `tir`) has more members than the namespace `T`.
        let is_module = matches!(cursor.text(of.tokens.start), "tir" | "tirx");
        let text = cursor.text(member);
        if !is_tir || members::is_member(text) || (is_module && members::is_module_member(text)) {
            return;
        }
        let span = cursor.span(TokenRange::one(member));
        let place = ItemPlace::Segment(self.segment, span);
        let (head, member) = (cursor.text(of.tokens.start), cursor.text(member));
        let diagnostic = Diagnostic::new(Code::UnknownOperator, place, format!("`{head}` has no `{member}`"));
        self.found.push(suggest_in_place(diagnostic, members::meant(member)));
    }

    fn name(&mut self, used: Name, span: Span) {
        let file = self.file;
        if self.macro_from.is_none() && self.nest.is_out_of_reach(used) && self.out_of_reach.insert(used) {
            let message = format!("the loop variable `{used}` is outside the block, which has its own axes");
            let report = Diagnostic::new(Code::UndefinedName, ItemPlace::Segment(self.segment, span), message);
            self.found.push(report.with_help("use the axis that `T.axis` binds to it"));
        }
        if self.scopes.is_gone(used) && self.seen.insert(used) {
            let message = format!("`{used}` is used after the block that binds it");
            let report = Diagnostic::new(Code::UndefinedName, ItemPlace::Segment(self.segment, span), message);
            self.found.push(report.with_help("a block reads and writes at its own axes"));
            return;
        }
        let known = self.bound.contains(&used)
            || self.in_header && self.anywhere.contains(&used)
            || file.symbols.contains(&used)
            || file.modules.contains(&used)
            || file.macros.contains_key(&used)
            || file.api.contains(&used)
            || file.items.contains(&used)
            || file.namespace(&used).is_some()
            || BUILTINS.contains(&used.as_str());
        if known || !self.seen.insert(used) {
            return;
        }
        let place = ItemPlace::Segment(self.segment, span);
        if file.captured.contains(&used) {
            self.found.push(captured_diagnostic(used, place));
            return;
        }
        if self.anywhere.contains(&used) {
            let message = format!("`{used}` is used before it is bound");
            self.found.push(Diagnostic::new(Code::UndefinedName, place, message));
            return;
        }
        let diagnostic = Diagnostic::new(Code::UndefinedName, place, format!("`{used}` is not defined"));
        let mut bound: Vec<&str> = self.bound.iter().map(|name| name.as_str()).collect();
        bound.sort_unstable();
        self.found.push(suggest_in_place(diagnostic, nearest(&used, bound)));
    }
}
