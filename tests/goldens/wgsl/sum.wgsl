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
        let t_12: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 0 + 11200 * block_9 + 128 * chunk_11];
        local_6[0] = t_12;
        let t_13: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 1 + 11200 * block_9 + 128 * chunk_11];
        local_6[1] = t_13;
        let t_14: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 2 + 11200 * block_9 + 128 * chunk_11];
        local_6[2] = t_14;
        let t_15: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 3 + 11200 * block_9 + 128 * chunk_11];
        local_6[3] = t_15;
        let t_16: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 4 + 11200 * block_9 + 128 * chunk_11];
        local_6[4] = t_16;
        let t_17: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 5 + 11200 * block_9 + 128 * chunk_11];
        local_6[5] = t_17;
        let t_18: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 6 + 11200 * block_9 + 128 * chunk_11];
        local_6[6] = t_18;
        let t_19: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 16 * 7 + 11200 * block_9 + 128 * chunk_11];
        local_6[7] = t_19;
        let t_20: f32 = local_3[0];
        let t_21: f32 = local_6[0];
        let t_22: f32 = (t_20 + t_21);
        local_3[0] = t_22;
        let t_23: f32 = local_3[0];
        let t_24: f32 = local_6[1];
        let t_25: f32 = (t_23 + t_24);
        local_3[0] = t_25;
        let t_26: f32 = local_3[0];
        let t_27: f32 = local_6[2];
        let t_28: f32 = (t_26 + t_27);
        local_3[0] = t_28;
        let t_29: f32 = local_3[0];
        let t_30: f32 = local_6[3];
        let t_31: f32 = (t_29 + t_30);
        local_3[0] = t_31;
        let t_32: f32 = local_3[0];
        let t_33: f32 = local_6[4];
        let t_34: f32 = (t_32 + t_33);
        local_3[0] = t_34;
        let t_35: f32 = local_3[0];
        let t_36: f32 = local_6[5];
        let t_37: f32 = (t_35 + t_36);
        local_3[0] = t_37;
        let t_38: f32 = local_3[0];
        let t_39: f32 = local_6[6];
        let t_40: f32 = (t_38 + t_39);
        local_3[0] = t_40;
        let t_41: f32 = local_3[0];
        let t_42: f32 = local_6[7];
        let t_43: f32 = (t_41 + t_42);
        local_3[0] = t_43;
      }
      for (var rest_44: i32 = 0; rest_44 < 3; rest_44++) {
        let t_45: f32 = local_3[0];
        let t_46: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 11200 * block_9 + 16 * rest_44 + 640];
        let t_47: f32 = (t_45 + t_46);
        local_3[0] = t_47;
      }
      let i_48: i32 = i32(u32(thread_8) % 16u);
      if (i_48 < 4) {
        for (var group_49: i32 = 0; group_49 < 3; group_49++) {
          let t_50: f32 = local_3[0];
          let t_51: f32 = global_1[i32(u32(thread_8) % 16u) + 700 * i32(u32(thread_8) / 16u) + 11200 * block_9 + 4 * group_49 + 688];
          let t_52: f32 = (t_50 + t_51);
          local_3[0] = t_52;
        }
      }
      let t_53: f32 = local_3[0];
      shared_7[i32(u32(thread_8) % 16u) + 17 * i32(u32(thread_8) / 16u)] = t_53;
    }
  }
  workgroupBarrier();
   {
    let i_54: i32 = thread_8;
    let i_55: i32 = 16 * block_9 + thread_8;
    if (i_54 < 16 && i_55 < 100) {
      let t_56: f32 = shared_7[17 * thread_8];
      let t_57: f32 = shared_7[17 * thread_8 + 4];
      let t_58: f32 = (t_56 + t_57);
      let t_59: f32 = shared_7[17 * thread_8 + 8];
      let t_60: f32 = shared_7[17 * thread_8 + 12];
      let t_61: f32 = (t_59 + t_60);
      let t_62: f32 = (f32_kept(t_58) + f32_kept(t_61));
      let t_63: f32 = shared_7[17 * thread_8 + 2];
      let t_64: f32 = shared_7[17 * thread_8 + 6];
      let t_65: f32 = (t_63 + t_64);
      let t_66: f32 = shared_7[17 * thread_8 + 10];
      let t_67: f32 = shared_7[17 * thread_8 + 14];
      let t_68: f32 = (t_66 + t_67);
      let t_69: f32 = (f32_kept(t_65) + f32_kept(t_68));
      let t_70: f32 = (f32_kept(t_62) + f32_kept(t_69));
      let t_71: f32 = shared_7[17 * thread_8 + 1];
      let t_72: f32 = shared_7[17 * thread_8 + 5];
      let t_73: f32 = (t_71 + t_72);
      let t_74: f32 = shared_7[17 * thread_8 + 9];
      let t_75: f32 = shared_7[17 * thread_8 + 13];
      let t_76: f32 = (t_74 + t_75);
      let t_77: f32 = (f32_kept(t_73) + f32_kept(t_76));
      let t_78: f32 = shared_7[17 * thread_8 + 3];
      let t_79: f32 = shared_7[17 * thread_8 + 7];
      let t_80: f32 = (t_78 + t_79);
      let t_81: f32 = shared_7[17 * thread_8 + 11];
      let t_82: f32 = shared_7[17 * thread_8 + 15];
      let t_83: f32 = (t_81 + t_82);
      let t_84: f32 = (f32_kept(t_80) + f32_kept(t_83));
      let t_85: f32 = (f32_kept(t_77) + f32_kept(t_84));
      let t_86: f32 = (f32_kept(t_70) + f32_kept(t_85));
      global_2[16 * block_9 + thread_8] = t_86;
    }
  }
}
