/**
 * @file Training with products in bf16 and f16 beside f32: bytes of the arena, losses, and bits at several budgets.
 *
 *   npm run bench:half [-- --steps 200 --targets wasm,native --programs gpt,vit --budgets 10]
 *
 * Arenas are store-all plans with the state donated. `loss` is the largest difference of a step's loss from that of f32, relative to it.
 * With budgets, the program runs at so many from the whole arena down to 0.55 of it (or as low as it goes); the hashes of its state
 * after ten steps must be one.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";

const ROOT = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "200" },
    targets: { type: "string", default: "wasm,native" },
    programs: { type: "string", default: "gpt,vit" },
    budgets: { type: "string", default: "10" },
  },
});

const PROGRAMS = { gpt: "gpt", vit: "bench/networks/vit.mjs" };
const FORMS = {
  f32: [],
  "bf16, f32 stream": ["--products", "bf16"],
  "bf16, bf16 stream": ["--products", "bf16", "--stream", "bf16"],
  "f16, f32 stream": ["--products", "f16"],
};

function tidemark(...args) {
  const run = spawnSync(process.execPath, ["bin/tidemark.js", ...args, "--json"], { cwd: ROOT, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`tidemark ${args.join(" ")}\n${run.stderr}`);
  return JSON.parse(run.stdout.trim().split("\n").at(-1));
}

const percent = (x) => `${(100 * x).toFixed(3)} %`;
const mebibytes = (bytes) => (bytes / 2 ** 20).toFixed(2);

/** Distinct hashes of the state after ten steps, at budgets from all to 0.55 of the arena. */
function hashes(program, target, form, arenaBytes) {
  const found = new Set();
  const count = Number(values.budgets);
  let ran = 0;
  for (let i = 0; i < count; i++) {
    const budget = Math.ceil(arenaBytes * (1 - (0.45 * i) / Math.max(1, count - 1)));
    const planned = tidemark("plan", program, "--target", target, "--memory", String(budget), ...form);
    if (!planned.feasible) continue;
    found.add(
      tidemark("bench", program, "--target", target, "--steps", "10", "--memory", String(budget), ...form).stateHash,
    );
    ran++;
  }
  return `${found.size} of ${ran}`;
}

console.log(
  "| program, target | types | arena MiB | of f32 | over persistent | loss, largest difference | hashes at budgets |",
);
console.log("| --- | --- | --- | --- | --- | --- | --- |");
for (const name of values.programs.split(",")) {
  for (const target of values.targets.split(",")) {
    let plain = null;
    for (const [form, options] of Object.entries(FORMS)) {
      const run = tidemark("bench", PROGRAMS[name], "--target", target, "--steps", values.steps, ...options);
      plain ??= run;
      const losses = run.losses.map((loss, i) => Math.abs(loss / plain.losses[i] - 1));
      const row = [
        `${name}, ${target}`,
        form,
        mebibytes(run.arenaBytes),
        (run.arenaBytes / plain.arenaBytes).toFixed(3),
        (run.ephemeralBytes / plain.ephemeralBytes).toFixed(3),
        `${percent(Math.max(...losses))} (last loss ${run.losses.at(-1).toFixed(4)})`,
        Number(values.budgets) > 0 ? hashes(PROGRAMS[name], target, options, run.arenaBytes) : "",
      ];
      console.log(`| ${row.join(" | ")} |`);
    }
  }
}
