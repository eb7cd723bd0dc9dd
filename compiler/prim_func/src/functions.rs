//! Signatures of the functions of `T`: one table for checks, the reader and the editor features.
//!
//! `tests/scripts/tir_signatures.py` compares the table (`signatures.txt`) with TVM's own functions. Code that
//! interprets a call first puts its arguments in the order of the parameters with [`in_order`] or [`values`]. For
//! example, `T.floordiv(b=3, a=x)` becomes `T.floordiv(x, 3)`.

mod bind;
mod order;

pub use bind::{Bound, Mistake, Written};
pub use order::{WrongCall, in_order, mistakes, mistakes_of, values, written, wrong_call};

use rx_base::DType;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::LazyLock;

/// A function that binds its arguments by Python's rules: a function of `T` in some release of TVM, or a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'t> {
    /// Its name without `T.`: `axis.spatial`.
    pub name: &'t str,
    /// Its parameters. Those that only older releases have come last.
    pub params: Vec<Param<'t>>,
    /// Its treatment of the keyword argument `dtype`.
    pub dtype: DTypeKeyword,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param<'t> {
    /// Its name in the newest release that has it.
    pub name: &'t str,
    /// Its name in other releases.
    pub other_name: Option<&'t str>,
    /// How arguments are passed for it: by keyword if it is `old`, since the table lacks its position.
    pub kind: ParamKind,
    /// Its default value in Python syntax, if it has one.
    pub default: Option<&'t str>,
    /// Whether only older releases have it.
    pub old: bool,
}

/// The ways in which arguments are passed for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// By position or by keyword.
    Positional,
    /// `*args`: all remaining positional arguments.
    Variadic,
    /// By keyword only.
    Keyword,
    /// `**attrs`: all remaining keyword arguments.
    Keywords,
}

/// The treatment of a keyword `dtype` by TVM's wrapper of a function (`tirx/script/builder/ir.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DTypeKeyword {
    /// It is an ordinary keyword.
    Plain,
    /// It becomes the first positional argument, regardless of the other arguments.
    First,
    /// It is ignored.
    Dropped,
}

impl Param<'_> {
    /// Whether this is the parameter's name in the newest or in another release.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.other_name == Some(name)
    }

    /// Whether every call must pass an argument for it.
    pub fn is_required(&self) -> bool {
        self.default.is_none() && matches!(self.kind, ParamKind::Positional | ParamKind::Keyword)
    }
}

impl Display for Param<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let stars = match self.kind {
            ParamKind::Variadic => "*",
            ParamKind::Keywords => "**",
            ParamKind::Positional | ParamKind::Keyword => "",
        };
        write!(f, "{stars}{}", self.name)?;
        match self.default {
            Some(default) => write!(f, "={default}"),
            None => Ok(()),
        }
    }
}

impl<'t> Function<'t> {
    /// Returns the parameters in the newest release that has the function, with their indices.
    pub fn current_params(&self) -> impl Iterator<Item = (usize, &Param<'t>)> {
        self.params.iter().enumerate().filter(|(_, param)| !param.old)
    }

    /// Returns the signature in the newest release that has the function, for example `floordiv(a, b, span=None)`.
    /// Unlike in Python, no bare `*` precedes the parameters that are passed by keyword only.
    pub fn signature(&self) -> String {
        let params: Vec<String> = self.current_params().map(|(_, param)| param.to_string()).collect();
        format!("{}({})", self.name, params.join(", "))
    }
}

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Function<'static>>> = LazyLock::new(|| {
    let lines = include_str!("functions/signatures.txt").lines();
    lines.filter_map(read).map(|function| (function.name, function)).collect()
});

/// Finds the function `T.name`. Dtypes that are not in the table, such as `T.float32`, share the signature of
/// `T.boolean`.
pub fn find(name: &str) -> Option<&'static Function<'static>> {
    let by_name = FUNCTIONS.get(name);
    by_name.or_else(|| DType::parse(name).and_then(|_| FUNCTIONS.get("boolean")))
}

/// Returns the names in the table in ASCII order. Of the dtypes, only some are in the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// Parses a line of the table; `None` for comments and lines without parentheses.
fn read(line: &'static str) -> Option<Function<'static>> {
    if line.starts_with('#') {
        return None;
    }
    let (name, rest) = line.split_once('(')?;
    let (inner, tail) = rest.rsplit_once(')')?;
    let mut params = Vec::new();
    let mut kind = ParamKind::Positional;
    // No default value in the table contains a comma.
    for part in inner.split(", ").filter(|part| !part.is_empty()) {
        if part == "*" {
            kind = ParamKind::Keyword;
            continue;
        }
        let (old, part) = part.strip_prefix('~').map_or((false, part), |part| (true, part));
        let (own, part) = if let Some(rest) = part.strip_prefix("**") {
            (ParamKind::Keywords, rest)
        } else if let Some(rest) = part.strip_prefix('*') {
            kind = ParamKind::Keyword;
            (ParamKind::Variadic, rest)
        } else {
            (if old { ParamKind::Keyword } else { kind }, part)
        };
        let (names, default) = part.split_once('=').map_or((part, None), |(names, default)| (names, Some(default)));
        let (name, other_name) = names.split_once('|').map_or((names, None), |(name, other)| (name, Some(other)));
        params.push(Param { name, other_name, kind: own, default, old });
    }
    let dtype = match tail.trim() {
        "dtype:first" => DTypeKeyword::First,
        "dtype:dropped" => DTypeKeyword::Dropped,
        _ => DTypeKeyword::Plain,
    };
    Some(Function { name, params, dtype })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_every_line_is_a_function() {
        let lines = include_str!("functions/signatures.txt").lines().filter(|line| !line.starts_with('#'));
        let (mut count, mut broken) = (0, Vec::new());
        for line in lines {
            count += 1;
            if read(line).is_none() {
                broken.push(line);
            }
        }
        assert_eq!((broken, FUNCTIONS.len()), (Vec::new(), count));
    }

    #[test]
    fn signature_of_old_and_renamed_parameters_is_the_newest() {
        let signature = |name: &str| find(name).map(Function::signature).unwrap_or_default();
        assert_eq!(signature("cast"), "cast(value, dtype, span=None)");
        assert_eq!(signature("buffer_store"), "buffer_store(buffer, value, indices)");
        assert_eq!(signature("call_packed"), "call_packed(*args, span=None)");
        assert_eq!(find("int64").map(|function| function.params.len()), Some(2));
        assert_eq!(find("exq"), None);
    }
}
