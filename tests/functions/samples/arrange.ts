/** @file Samples of rearrangements; tests/torch-functions.test.ts has what they mean. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get } from "../plain.ts";
import type { Family } from "../sample.ts";

export const arrange: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return [
    {
      name: "roll",
      inputs: [x(2, 3)],
      call: (a) => tm.roll(a!, -1, 1),
      reference: (a) => build([2, 3], ([i, j]) => get(a!, [i!, (j! + 1) % 3])),
    },
    {
      name: "diag",
      inputs: [x(3)],
      call: (a) => tm.diag(a!, 1),
      reference: (a) => build([4, 4], ([i, j]) => (j === i! + 1 ? a!.data[i!]! : 0)),
    },
    { name: "trace", inputs: [x(2, 3, 3)], call: (a) => tm.trace(a!) },
    { name: "kron", inputs: [x(2), x(2, 2)], call: (a, b) => tm.kron(a!, b!) },
    { name: "cross", inputs: [x(2, 3), x(3)], call: (a, b) => tm.cross(a!, b!) },
    { name: "tensordot", inputs: [x(2, 3), x(3, 2)], call: (a, b) => tm.tensordot(a!, b!, 1) },
    { name: "meshgrid", inputs: [x(2), x(3)], call: (a, b) => tm.meshgrid([a!, b!], { indexing: "ij" }) },
    { name: "unstack", inputs: [x(2, 3)], call: (a) => tm.unstack(a!, 1) },
    { name: "chunk", inputs: [x(5)], call: (a) => tm.chunk(a!, 2) },
    { name: "unfold", inputs: [x(1, 2, 4)], call: (a) => tm.unfold(a!, 2, { padding: 1 }) },
    { name: "fold", inputs: [x(1, 4, 3)], call: (a) => tm.fold(a!, [4], 2) },
    { name: "pixelShuffle", inputs: [x(4, 1, 2)], call: (a) => tm.pixelShuffle(a!, 2) },
    { name: "pixelUnshuffle", inputs: [x(1, 2, 4)], call: (a) => tm.pixelUnshuffle(a!, 2) },
    {
      name: "pad",
      inputs: [x(3)],
      call: (a) => tm.pad(a!, [[1, 2]], "circular"),
      reference: (a) => build([6], ([i]) => a!.data[(i! + 2) % 3]!),
    },
    { name: "resize", inputs: [x(2, 3)], call: (a) => tm.resize(a!, [3, 4], { mode: "bilinear" }) },
    {
      name: "gridSample",
      inputs: [x(1, 1, 3, 2), x(1, 2, 1, 2)],
      range: [
        [-2, 2],
        [-0.9, -0.6],
      ],
      call: (a, g) => tm.gridSample(a!, g!, { padding: "border" }),
    },
    { name: "adaptiveAvgPool", inputs: [x(2, 3)], call: (a) => tm.adaptiveAvgPool(a!, [2]) },
    { name: "adaptiveMaxPool", inputs: [x(2, 3)], call: (a) => tm.adaptiveMaxPool(a!, [2]) },
    { name: "globalAvgPool", inputs: [x(1, 2, 3)], call: (a) => tm.globalAvgPool(a!) },
    { name: "globalMaxPool", inputs: [x(1, 2, 3)], call: (a) => tm.globalMaxPool(a!) },
    { name: "conv3d", inputs: [x(1, 1, 2, 3, 2), x(1, 1, 2, 2, 1)], call: (a, w) => tm.conv3d(a!, w!) },
    {
      name: "convTranspose3d",
      inputs: [x(1, 1, 2, 1, 2), x(1, 1, 2, 2, 1)],
      call: (a, w) => tm.convTranspose3d(a!, w!),
    },
    { name: "depthwiseConv2d", inputs: [x(1, 2, 3, 3), x(2, 1, 2, 2)], call: (a, w) => tm.depthwiseConv2d(a!, w!) },
    { name: "maxPool3d", inputs: [x(1, 2, 2, 3)], call: (a) => tm.maxPool3d(a!, 2, { stride: 1 }) },
    { name: "avgPool3d", inputs: [x(1, 2, 2, 3)], call: (a) => tm.avgPool3d(a!, 2, { stride: 1 }) },
  ];
};
