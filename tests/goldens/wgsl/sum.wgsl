@group(0) @binding(0) var<storage, read_write> global_1: array<f32>;
@group(0) @binding(1) var<storage, read_write> global_2: array<f32>;
var<workgroup> shared_7: array<f32, 272>;

@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  zero = group.z;
  let block: i32 = i32(group.x + 7u * group.y);
  let thread_8: i32 = i32(local);
  let block_9: i32 = block;
   {
    var local_3: array<f32, 1>;
    var local_6: array<f32, 8>;
    let i_10: i32 = 256 * block_9 + thread_8;
    if (i_10 < 1600) {
      local_3[0] = 0.0f;
      for (var chunk_11: i32 = 0; chunk_11 < 5; chunk_11++) {
        for (var ahead_12: i32 = 0; ahead_12 < 8; ahead_12++) {
          let t_13: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * ahead_12 + 11200 * block_9 + 128 * chunk_11];
          local_6[ahead_12] = t_13;
        }
        for (var next_term_14: i32 = 0; next_term_14 < 8; next_term_14++) {
          let t_15: f32 = local_3[0];
          let t_16: f32 = local_6[next_term_14];
          let t_17: f32 = (t_15 + t_16);
          local_3[0] = t_17;
        }
      }
      for (var rest_18: i32 = 0; rest_18 < 3; rest_18++) {
        let t_19: f32 = local_3[0];
        let t_20: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 11200 * block_9 + 16 * rest_18 + 640];
        let t_21: f32 = (t_19 + t_20);
        local_3[0] = t_21;
      }
      let i_22: i32 = i32(u32(thread_8) % 16u);
      if (i_22 < 4) {
        for (var group_23: i32 = 0; group_23 < 3; group_23++) {
          let t_24: f32 = local_3[0];
          let t_25: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 11200 * block_9 + 4 * group_23 + 688];
          let t_26: f32 = (t_24 + t_25);
          local_3[0] = t_26;
        }
      }
      let t_27: f32 = local_3[0];
      shared_7[i32(u32(thread_8) % 16u) + 17 * i32(u32(thread_8) / 16u)] = t_27;
    }
  }
  workgroupBarrier(); storageBarrier();
   {
    let i_28: i32 = thread_8;
    let i_29: i32 = 16 * block_9 + thread_8;
    if (i_28 < 16 && i_29 < 100) {
      let t_30: f32 = shared_7[17 * thread_8];
      let t_31: f32 = shared_7[17 * thread_8 + 4];
      let t_32: f32 = (t_30 + t_31);
      let t_33: f32 = shared_7[17 * thread_8 + 8];
      let t_34: f32 = shared_7[17 * thread_8 + 12];
      let t_35: f32 = (t_33 + t_34);
      let t_36: f32 = (f32_kept(t_32) + f32_kept(t_35));
      let t_37: f32 = shared_7[17 * thread_8 + 2];
      let t_38: f32 = shared_7[17 * thread_8 + 6];
      let t_39: f32 = (t_37 + t_38);
      let t_40: f32 = shared_7[17 * thread_8 + 10];
      let t_41: f32 = shared_7[17 * thread_8 + 14];
      let t_42: f32 = (t_40 + t_41);
      let t_43: f32 = (f32_kept(t_39) + f32_kept(t_42));
      let t_44: f32 = (f32_kept(t_36) + f32_kept(t_43));
      let t_45: f32 = shared_7[17 * thread_8 + 1];
      let t_46: f32 = shared_7[17 * thread_8 + 5];
      let t_47: f32 = (t_45 + t_46);
      let t_48: f32 = shared_7[17 * thread_8 + 9];
      let t_49: f32 = shared_7[17 * thread_8 + 13];
      let t_50: f32 = (t_48 + t_49);
      let t_51: f32 = (f32_kept(t_47) + f32_kept(t_50));
      let t_52: f32 = shared_7[17 * thread_8 + 3];
      let t_53: f32 = shared_7[17 * thread_8 + 7];
      let t_54: f32 = (t_52 + t_53);
      let t_55: f32 = shared_7[17 * thread_8 + 11];
      let t_56: f32 = shared_7[17 * thread_8 + 15];
      let t_57: f32 = (t_55 + t_56);
      let t_58: f32 = (f32_kept(t_54) + f32_kept(t_57));
      let t_59: f32 = (f32_kept(t_51) + f32_kept(t_58));
      let t_60: f32 = (f32_kept(t_44) + f32_kept(t_59));
      global_2[16 * block_9 + thread_8] = t_60;
    }
  }
}
