@group(0) @binding(0) var<storage, read_write> global_1: array<f32>;
@group(0) @binding(1) var<storage, read_write> global_2: array<f32>;
var<workgroup> shared_6: array<f32, 272>;

@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  zero = group.z;
  let block: i32 = i32(group.x + 7u * group.y);
  let thread_7: i32 = i32(local);
  let block_8: i32 = block;
   {
    var local_3: array<f32, 1>;
    let i_9: i32 = 256 * block_8 + thread_7;
    if (i_9 < 1600) {
      local_3[0] = 0.0f;
      for (var round_10: i32 = 0; round_10 < 43; round_10++) {
        let t_11: f32 = local_3[0];
        let t_12: f32 = global_1[i32(u32(thread_7) % 16u) + 700 * i32(u32(thread_7) / 16u) + 11200 * block_8 + 16 * round_10];
        let t_13: f32 = (t_11 + t_12);
        local_3[0] = t_13;
      }
      let i_14: i32 = i32(u32(thread_7) % 16u);
      if (i_14 < 4) {
        for (var group_15: i32 = 0; group_15 < 3; group_15++) {
          let t_16: f32 = local_3[0];
          let t_17: f32 = global_1[i32(u32(thread_7) % 16u) + 700 * i32(u32(thread_7) / 16u) + 11200 * block_8 + 4 * group_15 + 688];
          let t_18: f32 = (t_16 + t_17);
          local_3[0] = t_18;
        }
      }
      let t_19: f32 = local_3[0];
      shared_6[i32(u32(thread_7) % 16u) + 17 * i32(u32(thread_7) / 16u)] = t_19;
    }
  }
  workgroupBarrier(); storageBarrier();
   {
    let i_20: i32 = thread_7;
    let i_21: i32 = 16 * block_8 + thread_7;
    if (i_20 < 16 && i_21 < 100) {
      let t_22: f32 = shared_6[17 * thread_7];
      let t_23: f32 = shared_6[17 * thread_7 + 4];
      let t_24: f32 = (t_22 + t_23);
      let t_25: f32 = shared_6[17 * thread_7 + 8];
      let t_26: f32 = shared_6[17 * thread_7 + 12];
      let t_27: f32 = (t_25 + t_26);
      let t_28: f32 = (f32_kept(t_24) + f32_kept(t_27));
      let t_29: f32 = shared_6[17 * thread_7 + 2];
      let t_30: f32 = shared_6[17 * thread_7 + 6];
      let t_31: f32 = (t_29 + t_30);
      let t_32: f32 = shared_6[17 * thread_7 + 10];
      let t_33: f32 = shared_6[17 * thread_7 + 14];
      let t_34: f32 = (t_32 + t_33);
      let t_35: f32 = (f32_kept(t_31) + f32_kept(t_34));
      let t_36: f32 = (f32_kept(t_28) + f32_kept(t_35));
      let t_37: f32 = shared_6[17 * thread_7 + 1];
      let t_38: f32 = shared_6[17 * thread_7 + 5];
      let t_39: f32 = (t_37 + t_38);
      let t_40: f32 = shared_6[17 * thread_7 + 9];
      let t_41: f32 = shared_6[17 * thread_7 + 13];
      let t_42: f32 = (t_40 + t_41);
      let t_43: f32 = (f32_kept(t_39) + f32_kept(t_42));
      let t_44: f32 = shared_6[17 * thread_7 + 3];
      let t_45: f32 = shared_6[17 * thread_7 + 7];
      let t_46: f32 = (t_44 + t_45);
      let t_47: f32 = shared_6[17 * thread_7 + 11];
      let t_48: f32 = shared_6[17 * thread_7 + 15];
      let t_49: f32 = (t_47 + t_48);
      let t_50: f32 = (f32_kept(t_46) + f32_kept(t_49));
      let t_51: f32 = (f32_kept(t_43) + f32_kept(t_50));
      let t_52: f32 = (f32_kept(t_36) + f32_kept(t_51));
      global_2[16 * block_8 + thread_7] = t_52;
    }
  }
}
