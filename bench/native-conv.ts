/**
 * @file Convolutions of the target `native` on one thread: forward, gradient to the input and gradient to the weights of
 * layers as networks have them, in GFLOP/s of multiplications that matter (padding not counted as saved, zeros between
 * strides not counted at all). With `plain`, none of them by Winograd's algorithm.
 *
 *   npx rolldown bench/native-conv.ts -p node --external koffi --file node_modules/.cache/native-conv.mjs &&
 *     node node_modules/.cache/native-conv.mjs [plain] [word of a name …]
 */
import type { OpDef } from "../src/ir/op.ts";
import { type TensorType, tensorType } from "../src/ir/type.ts";
import { type ConvAttrs, conv, convInput, convWeight } from "../src/ops/conv.ts";
import { loadKernel, seconds } from "./native-kernel.ts";

/** [images, channels in, channels out, extent, kernel, stride, padding] */
type Layer = readonly [number, number, number, number, number, number, number];

const LAYERS: readonly Layer[] = [
  [32, 1, 32, 28, 3, 1, 0],
  [32, 16, 32, 28, 3, 1, 0],
  [32, 32, 64, 26, 3, 1, 0],
  [32, 32, 64, 26, 3, 2, 0],
  [8, 3, 64, 112, 7, 2, 3],
  [8, 64, 64, 56, 3, 1, 1],
  [8, 64, 256, 56, 1, 1, 0],
  [8, 128, 128, 28, 3, 1, 1],
  [8, 256, 256, 14, 3, 1, 1],
  [8, 256, 512, 14, 3, 2, 1],
  [8, 512, 512, 7, 3, 1, 1],
  [1, 64, 64, 128, 3, 1, 1],
];
const PATIENCE = 0.5;

/** Best seconds of one call, and bytes of workspace. */
function time<A>(
  op: OpDef<A>,
  inputs: readonly TensorType[],
  attrs: A,
  winograd: "paying" | "never",
): readonly [number, number] {
  const { machine, workspaceBytes } = loadKernel(op, inputs, attrs, 1, { winograd });
  let best = Number.POSITIVE_INFINITY;
  const until = process.hrtime.bigint() + BigInt(PATIENCE * 1e9);
  for (let n = 0; n < 5 || process.hrtime.bigint() < until; n++) {
    best = Math.min(
      best,
      seconds(() => machine.run()),
    );
  }
  return [best, workspaceBytes];
}

function main([first = "", ...rest]: readonly string[]): void {
  const plain = first === "plain";
  const words = plain || first === "" ? rest : [first, ...rest];
  const winograd = plain ? "never" : "paying";
  console.log(
    `${"images in→out extent kernel stride".padEnd(36)}${"forward".padStart(18)}${"to input".padStart(18)}${"to weights".padStart(18)}`,
  );
  for (const [images, from, to, extent, kernel, stride, pad] of LAYERS) {
    const name = `${images} ${from}→${to} ${extent}² ${kernel}×${kernel} /${stride}`;
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    const pair = (n: number): readonly number[] => [n, n];
    const attrs: ConvAttrs = { stride: pair(stride), lo: pair(pad), hi: pair(pad), dilation: [1, 1], groups: 1 };
    const out = Math.floor((extent + 2 * pad - kernel) / stride) + 1;
    const x = tensorType("f32", [images, from, extent, extent]);
    const w = tensorType("f32", [to, from, kernel, kernel]);
    const y = tensorType("f32", [images, to, out, out]);
    const flops = 2 * images * from * to * out * out * kernel * kernel;
    const speed = ([seconds, bytes]: readonly [number, number]): string =>
      `${(flops / seconds / 1e9).toFixed(1)} ${(bytes / 1024).toFixed(0).padStart(5)} KiB`.padStart(18);
    const forward = time(conv, [x, w], attrs, winograd);
    const input = time(convInput, [y, w], { ...attrs, size: pair(extent) }, winograd);
    const weight = time(convWeight, [x, y], { ...attrs, kernel: pair(kernel) }, winograd);
    console.log(`${name.padEnd(36)}${speed(forward)}${speed(input)}${speed(weight)}`);
  }
}

main(process.argv.slice(2));
