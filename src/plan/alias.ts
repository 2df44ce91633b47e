/**
 * @file Decides which values share storage: merges values into buffers, in three phases:
 *
 *   1. alias steps: renamed values are one storage by definition (liveness.ts)
 *   2. slots: the result that replaces a donated parameter is stored over it, if the parameter's content is dead when the
 *      result is written, or dies in that step and the step allows it. Otherwise a final copy is needed (copies.ts)
 *   3. in place: a written value takes over the storage of a value that the step reads for the last time
 *
 * A buffer under construction is a list of storages whose lifespans follow each other. Two neighbours may touch in one
 * step: the step reads one for the last time and writes the other, and declares that they may share storage.
 *
 *       step   0   1   2   3   4   5   6
 *       p      ████████████████            p's last reader is step 3 …
 *       t                  ████████████    … which writes t over p: [p, t] is in its inPlace list
 *       r                          ████    and step 5 writes r over t. r replaces p: it ends in p's slot
 *       buffer ████████████████████████
 *
 * Invariant: in every buffer, sorted by start, lifespans are disjoint except for such permitted touches. Near-linear:
 * joining compares two storages, except for buffers of donated parameters, which are compared in full.
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { assembleProblem, type BufferGroup, type BufferGroups } from "./assemble.ts";
import { type Storage, type Storages, storagesOf } from "./liveness.ts";
import type { Assignment } from "./problem.ts";
import { needsSlot, type PlanStep, type Program, replacementOf, returnStepOf } from "./program.ts";

type GrowingGroup = { -readonly [K in keyof BufferGroup]: BufferGroup[K] } & { storages: Storage[] };

/**
 * Decides which values share buffers; addresses come later.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { assignBuffers } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(assignBuffers(plan.program).problem.buffers.length); // → 6
 */
export function assignBuffers(program: Program, capacity: number = Number.POSITIVE_INFINITY): Assignment {
  const storages = storagesOf(program);
  return assembleProblem(program, storages, groupStorages(program, storages), capacity);
}

/** Phases 2 and 3. */
function groupStorages(program: Program, storages: Storages): BufferGroups {
  const groups: GrowingGroup[] = storages.all.map((storage) => ({
    storages: [storage],
    wholeRun: storage.isParam && needsSlot(program, at(storage.values, 0)),
    filledByCopy: false,
  }));
  const groupOf = ({ id }: Storage): GrowingGroup => groups[id] as GrowingGroup;
  /** Merges `b`, usually the smaller one, into `a`. */
  const join = (a: GrowingGroup, b: GrowingGroup): void => {
    for (const storage of b.storages) groups[storage.id] = a;
    const inSequence = at(a.storages, a.storages.length - 1).lifespan.start < at(b.storages, 0).lifespan.start;
    if (inSequence) a.storages.push(...b.storages);
    else a.storages = merged(a.storages, b.storages);
    a.wholeRun ||= b.wholeRun;
    a.filledByCopy ||= b.filledByCopy;
  };
  const canJoin = (a: BufferGroup, b: BufferGroup): boolean => mayJoin(program, storages, a, b);

  const pending: Value[] = [];
  for (const param of program.params) {
    const result = replacementOf(program, param);
    if (!result) continue;
    const [slot, replacing] = [groupOf(storages.of(param)), groupOf(storages.of(result))];
    if (replacing === slot) continue;
    if (canJoin(slot, replacing)) {
      join(slot, replacing);
    } else {
      slot.filledByCopy = true;
      pending.push(param);
    }
  }

  const inPlace = new Map<Value, Value>();
  /** Whether `written` already shares, or can now share, a buffer with `read`, which dies in the step. */
  const takesOver = (written: Storage, read: Storage): boolean => {
    if (!mayTouch(program.steps, storages, read, written)) return false;
    const [into, from] = [groupOf(read), groupOf(written)];
    if (into !== from && !canJoin(into, from)) return false;
    if (into !== from) join(into, from);
    return true;
  };
  for (const step of program.steps) {
    if (step.inPlace.length === 0) continue;
    for (const written of step.writes) {
      const storage = storages.of(written);
      const candidates = step.inPlace.filter(([, w]) => w === written);
      const isFree = ([read]: readonly [Value, Value]): boolean => groupOf(storages.of(read)).wholeRun;
      // Storage that exists for the whole run costs nothing to write into: those candidates first.
      const sorted = candidates.length < 2 ? candidates : partition(candidates, isFree);
      const taken = sorted.find(([read]) => takesOver(storage, storages.of(read)));
      if (taken) inPlace.set(written, taken[0]);
    }
  }
  return { of: groupOf, inPlace, pending };
}

/** Whether two buffers can be one: of one space, all lifespans disjoint but for permitted touches, and no final copy in between. */
function mayJoin(program: Program, storages: Storages, a: BufferGroup, b: BufferGroup): boolean {
  if (at(a.storages, 0).space !== at(b.storages, 0).space) return false;
  // Two parameters are both live before the first step.
  if (at(a.storages, 0).isParam && at(b.storages, 0).isParam) return false;
  const neededAtReturn = (group: BufferGroup) => group.storages.some((s) => s.lifespan.end > returnStepOf(program));
  if ((a.filledByCopy && neededAtReturn(b)) || (b.filledByCopy && neededAtReturn(a))) return false;
  const compatible = (earlier: Storage, later: Storage): boolean =>
    earlier.lifespan.end <= later.lifespan.start || mayTouch(program.steps, storages, earlier, later);
  // One ends before the other begins: only the boundary needs a check.
  const last = at(a.storages, a.storages.length - 1);
  const next = at(b.storages, 0);
  if (last.lifespan.end - 1 <= next.lifespan.start) return compatible(last, next);
  const all = merged(a.storages, b.storages);
  // Neighbours suffice: x and z with y between could only meet in y's first step, where y would have to be read.
  return all.every((storage, i) => {
    const following = all[i + 1];
    return following === undefined || compatible(storage, following);
  });
}

/**
 * Whether `earlier` dies in the step that writes `later`, and that step may write it over: every name under which the
 * step reads the earlier storage must be allowed to share with what it writes.
 */
function mayTouch(steps: readonly PlanStep[], storages: Storages, earlier: Storage, later: Storage): boolean {
  const step = steps[later.lifespan.start];
  if (earlier.lifespan.end - 1 !== later.lifespan.start || later.isParam || !step) return false;
  const written = at(later.values, 0);
  let isRead = false;
  for (const value of step.reads) {
    if (storages.of(value) !== earlier) continue;
    isRead = true;
    if (!step.inPlace.some(([r, w]) => r === value && w === written)) return false;
  }
  return isRead;
}

/** The items that pass the test, then the others, each in their original order. */
function partition<T>(items: readonly T[], test: (item: T) => boolean): readonly T[] {
  return [...items.filter(test), ...items.filter((item) => !test(item))];
}

/** Two lists sorted by start, then id, as one. */
function merged(a: readonly Storage[], b: readonly Storage[]): Storage[] {
  return [...a, ...b].sort((x, y) => x.lifespan.start - y.lifespan.start || x.id - y.id);
}
