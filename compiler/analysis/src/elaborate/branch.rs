//! Elaborates `if` statements and nested functions.
//!
//! An `if` is a value in Relax: every branch must bind the same variable last, and that variable gets a type that all
//! branches fit.
//!
//! ```text
//! if c:  y = R.zeros((2, 4), "float32")
//! else:  y = R.zeros((3, 4), "float32")
//! → y: R.Tensor(dtype="float32", ndim=2) after the `if`
//! ```

use super::elaborator::Elaborator;
use super::result::{Role, RowKind};
use crate::decorators::{decorator_mistakes, undecorated};
use crate::entry::{Entry, Place, mistake, replace_fix};
use crate::reconcile::{join, reconcile};

use rx_base::{Code, Fix, Name, Span};
use rx_ir::{Body, Expr as IrExpr, Known, Shape, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Expr, StatementKind};

/// The maximal number of failed conditions whose negations are recorded as facts in a later branch.
const MAX_CONDITIONS: usize = 8;

/// The maximal number of branches whose types are kept for a variable.
const MAX_BRANCH_TYPES: usize = 8;

/// The state at the end of a branch.
#[derive(Default)]
struct Ending {
    /// The variable that the last statement binds, its type, and the span of its name.
    variable: Option<(Name, StructInfo, Span)>,
    /// The known elements of the variable.
    values: Known,
    /// The variable's type at the end of each branch, and the span where it is bound there.
    branch_types: Vec<(StructInfo, Span)>,
}

impl<'a> Elaborator<'a> {
    /// Elaborates an `if` with its `elif`s and `else`; returns the index of the statement after them. A loop collects
    /// the arms, since recursion would be as deep as there are `elif`s.
    pub(super) fn branch(&mut self, at: usize, to: usize, cursor: Cursor<'a>, test: &Expr) -> usize {
        let segment = self.check.segment;
        let (mut at, mut cursor, mut test) = (at, cursor, test);
        let mut arms: Vec<(Span, Ending)> = Vec::new();
        let mut bodies: Vec<(IrExpr, Body)> = Vec::new();
        let mut failed: Vec<(Cursor<'a>, &Expr)> = Vec::new();
        let first = self.check.statement;
        let otherwise = loop {
            let Some(header) = self.check.statement_at(at) else { return to };
            if arms.is_empty() {
                self.no_branch_in_dataflow(header.span);
            }
            let condition = self.expr(cursor, test);
            self.check.used_for(Role::Condition, condition.span);
            self.check_condition(&condition);
            let end = self.block_end(at, to);
            let (ending, body) = self.one_branch(at + 1, end, &failed, Some((cursor, test)));
            if failed.len() < MAX_CONDITIONS {
                failed.push((cursor, test));
            }
            arms.push((header.span, ending));
            bodies.push((condition, body));
            at = end;
            let Some(next) = self.check.statement_at(end).filter(|next| end < to && next.indent == header.indent)
            else {
                break None;
            };
            match &next.tree.kind {
                StatementKind::Else => {
                    at = self.block_end(end, to);
                    break Some(self.one_branch(end + 1, at, &failed, None));
                }
                StatementKind::Elif(next_test) => (cursor, test) = (segment.cursor(next), next_test),
                _ => break None,
            }
        };
        let (mut ending, otherwise) = otherwise.unwrap_or_else(|| {
            let (span, last) = arms.pop().unwrap_or_default();
            self.missing_else(span, &last, at);
            (last, Body::default())
        });
        while let Some((span, then)) = arms.pop() {
            ending = self.merge(span, then, ending);
        }
        let variable = ending.variable.as_ref().map(|(variable, ty, _)| (*variable, ty.clone()));
        self.check.record_branches(first, bodies, otherwise, variable);
        if let Some((variable, ty, span)) = ending.variable {
            // If a branch contradicts the declared return type, the definition of the variable is placed in that
            // branch, so that the diagnostic points there.
            let span = self.check.unlike_return(&ending.branch_types).unwrap_or(span);
            let branch_types = ending.branch_types.iter().any(|(branch_type, _)| *branch_type != ty);
            let branch_types =
                branch_types.then(|| ending.branch_types.into_iter().map(|(branch_type, _)| branch_type).collect());
            self.check.define(variable, Entry::Value { ty, dataflow: None, values: ending.values, branch_types }, span);
        }
        at
    }

    fn no_branch_in_dataflow(&mut self, span: Span) {
        if self.check.state.dataflow.is_some() {
            let message = "an `if` is not allowed in a dataflow block";
            let report = mistake(Code::MisplacedStatement, Span::new(span.start, span.start + 2), message);
            self.check.report(report.with_help("end the dataflow block before it: dedent the `if`"));
        }
    }

    /// Reports an `if` without `else` at `span`. Statement `next` follows it, and `last` is the end of its last
    /// branch.
    fn missing_else(&mut self, span: Span, last: &Ending, next: usize) {
        let message = "an `if` in a Relax function is a value and needs an `else`";
        let mut diagnostic = mistake(Code::MissingElse, Span::new(span.start, span.start + 2), message)
            .with_help("add an `else:` that binds the same variable");
        diagnostic.fixes.extend(self.else_fix(span, last, next));
        self.check.report(diagnostic);
    }

    /// Returns the fix that adds the `else` that Python implies: the variable keeps its previous value.
    fn else_fix(&mut self, header: Span, last: &Ending, next: usize) -> Option<Fix<Place>> {
        let (variable, ty, _) = last.variable.as_ref()?;
        let Some(Entry::Value { ty: before, dataflow: None, .. }) = self.check.lookup(*variable) else { return None };
        if before.is_error() || reconcile(&before, ty, &self.check.bounds.clone()).clash.is_some() {
            return None;
        }
        let text = self.check.segment.text();
        let line = text.get(..header.range().start)?.rfind('\n').map_or(0, |at| at + 1);
        let indent = text.get(line..header.range().start).filter(|indent| indent.trim().is_empty())?;
        let end = self.check.statement_at(next.checked_sub(1)?)?.span.range().end;
        let end = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at);
        let place = Place::Here(Span::empty(u32::try_from(end).ok()?));
        let branch = format!("\n{indent}else:\n{indent}    {variable} = {variable}");
        Some(Fix { title: format!("add `else: {variable} = {variable}`"), edits: vec![(place, branch)], safe: true })
    }

    fn check_condition(&mut self, condition: &IrExpr) {
        let fits = match &condition.ty {
            StructInfo::Tensor(tensor) => {
                may_be_one_element(&tensor.shape) && tensor.dtype.is_none_or(|dtype| dtype.is_bool())
            }
            StructInfo::Prim(prim) => prim.dtype.is_none_or(|dtype| dtype.is_bool()),
            StructInfo::Object | StructInfo::Error => true,
            _ => false,
        };
        if !fits {
            let message = format!("the condition must be one boolean, it is {}", condition.ty);
            self.check.report(
                mistake(Code::ConditionType, condition.span, message)
                    .with_help("a condition is a `R.Tensor((), dtype=\"bool\")`"),
            );
        }
    }

    /// Elaborates the branch made of statements `from..to`, in which the conditions `failed` are false and `holds` is
    /// true.
    fn one_branch(
        &mut self,
        from: usize,
        to: usize,
        failed: &[(Cursor<'a>, &Expr)],
        holds: Option<(Cursor<'a>, &Expr)>,
    ) -> (Ending, Body) {
        let outer = self.check.begin_body();
        let known = self.check.bounds.clone();
        let saved = (self.check.state.returned, self.check.state.dataflow);
        let ended = std::mem::replace(&mut self.check.state.ended, false);
        self.check.push_scope(None);
        for (cursor, condition) in failed {
            self.refine_by_condition(*cursor, condition, false);
        }
        if let Some((cursor, condition)) = holds {
            self.refine_by_condition(cursor, condition, true);
        }
        let before = self.check.rows.len();
        self.block(from, to);
        let mut variable = self.last_binding(before);
        let (values, branch_types) = match variable.as_mut().map(|variable| (self.check.lookup(variable.0), variable)) {
            // The last row may belong to a nested `if`; the type of the variable after that `if` is in its entry.
            Some((Some(Entry::Value { ty, values, branch_types, .. }), variable)) => {
                variable.1 = ty;
                (values, branch_types)
            }
            _ => (None, None),
        };
        let branch_types = match (&variable, &branch_types) {
            (Some((.., span)), Some(branch_types)) => {
                branch_types.iter().map(|branch_type| (branch_type.clone(), *span)).collect()
            }
            (Some((_, ty, span)), None) => vec![(ty.clone(), *span)],
            (None, _) => Vec::new(),
        };
        if self.check.state.returned && !saved.0 {
            let place = (from..to)
                .filter_map(|at| self.check.statement_at(at))
                .find(|statement| matches!(statement.tree.kind, StatementKind::Return(_)))
                .map(|statement| statement.span);
            if let Some(place) = place {
                self.check.report(
                    mistake(Code::MisplacedStatement, place, "a branch cannot return from the function")
                        .with_help("bind the value in both branches and return it after the `if`"),
                );
            }
        }
        self.check.pop_scope();
        self.check.leave_block(&known);
        self.check.state.dataflow = saved.1;
        self.check.state.ended = ended;
        (Ending { variable, values, branch_types }, self.check.end_body(outer))
    }

    /// Returns the variable that the last row of a branch binds; `before` is the number of rows before the branch.
    fn last_binding(&self, before: usize) -> Option<(Name, StructInfo, Span)> {
        let row = self.check.rows.get(before..)?.iter().rev().find(|row| row.kind == RowKind::Binding)?;
        (row.name != "_").then(|| (row.name, row.ty.clone(), row.span))
    }

    /// Joins the ends of two branches, and reports branches that bind different variables.
    fn merge(&mut self, span: Span, then: Ending, otherwise: Ending) -> Ending {
        let variable = match (then.variable, otherwise.variable) {
            (Some((a, ty_a, span_a)), Some((b, ty_b, span_b))) => {
                if a == b {
                    let ty = join(&ty_a, &ty_b, &self.check.bounds.clone());
                    let values = rx_ops::values::join(&then.values, &otherwise.values, &self.check.bounds);
                    let mut branch_types = then.branch_types;
                    branch_types.extend(otherwise.branch_types);
                    branch_types.truncate(MAX_BRANCH_TYPES);
                    return Ending { variable: Some((a, ty, span_a)), values, branch_types };
                }
                let message = format!("the branches end in different variables: `{a}` and `{b}`");
                let report = mistake(Code::BranchMismatch, span_b, message)
                    .with_label(Place::Here(span_a), format!("the first branch ends in `{a}`"))
                    .with_help("both branches must bind the same variable last")
                    .with_fix(replace_fix(span_b, format!("call it `{a}`"), a.to_string()));
                self.check.report(report);
                self.check.define(b, Entry::value(StructInfo::Error), span_b);
                Some((a, StructInfo::Error, span_a))
            }
            (Some((variable, ..)), None) | (None, Some((variable, ..))) => {
                let message = format!("one branch ends in `{variable}`, the other binds nothing");
                let report = mistake(Code::BranchMismatch, Span::new(span.start, span.start + 2), message);
                self.check.report(report.with_help("both branches must bind the same variable last"));
                Some((variable, StructInfo::Error, span))
            }
            (None, None) => None,
        };
        Ending { variable, values: None, branch_types: Vec::new() }
    }

    /// Elaborates a nested `@R.function`; returns the index of the statement after it.
    pub(super) fn nested_function(&mut self, at: usize, to: usize) -> usize {
        let Some(def) = (at..to).find(|at| {
            self.check
                .statement_at(*at)
                .is_none_or(|statement| !matches!(statement.tree.kind, StatementKind::Decorator(_)))
        }) else {
            return to;
        };
        let Some(statement) = self.check.statement_at(def) else { return to };
        let StatementKind::Def { name, params, ret, type_params } = &statement.tree.kind else {
            return def;
        };
        let end = self.block_end(def, to);
        let segment = self.check.segment;
        let cursor = segment.cursor(statement);
        let (mut pure, mut private) = (true, false);
        let mut mistakes = Vec::new();
        for decorator in (at..def).filter_map(|at| self.check.statement_at(at)) {
            if let StatementKind::Decorator(expr) = &decorator.tree.kind {
                mistakes.extend(decorator_mistakes(segment.cursor(decorator), expr, self.check.file, Place::Here));
                let cursor = segment.cursor(decorator);
                pure &= cursor.flag(expr, "pure").unwrap_or(true);
                private |= cursor.flag(expr, "private").unwrap_or(false);
            }
        }
        if at == def {
            let name = rx_syntax::ast::TokenRange::one(*name);
            mistakes.push(undecorated(cursor, name, Place::Here));
        }
        mistakes.into_iter().for_each(|mistake| self.check.report(mistake));
        let function = cursor.name(*name);
        let span = cursor.span(rx_syntax::ast::TokenRange::one(*name));
        let context = crate::entry::FunctionContext {
            name: function,
            params: params.len(),
            ret: None,
            pure,
            private: true,
            num_input: None,
            bounds: self.check.bounds.clone(),
            dims: crate::entry::SignatureDims::default(),
        };
        self.check.push_scope(Some(std::sync::Arc::new(context.clone())));
        self.check.nesting += 1;
        let saved_state = self.enter_function();
        let open_outside = self.check.open_outside.len();
        self.check.open_outside.extend(saved_state.dataflow.map(|(_, ordinal)| ordinal));
        let saved_return = self.check.returned.take();
        let outer = self.check.begin_body();
        let saved_bounds = self.check.bounds.clone();
        for index in at..def {
            if let Some(decorator) = self.check.statement_at(index)
                && let StatementKind::Decorator(expr) = &decorator.tree.kind
            {
                self.check.anchor_purity(segment.cursor(decorator), expr);
            }
        }
        let (params, declared) = self.header(cursor, type_params, params, ret.as_ref());
        let info = |ret: StructInfo| {
            let params = Some(params.iter().map(|(_, ty)| ty.clone()).collect());
            StructInfo::Function(std::sync::Arc::new(rx_ir::FunctionInfo { params, ret, pure }))
        };
        let dims = self.signature_dims(type_params);
        // Define the function before its body, since it may call itself.
        self.check.define(function, Entry::value(info(declared.clone().unwrap_or(StructInfo::Object))), span);
        if let Some(scope) = self.check.scopes.last_mut() {
            let context = crate::entry::FunctionContext { ret: declared.clone(), dims, ..context };
            scope.context = Some(std::sync::Arc::new(context));
        }
        self.block(def + 1, end);
        if !self.check.state.returned {
            self.check.error(Code::MissingReturn, span, format!("`{function}` ends without a `return`"));
        }
        let ret = self.check.returned.take().or(declared).unwrap_or(StructInfo::Error);
        self.check.note_nested_return(statement, &ret);
        let (body, attributes) = self.check.end_function_body(outer);
        self.check.returned = saved_return;
        let bounds = std::mem::replace(&mut self.check.bounds, saved_bounds);
        self.check.open_outside.truncate(open_outside);
        let dataflow_count = std::mem::replace(&mut self.check.state, saved_state).dataflow_count;
        self.check.state.dataflow_count = dataflow_count;
        self.check.nesting -= 1;
        self.check.pop_scope();
        let dataflow = self.check.state.dataflow.map(|(_, ordinal)| ordinal);
        let ty = self.bounded(info(ret.clone()), span);
        self.check.statement = u32::try_from(def).unwrap_or(u32::MAX);
        self.check.record_function(rx_ir::Function {
            name: function,
            params,
            ret,
            pure,
            private,
            attributes,
            num_input: None,
            bounds,
            body,
        });
        self.check.define(function, Entry::Value { ty, dataflow, values: None, branch_types: None }, span);
        end
    }
}

/// Whether a condition's shape may be that of a single element. TVM reads only the first element of a condition
/// (src/runtime/vm/builtin.cc, `ReadIfCond`).
fn may_be_one_element(shape: &Shape) -> bool {
    match shape {
        Shape::Known(dims) => dims.iter().all(|dim| dim.as_constant().is_none_or(|dim| dim == 1)),
        Shape::Unknown | Shape::Rank(_) | Shape::Var { .. } | Shape::Error => true,
    }
}
