/**
 * @file Packs panels of the vector side of a product: [depth][lane], in any way that contract-plan.ts may choose. The panels
 * serve tiles of a product (contract-packing.ts) or weights that are transformed first (winograd.ts).
 */
import { at } from "../../base/invariant.ts";
import type { LoopVar } from "../../kernel/expr.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import { type Access, indexOf } from "./contract-access.ts";
import { eachDepth, type Fill, fillRowMajor } from "./contract-fill.ts";
import type { ProductPlan } from "./contract-plan.ts";
import { fillLanes } from "./contract-window.ts";
import type { VectorEmitter } from "./emitter.ts";
import type { DepthStep } from "./gemm-micro.ts";
import { packTransposedName } from "./gemm-pack.ts";

/** The part of a plan that its panels depend on. */
export type PanelPlan = Pick<ProductPlan, "dtype" | "lanes" | "vector" | "vectorExpr" | "v" | "run">;

/** A side that is read in place, and its step along the depth. */
interface DirectSide {
  readonly access: Access;
  readonly step: DepthStep;
}

/** In C: `col0` is the panel's first lane, `w_rows` and `vAt` are workspace. */
export class PanelPacking<Plan extends PanelPlan> {
  readonly em: VectorEmitter;
  readonly nest: ContractNest;
  readonly plan: Plan;

  constructor(em: VectorEmitter, nest: ContractNest, plan: Plan) {
    this.em = em;
    this.nest = nest;
    this.plan = plan;
  }

  /** The position in the depth of each element of a stretch of memory. */
  permutation(): void {
    const { em, nest, plan } = this;
    const { v } = plan;
    if (v.kind !== "permuted") return;
    const { first, count, length, stride } = v.stretches;
    em.code.line(`memset(vAt, -1, ${count * length} * sizeof(int));`);
    em.block("", () =>
      eachDepth(em, nest, { begin: "0", end: String(nest.depth.extent) }, (position) => {
        em.code.line(`const idx g = ${em.index(indexOf(v.access.depth), em.all)} - (${first});`);
        em.code.line(`vAt[${count === 1 ? "g" : `g / ${stride} * ${length} + g % ${stride}`}] = (int)${position};`);
      }),
    );
  }

  /** A loop over the runs of the depth, [pc, pEnd), or over the parts of them that have terms. */
  runs(body: () => void): void {
    const { em } = this;
    const [depth, run] = [this.nest.depth.extent, this.plan.run];
    if (!this.nest.span) {
      em.block(`for (idx pc = 0; pc == 0 || pc < ${depth}; pc += ${run})`, () => {
        em.code.line(`const idx pEnd = pc + ${run} < ${depth} ? pc + ${run} : ${depth};`);
        body();
      });
      return;
    }
    em.block(`for (idx run = 0; run == 0 || run < ${depth}; run += ${run})`, () => {
      const end = `(run + ${run} < ${depth} ? run + ${run} : ${depth})`;
      em.code.line(`idx pc = run < spanFrom ? spanFrom : run, pEnd = ${end} < spanTo ? ${end} : spanTo;`);
      em.code.line(`if (pc >= pEnd) pc = pEnd = run;`);
      // A run without terms writes the zeros that others are added to, or ends a block of partial sums.
      em.code.line(`if (pc == pEnd && run > 0 && run + ${run} < ${depth}) continue;`);
      body();
    });
  }

  /** The part of the depth that has terms, where it is data; batch counters have names. */
  span(): void {
    const { em, nest } = this;
    if (!nest.span) return;
    em.code.line(`const idx spanFrom = ${em.index(nest.span.from, em.all)};`);
    em.code.line(`const idx spanTo = ${em.index(nest.span.to, em.all)};`);
  }

  /** In C: the run is not the first, so that its sums are added to those before. */
  get afterFirst(): string {
    return this.nest.span ? "run > 0" : "pc > 0";
  }

  /** Address of the first element of a side that is read in place, at the start of the run. */
  place({ access, step }: DirectSide, v: LoopVar, counter: string, base?: string): string {
    const { em } = this;
    em.vars.set(v, counter);
    const index = em.index(indexOf([...access.rest, ...access.lane]), em.all);
    const along = step === "table" ? "" : ` + pc * ${step}`;
    return `${base ?? em.pointer(access.load.operand, access.load.index.offset)} + (${index})${along}`;
  }

  packPanel(width: number, lanes: number, to: string): void {
    const { em, nest, plan } = this;
    const { v, dtype } = plan;
    const end = this.operandEnd();
    const emitTranspose = (from: string, stride: number, depth: string, table: string): void =>
      em.code.line(
        `${packTransposedName(dtype)}(${from}, ${stride}, ${lanes}, ${depth}, ${to}, ${width}, ${table}, ${end});`,
      );
    if (v.kind === "transposed") {
      emitTranspose(this.place(v, plan.vector, "col0"), v.stride, "pEnd - pc", "0");
      return;
    }
    if (v.kind === "permuted") {
      const { first, count, length, stride } = v.stretches;
      const from = `${this.place({ access: v.access, step: "table" }, plan.vector, "col0")} + ${first}`;
      em.block(`for (idx g = 0; g < ${count}; g++)`, () =>
        emitTranspose(`${from} + g * ${stride}`, v.stride, String(length), `vAt + g * ${length}`),
      );
      return;
    }
    const transposed = v.kind === "computed-transposed";
    const fill: Fill = {
      nest,
      expr: plan.vectorExpr,
      lane: plan.vector,
      from: "col0",
      to: `col0 + ${lanes}`,
      left: lanes % em.lanes,
      begin: "pc",
      end: "pEnd",
      dst: transposed ? "w_rows" : to,
      stride: transposed ? v.stride : width,
    };
    em.block("", () => (transposed ? fillRowMajor(em, fill) : fillLanes(em, fill)));
    if (transposed) emitTranspose("w_rows", v.stride, "pEnd - pc", "0");
  }

  /** Where memory ends that a transposition may read beyond a stretch: of the vector side's operand, if it is read in place. */
  operandEnd(): string {
    const { v } = this.plan;
    if (v.kind !== "transposed" && v.kind !== "permuted") return "0";
    const { operand, index } = v.access.load;
    return `${this.em.pointer(operand, index.offset)} + ${at(this.em.operands, operand).elements - index.offset}`;
  }
}
