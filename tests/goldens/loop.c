
// section: function
FUNCTION void tide_kernel_0(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2, f32 *s_3) {
  for (idx i0_4 = lo; i0_4 < hi; i0_4 += 8) {
    const f32x8 t_5 = f32x8_load(s_1 + (i0_4));
    const f32x8 t_6 = (t_5 * f32x8_of(0.5f));
    const f32x8 t_7 = f32x8_abs(t_6);
    const f32x8 t_8 = (t_7 * f32x8_of(0.6366197466850281f));
    const f32x8 t_9 = (t_8 + f32x8_of(12582912.0f));
    const i32x8 t_10 = (i32x8)t_9;
    const i32x8 t_11 = (t_10 & i32x8_of((i32)1u));
    const boolx8 t_12 = (t_11 != i32x8_of((i32)0u));
    const f32x8 t_13 = (t_9 - f32x8_of(12582912.0f));
    const f32x8 t_14 = (t_13 * f32x8_of(1.5703125f));
    const f32x8 t_15 = (t_7 - t_14);
    const f32x8 t_16 = (t_13 * f32x8_of(0.000484466552734375f));
    const f32x8 t_17 = (t_15 - t_16);
    const f32x8 t_18 = (t_13 * f32x8_of(-6.407499313354492e-7f));
    const f32x8 t_19 = (t_17 - t_18);
    const f32x8 t_20 = (t_13 * f32x8_of(9.89530235528946e-10f));
    const f32x8 t_21 = (t_19 - t_20);
    const f32x8 t_22 = (t_17 - t_19);
    const f32x8 t_23 = (t_22 - t_18);
    const f32x8 t_24 = (t_19 - t_21);
    const f32x8 t_25 = (t_24 - t_20);
    const f32x8 t_26 = (t_23 + t_25);
    const f32x8 t_27 = (t_13 * f32x8_of(2.5633440682570896e-12f));
    const f32x8 t_28 = (t_26 - t_27);
    const f32x8 t_29 = (t_21 + t_28);
    const f32x8 t_30 = f32x8_min2(f32x8_of(0.800000011920929f), t_29);
    const f32x8 t_31 = f32x8_max2(f32x8_of(-0.800000011920929f), t_30);
    const f32x8 t_32 = (t_31 * t_31);
    const f32x8 t_33 = (t_32 * f32x8_of(0.5f));
    const f32x8 t_34 = (f32x8_of(1.0f) - t_33);
    const f32x8 t_35 = (f32x8_of(1.0f) - t_34);
    const f32x8 t_36 = (t_35 - t_33);
    const f32x8 t_37 = (t_32 * t_32);
    const f32x8 t_38 = (f32x8_of(0.000024432327336398885f) * t_32);
    const f32x8 t_39 = (f32x8_of(-0.0013887309469282627f) + t_38);
    const f32x8 t_40 = (t_39 * t_32);
    const f32x8 t_41 = (f32x8_of(0.04166664555668831f) + t_40);
    const f32x8 t_42 = (t_37 * t_41);
    const f32x8 t_43 = (t_36 + t_42);
    const f32x8 t_44 = (t_34 + t_43);
    const f32x8 t_45 = (t_31 * t_32);
    const f32x8 t_46 = (f32x8_of(-0.00019518405315466225f) * t_32);
    const f32x8 t_47 = (f32x8_of(0.008332190103828907f) + t_46);
    const f32x8 t_48 = (t_47 * t_32);
    const f32x8 t_49 = (f32x8_of(-0.16666655242443085f) + t_48);
    const f32x8 t_50 = (t_45 * t_49);
    const f32x8 t_51 = (t_31 + t_50);
    const f32x8 t_52 = f32x8_pick(t_12, t_44, t_51);
    const i32x8 t_53 = (i32x8)t_52;
    const i32x8 t_54 = (i32x8)((u32x8)t_10 << 30);
    const i32x8 t_55 = (i32x8)t_6;
    const i32x8 t_56 = (t_54 ^ t_55);
    const i32x8 t_57 = (t_56 & i32x8_of((i32)2147483648u));
    const i32x8 t_58 = (t_53 ^ t_57);
    const f32x8 t_59 = (f32x8)t_58;
    f32x8_store(s_2 + (i0_4), t_6);
    f32x8_store(s_3 + (i0_4), t_59);
  }

// section: function rare
FUNCTION void tide_kernel_1(idx lo, idx hi, int thread, f32 *s_1) {
  for (idx i0_2 = lo; i0_2 < hi; i0_2 += 8) {
    const f32x8 t_3 = f32x8_of(1.0f);
    f32x8_store(s_1 + (i0_2), t_3);
  }

// section: function
FUNCTION void tide_kernel_2(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2, f32 *s_3) {
  for (idx i0_4 = lo; i0_4 < hi; i0_4 += 8) {
    const f32x8 t_5 = f32x8_load(s_1 + (i0_4));
    const f32x8 t_6 = f32x8_load(s_2 + (i0_4));
    const f32x8 t_7 = (t_6 * f32x8_of(0.6366197466850281f));
    const f32x8 t_8 = (t_7 + f32x8_of(12582912.0f));
    const i32x8 t_9 = (i32x8)t_8;
    const i32x8 t_10 = (t_9 & i32x8_of((i32)1u));
    const boolx8 t_11 = (t_10 != i32x8_of((i32)0u));
    const f32x8 t_12 = (t_8 - f32x8_of(12582912.0f));
    const f32x8 t_13 = (t_12 * f32x8_of(1.5703125f));
    const f32x8 t_14 = (t_6 - t_13);
    const f32x8 t_15 = (t_12 * f32x8_of(0.000484466552734375f));
    const f32x8 t_16 = (t_14 - t_15);
    const f32x8 t_17 = (t_12 * f32x8_of(-6.407499313354492e-7f));
    const f32x8 t_18 = (t_16 - t_17);
    const f32x8 t_19 = (t_12 * f32x8_of(9.89530235528946e-10f));
    const f32x8 t_20 = (t_18 - t_19);
    const f32x8 t_21 = (t_16 - t_18);
    const f32x8 t_22 = (t_21 - t_17);
    const f32x8 t_23 = (t_18 - t_20);
    const f32x8 t_24 = (t_23 - t_19);
    const f32x8 t_25 = (t_22 + t_24);
    const f32x8 t_26 = (t_12 * f32x8_of(2.5633440682570896e-12f));
    const f32x8 t_27 = (t_25 - t_26);
    const f32x8 t_28 = (t_20 + t_27);
    const f32x8 t_29 = f32x8_min2(f32x8_of(0.800000011920929f), t_28);
    const f32x8 t_30 = f32x8_max2(f32x8_of(-0.800000011920929f), t_29);
    const f32x8 t_31 = (t_30 * t_30);
    const f32x8 t_32 = (t_30 * t_31);
    const f32x8 t_33 = (f32x8_of(-0.00019518405315466225f) * t_31);
    const f32x8 t_34 = (f32x8_of(0.008332190103828907f) + t_33);
    const f32x8 t_35 = (t_34 * t_31);
    const f32x8 t_36 = (f32x8_of(-0.16666655242443085f) + t_35);
    const f32x8 t_37 = (t_32 * t_36);
    const f32x8 t_38 = (t_30 + t_37);
    const f32x8 t_39 = (t_31 * f32x8_of(0.5f));
    const f32x8 t_40 = (f32x8_of(1.0f) - t_39);
    const f32x8 t_41 = (f32x8_of(1.0f) - t_40);
    const f32x8 t_42 = (t_41 - t_39);
    const f32x8 t_43 = (t_31 * t_31);
    const f32x8 t_44 = (f32x8_of(0.000024432327336398885f) * t_31);
    const f32x8 t_45 = (f32x8_of(-0.0013887309469282627f) + t_44);
    const f32x8 t_46 = (t_45 * t_31);
    const f32x8 t_47 = (f32x8_of(0.04166664555668831f) + t_46);
    const f32x8 t_48 = (t_43 * t_47);
    const f32x8 t_49 = (t_42 + t_48);
    const f32x8 t_50 = (t_40 + t_49);
    const f32x8 t_51 = f32x8_pick(t_11, t_38, t_50);
    const i32x8 t_52 = (i32x8)t_51;
    const i32x8 t_53 = (t_9 + i32x8_of((i32)1u));
    const i32x8 t_54 = (i32x8)((u32x8)t_53 << 30);
    const i32x8 t_55 = (t_54 & i32x8_of((i32)2147483648u));
    const i32x8 t_56 = (t_52 ^ t_55);
    const f32x8 t_57 = (f32x8)t_56;
    const f32x8 t_58 = (t_5 * t_57);
    const f32x8 t_59 = (t_58 * f32x8_of(0.5f));
    f32x8_store(s_3 + (i0_4), t_59);
  }

  idx i_4 = 0;
  idx turns_3 = 0;
  idx i_2 = 0;
  idx turns_1 = 0;
  turns_1 = 5;
  i_2 = 0;
  for (;;) {
    if (!((i_2 < turns_1))) break;
    if (TAKE_ALL()) {
      tide_kernel_0(0, 8, thread, (f32 *)(A + (192)), (f32 *)(A + ((i_2 * 32))), (f32 *)(A + (192)));
      DONE_ALL();
    }
    NEXT();
    i_2 = (i_2 + 1);
  }
  if (TAKE_ALL()) {
    tide_kernel_1(0, 8, thread, (f32 *)(A + (192)));
    DONE_ALL();
  }
  NEXT();
  turns_3 = 5;
  i_4 = turns_3;
  for (;;) {
    if (!((0 < i_4))) break;
    i_4 = (i_4 + -1);
    if (TAKE_ALL()) {
      tide_kernel_2(0, 8, thread, (f32 *)(A + (192)), (f32 *)(A + ((i_4 * 32))), (f32 *)(A + (192)));
      DONE_ALL();
    }
    NEXT();
  }

static NOINLINE void tide_part_1(Team *team, u8 *A, int thread, u32 *call) {

  tide_part_1(team, A, thread, call);

