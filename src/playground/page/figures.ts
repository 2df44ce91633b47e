/** @file The figures of a training: tiles, and the hashes of both states. */
import { formatBytes } from "../../base/bytes.ts";
import { grouped } from "../../base/errors.ts";
import { h, replace } from "../../view/page/dom.ts";
import type { State } from "../../view/page/store.ts";
import { slowdownOf } from "../slowdown.ts";
import { timeAround } from "./losses.ts";
import type { Progress } from "./session.ts";

/** A tile: its name in the page's data, its value, its label and what it means. */
interface Tile {
  readonly name: string;
  readonly value: string;
  readonly label?: string;
  readonly means: string;
}

/** The measured time of a step against that with everything stored, with its spread. */
function slowdownTile({ reports, changes }: Progress, again: number): Tile {
  const means =
    "the median of the steps since the plan changed, and the middle half of them; both trainings run in turn";
  const slowdown = slowdownOf(reports, changes.at(-1) ?? 0);
  if (again === 0) return { name: "× stored", value: "1 ×", label: "the stored plan", means };
  if (!slowdown) return { name: "× stored", value: "–", means };
  const { median, low, high } = slowdown;
  const label = `× stored (${low.toFixed(2)} to ${high.toFixed(2)})`;
  return { name: "× stored", value: `${median.toFixed(2)} ×`, label, means };
}

/** The current figures. */
function tilesOf(progress: Progress, { sides }: State): readonly Tile[] {
  const { reports, stored, until } = progress;
  const [{ picture }] = sides;
  const last = reports.at(-1);
  const ms = timeAround(reports, reports.length - 1, "ms");
  const again = picture.steps.filter((step) => step.again).length;
  const goal = until > (last?.step ?? 0) ? { label: `step of ${grouped(until)}` } : {};
  return [
    { name: "step", value: last ? grouped(last.step) : "0", ...goal, means: "batches trained on" },
    { name: "loss", value: last ? last.loss.toPrecision(6) : "–", means: "of the last batch, within the budget" },
    { name: "step time", value: last ? `${ms.toFixed(1)} ms` : "–", means: "the median of the last steps" },
    slowdownTile(progress, again),
    { name: "arena", value: formatBytes(picture.heightBytes), means: "the memory of one step within the budget" },
    { name: "stored arena", value: formatBytes(stored.picture.heightBytes), means: "with everything stored" },
    {
      name: "budget",
      value: picture.budgetBytes === null ? "none" : formatBytes(picture.budgetBytes),
      means: "the limit on the arena that was asked for",
    },
    { name: "recomputed", value: grouped(again), means: "steps that compute a value a second time" },
  ];
}

export function drawTrainFigures(element: HTMLElement, progress: Progress, state: State): void {
  const tiles = tilesOf(progress, state).map(({ name, value, label = name, means }) =>
    h("div", { class: "figure", "data-figure": name, title: means }, h("b", {}, value), h("span", {}, label)),
  );
  replace(element, ...tiles);
}

/** The two hashes, and whether any loss differed so far. */
export function drawHashes(element: HTMLElement, { hashes, reports }: Progress): void {
  if (!hashes) {
    replace(element, h("p", { class: "quiet" }, "SHA-256 of all parameters, of both trainings, every 25 steps."));
    return;
  }
  const same = reports.every(({ loss, storedLoss }) => Object.is(loss, storedLoss));
  const equal = same && hashes.hash === hashes.storedHash;
  const verdict = equal
    ? `the same bits: ${grouped(reports.length)} losses, and all parameters after step ${hashes.step}`
    : "something differs, which is an internal error";
  replace(
    element,
    h(
      "dl",
      { class: "hashes", "data-step": hashes.step },
      ...[h("dt", {}, "stored"), h("dd", { id: "stored-hash" }, hashes.storedHash)],
      ...[h("dt", {}, "budget"), h("dd", { id: "hash" }, hashes.hash)],
    ),
    h("p", { class: `verdict${equal ? "" : " differs"}` }, verdict),
  );
}
