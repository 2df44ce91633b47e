extern "C" __global__ void __launch_bounds__(256) tide_launch_0(f32 *global_1, f32 *global_2, f32 *global_3) {
  const idx thread_4 = threadIdx.x;
  const idx block_5 = (idx)blockIdx.x;
   {
    const idx i_6 = 256 * block_5 + thread_4;
    if (i_6 < 1000) {
      const f32 t_7 = global_1[256 * block_5 + thread_4];
      const f32 t_8 = global_2[256 * block_5 + thread_4];
      const f32 t_9 = (t_7 + t_8);
      global_3[256 * block_5 + thread_4] = t_9;
    }
  }
}
