//! Tests of constants: their values, their scopes, and the places where they are substituted.

use super::{Outer, PyConstants, SubstitutionMemo, substituted, visible};
use rx_base::name::name;
use rx_syntax::ast::{ExprKind, StatementKind};
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

fn segments(texts: &[&str]) -> Segments {
    texts.iter().map(|text| Arc::new(Segment::new((*text).into()))).collect()
}

/// Returns the constants that an item after `python` sees in column `indent`.
fn constants(python: &str, indent: u32) -> Arc<PyConstants> {
    let item = Outer::Item { indent, name: Some(name("f")) };
    visible(&[Outer::Python(segments(&[python])), item]).pop().unwrap_or_default()
}

/// Returns the value of `x` after `python`, in Python's notation; `-` if it is not known.
fn value(python: &str) -> String {
    constants(python, 0).get("x").map_or("-".to_owned(), |(_, value)| value.to_string())
}

#[test]
fn literals_and_arithmetic_have_values() {
    for (expression, expected) in [
        ("24", "24"),
        ("-3", "-3"),
        ("'float16'", "\"float16\""),
        ("None", "None"),
        ("(1, 2.5, [True])", "(1, 2.5, [True])"),
        ("(4)", "4"),
        ("-7 // 2", "-4"),
        ("-7 % 4", "1"),
        ("7 / 2", "3.5"),
        ("2 ** 10", "1024"),
        ("1 << 3 | 1", "9"),
        ("(1, 2) + (3,)", "(1, 2, 3)"),
        ("(1,) * 3", "(1, 1, 1)"),
        ("'float' + str(16)", "\"float16\""),
        ("(1, 2, 3)[-1]", "3"),
        ("(1, 2, 3)[:2]", "(1, 2)"),
        ("(1, 2, 3)[::-1]", "(3, 2, 1)"),
        ("int(3.9)", "3"),
        ("float('-inf')", "-inf"),
        ("len((1, 2))", "2"),
        ("max(1, 5, 2)", "5"),
        ("min((4, 3))", "3"),
        ("abs(-2)", "2"),
        ("round(2.5)", "2"),
        ("sum((1, 2))", "3"),
        ("tuple(range(1, 7, 2))", "(1, 3, 5)"),
        ("1 if 2 > 1 else 0", "1"),
        ("not 0 and 3", "3"),
        ("(*(1, 2), 3)", "(1, 2, 3)"),
    ] {
        assert_eq!(value(&format!("x = {expression}\n")), expected, "{expression}");
    }
}

#[test]
fn values_that_python_refuses_or_that_are_too_large_are_unknown() {
    for expression in
        ["1 / 0", "2 ** 200", "'a' * 5000", "(1, 2)[2]", "int('a')", "len(3)", "f(1)", "np.inf", "range(10**9)"]
    {
        assert_eq!(value(&format!("x = {expression}\n")), "-", "{expression}");
    }
}

#[test]
fn constants_of_constants_are_constants() {
    assert_eq!(value("a = 3\nb, (c, d) = a * 2, (1, 'z')\nx = (a, b, c, d)\n"), "(3, 6, 1, \"z\")");
    assert_eq!(value("shape = (4, 8)\nrows, x = shape\n"), "8");
    assert_eq!(value("bits = 16\nx = f'float{bits}'\n"), "\"float16\"");
    assert_eq!(value("a = x = 5\n"), "5");
    assert_eq!(value("x: int = 5\n"), "5");
}

#[test]
fn rebound_names_are_open() {
    for again in [
        "x = 25",
        "x += 1",
        "if c:\n    x = 25",
        "for x in y: pass",
        "for i in y:\n    x = 2",
        "while c:\n    x = 2",
        "try:\n    x = 2\nexcept E:\n    pass",
        "try:\n    pass\nexcept E as x:\n    pass",
        "with open(p) as x:\n    pass",
        "import x",
        "from y import z as x",
        "from y import *",
        "def x(): pass",
        "class x: pass",
        "del x",
        "def g():\n    global x\n    x = 3",
        "def g():\n    def h():\n        nonlocal x\n        x = 3",
        "print(x := 3)",
        "(x, y) = f()",
        "[a, *x] = f()",
        "match y:\n    case x: pass",
    ] {
        assert_eq!(value(&format!("x = 24\n{again}\n")), "-", "{again}");
    }
}

#[test]
fn names_bound_once_elsewhere_stay_constants() {
    for other in [
        "y = x",
        "def g():\n    x = 3",
        "class C:\n    x = 3",
        "def g(x): pass",
        "y.x = 3",
        "from tvm.script import *",
        "y = [x for x in z]",
        "f(x=3)",
        "if c:\n    y = 2",
    ] {
        assert_eq!(value(&format!("x = 24\n{other}\n")), "24", "{other}");
    }
    assert_eq!(value("from y import *\nx = 24\n"), "24");
}

#[test]
fn changed_lists_are_open() {
    assert_eq!(value("x = [1, 2]\n"), "[1, 2]");
    assert_eq!(value("x = [1, 2]\nx.append(3)\n"), "-");
    assert_eq!(value("x = [1, 2]\nx[0] = 3\n"), "-");
}

#[test]
fn scopes_are_those_of_python() {
    let shown = |python: &str, indent| {
        constants(python, indent).get("x").map_or("-".to_owned(), |(_, value)| value.to_string())
    };
    assert_eq!(shown("def g():\n    x = 3\n", 4), "3");
    assert_eq!(shown("def g():\n    x = 3\n", 0), "-");
    assert_eq!(shown("x = 1\ndef g():\n    y = 3\n", 4), "1");
    assert_eq!(shown("x = 1\ndef g():\n    x = 3\n", 4), "3");
    assert_eq!(shown("x = 1\ndef g(x):\n    y = 3\n", 4), "-");
    assert_eq!(shown("x = 1\nclass C:\n    y = 3\n", 4), "1");
    assert_eq!(shown("class C:\n    x = 3\n", 4), "-");
    assert_eq!(shown("x = 1\nasync def g():\n    x = 3\n", 0), "1");
}

#[test]
fn constants_precede_their_uses() {
    let item = |indent| Outer::Item { indent, name: None };
    let python = |text: &str| Outer::Python(segments(&[text]));
    let known = |outer: &[Outer], at: usize| visible(outer)[at].get("x").is_some();
    // A module is read where it is written, while a function around it is called later.
    assert!(!known(&[item(0), python("x = 1\n")], 0));
    assert!(known(&[python("def g():\n    y = 1\n"), item(4), python("x = 1\n")], 1));
}

/// Returns the statement `text` with constants substituted, with their values shown.
fn replaced(python: &str, text: &str) -> String {
    let texts = substituted(&segments(&[text]), &constants(python, 0), &SubstitutionMemo::default());
    let Some(segment) = texts.first() else { return String::new() };
    let shown = segment.tree().statements.iter().map(|statement| {
        let cursor = segment.cursor(statement);
        let shown = |expr: &rx_syntax::ast::Expr| show(cursor, expr);
        match &statement.tree.kind {
            StatementKind::Assign { value, .. } | StatementKind::Expr(value) => shown(value),
            StatementKind::For { iter, .. } => shown(iter),
            StatementKind::Def { params, .. } => {
                let of = |param: &rx_syntax::ast::Parameter| {
                    param.tree.annotation.as_ref().map(|annotation| show(cursor.parameter(param), annotation))
                };
                params.iter().filter_map(of).collect::<Vec<_>>().join(", ")
            }
            other => format!("{other:?}"),
        }
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn show(cursor: rx_syntax::Cursor<'_>, expr: &rx_syntax::ast::Expr) -> String {
    let several = |exprs: &[rx_syntax::ast::Expr]| exprs.iter().map(|e| show(cursor, e)).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        ExprKind::Tuple(items) => format!("({})", several(items)),
        ExprKind::Call { callee, arguments } => {
            let arguments: Vec<String> = arguments.iter().map(|argument| show(cursor, &argument.value)).collect();
            format!("{}({})", cursor.source(callee.tokens), arguments.join(", "))
        }
        ExprKind::Unary(_, value) => format!("-{}", show(cursor, value)),
        ExprKind::Binary(_, left, right) => format!("{} ? {}", show(cursor, left), show(cursor, right)),
        ExprKind::Bool(truth) => format!("{truth}"),
        ExprKind::Integer | ExprKind::Float | ExprKind::String => cursor.text(expr.tokens.start).to_owned(),
        _ => cursor.source(expr.tokens).to_owned(),
    }
}

#[test]
fn uses_are_replaced() {
    let python = "W = 24\nK = 'float16'\nS = (2, W)\nB = True\nN = -0.5\n";
    for (text, expected) in [
        ("y = f((4, W), K)\n", "f((4, 24), \"float16\")"),
        ("y = f(S, B, N)\n", "f((2, 24), true, -0.5)"),
        ("y = f(*S, 3)\n", "f(2, 24, 3)"),
        ("y = f(W * 2 + x, len(S))\n", "f(48 ? x, 2)"),
        ("y = f(S[1])\n", "f(24)"),
        ("y = f(x if B else z)\n", "f(x)"),
        ("y = f(W.bits, W(3), W=1)\n", "f(W.bits, W(3), 1)"),
        ("for i in range(W):\n    pass\n", "range(24); Pass"),
        ("def g(x: f((W,)), y): pass\n", "f((24)); Pass"),
        ("y = f(int(3.0), max(1, n))\n", "f(3, max(1, n))"),
    ] {
        assert_eq!(replaced(python, text), expected, "{text}");
    }
}

#[test]
fn names_that_the_function_binds_are_its_own() {
    let python = "W = 24\nn = 3\n";
    assert_eq!(replaced(python, "y = f(W)\nW = f(1)\n"), "f(W); f(1)");
    assert_eq!(replaced(python, "def g(W): pass\ny = W\n"), "; Pass; W");
    assert_eq!(replaced(python, "y = lambda W: W\n"), "lambda W: W");
    // A quoted dim in the header is a symbol.
    assert_eq!(replaced(python, "def g(x: f((\"n\",))): pass\ny = f(n)\n"), "f((\"n\")); Pass; f(n)");
}

#[test]
fn places_are_those_of_the_uses() {
    let texts = substituted(&segments(&["y = f((4, W))\n"]), &constants("W = 24\n", 0), &SubstitutionMemo::default());
    let statement = &texts[0].tree().statements[0];
    let StatementKind::Assign { value, .. } = &statement.tree.kind else { panic!() };
    let ExprKind::Call { arguments, .. } = &value.kind else { panic!() };
    let ExprKind::Tuple(dims) = &arguments[0].value.kind else { panic!() };
    let cursor = texts[0].cursor(statement);
    assert_eq!(cursor.integer_value(&dims[1]), Some(24));
    assert_eq!(cursor.source(dims[1].tokens), "W");
}

#[test]
fn segments_are_replaced_again_only_where_something_changed() {
    let memo = SubstitutionMemo::default();
    let raw = segments(&["y = f(W)\n", "z = g(y)\n", "v = f(W)\n"]);
    let known = constants("W = 24\n", 0);
    let first = substituted(&raw, &known, &memo);
    assert!(Arc::ptr_eq(&first[1], &raw[1]) && !Arc::ptr_eq(&first[0], &raw[0]));
    let edited: Segments =
        [raw[0].clone(), Arc::new(Segment::new("z = h(y)\n".into())), raw[2].clone()].into_iter().collect();
    let second = substituted(&edited, &known, &memo);
    assert!(Arc::ptr_eq(&first[0], &second[0]) && Arc::ptr_eq(&first[2], &second[2]));
    let third = substituted(&edited, &constants("W = 25\n", 0), &memo);
    assert!(third[0] != second[0] && third[1] == second[1]);
    let without = segments(&["y = f(x)\n"]);
    assert_eq!(substituted(&without, &known, &memo).address(), without.address());
}

#[test]
fn binding_of_a_constant_that_an_edit_adds_and_removes_is_seen_in_all_segments() {
    let memo = SubstitutionMemo::default();
    let known = constants("W = 24\n", 0);
    let bound = segments(&["x = g(y)\n", "W = g(x)\n", "y = f(W)\n", "z = f(W)\n"]);
    let (free, head) = (bound.splice(1..2, []), bound.splice(1..4, []));
    for _ in 0..2 {
        let replaced = substituted(&free, &known, &memo);
        assert!(Arc::ptr_eq(&replaced[0], &free[0]));
        assert!((1..3).all(|at| !Arc::ptr_eq(&replaced[at], &free[at])));
        assert_eq!(substituted(&bound, &known, &memo).address(), bound.address());
    }
    substituted(&free, &known, &memo);
    assert_eq!(substituted(&head, &known, &memo).address(), head.address());
}

#[test]
fn substitution_after_edits_equals_one_from_scratch() {
    let pool = segments(&["a = e(W)\n", "y = f(W)\n", "z = g(y, V)\n", "V = y\n", "v = h(z)\n"]);
    let (known, memo) = (constants("W = 24\nV = 8\n", 0), SubstitutionMemo::default());
    for edited in [&[0, 1, 2][..], &[0, 4, 2], &[0, 4, 1, 2], &[0, 4, 3, 2], &[0, 4, 2], &[0], &[], &[4, 3], &[4, 2, 1]]
    {
        let raw: Segments = edited.iter().map(|at: &usize| pool[*at].clone()).collect();
        let from_scratch = substituted(&raw, &known, &SubstitutionMemo::default());
        assert_eq!(substituted(&raw, &known, &memo), from_scratch, "{edited:?}");
    }
}
