/** @file Values that stay in the arena as a safetensors file: read into a program, and written from it. */
import { dtypeInMemory, elementsFromFile, FILE_TYPE_OF } from "../../formats/elements.ts";
import { badFile, headerBytes, layOut, PREFIX_BYTES, parseHeader } from "../../formats/safetensors.ts";
import { sameType, type TensorType, tensorType, typeText } from "../../ir/type.ts";
import type { TypedArray } from "../../kernel/dtype.ts";
import type { PlacedTensor } from "./format.ts";
import type { Given } from "./values.ts";

/** Something that a file may hold. */
interface Named extends TensorType {
  readonly name: string;
}

/** The tensors of a file for the parameters that they belong to, by name; one at a time. */
export function* weightsFrom(file: Uint8Array, params: readonly PlacedTensor[]): Generator<Given> {
  const length = headerBytes(file.subarray(0, PREFIX_BYTES), file.length);
  const start = PREFIX_BYTES + length;
  const { tensors } = parseHeader(file.subarray(PREFIX_BYTES, start), file.length - start);
  for (const tensor of tensors) {
    const param = params.findIndex(({ name }) => name === tensor.name);
    const place = params[param];
    if (!place) throw badFile(`the program has no place for ${tensor.name}`, "give the weights of this program");
    const type = tensorType(dtypeInMemory(tensor, place.dtype), tensor.shape);
    if (!sameType(type, place)) {
      throw badFile(`${tensor.name} is ${typeText(type)}; the program has ${typeText(place)}`);
    }
    const bytes = file.subarray(start + tensor.begin, start + tensor.end);
    yield { param, elements: elementsFromFile(tensor, bytes, place.dtype) };
  }
}

/** A file with the elements of named tensors. */
export function weightsFile<T extends Named>(named: readonly T[], elements: (tensor: T) => TypedArray): Uint8Array {
  const { head, tensors } = layOut(
    named.map(({ name, dtype, shape }) => ({ name, type: FILE_TYPE_OF[dtype], shape })),
    {},
  );
  const file = new Uint8Array(head.length + (tensors.at(-1)?.end ?? 0));
  file.set(head);
  for (const { name, begin } of tensors) {
    const data = elements(named.find((tensor) => tensor.name === name) as T);
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), head.length + begin);
  }
  return file;
}
