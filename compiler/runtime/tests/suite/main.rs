//! The integration tests of `rx-runtime`: one module a subject, one program to link.

mod attention_joined;
mod channels_last;
mod common;
mod corpus;
mod corpus_as_cuda;
mod defects;
mod fused;
mod host;
mod host_values;
mod kernel_runs;
mod models;
mod open;
mod program_values;
mod programs;
mod recorded;
mod recursion;
mod scheduled;
