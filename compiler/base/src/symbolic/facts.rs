//! Facts about symbols that the program states: equalities and inequalities of dims.
//!
//! An equality is solved for a symbol if possible, so that it also applies inside products, divisions and minima: with
//! `n == 4·m`, `n` is replaced in every question. A known remainder, `n % 4 == 0`, introduces a new symbol for the
//! quotient: `n` becomes 4 times that symbol. An equality that cannot be solved is kept unchanged.

use super::prove::{self, Bounds};
use super::{Atom, Dim};
use crate::name::{Name, NameSet, name};

/// The maximal number of facts of one kind. Later facts are ignored, so that more questions stay open.
const MAX_FACTS: usize = 48;

/// The maximal size of a fact, in atoms.
const MAX_FACT_ATOMS: usize = 48;

/// Facts about dims, in solved form. Equal facts that were added in the same order give equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Symbols with their values. No value contains a symbol of this list.
    solved: Vec<(Name, Dim)>,
    /// Dims that are 0.
    pub(super) zero: Vec<Dim>,
    /// Dims that are at least 0.
    pub(super) not_negative: Vec<Dim>,
    /// The facts in their original form, for messages.
    said: Vec<Statement>,
}

/// A fact about symbols, as text for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text, for example `n == m + 1`.
    pub text: String,
    /// Whether an attribute of the function states it; otherwise it was learned from the program.
    pub stated: bool,
    symbols: Vec<Name>,
}

impl Statement {
    fn learned(a: &Dim, relation: &str, b: &Dim) -> Statement {
        let mut symbols = NameSet::default();
        a.collect_symbols(&mut symbols);
        b.collect_symbols(&mut symbols);
        let mut symbols: Vec<Name> = symbols.into_iter().collect();
        symbols.sort_unstable();
        Statement { text: format!("{a} {relation} {b}"), stated: false, symbols }
    }
}

impl Facts {
    /// Whether there are no facts.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty() && self.solved.is_empty() && self.zero.is_empty() && self.not_negative.is_empty()
    }

    /// Substitutes the solved symbols in a dim.
    pub(super) fn reduce(&self, dim: &Dim) -> Dim {
        if self.solved.is_empty() {
            return dim.clone();
        }
        let mut touched = false;
        dim.for_each_symbol(&mut |symbol| touched |= self.value(symbol).is_some());
        if touched { dim.substitute(&|symbol| self.value(symbol).cloned()) } else { dim.clone() }
    }

    fn value(&self, symbol: Name) -> Option<&Dim> {
        self.solved.iter().find(|(known, _)| *known == symbol).map(|(_, value)| value)
    }

    /// Whether a fact contains the symbol.
    fn mentions(&self, symbol: Name) -> bool {
        self.solved.iter().any(|(known, value)| *known == symbol || holds(value, symbol))
            || self.zero.iter().chain(&self.not_negative).any(|fact| holds(fact, symbol))
    }
}

/// Whether a symbol occurs in a dim.
fn holds(dim: &Dim, symbol: Name) -> bool {
    let mut found = false;
    dim.for_each_symbol(&mut |other| found |= other == symbol);
    found
}

impl Bounds {
    /// Adds the fact `a == b`. A fact that contradicts known facts is ignored.
    pub fn assume_equal(&mut self, a: &Dim, b: &Dim) {
        if prove::equal(a, b, self) == super::Answer::Open {
            let difference = &self.facts.reduce(a) - &self.facts.reduce(b);
            self.say(Statement::learned(a, "==", b));
            self.add_zero(difference, MAX_FACTS);
        }
    }

    /// Adds the fact `a >= b`. A fact that contradicts known facts is ignored.
    pub fn assume_at_least(&mut self, a: &Dim, b: &Dim) {
        if prove::at_least(a, b, self) == super::Answer::Open {
            let difference = self.facts.reduce(&(a - b));
            self.say(Statement::learned(a, ">=", b));
            self.add_not_negative(difference);
        }
    }

    fn say(&mut self, statement: Statement) {
        if self.facts.said.len() < 2 * MAX_FACTS {
            self.facts.said.push(statement);
        }
    }

    /// The learned facts, in order.
    pub fn statements(&self) -> &[Statement] {
        &self.facts.said
    }

    /// Returns the stated and learned facts about the symbols of these dims, and about symbols that are related to them
    /// by other facts.
    pub fn statements_about(&self, dims: &[&Dim]) -> Vec<Statement> {
        let mut symbols = NameSet::default();
        dims.iter().for_each(|dim| dim.collect_symbols(&mut symbols));
        loop {
            let before = symbols.len();
            for statement in &self.facts.said {
                if statement.symbols.iter().any(|symbol| symbols.contains(symbol)) {
                    symbols.extend(statement.symbols.iter().copied());
                }
            }
            if symbols.len() == before {
                break;
            }
        }
        let mut named: Vec<Name> = symbols.iter().copied().collect();
        named.sort_unstable_by_key(|symbol| symbol.as_str());
        let mut found = Vec::new();
        for symbol in named {
            for (limits, relation) in [(&self.lower, ">="), (&self.upper, "<=")] {
                if let Some(limit) = limits.get(&symbol) {
                    let text = format!("{symbol} {relation} {limit}");
                    found.push(Statement { text, stated: true, symbols: vec![symbol] });
                }
            }
        }
        let about = |statement: &&Statement| statement.symbols.iter().any(|symbol| symbols.contains(symbol));
        found.extend(self.facts.said.iter().filter(about).cloned());
        found
    }

    /// Removes all facts about a symbol whose name was bound to another value.
    pub fn forget(&mut self, symbol: Name) {
        if self.facts.mentions(symbol) {
            self.facts.solved.retain(|(known, value)| *known != symbol && !holds(value, symbol));
            self.facts.zero.retain(|fact| !holds(fact, symbol));
            self.facts.not_negative.retain(|fact| !holds(fact, symbol));
        }
        self.facts.said.retain(|statement| !statement.symbols.contains(&symbol));
        self.learned_lower.remove(&symbol);
        self.learned_upper.remove(&symbol);
    }

    fn add_zero(&mut self, difference: Dim, fuel: usize) {
        if fuel == 0 || difference.as_constant().is_some() || too_large(&difference) {
            return;
        }
        match self.solve(&difference) {
            Some((symbol, value)) => self.substitute_symbol(symbol, value, fuel - 1),
            None if self.facts.zero.len() < MAX_FACTS && !self.facts.zero.contains(&difference) => {
                self.facts.zero.push(difference);
            }
            None => {}
        }
    }

    /// Substitutes `value` for a symbol in all facts. They are then added again, because they may now be solvable.
    fn substitute_symbol(&mut self, symbol: Name, value: Dim, fuel: usize) {
        if self.facts.solved.len() >= MAX_FACTS {
            return;
        }
        let (low, high) = (self.low(symbol), self.high(symbol));
        let put = |dim: &Dim| dim.substitute(&|other| (other == symbol).then(|| value.clone()));
        let mut facts = std::mem::take(&mut self.facts);
        for (_, known) in &mut facts.solved {
            *known = put(known);
        }
        facts.solved.retain(|(_, known)| !known.is_error());
        facts.solved.push((symbol, value.clone()));
        self.facts.solved = facts.solved;
        for fact in facts.zero {
            self.add_zero(put(&fact), fuel);
        }
        for fact in facts.not_negative {
            self.add_not_negative(put(&fact));
        }
        // From now on the symbol's bounds apply to its value.
        self.add_not_negative(&value - &Dim::constant(low));
        if let Some(high) = high {
            self.add_not_negative(&Dim::constant(high) - &value);
        }
    }

    fn add_not_negative(&mut self, dim: Dim) {
        if dim.as_constant().is_some() || too_large(&dim) || prove::lower(&dim, self).is_some_and(|low| low >= 0) {
            return;
        }
        if let ([(product, coefficient)], constant) = (dim.terms(), dim.constant_part())
            && let [(Atom::Symbol(symbol), 1)] = &product[..]
        {
            // c·n + k >= 0.
            match *coefficient > 0 {
                true => self.raise(*symbol, constant.checked_neg().map(|least| div_ceil(least, *coefficient))),
                false => self.cap(*symbol, coefficient.checked_neg().map(|by| constant.div_euclid(by))),
            }
            return;
        }
        if self.facts.not_negative.len() < MAX_FACTS && !self.facts.not_negative.contains(&dim) {
            self.facts.not_negative.push(dim);
        }
    }

    fn raise(&mut self, symbol: Name, least: Option<i64>) {
        if let Some(least) = least.filter(|least| *least > self.low(symbol)) {
            self.learned_lower.insert(symbol, least);
        }
    }

    fn cap(&mut self, symbol: Name, most: Option<i64>) {
        if let Some(most) = most.filter(|most| self.high(symbol).is_none_or(|known| *most < known)) {
            self.learned_upper.insert(symbol, most);
        }
    }

    /// Solves `difference == 0` for a symbol; `None` if no symbol can be isolated.
    fn solve(&self, difference: &Dim) -> Option<(Name, Dim)> {
        solve_linear(difference).or_else(|| self.solve_remainder(difference))
    }

    /// Solves `±(a % c) + k == 0`: `a` is `c` times a new symbol, plus a constant remainder.
    fn solve_remainder(&self, difference: &Dim) -> Option<(Name, Dim)> {
        let [(product, sign @ (1 | -1))] = difference.terms() else { return None };
        let [(Atom::FloorMod(a, by), 1)] = &product[..] else { return None };
        let divisor = by.as_constant().filter(|divisor| *divisor > 0)?;
        let rest = difference.constant_part().checked_mul(-sign)?;
        if !(0..divisor).contains(&rest) || prove::lower(a, self).is_none_or(|low| low < 0) {
            return None;
        }
        let quotient = Dim::symbol(name(&format!("<{a} // {divisor}>")));
        let whole = &(&quotient * by) + &Dim::constant(rest);
        solve_linear(&(a - &whole)).filter(|(symbol, _)| Some(*symbol) != quotient.as_symbol())
    }
}

/// Returns `least / by`, rounded up; `by` is positive.
fn div_ceil(least: i64, by: i64) -> i64 {
    least.div_euclid(by) + i64::from(least.rem_euclid(by) != 0)
}

fn too_large(dim: &Dim) -> bool {
    dim.is_error() || dim.atoms() > MAX_FACT_ATOMS
}

/// Solves `difference == 0` for a symbol of coefficient ±1 that occurs nowhere else in `difference`. If there are
/// several, prefers one that was not created in this module (`<n // 4>`), and of these the last by name.
fn solve_linear(difference: &Dim) -> Option<(Name, Dim)> {
    let mut candidates: Vec<(Name, i64)> = Vec::new();
    for (product, coefficient) in difference.terms() {
        if let ([(Atom::Symbol(symbol), 1)], 1 | -1) = (&product[..], coefficient) {
            candidates.push((*symbol, *coefficient));
        }
    }
    let mut seen = NameSet::default();
    let mut twice = NameSet::default();
    difference.for_each_symbol(&mut |symbol| {
        if !seen.insert(symbol) {
            twice.insert(symbol);
        }
    });
    candidates.retain(|(symbol, _)| !twice.contains(symbol));
    let (symbol, sign) = *candidates.iter().max_by_key(|(symbol, _)| (!symbol.starts_with('<'), symbol.as_str()))?;
    let rest = difference - &(&Dim::symbol(symbol) * &Dim::constant(sign));
    Some((symbol, if sign == 1 { -&rest } else { rest }))
}
