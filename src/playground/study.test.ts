/** @file What the editor shows of a text: graphs, plans and complaints with their line. */
import { describe, expect, it } from "vitest";
import { spec } from "../api/create.ts";
import { valueAndGrad } from "../api/grad.ts";
import { plan } from "../api/plan.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type Complaint, isComplaint } from "./complaint.ts";
import { EXAMPLES } from "./examples.ts";
import { type Sight, Study } from "./study.ts";

const GOOD = `import { spec, type Tensor } from "tidemark";

interface Unused { readonly a: number }
export const args = [spec([64, 16]), spec([32, 64])] as const;

export function loss(w: Tensor, x: Tensor): Tensor {
  return x.matmul(w).tanh().sum();
}
`;

const seen = (text: string): Sight => {
  const sight = new Study().look(text);
  if (isComplaint(sight)) throw new Error(sight.message);
  return sight;
};
const complaint = (text: string): Complaint => new Study().look(text) as Complaint;

describe("a text that exports a loss and its arguments", () => {
  it("is shown as a graph, with its derivative, and planned as the library plans it", () => {
    const { graph, gradient, entry } = seen(GOOD);
    expect(graph).toContain("func loss(w: f32[64,16], x: f32[32,64])");
    expect(graph).toContain("= tanh(");
    expect(gradient).toContain("func loss(w: f32[64,16], x: f32[32,64])");
    expect(gradient).toContain("// backward");
    const loss = (w: Tensor, x: Tensor): Tensor => x.matmul(w).tanh().sum();
    const expected = plan((w: Tensor, x: Tensor) => valueAndGrad(loss)(w, x))(spec([64, 16]), spec([32, 64]));
    if (!detectFeatures().relaxedMadd) expect(entry.picture.heightBytes).toBe(expected.arenaBytes);
    if (!detectFeatures().relaxedMadd) expect(entry.picture.boundBytes).toBe(expected.lowerBoundBytes);
    expect(entry.picture.steps.length).toBe(expected.graph.nodes.length);
  });

  it("is differentiated by the arguments that it names", () => {
    const { gradient } = seen(`${GOOD}export const wrt = [0, 1];`);
    expect(gradient).toMatch(/f32\[64,16\].*matmul/);
    expect(gradient.trim().split("\n").at(-2)?.split(",")).toHaveLength(3);
  });

  it("is planned again for other budgets, with stories", () => {
    const study = new Study();
    const { entry } = study.look(GOOD) as Sight;
    expect(study.story(entry.asks ?? "", 0)[0]).toContain(entry.picture.values[0]?.name);
    expect(study.within(entry.picture.heightBytes)).toMatchObject({
      entry: { budgetBytes: entry.picture.heightBytes },
    });
    expect(study.within(64)).toMatchObject({ refusal: expect.stringContaining("PlanInfeasible") });
    expect([...study.curves()].at(-1)?.points[0]?.arenaBytes).toBe(entry.picture.heightBytes);
  });

  it("names the lines of the text that is there, not of one before", () => {
    const lines = (text: string) => seen(text).entry.picture.steps.map(({ where }) => where?.split(":")[1]);
    expect(new Set(lines(GOOD))).toContain("7");
    expect(new Set(lines(`\n\n\n${GOOD}`))).toEqual(new Set(lines(GOOD).map((line) => line && `${Number(line) + 3}`)));
  });

  it("with a loop has smaller plans on its curve in which the loop runs in another form", () => {
    const study = new Study();
    const { entry } = study.look(EXAMPLES.find(({ name }) => name === "a loop")?.text ?? "") as Sight;
    const points = [...study.curves()].at(-1)?.points ?? [];
    expect(points.length).toBeGreaterThan(2);
    expect(Math.min(...points.map((p) => p.arenaBytes))).toBeLessThan(0.8 * entry.picture.heightBytes);
  });

  it("is there for every example", () => {
    for (const { text } of EXAMPLES) expect(seen(text).entry.picture.steps.length).toBeGreaterThan(3);
  });
});

describe("a text with a mistake", () => {
  it.each([
    ["that is no code", GOOD.replace("(w: Tensor, x: Tensor)", "(w: Tensor x: Tensor)"), 6, "SyntaxError"],
    ["in shapes", GOOD.replace("x.matmul(w)", "w.matmul(x)"), 7, "ShapeMismatch"],
    ["in a method", GOOD.replace(".tanh()", ".tanhh()"), 7, "tensors have no method tanhh"],
    [
      "of JavaScript",
      GOOD.replace(".tanh()", ".frobnicate()"),
      7,
      "TypeError: x.matmul(...).frobnicate is not a function",
    ],
    ["at its top", GOOD.replace("interface Unused", "throw 7;\ninterface Unused"), null, "thrown: 7"],
    ["in what it imports", GOOD.replace('"tidemark"', '"left-pad"'), 1, "there is no module left-pad here"],
    ["in what it exports", GOOD.replace("export function loss", "function lost"), null, "loss is undefined"],
    ["in its arguments", GOOD.replace("export const args", "const args"), null, "args is undefined"],
    ["with no arguments", GOOD.replace("[spec([64, 16]), spec([32, 64])]", "[]"), null, "args is an array of 0"],
    ["in wrt", `${GOOD}export const wrt = 2;`, null, "wrt is 2"],
    ["in its result", GOOD.replace(".sum()", ""), null, "the loss must be a scalar, got f32[32,16]"],
  ])("%s is told so, with the line", (_, text, line, message) => {
    const told = complaint(text);
    expect(told.message).toContain(message);
    expect(told.line).toBe(line);
  });

  it("that throws what has no end or no text is told so in a few words", () => {
    const told = complaint(`${GOOD}\nthrow new Error("function.ts:3 ".repeat(1e6));`);
    expect(told.message.length).toBeLessThan(5000);
    expect(told.line).toBe(10);
    for (const odd of ["Object.create(null)", "{ toString() { throw 1; } }"])
      expect(complaint(`throw ${odd};`).message).toBe("thrown: something that cannot be written as text");
  });

  it("leaves the plans of the text before it to ask about, and none without one", () => {
    const study = new Study();
    study.look("nothing");
    expect(study.within(1e6)).toEqual({ refusal: "there is no program to plan" });
    expect([[...study.curves()], study.story("plan-0", 0)]).toEqual([[], []]);
    const { entry } = study.look(GOOD) as Sight;
    study.look("nothing");
    expect([...study.curves()].at(-1)?.points[0]?.arenaBytes).toBe(entry.picture.heightBytes);
  });
});
