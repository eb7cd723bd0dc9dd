//! Structural equality up to names, as TVM's `StructuralEqual` with `map_free_vars`.
//!
//! Both sides are brought to a form in which names say nothing: variables and symbolic dims are numbered in the order they
//! are bound, places and origins are dropped. Functions are compared by name; private ones by the order in which public
//! ones first name them.

use crate::{Module, walk};
use rx_base::name::{NameMap, name};
use rx_base::{Dim, Name, Span};
use rx_ir::rewrite::Renaming;
use rx_ir::{
    Attr, Block, BoundValue, Callee, Expr, ExprKind, Item, Origin, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Whether two modules are the same up to names.
pub fn structurally_equal(a: &Module, b: &Module) -> bool {
    first_difference(a, b).is_none()
}

/// The functions, by the name of the first module, that differ first; `None` where the modules are equal.
pub fn first_difference(a: &Module, b: &Module) -> Option<String> {
    let (a, b) = (canonical(a), canonical(b));
    let missing = |from: &Canonical, of: &Canonical| from.keys().find(|name| !of.contains_key(*name)).cloned();
    if let Some(name) = missing(&a, &b) {
        return Some(format!("only the first has {name}"));
    }
    if let Some(name) = missing(&b, &a) {
        return Some(format!("only the second has {name}"));
    }
    a.iter().find(|(name, item)| b.get(*name) != Some(item)).map(|(name, _)| name.clone())
}

/// Items by canonical name.
type Canonical = BTreeMap<String, CanonicalItem>;

#[derive(Debug, PartialEq)]
enum CanonicalItem {
    Relax(Box<RelaxFunction>),
    /// A prim_func or statement: its text, without the decorator, which says whether it is private, and its name.
    Text(String),
}

fn canonical(module: &Module) -> Canonical {
    let globals = global_names(module);
    let item = |(at, item): (usize, &Item<_>)| {
        let own = item.name();
        let key = own.and_then(|own| globals.get(&own).copied()).map_or(format!("<{at}>"), |name| name.to_string());
        let value = match item {
            Item::Relax(function) => {
                let mut function = RelaxFunction::clone(function);
                Numbering::new(&globals).function(&mut function);
                CanonicalItem::Relax(Box::new(function))
            }
            Item::Loops { name, func } => CanonicalItem::Text(without_name(&rx_tir::print::script(func), Some(*name))),
            Item::Text { name, text, .. } => CanonicalItem::Text(without_name(text, *name)),
        };
        (key, value)
    };
    module.items.iter().enumerate().map(item).collect()
}

fn without_name(text: &str, own: Option<Name>) -> String {
    match own {
        Some(own) => text.replacen(&format!("def {own}("), "def (", 1),
        None => text.to_owned(),
    }
}

/// The canonical name of every function: its own, of a private one that is named by another the order in which it is.
fn global_names(module: &Module) -> NameMap<Name> {
    let items: NameMap<&Item<_>> = module.items.iter().filter_map(|item| Some((item.name()?, item))).collect();
    let mut names = NameMap::default();
    let mut public: Vec<Name> = module.items.iter().filter(|item| !item.is_private()).filter_map(Item::name).collect();
    public.sort_unstable_by_key(|name| name.as_str());
    names.extend(public.iter().map(|name| (*name, *name)));
    let mut at = 0;
    let mut private = 0;
    while let Some(current) = public.get(at).copied() {
        at += 1;
        let Some(Item::Relax(function)) = items.get(&current) else { continue };
        for global in walk::globals(function) {
            if let Entry::Vacant(vacant) = names.entry(global) {
                vacant.insert(name(&format!("<private {private}>")));
                private += 1;
                public.push(global);
            }
        }
    }
    // What nothing reaches keeps its name.
    module.items.iter().filter_map(Item::name).for_each(|own| {
        names.entry(own).or_insert(own);
    });
    names
}

/// Gives names their numbers.
struct Numbering<'a> {
    globals: &'a NameMap<Name>,
    variables: NameMap<Name>,
    symbols: NameMap<Name>,
}

impl<'a> Numbering<'a> {
    fn new(globals: &'a NameMap<Name>) -> Numbering<'a> {
        Numbering { globals, variables: NameMap::default(), symbols: NameMap::default() }
    }

    fn define(&mut self, variable: &mut Name) {
        // Nothing can name `_`; still it is a variable.
        let own = name(&format!("v{}", self.variables.len()));
        self.variables.insert(*variable, own);
        *variable = own;
    }

    fn meet(&mut self, symbol: Name) {
        let number = self.symbols.len();
        self.symbols.entry(symbol).or_insert_with(|| name(&format!("s{number}")));
    }

    fn renaming<T>(&self, with: impl FnOnce(&Renaming<'_>) -> T) -> T {
        let variable = |variable: Name| self.variables.get(&variable).copied();
        let dim = |symbol: Name| self.symbols.get(&symbol).map(|own| Dim::symbol(*own));
        with(&Renaming { dim: &dim, variable: &variable })
    }

    fn ty(&mut self, ty: &mut StructInfo) {
        ty.each_symbol(&mut |symbol| self.meet(symbol));
        *ty = self.renaming(|renaming| renaming.ty(ty));
    }

    fn expr(&mut self, expr: &mut Expr) {
        expr.each_symbol(&mut |symbol| self.meet(symbol));
        self.renaming(|renaming| renaming.expr(expr));
        expr.each_mut(&mut |expr| {
            expr.span = Span::default();
            match &mut expr.kind {
                ExprKind::Global(global) => *global = self.globals.get(global).copied().unwrap_or(*global),
                ExprKind::Call(call) => {
                    if let Callee::Global(global) = &mut call.callee {
                        *global = self.globals.get(global).copied().unwrap_or(*global);
                    }
                }
                // A type is no part of a constant that says it; of a call it follows from the arguments.
                _ => {}
            }
        });
    }

    fn function(&mut self, function: &mut RelaxFunction) {
        function.name = name("");
        function.private = false;
        function.attributes.retain(|(key, _)| &**key != "global_symbol");
        function.attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
        function.attributes.iter_mut().for_each(|(_, attr)| truth(attr));
        for (param, ty) in &mut function.params {
            self.define(param);
            self.ty(ty);
        }
        self.sequence(&mut function.body);
        self.ty(&mut function.ret);
    }

    fn sequence(&mut self, sequence: &mut Sequence) {
        for Block { outputs, bindings } in &mut sequence.blocks {
            bindings.iter_mut().for_each(|binding| self.binding(binding));
            for output in outputs.iter_mut().flatten() {
                *output = self.variables.get(output).copied().unwrap_or(*output);
            }
        }
        self.expr(&mut sequence.result);
    }

    fn binding(&mut self, binding: &mut VarBinding) {
        binding.origin = Origin { item: name(""), statement: 0 };
        match &mut binding.value {
            BoundValue::Expr(value) => self.expr(value),
            BoundValue::If(branches) => {
                self.expr(&mut branches.condition);
                self.sequence(&mut branches.then);
                self.sequence(&mut branches.otherwise);
            }
            BoundValue::Function(function) => {
                // It sees itself.
                self.define(&mut binding.variable);
                self.ty(&mut binding.ty);
                return self.function(Arc::make_mut(function));
            }
        }
        let is_symbol = binding.variable;
        self.define(&mut binding.variable);
        // A scalar's value is the symbol of its name.
        if self.symbols.contains_key(&is_symbol) || binding.ty.symbols().contains(&is_symbol) {
            self.meet(is_symbol);
        }
        self.ty(&mut binding.ty);
    }
}

/// Python's `True` and `1` are the same attribute.
fn truth(attr: &mut Attr) {
    if let Attr::Bool(value) = attr {
        *attr = Attr::Int(Dim::constant(i64::from(*value)));
    }
}
