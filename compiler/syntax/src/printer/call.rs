//! Printing of calls, as far as the dialects differ: names, keywords, scalars in `R.call_tir`, and dims in signatures.

use rx_base::name::Name;

use super::canonical::{bare, calls_tir, dim_argument, float_call, prim_value, special_float, tir_dtype};
use super::expression::{Precedence as P, Writer};
use super::signature::{QuotedDim, names};
use super::string::quote;
use crate::Cursor;
use crate::ast::{Argument, Expr, ExprKind};
use crate::dialect::DimStyle;

impl Writer<'_> {
    /// Prints a scalar type or constant that the other dialect spells differently. In a Relax function classic
    /// `R.Prim("int64")` is `T.int64`; in attributes classic `T.bool(True)` is `True`. Returns the number of links
    /// after the name that it printed; `None` if the expression is no such scalar.
    pub(crate) fn scalar_type(&mut self, canonical: &str, rest: &[&Expr], cursor: Cursor<'_>) -> Option<usize> {
        if self.place.attributes && canonical == "T.bool" && self.leaves_classic() {
            let ExprKind::Call { arguments, .. } = &rest.first()?.kind else { return None };
            let [Argument { keyword: None, value }] = arguments.as_slice() else { return None };
            self.expr(value, cursor, P::Lambda);
            return Some(1);
        }
        if !self.place.relax {
            return None;
        }
        if self.becomes_classic() && rest.is_empty() {
            let dtype = canonical.strip_prefix("T.").filter(|_| tir_dtype(canonical).is_some())?;
            self.out.push_str("R.Prim(");
            quote(&mut self.out, dtype);
            self.out.push(')');
            return Some(0);
        }
        if !self.leaves_classic() {
            return None;
        }
        let ExprKind::Call { arguments, .. } = &rest.first()?.kind else { return None };
        let dtype = prim_type(canonical, arguments, cursor)?;
        self.out.push_str("T.");
        self.out.push_str(&dtype);
        Some(1)
    }

    pub(crate) fn arguments(&mut self, callee: &str, arguments: &[Argument], cursor: Cursor<'_>) {
        let passes_scalars = calls_tir(callee) && (self.becomes_classic() || self.leaves_classic());
        let dims = dim_argument(callee, arguments, cursor);
        for (at, argument) in arguments.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            if let Some(token) = argument.keyword {
                let keyword = self.from.canonical_keyword(cursor.text(token));
                self.out.push_str(self.to.spell_keyword(keyword));
                self.out.push('=');
                if self.absent_dtype(keyword, &argument.value, cursor) {
                    continue;
                }
            }
            match &bare(&argument.value).kind {
                ExprKind::Tuple(inputs) if at == 1 && passes_scalars => self.inputs(inputs, cursor),
                _ if dims == Some(at) => self.dim_list(&argument.value, argument.keyword.is_some(), cursor),
                _ if callee == "R.const" && at == 0 => self.constant(&argument.value, cursor),
                _ => self.expr(&argument.value, cursor, P::Lambda),
            }
        }
    }

    /// Prints the inputs of an `R.call_tir`. Classic text has `R.prim_value(n)` where current text has the scalar `n`;
    /// TVM passes both in the same position. (Scalars in `tir_vars` follow the outputs, and have the same spelling in
    /// all dialects.)
    fn inputs(&mut self, inputs: &[Expr], cursor: Cursor<'_>) {
        self.out.push('(');
        for (at, input) in inputs.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            match prim_value(input, cursor) {
                Some(scalar) if self.leaves_classic() => self.expr(scalar, cursor, P::Lambda),
                None if self.becomes_classic() && self.is_scalar(input, cursor) => {
                    self.out.push_str("R.prim_value(");
                    self.expr(input, cursor, P::Lambda);
                    self.out.push(')');
                }
                _ => self.expr(input, cursor, P::Lambda),
            }
        }
        self.out.push_str(if inputs.len() == 1 { ",)" } else { ")" });
    }

    /// Whether an input is an integer scalar: a literal, or an expression over dims.
    fn is_scalar(&self, input: &Expr, cursor: Cursor<'_>) -> bool {
        match &bare(input).kind {
            ExprKind::Integer => true,
            ExprKind::Name | ExprKind::Binary(..) | ExprKind::Unary(..) => {
                let names = names(input, cursor);
                let is_dim = |name: &Name| self.place.scope.is_some_and(|scope| scope.is_dim(name));
                !names.is_empty() && names.iter().all(is_dim)
            }
            _ => false,
        }
    }

    /// Prints an absent dtype: `None` in current text, `"void"` in classic text. Returns whether `value` was one.
    fn absent_dtype(&mut self, keyword: &str, value: &Expr, cursor: Cursor<'_>) -> bool {
        if !matches!(keyword, "out_dtype" | "dtype") {
            return false;
        }
        let value = bare(value);
        let none = matches!(value.kind, ExprKind::None);
        if self.becomes_classic() && none {
            self.out.push_str("\"void\"");
        } else if self.leaves_classic() && cursor.string_value(value).as_deref() == Some("void") {
            self.out.push_str("None");
        } else {
            return false;
        }
        true
    }

    /// Prints the value of an `R.const`. TVM prints `R.const("-inf", "float32")` but cannot parse it; it can parse
    /// `float("-inf")`, which is printed here.
    fn constant(&mut self, value: &Expr, cursor: Cursor<'_>) {
        let text = cursor.string_value(bare(value));
        let special = text.as_deref().and_then(special_float).or_else(|| float_call(value, cursor));
        match special {
            Some(special) => {
                self.out.push_str("float(");
                quote(&mut self.out, special);
                self.out.push(')');
            }
            None => self.expr(value, cursor, P::Lambda),
        }
    }

    /// Prints the argument that is a shape. Only in signatures are its dims quoted as the dialect requires.
    fn dim_list(&mut self, value: &Expr, named: bool, cursor: Cursor<'_>) {
        let is_signature = self.place.signature.is_some();
        match &value.kind {
            ExprKind::Parenthesized(inner) if is_list(inner) => self.dim_list(inner, named, cursor),
            // `(4)`, where `(4,)` is probably meant, is kept so that it is reported. `4` would have another meaning.
            ExprKind::Parenthesized(inner) => {
                self.out.push('(');
                self.dim_list(bare(inner), named, cursor);
                self.out.push(')');
            }
            _ if !is_signature => self.expr(value, cursor, P::Lambda),
            ExprKind::Tuple(dims) => {
                self.out.push('(');
                self.dims(dims, cursor);
                self.out.push_str(if dims.len() == 1 { ",)" } else { ")" });
            }
            ExprKind::List(dims) => {
                self.out.push('[');
                self.dims(dims, cursor);
                self.out.push(']');
            }
            _ if named => self.dim(value, cursor),
            _ => self.expr(value, cursor, P::Lambda),
        }
    }

    fn dims(&mut self, dims: &[Expr], cursor: Cursor<'_>) {
        for (at, dim) in dims.iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            self.dim(dim, cursor);
        }
    }

    /// Prints a dim of a signature, quoted if the dialect requires it.
    fn dim(&mut self, dim: &Expr, cursor: Cursor<'_>) {
        let read = matches!(bare(dim).kind, ExprKind::String).then(|| QuotedDim::read(bare(dim), cursor)).flatten();
        let printed = match &read {
            Some(quoted) => quoted.with(|inner, cursor| self.known_dim(inner, cursor)).unwrap_or(false),
            None => self.known_dim(dim, cursor),
        };
        if !printed {
            self.expr(dim, cursor, P::Lambda);
        }
    }

    /// Prints a dim if all names in it are declared dims; returns whether it did.
    fn known_dim(&mut self, dim: &Expr, cursor: Cursor<'_>) -> bool {
        let Some(place) = &mut self.place.signature else { return false };
        let Some(function) = place.scope.function() else { return false };
        let names = names(dim, cursor);
        let known = |name: &Name| function.style(name).is_some() || place.scope.is_outer_dim(name);
        if names.is_empty() || !names.iter().all(known) {
            return false;
        }
        let alone = matches!(bare(dim).kind, ExprKind::Name);
        let wants_quotes = |name: &Name| match function.style(name) {
            Some(DimStyle::TypeVar) => !alone,
            // In a prim_func a dim is quoted only at its first use.
            Some(DimStyle::Body) => !function.prim || !place.bound.contains(name),
            _ => false,
        };
        let quoted = names.iter().any(wants_quotes);
        place.bound.extend(names);
        if !quoted {
            self.expr(dim, cursor, P::Lambda);
            return true;
        }
        let before = std::mem::take(&mut self.out);
        self.expr(dim, cursor, P::Lambda);
        let dim = std::mem::replace(&mut self.out, before);
        quote(&mut self.out, &dim);
        true
    }
}

/// Whether an expression is a tuple or a list, possibly in parentheses.
fn is_list(expr: &Expr) -> bool {
    matches!(bare(expr).kind, ExprKind::Tuple(_) | ExprKind::List(_))
}

/// Returns the dtype in `R.Prim("int64")`, which is `T.int64` in TVM 0.27.
pub(crate) fn prim_type(callee: &str, arguments: &[Argument], cursor: Cursor<'_>) -> Option<String> {
    let [one] = arguments else { return None };
    let keyword = one.keyword.map(|token| cursor.text(token));
    let dtype = cursor.string_value(bare(&one.value))?;
    let is_prim = callee == "R.Prim" && matches!(keyword, None | Some("dtype"));
    (is_prim && tir_dtype(&format!("T.{dtype}")).is_some()).then(|| dtype.into_owned())
}
