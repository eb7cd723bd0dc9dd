//! The names that `T` has; a namespace of a build's own is declared nowhere, and one of those is rare.

use rx_base::DType;
use rx_base::edit_distance::nearest;

/// Members of `T` in TVM 0.27, and those that older texts use; dtypes left out.
#[rustfmt::skip]
const MEMBERS: &[&str] = &[
    "Add", "AllocateConst", "And", "Array", "Assert", "AttrStmt", "Bind", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
    "BitwiseXor", "Break", "Broadcast", "Buffer", "BufferLoad", "BufferStore", "Call", "CallEffectKind", "Callable",
    "Cast", "CommReducer", "ComposeLayout", "Continue", "Div", "DtypeConstructor", "EQ", "Else", "Evaluate",
    "ExecScope", "FloatImm", "FloorDiv", "FloorMod", "For", "GE", "GT", "If", "IfThenElse", "IntImm", "Iter", "IterVar",
    "LE", "LShift", "LT", "Layout", "Let", "LetAnnotation", "LetStmt", "LocalVectorAnnotation", "Max", "Min", "Mod",
    "Mul", "NE", "Not", "Or", "PrimExpr", "ProducerLoad", "Ptr", "R", "RShift", "Ramp", "Range", "Reduce",
    "Reinterpret", "Return", "S", "SMEMPool", "ScopeIdDef", "Select", "Shuffle", "SizeVar", "StringImm", "Sub",
    "SwizzleLayout", "TMEMPool", "TMEMStages", "TVMBackendAllocWorkspace",
    "TVMBackendAnyListMoveFromPackedReturn", "TVMBackendAnyListSetPackedArg",
    "TVMBackendFreeWorkspace", "TVMStruct", "TensorMap", "Then", "TileLayout", "Var", "While", "abs", "acos", "acosh",
    "add_to_parent", "address_of", "alloc_buffer", "alloc_cast_frag", "alloc_local", "alloc_scalar", "alloc_shared",
    "alloc_tcgen05_ldst_frag", "allocate", "allocate_const", "anylist_getitem", "anylist_resetitem",
    "anylist_setitem_call_cpacked", "anylist_setitem_call_packed", "arg", "asin", "asinh", "assume", "atan", "atan2",
    "atanh", "attr", "axis", "bind", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "block", "block_attr",
    "block_name", "block_name_suffix_context", "bool", "boolean", "break_loop", "broadcast", "buffer", "buffer_decl",
    "buffer_realize", "buffer_region", "buffer_store", "buffer_var", "call_cpacked", "call_cpacked_lowered",
    "call_extern", "call_ffi_kernel", "call_intrin", "call_kernel", "call_llvm_intrin", "call_llvm_pure_intrin",
    "call_packed", "call_packed_lowered", "call_pure_extern", "cast", "ceil", "ceildiv", "cluster", "cluster_id", "clz",
    "comm_reducer", "constexpr", "continue_loop", "cooperative_tensor_fill", "cooperative_tensor_load",
    "cooperative_tensor_multiply_accumulate", "cooperative_tensor_store", "copysign", "cos", "cosh", "create_barriers",
    "cta", "cta_id", "cta_id_in_cluster", "cta_id_in_pair", "cuda", "custom_op", "decl_buffer", "decl_scalar",
    "device_entry", "div", "dma_copy", "dma_wait", "dp4a", "end_profile_intrinsic", "env_thread", "erf", "evaluate",
    "exp", "exp10", "exp2", "fabs", "floor", "floordiv", "floormod", "fma", "fmod", "func_attr", "func_name",
    "func_ret", "get_active_lane_mask", "grid", "handle", "handle_add_byte_offset", "hint", "hypot", "if_then_else",
    "ignore_loop_partition", "index_map", "indexdiv", "indexmod", "infinity", "init", "inline", "isfinite", "isinf",
    "isnan", "isnullptr", "iter_var", "jit", "lane_id", "launch_thread", "ldexp", "let", "likely",
    "llvm_lookup_intrinsic_id", "load", "local_scalar", "log", "log10", "log1p", "log2", "lookup_param", "macro",
    "make_filled_simdgroup_matrix", "masked_load", "masked_store", "match_buffer", "max", "max_value", "meta_class",
    "meta_var", "metal", "min", "min_value", "mma_fill", "mma_fill_legacy", "mma_store", "mma_store_legacy",
    "nearbyint", "nextafter", "nki", "nvshmem", "parallel", "pointer", "popcount", "pow", "power", "prefetch",
    "preflattened_buffer", "prim_func", "print_buffer", "ptr", "ptr_byte_offset", "ptx", "ptx_arrive_barrier",
    "ptx_arrive_barrier_expect_tx", "ptx_commit_group", "ptx_cp_async", "ptx_cp_async_barrier", "ptx_cp_async_bulk",
    "ptx_init_barrier_thread_count", "ptx_ldg32", "ptx_ldmatrix", "ptx_ldmatrix_legacy", "ptx_legacy", "ptx_mma",
    "ptx_mma_legacy", "ptx_mma_sp", "ptx_wait_barrier", "ptx_wait_group", "q_multiply_shift",
    "q_multiply_shift_per_axis", "ramp", "reads", "realize", "register_script_namespace", "reinterpret", "ret", "round",
    "rsqrt", "s_tir", "sblock", "sblock_alloc_buffer", "sblock_attr", "sblock_name", "sblock_realize", "scalar_wrapper",
    "scope_id", "selector", "serial", "shared_scalar", "shift_left", "shift_right", "sigmoid", "simdgroup_load",
    "simdgroup_multiply_accumulate", "simdgroup_store", "sin", "sinh", "size_var", "smem", "sqrt",
    "start_profile_intrinsic", "static_assert", "store", "tan", "tanh", "target", "tensormap_encode_tiled",
    "texture2d_load", "texture2d_store", "thread", "thread_binding", "thread_id", "thread_id_in_wg", "thread_return",
    "tile", "tmem", "trunc", "truncdiv", "truncmod", "tvm_access_ptr", "tvm_bmma_sync", "tvm_call_cpacked",
    "tvm_call_cpacked_lowered", "tvm_call_packed", "tvm_call_packed_lowered", "tvm_check_return", "tvm_fill_fragment",
    "tvm_global_barrier_kinit", "tvm_kernel_replace_point", "tvm_load_matrix_sync", "tvm_mfma", "tvm_mfma_store",
    "tvm_mma_sync", "tvm_rdna_wmma", "tvm_rdna_wmma_store", "tvm_stack_alloca", "tvm_stack_make_array",
    "tvm_stack_make_shape", "tvm_storage_sync", "tvm_store_matrix_sync", "tvm_struct_get", "tvm_struct_set",
    "tvm_thread_allreduce", "tvm_thread_invariant", "tvm_throw_last_error", "tvm_tuple", "tvm_warp_activemask",
    "tvm_warp_shuffle", "tvm_warp_shuffle_down", "tvm_warp_shuffle_up", "tvm_warp_shuffle_xor", "type_annotation",
    "undef", "unroll", "unrolled", "var", "vectorcombine", "vectorhigh", "vectorized", "vectorlow", "void", "vscale",
    "warp", "warp_id", "warp_id_in_wg", "warpgroup", "warpgroup_id", "webgpu", "wg", "wg_reg_tile", "where", "writes",
];

/// Members of Python's module `tvm.tirx` (`tvm.tir` before) that `T` does not have.
#[rustfmt::skip]
const MODULE_MEMBERS: &[&str] = &[
    "AllocBuffer", "AssertStmt", "BufferAccessKind", "BufferRegion", "BufferRegionType", "BufferType",
    "CallFFIKernelAttr", "DataProducer", "DeclBuffer", "DispatchContext", "Expr", "ExprFunctor", "ForKind",
    "IndexMap", "LambdaExpr", "MatchBufferRegion", "Predicate", "PrimFunc", "PyStmtExprMutator", "PyStmtExprVisitor",
    "SBlock", "SBlockRealize", "ScopeIdDefStmt", "SeqStmt", "Stmt", "SwizzleLayout", "TensorIntrin",
    "TensorMapEncodeTiledAttr", "TensorMapType", "TilePrimitiveCall", "add", "all", "any", "buffer_data",
    "buffer_data_pointer_type", "call_tir", "const", "convert", "get_vscale_expr", "is_buffer_var", "logaddexp",
    "multiply", "stmt_list", "stmt_seq", "subtract", "sum", "trace",
];

/// Whether Python's module `tvm.tirx` has this, beside what `T` has.
pub fn is_module_member(name: &str) -> bool {
    MODULE_MEMBERS.contains(&name)
}

/// The members of `T`, dtypes left out.
pub fn all() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().copied()
}

/// Whether some version of `T` has the name.
pub(crate) fn is_member(member: &str) -> bool {
    MEMBERS.contains(&member) || DType::parse(member).is_some() || is_short_dtype(member) || is_old_dtype(member)
}

/// The member that a name no version of `T` has was meant to be.
pub(crate) fn meant(member: &str) -> Option<&'static str> {
    nearest(member, MEMBERS.iter().copied()).or_else(|| {
        // A known name with something hung on: `reads_zz`.
        let hung_on = |known: &&str| member.strip_prefix(known).is_some_and(|rest| rest.starts_with('_'));
        MEMBERS.iter().copied().filter(hung_on).max_by_key(|known| known.len())
    })
}

/// `e4m3_float8x4`, `float4_e2m1fn_unpacked`: what releases between called small floats.
fn is_old_dtype(member: &str) -> bool {
    let rest =
        ["e4m3_float8", "e5m2_float8", "float4_e2m1fn_unpacked"].iter().find_map(|base| member.strip_prefix(base));
    rest.is_some_and(|lanes| {
        lanes.is_empty() || lanes.strip_prefix('x').is_some_and(|lanes| lanes.parse::<u16>().is_ok())
    })
}

/// `f32`, `i64x4`: what TVM 0.27 also calls dtypes.
fn is_short_dtype(member: &str) -> bool {
    let digits = member.trim_start_matches(['b', 'f', 'i', 'u']);
    let width = digits.split(['x', '_']).next().unwrap_or_default();
    digits.len() < member.len() && matches!(width, "1" | "4" | "6" | "8" | "16" | "32" | "64" | "128")
}
