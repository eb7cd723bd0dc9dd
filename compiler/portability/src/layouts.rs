//! Operators that a release lowers in certain layouts only. For example, all releases lower `R.nn.conv2d_transpose`
//! with `data_layout="NCHW"` only; the fix inserts `R.permute_dims` around the operand and the call.

use super::call_spans::{SourceCall, call_at};
use super::{Look, Site};
use rx_base::{Code, Diagnostic, Fix, Span};
use rx_context::ItemPlace;
use rx_ops::tvm::{LayoutLimit, convert, plain};

/// An unsupported layout of a call: the attribute that specifies it, the operand it applies to (`None` for the result),
/// the given layout, and the supported one.
struct Clash {
    attribute: &'static str,
    operand: Option<&'static str>,
    given: String,
    wanted: String,
}

impl Look<'_> {
    /// Reports a call with unsupported layouts. The fix converts the operands and the result.
    pub(super) fn layouts(&mut self, site: &Site<'_>) {
        let Some(limit) = rx_ops::tvm::layouts(self.version, site.operator) else { return };
        let clashes = clashes(&limit, site);
        let Some(first) = clashes.first() else { return };
        let written = call_at(self.segment, site.span);
        let place = |attribute: &str| {
            let position = site.params.iter().position(|param| param.name == attribute);
            written.as_ref().and_then(|written| written.argument(attribute, position))
        };
        let primary = place(first.attribute).unwrap_or(site.span);
        let mut diagnostic = Diagnostic::new(
            Code::LayoutNotLegalized,
            self.place(primary),
            format!(
                "TVM {} lowers {} with {}=\"{}\" only, not \"{}\"",
                self.version, site.operator, first.attribute, first.wanted, first.given
            ),
        )
        .with_note(
            "LegalizeOps leaves the call as it is, and the code generator says `CodeGenVM cannot emit this Relax operator`",
        );
        for other in clashes.iter().skip(1) {
            if let Some(span) = place(other.attribute) {
                let text = format!("lowered with \"{}\" only", other.wanted);
                diagnostic = diagnostic.with_label(self.place(span), text);
            }
        }
        diagnostic = match written.and_then(|written| self.converted(site, &limit, &clashes, &written)) {
            Some(fix) => diagnostic.with_help(fix.title.clone()).with_fix(fix),
            None => diagnostic.with_help("convert the operands with `R.permute_dims` or `R.layout_transform`"),
        };
        self.found.push(diagnostic);
    }

    /// Returns a fix that inserts conversions around the operands and the call, and changes the layout attributes to
    /// supported ones.
    fn converted(
        &self,
        site: &Site<'_>,
        limit: &LayoutLimit,
        clashes: &[Clash],
        written: &SourceCall<'_>,
    ) -> Option<Fix<ItemPlace>> {
        let position = |name: &str| site.params.iter().position(|param| param.name == name);
        let mut edits: Vec<(ItemPlace, String)> = Vec::new();
        let mut operators = Vec::new();
        for clash in clashes {
            let Some(operand) = clash.operand else { continue };
            let span = written.argument(operand, position(operand))?;
            let conversion = convert(&clash.given, &clash.wanted)?;
            edits.push((self.place(Span::empty(span.start)), conversion.before));
            edits.push((self.place(Span::empty(span.end)), conversion.after));
            if let Some(label) = written.argument(clash.attribute, position(clash.attribute)) {
                edits.push((self.place(label), format!("\"{}\"", clash.wanted)));
            }
            operators.push(conversion.operator);
        }
        let (_, first, _) = limit.operands.first()?;
        let data = clashes.iter().find(|clash| clash.attribute == *first);
        let inner = data.map_or(site.text(first)?, |clash| &clash.wanted);
        let outer = result_layout(limit, site)?;
        if let Some(label) = written.argument(limit.result, position(limit.result)) {
            edits.push((self.place(label), format!("\"{inner}\"")));
        }
        if outer != inner {
            let conversion = convert(inner, outer)?;
            edits.push((self.place(Span::empty(site.span.start)), conversion.before));
            edits.push((self.place(Span::empty(site.span.end)), conversion.after));
            operators.push(conversion.operator);
        }
        // An omitted attribute has the default layout; there is no text to replace by the supported one.
        if clashes.iter().any(|clash| written.argument(clash.attribute, position(clash.attribute)).is_none()) {
            return None;
        }
        operators.sort_unstable();
        operators.dedup();
        let used: Vec<String> = operators.iter().map(|operator| format!("`R.{operator}`")).collect();
        Some(Fix { title: format!("convert the layouts with {}", used.join(" and ")), edits, safe: true })
    }
}

/// Returns the layout of the result. If the attribute is omitted, it is the layout of the first operand.
fn result_layout<'a>(limit: &LayoutLimit, site: &Site<'a>) -> Option<&'a str> {
    let (_, first, _) = limit.operands.first()?;
    site.text(limit.result).filter(|layout| !layout.is_empty()).or_else(|| site.text(first))
}

/// Returns the unsupported layouts of a call, that of the result last.
fn clashes(limit: &LayoutLimit, site: &Site<'_>) -> Vec<Clash> {
    let mut found = Vec::new();
    let mut data = None;
    for (operand, attribute, only) in limit.operands {
        let Some(given) = site.text(attribute) else { continue };
        let Some(unsplit) = plain(given) else { continue };
        let wanted = match only {
            Some(only) => (*only).to_owned(),
            None if limit.plain => unsplit,
            None => given.to_owned(),
        };
        data.get_or_insert_with(|| given.to_owned());
        if wanted != given {
            let given = given.to_owned();
            found.push(Clash { attribute, operand: Some(operand), given, wanted });
        }
    }
    if let (Some(data), Some(result)) = (data, result_layout(limit, site))
        && data != result
    {
        found.push(Clash { attribute: limit.result, operand: None, given: result.to_owned(), wanted: data });
    }
    found
}
