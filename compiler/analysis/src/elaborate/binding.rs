//! Elaborates bindings: assignments, annotated assignments, symbol declarations, and unpacking of tuples.

use super::elaborator::Elaborator;
use super::explanation::guilty_part;
use super::result::{Row, RowKind};
use crate::entry::{Entry, Place, mistake, replace_fix};
use crate::readings::{self, Reading};
use crate::reconcile::{Clash, ClashKind, reconcile, says_more};
use rx_base::{Code, DType, Dim, Name, Span};
use rx_context::Namespace;
use rx_context::file_context::is_symbol_maker;
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, Known, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Expr, ExprKind, UnaryOp};

impl<'a> Elaborator<'a> {
    pub(super) fn assignment(&mut self, cursor: Cursor<'a>, targets: &[Expr], value: &Expr) {
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
            && let Some(Entry::Module) = self.check.lookup(cursor.name(value.tokens.start))
        {
            self.check.define(target_name, Entry::Module, span);
            return;
        }
        let value = self.expr(cursor, value);
        self.bind_variable(target_name, span, None, value);
    }

    /// Whether an expression declares a symbolic dim: `T.int64()`, `T.Var("n", "int64")`, `TypeVar("n")`.
    fn symbol_declaration(&self, cursor: Cursor<'_>, value: &Expr) -> bool {
        let ExprKind::Call { callee, arguments } = &value.kind else { return false };
        if is_symbol_maker(cursor, callee) {
            return true;
        }
        if arguments.iter().any(|argument| argument.keyword.is_none()) {
            return false;
        }
        let Some((head, rest)) = cursor.path(callee.tokens).split_once('.') else { return false };
        self.check.file.namespace(head) == Some(Namespace::Tir)
            && rx_base::DType::parse(rest).is_some_and(|dtype| dtype.is_int() || dtype.is_bool())
    }

    fn declare_symbol(&mut self, cursor: Cursor<'_>, target: &Expr, value: &Expr) {
        if !matches!(target.kind, ExprKind::Name) {
            return;
        }
        let symbol = cursor.name(target.tokens.start);
        let span = cursor.span(target.tokens);
        match self.check.lookup(symbol) {
            // `n = T.int64()` after a signature that contains "n" refers to the same symbol.
            Some(Entry::Symbol { bound: true, .. }) => {
                if let Some(dtype) = scalar_dtype(cursor, value).filter(|dtype| *dtype != DType::INT64) {
                    let message = format!("`{symbol}` is a dim of a shape and so int64, not {dtype}");
                    self.check.error(Code::DtypeMismatch, cursor.span(value.tokens), message);
                }
            }
            Some(Entry::Value { ty: StructInfo::Prim(_) | StructInfo::Error, .. }) => {}
            _ => {
                let dtype = scalar_dtype(cursor, value).unwrap_or(DType::INT64);
                self.check.define(symbol, Entry::Symbol { bound: false, dtype }, span);
            }
        }
    }

    /// Elaborates `a, b = value`.
    fn unpack(&mut self, cursor: Cursor<'a>, target: &Expr, value: &Expr) {
        let value_span = cursor.span(value.tokens);
        let value = self.expr(cursor, value);
        let ExprKind::Tuple(targets) = &target.kind else {
            if !matches!(target.kind, ExprKind::Error) {
                let span = cursor.span(target.tokens);
                self.check.error(Code::UnsupportedConstruct, span, "only names can be bound in a Relax function");
            }
            return;
        };
        let fields: Vec<StructInfo> = match &value.ty {
            StructInfo::Tuple(fields) if fields.len() == targets.len() => fields.to_vec(),
            StructInfo::Tuple(fields) => {
                let message = format!("{} names are bound to a tuple of {} fields", targets.len(), fields.len());
                self.check.error(Code::NotATuple, value_span, message);
                vec![StructInfo::Error; targets.len()]
            }
            StructInfo::Error | StructInfo::Object => vec![value.ty.clone(); targets.len()],
            other => {
                self.check.error(Code::NotATuple, value_span, format!("{other} cannot be unpacked: it is no tuple"));
                vec![StructInfo::Error; targets.len()]
            }
        };
        let variable = |target: &Expr| match target.kind {
            ExprKind::Name => Some(cursor.name(target.tokens.start)),
            _ => None,
        };
        self.check.record_unpack(targets.iter().map(variable).collect(), &value);
        let known = self.check.values_of(&value);
        let recorder = self.check.recorder.take();
        for (at, (target, ty)) in targets.iter().zip(fields).enumerate() {
            if let Some(variable) = variable(target) {
                let span = cursor.span(target.tokens);
                let part = IrExpr { kind: rx_ir::ExprKind::Error, ty, span: value_span };
                let field = known.as_ref().and_then(|known| known.field(at));
                self.bind_known(variable, span, None, part, field);
            }
        }
        self.check.recorder = recorder;
    }

    pub(super) fn annotated(&mut self, cursor: Cursor<'a>, target: &Expr, annotation: &Expr, value: Option<&Expr>) {
        let span = cursor.span(target.tokens);
        let Some(value) = value else {
            let ty = self.type_of(cursor, annotation);
            if let ExprKind::Name = target.kind {
                let target = cursor.name(target.tokens.start);
                self.check.report(
                    mistake(Code::UndefinedName, span, format!("`{target}` is given a type and no value"))
                        .with_help("bind it: `name: type = value`"),
                );
                self.check.define(target, Entry::value(ty), span);
            }
            return;
        };
        if self.symbol_declaration(cursor, value) {
            return self.declare_symbol(cursor, target, value);
        }
        if self.check.is_relax_call(cursor, value, "match_cast")
            && let ExprKind::Call { arguments, .. } = &value.kind
        {
            let cast = self.match_cast(cursor, arguments, cursor.span(value.tokens));
            let declared = self.type_of(cursor, annotation);
            self.check_cast_annotation(&declared, &cast, cursor.span(annotation.tokens));
            return self.bind_if_named(cursor, target, Some(Declared { ty: declared, cursor, annotation }), cast);
        }
        let literal = is_literal(value);
        let mut value = self.expr(cursor, value);
        let before = self.check.diagnostics.len();
        let ty = self.type_of(cursor, annotation);
        if self.check.diagnostics.len() > before {
            let text = self.check.written_type(&value.ty);
            self.check.offer_type(before, cursor.span(annotation.tokens), "write the inferred type", text);
        }
        self.check.try_again(value.span, &ty);
        if literal {
            adopt_dtype(&ty, &mut value);
        }
        self.bind_if_named(cursor, target, Some(Declared { ty, cursor, annotation }), value);
    }

    /// Reports an annotation of a `match_cast` that is more precise than the cast: only the cast's type is checked at
    /// run time, so the rest of the annotation would not be verified.
    fn check_cast_annotation(&mut self, declared: &StructInfo, cast: &IrExpr, place: Span) {
        let bounds = self.check.bounds.clone();
        let reconciled = reconcile(declared, &cast.ty, &bounds);
        if reconciled.open && reconciled.clash.is_none() {
            let message = format!("the annotation is {declared}, but the match_cast checks {}", cast.ty);
            self.check.report(
                mistake(Code::AnnotationShapeMismatch, place, message)
                    .with_label(Place::Here(cast.span), format!("this is {}", cast.ty))
                    .with_help("write the more precise type in the match_cast, and the same type as annotation"),
            );
        }
    }

    fn bind_if_named(&mut self, cursor: Cursor<'_>, target: &Expr, declared: Option<Declared<'_>>, value: IrExpr) {
        if let ExprKind::Name = target.kind {
            self.bind_variable(cursor.name(target.tokens.start), cursor.span(target.tokens), declared, value);
        }
    }

    /// Defines a variable. Its type is the declared one, checked against the value's; without an annotation, the
    /// value's.
    fn bind_variable(&mut self, variable: Name, span: Span, declared: Option<Declared<'_>>, value: IrExpr) {
        let known = self.check.values_of(&value);
        self.bind_known(variable, span, declared, value, known);
    }

    /// Like [`Self::bind_variable`], with the known elements of the value given.
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
            None if self.check.is_broken() => StructInfo::Error,
            None => {
                self.check.note_binding(span, &value.ty);
                value.ty.clone()
            }
            Some(declared) => {
                self.check.note_coarser(declared.place(), &declared.ty, &value);
                let bounds = self.check.bounds.clone();
                let reconciled = reconcile(&declared.ty, &value.ty, &bounds);
                if let Some(clash) = &reconciled.clash {
                    self.annotation_clash(variable, &declared, &value, clash);
                }
                is_coarser = reconciled.is_proved();
                let hides = is_coarser && is_no_computation(&value.kind) && says_more(&value.ty, &declared.ty, &bounds);
                checked = (reconciled.open && reconciled.clash.is_none()).then_some(declared);
                if hides { value.ty.clone() } else { reconciled.ty }
            }
        };
        if let StructInfo::Prim(info) = &mut ty
            && info.value.is_none()
            && info.dtype.is_none_or(|dtype| dtype.is_int())
        {
            // An integer scalar of unknown value becomes a symbol under its variable's name: after
            // `n: R.Prim("int64") = …`, dims may use `n`.
            info.value = Some(Dim::symbol(variable));
            self.check.forget(variable);
        }
        if let Some(Declared { ty, cursor, annotation }) = checked {
            self.check.refine_types(&ty, &value.ty, cursor.span(annotation.tokens));
        }
        let ty = self.check.types.share(ty);
        self.check.record_value(variable, &ty, &value);
        self.check.rows.push(Row {
            name: variable,
            kind: RowKind::Binding,
            ty: ty.clone(),
            inferred,
            in_dataflow: self.check.state.dataflow.is_some(),
            span,
            statement: self.check.statement,
        });
        let values = super::values::named(known, variable, &value);
        let dataflow = self.check.state.dataflow.map(|(_, ordinal)| ordinal);
        let branch_types = if is_coarser { self.check.branch_types_of(&value, &ty) } else { None };
        self.check.define(variable, Entry::Value { ty, dataflow, values, branch_types }, span);
    }

    fn annotation_clash(&mut self, variable: Name, declared: &Declared<'_>, value: &IrExpr, clash: &Clash) {
        let code = match clash.kind {
            ClashKind::Dtype => Code::DtypeMismatch,
            _ => Code::AnnotationShapeMismatch,
        };
        let Declared { ty, cursor, annotation } = declared;
        let given = readings::of_type(&value.ty, Reading::Inferred);
        let inferred = given.to_string();
        let text = self.check.written_type(&given);
        let mut diagnostic = mistake(
            code,
            guilty_part(*cursor, annotation, clash),
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
        let suggestions = self.check.explain_clash(&mut diagnostic, value, ty, clash);
        let clashing = format!("{} {}", clash.actual, clash.wanted);
        diagnostic = self.check.with_symbols(diagnostic, &clashing, [ty, &given]);
        diagnostic = self.check.with_facts(diagnostic, &clash.dims());
        if !matches!(value.ty, StructInfo::Error) {
            diagnostic = diagnostic.with_help(format!("if the value is right, annotate it {inferred}"));
        }
        if let Some(text) = text {
            diagnostic = diagnostic.with_fix(replace_fix(declared.place(), "write the inferred type", text));
        }
        self.check.report(diagnostic);
        self.check.want(value, ty, suggestions);
    }
}

/// Whether a value is an alias or a literal, not the result of a call. A less precise annotation on such a value
/// hides nothing: the variable keeps the value's type. On the result of a call, the annotation is the variable's
/// type. Both as in TVM 0.27.
fn is_no_computation(kind: &IrKind) -> bool {
    !matches!(kind, IrKind::Call(_) | IrKind::MatchCast(_) | IrKind::Error)
}

/// A declared type, with its annotation in the source.
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

/// Whether an expression is a literal number or boolean.
fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Integer | ExprKind::Float | ExprKind::Bool(_) => true,
        ExprKind::Unary(UnaryOp::Neg | UnaryOp::Pos, inner) | ExprKind::Parenthesized(inner) => is_literal(inner),
        _ => false,
    }
}

/// Returns the dtype of the symbol that a call such as `T.int32()` declares.
fn scalar_dtype(cursor: Cursor<'_>, value: &Expr) -> Option<DType> {
    let ExprKind::Call { callee, .. } = &value.kind else { return None };
    DType::parse(cursor.path(callee.tokens).rsplit('.').next()?)
}

/// Gives a literal its declared dtype, as in `x: T.int32 = 2` and `y: T.float32 = 2`.
fn adopt_dtype(declared: &StructInfo, literal: &mut IrExpr) {
    if let (StructInfo::Prim(declared), StructInfo::Prim(own)) = (declared, &mut literal.ty)
        && let Some(dtype) = declared.dtype
        && own.dtype.is_some_and(|own| own.is_int() || own.is_float() == dtype.is_float())
    {
        own.dtype = Some(dtype);
        own.value = own.value.take().filter(|_| dtype.is_int());
    }
}
