/** @file Plans of programs with loops: bodies are in the text and in the data, and the validator looks into them. */
import { describe, expect, it } from "vitest";
import { compile, forLoop, grad, matmul, scan, spec, switchCase, type Tensor, tensor } from "../../src/api/index.ts";
import { plan as planOf } from "../../src/api/plan.ts";
import { at } from "../../src/base/invariant.ts";
import { planJson } from "../../src/plan/json.ts";
import { printPlan } from "../../src/plan/print.ts";
import type { Plan } from "../../src/plan/problem.ts";
import type { PlanStep } from "../../src/plan/program.ts";
import { validate } from "../../src/plan/validate.ts";

const network = (w: Tensor, h: Tensor, xs: Tensor): Tensor =>
  scan<Tensor, Tensor, readonly Tensor[]>((s, x) => [matmul(s, w).add(x).tanh(), []], h, xs)[0].sum();

const gradient = planOf((w: Tensor, h: Tensor, xs: Tensor) => grad(network)(w, h, xs))(
  spec([8, 8]),
  spec([4, 8]),
  spec([20, 4, 8]),
);

/** The plan with another body in its first loop. */
function withBody(plan: Plan, change: (body: Plan) => Plan, step: (step: PlanStep) => PlanStep = (s) => s): Plan {
  const first = plan.program.steps.findIndex((s) => s.bodies !== undefined);
  const steps = plan.program.steps.map((s, i) =>
    i === first ? step({ ...s, bodies: (s.bodies ?? []).map(change) }) : s,
  );
  return { ...plan, program: { ...plan.program, steps } };
}

const rulesOf = (plan: Plan): ReadonlySet<string> => new Set(validate(plan.program, plan).map(({ rule }) => rule));

describe("the validator", () => {
  it("accepts loops as they are planned", () => {
    expect(validate(gradient.plan.program, gradient.plan)).toEqual([]);
    expect(rulesOf(withBody(gradient.plan, (body) => body)).size).toBe(0);
  });

  it("finds values of a body that lie in each other's place", () => {
    const broken = withBody(gradient.plan, (body) => ({ ...body, offsets: body.offsets.map(() => 0) }));
    const found = validate(broken.program, broken);
    expect(rulesOf(broken)).toContain("overlap");
    expect(found.every(({ message }) => message.startsWith("body of step "))).toBe(true);
  });

  it("finds a carry that is not where the next turn looks for it", () => {
    expect(rulesOf(withBody(gradient.plan, (body) => ({ ...body, copies: [] })))).toContain("donated-slot");
  });

  it("finds a body that needs more workspace than its step has", () => {
    const broken = withBody(
      gradient.plan,
      (body) => body,
      (step) => ({ ...step, scratch: [0, ...step.scratch.slice(1)] }),
    );
    const [violation] = validate(broken.program, broken);
    expect(violation?.rule).toBe("no-storage");
    expect(violation?.message).toMatch(/body of step \d+ needs [\d,]+ bytes of workspace, the step has 0/);
  });
});

describe("the text and the data of a plan", () => {
  it("show every body below its step", () => {
    const text = printPlan(gradient.plan);
    expect(text).toMatch(/= scan\(.*\n {2}\{\n {4}\/\/ \d+ buffers/);
    expect(text).toContain("    func body(\n");
    expect(text).toContain("    func body_reverse(\n");
    const bodies = planJson(gradient.plan).steps.flatMap((step) => step.bodies ?? []);
    expect(bodies.map((body) => body.name)).toEqual(["body", "body_reverse"]);
    expect(JSON.parse(JSON.stringify(bodies))).toEqual(bodies);
  });

  it("show bodies within bodies", () => {
    const { plan } = planOf((x: Tensor, k: Tensor) =>
      forLoop(3, x, (_, s) => switchCase(k, [(v: Tensor) => forLoop(2, v, (_, c) => c.sin()), (v: Tensor) => v], s)),
    )(spec([4]), spec([], "i32"));
    const loop = at(planJson(plan).steps, 0).bodies ?? [];
    const inner = at(loop, 0).steps.flatMap((step) => step.bodies ?? []);
    expect(inner.map((body) => body.name)).toEqual(["branch0", "branch1"]);
    expect(
      at(inner, 0)
        .steps.flatMap((step) => step.bodies ?? [])
        .map((body) => body.name),
    ).toEqual(["body"]);
  });

  it("have no bodies where there are no loops", () => {
    const { plan } = compile((x: Tensor) => x.sin()).program(tensor([1]));
    expect(planJson(plan).steps.every((step) => !("bodies" in step))).toBe(true);
  });
});
