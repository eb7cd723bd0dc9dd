# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

pages_elem_offset = TypeVar("pages_elem_offset")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(Q: T.Buffer(("B", 4, 64), "float32"), pages: T.Buffer(("max_num_pages", 2, 2, 16, 64), "float32"), page_table_indptr: T.Buffer((B + 1,), "int32", offset_factor=1), page_table_values: T.Buffer(("nnz_pages",), "int32", offset_factor=1), length_info: T.Buffer((B,), "int32", offset_factor=1), k_rope_pos_offset: T.Buffer((B,), "int32", offset_factor=1), q_rope_position: T.Buffer((B,), "int32", offset_factor=1), output: T.Buffer((B, 4, 64), "float32"), lse: T.Buffer((B, 4), "float32"), rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32):
        B = T.int32()
        max_num_pages = T.int32()
        nnz_pages = T.int32()
        T.func_attr({"tirx.is_scheduled": True})
        # with T.sblock("root"):
        for b in range(B):
            with T.sblock("attn"):
                kv_chunk_len = T.Buffer((1,), "int32")
                T.reads(page_table_indptr[b:b + 2], length_info[b], q_rope_position[b], Q[b, 0:4, 0:64], page_table_values[page_table_indptr[b]:page_table_indptr[b] + ((kv_chunk_len[0] - 1) // 16 + 1)], k_rope_pos_offset[b], pages[0:max_num_pages, 0:2, 0:2, 0:16, 0:64])
                T.writes(output[b, 0:4, 0:64], lse[b, 0:4])
                O_local = T.sblock_alloc_buffer((64,))
                Q_local = T.sblock_alloc_buffer((64,))
                K_local = T.sblock_alloc_buffer((64,))
                V_local = T.sblock_alloc_buffer((64,))
                kv_chunk_len = T.sblock_alloc_buffer((1,), "int32")
                m_val = T.sblock_alloc_buffer((1,))
                new_m = T.sblock_alloc_buffer((1,))
                d_val = T.sblock_alloc_buffer((1,))
                S_val = T.sblock_alloc_buffer((1,))
                scale_O = T.sblock_alloc_buffer((1,))
                factor = T.sblock_alloc_buffer((1,))
                cur_page_indptr_begin: T.let[T.int32] = page_table_indptr[b]
                cur_page_indptr_end: T.let[T.int32] = page_table_indptr[b + 1]
                kv_chunk_len[0] = T.if_then_else(cur_page_indptr_begin != cur_page_indptr_end, (cur_page_indptr_end - cur_page_indptr_begin - 1) * 16 + length_info[b], 0)
                for h_qo in range(4):
                    m_val[0] = T.float32(-50000.0)
                    d_val[0] = T.float32(1.0)
                    for d in range(64):
                        O_local[d] = T.float32(0.0)
                    for d in range(64):
                        freq = T.float32()
                        Q_local[d] = T.if_then_else(rotary_mode == 1, T.Let(T.cos(freq) * Q[b, h_qo, d] + T.sin(freq) * T.if_then_else(d < 32, Q[b, h_qo, d + 32] * T.float32(-1.0), Q[b, h_qo, d - 32]), where={freq: T.Cast("float32", q_rope_position[b]) * rope_scale / T.pow(rope_theta, T.Cast("float32", d * 2 % 64) / T.float32(64.0))}), Q[b, h_qo, d])
                    for row_idx in range(kv_chunk_len[0]):
                        seq_offset: T.let[T.int32] = row_idx
                        page_no: T.let[T.int32] = page_table_values[cur_page_indptr_begin + seq_offset // 16]
                        page_offset: T.let[T.int32] = seq_offset % 16
                        for d in range(64):
                            freq = T.float32()
                            K_local[d] = T.if_then_else(rotary_mode == 1, T.Let(T.cos(freq) * pages[page_no, 0, h_qo // 2, page_offset, d] + T.sin(freq) * T.if_then_else(d < 32, pages[page_no, 0, h_qo // 2, page_offset, d + 32] * T.float32(-1.0), pages[page_no, 0, h_qo // 2, page_offset, d - 32]), where={freq: T.Cast("float32", k_rope_pos_offset[b] + row_idx) * rope_scale / T.pow(rope_theta, T.Cast("float32", d * 2 % 64) / T.float32(64.0))}), pages[page_no, 0, h_qo // 2, page_offset, d])
                        S_val[0] = T.float32(0.0)
                        for d in range(64):
                            S_val[0] = S_val[0] + Q_local[d] * K_local[d]
                        S_val[0] = S_val[0] * (sm_scale * T.float32(1.4426950408889634))
                        new_m[0] = T.max(m_val[0], S_val[0])
                        d_val[0] = d_val[0] * T.exp2(m_val[0] - new_m[0]) + T.exp2(S_val[0] - new_m[0])
                        scale_O[0] = T.exp2(m_val[0] - new_m[0])
                        for d in range(64):
                            O_local[d] = O_local[d] * scale_O[0]
                        m_val[0] = new_m[0]
                        for d in range(64):
                            V_local[d] = pages[page_no, 1, h_qo // 2, page_offset, d]
                        factor[0] = T.exp2(S_val[0] - m_val[0])
                        for d in range(64):
                            O_local[d] = O_local[d] + V_local[d] * factor[0]
                    for d in range(64):
                        O_local[d] = O_local[d] / d_val[0]
                        output[b, h_qo, d] = O_local[d]
                    lse[b, h_qo] = m_val[0] + T.log2(d_val[0])

    @T.prim_func(s_tir=True)
    def scheduled(Q: T.Buffer(("B", 4, 64), "float32"), pages: T.Buffer(("max_num_pages", 2, 2, 16, 64), "float32", elem_offset=pages_elem_offset), page_table_indptr: T.Buffer((B + 1,), "int32", offset_factor=1), page_table_values: T.Buffer(("nnz_pages",), "int32", offset_factor=1), length_info: T.Buffer((B,), "int32", offset_factor=1), k_rope_pos_offset: T.Buffer((B,), "int32", offset_factor=1), q_rope_position: T.Buffer((B,), "int32", offset_factor=1), output: T.Buffer((B, 4, 64), "float32"), lse: T.Buffer((B, 4), "float32"), rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32):
        B = T.int32()
        max_num_pages = T.int32()
        nnz_pages = T.int32()
        T.func_attr({"tirx.is_scheduled": True})
        # with T.sblock("root"):
        for bx in T.thread_binding(B, thread="blockIdx.x"):
            for fused_by_bz in T.thread_binding(2, thread="blockIdx.y"):
                for ty in T.thread_binding(2, thread="threadIdx.y"):
                    for tx in T.thread_binding(16, thread="threadIdx.x"):
                        for tz in T.thread_binding(16, thread="threadIdx.z"):
                            with T.sblock("attn"):
                                T.reads(page_table_indptr[bx:bx + 2], length_info[bx], q_rope_position[bx], Q[bx, (fused_by_bz + 1) // 2 * 2 + ty, tx * 4 - 32:tx * 4 - 32 + 68])
                                T.writes(output[bx, fused_by_bz % 2 * 2 + fused_by_bz // 2 * 2 + ty, tx * 4:tx * 4 + 4], lse[bx, fused_by_bz % 2 * 2 + fused_by_bz // 2 * 2 + ty])
                                Q_local = T.sblock_alloc_buffer((4,), scope="local")
                                kv_chunk_len = T.sblock_alloc_buffer((1,), "int32", scope="local")
                                K_smem = T.sblock_alloc_buffer((32, 64), scope="shared")
                                V_smem = T.sblock_alloc_buffer((32, 64), scope="shared")
                                O_allreduce = T.sblock_alloc_buffer((16, 2, 64), scope="shared")
                                md_allreduce = T.sblock_alloc_buffer((16, 2, 2), scope="shared")
                                S_reduce_local = T.sblock_alloc_buffer((1,), scope="local")
                                t0 = T.sblock_alloc_buffer((1,), scope="local")
                                S_local = T.sblock_alloc_buffer((2,), scope="local")
                                QK_local = T.sblock_alloc_buffer((4,), scope="local")
                                V_local = T.sblock_alloc_buffer((4,), scope="local")
                                m_prev = T.sblock_alloc_buffer((1,), scope="local")
                                d_prev = T.sblock_alloc_buffer((1,), scope="local")
                                other_m = T.sblock_alloc_buffer((1,), scope="local")
                                other_d = T.sblock_alloc_buffer((1,), scope="local")
                                exp_mprev = T.sblock_alloc_buffer((1,), scope="local")
                                exp_otherm = T.sblock_alloc_buffer((1,), scope="local")
                                other_o = T.sblock_alloc_buffer((4,), scope="local")
                                st_m = T.sblock_alloc_buffer((1,), scope="local")
                                st_d = T.sblock_alloc_buffer((1,), scope="local")
                                O_local = T.sblock_alloc_buffer((4,), scope="local")
                                by: T.let[T.int32] = fused_by_bz % 2
                                bz: T.let[T.int32] = fused_by_bz // 2
                                batch_idx: T.let[T.int32] = bx
                                cur_page_indptr_begin: T.let[T.int32] = page_table_indptr[batch_idx]
                                cur_page_indptr_end: T.let[T.int32] = page_table_indptr[batch_idx + 1]
                                kv_chunk_len[0] = T.if_then_else(cur_page_indptr_begin != cur_page_indptr_end, (cur_page_indptr_end - cur_page_indptr_begin - 1) * 16 + length_info[batch_idx], 0)
                                st_m[0] = T.float32(-50000.0)
                                st_d[0] = T.float32(1.0)
                                for vec in T.vectorized(4):
                                    O_local[vec] = T.float32(0.0)
                                for vec in T.vectorized(4):
                                    freq = T.float32()
                                    Q_local[vec] = T.if_then_else(rotary_mode == 1, T.Let(T.cos(freq) * Q[bx, by * 2 + bz * 2 + ty, tx * 4 + vec] + T.sin(freq) * T.if_then_else(tx * 4 + vec < 32, Q[bx, by * 2 + bz * 2 + ty, tx * 4 + vec + 32] * T.float32(-1.0), Q[bx, by * 2 + bz * 2 + ty, tx * 4 + vec - 32]), where={freq: T.Cast("float32", q_rope_position[batch_idx]) * rope_scale / T.pow(rope_theta, T.Cast("float32", (tx * 4 + vec) * 2 % 64) / T.float32(64.0))}), Q[bx, by * 2 + bz * 2 + ty, tx * 4 + vec])
                                for iterator in range((kv_chunk_len[0] + 31) // 32):
                                    tile_start_s: T.let[T.int32] = tz * 2 + ty
                                    tile_start_g: T.let[T.int32] = (iterator * 16 + tz) * 2 + ty
                                    for j in range(1):
                                        with T.sblock("KV_load"):
                                            T.reads()
                                            T.writes()
                                            row_g: T.let[T.int32] = tile_start_g + j
                                            if row_g < kv_chunk_len[0]:
                                                seq_offset: T.let[T.int32] = row_g
                                                page_no: T.let[T.int32] = page_table_values[cur_page_indptr_begin + seq_offset // 16]
                                                page_offset: T.let[T.int32] = seq_offset % 16
                                                for vec in T.vectorized(4):
                                                    freq = T.float32()
                                                    K_smem[tile_start_s + j, tx * 4 + vec] = T.if_then_else(rotary_mode == 1, T.Let(T.cos(freq) * pages[page_no, 0, by, page_offset, tx * 4 + vec] + T.sin(freq) * T.if_then_else(tx * 4 + vec < 32, pages[page_no, 0, by, page_offset, tx * 4 + vec + 32] * T.float32(-1.0), pages[page_no, 0, by, page_offset, tx * 4 + vec - 32]), where={freq: T.Cast("float32", k_rope_pos_offset[batch_idx] + row_g) * rope_scale / T.pow(rope_theta, T.Cast("float32", (tx * 4 + vec) * 2 % 64) / T.float32(64.0))}), pages[page_no, 0, by, page_offset, tx * 4 + vec])
                                                    V_smem[tile_start_s + j, tx * 4 + vec] = pages[page_no, 1, by, page_offset, tx * 4 + vec]
                                            else:
                                                for vec in T.vectorized(4):
                                                    K_smem[tile_start_s + j, tx * 4 + vec] = T.float32(0.0)
                                                    V_smem[tile_start_s + j, tx * 4 + vec] = T.float32(0.0)
                                    T.tvm_storage_sync("shared", T.bool(False), -1)
                                    m_prev[0] = st_m[0]
                                    for j in range(2):
                                        for vec in T.vectorized(4):
                                            QK_local[vec] = Q_local[vec] * K_smem[tz * 2 + j, tx * 4 + vec] * sm_scale * T.float32(1.4426950408889634)
                                        S_reduce_local[0] = T.float32(0.0)
                                        for vec in T.unroll(4):
                                            S_reduce_local[0] = S_reduce_local[0] + QK_local[vec]
                                        with T.sblock("block_cross_thread"):
                                            T.reads(S_reduce_local[0])
                                            T.writes(t0[0])
                                            T.attr(T.comm_reducer(lambda x0, y0: x0 + y0, [T.float32(0.0)]), "reduce_scope", 0)
                                            T.tvm_thread_allreduce(T.uint32(1), S_reduce_local[0], T.bool(True), t0[0], tx)
                                        S_local[j] = T.float32(-50000.0)
                                        if (iterator * 16 + tz) * 2 + j < kv_chunk_len[0]:
                                            S_local[j] = t0[0]
                                        st_m[0] = T.max(st_m[0], S_local[j])
                                    o_scale: T.let[T.float32] = T.exp2(m_prev[0] - st_m[0])
                                    st_d[0] = st_d[0] * o_scale
                                    for j in range(2):
                                        S_local[j] = T.exp2(S_local[j] - st_m[0])
                                        st_d[0] = st_d[0] + S_local[j]
                                    for j in T.vectorized(4):
                                        O_local[j] = O_local[j] * o_scale
                                    for j in range(2):
                                        for vec in T.vectorized(4):
                                            V_local[vec] = V_smem[tz * 2 + j, tx * 4 + vec]
                                        for vec in T.vectorized(4):
                                            O_local[vec] = O_local[vec] + V_local[vec] * S_local[j]
                                for vec in T.vectorized(4):
                                    O_allreduce[tz, ty, tx * 4 + vec] = O_local[vec]
                                md_allreduce[tz, ty, 0] = st_m[0]
                                md_allreduce[tz, ty, 1] = st_d[0]
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                st_m[0] = T.float32(-50000.0)
                                st_d[0] = T.float32(1.0)
                                for vec in T.vectorized(4):
                                    O_local[vec] = T.float32(0.0)
                                for j in range(16):
                                    m_prev[0] = st_m[0]
                                    d_prev[0] = st_d[0]
                                    other_m[0] = md_allreduce[j, ty, 0]
                                    other_d[0] = md_allreduce[j, ty, 1]
                                    for vec in T.vectorized(4):
                                        other_o[vec] = O_allreduce[j, ty, tx * 4 + vec]
                                    st_m[0] = T.max(st_m[0], other_m[0])
                                    st_d[0] = d_prev[0] * T.exp2(m_prev[0] - st_m[0]) + other_d[0] * T.exp2(other_m[0] - st_m[0])
                                    exp_mprev[0] = T.exp2(m_prev[0] - st_m[0])
                                    exp_otherm[0] = T.exp2(other_m[0] - st_m[0])
                                    for vec in T.vectorized(4):
                                        O_local[vec] = O_local[vec] * exp_mprev[0] + other_o[vec] * exp_otherm[0]
                                for vec in T.vectorized(4):
                                    O_local[vec] = O_local[vec] / st_d[0]
                                for vec in T.vectorized(4):
                                    output[batch_idx, by * 2 + bz * 2 + ty, tx * 4 + vec] = O_local[vec]
                                lse[batch_idx, by * 2 + bz * 2 + ty] = st_m[0] + T.log2(st_d[0])
