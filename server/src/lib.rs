//! `rx-lsp`: the language server.
//!
//! Messages come in over stdin ([`transport`]), are decoded by tower-lsp and turned into [`event::Event`]s by handlers
//! without state ([`backend`]). One thread, the [`main_loop`], owns the documents and the database: it applies edits in
//! order, publishes diagnostics, hands reads to workers ([`reads`]) and starts children ([`run`]). Protocol types stay in
//! [`lsp`].

pub mod arguments;
pub mod backend;
pub mod documents;
pub mod event;
pub mod frames;
pub mod lsp;
pub mod main_loop;
pub mod outbox;
pub mod parent;
pub mod reads;
pub mod run;
pub mod server;
pub mod transport;
