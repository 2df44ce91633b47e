/**
 * @file The contract of a module that exports `program`, and its checks. Modules are JavaScript: every returned value
 * is checked before use, and errors refer to the contract.
 */
import { TidemarkError } from "../base/errors.ts";
import { typeText } from "../ir/type.ts";
import { describe } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";
import { flatten, treeKey } from "../trace/tree.ts";
import type { AnyProgram } from "./programs/built-in.ts";
import { thrownText } from "./thrown.ts";

/** For `--help`; the README has the same with an example. */
export const CONTRACT: string = [
  "A module exports `program`, an object with",
  "  name                    for reports (default: the file's name)",
  "  init()                  the state before the first step: an object of tensors, to any depth",
  "  batch()                 a list of tensors: the other arguments of a step",
  "  step(state, ...batch)   [next state, loss]: the state with the same structure and types, the loss a scalar",
  "  specs()                 optional: [state, ...batch] as specs, to plan without creating tensors",
  '  axes                    optional: names of axes of [state, ...batch], for --shapes: [null, [null, "T"]]',
].join("\n");

/** For `tidemark build --help`. */
export const FUNCTION_CONTRACT: string = [
  "Or a function without a state:",
  "  params()                optional: tensors that stay in memory, an object of them to any depth",
  "  batch()                 a list: the other arguments of a call, as tensors, specs, numbers, or objects of them",
  "  run(params, ...batch)   the results; without `params()` run(...batch)",
].join("\n");

/** A function to be built: parameters that stay, and arguments like those of its calls. */
export interface FunctionProgram {
  readonly name: string;
  params?(): object;
  batch(): readonly unknown[];
  run(...args: unknown[]): unknown;
}

function contractError(name: string, summary: string, help: string): TidemarkError {
  return new TidemarkError("UnknownProgram", `${name}: ${summary}`, { help });
}

function requireState(name: string, state: unknown): object {
  if (typeof state === "object" && state !== null && !(state instanceof Promise)) return state;
  throw contractError(
    name,
    `init() returned ${describe(state)}`,
    "return the state: an object of tensors, { params: { w } }",
  );
}

function requireBatch(name: string, batch: unknown): readonly Tensor[] {
  if (!Array.isArray(batch)) {
    throw contractError(name, `batch() returned ${describe(batch)}`, "return a list, also of one tensor: [x]");
  }
  const other = batch.findIndex((x) => !(x instanceof Tensor));
  if (other < 0) return batch as readonly Tensor[];
  throw contractError(
    name,
    `item ${other} of batch() is ${describe(batch[other])}`,
    "return a list of tensors: [x, y]",
  );
}

/** Calls a function of a module; thrown errors keep their location. */
function checkedCall(name: string, member: "init" | "batch" | "params", make: () => unknown): unknown {
  try {
    return make();
  } catch (thrown) {
    if (thrown instanceof Error) throw thrown;
    throw contractError(name, `${member}(): ${thrownText(thrown)}`, "throw an Error, which says where it was thrown");
  }
}

/** A module's program with checked return values; `step` is unchanged, since it is traced. */
export function checkedProgram(program: AnyProgram): AnyProgram {
  return {
    ...program,
    init: () => requireState(program.name, checkedCall(program.name, "init", program.init)),
    batch: () => requireBatch(program.name, checkedCall(program.name, "batch", program.batch)),
  };
}

/** The same of a function; its arguments are checked when it is traced. */
export function checkedFunction({ name, run, ...members }: FunctionProgram): FunctionProgram {
  const params = members.params as unknown;
  if (params !== undefined && typeof params !== "function") {
    throw contractError(name, "`params` is not a function", "params: () => ({ w })");
  }
  if (typeof members.batch !== "function") {
    throw contractError(name, "it has `run` and no function `batch`", "batch: () => [spec([1, 784])]");
  }
  const batch = (): readonly unknown[] => {
    const made = checkedCall(name, "batch", members.batch);
    if (Array.isArray(made)) return made;
    throw contractError(name, `batch() returned ${describe(made)}`, "return a list, also of one tensor: [x]");
  };
  if (params === undefined) return { name, run, batch };
  const stays = (): object => {
    const made = checkedCall(name, "params", params as () => unknown);
    if (typeof made === "object" && made !== null && !(made instanceof Promise)) return made;
    throw contractError(name, `params() returned ${describe(made)}`, "return an object of tensors: { w }");
  };
  return { name, run, batch, params: stays };
}

const shapeOf = (state: unknown): string => {
  const { def, leaves } = flatten(state, "state");
  return `${treeKey(def)}:${leaves.map(typeText).join(",")}`;
};

/** What a step returned, if it is the next state and the loss. */
export function stepResult(name: string, state: object, result: unknown): readonly [object, Tensor] {
  const help = "step(state, ...batch) returns [next state, loss]";
  if (!Array.isArray(result) || result.length !== 2)
    throw contractError(name, `step returned ${describe(result)}`, help);
  const [next, loss] = result as [unknown, unknown];
  if (!(loss instanceof Tensor) || loss.elements !== 1) {
    const got = describe(loss);
    throw contractError(name, `step returned ${got} as the loss`, `${help}, and the loss is one number: loss.mean()`);
  }
  if (typeof next === "object" && next !== null && shapeOf(next) === shapeOf(state)) return [next, loss];
  const keeps = "the next state has the structure and the types of the state";
  throw contractError(name, "step returned a state that differs from the one it got", `${help}; ${keeps}`);
}
