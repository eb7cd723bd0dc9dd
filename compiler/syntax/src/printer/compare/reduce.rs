//! Reduction of a tree's node to a label and child nodes, with one canonical spelling for all dialects.

use crate::Cursor;
use crate::ast::{Argument, BoolOp, Expr, ExprKind, ImportedName, Parameter, StatementKind};
use crate::dialect::Dialect;
use crate::printer::call::prim_type;
use crate::printer::canonical::{
    bare, calls_tir, canonical_callee, dim_argument, dims, float_call, is_verbatim, last_part, path, prim_value,
    special_float, takes_attributes,
};
use crate::printer::scope::Function;
use crate::printer::signature::QuotedDim;
use crate::printer::statement::without_blanks;

/// The properties of one of the two documents that affect the reduction.
#[derive(Clone, Copy, Default)]
pub(super) struct Side {
    pub(super) dialect: Dialect,
    /// Whether exactly one of the two documents is classic. Constructs that only one dialect has are then ignored.
    pub(super) mixed: bool,
    /// Whether the statement is in a Relax function.
    pub(super) relax: bool,
}

/// The position of a node.
#[derive(Clone, Copy, Default)]
struct Spot {
    /// Whether it is in an annotation of a signature.
    signature: bool,
    /// Whether it is a dim there.
    dim: bool,
    /// Whether it is in the dict of a `func_attr`.
    attributes: bool,
}

/// A child node, with its cursor and position.
pub(super) struct Node<'a>(NodeKind<'a>, Cursor<'a>, Spot);

enum NodeKind<'a> {
    Expr(&'a Expr),
    /// The inputs of an `R.call_tir`, whose scalars are in `R.prim_value` in classic text.
    Inputs(&'a [Expr]),
    Label(String),
}

type Reduced<'a> = (String, Vec<Node<'a>>);

/// Reduces a statement.
pub(super) fn statement<'a>(
    kind: &'a StatementKind,
    cursor: Cursor<'a>,
    function: Option<&Function>,
    side: Side,
    source: &str,
) -> Reduced<'a> {
    let node = |expr| Node(NodeKind::Expr(expr), cursor, Spot::default());
    let under = |label: String| (label, kind.expressions().into_iter().map(node).collect());
    match kind {
        StatementKind::Decorator(expr) => decorator(expr, cursor, side),
        StatementKind::Class { name, .. } => under(format!("class:{}", cursor.text(*name))),
        StatementKind::Def { name, params, ret, .. } => def(cursor.text(*name), params, ret.as_ref(), cursor, function),
        StatementKind::With(items) => {
            let label = items.iter().map(|item| if item.target.is_some() { "as" } else { "_" }).collect::<Vec<_>>();
            under(format!("with:{}", label.join(",")))
        }
        StatementKind::AugAssign { op, .. } => under(format!("augmented:{op:?}")),
        StatementKind::Import(names) => under(format!("import:{}", imported(names, false, cursor))),
        StatementKind::FromImport { module, names } => {
            let module = without_blanks(cursor.source(*module));
            let names = imported(names, module == "tvm.script", cursor);
            under(format!("from:{module}:{names}"))
        }
        StatementKind::For { .. } => under("for".to_owned()),
        StatementKind::While(_) => under("while".to_owned()),
        StatementKind::If(_) => under("if".to_owned()),
        StatementKind::Elif(_) => under("elif".to_owned()),
        StatementKind::Else => under("else".to_owned()),
        StatementKind::Assign { .. } => under("assign".to_owned()),
        StatementKind::AnnAssign { .. } => under("annotated".to_owned()),
        StatementKind::Expr(_) => under("expr".to_owned()),
        StatementKind::Return(_) => under("return".to_owned()),
        StatementKind::Assert { .. } => under("assert".to_owned()),
        StatementKind::Pass => under("pass".to_owned()),
        StatementKind::Break => under("break".to_owned()),
        StatementKind::Continue => under("continue".to_owned()),
        StatementKind::Python { .. } | StatementKind::Error => under(format!("python:{source}")),
    }
}

fn imported(names: &[ImportedName], of_script: bool, cursor: Cursor<'_>) -> String {
    let one = |imported: &ImportedName| {
        let name = without_blanks(cursor.source(imported.path));
        match imported.alias {
            Some(alias) if of_script => {
                format!("{} as {}", Dialect::Tvm027.spell_import(&name), cursor.text(alias))
            }
            Some(alias) => format!("{name} as {}", cursor.text(alias)),
            None => name,
        }
    };
    names.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Reduces a decorator. `@R.function` and `@R.function()` are equal.
fn decorator<'a>(expr: &'a Expr, cursor: Cursor<'a>, side: Side) -> Reduced<'a> {
    let (callee, arguments) = match &bare(expr).kind {
        ExprKind::Call { callee, arguments } => (&**callee, arguments.as_slice()),
        _ => (expr, [].as_slice()),
    };
    let keyword = |argument: &Argument| argument.keyword.map(|token| cursor.text(token)).unwrap_or("");
    let kept = arguments.iter().filter(|argument| !(side.mixed && keyword(argument) == "s_tir"));
    let kept: Vec<&Argument> = kept.collect();
    let keywords: Vec<&str> = kept.iter().map(|argument| keyword(argument)).collect();
    let parts = std::iter::once(callee).chain(kept.iter().map(|argument| &argument.value));
    let parts = parts.map(|expr| Node(NodeKind::Expr(expr), cursor, Spot::default()));
    (format!("decorator:{}", keywords.join(",")), parts.collect())
}

fn def<'a>(
    name: &str,
    params: &'a [Parameter],
    ret: Option<&'a Expr>,
    cursor: Cursor<'a>,
    function: Option<&Function>,
) -> Reduced<'a> {
    let mut label = format!("def:{name}");
    let symbols = function.map(|function| function.symbols.as_slice()).unwrap_or_default();
    let symbols = symbols.iter().map(|(symbol, _)| symbol).filter(|symbol| symbol.in_signature);
    let mut symbols: Vec<String> = symbols.map(|symbol| format!("{}:{}", symbol.name, symbol.dtype)).collect();
    symbols.sort();
    label.push_str(&format!("[{}]", symbols.join(",")));
    let mut parts = Vec::new();
    let spot = Spot { signature: true, ..Spot::default() };
    for param in params {
        let cursor = cursor.parameter(param);
        let tree = &param.tree;
        let name = tree.name.map(|token| cursor.text(token)).unwrap_or("");
        let (annotated, default) = (tree.annotation.is_some(), tree.default.is_some());
        label.push_str(&format!("({},{name},{annotated},{default})", tree.stars));
        parts.extend(tree.annotation.iter().map(|annotation| Node(NodeKind::Expr(annotation), cursor, spot)));
        parts.extend(tree.default.iter().map(|default| Node(NodeKind::Expr(default), cursor, Spot::default())));
    }
    parts.extend(ret.map(|ret| Node(NodeKind::Expr(ret), cursor, spot)));
    (label, parts)
}

impl<'a> Node<'a> {
    /// Reduces the node.
    pub(super) fn reduce(self, side: Side) -> Reduced<'a> {
        let Node(difference, cursor, spot) = self;
        match difference {
            NodeKind::Label(label) => (label, Vec::new()),
            NodeKind::Inputs(inputs) => {
                let element = |input| Node(NodeKind::Expr(prim_value(input, cursor).unwrap_or(input)), cursor, spot);
                ("tuple".to_owned(), inputs.iter().map(element).collect())
            }
            NodeKind::Expr(expr) if spot.dim => (dim(expr, cursor, side), Vec::new()),
            NodeKind::Expr(expr) => reduce(expr, cursor, spot, side),
        }
    }
}

/// Reduces a dim of a signature, quoted or not, to one label.
fn dim(expr: &Expr, cursor: Cursor<'_>, side: Side) -> String {
    let quoted = matches!(bare(expr).kind, ExprKind::String).then(|| QuotedDim::read(bare(expr), cursor)).flatten();
    let inner = quoted.and_then(|quoted| quoted.with(|inner, cursor| whole(inner, cursor, side)));
    inner.unwrap_or_else(|| whole(expr, cursor, side))
}

/// Reduces a whole expression to one label.
fn whole(expr: &Expr, cursor: Cursor<'_>, side: Side) -> String {
    let mut stack = vec![Node(NodeKind::Expr(expr), cursor, Spot::default())];
    let mut label = String::new();
    while let Some(node) = stack.pop() {
        let (one, parts) = node.reduce(side);
        label.push_str(&format!("{one}/{};", parts.len()));
        stack.extend(parts.into_iter().rev());
    }
    label
}

fn reduce<'a>(expr: &'a Expr, cursor: Cursor<'a>, spot: Spot, side: Side) -> Reduced<'a> {
    let expr = bare(expr);
    if is_verbatim(expr) {
        return (format!("python:{}", cursor.source(expr.tokens)), Vec::new());
    }
    let inner = Spot { dim: false, ..spot };
    let leaf = |label: String| (label, Vec::new());
    let node = |expr: &'a Expr| Node(NodeKind::Expr(expr), cursor, inner);
    let under = |label: &str| (label.to_owned(), expr.children().into_iter().map(node).collect());
    match &expr.kind {
        ExprKind::Name | ExprKind::Attribute { .. } if path(expr, cursor).is_some() => {
            let path = path(expr, cursor).unwrap_or_default();
            leaf(format!("path:{}", side.dialect.canonical_call(&path)))
        }
        ExprKind::Attribute { name, .. } => under(&format!("attribute:{}", cursor.text(*name))),
        ExprKind::Integer | ExprKind::Float => leaf(format!("number:{}", cursor.source(expr.tokens))),
        ExprKind::String => leaf(match cursor.string_value(expr) {
            Some(text) => format!("string:{text}"),
            None => format!("literal:{}", cursor.source(expr.tokens)),
        }),
        ExprKind::Bool(value) => leaf(format!("bool:{value}")),
        ExprKind::None => leaf("none".to_owned()),
        ExprKind::Call { callee, arguments } => call(callee, arguments, cursor, spot, side),
        ExprKind::Subscript { value, index } => subscript(value, index, cursor, inner, side),
        ExprKind::Tuple(_) => under("tuple"),
        ExprKind::List(_) => under("list"),
        ExprKind::Set(_) => under("set"),
        ExprKind::Dict(pairs) => dict(pairs, cursor, inner, side),
        ExprKind::Slice { lower, upper, step } => {
            under(&format!("slice:{}{}{}", lower.is_some(), upper.is_some(), step.is_some()))
        }
        ExprKind::Unary(op, _) => under(&format!("unary:{op:?}")),
        ExprKind::Binary(op, ..) => under(&format!("binary:{op:?}")),
        ExprKind::Compare(_, rest) => {
            let ops: Vec<String> = rest.iter().map(|(op, _)| format!("{op:?}")).collect();
            under(&format!("compare:{}", ops.join(",")))
        }
        ExprKind::Bool2(op, operands) => (format!("bool:{op:?}"), chain(*op, operands).into_iter().map(node).collect()),
        ExprKind::Conditional { .. } => under("conditional"),
        ExprKind::Lambda { params, .. } => {
            let params = params.iter().map(|param| {
                let cursor = cursor.parameter(param);
                without_blanks(cursor.source(param.tree.tokens))
            });
            under(&format!("lambda:{}", params.collect::<Vec<_>>().join(",")))
        }
        ExprKind::Starred { double, .. } => under(&format!("starred:{double}")),
        ExprKind::Walrus { name, .. } => under(&format!("walrus:{}", cursor.text(*name))),
        _ => under(cursor.source(expr.tokens)),
    }
}

/// Flattens nested operands: `(a and b) and c` is `a and b and c`.
fn chain(op: BoolOp, operands: &[Expr]) -> Vec<&Expr> {
    let mut flat: Vec<&Expr> = operands.iter().rev().collect();
    while let Some(first) = flat.last().map(|first| bare(first)) {
        let ExprKind::Bool2(inner, operands) = &first.kind else { break };
        if *inner != op {
            break;
        }
        flat.pop();
        flat.extend(operands.iter().rev());
    }
    flat.reverse();
    flat
}

fn subscript<'a>(value: &'a Expr, index: &'a Expr, cursor: Cursor<'a>, spot: Spot, side: Side) -> Reduced<'a> {
    let metadata = path(value, cursor).as_deref() == Some("metadata");
    let key = cursor.string_value(bare(index)).filter(|_| metadata);
    let index = match key {
        Some(key) => NodeKind::Label(format!("string:{}", side.dialect.canonical_metadata_key(&key))),
        None => NodeKind::Expr(index),
    };
    ("subscript".to_owned(), vec![Node(NodeKind::Expr(value), cursor, spot), Node(index, cursor, spot)])
}

fn dict<'a>(pairs: &'a [(Option<Expr>, Expr)], cursor: Cursor<'a>, spot: Spot, side: Side) -> Reduced<'a> {
    let mut label = "dict:".to_owned();
    let mut parts = Vec::new();
    for (key, value) in pairs {
        label.push(if key.is_some() { '.' } else { '*' });
        parts.extend(key.iter().map(|key| match cursor.string_value(bare(key)).filter(|_| spot.attributes) {
            Some(text) => {
                Node(NodeKind::Label(format!("string:{}", side.dialect.canonical_attr_key(&text))), cursor, spot)
            }
            None => Node(NodeKind::Expr(key), cursor, spot),
        }));
        parts.push(Node(NodeKind::Expr(value), cursor, spot));
    }
    (label, parts)
}

fn call<'a>(callee: &'a Expr, arguments: &'a [Argument], cursor: Cursor<'a>, spot: Spot, side: Side) -> Reduced<'a> {
    let written = path(callee, cursor);
    let name = written.map(|written| canonical_callee(side.dialect, &written, arguments, cursor)).unwrap_or_default();
    if let Some(same) = same_as_call(&name, arguments, cursor, spot, side) {
        return (same, Vec::new());
    }
    let holder = dim_argument(&name, arguments, cursor).filter(|_| spot.signature);
    let spot = Spot { dim: false, attributes: takes_attributes(&name), ..spot };
    let mut label = format!("call:{name}");
    let mut parts = Vec::new();
    if name.is_empty() {
        parts.push(Node(NodeKind::Expr(callee), cursor, spot));
    }
    for (at, argument) in arguments.iter().enumerate() {
        let keyword = argument.keyword.map(|token| side.dialect.canonical_keyword(cursor.text(token))).unwrap_or("");
        label.push_str(&format!(",{keyword}"));
        let value = bare(&argument.value);
        let named_dim = !keyword.is_empty() && dims(value).is_empty();
        let difference = match &value.kind {
            ExprKind::Tuple(inputs) if at == 1 && side.mixed && calls_tir(&name) => NodeKind::Inputs(inputs),
            _ if holder == Some(at) && !dims(value).is_empty() => {
                let list = matches!(value.kind, ExprKind::List(_));
                label.push_str(if list { "list" } else { "tuple" });
                label.push_str(&dims(value).len().to_string());
                let spot = Spot { dim: true, ..spot };
                parts.extend(dims(value).iter().map(|dim| Node(NodeKind::Expr(dim), cursor, spot)));
                continue;
            }
            _ => match special_value(&name, keyword, at, value, cursor) {
                Some(label) => NodeKind::Label(label),
                None => NodeKind::Expr(value),
            },
        };
        let dim = holder == Some(at) && named_dim;
        parts.push(Node(difference, cursor, Spot { dim, ..spot }));
    }
    (label, parts)
}

/// Reduces calls for which another dialect has no call: `R.Prim("int64")` is `T.int64`, and `T.bool(True)` in an
/// attribute is `True`.
fn same_as_call(name: &str, arguments: &[Argument], cursor: Cursor<'_>, spot: Spot, side: Side) -> Option<String> {
    let [one] = arguments else { return None };
    let value = bare(&one.value);
    if let (true, "T.bool", ExprKind::Bool(value)) = (spot.attributes, name, &value.kind) {
        return Some(format!("bool:{value}"));
    }
    let dtype = (side.relax && name == "R.Prim").then(|| prim_type(name, arguments, cursor)).flatten()?;
    Some(format!("path:T.{dtype}"))
}

/// Reduces values that the dialects spell differently: an absent dtype, infinities and NaN.
fn special_value(callee: &str, keyword: &str, at: usize, value: &Expr, cursor: Cursor<'_>) -> Option<String> {
    let text = cursor.string_value(value);
    if matches!(keyword, "out_dtype" | "dtype") && text.as_deref() == Some("void") {
        return Some("none".to_owned());
    }
    if last_part(callee) != "const" || at != 0 {
        return None;
    }
    let special = text.as_deref().and_then(special_float).or_else(|| float_call(value, cursor))?;
    Some(format!("float:{special}"))
}
