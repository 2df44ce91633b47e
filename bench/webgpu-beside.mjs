/**
 * @file Training steps on WebGPU beside jax-js, both on the same adapter, in Node, through the package `webgpu`: milliseconds of a step
 * that ends when its loss is read, and the bytes of all buffers that are there at once, counted alike (webgpu-preload.mjs). Processes
 * alternate, the fastest step counts. Needs a build and the peers' harness.
 *
 *   WEBGPU_PACKAGE=FILE node bench/webgpu-beside.mjs [PROGRAM…] [--rounds=2] [--seconds=10] [--harness=FOLDER] [--json]
 *
 * Programs: mlp, cnn, lstm, gpt, chain64, chain256; default: mlp and gpt. The adapter is the one that Vulkan finds (VK_ICD_FILENAMES).
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { HARNESS, installPeers, PEERS_FOLDER, PROGRAMS, prepareHarness, say } from "./peer-runners.mjs";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "2" },
    seconds: { type: "string", default: "10" },
    harness: { type: "string", default: HARNESS },
    /** A folder that has the harness with its packages. */
    peers: { type: "string" },
    json: { type: "boolean" },
  },
});

/** Without packages of its own, the harness is copied and gets them. */
function peersFolder() {
  if (options.peers) return options.peers;
  prepareHarness(options.harness);
  const missing = installPeers();
  if (missing === null) return PEERS_FOLDER;
  say(missing);
  process.exit(1);
}

const peers = peersFolder();
const LONGEST = 300e3;
const WORKLOADS = Object.fromEntries(Object.entries(PROGRAMS).map(([workload, program]) => [program, workload]));
const stopwatch = ["--warmup=3", "--minSteps=3", `--maxSeconds=${options.seconds}`];

/** Milliseconds of the fastest step, and the most bytes of buffers; or why there are none. */
function measured(words) {
  const args = ["--import", path("webgpu-preload.mjs"), ...words, ...stopwatch];
  const made = spawnSync(process.execPath, args, {
    cwd: peers,
    encoding: "utf8",
    timeout: LONGEST,
    maxBuffer: 1 << 26,
  });
  const said = (word) => {
    const line = made.stdout?.split("\n").find((text) => text.startsWith(`${word} `));
    return line ? JSON.parse(line.slice(word.length)) : null;
  };
  const [result, buffers] = [said("RESULT"), said("BUFFERS")];
  if (result === null || result.error) {
    return { error: result?.error ?? made.stderr?.trim().split("\n").at(-1) ?? `status ${made.status}` };
  }
  return { ms: result.minMs, bytes: buffers.peakBytes, losses: result.losses };
}

const sides = {
  tidemark: (program) => [path("peer-step.mjs"), peers, `--program=${program}`, "--target=webgpu"],
  "jax-js": (program) => [join(peers, "jaxjs.mjs"), `--workload=${WORKLOADS[program]}`, "--device=webgpu"],
};

/** The fastest of all rounds. */
const fastest = (rows) => rows.reduce((best, row) => (best?.ms <= row.ms ? best : row), undefined);

function compare(program) {
  const rows = { tidemark: [], "jax-js": [] };
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [side, words] of Object.entries(sides)) rows[side].push(measured(words(program)));
  }
  const [own, other] = Object.values(rows).map((all) => fastest(all.filter(({ error }) => !error)) ?? all[0]);
  const failed = Object.entries({ tidemark: own, "jax-js": other }).filter(([, { error }]) => error);
  if (failed.length > 0) return { program, problem: failed.map(([side, { error }]) => `${side}: ${error}`).join("; ") };
  const losses = Math.max(...own.losses.slice(0, 5).map((loss, i) => Math.abs(loss / other.losses[i] - 1)));
  return { program, own, other, losses };
}

const MIB = 2 ** 20;
function figuresOf({ own, other, problem, losses }) {
  if (problem) return [problem];
  const [ms, mib] = [[own.ms, other.ms], [own.bytes, other.bytes].map((bytes) => bytes / MIB)];
  const texts = [...ms.map((one) => one.toFixed(2)), (other.ms / own.ms).toFixed(2)];
  return [...texts, ...mib.map((one) => one.toFixed(1)), losses.toExponential(1)];
}

const rows = [];
for (const program of positionals.length > 0 ? positionals : ["mlp", "gpt"]) {
  if (!(program in WORKLOADS)) throw new Error(`no program ${program}: there are ${Object.keys(WORKLOADS).join(", ")}`);
  const row = compare(program);
  rows.push(row);
  if (options.json) console.log(JSON.stringify(row));
}
if (!options.json) {
  console.log("| | Tidemark, ms | jax-js, ms | jax-js / Tidemark | Tidemark, MiB | jax-js, MiB | losses differ by |");
  console.log("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
  for (const row of rows) console.log(`| ${[row.program, ...figuresOf(row)].join(" | ")} |`);
}
process.exit(rows.some(({ problem }) => problem) ? 1 : 0);
