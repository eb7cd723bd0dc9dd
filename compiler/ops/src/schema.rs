//! The shape of a schema: what an operator takes, and what is said of it.

use crate::call::Rule;
use crate::compute::{Compute, Loops};
use crate::cost::Cost;
use rx_ir::{Argument, Attr, Call, Expr};
use std::fmt;

pub use crate::flow::Flow;

/// An operator: everything rx knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Its name without `relax.`: `nn.conv2d`. In text it is `R.nn.conv2d`.
    pub name: &'static str,
    /// What a call passes, in the order of TVM's Python signature; operands and attributes mixed as there.
    pub params: &'static [Param],
    /// Whether a call has an effect besides its value.
    pub purity: Purity,
    /// What it computes, in a sentence or a few; the first sentence stands alone in completion lists.
    pub doc: &'static str,
    /// Where its definition comes from: a TVM file, an ONNX operator, a paper.
    pub reference: &'static str,
    /// What a call costs.
    pub cost: Cost,
    /// Its struct-info rule.
    pub infer: Rule,
    /// How its result is computed; `None` where rx cannot run it.
    pub compute: Option<Compute>,
    /// Which elements its result holds, and which operands are indices.
    pub flow: Flow,
}

impl Schema {
    /// The part of its page's address that leads to it: headings without their dots.
    pub fn anchor(&self) -> String {
        format!("r{}", self.name.replace('.', "").to_lowercase())
    }

    /// The address of its documentation; one that a project declares has none.
    pub fn url(&self) -> Option<String> {
        let own = crate::find(rx_base::name::name(self.name)).is_some_and(|found| std::ptr::eq(found, self));
        own.then(|| format!("{}/blob/main/docs/operators.md#{}", env!("CARGO_PKG_REPOSITORY"), self.anchor()))
    }

    /// What a call passes for the parameter called `name`; `None` where the operator has none of that name.
    pub fn argument<'c>(&self, call: &'c Call, name: &str) -> Option<&'c Argument> {
        let at = self.params.iter().position(|param| param.name == name)?;
        call.arguments.get(at)
    }

    /// The operand a call passes for the parameter called `name`.
    pub fn operand<'c>(&self, call: &'c Call, name: &str) -> Option<&'c Expr> {
        self.argument(call, name)?.as_operand()
    }

    /// The attribute a call passes for the parameter called `name`; `None` where it is absent or Python's `None`.
    pub fn attr<'c>(&self, call: &'c Call, name: &str) -> Option<&'c Attr> {
        match self.argument(call, name)? {
            Argument::Attr(Attr::None) => None,
            Argument::Attr(attr) => Some(attr),
            _ => None,
        }
    }

    /// A pure operator without parameters, which rx cannot run. The registry adds its family's reference.
    pub(crate) const fn new(name: &'static str, doc: &'static str, infer: Rule) -> Schema {
        Schema {
            name,
            params: &[],
            purity: Purity::Pure,
            doc,
            reference: "",
            cost: Cost::Uncounted,
            infer,
            compute: None,
            flow: Flow::OPAQUE,
        }
    }

    /// The operator with these parameters.
    pub(crate) const fn taking(self, params: &'static [Param]) -> Schema {
        Schema { params, ..self }
    }

    /// The operator with effects.
    pub(crate) const fn impure(self) -> Schema {
        Schema { purity: Purity::Impure, ..self }
    }

    /// The operator with a definition in another source than its family's.
    pub(crate) const fn declared_in(self, reference: &'static str) -> Schema {
        Schema { reference, ..self }
    }

    /// The operator with its family's source as its reference, unless it has its own.
    pub(crate) const fn defined_in(self, family: &'static str) -> Schema {
        if self.reference.is_empty() { self.declared_in(family) } else { self }
    }

    /// The operator at this cost.
    pub(crate) const fn costing(self, cost: Cost) -> Schema {
        Schema { cost, ..self }
    }

    /// The operator computed by loops.
    pub(crate) const fn lowered_by(self, loops: Loops) -> Schema {
        self.computed_as(Compute::Loops(loops))
    }

    /// The operator computed in this way.
    pub(crate) const fn computed_as(self, compute: Compute) -> Schema {
        Schema { compute: Some(compute), ..self }
    }

    /// The operator, with what it does with elements.
    pub(crate) const fn flowing(self, flow: Flow) -> Schema {
        Schema { flow, ..self }
    }
}

/// Whether calls have effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purity {
    /// Only a value.
    Pure,
    /// May not stand in a dataflow block or a pure function.
    Impure,
}

/// An operand or attribute of a call.
#[derive(Debug)]
pub struct Param {
    /// Its name, as in Python.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamKind,
    /// What stands for it when it is left out.
    pub default: Default,
    /// What it means, in a sentence; layouts, ranges, units.
    pub doc: &'static str,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A tensor.
    Tensor,
    /// A tuple or list of tensors, written in line or a tuple-typed variable.
    Tensors,
    /// A shape: `R.shape([…])`, a tuple of dims, or a shape-typed variable.
    Shape,
    /// A shape that is a value: `R.shape([…])` or a shape-typed variable. A tuple stays a tuple, as TVM reads it here.
    ShapeValue,
    /// A scalar: a number, an expression over symbolic dims, `R.prim_value(…)`, `T.float32(0.5)`.
    Prim,
    /// A tuple of scalars, in line or a variable: `begin` of `strided_slice`.
    Prims,
    /// Any expression.
    Any,
    /// Any number of expressions, positional; the rest are keywords.
    Variadic,
    /// A function: `cls.f`, a closure, an external name.
    Function,
    /// A tuple of arguments for a function.
    Arguments,
    /// `out_ty=` or `ty_args=`: struct infos.
    Types,
    /// An attribute: a value known when the program is written.
    Attr(AttrKind),
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttrKind {
    /// An integer.
    Int,
    /// An integer, or `None`, which means something else than the default.
    IntOrNone,
    /// A number; integers are taken as floats.
    Float,
    /// A boolean.
    Bool,
    /// Any string.
    Str,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A dtype name.
    DType,
    /// An integer or a list of integers; a single one is broadcast by the rule.
    Ints,
    /// A list of integers; a single one is none.
    IntList,
    /// A list of floats.
    Floats,
    /// A layout string such as `NCHW`.
    Layout,
    /// A list of strings.
    Strs,
    /// A virtual device.
    VDevice,
    /// A dictionary.
    Dict,
    /// Any value; the rule looks at it.
    Any,
}

/// The usual layouts of a tensor that has the dims of this one: `NCHW` and `NHWC`, `OIHW` and its like.
pub fn usual_layouts(like: &str) -> Vec<String> {
    let spatial: String = like.chars().filter(|letter| matches!(letter, 'D' | 'H' | 'W')).collect();
    let usual: &[&str] = match (like.contains('N'), like.contains('O')) {
        (true, _) => &["NC_", "N_C"],
        (_, true) => &["OI_", "IO_", "O_I", "_IO", "_OI", "I_O"],
        _ => &[],
    };
    usual.iter().map(|layout| layout.replace('_', &spatial)).collect()
}

/// What stands for an argument that is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It may not be left out.
    Required,
    /// Absent: `None`. An optional operand, or an attribute whose absence has a meaning of its own.
    Absent,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(&'static str),
    /// A list of integers.
    Ints(&'static [i64]),
    /// A list of floats.
    Floats(&'static [f64]),
}

/// What it takes, in words.
impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParamKind::Tensor => "tensor",
            ParamKind::Tensors => "tuple of tensors",
            ParamKind::Shape => "shape",
            ParamKind::ShapeValue => "shape value",
            ParamKind::Prim => "scalar",
            ParamKind::Prims => "tuple of scalars",
            ParamKind::Any => "any expression",
            ParamKind::Variadic => "any number of expressions",
            ParamKind::Function => "function",
            ParamKind::Arguments => "tuple of arguments",
            ParamKind::Types => "struct infos",
            ParamKind::Attr(kind) => return kind.fmt(f),
        })
    }
}

/// What it takes, in words; of a choice, the choices.
impl fmt::Display for AttrKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AttrKind::Int => "integer",
            AttrKind::IntOrNone => "integer or `None`",
            AttrKind::Float => "number",
            AttrKind::Bool => "boolean",
            AttrKind::Str => "string",
            AttrKind::Choice(choices) => {
                let choices: Vec<String> = choices.iter().map(|choice| format!("`\"{choice}\"`")).collect();
                return f.write_str(&choices.join(" or "));
            }
            AttrKind::DType => "dtype",
            AttrKind::Ints => "integer or integers",
            AttrKind::IntList => "list of integers",
            AttrKind::Floats => "numbers",
            AttrKind::Layout => "layout",
            AttrKind::Strs => "strings",
            AttrKind::VDevice => "virtual device",
            AttrKind::Dict => "dictionary",
            AttrKind::Any => "any value",
        })
    }
}

impl Default {
    /// As Python writes it; nothing where there is no default.
    pub fn text(self) -> Option<String> {
        Some(match self {
            Default::Required => return None,
            Default::Absent => "None".to_owned(),
            Default::Bool(value) => if value { "True" } else { "False" }.to_owned(),
            Default::Int(value) => value.to_string(),
            Default::Float(value) => format!("{value:?}"),
            Default::Str(value) => format!("\"{value}\""),
            Default::Ints(values) => format!("{values:?}"),
            Default::Floats(values) => format!("{values:?}"),
        })
    }
}

impl Param {
    /// A required operand.
    pub const fn operand(name: &'static str, kind: ParamKind, doc: &'static str) -> Param {
        Param { name, kind, default: Default::Required, doc }
    }

    /// A required tensor.
    pub const fn tensor(name: &'static str, doc: &'static str) -> Param {
        Param::operand(name, ParamKind::Tensor, doc)
    }

    /// An operand that may be left out.
    pub const fn optional(name: &'static str, kind: ParamKind, doc: &'static str) -> Param {
        Param { name, kind, default: Default::Absent, doc }
    }

    /// An attribute.
    pub const fn attr(name: &'static str, kind: AttrKind, default: Default, doc: &'static str) -> Param {
        Param { name, kind: ParamKind::Attr(kind), default, doc }
    }

    /// An attribute that may not be left out.
    pub const fn required_attr(name: &'static str, kind: AttrKind, doc: &'static str) -> Param {
        Param::attr(name, kind, Default::Required, doc)
    }

    /// An attribute whose absence has a meaning of its own.
    pub const fn optional_attr(name: &'static str, kind: AttrKind, doc: &'static str) -> Param {
        Param::attr(name, kind, Default::Absent, doc)
    }

    /// A boolean attribute.
    pub const fn flag(name: &'static str, default: bool, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Bool, Default::Bool(default), doc)
    }

    /// An integer attribute.
    pub const fn int(name: &'static str, default: i64, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Int, Default::Int(default), doc)
    }

    /// A float attribute.
    pub const fn float(name: &'static str, default: f64, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Float, Default::Float(default), doc)
    }

    /// An attribute that is one of some strings.
    pub const fn choice(
        name: &'static str,
        choices: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> Param {
        Param::attr(name, AttrKind::Choice(choices), Default::Str(default), doc)
    }

    /// A dtype attribute.
    pub const fn dtype(name: &'static str, default: &'static str, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::DType, Default::Str(default), doc)
    }

    /// A layout attribute.
    pub const fn layout(name: &'static str, default: &'static str, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Layout, Default::Str(default), doc)
    }

    /// As a signature writes it: `axis=-1`, `*args`.
    pub fn text(&self) -> String {
        match self.default {
            Default::Required if self.kind == ParamKind::Variadic => format!("*{}", self.name),
            default => match default.text() {
                Some(text) => format!("{}={text}", self.name),
                None => self.name.to_owned(),
            },
        }
    }

    /// Whether it is an attribute.
    pub const fn is_attr(&self) -> bool {
        matches!(self.kind, ParamKind::Attr(_))
    }
}
