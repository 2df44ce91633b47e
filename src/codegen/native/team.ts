/**
 * @file The threads of a program, as C. Every thread goes through the whole program, call by call; a call is cut into pieces
 * and a piece is computed by the thread that takes it first, preferably the one that had it before and has it in cache:
 *
 *   call 7     piece 0 ─ thread 0      call 8     piece 0 ─ thread 0      call 9, small: one piece ─ thread 1
 *              piece 1 ─ thread 1                 piece 1 ─ thread 0 (1 was away)
 *
 * A call is over when its pieces are done, not when all threads have been there: one whose core was taken by another process
 * is not waited for unless it holds a piece, and when it is back it skips what is over. So a busy machine costs what the
 * processor's share costs and no more. Only where numbers in the arena decide how the program goes on do all threads meet,
 * since each must have read them before anything is written again.
 *
 * Who takes a piece changes nothing about how it is computed: results depend neither on how many threads there are nor on
 * their timing.
 *
 *   claim   number of the current call << 32 | pieces taken, a bit each
 *   done    how many pieces of it are finished; the last one to finish goes on to the next call
 *   turn    counts finished calls: idle threads wait for it, asleep after a moment
 */

const ALONE = `typedef void Team;
#define SHARE(units, grain, pieces, fn, ...) fn(0, units, thread, __VA_ARGS__)
#define TAKE_ALL() 1
#define DONE_ALL()
#define MEET()
#define NEXT()
Team *tidemark_open(void) { return (Team *)1; }
void tidemark_close(Team *team) { (void)team; }
static void run_thread(Team *team, u8 *A, int thread, u32 *call);
void tidemark_run(Team *team, u8 *A) { run_thread(team, A, 0, 0); }
`;

/** One thread whose program has copies to a file (spill.ts). */
const ALONE_WITH_FILE = ALONE.replace(
  "typedef void Team;",
  "#include <stdlib.h>\ntypedef struct { Spill *spill; } Team;",
)
  .replace("return (Team *)1;", "return calloc(1, sizeof(Team));")
  .replace("(void)team; }", "free(team); }");

const TOGETHER = `#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX()
#endif
typedef struct {
  _Alignas(64) _Atomic u64 claim;
  _Alignas(64) _Atomic u32 done;
  _Alignas(64) _Atomic u32 turn, waiting;
  _Alignas(64) _Atomic u32 arrived, round;
  _Alignas(64) _Atomic u32 job, base;
  u8 *arena;
  int closing, sleeping, members;
  pthread_mutex_t lock;
  pthread_cond_t wake, left;
} Team;
typedef struct { Team *team; int thread; } Member;
static void run_thread(Team *team, u8 *A, int thread, u32 *call);
/* Until a word is no longer what it was: spins for some microseconds, then sleeps. */
static void wait_for(Team *team, _Atomic u32 *word, u32 old) {
  for (int looks = 0; looks < 1000; looks++) {
    if (atomic_load_explicit(word, memory_order_acquire) != old) return;
    RELAX();
  }
#if defined(__linux__)
  atomic_fetch_add(&team->waiting, 1);
  while (atomic_load(word) == old) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
  atomic_fetch_sub(&team->waiting, 1);
#else
  while (atomic_load_explicit(word, memory_order_acquire) == old) sched_yield();
#endif
}
static void advance(Team *team, _Atomic u32 *word) {
  atomic_fetch_add(word, 1);
#if defined(__linux__)
  if (atomic_load(&team->waiting) > 0) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, THREADS, NULL, NULL, 0);
#endif
}
/* A piece of a call, or -1 when the call is over. */
static int take(Team *team, u32 call, int pieces, int home) {
  const u32 all = pieces == 32 ? ~(u32)0 : ((u32)1 << pieces) - 1;
  for (;;) {
    const u32 turn = atomic_load_explicit(&team->turn, memory_order_acquire);
    u64 claim = atomic_load_explicit(&team->claim, memory_order_acquire);
    if ((u32)(claim >> 32) != call) return -1;
    const u32 free = ~(u32)claim & all;
    if (free == 0) {
      wait_for(team, &team->turn, turn);
      continue;
    }
    const u32 near = free & (~(u32)0 << home);
    const int piece = __builtin_ctz(near ? near : free);
    if (atomic_compare_exchange_weak_explicit(&team->claim, &claim, claim | (u64)1 << piece, memory_order_acq_rel,
                                              memory_order_relaxed)) return piece;
  }
}
static void finish(Team *team, u32 call, int pieces) {
  if (atomic_fetch_add_explicit(&team->done, 1, memory_order_acq_rel) + 1 < (u32)pieces) return;
  atomic_store_explicit(&team->done, 0, memory_order_relaxed);
  atomic_store_explicit(&team->claim, (u64)(u32)(call + 1) << 32, memory_order_release);
  advance(team, &team->turn);
}
static void meet(Team *team) {
  const u32 round = atomic_load_explicit(&team->round, memory_order_acquire);
  if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == THREADS - 1) {
    atomic_store_explicit(&team->arrived, 0, memory_order_release);
    advance(team, &team->round);
  } else wait_for(team, &team->round, round);
}
#define SHARE(units, grain, pieces, fn, ...) do { \
  for (int p_; (p_ = take(team, *call, pieces, thread * pieces / THREADS)) >= 0; finish(team, *call, pieces)) { \
    const idx n_ = ((units) + (grain) - 1) / (grain); \
    const idx lo_ = n_ * p_ / (pieces) * (grain), hi_ = p_ == (pieces) - 1 ? (units) : n_ * (p_ + 1) / (pieces) * (grain); \
    if (lo_ < hi_) fn(lo_, hi_, thread, __VA_ARGS__); \
  } } while (0)
#define TAKE_ALL() (take(team, *call, 1, 0) == 0)
#define DONE_ALL() finish(team, *call, 1)
#define MEET() meet(team)
#define NEXT() ++*call
static void *member(void *given) {
  Member *const me = given;
  Team *const team = me->team;
  const int thread = me->thread;
  free(me);
  for (u32 seen = 0;;) {
    for (int looks = 0; looks < 20000 && atomic_load_explicit(&team->job, memory_order_acquire) == seen; looks++) RELAX();
    if (atomic_load_explicit(&team->job, memory_order_acquire) == seen) {
      pthread_mutex_lock(&team->lock);
      team->sleeping++;
      while (atomic_load(&team->job) == seen) pthread_cond_wait(&team->wake, &team->lock);
      team->sleeping--;
      pthread_mutex_unlock(&team->lock);
    }
    seen = atomic_load_explicit(&team->job, memory_order_acquire);
    u32 call = atomic_load_explicit(&team->base, memory_order_acquire);
    if (team->closing) break;
    run_thread(team, team->arena, thread, &call);
  }
  pthread_mutex_lock(&team->lock);
  team->members--;
  pthread_cond_signal(&team->left);
  pthread_mutex_unlock(&team->lock);
  return NULL;
}
static void start(Team *team) {
  pthread_mutex_lock(&team->lock);
  atomic_fetch_add(&team->job, 1);
  if (team->sleeping > 0) pthread_cond_broadcast(&team->wake);
  pthread_mutex_unlock(&team->lock);
}
void tidemark_close(Team *team) {
  team->closing = 1;
  start(team);
  pthread_mutex_lock(&team->lock);
  while (team->members > 0) pthread_cond_wait(&team->left, &team->lock);
  pthread_mutex_unlock(&team->lock);
  free(team);
}
Team *tidemark_open(void) {
  Team *team = aligned_alloc(64, (sizeof(Team) + 63) / 64 * 64);
  if (!team) return NULL;
  memset(team, 0, sizeof *team);
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->wake, NULL);
  pthread_cond_init(&team->left, NULL);
  for (int thread = 1; thread < THREADS; thread++) {
    Member *me = malloc(sizeof *me);
    pthread_t made;
    if (me) *me = (Member){ team, thread };
    team->members++;
    if (!me || pthread_create(&made, NULL, member, me) != 0) {
      free(me);
      team->members--;
      tidemark_close(team);
      return NULL;
    }
    pthread_detach(made);
  }
  return team;
}
void tidemark_run(Team *team, u8 *A) {
  u32 call = (u32)(atomic_load_explicit(&team->claim, memory_order_acquire) >> 32);
  team->arena = A;
  atomic_store_explicit(&team->base, call, memory_order_release);
  start(team);
  run_thread(team, A, 0, &call);
}
`;

/** Threads, how they share calls, and the functions that a program is opened, run and closed with. */
export function teamText(threads: number, hasFile = false): string {
  const together = hasFile ? TOGETHER.replace("  u8 *arena;\n", "  u8 *arena;\n  Spill *spill;\n") : TOGETHER;
  const alone = hasFile ? ALONE_WITH_FILE : ALONE;
  return `#define THREADS ${threads}\n${threads === 1 ? alone : together}`;
}
