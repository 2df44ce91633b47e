/**
 * @file A placed program as one C file: a function for each distinct nest, and `run_thread`, which calls them in order with
 * the addresses of the plan. The file allocates nothing for the program; the arena is its caller's.
 *
 *   Team *tidemark_open(void)                  threads, asleep
 *   void tidemark_run(Team *, u8 *arena)       one run
 *   void tidemark_step(Team *, u8 *arena, int) one step of it, where asked for; on the caller's thread
 *   void tidemark_close(Team *)
 *   void tidemark_arena(u8 *arena, size_t)     announces memory that will be an arena
 *
 * Programs with copies to a file have more (spill.ts), and so have those with collectives (exchange.ts).
 */
import { isTransfer, type PlacedCopy, type PlacedStep, statementsOf } from "../placed.ts";
import { int, type Statement } from "../script.ts";
import { CCode } from "./c-code.ts";
import { Exchanges } from "./exchange.ts";
import { type CLibrary, NativeLibrary } from "./kernel.ts";
import { fileName } from "./names.ts";
import type { NativeEmitOptions } from "./options.ts";
import { preludeText } from "./prelude.ts";
import { NativeScript } from "./script.ts";
import { heading } from "./sections.ts";
import { SPILL_HEAD, spillQueues, spillText, transferCall } from "./spill.ts";
import { teamText } from "./team.ts";

/** Calls in one C function: compilers take more than linear time for long ones. */
const CALLS_PER_FUNCTION = 128;

/** The part of a program's work that functions may have together which are compiled in less time. */
const RARE_WORK = 0.001;

export interface NativeSource {
  readonly text: string;
  /** Distinct kernel functions. */
  readonly functions: number;
}

const COPY_BYTES = `static NOINLINE void copy_bytes(idx lo, idx hi, int thread, u8 *to, const u8 *from) {
  (void)thread; memcpy(to + lo, from + lo, hi - lo);
}
`;

/** Arenas are few and large: large pages keep their addresses in the processor's translation tables. */
const ARENA = `#if defined(__linux__)
#include <sys/mman.h>
void tidemark_arena(u8 *arena, size_t bytes) {
  const uintptr_t page = 4096, from = ((uintptr_t)arena + page - 1) / page * page, to = ((uintptr_t)arena + bytes) / page * page;
  if (to > from) madvise((void *)from, to - from, MADV_HUGEPAGE);
}
#else
void tidemark_arena(u8 *arena, size_t bytes) { (void)arena; (void)bytes; }
#endif
`;

const partName = (i: number): string => fileName(`part_${i}`);

const HEAD = "(Team *team, u8 *A, int thread, u32 *call)";

export function emitNativeProgram(
  steps: readonly PlacedStep[],
  copies: readonly PlacedCopy[],
  options: NativeEmitOptions,
  library: CLibrary = new NativeLibrary(options),
): NativeSource {
  const parts: string[] = [];
  const perFunction = options.stepwise ? 1 : CALLS_PER_FUNCTION;
  const exchanges = new Exchanges();
  const script = new NativeScript(library, new CCode(), options, exchanges);
  const queues = spillQueues(steps);
  const part = (own: readonly PlacedStep[], statements: readonly Statement[] = []): void => {
    const code = new CCode();
    script.continueIn(code);
    if (queues && parts.length === 0) script.call("spill_begin(team);");
    for (const step of own) {
      if (queues && isTransfer(step)) script.call(transferCall(step, queues));
      else script.add(statementsOf(step, "native"));
    }
    script.emit(statements);
    parts.push(`static NOINLINE void ${partName(parts.length)}${HEAD} {\n  (void)team; (void)A; (void)thread; (void)call;
${code.lines.join("\n")}\n}\n`);
  };
  for (let from = 0; from < steps.length; from += perFunction) {
    part(steps.slice(from, from + perFunction));
  }
  const moved = copies.map(({ from, to, bytes }): Statement => ({ kind: "copy", from: int(from), to: int(to), bytes }));
  part([], moved);
  const calls = parts.map((_, i) => `  ${partName(i)}(team, A, thread, call);`);
  const run = `static void run_thread${HEAD} {\n${calls.join("\n")}\n}\n`;
  const text = [
    preludeText([options.lanes, options.lanes / 2]),
    library.text(rareFunctions(script.work)),
    heading("program") + (queues ? SPILL_HEAD : "") + teamText(options.threads, queues !== null),
    ...(queues ? [spillText(queues)] : []),
    ...(exchanges.isEmpty ? [] : [exchanges.text()]),
    COPY_BYTES,
    ARENA,
    ...parts,
    run,
    options.stepwise ? stepwiseText(parts.length) : "",
  ];
  return { text: text.join("\n"), functions: library.count };
}

/** The functions of least work, as many as have next to nothing of it together. */
function rareFunctions(work: ReadonlyMap<string, number>): ReadonlySet<string> {
  const ascending = [...work].sort(([, a], [, b]) => a - b);
  let left = RARE_WORK * ascending.reduce((sum, [, ops]) => sum + ops, 0);
  const rare = new Set<string>();
  for (const [name, ops] of ascending) {
    left -= ops;
    if (left < 0) break;
    rare.add(name);
  }
  return rare;
}

function stepwiseText(parts: number): string {
  const cases = Array.from({ length: parts }, (_, i) => `    case ${i}: ${partName(i)}(team, A, 0, 0); break;`);
  return `void tidemark_step(Team *team, u8 *A, int step) {\n  switch (step) {\n${cases.join("\n")}\n  }\n}\n`;
}
