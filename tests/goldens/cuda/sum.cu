extern "C" __global__ void __launch_bounds__(256) tide_launch_0(f32 *global_1, f32 *global_2) {
  __shared__ __align__(16) f32 shared_7[272];
  const idx thread_8 = threadIdx.x;
  const idx block_9 = (idx)blockIdx.x;
   {
    f32 local_3[1];
    f32 local_6[8];
    const idx i_10 = 256 * block_9 + thread_8;
    if (i_10 < 1600) {
      local_3[0] = 0.0f;
      for (idx chunk_11 = 0; chunk_11 < 5; chunk_11++) {
        #pragma unroll
        for (idx ahead_12 = 0; ahead_12 < 8; ahead_12++) {
          const f32 t_13 = global_1[(idx)((u32)(thread_8) % 16u) + 700 * (idx)((u32)(thread_8) / 16u) + 16 * ahead_12 + 11200 * block_9 + 128 * chunk_11];
          local_6[ahead_12] = t_13;
        }
        #pragma unroll
        for (idx next_term_14 = 0; next_term_14 < 8; next_term_14++) {
          const f32 t_15 = local_3[0];
          const f32 t_16 = local_6[next_term_14];
          const f32 t_17 = (t_15 + t_16);
          local_3[0] = t_17;
        }
      }
      for (idx rest_18 = 0; rest_18 < 3; rest_18++) {
        const f32 t_19 = local_3[0];
        const f32 t_20 = global_1[(idx)((u32)(thread_8) % 16u) + 700 * (idx)((u32)(thread_8) / 16u) + 11200 * block_9 + 16 * rest_18 + 640];
        const f32 t_21 = (t_19 + t_20);
        local_3[0] = t_21;
      }
      const idx i_22 = (idx)((u32)(thread_8) % 16u);
      if (i_22 < 4) {
        for (idx group_23 = 0; group_23 < 3; group_23++) {
          const f32 t_24 = local_3[0];
          const f32 t_25 = global_1[(idx)((u32)(thread_8) % 16u) + 700 * (idx)((u32)(thread_8) / 16u) + 11200 * block_9 + 4 * group_23 + 688];
          const f32 t_26 = (t_24 + t_25);
          local_3[0] = t_26;
        }
      }
      const f32 t_27 = local_3[0];
      shared_7[(idx)((u32)(thread_8) % 16u) + 17 * (idx)((u32)(thread_8) / 16u)] = t_27;
    }
  }
  __syncthreads();
   {
    const idx i_28 = thread_8;
    const idx i_29 = 16 * block_9 + thread_8;
    if (i_28 < 16 && i_29 < 100) {
      const f32 t_30 = shared_7[17 * thread_8];
      const f32 t_31 = shared_7[17 * thread_8 + 4];
      const f32 t_32 = (t_30 + t_31);
      const f32 t_33 = shared_7[17 * thread_8 + 8];
      const f32 t_34 = shared_7[17 * thread_8 + 12];
      const f32 t_35 = (t_33 + t_34);
      const f32 t_36 = (t_32 + t_35);
      const f32 t_37 = shared_7[17 * thread_8 + 2];
      const f32 t_38 = shared_7[17 * thread_8 + 6];
      const f32 t_39 = (t_37 + t_38);
      const f32 t_40 = shared_7[17 * thread_8 + 10];
      const f32 t_41 = shared_7[17 * thread_8 + 14];
      const f32 t_42 = (t_40 + t_41);
      const f32 t_43 = (t_39 + t_42);
      const f32 t_44 = (t_36 + t_43);
      const f32 t_45 = shared_7[17 * thread_8 + 1];
      const f32 t_46 = shared_7[17 * thread_8 + 5];
      const f32 t_47 = (t_45 + t_46);
      const f32 t_48 = shared_7[17 * thread_8 + 9];
      const f32 t_49 = shared_7[17 * thread_8 + 13];
      const f32 t_50 = (t_48 + t_49);
      const f32 t_51 = (t_47 + t_50);
      const f32 t_52 = shared_7[17 * thread_8 + 3];
      const f32 t_53 = shared_7[17 * thread_8 + 7];
      const f32 t_54 = (t_52 + t_53);
      const f32 t_55 = shared_7[17 * thread_8 + 11];
      const f32 t_56 = shared_7[17 * thread_8 + 15];
      const f32 t_57 = (t_55 + t_56);
      const f32 t_58 = (t_54 + t_57);
      const f32 t_59 = (t_51 + t_58);
      const f32 t_60 = (t_44 + t_59);
      global_2[16 * block_9 + thread_8] = t_60;
    }
  }
}
