//! Text that the parser of a release rejects in the spelling of every release. Much of it is output of the release's
//! own printer.

use super::symbols::is_prim_func;
use rx_base::{Code, DType, Diagnostic, Fix, Name, Span, TvmVersion};
use rx_context::{FileContext, ItemPlace};
use rx_ops::tvm::{RefusedKeyword, is_readable, refused_keywords};
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind, TokenRange};
use rx_syntax::{Cursor, Segment, Segments, Statement};

/// Reports the parts of an item's text that the parser of `version` rejects.
pub(super) fn check(
    version: TvmVersion,
    segments: &Segments,
    file: &FileContext,
    found: &mut Vec<Diagnostic<ItemPlace>>,
) {
    let is_prim = is_prim_func(segments, file);
    let mut reader = Reader { version, file, segment: 0, header: false, is_prim, vdevice: false, found };
    reader.unrooted(segments);
    for (at, segment) in segments.iter().enumerate() {
        reader.segment = u32::try_from(at).unwrap_or(u32::MAX);
        for statement in &segment.tree().statements {
            reader.header = matches!(statement.tree.kind, StatementKind::Def { .. });
            reader.statement(segment, statement);
            segment.each_expr(statement, &mut |cursor, expr| reader.expr(cursor, expr));
        }
    }
}

struct Reader<'a> {
    version: TvmVersion,
    file: &'a FileContext,
    segment: u32,
    /// Whether the current statement is a function's header.
    header: bool,
    /// Whether the item is a prim_func.
    is_prim: bool,
    /// Whether an undeclared device was reported in this item. Only the first one is reported.
    vdevice: bool,
    found: &'a mut Vec<Diagnostic<ItemPlace>>,
}

/// A call: its dotted name in the form `R.…`, `T.…` or `I.…`, and its arguments.
struct Called<'e> {
    cursor: Cursor<'e>,
    path: String,
    arguments: &'e [Argument],
}

impl<'e> Called<'e> {
    fn keyword(&self, name: &str) -> Option<&'e Argument> {
        self.arguments.iter().find(|it| it.keyword.is_some_and(|token| self.cursor.text(token) == name))
    }

    /// Returns the argument given by this keyword, or otherwise the first argument if it is positional.
    fn first(&self, name: &str) -> Option<&'e Expr> {
        let positional = || self.arguments.first().filter(|argument| argument.keyword.is_none());
        self.keyword(name).or_else(positional).map(|argument| &argument.value)
    }
}

impl Reader<'_> {
    fn place(&self, span: Span) -> ItemPlace {
        ItemPlace::Segment(self.segment, span)
    }

    fn refuse(&mut self, span: Span, construct: &str, help: String, edits: Vec<(Span, String)>) {
        let message = format!("TVM {} does not read {construct}", self.version);
        let mut diagnostic = Diagnostic::new(Code::TextNotParsed, self.place(span), message).with_help(help.clone());
        if !edits.is_empty() {
            let edits = edits.into_iter().map(|(span, new)| (self.place(span), new)).collect();
            diagnostic = diagnostic.with_fix(Fix { title: help, edits, safe: true });
        }
        self.found.push(diagnostic);
    }

    fn statement(&mut self, segment: &Segment, statement: &Statement) {
        let cursor = segment.cursor(statement);
        match &statement.tree.kind {
            StatementKind::AnnAssign { target, annotation, value: Some(value) } => {
                self.cast_annotation(cursor, target, annotation, value);
            }
            StatementKind::AnnAssign { annotation, value: None, .. }
                if self.file.canonical_path(cursor.path(annotation.tokens)).as_deref() == Some("R.Tuple") =>
            {
                let span = cursor.span(annotation.tokens);
                let end = (Span::empty(span.end), " = R.tuple()".to_owned());
                self.refuse(span, "a binding without a value", "write `= R.tuple()`".to_owned(), vec![end]);
            }
            StatementKind::Def { params, .. } => {
                let names: Vec<Name> = params
                    .iter()
                    .filter_map(|param| param.tree.name.map(|token| cursor.parameter(param).name(token)))
                    .collect();
                for param in params {
                    if let Some(annotation) = &param.tree.annotation {
                        self.shape_variable(cursor.parameter(param), annotation, &names);
                        self.scalar_parameter(cursor.parameter(param), annotation);
                    }
                }
            }
            _ => {}
        }
    }

    /// Reports an annotation of `R.match_cast` that differs from the type it casts to, as in
    /// `gv: R.Tensor(dtype="float32") = R.match_cast(x, R.Tensor((m,), "float32"))`.
    fn cast_annotation(&mut self, cursor: Cursor<'_>, target: &Expr, annotation: &Expr, value: &Expr) {
        let Some(called) = self.called(cursor, value) else { return };
        let (true, Some(cast)) = (called.path == "R.match_cast", called.arguments.get(1)) else { return };
        let words = |range: TokenRange| -> Vec<&str> {
            let words = (range.start..range.end).map(|token| cursor.text(token));
            words.filter(|word| !matches!(*word, "dtype" | "=" | ",")).collect()
        };
        if words(annotation.tokens) != words(cast.value.tokens) {
            let span = cursor.span(annotation.tokens);
            let gone = Span::new(cursor.span(target.tokens).end, span.end);
            self.refuse(
                span,
                "an annotation of `R.match_cast` other than the type it casts to",
                "leave the annotation out".to_owned(),
                vec![(gone, String::new())],
            );
        }
    }

    /// Reports `R.Tensor(s, …)` in a parameter's type, where `s` is another parameter.
    fn shape_variable(&mut self, cursor: Cursor<'_>, annotation: &Expr, params: &[Name]) {
        let mut open = vec![annotation];
        while let Some(expr) = open.pop() {
            if let Some(called) = self.called(cursor, expr)
                && called.path == "R.Tensor"
                && let Some(shape) = called.first("shape")
                && matches!(shape.kind, ExprKind::Name)
                && params.contains(&cursor.name(shape.tokens.start))
            {
                let name = cursor.text(shape.tokens.start);
                self.refuse(
                    cursor.span(shape.tokens),
                    &format!("the parameter `{name}` as the shape of another"),
                    format!("write the dims as symbols, in the type of `{name}` too: `R.Shape([m, n])`"),
                    Vec::new(),
                );
            }
            open.extend(expr.children());
        }
    }

    /// Reports `n: T.int64` in a Relax function, which 0.25 does not read.
    fn scalar_parameter(&mut self, cursor: Cursor<'_>, annotation: &Expr) {
        if self.is_prim || self.version > TvmVersion::V0_25 || !matches!(annotation.kind, ExprKind::Attribute { .. }) {
            return;
        }
        let path = self.file.canonical_path(cursor.path(annotation.tokens)).unwrap_or_default();
        let Some(dtype) = path.strip_prefix("T.").filter(|name| DType::parse(name).is_some()) else { return };
        let (span, new) = (cursor.span(annotation.tokens), format!("R.Prim(\"{dtype}\")"));
        let construct = format!("`T.{dtype}` as the type of a parameter");
        self.refuse(span, &construct, format!("write `{new}`"), vec![(span, new)]);
    }

    fn called<'e>(&self, cursor: Cursor<'e>, expr: &'e Expr) -> Option<Called<'e>> {
        let ExprKind::Call { callee, arguments } = &expr.kind else { return None };
        Some(Called { cursor, path: self.file.canonical_path(cursor.path(callee.tokens))?, arguments })
    }

    fn expr(&mut self, cursor: Cursor<'_>, expr: &Expr) {
        if let ExprKind::Attribute { value, name } = &expr.kind {
            self.inspected(cursor, value, cursor.text(*name), cursor.span(expr.tokens));
        }
        let Some(called) = self.called(cursor, expr) else { return };
        let ExprKind::Call { callee, .. } = &expr.kind else { return };
        match called.path.as_str() {
            "R.const" => self.constant(&called),
            "R.Prim" => self.prim_value(cursor.span(expr.tokens), &called),
            "R.Tuple" | "R.Callable" => self.scalar_types(cursor, called.arguments.iter().map(|it| &it.value)),
            "R.Tensor" => {
                self.device(&called);
                if !self.header {
                    self.quoted_dims(&called);
                }
            }
            "R.assert_op" => self.assertion(&called),
            "R.call_dps_packed" => self.nested_outputs(&called),
            "R.call_inplace_packed" | "R.invoke_pure_closure" => self.bare_types(&called),
            _ => self.size_variable(&called),
        }
        let Some(operator) = called.path.strip_prefix("R.") else { return };
        if !is_readable(self.version, operator) {
            let help = "a module that was built in memory can hold it".to_owned();
            self.refuse(
                cursor.span(callee.tokens),
                &format!("`R.{operator}`: its script has no such name"),
                help,
                Vec::new(),
            );
        }
        for keyword in refused_keywords(self.version, operator) {
            self.extra_keyword(&called, operator, *keyword);
        }
    }

    /// Reports attributes of a tensor such as `x.ndim`, which only 0.25 reads.
    fn inspected(&mut self, cursor: Cursor<'_>, value: &Expr, attribute: &str, span: Span) {
        let of_dtype = matches!(&value.kind, ExprKind::Attribute { name, .. } if cursor.text(*name) == "dtype");
        let inspects = match attribute {
            "ndim" | "byte_offset" | "elem_offset" | "strides" => true,
            // `x.ty.shape` is accepted; only a plain name is a tensor.
            "shape" => {
                matches!(value.kind, ExprKind::Name) && self.file.namespace(cursor.text(value.tokens.start)).is_none()
            }
            "bits" | "lanes" | "type_code" => of_dtype,
            _ => false,
        };
        if inspects && !self.is_prim && self.version > TvmVersion::V0_25 {
            let help = "state the type, and use its dims and dtype".to_owned();
            self.refuse(span, &format!("`{attribute}` of a tensor"), help, Vec::new());
        }
    }

    /// Reports `R.const("-inf", "float32")`, which TVM's printer writes for constants that are not finite.
    fn constant(&mut self, called: &Called<'_>) {
        let Some(value) = called.first("value") else { return };
        let Some(text) = called.cursor.string_value(value) else { return };
        let span = called.cursor.span(value.tokens);
        let new = format!("float(\"{text}\")");
        let construct = format!("`R.const(\"{text}\")`, though it prints it: the value is a string");
        self.refuse(span, &construct, format!("write `{new}`"), vec![(span, new)]);
    }

    /// Reports `R.Prim(value=n)`: since 0.26 the type of a scalar specifies only its dtype.
    fn prim_value(&mut self, span: Span, called: &Called<'_>) {
        if self.version >= TvmVersion::V0_26 && called.keyword("value").is_some() && called.keyword("dtype").is_none() {
            let new = "R.Prim(\"int64\")".to_owned();
            self.refuse(span, "the value in a scalar's type", format!("write `{new}`"), vec![(span, new)]);
        }
    }

    /// Reports a scalar dtype inside another type, as in `R.Tuple(T.int64)`.
    fn scalar_types<'e>(&mut self, cursor: Cursor<'e>, parts: impl Iterator<Item = &'e Expr>) {
        let mut open: Vec<&Expr> = parts.collect();
        while let Some(part) = open.pop() {
            match &part.kind {
                ExprKind::Tuple(items) | ExprKind::List(items) => open.extend(items),
                ExprKind::Attribute { .. } => {
                    let path = self.file.canonical_path(cursor.path(part.tokens)).unwrap_or_default();
                    let Some(dtype) = path.strip_prefix("T.").filter(|name| DType::parse(name).is_some()) else {
                        continue;
                    };
                    let (span, new) = (cursor.span(part.tokens), format!("R.Prim(\"{dtype}\")"));
                    self.refuse(
                        span,
                        &format!("`T.{dtype}` inside another type"),
                        format!("write `{new}`"),
                        vec![(span, new)],
                    );
                }
                _ => {}
            }
        }
    }

    /// Reports `vdevice="cuda:0:global"` in a module that declares no virtual devices.
    fn device(&mut self, called: &Called<'_>) {
        let Some(device) = called.keyword("vdevice").filter(|_| self.file.vdevices.is_none() && !self.vdevice) else {
            return;
        };
        self.vdevice = true;
        let help =
            "declare it: `I.module_global_infos({\"vdevice\": [I.vdevice({\"kind\": \"llvm\"}, 0, \"global\")]})`";
        let span = called.cursor.span(device.value.tokens);
        self.refuse(span, "a virtual device that the module does not declare", help.to_owned(), Vec::new());
    }

    /// Reports quoted dims in a function's body, as in `R.Tensor(("n", 4))`.
    fn quoted_dims(&mut self, called: &Called<'_>) {
        let Some(ExprKind::Tuple(dims) | ExprKind::List(dims)) = called.first("shape").map(|shape| &shape.kind) else {
            return;
        };
        for dim in dims {
            if let Some(text) = called.cursor.string_value(dim) {
                let (span, new) = (called.cursor.span(dim.tokens), text.into_owned());
                self.refuse(span, "a quoted dim in a body", format!("write `{new}`"), vec![(span, new)]);
            }
        }
    }

    /// Reports `R.assert_op(condition, x, y)`: several values must be in a list.
    fn assertion(&mut self, called: &Called<'_>) {
        let values: Vec<&Argument> = called.arguments.iter().filter(|it| it.keyword.is_none()).skip(1).collect();
        if let [first, .., last] = &values[..]
            && !matches!(first.value.kind, ExprKind::List(_) | ExprKind::Tuple(_))
        {
            let (first, last) = (called.cursor.span(first.value.tokens), called.cursor.span(last.value.tokens));
            let edits = vec![(Span::empty(first.start), "[".to_owned()), (Span::empty(last.end), "]".to_owned())];
            self.refuse(
                first.cover(last),
                "the values of `R.assert_op` one by one",
                "put them in a list".to_owned(),
                edits,
            );
        }
    }

    /// Reports nested output types, as in `R.call_dps_packed(…, out_ty=[…, R.Tuple(…)])`.
    fn nested_outputs(&mut self, called: &Called<'_>) {
        let Some(outputs) = called.keyword("out_ty").or_else(|| called.keyword("out_sinfo")) else { return };
        let (ExprKind::List(items) | ExprKind::Tuple(items)) = &outputs.value.kind else { return };
        for item in items {
            if self.called(called.cursor, item).is_some_and(|inner| inner.path == "R.Tuple") {
                let help = "return the fields one by one".to_owned();
                self.refuse(called.cursor.span(item.tokens), "a tuple among the outputs", help, Vec::new());
            }
        }
    }

    /// Reports `ty_args=(R.Any,)` for operators that require types, not functions that create them: `R.Any()`.
    fn bare_types(&mut self, called: &Called<'_>) {
        let Some(types) = called.keyword("ty_args").or_else(|| called.keyword("sinfo_args")) else { return };
        let items = match &types.value.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&types.value),
        };
        for item in items.iter().filter(|item| matches!(item.kind, ExprKind::Attribute { .. })) {
            let source = called.cursor.source(item.tokens);
            let span = called.cursor.span(item.tokens);
            let edits = vec![(Span::empty(span.end), "()".to_owned())];
            self.refuse(span, &format!("`{source}` without `()` here"), format!("write `{source}()`"), edits);
        }
    }

    /// Reports `T.int64(is_size_var=True)`, which only 0.25 reads.
    fn size_variable(&mut self, called: &Called<'_>) {
        if self.version == TvmVersion::V0_25 {
            return;
        }
        let Some(argument) = called.keyword("is_size_var").filter(|_| called.path.starts_with("T.")) else { return };
        let Some(keyword) = argument.keyword else { return };
        let span = called.cursor.span(TokenRange { start: keyword, end: argument.value.tokens.end });
        let edits = if called.arguments.len() == 1 { vec![(span, String::new())] } else { Vec::new() };
        self.refuse(span, "`is_size_var`", "leave it out".to_owned(), edits);
    }

    /// Reports a keyword argument that the operator's parser does not accept.
    fn extra_keyword(&mut self, called: &Called<'_>, operator: &str, refused: RefusedKeyword) {
        let keyword = refused.name();
        let Some(at) =
            called.arguments.iter().position(|it| it.keyword.is_some_and(|token| called.cursor.text(token) == keyword))
        else {
            return;
        };
        let Some(Argument { keyword: Some(token), value }) = called.arguments.get(at) else { return };
        let span = called.cursor.span(TokenRange { start: *token, end: value.tokens.end });
        let before = at.checked_sub(1).and_then(|before| called.arguments.get(before));
        let gone = before.map_or(span, |before| Span::new(called.cursor.span(before.value.tokens).end, span.end));
        let (why, help, edits) = match refused {
            RefusedKeyword::Printed(_) => (", though it prints it", "leave it out", vec![(gone, String::new())]),
            RefusedKeyword::Unknown(_) => ("", "leave it out", vec![(gone, String::new())]),
            RefusedKeyword::Foreign(_, help) => ("", help, Vec::new()),
        };
        self.refuse(span, &format!("`{keyword}` of `R.{operator}`{why}"), help.to_owned(), edits);
    }

    /// Reports a prim_func without `s_tir=True`: the parser creates no root block for it, and the schedule rules fail
    /// without one.
    fn unrooted(&mut self, segments: &Segments) {
        let Some(head) = segments.first() else { return };
        for statement in &head.tree().statements {
            let StatementKind::Decorator(expr) = &statement.tree.kind else { continue };
            let cursor = head.cursor(statement);
            let (callee, arguments) = match &expr.kind {
                ExprKind::Call { callee, arguments } => (&**callee, arguments.as_slice()),
                _ => (expr, &[][..]),
            };
            let named = |argument: &Argument| argument.keyword.is_some_and(|token| cursor.text(token) == "s_tir");
            if self.file.canonical_path(cursor.path(callee.tokens)).as_deref() != Some("T.prim_func")
                || arguments.iter().any(named)
            {
                continue;
            }
            let says = |word: &str| segments.iter().any(|segment| segment.text().contains(word));
            if says("is_scheduled") {
                continue;
            }
            let span = cursor.span(expr.tokens);
            let edit = match (&expr.kind, arguments.last()) {
                (ExprKind::Call { .. }, Some(last)) => {
                    (Span::empty(cursor.span(last.value.tokens).end), ", s_tir=True")
                }
                (ExprKind::Call { .. }, None) => (Span::new(cursor.span(callee.tokens).end, span.end), "(s_tir=True)"),
                _ => (Span::empty(span.end), "(s_tir=True)"),
            };
            let title = "write `s_tir=True`".to_owned();
            let (code, why) = match says("sblock_alloc_buffer") {
                true => {
                    (Code::TextNotParsed, "does not read the buffers of blocks in a prim_func without `s_tir=True`")
                }
                false => (
                    Code::ScheduleRuleFails,
                    "cannot build a prim_func without `s_tir=True` for CUDA: it has no root block",
                ),
            };
            self.found.push(
                Diagnostic::new(code, self.place(span), format!("TVM {} {why}", self.version))
                    .with_help(title.clone())
                    .with_fix(Fix { title, edits: vec![(self.place(edit.0), edit.1.to_owned())], safe: true }),
            );
        }
    }
}
