//! The integration tests of `rx-cpu`: one module a subject, one program to link.

mod check_cost;
mod differential;
mod random;
mod routines;
