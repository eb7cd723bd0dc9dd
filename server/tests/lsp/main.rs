//! Scripted sessions with the real server over its pipes.

mod children;
mod client;
mod edits;
mod every_request;
mod graph;
mod navigation;
mod notebooks;
mod pull;
mod robustness;
mod run;
mod session;
mod settings;
mod stage;
mod stop;
mod text;
mod writing;
