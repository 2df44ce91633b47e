/** @file A recorded snapshot with the same lifetimes at offsets of the planner: what an arena of one block would have taken. */
import { placeGreedily } from "../plan/place/greedy.ts";
import type { Buffer, Problem } from "../plan/problem.ts";
import { type Picture, rectCount } from "./picture.ts";

/** More are not placed: a picture is to be there at once. */
const MOST_PLACED = 50_000;

/** Null where there are too many blocks. */
export function placedByPlanner(picture: Picture, label: string): Picture | null {
  const { rects, boundBytes } = picture;
  const count = rectCount(rects);
  if (count > MOST_PLACED) return null;
  const buffers = Array.from({ length: count }, (_, id): Buffer => {
    const lifespan = { start: rects.start[id] ?? 0, end: rects.end[id] ?? 0 };
    return { id, values: [], lifespan, bytes: rects.bytes[id] ?? 0, align: 1, kind: "activation" };
  });
  const problem: Problem = { buffers, capacity: Number.POSITIVE_INFINITY, alignment: 1 };
  const { offsets, height } = placeGreedily(problem, boundBytes);
  return { ...picture, name: label, heightBytes: height, strategy: "placed", rects: { ...rects, from: [...offsets] } };
}
