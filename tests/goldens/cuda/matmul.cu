extern "C" __global__ void __launch_bounds__(256) tide_launch_0(f32 *global_1, f32 *global_2, f32 *global_3) {
  __shared__ __align__(16) f32 shared_5[576];
  __shared__ __align__(16) f32 shared_7[576];
  f32 register_9[4];
  const idx thread_10 = threadIdx.x;
  const idx col_tile_11 = (idx)((u32)((idx)blockIdx.x) % 13u);
  const idx row_tile_12 = (idx)((u32)((idx)blockIdx.x) / 13u);
   {
    #pragma unroll
    for (idx row_next_13 = 0; row_next_13 < 2; row_next_13++) {
      #pragma unroll
      for (idx col_next_14 = 0; col_next_14 < 2; col_next_14++) {
        register_9[col_next_14 + 2 * row_next_13] = 0.0f;
      }
    }
  }
  __syncthreads();
  for (idx step_15 = 0; step_15 < 13; step_15++) {
     {
      #pragma unroll
      for (idx fill_a_16 = 0; fill_a_16 < 2; fill_a_16++) {
        const idx i_18 = (idx)((u32)(thread_10) / 16u) + 16 * fill_a_16 + 32 * row_tile_12;
        const idx i_19 = (idx)((u32)(thread_10) % 16u) + 16 * step_15;
        f32 t_17;
        if (i_18 < 300 && i_19 < 200) {
          const f32 t_20 = global_1[(idx)((u32)(thread_10) % 16u) + 200 * (idx)((u32)(thread_10) / 16u) + 3200 * fill_a_16 + 6400 * row_tile_12 + 16 * step_15];
          t_17 = t_20;
        }
        else {
          t_17 = 0.0f;
        }
        shared_5[36 * (idx)((u32)(thread_10) % 16u) + (idx)((u32)(thread_10) / 16u) + 16 * fill_a_16] = t_17;
      }
      #pragma unroll
      for (idx fill_b_21 = 0; fill_b_21 < 2; fill_b_21++) {
        const idx i_23 = (idx)((u32)(thread_10) % 32u) + 32 * col_tile_11;
        const idx i_24 = (idx)((u32)(thread_10) / 32u) + 8 * fill_b_21 + 16 * step_15;
        f32 t_22;
        if (i_23 < 400 && i_24 < 200) {
          const f32 t_25 = global_2[(idx)((u32)(thread_10) % 32u) + 400 * (idx)((u32)(thread_10) / 32u) + 32 * col_tile_11 + 3200 * fill_b_21 + 6400 * step_15];
          t_22 = t_25;
        }
        else {
          t_22 = 0.0f;
        }
        shared_7[(idx)((u32)(thread_10) % 32u) + 36 * (idx)((u32)(thread_10) / 32u) + 288 * fill_b_21] = t_22;
      }
    }
    __syncthreads();
     {
      f32 local_6[2];
      f32 local_8[2];
      for (idx l_26 = 0; l_26 < 16; l_26++) {
        const idx i_27 = l_26 + 16 * step_15;
        if (i_27 < 200) {
          { const float2 v = *(const float2 *)&shared_5[2 * (idx)((u32)(thread_10) / 16u) + 36 * l_26]; (&local_6[0])[0] = v.x; (&local_6[0])[1] = v.y; }
          { const float2 v = *(const float2 *)&shared_7[2 * (idx)((u32)(thread_10) % 16u) + 36 * l_26]; (&local_8[0])[0] = v.x; (&local_8[0])[1] = v.y; }
          #pragma unroll
          for (idx row_next_28 = 0; row_next_28 < 2; row_next_28++) {
            #pragma unroll
            for (idx col_next_29 = 0; col_next_29 < 2; col_next_29++) {
              const f32 t_30 = local_6[row_next_28];
              const f32 t_31 = local_8[col_next_29];
              register_9[col_next_29 + 2 * row_next_28] = __fmaf_rn(t_30, t_31, register_9[col_next_29 + 2 * row_next_28]);
            }
          }
        }
      }
    }
    __syncthreads();
  }
   {
    #pragma unroll
    for (idx row_next_32 = 0; row_next_32 < 2; row_next_32++) {
      #pragma unroll
      for (idx col_next_33 = 0; col_next_33 < 2; col_next_33++) {
        const idx i_34 = 2 * (idx)((u32)(thread_10) / 16u) + row_next_32 + 32 * row_tile_12;
        const idx i_35 = 2 * (idx)((u32)(thread_10) % 16u) + col_next_33 + 32 * col_tile_11;
        if (i_34 < 300 && i_35 < 400) {
          const f32 t_36 = register_9[col_next_33 + 2 * row_next_32];
          global_3[2 * (idx)((u32)(thread_10) % 16u) + 800 * (idx)((u32)(thread_10) / 16u) + col_next_33 + 32 * col_tile_11 + 400 * row_next_32 + 12800 * row_tile_12] = t_36;
        }
      }
    }
  }
}
