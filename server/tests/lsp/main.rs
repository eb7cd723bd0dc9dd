//! Scripted sessions with the real server over its pipes.

mod client;
mod robustness;
mod run;
mod session;
mod settings;
