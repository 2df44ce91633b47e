/**
 * @file Where the processes of a run agree. Each gives a text, and all get those of all, in the order of ranks. What one of them could not
 * do becomes an error on all: the one that failed throws its own, the others one that names it.
 *
 *   rank 0   give() ─→ "12"     ─╮            ╭─→ ["12", "7", …]
 *   rank 1   give() ─→ "7"      ─┼─ exchange ─┤
 *   rank 2   give() ─✕ no space ─╯            ╰─→ or: rank 2 of 3 failed: cannot write …: the disk is full
 *
 * So after an error at a meeting no process waits for one that is gone.
 */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";

/** The processes of a run, as one of them sees them. */
export interface Ranks {
  readonly rank: number;
  readonly size: number;
  /** The texts of all, in the order of ranks; returns when all have given theirs. */
  exchange(own: string): Promise<readonly string[]>;
  /** This process alone has failed: all end, at the latest when this one goes on to what the others will not come to. */
  fail(error: Error): void;
}

/** One process. */
export const ALONE: Ranks = { rank: 0, size: 1, exchange: async (own) => [own], fail: () => undefined };

/** What a process says: a text, or why there is none. */
interface Said {
  readonly text?: string;
  readonly failed?: Failed;
}

/** An error as text. One that says which device failed is the same on all ranks. */
interface Failed {
  readonly summary: string;
  readonly where?: string | undefined;
  readonly help?: string | undefined;
  readonly isNamed: boolean;
}

function failedOf(error: unknown): Failed {
  if (!(error instanceof TidemarkError)) return { summary: String(error), isNamed: false };
  const { code, summary, where, help } = error;
  const isNamed = code === "DeviceFailed";
  return { summary: isNamed ? summary : `${code}: ${summary}`, where, help, isNamed };
}

export class Meeting {
  readonly #ranks: Ranks;
  readonly #onAll = new WeakSet<object>();

  constructor(ranks: Ranks) {
    this.#ranks = ranks;
  }

  get rank(): number {
    return this.#ranks.rank;
  }

  get size(): number {
    return this.#ranks.size;
  }

  /** What each rank gives, on all of them; throws on all where one fails. */
  async all(give: () => string | Promise<string>): Promise<readonly string[]> {
    let own: Said;
    let thrown: unknown = null;
    try {
      own = { text: await give() };
    } catch (error) {
      thrown = error;
      own = { failed: failedOf(error) };
    }
    const said = (await this.#ranks.exchange(JSON.stringify(own))).map((text) => JSON.parse(text) as Said);
    const first = said.findIndex(({ failed }) => failed);
    if (first < 0) return said.map(({ text }) => text ?? "");
    const error = own.failed ? thrown : this.#errorOf(said, first);
    if (typeof error === "object" && error !== null) this.#onAll.add(error);
    throw error;
  }

  /** Whether an error is of a meeting: every rank has one, and is at the same place. */
  isOnAll(error: unknown): boolean {
    return typeof error === "object" && error !== null && this.#onAll.has(error);
  }

  #errorOf(said: readonly Said[], first: number): TidemarkError {
    const { summary, where, help, isNamed } = at(said, first).failed as Failed;
    const named = isNamed ? summary : `rank ${first} of ${this.size} failed: ${summary}`;
    return new TidemarkError("DeviceFailed", named, { where, help });
  }

  /** What rank 0 gives, on all. */
  async fromFirst(give: () => string | Promise<string>): Promise<string> {
    return at(await this.all(() => (this.rank === 0 ? give() : "")), 0);
  }
}
