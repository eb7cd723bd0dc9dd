//! Scripted sessions with the real server over its pipes.

mod client;
mod graph;
mod navigation;
mod pull;
mod robustness;
mod run;
mod session;
mod settings;
mod writing;
