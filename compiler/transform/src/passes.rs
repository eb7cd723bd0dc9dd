//! The implementations of the passes, one module each (`decompose` holds three); `crate::pass::ALL` lists them.

pub mod annotate_tir_op_pattern;
pub mod bind_params;
pub mod bind_symbolic_vars;
pub mod call_tir_rewrite;
pub mod canonicalize;
pub mod combine_matmul;
pub mod common_subexpr;
pub mod convert_layout;
pub mod dead_code;
pub mod decompose;
pub mod expand_tuple_arguments;
pub mod fold_constant;
pub mod fuse_ops;
pub mod fuse_tir;
pub mod inline_private;
pub mod keep_raw_entry;
pub mod kill_after_last_use;
pub mod legalize;
pub mod lift_transform_params;
pub mod mixed_precision;
pub mod normalize;
pub mod redundant_reshape;
pub mod remove_unused_parameters;
pub mod reorder_take;
pub mod static_plan;
