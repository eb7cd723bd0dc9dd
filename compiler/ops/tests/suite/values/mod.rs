//! Runs a table of calls with reference values: parses, lowers, interprets and compares them.
//!
//! A file has one case per line, written by `tests/scripts/operator_values_*.py`: the operator, its operands and
//! attributes by parameter, the values of symbols, the inputs, and the expected results or a part of the expected
//! error.

mod known;

use known::Reported;
use rx_base::name::{Name, name};
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim, Span};
use rx_interp::RunError;
use rx_ir::struct_info::PrimInfo;
use rx_ir::{Attr, Expr, ExprKind, Literal, PrimValue, Shape, StructInfo, TensorInfo};
use rx_ops::compute::{flatten, lower};
use rx_ops::{Arg, CallInfo, Compute, Input};
use rx_tensor::{Scalar, Tensor};
use rx_tir::Param;
use serde_json::Value;
use std::collections::BTreeMap;

/// The tolerance of floats, relative and absolute, if the case states none.
const TOLERANCE: f64 = 1e-6;

/// The argument of a case for one parameter.
enum Given {
    Operand(Expr),
    Attr(Attr),
}

/// Runs every case of a file, and panics with a list of all failures.
pub fn check_file(path: &str, text: &str) {
    let mut failures = Vec::new();
    let mut cases = 0;
    for (line, text) in text.lines().enumerate() {
        let case: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{path}:{}: {error}", line + 1));
        cases += 1;
        if let Err(why) = check(&case) {
            failures.push(format!("{path}:{}: R.{}: {why}", line + 1, case["operator"]));
        }
    }
    assert!(cases > 0, "{path} has no cases");
    assert!(failures.is_empty(), "{} of {cases} cases:\n{}", failures.len(), failures.join("\n"));
}

fn check(case: &Value) -> Result<(), String> {
    check_told(case, &[Reported::Ends, Reported::Nothing])?;
    // Value rules track elements only for constant extents, so the case runs again with its symbols replaced by
    // numbers.
    let mut constant = case.clone();
    put_in(&mut constant["args"], &case["symbols"]);
    check_told(&constant, &[Reported::Elements, Reported::Ends])
}

/// Replaces symbols by their values.
fn put_in(value: &mut Value, symbols: &Value) {
    match value {
        Value::String(text) => {
            if let Some(symbol) = symbols.get(text.as_str()) {
                *value = symbol.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put_in(item, symbols)),
        Value::Object(fields) => {
            let not_names = fields.iter_mut().filter(|(key, _)| !matches!(key.as_str(), "dtype" | "attr" | "data"));
            not_names.for_each(|(_, field)| put_in(field, symbols));
        }
        _ => {}
    }
}

/// The outcome of lowering a case's call.
#[allow(dead_code, reason = "each test reads what it asks of")]
pub enum Outcome {
    /// The struct-info rule rejects the call, or does not determine the result's shape.
    Refused,
    /// The call has well-formed loops, or needs none.
    Lowered,
    /// The call is accepted but cannot be lowered, for this reason.
    Failed(String),
}

/// Lowers the call of a case, without comparing results.
#[allow(dead_code, reason = "asked by one of the tests that read cases")]
pub fn outcome(case: &Value) -> Result<Outcome, String> {
    with_call(case, |call, _, _| {
        let Ok(result) = (call.schema.infer)(call) else { return Ok(Outcome::Refused) };
        if !flatten(&result).iter().all(is_known)
            || matches!(call.schema.compute, Some(Compute::View(_) | Compute::Identity(_)))
        {
            return Ok(Outcome::Refused);
        }
        Ok(match lower(call, &result) {
            Err(reason) => Outcome::Failed(reason.to_string()),
            Ok(kernel) => match rx_interp::Program::new(&kernel.func) {
                Err(mistake) => Outcome::Failed(mistake.to_string()),
                Ok(_) => Outcome::Lowered,
            },
        })
    })
}

/// Whether shape and dtype of a tensor are known.
fn is_known(ty: &&StructInfo) -> bool {
    let known = |dims: &[Dim]| !dims.iter().any(Dim::is_error);
    ty.as_tensor().is_some_and(|tensor| tensor.dtype.is_some() && tensor.shape.dims().is_some_and(known))
}

/// The tensors of a case, by parameter and index in a tuple.
type Data = [(String, Option<usize>, Tensor)];

/// Calls `ask` with the call of a case, its symbols and its tensors.
fn with_call<T>(
    case: &Value,
    ask: impl FnOnce(&CallInfo<'_>, &BTreeMap<String, i64>, &Data) -> Result<T, String>,
) -> Result<T, String> {
    let operator = case["operator"].as_str().ok_or("no operator")?;
    let schema = rx_ops::find(name(operator)).ok_or("no such operator")?;
    let symbols: BTreeMap<String, i64> = serde_json::from_value(case["symbols"].clone()).map_err(|e| e.to_string())?;
    let mut given = BTreeMap::new();
    let mut data = Vec::new();
    for (param, value) in case["args"].as_object().ok_or("no args")? {
        if !schema.params.iter().any(|known| known.name == param) {
            return Err(format!("no parameter `{param}`"));
        }
        given.insert(param.as_str(), self::given(param, value, &symbols, &mut data)?);
    }
    let defaults: Vec<Option<Attr>> = schema.params.iter().map(|param| param.default.to_attr()).collect();
    let bound: Vec<Arg<'_>> = std::iter::zip(schema.params, &defaults)
        .map(|(param, default)| match given.get(param.name) {
            Some(Given::Operand(expr)) => Arg::Operand(expr),
            Some(Given::Attr(attr)) => Arg::Attr(attr),
            None => default.as_ref().map_or(Arg::Absent, Arg::Attr),
        })
        .collect();
    let bounds = Bounds::default();
    ask(&CallInfo::new(schema, &bound, &bounds), &symbols, &data)
}

fn check_told(case: &Value, reported: &[Reported]) -> Result<(), String> {
    with_call(case, |call, symbols, data| check_call(case, call, symbols, data, reported))
}

fn check_call(
    case: &Value,
    call: &CallInfo<'_>,
    symbols: &BTreeMap<String, i64>,
    data: &Data,
    reported: &[Reported],
) -> Result<(), String> {
    let result = (call.schema.infer)(call).map_err(|problem| format!("{problem:?}"))?;
    // A rule may infer less for numbers than for symbols, as for `batch_norm` of two dimensions.
    if reported.contains(&Reported::Elements) && !flatten(&result).iter().all(is_known) {
        return Ok(());
    }
    let results = run(call, &result, symbols, data);
    if let Some(wanted) = case["error"].as_str() {
        return match results {
            Err(error) if error.contains(wanted) => Ok(()),
            Err(error) => Err(format!("the error is \"{error}\", wanted one with \"{wanted}\"")),
            Ok(_) => Err(format!("no error, wanted one with \"{wanted}\"")),
        };
    }
    let results = results?;
    for reported in reported {
        known::check(call, &result, &results, symbols, data, *reported)?;
    }
    let wanted = case["results"].as_array().ok_or("no results")?;
    if wanted.len() != results.len() {
        return Err(format!("{} results, {} wanted", results.len(), wanted.len()));
    }
    let tolerance = case["tolerance"].as_f64().unwrap_or(TOLERANCE);
    for (at, (result, wanted)) in results.iter().zip(wanted).enumerate() {
        compare(result, wanted, symbols, tolerance).map_err(|why| format!("result {at}: {why}"))?;
    }
    Ok(())
}

/// Lowers the call and interprets it. For a view, returns the operand's elements with the result's shape.
fn run(
    call: &CallInfo<'_>,
    result: &StructInfo,
    symbols: &BTreeMap<String, i64>,
    data: &[(String, Option<usize>, Tensor)],
) -> Result<Vec<Tensor>, String> {
    let input = |input: &Input| {
        let found = data.iter().find(|(param, element, _)| {
            param == input.param && (*element == input.element || (element.is_none() && input.element == Some(0)))
        });
        let (_, _, tensor) = found.ok_or_else(|| format!("no data for {input:?}"))?;
        tensor.duplicate().map_err(|error| format!("{error:?}"))
    };
    let mut outputs = Vec::new();
    for ty in flatten(result) {
        let tensor = ty.as_tensor().ok_or("a result is no tensor")?;
        let dims = tensor.shape.dims().ok_or_else(|| format!("a result's shape is not known: {ty}"))?;
        let shape: Vec<i64> = dims.iter().map(|dim| value_of(dim, symbols)).collect::<Result<_, _>>()?;
        let dtype = tensor.dtype.ok_or("a result's dtype is not known")?;
        outputs.push(Tensor::zeros(dtype, &shape).map_err(|error| format!("{error:?}"))?);
    }
    if let Some(Compute::View(param)) = call.schema.compute {
        let operand = input(&Input { param, element: None })?;
        let shape = outputs.first().ok_or("no result")?.shape().to_vec();
        return Ok(vec![operand.reshaped(&shape).map_err(|error| format!("{error:?}"))?]);
    }
    if let Some(Compute::Identity(param)) = call.schema.compute {
        return Ok(vec![input(&Input { param, element: None })?]);
    }
    let kernel = lower(call, result).map_err(|error| error.to_string())?;
    let mut buffers = kernel.inputs.iter().map(input).collect::<Result<Vec<Tensor>, String>>()?;
    let inputs = buffers.len();
    buffers.extend(outputs);
    let mut scalars = Vec::new();
    for param in &kernel.func.params {
        if let Param::Scalar(var) = param {
            let symbol = kernel.func.var(*var).name;
            let value = symbols.get(&*symbol.to_string()).ok_or_else(|| format!("no value for symbol {symbol}"))?;
            scalars.push(Scalar::Int(*value));
        }
    }
    rx_interp::run(&kernel.func, &mut buffers, &scalars).map_err(|error: RunError| error.to_string())?;
    Ok(buffers.split_off(inputs))
}

fn compare(result: &Tensor, wanted: &Value, symbols: &BTreeMap<String, i64>, tolerance: f64) -> Result<(), String> {
    let shape = dims(&wanted["shape"])?.iter().map(|dim| value_of(dim, symbols)).collect::<Result<Vec<_>, _>>()?;
    let dtype = dtype(&wanted["dtype"])?;
    if result.shape() != shape || result.dtype() != dtype {
        return Err(format!("{:?} {}, wanted {shape:?} {dtype}", result.shape(), result.dtype()));
    }
    // The expected values are exact; conversion to a narrow dtype may round to the other neighbor.
    let tolerance =
        if dtype.bits == 16 { tolerance.max(if dtype == DType::FLOAT16 { 1e-3 } else { 8e-3 }) } else { tolerance };
    let values = wanted["data"].as_array().ok_or("no data")?;
    for (at, value) in values.iter().enumerate() {
        let (value, got) = (scalar(value)?, result.get(at).ok_or("too few elements")?);
        let equal = match (value, got) {
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (a, b) => close(a.as_float(), b.as_float(), tolerance),
        };
        if !equal {
            return Err(format!("element {at} is {got:?}, wanted {value:?}"));
        }
    }
    Ok(())
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

fn given(
    param: &str,
    value: &Value,
    symbols: &BTreeMap<String, i64>,
    data: &mut Vec<(String, Option<usize>, Tensor)>,
) -> Result<Given, String> {
    match value.get("attr").or_else(|| value.get("opaque").map(|_| value)) {
        Some(value) => attr(value).map(Given::Attr),
        None => operand(param, None, value, symbols, data).map(Given::Operand),
    }
}

fn attr(value: &Value) -> Result<Attr, String> {
    Ok(match value {
        Value::Null => Attr::None,
        Value::Bool(value) => Attr::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Attr::Int(value.into()),
            None => Attr::Float(number.as_f64().ok_or("no number")?),
        },
        Value::String(text) => Attr::Str(text.as_str().into()),
        Value::Array(items) => Attr::List(items.iter().map(attr).collect::<Result<_, _>>()?),
        Value::Object(object) => {
            Attr::Opaque(object.get("opaque").and_then(Value::as_str).ok_or("no attribute")?.into())
        }
    })
}

fn operand(
    param: &str,
    element: Option<usize>,
    value: &Value,
    symbols: &BTreeMap<String, i64>,
    data: &mut Vec<(String, Option<usize>, Tensor)>,
) -> Result<Expr, String> {
    let (kind, ty) = if let Some(shape) = value.get("tensor") {
        let (dims, dtype) = (dims(shape)?, dtype(&value["dtype"])?);
        let extents: Vec<i64> = dims.iter().map(|dim| value_of(dim, symbols)).collect::<Result<_, _>>()?;
        let mut tensor = Tensor::zeros(dtype, &extents).map_err(|error| format!("{error:?}"))?;
        for (at, element) in value["data"].as_array().ok_or("no data")?.iter().enumerate() {
            tensor.set(at, scalar(element)?);
        }
        data.push((param.to_owned(), element, tensor));
        (ExprKind::Var(name(param)), tensor_type(dims, dtype))
    } else if let Some(number) = value.get("const") {
        let literal = match scalar(number)? {
            Scalar::Int(value) if !number.is_f64() => Literal::Int(value),
            value => Literal::Float(value.as_float()),
        };
        (ExprKind::Constant(literal), tensor_type(Vec::new(), dtype(&value["dtype"])?))
    } else if let Some(number) = value.get("prim") {
        prim(number, &value["dtype"])?
    } else if let Some(shape) = value.get("shape") {
        let dims = dims(shape)?;
        (ExprKind::Shape(dims.clone()), StructInfo::Shape(Shape::known(dims)))
    } else {
        let fields = value["tuple"].as_array().ok_or("no operand")?;
        let fields = fields.iter().enumerate();
        let fields = fields.map(|(at, field)| operand(param, Some(at), field, symbols, data));
        let fields = fields.collect::<Result<Vec<Expr>, String>>()?;
        let ty = StructInfo::tuple(fields.iter().map(|field| field.ty.clone()).collect::<Vec<_>>());
        (ExprKind::Tuple(fields), ty)
    };
    Ok(Expr { kind, ty, span: Span::new(0, 0) })
}

fn tensor_type(dims: Vec<Dim>, dtype: DType) -> StructInfo {
    TensorInfo { shape: Shape::known(dims), dtype: Some(dtype), vdevice: None, dtype_error: false, readings: None }
        .into()
}

fn prim(value: &Value, dtype: &Value) -> Result<(ExprKind, StructInfo), String> {
    let dtype = dtype.as_str().map(|text| DType::parse(text).ok_or("no dtype")).transpose()?;
    let float = match value {
        Value::String(text) => text.parse::<f64>().ok(),
        value if value.is_f64() => value.as_f64(),
        _ => None,
    };
    Ok(match float {
        Some(float) => (ExprKind::Prim(PrimValue::Float(float)), StructInfo::Prim(PrimInfo { dtype, value: None })),
        None => {
            let dim = dim(value)?;
            let info = PrimInfo { dtype, value: Some(dim.clone()) };
            (ExprKind::Prim(PrimValue::Int(dim)), StructInfo::Prim(info))
        }
    })
}

fn dtype(value: &Value) -> Result<DType, String> {
    let text = value.as_str().ok_or("no dtype")?;
    DType::parse(text).ok_or_else(|| format!("no dtype {text}"))
}

fn dims(value: &Value) -> Result<Vec<Dim>, String> {
    value.as_array().ok_or("no shape")?.iter().map(dim).collect()
}

/// Parses an integer or a symbol.
fn dim(value: &Value) -> Result<Dim, String> {
    match value {
        Value::String(symbol) => Ok(Dim::symbol(name(symbol))),
        value => value.as_i64().map(Dim::constant).ok_or_else(|| format!("no dim: {value}")),
    }
}

fn value_of(dim: &Dim, symbols: &BTreeMap<String, i64>) -> Result<i64, String> {
    let of = |symbol: Name| symbols.get(&*symbol.to_string()).copied().map(Dim::constant);
    dim.substitute(&of).as_constant().ok_or_else(|| format!("the value of {dim} is not known"))
}

/// Parses an element: a number, or the name of a value that JSON cannot represent.
fn scalar(value: &Value) -> Result<Scalar, String> {
    match value {
        Value::Bool(value) => Some(Scalar::Int(i64::from(*value))),
        Value::String(text) => text.parse().ok().map(Scalar::Float),
        value => value.as_i64().map(Scalar::Int).or_else(|| value.as_f64().map(Scalar::Float)),
    }
    .ok_or_else(|| format!("no number: {value}"))
}
