/**
 * @file The library that calls MPI, as C: compiled once for a machine with the flags of its `mpicc`, and shared by all programs of a
 * process. Programs call it through a table (codegen/native/exchange.ts); everything else is called from JavaScript.
 *
 *   program.so ── start, wait, test ──→ this library ──→ libmpi
 *   JavaScript ── begin, group, compare, meet, end ──→ ┘
 *
 * Communicators are numbered; number 0 has all processes. A request lies in the slot that the program gave it.
 *
 * Sums of integers wrap around. A maximum is NaN where an element is, and +0 is above -0: what MPI_MAX answers for these is the
 * library's own.
 */
import { EXCHANGE_TYPES } from "../../codegen/native/exchange.ts";
import { bytesOf, DTYPES, type DType } from "../../kernel/dtype.ts";

const HEAD = `#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef float f32;
typedef double f64;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
`;

/** A combination as a function of MPI, for a C type. */
const operation = (name: string, type: string, body: string): string =>
  `static void op_${name}(void *from, void *to, int *count, MPI_Datatype *datatype) {
  const ${type} *const a = from; ${type} *const b = to;
  for (int i = 0; i < *count; i++) { ${body} }
}
`;

/** Of floats: NaN is above everything, and of two zeros the positive one. */
const maxOf = (type: string, bits: string): string =>
  `static inline ${type} max_${type}(${type} a, ${type} b) {
  ${bits} x, y; memcpy(&x, &a, sizeof x); memcpy(&y, &b, sizeof y); x &= y;
  ${type} both; memcpy(&both, &x, sizeof both);
  return a != a ? a : b != b ? b : a == b ? both : a > b ? a : b;
}
`;

const OPERATIONS = [
  maxOf("f32", "u32"),
  maxOf("f64", "u64"),
  operation("max_f32", "f32", "b[i] = max_f32(a[i], b[i]);"),
  operation("max_f64", "f64", "b[i] = max_f64(a[i], b[i]);"),
  operation("add_i32", "i32", "b[i] = (i32)((u32)a[i] + (u32)b[i]);"),
  operation("add_i64", "i64", "b[i] = (i64)((u64)a[i] + (u64)b[i]);"),
].join("");

/** Of each type: that of MPI, of which elements are moved, and of those that are computed also added and compared. */
const MPI_TYPES: Readonly<Record<DType, string>> = {
  f32: "MPI_FLOAT",
  f64: "MPI_DOUBLE",
  bf16: "MPI_UINT16_T",
  f16: "MPI_UINT16_T",
  i32: "MPI_INT32_T",
  i64: "MPI_INT64_T",
  i8: "MPI_INT8_T",
  u8: "MPI_UINT8_T",
  bool: "MPI_UINT8_T",
};

const typesText = (): string =>
  DTYPES.map((type) => `  type_is(TYPE_${type.toUpperCase()}, ${MPI_TYPES[type]}, ${bytesOf(type)});\n`).join("");

const BODY = `static MPI_Comm *comms;
static int comm_count, is_begun;
static MPI_Op ops[2][TYPE_COUNT];
static const Exchange *current;
static int datatype_bytes[TYPE_COUNT];
static MPI_Datatype datatypes[TYPE_COUNT];
static int add_comm(MPI_Comm comm) {
  comms = realloc(comms, sizeof *comms * (comm_count + 1));
  comms[comm_count] = comm;
  return comm_count++;
}
static void type_is(int type, MPI_Datatype datatype, int bytes) {
  datatypes[type] = datatype;
  datatype_bytes[type] = bytes;
  ops[COMBINE_ADD][type] = MPI_SUM;
  ops[COMBINE_MAX][type] = MPI_MAX;
}
/* 0, or an error of MPI. It may have begun already, by another library of the process. */
int tidemark_mpi_begin(void) {
  int began = 0, level = 0;
  if (is_begun) return 0;
  MPI_Initialized(&began);
  if (!began) {
    const int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (error != MPI_SUCCESS) return error;
  }
  is_begun = 1;
${typesText()}  MPI_Op_create(op_max_f32, 1, &ops[COMBINE_MAX][TYPE_F32]);
  MPI_Op_create(op_max_f64, 1, &ops[COMBINE_MAX][TYPE_F64]);
  MPI_Op_create(op_add_i32, 1, &ops[COMBINE_ADD][TYPE_I32]);
  MPI_Op_create(op_add_i64, 1, &ops[COMBINE_ADD][TYPE_I64]);
  add_comm(MPI_COMM_WORLD);
  return 0;
}
int tidemark_mpi_rank(int comm) { int rank; MPI_Comm_rank(comms[comm], &rank); return rank; }
int tidemark_mpi_size(int comm) { int size; MPI_Comm_size(comms[comm], &size); return size; }
/* The first so many processes; they alone call this. */
int tidemark_mpi_first(int count) {
  MPI_Group all, first;
  MPI_Comm comm;
  int range[1][3] = { { 0, count - 1, 1 } };
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_range_incl(all, 1, range, &first);
  MPI_Comm_create_group(MPI_COMM_WORLD, first, count, &comm);
  MPI_Group_free(&first);
  MPI_Group_free(&all);
  return add_comm(comm);
}
/* The processes of one colour, in the order of their keys. */
int tidemark_mpi_split(int of, int colour, int key) {
  MPI_Comm comm;
  MPI_Comm_split(comms[of], colour, key, &comm);
  return add_comm(comm);
}
/* The processes that share this one's memory. */
int tidemark_mpi_near(int of) {
  MPI_Comm comm;
  MPI_Comm_split_type(comms[of], MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  return add_comm(comm);
}
static void sleep_until(MPI_Request *request) {
  for (int is_done = 0;;) {
    MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    if (is_done) return;
    usleep(500);
  }
}
/* Waits for all, asleep: others may be compiling. */
void tidemark_mpi_meet(int comm) {
  MPI_Request request;
  MPI_Ibarrier(comms[comm], &request);
  sleep_until(&request);
}
/* The bytes of all processes, in order; asleep until all have given theirs. */
void tidemark_mpi_collect(int comm, const u8 *mine, u8 *all, int bytes) {
  MPI_Request request;
  MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comms[comm], &request);
  sleep_until(&request);
}
int tidemark_mpi_version(char *text, int room) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  snprintf(text, room, "%s", version);
  return length;
}
/* What is exchanged, or was last. */
int tidemark_mpi_current(char *text, int room) { return snprintf(text, room, "%s", current ? current->name : ""); }
void tidemark_mpi_end(void) {
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (is_begun && !is_over) MPI_Finalize();
}
/* Ends all processes. */
void tidemark_mpi_abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

/* Requests: two for each slot. */
static MPI_Request *requests;
static int slots, open_slots;
static MPI_Request *slot_requests(int slot) {
  static MPI_Request alone[2];
  if (slot < 0) return alone;
  if (slot >= slots) {
    const int room = slot + 8;
    requests = realloc(requests, sizeof *requests * 2 * room);
    for (int i = 2 * slots; i < 2 * room; i++) requests[i] = MPI_REQUEST_NULL;
    slots = room;
  }
  if (slot >= open_slots) open_slots = slot + 1;
  return requests + 2 * slot;
}
static void permute(const Exchange *e, MPI_Comm comm, u8 *to, const u8 *from, MPI_Request *request) {
  const u64 bytes = e->elements * datatype_bytes[e->type];
  int me, source = -1, target = -1;
  MPI_Comm_rank(comm, &me);
  for (int i = 0; i < e->pairs; i++) {
    if (e->pair[2 * i] == me) target = e->pair[2 * i + 1];
    if (e->pair[2 * i + 1] == me) source = e->pair[2 * i];
  }
  if (source == me) memcpy(to, from, bytes);
  else if (source < 0) memset(to, 0, bytes);
  else MPI_Irecv(to, e->elements, datatypes[e->type], source, 0, comm, &request[0]);
  if (target >= 0 && target != me) MPI_Isend(from, e->elements, datatypes[e->type], target, 0, comm, &request[1]);
}
static void start(const Exchange *e, int group, u8 *to, const u8 *from, int slot) {
  const MPI_Comm comm = comms[group];
  const MPI_Datatype type = datatypes[e->type];
  const MPI_Op op = ops[e->combine][e->type];
  const int n = (int)e->elements;
  MPI_Request *const request = slot_requests(slot);
  const void *const sent = to == from ? MPI_IN_PLACE : from;
  current = e;
  request[0] = request[1] = MPI_REQUEST_NULL;
  switch (e->kind) {
    case EXCHANGE_ALL_REDUCE: MPI_Iallreduce(sent, to, n, type, op, comm, request); break;
    case EXCHANGE_ALL_GATHER: MPI_Iallgather(from, n, type, to, n, type, comm, request); break;
    case EXCHANGE_REDUCE_SCATTER: MPI_Ireduce_scatter_block(from, to, n, type, op, comm, request); break;
    case EXCHANGE_ALL_TO_ALL: MPI_Ialltoall(from, n, type, to, n, type, comm, request); break;
    case EXCHANGE_PERMUTE: permute(e, comm, to, from, request); break;
    case EXCHANGE_BROADCAST: {
      int me;
      MPI_Comm_rank(comm, &me);
      if (me == e->root && to != from) memcpy(to, from, e->elements * datatype_bytes[e->type]);
      MPI_Ibcast(to, n, type, e->root, comm, request);
    }
  }
  if (slot < 0) MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}
static void wait_for(int slot) { MPI_Waitall(2, slot_requests(slot), MPI_STATUSES_IGNORE); }
/* The library makes progress only while it is called. */
static void test(void) {
  int are_done;
  if (open_slots > 0) MPI_Testall(2 * open_slots, requests, &are_done, MPI_STATUSES_IGNORE);
}
static int index_in(int group) { return tidemark_mpi_rank(group); }
/* Collectives of programs that are no C, described once. Numbers are kind, type, combination, root, number of pairs, and the pairs. */
static Exchange **prepared;
static int prepared_count;
int tidemark_mpi_prepare(const int *numbers, int64_t elements, const char *name) {
  const size_t pair_bytes = 2 * numbers[4] * sizeof(int);
  int *const pair = malloc(pair_bytes + 1);
  Exchange *const own = malloc(sizeof *own);
  memcpy(pair, numbers + 5, pair_bytes);
  *own = (Exchange){ numbers[0], numbers[1], numbers[2], numbers[3], elements, numbers[4], pair, strdup(name) };
  prepared = realloc(prepared, sizeof *prepared * (prepared_count + 1));
  prepared[prepared_count] = own;
  return prepared_count++;
}
/* Done when it returns. */
void tidemark_mpi_exchange(int what, int group, u8 *to, const u8 *from) { start(prepared[what], group, to, from, -1); }
static const Communicator functions = { start, wait_for, test, index_in };
const void *tidemark_mpi_functions(void) { return &functions; }
`;

/** The text, the same on every machine. */
export const mpiLibraryText = (): string =>
  [HEAD, `#define TYPE_COUNT ${DTYPES.length}\n`, EXCHANGE_TYPES, OPERATIONS, BODY].join("");
