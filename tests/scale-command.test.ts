/** @file `tidemark scale`: what it finds, and what it refuses. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { archive, named } from "./pt2/archive.ts";
import { tidemark } from "./support/command.ts";

const folder = mkdtempSync(join(tmpdir(), "tidemark-scale-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("scale", () => {
  const config = join(folder, "config.json");
  const llama = { model_type: "llama", hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32 };
  writeFileSync(config, JSON.stringify({ ...llama, intermediate_size: 11008, vocab_size: 32000 }));

  it("finds the fastest way that fits, and says what a device of each role takes", async () => {
    const { code, out } = await tidemark(
      "scale",
      config,
      "--devices",
      "16",
      "--memory",
      "40GB",
      "--batch",
      "32",
      "--json",
    );
    expect(code).toBe(0);
    const found = JSON.parse(out) as { fits: boolean; bytes: number; devices: number; roles: { terms: object }[] };
    expect(found).toMatchObject({ fits: true, devices: 16 });
    expect(found.bytes).toBeLessThan(40e9);
    expect(found.roles[0]?.terms).toHaveProperty("activations");
  });

  it("says what is wrong with a mesh, and that nothing fits", async () => {
    expect((await tidemark("scale", config, "--mesh", "rows=2")).err).toContain(
      "give extents of data, tensor, pipeline, context",
    );
    expect((await tidemark("scale", config, "--devices", "8", "--mesh", "data=4")).err).toContain(
      "--devices 8 with a mesh of 4",
    );
    expect((await tidemark("scale", config, "--memory", "1GB")).err).toContain(
      "no way of sharing it among these devices fits",
    );
  });

  it("writes a page of the devices side by side, whose terms add up", async () => {
    const page = join(folder, "devices.html");
    const mesh = ["--mesh", "data=2,tensor=2,pipeline=4", "--batch", "16"];
    const { code, err, out } = await tidemark("scale", config, ...mesh, "--html", page, "--json");
    expect([code, err]).toEqual([0, `${page}: open it in a browser\n`]);
    const { roles } = JSON.parse(out) as { roles: { bytes: number }[] };
    const most = Math.max(...roles.map(({ bytes }) => bytes));
    const html = readFileSync(page, "utf8");
    for (const role of ["first stage", "middle stage", "last stage"]) expect(html).toContain(`<b>${role}</b>`);
    const bars = [...html.matchAll(/<div class="bar">.*?<\/div>/g)].map(([bar]) =>
      [...bar.matchAll(/height:([\d.]+)%/g)].reduce((sum, [, height]) => sum + Number(height), 0),
    );
    expect(bars).toHaveLength(3);
    roles.forEach(({ bytes }, i) => {
      expect(bars[i]).toBeCloseTo((100 * bytes) / most / 1.04, 1);
    });
    const missing = join(folder, "nowhere", "devices.html");
    expect((await tidemark("scale", config, ...mesh, "--html", missing)).err).toContain(`cannot write ${missing}`);
  });

  it("has the fields of programs in its JSON, and only ways that no faster one is smaller than", async () => {
    const { out } = await tidemark("scale", config, "--devices", "16", "--batch", "32", "--json");
    const found = JSON.parse(out) as Scaled & { bytes: number };
    expect(found.stepMs).toBeGreaterThan(0);
    expect(found.form).toContain("data");
    expect(Math.abs(sumOf(found.perDeviceBytes) / found.bytes - 1)).toBeLessThan(0.5);
    const bytes = found.points.map((point) => point.bytes);
    expect(bytes).toEqual([...bytes].sort((a, b) => b - a));
    const times = found.points.map(({ stepMs }) => stepMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});

interface Scaled {
  readonly perDeviceBytes: Readonly<Record<string, number>>;
  readonly stepMs: number;
  readonly form: string;
  readonly bytes: number;
  readonly zero: number;
  readonly points: readonly {
    readonly form: string;
    readonly bytes: number;
    readonly stepMs: number;
    readonly arguments?: readonly string[];
  }[];
  readonly why: readonly string[];
}

const sumOf = (bytes: Readonly<Record<string, number>>): number => Object.values(bytes).reduce((a, b) => a + b, 0);

/** What `scale` prints of a program or a file. */
async function scaled(...argv: readonly string[]): Promise<Scaled> {
  const { code, out, err } = await tidemark("scale", ...argv, "--json");
  if (code !== 0) expect.fail(err);
  return JSON.parse(out) as Scaled;
}

describe("scale of a program", () => {
  it("plans a device's step with each stage of ZeRO, and its kinds add up to the arena", async () => {
    const { perDeviceBytes, bytes, points } = await scaled("mlp", "--devices", "8");
    expect(sumOf(perDeviceBytes)).toBe(bytes);
    const forms = points.map(({ form }) => form);
    expect(forms).toEqual(expect.arrayContaining([0, 1, 2, 3].map((zero) => `data=8, ZeRO ${zero}`)));
    const times = points.map(({ stepMs }) => stepMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it("has an eighth of the optimizer's state and of the parameters where they are shared out", async () => {
    const stages = [];
    for (const zero of ["0", "1", "3"]) stages.push(await scaled("cnn", "--mesh", "data=8", "--zero", zero));
    const [all, optimizer, parameters] = stages.map(({ perDeviceBytes }) => perDeviceBytes);
    // parts are whole elements of each tensor, and few of them do not come out even
    expect((optimizer?.optimizer ?? 0) / (all?.optimizer ?? 0)).toBeCloseTo(1 / 8, 4);
    expect(optimizer?.parameters).toBe(all?.parameters);
    expect((parameters?.parameters ?? 0) / (all?.parameters ?? 0)).toBeCloseTo(1 / 8, 4);
  });

  it("tries the axes along which a program can be cut, and spells every form out for bench", async () => {
    const { points, why } = await scaled(
      "gpt",
      "--mesh",
      "pipeline=2,tensor=2",
      "--batch",
      "2",
      "--cores",
      "2",
      "--network",
      "1e9",
    );
    const schedules = ["gpipe", "1f1b", "interleaved in 2 pieces", "zero-bubble"];
    const wanted = schedules.map((name) => `pipeline=2,tensor=2, 2 microbatches, ${name}`);
    expect(points.map(({ form }) => form)).toEqual(expect.arrayContaining(wanted));
    const one = points.find(({ form }) => form === wanted[2]);
    const mesh = ["--mesh", "data=1,pipeline=2,tensor=2", "--zero", "0", "--microbatches", "2"];
    expect(one?.arguments).toEqual([...mesh, "--schedule", "interleaved", "--chunks", "2"]);
    expect(why[0]).toMatch(/^pipeline=2,tensor=2, .* ms, /);
    const { err } = await tidemark("scale", "gpt", "--mesh", "data=16");
    expect(err).toContain("there is no such form of a model with 8 rows, 4 parts along tensor, 4 parts along pipeline");
  });

  it("stays within the memory of a device, or says the least", async () => {
    const { bytes } = await scaled("mlp", "--devices", "2", "--zero", "2", "--memory", "11MB");
    expect(bytes).toBeLessThanOrEqual(11e6);
    const { code, err } = await tidemark(
      ...["scale", "mlp", "--devices", "2", "--zero", "2", "--batch", "2", "--memory", "100KB"],
    );
    expect(code).toBe(1);
    expect(err).toMatch(/PlanInfeasible: scale: the least that a device takes is .* and it has 97.7 KiB/);
  });

  it("reads exported programs, with the batch shared out", async () => {
    const file = join(folder, "line.pt2");
    const meta = { sizes: [64, 32] };
    const linear = { input: named("x"), weight: named("p_w") };
    writeFileSync(
      file,
      archive({
        params: { w: { meta, data: Array.from({ length: 64 * 32 }, () => 0.5) } },
        inputs: { x: { sizes: ["s0", 32] } },
        nodes: [{ target: "linear.default", inputs: linear, outputs: ["y"] }],
        output: "y",
        ranges: { s0: [2, 1024] },
      }),
    );
    const [one, four] = [await scaled(file, "--batch", "512"), await scaled(file, "--devices", "4", "--batch", "512")];
    expect(one.form).toBe("one device");
    expect((one.perDeviceBytes.input ?? 0) / (four.perDeviceBytes.input ?? 0)).toBe(4);
    const { err } = await tidemark("scale", file, "--devices", "4", "--batch", "511");
    expect(err).toContain("--batch 511 on 4 devices");
  });

  it("says which axes and options are for configs, and what a module has to export", async () => {
    expect((await tidemark("scale", "mlp", "--mesh", "data=2,tensor=2")).err).toContain(
      "where a program could be cut along tensor is not known",
    );
    expect((await tidemark("scale", "gpt", "--recompute", "full")).err).toContain("--recompute of a program");
    const module = join(folder, "whole.mjs");
    writeFileSync(
      module,
      "export const program = { name: 'whole', init: () => ({}), batch: () => [], step: (s) => [s, s] };",
    );
    expect((await tidemark("scale", module)).err).toContain("export program.model = { loss, optimizer } as well");
  });
});
