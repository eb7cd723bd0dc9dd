//! Elaborates headers of Relax functions: decorators, parameters, return type.

use super::advice::Anchor;
use super::elaborator::Elaborator;
use super::result::{BlockState, Row, RowKind, SegmentResult};
use super::scope::Scope;
use super::shared_types::SharedTypes;
use super::types::Binds;
use crate::entry::{Entry, FUNCTION_CONTEXT, FunctionContext, Outer, Place, SignatureDims, mistake, replace_fix};
use rx_base::name::NameMap;
use rx_base::{Code, DType, Dim, Name, Span};
use rx_context::{FileContext, Namespace};
use rx_ir::{FunctionSignature, PrimInfo, Signature, StructInfo};
use rx_syntax::ast::{Expr, ExprKind, Parameter, StatementKind, TokenIndex, TokenRange};
use rx_syntax::{Cursor, Segment};
use std::sync::Arc;

/// Elaborates the header segment of a Relax function; returns its signature, the result of the segment, and the pool
/// of types for the body.
pub(crate) fn elaborate_signature(
    segment: &Segment,
    file: &FileContext,
    outer: &dyn Outer,
) -> (Signature, SegmentResult, SharedTypes) {
    let mut elaborator = Elaborator::new(segment, BlockState::default(), file, outer);
    let signature = elaborator.function_header();
    let types = std::mem::take(&mut elaborator.check.types);
    (signature, elaborator.check.finish(), types)
}

impl<'a> Elaborator<'a> {
    fn function_header(&mut self) -> Signature {
        let segment = self.check.segment;
        let (mut pure, mut private) = (true, false);
        for statement in &segment.tree().statements {
            let cursor = segment.cursor(statement);
            match &statement.tree.kind {
                StatementKind::Decorator(expr) => {
                    pure &= cursor.flag(expr, "pure").unwrap_or(true);
                    self.check.anchor_purity(cursor, expr);
                    private |= cursor.flag(expr, "private").unwrap_or(false);
                }
                StatementKind::Def { name, type_params, params, ret } => {
                    self.check.state.header_indent = statement.indent;
                    let (params, ret_ty) = self.header(cursor, type_params, params, ret.as_ref());
                    let place = match ret {
                        Some(ret) => cursor.span(ret.tokens),
                        None => cursor.span(TokenRange::one(*name)),
                    };
                    let context = FunctionContext {
                        name: cursor.name(*name),
                        params: params.len(),
                        ret: ret_ty.clone(),
                        pure,
                        private,
                        bounds: Arc::default(),
                        num_input: None,
                        dims: self.signature_dims(type_params),
                    };
                    self.check.define(rx_base::name::name(FUNCTION_CONTEXT), Entry::Function(Arc::new(context)), place);
                    return Signature::Relax(FunctionSignature {
                        params: params.into(),
                        ret: ret_ty,
                        pure,
                        private,
                        num_input: None,
                    });
                }
                _ => {}
            }
        }
        Signature::Opaque
    }

    /// Elaborates parameters and return type, and defines their names in the innermost scope.
    pub(super) fn header(
        &mut self,
        cursor: Cursor<'a>,
        type_params: &[TokenIndex],
        params: &[Parameter],
        ret: Option<&Expr>,
    ) -> (Vec<(Name, StructInfo)>, Option<StructInfo>) {
        for token in type_params {
            let span = cursor.span(TokenRange::one(*token));
            self.check.define(cursor.name(*token), Entry::Symbol { bound: false, dtype: DType::INT64 }, span);
        }
        // Scalars and whole dims define symbols for all parameters, in any order: the first parameter may use a
        // symbol that the last one binds.
        for param in params {
            let own = cursor.parameter(param);
            if let (Some(token), Some(annotation)) = (param.tree.name, &param.tree.annotation)
                && let Some(dtype) = self.scalar_annotation(own, annotation)
            {
                let symbol = own.name(token);
                let ty = StructInfo::Prim(PrimInfo { dtype: Some(dtype), value: Some(Dim::symbol(symbol)) });
                self.check.define(symbol, Entry::value(ty), own.span(TokenRange::one(token)));
            }
        }
        for param in params {
            let own = cursor.parameter(param);
            if let Some(annotation) = &param.tree.annotation {
                self.bind_symbols(own, annotation, Binds::Parameters);
            }
        }
        // Collect the symbols before the types are elaborated: an unbound symbol that they report is treated as bound
        // afterwards.
        self.check.signature_symbols = self.check.scopes.last().map(Scope::integers).unwrap_or_default();
        let types = self.parameters(cursor, params);
        for (param, (_, ty)) in params.iter().filter(|param| param.tree.name.is_some()).zip(&types) {
            let own = cursor.parameter(param);
            if let Some(annotation) = &param.tree.annotation {
                self.check.refine_extents(ty, own.span(annotation.tokens));
            }
        }
        let ret = ret.map(|ret| {
            self.check.set_anchor(Anchor::Return, cursor.span(ret.tokens), 0);
            self.bind_symbols(cursor, ret, Binds::Return);
            self.type_of(cursor, ret)
        });
        (types, ret)
    }

    /// Returns the dims that the parameters of the last header bind.
    pub(super) fn signature_dims(&self, type_params: &[TokenIndex]) -> SignatureDims {
        let mut bound = self.check.signature_symbols.clone();
        bound.sort_unstable();
        SignatureDims { bound, type_params: !type_params.is_empty() }
    }

    fn parameters(&mut self, cursor: Cursor<'a>, params: &[Parameter]) -> Vec<(Name, StructInfo)> {
        let mut types = Vec::with_capacity(params.len());
        let mut seen: NameMap<()> = NameMap::default();
        // Headers with tens of thousands of weights occur in practice.
        seen.reserve(params.len());
        self.check.rows.reserve(params.len());
        self.check.reserve_definitions(params.len());
        for param in params {
            let own = cursor.parameter(param);
            let Some(token) = param.tree.name else { continue };
            let variable = own.name(token);
            let span = own.span(TokenRange::one(token));
            let ty = match &param.tree.annotation {
                Some(annotation) => match self.scalar_annotation(own, annotation) {
                    Some(dtype) => {
                        StructInfo::Prim(PrimInfo { dtype: Some(dtype), value: Some(Dim::symbol(variable)) })
                    }
                    None => {
                        let before = self.check.diagnostics.len();
                        let ty = self.type_of(own, annotation);
                        self.check.offer_dim_declarations(before);
                        self.check.types.share(ty)
                    }
                },
                None => {
                    if param.tree.error.is_none() {
                        let relax = self.check.file.spelled_namespace("R");
                        self.check.report(
                            mistake(Code::MissingAnnotation, span, format!("parameter `{variable}` has no type"))
                                .with_help(format!("write `{variable}: R.Tensor(…)`, or `{variable}: R.Any`"))
                                .with_fix(replace_fix(
                                    Span::empty(span.end),
                                    format!("write `{variable}: {relax}.Tensor`"),
                                    format!(": {relax}.Tensor"),
                                )),
                        );
                    }
                    StructInfo::Error
                }
            };
            let clashes = !matches!(ty, StructInfo::Prim(_)) && self.symbol_of_header(variable).is_some();
            if seen.insert(variable, ()).is_some() {
                self.check.error(Code::DuplicateDefinition, span, format!("two parameters are called `{variable}`"));
            } else if let Some(place) = self.symbol_of_header(variable).filter(|_| clashes) {
                self.parameter_and_symbol(variable, span, place, params.len());
            }
            self.check.rows.push(Row {
                name: variable,
                kind: RowKind::Param,
                ty: ty.clone(),
                inferred: false,
                in_dataflow: false,
                span,
                statement: self.check.statement,
            });
            if let Some(annotation) = &param.tree.annotation
                && self.check.nesting > 0
            {
                self.check.set_anchor(Anchor::TypeOf(variable), own.span(annotation.tokens), 0);
            }
            let values = match self.check.nesting {
                0 => super::values::of_parameter(types.len(), &ty, self.check.file.prepares_weights),
                // Elements are not tracked through the parameters of a nested function.
                _ => None,
            };
            // A later use of the name may mean the parameter or the dim.
            let known = if clashes { StructInfo::Error } else { ty.clone() };
            self.check.define(variable, Entry::Value { ty: known, dataflow: None, values, branch_types: None }, span);
            types.push((variable, ty));
        }
        types
    }

    /// Returns the definition of `name` as a symbolic dim of the header that is elaborated, if it is one.
    fn symbol_of_header(&self, name: Name) -> Option<Option<Span>> {
        match self.check.scopes.last()?.definition(name)? {
            (Entry::Symbol { bound: true, .. }, place) => Some(place),
            _ => None,
        }
    }

    /// Reports a parameter that has the same name as a symbolic dim.
    fn parameter_and_symbol(&mut self, name: Name, span: Span, symbol: Option<Span>, params: usize) {
        let message = format!("`{name}` is a parameter and a symbolic dim of the function: names mean one thing");
        let mut diagnostic = mistake(Code::DuplicateDefinition, span, message);
        if let Some(symbol) = symbol {
            diagnostic = diagnostic.with_label(Place::Here(symbol), format!("the dim `{name}`"));
        }
        let taken = |candidate: &str| {
            self.check.scopes.last().is_some_and(|scope| scope.definition(rx_base::name::name(candidate)).is_some())
        };
        // There are more candidates than names, so one of them is free.
        let mut candidates = (1..=params.saturating_mul(2) + 2).map(|number| format!("{name}_{number}"));
        if let Some(free) = candidates.find(|candidate| !taken(candidate)) {
            let fix = replace_fix(span, format!("call the parameter `{free}`"), free.clone());
            diagnostic =
                diagnostic.with_help(format!("call the parameter `{free}`, or the dim otherwise")).with_fix(fix);
        }
        self.check.report(diagnostic);
    }

    /// Returns the dtype of a scalar annotation: `T.int64`, `R.Prim("int64")`.
    fn scalar_annotation(&self, cursor: Cursor<'_>, annotation: &Expr) -> Option<DType> {
        let (callee, dtype) = match &annotation.kind {
            ExprKind::Attribute { .. } => (annotation, None),
            ExprKind::Call { callee, arguments } => match &arguments[..] {
                [argument] if argument.keyword.is_none_or(|keyword| cursor.text(keyword) == "dtype") => {
                    (&**callee, Some(DType::parse(&cursor.string_value(&argument.value)?)?))
                }
                _ => return None,
            },
            _ => return None,
        };
        let (head, rest) = cursor.path(callee.tokens).split_once('.')?;
        match (self.check.file.namespace(head)?, dtype) {
            (Namespace::Tir, None) => DType::parse(rest),
            (Namespace::Relax, Some(dtype)) if rest == "Prim" => Some(dtype),
            _ => None,
        }
    }
}

/// Returns the external functions that are declared at module level.
pub(crate) fn extern_declarations(segment: &Segment, file: &FileContext, outer: &dyn Outer) -> Vec<(Name, StructInfo)> {
    let mut elaborator = Elaborator::new(segment, BlockState::default(), file, outer);
    let mut declared = Vec::new();
    for statement in &segment.tree().statements {
        let cursor = segment.cursor(statement);
        let StatementKind::Assign { targets, value } = &statement.tree.kind else { continue };
        if !elaborator.check.is_relax_call(cursor, value, "ExternFunc") {
            continue;
        }
        let ty = elaborator.expr(cursor, value).ty;
        for target in targets.iter().filter(|target| matches!(target.kind, ExprKind::Name)) {
            declared.push((cursor.name(target.tokens.start), ty.clone()));
        }
    }
    declared
}
