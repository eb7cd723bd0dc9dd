//! Runs of functions. A child process compiles and runs the text of a document, or shows a [`stage`] of its
//! compilation.
//!
//! The child is `rxrun`, so a crash, a hang or exhausted memory affects the child only, not the server. The server
//! itself computes the stages that need no foreign code ([`built`]). The [`registry`] belongs to the main loop and
//! tracks the children; [`child`] starts, follows and ends one process; [`transcript`] parses its output, [`wording`]
//! formats it, and [`observed`] collects values and kernel times from it. Only [`crate::event::Event::Run`] and
//! [`crate::event::Event::Stage`] start a child: opening or checking a document does not.

pub mod built;
pub mod child;
pub mod gpu;
pub mod observed;
pub mod registry;
pub mod stage;
pub mod transcript;
pub mod wording;

use crate::lsp::{ProgressToken, Uri};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;

/// The command that runs a function.
pub const COMMAND: &str = "rx.run";

/// The command that stops the run of a document.
pub const STOP: &str = "rx.stop";

/// A run in progress, for the lens that stops it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InProgress {
    /// The document.
    pub uri: Uri,
    /// The function, if the request named it.
    pub function: Option<String>,
    /// The label of the function's module, if the request named it.
    pub module: Option<String>,
}

/// A request to run a function.
#[derive(Debug)]
pub struct Order {
    /// The document. `None` is the document that was opened or changed most recently, for clients that cannot name one.
    pub uri: Option<Uri>,
    /// The function; `None` lets `rxrun` choose.
    pub function: Option<String>,
    /// The label of the function's module; `None` lets `rxrun` choose.
    pub module: Option<String>,
    /// Arguments of `rxrun` for this run, after those of [`Settings::arguments`].
    pub arguments: Vec<String>,
    /// The client's progress token for this request, if it sent one.
    pub token: Option<ProgressToken>,
    /// The sender of the outcome. It is closed once the client cancels the request.
    pub reply: oneshot::Sender<Outcome>,
}

/// The user's settings for runs (`rx.run.…`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The program to start. `None` is the `rxrun` next to this server, or the one in `PATH` if there is none.
    pub program: Option<PathBuf>,
    /// Its arguments in every run, for example `--dim n=4`.
    pub arguments: Vec<String>,
    /// The time limit of a run.
    pub limit: Duration,
    /// Whether values of variables and times of kernels are collected.
    pub values: bool,
    /// Whether a message shows the outcome of a run, in addition to the response.
    pub message: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let limit = Duration::from_secs(600);
        Settings { program: None, arguments: Vec::new(), limit, values: true, message: true }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether the function returned.
    pub ok: bool,
    /// Whether the run was cancelled by the user or replaced by another run.
    pub cancelled: bool,
    /// One line for the user.
    pub message: String,
    /// The time of the run itself in seconds.
    pub seconds: Option<f64>,
    /// The labels of the modules to choose from, if `rxrun` could not choose one. They are values for `module` of
    /// [`Order`].
    pub modules: Vec<String>,
    /// The values that the user has to give, if the run lacks some.
    pub missing: Missing,
    /// The `emitted` event of `rxrun`, if a stage was requested.
    pub emitted: Option<Value>,
    /// The `output` events of `rxrun` (`docs/json.md`).
    pub outputs: Vec<Value>,
    /// The values of variables (`docs/lsp-extensions.md`).
    pub values: Vec<Value>,
    /// The times of kernels (`docs/lsp-extensions.md`).
    pub kernels: Vec<Value>,
    /// The end of the child's standard error.
    pub log: String,
}

/// The values that a run lacks: `rxrun` can neither read nor draw them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Symbolic dims, as `--dim` takes them.
    pub dims: Vec<String>,
    /// Parameters and fields of parameters, as `--input` takes them.
    pub inputs: Vec<String>,
}

impl Outcome {
    /// Returns the outcome of a run that failed for this reason.
    pub fn failed(message: impl Into<String>) -> Outcome {
        Outcome { message: message.into(), ..Outcome::default() }
    }
}
