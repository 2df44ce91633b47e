/** @file Completions at positions of a text, by a small list. The position is that of `|`. */
import { describe, expect, it } from "vitest";
import { importEdit, type Offer, offersAt } from "./complete.ts";
import type { CompletionItem, CompletionList } from "./completion-list.ts";

const item = (name: string, signature: string, kind: CompletionItem["kind"] = "function"): CompletionItem => ({
  ...{ name, kind, signature, about: `${name}.` },
});

const LIST: CompletionList = {
  modules: {
    tidemark: [item("Tensor", "", "class"), item("relu", "(x: Tensor): Tensor"), item("random", "", "namespace")],
    "tidemark/nn": [item("linear", "(from: number): Layer"), item("relu", "(): Layer"), item("Layer", "", "type")],
  },
  tensor: [
    item("matmul", "(w: Tensor): Tensor", "method"),
    item("item", "(): number", "method"),
    item("shape", "Shape", "property"),
    item("T", "Tensor", "property"),
  ],
  namespaces: { random: [item("normal", "(key: Key): Tensor", "method")] },
};

const names = (marked: string, asked = false): readonly string[] | null => {
  const position = marked.indexOf("|");
  const offers = offersAt(LIST, marked.replace("|", ""), position, asked);
  return offers?.items.map((offer) => offer.name) ?? null;
};

const TENSOR = ["matmul", "item", "shape", "T"];

describe("after a dot", () => {
  it.each([
    ["an annotated parameter", "function f(x: Tensor) { return x.| }"],
    ["a part of the method's name", "function f(x: Tensor) { return x.mat| }"],
    ["a method that returns a tensor", "x.matmul(w).|"],
    ["such a method on the next line", "x.matmul(w)\n  .|"],
    ["an exported function that returns one", "relu(a, (b)).|"],
    ["a function of the text", "block(h, w).|"],
    ["a method of an object of the text", "model.apply(p, x).|"],
    ["a variable of such a value", "const h = x.matmul(w);\nh.|"],
    ["an element", "ws[0].|"],
    ["brackets", "(a).|"],
    ["a field that is declared as a tensor", "type P = { w: Tensor };\nfunction f(p: P) { p.w.| }"],
    ["a property that is a tensor", "x.T.|"],
    ["an optional chain", "x?.|"],
  ])("offers what tensors have: %s", (_, text) => {
    expect(names(text)).toEqual(TENSOR);
  });

  it.each([
    ["a number's method", "x.item().|"],
    ["a layer", "linear(3).|"],
    ["a variable of such a value", "const model = linear(3);\nmodel.|"],
    ["Math", "Math.|"],
    ["a list", "function f(ws: Tensor[]) { ws.| }"],
    ["a result of map", "ws.map((w) => w.T).|"],
    ["an annotated number", "function f(n: number) { n.| }"],
    ["a property that is none", "x.shape.|"],
    ["a number", "1.|"],
    ["spread", "f(...|)"],
    ["a comment", "// x.|"],
    ["a string", '"x.|"'],
    ["a string without an end", '"x.|'],
  ])("offers nothing: %s", (_, text) => {
    expect(names(text)).toBeNull();
  });

  it("offers the fields of a declared type, and the members of an exported object", () => {
    const text = "type P = { w1: Tensor; deep?: { a: 1 } };\ninterface Q { b: Tensor }\n";
    expect(names(`${text}function f(q: Q) { q.| }`)).toEqual(["b"]);
    expect(names("type P = { w1: Tensor; w2: Tensor };\nfunction f(p: P) { p.| }")).toEqual(["w1", "w2"]);
    expect(names("random.|")).toEqual(["normal"]);
  });

  it("ends where variables refer to each other", () => {
    expect(names("const a = b; const b = a; a.|")).toEqual(TENSOR);
  });
});

describe("elsewhere", () => {
  it("offers all names once a word begins or when asked, imported ones from their module alone", () => {
    expect(names("re|")).toEqual(["Tensor", "relu", "random", "linear", "relu", "Layer"]);
    expect(names("|")).toBeNull();
    expect(names("|", true)).toHaveLength(6);
    expect(names('import { relu } from "tidemark/nn";\nre|')).toEqual(["Tensor", "random", "linear", "relu", "Layer"]);
    expect(names("x2| ")).toHaveLength(6);
    expect(names("12a|")).toBeNull();
  });

  it("offers a module's names in its import, and the modules", () => {
    expect(names('import { | } from "tidemark/nn";')).toEqual(["linear", "relu", "Layer"]);
    expect(names("import { li|")).toEqual(["Tensor", "relu", "random"]);
    expect(names('import { relu } from "|"')).toEqual(["tidemark", "tidemark/nn"]);
    expect(names('import { relu } from "tide|')).toEqual(["tidemark", "tidemark/nn"]);
    expect(names('const a = "tide|"')).toBeNull();
  });
});

it("imports a name where it belongs", () => {
  const offer = (name: string, module: string | null, kind: Offer["kind"] = "function"): Offer => ({
    ...{ name, kind, signature: "", about: "", module },
  });
  const edited = (text: string, wanted: Offer): string => {
    const edit = importEdit(text, wanted);
    return edit ? text.slice(0, edit.at) + edit.text + text.slice(edit.at) : text;
  };
  const nn = offer("linear", "tidemark/nn");
  expect(edited("f();\n", nn)).toBe('import { linear } from "tidemark/nn";\nf();\n');
  expect(edited('import { a } from "tidemark";\nf();\n', nn)).toBe(
    'import { a } from "tidemark";\nimport { linear } from "tidemark/nn";\nf();\n',
  );
  expect(edited('import { a, type B } from "tidemark/nn";\n', nn)).toBe(
    'import { a, type B, linear } from "tidemark/nn";\n',
  );
  expect(edited('import {\n  a,\n} from "tidemark/nn";\n', nn)).toBe('import {\n  a, linear,\n} from "tidemark/nn";\n');
  expect(edited('import {} from "tidemark/nn";\n', nn)).toBe('import { linear } from "tidemark/nn";\n');
  expect(edited("", offer("Layer", "tidemark/nn", "type"))).toBe('import { type Layer } from "tidemark/nn";\n');
  for (const none of ['import { linear } from "tidemark/nn";\n', "f();\n"]) {
    expect(edited(none, none.startsWith("f") ? offer("x", null) : nn)).toBe(none);
  }
});
