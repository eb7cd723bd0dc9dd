# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((n, T.int64(32), T.int64(8), T.int64(8)), "float32"), g: T.Buffer((T.int64(32),), "float32"), b: T.Buffer((T.int64(32),), "float32"), T_reshape: T.Buffer((n, T.int64(32), T.int64(8), T.int64(8)), "float32")):
        T.func_attr({"op_pattern": 8, "tirx.noalias": True})
        # with T.sblock("root"):
        T_reshape_1 = T.sblock_alloc_buffer((n, T.int64(8), T.int64(4), T.int64(8), T.int64(8)))
        x_red_temp_v0 = T.sblock_alloc_buffer((n, T.int64(8)))
        x_red_temp_v1 = T.sblock_alloc_buffer((n, T.int64(8)))
        T_reshape_2 = T.sblock_alloc_buffer((T.int64(8), T.int64(4)))
        T_reshape_3 = T.sblock_alloc_buffer((T.int64(8), T.int64(4)))
        T_group_norm = T.sblock_alloc_buffer((n, T.int64(8), T.int64(4), T.int64(8), T.int64(8)))
        for ax0, ax1, ax2, ax3, ax4 in T.grid(n, T.int64(8), T.int64(4), T.int64(8), T.int64(8)):
            with T.sblock("T_reshape"):
                v_ax0, v_ax1, v_ax2, v_ax3, v_ax4 = T.axis.remap("SSSSS", [ax0, ax1, ax2, ax3, ax4])
                T.reads(x[((v_ax1 * T.int64(4) + (v_ax4 // T.int64(8) + v_ax3) // T.int64(8) + v_ax2) // T.int64(32) + v_ax0) % n, (v_ax1 * T.int64(4) + (v_ax4 // T.int64(8) + v_ax3) // T.int64(8) + v_ax2) % T.int64(32), (v_ax4 // T.int64(8) + v_ax3) % T.int64(8), v_ax4 % T.int64(8)])
                T.writes(T_reshape_1[v_ax0, v_ax1, v_ax2, v_ax3, v_ax4])
                T_reshape_1[v_ax0, v_ax1, v_ax2, v_ax3, v_ax4] = x[((v_ax1 * T.int64(4) + (v_ax4 // T.int64(8) + v_ax3) // T.int64(8) + v_ax2) // T.int64(32) + v_ax0) % n, (v_ax1 * T.int64(4) + (v_ax4 // T.int64(8) + v_ax3) // T.int64(8) + v_ax2) % T.int64(32), (v_ax4 // T.int64(8) + v_ax3) % T.int64(8), v_ax4 % T.int64(8)]
        for ax0, ax1, k2, k3, k4 in T.grid(n, T.int64(8), T.int64(4), T.int64(8), T.int64(8)):
            with T.sblock("x_red_temp"):
                v_ax0, v_ax1, v_k2, v_k3, v_k4 = T.axis.remap("SSRRR", [ax0, ax1, k2, k3, k4])
                T.reads(T_reshape_1[v_ax0, v_ax1, v_k2, v_k3, v_k4])
                T.writes(x_red_temp_v0[v_ax0, v_ax1], x_red_temp_v1[v_ax0, v_ax1])
                with T.init():
                    x_red_temp_v0[v_ax0, v_ax1] = T.float32(0.0)
                    x_red_temp_v1[v_ax0, v_ax1] = T.float32(0.0)
                v_x_red_temp_v0: T.let[T.float32] = x_red_temp_v0[v_ax0, v_ax1] + T_reshape_1[v_ax0, v_ax1, v_k2, v_k3, v_k4]
                v_x_red_temp_v1: T.let[T.float32] = x_red_temp_v1[v_ax0, v_ax1] + T_reshape_1[v_ax0, v_ax1, v_k2, v_k3, v_k4] * T_reshape_1[v_ax0, v_ax1, v_k2, v_k3, v_k4]
                x_red_temp_v0[v_ax0, v_ax1] = v_x_red_temp_v0
                x_red_temp_v1[v_ax0, v_ax1] = v_x_red_temp_v1
        for ax0, ax1 in T.grid(T.int64(8), T.int64(4)):
            with T.sblock("T_reshape_1"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(g[(v_ax0 * T.int64(4) + v_ax1) % T.int64(32)])
                T.writes(T_reshape_2[v_ax0, v_ax1])
                T_reshape_2[v_ax0, v_ax1] = g[(v_ax0 * T.int64(4) + v_ax1) % T.int64(32)]
        for ax0, ax1 in T.grid(T.int64(8), T.int64(4)):
            with T.sblock("T_reshape_2"):
                v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(b[(v_ax0 * T.int64(4) + v_ax1) % T.int64(32)])
                T.writes(T_reshape_3[v_ax0, v_ax1])
                T_reshape_3[v_ax0, v_ax1] = b[(v_ax0 * T.int64(4) + v_ax1) % T.int64(32)]
        for ax0, ax1, ax2, ax3, ax4 in T.grid(n, T.int64(8), T.int64(4), T.int64(8), T.int64(8)):
            with T.sblock("T_group_norm"):
                v_ax0, v_ax1, v_ax2, v_ax3, v_ax4 = T.axis.remap("SSSSS", [ax0, ax1, ax2, ax3, ax4])
                T.reads(T_reshape_1[v_ax0, v_ax1, v_ax2, v_ax3, v_ax4], x_red_temp_v0[v_ax0, v_ax1], x_red_temp_v1[v_ax0, v_ax1], T_reshape_2[v_ax1, v_ax2], T_reshape_3[v_ax1, v_ax2])
                T.writes(T_group_norm[v_ax0, v_ax1, v_ax2, v_ax3, v_ax4])
                T_group_norm[v_ax0, v_ax1, v_ax2, v_ax3, v_ax4] = (T_reshape_1[v_ax0, v_ax1, v_ax2, v_ax3, v_ax4] - x_red_temp_v0[v_ax0, v_ax1] / T.float32(256.0)) * T.rsqrt(x_red_temp_v1[v_ax0, v_ax1] / T.float32(256.0) - x_red_temp_v0[v_ax0, v_ax1] / T.float32(256.0) * (x_red_temp_v0[v_ax0, v_ax1] / T.float32(256.0)) + T.float32(1.0000000000000001e-05)) * T_reshape_2[v_ax1, v_ax2] + T_reshape_3[v_ax1, v_ax2]
        for ax0, ax1, ax2, ax3 in T.grid(n, T.int64(32), T.int64(8), T.int64(8)):
            with T.sblock("T_reshape_3"):
                v_ax0, v_ax1, v_ax2, v_ax3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
                T.reads(T_group_norm[(((v_ax3 // T.int64(8) + v_ax2) // T.int64(8) + v_ax1) // T.int64(32) + v_ax0) % n, ((v_ax3 // T.int64(8) + v_ax2) // T.int64(8) + v_ax1) % T.int64(32) // T.int64(4), ((v_ax3 // T.int64(8) + v_ax2) // T.int64(8) + v_ax1) % T.int64(4), (v_ax3 // T.int64(8) + v_ax2) % T.int64(8), v_ax3 % T.int64(8)])
                T.writes(T_reshape[v_ax0, v_ax1, v_ax2, v_ax3])
                T_reshape[v_ax0, v_ax1, v_ax2, v_ax3] = T_group_norm[(((v_ax3 // T.int64(8) + v_ax2) // T.int64(8) + v_ax1) // T.int64(32) + v_ax0) % n, ((v_ax3 // T.int64(8) + v_ax2) // T.int64(8) + v_ax1) % T.int64(32) // T.int64(4), ((v_ax3 // T.int64(8) + v_ax2) // T.int64(8) + v_ax1) % T.int64(4), (v_ax3 // T.int64(8) + v_ax2) % T.int64(8), v_ax3 % T.int64(8)]

    @T.prim_func(s_tir=True)
    def scheduled(x: T.Buffer((n, T.int64(32), T.int64(8), T.int64(8)), "float32"), g: T.Buffer((T.int64(32),), "float32"), b: T.Buffer((T.int64(32),), "float32"), T_reshape: T.Buffer((n, T.int64(32), T.int64(8), T.int64(8)), "float32")):
        T.func_attr({"op_pattern": 8, "tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        x_red_temp_v0_shared = T.sblock_alloc_buffer((n, T.int64(8)), scope="shared")
        x_red_temp_v1_shared = T.sblock_alloc_buffer((n, T.int64(8)), scope="shared")
        for ax0_ax1_fused in T.thread_binding(n, thread="blockIdx.x"):
            for ax0, ax1 in T.grid(T.int64(1), T.int64(8)):
                for ax2_ax3_ax4_fused_1 in T.thread_binding(T.int64(256), thread="threadIdx.x"):
                    for ax2_ax3_ax4_fused_0 in T.serial(T.int64(1), annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("x_red_temp"):
                            v0 = T.axis.spatial(n, ax0_ax1_fused + ax0)
                            v1 = T.axis.spatial(T.int64(8), ax1)
                            v2 = T.axis.reduce(T.int64(4), (ax2_ax3_ax4_fused_0 * T.int64(256) + ax2_ax3_ax4_fused_1) // T.int64(64))
                            v3 = T.axis.reduce(T.int64(8), (ax2_ax3_ax4_fused_0 * T.int64(256) + ax2_ax3_ax4_fused_1) % T.int64(64) // T.int64(8))
                            v4 = T.axis.reduce(T.int64(8), (ax2_ax3_ax4_fused_0 * T.int64(256) + ax2_ax3_ax4_fused_1) % T.int64(8))
                            T.reads(x[v0, v1 * T.int64(4) + v2, v3, v4])
                            T.writes(x_red_temp_v0_shared[v0, v1], x_red_temp_v1_shared[v0, v1])
                            with T.init():
                                x_red_temp_v0_shared[v0, v1] = T.float32(0.0)
                                x_red_temp_v1_shared[v0, v1] = T.float32(0.0)
                            v_x_red_temp_v0: T.let[T.float32] = x_red_temp_v0_shared[v0, v1] + x[v0, v1 * T.int64(4) + v2, v3, v4]
                            v_x_red_temp_v1: T.let[T.float32] = x_red_temp_v1_shared[v0, v1] + x[v0, v1 * T.int64(4) + v2, v3, v4] * x[v0, v1 * T.int64(4) + v2, v3, v4]
                            x_red_temp_v0_shared[v0, v1] = v_x_red_temp_v0
                            x_red_temp_v1_shared[v0, v1] = v_x_red_temp_v1
            for ax2, ax3 in T.grid(T.int64(32), T.int64(8)):
                for ax4_1 in T.thread_binding(T.int64(256), thread="threadIdx.x"):
                    for ax4_0 in T.serial(T.int64(1), annotations={"pragma_auto_unroll_max_step": 256, "pragma_unroll_explicit": 1}):
                        with T.sblock("T_reshape_3"):
                            v0 = T.axis.spatial(T.int64(1), T.int64(0))
                            v1, v2, v3 = T.axis.remap("SSS", [ax0_ax1_fused, ax2, ax3])
                            v4 = T.axis.spatial(T.int64(8), ax4_0 * T.int64(256) + ax4_1)
                            T.where(ax4_0 * T.int64(256) + ax4_1 < T.int64(8))
                            T.reads(x[v1, v2, v3, v4], x_red_temp_v0_shared[v1, v2 // T.int64(4)], x_red_temp_v1_shared[v1, v2 // T.int64(4)], g[v2], b[v2])
                            T.writes(T_reshape[v1, v2, v3, v4])
                            T_reshape[v1, v2, v3, v4] = (x[v1, v2, v3, v4] - x_red_temp_v0_shared[v1, v2 // T.int64(4)] / T.float32(256.0)) * T.rsqrt(x_red_temp_v1_shared[v1, v2 // T.int64(4)] / T.float32(256.0) - x_red_temp_v0_shared[v1, v2 // T.int64(4)] / T.float32(256.0) * (x_red_temp_v0_shared[v1, v2 // T.int64(4)] / T.float32(256.0)) + T.float32(1.0000000000000001e-05)) * g[v2] + b[v2]
