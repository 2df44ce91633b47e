
// section: function
FUNCTION void tide_kernel_0(idx lo, idx hi, int thread, i32 *s_1, f32 *s_2, f32 *s_3) {
  for (idx unit_4 = lo; unit_4 < hi; unit_4++) {
    const idx i0_5 = unit_4;
     {
      const idx i1_6 = 0;
      const i32x8 t_9 = i32x8_of(s_1[i0_5]);
      const idx i_8 = (idx)t_9[0];
      f32x8 t_7;
      if (0 <= i_8 && i_8 < 10) {
        const f32x8 t_10 = f32x8_load_first(s_2 + (4 * (idx)t_9[0] + i1_6), 4);
        t_7 = t_10;
      }
      else {
        t_7 = f32x8_of(__builtin_nanf(""));
      }
      const f32x8 t_11 = f32x8_abs(t_7);
      const f32x8 t_12 = (t_11 * f32x8_of(-2.0f));
      const f32x8 t_13 = f32x8_max2(f32x8_of(-40.0f), t_12);
      const f32x8 t_14 = (t_13 * f32x8_of(1.4426950216293335f));
      const f32x8 t_15 = (t_14 + f32x8_of(12582912.0f));
      const i32x8 t_16 = (i32x8)t_15;
      const i32x8 t_17 = (i32x8)((u32x8)t_16 << 23);
      const i32x8 t_18 = (t_17 + i32x8_of((i32)1065353216u));
      const f32x8 t_19 = (f32x8)t_18;
      const f32x8 t_20 = (f32x8_of(1.0f) - t_19);
      const f32x8 t_21 = (t_15 - f32x8_of(12582912.0f));
      const f32x8 t_22 = (t_21 * f32x8_of(0.693359375f));
      const f32x8 t_23 = (t_13 - t_22);
      const f32x8 t_24 = (t_21 * f32x8_of(-0.00021219444170128554f));
      const f32x8 t_25 = (t_23 - t_24);
      const f32x8 t_26 = (t_25 * t_25);
      const f32x8 t_27 = (f32x8_of(0.0013941216748207808f) * t_25);
      const f32x8 t_28 = (f32x8_of(0.00836323481053114f) + t_27);
      const f32x8 t_29 = (t_28 * t_25);
      const f32x8 t_30 = (f32x8_of(0.04166637361049652f) + t_29);
      const f32x8 t_31 = (t_30 * t_25);
      const f32x8 t_32 = (f32x8_of(0.16666576266288757f) + t_31);
      const f32x8 t_33 = (t_32 * t_25);
      const f32x8 t_34 = (f32x8_of(0.5f) + t_33);
      const f32x8 t_35 = (t_26 * t_34);
      const f32x8 t_36 = (t_25 + t_35);
      const f32x8 t_37 = (t_19 * t_36);
      const f32x8 t_38 = (t_20 - t_37);
      const f32x8 t_39 = (f32x8_of(2.0f) - t_38);
      const f32x8 t_40 = (t_38 / t_39);
      const i32x8 t_41 = (i32x8)t_40;
      const i32x8 t_42 = (i32x8)t_7;
      const i32x8 t_43 = (t_42 & i32x8_of((i32)2147483648u));
      const i32x8 t_44 = (t_41 | t_43);
      const f32x8 t_45 = (f32x8)t_44;
      f32x8_store_first(s_3 + (4 * i0_5 + i1_6), t_45, 4);
    }
  }

  if (TAKE_ALL()) {
    tide_kernel_0(0, 3, thread, (i32 *)(A + (256)), (f32 *)(A + (0)), (f32 *)(A + (192)));
    DONE_ALL();
  }
  NEXT();

static NOINLINE void tide_part_1(Team *team, u8 *A, int thread, u32 *call) {

  tide_part_1(team, A, thread, call);

