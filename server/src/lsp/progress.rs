//! The display of a run in the client: a progress while it runs, one message when it has ended.

use super::ProgressToken;
use crate::run::Outcome;
use crate::run::transcript::Step;
use std::time::Duration;
use tokio::time::timeout;
use tower_lsp::ls_types::MessageType;
use tower_lsp::{Bounded, Cancellable, Client, OngoingProgress};

/// The time limit for the client's response to `window/workDoneProgress/create`.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first step of a run.
pub const CHECKING: &str = "checking";

/// The display of one run.
pub struct RunView {
    client: Client,
    title: String,
    /// The token of the progress, and whether the client created it.
    token: Option<(ProgressToken, bool)>,
    progress: Option<OngoingProgress<Bounded, Cancellable>>,
    /// Whether the outcome is shown as a message.
    message: bool,
}

impl RunView {
    /// Creates the display of the run of `label`. Without [`Self::with_progress`] it shows the outcome only, and that
    /// only if `message` is true.
    pub fn new(client: Client, label: &str, message: bool) -> RunView {
        RunView { client, title: format!("Running {label}"), token: None, progress: None, message }
    }

    /// Adds a progress with this token. If the client does not know the token (`known` is false), the progress is
    /// created first.
    pub fn with_progress(mut self, token: ProgressToken, known: bool) -> RunView {
        self.token = Some((token, known));
        self
    }

    /// Begins the progress, unless the client refuses to create it.
    pub async fn begin(&mut self) {
        let Some((token, known)) = self.token.take() else { return };
        if !known
            && !matches!(timeout(PATIENCE, self.client.create_work_done_progress(token.clone())).await, Ok(Ok(())))
        {
            return;
        }
        let progress = self.client.progress(token, self.title.as_str()).with_percentage(0).with_cancel_button();
        self.progress = Some(progress.with_message(CHECKING).begin().await);
    }

    /// Reports one step of the progress.
    pub async fn step(&self, step: &Step) {
        if let Some(progress) = &self.progress {
            progress.report_with_message(step.message.as_str(), step.percent, None).await;
        }
    }

    /// Ends the progress and shows the outcome as a message. No message is shown for a cancelled run.
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
