/** @file The CUDA text of training steps of the built-in programs, as an H200 would run them. */
import { autocast } from "../../src/api/autocast.ts";
import "../../src/api/methods.ts";
import { plansOf } from "../../src/api/plan.ts";
import type { PlanningOptions } from "../../src/api/request.ts";
import { BUILT_IN, LARGE } from "../../src/cli/programs/built-in.ts";
import { cudaDescription } from "../../src/codegen/cuda/description.ts";
import { emitCudaProgram } from "../../src/codegen/cuda/program.ts";
import type { AnyFunction } from "../../src/trace/function.ts";

export interface CudaText {
  readonly program: string;
  readonly products?: "f32" | "tf32";
  readonly memory?: string;
  /** Activations and products in bf16. */
  readonly half?: boolean;
}

export function cudaText({ program: name, products = "f32", memory, half = false }: CudaText): string {
  const program = [...BUILT_IN, ...LARGE].find((one) => one.name === name);
  if (!program) throw new Error(`no program ${name}`);
  const options = { multiprocessors: 132, bytes: 2 ** 37, fma: true, products } as const;
  const step = program.step as AnyFunction;
  const asked: PlanningOptions = { donate: [0], ...(memory ? { memory } : {}) };
  const { plans } = plansOf(
    half ? (autocast(step as never, { products: "bf16" }) as AnyFunction) : step,
    [program.init(), ...program.batch()],
    asked,
    { description: cudaDescription(options) },
  );
  const { kernels, copies } = plans.placed(plans.choose(), 0);
  return emitCudaProgram(kernels, copies, { options, stepwise: false }).text;
}
