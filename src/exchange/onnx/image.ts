/** @file Resize and its older forms, sampling at points, regions of interest. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { regionsOf } from "../shared/regions.ts";
import { cubic, LINEAR, resampled, tapsAt } from "../shared/resample.ts";
import { sampleAt } from "../shared/sample.ts";
import type { Call, Operator } from "./call.ts";

/** One axis of a resize. */
interface Axis {
  readonly from: number;
  readonly to: number;
  readonly scale: number;
  /** The size before it is rounded. */
  readonly whole: number;
  /** Start and end of the part that is cut out, between 0 and 1. */
  readonly part: readonly [number, number];
}

/** Where element i of the result lies in x. */
const PLACES: Readonly<Record<string, (i: number, axis: Axis) => number>> = {
  half_pixel: (i, { scale }) => (i + 0.5) / scale - 0.5,
  half_pixel_symmetric: (i, { from, to, scale }) => {
    const adjustment = to / (scale * from);
    const offset = (from / 2) * (1 - adjustment);
    return offset + (i + 0.5) / scale - 0.5;
  },
  pytorch_half_pixel: (i, { to, scale }) => (to > 1 ? (i + 0.5) / scale - 0.5 : 0),
  align_corners: (i, { from, whole }) => (whole === 1 ? 0 : (i * (from - 1)) / (whole - 1)),
  asymmetric: (i, { scale }) => i / scale,
  tf_half_pixel_for_nn: (i, { scale }) => (i + 0.5) / scale,
  tf_crop_and_resize: (i, { from, to, part: [start, end] }) =>
    to > 1 ? start * (from - 1) + (i * (end - start) * (from - 1)) / (to - 1) : 0.5 * (start + end) * (from - 1),
};

const NEAREST: Readonly<Record<string, (place: number) => number>> = {
  round_prefer_floor: (place) => Math.ceil(place - 0.5),
  round_prefer_ceil: (place) => Math.floor(place + 0.5),
  floor: Math.floor,
  ceil: Math.ceil,
};

/** Sizes and scales of every axis. */
function axesOf(call: Call, x: Tensor): readonly Axis[] {
  const rank = x.rank;
  const isOld = call.opset < 11;
  const axes = call.axes(call.ints("axes") ?? x.shape.map((_, axis) => axis), rank);
  const nonEmpty = (i: number, what: string): readonly number[] | null => {
    const value = call.maybe(i);
    return value && value.shape[0] !== 0 ? call.numbers(i, what) : null;
  };
  const isCut = call.text("coordinate_transformation_mode", "") === "tf_crop_and_resize";
  const roi = isCut ? nonEmpty(1, "roi") : null;
  const scales = call.floats("scales") ?? nonEmpty(isOld ? 1 : 2, "scales");
  const sizes = isOld ? null : nonEmpty(3, "sizes");
  const factor =
    sizes &&
    ratioOf(
      call,
      sizes.map((size, k) => size / at(x.shape, at(axes, k))),
    );
  return x.shape.map((from, axis) => {
    const k = axes.indexOf(axis);
    if (k < 0) return { from, to: from, scale: 1, whole: from, part: [0, 1] };
    const part = [roi?.[k] ?? 0, roi?.[k + axes.length] ?? 1] as const;
    if (sizes) {
      const to = factor === null ? at(sizes, k) : Math.round(from * factor);
      return { from, to, scale: factor ?? to / from, whole: to, part };
    }
    const scale = scales?.[k] ?? call.fail("neither scales nor sizes are given");
    const whole = from * scale * (part[1] - part[0]);
    return { from, to: Math.floor(whole + 1e-6), scale, whole, part };
  });
}

/** One scale for all axes where the ratio of sides is kept. */
function ratioOf(call: Call, scales: readonly number[]): number | null {
  switch (call.text("keep_aspect_ratio_policy", "stretch")) {
    case "not_larger":
      return Math.min(...scales);
    case "not_smaller":
      return Math.max(...scales);
    default:
      return null;
  }
}

function placesOf(call: Call, axis: Axis): readonly number[] {
  const isOld = call.opset < 11;
  const mode = isOld ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel");
  const place = PLACES[mode] ?? call.fail(`coordinate_transformation_mode ${mode}`);
  return Array.from({ length: axis.to }, (_, i) => place(i, axis));
}

function nearest(call: Call, x: Tensor, axis: Axis, k: number): Tensor {
  const mode = call.opset < 11 ? "floor" : call.text("nearest_mode", "round_prefer_floor");
  const rounded = NEAREST[mode] ?? call.fail(`nearest_mode ${mode}`);
  const rows = placesOf(call, axis).map((place) => {
    const near = Math.round(place);
    // a place that is whole but for its last bits is whole
    const exact = Math.abs(place - near) < 1e-6 ? near : place;
    return Math.min(Math.max(rounded(exact), 0), axis.from - 1);
  });
  return t.take(x, t.tensor(Int32Array.from(rows)), k);
}

function resize(call: Call): Tensor {
  const given = call.x(0);
  const mode = call.text("mode", "nearest");
  const axes = axesOf(call, given);
  const extrapolated = call.text("coordinate_transformation_mode", "") === "tf_crop_and_resize";
  const kernel = mode === "cubic" ? cubic(call.float("cubic_coeff_a", -0.75)) : LINEAR;
  const y = axes.reduce((x, axis, k) => {
    const { from, to, scale } = axis;
    if (from === to && scale === 1 && axis.part[0] === 0 && axis.part[1] === 1) return x;
    if (mode === "nearest") return nearest(call, x, axis, k);
    const shrink = call.flag("antialias") ? Math.min(1, scale) : 1;
    const excludeOutside = call.flag("exclude_outside");
    return resampled(x, tapsAt(placesOf(call, axis), { from, kernel, shrink, excludeOutside }), k);
  }, given);
  return extrapolated ? extrapolate(call, y, axes) : y;
}

/** What lies outside of x is one value. */
function extrapolate(call: Call, y: Tensor, axes: readonly Axis[]): Tensor {
  const value = call.float("extrapolation_value", 0);
  return axes.reduce((x, axis, k) => {
    const inside = placesOf(call, axis).map((place) => place >= 0 && place <= axis.from - 1);
    if (inside.every(Boolean)) return x;
    const shape = x.shape.map((extent, a) => (a === k ? extent : 1));
    return t.where(t.reshape(t.tensor(inside), shape), x, value);
  }, y);
}

function gridSample(call: Call): Tensor {
  const mode = call
    .text("mode", "bilinear")
    .replace(/^linear$/, "bilinear")
    .replace(/^cubic$/, "bicubic");
  return sampleAt(call.x(0), call.x(1), {
    mode: mode as "bilinear",
    padding: call.text("padding_mode", "zeros") as "zeros",
    alignCorners: call.flag("align_corners"),
  });
}

function roiAlign(call: Call): Tensor {
  const usual = call.opset >= 16 ? "half_pixel" : "output_half_pixel";
  const rois = call.numbers(1, "rois");
  const batches = call.numbers(2, "batch indices");
  return regionsOf(call.x(0), {
    rois: batches.map((_, r) => rois.slice(4 * r, 4 * r + 4)),
    batches,
    size: [call.int("output_height", 1), call.int("output_width", 1)],
    samples: call.int("sampling_ratio", 0),
    scale: call.float("spatial_scale", 1),
    isMax: call.text("mode", "avg") === "max",
    offset: call.text("coordinate_transformation_mode", usual) === "half_pixel" ? 0.5 : 0,
  });
}

export const IMAGES: Readonly<Record<string, Operator>> = {
  Resize: resize,
  Upsample: (call) => resize(call),
  GridSample: gridSample,
  RoiAlign: roiAlign,
};
