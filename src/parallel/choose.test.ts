/** @file The form of a step: the fastest of all that fit, by what the planner says of each. */
import { describe, expect, it } from "vitest";
import { random, specsOf, type Tensor, zeros } from "../api/index.ts";
import { adam } from "../optim/index.ts";
import { chooseForm, type ParallelForm } from "./choose.ts";
import { dataParallel } from "./data-parallel.ts";
import { mesh } from "./mesh.ts";
import { parallelMlp } from "./tensor.ts";

const [WIDTH, HIDDEN, ROWS, LAYERS] = [32, 128, 64, 4];
type Layer = { readonly up: Tensor; readonly down: Tensor };

/** The step of one of four devices: parts of the rows, or of the weights. */
function formOf(data: number, tensor: number, zero: 0 | 1 | 2 | 3): ParallelForm {
  const lossOf = (layers: readonly Layer[], x: Tensor): Tensor =>
    layers
      .reduce((h, { up, down }) => h.add(parallelMlp(h, { up: { w: up }, down: { w: down } }, { over: "tensor" })), x)
      .square()
      .mean();
  const options = { mesh: mesh({ data, tensor }), over: "data", params: "tensor", zero } as const;
  const train = dataParallel(lossOf, adam(), options);
  const own = HIDDEN / tensor;
  const layers = Array.from({ length: LAYERS }, (_, i) => ({
    up: random.normal(random.key(i), [WIDTH, own]),
    down: random.normal(random.key(i), [own, WIDTH]),
  }));
  const args = [specsOf(train.init)(layers), zeros([ROWS / data, WIDTH])];
  return { name: `data=${data}, tensor=${tensor}, zero ${zero}`, step: train.step, args };
}

const forms = [formOf(4, 1, 0), formOf(4, 1, 1), formOf(4, 1, 3), formOf(2, 2, 0), formOf(1, 4, 0)];
const FAST = { network: 1e12, latency: 1e-7 };

describe("the form of a step", () => {
  const all = forms.map((form) => chooseForm([form], FAST));

  it("is the one of all that takes the least time", () => {
    const { form, predictedMs, forms: sorted } = chooseForm(forms, FAST);
    const least = Math.min(...all.map((one) => one.predictedMs));
    expect(predictedMs).toBe(least);
    expect(form.name).toBe(all.find((one) => one.predictedMs === least)?.name);
    expect(sorted.map(({ name }) => name).sort()).toEqual(forms.map(({ name }) => name).sort());
  });

  it("depends on the network: where it is slow, the one that sends least", () => {
    const slow = chooseForm(forms, { network: 1e6, latency: 1e-7 });
    // rows of activations are fewer than weights: only products are exchanged
    expect(slow.form.name).toBe("data=1, tensor=4, zero 0");
    expect(slow.predictedMs).toBeGreaterThan(10 * chooseForm(forms, FAST).predictedMs);
    const late = chooseForm(forms, { network: 1e12, latency: 1 });
    expect(late.form.name).toBe("data=4, tensor=1, zero 0");
  });

  it("fits the memory, and says of all others why not", () => {
    const smallest = Math.min(...all.map(({ arenaBytes }) => arenaBytes));
    const data = [forms[0], forms[1]] as ParallelForm[];
    const [whole, sharded] = data.map((form) => chooseForm([form], FAST).arenaBytes) as [number, number];
    expect(sharded).toBeLessThan(whole);
    const memory = Math.round((sharded + smallest) / 2);
    const { form, arenaBytes, why, forms: figures } = chooseForm(forms, { ...FAST, memory });
    expect(arenaBytes).toBeLessThanOrEqual(memory);
    expect(figures.find(({ name }) => name === form.name)).toMatchObject({ fits: true, arenaBytes });
    expect(why.split("\n")).toHaveLength(forms.length);
    expect(why).toMatch(/^data=\d, tensor=\d, zero \d: [\d.e-]+ ms, [\d.]+ [KM]iB/);
    expect(why).toMatch(/data=4, tensor=1, zero 0 does not fit: it takes [\d.]+ [KM]iB at least/);
  });

  it("is refused where none fits, with the least", () => {
    expect(() => chooseForm(forms.slice(0, 2), { memory: "100KB" })).toThrow(
      /PlanInfeasible: chooseForm: the least that a device takes is .* and it has 97.7 KiB/,
    );
    expect(() => chooseForm([])).toThrow("there are no forms");
    expect(() => chooseForm(forms, { network: 0 })).toThrow("network is 0");
    expect(() => chooseForm(forms, { latency: Number.NaN })).toThrow("latency is");
  });

  it("names what is missing of a form", () => {
    const { step, args } = formOf(1, 1, 0);
    expect(() => chooseForm([{ name: "one", step } as never])).toThrow("chooseForm: args must be a list");
    expect(() => chooseForm([{ step, args } as never])).toThrow("chooseForm: the name of a form is undefined");
    expect(() => chooseForm([formOf(1, 1, 0)], { memory: null as never })).toThrow("byte size null is neither");
  });
});
