//! The type of a pass, the table of all passes, and the syntax by which a command line names passes and their
//! arguments.

use crate::{Module, passes, tvm_passes};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Name, counted};
use rx_ir::RelaxFunction;
use rx_tensor::Tensor;
use serde_json::{Map, Value};
use std::fmt;

/// A pass: a function from module to module, with its name and parameters.
pub struct Pass {
    /// The name, for example `DeadCodeElimination`; TVM's name if TVM has the pass.
    pub name: &'static str,
    /// The parameters, in order; those of TVM's Python constructor if TVM has the pass.
    pub parameters: &'static [Parameter],
    /// The documentation, for lists of passes.
    pub doc: &'static str,
    /// The path of the file in TVM that implements the pass; for a pass that TVM does not have, a text that says so.
    pub reference: &'static str,
    /// The implementation. It requires a module without errors.
    pub run: fn(Module, &Arguments) -> Result<Module, PassError>,
}

/// A parameter of a pass's constructor.
pub struct Parameter {
    /// The name in Python.
    pub name: &'static str,
    /// The default value as JSON; `None` if the argument is required.
    pub default: Option<&'static str>,
    /// The meaning, in one sentence.
    pub doc: &'static str,
}

/// All passes.
pub const ALL: &[Pass] = &[
    passes::bind_params::PASS,
    passes::bind_symbolic_vars::PASS,
    passes::canonicalize::PASS,
    passes::convert_layout::PASS,
    passes::redundant_reshape::PASS,
    passes::combine_matmul::PASS,
    passes::reorder_take::PASS,
    passes::mixed_precision::PASS,
    passes::decompose::INFERENCE,
    passes::decompose::TRAINING,
    passes::decompose::AS_WRITTEN,
    passes::call_tir_rewrite::PASS,
    passes::legalize::PASS,
    passes::annotate_tir_op_pattern::PASS,
    passes::kill_after_last_use::PASS,
    passes::lift_transform_params::PASS,
    passes::keep_raw_entry::PASS,
    passes::dead_code::PASS,
    passes::common_subexpr::PASS,
    passes::fold_constant::PASS,
    passes::inline_private::PASS,
    passes::normalize::PASS,
    passes::expand_tuple_arguments::PASS,
    passes::remove_unused_parameters::PASS,
    passes::fuse_ops::PASS,
    passes::fuse_tir::PASS,
    passes::static_plan::PASS,
];

/// Returns the pass called `name`, which has no module prefix; `None` if there is no such pass.
pub fn find(name: &str) -> Option<&'static Pass> {
    ALL.iter().find(|pass| pass.name == name)
}

/// The reason why a pass failed, as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassError(pub String);

impl PassError {
    /// Prefixes the message with the function or the variable that the error concerns.
    pub fn at(self, name: Name) -> PassError {
        PassError(format!("`{name}`: {}", self.0))
    }
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Applies `change` to every Relax function of a module. Error messages get the names of the pass and the function as a
/// prefix.
///
/// # Errors
/// The first error of `change`; later functions are not changed.
pub fn each_function(
    module: &mut Module,
    pass: &str,
    mut change: impl FnMut(&mut RelaxFunction) -> Result<(), PassError>,
) -> Result<(), PassError> {
    let named = |function: Name, error: PassError| PassError(format!("{pass}: {}", error.at(function)));
    module.functions_mut().try_for_each(|function| change(function).map_err(|error| named(function.name, error)))
}

/// A function that runs a Relax function of a module on tensors, one per parameter. It returns the result's tensors in
/// order, with tuples flattened. Passes cannot execute code themselves: their caller supplies this function
/// (`rx_driver::evaluate`).
///
/// # Errors
/// A message why there is no value, for example that the run failed or took too long.
pub type Evaluate = fn(&Module, Name, &[Tensor]) -> Result<Vec<Tensor>, String>;

/// The inputs of a pass besides the module: its arguments, one per parameter, and a function that computes values.
#[derive(Clone, Debug)]
pub struct Arguments {
    values: Vec<Value>,
    evaluate: Option<Evaluate>,
}

impl Arguments {
    /// Binds positional arguments to the parameters of `pass` as Python does, with defaults for the missing ones.
    ///
    /// # Errors
    /// There are too many arguments, or a required one is missing.
    pub fn bind(pass: &Pass, given: Vec<Value>) -> Result<Arguments, PassError> {
        Arguments::bind_named(pass, given, Map::new())
    }

    /// Binds positional arguments as [`Arguments::bind`] does, followed by keyword arguments.
    ///
    /// # Errors
    /// Those of [`Arguments::bind`]; a keyword that no parameter has; or an argument that is given twice.
    pub fn bind_named(pass: &Pass, given: Vec<Value>, mut named: Map<String, Value>) -> Result<Arguments, PassError> {
        let Pass { name, parameters, .. } = pass;
        let by_position = given.len();
        if given.len() > parameters.len() {
            return Err(PassError(format!(
                "{name} takes {}; found {}",
                counted(parameters.len(), "argument"),
                given.len()
            )));
        }
        let mut given = given.into_iter();
        let values = parameters.iter().map(|parameter| match (given.next(), parameter.default) {
            (Some(value), _) => Ok(value),
            (None, _) if named.contains_key(parameter.name) => Ok(named.remove(parameter.name).unwrap_or_default()),
            (None, Some(default)) => serde_json::from_str(default)
                .map_err(|error| PassError(format!("{name}: the default of `{}`: {error}", parameter.name))),
            (None, None) => Err(PassError(format!("{name}: argument `{}` is missing", parameter.name))),
        });
        let values: Vec<Value> = values.collect::<Result<_, _>>()?;
        match named.keys().next() {
            Some(twice) if parameters.iter().take(by_position).any(|parameter| parameter.name == twice) => {
                Err(PassError(format!("{name}: argument `{twice}` is given twice")))
            }
            Some(unknown) => Err(PassError(format!("{name} has no argument `{unknown}`"))),
            None => Ok(Arguments { values, evaluate: None }),
        }
    }

    /// Returns the argument of the parameter at index `at`; `null` if the pass has no such parameter.
    pub fn get(&self, at: usize) -> &Value {
        self.values.get(at).unwrap_or(&Value::Null)
    }

    /// Returns the Relax function named by the argument at index `at`, which is the parameter `func_name` of `pass`;
    /// `None` if that argument is `null`.
    ///
    /// # Errors
    /// The argument is not a string, or the module has no Relax function of this name.
    pub fn function(&self, at: usize, module: &Module, pass: &str) -> Result<Option<Name>, PassError> {
        let wanted = match self.get(at) {
            Value::Null => return Ok(None),
            Value::String(function) => name(function),
            _ => return Err(PassError(format!("{pass}: `func_name` is a name"))),
        };
        match module.functions().any(|function| function.name == wanted) {
            true => Ok(Some(wanted)),
            false => Err(PassError(format!("{pass}: the module has no Relax function `{wanted}`"))),
        }
    }

    /// Sets the function that computes values.
    pub fn with_evaluator(self, evaluate: Evaluate) -> Arguments {
        Arguments { evaluate: Some(evaluate), ..self }
    }

    /// Returns the function that runs a Relax function on constant tensors, if the caller supplied one.
    pub fn evaluator(&self) -> Option<Evaluate> {
        self.evaluate
    }
}

/// A pass with its arguments: one entry of a pipeline.
pub struct Step {
    /// The pass to run.
    pub pass: &'static Pass,
    /// The arguments for the pass.
    pub arguments: Arguments,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("pass", &self.pass.name).field("arguments", &self.arguments).finish()
    }
}

/// Parses a comma-separated list of passes, each followed by its arguments, if any, as JSON in parentheses. For
/// example, `FuseOps,ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})`.
///
/// # Errors
/// No pass has a given name, a bracket is not closed, or the arguments are not JSON or do not match the parameters of
/// the pass.
pub fn parse(text: &str) -> Result<Vec<Step>, PassError> {
    let parts = at_commas(text).into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.map(step).collect()
}

fn step(text: &str) -> Result<Step, PassError> {
    let (name, arguments) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => {
            let unclosed = || PassError(format!("`{text}`: the bracket is not closed"));
            (name.trim(), rest.strip_suffix(')').ok_or_else(unclosed)?)
        }
    };
    let name = name.strip_prefix("tvm.").unwrap_or(name);
    let name = name.strip_prefix("relax.transform.").unwrap_or(name);
    let pass = find(name).ok_or_else(|| unknown(name))?;
    let given = serde_json::from_str(&format!("[{arguments}]"))
        .map_err(|error| PassError(format!("{name}: the arguments are no JSON: {error}")))?;
    Ok(Step { pass, arguments: Arguments::bind(pass, given)? })
}

/// Builds the error for an unknown pass name: either TVM has this pass and rx does not, or no such pass exists. In the
/// second case the message suggests a similar name, of a pass of rx or else of TVM, if there is one.
fn unknown(name: &str) -> PassError {
    if let Some(namespace) = tvm_passes::namespace_of(name) {
        let own = name.rsplit('.').next().unwrap_or(name);
        let subject = format!("TVM has the pass `{own}` (`{namespace}.{own}`), and rx does not");
        return PassError(format!("{subject}: --list-passes names those that it has"));
    }
    let own = name.rsplit('.').next().unwrap_or(name);
    let near = nearest(own, ALL.iter().map(|pass| pass.name));
    let hint = match near {
        Some(near) => format!("; did you mean `{near}`?"),
        None => match nearest(own, tvm_passes::names()) {
            Some(near) => format!("; TVM has `{near}`, which rx does not have"),
            None => String::new(),
        },
    };
    PassError(format!("there is no pass `{name}`{hint}"))
}

/// Splits `text` at the commas that are outside of brackets and string literals.
fn at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped, mut start) = (0i64, false, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

/// Returns the names, sorted, of the public Relax functions whose parameter types or return type differ between the
/// modules. Functions that only one of the modules has are included.
pub fn changed_signatures(before: &Module, after: &Module) -> Vec<rx_base::Name> {
    let public = |module: &Module| -> std::collections::BTreeMap<_, _> {
        let functions = module.functions().filter(|function| !function.private);
        let types = functions.map(|function| {
            let params: Vec<_> = function.params.iter().map(|(_, ty)| ty.clone()).collect();
            (function.name.as_str(), (params, function.ret.clone()))
        });
        types.collect()
    };
    let (before, after) = (public(before), public(after));
    let differs = |name: &&&str| before.get(**name) != after.get(**name);
    let names: std::collections::BTreeSet<&&str> = before.keys().chain(after.keys()).collect();
    names.iter().filter(|name| differs(name)).map(|name| rx_base::name::name(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Arguments, at_commas, find, parse};
    use serde_json::Value;

    #[test]
    fn passes_are_named_with_their_arguments_as_json() {
        assert_eq!(at_commas(r#"A, B({"x": [1, 2]}, "a,b"),C"#), ["A", r#" B({"x": [1, 2]}, "a,b")"#, "C"]);
        let steps = parse(r#"DeadCodeElimination(["main"]), EliminateCommonSubexpr"#);
        let names: Vec<&str> = steps.iter().flatten().map(|step| step.pass.name).collect();
        assert_eq!(names, ["DeadCodeElimination", "EliminateCommonSubexpr"]);
    }

    #[test]
    fn unknown_passes_and_arguments_are_errors() {
        let message = |text: &str| parse(text).err().map(|error| error.0).unwrap_or_default();
        assert!(message("DeadCodeEliminatio").contains("did you mean `DeadCodeElimination`?"));
        assert!(message("DeadCodeElimination([)").contains("no JSON"));
        assert!(message("DeadCodeElimination(1, 2)").contains("takes 1 argument; found 2"));
        assert!(message("DeadCodeElimination(").contains("not closed"));
        assert!(message("BindSymbolicVars").contains("`binding_map` is missing"));
        let named = |name: &str, given: Vec<Value>| {
            let pass = find("ToMixedPrecision")?;
            let named = [(name.to_owned(), Value::from("float16"))].into_iter().collect();
            Some(Arguments::bind_named(pass, given, named).map(|arguments| arguments.get(0).clone()))
        };
        assert_eq!(named("out_dtype", Vec::new()), Some(Ok(Value::from("float16"))));
        assert!(matches!(named("out_dtype", vec![Value::Null]), Some(Err(error)) if error.0.contains("given twice")));
        assert!(matches!(named("dtype", Vec::new()), Some(Err(error)) if error.0.contains("no argument `dtype`")));
    }
}
