/**
 * @file Parts of programs as loops over strips of rows: every region that is found, in every number of strips, has the bits of
 * the program without strips, on WebAssembly and native code, on one thread and on several.
 */
import { describe, expect, it } from "vitest";
import { conv2d } from "../src/api/conv.ts";
import {
  type AttentionOptions,
  arange,
  attention,
  crossEntropy,
  layerNorm,
  matmul,
  random,
  scan,
  spec,
  split,
  type Tensor,
  valueAndGrad,
} from "../src/api/index.ts";
import { loadGraph } from "../src/api/load-graph.ts";
import { plansOf } from "../src/api/plan.ts";
import { at } from "../src/base/invariant.ts";
import type { MemoryRequest } from "../src/compiler/request.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import { print } from "../src/ir/print.ts";
import { elementsOf } from "../src/ir/type.ts";
import { verify } from "../src/ir/verify.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { pipeline, runPasses } from "../src/passes/pipeline.ts";
import { planJson } from "../src/plan/json.ts";
import type { Plan } from "../src/plan/problem.ts";
import { readPlanJson } from "../src/plan/read-json.ts";
import { reportText } from "../src/plan/report.ts";
import { stripReports } from "../src/plan/strips.ts";
import type { Elements } from "../src/runtime/executable.ts";
import type { AnyFunction } from "../src/trace/function.ts";
import { Random } from "./support/random.ts";
import { randomGraph, together } from "./support/random-graph.ts";
import { runGraph } from "./support/run-graph.ts";
import { allStrips, type Stripped } from "./support/strips.ts";
import { plainTargets, type TestedTarget } from "./support/targets.ts";

/** After the passes that come before fusion. */
function graphOf(fn: AnyFunction, args: readonly unknown[]): Graph {
  return runPasses(plansOf(fn, args, { name: "f", cache: false }).source.graph, pipeline);
}

/** Numbers of both signs, zeros of both signs among them; indices below `classes`. */
const inputs =
  (classes: number) =>
  (param: Value, i: number): Float64Array => {
    const random = new Random(i);
    const draw = isFloat(param.type.dtype)
      ? () => (random.int(9) === 0 ? -0 : Math.fround(random.next() - 0.5))
      : () => random.int(classes);
    return Float64Array.from({ length: elementsOf(param.type.shape) }, draw);
  };

interface Case {
  readonly name: string;
  readonly graph: () => Graph;
  readonly counts: readonly number[];
  /** The share of all nodes that the largest region has at least. */
  readonly share: number;
  readonly wideBytes?: number;
}

/** Of a loss in all its arguments. */
const gradients =
  (loss: (...args: Tensor[]) => Tensor, count: number) =>
  (...args: Tensor[]) =>
    valueAndGrad((...own: Tensor[]) => loss(...own, ...args.slice(count)), {
      argnums: Array.from({ length: count }, (_, i) => i),
    })(...args.slice(0, count));

const CASES: readonly Case[] = [
  {
    name: "a loss over classes",
    graph: () =>
      graphOf(
        gradients((h, w, y) => crossEntropy(matmul(h as Tensor, w as Tensor, { tb: true }), y as Tensor), 2),
        [spec([2048, 8]), spec([40, 8]), spec([2048], "i32")],
      ),
    counts: [2, 4],
    share: 0.6,
  },
  {
    name: "half a block, all of it, with offsets that are summed over rows",
    graph: () =>
      graphOf(
        gradients((x, w, b, v) => {
          const wide = matmul(layerNorm(x as Tensor), w as Tensor)
            .add(b as Tensor)
            .gelu();
          return matmul(wide, v as Tensor)
            .square()
            .sum();
        }, 4),
        [spec([2, 1024, 6]), spec([6, 24]), spec([24]), spec([24, 6])],
      ),
    counts: [2, 4],
    share: 0.9,
    wideBytes: 1,
  },
  {
    name: "attention over batches and heads",
    graph: () =>
      graphOf(
        gradients((x, w) => {
          const heads = matmul(x as Tensor, w as Tensor)
            .reshape([4, 32, 3, 4, 2])
            .transpose([2, 0, 3, 1, 4]);
          const [q, k, v] = split(heads, 3).map((part) => part.reshape([4, 4, 32, 2])) as [Tensor, Tensor, Tensor];
          return attention(q, k, v, { causal: true }).square().sum();
        }, 2),
        [spec([128, 8]), spec([8, 24])],
      ),
    counts: [2],
    share: 0.7,
  },
  {
    name: "convolutions over images",
    graph: () =>
      graphOf(
        gradients((x, w, v) => {
          const h = conv2d(x as Tensor, w as Tensor, { padding: 1 }).relu();
          return conv2d(h, v as Tensor, { stride: 2 })
            .square()
            .sum();
        }, 3),
        [spec([16, 3, 8, 8]), spec([8, 3, 3, 3]), spec([4, 8, 2, 2])],
      ),
    counts: [2],
    share: 0.4,
  },
];

/** The first target's own choice of regions: sums have the same order on all of these. */
const description = at(plainTargets, 0).target().description;

/** Regions of a case that are compared: the largest in each number of strips. */
const COMPARED = 2;

interface Compared extends Stripped {
  readonly of: Case;
  readonly whole: Graph;
}

function compared(of: Case): readonly Compared[] {
  const whole = of.graph();
  const found = [...allStrips(whole, description, of.counts, of.wideBytes)];
  return of.counts.flatMap((count) =>
    found
      .filter(({ strips }) => strips === count)
      .sort((a, b) => b.nodes - a.nodes)
      .slice(0, COMPARED)
      .map((one) => ({ ...one, of, whole })),
  );
}

const CLASSES = 40;

/** Results of several programs that run as one, as text that tells zeros of different signs apart. */
function resultsOf(tested: TestedTarget, graphs: readonly Graph[]): readonly (readonly string[])[] {
  const places = graphs.flatMap(({ params }) => params.map((_, i) => i));
  const results = runGraph(tested.target(), together(graphs), (param, i) => inputs(CLASSES)(param, at(places, i)));
  const texts = results.map((one) => Array.from(one, (x) => (Object.is(x, -0) ? "-0" : String(x))).join());
  let next = 0;
  return graphs.map((graph) => graph.results.map(() => texts[next++] as string));
}

/** Regions of one random graph that are compared. */
const OF_EACH = 6;

describe("random programs in strips", () => {
  it("have the bits of the whole", () => {
    let compared = 0;
    for (let seed = 0; seed < 100; seed++) {
      const graph = runPasses(randomGraph(seed, { nodes: 6 + (seed % 24), regions: false }), pipeline);
      const found = [...allStrips(graph, description, [2, 3, 4], seed % 2 === 0 ? 1 : undefined)];
      if (found.length === 0) continue;
      const some = found.sort((a, b) => b.nodes - a.nodes).slice(0, OF_EACH);
      compared += some.length;
      for (const one of some) verify(one.graph);
      const [want, ...got] = resultsOf(at(plainTargets, 0), [graph, ...some.map((one) => one.graph)]);
      got.forEach((own, i) => {
        expect(own, `seed ${seed}:\n${print(graph)}\n${print(at(some, i).graph)}`).toEqual(want);
      });
    }
    expect(compared).toBeGreaterThan(80);
  });
});

describe("regions in strips", () => {
  const all = CASES.flatMap(compared);
  const wholes = [...new Set(all.map(({ whole }) => whole))];

  it("are found in every case, and are whole networks where everything is wide", () => {
    for (const of of CASES) {
      const own = all.filter((one) => one.of === of);
      expect(Math.max(...own.map(({ nodes, whole }) => nodes / whole.nodes.length)), of.name).toBeGreaterThan(of.share);
    }
    for (const { graph } of all) verify(graph);
  });

  for (const tested of plainTargets) {
    it.skipIf(tested.missing)(`have the bits of the whole on ${tested.name}`, () => {
      const want = resultsOf(at(plainTargets, 0), wholes);
      // threads: the largest region of each case
      const some = /threads/.test(tested.name) ? all.filter(({ of }, i) => all[i - 1]?.of !== of) : all;
      const got = resultsOf(
        tested,
        some.map(({ graph }) => graph),
      );
      some.forEach(({ of, strips, whole, graph }, i) => {
        const same = at(got, i).every((text, r) => text === at(at(want, wholes.indexOf(whole)), r));
        expect(same, same ? "" : `${of.name} in ${strips} strips:\n${print(graph)}`).toBe(true);
      });
    });
  }
});

function resultsWith(graph: Graph, memory: MemoryRequest): readonly [Plan, readonly Elements[]] {
  const executable = loadGraph(graph, { target: at(plainTargets, 0).target(), memory });
  graph.params.forEach((param, i) => {
    executable.write(param.type, at(executable.placed.params, i), inputs(768)(param, i));
  });
  executable.run();
  const results = graph.results.map((value, i) => executable.read(value.type, at(executable.placed.results, i)));
  return [executable.placed.plan, results];
}

describe("a budget that recomputation alone meets slowly", () => {
  /** Two halves of blocks over 4,096 rows, most of whose bytes are held for the backward pass. */
  const deep = graphOf(
    gradients((x, w, v, u) => {
      const half = (h: Tensor): Tensor => h.add(matmul(matmul(layerNorm(h), w as Tensor).gelu(), v as Tensor));
      return matmul(half(half(x as Tensor)), u as Tensor)
        .square()
        .mean();
    }, 4),
    [spec([4096, 32]), spec([32, 128]), spec([128, 32]), spec([32, 8])],
  );

  it("is met by parts of the batch one after the other, with the same bits", () => {
    const [whole, want] = resultsWith(deep, {});
    const [cut, got] = resultsWith(deep, { budgetBytes: Math.ceil(whole.height / 2) });
    expect(got).toEqual(want);
    const [report] = stripReports(cut);
    expect(report?.strips).toBeGreaterThanOrEqual(2);
    expect(cut.program.steps.length).toBeLessThan(whole.program.steps.length);
  });
});

describe("attention whose weights depend on their places", () => {
  const attended = (options: AttentionOptions): Graph => {
    const type = spec([4, 2, 256, 4]);
    const fn = (q: Tensor, k: Tensor, v: Tensor) => attention(q.sin().cos(), k, v.relu(), options).sin();
    return graphOf(fn, [type, type, type]);
  };
  /** The last values are infinite: a mask that is causal hides them from all queries but the last. */
  const infinite = (param: Value, i: number): Float64Array => {
    const drawn = inputs(CLASSES)(param, i % 4);
    return i % 4 === 2 ? drawn.fill(Number.POSITIVE_INFINITY, -4) : drawn;
  };
  const dropout = { dropout: 0.5, key: random.key(0) };

  for (const [name, options] of Object.entries({
    "zeros beyond a line": { causal: true, form: "stored" },
    "dropout by the numbers of pairs": { form: "streamed", ...dropout },
    "both, stored": { causal: true, form: "stored", ...dropout },
  } satisfies Record<string, AttentionOptions>)) {
    it(`has the bits of the whole in every region: ${name}`, () => {
      const whole = attended(options);
      const cut = [1, Number.POSITIVE_INFINITY].flatMap((wide) => [...allStrips(whole, description, [2], wide)]);
      const graphs = [whole, ...cut.map(({ graph }) => graph)];
      const { length } = whole.params;
      const made = runGraph(at(plainTargets, 0).target(), together(graphs), (param, i) => infinite(param, i % length));
      for (const [i, { value, axis }] of cut.entries()) {
        expect(made[i + 1], `${value.name} along ${axis}`).toEqual(made[0]);
      }
      expect(cut.length).toBeGreaterThan(0);
    });
  }
});

/** A loss whose scores take 6 MiB, and whose arguments take less than 300 KiB. */
const large = graphOf(
  gradients((h, w, y) => crossEntropy(matmul(h as Tensor, w as Tensor, { tb: true }), y as Tensor), 2),
  [spec([2048, 16]), spec([768, 16]), spec([2048], "i32")],
);
const MIB = 2 ** 20;

describe("a budget below the operands of a step", () => {
  const target = at(plainTargets, 0).target();
  const stored = loadGraph(large, { target });
  const cut = loadGraph(large, { target, memory: { budgetBytes: 4 * MIB } });

  it("is met in strips, with the bits of storing everything", () => {
    expect(stored.placed.plan.height).toBeGreaterThan(6 * MIB);
    expect(cut.placed.plan.height).toBeLessThanOrEqual(4 * MIB);
    const [, want] = resultsWith(large, {});
    const [, got] = resultsWith(large, { budgetBytes: 4 * MIB });
    expect(got).toEqual(want);
  });

  it("is met as well where logits have axes of batches and positions", () => {
    const batches = graphOf(
      gradients((h, w, y) => crossEntropy(matmul(h as Tensor, w as Tensor), y as Tensor), 2),
      [spec([4, 512, 16]), spec([16, 768]), spec([4, 512], "i32")],
    );
    const [plan, got] = resultsWith(batches, { budgetBytes: 4 * MIB });
    expect(stripReports(plan)).toMatchObject([{ strips: 2, wholeBytes: 6 * MIB }]);
    expect(got).toEqual(resultsWith(batches, {})[1]);
  });

  it("is met by a plan that says what it cut", () => {
    const { plan } = cut.placed;
    const [report, ...others] = stripReports(plan);
    expect(others).toEqual([]);
    expect(report).toMatchObject({ strips: 2, rows: 1024, wholeBytes: 6 * MIB, stripBytes: 3 * MIB });
    expect(reportText(plan)).toMatch(
      /\n {2}strips: \S+ in 2 strips of 1024 rows: 3 MiB at a time instead of 6 MiB, sums of 48 KiB carried\n/,
    );
    const json = readPlanJson(JSON.stringify(planJson(plan)));
    const [loop] = json.steps.flatMap(({ strips }) => strips ?? []);
    expect(loop).toMatchObject({ strips: 2, rows: 1024 });
  });

  it("is not asked for where nothing is asked of memory, or the budget is large", () => {
    expect(stripReports(stored.placed.plan)).toEqual([]);
    expect(stripReports(loadGraph(large, { target, memory: { budgetBytes: 16 * MIB } }).placed.plan)).toEqual([]);
  });

  it("that strips do not meet is refused with the strips of the smallest plan", () => {
    const refused = () => loadGraph(large, { target, memory: { budgetBytes: MIB } });
    expect(refused).toThrow(
      /smallest plan found with recomputation and strips of rows:\n {4}\S+ in 4 strips of 512 rows/,
    );
  });

  it("that is refused since rows are not independent names the strips that would fit", () => {
    const mixed = graphOf(
      (x: Tensor, w: Tensor) => matmul(x, w).cumsum(0).square().sum(),
      [spec([2048, 16]), spec([16, 768])],
    );
    const refused = () => loadGraph(mixed, { target, memory: { budgetBytes: 4 * MIB } });
    expect(refused).toThrow(/in \d+ strips of [\d,]+ rows would fit/);
  });
});

describe("a budget below the operands of a step of a loop", () => {
  /** Three iterations over 2,048 rows, each of which makes 6 MiB of hidden values; and the gradients. */
  const network = (x: Tensor, w: Tensor, v: Tensor): Tensor => {
    const [last] = scan(
      (h, scale) => [h.add(matmul(matmul(h, w).gelu(), v).mul(scale)), h.sum()] as const,
      x,
      arange(0, 3, 1, { dtype: "f32" }),
    );
    return last.square().mean();
  };
  const types = [spec([2048, 16]), spec([16, 768]), spec([768, 16])];
  const bytes = (plan: Plan): number => plan.height;

  it("is met in strips inside of its body, forward", () => {
    const graph = graphOf(network, types);
    const [whole, want] = resultsWith(graph, {});
    const [cut, got] = resultsWith(graph, { budgetBytes: 3 * MIB });
    expect(bytes(whole)).toBeGreaterThan(6 * MIB);
    expect(bytes(cut)).toBeLessThanOrEqual(3 * MIB);
    expect(got).toEqual(want);
    expect(stripReports(cut)[0]?.strips).toBeGreaterThanOrEqual(2);
  });

  it("is met in strips inside of its body, backward too", () => {
    const graph = graphOf(
      gradients((x, w, v) => network(x as Tensor, w as Tensor, v as Tensor), 3),
      types,
    );
    const [whole, want] = resultsWith(graph, {});
    const [cut, got] = resultsWith(graph, { budgetBytes: 6 * MIB });
    expect(bytes(whole)).toBeGreaterThan(12 * MIB);
    expect(bytes(cut)).toBeLessThanOrEqual(6 * MIB);
    expect(got).toEqual(want);
  });
});
