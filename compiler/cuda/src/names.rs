//! Identifiers of the text: as in the IR where C++ allows, else the nearest that it does.

use rustc_hash::FxHashSet;

/// Words that no variable may be called: C++'s, CUDA's, and functions that the text calls.
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
    "atomicCAS",
];

/// Identifiers that are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    taken: FxHashSet<String>,
}

impl Names {
    /// An identifier like `wanted` that is not taken yet, and is from now on.
    pub(crate) fn fresh(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        let mut candidate = base.clone();
        let mut number = 0usize;
        while RESERVED.contains(&candidate.as_str()) || !self.taken.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{base}_{number}");
        }
        candidate
    }
}

/// The text with everything that no identifier may hold made `_`. Never empty, and never in the helpers' space `rx_`.
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
    fn what_is_taken_or_reserved_gets_a_number() {
        let mut names = Names::default();
        assert_eq!(["a", "a", "exp", "a_1"].map(|wanted| names.fresh(wanted)), ["a", "a_1", "exp_1", "a_1_1"]);
    }
}
