/** @file Samples of Fourier transforms. References are sums of cosines and sines. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get, type Plain } from "../plain.ts";
import type { Family, Float } from "../sample.ts";

type Pair = readonly [re: Plain, im: Plain];

const turn = (j: number, k: number, n: number): number => (2 * Math.PI * ((j * k) % n)) / n;
const zeros = (x: Plain): Plain => build(x.shape, () => 0);

/** Σ_k x_k e^(±2πi·jk/n) along an axis, times a factor. */
function dft([re, im]: Pair, axis: number, sign: 1 | -1, factor = 1): Pair {
  const n = re.shape[axis]!;
  const part = (term: (x: number, y: number, angle: number) => number): Plain =>
    build(re.shape, (index) => {
      let sum = 0;
      for (let k = 0; k < n; k++) {
        const place = index.with(axis, k);
        sum += term(get(re, place), get(im, place), sign * turn(index[axis]!, k, n));
      }
      return sum * factor;
    });
  return [part((x, y, a) => x * Math.cos(a) - y * Math.sin(a)), part((x, y, a) => x * Math.sin(a) + y * Math.cos(a))];
}

/** The first `count` elements along an axis, zeros behind the last. */
const resized = (x: Plain, axis: number, count: number): Plain =>
  build(x.shape.with(axis, count), (index) => (index[axis]! < x.shape[axis]! ? get(x, index) : 0));

/** All n elements from the first half, with what a real sequence has in the others. */
const whole = ([re, im]: Pair, axis: number, n: number): Pair => {
  const part = (x: Plain, sign: number): Plain =>
    build(x.shape.with(axis, n), (index) => {
      const k = index[axis]!;
      const own = 2 * k <= n ? k : n - k;
      if (own === 0 || 2 * own === n) return sign < 0 ? 0 : get(x, index.with(axis, own));
      return (own === k ? 1 : sign) * get(x, index.with(axis, own));
    });
  return [part(re, 1), part(im, -1)];
};

const half = (pair: Pair, axis: number, n: number): Pair =>
  pair.map((x) => resized(x, axis, Math.floor(n / 2) + 1)) as unknown as Pair;

const list = ({ re, im }: tm.Complex): tm.Tensor[] => [re, im];
const shifted = (x: Plain, axis: number, by: number): Plain =>
  build(x.shape, (index) => get(x, index.with(axis, (index[axis]! + by) % x.shape[axis]!)));

const inputsOf = (t: Float) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return { x, two: (...shape: Shape) => [x(...shape), x(...shape)] };
};

const lines: Family = (t) => {
  const { x, two } = inputsOf(t);
  return [
    {
      name: "fft",
      inputs: two(2, 6),
      call: (re, im) => list(tm.fft({ re: re!, im: im! })),
      reference: (re, im) => dft([re!, im!], 1, -1),
    },
    {
      name: "fft",
      inputs: two(5, 2),
      valuesOnly: true,
      call: (re, im) => list(tm.fft({ re: re!, im: im! }, { axis: 0, n: 8, norm: "ortho" })),
      reference: (re, im) => dft([resized(re!, 0, 8), resized(im!, 0, 8)], 0, -1, 1 / Math.sqrt(8)),
    },
    {
      name: "fft",
      inputs: [x(9)],
      valuesOnly: true,
      call: (re) => list(tm.fft(re!, { n: 4, norm: "forward" })),
      reference: (re) => dft([resized(re!, 0, 4), zeros(resized(re!, 0, 4))], 0, -1, 1 / 4),
    },
    {
      name: "ifft",
      inputs: two(2, 5),
      call: (re, im) => list(tm.ifft({ re: re!, im: im! })),
      reference: (re, im) => dft([re!, im!], 1, 1, 1 / 5),
    },
  ];
};

const real: Family = (t) => {
  const { x, two } = inputsOf(t);
  return [
    {
      name: "rfft",
      inputs: [x(2, 8)],
      call: (a) => list(tm.rfft(a!)),
      reference: (a) => half(dft([a!, zeros(a!)], 1, -1), 1, 8),
    },
    {
      name: "rfft",
      inputs: [x(5, 2)],
      valuesOnly: true,
      call: (a) => list(tm.rfft(a!, { axis: 0, norm: "ortho" })),
      reference: (a) => half(dft([a!, zeros(a!)], 0, -1, 1 / Math.sqrt(5)), 0, 5),
    },
    {
      name: "irfft",
      inputs: two(2, 5),
      call: (re, im) => tm.irfft({ re: re!, im: im! }),
      reference: (re, im) => dft(whole([re!, im!], 1, 8), 1, 1, 1 / 8)[0],
    },
    {
      name: "irfft",
      inputs: two(4),
      valuesOnly: true,
      call: (re, im) => tm.irfft({ re: re!, im: im! }, { n: 7, norm: "forward" }),
      reference: (re, im) => dft(whole([re!, im!], 0, 7), 0, 1)[0],
    },
  ];
};

const beside: Family = (t) => {
  const { x } = inputsOf(t);
  return [
    {
      name: "complexMul",
      inputs: [x(2, 3), x(2, 3), x(3), x(3)],
      call: (a, b, c, d) => list(tm.complexMul({ re: a!, im: b! }, { re: c!, im: d! })),
      reference: (a, b, c, d) => {
        const part = (term: (v: readonly number[]) => number): Plain =>
          build(a!.shape, (index) =>
            term([get(a!, index), get(b!, index), get(c!, index.slice(1)), get(d!, index.slice(1))]),
          );
        return [part(([p, q, r, s]) => p! * r! - q! * s!), part(([p, q, r, s]) => p! * s! + q! * r!)];
      },
    },
    {
      name: "fftshift",
      inputs: [x(2, 5)],
      call: (a) => tm.fftshift(a!, 1),
      reference: (a) => shifted(a!, 1, 3),
    },
    {
      name: "ifftshift",
      inputs: [x(4, 5)],
      call: (a) => tm.ifftshift(a!),
      reference: (a) => shifted(shifted(a!, 1, 2), 0, 2),
    },
    {
      name: "fftfreq",
      inputs: [],
      call: () => tm.fftfreq(5, 0.5, t),
      reference: () => build([5], ([i]) => (i! < 3 ? i! : i! - 5) / 2.5),
    },
    {
      name: "rfftfreq",
      inputs: [],
      call: () => tm.rfftfreq(6, 1, t),
      reference: () => build([4], ([i]) => i! / 6),
    },
  ];
};

const axes: Family = (t) => {
  const { two } = inputsOf(t);
  return [
    {
      name: "fftn",
      inputs: two(2, 3, 2),
      call: (re, im) => list(tm.fftn({ re: re!, im: im! })),
      reference: (re, im) => dft(dft(dft([re!, im!], 2, -1), 1, -1), 0, -1),
    },
    {
      name: "ifftn",
      inputs: two(3, 4),
      call: (re, im) => list(tm.ifftn({ re: re!, im: im! }, { s: [2, 4] })),
      reference: (re, im) => dft(dft([resized(re!, 0, 2), resized(im!, 0, 2)], 1, 1, 1 / 4), 0, 1, 1 / 2),
    },
    {
      name: "fft2",
      inputs: two(2, 2, 3),
      call: (re, im) => list(tm.fft2({ re: re!, im: im! })),
      reference: (re, im) => dft(dft([re!, im!], 2, -1), 1, -1),
    },
    {
      name: "ifft2",
      inputs: two(3, 2, 2),
      call: (re, im) => list(tm.ifft2({ re: re!, im: im! }, { axes: [0, 2] })),
      reference: (re, im) => dft(dft([re!, im!], 2, 1, 1 / 2), 0, 1, 1 / 3),
    },
  ];
};

const realAxes: Family = (t) => {
  const { x, two } = inputsOf(t);
  return [
    {
      name: "rfftn",
      inputs: [x(3, 4)],
      call: (a) => list(tm.rfftn(a!)),
      reference: (a) => dft(half(dft([a!, zeros(a!)], 1, -1), 1, 4), 0, -1),
    },
    {
      name: "irfftn",
      inputs: two(3, 3),
      call: (re, im) => tm.irfftn({ re: re!, im: im! }),
      reference: (re, im) => dft(whole(dft([re!, im!], 0, 1, 1 / 3), 1, 4), 1, 1, 1 / 4)[0],
    },
    {
      name: "rfft2",
      inputs: [x(2, 3, 4)],
      call: (a) => list(tm.rfft2(a!)),
      reference: (a) => dft(half(dft([a!, zeros(a!)], 2, -1), 2, 4), 1, -1),
    },
    {
      name: "irfft2",
      inputs: two(2, 2, 3),
      call: (re, im) => tm.irfft2({ re: re!, im: im! }, { s: [2, 5] }),
      reference: (re, im) => dft(whole(dft([re!, im!], 1, 1, 1 / 2), 2, 5), 2, 1, 1 / 5)[0],
    },
  ];
};

export const fourier: Family = (t) => [lines, real, axes, realAxes, beside].flatMap((family) => family(t));
