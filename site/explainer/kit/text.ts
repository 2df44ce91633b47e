/** @file Numbers in words. */
import { formatBytes } from "../../../src/base/bytes.ts";
import { grouped } from "../../../src/base/errors.ts";

export const bytesText = (bytes: number): string => formatBytes(Math.round(bytes));

/** On an axis: without a fraction where there is none. */
export const bytesTick = (bytes: number): string =>
  bytes === 0 ? "0" : formatBytes(Math.round(bytes)).replace(/\.0+ /, " ");

export const countText = (count: number): string => grouped(Math.round(count));

/** `2.3 ×`. */
export const ratioText = (ratio: number): string =>
  `${ratio >= 9.95 ? Math.round(ratio) : ratio.toFixed(ratio < 1.995 ? 2 : 1)} ×`;

/** `34 %`. */
export const percentText = (share: number): string => `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)} %`;

export const decimal = (value: number, digits = 4): string => value.toFixed(digits).replace("-", "−");
