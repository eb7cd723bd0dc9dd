//! Names in prim_funcs: each is bound somewhere in the function or known to the file.
//!
//! TVM's scopes end with their blocks; here a name counts as bound in the whole function, as in Python. So nothing TVM reads
//! is reported.

mod members;

use crate::elaborate::{captured_diagnostic, suggest};
use crate::file_context::{FileContext, Namespace, python_names};
use crate::function::ItemPlace;
use rx_base::edit_distance::nearest;
use rx_base::name::NameSet;
use rx_base::{Code, Diagnostic, Name, Span};
use rx_syntax::ast::{Expr, ExprKind, StatementKind, TokenIndex, TokenRange};
use rx_syntax::{Cursor, Segment};
use std::sync::Arc;

/// Python's own names that TVM's parser evaluates.
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

/// The names of a prim_func that nothing binds, each reported where it is first used; captured ones as warnings.
pub fn unbound_names(segments: &[Arc<Segment>], file: &FileContext) -> Vec<Diagnostic<ItemPlace>> {
    let mut walk =
        Walk { file, bound: python_names(segments), seen: NameSet::default(), segment: 0, found: Vec::new() };
    for (at, segment) in segments.iter().enumerate() {
        walk.segment = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            walk.statement(segment.cursor(statement), &statement.tree.kind);
        }
    }
    walk.found
}

struct Walk<'a> {
    file: &'a FileContext,
    bound: NameSet,
    seen: NameSet,
    segment: u32,
    found: Vec<Diagnostic<ItemPlace>>,
}

impl Walk<'_> {
    fn statement(&mut self, cursor: Cursor<'_>, kind: &StatementKind) {
        match kind {
            StatementKind::Def { type_params, params, ret, .. } => {
                self.bound.extend(type_params.iter().map(|token| cursor.name(*token)));
                for param in params {
                    let own = cursor.parameter(param);
                    let parts = param.tree.annotation.iter().chain(&param.tree.default);
                    parts.for_each(|part| self.expr(own, part));
                }
                ret.iter().for_each(|ret| self.expr(cursor, ret));
            }
            StatementKind::Assign { targets, value } => {
                self.expr(cursor, value);
                targets.iter().for_each(|target| self.expr(cursor, target));
            }
            StatementKind::AnnAssign { target, annotation, value } => {
                self.expr(cursor, annotation);
                value.iter().for_each(|value| self.expr(cursor, value));
                self.expr(cursor, target);
            }
            StatementKind::AugAssign { target, value, .. } => {
                self.expr(cursor, target);
                self.expr(cursor, value);
            }
            StatementKind::For { iter, .. } => self.expr(cursor, iter),
            StatementKind::With(items) => items.iter().for_each(|item| self.expr(cursor, &item.context)),
            StatementKind::Assert { test, message } => {
                self.expr(cursor, test);
                message.iter().for_each(|message| self.expr(cursor, message));
            }
            StatementKind::Expr(expr)
            | StatementKind::Return(Some(expr))
            | StatementKind::While(expr)
            | StatementKind::If(expr)
            | StatementKind::Elif(expr) => self.expr(cursor, expr),
            _ => {}
        }
    }

    fn expr(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name => self.name(cursor.name(expr.tokens.start), cursor.span(expr.tokens)),
            ExprKind::Attribute { value, name } => {
                self.member(cursor, value, *name);
                self.expr(cursor, value);
            }
            ExprKind::Parenthesized(value) | ExprKind::Unary(_, value) | ExprKind::Starred { value, .. } => {
                self.expr(cursor, value)
            }
            ExprKind::Subscript { value, index } | ExprKind::Binary(_, value, index) => {
                self.expr(cursor, value);
                self.expr(cursor, index);
            }
            ExprKind::Call { callee, arguments } => {
                self.expr(cursor, callee);
                arguments.iter().for_each(|argument| self.expr(cursor, &argument.value));
            }
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Set(items) | ExprKind::Bool2(_, items) => {
                items.iter().for_each(|item| self.expr(cursor, item));
            }
            ExprKind::Dict(entries) => {
                entries
                    .iter()
                    .flat_map(|(key, value)| key.iter().chain([value]))
                    .for_each(|part| self.expr(cursor, part));
            }
            ExprKind::Slice { lower, upper, step } => {
                [lower, upper, step].into_iter().flatten().for_each(|part| self.expr(cursor, part));
            }
            ExprKind::Compare(first, rest) => {
                self.expr(cursor, first);
                rest.iter().for_each(|(_, operand)| self.expr(cursor, operand));
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
            _ => {}
        }
    }

    /// `T.exq`, which nobody has.
    fn member(&mut self, cursor: Cursor<'_>, of: &Expr, member: TokenIndex) {
        let is_tir = matches!(of.kind, ExprKind::Name) && {
            let head = cursor.name(of.tokens.start);
            !self.bound.contains(&head) && self.file.namespace(&head) == Some(Namespace::Tir)
        };
        let Some(near) = is_tir.then(|| members::meant(cursor.text(member))).flatten() else { return };
        let span = cursor.span(TokenRange { start: member, end: member + 1 });
        let place = ItemPlace::Segment(self.segment, span);
        let (head, member) = (cursor.text(of.tokens.start), cursor.text(member));
        let message = format!("`{head}` has no `{member}`");
        self.found.push(suggest(
            Diagnostic::new(Code::UnknownOperator, place.clone(), message),
            near,
            vec![(place, near.to_owned())],
        ));
    }

    fn name(&mut self, used: Name, span: Span) {
        let file = self.file;
        let known = self.bound.contains(&used)
            || file.symbols.contains(&used)
            || file.modules.contains(&used)
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
        let diagnostic = Diagnostic::new(Code::UndefinedName, place.clone(), format!("`{used}` is not defined"));
        let mut bound: Vec<&str> = self.bound.iter().map(|name| name.as_str()).collect();
        bound.sort_unstable();
        self.found.push(match nearest(&used, bound) {
            Some(near) => suggest(diagnostic, near, vec![(place, near.to_owned())]),
            None => diagnostic,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::unbound_names;
    use crate::FileContext;
    use rx_syntax::Segment;
    use std::sync::Arc;

    /// The messages for a prim_func below module text.
    fn found(module: &str, function: &str) -> Vec<String> {
        let mut file = FileContext::default();
        file.read(&Segment::new(module.into()));
        let segments = [Arc::new(Segment::new(function.into()))];
        let found = unbound_names(&segments, &file);
        found
            .iter()
            .map(|found| format!("{}: {}", found.severity, found.message.split(" that").next().unwrap_or_default()))
            .collect()
    }

    #[test]
    fn names_bound_anywhere_in_the_function_or_by_the_file_are_known() {
        let module = "from tvm.script import tirx as TX\nfrom tvm.tirx import layout\nn = TypeVar(\"n\")\n";
        let function = "def f(A: T.Buffer((n, 4), \"float32\"), b: T.handle):\n    B = TX.match_buffer(b, (n, layout.size))\n    \
                        for i, j in T.grid(n, 4):\n        with T.sblock(\"B\") as block:\n            v = T.axis.spatial(4, i)\n            \
                        B[v, j] = T.comm_reducer(lambda x, y: x + y)(A[v, j], len(block))\n    T.evaluate(v)\n";
        assert_eq!(found(module, function), Vec::<String>::new());
    }

    #[test]
    fn others_are_reported_once() {
        let function =
            "def f(A: T.Buffer((M,), \"float32\")):\n    for i in range(M):\n        A[i] = A[k] + A[k] + Aa[i]\n";
        assert_eq!(
            found("M = 128\n", function),
            ["warning: `M` is a Python value", "error: `k` is not defined", "error: `Aa` is not defined"]
        );
    }
}
