# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((T.int64(6), n), "float32"), x_red: T.Buffer((T.int64(6),), "float32")):
        T.func_attr({"op_pattern": 3, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0, k1 in T.grid(T.int64(6), n):
            with T.sblock("x_red"):
                v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
                T.reads(x[v_ax0, v_k1])
                T.writes(x_red[v_ax0])
                with T.init():
                    x_red[v_ax0] = T.float32(-340282346638528859811704183484516925440.0)
                x_red[v_ax0] = T.max(x_red[v_ax0], x[v_ax0, v_k1])

    @T.prim_func(s_tir=True)
    def scheduled(x: T.Buffer((T.int64(6), n), "float32"), x_red: T.Buffer((T.int64(6),), "float32")):
        T.func_attr({"op_pattern": 3, "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_fused_0 in T.thread_binding(T.int64(1), thread="blockIdx.x"):
            for ax0_fused_1 in T.thread_binding(T.int64(1024), thread="threadIdx.x"):
                with T.sblock("x_red_init"):
                    v0 = T.axis.spatial(T.int64(6), ax0_fused_0 * T.int64(1024) + ax0_fused_1)
                    T.where(ax0_fused_0 * T.int64(1024) + ax0_fused_1 < T.int64(6))
                    T.reads()
                    T.writes(x_red[v0])
                    x_red[v0] = T.float32(-340282346638528859811704183484516925440.0)
                for ax1 in range(n):
                    with T.sblock("x_red_update"):
                        v0 = T.axis.spatial(T.int64(6), ax0_fused_0 * T.int64(1024) + ax0_fused_1)
                        v1 = T.axis.reduce(n, ax1)
                        T.where(ax0_fused_0 * T.int64(1024) + ax0_fused_1 < T.int64(6))
                        T.reads(x_red[v0], x[v0, v1])
                        T.writes(x_red[v0])
                        x_red[v0] = T.max(x_red[v0], x[v0, v1])
