/**
 * @file What `tape.gradient` is asked for, checked: a target that the tape computed, and sources that it may have read.
 *
 * A tape inside of another one is a part of its log, from a value on:
 *
 *   outer   0 1 2 3 4 5 6 7 8 9 …      all of them are its targets, and sources of both
 *   inner         3 4 5 6 7            targets of the inner one
 */
import { type TensorType, typeText } from "../ir/type.ts";
import { isFloat } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, staticsOf } from "../trace/tree.ts";
import type { TapeTrace } from "./tape-trace.ts";

/** Options of a tape's `gradient`. */
export interface GradientOptions {
  /** Cotangent of the target, where that is not a scalar. */
  readonly cotangent?: Tensor;
}

const GRADIENT_OPTIONS: OptionKinds<GradientOptions> = { cotangent: "anything" };

/** The part of a log that is a tape's. */
export interface TapePart {
  /** Its first value. */
  readonly start: number;
  hasEnded: boolean;
}

/** Of one kind of argument: `sources.w`, and its tensor. */
interface Asked {
  readonly what: string;
  readonly tensor: Tensor;
}

/** Throws unless the target and the cotangent fit each other and the tape. */
export function requireTarget(
  trace: TapeTrace,
  part: TapePart,
  target: Tensor,
  options: GradientOptions,
): Tensor | null {
  requireTensor("gradient", "its target", target);
  requireOptions("gradient", options, GRADIENT_OPTIONS);
  requireOfTape(trace, part, { what: "the target", tensor: target });
  if (!isFloat(target.dtype)) {
    const help = 'cast it: x.cast("f32")';
    fail("NotDifferentiable", `gradient: the target is ${typeText(target)}, which has no derivative`, help);
  }
  const { cotangent } = options;
  if (cotangent !== undefined) {
    requireTensor("gradient", "cotangent", cotangent);
    requireType(cotangent, target);
    return cotangent;
  }
  if (target.rank === 0) return null;
  const help = "reduce it with sum() or mean(), or give { cotangent }";
  return fail("ShapeMismatch", `gradient: the target must be a scalar, got ${typeText(target)}`, help);
}

function requireType(cotangent: TensorType, target: TensorType): void {
  if (typeText(cotangent) === typeText(target)) return;
  const summary = `gradient: a cotangent ${typeText(cotangent)} for a target ${typeText(target)}`;
  fail("ShapeMismatch", summary, "give one of the same type");
}

/** The sources of a tree, each a float tensor that the tape may have read. */
export function sourcesOf(trace: TapeTrace, sources: unknown): ReturnType<typeof flatten> {
  const flat = flatten(sources, "sources");
  for (const { path, value } of staticsOf(flat.def)) {
    const help = "make it a tensor before it is used, tensor(value), or leave it out of the sources";
    fail("NotDifferentiable", `gradient: ${path} is the ${typeof value} ${String(value)}, not a tensor`, help);
  }
  flat.leaves.forEach((tensor, i) => {
    const what = flat.paths[i] ?? "";
    requireOfTape(trace, ANY, { what, tensor });
    if (isFloat(tensor.dtype)) return;
    const summary = `gradient: ${what} is ${typeText(tensor)}, and only floats have derivatives`;
    fail("NotDifferentiable", summary, "leave it out of the sources");
  });
  return flat;
}

const ANY: Pick<TapePart, "start"> = { start: 0 };

/** Concrete tensors may be on any tape. */
function requireOfTape(trace: TapeTrace, { start }: Pick<TapePart, "start">, { what, tensor }: Asked): void {
  const { traced } = tensor;
  if (!traced) return;
  const isOwn = traced.trace === trace && trace.log.numberOf(traced.cell.value) >= start;
  if (isOwn) return;
  const from = traced.where ? `, made at ${traced.where},` : "";
  const state = traced.trace.finished ? "that has ended" : "around this one";
  const help =
    "take gradients on the tape that computed the value; it differentiates what tapes inside of it return, too";
  fail("TraceLeak", `gradient: ${what} ${typeText(tensor)}${from} is of another tape ${state}`, help);
}
