//! The slower part of the prover, for dims whose normal forms and ranges do not give an answer. It first tries to write
//! the goal as a sum of known facts, and then distinguishes cases: `max(a, b)` is `a` or `b`, and `n // 4` is a symbol
//! after `n` is replaced by `4·k + r` for each remainder `r`.
//!
//! The number of cases and sums per question is limited, so that no expression is expensive. A question that is not
//! decided within the limits stays open.

use super::arithmetic::{add_scaled, multiply};
use super::prove::{Answer, Bounds, at_least_by_range, lower, zero};
use super::remainder::expand_remainders;
use super::{Atom, Dim};
use crate::name::{Name, NameSet};

/// The maximal number of atoms of a question. Larger questions stay open.
const MAX_QUESTION: usize = 64;

/// The maximal number of cases per question.
const CASES: usize = 48;

/// The maximal number of sums of facts per question.
const SUMS: usize = 600;

/// The maximal number of facts in a sum.
const DEPTH: usize = 4;

/// The maximal number of facts that are considered.
const MAX_FACTS: usize = 32;

/// The largest divisor whose remainders are distinguished.
const MAX_DIVISOR: i64 = 16;

/// A question about a dim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    /// Whether it is 0.
    Zero,
    /// Whether it is at least 0.
    NotNegative,
}

/// Decides whether `difference` is 0.
pub(super) fn is_zero(difference: &Dim, bounds: &Bounds) -> Answer {
    decide(Question::Zero, difference, bounds)
}

/// Decides whether `difference` is at least 0. Refuted means that it is negative for all values.
pub(super) fn is_not_negative(difference: &Dim, bounds: &Bounds) -> Answer {
    decide(Question::NotNegative, difference, bounds)
}

fn decide(question: Question, difference: &Dim, bounds: &Bounds) -> Answer {
    let facts = relevant_facts(difference, bounds);
    let plain = !is_compound(difference) && difference.terms().iter().all(|(product, _)| product.len() == 1);
    if difference.atoms() > MAX_QUESTION || plain && facts.is_empty() {
        return Answer::Open;
    }
    let case = Case { goal: difference.clone(), facts, bounds: bounds.without_facts() }.shifted();
    let mut work = Work { cases: CASES, sums: SUMS };
    work.case(question, case).unwrap_or(Answer::Open)
}

/// Returns the facts that share a symbol with `dim`, directly or through other such facts, as dims that are at least 0.
fn relevant_facts(dim: &Dim, bounds: &Bounds) -> Vec<Dim> {
    let (zero, not_negative) = (&bounds.facts.zero, &bounds.facts.not_negative);
    if zero.is_empty() && not_negative.is_empty() {
        return Vec::new();
    }
    let mut symbols = NameSet::default();
    dim.collect_symbols(&mut symbols);
    let negated = zero.iter().map(|zero| -zero);
    let mut left: Vec<Dim> = zero.iter().cloned().chain(negated).chain(not_negative.iter().cloned()).collect();
    let mut relevant = Vec::new();
    loop {
        let (near, far): (Vec<Dim>, Vec<Dim>) = left.into_iter().partition(|fact| {
            let mut meets = false;
            fact.for_each_symbol(&mut |symbol| meets |= symbols.contains(&symbol));
            meets && !fact.is_error()
        });
        if near.is_empty() || relevant.len() >= MAX_FACTS {
            return relevant;
        }
        near.iter().for_each(|fact| fact.collect_symbols(&mut symbols));
        relevant.extend(near);
        relevant.truncate(MAX_FACTS);
        left = far;
    }
}

/// A case: a goal with the facts and bounds that hold in the case.
#[derive(Clone)]
struct Case {
    goal: Dim,
    /// Dims that are at least 0.
    facts: Vec<Dim>,
    bounds: Bounds,
}

impl Case {
    /// Substitutes `value` for `symbol`. `value` contains `symbol` itself, which now has the given range; for example,
    /// `n` becomes `4·n + 1`. `None` if the result is too large.
    fn put(&self, symbol: Name, value: &Dim, low: i64, high: Option<i64>) -> Option<Case> {
        let put = |dim: &Dim| dim.substitute(&|other| (other == symbol).then(|| value.clone()));
        let goal = put(&self.goal);
        if goal.is_error() {
            return None;
        }
        let facts = self.facts.iter().map(put).filter(|fact| !fact.is_error()).collect();
        let mut bounds = self.bounds.clone();
        bounds.set(symbol, low, high);
        Some(Case { goal, facts, bounds })
    }

    /// Replaces each symbol by itself plus its lower bound, so that every symbol is again ≥ 0 and products with the
    /// bounds are multiplied out.
    fn shifted(self) -> Case {
        let mut raised = Vec::new();
        let mut collect = |dim: &Dim| {
            dim.for_each_symbol(&mut |symbol| {
                if self.bounds.low(symbol) != 0 && !raised.contains(&symbol) {
                    raised.push(symbol);
                }
            });
        };
        collect(&self.goal);
        self.facts.iter().for_each(&mut collect);
        let mut case = self;
        for symbol in raised {
            let low = case.bounds.low(symbol);
            let Some(high) = case.bounds.high(symbol).map_or(Some(None), |high| high.checked_sub(low).map(Some)) else {
                continue;
            };
            let value = &Dim::symbol(symbol) + &Dim::constant(low);
            case = case.put(symbol, &value, 0, high).unwrap_or(case);
        }
        case
    }

    /// Returns the case in which `atom` equals `value` and all of `facts` are at least 0; `None` if that is impossible.
    fn assume(&self, atom: &Atom, value: &Dim, facts: &[Dim], work: &mut Work) -> Option<Case> {
        let goal = replace(&self.goal, atom, value);
        let mut case = Case {
            goal,
            facts: self.facts.iter().map(|fact| replace(fact, atom, value)).collect(),
            bounds: self.bounds.clone(),
        };
        case.facts.retain(|fact| !fact.is_error());
        for fact in facts {
            let impossible = &-fact - &Dim::constant(1);
            if work.proves(&impossible, &facts_around(&impossible, &case), &case.bounds) {
                return None;
            }
            case.facts.push(fact.clone());
        }
        Some(case)
    }
}

/// The remaining limits of a question.
struct Work {
    cases: usize,
    sums: usize,
}

impl Work {
    /// Decides one case; `None` if the case is impossible.
    fn case(&mut self, question: Question, case: Case) -> Option<Answer> {
        if case.goal.is_error() || self.cases == 0 {
            return Some(Answer::Open);
        }
        self.cases -= 1;
        let answer = self.without_cases(question, &case);
        if answer != Answer::Open || self.cases == 0 {
            return Some(answer);
        }
        match self.split(&case) {
            None => Some(Answer::Open),
            Some(cases) => self.all(question, cases),
        }
    }

    /// Returns the answer if it is the same in all possible cases; `None` if no case is possible.
    fn all(&mut self, question: Question, cases: Vec<Case>) -> Option<Answer> {
        let mut answer = None;
        for case in cases {
            match (answer, self.case(question, case)) {
                (_, None) => {}
                (None, Some(first)) => answer = Some(first),
                (Some(known), Some(other)) if known == other => {}
                _ => return Some(Answer::Open),
            }
            if answer == Some(Answer::Open) {
                return answer;
            }
        }
        answer
    }

    fn without_cases(&mut self, question: Question, case: &Case) -> Answer {
        let one = Dim::constant(1);
        let goal = expand_remainders(&case.goal);
        // Remainders stay expanded, because facts about divisions are added term by term.
        let (negated, above) = (add_scaled(&Dim::constant(0), &goal, -1), add_scaled(&goal, &one, -1));
        let below = add_scaled(&negated, &one, -1);
        let bounds = &case.bounds;
        let quick = match question {
            Question::Zero => zero(&goal, bounds),
            Question::NotNegative => at_least_by_range(&goal, bounds),
        };
        if quick != Answer::Open {
            return quick;
        }
        let facts = facts_around(&goal, case);
        match question {
            Question::Zero if self.proves(&above, &facts, bounds) || self.proves(&below, &facts, bounds) => {
                Answer::Refuted
            }
            Question::Zero if self.proves(&goal, &facts, bounds) && self.proves(&negated, &facts, bounds) => {
                Answer::Proved
            }
            Question::NotNegative if self.proves(&goal, &facts, bounds) => Answer::Proved,
            Question::NotNegative if self.proves(&below, &facts, bounds) => Answer::Refuted,
            Question::Zero | Question::NotNegative => Answer::Open,
        }
    }

    /// Whether the dim can be proved to be at least 0, by its range or as a sum of facts.
    fn proves(&mut self, dim: &Dim, facts: &[Dim], bounds: &Bounds) -> bool {
        match at_least_by_range(dim, bounds) {
            Answer::Open => !facts.is_empty() && self.sums_to(dim, 1, facts, bounds, DEPTH),
            answer => answer == Answer::Proved,
        }
    }

    /// Whether `dim` is a sum of multiples of facts and a rest that is at least 0. `dim` is `scale` times an integer,
    /// so it is at least 0 if it is greater than `-scale`.
    fn sums_to(&mut self, dim: &Dim, scale: i64, facts: &[Dim], bounds: &Bounds, depth: usize) -> bool {
        if dim.is_error() || self.sums == 0 {
            return false;
        }
        self.sums -= 1;
        if lower(dim, bounds).is_some_and(|low| low > -scale) {
            return true;
        }
        if depth == 0 {
            return false;
        }
        // Negative terms first: they are those that may keep the sum from having a lower bound.
        let mut terms: Vec<&(super::Product, i64)> = dim.terms().iter().collect();
        terms.sort_by_key(|(_, coefficient)| *coefficient > 0);
        for (product, coefficient) in terms {
            for fact in facts {
                let found = fact.terms().iter().find(|(other, _)| other == product).map(|(_, other)| *other);
                let Some(other) = found.filter(|other| (*other > 0) == (*coefficient > 0)) else { continue };
                let common = super::arithmetic::gcd(*coefficient, other).max(1);
                let (times, by) = ((other / common).saturating_abs(), (*coefficient / common).saturating_abs());
                let (dim, fact) = (multiply(dim, &Dim::constant(times)), multiply(fact, &Dim::constant(by)));
                let left = add_scaled(&dim, &fact, -1);
                let Some(scale) = scale.checked_mul(times) else { continue };
                if self.sums_to(&left, scale, facts, bounds, depth - 1) {
                    return true;
                }
            }
        }
        false
    }

    /// Splits a case into cases of which one must hold; `None` if there is nothing to distinguish.
    fn split(&mut self, case: &Case) -> Option<Vec<Case>> {
        let mut choices = Vec::new();
        let mut divisions = Vec::new();
        let dims = std::iter::once(&case.goal).chain(&case.facts);
        dims.for_each(|dim| {
            each_atom(dim, &mut |atom| match atom {
                Atom::Min(..) | Atom::Max(..) => choices.push(atom.clone()),
                Atom::Opaque(function, arguments) if is_choice(function, arguments) => choices.push(atom.clone()),
                Atom::FloorDiv(..) | Atom::FloorMod(..) => divisions.push(atom.clone()),
                _ => {}
            })
        });
        // The smallest atom first, since it contains no other.
        if let Some(atom) = choices.iter().min_by_key(|atom| atom.size()) {
            return self.choose(case, atom);
        }
        divisions.sort_by_key(Atom::size);
        divisions.dedup();
        divisions.iter().find_map(|atom| residues(case, atom))
    }

    fn choose(&mut self, case: &Case, atom: &Atom) -> Option<Vec<Case>> {
        let one = Dim::constant(1);
        let cases = match atom {
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let (larger, smaller) = (a - b, &(b - a) - &one);
                let (first, second) = if matches!(atom, Atom::Max(..)) { (a, b) } else { (b, a) };
                [self.assumed(case, atom, first, &[larger]), self.assumed(case, atom, second, &[smaller])]
            }
            Atom::Opaque(_, arguments) => {
                let [condition, then, otherwise] = &arguments[..] else { return None };
                let (holds, fails) = (consequences(condition, true), consequences(condition, false));
                [self.assumed(case, atom, then, &holds), self.assumed(case, atom, otherwise, &fails)]
            }
            _ => return None,
        };
        Some(cases.into_iter().flatten().collect())
    }

    fn assumed(&mut self, case: &Case, atom: &Atom, value: &Dim, facts: &[Dim]) -> Option<Case> {
        case.assume(atom, value, facts, self)
    }
}

/// Splits a case by the remainders of a symbol modulo the atom's constant divisor `c`: `n` is replaced by `c·n + r` for
/// each `r`.
fn residues(case: &Case, atom: &Atom) -> Option<Vec<Case>> {
    let (Atom::FloorDiv(a, by) | Atom::FloorMod(a, by)) = atom else { return None };
    let by = by.as_constant().filter(|by| (2..=MAX_DIVISOR).contains(by))?;
    let symbol = a.terms().iter().find_map(|(product, coefficient)| match &product[..] {
        [(Atom::Symbol(symbol), 1)] if coefficient % by != 0 => Some(*symbol),
        _ => None,
    });
    let symbol = symbol.or_else(|| {
        // A symbol inside a product or another division.
        let mut inner = None;
        a.for_each_symbol(&mut |symbol| inner = inner.or(Some(symbol)));
        inner
    })?;
    let (low, high) = (case.bounds.low(symbol), case.bounds.high(symbol));
    let mut cases = Vec::new();
    for rest in 0..by {
        let least = low.checked_sub(rest)?;
        let least = least.div_euclid(by) + i64::from(least.rem_euclid(by) != 0);
        let most = high.map(|high| (high.saturating_sub(rest)).div_euclid(by));
        if most.is_some_and(|most| most < least) {
            continue;
        }
        let value = &(&Dim::symbol(symbol) * &Dim::constant(by)) + &Dim::constant(rest);
        cases.push(case.put(symbol, &value, least, most)?);
    }
    Some(cases)
}

/// Whether an opaque call is a `T.if_then_else` whose condition is a comparison.
fn is_choice(function: &str, arguments: &[Dim]) -> bool {
    let [condition, _, _] = arguments else { return false };
    function == "T.if_then_else"
        && matches!(condition.as_atom(), Some(Atom::Opaque(function, operands))
            if operands.len() == 2 && matches!(function.as_str(), "<" | "<="))
}

/// Returns dims that are at least 0 if a condition holds, or, with `holds` false, if it fails.
pub(super) fn consequences(condition: &Dim, holds: bool) -> Vec<Dim> {
    let Some(Atom::Opaque(function, operands)) = condition.as_atom() else { return Vec::new() };
    let one = Dim::constant(1);
    match (function.as_str(), &operands[..], holds) {
        ("<", [a, b], true) => vec![&(b - a) - &one],
        ("<", [a, b], false) => vec![a - b],
        ("<=", [a, b], true) => vec![b - a],
        ("<=", [a, b], false) => vec![&(a - b) - &one],
        ("==", [a, b], true) | ("!=", [a, b], false) => vec![a - b, b - a],
        ("and", operands, true) | ("or", operands, false) => {
            operands.iter().flat_map(|operand| consequences(operand, holds)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the facts of a case, with facts about the divisions, minima and maxima in them and in `dim`.
fn facts_around(dim: &Dim, case: &Case) -> Vec<Dim> {
    let mut facts = case.facts.clone();
    facts_of_atoms(dim, &case.bounds, &mut facts);
    for fact in &case.facts {
        facts_of_atoms(fact, &case.bounds, &mut facts);
    }
    facts
}

/// Collects facts about every division, remainder, minimum and maximum in `dim`, as dims that are at least 0. For
/// example, `min(a, b)` gives `a - min(a, b)` and `b - min(a, b)`.
fn facts_of_atoms(dim: &Dim, bounds: &Bounds, into: &mut Vec<Dim>) {
    let one = Dim::constant(1);
    let mut found = Vec::new();
    each_atom(dim, &mut |atom| {
        let value = Dim::atom(atom.clone());
        match atom {
            Atom::Min(a, b) => found.extend([a - &value, b - &value]),
            Atom::Max(a, b) => found.extend([&value - a, &value - b]),
            Atom::FloorDiv(a, b) if is_natural(b, bounds) => {
                let whole = multiply(b, &value);
                let next = add_scaled(&add_scaled(&whole, b, 1), &one, -1);
                found.extend([add_scaled(a, &whole, -1), add_scaled(&next, a, -1)]);
                if b.as_constant().is_none() && is_natural(a, bounds) {
                    found.push(a - &value);
                }
            }
            Atom::FloorMod(a, b) if is_natural(b, bounds) => {
                let rest = add_scaled(a, &multiply(b, &a.floor_div(b)), -1);
                if is_natural(a, bounds) {
                    found.push(add_scaled(a, &value, -1));
                }
                let most = add_scaled(&add_scaled(b, &one, -1), &value, -1);
                found.extend([value.clone(), most, add_scaled(&value, &rest, -1), add_scaled(&rest, &value, -1)]);
            }
            _ => {}
        }
    });
    for fact in found {
        if !fact.is_error() && fact.as_constant().is_none() && !into.contains(&fact) && into.len() < MAX_FACTS {
            into.push(fact);
        }
    }
}

/// Whether a dim is at least 0. A divisor is never 0, so it is then at least 1.
fn is_natural(dim: &Dim, bounds: &Bounds) -> bool {
    lower(dim, bounds).is_some_and(|low| low >= 0)
}

/// Whether a dim contains an atom that is not a symbol.
fn is_compound(dim: &Dim) -> bool {
    dim.terms().iter().any(|(product, _)| product.iter().any(|(atom, _)| !matches!(atom, Atom::Symbol(_))))
}

/// Calls `visit` on every atom, nested ones first.
fn each_atom(dim: &Dim, visit: &mut dyn FnMut(&Atom)) {
    for (product, _) in dim.terms() {
        for (atom, _) in product {
            match atom {
                Atom::Symbol(_) => continue,
                Atom::FloorDiv(a, b) | Atom::FloorMod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    each_atom(a, visit);
                    each_atom(b, visit);
                }
                Atom::Opaque(_, arguments) => arguments.iter().for_each(|argument| each_atom(argument, visit)),
            }
            visit(atom);
        }
    }
}

/// Replaces an atom wherever it occurs in the dim.
fn replace(dim: &Dim, wanted: &Atom, value: &Dim) -> Dim {
    let mut result = Dim::constant(dim.constant_part());
    if dim.is_error() {
        return Dim::ERROR;
    }
    for (product, coefficient) in dim.terms() {
        let mut term = Dim::constant(*coefficient);
        for (atom, exponent) in product {
            let factor = if atom == wanted { value.clone() } else { replace_inside(atom, wanted, value) };
            for _ in 0..*exponent {
                term = &term * &factor;
            }
        }
        result = &result + &term;
    }
    result
}

fn replace_inside(atom: &Atom, wanted: &Atom, value: &Dim) -> Dim {
    let put = |dim: &Dim| replace(dim, wanted, value);
    match atom {
        Atom::Symbol(_) => Dim::atom(atom.clone()),
        Atom::FloorDiv(a, b) => put(a).floor_div(&put(b)),
        Atom::FloorMod(a, b) => put(a).floor_mod(&put(b)),
        Atom::Min(a, b) => put(a).minimum(&put(b)),
        Atom::Max(a, b) => put(a).maximum(&put(b)),
        Atom::Opaque(function, arguments) => Dim::opaque(*function, arguments.iter().map(put).collect()),
    }
}
