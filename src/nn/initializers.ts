/** @file All initial values under one name. */
import {
  constant,
  fanInUniform,
  glorotNormal,
  glorotUniform,
  heNormal,
  heUniform,
  normal,
  ones,
  truncatedNormal,
  uniform,
  zeros,
} from "./distributions.ts";
import { orthogonal } from "./orthogonal.ts";

/**
 * Initial values for parameters. Layers take them as options; on their own they are called with a key and a shape.
 *
 * @throws InvalidArgument for keys and shapes that are none; ShapeMismatch for a shape without fans or, for
 * `orthogonal`, one that is no matrix
 *
 * @example
 * import { initializers, linear } from "tidemark/nn";
 *
 * const layer = linear(8, 4, { weight: initializers.orthogonal() });
 * const w = initializers.heNormal()(7, [8, 4]); // from seed 7
 * console.log(layer.init(7).w.shape, w.shape); // [8, 4] [8, 4]
 */
export const initializers = {
  zeros,
  ones,
  constant,
  uniform,
  normal,
  truncatedNormal,
  glorotUniform,
  glorotNormal,
  xavierUniform: glorotUniform,
  xavierNormal: glorotNormal,
  heUniform,
  heNormal,
  kaimingUniform: heUniform,
  kaimingNormal: heNormal,
  fanInUniform,
  orthogonal,
} as const;
