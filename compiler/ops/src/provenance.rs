//! Provenance: finds the arguments that determine a dim, rank or dtype of a call's result.
//!
//! No operator needs a description of its dependencies, since they are derived from its struct-info rule, a pure
//! function of the arguments. The rule is run again with one dim of one argument replaced by a fresh symbol. If the
//! symbol occurs in the result, then the result depends on that dim, and the result's expression is the formula. Dims
//! that must stay equal (such as the axes that `add` matches) are replaced together. A value that must be constant is
//! changed to a nearby constant.
//!
//! ```text
//! R.concat((x, y), axis=1), x: [2, 64], y: [2, 32]: dim 1 of the result?
//! run with x: [2, ⟨0⟩]      result [2, ⟨0⟩ + 32]    depends on x's dim 1
//! run with both replaced    result [2, ⟨0⟩ + ⟨1⟩]   the formula: 64 + 32 = 96
//! ```

mod perturbation;

use crate::call::{Arg, CallInfo};
use crate::schema::Schema;
use rx_base::name::name;
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim, Name};
use rx_ir::{Argument, StructInfo};

/// The maximum number of rule runs per query. A `concat` of thousands of tensors has thousands of dims to try.
const MAX_RUNS: usize = 4096;

/// The maximum number of pairs tried for one dim that cannot change alone.
const MAX_PAIRS: usize = 64;

/// The part of a type that a query is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A dim of a tensor or shape.
    Dim(usize),
    /// The number of dims of a tensor or shape.
    Rank,
    /// The dtype of a tensor or scalar.
    Dtype,
    /// The value of a scalar.
    Value,
}

/// A part of a type that may be nested in tuples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Facet {
    /// The indices of the tuple fields that lead to the type, outermost first.
    pub path: Vec<usize>,
    /// The part of the field's type.
    pub part: Part,
}

/// The value of a [`Facet`] for a specific type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A dim or the value of a scalar.
    Integer(Dim),
    /// A number of dims.
    Rank(usize),
    /// A dtype.
    Dtype(DType),
}

impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fact::Integer(dim) => dim.fmt(f),
            Fact::Rank(rank) => rank.fmt(f),
            Fact::Dtype(dtype) => dtype.fmt(f),
        }
    }
}

/// A location in the arguments of a call: a facet of an operand or of a type, or an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A facet of an operand. For a variadic parameter, the path begins with the operand's index.
    Operand {
        /// The parameter's index in the schema.
        param: usize,
        /// The part of the operand's type.
        facet: Facet,
    },
    /// An attribute.
    Attribute {
        /// The parameter's index in the schema.
        param: usize,
        /// The index of the element, if the attribute is a list.
        element: Option<usize>,
    },
    /// A facet of a struct info that is passed as an argument (`out_ty`). The path begins with the type's index.
    Type {
        /// The parameter's index in the schema.
        param: usize,
        /// The part of the type.
        facet: Facet,
    },
}

impl Input {
    /// Returns the index of the parameter that receives this argument.
    pub fn param(&self) -> usize {
        match self {
            Input::Operand { param, .. } | Input::Attribute { param, .. } | Input::Type { param, .. } => *param,
        }
    }
}

/// A fact of an argument on which the result depends.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its location in the arguments.
    pub input: Input,
    /// Its value.
    pub fact: Fact,
    /// Other locations whose facts must be equal to it.
    pub equals: Vec<Input>,
}

/// The sources of one part of a call's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The value of the part.
    pub fact: Fact,
    /// The facts on which it depends: operands and types first, then attributes.
    pub sources: Vec<Source>,
    /// Whether the part equals its first source.
    pub unchanged: bool,
    /// The formula with the values filled in: `64 + 32 = 96`.
    pub formula: Option<String>,
}

/// Finds the sources of `target`, a part of the result of a call of `schema`. Returns `None` if the struct-info rule
/// does not determine the part.
pub fn provenance(
    schema: &'static Schema,
    arguments: &[Argument],
    bounds: &Bounds,
    target: &Facet,
) -> Option<Provenance> {
    let now = arguments.to_vec();
    let mut probe = Probe { schema, original: arguments, now, bounds, target, value: None, runs: MAX_RUNS };
    let fact = probe.run()?;
    probe.value = Some(fact.clone());
    let perturbations = perturbation::perturbations(schema, arguments, &fact);
    let (attributes, operands): (Vec<_>, Vec<_>) =
        perturbations.into_iter().partition(|(input, _)| matches!(input, Input::Attribute { .. }));
    let mut sources = probe.symbolic(&operands, &fact);
    if sources.is_empty() {
        sources = probe.moved(&operands, &fact);
    }
    let expression = probe.expression(&sources);
    let mut unchanged = match (&fact, &sources[..]) {
        (Fact::Integer(_), [_]) => expression.as_ref() == Some(&Dim::symbol(placeholder(0))),
        (_, [first, ..]) => first.fact == fact,
        _ => false,
    };
    if !unchanged {
        let decisive = probe.moved(&attributes, &fact);
        unchanged = sources.is_empty() && decisive.len() == 1 && decisive.iter().all(|source| source.fact == fact);
        sources.extend(decisive);
    }
    let reported = || Some(reported(schema, arguments, bounds, target)?.1);
    let formula = match unchanged {
        true => None,
        false => reported().or_else(|| written(&expression?, &sources, &fact)).or_else(|| rank_change(&sources, &fact)),
    };
    Some(Provenance { fact, sources, unchanged, formula })
}

/// Returns the formula of [`provenance`] in one run of the rule, without a search for the sources. Returns `None` if the
/// rule itself reports no formula (see `CallInfo::derive`), or if an argument has the same value: the part may then be
/// that argument, unchanged.
pub fn reported_formula(
    schema: &'static Schema,
    arguments: &[Argument],
    bounds: &Bounds,
    target: &Facet,
) -> Option<String> {
    let (fact, formula) = reported(schema, arguments, bounds, target)?;
    let mut same =
        perturbation::perturbations(schema, arguments, &fact).into_iter().filter(|(_, other)| *other == fact);
    same.next().is_none().then_some(formula)
}

/// Returns the value of `target` and the formula that the rule itself reports for it.
fn reported(
    schema: &'static Schema,
    arguments: &[Argument],
    bounds: &Bounds,
    target: &Facet,
) -> Option<(Fact, String)> {
    let Facet { path, part: Part::Dim(axis) } = target else { return None };
    let args: Vec<Arg<'_>> = arguments.iter().map(Arg::from).collect();
    let call = CallInfo::explaining(schema, &args, bounds);
    let ty = (schema.infer)(&call).ok()?;
    let mut derived = call.derivations.as_ref()?.take().into_iter();
    let derivation = derived.find(|derived| derived.is_of(path, *axis))?;
    Some((target.of(&ty)?, derivation.formula))
}

/// Returns the symbol's name that replaces source `at`: `⟨0⟩`, which no program can contain.
fn placeholder(at: usize) -> Name {
    name(&format!("\u{27e8}{at}\u{27e9}"))
}

/// Prints an expression with the placeholders replaced by the sources' values, followed by the result: `64 + 32 = 96`.
fn written(expression: &Dim, sources: &[Source], fact: &Fact) -> Option<String> {
    expression.as_constant().is_none().then_some(())?;
    let mut text = expression.to_string();
    for (at, source) in sources.iter().enumerate() {
        let value = match &source.fact {
            Fact::Integer(dim) if dim.as_constant().is_none() && dim.as_symbol().is_none() => format!("({dim})"),
            fact => fact.to_string(),
        };
        text = text.replace(placeholder(at).as_str(), &value);
    }
    let fact = fact.to_string();
    Some(if text == fact { text } else { format!("{text} = {fact}") })
}

/// Prints the difference between a rank and the single rank that it depends on: `3 + 1 = 4`.
fn rank_change(sources: &[Source], fact: &Fact) -> Option<String> {
    let mut ranks = sources.iter().filter_map(|source| match source.fact {
        Fact::Rank(rank) => Some(rank),
        _ => None,
    });
    let (Fact::Rank(rank), Some(of), None) = (fact, ranks.next(), ranks.next()) else { return None };
    match rank.checked_sub(of) {
        Some(more) => Some(format!("{of} + {more} = {rank}")),
        None => Some(format!("{of} - {} = {rank}", of - rank)),
    }
}

/// Runs a struct-info rule on modified arguments.
struct Probe<'a> {
    schema: &'static Schema,
    original: &'a [Argument],
    now: Vec<Argument>,
    bounds: &'a Bounds,
    target: &'a Facet,
    /// The value of the target for the original arguments.
    value: Option<Fact>,
    /// The remaining number of runs.
    runs: usize,
}

type Perturbation = (Input, Fact);

impl Probe<'_> {
    /// Runs the rule on the current arguments and returns the value of the target.
    fn run(&mut self) -> Option<Fact> {
        self.runs = self.runs.checked_sub(1)?;
        let args: Vec<Arg<'_>> = self.now.iter().map(Arg::from).collect();
        let call = CallInfo::trial(self.schema, &args, self.bounds);
        let ty = (self.schema.infer)(&call).ok()?;
        self.target.of(&ty)
    }

    fn set(&mut self, input: &Input, fact: &Fact) {
        perturbation::write(&mut self.now, input, fact);
    }

    fn reset(&mut self, (input, fact): &Perturbation) {
        match fact {
            // A tensor whose rank was changed has lost its dims, so the original argument is restored as a whole.
            Fact::Rank(_) => {
                let at = input.param();
                if let (Some(slot), Some(was)) = (self.now.get_mut(at), self.original.get(at)) {
                    slot.clone_from(was);
                }
            }
            _ => self.set(input, fact),
        }
    }

    /// Sets all `perturbations` to a marker value for `fact` and runs the rule. Returns the value of the target and
    /// whether the marker occurs in it.
    fn marked(&mut self, perturbations: &[&Perturbation], fact: &Fact) -> (Option<Fact>, bool) {
        // A marker that equals the original value would seem to come from each operand: float16 from `x` in
        // `astype(x, "float16")`.
        for mark in marks(fact).into_iter().filter(|mark| self.value.as_ref() != Some(mark)).collect::<Vec<_>>() {
            perturbations.iter().for_each(|(input, _)| self.set(input, &mark));
            let result = self.run();
            perturbations.iter().for_each(|perturbation| self.reset(perturbation));
            if let Some(result) = result {
                let shows = shows(&result, &mark);
                return (Some(result), shows);
            }
        }
        (None, false)
    }

    /// Finds the operands' facts that occur in the target when they are replaced by a marker, either alone or together
    /// with facts that must be equal.
    fn symbolic(&mut self, perturbations: &[Perturbation], target: &Fact) -> Vec<Source> {
        let mut sources = Vec::new();
        let mut stuck: Vec<&Perturbation> = Vec::new();
        for perturbation in perturbations {
            match self.marked(&[perturbation], &perturbation.1) {
                (Some(_), true) => {
                    sources.push(Source { input: perturbation.0.clone(), fact: perturbation.1.clone(), equals: vec![] })
                }
                (Some(result), false) if result == *target => {}
                _ => stuck.push(perturbation),
            }
        }
        while let Some(first) = stuck.first().copied() {
            let (group, shows) = self.group_of(first, &stuck);
            stuck.retain(|perturbation| !group.contains(perturbation));
            if let (true, [main, others @ ..]) = (shows, &group[..]) {
                let equals = others.iter().map(|(input, _)| input.clone()).collect();
                sources.push(Source { input: main.0.clone(), fact: main.1.clone(), equals });
            }
        }
        sources.sort_by_key(|source| source.input.param());
        sources
    }

    /// Finds the perturbations that can only change together with `first`. Returns them and whether their change
    /// affects the target.
    fn group_of<'k>(&mut self, first: &'k Perturbation, stuck: &[&'k Perturbation]) -> (Vec<&'k Perturbation>, bool) {
        let equal: Vec<&Perturbation> =
            stuck.iter().copied().filter(|other| *other != first && other.1 == first.1).collect();
        for other in equal.iter().take(MAX_PAIRS) {
            if let (Some(_), shows) = self.marked(&[first, other], &first.1) {
                return (vec![first, other], shows);
            }
        }
        let same_axis = equal.iter().copied().filter(|other| part_of(&other.0) == part_of(&first.0));
        let same_axis: Vec<&Perturbation> = std::iter::once(first).chain(same_axis).collect();
        let all: Vec<&Perturbation> = std::iter::once(first).chain(equal.iter().copied()).collect();
        for group in [same_axis, all] {
            if let (true, (Some(_), shows)) = (group.len() > 2, self.marked(&group, &first.1)) {
                return (if shows { self.least(group, &first.1) } else { group }, shows);
            }
        }
        (vec![first], false)
    }

    /// Removes from the group the perturbations that need not change for the marker to occur in the target.
    fn least<'k>(&mut self, mut group: Vec<&'k Perturbation>, fact: &Fact) -> Vec<&'k Perturbation> {
        let mut at = group.len();
        while at > 1 && group.len() > 1 {
            at -= 1;
            let without: Vec<&Perturbation> =
                group.iter().copied().enumerate().filter(|(i, _)| *i != at).map(|(_, k)| k).collect();
            if self.marked(&without, fact).1 {
                group = without;
            }
        }
        group
    }

    /// Finds the facts for which a change to a nearby value changes the target.
    fn moved(&mut self, perturbations: &[Perturbation], target: &Fact) -> Vec<Source> {
        let mut sources = Vec::new();
        for perturbation in perturbations {
            let moves = neighbours(&perturbation.1);
            let changes = moves.into_iter().any(|fact| {
                self.set(&perturbation.0, &fact);
                let result = self.run();
                self.reset(perturbation);
                result.is_some_and(|result| result != *target)
            });
            if changes {
                sources.push(Source { input: perturbation.0.clone(), fact: perturbation.1.clone(), equals: vec![] });
            }
        }
        sources
    }

    /// Returns the target as an expression over the placeholders of its sources.
    fn expression(&mut self, sources: &[Source]) -> Option<Dim> {
        let perturbations: Vec<Vec<Input>> = sources
            .iter()
            .map(|source| std::iter::once(&source.input).chain(&source.equals).cloned().collect())
            .collect();
        for (at, group) in perturbations.iter().enumerate() {
            let mark = Fact::Integer(Dim::symbol(placeholder(at)));
            group.iter().for_each(|input| self.set(input, &mark));
        }
        self.runs = self.runs.max(1);
        let result = self.run();
        for (source, group) in sources.iter().zip(&perturbations) {
            group.iter().for_each(|input| self.reset(&(input.clone(), source.fact.clone())));
        }
        match result? {
            Fact::Integer(dim) => Some(dim),
            _ => None,
        }
    }
}

/// Returns the part of the type (such as the axis) that an input refers to; `None` for an attribute.
fn part_of(input: &Input) -> Option<Part> {
    match input {
        Input::Operand { facet, .. } | Input::Type { facet, .. } => Some(facet.part),
        Input::Attribute { .. } => None,
    }
}

/// Returns marker values that reveal where a fact flows: for an integer a fresh symbol, for a rank one dim more, for a
/// dtype another dtype.
fn marks(fact: &Fact) -> Vec<Fact> {
    match fact {
        Fact::Integer(_) => vec![Fact::Integer(Dim::symbol(placeholder(0)))],
        Fact::Rank(rank) => rank.checked_add(1).map(Fact::Rank).into_iter().collect(),
        Fact::Dtype(dtype) => {
            let others =
                [DType::FLOAT16, DType::FLOAT32, DType::FLOAT64, DType::INT32, DType::INT64, DType::INT8, DType::BOOL];
            others.into_iter().filter(|other| other != dtype).map(Fact::Dtype).collect()
        }
    }
}

fn shows(result: &Fact, mark: &Fact) -> bool {
    match (result, mark) {
        (Fact::Integer(result), Fact::Integer(mark)) => {
            let mut found = false;
            result.for_each_symbol(&mut |symbol| found |= mark.as_symbol() == Some(symbol));
            found
        }
        (result, mark) => result == mark,
    }
}

/// Returns values near a fact: for an integer `n`, `n + 1`, `n - 1`, `2 * n` and 1.
fn neighbours(fact: &Fact) -> Vec<Fact> {
    match fact {
        Fact::Integer(dim) => match dim.as_constant() {
            Some(value) => [value.checked_add(1), value.checked_sub(1), value.checked_mul(2), Some(1)]
                .into_iter()
                .flatten()
                .filter(|other| *other != value)
                .map(|value| Fact::Integer(value.into()))
                .collect(),
            None => marks(fact),
        },
        Fact::Rank(_) | Fact::Dtype(_) => marks(fact),
    }
}

/// Returns the dim of a tensor or shape type at an axis, if known.
pub(crate) fn dim_of(ty: &StructInfo, axis: usize) -> Option<&Dim> {
    match ty {
        StructInfo::Shape(shape) => shape.dims()?.get(axis),
        ty => ty.as_tensor()?.shape.dims()?.get(axis),
    }
}

#[cfg(test)]
mod tests;
