//! Tests with pathological text: deep nesting, long lines, many items, cycles, odd characters. Each must give a few
//! meaningful diagnostics, in bounded time and memory, on the stack of rx's worker threads.

use rx_base::{Diagnostic, Span};
use rx_db::{FileKind, Workspace};
use std::fmt::Write;

/// The stack size of a worker, in bytes.
const STACK: usize = 64 << 20;

/// The most bytes that the diagnostics of one text may have here.
const MOST_SAID: usize = 16 << 20;

const MANY: usize = 100_000;

/// Returns all diagnostics of `text`, after checking that their positions are inside it.
fn said(text: &str, kind: FileKind) -> Vec<Diagnostic<Span>> {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, kind);
    let diagnostics = workspace.diagnostics(file);
    let mut bytes = 0;
    for diagnostic in &diagnostics {
        let labels = diagnostic.labels.iter().map(|label| label.place);
        for span in labels.chain([diagnostic.primary]) {
            assert!(text.get(span.range()).is_some(), "{span:?} is no place: {diagnostic:?}");
        }
        bytes += diagnostic.message.len() + diagnostic.labels.iter().map(|label| label.text.len()).sum::<usize>();
    }
    for row in workspace.types(file) {
        assert!(text.get(row.span.range()).is_some(), "{row:?} stands nowhere");
        bytes += row.struct_info.len();
    }
    assert!(bytes < MOST_SAID, "{bytes} bytes are said");
    diagnostics
}

/// Runs `work` on a thread with a worker's stack.
fn on_a_worker<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).expect("a thread");
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns the slugs of the diagnostics, with a count if there are several: `syntax-error`, `no-schema ×3`.
fn summary(text: &str, kind: FileKind) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for diagnostic in on_a_worker(|| said(text, kind)) {
        let slug = diagnostic.code.slug();
        match counts.iter_mut().find(|(known, _)| *known == slug) {
            Some((_, count)) => *count += 1,
            None => counts.push((slug, 1)),
        }
    }
    let shown = counts.iter().map(|(slug, count)| match count {
        1 => (*slug).to_owned(),
        count => format!("{slug} ×{count}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Checks the summary of a script's diagnostics; "" means none. The text is also read as Python, where any diagnostics
/// are accepted.
#[track_caller]
fn expect(text: &str, expected: &str) {
    let found = summary(text, FileKind::Rx);
    let start: String = text.chars().take(120).collect();
    assert_eq!(found, expected, "of {start:?}");
    on_a_worker(|| said(text, FileKind::Python));
}

/// Checks that the diagnostic `slug` occurs exactly once; other diagnostics may follow from it.
#[track_caller]
fn said_once(slug: &str, text: &str) {
    let found = summary(text, FileKind::Rx);
    assert!(found.split(", ").any(|part| part == slug), "`{slug}` is not said once: {found}");
    on_a_worker(|| said(text, FileKind::Python));
}

/// Returns a function with this body.
fn function(body: &str) -> String {
    with_params("x: R.Tensor((4,), dtype=\"float32\")", body)
}

/// Returns a function with these parameters and this body, which returns its first parameter, `x`.
fn with_params(params: &str, body: &str) -> String {
    format!("@R.function\ndef f({params}):\n{body}    return x\n")
}

/// Returns `count` lines, each made from its number.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

/// Returns a module of `count` functions, each with a body made from its number; all take `x`.
fn module(count: usize, body: impl Fn(usize) -> String) -> String {
    let mut text = "@I.ir_module\nclass Module:\n".to_owned();
    for at in 0..count {
        // INVARIANT: writing to a string does not fail.
        let _ = write!(
            text,
            "    @R.function\n    def f{at}(x: R.Any):\n        cls = Module\n        return {}\n",
            body(at)
        );
    }
    text
}

#[test]
fn brackets_without_end() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{", "}")] {
        let (open, close) = (open.repeat(MANY), close.repeat(MANY));
        expect(&function(&format!("    y = {open}{close}\n")), "nesting-too-deep");
        expect(&function(&format!("    y = {open}\n")), "nesting-too-deep");
        expect(&function(&format!("    y = {close}\n")), "unclosed-bracket");
        expect(&format!("{open}{close}\n"), "nesting-too-deep");
    }
    expect(&function(&format!("    y = {}{}\n", "([{".repeat(MANY / 3), "}])".repeat(MANY / 3))), "nesting-too-deep");
    expect(&function(&format!("    y = {}{}\n", "([{".repeat(MANY / 3), ")]}".repeat(MANY / 3))), "nesting-too-deep");
    expect(&function(&format!("    y = {}{}\n", "(\n".repeat(MANY), ")\n".repeat(MANY))), "nesting-too-deep");
    let ty = format!("x: {}{}", "R.Tuple(".repeat(MANY), ")".repeat(MANY));
    expect(&with_params(&ty, ""), "nesting-too-deep");
}

#[test]
fn operators_without_end() {
    let chains = [
        ("", "-", "x"),
        ("", "not ", "x"),
        ("", "await ", "x"),
        ("", "lambda: ", "x"),
        ("x", " + x", ""),
        ("x", " ** x", ""),
        ("x", " if x else x", ""),
        ("x", ".a", ""),
        ("x", "()", ""),
        ("x", "[0]", ""),
    ];
    for (before, link, after) in chains {
        expect(&function(&format!("    y = {before}{}{after}\n", link.repeat(MANY))), "nesting-too-deep");
        // Nesting just below the limit is walked by all recursive code.
        on_a_worker(|| said(&function(&format!("    y = {before}{}{after}\n", link.repeat(990))), FileKind::Rx));
    }
    let flat = ["x < ".repeat(MANY), "x and ".repeat(MANY), "\"a\" ".repeat(MANY) + "\"\" and "];
    for chain in flat {
        on_a_worker(|| said(&function(&format!("    y = {chain}x\n")), FileKind::Rx));
    }
    on_a_worker(|| said(&function(&format!("    {}x\n", "y = ".repeat(MANY))), FileKind::Rx));
}

#[test]
fn statements_without_end() {
    // A single long list is rejected; the same numbers spread over many statements are accepted.
    let numbers = "1, ".repeat((1 << 21) + 1);
    expect(&function(&format!("    y = R.const([{numbers}], \"int32\")\n")), "statement-too-long");
}

#[test]
fn blocks_without_end() {
    let nested = |depth: usize, header: &str, last: &str| {
        let blocks = lines(depth, |at| format!("    {}{header}\n", " ".repeat(at)));
        function(&format!("{blocks}    {}{last}\n", " ".repeat(depth)))
    };
    for text in [
        nested(1000, "if x:", "y = x"),
        nested(1000, "with R.dataflow():", "y = x"),
        function(&format!("    {}y = x\n", "if x: ".repeat(MANY))),
    ] {
        said_once("nesting-too-deep", &text);
    }
    let functions = lines(500, |at| {
        let indent = " ".repeat(at + 4);
        format!("{indent}@R.function\n{indent}def g{at}(x: R.Any):\n")
    });
    said_once("nesting-too-deep", &function(&format!("{functions}{}return x\n", " ".repeat(504))));
    let prim = lines(1000, |at| format!("    {}for i in range(3):\n", " ".repeat(at)));
    said_once("nesting-too-deep", &format!("@T.prim_func\ndef f():\n{prim}"));
    expect(&lines(1000, |at| format!("{}class A:\n", " ".repeat(at))), "empty-block");
}

#[test]
fn ladders_of_branches() {
    let params = "x: R.Any, c: R.Tensor((), \"bool\")";
    let arm = "    elif c:\n        y = x\n".repeat(10_000);
    expect(&with_params(params, &format!("    if c:\n        y = x\n{arm}    else:\n        y = x\n")), "");
    expect(&with_params(params, &format!("    if c:\n        y = x\n{arm}")), "missing-else");
    expect(&with_params(params, &"    if c:\n        y = x\n    else:\n        y = x\n".repeat(10_000)), "");
}

#[test]
fn the_arms_of_a_branch_join() {
    let params = "c: R.Tensor((), \"bool\"), x: R.Tensor((4,), \"float32\"), z: R.Tensor((5,), \"float32\")";
    let arms =
        "    if c:\n        y = x\n    elif c:\n        y = x\n    else:\n        y = z\n    w = R.reshape(y, (4,))\n";
    expect(&with_params(params, arms), "");
    expect(&with_params(params, &arms.replace("y = z", "v = z")), "if-branch-mismatch");
}

#[test]
fn long_lines() {
    // One type with more parts than a type may have.
    expect(&function(&format!("    y = R.concat(({}))\n", "x, ".repeat(300_000))), "nesting-too-deep");
    expect(&function(&format!("    {} = x\n", "y".repeat(5_000_000))), "");
    expect(&function(&format!("    y = R.str(\"{}\")\n", "a".repeat(5_000_000))), "");
    expect(&format!("#{}\n{}", "a".repeat(5_000_000), function("")), "");
    expect(&function(&format!("    {}\n", "y = x; ".repeat(20_000))), "");
    expect(&function(&format!("    y = x {}\n", "\\\n".repeat(MANY))), "");
    expect(&with_params(&"x: R.Tensor((4,), dtype=\"float32\"), ".repeat(10_000), ""), "duplicate-definition ×9999");
}

#[test]
fn circles_and_chains_of_calls() {
    expect(&module(2, |at| format!("cls.f{}(x)", 1 - at)), "");
    // Functions in a call cycle are still checked for other mistakes.
    expect(&module(1, |_| "cls.f0(x, R.nowhere(x))".to_owned()), "call-arity-mismatch, unknown-operator");
    expect(&module(1000, |at| format!("cls.f{}(x, x)", (at + 1) % 1000)), "call-arity-mismatch ×1000");
    expect(&module(1000, |at| if at == 999 { "x".to_owned() } else { format!("cls.f{}(x)", at + 1) }), "");
}

#[test]
fn an_edit_that_ends_a_circle() {
    // The memo of the last check still contains the function's call of itself.
    let (call, mistake) = ("cls.f0(x)", "R.nowhere(x)");
    let text = module(1, |_| call.to_owned());
    let mut workspace = Workspace::new();
    let file = workspace.add(&text, FileKind::Rx);
    assert!(workspace.diagnostics(file).is_empty());
    let at = text.find(call).expect("the call");
    workspace.edit(file, at..at + call.len(), mistake);
    assert_eq!(workspace.diagnostics(file), said(&text.replace(call, mistake), FileKind::Rx));
    assert_eq!(workspace.diagnostics(file).len(), 1);
}

#[test]
fn types_that_double() {
    said_once(
        "nesting-too-deep",
        &function(&format!("    t0 = (x, x)\n{}", lines(20, |at| format!("    t{} = (t{at}, t{at})\n", at + 1)))),
    );
    said_once(
        "nesting-too-deep",
        &function(&format!("    t0 = (x,)\n{}", lines(300, |at| format!("    t{} = (t{at},)\n", at + 1)))),
    );
    let functions = lines(20, |at| {
        let value = if at == 0 { "x".to_owned() } else { format!("(g{0}, g{0})", at - 1) };
        format!("    @R.function\n    def g{at}(a: R.Any):\n        return {value}\n")
    });
    said_once("nesting-too-deep", &function(&functions));
    // The inferred return types of a call chain also double in size with each function.
    let doubling =
        module(40, |at| if at == 39 { "(x, x)".to_owned() } else { format!("(cls.f{0}(x), cls.f{0}(x))", at + 1) });
    on_a_worker(|| said(&doubling, FileKind::Rx));
}

#[test]
fn dims_that_double() {
    for step in ["T.max(s{} // 3 * m, s{} + m)", "s{} & s{}", "s{} * s{} + 1", "T.if_then_else(s{} > 3, s{}, m)"] {
        let dims = lines(60, |at| format!("    s{} = R.prim_value({})\n", at + 1, step.replace("{}", &at.to_string())));
        let body = format!("    s0 = R.prim_value(n)\n{dims}    z = R.zeros(R.shape([s60]), \"float32\")\n");
        let text = with_params("x: R.Tensor((n, m), \"float32\")", &body);
        expect(&format!("n = TypeVar(\"n\")\nm = TypeVar(\"m\")\n{text}"), "");
    }
    let nested =
        format!("x: R.Tensor((n, m)), y: R.Tensor(({}n{},))", "T.max(".repeat(250), ", m // 3 - n)".repeat(250));
    expect(&format!("n = TypeVar(\"n\")\nm = TypeVar(\"m\")\n{}", with_params(&nested, "")), "");
}

#[test]
fn numbers_without_end() {
    let big = "9".repeat(10_000);
    said_once("attr-out-of-range", &with_params(&format!("x: R.Tensor(({big},), \"float32\")"), ""));
    said_once("attr-out-of-range", &with_params(&format!("x: R.Tensor((\"n * {big}\",), \"float32\")"), ""));
    expect(&function(&format!("    y = R.nn.softmax(x, axis={big})\n")), "attr-out-of-range");
    on_a_worker(|| said(&function(&format!("    y = R.const({big}, \"int64\")\n")), FileKind::Rx));
    expect(&function(&format!("    t = (x, x)\n    y = t[{big}]\n    z = t[-{big}]\n")), "attr-out-of-range ×2");
}

#[test]
fn dims_beyond_all_bounds() {
    let huge = 1u64 << 62;
    let body = "    a = R.concat((x, x), axis=0)\n    b = R.flatten(x)\n    c = R.repeat(x, 4, axis=0)\n    d = R.matmul(x, x)\n    e = R.reshape(x, (-1,))\n";
    expect(&with_params(&format!("x: R.Tensor(({huge}, {huge}), \"float32\")"), body), "");
    on_a_worker(|| said(&with_params("x: R.Tensor((-3, -9223372036854775808), \"float32\")", body), FileKind::Rx));
    let pieces = format!(
        "    t = R.split(x, {huge}, axis=0)\n    y = R.tile(x, ({huge}, {huge}))\n    z = R.arange(0, {huge}, 1, \"int64\")\n"
    );
    on_a_worker(|| said(&function(&pieces), FileKind::Rx));
    let ranks = "x: R.Tensor(ndim=9223372036854775807), y: R.Tensor(ndim=-7), s: R.Shape(ndim=99999999999)";
    let body = "    z = R.add(x, y)\n    w = R.permute_dims(x)\n    v = R.flatten(x)\n    u = R.expand_dims(x, 0)\n    t = R.broadcast_to(y, s)\n";
    on_a_worker(|| said(&with_params(ranks, body), FileKind::Rx));
}

#[test]
fn line_ends_and_indentation() {
    let plain = function("    y = R.add(x, x)\n");
    for text in [
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        format!("\u{feff}{plain}"),
        plain.replace("    ", "\t"),
    ] {
        expect(&text, "");
    }
    on_a_worker(|| said(&plain.replace("    ", "  \u{c}  "), FileKind::Rx));
    let params = "x: R.Any";
    expect(&with_params(params, "\ty = x\n        z = y\n  \tw = z\n\treturn w\n").replace("    return x\n", ""), "");
    let stray = with_params(params, "    y = x\n\tz = y\n   w = z\n      v = w\n");
    said_once("bad-indentation", &stray.replace("\tz = y\n", "").replace("      v = w\n", ""));
    on_a_worker(|| said(&stray, FileKind::Rx));
}

#[test]
fn odd_characters() {
    expect(&function("    y = x\0\n"), "invalid-character");
    expect(&"\0".repeat(1000), "invalid-character");
    let scripts = "    変数 = R.add(переменная, переменная)\n    ｘ = 変数\n    x = ｘ\n";
    expect(&with_params("переменная: R.Tensor((\"число\", 4), \"float32\")", scripts), "");
    expect(&function("    y = R.str(\"\u{202e} abc\") # \u{2066}\n    \u{200b} = x\n"), "invalid-character");
    let escapes = r#"\n\a\0\377\x41\u00e9\U0001F600\N{BULLET}\N{NO SUCH}\q\ud800\udc00\U00110000\x4\"#;
    expect(&function(&format!("    y = R.str(\"{escapes}\n next\")\n")), "");
    let surrogates = with_params(
        r#"x: R.Tensor(("\ud800", "", "n +", "'n'"), "\ud800")"#,
        "    y = R.call_packed(\"\\ud800\", x, ty_args=R.Any)\n",
    );
    on_a_worker(|| said(&surrogates, FileKind::Rx));
    on_a_worker(|| said(&function("    y = R.\u{feff}add(x, x)\n    a\u{301} = x\n"), FileKind::Rx));
}

#[test]
fn nearly_nothing() {
    for text in ["", "\n", " ", "#", "\u{feff}", "metadata", "    x", ";"] {
        expect(text, "");
    }
    for text in [
        "@R.function",
        "@R.function\n",
        "@I.ir_module",
        "@I.ir_module\nclass",
        "@R.function\ndef",
        "def",
        ":",
        "metadata =",
    ] {
        expect(text, "syntax-error");
    }
    expect("\\", "invalid-character");
    expect("\"\"\"", "unclosed-string");
    expect("(", "unclosed-bracket");
    expect("class M:", "empty-block");
    expect(&"# a\n".repeat(1000), "");
    expect(&"\n".repeat(1_000_000), "");
    said_once("unclosed-string", &function("    y = \"\"\"abc\n"));
    expect(&format!("\"\"\"abc\n{}", function("")), "unclosed-string");
}

#[test]
fn metadata_that_is_none() {
    let uses = "    y = metadata[\"ir.GenericConst\"][0]\n    z = metadata[\"ir.GenericConst\"][-1]\n    w = metadata[0]\n    u = metadata[\"a\"][\"b\"][\"c\"]\n    t = metadata[\"relax.expr.Constant\"][99999999999999999999]\n";
    let outside = r#"{"root_index": 99999999999, "nodes": [{"type": "Map", "keys": ["ir.GenericConst"], "data": [77777777777777777777]}]}"#;
    let deep = "[".repeat(MANY) + &"]".repeat(MANY);
    let many = format!("{{\"root_index\": 1, \"nodes\": [{}{{}}]}}", "{\"type\": \"x\"},".repeat(MANY));
    for json in ["", "{", "{\"nodes\": [", "null", "[]", outside, &deep, &many] {
        said_once(
            "malformed-metadata",
            &format!("metadata = tvm.ir.load_json(\"\"\"{json}\"\"\")\n{}", function(uses)),
        );
    }
}

#[test]
fn many_of_everything() {
    expect(&function(&lines(5000, |at| format!("    y{at} = R.add(zz{at}, x)\n"))), "undefined-name ×5000");
    expect(&function(&"    y = = x\n".repeat(5000)), "syntax-error ×5000");
    expect(&"@R.function\n".repeat(20_000), "syntax-error");
    let same = "    @R.function\n    def a(x: R.Any):\n        return x\n";
    expect(&format!("@I.ir_module\nclass Module:\n{}", same.repeat(3000)), "duplicate-definition ×2999");
    on_a_worker(|| said(&format!("@I.ir_module\nclass Module:\n{same}").repeat(1000), FileKind::Rx));
    let operators = lines(2000, |at| format!("    y{at} = R.addd{at}(x, x)\n"));
    on_a_worker(|| said(&function(&operators), FileKind::Rx));
    let (subscripts, layout, axes) = ("ab".repeat(50_000), "NCHW".repeat(50_000), "0, ".repeat(50_000));
    let body = format!(
        "    y = R.einsum((x, x), \"{subscripts}\")\n    z = R.nn.conv2d(x, x, data_layout=\"{layout}\")\n    w = R.einsum((x,), \"é,->->\")\n    v = R.expand_dims(x, axis=[{axes}])\n"
    );
    on_a_worker(|| said(&with_params("x: R.Tensor((1, 2, 3, 4), \"float32\")", &body), FileKind::Rx));
}
