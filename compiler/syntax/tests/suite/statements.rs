//! Tests of the grammar of statements, and of the recovery of broken ones.

use crate::render::{error, statement};

#[test]
fn operators_bind_as_in_python() {
    assert_eq!(statement("a + b * c ** -d ** e"), "⟨a Add ⟨b Mul ⟨c Pow Neg⟨⟨d Pow e⟩⟩⟩⟩⟩");
    assert_eq!(statement("-a ** b - c - d"), "⟨⟨Neg⟨⟨a Pow b⟩⟩ Sub c⟩ Sub d⟩");
    assert_eq!(statement("a >> b % 32 & 1 == 1"), "⟨⟨⟨a RightShift ⟨b Mod 32⟩⟩ BitAnd 1⟩ Eq 1⟩");
    assert_eq!(statement("not a in b and c or d or e"), "⟨⟨Not⟨⟨a In b⟩⟩ And c⟩ Or d Or e⟩");
    assert_eq!(statement("a < b <= c is not d not in e"), "⟨a Lt b Le c IsNot d NotIn e⟩");
    assert_eq!(statement("a if b else c if d else e"), "⟨a if b else ⟨c if d else e⟩⟩");
    assert_eq!(
        statement("x[a | b ^ c & ~d, 1:2, ::k, ...]"),
        "x[tuple(⟨a BitOr ⟨b BitXor ⟨c BitAnd Invert⟨d⟩⟩⟩⟩, 1:2:, ::k, ...)]"
    );
}

#[test]
fn atoms_and_their_suffixes() {
    assert_eq!(
        statement("R.nn.conv2d(x, w, strides=[1, 1], *a, **b)[0].f()"),
        "R.nn.conv2d(x, w, strides=list(1, 1), *a, **b)[0].f()"
    );
    assert_eq!(
        statement("((a), (a,), (), {}, {a: b, **c}, {a}, [*b])"),
        "tuple((a), tuple(a), tuple(), dict(), dict(a: b, **: c), set(a), list(*b))"
    );
    assert_eq!(statement("f(lambda x, y=1: x, (z := 2), k=\"a\" 'b')"), "f(lambda/2⟨x⟩, (⟨z := 2⟩), k=\"a\" 'b')");
    assert_eq!(
        statement("{k: v for k, v in x if y}, [await b for a in c], f(x for x in y)"),
        "tuple({k: v for k, v in x if y}, [await b for a in c], f(x for x in y))"
    );
    assert_eq!(statement("match.type + case"), "⟨match.type Add case⟩");
}

#[test]
fn statements() {
    assert_eq!(statement("gv: R.Tuple(T, T) = A, lv"), "gv: R.Tuple(T, T) = tuple(A, lv)");
    assert_eq!(statement("a = b, = c"), "a = tuple(b) = c");
    assert_eq!(statement("x //= 2"), "x FloorDiv= 2");
    assert_eq!(statement("with a as b, f() as (c, d):"), "with a as b, f() as tuple(c, d)");
    assert_eq!(statement("with (a as b, c,):"), "with a as b, c as -");
    assert_eq!(statement("for i, j in T.grid(1, 2):"), "for tuple(i, j) in T.grid(1, 2)");
    assert_eq!(
        statement("def main[n, *m](x: R.Tensor((n,), \"f\"), *, y=1, **k) -> R.Any:"),
        "def main[n,m](x: R.Tensor(tuple(n), \"f\") = -; *_: - = -; y: - = 1; **k: - = -) -> R.Any"
    );
    for text in [
        "import a.b as c, d",
        "from . import (a, b as c,)",
        "from a.b import *",
        "class A(B, metaclass=C):",
        "assert a, b",
        "raise X from y",
        "try:",
        "async def f(): pass",
        "match x:",
        "type X = int",
        "x = yield y",
        "del a, b",
        "global x",
    ] {
        assert_eq!(error(text), None, "{text}");
    }
}

#[test]
fn messages_name_the_expected_token() {
    let found = |text: &str| error(text).map(|(message, at)| format!("{message} @{at}"));
    assert_eq!(found("x = = 1").as_deref(), Some("expected an expression, found `=` @="));
    assert_eq!(found("x = f(a b)").as_deref(), Some("expected `,`, `)` or `=`, found the name `b` @b"));
    assert_eq!(found("x = a +").as_deref(), Some("expected an expression, found the end of the line @"));
    assert_eq!(found("if x").as_deref(), Some("expected `,` or `:`, found the end of the line @"));
    assert_eq!(found("x = \"abc").as_deref(), Some("the string is never closed @\"abc"));
    assert_eq!(found("x = a $ b").as_deref(), Some("`$` starts no token of TVMScript @$"));
    assert_eq!(found("f(a=1, b)").as_deref(), Some("a positional argument after a keyword argument @b"));
    assert_eq!(found("f(x) = 1").as_deref(), Some("nothing can be assigned to this expression @f(x)"));
    assert_eq!(found("def f(x: R.Tensor((2, 3, \"f\"), y: T):").as_deref(), Some("`(` is never closed @("));
    assert_eq!(found("{a: b, c}").as_deref(), Some("a dict's and a set's entries are mixed @a"));
}

#[test]
fn a_broken_binding_still_binds() {
    assert_eq!(statement("x: R.Tensor((2,), \"f\") = = f(y)"), "x: R.Tensor(tuple(2), \"f\") = ‹= f(y)›");
    assert_eq!(statement("x: R.Tensor((2,), \"f\" = f(y)"), "x: R.Tensor(tuple(2), \"f\") = f(y)");
    assert_eq!(statement("x ="), "x = ‹›");
    assert_eq!(statement("x: = 3"), "x: ‹› = 3");
    assert_eq!(statement("x = R."), "x = ‹R.›");
    assert_eq!(statement("x = (a, b))"), "x = tuple(a, b)");
}

#[test]
fn a_broken_call_keeps_its_arguments() {
    assert_eq!(statement("x = f(a, , b)"), "x = f(a, ‹›, b)");
    assert_eq!(statement("x = f(a b, axis=, g(c, 1 2))"), "x = f(‹a b›, axis=‹›, g(c, ‹1 2›))");
    assert_eq!(statement("x = f(a, [b, c"), "x = f(a, list(b, c))");
    assert_eq!(statement("x = f(\"abc)"), "x = f(\"abc))");
}

#[test]
fn broken_headers_keep_their_readable_parts() {
    assert_eq!(statement("def f(x: T, y T, z: R.Any) -> :"), "def f[](x: T = -; y: - = -; z: R.Any = -) -> ‹›");
    assert_eq!(statement("def f(x: T((1, 2), y: T) -> T:"), "def f[](x: T(tuple(1, 2)) = -; y: T = -) -> T");
    assert_eq!(statement("def f(x"), "def f[](x: - = -) -> -");
    assert_eq!(statement("with f( as x:"), "with f(‹as x›) as -");
    assert_eq!(statement("for i in:"), "for i in ‹›");
    assert_eq!(statement("return a b"), "return ‹a b›");
}
