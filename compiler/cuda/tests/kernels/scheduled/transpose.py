# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((n, T.int64(70)), "float16"), T_transpose: T.Buffer((T.int64(70), n), "float16")):
        T.func_attr({"op_pattern": 2, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0, ax1 in T.grid(T.int64(70), n):
            with T.sblock("T_transpose"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(x[v_ax1, v_ax0])
                T.writes(T_transpose[v_ax0, v_ax1])
                T_transpose[v_ax0, v_ax1] = x[v_ax1, v_ax0]

    @T.prim_func(s_tir=True)
    def scheduled(x: T.Buffer((n, T.int64(70)), "float16"), T_transpose: T.Buffer((T.int64(70), n), "float16")):
        T.func_attr({"op_pattern": 2, "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        x_shared = T.sblock_alloc_buffer((n, T.int64(70)), "float16", scope="shared")
        for ax0_0_0 in T.thread_binding(T.int64(9), thread="blockIdx.y", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
            for ax1_0 in T.thread_binding((n + T.int64(15)) // T.int64(16), thread="blockIdx.x"):
                for ax0_ax1_fused_0 in range(T.int64(1)):
                    for ax0_ax1_fused_1 in T.thread_binding(T.int64(8), thread="threadIdx.y"):
                        for ax0_ax1_fused_2 in T.thread_binding(T.int64(16), thread="threadIdx.x"):
                            for ax0_ax1_fused_3 in T.unroll(T.int64(1)):
                                with T.sblock("x_shared"):
                                    v0 = T.axis.spatial(n, ax1_0 * T.int64(16) + (ax0_ax1_fused_0 * T.int64(128) + ax0_ax1_fused_1 * T.int64(16) + ax0_ax1_fused_2 + ax0_ax1_fused_3) // T.int64(8))
                                    v1 = T.axis.spatial(T.int64(70), ax0_0_0 * T.int64(8) + (ax0_ax1_fused_0 * T.int64(128) + ax0_ax1_fused_1 * T.int64(16) + ax0_ax1_fused_2 + ax0_ax1_fused_3) % T.int64(8))
                                    T.where(ax1_0 * T.int64(16) + ((ax0_ax1_fused_0 * T.int64(8) + ax0_ax1_fused_1) * T.int64(16) + ax0_ax1_fused_2 + ax0_ax1_fused_3) // T.int64(8) < n and ax0_0_0 * T.int64(8) + ((ax0_ax1_fused_0 * T.int64(8) + ax0_ax1_fused_1) * T.int64(16) + ax0_ax1_fused_2 + ax0_ax1_fused_3) % T.int64(8) < T.int64(70))
                                    T.reads(x[v0, v1])
                                    T.writes(x_shared[v0, v1])
                                    T.sblock_attr({"buffer_dim_align": [[0, 0, 32, 1]]})
                                    x_shared[v0, v1] = x[v0, v1]
                for ax0_0_1 in T.thread_binding(T.int64(8), thread="threadIdx.y"):
                    for ax1_1 in T.thread_binding(T.int64(16), thread="threadIdx.x"):
                        for ax0_1_0, ax0_1_1 in T.grid(T.int64(1), T.int64(1)):
                            with T.sblock("T_transpose"):
                                v0 = T.axis.spatial(T.int64(70), ax0_0_0 * T.int64(8) + ax0_0_1 + ax0_1_0 + ax0_1_1)
                                v1 = T.axis.spatial(n, ax1_0 * T.int64(16) + ax1_1)
                                T.where(ax0_0_0 * T.int64(8) + ax0_0_1 < T.int64(70) and ax1_0 * T.int64(16) + ax1_1 < n)
                                T.reads(x_shared[v1, v0])
                                T.writes(T_transpose[v0, v1])
                                T_transpose[v0, v1] = x_shared[v1, v0]
