/**
 * @file The threads of a program, as C. Every thread runs the whole program on numbers of its own and computes its share of
 * each kernel; they meet where one reads what another wrote. One of them is the caller's.
 *
 *   thread 0   k0[0,512)    │ meet │ k1[0,64)   │ meet │ k2 (small: alone) │ meet │ …
 *   thread 1   k0[512,1024) │ meet │ k1[64,128) │ meet │                   │ meet │ …
 *
 * Waiting spins for a moment and then yields the processor at every look, so that a thread whose core was taken by another
 * process is waited for and not competed with. Between runs the others sleep.
 *
 * Shares are cut by thread number alone. An element is computed by one thread in the same way whichever it is, so results
 * depend neither on how many threads there are nor on their timing.
 */

const ALONE = `typedef void Team;
#define MEET()
#define FIRST 1
#define SHARE(units, grain, fn, ...) fn(0, units, thread, __VA_ARGS__)
Team *tidemark_open(void) { return (Team *)1; }
void tidemark_close(Team *team) { (void)team; }
static void run_thread(Team *team, u8 *A, int thread);
void tidemark_run(Team *team, u8 *A) { run_thread(team, A, 0); }
`;

const TOGETHER = `#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX()
#endif
typedef struct {
  _Alignas(64) atomic_int arrived;
  _Alignas(64) atomic_uint round;
  _Alignas(64) atomic_uint job;
  u8 *arena;
  int closing, sleeping, members;
  pthread_mutex_t lock;
  pthread_cond_t wake, left;
} Team;
typedef struct { Team *team; int thread; } Member;
static void run_thread(Team *team, u8 *A, int thread);
static void meet(Team *team) {
  const unsigned round = atomic_load_explicit(&team->round, memory_order_acquire);
  if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == THREADS - 1) {
    atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&team->round, round + 1, memory_order_release);
    return;
  }
  for (int looks = 0; atomic_load_explicit(&team->round, memory_order_acquire) == round; looks++) {
    if (looks < 2000) RELAX();
    else sched_yield();
  }
}
#define MEET() meet(team)
#define FIRST (thread == 0)
INLINE void share(idx units, idx grain, int thread, idx *lo, idx *hi) {
  const idx pieces = (units + grain - 1) / grain;
  *lo = pieces * thread / THREADS * grain;
  *hi = thread == THREADS - 1 ? units : pieces * (thread + 1) / THREADS * grain;
}
#define SHARE(units, grain, fn, ...) do { idx lo_, hi_; share(units, grain, thread, &lo_, &hi_); \\
  if (lo_ < hi_) fn(lo_, hi_, thread, __VA_ARGS__); } while (0)
static void *member(void *given) {
  Member *const me = given;
  Team *const team = me->team;
  const int thread = me->thread;
  free(me);
  for (unsigned done = 0;; done++) {
    for (int looks = 0; looks < 20000 && atomic_load_explicit(&team->job, memory_order_acquire) == done; looks++) RELAX();
    if (atomic_load_explicit(&team->job, memory_order_acquire) == done) {
      pthread_mutex_lock(&team->lock);
      team->sleeping++;
      while (atomic_load(&team->job) == done) pthread_cond_wait(&team->wake, &team->lock);
      team->sleeping--;
      pthread_mutex_unlock(&team->lock);
    }
    if (team->closing) break;
    run_thread(team, team->arena, thread);
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
    if (!me || pthread_create(&made, NULL, member, me) != 0) {
      free(me);
      tidemark_close(team);
      return NULL;
    }
    pthread_detach(made);
    team->members++;
  }
  return team;
}
void tidemark_run(Team *team, u8 *A) {
  team->arena = A;
  start(team);
  run_thread(team, A, 0);
}
`;

/** Threads, their meeting points, and the functions that a program is opened, run and closed with. */
export function teamText(threads: number): string {
  return `#define THREADS ${threads}\n${threads === 1 ? ALONE : TOGETHER}`;
}
