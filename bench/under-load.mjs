/**
 * @file Step times under load: each tool first runs alone, then with one spinning process on every core. Needs what
 * bench/peers.mjs needs.
 *
 *   node bench/under-load.mjs [--only=REGEX] [--program=D] [--rounds=2] [--json|--write] [--harness=FOLDER]
 *
 * With t threads beside one spinning process on each of n cores, a fair share of the machine is n / (n + t) of a core
 * for each thread: 1.5 times as long with one thread on two cores, 2 times with two. Threads that wait for each other
 * while one of them is not running make it longer than that.
 */
import { spawn } from "node:child_process";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { HARNESS, PROGRAMS, prepareHarness, runners, runOnce, say } from "./peer-runners.mjs";
import { publish } from "./speed-page.mjs";

const { values: options } = parseArgs({
  options: {
    ...{ only: { type: "string", default: "wasm|native|torch" }, program: { type: "string", default: "A,D" } },
    ...{ rounds: { type: "string", default: "2" }, json: { type: "boolean" }, write: { type: "boolean" } },
    harness: { type: "string", default: HARNESS },
  },
});
const CORES = cpus().length;

/** Runs `work` while a process spins on every core. */
function underLoad(work) {
  const spinning = cpus().map(() => spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }));
  try {
    return work();
  } finally {
    for (const one of spinning) one.kill("SIGKILL");
  }
}

/** The least of several medians, quiet and under load. */
function measureTool(runner, workload) {
  const missing = runner.missing();
  if (missing !== null) return { error: missing };
  const best = { quiet: Number.POSITIVE_INFINITY, loaded: Number.POSITIVE_INFINITY };
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const [how, found] of [
      ["quiet", runOnce(runner, workload)],
      ["loaded", underLoad(() => runOnce(runner, workload))],
    ]) {
      if (found.error) return found;
      best[how] = Math.min(best[how], found.medianMs);
    }
  }
  return best;
}

prepareHarness(options.harness);
const rows = [];
for (const workload of options.program.split(",")) {
  for (const runner of runners({}).filter(({ name }) => new RegExp(options.only).test(name))) {
    const found = measureTool(runner, workload);
    const fair = (CORES + runner.threads) / CORES;
    const row = { program: PROGRAMS[workload], tool: runner.name, fair, ...found };
    say(found.error ? `SKIPPED ${row.tool}/${row.program}: ${found.error}` : JSON.stringify(row));
    if (!found.error) rows.push({ ...row, slowdown: found.loaded / found.quiet });
  }
}
const cells = ({ program, tool, quiet, loaded, slowdown, fair }) =>
  `| ${program} | ${tool} | ${quiet.toFixed(1)} | ${loaded.toFixed(1)} | ${slowdown.toFixed(2)} | ${fair.toFixed(2)} |`;
const head =
  "| program | | alone, ms | under load, ms | longer by | fair share |\n| --- | --- | ---: | ---: | ---: | ---: |";
if (options.json) console.log(JSON.stringify(rows));
else publish("under load", [head, ...rows.map(cells)].join("\n"), options.write);
