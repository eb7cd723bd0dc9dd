//! What the loops of a sum of products are for, from where they occur in its accesses.

use crate::accumulate::{Loop, Nest, Reduction, mentions};
use crate::affine::{Affine, split_linear};
use crate::scope::Scope;
use crate::simplify::simplify_in;
use rx_base::Dim;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::stmt::IterKind;

/// Why a nest is not made into something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined(pub &'static str);

impl Declined {
    /// Declines for this reason where a condition holds.
    pub(crate) fn when(condition: bool, reason: &'static str) -> Result<(), Declined> {
        if condition { Err(Declined(reason)) } else { Ok(()) }
    }
}

/// What a loop of `C[…] += A[…] * B[…]` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// In `C`, `A` and `B`.
    Batch,
    /// In `C` and `A`: a row of `C`.
    M,
    /// In `C` and `B`: a column of `C`.
    N,
    /// In `A` and `B`: summed over.
    K,
}

/// A sum of products, its loops by role. The factors are any expressions of the sum's dtype: elements, casts of them, choices,
/// what is computed from elements.
#[derive(Clone, Debug)]
pub struct Product {
    /// The sum.
    pub reduction: Reduction,
    /// The loops with their extents, outermost first.
    pub loops: Vec<(VarId, Dim, Role)>,
    /// The factor whose free loops are M.
    pub left: Expr,
    /// The factor whose free loops are N.
    pub right: Expr,
    /// Where the sum stands.
    pub target: Affine,
}

/// A nest that is a sum of products, and what is known inside its loops.
#[derive(Debug)]
pub struct ProductNest {
    /// The nest, simplified; a loop that is used by its digits is several loops.
    pub nest: Nest,
    /// The product it is.
    pub product: Product,
    /// Has the nest's loops entered.
    pub scope: Scope,
}

impl ProductNest {
    /// The sum of products a nest is. Loops that are cut into digits get new variables of `func`.
    ///
    /// # Errors
    /// Where it is none.
    pub fn of(nest: &Nest, func: &mut PrimFunc) -> Result<ProductNest, Declined> {
        nest.update()?;
        let mut nest = nest.clone().with_digits(func);
        let mut scope = Scope::new(func);
        for inner in &nest.loops {
            scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
        }
        nest.body = simplify_in(&mut scope, func, &nest.body);
        nest.init = nest.init.map(|init| simplify_in(&mut scope, func, &init));
        let product = Product::of(&nest, &mut scope, func)?;
        Ok(ProductNest { nest, product, scope })
    }

    /// The access as a sum over the loops; `None` where it is none, or an index is checked or read from memory.
    pub fn affine(&mut self, func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Affine> {
        Affine::sum(&mut self.scope, func, &self.nest.loops, buffer, indices)
    }

    /// The same of each product of a batch: what depends on the batch, in whichever way, is part of where it begins.
    pub fn affine_in_batch(&mut self, func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Affine> {
        let is_batch = |var: VarId| self.product.loops.iter().any(|(one, _, role)| *one == var && *role == Role::Batch);
        let loops: Vec<Loop> = self.nest.loops.iter().filter(|one| !is_batch(one.var)).cloned().collect();
        Affine::sum(&mut self.scope, func, &loops, buffer, indices)
    }
}

impl Product {
    /// The sum of products a nest is, in `scope`, which has its loops entered.
    pub(crate) fn of(nest: &Nest, scope: &mut Scope, func: &PrimFunc) -> Result<Product, Declined> {
        let reduction = nest.update()?;
        Declined::when(reduction.combine != BinaryOp::Add || nest.predicate.is_some(), "no unconditional sum")?;
        let Expr::Binary { op: BinaryOp::Mul, left, right } = &reduction.value else {
            return Err(Declined("what is summed is no product"));
        };
        let (left, right) = ((**left).clone(), (**right).clone());
        let of_loops = |var: &VarId| nest.loops.iter().any(|inner| inner.var == *var);
        if nest.loops.iter().any(|inner| mentions(&inner.extent, &of_loops)) {
            return Err(Declined("a loop's extent depends on another loop"));
        }
        let target = Affine::sum(scope, func, &nest.loops, reduction.buffer, &reduction.indices)
            .ok_or(Declined("the result's elements are not evenly spaced"))?;
        let mut loops = Vec::new();
        for inner in &nest.loops {
            let here = |expr: &Expr| mentions(expr, &|var| *var == inner.var);
            let role = role(target.strides.contains_key(&inner.var), here(&left), here(&right))?;
            let summed = role == Role::K;
            if summed && reduction.init.is_some() && inner.kind != IterKind::Reduce
                || !summed && inner.kind == IterKind::Reduce
            {
                return Err(Declined("a loop is not for what its block says"));
            }
            loops.push((inner.var, scope.dim(&inner.extent), role));
        }
        Declined::when(!is_injective(scope, &loops, &reduction.indices), "different loops may write one element")?;
        Declined::when(!loops.iter().any(|(_, _, role)| *role == Role::K), "nothing is summed over")?;
        Ok(Product { reduction, loops, left, right, target })
    }

    /// Makes the factor of the loop that is contiguous in the result the right one.
    pub fn orient(&mut self) {
        let contiguous =
            |(var, _, role): &(VarId, Dim, Role)| *role == Role::M && self.target.stride(*var).as_constant() == Some(1);
        if self.loops.iter().any(contiguous) {
            self.turn();
        }
    }

    /// Makes the left factor the right one: the result is the same.
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
        (true, false, false) => Err(Declined("the result is repeated along a loop")),
        (false, _, _) => Err(Declined("one factor alone is summed over a loop")),
    }
}

/// Whether different values of the loops in the indices name different elements: each such loop stands in one index, and
/// the loops of an index are the digits of a number.
pub(crate) fn is_injective(scope: &mut Scope, loops: &[(VarId, Dim, Role)], indices: &[Expr]) -> bool {
    let mut used = 0;
    for index in indices {
        let mut rest = scope.dim(index);
        let mut digits: Vec<(Dim, &Dim)> = Vec::new();
        for (var, extent, _) in loops {
            let Some(scale) = split_linear(&mut rest, scope.symbol(*var)) else { return false };
            if scale.as_constant() != Some(0) {
                digits.push((scale, extent));
            }
        }
        used += digits.len();
        if digits.len() == 1 {
            // One digit may have any place.
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
    used == loops.iter().filter(|(_, _, role)| *role != Role::K).count()
}
