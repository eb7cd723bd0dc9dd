//! A call with its arguments bound to parameters, as struct-info rules see it: accessors for the arguments, and
//! constructors of diagnostics.

use crate::arguments::attr_number;
use crate::schema::{Default, Param, Schema};
use rx_base::symbolic::Bounds;
use rx_base::{Code, DType, Diagnostic, Dim};
use rx_ir::{Argument, Attr, Expr, ExprKind, StructInfo, TensorInfo};
use std::cell::RefCell;
use std::fmt;

/// A struct-info rule: computes the type of the result from the arguments. It is pure, except that it passes non-fatal
/// diagnostics to [`CallInfo::report`].
pub type Rule = fn(&CallInfo<'_>) -> Result<StructInfo, Problem>;

/// A location inside a call, by parameter. The caller converts it to a span of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamPlace {
    /// The whole call.
    Call,
    /// The operator's name.
    Callee,
    /// The argument for this parameter; the whole call if the argument was left out.
    Param(&'static str),
    /// An element of the tuple or list passed for this parameter.
    Element(&'static str, usize),
    /// The definition of the value passed for this parameter.
    DefinitionOf(&'static str),
}

/// The reason why a rule returns no type.
#[derive(Debug)]
pub enum Problem {
    /// An argument has an error type, whose cause was already reported; or the call is a trial.
    Propagate,
    /// An error in this call.
    Report(Box<Diagnostic<ParamPlace>>),
}

impl From<Diagnostic<ParamPlace>> for Problem {
    fn from(diagnostic: Diagnostic<ParamPlace>) -> Problem {
        Problem::Report(Box::new(diagnostic))
    }
}

/// The formula of one dim of a call's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    /// The index of the result tuple's field. `None` means the result itself, or each field of a result tuple.
    pub field: Option<usize>,
    /// The axis of the result.
    pub axis: usize,
    /// The formula with the values filled in.
    pub formula: String,
}

impl Derivation {
    /// Whether this formula describes the dim at `axis` of the part of the result that `path` leads to.
    pub fn is_of(&self, path: &[usize], axis: usize) -> bool {
        let field = match path {
            [] => self.field.is_none(),
            [field] => self.field.is_none_or(|of| of == *field),
            _ => false,
        };
        field && self.axis == axis
    }
}

/// Prints a dim as an operand of a formula, in parentheses unless it is a constant or a symbol.
pub(crate) fn operand(dim: &Dim) -> String {
    match dim.as_constant().is_some() || dim.as_symbol().is_some() {
        true => dim.to_string(),
        false => format!("({dim})"),
    }
}

/// The argument that a call passes for one parameter.
#[derive(Clone, Debug)]
pub enum Arg<'a> {
    /// No argument, for a parameter without a default value.
    Absent,
    /// An operand.
    Operand(&'a Expr),
    /// The operands of a variadic parameter.
    Operands(&'a [Expr]),
    /// An attribute, given explicitly or by default.
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

/// A call with its arguments bound to the schema's parameters, in the order of the parameters.
#[derive(Debug)]
pub struct CallInfo<'a> {
    /// The operator.
    pub schema: &'static Schema,
    /// The arguments, one per parameter of the schema.
    pub args: &'a [Arg<'a>],
    /// The known bounds of the symbols.
    pub bounds: &'a Bounds,
    /// Non-fatal diagnostics: the call still has a type.
    pub findings: RefCell<Vec<Diagnostic<ParamPlace>>>,
    /// The formulas of the result's dims with the values filled in; `None` if nobody asks for them.
    pub derivations: Option<RefCell<Vec<Derivation>>>,
    /// Whether only the type counts, not the report of a problem.
    is_trial: bool,
}

impl<'a> CallInfo<'a> {
    /// Creates a call of `schema` with these arguments.
    pub fn new(schema: &'static Schema, args: &'a [Arg<'a>], bounds: &'a Bounds) -> CallInfo<'a> {
        CallInfo { schema, args, bounds, findings: RefCell::new(Vec::new()), derivations: None, is_trial: false }
    }

    /// Creates a call of which only the type counts, for a search over many arguments: a rule may return
    /// [`Problem::Propagate`] in place of a report.
    pub fn trial(schema: &'static Schema, args: &'a [Arg<'a>], bounds: &'a Bounds) -> CallInfo<'a> {
        CallInfo { is_trial: true, ..CallInfo::new(schema, args, bounds) }
    }

    /// Returns the problem that `report` describes; in a trial, [`Problem::Propagate`].
    pub(crate) fn problem(&self, report: impl FnOnce() -> Diagnostic<ParamPlace>) -> Problem {
        if self.is_trial { Problem::Propagate } else { report().into() }
    }

    /// Creates a call for which the rule also collects the formulas of dims.
    pub fn explaining(schema: &'static Schema, args: &'a [Arg<'a>], bounds: &'a Bounds) -> CallInfo<'a> {
        CallInfo { derivations: Some(RefCell::default()), ..CallInfo::new(schema, args, bounds) }
    }

    /// Records the formula of axis `axis` of the result, if formulas are collected.
    pub fn derive(&self, axis: Option<usize>, formula: impl FnOnce() -> String) {
        if let (Some(derivations), Some(axis)) = (&self.derivations, axis) {
            derivations.borrow_mut().push(Derivation { field: None, axis, formula: formula() });
        }
    }

    /// Records the formula of an axis of one field of a result tuple.
    pub fn derive_field(&self, field: usize, axis: Option<usize>, formula: impl FnOnce() -> String) {
        if let (Some(derivations), Some(axis)) = (&self.derivations, axis) {
            derivations.borrow_mut().push(Derivation { field: Some(field), axis, formula: formula() });
        }
    }

    /// Returns the argument bound to `name`. A name that the schema lacks gives `Absent`; a unit test calls every rule
    /// to exclude this case.
    pub fn arg(&self, name: &str) -> &Arg<'a> {
        let position = self.schema.params.iter().position(|param| param.name == name);
        debug_assert!(position.is_some(), "{} has no parameter {name}", self.schema.name);
        position.and_then(|at| self.args.get(at)).unwrap_or(&Arg::Absent)
    }

    /// Returns the parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.schema.params.iter().find(|param| param.name == name)
    }

    /// Returns the operand passed for `name`.
    pub fn operand(&self, name: &str) -> Option<&'a Expr> {
        match self.arg(name) {
            Arg::Operand(expr) => Some(expr),
            _ => None,
        }
    }

    /// Returns the struct info of the operand passed for `name`; [`StructInfo::Error`] if there is none.
    pub fn ty(&self, name: &str) -> &'a StructInfo {
        self.operand(name).map_or(&StructInfo::Error, |expr| &expr.ty)
    }

    /// Returns the type of the operand passed for `name`, which must be a tensor.
    ///
    /// # Errors
    /// Propagates error types; reports any other value that is not a tensor, including `R.Any`, as TVM does.
    pub fn tensor(&self, name: &'static str) -> Result<&'a TensorInfo, Problem> {
        match self.ty(name) {
            StructInfo::Error => Err(Problem::Propagate),
            ty => match ty.as_tensor() {
                Some(tensor) => Ok(tensor),
                None => Err(self.wrong_kind(ParamPlace::Param(name), name, "a tensor", ty)),
            },
        }
    }

    /// Returns the type of a tensor operand, for results of the same type.
    ///
    /// # Errors
    /// Fails like [`CallInfo::tensor`].
    pub fn tensor_type(&self, name: &'static str) -> Result<StructInfo, Problem> {
        self.tensor(name)?;
        Ok(self.ty(name).clone())
    }

    /// Returns the type of an optional tensor operand; `None` if it is left out.
    ///
    /// # Errors
    /// Fails like [`CallInfo::tensor`].
    pub fn optional_tensor(&self, name: &'static str) -> Result<Option<&'a TensorInfo>, Problem> {
        match self.operand(name) {
            None => Ok(None),
            Some(_) => self.tensor(name).map(Some),
        }
    }

    /// Creates the error that argument `name` has the type `ty` where `wanted` is required.
    pub fn wrong_kind(&self, place: ParamPlace, name: &str, wanted: &str, ty: &StructInfo) -> Problem {
        self.error(Code::ArgumentType, place, format_args!("argument `{name}` must be {wanted}, it is {ty}")).into()
    }

    /// Returns the attribute `name`; `None` if it is absent or Python's `None`.
    pub fn attr(&self, name: &str) -> Option<&'a Attr> {
        match self.arg(name) {
            Arg::Attr(Attr::None) => None,
            Arg::Attr(attr) => Some(attr),
            _ => None,
        }
    }

    /// Returns the attribute `name` as an integer constant. Attribute types are checked before rules run, so for an
    /// attribute of integer type `None` means absent or symbolic.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attr(name).and_then(Attr::as_int)
    }

    /// Returns the attribute `name` as a float; integers are converted.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.attr(name)? {
            Attr::Float(value) => Some(*value),
            attr => attr.as_int().map(|value| value as f64),
        }
    }

    /// Returns the attribute `name` as a boolean.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.attr(name)? {
            Attr::Bool(value) => Some(*value),
            Attr::Int(value) => value.as_constant().map(|value| value != 0),
            _ => None,
        }
    }

    /// Returns the attribute `name` as a string.
    pub fn str(&self, name: &str) -> Option<&'a str> {
        self.attr(name).and_then(Attr::as_str)
    }

    /// Returns the attribute `name` as a dtype; `None` also for `void` and the empty string. Unknown names are rejected
    /// before rules run.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        self.str(name).and_then(DType::parse)
    }

    /// Returns the attribute `name` as integers; a single integer is a list of one. `None` if it is absent.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attr(name)? {
            Attr::List(items) => items.iter().map(Attr::as_int).collect(),
            attr => attr.as_int().map(|value| vec![value]),
        }
    }

    /// Returns the attribute `name` as numbers; a single number is a list of one.
    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        match self.attr(name)? {
            Attr::List(items) => items.iter().map(attr_number).collect(),
            attr => attr_number(attr).map(|value| vec![value]),
        }
    }

    /// Returns the attribute `name` as an integer that the rule requires.
    ///
    /// # Errors
    /// Propagates if the value is not a known integer: its type was checked, and any error reported, before the rule
    /// ran.
    pub fn needed_int(&self, name: &str) -> Result<i64, Problem> {
        self.int(name).ok_or(Problem::Propagate)
    }

    /// Returns the attribute `name` as integers that the rule requires.
    ///
    /// # Errors
    /// Fails like [`CallInfo::needed_int`].
    pub fn needed_ints(&self, name: &str) -> Result<Vec<i64>, Problem> {
        self.ints(name).ok_or(Problem::Propagate)
    }

    /// Returns whether `a >= b` holds under the known bounds of the symbols.
    pub fn at_least(&self, a: &Dim, b: &Dim) -> rx_base::Answer {
        rx_base::symbolic::prove::at_least(a, b, self.bounds)
    }

    /// Returns whether two dims are equal under the known bounds of the symbols.
    pub fn equal(&self, a: &Dim, b: &Dim) -> rx_base::Answer {
        rx_base::symbolic::prove::equal(a, b, self.bounds)
    }

    /// Returns the text of the argument for `name` in suggestions: a variable or a field of one, or `…` for a longer
    /// expression.
    pub fn written(&self, name: &str) -> String {
        self.variable(name).unwrap_or_else(|| "…".to_owned())
    }

    /// Returns the variable passed for a parameter, `x1`, or for an element of its tuple, `tensors[1]`. `None` for a
    /// longer expression, and for a text that names no parameter.
    fn variable(&self, mention: &str) -> Option<String> {
        let arg = |name: &str| self.args.get(self.schema.params.iter().position(|param| param.name == name)?);
        if let Some(Arg::Operand(operand)) = arg(mention) {
            return operand.variable_text();
        }
        let (param, index) = mention.strip_suffix(']')?.split_once('[')?;
        let index: usize = index.parse().ok()?;
        match arg(param)? {
            Arg::Operands(items) => items.get(index)?.variable_text(),
            Arg::Operand(Expr { kind: ExprKind::Tuple(items), .. }) => items.get(index)?.variable_text(),
            Arg::Operand(tuple) if tuple.ty.as_tuple().is_some() => {
                Some(format!("{}[{index}]", tuple.variable_text()?))
            }
            _ => None,
        }
    }

    /// Adds to the first mention of each parameter in a message the variable passed for it, unless they have one name:
    /// `` `x1` has dtype float32 `` becomes `` `x1` (`scores`) has dtype float32 ``.
    pub fn with_variables(&self, message: &str) -> String {
        let mut text = String::with_capacity(message.len());
        let mut mentioned: Vec<&str> = Vec::new();
        let mut rest = message;
        while let Some((before, quoted)) = rest.split_once('`')
            && let Some((mention, after)) = quoted.split_once('`')
        {
            text.extend([before, "`", mention, "`"]);
            if !mentioned.contains(&mention)
                && let Some(variable) = self.variable(mention)
                && variable != mention
            {
                text.extend([" (`", variable.as_str(), "`)"]);
            }
            mentioned.push(mention);
            rest = after;
        }
        text.push_str(rest);
        text
    }

    /// Creates a diagnostic whose message begins with the operator's name.
    pub fn error(&self, code: Code, place: ParamPlace, message: fmt::Arguments<'_>) -> Diagnostic<ParamPlace> {
        Diagnostic::new(code, place, format!("{}: {message}", self.short_name()))
    }

    /// Creates an error at the operand passed for a parameter, labelled with the operand's type.
    pub fn operand_error(
        &self,
        code: Code,
        param: &'static str,
        message: fmt::Arguments<'_>,
    ) -> Diagnostic<ParamPlace> {
        self.error(code, ParamPlace::Param(param), message).with_primary_label(self.ty(param).to_string())
    }

    /// Creates an error at an argument that does not fit the `operand` passed for another parameter, whose type is
    /// labelled.
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

    /// Records a warning or hint, which does not prevent the call from having a type.
    pub fn report(&self, diagnostic: Diagnostic<ParamPlace>) {
        self.findings.borrow_mut().push(diagnostic);
    }

    /// Returns the operator's name without its namespace: `conv2d`.
    pub fn short_name(&self) -> &'static str {
        self.schema.name.rsplit('.').next().unwrap_or(self.schema.name)
    }
}

impl Default {
    /// Returns the attribute value of this default.
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

#[cfg(test)]
mod tests {
    use crate::tests::{call_of, int, tensor, tuple};

    #[test]
    fn first_mention_of_parameter_names_its_variable() {
        let args = [("x1", tensor("2:float32")), ("x2", int("3"))];
        call_of("add", &args, |call| {
            let named = call.with_variables("`x1` is 2, `x2` is 3, `x3` and `x1` are");
            assert_eq!(named, "`x1` (`x`) is 2, `x2` is 3, `x3` and `x1` are");
            assert_eq!(call.with_variables("an `open quote"), "an `open quote");
        });
        call_of("sum", &[("x", tensor("2:float32"))], |call| {
            assert_eq!(call.with_variables("`x` has one dimension"), "`x` has one dimension");
        });
    }

    #[test]
    fn elements_of_tuples_name_their_variables() {
        call_of("concat", &[("tensors", tuple(&["2:float32", "3:float32"]))], |call| {
            assert_eq!(call.with_variables("`tensors[1]` of `tensors`"), "`tensors[1]` (`x`) of `tensors`");
            assert_eq!(call.with_variables("`tensors[2]`, `tensors[x]`"), "`tensors[2]`, `tensors[x]`");
        });
    }
}
