/** @file A slice of the operator tests of ONNX: one test in twenty, and its derivative. All of them: `npm run test:onnx`. */
import { describe, expect, it } from "vitest";
import { differentiate } from "./differentiate.ts";
import { hasSuite, runCase, SUITE, type SuiteCase, suiteCases } from "./suite.ts";
import { hasTypes, tierOf } from "./tiers.ts";

if (!hasSuite())
  console.warn(`SKIPPED: the operator tests of ONNX (apt-get install libonnx-testdata) are not at ${SUITE}`);

/** The expected outputs were computed with an epsilon that the model lacks. */
const WRONG = ["node/test_adam_multiple"];
const EACH = 20;

const isSupported = ({ name, operators, types }: SuiteCase): boolean =>
  tierOf(operators) !== "outside" && hasTypes(types) && !WRONG.includes(name);

describe.skipIf(!hasSuite())("operator tests of ONNX", () => {
  const cases = hasSuite() ? suiteCases().filter(isSupported) : [];

  it("are as many as the documents say", () => {
    expect(cases.length).toBeGreaterThan(900);
  });

  it("pass, and have the right derivatives", () => {
    const wrong = cases
      .filter((_, i) => i % EACH === 7)
      .flatMap((one) => {
        const outcome = runCase(one);
        if (!outcome.passed || !outcome.binding) return [`${one.name}: ${outcome.message}`];
        const { verdict, message } = differentiate(one, outcome.binding);
        return verdict === "wrong" ? [`${one.name}: ${message}`] : [];
      });
    expect(wrong).toEqual([]);
  });
});
