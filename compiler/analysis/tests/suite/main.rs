//! The integration tests of `rx-analysis`: one module for each subject, linked as one program.

mod segments;
