//! `FuseOps`: groups calls of prim_funcs that can run as one kernel, and moves each group into a function.
//!
//! ```text
//! lv = R.call_tir(cls.add, (x, y), out_ty=…)
//! gv = R.call_tir(cls.exp, (lv,), out_ty=…)
//! →
//! gv = cls.fused_add_exp(x, y)
//!
//! @R.function(private=True)
//! def fused_add_exp(x, y):
//!     R.func_attr({"Primitive": True})
//!     with R.dataflow():
//!         lv = R.call_tir(cls.add, (x, y), out_ty=…)
//!         gv = R.call_tir(cls.exp, (lv,), out_ty=…)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! The pass partitions the calls and tuple fields of a dataflow block by the attribute `op_pattern` of the prim_funcs
//! ([`partition`]), builds functions for groups of several bindings ([`group`]), and orders groups and single bindings
//! ([`order`]). Equal groups share a function.
//!
//! Requires the attributes that `AnnotateTIROpPattern` sets; a prim_func without one is opaque. Guarantees the same
//! values. A group is dissolved into single bindings if it would move an in-place write before a read of the
//! overwritten value, or if groups would depend on each other; TVM does not check this. `FuseTIR` turns the functions
//! into prim_funcs.
//!
//! Reference: TVM `src/relax/transform/fuse_ops.cc`.

mod group;
mod order;
mod partition;

use crate::equal::same_function;
use crate::names::FreshNames;
use crate::pass::{Arguments, Parameter, Pass, PassError};
use crate::{Module, walk};
use group::grouped;
use partition::{Node, partition};
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_ir::{
    Argument, Attr, Block, BoundValue, Call, Callee, Expr, ExprKind, Item, LoopFunction, RelaxFunction, Sequence,
    VarBinding,
};
use rx_loops::op_pattern::OpPattern;
use rx_tir::PrimFunc;
use std::collections::HashMap;
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "FuseOps",
    parameters: &[Parameter {
        name: "fuse_opt_level",
        default: Some("-1"),
        doc: "0 joins nothing; any other level joins all calls that can be joined.",
    }],
    doc: "Moves calls of prim_funcs that can be fused to separate functions, by their patterns.",
    reference: "src/relax/transform/fuse_ops.cc",
    run,
};

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let level = arguments.get(0).as_i64();
    let level = level.ok_or_else(|| PassError("FuseOps: `fuse_opt_level` is an integer".to_owned()))?;
    if level == 0 {
        return Ok(module);
    }
    let callees: Callees = module
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Loops(function) => Some((function.name, function.clone())),
            _ => None,
        })
        .collect();
    let mut made = Functions::of(&module);
    let mut items = Vec::with_capacity(module.items.len());
    for mut item in std::mem::take(&mut module.items) {
        if let Item::Relax(function) = &mut item
            && !is_done(function)
        {
            in_function(Arc::make_mut(function), &callees, &mut made);
        }
        items.extend(made.new.drain(..).map(|function| Item::Relax(Arc::new(function))));
        items.push(item);
    }
    module.items = items;
    Ok(module)
}

/// The prim_funcs of a module, by name.
type Callees = NameMap<Arc<LoopFunction<PrimFunc>>>;

/// Whether a function is a group already, made by this pass or for an external code generator.
fn is_done(function: &RelaxFunction) -> bool {
    is_primitive(function) || function.attribute("Codegen").is_some()
}

/// Whether a function's attribute `Primitive` is true or a nonzero integer, which marks it as a group that `FuseTIR`
/// turns into one prim_func.
pub(super) fn is_primitive(function: &RelaxFunction) -> bool {
    function.is_set("Primitive")
}

/// The functions of the groups.
struct Functions {
    /// Private functions with the attribute `Primitive`, by the name that [`joined_name`] gives to their calls.
    known: HashMap<String, Vec<RelaxFunction>>,
    names: FreshNames,
    /// The functions that are not in the module yet.
    new: Vec<RelaxFunction>,
}

impl Functions {
    fn of(module: &Module) -> Functions {
        let mut known: HashMap<String, Vec<RelaxFunction>> = HashMap::new();
        for function in module.functions().filter(|function| function.private && is_primitive(function)) {
            let bindings = function.body.blocks.iter().flat_map(|block| &block.bindings);
            known.entry(joined_name(bindings)).or_default().push(function.clone());
        }
        Functions { known, names: FreshNames::of_module(module), new: Vec::new() }
    }

    /// Returns the name of an existing function that equals `function` up to names. Otherwise adds `function` under an
    /// unused name and returns that.
    fn add(&mut self, wanted: String, mut function: RelaxFunction) -> Name {
        let alike = self.known.entry(wanted.clone()).or_default();
        if let Some(same) = alike.iter().find(|known| same_function(known, &function)) {
            return same.name;
        }
        let own = self.names.numbered(name(&wanted), "");
        function.name = own;
        alike.push(function.clone());
        self.new.push(function);
        own
    }
}

/// Returns the name of a group, for example `fused_add_exp` for bindings that call `add` and `exp`.
fn joined_name<'a>(bindings: impl Iterator<Item = &'a VarBinding>) -> String {
    let mut joined = String::from("fused");
    for binding in bindings {
        if let BoundValue::Expr(value) = &binding.value
            && let Some((callee, _)) = tir_call(value)
        {
            joined.push('_');
            joined.push_str(&callee);
        }
    }
    joined
}

/// Returns the prim_func that a `call_tir` or `call_tir_inplace` calls, and the arguments. Returns `None` for other
/// values, and for a call whose arguments are not written out as a tuple.
pub(super) fn tir_call(value: &Expr) -> Option<(Name, &[Expr])> {
    let operator = value.as_op().filter(|op| matches!(*op, "call_tir" | "call_tir_inplace"))?;
    let schema = rx_ops::find(name(operator))?;
    let call = value.as_call()?;
    match (&schema.operand(call, "gvar")?.kind, &schema.operand(call, "args")?.kind) {
        (ExprKind::Global(callee), ExprKind::Tuple(arguments)) => Some((*callee, arguments)),
        _ => None,
    }
}

/// Whether a call passes scalars by `tir_vars`. Such a call is not fused.
pub(super) fn passes_scalars(value: &Expr) -> bool {
    let passed = || rx_ops::find(name(value.as_op()?))?.operand(value.as_call()?, "tir_vars");
    passed().is_some()
}

/// Returns the arguments of a call of a prim_func, mutably.
fn arguments_mut(value: &mut Expr) -> Option<&mut Vec<Expr>> {
    tir_call(value)?;
    let at = rx_ops::find(name(value.as_op()?))?.params.iter().position(|param| param.name == "args")?;
    let ExprKind::Call(call) = &mut value.kind else { return None };
    match Arc::make_mut(call).arguments.get_mut(at)? {
        Argument::Operand(Expr { kind: ExprKind::Tuple(arguments), .. }) => Some(arguments),
        _ => None,
    }
}

fn in_function(function: &mut RelaxFunction, callees: &Callees, made: &mut Functions) {
    if walk::names_in_text(function) {
        return;
    }
    let inputs = function.attribute("num_input").and_then(Attr::as_int);
    let inputs = inputs.map_or(usize::MAX, |inputs| usize::try_from(inputs).unwrap_or(0));
    let weights = function.params.iter().skip(inputs).map(|(param, _)| *param).collect();
    let mut values = NameMap::default();
    walk::each_own_binding(&function.body, &mut |binding| {
        if let BoundValue::Expr(value) = &binding.value {
            values.insert(binding.variable, value.clone());
        }
    });
    let mut fuser = Fuser { callees, weights, values, fresh: FreshNames::of(function), made };
    fuser.sequence(&mut function.body);
}

struct Fuser<'a> {
    callees: &'a Callees,
    /// The parameters that are weights: those after the first `num_input`; none without that attribute. Taking a field
    /// from a tuple of weights is not fused.
    weights: NameSet,
    /// The values of the variables, by name.
    values: NameMap<Expr>,
    fresh: FreshNames,
    made: &'a mut Functions,
}

impl Fuser<'_> {
    fn sequence(&mut self, sequence: &mut Sequence) {
        for block in &mut sequence.blocks {
            if block.outputs.is_some() {
                self.block(block);
            }
            for binding in &mut block.bindings {
                if let BoundValue::If(_) = &binding.value {
                    binding.value.sequences_mut().for_each(|branch| self.sequence(branch));
                }
            }
        }
    }

    fn block(&mut self, block: &mut Block) {
        let outputs: NameSet = block.outputs.iter().flatten().copied().collect();
        let groups = partition(&self.nodes(&block.bindings, &outputs));
        let plan = order::plan(&block.bindings, &outputs, groups);
        let mut bindings = Vec::with_capacity(block.bindings.len());
        for step in plan {
            match step.outputs {
                None => bindings.extend(step.members.iter().filter_map(|at| block.bindings.get(*at)).cloned()),
                Some(outputs) => {
                    let members: Vec<&VarBinding> =
                        step.members.iter().filter_map(|at| block.bindings.get(*at)).collect();
                    self.call(&members, &outputs, &mut bindings);
                }
            }
        }
        block.bindings = bindings;
    }

    /// Builds the dataflow graph of a block for [`partition`].
    fn nodes(&self, bindings: &[VarBinding], outputs: &NameSet) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::with_capacity(bindings.len());
        let mut at_of: NameMap<usize> = NameMap::default();
        for (at, binding) in bindings.iter().enumerate() {
            let (pattern, named) = self.pattern(binding);
            for variable in named {
                if let Some(node) = at_of.get(&variable).and_then(|at| nodes.get_mut(*at)) {
                    node.users.push((at, pattern));
                }
            }
            nodes.push(Node { pattern, is_output: outputs.contains(&binding.variable), users: Vec::new() });
            at_of.insert(binding.variable, at);
        }
        nodes
    }

    /// Returns the pattern of a binding, and the variables of which it is recorded as a user.
    fn pattern(&self, binding: &VarBinding) -> (OpPattern, Vec<Name>) {
        let BoundValue::Expr(value) = &binding.value else { return (OpPattern::Opaque, walk::used_by(binding)) };
        match &value.kind {
            // As in TVM, a cast is not recorded as a user of its operand.
            ExprKind::MatchCast(_) => (OpPattern::Opaque, Vec::new()),
            ExprKind::TupleGet(tuple, _) => {
                let is_weight = tuple.as_var().is_some_and(|tuple| self.weights.contains(&tuple));
                (if is_weight { OpPattern::Opaque } else { OpPattern::Injective }, value.variables())
            }
            _ => match tir_call(value).filter(|_| !passes_scalars(value)) {
                Some((callee, arguments)) => {
                    let pattern = self.callees.get(&callee).and_then(|callee| callee.attribute("op_pattern"));
                    let pattern = pattern.and_then(Attr::as_int).map_or(OpPattern::Opaque, OpPattern::of_number);
                    (pattern, arguments.iter().flat_map(Expr::variables).collect())
                }
                None => (OpPattern::Opaque, value.variables()),
            },
        }
    }

    /// Emits the call of a group's function, and bindings of the outputs to its results. Emits nothing for a group
    /// without outputs, and the members unchanged if the function cannot be built.
    fn call(&mut self, members: &[&VarBinding], outputs: &[Name], bindings: &mut Vec<VarBinding>) {
        let Some(last) = members.last().filter(|_| !outputs.is_empty()) else { return };
        let Some(grouped) = grouped(members, outputs, self.callees, &self.values, &mut self.fresh) else {
            return bindings.extend(members.iter().copied().cloned());
        };
        let ret = grouped.function.ret.clone();
        let callee = self.made.add(joined_name(members.iter().copied()), grouped.function);
        let bound = |variable: Name, value: Expr| VarBinding::new(last.origin, variable, value);
        let mut passed = Vec::with_capacity(grouped.arguments.len());
        for argument in grouped.arguments {
            passed.push(match argument.kind {
                ExprKind::TupleGet(..) => {
                    let own = self.fresh.value(true);
                    let ty = argument.ty.clone();
                    bindings.push(bound(own, argument));
                    Expr::var(own, ty)
                }
                _ => argument,
            });
        }
        let call = Call::of_function(Callee::Global(callee), passed);
        let call = Expr::new(ExprKind::Call(Arc::new(call)), ret.clone());
        if let [output] = outputs {
            return bindings.push(bound(*output, call));
        }
        let whole = self.fresh.value(true);
        bindings.push(bound(whole, call));
        let mut fields: NameMap<Expr> = outputs.iter().copied().zip(Expr::var(whole, ret).each_field()).collect();
        for member in members {
            let field = fields.remove(&member.variable);
            bindings.extend(field.map(|field| bound(member.variable, field)));
        }
    }
}
