/**
 * @file Copies between the arena and a file, as C: a thread for each queue of the plan, which does one copy after the other with
 * pread and pwrite while the program goes on.
 *
 *   program     start 0 ── start 1 ── kernels ── wait 0 ── kernels ── wait 1
 *   queue's thread   └─ pwrite, pwrite ─┴─ pwrite ─ … ┘
 *
 * Data goes through a buffer of the thread's, so that addresses in the arena may be any: the file is read and written past the
 * system's cache, in whole pages at multiples of a page, where the file system allows that. What goes wrong is kept until the run
 * is over; copies after it do nothing.
 */
import type { PlacedStep, PlacedTransfer } from "../placed.ts";
import { isTransfer } from "../placed.ts";

/** The copies of a program, by queue. */
export interface SpillQueues {
  /** Copies of each. */
  readonly counts: readonly number[];
  /** Queue of a copy, and its number there. */
  readonly placeOf: (transfer: PlacedTransfer) => { readonly queue: number; readonly number: number };
}

/** Null where a program has no copies to a file. */
export function spillQueues(steps: readonly PlacedStep[]): SpillQueues | null {
  const counts: number[] = [];
  const queues = new Map<number, number>();
  const places = new Map<number, { readonly queue: number; readonly number: number }>();
  for (const step of steps) {
    if (!isTransfer(step) || step.transfer !== "start") continue;
    const queue = queues.get(step.queue) ?? queues.size;
    queues.set(step.queue, queue);
    const number = counts[queue] ?? 0;
    counts[queue] = number + 1;
    places.set(step.copy, { queue, number });
  }
  if (counts.length === 0) return null;
  return { counts, placeOf: ({ copy }) => places.get(copy) ?? { queue: 0, number: 0 } };
}

/** The call of one half of a copy. */
export function transferCall(step: PlacedTransfer, queues: SpillQueues): string {
  const { queue, number } = queues.placeOf(step);
  if (step.transfer === "wait") return `spill_wait(team, ${queue}, ${number});`;
  const isWrite = step.from.space === 0;
  const [inArena, inFile] = isWrite ? [step.from, step.to] : [step.to, step.from];
  const args = [queue, `A + ${inArena.address}`, `${inFile.address}ull`, `${step.bytes}ull`, Number(isWrite)];
  return `spill_start(team, ${args.join(", ")});`;
}

/** Types and declarations, before those of the team. */
export const SPILL_HEAD = "typedef struct Spill Spill;\n";

/** After the team, which has a field `spill`. */
export function spillText({ counts }: SpillQueues): string {
  return `#define QUEUES ${counts.length}\n#define MOST_COPIES ${Math.max(...counts)}\n${THREADS}`;
}

const THREADS = `#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define PAGE_BYTES 4096
#define PIECE_BYTES (1 << 20)
typedef struct { u8 *memory; u64 at, bytes; int is_write; } Transfer;
typedef struct {
  Spill *spill;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work, ready;
  u64 issued, done, base;
  int closing, is_started;
  double due;
  u8 *piece;
  Transfer transfers[MOST_COPIES];
} Queue;
struct Spill { int file, error; double rate; Queue queues[QUEUES]; };
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}
/* Where a rate is given, no more bytes a second. */
static void pace(Queue *queue, u64 bytes) {
  const double rate = queue->spill->rate, now = seconds();
  if (rate <= 0) return;
  queue->due = (queue->due > now ? queue->due : now) + bytes / rate;
  const double rest = queue->due - now;
  if (rest > 0) nanosleep(&(struct timespec){ (time_t)rest, (long)(1e9 * (rest - (time_t)rest)) }, NULL);
}
/* One piece of whole pages; past the cache until the file system refuses that. */
static int transfer_piece(int file, u8 *piece, u64 bytes, u64 at, int is_write) {
  for (u64 done = 0; done < bytes;) {
    const ssize_t n = is_write ? pwrite(file, piece + done, bytes - done, at + done) : pread(file, piece + done, bytes - done, at + done);
    if (n > 0) { done += n; continue; }
    if (n < 0 && errno == EINTR) continue;
#if defined(O_DIRECT)
    if (n < 0 && errno == EINVAL && fcntl(file, F_GETFL) & O_DIRECT) {
      fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_DIRECT);
      continue;
    }
#endif
    return n < 0 ? errno : EIO;
  }
  return 0;
}
static int transfer(Queue *queue, const Transfer *t) {
  for (u64 from = 0; from < t->bytes; from += PIECE_BYTES) {
    const u64 bytes = t->bytes - from < PIECE_BYTES ? t->bytes - from : PIECE_BYTES;
    const u64 whole = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (t->is_write) {
      memcpy(queue->piece, t->memory + from, bytes);
      memset(queue->piece + bytes, 0, whole - bytes);
    }
    pace(queue, whole);
    const int error = transfer_piece(queue->spill->file, queue->piece, whole, t->at + from, t->is_write);
    if (error) return error;
    if (!t->is_write) memcpy(t->memory + from, queue->piece, bytes);
  }
  return 0;
}
static void *queue_thread(void *given) {
  Queue *const queue = given;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    while (!queue->closing && queue->done == queue->issued) pthread_cond_wait(&queue->work, &queue->lock);
    if (queue->done == queue->issued) break;
    const Transfer next = queue->transfers[queue->done % MOST_COPIES];
    pthread_mutex_unlock(&queue->lock);
    const int error = __atomic_load_n(&queue->spill->error, __ATOMIC_ACQUIRE) ? 0 : transfer(queue, &next);
    if (error) __atomic_store_n(&queue->spill->error, error, __ATOMIC_RELEASE);
    pthread_mutex_lock(&queue->lock);
    queue->done++;
    pthread_cond_broadcast(&queue->ready);
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}
static void spill_begin(Team *team) {
  for (int q = 0; q < QUEUES; q++) team->spill->queues[q].base = team->spill->queues[q].issued;
}
static void spill_start(Team *team, int q, u8 *memory, u64 at, u64 bytes, int is_write) {
  Queue *const queue = &team->spill->queues[q];
  pthread_mutex_lock(&queue->lock);
  queue->transfers[queue->issued++ % MOST_COPIES] = (Transfer){ memory, at, bytes, is_write };
  pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->lock);
}
static void spill_wait(Team *team, int q, u64 number) {
  Queue *const queue = &team->spill->queues[q];
  pthread_mutex_lock(&queue->lock);
  while (queue->done <= queue->base + number) pthread_cond_wait(&queue->ready, &queue->lock);
  pthread_mutex_unlock(&queue->lock);
}
/* Ends the threads of the queues. */
void tidemark_spill_close(Team *team) {
  Spill *const spill = team->spill;
  if (!spill) return;
  for (int q = 0; q < QUEUES; q++) {
    Queue *const queue = &spill->queues[q];
    if (queue->is_started) {
      pthread_mutex_lock(&queue->lock);
      queue->closing = 1;
      pthread_cond_signal(&queue->work);
      pthread_mutex_unlock(&queue->lock);
      pthread_join(queue->thread, NULL);
    }
    free(queue->piece);
  }
  free(spill);
  team->spill = NULL;
}
/* From now on copies go to a file, at most so many bytes a second each way; 0 for no limit. An error number, or 0. */
int tidemark_spill_open(Team *team, int file, double rate) {
  Spill *const spill = calloc(1, sizeof *spill);
  if (!spill) return ENOMEM;
  team->spill = spill;
  spill->file = file;
  spill->rate = rate;
  for (int q = 0; q < QUEUES; q++) {
    Queue *const queue = &spill->queues[q];
    queue->spill = spill;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->work, NULL);
    pthread_cond_init(&queue->ready, NULL);
    int error = posix_memalign((void **)&queue->piece, PAGE_BYTES, PIECE_BYTES);
    if (!error) error = pthread_create(&queue->thread, NULL, queue_thread, queue);
    if (error) {
      tidemark_spill_close(team);
      return error;
    }
    queue->is_started = 1;
  }
#if defined(O_DIRECT)
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_DIRECT);
#elif defined(F_NOCACHE)
  fcntl(file, F_NOCACHE, 1);
#endif
  return 0;
}
/* What went wrong since it was asked last: an error number, or 0. */
int tidemark_spill_error(Team *team) {
  return __atomic_exchange_n(&team->spill->error, 0, __ATOMIC_ACQ_REL);
}
/* Takes room on the disk for a file of so many bytes. An error number, or 0. */
int tidemark_spill_reserve(int file, u64 bytes) {
#if defined(__APPLE__)
  fstore_t room = { F_ALLOCATEALL, F_PEOFPOSMODE, 0, (off_t)bytes, 0 };
  if (fcntl(file, F_PREALLOCATE, &room) < 0) return errno;
  return ftruncate(file, (off_t)bytes) < 0 ? errno : 0;
#else
  return posix_fallocate(file, 0, (off_t)bytes);
#endif
}
`;
