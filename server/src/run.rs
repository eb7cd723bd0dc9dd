//! "Run `main`": a child process compiles and runs the text of a document, with the call a user would type, or shows a
//! [`stage`] of it.
//!
//! The child is `rxrun`, so whatever a program does to it (a crash, a hang, no memory left) costs the child and not the
//! server. Stages that take no foreign code are made by the server itself ([`built`]). The [`registry`] belongs to the main loop and knows what is running; [`child`] starts, follows and ends one
//! process; [`transcript`] reads what it writes, [`observed`] what it saw. Only [`crate::event::Event::Run`] and
//! [`crate::event::Event::Stage`] get here: opening and checking do not.

pub mod built;
pub mod child;
pub mod gpu;
pub mod observed;
pub mod registry;
pub mod stage;
pub mod transcript;

use crate::lsp::{ProgressToken, Uri};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;

/// The command that runs a function.
pub const COMMAND: &str = "rx.run";

/// A client's wish to run a function.
#[derive(Debug)]
pub struct Order {
    /// The document; `None` is the one that was opened or changed last, for clients that cannot say.
    pub uri: Option<Uri>,
    /// The function; `None` leaves the choice to `rxrun`.
    pub function: Option<String>,
    /// The label of the function's module; `None` leaves the choice to `rxrun`.
    pub module: Option<String>,
    /// Arguments of `rxrun` for this run, after those of [`Settings::arguments`].
    pub arguments: Vec<String>,
    /// The client's name for the progress of its request, if it wants any.
    pub token: Option<ProgressToken>,
    /// Where the outcome goes; closed when the client cancelled the request.
    pub reply: oneshot::Sender<Outcome>,
}

/// What the user decides about runs (`rx.run.…`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The program to start; `None` is the `rxrun` beside this server, else the one in `PATH`.
    pub program: Option<PathBuf>,
    /// Its arguments in every run, such as `--dim n=4`.
    pub arguments: Vec<String>,
    /// How long a run may take.
    pub limit: Duration,
    /// Whether values and times of kernels are asked for.
    pub values: bool,
    /// Whether a message says how a run ended, beside the answer.
    pub message: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let limit = Duration::from_secs(600);
        Settings { program: None, arguments: Vec::new(), limit, values: true, message: true }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether the function returned.
    pub ok: bool,
    /// Whether it was ended on request, which is no news to the user.
    pub cancelled: bool,
    /// One line for the user.
    pub message: String,
    /// The time of the run itself, in seconds.
    pub seconds: Option<f64>,
    /// The modules that the user can choose from, where `rxrun` could not: what `module` of [`Order`] takes.
    pub modules: Vec<String>,
    /// The `emitted` event of `rxrun`, of a call for a stage.
    pub emitted: Option<Value>,
    /// The `output` events of `rxrun` (`docs/json.md`).
    pub outputs: Vec<Value>,
    /// What variables were bound to, and how long kernels took (`docs/lsp-extensions.md`).
    pub values: Vec<Value>,
    /// See `values`.
    pub kernels: Vec<Value>,
    /// The last of what the child wrote on standard error.
    pub log: String,
}

impl Outcome {
    /// A run that came to nothing, for this reason.
    pub fn failed(message: impl Into<String>) -> Outcome {
        Outcome { message: message.into(), ..Outcome::default() }
    }
}
