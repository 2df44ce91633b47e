/**
 * @file Loops against the grain of memory. A transposition stores along rows and loads along columns: every load of the
 * innermost loop touches another cache line, and by the time the neighbour in that line is wanted it is gone. Cutting the
 * innermost loop into strips and running the strips outermost keeps one strip's lines in cache while the other loops run:
 *
 *   for i: for j < 4096: y[4096 i + j] = x[4096 j + i]
 *   for c < 64: for i: for j < 64: y[4096 i + 64 c + j] = x[4096 (64 c + j) + i]        64 lines are live, not 4096
 *
 * Which elements are computed and how does not change, only when.
 */
import type { Expr, Index, LoopVar } from "../../kernel/expr.ts";
import { walkExpr } from "../../kernel/expr.ts";
import { addIndex, scaleIndex, substitute, varIndex } from "../../kernel/index-math.ts";
import type { Kernel, MapNest, Nest } from "../../kernel/loops.ts";
import { mapIndices } from "../../kernel/rewrite.ts";

/** Elements of a strip: that many cache lines must stay. */
const STRIPS = [64, 48, 32, 80, 96, 40, 56];
/** Rows shorter than this stay in cache anyway. */
const SHORTEST_ROW = 256;

const coefficient = (index: Index, v: LoopVar): number => index.terms.find((t) => t.atom === v)?.coef ?? 0;

/** Whether some load strides over memory in the inner loop and walks it in another. */
function againstTheGrain(nest: MapNest, inner: LoopVar): boolean {
  let found = false;
  const seen = new Set<Expr>();
  for (const store of nest.stores) {
    walkExpr(
      store.value,
      (e) => {
        if (e.kind !== "load" || Math.abs(coefficient(e.index, inner)) < 16) return;
        if (nest.loops.some((v) => v !== inner && Math.abs(coefficient(e.index, v)) === 1)) found = true;
      },
      seen,
    );
  }
  return found;
}

function tileMap(nest: MapNest): MapNest {
  const inner = nest.loops.at(-1);
  if (!inner || inner.extent < SHORTEST_ROW || !againstTheGrain(nest, inner)) return nest;
  const strip = STRIPS.find((n) => inner.extent % n === 0);
  if (!strip) return nest;
  const outer: LoopVar = { kind: "var", name: `${inner.name}c`, extent: inner.extent / strip };
  const short: LoopVar = { kind: "var", name: `${inner.name}s`, extent: strip };
  const position = addIndex(scaleIndex(varIndex(outer), strip), varIndex(short));
  const counter = (v: LoopVar): Index => (v === inner ? position : varIndex(v));
  const expr = (e: Expr): Expr => mapIndices(e, (index, visit) => substitute(index, counter, visit));
  const stores = nest.stores.map((s) => ({ ...s, index: substitute(s.index, counter, expr), value: expr(s.value) }));
  return { ...nest, loops: [outer, ...nest.loops.slice(0, -1), short], stores };
}

/** The same kernel with maps cut into strips where they read across memory. */
export function tileLoops(kernel: Kernel): Kernel {
  return { ...kernel, nests: kernel.nests.map((nest: Nest) => (nest.kind === "map" ? tileMap(nest) : nest)) };
}
