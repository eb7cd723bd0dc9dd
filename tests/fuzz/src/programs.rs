//! Generates programs of any size of the kinds that make compilers slow: chains, diamonds, trees, nesting, ranks, wide
//! tuples, branches.

use std::fmt::Write;

/// A kind of program.
pub struct Kind {
    /// The name.
    pub name: &'static str,
    /// Generates a program of a given size.
    pub text: fn(usize) -> String,
    /// The smallest size that a test uses.
    pub size: usize,
    /// The power of the size with which the output may grow: 2 if the printed text is indented by an amount
    /// proportional to its length, or repeats all axes for each axis.
    pub power: u32,
}

/// All kinds.
pub const KINDS: [Kind; 24] = [
    kind("chain of operators", chain, 20, 1),
    kind("chain of one operand", unary, 60, 1),
    kind("chain of selections", selections, 20, 1),
    kind("chain of integers", integers, 20, 1),
    kind("diamonds", diamonds, 20, 1),
    kind("diamonds through a permutation", permuted, 12, 1),
    kind("sums of what was summed", sums, 12, 1),
    kind("tree", tree, 24, 1),
    kind("operands in operands", nested_calls, 24, 1),
    kind("operands of one call", operands, 16, 2),
    kind("einsum", einsum, 12, 1),
    kind("tuple of itself", shared_tuples, 20, 1),
    kind("tuple in a tuple", nested_tuples, 24, 2),
    kind("wide tuple", wide_tuple, 250, 1),
    kind("branches", branches, 60, 1),
    // An `elif` is an `if` in the `else` before it, which is printed with more indentation.
    kind("branches of one condition", alternatives, 60, 2),
    kind("branches in branches", nested_branches, 20, 2),
    kind("chain of functions", functions, 30, 1),
    kind("functions that call the next twice", doubled_functions, 7, 1),
    kind("closures", closures, 12, 1),
    kind("rank", rank, 120, 1),
    kind("symbolic rank", symbolic_rank, 10, 2),
    kind("dims of dims", dims, 6, 2),
    kind("names of names", names, 20, 1),
];

const fn kind(name: &'static str, text: fn(usize) -> String, size: usize, power: u32) -> Kind {
    Kind { name, text, size, power }
}

const HEAD: &str =
    "from tvm.script import ir as I\nfrom tvm.script import tirx as T\nfrom tvm.script import relax as R\n\n";

/// The type of a matrix.
const M: &str = "R.Tensor((4, 4), \"float32\")";

/// Returns the names `p0`, `p1`, … for the letter `p`.
fn numbered(letter: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{letter}{at}")).collect()
}

/// Returns a function `main` with these parameters, all of type `ty`, and these lines.
fn main_of(params: &[String], ty: &str, lines: &[String], result: &str) -> String {
    let params: Vec<String> = params.iter().map(|param| format!("{param}: {ty}")).collect();
    let body: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!("{HEAD}@R.function\ndef main({}):\n{body}    return {result}\n", params.join(", "))
}

/// Returns `main` with the lines `v1 = step(v0)`, `v2 = step(v1)`, …; `step` gets the number of the previous variable.
/// For example, [`unary`] of size 2 has the lines `v1 = R.exp(v0)` and `v2 = R.nn.relu(v1)`.
fn steps(size: usize, ty: &str, step: impl Fn(usize) -> Vec<String>) -> String {
    let lines: Vec<String> = (0..size).flat_map(step).collect();
    main_of(&["v0".to_owned()], ty, &lines, &format!("v{size}"))
}

fn chain(size: usize) -> String {
    let line = |at: usize| format!("v{} = R.add({}{at}, p{})", at + 1, if at == 0 { "p" } else { "v" }, at + 1);
    let lines: Vec<String> = (0..size).map(line).collect();
    main_of(&numbered("p", size + 1), M, &lines, &format!("v{size}"))
}

fn unary(size: usize) -> String {
    let operator = |at: usize| ["exp", "nn.relu", "negative"][at % 3];
    steps(size, M, |at| vec![format!("v{} = R.{}(v{at})", at + 1, operator(at))])
}

fn selections(size: usize) -> String {
    let step = |at: usize| format!("v{} = R.where(R.greater(v{at}, R.const(0.0)), R.add(v{at}, v{at}), v{at})", at + 1);
    steps(size, M, |at| vec![step(at)])
}

fn integers(size: usize) -> String {
    let step = |at: usize| format!("v{} = R.add(v{at}, R.floor_divide(v{at}, R.const(3, \"int32\")))", at + 1);
    steps(size, "R.Tensor((4, 4), \"int32\")", |at| vec![step(at)])
}

fn diamonds(size: usize) -> String {
    steps(size, M, |at| vec![format!("a{at} = R.exp(v{at})"), format!("v{} = R.multiply(a{at}, v{at})", at + 1)])
}

fn permuted(size: usize) -> String {
    steps(size, M, |at| {
        let sides = [format!("a{at} = R.nn.relu(v{at})"), format!("b{at} = R.permute_dims(v{at})")];
        sides.into_iter().chain([format!("v{} = R.multiply(a{at}, b{at})", at + 1)]).collect()
    })
}

fn sums(size: usize) -> String {
    let sum = |at: usize| format!("a{at} = R.sum(v{at}, axis=1, keepdims=True)");
    steps(size, M, |at| vec![sum(at), format!("v{} = R.add(v{at}, a{at})", at + 1)])
}

fn tree(size: usize) -> String {
    let mut level = numbered("p", size);
    let params = level.clone();
    let mut lines = Vec::new();
    while level.len() > 1 {
        let mut next = Vec::new();
        for pair in level.chunks(2) {
            let name = match pair {
                [left, right] => {
                    lines.push(format!("t{} = R.add({left}, {right})", lines.len()));
                    format!("t{}", lines.len() - 1)
                }
                _ => pair.concat(),
            };
            next.push(name);
        }
        level = next;
    }
    main_of(&params, M, &lines, &level.concat())
}

fn nested_calls(size: usize) -> String {
    main_of(&["x".to_owned()], M, &[], &format!("{}x{}", "R.exp(".repeat(size), ")".repeat(size)))
}

fn operands(size: usize) -> String {
    let params: Vec<String> = (0..size).map(|at| format!("x{at}: R.Tensor((\"n{at}\",), \"float32\")")).collect();
    let all = numbered("x", size).join(", ");
    format!("{HEAD}@R.function\ndef main({}):\n    y = R.concat(({all}), axis=0)\n    return y\n", params.join(", "))
}

fn einsum(size: usize) -> String {
    let (operands, axes) = (vec!["x"; size].join(", "), vec!["ab"; size].join(","));
    main_of(&["x".to_owned()], M, &[format!("y = R.einsum(({operands}), \"{axes}->ab\")")], "y")
}

fn shared_tuples(size: usize) -> String {
    steps(size, M, |at| vec![format!("v{} = (v{at}, v{at})", at + 1)])
}

fn nested_tuples(size: usize) -> String {
    steps(size, M, |at| vec![format!("v{} = (v0, v{at})", at + 1)])
}

fn wide_tuple(size: usize) -> String {
    let fields = (0..size).map(|at| format!("f{at} = t[{at}]"));
    let lines: Vec<String> = [format!("t = ({})", vec!["x"; size].join(", "))].into_iter().chain(fields).collect();
    main_of(&["x".to_owned()], M, &lines, &format!("f{}", size - 1))
}

/// Returns a function `main(c, x)` with this body.
fn conditional(body: &str, result: &str) -> String {
    format!("{HEAD}@R.function\ndef main(c: R.Tensor((), \"bool\"), x: {M}) -> {M}:\n{body}    return {result}\n")
}

fn branches(size: usize) -> String {
    let mut body = "    y0 = x\n".to_owned();
    for at in 0..size {
        let next = at + 1;
        // INVARIANT: writing to a string succeeds, here and below.
        let _ = write!(body, "    if c:\n        a{at} = R.exp(y{at})\n        y{next} = a{at}\n");
        let _ = write!(body, "    else:\n        b{at} = R.nn.relu(y{at})\n        y{next} = b{at}\n");
    }
    conditional(&body, &format!("y{size}"))
}

fn alternatives(size: usize) -> String {
    let mut body = String::new();
    for at in 0..size {
        let word = if at == 0 { "if" } else { "elif" };
        let _ = write!(body, "    {word} c:\n        y = R.exp(x)\n");
    }
    conditional(&(body + "    else:\n        y = R.nn.relu(x)\n"), "y")
}

fn nested_branches(size: usize) -> String {
    let indent = |depth: usize| " ".repeat(4 + depth);
    let mut body = String::new();
    for at in 0..size {
        let _ = writeln!(body, "{}if c:", indent(at));
    }
    let _ = writeln!(body, "{}y = R.exp(x)", indent(size));
    for at in (0..size).rev() {
        let _ = write!(body, "{}else:\n{}y = R.nn.relu(x)\n", indent(at), indent(at + 1));
    }
    conditional(&body, "y")
}

/// Returns a module of functions, each with the calls of the next function that `calls` generates.
fn module(size: usize, calls: fn(usize) -> String) -> String {
    let mut text = format!("{HEAD}@I.ir_module\nclass Module:\n");
    for at in 0..size {
        let name = if at == 0 { "main".to_owned() } else { format!("f{at}") };
        let body = if at + 1 < size { calls(at + 1) } else { "        y = R.add(x, x)\n".to_owned() };
        let _ = write!(
            text,
            "    @R.function\n    def {name}(x: {M}) -> {M}:\n        cls = Module\n{body}        return y\n\n"
        );
    }
    text
}

fn functions(size: usize) -> String {
    module(size, |next| format!("        y = cls.f{next}(x)\n"))
}

fn doubled_functions(size: usize) -> String {
    module(size, |next| format!("        a = cls.f{next}(x)\n        y = cls.f{next}(a)\n"))
}

fn closures(size: usize) -> String {
    let mut lines = vec!["y0 = x".to_owned()];
    for at in 0..size {
        let inner = ["    b = R.add(a, x)", "    return b"].map(str::to_owned);
        lines.extend(["@R.function".to_owned(), format!("def f{at}(a: {M}):")].into_iter().chain(inner));
        lines.push(format!("y{} = f{at}(y{at})", at + 1));
    }
    main_of(&["x".to_owned()], M, &lines, &format!("y{size}"))
}

fn rank(size: usize) -> String {
    let ty = format!("R.Tensor((2{}), \"float32\")", ", 1".repeat(size - 1));
    main_of(&["x".to_owned()], &ty, &["a = R.add(x, x)".to_owned(), "b = R.multiply(a, x)".to_owned()], "b")
}

fn symbolic_rank(size: usize) -> String {
    let dims: Vec<String> = numbered("n", size).iter().map(|dim| format!("\"{dim}\"")).collect();
    main_of(
        &["x".to_owned()],
        &format!("R.Tensor(({}), \"float32\")", dims.join(", ")),
        &["y = R.add(x, x)".to_owned()],
        "y",
    )
}

fn dims(size: usize) -> String {
    let dim = (0..size).fold("n".to_owned(), |dim, _| format!("({dim}) // 2 * 3 % 7 + n"));
    let lines = ["n = T.int64()".to_owned(), format!("y = R.zeros(R.shape([{dim}]), \"float32\")")];
    main_of(&["x".to_owned()], "R.Tensor((\"n\",), \"float32\")", &lines, "y")
}

fn names(size: usize) -> String {
    let mut text =
        format!("{HEAD}@T.prim_func\ndef main(A: T.Buffer((64,), \"int32\"), B: T.Buffer((64,), \"int32\")):\n");
    text += "    for i in range(64):\n        v0: T.let[T.int32] = i\n";
    for at in 0..size {
        let _ = writeln!(text, "        v{}: T.let[T.int32] = v{at} % 7 + v{at}", at + 1);
    }
    let _ = writeln!(text, "        B[i] = A[v{size} % 64]");
    text
}
