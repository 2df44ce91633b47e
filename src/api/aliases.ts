/** @file Second names of functions, where another library's name is known to nearly everyone. What each is called there: docs/coming-from.md. */
export { isfinite as isFinite, isinf as isInf, remainder as mod } from "./arithmetic.ts";
export {
  clamp as clip,
  equal as eq,
  greater as gt,
  greaterEqual as ge,
  isnan as isNaN,
  less as lt,
  lessEqual as le,
  notEqual as ne,
} from "./elementwise.ts";
export { argmax as argMax, argmin as argMin } from "./reduce.ts";
export { expandDims as unsqueeze, reshape as view, transpose as permute } from "./shape.ts";
