//! The handlers that tower-lsp calls. They do no work and keep no state but the client's folders. Each handler sends an
//! [`Event`] to the main loop before its first `await`, which preserves the client's order, and then awaits the
//! response, if there is one.

use crate::commands::{self, Command};
use crate::event::Event;
use crate::folders::{Folders, MAX_SYMBOLS};
use crate::lsp::{Uri, actions, completions, edits, from_proto, hints, lenses, notebooks, semantic, to_proto};
use crate::parent;
use crate::pull::Pull;
use crate::reads::{Failure, Read, Subject};
use crate::run::{self, stage};
use rx_base::Span;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::mpsc::Sender;
use tokio::sync::oneshot;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::{LanguageServer, ls_types as proto};

/// The handlers, with the sender of their events.
pub struct Backend {
    events: Sender<Event>,
    folders: Folders,
}

impl Backend {
    /// Creates handlers that send to `events`.
    pub fn new(events: Sender<Event>) -> Backend {
        Backend { events, folders: Folders::default() }
    }

    fn send(&self, event: Event) {
        // The main loop is gone only when the server ends. A request then finds that its reply was dropped.
        let _ = self.events.send(event);
    }

    /// Sends the client's settings to the main loop.
    fn configure(&self, settings: &serde_json::Value) {
        from_proto::configuration(settings).into_iter().for_each(|event| self.send(event));
    }

    /// Runs `ask` on a document in a worker and returns its result.
    async fn read<T: Default + Send + 'static>(
        &self,
        uri: Uri,
        ask: impl Fn(&Subject<'_>) -> T + Send + 'static,
    ) -> Result<T> {
        let (read, receiver) = Read::new(uri, ask);
        self.send(Event::Read(read));
        answer(receiver).await
    }

    /// Handles `window/workDoneProgress/cancel`, which tower-lsp does not handle.
    pub async fn cancel_progress(&self, params: proto::WorkDoneProgressCancelParams) {
        self.send(Event::CancelProgress(params.token));
    }
}

/// Awaits the response of the main loop.
async fn answer<T, Gone>(
    reply: impl Future<Output = std::result::Result<std::result::Result<T, Failure>, Gone>>,
) -> Result<T> {
    let answer = reply.await.unwrap_or(Err("the server is shutting down"));
    answer.map_err(|why| error(ErrorCode::InternalError, why))
}

fn error(code: ErrorCode, why: &'static str) -> Error {
    Error { code, message: Cow::Borrowed(why), data: None }
}

/// Returns the error for a valid request that cannot be fulfilled.
fn refused(why: String) -> Error {
    /// The protocol's error code `RequestFailed`.
    const REQUEST_FAILED: i64 = -32803;
    Error { code: ErrorCode::ServerError(REQUEST_FAILED), message: Cow::Owned(why), data: None }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: proto::InitializeParams) -> Result<proto::InitializeResult> {
        let profile = from_proto::profile(&params.capabilities);
        self.send(Event::Configure(profile));
        self.folders.set(&from_proto::folders(&params), profile.encoding);
        self.configure(&params.initialization_options.unwrap_or_default());
        params.process_id.into_iter().for_each(|id| parent::watch(id, &self.events));
        Ok(to_proto::initialize_result(&profile))
    }

    async fn shutdown(&self) -> Result<()> {
        self.send(Event::CancelRuns);
        Ok(())
    }

    async fn did_change_configuration(&self, params: proto::DidChangeConfigurationParams) {
        match params.settings.is_null() {
            true => self.send(Event::PullSettings),
            false => self.configure(&params.settings),
        }
    }

    async fn initialized(&self, _: proto::InitializedParams) {
        self.send(Event::Initialized);
    }

    async fn did_change_workspace_folders(&self, params: proto::DidChangeWorkspaceFoldersParams) {
        let uris = |folders: Vec<proto::WorkspaceFolder>| folders.into_iter().map(|it| it.uri).collect::<Vec<_>>();
        self.folders.change(&uris(params.event.added), &uris(params.event.removed));
    }

    async fn did_change_watched_files(&self, params: proto::DidChangeWatchedFilesParams) {
        if params.changes.iter().any(|change| from_proto::is_settings_file(&change.uri)) {
            self.send(Event::SettingsFiles);
        }
    }

    async fn did_open(&self, params: proto::DidOpenTextDocumentParams) {
        let proto::TextDocumentItem { uri, language_id, version, text } = params.text_document;
        self.send(Event::Open { uri, language: language_id, version, text });
    }

    async fn did_change(&self, params: proto::DidChangeTextDocumentParams) {
        let proto::VersionedTextDocumentIdentifier { uri, version } = params.text_document;
        let changes = params.content_changes.into_iter().map(from_proto::change).collect();
        self.send(Event::Change { uri, version, changes });
    }

    async fn did_close(&self, params: proto::DidCloseTextDocumentParams) {
        self.send(Event::Close { uri: params.text_document.uri });
    }

    async fn notebook_did_open(&self, params: proto::DidOpenNotebookDocumentParams) {
        self.send(notebooks::opened(params));
    }

    async fn notebook_did_change(&self, params: proto::DidChangeNotebookDocumentParams) {
        self.send(notebooks::changed(params));
    }

    async fn notebook_did_close(&self, params: proto::DidCloseNotebookDocumentParams) {
        self.send(Event::CloseNotebook { uri: params.notebook_document.uri });
    }

    async fn diagnostic(
        &self,
        params: proto::DocumentDiagnosticParams,
    ) -> Result<proto::DocumentDiagnosticReportResult> {
        let (reply, receiver) = oneshot::channel();
        let previous = params.previous_result_id;
        self.send(Event::Pull(Pull { uri: params.text_document.uri, previous, reply }));
        answer(receiver).await.map(to_proto::report)
    }

    async fn hover(&self, params: proto::HoverParams) -> Result<Option<proto::Hover>> {
        let proto::TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
        let at = from_proto::point(position);
        let hover = move |subject: &Subject<'_>| {
            let found = rx_ide::hover(&subject.view, subject.offset(at));
            found.map(|hover| to_proto::hover(subject, hover))
        };
        self.read(text_document.uri, hover).await
    }

    async fn document_link(&self, params: proto::DocumentLinkParams) -> Result<Option<Vec<proto::DocumentLink>>> {
        let links = |subject: &Subject<'_>| to_proto::links(subject, rx_ide::document_links(&subject.view));
        self.read(params.text_document.uri, links).await.map(Some)
    }

    // Requests for reading and writing at a position.

    async fn code_action(&self, params: proto::CodeActionParams) -> Result<Option<proto::CodeActionResponse>> {
        let (range, context) = (actions::points(params.range), params.context);
        let ask = move |subject: &Subject<'_>| actions::actions(subject, range, &context);
        self.read(params.text_document.uri, ask).await.map(Some)
    }

    async fn code_action_resolve(&self, mut action: proto::CodeAction) -> Result<proto::CodeAction> {
        if let Some(late) = actions::late(&action) {
            let ask = {
                let late = late.clone();
                move |subject: &Subject<'_>| Some(actions::resolved(subject, &late))
            };
            action.edit = self.read(late.uri, ask).await?;
        }
        Ok(action)
    }

    async fn inlay_hint(&self, params: proto::InlayHintParams) -> Result<Option<Vec<proto::InlayHint>>> {
        let range = actions::points(params.range);
        self.read(params.text_document.uri, move |subject| hints::hints(subject, range)).await.map(Some)
    }

    async fn inlay_hint_resolve(&self, hint: proto::InlayHint) -> Result<proto::InlayHint> {
        Ok(hints::resolved(hint))
    }

    async fn completion(&self, params: proto::CompletionParams) -> Result<Option<proto::CompletionResponse>> {
        let proto::TextDocumentPositionParams { text_document, position } = params.text_document_position;
        let at = from_proto::point(position);
        let ask = move |subject: &Subject<'_>| Some(completions::completions(subject, at).into());
        self.read(text_document.uri, ask).await
    }

    async fn completion_resolve(&self, mut item: proto::CompletionItem) -> Result<proto::CompletionItem> {
        if let Some(late) = completions::late_of(&item) {
            let ask = {
                let late = late.clone();
                move |subject: &Subject<'_>| completions::doc(subject, &late)
            };
            item.documentation = self.read(late.uri, ask).await?;
        }
        Ok(item)
    }

    async fn signature_help(&self, params: proto::SignatureHelpParams) -> Result<Option<proto::SignatureHelp>> {
        let proto::TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
        let at = from_proto::point(position);
        self.read(text_document.uri, move |subject| completions::signature_help(subject, at)).await
    }

    async fn formatting(&self, params: proto::DocumentFormattingParams) -> Result<Option<Vec<proto::TextEdit>>> {
        let ask = |subject: &Subject<'_>| edits::text_edits(subject, rx_ide::format(subject.view.document(), None));
        self.read(params.text_document.uri, ask).await.map(Some)
    }

    async fn range_formatting(
        &self,
        params: proto::DocumentRangeFormattingParams,
    ) -> Result<Option<Vec<proto::TextEdit>>> {
        let (from, to) = actions::points(params.range);
        let ask = move |subject: &Subject<'_>| {
            let range = subject.span(from, to).range();
            edits::text_edits(subject, rx_ide::format(subject.view.document(), Some(range)))
        };
        self.read(params.text_document.uri, ask).await.map(Some)
    }

    async fn on_type_formatting(
        &self,
        params: proto::DocumentOnTypeFormattingParams,
    ) -> Result<Option<Vec<proto::TextEdit>>> {
        let (uri, at) = from_proto::place(params.text_document_position);
        let typed = params.ch.chars().next();
        let ask = move |subject: &Subject<'_>| {
            let Some(typed) = typed else { return Vec::new() };
            let edits = rx_ide::format_typed(subject.view.document(), subject.offset(at), typed);
            edits::text_edits(subject, edits)
        };
        self.read(uri, ask).await.map(Some)
    }

    async fn code_lens(&self, params: proto::CodeLensParams) -> Result<Option<Vec<proto::CodeLens>>> {
        let ask = |subject: &Subject<'_>| {
            let functions = subject.view.workspace().functions(subject.view.file());
            lenses::lenses(subject, &functions)
        };
        self.read(params.text_document.uri, ask).await.map(Some)
    }

    async fn code_lens_resolve(&self, mut lens: proto::CodeLens) -> Result<proto::CodeLens> {
        if let Some(late) = lenses::late(&lens) {
            let ask = {
                let late = late.clone();
                move |subject: &Subject<'_>| Some(lenses::resolved(subject, &late))
            };
            lens.command = self.read(late.uri, ask).await?;
        }
        Ok(lens)
    }

    async fn execute_command(&self, params: proto::ExecuteCommandParams) -> Result<Option<proto::LSPAny>> {
        if let Some(command) = Command::read(&params) {
            let command = command.map_err(|why| error(ErrorCode::InvalidParams, why))?;
            let ask = {
                let command = command.clone();
                move |subject: &Subject<'_>| commands::outcome(subject, &command)
            };
            let (answer, edit) = self.read(command.uri().clone(), ask).await?;
            edit.into_iter().for_each(|edit| self.send(Event::ApplyEdit(edit)));
            return Ok(Some(answer));
        }
        if params.command == run::STOP {
            let uri = from_proto::stopped(params.arguments).map_err(|why| error(ErrorCode::InvalidParams, why))?;
            self.send(Event::StopRun(uri));
            return Ok(None);
        }
        if params.command == stage::COMMAND {
            let (reply, receiver) = oneshot::channel();
            let order = from_proto::stage_order(params.arguments, reply);
            self.send(Event::Stage(order.map_err(|why| error(ErrorCode::InvalidParams, why))?));
            let shown = answer(async { receiver.await.map(Ok) }).await?;
            return Ok(Some(shown.as_ref().map_or(proto::LSPAny::Null, to_proto::stage)));
        }
        let (reply, receiver) = oneshot::channel();
        let order = from_proto::order(params, reply).map_err(|why| error(ErrorCode::InvalidParams, why))?;
        self.send(Event::Run(order));
        let outcome = answer(async { receiver.await.map(Ok) }).await?;
        Ok(Some(to_proto::run_result(&outcome)))
    }

    // Requests for names and structure.

    async fn goto_definition(
        &self,
        params: proto::GotoDefinitionParams,
    ) -> Result<Option<proto::GotoDefinitionResponse>> {
        let (uri, at) = from_proto::place(params.text_document_position_params);
        let definition = move |subject: &Subject<'_>| {
            let found = rx_ide::definition(&subject.view, subject.offset(at))?;
            Some(proto::GotoDefinitionResponse::Array(to_proto::locations(subject, found.targets)))
        };
        self.read(uri, definition).await
    }

    async fn references(&self, params: proto::ReferenceParams) -> Result<Option<Vec<proto::Location>>> {
        let (uri, at) = from_proto::place(params.text_document_position);
        let declarations = params.context.include_declaration;
        let references = move |subject: &Subject<'_>| {
            let found = rx_ide::references(&subject.view, subject.offset(at), declarations);
            to_proto::locations(subject, found)
        };
        self.read(uri, references).await.map(Some)
    }

    async fn document_highlight(
        &self,
        params: proto::DocumentHighlightParams,
    ) -> Result<Option<Vec<proto::DocumentHighlight>>> {
        let (uri, at) = from_proto::place(params.text_document_position_params);
        let highlights = move |subject: &Subject<'_>| {
            to_proto::highlights(subject, rx_ide::highlights(&subject.view, subject.offset(at)))
        };
        self.read(uri, highlights).await.map(Some)
    }

    async fn prepare_rename(
        &self,
        params: proto::TextDocumentPositionParams,
    ) -> Result<Option<proto::PrepareRenameResponse>> {
        let (uri, at) = from_proto::place(params);
        let prepare = move |subject: &Subject<'_>| {
            let found = rx_ide::prepare_rename(&subject.view, subject.offset(at));
            let found = found.map(|(span, name)| proto::PrepareRenameResponse::RangeWithPlaceholder {
                range: subject.range(span),
                placeholder: name.to_string(),
            });
            Some(found)
        };
        self.read(uri, prepare).await?.transpose().map_err(refused)
    }

    async fn rename(&self, params: proto::RenameParams) -> Result<Option<proto::WorkspaceEdit>> {
        let (uri, at) = from_proto::place(params.text_document_position);
        let new = params.new_name;
        let rename = move |subject: &Subject<'_>| {
            let found = rx_ide::rename(&subject.view, subject.offset(at), &new);
            Some(found.map(|found| edits::workspace_edit(subject, found)))
        };
        self.read(uri, rename).await?.transpose().map_err(refused)
    }

    async fn document_symbol(
        &self,
        params: proto::DocumentSymbolParams,
    ) -> Result<Option<proto::DocumentSymbolResponse>> {
        let symbols = |subject: &Subject<'_>| {
            let mut found = rx_ide::outline(&subject.view);
            found.retain(|part| subject.holds(part.selection));
            Some(to_proto::document_symbols(subject, found))
        };
        self.read(params.text_document.uri, symbols).await
    }

    async fn symbol(&self, params: proto::WorkspaceSymbolParams) -> Result<Option<proto::WorkspaceSymbolResponse>> {
        let all = |subject: &Subject<'_>| {
            let symbols = to_proto::symbols_at(&subject.view, &|span: Span| subject.location(span));
            vec![(subject.uri.clone(), symbols)]
        };
        let (read, receiver) = Read::of_all(all);
        self.send(Event::Read(read));
        let (open, symbols): (HashSet<Uri>, Vec<Vec<_>>) = answer(receiver).await?.into_iter().unzip();
        let fits = |symbol: &proto::SymbolInformation| to_proto::has_letters(&symbol.name, &params.query);
        let mut found: Vec<_> = symbols.into_iter().flatten().filter(fits).collect();
        found.extend(self.folders.symbols(open, params.query).await);
        found.truncate(MAX_SYMBOLS);
        Ok(Some(proto::WorkspaceSymbolResponse::Flat(found)))
    }

    async fn folding_range(&self, params: proto::FoldingRangeParams) -> Result<Option<Vec<proto::FoldingRange>>> {
        let folds = |subject: &Subject<'_>| to_proto::folds(subject, &rx_ide::folds(&subject.view));
        self.read(params.text_document.uri, folds).await.map(Some)
    }

    async fn selection_range(&self, params: proto::SelectionRangeParams) -> Result<Option<Vec<proto::SelectionRange>>> {
        let places: Vec<_> = params.positions.into_iter().map(from_proto::point).collect();
        let selections = move |subject: &Subject<'_>| {
            let around = |at| rx_ide::selections(&subject.view, subject.offset(at));
            Some(places.iter().map(|at| to_proto::selection(subject, &around(*at))).collect())
        };
        self.read(params.text_document.uri, selections).await
    }

    async fn prepare_call_hierarchy(
        &self,
        params: proto::CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<proto::CallHierarchyItem>>> {
        let (uri, at) = from_proto::place(params.text_document_position_params);
        let functions = move |subject: &Subject<'_>| {
            let found = rx_ide::function_at(&subject.view, subject.offset(at));
            let items: Vec<_> = found.into_iter().map(|function| to_proto::call_item(subject, function)).collect();
            (!items.is_empty()).then_some(items)
        };
        self.read(uri, functions).await
    }

    async fn incoming_calls(
        &self,
        params: proto::CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<proto::CallHierarchyIncomingCall>>> {
        let at = from_proto::point(params.item.selection_range.start);
        let calls = move |subject: &Subject<'_>| {
            to_proto::incoming(subject, rx_ide::incoming(&subject.view, subject.offset(at)))
        };
        self.read(params.item.uri, calls).await.map(Some)
    }

    async fn outgoing_calls(
        &self,
        params: proto::CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<proto::CallHierarchyOutgoingCall>>> {
        let at = from_proto::point(params.item.selection_range.start);
        let calls = move |subject: &Subject<'_>| {
            to_proto::outgoing(subject, rx_ide::outgoing(&subject.view, subject.offset(at)))
        };
        self.read(params.item.uri, calls).await.map(Some)
    }

    async fn semantic_tokens_full(
        &self,
        params: proto::SemanticTokensParams,
    ) -> Result<Option<proto::SemanticTokensResult>> {
        let tokens = |subject: &Subject<'_>| Some(semantic::full(subject).into());
        self.read(params.text_document.uri, tokens).await
    }

    async fn semantic_tokens_full_delta(
        &self,
        params: proto::SemanticTokensDeltaParams,
    ) -> Result<Option<proto::SemanticTokensFullDeltaResult>> {
        let since = params.previous_result_id;
        let delta = move |subject: &Subject<'_>| Some(semantic::delta(subject, &since));
        self.read(params.text_document.uri, delta).await
    }

    async fn semantic_tokens_range(
        &self,
        params: proto::SemanticTokensRangeParams,
    ) -> Result<Option<proto::SemanticTokensRangeResult>> {
        let (start, end) = (from_proto::point(params.range.start), from_proto::point(params.range.end));
        let tokens = move |subject: &Subject<'_>| Some(semantic::range(subject, subject.span(start, end)).into());
        self.read(params.text_document.uri, tokens).await
    }
}
