//! Messages that the main loop sends to the client without a request from it.

use crate::event::Event;
use crate::lsp::{Profile, ProgressToken, Uri, WorkspaceEdit, from_proto, to_proto};
use futures::executor::block_on;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower_lsp::Client;
use tower_lsp::ls_types::MessageType;

/// The sender of messages to the client. Sending blocks while the client does not read, and does nothing once the
/// client is gone.
pub struct Outbox {
    client: Client,
    /// The runtime on which responses of the client are awaited.
    runtime: Handle,
    /// The channel that receives these responses as events.
    events: Sender<Event>,
    /// The number of progresses that were created, for unique tokens.
    shown: u64,
}

/// The guard of a progress, which the client shows until this is dropped.
pub struct Progress {
    _guard: oneshot::Sender<()>,
}

impl Outbox {
    /// Creates the sender for `client`. The client's responses are awaited on `runtime` and sent to `events`.
    pub fn new(client: Client, runtime: Handle, events: Sender<Event>) -> Outbox {
        Outbox { client, runtime, events, shown: 0 }
    }

    /// Registers for changes of settings and of settings files, and requests the current settings, as far as the client
    /// supports each of these.
    pub fn register(&self, profile: &Profile) {
        let watches = [
            profile.watches.then(to_proto::settings_files_watch),
            profile.tells_settings.then(to_proto::own_settings_watch),
        ];
        let registrations: Vec<_> = watches.into_iter().flatten().collect();
        if !registrations.is_empty() {
            let client = self.client.clone();
            // If the client refuses, settings files are still read whenever a document is opened.
            self.runtime.spawn(async move { client.register_capability(registrations).await });
        }
        if profile.settings {
            self.pull_settings();
        }
    }

    /// Requests the client's settings (`workspace/configuration`). If the client has none, those of `initialize` stay
    /// in effect.
    pub fn pull_settings(&self) {
        let (client, events) = (self.client.clone(), self.events.clone());
        self.runtime.spawn(async move {
            let answer = client.configuration(vec![to_proto::own_settings()]).await;
            let settings = answer.ok().and_then(|all| all.into_iter().next()).filter(|settings| !settings.is_null());
            for event in settings.iter().flat_map(from_proto::configuration) {
                // An error means that the main loop has ended: the server is shutting down.
                let _ = events.send(event);
            }
        });
    }

    /// Asks the client to pull every document's diagnostics again (`workspace/diagnostic/refresh`).
    pub fn refresh(&self, profile: &Profile) {
        if profile.refreshes {
            let client = self.client.clone();
            // The response does not matter.
            self.runtime.spawn(async move { client.workspace_diagnostic_refresh().await });
        }
    }

    /// Asks the client to request the lenses of every document again (`workspace/codeLens/refresh`).
    pub fn refresh_lenses(&self, profile: &Profile) {
        if profile.refreshes_lenses {
            let client = self.client.clone();
            // The response does not matter.
            self.runtime.spawn(async move { client.code_lens_refresh().await });
        }
    }

    /// Shows a progress with this title until the guard is dropped. Only for clients with the `window.workDoneProgress`
    /// capability.
    pub fn progress(&mut self, title: String) -> Progress {
        self.shown += 1;
        let token = ProgressToken::String(format!("rx/progress/{}", self.shown));
        let (guard, done) = oneshot::channel();
        let client = self.client.clone();
        self.runtime.spawn(async move {
            if client.create_work_done_progress(token.clone()).await.is_ok() {
                let progress = client.progress(token, title).begin().await;
                // The error is the expected result: it means that the guard was dropped.
                let _ = done.await;
                progress.finish().await;
            }
        });
        Progress { _guard: guard }
    }

    /// Asks the client to apply an edit. The client refuses if the text has changed meanwhile.
    pub fn apply(&self, edit: WorkspaceEdit) {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.apply_edit(edit).await });
    }

    /// Replaces the diagnostics that the client shows for a document. `version` is the version of the text that they
    /// belong to.
    pub fn publish(&self, uri: Uri, version: Option<i32>, diagnostics: to_proto::Diagnostics) {
        block_on(self.client.publish_diagnostics(uri, diagnostics, version));
    }

    /// Shows the user an error about something that the user requested.
    pub fn complain(&self, message: &str) {
        block_on(self.client.show_message(MessageType::ERROR, message));
    }

    /// Adds an error to the client's log.
    pub fn log(&self, message: String) {
        block_on(self.client.log_message(MessageType::ERROR, message));
    }
}
