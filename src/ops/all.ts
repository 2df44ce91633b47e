/** @file Every operation there is, for the parser of graphs and for tests over all of them. Nothing else needs the list. */
import type { AnyOp } from "../ir/op.ts";
import { elu, hardSwish, logSigmoid, mish, softsign } from "./activations.ts";
import { attend, attendBackward } from "./attend.ts";
import { packBits, unpackBits } from "./bits.ts";
import { switchOp } from "./branch.ts";
import { broadcast, sum } from "./broadcast.ts";
import { dynamicCode, dynamicValue, packCodes, unpackCodes } from "./codes.ts";
import {
  allGather,
  allReduce,
  allReduceMax,
  allToAll,
  broadcastFrom,
  deviceIndex,
  permute,
  reduceScatter,
  shardIn,
  shardOut,
  vary,
} from "./collective.ts";
import { concat } from "./concat.ts";
import { call, customJvp, customVjp, fused, gated } from "./control.ts";
import { conv, convInput, convWeight } from "./conv.ts";
import { full, iota } from "./create.ts";
import { dynamicSlice, dynamicUpdate } from "./dynamic.ts";
import {
  abs,
  add,
  and,
  ceil,
  clamp,
  div,
  eq,
  floor,
  ge,
  gt,
  isnan,
  le,
  lt,
  max,
  min,
  mul,
  ne,
  neg,
  not,
  or,
  relu,
  round,
  sign,
  sqrt,
  square,
  sub,
  xor,
} from "./elementwise.ts";
import { fft, irfft, rfft } from "./fft.ts";
import { groupedMatmul, groupedOuter, permuteRows } from "./grouped.ts";
import { gather, scatterAdd, scatterAddAlong, take } from "./indexing.ts";
import { keepShort, keptIn } from "./keep.ts";
import { cholesky } from "./linalg/cholesky.ts";
import { eigh } from "./linalg/eigh.ts";
import { matrixExp } from "./linalg/matrix-exp.ts";
import { pinv } from "./linalg/pinv.ts";
import { qr } from "./linalg/qr.ts";
import { determinant, inverse, solve } from "./linalg/solve.ts";
import { svd } from "./linalg/svd.ts";
import { triangularSolve } from "./linalg/triangular.ts";
import { scan, whileLoop } from "./loops.ts";
import { cos, erf, exp, expm1, gelu, log, log1p, pow, rsqrt, sigmoid, silu, sin, softplus, tan, tanh } from "./math.ts";
import { matmul, matmulOnto } from "./matmul.ts";
import { flip, reshape, transpose } from "./movement.ts";
import { randomBernoulli, randomBits, randomInteger, randomNormal, randomUniform, shuffle } from "./random.ts";
import { record } from "./record.ts";
import { all, any, reduceMax, reduceMin, reduceProd } from "./reduce.ts";
import { floorDiv, fmod, remainder, shiftLeft, shiftRight, trunc } from "./remainder.ts";
import { rewind } from "./rewind.ts";
import { groupMax, groupMin, packGroups, unpackGroups } from "./rounding.ts";
import { cummax, cummin, cumsum, linearScan } from "./scan.ts";
import { scatterMax, scatterMaxAlong, scatterMin, scatterMinAlong, scatterMul, scatterMulAlong } from "./scatter.ts";
import { cast, stopGradient, where, widen } from "./select.ts";
import { pad, slice, sliceAdd, sliceUpdate } from "./slice.ts";
import { argsort, searchsorted } from "./sort.ts";
import {
  acos,
  acosh,
  asin,
  asinh,
  atan,
  atan2,
  atanh,
  cbrt,
  cosh,
  erfc,
  erfinv,
  exp2,
  lgamma,
  log2,
  log10,
  polygamma,
  sinh,
} from "./special.ts";
import { fold, unfold } from "./window.ts";

/**
 * Every operation, for reading graphs from text (`parse` of `tidemark/ir`).
 *
 * @example
 * import { allOps } from "tidemark";
 *
 * console.log(allOps.length > 100, allOps.find(({ name }) => name === "matmul")?.name); // → true matmul
 */
export const allOps: readonly AnyOp[] = [
  // create
  full,
  iota,
  // elementwise
  add,
  sub,
  mul,
  div,
  neg,
  abs,
  sign,
  square,
  sqrt,
  floor,
  ceil,
  round,
  min,
  max,
  clamp,
  relu,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  isnan,
  and,
  or,
  xor,
  not,
  // math
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tan,
  tanh,
  sigmoid,
  erf,
  rsqrt,
  gelu,
  silu,
  softplus,
  pow,
  // special
  exp2,
  log2,
  log10,
  cbrt,
  asin,
  acos,
  atan,
  atan2,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  erfc,
  erfinv,
  lgamma,
  polygamma,
  // activations
  elu,
  mish,
  softsign,
  logSigmoid,
  hardSwish,
  // remainder
  trunc,
  fmod,
  remainder,
  floorDiv,
  shiftLeft,
  shiftRight,
  // select
  where,
  cast,
  widen,
  stopGradient,
  // bits
  packBits,
  unpackBits,
  // codes
  packCodes,
  unpackCodes,
  dynamicCode,
  dynamicValue,
  // rounding
  groupMin,
  groupMax,
  keepShort,
  keptIn,
  packGroups,
  unpackGroups,
  // broadcast
  broadcast,
  sum,
  // reduce
  reduceMax,
  reduceMin,
  reduceProd,
  any,
  all,
  // scan
  cumsum,
  linearScan,
  cummax,
  cummin,
  // sort
  argsort,
  cholesky,
  triangularSolve,
  solve,
  inverse,
  determinant,
  qr,
  eigh,
  svd,
  pinv,
  matrixExp,
  searchsorted,
  // movement
  reshape,
  transpose,
  flip,
  // slice
  slice,
  sliceUpdate,
  sliceAdd,
  pad,
  concat,
  // window
  unfold,
  fold,
  // indexing
  take,
  scatterAdd,
  gather,
  scatterAddAlong,
  scatterMax,
  scatterMin,
  scatterMul,
  scatterMaxAlong,
  scatterMinAlong,
  scatterMulAlong,
  // dynamic
  dynamicSlice,
  dynamicUpdate,
  // matmul
  matmul,
  matmulOnto,
  // grouped
  groupedMatmul,
  groupedOuter,
  permuteRows,
  // conv
  conv,
  convInput,
  convWeight,
  // fft
  fft,
  rfft,
  irfft,
  // attend
  attend,
  attendBackward,
  // random
  randomBits,
  randomInteger,
  randomUniform,
  randomNormal,
  randomBernoulli,
  shuffle,
  // collective
  vary,
  shardIn,
  shardOut,
  allReduce,
  allReduceMax,
  permute,
  broadcastFrom,
  allGather,
  reduceScatter,
  allToAll,
  deviceIndex,
  // control
  call,
  fused,
  customVjp,
  customJvp,
  gated,
  // loops and branches
  scan,
  whileLoop,
  record,
  rewind,
  switchOp,
];
