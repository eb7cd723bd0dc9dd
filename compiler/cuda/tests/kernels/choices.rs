//! Reports which rule takes which statements: tables over the operators' cases and over the kernels of models.

use rx_cuda::Choice;
use rx_cuda::rules::Target;
use rx_tir::PrimFunc;
use std::collections::BTreeMap;

/// The number of kernels of each rule, and for statements that the fallback took, how often each reason of another rule
/// for declining is the most relevant one.
#[derive(Default)]
struct Table {
    kernels: BTreeMap<&'static str, usize>,
    declined: BTreeMap<String, usize>,
}

impl Table {
    fn add(&mut self, choices: &[Choice]) {
        for choice in choices {
            *self.kernels.entry(choice.rule).or_default() += choice.kernels.len();
            if choice.rule == "fallback" {
                // Usually the reason of the rule that was tried last. If that rule only declines because the block has
                // an init, the reason of `rows` or of the first other rule says more.
                let reason = choice.declined.last().map_or(String::new(), |(rule, why)| format!("{rule}: {why}"));
                let fits =
                    |(rule, why): &&(&str, String)| *rule != "threads" && why != "requires a reduction; found none";
                let of_rows = choice
                    .declined
                    .iter()
                    .find(|(rule, why)| *rule == "rows" && why != "requires a reduction; found none");
                let reason = match of_rows.or(choice.declined.iter().find(fits)) {
                    Some((rule, why)) if reason.contains("requires a block without an init") => {
                        format!("{rule}: {why}")
                    }
                    _ => reason,
                };
                *self.declined.entry(reason).or_default() += 1;
            }
        }
    }

    fn tell(&self, of: &str) {
        println!("{of}: kernels by rule {:?}", self.kernels);
        let mut declined: Vec<_> = self.declined.iter().map(|(why, count)| (*count, why)).collect();
        declined.sort_by(|a, b| b.cmp(a));
        declined.iter().for_each(|(count, why)| println!("{count:5}  {why}"));
    }
}

#[test]
fn most_kernels_of_operators_have_a_dedicated_rule() {
    let mut all = Table::default();
    for (family, cases) in crate::operators::families() {
        let mut table = Table::default();
        let source = crate::source(&cases);
        table.add(&source.choices);
        all.add(&source.choices);
        table.tell(&family);
    }
    all.tell("all operators");
    let count = |rule: &str| all.kernels.get(rule).copied().unwrap_or(0);
    let total: usize = all.kernels.values().sum();
    assert!(count("fallback") * 2 < total, "{} of {total} kernels are the fallback's", count("fallback"));
    for rule in ["rows", "elementwise"] {
        assert!(count(rule) > 50, "{rule} made {} kernels", count(rule));
    }
}

/// Prints the table of the prim_funcs of models (`models/stages` and `models/mlc`).
#[test]
fn kernels_of_models_by_rule() {
    let Some(funcs) = crate::corpus::of_models() else { return };
    let mut table = Table::default();
    for part in funcs.chunks(64) {
        let funcs: Vec<&PrimFunc> = part.iter().collect();
        let source = rx_cuda::module(&funcs, &Target::default()).unwrap_or_else(|error| panic!("{error}"));
        table.add(&source.choices);
    }
    table.tell("models");
}
