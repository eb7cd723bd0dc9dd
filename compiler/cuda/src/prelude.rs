//! Helpers of the text, printed where they are used. They compile as CUDA and, with the simulator's header, as C++.

/// How a CPU reads an element of a product's factor out of a register's bits: what `rx_cpu_mma` and `rx_cpu_wgmma` take.
macro_rules! read {
    (f16) => {
        "[](unsigned x) { return rx_f16_to_float(rx_f16{(unsigned short)x}); }"
    };
    (bf16) => {
        "[](unsigned x) { return rx_bf16_to_float(rx_bf16{(unsigned short)x}); }"
    };
    (s8) => {
        "[](unsigned x) { return (int)(signed char)x; }"
    };
    (u8) => {
        "[](unsigned x) { return (int)(x & 0xffu); }"
    };
}

mod arithmetic;
mod checks;
mod floats;
mod hopper;
mod memory;
mod sort;
mod tensor_cores;

/// A piece of the text that other pieces may need.
pub(crate) struct Helper {
    /// Its name, as the text calls it; or of the family it defines.
    pub(crate) name: &'static str,
    needs: &'static [&'static str],
    text: &'static str,
}

/// The text of the helpers named, and of those they need, in an order that C++ reads.
pub(crate) fn text(used: &[&'static str]) -> String {
    let mut wanted: Vec<&str> = used.to_vec();
    let mut at = 0;
    while at < wanted.len() {
        let needs = helpers().filter(|helper| helper.name == wanted[at]).flat_map(|helper| helper.needs);
        let new: Vec<&str> = needs.filter(|need| !wanted.contains(need)).copied().collect();
        wanted.extend(new);
        at += 1;
    }
    helpers().filter(|helper| wanted.contains(&helper.name)).map(|helper| helper.text).collect::<Vec<_>>().join("\n")
}

/// Every helper; each stands behind those it needs.
fn helpers() -> impl Iterator<Item = &'static Helper> {
    let everywhere = [floats::HELPERS, memory::HELPERS, checks::HELPERS, arithmetic::HELPERS, tensor_cores::HELPERS];
    everywhere.into_iter().chain(hopper::HELPERS.iter().copied()).chain([sort::HELPERS]).flatten()
}

#[cfg(test)]
mod tests {
    use super::{helpers, text};

    #[test]
    fn helpers_stand_behind_what_they_need() {
        for (at, helper) in helpers().enumerate() {
            for need in helper.needs {
                assert!(helpers().take(at).any(|before| before.name == *need), "{} needs {need}", helper.name);
            }
        }
    }

    #[test]
    fn needs_are_printed_once_and_first() {
        let printed = text(&["rx_check", "rx_divisor"]);
        assert_eq!(printed.matches("void rx_fail(").count(), 1);
        assert!(printed.find("void rx_fail(") < printed.find("rx_check("));
    }
}
