/** @file Names, step texts and tables. */
import { expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import { nameValues } from "./names.ts";
import { stepText } from "./statement.ts";
import { listed, table } from "./table.ts";

it("names are unique, from hints where there are any, and cover operands that are not stored", () => {
  const b = new ProgramBuilder();
  const x = b.param("x", [4]);
  const constant = new ProgramBuilder().param("one", []);
  const [y, z] = [b.call("f", [x], { name: "x" }), b.call("f", [x])];
  const r = b.call("f", [y, z], { name: "r" });
  const program = b.finish("p", [r]);
  const last = program.steps[2]!;
  const steps = [...program.steps.slice(0, 2), { ...last, node: { ...last.node, inputs: [y, constant, z] } }];
  const nameOf = nameValues({ ...program, steps });
  expect([x, y, z, r, constant].map(nameOf)).toEqual(["x", "x_1", "x.f", "r", "one"]);
  expect(stepText(steps[2]!, nameOf, (v) => v !== constant)).toBe("r = f(x_1, x.f)");
  expect(stepText(steps[2]!, nameOf, () => true)).toBe("r = f(x_1, one, x.f)");
});

it("tables align their columns and lists are cut", () => {
  expect(
    table(
      [
        ["a", "1", "x"],
        ["bcd", "20", ""],
      ],
      ["left", "right", "left"],
    ),
  ).toEqual(["a     1  x", "bcd  20"]);
  expect(listed(["a", "b", "c"], 2)).toBe("a, b and 1 more");
});
