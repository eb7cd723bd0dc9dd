//! A call as a rule sees it: arguments bound to parameters, ways to read them, ways to complain.

use crate::arguments::attr_number;
use crate::schema::{Default, Param, Schema};
use rx_base::symbolic::Bounds;
use rx_base::{Code, DType, Diagnostic, Dim};
use rx_ir::{Argument, Attr, Expr, ExprKind, StructInfo, TensorInfo};
use std::cell::RefCell;
use std::fmt;

/// A struct-info rule: from the arguments to the type of the result. Pure; non-fatal findings go to [`CallInfo::report`].
pub type Rule = fn(&CallInfo<'_>) -> Result<StructInfo, Problem>;

/// A place inside a call, in terms of its parameters; the caller knows the spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamPlace {
    /// The whole call.
    Call,
    /// The operator's name.
    Callee,
    /// The argument for this parameter; the whole call when it was left out.
    Param(&'static str),
    /// An element of the tuple or list passed for this parameter.
    Element(&'static str, usize),
    /// The place where the value passed for this parameter was defined.
    DefinitionOf(&'static str),
}

/// Why a rule gives no type.
#[derive(Debug)]
pub enum Problem {
    /// An argument is an error part; its mistake was reported where it was made.
    Propagate,
    /// A mistake of this call.
    Report(Box<Diagnostic<ParamPlace>>),
}

impl From<Diagnostic<ParamPlace>> for Problem {
    fn from(diagnostic: Diagnostic<ParamPlace>) -> Problem {
        Problem::Report(Box::new(diagnostic))
    }
}

/// How a dim of a call's result is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    /// The field of a tuple it is of; without one it is of the result, and of every field.
    pub field: Option<usize>,
    /// The axis.
    pub axis: usize,
    /// The formula with the numbers put in.
    pub formula: String,
}

impl Derivation {
    /// Whether it is of the dim at `axis` of the part of the result that `path` leads to.
    pub fn is_of(&self, path: &[usize], axis: usize) -> bool {
        let field = match path {
            [] => self.field.is_none(),
            [field] => self.field.is_none_or(|of| of == *field),
            _ => false,
        };
        field && self.axis == axis
    }
}

/// A dim as an operand of a written-out formula.
pub(crate) fn operand(dim: &Dim) -> String {
    match dim.as_constant().is_some() || dim.as_symbol().is_some() {
        true => dim.to_string(),
        false => format!("({dim})"),
    }
}

/// What a call passes for one parameter.
#[derive(Clone, Debug)]
pub enum Arg<'a> {
    /// Nothing, and the parameter has no default value.
    Absent,
    /// An operand.
    Operand(&'a Expr),
    /// The operands of a variadic parameter.
    Operands(&'a [Expr]),
    /// An attribute, given or defaulted.
    Attr(&'a Attr),
    /// Struct infos.
    Types(&'a [StructInfo]),
}

impl<'a> From<&'a Argument> for Arg<'a> {
    fn from(argument: &'a Argument) -> Arg<'a> {
        match argument {
            Argument::Absent => Arg::Absent,
            Argument::Operand(expr) => Arg::Operand(expr),
            Argument::Operands(exprs) => Arg::Operands(exprs),
            Argument::Attr(attr) => Arg::Attr(attr),
            Argument::Types(types) => Arg::Types(types),
        }
    }
}

/// A call with its arguments bound to the schema's parameters, in their order.
#[derive(Debug)]
pub struct CallInfo<'a> {
    /// The operator.
    pub schema: &'static Schema,
    /// One per parameter of the schema.
    pub args: &'a [Arg<'a>],
    /// What is known of the symbols.
    pub bounds: &'a Bounds,
    /// Findings that do not keep the call from having a type.
    pub findings: RefCell<Vec<Diagnostic<ParamPlace>>>,
    /// Where somebody wants them: the formulas of the result's dims, the numbers put in.
    pub derivations: Option<RefCell<Vec<Derivation>>>,
}

impl<'a> CallInfo<'a> {
    /// A call of `schema` with these arguments.
    pub fn new(schema: &'static Schema, args: &'a [Arg<'a>], bounds: &'a Bounds) -> CallInfo<'a> {
        CallInfo { schema, args, bounds, findings: RefCell::new(Vec::new()), derivations: None }
    }

    /// A call whose rule is asked for its formulas.
    pub fn explaining(schema: &'static Schema, args: &'a [Arg<'a>], bounds: &'a Bounds) -> CallInfo<'a> {
        CallInfo { derivations: Some(RefCell::default()), ..CallInfo::new(schema, args, bounds) }
    }

    /// Says how axis `axis` of the result is computed, to whoever asks.
    pub fn derive(&self, axis: Option<usize>, formula: impl FnOnce() -> String) {
        if let (Some(derivations), Some(axis)) = (&self.derivations, axis) {
            derivations.borrow_mut().push(Derivation { field: None, axis, formula: formula() });
        }
    }

    /// As [`CallInfo::derive`], of one field of a result that is a tuple.
    pub fn derive_field(&self, field: usize, axis: Option<usize>, formula: impl FnOnce() -> String) {
        if let (Some(derivations), Some(axis)) = (&self.derivations, axis) {
            derivations.borrow_mut().push(Derivation { field: Some(field), axis, formula: formula() });
        }
    }

    /// The argument bound to `name`. A name the schema lacks is `Absent`; a unit test calls every rule to rule that out.
    pub fn arg(&self, name: &str) -> &Arg<'a> {
        let position = self.schema.params.iter().position(|param| param.name == name);
        debug_assert!(position.is_some(), "{} has no parameter {name}", self.schema.name);
        position.and_then(|at| self.args.get(at)).unwrap_or(&Arg::Absent)
    }

    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.schema.params.iter().find(|param| param.name == name)
    }

    /// The operand passed for `name`.
    pub fn operand(&self, name: &str) -> Option<&'a Expr> {
        match self.arg(name) {
            Arg::Operand(expr) => Some(expr),
            _ => None,
        }
    }

    /// The struct info of the operand passed for `name`; [`StructInfo::Error`] when there is none.
    pub fn ty(&self, name: &str) -> &'a StructInfo {
        self.operand(name).map_or(&StructInfo::Error, |expr| &expr.ty)
    }

    /// The operand passed for `name` as a tensor.
    ///
    /// # Errors
    /// Propagates error parts; reports anything that is no tensor, `R.Any` included, as TVM does.
    pub fn tensor(&self, name: &'static str) -> Result<&'a TensorInfo, Problem> {
        match self.ty(name) {
            StructInfo::Error => Err(Problem::Propagate),
            ty => match ty.as_tensor() {
                Some(tensor) => Ok(tensor),
                None => Err(self.wrong_kind(ParamPlace::Param(name), name, "a tensor", ty)),
            },
        }
    }

    /// The type of a tensor operand, for results of the same type.
    ///
    /// # Errors
    /// As [`CallInfo::tensor`].
    pub fn tensor_type(&self, name: &'static str) -> Result<StructInfo, Problem> {
        self.tensor(name)?;
        Ok(self.ty(name).clone())
    }

    /// As [`CallInfo::tensor`], for an operand that may be left out.
    ///
    /// # Errors
    /// As [`CallInfo::tensor`].
    pub fn optional_tensor(&self, name: &'static str) -> Result<Option<&'a TensorInfo>, Problem> {
        match self.operand(name) {
            None => Ok(None),
            Some(_) => self.tensor(name).map(Some),
        }
    }

    /// The report that argument `name` is `ty` where `wanted` is needed.
    pub fn wrong_kind(&self, place: ParamPlace, name: &str, wanted: &str, ty: &StructInfo) -> Problem {
        self.error(Code::ArgumentType, place, format_args!("argument `{name}` must be {wanted}, it is {ty}")).into()
    }

    /// The attribute `name`; `None` where it is absent or Python's `None`.
    pub fn attr(&self, name: &str) -> Option<&'a Attr> {
        match self.arg(name) {
            Arg::Attr(Attr::None) => None,
            Arg::Attr(attr) => Some(attr),
            _ => None,
        }
    }

    /// The attribute `name` as an integer constant. Types are checked before rules run, so absence means `None`.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attr(name).and_then(Attr::as_int)
    }

    /// The attribute `name` as a float; integers are taken as floats.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.attr(name)? {
            Attr::Float(value) => Some(*value),
            attr => attr.as_int().map(|value| value as f64),
        }
    }

    /// The attribute `name` as a boolean.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.attr(name)? {
            Attr::Bool(value) => Some(*value),
            Attr::Int(value) => value.as_constant().map(|value| value != 0),
            _ => None,
        }
    }

    /// The attribute `name` as a string.
    pub fn str(&self, name: &str) -> Option<&'a str> {
        self.attr(name).and_then(Attr::as_str)
    }

    /// The attribute `name` as a dtype; `None` also for `void` and the empty string. Unknown names are rejected before
    /// rules run.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        self.str(name).and_then(DType::parse)
    }

    /// The attribute `name` as integers; a single integer is a list of one. `None` when it is absent.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attr(name)? {
            Attr::List(items) => items.iter().map(Attr::as_int).collect(),
            attr => attr.as_int().map(|value| vec![value]),
        }
    }

    /// The attribute `name` as numbers; a single number is a list of one.
    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        match self.attr(name)? {
            Attr::List(items) => items.iter().map(attr_number).collect(),
            attr => attr_number(attr).map(|value| vec![value]),
        }
    }

    /// As [`CallInfo::int`], for an attribute a rule cannot do without.
    ///
    /// # Errors
    /// Propagates where the value is no known integer: its kind was checked, and reported, before the rule ran.
    pub fn needed_int(&self, name: &str) -> Result<i64, Problem> {
        self.int(name).ok_or(Problem::Propagate)
    }

    /// As [`CallInfo::ints`], for an attribute a rule cannot do without.
    ///
    /// # Errors
    /// As [`CallInfo::needed_int`].
    pub fn needed_ints(&self, name: &str) -> Result<Vec<i64>, Problem> {
        self.ints(name).ok_or(Problem::Propagate)
    }

    /// Whether `a >= b`, under what is known of the symbols.
    pub fn at_least(&self, a: &Dim, b: &Dim) -> rx_base::Answer {
        rx_base::symbolic::prove::at_least(a, b, self.bounds)
    }

    /// Whether two dims are equal, under what is known of the symbols.
    pub fn equal(&self, a: &Dim, b: &Dim) -> rx_base::Answer {
        rx_base::symbolic::prove::equal(a, b, self.bounds)
    }

    /// The argument passed for `name` as advice may repeat it: a variable by its name, anything longer as `…`.
    pub fn written(&self, name: &str) -> &'a str {
        let at = self.schema.params.iter().position(|param| param.name == name);
        match at.and_then(|at| self.args.get(at)) {
            Some(Arg::Operand(Expr { kind: ExprKind::Var(variable), .. })) => variable.as_str(),
            _ => "…",
        }
    }

    /// A diagnostic whose message begins with the operator's name.
    pub fn error(&self, code: Code, place: ParamPlace, message: fmt::Arguments<'_>) -> Diagnostic<ParamPlace> {
        Diagnostic::new(code, place, format!("{}: {message}", self.short_name()))
    }

    /// An error at the operand passed for a parameter, labelled with its type.
    pub fn operand_error(
        &self,
        code: Code,
        param: &'static str,
        message: fmt::Arguments<'_>,
    ) -> Diagnostic<ParamPlace> {
        self.error(code, ParamPlace::Param(param), message).with_primary_label(self.ty(param).to_string())
    }

    /// An error at an argument that does not suit the `operand` passed for another parameter, whose type is labelled.
    pub fn error_for(
        &self,
        code: Code,
        param: &'static str,
        operand: &'static str,
        message: fmt::Arguments<'_>,
    ) -> Diagnostic<ParamPlace> {
        self.error(code, ParamPlace::Param(param), message)
            .with_label(ParamPlace::Param(operand), self.ty(operand).to_string())
    }

    /// Keeps a finding that does not keep the call from having a type: a warning or hint.
    pub fn report(&self, diagnostic: Diagnostic<ParamPlace>) {
        self.findings.borrow_mut().push(diagnostic);
    }

    /// The operator's name without its namespace: `conv2d`.
    pub fn short_name(&self) -> &'static str {
        self.schema.name.rsplit('.').next().unwrap_or(self.schema.name)
    }
}

impl Default {
    /// The attribute value this default stands for.
    pub fn to_attr(self) -> Option<Attr> {
        match self {
            Default::Required | Default::Absent => None,
            Default::Bool(value) => Some(Attr::Bool(value)),
            Default::Int(value) => Some(Attr::Int(value.into())),
            Default::Float(value) => Some(Attr::Float(value)),
            Default::Str(value) => Some(Attr::Str(value.into())),
            Default::Ints(values) => Some(Attr::List(values.iter().map(|value| Attr::Int((*value).into())).collect())),
            Default::Floats(values) => Some(Attr::List(values.iter().map(|value| Attr::Float(*value)).collect())),
        }
    }
}
