/**
 * @file How far the form that `bench --mesh auto` takes is from the fastest one that is measured, on processes of this machine:
 *
 *   npm run build && node bench/auto-form.mjs [--processes 4] [--programs gpt,chain64] [--budgets gpt=64MiB/12MiB] [--most 8] [--rounds 2]
 *                                             [--steps 20] [--json FILE]
 *
 * For each program and budget: the choice with the predicted times of all forms, then the forms that fit are measured in turn, round after
 * round, and of each the fastest tenth of its steps counts. Processor time is that of all ranks on the cores of the machine, the least median of
 * a round: other processes do not lengthen it, but it has the time that ranks spend on asking whether others are ready. `--most` measures that many of the fastest by prediction, and the first of each
 * mesh besides; 0 is all.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    processes: { type: "string", default: "4" },
    programs: { type: "string", default: "gpt,chain64" },
    budgets: { type: "string", default: "gpt=64MiB/12MiB,chain64=64MiB/24MiB" },
    most: { type: "string", default: "8" },
    rounds: { type: "string", default: "2" },
    steps: { type: "string", default: "20" },
    json: { type: "string" },
  },
});
const budgets = Object.fromEntries(
  values.budgets.split(",").map((part) => {
    const [name, list = ""] = part.split("=");
    return [name, list.split("/")];
  }),
);
const root = process.getuid?.() === 0 ? ["--allow-run-as-root"] : [];
const tidemark = fileURLToPath(new URL("../bin/tidemark.js", import.meta.url));

function bench(program, options) {
  const mpi = ["-n", values.processes, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", ...root];
  const argv = [...mpi, process.execPath, tidemark, "bench", program, ...options, "--json"];
  const out = execFileSync("mpirun", argv, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 2 ** 26,
  });
  return JSON.parse(out.trim().split("\n").at(-1));
}

/** Null where it fails: what it says is on stderr, and its row has no times. */
function tried(program, options) {
  try {
    return bench(program, options);
  } catch {
    return null;
  }
}

const cores = availableParallelism();
const loadNow = () => Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
const meshOf = ({ name }) =>
  name
    .split(",")
    .filter((part) => part.includes("="))
    .join();

/** The fastest by prediction, and the first of each mesh. */
function candidates(forms) {
  const fitting = forms.filter(({ fits }) => fits);
  const most = Number(values.most);
  if (most === 0) return fitting;
  const firsts = new Set([...new Map([...fitting].reverse().map((form) => [meshOf(form), form])).values()]);
  return fitting.filter((form, i) => i < most || firsts.has(form));
}

function compared(program, budget) {
  const { auto } = bench(program, ["--mesh", "auto", "--budget", budget, "--steps", "2"]);
  const { networkRate, messageSeconds } = auto.costs;
  const rates = ["--network", String(networkRate), "--latency", String(messageSeconds)];
  const rows = candidates(auto.forms).map((form) => ({
    ...form,
    measuredMs: Number.POSITIVE_INFINITY,
    cpuMs: Number.POSITIVE_INFINITY,
    load: 0,
  }));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const row of rows) {
      const load = loadNow();
      const found = tried(program, [...row.arguments, "--budget", budget, ...rates, "--steps", values.steps]);
      if (found === null) continue;
      if (found.stepMs.p10 < row.measuredMs) Object.assign(row, { measuredMs: found.stepMs.p10, load });
      const cpuMs = found.mesh.rankCpuMs.reduce((sum, ms) => sum + ms, 0) / cores;
      row.cpuMs = Math.min(row.cpuMs, cpuMs);
    }
  }
  const chosen = rows.find(({ name }) => name === auto.form);
  return { program, budget, costs: auto.costs, planned: auto.forms.length, rows, chosen };
}

const all = values.programs.split(",").flatMap((program) =>
  (budgets[program] ?? []).map((budget) => {
    const found = compared(program, budget);
    const { rows, chosen, planned, costs } = found;
    console.log(`\n${program}, ${budget} a device, ${planned} forms planned, ${rows.length} measured`);
    console.log(
      `network ${(costs.networkRate / 1e9).toFixed(2)} GB/s, ${(costs.messageSeconds * 1e6).toFixed(1)} µs a message`,
    );
    console.log("| form | predicted ms | measured ms | processor ms | load |\n| --- | --- | --- | --- | --- |");
    for (const row of rows) {
      const mark = row === chosen ? " (auto)" : "";
      console.log(
        `| ${row.name}${mark} | ${row.predictedMs.toFixed(1)} | ${row.measuredMs.toFixed(1)} | ${row.cpuMs.toFixed(1)} | ${row.load} |`,
      );
    }
    const over = (key) => {
      const least = rows.reduce((a, b) => (b[key] < a[key] ? b : a));
      return `${(100 * (chosen[key] / least[key] - 1)).toFixed(1)} % over ${least.name}`;
    };
    console.log(`auto takes ${chosen.name}: ${over("measuredMs")}; in processor time ${over("cpuMs")}`);
    return found;
  }),
);
if (values.json) writeFileSync(values.json, `${JSON.stringify(all, null, 1)}\n`);
