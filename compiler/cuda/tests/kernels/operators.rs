//! The cases of operators (`tests/operators`), with checked indices as for a compiled target.
//!
//! rx-ops compares the results with NumPy; these tests compare kernels with the interpreter.

use crate::case::Case;
use rx_base::name::{Name, name};
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim, Span};
use rx_ir::struct_info::PrimInfo;
use rx_ir::{Attr, Expr, ExprKind, Literal, PrimValue, Shape, StructInfo, TensorInfo};
use rx_ops::compute::{flatten, lower};
use rx_ops::{Arg, CallInfo, Compute, Input};
use rx_tensor::{Scalar, Tensor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Symbols = BTreeMap<String, i64>;

/// The tensors of the operands, each with its parameter and, in a tuple, its index.
type Data = Vec<(String, Option<usize>, Tensor)>;

/// Returns the cases of each file, except those of views and identities, and those that cannot be read or lowered.
pub fn families() -> Vec<(String, Vec<Case>)> {
    let folder = folder();
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    paths.sort();
    let family = |path: &Path| {
        let family = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let cases = text.lines().enumerate().filter_map(|(line, text)| {
            let place = format!("{family}:{}", line + 1);
            let case: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{place}: {error}"));
            // Cases that cannot be lowered fail in the tests of rx-ops, not here.
            read(&case, place).ok().flatten()
        });
        let cases: Vec<Case> = cases.collect();
        (family, cases)
    };
    paths.iter().map(|path| family(path)).collect()
}

/// Returns the folder `tests/operators` of the checkout in which this binary was built, or, if the binary was copied to
/// another machine, of the checkout in which it runs.
fn folder() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/operators");
    let here = std::env::current_dir().unwrap_or_default();
    let found = here.ancestors().map(|above| above.join("tests/operators")).find(|folder| folder.is_dir());
    found.filter(|_| !built.is_dir()).unwrap_or(built)
}

/// Reads a case. Returns `None` for an operator that computes nothing: a view or an identity.
fn read(case: &Value, place: String) -> Result<Option<Case>, String> {
    let operator = case["operator"].as_str().ok_or("no operator")?;
    let schema = rx_ops::find(name(operator)).ok_or("no such operator")?;
    if matches!(schema.compute, Some(Compute::View(_) | Compute::Identity(_))) {
        return Ok(None);
    }
    let symbols: Symbols = serde_json::from_value(case["symbols"].clone()).map_err(|error| error.to_string())?;
    let mut data = Data::new();
    let mut operands = BTreeMap::new();
    let mut attrs = BTreeMap::new();
    for (param, value) in case["args"].as_object().ok_or("no args")? {
        match value.get("attr").or_else(|| value.get("opaque").map(|_| value)) {
            Some(value) => drop(attrs.insert(param.as_str(), attr(value)?)),
            None => drop(operands.insert(param.as_str(), operand(param, None, value, &symbols, &mut data)?)),
        }
    }
    let defaults: Vec<Option<Attr>> = schema.params.iter().map(|param| param.default.to_attr()).collect();
    let bound: Vec<Arg<'_>> = std::iter::zip(schema.params, &defaults)
        .map(|(param, default)| match (operands.get(param.name), attrs.get(param.name).or(default.as_ref())) {
            (Some(expr), _) => Arg::Operand(expr),
            (None, Some(attr)) => Arg::Attr(attr),
            (None, None) => Arg::Absent,
        })
        .collect();
    let bounds = Bounds::default();
    let call = CallInfo::new(schema, &bound, &bounds);
    let result = (schema.infer)(&call).map_err(|problem| format!("{problem:?}"))?;
    let kernel = lower(&call, &result).map_err(|error| error.to_string())?;
    let mut arguments = Vec::new();
    for input in &kernel.inputs {
        arguments.push(input_of(input, &data)?);
    }
    for ty in flatten(&result) {
        let tensor = ty.as_tensor().ok_or("a result is no tensor")?;
        let dims = tensor.shape.dims().ok_or("a result's shape is not known")?;
        let shape = dims.iter().map(|dim| value_of(dim, &symbols)).collect::<Result<Vec<_>, _>>()?;
        let dtype = tensor.dtype.ok_or("a result's dtype is not known")?;
        arguments.push(Tensor::zeros(dtype, &shape).map_err(|error| error.to_string())?);
    }
    let scalar = |symbol: Name| symbols.get(symbol.as_str()).map(|value| Scalar::Int(*value)).ok_or("no such symbol");
    let scalars = kernel.func.scalar_params().map(|var| scalar(kernel.func.var(var).name)).collect::<Result<_, _>>()?;
    let (func, _) = rx_loops::guards(&rx_loops::simplify(&kernel.func));
    let narrow = arguments.iter().any(|tensor| tensor.dtype().is_float() && tensor.dtype().bits < 32);
    let tolerance = if narrow { 2e-2 } else { 1e-5 };
    Ok(Some(Case { name: format!("{place} R.{operator}"), func, arguments, scalars, tolerance }))
}

fn input_of(input: &Input, data: &Data) -> Result<Tensor, String> {
    let found = data.iter().find(|(param, element, _)| {
        param == input.param && (*element == input.element || (element.is_none() && input.element == Some(0)))
    });
    let (_, _, tensor) = found.ok_or_else(|| format!("no data for {input:?}"))?;
    tensor.duplicate().map_err(|error| error.to_string())
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
    symbols: &Symbols,
    data: &mut Data,
) -> Result<Expr, String> {
    let (kind, ty) = if let Some(shape) = value.get("tensor") {
        let (dims, dtype) = (dims(shape)?, dtype(&value["dtype"])?);
        let extents = dims.iter().map(|dim| value_of(dim, symbols)).collect::<Result<Vec<_>, _>>()?;
        let mut tensor = Tensor::zeros(dtype, &extents).map_err(|error| error.to_string())?;
        for (at, element) in value["data"].as_array().ok_or("no data")?.iter().enumerate() {
            tensor.set(at, scalar(element)?);
        }
        data.push((param.to_owned(), element, tensor));
        (ExprKind::Var(name(param)), tensor_type(dims, dtype))
    } else if let Some(number) = value.get("const") {
        let literal = match scalar(number)? {
            Scalar::Int(value) => Literal::Int(value),
            Scalar::Float(value) => Literal::Float(value),
        };
        (ExprKind::Constant(literal), tensor_type(Vec::new(), dtype(&value["dtype"])?))
    } else if let Some(number) = value.get("prim") {
        prim(number, &value["dtype"])?
    } else if let Some(shape) = value.get("shape") {
        let dims = dims(shape)?;
        (ExprKind::Shape(dims.clone()), StructInfo::Shape(Shape::known(dims)))
    } else {
        let fields = value["tuple"].as_array().ok_or("no operand")?.iter().enumerate();
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
    value.as_str().and_then(DType::parse).ok_or_else(|| format!("no dtype {value}"))
}

fn dims(value: &Value) -> Result<Vec<Dim>, String> {
    value.as_array().ok_or("no shape")?.iter().map(dim).collect()
}

/// Reads a dimension: an integer or the name of a symbol.
fn dim(value: &Value) -> Result<Dim, String> {
    match value {
        Value::String(symbol) => Ok(Dim::symbol(name(symbol))),
        value => value.as_i64().map(Dim::constant).ok_or_else(|| format!("no dim: {value}")),
    }
}

fn value_of(dim: &Dim, symbols: &Symbols) -> Result<i64, String> {
    let of = |symbol: Name| symbols.get(symbol.as_str()).copied().map(Dim::constant);
    dim.substitute(&of).as_constant().ok_or_else(|| format!("the value of {dim} is not known"))
}

/// Reads an element: a number, a boolean, or a string for a value that JSON cannot represent, for example `nan`.
fn scalar(value: &Value) -> Result<Scalar, String> {
    match value {
        Value::Bool(value) => Some(Scalar::Int(i64::from(*value))),
        Value::String(text) => text.parse().ok().map(Scalar::Float),
        value => value.as_i64().map(Scalar::Int).or_else(|| value.as_f64().map(Scalar::Float)),
    }
    .ok_or_else(|| format!("no number: {value}"))
}

#[test]
#[ignore = "sweep: .ci/full"]
fn operators_agree_with_the_interpreter() {
    let families = families();
    let cases: usize = families.iter().map(|(_, cases)| cases.len()).sum();
    println!("{cases} cases of operators");
    std::thread::scope(|scope| {
        let run: Vec<_> = families.iter().map(|(_, cases)| scope.spawn(|| crate::simulated::agree(cases))).collect();
        run.into_iter().for_each(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
}

#[test]
fn operators_compile_for_sm_80_and_sm_90() {
    if crate::nvrtc::is_found() {
        families().iter().for_each(|(_, cases)| crate::nvrtc::compiles(&crate::source(cases).text));
    }
}
