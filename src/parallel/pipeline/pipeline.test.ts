/** @file Pipelines: slots and what is in flight against their formulas, and the gradients of every schedule against those of the whole model. */
import { describe, expect, it } from "vitest";
import { onDevices } from "../../../tests/support/devices.ts";
import { Random } from "../../../tests/support/random.ts";
import { add, type Tensor, tensor, valueAndGrad } from "../../api/index.ts";
import { sgd } from "../../optim/index.ts";
import type { AnyFunction } from "../../trace/function.ts";
import { dataParallel } from "../data-parallel.ts";
import { mesh } from "../mesh.ts";
import { shard } from "../shard.ts";
import { parallelMlp } from "../tensor.ts";
import { type PipelineModel, type PipelineOptions, pipeline } from "./pipeline.ts";
import { pipelineRows } from "./rows.ts";
import { type PipelineScheduleName, pipelineSchedule, SCHEDULES } from "./schedule.ts";

function draws(shape: readonly number[], seed: number): Tensor {
  const random = new Random(seed);
  const count = shape.reduce((n, extent) => n * extent, 1);
  return tensor(Array.from({ length: count }, () => Math.fround(random.next() - 0.5))).reshape(shape);
}

interface Shared {
  readonly table: Tensor;
  readonly out: Tensor;
}
interface Own {
  readonly a: Tensor;
  readonly b: Tensor;
}
type Batch = readonly [Tensor, Tensor];

const WIDTH = 3;
const model: PipelineModel<Shared, Own, [Tensor, Tensor]> = {
  first: ({ table }, x) => x.matmul(table),
  stage: ({ a, b }, x) => x.add(x.matmul(a).add(b).tanh()),
  last: ({ out }, y, _x, t) => y.matmul(out).sub(t).square().mean(),
};
const shared: Shared = { table: draws([2, WIDTH], 1), out: draws([WIDTH, 2], 2) };
const ownOf = (stage: number): Own => ({ a: draws([WIDTH, WIDTH], 10 + stage), b: draws([WIDTH], 50 + stage) });
const batchOf = (rows: number): Batch => [draws([rows, 2], 90), draws([rows, 2], 91)];

/** The same on one device: every microbatch through all stages, one after the other. */
function whole(stages: number, microbatches: number, rows: number) {
  const [x, t] = batchOf(rows);
  const lossOf = (p: { shared: Shared; own: readonly Own[] }, own: Tensor, target: Tensor): Tensor => {
    const y = p.own.reduce((h, each) => model.stage(each, h), model.first(p.shared, own, target));
    return model.last(p.shared, y, own, target);
  };
  const fn = (p: { shared: Shared; own: readonly Own[] }, xs: Tensor, ts: Tensor): Tensor[] => {
    const part = (a: Tensor, k: number) => a.slice([[(k * rows) / microbatches, ((k + 1) * rows) / microbatches]]);
    const each = Array.from({ length: microbatches }, (_, k) => valueAndGrad(lossOf)(p, part(xs, k), part(ts, k)));
    const leaves = each.map(([loss, g]) => [
      loss,
      ...[g.shared.table, g.shared.out],
      ...g.own.flatMap(({ a, b }) => [a, b]),
    ]);
    return leaves.reduce((sum, own) => sum.map((s, i) => add(s, own[i] as Tensor))).map((s) => s.mul(1 / microbatches));
  };
  const args = [{ shared, own: Array.from({ length: stages }, (_, i) => ownOf(i)) }, x, t];
  const options = { mesh: mesh({ one: 1 }), in: [[], [], []], out: [] };
  return (onDevices(fn as AnyFunction, options, () => args, true).results[0] ?? []).map((data) => [...data]);
}

/** By device: the loss, and gradients of shared parameters and of its own. */
function pipelined(p: number, rows: number, options: Omit<PipelineOptions, "over">) {
  const { chunks = 1 } = options;
  const loss = pipeline(model, { over: "pipeline", ...options });
  const fn = (own: { shared: Shared; stages: readonly Own[] }, x: Tensor, t: Tensor) => {
    const [value, g] = loss.valueAndGrad(own, x, t);
    return { value, shared: g.shared, stages: g.stages };
  };
  const argsOf = (rank: number) => [
    { shared, stages: Array.from({ length: chunks }, (_, c) => ownOf(c * p + rank)) },
    ...batchOf(rows),
  ];
  const spec = { shared: [], stages: "pipeline" };
  const out = { value: [], shared: [], stages: "pipeline" };
  const on = { mesh: mesh({ pipeline: p }), in: [spec, [], []], out };
  return onDevices(fn as never, on, argsOf, true).results.map((own) => own.map((data) => [...data]));
}

describe("a schedule", () => {
  const shapes = [1, 2, 3, 4, 6].flatMap((stages) => [1, 2, 4, 12].map((microbatches) => ({ stages, microbatches })));

  it.each(shapes)("waits for 2(p - 1) of 2(m + p - 1) slots: %o", ({ stages: p, microbatches: m }) => {
    for (const name of ["gpipe", "1f1b"] as const) {
      const { slots, bubble } = pipelineSchedule(name, { stages: p, microbatches: m });
      expect(slots.map((own) => own.length)).toEqual(slots.map(() => 2 * (m + p - 1)));
      expect(bubble).toBeCloseTo((p - 1) / (m + p - 1), 12);
    }
  });

  it.each(shapes)(
    "keeps all microbatches, or as many as there are stages from here: %o",
    ({ stages: p, microbatches: m }) => {
      const inFlight = (name: PipelineScheduleName) => pipelineSchedule(name, { stages: p, microbatches: m }).inFlight;
      const stages = Array.from({ length: p }, (_, i) => i);
      expect(inFlight("gpipe")).toEqual(stages.map(() => m));
      expect(inFlight("1f1b")).toEqual(stages.map((i) => Math.min(m, p - i)));
      expect(inFlight("zero-bubble")).toEqual(stages.map(() => Math.min(m, p)));
    },
  );

  it.each([2, 3, 4])("interleaved waits v times less, and keeps pv + p - 1 pieces on the first device: %d", (p) => {
    for (const v of [2, 3]) {
      const { slots, inFlight } = pipelineSchedule("interleaved", { stages: p, microbatches: 4 * p, chunks: v });
      expect(slots[0]?.length).toBe(2 * (4 * p * v + p - 1));
      expect(inFlight[0]).toBe(p * v + p - 1);
    }
  });

  it.each([1, 2, 3, 4, 8])("with weights apart waits for p - 1 slots: %d", (p) => {
    for (const m of [p, p + 1, 3 * p]) {
      const { slots } = pipelineSchedule("zero-bubble", { stages: p, microbatches: m });
      expect(slots[0]?.length).toBe(3 * m + p - 1);
    }
  });

  it("does everything once, after what it needs, and no row is taken while it waits", () => {
    for (const name of SCHEDULES) {
      for (const p of [1, 2, 3, 4]) {
        const chunks = name === "interleaved" ? 2 : 1;
        const schedule = pipelineSchedule(name, { stages: p, microbatches: 2 * p, chunks });
        const done = schedule.slots.map((own) => own.filter((one) => one !== null).length);
        expect(done).toEqual(done.map(() => 2 * p * chunks * (name === "zero-bubble" ? 3 : 2)));
        const { counts } = pipelineRows(schedule);
        // what is kept from the forward to the backward pass is what is in flight
        const most = Math.max(...schedule.inFlight);
        expect(name === "zero-bubble" ? counts.late : counts.kept).toBe(most);
      }
    }
  });

  it("says what is wrong", () => {
    const shape = { stages: 2, microbatches: 4 };
    expect(() => pipelineSchedule("fast" as never, shape)).toThrow("give one of gpipe, 1f1b, interleaved, zero-bubble");
    expect(() => pipelineSchedule("1f1b", { stages: 2, microbatches: 0 })).toThrow("microbatches is 0");
    expect(() => pipelineSchedule("1f1b", { ...shape, chunks: 2 })).toThrow("2 chunks with 1f1b");
    expect(() => pipelineSchedule("interleaved", shape)).toThrow("1 chunk with interleaved");
    expect(() => pipelineSchedule("interleaved", { stages: 2, microbatches: 3, chunks: 2 })).toThrow(
      "give a multiple of 2",
    );
  });
});

describe("a pipeline", () => {
  const cases = SCHEDULES.flatMap((schedule) =>
    [1, 2, 3].map((p) => [schedule, p, schedule === "interleaved" ? 2 : 1] as const),
  );

  it.each(cases)("%s on %d devices has the bits of the whole model", (schedule, p, chunks) => {
    const [microbatches, rows] = [2 * p, 4 * p];
    const found = pipelined(p, rows, { schedule, microbatches, ...(chunks > 1 ? { chunks } : {}) });
    const [loss, table, out, ...own] = whole(p * chunks, microbatches, rows);
    for (const [rank, [value, gTable, gOut, ...mine]] of found.entries()) {
      expect([value, gTable, gOut]).toEqual([loss, table, out]);
      const wanted = Array.from({ length: chunks }, (_, c) => own.slice(2 * (c * p + rank), 2 * (c * p + rank) + 2));
      expect(mine).toEqual(wanted.flat());
    }
  });

  it("has stages whose weights are in parts along another axis", () => {
    const hidden = 4;
    const upOf = (stage: number) => draws([WIDTH, hidden], 30 + stage);
    const downOf = (stage: number) => draws([hidden, WIDTH], 40 + stage);
    type Wide = { readonly scale: Tensor; readonly up: Tensor; readonly down: Tensor };
    const scale = draws([WIDTH], 60);
    const [x, t] = batchOf(8);
    const [stages, tensors] = [2, 2];
    const loss = pipeline<Shared, Wide, [Tensor, Tensor]>(
      {
        ...model,
        // what all devices of the axis have meets parts behind it
        stage: (p, h) =>
          h.add(parallelMlp(h.mul(p.scale), { up: { w: p.up }, down: { w: p.down } }, { over: "tensor" })),
      },
      { over: "pipeline", microbatches: 4, schedule: "zero-bubble" },
    );
    const fn = (own: { shared: Shared; stages: readonly Wide[] }, a: Tensor, b: Tensor) => loss.valueAndGrad(own, a, b);
    const argsOf = (rank: number) => {
      const [stage, part] = [Math.floor(rank / tensors), rank % tensors];
      const half = [part * (hidden / tensors), (part + 1) * (hidden / tensors)] as const;
      const own = { scale, up: upOf(stage).slice([[0, WIDTH], half]), down: downOf(stage).slice([half]) };
      return [{ shared, stages: [own] }, x, t];
    };
    const spec = {
      shared: [],
      stages: [{ scale: "pipeline", up: ["pipeline", "tensor"], down: ["pipeline", "tensor"] }],
    };
    const on = { mesh: mesh({ pipeline: stages, tensor: tensors }), in: [spec, [], []], out: [[], spec] };
    const { results } = onDevices(fn as never, on, argsOf);

    const wholeOf = (p: { shared: Shared; stages: readonly Wide[] }): Tensor => {
      const mlp = (h: Tensor, { scale: s, up, down }: Wide): Tensor => h.add(h.mul(s).matmul(up).gelu().matmul(down));
      return model.last(p.shared, p.stages.reduce(mlp, model.first(p.shared, x, t)), x, t);
    };
    const all = { shared, stages: [0, 1].map((i) => ({ scale, up: upOf(i), down: downOf(i) })) };
    const [value, g] = valueAndGrad(wholeOf)(all);
    const close = (found: unknown, wanted: Tensor): void => {
      const numbers = wanted.reshape([wanted.elements]).toArray() as number[];
      expect([...(found as Float64Array)].map((n, i) => Math.abs(n - (numbers[i] as number)) < 1e-5)).toEqual(
        numbers.map(() => true),
      );
    };
    for (const [rank, own] of results.entries()) {
      const [stage, part] = [Math.floor(rank / tensors), rank % tensors];
      const half = [part * (hidden / tensors), (part + 1) * (hidden / tensors)] as const;
      const mine = g.stages[stage] as Wide;
      close(own[0], value);
      close(own[1], g.shared.table);
      close(own[2], g.shared.out);
      close(own[3], mine.scale);
      close(own[4], mine.up.slice([[0, WIDTH], half]));
      close(own[5], mine.down.slice([half]));
    }
  });

  it.each(SCHEDULES)(
    "%s has stages whose parameters get no gradient, and that hand on what they are given",
    (schedule) => {
      const chunks = schedule === "interleaved" ? 2 : 1;
      const loss = pipeline(
        { ...model, stage: (_own: Own, x: Tensor) => x },
        { over: "pipeline", microbatches: 2, schedule, chunks },
      );
      const fn = (own: { shared: Shared; stages: readonly Own[] }, x: Tensor, t: Tensor) => {
        const [value, g] = loss.valueAndGrad(own, x, t);
        return [value, g.shared, g.stages];
      };
      const spec = { shared: [], stages: "pipeline" };
      const on = { mesh: mesh({ pipeline: 2 }), in: [spec, [], []], out: [[], [], "pipeline"] };
      const argsOf = (rank: number) => [
        { shared, stages: Array.from({ length: chunks }, (_, c) => ownOf(2 * c + rank)) },
        ...batchOf(4),
      ];
      const [x, t] = batchOf(4);
      const [value, g] = valueAndGrad((p: Shared) => model.last(p, model.first(p, x, t), x, t))(shared);
      for (const [found, table, out, ...own] of onDevices(fn as never, on, argsOf).results) {
        expect(found?.[0]).toBeCloseTo(value.item(), 6);
        for (const [got, wanted] of [
          [table, g.table],
          [out, g.out],
        ] as const)
          expect([...(got ?? [])].map((n, i) => Math.abs(n - (wanted.data()[i] as number)) < 1e-6)).not.toContain(
            false,
          );
        expect(own.flatMap((data) => [...data]).every((n) => n === 0)).toBe(true);
      }
    },
  );

  it("refuses stages of a device that are not alike", () => {
    const loss = pipeline(model, { over: "pipeline", microbatches: 2, schedule: "interleaved", chunks: 2 });
    const on = { mesh: mesh({ pipeline: 1 }), in: [{ shared: [], stages: "pipeline" }, [], []], out: "pipeline" };
    const run = (second: object) =>
      shard((p: never, a: Tensor, b: Tensor) => loss.valueAndGrad(p, a, b)[0], on)(
        { shared, stages: [ownOf(0), second] } as never,
        ...batchOf(4),
      );
    const { a, b } = ownOf(1);
    expect(() => run({ a, b: b.slice([[0, 1]]) })).toThrow("stages[1] has other parameters than stages[0]");
    // members in another order would be taken one for the other
    expect(() => run({ b, a })).toThrow("stages[1] has other parameters than stages[0]");
  });

  it("says what is wrong", () => {
    const given = { over: "pipeline", microbatches: 2 };
    const run = (m: typeof model, options: PipelineOptions, rows = 4) => {
      const loss = pipeline(m, options);
      const on = { mesh: mesh({ pipeline: 1 }), in: [{ shared: [], stages: "pipeline" }, [], []], out: "pipeline" };
      return shard((p: never, a: Tensor, b: Tensor) => loss.valueAndGrad(p, a, b)[0], on)(
        { shared, stages: [ownOf(0)] } as never,
        ...batchOf(rows),
      );
    };
    expect(() => run(model, given, 3)).toThrow("a batch f32[3,2] in 2 microbatches");
    expect(() => run({ ...model, stage: (_, x) => x.sum(0) }, given)).toThrow("a stage gives f32[3]");
    expect(() => run(model, { ...given, microbatches: 0 })).toThrow("microbatches is 0");
    expect(() => run(model, { ...given, over: "data" })).toThrow("the mesh has no axis data");
    expect(() => run(model, { ...given, schedule: "interleaved", chunks: 2 })).toThrow(
      "parameters of 1 stage of a device, with 2 chunks",
    );
    const ending = (last: (y: Tensor) => unknown) => ({ ...model, last: (_: Shared, y: Tensor) => last(y) as Tensor });
    expect(() =>
      run(
        ending((y) => y.mean().cast("bf16")),
        given,
      ),
    ).toThrow(
      /pipeline: the loss is bf16\[\], and devices add up losses of f32 and f64\s[\s\S]*help: cast it: loss.cast\("f32"\)/,
    );
    expect(() =>
      run(
        ending((y) => y.mean(0)),
        given,
      ),
    ).toThrow("last gives a loss of the type f32[3], not a scalar");
    expect(() =>
      run(
        ending((y) => y.sum().cast("i32")),
        given,
      ),
    ).toThrow("last gives a loss of the type i32[]");
    expect(() =>
      run(
        ending(() => 3),
        given,
      ),
    ).toThrow("pipeline: last gives no tensor");
    expect(() => pipeline({ ...model, last: undefined } as never, given)).toThrow("pipeline: last");
    // stages that are said to be equal would be given the sum of all their gradients
    const loss = pipeline(model, given);
    const sharing = (spec: object | string, rows: readonly string[] | string) =>
      shard((p: never, a: Tensor, b: Tensor) => loss.valueAndGrad(p, a, b)[0], {
        ...{ mesh: mesh({ pipeline: 2 }), in: [spec, rows, rows], out: "pipeline" },
      } as never)({ shared, stages: [ownOf(0)] } as never, ...batchOf(4));
    expect(() => sharing([], [])).toThrow(
      /parameters of stages are equal on all devices along pipeline\s[\s\S]*help: .*params: \{ shared: \[\], stages: "pipeline" \}/,
    );
    expect(() => sharing({ shared: [], stages: "pipeline" }, "pipeline")).toThrow(
      "the batch f32[4,2]{pipeline} differs along pipeline, whose devices work on the same rows",
    );
    const train = (more: object) =>
      dataParallel(pipeline(model, given), sgd({ lr: 1 }), { mesh: mesh({ pipeline: 1 }), over: [], ...more });
    expect(() => train({ zero: 3 })).toThrow(
      "zero is 3, and a pipeline reads its parameters from the first slot to the last",
    );
    expect(() => train({ microbatches: 2 })).toThrow("2 microbatches of a pipeline");
  });
});
