//! Dependence test between loop nests, for running them in any order or at the same time.

use crate::accumulate::Nest;
use crate::scope::Scope;
use rx_base::Dim;
use rx_tir::{BufferId, Expr, PrimFunc, Stmt};

/// The buffers that a nest reads, and the elements that it writes.
struct Accesses<'n> {
    reads: Vec<BufferId>,
    writes: Vec<(BufferId, &'n [Expr])>,
}

impl Accesses<'_> {
    fn of(nest: &Nest) -> Accesses<'_> {
        let mut accesses = Accesses { reads: Vec::new(), writes: Vec::new() };
        let reads = |expr: &Expr, reads: &mut Vec<BufferId>| {
            expr.walk(&mut |part| {
                if let Expr::Load { buffer, .. } = part {
                    reads.push(*buffer);
                }
            });
        };
        for stmt in nest.init.iter().chain([&nest.body]) {
            stmt.walk(&mut |part| {
                if let Stmt::Store { buffer, indices, .. } = part {
                    accesses.writes.push((*buffer, indices));
                }
                part.expressions().into_iter().for_each(|expr| reads(expr, &mut accesses.reads));
            });
        }
        let around = nest.predicate.iter().chain(nest.loops.iter().map(|inner| &inner.extent));
        around.for_each(|expr| reads(expr, &mut accesses.reads));
        accesses
    }

    fn reads_what(&self, other: &Accesses<'_>) -> bool {
        self.reads.iter().any(|read| other.writes.iter().any(|(written, _)| read == written))
    }
}

/// Whether the nests are proved independent: neither reads a buffer that the other writes, and no element is written by
/// both.
pub fn are_independent(a: &Nest, b: &Nest, func: &PrimFunc) -> bool {
    let (of_a, of_b) = (Accesses::of(a), Accesses::of(b));
    if of_a.reads_what(&of_b) || of_b.reads_what(&of_a) {
        return false;
    }
    let shares_loop = || a.loops.iter().any(|one| b.loops.iter().any(|other| one.var == other.var));
    let mut scope: Option<Scope> = None;
    of_a.writes.iter().all(|(buffer, at)| {
        of_b.writes.iter().filter(|(other, _)| other == buffer).all(|(_, other)| {
            if shares_loop() {
                return false;
            }
            let scope = scope.get_or_insert_with(|| within(&[a, b], func));
            std::iter::zip(*at, *other).any(|(one, other)| are_apart(scope, one, other))
        })
    })
}

/// Returns a scope inside all loops of the nests.
fn within(nests: &[&Nest], func: &PrimFunc) -> Scope {
    let mut scope = Scope::new(func);
    for inner in nests.iter().flat_map(|nest| &nest.loops) {
        scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
    }
    scope
}

/// Whether `one < other` is proved for all values of the loops, or `other < one` is. For example, `i` is less than
/// `j + 4` if the loop `i` has 4 iterations.
fn are_apart(scope: &mut Scope, one: &Expr, other: &Expr) -> bool {
    let distance = &scope.dim(other) - &scope.dim(one);
    let step = Dim::constant(1);
    scope.not_negative(&(&distance - &step)) || scope.not_negative(&(&(-&distance) - &step))
}

#[cfg(test)]
mod tests {
    use super::are_independent;
    use crate::Nest;
    use rx_base::name::name;
    use rx_base::{DType, Dim};
    use rx_tir::{Expr, KernelBuilder, PrimFunc, Stmt};

    /// Builds nests that each write `width` columns of `out`, starting at `first`, and a last nest that reads all of
    /// `out`.
    fn pieces(of: &[(&Dim, &Dim)]) -> (PrimFunc, Vec<Nest>) {
        let mut builder = KernelBuilder::new(name("pieces"));
        let rows = Dim::constant(4);
        let wide = [rows.clone(), Dim::symbol(name("wide"))];
        let x = builder.param("x", &wide, DType::FLOAT32);
        let out = builder.param("out", &wide, DType::FLOAT32);
        let last = builder.param("last", &wide, DType::FLOAT32);
        for (width, first) in of {
            let (width, first) = (builder.dim(width), builder.dim(first));
            builder.map(out, &[Expr::int(4), width], |builder, at| {
                (vec![at[0].clone(), at[1].clone() + first], builder.load(x, at))
            });
        }
        builder.compute(last, |builder, at| builder.load(out, at));
        let func = builder.finish();
        let Stmt::Seq(all) = &func.body else { panic!("several statements") };
        let nests = all.iter().map(|stmt| Nest::of(stmt, &func).expect("a nest")).collect();
        (func, nests)
    }

    #[test]
    fn disjoint_slices_of_a_result_are_independent() {
        let (n, m, zero) = (Dim::symbol(name("n")), Dim::symbol(name("m")), Dim::constant(0));
        let apart = |pieces_of: &[(&Dim, &Dim)], a: usize, b: usize| {
            let (func, nests) = pieces(pieces_of);
            are_independent(&nests[a], &nests[b], &func)
        };
        let (three, five) = (Dim::constant(3), Dim::constant(5));
        assert!(apart(&[(&three, &zero), (&five, &three)], 0, 1));
        assert!(apart(&[(&three, &zero), (&five, &three)], 1, 0), "in either order");
        assert!(apart(&[(&n, &zero), (&m, &n)], 0, 1), "whatever n is");
        assert!(!apart(&[(&n, &zero), (&m, &three)], 0, 1), "n may be more than 3");
        assert!(!apart(&[(&five, &zero), (&five, &three)], 0, 1));
        assert!(!apart(&[(&three, &zero), (&five, &three)], 0, 2), "the last reads what the first writes");
        assert!(!apart(&[(&three, &zero), (&five, &three)], 2, 1));
    }
}
