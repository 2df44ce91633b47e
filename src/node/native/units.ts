/**
 * @file A program's C text as units of compilation. Each function of it gets a key, the digest of all that its code depends on,
 * and a symbol of that key; so a unit can hold any functions, of this program or of earlier ones, and linking joins them:
 *
 *   program.c   calls tide_kernel_4        →   #define tide_kernel_4 tide_9f3c…_0
 *   unit.c      defines tide_kernel_4      →   #define tide_kernel_4 tide_9f3c…_0
 *
 * A function may be in several units that are linked together: it is weak, and all of them are equal.
 */
import { at } from "../../base/invariant.ts";
import { type Section, sectionsOf } from "../../codegen/native/sections.ts";
import { digest, type Level } from "./compiler.ts";

/** One section of functions. */
export interface LinkedFunction {
  /** Digest of its text and of everything that it uses, of compiler, flags and level. */
  readonly key: string;
  readonly level: Level;
  /** The time to compile it, in bytes of text at the full level. */
  readonly weight: number;
  /** Its position among the sections. */
  readonly section: number;
}

export interface Unit {
  readonly level: Level;
  readonly functions: readonly LinkedFunction[];
}

const NAMES = /\btide_\w+/g;
const HEADS = /^FUNCTION ([^{]+?(tide_\w+)\([^{]*?) \{/gm;
/** The time to compile a rare function, relative to others. */
const RARE_WEIGHT = 0.7;
/** Bytes of rare functions from which on they are worth a unit: to begin one takes as long as compiling a third of these. */
export const LEAST_RARE = 60_000;

/** What one section uses of others, all levels of it, in order. */
interface Use {
  readonly direct: readonly number[];
  readonly all: readonly number[];
}

/** Which sections each section uses: those where its names come up first. */
function usesOf(sections: readonly Section[]): readonly Use[] {
  const origin = new Map<string, number>();
  const uses: Use[] = [];
  sections.forEach(({ text }, i) => {
    const direct = new Set<number>();
    for (const [name] of text.matchAll(NAMES)) {
      const from = origin.get(name);
      if (from === undefined) origin.set(name, i);
      else if (from !== i) direct.add(from);
    }
    const all = new Set([...direct].flatMap((from) => [...at(uses, from).all, from]));
    uses.push({ direct: [...direct], all: [...all].sort((a, b) => a - b) });
  });
  return uses;
}

interface Declared {
  /** Its name in the text. */
  readonly name: string;
  /** Result, name and parameters. */
  readonly head: string;
  readonly symbol: string;
}

/** The text of a program, cut at its functions. */
export class LinkedProgram {
  readonly #sections: readonly Section[];
  readonly #uses: readonly Use[];
  readonly #declared: readonly (readonly Declared[])[];
  readonly functions: readonly LinkedFunction[];

  /** @param identity what a compiled file depends on besides its text */
  constructor(text: string, identity: string) {
    const sections = sectionsOf(text);
    const uses = usesOf(sections);
    const top = sections.flatMap(({ kind, text: own }) => (kind === "types" || kind === "registers" ? [own] : []));
    const base = digest(identity, ...top);
    const keys: string[] = [];
    const declared: (readonly Declared[])[] = [];
    const functions: LinkedFunction[] = [];
    const rareBytes = sections.reduce((sum, { rare, text: own }) => sum + (rare ? own.length : 0), 0);
    sections.forEach(({ kind, rare, text: own }, section) => {
      const level: Level = rare && rareBytes >= LEAST_RARE ? "rare" : "full";
      const heads = kind === "function" ? [...own.matchAll(HEADS)] : [];
      // A function is the same under any name.
      const numbers = new Map(heads.map(([, , name = ""], i) => [name, i]));
      const nameless = own.replace(NAMES, (name) => (numbers.has(name) ? `tide_${numbers.get(name)}` : name));
      const used = at(uses, section).direct.map((from) => at(keys, from));
      const key = digest(base, level, nameless, ...used);
      keys.push(key);
      declared.push(heads.map(([, head = "", name = ""], i) => ({ name, head, symbol: `tide_${key}_${i}` })));
      if (kind !== "function") return;
      functions.push({ key, level, weight: own.length * (level === "rare" ? RARE_WEIGHT : 1), section });
    });
    this.#sections = sections;
    this.#uses = uses;
    this.#declared = declared;
    this.functions = functions;
  }

  #joined(kinds: readonly Section["kind"][], among?: ReadonlySet<number>): string {
    const wanted = this.#sections.filter(({ kind }, i) => kinds.includes(kind) && (!among || among.has(i)));
    return wanted.map(({ text }) => text).join("");
  }

  /** Symbols for names, and declarations of what is not `defined` here. */
  #header(used: readonly number[], defined: ReadonlySet<number>): { readonly symbols: string; readonly heads: string } {
    const functions = used.filter((i) => at(this.#sections, i).kind === "function");
    const symbols = functions.flatMap((i) =>
      at(this.#declared, i).map(({ name, symbol }) => `#define ${name} ${symbol}\n`),
    );
    const others = functions.filter((i) => !defined.has(i)).flatMap((i) => at(this.#declared, i));
    const heads = others.map(({ head }) => `__attribute__((visibility("hidden"))) ${head};\n`);
    return { symbols: symbols.join(""), heads: heads.join("") };
  }

  /** A unit of some of the functions. */
  unitText({ functions }: Unit): string {
    const members = new Set(functions.map(({ section }) => section));
    const all = new Set([...members, ...[...members].flatMap((i) => at(this.#uses, i).all)]);
    const { symbols, heads } = this.#header(
      [...all].sort((a, b) => a - b),
      members,
    );
    return [
      '#define FUNCTION __attribute__((noinline, weak, visibility("hidden")))\n',
      symbols,
      this.#joined(["types", "registers"]),
      this.#joined(["inline"], all),
      heads,
      this.#joined(["function"], members),
    ].join("");
  }

  /** The rest of the program, which calls the functions. */
  get programText(): string {
    const own = this.#sections.flatMap(({ kind }, i) => (kind === "program" ? at(this.#uses, i).direct : []));
    const { symbols, heads } = this.#header([...new Set(own)], new Set());
    return [symbols, this.#joined(["types"]), heads, this.#joined(["program"])].join("");
  }
}

/** Bytes of text below which another compiler beside the first one gains nothing: what every unit takes to begin. */
const LEAST_LANE = 30_000;

/**
 * Units of functions for compilers that work side by side: a list for each, of about the same time. Rare functions go to as few of
 * them as possible, since another level is another unit.
 */
export function lanesOf(functions: readonly LinkedFunction[], compilers: number): readonly (readonly Unit[])[] {
  const total = functions.reduce((sum, { weight }) => sum + weight, 0);
  const count = Math.max(1, Math.min(compilers, Math.round(total / LEAST_LANE)));
  const lanes = Array.from({ length: count }, () => ({ load: 0, members: [] as LinkedFunction[] }));
  const put = (lane: (typeof lanes)[number], fn: LinkedFunction): void => {
    lane.members.push(fn);
    lane.load += fn.weight;
  };
  let first = 0;
  for (const fn of functions.filter(({ level }) => level === "rare")) {
    if (at(lanes, first).load + fn.weight > total / count && first + 1 < count) first += 1;
    put(at(lanes, first), fn);
  }
  const others = functions.filter(({ level }) => level === "full").sort((a, b) => b.weight - a.weight);
  for (const fn of others)
    put(
      lanes.reduce((least, lane) => (lane.load < least.load ? lane : least)),
      fn,
    );
  return lanes.map(({ members }) =>
    (["full", "rare"] as const)
      .map((level): Unit => {
        const own = members.filter((fn) => fn.level === level).sort((a, b) => a.section - b.section);
        return { level, functions: own };
      })
      .filter((unit) => unit.functions.length > 0),
  );
}
