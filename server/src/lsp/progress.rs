//! How a run is shown: progress while it goes on, one message when it has ended.

use super::ProgressToken;
use crate::run::Outcome;
use crate::run::transcript::Step;
use std::time::Duration;
use tokio::time::timeout;
use tower_lsp::ls_types::MessageType;
use tower_lsp::{Bounded, Cancellable, Client, OngoingProgress};

/// How long a client may think about whether it shows progress.
const PATIENCE: Duration = Duration::from_secs(5);

/// The view of one run.
pub struct RunView {
    client: Client,
    title: String,
    /// The progress's name, and whether the client knows it already.
    token: Option<(ProgressToken, bool)>,
    progress: Option<OngoingProgress<Bounded, Cancellable>>,
    /// Whether a message says what came of it.
    message: bool,
}

impl RunView {
    /// A view of the run of `label` that shows its end only, if a `message` is wanted.
    pub fn new(client: Client, label: &str, message: bool) -> RunView {
        RunView { client, title: format!("Running {label}"), token: None, progress: None, message }
    }

    /// With progress under this name, which the client has to be told first unless it is `known`.
    pub fn with_progress(mut self, token: ProgressToken, known: bool) -> RunView {
        self.token = Some((token, known));
        self
    }

    /// Begins the progress, unless the client wants none.
    pub async fn begin(&mut self) {
        let Some((token, known)) = self.token.take() else { return };
        if !known
            && !matches!(timeout(PATIENCE, self.client.create_work_done_progress(token.clone())).await, Ok(Ok(())))
        {
            return;
        }
        let progress = self.client.progress(token, self.title.as_str()).with_percentage(0).with_cancel_button();
        self.progress = Some(progress.with_message("checking").begin().await);
    }

    /// Shows how far it is.
    pub async fn step(&self, step: &Step) {
        if let Some(progress) = &self.progress {
            progress.report_with_message(step.message.as_str(), step.percent, None).await;
        }
    }

    /// Ends the progress and says what came of it; who cancelled a run need not be told.
    pub async fn end(self, outcome: &Outcome) {
        if let Some(progress) = self.progress {
            progress.finish().await;
        }
        let kind = if outcome.ok { MessageType::INFO } else { MessageType::ERROR };
        if self.message && !outcome.cancelled {
            self.client.show_message(kind, &outcome.message).await;
        }
    }
}
