//! Conversions from the protocol's types to the server's.

use super::{Change, Point, Preferences, Profile, Uri};
use crate::commands;
use crate::event::Event;
use crate::run::{COMMAND, Order, Outcome, Settings, gpu, stage};
use rx_db::{Encoding, FileKind};
use rx_settings::{Choice, FILE_NAME, Selector};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;
use tower_lsp::ls_types::{
    ClientCapabilities, DiagnosticTag, ExecuteCommandParams, InitializeParams, MarkupKind, Position,
    PositionEncodingKind, TextDocumentContentChangeEvent, TextDocumentPositionParams,
};

/// Extracts the capabilities that the server uses.
pub fn profile(capabilities: &ClientCapabilities) -> Profile {
    let document = capabilities.text_document.as_ref();
    let diagnostics = document.and_then(|document| document.publish_diagnostics.as_ref());
    let tags = diagnostics.and_then(|diagnostics| diagnostics.tag_support.as_ref());
    let hover = document.and_then(|document| document.hover.as_ref());
    let formats = hover.and_then(|hover| hover.content_format.as_ref());
    let window = capabilities.window.as_ref();
    let workspace = capabilities.workspace.as_ref();
    let watched = workspace.and_then(|workspace| workspace.did_change_watched_files.as_ref());
    let symbols = document.and_then(|document| document.document_symbol.as_ref());
    let rename = document.and_then(|document| document.rename.as_ref());
    let folding = document.and_then(|document| document.folding_range.as_ref());
    let says = |flag: Option<bool>| flag == Some(true);
    Profile {
        encoding: encoding(capabilities),
        related_information: says(diagnostics.and_then(|it| it.related_information)),
        code_links: says(diagnostics.and_then(|it| it.code_description_support)),
        data: says(diagnostics.and_then(|it| it.data_support)),
        unnecessary: tags.is_some_and(|tags| tags.value_set.contains(&DiagnosticTag::UNNECESSARY)),
        markdown: formats.is_some_and(|formats| formats.contains(&MarkupKind::Markdown)),
        pulls: document.is_some_and(|document| document.diagnostic.is_some()),
        refreshes: says(workspace.and_then(|it| it.diagnostics.as_ref()?.refresh_support)),
        refreshes_lenses: says(workspace.and_then(|it| it.code_lens.as_ref()?.refresh_support)),
        settings: says(workspace.and_then(|it| it.configuration)),
        tells_settings: says(workspace.and_then(|it| it.did_change_configuration.as_ref()?.dynamic_registration)),
        watches: says(watched.and_then(|watched| watched.dynamic_registration)),
        symbol_trees: says(symbols.and_then(|it| it.hierarchical_document_symbol_support)),
        prepares_renames: says(rename.and_then(|it| it.prepare_support)),
        folds_lines: says(folding.and_then(|it| it.line_folding_only)),
        notebooks: capabilities.notebook_document.is_some(),
        progress: says(window.and_then(|window| window.work_done_progress)),
        writing: super::writing::taken(capabilities),
    }
}

/// Chooses the cheapest position encoding that the client supports. Every client supports UTF-16.
fn encoding(capabilities: &ClientCapabilities) -> Encoding {
    let general = capabilities.general.as_ref();
    let offered = general.and_then(|general| general.position_encodings.as_deref()).unwrap_or_default();
    if offered.contains(&PositionEncodingKind::UTF8) {
        Encoding::Utf8
    } else if offered.contains(&PositionEncodingKind::UTF32) {
        Encoding::Utf32
    } else {
        Encoding::Utf16
    }
}

/// Converts a position.
pub fn point(position: Position) -> Point {
    Point { line: position.line, column: position.character }
}

/// Converts a document identifier with a position.
pub fn place(params: TextDocumentPositionParams) -> (Uri, Point) {
    (params.text_document.uri, point(params.position))
}

/// Converts one change of a `textDocument/didChange`.
pub fn change(change: TextDocumentContentChangeEvent) -> Change {
    Change { range: change.range.map(|range| (point(range.start), point(range.end))), text: change.text }
}

/// Returns whether a document is pure Relax text or Python with Relax in it. The language identifier decides; if it is
/// unknown, the file extension does.
pub fn file_kind(language: &str, uri: &Uri) -> FileKind {
    let path = uri.path().as_str();
    match language {
        "python" => FileKind::Python,
        "rx" | "relax" | "tvmscript" => FileKind::Rx,
        _ if path.ends_with(".py") || path.ends_with(".pyi") => FileKind::Python,
        _ => FileKind::Rx,
    }
}

/// Returns the path of a document on disk; `None` if it is not a `file:` URI.
pub fn path(uri: &Uri) -> Option<PathBuf> {
    let file = uri.as_str().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    uri.to_file_path().filter(|_| file).map(std::borrow::Cow::into_owned)
}

/// Returns the name of a document for messages: its path, or for example `Untitled-1` for a document that was never
/// saved.
pub fn path_or_name(uri: &Uri) -> String {
    match path(uri) {
        Some(path) => path.to_string_lossy().into_owned(),
        None => uri.path().decode().to_string_lossy().into_owned(),
    }
}

/// Whether the file's name is `rx.toml`.
pub fn is_settings_file(uri: &Uri) -> bool {
    path(uri).is_some_and(|path| path.file_name().is_some_and(|name| name == FILE_NAME))
}

/// Returns the client's workspace folders. Older clients have at most one, in `rootUri`.
#[allow(deprecated, reason = "what older clients say")]
pub fn folders(params: &InitializeParams) -> Vec<Uri> {
    match &params.workspace_folders {
        Some(folders) => folders.iter().map(|folder| folder.uri.clone()).collect(),
        None => params.root_uri.iter().cloned().collect(),
    }
}

/// Returns the folder that contains a document.
pub fn folder(uri: &Uri) -> Option<PathBuf> {
    path(uri)?.parent().map(PathBuf::from)
}

/// Parses the settings for runs, from `{"run": {…}}` or `{"rx": {"run": {…}}}`. A setting that is missing or invalid
/// gets its default.
pub fn settings(value: &Value) -> Settings {
    let run = value.get("rx").unwrap_or(value).get("run").unwrap_or(&Value::Null);
    let default = Settings::default();
    let seconds = run.get("timeoutSeconds").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    let program = run.get("program").and_then(Value::as_str).filter(|program| !program.is_empty());
    Settings {
        program: program.map(PathBuf::from),
        arguments: run.get("arguments").and_then(words).unwrap_or(default.arguments),
        limit: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(default.limit),
        values: run.get("values").and_then(Value::as_bool).unwrap_or(default.values),
        message: run.get("message").and_then(Value::as_bool).unwrap_or(default.message),
    }
}

/// Converts the client's settings to events.
pub fn configuration(value: &Value) -> [Event; 3] {
    let (choice, unknown) = choice(value);
    [Event::Settings(settings(value)), Event::Prefer(preferences(value)), Event::Choose(choice, unknown)]
}

/// Parses the display settings, from `{"inlayHints": {"shapes": …, "dtypes": …}, "run": {"gpu": …}}`, optionally inside
/// `rx`. By default all hints are shown, and GPU runs are offered if a driver is installed.
pub fn preferences(value: &Value) -> Preferences {
    let settings = value.get("rx").unwrap_or(value);
    let said = |group: &str, key: &str| settings.get(group).and_then(|group| group.get(key)).and_then(Value::as_bool);
    let wanted = |key: &str| said("inlayHints", key).unwrap_or(true);
    let hints = rx_ide::HintParts { shapes: wanted("shapes"), dtypes: wanted("dtypes") };
    Preferences { hints, gpu: said("run", "gpu").unwrap_or_else(gpu::has_driver) }
}

/// Parses the selected diagnostic codes, from `{"check": {"select": […], "ignore": […]}}`, optionally inside `rx`.
/// Returns them with the errors for invalid entries.
pub fn choice(value: &Value) -> (Choice, Vec<String>) {
    let check = value.get("rx").unwrap_or(value).get("check").unwrap_or(&Value::Null);
    let mut unknown = Vec::new();
    let mut selectors = |key: &str| -> Vec<Selector> {
        let words = check.get(key).and_then(words).unwrap_or_default();
        let read = words.iter().filter_map(|word| word.parse().map_err(|error| unknown.push(format!("{error}"))).ok());
        read.collect()
    };
    let choice = Choice { select: selectors("select"), ignore: selectors("ignore") };
    (choice, unknown)
}

/// Parses an array of strings.
fn words(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Parses the arguments of the command that shows a stage.
///
/// # Errors
/// The invalid argument: a sentence for the client's log.
pub fn stage_order(
    arguments: Vec<Value>,
    reply: oneshot::Sender<Option<stage::Shown>>,
) -> Result<stage::Order, &'static str> {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().unwrap_or_default();
    let uri = next().as_str().and_then(|uri| uri.parse().ok());
    let uri = uri.ok_or("rx.stage: the first argument is the URI of a document")?;
    let at = commands::point(next()).ok_or("rx.stage: the second argument is a position")?;
    let stage = next().as_str().and_then(stage::Stage::of_word);
    let stage = stage.ok_or("rx.stage: the third argument is \"passes\", \"tir\", \"cuda\", \"ptx\" or \"cpu\"")?;
    Ok(stage::Order { uri, at, stage, reply })
}

/// Parses the arguments of the command that stops runs: a document, or nothing for all documents.
///
/// # Errors
/// The invalid argument: a sentence for the client's log.
pub fn stopped(arguments: Vec<Value>) -> Result<Option<Uri>, &'static str> {
    match arguments.into_iter().next().unwrap_or_default() {
        Value::Null => Ok(None),
        Value::String(uri) => uri.parse::<Uri>().map(Some).map_err(|_| "rx.stop: the first argument is not a URI"),
        _ => Err("rx.stop: the first argument is the URI of a document"),
    }
}

/// Parses `workspace/executeCommand` with the arguments `[uri, function, arguments, module]`. Trailing arguments may be
/// missing, and each may be null.
///
/// # Errors
/// A sentence for the client's log.
pub fn order(params: ExecuteCommandParams, reply: oneshot::Sender<Outcome>) -> Result<Order, &'static str> {
    if params.command != COMMAND {
        return Err("rx-lsp has no such command");
    }
    let mut arguments = params.arguments.into_iter();
    let mut next = || arguments.next().unwrap_or_default();
    let uri = match next() {
        Value::Null => None,
        Value::String(uri) => Some(uri.parse().map_err(|_| "rx.run: the first argument is not a URI")?),
        _ => return Err("rx.run: the first argument is the URI of a document"),
    };
    let function = match next() {
        Value::Null => None,
        Value::String(function) => Some(function),
        _ => return Err("rx.run: the second argument is the name of a function"),
    };
    let arguments = match next() {
        Value::Null => Vec::new(),
        more => words(&more).ok_or("rx.run: the third argument is an array of strings")?,
    };
    let module = match next() {
        Value::Null => None,
        Value::String(module) => Some(module),
        _ => return Err("rx.run: the fourth argument is the name of a module"),
    };
    Ok(Order { uri, function, module, arguments, token: params.work_done_progress_params.work_done_token, reply })
}

#[cfg(test)]
mod tests {
    use super::{choice, file_kind, folder, path_or_name, profile, settings};
    use crate::lsp::{Profile, Uri};
    use crate::run::Settings;
    use rx_db::{Encoding, FileKind};
    use serde_json::json;

    #[test]
    fn the_cheapest_common_encoding_is_chosen() {
        let of = |encodings| {
            let capabilities = serde_json::from_value(json!({"general": {"positionEncodings": encodings}})).unwrap();
            profile(&capabilities).encoding
        };
        assert_eq!(of(json!(["utf-16", "utf-32", "utf-8"])), Encoding::Utf8);
        assert_eq!(of(json!(["utf-16", "utf-32"])), Encoding::Utf32);
        assert_eq!(of(json!(["utf-7"])), Encoding::Utf16);
    }

    #[test]
    fn client_without_capabilities_has_the_default_profile() {
        assert_eq!(profile(&Default::default()), Profile::default());
    }

    #[test]
    fn valid_parts_of_settings_are_used() {
        let run = json!({"program": "/bin/rxrun", "arguments": ["--dim", "n=4"], "timeoutSeconds": 2.5, "values": false, "message": false});
        let said = Settings {
            program: Some("/bin/rxrun".into()),
            arguments: vec!["--dim".into(), "n=4".into()],
            limit: std::time::Duration::from_millis(2500),
            values: false,
            message: false,
        };
        assert_eq!(settings(&json!({"run": run})), said);
        assert_eq!(settings(&json!({"rx": {"run": run}})), said);
        let strange = json!({"run": {"program": "", "arguments": [1], "timeoutSeconds": -1, "values": 0}});
        for strange in [strange, json!({"run": {"timeoutSeconds": 1e300}}), json!({"run": 1}), json!(null), json!([])] {
            assert_eq!(settings(&strange), Settings::default(), "{strange}");
        }
    }

    #[test]
    fn codes_are_chosen_as_on_the_command_line() {
        let (chosen, unknown) = choice(&json!({"rx": {"check": {"select": ["RX06"], "ignore": ["take", "RX0651"]}}}));
        assert_eq!((chosen.select.len(), chosen.ignore.len()), (1, 1));
        assert_eq!(unknown, ["no diagnostic is called `take`"]);
        assert_eq!(choice(&json!(null)), Default::default());
    }

    #[test]
    #[cfg(unix)]
    fn documents_have_names_with_and_without_files() {
        let uri = |uri: &str| uri.parse::<Uri>().unwrap();
        assert_eq!(path_or_name(&uri("file:///a%20b/net.rx")), "/a b/net.rx");
        assert_eq!(folder(&uri("file:///a%20b/net.rx")), Some("/a b".into()));
        assert_eq!(path_or_name(&uri("untitled:Untitled-1")), "Untitled-1");
        assert_eq!(folder(&uri("untitled:Untitled-1")), None);
    }

    #[test]
    fn the_language_counts_before_the_extension() {
        let kind = |language, uri: &str| file_kind(language, &uri.parse::<Uri>().unwrap());
        assert_eq!(kind("python", "file:///a"), FileKind::Python);
        assert_eq!(kind("", "file:///a.py"), FileKind::Python);
        assert_eq!(kind("rx", "file:///a.py"), FileKind::Rx);
        assert_eq!(kind("plaintext", "untitled:Untitled-1"), FileKind::Rx);
    }
}
