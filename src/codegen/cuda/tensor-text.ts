/** @file The instructions of Hopper's tensor cores as functions of CUDA: barriers in shared memory, rounding, `wgmma`. */
import { FACTORS, type FactorType } from "./tensor-types.ts";

/** What products on tensor cores call, whatever their tiles. */
export const TENSOR_PRELUDE = `static __device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
static __device__ __forceinline__ u32 to_tf32(f32 x) { u32 y; asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(y) : "f"(x)); return y; }
static __device__ __forceinline__ void barrier_init(u32 at, u32 count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(count)); }
static __device__ __forceinline__ void barrier_arrive(u32 at) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at) : "memory"); }
static __device__ __forceinline__ void barrier_wait(u32 at, u32 parity) {
  asm volatile("{\\n.reg .pred p;\\nAGAIN:\\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\\n@p bra DONE;\\nbra AGAIN;\\nDONE:\\n}" :: "r"(at), "r"(parity) : "memory");
}
static __device__ __forceinline__ void store_tf32(u32 at, f32 a, f32 b, f32 c, f32 d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(to_tf32(a)), "r"(to_tf32(b)), "r"(to_tf32(c)), "r"(to_tf32(d)) : "memory");
}
/* two halves as factors; and as they are in memory, with the one NaN of their type */
static __device__ __forceinline__ u32 bf16_factors(f32 a, f32 b) { u32 y; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a)); return y; }
static __device__ __forceinline__ u32 f16_factors(f32 a, f32 b) { u32 y; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a)); return y; }
static __device__ __forceinline__ u32 one_nan(u32 pair, f32 a, f32 b, u32 nan) {
  if (a != a) pair = (pair & 0xffff0000u) | nan;
  return b != b ? (pair & 0xffffu) | nan << 16 : pair;
}
static __device__ __forceinline__ u32 bf16_pair(f32 a, f32 b) { return one_nan(bf16_factors(a, b), a, b, 0x7fc0); }
static __device__ __forceinline__ u32 f16_pair(f32 a, f32 b) { return one_nan(f16_factors(a, b), a, b, 0x7e00); }
static __device__ __forceinline__ void store_pairs(u32 at, u32 a, u32 b) { asm volatile("st.shared.v2.b32 [%0], {%1, %2};" :: "r"(at), "r"(a), "r"(b) : "memory"); }
/* 8 bytes number c of row r, where rows have 64 bytes and are swizzled */
static __device__ __forceinline__ u32 swizzled_short(int r, int c) { return r * 64 + ((c >> 1 ^ (r >> 1 & 3)) << 4) + (c & 1) * 8; }
/* 16 bytes number c of row r, where rows have 128 bytes and are swizzled */
static __device__ __forceinline__ u32 swizzled(int r, int c) { return r * 128 + ((c ^ (r & 7)) << 4); }
`;

/** What products call whose sides, or one of them, the copy engine brings. */
export const COPY_PRELUDE = `struct __align__(64) TensorMap { u64 words[16]; };
static __device__ __forceinline__ void barrier_expect(u32 at, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(at), "r"(bytes) : "memory"); }
/* a box of rows along the depth, whose bytes a barrier counts */
static __device__ __forceinline__ void copy_box(u32 to, const TensorMap *map, int depth, int row, u32 barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(to), "l"(map), "r"(depth), "r"(row), "r"(barrier) : "memory");
}
static __device__ __forceinline__ u32 load_word(u32 at) { u32 x; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at) : "memory"); return x; }
/* where a thread finds its four elements of a depth of 8, in boxes of a side across the depth */
static __device__ __forceinline__ void across_corners(u32 *corner, int group) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32, g = lane / 4, t = lane % 4, chunk = warp % 2 * 2 + g / 4 * 4;
  const u32 start = (2 * group + warp / 2) * 4096 + g % 4 * 4;
  #pragma unroll
  for (int i = 0; i < 4; i++) {
    const int depth = t + i / 2 * 4;
    corner[i] = start + depth * 128 + (((chunk + i % 2) ^ depth) << 4);
  }
}
`;

const numbered = (count: number, text: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => text(i)).join(", ");

/** Which of two sides lie across the depth. */
type Orders = readonly [left: boolean, right: boolean];

/** Both have rows along the depth. */
export const ALONG: Orders = [false, false];

export const wgmmaName = (cols: number, factors: FactorType, [left, right]: Orders): string =>
  factors === "tf32" ? `wgmma_${cols}` : `wgmma_${cols}_${factors}_${+left}${+right}`;

/**
 * sum = keep ? sum + a · b : a · b, for 64 rows, so many columns and the depth of an instruction; `sum` is of a tile with
 * maybe more.
 */
export function wgmmaText(cols: number, factors: FactorType, orders: Orders): string {
  const n = cols / 2;
  const { instruction, eitherOrder } = FACTORS[factors];
  const ends = eitherOrder ? ["1", "1", ...orders.map(Number)] : ["1", "1"];
  return `static __device__ __forceinline__ void ${wgmmaName(cols, factors, orders)}(f32 *sum, u64 a, u64 b, int keep) {
  asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %${n + 2}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n${cols}${instruction} {${numbered(n, (i) => `%${i}`)}}, %${n}, %${n + 1}, p, ${ends.join(", ")};\\n}"
    : ${numbered(n, (i) => `"+f"(sum[${i}])`)} : "l"(a), "l"(b), "r"(keep));
}
`;
}

/** The same in tf32 with rows of `a` in registers, four for each thread. */
export function ownWgmmaText(cols: number): string {
  const n = cols / 2;
  return `static __device__ __forceinline__ void wgmma_${cols}_own(f32 *sum, const u32 *a, u64 b, int keep) {
  asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %${n + 5}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n${cols}k8.f32.tf32.tf32 {${numbered(n, (i) => `%${i}`)}}, {${numbered(4, (i) => `%${n + i}`)}}, %${n + 4}, p, 1, 1;\\n}"
    : ${numbered(n, (i) => `"+f"(sum[${i}])`)} : ${numbered(4, (i) => `"r"(a[${i}])`)}, "l"(b), "r"(keep));
}
`;
}

/** What attention calls beside the functions of products. */
export const ATTEND_PRELUDE = `static __device__ __forceinline__ void mma_tf32(f32 *c, const u32 *a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/* sums[y, x] += own[y, c] · other[x, c]: rows of a warp, 64 columns */
template <int DEPTH, int PITCH> static __device__ __forceinline__ void pair_products_tf32(f32 *sums, const f32 *own, const f32 *other) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const u32 *left = (const u32 *)own + (16 * (threadIdx.x >> 5) + g) * PITCH + t, *right = (const u32 *)other + g * PITCH + t;
  #pragma unroll
  for (int k = 0; k < DEPTH; k += 8) {
    const u32 a[4] = { left[k], left[k + 8 * PITCH], left[k + 4], left[k + 8 * PITCH + 4] };
    #pragma unroll
    for (int n = 0; n < 8; n++) mma_tf32(sums + 4 * n, a, right[8 * n * PITCH + k], right[8 * n * PITCH + k + 4]);
  }
}
/* sums[y, c] += p[y, x] · other[x, c], p being sums of the same rows */
template <int WIDTH, int PITCH> static __device__ __forceinline__ void weighted_sums_tf32(f32 *sums, const f32 *p, const f32 *other) {
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const u32 *right = (const u32 *)other + 2 * t * PITCH + g;
  #pragma unroll
  for (int k = 0; k < 8; k++) {
    const u32 a[4] = { to_tf32(p[4 * k]), to_tf32(p[4 * k + 2]), to_tf32(p[4 * k + 1]), to_tf32(p[4 * k + 3]) };
    #pragma unroll
    for (int n = 0; n < WIDTH / 8; n++) mma_tf32(sums + 4 * n, a, right[8 * k * PITCH + 8 * n], right[(8 * k + 1) * PITCH + 8 * n]);
  }
}
/* four matrices of 8 by 8 halves, whose rows threads have the addresses of; and transposed */
static __device__ __forceinline__ void load_matrices(u32 *x, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
static __device__ __forceinline__ void load_transposed(u32 *x, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}
/* over the four threads that have a row */
static __device__ __forceinline__ f32 row_max(f32 x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
static __device__ __forceinline__ f32 row_sum(f32 x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
`;

/** The same of factors of sixteen bits, two in a word: PITCH counts words. Matrices of eight by eight go to registers at once. */
export const halfAttendText = (
  factors: Exclude<FactorType, "tf32">,
): string => `static __device__ __forceinline__ void mma_${factors}(f32 *c, const u32 *a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.${factors}.${factors}.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <int DEPTH, int PITCH> static __device__ __forceinline__ void pair_products_${factors}(f32 *sums, const f32 *own, const f32 *other) {
  const int lane = threadIdx.x & 31;
  const u32 left = shared_address(own + (16 * (threadIdx.x >> 5) + (lane & 15)) * PITCH + (lane >> 4) * 4);
  const u32 right = shared_address(other + ((lane & 7) + (lane >> 4) * 8) * PITCH + (lane >> 3 & 1) * 4);
  #pragma unroll
  for (int k = 0; k < DEPTH / 16; k++) {
    u32 a[4], b[4];
    load_matrices(a, left + k * 32);
    #pragma unroll
    for (int n = 0; n < 4; n++) {
      load_matrices(b, right + k * 32 + n * 64 * PITCH);
      mma_${factors}(sums + 8 * n, a, b[0], b[1]);
      mma_${factors}(sums + 8 * n + 4, a, b[2], b[3]);
    }
  }
}
template <int WIDTH, int PITCH> static __device__ __forceinline__ void weighted_sums_${factors}(f32 *sums, const f32 *p, const f32 *other) {
  const int lane = threadIdx.x & 31;
  const u32 right = shared_address(other + (lane & 15) * PITCH + (lane >> 4) * 4);
  #pragma unroll
  for (int k = 0; k < 4; k++) {
    const f32 *x = p + 8 * k;
    const u32 a[4] = { ${factors}_factors(x[0], x[1]), ${factors}_factors(x[2], x[3]), ${factors}_factors(x[4], x[5]), ${factors}_factors(x[6], x[7]) };
    #pragma unroll
    for (int n = 0; n < WIDTH; n += 16) {
      u32 b[4];
      load_transposed(b, right + k * 64 * PITCH + n * 2);
      mma_${factors}(sums + n / 2, a, b[0], b[1]);
      if (n + 8 < WIDTH) mma_${factors}(sums + n / 2 + 4, a, b[2], b[3]);
    }
  }
}
`;
