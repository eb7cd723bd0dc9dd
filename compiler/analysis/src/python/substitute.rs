//! Substitutes literals for constants in the trees of statements.

use super::builtins::{BUILTINS, RANGE};
use super::evaluate::{Names, builtin, combine, format_string};
use super::spell::{self, Edit};
use super::value::{PyConstants, PyValue};
use rx_base::name::NameSet;
use rx_base::{Name, Span};
use rx_context::file_context::bind_names;
use rx_syntax::ast::{
    Argument, Expr, ExprKind, Parameter, ParameterTree, StatementKind, StatementTree, TokenRange, UnaryOp, WithItem,
};
use rx_syntax::token::Literal;
use rx_syntax::{Cursor, Segment, Statement, TokenKind};
use std::sync::Arc;

/// The constants that a function sees, without those whose names it binds itself.
pub(super) struct Known<'a> {
    pub(super) constants: &'a PyConstants,
    pub(super) shadowed: &'a [Name],
}

impl Known<'_> {
    fn is_shadowed(&self, name: &str) -> bool {
        self.shadowed.iter().any(|shadowed| shadowed.as_str() == name)
    }
}

impl Names for Known<'_> {
    fn value(&self, name: &str) -> Option<PyValue> {
        let (_, value) = self.constants.get(name)?;
        (!self.is_shadowed(name)).then(|| value.clone())
    }

    fn is_builtin(&self, name: &str) -> bool {
        !self.constants.hides(name) && !self.is_shadowed(name)
    }
}

/// Whether a statement may use a constant or call a builtin function.
fn is_affected(cursor: Cursor<'_>, statement: &Statement, constants: &PyConstants) -> bool {
    (0..statement.token_count).any(|token| match cursor.kind(token) {
        Some(kind) if kind.is_name() => constants.get(cursor.text(token)).is_some() || is_call(cursor, token),
        Some(TokenKind::String) => format_string(cursor.text(token)).is_some_and(|text| text.contains('{')),
        _ => false,
    })
}

/// Whether a builtin function is called: `int(`.
fn is_call(cursor: Cursor<'_>, token: u32) -> bool {
    cursor.kind(token + 1) == Some(TokenKind::LeftParen)
        && token.checked_sub(1).and_then(|before| cursor.kind(before)) != Some(TokenKind::Dot)
        && BUILTINS.contains(&cursor.text(token))
}

/// Whether the text of a segment may call a builtin function: before a parenthesis is the name of one, without a dot, or
/// the end of a line. Almost all calls are of dotted names.
fn may_call_builtin(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices('(').any(|(at, _)| {
        let before = bytes.get(..at).unwrap_or_default();
        let blanks = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\x0c')).count();
        let before = &before[..before.len() - blanks];
        let letters = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let (rest, word) = before.split_at(before.len() - letters);
        match word {
            [] => matches!(rest.last(), Some(b'\n' | b'\r' | b'\\')),
            word => rest.last() != Some(&b'.') && BUILTINS.iter().any(|builtin| builtin.as_bytes() == word),
        }
    })
}

/// Like [`is_affected`] for all statements of a segment, for a file without constants. The tree is computed only if the
/// text requires it, since another thread may compute it later ([`rx_syntax::with_trees_ahead`]).
fn calls_builtin(segment: &Segment) -> bool {
    if !may_call_builtin(segment.text()) {
        return false;
    }
    let tokens = &segment.tree().tokens;
    let text = |at: usize| segment.text().get(tokens.span(u32::try_from(at).ok()?)?.range());
    let kinds = tokens.kinds();
    let is_call = |(at, pair): (usize, &[TokenKind])| {
        pair == [TokenKind::Name, TokenKind::LeftParen]
            && at.checked_sub(1).and_then(|before| kinds.get(before)) != Some(&TokenKind::Dot)
            && text(at).is_some_and(|text| BUILTINS.contains(&text))
    };
    kinds.windows(2).enumerate().any(is_call)
}

/// Returns whether a segment may need substitution, and the names of constants and builtin functions that it binds.
/// Builtin functions are searched only in the header and in segments that may need substitution.
pub(super) fn look_at(segment: &Segment, constants: &PyConstants, is_head: bool) -> (bool, Box<[Name]>) {
    let affected = match constants.is_empty() {
        true => calls_builtin(segment),
        false => {
            let mut statements = segment.tree().statements.iter();
            statements.any(|statement| is_affected(segment.cursor(statement), statement, constants))
        }
    };
    if constants.is_empty() && !affected {
        return (false, Box::default());
    }
    let with_functions = affected || is_head;
    let is_wanted = |name: &str| constants.get(name).is_some() || (with_functions && BUILTINS.contains(&name));
    let mut bound = NameSet::default();
    for statement in &segment.tree().statements {
        let cursor = segment.cursor(statement);
        let tokens = 0..statement.token_count;
        let wanted = |token: u32| cursor.kind(token).is_some_and(TokenKind::is_name) && is_wanted(cursor.text(token));
        if tokens.clone().any(wanted) {
            bind_names(cursor, &statement.tree.kind, &mut bound);
            if let StatementKind::Def { type_params, .. } = &statement.tree.kind {
                bound.extend(type_params.iter().map(|param| cursor.name(*param)));
            }
            let walrus = tokens.clone().filter(|token| cursor.kind(token + 1) == Some(TokenKind::Walrus));
            bound.extend(walrus.map(|token| cursor.name(token)));
        }
        // Quoted dims are symbols of the function: `R.Tensor(("n",))`.
        if is_head {
            for token in tokens.filter(|token| cursor.kind(*token) == Some(TokenKind::String)) {
                let words = cursor.text(token).split(|c: char| !(c.is_alphanumeric() || c == '_'));
                bound.extend(words.filter_map(|word| Some(constants.get(word)?.0)));
            }
        }
    }
    bound.retain(|name| is_wanted(name));
    let mut bound: Vec<Name> = bound.into_iter().collect();
    bound.sort_unstable();
    (affected, bound.into())
}

/// The statements of a segment with literals substituted.
struct Substituted {
    statements: Box<[Statement]>,
    literals: Vec<Literal>,
    /// The edits that write the same literals into the text.
    edits: Vec<Edit>,
}

/// Returns the segment with literals substituted; `None` if it uses no constants.
pub(super) fn segment(segment: &Segment, known: &Known<'_>) -> Option<Segment> {
    let Substituted { statements, literals, .. } = substituted(segment, known)?;
    Some(segment.substituted(statements, literals))
}

/// Returns the edits that write literals in place of constants.
pub(super) fn edits(segment: &Segment, known: &Known<'_>) -> Vec<Edit> {
    substituted(segment, known).map_or_else(Vec::new, |substituted| substituted.edits)
}

fn substituted(segment: &Segment, known: &Known<'_>) -> Option<Substituted> {
    let (mut literals, mut edits) = (Vec::new(), Vec::new());
    let mut changed = false;
    let statements = segment.tree().statements.iter().map(|statement| {
        let cursor = segment.cursor(statement);
        let kind = is_affected(cursor, statement, known.constants)
            .then(|| {
                Rewriter { cursor, known, literals: &mut literals, edits: &mut edits }.statement(&statement.tree.kind)
            })
            .flatten();
        match kind {
            Some(kind) => {
                changed = true;
                let tree = StatementTree { kind, error: statement.tree.error.clone() };
                Statement { tree: Arc::new(tree), ..statement.clone() }
            }
            None => statement.clone(),
        }
    });
    let statements: Box<[Statement]> = statements.collect();
    changed.then_some(Substituted { statements, literals, edits })
}

/// The change of an expression.
enum Changed {
    /// Unchanged.
    No,
    /// Replaced by its value.
    Value,
    /// Replaced by this expression.
    Expr(Expr),
}

/// An expression after its visit: its value, if it has one, and its change.
struct Visited {
    value: Option<PyValue>,
    changed: Changed,
}

impl Visited {
    const NOTHING: Visited = Visited { value: None, changed: Changed::No };
}

struct Rewriter<'a, 'l> {
    cursor: Cursor<'a>,
    known: &'a Known<'a>,
    literals: &'l mut Vec<Literal>,
    edits: &'l mut Vec<Edit>,
}

impl Rewriter<'_, '_> {
    fn statement(&mut self, kind: &StatementKind) -> Option<StatementKind> {
        Some(match kind {
            StatementKind::Decorator(value) => StatementKind::Decorator(self.expr(value)?),
            StatementKind::Expr(value) => StatementKind::Expr(self.expr(value)?),
            StatementKind::While(test) => StatementKind::While(self.expr(test)?),
            StatementKind::If(test) => StatementKind::If(self.expr(test)?),
            StatementKind::Elif(test) => StatementKind::Elif(self.expr(test)?),
            StatementKind::Return(value) => StatementKind::Return(Some(self.expr(value.as_ref()?)?)),
            StatementKind::Def { name, type_params, params, ret } => {
                let new: Vec<Option<Parameter>> = params.iter().map(|param| self.parameter(param)).collect();
                let new_ret = ret.as_ref().and_then(|ret| self.expr(ret));
                if new_ret.is_none() && new.iter().all(Option::is_none) {
                    return None;
                }
                let params = new.into_iter().zip(params).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
                let (name, type_params, ret) = (*name, type_params.clone(), new_ret.or_else(|| ret.clone()));
                StatementKind::Def { name, type_params, params, ret }
            }
            StatementKind::With(items) => {
                let contexts: Vec<Option<Expr>> = items.iter().map(|item| self.expr(&item.context)).collect();
                if contexts.iter().all(Option::is_none) {
                    return None;
                }
                let item = |(new, item): (Option<Expr>, &WithItem)| WithItem {
                    context: new.unwrap_or_else(|| item.context.clone()),
                    target: item.target.clone(),
                };
                StatementKind::With(contexts.into_iter().zip(items).map(item).collect())
            }
            StatementKind::For { target, iter } => {
                StatementKind::For { target: target.clone(), iter: self.expr(iter)? }
            }
            StatementKind::Assign { targets, value } => {
                let new: Vec<Option<Expr>> = targets.iter().map(|target| self.target(target)).collect();
                let new_value = self.expr(value);
                if new_value.is_none() && new.iter().all(Option::is_none) {
                    return None;
                }
                let targets =
                    new.into_iter().zip(targets).map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
                StatementKind::Assign { targets, value: new_value.unwrap_or_else(|| value.clone()) }
            }
            StatementKind::AnnAssign { target, annotation, value } => {
                let new = (self.expr(annotation), value.as_ref().and_then(|value| self.expr(value)));
                if let (None, None) = new {
                    return None;
                }
                let annotation = new.0.unwrap_or_else(|| annotation.clone());
                StatementKind::AnnAssign { target: target.clone(), annotation, value: new.1.or_else(|| value.clone()) }
            }
            StatementKind::AugAssign { target, op, value } => {
                let new = (self.target(target), self.expr(value));
                if let (None, None) = new {
                    return None;
                }
                let (target, value) = (new.0.unwrap_or_else(|| target.clone()), new.1.unwrap_or_else(|| value.clone()));
                StatementKind::AugAssign { target, op: *op, value }
            }
            StatementKind::Assert { test, message } => {
                StatementKind::Assert { test: self.expr(test)?, message: message.clone() }
            }
            _ => return None,
        })
    }

    fn parameter(&mut self, param: &Parameter) -> Option<Parameter> {
        let (cursor, known) = (self.cursor.parameter(param), self.known);
        let mut inside = Rewriter { cursor, known, literals: self.literals, edits: self.edits };
        let tree = &param.tree;
        let annotation = tree.annotation.as_ref().and_then(|annotation| inside.expr(annotation));
        let default = tree.default.as_ref().and_then(|default| inside.expr(default));
        if annotation.is_none() && default.is_none() {
            return None;
        }
        let tree = ParameterTree {
            annotation: annotation.or_else(|| tree.annotation.clone()),
            default: default.or_else(|| tree.default.clone()),
            ..ParameterTree::clone(tree)
        };
        Some(Parameter { first_token: param.first_token, tree: Arc::new(tree) })
    }

    /// Substitutes in the index of a store: `A[i * WIDTH] = …`.
    fn target(&mut self, target: &Expr) -> Option<Expr> {
        let ExprKind::Subscript { value, index } = &target.kind else { return None };
        let index = Box::new(self.expr(index)?);
        Some(Expr { kind: ExprKind::Subscript { value: value.clone(), index }, tokens: target.tokens })
    }

    /// Returns the expression that replaces another; `None` if it is unchanged.
    fn expr(&mut self, expr: &Expr) -> Option<Expr> {
        let visited = self.visit(expr);
        self.finish(expr, visited)
    }

    fn finish(&mut self, expr: &Expr, visited: Visited) -> Option<Expr> {
        match (visited.changed, visited.value) {
            (Changed::Expr(new), _) => Some(new),
            (Changed::Value, Some(value)) => {
                self.edits.push(Edit { span: self.cursor.span(expr.tokens), text: spell::literal(&value) });
                Some(self.literal(&value, expr.tokens))
            }
            _ => None,
        }
    }

    fn visit(&mut self, expr: &Expr) -> Visited {
        match &expr.kind {
            ExprKind::Name => {
                let value = self.known.value(self.cursor.text(expr.tokens.start));
                return Visited { changed: if value.is_some() { Changed::Value } else { Changed::No }, value };
            }
            ExprKind::String => {
                let value = combine(self.cursor, expr, &[], self.known);
                let is_literal = self.cursor.string_value(expr).is_some();
                let changed = if value.is_some() && !is_literal { Changed::Value } else { Changed::No };
                return Visited { value, changed };
            }
            ExprKind::Lambda { params, .. } => {
                let own = params.iter().filter_map(|param| {
                    let cursor = self.cursor.parameter(param);
                    Some(cursor.text(param.tree.name?))
                });
                if own.into_iter().any(|name| self.known.constants.get(name).is_some()) {
                    return Visited::NOTHING;
                }
            }
            _ => {}
        }
        let children = expr.children();
        let mut visited: Vec<Visited> = children.iter().map(|child| self.visit(child)).collect();
        // `SIZE(x)` and `SIZE.bits` are not replaced, so that their mistakes are reported with the name.
        if matches!(expr.kind, ExprKind::Call { .. } | ExprKind::Attribute { .. })
            && let Some(first) = visited.first_mut()
            && let Changed::Value = first.changed
        {
            *first = Visited::NOTHING;
        }
        let is_changed = |visited: &Visited| !matches!(visited.changed, Changed::No);
        let any_changed = visited.iter().any(is_changed);
        let called = match &expr.kind {
            ExprKind::Call { callee, .. } => builtin(self.cursor, callee, self.known),
            _ => None,
        };
        let values: Vec<Option<PyValue>> = visited.iter().map(|visited| visited.value.clone()).collect();
        let value = combine(self.cursor, expr, &values, self.known);
        if value.is_some() && folds(expr, called) && (any_changed || called.is_some()) {
            return Visited { value, changed: Changed::Value };
        }
        if let (ExprKind::Conditional { .. }, Some(Some(test)), true) = (&expr.kind, values.get(1), any_changed) {
            // Python evaluates only one branch, whatever the other one is.
            let taken = if test.truth() { 0 } else { 2 };
            let child = children.get(taken).map(|child| (*child).clone());
            let new = visited.into_iter().nth(taken).zip(child);
            let Some((visited, child)) = new else { return Visited::NOTHING };
            let (all, kept) = (self.cursor.span(expr.tokens), self.cursor.span(child.tokens));
            for (start, end, bracket) in [(all.start, kept.start, "("), (kept.end, all.end, ")")] {
                self.edits.push(Edit { span: Span::new(start, end), text: bracket.to_owned() });
            }
            let new = self.finish(&child, visited).unwrap_or(child);
            return Visited { value: None, changed: Changed::Expr(new) };
        }
        if !any_changed {
            return Visited { value, changed: Changed::No };
        }
        if let (ExprKind::Starred { double: false, .. }, Some(Some(value))) = (&expr.kind, values.first())
            && let Some(elements) = value.elements()
        {
            self.edits.push(Edit { span: self.cursor.span(expr.tokens), text: spell::listed(elements) });
        }
        let new: Vec<Option<Expr>> =
            children.iter().zip(visited).map(|(child, visited)| self.finish(child, visited)).collect();
        let parts = children.into_iter().zip(new).map(|(old, new)| (new.is_some(), new.unwrap_or_else(|| old.clone())));
        Visited { value, changed: Changed::Expr(rebuilt(expr, parts)) }
    }

    /// Creates the expression of a value at `tokens`.
    fn literal(&mut self, value: &PyValue, tokens: TokenRange) -> Expr {
        let kind = match value {
            PyValue::None => ExprKind::None,
            PyValue::Bool(truth) => ExprKind::Bool(*truth),
            PyValue::Int(number) => {
                return self.number(*number < 0, number.unsigned_abs().to_string(), TokenKind::Integer, tokens);
            }
            PyValue::Float(number) => {
                let text = format!("{:?}", number.abs());
                return self.number(number.is_sign_negative() && !number.is_nan(), text, TokenKind::Float, tokens);
            }
            PyValue::Str(_) => return self.leaf(value.to_string(), TokenKind::String, tokens),
            PyValue::Tuple(elements) => {
                ExprKind::Tuple(elements.iter().map(|element| self.literal(element, tokens)).collect())
            }
            PyValue::List(elements) => {
                ExprKind::List(elements.iter().map(|element| self.literal(element, tokens)).collect())
            }
        };
        Expr { kind, tokens }
    }

    fn number(&mut self, negative: bool, text: String, kind: TokenKind, tokens: TokenRange) -> Expr {
        let number = self.leaf(text, kind, tokens);
        match negative {
            true => Expr { kind: ExprKind::Unary(UnaryOp::Neg, Box::new(number)), tokens },
            false => number,
        }
    }

    /// Creates a literal of one token. If its index does not fit, the expression becomes an error, which is reported
    /// elsewhere.
    fn leaf(&mut self, text: String, token: TokenKind, tokens: TokenRange) -> Expr {
        let index = u32::try_from(self.literals.len()).ok().and_then(|number| self.cursor.literal_token(number));
        let Some(index) = index else { return Expr { kind: ExprKind::Error, tokens } };
        self.literals.push(Literal { kind: token, text: text.into(), place: self.cursor.span(tokens) });
        let kind = match token {
            TokenKind::Integer => ExprKind::Integer,
            TokenKind::Float => ExprKind::Float,
            _ => ExprKind::String,
        };
        Expr { kind, tokens: TokenRange { start: index, end: index.saturating_add(1) } }
    }
}

/// Whether an expression with a value becomes a literal; other expressions keep their form, with literals inside.
fn folds(expr: &Expr, called: Option<&str>) -> bool {
    match &expr.kind {
        ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Compare(..)
        | ExprKind::Bool2(..)
        | ExprKind::Conditional { .. }
        | ExprKind::Subscript { .. } => true,
        ExprKind::Call { .. } => called.is_some_and(|function| function != RANGE),
        _ => false,
    }
}

/// Rebuilds an expression from new parts in the order of [`Expr::children`], each with a flag whether it was
/// replaced. A replaced starred name is expanded to the elements of its tuple or list.
fn rebuilt(expr: &Expr, parts: impl Iterator<Item = (bool, Expr)>) -> Expr {
    let mut parts = parts;
    let mut next = || parts.next().map_or(Expr { kind: ExprKind::Error, tokens: expr.tokens }, |(_, part)| part);
    let kind = match &expr.kind {
        ExprKind::Attribute { name, .. } => ExprKind::Attribute { value: Box::new(next()), name: *name },
        ExprKind::Starred { double, .. } => ExprKind::Starred { double: *double, value: Box::new(next()) },
        ExprKind::Walrus { name, .. } => ExprKind::Walrus { name: *name, value: Box::new(next()) },
        ExprKind::Parenthesized(_) => ExprKind::Parenthesized(Box::new(next())),
        ExprKind::Unary(op, _) => ExprKind::Unary(*op, Box::new(next())),
        ExprKind::Lambda { params, .. } => ExprKind::Lambda { params: params.clone(), body: Box::new(next()) },
        ExprKind::Subscript { .. } => ExprKind::Subscript { value: Box::new(next()), index: Box::new(next()) },
        ExprKind::Binary(op, ..) => ExprKind::Binary(*op, Box::new(next()), Box::new(next())),
        ExprKind::Call { arguments, .. } => {
            let callee = Box::new(next());
            let mut all = Vec::with_capacity(arguments.len());
            for Argument { keyword, .. } in arguments {
                let given = spread(parts.next()).map(|value| Argument { keyword: *keyword, value });
                all.extend(given);
            }
            ExprKind::Call { callee, arguments: all }
        }
        ExprKind::Tuple(_) => ExprKind::Tuple(parts.flat_map(|part| spread(Some(part))).collect()),
        ExprKind::List(_) => ExprKind::List(parts.flat_map(|part| spread(Some(part))).collect()),
        ExprKind::Set(_) => ExprKind::Set(parts.map(|(_, part)| part).collect()),
        ExprKind::Bool2(op, _) => ExprKind::Bool2(*op, parts.map(|(_, part)| part).collect()),
        ExprKind::Dict(pairs) => {
            ExprKind::Dict(pairs.iter().map(|(key, _)| (key.as_ref().map(|_| next()), next())).collect())
        }
        ExprKind::Slice { lower, upper, step } => {
            let mut bound = |part: &Option<Box<Expr>>| part.as_ref().map(|_| Box::new(next()));
            ExprKind::Slice { lower: bound(lower), upper: bound(upper), step: bound(step) }
        }
        ExprKind::Compare(_, rest) => {
            let first = Box::new(next());
            ExprKind::Compare(first, rest.iter().map(|(op, _)| (*op, next())).collect())
        }
        ExprKind::Conditional { .. } => {
            ExprKind::Conditional { then: Box::new(next()), test: Box::new(next()), otherwise: Box::new(next()) }
        }
        other => other.clone(),
    };
    Expr { kind, tokens: expr.tokens }
}

/// Returns the elements of a replaced `*SHAPE`, or any other part unchanged.
fn spread(part: Option<(bool, Expr)>) -> impl Iterator<Item = Expr> {
    let parts = match part {
        Some((true, Expr { kind: ExprKind::Starred { double: false, value }, tokens })) => match value.kind {
            ExprKind::Tuple(elements) | ExprKind::List(elements) => elements,
            kind => {
                let value = Box::new(Expr { kind, tokens: value.tokens });
                vec![Expr { kind: ExprKind::Starred { double: false, value }, tokens }]
            }
        },
        Some((_, part)) => vec![part],
        None => Vec::new(),
    };
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::may_call_builtin;

    #[test]
    fn text_with_a_call_of_a_builtin_is_found() {
        for text in ["int(x)", "(len (x),)", "a[sum\\\n(x)]", "(max\n(x))", "f(abs\t(x))"] {
            assert!(may_call_builtin(text), "{text}");
        }
        for text in ["R.max(x)", "print(x)", "(1, 2)", "x.T.int(8)", "maximum(x)", "é(x)", "sum"] {
            assert!(!may_call_builtin(text), "{text}");
        }
    }
}
