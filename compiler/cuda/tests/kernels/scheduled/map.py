# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(x: T.Buffer((n, T.int64(33)), "float32"), compute_intermediate_1: T.Buffer((n, T.int64(33)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        compute_intermediate = T.sblock_alloc_buffer((n, T.int64(33)))
        for i0, i1 in T.grid(n, T.int64(33)):
            with T.sblock("compute"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(x[v_i0, v_i1])
                T.writes(compute_intermediate[v_i0, v_i1])
                compute_intermediate[v_i0, v_i1] = T.max(x[v_i0, v_i1], T.float32(0.0))
        for i0, i1 in T.grid(n, T.int64(33)):
            with T.sblock("compute1"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(compute_intermediate[v_i0, v_i1])
                T.writes(compute_intermediate_1[v_i0, v_i1])
                compute_intermediate_1[v_i0, v_i1] = T.exp(compute_intermediate[v_i0, v_i1])

    @T.prim_func(s_tir=True)
    def scheduled(x: T.Buffer((n, T.int64(33)), "float32"), compute_intermediate_1: T.Buffer((n, T.int64(33)), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        # with T.sblock("root"):
        for ax0_ax1_fused_0 in T.thread_binding((n * T.int64(33) + T.int64(1023)) // T.int64(1024), thread="blockIdx.x"):
            for ax0_ax1_fused_1 in T.thread_binding(T.int64(1024), thread="threadIdx.x"):
                with T.sblock("compute1"):
                    v0 = T.axis.spatial(n, (ax0_ax1_fused_0 * T.int64(1024) + ax0_ax1_fused_1) // T.int64(33))
                    v1 = T.axis.spatial(T.int64(33), (ax0_ax1_fused_0 * T.int64(1024) + ax0_ax1_fused_1) % T.int64(33))
                    T.where(ax0_ax1_fused_0 * T.int64(1024) + ax0_ax1_fused_1 < n * T.int64(33))
                    T.reads(x[v0, v1])
                    T.writes(compute_intermediate_1[v0, v1])
                    compute_intermediate_1[v0, v1] = T.exp(T.max(x[v0, v1], T.float32(0.0)))
