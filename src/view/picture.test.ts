/** @file Pictures of plans: the plan's numbers again, and kinds by who reads what when. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProgramBuilder, randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import { planJson } from "../plan/json.ts";
import { movableValues, moveValues } from "../plan/move.ts";
import { planProgram } from "../plan/plan.ts";
import { readPlanJson } from "../plan/read-json.ts";
import { memorySpace } from "../plan/space.ts";
import { differences, matchValues } from "./difference.ts";
import { pictureOfPlan } from "./from-plan.ts";
import { dataText, pageHtml } from "./html.ts";
import { scriptText } from "./page-shell.ts";
import {
  KIND_LABELS,
  liveColumns,
  neighbours,
  placeText,
  topBytes,
  VIEW_KINDS,
  valuesByRect,
  withColumns,
} from "./picture.ts";

function smallPlan() {
  const b = new ProgramBuilder();
  const [w, x] = [b.param("w", [16]), b.param("x", [64])];
  const h = b.call("f", [x, w], { name: "h", shape: [64], where: "model.ts:3:1" });
  const a = b.call("g", [h], { name: "a", shape: [64] });
  const loss = b.call("sum", [a], { name: "loss", shape: [] });
  const d = b.call("df", [h, loss], { name: "d_w", shape: [16], phase: "backward" });
  const next = b.call("step", [w, d], { name: "w", shape: [16], phase: "update", over: [w] });
  return planProgram(b.finish("p", [next, loss], { donated: [[w, 0]], persistent: [w] }));
}

describe("a picture of a plan", () => {
  it("has the plan's bound where the plan has it, whatever the program", () => {
    fc.assert(
      fc.property(randomProgram, (program) => {
        const plan = planProgram(program);
        const picture = pictureOfPlan(readPlanJson(JSON.stringify(planJson(plan, { stories: true }))));
        const live = liveColumns(picture);
        const total = Array.from({ length: picture.columns }, (_, t) => live.reduce((sum, k) => sum + (k[t] ?? 0), 0));
        expect(Math.max(0, ...total)).toBe(plan.bound.bytes);
        if (plan.bound.bytes > 0) expect(total[plan.bound.step]).toBe(plan.bound.bytes);
      }),
      { seed: 7, numRuns: 60 },
    );
  });

  it("has memory spaces on top of each other, and the arena's live bytes alone", () => {
    const program = trainingStep(3);
    const spaces = { device: memorySpace(64, { name: "device" }), host: memorySpace(256, { name: "host" }) };
    const plan = planProgram(moveValues(program, movableValues(program).slice(0, 2), spaces));
    const picture = pictureOfPlan(readPlanJson(JSON.stringify(planJson(plan))));
    expect(picture.spaces?.map(({ name, from }) => [name, from])).toEqual([
      ["device", 0],
      ["host", plan.height],
    ]);
    expect(topBytes(picture)).toBe(plan.height + plan.others[0]!.height);
    const live = liveColumns(withColumns(picture));
    const total = Array.from({ length: picture.columns }, (_, t) => live.reduce((sum, k) => sum + (k[t] ?? 0), 0));
    expect(Math.max(...total)).toBe(plan.bound.bytes);
    const away = plan.problem.buffers.find((b) => b.space === 1)!;
    expect(placeText(picture, away.id)).toBe("host 0x0–0x800");
    const { before, after } = neighbours(picture.rects, away.id);
    for (const other of [...before, ...after]) expect(plan.problem.buffers[other]!.space).toBe(1);
    const start = plan.program.steps.findIndex(({ copy }) => copy);
    const wait = picture.steps[start]!.copy!.other;
    expect(picture.steps[start]!.copy).toEqual({ kind: "start", queue: 1, other: wait });
    expect(picture.steps[wait]!.copy).toEqual({ kind: "wait", queue: 0, other: start });
    expect(pictureOfPlan(planJson(planProgram(program)))).not.toHaveProperty("spaces");
  });

  it("tells kept from forward-only values and knows who shares a place", () => {
    const picture = pictureOfPlan(planJson(smallPlan(), { stories: true }));
    const kindOf = (name: string) => {
      const rect = picture.values.find((v) => v.name === name)!.rect;
      return VIEW_KINDS[picture.rects.kind[rect]!];
    };
    expect(["w", "x", "h", "a", "d_w"].map(kindOf)).toEqual(["persistent", "input", "kept", "forward", "gradient"]);
    const byRect = valuesByRect(picture);
    const rectOfW = picture.values.findIndex((v) => v.name === "w");
    expect(byRect[picture.values[rectOfW]!.rect]!.map((v) => picture.values[v]!.name)).toEqual(["w", "w_1"]);
    const story = picture.values.find((v) => v.name === "h")!.story.join(" ");
    expect(story).toContain("its last of 2 readers is step 3");
    for (let rect = 0; rect < picture.rects.start.length; rect++) {
      const { before, after } = neighbours(picture.rects, rect);
      for (const b of before) expect(neighbours(picture.rects, b).after).toContain(rect);
      for (const a of after) expect(neighbours(picture.rects, a).before).toContain(rect);
    }
    expect(Object.keys(KIND_LABELS)).toEqual([...VIEW_KINDS]);
  });
});

describe("two pictures", () => {
  it("that are the same have no differences", () => {
    const a = pictureOfPlan(planJson(smallPlan()));
    expect(differences(a, a).every(({ change, byteSteps }) => change === "same" && byteSteps === 0)).toBe(true);
    expect([...matchValues(a, a)]).toEqual(a.values.map((_, v) => v));
  });

  it("differ by what is missing, moved or lives longer", () => {
    const a = pictureOfPlan(planJson(smallPlan()));
    const rects = { ...a.rects, end: Array.from(a.rects.end) };
    const h = a.values.findIndex((v) => v.name === "h");
    rects.end[a.values[h]!.rect]! += 1;
    const b = { ...a, rects, values: a.values.map((v) => (v.name === "a" ? { ...v, name: "other" } : v)) };
    const found = differences(a, b).filter(({ change }) => change !== "same");
    expect(found.map(({ name, change, byteSteps }) => [name, change, byteSteps]).sort()).toEqual([
      ["a", "only in A", -512],
      ["h", "lives longer", 256],
      ["other", "only in B", 512],
    ]);
  });
});

describe("the page's text", () => {
  it("cannot be left by anything in the data, the title or the script", () => {
    const name = '</script><script>alert(1)</script><!--"&\u2028';
    const picture = { ...pictureOfPlan(planJson(smallPlan())), name };
    const entry = { label: name, budgetBytes: null, predictedMs: null, asks: null, picture };
    const data = {
      version: 1,
      title: name,
      entries: [entry],
      first: 0,
      second: null,
      curve: null,
      live: false,
    } as const;
    const script = scriptText('const x = "</script><!--";');
    const html = pageHtml({ script, digest: "abc", data, stories: [] });
    expect(html.match(/<script/g)).toHaveLength(2);
    expect(html.match(/<\/script/g)).toHaveLength(2);
    expect(html).not.toContain("<!--");
    expect(JSON.parse(dataText(data))).toEqual(data);
    expect(html).toContain("script-src 'sha256-abc'");
    expect(html).toContain("connect-src 'none'");
  });
});
