//! `if`/`else`, and the one type both branches fit; `R.match_cast`.

use super::explanation::guilty_part;
use super::expr::error;
use super::types::Binds;
use super::{Elaborator, Role};
use crate::decorators::{decorator_mistakes, undecorated};
use crate::entry::{Entry, Place};
use crate::readings::{self, Reading};
use crate::reconcile::{join, reconcile};
use crate::unify::Bindings;

use rx_base::symbolic::Answer;
use rx_base::{Code, Diagnostic, Fix, Name, Span};
use rx_ir::{Body, Expr as IrExpr, ExprKind as IrKind, Known, Shape, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};

/// Of so many conditions that failed before a branch is known that they do not hold in it.
const MAX_CONDITIONS: usize = 8;

/// Of so many branches the types are kept.
const MAX_WAYS: usize = 8;

/// What a branch ends in.
#[derive(Default)]
struct Ending {
    /// The variable its last statement binds.
    variable: Option<(Name, StructInfo, Span)>,
    /// What is known of its elements.
    values: Known,
    /// The type the variable has at the end of each branch, and where it is bound there.
    ways: Vec<(StructInfo, Span)>,
}

impl<'a> Elaborator<'a> {
    /// An `if` with its `elif`s and `else`; returns the index of the statement after them. The arms are a list and not
    /// nested, since there may be any number.
    pub(super) fn branch(&mut self, at: usize, to: usize, cursor: Cursor<'a>, test: &Expr) -> usize {
        let segment = self.segment;
        let (mut at, mut cursor, mut test) = (at, cursor, test);
        let mut arms: Vec<(Span, Ending)> = Vec::new();
        let mut bodies: Vec<(IrExpr, Body)> = Vec::new();
        let mut failed: Vec<(Cursor<'a>, &Expr)> = Vec::new();
        let first = self.statement;
        let otherwise = loop {
            let Some(header) = self.statement_at(at) else { return to };
            if arms.is_empty() {
                self.no_branch_in_dataflow(header.span);
            }
            let condition = self.expr(cursor, test);
            self.used_for(Role::Condition, condition.span);
            self.check_condition(&condition);
            let end = self.block_end(at, to);
            let (ending, body) = self.one_branch(at + 1, end, &failed, Some((cursor, test)));
            if failed.len() < MAX_CONDITIONS {
                failed.push((cursor, test));
            }
            arms.push((header.span, ending));
            bodies.push((condition, body));
            at = end;
            let Some(next) = self.statement_at(end).filter(|next| end < to && next.indent == header.indent) else {
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
        self.record_branches(first, bodies, otherwise, variable);
        if let Some((variable, ty, span)) = ending.variable {
            // A branch that does not give what the function returns is where the variable is said to be defined.
            let span = self.unlike_return(&ending.ways).unwrap_or(span);
            let ways = ending.ways.iter().any(|(way, _)| *way != ty);
            let ways = ways.then(|| ending.ways.into_iter().map(|(way, _)| way).collect());
            self.define(variable, Entry::Value { ty, dataflow: None, values: ending.values, ways }, span);
        }
        at
    }

    fn no_branch_in_dataflow(&mut self, span: Span) {
        if self.state.dataflow.is_some() {
            self.report(
                Diagnostic::new(
                    Code::MisplacedStatement,
                    Place::Here(Span::new(span.start, span.start + 2)),
                    "an `if` cannot stand in a dataflow block",
                )
                .with_help("end the dataflow block before it: dedent the `if`"),
            );
        }
    }

    /// An `if` at `span`, followed by statement `next`, whose last branch ends in `last`.
    fn missing_else(&mut self, span: Span, last: &Ending, next: usize) {
        let mut diagnostic = Diagnostic::new(
            Code::MissingElse,
            Place::Here(Span::new(span.start, span.start + 2)),
            "an `if` in a Relax function is a value and needs an `else`",
        )
        .with_help("add an `else:` that binds the same variable");
        diagnostic.fixes.extend(self.else_fix(span, last, next));
        self.report(diagnostic);
    }

    /// The fix that writes what an `if` without `else` means in Python: the variable keeps the value it had before.
    fn else_fix(&mut self, header: Span, last: &Ending, next: usize) -> Option<Fix<Place>> {
        let (variable, ty, _) = last.variable.as_ref()?;
        let Some(Entry::Value { ty: before, dataflow: None, .. }) = self.lookup(*variable) else { return None };
        if before.is_error() || reconcile(&before, ty, &self.bounds.clone()).clash.is_some() {
            return None;
        }
        let text = self.segment.text();
        let line = text.get(..header.range().start)?.rfind('\n').map_or(0, |at| at + 1);
        let indent = text.get(line..header.range().start).filter(|indent| indent.trim().is_empty())?;
        let end = self.statement_at(next.checked_sub(1)?)?.span.range().end;
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
            self.report(
                Diagnostic::new(Code::ConditionType, Place::Here(condition.span), message)
                    .with_help("a condition is a `R.Tensor((), dtype=\"bool\")`"),
            );
        }
    }

    /// The statements `from..to`, in which the conditions `failed` do not hold, and `holds` does.
    fn one_branch(
        &mut self,
        from: usize,
        to: usize,
        failed: &[(Cursor<'a>, &Expr)],
        holds: Option<(Cursor<'a>, &Expr)>,
    ) -> (Ending, Body) {
        let outer = self.begin_body();
        let known = self.bounds.clone();
        let saved = (self.state.returned, self.state.dataflow);
        let ended = std::mem::replace(&mut self.state.ended, false);
        self.push_scope(None);
        for (cursor, condition) in failed {
            self.learn_condition(*cursor, condition, false);
        }
        if let Some((cursor, condition)) = holds {
            self.learn_condition(cursor, condition, true);
        }
        let before = self.rows.len();
        self.block(from, to);
        let mut variable = self.last_binding(before);
        let (values, ways) = match variable.as_mut().map(|variable| (self.lookup(variable.0), variable)) {
            // The last row may stand in a branch of the branch; what the variable is behind that says its entry.
            Some((Some(Entry::Value { ty, values, ways, .. }), variable)) => {
                variable.1 = ty;
                (values, ways)
            }
            _ => (None, None),
        };
        let ways = match (&variable, &ways) {
            (Some((.., span)), Some(ways)) => ways.iter().map(|way| (way.clone(), *span)).collect(),
            (Some((_, ty, span)), None) => vec![(ty.clone(), *span)],
            (None, _) => Vec::new(),
        };
        if self.state.returned && !saved.0 {
            let place = (from..to)
                .filter_map(|at| self.statement_at(at))
                .find(|statement| matches!(statement.tree.kind, StatementKind::Return(_)))
                .map(|statement| statement.span);
            if let Some(place) = place {
                self.report(
                    Diagnostic::new(
                        Code::MisplacedStatement,
                        Place::Here(place),
                        "a branch cannot return from the function",
                    )
                    .with_help("bind the value in both branches and return it after the `if`"),
                );
            }
        }
        self.pop_scope();
        self.leave_block(&known);
        self.state.dataflow = saved.1;
        self.state.ended = ended;
        (Ending { variable, values, ways }, self.end_body(outer))
    }

    /// The variable bound by the last row of a branch.
    fn last_binding(&self, before: usize) -> Option<(Name, StructInfo, Span)> {
        let row = self.rows.get(before..)?.iter().rev().find(|row| row.kind == super::RowKind::Binding)?;
        (row.name != "_").then(|| (row.name, row.ty.clone(), row.span))
    }

    /// What an `if` ends in whose branches end in these.
    fn merge(&mut self, span: Span, then: Ending, otherwise: Ending) -> Ending {
        let variable = match (then.variable, otherwise.variable) {
            (Some((a, ty_a, span_a)), Some((b, ty_b, span_b))) => {
                if a == b {
                    let ty = join(&ty_a, &ty_b, &self.bounds.clone());
                    let values = rx_ops::values::join(&then.values, &otherwise.values, &self.bounds);
                    let mut ways = then.ways;
                    ways.extend(otherwise.ways);
                    ways.truncate(MAX_WAYS);
                    return Ending { variable: Some((a, ty, span_a)), values, ways };
                }
                self.report(
                    Diagnostic::new(
                        Code::BranchMismatch,
                        Place::Here(span_b),
                        format!("the branches end in different variables: `{a}` and `{b}`"),
                    )
                    .with_label(Place::Here(span_a), format!("the first branch ends in `{a}`"))
                    .with_help("both branches must bind the same variable last")
                    .with_fix(self.replace_fix(span_b, format!("call it `{a}`"), a.to_string())),
                );
                self.define(b, Entry::value(StructInfo::Error), span_b);
                Some((a, StructInfo::Error, span_a))
            }
            (Some((variable, ..)), None) | (None, Some((variable, ..))) => {
                self.report(
                    Diagnostic::new(
                        Code::BranchMismatch,
                        Place::Here(Span::new(span.start, span.start + 2)),
                        format!("one branch ends in `{variable}`, the other binds nothing"),
                    )
                    .with_help("both branches must bind the same variable last"),
                );
                Some((variable, StructInfo::Error, span))
            }
            (None, None) => None,
        };
        Ending { variable, values: None, ways: Vec::new() }
    }

    /// `R.match_cast(value, type)` in a binding: binds the type's symbols and checks that the cast can succeed.
    pub(super) fn match_cast(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        self.check_form(cursor, arguments, "match_cast");
        let [value, ty, ..] = arguments else {
            self.error(Code::MissingArgument, span, "an argument is missing: `R.match_cast(value, type)`");
            return error(span);
        };
        let value = self.expr(cursor, &value.value);
        self.bind_symbols(cursor, &ty.value, Binds::MatchCast);
        let before = self.diagnostics.len();
        let cast = self.type_of(cursor, &ty.value);
        self.offer_symbols(before);
        let bounds = self.bounds.clone();
        if let Some(clash) = reconcile(&cast, &value.ty, &bounds).clash {
            let mut diagnostic = Diagnostic::new(
                Code::MatchCastNeverMatches,
                Place::Here(guilty_part(cursor, &ty.value, &clash)),
                format!("the cast never matches: {}, the cast wants {}", clash.actual_at_path(), clash.wanted),
            )
            .with_primary_label(format!("asserts {}", clash.part(&cast)))
            .with_label(
                Place::Here(value.span),
                format!("this is {}", readings::of_type(&value.ty, Reading::Inferred)),
            );
            if let IrKind::Var(variable) = value.kind {
                let definition = self.definition_of(variable);
                diagnostic = diagnostic.with_label(definition, format!("`{variable}` gets its type here"));
            }
            if let Some(text) = self.written_type(&value.ty) {
                let place = cursor.span(ty.value.tokens);
                diagnostic = diagnostic.with_fix(self.replace_fix(place, "cast to the inferred type", text));
            }
            let diagnostic = self.with_facts(diagnostic, &clash.dims());
            self.report(diagnostic);
        } else if !self.cast_contradicts_itself(cursor, &ty.value, &cast, &value) {
            self.learn_types(&cast, &value.ty, cursor.span(ty.value.tokens));
            self.learn_extents(&cast, cursor.span(ty.value.tokens));
        }
        // What is known of a scalar stays known: a cast to `T.int64` does not forget its value.
        let ty = match (&cast, &value.ty) {
            (StructInfo::Prim(cast), StructInfo::Prim(actual)) if cast.value.is_none() => {
                StructInfo::Prim(rx_ir::PrimInfo { dtype: cast.dtype.or(actual.dtype), value: actual.value.clone() })
            }
            _ => cast,
        };
        IrExpr { kind: IrKind::MatchCast(Box::new(value)), ty, span }
    }

    /// Reports a cast that wants unequal dims to be one: `R.Tensor((d, d))` of a tensor of shape `(3, 4)`.
    fn cast_contradicts_itself(
        &mut self,
        cursor: Cursor<'_>,
        written: &Expr,
        cast: &StructInfo,
        value: &IrExpr,
    ) -> bool {
        let given = readings::of_type(&value.ty, Reading::Inferred);
        let bounds = self.bounds.clone();
        let equalities = Bindings::new(&bounds).meet_types(cast, &given, 0);
        let Some(wrong) = equalities.iter().find(|equality| equality.answer == Answer::Refuted) else { return false };
        let first = wrong.wanted_here.clone().unwrap_or(rx_base::Dim::ERROR);
        let (wanted, actual) = (&wrong.wanted, &wrong.actual);
        let message = match wanted.as_symbol() {
            Some(symbol) => format!("the cast never matches: `{symbol}` cannot be {first} and {actual}"),
            None => format!("the cast never matches: `{wanted}` is {first} here, the value has {actual}"),
        };
        let mut uses = Vec::new();
        if let Some(symbol) = wanted.as_symbol() {
            dims_called(cursor, written, &symbol, &mut uses);
        }
        let place = uses.get(1).copied().unwrap_or(cursor.span(written.tokens));
        let mut diagnostic = Diagnostic::new(Code::MatchCastNeverMatches, Place::Here(place), message)
            .with_label(Place::Here(value.span), format!("this is {given}"));
        if let (Some(first_use), Some(symbol)) = (uses.first().filter(|_| uses.len() > 1), wanted.as_symbol()) {
            diagnostic = diagnostic.with_label(Place::Here(*first_use), format!("`{symbol}` is {first} here"));
        }
        if let IrKind::Var(variable) = value.kind {
            let definition = self.definition_of(variable);
            diagnostic = diagnostic.with_label(definition, format!("`{variable}` gets its type here"));
        }
        let diagnostic = diagnostic.with_help("give dims that differ different names");
        let diagnostic = self.with_facts(diagnostic, &[&first, actual]);
        self.report(diagnostic);
        true
    }

    /// A nested `@R.function`; returns the index of the statement after it.
    pub(super) fn nested_function(&mut self, at: usize, to: usize) -> usize {
        let Some(def) = (at..to).find(|at| {
            self.statement_at(*at).is_none_or(|statement| !matches!(statement.tree.kind, StatementKind::Decorator(_)))
        }) else {
            return to;
        };
        let Some(statement) = self.statement_at(def) else { return to };
        let StatementKind::Def { name, params, ret, type_params } = &statement.tree.kind else {
            return def;
        };
        let end = self.block_end(def, to);
        let segment = self.segment;
        let cursor = segment.cursor(statement);
        let (mut pure, mut private) = (true, false);
        let mut mistakes = Vec::new();
        for decorator in (at..def).filter_map(|at| self.statement_at(at)) {
            if let StatementKind::Decorator(expr) = &decorator.tree.kind {
                mistakes.extend(decorator_mistakes(segment.cursor(decorator), expr, self.file, Place::Here));
                let cursor = segment.cursor(decorator);
                pure &= cursor.flag(expr, "pure").unwrap_or(true);
                private |= cursor.flag(expr, "private").unwrap_or(false);
            }
        }
        if at == def {
            let name = rx_syntax::ast::TokenRange { start: *name, end: *name + 1 };
            mistakes.push(undecorated(cursor, name, Place::Here));
        }
        mistakes.into_iter().for_each(|mistake| self.report(mistake));
        let function = cursor.name(*name);
        let span = cursor.span(rx_syntax::ast::TokenRange { start: *name, end: *name + 1 });
        let context = crate::entry::FunctionContext {
            name: function,
            params: params.len(),
            ret: None,
            pure,
            private: true,
            num_input: None,
            bounds: self.bounds.clone(),
            dims: crate::entry::SignatureDims::default(),
        };
        self.push_scope(Some(std::sync::Arc::new(context.clone())));
        self.nesting += 1;
        let saved_state = self.enter_function();
        let saved_return = self.returned.take();
        let outer = self.begin_body();
        let saved_bounds = self.bounds.clone();
        for index in at..def {
            if let Some(decorator) = self.statement_at(index)
                && let StatementKind::Decorator(expr) = &decorator.tree.kind
            {
                self.anchor_purity(segment.cursor(decorator), expr);
            }
        }
        let (params, declared) = self.header(cursor, type_params, params, ret.as_ref());
        let info = |ret: StructInfo| {
            let params = Some(params.iter().map(|(_, ty)| ty.clone()).collect());
            StructInfo::Function(std::sync::Arc::new(rx_ir::FunctionInfo { params, ret, pure }))
        };
        let dims = self.signature_dims(type_params);
        // The function may call itself.
        self.define(function, Entry::value(info(declared.clone().unwrap_or(StructInfo::Object))), span);
        if let Some(scope) = self.scopes.last_mut() {
            let context = crate::entry::FunctionContext { ret: declared.clone(), dims, ..context };
            scope.context = Some(std::sync::Arc::new(context));
        }
        self.block(def + 1, end);
        if !self.state.returned {
            self.error(Code::MissingReturn, span, format!("`{function}` ends without a `return`"));
        }
        let ret = self.returned.take().or(declared).unwrap_or(StructInfo::Error);
        self.note_nested_return(statement, &ret);
        let (body, attributes) = self.end_function_body(outer);
        self.returned = saved_return;
        let bounds = std::mem::replace(&mut self.bounds, saved_bounds);
        self.state = saved_state;
        self.nesting -= 1;
        self.pop_scope();
        let dataflow = self.state.dataflow.map(|(_, ordinal)| ordinal);
        let ty = self.bounded(info(ret.clone()), span);
        self.statement = u32::try_from(def).unwrap_or(u32::MAX);
        self.record_function(rx_ir::Function {
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
        self.define(function, Entry::Value { ty, dataflow, values: None, ways: None }, span);
        end
    }
}

/// Where a written type has a dim of this name, in order.
fn dims_called(cursor: Cursor<'_>, written: &Expr, symbol: &str, into: &mut Vec<Span>) {
    let is_dim = match &written.kind {
        ExprKind::Name => cursor.text(written.tokens.start) == symbol,
        ExprKind::String => cursor.string_value(written).is_some_and(|text| text == symbol),
        _ => false,
    };
    if is_dim {
        into.push(cursor.span(written.tokens));
    }
    for child in written.children() {
        dims_called(cursor, child, symbol, into);
    }
}

/// A condition is read from its first element (TVM src/runtime/vm/builtin.cc, `ReadIfCond`), so it must have one only.
fn may_be_one_element(shape: &Shape) -> bool {
    match shape {
        Shape::Known(dims) => dims.iter().all(|dim| dim.as_constant().is_none_or(|dim| dim == 1)),
        Shape::Unknown | Shape::Rank(_) | Shape::Var { .. } | Shape::Error => true,
    }
}
