//! Formats amounts for display.

use super::FunctionStats;
use rx_base::Dim;

/// The maximal length in bytes of a formula in [`short`].
const LONGEST_FORMULA: usize = 20;

/// The maximal number of symbols that [`short`] lists.
const MAX_SYMBOLS: usize = 3;

/// The unit of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Arithmetic operations, or elements.
    Operations,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The factor from one prefix to the next.
    fn step(self) -> f64 {
        match self {
            Unit::Operations => 1000.0,
            Unit::Bytes => 1024.0,
        }
    }

    /// The names of the factors, smallest first.
    fn names(self) -> [&'static str; 5] {
        match self {
            Unit::Operations => ["", " k", " M", " G", " T"],
            Unit::Bytes => [" B", " KiB", " MiB", " GiB", " TiB"],
        }
    }
}

/// Formats an expression with its known range.
pub fn ranged(dim: &Dim, stats: &FunctionStats, unit: Unit) -> String {
    let text = plain(dim, unit);
    if dim.as_constant().is_some() || dim.is_error() {
        return text;
    }
    match stats.range(dim) {
        (Some(low), Some(high)) => format!("{text} ({} to {})", number(low, unit), number(high, unit)),
        (Some(low), None) if low > 0 => format!("{text} (at least {})", number(low, unit)),
        (None, Some(high)) => format!("{text} (at most {})", number(high, unit)),
        _ => text,
    }
}

/// Formats an expression with its unit.
pub fn plain(dim: &Dim, unit: Unit) -> String {
    match (dim.as_constant(), dim.is_error(), unit) {
        (Some(value), ..) => number(value, unit),
        (None, true, _) => "too large to write".to_owned(),
        (None, false, Unit::Bytes) => format!("{dim} B"),
        (None, false, Unit::Operations) => dim.to_string(),
    }
}

/// Formats an amount with its noun in few characters, for a line beside the text: `1.2 M operations`, `3 MiB`,
/// `n * 8 operations`. A long expression is replaced by a bound, or by the symbols that it depends on. The statistics
/// have the bounds of the symbols.
pub fn short(dim: &Dim, stats: Option<&FunctionStats>, unit: Unit) -> String {
    let amount = |text: String| match unit {
        Unit::Operations => format!("{text} operations"),
        Unit::Bytes => text,
    };
    if let Some(value) = dim.as_constant() {
        return amount(short_number(value, unit));
    }
    let text = plain(dim, unit);
    if text.len() <= LONGEST_FORMULA || dim.is_error() {
        return amount(text);
    }
    match stats.map_or((None, None), |stats| stats.range(dim)) {
        (_, Some(high)) => format!("up to {}", amount(short_number(high, unit))),
        (Some(low), None) if low > 0 => format!("at least {}", amount(short_number(low, unit))),
        _ => {
            let subject = if unit == Unit::Bytes { "bytes" } else { "operations" };
            format!("{subject} depend on {}", symbols_of(dim))
        }
    }
}

/// Lists the first symbols of an expression: `n, m`.
fn symbols_of(dim: &Dim) -> String {
    let mut symbols: Vec<String> = Vec::new();
    dim.for_each_symbol(&mut |symbol| {
        let text = symbol.to_string();
        if !symbols.contains(&text) {
            symbols.push(text);
        }
    });
    if symbols.len() > MAX_SYMBOLS {
        symbols.truncate(MAX_SYMBOLS);
        symbols.push("…".to_owned());
    }
    symbols.join(", ")
}

/// Formats a number: `8.20 G`, `97.50 MiB`; small numbers are exact.
pub fn number(value: i64, unit: Unit) -> String {
    match scaled(value, unit, |amount| amount) {
        (_, "" | " B") => format!("{value}{}", unit.names()[0]),
        (amount, name) => format!("{amount:.2}{name}"),
    }
}

/// Formats a number with two or three digits: `8.2 G`, `98 MiB`, `3 MiB`; small numbers are exact.
fn short_number(value: i64, unit: Unit) -> String {
    match scaled(value, unit, f64::round) {
        (_, "" | " B") => format!("{value}{}", unit.names()[0]),
        (amount, name) if amount.abs() < 9.95 => format!("{}{name}", format!("{amount:.1}").trim_end_matches(".0")),
        (amount, name) => format!("{amount:.0}{name}"),
    }
}

/// Divides a number by the largest factor that is not above it after `round`; returns it with the factor's name.
fn scaled(value: i64, unit: Unit, round: fn(f64) -> f64) -> (f64, &'static str) {
    let mut amount = value as f64;
    let mut names = unit.names().into_iter();
    let mut name = names.next().unwrap_or("");
    while round(amount.abs()) >= unit.step()
        && let Some(next) = names.next()
    {
        amount /= unit.step();
        name = next;
    }
    (amount, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rx_base::name::name;

    #[test]
    fn short_amounts_have_few_digits() {
        let short = |value: i64, unit| short(&Dim::constant(value), None, unit);
        assert_eq!(short(1_234_567, Unit::Operations), "1.2 M operations");
        assert_eq!(short(236_028_000, Unit::Operations), "236 M operations");
        assert_eq!(short(999_700, Unit::Operations), "1 M operations");
        assert_eq!(short(999, Unit::Operations), "999 operations");
        assert_eq!(short(3 << 20, Unit::Bytes), "3 MiB");
        assert_eq!(short(96, Unit::Bytes), "96 B");
        assert_eq!(number(3 << 20, Unit::Bytes), "3.00 MiB");
        assert_eq!(number(8, Unit::Bytes), "8 B");
    }

    #[test]
    fn long_formula_is_replaced_by_its_symbols() {
        let symbol = |text| Dim::symbol(name(text));
        let (n, m) = (symbol("n"), symbol("m"));
        let product = &(&n * &m) * &Dim::constant(8);
        assert_eq!(short(&product, None, Unit::Operations), format!("{product} operations"));
        let long = &(&(&product * &product) + &product) + &(&n * &Dim::constant(1_000_003));
        assert!(long.to_string().len() > LONGEST_FORMULA, "{long}");
        let text = short(&long, None, Unit::Bytes);
        assert!(["bytes depend on n, m", "bytes depend on m, n"].contains(&&*text), "{text}");
    }
}
