/**
 * @file Colours of kinds: those of Okabe and Ito (Color Universal Design, 2008), which are distinguishable with any
 * common form of colour blindness, with greys for the least important kinds. Textures are redundant with colours.
 */
import type { Phase } from "../phases.ts";
import { VIEW_KINDS, type ViewKind } from "../picture.ts";
import type { Ink, Texture } from "../raster.ts";

type Rgb = readonly [number, number, number];

const FILL: Readonly<Record<ViewKind, Rgb>> = {
  persistent: [0, 114, 178],
  parameter: [0, 114, 178],
  state: [204, 121, 167],
  input: [86, 180, 233],
  result: [213, 94, 0],
  kept: [230, 159, 0],
  forward: [168, 174, 184],
  recomputed: [240, 228, 66],
  gradient: [0, 158, 115],
  update: [204, 121, 167],
  scratch: [112, 122, 138],
  allocation: [86, 180, 233],
};

const TEXTURE: Readonly<Partial<Record<ViewKind, Texture>>> = {
  recomputed: "stripes",
  scratch: "dots",
  state: "stripes",
};

const mix = (a: Rgb, b: Rgb, share: number): Rgb => [
  a[0] + (b[0] - a[0]) * share,
  a[1] + (b[1] - a[1]) * share,
  a[2] + (b[2] - a[2]) * share,
];

/** 0xAABBGGRR. */
const pixel = ([r, g, b]: Rgb): number =>
  ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;

const css = ([r, g, b]: Rgb): string => `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;

/** Colours of drawings in the current theme. */
export interface Theme {
  readonly dark: boolean;
  readonly inks: readonly Ink[];
  readonly background: number;
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
  readonly accent: string;
  readonly bound: string;
  readonly budget: string;
}

const PAPER: Rgb = [255, 255, 255];
const NIGHT: Rgb = [20, 24, 31];

export function themeOf(dark: boolean): Theme {
  const ground = dark ? NIGHT : PAPER;
  const inks = VIEW_KINDS.map((kind): Ink => {
    const fill = dark ? mix(FILL[kind], NIGHT, 0.12) : FILL[kind];
    return {
      fill: pixel(fill),
      edge: pixel(mix(fill, [0, 0, 0], 0.38)),
      faint: pixel(mix(fill, ground, 0.82)),
      texture: TEXTURE[kind] ?? "plain",
    };
  });
  return {
    dark,
    inks,
    background: pixel(ground),
    text: dark ? "#e6e9ef" : "#1b2430",
    quiet: dark ? "#9aa4b2" : "#5a6675",
    line: dark ? "#343c49" : "#d5dae1",
    accent: dark ? "#ffffff" : "#000000",
    bound: dark ? "#e6e9ef" : "#1b2430",
    budget: dark ? "#ff8a65" : "#b3261e",
  };
}

export const kindColour = (kind: ViewKind, dark: boolean): string =>
  css(dark ? mix(FILL[kind], NIGHT, 0.12) : FILL[kind]);

export const kindTexture = (kind: ViewKind): Texture => TEXTURE[kind] ?? "plain";

/** Phases have the colours of the values that they make, light enough for a name over them. */
export function phaseColour(phase: Phase, dark: boolean): string {
  const kind: ViewKind = { forward: "forward", backward: "gradient", update: "update" }[phase] as ViewKind;
  return css(mix(FILL[kind], dark ? NIGHT : PAPER, 0.6));
}
