/**
 * @file Training with products in bf16 and f16 beside f32: bytes of the arena, losses, and bits at several budgets.
 *
 *   npm run build && npm run bench:half [-- --steps 200 --targets wasm,native --programs gpt,vit --budgets 10]
 *   npm run build && npm run bench:half -- --programs vit32 --steps 0 --budgets 0         a batch of 32; arenas alone
 *
 * Arenas are plans without recomputation, the state donated. Every step has a batch of its own: texts of a random chain of tokens, images of
 * a class's pattern and noise. `loss` is the largest difference of a step's loss from that of f32, relative to it. With budgets the
 * program runs three steps at so many, from the whole arena down to 0.6 of what is not state; the digests of its state must be one.
 * `of f32` is the whole arena, `but state` without parameters and what the optimizer keeps, which stay f32.
 */
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { autocast, compile, plan, random, tensor } from "tidemark";
import "tidemark/node";

const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "200" },
    targets: { type: "string", default: "wasm,native" },
    programs: { type: "string", default: "gpt,vit" },
    budgets: { type: "string", default: "10" },
  },
});

const FORMS = {
  f32: null,
  "bf16, f32 stream": { products: "bf16" },
  "bf16, bf16 stream": { products: "bf16", stream: "bf16" },
  "f16, f32 stream": { products: "f16", lossScale: 1024 },
};

/** Whole numbers below n, the same for a seed. */
function drawn(seed) {
  let state = seed * 2654435761 + 1;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** A token is followed by one of four, which depend on it. */
function text(step, { batch, positions, vocabulary }) {
  const next = drawn(step + 1);
  const ids = new Int32Array(batch * (positions + 1));
  for (let i = 0; i < ids.length; i++) {
    ids[i] = i % (positions + 1) === 0 ? next(vocabulary) : (ids[i - 1] * 31 + 7 * next(4) + 11) % vocabulary;
  }
  const part = (from) =>
    tensor(
      Int32Array.from({ length: batch * positions }, (_, i) => ids[i + Math.floor(i / positions) + from]),
      { shape: [batch, positions] },
    );
  return [part(0), part(1)];
}

/** Images of a pattern for each class, and noise. */
function pictures(step, [x, y]) {
  const count = y.elements;
  const next = drawn(step + 1);
  const labels = Int32Array.from({ length: count }, () => next(100));
  const each = x.elements / count;
  const noise = random.normal(random.key(step), x.shape).data();
  const pixels = noise.map((e, i) => e + 0.2 * Math.sin((labels[Math.floor(i / each)] + 1) * (i % each) * 0.01));
  return [tensor(pixels, { shape: x.shape }), tensor(labels)];
}

const MODELS = {
  async gpt() {
    const { program, shape } = await import("./networks/gpt.mjs");
    return { program, batch: (step) => text(step, shape) };
  },
  async vit() {
    const { program } = await import("./networks/vit.mjs");
    const first = program.batch();
    return { program, batch: (step) => pictures(step, first) };
  },
  async vit32() {
    const { program } = await import("./networks/vit.mjs");
    const [{ shape, elements }, y] = program.batch();
    const larger = 32 / y.elements;
    const images = { shape: [32, ...shape.slice(1)], elements: larger * elements };
    return { program, batch: (step) => pictures(step, [images, { elements: 32 }]) };
  },
};

/** Trains; gives losses and a digest of the state. */
function train({ program, batch }, step, steps, options) {
  const run = compile(step, { donate: [0], ...options });
  let state = program.init();
  const losses = [];
  for (let i = 0; i < steps; i++) {
    const [next, loss] = run(state, ...batch(i));
    state = next;
    losses.push(loss.item());
  }
  const hash = createHash("sha256");
  const visit = (part) => {
    if (typeof part?.data === "function") hash.update(part.data());
    else if (typeof part === "object" && part !== null) Object.values(part).forEach(visit);
  };
  visit(state);
  return { losses, digest: hash.digest("hex") };
}

function digests(model, step, { arenaBytes, persistentBytes }, target) {
  const count = Number(values.budgets);
  const found = new Set();
  let ran = 0;
  for (let i = 0; i < count; i++) {
    const part = 1 - (0.4 * i) / Math.max(1, count - 1);
    const memory = Math.ceil(persistentBytes + (arenaBytes - persistentBytes) * part);
    try {
      found.add(train(model, step, 3, { target, memory }).digest);
      ran++;
    } catch (error) {
      if (error.code !== "PlanInfeasible") throw error;
    }
  }
  return `${found.size} at ${ran}`;
}

console.log(
  "| program, target | types | arena MiB | of f32 | but state | loss: largest difference | last | digests at budgets |",
);
console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
for (const name of values.programs.split(",")) {
  const model = await MODELS[name]();
  for (const target of values.targets.split(",")) {
    let plain = null;
    for (const [form, options] of Object.entries(FORMS)) {
      const step = options ? autocast(model.program.step, options) : model.program.step;
      const { arenaBytes, persistentBytes } = plan(step, { donate: [0], target })(
        model.program.init(),
        ...model.batch(0),
      );
      const { losses } = train(model, step, Number(values.steps), { target });
      const rest = arenaBytes - persistentBytes;
      plain ??= { arenaBytes, rest, losses };
      const off = Math.max(...losses.map((loss, i) => Math.abs(loss / plain.losses[i] - 1)));
      const row = [
        `${name}, ${target}`,
        form,
        (arenaBytes / 2 ** 20).toFixed(2),
        (arenaBytes / plain.arenaBytes).toFixed(3),
        (rest / plain.rest).toFixed(3),
        losses.length > 0 ? `${(100 * off).toFixed(3)} %` : "",
        losses.at(-1)?.toFixed(4) ?? "",
        Number(values.budgets) > 0 ? digests(model, step, { arenaBytes, persistentBytes }, target) : "",
      ];
      console.log(`| ${row.join(" | ")} |`);
    }
  }
}
