@group(0) @binding(0) var<storage, read_write> global_1: array<f32>;
@group(0) @binding(1) var<storage, read_write> global_2: array<f32>;
@group(0) @binding(2) var<storage, read_write> global_3: array<f32>;
var<workgroup> shared_5: array<f32, 1088>;
var<workgroup> shared_8: array<f32, 1088>;

@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  zero = group.z;
  var register_11: array<f32, 16>;
  let block: i32 = i32(group.x + 35u * group.y);
  let thread_12: i32 = i32(local);
  let col_tile_13: i32 = i32(u32(block) % 7u);
  let row_tile_14: i32 = i32(u32(block) / 7u);
   {
    for (var row_next_15: i32 = 0; row_next_15 < 4; row_next_15++) {
      for (var col_next_16: i32 = 0; col_next_16 < 4; col_next_16++) {
        register_11[col_next_16 + 4 * row_next_15] = 0.0f;
      }
    }
  }
  workgroupBarrier(); storageBarrier();
  for (var step_17: i32 = 0; step_17 < 13; step_17++) {
     {
      for (var row_read_18: i32 = 0; row_read_18 < 4; row_read_18++) {
        let i_20: i32 = i32(u32(thread_12) / 16u) + 16 * row_read_18 + 64 * row_tile_14;
        let i_21: i32 = i32(u32(thread_12) % 16u) + 16 * step_17;
        var t_19: f32;
        if (i_20 < 300 && i_21 < 200) {
          let t_22: f32 = global_1[i32(u32(thread_12) % 16u) + 200 * i32(u32(thread_12) / 16u) + 3200 * row_read_18 + 12800 * row_tile_14 + 16 * step_17];
          t_19 = t_22;
        }
        else {
          t_19 = 0.0f;
        }
        shared_5[68 * i32(u32(thread_12) % 16u) + i32(u32(thread_12) / 16u) + 16 * row_read_18] = t_19;
      }
      for (var col_read_23: i32 = 0; col_read_23 < 4; col_read_23++) {
        let i_25: i32 = i32(u32(thread_12) % 64u) + 64 * col_tile_13;
        let i_26: i32 = i32(u32(thread_12) / 64u) + 4 * col_read_23 + 16 * step_17;
        var t_24: f32;
        if (i_25 < 400 && i_26 < 200) {
          let t_27: f32 = global_2[i32(u32(thread_12) % 64u) + 400 * i32(u32(thread_12) / 64u) + 1600 * col_read_23 + 64 * col_tile_13 + 6400 * step_17];
          t_24 = t_27;
        }
        else {
          t_24 = 0.0f;
        }
        shared_8[i32(u32(thread_12) % 64u) + 68 * i32(u32(thread_12) / 64u) + 272 * col_read_23] = t_24;
      }
    }
    workgroupBarrier(); storageBarrier();
     {
      var local_6: array<f32, 4>;
      var local_9: array<f32, 4>;
      for (var l_28: i32 = 0; l_28 < 16; l_28++) {
        let i_29: i32 = l_28 + 16 * step_17;
        if (i_29 < 200) {
          local_6[0] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_28];
          local_6[0 + 1] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_28 + 1];
          local_6[0 + 2] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_28 + 2];
          local_6[0 + 3] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_28 + 3];
          local_9[0] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_28];
          local_9[0 + 1] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_28 + 1];
          local_9[0 + 2] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_28 + 2];
          local_9[0 + 3] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_28 + 3];
          for (var row_next_30: i32 = 0; row_next_30 < 4; row_next_30++) {
            for (var col_next_31: i32 = 0; col_next_31 < 4; col_next_31++) {
              let t_32: f32 = register_11[col_next_31 + 4 * row_next_30];
              let t_33: f32 = local_6[row_next_30];
              let t_34: f32 = local_9[col_next_31];
              let t_35: f32 = (t_33 * t_34);
              let t_36: f32 = (t_32 + f32_kept(t_35));
              register_11[col_next_31 + 4 * row_next_30] = t_36;
            }
          }
        }
      }
    }
    workgroupBarrier(); storageBarrier();
  }
   {
    for (var row_next_37: i32 = 0; row_next_37 < 4; row_next_37++) {
      for (var col_next_38: i32 = 0; col_next_38 < 4; col_next_38++) {
        let i_39: i32 = 4 * i32(u32(thread_12) / 16u) + row_next_37 + 64 * row_tile_14;
        let i_40: i32 = 4 * i32(u32(thread_12) % 16u) + col_next_38 + 64 * col_tile_13;
        if (i_39 < 300 && i_40 < 400) {
          let t_41: f32 = register_11[col_next_38 + 4 * row_next_37];
          global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + col_next_38 + 64 * col_tile_13 + 400 * row_next_37 + 25600 * row_tile_14] = t_41;
        }
      }
    }
  }
}
