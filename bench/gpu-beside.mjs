/**
 * @file Tidemark beside PyTorch on one NVIDIA GPU, for docs/speed.md: GPT-2 small over budgets, ResNet-50, the six small programs,
 * products, gaps between kernels. Everything in one call, so that both sides have the same machine in the same hour.
 *
 *   node bench/gpu-beside.mjs --spec FOLDER --anchors FILE --kernels FILE [--out FOLDER] [SECTION…]     where there is a GPU
 *   node bench/gpu-beside.mjs --from FILE [--write]                                                     the tables, anywhere
 *
 *   --spec       the folder of spec.py, from which both sides start (the peers' harness, bench/peer-runners.mjs)
 *   --anchors    a script with PyTorch's variants of GPT-2 small and ResNet-50, which prints a line of JSON for each
 *   --kernels    bench/cuda.ts as a bundle
 *   --tidemark   the command's file; default: bin/tidemark.js
 *   --seconds    for each measurement at most; default: 150
 *   --until      when everything has to be over, in milliseconds since 1970; default: never
 *
 * Sections: gpt2, bf16, resnet, small, products, gaps, torch and torch_bf16 (the anchors), torch_small, host; default: all.
 * Every figure is written to OUT/gpu-beside.json as soon as it is there; a call that continues another one measures what is missing.
 * bench/gpu-session.mjs calls this with everything that it needs on a bare machine.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchWords, LARGE } from "./gpu-programs.mjs";
import { circumstances, publish } from "./speed-page.mjs";

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const text = (value) => ({ type: "string", ...(value === undefined ? {} : { default: value }) });
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ spec: text(), anchors: text(), kernels: text(), out: text("."), from: text(), python: text("python3") },
    ...{ tidemark: text(path("../bin/tidemark.js")), seconds: text("150"), write: { type: "boolean" } },
    ...{ until: text("Infinity") },
  },
});

const SMALL = ["mlp", "cnn", "lstm", "gpt", "chain64", "chain256"];
/** Milliseconds below which nothing is begun. */
const LEAST = 8000;
const MIB = 2 ** 20;
const LONGEST = 1000 * Number(options.seconds);
/** Compilers of several variants run one after the other. */
const ANCHORS_SECONDS = 500;

// ---- measuring ------------------------------------------------------------------------------------------------------

const file = join(options.out, "gpu-beside.json");
const rows = [];

function add(row) {
  rows.push(row);
  writeFileSync(file, `${JSON.stringify(rows)}\n`);
  process.stderr.write(`${JSON.stringify(row).slice(0, 300)}\n`);
}

const left = () => Number(options.until) - Date.now();

/** Whether a figure is to be measured: it is not there yet, and there is time. */
function wanted(row) {
  if (findIn(rows, row)) return false;
  if (left() > LEAST) return true;
  add({ ...row, error: "no time was left" });
  return false;
}

function run(command, args, env = {}, longest = LONGEST) {
  const timeout = Math.max(1000, Math.min(longest, left()));
  const how = { encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, ...env } };
  const { status, stdout, stderr, error } = spawnSync(command, args, { ...how, timeout });
  const problem = status === 0 ? null : `${error?.code ?? `exit code ${status}`}: ${(stderr ?? "").trim().slice(-300)}`;
  return { lines: (stdout ?? "").split("\n"), problem };
}

const jsonOf = (lines) => lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));

/** Figures of one training program on the device; `turn` counts equal runs. */
function bench(section, what, { steps = 8, turn = 1 } = {}) {
  const { program, products = "tf32", budget = null } = what;
  const row = { section, by: "tidemark", program, products, budget, turn };
  if (!wanted(row)) return;
  const { lines, problem } = run(process.execPath, [options.tidemark, ...benchWords(what, steps)]);
  const [figures] = jsonOf(lines).slice(-1);
  if (!figures) {
    add({ ...row, error: problem });
    return;
  }
  const { stepMs, arenaBytes, persistentBytes, stateHash, predictedMs, kernelCalls, losses, planMs } = figures;
  const { spillBytes, spillPersistentBytes, compileMs } = figures;
  const over = (arenaBytes - persistentBytes) / MIB;
  add({
    ...row,
    ms: stepMs.median,
    overMiB: over,
    stateHash,
    predictedMs,
    kernelCalls,
    planMs,
    compileMs,
    losses: losses.slice(0, 5),
    ...(spillBytes > 0 ? { spillMiB: spillBytes / MIB, spillPersistentMiB: spillPersistentBytes / MIB } : {}),
  });
}

const torch = (...sections) => {
  if (!wanted({ section: sections[0], by: "torch" })) return;
  const { lines, problem } = run(options.python, [path("gpu-torch.py"), options.spec, ...sections]);
  for (const row of jsonOf(lines)) add({ ...row, by: "torch" });
  if (problem !== null) add({ section: sections[0], by: "torch", error: problem });
};

/** `tf32 qkv forward 8192x2304x768: 0.150 ms, 194.00 TFLOP/s` */
const PRODUCT = /^tf32 (.+) (forward|to input|to weight) [\dx]+: ([\d.]+) ms, ([\d.]+) TFLOP/;

/** PyTorch's variants of GPT-2 small and ResNet-50. */
function anchors(section, cases, env = {}) {
  if (!wanted({ section, by: "torch" })) return;
  const seconds = Math.min(ANCHORS_SECONDS, left() / 1000);
  const given = { CASES: cases, OUT: options.out, LIMIT: String(seconds), ...env };
  const { lines, problem } = run(options.python, [options.anchors], given, 1000 * ANCHORS_SECONDS);
  for (const { model, variant, peak_over_persist_MB: overMiB, step_ms: ms, error, skipped } of jsonOf(lines)) {
    add({
      section: model.startsWith("resnet") ? "resnet" : section,
      by: "torch",
      program: model,
      how: variant,
      ...(ms === undefined ? { error: error ?? skipped } : { ms, overMiB }),
    });
  }
  if (problem !== null) add({ section, by: "torch", error: problem });
}

function ownProducts() {
  if (!wanted({ section: "products", by: "tidemark" })) return;
  const { lines, problem } = run(process.execPath, [options.kernels, "kernels"]);
  for (const line of lines) {
    const [, name, way, ms, tflops] = PRODUCT.exec(line) ?? [];
    if (name) add({ section: "products", by: "tidemark", name, way, ms: Number(ms), tflops: Number(tflops) });
  }
  if (problem !== null) add({ section: "products", by: "tidemark", error: problem });
}

function ownGaps() {
  if (!wanted({ section: "gaps", by: "tidemark" })) return;
  const { lines, problem } = run(process.execPath, [options.tidemark, "calibrate", "--target", "cuda", "--json"]);
  const [figures] = jsonOf(lines).slice(-1);
  const tiny = figures?.samples.find(({ name }) => /tiny kernels/.test(name));
  add({
    section: "gaps",
    by: "tidemark",
    ...(tiny ? { gapUs: (1e6 * tiny.seconds) / tiny.work.calls } : { error: problem }),
  });
}

/** The programs of a section, the first two once more for their bits. */
function large(section) {
  for (const what of LARGE[section]) bench(section, what);
  for (const what of LARGE[section].slice(0, 2)) bench(section, what, { turn: 2 });
}

const SECTIONS = {
  gpt2: () => large("gpt2"),
  bf16: () => large("bf16"),
  resnet: () => large("resnet"),
  small() {
    for (const program of SMALL)
      for (const products of ["tf32", "f32"]) bench("small", { program, products }, { steps: 53 });
  },
  products() {
    ownProducts();
    torch("products");
  },
  gaps() {
    ownGaps();
    torch("gaps");
  },
  // without autocast, its case "bf16" is GPT-2 small in tf32, eager and compiled
  torch: () => anchors("gpt2", "bf16,expert,res"),
  torch_bf16: () => anchors("bf16", "bf16,expert", { AUTOCAST: "bf16" }),
  torch_small: () => torch("small"),
  host: () => large("host"),
};

// ---- tables ---------------------------------------------------------------------------------------------------------

const table = (head, body) =>
  [head, head.map((_, i) => (i === 0 ? "---" : "---:")), ...body].map((row) => `| ${row.join(" | ")} |`).join("\n");
const fixed = (value, digits) => (value === undefined ? "–" : value.toFixed(digits));
const grouped = (value) => (value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));

/** The last of the figures that fit. */
const findIn = (all, wanted) =>
  all.findLast((row) => row.error === undefined && Object.entries(wanted).every(([key, value]) => row[key] === value));

function trainingTable(all, section) {
  const done = all.filter((row) => row.section === section && row.error === undefined);
  const last = new Map(
    done.map((row) => [row.by === "torch" ? row.how : `Tidemark, ${row.budget ?? "no budget"}`, row]),
  );
  const body = [...last].map(([name, { ms, overMiB, stateHash = "" }]) => {
    return [name, fixed(ms, 1), grouped(overMiB), stateHash.slice(0, 12)];
  });
  return table(["", "ms a step", "MiB over what is kept", "parameters"], body);
}

function smallTable(all) {
  const ms = (wanted) => fixed(findIn(all, { section: "small", ...wanted })?.ms, 2);
  const over = (wanted) => fixed(findIn(all, { section: "small", ...wanted })?.overMiB, 1);
  const body = SMALL.map((program) => {
    const [own, other] = [
      { by: "tidemark", program },
      { by: "torch", program },
    ];
    const tidemark = [ms({ ...own, products: "tf32" }), ms({ ...own, products: "f32" })];
    const torchs = ["eager", "compiled", "graph"].map((how) => ms({ ...other, how }));
    return [program, ...tidemark, ...torchs, over({ ...own, products: "tf32" }), over({ ...other, how: "eager" })];
  });
  const head = [
    "ms a step",
    "Tidemark, tf32",
    "f32",
    "PyTorch",
    "torch.compile",
    "CUDA graph",
    "MiB over: Tidemark",
    "PyTorch",
  ];
  return table(head, body);
}

function productsTable(all) {
  const names = [...new Set(all.filter(({ section, name }) => section === "products" && name).map(({ name }) => name))];
  const cell = (by, name, way) => fixed(findIn(all, { section: "products", by, name, way })?.tflops, 0);
  const ways = ["forward", "to input", "to weight"];
  const body = names.map((name) => [
    name,
    ...ways.flatMap((way) => ["tidemark", "torch"].map((by) => cell(by, name, way))),
  ]);
  return table(["TFLOP/s, tf32", ...ways.flatMap((way) => [way, "cuBLAS"])], body);
}

function gapsText(all) {
  const own = findIn(all, { section: "gaps", by: "tidemark" });
  const step = findIn(all, { section: "small", by: "tidemark", program: "gpt", products: "tf32" });
  const others = ["eager", "graph"].map((how) => [how, findIn(all, { section: "gaps", by: "torch", how })]);
  const lines = others.map(([how, row]) => {
    return `PyTorch, ${how}: ${fixed(row?.kernels, 0)} kernels, ${fixed(row?.ms, 2)} ms, of which kernels run ${fixed(row?.busyMs, 2)}.`;
  });
  return `A step of \`gpt\`: Tidemark ${grouped(step?.kernelCalls)} kernels, ${fixed(own?.gapUs, 2)} µs from one to the next. ${lines.join(" ")}`;
}

/** Losses of the small programs, which must agree to the rounding of tf32. */
function disagreement(all) {
  return SMALL.flatMap((program) => {
    const sides = [{ by: "tidemark" }, { by: "torch", how: "eager" }];
    const [own, other] = sides.map((side) => findIn(all, { section: "small", program, ...side })?.losses);
    const worst = own && other ? Math.max(...own.map((loss, i) => Math.abs(loss / other[i] - 1))) : 0;
    return worst > 0.02 ? [`${program}: losses differ by ${(100 * worst).toFixed(1)} %`] : [];
  });
}

/** Sections in which a program has not the same parameters in every run. */
const changedBits = (all) =>
  ["gpt2", "bf16", "host"].flatMap((section) => {
    const hashes = new Set(all.flatMap((row) => (row.section === section && row.stateHash ? [row.stateHash] : [])));
    return hashes.size > 1 ? [`${section}: ${hashes.size} different states where there should be one`] : [];
  });

function tables(all) {
  const about = all.find(({ section }) => section === "about");
  const errors = all
    .filter(({ error }) => error !== undefined)
    .map(({ error, ...row }) => `${JSON.stringify(row)}: ${error}`);
  for (const line of [...errors, ...disagreement(all), ...changedBits(all)]) process.stderr.write(`${line}\n`);
  return [
    about ? `On one ${about.device}, PyTorch ${about.torch}.` : "",
    `GPT-2 small, 8 × 1,024 tokens, tf32:\n\n${trainingTable(all, "gpt2")}`,
    `The same with activations and products in bf16:\n\n${trainingTable(all, "bf16")}`,
    `With the host's memory as second space, tf32:\n\n${trainingTable(all, "host")}`,
    `ResNet-50, 64 images, tf32:\n\n${trainingTable(all, "resnet")}`,
    smallTable(all),
    productsTable(all),
    gapsText(all),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

if (options.from === undefined) {
  if (existsSync(file)) rows.push(...JSON.parse(readFileSync(file, "utf8")));
  add({ section: "machine", about: circumstances() });
  for (const name of positionals.length > 0 ? positionals : Object.keys(SECTIONS)) SECTIONS[name]();
  publish("gpu", tables(rows), false);
} else {
  const all = JSON.parse(readFileSync(options.from, "utf8"));
  publish("gpu", tables(all), options.write, all.findLast(({ section }) => section === "machine")?.about);
}
