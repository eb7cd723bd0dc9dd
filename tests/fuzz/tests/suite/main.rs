//! The integration tests of `rx-fuzz`: one module a subject, one program to link.

mod growth;
mod replay;
