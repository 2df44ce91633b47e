
// section: inline
typedef f32 tide_f32x8 __attribute__((vector_size(32)));
typedef f32 tide_f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

// section: inline
typedef f32 tide_f32x4 __attribute__((vector_size(16)));
typedef f32 tide_f32x4u __attribute__((vector_size(16), aligned(4), may_alias));

// section: function
FUNCTION void tide_tile_f32_6x4_r8_s_v(const f32 *restrict s, const f32 *restrict v, idx sBy, idx vBy, idx depth, f32 *restrict c, idx ldc, int more) {
  tide_f32x4 c0_0 = {0};
  tide_f32x4 c1_0 = {0};
  tide_f32x4 c2_0 = {0};
  tide_f32x4 c3_0 = {0};
  tide_f32x4 c4_0 = {0};
  tide_f32x4 c5_0 = {0};
  for (idx k = 0; k < depth; k++) {
    const f32 *sk = s + k * sBy, *vk = v + k * vBy;
    tide_f32x4 v_0 = *(const tide_f32x4u *)(vk + 0);
    { f32 x = sk[0]; c0_0 += x * v_0; }
    { f32 x = sk[8]; c1_0 += x * v_0; }
    { f32 x = sk[16]; c2_0 += x * v_0; }
    { f32 x = sk[24]; c3_0 += x * v_0; }
    { f32 x = sk[32]; c4_0 += x * v_0; }
    { f32 x = sk[40]; c5_0 += x * v_0; }
  }
  if (more) {
    c0_0 = *(tide_f32x4u *)(c + 0 * ldc + 0) + c0_0;
    c1_0 = *(tide_f32x4u *)(c + 1 * ldc + 0) + c1_0;
    c2_0 = *(tide_f32x4u *)(c + 2 * ldc + 0) + c2_0;
    c3_0 = *(tide_f32x4u *)(c + 3 * ldc + 0) + c3_0;
    c4_0 = *(tide_f32x4u *)(c + 4 * ldc + 0) + c4_0;
    c5_0 = *(tide_f32x4u *)(c + 5 * ldc + 0) + c5_0;
  }
  *(tide_f32x4u *)(c + 0 * ldc + 0) = c0_0;
  *(tide_f32x4u *)(c + 1 * ldc + 0) = c1_0;
  *(tide_f32x4u *)(c + 2 * ldc + 0) = c2_0;
  *(tide_f32x4u *)(c + 3 * ldc + 0) = c3_0;
  *(tide_f32x4u *)(c + 4 * ldc + 0) = c4_0;
  *(tide_f32x4u *)(c + 5 * ldc + 0) = c5_0;

// section: function
FUNCTION void tide_tile_f32_4x4_r1_s_v(const f32 *restrict s, const f32 *restrict v, idx sBy, idx vBy, idx depth, f32 *restrict c, idx ldc, int more) {
  tide_f32x4 c0_0 = {0};
  tide_f32x4 c1_0 = {0};
  tide_f32x4 c2_0 = {0};
  tide_f32x4 c3_0 = {0};
  for (idx k = 0; k < depth; k++) {
    const f32 *sk = s + k * sBy, *vk = v + k * vBy;
    tide_f32x4 v_0 = *(const tide_f32x4u *)(vk + 0);
    { f32 x = sk[0]; c0_0 += x * v_0; }
    { f32 x = sk[1]; c1_0 += x * v_0; }
    { f32 x = sk[2]; c2_0 += x * v_0; }
    { f32 x = sk[3]; c3_0 += x * v_0; }
  }
  if (more) {
    c0_0 = *(tide_f32x4u *)(c + 0 * ldc + 0) + c0_0;
    c1_0 = *(tide_f32x4u *)(c + 1 * ldc + 0) + c1_0;
    c2_0 = *(tide_f32x4u *)(c + 2 * ldc + 0) + c2_0;
    c3_0 = *(tide_f32x4u *)(c + 3 * ldc + 0) + c3_0;
  }
  *(tide_f32x4u *)(c + 0 * ldc + 0) = c0_0;
  *(tide_f32x4u *)(c + 1 * ldc + 0) = c1_0;
  *(tide_f32x4u *)(c + 2 * ldc + 0) = c2_0;
  *(tide_f32x4u *)(c + 3 * ldc + 0) = c3_0;

// section: function
FUNCTION void tide_kernel_0(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2, f32 *s_3, f32 *s_4, f32 *s_5, f32 *s_6) {
  f32 tile[32] __attribute__((aligned(64))) = {0};
  for (idx unit = lo; unit < hi;) {
    const idx batch = unit / 1, u0 = unit - batch * 1;
    const idx most = u0 + hi - unit < 1 ? hi - unit : 1 - u0;
    const idx o0 = u0, o1 = u0 + most, i0 = 0, i1 = 1;
    unit += most;
    const idx tiles = o1 * 1 / 1, first = i0 * 1 / 1, panels = i1 * 1 / 1;
    for (idx t = o0 * 1 / 1; t < tiles;) {
      idx tEnd = t + 1 < tiles ? t + 1 : tiles;
      for (idx p0 = first; p0 < panels; p0 += 1) {
        const idx p1 = p0 + 1 < panels ? p0 + 1 : panels;
        for (idx pc = 0; pc == 0 || pc < 8; pc += 8) {
          const idx pEnd = pc + 8 < 8 ? pc + 8 : 8;
          for (idx p = p0; p < p1; p++) {
            const idx col0 = p * 8;
            const f32 *const v = s_3 + (col0) + pc * 4;
            for (idx tt = t; tt < tEnd; tt++) {
              const idx q = tt % 1;
              const idx row = q * 6;
              const f32 *const s = s_2 + (8 * row) + pc * 1;
              int rows;
               {
                rows = 6;
                tide_tile_f32_6x4_r8_s_v(s, v, 1, 4, pEnd - pc, tile, 4, 0);
              }
              for (idx r_7 = 0; r_7 < rows; r_7++) {
                const idx m_8 = row + r_7;
                 {
                  const idx n_9 = col0 + 0;
                  const f32x8 acc_10 = *(const f32x8_mem *)(tile + r_7 * 4 + 0);
                  const f32x8 t_11 = (f32x8_max2(f32x8_of(0.0f), acc_10) + 0);
                  const f32x8 t_12 = f32x8_load_first(s_1 + (4 * m_8 + n_9), 4);
                  const f32x8 t_13 = (t_11 - t_12);
                  f32x8_store_first(s_4 + (4 * m_8 + n_9), t_11, 4);
                  f32x8_store_first(s_5 + (4 * m_8 + n_9), t_13, 4);
                }
              }
            }
          }
        }
      }
      t = tEnd;
    }
  }

// section: function
FUNCTION void tide_kernel_1(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2, f32 *s_3, f32 *s_4, f32 *s_5) {
  f32 *const w_panel = s_5 + (idx)thread * 32;
  f32 tile[24] __attribute__((aligned(64))) = {0};
  for (idx unit = lo; unit < hi;) {
    const idx batch = unit / 2, u0 = unit - batch * 2;
    const idx most = u0 + hi - unit < 2 ? hi - unit : 2 - u0;
    const idx o0 = u0, o1 = u0 + most, i0 = 0, i1 = 1;
    unit += most;
    const idx tiles = o1 * 2 / 2, first = i0 * 1 / 1, panels = i1 * 1 / 1;
    for (idx t = o0 * 2 / 2; t < tiles;) {
      idx tEnd = t + 2 < tiles ? t + 2 : tiles;
      for (idx p0 = first; p0 < panels; p0 += 1) {
        const idx p1 = p0 + 1 < panels ? p0 + 1 : panels;
        for (idx pc = 0; pc == 0 || pc < 6; pc += 6) {
          const idx pEnd = pc + 6 < 6 ? pc + 6 : 6;
          for (idx p = p0; p < p1; p++) {
            const idx col0 = p * 8;
             {
              for (idx k_6 = pc; k_6 < pEnd; k_6++) {
                idx n_7 = col0;
                for (; n_7 + 8 <= col0 + 4; n_7 += 8) {
                  const f32x8 t_9 = f32x8_load(s_2 + (4 * k_6 + n_7));
                  const f32x8 t_10 = (t_9 + t_9);
                  const f32x8 t_11 = f32x8_load(s_3 + (4 * k_6 + n_7));
                  const boolx8 t_12 = (f32x8_of(0.0f) < t_11);
                  const f32x8 t_13 = f32x8_pick(t_12, f32x8_of(1.0f), f32x8_of(0.0f));
                  const f32x8 t_14 = (t_10 * t_13);
                  const f32x8 e_8 = t_14;
                  *(f32x8_mem *)(w_panel + (-(pc) + k_6) * 4 + (n_7 - (col0))) = e_8;
                }
                 {
                  const f32x8 t_16 = f32x8_load_first(s_2 + (4 * k_6 + n_7), 4);
                  const f32x8 t_17 = (t_16 + t_16);
                  const f32x8 t_18 = f32x8_load_first(s_3 + (4 * k_6 + n_7), 4);
                  const boolx8 t_19 = (f32x8_of(0.0f) < t_18);
                  const f32x8 t_20 = f32x8_pick(t_19, f32x8_of(1.0f), f32x8_of(0.0f));
                  const f32x8 t_21 = (t_17 * t_20);
                  const f32x8 e_15 = t_21;
                  *(f32x8_mem *)(w_panel + (-(pc) + k_6) * 4 + (n_7 - (col0))) = e_15;
                }
              }
            }
            const f32 *const v = w_panel;
            for (idx tt = t; tt < tEnd; tt++) {
              const idx q = tt % 2;
              const idx row = q * 4;
              const f32 *const s = s_1 + (row) + pc * 8;
              f32 *const c = s_4 + (4 * row + col0);
              int rows;
               {
                rows = 4;
                tide_tile_f32_4x4_r1_s_v(s, v, 8, 4, pEnd - pc, c, 4, pc > 0);
              }
            }
          }
        }
      }
      t = tEnd;
    }
  }

// section: function
FUNCTION void tide_kernel_2(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2) {
  f32x8 acc_3[2];
  for (int u = 0; u < 2; u++) { acc_3[u] = f32x8_of(0.0f); }
  for (idx r_4 = 0; r_4 < 16; r_4 += 16) {
     {
      const idx r_5 = r_4;
      const f32x8 t_6 = f32x8_load(s_1 + (r_5));
      const f32x8 t_7 = (t_6 * t_6);
      acc_3[0] = (acc_3[0] + t_7);
    }
     {
      const idx r_8 = r_4 + 8;
      const f32x8 t_9 = f32x8_load(s_1 + (r_8));
      const f32x8 t_10 = (t_9 * t_9);
      acc_3[1] = (acc_3[1] + t_10);
    }
  }
   {
    f32 rest_11[8], first_12[8];
     {
      const idx r0_13 = 16;
      const f32x8 t_14 = f32x8_load(s_1 + (r0_13));
      const f32x8 t_15 = (t_14 * t_14);
      const f32x8 t_16 = t_15;
      memcpy(rest_11 + 0, &t_16, sizeof t_16);
    }
    memcpy(first_12, acc_3, sizeof acc_3[0]);
    first_12[0] = first_12[0] + rest_11[0];
    first_12[1] = first_12[1] + rest_11[1];
    first_12[2] = first_12[2] + rest_11[2];
    first_12[3] = first_12[3] + rest_11[3];
    first_12[0] = first_12[0] + rest_11[4];
    first_12[1] = first_12[1] + rest_11[5];
    first_12[2] = first_12[2] + rest_11[6];
    first_12[3] = first_12[3] + rest_11[7];
    memcpy(acc_3, first_12, sizeof acc_3[0]);
  }
  const f32x8 moved_17 = __builtin_shufflevector(acc_3[0], acc_3[0], 4, 5, 6, 7, 0, 1, 2, 3);
  const f32x8 sum_18 = (acc_3[0] + moved_17);
  const f32x8 moved_19 = __builtin_shufflevector(acc_3[1], acc_3[1], 4, 5, 6, 7, 0, 1, 2, 3);
  const f32x8 sum_20 = (acc_3[1] + moved_19);
  const f32x8 sum_21 = (sum_18 + sum_20);
  const f32x8 moved_22 = __builtin_shufflevector(sum_21, sum_21, 2, 3, 4, 5, 6, 7, 0, 1);
  const f32x8 sum_23 = (sum_21 + moved_22);
  const f32x8 moved_24 = __builtin_shufflevector(sum_23, sum_23, 1, 2, 3, 4, 5, 6, 7, 0);
  const f32x8 sum_25 = (sum_23 + moved_24);
  s_2[0] = sum_25[0];

  if (TAKE_ALL()) {
    tide_kernel_0(0, 1, thread, (f32 *)(A + (576)), (f32 *)(A + (0)), (f32 *)(A + (192)), (f32 *)(A + (576)), (f32 *)(A + (448)), (f32 *)(A + (0)));
    tide_kernel_1(0, 2, thread, (f32 *)(A + (0)), (f32 *)(A + (448)), (f32 *)(A + (576)), (f32 *)(A + (192)), (f32 *)(A + (320)));
    tide_kernel_2(0, 1, thread, (f32 *)(A + (448)), (f32 *)(A + (0)));
    DONE_ALL();
  }
  NEXT();

static NOINLINE void tide_part_1(Team *team, u8 *A, int thread, u32 *call) {

  tide_part_1(team, A, thread, call);

