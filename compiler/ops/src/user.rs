//! Operators that a user declares: their schemas beside the built-in ones, and their struct-info rules, which are data.
//!
//! A declaration says what a call takes and what it gives in patterns over the arguments' dims, dtypes and attributes
//! ([`pattern`]); `rule` matches a call with them.

pub mod pattern;
mod rule;

use crate::call::{CallInfo, Problem};
use crate::cost::Cost;
use crate::schema::{AttrKind, Default, Flow, Param, ParamKind, Purity, Schema};
use pattern::{Condition, TypePattern};
use rule::infer;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Name};
use rx_ir::StructInfo;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// An operator as it is declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Its name without `R.`.
    pub name: Name,
    /// What it computes.
    pub doc: String,
    /// Whether calls have no effect besides their value.
    pub pure: bool,
    /// What a call passes: operands, then attributes.
    pub params: Vec<DeclaredParam>,
    /// Dtype variables that stand for some dtypes only.
    pub dtypes: Vec<(Name, Vec<DType>)>,
    /// What must hold of dims and attributes, and as it is written.
    pub constraints: Vec<(Condition, String)>,
    /// What a call gives.
    pub result: TypePattern,
    /// What a call gives, as it is written.
    pub result_text: String,
}

/// A parameter as it is declared.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredParam {
    /// Its name.
    pub name: Name,
    /// What it means.
    pub doc: String,
    /// What it takes.
    pub takes: Takes,
}

/// What a declared parameter takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Takes {
    /// A value computed at run time.
    Operand {
        /// Its type.
        ty: TypePattern,
        /// The type as it is written.
        text: String,
        /// Whether it may be left out.
        optional: bool,
        /// Whether it stands for any number of operands.
        variadic: bool,
    },
    /// A value known when the program is written.
    Attr {
        /// Its kind.
        kind: DeclaredAttr,
        /// What stands for it when it is left out; it must be given where there is none.
        default: Option<DeclaredDefault>,
        /// The least value, of a number.
        least: Option<f64>,
        /// The largest value, of a number.
        most: Option<f64>,
    },
}

/// The kind of a declared attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum DeclaredAttr {
    /// An integer.
    Int,
    /// A number.
    Float,
    /// A boolean.
    Bool,
    /// Any string.
    Str,
    /// One of these strings.
    Choice(Vec<String>),
    /// A dtype.
    DType,
    /// Integers.
    Ints,
    /// Numbers.
    Floats,
    /// Strings.
    Strs,
    /// A layout.
    Layout,
    /// Anything.
    Any,
}

/// A declared default value.
#[derive(Clone, Debug, PartialEq)]
pub enum DeclaredDefault {
    /// `None`.
    Absent,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    Str(String),
    /// Integers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
}

/// A declared operator with its schema.
#[derive(Debug)]
pub struct Operator {
    /// As checks of arguments, hover and completion see it.
    pub schema: Schema,
    /// As it was declared.
    pub declaration: Declaration,
}

/// The operators a project declares, by name. Equal declarations are one value, so that comparing is comparing addresses.
#[derive(Clone, Default)]
pub struct Operators {
    by_name: NameMap<&'static Operator>,
}

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl PartialEq for Operators {
    fn eq(&self, other: &Operators) -> bool {
        let (a, b) = (&self.by_name, &other.by_name);
        a.len() == b.len() && a.iter().all(|(name, one)| b.get(name).is_some_and(|other| std::ptr::eq(*one, *other)))
    }
}

impl Operators {
    /// These operators; of two of one name the first.
    pub fn new(declarations: impl IntoIterator<Item = Declaration>) -> Operators {
        let mut operators = Operators::default();
        for declaration in declarations {
            let operator = intern(declaration);
            operators.by_name.entry(operator.declaration.name).or_insert(operator);
        }
        operators
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The operator called `name`.
    pub fn find(&self, name: Name) -> Option<&'static Operator> {
        self.by_name.get(&name).copied()
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &'static Operator> {
        let mut all: Vec<&'static Operator> = self.by_name.values().copied().collect();
        all.sort_by_key(|operator| operator.schema.name);
        all.into_iter()
    }
}

/// Every declaration seen so far. Schemas are referred to for the life of the process, as names are; a declaration that is
/// read again is the same, so that what is kept grows with the declarations that somebody wrote, not with how often.
static SEEN: LazyLock<Mutex<Vec<&'static Operator>>> = LazyLock::new(Mutex::default);

fn intern(declaration: Declaration) -> &'static Operator {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = seen.iter().find(|known| known.declaration == declaration) {
        return known;
    }
    let operator: &'static Operator = Box::leak(Box::new(Operator { schema: schema_of(&declaration), declaration }));
    seen.push(operator);
    operator
}

/// A text for the life of the process.
fn text(text: &str) -> &'static str {
    name(text).as_str()
}

fn list<T>(items: Vec<T>) -> &'static [T] {
    Box::leak(items.into_boxed_slice())
}

fn schema_of(declaration: &Declaration) -> Schema {
    Schema {
        name: declaration.name.as_str(),
        params: list(declaration.params.iter().map(param_of).collect()),
        purity: if declaration.pure { Purity::Pure } else { Purity::Impure },
        doc: text(&operator_doc(declaration)),
        reference: "rx.toml",
        cost: Cost::Uncounted,
        infer: declared,
        compute: None,
        flow: Flow::OPAQUE,
    }
}

/// The rule of all declared operators: that of the declaration which the called schema was made of.
fn declared(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let operator = seen.iter().copied().find(|operator| std::ptr::eq(&raw const operator.schema, call.schema));
    drop(seen);
    operator.map_or(Err(Problem::Propagate), |operator| infer(operator, call))
}

fn param_of(param: &DeclaredParam) -> Param {
    let (kind, default) = match &param.takes {
        Takes::Operand { variadic: true, .. } => (ParamKind::Variadic, Default::Required),
        Takes::Operand { ty, optional, .. } => {
            let kind = match ty {
                TypePattern::Tensor { .. } => ParamKind::Tensor,
                TypePattern::Shape(_) => ParamKind::Shape,
                TypePattern::Prim { .. } => ParamKind::Prim,
                _ => ParamKind::Any,
            };
            (kind, if *optional { Default::Absent } else { Default::Required })
        }
        Takes::Attr { kind, default, .. } => (ParamKind::Attr(attr_kind(kind)), default_of(default.as_ref())),
    };
    Param { name: param.name.as_str(), kind, default, doc: text(&doc_of(param)) }
}

/// What is said of an operator, with what its declaration says.
fn operator_doc(declaration: &Declaration) -> String {
    let mut doc = match declaration.doc.as_str() {
        "" => "Declared in rx.toml.".to_owned(),
        doc => doc.to_owned(),
    };
    doc += &format!(" Gives `{}`", declaration.result_text);
    for (at, (_, constraint)) in declaration.constraints.iter().enumerate() {
        doc += &format!("{} `{constraint}`", if at == 0 { ", where" } else { " and" });
    }
    doc + "."
}

/// What is said of a parameter, with what its declaration says.
fn doc_of(param: &DeclaredParam) -> String {
    let declared = match &param.takes {
        Takes::Operand { text, .. } => format!("`{text}`"),
        Takes::Attr { kind: DeclaredAttr::Choice(choices), .. } => {
            let choices: Vec<String> = choices.iter().map(|choice| format!("\"{choice}\"")).collect();
            format!("One of {}", choices.join(", "))
        }
        Takes::Attr { .. } => String::new(),
    };
    let parts = [param.doc.trim().trim_end_matches('.'), &declared];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}.", said.join("; "))
}

fn attr_kind(kind: &DeclaredAttr) -> AttrKind {
    match kind {
        DeclaredAttr::Int => AttrKind::Int,
        DeclaredAttr::Float => AttrKind::Float,
        DeclaredAttr::Bool => AttrKind::Bool,
        DeclaredAttr::Str => AttrKind::Str,
        DeclaredAttr::Choice(choices) => AttrKind::Choice(list(choices.iter().map(|choice| text(choice)).collect())),
        DeclaredAttr::DType => AttrKind::DType,
        DeclaredAttr::Ints => AttrKind::Ints,
        DeclaredAttr::Floats => AttrKind::Floats,
        DeclaredAttr::Strs => AttrKind::Strs,
        DeclaredAttr::Layout => AttrKind::Layout,
        DeclaredAttr::Any => AttrKind::Any,
    }
}

fn default_of(default: Option<&DeclaredDefault>) -> Default {
    match default {
        None => Default::Required,
        Some(DeclaredDefault::Absent) => Default::Absent,
        Some(DeclaredDefault::Bool(value)) => Default::Bool(*value),
        Some(DeclaredDefault::Int(value)) => Default::Int(*value),
        Some(DeclaredDefault::Float(value)) => Default::Float(*value),
        Some(DeclaredDefault::Str(value)) => Default::Str(text(value)),
        Some(DeclaredDefault::Ints(values)) => Default::Ints(list(values.clone())),
        Some(DeclaredDefault::Floats(values)) => Default::Floats(list(values.clone())),
    }
}
