//! The integration tests of `rx-runtime`: one module for each subject, linked as one program.

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
