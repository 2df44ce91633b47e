/** @file Which nodes of the backward pass read a value of the forward pass, for passes that keep it in another form. */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { resultOf } from "../ir/graph.ts";
import { type Use, usersOf } from "../ir/walk.ts";
import { isView } from "./predicates.ts";

export const isForward = ({ phase, replay }: Node): boolean => phase === "forward" || replay > 0;

export class LateReaders {
  readonly #users: ReadonlyMap<Value, readonly Use[]>;

  constructor(graph: Graph) {
    this.#users = usersOf(graph);
  }

  /**
   * Nodes of the backward pass that read a value, itself or through views of the forward pass; null if it has to stay as it is: a replay,
   * an update, a loop or a branch reads it.
   */
  of(value: Value, replay: number): readonly Node[] | null {
    const found: Node[] = [];
    for (const { node } of this.#users.get(value) ?? []) {
      if (isForward(node) && node.replay !== replay) return null;
      if (isForward(node) && !isView(node)) continue;
      if (node.regions.length > 0 || node.phase === "update") return null;
      const own = isForward(node) ? this.of(resultOf(node), replay) : [node];
      if (own === null) return null;
      found.push(...own);
    }
    return found;
  }
}
