//! The schema of an operator: its parameters, documentation, cost, and its inference, compute and data-flow rules.
//! Every operator family lists its operators in tables of [`Schema`]s; argument checks, completion, hover and the
//! documentation pages read them.

use crate::call::Rule;
use crate::compute::{Compute, Loops};
use crate::cost::Cost;
use rx_ir::{Argument, Attr, Call, Expr};
use std::fmt;

pub use crate::traits::Traits;

/// An operator: its signature, its documentation and all rules that rx has for it.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Its name without the prefix `relax.`, such as `nn.conv2d`; the text of a program spells it `R.nn.conv2d`.
    pub name: &'static str,
    /// Its parameters in the order of TVM's Python signature, in which operands and attributes are mixed.
    pub params: &'static [Param],
    /// Whether a call has side effects besides its value.
    pub purity: Purity,
    /// A description of its computation, in one sentence or a few. Completion lists show only the first sentence.
    pub doc: &'static str,
    /// The source of its definition: a TVM file, an ONNX operator or a paper.
    pub reference: &'static str,
    /// The number of operations and bytes of a call.
    pub cost: Cost,
    /// Its struct-info rule.
    pub infer: Rule,
    /// The way its result is computed; `None` where rx cannot execute the operator.
    pub compute: Option<Compute>,
    /// How element values, indices and layouts propagate from the operands to the result.
    pub traits: Traits,
}

impl Schema {
    /// Returns the URL fragment of the operator's heading in docs/operators.md: `nn.conv2d` becomes `rnnconv2d`, since
    /// GitHub's anchors of headings drop dots.
    pub fn anchor(&self) -> String {
        format!("r{}", self.name.replace('.', "").to_lowercase())
    }

    /// Returns the address of the operator's documentation; `None` for an operator that a project declares, which has
    /// no page.
    pub fn url(&self) -> Option<String> {
        let own = crate::find(rx_base::name::name(self.name)).is_some_and(|found| std::ptr::eq(found, self));
        own.then(|| format!("{}/blob/main/docs/operators.md#{}", env!("CARGO_PKG_REPOSITORY"), self.anchor()))
    }

    /// Returns the argument that a call passes for the parameter called `name`; `None` if the operator has no such
    /// parameter.
    pub fn argument<'c>(&self, call: &'c Call, name: &str) -> Option<&'c Argument> {
        let at = self.params.iter().position(|param| param.name == name)?;
        call.arguments.get(at)
    }

    /// Returns the operand that a call passes for the parameter called `name`.
    pub fn operand<'c>(&self, call: &'c Call, name: &str) -> Option<&'c Expr> {
        self.argument(call, name)?.as_operand()
    }

    /// Returns the attribute that a call passes for the parameter called `name`; `None` if it is absent or Python's
    /// `None`.
    pub fn attr<'c>(&self, call: &'c Call, name: &str) -> Option<&'c Attr> {
        match self.argument(call, name)? {
            Argument::Attr(Attr::None) => None,
            Argument::Attr(attr) => Some(attr),
            _ => None,
        }
    }

    /// Creates a pure operator without parameters and without a compute rule. Its reference is empty until the registry
    /// sets the reference of its family.
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
            traits: Traits::OPAQUE,
        }
    }

    /// Returns the operator with these parameters.
    pub(crate) const fn taking(self, params: &'static [Param]) -> Schema {
        Schema { params, ..self }
    }

    /// Returns the operator, marked as impure.
    pub(crate) const fn impure(self) -> Schema {
        Schema { purity: Purity::Impure, ..self }
    }

    /// Returns the operator with `reference` in place of its family's reference.
    pub(crate) const fn declared_in(self, reference: &'static str) -> Schema {
        Schema { reference, ..self }
    }

    /// Returns the operator with its family's reference, unless it already has a separate one.
    pub(crate) const fn defined_in(self, family: &'static str) -> Schema {
        if self.reference.is_empty() { self.declared_in(family) } else { self }
    }

    /// Returns the operator with this cost.
    pub(crate) const fn costing(self, cost: Cost) -> Schema {
        Schema { cost, ..self }
    }

    /// Returns the operator, computed by the loops that `loops` emits.
    pub(crate) const fn lowered_by(self, loops: Loops) -> Schema {
        self.computed_as(Compute::Loops(loops))
    }

    /// Returns the operator, computed as `compute` states.
    pub(crate) const fn computed_as(self, compute: Compute) -> Schema {
        Schema { compute: Some(compute), ..self }
    }

    /// Returns the operator with these data-flow rules.
    pub(crate) const fn with_traits(self, traits: Traits) -> Schema {
        Schema { traits, ..self }
    }
}

/// Whether calls of an operator have side effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purity {
    /// A call has no effect besides its value.
    Pure,
    /// A call has side effects, so it may not appear in a dataflow block or a pure function.
    Impure,
}

/// A parameter of an operator: an operand or an attribute.
#[derive(Debug)]
pub struct Param {
    /// Its name, as in Python.
    pub name: &'static str,
    /// The kind of argument that it accepts.
    pub kind: ParamKind,
    /// The value that applies if the argument is left out.
    pub default: Default,
    /// Its meaning in one sentence: layouts, ranges, units.
    pub doc: &'static str,
}

/// The kind of argument that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// A tensor.
    Tensor,
    /// A tuple or list of tensors, written inline or passed as a variable with a tuple type.
    Tensors,
    /// A shape: `R.shape([…])`, a tuple of dims, or a shape-typed variable.
    Shape,
    /// A shape that is one value: `R.shape([…])` or a shape-typed variable. Unlike for `Shape`, a tuple of dims stays a
    /// tuple, as in TVM.
    ShapeValue,
    /// A scalar: a number, an expression over symbolic dims, `R.prim_value(…)`, `T.float32(0.5)`.
    Prim,
    /// A tuple of scalars, written inline or passed as a variable: `begin` of `strided_slice`.
    Prims,
    /// Any expression.
    Any,
    /// Any number of positional expressions; the parameters after it can only be passed by keyword.
    Variadic,
    /// A function: `cls.f`, a closure, an external name.
    Function,
    /// A tuple of arguments for a function.
    Arguments,
    /// `out_ty=` or `ty_args=`: struct infos.
    Types,
    /// An attribute: a value that is fixed in the program's text.
    Attr(AttrKind),
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttrKind {
    /// An integer.
    Int,
    /// An integer, or `None` with a meaning that differs from the default's.
    IntOrNone,
    /// A number; an integer is converted to a float.
    Float,
    /// A boolean.
    Bool,
    /// Any string.
    Str,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A dtype name.
    DType,
    /// An integer or a list of integers; the operator's rule broadcasts a single integer.
    Ints,
    /// A list of integers; a single integer is rejected.
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
    /// Any value; the operator's rule checks it.
    Any,
}

/// Returns the usual layouts of a tensor with the axes of `like`. For example, `NCHW` gives `NCHW` and `NHWC`; `OIHW`
/// gives `OIHW`, `IOHW`, `OHWI`, `HWIO`, and two more.
pub fn usual_layouts(like: &str) -> Vec<String> {
    let spatial: String = like.chars().filter(|letter| matches!(letter, 'D' | 'H' | 'W')).collect();
    let usual: &[&str] = match (like.contains('N'), like.contains('O')) {
        (true, _) => &["NC_", "N_C"],
        (_, true) => &["OI_", "IO_", "O_I", "_IO", "_OI", "I_O"],
        _ => &[],
    };
    usual.iter().map(|layout| layout.replace('_', &spatial)).collect()
}

/// The value that applies if an argument is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// The argument is required.
    Required,
    /// `None`: an optional operand, or an attribute for which absence has a separate meaning.
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

/// Describes the kind of argument in words.
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

/// Describes the type of the attribute in words; lists the allowed strings of a `Choice`.
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
    /// Returns the default as Python text; `None` if the argument is required.
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
    /// Creates a required operand.
    pub const fn operand(name: &'static str, kind: ParamKind, doc: &'static str) -> Param {
        Param { name, kind, default: Default::Required, doc }
    }

    /// Creates a required tensor operand.
    pub const fn tensor(name: &'static str, doc: &'static str) -> Param {
        Param::operand(name, ParamKind::Tensor, doc)
    }

    /// Creates an optional operand.
    pub const fn optional(name: &'static str, kind: ParamKind, doc: &'static str) -> Param {
        Param { name, kind, default: Default::Absent, doc }
    }

    /// Creates an attribute.
    pub const fn attr(name: &'static str, kind: AttrKind, default: Default, doc: &'static str) -> Param {
        Param { name, kind: ParamKind::Attr(kind), default, doc }
    }

    /// Creates a required attribute.
    pub const fn required_attr(name: &'static str, kind: AttrKind, doc: &'static str) -> Param {
        Param::attr(name, kind, Default::Required, doc)
    }

    /// Creates an attribute for which absence has a separate meaning.
    pub const fn optional_attr(name: &'static str, kind: AttrKind, doc: &'static str) -> Param {
        Param::attr(name, kind, Default::Absent, doc)
    }

    /// Creates a boolean attribute.
    pub const fn flag(name: &'static str, default: bool, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Bool, Default::Bool(default), doc)
    }

    /// Creates an integer attribute.
    pub const fn int(name: &'static str, default: i64, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Int, Default::Int(default), doc)
    }

    /// Creates a float attribute.
    pub const fn float(name: &'static str, default: f64, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Float, Default::Float(default), doc)
    }

    /// Creates an attribute that accepts one of `choices`.
    pub const fn choice(
        name: &'static str,
        choices: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> Param {
        Param::attr(name, AttrKind::Choice(choices), Default::Str(default), doc)
    }

    /// Creates a dtype attribute.
    pub const fn dtype(name: &'static str, default: &'static str, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::DType, Default::Str(default), doc)
    }

    /// Creates a layout attribute.
    pub const fn layout(name: &'static str, default: &'static str, doc: &'static str) -> Param {
        Param::attr(name, AttrKind::Layout, Default::Str(default), doc)
    }

    /// Returns the parameter as a signature shows it: `axis=-1`, `*args`.
    pub fn text(&self) -> String {
        match self.default {
            Default::Required if self.kind == ParamKind::Variadic => format!("*{}", self.name),
            default => match default.text() {
                Some(text) => format!("{}={text}", self.name),
                None => self.name.to_owned(),
            },
        }
    }

    /// Whether the parameter is an attribute.
    pub const fn is_attr(&self) -> bool {
        matches!(self.kind, ParamKind::Attr(_))
    }
}
