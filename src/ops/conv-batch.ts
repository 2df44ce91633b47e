/**
 * @file Batches of convolutions, each as one convolution. A batch of inputs is more images; a batch of weights is more channels of
 * the result; a batch of both is more groups:
 *
 *   conv(x, w)    x [B, N, C, S]    →  x [B·N, C, S]                    y [B·N, O, P]
 *                 w [B, O, C, K]    →  w [B·O, C, K]                    y [N, B·O, P]
 *                 both              →  x [N, B·C, S], w [B·O, C, K]     y [N, B·O, P] in B groups
 *
 * With groups the channels of a group stay together: the batch goes between the group and its channels.
 */
import { at } from "../base/invariant.ts";
import type { BatchSite } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { OpDef } from "../ir/op.ts";
import { joinedAxes, movedAxis, splitAxis } from "./batch.ts";
import type { ConvAttrs, ConvInputAttrs, ConvWeightAttrs } from "./conv-geometry.ts";

/** [B, …, channels, …] → […, groups · B · channels of a group, …], the channels along `axis` of the result. */
function amongChannels(b: Build, x: Value, axis: number, groups: number): Value {
  const split = splitAxis(b, x, axis + 1, groups);
  return joinedAxes(b, joinedAxes(b, movedAxis(b, split, 0, axis + 1), axis), axis);
}

/** The reverse: a batch that is among the channels of each group along `axis`. */
function outOfChannels(b: Build, x: Value, axis: number, [groups, size]: readonly [number, number]): Value {
  const split = splitAxis(b, splitAxis(b, x, axis, groups), axis + 1, size);
  return joinedAxes(b, movedAxis(b, split, axis + 1, 0), axis + 1);
}

/** One for each group: a batch in front of the channels. */
const asGroups = (b: Build, x: Value, axis: number): Value => joinedAxes(b, movedAxis(b, x, 0, axis), axis);

const outOfGroups = (b: Build, x: Value, axis: number, size: number): Value =>
  movedAxis(b, splitAxis(b, x, axis, size), axis, 0);

/** How a batch of one of the three is one of it. */
type OfBatch<A> = (b: Build, site: BatchSite<A>) => readonly Value[];

/**
 * For the two that have images: the first operand and the result have them, the second is weights. `weights` puts a batch of these
 * among the channels of the result.
 */
function ofImages<A extends ConvAttrs>(
  op: () => OpDef<A>,
  weights: (b: Build, w: Value, groups: number) => Value,
): OfBatch<A> {
  return (b, { x: operands, batched, size, attrs }) => {
    const [x, w] = [at(operands, 0), at(operands, 1)];
    const { groups } = attrs;
    if (!batched[1]) return [splitAxis(b, b.call(op(), [joinedAxes(b, x, 0), w], attrs), 0, size)];
    if (!batched[0]) return [outOfChannels(b, b.call(op(), [x, weights(b, w, groups)], attrs), 1, [groups, size])];
    const made = b.call(op(), [asGroups(b, x, 1), joinedAxes(b, w, 0)], { ...attrs, groups: groups * size });
    return [outOfGroups(b, made, 1, size)];
  };
}

export const convOfBatch = (op: () => OpDef<ConvAttrs>): OfBatch<ConvAttrs> =>
  ofImages(op, (b, w, groups) => amongChannels(b, w, 0, groups));

/** The channels of a group of the result are the second axis of the weights. */
export const convInputOfBatch = (op: () => OpDef<ConvInputAttrs>): OfBatch<ConvInputAttrs> =>
  ofImages(op, (b, w) => asGroups(b, w, 1));

export const convWeightOfBatch =
  (op: () => OpDef<ConvWeightAttrs>): OfBatch<ConvWeightAttrs> =>
  (b, { x: operands, batched, size, attrs }) => {
    const [x, y] = [at(operands, 0), at(operands, 1)];
    const { groups } = attrs;
    if (!batched[1]) return [outOfGroups(b, b.call(op(), [amongChannels(b, x, 1, groups), y], attrs), 1, size)];
    if (!batched[0]) {
      return [outOfChannels(b, b.call(op(), [x, amongChannels(b, y, 1, groups)], attrs), 0, [groups, size])];
    }
    const both = [asGroups(b, x, 1), asGroups(b, y, 1)];
    return [outOfGroups(b, b.call(op(), both, { ...attrs, groups: groups * size }), 0, size)];
  };
