//! The member names of `T`.

use crate::functions;
use rx_base::edit_distance::nearest;
use std::sync::LazyLock;

/// Members of `T` that the table of [`functions`](crate::functions) does not contain: namespaces and members of older
/// releases. Dtypes are not listed.
#[rustfmt::skip]
const MEMBERS: &[&str] = &[
    "Array", "AttrStmt", "BufferStore", "Callable", "Evaluate", "For", "IfThenElse", "PrimExpr", "R", "Reinterpret",
    "S", "TVMBackendAnyListMoveFromPackedReturn", "TVMBackendAnyListSetPackedArg", "TVMStruct", "axis", "block_name",
    "buffer_realize", "buffer_region", "cluster", "constexpr", "create_barriers", "cta", "cuda", "custom_op",
    "dma_copy", "dma_wait", "let", "load", "make_filled_simdgroup_matrix", "metal", "mma_fill", "mma_fill_legacy",
    "mma_store", "mma_store_legacy", "nki", "nvshmem", "pointer", "preflattened_buffer", "ptx",
    "ptx_arrive_barrier", "ptx_arrive_barrier_expect_tx", "ptx_commit_group", "ptx_cp_async", "ptx_cp_async_barrier",
    "ptx_cp_async_bulk", "ptx_init_barrier_thread_count", "ptx_ldg32", "ptx_ldmatrix", "ptx_ldmatrix_legacy",
    "ptx_legacy", "ptx_mma", "ptx_mma_legacy", "ptx_mma_sp", "ptx_wait_barrier", "ptx_wait_group", "s_tir",
    "sblock_name", "sblock_realize", "simdgroup_load", "simdgroup_multiply_accumulate", "simdgroup_store",
    "store", "texture2d_load", "texture2d_store", "thread", "tile", "tvm_check_return", "tvm_mfma", "tvm_mfma_store",
    "tvm_rdna_wmma", "tvm_rdna_wmma_store", "warp", "warpgroup", "webgpu", "wg",
];

/// Members of Python's module `tvm.tirx` (`tvm.tir` before), most of which `T` does not have.
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

/// Whether a name is one of the additional members of the Python module `tvm.tirx`; `T` has few of these.
pub fn is_module_member(name: &str) -> bool {
    MODULE_MEMBERS.contains(&name)
}

/// Returns the known members of `T` in ASCII order; of the dtypes, only some.
pub fn all() -> impl Iterator<Item = &'static str> {
    static ALL: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let functions = functions::names().filter(|name| !name.contains('.'));
        let mut all: Vec<&str> = functions.chain(MEMBERS.iter().copied()).collect();
        all.sort_unstable();
        all
    });
    ALL.iter().copied()
}

/// Whether `T` has this member in any known version.
pub fn is_member(member: &str) -> bool {
    functions::find(member).is_some() || MEMBERS.contains(&member) || is_short_dtype(member) || is_old_dtype(member)
}

/// Returns the member that was probably meant by an unknown name.
pub fn meant(member: &str) -> Option<&'static str> {
    nearest(member, all()).or_else(|| {
        // A known name with a suffix: `reads_zz` is taken for `reads`.
        let hung_on = |known: &&str| member.strip_prefix(known).is_some_and(|rest| rest.starts_with('_'));
        all().filter(hung_on).max_by_key(|known| known.len())
    })
}

/// Whether a name is a dtype that only some intermediate releases have: `e4m3_float8x4`, `float4_e2m1fn_unpacked`.
fn is_old_dtype(member: &str) -> bool {
    let rest =
        ["e4m3_float8", "e5m2_float8", "float4_e2m1fn_unpacked"].iter().find_map(|base| member.strip_prefix(base));
    rest.is_some_and(|lanes| {
        lanes.is_empty() || lanes.strip_prefix('x').is_some_and(|lanes| lanes.parse::<u16>().is_ok())
    })
}

/// Whether a name looks like a short dtype of TVM 0.27: `f32`, `i64x4`.
fn is_short_dtype(member: &str) -> bool {
    let digits = member.trim_start_matches(['b', 'f', 'i', 'u']);
    let width = digits.split(['x', '_']).next().unwrap_or_default();
    digits.len() < member.len() && matches!(width, "1" | "4" | "6" | "8" | "16" | "32" | "64" | "128")
}
