//! The helper functions of the CUDA text, printed only if a kernel uses them. They compile as CUDA and, with the
//! simulator's header, as C++.

mod arithmetic;
mod checks;
mod floats;
mod hopper;
mod memory;
mod products;
mod sort;
mod tensor_cores;

use products::Product;
use std::borrow::Cow;

/// A helper, which may need other helpers.
#[derive(Clone, Copy)]
struct Helper<'t> {
    /// The name that kernels and other helpers use for it. Some helpers define a family of functions under one name.
    name: &'t str,
    /// The names of the helpers that it requires. They are printed before it.
    needs: &'t [&'static str],
    /// The definitions, in CUDA C++.
    text: &'t str,
}

/// Returns the text of the named helpers and of those they need, each after the ones it needs.
pub(crate) fn text(used: &[Cow<'static, str>]) -> String {
    with_helpers(|helpers| {
        let mut wanted: Vec<&str> = used.iter().map(|name| &**name).collect();
        let mut at = 0;
        while at < wanted.len() {
            let needs = helpers.iter().filter(|helper| helper.name == wanted[at]).flat_map(|helper| helper.needs);
            let new: Vec<&str> = needs.filter(|need| !wanted.contains(need)).copied().collect();
            wanted.extend(new);
            at += 1;
        }
        let texts = helpers.iter().filter(|helper| wanted.contains(&helper.name)).map(|helper| helper.text);
        texts.collect::<Vec<_>>().join("\n")
    })
}

/// Calls a function with all helpers, each after the ones it needs.
fn with_helpers<T>(each: impl FnOnce(&[Helper<'_>]) -> T) -> T {
    let (of_one_warp, of_four_warps) = (products::of_one_warp(), products::of_four_warps());
    let before = [floats::HELPERS, memory::HELPERS, checks::HELPERS, arithmetic::HELPERS, tensor_cores::READING];
    let helpers: Vec<Helper<'_>> = before
        .concat()
        .into_iter()
        .chain(of_one_warp.iter().map(Product::helper))
        .chain([tensor_cores::ROUNDING, hopper::HELPERS].concat())
        .chain(of_four_warps.iter().map(Product::helper))
        .chain(sort::HELPERS.iter().copied())
        .collect();
    each(&helpers)
}

#[cfg(test)]
mod tests {
    use super::{text, with_helpers};

    #[test]
    fn helpers_follow_their_dependencies() {
        with_helpers(|helpers| {
            for (at, helper) in helpers.iter().enumerate() {
                for need in helper.needs {
                    assert!(helpers[..at].iter().any(|before| before.name == *need), "{} needs {need}", helper.name);
                }
            }
        });
    }

    #[test]
    fn needs_are_printed_once_and_first() {
        let printed = text(&["rx_check".into(), "rx_divisor".into()]);
        assert_eq!(printed.matches("void rx_fail(").count(), 1);
        assert!(printed.find("void rx_fail(") < printed.find("rx_check("));
    }
}
