/**
 * @file Methods that tensors do not have, under names that people know from other libraries or mistype. Looking such a name up
 * gives a function that throws with the name that is meant; all other names are undefined, as on any object.
 */
import { nearest } from "../base/suggest.ts";
import { fail } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";

/** What to write instead, by the names of PyTorch, NumPy, JAX and TensorFlow.js. */
const INSTEAD: Readonly<Record<string, string>> = {
  t: "transpose(), or x.T",
  numel: "elements",
  size: "shape, or elements for their number",
  dim: "rank",
  ndim: "rank",
  expand: "broadcastTo(shape)",
  masked_fill: "where(mask, value, x), or maskedFill(x, mask, value)",
  maskedFill: "where(mask, value, x), or maskedFill(x, mask, value)",
  topk: "topK(k)",
  unbind: "unstack(x, axis), a function",
  scatter_: "scatterSetAlong(x, indices, updates, axis), a function",
  astype: "cast(dtype)",
  to: "cast(dtype); where a program runs is an option of compile: { target }",
  float: 'cast("f32")',
  double: 'cast("f64")',
  int: 'cast("i32")',
  long: 'cast("i32")',
  bool: 'cast("bool")',
  asType: "cast(dtype)",
  tolist: "toArray()",
  arraySync: "toArray()",
  array: "toArray()",
  numpy: "data()",
  dataSync: "data()",
  subtract: "sub(y)",
  multiply: "mul(y)",
  divide: "div(y)",
  negative: "neg()",
  negate: "neg()",
  power: "pow(y)",
  amax: "max(axis)",
  amin: "min(axis)",
  index_select: "take(indices, axis)",
  cat: "concat([x, y], axis): a function of a list",
  mm: "matmul(w)",
  bmm: "matmul(w)",
  detach: "stopGradient()",
  backward: "grad(lossOf)(params): gradients are functions of functions",
  requires_grad_: "grad(lossOf)(params): gradients are functions of functions",
  clone: "x itself: the elements of a tensor never change",
  contiguous: "x itself: elements are always row by row",
  dispose: "nothing: there is nothing to dispose of",
  print: "console.log(String(x))",
  add_: "addInPlace(y)",
  zero_: "fill(0)",
  fill_: "fill(value)",
  copy_: "assign(y)",
  roll: "roll(x, shift, axis), a function",
  trace: "trace(x), a function",
  diag: "diag(x), a function",
  flip: "flip(x, axis), a function",
  fft: "fft(x), a function",
  rfft: "rfft(x), a function",
  det: "linalg.det(x), a function",
  inv: "linalg.inv(x), a function",
  inverse: "linalg.inv(x), a function",
  pinverse: "linalg.pinv(x), a function",
  cholesky: "linalg.cholesky(x), a function",
  svd: "linalg.svd(x), a function",
  qr: "linalg.qr(x), a function",
};

/** Names that libraries look up to find out what an object is. */
const PROBED: ReadonlySet<string> = new Set([
  "then",
  "catch",
  "finally",
  "length",
  "next",
  "nodeType",
  "tagName",
  "type",
]);

/** Names that are remembered: those of a program are few. */
const MOST_HINTS = 1000;

/** Every name that a tensor answers to. */
function knownNames(): readonly string[] {
  return Object.getOwnPropertyNames(Tensor.prototype).filter((name) => name !== "constructor");
}

function hintFor(name: string): string | null {
  const instead = Object.hasOwn(INSTEAD, name) ? INSTEAD[name] : undefined;
  if (instead) return `use ${instead}`;
  // short names are near to everything
  if (name.length < 4 || PROBED.has(name) || !/^[a-z]/.test(name)) return null;
  const near = nearest(name, knownNames());
  return near.length > 0 ? `did you mean ${near.join(" or ")}?` : null;
}

/** A name is looked for once: code that probes objects asks again and again. */
const hints = new Map<string, string | null>();

function knownHint(name: string): string | null {
  const known = hints.get(name);
  if (known !== undefined) return known;
  const hint = hintFor(name);
  if (hints.size < MOST_HINTS) hints.set(name, hint);
  return hint;
}

/** Where the search for a property ends that neither a tensor nor its methods have. */
export const missingMethods: object = new Proxy(
  {},
  {
    get(_, name, tensor) {
      if (typeof name !== "string" || name in Object.prototype) return Reflect.get(Object.prototype, name, tensor);
      const hint = knownHint(name);
      if (hint === null) return undefined;
      return () => fail("InvalidArgument", `tensors have no method ${name}`, hint);
    },
    has: (_, name) => name in Object.prototype,
  },
);
