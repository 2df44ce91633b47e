/**
 * @file Keys on the host. Initial weights are drawn once, before any program runs, so the generator is run here; element
 * e of what a key draws is the same number that `random.uniform` and `random.normal` give for that key (up to the last
 * bit of the logarithm and the cosine), and a layer hands each of its parts a key of its own:
 *
 *   init(key) ── part 0: threefry(key, [0, 3]) ── its parts …
 *             └─ part 1: threefry(key, [1, 3])
 */

import { key as keyOf } from "../api/keys.ts";
import { at } from "../base/invariant.ts";
import { threefry, type Words } from "../base/random.ts";
import { typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { fail, requireTensor } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";

/** A key of two words (`random.key`), or a seed. */
export type Key = Tensor | number;

/** The streams 0, 1 and 2 of a key belong to `random`: drawing, splitting, folding. */
const PARTS = 3;
/** The stream of `random.uniform` and `random.normal`. */
export const DRAW = 0;

/** The two words of a key. */
export function wordsOf(key: Key): Words {
  const keyTensor = typeof key === "number" ? keyOf(key) : key;
  requireTensor("init", "the key", keyTensor, "pass random.key(seed), or the seed itself");
  if (!isIndexType(keyTensor.dtype) || keyTensor.shape.length !== 1 || keyTensor.shape[0] !== 2) {
    fail("InvalidArgument", `a key is i32[2], got ${typeText(keyTensor)}`, "pass random.key(seed), or the seed itself");
  }
  const words = keyTensor.data();
  return [at(words, 0), at(words, 1)];
}

/** The key of part `index` of whatever this key is for. */
export function partKey(key: Key, index: number): Tensor {
  return tensor(new Int32Array(threefry(wordsOf(key), [index, PARTS])));
}
