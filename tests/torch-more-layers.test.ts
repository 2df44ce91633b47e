/** @file Stacked and bidirectional cells, instance normalisation and bags of vectors against PyTorch (tests/fixtures/torch/more-layers.py). */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { stack, type Tensor, tensor } from "../src/api/index.ts";
import * as nn from "../src/nn/index.ts";

interface Recorded {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

type RecordedCell = Readonly<Record<"wx" | "wh" | "b", Recorded>>;

const fixture = JSON.parse(readFileSync(new URL("./fixtures/torch/more-layers.json", import.meta.url), "utf8")) as {
  readonly x: Recorded;
  readonly bidirectional: Readonly<Record<"forward" | "backward", RecordedCell>> &
    Readonly<Record<"outputs" | "last", Recorded>>;
  readonly stacked: { readonly cells: readonly [RecordedCell, RecordedCell] } & Readonly<
    Record<"outputs" | "last", Recorded>
  >;
  readonly instanceNorm: Readonly<Record<"image" | "scale" | "offset" | "y", Recorded>>;
  readonly embeddingBag: Readonly<Record<"table" | nn.BagMode, Recorded>>;
};

const made = ({ shape, data }: Recorded): Tensor => tensor(data, { shape, dtype: "f64" });
const cellOf = ({ wx, wh, b }: RecordedCell): nn.LstmParams => ({ wx: made(wx), wh: made(wh), b: made(b) });

function expectClose(found: Tensor, { shape, data }: Recorded): void {
  expect(found.shape).toEqual(shape);
  const elements = found.data();
  expect(Math.max(...data.map((v, i) => Math.abs(v - elements[i]!)))).toBeLessThan(1e-12);
}

const f64 = { dtype: "f64" } as const;

describe("layers follow PyTorch", () => {
  const x = made(fixture.x);

  it("cells that read from both ends", () => {
    const { forward, backward, outputs, last } = fixture.bidirectional;
    const layer = nn.bidirectional(nn.lstmCell(3, 2, f64));
    const found = layer.apply({ forward: cellOf(forward), backward: cellOf(backward) }, x);
    expectClose(found.outputs, outputs);
    expectClose(stack([found.state.forward.h, found.state.backward.h]), last);
  });

  it("cells on top of each other", () => {
    const { cells, outputs, last } = fixture.stacked;
    const cell = nn.stackedCell(nn.lstmCell(3, 2, f64), nn.lstmCell(2, 2, f64));
    const params = [cellOf(cells[0]), cellOf(cells[1])] as const;
    const found = nn.scanCell(cell, params, x);
    expectClose(found.outputs, outputs);
    expectClose(stack(found.state.map(({ h }) => h)), last);
    expectClose(stack(nn.unroll(cell, params, x).outputs, 1), outputs);
  });

  it("instance normalisation", () => {
    const { image, scale, offset, y } = fixture.instanceNorm;
    const params = { scale: made(scale), offset: made(offset) };
    expectClose(nn.instanceNorm(3, f64).apply(params, made(image)), y);
  });

  it.each(["sum", "mean", "max"] as const)("bags of vectors: %s", (mode) => {
    const ids = tensor([
      [0, 2, 2],
      [4, 1, 0],
    ]).cast("i32");
    expectClose(
      nn.embeddingBag(5, 3, { mode, ...f64 }).apply({ table: made(fixture.embeddingBag.table) }, ids),
      fixture.embeddingBag[mode],
    );
  });
});
