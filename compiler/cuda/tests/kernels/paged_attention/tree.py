# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def plain(q: T.Buffer(("qo_len", 4, 32), "float16"), q_indptr: T.Buffer(("batch_size_plus_1",), "int32", offset_factor=1), k: T.Buffer(("kv_len", 2, 32), "float16"), v: T.Buffer((kv_len, 2, 32), "float16"), kv_indptr: T.Buffer((batch_size_plus_1,), "int32", offset_factor=1), q_rope_position: T.Buffer((qo_len,), "int32", offset_factor=1), mn_indptr: T.Buffer((batch_size_plus_1,), "int32", offset_factor=1), mask: T.Buffer(("tree_size", 2), "int32", offset_factor=1), output: T.Buffer((qo_len, 4, 32), "float16"), lse: T.Buffer((qo_len, 4), "float32"), rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32):
        qo_len = T.int32()
        batch_size_plus_1 = T.int32()
        kv_len = T.int32()
        tree_size = T.int32()
        # with T.sblock("root"):
        for b in range(batch_size_plus_1 - 1):
            with T.sblock("attn"):
                T.reads(q_indptr[b:b + 2], kv_indptr[b:b + 2], mn_indptr[b:b + 2], mask[T.min(mn_indptr[b + 1] + q_indptr[b] - q_indptr[b + 1], kv_indptr[b] + mn_indptr[b + 1] - kv_indptr[b + 1]):T.min(mn_indptr[b + 1] + q_indptr[b] - q_indptr[b + 1], kv_indptr[b] + mn_indptr[b + 1] - kv_indptr[b + 1]) + (mn_indptr[b + 1] - T.min(mn_indptr[b + 1] + q_indptr[b] - q_indptr[b + 1], kv_indptr[b] + mn_indptr[b + 1] - kv_indptr[b + 1])), 0:2], q_rope_position[T.min(q_indptr[b], kv_indptr[b]):T.min(q_indptr[b], kv_indptr[b]) + (T.max(q_indptr[b + 1], kv_indptr[b + 1]) - T.min(q_indptr[b], kv_indptr[b]))], q[q_indptr[b]:q_indptr[b] + (q_indptr[b + 1] - q_indptr[b]), 0:4, 0:32], k[kv_indptr[b]:kv_indptr[b] + (kv_indptr[b + 1] - kv_indptr[b]), 0:2, 0:32], v[kv_indptr[b]:kv_indptr[b] + (kv_indptr[b + 1] - kv_indptr[b]), 0:2, 0:32])
                T.writes(output[q_indptr[b]:q_indptr[b] + (q_indptr[b + 1] - q_indptr[b]), 0:4, 0:32], lse[q_indptr[b]:q_indptr[b] + (q_indptr[b + 1] - q_indptr[b]), 0:4])
                softmax_sum = T.sblock_alloc_buffer((4,))
                m_prev = T.sblock_alloc_buffer((4,))
                m_new = T.sblock_alloc_buffer((4,))
                d_prev = T.sblock_alloc_buffer((4,))
                d_new = T.sblock_alloc_buffer((4,))
                p_sum = T.sblock_alloc_buffer((32,))
                max_score = T.sblock_alloc_buffer((4,))
                attention_scores = T.sblock_alloc_buffer((kv_len, 4))
                exp_scores = T.sblock_alloc_buffer((kv_len, 4))
                attention_score = T.sblock_alloc_buffer((1,))
                query_val = T.sblock_alloc_buffer((1,))
                key_val = T.sblock_alloc_buffer((1,))
                result = T.sblock_alloc_buffer((1,))
                for q_idx in range(q_indptr[b + 1] - q_indptr[b]):
                    for i in range(4):
                        max_score[i] = T.float32(-50000.0)
                        m_prev[i] = T.float32(-50000.0)
                        d_prev[i] = T.float32(1.0)
                    for k_idx, h in T.grid(kv_indptr[b + 1] - kv_indptr[b], 4):
                        h_kv_idx: T.let[T.int32] = h // 2
                        if k_idx < kv_indptr[b + 1] - kv_indptr[b] and (k_idx < kv_indptr[b + 1] - kv_indptr[b] - (mn_indptr[b + 1] - mn_indptr[b]) or mask[mn_indptr[b] + (q_idx + (mn_indptr[b + 1] - mn_indptr[b]) - (q_indptr[b + 1] - q_indptr[b])), 0] >= mask[mn_indptr[b] + (k_idx - (kv_indptr[b + 1] - kv_indptr[b] - (mn_indptr[b + 1] - mn_indptr[b]))), 0] and mask[mn_indptr[b] + (q_idx + (mn_indptr[b + 1] - mn_indptr[b]) - (q_indptr[b + 1] - q_indptr[b])), 0] < mask[mn_indptr[b] + (k_idx - (kv_indptr[b + 1] - kv_indptr[b] - (mn_indptr[b + 1] - mn_indptr[b]))), 1]):
                            result[0] = T.float32(0.0)
                            for d_idx in range(32):
                                freq = T.float32()
                                query_val[0] = T.Cast("float32", T.if_then_else(rotary_mode == 1, T.Let(T.Cast("float16", T.cos(freq) * T.Cast("float32", q[q_indptr[b] + q_idx, h, d_idx]) + T.sin(freq) * T.Cast("float32", T.if_then_else(d_idx < 16, q[q_indptr[b] + q_idx, h, d_idx + 16] * T.float16(-1.0), q[q_indptr[b] + q_idx, h, d_idx - 16]))), where={freq: T.Cast("float32", q_rope_position[q_indptr[b] + q_idx]) * rope_scale / T.pow(rope_theta, T.Cast("float32", d_idx * 2 % 32) / T.float32(32.0))}), q[q_indptr[b] + q_idx, h, d_idx]))
                                freq_1 = T.float32()
                                key_val[0] = T.Cast("float32", T.if_then_else(rotary_mode == 1, T.Let(T.Cast("float16", T.cos(freq_1) * T.Cast("float32", k[kv_indptr[b] + k_idx, h_kv_idx, d_idx]) + T.sin(freq_1) * T.Cast("float32", T.if_then_else(d_idx < 16, k[kv_indptr[b] + k_idx, h_kv_idx, d_idx + 16] * T.float16(-1.0), k[kv_indptr[b] + k_idx, h_kv_idx, d_idx - 16]))), where={freq_1: T.Cast("float32", q_rope_position[kv_indptr[b] + k_idx]) * rope_scale / T.pow(rope_theta, T.Cast("float32", d_idx * 2 % 32) / T.float32(32.0))}), k[kv_indptr[b] + k_idx, h_kv_idx, d_idx]))
                                result[0] = result[0] + query_val[0] * key_val[0]
                            attention_score[0] = result[0] * T.float32(1.4426950408889634) * sm_scale
                        else:
                            attention_score[0] = T.float32(-72134.752044448163) * sm_scale
                        attention_scores[k_idx, h] = attention_score[0]
                        max_score[h] = T.max(max_score[h], attention_score[0])
                        m_new[h] = T.max(m_prev[h], max_score[h])
                    for h in range(4):
                        d_new[h] = d_prev[h] * T.exp2(m_prev[h] - m_new[h])
                    for h in range(4):
                        softmax_sum[h] = T.float32(0.0)
                        for k_idx in range(kv_indptr[b + 1] - kv_indptr[b]):
                            exp_scores[k_idx, h] = T.exp2(attention_scores[k_idx, h] - m_new[h])
                            softmax_sum[h] = softmax_sum[h] + exp_scores[k_idx, h]
                        d_new[h] = d_new[h] + softmax_sum[h]
                    for h in range(4):
                        h_kv_idx: T.let[T.int32] = h // 2
                        for i in range(32):
                            p_sum[i] = T.float32(0.0)
                        for v_idx in range(kv_indptr[b + 1] - kv_indptr[b]):
                            weight: T.let[T.float32] = exp_scores[v_idx, h] / d_new[h]
                            for i in range(32):
                                p_sum[i] = p_sum[i] + T.Cast("float32", v[kv_indptr[b] + v_idx, h_kv_idx, i]) * weight
                        for i in range(32):
                            output[q_indptr[b] + q_idx, h, i] = T.Cast("float16", p_sum[i])
                        lse[q_indptr[b] + q_idx, h] = m_new[h] + T.log2(d_new[h])

    @T.prim_func(s_tir=True)
    def scheduled(q: T.Buffer(("qo_len", 4, 32), "float16"), q_indptr: T.Buffer(("batch_size_plus_1",), "int32", offset_factor=1), k: T.Buffer(("kv_len", 2, 32), "float16"), v: T.Buffer((kv_len, 2, 32), "float16"), kv_indptr: T.Buffer((batch_size_plus_1,), "int32", offset_factor=1), q_rope_position: T.Buffer((qo_len,), "int32", offset_factor=1), mn_indptr: T.Buffer((batch_size_plus_1,), "int32", offset_factor=1), mask: T.Buffer(("tree_size", 2), "int32", offset_factor=1), output: T.Buffer((qo_len, 4, 32), "float16"), lse: T.Buffer((qo_len, 4), "float32"), rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32, sm_scale: T.float32):
        qo_len = T.int32()
        batch_size_plus_1 = T.int32()
        kv_len = T.int32()
        tree_size = T.int32()
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
                            while T.tvm_thread_invariant(batch_idx[0] < batch_size_plus_1 - 1):
                                while tile_id[0] >= batch_tiles[0] and batch_idx[0] < batch_size_plus_1 - 1:
                                    tile_id[0] = tile_id[0] - batch_tiles[0]
                                    batch_idx[0] = batch_idx[0] + 1
                                    if batch_idx[0] < batch_size_plus_1 - 1:
                                        b_idx: T.let[T.int32] = batch_idx[0]
                                        batch_rows[0] = (q_indptr[b_idx + 1] - q_indptr[b_idx]) * 2
                                        batch_tiles[0] = (batch_rows[0] + 32 - 1) // 32
                                if T.tvm_thread_invariant(batch_idx[0] < batch_size_plus_1 - 1):
                                    b_idx: T.let[T.int32] = batch_idx[0]
                                    LH_start: T.let[T.int32] = tile_id[0] * 32
                                    q_indptr_val: T.let[T.int32] = q_indptr[b_idx]
                                    kv_chunk_len[0] = kv_indptr[b_idx + 1] - kv_indptr[b_idx]
                                    T.tvm_storage_sync("shared", T.bool(False), -1)
                                    for i in range(1):
                                        row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                        if row < 32:
                                            m_smem[row] = T.float32(-50000.0)
                                            d_smem[row] = T.float32(1.0)
                                    for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for li_1, lj_1 in T.grid(2, 4):
                                                with T.sblock("O_init"):
                                                    i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                    j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1)
                                                    T.reads()
                                                    T.writes(O_local[i, j])
                                                    O_local[i, j] = T.float32(0.0)
                                    T.tvm_storage_sync("shared", T.bool(False), -1)
                                    for li_lj_fused_0 in range(2):
                                        for li_lj_fused_1 in T.thread_binding(4, thread="threadIdx.y"):
                                            for li_lj_fused_2 in T.thread_binding(32, thread="threadIdx.x"):
                                                for li_lj_fused_3 in T.vectorized(4):
                                                    with T.sblock("Q_load"):
                                                        i = T.axis.spatial(32, (li_lj_fused_0 * 512 + li_lj_fused_1 * 128 + li_lj_fused_2 * 4 + li_lj_fused_3) // 32)
                                                        j = T.axis.spatial(32, (li_lj_fused_0 * 512 + li_lj_fused_1 * 128 + li_lj_fused_2 * 4 + li_lj_fused_3) % 32)
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
                                        L_kv_base: T.let[T.int32] = kv_indptr[b_idx]
                                        for lz_ly_fused_0 in range(2):
                                            for lz_ly_fused_1 in T.thread_binding(4, thread="threadIdx.y"):
                                                for lz_ly_fused_2 in T.thread_binding(32, thread="threadIdx.x"):
                                                    for lz_ly_fused_3 in T.vectorized(4):
                                                        with T.sblock("KV_load"):
                                                            i = T.axis.spatial(32, (lz_ly_fused_0 * 512 + lz_ly_fused_1 * 128 + lz_ly_fused_2 * 4 + lz_ly_fused_3) // 32)
                                                            j = T.axis.spatial(32, (lz_ly_fused_0 * 512 + lz_ly_fused_1 * 128 + lz_ly_fused_2 * 4 + lz_ly_fused_3) % 32)
                                                            T.reads()
                                                            T.writes()
                                                            cur_L: T.let[T.int32] = L_kv_base + L_kv_start + i
                                                            if L_kv_start + i < kv_chunk_len[0]:
                                                                freq = T.float32()
                                                                K_smem[i, j] = T.if_then_else(rotary_mode == 1, T.Let(T.Cast("float16", T.cos(freq) * T.Cast("float32", k[cur_L, by, j]) + T.sin(freq) * T.Cast("float32", T.if_then_else(j < 16, k[cur_L, by, j + 16] * T.float16(-1.0), k[cur_L, by, j - 16]))), where={freq: T.Cast("float32", q_rope_position[cur_L]) * rope_scale / T.pow(rope_theta, T.Cast("float32", j * 2 % 32) / T.float32(32.0))}), k[cur_L, by, j])
                                                                V_smem[i, j] = v[cur_L, by, j]
                                                            else:
                                                                K_smem[i, j] = T.float16(0.0)
                                                                V_smem[i, j] = T.float16(0.0)
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        with T.sblock(""):
                                            T.reads(Q_smem[0:32, 0:32], K_smem[0:32, 0:32])
                                            T.writes(S_local[0:32, 0:32])
                                            for li_0_lj_0_fused_0_init in T.thread_binding(4, thread="threadIdx.y"):
                                                for li_0_lj_0_fused_1_init in T.thread_binding(32, thread="threadIdx.x"):
                                                    for li_1_init, lj_1_init in T.grid(2, 4):
                                                        with T.sblock("S_gemm_init"):
                                                            i = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) // 8 * 2 + li_1_init)
                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) % 8 * 4 + lj_1_init)
                                                            T.reads()
                                                            T.writes(S_local[i, j])
                                                            S_local[i, j] = T.float32(0.0)
                                            for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                                for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                    for lk_0, li_1, lj_1, lk_1 in T.grid(4, 2, 4, 8):
                                                        with T.sblock("S_gemm_update"):
                                                            i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1)
                                                            k_1 = T.axis.reduce(32, lk_0 * 8 + lk_1)
                                                            T.reads(S_local[i, j], Q_smem[i, k_1], K_smem[j, k_1])
                                                            T.writes(S_local[i, j])
                                                            S_local[i, j] = S_local[i, j] + T.Cast("float32", Q_smem[i, k_1]) * T.Cast("float32", K_smem[j, k_1]) * sm_scale * T.float32(1.4426950408889634)
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                            for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                for li_1, lj_1 in T.grid(2, 4):
                                                    with T.sblock("S_store"):
                                                        i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                        j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1)
                                                        T.reads(S_local[i, j])
                                                        T.writes(S_smem[i, j])
                                                        S_smem[i, j] = S_local[i, j]
                                        T.tvm_storage_sync("shared", T.bool(False), -1)
                                        for i in range(1):
                                            row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                            if row < 32:
                                                with T.sblock("update1"):
                                                    T.reads(m_smem[row], kv_chunk_len[0], mn_indptr[b_idx:b_idx + 2], mask[T.min((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] - kv_chunk_len[0]):T.min((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] - kv_chunk_len[0]) + (T.max((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] + 31 - kv_chunk_len[0]) + 1 - T.min((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] - kv_chunk_len[0])), 0:2], q_indptr[b_idx:b_idx + 2], m_new[i], S_smem[row, 0:32], d_smem[row], m_prev[i])
                                                    T.writes(m_prev[i], m_new[i], d_new[i])
                                                    m_prev[i] = m_smem[row]
                                                    m_new[i] = m_smem[row]
                                                    row_: T.let[T.int32] = (LH_start + row) // 2
                                                    for j in range(32):
                                                        if L_kv_start + j < kv_chunk_len[0] and (L_kv_start + j < kv_chunk_len[0] - (mn_indptr[b_idx + 1] - mn_indptr[b_idx]) or mask[mn_indptr[b_idx] + (row_ + (mn_indptr[b_idx + 1] - mn_indptr[b_idx]) - (q_indptr[b_idx + 1] - q_indptr[b_idx])), 0] >= mask[mn_indptr[b_idx] + (L_kv_start + j - (kv_chunk_len[0] - (mn_indptr[b_idx + 1] - mn_indptr[b_idx]))), 0] and mask[mn_indptr[b_idx] + (row_ + (mn_indptr[b_idx + 1] - mn_indptr[b_idx]) - (q_indptr[b_idx + 1] - q_indptr[b_idx])), 0] < mask[mn_indptr[b_idx] + (L_kv_start + j - (kv_chunk_len[0] - (mn_indptr[b_idx + 1] - mn_indptr[b_idx]))), 1]):
                                                            m_new[i] = T.max(m_new[i], S_smem[row, j])
                                                    d_new[i] = d_smem[row] * T.exp2(m_prev[i] - m_new[i])
                                        for i in range(1):
                                            row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                            with T.sblock("update"):
                                                T.reads(kv_chunk_len[0], mn_indptr[b_idx:b_idx + 2], mask[T.min((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] - kv_chunk_len[0]):T.min((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] - kv_chunk_len[0]) + (T.max((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] + 31 - kv_chunk_len[0]) + 1 - T.min((LH_start + row) // 2 + mn_indptr[b_idx + 1] + q_indptr[b_idx] - q_indptr[b_idx + 1], L_kv_start + mn_indptr[b_idx + 1] - kv_chunk_len[0])), 0:2], q_indptr[b_idx:b_idx + 2], S_smem[row, 0:32], m_new[i])
                                                T.writes(S_smem[row, 0:32])
                                                for j in range(32):
                                                    if row < 32:
                                                        row_: T.let[T.int32] = (LH_start + row) // 2
                                                        if L_kv_start + j < kv_chunk_len[0] and (L_kv_start + j < kv_chunk_len[0] - (mn_indptr[b_idx + 1] - mn_indptr[b_idx]) or mask[mn_indptr[b_idx] + (row_ + (mn_indptr[b_idx + 1] - mn_indptr[b_idx]) - (q_indptr[b_idx + 1] - q_indptr[b_idx])), 0] >= mask[mn_indptr[b_idx] + (L_kv_start + j - (kv_chunk_len[0] - (mn_indptr[b_idx + 1] - mn_indptr[b_idx]))), 0] and mask[mn_indptr[b_idx] + (row_ + (mn_indptr[b_idx + 1] - mn_indptr[b_idx]) - (q_indptr[b_idx + 1] - q_indptr[b_idx])), 0] < mask[mn_indptr[b_idx] + (L_kv_start + j - (kv_chunk_len[0] - (mn_indptr[b_idx + 1] - mn_indptr[b_idx]))), 1]):
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
                                                    for li_1_init, lj_1_init in T.grid(2, 4):
                                                        with T.sblock("O_gemm_init"):
                                                            i = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) // 8 * 2 + li_1_init)
                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) % 8 * 4 + lj_1_init)
                                                            T.reads()
                                                            T.writes(O_local[i, j])
                                                            O_local[i, j] = O_local[i, j] * T.exp2(m_prev_smem[i] - m_smem[i])
                                            for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                                for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                                    for lk_0, lk_1, li_1, lj_1 in T.grid(4, 8, 2, 4):
                                                        with T.sblock("O_gemm_update"):
                                                            i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1)
                                                            k_1 = T.axis.reduce(32, lk_0 * 8 + lk_1)
                                                            T.reads(O_local[i, j], m_prev_smem[i], m_smem[i], S_smem[i, k_1], V_smem[k_1, j])
                                                            T.writes(O_local[i, j])
                                                            O_local[i, j] = O_local[i, j] + S_smem[i, k_1] * T.Cast("float32", V_smem[k_1, j])
                                    for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for li_1, lj_1 in T.grid(2, 4):
                                                with T.sblock("O_store"):
                                                    i = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 * 2 + li_1)
                                                    j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 4 + lj_1)
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
