/** @file Pictures of schedules, exact for short loops and condensed for long ones; levels as text. */
import { describe, expect, it } from "vitest";
import { parseLevels } from "./level-text.ts";
import { schedulePicture } from "./picture.ts";
import { scheduleNamed } from "./schedule.ts";

describe("the picture of a schedule", () => {
  it("has a line for each sweep", () => {
    const picture = schedulePicture(scheduleNamed("binomial", { steps: 10, snapshots: 3 }));
    expect(picture).toBe(
      [
        "    0",
        " 1  ▪───▪──▪─◀",
        " 2  ▪···▪··▪◀",
        " 3  ▪···▪··◀",
        " 4  ▪···▪▪◀",
        " 5  ▪···▪◀",
        " 6  ▪···◀",
        " 7  ▪▪▪◀",
        " 8  ▪▪◀",
        " 9  ▪◀",
        "10  ◀",
        "",
      ].join("\n"),
    );
  });

  it("shows tapes that wait", () => {
    const picture = schedulePicture(scheduleNamed("mixed", { steps: 4, snapshots: 2 }));
    expect(picture).toMatchInlineSnapshot(`
      "   0
      1  ━▪─◀
      2  ◀◀◀
      "
    `);
  });

  it("is condensed when the loop is long", () => {
    const picture = schedulePicture(scheduleNamed("binomial", { steps: 5000, snapshots: 12 }), {
      columns: 60,
      lines: 20,
    });
    const lines = picture.trimEnd().split("\n");
    expect(lines).toHaveLength(21);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(66);
    expect(lines[1]).toMatch(/^ {3}1 {2}▪─+▪/);
    expect(lines[20]).toBe("5000  ◀");
  });

  it("is empty for no steps and one line for one", () => {
    expect(schedulePicture(scheduleNamed("binomial", { steps: 0, snapshots: 3 }))).toBe("");
    expect(schedulePicture(scheduleNamed("binomial", { steps: 1, snapshots: 3 }))).toBe("   0\n1  ◀\n");
  });
});

describe("levels", () => {
  it("are read with their costs", () => {
    expect(parseLevels("mem:4, disk:20:w=2:r=1.5,far:inf:r=3")).toEqual([
      { name: "mem", units: 4, writeCost: 0, readCost: 0 },
      { name: "disk", units: 20, writeCost: 2, readCost: 1.5 },
      { name: "far", units: Number.POSITIVE_INFINITY, writeCost: 0, readCost: 3 },
    ]);
  });

  it.each([
    ["", "does not start with a name"],
    ["4", "does not start with a name"],
    ["mem", "nothing is not a number of slots"],
    ["mem:x", "x is not a number of slots"],
    ["mem:-1", "-1 is not a number of slots"],
    ["mem:4:w=-1", "w=-1 is no cost"],
    ["mem:4:z=1", "z=1 is no cost"],
    ["mem:4:w=1:w=2", "w is given twice"],
    ["mem:4,mem:5", "mem is there twice"],
  ])("%j are refused", (text, problem) => {
    expect(() => parseLevels(text)).toThrow(problem);
  });
});
