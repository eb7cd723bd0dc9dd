//! The analysis of `CanonicalizeBindings`: which variables are other names for values, and which name replaces them.

use crate::walk;
use rx_base::Name;
use rx_base::name::{NameMap, NameSet};
use rx_ir::{BoundValue, Expr, ExprKind, RelaxFunction, Sequence, Shape, StructInfo, VarBinding};

/// The replacements for the variables of a function.
#[derive(Default)]
pub(super) struct Plan {
    /// The variables to rename, with their new names. A new name may itself be renamed.
    renamed: NameMap<Name>,
    /// The variables whose bindings are removed.
    pub removed: NameSet,
    /// The variables used outside the dataflow block that binds them, which must list them as outputs. Variables that
    /// no dataflow block binds may be included.
    pub outputs: NameSet,
    /// The variables bound to constants, which replace their uses.
    pub constants: NameMap<Expr>,
    /// Types of variables that replace others whose declared type differs.
    types: Vec<(Name, StructInfo)>,
}

impl Plan {
    /// Analyzes a function.
    pub fn of(function: &RelaxFunction) -> Plan {
        let mut facts = Facts::default();
        let mut seen = NameSet::default();
        walk::each_binding(&function.body, &mut |binding| {
            if !seen.insert(binding.variable) {
                facts.rebound.insert(binding.variable);
            }
        });
        for (param, ty) in &function.params {
            facts.types.insert(*param, ty.clone());
        }
        facts.sequence(&function.body);
        facts.plan()
    }

    /// Returns the name that replaces `variable` at the end of the chain of renamings; `None` if it is not renamed.
    pub fn represents(&self, variable: Name) -> Option<Name> {
        let mut found = *self.renamed.get(&variable)?;
        while let Some(next) = self.renamed.get(&found) {
            found = *next;
        }
        Some(found)
    }

    /// Returns the types of the variables that replace others of a different type.
    pub fn types(&self) -> impl Iterator<Item = (Name, &StructInfo)> {
        self.types.iter().map(|(variable, ty)| (self.represents(*variable).unwrap_or(*variable), ty))
    }
}

/// The block of a binding, numbered in reading order.
#[derive(Clone, Copy, PartialEq)]
struct Home {
    block: usize,
    dataflow: bool,
}

/// The facts that the analysis collects about a function's variables.
#[derive(Default)]
struct Facts {
    blocks: usize,
    homes: NameMap<Home>,
    types: NameMap<StructInfo>,
    /// Variables bound more than once, as in the branches of an `if`.
    rebound: NameSet,
    /// Variables used outside the dataflow block that binds them; others that no dataflow block binds may be included.
    outside: NameSet,
    /// Variables that are other names for variables, as pairs `(alias, target)`, in order.
    aliases: Vec<(Name, Name)>,
    alias_of: NameMap<Name>,
    constants: NameMap<Expr>,
    /// The fields of variables that are bound to a tuple expression.
    tuples: NameMap<Vec<Expr>>,
    /// Variables bound to a field of a tuple variable, with the root of that variable ([`Facts::root`]) and the index.
    fields: NameMap<(Name, usize)>,
}

impl Facts {
    fn sequence(&mut self, sequence: &Sequence) {
        for block in &sequence.blocks {
            self.blocks += 1;
            let home = Home { block: self.blocks, dataflow: block.outputs.is_some() };
            block.bindings.iter().for_each(|binding| self.binding(binding, home));
        }
        self.uses(&sequence.result, None);
    }

    /// Adds variables of an expression to [`Facts::outside`]. If the expression is in the dataflow block `home`, adds
    /// those that another block, of either kind, binds. If `home` is no dataflow block, or `None` (as for the result of
    /// a sequence), adds all of them.
    fn uses(&mut self, expr: &Expr, home: Option<Home>) {
        expr.variables().into_iter().for_each(|variable| self.is_named(variable, home));
        expr.each_symbol(&mut |symbol| self.is_named(symbol, home));
        expr.each(&mut |expr| self.type_uses(&expr.ty, home));
    }

    /// Records that the variables of the enclosing function that a nested function uses are used outside their blocks.
    fn captures(&mut self, function: &RelaxFunction) {
        let mut named = Facts::default();
        walk::each_expression(&function.body, &mut |expr| named.uses(expr, None));
        self.outside.extend(named.outside.into_iter().filter(|variable| self.homes.contains_key(variable)));
    }

    /// Records the use of the shape variable in a tensor type, as in `R.Tensor(s)`.
    fn type_uses(&mut self, ty: &StructInfo, home: Option<Home>) {
        if let StructInfo::Tensor(tensor) = ty
            && let Shape::Var { name, .. } = tensor.shape
        {
            self.is_named(name, home);
        }
    }

    fn is_named(&mut self, variable: Name, home: Option<Home>) {
        let own = self.homes.get(&variable).copied();
        if home.is_none_or(|home| !home.dataflow || own.is_some_and(|own| own != home)) {
            self.outside.insert(variable);
        }
    }

    fn binding(&mut self, binding: &VarBinding, home: Home) {
        self.type_uses(&binding.ty, Some(home));
        match &binding.value {
            BoundValue::Expr(value) => {
                self.uses(value, Some(home));
                self.value(binding, value, home);
            }
            BoundValue::If(branches) => {
                self.uses(&branches.condition, Some(home));
                self.sequence(&branches.then);
                self.sequence(&branches.otherwise);
            }
            BoundValue::Function(function) => {
                self.captures(function);
                for (param, ty) in &function.params {
                    self.types.insert(*param, ty.clone());
                }
                self.sequence(&function.body);
            }
        }
        self.homes.insert(binding.variable, home);
        self.types.insert(binding.variable, binding.ty.clone());
    }

    /// Records whether a variable is another name for a value, a tuple expression, or a field of another variable.
    fn value(&mut self, binding: &VarBinding, value: &Expr, home: Home) {
        let variable = binding.variable;
        let value = match &value.kind {
            ExprKind::MatchCast(inner) if inner.ty == value.ty => inner,
            _ => value,
        };
        match &value.kind {
            ExprKind::TupleGet(tuple, at) => {
                let Some(tuple) = tuple.as_var() else { return };
                let root = self.root(tuple);
                let fields = self.tuples.get(&tuple).or_else(|| self.tuples.get(&root));
                match fields.and_then(|fields| fields.get(*at)).cloned() {
                    Some(field) => self.is_bound_to(binding, &field, home),
                    None => {
                        self.fields.insert(variable, (root, *at));
                    }
                }
            }
            ExprKind::Tuple(fields) => {
                self.tuples.insert(variable, fields.clone());
                if let Some(whole) = self.taken_apart(fields) {
                    self.is_bound_to(binding, &whole, home);
                }
            }
            _ => self.is_bound_to(binding, value, home),
        }
    }

    /// Returns the tuple variable whose fields are exactly these, all of them and in order.
    fn taken_apart(&self, fields: &[Expr]) -> Option<Expr> {
        let field = |field: &Expr| self.fields.get(&self.root(field.as_var()?)).copied();
        let (tuple, _) = field(fields.first()?)?;
        let ty = self.types.get(&tuple)?;
        let is_whole = ty.as_tuple()?.len() == fields.len()
            && fields.iter().enumerate().all(|(at, own)| field(own) == Some((tuple, at)));
        is_whole.then(|| Expr::var(tuple, ty.clone()))
    }

    fn is_bound_to(&mut self, binding: &VarBinding, value: &Expr, home: Home) {
        let variable = binding.variable;
        if variable.as_str() == "_" || self.rebound.contains(&variable) || binding.ty.says_more_than(&value.ty) {
            return;
        }
        match &value.kind {
            ExprKind::Var(other) if !self.rebound.contains(other) => {
                // If the target was found through a tuple, this block may not have used it before.
                self.is_named(*other, Some(home));
                self.aliases.push((variable, *other));
                self.alias_of.insert(variable, *other);
            }
            ExprKind::Constant(_) | ExprKind::Elements(_) | ExprKind::Metadata { .. } => {
                self.constants.insert(variable, value.clone());
            }
            _ => {}
        }
    }

    /// Follows aliases to a variable that is not an alias.
    fn root(&self, variable: Name) -> Name {
        let mut found = variable;
        while let Some(next) = self.alias_of.get(&found) {
            found = *next;
        }
        found
    }

    /// Whether a variable is used only inside the dataflow block that binds it.
    fn is_inner(&self, variable: Name) -> bool {
        self.homes.get(&variable).is_some_and(|home| home.dataflow) && !self.outside.contains(&variable)
    }

    fn plan(mut self) -> Plan {
        let mut plan = Plan::default();
        for (variable, _) in std::mem::take(&mut self.aliases) {
            let root = self.root(variable);
            // The root may have taken the name of an output already.
            let mut target = root;
            while let Some(next) = plan.renamed.get(&target) {
                target = *next;
            }
            plan.removed.insert(variable);
            let target_is_inner = self.is_inner(target);
            match self.is_inner(variable) || !target_is_inner || !self.outside.contains(&variable) {
                true => plan.renamed.insert(variable, target),
                // The value is used outside its dataflow block, so the root takes the output's name.
                false => plan.renamed.insert(target, variable),
            };
            if let (Some(root_ty), Some(ty)) = (self.types.get(&root), self.types.get(&variable))
                && root_ty != ty
            {
                plan.types.push((root, root_ty.clone()));
            }
        }
        plan.outputs = self.outside;
        plan.constants = std::mem::take(&mut self.constants);
        // A renamed variable of a constant now has the name of an output, whose uses refer to the binding.
        plan.constants.retain(|variable, _| !plan.renamed.contains_key(variable));
        plan
    }
}
