/**
 * @file Training steps in Chromium beside TensorFlow.js and jax-js, all on WebAssembly and one thread: milliseconds of a step, the least of all
 * rounds, each in a page of its own, alternating. All must print the same losses. Tidemark runs with relaxed SIMD, where the browser has it,
 * and without.
 *
 *   node bench/peers-browser.mjs [mlp|cnn|lstm|gpt|chain64 …] [--rounds=2] [--seconds=6] [--write]
 *
 * Needs Chromium (CHROMIUM names it) and the peers' harness, as bench/peers.mjs does.
 */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { rolldown } from "rolldown";
import { HARNESS, installPeers, PEERS_FOLDER, PROGRAMS, prepareHarness, say } from "./peer-runners.mjs";
import { circumstances, publish } from "./speed-page.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ harness: { type: "string", default: HARNESS }, rounds: { type: "string", default: "2" } },
    ...{ seconds: { type: "string", default: "6" }, write: { type: "boolean" } },
  },
});
const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const WORKLOADS = Object.fromEntries(Object.entries(PROGRAMS).map(([letter, name]) => [name, letter]));
const DETOURS = { cnn: ["--conv=im2col"], gpt: ["--embed=onehot"] };

/** In the place of the harness' own stopwatch, which reads files of the system: the same calls, by the page's clock. */
const STOPWATCH = `
const median = (a) => [...a].sort((x, y) => x - y)[a.length >> 1];
export const [rss, peakRss, baseline] = [() => 0, () => 0, () => 0];
export const report = (result) => { globalThis.RESULT = result; };
export const parseArgs = (argv) => Object.fromEntries(argv.map((a) => a.replace(/^--/, "").split("=")));
export async function measure(step, { maxSeconds = 6 } = {}) {
  const [losses, ms, began] = [[await step()], [], performance.now()];
  while (ms.length < 2 || (performance.now() - began < 1000 * maxSeconds && ms.length < 200)) {
    const start = performance.now();
    losses.push(await step());
    ms.push(performance.now() - start);
  }
  return { minMs: Math.min(...ms), medianMs: median(ms), steps: ms.length, losses: losses.slice(0, 3) };
}`;

/** What the pages of peers need of Node. */
const NODE = "export const createRequire = () => () => { throw new Error('no modules of Node in a page'); };";
const TENSORFLOW = `import * as tf from "@tensorflow/tfjs";
import { setWasmPaths } from "@tensorflow/tfjs-backend-wasm";
setWasmPaths("/tfjs/");
`;

const OWN = `
import { compile } from "${path("../src/api/index.ts")}";
import { BUILT_IN } from "${path("../src/cli/programs/built-in.ts")}";
import { measure, parseArgs, report } from "./measure.mjs";
const args = parseArgs(process.argv.slice(2));
const program = BUILT_IN.find(({ name }) => name === args.program);
const batch = program.batch();
const step = compile(program.step, { target: "wasm", donate: [0] });
let state = program.init();
report(await measure(async () => {
  const [next, loss] = step(state, ...batch);
  state = next;
  return loss.item();
}, { maxSeconds: Number(args.maxSeconds) }));
`;

/** A page's script from a module of the harness, or of this library. */
async function bundle(input, { relaxed = true } = {}) {
  const own = input === "own.mjs";
  const virtual = {
    "./measure.mjs": STOPWATCH,
    "node:module": NODE,
    "./node-worker-shim.mjs": "export const installWorkerShim = null;",
  };
  const plugin = {
    name: "pages",
    resolveId: (id) => (id in virtual || id === "own.mjs" ? { id: `\0${id}` } : null),
    load: (id) => (id === "\0own.mjs" ? OWN : (virtual[id.slice(1)] ?? null)),
    transform(code, id) {
      if (id.endsWith("/tfjs.mjs"))
        return TENSORFLOW + code.replace(/^const tf = .*$/m, "").replace(/^if .*tfjs-backend-wasm.*$/m, "");
      if (!relaxed && id.endsWith("wasm/features.ts")) return code.replace(/roundsOnce\(fusedProbes\(\)\)/, "false");
      return null;
    },
  };
  const made = await rolldown({
    input: own ? input : join(PEERS_FOLDER, input),
    plugins: [plugin],
    platform: "browser",
    logLevel: "silent",
  });
  const { output } = await made.generate({ format: "esm", codeSplitting: false });
  return output[0].code;
}

const RUNNERS = {
  tidemark: { script: "own", words: (name) => [`--program=${name}`] },
  "tidemark, no relaxed SIMD": { script: "plain", words: (name) => [`--program=${name}`] },
  "jax-js": { script: "jaxjs", words: (name) => [`--workload=${WORKLOADS[name]}`, "--minSteps=2"] },
  "TensorFlow.js": {
    script: "tfjs",
    words: (name) => ["--backend=wasm", `--workload=${WORKLOADS[name]}`, ...(DETOURS[name] ?? [])],
  },
};

function serve(scripts) {
  const wasm = dirname(join(PEERS_FOLDER, "node_modules/@tensorflow/tfjs-backend-wasm/dist/x"));
  const server = createServer(({ url = "/" }, response) => {
    const script = scripts[url.slice(1).replace(/\.js$/, "")];
    const isWasm = /^\/tfjs\/[\w-]+\.wasm$/.test(url);
    const other = isWasm ? "application/wasm" : "text/html";
    response.writeHead(200, { "Content-Type": script ? "text/javascript" : other });
    response.end(
      script ?? (isWasm ? readFileSync(join(wasm, url.slice("/tfjs/".length))) : "<!doctype html><title>step</title>"),
    );
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** Of one page: the result of the harness, or an error. */
async function measured(browser, url, { script, words }, name) {
  const page = await browser.newPage();
  page.setDefaultTimeout(600_000);
  try {
    await page.goto(url);
    const argv = ["", "", ...words(name), `--maxSeconds=${options.seconds}`];
    return await page.evaluate(
      async ([source, list]) => {
        globalThis.process = { argv: list, env: {}, exit: () => undefined };
        await import(source);
        return globalThis.RESULT;
      },
      [`/${script}.js`, argv],
    );
  } finally {
    await page.close();
  }
}

prepareHarness(options.harness);
const missing = installPeers();
if (missing) throw new Error(missing);
const [own, plain, jaxjs, tfjs] = await Promise.all([
  ...[bundle("own.mjs"), bundle("own.mjs", { relaxed: false })],
  ...[bundle("jaxjs.mjs"), bundle("tfjs.mjs")],
]);
const server = await serve({ own, plain, jaxjs, tfjs });
const { address, port } = server.address();
const url = `http://${address}:${port}/`;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const rows = [];
for (const name of positionals.length > 0 ? positionals : ["mlp", "lstm", "gpt"]) {
  const best = {};
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [runner, how] of Object.entries(RUNNERS)) {
      const found = await measured(browser, url, how, name).catch((error) => ({ error: String(error) }));
      say(
        `${name} ${runner}: ${found.error ?? `${found.minMs.toFixed(1)} ms, median ${found.medianMs.toFixed(1)}, losses ${found.losses}`}`,
      );
      if (!found.error) best[runner] = Math.min(best[runner] ?? Infinity, found.minMs);
    }
  }
  rows.push({ name, best });
}
const version = browser.version();
await browser.close();
server.close();

const names = Object.keys(RUNNERS);
const line = (cells) => `| ${cells.join(" | ")} |`;
const digits = (x) => (x === undefined ? "–" : Number(x.toPrecision(3)));
const table = [
  line(["step, ms", ...names, "jax-js / tidemark", "TensorFlow.js / tidemark"]),
  line(["---", ...Array(names.length + 2).fill("---:")]),
  ...rows.map(({ name, best }) => {
    const ratios = ["jax-js", "TensorFlow.js"].map((peer) =>
      best[peer] ? `${digits(best[peer] / best.tidemark)} ×` : "–",
    );
    return line([name, ...names.map((runner) => digits(best[runner])), ...ratios]);
  }),
].join("\n");
publish("browser peers", table, options.write, circumstances().replace(/Node [\d.]+/, `Chromium ${version}`));
