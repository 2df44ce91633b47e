/** @file The instructions of Hopper's tensor cores as functions of CUDA: barriers in shared memory, rounding, `wgmma`. */

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
/* 16 bytes number c of row r, where rows have 128 bytes and are swizzled */
static __device__ __forceinline__ u32 swizzled(int r, int c) { return r * 128 + ((c ^ (r & 7)) << 4); }
`;

const numbered = (count: number, text: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => text(i)).join(", ");

/** sum = keep ? sum + a · b : a · b, for 64 rows, so many columns and a depth of 8; `sum` is of a tile with maybe more. */
export function wgmmaText(cols: number): string {
  const n = cols / 2;
  return `static __device__ __forceinline__ void wgmma_${cols}(f32 *sum, u64 a, u64 b, int keep) {
  asm volatile("{\\n.reg .pred p;\\nsetp.ne.b32 p, %${n + 2}, 0;\\n"
    "wgmma.mma_async.sync.aligned.m64n${cols}k8.f32.tf32.tf32 {${numbered(n, (i) => `%${i}`)}}, %${n}, %${n + 1}, p, 1, 1;\\n}"
    : ${numbered(n, (i) => `"+f"(sum[${i}])`)} : "l"(a), "l"(b), "r"(keep));
}
`;
}
