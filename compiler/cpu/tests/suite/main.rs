//! The integration tests of `rx-cpu`: one module for each subject, linked as one program.

mod check_cost;
mod differential;
mod random;
mod routines;
