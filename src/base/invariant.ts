/** @file Assertions about the library's own code. A failure is a defect of Tidemark, never of the user's program. */

export class InternalError extends Error {
  constructor(message: string) {
    super(`internal: ${message}`);
    this.name = "InternalError";
  }
}

/** Throws `InternalError` unless `condition` holds; the message is built only on failure. */
export function invariant(condition: unknown, message: () => string): asserts condition {
  if (!condition) throw new InternalError(message());
}

/** The element at `index`, which the caller knows to exist. */
export function at<T>(items: { readonly length: number; readonly [index: number]: T }, index: number): T {
  const item = items[index];
  if (item === undefined) throw new InternalError(`index ${index} outside of ${items.length} items`);
  return item;
}
