//! The syntax trees of a file as text, for debugging the parser.

use rx_base::Span;
use rx_db::{Encoding, FileView};
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Root, Segment, Statement};
use std::fmt::Write;

/// The maximal number of lines; longer output is truncated.
const MAX_LINES: usize = 50_000;

/// Returns the trees of the statements that touch `range`, or of all statements. There is one line for each item,
/// statement and expression, indented by depth. Each line has the span as `line:column-line:column`, counted from 1 in
/// characters, and a statement's line has its syntax error.
pub fn syntax_tree(view: &FileView<'_>, range: Option<Span>) -> String {
    let mut writer = Writer { view, text: String::new(), lines: 0 };
    let document = view.document();
    for (at, item) in document.items().iter().enumerate() {
        let start = document.item_start(at);
        let end = start + item.segments.iter().map(|segment| segment.text().len()).sum::<usize>();
        let place = span(start, end);
        if !range.is_none_or(|range| meets(place, range)) {
            continue;
        }
        let name = item.name.map_or_else(String::new, |name| format!(" `{name}`"));
        writer.line(0, &format!("{:?}{name}", item.kind), place, "");
        for (number, segment) in item.segments.iter().enumerate() {
            let start = document.segment_start(at, number);
            let whole = span(start, start + segment.text().len());
            if range.is_none_or(|range| meets(whole, range)) && !writer.segment(segment, whole.start, range) {
                writer.text.push_str("…\n");
                return writer.text;
            }
        }
    }
    writer.text
}

fn span(start: usize, end: usize) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(offset(start), offset(end))
}

/// Whether two spans overlap or touch.
fn meets(place: Span, range: Span) -> bool {
    place.start <= range.end && range.start <= place.end
}

struct Writer<'a> {
    view: &'a FileView<'a>,
    text: String,
    lines: usize,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, label: &str, place: Span, more: &str) {
        let position = |offset: u32| {
            let (line, column) = self.view.document().line_column(offset as usize, Encoding::Utf32);
            format!("{}:{}", line + 1, column + 1)
        };
        let (start, end) = (position(place.start), position(place.end));
        self.lines += 1;
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "{:1$}{label} {start}-{end}{more}", "", 2 * depth);
    }

    /// Writes the trees of a segment. Returns `false` when the output is too long.
    fn segment(&mut self, segment: &Segment, start: u32, range: Option<Span>) -> bool {
        for statement in &segment.tree().statements {
            let place = statement.span.shift(start);
            if range.is_none_or(|range| meets(place, range)) {
                self.statement(segment, statement, start);
            }
            if self.lines > MAX_LINES {
                return false;
            }
        }
        true
    }

    fn statement(&mut self, segment: &Segment, statement: &Statement, start: u32) {
        let error = statement.tree.error.as_ref().map_or_else(String::new, |error| {
            let wanted = match error.message {
                "" => format!("expected {}", error.expected.join(" or ")),
                message => message.to_owned(),
            };
            format!("  ! {} {wanted}", error.code)
        });
        let place = statement.span.shift(start);
        self.line(1, name_of(&statement.tree.kind), place, &error);
        for root in segment.roots(statement) {
            self.expression(&root, start);
        }
    }

    /// Writes the tree of an expression. It uses an explicit stack, because trees may be as deep as the brackets in the
    /// text.
    fn expression(&mut self, root: &Root<'_>, start: u32) {
        let mut pending: Vec<(usize, &Expr)> = vec![(2, root.expr)];
        while let Some((depth, expr)) = pending.pop() {
            let place = root.cursor.span(expr.tokens).shift(start);
            let (kind, own) = described(root, expr);
            let own = own.map_or_else(String::new, |own| format!("  {own}"));
            self.line(depth, kind, place, &own);
            pending.extend(expr.children().into_iter().rev().map(|child| (depth + 1, child)));
        }
    }
}

/// Returns the kind of an expression and its text, if it is a name, a literal or an operator.
fn described<'a>(root: &Root<'a>, expr: &'a Expr) -> (&'static str, Option<String>) {
    let source = || Some(root.cursor.source(expr.tokens).to_owned());
    match &expr.kind {
        ExprKind::Name => ("Name", source()),
        ExprKind::Integer => ("Integer", source()),
        ExprKind::Float => ("Float", source()),
        ExprKind::String => ("String", source()),
        ExprKind::Bool(value) => ("Bool", Some(if *value { "True" } else { "False" }.to_owned())),
        ExprKind::None => ("None", None),
        ExprKind::Ellipsis => ("Ellipsis", None),
        ExprKind::Attribute { name, .. } => ("Attribute", Some(format!(".{}", root.cursor.text(*name)))),
        ExprKind::Subscript { .. } => ("Subscript", None),
        ExprKind::Call { arguments, .. } => {
            let keywords: Vec<_> = arguments.iter().filter_map(|it| it.keyword).collect();
            let named = keywords.iter().map(|it| format!("{}=", root.cursor.text(*it))).collect::<Vec<_>>().join(", ");
            ("Call", (!named.is_empty()).then_some(named))
        }
        ExprKind::Tuple(_) => ("Tuple", None),
        ExprKind::Parenthesized(_) => ("Parenthesized", None),
        ExprKind::List(_) => ("List", None),
        ExprKind::Dict(_) => ("Dict", None),
        ExprKind::Set(_) => ("Set", None),
        ExprKind::Slice { .. } => ("Slice", None),
        ExprKind::Unary(operator, _) => ("Unary", Some(format!("{operator:?}"))),
        ExprKind::Binary(operator, ..) => ("Binary", Some(format!("{operator:?}"))),
        ExprKind::Compare(_, rest) => {
            let operators = rest.iter().map(|(operator, _)| format!("{operator:?}")).collect::<Vec<_>>().join(", ");
            ("Compare", Some(operators))
        }
        ExprKind::Bool2(operator, _) => ("BoolOp", Some(format!("{operator:?}"))),
        ExprKind::Conditional { .. } => ("Conditional", None),
        ExprKind::Lambda { .. } => ("Lambda", None),
        ExprKind::Starred { double, .. } => ("Starred", Some(if *double { "**" } else { "*" }.to_owned())),
        ExprKind::Walrus { name, .. } => ("Walrus", Some(root.cursor.text(*name).to_owned())),
        ExprKind::Comprehension => ("Comprehension", None),
        ExprKind::Python => ("Python", None),
        ExprKind::Error => ("Error", source().filter(|text| !text.is_empty())),
    }
}

fn name_of(kind: &StatementKind) -> &'static str {
    match kind {
        StatementKind::Decorator(_) => "Decorator",
        StatementKind::Class { .. } => "Class",
        StatementKind::Def { .. } => "Def",
        StatementKind::With(_) => "With",
        StatementKind::For { .. } => "For",
        StatementKind::While(_) => "While",
        StatementKind::If(_) => "If",
        StatementKind::Elif(_) => "Elif",
        StatementKind::Else => "Else",
        StatementKind::Assign { .. } => "Assign",
        StatementKind::AnnAssign { .. } => "AnnAssign",
        StatementKind::AugAssign { .. } => "AugAssign",
        StatementKind::Expr(_) => "Expr",
        StatementKind::Return(_) => "Return",
        StatementKind::Assert { .. } => "Assert",
        StatementKind::Pass => "Pass",
        StatementKind::Break => "Break",
        StatementKind::Continue => "Continue",
        StatementKind::Import(_) => "Import",
        StatementKind::FromImport { .. } => "FromImport",
        StatementKind::Python { .. } => "Python",
        StatementKind::Error => "Error",
    }
}
