/**
 * @file Small operations one by one, in one run: here (by themselves and on a tape), in TensorFlow.js and in jax-js. Microseconds of
 * processor time for one operation on four elements, best of several rounds that alternate; `read` reads the result after each.
 *
 *   node bench/eager-small.mjs FOLDER       needs `npm run build`
 *
 * FOLDER has `@tensorflow/tfjs-core`, `@tensorflow/tfjs-backend-cpu`, `@tensorflow/tfjs-backend-wasm` and `@jax-js/jax` installed.
 */
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { tensor } from "../dist/api/index.js";
import { tape } from "../dist/tape/index.js";

const require = createRequire(resolve(process.argv[2] ?? ".", "package.json"));
const ROUNDS = 7;
const PAIRS = 1000;
/** The system counts processor time in steps of some milliseconds. */
const LEAST_US = 100_000;

/** Each: a chain of 2 × PAIRS operations whose last result is read, and PAIRS sums that are read one by one. */
function here() {
  const x = tensor([1, 0.5, 0.25, 0.125]);
  const chain = () => {
    let y = x.mul(1);
    for (let i = 0; i < PAIRS; i++) y = y.mul(x).add(1);
    return y;
  };
  const reads = () => {
    let y = x.sum();
    for (let i = 0; i < PAIRS; i++) {
      y = y.add(1);
      y.item();
    }
  };
  return [
    { name: "tidemark, on a tape", chain: () => tape(chain).data(), read: () => tape(reads) },
    { name: "tidemark, by themselves", chain: () => chain().data(), read: reads },
  ];
}

async function inTensorFlow() {
  const all = [];
  const tf = require("@tensorflow/tfjs-core");
  require("@tensorflow/tfjs-backend-cpu");
  const { setWasmPaths } = require("@tensorflow/tfjs-backend-wasm");
  setWasmPaths(`${dirname(require.resolve("@tensorflow/tfjs-backend-wasm"))}/`);
  for (const backend of ["cpu", "wasm"]) {
    await tf.setBackend(backend);
    await tf.ready();
    const own = tf.tensor1d([1, 0.5, 0.25, 0.125]);
    const inTidy = (body) => () => {
      tf.setBackend(backend);
      tf.tidy(body);
    };
    all.push({
      name: `TensorFlow.js, ${backend}`,
      chain: inTidy(() => {
        let y = tf.mul(own, 1);
        for (let i = 0; i < PAIRS; i++) y = tf.add(tf.mul(y, own), 1);
        y.dataSync();
      }),
      read: inTidy(() => {
        let y = tf.sum(own);
        for (let i = 0; i < PAIRS; i++) {
          y = tf.add(y, 1);
          y.dataSync();
        }
      }),
    });
  }
  return all;
}

async function inJax() {
  const all = [];
  const jax = await import(pathToFileURL(require.resolve("@jax-js/jax")).href);
  const { numpy: np } = jax;
  for (const backend of ["cpu", "wasm"]) {
    await jax.init(backend);
    const setBackend = () => jax.defaultDevice(backend);
    setBackend();
    const own = np.array([1, 0.5, 0.25, 0.125]);
    all.push({
      name: `jax-js, ${backend}`,
      chain() {
        setBackend();
        let y = own.ref.mul(1);
        for (let i = 0; i < PAIRS; i++) y = y.mul(own.ref).add(1);
        y.dataSync();
      },
      read() {
        setBackend();
        let y = own.ref.sum();
        for (let i = 0; i < PAIRS; i++) {
          y = y.add(1);
          y.ref.dataSync();
        }
        y.dispose();
      },
    });
  }
  return all;
}

/** Processor time of a body, from as many calls as take long enough to be measured. */
const processorMs = (body) => {
  const before = process.cpuUsage();
  for (let calls = 1; ; calls++) {
    body();
    const { user } = process.cpuUsage(before);
    if (user > LEAST_US) return user / 1000 / calls;
  }
};

const all = [...here(), ...(await inTensorFlow()), ...(await inJax())].map((own) => ({
  ...own,
  best: { chain: Infinity, read: Infinity },
}));
for (let round = 0; round < ROUNDS; round++) {
  for (const { name, best, ...bodies } of all) {
    for (const kind of ["chain", "read"]) best[kind] = Math.min(best[kind], processorMs(bodies[kind]));
  }
}
console.log("µs for one operation             in a chain   with a read");
for (const { name, best } of all) {
  const us = [best.chain / (2 * PAIRS), best.read / PAIRS].map((ms) => (1000 * ms).toFixed(2).padStart(12));
  console.log(`${name.padEnd(30)} ${us.join("  ")}`);
}
process.exit(0);
