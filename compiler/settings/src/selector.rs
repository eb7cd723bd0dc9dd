//! Selectors of diagnostic codes.

use rx_base::Code;
use rx_base::edit_distance::nearest;
use std::fmt;
use std::str::FromStr;

/// A selector: one code, a group of codes with the same leading digits, or all codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `all`.
    All,
    /// `RX06`: the codes that begin with these digits.
    Group {
        /// The digits as a number.
        prefix: u16,
        /// The number of digits, 1 to 3.
        digits: u8,
    },
    /// `RX0651` or `take-index-maybe-out-of-bounds`.
    One(Code),
}

impl Selector {
    /// Returns how specifically the selector names the code, a larger number is more specific; `None` if it does not.
    /// For example, `RX0651` has 4 by itself, 2 by `RX06`, 0 by `all`, and `None` by `RX02`.
    pub fn closeness(self, code: Code) -> Option<u8> {
        match self {
            Selector::All => Some(0),
            Selector::Group { prefix, digits } => {
                let dropped = 10u16.pow(4 - u32::from(digits.min(4)));
                (code.number() / dropped == prefix).then_some(digits)
            }
            Selector::One(one) => (one == code).then_some(4),
        }
    }

    /// Whether the selector names a code whose severity can be chosen; syntax errors cannot be.
    fn choosable(self) -> bool {
        Code::ALL.iter().any(|code| code.is_choosable() && self.closeness(*code).is_some())
    }
}

/// A selector that names no code, or only codes whose severity cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSelector {
    /// The message, in one line.
    pub message: String,
    /// The probable meaning.
    pub near: Option<String>,
}

impl fmt::Display for UnknownSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.near {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownSelector {}

impl FromStr for Selector {
    type Err = UnknownSelector;

    fn from_str(text: &str) -> Result<Selector, UnknownSelector> {
        let selector = match text {
            "all" => Some(Selector::All),
            text => text.parse().ok().map(Selector::One).or_else(|| group(text)),
        };
        match selector {
            Some(selector) if selector.choosable() => Ok(selector),
            Some(_) => Err(UnknownSelector {
                message: format!("the severity of `{text}` cannot be chosen: unreadable text is always an error"),
                near: None,
            }),
            None => Err(unknown(text)),
        }
    }
}

/// Parses a group: `RX0`, `RX06`, `RX065`.
fn group(text: &str) -> Option<Selector> {
    let digits = text.strip_prefix("RX")?;
    if digits.len() > 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let group = Selector::Group { prefix: digits.parse().ok()?, digits: digits.len() as u8 };
    Code::ALL.iter().any(|code| group.closeness(*code).is_some()).then_some(group)
}

fn unknown(text: &str) -> UnknownSelector {
    let numbers: Vec<String> = Code::ALL.iter().map(Code::to_string).collect();
    let like_a_number = text.get(..2).is_some_and(|head| head.eq_ignore_ascii_case("rx"));
    let (upper, lower) = (text.to_uppercase(), text.to_lowercase());
    let near = match like_a_number {
        true if numbers.contains(&upper) => Some(upper),
        // A mistyped number has no meaningful nearest number.
        true => None,
        false if Code::ALL.iter().any(|code| code.slug() == lower) => Some(lower),
        false => nearest(&lower, Code::ALL.iter().map(|code| code.slug()).chain(["all"])).map(str::to_owned),
    };
    UnknownSelector { message: format!("no diagnostic is called `{text}`"), near }
}

#[cfg(test)]
mod tests {
    use super::Selector;
    use rx_base::Code;

    fn near(text: &str) -> String {
        text.parse::<Selector>().expect_err("an unknown selector").to_string()
    }

    #[test]
    fn the_closest_of_several_is_the_one_with_most_digits() {
        let code = Code::TakeIndexMaybeOutOfBounds;
        let closeness = |text: &str| text.parse::<Selector>().expect("a selector").closeness(code);
        let closer = ["all", "RX0", "RX06", "RX065", "RX0651"].map(closeness);
        assert_eq!(closer, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!((closeness(code.slug()), closeness("RX0652"), closeness("RX02")), (Some(4), None, None));
    }

    #[test]
    fn unknown_selectors_are_reported_with_a_suggestion() {
        assert_eq!(
            near("slice-end-clampd"),
            "no diagnostic is called `slice-end-clampd`; did you mean `slice-end-clamped`?"
        );
        assert_eq!(near("rx0651"), "no diagnostic is called `rx0651`; did you mean `RX0651`?");
        assert_eq!(near("RX0699"), "no diagnostic is called `RX0699`");
        assert_eq!(near("RX"), "no diagnostic is called `RX`");
        assert!(near("RX01").starts_with("the severity of `RX01` cannot be chosen"));
        assert!(near("syntax-error").contains("cannot be chosen"));
    }
}
