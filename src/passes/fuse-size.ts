/**
 * @file How much code a kernel becomes. A value that is read at several positions is computed at each of them:
 *
 *   y = sin(x)
 *   z = add(slice(y), flip(y))        y in z's kernel: two sines
 *   w = mul(take(z, i), take(z, j))   z in w's kernel: two sums, four sines
 *
 * so a chain of such reads would double the code, and the work, with every link. Here evaluations are counted as lowering
 * would make them, by asking each operation where it reads, and fusion refuses kernels with too many.
 *
 * Two reads of one value are one evaluation where the position is the same and both happen under the same guards: code
 * generation computes nothing twice in one scope and forgets what it computed inside of a guard. A value inside g guards counts
 * 1 + g times: where a guard holds in some lanes of a register only, a target may write its inside once more for each lane.
 * An index is code too. It counts by its terms from some number on, since reshapes of transposes nest divisions, each of
 * which repeats what it divides.
 *
 * Bound: a kernel of several operations has at most `maxEvaluations`, one of a lone operation a constant number for each of
 * its inputs (MOST_IN_VIEW in fuse-groups.ts). Each operation is in one kernel, views apart, so all code together is linear
 * in the nodes and edges of the program.
 */
import type { Node, Value } from "../ir/graph.ts";
import { resultOf } from "../ir/graph.ts";
import type { LowerContext, Lowering, Reader } from "../ir/op.ts";
import type { Shape } from "../ir/type.ts";
import { type Expr, type Index, load } from "../kernel/expr.ts";
import { varIndex } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";

/** Terms of an index that come with any read. */
const USUAL_TERMS = 16;

/** The node of a value that is computed in the kernel, null for one that is loaded or is the result of the kernel's loops. */
type NodeOf = (value: Value) => Node | null;

function termsOf(index: Index): number {
  let terms = 0;
  for (const { atom } of index.terms) terms += atom.kind === "div" || atom.kind === "mod" ? 1 + termsOf(atom.of) : 1;
  return terms;
}

/** Counters over a shape; the same for equal shapes. */
function everywhere(shape: Shape): Position {
  const name = `${shape.join("x")}:`;
  return Position.at(
    shape,
    shape.map((extent, axis) => varIndex({ kind: "var", name: `${name}${axis}`, extent })),
  );
}

/** Where code computes nothing twice: inside of one guard, in so many others, or outside of all. */
interface Scope {
  readonly id: number;
  readonly guards: number;
}

const WHOLE: Scope = { id: 0, guards: 0 };

class Evaluations {
  count = 0;
  readonly #nodeOf: NodeOf;
  readonly #most: number;
  /** The positions at which values were read, by scope. */
  readonly #known = new Set<string>();
  readonly #loads = new Map<string, Expr>();
  #scopes = 0;

  constructor(nodeOf: NodeOf, most: number) {
    this.#nodeOf = nodeOf;
    this.#most = most;
  }

  /** Counts the reads of an operation with loops of its own, each input over all of its elements. */
  inputs(node: Node): void {
    for (const input of node.inputs) this.read(input, everywhere(input.type.shape));
  }

  read(value: Value, place: Position, scope: Scope = WHOLE): void {
    if (this.count > this.#most) return;
    const key = `${value.id} ${scope.id} ${place.key}`;
    if (this.#known.has(key)) return;
    this.#known.add(key);
    const node = this.#nodeOf(value);
    const lower = node?.op.lower as Lowering<never> | undefined;
    const isView = lower?.kind === "map" && lower.fusion === "always";
    const own = (isView ? 0 : 1) + Math.max(0, termsOf(place.linear) - USUAL_TERMS);
    this.count += own * (1 + scope.guards);
    if (!node || lower?.kind !== "map") return;
    if (lower.pointwise) for (const input of node.inputs) this.read(input, place, scope);
    else this.#through(node, lower, place, scope);
  }

  /** The reads of an operation that reads elsewhere than where it is read. */
  #through(node: Node, lower: Extract<Lowering<never>, { kind: "map" }>, place: Position, scope: Scope): void {
    const reads: (readonly [Value, Position])[] = [];
    const context: LowerContext<never> = {
      inputs: node.inputs.map((value): Reader => {
        return (at) => {
          reads.push([value, at]);
          return this.#loaded(value, at);
        };
      }),
      inTypes: node.inputs.map(({ type }) => type),
      outType: resultOf(node).type,
      attrs: node.attrs as never,
    };
    const guarded = lower.value(context, place).kind === "guard";
    const inside = guarded ? this.#guarded(scope) : scope;
    for (const [value, at] of reads) this.read(value, at, inside);
  }

  #guarded({ guards }: Scope): Scope {
    this.count += 1 + guards;
    this.#scopes += 1;
    return { id: this.#scopes, guards: guards + 1 };
  }

  /** One expression for each element: indices that are computed from it are known by it. */
  #loaded(value: Value, at: Position): Expr {
    const key = `${value.id} ${at.key}`;
    const made = this.#loads.get(key) ?? load(value.type.dtype, 0, at.linear);
    this.#loads.set(key, made);
    return made;
  }
}

/** Evaluations for all elements of a view, down to values that are not inlined; `most` or less, or more than that. */
export function evaluationsOfView(view: Node, nodeOf: NodeOf, most: number): number {
  const counted = new Evaluations(nodeOf, most);
  const made = resultOf(view);
  counted.read(made, everywhere(made.type.shape));
  return counted.count;
}

/** Evaluations in a kernel whose `body` nodes are evaluated at the element being stored. */
export function evaluationsOfKernel(body: readonly Node[], anchor: Node | null, nodeOf: NodeOf, most: number): number {
  const counted = new Evaluations(nodeOf, most);
  for (const node of body) {
    if (node === anchor) counted.inputs(node);
    else for (const value of node.outputs) counted.read(value, everywhere(value.type.shape));
  }
  return counted.count;
}
