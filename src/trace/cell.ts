/**
 * @file The current value of a traced tensor. Graphs never change a value; users may change a tensor. So a tensor holds a
 * cell, and the cell holds its current value: changing the tensor puts another value into the cell. The graph sees versions, each made from the one before:
 *
 *   x.setAt(0, a); x.setAt(1, b)          x₁ = slice_update(x₀, a)     x₂ = slice_update(x₁, b)
 *
 * Views (reshape, transpose, slice …) share the elements of their base. A view's cell remembers how it was made, so that
 * it can be recomputed from the base's current value, and written back into it:
 *
 *              write: base' = view.write(base, value), and so on down to the root
 *   root ◄──── view ◄──── view
 *        ────►      ────► read: recomputed when the root has a newer version
 *
 * Invariant: only roots have a version; a view's value is right when it carries the root's version. Derivatives, passes
 * and the planner see only graphs.
 */
import { invariant } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { AnyOp, Attrs, ViewRule } from "../ir/op.ts";
import { sameType } from "../ir/type.ts";
import { apply } from "../ops/define.ts";
import { add } from "../ops/elementwise.ts";

export interface Root {
  readonly kind: "root";
  /** Captured from outside of the trace, which cannot change it. */
  readonly origin: "own" | "captured";
  value: Value;
  /** Changes so far. */
  version: number;
  /** The user's line of the last change. */
  changedAt: string | undefined;
}

export interface View {
  readonly kind: "view";
  readonly base: Cell;
  readonly op: AnyOp;
  readonly attrs: Attrs;
  /** The user's line that made it. */
  readonly where: string | undefined;
  value: Value;
  /** The root's, when the value was made. */
  version: number;
}

export type Cell = Root | View;

export function newRoot(value: Value, origin: Root["origin"] = "own"): Root {
  return { kind: "root", origin, value, version: 0, changedAt: undefined };
}

/** The cell of what a view operation made. */
export function newView(shown: Omit<View, "kind" | "version">): View {
  return { kind: "view", ...shown, version: rootOf(shown.base).version };
}

export function rootOf(cell: Cell): Root {
  let at = cell;
  while (at.kind === "view") at = at.base;
  return at;
}

/** Whether a view on the way to the root shows elements more than once. */
export function isRepeated(cell: Cell): boolean {
  return viewsOf(cell).some((view) => ruleOf(view).write === null);
}

/** The views from a cell down to its root, the cell itself first. Loops, not recursion: views may be many thousand deep. */
function viewsOf(cell: Cell): readonly View[] {
  const views: View[] = [];
  for (let at = cell; at.kind === "view"; at = at.base) views.push(at);
  return views;
}

function ruleOf({ op }: View): ViewRule<Attrs> {
  const { view } = op as { readonly view?: ViewRule<Attrs> };
  invariant(view, () => `${op.name} is not a view`);
  return view;
}

/** The value of the day. */
export function currentValue(b: Build, cell: Cell): Value {
  const { version } = rootOf(cell);
  const stale: View[] = [];
  for (let at = cell; at.kind === "view" && at.version !== version; at = at.base) stale.push(at);
  for (const view of stale.reverse()) {
    view.value = b.call(view.op, [view.base.value], view.attrs, { where: view.where });
    view.version = version;
  }
  return cell.value;
}

function writeRoot(root: Root, value: Value, where: string | undefined): void {
  root.value = value;
  root.version += 1;
  root.changedAt = where;
}

/** Makes a cell stand for another value, and with it all that shares its elements. */
export function writeCell(b: Build, cell: Cell, value: Value, where: string | undefined): void {
  invariant(sameType(cell.value.type, value.type), () => "a tensor keeps its type");
  const views = viewsOf(cell);
  at(b, where, () => views[0] && currentValue(b, views[0].base));
  const written: Value[] = [];
  let next = value;
  for (const view of views) {
    const { write } = ruleOf(view);
    invariant(write, () => `${view.op.name} cannot be written to`);
    const now = next;
    written.push(now);
    next = at(b, where, () => write(b, view.base.value, now, view.attrs));
  }
  const root = rootOf(cell);
  writeRoot(root, next, where);
  views.forEach((view, i) => {
    view.value = written[i] as Value;
    view.version = root.version;
  });
}

/**
 * Adds to a cell. Through views that show everything the addend is brought to the base; a slice has an operation for it,
 * whose derivative with respect to the base is the identity (that of a write of a sum is not).
 */
export function addToCell(b: Build, cell: Cell, delta: Value, where: string | undefined): void {
  if (cell.kind === "view") currentValue(b, cell.base);
  let addend = delta;
  let here = cell;
  for (; here.kind === "view"; here = here.base) {
    const { base, attrs, op } = here;
    const { write, add: addition } = ruleOf(here);
    invariant(write, () => `${op.name} cannot be written to`);
    const made = at(b, where, () => (addition ?? write)(b, base.value, addend, attrs));
    if (addition) {
      writeCell(b, base, made, where);
      return;
    }
    addend = made;
  }
  const root = here;
  const sum = at(b, where, () => apply(b, add, root.value, addend));
  writeRoot(root, sum, where);
}

/** Runs `body` with its nodes attributed to a line. */
function at<T>(b: Build, where: string | undefined, body: () => T): T {
  const before = b.where;
  b.where = where;
  try {
    return body();
  } finally {
    b.where = before;
  }
}
