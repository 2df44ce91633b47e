/**
 * @file Names in plans: a value that nobody named is called by what made it, in texts, in data, in explanations and in errors.
 * Names are unique and the same each time, and nothing is planned by them.
 */
import { describe, expect, it } from "vitest";
import { grad, relu, scan, scope, spec, type Tensor } from "../src/api/index.ts";
import { plansOf } from "../src/api/plan.ts";
import type { TidemarkError } from "../src/base/errors.ts";
import { ALL_PROGRAMS, type AnyProgram } from "../src/cli/programs/built-in.ts";
import type { MemoryRequest } from "../src/compiler/request.ts";
import type { Graph } from "../src/ir/graph.ts";
import { hashGraph } from "../src/ir/hash.ts";
import { packGraph, unpackGraph } from "../src/ir/pack.ts";
import { linear, sequential, transformerBlock } from "../src/nn/index.ts";
import { allOps } from "../src/ops/all.ts";
import { explainText } from "../src/plan/explain.ts";
import { type PlanJson, planJson } from "../src/plan/json.ts";
import { nameValues } from "../src/plan/names.ts";
import { printPlan } from "../src/plan/print.ts";
import type { Plan } from "../src/plan/problem.ts";
import type { AnyFunction } from "../src/trace/function.ts";

function planned(program: AnyProgram, memory: MemoryRequest = {}): Plan {
  const options = { cache: false, donate: [0], name: program.name, target: "wasm" } as const;
  return plansOf(program.step as AnyFunction, program.specs?.() ?? [], options).plans.choose(memory).result.plan;
}

const planOf = (fn: AnyFunction, ...args: readonly Tensor[]): Plan =>
  plansOf(fn, args, { cache: false, target: "wasm" }).plans.choose({}).result.plan;

const named = (name: string): AnyProgram => ALL_PROGRAMS.find((program) => program.name === name) as AnyProgram;

/** The names of all stored values, of bodies too. */
const namesOf = (plan: Plan): readonly string[] => [
  ...[...plan.bufferOf.keys()].map(nameValues(plan.program)),
  ...plan.program.steps.flatMap(({ bodies = [] }) => bodies.flatMap(namesOf)),
];

describe("the plan of gpt", () => {
  const plan = planned(named("gpt"));
  const names = new Set(namesOf(plan));

  it("tells block, part and parameter in all phases", () => {
    const expected = [
      ...["tok", "head", "block0.attention.qkv", "block3.attention.scores.where", "block2.attention.weights.exp"],
      ...[
        "block1.attention.proj.add",
        "block0.feed.fc",
        "block0.feed.fc.gelu",
        "block3.feed.fo.add",
        "crossEntropy.gather",
      ],
      ...["d_block0.attention.qkv", "d_block3.attention.proj.add", "d_block2.feed.fc", "d_layerNorm.lnfg"],
      ...["state_params_blocks_0_qkv.new", "state_slots_m_head.new", "state_slots_v_blocks_3_fo.new", "state_step.new"],
    ];
    expect(expected.filter((name) => !names.has(name))).toEqual([]);
  });

  it("has names without a number in all its forms", () => {
    expect(printPlan(plan)).not.toMatch(/\bv\d+\b/);
    const data: PlanJson = planJson(plan, { stories: true });
    expect(data.values.map(({ name }) => name)).toEqual([...plan.bufferOf.keys()].map(nameValues(plan.program)));
    expect(data.values.flatMap(({ story = [] }) => story).join("\n")).not.toMatch(/\bv\d+\b/);
    expect(data.steps.filter(({ text }) => /\bv\d+\b/.test(text))).toEqual([]);
  });

  it("explains a value by that name, and says which there are", () => {
    const text = explainText(plan, "block0.attention.qkv");
    expect(text).toMatch(/^block0\.attention\.qkv: f32\[1024,384\] is at b\d+/);
    expect(text).toMatch(/its last of \d+ readers is step \d+, .*d_block0\.attention/);
    expect(() => explainText(plan, "block0.attention.q")).toThrow(/block0\.attention\.qkv/);
  });

  it("marks what is recomputed", () => {
    const small = planned(named("gpt"), { strategy: "sqrt" });
    const again = planJson(small).values.filter((value) => value.again);
    expect(again.length).toBeGreaterThan(0);
    expect(again.filter(({ name }) => !/_re(_\d+)?$/.test(name))).toEqual([]);
  });

  it("is in the table of an error", () => {
    let error: TidemarkError | null = null;
    try {
      planned(named("gpt"), { budgetBytes: 12 << 20, strategy: "sqrt" });
    } catch (thrown) {
      error = thrown as TidemarkError;
    }
    expect(error?.code).toBe("PlanInfeasible");
    expect(error?.message).toMatch(/block\d|crossEntropy|head/);
    expect(error?.message).not.toMatch(/\bv\d+\b/);
  });
});

it("no stored value of the built-in programs is numbered", () => {
  // resnet1001 is resnet50 with twenty times the layers.
  for (const program of ALL_PROGRAMS.filter(({ name }) => name !== "resnet1001")) {
    const numbered = namesOf(planned(program)).filter((name) => /^v\d+$/.test(name));
    expect(numbered, program.name).toEqual([]);
  }
}, 120_000);

it("names are unique and the same each time", () => {
  for (const name of ["mlp", "lstm", "gpt"]) {
    const plan = planned(named(name));
    const names = [...plan.bufferOf.keys()].map(nameValues(plan.program));
    expect(new Set(names).size).toBe(names.length);
    expect(printPlan(planned(named(name)))).toBe(printPlan(plan));
  }
});

describe("a program of the user's", () => {
  const [w, x] = [spec([4, 4]), spec([3, 4])];
  const writes = (plan: Plan): readonly string[] => {
    const nameOf = nameValues(plan.program);
    return plan.program.steps.flatMap((step) => step.writes.map(nameOf));
  };

  it("numbers scopes that are used several times from 0, and only those", () => {
    const layer = (h: Tensor, v: Tensor): Tensor => scope("layer", () => h.matmul(v));
    const names = writes(planOf((a: Tensor, v: Tensor) => scope("head", () => layer(layer(a, v), v)), x, w));
    expect(names).toEqual(["head.layer0.v", "head.layer1.v"]);
  });

  it("is named by paths of parameters where it has no scopes", () => {
    const net = (params: { layers: { w: Tensor }[] }, a: Tensor): Tensor =>
      params.layers.reduce((h, layer) => relu(h.matmul(layer.w)), a);
    const specs = { layers: [{ w }, { w }] };
    const { plan } = plansOf(net as AnyFunction, [specs, x], { cache: false, target: "wasm" }).plans.choose({}).result;
    expect(writes(plan)).toEqual(["layers0.relu", "layers1.relu"]);
  });

  it("has the names of layers, each said once", () => {
    const model = sequential(linear(4, 4), transformerBlock(4, { heads: 2 }));
    const params = model.init(0);
    const plan = planOf(((p: typeof params, a: Tensor) => model.apply(p, a).sum()) as AnyFunction, params as never, x);
    const names = writes(plan).join(" ");
    expect(names).toMatch(/layer0\.\w+/);
    expect(names).toMatch(/layer1\.attention\.qkv/);
    expect(names).toMatch(/layer1\.attention\.weights\.exp/);
    expect(names).toMatch(/layer1\.feed_forward\.up/);
    expect(names).not.toMatch(/attention\.attention/);
  });

  it("names what a loop makes by what its body makes", () => {
    const run = (v: Tensor, a: Tensor): Tensor => scan((h, row) => [h.matmul(v).tanh(), row], a, spec([5, 2]))[0].sum();
    const names = writes(planOf(grad(run as never) as AnyFunction, w, x));
    expect(names.some((name) => name.startsWith("scan."))).toBe(true);
    expect(names.some((name) => name.startsWith("d_scan."))).toBe(true);
  });
});

describe("parts that nodes were recorded in", () => {
  const traced = (): Graph => plansOf(named("gpt").step as AnyFunction, named("gpt").specs?.() ?? [], {}).source.graph;

  it("are kept by packed graphs, and are no part of a graph's meaning", () => {
    const graph = traced();
    const ops = new Map(allOps.map((op) => [op.name, op]));
    const withins = ({ nodes }: Graph): readonly (string | undefined)[] => nodes.map(({ within }) => within);
    expect(withins(unpackGraph(packGraph(graph), ops))).toEqual(withins(graph));
    const without = { ...graph, nodes: graph.nodes.map((node) => ({ ...node, within: undefined })) };
    expect(hashGraph(without)).toBe(hashGraph(graph));
    expect(withins(graph).filter((within) => within !== undefined).length).toBeGreaterThan(graph.nodes.length / 2);
  });
});
