//! Comparison of documents as trees, independent of dialect, layout, comments, parentheses and string quotes.
//!
//! Both documents are reduced to labels and child nodes by the queries that the printer uses for conversion
//! ([`reduce`]). The comparison walks both trees in step with an explicit stack, so it does not recurse. For example,
//! classic `R.Prim("int64")` and current `T.int64` in a Relax function are both the label `path:T.int64`.

mod reduce;

use std::fmt;

use super::canonical::{dim_declarations, type_var};
use super::header::is_boilerplate;
use super::lines::{Line, Part, parts};
use super::scope::{Function, Scope, Scopes, TypeVars};
use crate::ast::StatementKind;
use crate::dialect::Dialect;
use crate::document::Document;
use reduce::{Node, Side};

/// The first difference of two documents. The texts are those of the statements that differ; empty where one document
/// has no more statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The statement in the first document.
    pub left: String,
    /// The statement in the second document.
    pub right: String,
    /// A description of the parts that differ.
    pub difference: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  left:  {}\n  right: {}", self.difference, self.left, self.right)
    }
}

impl std::error::Error for Difference {}

/// Compares the trees of two documents, each in the dialect that is detected for it.
pub fn tree_eq(left: &Document, right: &Document) -> Result<(), Difference> {
    tree_eq_as((left, Dialect::detect(left)), (right, Dialect::detect(right)))
}

/// Compares the trees of two documents of known dialects.
pub fn tree_eq_as(
    (left, left_dialect): (&Document, Dialect),
    (right, right_dialect): (&Document, Dialect),
) -> Result<(), Difference> {
    let mixed = left_dialect.is_classic() != right_dialect.is_classic();
    let (left, right) = (parts(left), parts(right));
    let (left_code, right_code) = (Sources::of(&left), Sources::of(&right));
    let left_units = left_code.units(&left, left_dialect, mixed);
    let right_units = right_code.units(&right, right_dialect, mixed);
    for at in 0..left_units.len().max(right_units.len()) {
        match (left_units.get(at), right_units.get(at)) {
            (Some(left), Some(right)) => left.eq(right)?,
            (left, right) => {
                let text = |unit: Option<&Unit<'_>>| unit.map(|unit| unit.text().to_owned()).unwrap_or_default();
                let difference = "one has a statement more".to_owned();
                return Err(Difference { left: text(left), right: text(right), difference });
            }
        }
    }
    Ok(())
}

/// The functions of a document's parts.
struct Sources {
    scopes: Vec<Scopes>,
}

impl Sources {
    fn of(parts: &[Part<'_>]) -> Sources {
        let type_vars = TypeVars::of(parts, false);
        let scopes = parts.iter().map(|part| match part {
            Part::Code(code) => Scopes::of(&code.lines, &type_vars, Dialect::default()),
            Part::Verbatim(_) => Scopes::default(),
        });
        Sources { scopes: scopes.collect() }
    }

    /// Returns the units to compare: the statements that have a meaning, and the Python code around them.
    fn units<'u>(&'u self, parts: &'u [Part<'u>], dialect: Dialect, mixed: bool) -> Vec<Unit<'u>> {
        let mut units = Vec::new();
        for (part, scopes) in parts.iter().zip(&self.scopes) {
            match part {
                Part::Verbatim(segments) => {
                    let text: String = segments.iter().map(|segment| segment.text()).collect();
                    if !text.trim().is_empty() {
                        units.push(Unit::Foreign(text.trim().to_owned()));
                    }
                }
                Part::Code(code) => units.extend(code_units(&code.lines, scopes, dialect, mixed)),
            }
        }
        units
    }
}

fn code_units<'u>(lines: &'u [Line<'u>], scopes: &'u Scopes, dialect: Dialect, mixed: bool) -> Vec<Unit<'u>> {
    let mut units = Vec::new();
    let mut functions: Vec<(usize, &Function)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        while functions.last().is_some_and(|(depth, _)| *depth >= line.depth) {
            functions.pop();
        }
        let relax = functions.last().is_some_and(|(_, function)| !function.prim);
        let own = scopes.at(at).and_then(Scope::function);
        let passed_over = matches!(line.kind(), StatementKind::Pass)
            || is_boilerplate(line)
            || type_var(line.kind(), line.cursor()).is_some();
        let declared = dim_declarations(line.kind(), line.cursor());
        if !declared.is_empty() {
            let of_signature = scopes.declared_by.get(&at);
            let kept = declared.into_iter().filter(|(name, _)| !of_signature.is_some_and(|names| names.contains(name)));
            let kept: Vec<String> = kept.map(|(name, dtype)| format!("{name}:{dtype}")).collect();
            if !kept.is_empty() {
                units.push(Unit::Declaration { line, depth: line.depth, dims: kept.join(",") });
            }
        } else if !passed_over {
            let side = Side { dialect, mixed, relax: own.map_or(relax, |function| !function.prim) };
            units.push(Unit::Statement { line, side, function: own });
        }
        if let Some(function) = own {
            functions.push((line.depth, function));
            // A type parameter that no annotation uses is the same as a dim that is declared in the body.
            let of_body = function.symbols.iter().filter(|(symbol, _)| !symbol.in_signature);
            let depth = line.depth + 1;
            units.extend(of_body.map(|(symbol, _)| Unit::Declaration {
                line,
                depth,
                dims: format!("{}:{}", symbol.name, symbol.dtype),
            }));
        }
    }
    units
}

/// One unit of the comparison.
enum Unit<'u> {
    Statement {
        line: &'u Line<'u>,
        side: Side,
        function: Option<&'u Function>,
    },
    /// A declaration of dims: `n = T.int64()`, or an unused type parameter, which is equivalent.
    Declaration {
        line: &'u Line<'u>,
        depth: usize,
        dims: String,
    },
    Foreign(String),
}

impl<'u> Unit<'u> {
    fn text(&self) -> &str {
        match self {
            Unit::Foreign(text) => text,
            Unit::Statement { line, .. } | Unit::Declaration { line, .. } => {
                line.segment.text().get(line.statement.span.range()).unwrap_or("")
            }
        }
    }

    /// Returns a label that must be equal, and the child nodes.
    fn reduce(&self) -> (String, Vec<Node<'u>>, Side) {
        match self {
            Unit::Foreign(text) => (format!("foreign:{text}"), Vec::new(), Side::default()),
            Unit::Declaration { depth, dims, .. } => (format!("{depth}:declares:{dims}"), Vec::new(), Side::default()),
            Unit::Statement { line, side, function } => {
                let (label, nodes) = if line.statement.tree.error.is_some() {
                    (format!("broken:{}", self.text()), Vec::new())
                } else {
                    reduce::statement(line.kind(), line.cursor(), *function, *side, self.text())
                };
                (format!("{}:{label}", line.depth), nodes, *side)
            }
        }
    }

    fn eq(&self, other: &Unit<'_>) -> Result<(), Difference> {
        let differ = |difference: String| {
            Err(Difference { left: self.text().to_owned(), right: other.text().to_owned(), difference })
        };
        let (left, left_nodes, left_side) = self.reduce();
        let (right, right_nodes, right_side) = other.reduce();
        if left != right {
            return differ(format!("`{left}` and `{right}`"));
        }
        if left_nodes.len() != right_nodes.len() {
            return differ(format!("`{left}` with {} and {} parts", left_nodes.len(), right_nodes.len()));
        }
        let mut left_stack: Vec<Node<'_>> = left_nodes.into_iter().rev().collect();
        let mut right_stack: Vec<Node<'_>> = right_nodes.into_iter().rev().collect();
        while let (Some(left), Some(right)) = (left_stack.pop(), right_stack.pop()) {
            let (left, left_nodes) = left.reduce(left_side);
            let (right, right_nodes) = right.reduce(right_side);
            if left != right || left_nodes.len() != right_nodes.len() {
                return differ(format!("`{left}` and `{right}`"));
            }
            left_stack.extend(left_nodes.into_iter().rev());
            right_stack.extend(right_nodes.into_iter().rev());
        }
        Ok(())
    }
}
