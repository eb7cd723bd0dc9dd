//! Tests of the prover against brute force: a proved statement must hold, and a refuted one fail, at every point of a
//! small box.

use rx_base::name::name;
use rx_base::symbolic::{Answer, Bounds, prove};
use rx_base::{Dim, Name};

/// The number of values of each of `n`, `m` and `k`, from 0.
const SIDE: i64 = 7;

/// An integer expression that is evaluated directly: the oracle shares no code with normal forms.
#[derive(Clone, Debug)]
enum Expr {
    Constant(i64),
    Symbol(usize),
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `T.if_then_else(a < b, c, d)`.
    Choice(Box<[Expr; 4]>),
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Min,
    Max,
}

type Point = [i64; 3];

fn symbols() -> [Name; 3] {
    [name("n"), name("m"), name("k")]
}

impl Expr {
    /// The value at a point; `None` for a division by 0.
    fn at(&self, point: &Point) -> Option<i64> {
        Some(match self {
            Expr::Constant(value) => *value,
            Expr::Symbol(which) => point[*which],
            Expr::Choice(parts) => {
                let [a, b, then, otherwise] = &**parts;
                let (then, otherwise) = (then.at(point)?, otherwise.at(point)?);
                if a.at(point)? < b.at(point)? { then } else { otherwise }
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (a.at(point)?, b.at(point)?);
                match op {
                    Op::Add => a + b,
                    Op::Sub => a - b,
                    Op::Mul => a * b,
                    Op::Div => floor(a, b)?,
                    Op::Mod => a - b * floor(a, b)?,
                    Op::Min => a.min(b),
                    Op::Max => a.max(b),
                }
            }
        })
    }

    fn dim(&self) -> Dim {
        match self {
            Expr::Constant(value) => Dim::constant(*value),
            Expr::Symbol(which) => Dim::symbol(symbols()[*which]),
            Expr::Choice(parts) => {
                let [a, b, then, otherwise] = &**parts;
                let condition = Dim::opaque(name("<"), vec![a.dim(), b.dim()]);
                Dim::opaque(name("T.if_then_else"), vec![condition, then.dim(), otherwise.dim()])
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (a.dim(), b.dim());
                match op {
                    Op::Add => &a + &b,
                    Op::Sub => &a - &b,
                    Op::Mul => &a * &b,
                    Op::Div => a.floor_div(&b),
                    Op::Mod => a.floor_mod(&b),
                    Op::Min => a.minimum(&b),
                    Op::Max => a.maximum(&b),
                }
            }
        }
    }
}

fn floor(a: i64, b: i64) -> Option<i64> {
    let rest = a.checked_rem(b)?;
    Some(a / b - i64::from(rest != 0 && (rest < 0) != (b < 0)))
}

/// A deterministic pseudorandom number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn expr(&mut self, depth: u32) -> Expr {
        if depth == 0 || self.below(5) == 0 {
            return match self.below(3) {
                0 => Expr::Constant(self.below(7) as i64 - 1),
                _ => Expr::Symbol(self.below(3) as usize),
            };
        }
        if self.below(12) == 0 {
            let parts = [(); 4].map(|()| self.expr(depth - 1));
            return Expr::Choice(Box::new(parts));
        }
        let op = [Op::Add, Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Mod, Op::Min, Op::Max][self.below(8) as usize];
        let right = match op {
            // Programs divide mostly by constants.
            Op::Div | Op::Mod if self.below(3) > 0 => Expr::Constant(self.below(5) as i64 + 1),
            _ => self.expr(depth - 1),
        };
        Expr::Binary(op, Box::new(self.expr(depth - 1)), Box::new(right))
    }
}

fn points() -> Vec<Point> {
    let side = || 0..SIDE;
    side().flat_map(|n| side().flat_map(move |m| side().map(move |k| [n, m, k]))).collect()
}

/// Evaluates a relation at every point: proved or refuted if it holds at all or none of them, otherwise open; `None`
/// without points.
fn truth(points: &[Point], holds: impl Fn(&Point) -> Option<bool>) -> Option<Answer> {
    let values: Vec<bool> = points.iter().filter_map(holds).collect();
    match (values.is_empty(), values.iter().all(|value| *value), values.iter().any(|value| *value)) {
        (true, ..) => None,
        (_, true, _) => Some(Answer::Proved),
        (_, _, false) => Some(Answer::Refuted),
        _ => Some(Answer::Open),
    }
}

fn check(a: &Expr, b: &Expr, bounds: &Bounds, points: &[Point], said: &str) {
    let (x, y) = (a.dim(), b.dim());
    if x.is_error() || y.is_error() {
        return;
    }
    let equal = truth(points, |point| Some(a.at(point)? == b.at(point)?));
    let at_least = truth(points, |point| Some(a.at(point)? >= b.at(point)?));
    for (relation, found, wanted) in
        [("==", prove::equal(&x, &y, bounds), equal), (">=", prove::at_least(&x, &y, bounds), at_least)]
    {
        let right = found == Answer::Open || wanted.is_none_or(|wanted| wanted == found);
        assert!(right, "{said}{x} {relation} {y} is {wanted:?}, found {found:?}\n{a:?}\n{b:?}");
    }
}

#[test]
fn answers_hold_at_every_point() {
    let mut random = Random(1);
    let points = points();
    for _ in 0..4000 {
        let depth = 1 + random.below(3) as u32;
        let (a, b) = (random.expr(depth), random.expr(depth));
        check(&a, &b, &Bounds::default(), &points, "");
    }
}

#[test]
fn answers_under_learned_facts_hold_wherever_the_facts_do() {
    let mut random = Random(2);
    let all = points();
    for _ in 0..1500 {
        let mut bounds = Bounds::default();
        let mut points = all.clone();
        let mut said = String::new();
        for _ in 0..1 + random.below(3) {
            let (a, b) = (random.expr(2), random.expr(1));
            let (x, y) = (a.dim(), b.dim());
            if x.is_error() || y.is_error() {
                continue;
            }
            let equality = random.below(2) == 0;
            let holds = |point: &Point| {
                let (a, b) = (a.at(point)?, b.at(point)?);
                Some(if equality { a == b } else { a >= b })
            };
            points.retain(|point| holds(point) == Some(true));
            match equality {
                true => bounds.assume_equal(&x, &y),
                false => bounds.assume_at_least(&x, &y),
            }
            said += &format!("{x} {} {y}, so ", if equality { "==" } else { ">=" });
        }
        if !points.is_empty() {
            check(&random.expr(2), &random.expr(2), &bounds, &points, &said);
        }
    }
}

/// Parses an expression such as `(n + 3) // 4 * 4`, for tables of identities.
fn read(text: &str) -> Expr {
    let spaced: String = text
        .replace("//", "/")
        .chars()
        .flat_map(|c| if "()+-*/%,".contains(c) { vec![' ', c, ' '] } else { vec![c] })
        .collect();
    let mut tokens = spaced.split_whitespace().peekable();
    sum(&mut tokens)
}

type Tokens<'t> = std::iter::Peekable<std::str::SplitWhitespace<'t>>;

fn sum(tokens: &mut Tokens<'_>) -> Expr {
    let mut left = product(tokens);
    while let Some(op) = tokens.next_if(|token| matches!(*token, "+" | "-")) {
        let op = if op == "+" { Op::Add } else { Op::Sub };
        left = Expr::Binary(op, Box::new(left), Box::new(product(tokens)));
    }
    left
}

fn product(tokens: &mut Tokens<'_>) -> Expr {
    let mut left = factor(tokens);
    while let Some(op) = tokens.next_if(|token| matches!(*token, "*" | "/" | "%")) {
        let op = match op {
            "*" => Op::Mul,
            "/" => Op::Div,
            _ => Op::Mod,
        };
        left = Expr::Binary(op, Box::new(left), Box::new(factor(tokens)));
    }
    left
}

fn factor(tokens: &mut Tokens<'_>) -> Expr {
    match tokens.next().expect("an operand") {
        "(" => {
            let inner = sum(tokens);
            tokens.next();
            inner
        }
        "-" => Expr::Binary(Op::Sub, Box::new(Expr::Constant(0)), Box::new(factor(tokens))),
        word @ ("min" | "max") => {
            tokens.next();
            let a = sum(tokens);
            tokens.next();
            let b = sum(tokens);
            tokens.next();
            Expr::Binary(if word == "min" { Op::Min } else { Op::Max }, Box::new(a), Box::new(b))
        }
        "n" => Expr::Symbol(0),
        "m" => Expr::Symbol(1),
        "k" => Expr::Symbol(2),
        number => Expr::Constant(number.parse().expect("a number")),
    }
}

/// Parses both sides of `a == b` or `a >= b`.
fn relation(text: &str) -> (Expr, bool, Expr) {
    match text.split_once("==") {
        Some((a, b)) => (read(a), true, read(b)),
        None => text.split_once(">=").map(|(a, b)| (read(a), false, read(b))).expect("a relation"),
    }
}

fn answer(text: &str, bounds: &Bounds) -> Answer {
    let (a, equality, b) = relation(text);
    match equality {
        true => prove::equal(&a.dim(), &b.dim(), bounds),
        false => prove::at_least(&a.dim(), &b.dim(), bounds),
    }
}

#[test]
fn identities_that_programs_use_are_proved() {
    let open: Vec<&str> = [
        "n // 4 * 4 + n % 4 == n",
        "(n + 3) // 4 * 4 >= n",
        "n + 3 >= (n + 3) // 4 * 4",
        "n >= n // 4 * 4",
        "n // 4 * 4 + 3 >= n",
        "(n + 3) // 4 == 0 - (0 - n) // 4",
        "(n + 1) // 2 + n // 2 == n",
        "n // 2 // 3 == n // 6",
        "(n + 63) // 64 * 64 >= n",
        "n % 4 % 2 == n % 2",
        "(n % 8) // 4 == n // 4 % 2",
        "(n * 4 + m % 4) // 4 == n",
        "(n + m) % 2 == (n % 2 + m % 2) % 2",
        "(n * 6 + 3) // 3 == 2 * n + 1",
        "n * (m + 1) == n * m + n",
        "(n + m) * (n - m) == n * n - m * m",
        "n * m // m == n",
        "n // m * m + n % m == n",
        "n >= n // m",
        "n >= n % m",
        "max(n, m) == max(m, n)",
        "max(n, max(m, k)) == max(max(n, m), k)",
        "min(n, max(n, m)) == n",
        "max(n, min(m, k)) == min(max(n, m), max(n, k))",
        "min(n, m) + max(n, m) == n + m",
        "max(n, m) * 2 == max(n * 2, 2 * m)",
        "max(n, m) + k == max(n + k, m + k)",
        "max(n - m, 0) + min(n, m) == n",
        "max(n, 1) >= n",
        "max(n, m) >= min(n, k)",
        "n - min(n, m) >= 0",
        "0 - min(0 - n, 0 - m) == max(n, m)",
        "min(n, 7) // 8 == 0",
        "max(n + 2 - 3, 0) // 2 + 1 == max(n - 1, 0) // 2 + 1",
        "min(n // 2, m // 2) == min(n, m) // 2",
    ]
    .into_iter()
    .filter(|text| answer(text, &Bounds::default()) != Answer::Proved)
    .collect();
    assert_eq!(open, <[&str; 0]>::default());
}

#[test]
fn comparisons_that_never_hold_are_refuted() {
    for text in [
        "n // 4 * 4 + n % 4 == n + 1",
        "n % 4 == 4",
        "(n + 3) // 4 * 4 + 1 == 0",
        "2 * (n // 2) + 1 == 2 * m",
        "max(n, m) == n + m + 1",
        "min(n, m) >= n + 1",
        "n % 2 + n == 2 * (n // 2) + 3",
        "n * (n + 1) % 2 == 1",
    ] {
        assert_eq!(answer(text, &Bounds::default()), Answer::Refuted, "{text}");
    }
}

#[test]
fn facts_are_used() {
    let mut wrong = Vec::new();
    for (facts, question, wanted) in [
        (&["n == m"][..], "n * 4 == m * 4", Answer::Proved),
        (&["n == m"], "n == m + 1", Answer::Refuted),
        (&["n == m", "m == k"], "n // 2 == k // 2", Answer::Proved),
        (&["n == 4 * m"], "n // 4 == m", Answer::Proved),
        (&["n == 4 * m"], "n % 2 == 0", Answer::Proved),
        (&["n % 4 == 0"], "n // 4 * 4 == n", Answer::Proved),
        (&["n % 4 == 0"], "n // 2 * 2 == n", Answer::Proved),
        (&["n % 4 == 0"], "(n + 3) // 4 == n // 4", Answer::Proved),
        (&["n % 4 == 0"], "n == 2 * m + 1", Answer::Refuted),
        (&["n % 4 == 2"], "n // 2 % 2 == 1", Answer::Proved),
        (&["n % 8 == 0", "m % 8 == 0"], "(n + m) % 8 == 0", Answer::Proved),
        (&["n * m == k"], "k == m * n", Answer::Proved),
        (&["2 * n == 3 * m"], "4 * n == 6 * m", Answer::Proved),
        (&["n + m == k"], "k - m == n", Answer::Proved),
        (&["n + m == k"], "k >= n", Answer::Proved),
        (&["n >= 1"], "max(n, 1) == n", Answer::Proved),
        (&["n >= 1"], "n * m >= m", Answer::Proved),
        (&["n >= m"], "max(n, m) == n", Answer::Proved),
        (&["n >= m"], "n // 4 >= m // 4", Answer::Proved),
        (&["n >= m", "m >= k"], "n >= k", Answer::Proved),
        (&["n >= m", "m >= n"], "n == m", Answer::Proved),
        (&["n >= m + 1"], "n == m", Answer::Refuted),
        (&["3 >= n"], "n // 4 == 0", Answer::Proved),
        (&["3 >= n"], "n == m + 4", Answer::Refuted),
        (&["n == m", "n == 5"], "m == 5", Answer::Proved),
        (&["n == 5", "m == n + 1"], "m == 6", Answer::Proved),
        (&["n - 3 >= 0"], "max(n - 2, 1) == n - 2", Answer::Proved),
        (&["max(n, m) == n"], "n >= m", Answer::Proved),
    ] {
        let mut bounds = Bounds::default();
        for fact in facts {
            let (a, equality, b) = relation(fact);
            match equality {
                true => bounds.assume_equal(&a.dim(), &b.dim()),
                false => bounds.assume_at_least(&a.dim(), &b.dim()),
            }
        }
        let found = answer(question, &bounds);
        if found != wanted {
            wrong.push(format!("{facts:?}: {question} is {found:?}"));
        }
    }
    assert_eq!(wrong, <[String; 0]>::default());
}

#[test]
fn facts_about_a_name_are_forgotten_with_its_value() {
    let (n, m) = (Dim::symbol(name("n")), Dim::symbol(name("m")));
    let mut bounds = Bounds::default();
    bounds.assume_equal(&n, &m);
    bounds.assume_at_least(&m, &Dim::constant(3));
    assert_eq!(prove::equal(&n, &m, &bounds), Answer::Proved);
    bounds.forget(name("n"));
    assert_eq!(prove::equal(&n, &m, &bounds), Answer::Open);
}

#[test]
fn stated_bounds_count_in_every_comparison() {
    let mut bounds = Bounds::default();
    bounds.lower.insert(name("n"), 1);
    bounds.upper.insert(name("m"), 8);
    for text in ["max(n, 1) == n", "m // 9 == 0", "min(m, 8) == m", "n * k >= k", "(n - 1) // 2 >= 0", "m % 9 == m"] {
        assert_eq!(answer(text, &bounds), Answer::Proved, "{text}");
    }
    assert_eq!(answer("m == n + 8", &bounds), Answer::Refuted);
}
