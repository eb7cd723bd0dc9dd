//! Hover: information about the name or literal at the cursor.

use crate::call_site::{CallSite, operator_of};
use crate::code_lens::cost_details;
use crate::explain::{binding_of, rule_text};
use crate::schema_text;
use crate::token_at::{Literal, Word};
use rx_analysis::Entry;
use rx_analysis::elaborate::{Row, RowKind, special_forms};
use rx_base::{DType, Span};
use rx_context::{FileContext, Namespace};
use rx_db::{FileView, Step, StepKind, declaration, prim_param};
use rx_ir::Signature;
use rx_syntax::TokenKind;
use rx_syntax::document::{FunctionKind, ItemKind};

/// The maximal number of steps of a derivation that are shown.
const MOST_STEPS: usize = 4;

/// The maximal number of steps of a derivation that are computed.
const MOST_FOLLOWED: usize = 48;

/// The content of a hover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The name or literal that it describes, in bytes of the file.
    pub span: Span,
    /// The text, as Markdown.
    pub markdown: String,
}

/// Returns information about the name or literal at the byte offset `offset`.
pub fn hover(view: &FileView<'_>, offset: usize) -> Option<Hover> {
    let Some(word) = Word::at(view, offset) else { return literal(view, offset) };
    let markdown = keyword_text(view, &word, offset)
        .or_else(|| path_text(view, &word))
        .or_else(|| symbol_text(view, &word, offset))
        .or_else(|| variable_text(view, &word))
        .or_else(|| prim_text(view, &word))
        .or_else(|| function_text(view, &word))?;
    Some(Hover { span: word.file_span(), markdown })
}

/// Describes the parameter of a keyword argument: `strides=` in a call.
fn keyword_text(view: &FileView<'_>, word: &Word<'_>, offset: usize) -> Option<String> {
    let tokens = &word.segment.tree().tokens;
    let next = tokens.at_or_after(word.span.end);
    if tokens.kind(next) != Some(TokenKind::Equal) {
        return None;
    }
    let site = CallSite::at(view, offset)?;
    let argument = site.arguments.iter().find(|argument| argument.from == word.span.start)?;
    let schema = site.operator(view)?;
    let param = schema.params.iter().find(|param| Some(param.name) == argument.keyword)?;
    Some(schema_text::param(schema, param))
}

/// Describes an operator or another dotted name of TVMScript.
fn path_text(view: &FileView<'_>, word: &Word<'_>) -> Option<String> {
    let path = word.path();
    if let Some(schema) = operator_of(view, word.location.item, path) {
        return Some(schema_text::operator(schema));
    }
    let context = view.context(word.location.item)?;
    let (head, rest) = path.split_once('.')?;
    let is_head = word.name.as_str() == head;
    match context.namespace(head)? {
        namespace if is_head => Some(namespace_text(namespace).to_owned()),
        Namespace::Tir => DType::parse(rest).map(dtype_text),
        Namespace::Relax if special_forms().any(|form| form == rest) => {
            Some(format!("```python\nR.{rest}\n```\nA construct of Relax that is not an operator."))
        }
        _ => None,
    }
}

fn namespace_text(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Relax => "Relax: operators and types of graph-level programs.",
        Namespace::Tir => "TIR: loops, buffers and scalar expressions.",
        Namespace::Ir => "The module level: `I.ir_module`, module attributes, global infos.",
    }
}

fn dtype_text(dtype: DType) -> String {
    let kind = match (dtype.is_float(), dtype.is_bool(), dtype.is_int()) {
        (true, ..) => "floating point",
        (_, true, _) => "boolean",
        (.., true) => "integer",
        _ => "opaque",
    };
    format!("`{dtype}`: {kind}, {} bytes per element", dtype.bytes())
}

/// Describes a string or number that is a dtype, a quoted symbolic dim or a dim.
fn literal(view: &FileView<'_>, offset: usize) -> Option<Hover> {
    let found = Literal::at(view, offset)?;
    let span = found.file_span();
    if let Some(dtype) = found.content().and_then(DType::parse) {
        let parts: Vec<String> = [dtype_text(dtype)].into_iter().chain(origin_text(view, offset)).collect();
        return Some(Hover { span, markdown: parts.join("\n\n") });
    }
    let markdown = origin_text(view, offset)?;
    Some(Hover { span, markdown })
}

/// Describes a symbolic dim and the origin of its value.
fn symbol_text(view: &FileView<'_>, word: &Word<'_>, offset: usize) -> Option<String> {
    let location = word.location;
    let context = view.context(location.item)?;
    let own = || view.entry(location.item, location.segment, word.span.start, word.name);
    let known = match own() {
        Some(Entry::Symbol { bound, .. }) => Some(bound),
        None if context.symbols.contains(&word.name) => Some(false),
        _ => None,
    }?;
    let mut text = format!("```python\n{}: T.int64\n```\nA symbolic dim", word.name);
    text.push_str(if known { "; its value is known from here." } else { "." });
    if let Some(why) = origin_text(view, offset) {
        text.push_str("\n\n");
        text.push_str(&why);
    }
    Some(text)
}

/// Explains the value of a dim or dtype in an annotation, with the steps of its derivation. `None` unless there is
/// exactly one derivation to show: a tensor, for example, has one for each axis.
fn origin_text(view: &FileView<'_>, offset: usize) -> Option<String> {
    let why = view.workspace().why_briefly(view.file(), offset, MOST_FOLLOWED)?;
    let [trace] = &why.traces[..] else { return None };
    let mut lines = vec![format!("{} of {} is {}", trace.part, why.subject, trace.fact)];
    let is_cut = trace.steps.len() > MOST_STEPS && trace.steps.last().is_some_and(|it| it.kind == StepKind::Unknown);
    let known = |step: &&Step<Span>| !(is_cut && step.kind == StepKind::Unknown);
    // In a long derivation, only the first step, the last step and the steps that change the value are shown.
    let short = trace.steps.len() <= MOST_STEPS;
    let tells = |(at, step): &(usize, &Step<Span>)| short || *at == 0 || !step.unchanged || step.kind.is_end();
    let steps = trace.steps.iter().filter(known).enumerate();
    let telling: Vec<&Step<Span>> = steps.filter(tells).map(|(_, step)| step).collect();
    lines.extend(telling.iter().take(MOST_STEPS).map(|step| step_text(view, step)));
    if let (Some(end), true) = (telling.last(), telling.len() > MOST_STEPS && !is_cut) {
        lines.push("- …".to_owned());
        lines.push(step_text(view, end));
    } else if is_cut {
        lines.push("- … (`rx.why` and `rxcheck --why` show the whole chain)".to_owned());
    }
    Some(lines.join("\n"))
}

fn step_text(view: &FileView<'_>, step: &Step<Span>) -> String {
    let line = view.document().line_column(step.place.start as usize, rx_db::Encoding::Utf8).0 + 1;
    format!("- line {line}: {}", step.text)
}

/// Describes a variable of a Relax function: its type, its inferred type if the annotation differs, the inference rule
/// of its value, and the cost.
fn variable_text(view: &FileView<'_>, word: &Word<'_>) -> Option<String> {
    let location = word.location;
    let check = view.check(location.item)?;
    let result = check.segments.get(location.segment)?;
    let before = |row: &&Row| row.name == word.name && row.span.start <= word.span.start;
    let row = result.rows.iter().rev().find(before);
    let ty = match row {
        Some(row) => row.ty.clone(),
        None => match view.entry(location.item, location.segment, word.span.start, word.name)? {
            Entry::Value { ty, .. } => ty,
            Entry::Module => return Some(format!("```python\n{}\n```\nThe module.", word.name)),
            Entry::Captured => {
                return Some(format!("`{}`: a Python value that rx does not evaluate", word.name));
            }
            _ => return None,
        },
    };
    let mut text = format!("```python\n{}: {ty}\n```", word.name);
    if row.is_none_or(|row| row.kind == RowKind::Binding)
        && let Some(value) = binding_of(view, word)
    {
        if value.value.ty != ty && !value.value.ty.is_error() && value.value.ty.to_string() != ty.to_string() {
            text.push_str(&format!("\ninferred: `{}`", value.value.ty));
        }
        if let Some(rule) = rule_text(view, location.item, &value.value) {
            text.push('\n');
            text.push_str(&rule);
        }
    }
    Some(text)
}

/// Describes a buffer or scalar parameter of a prim_func.
fn prim_text(view: &FileView<'_>, word: &Word<'_>) -> Option<String> {
    let item = view.document().items().get(word.location.item)?;
    if item.kind != ItemKind::Function(FunctionKind::Prim) {
        return None;
    }
    let signature = view.signature(word.location.item)?;
    let Signature::Prim(prim) = &*signature else { return None };
    let param = prim.params.iter().find(|param| param.name == word.name)?;
    Some(format!("```python\n{}\n```", prim_param(param)))
}

/// Describes a function of the module: its signature and its cost.
fn function_text(view: &FileView<'_>, word: &Word<'_>) -> Option<String> {
    let declared = view.function(word.location.item, word.name);
    let signature = match declared {
        Some(declared) => view.signature(declared)?,
        None => view.signature_of(word.location.item, word.name)?,
    };
    let decorator = if matches!(&*signature, Signature::Prim(_)) { "@T.prim_func\n" } else { "" };
    let mut text = format!("```python\n{decorator}{}\n```", declaration(word.name, &signature));
    if let Some(cost) = declared.and_then(|declared| cost_details(view, declared)) {
        text.push_str("\nCost:\n");
        text.push_str(&cost);
    }
    Some(text)
}

/// Whether a name refers to the module: `cls`, `Module`.
pub(crate) fn is_module(
    view: &FileView<'_>,
    context: &FileContext,
    at: (usize, usize, u32),
    name: rx_base::Name,
) -> bool {
    let (item, segment, offset) = at;
    context.modules.contains(&name) || matches!(view.entry(item, segment, offset, name), Some(Entry::Module))
}
