//! The expression grammar.

use super::failure::{Failure, Part};
use super::{Extra, Kinds, range};
use crate::ast::{
    Argument, BinaryOp, BoolOp, CompareOp, Expr, ExprKind, Parameter, ParameterTree, TokenRange, UnaryOp,
};
use crate::token::TokenKind::{self, *};
use chumsky::pratt::{infix, left, prefix, right};
use chumsky::prelude::*;
use std::sync::Arc;

/// The type of a parser that can be cloned, and so used more than once in the grammar.
macro_rules! parser {
    ($output:ty) => { impl Parser<'k, Kinds<'k>, $output, Extra> + Clone + 'k };
}

fn expr(kind: ExprKind, tokens: TokenRange) -> Expr {
    Expr { kind, tokens }
}

fn token<'k>(kind: TokenKind) -> parser!(TokenKind) {
    just(kind)
}

/// Matches the token of an identifier.
pub(super) fn name<'k>() -> parser!(u32) {
    choice((just(Name), just(Match), just(Case), just(Type))).map_with(|_, e| range(e.span()).start)
}

/// Matches a lambda, a conditional, or an expression that binds more tightly. Commas, stars and `:=` are not included.
///
/// No two alternatives of this grammar start with the same subexpression: the parser would parse it once for each
/// alternative, and the time would be exponential in the depth of brackets.
pub(super) fn expression<'k>() -> parser!(Expr) {
    recursive(|expression| {
        let logic = recursive(|logic| logical(primary(expression.clone(), logic).boxed()));
        let conditional = logic
            .clone()
            .then(token(If).ignore_then(logic).then_ignore(token(Else)).then(expression.clone()).or_not())
            .map_with(|(then, rest), e| match rest {
                None => then,
                Some((test, otherwise)) => {
                    let [then, test, otherwise] = [then, test, otherwise].map(Box::new);
                    expr(ExprKind::Conditional { then, test, otherwise }, range(e.span()))
                }
            });
        lambda(expression).or(conditional).labelled(Part::Expression)
    })
}

fn lambda<'k>(expression: parser!(Expr)) -> parser!(Expr) {
    let stars = choice((token(DoubleStar).to(2u8), token(Star).to(1), token(Slash).to(0), empty().to(0)));
    let parameter = stars.then(name().or_not()).then(token(Equal).ignore_then(expression.clone()).or_not()).map_with(
        |((stars, name), default), e| {
            let tokens = range(e.span());
            let tree = ParameterTree { stars, name, annotation: None, default, tokens, error: None };
            // Token indices inside a lambda count from the statement's start.
            Parameter { first_token: 0, tree: Arc::new(tree) }
        },
    );
    token(Lambda)
        .ignore_then(parameter.separated_by(token(Comma)).collect::<Vec<_>>())
        .then_ignore(token(Colon))
        .then(expression)
        .map_with(|(mut params, body), e| {
            params.retain(|param| param.tree.tokens.start < param.tree.tokens.end);
            expr(ExprKind::Lambda { params, body: Box::new(body) }, range(e.span()))
        })
}

/// Matches `not`, `and`, `or` and comparisons.
fn logical<'k>(primary: parser!(Expr)) -> parser!(Expr) {
    let operators = operators(primary).boxed();
    let compare_op = choice((
        token(EqualEqual).to(CompareOp::Eq),
        token(NotEqual).to(CompareOp::Ne),
        token(Less).to(CompareOp::Lt),
        token(LessEqual).to(CompareOp::Le),
        token(Greater).to(CompareOp::Gt),
        token(GreaterEqual).to(CompareOp::Ge),
        token(In).to(CompareOp::In),
        token(Not).then(token(In)).to(CompareOp::NotIn),
        token(Is)
            .ignore_then(token(Not).or_not())
            .map(|not| if not.is_some() { CompareOp::IsNot } else { CompareOp::Is }),
    ));
    let comparison = operators
        .clone()
        .then(compare_op.then(operators).repeated().collect::<Vec<_>>())
        .map_with(|(first, rest), e| match rest.is_empty() {
            true => first,
            false => expr(ExprKind::Compare(Box::new(first), rest), range(e.span())),
        })
        .boxed();
    comparison.pratt((
        prefix(3, token(Not), |_, operand, e| expr(ExprKind::Unary(UnaryOp::Not, Box::new(operand)), range(e.span()))),
        infix(left(2), token(And), |lhs, _, rhs, e| join(BoolOp::And, lhs, rhs, range(e.span()))),
        infix(left(1), token(Or), |lhs, _, rhs, e| join(BoolOp::Or, lhs, rhs, range(e.span()))),
    ))
}

/// Joins a left operand and a right one. `a and b` with `c` becomes one node with three operands. A parenthesized
/// operand has its own node and is not merged.
fn join(op: BoolOp, lhs: Expr, rhs: Expr, tokens: TokenRange) -> Expr {
    let operands = match lhs.kind {
        ExprKind::Bool2(of, mut operands) if of == op => {
            operands.push(rhs);
            operands
        }
        _ => vec![lhs, rhs],
    };
    expr(ExprKind::Bool2(op, operands), tokens)
}

/// Matches arithmetic, shift and bit operators. A higher binding power binds more tightly.
fn operators<'k>(primary: parser!(Expr)) -> parser!(Expr) {
    let binary =
        |op: BinaryOp| move |tokens, lhs, rhs| expr(ExprKind::Binary(op, Box::new(lhs), Box::new(rhs)), tokens);
    let unary = |op: UnaryOp, operand, tokens| expr(ExprKind::Unary(op, Box::new(operand)), tokens);
    let product = choice((
        token(Star).to(BinaryOp::Mul),
        token(Slash).to(BinaryOp::Div),
        token(DoubleSlash).to(BinaryOp::FloorDiv),
        token(Percent).to(BinaryOp::Mod),
        token(At).to(BinaryOp::MatMul),
    ));
    let sum = choice((token(Plus).to(BinaryOp::Add), token(Minus).to(BinaryOp::Sub)));
    let shift = choice((token(LeftShift).to(BinaryOp::LeftShift), token(RightShift).to(BinaryOp::RightShift)));
    let sign = choice((token(Minus).to(UnaryOp::Neg), token(Plus).to(UnaryOp::Pos), token(Tilde).to(UnaryOp::Invert)));
    primary.pratt((
        infix(right(8), token(DoubleStar), move |l, _, r, e| binary(BinaryOp::Pow)(range(e.span()), l, r)),
        prefix(7, sign, move |op, operand, e| unary(op, operand, range(e.span()))),
        infix(left(6), product, move |l, op, r, e| binary(op)(range(e.span()), l, r)),
        infix(left(5), sum, move |l, op, r, e| binary(op)(range(e.span()), l, r)),
        infix(left(4), shift, move |l, op, r, e| binary(op)(range(e.span()), l, r)),
        infix(left(3), token(Ampersand), move |l, _, r, e| binary(BinaryOp::BitAnd)(range(e.span()), l, r)),
        infix(left(2), token(Caret), move |l, _, r, e| binary(BinaryOp::BitXor)(range(e.span()), l, r)),
        infix(left(1), token(Pipe), move |l, _, r, e| binary(BinaryOp::BitOr)(range(e.span()), l, r)),
    ))
}

/// A suffix of a primary expression.
#[derive(Clone)]
enum Postfix {
    Attribute(u32),
    Subscript(Expr),
    Call(Vec<Argument>),
}

/// Matches an atom with its attributes, calls and subscripts, and with `await` before it.
pub(super) fn primary<'k>(expression: parser!(Expr), logic: parser!(Expr)) -> parser!(Expr) {
    let generator = comprehension(logic).boxed();
    let postfix = choice((
        token(Dot).ignore_then(name()).map(Postfix::Attribute),
        arguments(expression.clone(), generator.clone())
            .delimited_by(token(LeftParen), token(RightParen))
            .map(Postfix::Call),
        subscript(expression.clone()).delimited_by(token(LeftBracket), token(RightBracket)).map(Postfix::Subscript),
    ))
    .boxed();
    let primary = atom(expression, generator).foldl_with(postfix.repeated(), |value, postfix, e| {
        let value = Box::new(value);
        let kind = match postfix {
            Postfix::Attribute(name) => ExprKind::Attribute { value, name },
            Postfix::Subscript(index) => ExprKind::Subscript { value, index: Box::new(index) },
            Postfix::Call(arguments) => ExprKind::Call { callee: value, arguments },
        };
        expr(kind, range(e.span()))
    });
    let awaited = token(Await).or_not().then(primary).map_with(|(waits, value), e| match waits {
        None => value,
        Some(_) => expr(ExprKind::Python, range(e.span())),
    });
    awaited.labelled(Part::Expression)
}

fn atom<'k>(expression: parser!(Expr), generator: parser!(())) -> parser!(Expr) {
    let word = select! {
        Name => ExprKind::Name,
        Match => ExprKind::Name,
        Case => ExprKind::Name,
        Type => ExprKind::Name,
        Integer => ExprKind::Integer,
        Float => ExprKind::Float,
        True => ExprKind::Bool(true),
        False => ExprKind::Bool(false),
        NoneLiteral => ExprKind::None,
        Ellipsis => ExprKind::Ellipsis,
    };
    let string = one_of([String, UnclosedString]).repeated().at_least(1).to(ExprKind::String);
    let parenthesized = parenthesized(expression.clone(), generator.clone());
    let list = list(expression.clone(), generator.clone());
    choice((word, string, parenthesized, list, braced(expression, generator)))
        .map_with(|kind, e| expr(kind, range(e.span())))
        .boxed()
}

/// Matches the clauses `[async] for targets in source [if test]` …, whose content rx ignores. The targets are any
/// tokens up to `in`.
pub(super) fn comprehension<'k>(logic: parser!(Expr)) -> parser!(()) {
    token(Async)
        .or_not()
        .then(token(For))
        .then(none_of([In]).repeated().at_least(1))
        .then(token(In))
        .then(logic.clone())
        .then(token(If).then(logic).repeated())
        .repeated()
        .at_least(1)
}

/// Matches the targets `a, *b` before `in`.
pub(super) fn targets<'k>(primary: parser!(Expr)) -> parser!(Expr) {
    tuple_of(starred(primary).boxed())
}

/// Matches `*value` or a value.
pub(super) fn starred<'k>(value: parser!(Expr)) -> parser!(Expr) {
    token(Star).or_not().then(value).map_with(|(star, value), e| match star {
        None => value,
        Some(_) => expr(ExprKind::Starred { double: false, value: Box::new(value) }, range(e.span())),
    })
}

/// Matches one item, or several with commas, which form a tuple.
fn tuple_of<'k>(item: parser!(Expr)) -> parser!(Expr) {
    let more = token(Comma).ignore_then(item.clone()).repeated().collect::<Vec<_>>();
    item.then(more).then(token(Comma).or_not()).map_with(|((first, more), comma), e| {
        if more.is_empty() && comma.is_none() {
            return first;
        }
        let items = std::iter::once(first).chain(more).collect();
        expr(ExprKind::Tuple(items), range(e.span()))
    })
}

/// Matches `a`, `a, b` or `*a, b`: the expressions allowed as a statement, after `return`, or after `=`.
pub(super) fn expressions<'k>(expression: parser!(Expr)) -> parser!(Expr) {
    tuple_of(starred(walrus(expression)).boxed())
}

/// Matches `name := value` or a value.
fn walrus<'k>(expression: parser!(Expr)) -> parser!(Expr) {
    name().then_ignore(token(Walrus)).or_not().then(expression).map_with(|(name, value), e| match name {
        None => value,
        Some(name) => expr(ExprKind::Walrus { name, value: Box::new(value) }, range(e.span())),
    })
}

/// Matches `yield`, `yield from value` or `yield value`.
pub(super) fn yielded<'k>(expression: parser!(Expr)) -> parser!(Expr) {
    token(Yield)
        .then(token(From).or_not())
        .then(expressions(expression).or_not())
        .map_with(|_, e| expr(ExprKind::Python, range(e.span())))
}

fn parenthesized<'k>(expression: parser!(Expr), generator: parser!(())) -> parser!(ExprKind) {
    let element = starred(walrus(expression.clone())).boxed();
    let inner = choice((
        yielded(expression).map(|value| ExprKind::Parenthesized(Box::new(value))),
        elements(element, generator).map(|contents| match contents {
            Elements::Comprehension => ExprKind::Comprehension,
            Elements::List { mut items, comma } => match (items.pop(), comma) {
                (Some(only), false) if items.is_empty() => ExprKind::Parenthesized(Box::new(only)),
                (last, _) => {
                    items.extend(last);
                    ExprKind::Tuple(items)
                }
            },
        }),
    ));
    inner.delimited_by(token(LeftParen), token(RightParen))
}

fn list<'k>(expression: parser!(Expr), generator: parser!(())) -> parser!(ExprKind) {
    let element = starred(walrus(expression)).boxed();
    elements(element, generator).delimited_by(token(LeftBracket), token(RightBracket)).map(|contents| match contents {
        Elements::Comprehension => ExprKind::Comprehension,
        Elements::List { items, .. } => ExprKind::List(items),
    })
}

/// The content of parentheses or square brackets.
enum Elements {
    Comprehension,
    List { items: Vec<Expr>, comma: bool },
}

fn elements<'k>(element: parser!(Expr), generator: parser!(())) -> parser!(Elements) {
    let rest = choice((
        generator.to(None),
        token(Comma).ignore_then(element.clone()).repeated().collect::<Vec<_>>().then(token(Comma).or_not()).map(Some),
    ));
    element.then(rest).or_not().map(|contents| match contents {
        None => Elements::List { items: Vec::new(), comma: false },
        Some((_, None)) => Elements::Comprehension,
        Some((first, Some((rest, trailing)))) => {
            let comma = trailing.is_some() || !rest.is_empty();
            let mut items = Vec::with_capacity(rest.len() + 1);
            items.push(first);
            items.extend(rest);
            Elements::List { items, comma }
        }
    })
}

/// Matches `{}`, `{k: v, **more}`, `{a, b}` and comprehensions in braces.
fn braced<'k>(expression: parser!(Expr), generator: parser!(())) -> parser!(ExprKind) {
    let value = token(Colon).ignore_then(expression.clone()).or_not();
    let element = starred(walrus(expression.clone())).then(value).map(|(first, value)| match value {
        None => Entry::Item(first),
        Some(value) => Entry::Pair(Some(first), value),
    });
    let spread = token(DoubleStar).ignore_then(expression).map(|value| Entry::Pair(None, value));
    let entry = spread.or(element).boxed();
    let rest = choice((
        generator.to(None),
        token(Comma)
            .ignore_then(entry.clone())
            .repeated()
            .collect::<Vec<_>>()
            .then_ignore(token(Comma).or_not())
            .map(Some),
    ));
    let contents = entry.then(rest).or_not().try_map(|contents, span| match contents {
        None => Ok(ExprKind::Dict(Vec::new())),
        Some((_, None)) => Ok(ExprKind::Comprehension),
        Some((first, Some(rest))) => dict_or_set(first, rest)
            .ok_or_else(|| Failure::message(range(span).start, "a dict's and a set's entries are mixed")),
    });
    contents.delimited_by(token(LeftBrace), token(RightBrace))
}

/// An entry in braces.
#[derive(Clone)]
enum Entry {
    /// `key: value`, or `**value` with no key.
    Pair(Option<Expr>, Expr),
    /// An element of a set.
    Item(Expr),
}

fn dict_or_set(first: Entry, rest: Vec<Entry>) -> Option<ExprKind> {
    let is_set = matches!(first, Entry::Item(_));
    let mut items = Vec::new();
    let mut pairs = Vec::new();
    for entry in std::iter::once(first).chain(rest) {
        match entry {
            Entry::Item(item) if is_set => items.push(item),
            Entry::Pair(key, value) if !is_set => pairs.push((key, value)),
            _ => return None,
        }
    }
    Some(if is_set { ExprKind::Set(items) } else { ExprKind::Dict(pairs) })
}

/// Matches the content of a call's parentheses.
pub(super) fn arguments<'k>(expression: parser!(Expr), generator: parser!(())) -> parser!(Vec<Argument>) {
    let spread = choice((token(DoubleStar).to(true), token(Star).to(false))).then(expression.clone()).map_with(
        |(double, value), e| {
            let value = expr(ExprKind::Starred { double, value: Box::new(value) }, range(e.span()));
            Argument { keyword: None, value }
        },
    );
    let keyword = name()
        .then_ignore(token(Equal))
        .then(expression.clone())
        .map(|(keyword, value)| Argument { keyword: Some(keyword), value });
    let positional = walrus(expression).then(generator.or_not()).map_with(|(value, generator), e| {
        let value = match generator {
            None => value,
            Some(()) => expr(ExprKind::Comprehension, range(e.span())),
        };
        Argument { keyword: None, value }
    });
    choice((keyword, spread, positional))
        .boxed()
        .separated_by(token(Comma))
        .allow_trailing()
        .collect::<Vec<_>>()
        .try_map(|arguments, _| match misplaced_positional(&arguments) {
            None => Ok(arguments),
            Some(at) => Err(Failure::message(at, "a positional argument after a keyword argument")),
        })
}

/// Returns the first token of a positional argument that follows a keyword argument.
fn misplaced_positional(arguments: &[Argument]) -> Option<u32> {
    let mut keywords = false;
    for argument in arguments {
        match &argument.value.kind {
            ExprKind::Starred { double, .. } => keywords |= *double,
            _ if argument.keyword.is_some() => keywords = true,
            _ if keywords => return Some(argument.value.tokens.start),
            _ => {}
        }
    }
    None
}

/// Matches the content of a subscript's brackets.
fn subscript<'k>(expression: parser!(Expr)) -> parser!(Expr) {
    let bound = expression.clone().map(Box::new).or_not().boxed();
    // The part of a slice after its lower bound.
    let bounds = token(Colon).ignore_then(bound.clone()).then(token(Colon).ignore_then(bound).or_not()).boxed();
    let slice = |lower, upper, step: Option<Option<Box<Expr>>>| ExprKind::Slice { lower, upper, step: step.flatten() };
    let open = bounds.clone().map_with(move |(upper, step), e| expr(slice(None, upper, step), range(e.span())));
    let value = starred(walrus(expression)).then(bounds.or_not()).map_with(move |(value, bounds), e| match bounds {
        None => value,
        Some((upper, step)) => expr(slice(Some(Box::new(value)), upper, step), range(e.span())),
    });
    tuple_of(open.or(value).boxed())
}
