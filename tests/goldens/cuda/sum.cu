extern "C" __global__ void __launch_bounds__(256) tide_launch_0(f32 *global_1, f32 *global_2) {
  __shared__ __align__(16) f32 shared_6[272];
  const idx thread_7 = threadIdx.x;
  const idx block_8 = (idx)blockIdx.x;
   {
    f32 local_3[1];
    const idx i_9 = 256 * block_8 + thread_7;
    if (i_9 < 1600) {
      local_3[0] = 0.0f;
      for (idx round_10 = 0; round_10 < 43; round_10++) {
        const f32 t_11 = local_3[0];
        const f32 t_12 = global_1[(idx)((u32)(thread_7) % 16u) + 700 * (idx)((u32)(thread_7) / 16u) + 11200 * block_8 + 16 * round_10];
        const f32 t_13 = (t_11 + t_12);
        local_3[0] = t_13;
      }
      const idx i_14 = (idx)((u32)(thread_7) % 16u);
      if (i_14 < 4) {
        for (idx group_15 = 0; group_15 < 3; group_15++) {
          const f32 t_16 = local_3[0];
          const f32 t_17 = global_1[(idx)((u32)(thread_7) % 16u) + 700 * (idx)((u32)(thread_7) / 16u) + 11200 * block_8 + 4 * group_15 + 688];
          const f32 t_18 = (t_16 + t_17);
          local_3[0] = t_18;
        }
      }
      const f32 t_19 = local_3[0];
      shared_6[(idx)((u32)(thread_7) % 16u) + 17 * (idx)((u32)(thread_7) / 16u)] = t_19;
    }
  }
  __syncthreads();
   {
    const idx i_20 = thread_7;
    const idx i_21 = 16 * block_8 + thread_7;
    if (i_20 < 16 && i_21 < 100) {
      const f32 t_22 = shared_6[17 * thread_7];
      const f32 t_23 = shared_6[17 * thread_7 + 4];
      const f32 t_24 = (t_22 + t_23);
      const f32 t_25 = shared_6[17 * thread_7 + 8];
      const f32 t_26 = shared_6[17 * thread_7 + 12];
      const f32 t_27 = (t_25 + t_26);
      const f32 t_28 = (t_24 + t_27);
      const f32 t_29 = shared_6[17 * thread_7 + 2];
      const f32 t_30 = shared_6[17 * thread_7 + 6];
      const f32 t_31 = (t_29 + t_30);
      const f32 t_32 = shared_6[17 * thread_7 + 10];
      const f32 t_33 = shared_6[17 * thread_7 + 14];
      const f32 t_34 = (t_32 + t_33);
      const f32 t_35 = (t_31 + t_34);
      const f32 t_36 = (t_28 + t_35);
      const f32 t_37 = shared_6[17 * thread_7 + 1];
      const f32 t_38 = shared_6[17 * thread_7 + 5];
      const f32 t_39 = (t_37 + t_38);
      const f32 t_40 = shared_6[17 * thread_7 + 9];
      const f32 t_41 = shared_6[17 * thread_7 + 13];
      const f32 t_42 = (t_40 + t_41);
      const f32 t_43 = (t_39 + t_42);
      const f32 t_44 = shared_6[17 * thread_7 + 3];
      const f32 t_45 = shared_6[17 * thread_7 + 7];
      const f32 t_46 = (t_44 + t_45);
      const f32 t_47 = shared_6[17 * thread_7 + 11];
      const f32 t_48 = shared_6[17 * thread_7 + 15];
      const f32 t_49 = (t_47 + t_48);
      const f32 t_50 = (t_46 + t_49);
      const f32 t_51 = (t_43 + t_50);
      const f32 t_52 = (t_36 + t_51);
      global_2[16 * block_8 + thread_7] = t_52;
    }
  }
}
