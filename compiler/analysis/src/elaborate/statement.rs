//! Elaborates the statements of a Relax function: bindings, dataflow blocks, returns.

use super::elaborator::Elaborator;
use super::ir::tuple;
use super::result::{BlockState, Role, Row, RowKind};
use crate::entry::{Entry, FUNCTION_CONTEXT, Place, mistake, replace_fix};
use crate::readings::{self, Reading};
use crate::reconcile::{Clash, ClashKind, reconcile, says_more};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Code, Fix, Span};
use rx_ir::{Expr as IrExpr, StructInfo};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Statement};

/// The maximal depth of nested blocks that are elaborated; the parser reports deeper ones.
const MAX_BLOCKS: u32 = 256;

impl<'a> Elaborator<'a> {
    /// Elaborates every statement of the segment.
    pub(super) fn run(&mut self) {
        let count = self.check.segment.tree().statements.len();
        self.check.reserve(count);
        self.statements(0, count);
    }

    /// Elaborates statements `from..to`, which form a block.
    pub(super) fn block(&mut self, from: usize, to: usize) {
        if self.check.blocks >= MAX_BLOCKS {
            return;
        }
        self.check.blocks += 1;
        let level = self.check.state.level.take();
        self.statements(from, to);
        self.check.state.level = level;
        self.check.blocks -= 1;
    }

    fn statements(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let next = self.statement(at, to);
            at = next.max(at + 1);
        }
    }

    /// Returns the index after the block that statement `at` opens. A header whose indentation is not that of its
    /// block opens none: the lines after it belong to the block they would belong to without it.
    pub(super) fn block_end(&self, at: usize, to: usize) -> usize {
        let Some(header) = self.check.statement_at(at) else { return to };
        if self.check.state.level != Some(header.indent) {
            return at + 1;
        }
        (at + 1..to)
            .find(|next| self.check.statement_at(*next).is_none_or(|s| s.indent <= header.indent && !s.inline))
            .unwrap_or(to)
    }

    /// Elaborates statement `at` and the block it opens; returns the index of the next statement.
    fn statement(&mut self, at: usize, to: usize) -> usize {
        let Some(statement) = self.check.statement_at(at) else { return to };
        self.check.statement = u32::try_from(at).unwrap_or(u32::MAX);
        if let Some((indent, _)) = self.check.state.dataflow
            && !statement.inline
            // A line indented less than the function's body closes no block: its indentation is a mistake.
            && (statement.indent == indent || (self.check.scopes.len() > 1 && statement.indent < indent))
        {
            self.check.anchor_missing_output(statement.span);
            self.check.state.dataflow = None;
            self.check.state.level = Some(indent);
        }
        if self.check.state.level.is_none() && !statement.inline && statement.indent > self.check.state.header_indent {
            // An empty dataflow block does not change the level of the enclosing block.
            let outer = self.check.state.dataflow.map(|(indent, _)| indent);
            self.check.state.level = outer.filter(|outer| statement.indent <= *outer).or(Some(statement.indent));
        }
        let segment = self.check.segment;
        let cursor = segment.cursor(statement);
        let before = self.check.diagnostics.len();
        if let StatementKind::Assign { .. } | StatementKind::AnnAssign { .. } = &statement.tree.kind
            && self.check.state.dataflow.is_some()
            && self.check.state.output_seen
        {
            let message = "a dataflow block ends with its `R.output`; this binding comes after it";
            self.check.error(Code::MisplacedStatement, statement.span, message);
        }
        match &statement.tree.kind {
            StatementKind::Assign { targets, value } => self.assignment(cursor, targets, value),
            StatementKind::AnnAssign { target, annotation, value } => {
                self.annotated(cursor, target, annotation, value.as_ref());
            }
            StatementKind::Expr(expr) => self.bare(cursor, expr),
            StatementKind::Return(value) => self.return_value(cursor, value.as_ref(), statement.span),
            StatementKind::With(items) => {
                let is_dataflow =
                    items.first().is_some_and(|item| self.check.is_relax_call(cursor, &item.context, "dataflow"));
                if !is_dataflow && statement.tree.error.is_none() {
                    let message = "only `with R.dataflow():` has a meaning in a Relax function";
                    let mut diagnostic = mistake(Code::UnsupportedConstruct, statement.span, message);
                    diagnostic.fixes.extend(items.first().and_then(|item| self.dataflow_meant(cursor, &item.context)));
                    self.check.report(diagnostic);
                }
                // Any `with` opens a dataflow block, whatever was meant, so that a broken header causes no further
                // diagnostics.
                if self.check.state.dataflow.is_some() {
                    // The outer block stays open, so that its variables stay visible.
                    self.check.error(
                        Code::MisplacedStatement,
                        statement.span,
                        "a dataflow block cannot be inside another",
                    );
                } else {
                    // A header in a column that belongs to no block is treated as part of the enclosing one; the
                    // cutting of segments relies on this.
                    let indent = self.check.state.level.unwrap_or(statement.indent);
                    self.check.state.dataflow = Some((indent, self.check.state.dataflow_count));
                    self.check.state.dataflow_count += 1;
                    self.check.state.output_seen = false;
                }
                self.check.state.level = None;
            }
            StatementKind::If(test) => return self.branch(at, to, cursor, test),
            StatementKind::Else | StatementKind::Elif(_) => {
                if statement.tree.error.is_none() {
                    self.check.error(Code::MisplacedStatement, statement.span, "there is no `if` before this");
                }
                return self.block_end(at, to);
            }
            StatementKind::Decorator(_) | StatementKind::Def { .. } => return self.nested_function(at, to),
            StatementKind::For { .. } => {
                return self.unsupported_block(at, to, "a `for` loop");
            }
            StatementKind::While(_) => return self.unsupported_block(at, to, "a `while` loop"),
            StatementKind::Class { .. } => return self.unsupported_block(at, to, "a class"),
            StatementKind::AugAssign { .. } => self.unsupported_statement(statement, "an augmented assignment"),
            StatementKind::Assert { .. } => self.unsupported_statement(statement, "`assert` (use `R.assert_op`)"),
            StatementKind::Break | StatementKind::Continue => {
                self.unsupported_statement(statement, "`break`/`continue`")
            }
            StatementKind::Import(_) | StatementKind::FromImport { .. } | StatementKind::Pass => {}
            StatementKind::Python { block: true } => return self.unsupported_block(at, to, "this statement"),
            // `nonlocal` declares captured names.
            StatementKind::Python { block: false } if cursor.text(0) == "nonlocal" => {}
            StatementKind::Python { block: false } => self.unsupported_statement(statement, "this statement"),
            StatementKind::Error => {}
        }
        if statement.tree.error.is_some() {
            // A broken statement gets only its syntax diagnostic, since the rest of its tree is guessed.
            self.check.diagnostics.truncate(before);
        }
        at + 1
    }

    fn unsupported_statement(&mut self, statement: &Statement, subject: &str) {
        if statement.tree.error.is_none() {
            let message = format!("{subject} has no meaning in a Relax function");
            self.check.error(Code::UnsupportedConstruct, statement.span, message);
        }
    }

    fn unsupported_block(&mut self, at: usize, to: usize, subject: &str) -> usize {
        if let Some(statement) = self.check.statement_at(at).filter(|statement| statement.tree.error.is_none()) {
            let message = format!("{subject} has no meaning in a Relax function");
            let mut diagnostic = mistake(Code::UnsupportedConstruct, statement.span, message);
            if subject.contains("loop") {
                diagnostic = diagnostic.with_help("write loops in a `T.prim_func`, and call it with `R.call_tir`");
            }
            self.check.report(diagnostic);
        }
        self.block_end(at, to)
    }

    fn bare(&mut self, cursor: Cursor<'a>, expr: &Expr) {
        match &expr.kind {
            ExprKind::String | ExprKind::Ellipsis | ExprKind::Error => return,
            ExprKind::Call { arguments, .. } if self.check.is_relax_call(cursor, expr, "output") => {
                let span = cursor.span(expr.tokens);
                if self.check.state.dataflow.is_some() && self.check.state.output_seen {
                    self.check.error(Code::MisplacedStatement, span, "the dataflow block has an `R.output` already");
                }
                self.check.anchor_output(cursor, expr, arguments);
                return self.output(cursor, arguments, span);
            }
            ExprKind::Call { arguments, .. } if self.check.is_relax_call(cursor, expr, "func_attr") => {
                return self.func_attr(cursor, arguments, cursor.span(expr.tokens));
            }
            _ => {}
        }
        let value = self.expr(cursor, expr);
        self.unused_value(&value);
        self.check.record_value(name("_"), &value.ty, &value);
        self.check.rows.push(Row {
            name: name("_"),
            kind: RowKind::Binding,
            ty: value.ty,
            inferred: true,
            in_dataflow: self.check.state.dataflow.is_some(),
            span: value.span,
            statement: self.check.statement,
        });
    }

    /// Reports a bare statement with a value: TVM accepts one only for its side effect (TVM
    /// relax/script/parser/parser.py).
    fn unused_value(&mut self, value: &IrExpr) {
        let void = match &value.ty {
            StructInfo::Tuple(fields) => fields.is_empty(),
            ty => matches!(ty, StructInfo::Object | StructInfo::Error | StructInfo::String),
        };
        if !void {
            let message = format!("the value of this statement, {}, is bound to no variable", value.ty);
            let mut fix = replace_fix(Span::empty(value.span.start), "bind it to `_`", "_ = ");
            fix.safe = true;
            self.check.report(
                mistake(Code::MisplacedStatement, value.span, message)
                    .with_help("bind it: `name = …`; where only its effect is wanted: `_ = …`")
                    .with_fix(fix),
            );
        }
    }

    /// Elaborates `R.output(x, y)`, which makes dataflow variables visible after their block.
    fn output(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) {
        if self.check.state.dataflow.is_none() {
            self.check.error(Code::MisplacedStatement, span, "`R.output` is outside a dataflow block");
        }
        for argument in arguments {
            let place = cursor.span(argument.value.tokens);
            if !matches!(argument.value.kind, ExprKind::Name) {
                if !matches!(argument.value.kind, ExprKind::Error) {
                    self.check.error(Code::ArgumentType, place, "`R.output` takes variables of the dataflow block");
                }
                continue;
            }
            let variable = cursor.name(argument.value.tokens.start);
            match self.check.lookup(variable) {
                Some(Entry::Value { ty, values, branch_types, .. }) => {
                    self.check.record_output(variable);
                    self.check.redefine_in_place(variable, Entry::Value { ty, dataflow: None, values, branch_types });
                }
                Some(Entry::Symbol { .. } | Entry::Module | Entry::Function(_) | Entry::Facts(_)) => {
                    let message = format!("`{variable}` is no variable of the dataflow block");
                    self.check.error(Code::ArgumentType, place, message);
                }
                Some(Entry::Captured) => self.check.captured_name(variable, place),
                None => {
                    self.check.undefined_name(variable, place);
                    self.check.used_for(Role::Output, place);
                }
            }
        }
    }

    /// Returns the fix of the context of a `with` that means `R.dataflow()`, such as `R.datflow()` or `dataflow()`.
    fn dataflow_meant(&self, cursor: Cursor<'_>, context: &Expr) -> Option<Fix<Place>> {
        let callee = match &context.kind {
            ExprKind::Call { callee, .. } => &**callee,
            _ => context,
        };
        let last = cursor.path(callee.tokens).rsplit('.').next().filter(|_| callee.is_dotted_name())?;
        let is_meant = last == "dataflow" || nearest(last, ["dataflow"]).is_some();
        let text = format!("{}.dataflow()", self.check.file.spelled_namespace("R"));
        is_meant.then(|| replace_fix(cursor.span(context.tokens), format!("change to {text}"), text))
    }

    fn return_value(&mut self, cursor: Cursor<'a>, value: Option<&Expr>, span: Span) {
        let mut value = match value {
            Some(value) => self.expr(cursor, value),
            None => tuple(Vec::new(), span),
        };
        self.check.used_for(Role::Return, value.span);
        value.ty = self.bounded(value.ty, value.span);
        self.check.record_return(&value);
        if std::mem::replace(&mut self.check.state.ended, true) {
            self.check.error(Code::MisplacedStatement, span, "the function has returned above");
        }
        self.check.state.returned = true;
        let context = self.check.function_context();
        let declared = context.and_then(|context| context.ret.clone());
        let inferred = declared.is_none();
        let ty = match declared {
            None => {
                self.check.note_return(&value.ty);
                value.ty.clone()
            }
            Some(declared) => {
                let bounds = self.check.bounds.clone();
                let reconciled = reconcile(&declared, &value.ty, &bounds);
                match &reconciled.clash {
                    Some(clash) => self.return_clash(&declared, &value, clash),
                    None => self.check.check_ways(&declared, &value),
                }
                if self.check.nesting == 0
                    && self.check.written_in_signature(&declared).is_none()
                    && !self.check.speaks_of_unbound(&value.ty)
                {
                    self.check.return_text = self.check.written_in_signature(&value.ty).map(String::into_boxed_str);
                }
                declared
            }
        };
        // Callers of a nested function see the type of its body, as in TVM 0.27.
        let body = if self.check.nesting > 0 && !inferred { self.check.visible_outside(&value.ty) } else { None };
        let says_more = |body: &StructInfo| {
            reconcile(&ty, body, &self.check.bounds).is_proved() && says_more(body, &ty, &self.check.bounds)
        };
        self.check.returned = Some(body.filter(says_more).unwrap_or_else(|| ty.clone()));
        if self.check.nesting == 0 {
            self.check.returned_values = self.check.values_of(&value);
        }
        let row = Row {
            name: name("return"),
            kind: RowKind::Return,
            ty,
            inferred,
            in_dataflow: false,
            span: value.span,
            statement: self.check.statement,
        };
        self.check.rows.push(row);
    }

    fn return_clash(&mut self, declared: &StructInfo, value: &IrExpr, clash: &Clash) {
        let given = readings::of_type(&value.ty, Reading::Inferred);
        let code = match clash.kind {
            ClashKind::Dtype => Code::DtypeMismatch,
            _ => Code::ReturnShapeMismatch,
        };
        let mut diagnostic = mistake(
            code,
            value.span,
            match &clash.path[..] {
                [] => {
                    format!("the function is declared to return {declared}, but {}, not {}", clash.actual, clash.wanted)
                }
                _ => {
                    let (field, declared) = (clash.field(), clash.part(declared));
                    let Clash { actual, wanted, .. } = clash;
                    format!("the function is declared to return {declared} as {field}, but {actual}, not {wanted}")
                }
            },
        )
        .with_primary_label(format!("returns {given}"));
        if self.check.nesting == 0 {
            // The function's context is defined at the return annotation.
            let header = self.check.definition_of(name(FUNCTION_CONTEXT));
            diagnostic = diagnostic.with_label(header, format!("declared {declared}"));
        }
        diagnostic = self.check.with_definition(diagnostic, value, "gets its type here");
        if let Some(fix) = self.check.return_type_fix(&given) {
            diagnostic = diagnostic.with_fix(fix);
        }
        let suggestions = self.check.explain_clash(&mut diagnostic, value, declared, clash);
        let clashing = format!("{} {}", clash.actual, clash.wanted);
        diagnostic = self.check.with_symbols(diagnostic, &clashing, [declared, &given]);
        diagnostic = self.check.with_facts(diagnostic, &clash.dims());
        self.check
            .report(diagnostic.with_help(format!("declare `-> {given}`, or return a value of the declared type")));
        self.check.want(value, declared, suggestions);
    }

    /// Saves the block state and starts a separate one for a nested function, whose dataflow blocks have the next
    /// ordinals.
    pub(super) fn enter_function(&mut self) -> BlockState {
        let BlockState { header_indent, dataflow_count, .. } = self.check.state;
        let inner = BlockState { header_indent, dataflow_count, ..BlockState::default() };
        std::mem::replace(&mut self.check.state, inner)
    }
}
