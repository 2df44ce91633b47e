/** @file The element type that a conversion asks for. */
import { elementOf, elementText, type OnnxElement } from "../../formats/onnx-tensor.ts";
import type { Call } from "./call.ts";

export function castType(call: Call, attribute = "to", usual = 1): OnnxElement {
  const code = call.int(attribute, usual);
  return (
    elementOf(code) ?? call.fail(`numbers of type ${elementText(code)}`, "tensors have f32, f64, i32 and bool elements")
  );
}
