/**
 * @file The engine's heap while programs are made. Planning makes much that is dropped at once; V8 lets its heap grow with
 * that, to tens of megabytes beside the arena, and hands back little of it since a program that runs allocates next to nothing.
 * In Node the heap can be told to stay small, and afterwards to give back what it does not need; elsewhere nothing is done.
 *
 *   plan, emit  (heap stays small) ──→ first run: what planning left is collected ──→ the arena is written
 *
 * So the most that is resident is the larger of the two, and not their sum. Planning takes the same processor time either way.
 * Most of the time before the first step would be spent on optimizing code that runs once; so the engine is told to wait for longer.
 * Figures: docs/decisions/0031-resident-memory.md.
 */

/** What is used of `node:v8` and `node:vm`. */
interface V8 {
  setFlagsFromString(flag: string): void;
  getHeapStatistics(): { readonly used_heap_size: number; readonly total_physical_size: number };
}

interface Vm {
  runInNewContext(code: string): unknown;
}

interface NodeProcess {
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly versions?: { readonly node?: string; readonly bun?: string; readonly deno?: string };
  getBuiltinModule?(name: string): unknown;
}

/** Bytes below which what planning left is not worth a collection. */
const LEAST_GROWTH = 6 * 2 ** 20;
const LOOKS_FOR_COLLECT = 4;

/** A flag of V8 while a program is made, and otherwise; from which Node on, and up to which. */
type Flag = readonly [during: string, otherwise: string, since: number, until: number];

const FLAGS: readonly Flag[] = [
  // the young generation does not grow
  ["--semi-space-growth-factor=1", "--semi-space-growth-factor=2", 0, Infinity],
  // the old one is collected when it has grown by this much in a hundred, not when it is several times as large
  ["--heap-growing-percent=30", "--heap-growing-percent=0", 0, Infinity],
  // the compiler in the middle takes tens of megabytes to make machine code of what plans
  ["--no-maglev", "--maglev", 24, Infinity],
  // most of what plans runs for less time than it takes to optimize it: functions wait longer for it
  ["--interrupt-budget=400000", "--interrupt-budget=67584", 20, 21],
  ["--invocation-count-for-turbofan=15000", "--invocation-count-for-turbofan=3000", 22, Infinity],
];

/** Where the user has set such flags, they are left as they are. */
const DECIDED =
  /semi[-_]space|heap[-_]growing|max[-_]heap|expose[-_]gc|maglev|jitless|interrupt[-_]budget|invocation[-_]count/;

const nodeProcess = (): NodeProcess | undefined => (globalThis as { readonly process?: NodeProcess }).process;

interface Engine {
  readonly v8: V8;
  readonly vm: Vm;
  readonly flags: typeof FLAGS;
}

/** V8 where it can be asked; null elsewhere. Bun and Deno have Node's modules by name; flags do nothing there. */
function findEngine(): Engine | null {
  const node = nodeProcess();
  if (node?.versions?.bun || node?.versions?.deno) return null;
  const given = [...(node?.execArgv ?? []), node?.env?.NODE_OPTIONS ?? ""].join(" ");
  const major = Number.parseInt(node?.versions?.node ?? "0", 10);
  const flags = FLAGS.filter(([, , since, until]) => major >= since && major <= until);
  const [v8, vm] = ["node:v8", "node:vm"].map((name) => node?.getBuiltinModule?.(name));
  return v8 && vm && !DECIDED.test(given) ? { v8: v8 as V8, vm: vm as Vm, flags } : null;
}

/**
 * The engine's function that collects. Flags are those of the whole process: another thread that looks for it at the same time may
 * have taken the flag back, and it is looked for again. Undefined: not found this time.
 */
function findCollect({ v8, vm }: Engine): (() => void) | undefined {
  for (let i = 0; i < LOOKS_FOR_COLLECT; i++) {
    v8.setFlagsFromString("--expose-gc");
    const found = vm.runInNewContext('typeof gc === "function" ? gc : undefined');
    v8.setFlagsFromString("--no-expose-gc");
    if (found) return found as () => void;
  }
  return undefined;
}

/** The heap of the engine at hand: part of the host. */
export class EngineHeap {
  /** Looked for when a program is first made. */
  #engine: Engine | null | undefined;
  #depth = 0;
  /** Before the first program that was made since the last collection. */
  #before: { readonly used: number; readonly physical: number } | null = null;
  #collect: (() => void) | undefined;

  #found(): Engine | null {
    if (this.#engine === undefined) this.#engine = findEngine();
    return this.#engine;
  }

  /** Makes something with much garbage, in a heap that stays small. */
  keptSmall<T>(make: () => T): T {
    const engine = this.#found();
    if (!engine || this.#depth > 0) return make();
    const { used_heap_size: used, total_physical_size: physical } = engine.v8.getHeapStatistics();
    this.#before ??= { used, physical };
    this.#depth++;
    for (const [during] of engine.flags) engine.v8.setFlagsFromString(during);
    try {
      return make();
    } finally {
      for (const [, otherwise] of engine.flags) engine.v8.setFlagsFromString(otherwise);
      this.#depth--;
    }
  }

  /**
   * Collects what was dropped since programs were made, where that is much, also beside what else is in the heap: a collection
   * takes as long as there are objects to keep.
   */
  giveBack(): void {
    const [engine, before] = [this.#found(), this.#before];
    if (!engine || !before) return;
    const grown = engine.v8.getHeapStatistics().total_physical_size - before.physical;
    const worth = grown >= Math.max(LEAST_GROWTH, before.used / 4);
    this.#before = null;
    if (!worth) return;
    const { v8 } = engine;
    this.#collect ??= findCollect(engine);
    if (!this.#collect) return;
    // pages with few objects left are emptied and given back too
    v8.setFlagsFromString("--compact-on-every-full-gc");
    this.#collect();
    v8.setFlagsFromString("--no-compact-on-every-full-gc");
  }
}
