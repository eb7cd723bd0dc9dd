//! The symbolic dims that a function's signature declares, in any dialect.
//!
//! TVM's rule (`python/tvm/script/parser/core/parser.py`): a `TypeVar` of the module belongs to every function whose
//! annotations use it, also in strings. In classic text, dims are quoted and declared in the body. For example, each of
//! these functions declares `n`:
//!
//! ```text
//! n = TypeVar("n")                                     # TVM 0.27
//! def f(x: R.Tensor((n, "n + 1"))): …
//!
//! def f[n](x: R.Tensor((n, n + 1))): …                 # TVM 0.27 on Python 3.12
//!
//! def f(x: R.Tensor(("n", "n + 1"))):                  # classic
//!     n = T.int64()
//! ```

use std::sync::Arc;

use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_base::name::{Name, NameSet, name};

use super::canonical::{bare, dim_argument, dims, parameter_name, path};
use crate::ast::{Expr, ExprKind, Parameter, StatementKind};
use crate::{Cursor, Segment};

/// The parts of a `def` that contain types.
#[derive(Clone, Copy)]
pub(crate) struct Signature<'a> {
    pub(crate) params: &'a [Parameter],
    pub(crate) ret: Option<&'a Expr>,
    pub(crate) cursor: Cursor<'a>,
}

impl<'a> Signature<'a> {
    /// The annotations, left to right; the return type is last.
    pub(crate) fn annotations(&self) -> impl Iterator<Item = (&'a Expr, Cursor<'a>)> + use<'a> {
        let cursor = self.cursor;
        let params = self.params.iter();
        let params = params.filter_map(move |p| Some((p.tree.annotation.as_ref()?, cursor.parameter(p))));
        params.chain(self.ret.map(|ret| (ret, cursor)))
    }
}

/// The form of a name in a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoting {
    Bare,
    /// The only content of a string: `"n"`.
    Alone,
    /// Part of a longer string: `"n + 1"`.
    Compound,
}

/// A symbolic dim of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: Name,
    pub(crate) dtype: DType,
    /// Whether some annotation uses it. A type parameter may be used only in the body.
    pub(crate) in_signature: bool,
    /// Whether a line `n = T.int64()` of the body declares it.
    pub(crate) in_body: bool,
}

/// The declarations of names in a function's body and around the function.
pub(crate) struct Surroundings<'a> {
    /// The names with a `TypeVar` in the file.
    pub(crate) type_vars: &'a NameSet,
    /// Whether a name is a dim of an enclosing function.
    pub(crate) is_outer: &'a dyn Fn(&Name) -> bool,
    /// The lines `n = T.int64()` in its body: the line's index and the dtype, by name.
    pub(crate) declarations: &'a FxHashMap<Name, (usize, DType)>,
    /// Whether it is a prim_func, where a dim without a declaration is an `int32`.
    pub(crate) prim: bool,
}

/// Returns the dims that `signature` declares, in order of appearance.
pub(crate) fn symbols(signature: Signature<'_>, type_params: &[Name], around: &Surroundings<'_>) -> Vec<Symbol> {
    let mut occurrences = Vec::new();
    for (annotation, cursor) in signature.annotations() {
        collect(annotation, cursor, Quoting::Bare, &mut occurrences);
    }
    let cursor = signature.cursor;
    let params = signature.params.iter();
    let params: NameSet = params.filter_map(|p| parameter_name(&p.tree, cursor.parameter(p))).collect();
    let mut named: Vec<Named> = Vec::new();
    let mut seen = FxHashMap::default();
    for (name, quoting) in occurrences {
        if params.contains(&name) || (around.is_outer)(&name) {
            continue;
        }
        let at = *seen.entry(name).or_insert_with(|| {
            named.push(Named { name, bare_first: quoting == Quoting::Bare, alone: false, quoted: false });
            named.len() - 1
        });
        if let Some(entry) = named.get_mut(at) {
            entry.alone |= quoting == Quoting::Alone;
            entry.quoted |= quoting != Quoting::Bare;
        }
    }
    let own_params: NameSet = type_params.iter().copied().collect();
    let mut found: Vec<Symbol> = Vec::new();
    for named in named {
        let module_wide = own_params.contains(&named.name) || around.type_vars.contains(&named.name);
        found.extend(symbol(&named, module_wide, around));
    }
    for &name in type_params {
        if !seen.contains_key(&name) {
            found.push(Symbol { name, dtype: DType::INT64, in_signature: false, in_body: false });
        }
    }
    found
}

/// The forms in which the annotations of a signature use a name.
struct Named {
    name: Name,
    /// Whether the first use is without quotes.
    bare_first: bool,
    /// Whether some string contains only this name.
    alone: bool,
    /// Whether some string contains this name.
    quoted: bool,
}

/// Returns the dim that a name denotes; `None` if nothing declares it. A quoted name alone, `"n"`, declares itself. If
/// the annotations use a `TypeVar` `n`, then `n = T.int64()` in the body denotes the same dim, as in TVM. In a Relax
/// function this line does not declare a name whose first use in the signature is without quotes: printing a
/// declaration would hide that error. (In a prim_func TVM prints `elem_offset=offset` in this way.)
fn symbol(named: &Named, module_wide: bool, around: &Surroundings<'_>) -> Option<Symbol> {
    let Named { name, bare_first, alone, quoted } = *named;
    if bare_first && !module_wide && !around.prim {
        return None;
    }
    let declared = around.declarations.get(&name).map(|(_, dtype)| *dtype);
    let found = |dtype, in_body| Some(Symbol { name, dtype, in_signature: true, in_body });
    match declared {
        Some(dtype) if alone || quoted || dtype == DType::INT64 => found(dtype, true),
        _ if module_wide => found(DType::INT64, false),
        _ if alone => found(if around.prim { DType::INT32 } else { DType::INT64 }, false),
        _ => None,
    }
}

/// Whether a dim of the signature is a quoted name.
pub(crate) fn has_quoted_name(signature: &Signature<'_>) -> bool {
    let mut occurrences = Vec::new();
    for (annotation, cursor) in signature.annotations() {
        collect(annotation, cursor, Quoting::Bare, &mut occurrences);
    }
    occurrences.iter().any(|(_, quoting)| *quoting == Quoting::Alone)
}

/// Returns the names in an expression that are neither functions nor modules.
pub(crate) fn names(expr: &Expr, cursor: Cursor<'_>) -> Vec<Name> {
    let mut occurrences = Vec::new();
    collect(expr, cursor, Quoting::Bare, &mut occurrences);
    occurrences.into_iter().map(|(name, _)| name).collect()
}

fn collect(root: &Expr, cursor: Cursor<'_>, quoting: Quoting, out: &mut Vec<(Name, Quoting)>) {
    // An explicit stack, since a chain of operators may be deeper than the machine's stack allows.
    let mut stack = vec![(root, false)];
    while let Some((expr, is_dim)) = stack.pop() {
        match &expr.kind {
            ExprKind::Name => out.push((name(cursor.text(expr.tokens.start)), quoting)),
            ExprKind::Attribute { value, .. } => {
                if path(expr, cursor).is_none() {
                    stack.push((value, false));
                }
            }
            ExprKind::String if is_dim => collect_quoted(expr, cursor, out),
            ExprKind::Parenthesized(inner) => stack.push((inner, is_dim)),
            ExprKind::Call { callee, arguments } => {
                let callee_path = path(callee, cursor);
                let holder = callee_path.as_deref().and_then(|callee| dim_argument(callee, arguments, cursor));
                for (at, argument) in arguments.iter().enumerate().rev() {
                    if Some(at) == holder && !dims(&argument.value).is_empty() {
                        stack.extend(dims(&argument.value).iter().rev().map(|dim| (dim, true)));
                    } else {
                        stack.push((&argument.value, Some(at) == holder && argument.keyword.is_some()));
                    }
                }
                if callee_path.is_none() {
                    stack.push((callee, false));
                }
            }
            _ => stack.extend(expr.children().into_iter().rev().map(|child| (child, false))),
        }
    }
}

fn collect_quoted(expr: &Expr, cursor: Cursor<'_>, out: &mut Vec<(Name, Quoting)>) {
    let Some(quoted) = QuotedDim::read(expr, cursor) else { return };
    quoted.with(|inner, cursor| {
        let quoting = if matches!(bare(inner).kind, ExprKind::Name) { Quoting::Alone } else { Quoting::Compound };
        let mut inside = Vec::new();
        collect(inner, cursor, quoting, &mut inside);
        out.extend(inside);
    });
}

/// The parsed expression of a quoted dim.
pub(crate) struct QuotedDim(Segment);

impl QuotedDim {
    /// Parses the content of the string `expr`; `None` if it is not an expression.
    pub(crate) fn read(expr: &Expr, cursor: Cursor<'_>) -> Option<QuotedDim> {
        let text = cursor.string_value(expr)?;
        let text = text.trim();
        if text.is_empty() || text.contains(['\n', '\r', '#', '"', '\'']) {
            return None;
        }
        let quoted = QuotedDim(Segment::new(Arc::from(text)));
        quoted.with(|_, _| ())?;
        Some(quoted)
    }

    /// Calls `look` with the expression and its cursor, and returns the result.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Expr, Cursor<'_>) -> T) -> Option<T> {
        let [statement] = &*self.0.tree().statements else { return None };
        match &statement.tree.kind {
            StatementKind::Expr(expr) if statement.tree.error.is_none() => Some(look(expr, self.0.cursor(statement))),
            _ => None,
        }
    }
}
