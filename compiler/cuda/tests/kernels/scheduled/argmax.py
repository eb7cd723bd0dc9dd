# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((n, T.int64(300)), "float32"), x_red: T.Buffer((n,), "int64")):
        T.func_attr({"op_pattern": 4, "tirx.noalias": True})
        # with T.sblock("root"):
        x_red_temp_v0 = T.sblock_alloc_buffer((n,), "int64")
        x_red_temp_v1 = T.sblock_alloc_buffer((n,))
        for ax0, k1 in T.grid(n, T.int64(300)):
            with T.sblock("x_red_temp"):
                v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
                T.reads(x[v_ax0, v_k1])
                T.writes(x_red_temp_v0[v_ax0], x_red_temp_v1[v_ax0])
                with T.init():
                    x_red_temp_v0[v_ax0] = T.int64(-1)
                    x_red_temp_v1[v_ax0] = T.float32(-340282346638528859811704183484516925440.0)
                v_x_red_temp_v0: T.let[T.int64] = T.Select(x_red_temp_v1[v_ax0] > x[v_ax0, v_k1] or x_red_temp_v1[v_ax0] == x[v_ax0, v_k1] and x_red_temp_v0[v_ax0] < v_k1, x_red_temp_v0[v_ax0], v_k1)
                v_x_red_temp_v1: T.let[T.float32] = T.Select(x_red_temp_v1[v_ax0] > x[v_ax0, v_k1], x_red_temp_v1[v_ax0], x[v_ax0, v_k1])
                x_red_temp_v0[v_ax0] = v_x_red_temp_v0
                x_red_temp_v1[v_ax0] = v_x_red_temp_v1
        for ax0 in range(n):
            with T.sblock("x_red"):
                v_ax0 = T.axis.spatial(n, ax0)
                T.reads(x_red_temp_v0[v_ax0])
                T.writes(x_red[v_ax0])
                x_red[v_ax0] = x_red_temp_v0[v_ax0]

    @T.prim_func(s_tir=True)
    def scheduled(x: T.Buffer((n, T.int64(300)), "float32"), x_red: T.Buffer((n,), "int64")):
        T.func_attr({"op_pattern": 4, "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        x_red_temp_v0_shared = T.sblock_alloc_buffer((n,), "int64", scope="shared")
        x_red_temp_v1_shared = T.sblock_alloc_buffer((n,), scope="shared")
        for ax0_fused in T.thread_binding(n, thread="blockIdx.x"):
            for ax0 in range(T.int64(1)):
                for ax1_fused_1 in T.thread_binding(T.int64(256), thread="threadIdx.x"):
                    for ax1_fused_0 in T.serial(T.int64(2), annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("x_red_temp"):
                            v0 = T.axis.spatial(n, ax0_fused + ax0)
                            v1 = T.axis.reduce(T.int64(300), ax1_fused_0 * T.int64(256) + ax1_fused_1)
                            T.where(ax1_fused_0 * T.int64(256) + ax1_fused_1 < T.int64(300))
                            T.reads(x[v0, v1])
                            T.writes(x_red_temp_v0_shared[v0], x_red_temp_v1_shared[v0])
                            with T.init():
                                x_red_temp_v0_shared[v0] = T.int64(-1)
                                x_red_temp_v1_shared[v0] = T.float32(-340282346638528859811704183484516925440.0)
                            v_x_red_temp_v0: T.let[T.int64] = T.Select(x_red_temp_v1_shared[v0] > x[v0, v1] or x_red_temp_v1_shared[v0] == x[v0, v1] and x_red_temp_v0_shared[v0] < v1, x_red_temp_v0_shared[v0], v1)
                            v_x_red_temp_v1: T.let[T.float32] = T.Select(x_red_temp_v1_shared[v0] > x[v0, v1], x_red_temp_v1_shared[v0], x[v0, v1])
                            x_red_temp_v0_shared[v0] = v_x_red_temp_v0
                            x_red_temp_v1_shared[v0] = v_x_red_temp_v1
            for ax1_1 in T.thread_binding(T.int64(256), thread="threadIdx.x"):
                for ax1_0 in T.serial(T.int64(1), annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                    with T.sblock("x_red"):
                        v0 = T.axis.spatial(n, ax0_fused)
                        v1 = T.axis.spatial(T.int64(1), ax1_0 * T.int64(256) + ax1_1)
                        T.where(ax1_0 * T.int64(256) + ax1_1 < T.int64(1))
                        T.reads(x_red_temp_v0_shared[v0])
                        T.writes(x_red[v0])
                        x_red[v0] = x_red_temp_v0_shared[v0]
