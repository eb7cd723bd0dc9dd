# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

pages_elem_offset = TypeVar("pages_elem_offset")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(q: T.Buffer(("total_len", 4, 32), "float16"), q_indptr: T.Buffer(("batch_size + 1",), "int32", offset_factor=1), pages: T.Buffer(("max_num_pages", 2, 2, 16, 32), "float16"), page_indptr: T.Buffer((batch_size + 1,), "int32", offset_factor=1), page_values: T.Buffer(("nnz_pages",), "int32", offset_factor=1), length_info: T.Buffer((batch_size,), "int32", offset_factor=1), k_rope_pos_offset: T.Buffer((batch_size,), "int32", offset_factor=1), q_rope_position: T.Buffer((total_len,), "int32", offset_factor=1), output: T.Buffer((total_len, 4, 32), "float16"), lse: T.Buffer((total_len, 4), "float32"), causal: T.int32, rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32):
        total_len = T.int32()
        batch_size = T.int32()
        max_num_pages = T.int32()
        nnz_pages = T.int32()
        # with T.sblock("root"):
        for h_qo, b_idx in T.grid(4, batch_size):
            with T.sblock("attn"):
                T.reads(page_indptr[b_idx:b_idx + 2], length_info[b_idx], q_indptr[b_idx:b_idx + 2], q_rope_position[q_indptr[b_idx]:q_indptr[b_idx] + (q_indptr[b_idx + 1] - q_indptr[b_idx])], q[q_indptr[b_idx]:q_indptr[b_idx] + (q_indptr[b_idx + 1] - q_indptr[b_idx]), h_qo, 0:32], page_values[page_indptr[b_idx]:page_indptr[b_idx] + max_num_pages], k_rope_pos_offset[b_idx], pages[0:max_num_pages, 0:2, h_qo // 2, 0:16, 0:32])
                T.writes(output[q_indptr[b_idx]:q_indptr[b_idx] + (q_indptr[b_idx + 1] - q_indptr[b_idx]), h_qo, 0:32], lse[q_indptr[b_idx]:q_indptr[b_idx] + (q_indptr[b_idx + 1] - q_indptr[b_idx]), h_qo])
                O_local = T.sblock_alloc_buffer((32,))
                Q_local = T.sblock_alloc_buffer((32,))
                K_local = T.sblock_alloc_buffer((32,))
                V_local = T.sblock_alloc_buffer((32,))
                kv_chunk_len = T.sblock_alloc_buffer((1,), "int32")
                m_val = T.sblock_alloc_buffer((1,))
                new_m = T.sblock_alloc_buffer((1,))
                d_val = T.sblock_alloc_buffer((1,))
                S_val = T.sblock_alloc_buffer((1,))
                scale_O = T.sblock_alloc_buffer((1,))
                factor = T.sblock_alloc_buffer((1,))
                cur_page_indptr_begin: T.let[T.int32] = page_indptr[b_idx]
                cur_page_indptr_end: T.let[T.int32] = page_indptr[b_idx + 1]
                kv_chunk_len[0] = T.if_then_else(cur_page_indptr_begin != cur_page_indptr_end, (cur_page_indptr_end - cur_page_indptr_begin - 1) * 16 + length_info[b_idx], 0)
                for q_idx in range(q_indptr[b_idx + 1] - q_indptr[b_idx]):
                    m_val[0] = T.float32(-50000.0)
                    d_val[0] = T.float32(1.0)
                    for d_idx in range(32):
                        O_local[d_idx] = T.float32(0.0)
                    curl_q: T.let[T.int32] = q_indptr[b_idx] + q_idx
                    for d_idx in range(32):
                        freq = T.float32()
                        Q_local[d_idx] = T.Cast("float32", T.if_then_else(rotary_mode == 1, T.Let(T.Cast("float16", T.cos(freq) * T.Cast("float32", q[curl_q, h_qo, d_idx]) + T.sin(freq) * T.Cast("float32", T.if_then_else(d_idx < 16, q[curl_q, h_qo, d_idx + 16] * T.float16(-1.0), q[curl_q, h_qo, d_idx - 16]))), where={freq: T.Cast("float32", q_rope_position[curl_q]) * rope_scale / T.pow(rope_theta, T.Cast("float32", d_idx * 2 % 32) / T.float32(32.0))}), q[curl_q, h_qo, d_idx]))
                    for row_idx in range(max_num_pages * 16):
                        if row_idx < kv_chunk_len[0]:
                            page_no: T.let[T.int32] = page_values[cur_page_indptr_begin + row_idx // 16]
                            page_offset: T.let[T.int32] = row_idx % 16
                            for d_idx in range(32):
                                freq = T.float32()
                                K_local[d_idx] = T.Cast("float32", T.if_then_else(rotary_mode == 1, T.Let(T.Cast("float16", T.cos(freq) * T.Cast("float32", pages[page_no, 0, h_qo // 2, page_offset, d_idx]) + T.sin(freq) * T.Cast("float32", T.if_then_else(d_idx < 16, pages[page_no, 0, h_qo // 2, page_offset, d_idx + 16] * T.float16(-1.0), pages[page_no, 0, h_qo // 2, page_offset, d_idx - 16]))), where={freq: T.Cast("float32", k_rope_pos_offset[b_idx] + row_idx) * rope_scale / T.pow(rope_theta, T.Cast("float32", d_idx * 2 % 32) / T.float32(32.0))}), pages[page_no, 0, h_qo // 2, page_offset, d_idx]))
                                V_local[d_idx] = T.Cast("float32", pages[page_no, 1, h_qo // 2, page_offset, d_idx])
                            S_val[0] = T.float32(0.0)
                            for d_idx in range(32):
                                S_val[0] = S_val[0] + Q_local[d_idx] * K_local[d_idx]
                            S_val[0] = S_val[0] * (sm_scale * T.float32(1.4426950408889634))
                            if T.if_then_else(T.And(causal > 0, T.bool(False)), row_idx < kv_chunk_len[0] and row_idx >= T.max(kv_chunk_len[0] - T.max(0 - q_idx - 1, 0), 0), T.if_then_else(causal > 0, row_idx < kv_chunk_len[0] - (q_indptr[b_idx + 1] - q_indptr[b_idx]) + q_idx + 1, row_idx < kv_chunk_len[0])):
                                new_m[0] = T.max(m_val[0], S_val[0])
                            else:
                                S_val[0] = T.float32(-50000.0)
                            d_val[0] = d_val[0] * T.exp2(m_val[0] - new_m[0])
                            d_val[0] = d_val[0] + T.exp2(S_val[0] - new_m[0])
                            scale_O[0] = T.exp2(m_val[0] - new_m[0])
                            m_val[0] = new_m[0]
                            factor[0] = T.exp2(S_val[0] - m_val[0])
                            for d_idx in range(32):
                                O_local[d_idx] = O_local[d_idx] * scale_O[0]
                            for d_idx in range(32):
                                O_local[d_idx] = O_local[d_idx] + V_local[d_idx] * factor[0]
                    for d_idx in range(32):
                        O_local[d_idx] = O_local[d_idx] / d_val[0]
                        output[curl_q, h_qo, d_idx] = T.Cast("float16", O_local[d_idx])
                    lse[curl_q, h_qo] = m_val[0] + T.log2(d_val[0])

    @T.prim_func(s_tir=True)
    def scheduled(q: T.Buffer(("total_len", 4, 32), "float16"), q_indptr: T.Buffer(("batch_size + 1",), "int32", offset_factor=1), pages: T.Buffer(("max_num_pages", 2, 2, 16, 32), "float16", elem_offset=pages_elem_offset), page_indptr: T.Buffer((batch_size + 1,), "int32", offset_factor=1), page_values: T.Buffer(("nnz_pages",), "int32", offset_factor=1), length_info: T.Buffer((batch_size,), "int32", offset_factor=1), k_rope_pos_offset: T.Buffer((batch_size,), "int32", offset_factor=1), q_rope_position: T.Buffer((total_len,), "int32", offset_factor=1), output: T.Buffer((total_len, 4, 32), "float16"), lse: T.Buffer((total_len, 4), "float32"), causal: T.int32, rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32):
        total_len = T.int32()
        batch_size = T.int32()
        max_num_pages = T.int32()
        nnz_pages = T.int32()
        T.func_attr({"tirx.is_scheduled": True})
        # with T.sblock("root"):
        for lbx in T.thread_binding(16, thread="blockIdx.x"):
            for lby in T.thread_binding(2, thread="blockIdx.y"):
                for lty in T.thread_binding(4, thread="threadIdx.y"):
                    for ltx in T.thread_binding(32, thread="threadIdx.x"):
                        with T.sblock("attn"):
                            bx, by, ty, tx = T.axis.remap("SSSS", [lbx, lby, lty, ltx])
                            T.reads()
                            T.writes()
                            tile_id = T.sblock_alloc_buffer((1,), "int32", scope="local")
                            batch_idx = T.sblock_alloc_buffer((1,), "int32", scope="local")
                            batch_tiles = T.sblock_alloc_buffer((1,), "int32", scope="local")
                            batch_rows = T.sblock_alloc_buffer((1,), "int32", scope="local")
                            iterator = T.sblock_alloc_buffer((1,), "int32", scope="local")
                            kv_chunk_len = T.sblock_alloc_buffer((1,), "int32", scope="local")
                            Q_smem = T.sblock_alloc_buffer((32, 32), "float16", scope="shared")
                            K_smem = T.sblock_alloc_buffer((32, 32), "float16", scope="shared")
                            V_smem = T.sblock_alloc_buffer((32, 32), "float16", scope="shared")
                            O_local = T.sblock_alloc_buffer((32, 32), scope="local")
                            S_smem = T.sblock_alloc_buffer((32, 32), scope="shared")
                            S_local = T.sblock_alloc_buffer((32, 32), scope="local")
                            m_smem = T.sblock_alloc_buffer((32,), scope="shared")
                            m_prev_smem = T.sblock_alloc_buffer((32,), scope="shared")
                            d_smem = T.sblock_alloc_buffer((32,), scope="shared")
                            m_new = T.sblock_alloc_buffer((1,), scope="local")
                            m_prev = T.sblock_alloc_buffer((1,), scope="local")
                            d_new = T.sblock_alloc_buffer((1,), scope="local")
                            tile_id[0] = bx
                            batch_idx[0] = 0
                            batch_rows[0] = (q_indptr[1] - q_indptr[0]) * 2
                            batch_tiles[0] = (batch_rows[0] + 32 - 1) // 32
                            while T.tvm_thread_invariant(batch_idx[0] < batch_size):
                                while tile_id[0] >= batch_tiles[0] and batch_idx[0] < batch_size:
                                    tile_id[0] = tile_id[0] - batch_tiles[0]
                                    batch_idx[0] = batch_idx[0] + 1
                                    if batch_idx[0] < batch_size:
                                        b_idx: T.let[T.int32] = batch_idx[0]
                                        batch_rows[0] = (q_indptr[b_idx + 1] - q_indptr[b_idx]) * 2
                                        batch_tiles[0] = (batch_rows[0] + 32 - 1) // 32
                                if T.tvm_thread_invariant(batch_idx[0] < batch_size):
                                    b_idx: T.let[T.int32] = batch_idx[0]
                                    LH_start: T.let[T.int32] = tile_id[0] * 32
                                    q_indptr_val: T.let[T.int32] = q_indptr[b_idx]
                                    cur_page_indptr_begin: T.let[T.int32] = page_indptr[b_idx]
                                    cur_page_indptr_end: T.let[T.int32] = page_indptr[b_idx + 1]
                                    kv_chunk_len[0] = T.if_then_else(cur_page_indptr_begin != cur_page_indptr_end, (cur_page_indptr_end - cur_page_indptr_begin - 1) * 16 + length_info[b_idx], 0)
                                    T.tvm_storage_sync("shared", T.bool(False), -1)
                                    for i in range(1):
                                        row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                        if row < 32:
                                            m_smem[row] = T.float32(-50000.0)
                                            d_smem[row] = T.float32(1.0)
                                    for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for li_1 in range(2):
                                                for lj_1_0 in T.unroll(1):
                                                    for lj_1_1 in T.vectorized(4):
                                                        with T.sblock("O_init"):
                                                            i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1_0 * 4 + lj_1_1)
                                                            T.reads()
                                                            T.writes(O_local[i, j])
                                                            O_local[i, j] = T.float32(0.0)
                                    T.tvm_storage_sync("shared", T.bool(False), -1)
                                    for li_1_lj_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_1_lj_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for li_0, lj_0_0 in T.grid(1, 2):
                                                for lj_1 in T.vectorized(4):
                                                    with T.sblock("Q_load"):
                                                        i = T.axis.spatial(32, li_0 * 32 + (li_1_lj_0_1_fused_0 * 32 + li_1_lj_0_1_fused_1) // 4)
                                                        j = T.axis.spatial(32, lj_0_0 * 16 + (li_1_lj_0_1_fused_0 * 32 + li_1_lj_0_1_fused_1) % 4 * 4 + lj_1)
                                                        T.reads()
                                                        T.writes()
                                                        cur_L: T.let[T.int32] = q_indptr_val + (LH_start + i) // 2
                                                        cur_H_qo: T.let[T.int32] = by * 2 + (LH_start + i) % 2
                                                        if cur_L < q_indptr[b_idx + 1]:
                                                            freq = T.float32()
                                                            Q_smem[i, j] = T.if_then_else(rotary_mode == 1, T.Let(T.Cast("float16", T.cos(freq) * T.Cast("float32", q[cur_L, cur_H_qo, j]) + T.sin(freq) * T.Cast("float32", T.if_then_else(j < 16, q[cur_L, cur_H_qo, j + 16] * T.float16(-1.0), q[cur_L, cur_H_qo, j - 16]))), where={freq: T.Cast("float32", q_rope_position[cur_L]) * rope_scale / T.pow(rope_theta, T.Cast("float32", j * 2 % 32) / T.float32(32.0))}), q[cur_L, cur_H_qo, j])
                                                        else:
                                                            Q_smem[i, j] = T.float16(0.0)
                                    T.tvm_storage_sync("shared", T.bool(False), -1)
                                    for iterator_1 in range((kv_chunk_len[0] + 31) // 32):
                                        L_kv_start: T.let[T.int32] = iterator_1 * 32
                                        for lz_1_ly_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                            for lz_1_ly_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                for lz_0, ly_0_0 in T.grid(1, 2):
                                                    for ly_1 in T.vectorized(4):
                                                        with T.sblock("K_load"):
                                                            i = T.axis.spatial(32, lz_0 * 32 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) // 4)
                                                            j = T.axis.spatial(32, ly_0_0 * 16 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) % 4 * 4 + ly_1)
                                                            T.reads()
                                                            T.writes()
                                                            cur_L: T.let[T.int32] = L_kv_start + i
                                                            if cur_L < kv_chunk_len[0]:
                                                                seq_offset: T.let[T.int32] = cur_L
                                                                page_no: T.let[T.int32] = page_values[cur_page_indptr_begin + seq_offset // 16]
                                                                page_offset: T.let[T.int32] = seq_offset % 16
                                                                freq = T.float32()
                                                                K_smem[i, j] = T.if_then_else(rotary_mode == 1, T.Let(T.Cast("float16", T.cos(freq) * T.Cast("float32", pages[page_no, 0, by, page_offset, j]) + T.sin(freq) * T.Cast("float32", T.if_then_else(j < 16, pages[page_no, 0, by, page_offset, j + 16] * T.float16(-1.0), pages[page_no, 0, by, page_offset, j - 16]))), where={freq: T.Cast("float32", k_rope_pos_offset[b_idx] + cur_L) * rope_scale / T.pow(rope_theta, T.Cast("float32", j * 2 % 32) / T.float32(32.0))}), pages[page_no, 0, by, page_offset, j])
                                                            else:
                                                                K_smem[i, j] = T.float16(0.0)
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        for lz_1_ly_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                            for lz_1_ly_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                for lz_0, ly_0_0 in T.grid(1, 2):
                                                    for ly_1 in T.vectorized(4):
                                                        with T.sblock("V_load"):
                                                            i = T.axis.spatial(32, lz_0 * 32 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) // 4)
                                                            j = T.axis.spatial(32, ly_0_0 * 16 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) % 4 * 4 + ly_1)
                                                            T.reads()
                                                            T.writes()
                                                            cur_L: T.let[T.int32] = L_kv_start + i
                                                            if cur_L < kv_chunk_len[0]:
                                                                seq_offset: T.let[T.int32] = cur_L
                                                                page_no: T.let[T.int32] = page_values[cur_page_indptr_begin + seq_offset // 16]
                                                                page_offset: T.let[T.int32] = seq_offset % 16
                                                                V_smem[i, j] = pages[page_no, 1, by, page_offset, j]
                                                            else:
                                                                V_smem[i, j] = T.float16(0.0)
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        with T.sblock(""):
                                            T.reads(Q_smem[0:32, 0:32], K_smem[0:32, 0:32])
                                            T.writes(S_local[0:32, 0:32])
                                            for li_0_lj_0_fused_0_init in T.thread_binding(4, thread="threadIdx.y"):
                                                for li_0_lj_0_fused_1_init in T.thread_binding(32, thread="threadIdx.x"):
                                                    for li_1_init in T.unroll(2):
                                                        for lj_1_0_init in T.unroll(1):
                                                            for lj_1_1_init in T.vectorized(4):
                                                                with T.sblock("S_gemm_init"):
                                                                    i = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) // 8 * 2 + li_1_init)
                                                                    j = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) % 8 * 4 + lj_1_0_init * 4 + lj_1_1_init)
                                                                    T.reads()
                                                                    T.writes(S_local[i, j])
                                                                    S_local[i, j] = T.float32(0.0)
                                            for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                                for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                    for lk_0 in range(2):
                                                        for li_1 in T.unroll(2):
                                                            for lj_1_0 in T.unroll(1):
                                                                for lj_1_1 in T.vectorized(4):
                                                                    for lk_1 in range(16):
                                                                        with T.sblock("S_gemm_update"):
                                                                            i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1_0 * 4 + lj_1_1)
                                                                            k = T.axis.reduce(32, lk_0 * 16 + lk_1)
                                                                            T.reads(S_local[i, j], Q_smem[i, k], K_smem[j, k])
                                                                            T.writes(S_local[i, j])
                                                                            S_local[i, j] = S_local[i, j] + T.Cast("float32", Q_smem[i, k]) * T.Cast("float32", K_smem[j, k]) * sm_scale * T.float32(1.4426950408889634)
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                            for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                for li_1 in range(2):
                                                    for lj_1_0 in T.unroll(1):
                                                        for lj_1_1 in T.vectorized(4):
                                                            with T.sblock("S_store"):
                                                                i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                                j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1_0 * 4 + lj_1_1)
                                                                T.reads(S_local[i, j])
                                                                T.writes(S_smem[i, j])
                                                                S_smem[i, j] = S_local[i, j]
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        for i in range(1):
                                            row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                            if row < 32:
                                                with T.sblock("update1"):
                                                    T.reads(m_smem[row], kv_chunk_len[0], q_indptr[b_idx:b_idx + 2], m_new[i], S_smem[row, 0:32], d_smem[row], m_prev[i])
                                                    T.writes(m_prev[i], m_new[i], d_new[i])
                                                    m_prev[i] = m_smem[row]
                                                    m_new[i] = m_smem[row]
                                                    row_: T.let[T.int32] = (LH_start + row) // 2
                                                    for j in range(32):
                                                        if T.if_then_else(T.And(causal > 0, T.bool(False)), L_kv_start + j < kv_chunk_len[0] and L_kv_start + j >= T.max(kv_chunk_len[0] - T.max(0 - row_ - 1, 0), 0), T.if_then_else(causal > 0, L_kv_start + j < kv_chunk_len[0] - (q_indptr[b_idx + 1] - q_indptr[b_idx]) + row_ + 1, L_kv_start + j < kv_chunk_len[0])):
                                                            m_new[i] = T.max(m_new[i], S_smem[row, j])
                                                    d_new[i] = d_smem[row] * T.exp2(m_prev[i] - m_new[i])
                                        for i in range(1):
                                            row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                            with T.sblock("update"):
                                                T.reads(kv_chunk_len[0], q_indptr[b_idx:b_idx + 2], S_smem[row, 0:32], m_new[i])
                                                T.writes(S_smem[row, 0:32])
                                                for j in range(32):
                                                    if row < 32:
                                                        row_: T.let[T.int32] = (LH_start + row) // 2
                                                        if T.if_then_else(T.And(causal > 0, T.bool(False)), L_kv_start + j < kv_chunk_len[0] and L_kv_start + j >= T.max(kv_chunk_len[0] - T.max(0 - row_ - 1, 0), 0), T.if_then_else(causal > 0, L_kv_start + j < kv_chunk_len[0] - (q_indptr[b_idx + 1] - q_indptr[b_idx]) + row_ + 1, L_kv_start + j < kv_chunk_len[0])):
                                                            S_smem[row, j] = T.exp2(S_smem[row, j] - m_new[i])
                                                        else:
                                                            S_smem[row, j] = T.exp2(T.float32(-50000.0) - m_new[i])
                                        for i in range(1):
                                            row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                            if row < 32:
                                                with T.sblock("update"):
                                                    T.reads(d_new[i], S_smem[row, 0:32], m_new[i], m_prev[i])
                                                    T.writes(d_new[i], m_smem[row], d_smem[row], m_prev_smem[row])
                                                    for j in range(32):
                                                        d_new[i] = d_new[i] + S_smem[row, j]
                                                    m_smem[row] = m_new[i]
                                                    d_smem[row] = d_new[i]
                                                    m_prev_smem[row] = m_prev[i]
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        with T.sblock(""):
                                            T.reads(m_prev_smem[0:32], m_smem[0:32], S_smem[0:32, 0:32], V_smem[0:32, 0:32])
                                            T.writes(O_local[0:32, 0:32])
                                            for li_0_lj_0_fused_0_init in T.thread_binding(4, thread="threadIdx.y"):
                                                for li_0_lj_0_fused_1_init in T.thread_binding(32, thread="threadIdx.x"):
                                                    for li_1_init in T.unroll(2):
                                                        for lj_1_0_init in T.unroll(1):
                                                            for lj_1_1_init in T.vectorized(4):
                                                                with T.sblock("O_gemm_init"):
                                                                    i = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) // 8 * 2 + li_1_init)
                                                                    j = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) % 8 * 4 + lj_1_0_init * 4 + lj_1_1_init)
                                                                    T.reads()
                                                                    T.writes(O_local[i, j])
                                                                    O_local[i, j] = O_local[i, j] * T.exp2(m_prev_smem[i] - m_smem[i])
                                            for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                                for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                    for lk_0, lk_1 in T.grid(2, 16):
                                                        for li_1 in T.unroll(2):
                                                            for lj_1_0 in T.unroll(1):
                                                                for lj_1_1 in T.vectorized(4):
                                                                    with T.sblock("O_gemm_update"):
                                                                        i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                                        j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1_0 * 4 + lj_1_1)
                                                                        k = T.axis.reduce(32, lk_0 * 16 + lk_1)
                                                                        T.reads(O_local[i, j], m_prev_smem[i], m_smem[i], S_smem[i, k], V_smem[k, j])
                                                                        T.writes(O_local[i, j])
                                                                        O_local[i, j] = O_local[i, j] + S_smem[i, k] * T.Cast("float32", V_smem[k, j])
                                    for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for li_1 in range(2):
                                                for lj_1_0 in T.unroll(1):
                                                    for lj_1_1 in T.vectorized(4):
                                                        with T.sblock("O_store"):
                                                            i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1_0 * 4 + lj_1_1)
                                                            T.reads(q_indptr[b_idx:b_idx + 2], O_local[i, j], d_smem[i])
                                                            T.writes(output[q_indptr[b_idx] + (LH_start + i) // 2, by * 2 + (LH_start + i) % 2, j])
                                                            cur_L: T.let[T.int32] = q_indptr[b_idx] + (LH_start + i) // 2
                                                            cur_H_qo: T.let[T.int32] = by * 2 + (LH_start + i) % 2
                                                            if cur_L < q_indptr[b_idx + 1]:
                                                                output[cur_L, cur_H_qo, j] = T.Cast("float16", O_local[i, j] / d_smem[i])
                                    for li_0 in range(1):
                                        for li_1 in T.thread_binding(4, thread="threadIdx.y"):
                                            for li_2 in T.thread_binding(32, thread="threadIdx.x"):
                                                with T.sblock("lse_store"):
                                                    i = T.axis.spatial(32, li_0 * 128 + li_1 * 32 + li_2)
                                                    T.where((li_0 * 4 + li_1) * 32 + li_2 < 32)
                                                    T.reads(q_indptr[b_idx:b_idx + 2], m_smem[i], d_smem[i])
                                                    T.writes(lse[q_indptr[b_idx] + (LH_start + i) // 2, by * 2 + (LH_start + i) % 2])
                                                    cur_L: T.let[T.int32] = q_indptr[b_idx] + (LH_start + i) // 2
                                                    cur_H_qo: T.let[T.int32] = by * 2 + (LH_start + i) % 2
                                                    if cur_L < q_indptr[b_idx + 1]:
                                                        lse[cur_L, cur_H_qo] = m_smem[i] + T.log2(d_smem[i])
                                    tile_id[0] = tile_id[0] + 16
