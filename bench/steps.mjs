/**
 * @file Every built-in program in one table: step time, arena, how close it is to its bound, compile time. Each runs in a
 * process of its own, as a user would run it. Needs a build.
 *
 *   node bench/steps.mjs [NAME …] [-- options of tidemark bench]
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const ALL = ["mlp", "cnn", "lstm", "gpt", "chain64", "chain256"];
const COLUMNS = ["program", "step ms", "p10", "p90", "GFLOP/s", "arena MB", "/ bound", "RSS MB", "compile ms", "loss"];

const bin = fileURLToPath(new URL("../bin/tidemark.js", import.meta.url));
const argv = process.argv.slice(2);
const cut = argv.indexOf("--");
const names = cut < 0 ? argv : argv.slice(0, cut);
const options = cut < 0 ? [] : argv.slice(cut + 1);

/** One program's row; a failure is a row too. */
function measure(name) {
  const args = [...process.execArgv, bin, "bench", name, "--json", ...options];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0) return [name, stderr.split("\n")[0]];
  const r = JSON.parse(stdout.trimEnd().split("\n").at(-1));
  const { median, p10, p90 } = r.stepMs;
  return [
    name,
    ...[median, p10, p90, r.totalFlops / median / 1e6].map((x) => x.toFixed(1)),
    (r.arenaBytes / 1e6).toFixed(1),
    (r.arenaBytes / r.lowerBoundBytes).toFixed(3),
    r.peakRssBytes === null ? "?" : ((r.peakRssBytes - r.baselineRssBytes) / 1e6).toFixed(1),
    r.compileMs.toFixed(0),
    r.losses.at(-1).toPrecision(6),
  ];
}

const line = (cells) => cells.map((cell, i) => (i === 0 ? cell.padEnd(9) : cell.padStart(11))).join("");
console.log(line(COLUMNS));
for (const name of names.length > 0 ? names : ALL) console.log(line(measure(name)));
