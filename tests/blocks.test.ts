/**
 * @file Block programs (src/codegen/block): schedules of every operation and every sample against the kernel interpreter, bit
 * for bit, and what the interpreter of block programs finds in programs that are wrong.
 */
import { describe, expect, test } from "vitest";
import { interpretBlocks } from "../src/codegen/block/interpret.ts";
import type { BlockProgram, DeviceClass, Launch, Memory, Part, Statement } from "../src/codegen/block/program.ts";
import { operandMemories, phase, storing } from "../src/codegen/block/program.ts";
import { blockProgram } from "../src/codegen/block/schedule.ts";
import { constant, type LoopVar, load } from "../src/kernel/expr.ts";
import { constIndex, modIndex, offsetIndex, scaleIndex, varIndex, ZERO } from "../src/kernel/index-math.ts";
import { interpretKernel } from "../src/kernel/interpret.ts";
import { LARGE_DEVICE, largeSamples, loweringFor, SMALL_DEVICE } from "./support/blocks.ts";
import { bufferOf, type KernelSample, kernelOps, kernelSamples } from "./support/kernel-samples.ts";

/** Runs a sample both ways, with workspace that holds anything. */
function compare(sample: KernelSample, device: DeviceClass): void {
  const [want, got] = [sample.storage(), sample.storage()];
  sample.kernel.operands.forEach(({ role }, i) => {
    if (role === "scratch") new Uint8Array(got[i]?.buffer ?? new ArrayBuffer(0)).fill(0xa5);
  });
  interpretKernel(sample.kernel, want);
  interpretBlocks(blockProgram(sample.kernel, device), got);
  for (const i of sample.outputs) expect(got[i], sample.name).toEqual(want[i]);
}

describe("every operation as a block program", () => {
  for (const op of kernelOps) {
    test(`equals the interpreter bit for bit: ${op.name}`, () => {
      for (const sample of kernelSamples(op, loweringFor(SMALL_DEVICE))) compare(sample, SMALL_DEVICE);
    });
  }
});

describe("kernels that need every kind of schedule", () => {
  for (const [name, device] of Object.entries({ small: SMALL_DEVICE, large: LARGE_DEVICE })) {
    // idle threads of large blocks take their time too, and so do comparisons of all with all
    const isQuick = ({ sample: { inputs } }: KernelSample): boolean =>
      device === SMALL_DEVICE || (inputs.length < 3 && inputs[0]?.shape.length === 2);
    for (const sample of largeSamples(loweringFor(device)).filter(isQuick)) {
      test(`equals the interpreter bit for bit on a ${name} device: ${sample.name}`, () => compare(sample, device));
    }
  }

  test("partial results are in the workspace where a kernel has few rows or tiles, and nowhere else", () => {
    const launches = (device: DeviceClass, name: string): readonly number[] =>
      largeSamples(loweringFor(device))
        .filter(({ op }) => op.name === name)
        .map(({ kernel }) => blockProgram(kernel, device).launches.length);
    expect(launches(SMALL_DEVICE, "matmul")).toEqual([2, 2, 1, 1, 1, 1, 1]);
    expect(launches(SMALL_DEVICE, "sum")).toEqual([2, 1, 2, 1, 3, 2, 2, 2, 2, 2, 3, 2]);
    // a copy, keys of updates, sorting, sums
    expect(launches(SMALL_DEVICE, "scatter_add")).toEqual([4, 4, 4, 6, 12]);
  });
});

test("maps that read along another counter than they store along read tiles of shared memory", () => {
  const transposed = largeSamples(loweringFor(SMALL_DEVICE)).filter(({ op }) => op.name === "transpose");
  expect(transposed.length).toBe(3);
  for (const { kernel } of transposed) {
    const [launch] = blockProgram(kernel, SMALL_DEVICE).launches;
    expect(launch?.memories.some(({ scope }) => scope === "shared")).toBe(true);
  }
});

// ---- programs that are wrong ------------------------------------------------------------------------------------------

const thread: LoopVar = { kind: "var", name: "thread", extent: 4 };
const block: LoopVar = { kind: "var", name: "block", extent: 2 };
const OPERANDS = [
  { dtype: "f32", elements: 8, role: "in" },
  { dtype: "f32", elements: 8, role: "out" },
] as const;
const t = varIndex(thread);
const shared: Memory = { scope: "shared", dtype: "f32", elements: 4 };
const register: Memory = { scope: "register", dtype: "f32", elements: 4 };
const local: Memory = { scope: "local", dtype: "f32", elements: 4 };
const one = constant("f32", 1);

function runOf(body: readonly Part[], more: readonly Memory[] = [], grid: readonly LoopVar[] = []): () => void {
  const launch: Launch = { grid, thread, memories: [...operandMemories(OPERANDS), ...more], body };
  const program: BlockProgram = { operands: OPERANDS, launches: [launch] };
  return () => interpretBlocks(program, [bufferOf("f32", 8), bufferOf("f32", 8)]);
}

const put = (operand: number, index = t, value = one): Statement => storing({ operand, index, value });

describe("the interpreter of block programs finds", () => {
  const other = modIndex(offsetIndex(t, 1), 4);

  test("a thread that reads what another writes in the same phase, and not in the next one", () => {
    const read = put(1, t, load("f32", 2, other));
    expect(runOf([phase(put(2)), phase(read)], [shared])).not.toThrow();
    expect(runOf([phase(put(2), read)], [shared])).toThrow("not set");
    expect(runOf([phase(put(2)), phase(read, put(2))], [shared])).toThrow("in one phase with thread");
  });

  test("two threads that write one element", () => {
    expect(runOf([phase(put(1, ZERO))])).toThrow("write in one phase with thread 0");
    expect(runOf([phase(put(2, modIndex(t, 2)))], [shared])).toThrow("write in one phase with thread 0");
  });

  test("two blocks that touch one element, whatever barriers there are", () => {
    const apart = offsetIndex(t, 0);
    expect(runOf([phase(put(1, apart))], [], [block])).toThrow("write in one launch with block 0");
    const next = offsetIndex(scaleIndex(varIndex(block), 4), 0);
    const own = { ...t, ...offsetIndex(t, 0) };
    expect(runOf([phase(put(1, own, load("f32", 0, next)))], [], [])).not.toThrow();
  });

  test("what was never set", () => {
    expect(runOf([phase(put(1, t, load("f32", 2, t)))], [shared])).toThrow("read and was not set");
    expect(runOf([phase(put(1, t, load("f32", 2, ZERO)))], [register])).toThrow("read and was not set");
    expect(runOf([phase(put(2, ZERO)), phase(put(1, t, load("f32", 2, ZERO)))], [register])).not.toThrow();
    expect(runOf([phase(put(2, ZERO)), phase(put(1, t, load("f32", 2, ZERO)))], [local])).toThrow("was not set");
  });

  test("an element that is not there", () => {
    expect(runOf([phase(put(1, offsetIndex(t, 5)))])).toThrow("element 8 of memory 1 (global f32[8]): is not there");
    expect(runOf([phase(put(1, t, load("f32", 0, constIndex(-1))))])).toThrow("element -1 of memory 0");
  });

  test("registers that are indexed by what only a run knows, unless they say so", () => {
    expect(runOf([phase(put(2, t))], [register])).toThrow("is in registers and is indexed by");
    expect(runOf([phase(put(2, t))], [{ ...register, indexed: true }])).not.toThrow();
  });

  test("a loop around phases that is not the same for all threads", () => {
    const counter: LoopVar = { kind: "var", name: "k", extent: 4 };
    expect(runOf([{ kind: "repeat", counter, limit: t, body: [] }])).toThrow("as often as the thread says");
  });

  test("a barrier that is missing from a schedule", () => {
    const traits = loweringFor(SMALL_DEVICE);
    const broken = largeSamples(traits).flatMap((sample) => {
      const program = blockProgram(sample.kernel, SMALL_DEVICE);
      const merged = program.launches.map((launch) => ({ ...launch, body: withoutBarriers(launch.body) }));
      const waits = phases(program.launches) > phases(merged);
      return waits ? [{ sample, program: { ...program, launches: merged } }] : [];
    });
    expect(broken.length).toBeGreaterThan(10);
    for (const { sample, program } of broken) {
      expect(() => interpretBlocks(program, sample.storage()), sample.name).toThrow(/in one phase|not set/);
    }
  });
});

const phases = (parts: readonly { readonly body?: unknown; readonly kind?: string }[]): number =>
  parts.reduce((n, { kind, body }) => n + (kind === "phase" ? 1 : phases((body ?? []) as never)), 0);

/** Neighbouring phases as one. */
function withoutBarriers(parts: readonly Part[]): readonly Part[] {
  const merged: Part[] = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (part.kind === "repeat") merged.push({ ...part, body: withoutBarriers(part.body) });
    else if (last?.kind === "phase") merged[merged.length - 1] = phase(...last.body, ...part.body);
    else merged.push(part);
  }
  return merged;
}
