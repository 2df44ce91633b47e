/**
 * @file The table "Memory compared with other tools" in README.md: the arena of every built-in program from `tidemark plan`,
 * next to the memory that other libraries took for the same training step. Needs a build (`npm run build`).
 *
 *   node bench/beside.mjs            prints the table
 *   node bench/beside.mjs --write    writes it into README.md
 *
 * The others' figures were measured once, as peak resident memory of the process over what it had after importing the
 * library, in MB; each is the best that the library reached: PyTorch 1.13 on one thread with and without checkpointing,
 * TensorFlow.js 4.22 on its WebAssembly and its plain backend, jax-js 0.1.25 compiled and eager.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const OTHERS = {
  mlp: [32, 69, 67],
  cnn: [44, 106, 69],
  lstm: [63, 240, 362],
  gpt: [122, 544, 664],
  chain64: [156, 237, 616],
  chain256: [583, 831, 3526],
};
const file = (path) => new URL(`../${path}`, import.meta.url);

function arenaMegabytes(program) {
  const args = [file("bin/tidemark.js").pathname, "plan", program, "--json"];
  const output = execFileSync(process.execPath, args, { encoding: "utf8" });
  return JSON.parse(output.trim().split("\n").at(-1)).arenaBytes / 1e6;
}

const rows = Object.entries(OTHERS).map(([program, others]) => {
  const arena = arenaMegabytes(program);
  const shares = others.map((other) => (arena / other).toFixed(2));
  return [program, arena.toFixed(1), ...others, ...shares];
});
const heads = [
  "program",
  "arena, MB",
  "PyTorch",
  "TensorFlow.js",
  "jax-js",
  "arena / PyTorch",
  "/ TensorFlow.js",
  "/ jax-js",
];
const line = (cells) => `| ${cells.join(" | ")} |`;
const table = [line(heads), line(heads.map((_, i) => (i === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");

if (process.argv.includes("--write")) {
  const before = readFileSync(file("README.md"), "utf8");
  const after = before.replace(/(<!-- beside -->\n)[\s\S]*?(<!-- end -->)/, `$1${table}\n$2`);
  writeFileSync(file("README.md"), after);
} else {
  console.log(table);
}
