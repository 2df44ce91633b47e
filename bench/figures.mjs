/**
 * @file The table of figures in README.md: every built-in program through `tidemark bench`, each in a process of its own.
 * Needs a build (`npm run build`) and a quiet machine.
 *
 *   node bench/figures.mjs            prints the table
 *   node bench/figures.mjs --write    puts it into README.md
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const PROGRAMS = ["mlp", "cnn", "lstm", "gpt", "chain64", "chain256"];
const STEPS = "30";
const file = (path) => new URL(`../${path}`, import.meta.url);

function measure(program) {
  const args = [file("bin/tidemark.js").pathname, "bench", program, "--steps", STEPS, "--json"];
  const output = execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return JSON.parse(output.trim().split("\n").at(-1));
}

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
const ms = (value) => value.toFixed(value < 100 ? 1 : 0);

function row(f) {
  const { median, p10, p90 } = f.stepMs;
  const cells = [
    f.program,
    ms(median),
    `${ms(p10)} – ${ms(p90)}`,
    (f.totalFlops / median / 1e6).toFixed(1),
    megabytes(f.arenaBytes),
    (f.arenaBytes / f.lowerBoundBytes).toFixed(3),
    megabytes(f.persistentBytes),
    f.kernelCalls,
    ms(f.compileMs),
  ];
  return `| ${cells.join(" | ")} |`;
}

const heads = [
  "program",
  "step, ms",
  "p10 – p90",
  "GFLOP/s",
  "arena, MB",
  "arena / bound",
  "persistent, MB",
  "kernel calls",
  "compile, ms",
];
const table = [
  `| ${heads.join(" | ")} |`,
  `| ${heads.map((_, i) => (i === 0 ? "---" : "---:")).join(" | ")} |`,
  ...PROGRAMS.map((program) => row(measure(program))),
].join("\n");

if (process.argv.includes("--write")) {
  const before = readFileSync(file("README.md"), "utf8");
  const after = before.replace(/(<!-- figures -->\n)[\s\S]*?(<!-- end -->)/, `$1${table}\n$2`);
  writeFileSync(file("README.md"), after);
} else {
  console.log(table);
}
