//! Applies suppression comments: removes the diagnostics they name, and reports comments that suppress nothing.
//!
//! A pure function of a file's directives and diagnostics, run each time they are shown; without directives it costs
//! nothing.

use rx_base::edit_distance::nearest;
use rx_base::{Code, Diagnostic, Fix, Span};

/// A suppression directive, with byte spans in the file.
#[derive(Clone, Debug)]
pub struct Suppression {
    /// The span from its `#` to its end.
    pub span: Span,
    /// The span to delete to remove the directive.
    pub removal: Span,
    /// The diagnostics it names.
    pub meant: Meant,
    /// The region it applies to.
    pub scope: Scope,
}

/// The diagnostics that a directive names.
#[derive(Clone, Debug)]
pub enum Meant {
    /// All that can be suppressed.
    All,
    /// The diagnostics with these codes; each with the span of the word.
    Codes(Vec<(Span, String)>),
    /// None: the directive is malformed, for this reason.
    Malformed(&'static str),
}

/// The region that a directive applies to.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// The whole file.
    File,
    /// The diagnostics on the line, or in the statements that begin or end on it.
    Lines {
        /// The line.
        line: Span,
        /// The statements.
        statements: Option<Span>,
    },
    /// Nothing: no statement follows.
    Nothing,
}

impl Scope {
    /// Whether the region contains a diagnostic at `place`.
    fn covers(self, place: Span) -> bool {
        match self {
            Scope::File => true,
            Scope::Nothing => false,
            Scope::Lines { line, statements } => {
                let last = place.end.saturating_sub(1).max(place.start);
                let on_line = place.start <= line.end && last >= line.start;
                on_line || statements.is_some_and(|it| it.start <= place.start && place.start <= it.end)
            }
        }
    }
}

/// Whether a comment can suppress the code. Syntax errors cannot be suppressed, and neither can diagnostics about the
/// comments themselves, which are fixed by removing the comments.
pub const fn is_suppressible(code: Code) -> bool {
    code.is_choosable() && code.number() >= 100
}

/// Removes the suppressed diagnostics of a file and adds those about the `suppressions`; returns them in order of
/// position. Codes that are not `judged` were not checked for, so a comment that names one is not reported as unused.
pub fn apply(
    suppressions: &[Suppression],
    mut diagnostics: Vec<Diagnostic<Span>>,
    judged: impl Fn(Code) -> bool,
) -> Vec<Diagnostic<Span>> {
    if suppressions.is_empty() {
        return diagnostics;
    }
    let mut open = Open::new(&diagnostics);
    let mut findings = Vec::new();
    let is_file = |suppression: &&Suppression| matches!(suppression.scope, Scope::File);
    // Comments near a diagnostic are applied first, so that a comment for the file counts as unused if they suffice.
    let near = suppressions.iter().filter(|it| !is_file(it));
    for suppression in near.chain(suppressions.iter().filter(is_file)) {
        match &suppression.meant {
            Meant::Malformed(why) => findings.push(malformed(suppression.span, why)),
            Meant::All => findings.push(blanket(suppression, &open.take(suppression.scope, &diagnostics, |_| true))),
            Meant::Codes(words) => named(suppression, words, &judged, &mut findings, |code| {
                !open.take(suppression.scope, &diagnostics, |found| found == code).is_empty()
            }),
        }
    }
    let mut gone = open.gone.iter();
    diagnostics.retain(|_| !gone.next().copied().unwrap_or(false));
    diagnostics.extend(findings);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.primary, diagnostic.code));
    diagnostics
}

/// The diagnostics of a file that are not suppressed yet.
struct Open {
    gone: Vec<bool>,
    /// The maximal length of a diagnostic's span, in bytes.
    longest: u32,
}

impl Open {
    fn new(diagnostics: &[Diagnostic<Span>]) -> Open {
        let longest = diagnostics.iter().map(|it| it.primary.end.saturating_sub(it.primary.start)).max();
        Open { gone: vec![false; diagnostics.len()], longest: longest.unwrap_or(0) }
    }

    /// Suppresses the wanted diagnostics in `scope`, and returns their codes.
    fn take(&mut self, scope: Scope, diagnostics: &[Diagnostic<Span>], wanted: impl Fn(Code) -> bool) -> Vec<Code> {
        let range = match scope {
            Scope::File => 0..diagnostics.len(),
            Scope::Nothing => 0..0,
            Scope::Lines { line, statements } => {
                let statements = statements.unwrap_or(line);
                let first = line.start.min(statements.start).saturating_sub(self.longest);
                let last = line.end.max(statements.end);
                let before = |offset: u32| diagnostics.partition_point(|it| it.primary.start < offset);
                before(first)..before(last.saturating_add(1))
            }
        };
        let mut taken = Vec::new();
        let gone = self.gone.get_mut(range.clone()).unwrap_or_default();
        for (gone, diagnostic) in gone.iter_mut().zip(diagnostics.get(range).unwrap_or_default()) {
            let code = diagnostic.code;
            if !*gone && is_suppressible(code) && wanted(code) && scope.covers(diagnostic.primary) {
                *gone = true;
                taken.push(code);
            }
        }
        taken.sort_unstable();
        taken.dedup();
        taken
    }
}

fn malformed(place: Span, why: &str) -> Diagnostic<Span> {
    Diagnostic::new(Code::MalformedSuppression, place, format!("a comment for rx that cannot be read: {why}"))
}

/// Reports a comment that names no code; `taken` are the codes it suppressed.
fn blanket(suppression: &Suppression, taken: &[Code]) -> Diagnostic<Span> {
    let place = suppression.span;
    if taken.is_empty() {
        let message = "unused suppression: nothing is reported here".to_owned();
        return Diagnostic::new(Code::UnusedSuppression, place, message).with_fix(removal(suppression));
    }
    let names = list(taken);
    Diagnostic::new(
        Code::BlanketSuppression,
        place,
        "the comment suppresses whatever is reported here, and names nothing",
    )
    .with_note(format!("it suppresses {names} now"))
    .with_fix(Fix {
        title: format!("name {names}"),
        edits: vec![(Span::new(place.end, place.end), format!("[{names}]"))],
        safe: true,
    })
}

/// Reports unused, unknown and unsuppressible codes of a comment. `takes` suppresses a code and returns whether it
/// occurred.
fn named(
    suppression: &Suppression,
    words: &[(Span, String)],
    judged: &impl Fn(Code) -> bool,
    findings: &mut Vec<Diagnostic<Span>>,
    mut takes: impl FnMut(Code) -> bool,
) {
    let mut unused = Vec::new();
    for (at, (place, word)) in words.iter().enumerate() {
        match word.parse::<Code>() {
            Ok(code) if is_suppressible(code) => {
                if !takes(code) && judged(code) {
                    unused.push((at, code));
                }
            }
            Ok(code) => findings.push(fixed(*place, code)),
            Err(_) => findings.push(unknown(*place, word)),
        }
    }
    let Some((first, _)) = unused.first() else { return };
    let codes: Vec<Code> = unused.iter().map(|(_, code)| *code).collect();
    let is = if codes.len() == 1 { "is" } else { "are" };
    let all = unused.len() == words.len();
    let place = if all { suppression.span } else { words.get(*first).map_or(suppression.span, |(place, _)| *place) };
    let fix = if all { removal(suppression) } else { shortening(words, &unused) };
    let message = format!("unused suppression: {} {is} not reported here", list(&codes));
    findings.push(Diagnostic::new(Code::UnusedSuppression, place, message).with_fix(fix));
}

/// Reports a code that cannot be suppressed.
fn fixed(place: Span, code: Code) -> Diagnostic<Span> {
    let why = match code.number() {
        0..100 => "diagnostics of comments and of `rx.toml` cannot be suppressed by comments",
        _ => "unreadable text is always an error",
    };
    Diagnostic::new(Code::MalformedSuppression, place, format!("{code} ({}): {why}", code.slug()))
}

fn unknown(place: Span, word: &str) -> Diagnostic<Span> {
    let found = Diagnostic::new(Code::MalformedSuppression, place, format!("no diagnostic is called `{word}`"));
    let (upper, lower) = (word.to_uppercase(), word.to_lowercase());
    let near = match upper.parse::<Code>() {
        Ok(_) => Some(upper),
        Err(_) if lower.parse::<Code>().is_ok() => Some(lower),
        Err(_) => nearest(&lower, Code::ALL.iter().map(|code| code.slug())).map(str::to_owned),
    };
    match near {
        Some(near) => found.with_help(format!("did you mean `{near}`?")).with_fix(Fix {
            title: format!("write `{near}`"),
            edits: vec![(place, near)],
            safe: true,
        }),
        None => found,
    }
}

fn removal(suppression: &Suppression) -> Fix<Span> {
    Fix { title: "remove the comment".to_owned(), edits: vec![(suppression.removal, String::new())], safe: true }
}

/// Returns the fix that removes the unused codes from the list.
fn shortening(words: &[(Span, String)], unused: &[(usize, Code)]) -> Fix<Span> {
    let kept = words.iter().enumerate().filter(|(at, _)| !unused.iter().any(|(gone, _)| gone == at));
    let kept: Vec<&str> = kept.map(|(_, (_, word))| word.as_str()).collect();
    let start = words.first().map_or(0, |(place, _)| place.start);
    let end = words.last().map_or(0, |(place, _)| place.end);
    let codes: Vec<Code> = unused.iter().map(|(_, code)| *code).collect();
    Fix { title: format!("remove {}", list(&codes)), edits: vec![(Span::new(start, end), kept.join(", "))], safe: true }
}

fn list(codes: &[Code]) -> String {
    codes.iter().map(Code::to_string).collect::<Vec<_>>().join(", ")
}
