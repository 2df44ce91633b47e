extern "C" __global__ void __launch_bounds__(256) tide_launch_0(f32 *global_1, f32 *global_2, f32 *global_3) {
  __shared__ __align__(16) f32 shared_5[1152];
  __shared__ __align__(16) f32 shared_8[1152];
  f32 register_11[4];
  const idx thread_12 = threadIdx.x;
  const idx col_tile_13 = (idx)((u32)((idx)blockIdx.x) % 13u);
  const idx row_tile_14 = (idx)((u32)((idx)blockIdx.x) / 13u);
   {
    #pragma unroll
    for (idx row_next_15 = 0; row_next_15 < 2; row_next_15++) {
      #pragma unroll
      for (idx col_next_16 = 0; col_next_16 < 2; col_next_16++) {
        register_11[col_next_16 + 2 * row_next_15] = 0.0f;
      }
    }
    #pragma unroll
    for (idx row_read_17 = 0; row_read_17 < 2; row_read_17++) {
      const idx i_19 = (idx)((u32)(thread_12) / 16u) + 16 * row_read_17 + 32 * row_tile_14;
      f32 t_18;
      if (i_19 < 300) {
        const f32 t_20 = global_1[(idx)((u32)(thread_12) % 16u) + 200 * (idx)((u32)(thread_12) / 16u) + 3200 * row_read_17 + 6400 * row_tile_14];
        t_18 = t_20;
      }
      else {
        t_18 = 0.0f;
      }
      shared_5[36 * (idx)((u32)(thread_12) % 16u) + (idx)((u32)(thread_12) / 16u) + 16 * row_read_17] = t_18;
    }
    #pragma unroll
    for (idx col_read_21 = 0; col_read_21 < 2; col_read_21++) {
      const idx i_23 = (idx)((u32)(thread_12) % 32u) + 32 * col_tile_13;
      f32 t_22;
      if (i_23 < 400) {
        const f32 t_24 = global_2[(idx)((u32)(thread_12) % 32u) + 400 * (idx)((u32)(thread_12) / 32u) + 3200 * col_read_21 + 32 * col_tile_13];
        t_22 = t_24;
      }
      else {
        t_22 = 0.0f;
      }
      shared_8[(idx)((u32)(thread_12) % 32u) + 36 * (idx)((u32)(thread_12) / 32u) + 288 * col_read_21] = t_22;
    }
  }
  __syncthreads();
  for (idx step_25 = 0; step_25 < 13; step_25++) {
     {
      f32 local_6[2];
      f32 local_7[2];
      f32 local_9[2];
      f32 local_10[2];
      const idx i_26 = step_25 + 1;
      const idx i_27 = 16 * step_25 + 16;
      if (i_26 < 13 && i_27 < 200) {
        #pragma unroll
        for (idx row_read_28 = 0; row_read_28 < 2; row_read_28++) {
          const idx i_30 = (idx)((u32)(thread_12) / 16u) + 16 * row_read_28 + 32 * row_tile_14;
          const idx i_31 = (idx)((u32)(thread_12) % 16u) + 16 * step_25 + 16;
          f32 t_29;
          if (i_30 < 300 && i_31 < 200) {
            const f32 t_32 = global_1[(idx)((u32)(thread_12) % 16u) + 200 * (idx)((u32)(thread_12) / 16u) + 3200 * row_read_28 + 6400 * row_tile_14 + 16 * step_25 + 16];
            t_29 = t_32;
          }
          else {
            t_29 = 0.0f;
          }
          local_7[row_read_28] = t_29;
        }
        #pragma unroll
        for (idx col_read_33 = 0; col_read_33 < 2; col_read_33++) {
          const idx i_35 = (idx)((u32)(thread_12) % 32u) + 32 * col_tile_13;
          const idx i_36 = (idx)((u32)(thread_12) / 32u) + 8 * col_read_33 + 16 * step_25 + 16;
          f32 t_34;
          if (i_35 < 400 && i_36 < 200) {
            const f32 t_37 = global_2[(idx)((u32)(thread_12) % 32u) + 400 * (idx)((u32)(thread_12) / 32u) + 3200 * col_read_33 + 32 * col_tile_13 + 6400 * step_25 + 6400];
            t_34 = t_37;
          }
          else {
            t_34 = 0.0f;
          }
          local_10[col_read_33] = t_34;
        }
      }
      #pragma unroll
      for (idx l_38 = 0; l_38 < 16; l_38++) {
        const idx i_39 = l_38 + 16 * step_25;
        if (i_39 < 200) {
          { const float2 v = *(const float2 *)&shared_5[576 * (idx)((u32)(step_25) % 2u) + 2 * (idx)((u32)(thread_12) / 16u) + 36 * l_38]; (&local_6[0])[0] = v.x; (&local_6[0])[1] = v.y; }
          { const float2 v = *(const float2 *)&shared_8[576 * (idx)((u32)(step_25) % 2u) + 2 * (idx)((u32)(thread_12) % 16u) + 36 * l_38]; (&local_9[0])[0] = v.x; (&local_9[0])[1] = v.y; }
          #pragma unroll
          for (idx row_next_40 = 0; row_next_40 < 2; row_next_40++) {
            #pragma unroll
            for (idx col_next_41 = 0; col_next_41 < 2; col_next_41++) {
              const f32 t_42 = local_6[row_next_40];
              const f32 t_43 = local_9[col_next_41];
              register_11[col_next_41 + 2 * row_next_40] = __fmaf_rn(t_42, t_43, register_11[col_next_41 + 2 * row_next_40]);
            }
          }
        }
      }
      const idx i_44 = step_25 + 1;
      const idx i_45 = 16 * step_25 + 16;
      if (i_44 < 13 && i_45 < 200) {
        #pragma unroll
        for (idx row_read_46 = 0; row_read_46 < 2; row_read_46++) {
          const f32 t_47 = local_7[row_read_46];
          shared_5[576 * (idx)((u32)(step_25 + 1) % 2u) + 36 * (idx)((u32)(thread_12) % 16u) + (idx)((u32)(thread_12) / 16u) + 16 * row_read_46] = t_47;
        }
        #pragma unroll
        for (idx col_read_48 = 0; col_read_48 < 2; col_read_48++) {
          const f32 t_49 = local_10[col_read_48];
          shared_8[576 * (idx)((u32)(step_25 + 1) % 2u) + (idx)((u32)(thread_12) % 32u) + 36 * (idx)((u32)(thread_12) / 32u) + 288 * col_read_48] = t_49;
        }
      }
    }
    __syncthreads();
  }
   {
    #pragma unroll
    for (idx row_next_50 = 0; row_next_50 < 2; row_next_50++) {
      #pragma unroll
      for (idx col_next_51 = 0; col_next_51 < 2; col_next_51++) {
        const idx i_52 = 2 * (idx)((u32)(thread_12) / 16u) + row_next_50 + 32 * row_tile_14;
        const idx i_53 = 2 * (idx)((u32)(thread_12) % 16u) + col_next_51 + 32 * col_tile_13;
        if (i_52 < 300 && i_53 < 400) {
          const f32 t_54 = register_11[col_next_51 + 2 * row_next_50];
          global_3[2 * (idx)((u32)(thread_12) % 16u) + 800 * (idx)((u32)(thread_12) / 16u) + col_next_51 + 32 * col_tile_13 + 400 * row_next_50 + 12800 * row_tile_14] = t_54;
        }
      }
    }
  }
}
