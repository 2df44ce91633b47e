/**
 * @file How long a user waits before the first step: importing the package, tracing, planning and compiling, the first
 * and the second start of native code, and the size of the package. Every figure is of fresh processes; the least and
 * the median of several, by the clock and by the processor, because other work on the machine lengthens the first
 * alone. Needs a build (`npm run build`).
 *
 *   node bench/startup.mjs [--runs=7] [--program=gpt] [--json|--write]
 *
 * A first start has an empty cache folder; a second one finds the first one's native code, and its plan if
 * `tidemark/node` is imported.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { publish } from "./speed-page.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    ...{ runs: { type: "string", default: "7" }, program: { type: "string", default: "gpt" } },
    ...{ json: { type: "boolean" }, write: { type: "boolean" }, one: { type: "string" } },
  },
});

/** The goals, in milliseconds. */
const GOALS = { "import tidemark": 50, "wasm: trace, plan, compile": 1000 };

function stopwatch() {
  const [started, used] = [performance.now(), process.cpuUsage()];
  return () => {
    const { user, system } = process.cpuUsage(used);
    return { ms: performance.now() - started, cpuMs: (user + system) / 1000 };
  };
}

async function importing(...entries) {
  const look = stopwatch();
  for (const entry of entries) await import(`../dist/${entry}/index.js`);
  return look();
}

/** From the types of the arguments to a program that can run: parameters are made before. */
async function compiling(target, withNode = true) {
  const { compile } = await import("../dist/api/index.js");
  if (withNode) await import("../dist/node/index.js");
  const { ALL_PROGRAMS } = await import("../dist/cli/programs/built-in.js");
  const program = ALL_PROGRAMS.find(({ name }) => name === options.program);
  const args = [program.init(), ...program.batch()];
  const look = stopwatch();
  compile(program.step, { donate: [0], target }).program(...args);
  return look();
}

const MEASURES = {
  "import tidemark": () => importing("api"),
  "import tidemark, /nn, /optim": () => importing("api", "nn", "optim"),
  "import tidemark/node": () => importing("node"),
  "wasm: trace, plan, compile": () => compiling("wasm", false),
  "wasm: second start": () => compiling("wasm"),
  "native: first start": () => compiling("native"),
  "native: second start": () => compiling("native"),
};

/** One measurement in a process of its own. */
function inOwnProcess(name, cache) {
  const words = [fileURLToPath(import.meta.url), `--one=${name}`, `--program=${options.program}`];
  const env = { ...process.env, TIDEMARK_CACHE: cache };
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8", env });
  if (status !== 0) return { error: stderr.split("\n").find((l) => /Error|Unsupported/.test(l)) ?? `status ${status}` };
  return JSON.parse(stdout);
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

function measureAll(name, runs) {
  const first = name.endsWith("first start");
  const shared = mkdtempSync(join(tmpdir(), "tidemark-startup-"));
  const found = [];
  if (name.endsWith("second start")) inOwnProcess(name, shared);
  for (let run = 0; run < runs; run++) {
    const cache = first ? mkdtempSync(join(tmpdir(), "tidemark-startup-")) : shared;
    found.push(inOwnProcess(name, cache));
    if (first) rmSync(cache, { recursive: true });
  }
  rmSync(shared, { recursive: true });
  const failed = found.find(({ error }) => error);
  if (failed) return { name, error: failed.error };
  const of = (key) => found.map((f) => f[key]);
  return {
    ...{ name, leastMs: Math.min(...of("ms")), medianMs: median(of("ms")) },
    ...{ leastCpuMs: Math.min(...of("cpuMs")), goalMs: GOALS[name] ?? null },
  };
}

function packageSize() {
  const words = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const { stdout } = spawnSync("npm", words, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 });
  const [{ size, unpackedSize, entryCount, files }] = JSON.parse(stdout);
  const bytesOf = (ending) => files.filter((f) => f.path.endsWith(ending)).reduce((sum, f) => sum + f.size, 0);
  return {
    ...{ packedBytes: size, unpackedBytes: unpackedSize, files: entryCount },
    ...{ codeBytes: bytesOf(".js"), mapBytes: bytesOf(".map"), typeBytes: bytesOf(".d.ts") },
  };
}

function text(rows, { packedBytes, unpackedBytes, files, codeBytes, mapBytes, typeBytes }) {
  const mega = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
  const parts = `${mega(codeBytes)} of code, ${mega(mapBytes)} of maps with their sources, ${mega(typeBytes)} of types`;
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const ms = (x) => x.toFixed(x < 100 ? 1 : 0);
  return [
    line(["start-up", "least, ms", "median, ms", "least of processor time, ms", "goal, ms"]),
    line(["---", "---:", "---:", "---:", "---:"]),
    ...rows.map((r) => {
      if (r.error) return line([r.name, r.error, "–", "–", r.goalMs ?? "–"]);
      return line([r.name, ms(r.leastMs), ms(r.medianMs), ms(r.leastCpuMs), r.goalMs ?? "–"]);
    }),
    "",
    `Package: ${mega(packedBytes)} packed, ${mega(unpackedBytes)} in ${files} files: ${parts}.`,
  ].join("\n");
}

if (options.one !== undefined) {
  console.log(JSON.stringify(await MEASURES[options.one]()));
} else {
  const rows = Object.keys(MEASURES).map((name) => {
    // the compiler takes seconds, and nothing else does
    return measureAll(name, name.endsWith("first start") ? 1 : Number(options.runs));
  });
  const size = packageSize();
  if (options.json) console.log(JSON.stringify({ program: options.program, rows, size }));
  else publish("startup", text(rows, size), options.write);
}
