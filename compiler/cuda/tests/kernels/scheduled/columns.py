# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((n, T.int64(72)), "float32"), x_red: T.Buffer((T.int64(72),), "float32")):
        T.func_attr({"op_pattern": 3, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0, k0 in T.grid(T.int64(72), n):
            with T.sblock("x_red"):
                v_ax0, v_k0 = T.axis.remap("SR", [ax0, k0])
                T.reads(x[v_k0, v_ax0])
                T.writes(x_red[v_ax0])
                with T.init():
                    x_red[v_ax0] = T.float32(0.0)
                x_red[v_ax0] = x_red[v_ax0] + x[v_k0, v_ax0]

    @T.prim_func(s_tir=True)
    def scheduled(x: T.Buffer((n, T.int64(72)), "float32"), x_red: T.Buffer((T.int64(72),), "float32")):
        T.func_attr({"op_pattern": 3, "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        x_red_rf_local = T.sblock_alloc_buffer((T.int64(16), T.int64(72)), scope="local")
        for ax0_fused_0 in T.thread_binding(T.int64(6), thread="blockIdx.x"):
            for ax0_fused_1 in T.thread_binding(T.int64(12), thread="threadIdx.x"):
                for ax1_fused_1 in T.thread_binding(T.int64(16), thread="threadIdx.y"):
                    with T.sblock("x_red_rf_init"):
                        vax1_fused_1 = T.axis.spatial(T.int64(16), ax1_fused_1)
                        v0 = T.axis.spatial(T.int64(72), ax0_fused_0 * T.int64(12) + ax0_fused_1)
                        T.reads()
                        T.writes(x_red_rf_local[vax1_fused_1, v0])
                        x_red_rf_local[vax1_fused_1, v0] = T.float32(0.0)
                    for ax1_fused_0, u in T.grid((n + T.int64(15)) // T.int64(16), 1):
                        with T.sblock("x_red_rf_update"):
                            vax1_fused_1 = T.axis.spatial(T.int64(16), ax1_fused_1)
                            v0 = T.axis.spatial(T.int64(72), ax0_fused_0 * T.int64(12) + ax0_fused_1)
                            vax1_fused_0 = T.axis.reduce((n + T.int64(15)) // T.int64(16), ax1_fused_0)
                            T.where(ax1_fused_0 * T.int64(16) + ax1_fused_1 < n)
                            T.reads(x_red_rf_local[vax1_fused_1, v0], x[vax1_fused_0 * T.int64(16) + vax1_fused_1, v0])
                            T.writes(x_red_rf_local[vax1_fused_1, v0])
                            x_red_rf_local[vax1_fused_1, v0] = x_red_rf_local[vax1_fused_1, v0] + x[vax1_fused_0 * T.int64(16) + vax1_fused_1, v0]
            for ax1_fused in T.thread_binding(T.int64(12), thread="threadIdx.x"):
                for ax0 in T.thread_binding(T.int64(16), thread="threadIdx.y"):
                    with T.sblock("x_red"):
                        vax1_fused_1 = T.axis.reduce(T.int64(16), ax0)
                        v0 = T.axis.spatial(T.int64(72), ax0_fused_0 * T.int64(12) + ax1_fused)
                        T.reads(x_red_rf_local[vax1_fused_1, v0])
                        T.writes(x_red[v0])
                        with T.init():
                            x_red[v0] = T.float32(0.0)
                        x_red[v0] = x_red[v0] + x_red_rf_local[vax1_fused_1, v0]
