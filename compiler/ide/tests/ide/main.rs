//! Editor features at positions of a text.

mod actions;
mod completion;
mod fixture;
mod format;
mod graph;
mod hints;
mod hostile;
mod hover;
mod lens;
mod links;
mod names;
mod refactor;
mod rename;
mod semantic;
mod signature_help;
mod structure;
mod texts;
mod typing;
