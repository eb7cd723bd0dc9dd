//! Elaborates expressions: from syntax trees to typed Relax expressions.

use super::elaborator::Elaborator;
use super::ir::{error, int, prim_dim, scalar, tuple};
use crate::entry::{Entry, Place, mistake, replace_fix};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Code, DType, Name, Span, counted};
use rx_context::mistakes::suggest;
use rx_ir::struct_info::{MAX_DEPTH, MAX_PARTS};
use rx_ir::{Expr as IrExpr, ExprKind as IrKind, FunctionInfo, PrimInfo, PrimValue, Signature, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{BinaryOp, CompareOp, Expr, ExprKind, TokenRange, UnaryOp};
use std::sync::Arc;

impl Elaborator<'_> {
    /// Elaborates an expression. An expression that is not understood is reported and becomes an error node.
    pub(super) fn expr(&mut self, cursor: Cursor<'_>, expr: &Expr) -> IrExpr {
        let span = cursor.span(expr.tokens);
        match &expr.kind {
            ExprKind::Name => self.variable(cursor.name(expr.tokens.start), span),
            ExprKind::Integer => {
                let value = self.dim(cursor, expr);
                int(value, span)
            }
            ExprKind::Float => {
                let value = PrimValue::Float(cursor.float_value(expr).unwrap_or(f64::NAN));
                // A float literal has no dtype yet; its use determines it: `float32` next to a tensor, `float64` in a
                // list of scalars.
                IrExpr { kind: IrKind::Prim(value), ty: StructInfo::Prim(PrimInfo { dtype: None, value: None }), span }
            }
            ExprKind::Bool(value) => scalar(PrimValue::Bool(*value), DType::BOOL, span),
            ExprKind::String => {
                let text = cursor.string_value(expr).unwrap_or_default();
                IrExpr { kind: IrKind::Str(text.as_ref().into()), ty: StructInfo::String, span }
            }
            ExprKind::None => IrExpr { kind: IrKind::Error, ty: StructInfo::Object, span },
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                let items: Vec<IrExpr> = items.iter().map(|item| self.expr(cursor, item)).collect();
                self.tuple(items, span)
            }
            ExprKind::Parenthesized(inner) => {
                let mut inner = self.expr(cursor, inner);
                inner.span = span;
                inner
            }
            ExprKind::Call { callee, arguments } => self.call(cursor, expr, callee, arguments),
            ExprKind::Subscript { value, index } => self.subscript(cursor, value, index, span),
            ExprKind::Attribute { value, name } => self.attribute_access(cursor, value, *name, span),
            ExprKind::Unary(op, operand) => self.unary(cursor, *op, operand, span),
            ExprKind::Binary(op, left, right) => {
                let operands = [self.expr(cursor, left), self.expr(cursor, right)];
                self.infix(infix_operator(*op), operands, Some(*op), span)
            }
            ExprKind::Compare(first, rest) => match &rest[..] {
                [(op, second)] => {
                    let operands = [self.expr(cursor, first), self.expr(cursor, second)];
                    match (prim_dim(&operands[0]), prim_dim(&operands[1])) {
                        (Some(a), Some(b)) if !a.is_error() && !b.is_error() => {
                            scalar(PrimValue::Int(rx_prim_func::integer::compare(*op, a, b)), DType::BOOL, span)
                        }
                        _ => self.infix(comparison_operator(*op), operands, None, span),
                    }
                }
                _ => self.unsupported(span, "a chain of comparisons"),
            },
            ExprKind::Bool2(op, operands) => {
                let operands: Vec<IrExpr> = operands.iter().map(|operand| self.expr(cursor, operand)).collect();
                match operands.iter().all(|operand| matches!(operand.ty, StructInfo::Prim(_) | StructInfo::Error)) {
                    true => {
                        let conditions: Option<Vec<_>> = operands.iter().map(condition).collect();
                        let value = conditions.map(|all| PrimValue::Int(rx_prim_func::integer::logic(*op, all)));
                        scalar(value.unwrap_or(PrimValue::Opaque), DType::BOOL, span)
                    }
                    false => self.unsupported(span, "`and`/`or` of tensors (use `R.logical_and`, `R.logical_or`)"),
                }
            }
            ExprKind::Error => error(span),
            ExprKind::Lambda { .. } => self.unsupported(span, "a lambda"),
            ExprKind::Conditional { .. } => self.unsupported(span, "a conditional expression"),
            ExprKind::Comprehension => self.unsupported(span, "a comprehension"),
            ExprKind::Dict(_) | ExprKind::Set(_) => self.unsupported(span, "a dictionary or set"),
            _ => self.unsupported(span, "this expression"),
        }
    }

    fn unsupported(&mut self, span: Span, subject: &str) -> IrExpr {
        self.check.error(Code::UnsupportedConstruct, span, format!("{subject} has no meaning as a Relax value"));
        error(span)
    }

    /// Elaborates a name used as a value.
    pub(super) fn variable(&mut self, variable: Name, span: Span) -> IrExpr {
        match self.check.lookup(variable) {
            Some(Entry::Value { ty, dataflow, .. }) => {
                let block = self.check.state.dataflow.map(|(_, ordinal)| ordinal);
                // As in TVM, a block of a nested function may use the variables of the open blocks around it.
                let is_visible = |ordinal: &u32| {
                    block == Some(*ordinal) || block.is_some() && self.check.open_outside.contains(ordinal)
                };
                if let Some(ordinal) = dataflow.filter(|ordinal| !is_visible(ordinal)) {
                    self.escaping(variable, ordinal, span);
                    return IrExpr { kind: IrKind::Var(variable), ty: StructInfo::Error, span };
                }
                IrExpr { kind: IrKind::Var(variable), ty, span }
            }
            Some(Entry::Symbol { bound: true, dtype }) => {
                scalar(PrimValue::Int(rx_base::Dim::symbol(variable)), dtype, span)
            }
            Some(Entry::Symbol { bound: false, .. }) => {
                let dim = self.symbol(variable, span);
                int(dim, span)
            }
            Some(Entry::Captured) => {
                self.check.captured_name(variable, span);
                error(span)
            }
            Some(Entry::Module) => {
                self.check.error(Code::ArgumentType, span, format!("`{variable}` is the module, no value"));
                error(span)
            }
            Some(Entry::Function(_) | Entry::Facts(_)) | None => {
                self.check.undefined_name(variable, span);
                error(span)
            }
        }
    }

    /// Reports a dataflow variable used outside its block. The variable becomes an error, since another variable may
    /// have been meant; its uses are not reported again.
    fn escaping(&mut self, variable: Name, ordinal: u32, span: Span) {
        let definition = self.check.definition_of(variable);
        let mut diagnostic =
            mistake(Code::DataflowVarEscapes, span, format!("`{variable}` is local to its dataflow block"))
                .with_label(definition, "defined here, inside `with R.dataflow()`")
                .with_help(format!("add `{variable}` to the `R.output(…)` of its block"));
        if let Some(fix) = self.check.output_fix(ordinal, variable) {
            diagnostic = diagnostic.with_fix(fix);
        }
        self.check.report(diagnostic);
        self.check.redefine_everywhere(variable, Entry::value(StructInfo::Error), span);
    }

    /// Elaborates `value[index]`: a field of a tuple, a dim of a shape, or a constant of the metadata section.
    pub(super) fn subscript(&mut self, cursor: Cursor<'_>, value: &Expr, index: &Expr, span: Span) -> IrExpr {
        if let Some(constant) = self.metadata(cursor, value, index, span) {
            return constant;
        }
        if let Some(size) = self.inspected_axis(cursor, value, index, span) {
            return size;
        }
        let tuple = self.expr(cursor, value);
        let index_span = cursor.span(index.tokens);
        match &tuple.ty {
            StructInfo::Tuple(fields) => {
                let position = self.dim(cursor, index);
                let Some(position) = position.as_constant() else {
                    if !position.is_error() {
                        self.check.error(Code::TupleIndexOutOfRange, index_span, "a tuple's index must be a constant");
                    }
                    return error(span);
                };
                match usize::try_from(position).ok().and_then(|at| Some((at, fields.get(at)?))) {
                    Some((at, field)) => {
                        let ty = field.clone();
                        IrExpr { kind: IrKind::TupleGet(Box::new(tuple), at), ty, span }
                    }
                    None => {
                        let message =
                            format!("index {position} is out of range for a tuple of {} fields", fields.len());
                        let mut diagnostic = mistake(Code::TupleIndexOutOfRange, index_span, message);
                        diagnostic = self.check.with_definition(diagnostic, &tuple, &format!("is {}", tuple.ty));
                        if let Some(last) = fields.len().checked_sub(1) {
                            let nearest = if position < 0 { 0 } else { last };
                            diagnostic = diagnostic.with_help(format!("fields are 0 to {last}")).with_fix(replace_fix(
                                index_span,
                                format!("use field {nearest}"),
                                nearest.to_string(),
                            ));
                        }
                        self.check.report(diagnostic);
                        self.check.keep_field(span, index_span, &tuple.ty);
                        error(span)
                    }
                }
            }
            StructInfo::Shape(shape) => {
                let position = self.dim(cursor, index).as_constant();
                let at = position.and_then(|at| usize::try_from(at).ok());
                if let (Some(position), Some(ndim)) = (position, shape.ndim())
                    && at.is_none_or(|at| at >= ndim)
                {
                    let message =
                        format!("index {position} is out of range for a shape of {}", counted(ndim, "dimension"));
                    self.check.error(Code::TupleIndexOutOfRange, index_span, message);
                    return error(span);
                }
                let value = shape.dims().zip(at).and_then(|(dims, at)| dims.get(at)).cloned();
                scalar(value.map_or(PrimValue::Opaque, PrimValue::Int), DType::INT64, span)
            }
            StructInfo::Object => IrExpr { kind: IrKind::Error, ty: StructInfo::Object, span },
            StructInfo::Error => error(span),
            other => {
                let message = format!("{other} cannot be indexed: it is no tuple");
                self.check.report(
                    mistake(Code::NotATuple, cursor.span(value.tokens), message)
                        .with_help("to slice a tensor use `R.strided_slice` or `R.take`"),
                );
                error(span)
            }
        }
    }

    /// Elaborates `metadata["ir.GenericConst"][3]`, a constant of the metadata section; the section may be absent.
    fn metadata(&mut self, cursor: Cursor<'_>, value: &Expr, index: &Expr, span: Span) -> Option<IrExpr> {
        let ExprKind::Subscript { value: table, index: key } = &value.kind else { return None };
        if cursor.source(table.tokens) != "metadata" {
            return None;
        }
        let key = name(&cursor.string_value(key)?);
        let index = u32::try_from(cursor.integer_value(index)?).ok()?;
        let ty = match &self.check.file.constants {
            None => StructInfo::Error,
            Some(constants) => {
                let listed = constants.get(&key).map_or(&[][..], Vec::as_slice);
                let ty = listed.get(index as usize).map(|constant| constant.ty.clone());
                ty.unwrap_or_else(|| self.unknown_constant(key, index, listed.len(), span))
            }
        };
        Some(IrExpr { kind: IrKind::Metadata { key, index }, ty, span })
    }

    /// Reports an index of `key` in the metadata section, which has only `count` constants of it.
    fn unknown_constant(&mut self, key: Name, index: u32, count: usize, span: Span) -> StructInfo {
        let message = match count {
            0 => format!("the metadata section has no `{key}`"),
            1 => format!("the metadata section has 1 constant of `{key}`, so there is no index {index}"),
            _ => format!("the metadata section has {count} constants of `{key}`, so there is no index {index}"),
        };
        self.check.error(Code::UnknownConstant, span, message);
        StructInfo::Error
    }

    fn attribute_access(&mut self, cursor: Cursor<'_>, value: &Expr, attribute: u32, span: Span) -> IrExpr {
        if matches!(value.kind, ExprKind::Name) {
            let head = cursor.name(value.tokens.start);
            if self.is_module(cursor, value, attribute) {
                return self.global(cursor.name(attribute), span);
            }
            if self.check.file.namespace(&head).is_some() {
                let source = format!("{head}.{}", cursor.text(attribute));
                let message = format!("`{source}` is no value by itself; call it");
                self.check.error(Code::UnsupportedConstruct, span, message);
                return error(span);
            }
        }
        let (token, source) = (attribute, cursor.source(value.tokens));
        let attribute = cursor.text(attribute);
        if let Some(answer) = self.inspected_dtype(cursor, value, attribute, span) {
            return answer;
        }
        let value = self.expr(cursor, value);
        if let (StructInfo::Tensor(_), Some(operator)) = (&value.ty, super::inspected::of_tensor(attribute)) {
            return self.check.operator_on(operator, vec![value], span);
        }
        if !value.ty.is_error() {
            let mut diagnostic =
                mistake(Code::UnsupportedConstruct, span, format!("a Relax value has no attribute `{attribute}`"));
            let is_tensor = matches!(value.ty, StructInfo::Tensor(_));
            let near = nearest(attribute, super::inspected::OF_TENSOR).filter(|_| is_tensor);
            if attribute == "shape" || near == Some("shape") {
                diagnostic = diagnostic.with_help("its shape is `R.shape_of(x)`");
                let text = format!("{}.shape_of({source})", self.check.file.spelled_namespace("R"));
                let fix = replace_fix(span, format!("change to {text}"), text);
                diagnostic.fixes.extend(is_tensor.then_some(fix));
            } else if let Some(near) = near {
                let place = Place::Here(cursor.span(TokenRange::one(token)));
                diagnostic = suggest(diagnostic, near, vec![(place, near.to_owned())]);
            }
            self.check.report(diagnostic);
        }
        error(span)
    }

    /// Whether the name `head` in `head.member` denotes the module.
    pub(super) fn is_module(&mut self, cursor: Cursor<'_>, head: &Expr, member: u32) -> bool {
        self.check.is_module(cursor.name(head.tokens.start), cursor.span(head.tokens), cursor.name(member))
    }

    /// Elaborates a function of the module used as a value.
    pub(super) fn global(&mut self, function: Name, span: Span) -> IrExpr {
        let ty = match self.check.asked.signature(function).as_deref() {
            None => {
                self.check.undefined_global(function, span);
                StructInfo::Error
            }
            Some(Signature::Relax(signature)) => StructInfo::Function(Arc::new(FunctionInfo {
                params: Some(signature.params.iter().map(|(_, ty)| ty.clone()).collect()),
                ret: signature.ret.clone().unwrap_or(StructInfo::Object),
                pure: signature.pure,
            })),
            Some(Signature::Extern(ty)) => ty.clone(),
            Some(Signature::Prim(_) | Signature::Opaque) => StructInfo::callable(),
        };
        IrExpr { kind: IrKind::Global(function), ty, span }
    }

    fn unary(&mut self, cursor: Cursor<'_>, op: UnaryOp, operand: &Expr, span: Span) -> IrExpr {
        let operand = self.expr(cursor, operand);
        match (&operand.ty, &operand.kind, op) {
            (ty, IrKind::Prim(PrimValue::Float(value)), UnaryOp::Neg) => {
                IrExpr { kind: IrKind::Prim(PrimValue::Float(-value)), ty: ty.clone(), span }
            }
            (StructInfo::Prim(info), IrKind::Prim(value), UnaryOp::Neg) => {
                let value = match value {
                    PrimValue::Int(dim) => PrimValue::Int(-dim),
                    _ => PrimValue::Opaque,
                };
                scalar(value, info.dtype.unwrap_or(DType::INT64), span)
            }
            (StructInfo::Prim(_), _, UnaryOp::Pos) => operand,
            (StructInfo::Prim(_), _, UnaryOp::Not) => {
                let zero = rx_base::Dim::constant(0);
                let value = condition(&operand).map(|dim| {
                    PrimValue::Int(rx_prim_func::integer::compare(rx_syntax::ast::CompareOp::Eq, dim, zero))
                });
                scalar(value.unwrap_or(PrimValue::Opaque), DType::BOOL, span)
            }
            (StructInfo::Prim(info), _, _) => {
                let dtype = if op == UnaryOp::Not { DType::BOOL } else { info.dtype.unwrap_or(DType::INT64) };
                scalar(PrimValue::Opaque, dtype, span)
            }
            (StructInfo::Error, ..) => error(span),
            (_, _, UnaryOp::Neg) => self.check.operator_on("negative", vec![operand], span),
            (_, _, UnaryOp::Invert) => self.check.operator_on("bitwise_not", vec![operand], span),
            (_, _, UnaryOp::Not) => self.check.operator_on("logical_not", vec![operand], span),
            _ => operand,
        }
    }

    fn infix(&mut self, operator: &str, operands: [IrExpr; 2], op: Option<BinaryOp>, span: Span) -> IrExpr {
        let [left, right] = &operands;
        match (&left.ty, &right.ty) {
            (StructInfo::Error, _) | (_, StructInfo::Error) => error(span),
            (StructInfo::Prim(a), StructInfo::Prim(b)) => {
                let dtype = wider(a.dtype, b.dtype);
                match (prim_dim(left), prim_dim(right), op) {
                    (Some(a), Some(b), Some(op)) => {
                        let value = rx_prim_func::integer::binary(op, &a, &b);
                        scalar(PrimValue::Int(value), dtype, span)
                    }
                    _ => scalar(PrimValue::Opaque, if op.is_some() { dtype } else { DType::BOOL }, span),
                }
            }
            _ => self.check.operator_on(operator, operands.into(), span),
        }
    }
}

/// Returns the operator that an infix operator on tensors denotes.
fn infix_operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "subtract",
        BinaryOp::Mul => "multiply",
        BinaryOp::Div => "divide",
        BinaryOp::FloorDiv => "floor_divide",
        BinaryOp::Mod => "mod",
        BinaryOp::Pow => "power",
        BinaryOp::MatMul => "matmul",
        BinaryOp::LeftShift => "left_shift",
        BinaryOp::RightShift => "right_shift",
        BinaryOp::BitAnd => "bitwise_and",
        BinaryOp::BitOr => "bitwise_or",
        BinaryOp::BitXor => "bitwise_xor",
    }
}

fn comparison_operator(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Lt => "less",
        CompareOp::Le => "less_equal",
        CompareOp::Gt => "greater",
        CompareOp::Ge => "greater_equal",
        CompareOp::Ne | CompareOp::IsNot | CompareOp::NotIn => "not_equal",
        CompareOp::Eq | CompareOp::Is | CompareOp::In => "equal",
    }
}

fn wider(a: Option<DType>, b: Option<DType>) -> DType {
    match (a, b) {
        (Some(a), Some(b)) if a.is_float() != b.is_float() => {
            if a.is_float() {
                a
            } else {
                b
            }
        }
        (Some(a), Some(b)) => {
            if b.bits > a.bits {
                b
            } else {
                a
            }
        }
        (one, other) => one.or(other).unwrap_or(DType::INT64),
    }
}

/// Returns a scalar as a condition: a comparison, or an integer that is true if it is not 0.
fn condition(expr: &IrExpr) -> Option<rx_base::Dim> {
    match &expr.kind {
        IrKind::Prim(PrimValue::Bool(value)) => Some(rx_base::Dim::constant(i64::from(*value))),
        _ => prim_dim(expr).filter(|dim| !dim.is_error()),
    }
}

impl Elaborator<'_> {
    /// Creates a tuple, with a type of bounded size.
    pub(super) fn tuple(&mut self, items: Vec<IrExpr>, span: Span) -> IrExpr {
        let mut made = tuple(items, span);
        made.ty = self.bounded(made.ty, span);
        made
    }

    /// Returns the type, or reports at `span` that it is too large to keep and returns an error.
    pub(super) fn bounded(&mut self, ty: StructInfo, span: Span) -> StructInfo {
        if !ty.is_too_large() {
            return ty;
        }
        let message = format!("the type has more than {MAX_PARTS} parts or nests deeper than {MAX_DEPTH}");
        let report = mistake(Code::NestingTooDeep, span, message);
        self.check.report(report.with_note("values that depend on it are not checked"));
        StructInfo::Error
    }
}
