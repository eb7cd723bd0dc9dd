//! Operators that a project declares in `rx.toml`: the schemas that are made for them, and the struct-info rule that
//! interprets their declarations.
//!
//! A declaration gives the types of the operands and of the result as patterns over dims, dtypes and attributes
//! ([`pattern`]). The private module `rule` matches a call with these patterns. For example, an operand pattern
//! `[n, k]` binds `n` and `k`, and a result pattern `[n]` uses `n`.

pub mod pattern;
mod rule;

use crate::call::{CallInfo, Problem};
use crate::cost::Cost;
use crate::schema::{AttrKind, Default, Param, ParamKind, Purity, Schema, Traits};
use pattern::{Condition, TypePattern};
use rule::infer;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Name};
use rx_ir::StructInfo;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A declared operator, as read from the project's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Its name without `R.`.
    pub name: Name,
    /// A description of its computation.
    pub doc: String,
    /// Whether calls have no side effects.
    pub pure: bool,
    /// Its parameters: operands first, then attributes.
    pub params: Vec<DeclaredParam>,
    /// Dtype variables that accept only some dtypes, with these dtypes.
    pub dtypes: Vec<(Name, Vec<DType>)>,
    /// Conditions on dims and attributes that a call must satisfy, each with its source text.
    pub constraints: Vec<(Condition, String)>,
    /// The type of the result.
    pub result: TypePattern,
    /// The source text of the result type.
    pub result_text: String,
}

/// A parameter of a declared operator.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredParam {
    /// Its name.
    pub name: Name,
    /// Its meaning.
    pub doc: String,
    /// The kind of argument that it accepts.
    pub takes: Takes,
}

/// The kind of argument that a declared parameter accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum Takes {
    /// A value computed at run time.
    Operand {
        /// Its type.
        ty: TypePattern,
        /// The source text of the type.
        text: String,
        /// Whether the operand is optional.
        optional: bool,
        /// Whether the parameter accepts any number of operands.
        variadic: bool,
    },
    /// A value that is fixed in the program's text.
    Attr {
        /// Its kind.
        kind: DeclaredAttr,
        /// The value that applies if the attribute is left out; `None` if the attribute is required.
        default: Option<DeclaredDefault>,
        /// The minimum of a number, inclusive.
        least: Option<f64>,
        /// The maximum of a number, inclusive.
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
    /// A list of integers.
    Ints,
    /// A list of numbers.
    Floats,
    /// A list of strings.
    Strs,
    /// A layout.
    Layout,
    /// Any value.
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
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of numbers.
    Floats(Vec<f64>),
}

/// A declared operator with its schema.
#[derive(Debug)]
pub struct Operator {
    /// The schema made of the declaration, which argument checks, hover and completion read.
    pub schema: Schema,
    /// The declaration.
    pub declaration: Declaration,
}

/// The operators that a project declares, by name. Equal declarations are interned as one [`Operator`], so equality
/// compares addresses.
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
    /// Creates the set of these operators. If a name occurs twice, the first declaration wins.
    pub fn new(declarations: impl IntoIterator<Item = Declaration>) -> Operators {
        let mut operators = Operators::default();
        for declaration in declarations {
            let operator = intern(declaration);
            operators.by_name.entry(operator.declaration.name).or_insert(operator);
        }
        operators
    }

    /// Whether the project declares no operators.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns the operator called `name`.
    pub fn find(&self, name: Name) -> Option<&'static Operator> {
        self.by_name.get(&name).copied()
    }

    /// Returns all operators, sorted by name.
    pub fn all(&self) -> impl Iterator<Item = &'static Operator> {
        let mut all: Vec<&'static Operator> = self.by_name.values().copied().collect();
        all.sort_by_key(|operator| operator.schema.name);
        all.into_iter()
    }
}

/// All declarations seen so far. Schemas have the lifetime `'static`, as interned names do, so declarations are leaked.
/// An equal declaration is reused, so memory grows with the number of distinct declarations, not with the number of
/// times that they are read.
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

/// Interns a string for the life of the process.
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
        traits: Traits::OPAQUE,
    }
}

/// The struct-info rule of all declared operators: finds the declaration whose schema is called and applies it.
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

/// The documentation of an operator or attribute without a `doc` text.
const WITHOUT_DOC: &str = "Declared in rx.toml.";

/// Returns the documentation of a declared operator: its `doc` text, then its result type and constraints.
fn operator_doc(declaration: &Declaration) -> String {
    let mut doc = match declaration.doc.as_str() {
        "" => WITHOUT_DOC.to_owned(),
        doc => doc.to_owned(),
    };
    doc += &format!(" Gives `{}`", declaration.result_text);
    for (at, (_, constraint)) in declaration.constraints.iter().enumerate() {
        doc += &format!("{} `{constraint}`", if at == 0 { ", where" } else { " and" });
    }
    doc + "."
}

/// Returns the documentation of a parameter: its `doc` text, then its declared type or, for a choice, the allowed
/// strings; [`WITHOUT_DOC`] if it has neither.
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
    if said.is_empty() { WITHOUT_DOC.to_owned() } else { said.join("; ") + "." }
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
