/**
 * @file Tests only. Runs kernels element by element: the oracle with which generated code is compared bit by bit. Slow, plain, and
 * literal about the order of arithmetic that `loops.ts` prescribes for each kind of nest.
 *
 * Sums start from +0 in every kind of nest, so a sum of negative zeros is +0.
 */
import { at, InternalError, invariant } from "../base/invariant.ts";
import { attendStages } from "./attend.ts";
import type { Stage } from "./attend-stages.ts";
import type { CollectiveNest } from "./collective.ts";
import { groupSize, groupText } from "./device-group.ts";
import { elementReader, elementWriter, isBig, laneBytes, newElements, type TypedArray } from "./dtype.ts";
import type { Bound, LoopVar } from "./expr.ts";
import { counterCell, type Environment, environment, Program } from "./interpret-expr.ts";
import { type Scalar, scalarFn, scalarOf } from "./interpret-scalar.ts";
import {
  type AttendNest,
  BLOCK_TERMS,
  blockElements,
  type ContractNest,
  depthRun,
  identityOf,
  type Kernel,
  type MapNest,
  type Nest,
  type ReduceNest,
  type RoutineNest,
  type ScanNest,
  type ScatterNest,
  type ShuffleNest,
  type SortNest,
  type Store,
  usesBlockSums,
} from "./loops.ts";
import { FIRST_TILE, type Step, type Steps } from "./routine.ts";

export { evaluate } from "./interpret-expr.ts";
export type { TypedArray };

type Combining = (a: Scalar, b: Scalar) => Scalar;

/** Runs the nests of a kernel, one after the other, over storage given for every operand (scratch too). */
export function interpretKernel(kernel: Kernel, buffers: readonly TypedArray[]): void {
  invariant(
    buffers.length === kernel.operands.length,
    () => `${kernel.operands.length} operands, ${buffers.length} buffers`,
  );
  const types = kernel.operands.map((operand) => operand.dtype);
  for (const nest of kernel.nests) runNest(nest, environment(buffers, types));
}

function runNest(nest: Nest, env: Environment): void {
  switch (nest.kind) {
    case "map":
      runMap(nest, env);
      break;
    case "reduce":
      runReduce(nest, env);
      break;
    case "scan":
      runScan(nest, env);
      break;
    case "contract":
      runContract(nest, env);
      break;
    case "scatter":
      runScatter(nest, env);
      break;
    case "shuffle":
      runShuffle(nest, env);
      break;
    case "collective":
      runCollective(nest, env);
      break;
    case "sort":
      runSort(nest, env);
      break;
    case "staged":
      forEach(nest.units, env, () => {
        for (const map of nest.body) runMap(map, env);
      });
      break;
    case "attend":
      runAttend(nest, env);
      break;
    case "routine":
      runRoutine(nest, env);
      break;
  }
}

/** Calls `body` for every value of the counters, the last one running fastest. */
function forEach(loops: readonly LoopVar[], env: Environment, body: () => void, depth = 0): void {
  const loop = loops[depth];
  if (!loop) {
    body();
    return;
  }
  const cell = counterCell(env, loop.name);
  for (let i = 0; i < loop.extent; i++) {
    cell.value = i;
    forEach(loops, env, body, depth + 1);
  }
}

/** Evaluates all stores of an iteration, addresses and values, before writing any. */
function storing(stores: readonly Store[], env: Environment): () => void {
  const program = new Program(env);
  const targets = stores.map(({ operand, index, value }) => ({
    write: writerTo(operand, env),
    address: program.address(index),
    value: program.value(value),
  }));
  return () => {
    program.run();
    for (const { write, address, value } of targets) write(address(), value());
  };
}

/** Stores numbers of the compute type as elements of the operand's storage type. */
function writerTo(operand: number, env: Environment): (address: number, value: Scalar) => void {
  const buffer = at(env.buffers, operand);
  const elementOf = elementWriter(at(env.types, operand));
  return (address, value) => {
    invariant(
      address >= 0 && address < buffer.length,
      () => `store to ${address} of operand ${operand} of ${buffer.length}`,
    );
    // what writes elements of i64 takes their bigints too
    buffer[address] = elementOf(value as number);
  };
}

function runMap(nest: MapNest, env: Environment): void {
  if (nest.skipIfAliased) {
    const [a, b] = nest.skipIfAliased.map((operand) => at(env.buffers, operand));
    if (a && b && a.buffer === b.buffer && a.byteOffset === b.byteOffset) return;
  }
  forEach(nest.loops, env, storing(nest.stores, env));
}

function runReduce(nest: ReduceNest, env: Environment): void {
  const { reduce, dtype } = nest;
  const program = new Program(env);
  const body = program.value(nest.body);
  const store = storing(nest.stores, env);
  const combine = scalarFn(nest.combine, dtype);
  // Accumulators of the interleaved order: four vectors of 16 bytes each.
  const lanes = 16 / laneBytes(dtype);
  const acc: Scalar[] = new Array(4 * lanes);
  const last = nest.order === "interleaved" ? reduce[reduce.length - 1] : undefined;
  const counter = last ? counterCell(env, last.name) : { value: 0 };
  const laneOf = last ? accumulatorOf(last.extent, lanes) : () => 0;
  const identity = scalarOf(dtype, identityOf(nest.combine, dtype));
  const blockSums = usesBlockSums(nest) ? new BlockSums(acc, identity, combine) : null;
  // Counters that run once are no loops, unless they are in the lanes.
  const innermost = last ?? reduce.findLast((v) => v.extent !== 1);
  const inner = innermost ? counterCell(env, innermost.name) : { value: 0 };
  const [extent, run] = [innermost?.extent ?? 0, blockElements(nest)];
  forEach(nest.loops, env, () => {
    acc.fill(identity);
    blockSums?.restart();
    forEach(reduce, env, () => {
      program.run();
      const lane = laneOf(counter.value);
      acc[lane] = combine(at(acc, lane), body());
      const next = inner.value + 1;
      if (next % run === 0) blockSums?.flush();
      if (next === extent) blockSums?.flush();
    });
    blockSums?.finish();
    env.acc.value = last ? joinLanes(acc, lanes, combine) : at(acc, 0);
    store();
  });
}

/** Block sums and totals of a long reduction. */
class BlockSums {
  readonly #acc: Scalar[];
  readonly #blockSum: Scalar[];
  readonly #total: Scalar[];
  readonly #identity: Scalar;
  readonly #combine: Combining;
  #flushes = 0;

  constructor(acc: Scalar[], identity: Scalar, combine: Combining) {
    this.#acc = acc;
    this.#blockSum = new Array(acc.length);
    this.#total = new Array(acc.length);
    this.#identity = identity;
    this.#combine = combine;
  }

  restart(): void {
    this.#blockSum.fill(this.#identity);
    this.#total.fill(this.#identity);
    this.#flushes = 0;
  }

  #into(target: Scalar[], source: Scalar[]): void {
    for (let i = 0; i < source.length; i++) target[i] = this.#combine(at(target, i), at(source, i));
    source.fill(this.#identity);
  }

  flush(): void {
    this.#into(this.#blockSum, this.#acc);
    this.#flushes += 1;
    if (this.#flushes % BLOCK_TERMS === 0) this.#into(this.#total, this.#blockSum);
  }

  /** Leaves the totals where the accumulators were. */
  finish(): void {
    this.#into(this.#total, this.#blockSum);
    for (const [i, total] of this.#total.entries()) this.#acc[i] = total;
  }
}

/** The accumulator that takes element r of n: by sixteens while they are full (eights for f64), by fours, one by one. */
function accumulatorOf(n: number, lanes: number): (r: number) => number {
  const all = 4 * lanes;
  return (r) => {
    if (r < n - (n % all)) return r % all;
    return r < n - (n % lanes) ? r % lanes : 0;
  };
}

/** ((q0 ⊕ q1) ⊕ (q2 ⊕ q3)) lane by lane, then lanes (0 ⊕ 2) ⊕ (1 ⊕ 3), or 0 ⊕ 1 where there are two. */
function joinLanes(acc: readonly Scalar[], lanes: number, both: Combining): Scalar {
  const lane = (i: number): Scalar =>
    both(both(at(acc, i), at(acc, lanes + i)), both(at(acc, 2 * lanes + i), at(acc, 3 * lanes + i)));
  if (lanes === 2) return both(lane(0), lane(1));
  return both(both(lane(0), lane(2)), both(lane(1), lane(3)));
}

function runScan(nest: ScanNest, env: Environment): void {
  const program = new Program(env);
  const scale = nest.scale && program.value(nest.scale);
  const body = program.value(nest.body);
  const store = storing(nest.stores, env);
  const { combine = "add", dtype } = nest;
  const [add, mul] = [scalarFn(combine, dtype), scalarFn("mul", dtype)];
  forEach(nest.loops, env, () => {
    let sum = scalarOf(dtype, identityOf(combine, dtype));
    forEach([nest.along], env, () => {
      program.run();
      sum = add(scale ? mul(sum, scale()) : sum, body());
      env.acc.value = sum;
      store();
    });
  });
}

function runContract(nest: ContractNest, env: Environment): void {
  const program = new Program(env);
  const a = program.value(nest.a);
  const b = program.value(nest.b);
  const store = storing(nest.stores, env);
  const add = scalarFn("add", nest.dtype);
  const mul = scalarFn("mul", nest.dtype);
  const zero = scalarOf(nest.dtype, 0);
  const run = depthRun(nest.depth.extent);
  const inSpan = spanTest(nest, env);
  const begin = new Program(env);
  const start = nest.start ? begin.value(nest.start) : null;
  forEach([...nest.batch, nest.rows, nest.cols], env, () => {
    if (start) begin.run();
    const from = start?.() ?? zero;
    let total = zero;
    let sum = zero;
    let k = 0;
    forEach(nest.split ?? [nest.depth], env, () => {
      if (inSpan(k)) {
        program.run();
        sum = add(sum, mul(a(), b()));
      }
      k += 1;
      if (k % run !== 0 && k !== nest.depth.extent) return;
      total = k <= run ? sum : add(total, sum);
      sum = zero;
    });
    env.acc.value = start ? add(from, total) : total;
    store();
  });
}

/** Whether a place of the depth is in the span of the batch. */
function spanTest({ span }: ContractNest, env: Environment): (k: number) => boolean {
  if (!span) return () => true;
  const program = new Program(env);
  const [from, to] = [program.address(span.from), program.address(span.to)];
  return (k) => {
    program.run();
    return from() <= k && k < to();
  };
}

function runScatter(nest: ScatterNest, env: Environment): void {
  const guards = new Program(env);
  const within = nest.bounds.map(({ index, lo, hi }: Bound) => ({ index: guards.address(index), lo, hi }));
  const program = new Program(env);
  const address = program.address(nest.index);
  const value = program.value(nest.value);
  const target = at(env.buffers, nest.operand);
  const write = writerTo(nest.operand, env);
  const { dtype } = nest.value;
  const elementOf = isBig(dtype) ? (element: Scalar) => element : elementReader(at(env.types, nest.operand));
  const add = scalarFn(nest.combine ?? "add", dtype);
  forEach(nest.loops, env, () => {
    guards.run();
    if (!within.every(({ index, lo, hi }) => lo <= index() && index() < hi)) return;
    program.run();
    const i = address();
    write(i, add(elementOf(target[i] as number), value()));
  });
}

/**
 * Fisher-Yates from the back: element i changes places with j = floor(u · (i + 1) / 2^32), u the bits as unsigned. The
 * product is formed from halves of u, since it can exceed 2^53.
 */
function runShuffle(nest: ShuffleNest, env: Environment): void {
  const program = new Program(env);
  const bits = program.number(nest.bits);
  const out = at(env.buffers, nest.operand);
  const counter = counterCell(env, nest.along.name);
  const n = nest.along.extent;
  const write = writerTo(nest.operand, env);
  for (let i = 0; i < n; i++) write(i, i);
  for (let i = n - 1; i >= 1; i--) {
    counter.value = i;
    program.run();
    const u = bits() >>> 0;
    const low = Math.floor(((u & 0xffff) * (i + 1)) / 0x10000);
    const j = Math.floor(((u >>> 16) * (i + 1) + low) / 0x10000);
    const moved = out[i] as number;
    out[i] = out[j] as number;
    out[j] = moved;
  }
}

/** On the only device of a group; several devices are evaluated together (ir/evaluate-devices.ts). */
function runCollective({ what, group, read, to, pairs }: CollectiveNest, env: Environment): void {
  const size = groupSize(group);
  if (size !== 1) throw new InternalError(`${what} over ${groupText(group)} on one of ${size} devices`);
  const target = at(env.buffers, to);
  const arrives = read !== null && (what !== "permute" || pairs.length > 0);
  if (arrives) target.set(at(env.buffers, read.operand) as never);
  else target.fill(0 as never);
}

function runSort({ loops, along, rank, keys, stores }: SortNest, env: Environment): void {
  const program = new Program(env);
  const words = keys.map((key) => program.number(key));
  const store = storing(stores, env);
  const [element, place] = [counterCell(env, along.name), counterCell(env, rank.name)];
  forEach(loops, env, () => {
    const row = Array.from({ length: along.extent }, (_, i) => {
      element.value = i;
      program.run();
      return { i, key: words.map((word) => word()) };
    });
    row.sort((a, b) => {
      const differs = a.key.findIndex((word, w) => word !== b.key[w]);
      return differs < 0 ? a.i - b.i : at(a.key, differs) - at(b.key, differs);
    });
    for (let r = 0; r < rank.extent; r++) {
      place.value = r;
      env.acc.value = at(row, r).i;
      store();
    }
  });
}

/** Stage by stage, unit by unit, over tiles behind the operands. */
function runAttend(nest: AttendNest, env: Environment): void {
  const { tiles, programs } = attendStages(nest, env.types.length);
  const buffers = [...env.buffers, ...tiles.map((elements) => newElements(nest.dtype, elements))];
  const inside: Environment = { ...env, buffers, types: [...env.types, ...tiles.map(() => nest.dtype)] };
  for (const { units, body } of programs) forEach(units, inside, () => runStages(body, inside));
}

function runStages(stages: readonly Stage[], env: Environment): void {
  for (const stage of stages) {
    if (stage.kind !== "repeat") {
      runNest(stage, env);
      continue;
    }
    const program = new Program(env);
    const from = stage.from && program.address(stage.from);
    const to = stage.to.map((index) => program.address(index));
    program.run();
    const cell = counterCell(env, stage.counter.name);
    const [first, last] = [Math.max(stage.first, from?.() ?? 0), Math.min(stage.last, ...to.map((end) => end()))];
    for (let i = first; i < last; i++) {
      cell.value = i;
      runStages(stage.body, env);
    }
  }
}

/** Unit by unit, over tiles of which nothing is left from the unit before. */
function runRoutine({ loops, dtype, tiles, body }: RoutineNest, env: Environment): void {
  const [buffers, types] = [[...env.buffers], [...env.types]];
  const own = tiles.map((tile, t) => {
    const type = tile.kind === "single" ? tile.dtype : dtype;
    const memory = newElements(type, tile.kind === "single" ? 1 : tile.elements);
    buffers[FIRST_TILE + t] = memory;
    types[FIRST_TILE + t] = type;
    return memory;
  });
  const run = compiled(body, { ...env, buffers, types });
  forEach(loops, env, () => {
    for (const memory of own) memory.fill(0);
    run();
  });
}

function compiled(steps: Steps, env: Environment): () => void {
  const runs = steps.map((step) => compiledStep(step, env));
  return () => {
    for (const run of runs) run();
  };
}

function compiledStep(step: Step, env: Environment): () => void {
  if (step.kind === "set") return storing(step.stores, env);
  const body = compiled(step.body, env);
  const program = new Program(env);
  if (step.kind === "if") {
    const [test, otherwise] = [program.number(step.test), compiled(step.otherwise, env)];
    return () => {
      program.run();
      if (test() === 0) otherwise();
      else body();
    };
  }
  if (step.kind === "while") {
    const test = program.number(step.test);
    return () => {
      for (let i = 0; i < step.most; i++) {
        program.run();
        if (test() === 0) return;
        body();
      }
    };
  }
  const [from, to] = [program.address(step.from), program.address(step.to)];
  const cell = counterCell(env, step.counter.name);
  return () => {
    program.run();
    const [first, end] = [from(), to()];
    invariant(end <= step.counter.extent, () => `${step.counter.name} to ${end}, beyond ${step.counter.extent}`);
    for (let i = first; i < end; i++) {
      cell.value = i;
      body();
    }
  };
}
