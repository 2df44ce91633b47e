/**
 * @file The threads of a program, as C. Every thread goes through the whole program, call by call; a call is cut into pieces,
 * and each piece has a thread that takes it first, the same one in every call with as many pieces, so that data stays in the caches of
 * its core:
 *
 *   call 7     piece 0 ─ thread 0      call 8     piece 0 ─ thread 0      call 9, small: one piece ─ thread 0
 *              piece 1 ─ thread 1                 piece 1 ─ thread 0 (1 was away)
 *
 * A thread that has done its own pieces waits a moment for the others and then takes what they have not begun. A call is over when its
 * pieces are done, not when all threads have been there: one whose core was taken by another process
 * is not waited for unless it holds a piece, and when it is back it skips what is over. So a busy machine costs what the
 * processor's share costs and no more. Only where numbers in the arena decide how the program goes on do all threads meet,
 * since each must have read them before anything is written again.
 *
 * Who takes a piece changes nothing about how it is computed: results depend neither on how many threads there are nor on
 * their timing.
 *
 *   taken   for each piece the number of the last call in which a thread took it, in a cache line of its own: in the usual case
 *           only one thread writes it
 *   done    pieces of the current call that are finished, added up by threads when they have no more to do
 *   turn    number of the current call: idle threads wait for it, asleep after a moment
 */

import { MOST_PIECES } from "../units.ts";

/** How often a thread without work looks whether a call is over before it takes pieces of others: some microseconds. */
const LOOKS_BEFORE_HELP = 50;

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
  struct { _Alignas(64) _Atomic u32 call; } taken[MOST_PIECES];
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
static void wait_while(Team *team, _Atomic u32 *word, u32 old) {
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
static void advance(Team *team, _Atomic u32 *word, u32 to) {
  atomic_store(word, to);
#if defined(__linux__)
  if (atomic_load(&team->waiting) > 0) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, THREADS, NULL, NULL, 0);
#endif
}
/* Whether this thread is the one that takes a piece of a call. The call is looked at after the piece: while it lasts, a piece that was
   not taken is free, and one that is taken by then does not pass the exchange. */
static int take(Team *team, u32 call, int piece) {
  u32 last = atomic_load_explicit(&team->taken[piece].call, memory_order_acquire);
  if (last == call || atomic_load_explicit(&team->turn, memory_order_acquire) != call) return 0;
  return atomic_compare_exchange_strong_explicit(&team->taken[piece].call, &last, call, memory_order_acq_rel,
                                                 memory_order_relaxed);
}
/* Some pieces of a call are finished; with the last ones the next call begins. */
static void finish(Team *team, u32 call, u32 finished, u32 pieces) {
  if (atomic_fetch_add_explicit(&team->done, finished, memory_order_acq_rel) + finished < pieces) return;
  atomic_store_explicit(&team->done, 0, memory_order_relaxed);
  advance(team, &team->turn, call + 1);
}
/* Whether a call is over, after waiting for it a moment. */
static int is_over(Team *team, u32 call) {
  for (int looks = 0; looks < LOOKS_BEFORE_HELP; looks++) {
    if (atomic_load_explicit(&team->turn, memory_order_acquire) != call) return 1;
    RELAX();
  }
  return 0;
}
static void meet(Team *team) {
  const u32 round = atomic_load_explicit(&team->round, memory_order_acquire);
  if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == THREADS - 1) {
    atomic_store_explicit(&team->arrived, 0, memory_order_release);
    advance(team, &team->round, round + 1);
  } else wait_while(team, &team->round, round);
}
/* Own pieces first, then those that no thread has begun; at the end the call is over. */
#define SHARE(units, grain, pieces, fn, ...) do { \
  const u32 call_ = *call; \
  const int home_ = thread * (pieces) / THREADS, next_ = (thread + 1) * (pieces) / THREADS; \
  if (atomic_load_explicit(&team->turn, memory_order_acquire) != call_) break; \
  for (int help_ = 0; help_ < 2; help_++) { \
    u32 finished_ = 0; \
    for (int n_ = 0; n_ < (help_ ? (pieces) : next_ - home_); n_++) { \
      const int p_ = (home_ + n_) % (pieces); \
      if (!take(team, call_, p_)) continue; \
      const idx grains_ = ((units) + (grain) - 1) / (grain); \
      const idx lo_ = grains_ * p_ / (pieces) * (grain); \
      const idx hi_ = p_ == (pieces) - 1 ? (units) : grains_ * (p_ + 1) / (pieces) * (grain); \
      if (lo_ < hi_) fn(lo_, hi_, thread, __VA_ARGS__); \
      finished_++; \
    } \
    if (finished_ > 0) finish(team, call_, finished_, pieces); \
    if (is_over(team, call_)) break; \
  } \
  wait_while(team, &team->turn, call_); \
} while (0)
/* One piece: the first thread computes it, unless it is away. */
static int take_all(Team *team, u32 call, int thread) {
  if (atomic_load_explicit(&team->turn, memory_order_acquire) != call) return 0;
  if ((thread == 0 || !is_over(team, call)) && take(team, call, 0)) return 1;
  wait_while(team, &team->turn, call);
  return 0;
}
#define TAKE_ALL() take_all(team, *call, thread)
#define DONE_ALL() finish(team, *call, 1, 1)
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
  atomic_store(&team->turn, 1);
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
  u32 call = atomic_load_explicit(&team->turn, memory_order_acquire);
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
  const limits = `#define MOST_PIECES ${MOST_PIECES}\n#define LOOKS_BEFORE_HELP ${LOOKS_BEFORE_HELP}\n`;
  return `#define THREADS ${threads}\n${limits}${threads === 1 ? alone : together}`;
}
