/**
 * @file The hard core of a problem: the few items that are both large and long. Where they go decides how high a placement
 * is, and the exact method places them well when it does not have to bother with the rest, thousands of small or short
 * items, which repair fits in afterwards. A core is a problem of its own, with fewer sections.
 */
import { at } from "../../base/invariant.ts";
import type { Problem } from "../problem.ts";
import { Branch } from "./branch.ts";
import { type Keys, keysOf } from "./keys.ts";
import type { Random } from "./random.ts";
import { type Sections, sectionsOf } from "./sections.ts";

const MEMORY = 1 << 16;
const NOISE = 0.1;

export class Core {
  readonly #whole: Sections;
  readonly #sections: Sections;
  readonly #branch: Branch;
  readonly #keys: Keys;
  readonly #random: Random;
  #runs = 0;

  /** The core that the given items of `whole`, the sections of `problem`, make up. */
  constructor(problem: Problem, whole: Sections, items: readonly number[], random: Random) {
    const ids = new Set(items.map((i) => whole.ids[i] as number));
    this.#whole = whole;
    this.#sections = sectionsOf({ ...problem, buffers: problem.buffers.filter((b) => ids.has(b.id)) });
    this.#branch = new Branch(this.#sections, MEMORY);
    this.#keys = keysOf(this.#sections);
    this.#random = random;
  }

  get nodes(): number {
    return this.#branch.nodes;
  }

  /** Work of all runs, as search counts it. */
  get work(): number {
    return this.nodes * (this.#sections.n + this.#sections.count);
  }

  /** One run at a height in units of the whole: offsets of the core's items in those units, by buffer. */
  place(limit: number, nodes: number, late: () => boolean): ReadonlyMap<number, number> | null {
    const { ids, unit, ground, grounded } = this.#sections;
    const key = at(this.#keys, this.#runs % this.#keys.length).of;
    const noise = this.#runs < this.#keys.length ? 0 : NOISE;
    this.#runs += 1;
    for (let i = 0; i < key.length; i++) {
      this.#branch.priority[i] = (key[i] as number) + noise * (this.#random() + this.#random() - 1);
    }
    // heights and offsets of the whole count from its ground, those of the core from its own, on top of that
    const room = Math.floor((limit * this.#whole.unit - ground) / unit);
    if (room < 0 || this.#branch.run(room, nodes, late) !== "found") return null;
    const offsets = new Map<number, number>();
    for (const [id, bytes] of grounded) offsets.set(id, bytes / this.#whole.unit);
    ids.forEach((id, i) => {
      offsets.set(id, ((this.#branch.stock.offset[i] as number) * unit + ground) / this.#whole.unit);
    });
    return offsets;
  }
}
