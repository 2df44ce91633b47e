/**
 * @file The result of a plan in one sentence, for people who have not learned the words of the tiles:
 *
 *   25.3 MiB instead of 57.1: 2.3 times less, for 16 % more time.
 */
import { formatBytes } from "../base/bytes.ts";
import { grouped } from "../base/errors.ts";
import type { StoredFigures, ViewEntry } from "./data.ts";

/** `25.3 MiB instead of 57.1`: the unit once, where it is the same. */
export function bytesInstead(bytes: number, other: number): string {
  const [mine, theirs] = [formatBytes(bytes), formatBytes(other)];
  const [, unit] = mine.split(" ");
  const [number, otherUnit] = theirs.split(" ");
  return `${mine} instead of ${unit === otherUnit ? number : theirs}`;
}

const percent = (share: number): string => {
  const rounded = share * 100 < 9.5 ? Number((share * 100).toFixed(1)) : Math.round(share * 100);
  return `${grouped(rounded)} %`;
};

const times = (ratio: number): string =>
  ratio < 9.95 ? ratio.toFixed(1).replace(/\.0$/, "") : grouped(Math.round(ratio));

/** `2.3 times less`, `8 % less`, `8 % more`. */
export function lessText(bytes: number, other: number): string {
  if (bytes === other) return "the same";
  const ratio = Math.max(bytes, other) / Math.max(1, Math.min(bytes, other));
  const word = bytes < other ? "less" : "more";
  if (ratio >= 1.45) return `${times(ratio)} times ${word}`;
  return `${percent(Math.abs(1 - bytes / other))} ${word}`;
}

/** `for 16 % more time`, `for 2.4 times the time`, `in the same time`, `in 3 % less time`. */
export function timeText(ms: number, other: number): string {
  const ratio = ms / Math.max(1e-12, other);
  if (Math.abs(ratio - 1) < 0.0005) return "in the same time";
  if (ratio >= 1.95) return `for ${times(ratio)} times the time`;
  return ratio > 1 ? `for ${percent(ratio - 1)} more time` : `in ${percent(1 - ratio)} less time`;
}

export interface SentenceInput {
  readonly entry: ViewEntry;
  /** Of the plan with everything stored. */
  readonly stored: StoredFigures | null;
  /** Bytes of the smallest plan, once that is known. */
  readonly leastBytes: number | null;
  /** A budget for which there was no plan; another plan is shown. */
  readonly refusedBytes: number | null;
}

/** A headline, and what else is worth saying. */
export interface Sentence {
  readonly main: string;
  readonly rest: string;
}

export function sentenceOf(input: SentenceInput): Sentence {
  const { entry, stored, refusedBytes, leastBytes } = input;
  const { picture } = entry;
  if (picture.source !== "plan") {
    const range = formatBytes(picture.heightBytes);
    return { main: `At most ${formatBytes(picture.boundBytes)} live at once, in ${range} of addresses.`, rest: "" };
  }
  const loops = (entry.loops ?? []).map((form) => `${loopSentence(form)}.`).join(" ");
  const shown = resultText(input);
  if (refusedBytes === null) return { main: shown, rest: [budgetText(input), loops].filter(Boolean).join(" ") };
  const smallest = leastBytes === null ? "" : `: the smallest plan takes ${formatBytes(leastBytes)}`;
  const main = `No plan fits ${formatBytes(refusedBytes)}${smallest}.`;
  return { main, rest: `Shown is the previous plan: ${stored ? shown : formatBytes(picture.heightBytes)}` };
}

/** `64 iterations: 8 states` as a sentence. */
function loopSentence(form: string): string {
  const [, count, iterations, most = "", kept] =
    /^(?:(\d+) × )?(?:(\d+) iterations|while( of \d+ at most)?): (.*)$/.exec(form) ?? [];
  if (kept === undefined) return form;
  const loops = iterations === undefined ? `while loop${count ? "s" : ""}${most}` : `loop${count ? "s" : ""}`;
  const of = iterations === undefined ? "" : ` of ${grouped(Number(iterations))} iterations`;
  const what = kept === "rows" ? "the rows of every iteration" : kept;
  return count ? `${count} ${loops}${of} keep ${what}` : `A ${loops}${of} keeps ${what}`;
}

const recomputes = ({ picture }: ViewEntry): boolean => picture.steps.some((step) => step.again);

function resultText({ entry, stored }: SentenceInput): string {
  const bytes = entry.picture.heightBytes;
  if (!stored) return `${formatBytes(bytes)} in one arena${recomputes(entry) ? ", with values recomputed" : ""}.`;
  if (bytes >= stored.arenaBytes) return `${formatBytes(bytes)} with everything stored: nothing is recomputed.`;
  const time = entry.predictedMs === null ? "" : `, ${timeText(entry.predictedMs, stored.predictedMs)}`;
  const less = lessText(bytes, stored.arenaBytes);
  return `${bytesInstead(bytes, stored.arenaBytes)}: ${less}${time}.`;
}

/** How the plan relates to its budget and to the smallest plan. */
function budgetText({ entry, stored, leastBytes }: SentenceInput): string {
  const { heightBytes } = entry.picture;
  const { budgetBytes } = entry;
  const saved = stored !== null && heightBytes < stored.arenaBytes;
  if (leastBytes !== null && heightBytes <= leastBytes && saved) return "No smaller plan was found.";
  const least = leastBytes === null ? "" : ` A budget can go down to ${formatBytes(leastBytes)}.`;
  if (budgetBytes === null) return least.trim();
  return `It fits the budget of ${formatBytes(budgetBytes)}.${least}`;
}

/** Two plans, the smaller one by the larger one. */
export function comparisonOf(a: ViewEntry, b: ViewEntry): string {
  const isFirst = a.picture.heightBytes <= b.picture.heightBytes;
  const [small, large] = isFirst ? [a, b] : [b, a];
  const [name, other] = isFirst ? ["A", "B"] : ["B", "A"];
  const [bytes, more] = [small.picture.heightBytes, large.picture.heightBytes];
  const { predictedMs: ms } = small;
  const time = ms !== null && large.predictedMs !== null ? timeText(ms, large.predictedMs) : "";
  if (bytes === more) return `A and B both take ${formatBytes(bytes)}${time ? `; A runs ${time}` : ""}.`;
  const cost = time ? `, ${time}` : "";
  return `${name} takes ${bytesInstead(bytes, more)} of ${other}: ${lessText(bytes, more)}${cost}.`;
}
