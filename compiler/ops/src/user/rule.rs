//! Matches a call with the declaration of its operator: binds variables from left to right, then checks all equalities
//! and constraints, then computes the result type.
//!
//! As for the symbols of a prim_func, the first bare occurrence of a dim variable binds it, and each other occurrence
//! is an equality. A refuted equality is an error; an undecided one is left to run time. For example, for the operands
//! `("m", "k")` and `("k", "n")`, the call with `[2, 3]` and `[4, 5]` is an error because `k` is 3 and 4.

mod condition;
mod result;

use super::Operator;
use super::pattern::{AxisPattern, DimOp, DimPattern, DtypePattern, ShapePattern, TypePattern};
use super::{DeclaredParam, Takes};
use crate::broadcast::{RULE, broadcast_shapes};
use crate::call::{Arg, CallInfo, ParamPlace, Problem};
use rx_base::name::NameMap;
use rx_base::{Answer, Code, DType, Dim, Name};
use rx_ir::{Attr, PrimInfo, Shape, StructInfo, TensorInfo, VDevice};

/// Infers the type of a call of a declared operator.
///
/// # Errors
/// Reports the part of the call that contradicts the declaration; propagates error types.
pub fn infer(operator: &'static Operator, call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let mut matching = Matching {
        call,
        dims: NameMap::default(),
        rests: NameMap::default(),
        dtypes: NameMap::default(),
        vdevice: None,
        compared: Vec::new(),
    };
    for param in &operator.declaration.params {
        matching.param(param)?;
    }
    matching.attributes(&operator.declaration.params)?;
    matching.compare()?;
    for (variable, allowed) in &operator.declaration.dtypes {
        matching.allowed(*variable, allowed)?;
    }
    for (constraint, text) in &operator.declaration.constraints {
        matching.constraint(constraint, text)?;
    }
    Ok(matching.result(&operator.declaration.result))
}

/// The value of a variable, with its origin.
#[derive(Clone)]
struct Known<T> {
    value: T,
    /// The origin for messages: ``axis 1 of `a` ``.
    by: String,
    param: &'static str,
}

/// A dim that is compared after all variables are bound.
struct Compared<'d> {
    pattern: &'d DimPattern,
    actual: Dim,
    place: ParamPlace,
    subject: String,
}

struct Matching<'a, 'c, 'd> {
    call: &'c CallInfo<'a>,
    dims: NameMap<Known<Dim>>,
    rests: NameMap<Known<Shape>>,
    dtypes: NameMap<Known<DType>>,
    vdevice: Option<Option<VDevice>>,
    compared: Vec<Compared<'d>>,
}

/// The location of a type in a call.
#[derive(Clone)]
struct At {
    place: ParamPlace,
    param: &'static str,
    /// The location for messages: `` `a` ``, ``element 1 of `a` ``.
    subject: String,
}

impl<'d> Matching<'_, '_, 'd> {
    fn param(&mut self, param: &'d DeclaredParam) -> Result<(), Problem> {
        let Takes::Operand { ty, .. } = &param.takes else { return Ok(()) };
        let name = param.name.as_str();
        let at = At { place: ParamPlace::Param(name), param: name, subject: format!("`{name}`") };
        match self.call.arg(name) {
            Arg::Operand(operand) => self.ty(ty, &operand.ty, &at),
            Arg::Operands(operands) => {
                for (index, operand) in operands.iter().enumerate() {
                    let at = At { subject: format!("`{name}[{index}]`"), ..at.clone() };
                    self.ty(ty, &operand.ty, &at)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn ty(&mut self, pattern: &'d TypePattern, ty: &StructInfo, at: &At) -> Result<(), Problem> {
        if ty.is_error() {
            return Err(Problem::Propagate);
        }
        let wrong = |wanted: &str| {
            let message = format_args!("argument {} must be {wanted}, it is {ty}", at.subject);
            Err(self.call.error(Code::ArgumentType, at.place, message).into())
        };
        match pattern {
            TypePattern::Any | TypePattern::Like(_) => Ok(()),
            TypePattern::String if *ty != StructInfo::String => wrong("a string"),
            TypePattern::String => Ok(()),
            TypePattern::Tensor { shape, dtype } => match ty.as_tensor() {
                None => wrong("a tensor"),
                Some(tensor) => self.tensor(shape, dtype, tensor, at),
            },
            TypePattern::Shape(shape) => match ty {
                StructInfo::Shape(actual) => self.shape(shape, actual, at),
                _ => wrong("a shape"),
            },
            TypePattern::Prim { dtype, value } => match ty {
                StructInfo::Prim(prim) => self.prim(dtype, value.as_ref(), prim, at),
                _ => wrong("a scalar"),
            },
            TypePattern::Tuple(fields) => match ty {
                StructInfo::Tuple(actual) if actual.len() == fields.len() => {
                    for (index, (field, actual)) in fields.iter().zip(actual.iter()).enumerate() {
                        self.ty(field, actual, &at.element(index))?;
                    }
                    Ok(())
                }
                _ => wrong(&format!("a tuple of {} fields", fields.len())),
            },
            TypePattern::Repeated(field) => match ty {
                StructInfo::Tuple(actual) => {
                    for (index, actual) in actual.iter().enumerate() {
                        self.ty(field, actual, &at.element(index))?;
                    }
                    Ok(())
                }
                _ => wrong("a tuple"),
            },
            TypePattern::Choice(condition, then, otherwise) => match self.truth(condition) {
                Answer::Proved => self.ty(then, ty, at),
                Answer::Refuted => self.ty(otherwise, ty, at),
                Answer::Open => Ok(()),
            },
        }
    }

    fn tensor(
        &mut self,
        shape: &'d ShapePattern,
        dtype: &DtypePattern,
        tensor: &TensorInfo,
        at: &At,
    ) -> Result<(), Problem> {
        self.vdevice = match &self.vdevice {
            None => Some(tensor.vdevice),
            Some(known) if *known == tensor.vdevice => Some(*known),
            Some(_) => Some(None),
        };
        self.shape(shape, &tensor.shape, at)?;
        match tensor.dtype {
            Some(actual) => self.dtype(dtype, actual, at),
            None => Ok(()),
        }
    }

    fn prim(
        &mut self,
        dtype: &DtypePattern,
        value: Option<&'d DimPattern>,
        prim: &PrimInfo,
        at: &At,
    ) -> Result<(), Problem> {
        if let (Some(pattern), Some(actual)) = (value, &prim.value) {
            self.dim(pattern, actual, at, format!("the value of {}", at.subject))?;
        }
        // An untyped literal takes the dtype that the pattern requires.
        match (dtype, prim.dtype) {
            (DtypePattern::Is(wanted), Some(actual)) if wanted.is_float() == actual.is_float() || actual.is_int() => {
                Ok(())
            }
            (dtype, Some(actual)) => self.dtype(dtype, actual, at),
            _ => Ok(()),
        }
    }

    fn dtype(&mut self, pattern: &DtypePattern, actual: DType, at: &At) -> Result<(), Problem> {
        let (wanted, known) = match pattern {
            DtypePattern::Any => return Ok(()),
            DtypePattern::Is(dtype) => (*dtype, None),
            DtypePattern::Or(attribute, other) => match self.dtype_attribute(*attribute) {
                Some(dtype) => (dtype, None),
                None => return self.dtype(other, actual, at),
            },
            DtypePattern::Name(name) => match (self.dtype_attribute(*name), self.dtypes.get(name)) {
                (Some(dtype), _) => (dtype, None),
                (None, Some(known)) => (known.value, Some((*name, known.clone()))),
                (None, None) => {
                    self.dtypes.insert(*name, Known { value: actual, by: at.subject.clone(), param: at.param });
                    return Ok(());
                }
            },
        };
        if wanted == actual {
            return Ok(());
        }
        let report = match known {
            None => self.call.error(
                Code::DtypeMismatch,
                at.place,
                format_args!("{} is {actual}, it must be {wanted}", at.subject),
            ),
            Some((variable, known)) => self
                .call
                .error(
                    Code::DtypeMismatch,
                    at.place,
                    format_args!("{} is {actual}, but dtype `{variable}` is {wanted} by {}", at.subject, known.by),
                )
                .with_label(ParamPlace::Param(known.param), format!("`{variable}` is {wanted}")),
        };
        Err(report.into())
    }

    fn shape(&mut self, pattern: &'d ShapePattern, actual: &Shape, at: &At) -> Result<(), Problem> {
        let axes = match pattern {
            ShapePattern::Any => return Ok(()),
            ShapePattern::Rank(wanted) => {
                return match actual.ndim().filter(|ndim| ndim != wanted) {
                    Some(ndim) => Err(self.wrong_rank(at, ndim, &wanted.to_string(), None)),
                    None => Ok(()),
                };
            }
            ShapePattern::Dims(axes) => axes,
        };
        let rest = axes.iter().position(|axis| matches!(axis, AxisPattern::Rest(_)));
        let single = axes.len() - usize::from(rest.is_some());
        match (actual.ndim(), rest) {
            (Some(ndim), None) if ndim != single => {
                return Err(self.wrong_rank(at, ndim, &single.to_string(), Some(axes)));
            }
            (Some(ndim), Some(_)) if ndim < single => {
                return Err(self.wrong_rank(at, ndim, &format!("at least {single}"), Some(axes)));
            }
            _ => {}
        }
        let Some(dims) = actual.dims() else {
            if let Some(AxisPattern::Rest(name)) = rest.and_then(|rest| axes.get(rest)) {
                let rest = Shape::of_rank(actual.ndim().map(|ndim| ndim - single));
                self.rest(*name, rest, at)?;
            }
            return Ok(());
        };
        let before = rest.unwrap_or(axes.len());
        let extra = dims.len() - single;
        for (axis, pattern) in axes.iter().enumerate() {
            let axis = if axis > before { axis + extra - 1 } else { axis };
            match pattern {
                AxisPattern::One(pattern) => {
                    if let Some(dim) = dims.get(axis) {
                        self.dim(pattern, dim, at, format!("axis {axis} of {}", at.subject))?;
                    }
                }
                AxisPattern::Rest(name) => {
                    let rest = dims.get(before..before + extra).unwrap_or_default();
                    self.rest(*name, Shape::known(rest.to_vec()), at)?;
                }
            }
        }
        Ok(())
    }

    fn wrong_rank(&self, at: &At, ndim: usize, wanted: &str, axes: Option<&[AxisPattern]>) -> Problem {
        let plural = if ndim == 1 { "" } else { "s" };
        let message = format_args!("{} has {ndim} dimension{plural}, it must have {wanted}", at.subject);
        let report = self.call.error(Code::TensorNdimMismatch, at.place, message);
        match axes {
            Some(axes) => report.with_note(format!("{} is declared ({})", at.subject, shown_axes(axes))).into(),
            None => report.into(),
        }
    }

    /// Matches a part of a shape that matches any number of dims; several with the same name are broadcast.
    fn rest(&mut self, name: Name, shape: Shape, at: &At) -> Result<(), Problem> {
        let merged = match self.rests.get(&name) {
            None => shape,
            Some(known) => match broadcast_shapes(self.call, &known.value, &shape) {
                Ok(merged) => merged,
                Err(conflict) => {
                    let ((_, left), (_, right)) = (&conflict.left, &conflict.right);
                    let message = format_args!(
                        "`*{name}` does not broadcast: {} of {} and {} of {}",
                        left, known.by, right, at.subject
                    );
                    let report = self
                        .call
                        .error(Code::BroadcastMismatch, at.place, message)
                        .with_label(ParamPlace::Param(known.param), format!("`*{name}` has {left} here"))
                        .with_note(RULE);
                    return Err(report.into());
                }
            },
        };
        self.rests.insert(name, Known { value: merged, by: at.subject.clone(), param: at.param });
        Ok(())
    }

    fn dim(&mut self, pattern: &'d DimPattern, actual: &Dim, at: &At, subject: String) -> Result<(), Problem> {
        match self.resolve(pattern) {
            DimPattern::Name(name) if self.integer(*name).is_none() && !self.dims.contains_key(name) => {
                // An attribute that is `None` accepts any dim and binds nothing.
                if self.call.param(name).is_none() {
                    self.dims.insert(*name, Known { value: actual.clone(), by: subject, param: at.param });
                }
                Ok(())
            }
            pattern => {
                self.compared.push(Compared { pattern, actual: actual.clone(), place: at.place, subject });
                Ok(())
            }
        }
    }

    /// Returns the branch of a choice that the attributes select.
    fn resolve(&self, pattern: &'d DimPattern) -> &'d DimPattern {
        let mut pattern = pattern;
        while let DimPattern::Choice(condition, then, otherwise) = pattern {
            pattern = match self.truth(condition) {
                Answer::Proved => then,
                Answer::Refuted => otherwise,
                Answer::Open => return pattern,
            };
        }
        pattern
    }

    fn compare(&self) -> Result<(), Problem> {
        for Compared { pattern, actual, place, subject } in &self.compared {
            let Some(wanted) = self.value(pattern) else { continue };
            if self.call.equal(&wanted, actual) != Answer::Refuted {
                continue;
            }
            let text = shown(pattern);
            let report = match pattern {
                DimPattern::Constant(_) => self.call.error(
                    Code::ShapeMismatch,
                    *place,
                    format_args!("{subject} is {actual}, it must be {wanted}"),
                ),
                _ => {
                    let message = match pattern {
                        DimPattern::Name(name) => {
                            let by = self.dims.get(name).map_or_else(String::new, |known| format!(" by {}", known.by));
                            format!("{subject} is {actual}, but `{text}` is {wanted}{by}")
                        }
                        _ => format!("{subject} is {actual}, but `{text}` is {wanted}"),
                    };
                    self.call.error(Code::ShapeMismatch, *place, format_args!("{message}"))
                }
            };
            return Err(self.explained(report, names_of(|visit| pattern.each_name(visit)), *place).into());
        }
        Ok(())
    }

    /// Adds labels that show where the variables of an expression get their values.
    fn explained(
        &self,
        mut report: rx_base::Diagnostic<ParamPlace>,
        names: Vec<Name>,
        place: ParamPlace,
    ) -> rx_base::Diagnostic<ParamPlace> {
        for name in names {
            if let Some(known) = self.dims.get(&name) {
                let text = format!("{} says `{name}` = {}", known.by, known.value);
                report = match ParamPlace::Param(known.param) == place {
                    true => report.with_note(text),
                    false => report.with_label(ParamPlace::Param(known.param), text),
                };
            } else if let Some(value) = self.integer(name) {
                report = report.with_note(format!("attribute `{name}` is {value}"));
            }
        }
        report
    }

    fn allowed(&self, variable: Name, allowed: &[DType]) -> Result<(), Problem> {
        let Some(known) = self.dtypes.get(&variable).filter(|known| !allowed.contains(&known.value)) else {
            return Ok(());
        };
        let names: Vec<String> = allowed.iter().map(|dtype| dtype.to_string()).collect();
        let message = format_args!("{} is {}, dtype `{variable}` may be {}", known.by, known.value, names.join(", "));
        Err(self.call.error(Code::DtypeMismatch, ParamPlace::Param(known.param), message).into())
    }
}

impl At {
    fn element(&self, index: usize) -> At {
        let place = match self.place {
            ParamPlace::Param(param) => ParamPlace::Element(param, index),
            place => place,
        };
        At { place, param: self.param, subject: format!("`{}[{index}]`", self.subject.trim_matches('`')) }
    }
}

/// Returns the names that a walk visits, without duplicates.
fn names_of(walk: impl FnOnce(&mut dyn FnMut(Name))) -> Vec<Name> {
    let mut found = Vec::new();
    walk(&mut |name| {
        if !found.contains(&name) {
            found.push(name);
        }
    });
    found
}

fn shown_axes(axes: &[AxisPattern]) -> String {
    let parts: Vec<String> = axes
        .iter()
        .map(|axis| match axis {
            AxisPattern::One(dim) => shown(dim),
            AxisPattern::Rest(name) => format!("*{name}"),
        })
        .collect();
    let comma = if parts.len() == 1 { "," } else { "" };
    parts.join(", ") + comma
}

fn shown(pattern: &DimPattern) -> String {
    match pattern {
        DimPattern::Constant(value) => value.to_string(),
        DimPattern::Name(name) => name.to_string(),
        DimPattern::Element(name, index) => format!("{name}[{index}]"),
        DimPattern::Binary(op, a, b) => {
            let sign = match op {
                DimOp::Add => "+",
                DimOp::Sub => "-",
                DimOp::Mul => "*",
                DimOp::FloorDiv => "//",
                DimOp::FloorMod => "%",
                DimOp::Min => return format!("min({}, {})", shown(a), shown(b)),
                DimOp::Max => return format!("max({}, {})", shown(a), shown(b)),
                DimOp::CeilDiv => return format!("ceildiv({}, {})", shown(a), shown(b)),
            };
            format!("{} {sign} {}", operand(a), operand(b))
        }
        DimPattern::Choice(_, then, otherwise) => format!("{} or {}", shown(then), shown(otherwise)),
    }
}

fn operand(pattern: &DimPattern) -> String {
    match pattern {
        DimPattern::Binary(DimOp::Min | DimOp::Max | DimOp::CeilDiv, ..) => shown(pattern),
        DimPattern::Binary(..) | DimPattern::Choice(..) => format!("({})", shown(pattern)),
        _ => shown(pattern),
    }
}

fn shown_attr(attr: &Attr) -> String {
    match attr {
        Attr::Int(value) => value.to_string(),
        Attr::Float(value) => value.to_string(),
        Attr::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Attr::Str(value) => format!("\"{value}\""),
        Attr::None => "None".to_owned(),
        Attr::List(items) => format!("[{}]", items.iter().map(shown_attr).collect::<Vec<_>>().join(", ")),
        _ => "…".to_owned(),
    }
}
