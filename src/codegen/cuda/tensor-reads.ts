/** @file What the threads that fill shared memory read of a side of a product: chunks of four elements, of which neighbours are read at once. */
import type { Bound, Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { addIndex, constIndex, divIndex, modIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import { below, countersAt, type Memories, Replacement } from "../block/counters.ts";
import { type Statement, storing, where } from "../block/program.ts";
import type { TensorMap } from "./copied-maps.ts";
import { type TensorPlan, TILE_DEPTH } from "./tensor-plan.ts";
import type { SideAccess } from "./tensor-side.ts";

export interface Side extends SideAccess {
  readonly expr: Expr;
  readonly along: LoopVar;
  readonly tile: LoopVar;
  /** Rows of the side in a tile. */
  readonly length: number;
  /** A producer's elements. */
  readonly own: number;
  /** Bytes from a stage's start. */
  readonly start: number;
  /** What the copy engine brings of it. */
  readonly across: TensorMap | null;
}

/** The product and the counters of its launch. */
interface Reading {
  readonly nest: ContractNest;
  readonly plan: TensorPlan;
  readonly memories: Memories;
  readonly part: LoopVar;
  /** The step whose elements are read. */
  readonly next: LoopVar;
  readonly producer: LoopVar;
}

export class SideReads {
  readonly #of: Reading;

  constructor(of: Reading) {
    this.#of = of;
  }

  /** Chunk i of a producer: its row in the tile, and the first of its place along the depth. */
  #place({ deep }: Side, i: number): { readonly row: Index; readonly depth: Index } {
    const [id, { producers }] = [varIndex(this.#of.producer), this.#of.plan];
    if (deep) {
      const row = addIndex(divIndex(id, 8), constIndex(i * (producers / 8)));
      return { row, depth: scaleIndex(modIndex(id, 8), 4) };
    }
    const [warp, lane] = [divIndex(id, 32), modIndex(id, 32)];
    const span = (producers / 32) * 16;
    return {
      row: addIndex(
        scaleIndex(divIndex(warp, 2), 32),
        scaleIndex(modIndex(lane, 8), 4),
        constIndex(Math.floor(i / 4) * span),
      ),
      depth: addIndex(scaleIndex(modIndex(warp, 2), 16), scaleIndex(divIndex(lane, 8), 4), constIndex(i % 4)),
    };
  }

  /** Where element c of a chunk is in the nest, and that it is there at all. */
  #element(side: Side, i: number, c: number): { readonly at: Replacement; readonly bounds: readonly Bound[] } {
    const { row, depth } = this.#place(side, i);
    const here = side.deep ? row : addIndex(row, constIndex(c));
    const position = addIndex(scaleIndex(varIndex(side.tile), side.length), here);
    const { partSteps } = this.#of.plan;
    const steps = addIndex(scaleIndex(varIndex(this.#of.part), partSteps), varIndex(this.#of.next));
    const along = addIndex(scaleIndex(steps, TILE_DEPTH), side.deep ? addIndex(depth, constIndex(c)) : depth);
    const counters = countersAt(this.#of.nest.split ?? [this.#of.nest.depth], along);
    return {
      at: new Replacement(new Map([[side.along, position], ...counters])),
      bounds: [
        ...below(here, side.length),
        ...below(position, side.along.extent),
        ...below(along, this.#of.nest.depth.extent),
      ],
    };
  }

  fetch(side: Side): readonly Statement[] {
    const chunks = (this.#of.memories.list[side.own]?.elements ?? 0) / 4;
    return Array.from({ length: chunks }, (_, i) => this.#chunk(side, i)).flat();
  }

  #chunk(side: Side, i: number): readonly Statement[] {
    const zero: Expr = { kind: "const", dtype: "f32", value: 0 };
    const own = (c: number): Index => constIndex(4 * i + c);
    if (side.vector && side.expr.kind === "load") {
      const { at: replaced, bounds } = this.#element(side, i, 0);
      const from = { operand: side.expr.operand, index: replaced.index(side.expr.index) };
      const zeros = [0, 1, 2, 3].map((c) => ({ operand: side.own, index: own(c), value: zero }));
      const read: Statement = { kind: "copy", to: { operand: side.own, index: own(0) }, from, count: 4 };
      return [...(bounds.length > 0 ? [storing(...zeros)] : []), ...where(bounds, [read])];
    }
    return [0, 1, 2, 3].map((c) => {
      const { at: replaced, bounds } = this.#element(side, i, c);
      const then = replaced.expr(side.expr);
      const value: Expr = bounds.length === 0 ? then : { kind: "guard", dtype: "f32", bounds, then, otherwise: zero };
      return storing({ operand: side.own, index: own(c), value });
    });
  }
}
