/**
 * @file Maps and reductions whose last axis is short. A register along a row of two elements has two lanes in use; instead the
 * loop around it goes into the lanes, and the short one is written out:
 *
 *   for i < n: for j < 2: y[2 i + j] = x[2 i + j] · a[i]
 *   for i < n: y[2 i] = x[2 i] · a[i], y[2 i + 1] = x[2 i + 1] · a[i]            i in the lanes
 *
 *   for i < n: acc = Σ over r < 3 of x[3 i + r];  y[i] = acc
 *   for i < n: y[i] = ((0 + x[3 i]) + x[3 i + 1]) + x[3 i + 2]
 *
 * Loads and stores that step over memory are then a few registers and shuffles (strided.ts). Elements are computed by the
 * same operations in the same order: a reduction written out is the tree of kernel/loops.ts.
 *
 * This is done as code is emitted and not to the kernel, which planning looks at: that an operand is read only where it is
 * overwritten shows in the short form alone.
 */
import { at, invariant } from "../../base/invariant.ts";
import { laneBytes } from "../../kernel/dtype.ts";
import { call, constant, type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { constIndex, substitute, varIndex } from "../../kernel/index-math.ts";
import { identityOf, type MapNest, type Nest, type ReduceNest, type Store } from "../../kernel/loops.ts";
import { mapIndices } from "../../kernel/rewrite.ts";
import { live, product } from "../units.ts";
import { cutAtDivisions, withDecidedBounds } from "./divided-rows.ts";

/** Elements of a row that are written out, at most: each register of a row of s takes s - 1 shuffles. */
const LONGEST = 8;
/** Expressions of all elements of a row together, at most. */
const MOST_EXPRESSIONS = 1600;

type Values = ReadonlyMap<LoopVar, Index>;

function replaced(expr: Expr, values: Values, acc: Expr | null = null): Expr {
  return mapIndices(expr, (index, visit) => substitute(index, (v) => values.get(v) ?? varIndex(v), visit), acc);
}

const replacedIndex = (index: Index, values: Values): Index =>
  substitute(
    index,
    (v) => values.get(v) ?? varIndex(v),
    (expr) => replaced(expr, values),
  );

/** Every value of some counters, the last one running fastest. */
function valuesOf(counters: readonly LoopVar[]): readonly Values[] {
  return counters.reduce<readonly Values[]>(
    (all, v) =>
      all.flatMap((values) =>
        Array.from({ length: v.extent }, (_, i) => new Map([...values, [v, constIndex(i)] as const])),
      ),
    [new Map()],
  );
}

function expressions(stores: readonly Store[]): number {
  const seen = new Set<Expr>();
  for (const { value } of stores) walkExpr(value, () => undefined, seen);
  return seen.size;
}

/**
 * A short reduction as one expression, in the order of ReduceNest. Combining with the identity changes no value, but for the
 * first term of a sum, which may be -0.
 */
function writtenOut({ reduce, order, combine, dtype, body }: ReduceNest): Expr {
  const joined = (a: Expr, b: Expr): Expr => call(combine, [a, b], dtype);
  const first = (a: Expr): Expr => (combine === "add" ? joined(constant(dtype, identityOf(combine, dtype)), a) : a);
  const group = order === "sequential" ? 1 : groupOf(dtype);
  const last = at(reduce, reduce.length - 1).extent;
  const grouped = last - (last % group);
  const sums = new Map<number, Expr>();
  valuesOf(reduce).forEach((values, i) => {
    const place = i % last;
    // Terms beyond whole groups go to the first accumulator.
    const lane = place < grouped ? place % group : 0;
    const [sum, term] = [sums.get(lane), replaced(body, values)];
    sums.set(lane, sum ? joined(sum, term) : first(term));
  });
  // lane 0 with lane 2, lane 1 with lane 3, then the two sums
  for (let half = group / 2; half >= 1; half /= 2) {
    for (let lane = 0; lane < half; lane++) {
      const [low, high] = [sums.get(lane), sums.get(lane + half)];
      if (high) sums.set(lane, low ? joined(low, high) : high);
    }
  }
  const [sum] = sums.values();
  invariant(sum, () => "a reduction without terms");
  return sum;
}

/** Partial sums that elements beyond whole rounds are added to, group by group; a round is four groups. */
const groupOf = (dtype: ReduceNest["dtype"]): number => 16 / laneBytes(dtype);

/** A short reduction as a map. */
function asMap(nest: ReduceNest): MapNest | null {
  const loops = live(nest.loops);
  const terms = product(nest.reduce);
  const [inner, last] = [loops.at(-1), nest.reduce.at(-1)];
  if (!inner || !last || terms === 0 || terms > LONGEST) return null;
  if (nest.order === "interleaved" && last.extent >= 4 * groupOf(nest.dtype)) return null;
  const acc = writtenOut(nest);
  const stores = nest.stores.map((store) => ({ ...store, value: replaced(store.value, new Map(), acc) }));
  return { kind: "map", loops, stores };
}

const coefficient = (index: Index, v: LoopVar): number => index.terms.find(({ atom }) => atom === v)?.coef ?? 0;

/** A map with its short innermost loops written out, or as it is. */
function withoutShortLoops(nest: MapNest, lanes: number): MapNest {
  const loops = live(nest.loops);
  const short: LoopVar[] = [];
  let elements = 1;
  for (let v = loops.at(-1); v && elements * v.extent <= LONGEST && loops.length > 1; v = loops.at(-1)) {
    elements *= v.extent;
    short.unshift(v);
    loops.pop();
  }
  const across = loops.at(-1);
  if (!across || short.length === 0 || across.extent < lanes || elements % lanes === 0) return nest;
  const values = valuesOf(short);
  // Rows lie one behind the other.
  const isDense = nest.stores.every(
    ({ index }) =>
      coefficient(index, across) === elements &&
      values.every((at, i) => replacedIndex(index, at).offset === index.offset + i),
  );
  if (!isDense || expressions(nest.stores) * elements > MOST_EXPRESSIONS) return nest;
  const stores = values.flatMap((at) =>
    nest.stores.map((store) => ({
      ...store,
      index: replacedIndex(store.index, at),
      value: replaced(store.value, at),
    })),
  );
  return { ...nest, loops, stores };
}

/** A map whose positions are divided along the row, with the remainders written out, or as it is. */
function withoutDivisions(nest: MapNest, lanes: number): MapNest {
  const cut = cutAtDivisions(nest, LONGEST);
  if (!cut) return nest;
  const wide = withoutShortLoops(cut, lanes);
  if (wide === cut) return nest;
  return { ...wide, stores: wide.stores.map((store) => ({ ...store, value: withDecidedBounds(store.value) })) };
}

function longMap(nest: MapNest, lanes: number): MapNest {
  const wide = withoutShortLoops(nest, lanes);
  return wide === nest ? withoutDivisions(nest, lanes) : wide;
}

/** The nest that code is emitted for, where a register has so many lanes. */
export function longRows(nest: Nest, lanes: number): Nest {
  if (nest.kind === "map") return longMap(nest, lanes);
  if (nest.kind !== "reduce" || nest.loops.some((v) => v.extent === 0)) return nest;
  const map = asMap(nest);
  if (!map) return nest;
  const wide = longMap(map, lanes);
  const inner = live(wide.loops).at(-1);
  return inner && inner.extent >= lanes && expressions(wide.stores) <= MOST_EXPRESSIONS ? wide : nest;
}
