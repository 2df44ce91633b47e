/** @file All forms of a model: what is enumerated, and that the choice is the fastest of all that are planned. */
import { describe, expect, it } from "vitest";
import { random, spec, type Tensor, zeros } from "../api/index.ts";
import { adam, clipByGlobalNorm, sgd } from "../optim/index.ts";
import { chooseForm } from "./choose.ts";
import { autoForm, type FormSettings, type MeshModel, parallelForms } from "./forms.ts";
import { pipeline } from "./pipeline/pipeline.ts";
import { parallelMlp } from "./tensor.ts";

const [ROWS, WIDTH, HIDDEN, LAYERS] = [16, 8, 8, 2];
type Layer = { readonly up: Tensor; readonly down: Tensor };
type Params = readonly Layer[] | { readonly shared: Tensor; readonly stages: readonly Layer[] };

const draw = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), shape);
const layer = (seed: number, hidden: number): Layer => ({
  up: draw(seed, [WIDTH, hidden]),
  down: draw(seed + 9, [hidden, WIDTH]),
});
const through = (h: Tensor, { up, down }: Layer): Tensor =>
  h.add(parallelMlp(h, { up: { w: up }, down: { w: down } }, { over: "tensor" }));

/** Two layers, which are stages, too, with hidden elements in parts. */
const model: MeshModel<Params & object, [Tensor]> = {
  optimizer: adam(),
  batch: [zeros([ROWS, WIDTH])],
  parts: { tensor: 4, pipeline: LAYERS },
  on({ mesh, microbatches, schedule, chunks }: FormSettings) {
    const own = HIDDEN / mesh.axes.tensor;
    if (schedule === null) {
      const loss = (layers: Params, x: Tensor): Tensor =>
        (layers as readonly Layer[]).reduce(through, x).square().mean();
      return { loss, params: [layer(0, own), layer(1, own)], varies: "tensor" };
    }
    const parts = {
      first: (_: Tensor, x: Tensor) => x,
      stage: (w: Layer, x: Tensor) => through(x, w),
      last: (out: Tensor, y: Tensor) => y.mul(out).square().mean(),
    };
    const loss = pipeline(parts, { over: "pipeline", microbatches, schedule, chunks });
    const params = { shared: draw(2, [WIDTH]), stages: [layer(0, own)] };
    return { loss: loss as never, params, varies: { shared: [], stages: ["pipeline", "tensor"] } };
  },
};
const RATES = { network: 1e9, latency: 1e-6, coresPerDevice: 0.5 };
const names = (forms: readonly { readonly name: string }[]) => forms.map(({ name }) => name);

describe("the forms of a model", () => {
  it("are all factorisations of the devices over its axes, each with its stages of ZeRO, microbatches and schedules", () => {
    const forms = parallelForms(model, { devices: 4 });
    const meshes = [...new Set(forms.map(({ mesh: { axes } }) => [axes.data, axes.pipeline, axes.tensor].join()))];
    expect(meshes.sort()).toEqual(["1,1,4", "1,2,2", "2,1,2", "2,2,1", "4,1,1"]);
    const of = (...extents: number[]) =>
      forms.filter(({ mesh: { axes } }) => [axes.data, axes.pipeline, axes.tensor].join() === extents.join());
    // 4 rows in 1, 2 or 4 microbatches, with four stages of ZeRO; 8 in four ways
    expect([of(4, 1, 1).length, of(2, 1, 2).length, of(1, 1, 4).length]).toEqual([3 * 4, 4 * 4, 5]);
    // three schedules, since two layers are no four pieces; at least 2 microbatches; ZeRO 0 to 2
    expect([of(2, 2, 1).length, of(1, 2, 2).length]).toEqual([3 * 3 * 3, 4 * 3]);
    expect(new Set(names(forms)).size).toBe(forms.length);
    expect(of(4, 1, 1)[0]?.args[1]).toMatchObject({ shape: [ROWS / 4, WIDTH] });
  });

  it("are those along data alone where updates depend on all gradients", () => {
    const clipped = { ...model, optimizer: sgd({ lr: 0.1, clip: clipByGlobalNorm(1) }) };
    const forms = parallelForms(clipped, { devices: 2 });
    expect(names(forms)[0]).toBe("data=2, ZeRO 0");
    expect(forms.every(({ mesh: { axes }, zero }) => axes.data === 2 && zero === 0)).toBe(true);
  });

  it("are refused where there are none, with what the model has", () => {
    expect(() => parallelForms(model, { devices: 3 })).toThrow(
      "parallelForms: there is no form for 3 devices: the model has 16 rows, 4 parts along tensor and 2 along pipeline",
    );
    expect(() => parallelForms(model, { devices: 0 })).toThrow("devices is 0");
    expect(() => parallelForms({ ...model, batch: [] as never }, { devices: 2 })).toThrow("no rows in common");
    expect(() => parallelForms({ ...model, parts: { rows: 2 } as never }, { devices: 2 })).toThrow("parts has rows");
    expect(() => parallelForms({ ...model, parts: { tensor: 0 } }, { devices: 2 })).toThrow("parts.tensor is 0");
    expect(() => parallelForms({} as never, { devices: 2 })).toThrow("on of the model");
    const uneven = [spec([4, 2]), spec([6, 2])] as never;
    expect(() => parallelForms({ ...model, batch: uneven }, { devices: 2 })).toThrow("[4,2], [6,2]");
    expect(() => autoForm(model, { devices: 2, speed: 1 } as never)).toThrow("speed");
  });
});

describe("the choice among all forms", () => {
  const small = { ...model, batch: [zeros([4, WIDTH])] as [Tensor] };
  const chosen = autoForm(small, { devices: 2, ...RATES });

  it("is the one that chooseForm takes of all of them", () => {
    const { form, predictedMs, forms } = chooseForm(parallelForms(small, { devices: 2 }), RATES);
    expect(chosen.form.name).toBe(form.name);
    expect(chosen.predictedMs).toBe(predictedMs);
    const slower = forms.filter(({ name }) => !names(chosen.forms).includes(name));
    expect(slower.length).toBeGreaterThan(0);
    // those that were not planned have a line with others of their kind, and are slower than one that was
    expect(Math.min(...slower.map((one) => one.predictedMs))).toBeGreaterThanOrEqual(predictedMs);
    expect(chosen.why).toMatch(/: not planned, fewer are faster$/);
    expect(chosen.why.split("\n").length).toBeGreaterThan(chosen.forms.length);
  });

  it("depends on the network: where messages take long, it is a form with few of them", () => {
    const late = autoForm({ ...small, parts: { tensor: 4 } }, { devices: 2, network: 1e12, latency: 1 });
    expect(late.form.mesh.axes.data).toBe(2);
    expect(late.form.microbatches).toBe(1);
    expect(late.exchangeMs).toBeGreaterThan(1000);
  });

  it("fits the memory of a device, or says the least", () => {
    const cut = { ...small, parts: { tensor: 4 } };
    const free = autoForm(cut, { devices: 2, ...RATES });
    const least = Math.min(...free.forms.map(({ arenaBytes }) => arenaBytes));
    const memory = Math.round((least + free.arenaBytes) / 2);
    const { arenaBytes, why } = autoForm(cut, { devices: 2, ...RATES, memory });
    expect(arenaBytes).toBeLessThanOrEqual(memory);
    expect(why.split("\n")[0]).toMatch(/: [\d.e-]+ ms, [\d.]+ KiB/);
    const few = { ...small, parts: {}, batch: [zeros([2, WIDTH])] as [Tensor] };
    expect(() => autoForm(few, { devices: 2, memory: "1KiB" })).toThrow(/autoForm: the least that a device takes is/);
  });
});
