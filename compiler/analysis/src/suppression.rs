//! Diagnostics that comments of the text do not want, and comments that do not want anything that is there.
//!
//! A pure function of a file's directives and diagnostics, asked each time they are shown: it costs nothing where there
//! are no directives.

use rx_base::edit_distance::nearest;
use rx_base::{Code, Diagnostic, Fix, Span};

/// A directive with places in bytes of the file.
#[derive(Clone, Debug)]
pub struct Suppression {
    /// From its `#` to its end.
    pub span: Span,
    /// What goes when it goes.
    pub removal: Span,
    /// Which diagnostics it means.
    pub meant: Meant,
    /// What it speaks of.
    pub scope: Scope,
}

/// Which diagnostics a directive means.
#[derive(Clone, Debug)]
pub enum Meant {
    /// All that can be suppressed.
    All,
    /// Those called this, with the places of the words.
    Codes(Vec<(Span, String)>),
    /// None: it cannot be read, and why.
    Malformed(&'static str),
}

/// What a directive speaks of.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// The whole file.
    File,
    /// What is reported on the line, or in the statements that begin or end on it.
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
    /// Whether a diagnostic at this place is spoken of.
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

/// Whether a comment can keep the code from being reported. What cannot be read cannot be unsaid; nor can what is said of
/// the comments themselves, which is mended by removing them.
pub const fn is_suppressible(code: Code) -> bool {
    code.is_choosable() && code.number() >= 100
}

/// The diagnostics of a file, in order of position, that its `suppressions` leave, with what is wrong with those. What is
/// not `judged` was not looked for: a comment that names it is not said to be unused.
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
    // Comments near a mistake are asked first: what they suppress needs no comment for the file.
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

/// Which of a file's diagnostics nothing suppresses yet.
struct Open {
    gone: Vec<bool>,
    /// The most bytes a diagnostic's place has.
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

/// What is said of a comment that names no code; `taken` is what it suppressed.
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

/// What is said of a comment that names codes. `takes` says whether a code suppressed something.
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

/// A code that no comment keeps from being reported.
fn fixed(place: Span, code: Code) -> Diagnostic<Span> {
    let why = match code.number() {
        0..100 => "what is said of comments is not suppressed by comments",
        _ => "what cannot be read cannot be suppressed",
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

/// The list without the unused words.
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
