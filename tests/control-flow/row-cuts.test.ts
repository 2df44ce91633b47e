/**
 * @file Which rows a loop keeps for its reverse: at every price the cut is the best of all choices, by trying them, and a
 * loop with other rows between it and its reverse computes the same bits.
 */
import { describe, expect, it } from "vitest";
import { grad, matmul, scan, type Tensor, tensor } from "../../src/api/index.ts";
import { at } from "../../src/base/invariant.ts";
import { hostRandom } from "../../src/base/random.ts";
import { evaluate } from "../../src/ir/evaluate.ts";
import type { Graph, Node, Value } from "../../src/ir/graph.ts";
import { byteLength } from "../../src/ir/type.ts";
import { violations } from "../../src/ir/verify.ts";
import { producersOf } from "../../src/ir/walk.ts";
import { cutPair } from "../../src/loops/cut-pair.ts";
import { findPairs, type LoopPair, rowsOf } from "../../src/loops/pairs.ts";
import { rewindLoops } from "../../src/loops/rewrite.ts";
import { type RowCut, rowCut } from "../../src/loops/row-cut.ts";
import { pipeline, runPasses } from "../../src/passes/pipeline.ts";
import { type AnyFunction, traceFunction } from "../../src/trace/function.ts";

type Params = Readonly<Record<string, Tensor>>;

/** A loop whose turn is a few operations, drawn at random; two states, one of them handed on as it was computed. */
const drawn =
  (seed: number) =>
  ({ w, h, xs }: Params): Tensor => {
    const next = hostRandom(seed);
    const pick = (n: number): number => Math.floor(next.next() * n);
    const ops: readonly ((a: Tensor, b: Tensor) => Tensor)[] = [
      (a) => a.tanh(),
      (a) => a.sigmoid(),
      (a, b) => a.mul(b),
      (a, b) => a.add(b).sin(),
      (a) => matmul(a, w as Tensor),
      (a, b) => a.sub(b).exp().mul(0.1),
    ];
    const plan = Array.from({ length: 5 }, () => [pick(ops.length), pick(99), pick(99)] as const);
    const [last] = scan<readonly [Tensor, Tensor], Tensor, Tensor>(
      ([a, b], x) => {
        const values = [a, b, x];
        for (const [op, i, j] of plan) {
          values.push(at(ops, op)(at(values, i % values.length), at(values, j % values.length)));
        }
        const made = at(values, values.length - 1);
        return [[made.add(a).tanh(), at(values, 3).mul(0.5)] as const, x.sum()];
      },
      [h as Tensor, (h as Tensor).mul(2)],
      xs as Tensor,
    );
    return last[0].square().sum().add(last[1].sum());
  };

function draw(shape: readonly number[], seed: number): Tensor {
  const next = hostRandom(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  return tensor(Float64Array.from({ length: n }, () => next.next() - 0.5)).reshape(shape);
}

const P: Params = { w: draw([3, 3], 1), h: draw([2, 3], 2), xs: draw([6, 2, 3], 3) };

function pairFor(seed: number): { readonly graph: Graph; readonly pair: LoopPair } | null {
  const fn = (p: Params): unknown => grad(drawn(seed))(p);
  const graph = runPasses(traceFunction(fn as AnyFunction, [P]).graph, pipeline);
  const pair = findPairs(graph)[0];
  return pair ? { graph, pair } : null;
}

/** Times that do not depend on sizes, so that choices differ. */
const msOfNode = ({ op }: Node): number =>
  (({ map: 2, contract: 20 }) as Readonly<Record<string, number>>)[op.lower.kind] ?? 5;

/** What a set of nodes that run again costs, with the rows that it needs; null where something is missing. */
function costOf({ forwardParts, stacks, length }: LoopPair, again: ReadonlySet<Node>, price: number): number {
  const { body, carries } = forwardParts;
  const producer = producersOf(body);
  const given = new Set(body.params.filter((_, i) => i === 0 || i > carries.length));
  const wanted = [...rowsOf(forwardParts, stacks), ...[...again].flatMap(({ inputs }) => inputs)];
  const rows = new Set(wanted.filter((v) => !given.has(v) && !again.has(producer.get(v) as Node)));
  const bytes = [...rows].reduce((sum, { type }) => sum + byteLength(type), 0);
  return length * (price * bytes + [...again].reduce((sum, node) => sum + msOfNode(node), 0));
}

const costOfCut = (pair: LoopPair, { again, rows }: RowCut, price: number): number =>
  pair.length *
  (price * rows.reduce((sum, { type }) => sum + byteLength(type), 0) +
    again.reduce((sum, node) => sum + msOfNode(node), 0));

const PRICES = [0.001, 0.02, 0.05, 0.1, 0.3, 1, 10];

describe("rows that are worth a price", () => {
  it("are the best of all choices", () => {
    let tried = 0;
    for (let seed = 0; seed < 40; seed++) {
      const pair = pairFor(seed)?.pair;
      const nodes = pair?.forwardParts.body.nodes ?? [];
      if (!pair || nodes.length > 11) continue;
      tried += 1;
      for (const price of PRICES) {
        const cut = rowCut(pair, price, msOfNode);
        let least = Number.POSITIVE_INFINITY;
        for (let set = 0; set < 2 ** nodes.length; set++) {
          const again = new Set(nodes.filter((_, n) => (set >> n) & 1));
          least = Math.min(least, costOf(pair, again, price));
        }
        expect(costOfCut(pair, cut, price), `seed ${seed}, price ${price}`).toBeCloseTo(least, 6);
      }
    }
    expect(tried).toBeGreaterThan(10);
  });

  it("are fewer bytes the dearer they are", () => {
    for (let seed = 0; seed < 20; seed++) {
      const pair = pairFor(seed)?.pair;
      if (!pair) continue;
      const bytes = PRICES.map((price) => cutPair(pair, rowCut(pair, price, msOfNode)).tapeBytes);
      expect(bytes).toEqual([...bytes].sort((a, b) => b - a));
    }
  });
});

describe("a loop with other rows", () => {
  it("has the same results, alone and with states for some of its turns", () => {
    let changed = 0;
    for (let seed = 0; seed < 20; seed++) {
      const found = pairFor(seed);
      if (!found) continue;
      const { graph } = found;
      const inputs = Object.values(P).map((leaf) => Float64Array.from(leaf.data()));
      const expected = evaluate(graph, inputs);
      for (const price of PRICES) {
        for (const taped of [6, 3]) {
          const cut = rewindLoops(graph, {
            counted({ pair }) {
              const schedule = { checkpoints: 2, split: "binomial", every: 0, advances: 1, taped };
              return { pair: cutPair(pair, rowCut(pair, price, msOfNode)), schedule: taped === 6 ? null : schedule };
            },
            open: () => 0,
          });
          expect(violations(cut), `seed ${seed}, price ${price}`).toEqual([]);
          expect(evaluate(cut, inputs), `seed ${seed}, price ${price}`).toEqual(expected);
          const rows = (g: Graph): readonly Value[] => findPairs(g)[0]?.stacks ?? [];
          if (rows(cut).length !== rows(graph).length) changed += 1;
        }
      }
    }
    expect(changed).toBeGreaterThan(50);
  });
});
