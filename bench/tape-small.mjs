/**
 * @file Small operations in TensorFlow.js, as `npm run bench:tape -- small` does them: microseconds of processor time for one, alone and with a read
 * after it. FOLDER has `@tensorflow/tfjs-core`, `@tensorflow/tfjs-backend-cpu` and `@tensorflow/tfjs-backend-wasm` installed.
 *
 *   node bench/tape-small.mjs FOLDER
 */
import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";

const require = createRequire(resolve(process.argv[2] ?? ".", "package.json"));
const tf = require("@tensorflow/tfjs-core");
require("@tensorflow/tfjs-backend-cpu");
const { setWasmPaths } = require("@tensorflow/tfjs-backend-wasm");
setWasmPaths(`${dirname(require.resolve("@tensorflow/tfjs-backend-wasm"))}/`);

function processorMs(body) {
  const before = process.cpuUsage();
  tf.tidy(body);
  return process.cpuUsage(before).user / 1000;
}

for (const name of ["cpu", "wasm"]) {
  await tf.setBackend(name);
  await tf.ready();
  const x = tf.tensor1d([1, 2, 3, 4]);
  const chain = () => {
    let y = tf.mul(x, 1);
    for (let i = 0; i < 2000; i++) y = tf.add(tf.mul(y, x), 1);
    y.dataSync();
  };
  const reading = () => {
    let y = tf.sum(x);
    for (let i = 0; i < 4000; i++) {
      y = tf.add(y, 1);
      y.dataSync();
    }
  };
  const best = (body) => {
    for (let i = 0; i < 3; i++) processorMs(body);
    return (Math.min(...Array.from({ length: 5 }, () => processorMs(body))) / 4).toFixed(2);
  };
  console.log(`${name}: ${best(chain)} µs an operation, ${best(reading)} with a read after each`);
}
