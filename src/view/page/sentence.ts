/** @file The result in one sentence, above everything else. */
import { comparisonOf, sentenceOf } from "../sentence.ts";
import { h, replace } from "./dom.ts";
import type { State } from "./store.ts";

export interface SentenceView {
  readonly element: HTMLElement;
  draw(state: State, before: State | null): void;
}

/** The sentences of a state: a headline, and the rest. */
export function sentencesOf(state: State): { readonly main: string; readonly rest: string } {
  const { sides, curve, refusedBytes = null } = state;
  const [{ entry }, other] = sides;
  // Bodies of loops and plans from files have no predicted time, and nothing to be compared with.
  const stored = entry.predictedMs === null ? null : (entry.stored ?? curve?.points[0] ?? null);
  const whole = curve?.whole === true && entry.predictedMs !== null;
  const leastBytes = whole ? Math.min(...curve.points.map((p) => p.arenaBytes)) : null;
  const single = sentenceOf({ entry, stored, leastBytes, refusedBytes });
  if (!other) return single;
  return { main: comparisonOf(entry, other.entry), rest: `A is ${entry.label}, B is ${other.entry.label}.` };
}

export function sentenceView(): SentenceView {
  const element = h("p", { class: "sentence", role: "status" });
  return {
    element,
    draw(state, before) {
      const same = before && before.sides === state.sides && before.curve === state.curve;
      if (same && before.refusedBytes === state.refusedBytes && before.busy === state.busy) return;
      const { main, rest } = sentencesOf(state);
      replace(element, h("b", {}, main), rest === "" ? null : ` ${rest}`, state.busy ? " Planning …" : null);
    },
  };
}
