//! Integration tests of `rx-fuzz`: one module per subject, linked into one program.

mod growth;
mod replay;
