//! Index maps of `layout_transform`: parses the lambda, and computes the shape that a map gives. For example,
//! `lambda n, c: (n, c // 4, c % 4)` maps the shape `[2, 10]` to `[2, 3, 4]`.

use rx_base::{Dim, Name};

/// The maximum number of operators and brackets in an expression of a map.
const MAX_SIZE: usize = 256;

/// An index map: `lambda n, c: (n, c // 4, c % 4)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexMap {
    /// The parameters, one per axis of the operand.
    pub(crate) params: Vec<Name>,
    /// The indices, one per axis of the result; `None` for an expression that the parser does not support.
    pub(crate) indices: Vec<Option<Index>>,
}

/// An index of the result as an expression over the parameters. Divisors and factors are positive constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// A parameter, by position.
    Param(usize),
    /// A sum.
    Add(Box<Index>, Box<Index>),
    /// A product with a constant.
    Scale(Box<Index>, i64),
    /// A floor division by a constant.
    Div(Box<Index>, i64),
    /// A floor modulo by a constant.
    Mod(Box<Index>, i64),
    /// The constant 0, the only constant that may be a summand.
    Zero,
}

impl IndexMap {
    /// Parses a map from `T.index_map(lambda …: (…))` or a bare `lambda …: (…)`; `None` if the text is neither.
    pub(crate) fn parse(text: &str) -> Option<IndexMap> {
        let start = text.find("lambda")?;
        let lambda = text.get(start + "lambda".len()..)?;
        let (head, body) = lambda.split_once(':')?;
        let params: Vec<Name> =
            head.split(',').map(str::trim).filter(|param| !param.is_empty()).map(Name::from).collect();
        let identifier = |param: &Name| param.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !params.iter().all(identifier) {
            return None;
        }
        let parts = top_level_parts(body)?;
        let indices = parts.iter().map(|part| Reader::new(part, &params).whole()).collect();
        Some(IndexMap { params, indices })
    }

    /// Returns the shape of the result for an operand with these dims; `None` if unknown. As in TVM's
    /// `IndexMapNode::MapShape`, each extent is one more than the largest index, so it includes padding.
    pub(crate) fn map_shape(&self, dims: &[Dim]) -> Option<Vec<Dim>> {
        if dims.len() != self.params.len() {
            return None;
        }
        self.indices.iter().map(|index| extent(index.as_ref()?, dims)).collect()
    }
}

/// Returns the extent of `index` (one more than its maximum), if parameter `i` is in `[0, dims[i])`.
fn extent(index: &Index, dims: &[Dim]) -> Option<Dim> {
    let mut terms = Vec::new();
    collect_terms(index, 1, &mut terms)?;
    let mut spans = Vec::with_capacity(terms.len());
    for (term, scale) in terms {
        spans.push((scale, term_extent(term, dims)?));
    }
    spans.sort_by_key(|(scale, _)| *scale);
    // If each term's span equals the next term's scale, the terms are digits of one mixed-radix number, so the last
    // span covers the whole range. Example: `i * 4 + j` with `j < 4`.
    let digits = spans.windows(2).all(|pair| match pair {
        [(scale, extent), (next, _)] => &Dim::constant(*scale) * extent == Dim::constant(*next),
        _ => true,
    });
    match (digits, spans.last()) {
        (_, None) => Some(Dim::constant(1)),
        (true, Some((scale, extent))) => Some(extent * &Dim::constant(*scale)),
        (false, _) => {
            let one = Dim::constant(1);
            let largest = |(scale, extent): &(i64, Dim)| &(extent - &one) * &Dim::constant(*scale);
            Some(spans.iter().fold(one.clone(), |sum, span| &sum + &largest(span)))
        }
    }
}

/// Collects the terms of the sum `index`, each with its factor.
fn collect_terms<'a>(index: &'a Index, scale: i64, into: &mut Vec<(&'a Index, i64)>) -> Option<()> {
    match index {
        Index::Zero => {}
        Index::Add(a, b) => {
            collect_terms(a, scale, into)?;
            collect_terms(b, scale, into)?;
        }
        Index::Scale(inner, by) => collect_terms(inner, scale.checked_mul(*by)?, into)?,
        term => into.push((term, scale)),
    }
    Some(())
}

fn term_extent(term: &Index, dims: &[Dim]) -> Option<Dim> {
    match term {
        Index::Param(at) => dims.get(*at).cloned(),
        Index::Div(inner, by) => {
            // The extent rounded up to a multiple of `by`, then divided, in TVM's form.
            let span = extent(inner, dims)?;
            let padded = &span - &span.floor_mod(&Dim::constant(-*by));
            Some(padded.floor_div(&Dim::constant(*by)))
        }
        // The axis is padded to a multiple of `by`.
        Index::Mod(_, by) => Some(Dim::constant(*by)),
        sum => extent(sum, dims),
    }
}

/// Splits the body of a lambda into the elements of its tuple; a body that is not a tuple gives one element.
fn top_level_parts(body: &str) -> Option<Vec<&str>> {
    let body = body.trim();
    let Some(inside) = body.strip_prefix(['(', '[']).filter(|_| is_tuple(body)) else {
        return Some(vec![cut_at_level_zero(body)?.0]);
    };
    let mut parts = Vec::new();
    let mut rest = inside;
    loop {
        let (part, end) = cut_at_level_zero(rest)?;
        if !part.trim().is_empty() {
            parts.push(part);
        }
        match end {
            Some(at) if rest.as_bytes().get(at) == Some(&b',') => rest = rest.get(at + 1..)?,
            _ => return Some(parts),
        }
    }
}

/// Whether the opening bracket of `body` belongs to a tuple, not to arithmetic as in `(i + 1) * 4`.
fn is_tuple(body: &str) -> bool {
    let mut depth = 0usize;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let rest = body.get(at + 1..).unwrap_or("").trim_start();
                    return rest.is_empty() || rest.starts_with([')', ',']);
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns the text before the first comma or closing bracket at nesting level 0, and the position of that character.
fn cut_at_level_zero(text: &str) -> Option<(&str, Option<usize>)> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' | b',' if depth == 0 => return Some((text.get(..at)?, Some(at))),
            b')' | b']' => depth -= 1,
            _ => {}
        }
    }
    (depth == 0).then_some((text, None))
}

/// A recursive-descent parser of one index expression.
struct Reader<'a> {
    rest: &'a str,
    params: &'a [Name],
    /// The remaining number of operators and brackets, which bounds the depth of the result.
    budget: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, params: &'a [Name]) -> Reader<'a> {
        Reader { rest: text.trim_start(), params, budget: MAX_SIZE }
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// Consumes an operator or bracket like `eat`, if the budget is not exhausted.
    fn spend(&mut self, token: &str) -> bool {
        match self.budget.checked_sub(1) {
            Some(left) if self.eat(token) => {
                self.budget = left;
                true
            }
            _ => false,
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn whole(mut self) -> Option<Index> {
        let index = self.sum()?;
        self.rest.is_empty().then_some(index)
    }

    fn sum(&mut self) -> Option<Index> {
        let mut index = self.product()?;
        while self.spend("+") {
            index = Index::Add(Box::new(index), Box::new(self.product()?));
        }
        Some(index)
    }

    fn product(&mut self) -> Option<Index> {
        let mut index = match self.constant() {
            Some(0) if !self.rest.starts_with('*') => Index::Zero,
            Some(factor) if factor > 0 && self.spend("*") => Index::Scale(Box::new(self.atom()?), factor),
            Some(_) => return None,
            None => self.atom()?,
        };
        loop {
            let make: fn(Box<Index>, i64) -> Index = if self.spend("//") {
                Index::Div
            } else if self.spend("%") {
                Index::Mod
            } else if self.spend("*") {
                Index::Scale
            } else {
                return Some(index);
            };
            let by = self.constant().filter(|by| *by > 0)?;
            index = make(Box::new(index), by);
        }
    }

    /// Parses an integer: `4`, `T.int64(4)`.
    fn constant(&mut self) -> Option<i64> {
        let saved = self.rest;
        let wrapped = self.eat("T.int64(") || self.eat("T.int32(");
        let value = self.word().parse::<u32>().ok().map(i64::from);
        if value.is_none() || (wrapped && !self.eat(")")) {
            self.rest = saved;
            return None;
        }
        value
    }

    fn atom(&mut self) -> Option<Index> {
        if self.spend("(") {
            let index = self.sum()?;
            return self.eat(")").then_some(index);
        }
        let word = self.word();
        let word = (!word.is_empty()).then(|| Name::from(word))?;
        self.params.iter().position(|param| *param == word).map(Index::Param)
    }
}

#[cfg(test)]
mod tests {
    use super::IndexMap;
    use crate::tests::dims;

    fn mapped(map: &str, shape: &str) -> Option<Vec<String>> {
        let map = IndexMap::parse(&format!("T.index_map({map})")).unwrap();
        Some(map.map_shape(&dims(shape))?.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn shapes_map_as_in_tvm() {
        for (map, shape, wanted) in [
            ("lambda n, c, h, w: (n, h, w, c)", "2 3 4 n", &["2", "4", "n", "3"][..]),
            ("lambda n, c: (n, c // 4, c % 4)", "2 10", &["2", "3", "4"]),
            ("lambda a, b: (a, b // 3, b % 3)", "a b", &["a", "-1 * (b // (-3))", "3"]),
            ("lambda i: (i % 16,)", "14", &["16"]),
            ("lambda i: (i // 4, i % 4)", "3", &["1", "4"]),
            ("lambda i: (i // 8, i // 4 % 2, i % 4)", "10", &["2", "2", "4"]),
            ("lambda i, j: (i * 4 + j,)", "n 4", &["n * 4"]),
            ("lambda i, j: (i * 4 + j,)", "3 2", &["10"]),
            ("lambda i, j: i * 4 + j", "3 6", &["14"]),
            ("lambda i, j: ((i * 4 + j) // 8, (i * 4 + j) % 8)", "3 4", &["2", "8"]),
            ("lambda i, j: (i % 4 * 2 + j, i // 4)", "10 2", &["8", "3"]),
            ("lambda i, j: (j, T.int64(4) * i)", "3 4", &["4", "12"]),
            ("lambda i, j: (i + j) * 4", "3 4", &["21"]),
        ] {
            assert_eq!(
                mapped(map, shape).as_deref(),
                Some(wanted.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).as_deref(),
                "{map}"
            );
        }
    }

    #[test]
    fn unsupported_index_maps_give_no_shape() {
        let map = IndexMap::parse("T.index_map(lambda i, j: (i - j, T.max(i, j), j))").unwrap();
        assert_eq!((map.params.len(), map.indices.len()), (2, 3));
        assert_eq!(map.map_shape(&dims("2 3")), None);
        assert_eq!(IndexMap::parse("my_map"), None);
        assert_eq!(IndexMap::parse("lambda *i: i"), None);
        let deep = format!("lambda i: {}i{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(IndexMap::parse(&deep).and_then(|map| map.map_shape(&dims("2"))), None);
        for part in [" // 2", " + i"] {
            let long = format!("lambda i: i{}", part.repeat(100_000));
            assert_eq!(IndexMap::parse(&long).and_then(|map| map.map_shape(&dims("2"))), None);
        }
    }
}
