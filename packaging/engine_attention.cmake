# llama.cpp's attention on a processor computes 64 queries at once, in a tile of keys that is packed
# for them; fewer were computed one by one, each looking at every cell for itself. A question about
# a long text has 10 to 30 tokens: behind 6,000 tokens SmolLM2 read 17 of them in 349 ms on 2
# threads of an AMD EPYC, and in 204 ms so; 64 in 974 and 541. Three things differ:
#
#   rows     a tile is computed for the queries that see something of it, not for 64 in any case
#   choice   few queries are computed in tiles where packing one pays: not where each has cells of
#            its own, as one token for each of 12 conversations has (90 ms, 168 in tiles), and not in
#            a short conversation, where nothing is to be gained, and where one by one means that
#            the same question has the same answer whatever of it was held before
#   heads    the tiles of few queries are given out by heads, so that none is packed twice
#
# A row of a tile is summed up as before, whatever stands beside it. The engine names the change
# among its features (FA_ROWS, with the cells from which on there are tiles), and with it the KV
# that it leaves. Another llama.cpp than the one
# this was written for is built as it is.

set(_attention "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu/ops.cpp")
set(_features "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu/ggml-cpu.cpp")

# In the file that `_text` is.
macro(_edit old new)
    string(FIND "${_text}" "${old}" _place)
    if(_place EQUAL -1)
        message(FATAL_ERROR "Not in llama.cpp's attention: ${old}")
    endif()
    string(REPLACE "${old}" "${new}" _text "${_text}")
endmacro()

function(_edit_attention)
    file(READ "${_attention}" _text)

    # --- rows
    _edit([==[static void ggml_compute_forward_flash_attn_ext_tiled(
]==] [==[#if defined(__AVX2__) && !defined(__AVX512F__)
#define GGML_FA_ROWS 6
#else
#define GGML_FA_ROWS 4
#endif

static void ggml_compute_forward_flash_attn_ext_tiled(
]==])
    _edit([==[            if (mask) {
                bool can_skip = true;
                for (int tq = 0; tq < tile_rows; tq++) {
]==] [==[            int row_lo = 0;
            int row_hi = tile_rows;
            if (mask) {
                row_lo = tile_rows;
                row_hi = 0;
                for (int tq = 0; tq < tile_rows; tq++) {
                    bool can_skip = true;
]==])
    _edit([==[                        mask32[tq * KV_TILE_SZ + tk] = -INFINITY;
                    }
                }

                if (can_skip) {
                    continue;
                }
            }
]==] [==[                        mask32[tq * KV_TILE_SZ + tk] = -INFINITY;
                    }
                    if (!can_skip) {
                        row_lo = MIN(row_lo, tq);
                        row_hi = tq + 1;
                    }
                }

                if (row_hi == 0) {
                    continue;
                }
            }
            // In whole blocks of the GEMM, as far as there is memory for them.
            const int num_rows = MIN(Q_TILE_SZ - row_lo,
                (row_hi - row_lo + GGML_FA_ROWS - 1) / GGML_FA_ROWS * GGML_FA_ROWS);
            const int row_end = row_lo + num_rows;
            float * KQ_lo = KQ + row_lo * KV_TILE_SZ;
]==])
    _edit([==[                    const ggml_fp16_t * k_f16 = (const ggml_fp16_t *)k_data;
                    for (int64_t dk = 0; dk < DK; dk++) {
                        K_f32[dk * KV_TILE_SZ + tk] = GGML_CPU_FP16_TO_FP32(k_f16[dk]);
]==] [==[                    float * k_row = KQ; // nobody's before the GEMM
                    ggml_cpu_fp16_to_fp32((const ggml_fp16_t *)k_data, k_row, DK);
                    for (int64_t dk = 0; dk < DK; dk++) {
                        K_f32[dk * KV_TILE_SZ + tk] = k_row[dk];
]==])
    _edit([==[            memset(KQ, 0, Q_TILE_SZ * KV_TILE_SZ * sizeof(float));
            simd_gemm(KQ, (const float *)Q_q, K_f32, Q_TILE_SZ, DK, KV_TILE_SZ);
            ggml_vec_scale_f32(Q_TILE_SZ * KV_TILE_SZ, KQ, scale);
]==] [==[            memset(KQ_lo, 0, num_rows * KV_TILE_SZ * sizeof(float));
            simd_gemm(KQ_lo, (const float *)Q_q + row_lo * DK, K_f32, num_rows, DK, KV_TILE_SZ);
            ggml_vec_scale_f32(num_rows * KV_TILE_SZ, KQ_lo, scale);
]==])
    _edit([==[                ggml_vec_tanh_f32(Q_TILE_SZ * KV_TILE_SZ, KQ, KQ);
                ggml_vec_scale_f32(Q_TILE_SZ * KV_TILE_SZ, KQ, logit_softcap);
]==] [==[                ggml_vec_tanh_f32(num_rows * KV_TILE_SZ, KQ_lo, KQ_lo);
                ggml_vec_scale_f32(num_rows * KV_TILE_SZ, KQ_lo, logit_softcap);
]==])
    _edit([==[                ggml_vec_add_f32(tile_rows * KV_TILE_SZ, KQ, KQ, mask32);
]==] [==[                const int num_masked = (MIN(row_end, tile_rows) - row_lo) * KV_TILE_SZ;
                ggml_vec_add_f32(num_masked, KQ_lo, KQ_lo, mask32 + row_lo * KV_TILE_SZ);
]==])
    # Where the padding is hidden, what was seen is summed up, and what was not seen is left out.
    _edit([==[for (int tq = 0; tq < Q_TILE_SZ; tq++) {]==]
          [==[for (int tq = row_lo; tq < row_end; tq++) {]==])
    _edit([==[            simd_gemm(VKQ32, KQ, V32, Q_TILE_SZ, KV_TILE_SZ, DV);
]==] [==[            simd_gemm(VKQ32 + row_lo * DV, KQ_lo, V32, num_rows, KV_TILE_SZ, DV);
]==])

    # --- choice
    _edit([==[static void ggml_compute_forward_flash_attn_ext_f16(
]==] [==[// Packing a tile pays when about 5 queries see its cells, and where there are many.
static bool ggml_fa_tiles_pay(const ggml_tensor * mask, int64_t num_queries, int64_t num_cells) {
    static constexpr int64_t KV_TILE_SZ = ggml_fa_tile_config::KV;
    static constexpr int64_t LEAST_ROWS = 5;
    static constexpr int64_t LEAST_TILES = 512 / KV_TILE_SZ;
    if (num_cells < KV_TILE_SZ * LEAST_TILES) {
        return false;
    }
    if (mask == nullptr || num_queries < LEAST_ROWS) {
        return num_queries >= LEAST_ROWS;
    }
    int64_t num_looks = 0;
    int64_t num_tiles = 0;
    for (int64_t start = 0; start < num_cells; start += KV_TILE_SZ) {
        const int64_t end = MIN(start + KV_TILE_SZ, num_cells);
        int32_t num_seen = 0;
        for (int64_t query = 0; query < num_queries; query++) {
            const uint16_t * row =
                (const uint16_t *)((const char *)mask->data + query * mask->nb[1]);
            for (int64_t cell = start; cell < end; cell++) {
                num_seen += row[cell] != 0xFC00; // minus infinity
            }
        }
        num_looks += num_seen;
        num_tiles += num_seen > 0;
    }
    return num_tiles >= LEAST_TILES && num_looks >= LEAST_ROWS * KV_TILE_SZ * num_tiles;
}

static void ggml_compute_forward_flash_attn_ext_f16(
]==])
    _edit([==[                                neq1 >= Q_TILE_SZ);
]==] [==[                                (neq1 >= Q_TILE_SZ ||
                                 ggml_fa_tiles_pay(dst->src[3], neq1, nek1)));
]==])

    # --- heads
    _edit([==[        const int64_t dr = (nr + nchunk - 1) / nchunk;

        static constexpr int64_t Q_TILE_SZ]==] [==[        int64_t dr = (nr + nchunk - 1) / nchunk;

        static constexpr int64_t Q_TILE_SZ]==])
    _edit([==[        int current_chunk = ith;

        while (current_chunk < nchunk) {
            const int64_t ir0 = dr * current_chunk;
            const int64_t ir1 = MIN(ir0 + dr, nr);

            if (use_tiled) {
]==] [==[        if (use_tiled && neq1 <= Q_TILE_SZ && neq2*neq3 >= nth) {
            dr = neq1;
            nchunk = neq2*neq3;
        }
        int current_chunk = ith;

        while (current_chunk < nchunk) {
            const int64_t ir0 = dr * current_chunk;
            const int64_t ir1 = MIN(ir0 + dr, nr);

            if (use_tiled) {
]==])
    set(_edited "${_text}")

    file(READ "${_features}" _text)
    _edit([==[    #ifdef GGML_USE_CPU_REPACK
        features.push_back(]==] [==[        features.push_back({ "FA_ROWS", "512" });
    #ifdef GGML_USE_CPU_REPACK
        features.push_back(]==])
    file(WRITE "${_features}" "${_text}")
    # The last one: whoever finds it edited finds all of it edited.
    file(WRITE "${_attention}" "${_edited}")
endfunction()

file(SHA256 "${_attention}" _found)
file(READ "${_attention}" _text)
if(_found STREQUAL "21987cb36a4a9ef4d0fe1101bd2c42a67c7e9dd0d89e49e2137ede1779ea5759")
    _edit_attention()
elseif(NOT _text MATCHES "LEAST_TILES = 512 / KV_TILE_SZ")
    message(WARNING "This is another llama.cpp than packaging/engine_attention.cmake was written"
        " for: its attention is left as it is, and short questions about long texts take longer.")
endif()
