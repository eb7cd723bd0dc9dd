use crate::fixture::Fixture;
use rx_ide::{Access, SymbolKind, symbol_at};

/// Returns the text with the occurrences of the symbol at the cursor marked: `<read>`, `<=declared>`, `<!written>`.
fn marked(text: &str) -> String {
    let fixture = Fixture::new(text);
    let mut text = fixture.text();
    let symbol = symbol_at(&fixture.view(), fixture.cursor);
    for found in symbol.map(|symbol| symbol.occurrences).unwrap_or_default().into_iter().rev() {
        text.insert(found.span.end as usize, '>');
        let mark = match found.access {
            Access::Declaration => "<=",
            Access::Write => "<!",
            Access::Read => "<",
        };
        text.insert_str(found.span.start as usize, mark);
    }
    text
}

#[track_caller]
fn expect(text: &str, expected: &str) {
    assert_eq!(marked(text), expected);
}

/// Returns lines as the body of a function of a module.
fn body(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("        {line}\n")).collect();
    format!(
        "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((\"n\", 4), \"float32\")):\n{lines}"
    )
}

#[track_caller]
fn expect_body(text: &str, expected: &str) {
    let (text, expected) = (body(text), body(expected));
    let cut = |text: &str| text.split_once("):\n").map_or_else(String::new, |(_, body)| body.to_owned());
    assert_eq!(cut(&marked(&text)), cut(&expected));
}

#[test]
fn a_binding_makes_a_new_variable() {
    expect_body("a = R.abs(x)\na = R.exp($0a)\nreturn a", "<=a> = R.abs(x)\na = R.exp(<a>)\nreturn a");
    expect_body("a = R.abs(x)\na = R.exp(a)\nreturn $0a", "a = R.abs(x)\n<=a> = R.exp(a)\nreturn <a>");
    expect_body("a, b = R.split(x, 2)\nreturn $0b", "a, <=b> = R.split(x, 2)\nreturn <b>");
    expect_body("a: R.Tensor = R.abs(x)\nreturn a$0", "<=a>: R.Tensor = R.abs(x)\nreturn <a>");
}

#[test]
fn dataflow_blocks_do_not_hide_names() {
    let text = "with R.dataflow():\n    lv = R.abs(x)\n    gv$0 = R.exp(lv)\n    R.output(gv)\nreturn gv";
    let expected = "with R.dataflow():\n    lv = R.abs(x)\n    <=gv> = R.exp(lv)\n    R.output(<gv>)\nreturn <gv>";
    expect_body(text, expected);
}

#[test]
fn branches_end_with_one_variable() {
    let text = "y = x\nif c:\n    y = R.abs(y)\nelse:\n    a = R.exp(y)\n    y = R.abs(a)\nreturn $0y";
    let expected = "y = x\nif c:\n    <=y> = R.abs(y)\nelse:\n    a = R.exp(y)\n    <=y> = R.abs(a)\nreturn <y>";
    expect_body(text, expected);
    // A variable that a branch binds before its last statement is local to the branch.
    let text = "if c:\n    $0a = x\n    y = a\nelse:\n    a = x\n    y = a\nreturn y";
    let expected = "if c:\n    <=a> = x\n    y = <a>\nelse:\n    a = x\n    y = a\nreturn y";
    expect_body(text, expected);
    let text =
        "if c:\n    if d:\n        y = x\n    else:\n        y = x\nelif e:\n    y = x\nelse:\n    $0y = x\nreturn y";
    let expected = "if c:\n    if d:\n        <=y> = x\n    else:\n        <=y> = x\nelif e:\n    <=y> = x\nelse:\n    <=y> = x\nreturn <y>";
    expect_body(text, expected);
}

#[test]
fn nested_functions_see_enclosing_names() {
    let text =
        "a = x\n@R.function\ndef inner(b: R.Tensor((\"n\", 4))):\n    c = R.add($0a, b)\n    return c\nreturn inner(a)";
    let expected = "<=a> = x\n@R.function\ndef inner(b: R.Tensor((\"n\", 4))):\n    c = R.add(<a>, b)\n    return c\nreturn inner(<a>)";
    expect_body(text, expected);
    let text = "a = x\n@R.function\ndef inner($0a: R.Any):\n    return a\nreturn inner(a)";
    let expected = "a = x\n@R.function\ndef inner(<=a>: R.Any):\n    return <a>\nreturn inner(a)";
    expect_body(text, expected);
    let text = "a = x\n@R.function\ndef inner(a: R.Any):\n    return a\nreturn $0inner(a)";
    let expected = "a = x\n@R.function\ndef <=inner>(a: R.Any):\n    return a\nreturn <inner>(a)";
    expect_body(text, expected);
}

#[test]
fn symbolic_dims_are_one_in_their_function() {
    let text = "@R.function
def f(x: R.Tensor((\"n\", 'n*2', 4), dtype=\"n\")) -> R.Tensor((n, 4)):
    n = T.int64()
    R.func_attr({\"tir_var_upper_bound\": {\"n\": 8}, \"n\": 1})
    y: R.Tensor((r\"$0n + m\",)) = R.reshape(x, R.shape([T.int64(2) * n, 4]))  # n
    z = R.match_cast(y, R.Tensor((\"m\", n)))
    return z
@R.function
def g(x: R.Tensor((\"n\",))):
    return x
";
    let expected = "@R.function
def f(x: R.Tensor((\"<=n>\", '<n>*2', 4), dtype=\"n\")) -> R.Tensor((<n>, 4)):
    <=n> = T.int64()
    R.func_attr({\"tir_var_upper_bound\": {\"<n>\": 8}, \"n\": 1})
    y: R.Tensor((r\"<n> + m\",)) = R.reshape(x, R.shape([T.int64(2) * <n>, 4]))  # n
    z = R.match_cast(y, R.Tensor((\"m\", <n>)))
    return z
@R.function
def g(x: R.Tensor((\"n\",))):
    return x
";
    expect(text, expected);
}

#[test]
fn a_symbol_of_the_file_is_one_in_all_functions() {
    let text = "n = TypeVar(\"n\")
@R.function
def f(x: R.Tensor((n, 4))):
    y = R.reshape(x, (4, $0n))
    return y
@R.function
def g(x: R.Tensor((\"n\",))):
    return x
@T.prim_func
def h(a: T.Buffer((n,))):
    T.evaluate(n)
@R.function
def k(n: R.Prim(\"int64\"), x: R.Tensor((n,))):
    return x
";
    let expected = "<=n> = TypeVar(\"<n>\")
@R.function
def f(x: R.Tensor((<n>, 4))):
    y = R.reshape(x, (4, <n>))
    return y
@R.function
def g(x: R.Tensor((\"<n>\",))):
    return x
@T.prim_func
def h(a: T.Buffer((<n>,))):
    T.evaluate(<n>)
@R.function
def k(n: R.Prim(\"int64\"), x: R.Tensor((n,))):
    return x
";
    expect(text, expected);
}

#[test]
fn functions_are_members_of_their_module() {
    let text = "@I.ir_module
class Module:
    @R.function
    def f(x: R.Any):
        R.func_attr({\"global_symbol\": \"f\"})
        cls = Module
        return cls.g(x)
    @R.function
    def main(x: R.Any):
        cls = Module
        f = cls.f(x)
        a = Module.$0f(f)
        return x.f(a)
@I.ir_module
class Other:
    @R.function
    def f(x: R.Any):
        return x
";
    let expected = "@I.ir_module
class Module:
    @R.function
    def <=f>(x: R.Any):
        R.func_attr({\"global_symbol\": \"<f>\"})
        cls = Module
        return cls.g(x)
    @R.function
    def main(x: R.Any):
        cls = Module
        f = cls.<f>(x)
        a = Module.<f>(f)
        return x.f(a)
@I.ir_module
class Other:
    @R.function
    def f(x: R.Any):
        return x
";
    expect(text, expected);
    expect(
        &text.replace('$', "").replace("def f0", "def f").replace(".0f", ".f").replacen(
            "cls = Module",
            "cls$0 = Module",
            1,
        ),
        &expected.replace(['<', '>'], "").replace("def =f", "def f").replacen(
            "cls = Module\n        return cls",
            "<=cls> = Module\n        return <cls>",
            1,
        ),
    );
    expect(
        &text.replace("$0", "").replacen("class Module", "class $0Module", 1),
        &expected
            .replace(['<', '>'], "")
            .replace("def =f", "def f")
            .replace(" Module", " <Module>")
            .replace("class <", "class <=")
            .replace("Module.f", "Module>.f")
            .replace(" = Module>", " = <Module>")
            .replace("<<", "<"),
    );
}

const PRIM: &str = "@T.prim_func
def f(a: T.handle, B: T.Buffer((8,), \"float32\")):
    n = T.int64()
    A = T.match_buffer(a, (n, 8))
    for i in range(8):
        with T.sblock(\"one\"):
            vi = T.axis.spatial(8, i)
            T.writes(B[vi])
            B[vi] = A[0, vi]
    for i in range(8):
        with T.sblock(\"two\"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + A[n - 1, vi]
";

/// Returns the occurrences of the symbol at the `at`-th occurrence of `word` in `PRIM`.
fn in_prim(word: &str, at: usize) -> Vec<(usize, Access)> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let whole = |found: &usize| {
        let before = found.checked_sub(1).and_then(|before| PRIM.as_bytes().get(before));
        !is_part(before) && !is_part(PRIM.as_bytes().get(found + word.len()))
    };
    let all: Vec<usize> = PRIM.match_indices(word).map(|(found, _)| found).filter(whole).collect();
    let fixture = Fixture::new(&format!("{}$0{}", &PRIM[..all[at]], &PRIM[all[at]..]));
    let symbol = symbol_at(&fixture.view(), fixture.cursor).expect("a symbol");
    let index = |start: u32| all.iter().position(|found| *found == start as usize).expect("one of them");
    symbol.occurrences.iter().map(|found| (index(found.span.start), found.access)).collect()
}

#[test]
fn names_of_a_prim_func() {
    use Access::{Declaration, Read, Write};
    assert_eq!(in_prim("vi", 1), [(0, Declaration), (1, Read), (2, Read), (3, Read)]);
    assert_eq!(in_prim("vi", 4), [(4, Declaration), (5, Read), (6, Read), (7, Read)]);
    assert_eq!(in_prim("i", 1), [(0, Declaration), (1, Read)]);
    assert_eq!(in_prim("i", 3), [(2, Declaration), (3, Read)]);
    assert_eq!(in_prim("B", 0), [(0, Declaration), (1, Read), (2, Write), (3, Write), (4, Read)]);
    assert_eq!(in_prim("A", 1), [(0, Declaration), (1, Read), (2, Read)]);
    assert_eq!(in_prim("n", 2), [(0, Declaration), (1, Read), (2, Read)]);
    assert_eq!(in_prim("a", 0), [(0, Declaration), (1, Read)]);
}

#[test]
fn lambda_parameters_are_local() {
    let text = "@T.prim_func
def f(x: T.int32):
    r = T.comm_reducer(lambda x, y: $0x + y, [x])
";
    let expected = "@T.prim_func
def f(x: T.int32):
    r = T.comm_reducer(lambda <=x>, y: <x> + y, [x])
";
    expect(text, expected);
}

#[test]
fn comprehension_variables_are_local() {
    let text = "@T.prim_func
def f(x: T.int32, y: T.int32):
    r = T.f([$0x + y for x in range(x) if x for y in range(x)], x, {k: x for k, v in x})
";
    let expected = "@T.prim_func
def f(x: T.int32, y: T.int32):
    r = T.f([<x> + y for <=x> in range(x) if <x> for y in range(<x>)], x, {k: x for k, v in x})
";
    expect(text, expected);
    let outer = text.replace("$0x +", "x +").replace("range(x) if", "range($0x) if");
    let expected = "@T.prim_func
def f(<=x>: T.int32, y: T.int32):
    r = T.f([x + y for x in range(<x>) if x for y in range(x)], <x>, {k: <x> for k, v in <x>})
";
    expect(&outer, expected);
}

#[test]
fn python_files_are_read_for_their_modules_only() {
    let text = "x = 1
print(x)
@R.function
def f(x: R.Tensor((4,))):
    return $0x
print(x)
";
    let fixture = Fixture::of(&text.replace("$0", ""), rx_db::FileKind::Python);
    let cursor = text.find("$0").expect("a cursor");
    let symbol = symbol_at(&fixture.view(), cursor).expect("a symbol");
    assert_eq!((symbol.kind, symbol.occurrences.len()), (SymbolKind::Parameter, 2));
    assert_eq!(symbol_at(&fixture.view(), 0), None);
}

#[test]
fn there_is_no_symbol_in_comments_keywords_and_operators() {
    for text in [
        "# a$0\n",
        "@R.function\ndef f(x):\n    ret$0urn x\n",
        "@R.function\ndef f(x):\n    y = R.a$0dd(x, x)\n",
        "$0",
        "@R.function\ndef f(x):\n    y = R.sum(x, ax$0is=1)\n",
    ] {
        assert_eq!(marked(text), text.replace("$0", ""));
    }
}

#[test]
fn broken_text_has_names_too() {
    let text = "@R.function
def f(x: R.Tensor((4,)):
    é = R.add(x, (\r
    y = R.exp(é$0
    return R.add(y, é))
";
    let found = symbol_at(&Fixture::new(text).view(), text.find("$0").expect("a cursor"));
    assert!(found.is_some_and(|found| found.occurrences.len() >= 2));
}

#[test]
fn a_definition_is_the_nearest_binding() {
    let targets = |text: &str| {
        let fixture = Fixture::new(text);
        rx_ide::definition(&fixture.view(), fixture.cursor).map(|found| found.targets).unwrap_or_default()
    };
    let text = body("if c:\n    y = x\n    y = R.abs($0y)\nelse:\n    y = x\nreturn y");
    let first = text.find("y = x").expect("a binding") as u32;
    assert_eq!(targets(&text), [rx_base::Span::new(first, first + 1)]);
    let text = body("if c:\n    y = x\nelse:\n    y = R.abs(x)\nreturn $0y");
    assert_eq!(targets(&text).len(), 2);
    assert_eq!(targets(&body("return nowher$0e")), []);
}

#[test]
fn macros_are_called_from_other_functions_and_by_keywords() {
    let text = "@T.inline
def put(buf, k, value=T.float32(0)):
    buf[k] = value
@I.ir_module
class Module:
    @T.prim_func
    def f(B: T.Buffer((8,), \"float32\")):
        $0put(B, 0)
        put(k=1, buf=B)
    @R.function
    def put(x: R.Any):
        return x
@T.prim_func
def g(B: T.Buffer((8,), \"float32\"), k: T.int32):
    put(B, k=k)
    other(k=k)
";
    // A function of the module hides a macro with the same name outside the module.
    assert!(!marked(text).contains("<=put>(buf"));
    let text = text.replace("    @R.function\n    def put(x: R.Any):\n        return x\n", "");
    let marks = |text: &str| text.replace("$0", "");
    let expected = marks(&text).replace("put(", "<put>(").replace("def <put>", "def <=put>");
    expect(&text, &expected);
    let text = marks(&text);
    let expected = text
        .replace("(buf, k,", "(buf, <=k>,")
        .replace("buf[k]", "buf[<k>]")
        .replace("put(k=1", "put(<k>=1")
        .replace("put(B, k=k)", "put(B, <k>=k)");
    for asked in ["(buf, $0k,", "put($0k=1", "put(B, $0k=k)"] {
        expect(&text.replacen(&asked.replace("$0", ""), asked, 1), &expected);
    }
}

#[test]
fn a_macro_of_a_function_is_one_with_its_calls() {
    let text = "@T.prim_func
def f(B: T.Buffer((8,), \"float32\"), value: T.float32):
    for i in range(8):
        @T.inline
        def put($0value):
            B[i] = value
        put(value=value)
    B[0] = value
";
    let expected = "@T.prim_func
def f(B: T.Buffer((8,), \"float32\"), value: T.float32):
    for i in range(8):
        @T.inline
        def put(<=value>):
            B[i] = <value>
        put(<value>=value)
    B[0] = value
";
    expect(text, expected);
    expect(&text.replace("$0value", "value").replace("put(value=", "put($0value="), expected);
}

#[test]
fn texts_of_dims_call_operators_by_their_names() {
    let text = "@R.function
def f(x: R.Tensor((\"$0T\", \"T.floordiv(T=2, a=T)\", \"max(T, b.T)\"))):
    return x
";
    let expected = "@R.function
def f(x: R.Tensor((\"<=T>\", \"T.floordiv(T=2, a=<T>)\", \"max(<T>, b.T)\"))):
    return x
";
    expect(text, expected);
}
