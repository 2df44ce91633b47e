/**
 * @file Writes packing instances of 18,000 to 62,000 buffers in MiniMalloc's format, the same for the same seed:
 *
 *   node bench/pack-instances.mjs FOLDER [--seed 1]        then npm run bench:pack -- FOLDER/*.csv
 *
 *   training-powers    a training step: activations that live from forward to backward, temporaries, gradients that live
 *                      to the update; sizes over 16 powers of two
 *   training-classes   the same, larger, sizes of 11 classes as a transformer's
 *   uneven             log-uniform lifespans and sizes, more of them early than late, as the graphs of the IOPDDL contest
 *   short              random lifespans, most of them short
 *   short-many         the same, more
 *   pipeline           training steps of one network that begin one after the other and overlap by half
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  options: { seed: { type: "string", default: "1" } },
  allowPositionals: true,
});

/** Uniform in [0, 1): xorshift with 32 bits (Marsaglia 2003). */
function randomFrom(seed) {
  let state = Math.imul(seed, 0x9e3779b1) ^ 0x6d2b79f5 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

const below = (random, n) => Math.floor(random() * n);
const logUniform = (random, least, most) => Math.floor(least * (most / least) ** random());

/** Rows [start, end, bytes] of a training step of `layers` layers with `width` activations each. */
function training(layers, width, sizeOf, random) {
  const rows = [];
  const stride = 2 * width + 2;
  const last = 2 * layers * stride + layers;
  for (let layer = 0; layer < layers; layer++) {
    for (let k = 0; k < width; k++) {
      const forward = layer * stride + 2 * k;
      const backward = 2 * layers * stride - forward;
      const stored = random() < 0.6;
      rows.push([forward, stored ? backward : forward + 2 + below(random, 6), sizeOf(random)]);
      rows.push([forward, forward + 1 + below(random, 3), sizeOf(random)]);
      rows.push([backward, backward + 2 + below(random, stride), sizeOf(random)]);
      if (k % 3 === 0) rows.push([backward, last - layer, sizeOf(random)]);
    }
  }
  return rows;
}

/** Random rows: `lengthOf` a start, of `steps` in all. */
function scattered(count, steps, { startOf, lengthOf, sizeOf }, random) {
  return Array.from({ length: count }, () => {
    const start = startOf(random);
    return [start, Math.min(steps, start + Math.max(1, lengthOf(random))), sizeOf(random)];
  });
}

const CLASSES = [4, 64, 2048, 8192, 20480, 81920, 1638400, 6553600, 10485760, 26214400, 41943040];
const INSTANCES = {
  "training-powers": (random) => training(186, 30, (r) => 64 * 2 ** below(r, 16), random),
  "training-classes": (random) => training(430, 42, (r) => CLASSES[below(r, CLASSES.length)], random),
  uneven: (random) =>
    scattered(
      28_000,
      40_000,
      {
        startOf: (r) => Math.floor(39_000 * r() ** 1.7),
        lengthOf: (r) => logUniform(r, 2, 9000),
        sizeOf: (r) => logUniform(r, 64, 2 ** 24) + 1,
      },
      random,
    ),
  short: (random) =>
    scattered(
      28_000,
      28_000,
      {
        startOf: (r) => Math.floor(27_990 * r() ** 1.3),
        lengthOf: (r) => logUniform(r, 1, 4000),
        sizeOf: (r) => logUniform(r, 64, 2 ** 24),
      },
      random,
    ),
  "short-many": (random) =>
    scattered(
      62_000,
      90_000,
      {
        startOf: (r) => Math.floor(80_000 * r() ** 1.7),
        lengthOf: (r) => logUniform(r, 2, 9000),
        sizeOf: (r) => logUniform(r, 64, 2 ** 24) + 1,
      },
      random,
    ),
  pipeline: (random) => {
    const step = training(24, 12, (r) => 512 * 2 ** below(r, 14), random);
    const length = Math.max(...step.map((row) => row[1]));
    return Array.from({ length: 32 }, (_, copy) =>
      step.map(([start, end, bytes]) => {
        const shift = Math.floor((copy * length) / 2);
        return [start + shift, end + shift, Math.ceil(bytes * (1 + random()))];
      }),
    ).flat();
  },
};

const [folder] = positionals;
if (folder === undefined) throw new Error("give a folder to write to");
mkdirSync(folder, { recursive: true });
for (const [name, rowsOf] of Object.entries(INSTANCES)) {
  const rows = rowsOf(randomFrom(Number(values.seed)));
  const lines = rows.map(([start, end, bytes], id) => `${id},${start},${end},${bytes}`);
  writeFileSync(join(folder, `${name}.csv`), ["id,lower,upper,size", ...lines, ""].join("\n"));
  console.log(`${name}: ${rows.length} buffers`);
}
