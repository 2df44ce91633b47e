/**
 * @file What the checks of a device at hand share (cuda-device.ts, webgpu-device.ts): comparing bits, counting what differs, and
 * running every operation on every sample as one program.
 */
import { at } from "../../src/base/invariant.ts";
import type { PlacedProgram } from "../../src/codegen/placed.ts";
import { bytesOf, type TypedArray } from "../../src/kernel/dtype.ts";
import type { DeviceMemory, Target } from "../../src/runtime/device.ts";
import type { KernelSample } from "./kernel-samples.ts";

/** Of every operand's address; no device asks for more. */
const ALIGNMENT = 256;
/** Lines that are shown of what differs. */
const SHOWN = 20;

/** First element in which two arrays differ, or -1; NaN equals NaN whatever its bits. */
export function difference(a: TypedArray, b: TypedArray): number {
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return i;
  return a.length === b.length ? -1 : Math.min(a.length, b.length);
}

/** Prints comparisons and counts what failed. */
export class DeviceReport {
  failures = 0;

  compared(name: string, wrong: readonly string[], of: number): void {
    this.failures += wrong.length;
    console.log(`${name}: ${of - wrong.length} of ${of} equal`);
    for (const line of wrong.slice(0, SHOWN)) console.log(`  ${line}`);
  }

  /** Runs sections by their names, each with its time; one that throws has failed, and the others run. Ends the process. */
  async run(sections: Readonly<Record<string, () => void | Promise<void>>>, names: readonly string[]): Promise<never> {
    for (const name of names) {
      const started = performance.now();
      try {
        const section = sections[name];
        if (!section) throw new Error(`no section ${name}: there are ${Object.keys(sections).join(", ")}`);
        await section();
      } catch (error) {
        this.failures += 1;
        console.log(`${name} failed: ${error instanceof Error ? error.stack : error}`);
      }
      console.log(`-- ${name} ${((performance.now() - started) / 1000).toFixed(1)} s`);
    }
    process.exit(this.failures > 0 ? 1 : 0);
  }
}

/** Samples as one program, each kernel with operands of its own, and their addresses. */
function placedSamples(all: readonly KernelSample[]) {
  let top = 0;
  const kernels = all.map(({ kernel }) => {
    const addresses = kernel.operands.map(({ elements, dtype }) => {
      const address = top;
      top += Math.ceil((elements * bytesOf(dtype)) / ALIGNMENT + 1) * ALIGNMENT;
      return address;
    });
    return { kernel, addresses };
  });
  const placed = { kernels, copies: [], base: 0, plan: { height: top } } as unknown as PlacedProgram;
  return { placed, kernels, bytes: top };
}

/** What is wrong with samples on a target; `expected` are a sample's operands after its kernel has run. */
export async function wrongSamples(
  target: Target,
  all: readonly KernelSample[],
  expected: (sample: KernelSample) => readonly TypedArray[],
): Promise<readonly string[]> {
  const { placed, kernels, bytes: arenaBytes } = placedSamples(all);
  const started = performance.now();
  const machine = target.load(placed, { stepwise: false });
  machine.memory.fill(0, arenaBytes, 0xa5);
  all.forEach((sample, s) => {
    sample.storage().forEach((data, i) => {
      if (sample.kernel.operands[i]?.role !== "in") return;
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      machine.memory.write(at(at(kernels, s).addresses, i), bytes.length, (into) => into.set(bytes));
    });
  });
  machine.run();
  const wrong: string[] = [];
  for (const [s, sample] of all.entries()) {
    const { addresses } = at(kernels, s);
    wrong.push(...(await wrongIn(sample, { want: expected(sample), addresses, memory: machine.memory })));
  }
  const ms = (performance.now() - started).toFixed(0);
  console.log(`${machine.kernelFunctions} functions or modules compiled and run in ${ms} ms`);
  return wrong;
}

interface RunSample {
  readonly want: readonly TypedArray[];
  readonly addresses: readonly number[];
  readonly memory: DeviceMemory;
}

async function wrongIn({ name, outputs }: KernelSample, run: RunSample): Promise<readonly string[]> {
  for (const output of outputs) {
    const want = at(run.want, output);
    const got = want.slice();
    new Uint8Array(got.buffer).set(await run.memory.read(at(run.addresses, output), want.byteLength));
    const i = difference(got, want);
    if (i >= 0) return [`${name}: element ${i} of ${want.length} is ${got[i]}, not ${want[i]}`];
  }
  return [];
}
