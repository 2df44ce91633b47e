/**
 * @file Trees of tensors between threads. A tensor itself is not sent: its elements may be in an arena, and `structuredClone`
 * sees none of them. What is sent is a message of plain arrays, whose bytes are moved and not copied a second time.
 *
 *   const { message, transfer } = toMessage(params);      worker.postMessage(message, transfer);
 *   onmessage = ({ data }) => { const params = fromMessage(data); … }
 */
import { elementsOf, type Shape } from "../ir/type.ts";
import { DTYPES, type DType, type TypedArray, typeOf } from "../kernel/dtype.ts";
import { describe, fail } from "../trace/arguments.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { flatten, leafCount, type Tree, type TreeDef, unflatten } from "../trace/tree.ts";

/** A tree of tensors in a form that `postMessage` and `structuredClone` keep. */
export interface TreeMessage<T extends Tree = Tree> {
  readonly tidemark: "tree";
  readonly structure: TreeDef;
  readonly tensors: readonly { readonly dtype: DType; readonly shape: Shape; readonly data: TypedArray }[];
  /** The type of the tree; there is no such field. */
  readonly type?: T;
}

/**
 * A tree of tensors as a message to another thread, and the arrays in it, which `postMessage` can move instead of copying them.
 * The tensors stay as they are.
 *
 * @memory A copy of all elements.
 *
 * @example
 * import { fromMessage, tensor, toMessage } from "tidemark";
 *
 * const { message, transfer } = toMessage({ w: tensor([1, 2]) });
 * const copy = structuredClone(message, { transfer });
 * console.log(fromMessage(copy).w.toArray()); // [1, 2]
 */
export function toMessage<T extends Tree>(tree: T): { message: TreeMessage<T>; transfer: ArrayBuffer[] } {
  const { leaves, def } = flatten(tree, "tree");
  const tensors = leaves.map((leaf) => ({ dtype: leaf.dtype, shape: [...leaf.shape], data: leaf.data() }));
  const transfer = tensors.map(({ data }) => data.buffer as ArrayBuffer);
  return { message: { tidemark: "tree", structure: def, tensors }, transfer };
}

/**
 * The tree that a message holds. Its arrays become the tensors'.
 *
 * @memory Arrays of the message become the tensors': nothing is copied.
 *
 * @example
 * import { fromMessage, tensor, toMessage } from "tidemark";
 *
 * const { message } = toMessage({ w: tensor([1, 2]) });
 * console.log(fromMessage(message).w.toArray()); // → [1, 2]
 */
export function fromMessage<T extends Tree>(message: TreeMessage<T>): T {
  const { tidemark, structure, tensors } = (message ?? {}) as Partial<TreeMessage<T>>;
  if (tidemark !== "tree" || !structure || !Array.isArray(tensors) || leafCount(structure) !== tensors.length) {
    fail(
      "InvalidArgument",
      `fromMessage: ${describe(message)} is not a message of tensors`,
      "send what toMessage(tree) gives",
    );
  }
  const leaves = tensors.map(({ dtype, shape, data }) => {
    const isWhole = DTYPES.includes(dtype) && data instanceof typeOf(dtype).array && data.length === elementsOf(shape);
    if (!isWhole)
      fail("InvalidArgument", "fromMessage: a tensor of the message is not whole", "send each message once");
    return new Tensor(new ArrayStorage(dtype, shape, data));
  });
  return unflatten(structure, leaves) as T;
}
