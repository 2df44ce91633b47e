/** @file Plan files as they are written, and as they should not be. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProgramBuilder, randomProgram } from "../../tests/support/plan-programs.ts";
import { TidemarkError } from "../base/errors.ts";
import { type PlanJson, planJson } from "./json.ts";
import { planProgram } from "./plan.ts";
import { readPlanJson } from "./read-json.ts";

function small(): PlanJson {
  const b = new ProgramBuilder();
  const [w, x] = [b.param("w", [16]), b.param("x", [16])];
  const y = b.call("f", [x, w], { name: "y", over: [x], scratch: [64] });
  return planJson(planProgram(b.finish("p", [b.call("g", [y, w])], { donated: [[w, 0]], persistent: [w] })));
}

/** A plan with something else at a path. */
function changed(path: readonly (string | number)[], value: unknown): string {
  const plan = JSON.parse(JSON.stringify(small())) as Record<string | number, unknown>;
  let at = plan;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
  at[path.at(-1) as string] = value;
  return JSON.stringify(plan);
}

describe("a plan file", () => {
  it("is read as it was written, with stories and without", () => {
    fc.assert(
      fc.property(randomProgram, fc.boolean(), (program, stories) => {
        const written = planJson(planProgram(program), { stories });
        expect(readPlanJson(JSON.stringify(written))).toEqual(written);
        expect(written.values.every(({ story }) => (story !== undefined) === stories)).toBe(true);
      }),
      { seed: 11, numRuns: 60 },
    );
  });

  it("may have fields that are not known here", () => {
    expect(readPlanJson(changed(["extra"], { anything: [1] }))).toHaveProperty("extra");
  });

  it("that is cut off anywhere is called that", () => {
    const text = JSON.stringify(small());
    for (let length = 0; length < text.length; length += 7) {
      expect(() => readPlanJson(text.slice(0, length))).toThrow(/ParseError: plan file: not JSON.*cut off/s);
    }
  });

  it("of a newer version says so", () => {
    expect(() => readPlanJson(changed(["version"], 2))).toThrow(
      /version 2, this reads up to version 1.*newer Tidemark/s,
    );
    for (const version of [0, -1, 1.5, "1", null]) {
      expect(() => readPlanJson(changed(["version"], version))).toThrow("there is no version in it");
    }
  });

  it.each([
    [["heightBytes"], 1e300, "heightBytes: 1e+300 is not a whole number"],
    [["buffers", 0, "bytes"], -1, "buffers[0].bytes: -1 is not a whole number"],
    [["buffers", 0, "offset"], 2 ** 53, "buffers[0].offset: 9007199254740992 is not"],
    [["buffers", 0, "end"], 99, "buffers[0].end: 99 is not an index below 4"],
    [["buffers", 0, "end"], 0, "lives for steps [0, 0): none"],
    [["buffers", 1, "offset"], 1e6, "above the arena's"],
    [["buffers", 0, "kind"], "<b>", 'buffers[0].kind: "<b>" is not one of persistent'],
    [["values", 0, "buffer"], 77, "values[0].buffer: 77 is not an index below 4"],
    [["values", 0, "name"], { toString: "x" }, "values[0].name: an object is not text"],
    [["steps", 0, "reads"], [3, 9], "steps[0].reads[1]: 9 is not an index below 4"],
    [["steps", 0, "alias"], "no", "steps[0].alias: is neither true nor false"],
    [["values"], "many", "is not a list"],
    [["alignment"], 0, "alignment"],
  ])("with %j = %j is refused with the place and the reason", (path, value, message) => {
    expect(() => readPlanJson(changed(path, value))).toThrow(message);
  });

  /** Every field of a plan with a loop's body in it, with its place as messages write it. */
  function fieldsOf(
    data: unknown,
    path: readonly (string | number)[] = [],
  ): (readonly [string, typeof path, unknown])[] {
    const entries: (readonly [string | number, unknown])[] = Array.isArray(data)
      ? data.map((item, i) => [i, item] as const)
      : Object.entries(data as object);
    return entries.flatMap(([key, value]) => {
      const place = [...path, key];
      const name = place.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("");
      const own = [[name.replace(/^\./, ""), place, value] as const];
      return typeof value === "object" && value !== null ? [...own, ...fieldsOf(value, place)] : own;
    });
  }

  const nested = (): PlanJson => {
    const plan = small();
    const [first, ...rest] = plan.steps;
    const story = ["It lies at 0."];
    const values = plan.values.map((value) => ({ ...value, again: false, story }));
    return { ...plan, values, steps: [{ ...first!, kernel: "matmul", where: "a.ts:1:2", bodies: [small()] }, ...rest] };
  };

  const WRONG: readonly unknown[] = [null, true, 7.5, -3, "x", "", {}, [], undefined];
  const kindOf = (value: unknown): string => {
    if (Array.isArray(value)) return "list";
    return value === null ? "null" : typeof value;
  };
  /** Fields for which there may be nothing. */
  const MAY_BE_NULL = /(^budgetBytes|\.budgetBytes|\.over|\.replacement|copies\[\d+\]\.param|\.where)$/;
  const MAY_BE_MISSING = /\.(again|story|kernel|bodies)$/;

  it("with a field of the wrong type is refused by its name, whichever field and type", () => {
    const accepted: string[] = [];
    const whole = JSON.stringify(nested());
    for (const [name, path, value] of fieldsOf(JSON.parse(whole))) {
      for (const wrong of WRONG) {
        if (kindOf(wrong) === kindOf(value) && !(typeof wrong === "number")) continue;
        if (wrong === null && MAY_BE_NULL.test(name)) continue;
        if (wrong === undefined && (MAY_BE_MISSING.test(name) || typeof path.at(-1) === "number")) continue;
        if (wrong === "" && value === null && name.endsWith("where")) continue;
        if (wrong === "x" && value === null && name.endsWith("where")) continue;
        const plan = JSON.parse(whole) as Record<string | number, unknown>;
        let at = plan;
        for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
        at[path.at(-1) as string] = wrong;
        try {
          readPlanJson(JSON.stringify(plan));
          accepted.push(`${name} = ${JSON.stringify(wrong)}`);
        } catch (error) {
          expect(error).toBeInstanceOf(TidemarkError);
          if (name !== "version") expect((error as Error).message).toContain(`${name}: `);
        }
      }
    }
    expect(accepted).toEqual([]);
  });

  it("that is no text is refused", () => {
    for (const text of [undefined, null, 3, {}, new Uint8Array(2), small()]) {
      expect(() => readPlanJson(text as unknown as string)).toThrow(/ParseError: plan file: .* is not text/);
    }
  });

  it("in which storage is taken over in a circle is refused", () => {
    const text = changed(
      ["values"],
      small().values.map((v, i, all) => ({ ...v, over: (i + 1) % all.length })),
    );
    expect(() => readPlanJson(text)).toThrow("leads back to itself");
    expect(() => readPlanJson(changed(["values", 0, "over"], 0))).toThrow("values[0].over: leads back to itself");
  });

  it("with plans inside plans without end is refused, and so are brackets without end", () => {
    let text = JSON.stringify(small());
    for (let depth = 0; depth < 40; depth++) text = changed(["steps", 0, "bodies"], [JSON.parse(text)]);
    expect(() => readPlanJson(text)).toThrow("more than 32 plans inside each other");
    expect(() => readPlanJson("[".repeat(200_000))).toThrow(TidemarkError);
  });

  it("names a few faults of many", () => {
    const text = changed(
      ["values"],
      Array.from({ length: 500 }, () => 1),
    );
    expect(() => readPlanJson(text)).toThrow(/… \d{3,4} more/);
  });

  it("with any part replaced by junk is read or refused", () => {
    const junk = fc.oneof(fc.jsonValue(), fc.double(), fc.constantFrom("__proto__", "<script>", 1e308, -0));
    const keys = fc.constantFrom("buffers", "values", "steps", "params", "results", "copies");
    fc.assert(
      fc.property(keys, fc.nat(4), fc.string(), junk, (list, index, field, value) => {
        try {
          readPlanJson(changed([list], { ...small()[list], [index]: { [field]: value } }));
          readPlanJson(changed([list], [value]));
        } catch (error) {
          expect(error).toBeInstanceOf(TidemarkError);
        }
      }),
      { seed: 3, numRuns: 200 },
    );
  });
});
