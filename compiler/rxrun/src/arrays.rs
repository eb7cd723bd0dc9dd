//! Arrays read from files, and the parameter that each is for.

use crate::args::Args;
use crate::arguments::leaves;
use crate::choices::{Choices, Source};
use crate::failure::Failure;
use crate::report::Report;
use crate::weights::Preparation;
use rx_base::Name;
use rx_base::edit_distance::nearest;
use rx_ir::Function;
use rx_tensor::{Arrays, FileError, Progress, Tensor, npy, npz, safetensors};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Instant;

/// Arrays by their names in the files, with an index by the spellings that parameters may use for them.
#[derive(Default)]
pub struct Given {
    /// Name in the file → (name of the file, array).
    arrays: HashMap<String, (String, Tensor)>,
    /// Spelling → names of arrays with that spelling, in alphabetical order. Some of these arrays may already be taken.
    called: HashMap<String, BTreeSet<String>>,
    /// For each file of weights, the names of its arrays that match no parameter.
    pub unused: Vec<(String, Vec<String>)>,
}

/// Replaces every character that cannot be in an identifier by `_`. For example, `layer.0-w` becomes `layer_0_w`.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// Returns the name that a model uses for the weight of this parameter: `torch.export` adds a prefix `p_`, `b_` or `c_`
/// and writes names in lower case.
fn bare(param: &str) -> Option<&str> {
    ["p_", "b_", "c_"].iter().find_map(|prefix| param.strip_prefix(prefix))
}

/// The names that match a parameter, in any accepted spelling.
struct Wanted<'p> {
    params: HashSet<&'p str>,
    bare: HashSet<&'p str>,
}

impl<'p> Wanted<'p> {
    fn of(params: impl Iterator<Item = &'p str> + Clone) -> Wanted<'p> {
        Wanted { bare: params.clone().filter_map(bare).collect(), params: params.collect() }
    }

    fn has(&self, array: &str) -> bool {
        let identifier = identifier(array);
        self.params.contains(array)
            || self.params.contains(&*identifier)
            || self.bare.contains(&*identifier.to_lowercase())
    }
}

impl Given {
    fn add(&mut self, name: String, source: &str, array: Tensor) {
        let identifier = identifier(&name);
        for called in [identifier.to_lowercase(), identifier] {
            self.called.entry(called).or_default().insert(name.clone());
        }
        self.arrays.insert(name, (source.to_owned(), array));
    }

    /// Finds the array of a parameter.
    pub fn find(&self, param: &str) -> Option<&Tensor> {
        self.arrays.get(self.key(param)?).map(|(_, array)| array)
    }

    /// Removes and returns the array of a parameter, with the name of its file.
    pub fn take(&mut self, param: &str) -> Option<(String, Tensor)> {
        let key = self.key(param)?.clone();
        self.arrays.remove(&key)
    }

    /// Finds the array of a parameter for modification, with its name and the name of its file.
    pub fn get_mut(&mut self, param: &str) -> Option<(String, &mut (String, Tensor))> {
        let key = self.key(param)?.clone();
        let found = self.arrays.get_mut(&key)?;
        Some((key, found))
    }

    /// Returns the name of the array that matches a parameter best. First comes the same name, then a name with the
    /// same identifier (`layer.w` for `layer_w`), then the name before `torch.export` (`Layer.W` for `p_layer_w`).
    pub fn key(&self, param: &str) -> Option<&String> {
        if let Some((name, _)) = self.arrays.get_key_value(param) {
            return Some(name);
        }
        let near = |called: &str, as_is: bool| {
            let spelled = |name: &str| if as_is { identifier(name) } else { identifier(name).to_lowercase() };
            let mut names = self.called.get(called)?.iter().filter(|name| spelled(name) == called);
            names.find(|name| self.arrays.contains_key(*name))
        };
        near(param, true).or_else(|| bare(param).and_then(|bare| near(bare, false)))
    }

    /// Returns an error message for an `--input` that matches no parameter.
    pub fn unused(&self, args: &Args, function: &Function) -> Option<String> {
        let named = args.input.iter().map(|(name, _)| name).find(|name| self.arrays.contains_key(*name))?;
        let paths: Vec<String> = leaves(function).into_iter().map(|leaf| leaf.path).collect();
        let near = nearest(named, paths.iter().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Some(format!("--input {named}: the function has no parameter of this name{hint}"))
    }
}

/// Reads the arrays. `rx.toml` names arrays for all functions of its files, so those that this function does not need
/// are skipped with a remark.
///
/// # Errors
/// If a file cannot be read, or a file of the command line has no array that is a parameter.
pub fn arrays(
    choices: &Choices,
    function: &Function,
    preparation: Option<&Preparation>,
    report: &mut Report,
) -> Result<Given, Failure> {
    let raw = preparation.map(|preparation| leaves(&preparation.raw)).unwrap_or_default();
    let paths: Vec<String> = leaves(function).into_iter().chain(raw).map(|leaf| leaf.path).collect();
    let wanted = Wanted::of(paths.iter().map(String::as_str));
    let has = |name: &str| wanted.has(name);
    let is_input = |name: &str| !is_result(name) || has(name);
    let mut given = Given::default();
    let mut unread = None;
    for (at, source) in choices.arrays.iter().enumerate() {
        let (Source::Many(path) | Source::Weights(path) | Source::One(_, path)) = source;
        let (shown, settled) = (path.display().to_string(), at < choices.settled);
        let read = match source {
            Source::Many(path) => many(path, &is_input, report).map(|read| {
                let (taken, others): (Vec<_>, Vec<_>) = read.arrays.into_iter().partition(|(name, _)| has(name));
                (taken, others.into_iter().map(|(name, _)| name).chain(read.others).collect())
            }),
            Source::Weights(path) => many(path, &has, report).map(|read| (read.arrays, read.others)),
            Source::One(name, _) if settled && !has(name) => {
                let function = function.name;
                let why = format!("`{name}`, for which rx.toml names it, is no parameter of `{function}`");
                report.remark(&format!("{shown} is not read: {why}"));
                continue;
            }
            Source::One(name, _) if settled && is_given(choices, name) => continue,
            Source::One(name, path) => npy::read_file(path).map(|array| (vec![(name.clone(), array)], Vec::new())),
        };
        let (arrays, others) = match read.map_err(|error| format!("{shown}: {error}")) {
            Ok(read) => read,
            // Report it only if an array is missing at the end: other files may have all that is needed.
            Err(why) if settled && matches!(source, Source::Many(_)) => {
                unread = unread.or(Some(why));
                continue;
            }
            Err(why) => return Err(Failure::usage(why)),
        };
        match source {
            _ if arrays.is_empty() && others.iter().any(|name| !paths.is_empty() || !is_result(name)) => {
                let why = unmatched(&shown, &others, &paths, function.name);
                match settled {
                    true => report.remark(&why),
                    false => return Err(Failure::usage(why)),
                }
            }
            Source::Many(_) if !settled && others.iter().any(|name| !is_result(name)) => {
                report.remark(&format!("warning: {}", extra(&shown, &others, &paths, function.name)));
            }
            // Arrays that match no parameter are reported in `inputs::complete`, together with the missing weights.
            Source::Weights(_) => given.unused.push((shown.clone(), others)),
            _ => {}
        }
        arrays.into_iter().for_each(|(name, array)| given.add(name, &shown, array));
    }
    match unread {
        Some(why) if paths.iter().take(leaves(function).len()).all(|path| given.key(path).is_some()) => {
            report.remark(&format!("{why}; nothing of it is needed"));
        }
        Some(why) => return Err(Failure::usage(why)),
        None => {}
    }
    Ok(given)
}

/// Returns the message that no array of a file is a parameter.
fn unmatched(file: &str, others: &[String], paths: &[String], function: Name) -> String {
    let quoted = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let has = listed(&quoted(others), ", ");
    let takes = match paths {
        [] => "takes none".to_owned(),
        paths => format!("takes {}", listed(&quoted(paths), ", ")),
    };
    format!("{file}: no array is a parameter of `{function}`: it has {has}, the function {takes}")
}

/// Returns the message that some arrays of a file are not parameters, with the most similar parameters.
fn extra(file: &str, others: &[String], paths: &[String], function: Name) -> String {
    let named = |other: &String| match nearest(other, paths.iter().map(String::as_str)) {
        Some(near) => format!("`{other}` (did you mean `{near}`?)"),
        None => format!("`{other}`"),
    };
    let named: Vec<String> = others.iter().map(named).collect();
    let are = if named.len() == 1 { "is no parameter" } else { "are no parameters" };
    format!("{file}: {} {are} of `{function}`", listed(&named, ", "))
}

/// Whether the command line gives the array of this name.
fn is_given(choices: &Choices, name: &str) -> bool {
    choices.arrays.iter().skip(choices.settled).any(|source| matches!(source, Source::One(other, _) if other == name))
}

/// Whether an array has the name of a result (`out0`, `out1`, …), which `--check` compares with.
pub fn is_result(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix("out").is_some_and(is_number)
}

/// Reads the wanted arrays of a file and the names of the others. Results (`out0`, …) next to inputs are not among the
/// others.
pub fn many(path: &Path, wanted: &dyn Fn(&str) -> bool, report: &mut Report) -> Result<Arrays, FileError> {
    let is_safetensors = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"));
    let (start, shown) = (Instant::now(), path.display().to_string());
    let mut reported = |progress: Progress| report.loading(&shown, progress, start.elapsed());
    let read = match is_safetensors {
        true => safetensors::read_wanted(path, wanted, &mut reported),
        false => npz::read_wanted(path, wanted, &mut reported),
    };
    report.quiet();
    let mut read = read?;
    // Results next to inputs are for `--check`. A file of results alone is probably given by mistake: report its names.
    if !read.arrays.is_empty() || !read.others.iter().all(|name| is_result(name)) {
        read.others.retain(|name| !is_result(name));
    }
    Ok(read)
}

/// Joins the first twenty items, and says how many more there are.
pub fn listed(items: &[String], between: &str) -> String {
    const SHOWN: usize = 20;
    let shown = items.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(between);
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}{between}and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, Wanted};
    use rx_tensor::Tensor;

    fn given(names: &[&str]) -> Given {
        let mut given = Given::default();
        for name in names {
            given.add((*name).to_owned(), "a file", Tensor::from_f32s(&[], [0.0]).expect("a tensor"));
        }
        given
    }

    #[test]
    fn the_nearest_name_is_the_parameters() {
        let mut given = given(&["Layer.W", "layer.w", "layer_w", "b.x", "b-x", "Layer_W"]);
        let key = |given: &Given, param: &str| given.key(param).cloned();
        assert_eq!(key(&given, "layer_w").as_deref(), Some("layer_w"), "its own");
        assert_eq!(key(&given, "b_x").as_deref(), Some("b-x"), "the first whose identifier it is");
        assert_eq!(key(&given, "p_layer_w").as_deref(), Some("Layer.W"), "the first that torch.export writes so");
        assert_eq!(key(&given, "Layer_w"), None, "only torch.export writes names small");
        given.take("layer_w").expect("there");
        assert_eq!(key(&given, "layer_w").as_deref(), Some("layer.w"), "what is taken is gone");
    }

    #[test]
    fn wanted_arrays_are_those_that_match_a_parameter() {
        let params = ["w", "p_layer_w", "b_x"];
        let wanted = Wanted::of(params.iter().copied());
        for array in ["w", "W", "Layer.W", "layer_w", "p_layer.w", "P_layer_w", "b.x", "x", "X", "y", "p_w", "layer w"]
        {
            let found = params.iter().any(|param| given(&[array]).key(param).is_some());
            assert_eq!(wanted.has(array), found, "{array}");
        }
    }
}
