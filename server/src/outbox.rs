//! What the main loop sends without being asked.

use crate::lsp::{Uri, to_proto};
use futures::executor::block_on;
use tokio::runtime::Handle;
use tower_lsp::Client;
use tower_lsp::ls_types::MessageType;

/// The way to the client. Sending waits while the client does not read, and does nothing once it is gone.
pub struct Outbox {
    client: Client,
    /// Where answers of the client are waited for.
    runtime: Handle,
}

impl Outbox {
    /// To this client; its answers are waited for on `runtime`.
    pub fn new(client: Client, runtime: Handle) -> Outbox {
        Outbox { client, runtime }
    }

    /// Asks the client to tell of changed settings files.
    pub fn watch_settings_files(&self) {
        let client = self.client.clone();
        // A client that says no is one whose settings files are read when documents are opened.
        self.runtime.spawn(async move { client.register_capability(vec![to_proto::settings_files_watch()]).await });
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
