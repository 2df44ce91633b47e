@group(0) @binding(0) var<storage, read_write> global_1: array<f32>;
@group(0) @binding(1) var<storage, read_write> global_2: array<f32>;
@group(0) @binding(2) var<storage, read_write> global_3: array<atomic<u32>>;

@compute @workgroup_size(256) fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  zero = group.z;
  let block: i32 = i32(group.x + 4u * group.y);
  let thread_4: i32 = i32(local);
  let block_5: i32 = block;
   {
    let i_6: i32 = 256 * block_5 + thread_4;
    if (i_6 < 1000) {
      let t_7: f32 = global_1[256 * block_5 + thread_4];
      let t_8: f32 = global_2[256 * block_5 + thread_4];
      let t_9: bool = f32_lt(t_7, t_8);
      atomicAnd(&global_3[u32(256 * block_5 + thread_4) / 4u], ~(255u << (8u * (u32(256 * block_5 + thread_4) % 4u)))); atomicOr(&global_3[u32(256 * block_5 + thread_4) / 4u], select(0u, 1u, t_9) << (8u * (u32(256 * block_5 + thread_4) % 4u)));
    }
  }
}
