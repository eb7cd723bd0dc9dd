//! The integration tests of `rx-transform`: one module for each subject, linked as one program.

mod common;
mod conformance;
mod constants;
mod declared;
mod fuse;
mod layout;
mod legalize;
mod lift;
mod op_pattern;
mod passes;
mod prim_funcs;
mod print;
mod raw_entry;
