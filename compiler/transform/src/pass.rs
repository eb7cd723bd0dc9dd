//! What a pass is, which passes there are, and how a command line names them.

use crate::{Module, passes, tvm_passes};
use rx_base::Name;
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_ir::RelaxFunction;
use rx_tensor::Tensor;
use serde_json::{Map, Value};
use std::fmt;

/// A function from module to module, under TVM's name.
pub struct Pass {
    /// TVM's name: `DeadCodeElimination`.
    pub name: &'static str,
    /// What TVM's constructor takes, in order.
    pub parameters: &'static [Parameter],
    /// What it does, in a sentence or a few; the first stands alone in lists.
    pub doc: &'static str,
    /// The file of TVM that does the same.
    pub reference: &'static str,
    /// The pass itself; the module has no errors.
    pub run: fn(Module, &Arguments) -> Result<Module, PassError>,
}

/// An argument of a pass's constructor.
pub struct Parameter {
    /// Its name in Python.
    pub name: &'static str,
    /// As JSON, what stands for it when it is left out; `None` where it may not be.
    pub default: Option<&'static str>,
    /// What it means, in a sentence.
    pub doc: &'static str,
}

/// Every pass, by name.
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

/// The pass called `name`.
pub fn find(name: &str) -> Option<&'static Pass> {
    ALL.iter().find(|pass| pass.name == name)
}

/// Why a pass gives no module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassError(pub String);

impl PassError {
    /// The same, of what a function or a variable is bound to.
    pub fn at(self, name: Name) -> PassError {
        PassError(format!("`{name}`: {}", self.0))
    }
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Changes every Relax function of a module; what goes wrong is said with the names of the pass and the function.
///
/// # Errors
/// What `change` says.
pub fn each_function(
    module: &mut Module,
    pass: &str,
    mut change: impl FnMut(&mut RelaxFunction) -> Result<(), PassError>,
) -> Result<(), PassError> {
    let named = |function: Name, error: PassError| PassError(format!("{pass}: {}", error.at(function)));
    module.functions_mut().try_for_each(|function| change(function).map_err(|error| named(function.name, error)))
}

/// Computes what a function of a module returns for some tensors, one per parameter: tensors in order, tuples flattened.
/// Passes know no way to run anything; who runs passes gives them one (`rx_execute::evaluate`).
///
/// # Errors
/// Why there is no value, in words: a run that fails, or takes too long.
pub type Evaluate = fn(&Module, Name, &[Tensor]) -> Result<Vec<Tensor>, String>;

/// What a pass is given: its arguments, one per parameter, and a way to compute values.
#[derive(Clone, Debug)]
pub struct Arguments {
    values: Vec<Value>,
    evaluate: Option<Evaluate>,
}

impl Arguments {
    /// Positional arguments as Python binds them, missing ones as their defaults.
    ///
    /// # Errors
    /// Too many, or one that may not be left out.
    pub fn bind(pass: &Pass, given: Vec<Value>) -> Result<Arguments, PassError> {
        Arguments::bind_named(pass, given, Map::new())
    }

    /// As [`Arguments::bind`], with arguments by name behind them.
    ///
    /// # Errors
    /// As [`Arguments::bind`]; a name that no parameter has, or one whose argument is given already.
    pub fn bind_named(pass: &Pass, given: Vec<Value>, mut named: Map<String, Value>) -> Result<Arguments, PassError> {
        let Pass { name, parameters, .. } = pass;
        let by_position = given.len();
        if given.len() > parameters.len() {
            return Err(PassError(format!("{name} takes {} arguments, {} are given", parameters.len(), given.len())));
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

    /// The argument at an index of the pass's parameters; `null` where there is none.
    pub fn get(&self, at: usize) -> &Value {
        self.values.get(at).unwrap_or(&Value::Null)
    }

    /// The Relax function of a module that the argument at an index, `func_name` of `pass`, names; `None` where it is left out.
    ///
    /// # Errors
    /// No name, or one that no function has.
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

    /// The same, with a way to compute values.
    pub fn with_evaluator(self, evaluate: Evaluate) -> Arguments {
        Arguments { evaluate: Some(evaluate), ..self }
    }

    /// The way to compute values, where one was given.
    pub fn evaluator(&self) -> Option<Evaluate> {
        self.evaluate
    }
}

/// A pass with its arguments.
pub struct Step {
    /// The pass.
    pub pass: &'static Pass,
    /// What it is given.
    pub arguments: Arguments,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("pass", &self.pass.name).field("arguments", &self.arguments).finish()
    }
}

/// Reads `FuseOps,ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})`: passes with their arguments as JSON.
///
/// # Errors
/// A name that no pass has, arguments that are no JSON or that the pass does not take.
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

/// Why there is no pass of a name: TVM has it and rx does not, or nobody does.
fn unknown(name: &str) -> PassError {
    if let Some(namespace) = tvm_passes::namespace_of(name) {
        let own = name.rsplit('.').next().unwrap_or(name);
        let what = format!("TVM has the pass `{own}` (`{namespace}.{own}`), and rx does not");
        return PassError(format!("{what}: --list-passes names those that it has"));
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

/// The parts between commas that stand in no bracket and no string.
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

/// The public functions whose parameters or result differ, by name; those that are gone or new among them.
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
    fn what_no_pass_is_called_or_takes_is_an_error() {
        let message = |text: &str| parse(text).err().map(|error| error.0).unwrap_or_default();
        assert!(message("DeadCodeEliminatio").contains("did you mean `DeadCodeElimination`?"));
        assert!(message("DeadCodeElimination([)").contains("no JSON"));
        assert!(message("DeadCodeElimination(1, 2)").contains("takes 1 arguments, 2 are given"));
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
