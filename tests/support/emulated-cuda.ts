/**
 * @file A CUDA device that is none, with a driver and a compiler that are called as the real ones are: text of kernels goes to the
 * system's C compiler, memory of the device is the process's own, and graphs are recorded and launched. The threads of a block
 * are contexts of one thread that change at barriers. Tensor cores are not there.
 *
 *   nvcc       a script: the text as C, where `__syncthreads()` changes to the next thread     → a shared object, as the cubin
 *   driver     streams are lists: a copy beside the kernels runs as soon as it is begun ("early"), or when it is waited for and no
 *              sooner ("late"); a program whose results are equal both ways has its copies in the right places
 *
 * A graph in which something is begun and never waited for is refused, as by the real driver.
 */
import { createHash } from "node:crypto";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CudaRequest, cudaTarget } from "../../src/node/cuda/target.ts";
import { systemCompiler } from "../../src/node/native/compiler.ts";
import type { TargetAnswer } from "../../src/runtime/device.ts";
import { fakeDriver } from "./fake-cuda.ts";

/** Operands of a launch, at most. */
const MOST_ARGUMENTS = 24;
const ARGUMENTS = Array.from({ length: MOST_ARGUMENTS }, (_, i) => i);

/** Before the text of kernels. */
const DEVICE_TEXT = `#include <math.h>
#include <string.h>
#include <ucontext.h>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __fmaf_rn fmaf
#define __fma_rn fma
typedef struct { float x, y; } float2 __attribute__((aligned(8), may_alias));
typedef struct { float x, y, z, w; } float4 __attribute__((aligned(16), may_alias));
typedef struct { int x, y; } int2 __attribute__((aligned(8), may_alias));
typedef struct { int x, y, z, w; } int4 __attribute__((aligned(16), may_alias));
typedef struct { double x, y; } double2 __attribute__((aligned(16), may_alias));
typedef struct { unsigned x; } uint1 __attribute__((aligned(4), may_alias));
typedef struct { unsigned x, y; } uint2 __attribute__((aligned(8), may_alias));
static struct { unsigned x; } threadIdx, blockIdx;
typedef void (*EmulatedBody)(${ARGUMENTS.map(() => "void *").join(", ")});
static ucontext_t emulated_caller, emulated_threads[1024];
static int emulated_done[1024];
static EmulatedBody emulated_body;
static void **emulated_args;
static void emulated_thread(void) {
  emulated_body(${ARGUMENTS.map((i) => `emulated_args[${i}]`).join(", ")});
  emulated_done[threadIdx.x] = 1;
}
static void emulated_barrier(void) {
  const unsigned own = threadIdx.x;
  swapcontext(&emulated_threads[own], &emulated_caller);
  threadIdx.x = own;
}
#define __syncthreads() emulated_barrier()
static char emulated_stacks[1024][1 << 15];
void emulated_launch(void *body, void **args, unsigned blocks, unsigned threads, int has_barriers) {
  emulated_body = (EmulatedBody)body;
  emulated_args = args;
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
    if (!has_barriers) {
      for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) emulated_thread();
      continue;
    }
    for (unsigned t = 0; t < threads; t++) {
      getcontext(&emulated_threads[t]);
      emulated_threads[t].uc_stack.ss_sp = emulated_stacks[t];
      emulated_threads[t].uc_stack.ss_size = sizeof emulated_stacks[t];
      emulated_threads[t].uc_link = &emulated_caller;
      makecontext(&emulated_threads[t], emulated_thread, 0);
      emulated_done[t] = 0;
    }
    for (int left = 1; left;) {
      left = 0;
      for (unsigned t = 0; t < threads; t++) {
        if (emulated_done[t]) continue;
        threadIdx.x = t;
        swapcontext(&emulated_caller, &emulated_threads[t]);
        left |= !emulated_done[t];
      }
    }
  }
}
`;

/** Of this compiler, which no real one has: compiled text is kept by it. */
const VERSION = `0.${Number.parseInt(createHash("sha256").update(DEVICE_TEXT).digest("hex").slice(0, 8), 16)}`;

/** nvcc, as Node runs it: what the driver has to know of a function is in variables beside it. */
const nvccText = (compiler: string, header: string, version: string): string => `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
const args = process.argv.slice(2);
if (args.includes("--version")) {
  console.log("Cuda compilation tools, release ${version}");
  process.exit(0);
}
const source = args.find((arg) => arg.endsWith(".cu"));
const out = args[args.indexOf("-o") + 1];
let text = readFileSync(source, "utf8").replaceAll('extern "C" ', "");
for (const [, name, params, body] of text.matchAll(/__launch_bounds__\\([^)]*\\) (tide_launch_\\d+)\\(([^)]*)\\) {\\n([^]*?)\\n}\\n/g)) {
  text += "int count_" + name + " = " + params.split("*").length + " - 1;\\n";
  text += "int barriers_" + name + " = " + Number(body.includes("__syncthreads")) + ";\\n";
}
const file = source + ".c";
writeFileSync(file, readFileSync(${JSON.stringify(header)}, "utf8") + text);
const flags = "-O1 -w -std=gnu11 -fPIC -shared -ffp-contract=off -fwrapv -fno-strict-aliasing -march=native".split(" ");
const { status, stderr } = spawnSync(${JSON.stringify(compiler)}, [...flags, file, "-o", out, "-lm"], { encoding: "utf8" });
process.stderr.write(stderr);
process.exit(status ?? 1);
`;

/** Streams, events, graphs and modules, in C; LATE says when copies run, FOLDER where modules are loaded from. */
const DRIVER_TEXT = `#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <unistd.h>
static size_t pinned, launches;
typedef struct { void (*launch)(void *, void **, unsigned, unsigned, int); void *body; int count, barriers; } Function;
typedef enum { COPY, BYTES, WORDS, LAUNCH, HOST, RECORD, WAIT } Kind;
typedef struct {
  Kind kind;
  long stream, event;
  char *to, *from;
  size_t n;
  unsigned value, blocks, threads;
  Function *function;
  void (*call)(void *);
  void *args[${MOST_ARGUMENTS}];
} Op;
typedef struct { Op *ops; int count, room; } List;
static long handles = 16, capturing;
static List captured;
static void do_op(const Op *op) {
  if (op->kind == COPY) memmove(op->to, op->from, op->n);
  if (op->kind == BYTES) memset(op->to, (int)op->value, op->n);
  if (op->kind == WORDS) for (size_t i = 0; i < op->n; i++) memcpy(op->to + 4 * i, &op->value, 4);
  if (op->kind == HOST) op->call(op->to);
  if (op->kind == LAUNCH) {
    const Function *f = op->function;
    f->launch(f->body, (void **)op->args, op->blocks, op->threads, f->barriers);
  }
}
static void add(List *list, const Op *op) {
  if (list->count == list->room) list->ops = realloc(list->ops, (list->room = 2 * list->room + 16) * sizeof *op);
  list->ops[list->count++] = *op;
}
/* Another stream takes part once it waits for something that is recorded. */
static int takes_part(long stream) {
  for (int i = 0; i < captured.count; i++) if (captured.ops[i].stream == stream) return 1;
  return stream == capturing;
}
static int give(Op op, void *stream) {
  op.stream = (long)stream;
  if (capturing && (op.kind == WAIT || takes_part(op.stream))) add(&captured, &op);
  else do_op(&op);
  return 0;
}
/* Which operation records the event that this one waits for. */
static int recorded(const List *list, int wait) {
  for (int i = wait - 1; i >= 0; i--) if (list->ops[i].kind == RECORD && list->ops[i].event == list->ops[wait].event) return i;
  return -1;
}
static void replay(const List *list, long stream) {
  char *done = calloc(list->count + 1, 1);
  for (int i = 0; i < list->count; i++) {
    const Op *op = &list->ops[i];
    if (op->stream != stream && LATE) continue;
    if (op->kind == WAIT && LATE) {
      const int until = recorded(list, i);
      for (int k = 0; k <= until; k++) {
        if (list->ops[k].stream != list->ops[until].stream || done[k]) continue;
        do_op(&list->ops[k]);
        done[k] = 1;
      }
    }
    if (!done[i]) do_op(op);
    done[i] = 1;
  }
  free(done);
}
/* What is begun on other streams is waited for by this one. */
static int all_joined(const List *list, long stream) {
  for (int i = 0; i < list->count; i++) {
    if (list->ops[i].stream == stream) continue;
    int joined = 0;
    for (int k = i + 1; k < list->count; k++) {
      const int until = list->ops[k].kind == WAIT && list->ops[k].stream == stream ? recorded(list, k) : -1;
      joined |= until >= i && list->ops[until].stream == list->ops[i].stream;
    }
    if (!joined) return 0;
  }
  return 1;
}
/* What a library puts into a stream (emulated-nccl.ts). */
int cuLaunchHostFunc(void *q, void (*call)(void *), void *data) {
  return give((Op){ .kind = HOST, .call = call, .to = data }, q);
}
static size_t elf_bytes(const Elf64_Ehdr *head) { return head->e_shoff + (size_t)head->e_shnum * head->e_shentsize; }
`;

const DRIVER_FUNCTIONS: Readonly<Record<string, string>> = {
  cuMemGetInfo_v2: "(size_t *f, size_t *t) { *t = (size_t)1 << 32; *f = *t - used; return 0; }",
  cuMemAlloc_v2:
    "(void **p, size_t n) { *p = aligned_alloc(256, (n + 255) / 256 * 256); memset(*p, 0xff, n); used += malloc_usable_size(*p); return 0; }",
  cuMemHostAlloc:
    "(void **p, size_t n, unsigned f) { *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096); memset(*p, 0xff, n); pinned += n; return 0; }",
  cuMemFreeHost: "(void *p) { free(p); return 0; }",
  // each process has a device of its own, unless it is told otherwise
  cuDeviceGetUuid_v2:
    '(char *u, int d) { const int own = getenv("EMULATED_ONE_GPU") ? 1 : getpid(); memset(u, 0, 16); memcpy(u, &own, sizeof own); return 0; }',
  cuEventQuery:
    '(void *e) { if (getenv("EMULATED_SAYS")) fprintf(stderr, "asked of process %d\\n", getpid()); return 0; }',
  cuStreamCreate: "(void **s, unsigned f) { *s = (void *)++handles; return 0; }",
  cuEventCreate: "(void **e, unsigned f) { *e = (void *)++handles; return 0; }",
  cuMemcpyHtoDAsync_v2:
    "(void *d, void *s, size_t n, void *q) { return give((Op){ .kind = COPY, .to = d, .from = s, .n = n }, q); }",
  cuMemcpyDtoHAsync_v2:
    "(void *d, void *s, size_t n, void *q) { return give((Op){ .kind = COPY, .to = d, .from = s, .n = n }, q); }",
  cuMemcpyDtoDAsync_v2:
    "(void *d, void *s, size_t n, void *q) { return give((Op){ .kind = COPY, .to = d, .from = s, .n = n }, q); }",
  cuMemsetD8Async:
    "(void *d, unsigned char v, size_t n, void *q) { return give((Op){ .kind = BYTES, .to = d, .value = v, .n = n }, q); }",
  cuMemsetD32Async:
    "(void *d, unsigned v, size_t n, void *q) { return give((Op){ .kind = WORDS, .to = d, .value = v, .n = n }, q); }",
  cuEventRecord: "(void *e, void *q) { return capturing ? give((Op){ .kind = RECORD, .event = (long)e }, q) : 0; }",
  cuStreamWaitEvent:
    "(void *q, void *e, unsigned f) { return capturing ? give((Op){ .kind = WAIT, .event = (long)e }, q) : 0; }",
  cuStreamBeginCapture_v2:
    "(void *q, int m) { if (capturing) return 401; capturing = (long)q; captured = (List){ 0 }; return 0; }",
  cuStreamEndCapture: `(void *q, void **g) {
  const long stream = capturing;
  capturing = 0;
  if (!all_joined(&captured, stream)) return 904;
  *g = memcpy(malloc(sizeof captured), &captured, sizeof captured);
  return 0;
}`,
  cuGraphInstantiateWithFlags: "(void **e, void *g, unsigned long long f) { *e = g; return 0; }",
  cuGraphLaunch: "(void *g, void *q) { launches++; replay(g, (long)q); return 0; }",
  cuModuleLoadData: `(void **m, const void *data) {
  char path[] = FOLDER "/module-XXXXXX";
  const int file = mkstemp(path);
  const size_t n = elf_bytes(data);
  if (file < 0 || write(file, data, n) != (ssize_t)n) return 999;
  close(file);
  *m = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  return *m ? 0 : 200;
}`,
  cuModuleUnload: "(void *m) { dlclose(m); return 0; }",
  cuModuleGetFunction: `(void **f, void *m, const char *name) {
  char beside[64];
  Function *made = calloc(1, sizeof *made);
  made->body = dlsym(m, name);
  *(void **)&made->launch = dlsym(m, "emulated_launch");
  snprintf(beside, sizeof beside, "count_%s", name);
  made->count = *(int *)dlsym(m, beside);
  snprintf(beside, sizeof beside, "barriers_%s", name);
  made->barriers = *(int *)dlsym(m, beside);
  *f = made;
  return made->body ? 0 : 500;
}`,
  cuLaunchKernel: `(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned s, void *q, void **params, void *extra) {
  if (f->count > ${MOST_ARGUMENTS} || bx > 1024) return 1;
  Op op = { .kind = LAUNCH, .function = f, .blocks = gx, .threads = bx };
  for (int i = 0; i < f->count; i++) op.args[i] = *(void **)params[i];
  return give(op, q);
}`,
};

export interface Emulated {
  /** When copies beside the kernels run; default: early. */
  readonly copies?: "early" | "late";
  /** Functions of the driver in place of those here, as C. */
  readonly changes?: Readonly<Record<string, string>>;
}

/** A device of the C compiler, or one line that says why there is none. */
export function emulatedCuda(how: Emulated = {}): TargetAnswer {
  const places = emulatedPlaces(how);
  return typeof places === "string" ? places : cudaTarget(places);
}

/** Its driver and its compiler, which other processes can have, too. */
export type EmulatedPlaces = Required<Pick<CudaRequest, "driver" | "compilers">>;

export function emulatedPlaces({ copies = "early", changes = {} }: Emulated = {}): EmulatedPlaces | string {
  const compiler = systemCompiler();
  if (typeof compiler === "string") return compiler;
  const folder = mkdtempSync(join(tmpdir(), "tidemark-emulated-cuda-"));
  const [header, nvcc] = [join(folder, "device.h"), join(folder, "nvcc")];
  writeFileSync(header, DEVICE_TEXT);
  writeFileSync(nvcc, nvccText(compiler.command, header, VERSION));
  chmodSync(nvcc, 0o755);
  const how = `#define LATE ${copies === "late" ? 1 : 0}\n#define FOLDER ${JSON.stringify(folder)}\n`;
  const driver = fakeDriver({ ...DRIVER_FUNCTIONS, ...changes }, `${how}${DRIVER_TEXT}`);
  return { driver, compilers: { nvrtc: [], nvcc: [folder] } };
}
