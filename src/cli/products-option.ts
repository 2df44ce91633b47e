/**
 * @file What products are computed in, as commands are asked: f32 or tf32 is a matter of the target; bf16 or f16 of the program,
 * which is given the casts of `autocast`.
 */
import { autocast } from "../api/autocast.ts";
import type { HalfType } from "../api/autocast-mode.ts";
import { PRODUCTS, type Products } from "../runtime/device.ts";
import type { AnyFunction } from "../trace/function.ts";
import { type Arguments, choice, type OptionSpec, usageError } from "./command.ts";
import type { Loaded } from "./load.ts";
import type { AnyProgram } from "./programs/built-in.ts";

const HALVES = ["bf16", "f16"] as const satisfies readonly HalfType[];
const CHOICES = [...PRODUCTS, ...HALVES] as const;
const STREAMS = ["f32", ...HALVES] as const;

export const PRODUCTS_OPTIONS = {
  products: {
    value: "TYPE",
    help: `what products are computed in: ${PRODUCTS[0]} (default), tf32 on cuda, or ${HALVES.join(" or ")}, by autocast of the program`,
  },
  stream: { value: "TYPE", help: "with bf16 or f16 products, the type of the residual stream; default: f32" },
} as const satisfies Record<string, OptionSpec>;

const isHalf = (type: (typeof CHOICES)[number]): type is HalfType => HALVES.some((half) => half === type);

/** What the target multiplies f32 in; undefined where nothing was asked of it. Those of bf16 and f16 ask for tensor cores too. */
export function targetProducts(args: Arguments): Products | undefined {
  const asked = args.value("products") === undefined ? undefined : choice(args, "products", CHOICES);
  if (asked === undefined || !isHalf(asked)) return asked;
  return args.value("target") === "cuda" ? "tf32" : undefined;
}

/** The program with the casts that were asked for. */
export function withProducts(loaded: Loaded, args: Arguments): Loaded {
  const asked = choice(args, "products", CHOICES);
  if (!isHalf(asked)) {
    if (args.value("stream") === undefined) return loaded;
    throw usageError("--stream without --products bf16 or f16", "the stream of a program in f32 is f32");
  }
  if (loaded.kind === "graph") {
    throw usageError(
      `--products ${asked} of ${loaded.name}, which is a graph`,
      "its types are decided: cast where it is traced, with autocast(fn, …)",
    );
  }
  const step = autocast(loaded.program.step as AnyFunction, {
    products: asked,
    stream: choice(args, "stream", STREAMS),
  }) as AnyProgram["step"];
  return { ...loaded, program: { ...loaded.program, step } };
}
