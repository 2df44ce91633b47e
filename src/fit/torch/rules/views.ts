/** @file Views, whose results share storage, and copies: reshape, transpose, slice, split, concatenation. */
import type { Autograd, EagerTensor } from "../autograd.ts";
import type { Call, Rule } from "../call.ts";
import { isContiguous, type Shape } from "../layout.ts";
import { reshaped, sumTo, transposed } from "./shared.ts";

/** The gradient of a reshape is one too. */
function reshapeBack(g: Autograd, x: EagerTensor, y: EagerTensor, name: string): EagerTensor {
  const { shape } = x;
  g.record({ name, inputs: [x], outputs: [y], backward: ([dy]) => [dy ? reshaped(g, dy, shape) : null] });
  return y;
}

const reshape: Rule = (call) => {
  const x = call.maybe("self") ?? call.t("input");
  return [reshapeBack(call.g, x, reshaped(call.g, x, call.type().shape), call.node.target)];
};

const same: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  return [{ ...g.view(x), edge: x.edge }];
};

const detached: Rule = (call) => [call.g.view(call.t("self"))];

const contiguous: Rule = (call) => {
  const x = call.t("self");
  if (isContiguous(x.shape, x.strides)) return same(call);
  const { g } = call;
  const y = call.out();
  g.record({ name: call.node.target, inputs: [x], outputs: [y], backward: ([dy]) => [dy ? g.view(dy) : null] });
  return [y];
};

function permuted(g: Autograd, x: EagerTensor, axes: readonly number[]): EagerTensor {
  const pick = (list: readonly number[]): readonly number[] => axes.map((axis) => list[axis] as number);
  return g.view(x, pick(x.shape), pick(x.strides));
}

function permute(call: Call, axes: readonly number[]): readonly EagerTensor[] {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  const y = permuted(g, x, axes);
  const back = axes.map((_, i) => axes.indexOf(i));
  g.record({
    name: call.node.target,
    inputs: [x],
    outputs: [y],
    backward: ([dy]) => [dy ? permuted(g, dy, back) : null],
  });
  return [y];
}

const transpose: Rule = (call) => {
  const { g } = call;
  const x = call.t("self");
  const rank = x.shape.length;
  const word = call.node.target.includes("swapaxes") ? "axis" : "dim";
  const [a, b] = [call.axis(`${word}0`, 0, rank), call.axis(`${word}1`, 1, rank)];
  if (rank < 2) return same(call);
  const y = transposed(g, x, a, b);
  g.record({
    name: call.node.target,
    inputs: [x],
    outputs: [y],
    backward: ([dy]) => [dy ? transposed(g, dy, a, b) : null],
  });
  return [y];
};

const permuteRule: Rule = (call) => {
  const { length } = call.t("self").shape;
  return permute(
    call,
    call.ns("dims", []).map((axis) => (axis < 0 ? axis + length : axis)),
  );
};

/** Axes that repeat have stride 0; the gradient is summed over them. */
const expand: Rule = (call) => {
  const { g } = call;
  const x = call.t("self");
  const { shape } = call.type();
  const lead = shape.length - x.shape.length;
  const strides = shape.map((extent, i) =>
    i >= lead && x.shape[i - lead] === extent ? (x.strides[i - lead] as number) : 0,
  );
  const y = g.view(x, shape, strides);
  g.record({
    ...{ name: call.node.target, inputs: [x], outputs: [y] },
    backward: ([dy]) => [dy ? sumTo(g, g.view(dy), x.shape) : null],
  });
  return [y];
};

/** A part of a tensor; its gradient is a whole tensor of zeros with the part filled in. */
function part(call: Call, x: EagerTensor, shape: Shape, strides: readonly number[]): EagerTensor {
  const { g } = call;
  const y = g.view(x, shape, strides);
  g.record({
    name: call.node.target,
    inputs: [x],
    outputs: [y],
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  return y;
}

const slice: Rule = (call) => {
  const x = call.maybe("self") ?? call.t("input");
  const { shape } = call.type();
  const axis = call.axis("dim", 0, x.shape.length);
  const step = call.n("step", 1);
  return [
    part(
      call,
      x,
      shape,
      x.strides.map((stride, i) => (i === axis ? stride * step : stride)),
    ),
  ];
};

const select: Rule = (call) => {
  const x = call.t("self");
  const axis = call.axis("dim", 0, x.shape.length);
  return [
    part(
      call,
      x,
      call.type().shape,
      x.strides.filter((_, i) => i !== axis),
    ),
  ];
};

/** Views of one tensor; their gradients are concatenated. */
const split: Rule = (call) => {
  const { g } = call;
  const x = call.t("self");
  const outputs = Array.from({ length: call.outputs }, (_, i) => g.view(x, call.type(i).shape, x.strides));
  g.record({ name: call.node.target, inputs: [x], outputs, backward: () => [g.fresh(x.shape, x)] });
  return outputs;
};

const unbind: Rule = (call) => {
  const { g } = call;
  const x = call.t("self");
  const axis = call.axis("dim", 0, x.shape.length);
  const strides = x.strides.filter((_, i) => i !== axis);
  const outputs = Array.from({ length: call.outputs }, (_, i) => g.view(x, call.type(i).shape, strides));
  g.record({ name: call.node.target, inputs: [x], outputs, backward: () => [g.fresh(x.shape, x)] });
  return outputs;
};

/** A copy; the gradient of each operand is a view of that of the whole. */
const cat: Rule = (call) => {
  const { g } = call;
  const list = call.list("tensors");
  const y = call.out();
  g.record({
    ...{ name: call.node.target, inputs: list, outputs: [y] },
    backward: ([dy]) => list.map((x) => (dy && g.needsGradient(x) ? g.view(dy, x.shape, dy.strides) : null)),
  });
  return [y];
};

const stack: Rule = (call) => {
  const { g } = call;
  const list = call.list("tensors");
  const y = call.out();
  const axis = call.axis("dim", 0, y.shape.length);
  g.record({
    ...{ name: call.node.target, inputs: list, outputs: [y] },
    backward: ([dy]) =>
      list.map((x) =>
        dy && g.needsGradient(x)
          ? g.view(
              dy,
              x.shape,
              dy.strides.filter((_, i) => i !== axis),
            )
          : null,
      ),
  });
  return [y];
};

/** A copy whose gradient is another copy of the operand's shape: pad, roll, flip, repeat, upsampling. */
export const copied: Rule = (call) => {
  const { g } = call;
  const x = call.maybe("self") ?? call.t("input");
  const y = call.out();
  g.record({
    name: call.node.target,
    inputs: [x],
    outputs: [y],
    backward: ([dy]) => [dy ? g.fresh(x.shape, x) : null],
  });
  return [y];
};

const squeezeLike: Rule = reshape;

const each = (text: string, rule: Rule): readonly (readonly [string, Rule])[] =>
  text.split(" ").map((name) => [name, rule] as const);

export const VIEWS: Readonly<Record<string, Rule>> = Object.fromEntries([
  ...each("view reshape _unsafe_view flatten unflatten view_as reshape_as _reshape_alias ravel", reshape),
  ...each("squeeze unsqueeze atleast_1d atleast_2d atleast_3d", squeezeLike),
  ...each("alias dropout feature_dropout alpha_dropout feature_alpha_dropout lift_fresh set_grad positive", same),
  ...each("detach detach_ detach_copy", detached),
  ...each("contiguous", contiguous),
  ...each("transpose swapaxes swapdims", transpose),
  ...each("t numpy_T", (call) => permute(call, call.t("self").shape.length < 2 ? [0] : [1, 0])),
  ...each("permute", permuteRule),
  ...each("expand expand_as broadcast_to", expand),
  ...each("slice narrow", slice),
  ...each("select", select),
  ...each("split split_with_sizes chunk tensor_split", split),
  ...each("unbind", unbind),
  ...each("cat concat hstack vstack dstack column_stack", cat),
  ...each("stack", stack),
  ...each("pad constant_pad_nd reflection_pad2d replication_pad2d roll flip repeat repeat_interleave tile", copied),
  ...each(
    "upsample_nearest2d upsample_bilinear2d upsample_bicubic2d pixel_shuffle channel_shuffle _upsample_bilinear2d_aa",
    copied,
  ),
  ...each("reflection_pad1d reflection_pad3d replication_pad1d replication_pad3d", copied),
  ...each("upsample_nearest1d upsample_nearest3d upsample_linear1d upsample_trilinear3d", copied),
  ...each("_upsample_nearest_exact1d _upsample_nearest_exact2d pixel_unshuffle native_channel_shuffle", copied),
  ...each("unfold diag diag_embed rot90 fliplr flipud take sum_to_size mT adjoint", copied),
  ...each("cumsum logcumsumexp triu tril im2col col2im as_strided diagonal movedim", copied),
]);
