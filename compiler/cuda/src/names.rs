//! Makes C++ identifiers from the names of the IR.

use rustc_hash::FxHashSet;

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

/// The identifiers that are in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    taken: FxHashSet<String>,
}

impl Names {
    /// Returns an unused identifier similar to `wanted`, and marks it as used. For example, the second `a` is `a_1`.
    pub(crate) fn fresh(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        let mut candidate = base.clone();
        let mut number = 0usize;
        while is_reserved(&candidate) || !self.taken.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{base}_{number}");
        }
        candidate
    }
}

/// Whether a name is in [`RESERVED`] or [`FUNCTIONS`], or is one of the latter with the suffix `f`, for example `expf`.
fn is_reserved(name: &str) -> bool {
    let is_function = |name: &str| FUNCTIONS.contains(&name);
    RESERVED.contains(&name) || is_function(name) || name.strip_suffix('f').is_some_and(is_function)
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
