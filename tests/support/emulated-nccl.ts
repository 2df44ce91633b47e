/**
 * @file NCCL that is none, beside a CUDA device that is none (emulated-cuda.ts): its functions put exchanges into streams of that device's
 * driver, so they are recorded into graphs and launched with them, early or late. Processes exchange through files that they have in
 * memory together:
 *
 *   group of 3      a file with 9 channels, from each to each: a room of 64 KiB, and how much of it was written and read so far
 *
 * Sums have the order of falling ranks, which is that of no other target, and a maximum of floats leaves NaN out, as NCCL's does.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileTo, systemCompiler } from "../../src/node/native/compiler.ts";
import { foreignFunctions } from "../../src/node/native/library.ts";

/** Types that are combined, by their numbers, and those of C. */
const COMBINED: readonly (readonly [number: number, type: string])[] = [
  [2, "int32_t"],
  [3, "uint32_t"],
  [4, "int64_t"],
  [5, "uint64_t"],
  [7, "float"],
  [8, "double"],
];

const TEXT = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define ROOM 65536
#define MOST 64
typedef struct { char internal[128]; } Id;
typedef struct { _Atomic uint64_t written, read; char room[ROOM]; } Channel;
typedef struct { _Atomic int joined; } Head;
typedef struct { int rank, size; Channel *channels; } Comm;
typedef struct { Comm *comm; int peer, sends; char *at; size_t bytes, done; } Part;
/* What is exchanged, and what is then combined: \`count\` elements of \`own\` with those of the others, into \`to\`. */
typedef struct {
  Part parts[2 * MOST];
  int many, type, op;
  Comm *comm;
  char *to, *own, *others;
  size_t count, bytes;
} Job;
static int (*launch_host)(void *, void (*)(void *), void *);
static int (*allocate)(void **, size_t);
static int failure = FAILURE;
static int calls, groups, asked;
static Job *open_job;
static void *open_stream;
int ncclGetVersion(int *version) { *version = VERSION; return 0; }
const char *ncclGetErrorString(int result) { return result == 6 ? "remote process exited or there was a network error" : "invalid argument"; }
int ncclGetUniqueId(Id *id) {
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%s/group-%d-%d", FOLDER, getpid(), groups++);
  return 0;
}
int ncclCommInitRank(Comm **comm, int size, Id id, int rank) {
  void *const driver = dlopen(DRIVER, RTLD_NOW);
  if (!driver || size > MOST || strncmp(id.internal, FOLDER, strlen(FOLDER))) return 4;
  *(void **)&launch_host = dlsym(driver, "cuLaunchHostFunc");
  *(void **)&allocate = dlsym(driver, "cuMemAlloc_v2");
  const size_t bytes = sizeof(Head) + 64 + (size_t)size * size * sizeof(Channel);
  const int file = open(id.internal, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, bytes)) return 2;
  char *const memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  Head *const head = (Head *)memory;
  if (atomic_fetch_add(&head->joined, 1) + 1 == size) unlink(id.internal);
  while (atomic_load(&head->joined) < size) usleep(100);
  *comm = malloc(sizeof **comm);
  **comm = (Comm){ rank, size, (Channel *)(memory + 64) };
  /* what a group takes of the device */
  void *buffers;
  return allocate(&buffers, 1 << 20) ? 1 : 0;
}
int ncclCommGetAsyncError(Comm *comm, int *error) { *error = asked++ < 3 ? 0 : failure; return 0; }
int ncclCommAbort(Comm *comm) { return 0; }
static int advance(Part *p) {
  Comm *const c = p->comm;
  Channel *const way = &c->channels[p->sends ? c->rank * c->size + p->peer : p->peer * c->size + c->rank];
  const size_t left = p->bytes - p->done, n = left < ROOM ? left : ROOM;
  const uint64_t written = atomic_load(&way->written), read = atomic_load(&way->read);
  if (left == 0 || (written == read) != p->sends) return 0;
  if (p->sends) memcpy(way->room, p->at + p->done, n);
  else memcpy(p->at + p->done, way->room, n);
  p->done += n;
  atomic_fetch_add(p->sends ? &way->written : &way->read, 1);
  return 1;
}
#define COMBINE(number, T) case number: { T *a = to; const T *b = from; \\
  for (size_t i = 0; i < n; i++) a[i] = op == 0 ? a[i] + b[i] : a[i] != a[i] ? b[i] : b[i] > a[i] ? b[i] : a[i]; break; }
static void combine(void *to, const void *from, size_t n, int type, int op) {
  switch (type) { ${COMBINED.map(([number, type]) => `COMBINE(${number}, ${type})`).join(" ")} }
}
static void run(void *data) {
  Job *const job = data;
  for (int i = 0; i < job->many; i++) job->parts[i].done = 0;
  for (int left = 1, idle = 0; left;) {
    int moved = 0;
    left = 0;
    for (int i = 0; i < job->many; i++) {
      moved |= advance(&job->parts[i]);
      left |= job->parts[i].done < job->parts[i].bytes;
    }
    idle = moved ? 0 : idle + 1;
    if (idle > 100) usleep(50);
    else if (idle > 0) sched_yield();
  }
  if (!job->others) return;
  const Comm *const c = job->comm;
  char *const sum = malloc(job->bytes + 1);
  for (int r = c->size - 1; r >= 0; r--) {
    const char *const part = r == c->rank ? job->own : job->others + r * job->bytes;
    if (r == c->size - 1) memcpy(sum, part, job->bytes);
    else combine(sum, part, job->count, job->type, job->op);
  }
  memcpy(job->to, sum, job->bytes);
  free(sum);
}
static void add(Job *job, Comm *comm, int peer, int sends, const void *at, size_t bytes) {
  job->parts[job->many++] = (Part){ comm, peer, sends, (char *)at, bytes, 0 };
}
static int sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
static int is_combined(int type) { return ${COMBINED.map(([number]) => `type == ${number}`).join(" || ")}; }
static int begin(Job *job, void *stream) { calls++; return REFUSES ? 4 : launch_host(stream, run, job); }
static void copy(void *data) { Part *const p = data; memmove(p->at, *(char **)&p->comm, p->bytes); }
static int copied(void *to, const void *from, size_t bytes, void *stream) {
  Part *const p = calloc(1, sizeof *p);
  *p = (Part){ (Comm *)from, 0, 0, to, bytes, 0 };
  return to == from ? 0 : launch_host(stream, copy, p);
}
static int reduced(const char *from, char *to, size_t n, int type, int op, Comm *c, void *stream, int scatters) {
  if (!is_combined(type) || (op != 0 && op != 2)) return 4;
  Job *const job = calloc(1, sizeof *job);
  const size_t bytes = n * sizes[type];
  job->comm = c; job->to = to; job->count = n; job->bytes = bytes; job->type = type; job->op = op;
  job->own = (char *)from + (scatters ? c->rank * bytes : 0);
  job->others = malloc(c->size * bytes + 1);
  for (int peer = 0; peer < c->size; peer++) {
    if (peer == c->rank) continue;
    add(job, c, peer, 1, from + (scatters ? peer * bytes : 0), bytes);
    add(job, c, peer, 0, job->others + peer * bytes, bytes);
  }
  return begin(job, stream);
}
int ncclAllReduce(const char *from, char *to, size_t n, int type, int op, Comm *c, void *stream) {
  return reduced(from, to, n, type, op, c, stream, 0);
}
int ncclReduceScatter(const char *from, char *to, size_t n, int type, int op, Comm *c, void *stream) {
  return reduced(from, to, n, type, op, c, stream, 1);
}
int ncclAllGather(const char *from, char *to, size_t n, int type, Comm *c, void *stream) {
  Job *const job = calloc(1, sizeof *job);
  const size_t bytes = n * sizes[type];
  for (int peer = 0; peer < c->size; peer++) {
    if (peer == c->rank) continue;
    add(job, c, peer, 1, from, bytes);
    add(job, c, peer, 0, to + peer * bytes, bytes);
  }
  return copied(to + c->rank * bytes, from, bytes, stream) || begin(job, stream);
}
int ncclBroadcast(const char *from, char *to, size_t n, int type, int root, Comm *c, void *stream) {
  Job *const job = calloc(1, sizeof *job);
  const size_t bytes = n * sizes[type];
  if (c->rank != root) add(job, c, root, 0, to, bytes);
  for (int peer = 0; c->rank == root && peer < c->size; peer++) if (peer != root) add(job, c, peer, 1, from, bytes);
  return (c->rank == root && copied(to, from, bytes, stream)) || begin(job, stream);
}
/* Outside of a group these would wait for each other; what goes to the device itself comes as a pair, too. */
static const char *own_from;
int ncclGroupStart(void) { if (open_job) return 5; open_job = calloc(1, sizeof *open_job); return 0; }
int ncclSend(const char *from, size_t n, int type, int peer, Comm *c, void *stream) {
  if (!open_job || peer < 0 || peer >= c->size) return 5;
  open_stream = stream;
  if (peer == c->rank) own_from = from;
  else add(open_job, c, peer, 1, from, n * sizes[type]);
  return 0;
}
int ncclRecv(char *to, size_t n, int type, int peer, Comm *c, void *stream) {
  if (!open_job || peer < 0 || peer >= c->size) return 5;
  open_stream = stream;
  if (peer == c->rank) return copied(to, own_from, n * sizes[type], stream);
  add(open_job, c, peer, 0, to, n * sizes[type]);
  return 0;
}
int ncclGroupEnd(void) {
  Job *const job = open_job;
  open_job = 0;
  return begin(job, open_stream);
}
/* How many exchanges were asked for. */
int emulated_exchanges(void) { return calls; }
`;

export interface EmulatedNccl {
  /** As the library says it; default: a new one. */
  readonly version?: number;
  /** What every group says went wrong, after a while; default: nothing. */
  readonly failure?: number;
  /** Whether it refuses every exchange; default: none. */
  readonly refuses?: boolean;
}

/** How many exchanges a library was asked for. */
export function exchangesOf(path: string): number {
  const koffi = foreignFunctions();
  if (typeof koffi === "string") throw new Error(koffi);
  return koffi.load(path).func("emulated_exchanges", "int", [])() as number;
}

/** The path of a library for the driver at a path. */
export function emulatedNccl(
  driver: string,
  { version = 22_105, failure = 0, refuses = false }: EmulatedNccl = {},
): string {
  const compiler = systemCompiler();
  if (typeof compiler === "string") throw new Error(compiler);
  const folder = mkdtempSync(join(tmpdir(), "tidemark-emulated-nccl-"));
  const path = join(folder, "libnccl.so.2");
  const defined = {
    FOLDER: JSON.stringify(folder),
    DRIVER: JSON.stringify(driver),
    VERSION: version,
    FAILURE: failure,
    REFUSES: Number(refuses),
  };
  const head = Object.entries(defined).map(([name, value]) => `#define ${name} ${value}\n`);
  compileTo(compiler, `${head.join("")}${TEXT}`, path);
  return path;
}
