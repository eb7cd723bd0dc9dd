//! Elaborates struct info annotations, such as `R.Tensor((n, 64), dtype="float32")`, in all their spellings.

use super::dim::is_identifier;
use super::elaborator::Elaborator;
use super::forms::{self, Form};
use crate::entry::{Entry, Place, mistake, replace_fix, suggest_string};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Code, DType, Dim, Fix, Name, Span, counted};
use rx_context::Namespace;
use rx_context::file_context::DeclaredVDevice;
use rx_context::mistakes::suggest;
use rx_ir::{DTensorInfo, FunctionInfo, Placement, PrimInfo, Shape, StructInfo, TensorInfo, VDevice};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind};
use std::sync::Arc;

/// The position of a type, which decides which of its whole dims bind symbols.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Binds {
    /// A parameter's type binds declared symbols and strings.
    Parameters,
    /// A `match_cast` binds declared symbols without a value, and strings.
    MatchCast,
    /// A return type declares the symbols of its strings, without binding them.
    Return,
}

/// Whether an argument of a type means the same wherever it is written: numbers, and the name of a dtype. A string
/// among dims is a symbol, and a `vdevice` depends on the module.
fn is_constant(argument: &Expr) -> bool {
    match &argument.kind {
        ExprKind::Tuple(dims) | ExprKind::List(dims) => dims.iter().all(|dim| matches!(dim.kind, ExprKind::Integer)),
        ExprKind::Integer | ExprKind::String | ExprKind::None => true,
        _ => false,
    }
}

/// The types of the `R` namespace.
pub const TYPES: [&str; 8] = ["Tensor", "Shape", "Tuple", "Any", "Object", "Callable", "Prim", "DTensor"];

/// Types of `I` and `T` that may have been meant.
const OTHER_TYPES: [&str; 2] = ["StringType", "int64"];

impl Elaborator<'_> {
    /// Elaborates a type expression. Mistakes are reported and leave error parts.
    pub(super) fn type_of(&mut self, cursor: Cursor<'_>, expr: &Expr) -> StructInfo {
        match &expr.kind {
            ExprKind::Call { callee, arguments } => {
                if let Some(known) =
                    self.check.types.constant(cursor.source(expr.tokens)).filter(|_| !cursor.is_substituted())
                {
                    return known.clone();
                }
                let before = self.check.diagnostics.len();
                let ty = self.type_call(cursor, expr, callee, arguments);
                let ty = self.check.types.share(ty);
                if self.check.diagnostics.len() == before
                    && !cursor.is_substituted()
                    && arguments.iter().all(|argument| is_constant(&argument.value))
                    && self.type_name(cursor, callee).is_some()
                {
                    self.check.types.keep_constant(cursor.source(expr.tokens), &ty);
                }
                ty
            }
            ExprKind::Attribute { .. } => self.bare_type(cursor, expr),
            ExprKind::Parenthesized(inner) => self.type_of(cursor, inner),
            ExprKind::None => StructInfo::void(),
            ExprKind::Tuple(fields) | ExprKind::List(fields) => {
                let fields: Vec<StructInfo> = fields.iter().map(|field| self.type_of(cursor, field)).collect();
                StructInfo::tuple(fields)
            }
            ExprKind::Name => self.named_type(cursor, expr),
            ExprKind::Subscript { .. } if cursor.path(expr.tokens).starts_with("metadata") => StructInfo::Object,
            ExprKind::Error => StructInfo::Error,
            _ => self.malformed(cursor, expr),
        }
    }

    fn malformed(&mut self, cursor: Cursor<'_>, expr: &Expr) -> StructInfo {
        self.check.report(mistake(Code::MalformedType, cursor.span(expr.tokens), "this is no Relax type").with_help(
            "write `R.Tensor((2, 3), dtype=\"float32\")`, `R.Shape([n])`, `R.Tuple(…)`, `T.int64` or `R.Any`",
        ));
        StructInfo::Error
    }

    fn named_type(&mut self, cursor: Cursor<'_>, expr: &Expr) -> StructInfo {
        let name = cursor.name(expr.tokens.start);
        let span = cursor.span(expr.tokens);
        match self.check.lookup(name) {
            Some(Entry::Captured) => {
                self.check.captured_name(name, span);
                StructInfo::Error
            }
            Some(Entry::Value { ty: StructInfo::Error, .. }) => StructInfo::Error,
            Some(_) => self.malformed(cursor, expr),
            None => {
                self.check.undefined_name(name, span);
                StructInfo::Error
            }
        }
    }

    /// Returns the namespace and the name of a type such as `R.Tensor`; `None` if its head is no namespace.
    fn type_name<'t>(&mut self, cursor: Cursor<'t>, expr: &Expr) -> Option<(Namespace, &'t str)> {
        let source = cursor.path(expr.tokens);
        if let Some(known) = self.check.type_object(source) {
            return Some((Namespace::Relax, known));
        }
        let (head, rest) = source.split_once('.')?;
        Some((self.check.file.namespace(head)?, rest))
    }

    fn bare_type(&mut self, cursor: Cursor<'_>, expr: &Expr) -> StructInfo {
        let span = cursor.span(expr.tokens);
        match self.type_name(cursor, expr) {
            Some((Namespace::Relax, "Tensor")) => StructInfo::tensor_of(Shape::Unknown, None),
            Some((Namespace::Relax, "Any" | "Object")) => StructInfo::Object,
            Some((Namespace::Relax, "Shape")) => StructInfo::Shape(Shape::Unknown),
            Some((Namespace::Relax, "Tuple")) => StructInfo::void(),
            Some((Namespace::Relax, "Prim")) => StructInfo::Prim(PrimInfo { dtype: None, value: None }),
            Some((Namespace::Relax, "Callable")) => StructInfo::callable(),
            Some((Namespace::Relax, "String") | (Namespace::Ir, "StringType")) => StructInfo::String,
            Some((Namespace::Tir, "handle")) => StructInfo::Object,
            Some((Namespace::Tir, dtype)) if DType::parse(dtype).is_some() => {
                StructInfo::Prim(PrimInfo { dtype: DType::parse(dtype), value: None })
            }
            Some((Namespace::Relax | Namespace::Tir | Namespace::Ir, other)) => {
                self.unknown_type(other, span);
                StructInfo::Error
            }
            None => self.foreign_type(cursor, expr),
        }
    }

    fn unknown_type(&mut self, wrong: &str, span: Span) {
        let mut diagnostic = mistake(Code::MalformedType, span, format!("there is no type `{wrong}`"));
        if let Some(near) = nearest(wrong, TYPES.into_iter().chain(OTHER_TYPES)) {
            let written = self.check.segment.text().get(span.range());
            let head = written.and_then(|text| text.split_once('.')).map_or("R", |(head, _)| head);
            diagnostic = suggest(diagnostic, near, vec![(Place::Here(span), format!("{head}.{near}"))]);
        }
        self.check.report(diagnostic);
    }

    /// Elaborates the type of a value, `x.ty` (classic: `x.struct_info`), or a type that the Python program defines:
    /// `my_types.Weight`.
    fn foreign_type(&mut self, cursor: Cursor<'_>, expr: &Expr) -> StructInfo {
        if let ExprKind::Attribute { value, name } = &expr.kind
            && matches!(cursor.text(*name), "ty" | "struct_info")
        {
            return self.expr(cursor, value).ty;
        }
        let mut head = expr;
        while let ExprKind::Attribute { value, .. } | ExprKind::Subscript { value, .. } = &head.kind {
            head = value;
        }
        match head.kind {
            ExprKind::Name => self.named_type(cursor, head),
            _ => self.malformed(cursor, expr),
        }
    }

    fn type_call(&mut self, cursor: Cursor<'_>, expr: &Expr, callee: &Expr, arguments: &[Argument]) -> StructInfo {
        match self.type_name(cursor, callee) {
            Some((Namespace::Relax, "Tensor")) => {
                let form = &forms::TENSOR;
                let mut tensor = self.tensor_type(cursor, expr, arguments, form);
                // Unlike `R.Tensor`, the class has a default dtype (TVM python/tvm/relax/struct_info.py).
                if tensor.dtype.is_none()
                    && self.check.type_object(cursor.path(callee.tokens)).is_some()
                    && self.check.type_argument(cursor, arguments, form, "dtype").is_none()
                {
                    tensor.dtype = Some(DType::FLOAT32);
                }
                tensor.into()
            }
            Some((Namespace::Relax, "DTensor" | "dist.DTensor")) => self.dtensor_type(cursor, expr, arguments),
            Some((Namespace::Relax, "Shape")) => self.shape_type(cursor, arguments),
            Some((Namespace::Relax, "Tuple")) => {
                let fields: Vec<StructInfo> = match arguments {
                    [Argument { value: Expr { kind: ExprKind::Tuple(fields), .. }, .. }]
                        if self.check.type_object(cursor.path(callee.tokens)).is_some() =>
                    {
                        fields.iter().map(|field| self.type_of(cursor, field)).collect()
                    }
                    [Argument { value: Expr { kind: ExprKind::List(fields), .. }, .. }] => {
                        fields.iter().map(|field| self.type_of(cursor, field)).collect()
                    }
                    _ => arguments.iter().map(|field| self.type_of(cursor, &field.value)).collect(),
                };
                StructInfo::tuple(fields)
            }
            Some((Namespace::Relax, "Prim")) => self.prim_type(cursor, arguments),
            Some((Namespace::Relax, "Callable")) => self.callable_type(cursor, arguments),
            Some((Namespace::Relax, "Any" | "Object")) => StructInfo::Object,
            Some((Namespace::Tir, dtype)) if DType::parse(dtype).is_some() => {
                StructInfo::Prim(PrimInfo { dtype: DType::parse(dtype), value: None })
            }
            Some(_) => self.bare_type(cursor, callee),
            None => self.foreign_type(cursor, callee),
        }
    }

    fn tensor_type(&mut self, cursor: Cursor<'_>, expr: &Expr, arguments: &[Argument], form: &Form) -> TensorInfo {
        let mut shape_arg = self.check.type_argument(cursor, arguments, form, "shape");
        let mut dtype_arg = self.check.type_argument(cursor, arguments, form, "dtype");
        if dtype_arg.is_none() && shape_arg.is_some_and(|arg| matches!(arg.kind, ExprKind::String)) {
            // `R.Tensor("float32", ndim=2)`: TVM reads a lone string as the dtype.
            dtype_arg = shape_arg.take();
        }
        let ndim = self.check.type_argument(cursor, arguments, form, "ndim").and_then(|arg| self.ndim_of(cursor, arg));
        let shape = match shape_arg {
            None => Shape::of_rank(ndim),
            Some(arg) => self.tensor_shape(cursor, arg),
        };
        if let (Some(stated), Some(actual)) = (ndim, shape.ndim())
            && shape_arg.is_some()
            && stated != actual
        {
            let span = cursor.span(expr.tokens);
            let message = format!("`ndim={stated}` contradicts a shape of {actual} dims");
            self.check.error(Code::MalformedType, span, message);
        }
        let (dtype, dtype_error) = dtype_arg.map_or((None, false), |arg| self.dtype_of(cursor, arg));
        let vdevice =
            self.check.type_argument(cursor, arguments, form, "vdevice").and_then(|arg| self.vdevice_of(cursor, arg));
        TensorInfo { shape, dtype, vdevice, dtype_error, readings: None }
    }

    /// Returns the stated number of dimensions; `None` for -1, which means unknown.
    fn ndim_of(&mut self, cursor: Cursor<'_>, arg: &Expr) -> Option<usize> {
        let stated = match &arg.kind {
            ExprKind::String => None,
            _ => {
                let stated = self.dim(cursor, arg);
                if stated.is_error() {
                    return None;
                }
                stated.as_constant()
            }
        };
        if stated.is_none_or(|ndim| ndim < -1) {
            let message = "`ndim` is a number of dimensions, or -1 where it is not known";
            self.check.error(Code::MalformedType, cursor.span(arg.tokens), message);
        }
        stated.and_then(|ndim| usize::try_from(ndim).ok())
    }

    fn tensor_shape(&mut self, cursor: Cursor<'_>, arg: &Expr) -> Shape {
        match &arg.kind {
            ExprKind::Tuple(dims) | ExprKind::List(dims) => {
                let dims: Vec<Dim> = dims.iter().map(|dim| self.dim(cursor, dim)).collect();
                Shape::known(dims)
            }
            ExprKind::Parenthesized(inner) => {
                let span = cursor.span(arg.tokens);
                let fixed = format!("({},)", cursor.source(inner.tokens));
                let message = "a shape must be a tuple, this is one number in parentheses";
                let report = mistake(Code::MalformedType, span, message).with_help(format!("write `{fixed}`"));
                let fix = replace_fix(span, format!("write {fixed}"), fixed);
                self.check.report(report.with_fix(Fix { safe: true, ..fix }));
                Shape::known(vec![self.dim(cursor, inner)])
            }
            ExprKind::Name => {
                let name = cursor.name(arg.tokens.start);
                self.shape_variable(name, cursor.span(arg.tokens))
            }
            ExprKind::Call { callee, arguments }
                if cursor.path(callee.tokens).rsplit('.').next() == Some("ShapeExpr")
                    && let [values] = &arguments[..] =>
            {
                self.tensor_shape(cursor, &values.value)
            }
            ExprKind::Call { .. } => match self.expr(cursor, arg).ty {
                StructInfo::Shape(shape) => shape,
                _ => Shape::Unknown,
            },
            ExprKind::Error => Shape::Error,
            _ => {
                self.check.error(Code::MalformedType, cursor.span(arg.tokens), "a shape must be a tuple of dims");
                Shape::Error
            }
        }
    }

    fn shape_variable(&mut self, name: Name, span: Span) -> Shape {
        match self.check.lookup(name) {
            Some(Entry::Value { ty: StructInfo::Shape(shape), .. }) => match shape {
                Shape::Error => Shape::Error,
                value => Shape::variable(name, &value),
            },
            Some(Entry::Value { ty: StructInfo::Error, .. }) => Shape::Error,
            Some(Entry::Value { ty: StructInfo::Object, .. }) => Shape::variable(name, &Shape::Unknown),
            Some(Entry::Captured) => {
                self.check.captured_name(name, span);
                Shape::Error
            }
            None => {
                self.check.undefined_name(name, span);
                Shape::Error
            }
            Some(_) => {
                self.check.report(
                    mistake(Code::MalformedType, span, format!("`{name}` is no shape"))
                        .with_help(format!("a shape of one dim is written `({name},)`")),
                );
                Shape::Error
            }
        }
    }

    /// Elaborates a dtype; `(None, true)` after a mistake.
    pub(super) fn dtype_of(&mut self, cursor: Cursor<'_>, arg: &Expr) -> (Option<DType>, bool) {
        let span = cursor.span(arg.tokens);
        match &arg.kind {
            ExprKind::String => {
                let text = cursor.string_value(arg).unwrap_or_default();
                if matches!(text.as_ref(), "" | "void") {
                    return (None, false);
                }
                match DType::parse(&text) {
                    Some(dtype) => (Some(dtype), false),
                    None => {
                        self.unknown_dtype(&text, span);
                        (None, true)
                    }
                }
            }
            ExprKind::None => (None, false),
            ExprKind::Name => {
                let name = cursor.name(arg.tokens.start);
                match self.check.lookup(name) {
                    Some(Entry::Captured) => self.check.captured_name(name, span),
                    Some(Entry::Value { ty: StructInfo::Error | StructInfo::Object, .. }) => {}
                    None => {
                        self.check.undefined_name(name, span);
                        self.check.offer_quotes(name, span);
                    }
                    Some(_) => self.check.error(Code::UnknownDtype, span, format!("`{name}` is no dtype")),
                }
                (None, true)
            }
            ExprKind::Attribute { .. } => {
                let last = cursor.path(arg.tokens).rsplit('.').next().unwrap_or_default();
                (DType::parse(last), DType::parse(last).is_none())
            }
            ExprKind::Call { arguments, .. } if arguments.len() == 1 => {
                arguments.first().map_or((None, true), |argument| self.dtype_of(cursor, &argument.value))
            }
            ExprKind::Error => (None, true),
            _ => {
                self.check.error(Code::UnknownDtype, span, "a dtype is a string such as \"float32\"");
                (None, true)
            }
        }
    }

    pub(super) fn unknown_dtype(&mut self, text: &str, span: Span) {
        let diagnostic = mistake(Code::UnknownDtype, span, format!("there is no dtype \"{text}\""));
        self.check.report(suggest_string(diagnostic, span, nearest(text, DType::USUAL)));
    }

    /// Returns the full name of a virtual device that the module declares.
    pub(super) fn declared_vdevice(&self, text: &str) -> Option<String> {
        let (kind, index) = kind_and_index(text);
        declared_device(self.check.file.vdevices.as_ref()?, kind, index)
    }

    /// Elaborates the name of a virtual device and checks it against the module's devices; `None` after a mistake.
    pub(super) fn vdevice_of(&mut self, cursor: Cursor<'_>, arg: &Expr) -> Option<VDevice> {
        let text = match &arg.kind {
            ExprKind::String => cursor.string_value(arg)?.into_owned(),
            ExprKind::Call { .. } => return Some(VDevice(name(cursor.source(arg.tokens)))),
            _ => return None,
        };
        let (kind, index) = kind_and_index(&text);
        let span = cursor.span(arg.tokens);
        let Some(declared) = &self.check.file.vdevices else {
            let message = format!("the module declares no virtual devices, so \"{text}\" names none");
            let report = mistake(Code::UnknownVDevice, span, message);
            self.check.report(
                report.with_help("add `I.module_global_infos({\"vdevice\": [I.vdevice(\"llvm\")]})` to the module"),
            );
            return None;
        };
        let device = declared_device(declared, kind, index);
        if device.is_none() {
            let known: Vec<String> =
                declared.iter().map(|device| format!("{}:{}:{}", device.kind, device.index, device.scope)).collect();
            let message = format!("the module declares no virtual device \"{text}\"");
            let mut report =
                mistake(Code::UnknownVDevice, span, message).with_note(format!("declared: {}", known.join(", ")));
            // Suggest the first device of the kind; if there is none, the first device.
            let names: Vec<String> =
                (0..declared.len()).filter_map(|at| declared_device(declared, "vdevice", at)).collect();
            let of_kind = names.iter().find(|name| name.split(':').next() == Some(kind));
            let near = of_kind.or(names.first());
            if let Some(near) = near {
                report = report.with_fix(replace_fix(span, format!("use \"{near}\""), format!("\"{near}\"")));
            }
            self.check.report(report);
        }
        device.map(|device| VDevice(name(&device)))
    }

    fn dtensor_type(&mut self, cursor: Cursor<'_>, expr: &Expr, arguments: &[Argument]) -> StructInfo {
        let form = &forms::DTENSOR;
        let tensor = self.tensor_type(cursor, expr, arguments, form);
        let mut text = |wanted| {
            let arg = self.check.type_argument(cursor, arguments, form, wanted);
            name(&arg.map_or_else(String::new, |arg| {
                cursor.string_value(arg).map_or_else(|| cursor.source(arg.tokens).to_owned(), |text| text.into_owned())
            }))
        };
        let (device_mesh, placement) = (text("device_mesh"), text("placement"));
        let mesh = self.check.file.mesh_ndim(&device_mesh);
        let wrong = match Placement::parse(&placement) {
            None => format!("\"{placement}\" is no placement: `R` or `S[axis]` for each axis of the mesh"),
            Some(parsed) if mesh.is_some_and(|ndim| ndim != parsed.mesh_ndim()) => {
                let axes = counted(mesh.unwrap_or_default(), "axis");
                format!("\"{placement}\" is for {}, `{device_mesh}` has {axes}", counted(parsed.mesh_ndim(), "axis"))
            }
            Some(parsed) => match tensor.shape.ndim().and_then(|ndim| Some((ndim, parsed.axis_beyond(ndim)?))) {
                None => return StructInfo::DTensor(Arc::new(DTensorInfo { tensor, device_mesh, placement: parsed })),
                Some((ndim, axis)) => {
                    format!("\"{placement}\" cuts axis {axis}, the tensor has {}", counted(ndim, "dimension"))
                }
            },
        };
        let place =
            self.check.type_argument(cursor, arguments, form, "placement").map_or(expr.tokens, |arg| arg.tokens);
        self.check.error(Code::MalformedType, cursor.span(place), wrong);
        StructInfo::DTensor(Arc::new(DTensorInfo { tensor, device_mesh, placement: Placement::unknown() }))
    }

    fn shape_type(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) -> StructInfo {
        let form = &forms::SHAPE;
        if let Some(values) = self.check.type_argument(cursor, arguments, form, "values") {
            let shape = match &values.kind {
                ExprKind::Parenthesized(inner) => Shape::known(vec![self.dim(cursor, inner)]),
                _ => self.tensor_shape(cursor, values),
            };
            return StructInfo::Shape(shape);
        }
        let ndim = self.check.type_argument(cursor, arguments, form, "ndim").and_then(|arg| self.ndim_of(cursor, arg));
        StructInfo::Shape(Shape::of_rank(ndim))
    }

    fn prim_type(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) -> StructInfo {
        let form = &forms::PRIM;
        let dtype = self
            .check
            .type_argument(cursor, arguments, form, "dtype")
            .map(|arg| self.dtype_of(cursor, arg))
            .and_then(|(dtype, _)| dtype);
        let written = self.check.type_argument(cursor, arguments, form, "value");
        let value = written.map(|arg| self.dim(cursor, arg));
        let dtype = dtype.or_else(|| written.map(|arg| self.symbol_dtype(cursor, arg)));
        StructInfo::Prim(PrimInfo { dtype, value })
    }

    fn callable_type(&mut self, cursor: Cursor<'_>, arguments: &[Argument]) -> StructInfo {
        let form = &forms::CALLABLE;
        let was_lenient = std::mem::replace(&mut self.lenient_symbols, true);
        self.check.push_scope(None);
        for argument in arguments {
            self.bind_symbols(cursor, &argument.value, Binds::Parameters);
        }
        let params = self.check.type_argument(cursor, arguments, form, "params").map(|arg| match &arg.kind {
            ExprKind::Tuple(types) | ExprKind::List(types) => types.iter().map(|ty| self.type_of(cursor, ty)).collect(),
            _ => vec![self.type_of(cursor, arg)],
        });
        let ret = self.check.type_argument(cursor, arguments, form, "ret").map(|arg| self.type_of(cursor, arg));
        let pure = self
            .check
            .type_argument(cursor, arguments, form, "purity")
            .map(|arg| matches!(arg.kind, ExprKind::Bool(true)));
        self.check.pop_scope();
        self.lenient_symbols = was_lenient;
        // As in TVM, a callable is pure by default, except for one with unknown parameters.
        let pure = pure.unwrap_or(params.is_some());
        StructInfo::Function(Arc::new(FunctionInfo { params, ret: ret.unwrap_or(StructInfo::Object), pure }))
    }

    /// Binds the symbols that are whole dims in a type, before the type is elaborated. For example,
    /// `R.Tensor(("n", n * 2))` binds `n` by its first dim.
    pub(super) fn bind_symbols(&mut self, cursor: Cursor<'_>, ty: &Expr, binds: Binds) {
        match &ty.kind {
            ExprKind::Call { callee, arguments } => match self.type_name(cursor, callee) {
                Some((Namespace::Relax, "Callable")) if !self.lenient_symbols => {}
                Some((Namespace::Relax, "Tensor" | "DTensor" | "dist.DTensor" | "Shape")) => {
                    if let Some(shape) = arguments.first().filter(|argument| {
                        argument.keyword.is_none_or(|keyword| matches!(cursor.text(keyword), "shape" | "values"))
                    }) {
                        self.bind_dims(cursor, &shape.value, binds);
                    }
                }
                Some((Namespace::Relax, "Prim")) => {
                    for argument in arguments {
                        if argument.keyword.is_some_and(|keyword| cursor.text(keyword) == "value") {
                            self.bind_dim(cursor, &argument.value, binds);
                        }
                    }
                }
                _ => arguments.iter().for_each(|argument| self.bind_symbols(cursor, &argument.value, binds)),
            },
            ExprKind::Tuple(types) | ExprKind::List(types) => {
                types.iter().for_each(|ty| self.bind_symbols(cursor, ty, binds));
            }
            ExprKind::Parenthesized(inner) => self.bind_symbols(cursor, inner, binds),
            _ => {}
        }
    }

    fn bind_dims(&mut self, cursor: Cursor<'_>, shape: &Expr, binds: Binds) {
        match &shape.kind {
            ExprKind::Tuple(dims) | ExprKind::List(dims) => {
                dims.iter().for_each(|dim| self.bind_dim(cursor, dim, binds));
            }
            ExprKind::Parenthesized(inner) => self.bind_dim(cursor, inner, binds),
            _ => {}
        }
    }

    /// Returns the dtype of an integer expression in a type: that of a symbol such as `n = T.uint8()`, otherwise
    /// int64.
    fn symbol_dtype(&mut self, cursor: Cursor<'_>, value: &Expr) -> DType {
        match &value.kind {
            ExprKind::Parenthesized(inner) => self.symbol_dtype(cursor, inner),
            ExprKind::Name => match self.check.lookup(cursor.name(value.tokens.start)) {
                Some(Entry::Symbol { dtype, .. }) => dtype,
                _ => DType::INT64,
            },
            _ => DType::INT64,
        }
    }

    fn bind_dim(&mut self, cursor: Cursor<'_>, dim: &Expr, binds: Binds) {
        let span = cursor.span(dim.tokens);
        let (symbol, quoted) = match &dim.kind {
            ExprKind::Name => (cursor.name(dim.tokens.start), false),
            ExprKind::String => match cursor.string_value(dim).filter(|text| is_identifier(text)) {
                Some(text) => (name(&text), true),
                None => return,
            },
            _ => return,
        };
        match self.check.lookup(symbol) {
            Some(Entry::Captured) | None if binds == Binds::Return && quoted => {
                self.check.define(symbol, Entry::Symbol { bound: false, dtype: DType::INT64 }, span);
            }
            _ if binds == Binds::Return => {}
            Some(Entry::Symbol { bound: false, dtype }) => {
                self.check.redefine_everywhere(symbol, Entry::Symbol { bound: true, dtype }, span);
            }
            Some(Entry::Captured) | None if quoted || self.lenient_symbols => {
                self.check.define(symbol, Entry::Symbol { bound: true, dtype: DType::INT64 }, span);
            }
            Some(Entry::Value { ty: StructInfo::Prim(_) | StructInfo::Error, .. } | Entry::Symbol { .. }) => {}
            _ if binds == Binds::MatchCast && quoted => {
                self.check.define(symbol, Entry::Symbol { bound: true, dtype: DType::INT64 }, span);
            }
            _ => {}
        }
    }
}

/// Splits a name such as `cuda:1:global` into the kind and the index of the device.
fn kind_and_index(text: &str) -> (&str, usize) {
    let mut parts = text.split(':');
    let kind = parts.next().unwrap_or_default();
    (kind, parts.next().and_then(|index| index.parse().ok()).unwrap_or(0))
}

/// Returns the declared device with this kind and index, as TVM prints it. The index counts the devices of the kind;
/// with the kind `vdevice` it counts all (TVM src/script/ir_builder/ir/ir.cc, `LookupVDevice`).
fn declared_device(declared: &[DeclaredVDevice], kind: &str, index: usize) -> Option<String> {
    let of_kind = |wanted| declared.iter().filter(move |device| device.kind == wanted);
    let device = match kind {
        "vdevice" => declared.get(index),
        _ => of_kind(name(kind))
            .nth(index)
            .or_else(|| of_kind(name(kind)).find(|device| usize::try_from(device.index) == Ok(index))),
    }?;
    let nth = of_kind(device.kind).position(|other| std::ptr::eq(other, device))?;
    Some(format!("{}:{nth}:{}", device.kind, device.scope))
}
