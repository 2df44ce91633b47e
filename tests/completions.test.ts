/** @file The list that the playground's editor completes from: generated from the published types, it has every name of the library. */
import { expect, it } from "vitest";
import * as api from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";
import * as optim from "../src/optim/index.ts";
import type { CompletionItem, CompletionList } from "../src/playground/completion-list.ts";
import * as sim from "../src/sim/index.ts";
import { ROOT } from "./support/project.ts";

const { completionsOf } = (await import(new URL("../scripts/completions.mjs", import.meta.url).href)) as {
  completionsOf(types: string): CompletionList;
};
const list = completionsOf(`${ROOT}/dist`);

const named = (items: readonly CompletionItem[] | undefined, name: string): CompletionItem | undefined =>
  items?.find((item) => item.name === name);

it("has every exported value, with what it is", () => {
  for (const [module, exported] of Object.entries({
    tidemark: api,
    "tidemark/nn": nn,
    "tidemark/optim": optim,
    "tidemark/sim": sim,
  })) {
    const items = list.modules[module];
    for (const [name, value] of Object.entries(exported)) {
      const item = named(items, name);
      expect(item, `${name} of ${module}`).toBeDefined();
      if (typeof value === "function") expect(item?.kind).toMatch(/function|class/);
      if (item?.kind === "function") expect(item.signature, name).toMatch(/^(<.*>)?\(.*\): /);
    }
  }
});

it("has every method of tensors, and no private part of them", () => {
  const own = Object.getOwnPropertyNames(api.Tensor.prototype).filter((name) => name !== "constructor");
  const hidden = own.filter((name) => !named(list.tensor, name));
  expect(hidden).toEqual(["traced", "storage"]);
  for (const { name } of list.tensor) expect(name).toMatch(/^[A-Za-z]\w*$/);
});

it("has signatures and first sentences", () => {
  expect(named(list.tensor, "softmax")).toEqual({
    name: "softmax",
    kind: "method",
    signature: "(axis?: number): Tensor",
    about: "eˣ / Σ eˣ along an axis, the last by default.",
  });
  expect(named(list.modules["tidemark/optim"], "adam")?.signature).toBe("(options?: AdamOptions): Optimizer");
  // A method that stands in a table has the documentation of the function.
  expect(named(list.tensor, "take")?.about).toBe(named(list.modules.tidemark, "take")?.about);
  expect(named(list.modules.tidemark, "Tensor")?.kind).toBe("class");
  expect(named(list.modules.tidemark, "TensorLike")?.kind).toBe("type");
  expect(named(list.namespaces.random, "normal")?.signature).toMatch(/\): Tensor$/);
  expect(named(list.namespaces.initializers, "heUniform")).toBeDefined();
});
