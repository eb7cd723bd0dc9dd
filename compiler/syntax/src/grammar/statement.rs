//! The grammar of statements and parameters.

use super::expression::{arguments, comprehension, expressions, name, primary, starred, targets, yielded};
use super::failure::Part;
use super::{Extra, Kinds, range};
use crate::ast::{BinaryOp, Expr, ImportedName, ParameterTree, StatementKind, TokenRange, WithItem};
use crate::token::TokenKind::{self, *};
use chumsky::prelude::*;

macro_rules! parser {
    ($output:ty) => { impl Parser<'k, Kinds<'k>, $output, Extra> + Clone + 'k };
}

fn token<'k>(kind: TokenKind) -> parser!(TokenKind) {
    just(kind)
}

/// Matches any statement except a `def` header.
pub(super) fn statement<'k>(expression: parser!(Expr)) -> parser!(StatementKind) {
    choice((simple(expression.clone()), header(expression.clone()), assignment(expression).labelled(Part::Statement)))
}

/// Matches simple statements that start with a keyword.
fn simple<'k>(expression: parser!(Expr)) -> parser!(StatementKind) {
    let value = expressions(expression.clone()).boxed();
    choice((
        token(Return).ignore_then(value.or_not()).map(StatementKind::Return),
        token(Assert)
            .ignore_then(expression.clone())
            .then(token(Comma).ignore_then(expression.clone()).or_not())
            .map(|(test, message)| StatementKind::Assert { test, message }),
        token(Pass).to(StatementKind::Pass),
        token(Break).to(StatementKind::Break),
        token(Continue).to(StatementKind::Continue),
        token(At).ignore_then(expression).map(StatementKind::Decorator),
        import(),
    ))
}

fn import<'k>() -> parser!(StatementKind) {
    let dotted = name().then(token(Dot).then(name()).repeated()).map_with(|_, e| range(e.span()));
    let renamed =
        dotted.clone().then(token(As).ignore_then(name()).or_not()).map(|(path, alias)| ImportedName { path, alias });
    let names = renamed.clone().separated_by(token(Comma)).at_least(1);
    let plain = token(Import).ignore_then(names.clone().collect()).map(StatementKind::Import);
    let relative = choice((token(Dot), token(Ellipsis))).repeated();
    let module = choice((dotted.clone().to(()), relative.clone().at_least(1).then(dotted.or_not()).to(())))
        .map_with(|(), e| range(e.span()));
    let imported = choice((
        token(Star).to(Vec::new()),
        names.clone().allow_trailing().collect().delimited_by(token(LeftParen), token(RightParen)),
        names.collect(),
    ));
    let from = token(From)
        .ignore_then(module)
        .then_ignore(token(Import))
        .then(imported)
        .map(|(module, names)| StatementKind::FromImport { module, names });
    plain.or(from)
}

/// Matches block headers, except `def`.
fn header<'k>(expression: parser!(Expr)) -> parser!(StatementKind) {
    let value = expressions(expression.clone()).boxed();
    let type_params = any_between(LeftBracket, RightBracket);
    let bases = arguments(expression.clone(), comprehension(expression.clone()));
    let bases = bases.delimited_by(token(LeftParen), token(RightParen));
    let target = primary(expression.clone(), expression.clone()).boxed();
    let class = token(Class)
        .ignore_then(name())
        .then_ignore(type_params.or_not())
        .then(bases.or_not())
        .map(|(name, bases)| StatementKind::Class { name, bases: bases.unwrap_or_default() });
    let item = expression
        .clone()
        .then(token(As).ignore_then(target.clone()).or_not())
        .map(|(context, target)| WithItem { context, target })
        .boxed();
    let items = item.separated_by(token(Comma)).at_least(1);
    // The form without parentheses also matches `with (a, b):`, as a tuple. It must be followed by the colon.
    let with = token(With).ignore_then(choice((
        items.clone().collect().then_ignore(token(Colon).rewind()),
        items.allow_trailing().collect().delimited_by(token(LeftParen), token(RightParen)),
    )));
    let iteration = token(For)
        .ignore_then(targets(target))
        .then_ignore(token(In))
        .then(value.clone())
        .map(|(target, iter)| StatementKind::For { target, iter });
    choice((
        class,
        with.map(StatementKind::With),
        iteration,
        token(While).ignore_then(value.clone()).map(StatementKind::While),
        token(If).ignore_then(value.clone()).map(StatementKind::If),
        token(Elif).ignore_then(value).map(StatementKind::Elif),
        token(Else).to(StatementKind::Else),
    ))
    .then_ignore(token(Colon))
}

/// Matches a pair of brackets with any tokens in them.
fn any_between<'k>(open: TokenKind, close: TokenKind) -> parser!(()) {
    token(open).then(none_of([close]).repeated()).then(token(close)).to(())
}

/// The part of a line after its first expressions.
enum Rest {
    Nothing,
    Annotation(Expr, Option<Expr>),
    Values(Vec<Expr>),
    Update(BinaryOp, Expr),
}

/// Matches assignments, declarations and bare expressions.
fn assignment<'k>(expression: parser!(Expr)) -> parser!(StatementKind) {
    let value = expressions(expression.clone()).or(yielded(expression.clone())).boxed();
    let update = choice((
        token(PlusEqual).to(BinaryOp::Add),
        token(MinusEqual).to(BinaryOp::Sub),
        token(StarEqual).to(BinaryOp::Mul),
        token(SlashEqual).to(BinaryOp::Div),
        token(DoubleSlashEqual).to(BinaryOp::FloorDiv),
        token(PercentEqual).to(BinaryOp::Mod),
        token(DoubleStarEqual).to(BinaryOp::Pow),
        token(AtEqual).to(BinaryOp::MatMul),
        token(LeftShiftEqual).to(BinaryOp::LeftShift),
        token(RightShiftEqual).to(BinaryOp::RightShift),
        token(AmpersandEqual).to(BinaryOp::BitAnd),
        token(PipeEqual).to(BinaryOp::BitOr),
        token(CaretEqual).to(BinaryOp::BitXor),
    ));
    let rest = choice((
        token(Colon)
            .ignore_then(expression)
            .then(token(Equal).ignore_then(value.clone()).or_not())
            .map(|(annotation, value)| Rest::Annotation(annotation, value)),
        token(Equal).ignore_then(value.clone()).repeated().at_least(1).collect().map(Rest::Values),
        update.then(value.clone()).map(|(op, value)| Rest::Update(op, value)),
        empty().map(|()| Rest::Nothing),
    ));
    value.then(rest).map(|(first, rest)| match rest {
        Rest::Nothing => StatementKind::Expr(first),
        Rest::Annotation(annotation, value) => StatementKind::AnnAssign { target: first, annotation, value },
        Rest::Update(op, value) => StatementKind::AugAssign { target: first, op, value },
        Rest::Values(mut values) => match values.pop() {
            Some(value) => {
                let targets = std::iter::once(first).chain(values).collect();
                StatementKind::Assign { targets, value }
            }
            None => StatementKind::Expr(first),
        },
    })
}

/// Matches a parameter of a `def`: `name: T = default`, `*args`, `**kwargs`, a bare `*` or `/`.
pub(super) fn parameter<'k>(expression: parser!(Expr)) -> parser!(ParameterTree) {
    let stars = choice((token(DoubleStar).to(2u8), token(Star).to(1), empty().to(0)));
    let named = stars
        .then(name().map(Some))
        .then(token(Colon).ignore_then(starred(expression.clone())).or_not())
        .then(token(Equal).ignore_then(expression).or_not())
        .map(|(((stars, name), annotation), default)| (stars, name, annotation, default));
    let bare = choice((token(Star).to(1u8), token(Slash).to(0))).map(|stars| (stars, None, None, None));
    named.or(bare).map_with(|(stars, name, annotation, default), e| ParameterTree {
        stars,
        name,
        annotation,
        default,
        tokens: TokenRange { ..range(e.span()) },
        error: None,
    })
}
