//! Printing of expressions, calls and attributes.

use super::{quoted, ty};
use rx_base::{DType, TvmVersion};
use rx_ir::{Argument, Attr, Call, Callee, Expr, ExprKind, Literal, PrimValue, StructInfo};
use rx_ops::{Param, ParamKind};

/// Prints a value on the right-hand side of a binding. A tuple of several fields has no parentheses there, as TVM
/// prints it: `y = a, b`.
pub(super) fn bound(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Tuple(items) if items.len() > 1 => list(items),
        _ => operand(expr),
    }
}

fn list(items: &[Expr]) -> String {
    items.iter().map(operand).collect::<Vec<_>>().join(", ")
}

/// Prints a value as an operand of a call or of another value.
pub(super) fn operand(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Var(variable) => variable.to_string(),
        ExprKind::Global(function) => format!("cls.{function}"),
        ExprKind::Extern(symbol) => format!("R.ExternFunc({})", string(symbol)),
        ExprKind::Constant(value) => constant(&literal(value), &expr.ty),
        ExprKind::Elements(elements) => constant(&nested(elements, &expr.ty), &expr.ty),
        ExprKind::Metadata { key, index } => format!("metadata[{}][{index}]", string(key)),
        ExprKind::Prim(value) => prim(value, &expr.ty),
        ExprKind::Str(text) => format!("R.str({})", string(text)),
        ExprKind::DType(dtype) => format!("R.dtype(\"{dtype}\")"),
        ExprKind::Shape(dims) => {
            let dims: Vec<String> = dims.iter().map(|dim| dim.to_string()).collect();
            format!("R.shape([{}])", dims.join(", "))
        }
        ExprKind::Tuple(items) => match &items[..] {
            [] => "R.tuple()".to_owned(),
            [one] => format!("({},)", operand(one)),
            several => format!("({})", list(several)),
        },
        ExprKind::TupleGet(tuple, at) => format!("{}[{at}]", operand(tuple)),
        ExprKind::Call(call) => self::call(call),
        ExprKind::MatchCast(value) => format!("R.match_cast({}, {})", operand(value), ty(&expr.ty)),
        ExprKind::Written(text) => text.to_string(),
        ExprKind::Error => "None".to_owned(),
    }
}

/// Prints a constant, for example `R.const(1.0, "float32")`; for a distributed tensor, with its whole type.
fn constant(value: &str, info: &StructInfo) -> String {
    if matches!(info, StructInfo::DTensor(_)) {
        return format!("R.dist.const({value}, {})", ty(info));
    }
    match info.as_tensor().and_then(|tensor| tensor.dtype) {
        Some(dtype) => format!("R.const({value}, \"{dtype}\")"),
        None => format!("R.const({value})"),
    }
}

fn literal(value: &Literal) -> String {
    match value {
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) => float(*value),
        Literal::Bool(value) => python_bool(*value).to_owned(),
    }
}

fn python_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Prints a float so that Python reads it back.
fn float(value: f64) -> String {
    match value.is_finite() {
        true => format!("{value:?}"),
        false => format!(
            "float(\"{}\")",
            if value.is_nan() {
                "nan"
            } else if value > 0.0 {
                "inf"
            } else {
                "-inf"
            }
        ),
    }
}

/// Prints elements, given in row-major order, as nested lists.
fn nested(elements: &[Literal], info: &StructInfo) -> String {
    let dims = info.as_tensor().and_then(|tensor| tensor.shape.dims());
    let dims: Vec<usize> =
        dims.into_iter().flatten().filter_map(|dim| usize::try_from(dim.as_constant()?).ok()).collect();
    rows(elements, &dims)
}

fn rows(elements: &[Literal], dims: &[usize]) -> String {
    let Some((_, inner)) = dims.split_first() else { return elements.first().map(literal).unwrap_or_default() };
    let size = inner.iter().product::<usize>().max(1);
    let rows: Vec<String> = elements.chunks(size).map(|row| rows(row, inner)).collect();
    format!("[{}]", rows.join(", "))
}

/// Prints a scalar. An `int64` or a `bool` is printed as a plain Python value, which reads back as that dtype. A scalar
/// of another dtype is printed with its dtype, for example `T.float32(1.0)`; of unknown dtype, as a plain value.
fn prim(value: &PrimValue, info: &StructInfo) -> String {
    let dtype = match info {
        StructInfo::Prim(prim) => prim.dtype,
        _ => None,
    };
    let (text, natural) = match value {
        PrimValue::Int(dim) => (dim.to_string(), DType::INT64),
        PrimValue::Float(value) => {
            let text = float(*value);
            return dtype.map_or(text.clone(), |dtype| format!("T.{dtype}({text})"));
        }
        PrimValue::Bool(value) => (python_bool(*value).to_owned(), DType::BOOL),
        PrimValue::Opaque => return "None".to_owned(),
    };
    match dtype {
        Some(dtype) if dtype != natural => format!("T.{dtype}({text})"),
        _ => text,
    }
}

/// Prints a call of an operator, a function or a value. For operators, the arguments are in the order of the schema.
/// Leading operands and variadic operands are positional; later operands, attributes and types are keyword arguments.
/// For functions and values, all arguments are positional.
fn call(call: &Call) -> String {
    let callee = match &call.callee {
        Callee::Op(op) => return operator(op.as_str(), call),
        Callee::Global(function) => format!("cls.{function}"),
        Callee::Value(callee) => operand(callee),
    };
    let mut arguments = Vec::new();
    for argument in &call.arguments {
        match argument {
            Argument::Operand(value) => arguments.push(operand(value)),
            Argument::Operands(values) => arguments.extend(values.iter().map(operand)),
            Argument::Attr(value) => arguments.push(attribute(value)),
            Argument::Absent | Argument::Types(_) => {}
        }
    }
    format!("{callee}({})", arguments.join(", "))
}

fn operator(name: &str, call: &Call) -> String {
    // `call_packed` has no schema; its arguments are those of `call_pure_packed`.
    let schema = if name == "call_packed" { "call_pure_packed" } else { name };
    let params = rx_ops::find(rx_base::name::name(schema)).map_or(&[][..], |schema| schema.params);
    let distributed = call.arguments.iter().any(
        |argument| matches!(argument, Argument::Types(types) if matches!(types[..], [StructInfo::DTensor(_), ..])),
    );
    let spelled = if name == "call_tir" && distributed { "dist.call_tir" } else { name };
    let refused = rx_ops::tvm::refused_keywords(TvmVersion::V0_27, name);
    let is_nothing =
        |value: &Attr| matches!(value, Attr::None) || matches!(value, Attr::List(items) if items.is_empty());
    let mut arguments = Vec::new();
    let mut by_position = true;
    for (param, argument) in params.iter().zip(&call.arguments) {
        match argument {
            Argument::Absent => by_position = false,
            Argument::Operand(value) => {
                let text = passed(param, value);
                arguments.push(if by_position { text } else { format!("{}={text}", param.name) });
            }
            Argument::Operands(values) => {
                arguments.extend(values.iter().map(operand));
                by_position = false;
            }
            // TVM 0.27 does not accept some keywords; an argument for one is left out if it is `None` or an empty list.
            Argument::Attr(value) if is_nothing(value) && refused.iter().any(|it| it.name() == param.name) => {
                by_position = false
            }
            Argument::Attr(value) => {
                arguments.push(format!("{}={}", param.name, attribute(value)));
                by_position = false;
            }
            Argument::Types(types) => {
                arguments.extend(self::types(param, types));
                by_position = false;
            }
        }
    }
    format!("R.{spelled}({})", arguments.join(", "))
}

/// Prints an operand of an operator call. A function that is called by name is printed as a bare string, and a dtype as
/// `R.dtype`.
fn passed(param: &Param, value: &Expr) -> String {
    match &value.kind {
        ExprKind::Str(text) if param.kind == ParamKind::Function => string(text),
        ExprKind::Extern(symbol) if param.kind == ParamKind::Function => string(symbol),
        // TVM's runtime takes a dtype, which may be written as a string in the source.
        ExprKind::Str(text) if param.name == "dtype" && DType::parse(text).is_some() => {
            format!("R.dtype({})", string(text))
        }
        _ => operand(value),
    }
}

/// Prints `out_ty=R.Tensor(…)`, `out_ty=[…]` or `ty_args=(…,)`; `None` if there are no types.
fn types(param: &Param, types: &[StructInfo]) -> Option<String> {
    let texts: Vec<String> = types.iter().map(ty).collect();
    let all = texts.join(", ");
    Some(match (param.name, types) {
        (_, []) => return None,
        ("ty_args", [_]) => format!("ty_args=({all},)"),
        ("ty_args", _) => format!("ty_args=({all})"),
        (name, [_]) => format!("{name}={all}"),
        (name, _) => format!("{name}=[{all}]"),
    })
}

/// Prints an attribute as a Python value.
pub(super) fn attribute(value: &Attr) -> String {
    match value {
        Attr::Str(text) => string(text),
        Attr::Float(value) => float(*value),
        Attr::List(items) => format!("[{}]", items.iter().map(attribute).collect::<Vec<_>>().join(", ")),
        Attr::Dict(entries) => {
            let entry = |(key, value): &(_, Attr)| format!("{}: {}", quoted(key), attribute(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Opaque(_) => value.to_string(),
    }
}

/// Prints a string literal in double quotes.
pub(super) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    rx_syntax::printer::quote(&mut out, text);
    out
}
