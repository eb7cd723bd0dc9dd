//! Arrays of files, and which parameter each is for.

use crate::args::Args;
use crate::choices::{Choices, Source};
use crate::failure::Failure;
use crate::report::Report;
use crate::weights::Preparation;
use rx_base::Name;
use rx_ir::Function;
use rx_tensor::{Arrays, FileError, Tensor, npy, npz, safetensors};
use std::collections::HashMap;
use std::path::Path;

/// Arrays by name, as files have them.
pub struct Given {
    /// With the file each is of.
    pub exact: HashMap<String, (String, Tensor)>,
    /// Of files of weights, the file and the names that no parameter has.
    pub unused: Vec<(String, Vec<String>)>,
}

/// Whether an array of this name is for a parameter; how far the names are apart. `torch.export` puts `p_`, `b_` or `c_` in
/// front of what a model calls its weights, and writes them small.
fn distance(array: &str, param: &str) -> Option<u8> {
    if array == param {
        return Some(0);
    }
    let array = identifier(array);
    let bare = ["p_", "b_", "c_"].iter().find_map(|prefix| param.strip_prefix(prefix));
    match array == param {
        true => Some(1),
        false => bare.filter(|bare| array.to_lowercase() == **bare).map(|_| 2),
    }
}

fn is_of(array: &str, param: &str) -> bool {
    distance(array, param).is_some()
}

/// The name with every character that no identifier has replaced by `_`.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

impl Given {
    /// The array for a parameter.
    pub fn find(&self, param: &str) -> Option<&Tensor> {
        self.exact.get(self.key(param)?).map(|(_, array)| array)
    }

    /// A parameter's array, taken out.
    pub fn take(&mut self, param: &str) -> Option<(String, Tensor)> {
        let key = self.key(param)?.clone();
        self.exact.remove(&key)
    }

    /// The name of the array for a parameter: the nearest.
    pub fn key(&self, param: &str) -> Option<&String> {
        // No name is nearer, and most are found so: looking through all for each would take the square of their number.
        if let Some((name, _)) = self.exact.get_key_value(param) {
            return Some(name);
        }
        let near = self.exact.keys().filter_map(|name| Some((distance(name, param)?, name)));
        near.min().map(|(_, name)| name)
    }

    /// Complains of an array that was named on the command line and is no parameter's.
    pub fn unused(&self, args: &Args) -> Option<String> {
        let named = args.input.iter().map(|(name, _)| name).find(|name| self.exact.contains_key(*name))?;
        Some(format!("--input {named}: the function has no parameter of this name"))
    }
}

/// Reads the arrays. What `rx.toml` names is meant for every function of its files: what this one does not need is left out,
/// and said to be.
pub fn arrays(
    choices: &Choices,
    function: &Function,
    preparation: Option<&Preparation>,
    report: &mut Report,
) -> Result<Given, Failure> {
    let weights = preparation.map(|preparation| &preparation.raw.params[..]).unwrap_or_default();
    let has = |name: &str| function.params.iter().chain(weights).any(|(param, _)| is_of(name, param));
    let mut exact = HashMap::new();
    let (mut unread, mut unused) = (None, Vec::new());
    for (at, source) in choices.arrays.iter().enumerate() {
        let (Source::Many(path) | Source::Weights(path) | Source::One(_, path)) = source;
        let (shown, settled) = (path.display().to_string(), at < choices.settled);
        let read = match source {
            Source::Many(path) => many(path, &|_| true).map(|read| read.arrays),
            Source::Weights(path) => many(path, &has).map(|read| {
                unused.push((shown.clone(), read.others));
                read.arrays
            }),
            Source::One(name, _) if settled && !has(name) => {
                let function = function.name;
                let why = format!("`{name}`, for which rx.toml names it, is no parameter of `{function}`");
                report.remark(&format!("{shown} is not read: {why}"));
                continue;
            }
            Source::One(name, _) if settled && is_given(choices, name) => continue,
            Source::One(name, path) => npy::read_file(path).map(|array| vec![(name.clone(), array)]),
        };
        match read.map_err(|error| format!("{shown}: {error}")) {
            Ok(arrays) => exact.extend(arrays.into_iter().map(|(name, array)| (name, (shown.clone(), array)))),
            // What it holds may stand elsewhere, too.
            Err(why) if settled && matches!(source, Source::Many(_)) => unread = unread.or(Some(why)),
            Err(why) => return Err(Failure::usage(why)),
        }
    }
    let given = |param: &Name| exact.keys().any(|name: &String| is_of(name, param));
    match unread {
        Some(why) if function.params.iter().all(|(param, _)| given(param)) => {
            report.remark(&format!("{why}; nothing of it is needed"));
        }
        Some(why) => return Err(Failure::usage(why)),
        None => {}
    }
    Ok(Given { exact, unused })
}

/// Whether the command line gives the array of this name.
fn is_given(choices: &Choices, name: &str) -> bool {
    choices.arrays.iter().skip(choices.settled).any(|source| matches!(source, Source::One(other, _) if other == name))
}

/// The arrays of a file that are wanted, and the names of the others; without the results that stand beside them.
fn many(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Arrays, FileError> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_result = |name: &str| name.strip_prefix("out").is_some_and(is_number);
    let wanted = |name: &str| !is_result(name) && wanted(name);
    let is_safetensors = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"));
    let mut read = match is_safetensors {
        true => safetensors::read_wanted(path, &wanted)?,
        false => npz::read_wanted(path, &wanted)?,
    };
    read.others.retain(|name| !is_result(name));
    Ok(read)
}

/// The first twenty of these, and how many more there are.
pub fn listed(items: &[String], between: &str) -> String {
    const SHOWN: usize = 20;
    let shown = items.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(between);
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}{between}and {more} more"),
    }
}
