# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((n, T.int64(200)), "float32"), g: T.Buffer((T.int64(200),), "float32"), T_cast: T.Buffer((n, T.int64(200)), "float32")):
        T.func_attr({"op_pattern": 4, "tirx.noalias": True})
        # with T.sblock("root"):
        T_cast_1 = T.sblock_alloc_buffer((n, T.int64(200)))
        T_multiply = T.sblock_alloc_buffer((n, T.int64(200)))
        T_multiply_red = T.sblock_alloc_buffer((n,))
        rsqrt = T.sblock_alloc_buffer((n,))
        T_cast_2 = T.sblock_alloc_buffer((T.int64(200),))
        T_rms_norm = T.sblock_alloc_buffer((n, T.int64(200)))
        for ax0, ax1 in T.grid(n, T.int64(200)):
            with T.sblock("T_cast"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(x[v_ax0, v_ax1])
                T.writes(T_cast_1[v_ax0, v_ax1])
                T_cast_1[v_ax0, v_ax1] = x[v_ax0, v_ax1]
        for ax0, ax1 in T.grid(n, T.int64(200)):
            with T.sblock("T_multiply"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(T_cast_1[v_ax0, v_ax1])
                T.writes(T_multiply[v_ax0, v_ax1])
                T_multiply[v_ax0, v_ax1] = T_cast_1[v_ax0, v_ax1] * T_cast_1[v_ax0, v_ax1]
        for ax0, k1 in T.grid(n, T.int64(200)):
            with T.sblock("T_multiply_red"):
                v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
                T.reads(T_multiply[v_ax0, v_k1])
                T.writes(T_multiply_red[v_ax0])
                with T.init():
                    T_multiply_red[v_ax0] = T.float32(0.0)
                T_multiply_red[v_ax0] = T_multiply_red[v_ax0] + T_multiply[v_ax0, v_k1]
        for ax0 in range(n):
            with T.sblock("rsqrt"):
                v_ax0 = T.axis.spatial(n, ax0)
                T.reads(T_multiply_red[v_ax0])
                T.writes(rsqrt[v_ax0])
                rsqrt[v_ax0] = T.rsqrt(T_multiply_red[v_ax0] / T.float32(200.0) + T.float32(1.0000000000000001e-05))
        for ax0 in range(T.int64(200)):
            with T.sblock("T_cast_1"):
                v_ax0 = T.axis.spatial(T.int64(200), ax0)
                T.reads(g[v_ax0])
                T.writes(T_cast_2[v_ax0])
                T_cast_2[v_ax0] = g[v_ax0]
        for ax0, ax1 in T.grid(n, T.int64(200)):
            with T.sblock("T_rms_norm"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(rsqrt[v_ax0], T_cast_1[v_ax0, v_ax1], T_cast_2[v_ax1])
                T.writes(T_rms_norm[v_ax0, v_ax1])
                T_rms_norm[v_ax0, v_ax1] = rsqrt[v_ax0] * T_cast_1[v_ax0, v_ax1] * T_cast_2[v_ax1]
        for ax0, ax1 in T.grid(n, T.int64(200)):
            with T.sblock("T_cast_2"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(T_rms_norm[v_ax0, v_ax1])
                T.writes(T_cast[v_ax0, v_ax1])
                T_cast[v_ax0, v_ax1] = T_rms_norm[v_ax0, v_ax1]

    @T.prim_func(s_tir=True)
    def scheduled(x: T.Buffer((n, T.int64(200)), "float32"), g: T.Buffer((T.int64(200),), "float32"), T_cast: T.Buffer((n, T.int64(200)), "float32")):
        T.func_attr({"op_pattern": 4, "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        T_multiply_red_shared = T.sblock_alloc_buffer((n,), scope="shared")
        T_multiply_red_rf_local = T.sblock_alloc_buffer((T.int64(128), n), scope="local")
        for ax0_fused in T.thread_binding(n, thread="blockIdx.x"):
            for ax1_fused_1 in T.thread_binding(T.int64(128), thread="threadIdx.x", annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                with T.sblock("T_multiply_red_rf_init"):
                    vax1_fused_1, v0 = T.axis.remap("SS", [ax1_fused_1, ax0_fused])
                    T.reads()
                    T.writes(T_multiply_red_rf_local[vax1_fused_1, v0])
                    T_multiply_red_rf_local[vax1_fused_1, v0] = T.float32(0.0)
                for ax1_fused_0, u in T.grid(T.int64(2), 1):
                    with T.sblock("T_multiply_red_rf_update"):
                        vax1_fused_1, v0, vax1_fused_0 = T.axis.remap("SSR", [ax1_fused_1, ax0_fused, ax1_fused_0])
                        T.where(ax1_fused_0 * T.int64(128) + ax1_fused_1 < T.int64(200))
                        T.reads(T_multiply_red_rf_local[vax1_fused_1, v0], x[v0, vax1_fused_0 * T.int64(128) + vax1_fused_1])
                        T.writes(T_multiply_red_rf_local[vax1_fused_1, v0])
                        T_multiply_red_rf_local[vax1_fused_1, v0] = T_multiply_red_rf_local[vax1_fused_1, v0] + x[v0, vax1_fused_0 * T.int64(128) + vax1_fused_1] * x[v0, vax1_fused_0 * T.int64(128) + vax1_fused_1]
            for ax1_fused in range(T.int64(1)):
                for ax0 in T.thread_binding(T.int64(128), thread="threadIdx.x"):
                    with T.sblock("T_multiply_red"):
                        vax1_fused_1, v0 = T.axis.remap("RS", [ax0, ax0_fused])
                        T.reads(T_multiply_red_rf_local[vax1_fused_1, v0])
                        T.writes(T_multiply_red_shared[v0])
                        with T.init():
                            T_multiply_red_shared[v0] = T.float32(0.0)
                        T_multiply_red_shared[v0] = T_multiply_red_shared[v0] + T_multiply_red_rf_local[vax1_fused_1, v0]
            for ax0_ax1_fused_0 in range(T.int64(2)):
                for ax0_ax1_fused_1 in T.thread_binding(T.int64(128), thread="threadIdx.x"):
                    with T.sblock("T_cast_2"):
                        v0 = T.axis.spatial(n, ax0_fused)
                        v1 = T.axis.spatial(T.int64(200), ax0_ax1_fused_0 * T.int64(128) + ax0_ax1_fused_1)
                        T.where(ax0_ax1_fused_0 * T.int64(128) + ax0_ax1_fused_1 < T.int64(200))
                        T.reads(T_multiply_red_shared[v0], x[v0, v1], g[v1])
                        T.writes(T_cast[v0, v1])
                        T_cast[v0, v1] = T.rsqrt(T_multiply_red_shared[v0] / T.float32(200.0) + T.float32(1.0000000000000001e-05)) * x[v0, v1] * g[v1]
