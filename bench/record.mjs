/**
 * @file Records what a refactoring of the compiler must not change: results to the bit, arenas, generated code, and
 * roughly the time of planning and of steps. Needs a build.
 *
 *   node bench/record.mjs --out before.json            on one commit
 *   node bench/record.mjs --against before.json        on another: a line for each difference, exit code 1 if there are any
 *
 * Recorded are the built-in training steps on both targets, with everything stored, at three budgets and at the
 * smallest; plans alone of those that take long to run; and loops and solvers with their reversals. `--only REGEX`
 * chooses among them. Arenas may shrink, and grow by 0.5 per cent; times are printed, not judged: they need a quiet
 * machine.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const { values } = parseArgs({
  options: {
    out: { type: "string" },
    against: { type: "string" },
    only: { type: "string", default: "" },
    one: { type: "string" },
  },
});

const MOST_GROWTH = 1.005;
const SHARES = [0.85, 0.7, 0.55];
const RUN = ["mlp", "cnn", "lstm", "gpt", "chain64"];
const PLANNED = ["unet", "resnet50", "gpt2-small"];
const TARGETS = ["wasm", "native"];

/** The last line of a command's output as JSON; its error output if it fails. */
function printed(...words) {
  const env = { ...process.env, TIDEMARK_PLAN_CACHE: "off" };
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { env, encoding: "utf8", maxBuffer: 1 << 28 });
  if (status === 0) return JSON.parse(stdout.trim().split("\n").at(-1));
  return { refused: stderr.split("\n").find((line) => /^\w+: /.test(line)) ?? `exit code ${status}` };
}

const KEPT = ["arenaBytes", "lowerBoundBytes", "strategy", "stateHash", "predictedMs", "recomputedNodes", "refused"];

function figures(made) {
  const kept = Object.fromEntries(KEPT.filter((name) => made[name] !== undefined).map((name) => [name, made[name]]));
  return { ...kept, planMs: made.planMs, stepMs: made.stepMs?.median };
}

/** A command of the program at every budget: names, and what makes the rows. */
function* atBudgets(command, program, target, ...options) {
  const bin = path("../bin/tidemark.js");
  const tidemark = (...words) =>
    figures(printed(bin, command, program, "--target", target, "--json", ...options, ...words));
  const name = `${command} ${program} ${target}`;
  let known;
  const stored = () => {
    known ??= tidemark();
    return known;
  };
  yield [name, stored];
  for (const share of SHARES) {
    yield [`${name} ${share}`, () => tidemark("--budget", `${Math.round(stored().arenaBytes * share)}`)];
  }
  yield [`${name} min`, () => tidemark("--budget", "min")];
}

function* rows() {
  for (const target of TARGETS) {
    for (const program of RUN) yield* atBudgets("bench", program, target, "--steps", "3");
    for (const name of Object.keys(LOOPS)) {
      yield [`loops ${name} ${target}`, () => printed(path("record.mjs"), "--one", `${name} ${target}`)];
    }
  }
  for (const program of PLANNED) {
    yield [`plan ${program}`, () => figures(printed(path("../bin/tidemark.js"), "plan", program, "--json"))];
  }
}

/** Programs with loops, by what is asked of their memory. */
const LOOPS = {
  "scan stored": {},
  "scan min": { memory: "min" },
  "scan budget": { memory: 60_000 },
  "while stored": {},
  "while min": { memory: "min" },
  "solver stored": {},
  "solver min": { memory: "min" },
};

async function loopProgram(kind) {
  const { grad, random, scan, tensor, whileLoop } = await import("../dist/api/index.js");
  const { odeint } = await import("../dist/sim/index.js");
  const [w, x] = [random.normal(random.key(1), [16, 16]).mul(0.3), random.normal(random.key(2), [8, 16])];
  const step = (h, v) => h.matmul(v).tanh().add(h.mul(0.5));
  const last = {
    scan: (v, h) => scan((state) => [step(state, v), []], h, null, { length: 100 })[0],
    while: (v, h) =>
      whileLoop(
        ([i]) => i.less(40),
        ([i, state]) => [i.add(1), step(state, v)],
        [tensor(0), h],
      )[1],
    solver: (v, h) => odeint((state) => step(state, v).neg(), h, { from: 0, to: 1 }),
  }[kind];
  return [grad((v, h) => last(v, h).square().mean()), [w, x]];
}

/** Results, arena and generated code of one of them. */
async function loopRow(name) {
  const [kind, budget, target] = name.split(" ");
  if (target === "native") await import("../dist/node/index.js");
  const { compile } = await import("../dist/api/index.js");
  const code = createHash("sha256");
  const { Module } = WebAssembly;
  WebAssembly.Module = class extends Module {
    constructor(bytes) {
      super(bytes);
      code.update(new Uint8Array(bytes));
    }
  };
  const [fn, args] = await loopProgram(kind);
  const compiled = compile(fn, { target, cache: false, ...LOOPS[`${kind} ${budget}`] });
  const bits = createHash("sha256").update(new Uint8Array(compiled(...args).data().buffer));
  const { arenaBytes, predictedMs, planMs } = compiled.program(...args);
  const codeHash = target === "wasm" ? { codeHash: code.digest("hex") } : {};
  return { arenaBytes, predictedMs, planMs, stateHash: bits.digest("hex"), ...codeHash };
}

/** A difference as text. */
function difference(before, now) {
  if (!before) return "is new";
  const changed = ["stateHash", "codeHash", "refused"].filter((name) => before[name] !== now[name]);
  const grown = now.arenaBytes / before.arenaBytes;
  return [
    ...changed.map((name) => `${name} was ${before[name]}, is ${now[name]}`),
    ...(grown > MOST_GROWTH ? [`arena ${before.arenaBytes} → ${now.arenaBytes}`] : []),
  ].join("; ");
}

if (values.one) console.log(JSON.stringify(await loopRow(values.one)));
else {
  const before = values.against ? JSON.parse(readFileSync(values.against, "utf8")) : null;
  const recorded = {};
  for (const [name, make] of rows()) {
    if (!new RegExp(values.only).test(name)) continue;
    const row = make();
    recorded[name] = row;
    const found = before ? difference(before[name], row) : "";
    if (found) process.exitCode = 1;
    const ms = (own) => [own?.predictedMs, own?.planMs, own?.stepMs].map((x) => x?.toFixed(2) ?? "-").join(" ");
    const times = before ? `${ms(before[name])} → ${ms(row)}` : ms(row);
    console.log(
      `${name}: ${row.arenaBytes ?? row.refused} | predicted, plan, step ms: ${times}${found ? `\n  DIFFERS ${found}` : ""}`,
    );
  }
  if (values.out) writeFileSync(values.out, `${JSON.stringify(recorded, null, 1)}\n`);
}
