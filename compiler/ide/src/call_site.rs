//! The call around a position, complete or not.
//!
//! It is found by its brackets, not in the syntax tree, because an incomplete call has no tree yet.

use rx_analysis::elaborate::{Form, form};
use rx_base::Span;
use rx_base::name::name;
use rx_context::Namespace;
use rx_db::FileView;
use rx_ops::{Param, ParamKind, Schema};
use rx_prim_func::functions;
use rx_prim_func::functions::Function;
use rx_syntax::document::Location;
use rx_syntax::{Segment, Statement, TokenKind};

/// A call that contains a position.
pub(crate) struct CallSite<'a> {
    pub(crate) location: Location,
    /// The callee without blanks: `R.nn.conv2d`.
    pub(crate) callee: String,
    /// The span of the callee, in bytes of the segment.
    pub(crate) callee_span: Span,
    /// The arguments, including those after the position.
    pub(crate) arguments: Vec<Written<'a>>,
    /// The index of the argument at the position. It is the number of arguments if a new argument starts there.
    pub(crate) active: usize,
    /// Whether the position is inside further brackets within the call's parentheses.
    pub(crate) nested: bool,
}

/// An argument in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    pub(crate) keyword: Option<&'a str>,
    /// The span of its value, in bytes of the segment; empty if nothing is typed yet.
    pub(crate) span: Span,
    /// The start of the argument including its keyword.
    pub(crate) from: u32,
}

impl<'a> CallSite<'a> {
    /// Returns the innermost call whose parentheses contain the byte at `offset` of a file.
    pub(crate) fn at(view: &FileView<'a>, offset: usize) -> Option<CallSite<'a>> {
        let document = view.document();
        let location = document.locate(offset)?;
        let segment: &'a Segment = document.items().get(location.item)?.segments.get(location.segment)?;
        let at = u32::try_from(location.offset).ok()?;
        let (_, statement) = segment.statement_before(at)?;
        let (open, nested) = opening(segment, statement, at)?;
        let tokens = &segment.tree().tokens;
        let first = callee_start(segment, statement, open);
        let callee_span = Span::new(tokens.span(first)?.start, tokens.span(open.checked_sub(1)?)?.end);
        let callee: String =
            segment.text().get(callee_span.range())?.chars().filter(|it| !it.is_whitespace()).collect();
        let (arguments, active) = arguments(segment, statement, open, at);
        Some(CallSite { location, callee, callee_span, arguments, active, nested })
    }

    /// Returns the operator that is called.
    pub(crate) fn operator(&self, view: &FileView<'_>) -> Option<&'static Schema> {
        operator_of(view, self.location.item, &self.callee)
    }

    /// Returns the type or other form of `R` that is called.
    pub(crate) fn form(&self, view: &FileView<'_>) -> Option<&'static Form> {
        let (head, rest) = self.callee.split_once('.')?;
        let relax = view.context(self.location.item)?.namespace(head) == Some(Namespace::Relax);
        relax.then(|| form(rest)).flatten()
    }

    /// Returns the index of the parameter of a form that the active argument is passed for.
    pub(crate) fn form_param(&self, form: &Form) -> Option<usize> {
        match self.arguments.get(self.active).and_then(|argument| argument.keyword) {
            Some(keyword) => form.position(keyword),
            None => Some(self.position_of_active()).filter(|position| *position < form.params.len()),
        }
    }

    /// Returns the number of positional arguments before the active one.
    fn position_of_active(&self) -> usize {
        self.arguments.iter().take(self.active).filter(|argument| argument.keyword.is_none()).count()
    }

    /// Returns the function of `T` that is called.
    pub(crate) fn tir_function(&self, view: &FileView<'_>) -> Option<&'static Function<'static>> {
        let (head, function) = self.callee.split_once('.')?;
        let is_tir = view.context(self.location.item)?.namespace(head) == Some(Namespace::Tir);
        is_tir.then(|| functions::find(function)).flatten()
    }

    /// Returns the index of the parameter for each argument of a call of a `T.` function, including the active one.
    pub(crate) fn tir_params(&self, function: &Function<'_>) -> Vec<Option<usize>> {
        let one = |argument: &Written<'a>| match argument.keyword {
            Some(keyword) => functions::Written::Keyword(keyword),
            None => functions::Written::Positional,
        };
        let mut written: Vec<_> = self.arguments.iter().map(one).collect();
        if self.active >= written.len() {
            written.push(functions::Written::Positional);
        }
        function.bind(&written).params
    }

    /// Returns the parameter that the active argument is passed for.
    pub(crate) fn param(&self, schema: &'static Schema) -> Option<(usize, &'static Param)> {
        let params = schema.params;
        let index = match self.arguments.get(self.active).and_then(|argument| argument.keyword) {
            Some(keyword) => params.iter().position(|param| param.name == keyword)?,
            None => {
                let position = self.position_of_active();
                let variadic = variadic_of(schema);
                variadic.map_or(position, |variadic| position.min(variadic))
            }
        };
        params.get(index).map(|param| (index, param))
    }

    /// Returns the required operand, other than the active argument, for which no argument is passed; `None` if there are
    /// none or several.
    pub(crate) fn only_missing_operand(&self, schema: &'static Schema) -> Option<&'static Param> {
        let (active, _) = self.param(schema)?;
        let variadic = variadic_of(schema);
        let is_missing = |(at, param): &(usize, &Param)| {
            *at != active
                && matches!(param.default, rx_ops::Default::Required)
                && !param.is_attr()
                && !self.passes(*at, param.name, variadic)
        };
        let mut missing = schema.params.iter().enumerate().filter(is_missing);
        let (_, only) = missing.next()?;
        missing.next().is_none().then_some(only)
    }

    /// Whether an argument other than the active one is passed for the parameter with this index and name. Positional
    /// arguments from index `variadic` on are passed for the variadic parameter there.
    pub(crate) fn passes(&self, index: usize, param: &str, variadic: Option<usize>) -> bool {
        let mut positional = 0;
        for (at, argument) in self.arguments.iter().enumerate() {
            let given = match argument.keyword {
                Some(keyword) => keyword == param,
                None => {
                    positional += 1;
                    variadic.map_or(positional - 1, |variadic| variadic.min(positional - 1)) == index
                }
            };
            if given && at != self.active {
                return true;
            }
        }
        false
    }
}

/// Returns the index of the variadic parameter of an operator.
pub(crate) fn variadic_of(schema: &Schema) -> Option<usize> {
    schema.params.iter().position(|param| param.kind == ParamKind::Variadic)
}

/// Returns the operator that `path` refers to in item `item`.
pub(crate) fn operator_of(view: &FileView<'_>, item: usize, path: &str) -> Option<&'static Schema> {
    let context = view.context(item)?;
    let (head, rest) = path.split_once('.')?;
    let relax = context.namespace(head) == Some(Namespace::Relax);
    relax.then(|| context.operator(name(rest.strip_prefix("op.").unwrap_or(rest)))).flatten()
}

/// Returns the opening parenthesis (a token) of the innermost call that is open at a byte, and whether other brackets
/// are open within it.
fn opening(segment: &Segment, statement: &Statement, at: u32) -> Option<(u32, bool)> {
    let tokens = &segment.tree().tokens;
    let (mut depth, mut nested) = (0u32, false);
    for token in (statement.first_token..tokens.at_or_after(at)).rev() {
        let Some(kind) = tokens.kind(token) else { continue };
        if kind.is_closer() && tokens.span(token).is_some_and(|span| span.end <= at) {
            depth += 1;
        } else if kind.is_opener() {
            if depth > 0 {
                depth -= 1;
                continue;
            }
            let before = token.checked_sub(1).filter(|before| *before >= statement.first_token);
            let called = before.and_then(|before| tokens.kind(before)) == Some(TokenKind::Name);
            if kind == TokenKind::LeftParen && called {
                return Some((token, nested));
            }
            nested = true;
        }
    }
    None
}

/// Returns the first token of the dotted name before a parenthesis.
fn callee_start(segment: &Segment, statement: &Statement, open: u32) -> u32 {
    let tokens = &segment.tree().tokens;
    let mut first = open.saturating_sub(1);
    while first >= statement.first_token + 2
        && tokens.kind(first - 1) == Some(TokenKind::Dot)
        && tokens.kind(first - 2) == Some(TokenKind::Name)
    {
        first -= 2;
    }
    first
}

/// Returns the arguments after an opening parenthesis, and the index of the one that contains a byte.
fn arguments<'a>(segment: &'a Segment, statement: &Statement, open: u32, at: u32) -> (Vec<Written<'a>>, usize) {
    let tokens = &segment.tree().tokens;
    let end = statement.tokens().end;
    let mut slots = Vec::new();
    let (mut depth, mut first, mut closed) = (0u32, open + 1, false);
    for token in open + 1..end {
        let (Some(kind), Some(span)) = (tokens.kind(token), tokens.span(token)) else { break };
        if kind.is_opener() {
            depth += 1;
        } else if kind.is_closer() {
            let Some(outer) = depth.checked_sub(1) else {
                slots.push((first, token, span.start));
                closed = true;
                break;
            };
            depth = outer;
        } else if kind == TokenKind::Comma && depth == 0 {
            slots.push((first, token, span.start));
            first = token + 1;
        }
    }
    if !closed {
        slots.push((first, end, u32::MAX));
    }
    let (mut found, mut active) = (Vec::new(), None);
    for (from, to, until) in slots {
        if active.is_none() && at <= until {
            active = Some(found.len());
        }
        if from < to {
            found.extend(written(segment, from, to));
        }
    }
    let active = active.unwrap_or(found.len());
    (found, active)
}

fn written<'a>(segment: &'a Segment, from: u32, to: u32) -> Option<Written<'a>> {
    let tokens = &segment.tree().tokens;
    let text = |token: u32| segment.text().get(tokens.span(token)?.range());
    let is_keyword = tokens.kind(from) == Some(TokenKind::Name) && tokens.kind(from + 1) == Some(TokenKind::Equal);
    let start = tokens.span(from)?.start;
    let last = tokens.span(to - 1)?.end;
    if is_keyword && from + 1 < to {
        let value = if from + 2 < to { tokens.span(from + 2)?.start } else { last };
        return Some(Written { keyword: text(from), span: Span::new(value, last), from: start });
    }
    Some(Written { keyword: None, span: Span::new(start, last), from: start })
}
