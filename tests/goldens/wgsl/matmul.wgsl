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
    register_11[0 + 4 * 0] = 0.0f;
    register_11[1 + 4 * 0] = 0.0f;
    register_11[2 + 4 * 0] = 0.0f;
    register_11[3 + 4 * 0] = 0.0f;
    register_11[0 + 4 * 1] = 0.0f;
    register_11[1 + 4 * 1] = 0.0f;
    register_11[2 + 4 * 1] = 0.0f;
    register_11[3 + 4 * 1] = 0.0f;
    register_11[0 + 4 * 2] = 0.0f;
    register_11[1 + 4 * 2] = 0.0f;
    register_11[2 + 4 * 2] = 0.0f;
    register_11[3 + 4 * 2] = 0.0f;
    register_11[0 + 4 * 3] = 0.0f;
    register_11[1 + 4 * 3] = 0.0f;
    register_11[2 + 4 * 3] = 0.0f;
    register_11[3 + 4 * 3] = 0.0f;
  }
  workgroupBarrier();
  for (var step_15: i32 = 0; step_15 < 13; step_15++) {
     {
      let i_17: i32 = i32(u32(thread_12) / 16u) + 16 * 0 + 64 * row_tile_14;
      let i_18: i32 = i32(u32(thread_12) % 16u) + 16 * step_15;
      var t_16: f32;
      if (i_17 < 300 && i_18 < 200) {
        let t_19: f32 = global_1[i32(u32(thread_12) % 16u) + 200 * i32(u32(thread_12) / 16u) + 3200 * 0 + 12800 * row_tile_14 + 16 * step_15];
        t_16 = t_19;
      }
      else {
        t_16 = 0.0f;
      }
      shared_5[68 * i32(u32(thread_12) % 16u) + i32(u32(thread_12) / 16u) + 16 * 0] = t_16;
      let i_21: i32 = i32(u32(thread_12) / 16u) + 16 * 1 + 64 * row_tile_14;
      let i_22: i32 = i32(u32(thread_12) % 16u) + 16 * step_15;
      var t_20: f32;
      if (i_21 < 300 && i_22 < 200) {
        let t_23: f32 = global_1[i32(u32(thread_12) % 16u) + 200 * i32(u32(thread_12) / 16u) + 3200 * 1 + 12800 * row_tile_14 + 16 * step_15];
        t_20 = t_23;
      }
      else {
        t_20 = 0.0f;
      }
      shared_5[68 * i32(u32(thread_12) % 16u) + i32(u32(thread_12) / 16u) + 16 * 1] = t_20;
      let i_25: i32 = i32(u32(thread_12) / 16u) + 16 * 2 + 64 * row_tile_14;
      let i_26: i32 = i32(u32(thread_12) % 16u) + 16 * step_15;
      var t_24: f32;
      if (i_25 < 300 && i_26 < 200) {
        let t_27: f32 = global_1[i32(u32(thread_12) % 16u) + 200 * i32(u32(thread_12) / 16u) + 3200 * 2 + 12800 * row_tile_14 + 16 * step_15];
        t_24 = t_27;
      }
      else {
        t_24 = 0.0f;
      }
      shared_5[68 * i32(u32(thread_12) % 16u) + i32(u32(thread_12) / 16u) + 16 * 2] = t_24;
      let i_29: i32 = i32(u32(thread_12) / 16u) + 16 * 3 + 64 * row_tile_14;
      let i_30: i32 = i32(u32(thread_12) % 16u) + 16 * step_15;
      var t_28: f32;
      if (i_29 < 300 && i_30 < 200) {
        let t_31: f32 = global_1[i32(u32(thread_12) % 16u) + 200 * i32(u32(thread_12) / 16u) + 3200 * 3 + 12800 * row_tile_14 + 16 * step_15];
        t_28 = t_31;
      }
      else {
        t_28 = 0.0f;
      }
      shared_5[68 * i32(u32(thread_12) % 16u) + i32(u32(thread_12) / 16u) + 16 * 3] = t_28;
      let i_33: i32 = i32(u32(thread_12) % 64u) + 64 * col_tile_13;
      let i_34: i32 = i32(u32(thread_12) / 64u) + 4 * 0 + 16 * step_15;
      var t_32: f32;
      if (i_33 < 400 && i_34 < 200) {
        let t_35: f32 = global_2[i32(u32(thread_12) % 64u) + 400 * i32(u32(thread_12) / 64u) + 1600 * 0 + 64 * col_tile_13 + 6400 * step_15];
        t_32 = t_35;
      }
      else {
        t_32 = 0.0f;
      }
      shared_8[i32(u32(thread_12) % 64u) + 68 * i32(u32(thread_12) / 64u) + 272 * 0] = t_32;
      let i_37: i32 = i32(u32(thread_12) % 64u) + 64 * col_tile_13;
      let i_38: i32 = i32(u32(thread_12) / 64u) + 4 * 1 + 16 * step_15;
      var t_36: f32;
      if (i_37 < 400 && i_38 < 200) {
        let t_39: f32 = global_2[i32(u32(thread_12) % 64u) + 400 * i32(u32(thread_12) / 64u) + 1600 * 1 + 64 * col_tile_13 + 6400 * step_15];
        t_36 = t_39;
      }
      else {
        t_36 = 0.0f;
      }
      shared_8[i32(u32(thread_12) % 64u) + 68 * i32(u32(thread_12) / 64u) + 272 * 1] = t_36;
      let i_41: i32 = i32(u32(thread_12) % 64u) + 64 * col_tile_13;
      let i_42: i32 = i32(u32(thread_12) / 64u) + 4 * 2 + 16 * step_15;
      var t_40: f32;
      if (i_41 < 400 && i_42 < 200) {
        let t_43: f32 = global_2[i32(u32(thread_12) % 64u) + 400 * i32(u32(thread_12) / 64u) + 1600 * 2 + 64 * col_tile_13 + 6400 * step_15];
        t_40 = t_43;
      }
      else {
        t_40 = 0.0f;
      }
      shared_8[i32(u32(thread_12) % 64u) + 68 * i32(u32(thread_12) / 64u) + 272 * 2] = t_40;
      let i_45: i32 = i32(u32(thread_12) % 64u) + 64 * col_tile_13;
      let i_46: i32 = i32(u32(thread_12) / 64u) + 4 * 3 + 16 * step_15;
      var t_44: f32;
      if (i_45 < 400 && i_46 < 200) {
        let t_47: f32 = global_2[i32(u32(thread_12) % 64u) + 400 * i32(u32(thread_12) / 64u) + 1600 * 3 + 64 * col_tile_13 + 6400 * step_15];
        t_44 = t_47;
      }
      else {
        t_44 = 0.0f;
      }
      shared_8[i32(u32(thread_12) % 64u) + 68 * i32(u32(thread_12) / 64u) + 272 * 3] = t_44;
    }
    workgroupBarrier();
     {
      var local_6: array<f32, 4>;
      var local_9: array<f32, 4>;
      for (var l_48: i32 = 0; l_48 < 16; l_48++) {
        let i_49: i32 = l_48 + 16 * step_15;
        if (i_49 < 200) {
          local_6[0] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_48];
          local_6[0 + 1] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_48 + 1];
          local_6[0 + 2] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_48 + 2];
          local_6[0 + 3] = shared_5[4 * i32(u32(thread_12) / 16u) + 68 * l_48 + 3];
          local_9[0] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_48];
          local_9[0 + 1] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_48 + 1];
          local_9[0 + 2] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_48 + 2];
          local_9[0 + 3] = shared_8[4 * i32(u32(thread_12) % 16u) + 68 * l_48 + 3];
          let t_50: f32 = register_11[0 + 4 * 0];
          let t_51: f32 = local_6[0];
          let t_52: f32 = local_9[0];
          let t_53: f32 = (t_51 * t_52);
          let t_54: f32 = (t_50 + f32_kept(t_53));
          register_11[0 + 4 * 0] = t_54;
          let t_55: f32 = register_11[1 + 4 * 0];
          let t_56: f32 = local_6[0];
          let t_57: f32 = local_9[1];
          let t_58: f32 = (t_56 * t_57);
          let t_59: f32 = (t_55 + f32_kept(t_58));
          register_11[1 + 4 * 0] = t_59;
          let t_60: f32 = register_11[2 + 4 * 0];
          let t_61: f32 = local_6[0];
          let t_62: f32 = local_9[2];
          let t_63: f32 = (t_61 * t_62);
          let t_64: f32 = (t_60 + f32_kept(t_63));
          register_11[2 + 4 * 0] = t_64;
          let t_65: f32 = register_11[3 + 4 * 0];
          let t_66: f32 = local_6[0];
          let t_67: f32 = local_9[3];
          let t_68: f32 = (t_66 * t_67);
          let t_69: f32 = (t_65 + f32_kept(t_68));
          register_11[3 + 4 * 0] = t_69;
          let t_70: f32 = register_11[0 + 4 * 1];
          let t_71: f32 = local_6[1];
          let t_72: f32 = local_9[0];
          let t_73: f32 = (t_71 * t_72);
          let t_74: f32 = (t_70 + f32_kept(t_73));
          register_11[0 + 4 * 1] = t_74;
          let t_75: f32 = register_11[1 + 4 * 1];
          let t_76: f32 = local_6[1];
          let t_77: f32 = local_9[1];
          let t_78: f32 = (t_76 * t_77);
          let t_79: f32 = (t_75 + f32_kept(t_78));
          register_11[1 + 4 * 1] = t_79;
          let t_80: f32 = register_11[2 + 4 * 1];
          let t_81: f32 = local_6[1];
          let t_82: f32 = local_9[2];
          let t_83: f32 = (t_81 * t_82);
          let t_84: f32 = (t_80 + f32_kept(t_83));
          register_11[2 + 4 * 1] = t_84;
          let t_85: f32 = register_11[3 + 4 * 1];
          let t_86: f32 = local_6[1];
          let t_87: f32 = local_9[3];
          let t_88: f32 = (t_86 * t_87);
          let t_89: f32 = (t_85 + f32_kept(t_88));
          register_11[3 + 4 * 1] = t_89;
          let t_90: f32 = register_11[0 + 4 * 2];
          let t_91: f32 = local_6[2];
          let t_92: f32 = local_9[0];
          let t_93: f32 = (t_91 * t_92);
          let t_94: f32 = (t_90 + f32_kept(t_93));
          register_11[0 + 4 * 2] = t_94;
          let t_95: f32 = register_11[1 + 4 * 2];
          let t_96: f32 = local_6[2];
          let t_97: f32 = local_9[1];
          let t_98: f32 = (t_96 * t_97);
          let t_99: f32 = (t_95 + f32_kept(t_98));
          register_11[1 + 4 * 2] = t_99;
          let t_100: f32 = register_11[2 + 4 * 2];
          let t_101: f32 = local_6[2];
          let t_102: f32 = local_9[2];
          let t_103: f32 = (t_101 * t_102);
          let t_104: f32 = (t_100 + f32_kept(t_103));
          register_11[2 + 4 * 2] = t_104;
          let t_105: f32 = register_11[3 + 4 * 2];
          let t_106: f32 = local_6[2];
          let t_107: f32 = local_9[3];
          let t_108: f32 = (t_106 * t_107);
          let t_109: f32 = (t_105 + f32_kept(t_108));
          register_11[3 + 4 * 2] = t_109;
          let t_110: f32 = register_11[0 + 4 * 3];
          let t_111: f32 = local_6[3];
          let t_112: f32 = local_9[0];
          let t_113: f32 = (t_111 * t_112);
          let t_114: f32 = (t_110 + f32_kept(t_113));
          register_11[0 + 4 * 3] = t_114;
          let t_115: f32 = register_11[1 + 4 * 3];
          let t_116: f32 = local_6[3];
          let t_117: f32 = local_9[1];
          let t_118: f32 = (t_116 * t_117);
          let t_119: f32 = (t_115 + f32_kept(t_118));
          register_11[1 + 4 * 3] = t_119;
          let t_120: f32 = register_11[2 + 4 * 3];
          let t_121: f32 = local_6[3];
          let t_122: f32 = local_9[2];
          let t_123: f32 = (t_121 * t_122);
          let t_124: f32 = (t_120 + f32_kept(t_123));
          register_11[2 + 4 * 3] = t_124;
          let t_125: f32 = register_11[3 + 4 * 3];
          let t_126: f32 = local_6[3];
          let t_127: f32 = local_9[3];
          let t_128: f32 = (t_126 * t_127);
          let t_129: f32 = (t_125 + f32_kept(t_128));
          register_11[3 + 4 * 3] = t_129;
        }
      }
    }
    workgroupBarrier();
  }
   {
    let i_130: i32 = 4 * i32(u32(thread_12) / 16u) + 0 + 64 * row_tile_14;
    let i_131: i32 = 4 * i32(u32(thread_12) % 16u) + 0 + 64 * col_tile_13;
    if (i_130 < 300 && i_131 < 400) {
      let t_132: f32 = register_11[0 + 4 * 0];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 0 + 64 * col_tile_13 + 400 * 0 + 25600 * row_tile_14] = t_132;
    }
    let i_133: i32 = 4 * i32(u32(thread_12) / 16u) + 0 + 64 * row_tile_14;
    let i_134: i32 = 4 * i32(u32(thread_12) % 16u) + 1 + 64 * col_tile_13;
    if (i_133 < 300 && i_134 < 400) {
      let t_135: f32 = register_11[1 + 4 * 0];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 1 + 64 * col_tile_13 + 400 * 0 + 25600 * row_tile_14] = t_135;
    }
    let i_136: i32 = 4 * i32(u32(thread_12) / 16u) + 0 + 64 * row_tile_14;
    let i_137: i32 = 4 * i32(u32(thread_12) % 16u) + 2 + 64 * col_tile_13;
    if (i_136 < 300 && i_137 < 400) {
      let t_138: f32 = register_11[2 + 4 * 0];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 2 + 64 * col_tile_13 + 400 * 0 + 25600 * row_tile_14] = t_138;
    }
    let i_139: i32 = 4 * i32(u32(thread_12) / 16u) + 0 + 64 * row_tile_14;
    let i_140: i32 = 4 * i32(u32(thread_12) % 16u) + 3 + 64 * col_tile_13;
    if (i_139 < 300 && i_140 < 400) {
      let t_141: f32 = register_11[3 + 4 * 0];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 3 + 64 * col_tile_13 + 400 * 0 + 25600 * row_tile_14] = t_141;
    }
    let i_142: i32 = 4 * i32(u32(thread_12) / 16u) + 1 + 64 * row_tile_14;
    let i_143: i32 = 4 * i32(u32(thread_12) % 16u) + 0 + 64 * col_tile_13;
    if (i_142 < 300 && i_143 < 400) {
      let t_144: f32 = register_11[0 + 4 * 1];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 0 + 64 * col_tile_13 + 400 * 1 + 25600 * row_tile_14] = t_144;
    }
    let i_145: i32 = 4 * i32(u32(thread_12) / 16u) + 1 + 64 * row_tile_14;
    let i_146: i32 = 4 * i32(u32(thread_12) % 16u) + 1 + 64 * col_tile_13;
    if (i_145 < 300 && i_146 < 400) {
      let t_147: f32 = register_11[1 + 4 * 1];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 1 + 64 * col_tile_13 + 400 * 1 + 25600 * row_tile_14] = t_147;
    }
    let i_148: i32 = 4 * i32(u32(thread_12) / 16u) + 1 + 64 * row_tile_14;
    let i_149: i32 = 4 * i32(u32(thread_12) % 16u) + 2 + 64 * col_tile_13;
    if (i_148 < 300 && i_149 < 400) {
      let t_150: f32 = register_11[2 + 4 * 1];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 2 + 64 * col_tile_13 + 400 * 1 + 25600 * row_tile_14] = t_150;
    }
    let i_151: i32 = 4 * i32(u32(thread_12) / 16u) + 1 + 64 * row_tile_14;
    let i_152: i32 = 4 * i32(u32(thread_12) % 16u) + 3 + 64 * col_tile_13;
    if (i_151 < 300 && i_152 < 400) {
      let t_153: f32 = register_11[3 + 4 * 1];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 3 + 64 * col_tile_13 + 400 * 1 + 25600 * row_tile_14] = t_153;
    }
    let i_154: i32 = 4 * i32(u32(thread_12) / 16u) + 2 + 64 * row_tile_14;
    let i_155: i32 = 4 * i32(u32(thread_12) % 16u) + 0 + 64 * col_tile_13;
    if (i_154 < 300 && i_155 < 400) {
      let t_156: f32 = register_11[0 + 4 * 2];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 0 + 64 * col_tile_13 + 400 * 2 + 25600 * row_tile_14] = t_156;
    }
    let i_157: i32 = 4 * i32(u32(thread_12) / 16u) + 2 + 64 * row_tile_14;
    let i_158: i32 = 4 * i32(u32(thread_12) % 16u) + 1 + 64 * col_tile_13;
    if (i_157 < 300 && i_158 < 400) {
      let t_159: f32 = register_11[1 + 4 * 2];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 1 + 64 * col_tile_13 + 400 * 2 + 25600 * row_tile_14] = t_159;
    }
    let i_160: i32 = 4 * i32(u32(thread_12) / 16u) + 2 + 64 * row_tile_14;
    let i_161: i32 = 4 * i32(u32(thread_12) % 16u) + 2 + 64 * col_tile_13;
    if (i_160 < 300 && i_161 < 400) {
      let t_162: f32 = register_11[2 + 4 * 2];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 2 + 64 * col_tile_13 + 400 * 2 + 25600 * row_tile_14] = t_162;
    }
    let i_163: i32 = 4 * i32(u32(thread_12) / 16u) + 2 + 64 * row_tile_14;
    let i_164: i32 = 4 * i32(u32(thread_12) % 16u) + 3 + 64 * col_tile_13;
    if (i_163 < 300 && i_164 < 400) {
      let t_165: f32 = register_11[3 + 4 * 2];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 3 + 64 * col_tile_13 + 400 * 2 + 25600 * row_tile_14] = t_165;
    }
    let i_166: i32 = 4 * i32(u32(thread_12) / 16u) + 3 + 64 * row_tile_14;
    let i_167: i32 = 4 * i32(u32(thread_12) % 16u) + 0 + 64 * col_tile_13;
    if (i_166 < 300 && i_167 < 400) {
      let t_168: f32 = register_11[0 + 4 * 3];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 0 + 64 * col_tile_13 + 400 * 3 + 25600 * row_tile_14] = t_168;
    }
    let i_169: i32 = 4 * i32(u32(thread_12) / 16u) + 3 + 64 * row_tile_14;
    let i_170: i32 = 4 * i32(u32(thread_12) % 16u) + 1 + 64 * col_tile_13;
    if (i_169 < 300 && i_170 < 400) {
      let t_171: f32 = register_11[1 + 4 * 3];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 1 + 64 * col_tile_13 + 400 * 3 + 25600 * row_tile_14] = t_171;
    }
    let i_172: i32 = 4 * i32(u32(thread_12) / 16u) + 3 + 64 * row_tile_14;
    let i_173: i32 = 4 * i32(u32(thread_12) % 16u) + 2 + 64 * col_tile_13;
    if (i_172 < 300 && i_173 < 400) {
      let t_174: f32 = register_11[2 + 4 * 3];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 2 + 64 * col_tile_13 + 400 * 3 + 25600 * row_tile_14] = t_174;
    }
    let i_175: i32 = 4 * i32(u32(thread_12) / 16u) + 3 + 64 * row_tile_14;
    let i_176: i32 = 4 * i32(u32(thread_12) % 16u) + 3 + 64 * col_tile_13;
    if (i_175 < 300 && i_176 < 400) {
      let t_177: f32 = register_11[3 + 4 * 3];
      global_3[4 * i32(u32(thread_12) % 16u) + 1600 * i32(u32(thread_12) / 16u) + 3 + 64 * col_tile_13 + 400 * 3 + 25600 * row_tile_14] = t_177;
    }
  }
}
