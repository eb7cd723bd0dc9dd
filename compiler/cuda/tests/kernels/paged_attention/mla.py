# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

pages_elem_offset = TypeVar("pages_elem_offset")
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def scheduled(q: T.Buffer(("total_len", 4, 80), "float16"), q_indptr: T.Buffer(("batch_size + 1",), "int32", offset_factor=1), pages: T.Buffer(("max_num_pages", 16, 80), "float16", elem_offset=pages_elem_offset), page_indptr: T.Buffer((batch_size + 1,), "int32", offset_factor=1), page_values: T.Buffer(("nnz_pages",), "int32", offset_factor=1), length_info: T.Buffer((batch_size,), "int32", offset_factor=1), output: T.Buffer((total_len, 4, 64), "float16"), lse: T.Buffer((total_len, 4), "float32"), causal: T.int32, sm_scale: T.float32):
        total_len = T.int32()
        batch_size = T.int32()
        max_num_pages = T.int32()
        nnz_pages = T.int32()
        T.func_attr({"tirx.is_scheduled": True})
        # with T.sblock("root"):
        for lbx in T.thread_binding(16, thread="blockIdx.x"):
            for lty in T.thread_binding(4, thread="threadIdx.y"):
                for ltx in T.thread_binding(32, thread="threadIdx.x"):
                    with T.sblock("attn"):
                        bx, ty, tx = T.axis.remap("SSS", [lbx, lty, ltx])
                        T.reads()
                        T.writes()
                        tile_id = T.sblock_alloc_buffer((1,), "int32", scope="local")
                        batch_idx = T.sblock_alloc_buffer((1,), "int32", scope="local")
                        batch_tiles = T.sblock_alloc_buffer((1,), "int32", scope="local")
                        batch_rows = T.sblock_alloc_buffer((1,), "int32", scope="local")
                        iterator = T.sblock_alloc_buffer((1,), "int32", scope="local")
                        kv_chunk_len = T.sblock_alloc_buffer((1,), "int32", scope="local")
                        Q_smem = T.sblock_alloc_buffer((32, 80), "float16", scope="shared")
                        KV_smem = T.sblock_alloc_buffer((32, 80), "float16", scope="shared")
                        O_local = T.sblock_alloc_buffer((32, 64), scope="local")
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
                        batch_rows[0] = (q_indptr[1] - q_indptr[0]) * 4
                        batch_tiles[0] = (batch_rows[0] + 32 - 1) // 32
                        while T.tvm_thread_invariant(batch_idx[0] < batch_size):
                            while tile_id[0] >= batch_tiles[0] and batch_idx[0] < batch_size:
                                tile_id[0] = tile_id[0] - batch_tiles[0]
                                batch_idx[0] = batch_idx[0] + 1
                                if batch_idx[0] < batch_size:
                                    b_idx: T.let[T.int32] = batch_idx[0]
                                    batch_rows[0] = (q_indptr[b_idx + 1] - q_indptr[b_idx]) * 4
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
                                        for li_1 in range(4):
                                            for lj_1_0 in T.unroll(1):
                                                for lj_1_1 in T.vectorized(4):
                                                    with T.sblock("O_init"):
                                                        i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 16 * 4 + li_1)
                                                        j = T.axis.spatial(64, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 16 * 4 + lj_1_0 * 4 + lj_1_1)
                                                        T.reads()
                                                        T.writes(O_local[i, j])
                                                        O_local[i, j] = T.float32(0.0)
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                for li_1_lj_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                    for li_1_lj_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                        for li_0, lj_0_0 in T.grid(1, 5):
                                            for lj_1 in T.vectorized(4):
                                                with T.sblock("Q_load"):
                                                    i = T.axis.spatial(32, li_0 * 32 + (li_1_lj_0_1_fused_0 * 32 + li_1_lj_0_1_fused_1) // 4)
                                                    j = T.axis.spatial(80, lj_0_0 * 16 + (li_1_lj_0_1_fused_0 * 32 + li_1_lj_0_1_fused_1) % 4 * 4 + lj_1)
                                                    T.reads()
                                                    T.writes()
                                                    cur_L: T.let[T.int32] = q_indptr_val + (LH_start + i) // 4
                                                    cur_H_qo: T.let[T.int32] = (LH_start + i) % 4
                                                    if cur_L < q_indptr[b_idx + 1]:
                                                        Q_smem[i, j] = q[cur_L, cur_H_qo, j]
                                                    else:
                                                        Q_smem[i, j] = T.float16(0.0)
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                for iterator_1 in range((kv_chunk_len[0] + 31) // 32):
                                    L_kv_start: T.let[T.int32] = iterator_1 * 32
                                    for lz_1_ly_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for lz_1_ly_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for lz_0, ly_0_0 in T.grid(1, 5):
                                                for ly_1 in T.vectorized(4):
                                                    with T.sblock("KV_load"):
                                                        i = T.axis.spatial(32, lz_0 * 32 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) // 4)
                                                        j = T.axis.spatial(80, ly_0_0 * 16 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) % 4 * 4 + ly_1)
                                                        T.reads()
                                                        T.writes()
                                                        cur_L: T.let[T.int32] = L_kv_start + i
                                                        if cur_L < kv_chunk_len[0]:
                                                            seq_offset: T.let[T.int32] = cur_L
                                                            page_no: T.let[T.int32] = page_values[cur_page_indptr_begin + seq_offset // 16]
                                                            page_offset: T.let[T.int32] = seq_offset % 16
                                                            KV_smem[i, j] = pages[page_no, page_offset, j]
                                                        else:
                                                            KV_smem[i, j] = T.float16(0.0)
                                    T.tvm_storage_sync("shared", T.bool(False), -1)
                                    with T.sblock(""):
                                        T.reads(Q_smem[0:32, 0:80], KV_smem[0:32, 0:80])
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
                                                for lk_0 in range(5):
                                                    for li_1 in T.unroll(2):
                                                        for lj_1_0 in T.unroll(1):
                                                            for lj_1_1 in T.vectorized(4):
                                                                for lk_1 in range(16):
                                                                    with T.sblock("S_gemm_update"):
                                                                        i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                                        j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1_0 * 4 + lj_1_1)
                                                                        k = T.axis.reduce(80, lk_0 * 16 + lk_1)
                                                                        T.reads(S_local[i, j], Q_smem[i, k], KV_smem[j, k])
                                                                        T.writes(S_local[i, j])
                                                                        S_local[i, j] = S_local[i, j] + T.Cast("float32", Q_smem[i, k]) * T.Cast("float32", KV_smem[j, k]) * sm_scale * T.float32(1.4426950408889634)
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
                                                row_: T.let[T.int32] = (LH_start + row) // 4
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
                                                    row_: T.let[T.int32] = (LH_start + row) // 4
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
                                        T.reads(m_prev_smem[0:32], m_smem[0:32], S_smem[0:32, 0:32], KV_smem[0:32, 0:64])
                                        T.writes(O_local[0:32, 0:64])
                                        for li_0_lj_0_fused_0_init in T.thread_binding(4, thread="threadIdx.y"):
                                            for li_0_lj_0_fused_1_init in T.thread_binding(32, thread="threadIdx.x"):
                                                for li_1_init in T.unroll(4):
                                                    for lj_1_0_init in T.unroll(1):
                                                        for lj_1_1_init in T.vectorized(4):
                                                            with T.sblock("O_gemm_init"):
                                                                i = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) // 16 * 4 + li_1_init)
                                                                j = T.axis.spatial(64, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) % 16 * 4 + lj_1_0_init * 4 + lj_1_1_init)
                                                                T.reads()
                                                                T.writes(O_local[i, j])
                                                                O_local[i, j] = O_local[i, j] * T.exp2(m_prev_smem[i] - m_smem[i])
                                        for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                            for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                for lk_0, lk_1 in T.grid(2, 16):
                                                    for li_1 in T.unroll(4):
                                                        for lj_1_0 in T.unroll(1):
                                                            for lj_1_1 in T.vectorized(4):
                                                                with T.sblock("O_gemm_update"):
                                                                    i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 16 * 4 + li_1)
                                                                    j = T.axis.spatial(64, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 16 * 4 + lj_1_0 * 4 + lj_1_1)
                                                                    k = T.axis.reduce(32, lk_0 * 16 + lk_1)
                                                                    T.reads(O_local[i, j], m_prev_smem[i], m_smem[i], S_smem[i, k], KV_smem[k, j])
                                                                    T.writes(O_local[i, j])
                                                                    O_local[i, j] = O_local[i, j] + S_smem[i, k] * T.Cast("float32", KV_smem[k, j])
                                for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                    for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                        for li_1 in range(4):
                                            for lj_1_0 in T.unroll(1):
                                                for lj_1_1 in T.vectorized(4):
                                                    with T.sblock("O_store"):
                                                        i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 16 * 4 + li_1)
                                                        j = T.axis.spatial(64, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 16 * 4 + lj_1_0 * 4 + lj_1_1)
                                                        T.reads(q_indptr[b_idx:b_idx + 2], O_local[i, j], d_smem[i])
                                                        T.writes(output[q_indptr[b_idx] + (LH_start + i) // 4, (LH_start + i) % 4, j])
                                                        cur_L: T.let[T.int32] = q_indptr[b_idx] + (LH_start + i) // 4
                                                        cur_H_qo: T.let[T.int32] = (LH_start + i) % 4
                                                        if cur_L < q_indptr[b_idx + 1]:
                                                            output[cur_L, cur_H_qo, j] = T.Cast("float16", O_local[i, j] / d_smem[i])
                                for li_0 in range(1):
                                    for li_1 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_2 in T.thread_binding(32, thread="threadIdx.x"):
                                            with T.sblock("lse_store"):
                                                i = T.axis.spatial(32, li_0 * 128 + li_1 * 32 + li_2)
                                                T.where((li_0 * 4 + li_1) * 32 + li_2 < 32)
                                                T.reads(q_indptr[b_idx:b_idx + 2], m_smem[i], d_smem[i])
                                                T.writes(lse[q_indptr[b_idx] + (LH_start + i) // 4, (LH_start + i) % 4])
                                                cur_L: T.let[T.int32] = q_indptr[b_idx] + (LH_start + i) // 4
                                                cur_H_qo: T.let[T.int32] = (LH_start + i) % 4
                                                if cur_L < q_indptr[b_idx + 1]:
                                                    lse[cur_L, cur_H_qo] = m_smem[i] + T.log2(d_smem[i])
                                tile_id[0] = tile_id[0] + 16
