/** @file Parses levels of snapshots: `mem:4,disk:20:w=2:r=1`, fastest first; `inf` for no limit. */
import { TidemarkError } from "../../base/errors.ts";
import type { LevelSpec } from "./action.ts";

const HELP = "write NAME:SLOTS[:w=COST][:r=COST], separated by commas: mem:4,disk:20:w=2:r=1, or disk:inf";

function fail(text: string, problem: string): never {
  throw new TidemarkError("InvalidArgument", `level ${JSON.stringify(text)}: ${problem}`, { help: HELP });
}

function parseLevel(text: string): LevelSpec {
  const [name = "", slots = "", ...rest] = text.trim().split(":");
  if (!/^[A-Za-z][\w-]*$/.test(name)) fail(text, "does not start with a name");
  if (!/^([0-9]+|inf)$/.test(slots)) fail(text, `${slots || "nothing"} is not a number of slots`);
  const units = slots === "inf" ? Number.POSITIVE_INFINITY : Number(slots);
  const costs: { w?: number; r?: number } = {};
  for (const part of rest) {
    const match = /^([wr])=([0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?)$/i.exec(part);
    if (!match) fail(text, `${part || "nothing"} is no cost`);
    const which = (match[1] as string).toLowerCase() as "w" | "r";
    if (costs[which] !== undefined) fail(text, `${which} is given twice`);
    costs[which] = Number(match[2]);
  }
  return { name, units, writeCost: costs.w ?? 0, readCost: costs.r ?? 0 };
}

/** The levels of a text; names are unique. */
export function parseLevels(text: string): readonly LevelSpec[] {
  const levels = text.split(",").map(parseLevel);
  for (const [i, { name }] of levels.entries()) {
    if (levels.findIndex((each) => each.name === name) < i) fail(text, `${name} is there twice`);
  }
  return levels;
}
