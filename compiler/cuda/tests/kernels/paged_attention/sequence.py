# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def scheduled(q: T.Buffer(("batch_size", "qo_len", 4, 32), "float32"), k: T.Buffer((batch_size, "kv_len", 2, 32), "float32"), v: T.Buffer((batch_size, kv_len, 2, 32), "float32"), output: T.Buffer((batch_size, qo_len, 4, 32), "float32"), lse: T.Buffer((batch_size, qo_len, 4), "float32")):
        batch_size, qo_len = T.int32(), T.int32()
        kv_len = T.int32()
        T.func_attr({"tirx.is_scheduled": True})
        # with T.sblock("root"):
        batch_tiles: T.let[T.int32] = (qo_len * 2 + 16 - 1) // 16
        for lbx in T.thread_binding(batch_size * batch_tiles, thread="blockIdx.x"):
            for lby in T.thread_binding(2, thread="blockIdx.y"):
                for lty in T.thread_binding(4, thread="threadIdx.y"):
                    for ltx in T.thread_binding(32, thread="threadIdx.x"):
                        with T.sblock("attn"):
                            vbx, by, ty, tx = T.axis.remap("SSSS", [lbx, lby, lty, ltx])
                            T.reads()
                            T.writes()
                            Q_smem = T.sblock_alloc_buffer((16, 32), scope="shared")
                            K_smem = T.sblock_alloc_buffer((16, 32), scope="shared")
                            V_smem = T.sblock_alloc_buffer((16, 32), scope="shared")
                            O_local = T.sblock_alloc_buffer((16, 32), scope="local")
                            S_smem = T.sblock_alloc_buffer((16, 16), scope="shared")
                            S_local = T.sblock_alloc_buffer((16, 16), scope="local")
                            m_smem = T.sblock_alloc_buffer((16,), scope="shared")
                            m_prev_smem = T.sblock_alloc_buffer((16,), scope="shared")
                            d_smem = T.sblock_alloc_buffer((16,), scope="shared")
                            m_new = T.sblock_alloc_buffer((1,), scope="local")
                            m_prev = T.sblock_alloc_buffer((1,), scope="local")
                            d_new = T.sblock_alloc_buffer((1,), scope="local")
                            b_idx: T.let[T.int32] = vbx // batch_tiles
                            tile_id: T.let[T.int32] = vbx % batch_tiles
                            LH_start: T.let[T.int32] = tile_id * 16
                            T.tvm_storage_sync("shared", T.bool(False), -1)
                            for i in range(1):
                                row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                if row < 16:
                                    m_smem[row] = T.float32(-50000.0)
                                    d_smem[row] = T.float32(1.0)
                            for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                    for li_1 in range(2):
                                        for lj_1_0 in T.unroll(1):
                                            for lj_1_1 in T.vectorized(2):
                                                with T.sblock("O_init"):
                                                    i = T.axis.spatial(16, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 16 * 2 + li_1)
                                                    j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 16 * 2 + lj_1_0 * 2 + lj_1_1)
                                                    T.reads()
                                                    T.writes(O_local[i, j])
                                                    O_local[i, j] = T.float32(0.0)
                            T.tvm_storage_sync("shared", T.bool(False), -1)
                            for li_1_lj_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                for li_1_lj_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                    for li_0, lj_0_0 in T.grid(1, 2):
                                        for lj_1 in T.vectorized(2):
                                            with T.sblock("Q_load"):
                                                i = T.axis.spatial(16, li_0 * 16 + (li_1_lj_0_1_fused_0 * 32 + li_1_lj_0_1_fused_1) // 8)
                                                j = T.axis.spatial(32, lj_0_0 * 16 + (li_1_lj_0_1_fused_0 * 32 + li_1_lj_0_1_fused_1) % 8 * 2 + lj_1)
                                                T.reads()
                                                T.writes()
                                                cur_L: T.let[T.int32] = (LH_start + i) // 2
                                                cur_H_qo: T.let[T.int32] = by * 2 + (LH_start + i) % 2
                                                if cur_L < qo_len:
                                                    Q_smem[i, j] = q[b_idx, cur_L, cur_H_qo, j]
                                                else:
                                                    Q_smem[i, j] = T.float32(0.0)
                            T.tvm_storage_sync("shared", T.bool(False), -1)
                            for iterator in range((kv_len + 15) // 16):
                                L_kv_start: T.let[T.int32] = iterator * 16
                                L_kv_base: T.let[T.int32] = 0
                                for lz_1_ly_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                    for lz_1_ly_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                        for lz_0, ly_0_0 in T.grid(1, 2):
                                            for ly_1 in T.vectorized(2):
                                                with T.sblock("K_load"):
                                                    i = T.axis.spatial(16, lz_0 * 16 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) // 8)
                                                    j = T.axis.spatial(32, ly_0_0 * 16 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) % 8 * 2 + ly_1)
                                                    T.reads()
                                                    T.writes()
                                                    cur_L: T.let[T.int32] = L_kv_start + i
                                                    if cur_L < kv_len:
                                                        K_smem[i, j] = k[b_idx, L_kv_base + cur_L, by, j]
                                                    else:
                                                        K_smem[i, j] = T.float32(0.0)
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                for lz_1_ly_0_1_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                    for lz_1_ly_0_1_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                        for lz_0, ly_0_0 in T.grid(1, 2):
                                            for ly_1 in T.vectorized(2):
                                                with T.sblock("V_load"):
                                                    i = T.axis.spatial(16, lz_0 * 16 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) // 8)
                                                    j = T.axis.spatial(32, ly_0_0 * 16 + (lz_1_ly_0_1_fused_0 * 32 + lz_1_ly_0_1_fused_1) % 8 * 2 + ly_1)
                                                    T.reads()
                                                    T.writes()
                                                    cur_L: T.let[T.int32] = L_kv_start + i
                                                    if cur_L < kv_len:
                                                        V_smem[i, j] = v[b_idx, L_kv_base + cur_L, by, j]
                                                    else:
                                                        V_smem[i, j] = T.float32(0.0)
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                with T.sblock(""):
                                    T.reads(Q_smem[0:16, 0:32], K_smem[0:16, 0:32])
                                    T.writes(S_local[0:16, 0:16])
                                    for li_0_lj_0_fused_0_init in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1_init in T.thread_binding(32, thread="threadIdx.x"):
                                            for li_1_init in T.unroll(1):
                                                for lj_1_0_init in T.unroll(1):
                                                    for lj_1_1_init in T.vectorized(2):
                                                        with T.sblock("S_gemm_init"):
                                                            i = T.axis.spatial(16, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) // 8 + li_1_init)
                                                            j = T.axis.spatial(16, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) % 8 * 2 + lj_1_0_init * 2 + lj_1_1_init)
                                                            T.reads()
                                                            T.writes(S_local[i, j])
                                                            S_local[i, j] = T.float32(0.0)
                                    for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for lk_0 in range(2):
                                                for li_1 in T.unroll(1):
                                                    for lj_1_0 in T.unroll(1):
                                                        for lj_1_1 in T.vectorized(2):
                                                            for lk_1 in range(16):
                                                                with T.sblock("S_gemm_update"):
                                                                    i = T.axis.spatial(16, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 + li_1)
                                                                    j = T.axis.spatial(16, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 2 + lj_1_0 * 2 + lj_1_1)
                                                                    k_1 = T.axis.reduce(32, lk_0 * 16 + lk_1)
                                                                    T.reads(S_local[i, j], Q_smem[i, k_1], K_smem[j, k_1])
                                                                    T.writes(S_local[i, j])
                                                                    S_local[i, j] = S_local[i, j] + Q_smem[i, k_1] * K_smem[j, k_1] * T.float32(0.25) * T.float32(1.4426950408889634)
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                    for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                        for li_1 in range(1):
                                            for lj_1_0 in T.unroll(1):
                                                for lj_1_1 in T.vectorized(2):
                                                    with T.sblock("S_store"):
                                                        i = T.axis.spatial(16, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 8 + li_1)
                                                        j = T.axis.spatial(16, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 8 * 2 + lj_1_0 * 2 + lj_1_1)
                                                        T.reads(S_local[i, j])
                                                        T.writes(S_smem[i, j])
                                                        S_smem[i, j] = S_local[i, j]
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                for i in range(1):
                                    row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                    if row < 16:
                                        with T.sblock("update1"):
                                            T.reads(m_smem[row], m_new[i], S_smem[row, 0:16], d_smem[row], m_prev[i])
                                            T.writes(m_prev[i], m_new[i], d_new[i])
                                            m_prev[i] = m_smem[row]
                                            m_new[i] = m_smem[row]
                                            row_: T.let[T.int32] = (LH_start + row) // 2
                                            for j in range(16):
                                                if T.if_then_else(T.And(T.bool(True), T.bool(False)), L_kv_start + j < kv_len and L_kv_start + j >= T.max(kv_len - T.max(0 - row_ - 1, 0), 0), L_kv_start + j < kv_len - qo_len + row_ + 1):
                                                    m_new[i] = T.max(m_new[i], S_smem[row, j])
                                            d_new[i] = d_smem[row] * T.exp2(m_prev[i] - m_new[i])
                                for i in range(1):
                                    row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                    with T.sblock("update"):
                                        T.reads(S_smem[row, 0:16], m_new[i])
                                        T.writes(S_smem[row, 0:16])
                                        for j in range(16):
                                            if row < 16:
                                                row_: T.let[T.int32] = (LH_start + row) // 2
                                                if T.if_then_else(T.And(T.bool(True), T.bool(False)), L_kv_start + j < kv_len and L_kv_start + j >= T.max(kv_len - T.max(0 - row_ - 1, 0), 0), L_kv_start + j < kv_len - qo_len + row_ + 1):
                                                    S_smem[row, j] = T.exp2(S_smem[row, j] - m_new[i])
                                                else:
                                                    S_smem[row, j] = T.exp2(T.float32(-50000.0) - m_new[i])
                                for i in range(1):
                                    row: T.let[T.int32] = i * 32 * 4 + ty * 32 + tx
                                    if row < 16:
                                        with T.sblock("update"):
                                            T.reads(d_new[i], S_smem[row, 0:16], m_new[i], m_prev[i])
                                            T.writes(d_new[i], m_smem[row], d_smem[row], m_prev_smem[row])
                                            for j in range(16):
                                                d_new[i] = d_new[i] + S_smem[row, j]
                                            m_smem[row] = m_new[i]
                                            d_smem[row] = d_new[i]
                                            m_prev_smem[row] = m_prev[i]
                                T.tvm_storage_sync("shared", T.bool(False), -1)
                                with T.sblock(""):
                                    T.reads(m_prev_smem[0:16], m_smem[0:16], S_smem[0:16, 0:16], V_smem[0:16, 0:32])
                                    T.writes(O_local[0:16, 0:32])
                                    for li_0_lj_0_fused_0_init in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1_init in T.thread_binding(32, thread="threadIdx.x"):
                                            for li_1_init in T.unroll(2):
                                                for lj_1_0_init in T.unroll(1):
                                                    for lj_1_1_init in T.vectorized(2):
                                                        with T.sblock("O_gemm_init"):
                                                            i = T.axis.spatial(16, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) // 16 * 2 + li_1_init)
                                                            j = T.axis.spatial(32, (li_0_lj_0_fused_0_init * 32 + li_0_lj_0_fused_1_init) % 16 * 2 + lj_1_0_init * 2 + lj_1_1_init)
                                                            T.reads()
                                                            T.writes(O_local[i, j])
                                                            O_local[i, j] = O_local[i, j] * T.exp2(m_prev_smem[i] - m_smem[i])
                                    for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                        for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                            for lk_0, lk_1 in T.grid(1, 16):
                                                for li_1 in T.unroll(2):
                                                    for lj_1_0 in T.unroll(1):
                                                        for lj_1_1 in T.vectorized(2):
                                                            with T.sblock("O_gemm_update"):
                                                                i = T.axis.spatial(16, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 16 * 2 + li_1)
                                                                j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 16 * 2 + lj_1_0 * 2 + lj_1_1)
                                                                k_1 = T.axis.reduce(16, lk_0 * 16 + lk_1)
                                                                T.reads(O_local[i, j], m_prev_smem[i], m_smem[i], S_smem[i, k_1], V_smem[k_1, j])
                                                                T.writes(O_local[i, j])
                                                                O_local[i, j] = O_local[i, j] + S_smem[i, k_1] * V_smem[k_1, j]
                            for li_0_lj_0_fused_0 in T.thread_binding(4, thread="threadIdx.y"):
                                for li_0_lj_0_fused_1 in T.thread_binding(32, thread="threadIdx.x"):
                                    for li_1 in range(2):
                                        for lj_1_0 in T.unroll(1):
                                            for lj_1_1 in T.vectorized(2):
                                                with T.sblock("O_store"):
                                                    i = T.axis.spatial(16, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) // 16 * 2 + li_1)
                                                    j = T.axis.spatial(32, (li_0_lj_0_fused_0 * 32 + li_0_lj_0_fused_1) % 16 * 2 + lj_1_0 * 2 + lj_1_1)
                                                    T.reads(O_local[i, j], d_smem[i])
                                                    T.writes(output[b_idx, (LH_start + i) // 2, by * 2 + (LH_start + i) % 2, j])
                                                    cur_L: T.let[T.int32] = (LH_start + i) // 2
                                                    cur_H_qo: T.let[T.int32] = by * 2 + (LH_start + i) % 2
                                                    if cur_L < qo_len:
                                                        output[b_idx, cur_L, cur_H_qo, j] = O_local[i, j] / d_smem[i]
                            for li_0 in range(1):
                                for li_1 in T.thread_binding(4, thread="threadIdx.y"):
                                    for li_2 in T.thread_binding(32, thread="threadIdx.x"):
                                        with T.sblock("lse_store"):
                                            i = T.axis.spatial(16, li_0 * 128 + li_1 * 32 + li_2)
                                            T.where((li_0 * 4 + li_1) * 32 + li_2 < 16)
                                            T.reads(m_smem[i], d_smem[i])
                                            T.writes(lse[b_idx, (LH_start + i) // 2, by * 2 + (LH_start + i) % 2])
                                            cur_L: T.let[T.int32] = (LH_start + i) // 2
                                            cur_H_qo: T.let[T.int32] = by * 2 + (LH_start + i) % 2
                                            if cur_L < qo_len:
                                                lse[b_idx, cur_L, cur_H_qo] = m_smem[i] + T.log2(d_smem[i])
