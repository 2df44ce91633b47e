/**
 * @file Every built-in program against the roof of this machine: `tidemark bench PROGRAM --roofline`, each in a process
 * of its own, as one table. Peaks are measured together with every program, so that other load affects both. Needs a
 * build.
 *
 *   node bench/roofline.mjs [NAME …] [--write] [-- options of tidemark bench]
 *
 * `roof` is what the step takes if products ran at their peak, memory at its bandwidth and nothing else took time;
 * `share` is that over the step. `moved` is bytes that loops go over against each operand of each kernel once, and
 * against inputs and results of the whole step once. The last line is the peak that no product can pass. `--write` puts
 * the table into docs/speed.md.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { registerPeak } from "./roofline-peak.mjs";
import { publish } from "./speed-page.mjs";

const ALL = ["mlp", "cnn", "lstm", "gpt", "chain64", "chain256"];
const HEADS = ["program", "step, ms", "GFLOP", "MB", "peak GFLOP/s", "GB/s", "in caches"];
const SHARES = ["roof, ms", "share", "products", "bytes", "moved / kernels", "moved / least"];

const bin = fileURLToPath(new URL("../bin/tidemark.js", import.meta.url));
const argv = process.argv.slice(2);
const cut = argv.indexOf("--");
const words = cut < 0 ? argv : argv.slice(0, cut);
const options = cut < 0 ? [] : argv.slice(cut + 1);
const names = words.filter((word) => word !== "--write");
const write = words.includes("--write");
const target = options.includes("native") ? "native" : "wasm";

/** One program's row; a failure is a row too. */
function measure(name) {
  const args = [...process.execArgv, bin, "bench", name, "--roofline", "--json", ...options];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0) return [name, stderr.split("\n")[0]];
  const { roofline: roof, movedBytes, kernelBytes, leastBytes } = JSON.parse(stdout.trimEnd().split("\n").at(-1));
  const { flops, bytes, cachedBytes } = roof.peaks;
  const percent = (x) => `${(100 * x).toFixed(0)} %`;
  return [
    ...[name, roof.stepMs.toFixed(2), (roof.productFlops / 1e9).toFixed(2), (roof.bytes / 1e6).toFixed(1)],
    ...[flops, bytes, cachedBytes].map((rate) => (rate / 1e9).toFixed(0)),
    ...[roof.roofMs.toFixed(2), percent(roof.share), percent(roof.flopShare), percent(roof.byteShare)],
    ...[kernelBytes, leastBytes].map((least) => (movedBytes / least).toFixed(2)),
  ];
}

const line = (cells) => `| ${cells.join(" | ")} |`;
const heads = [...HEADS, ...SHARES];
const rows = (names.length > 0 ? names : ALL).map(measure);
const peak = registerPeak();
const said = typeof peak === "string" ? `not measured (${peak})` : `${(peak / 1e9).toFixed(0)} GFLOP/s`;
const text = [
  ...[heads, heads.map((_, i) => (i === 0 ? "---" : "---:")), ...rows].map(line),
  `\nFused multiply-adds in registers, one core: ${said}.`,
].join("\n");
publish(`roofline ${target}`, text, write);
