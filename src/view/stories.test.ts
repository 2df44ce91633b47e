/** @file Stories of a plan with a loop in it: all at once, one at a time, and from what a page in a file has. */
import { expect, it } from "vitest";
import { scan } from "../api/control.ts";
import { spec } from "../api/create.ts";
import { matmul } from "../api/linear.ts";
import { plan } from "../api/plan.ts";
import { sum } from "../api/reduce.ts";
import { planJson } from "../plan/json.ts";
import type { Tensor } from "../trace/tensor.ts";
import { storiesOf, storyOf } from "./stories.ts";
import { nameInside, storyIn } from "./story-tree.ts";

const looped = (h: Tensor, w: Tensor): Tensor =>
  sum(scan((state: Tensor, _: Tensor) => [matmul(state, w), sum(state)] as const, h, spec([5]))[0]);

it("are the same from every source, inside loops too", () => {
  const made = plan(looped)(spec([4, 4]), spec([4, 4])).plan;
  const tree = storiesOf(made);
  const named = new Map([["plan-0", made]]);
  const json = planJson(made, { stories: true });
  const step = json.steps.findIndex(({ bodies }) => bodies);
  const body = json.steps[step]!.bodies![0]!;
  json.values.forEach(({ story }, v) => {
    expect(storyOf(named, "plan-0", v)).toEqual(story);
    expect(storyIn(tree, [], v)).toEqual(story);
  });
  body.values.forEach(({ story }, v) => {
    expect(storyOf(named, nameInside("plan-0", step, 0), v)).toEqual(story);
    expect(storyIn(tree, [`${step}.0`], v)).toEqual(story);
  });
  expect(storyIn(tree, ["99.0"], 0)).toEqual([]);
  expect(storyOf(named, nameInside("plan-0", 99, 0), 0)).toBeNull();
});
