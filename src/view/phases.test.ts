/** @file Phases along the time axis: runs of steps, and the bands that most steps of a phase are in. */
import { expect, it } from "vitest";
import { phaseBands, phaseRuns } from "./phases.ts";
import type { PictureStep } from "./picture.ts";

const NAMES: Readonly<Record<string, string>> = { f: "forward", b: "backward", u: "update" };
const stepsOf = (letters: string): readonly PictureStep[] =>
  [...letters].map((letter) => ({ phase: NAMES[letter] ?? "other" }) as PictureStep);
const bands = (letters: string): readonly string[] =>
  phaseBands(stepsOf(letters)).map(({ label, from, to }) => `${label} ${from}–${to}`);

it("cuts where most steps are in the band of their phase", () => {
  expect(bands("ffffbbbbuu")).toEqual(["forward 0–4", "backward 4–8", "update 8–10"]);
  expect(bands("ufbffffffbfbbbubbbb")).toEqual(["forward 0–9", "backward 9–19"]);
  expect(bands("ffffffbubuubbubbbb")).toEqual(["forward 0–6", "backward, update 6–18"]);
  expect(bands("ffffuu")).toEqual(["forward 0–4", "update 4–6"]);
});

it("has no bands for one phase or none", () => {
  for (const letters of ["", "fff", "???", "bb?"]) expect(bands(letters), letters).toEqual([]);
});

it("lists runs of steps", () => {
  expect(phaseRuns(stepsOf("ffb?bu"))).toEqual([
    { phase: "forward", from: 0, to: 2 },
    { phase: "backward", from: 2, to: 3 },
    { phase: "backward", from: 4, to: 5 },
    { phase: "update", from: 5, to: 6 },
  ]);
});
