//! What the main loop sends without being asked.

use crate::event::Event;
use crate::lsp::{Profile, ProgressToken, Uri, WorkspaceEdit, from_proto, to_proto};
use futures::executor::block_on;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower_lsp::Client;
use tower_lsp::ls_types::MessageType;

/// The way to the client. Sending waits while the client does not read, and does nothing once it is gone.
pub struct Outbox {
    client: Client,
    /// Where answers of the client are waited for.
    runtime: Handle,
    /// Where they go.
    events: Sender<Event>,
    /// How often a progress was begun.
    shown: u64,
}

/// Something that goes on while this lives.
pub struct Progress {
    _guard: oneshot::Sender<()>,
}

impl Outbox {
    /// To this client; its answers are waited for on `runtime` and become `events`.
    pub fn new(client: Client, runtime: Handle, events: Sender<Event>) -> Outbox {
        Outbox { client, runtime, events, shown: 0 }
    }

    /// Asks the client for its settings, and to tell when they or settings files change, as far as it can.
    pub fn register(&self, profile: &Profile) {
        let watches = [
            profile.watches.then(to_proto::settings_files_watch),
            profile.tells_settings.then(to_proto::own_settings_watch),
        ];
        let registrations: Vec<_> = watches.into_iter().flatten().collect();
        if !registrations.is_empty() {
            let client = self.client.clone();
            // A client that says no is one whose settings files are read when documents are opened.
            self.runtime.spawn(async move { client.register_capability(registrations).await });
        }
        if profile.settings {
            self.pull_settings();
        }
    }

    /// Asks the client for its settings. One that has none keeps what `initialize` said.
    pub fn pull_settings(&self) {
        let (client, events) = (self.client.clone(), self.events.clone());
        self.runtime.spawn(async move {
            let answer = client.configuration(vec![to_proto::own_settings()]).await;
            let settings = answer.ok().and_then(|all| all.into_iter().next()).filter(|settings| !settings.is_null());
            for event in settings.iter().flat_map(from_proto::configuration) {
                // An error is a main loop that is gone: the server ends.
                let _ = events.send(event);
            }
        });
    }

    /// Asks the client to ask again for every document's diagnostics.
    pub fn refresh(&self, profile: &Profile) {
        if profile.refreshes {
            let client = self.client.clone();
            // A client that does not answer has been told all the same.
            self.runtime.spawn(async move { client.workspace_diagnostic_refresh().await });
        }
    }

    /// Shows that `title` goes on until the guard is dropped, to a client that shows such things.
    pub fn progress(&mut self, title: String) -> Progress {
        self.shown += 1;
        let token = ProgressToken::String(format!("rx/progress/{}", self.shown));
        let (guard, done) = oneshot::channel();
        let client = self.client.clone();
        self.runtime.spawn(async move {
            if client.create_work_done_progress(token.clone()).await.is_ok() {
                let progress = client.progress(token, title).begin().await;
                // The error is the dropped guard.
                let _ = done.await;
                progress.finish().await;
            }
        });
        Progress { _guard: guard }
    }

    /// Asks the client to apply an edit; it says no where the text has changed meanwhile.
    pub fn apply(&self, edit: WorkspaceEdit) {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.apply_edit(edit).await });
    }

    /// Replaces the diagnostics the client shows of a document; `version` says of which text they are.
    pub fn publish(&self, uri: Uri, version: Option<i32>, diagnostics: to_proto::Diagnostics) {
        block_on(self.client.publish_diagnostics(uri, diagnostics, version));
    }

    /// A message for the user, about something the user asked for.
    pub fn complain(&self, message: &str) {
        block_on(self.client.show_message(MessageType::ERROR, message));
    }

    /// A line for the client's log; for what the user should know is wrong.
    pub fn log(&self, message: String) {
        block_on(self.client.log_message(MessageType::ERROR, message));
    }
}
