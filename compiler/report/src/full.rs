//! Full reports for people: ariadne draws an excerpt, and this module adds the head, line numbers, notes and help.

use crate::excerpt::Excerpt;
use crate::plain::line_of;
use crate::source::Source;
use ariadne::{CharSet, Color, Config, Fmt, IndexType, Label, LabelAttach, Report, ReportKind};
use rx_base::{Diagnostic, Severity, Span};
use std::fmt::Write;

/// The most labels drawn in one report; more would hide the first.
const MOST_LABELS: usize = 12;
/// The most characters of a message.
const LONGEST_MESSAGE: usize = 2000;
/// The most characters of a label.
const LONGEST_LABEL: usize = 400;

/// The colours of secondary labels, in turn.
const SECONDARY: [Color; 3] = [Color::Blue, Color::Cyan, Color::Magenta];
const MARGIN: Color = Color::Fixed(246);

/// Renders one diagnostic with its source lines; ends in a line end.
///
/// Only lines with labels are shown, and of a long line only a window around each label. `color` adds ANSI colours.
pub fn full(source: &Source<'_>, diagnostic: &Diagnostic<Span>, color: bool) -> String {
    let code = diagnostic.code;
    let story = FullReport {
        title: format!("{}[{code} {}]", diagnostic.severity, code.slug()),
        severity: diagnostic.severity,
        message: &diagnostic.message,
        primary: diagnostic.primary,
        primary_label: &diagnostic.primary_label,
        labels: &diagnostic.labels,
        notes: &diagnostic.notes,
        help: &diagnostic.help,
        fixes: &diagnostic.fixes,
    };
    story.drawn(source, color)
}

/// The contents of a report: of a diagnostic, or of an answer such as that of `--why`.
pub struct FullReport<'a> {
    /// The beginning of the first line, such as `error[RX0501 call-tir-arg-mismatch]`.
    pub title: String,
    /// The severity, which determines the colour.
    pub severity: Severity,
    /// The rest of the first line.
    pub message: &'a str,
    /// The primary place.
    pub primary: Span,
    /// The label of the primary place.
    pub primary_label: &'a str,
    /// Secondary labels; only the first dozen are drawn.
    pub labels: &'a [rx_base::Label<Span>],
    /// Notes below the drawing.
    pub notes: &'a [String],
    /// Help messages below the notes.
    pub help: &'a [String],
    /// Fixes; their titles are shown as help if `help` is empty.
    pub fixes: &'a [rx_base::Fix<Span>],
}

impl FullReport<'_> {
    /// Renders the report in the same form as [`full`].
    pub fn drawn(&self, source: &Source<'_>, color: bool) -> String {
        let labels = self.labels.iter().take(MOST_LABELS);
        let spans: Vec<Span> = std::iter::once(self.primary).chain(labels.clone().map(|label| label.place)).collect();
        let excerpt = Excerpt::new(source, &spans);
        let labels: Vec<String> = labels.map(|label| self.label_text(source, label)).collect();
        let texts = std::iter::once(self.primary_text()).chain(labels.iter().map(String::as_str));
        let drawing = draw(&excerpt, texts, severity_color(self.severity), color);
        let mut out = Painter { out: String::new(), color };
        out.paint(&self.title, severity_color(self.severity));
        out.plain(&format!(": {}\n", line_of(self.message, LONGEST_MESSAGE)));
        out.frame(source, self, &excerpt, &drawing);
        out.out
    }

    /// Returns the text of a label, with the cell if it is in another cell of a notebook than the primary place.
    fn label_text(&self, source: &Source<'_>, label: &rx_base::Label<Span>) -> String {
        let cell = |span: Span| source.position(span.start as usize).cell;
        match cell(label.place) {
            Some(cell_of_label) if Some(cell_of_label) != cell(self.primary) => {
                format!("{} (cell {cell_of_label})", label.text)
            }
            _ => label.text.clone(),
        }
    }

    fn primary_text(&self) -> &str {
        if self.primary_label.is_empty() { "here" } else { self.primary_label }
    }
}

/// The colour of a severity.
pub(crate) fn severity_color(severity: Severity) -> Color {
    match severity {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
        Severity::Info => Color::Blue,
        Severity::Hint => Color::Green,
    }
}

/// Draws the excerpt with ariadne; the primary label is the first of `texts`.
fn draw<'t>(excerpt: &Excerpt, texts: impl Iterator<Item = &'t str>, primary: Color, color: bool) -> String {
    let line_of_offset = |offset: usize| excerpt.text.get(..offset).map_or(0, |head| head.matches('\n').count());
    let mut labels: Vec<(usize, Label)> = Vec::new();
    for (index, (span, text)) in excerpt.spans.iter().zip(texts).enumerate() {
        let shade = match index.checked_sub(1) {
            None => primary,
            Some(n) => SECONDARY.get(n % SECONDARY.len()).copied().unwrap_or(Color::Blue),
        };
        let label = Label::new(span.clone())
            .with_message(line_of(text, LONGEST_LABEL))
            .with_color(shade)
            .with_priority(i32::from(index == 0));
        labels.push((line_of_offset(span.end.saturating_sub(1)), label));
    }
    // ariadne starts another frame if a label ends above the previous one.
    labels.sort_by_key(|(line, _)| *line);
    let config = Config::new()
        .with_color(color)
        .with_index_type(IndexType::Byte)
        .with_char_set(CharSet::Unicode)
        .with_label_attach(LabelAttach::Start);
    let span = excerpt.spans.first().cloned().unwrap_or(0..0);
    let mut drawing = Vec::new();
    let report = Report::build(ReportKind::Error, span)
        .with_config(config)
        .with_labels(labels.into_iter().map(|(_, label)| label))
        .finish();
    // Writing to memory cannot fail.
    let _ = report.write(ariadne::Source::from(excerpt.text.as_str()), &mut drawing);
    String::from_utf8_lossy(&drawing).into_owned()
}

/// Collects text with or without colours.
struct Painter {
    out: String,
    color: bool,
}

impl Painter {
    fn plain(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn paint(&mut self, text: &str, shade: Color) {
        if self.color {
            // Writing to memory cannot fail.
            let _ = write!(self.out, "{}", text.fg(shade));
        } else {
            self.out.push_str(text);
        }
    }

    /// Writes the head, the drawing with the source's line numbers, and notes and help.
    ///
    /// ariadne numbers the lines of the excerpt. Its `display_line_offset` affects only the head of a frame, and a
    /// single offset would be wrong for lines that are far apart. So this function drops ariadne's title, head and tail
    /// and replaces the numbers in its margin.
    fn frame(&mut self, source: &Source<'_>, diagnostic: &FullReport<'_>, excerpt: &Excerpt, drawing: &str) {
        let last = excerpt.numbers.iter().max().copied().unwrap_or(1);
        let width = last.to_string().len();
        let mut lines = drawing.lines().skip(1);
        let drawn_width =
            lines.next().map_or(0, |head| head.chars().take_while(|c| *c == ' ').count().saturating_sub(2));
        let position = source.position(diagnostic.primary.start as usize);
        self.plain(&" ".repeat(width + 2));
        self.paint("╭─[", MARGIN);
        let name = line_of(source.name(), LONGEST_MESSAGE);
        self.plain(&format!(" {name}:{position} "));
        self.paint("]", MARGIN);
        self.plain("\n");
        let body: Vec<&str> = lines.collect();
        for line in body.iter().take(body.len().saturating_sub(1)) {
            self.body_line(line, drawn_width, width, excerpt);
        }
        self.remarks(diagnostic, width);
        self.paint(&format!("{}╯", "─".repeat(width + 2)), MARGIN);
        self.plain("\n");
    }

    /// Writes a line of ariadne's drawing with its number replaced. The line is a blank, an optional colour, a number
    /// or blanks, and the rest.
    fn body_line(&mut self, line: &str, drawn_width: usize, width: usize, excerpt: &Excerpt) {
        let rest = line.strip_prefix(' ').unwrap_or(line);
        let paint_len = if rest.starts_with('\x1b') { rest.find('m').map_or(0, |at| at + 1) } else { 0 };
        let (paint, rest) = rest.split_at_checked(paint_len).unwrap_or(("", rest));
        let (field, rest) = rest.split_at_checked(drawn_width).unwrap_or(("", rest));
        let number = field.trim().parse::<usize>().ok().and_then(|drawn| excerpt.numbers.get(drawn.checked_sub(1)?));
        let number = number.filter(|number| **number > 0).map(u32::to_string).unwrap_or_default();
        self.plain(join_colors(&format!(" {paint}{number:>width$}{rest}")).trim_end());
        self.plain("\n");
    }

    /// Writes notes and help, and the titles of fixes if there is no help.
    fn remarks(&mut self, diagnostic: &FullReport<'_>, width: usize) {
        let notes = diagnostic.notes.iter().map(|note| ("note", note));
        let help = diagnostic.help.iter().map(|help| ("help", help));
        let fixes = diagnostic.fixes.iter().filter(|_| diagnostic.help.is_empty()).map(|fix| ("help", &fix.title));
        let more = diagnostic.labels.len().saturating_sub(MOST_LABELS);
        let more = (more > 0).then(|| format!("{more} more places are not shown"));
        let mut first = true;
        for (word, text) in notes.chain(more.iter().map(|text| ("note", text))).chain(help).chain(fixes) {
            if std::mem::take(&mut first) {
                self.plain(&" ".repeat(width + 2));
                self.paint("│", MARGIN);
                self.plain("\n");
            }
            for (index, line) in text.lines().enumerate() {
                self.plain(&" ".repeat(width + 2));
                self.paint("│ ", MARGIN);
                if index == 0 {
                    self.paint(word, Color::Fixed(115));
                    self.plain(": ");
                } else {
                    self.plain("      ");
                }
                self.plain(line_of(line, LONGEST_MESSAGE).trim_end());
                self.plain("\n");
            }
        }
    }
}

/// Merges the escape sequences of adjacent characters of one colour; ariadne colours each character separately.
fn join_colors(line: &str) -> String {
    const RESET: &str = "0";
    let mut joined = String::with_capacity(line.len());
    let mut pieces = line.split("\x1b[");
    joined.push_str(pieces.next().unwrap_or(""));
    let mut active = RESET;
    // Source text contains no escape characters at this point, so each piece begins with the rest of an escape
    // sequence.
    for (shade, text) in pieces.filter_map(|piece| piece.split_once('m')).filter(|(_, text)| !text.is_empty()) {
        if shade != active {
            if active != RESET {
                joined.push_str("\x1b[0m");
            }
            if shade != RESET {
                joined.extend(["\x1b[", shade, "m"]);
            }
            active = shade;
        }
        joined.push_str(text);
    }
    if active != RESET {
        joined.push_str("\x1b[0m");
    }
    joined
}

#[cfg(test)]
mod tests;
