/**
 * @file CUDA functions on a processor: a header of C++ with which their text is compiled as it is, and run thread by thread. A
 * thread is a coroutine that goes on to the next one wherever threads wait for each other or exchange registers; so all
 * threads of a block must do that equally often, whatever their warp. Enough for the kernels of attention on tensor cores.
 */

/** Functions of the device's own, in place of those of the text. */
export const WARPS_HEADER = `#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
using std::max;
using std::min;
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
struct float4 { float x, y, z, w; };
struct uint4 { unsigned x, y, z, w; };
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return { x, y, z, w }; }
static int now, threads;
static struct { struct { operator int() const { return now; } } x; } threadIdx;
static struct { int x; } blockIdx, gridDim;
static char raw[1 << 20] __attribute__((aligned(64)));
static ucontext_t contexts[1024], host;
static bool done[1024];
static void next_thread() {
  const int own = now;
  int next = (own + 1) % threads;
  while (done[next] && next != own) next = (next + 1) % threads;
  if (next == own) return;
  now = next;
  swapcontext(&contexts[own], &contexts[next]);
}
static void __syncthreads() { next_thread(); }
static float sent[1024];
static float __shfl_xor_sync(unsigned, float x, int mask) {
  sent[now] = x;
  next_thread();
  const float got = sent[now ^ mask];
  next_thread();
  return got;
}
static unsigned to_tf32(float x) {
  unsigned bits;
  memcpy(&bits, &x, 4);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
}
static float float_of(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
static float exp_device(float x) { return expf(x); }
static unsigned left_of[1024][4], right_of[1024][2];
/* m16n8k8: g = lane div 4, t = lane mod 4; left [g (+ 8), t (+ 4)], right [t (+ 4), g], sums [g (+ 8), 2 t (+ 1)] */
static void mma_tf32(float *c, const unsigned *a, unsigned b0, unsigned b1) {
  memcpy(left_of[now], a, 16);
  right_of[now][0] = b0;
  right_of[now][1] = b1;
  next_thread();
  const int warp = now & ~31, g = (now & 31) >> 2, t = now & 3;
  for (int i = 0; i < 4; i++) {
    const int row = g + 8 * (i >> 1), col = 2 * t + (i & 1);
    for (int k = 0; k < 8; k++) {
      const float x = float_of(left_of[warp + row % 8 * 4 + k % 4][(row >> 3) + 2 * (k >> 2)]);
      c[i] += x * float_of(right_of[warp + col * 4 + k % 4][k >> 2]);
    }
  }
  next_thread();
}
static std::function<void()> kernel;
static void one_thread() {
  kernel();
  done[now] = true;
  int next = now;
  for (int i = 0; i < threads && done[next]; i++) next = (next + 1) % threads;
  if (done[next]) setcontext(&host);
  now = next;
  setcontext(&contexts[next]);
}
static void launch(int blocks, int count, std::function<void()> given) {
  const size_t bytes = 1 << 18;
  char *stacks = (char *)malloc(count * bytes);
  kernel = given;
  threads = count;
  gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
    memset(raw, 0xff, sizeof raw);
    for (int i = 0; i < count; i++) {
      done[i] = false;
      getcontext(&contexts[i]);
      contexts[i].uc_stack.ss_sp = stacks + i * bytes;
      contexts[i].uc_stack.ss_size = bytes;
      contexts[i].uc_link = 0;
      makecontext(&contexts[i], one_thread, 0);
    }
    now = 0;
    swapcontext(&host, &contexts[0]);
  }
  free(stacks);
}
static void read_all(void *to, size_t bytes) { if (fread(to, 1, bytes, stdin) != bytes) exit(1); }
static void write_all(const void *from, size_t bytes) { fwrite(from, 1, bytes, stdout); }
`;

/** The text of functions without those that the header has, and without the device's shared memory. */
export function onProcessor(text: string): string {
  const [from, to] = [text.indexOf("static __device__ __forceinline__ f32 exp_device"), text.indexOf("/* sums[y, x]")];
  return `${text.slice(0, from)}${text.slice(to)}`
    .replaceAll("extern __shared__ __align__(16) char raw[];", "")
    .replaceAll('extern "C" ', "static ");
}
