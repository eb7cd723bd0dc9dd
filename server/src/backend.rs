//! The handlers tower-lsp calls. They hold no state and do no work: each turns its message into an [`Event`] before its
//! first `await`, which keeps the client's order, and waits for the answer if there is one.

use crate::event::Event;
use crate::lsp::{from_proto, to_proto};
use crate::parent;
use crate::reads::{Failure, Question, Read};
use std::borrow::Cow;
use std::sync::mpsc::Sender;
use tokio::sync::oneshot;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::{LanguageServer, ls_types as proto};

/// The handlers, and where they send their events.
pub struct Backend {
    events: Sender<Event>,
}

impl Backend {
    /// Handlers that send to `events`.
    pub fn new(events: Sender<Event>) -> Backend {
        Backend { events }
    }

    fn send(&self, event: Event) {
        // The main loop is gone only when the server ends; a request then finds its reply dropped.
        let _ = self.events.send(event);
    }

    /// What the user set in the editor.
    fn configure(&self, settings: &serde_json::Value) {
        self.send(Event::Settings(from_proto::settings(settings)));
        let (choice, unknown) = from_proto::choice(settings);
        self.send(Event::Choose(choice, unknown));
    }

    /// `window/workDoneProgress/cancel`, which tower-lsp leaves to its users.
    pub async fn cancel_progress(&self, params: proto::WorkDoneProgressCancelParams) {
        self.send(Event::CancelProgress(params.token));
    }
}

/// Waits for the main loop's answer.
async fn answer<T, Gone>(
    reply: impl Future<Output = std::result::Result<std::result::Result<T, Failure>, Gone>>,
) -> Result<T> {
    let answer = reply.await.unwrap_or(Err("the server is shutting down"));
    answer.map_err(|why| error(ErrorCode::InternalError, why))
}

fn error(code: ErrorCode, why: &'static str) -> Error {
    Error { code, message: Cow::Borrowed(why), data: None }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: proto::InitializeParams) -> Result<proto::InitializeResult> {
        let profile = from_proto::profile(&params.capabilities);
        self.send(Event::Configure(profile));
        self.configure(&params.initialization_options.unwrap_or_default());
        params.process_id.into_iter().for_each(|id| parent::watch(id, &self.events));
        Ok(to_proto::initialize_result(&profile))
    }

    async fn shutdown(&self) -> Result<()> {
        self.send(Event::CancelRuns);
        Ok(())
    }

    async fn did_change_configuration(&self, params: proto::DidChangeConfigurationParams) {
        // Clients that push nothing are asked for nothing: what `initialize` said stays.
        if !params.settings.is_null() {
            self.configure(&params.settings);
        }
    }

    async fn initialized(&self, _: proto::InitializedParams) {
        self.send(Event::Initialized);
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

    async fn hover(&self, params: proto::HoverParams) -> Result<Option<proto::Hover>> {
        let proto::TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
        let (reply, receiver) = oneshot::channel();
        let question = Question::Hover(from_proto::point(position), reply);
        self.send(Event::Read(Read { uri: text_document.uri, question }));
        answer(receiver).await
    }

    async fn code_lens(&self, params: proto::CodeLensParams) -> Result<Option<Vec<proto::CodeLens>>> {
        let (reply, receiver) = oneshot::channel();
        self.send(Event::Read(Read { uri: params.text_document.uri, question: Question::CodeLens(reply) }));
        answer(receiver).await.map(Some)
    }

    async fn execute_command(&self, params: proto::ExecuteCommandParams) -> Result<Option<proto::LSPAny>> {
        let (reply, receiver) = oneshot::channel();
        let order = from_proto::order(params, reply).map_err(|why| error(ErrorCode::InvalidParams, why))?;
        self.send(Event::Run(order));
        let outcome = answer(async { receiver.await.map(Ok) }).await?;
        Ok(Some(to_proto::run_result(&outcome)))
    }
}
