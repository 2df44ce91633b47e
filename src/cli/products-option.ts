/**
 * @file What products are computed in, as commands are asked: `--products` says what the target multiplies f32 in, `--autocast` gives
 * the program the casts of `autocast`.
 */
import { autocast } from "../api/autocast.ts";
import type { HalfType } from "../api/autocast-mode.ts";
import { PRODUCTS, type Products } from "../runtime/device.ts";
import type { AnyFunction } from "../trace/function.ts";
import { type Arguments, choice, type OptionSpec, usageError } from "./command.ts";
import type { Loaded } from "./load.ts";
import type { AnyProgram } from "./programs/built-in.ts";

const HALVES = ["bf16", "f16"] as const satisfies readonly HalfType[];
const STREAMS = ["f32", ...HALVES] as const;

export const PRODUCTS_OPTIONS = {
  products: { value: "TYPE", help: `what cuda multiplies f32 in: ${PRODUCTS.join(", ")}; default: ${PRODUCTS[0]}` },
  autocast: { value: "TYPE", help: `products of the program in ${HALVES.join(" or ")}, by casts; default: none` },
  stream: { value: "TYPE", help: "with --autocast, the type of the residual stream; default: f32" },
} as const satisfies Record<string, OptionSpec>;

const autocastType = (args: Arguments): HalfType | undefined =>
  args.value("autocast") === undefined ? undefined : choice(args, "autocast", HALVES);

/** What the target multiplies f32 in; undefined where nothing was asked of it. Products of bf16 and f16 ask for tensor cores too. */
export function targetProducts(args: Arguments): Products | undefined {
  if (args.value("products") !== undefined) {
    const half = HALVES.find((type) => type === args.value("products"));
    if (half) {
      const summary = `--products ${half}: it says what the target multiplies f32 in, ${PRODUCTS.join(" or ")}`;
      throw usageError(summary, `--autocast ${half} casts the program`);
    }
    return choice(args, "products", PRODUCTS);
  }
  return autocastType(args) !== undefined && args.value("target") === "cuda" ? "tf32" : undefined;
}

/** The program with the casts that were asked for. */
export function withAutocast(loaded: Loaded, args: Arguments): Loaded {
  const products = autocastType(args);
  if (products === undefined) {
    if (args.value("stream") === undefined) return loaded;
    throw usageError("--stream without --autocast", "the stream of a program in f32 is f32");
  }
  if (loaded.kind === "graph") {
    throw usageError(
      `--autocast ${products} of ${loaded.name}, which is a graph`,
      "its types are decided: cast where it is traced, with autocast(fn, …)",
    );
  }
  const step = autocast(loaded.program.step as AnyFunction, {
    products,
    stream: choice(args, "stream", STREAMS),
  }) as AnyProgram["step"];
  return { ...loaded, program: { ...loaded.program, step } };
}
