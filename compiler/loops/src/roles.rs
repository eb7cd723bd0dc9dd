//! *Contraction roles*: classifies the loops of a sum of products as batch, M, N or K, by whether they occur in the
//! address of the result and in each factor.
//!
//! For example, in `C[b, i, j] += A[b, i, k] * B[b, k, j]` the loop `b` is batch, `i` is M, `j` is N and `k` is K.
//! Convolutions and attention products have such roles as well. Requires loops whose extents do not depend on each
//! other. Guarantees that different values of the loops other than K write different elements.

use crate::accumulate::{Loop, Nest, Reduction, mentions};
use crate::affine::{Affine, split_linear};
use crate::scope::Scope;
use crate::simplify::simplify_in;
use rx_base::Dim;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::stmt::IterKind;

/// The reason why a rule does not apply to a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined(pub &'static str);

impl Declined {
    /// Declines with this reason if the condition holds.
    pub(crate) fn when(condition: bool, reason: &'static str) -> Result<(), Declined> {
        if condition { Err(Declined(reason)) } else { Ok(()) }
    }
}

/// The role of a loop in `C[…] += A[…] * B[…]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Occurs in `C`, `A` and `B`.
    Batch,
    /// Occurs in `C` and `A`: a row of `C`.
    M,
    /// Occurs in `C` and `B`: a column of `C`.
    N,
    /// Occurs in `A` and `B`: a reduction loop.
    K,
}

/// A sum of products with classified loops. The factors are any expressions of the sum's dtype: elements, casts of
/// elements, selections, or values computed from elements.
#[derive(Clone, Debug)]
pub struct Product {
    /// The sum.
    pub reduction: Reduction,
    /// The loops with their extents and roles, outermost first.
    pub loops: Vec<(VarId, Dim, Role)>,
    /// The factor with the M loops.
    pub left: Expr,
    /// The factor with the N loops.
    pub right: Expr,
    /// The address of the result.
    pub target: Affine,
}

/// A nest that is a sum of products, with the scope inside its loops.
#[derive(Debug)]
pub struct ProductNest {
    /// The simplified nest. A loop whose variable is divided by a constant that divides its extent is split into two
    /// loops.
    pub nest: Nest,
    /// The product.
    pub product: Product,
    /// The scope inside all loops of the nest.
    pub scope: Scope,
}

impl ProductNest {
    /// Matches the nest as a sum of products. Loops that are split get new variables of `func`.
    ///
    /// # Errors
    /// If it does not match, for example because it is no sum of products or because a loop has none of the roles.
    pub fn of(nest: &Nest, func: &mut PrimFunc) -> Result<ProductNest, Declined> {
        nest.update()?;
        let mut nest = nest.clone().with_split_loops(func);
        let mut scope = Scope::new(func);
        for inner in &nest.loops {
            scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
        }
        nest.body = simplify_in(&mut scope, func, &nest.body);
        nest.init = nest.init.map(|init| simplify_in(&mut scope, func, &init));
        let product = Product::of(&nest, &mut scope, func)?;
        Ok(ProductNest { nest, product, scope })
    }

    /// Returns the affine address of the access over the loops of the nest. Returns `None` if it is not affine, for
    /// example if an index contains a bounds check ([`Expr::Checked`]) or a load.
    pub fn affine(&mut self, func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Affine> {
        Affine::sum(&mut self.scope, func, &self.nest.loops, buffer, indices)
    }

    /// Returns the affine address of the access within one product of the batch, where the variables of batch loops
    /// count as constants. Returns `None` if it is not affine in the other loops, for example if an index contains a
    /// bounds check or a load.
    pub fn affine_in_batch(&mut self, func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Affine> {
        let is_batch = |var: VarId| self.product.loops.iter().any(|(one, _, role)| *one == var && *role == Role::Batch);
        let loops: Vec<Loop> = self.nest.loops.iter().filter(|one| !is_batch(one.var)).cloned().collect();
        Affine::sum(&mut self.scope, func, &loops, buffer, indices)
    }
}

impl Product {
    /// Matches the nest as a sum of products, in a scope inside its loops.
    pub(crate) fn of(nest: &Nest, scope: &mut Scope, func: &PrimFunc) -> Result<Product, Declined> {
        let reduction = nest.update()?;
        Declined::when(
            reduction.combine != BinaryOp::Add || nest.predicate.is_some(),
            "requires an unconditional sum; found another reduction or a predicate",
        )?;
        let Expr::Binary { op: BinaryOp::Mul, left, right } = &reduction.value else {
            return Err(Declined("requires a sum of products; found a sum of other values"));
        };
        let (left, right) = ((**left).clone(), (**right).clone());
        let of_loops = |var: &VarId| nest.loops.iter().any(|inner| inner.var == *var);
        if nest.loops.iter().any(|inner| mentions(&inner.extent, &of_loops)) {
            return Err(Declined("requires independent loop extents; found an extent that uses another loop"));
        }
        let target = Affine::sum(scope, func, &nest.loops, reduction.buffer, &reduction.indices)
            .ok_or(Declined("requires affine indices of the result; found others"))?;
        let mut loops = Vec::new();
        for inner in &nest.loops {
            let here = |expr: &Expr| mentions(expr, &|var| *var == inner.var);
            let role = role(target.strides.contains_key(&inner.var), here(&left), here(&right))?;
            let summed = role == Role::K;
            if summed && reduction.init.is_some() && inner.kind != IterKind::Reduce
                || !summed && inner.kind == IterKind::Reduce
            {
                return Err(Declined("requires the K loops as the block's reduction axes; found another loop kind"));
            }
            loops.push((inner.var, scope.dim(&inner.extent), role));
        }
        Declined::when(
            !is_injective(scope, &loops, &reduction.indices),
            "requires an element of the result for each iteration of its loops; found loops that may share one",
        )?;
        Declined::when(!loops.iter().any(|(_, _, role)| *role == Role::K), "requires a reduction loop; found none")?;
        Ok(Product { reduction, loops, left, right, target })
    }

    /// Exchanges the factors if an M loop is contiguous in the result, so that the contiguous loop is an N loop.
    pub fn orient(&mut self) {
        let contiguous =
            |(var, _, role): &(VarId, Dim, Role)| *role == Role::M && self.target.stride(*var).as_constant() == Some(1);
        if self.loops.iter().any(contiguous) {
            self.turn();
        }
    }

    /// Exchanges the factors, and the roles M and N. The result is the same.
    pub fn turn(&mut self) {
        std::mem::swap(&mut self.left, &mut self.right);
        for (_, _, role) in &mut self.loops {
            *role = match *role {
                Role::M => Role::N,
                Role::N => Role::M,
                other => other,
            };
        }
    }
}

fn role(in_result: bool, in_left: bool, in_right: bool) -> Result<Role, Declined> {
    match (in_result, in_left, in_right) {
        (true, true, true) => Ok(Role::Batch),
        (true, true, false) => Ok(Role::M),
        (true, false, true) => Ok(Role::N),
        (false, true, true) => Ok(Role::K),
        (true, false, false) => Err(Declined("requires each loop of the result in a factor; found one in neither")),
        (false, _, _) => Err(Declined("requires K loops in both factors; found one in a single factor or in neither")),
    }
}

/// Whether different values of the loops other than K are proved to name different elements. K loops must occur in no
/// index, each other loop in exactly one, and the loops of an index must be the digits of one mixed-radix number; a
/// single loop in an index may have any constant positive stride. For example, `[i * 4 + j, l]` with `j` of 4
/// iterations is injective, `[i + j, l]` is not.
pub(crate) fn is_injective(scope: &mut Scope, loops: &[(VarId, Dim, Role)], indices: &[Expr]) -> bool {
    let mut used: Vec<VarId> = Vec::new();
    for index in indices {
        let mut rest = scope.dim(index);
        let mut digits: Vec<(Dim, &Dim)> = Vec::new();
        for (var, extent, role) in loops {
            let Some(scale) = split_linear(&mut rest, scope.symbol(*var)) else { return false };
            if scale.as_constant() != Some(0) {
                if *role == Role::K || used.contains(var) {
                    return false;
                }
                used.push(*var);
                digits.push((scale, extent));
            }
        }
        if digits.len() == 1 {
            // A single loop may have any positive constant stride.
            if digits[0].0.as_constant().is_none_or(|scale| scale <= 0) {
                return false;
            }
            continue;
        }
        let mut place = Dim::constant(1);
        while !digits.is_empty() {
            let Some(at) = digits.iter().position(|(scale, _)| *scale == place) else { return false };
            let (_, extent) = digits.swap_remove(at);
            place = &place * extent;
        }
    }
    used.len() == loops.iter().filter(|(_, _, role)| *role != Role::K).count()
}

#[cfg(test)]
mod tests {
    use super::{Role, is_injective};
    use crate::scope::Scope;
    use rx_base::DType;
    use rx_base::name::name;
    use rx_tir::{Expr, PrimFunc};

    #[test]
    fn loop_that_no_index_or_two_indices_use_shares_elements() {
        let mut func = PrimFunc::new(name("f"));
        let vars = ["i", "j", "k"].map(|text| func.add_var(name(text), DType::INT64));
        let [i, j, k] = vars.map(|var| func.var_expr(var));
        let mut scope = Scope::new(&func);
        let roles = [Role::Batch, Role::Batch, Role::K];
        let loops = [0, 1, 2].map(|at| {
            scope.enter_loop(vars[at], DType::INT64, &Expr::int(0), &Expr::int(4));
            (vars[at], scope.dim(&Expr::int(4)), roles[at])
        });
        let mut check = |indices: &[Expr]| is_injective(&mut scope, &loops, indices);
        assert!(check(&[i.clone(), j.clone()]));
        assert!(check(&[i.clone() * Expr::int(4) + j.clone()]));
        assert!(!check(&[i.clone() + j.clone()]));
        assert!(!check(&[i.clone(), i.clone()]));
        assert!(!check(&[i, k]));
    }
}
