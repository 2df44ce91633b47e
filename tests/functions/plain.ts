/**
 * @file References in plain JavaScript: tensors as shape and numbers, results as obvious loops over indices. Nothing here
 * knows the project; what it says is what the functions must mean.
 */

export interface Plain {
  readonly shape: readonly number[];
  readonly data: ArrayLike<number>;
}

export type Index = readonly number[];

const product = (list: readonly number[]): number => list.reduce((n, extent) => n * extent, 1);

/** Row-major number of an element; axes of extent 1 repeat, missing ones in front are ignored (broadcasting). */
export function get(x: Plain, index: Index): number {
  const own = index.slice(index.length - x.shape.length);
  const number = own.reduce((n, i, axis) => n * x.shape[axis]! + (x.shape[axis] === 1 ? 0 : i), 0);
  return x.data[number]!;
}

/** All indices of a shape, row-major. */
export function indices(shape: readonly number[]): Index[] {
  let all: Index[] = [[]];
  for (const extent of shape) all = all.flatMap((head) => Array.from({ length: extent }, (_, i) => [...head, i]));
  return all;
}

/** The tensor with `value(index)` at each index. */
export function build(shape: readonly number[], value: (index: Index) => number): Plain {
  return { shape, data: indices(shape).map(value) };
}

export function broadcastShape(...shapes: readonly (readonly number[])[]): readonly number[] {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    const extents = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1);
    return extents.find((extent) => extent !== 1) ?? 1;
  });
}

/** Element by element, broadcasting. */
export function each(f: (...values: number[]) => number): (...inputs: Plain[]) => Plain {
  return (...inputs) =>
    build(broadcastShape(...inputs.map((x) => x.shape)), (index) => f(...inputs.map((x) => get(x, index))));
}

const fromFront = (axis: number, rank: number): number => (axis < 0 ? axis + rank : axis);

/** Replaces the elements of each group (those with one key) by others. */
export function inGroups(x: Plain, keyOf: (index: Index) => string, f: (values: readonly number[]) => number[]): Plain {
  const groups = new Map<string, number[]>();
  const all = indices(x.shape);
  all.forEach((index, number) => {
    groups.set(keyOf(index), [...(groups.get(keyOf(index)) ?? []), number]);
  });
  const data = new Float64Array(all.length);
  for (const members of groups.values()) {
    const made = f(members.map((number) => x.data[number]!));
    members.forEach((number, i) => {
      data[number] = made[i]!;
    });
  }
  return { shape: x.shape, data };
}

/** Replaces the elements along axes by others. */
export function along(x: Plain, axes: readonly number[], f: (values: readonly number[]) => number[]): Plain {
  const gone = axes.map((axis) => fromFront(axis, x.shape.length));
  return inGroups(x, (index) => index.filter((_, axis) => !gone.includes(axis)).join(), f);
}

/** One number for the elements along axes; all axes when none are given. */
export function reduceBy(
  f: (values: readonly number[]) => number,
  axes?: readonly number[],
  keepDims = false,
): (x: Plain) => Plain {
  return (x) => {
    const gone = axes?.map((axis) => fromFront(axis, x.shape.length)) ?? x.shape.map((_, axis) => axis);
    const kept = x.shape.map((_, axis) => axis).filter((axis) => !gone.includes(axis));
    const cells = build(
      kept.map((axis) => x.shape[axis]!),
      (index) => {
        const inside = indices(gone.map((axis) => x.shape[axis]!));
        const place = (at: Index): Index =>
          x.shape.map((_, axis) => (gone.includes(axis) ? at[gone.indexOf(axis)]! : index[kept.indexOf(axis)]!));
        return f(inside.map((at) => get(x, place(at))));
      },
    );
    return keepDims ? { ...cells, shape: x.shape.map((n, axis) => (gone.includes(axis) ? 1 : n)) } : cells;
  };
}

export const total = (values: readonly number[]): number => values.reduce((s, v) => s + v, 0);
export const average = (values: readonly number[]): number => total(values) / values.length;
export const spread = (values: readonly number[], ddof = 0): number =>
  total(values.map((v) => (v - average(values)) ** 2)) / (values.length - ddof);

export const softmaxOf = (values: readonly number[]): number[] => {
  const top = Math.max(...values);
  const e = values.map((v) => Math.exp(v - top));
  return e.map((v) => v / total(e));
};

export const standardOf =
  (eps = 1e-5) =>
  (values: readonly number[]): number[] =>
    values.map((v) => (v - average(values)) / Math.sqrt(spread(values) + eps));

/** erf by its power series, 2/√π Σ (-1)ⁿ x²ⁿ⁺¹ / (n! (2n+1)): enough for |x| < 4 in doubles. */
export function erfOf(x: number): number {
  let [term, sum] = [x, x];
  for (let n = 1; n < 120; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

/** The product over the last two axes of each batch, with rows or columns read the other way round on request. */
export function matmulOf(a: Plain, b: Plain, ta = false, tb = false): Plain {
  const left: Plain = a.shape.length > 1 ? a : { ...a, shape: ta ? [a.shape[0]!, 1] : [1, a.shape[0]!] };
  const right: Plain = b.shape.length > 1 ? b : { ...b, shape: tb ? [1, b.shape[0]!] : [b.shape[0]!, 1] };
  const [rows, depth] = ta ? left.shape.slice(-2).toReversed() : left.shape.slice(-2);
  const columns = right.shape.at(tb ? -2 : -1)!;
  const batch = broadcastShape(left.shape.slice(0, -2), right.shape.slice(0, -2));
  const y = build([...batch, rows!, columns], (index) => {
    const [outer, i, j] = [index.slice(0, -2), index.at(-2)!, index.at(-1)!];
    let sum = 0;
    for (let k = 0; k < depth!; k++) {
      sum += get(left, [...outer, ...(ta ? [k, i] : [i, k])]) * get(right, [...outer, ...(tb ? [j, k] : [k, j])]);
    }
    return sum;
  });
  const gone = [...(a.shape.length > 1 ? [] : [-2]), ...(b.shape.length > 1 ? [] : [-1])];
  return { ...y, shape: y.shape.filter((_, axis) => !gone.includes(axis - y.shape.length)) };
}

/** A sum over all indices: every letter is a loop. */
export function einsumOf(spec: string, operands: readonly Plain[]): Plain {
  const [left = "", output = ""] = spec.split("->");
  const inputs = left.split(",");
  const letters = [...new Set(left.replaceAll(",", ""))];
  const extent = (c: string): number => {
    const i = inputs.findIndex((axes) => axes.includes(c));
    return operands[i]!.shape[inputs[i]!.indexOf(c)]!;
  };
  const free = letters.filter((c) => !output.includes(c));
  return build([...output].map(extent), (index) => {
    let sum = 0;
    for (const inner of indices(free.map(extent))) {
      const at = (c: string): number => (output.includes(c) ? index[output.indexOf(c)]! : inner[free.indexOf(c)]!);
      sum += product(inputs.map((axes, i) => get(operands[i]!, [...axes].map(at))));
    }
    return sum;
  });
}
