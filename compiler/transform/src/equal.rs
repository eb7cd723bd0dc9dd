//! Structural equality of modules up to names, like TVM's `StructuralEqual` with `map_free_vars`.
//!
//! Both modules are brought to a canonical form and then compared. The canonical form numbers variables in the order in
//! which they are bound and symbolic dims in the order in which they first occur, and drops source positions and
//! origins. Public functions are matched by name, and so are private ones that no public function reaches; other
//! private functions are matched by the order of the first references to them. For example, in functions of one
//! parameter, `lv = R.exp(x)` and `y = R.exp(a)` both become `v1 = R.exp(v0)`.

use crate::{Module, walk};
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name, Span};
use rx_ir::rewrite::Renaming;
use rx_ir::{
    Attr, Block, BoundValue, Callee, ConstantData, Constants, Expr, ExprKind, Item, LoopBody, LoopFunction, Origin,
    RelaxFunction, Sequence, StructInfo, VarBinding,
};
use rx_tir::{PrimFunc, Stmt};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Whether two modules are structurally equal, as this module's documentation defines it.
pub fn structurally_equal(a: &Module, b: &Module) -> bool {
    first_difference(a, b).is_none()
}

/// Returns the canonical name of an item that differs, or a message that only one module has it; `None` if the modules
/// are equal. The name is `<private 0>` and so on for a private function that public ones reach, and the position, as
/// in `<3>`, for a statement without a name.
pub fn first_difference(a: &Module, b: &Module) -> Option<String> {
    let (a, b) = (canonical(a), canonical(b));
    let missing = |from: &Canonical, of: &Canonical| from.keys().find(|name| !of.contains_key(*name)).cloned();
    if let Some(name) = missing(&a, &b) {
        return Some(format!("only the first has {name}"));
    }
    if let Some(name) = missing(&b, &a) {
        return Some(format!("only the second has {name}"));
    }
    a.iter().find(|(name, item)| !b.get(*name).is_some_and(|other| item.is_same(other))).map(|(name, _)| name.clone())
}

/// Whether two functions of a module are equal up to their own names (also in `global_symbol`), the flag `private`, and
/// the names that they bind.
pub fn same_function(a: &RelaxFunction, b: &RelaxFunction) -> bool {
    let (globals, constants) = (NameMap::default(), Constants::default());
    let canonical = |function: &RelaxFunction| {
        let mut function = function.clone();
        let mut numbering = Numbering::new(&globals, &constants);
        numbering.function(&mut function);
        // The canonical form has numbers instead of constants of the metadata section; `numbers` maps each such constant
        // to its number.
        (function, numbering.numbers)
    };
    let ((a, of_a), (b, of_b)) = (canonical(a), canonical(b));
    a == b && of_a == of_b
}

/// The canonical forms of the module's items, by canonical name.
type Canonical = BTreeMap<String, CanonicalItem>;

#[derive(Debug)]
enum CanonicalItem {
    /// A Relax function, and the data of the constants that it uses, in order of first use; `None` for a constant whose
    /// data is unknown.
    Relax(Box<RelaxFunction>, Vec<Option<ConstantData>>),
    /// A prim_func: its attributes, its loops printed without names (`None` if the loop-level IR cannot represent
    /// them), and its source text from the parameters on. The text is empty for a prim_func without source text.
    Loops { attributes: Vec<(Arc<str>, Attr)>, loops: Option<String>, text: String },
    /// Another statement of the module, as text.
    Text(String),
}

impl CanonicalItem {
    /// Whether two items are equal. A constant whose data one side does not know equals any constant.
    fn is_same(&self, other: &CanonicalItem) -> bool {
        match (self, other) {
            (CanonicalItem::Relax(a, own), CanonicalItem::Relax(b, others)) => {
                let same =
                    |(a, b): (&Option<ConstantData>, &Option<ConstantData>)| a.is_none() || b.is_none() || a == b;
                a == b && own.len() == others.len() && own.iter().zip(others).all(same)
            }
            // The loops are compared if both sides have them. Otherwise the source texts are compared.
            (
                CanonicalItem::Loops { attributes: a, loops: own, text },
                CanonicalItem::Loops { attributes: b, loops: others, text: other_text },
            ) => {
                let same = match (own, others) {
                    (Some(own), Some(others)) => own == others,
                    _ => text == other_text,
                };
                a == b && same
            }
            (CanonicalItem::Text(a), CanonicalItem::Text(b)) => a == b,
            _ => false,
        }
    }
}

fn canonical(module: &Module) -> Canonical {
    let globals = global_names(module);
    let item = |(at, item): (usize, &Item<_>)| {
        let own = item.name();
        let key = own.and_then(|own| globals.get(&own).copied()).map_or(format!("<{at}>"), |name| name.to_string());
        let value = match item {
            Item::Relax(function) => {
                let mut function = RelaxFunction::clone(function);
                let mut numbering = Numbering::new(&globals, &module.constants);
                numbering.function(&mut function);
                CanonicalItem::Relax(Box::new(function), numbering.data)
            }
            Item::Loops(function) => canonical_loops(function),
            Item::Text { text, .. } => CanonicalItem::Text(text.to_string()),
        };
        (key, value)
    };
    module.items.iter().enumerate().map(item).collect()
}

fn canonical_loops(function: &LoopFunction<PrimFunc>) -> CanonicalItem {
    let LoopFunction { name: own, attributes, body, .. } = function;
    let mut attributes: Vec<_> = attributes.iter().filter(|(key, _)| &**key != "global_symbol").cloned().collect();
    attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
    attributes.iter_mut().for_each(|(_, attr)| truth(attr));
    let text = match body {
        LoopBody::Made(_) => String::new(),
        LoopBody::Written { before, after, .. } => {
            let header = before.find("def ").and_then(|def| before.get(def..)).unwrap_or_default();
            header.replacen(&format!("def {own}("), "def (", 1) + after
        }
    };
    CanonicalItem::Loops { attributes, loops: function.loops().map(|loops| nameless(loops)), text }
}

/// Prints a prim_func in a canonical form: variables and buffers are renamed by number, all blocks except `root` have
/// the same name, and the `int64` extents of buffers are normalized. Names of handles without a buffer remain.
pub(crate) fn nameless(loops: &PrimFunc) -> String {
    let mut loops = rx_tir::renumber::renumber(loops);
    (0..).zip(&mut loops.vars).for_each(|(at, var): (usize, _)| var.name = name(&format!("v{at}")));
    (0..).zip(&mut loops.buffers).for_each(|(at, buffer): (usize, _)| buffer.name = name(&format!("b{at}")));
    loops.body = nameless_blocks(&loops.body);
    settle_extents(&mut loops);
    let header = rx_tir::print::Header { name: "f", private: true, attributes: "" };
    rx_tir::print::script_with(&loops, &header)
}

/// Normalizes the `int64` extents of buffers, so that `n * 2` and `2 * n` are printed alike.
fn settle_extents(loops: &mut PrimFunc) {
    let vars: NameMap<rx_tir::Expr> =
        (0..).zip(&loops.vars).map(|(at, var)| (var.name, loops.var_expr(rx_tir::VarId(at)))).collect();
    let settled = |extent: &rx_tir::Expr| {
        let dim = rx_tir::to_dim(extent, &|var| Some(Dim::symbol(loops.var(var).name)));
        let is_int64 = extent.dtype() == DType::INT64;
        let dim = dim.filter(|dim| is_int64 && !dim.is_error());
        dim.map(|dim| rx_tir::of_dim(&dim, &mut |symbol, _| vars.get(&symbol).cloned().unwrap_or(rx_tir::Expr::int(0))))
    };
    let mut buffers = loops.buffers.clone();
    for extent in buffers.iter_mut().flat_map(|buffer| &mut buffer.shape) {
        if let Some(settled) = settled(extent) {
            *extent = settled;
        }
    }
    loops.buffers = buffers;
}

/// Returns the canonical name of every item that has a name. A public one keeps its name. Private ones are numbered in
/// the order in which public functions, sorted by name, and then the private ones found, first refer to them; one that
/// none of these refers to keeps its name.
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
    // A private function that no public function reaches keeps its name.
    module.items.iter().filter_map(Item::name).for_each(|own| {
        names.entry(own).or_insert(own);
    });
    names
}

/// Gives all blocks the same name, except the `root` block, which holds the function's buffers.
fn nameless_blocks(stmt: &Stmt) -> Stmt {
    let mut stmt = rx_tir::rewrite::map_children(stmt, &mut nameless_blocks);
    if let Stmt::Block(block) = &mut stmt
        && block.name != "root"
    {
        block.name = name("block");
    }
    stmt
}

/// The renaming of one function to its canonical form.
struct Numbering<'a> {
    globals: &'a NameMap<Name>,
    variables: NameMap<Name>,
    /// The number of parameters and bindings so far. It exceeds the number of names in `variables` if a name is bound
    /// twice, for example in both branches of an `if`.
    defined: usize,
    symbols: NameMap<Name>,
    constants: &'a Constants,
    /// The numbers of the constants found so far, by key and index.
    numbers: HashMap<(Name, u32), u32>,
    /// The data of these constants, by number.
    data: Vec<Option<ConstantData>>,
}

impl<'a> Numbering<'a> {
    fn new(globals: &'a NameMap<Name>, constants: &'a Constants) -> Numbering<'a> {
        let (variables, symbols) = (NameMap::default(), NameMap::default());
        Numbering { globals, variables, defined: 0, symbols, constants, numbers: HashMap::new(), data: Vec::new() }
    }

    /// Numbers a constant of the metadata section and drops its type. Also drops the type of an expression with such an
    /// operand, or with a tuple of one. The types cannot be inferred where the constant's data is unknown.
    fn constant(&mut self, expr: &mut Expr) {
        if let ExprKind::Metadata { key, index } = &mut expr.kind {
            let next = self.data.len();
            let number = *self.numbers.entry((*key, *index)).or_insert_with(|| {
                self.data.push(self.constants.get(*key, *index).cloned());
                u32::try_from(next).unwrap_or(u32::MAX)
            });
            (*key, *index) = (name(""), number);
            expr.ty = StructInfo::Object;
            return;
        }
        let mut holds_one = false;
        expr.each_child(&mut |child| holds_one |= matches!(child.kind, ExprKind::Metadata { .. }));
        let is_tuple = |child: &Expr| matches!(child.kind, ExprKind::Tuple(_)) && child.ty == StructInfo::Object;
        expr.each_child(&mut |child| holds_one |= is_tuple(child));
        if holds_one {
            expr.ty = StructInfo::Object;
        }
    }

    fn define(&mut self, variable: &mut Name) {
        // `_` is numbered as well: expressions may refer to it like to any other name.
        let own = name(&format!("v{}", self.defined));
        self.defined += 1;
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
            self.constant(expr);
            match &mut expr.kind {
                ExprKind::Global(global) => *global = self.globals.get(global).copied().unwrap_or(*global),
                ExprKind::Call(call) => {
                    if let Callee::Global(global) = &mut Arc::make_mut(call).callee {
                        *global = self.globals.get(global).copied().unwrap_or(*global);
                    }
                }
                // Other expressions name no functions, except source text, which is compared as it is.
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
                // The variable is defined before the function's body, which may call it recursively.
                self.define(&mut binding.variable);
                self.ty(&mut binding.ty);
                return self.function(Arc::make_mut(function));
            }
        }
        let is_symbol = binding.variable;
        self.define(&mut binding.variable);
        // A variable of a scalar type also defines the symbolic dim of the same name.
        if self.symbols.contains_key(&is_symbol) || binding.ty.symbols().contains(&is_symbol) {
            self.meet(is_symbol);
        }
        self.ty(&mut binding.ty);
    }
}

/// Converts a boolean attribute to an integer, since Python's `True` and `1` are equal.
fn truth(attr: &mut Attr) {
    if let Attr::Bool(value) = attr {
        *attr = Attr::Int(Dim::constant(i64::from(*value)));
    }
}
