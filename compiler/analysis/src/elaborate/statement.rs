//! Statements of a Relax function: bindings, dataflow blocks, returns.

use super::advice::Anchor;
use super::explanation::guilty_part;
use super::{BlockState, Elaborator, Role, Row, RowKind};
use crate::entry::{Entry, Place};
use crate::file_context::{FUNCTION_CONTEXT, FunctionContext, Namespace, is_symbol_maker};
use crate::readings::{self, Reading};
use crate::reconcile::{Clash, ClashKind, reconcile};
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{Code, DType, Diagnostic, Dim, Name, Span};
use rx_ir::{Attr, Expr as IrExpr, Known, StructInfo};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind, UnaryOp};
use rx_syntax::{Cursor, Statement};
use std::sync::Arc;

/// Blocks nested deeper are not elaborated; the parser reports them.
const MAX_BLOCKS: u32 = 256;

impl<'a> Elaborator<'a> {
    /// Elaborates every statement of the segment.
    pub(super) fn run(&mut self) {
        let count = self.segment.tree().statements.len();
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
        let Some((head, rest)) = cursor.source(callee.tokens).split_once('.') else { return false };
        rest == function && self.file.namespace(head) == Some(Namespace::Relax)
    }

    fn assignment(&mut self, cursor: Cursor<'a>, targets: &[Expr], value: &Expr) {
        let Some(target) = targets.first() else { return };
        if let (ExprKind::Tuple(targets), ExprKind::Tuple(values)) = (&target.kind, &value.kind)
            && targets.len() == values.len()
            && values.iter().all(|value| self.symbol_declaration(cursor, value))
        {
            for (target, value) in targets.iter().zip(values) {
                self.declare_symbol(cursor, target, value);
            }
            return;
        }
        if self.symbol_declaration(cursor, value) {
            self.declare_symbol(cursor, target, value);
            return;
        }
        let ExprKind::Name = target.kind else {
            return self.unpack(cursor, target, value);
        };
        let target_name = cursor.name(target.tokens.start);
        let span = cursor.span(target.tokens);
        if let ExprKind::Name = value.kind
            && let Some(Entry::Module) = self.lookup(cursor.name(value.tokens.start))
        {
            self.define(target_name, Entry::Module, span);
            return;
        }
        let value = self.expr(cursor, value);
        self.bind_variable(target_name, span, None, value);
    }

    /// Whether a value declares a symbolic dim: `T.int64()`, `T.Var("n", "int64")`, `TypeVar("n")`.
    fn symbol_declaration(&self, cursor: Cursor<'_>, value: &Expr) -> bool {
        let ExprKind::Call { callee, arguments } = &value.kind else { return false };
        if is_symbol_maker(cursor, callee) {
            return true;
        }
        let Some((head, rest)) = cursor.source(callee.tokens).split_once('.') else { return false };
        let only_keywords = arguments.iter().all(|argument| argument.keyword.is_some());
        only_keywords
            && self.file.namespace(head) == Some(Namespace::Tir)
            && rx_base::DType::parse(rest).is_some_and(|dtype| dtype.is_int() || dtype.is_bool())
    }

    fn declare_symbol(&mut self, cursor: Cursor<'_>, target: &Expr, value: &Expr) {
        if !matches!(target.kind, ExprKind::Name) {
            return;
        }
        let symbol = cursor.name(target.tokens.start);
        let span = cursor.span(target.tokens);
        match self.lookup(symbol) {
            // `n = T.int64()` after a signature with "n" names the same symbol.
            Some(Entry::Symbol { bound: true }) => {
                if let Some(dtype) = scalar_dtype(cursor, value).filter(|dtype| *dtype != DType::INT64) {
                    let message = format!("`{symbol}` is a dim of a shape and so int64, not {dtype}");
                    self.error(Code::DtypeMismatch, cursor.span(value.tokens), message);
                }
            }
            Some(Entry::Value { ty: StructInfo::Prim(_), .. }) => {}
            _ => self.define(symbol, Entry::Symbol { bound: false }, span),
        }
    }

    /// `a, b = value`.
    fn unpack(&mut self, cursor: Cursor<'a>, target: &Expr, value: &Expr) {
        let value_span = cursor.span(value.tokens);
        let value = self.expr(cursor, value);
        let ExprKind::Tuple(targets) = &target.kind else {
            if !matches!(target.kind, ExprKind::Error) {
                let span = cursor.span(target.tokens);
                self.error(Code::UnsupportedConstruct, span, "only names can be bound in a Relax function");
            }
            return;
        };
        let fields: Vec<StructInfo> = match &value.ty {
            StructInfo::Tuple(fields) if fields.len() == targets.len() => fields.to_vec(),
            StructInfo::Tuple(fields) => {
                let message = format!("{} names are bound to a tuple of {} fields", targets.len(), fields.len());
                self.error(Code::NotATuple, value_span, message);
                vec![StructInfo::Error; targets.len()]
            }
            StructInfo::Error | StructInfo::Object => vec![value.ty.clone(); targets.len()],
            other => {
                self.error(Code::NotATuple, value_span, format!("{other} cannot be unpacked: it is no tuple"));
                vec![StructInfo::Error; targets.len()]
            }
        };
        let variable = |target: &Expr| match target.kind {
            ExprKind::Name => Some(cursor.name(target.tokens.start)),
            _ => None,
        };
        self.record_unpack(targets.iter().map(variable).collect(), &value);
        let known = self.values_of(&value);
        let recorder = self.recorder.take();
        for (at, (target, ty)) in targets.iter().zip(fields).enumerate() {
            if let Some(variable) = variable(target) {
                let span = cursor.span(target.tokens);
                let part = IrExpr { kind: rx_ir::ExprKind::Error, ty, span: value_span };
                let field = known.as_ref().and_then(|known| known.field(at));
                self.bind_known(variable, span, None, part, field);
            }
        }
        self.recorder = recorder;
    }

    fn annotated(&mut self, cursor: Cursor<'a>, target: &Expr, annotation: &Expr, value: Option<&Expr>) {
        let span = cursor.span(target.tokens);
        let Some(value) = value else {
            let ty = self.type_of(cursor, annotation);
            if let ExprKind::Name = target.kind {
                let target = cursor.name(target.tokens.start);
                self.report(
                    Diagnostic::new(
                        Code::UndefinedName,
                        Place::Here(span),
                        format!("`{target}` is given a type and no value"),
                    )
                    .with_help("bind it: `name: type = value`"),
                );
                self.define(target, Entry::value(ty), span);
            }
            return;
        };
        if self.symbol_declaration(cursor, value) {
            return self.declare_symbol(cursor, target, value);
        }
        if self.is_relax_call(cursor, value, "match_cast")
            && let ExprKind::Call { arguments, .. } = &value.kind
        {
            let cast = self.match_cast(cursor, arguments, cursor.span(value.tokens));
            let declared = self.type_of(cursor, annotation);
            self.check_cast_annotation(&declared, &cast, cursor.span(annotation.tokens));
            return self.bind_if_named(cursor, target, Some(Declared { ty: declared, cursor, annotation }), cast);
        }
        let literal = is_literal(value);
        let mut value = self.expr(cursor, value);
        let before = self.diagnostics.len();
        let ty = self.type_of(cursor, annotation);
        if self.diagnostics.len() > before {
            let text = self.written_type(&value.ty);
            self.offer_type(before, cursor.span(annotation.tokens), "write the inferred type", text);
        }
        if literal {
            adopt_dtype(&ty, &mut value);
        }
        self.bind_if_named(cursor, target, Some(Declared { ty, cursor, annotation }), value);
    }

    /// A match_cast says what is checked when the program runs; an annotation that says more would go unchecked.
    fn check_cast_annotation(&mut self, declared: &StructInfo, cast: &IrExpr, place: Span) {
        let bounds = self.bounds.clone();
        let reconciled = reconcile(declared, &cast.ty, &bounds);
        if reconciled.open && reconciled.clash.is_none() {
            let message = format!("the annotation {declared} is not what the match_cast checks, {}", cast.ty);
            self.report(
                Diagnostic::new(Code::AnnotationShapeMismatch, Place::Here(place), message)
                    .with_label(Place::Here(cast.span), format!("this is {}", cast.ty))
                    .with_help("write what is known into the match_cast, and the same type as annotation"),
            );
        }
    }

    fn bind_if_named(&mut self, cursor: Cursor<'_>, target: &Expr, declared: Option<Declared<'_>>, value: IrExpr) {
        if let ExprKind::Name = target.kind {
            self.bind_variable(cursor.name(target.tokens.start), cursor.span(target.tokens), declared, value);
        }
    }

    /// Defines a variable by its declared type, checked against the value's.
    fn bind_variable(&mut self, variable: Name, span: Span, declared: Option<Declared<'_>>, value: IrExpr) {
        let known = self.values_of(&value);
        self.bind_known(variable, span, declared, value, known);
    }

    /// As [`Self::bind_variable`], where what is known of the value's elements is at hand.
    fn bind_known(
        &mut self,
        variable: Name,
        span: Span,
        declared: Option<Declared<'_>>,
        mut value: IrExpr,
        known: Known,
    ) {
        value.ty = self.bounded(value.ty, value.span);
        let inferred = declared.is_none();
        let mut checked = None;
        let mut is_coarser = true;
        let mut ty = match declared {
            None if self.is_broken() => StructInfo::Error,
            None => {
                self.note_binding(span, &value.ty);
                value.ty.clone()
            }
            Some(declared) => {
                self.note_coarser(declared.place(), &declared.ty, &value);
                let bounds = self.bounds.clone();
                let reconciled = reconcile(&declared.ty, &value.ty, &bounds);
                if let Some(clash) = &reconciled.clash {
                    self.annotation_clash(variable, &declared, &value, clash);
                }
                is_coarser = !reconciled.open && reconciled.clash.is_none();
                checked = (reconciled.open && reconciled.clash.is_none()).then_some(declared);
                reconciled.ty
            }
        };
        if let StructInfo::Prim(info) = &mut ty
            && info.value.is_none()
            && info.dtype.is_none_or(|dtype| dtype.is_int())
        {
            // A scalar whose value is not known is a symbol of its own name from here on.
            info.value = Some(Dim::symbol(variable));
            self.forget(variable);
        }
        if let Some(Declared { ty, cursor, annotation }) = checked {
            self.learn_types(&ty, &value.ty, cursor.span(annotation.tokens));
        }
        let ty = self.types.share(ty);
        self.record_value(variable, &ty, &value);
        self.rows.push(Row {
            name: variable,
            kind: RowKind::Binding,
            ty: ty.clone(),
            inferred,
            span,
            statement: self.statement,
        });
        let values = super::values::named(known, variable, &value);
        let dataflow = self.state.dataflow.map(|(_, ordinal)| ordinal);
        let ways = if is_coarser { self.ways_of(&value, &ty) } else { None };
        self.define(variable, Entry::Value { ty, dataflow, values, ways }, span);
    }

    fn annotation_clash(&mut self, variable: Name, declared: &Declared<'_>, value: &IrExpr, clash: &Clash) {
        let code = match clash.kind {
            ClashKind::Dtype => Code::DtypeMismatch,
            _ => Code::AnnotationShapeMismatch,
        };
        let Declared { ty, cursor, annotation } = declared;
        let given = readings::of_type(&value.ty, Reading::Inferred);
        let inferred = given.to_string();
        let text = self.written_type(&given);
        let mut diagnostic = Diagnostic::new(
            code,
            Place::Here(guilty_part(*cursor, annotation, clash)),
            match &clash.path[..] {
                [] => format!("`{variable}` is annotated {ty}, but {}, not {}", clash.actual, clash.wanted),
                _ => {
                    let (field, declared) = (clash.field(), clash.part(ty));
                    format!(
                        "{field} of `{variable}` is annotated {declared}, but {}, not {}",
                        clash.actual, clash.wanted
                    )
                }
            },
        )
        .with_primary_label(format!("declared {}", clash.part(ty)))
        .with_label(Place::Here(value.span), format!("this is {inferred}"));
        diagnostic = self.explain_clash(diagnostic, value, ty, clash);
        let clashing = format!("{} {}", clash.actual, clash.wanted);
        diagnostic = self.with_symbols(diagnostic, &clashing, [ty, &given]);
        diagnostic = self.with_facts(diagnostic, &clash.dims());
        if !matches!(value.ty, StructInfo::Error) {
            diagnostic = diagnostic.with_help(format!("if the value is right, annotate it {inferred}"));
        }
        if let Some(text) = text {
            diagnostic = diagnostic.with_fix(self.replace_fix(declared.place(), "write the inferred type", text));
        }
        self.report(diagnostic);
    }

    fn bare(&mut self, cursor: Cursor<'a>, expr: &Expr) {
        match &expr.kind {
            ExprKind::String | ExprKind::Ellipsis | ExprKind::Error => return,
            ExprKind::Call { arguments, .. } if self.is_relax_call(cursor, expr, "output") => {
                self.anchor_output(cursor, expr, arguments);
                return self.output(cursor, arguments, cursor.span(expr.tokens));
            }
            ExprKind::Call { arguments, .. } if self.is_relax_call(cursor, expr, "func_attr") => {
                return self.func_attr(cursor, arguments);
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

    fn func_attr(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) {
        let Some(argument) = arguments.first() else { return };
        let Attr::Dict(entries) = self.attribute(cursor, &argument.value) else {
            self.error(Code::AttrType, cursor.span(argument.value.tokens), "`R.func_attr` takes a dictionary");
            return;
        };
        let Some(context) = self.function_context() else { return };
        let mut context = FunctionContext::clone(&context);
        let mut bounds = Bounds::clone(&context.bounds);
        for (key, value) in &entries {
            match (key.as_ref(), value) {
                ("num_input", value) => {
                    self.check_num_input(value, context.params, entry_span(cursor, argument, key));
                    context.num_input = value.as_int();
                }
                // A function by itself becomes a module under its symbol, whatever Python calls it.
                ("global_symbol", Attr::Str(symbol)) if self.nesting == 0 && !self.file.modules.is_empty() => {
                    self.check_global_symbol(symbol, context.name, entry_span(cursor, argument, key));
                }
                ("relax.force_pure", Attr::Bool(true)) => context.pure = false,
                ("relax.force_pure", Attr::Int(value)) if value.as_constant() == Some(1) => context.pure = false,
                ("tir_var_upper_bound", Attr::Dict(limits)) => read_bounds(limits, &mut bounds.upper),
                ("tir_var_lower_bound", Attr::Dict(limits)) => read_bounds(limits, &mut bounds.lower),
                _ => {}
            }
        }
        self.bounds = Arc::new(self.bounds.restated(&bounds));
        context.bounds = Arc::new(bounds);
        let context = Arc::new(context);
        match self.scopes.iter_mut().rev().find(|scope| scope.context.is_some()) {
            Some(scope) => scope.context = Some(context),
            // Of the whole function, in whatever block it is said.
            None => self.redefine_in_place(name(FUNCTION_CONTEXT), Entry::Function(context)),
        }
    }

    /// `num_input` says how many leading parameters are inputs; the others are weights.
    fn check_num_input(&mut self, value: &Attr, params: usize, place: Span) {
        let given = match value {
            Attr::Int(value) => value.as_constant(),
            Attr::Opaque(_) => return,
            _ => None,
        };
        let in_range = |given: i64| usize::try_from(given).is_ok_and(|given| given <= params);
        match given {
            None => {
                let mut diagnostic =
                    Diagnostic::new(Code::AttrType, Place::Here(place), "`num_input` must be an integer");
                // `"1"` is a number in quotes.
                let number = value.as_str().and_then(|text| text.trim().parse().ok()).filter(|given| in_range(*given));
                if let Some(number) = number {
                    diagnostic =
                        diagnostic.with_fix(self.replace_fix(place, format!("write {number}"), number.to_string()));
                }
                self.report(diagnostic);
            }
            Some(given) if !in_range(given) => {
                let message = format!("`num_input` is {given}, the function has {params} parameters");
                let nearest = if given < 0 { 0 } else { params };
                self.report(
                    Diagnostic::new(Code::NumInputOutOfRange, Place::Here(place), message)
                        .with_help(format!("it is the number of leading parameters that are inputs: 0 to {params}"))
                        .with_fix(self.replace_fix(place, format!("write {nearest}"), nearest.to_string())),
                );
            }
            Some(_) => {}
        }
    }

    fn check_global_symbol(&mut self, symbol: &str, function: Name, place: Span) {
        if symbol != function.as_str() {
            let message = format!("`global_symbol` is \"{symbol}\", the function is called `{function}`");
            self.report(
                Diagnostic::new(Code::AttrBadValue, Place::Here(place), message)
                    .with_help("leave it out: a public function's symbol is its name"),
            );
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
                if self.nesting == 0 && self.written_return(&declared).is_none() && !self.speaks_of_unbound(&value.ty) {
                    self.return_text = self.written_return(&value.ty).map(String::into_boxed_str);
                }
                declared
            }
        };
        self.returned = Some(ty.clone());
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
        if let Some(fix) = self.type_fix(Anchor::Return, &given) {
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

/// What an annotation declares, and where it is written.
struct Declared<'a> {
    ty: StructInfo,
    cursor: Cursor<'a>,
    annotation: &'a Expr,
}

impl Declared<'_> {
    fn place(&self) -> Span {
        self.cursor.span(self.annotation.tokens)
    }
}

/// Whether an expression is a bare number or boolean.
fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Integer | ExprKind::Float | ExprKind::Bool(_) => true,
        ExprKind::Unary(UnaryOp::Neg | UnaryOp::Pos, inner) | ExprKind::Parenthesized(inner) => is_literal(inner),
        _ => false,
    }
}

/// The dtype of the symbol that `T.int32()` declares.
fn scalar_dtype(cursor: Cursor<'_>, value: &Expr) -> Option<DType> {
    let ExprKind::Call { callee, .. } = &value.kind else { return None };
    DType::parse(cursor.source(callee.tokens).rsplit('.').next()?)
}

/// A literal has the dtype it is declared to have: `x: T.int32 = 2`, `y: T.float32 = 2`.
fn adopt_dtype(declared: &StructInfo, literal: &mut IrExpr) {
    if let (StructInfo::Prim(declared), StructInfo::Prim(own)) = (declared, &mut literal.ty)
        && let Some(dtype) = declared.dtype
        && own.dtype.is_some_and(|own| own.is_int() || own.is_float() == dtype.is_float())
    {
        own.dtype = Some(dtype);
        own.value = own.value.take().filter(|_| dtype.is_int());
    }
}

fn read_bounds(limits: &[(Arc<str>, Attr)], into: &mut rx_base::name::NameMap<i64>) {
    for (symbol, limit) in limits {
        if let Some(limit) = limit.as_int() {
            into.insert(name(symbol), limit);
        }
    }
}

/// Where the value of `key` stands in `R.func_attr({…})`; the whole argument where it is not written in line.
fn entry_span(cursor: Cursor<'_>, argument: &Argument, key: &str) -> Span {
    let ExprKind::Dict(entries) = &argument.value.kind else { return cursor.span(argument.value.tokens) };
    let is_key = |expr: &Option<Expr>| expr.as_ref().and_then(|expr| cursor.string_value(expr)).as_deref() == Some(key);
    let value = entries.iter().find(|(written, _)| is_key(written)).map(|(_, value)| value);
    cursor.span(value.unwrap_or(&argument.value).tokens)
}
