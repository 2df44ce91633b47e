/**
 * @file A plan as a picture. The page distinguishes more kinds than a plan does, by readers:
 *
 *   kept         computed in the forward pass, read in the backward pass
 *   forward      computed in the forward pass and read only there
 *   recomputed   a recomputed value
 */
import type { PlanJson } from "../plan/json.ts";
import {
  type Picture,
  type PictureSpace,
  type PictureStep,
  type PictureValue,
  VIEW_KINDS,
  type ViewKind,
} from "./picture.ts";

/** Phases that come after the forward pass. */
const LATER: ReadonlySet<string> = new Set(["backward", "update"]);

/** The picture of a plan; its indices must be valid. */
export function pictureOfPlan(plan: PlanJson): Picture {
  const written = new Map<number, number>();
  plan.steps.forEach(({ writes }, s) => {
    for (const v of writes) written.set(v, s);
  });
  const kinds = kindsOf(plan, written);
  const { buffers } = plan;
  const spaces = spacesOf(plan);
  const base = (space = 0): number => spaces?.[space]?.from ?? 0;
  return {
    name: plan.name,
    source: "plan",
    ...(spaces ? { spaces } : {}),
    heightBytes: plan.heightBytes,
    boundBytes: plan.boundBytes,
    boundStep: plan.boundStep,
    budgetBytes: plan.budgetBytes,
    alignment: plan.alignment,
    strategy: plan.strategy,
    columns: plan.steps.length + 1,
    rects: {
      start: buffers.map((b) => b.start),
      end: buffers.map((b) => b.end),
      from: buffers.map((b) => base(b.space) + b.offset),
      bytes: buffers.map((b) => b.bytes),
      kind: kinds.map((kind) => VIEW_KINDS.indexOf(kind)),
      ...(spaces ? { space: buffers.map((b) => b.space ?? 0) } : {}),
    },
    values: plan.values.map(
      ({ name, type, buffer, over, story }, v): PictureValue => ({
        ...{ name, type, rect: buffer, over, written: written.get(v) ?? null, story: story ?? [] },
      }),
    ),
    steps: plan.steps.map(
      ({
        text,
        kernel,
        phase,
        where,
        reads,
        writes,
        scratch,
        alias,
        bodies,
        strips,
        copy,
        exchange,
        queue = 0,
      }): PictureStep => ({
        ...{ phase, where, reads, writes, scratch, alias },
        text: kernel === undefined ? text : `${kernel} · ${text}`,
        again: writes.some((v) => plan.values[v]?.again === true),
        bodies: (bodies ?? []).map(pictureOfPlan),
        ...(strips ? { strips: { count: strips.strips, rows: strips.rows } } : {}),
        ...(copy ? { copy: { kind: copy.kind, queue, other: copy.other } } : {}),
        ...(exchange ? { exchange: { ...exchange, queue } } : {}),
      }),
    ),
  };
}

/** Memory spaces on top of each other; undefined if there is only one. */
function spacesOf({ spaces }: PlanJson): readonly PictureSpace[] | undefined {
  if (!spaces || spaces.length < 2) return undefined;
  let from = 0;
  return spaces.map(({ name, heightBytes, boundBytes, capacityBytes }) => {
    const space = { name, from, heightBytes, boundBytes, capacityBytes };
    from += heightBytes;
    return space;
  });
}

/** Per buffer. */
function kindsOf(plan: PlanJson, written: ReadonlyMap<number, number>): readonly ViewKind[] {
  const phaseOf = (v: number): string | undefined => plan.steps[written.get(v) ?? -1]?.phase;
  const readLater = new Set<number>();
  for (const { phase, reads } of plan.steps) if (LATER.has(phase)) for (const v of reads) readLater.add(v);
  return plan.buffers.map(({ kind, values }): ViewKind => {
    if (kind !== "activation" && kind !== "gradient") return kind;
    // The first value decides: later ones took over its storage.
    if (plan.values[values[0] ?? -1]?.again === true) return "recomputed";
    if (kind === "gradient") return "gradient";
    const kept = values.some((v) => readLater.has(v) && !LATER.has(phaseOf(v) ?? ""));
    return kept ? "kept" : "forward";
  });
}
