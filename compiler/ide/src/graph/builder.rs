//! Builds nodes and edges from typed bindings, segment by segment.

use super::labels::{edge, of_expr, source};
use super::{GraphEdge, GraphNode, MOST_NODES, Mistake, NodeKind};
use crate::dataflow::DataflowReader;
use crate::explain::cost_text;
use rx_analysis::elaborate::RowKind;
use rx_base::name::NameMap;
use rx_base::{Name, Severity, Span};
use rx_db::FileView;
use rx_ir::{Argument, Binding, BindingKind, Body, Call, Callee, Expr, ExprKind, Function, StructInfo};
use rx_syntax::ast::{ExprKind as TreeKind, StatementKind, TokenRange};
use rx_syntax::{Segment, Statement, TokenKind};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// An operand of a node: the node that produces it, and the label of the edge.
type Input = (usize, Option<String>);

/// A node under construction.
struct Draft {
    node: GraphNode,
    /// The bytes of the file whose diagnostics belong to the node: its statement with the blocks that it opens.
    covers: Span,
    /// Its expression, in bytes of the file.
    written: Span,
    /// The call whose cost is computed.
    value: Option<Expr>,
}

/// Text without a node, whose diagnostics are attached to another node.
struct Header {
    /// The span of the text, in bytes of the file.
    covers: Span,
    /// For the header of a block, the block's bytes: the first node in the block has the diagnostics. `None` for a
    /// return annotation, whose diagnostics belong to the output node.
    block: Option<Span>,
}

impl Header {
    fn leads_to(&self, node: &GraphNode) -> bool {
        match self.block {
            None => node.kind == NodeKind::Output,
            Some(block) => (block.start..block.end).contains(&node.span.start),
        }
    }
}

/// The segment that is being read.
#[derive(Clone)]
struct Here<'a> {
    segment: &'a Segment,
    /// Its start, in bytes of the file.
    base: u32,
    /// For each statement, whether it is in a dataflow block.
    dataflow: Vec<bool>,
}

impl<'a> Here<'a> {
    fn statement(&self, at: u32) -> Option<&'a Statement> {
        self.segment.tree().statements.get(at as usize)
    }

    fn text(&self, span: Span) -> &'a str {
        self.segment.text().get(span.range()).unwrap_or_default()
    }

    /// Returns the index after the block that statement `at` opens; for an `if`, after its `elif` and `else` blocks.
    fn block_end(&self, at: usize) -> usize {
        let statements = &self.segment.tree().statements;
        let Some(header) = statements.get(at) else { return at };
        let goes_on = |next: &Statement| {
            let branch = matches!(next.tree.kind, StatementKind::Elif(_) | StatementKind::Else);
            let of_it = matches!(header.tree.kind, StatementKind::If(_)) && branch;
            next.inline || next.indent > header.indent || (of_it && next.indent == header.indent)
        };
        let behind = statements.iter().skip(at + 1).take_while(|next| goes_on(next)).count();
        at + 1 + behind
    }

    /// Returns the span of a statement with its block, in bytes of the segment.
    fn block(&self, at: usize) -> Span {
        let statements = &self.segment.tree().statements;
        let first = statements.get(at).map_or(Span::default(), |statement| statement.span);
        let last = statements.get(self.block_end(at).saturating_sub(1)).map_or(first, |statement| statement.span);
        Span::new(first.start, last.end.max(first.end))
    }
}

/// A builder that adds bindings in order.
pub(super) struct Builder<'a> {
    view: FileView<'a>,
    item: usize,
    mistakes: &'a [Mistake<'a>],
    /// The starts of the statements with errors or warnings.
    flagged: HashSet<u32>,
    drafts: Vec<Draft>,
    headers: Vec<Header>,
    edges: Vec<GraphEdge>,
    /// The node that produces the value of each variable.
    known: NameMap<usize>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(view: &FileView<'a>, item: usize, mistakes: &'a [Mistake<'a>]) -> Builder<'a> {
        let flagged = mistakes.iter().map(|mistake| mistake.statement).collect();
        let (drafts, headers, edges, known) = Default::default();
        Builder { view: *view, item, mistakes, flagged, drafts, headers, edges, known }
    }

    fn here(&self, number: usize) -> Option<Here<'a>> {
        let document = self.view.document();
        let segment = document.items().get(self.item)?.segments.get(number)?;
        let base = u32::try_from(document.segment_start(self.item, number)).ok()?;
        let check = self.view.check(self.item)?;
        let mut reader = DataflowReader::new(&check, number);
        let dataflow = segment.tree().statements.iter().map(|statement| reader.read(statement).is_some()).collect();
        Some(Here { segment, base, dataflow })
    }

    /// Adds the nodes of a segment.
    pub(super) fn segment(&mut self, number: usize) {
        let Some(here) = self.here(number) else { return };
        if number == 0 {
            return self.parameters(&here);
        }
        let first = self.drafts.len();
        if let Some(recorded) = self.view.recorded(self.item, number) {
            self.bindings(&here, &recorded.bindings);
            recorded.returned.iter().for_each(|value| self.output(&here, value));
        }
        self.unread(&here, first, 0..here.segment.tree().statements.len());
    }

    /// Adds the parameters of the function, with the types from its check.
    fn parameters(&mut self, here: &Here<'a>) {
        let Some(check) = self.view.check(self.item) else { return };
        let Some(header) = check.segments.first() else { return };
        for row in header.rows.iter().filter(|row| row.kind == RowKind::Param) {
            self.parameter(here, row.name, &row.ty, row.span, row.span);
        }
        let statements = here.segment.tree().statements.iter();
        let params = statements.filter_map(|statement| match &statement.tree.kind {
            StatementKind::Def { params, .. } => Some((statement, params)),
            _ => None,
        });
        // Diagnostics in a parameter's annotation belong to the parameter's node.
        for (statement, params) in params {
            let cursor = here.segment.cursor(statement);
            self.header(here, statement, None);
            for param in params {
                let whole = cursor.parameter(param).span(param.tree.tokens).shift(here.base);
                let own = |draft: &&mut Draft| whole.start <= draft.node.span.start && draft.node.span.end <= whole.end;
                self.drafts.iter_mut().filter(own).for_each(|draft| draft.covers = whole);
            }
        }
    }

    fn parameter(&mut self, here: &Here<'a>, name: Name, ty: &StructInfo, span: Span, covers: Span) {
        let span = span.shift(here.base);
        let node = GraphNode { name: Some(name), ..blank(NodeKind::Parameter, name.to_string(), span, ty) };
        let draft = Draft { node, covers: covers.shift(here.base), written: span, value: None };
        self.known.insert(name, self.drafts.len());
        self.drafts.push(draft);
    }

    /// Adds only the innermost nested function that contains byte `at` of the file. Returns its name and the span of
    /// the name.
    pub(super) fn nested(&mut self, number: usize, at: u32) -> Option<(Name, Span)> {
        let here = self.here(number)?;
        let recorded = self.view.recorded(self.item, number)?;
        let at = at.checked_sub(here.base)?;
        let (function, statement) = innermost(&here, &recorded.bindings, at)?;
        let header = here.statement(statement)?;
        let StatementKind::Def { name, params, .. } = &header.tree.kind else { return None };
        self.header(&here, header, None);
        let cursor = here.segment.cursor(header);
        let named = params.iter().filter_map(|param| Some((param, param.tree.name?)));
        for ((param, token), (variable, ty)) in named.zip(&function.params) {
            let cursor = cursor.parameter(param);
            let own = cursor.span(TokenRange::one(token));
            self.parameter(&here, *variable, ty, own, cursor.span(param.tree.tokens));
        }
        let first = self.drafts.len();
        self.bindings(&here, &function.body.bindings);
        function.body.result.iter().for_each(|value| self.output(&here, value));
        self.unread(&here, first, statement as usize + 1..here.block_end(statement as usize));
        let span = cursor.span(TokenRange::one(*name));
        Some((function.name, span.shift(here.base)))
    }

    fn bindings(&mut self, here: &Here<'a>, bindings: &[Binding]) {
        for Binding { origin, kind, .. } in bindings {
            let statement = origin.statement;
            match kind {
                BindingKind::Value { variable, ty, value } => self.value(here, statement, *variable, ty, value),
                BindingKind::Unpack { variables, value } => self.unpack(here, statement, variables, value),
                BindingKind::If { variable, arms, otherwise } => {
                    self.branches(here, statement, *variable, arms, otherwise);
                }
                BindingKind::Function(function) => self.function(here, statement, function),
            }
        }
    }

    fn is_flagged(&self, here: &Here<'a>, statement: u32) -> bool {
        here.statement(statement).is_some_and(|found| self.flagged.contains(&(here.base + found.span.start)))
    }

    /// Adds a binding. An alias of another value has no node, unless its statement has a diagnostic.
    fn value(&mut self, here: &Here<'a>, statement: u32, variable: Name, ty: &StructInfo, value: &Expr) {
        let renames = matches!(value.kind, ExprKind::Var(_) | ExprKind::TupleGet(..));
        if renames && !self.is_flagged(here, statement) {
            let from = self.inputs_of(here, statement, value).into_iter().next();
            return self.bind(variable, from.map(|(node, _)| node));
        }
        let at = self.node(here, statement, value, Some((variable, ty)));
        self.bind(variable, Some(at));
    }

    fn bind(&mut self, variable: Name, node: Option<usize>) {
        match node {
            Some(node) => drop(self.known.insert(variable, node)),
            None => drop(self.known.remove(&variable)),
        }
    }

    fn unpack(&mut self, here: &Here<'a>, statement: u32, variables: &[Option<Name>], value: &Expr) {
        if let ExprKind::Tuple(fields) = &value.kind {
            let from: Vec<Option<usize>> = fields
                .iter()
                .map(|field| self.inputs_of(here, statement, field).into_iter().next().map(|(node, _)| node))
                .collect();
            let pairs = variables.iter().zip(from);
            return pairs.for_each(|(variable, node)| variable.iter().for_each(|it| self.bind(*it, node)));
        }
        let from = match value.kind {
            ExprKind::Var(_) | ExprKind::TupleGet(..) => {
                self.inputs_of(here, statement, value).into_iter().next().map(|(node, _)| node)
            }
            _ => Some(self.node(here, statement, value, None)),
        };
        variables.iter().flatten().for_each(|variable| self.bind(*variable, from));
    }

    /// Adds both branches, then the `if` node. Its operands are the condition and the result of each branch.
    fn branches(
        &mut self,
        here: &Here<'a>,
        statement: u32,
        variable: Option<Name>,
        arms: &[(Expr, Body)],
        otherwise: &Body,
    ) {
        let mut inputs: Vec<Input> = Vec::new();
        for (condition, body) in arms {
            let from = self.inputs_of(here, statement, condition);
            inputs.extend(from.into_iter().map(|(node, label)| (node, beside("condition", label))));
            inputs.extend(self.branch(here, statement, body, "then"));
        }
        inputs.extend(self.branch(here, statement, otherwise, "else"));
        let span = here.statement(statement).map_or(Span::default(), |header| header.span);
        let ty = otherwise.result.as_ref().or(arms.first().and_then(|(_, body)| body.result.as_ref()));
        let ty = ty.map_or(StructInfo::Error, |result| result.ty.clone());
        let node = GraphNode { name: variable, ..blank(NodeKind::Value, "if".to_owned(), span.shift(here.base), &ty) };
        let covers = here.block(statement as usize).shift(here.base);
        let at = self.push(Draft { node, covers, written: span.shift(here.base), value: None }, inputs);
        variable.into_iter().for_each(|variable| self.bind(variable, Some(at)));
    }

    fn branch(&mut self, here: &Here<'a>, statement: u32, body: &Body, word: &str) -> Vec<Input> {
        let outer = self.known.clone();
        self.bindings(here, &body.bindings);
        let result = body.result.as_ref().map(|result| self.inputs_of(here, statement, result)).unwrap_or_default();
        self.known = outer;
        result.into_iter().map(|(node, label)| (node, beside(word, label))).collect()
    }

    /// Adds a nested function as one node. Its operands are the outer values that it captures.
    fn function(&mut self, here: &Here<'a>, statement: u32, function: &Function) {
        let outer = self.known.clone();
        let (drafts, edges) = (self.drafts.len(), self.edges.len());
        function.params.iter().for_each(|(param, _)| self.bind(*param, None));
        self.bind(function.name, None);
        self.bindings(here, &function.body.bindings);
        let result = function.body.result.as_ref();
        let result = result.map(|result| self.inputs_of(here, statement, result)).unwrap_or_default();
        let taken = self.edges.drain(edges..).map(|edge| edge.from).chain(result.into_iter().map(|(node, _)| node));
        let taken: BTreeSet<usize> = taken.filter(|node| *node < drafts).collect();
        self.drafts.truncate(drafts);
        self.known = outer;
        let span = target(here, statement).unwrap_or_default().shift(here.base);
        let label = format!("function {}", function.name);
        let node = GraphNode { name: Some(function.name), ..blank(NodeKind::Value, label, span, &StructInfo::Error) };
        let covers = here.block(statement as usize).shift(here.base);
        let inputs = taken.into_iter().map(|node| (node, None)).collect();
        let at = self.push(Draft { node, covers, written: span, value: None }, inputs);
        self.bind(function.name, Some(at));
    }

    /// Adds the output node.
    fn output(&mut self, here: &Here<'a>, value: &Expr) {
        let statement = here.segment.statement_before(value.span.start);
        let (at, found) = statement.map_or((0, value.span), |(at, statement)| (at, statement.span));
        let inputs = self.inputs_of(here, u32::try_from(at).unwrap_or(u32::MAX), value);
        let span = value.span.shift(here.base);
        let node = blank(NodeKind::Output, "return".to_owned(), span, &value.ty);
        self.push(Draft { node, covers: found.shift(here.base), written: span, value: None }, inputs);
    }

    /// Adds the node of an expression, after the nodes of the calls nested in it.
    fn node(&mut self, here: &Here<'a>, statement: u32, expr: &Expr, bound: Option<(Name, &StructInfo)>) -> usize {
        let inputs = match &expr.kind {
            ExprKind::Call(call) => self.call_inputs(here, statement, call),
            ExprKind::MatchCast(value) => self.inputs_of(here, statement, value),
            ExprKind::Tuple(_) | ExprKind::Var(_) | ExprKind::TupleGet(..) | ExprKind::Error => {
                self.inputs_of(here, statement, expr)
            }
            _ => Vec::new(),
        };
        let (kind, label) = of_expr(expr, here.text(expr.span));
        let written = expr.span.shift(here.base);
        let variable = bound.map(|(variable, _)| variable).filter(|variable| variable.as_str() != "_");
        let span = variable.and_then(|_| target(here, statement)).map_or(written, |span| span.shift(here.base));
        let ty = bound.map_or(&expr.ty, |(_, ty)| ty);
        let dataflow = here.dataflow.get(statement as usize).copied().unwrap_or(false);
        let node = GraphNode { name: variable, dataflow, ..blank(kind, label, span, ty) };
        let covers = here.statement(statement).map_or(written, |found| found.span.shift(here.base));
        let value = matches!(expr.kind, ExprKind::Call(_)).then(|| flat(expr, true));
        self.push(Draft { node, covers, written, value }, inputs)
    }

    fn push(&mut self, draft: Draft, inputs: Vec<Input>) -> usize {
        let to = self.drafts.len();
        for (from, label) in inputs {
            let edge = GraphEdge { from, to, label };
            if !self.edges.iter().rev().take_while(|it| it.to == to).any(|it| *it == edge) {
                self.edges.push(edge);
            }
        }
        self.drafts.push(draft);
        to
    }

    fn call_inputs(&mut self, here: &Here<'a>, statement: u32, call: &Call) -> Vec<Input> {
        let mut inputs = match &call.callee {
            Callee::Value(function) => self.inputs_of(here, statement, function),
            _ => Vec::new(),
        };
        for argument in &call.arguments {
            let operands = match argument {
                Argument::Operand(operand) => std::slice::from_ref(operand),
                Argument::Operands(operands) => operands,
                _ => &[],
            };
            operands.iter().for_each(|operand| inputs.extend(self.inputs_of(here, statement, operand)));
        }
        inputs
    }

    /// Returns the nodes that produce the value of an expression. A call or constant in it gets a new node.
    fn inputs_of(&mut self, here: &Here<'a>, statement: u32, expr: &Expr) -> Vec<Input> {
        match &expr.kind {
            ExprKind::Var(name) => self.known.get(name).map(|node| (*node, edge(&expr.ty))).into_iter().collect(),
            ExprKind::TupleGet(tuple, field) => {
                if let ExprKind::Tuple(fields) = &tuple.kind {
                    return fields.get(*field).map(|it| self.inputs_of(here, statement, it)).unwrap_or_default();
                }
                let from = self.inputs_of(here, statement, tuple);
                from.into_iter().map(|(node, _)| (node, edge(&expr.ty))).collect()
            }
            ExprKind::Tuple(fields) => fields.iter().flat_map(|it| self.inputs_of(here, statement, it)).collect(),
            ExprKind::Call(_)
            | ExprKind::MatchCast(_)
            | ExprKind::Constant(_)
            | ExprKind::Elements(_)
            | ExprKind::Metadata { .. } => vec![(self.node(here, statement, expr, None), edge(&expr.ty))],
            ExprKind::Error => self.mentioned(here, expr.span),
            _ => Vec::new(),
        }
    }

    /// Returns the nodes of the variables that are named in an expression that the check could not analyze.
    fn mentioned(&self, here: &Here<'a>, span: Span) -> Vec<Input> {
        let tokens = &here.segment.tree().tokens;
        let mut found: Vec<Input> = Vec::new();
        let mut token = tokens.at_or_after(span.start);
        while let Some(place) = tokens.span(token).filter(|place| place.end <= span.end) {
            let member = token.checked_sub(1).and_then(|before| tokens.kind(before)) == Some(TokenKind::Dot);
            let keyword = tokens.kind(token + 1) == Some(TokenKind::Equal);
            if tokens.kind(token) == Some(TokenKind::Name) && !member && !keyword {
                let node = self.known.get(&rx_base::name::name(here.text(place)));
                found.extend(node.map(|node| (*node, None)));
            }
            token += 1;
        }
        found
    }

    /// Records a header that may have diagnostics: a function's return annotation, or a `with` before its block.
    fn header(&mut self, here: &Here<'a>, statement: &Statement, block: Option<Span>) {
        let cursor = here.segment.cursor(statement);
        let covers = match &statement.tree.kind {
            StatementKind::Def { ret: Some(ret), .. } => cursor.span(ret.tokens),
            StatementKind::With(_) => statement.span,
            _ => return,
        };
        let block = block.map(|block| block.shift(here.base));
        self.headers.push(Header { covers: covers.shift(here.base), block });
    }

    /// Adds nodes for statements that have a diagnostic but no node among those from index `first`.
    fn unread(&mut self, here: &Here<'a>, first: usize, statements: Range<usize>) {
        for at in statements {
            let Some(statement) = here.segment.tree().statements.get(at) else { return };
            let start = here.base + statement.span.start;
            if let StatementKind::With(_) = statement.tree.kind {
                // The first statement of the block may be in the next segment.
                let end = if here.block_end(at) == here.segment.tree().statements.len() {
                    u32::MAX - here.base
                } else {
                    here.block(at).end
                };
                self.header(here, statement, Some(Span::new(statement.span.end, end)));
            }
            let drawn = || self.drafts.iter().skip(first).any(|draft| draft.covers.touches(start));
            let header = matches!(
                statement.tree.kind,
                StatementKind::Decorator(_) | StatementKind::Def { .. } | StatementKind::With(_)
            );
            if header || !self.flagged.contains(&start) || drawn() {
                continue;
            }
            let cursor = here.segment.cursor(statement);
            let value = match &statement.tree.kind {
                StatementKind::Assign { value, .. } | StatementKind::AnnAssign { value: Some(value), .. } => {
                    cursor.span(value.tokens)
                }
                _ => statement.span,
            };
            let place = target(here, u32::try_from(at).unwrap_or(u32::MAX));
            let name = place.map(|place| rx_base::name::name(here.text(place)));
            let inputs = self.mentioned(here, value);
            let dataflow = here.dataflow.get(at).copied().unwrap_or(false);
            let span = place.unwrap_or(statement.span).shift(here.base);
            let label = source(here.text(value));
            let node = GraphNode { name, dataflow, ..blank(NodeKind::Value, label, span, &StructInfo::Error) };
            let (covers, written) = (statement.span.shift(here.base), value.shift(here.base));
            let made = self.push(Draft { node, covers, written, value: None }, inputs);
            if let Some(name) = name {
                self.known.entry(name).or_insert(made);
            }
        }
    }

    /// Attaches diagnostics and costs. Returns the nodes nearest to byte `at`, the edges between them, and the number
    /// of nodes left out.
    pub(super) fn finish(mut self, at: u32) -> (Vec<GraphNode>, Vec<GraphEdge>, usize) {
        for mistake in self.mistakes {
            let mine = |draft: &&mut Draft| draft.covers.touches(mistake.at);
            let nearness = |draft: &Draft| {
                let inside = draft.written.touches(mistake.at);
                (draft.covers.len(), !inside, if inside { draft.written.len() } else { u32::MAX - draft.written.len() })
            };
            let found = match self.drafts.iter().any(|draft| draft.covers.touches(mistake.at)) {
                true => self.drafts.iter_mut().filter(mine).min_by_key(|draft| nearness(draft)),
                false => {
                    let header = self.headers.iter().rfind(|header| header.covers.touches(mistake.at));
                    header.and_then(|header| self.drafts.iter_mut().find(|draft| header.leads_to(&draft.node)))
                }
            };
            let Some(draft) = found else { continue };
            match mistake.diagnostic.severity {
                Severity::Error => draft.node.errors += 1,
                _ => draft.node.warnings += 1,
            }
            draft.node.notes.push(mistake.diagnostic.message.clone());
        }
        let distance = |draft: &Draft| match draft.node.span {
            span if at < span.start => span.start - at,
            span => at.saturating_sub(span.end),
        };
        let mut kept: Vec<usize> = (0..self.drafts.len()).collect();
        // INVARIANT: `kept` holds indices of `drafts` only.
        kept.sort_by_key(|node| distance(&self.drafts[*node]));
        let left_out = kept.len().saturating_sub(MOST_NODES);
        kept.truncate(MOST_NODES);
        kept.sort_unstable();
        let costs = self.view.module(self.item).map(|module| self.view.costs(module));
        let number = |node: usize| kept.binary_search(&node).ok();
        let edges = self
            .edges
            .into_iter()
            .filter_map(|edge| Some(GraphEdge { from: number(edge.from)?, to: number(edge.to)?, label: edge.label }));
        let edges = edges.collect();
        let shown = self.drafts.into_iter().enumerate().filter(|(node, _)| number(*node).is_some());
        let nodes = shown.map(|(_, draft)| {
            let cost = draft.value.and_then(|value| cost_text(costs.as_ref()?, &value));
            GraphNode { cost, ..draft.node }
        });
        (nodes.collect(), edges, left_out)
    }
}

fn blank(kind: NodeKind, label: String, span: Span, ty: &StructInfo) -> GraphNode {
    let ty = (!ty.is_error()).then(|| ty.clone());
    let (name, cost, notes) = (None, None, Vec::new());
    GraphNode { kind, label, name, ty, span, errors: 0, warnings: 0, notes, cost, dataflow: false }
}

fn beside(word: &str, label: Option<String>) -> Option<String> {
    Some(label.map_or_else(|| word.to_owned(), |label| format!("{word}: {label}")))
}

/// Returns the name that a statement binds or declares, in bytes of its segment.
fn target(here: &Here<'_>, statement: u32) -> Option<Span> {
    let statement = here.statement(statement)?;
    let cursor = here.segment.cursor(statement);
    let named = match &statement.tree.kind {
        StatementKind::Assign { targets, .. } => targets.first()?,
        StatementKind::AnnAssign { target, .. } => target,
        StatementKind::Def { name, .. } => return Some(cursor.span(TokenRange::one(*name))),
        _ => return None,
    };
    matches!(named.kind, TreeKind::Name).then(|| cursor.span(named.tokens))
}

/// Replaces the calls nested in a call's operands by variables, because they have separate nodes and costs.
fn flat(expr: &Expr, outermost: bool) -> Expr {
    let kind = match &expr.kind {
        ExprKind::Call(call) if outermost => {
            let arguments = call.arguments.iter().map(|argument| match argument {
                Argument::Operand(operand) => Argument::Operand(flat(operand, false)),
                Argument::Operands(operands) => Argument::Operands(operands.iter().map(|it| flat(it, false)).collect()),
                other => other.clone(),
            });
            ExprKind::Call(Arc::new(Call { callee: call.callee.clone(), arguments: arguments.collect() }))
        }
        ExprKind::Call(_) | ExprKind::TupleGet(..) | ExprKind::MatchCast(_) => ExprKind::Var(rx_base::name::name("_")),
        ExprKind::Tuple(fields) => ExprKind::Tuple(fields.iter().map(|field| flat(field, false)).collect()),
        other => other.clone(),
    };
    Expr { kind, ty: expr.ty.clone(), span: expr.span }
}

/// Returns the innermost function that contains byte `at` of the segment, and the index of its statement.
fn innermost<'b>(here: &Here<'_>, bindings: &'b [Binding], at: u32) -> Option<(&'b Function, u32)> {
    bindings.iter().find_map(|Binding { origin, kind, .. }| match kind {
        BindingKind::Function(function) if here.block(origin.statement as usize).touches(at) => {
            Some(innermost(here, &function.body.bindings, at).unwrap_or((&**function, origin.statement)))
        }
        BindingKind::If { arms, otherwise, .. } => {
            let mut bodies = arms.iter().map(|(_, body)| body).chain([otherwise]);
            bodies.find_map(|body| innermost(here, &body.bindings, at))
        }
        _ => None,
    })
}
