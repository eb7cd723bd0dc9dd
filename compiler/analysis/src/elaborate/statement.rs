//! Statements of a Relax function: bindings, dataflow blocks, returns.

use super::{BlockState, Elaborator, Role, Row, RowKind};
use crate::entry::{Entry, FUNCTION_CONTEXT, Place};
use crate::readings::{self, Reading};
use crate::reconcile::{Clash, ClashKind, reconcile, says_more};
use rx_base::name::name;
use rx_base::{Code, Diagnostic, Span};
use rx_context::Namespace;
use rx_ir::{Expr as IrExpr, StructInfo};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Statement};

/// Blocks nested deeper are not elaborated; the parser reports them.
const MAX_BLOCKS: u32 = 256;

impl<'a> Elaborator<'a> {
    /// Elaborates every statement of the segment.
    pub(super) fn run(&mut self) {
        let count = self.segment.tree().statements.len();
        self.reserve(count);
        self.statements(0, count);
    }

    pub(super) fn statement_at(&self, at: usize) -> Option<&'a Statement> {
        let segment = self.segment;
        segment.tree().statements.get(at)
    }

    /// Elaborates statements `from..to`, which make up a block.
    pub(super) fn block(&mut self, from: usize, to: usize) {
        if self.blocks >= MAX_BLOCKS {
            return;
        }
        self.blocks += 1;
        let level = self.state.level.take();
        self.statements(from, to);
        self.state.level = level;
        self.blocks -= 1;
    }

    fn statements(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            let next = self.statement(at, to);
            at = next.max(at + 1);
        }
    }

    /// The index after the block that statement `at` opens. A header whose line is indented as no block around it opens
    /// none: the lines below are the block's they would be without it.
    pub(super) fn block_end(&self, at: usize, to: usize) -> usize {
        let Some(header) = self.statement_at(at) else { return to };
        if self.state.level != Some(header.indent) {
            return at + 1;
        }
        (at + 1..to)
            .find(|next| self.statement_at(*next).is_none_or(|s| s.indent <= header.indent && !s.inline))
            .unwrap_or(to)
    }

    /// Elaborates statement `at` and what it opens; returns the index of the next.
    fn statement(&mut self, at: usize, to: usize) -> usize {
        let Some(statement) = self.statement_at(at) else { return to };
        self.statement = u32::try_from(at).unwrap_or(u32::MAX);
        if let Some((indent, _)) = self.state.dataflow
            && !statement.inline
            // A line indented less than the function's body closes nothing: it is a mistake of indentation.
            && (statement.indent == indent || (self.scopes.len() > 1 && statement.indent < indent))
        {
            self.anchor_missing_output(statement.span);
            self.state.dataflow = None;
            self.state.level = Some(indent);
        }
        if self.state.level.is_none() && !statement.inline && statement.indent > self.state.header_indent {
            // A dataflow block without a line of its own leaves the block around it as it was.
            let outer = self.state.dataflow.map(|(indent, _)| indent);
            self.state.level = outer.filter(|outer| statement.indent <= *outer).or(Some(statement.indent));
        }
        let segment = self.segment;
        let cursor = segment.cursor(statement);
        let before = self.diagnostics.len();
        if let StatementKind::Assign { .. } | StatementKind::AnnAssign { .. } = &statement.tree.kind
            && self.state.dataflow.is_some()
            && self.state.output_seen
        {
            let message = "a dataflow block ends with its `R.output`, this binding stands behind it";
            self.error(Code::MisplacedStatement, statement.span, message);
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
                    items.first().is_some_and(|item| self.is_relax_call(cursor, &item.context, "dataflow"));
                if !is_dataflow && statement.tree.error.is_none() {
                    self.error(
                        Code::UnsupportedConstruct,
                        statement.span,
                        "only `with R.dataflow():` has a meaning in a Relax function",
                    );
                }
                // Whatever was meant, what follows is looked at as a dataflow block: a broken header costs itself only.
                if self.state.dataflow.is_some() {
                    // The outer block goes on, so that its variables stay visible.
                    self.error(Code::MisplacedStatement, statement.span, "a dataflow block cannot stand in another");
                } else {
                    // A header at no block's column is taken for one of the block around it: segments are cut by that
                    // reading.
                    let indent = self.state.level.unwrap_or(statement.indent);
                    self.state.dataflow = Some((indent, self.state.dataflow_count));
                    self.state.dataflow_count += 1;
                    self.state.output_seen = false;
                }
                self.state.level = None;
            }
            StatementKind::If(test) => return self.branch(at, to, cursor, test),
            StatementKind::Else | StatementKind::Elif(_) => {
                if statement.tree.error.is_none() {
                    self.error(Code::MisplacedStatement, statement.span, "no `if` stands before this");
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
            // Says which names are captured.
            StatementKind::Python { block: false } if cursor.text(0) == "nonlocal" => {}
            StatementKind::Python { block: false } => self.unsupported_statement(statement, "this statement"),
            StatementKind::Error => {}
        }
        if statement.tree.error.is_some() {
            // A broken statement has one mistake, that of its syntax; what is left of it is guessed.
            self.diagnostics.truncate(before);
        }
        at + 1
    }

    /// Whether the statement being elaborated has a mistake of syntax.
    pub(super) fn is_broken(&self) -> bool {
        self.statement_at(self.statement as usize).is_some_and(|statement| statement.tree.error.is_some())
    }

    fn unsupported_statement(&mut self, statement: &Statement, what: &str) {
        if statement.tree.error.is_none() {
            self.error(
                Code::UnsupportedConstruct,
                statement.span,
                format!("{what} has no meaning in a Relax function"),
            );
        }
    }

    fn unsupported_block(&mut self, at: usize, to: usize, what: &str) -> usize {
        if let Some(statement) = self.statement_at(at).filter(|statement| statement.tree.error.is_none()) {
            let message = format!("{what} has no meaning in a Relax function");
            let mut diagnostic = Diagnostic::new(Code::UnsupportedConstruct, Place::Here(statement.span), message);
            if what.contains("loop") {
                diagnostic = diagnostic.with_help("loops stand in a `T.prim_func`; call it with `R.call_tir`");
            }
            self.report(diagnostic);
        }
        self.block_end(at, to)
    }

    /// Whether an expression is a call of `R.<function>`.
    pub(super) fn is_relax_call(&self, cursor: Cursor<'_>, expr: &Expr, function: &str) -> bool {
        let ExprKind::Call { callee, .. } = &expr.kind else { return false };
        let Some((head, rest)) = cursor.path(callee.tokens).split_once('.') else { return false };
        rest == function && self.file.namespace(head) == Some(Namespace::Relax)
    }

    fn bare(&mut self, cursor: Cursor<'a>, expr: &Expr) {
        match &expr.kind {
            ExprKind::String | ExprKind::Ellipsis | ExprKind::Error => return,
            ExprKind::Call { arguments, .. } if self.is_relax_call(cursor, expr, "output") => {
                let span = cursor.span(expr.tokens);
                if self.state.dataflow.is_some() && self.state.output_seen {
                    self.error(Code::MisplacedStatement, span, "the dataflow block has an `R.output` already");
                }
                self.anchor_output(cursor, expr, arguments);
                return self.output(cursor, arguments, span);
            }
            ExprKind::Call { arguments, .. } if self.is_relax_call(cursor, expr, "func_attr") => {
                return self.func_attr(cursor, arguments, cursor.span(expr.tokens));
            }
            _ => {}
        }
        let value = self.expr(cursor, expr);
        self.unused_value(&value);
        self.record_value(name("_"), &value.ty, &value);
        self.rows.push(Row {
            name: name("_"),
            kind: RowKind::Binding,
            ty: value.ty,
            inferred: true,
            span: value.span,
            statement: self.statement,
        });
    }

    /// TVM takes a bare statement for its effect only: one with a value is a mistake (TVM relax/script/parser/parser.py).
    fn unused_value(&mut self, value: &IrExpr) {
        let void = match &value.ty {
            StructInfo::Tuple(fields) => fields.is_empty(),
            ty => matches!(ty, StructInfo::Object | StructInfo::Error | StructInfo::String),
        };
        if !void {
            let message = format!("the value of this statement, {}, is bound to no variable", value.ty);
            let mut fix = self.replace_fix(Span::empty(value.span.start), "bind it to `_`", "_ = ");
            fix.safe = true;
            self.report(
                Diagnostic::new(Code::MisplacedStatement, Place::Here(value.span), message)
                    .with_help("bind it: `name = …`; where only its effect is wanted: `_ = …`")
                    .with_fix(fix),
            );
        }
    }

    /// `R.output(x, y)`: makes dataflow variables visible after their block.
    fn output(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) {
        if self.state.dataflow.is_none() {
            self.error(Code::MisplacedStatement, span, "`R.output` stands outside a dataflow block");
        }
        for argument in arguments {
            let place = cursor.span(argument.value.tokens);
            if !matches!(argument.value.kind, ExprKind::Name) {
                if !matches!(argument.value.kind, ExprKind::Error) {
                    self.error(Code::ArgumentType, place, "`R.output` takes variables of the dataflow block");
                }
                continue;
            }
            let variable = cursor.name(argument.value.tokens.start);
            match self.lookup(variable) {
                Some(Entry::Value { ty, values, ways, .. }) => {
                    self.record_output(variable);
                    self.redefine_in_place(variable, Entry::Value { ty, dataflow: None, values, ways });
                }
                Some(Entry::Symbol { .. } | Entry::Module | Entry::Function(_) | Entry::Facts(_)) => {
                    self.error(Code::ArgumentType, place, format!("`{variable}` is no variable of the dataflow block"));
                }
                Some(Entry::Captured) => self.captured_name(variable, place),
                None => {
                    self.undefined_name(variable, place);
                    self.used_for(Role::Output, place);
                }
            }
        }
    }

    fn return_value(&mut self, cursor: Cursor<'a>, value: Option<&Expr>, span: Span) {
        let mut value = match value {
            Some(value) => self.expr(cursor, value),
            None => super::expr::tuple(Vec::new(), span),
        };
        self.used_for(Role::Return, value.span);
        value.ty = self.bounded(value.ty, value.span);
        self.record_return(&value);
        if std::mem::replace(&mut self.state.ended, true) {
            self.error(Code::MisplacedStatement, span, "the function has returned above");
        }
        self.state.returned = true;
        let context = self.function_context();
        let declared = context.and_then(|context| context.ret.clone());
        let inferred = declared.is_none();
        let ty = match declared {
            None => {
                self.note_return(&value.ty);
                value.ty.clone()
            }
            Some(declared) => {
                let bounds = self.bounds.clone();
                let reconciled = reconcile(&declared, &value.ty, &bounds);
                match &reconciled.clash {
                    Some(clash) => self.return_clash(&declared, &value, clash),
                    None => self.check_ways(&declared, &value),
                }
                if self.nesting == 0
                    && self.written_in_signature(&declared).is_none()
                    && !self.speaks_of_unbound(&value.ty)
                {
                    self.return_text = self.written_in_signature(&value.ty).map(String::into_boxed_str);
                }
                declared
            }
        };
        // Callers of a nested function see its body, as in TVM 0.27.
        let body = if self.nesting > 0 && !inferred { self.visible_outside(&value.ty) } else { None };
        let says_more =
            |body: &StructInfo| reconcile(&ty, body, &self.bounds).is_proved() && says_more(body, &ty, &self.bounds);
        self.returned = Some(body.filter(says_more).unwrap_or_else(|| ty.clone()));
        if self.nesting == 0 {
            self.returned_values = self.values_of(&value);
        }
        let row = Row {
            name: name("return"),
            kind: RowKind::Return,
            ty,
            inferred,
            span: value.span,
            statement: self.statement,
        };
        self.rows.push(row);
    }

    fn return_clash(&mut self, declared: &StructInfo, value: &IrExpr, clash: &Clash) {
        let given = readings::of_type(&value.ty, Reading::Inferred);
        let code = match clash.kind {
            ClashKind::Dtype => Code::DtypeMismatch,
            _ => Code::ReturnShapeMismatch,
        };
        let mut diagnostic = Diagnostic::new(
            code,
            Place::Here(value.span),
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
        if self.nesting == 0 {
            // Where the function's context is defined, its return type is written.
            let header = self.definition_of(name(FUNCTION_CONTEXT));
            diagnostic = diagnostic.with_label(header, format!("declared {declared}"));
        }
        if let rx_ir::ExprKind::Var(variable) = value.kind {
            let definition = self.definition_of(variable);
            diagnostic = diagnostic.with_label(definition, format!("`{variable}` gets its type here"));
        }
        if let Some(fix) = self.return_type_fix(&given) {
            diagnostic = diagnostic.with_fix(fix);
        }
        diagnostic = self.explain_clash(diagnostic, value, declared, clash);
        let clashing = format!("{} {}", clash.actual, clash.wanted);
        diagnostic = self.with_symbols(diagnostic, &clashing, [declared, &given]);
        diagnostic = self.with_facts(diagnostic, &clash.dims());
        self.report(diagnostic.with_help(format!("declare `-> {given}`, or return a value of the declared type")));
    }

    /// Saves the block state for a nested function, which has blocks of its own.
    pub(super) fn enter_function(&mut self) -> BlockState {
        let inner = BlockState { header_indent: self.state.header_indent, ..BlockState::default() };
        std::mem::replace(&mut self.state, inner)
    }
}
