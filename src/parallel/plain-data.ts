/** @file Data that goes from thread to thread: copies are made of it, and tensors have none of their elements in them. */
import { fail } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";

/** Throws where a tensor is anywhere in a value. */
export function requirePlain(name: string, what: string, value: unknown): void {
  const seen = new Set<unknown>();
  const visit = (part: unknown, path: string): void => {
    if (part instanceof Tensor) {
      fail(
        "InvalidArgument",
        `${name}: ${path} is a tensor, which stays on its thread`,
        "give its elements: x.toArray(), x.data()",
      );
    }
    if (typeof part !== "object" || part === null || ArrayBuffer.isView(part) || seen.has(part)) return;
    seen.add(part);
    const entries = part instanceof Map || part instanceof Set ? [...part].entries() : Object.entries(part);
    for (const [key, item] of entries) visit(item, `${path}.${key}`);
  };
  visit(value, what);
}
