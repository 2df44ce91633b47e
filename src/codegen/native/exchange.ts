/**
 * @file Collectives as C. A program calls a table of functions (`Communicator`) that the host hands to it before it runs (node/mpi), so
 * its text and its object depend on no version of MPI and on no header of it:
 *
 *   program   static const Exchange tide_exchange_0 = { all_reduce, f32, add, 1024, … };
 *             if (TAKE_FIRST()) { mpi->start(&tide_exchange_0, groups[0], A + 4096, A + 4096, -1); DONE_ALL(); }
 *
 * Only the first thread calls MPI: it is the one that began it. A collective that is done when its call returns, and the wait of one in
 * flight, are pieces of that thread which the others wait for. A start and a test are not waited for: the first thread comes to
 * them when everything before them is done, and until the wait no step touches what is in flight.
 */
import { TidemarkError } from "../../base/errors.ts";
import { invariant } from "../../base/invariant.ts";
import type { CollectiveNest } from "../../kernel/collective.ts";
import { type DeviceGroup, groupSize, groupText } from "../../kernel/device-group.ts";
import { bytesOf, DTYPES, type DType } from "../../kernel/dtype.ts";
import type { Kernel, Nest } from "../../kernel/loops.ts";
import { isTransfer, type PlacedProgram, statementsOf, stepPlaces } from "../placed.ts";
import { callOf, type Statement } from "../script.ts";
import { MOST_PIECES, type Units } from "../units.ts";
import { fileName } from "./names.ts";

/** Numbers of kinds, types and combinations in C, the same for programs and for the library that calls MPI. */
const KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute", "broadcast"] as const;
const numberOf = (dtype: DType): number => DTYPES.indexOf(dtype);
const COMBINES = ["add", "max"] as const;

/** What a call is told in numbers, up to the pairs and with their count. */
export const exchangeNumbers = ({
  what,
  storage,
  combine,
  root,
  pairs,
}: Pick<CollectiveNest, "what" | "storage" | "combine" | "root" | "pairs">): readonly number[] => [
  (KINDS as readonly string[]).indexOf(what),
  numberOf(storage),
  COMBINES.indexOf(combine),
  root,
  pairs.length,
];

/** The most elements of one message: MPI counts in an int. */
const MOST_ELEMENTS = 2 ** 31 - 1;

/** What a call is told, and the functions that are called. */
export const EXCHANGE_TYPES = `enum { ${KINDS.map((kind, i) => `EXCHANGE_${kind.toUpperCase()} = ${i}`).join(", ")} };
enum { ${DTYPES.map((type) => `TYPE_${type.toUpperCase()} = ${numberOf(type)}`).join(", ")} };
enum { ${COMBINES.map((combine, i) => `COMBINE_${combine.toUpperCase()} = ${i}`).join(", ")} };
/* Elements of one part; pairs of numbers of devices in the group, from and to; what it is, for messages. */
typedef struct { int kind, type, combine, root; int64_t elements; int pairs; const int *pair; const char *name; } Exchange;
typedef struct {
  /* Slot -1: it is done when the call returns. */
  void (*start)(const Exchange *what, int group, unsigned char *to, const unsigned char *from, int slot);
  void (*wait)(int slot);
  void (*test)(void);
  int (*index)(int group);
} Communicator;
`;

const TEXT = `${EXCHANGE_TYPES}static const Communicator *mpi;
static int groups[GROUPS];
/* The functions of the host, and its numbers of the groups that the program names. */
void tidemark_mpi_open(const Communicator *functions, const int *numbers) {
  mpi = functions;
  memcpy(groups, numbers, sizeof groups);
}
#if THREADS == 1
#define TAKE_FIRST() 1
#else
/* One piece, of the first thread and no other. */
static int take_first(Team *team, u32 call, int thread) {
  if (atomic_load_explicit(&team->turn, memory_order_acquire) != call) return 0;
  if (thread == 0) return take(team, call, 0);
  wait_while(team, &team->turn, call);
  return 0;
}
#define TAKE_FIRST() take_first(team, *call, thread)
#endif
/* A long call while something is in flight: after each piece of its own the first thread lets that make progress. */
#if THREADS == 1
#define SHARE_TESTED(units, grain, pieces, fn, ...) do { \\
  const idx grains_ = ((units) + (grain) - 1) / (grain); \\
  for (int p_ = 0; p_ < (pieces); p_++) { \\
    const idx lo_ = grains_ * p_ / (pieces) * (grain); \\
    const idx hi_ = p_ == (pieces) - 1 ? (units) : grains_ * (p_ + 1) / (pieces) * (grain); \\
    if (lo_ < hi_) fn(lo_, hi_, thread, __VA_ARGS__); \\
    mpi->test(); \\
  } \\
} while (0)
#else
#define TESTED(lo, hi, thread, fn, ...) (fn(lo, hi, thread, __VA_ARGS__), thread == 0 ? mpi->test() : (void)0)
#define SHARE_TESTED(units, grain, pieces, fn, ...) SHARE(units, grain, pieces, TESTED, fn, __VA_ARGS__)
#endif
`;

/**
 * Scalar operations between two calls of the library, roughly a millisecond of them. A product packs its shared side again for every
 * piece: its pieces are larger.
 */
export const TESTED_WORK = 5e7;
const TESTED_PRODUCT = 4e8;

/** Throws for more than MPI counts. */
export function requireMessage({ what, group, elements }: Pick<CollectiveNest, "what" | "group" | "elements">): void {
  if (elements <= MOST_ELEMENTS) return;
  const summary = `${what} over ${groupText(group)} has parts of ${elements} elements, and MPI counts to ${MOST_ELEMENTS}`;
  throw new TidemarkError("TargetUnsupported", summary, { help: "exchange it in several pieces" });
}

/** Into how many pieces a call is cut while something is in flight. */
export function testedPieces({ kind }: Nest, work: number, { count, grain }: Units, each?: number): number {
  const least = each ?? (kind === "contract" ? TESTED_PRODUCT : TESTED_WORK);
  return Math.max(1, Math.min(MOST_PIECES, Math.floor(work / least), Math.ceil(count / grain)));
}

/** Lines by which the host finds the groups of a program in its text. */
const GROUP_LINE = /^\/\/ group: (.*)$/gm;

/** The groups that a program's collectives are over, in the order of their numbers; none for most programs. */
export const groupsIn = (text: string): readonly DeviceGroup[] =>
  [...text.matchAll(GROUP_LINE)].map(([, line = ""]) => JSON.parse(line) as DeviceGroup);

/** Calls that exchange something, in the order in which they are written. */
const callsIn = (statements: readonly Statement[]): number =>
  statements.reduce((sum, statement) => {
    if (statement.kind === "while") return sum + callsIn(statement.body);
    if (statement.kind === "if") return sum + callsIn(statement.then) + callsIn(statement.else);
    const call = callOf(statement);
    return call && isExchanged(call.kernel) ? sum + 1 : sum;
  }, 0);

function isExchanged({ nests: [nest] }: Kernel): boolean {
  return nest?.kind === "collective" && nest.what !== "device_index" && groupSize(nest.group) > 1;
}

/** Where each collective of a program is, by its number: the step, and the user's line. */
export function exchangePlaces(placed: PlacedProgram): readonly string[] {
  const exchanging = placed.kernels.filter((step) => !isTransfer(step) && callsIn(statementsOf(step, "native")) > 0);
  if (exchanging.length === 0) return [];
  const places = stepPlaces(placed);
  return exchanging.flatMap((step) =>
    Array.from({ length: callsIn(statementsOf(step, "native")) }, () => places.get(step) ?? ""),
  );
}

/** A collective over one device, as a call of any thread; null where there are others. */
export function aloneCall(nest: CollectiveNest, to: string, from: string | null): string | null {
  if (groupSize(nest.group) > 1) return null;
  if (from === null) return `*(i32 *)${to} = 0;`;
  const bytes = nest.elements * bytesOf(nest.storage);
  const isSent = nest.what !== "permute" || nest.pairs.length > 0;
  return isSent ? `memmove(${to}, ${from}, ${bytes});` : `memset(${to}, 0, ${bytes});`;
}

/** The collectives of a program. */
export class Exchanges {
  readonly #groups: string[] = [];
  readonly #descriptions: string[] = [];

  get isEmpty(): boolean {
    return this.#groups.length === 0;
  }

  #number({ mesh, over }: DeviceGroup): number {
    const text = JSON.stringify({ mesh, over });
    const known = this.#groups.indexOf(text);
    return known >= 0 ? known : this.#groups.push(text) - 1;
  }

  /** A call with the addresses of its operands; `slot`: it is in flight until the slot is waited for. */
  call(nest: CollectiveNest, to: string, from: string | null, slot = -1): string {
    const { what, group } = nest;
    if (what === "device_index") return `*(i32 *)${to} = mpi->index(${this.#numbered(group)});`;
    return `mpi->start(&${this.#describe(nest)}, ${this.#numbered(group)}, ${to}, ${from}, ${slot});`;
  }

  #numbered(group: DeviceGroup): string {
    return `groups[${this.#number(group)}]`;
  }

  #describe(nest: CollectiveNest): string {
    const { what, group, storage, pairs, elements } = nest;
    invariant(what !== "device_index", () => "a number is not exchanged");
    requireMessage(nest);
    const name = fileName(`exchange_${this.#descriptions.length}`);
    const list = pairs.flat();
    const [kind, type, combine, root, count] = exchangeNumbers(nest);
    const fields = [kind, type, combine, root, elements, count];
    const pair = list.length === 0 ? "0" : `(const int[]){ ${list.join(", ")} }`;
    const label = `${this.#descriptions.length}: ${what} of ${elements} ${storage} over ${groupText(group)}`;
    this.#descriptions.push(
      `static const Exchange ${name} = { ${fields.join(", ")}, ${pair}, ${JSON.stringify(label)} };\n`,
    );
    return name;
  }

  /** Before the calls, after the threads; empty where nothing is exchanged. */
  text(): string {
    if (this.isEmpty) return "";
    const groups = this.#groups.map((group) => `// group: ${group}\n`).join("");
    return `${groups}#define GROUPS ${this.#groups.length}\n${TEXT}${this.#descriptions.join("")}`;
  }
}
