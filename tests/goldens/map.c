
// section: function
FUNCTION void tide_kernel_0(idx lo, idx hi, int thread, f32 *s_1, f32 *s_2, f32 *s_3) {
  for (idx unit_4 = lo; unit_4 < hi; unit_4++) {
    const idx i0_5 = unit_4;
     {
      const idx i1_6 = 0;
      const f32x8 t_7 = f32x8_load_first(s_1 + (4 * i0_5 + i1_6), 4);
      const f32x8 t_8 = f32x8_load_first(s_2 + (i1_6), 4);
      const f32x8 t_9 = (t_7 * t_8);
      const f32x8 t_10 = (t_9 + f32x8_of(1.0f));
      const f32x8 t_11 = (f32x8_max2(f32x8_of(0.0f), t_10) + 0);
      f32x8_store_first(s_3 + (4 * i0_5 + i1_6), t_11, 4);
    }
  }

  if (TAKE_ALL()) {
    tide_kernel_0(0, 5, thread, (f32 *)(A + (0)), (f32 *)(A + (128)), (f32 *)(A + (0)));
    DONE_ALL();
  }
  NEXT();

static NOINLINE void tide_part_1(Team *team, u8 *A, int thread, u32 *call) {

  tide_part_1(team, A, thread, call);

