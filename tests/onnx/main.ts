/**
 * @file `npm run test:onnx`: all operator tests of Debian's libonnx-testdata, with derivatives against finite differences. Prints what
 * fails, writes the table of docs/onnx-results.md, and ends with an error where fewer tests pass than the document says.
 *
 *   npm run test:onnx            runs, compares with the table
 *   npm run test:onnx -- update  writes the table
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { differentiate } from "./differentiate.ts";
import { hasSuite, type Outcome, runCase, SUITE, type SuiteCase, suiteCases } from "./suite.ts";
import { hasTypes, type Tier, tierOf } from "./tiers.ts";

const PAGE = join(process.cwd(), "docs", "onnx-results.md");
const TIERS: readonly Tier[] = ["T1", "T2", "T3"];

interface Row extends Outcome {
  readonly one: SuiteCase;
  readonly tier: Tier;
  readonly slope: string;
  readonly slopeError: number;
}

function rowOf(one: SuiteCase): Row {
  const outcome = runCase(one);
  const found = outcome.passed && outcome.binding ? differentiate(one, outcome.binding) : null;
  if (found?.verdict === "wrong") console.error(`${one.name}: derivative: ${found.message}`);
  return { ...outcome, one, tier: tierOf(one.operators), slope: found?.verdict ?? "", slopeError: found?.error ?? 0 };
}

/** Tests of a tier and of those before it, with elements that tensors hold. */
function tierLine(rows: readonly Row[], tier: Tier): string {
  const within = rows.filter((row) => TIERS.indexOf(row.tier) >= 0 && TIERS.indexOf(row.tier) <= TIERS.indexOf(tier));
  const typed = within.filter(({ one }) => hasTypes(one.types));
  const count = (list: readonly Row[], test: (row: Row) => boolean): number => list.filter(test).length;
  const passed = (row: Row): boolean => row.passed;
  const cells = [
    ...[tier, within.length, count(within, passed), typed.length, count(typed, passed)],
    ...[count(typed, ({ slope }) => slope === "right"), count(typed, ({ slope }) => slope === "wrong")],
  ];
  return `| ${cells.join(" | ")} |`;
}

function operatorLine(name: string, rows: readonly Row[]): string {
  const own = rows.filter(({ one }) => one.operators.includes(name));
  const passed = own.filter((row) => row.passed);
  const worst = Math.max(0, ...passed.map(({ error }) => error));
  const slopes = own.filter(({ slope }) => slope === "right");
  const slopeWorst = Math.max(0, ...slopes.map(({ slopeError }) => slopeError));
  const power = (x: number): string => (x === 0 ? "0" : x.toExponential(0));
  return `| ${name} | ${own.length} | ${passed.length} | ${power(worst)} | ${slopes.length} | ${power(slopeWorst)} |`;
}

function pageOf(rows: readonly Row[]): string {
  const names = [...new Set(rows.flatMap(({ one }) => one.operators))].sort();
  const missed = rows.filter((row) => !row.passed && row.tier !== "outside");
  return [
    "# Operator tests of ONNX",
    "",
    "The operator tests of ONNX 1.12 (Debian's `libonnx-testdata`), run as compiled programs on WebAssembly at the suite's tolerance (1e-3",
    "relative, 1e-7 absolute), and differentiated: the slope of a random sum of all float results along a random direction of all float inputs",
    "and weights, against central differences in f64, within 1e-5. Written by `npm run test:onnx -- update`.",
    "",
    "T1 are the operators of current exports, T2 those of most networks, T3 adds control flow, recurrent networks, random numbers, optimizers and",
    "signals; each line has the tests of those before it. The last columns are of the tests whose elements are float, double, int32,",
    "int64 and bool only.",
    "",
    "| tier | tests | pass | with these types | pass | derivative right | wrong |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...TIERS.map((tier) => tierLine(rows, tier)),
    "",
    "Ten tests draw random numbers; their expected results are those of NumPy's generator, so what holds of every draw is checked. The expected results",
    "of test_adam_multiple were computed with an epsilon of 0.01, which its model lacks.",
    "",
    "Tests of these tiers that do not pass:",
    "",
    ...missed.map(({ one, message }) => `- ${one.name}: ${(message ?? "").replace(/^\w+: /, "").slice(0, 110)}`),
    "",
    "By operator; errors are the largest difference over the largest magnitude of a result.",
    "",
    "| operator | tests | pass | largest error | differentiated | largest error |",
    "| --- | --- | --- | --- | --- | --- |",
    ...names.map((name) => operatorLine(name, rows)),
    "",
  ].join("\n");
}

if (!hasSuite()) {
  console.error(`there is no ${SUITE}: apt-get install libonnx-testdata, or set ONNX_TESTDATA`);
  process.exit(1);
}
const page = pageOf(suiteCases().map(rowOf));
if (process.argv[2] === "update") writeFileSync(PAGE, page);
/** The lines of the tiers, whose numbers may not fall. */
const tiers = (text: string): string =>
  text
    .split("\n")
    .filter((line) => /^\| T\d/.test(line))
    .join("\n");
console.log(tiers(page));
if (tiers(readFileSync(PAGE, "utf8")) === tiers(page)) process.exit(0);
console.error(`docs/onnx-results.md says\n${tiers(readFileSync(PAGE, "utf8"))}`);
process.exit(1);
