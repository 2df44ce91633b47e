/** @file The first calls that the example of an export makes, with their arguments: of the function itself, and of what it returned. */
import { transform } from "sucrase";
import * as tidemark from "../src/api/index.ts";
import * as wasm from "../src/codegen/wasm/index.ts";
import * as onnx from "../src/exchange/onnx/index.ts";
import * as pt2 from "../src/exchange/pt2/index.ts";
import * as ir from "../src/ir/index.ts";
import * as nn from "../src/nn/index.ts";
import * as optim from "../src/optim/index.ts";
import * as parallel from "../src/parallel/index.ts";
import * as plan from "../src/plan/index.ts";
import * as remat from "../src/remat/index.ts";
import * as sim from "../src/sim/index.ts";
import * as tape from "../src/tape/index.ts";

export type Values = Readonly<Record<string, unknown>>;
export type AnyFunction = (...args: readonly unknown[]) => unknown;

/** Entry points whose examples need no files and no other processes. */
const MODULES: Readonly<Record<string, Values>> = {
  tidemark,
  "tidemark/nn": nn,
  "tidemark/optim": optim,
  "tidemark/sim": sim,
  "tidemark/parallel": parallel,
  "tidemark/tape": tape,
  "tidemark/onnx": onnx,
  "tidemark/pt2": pt2,
  "tidemark/ir": ir,
  "tidemark/plan": plan,
  "tidemark/remat": remat,
  "tidemark/wasm": wasm,
};

/** One call: `of` is the function itself, a method of what it returned (`apply`), or what it returned, called (`()`). */
export interface Call {
  readonly of: "itself" | "apply" | "init" | "update" | "()";
  readonly fn: AnyFunction;
  readonly args: readonly unknown[];
}

const METHODS = ["apply", "init", "update"] as const;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !(value instanceof tidemark.Tensor);

/** The methods of layers and optimizers, and functions, such that their first call is remembered. */
function watched(value: unknown, calls: Map<Call["of"], Call>): unknown {
  const remember = (of: Call["of"], fn: AnyFunction, args: readonly unknown[]): void => {
    if (!calls.has(of)) calls.set(of, { of, fn, args });
  };
  if (typeof value === "function") {
    return new Proxy(value as AnyFunction, {
      apply(target, self, args) {
        remember("()", target, args);
        return Reflect.apply(target, self, args) as unknown;
      },
    });
  }
  if (!isObject(value) || !METHODS.some((name) => typeof value[name] === "function")) return value;
  for (const name of METHODS) {
    const method = value[name];
    if (typeof method !== "function") continue;
    const fn: AnyFunction = (...args) => (method as AnyFunction).apply(value, [...args]);
    Object.defineProperty(value, name, {
      configurable: true,
      enumerable: true,
      writable: true,
      value: (...args: readonly unknown[]) => {
        remember(name, fn, args);
        return fn(...args);
      },
    });
  }
  return value;
}

/** An object with another value at a path of names. */
function replaced(values: Values, [name = "", ...rest]: readonly string[], by: unknown): Values {
  return { ...values, [name]: rest.length === 0 ? by : replaced(values[name] as Values, rest, by) };
}

/** What an entry point exports under a name, behind its namespace if it is in one. */
export function exportOf(module: string, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => (value as Values | undefined)?.[name], MODULES[module]);
}

/** Calls of the method of tensors that does the same, as an example may write it. */
function recordMethod([name = "", ...rest]: readonly string[], recorder: AnyFunction): () => void {
  const methods = tidemark.Tensor.prototype as unknown as Record<string, unknown>;
  const method = Object.getOwnPropertyDescriptor(methods, name);
  if (rest.length > 0 || typeof method?.value !== "function") return () => undefined;
  Object.defineProperty(methods, name, {
    ...method,
    value(...args: readonly unknown[]) {
      return recorder(this, ...args);
    },
  });
  return () => void Object.defineProperty(methods, name, method);
}

/** Runs an example; null where it needs what is not there: files, other processes, time, or what it says that it throws for. */
export function callsOf(
  module: string,
  path: readonly string[],
  example: string,
): ReadonlyMap<Call["of"], Call> | null {
  const original = exportOf(module, path);
  if (typeof original !== "function" || /\bawait\b|\bclass\b|\/\/ run, throws/.test(example)) return null;
  const imported = [...example.matchAll(/from "([^"]+)"/g)].map(([, id = ""]) => id);
  if (imported.some((id) => !(id in MODULES))) return null;
  const calls = new Map<Call["of"], Call>();
  const recorder: AnyFunction = (...args) => {
    if (!calls.has("itself")) calls.set("itself", { of: "itself", fn: original as AnyFunction, args });
    return watched((original as AnyFunction)(...args), calls);
  };
  const { code } = transform(example, { transforms: ["typescript", "imports"] });
  const require = (id: string): unknown =>
    id === module ? replaced(MODULES[id] as Values, path, recorder) : MODULES[id];
  const restore = recordMethod(path, recorder);
  try {
    new Function("require", "exports", "console", code)(require, {}, { log: () => undefined });
  } finally {
    restore();
  }
  return calls;
}
