/**
 * @file The peak of resident memory beside PyTorch's, on one thread: the programs of the peers' harness, and the networks of
 * bench/networks in both. Every figure is VmHWM of a process of its own, less what it had after the import. Needs Linux, a
 * build (`npm run build`), PyTorch (Debian: python3-torch) and, for the first rows, the harness.
 *
 *   node bench/resident.mjs [--only=REGEX] [--write] [--json]
 *
 * `--write` puts the table into docs/speed.md.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { HARNESS, PROGRAMS, prepareHarness, runners, runOnce, say } from "./peer-runners.mjs";
import { publish } from "./speed-page.mjs";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const NETWORKS = ["resnet18", "vit", "unet", "mobilenet"];

const { values: options } = parseArgs({
  options: {
    ...{ only: { type: "string", default: "" }, write: { type: "boolean" }, json: { type: "boolean" } },
    harness: { type: "string", default: HARNESS },
  },
});
const wanted = (name) => new RegExp(options.only).test(name);

/** The last line that a command prints, as JSON. */
function printed(command, ...words) {
  const env = { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" };
  const made = spawnSync(command, words, { env, encoding: "utf8", maxBuffer: 1 << 26 });
  if (made.status !== 0) throw new Error(`${words.join(" ")}: ${made.stderr}`);
  return JSON.parse(made.stdout.trim().split("\n").at(-1));
}

function ours(program, target) {
  const words = ["bench", program, "--target", target, "--steps", "5", "--json"];
  const { arenaBytes, peakRssBytes, baselineRssBytes } = printed(
    process.execPath,
    path("../bin/tidemark.js"),
    ...words,
  );
  return { arenaBytes, peakBytes: peakRssBytes - baselineRssBytes };
}

function row(name, program, torchBytes) {
  const [wasm, native] = ["wasm", "native"].map((target) => ours(program, target));
  say(`${name}: wasm ${wasm.peakBytes}, native ${native.peakBytes}, torch ${torchBytes}`);
  return { name, wasm, native, torchBytes };
}

/** One row for each program. */
function* rows() {
  const torch = runners({}).find(({ name }) => name === "torch 1t");
  const ofHarness = Object.entries(PROGRAMS).filter(([, name]) => wanted(name));
  if (ofHarness.length > 0) prepareHarness(options.harness);
  for (const [workload, name] of ofHarness) {
    const { error, peakRssBytes } = runOnce(torch, workload);
    if (error) throw new Error(`PyTorch, ${name}: ${error}`);
    yield row(name, name, peakRssBytes);
  }
  for (const name of NETWORKS.filter(wanted)) {
    const { peakRssBytes } = printed("/usr/bin/python3", path("networks/networks.py"), name);
    yield row(`${name}.mjs`, path(`networks/${name}.mjs`), peakRssBytes);
  }
}

const mb = (bytes) => (bytes / 1e6).toFixed(1);

function table(found) {
  const heads = ["peak resident, MB", "arena wasm", "wasm", "arena native", "native", "PyTorch", "PyTorch / native"];
  const lines = found.map(({ name, wasm, native, torchBytes }) => [
    ...[name, mb(wasm.arenaBytes), mb(wasm.peakBytes), mb(native.arenaBytes), mb(native.peakBytes), mb(torchBytes)],
    `${(torchBytes / native.peakBytes).toFixed(2)} ×`,
  ]);
  const rule = heads.map((_, i) => (i === 0 ? "---" : "---:"));
  return [heads, rule, ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const found = [...rows()];
if (options.json) console.log(JSON.stringify(found));
else publish("resident", table(found), options.write);
