//! `CombineParallelMatmul`: merges products of one tensor with several matrices into one product with the concatenated
//! matrices.
//!
//! ```text
//! q = R.matmul(x, wq)        w = R.concat((wq, wk), axis=1)
//! k = R.matmul(x, wk)   →    y = R.matmul(x, w)
//!                            s = R.split(y, indices_or_sections=[64], axis=1)
//!                            q = s[0]
//!                            k = s[1]
//! ```
//!
//! If all products have a bias of the same rank and of the width of the matrix, the biases are concatenated as well. If
//! all have such a bias or none has any bias, and all have the same activation, the activation is applied once. The new
//! product is computed before the first binding that it replaces.
//!
//! Requires products in one dataflow block whose operands are variables. Those with matrices of the same rank, of at
//! least 2, are combined if the matrices agree in dtype, device and leading dims, the biases to concatenate do so as
//! well, and the products have the same dtype. A product whose matrix or bias is bound after the first binding to
//! replace is left out. At most one matrix may have a width that is not constant; it comes last, and products with
//! further such matrices are left out. Guarantees the same values.
//!
//! Reference: TVM `src/relax/transform/combine_parallel_matmul.cc`.

use crate::Module;
use crate::effects::Effects;
use crate::emit::{Emitter, rewrite_bindings};
use crate::make::operands;
use crate::pass::{Arguments, Parameter, Pass, PassError, each_function};
use crate::passes::dead_code::remove_unused;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name};
use rx_ir::{Argument, Attr, Block, BoundValue, Expr, RelaxFunction, Sequence, VarBinding};
use serde_json::Value;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "CombineParallelMatmul",
    parameters: &[Parameter {
        name: "check",
        default: Some("null"),
        doc: "In Python a function that says which products may be combined; here nothing else can be given.",
    }],
    doc: "Computes products of one tensor with several as one, and splits the result.",
    reference: "src/relax/transform/combine_parallel_matmul.cc",
    run,
};

const ACTIVATIONS: [&str; 4] = ["nn.relu", "nn.gelu", "nn.gelu_tanh", "nn.silu"];

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    if *arguments.get(0) != Value::Null {
        return Err(PassError("CombineParallelMatmul: `check` is a Python function, which JSON cannot say".to_owned()));
    }
    let effects = Effects::of(&module);
    each_function(&mut module, PASS.name, |function| in_function(function, &effects))?;
    Ok(module)
}

fn in_function(function: &mut RelaxFunction, effects: &Effects) -> Result<(), PassError> {
    let mut groups: NameMap<Vec<Group>> = NameMap::default();
    for group in groups_of(&function.body) {
        groups.entry(group.at).or_default().push(group);
    }
    if groups.is_empty() {
        return Ok(());
    }
    let mut values: NameMap<Expr> = NameMap::default();
    rewrite_bindings(function, &mut |binding, emitter| {
        for group in groups.remove(&binding.variable).unwrap_or_default() {
            values.extend(group.combined(emitter)?);
        }
        if let Some(value) = values.remove(&binding.variable) {
            binding.value = BoundValue::Expr(value);
        }
        Ok(())
    })?;
    remove_unused(function, effects);
    Ok(())
}

/// A product with the bias that follows it.
#[derive(Clone)]
struct Branch {
    /// The variable that is bound to a slice of the combined result.
    replaced: Name,
    factor: Expr,
    bias: Option<Expr>,
    /// The number of columns of the factor.
    width: Dim,
    /// The dtype of the product.
    dtype: DType,
}

/// Products that are combined into one.
struct Group {
    /// The binding before which the combined product is computed: the first one that is replaced.
    at: Name,
    left: Expr,
    branches: Vec<Branch>,
    activation: Option<&'static str>,
}

/// A product, with the bias and the activation that follow it.
struct Product<'a> {
    binding: &'a VarBinding,
    factor: &'a Expr,
    bias: Option<(&'a VarBinding, &'a Expr)>,
    activation: Option<(&'a VarBinding, &'static str)>,
}

fn groups_of(sequence: &Sequence) -> Vec<Group> {
    let mut found = Vec::new();
    for block in &sequence.blocks {
        for binding in &block.bindings {
            found.extend(binding.value.sequences().flat_map(groups_of));
        }
        if block.outputs.is_some() {
            found.extend(in_block(block));
        }
    }
    found
}

fn in_block(block: &Block) -> Vec<Group> {
    let places: NameMap<usize> =
        block.bindings.iter().enumerate().map(|(at, binding)| (binding.variable, at)).collect();
    let mut found = Vec::new();
    for (left, products) in products(block) {
        let (has_bias, activation) = shared(&products);
        let branches: Vec<Branch> =
            products.iter().filter_map(|product| product.branch(has_bias, activation)).collect();
        let mut ranks: Vec<usize> = branches.iter().map(|branch| rank(&branch.factor)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks {
            let of_rank = branches.iter().filter(|branch| self::rank(&branch.factor) == rank).cloned().collect();
            found.extend(fitting(of_rank, &places).map(|(at, branches)| Group {
                at,
                left: left.clone(),
                branches,
                activation,
            }));
        }
    }
    found
}

/// Groups the products of two variables in a block by their left-hand side; groups and products are in reading order.
fn products(block: &Block) -> Vec<(&Expr, Vec<Product<'_>>)> {
    let mut users: NameMap<Vec<(&VarBinding, &Expr)>> = NameMap::default();
    for binding in &block.bindings {
        if let BoundValue::Expr(value) = &binding.value
            && let Some(Argument::Operand(first)) = value.as_call().and_then(|call| call.arguments.first())
            && let Some(used) = first.as_var()
        {
            users.entry(used).or_default().push((binding, value));
        }
    }
    let user =
        |of: Name, operator: &str| users.get(&of)?.iter().find(|(_, value)| value.as_op() == Some(operator)).copied();
    let mut found: Vec<(&Expr, Vec<Product<'_>>)> = Vec::new();
    for binding in &block.bindings {
        let BoundValue::Expr(product) = &binding.value else { continue };
        let Some([left, factor]) = operands(product, "matmul", ["x1", "x2"]) else { continue };
        if left.as_var().is_none() || factor.as_var().is_none() {
            continue;
        }
        let bias =
            user(binding.variable, "add").and_then(|(add, sum)| Some((add, operands(sum, "add", ["x1", "x2"])?[1])));
        let last = bias.map_or(binding.variable, |(add, _)| add.variable);
        let activation = ACTIVATIONS.iter().find_map(|activation| Some((user(last, activation)?.0, *activation)));
        let product = Product { binding, factor, bias, activation };
        match found.iter_mut().find(|(known, _)| known.as_var() == left.as_var()) {
            Some((_, products)) => products.push(product),
            None => found.push((left, vec![product])),
        }
    }
    found
}

/// Returns whether all products have a matching bias, and the activation that all products share. There is no shared
/// activation if only some products have a bias, or if the biases do not match.
fn shared(products: &[Product<'_>]) -> (bool, Option<&'static str>) {
    let rank = |product: &Product<'_>| product.bias.map(|(_, bias)| self::rank(bias));
    let all_biased = products
        .first()
        .and_then(rank)
        .is_some_and(|first| products.iter().all(|product| rank(product) == Some(first)));
    let fits = products.iter().all(|product| {
        product.bias.is_some_and(|(_, bias)| width(bias).is_some() && width(bias) == width(product.factor))
    });
    let first = products.first().and_then(|product| product.activation).map(|(_, activation)| activation);
    let is_same = |product: &Product<'_>| product.activation.map(|(_, activation)| activation) == first;
    // An activation of a biased sum is not combined unless the biases are.
    let plain = products.iter().all(|product| product.bias.is_none());
    let biased = all_biased && fits;
    (biased, first.filter(|_| (plain || biased) && products.iter().all(is_same)))
}

impl Product<'_> {
    fn branch(&self, has_bias: bool, activation: Option<&'static str>) -> Option<Branch> {
        let bias = self.bias.filter(|_| has_bias);
        let replaced = match (activation, bias) {
            (Some(_), _) => self.activation?.0,
            (None, Some((add, _))) => add,
            (None, None) => self.binding,
        };
        let dtype = self.binding.ty.as_tensor()?.dtype?;
        let width = width(self.factor)?;
        let bias = bias.map(|(_, bias)| bias.clone());
        (rank(self.factor) >= 2).then(|| Branch {
            replaced: replaced.variable,
            factor: self.factor.clone(),
            bias,
            width,
            dtype,
        })
    }
}

/// Selects the branches that can be combined, and the binding before which to compute the combined product. Returns
/// `None` if fewer than two branches are left, or if their dtypes, devices or leading dims differ.
fn fitting(mut branches: Vec<Branch>, places: &NameMap<usize>) -> Option<(Name, Vec<Branch>)> {
    let place = |variable: Name| places.get(&variable).copied();
    let at = branches.iter().filter_map(|branch| place(branch.replaced)).min()?;
    let is_ready = |value: &Expr| value.variables().into_iter().filter_map(place).all(|own| own < at);
    branches.retain(|branch| is_ready(&branch.factor) && branch.bias.as_ref().is_none_or(is_ready));
    let first = branches.first()?.clone();
    let alike = |a: &Expr, b: &Expr, trailing: usize| {
        let tensor = |value: &Expr| value.ty.as_tensor().map(|tensor| (tensor.dtype, tensor.vdevice));
        leading(a, trailing).is_some() && leading(a, trailing) == leading(b, trailing) && tensor(a) == tensor(b)
    };
    let fits = |branch: &Branch| {
        let biases = match (&first.bias, &branch.bias) {
            (Some(a), Some(b)) => alike(a, b, 1),
            (a, b) => a.is_none() && b.is_none(),
        };
        biases && alike(&first.factor, &branch.factor, 2) && branch.dtype == first.dtype
    };
    if !branches.iter().all(fits) {
        return None;
    }
    let (mut taken, others): (Vec<Branch>, Vec<Branch>) =
        branches.into_iter().partition(|branch| branch.width.as_constant().is_some());
    taken.extend(others.into_iter().next());
    let first = taken.iter().min_by_key(|branch| place(branch.replaced))?.replaced;
    (taken.len() > 1).then_some((first, taken))
}

impl Group {
    /// Emits the combined product, and returns the new value of each replaced variable.
    fn combined(&self, emitter: &mut Emitter<'_>) -> Result<Vec<(Name, Expr)>, PassError> {
        let Some(dtype) = self.branches.first().map(|branch| branch.dtype) else { return Ok(Vec::new()) };
        let factors = concatenated(self.branches.iter().map(|branch| branch.factor.clone()).collect(), emitter)?;
        let left = Argument::Operand(self.left.clone());
        let out_dtype = Argument::Attr(Attr::Str(dtype.to_string().into()));
        let mut all =
            emitter.call("matmul", vec![("x1", left), ("x2", Argument::Operand(factors)), ("out_dtype", out_dtype)])?;
        let biases: Vec<Expr> = self.branches.iter().filter_map(|branch| branch.bias.clone()).collect();
        if !biases.is_empty() {
            let biases = concatenated(biases, emitter)?;
            all = emitter.call("add", vec![("x1", Argument::Operand(all)), ("x2", Argument::Operand(biases))])?;
        }
        if let Some(activation) = self.activation {
            let params = rx_ops::find(name(activation)).map_or(&[][..], |schema| schema.params);
            let param = params.first().map_or("data", |param| param.name);
            all = emitter.call(activation, vec![(param, Argument::Operand(all))])?;
        }
        let parts = self.split(all, emitter)?;
        Ok(self.branches.iter().map(|branch| branch.replaced).zip(parts.each_field()).collect())
    }

    /// Splits the combined result at the boundaries between the factors.
    fn split(&self, all: Expr, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
        let mut end = 0;
        let mut ends = Vec::new();
        for branch in self.branches.iter().rev().skip(1).rev() {
            end += branch.width.as_constant().unwrap_or_default();
            ends.push(Attr::Int(end.into()));
        }
        let axis = Attr::Int((rank(&all) as i64 - 1).into());
        emitter.call(
            "split",
            vec![
                ("x", Argument::Operand(all)),
                ("indices_or_sections", Argument::Attr(Attr::List(ends))),
                ("axis", Argument::Attr(axis)),
            ],
        )
    }
}

/// Concatenates tensors along their last axis.
fn concatenated(parts: Vec<Expr>, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
    let axis = parts.first().map_or(0, |part| rank(part) as i64 - 1);
    let all = Argument::Operand(Expr::tuple(parts));
    emitter.call("concat", vec![("tensors", all), ("axis", Argument::Attr(Attr::Int(axis.into())))])
}

fn dims(value: &Expr) -> Option<&[Dim]> {
    value.ty.as_tensor()?.shape.dims()
}

/// Returns the number of dims; 0 if the dims are unknown.
fn rank(value: &Expr) -> usize {
    dims(value).map_or(0, <[Dim]>::len)
}

fn width(value: &Expr) -> Option<Dim> {
    dims(value)?.last().cloned()
}

/// Returns the dims without the last `trailing` ones.
fn leading(value: &Expr, trailing: usize) -> Option<&[Dim]> {
    let dims = dims(value)?;
    dims.get(..dims.len().checked_sub(trailing)?)
}
