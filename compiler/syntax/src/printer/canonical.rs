//! Small queries on trees that the printer and the comparison share.

use rx_base::name::{Name, name};
use rx_base::{DType, dtype::TypeCode};

use crate::Cursor;
use crate::ast::{Argument, Expr, ExprKind, ParameterTree, StatementKind};
use crate::dialect::{ALLOC_BUFFER, Dialect};

/// Strips parentheses that do not form a tuple. Parentheses around an expression that is printed verbatim stay.
pub(crate) fn bare(mut expr: &Expr) -> &Expr {
    while let ExprKind::Parenthesized(inner) = &expr.kind {
        if is_verbatim(inner) {
            break;
        }
        expr = inner;
    }
    expr
}

/// Whether an expression is Python that rx prints verbatim.
pub(crate) fn is_verbatim(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Comprehension | ExprKind::Python | ExprKind::Error => true,
        ExprKind::Parenthesized(inner) => is_verbatim(inner),
        _ => false,
    }
}

/// Returns a dotted name such as `a.b.c`; `None` for other expressions.
pub(crate) fn path(expr: &Expr, cursor: Cursor<'_>) -> Option<String> {
    let mut parts = Vec::new();
    let mut at = bare(expr);
    loop {
        match &at.kind {
            ExprKind::Name => {
                parts.push(cursor.text(at.tokens.start));
                break;
            }
            ExprKind::Attribute { value, name } => {
                parts.push(cursor.text(*name));
                at = bare(value);
            }
            _ => return None,
        }
    }
    parts.reverse();
    Some(parts.join("."))
}

/// Returns the part of a dotted name after its last dot.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns the dtype of a name such as `T.int64`.
pub(crate) fn tir_dtype(path: &str) -> Option<DType> {
    DType::parse(path.strip_prefix("T.")?).filter(|dtype| dtype.code != TypeCode::Custom)
}

/// Returns the text of an expression that is a single name.
pub(crate) fn identifier<'a>(expr: &Expr, cursor: Cursor<'a>) -> Option<&'a str> {
    let expr = bare(expr);
    matches!(expr.kind, ExprKind::Name).then(|| cursor.text(expr.tokens.start))
}

/// Returns a parameter's name.
pub(crate) fn parameter_name(tree: &ParameterTree, cursor: Cursor<'_>) -> Option<Name> {
    tree.name.map(|token| name(cursor.text(token)))
}

/// Returns the dims that a statement `n = T.int64()` or `m, n = T.int32(), T.int32()` declares; none for any other
/// statement.
pub(crate) fn dim_declarations(kind: &StatementKind, cursor: Cursor<'_>) -> Vec<(Name, DType)> {
    let StatementKind::Assign { targets, value } = kind else { return Vec::new() };
    let [target] = targets.as_slice() else { return Vec::new() };
    let (target, value) = (bare(target), bare(value));
    match (&target.kind, &value.kind) {
        (ExprKind::Tuple(names), ExprKind::Tuple(values)) if names.len() == values.len() => {
            let pairs = names.iter().zip(values).map(|(name, value)| dim_declaration(name, value, cursor));
            pairs.collect::<Option<Vec<_>>>().unwrap_or_default()
        }
        _ => dim_declaration(target, value, cursor).into_iter().collect(),
    }
}

fn dim_declaration(target: &Expr, value: &Expr, cursor: Cursor<'_>) -> Option<(Name, DType)> {
    let target = identifier(target, cursor)?;
    let ExprKind::Call { callee, arguments } = &bare(value).kind else { return None };
    let callee = path(callee, cursor)?;
    let dtype = match arguments.as_slice() {
        [] => tir_dtype(&callee)?,
        [one] if callee == "T.var" && one.keyword.is_none() => DType::parse(&cursor.string_value(bare(&one.value))?)?,
        _ => return None,
    };
    dtype.is_int().then(|| (name(target), dtype))
}

/// Returns the name that `n = TypeVar("n")` declares; `None` for `n = TypeVar("m")`, which is an error.
pub(crate) fn type_var(kind: &StatementKind, cursor: Cursor<'_>) -> Option<Name> {
    let StatementKind::Assign { targets, value } = kind else { return None };
    let [target] = targets.as_slice() else { return None };
    let ExprKind::Call { callee, arguments } = &bare(value).kind else { return None };
    let [argument] = arguments.as_slice() else { return None };
    let named = identifier(target, cursor)?;
    let declares = last_part(&path(callee, cursor)?) == "TypeVar"
        && cursor.string_value(bare(&argument.value)).is_none_or(|text| text == named);
    declares.then(|| name(named))
}

/// Returns the position of the argument that contains dims: the shape of `R.Tensor`, `R.DTensor`, `R.Shape` and
/// `T.Buffer`, the value of `R.Prim`.
pub(crate) fn dim_argument(callee: &str, arguments: &[Argument], cursor: Cursor<'_>) -> Option<usize> {
    let keyword = match last_part(callee) {
        "Tensor" | "DTensor" | "Buffer" => "shape",
        "Shape" => "values",
        "Prim" => "value",
        _ => return None,
    };
    let named = |argument: &Argument| argument.keyword.is_some_and(|token| cursor.text(token) == keyword);
    let first = || arguments.first().is_some_and(|first| first.keyword.is_none() && keyword != "value").then_some(0);
    arguments.iter().position(named).or_else(first)
}

/// Returns the dims in a [`dim_argument`]. A single string or name gives none, since it may be a dtype or a shape
/// variable.
pub(crate) fn dims(argument: &Expr) -> &[Expr] {
    match &argument.kind {
        ExprKind::Tuple(elements) | ExprKind::List(elements) => elements,
        ExprKind::Parenthesized(inner) => dims(inner),
        _ => &[],
    }
}

/// Returns a call's dotted callee in canonical spelling. `T.decl_buffer` without `data=` allocates a buffer in every
/// dialect.
pub(crate) fn canonical_callee(dialect: Dialect, callee: &str, arguments: &[Argument], cursor: Cursor<'_>) -> String {
    let is_data = |argument: &Argument| argument.keyword.is_some_and(|token| cursor.text(token) == "data");
    let positional = arguments.iter().filter(|argument| argument.keyword.is_none()).count();
    if callee == ALLOC_BUFFER.1 && positional < 3 && !arguments.iter().any(is_data) {
        return ALLOC_BUFFER.0.to_owned();
    }
    dialect.canonical_call(callee).to_owned()
}

/// Returns the scalar `n` in `R.prim_value(n)`: classic text passes the wrapped scalar to a prim_func, current text
/// passes `n`.
pub(crate) fn prim_value<'e>(expr: &'e Expr, cursor: Cursor<'_>) -> Option<&'e Expr> {
    let ExprKind::Call { callee, arguments } = &bare(expr).kind else { return None };
    let [Argument { keyword: None, value }] = arguments.as_slice() else { return None };
    (path(callee, cursor).as_deref() == Some("R.prim_value")).then(|| bare(value))
}

/// Whether a callee is `R.call_tir` or a variant of it, whose second argument is the tuple of inputs.
pub(crate) fn calls_tir(callee: &str) -> bool {
    matches!(last_part(callee), "call_tir" | "call_tir_inplace" | "call_tir_with_grad")
}

/// Whether a callee takes a dict of attributes.
pub(crate) fn takes_attributes(callee: &str) -> bool {
    matches!(last_part(callee), "func_attr" | "sblock_attr" | "block_attr" | "module_attrs")
}

/// Returns the normalized text of `inf`, `-inf` or `nan`, which TVM prints as a string in `R.const("-inf", "float32")`.
pub(crate) fn special_float(text: &str) -> Option<&'static str> {
    match text {
        "inf" | "+inf" => Some("inf"),
        "-inf" => Some("-inf"),
        "nan" | "-nan" => Some("nan"),
        _ => None,
    }
}

/// Returns the normalized text in `float("-inf")`.
pub(crate) fn float_call(expr: &Expr, cursor: Cursor<'_>) -> Option<&'static str> {
    let ExprKind::Call { callee, arguments } = &bare(expr).kind else { return None };
    let [one] = arguments.as_slice() else { return None };
    if identifier(callee, cursor) != Some("float") {
        return None;
    }
    special_float(&cursor.string_value(bare(&one.value))?)
}
