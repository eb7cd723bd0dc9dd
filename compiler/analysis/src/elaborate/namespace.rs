//! Elaborates calls, by their callee: `R.…`, `T.…`, `cls.f`, or a function value.

use super::bound_call::{BoundCall, current_keyword};
use super::call::default_slot;
use super::call_tir::WrittenOutputs;
use super::elaborator::Elaborator;
use super::ir::{error, int, prim_dim, scalar, shape};
use crate::entry::mistake;
use rx_base::name::name;
use rx_base::{Code, DType, Dim, Span};
use rx_context::Namespace;
use rx_context::mistakes::suggest_in_place;
use rx_ir::{Argument as IrArgument, Call, Callee, Expr as IrExpr, ExprKind as IrKind, Literal, PrimValue, StructInfo};
use rx_prim_func::names::members;
use rx_prim_func::{functions, integer};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, TokenRange, UnaryOp};
use std::sync::Arc;

impl Elaborator<'_> {
    /// Elaborates a call expression.
    pub(super) fn call(&mut self, cursor: Cursor<'_>, call: &Expr, callee: &Expr, arguments: &[Argument]) -> IrExpr {
        let span = cursor.span(call.tokens);
        if let ExprKind::Attribute { .. } = &callee.kind {
            let source = cursor.path(callee.tokens);
            if let Some((head, rest)) = source.split_once('.')
                && callee.is_dotted_name()
            {
                match self.check.file.namespace(head) {
                    Some(Namespace::Relax) => return self.relax_call(cursor, call, callee, arguments, rest.trim()),
                    Some(Namespace::Tir) => return self.tir_call(cursor, rest.trim(), arguments, call.tokens),
                    Some(Namespace::Ir) => return IrExpr { kind: IrKind::Error, ty: StructInfo::Object, span },
                    None => {}
                }
            }
            if let ExprKind::Attribute { value, name } = &callee.kind {
                if matches!(value.kind, ExprKind::Name) && self.is_module(cursor, value, *name) {
                    let args = self.operands(cursor, arguments);
                    let callee = cursor.span(callee.tokens);
                    return self.check.global_call(cursor.name(*name), args, callee, span);
                }
                if cursor.text(*name) == "astype" {
                    return self.astype(cursor, value, arguments, span);
                }
            }
        }
        self.operator_without_namespace(cursor, callee);
        let function = self.expr(cursor, callee);
        let args = self.operands(cursor, arguments);
        self.check.value_call(function, args, span)
    }

    /// Elaborates the positional arguments of a call.
    fn operands(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) -> Vec<IrExpr> {
        arguments
            .iter()
            .filter(|argument| argument.keyword.is_none())
            .map(|argument| self.expr(cursor, &argument.value))
            .collect()
    }

    /// Elaborates `x.astype("float16")`, the only operator that TVM provides as a method.
    fn astype(&mut self, cursor: Cursor<'_>, value: &Expr, arguments: &[Argument], span: Span) -> IrExpr {
        let [argument] = arguments else { return self.missing(span, "x.astype(dtype)") };
        let value = self.expr(cursor, value);
        if let StructInfo::Prim(_) = value.ty {
            let (dtype, _) = self.dtype_of(cursor, &argument.value);
            let known = prim_dim(&value).map_or(PrimValue::Opaque, PrimValue::Int);
            return dtype.map_or_else(|| error(span), |dtype| scalar(known, dtype, span));
        }
        self.cast(cursor, value, &argument.value, span)
    }

    /// Elaborates `R.astype(value, dtype)` for an operand that is already elaborated.
    fn cast(&mut self, cursor: Cursor<'_>, value: IrExpr, dtype: &Expr, span: Span) -> IrExpr {
        let Some(schema) = rx_ops::find(name("astype")) else { return error(span) };
        let mut spans = vec![Some(value.span), Some(cursor.span(dtype.tokens))];
        let mut slots = vec![IrArgument::Operand(value)];
        for param in schema.params.iter().skip(1) {
            let slot = if slots.len() == 1 { self.argument(schema, param, cursor, dtype) } else { default_slot(param) };
            slots.push(slot);
        }
        spans.resize(slots.len(), None);
        self.check.infer(BoundCall { schema, slots, spans, call_span: span, callee_span: span, broken: false })
    }

    fn relax_call(
        &mut self,
        cursor: Cursor<'_>,
        call: &Expr,
        callee: &Expr,
        arguments: &[Argument],
        function: &str,
    ) -> IrExpr {
        let span = cursor.span(call.tokens);
        // `relax.op.add` is the Python API's name of `R.add`.
        let function = match function.strip_prefix("op.").unwrap_or(function) {
            "stop_lift_params" => "builtin.stop_lift_params",
            function => function,
        };
        if function != "match_cast" {
            self.check.check_form(cursor, arguments, function);
        }
        match function {
            "const" => return self.constant(cursor, arguments, span),
            "dist.const" => return self.distributed_constant(cursor, arguments, span),
            "shape" | "ShapeExpr" => return self.shape_value(cursor, arguments, span),
            "tuple" => {
                let items = arguments.iter().map(|argument| self.expr(cursor, &argument.value)).collect();
                return self.tuple(items, span);
            }
            "str" => return self.string_value(cursor, arguments, span),
            "dtype" => return self.dtype_value(cursor, arguments, span),
            "prim_value" => {
                return match arguments {
                    [argument, ..] => {
                        let mut value = self.expr(cursor, &argument.value);
                        value.span = span;
                        value
                    }
                    [] => self.missing(span, "R.prim_value(value)"),
                };
            }
            "ExternFunc" => return self.extern_function(cursor, arguments, span),
            "match_cast" => return self.match_cast(cursor, arguments, span),
            "call_packed" => return self.call_packed(cursor, callee, arguments, span),
            "device" | "cpu" | "cuda" | "vdevice" => {
                return IrExpr { kind: IrKind::Error, ty: StructInfo::Object, span };
            }
            "dist.call_tir" => {
                let Some(schema) = rx_ops::find(name("call_tir")) else { return error(span) };
                let bound = self.bind(schema, cursor, call, callee, arguments);
                return self.check.infer(bound);
            }
            _ => {}
        }
        if let Some(value) = self.sugar(cursor, function, arguments, span) {
            return value;
        }
        match self.check.file.operator(name(function)) {
            Some(schema) => {
                let bound = self.bind(schema, cursor, call, callee, arguments);
                match function {
                    "call_tir" | "call_tir_inplace" | "call_tir_with_grad" => {
                        self.check.call_tir(bound, &WrittenOutputs::of(schema, cursor, arguments))
                    }
                    "assert_op" => {
                        let sound = self.check.diagnostics.len();
                        let value = self.check.infer(bound);
                        if self.check.diagnostics.len() == sound {
                            self.refine_by_assertion(cursor, arguments);
                        }
                        value
                    }
                    _ => self.check.infer(bound),
                }
            }
            None => self.unknown_operator(cursor, callee, arguments, function, span),
        }
    }

    pub(super) fn missing(&mut self, span: Span, usage: &str) -> IrExpr {
        self.check.error(Code::MissingArgument, span, format!("an argument is missing: `{usage}`"));
        error(span)
    }

    fn constant(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let mut value = None;
        let mut dtype = None;
        for (at, argument) in arguments.iter().enumerate() {
            match argument.keyword.map(|keyword| cursor.text(keyword)) {
                None if at == 0 => value = Some(&argument.value),
                None if at == 1 => dtype = Some(&argument.value),
                Some("value") => value = Some(&argument.value),
                Some("dtype") => dtype = Some(&argument.value),
                _ => {}
            }
        }
        let Some(value) = value else { return self.missing(span, "R.const(value, dtype)") };
        let stated = dtype.map(|dtype| self.dtype_of(cursor, dtype));
        let Some((dims, literal)) = self.literal(cursor, value) else {
            let ty = match stated {
                Some((dtype @ Some(_), _)) => StructInfo::tensor_of(rx_ir::Shape::Error, dtype),
                _ => StructInfo::Error,
            };
            return IrExpr { kind: IrKind::Error, ty, span };
        };
        // TVM relax/expr.py: Python ints become int32, floats float32.
        let natural = match literal {
            Literal::Int(_) => DType::INT32,
            Literal::Float(_) => DType::FLOAT32,
            Literal::Bool(_) => DType::BOOL,
        };
        let (dtype, dtype_error) = match stated {
            Some((Some(dtype), _)) => (Some(dtype), false),
            Some((None, true)) => (None, true),
            _ => (Some(natural), false),
        };
        let kind = self.constant_kind(cursor, value, &dims, literal);
        let dims: Vec<Dim> = dims.into_iter().map(Dim::constant).collect();
        let ty =
            rx_ir::TensorInfo { shape: rx_ir::Shape::known(dims), dtype, vdevice: None, dtype_error, readings: None };
        IrExpr { kind, ty: ty.into(), span }
    }

    /// Returns the kind of a constant: its elements if they are recorded or few, otherwise only its first element.
    fn constant_kind(&mut self, cursor: Cursor<'_>, value: &Expr, dims: &[i64], literal: Literal) -> IrKind {
        /// The maximal number of elements that a check keeps; lowering needs them all.
        const MOST_CHECKED: i64 = 1 << 16;
        let count = dims.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim));
        let is_small = count.is_some_and(|count| count <= MOST_CHECKED);
        if dims.is_empty() || !(self.check.is_recording() || is_small) {
            return IrKind::Constant(literal);
        }
        let mut elements = Vec::new();
        self.elements(cursor, value, &mut elements);
        IrKind::Elements(elements.into())
    }

    /// Collects the numbers in nested lists, in order.
    fn elements(&mut self, cursor: Cursor<'_>, value: &Expr, into: &mut Vec<Literal>) {
        match &value.kind {
            ExprKind::List(items) | ExprKind::Tuple(items) => {
                items.iter().for_each(|item| self.elements(cursor, item, into));
            }
            ExprKind::Parenthesized(inner) => self.elements(cursor, inner, into),
            _ => into.extend(self.literal(cursor, value).map(|(_, literal)| literal)),
        }
    }

    /// Elaborates `R.dist.const(value, R.DTensor(…))`, a constant of the given type.
    fn distributed_constant(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let stated = arguments.iter().enumerate().find(|(at, argument)| match argument.keyword {
            Some(keyword) => matches!(cursor.text(keyword), "ty" | "struct_info"),
            None => *at == 1,
        });
        let Some((_, stated)) = stated else { return self.missing(span, "R.dist.const(value, ty)") };
        let ty = self.type_of(cursor, &stated.value);
        let literal = arguments.first().and_then(|argument| self.literal(cursor, &argument.value));
        let kind = literal.map_or(IrKind::Error, |(_, literal)| IrKind::Constant(literal));
        IrExpr { kind, ty, span }
    }

    /// Returns the shape and the first element of a literal; `None` for a mistake or a captured Python value.
    fn literal(&mut self, cursor: Cursor<'_>, value: &Expr) -> Option<(Vec<i64>, Literal)> {
        match &value.kind {
            ExprKind::Integer => {
                let value = cursor.integer_value(value).unwrap_or(i128::MAX);
                let value = i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
                Some((Vec::new(), Literal::Int(value)))
            }
            ExprKind::Float => Some((Vec::new(), Literal::Float(cursor.float_value(value)?))),
            ExprKind::Bool(value) => Some((Vec::new(), Literal::Bool(*value))),
            // TVM prints infinities as `R.const("-inf", "float32")`, and cannot parse this itself.
            ExprKind::String => {
                let text = cursor.string_value(value)?;
                match text.trim().parse() {
                    Ok(value) => Some((Vec::new(), Literal::Float(value))),
                    Err(_) => {
                        let span = cursor.span(value.tokens);
                        self.check.error(Code::AttrType, span, format!("const: \"{text}\" is no number"));
                        None
                    }
                }
            }
            ExprKind::Parenthesized(inner) => self.literal(cursor, inner),
            ExprKind::Unary(UnaryOp::Neg, operand) => Some(match self.literal(cursor, operand)? {
                (dims, Literal::Int(value)) => (dims, Literal::Int(value.saturating_neg())),
                (dims, Literal::Float(value)) => (dims, Literal::Float(-value)),
                other => other,
            }),
            ExprKind::List(items) | ExprKind::Tuple(items) => {
                let mut first: Option<(Vec<i64>, Literal)> = None;
                for item in items {
                    let (dims, literal) = self.literal(cursor, item)?;
                    match &mut first {
                        None => first = Some((dims, literal)),
                        Some((known, _)) if *known != dims => {
                            let span = cursor.span(item.tokens);
                            self.check.error(Code::AttrType, span, "const: rows of different shapes make no tensor");
                            return None;
                        }
                        // As in NumPy, one float makes all elements floats.
                        Some((_, known)) if matches!(literal, Literal::Float(_)) => *known = literal,
                        Some(_) => {}
                    }
                }
                let (mut dims, literal) = first.unwrap_or((Vec::new(), Literal::Float(0.0)));
                dims.insert(0, i64::try_from(items.len()).unwrap_or(i64::MAX));
                Some((dims, literal))
            }
            // `float("-inf")`, `T.float32(1)`.
            ExprKind::Call { callee, arguments } if self.is_scalar_maker(cursor, callee) => {
                let [argument] = &arguments[..] else { return None };
                self.literal(cursor, &argument.value)
            }
            // `np.array(…)`: only Python can evaluate it.
            _ => {
                self.check.python_names(cursor, value);
                None
            }
        }
    }

    fn is_scalar_maker(&self, cursor: Cursor<'_>, callee: &Expr) -> bool {
        let source = cursor.path(callee.tokens);
        source == "float" || source.split_once('.').is_some_and(|(head, _)| self.check.file.namespace(head).is_some())
    }

    fn shape_value(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let mut value = arguments.first().map(|argument| &argument.value);
        while let Some(Expr { kind: ExprKind::Parenthesized(inner), .. }) = value {
            value = Some(inner);
        }
        match value {
            Some(Expr { kind: ExprKind::List(dims) | ExprKind::Tuple(dims), .. }) => {
                let dims = dims.iter().map(|dim| self.dim(cursor, dim)).collect();
                shape(dims, span)
            }
            Some(other) => {
                let value = self.expr(cursor, other);
                if !matches!(value.ty, StructInfo::Error | StructInfo::Shape(_) | StructInfo::Object) {
                    let message = format!("shape: a list of dims is wanted, this is {}", value.ty);
                    self.check.error(Code::ArgumentType, value.span, message);
                }
                IrExpr { kind: IrKind::Error, ty: StructInfo::Error, span }
            }
            None => self.missing(span, "R.shape([dim, …])"),
        }
    }

    fn string_value(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let Some(argument) = arguments.first() else { return self.missing(span, "R.str(\"text\")") };
        let text = cursor.string_value(&argument.value);
        if text.is_none() && is_number(&argument.value) {
            let place = cursor.span(argument.value.tokens);
            self.check.error(Code::ArgumentType, place, "str: a string is wanted, this is a number");
        }
        let kind = IrKind::Str(text.unwrap_or_default().as_ref().into());
        IrExpr { kind, ty: StructInfo::String, span }
    }

    fn dtype_value(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        match arguments.first().map(|argument| self.dtype_of(cursor, &argument.value)) {
            Some((Some(dtype), _)) => IrExpr { kind: IrKind::DType(dtype), ty: StructInfo::Object, span },
            Some(_) => IrExpr { kind: IrKind::Error, ty: StructInfo::Object, span },
            None => self.missing(span, "R.dtype(\"float32\")"),
        }
    }

    fn extern_function(&mut self, cursor: Cursor<'_>, arguments: &[Argument], span: Span) -> IrExpr {
        let Some(first) = arguments.first() else { return self.missing(span, "R.ExternFunc(\"name\")") };
        if is_number(&first.value) {
            let place = cursor.span(first.value.tokens);
            let message = "ExternFunc: the name of a function is wanted, this is a number";
            self.check.error(Code::ArgumentType, place, message);
        }
        let symbol = cursor.string_value(&first.value).unwrap_or_default();
        let ty = match arguments.get(1) {
            Some(argument) => self.type_of(cursor, &argument.value),
            None => StructInfo::callable(),
        };
        IrExpr { kind: IrKind::Extern(name(&symbol)), ty, span }
    }

    fn call_packed(&mut self, cursor: Cursor<'_>, callee: &Expr, arguments: &[Argument], span: Span) -> IrExpr {
        let mut types = None;
        let mut operands = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            let keyword = argument.keyword.map(|keyword| current_keyword(cursor.text(keyword)));
            match keyword {
                Some("ty_args") => {
                    types = Some(match &argument.value.kind {
                        ExprKind::Tuple(types) | ExprKind::List(types) => {
                            types.iter().map(|ty| self.type_of(cursor, ty)).collect::<Vec<_>>()
                        }
                        ExprKind::None => Vec::new(),
                        _ => vec![self.type_of(cursor, &argument.value)],
                    });
                }
                Some(_) => {}
                None => {
                    let value = self.expr(cursor, &argument.value);
                    if at == 0 && !may_name_function(&value) {
                        let message =
                            format!("call_packed: the first argument is a function's name, this is {}", value.ty);
                        self.check.error(Code::ArgumentType, value.span, message);
                    }
                    operands.push(value);
                }
            }
        }
        if arguments.first().is_none_or(|argument| argument.keyword.is_some()) {
            return self.missing(span, "R.call_packed(\"name\", …, ty_args=…)");
        }
        let callee = cursor.span(callee.tokens);
        let is_pure =
            matches!(operands.first().map(|first| &first.kind), Some(IrKind::Str(name)) if is_known_as_pure(name));
        let fix = self.check.pure_call_fix(callee, (types.is_some(), span), is_pure);
        self.check.impure_call("call_packed", callee, fix);
        let ty = match types.as_deref() {
            None | Some([]) => StructInfo::Object,
            Some([one]) => one.clone(),
            Some(several) => StructInfo::tuple(several.to_vec()),
        };
        // The arguments have the order of the schema of `call_pure_packed`.
        let arguments = operands.split_off(operands.len().min(1));
        let arguments = operands
            .into_iter()
            .map(IrArgument::Operand)
            .chain([IrArgument::Operands(arguments), IrArgument::Types(types.unwrap_or_default())])
            .collect();
        let call = Call { callee: Callee::Op(name("call_packed")), arguments };
        IrExpr { kind: IrKind::Call(Arc::new(call)), ty, span }
    }

    /// Reports the arguments of a call of `T.` that do not fit its function; returns whether there are any.
    pub(super) fn is_wrong_tir_call(
        &mut self,
        cursor: Cursor<'_>,
        function: &str,
        arguments: &[Argument],
        call: TokenRange,
    ) -> bool {
        let Some(known) = functions::find(function) else { return false };
        let wrong = functions::mistakes_of(cursor, known, &format!("T.{function}"), arguments, call);
        for wrong in &wrong {
            let diagnostic = mistake(wrong.code, cursor.span(wrong.tokens), &*wrong.message);
            self.check.report(suggest_in_place(diagnostic, wrong.meant));
        }
        !wrong.is_empty()
    }

    /// Elaborates a scalar made by `T.…`.
    fn tir_call(&mut self, cursor: Cursor<'_>, function: &str, arguments: &[Argument], tokens: TokenRange) -> IrExpr {
        let span = cursor.span(tokens);
        if let Some(dtype) = DType::parse(function) {
            if let Some(surplus) = arguments.get(1).filter(|argument| argument.keyword.is_none()) {
                let place = cursor.span(surplus.value.tokens);
                let message = format!("T.{function}: takes one value, more are passed");
                self.check.error(Code::TooManyArguments, place, message);
            }
            let value = match arguments {
                [argument] if dtype.is_float() => match self.literal(cursor, &argument.value) {
                    Some((_, Literal::Float(value))) => PrimValue::Float(value),
                    Some((_, Literal::Int(value))) => PrimValue::Float(value as f64),
                    _ => PrimValue::Opaque,
                },
                [argument] if dtype.is_bool() => match argument.value.kind {
                    ExprKind::Bool(value) => PrimValue::Bool(value),
                    _ => PrimValue::Opaque,
                },
                [argument] => PrimValue::Int(self.dim(cursor, &argument.value)),
                _ => PrimValue::Opaque,
            };
            return scalar(value, dtype, span);
        }
        if self.is_wrong_tir_call(cursor, function, arguments, tokens) {
            return IrExpr { kind: IrKind::Prim(PrimValue::Opaque), ty: StructInfo::Error, span };
        }
        match function {
            "max" | "min" | "floordiv" | "floormod" | "truncdiv" | "truncmod" | "FloorDiv" | "FloorMod" | "Div"
            | "Mod" | "if_then_else" | "Select" | "ceildiv" => {
                let dim = integer::written_call(cursor, function, arguments, |value| self.dim(cursor, value));
                int(dim, span)
            }
            "Cast" | "cast" => {
                let arguments = functions::values(cursor, function, arguments);
                let (dtype, value) = match (function, &*arguments) {
                    ("Cast", [dtype, value, ..]) | ("cast", [value, dtype, ..]) => (Some(dtype), Some(value)),
                    _ => (None, None),
                };
                let dtype = dtype.and_then(|argument| DType::parse(&cursor.string_value(&argument.value)?));
                let value = value.map(|argument| self.dim(cursor, &argument.value));
                match (dtype, value) {
                    (Some(dtype), Some(value)) if dtype.is_int() && !value.is_error() => {
                        scalar(PrimValue::Int(value), dtype, span)
                    }
                    (dtype, _) => scalar(PrimValue::Opaque, dtype.unwrap_or(DType::INT64), span),
                }
            }
            _ => {
                let member = function.split('.').next().unwrap_or(function);
                if !members::is_member(member) {
                    self.check.error(Code::UnknownOperator, span, format!("`T` has no `{member}`"));
                }
                for argument in arguments {
                    self.argument_of_unknown(cursor, argument);
                }
                IrExpr { kind: IrKind::Prim(PrimValue::Opaque), ty: StructInfo::Error, span }
            }
        }
    }
}

/// Whether a packed function of TVM's virtual machine is known to compute a value without side effects (TVM
/// src/runtime/vm/builtin.cc).
fn is_known_as_pure(function: &str) -> bool {
    matches!(
        function.strip_prefix("vm.builtin."),
        Some("tensor_to_shape" | "shape_of" | "reshape" | "make_tuple" | "tuple_getitem")
    )
}

fn is_number(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Integer | ExprKind::Float | ExprKind::Bool(_))
}

/// Whether a value may be the callee of a packed call: the name of a function, or a function. A variable of unknown
/// type is not accepted.
fn may_name_function(value: &IrExpr) -> bool {
    match &value.ty {
        StructInfo::Object => !matches!(value.kind, IrKind::Var(_) | IrKind::DType(_)),
        ty => matches!(ty, StructInfo::String | StructInfo::Function(_) | StructInfo::Error),
    }
}

/// Whether `R.name` has a meaning without being an operator.
pub(crate) fn is_special_form(name: &str) -> bool {
    special_forms().any(|form| form == name)
}

/// Returns the names of `R` that are not operators and have a meaning in a program.
pub fn special_forms() -> impl Iterator<Item = &'static str> {
    SPECIAL_FORMS.iter().chain(super::sugar::FUNCTIONS).copied()
}

/// Names of `R` that build programs in Python, and names of devices: TVM's parser evaluates them, rx does not.
pub(super) const BUILDER_FORMS: &[&str] = &[
    "arg",
    "device_mesh",
    "emit_match_cast",
    "emit_var_binding",
    "ext_dev",
    "func_name",
    "func_ret_ty",
    "func_ret_type",
    "func_ret_value",
    "hexagon",
    "metal",
    "opencl",
    "rewriter",
    "rocm",
    "vpi",
    "vulkan",
    "webgpu",
];

/// Forms of `R` that are not operators.
const SPECIAL_FORMS: &[&str] = &[
    "const",
    "shape",
    "tuple",
    "str",
    "dtype",
    "prim_value",
    "ExternFunc",
    "match_cast",
    "call_packed",
    "output",
    "func_attr",
    "dataflow",
    "dist.call_tir",
    "dist.const",
];
