/**
 * @file A `rewind` differentiated once more. Where its back is the transposed derivative of its step, it is the transpose
 * of a loop L that carries tangents forward, c₀, ċ₀ → ċ (and constants alike):
 *
 *   a₀ = Lᵀ a   and   ⟨v, Lᵀ a⟩ = ⟨L v, a⟩          so its reverse at v is the gradient of ⟨L(c₀, v), a⟩ by c₀, and L v by a
 *
 * which is a forward loop and its rewind: a small multiple of the loop's iterations. Otherwise (forward mode came in between,
 * or a rule has no forward mode) it is expanded into the two nested loops that define it, which takes the square of that:
 *
 *   while j > 0:   j = j - 1;   c = c₀;   while p < j: c = step(p, c), p = p + 1;   a = back(j, c, a)
 */
import { at, invariant } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Reversal } from "../ir/control.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { allNodes } from "../ir/walk.ts";
import { full } from "../ops/create.ts";
import { apply } from "../ops/define.ts";
import { add, lt, sub } from "../ops/elementwise.ts";
import { whileLoop } from "../ops/loops.ts";
import { INDEX } from "../ops/region-checks.ts";
import type { RewindAttrs } from "../ops/rewind.ts";
import { regionRule } from "./region.ts";

const number = (b: Build, value: number): Value => b.call(full, [], { ...INDEX, value });

const paramsLike = (b: Build, values: readonly Value[]): readonly Value[] =>
  values.map((value) => b.param(value.type, value.name));

/** A test of a counter against another number, both among the parameters. */
function testOf(
  types: readonly Value[],
  smaller: (params: readonly Value[], b: Build) => readonly [Value, Value],
): Graph {
  const b = new Build("test");
  const params = paramsLike(b, types);
  const [small, large] = smaller(params, b);
  return b.finish([apply(b, lt, small, large)]);
}

/** p, c… | goal, k…  →  p + 1, step(p, c…, k…) */
function advanceBody(step: Graph, inputs: readonly Value[], carries: number): Graph {
  const b = new Build("advance");
  b.param(INDEX, "i");
  const [p, ...rest] = paramsLike(b, inputs);
  invariant(p, () => "advance has no counter");
  const made = b.inline(step, [p, ...rest.slice(0, carries), ...rest.slice(carries + 1)]);
  return b.finish([apply(b, add, p, number(b, 1)), ...made]);
}

/** Whether a rewind is known to be the transpose of a loop of tangents, and that loop can be made. */
export function isTranspose(node: Node, { isRecorded, adjoints, xs, ws, step }: Reversal): boolean {
  const { wrt } = node.attrs as RewindAttrs;
  if (isRecorded || wrt.length !== adjoints.length || xs.length + ws.length > 0) return false;
  return ![...allNodes(step)].some((inner) => regionRule(inner)?.kind === "custom_vjp");
}

/** count, c…, k…  →  c…: that many iterations of the step. */
export function forwardLoop(node: Node, { states: carries, consts, step, checkpoints }: Reversal): Graph {
  const b = new Build("forward");
  const [count, ...rest] = paramsLike(b, [at(node.inputs, 0), ...carries, ...consts]);
  invariant(count, () => "rewind has no count");
  const nc = carries.length;
  // p, c… | goal, k…
  const inner = [number(b, 0), ...rest.slice(0, nc), count, ...rest.slice(nc)];
  const test = testOf(inner, (params) => [at(params, 0), at(params, nc + 1)]);
  const attrs = { carries: nc + 1, length: 0, checkpoints };
  const made = b.callAll(whileLoop, inner, attrs, { regions: [test, advanceBody(step, inner, nc)] });
  return b.finish(made.slice(1, 1 + nc));
}

/** The same function of the same inputs. */
export function expandRewind(node: Node, reversal: Reversal): Graph {
  const { states: carries, adjoints, consts, step, back, xs, ws, checkpoints } = reversal;
  invariant(
    !reversal.isRecorded && xs.length + ws.length === 0,
    () => "a loop with a schedule is not differentiated again",
  );
  const b = new Build("rewind");
  const [count, ...inputs] = paramsLike(b, node.inputs);
  invariant(count, () => "rewind has no count");
  const [nc, na] = [carries.length, adjoints.length];
  const [c, a, k] = [inputs.slice(0, nc), inputs.slice(nc, nc + na), inputs.slice(nc + na)];
  // j, a… | c…, k…
  const outer = [count, ...a, ...c, ...k];
  const iteration = new Build("iteration");
  iteration.param(INDEX, "i");
  const [j, ...own] = paramsLike(iteration, outer);
  invariant(j, () => "the iteration has no counter");
  const [cts, rest] = [own.slice(0, na), own.slice(na)];
  const goal = apply(iteration, sub, j, number(iteration, 1));
  // p, c… | goal, k…
  const inner = [number(iteration, 0), ...rest.slice(0, nc), goal, ...rest.slice(nc)];
  const advance = advanceBody(step, inner, nc);
  const isBefore = testOf(inner, (params) => [at(params, 0), at(params, nc + 1)]);
  const attrs = { carries: nc + 1, length: 0, checkpoints };
  const reached = iteration.callAll(whileLoop, inner, attrs, { regions: [isBefore, advance] });
  const made = iteration.inline(back, [goal, ...reached.slice(1, 1 + nc), ...cts, ...rest.slice(nc)]);
  const body = iteration.finish([goal, ...made]);
  const isLeft = testOf(outer, (params, t) => [number(t, 0), at(params, 0)]);
  const all = b.callAll(whileLoop, outer, { carries: na + 1, length: 0, checkpoints }, { regions: [isLeft, body] });
  invariant(consts.length === k.length, () => "rewind lost a constant");
  return b.finish(all.slice(1, 1 + na));
}
