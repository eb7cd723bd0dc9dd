//! The passes, a file each.

pub mod bind_params;
pub mod bind_symbolic_vars;
pub mod common_subexpr;
pub mod dead_code;
pub mod fold_constant;
pub mod inline_private;
