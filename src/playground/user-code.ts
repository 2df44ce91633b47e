/**
 * @file The editor's text as a module: run once, its exports checked before use. It can import the library under its
 * package names. An error has the line of the text that caused it.
 *
 * A text exports `loss`, a function that returns a scalar, and `args`, the arguments to call it with: tensors, or
 * specs, which plan without values. The derivative is with respect to the first argument, or to those in `wrt`.
 */
import * as api from "../api/index.ts";
import { TidemarkError } from "../base/errors.ts";
import * as ir from "../ir/index.ts";
import * as nn from "../nn/index.ts";
import * as optim from "../optim/index.ts";
import * as plan from "../plan/index.ts";
import * as sim from "../sim/index.ts";
import { describe } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import { type Complaint, FILE } from "./complaint.ts";
import { stripTypes } from "./strip.ts";

const MODULES: Readonly<Record<string, object>> = {
  tidemark: api,
  "tidemark/nn": nn,
  "tidemark/optim": optim,
  "tidemark/ir": ir,
  "tidemark/plan": plan,
  "tidemark/sim": sim,
};

export interface UserProgram {
  readonly loss: AnyFunction;
  readonly args: readonly unknown[];
  readonly wrt: number | readonly number[];
}

const help = `export const args = [spec([64, 16]), spec([32, 64])];`;

function wrong(summary: string, what: string): TidemarkError {
  return new TidemarkError("UnknownProgram", summary, { help: what });
}

function load(name: string): object {
  const exported = Object.hasOwn(MODULES, name) ? MODULES[name] : undefined;
  if (exported) return exported;
  throw wrong(`there is no module ${name} here`, `these can be imported: ${Object.keys(MODULES).join(", ")}`);
}

/** Runs the text with access to the library and an object for its exports. */
export function userProgram(text: string): UserProgram | Complaint {
  const stripped = stripTypes(text);
  if ("message" in stripped) return stripped;
  return orComplaint(() => {
    const exports: { readonly loss?: unknown; readonly args?: unknown; readonly wrt?: unknown } = {};
    // On the text's first line, so that line numbers match the editor.
    const source = `(function (require, exports) {${stripped.code}\n})\n//# sourceURL=${FILE}`;
    // biome-ignore lint/security/noGlobalEval: running what is in the editor is what this file is for
    const run = globalThis.eval(source) as (require: typeof load, exports: object) => void;
    run(load, exports);
    return checked(exports);
  });
}

function checked({ loss, args, wrt = 0 }: Readonly<Record<string, unknown>>): UserProgram {
  if (typeof loss !== "function") {
    throw wrong(
      `loss is ${describe(loss)}`,
      "export function loss(w: Tensor, x: Tensor) { return x.matmul(w).sum(); }",
    );
  }
  if (!Array.isArray(args) || args.length === 0) throw wrong(`args is ${describe(args)}`, help);
  const positions: readonly unknown[] = Array.isArray(wrt) ? wrt : [wrt];
  if (!positions.every((n) => Number.isInteger(n) && (n as number) >= 0 && (n as number) < args.length)) {
    throw wrong(`wrt is ${describe(wrt)}`, `give positions of arguments, from 0 to ${args.length - 1}`);
  }
  return { loss: loss as AnyFunction, args, wrt: wrt as UserProgram["wrt"] };
}

/** The result of `make`, or the error of the text. */
export function orComplaint<T extends object>(make: () => T): T | Complaint {
  try {
    return make();
  } catch (error) {
    return complaintOf(error);
  }
}

/** The most characters shown of a message: a text may throw any length. */
const LONGEST = 4000;

const shortened = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text);

/** Any value can be thrown, even one that has no text. */
export function complaintOf(error: unknown): Complaint {
  try {
    return toldOf(error);
  } catch {
    return { message: "thrown: something that cannot be written as text", line: null };
  }
}

function toldOf(error: unknown): Complaint {
  if (!(error instanceof Error)) return { message: shortened(`thrown: ${String(error)}`), line: null };
  const named = `${error.name}: ${error.message}`;
  const message = error instanceof TidemarkError ? error.message : named;
  // A stack begins with the message, which may be arbitrary.
  const place = error instanceof TidemarkError && error.where ? error.where : (error.stack ?? "").replace(named, "");
  const line = new RegExp(`\\b${FILE.replace(".", "\\.")}:(\\d+)`).exec(place)?.[1];
  return { message: shortened(message), line: line === undefined ? null : Number(line) };
}
