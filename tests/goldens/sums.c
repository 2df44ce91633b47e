
// section: function
FUNCTION void tide_kernel_0(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2) {
  for (idx unit_3 = lo; unit_3 < hi; unit_3++) {
    const idx i0_4 = unit_3;
    f32x8 acc_5[2];
    for (int u = 0; u < 2; u++) { acc_5[u] = f32x8_of(0.0f); }
    for (idx r_6 = 0; r_6 < 16; r_6 += 16) {
       {
        const idx r_7 = r_6;
        const f32x8 t_8 = f32x8_load(s_1 + (20 * i0_4 + r_7));
        acc_5[0] = (acc_5[0] + t_8);
      }
       {
        const idx r_9 = r_6 + 8;
        const f32x8 t_10 = f32x8_load(s_1 + (20 * i0_4 + r_9));
        acc_5[1] = (acc_5[1] + t_10);
      }
    }
     {
      f32 rest_11[8], first_12[8];
       {
        const idx r0_13 = 16;
        const f32x8 t_14 = f32x8_load_first(s_1 + (20 * i0_4 + r0_13), 4);
        const f32x8 t_15 = t_14;
        memcpy(rest_11 + 0, &t_15, sizeof t_15);
      }
      memcpy(first_12, acc_5, sizeof acc_5[0]);
      first_12[0] = first_12[0] + rest_11[0];
      first_12[1] = first_12[1] + rest_11[1];
      first_12[2] = first_12[2] + rest_11[2];
      first_12[3] = first_12[3] + rest_11[3];
      memcpy(acc_5, first_12, sizeof acc_5[0]);
    }
    const f32x8 moved_16 = __builtin_shufflevector(acc_5[0], acc_5[0], 4, 5, 6, 7, 0, 1, 2, 3);
    const f32x8 sum_17 = (acc_5[0] + moved_16);
    const f32x8 moved_18 = __builtin_shufflevector(acc_5[1], acc_5[1], 4, 5, 6, 7, 0, 1, 2, 3);
    const f32x8 sum_19 = (acc_5[1] + moved_18);
    const f32x8 sum_20 = (sum_17 + sum_19);
    const f32x8 moved_21 = __builtin_shufflevector(sum_20, sum_20, 2, 3, 4, 5, 6, 7, 0, 1);
    const f32x8 sum_22 = (sum_20 + moved_21);
    const f32x8 moved_23 = __builtin_shufflevector(sum_22, sum_22, 1, 2, 3, 4, 5, 6, 7, 0);
    const f32x8 sum_24 = (sum_22 + moved_23);
    s_2[i0_4] = sum_24[0];
  }

// section: function
FUNCTION void tide_kernel_1(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2, f32 *s_3, f32 *s_4, f32 *s_5, f32 *s_6, f32 *s_7) {
  for (idx i0_8 = lo; i0_8 < (hi < 16 ? hi : 16); i0_8 += 8) {
    const f32x8 t_9 = f32x8_load(s_1 + (i0_8));
    const f32x8 t_10 = (f32x8_of(0.0f) + t_9);
    const f32x8 t_11 = f32x8_load(s_2 + (i0_8));
    const f32x8 t_12 = (t_10 + t_11);
    const f32x8 t_13 = f32x8_load(s_3 + (i0_8));
    const f32x8 t_14 = (t_12 + t_13);
    const f32x8 t_15 = f32x8_load(s_4 + (i0_8));
    const f32x8 t_16 = (t_14 + t_15);
    const f32x8 t_17 = f32x8_load(s_5 + (i0_8));
    const f32x8 t_18 = (t_16 + t_17);
    const f32x8 t_19 = f32x8_load(s_6 + (i0_8));
    const f32x8 t_20 = (t_18 + t_19);
    f32x8_store(s_7 + (i0_8), t_20);
  }
  if (hi == 20) {
    const idx i0_21 = 16;
    const f32x8 t_22 = f32x8_load_first(s_1 + (i0_21), 4);
    const f32x8 t_23 = (f32x8_of(0.0f) + t_22);
    const f32x8 t_24 = f32x8_load_first(s_2 + (i0_21), 4);
    const f32x8 t_25 = (t_23 + t_24);
    const f32x8 t_26 = f32x8_load_first(s_3 + (i0_21), 4);
    const f32x8 t_27 = (t_25 + t_26);
    const f32x8 t_28 = f32x8_load_first(s_4 + (i0_21), 4);
    const f32x8 t_29 = (t_27 + t_28);
    const f32x8 t_30 = f32x8_load_first(s_5 + (i0_21), 4);
    const f32x8 t_31 = (t_29 + t_30);
    const f32x8 t_32 = f32x8_load_first(s_6 + (i0_21), 4);
    const f32x8 t_33 = (t_31 + t_32);
    f32x8_store_first(s_7 + (i0_21), t_33, 4);
  }

// section: function
FUNCTION void tide_kernel_2(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2) {
  idx i0_3 = lo;
  for (; i0_3 + 4 <= hi; i0_3 += 4) {
    f32x8 acc_4 = f32x8_of(0.0f);
    for (idx s_5 = 0; s_5 < 20; s_5++) {
      f32x8 t_6 = {0};
      #pragma GCC unroll 8
      for (int l = 0; l < 4; l++) t_6[l] = s_1[20 * (i0_3 + l) + s_5];
      acc_4 = acc_4 + t_6;
      #pragma GCC unroll 8
      for (int l = 0; l < 4; l++) s_2[20 * (i0_3 + l) + s_5] = acc_4[l];
    }
  }
  for (; i0_3 < hi; i0_3++) {
    f32x8 acc_7 = f32x8_of(0.0f);
    for (idx s_8 = 0; s_8 < 20; s_8++) {
      f32x8 t_9 = {0};
      #pragma GCC unroll 8
      for (int l = 0; l < 1; l++) t_9[l] = s_1[20 * (i0_3 + l) + s_8];
      acc_7 = acc_7 + t_9;
      s_2[20 * i0_3 + s_8] = acc_7[0];
    }
  }

  if (TAKE_ALL()) {
    tide_kernel_0(0, 6, thread, (f32 *)(A + (0)), (f32 *)(A + (640)));
    tide_kernel_1(0, 20, thread, (f32 *)(A + (0)), (f32 *)(A + (80)), (f32 *)(A + (160)), (f32 *)(A + (240)), (f32 *)(A + (320)), (f32 *)(A + (400)), (f32 *)(A + (512)));
    tide_kernel_2(0, 6, thread, (f32 *)(A + (0)), (f32 *)(A + (0)));
    DONE_ALL();
  }
  NEXT();

static NOINLINE void tide_part_1(Team *team, u8 *A, int thread, u32 *call) {

  tide_part_1(team, A, thread, call);

