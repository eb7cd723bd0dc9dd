//! Parsing of `rx.toml` to settings, by the table of keys.

use crate::keys::{KEYS, Key, Kind};
use crate::pattern::FilePattern;
use crate::raw::RawTable;
use crate::selector::Selector;
use crate::severities::{Level, Levels};
use crate::{Override, Run, Settings};
use rx_base::edit_distance::nearest;
use rx_base::{Code, Diagnostic, Fix, Span, TvmVersion};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Parses the text of an `rx.toml` whose patterns are relative to `root`. Returns the settings from its valid parts,
/// and the mistakes as diagnostics in order.
pub fn read(text: &str, root: &Path) -> (Settings, Vec<Diagnostic<Span>>) {
    // The parser removes a byte order mark, so its positions must be shifted.
    let mark = text.len() - text.trim_start_matches('\u{FEFF}').len();
    let mut reader = Reader { mark, mistakes: Vec::new() };
    let fields = match DeTable::parse(text.get(mark..).unwrap_or_default()) {
        Ok(table) => reader.table("", Span::default(), table.get_ref(), KEYS),
        Err(error) => {
            let place = reader.place(error.span().unwrap_or_default());
            let message = format!("not TOML: {}", error.message().lines().collect::<Vec<_>>().join(", "));
            reader.mistakes.push(Diagnostic::new(Code::SettingsSyntax, place, message));
            Fields::default()
        }
    };
    let mut mistakes = reader.mistakes;
    mistakes.sort_by_key(|mistake| mistake.primary);
    (settings(fields, root), mistakes)
}

fn settings(mut fields: Fields, root: &Path) -> Settings {
    let mut tvm = fields.table("tvm");
    let overrides = fields.tables("overrides").into_iter().map(|mut fields| Override {
        files: fields.patterns("files").unwrap_or_default(),
        severity: fields.severities("severity"),
        run: run(fields.table("run")),
    });
    Settings {
        root: root.to_owned(),
        overrides: overrides.collect(),
        include: fields.patterns("include"),
        exclude: fields.patterns("exclude").unwrap_or_default(),
        error_on_warning: fields.bool("error-on-warning"),
        hints: fields.bool("hints"),
        tvm_version: tvm.version("version"),
        severity: fields.severities("severity"),
        run: run(fields.table("run")),
        ops: fields.raw("ops"),
    }
}

fn run(mut fields: Fields) -> Run {
    Run {
        inputs: fields.paths("inputs"),
        input: fields.named_paths("input"),
        seed: fields.natural("seed"),
        dims: fields.named_naturals("dims"),
        device: fields.word("device"),
    }
}

/// A value of one [`Kind`].
enum Value {
    Bool(bool),
    Patterns(Vec<FilePattern>),
    Severities(Levels),
    Version(TvmVersion),
    Paths(Vec<PathBuf>),
    NamedPaths(Vec<(String, PathBuf)>),
    Natural(i64),
    NamedNaturals(Vec<(String, i64)>),
    Word(&'static str),
    Table(Fields),
    Tables(Vec<Fields>),
    Raw(Vec<RawTable>),
}

/// The keys of a table that are known and have a valid value.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn bool(&mut self, name: &str) -> bool {
        matches!(self.take(name), Some(Value::Bool(true)))
    }

    fn patterns(&mut self, name: &str) -> Option<Vec<FilePattern>> {
        if let Some(Value::Patterns(patterns)) = self.take(name) { Some(patterns) } else { None }
    }

    fn severities(&mut self, name: &str) -> Levels {
        if let Some(Value::Severities(levels)) = self.take(name) { levels } else { Levels::default() }
    }

    fn version(&mut self, name: &str) -> Option<TvmVersion> {
        if let Some(Value::Version(version)) = self.take(name) { Some(version) } else { None }
    }

    fn paths(&mut self, name: &str) -> Option<Vec<PathBuf>> {
        if let Some(Value::Paths(paths)) = self.take(name) { Some(paths) } else { None }
    }

    fn named_paths(&mut self, name: &str) -> Vec<(String, PathBuf)> {
        if let Some(Value::NamedPaths(paths)) = self.take(name) { paths } else { Vec::new() }
    }

    fn natural(&mut self, name: &str) -> Option<u64> {
        if let Some(Value::Natural(number)) = self.take(name) { u64::try_from(number).ok() } else { None }
    }

    fn named_naturals(&mut self, name: &str) -> Vec<(String, i64)> {
        if let Some(Value::NamedNaturals(numbers)) = self.take(name) { numbers } else { Vec::new() }
    }

    fn word(&mut self, name: &str) -> Option<&'static str> {
        if let Some(Value::Word(word)) = self.take(name) { Some(word) } else { None }
    }

    fn table(&mut self, name: &str) -> Fields {
        if let Some(Value::Table(fields)) = self.take(name) { fields } else { Fields::default() }
    }

    fn tables(&mut self, name: &str) -> Vec<Fields> {
        if let Some(Value::Tables(tables)) = self.take(name) { tables } else { Vec::new() }
    }

    fn raw(&mut self, name: &str) -> Vec<RawTable> {
        if let Some(Value::Raw(tables)) = self.take(name) { tables } else { Vec::new() }
    }
}

struct Reader {
    /// The length of the byte order mark before the parsed text, in bytes.
    mark: usize,
    mistakes: Vec<Diagnostic<Span>>,
}

impl Reader {
    fn place(&self, range: std::ops::Range<usize>) -> Span {
        place(range, self.mark)
    }

    fn wrong(&mut self, place: Span, message: impl Into<String>) {
        self.mistakes.push(Diagnostic::new(Code::InvalidSetting, place, message));
    }

    /// Parses the table `path`, which is empty for the file itself.
    fn table(&mut self, path: &str, place: Span, table: &DeTable<'_>, keys: &'static [Key]) -> Fields {
        let mut fields = Vec::new();
        for (name, value) in table.iter() {
            let known = keys.iter().find(|key| key.name == name.get_ref().as_ref());
            match known {
                Some(key) => fields.extend(self.value(&join(path, key.name), key.kind, value).map(|it| (key.name, it))),
                None => self.unknown(path, name, keys),
            }
        }
        for key in keys.iter().filter(|key| key.required && !table.iter().any(|(name, _)| name.get_ref() == key.name)) {
            let message = format!("`{path}` needs `{}`: {}", key.name, key.kind.words());
            self.wrong(place, message);
        }
        Fields(fields)
    }

    fn unknown(&mut self, path: &str, name: &Spanned<std::borrow::Cow<'_, str>>, keys: &'static [Key]) {
        let place = self.place(name.span());
        let name = name.get_ref();
        let table = if path.is_empty() { "rx.toml".to_owned() } else { format!("`{path}`") };
        let mistake = Diagnostic::new(Code::UnknownSetting, place, format!("{table} has no key `{name}`"));
        let mistake = match nearest(name, keys.iter().map(|key| key.name)) {
            Some(near) => mistake.with_help(format!("did you mean `{near}`?")).with_fix(rename(near, place)),
            None => {
                let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
                mistake.with_note(format!("its keys are {}", names.join(", ")))
            }
        };
        self.mistakes.push(mistake);
    }

    /// Parses a value of the given kind.
    fn value(&mut self, path: &str, kind: Kind, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let place = self.place(value.span());
        match (kind, value.get_ref()) {
            (Kind::Bool, DeValue::Boolean(value)) => Some(Value::Bool(*value)),
            (Kind::Patterns, DeValue::Array(items)) => {
                Some(Value::Patterns(items.iter().filter_map(|item| self.pattern(path, item)).collect()))
            }
            (Kind::Severities, DeValue::Table(table)) => {
                let levels = table.iter().filter_map(|(selector, level)| self.level(path, selector, level));
                Some(Value::Severities(Levels(levels.collect())))
            }
            (Kind::Version, DeValue::String(version)) => match version.parse() {
                Ok(version) => Some(Value::Version(version)),
                Err(error) => {
                    self.wrong(place, format!("`{path}`: {error}"));
                    None
                }
            },
            (Kind::Paths, DeValue::Array(items)) => {
                Some(Value::Paths(items.iter().filter_map(|item| self.path(path, "strings", item)).collect()))
            }
            (Kind::NamedPaths, DeValue::Table(table)) => {
                let one = |(name, item): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                    let name = name.get_ref().to_string();
                    Some((name.clone(), self.path(&join(path, &name), "a string", item)?))
                };
                Some(Value::NamedPaths(table.iter().filter_map(one).collect()))
            }
            (Kind::Natural, DeValue::Integer(_)) => self.natural(path, value).map(Value::Natural),
            (Kind::NamedNaturals, DeValue::Table(table)) => {
                let one = |(name, item): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                    let name = name.get_ref().to_string();
                    Some((name.clone(), self.natural(&join(path, &name), item)?))
                };
                Some(Value::NamedNaturals(table.iter().filter_map(one).collect()))
            }
            (Kind::Word(words), DeValue::String(word)) => self.word(path, place, word, words).map(Value::Word),
            (Kind::Table(keys), DeValue::Table(table)) => Some(Value::Table(self.table(path, place, table, keys))),
            (Kind::Tables(keys), DeValue::Array(items)) => {
                let tables = self.tables(path, kind, items);
                Some(Value::Tables(tables.map(|(place, table)| self.table(path, place, table, keys)).collect()))
            }
            (Kind::RawTables, DeValue::Array(items)) => {
                let tables = self.tables(path, kind, items);
                Some(Value::Raw(tables.map(|(place, table)| RawTable::new(place, table, self.mark)).collect()))
            }
            (kind, value) => {
                self.mistyped(place, path, kind.words(), value);
                None
            }
        }
    }

    fn path(&mut self, path: &str, takes: &str, item: &Spanned<DeValue<'_>>) -> Option<PathBuf> {
        let place = self.place(item.span());
        match item.get_ref() {
            DeValue::String(text) if text.is_empty() => {
                self.wrong(place, format!("`{path}`: a path has at least one character"));
                None
            }
            DeValue::String(text) => Some(PathBuf::from(text.as_ref())),
            value => {
                self.mistyped(place, path, takes, value);
                None
            }
        }
    }

    fn natural(&mut self, path: &str, item: &Spanned<DeValue<'_>>) -> Option<i64> {
        let place = self.place(item.span());
        let DeValue::Integer(digits) = item.get_ref() else {
            self.mistyped(place, path, Kind::Natural.words(), item.get_ref());
            return None;
        };
        let number = i64::from_str_radix(digits.as_str(), digits.radix()).ok().filter(|number| *number >= 0);
        if number.is_none() {
            let digits = digits.as_str();
            self.wrong(place, format!("`{path}` takes {} that fits 64 bits; this is {digits}", Kind::Natural.words()));
        }
        number
    }

    fn word(&mut self, path: &str, place: Span, word: &str, words: &'static [&'static str]) -> Option<&'static str> {
        let known = words.iter().copied().find(|known| *known == word);
        if known.is_none() {
            let all: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            let message = format!("`{path}` takes {}; this is `\"{word}\"`", one_of(&all));
            let mistake = Diagnostic::new(Code::InvalidSetting, place, message);
            self.mistakes.push(with_nearest(mistake, word, words.iter().copied(), place));
        }
        known
    }

    fn mistyped(&mut self, place: Span, path: &str, takes: &str, value: &DeValue<'_>) {
        self.wrong(place, format!("`{path}` takes {takes}; this is {}", words(value)));
    }

    /// Returns the items that are tables.
    fn tables<'v, 't>(
        &mut self,
        path: &str,
        kind: Kind,
        items: &'v [Spanned<DeValue<'t>>],
    ) -> std::vec::IntoIter<(Span, &'v DeTable<'t>)> {
        let mut tables = Vec::new();
        for item in items {
            let place = self.place(item.span());
            match item.get_ref() {
                DeValue::Table(table) => tables.push((place, table)),
                value => self.mistyped(place, path, kind.words(), value),
            }
        }
        tables.into_iter()
    }

    fn pattern(&mut self, path: &str, item: &Spanned<DeValue<'_>>) -> Option<FilePattern> {
        let place = self.place(item.span());
        let DeValue::String(text) = item.get_ref() else {
            self.mistyped(place, path, "strings", item.get_ref());
            return None;
        };
        match FilePattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.wrong(place, format!("`{text}` is no pattern: {} (at character {})", error.msg, error.pos + 1));
                None
            }
        }
    }

    fn level(
        &mut self,
        path: &str,
        selector: &Spanned<std::borrow::Cow<'_, str>>,
        level: &Spanned<DeValue<'_>>,
    ) -> Option<(Selector, Level)> {
        let named = match selector.get_ref().parse::<Selector>() {
            Ok(selector) => Some(selector),
            Err(error) => {
                let place = self.place(selector.span());
                let mistake = Diagnostic::new(Code::InvalidSetting, place, error.message);
                self.mistakes.push(match error.near {
                    Some(near) => mistake.with_help(format!("did you mean `{near}`?")).with_fix(rename(&near, place)),
                    None => mistake,
                });
                None
            }
        };
        let place = self.place(level.span());
        let takes = "`\"error\"`, `\"warning\"`, `\"info\"`, `\"hint\"` or `\"off\"`";
        let level = match level.get_ref() {
            DeValue::String(word) => match Level::of_word(word) {
                Some(level) => Some(level),
                None => {
                    let mistake = format!("`{}` takes {takes}; this is `\"{word}\"`", join(path, selector.get_ref()));
                    let mistake = Diagnostic::new(Code::InvalidSetting, place, mistake);
                    self.mistakes.push(with_nearest(mistake, word, Level::WORDS, place));
                    None
                }
            },
            value => {
                self.mistyped(place, &join(path, selector.get_ref()), takes, value);
                None
            }
        };
        named.zip(level)
    }
}

/// Converts a range of the parsed text, which begins `mark` bytes into the file, to a span.
pub(crate) fn place(range: std::ops::Range<usize>, mark: usize) -> Span {
    let at = |offset: usize| u32::try_from(offset + mark).unwrap_or(u32::MAX);
    Span::new(at(range.start), at(range.end))
}

/// Adds the nearest valid word to a mistake.
fn with_nearest(
    mistake: Diagnostic<Span>,
    word: &str,
    words: impl IntoIterator<Item = &'static str>,
    place: Span,
) -> Diagnostic<Span> {
    match nearest(word, words) {
        Some(near) => {
            mistake.with_help(format!("did you mean `{near}`?")).with_fix(rename(&format!("\"{near}\""), place))
        }
        None => mistake,
    }
}

/// Formats `a, b or c`.
fn one_of(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.join(""),
    }
}

fn rename(to: &str, place: Span) -> Fix<Span> {
    Fix { title: format!("write `{}`", to.trim_matches('"')), edits: vec![(place, to.to_owned())], safe: true }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn words(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
