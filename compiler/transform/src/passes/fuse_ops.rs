//! `FuseOps`: calls of prim_funcs that can be done together become calls of functions that do them.
//!
//! TVM `src/relax/transform/fuse_ops.cc`. In each dataflow block calls of prim_funcs and fields of tuples are put in groups
//! ([`partition`]) by the `op_pattern` that `AnnotateTIROpPattern` leaves at prim_funcs. A group of several becomes a private
//! function with the attribute `Primitive` ([`group`]), called where the last of them stood ([`order`]); groups that do the same are one
//! function. `FuseTIR` makes loops of them.
//!
//! Unlike TVM's, a group goes back to single calls where a call that writes over its argument would come in front of another
//! that reads it, and where groups would wait for each other.

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
use rx_schedule::op_pattern::OpPattern;
use rx_tir::PrimFunc;
use std::collections::HashMap;
use std::sync::Arc;

/// The pass.
pub const PASS: Pass = Pass {
    name: "FuseOps",
    parameters: &[Parameter {
        name: "fuse_opt_level",
        default: Some("-1"),
        doc: "0 joins nothing; any other level joins what can be joined.",
    }],
    doc: "Puts calls of prim_funcs that can be done together in functions of their own, by their patterns.",
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

/// The prim_funcs of a module.
type Callees = NameMap<Arc<LoopFunction<PrimFunc>>>;

/// Whether a function is a group itself, of this pass or for another code generator.
fn is_done(function: &RelaxFunction) -> bool {
    is_primitive(function) || function.attribute("Codegen").is_some()
}

/// Whether a function is to be one kernel.
pub(super) fn is_primitive(function: &RelaxFunction) -> bool {
    function.is_set("Primitive")
}

/// The functions that groups have become.
struct Functions {
    /// Private functions by what groups of their calls are called; with their names.
    known: HashMap<String, Vec<RelaxFunction>>,
    names: FreshNames,
    /// Those that are not in the module yet.
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

    /// The name of a function: of one that is there and does the same, else of this one, which is new.
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

/// `fused_add_exp`, of bindings that call `add` and `exp`.
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

/// The prim_func that a call names and the arguments it is passed; `None` of another value.
pub(super) fn tir_call(value: &Expr) -> Option<(Name, &[Expr])> {
    let operator = value.as_op().filter(|op| matches!(*op, "call_tir" | "call_tir_inplace"))?;
    let schema = rx_ops::find(name(operator))?;
    let call = value.as_call()?;
    match (&schema.operand(call, "gvar")?.kind, &schema.operand(call, "args")?.kind) {
        (ExprKind::Global(callee), ExprKind::Tuple(arguments)) => Some((*callee, arguments)),
        _ => None,
    }
}

/// Whether a call passes scalars behind its outputs (`tir_vars`), which no parameter of a group can be.
pub(super) fn passes_scalars(value: &Expr) -> bool {
    let passed = || rx_ops::find(name(value.as_op()?))?.operand(value.as_call()?, "tir_vars");
    passed().is_some()
}

/// The arguments that a call of a prim_func passes, to be changed.
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
    /// Parameters that are weights: taking one from a tuple of them is no work to be joined.
    weights: NameSet,
    /// What variables are bound to.
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

    /// The bindings of a block with their users, for [`partition`].
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

    /// How a binding makes its value, and the variables it makes it from.
    fn pattern(&self, binding: &VarBinding) -> (OpPattern, Vec<Name>) {
        let BoundValue::Expr(value) = &binding.value else { return (OpPattern::Opaque, Vec::new()) };
        match &value.kind {
            // As in TVM: what is cast is not told of it.
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

    /// Binds the outputs of a group by a call of its function; of a group that gives nothing nothing is left.
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
