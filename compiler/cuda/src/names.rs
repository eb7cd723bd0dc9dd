//! Makes C++ identifiers from the names of the IR.

use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Names that no variable may have: reserved words of C and C++, and names that CUDA, C++ compilers or the headers of
/// the simulator predefine.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "const",
    "constexpr",
    "const_cast",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "char8_t",
    "char16_t",
    "char32_t",
    "concept",
    "requires",
    "co_await",
    "co_return",
    "co_yield",
    "restrict",
    "blockIdx",
    "blockDim",
    "threadIdx",
    "gridDim",
    "warpSize",
    "linux",
    "unix",
    "errno",
    "stdin",
    "stdout",
    "stderr",
    "assert",
    "EOF",
    "NULL",
    "INFINITY",
    "NAN",
    "HUGE_VAL",
];

/// Functions of CUDA, whose names no variable may have. The variants for `float` with the suffix `f` are not listed:
/// `exp` is also for `expf`.
const FUNCTIONS: &[&str] = &[
    "atomicAdd",
    "atomicCAS",
    "atomicMax",
    "atomicMin",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp10",
    "exp2",
    "floor",
    "fmod",
    "fabs",
    "fmax",
    "fmin",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "log",
    "log10",
    "log1p",
    "log2",
    "rint",
    "nextafter",
    "pow",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
];

/// [`RESERVED`], [`FUNCTIONS`], and the latter with the suffix `f`.
static EXCLUDED: LazyLock<FxHashSet<Cow<'static, str>>> = LazyLock::new(|| {
    let names = RESERVED.iter().chain(FUNCTIONS).map(|name| Cow::Borrowed(*name));
    names.chain(FUNCTIONS.iter().map(|name| Cow::Owned(format!("{name}f")))).collect()
});

/// The identifiers that are in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Each identifier with the largest number that [`Names::fresh`] appended to it.
    taken: FxHashMap<String, usize>,
}

impl Names {
    /// Returns an unused identifier similar to `wanted`, and marks it as used. For example, the second `a` is `a_1`.
    pub(crate) fn fresh(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        if !self.taken.contains_key(&base) {
            // A reserved name counts as used, so that the next one gets a number without a search from 1.
            self.taken.insert(base.clone(), 0);
            if !EXCLUDED.contains(base.as_str()) {
                return base;
            }
        }
        let mut number = self.taken.get(&base).copied().unwrap_or(0);
        let candidate = loop {
            number += 1;
            let candidate = format!("{base}_{number}");
            if !EXCLUDED.contains(candidate.as_str()) && !self.taken.contains_key(&candidate) {
                break candidate;
            }
        };
        self.taken.insert(base, number);
        self.taken.insert(candidate.clone(), 0);
        candidate
    }
}

/// Replaces each character that is no ASCII letter, digit or `_` by `_`. The result begins with a letter, and not with
/// `rx_`, the prefix of helpers. For example, `nn.conv2d` becomes `nn_conv2d`, and `2x` becomes `v_2x`.
pub(crate) fn identifier(text: &str) -> String {
    let mut result: String =
        text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    let outside = result.starts_with(|first: char| first.is_ascii_alphabetic()) && !result.starts_with("rx_");
    if !outside {
        result.insert_str(0, if result.starts_with('_') { "v" } else { "v_" });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{Names, identifier};

    #[test]
    fn any_text_becomes_an_identifier() {
        for (text, expected) in
            [("nn.conv2d", "nn_conv2d"), ("", "v_"), ("2x", "v_2x"), ("rx_a", "v_rx_a"), ("é", "v_")]
        {
            assert_eq!(identifier(text), expected);
        }
    }

    #[test]
    fn taken_and_reserved_names_get_a_number() {
        let mut names = Names::default();
        assert_eq!(["a", "a", "exp", "a_1"].map(|wanted| names.fresh(wanted)), ["a", "a_1", "exp_1", "a_1_1"]);
        assert_eq!(
            ["expf", "fmaxf", "atomicMax"].map(|wanted| names.fresh(wanted)),
            ["expf_1", "fmaxf_1", "atomicMax_1"]
        );
    }
}
