//! Binds a call's arguments to parameters by Python's rules.

use super::{DTypeKeyword, Function, ParamKind};
use rx_base::Code;
use rx_base::edit_distance::nearest;
use rx_syntax::ast::{Argument, TokenRange};

/// The syntax of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'t> {
    /// By position.
    Positional,
    /// `name=…`.
    Keyword(&'t str),
    /// `*items` or `**items`: the parameters that it fills are unknown.
    Spread,
}

/// The result of binding a call's arguments to parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound<'t> {
    /// For each argument the index of its parameter; `None` if the parameter is not known, or if the argument is wrong
    /// or ignored.
    pub params: Vec<Option<usize>>,
    /// Whether a spread argument hides which parameters are passed.
    pub open: bool,
    /// The mistakes in the order of the arguments; missing arguments come last.
    pub mistakes: Vec<Mistake<'t>>,
}

/// A mistake in a call. The `usize` is the index of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake<'t> {
    /// No release has a parameter of this name.
    Unknown(usize),
    /// The argument's parameter already has another argument: `f(1, a=2)`, if `a` is the first parameter of `f`.
    Twice(usize),
    /// There are more positional arguments than positional parameters.
    TooMany(usize),
    /// The keyword `dtype` of a function that has such a parameter, but drops the keyword ([`DTypeKeyword::Dropped`]).
    Ignored(usize),
    /// Required parameters without an argument.
    Missing(Vec<&'t str>),
}

impl Mistake<'_> {
    /// Returns the tokens of the wrong keyword or value; for missing arguments `call`, the tokens of the whole call.
    pub fn tokens(&self, arguments: &[Argument], call: TokenRange) -> TokenRange {
        let guilty = match self {
            Mistake::Unknown(at) | Mistake::Twice(at) | Mistake::TooMany(at) | Mistake::Ignored(at) => {
                arguments.get(*at)
            }
            Mistake::Missing(_) => None,
        };
        match guilty {
            Some(Argument { keyword: Some(keyword), .. }) => TokenRange::one(*keyword),
            Some(argument) => argument.value.tokens,
            None => call,
        }
    }

    /// Returns the code of its diagnostic.
    pub fn code(&self) -> Code {
        match self {
            Mistake::Unknown(_) | Mistake::Ignored(_) => Code::UnknownArgument,
            Mistake::Twice(_) => Code::DuplicateArgument,
            Mistake::TooMany(_) => Code::TooManyArguments,
            Mistake::Missing(_) => Code::MissingArgument,
        }
    }

    /// Returns its message. `called` is the function's name in the source; `argument` is the wrong argument's keyword
    /// or source text.
    pub fn message(&self, function: &Function<'_>, called: &str, argument: &str) -> String {
        match self {
            Mistake::Unknown(_) => format!("{called}: there is no argument `{argument}`"),
            Mistake::Ignored(_) => {
                format!("{called}: TVM ignores a keyword `{argument}` here; pass it by position")
            }
            Mistake::Twice(_) => format!("{called}: `{argument}` is passed twice"),
            Mistake::TooMany(_) => {
                let most = function.params.iter().filter(|param| param.kind == ParamKind::Positional).count();
                let most = rx_base::counted(most, "argument");
                format!("{called}: takes at most {most} by position, more are passed")
            }
            Mistake::Missing(names) => match &names[..] {
                [name] => format!("{called}: argument `{name}` is missing"),
                names => {
                    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                    format!("{called}: arguments {} are missing", names.join(", "))
                }
            },
        }
    }
}

impl<'t> Function<'t> {
    /// Returns the parameter that was probably meant by an unknown keyword.
    pub fn meant(&self, keyword: &str) -> Option<&'t str> {
        let named = self.params.iter().filter(|param| matches!(param.kind, ParamKind::Positional | ParamKind::Keyword));
        nearest(keyword, named.map(|param| param.name))
    }

    /// Binds arguments to parameters. For example, `T.floordiv(b=3, a=x)` binds its arguments to the parameters 1 and
    /// 0.
    pub fn bind(&self, written: &[Written<'_>]) -> Bound<'t> {
        let mut bound = Bound { params: vec![None; written.len()], open: false, mistakes: Vec::new() };
        let mut passed = vec![false; self.params.len()];
        // A `dtype` that TVM moves to the front takes the first parameter; positional arguments begin at the second.
        let mut next = 0;
        if self.dtype == DTypeKeyword::First
            && let Some(at) = written.iter().position(|argument| *argument == Written::Keyword("dtype"))
        {
            bound.params[at] = Some(0); // INVARIANT: `params` has as many elements as `written`.
            passed.iter_mut().take(1).for_each(|first| *first = true);
            next = 1;
        }
        for (at, argument) in written.iter().enumerate() {
            match argument {
                Written::Spread => bound.open = true,
                Written::Positional if bound.open => {}
                Written::Positional => match self.params.get(next).map(|param| param.kind) {
                    Some(ParamKind::Positional) => {
                        bound.params[at] = Some(next);
                        passed[next] = true;
                        next += 1;
                    }
                    Some(ParamKind::Variadic) => bound.params[at] = Some(next),
                    // In an older release, this position may belong to one of the parameters that only older releases
                    // have. The table does not contain their positions, so the argument gets no parameter.
                    _ if next < self.params.len() && self.params.iter().skip(next).any(|param| param.old) => next += 1,
                    _ => bound.mistakes.push(Mistake::TooMany(at)),
                },
                Written::Keyword("dtype") if self.dtype == DTypeKeyword::First => {
                    let again = written.iter().take(at).any(|before| *before == Written::Keyword("dtype"));
                    bound.mistakes.extend(again.then_some(Mistake::Twice(at)));
                }
                Written::Keyword("dtype") if self.dtype == DTypeKeyword::Dropped => {
                    if let Some(own) = self.params.iter().position(|param| param.name == "dtype") {
                        passed[own] = true;
                        bound.mistakes.push(Mistake::Ignored(at));
                    }
                }
                Written::Keyword(name) => {
                    let named = |param: &super::Param<'_>| match param.kind {
                        ParamKind::Positional | ParamKind::Keyword => param.is_called(name),
                        ParamKind::Variadic | ParamKind::Keywords => false,
                    };
                    let rest = || self.params.iter().position(|param| param.kind == ParamKind::Keywords);
                    match self.params.iter().position(named) {
                        Some(own) if passed[own] => bound.mistakes.push(Mistake::Twice(at)),
                        Some(own) => {
                            bound.params[at] = Some(own);
                            passed[own] = true;
                        }
                        None => match rest() {
                            Some(own) => bound.params[at] = Some(own),
                            None => bound.mistakes.push(Mistake::Unknown(at)),
                        },
                    }
                }
            }
        }
        // A parameter may seem missing because its name is misspelled, so missing ones are not reported then.
        let misspelt = bound.mistakes.iter().any(|mistake| matches!(mistake, Mistake::Unknown(_)));
        if !bound.open && !misspelt {
            let missing = self.params.iter().zip(&passed).filter(|(param, passed)| param.is_required() && !**passed);
            let missing: Vec<&'t str> = missing.map(|(param, _)| param.name).collect();
            bound.mistakes.extend((!missing.is_empty()).then_some(Mistake::Missing(missing)));
        }
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::Written::{Keyword, Positional, Spread};
    use super::{Bound, Mistake, Written};

    fn bind(function: &str, written: &[Written<'_>]) -> Bound<'static> {
        find(function).map(|function| function.bind(written)).unwrap_or(Bound {
            params: Vec::new(),
            open: false,
            mistakes: Vec::new(),
        })
    }

    #[test]
    fn keywords_in_any_order_are_bound_by_name() {
        assert_eq!(bind("if_then_else", &[Positional, Keyword("f"), Keyword("t")]).params, [Some(0), Some(2), Some(1)]);
        assert_eq!(bind("cast", &[Keyword("dtype"), Keyword("src")]).params, [Some(1), Some(0)]);
        assert_eq!(bind("thread_binding", &[Positional, Keyword("thread")]).params, [Some(0), Some(2)]);
        assert_eq!(bind("hint", &[Positional, Keyword("any")]).params, [Some(0), Some(1)]);
    }

    #[test]
    fn dtype_of_wrapped_functions_is_first_or_dropped() {
        let first = bind("reinterpret", &[Positional, Keyword("dtype")]);
        assert_eq!((first.params, first.mistakes), (vec![Some(1), Some(0)], vec![]));
        let dropped = bind("exp", &[Positional, Keyword("dtype")]);
        assert_eq!((dropped.params, dropped.mistakes), (vec![Some(0), None], vec![]));
        assert_eq!(bind("max_value", &[Keyword("dtype")]).mistakes, [Mistake::Ignored(0)]);
    }

    #[test]
    fn wrong_calls_are_mistakes() {
        assert_eq!(bind("floordiv", &[Positional, Keyword("c")]).mistakes, [Mistake::Unknown(1)]);
        let twice = bind("floordiv", &[Positional, Keyword("a")]);
        assert_eq!(twice.mistakes, [Mistake::Twice(1), Mistake::Missing(vec!["b"])]);
        assert_eq!(bind("exp", &[Positional, Positional]).mistakes, [Mistake::TooMany(1)]);
        assert_eq!(bind("Select", &[Positional]).mistakes, [Mistake::Missing(vec!["true_value", "false_value"])]);
    }

    #[test]
    fn spread_leaves_the_call_open() {
        let open = bind("floordiv", &[Spread]);
        assert_eq!((open.open, open.mistakes), (true, vec![]));
    }
}
