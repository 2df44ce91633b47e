/**
 * @file The time of planning by phase, and its growth: large built-in training steps, and synthetic ones of 6, 12, 25
 * and 50 thousand nodes, from a seed. Each in a separate process, as on a user's first run. Needs a build.
 *
 *   node bench/plan-time.mjs [NAME | KIND | KIND:NODES …]        resnet1001 layered chain:50000
 *
 * Two kinds of synthetic steps:
 *
 *   layered   layers of eight values; each is made from one or two values of the last three layers by a map, a product, or
 *             a reduction that is broadcast back; the gradient of everything, and updates of the weights
 *   chain     x ← x + relu(x w) v, with gradient and updates: deep, narrow, residual
 *
 * Milliseconds of processor time, of all threads: other work on the machine counts little. `make` is kernels, order,
 * aliases and placement, one after the other; the four columns after it are the same phases run again one by one.
 * `growth` is the exponent of the total between neighbouring sizes: 1 is linear, 2 quadratic.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const PROGRAMS = ["resnet50", "gpt2-small", "resnet1001"];
const KINDS = ["layered", "chain"];
const SIZES = [6000, 12000, 25000, 50000];
const FIRST = ["nodes", "steps", "trace", "passes", "fuse", "make"];
const COLUMNS = [...FIRST, "lower", "order", "alias", "place", "total ms", "wall ms", "/ bound", "RSS MB", "growth"];
const CHILD = "--one";

const insides = () => import("../dist/bench/insides.js");

/** CPU time of all threads and wall time since the last call. */
function stopwatch() {
  const now = () => {
    const { user, system } = process.cpuUsage();
    return [(user + system) / 1000, performance.now()];
  };
  let before = now();
  return () => {
    const after = now();
    const spent = after.map((t, i) => t - before[i]);
    before = after;
    return spent;
  };
}

/** A built-in training step, traced. */
async function tracedProgram(name) {
  await import("../dist/api/index.js");
  const { ALL_PROGRAMS } = await import("../dist/cli/programs/built-in.js");
  const { traceProgram, flattenArguments } = await insides();
  const program = ALL_PROGRAMS.find((p) => p.name === name);
  if (!program) throw new Error(`there is no program ${name}`);
  const args = program.specs?.() ?? [program.init(), ...program.batch()];
  const look = stopwatch();
  const source = traceProgram(program.step, flattenArguments(program.step, args), { donate: [0] });
  const { graph, donated, persistent } = source;
  return { graph, donated, persistent, trace: look() };
}

/** The forward part of a synthetic step of so many layers, and the type of its weights. */
async function forwardPart(kind, layers) {
  const { hostRandom, Build, tensorType, broadcast, sum, add, mul, relu, sub, tanh, matmul } = await insides();
  const [table, weight] = [tensorType("f32", [256, 64]), tensorType("f32", [64, 64])];
  const b = new Build(kind);
  const random = hostRandom(1);
  const pick = (list) => list[Math.floor(random.next() * list.length)];
  const total = (x) => b.call(sum, [x], { axes: x.type.shape.map((_, axis) => axis) });
  const product = (x) => b.call(matmul, [x, b.param(weight)], { ta: false, tb: false });
  /** Every row less its own sum: a reduction that all elements of the row read. */
  const centred = (x) => {
    const rows = b.call(sum, [x], { axes: [1] });
    return b.call(sub, [x, b.call(broadcast, [rows], { shape: table.shape, axes: [0] })], {});
  };
  if (kind === "chain") {
    let x = b.param(table);
    for (let i = 0; i < layers; i++) x = b.call(add, [x, product(b.call(relu, [product(x)], {}))], {});
    return { graph: b.finish([total(x)]), weight };
  }
  const width = 8;
  const made = Array.from({ length: width }, () => b.param(table));
  for (let layer = 0; layer < layers; layer++) {
    const recent = made.slice(-3 * width);
    for (let i = 0; i < width; i++) {
      const [x, y, which] = [pick(recent), pick(recent), random.next()];
      if (which < 0.35) made.push(b.call(pick([add, mul, sub]), [x, y], {}));
      else if (which < 0.65) made.push(b.call(pick([relu, tanh]), [x], {}));
      else made.push(which < 0.85 ? product(x) : centred(x));
    }
  }
  const last = made.slice(-width).map(total);
  return { graph: b.finish([last.reduce((a, c) => b.call(add, [a, c], {}))]), weight };
}

/** The gradient, and w ← w - 0.1 · ∂w for every weight. */
async function syntheticStep(kind, layers) {
  const { vjp, Build, full, mul, sub } = await insides();
  const { graph: forward, weight } = await forwardPart(kind, layers);
  const isWeight = forward.params.map((param) => param.type === weight);
  const joint = vjp(forward, isWeight, ["one"]);
  const b = new Build(kind);
  const params = forward.params.map((param) => b.param(param.type));
  const [loss, ...gradients] = b.inline(joint, params);
  b.phase = "update";
  const weights = isWeight.flatMap((is, i) => (is ? [i] : []));
  const updated = weights.map((param, i) => {
    const rate = b.call(full, [], { ...weight, value: 0.1 });
    return b.call(sub, [params[param], b.call(mul, [gradients[i], rate], {})], {});
  });
  const donated = new Map(weights.map((param, i) => [param, i + 1]));
  return { graph: b.finish([loss, ...updated]), donated, persistent: new Set(weights), trace: [0, 0] };
}

/** A synthetic step of about that many nodes; their number grows in proportion to the layers. */
async function stepOfSize(kind, nodes) {
  const probe = 50;
  const { graph } = await syntheticStep(kind, probe);
  return syntheticStep(kind, Math.round((nodes * probe) / graph.nodes.length));
}

/** The phases of one program, in this process. */
async function measure(name) {
  const [kind, size] = name.split(":");
  const { graph, donated, persistent, trace } = size ? await stepOfSize(kind, Number(size)) : await tracedProgram(kind);
  const { sharedLowering, fuse, pipeline, runPasses, assignBuffers, boundOf } = await insides();
  const { orderSteps, place, Assembler, wasmDescription } = await insides();
  const target = wasmDescription();
  const look = stopwatch();
  const plain = runPasses(graph, pipeline);
  const passes = look();
  const fused = runPasses(plain, [fuse]);
  const fusing = look();
  const { plan } = new Assembler(target, { donated, persistent }).make(fused, []);
  const make = look();
  const rss = process.resourceUsage().maxRSS / 1024;

  const position = new Map(fused.nodes.map((node, i) => [node, i]));
  const steps = [...plan.program.steps].sort((a, b) => position.get(a.node) - position.get(b.node));
  look();
  const lower = sharedLowering(target);
  for (const node of fused.nodes) if (node.op.alias === null) lower(node);
  const lowering = look();
  const ordered = orderSteps({ ...plan.program, steps });
  const order = look();
  const { problem } = assignBuffers(ordered);
  const { bytes } = boundOf(problem);
  const alias = look();
  place(problem, bytes);
  const placing = look();

  const whole = [trace, passes, fusing, make];
  return {
    counts: [graph.nodes.length, plan.program.steps.length],
    times: [...whole, lowering, order, alias, placing].map(([cpu]) => cpu),
    totals: [0, 1].map((clock) => whole.reduce((sum, t) => sum + t[clock], 0)),
    ratio: plan.height / plan.bound.bytes,
    rss,
  };
}

/** The same in a separate process; a failure is a result too. */
function inOwnProcess(name) {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), CHILD, name];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return status === 0 ? JSON.parse(stdout) : stderr.trim().split("\n").at(-1);
}

const line = (cells) => console.log(cells.map((c, i) => (i === 0 ? c.padEnd(14) : String(c).padStart(9))).join(""));

function report(names) {
  line(["", ...COLUMNS]);
  let before = null;
  for (const name of names) {
    const row = inOwnProcess(name);
    if (typeof row === "string") {
      line([name, row]);
      continue;
    }
    const { counts, times, totals, ratio, rss } = row;
    const [kind, size] = name.split(":");
    const isNext = size !== undefined && before?.kind === kind;
    const growth = isNext ? Math.log(totals[0] / before.ms) / Math.log(counts[0] / before.nodes) : null;
    const figures = [...times, ...totals].map((ms) => ms.toFixed(0));
    line([name, ...counts, ...figures, ratio.toFixed(4), rss.toFixed(0), growth?.toFixed(2) ?? ""]);
    before = { kind, nodes: counts[0], ms: totals[0] };
  }
}

const words = process.argv.slice(2);
if (words[0] === CHILD) {
  console.log(JSON.stringify(await measure(words[1])));
} else {
  const wanted = words.length > 0 ? words : [...PROGRAMS, ...KINDS];
  report(wanted.flatMap((word) => (KINDS.includes(word) ? SIZES.map((size) => `${word}:${size}`) : [word])));
}
