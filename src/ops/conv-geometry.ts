/**
 * @file The geometry that the three convolution operations share, and the rules their shapes obey. Position p of the
 * result sees, through tap r of the kernel, position s of the input, on each spatial axis alike:
 *
 *     s = p · stride + r · dilation - lo            only where 0 ≤ s < S
 *
 *     stride 2, dilation 1, lo 1, hi 0, S = 5, K = 3     →  P = 2
 *
 *        s  (-1) 0  1  2  3  4
 *     p = 0   r  r  r
 *     p = 1         r  r  r
 *
 * Invariant: a `Geometry` is consistent, P = ⌊(lo + S + hi - span) / stride⌋ + 1 with span = dilation · (K - 1) + 1, so
 * the same one serves for conv(x, w) → y, conv_input(y, w) → x and conv_weight(x, y) → w.
 */
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { elementsOf, shapeText, type TensorType, typeText } from "../ir/type.ts";
import { requireInputs, requireList, requireSameDtype } from "./checks.ts";
import { requireDomain } from "./define.ts";

/** One number for each spatial axis; `lo` and `hi` are the zeros added before and after the input. */
export type ConvAttrs = {
  readonly stride: readonly number[];
  readonly lo: readonly number[];
  readonly hi: readonly number[];
  readonly dilation: readonly number[];
  readonly groups: number;
  /** The result has the type that products are added up in: f32 for bf16 and f16. */
  readonly wide?: boolean;
};

/** `size`: spatial extents of x. */
export type ConvInputAttrs = ConvAttrs & { readonly size: readonly number[] };
/** `kernel`: spatial extents of w. */
export type ConvWeightAttrs = ConvAttrs & { readonly kernel: readonly number[] };

export interface Geometry extends ConvAttrs {
  readonly batch: number;
  /** Channels of one group: of the input and of the result. */
  readonly inChannels: number;
  readonly outChannels: number;
  /** Spatial extents S, K, P of x, w and y. */
  readonly input: readonly number[];
  readonly kernel: readonly number[];
  readonly output: readonly number[];
}

/** The shapes of x[N, C, …S], w[O, C/g, …K] and y[N, O, …P]. */
export function shapeOfX(g: Geometry): readonly number[] {
  return [g.batch, g.groups * g.inChannels, ...g.input];
}

export function shapeOfW(g: Geometry): readonly number[] {
  return [g.groups * g.outChannels, g.inChannels, ...g.kernel];
}

export function shapeOfY(g: Geometry): readonly number[] {
  return [g.batch, g.groups * g.outChannels, ...g.output];
}

/** Checks the attributes, the ranks and the element types of the two inputs, which are called `roles`. */
function requireConv(
  name: string,
  roles: readonly [string, string],
  inputs: readonly TensorType[],
  attrs: ConvAttrs,
): readonly [TensorType, TensorType] {
  requireInputs(name, roles, inputs);
  requireDomain(name, "float", inputs);
  const [first, second] = [at(inputs, 0), at(inputs, 1)];
  requireSameDtype(name, roles, first, second);
  const count = first.shape.length - 2;
  if (count < 1 || second.shape.length !== first.shape.length) {
    const found = `${roles[0]} ${typeText(first)} and ${roles[1]} ${typeText(second)}`;
    const text = `${name}: takes two tensors of one rank, 3 or more, got ${found}`;
    throw new TidemarkError("ShapeMismatch", text, {
      help: "x is [N, C, ...spatial], w is [O, C / groups, ...spatial], y is [N, O, ...spatial]",
    });
  }
  const form = convForm(count);
  requireList(name, "stride", attrs.stride, { ...form, least: 1 });
  requireList(name, "dilation", attrs.dilation, { ...form, least: 1 });
  requireList(name, "lo", attrs.lo, { ...form, least: 0 });
  requireList(name, "hi", attrs.hi, { ...form, least: 0 });
  if (!Number.isInteger(attrs.groups) || attrs.groups < 1) {
    const text = `${name}: groups is ${attrs.groups}`;
    throw new TidemarkError("InvalidArgument", text, { help: "give a whole number ≥ 1; 1 connects all channels" });
  }
  return [first, second];
}

/** One number for each of `count` spatial axes. */
function convForm(count: number): { readonly count: number; readonly of: string } {
  return { count, of: `a convolution over ${count} axes` };
}

/** Where a tensor has its channels. */
type ChannelAxis = readonly [type: TensorType, axis: 0 | 1];

/** Channels of one group. */
function channelsPerGroup(name: string, what: string, [type, axis]: ChannelAxis, groups: number): number {
  const channels = at(type.shape, axis);
  if (channels % groups === 0) return channels / groups;
  const text = `${name}: ${groups} groups do not divide the ${channels} ${what} channels of ${typeText(type)}`;
  throw new TidemarkError("ShapeMismatch", text, { help: `groups must divide ${channels}` });
}

/** Result extents of a convolution; a kernel that fits nowhere is a mistake. */
export function outputExtents(
  name: string,
  input: readonly number[],
  kernel: readonly number[],
  attrs: ConvAttrs,
): readonly number[] {
  return input.map((extent, axis) => {
    const taps = at(kernel, axis);
    const span = taps < 1 ? 0 : at(attrs.dilation, axis) * (taps - 1) + 1;
    const padded = at(attrs.lo, axis) + extent + at(attrs.hi, axis);
    if (taps >= 1 && padded >= span) return Math.floor((padded - span) / at(attrs.stride, axis)) + 1;
    const kernelText = `kernel of ${taps} with dilation ${at(attrs.dilation, axis)} spans ${span}`;
    const inputText = `input of ${extent} with padding ${at(attrs.lo, axis)} + ${at(attrs.hi, axis)} has ${padded}`;
    const text = `${name}: ${kernelText} positions on spatial axis ${axis}, the ${inputText}`;
    throw new TidemarkError("ShapeMismatch", text, {
      help: taps < 1 ? "a kernel has at least one tap" : "pad more, or use a smaller kernel or dilation",
    });
  });
}

/** Both inputs have an extent for the same thing: they must agree. */
function requireEqual(
  name: string,
  what: string,
  left: readonly [number, string],
  right: readonly [number, string],
): void {
  if (left[0] === right[0]) return;
  const text = `${name}: ${what} differ: ${left[0]} in ${left[1]}, ${right[0]} in ${right[1]}`;
  throw new TidemarkError("ShapeMismatch", text, {
    help: "x is [N, C, ...], w is [O, C / groups, ...], y is [N, O, ...]; transpose tensors in other layouts",
  });
}

/** y has the extents that a convolution of x with the kernel gives. */
function requireOutput(name: string, y: TensorType, expected: readonly number[], from: string): void {
  const found = y.shape.slice(2);
  if (found.every((extent, axis) => extent === expected[axis])) return;
  const text = `${name}: y is ${typeText(y)}, spatial extents ${shapeText(found)}, but ${from} gives ${shapeText(expected)}`;
  throw new TidemarkError("ShapeMismatch", text, {
    help: "stride, padding, dilation and extents must be those of the convolution",
  });
}

/** The attributes that all three share, in the order in which they print. */
export function sharedAttrs({ stride, lo, hi, dilation, groups }: ConvAttrs): ConvAttrs {
  return { stride, lo, hi, dilation, groups };
}

/** Of conv(x, w). */
export function convGeometry(inputs: readonly TensorType[], attrs: ConvAttrs): Geometry {
  const [x, w] = requireConv("conv", ["x", "w"], inputs, attrs);
  const inChannels = channelsPerGroup("conv", "input", [x, 1], attrs.groups);
  const outChannels = channelsPerGroup("conv", "output", [w, 0], attrs.groups);
  const groups = attrs.groups === 1 ? "" : ` in ${attrs.groups} groups`;
  requireEqual(
    "conv",
    "input channels of a group",
    [inChannels, `x ${typeText(x)}${groups}`],
    [at(w.shape, 1), `w ${typeText(w)}`],
  );
  const [input, kernel] = [x.shape.slice(2), w.shape.slice(2)];
  const output = outputExtents("conv", input, kernel, attrs);
  return { ...sharedAttrs(attrs), batch: at(x.shape, 0), inChannels, outChannels, input, kernel, output };
}

/** Of conv_input(y, w). */
export function convInputGeometry(inputs: readonly TensorType[], attrs: ConvInputAttrs): Geometry {
  const name = "conv_input";
  const [y, w] = requireConv(name, ["y", "w"], inputs, attrs);
  requireList(name, "size", attrs.size, { ...convForm(y.shape.length - 2), least: 0 });
  requireEqual(name, "output channels", [at(y.shape, 1), `y ${typeText(y)}`], [at(w.shape, 0), `w ${typeText(w)}`]);
  const outChannels = channelsPerGroup(name, "output", [y, 1], attrs.groups);
  const kernel = w.shape.slice(2);
  const output = outputExtents(name, attrs.size, kernel, attrs);
  requireOutput(name, y, output, `size [${attrs.size.join(",")}] with w ${typeText(w)}`);
  return {
    ...sharedAttrs(attrs),
    batch: at(y.shape, 0),
    inChannels: at(w.shape, 1),
    outChannels,
    input: attrs.size,
    kernel,
    output,
  };
}

/** Of conv_weight(x, y). */
export function convWeightGeometry(inputs: readonly TensorType[], attrs: ConvWeightAttrs): Geometry {
  const name = "conv_weight";
  const [x, y] = requireConv(name, ["x", "y"], inputs, attrs);
  requireList(name, "kernel", attrs.kernel, { ...convForm(x.shape.length - 2), least: 1 });
  requireEqual(name, "batches", [at(x.shape, 0), `x ${typeText(x)}`], [at(y.shape, 0), `y ${typeText(y)}`]);
  const inChannels = channelsPerGroup(name, "input", [x, 1], attrs.groups);
  const outChannels = channelsPerGroup(name, "output", [y, 1], attrs.groups);
  const input = x.shape.slice(2);
  const output = outputExtents(name, input, attrs.kernel, attrs);
  requireOutput(name, y, output, `kernel [${attrs.kernel.join(",")}] over x ${typeText(x)}`);
  return { ...sharedAttrs(attrs), batch: at(x.shape, 0), inChannels, outChannels, input, kernel: attrs.kernel, output };
}

/**
 * One spatial axis of a phase: the positions of the input that the same taps see, and those taps.
 *
 *   stride 2, three taps:     s + lo even: taps 0 and 2        s + lo odd: tap 1
 *
 * Position u of a phase is s = first + stride · u; its tap t is r = tap + tapStep · t; and through r, s is seen by the place
 * p = u + seen - back · t.
 */
export interface Phase {
  readonly first: number;
  readonly positions: number;
  readonly tap: number;
  readonly tapStep: number;
  readonly taps: number;
  readonly seen: number;
  readonly back: number;
}

/** The phases of an axis that have positions: s + lo ≡ r · dilation modulo the stride. */
function axisPhases(g: Geometry, axis: number): readonly Phase[] {
  const [stride, dilation, lo] = [at(g.stride, axis), at(g.dilation, axis), at(g.lo, axis)];
  const [extent, kernel] = [at(g.input, axis), at(g.kernel, axis)];
  const found: Phase[] = [];
  for (let phase = 0; phase < stride; phase++) {
    const first = (((phase - lo) % stride) + stride) % stride;
    const taps = Array.from({ length: kernel }, (_, r) => r).filter((r) => (r * dilation) % stride === phase);
    const [tap = 0, next = tap + 1] = taps;
    const tapStep = next - tap;
    const seen = taps.length > 0 ? (first + lo - tap * dilation) / stride : 0;
    const back = taps.length > 1 ? (tapStep * dilation) / stride : 0;
    const positions = Math.max(0, Math.ceil((extent - first) / stride));
    if (positions > 0) found.push({ first, positions, tap, tapStep, taps: taps.length, seen, back });
  }
  return found;
}

/** Every combination of the axes' phases; every position of the input is in one of them. */
export function phases(g: Geometry): readonly (readonly Phase[])[] {
  return g.input.reduce<readonly (readonly Phase[])[]>(
    (all, _, axis) => all.flatMap((before) => axisPhases(g, axis).map((phase) => [...before, phase])),
    [[]],
  );
}

/** Visits every term x[e] · w[f] · y[h] of the trilinear form, with h, then f ascending: the meaning of all three. */
export function eachTerm(g: Geometry, visit: (x: number, w: number, y: number) => void): void {
  const area = elementsOf(g.input);
  const taps = elementsOf(g.kernel);
  const places = elementsOf(g.output);
  const spatial = seen(g);
  for (let row = 0; row < g.batch * g.groups * g.outChannels; row++) {
    const o = row % (g.groups * g.outChannels);
    const image = Math.floor(row / (g.groups * g.outChannels));
    const firstChannel = image * g.groups * g.inChannels + Math.floor(o / g.outChannels) * g.inChannels;
    for (let p = 0; p < places; p++) {
      for (let c = 0; c < g.inChannels; c++) {
        for (let r = 0; r < taps; r++) {
          const s = at(spatial, p * taps + r);
          if (s >= 0) visit((firstChannel + c) * area + s, (o * g.inChannels + c) * taps + r, row * places + p);
        }
      }
    }
  }
}

/** Row-major input position seen from result position p through tap r, at p · taps + r; -1 in the padding. */
function seen(g: Geometry): Int32Array {
  const taps = elementsOf(g.kernel);
  return Int32Array.from({ length: elementsOf(g.output) * taps }, (_, e) => {
    let p = Math.floor(e / taps);
    let r = e % taps;
    let position = 0;
    let weight = 1;
    for (let axis = g.input.length - 1; axis >= 0; axis--) {
      const places = at(g.output, axis);
      const extent = at(g.input, axis);
      const s = (p % places) * at(g.stride, axis) + (r % at(g.kernel, axis)) * at(g.dilation, axis) - at(g.lo, axis);
      if (s < 0 || s >= extent) return -1;
      position += s * weight;
      weight *= extent;
      p = Math.floor(p / places);
      r = Math.floor(r / at(g.kernel, axis));
    }
    return position;
  });
}
