/**
 * @file Functions as ONNX models: the traced graph, operator by operator. Arguments that have elements (parameters) become initializers under
 * the names of their tree, specs become inputs.
 */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { writeOnnx } from "../../formats/onnx-write.ts";
import type { Graph, Value } from "../../ir/graph.ts";
import type { AnyOp } from "../../ir/op.ts";
import { withLiveNodes } from "../../ir/walk.ts";
import { inline } from "../../passes/inline.ts";
import { requireFunction } from "../../trace/arguments.ts";
import { type AnyFunction, flattenArguments, traceFlat } from "../../trace/function.ts";
import { sourceLocation } from "../../trace/source-location.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { leafPaths, type Tree } from "../../trace/tree.ts";
import { ARRANGED } from "./export-arrange.ts";
import { bodyOf, writeControl, writeOut } from "./export-control.ts";
import { ELEMENTWISE, type ExportRule } from "./export-elementwise.ts";
import { codeFor, declared, GraphWriter, ModelParts } from "./export-graph.ts";

/** What Debian's and older runtimes know; all operators that are written exist in it. */
const OPSET = 17;
const IR_VERSION = 8;

const RULES: ReadonlyMap<AnyOp, ExportRule> = new Map([...ELEMENTWISE, ...ARRANGED]);

/** Why operations could not be written, by their names. */
type Refusals = Map<string, string>;

function writeNodes(w: GraphWriter, graph: Graph, refusals: Refusals): void {
  const write = (inner: GraphWriter, body: Graph): void => writeNodes(inner, body, refusals);
  for (const node of graph.nodes) {
    const reason = ((): string | undefined => {
      const rule = RULES.get(node.op);
      if (rule) return rule(w, node);
      const control = writeControl(w, node, write);
      if (control !== null) return control;
      const body = bodyOf(node);
      if (!body) return "has no form in ONNX";
      writeOut(w, node, body, write);
      return undefined;
    })();
    if (reason === undefined) continue;
    refusals.set(node.op.name, reason);
    // what comes after it is looked at too, so that one error names everything
    for (const output of node.outputs) w.set(output, { name: "", shape: output.type.shape });
  }
}

/** `params.layers[2].w` in an argument `params` → `layers.2.w`. */
function plainPath(path: string): string {
  const parts = path.replaceAll(/\[(\d+)\]/g, ".$1").replaceAll(/\["((?:[^"\\]|\\.)*)"\]/g, ".$1");
  const dot = parts.indexOf(".");
  return dot < 0 ? parts : parts.slice(dot + 1);
}

function bytesOfTensor(tensor: Tensor): Uint8Array {
  const data = tensor.data();
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
}

const isSpec = (tensor: Tensor): boolean => tensor.storage?.abstract === true;

/**
 * A function as the bytes of an ONNX model (opset 17). Arguments without elements (`spec`) are its inputs; tensors among the others are
 * written into the model under the names of their tree, `blocks.0.w`, as are tensors that the function closes over. Operations that ONNX does
 * not have are written as several, or refused: one error names all of them.
 *
 * @memory The file is made whole, with the weights in it.
 *
 * @example
 * import { ones, spec } from "tidemark";
 * import { linear } from "tidemark/nn";
 * import { exportOnnx, readOnnx } from "tidemark/onnx";
 *
 * const layer = linear(3, 2);
 * const file = exportOnnx((params, x) => layer.apply(params, x).tanh(), layer.init(0), spec([5, 3]));
 * const model = readOnnx(file);
 * console.log(Object.keys(model.params), model.inputs[0]?.name); // ["w", "b"] "x"
 * console.log(model.apply(model.params, [ones([5, 3])]).result?.shape); // [5, 2]
 */
export function exportOnnx<A extends readonly Tree[], R>(fn: (...args: A) => R, ...args: A): Uint8Array {
  requireFunction("exportOnnx", "its first argument", fn, "exportOnnx((x) => x.tanh(), spec([4]))");
  const flat = flattenArguments(fn as AnyFunction, args);
  const traced = traceFlat(fn as AnyFunction, flat);
  const graph = withLiveNodes(inline.run(traced.graph));
  const parts = new ModelParts();
  const w = new GraphWriter(parts);
  const used = new Set([...graph.nodes.flatMap((node) => node.inputs), ...graph.results]);
  const inputs = flat.tensors.flatMap((tensor, i) => {
    const { path, type } = at(flat.leaves, i);
    const param = at(graph.params, i);
    const plain = plainPath(path);
    const name = parts.fresh(plain === "" ? path : plain);
    w.set(param, { name, shape: type.shape });
    if (isSpec(tensor)) return [declared(name, type)];
    if (!used.has(param)) return [];
    parts.initializer({ name, type: codeFor(type.dtype), shape: type.shape, bytes: bytesOfTensor(tensor) });
    return [];
  });
  traced.captures.forEach(({ tensor }, i) => {
    const name = parts.fresh("constant");
    const { dtype, shape } = tensor;
    w.set(at(graph.params, flat.tensors.length + i), { name, shape });
    parts.initializer({ name, type: codeFor(dtype), shape, bytes: bytesOfTensor(tensor) });
  });
  const refusals: Refusals = new Map();
  writeNodes(w, graph, refusals);
  refuse(refusals);
  const names = leafPaths(traced.resultTree).map((path) =>
    /^result($|\[\d)/.test(path) ? path.replaceAll(/[[\]]/g, "") : plainPath(path),
  );
  const outputs = graph.results.map((value, i) => named(w, value, at(names, i)));
  const main = w.finish(graph.name, inputs, outputs);
  return writeOnnx({ irVersion: IR_VERSION, opset: OPSET, producer: "tidemark", version: "", graph: main });
}

/** A result under its name; nothing else may have it. */
function named(w: GraphWriter, value: Value, like: string) {
  const name = w.parts.fresh(like);
  w.nodes.push({ kind: "Identity", inputs: [w.whole(value)], outputs: [name], attributes: {} });
  return declared(name, value.type);
}

function refuse(refusals: Refusals): void {
  if (refusals.size === 0) return;
  const list = [...refusals].map(([name, reason]) => `${name} (${reason})`).sort();
  throw new TidemarkError("InvalidArgument", `exportOnnx: operations without a form: ${list.join(", ")}`, {
    where: sourceLocation(),
    help: "write these parts with other operations, or export a function without them",
  });
}
