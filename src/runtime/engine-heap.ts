/**
 * @file The engine's heap while programs are made. Planning makes much that is dropped at once; V8 lets its heap grow with
 * that, to tens of megabytes beside the arena, and hands back little of it since a program that runs allocates next to nothing.
 * In Node the heap can be told to stay small, and afterwards to give back what it does not need; elsewhere nothing is done.
 *
 *   plan, emit  (heap stays small) ──→ first run: what planning left is collected ──→ the arena is written
 *
 * So the most that is resident is the larger of the two, and not their sum. Planning takes the same processor time either way.
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
  readonly versions?: { readonly node?: string };
  getBuiltinModule?(name: string): unknown;
}

/** Bytes below which what planning left is not worth a collection. */
const LEAST_GROWTH = 6 * 2 ** 20;

/** Flags of V8 by what they are while a program is made, and otherwise, from which Node on. */
const FLAGS: readonly (readonly [during: string, otherwise: string, since: number])[] = [
  // the young generation does not grow
  ["--semi-space-growth-factor=1", "--semi-space-growth-factor=2", 0],
  // the old one is collected when it has grown by this much in a hundred, not when it is several times as large
  ["--heap-growing-percent=30", "--heap-growing-percent=0", 0],
  // the compiler in the middle takes tens of megabytes to make machine code of what plans
  ["--no-maglev", "--maglev", 24],
];

/** Who sets such flags decides alone. */
const DECIDED = /semi[-_]space|heap[-_]growing|max[-_]heap|expose[-_]gc|maglev|jitless/;

const nodeProcess = (): NodeProcess | undefined => (globalThis as { readonly process?: NodeProcess }).process;

let engine: { readonly v8: V8; readonly vm: Vm; readonly flags: typeof FLAGS } | null | undefined;

/** V8 where it can be asked; null elsewhere. */
function found(): typeof engine {
  if (engine !== undefined) return engine;
  const host = nodeProcess();
  const given = [...(host?.execArgv ?? []), host?.env?.NODE_OPTIONS ?? ""].join(" ");
  const major = Number.parseInt(host?.versions?.node ?? "0", 10);
  const flags = FLAGS.filter(([, , since]) => major >= since);
  const [v8, vm] = ["node:v8", "node:vm"].map((name) => host?.getBuiltinModule?.(name));
  engine = v8 && vm && !DECIDED.test(given) ? { v8: v8 as V8, vm: vm as Vm, flags } : null;
  return engine;
}

let depth = 0;
/** Before the first program that was made since the last collection. */
let before: { readonly used: number; readonly physical: number } | null = null;

/** Makes something of much that is dropped at once, in a heap that stays small. */
export function inSmallHeap<T>(make: () => T): T {
  const here = found();
  if (!here || depth > 0) return make();
  const { used_heap_size: used, total_physical_size: physical } = here.v8.getHeapStatistics();
  before ??= { used, physical };
  depth++;
  for (const [during] of here.flags) here.v8.setFlagsFromString(during);
  try {
    return make();
  } finally {
    for (const [, otherwise] of here.flags) here.v8.setFlagsFromString(otherwise);
    depth--;
  }
}

let collect: (() => void) | undefined;

/**
 * Collects what was dropped since programs were made, where that is much, also beside what else is in the heap: a collection
 * takes as long as there are objects to keep.
 */
export function returnHeap(): void {
  const here = found();
  if (!here || !before) return;
  const grown = here.v8.getHeapStatistics().total_physical_size - before.physical;
  const worth = grown >= Math.max(LEAST_GROWTH, before.used / 4);
  before = null;
  if (!worth) return;
  const { v8, vm } = here;
  if (!collect) {
    v8.setFlagsFromString("--expose-gc");
    collect = vm.runInNewContext("gc") as () => void;
    v8.setFlagsFromString("--no-expose-gc");
  }
  // pages with few objects left are emptied and given back too
  v8.setFlagsFromString("--compact-on-every-full-gc");
  collect();
  v8.setFlagsFromString("--no-compact-on-every-full-gc");
}
