//! The integration tests of `rx-transform`: one module a subject, one program to link.

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
